"""`yupana audit epl`: empirical privacy loss."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import yupana
from yupana.cli.options import given, tell
from yupana.errors import ConfigError
from yupana.interface.arguments import entropy
from yupana.interface.commands import LossOptions
from yupana.interface.options import declared

if TYPE_CHECKING:
    from yupana.audit.empirical.kernel_density import PublishedRow
    from yupana.audit.empirical.loss import LossFinding, LossRequest
    from yupana.audit.empirical.series import PublishedLoss, Series
    from yupana.confidential.paper_figures import Districts, Drawn
    from yupana.files.regular import NewFile
    from yupana.privacy.laws import Law


_LEAST: Final = Fraction(1, 10**9)
_MOST: Final = Fraction(100)


def epl(options: argparse.Namespace) -> None:
    """Tell the empirical privacy loss of counts."""
    _check_source(options)
    if options.reproduce is not None:
        _reproduce(options)
        return
    from yupana.interface.releases import loss_request

    request = loss_request(**_loss_options(options))
    page = _claimed(options)
    findings, notes, beside = _examined(options, request)
    written = _written(options, page, findings, notes, beside)
    answer: dict[str, Any] = {"confidential": True, "results": [finding.as_json() for finding in findings]}
    answer |= {"notes": notes} if notes else {}
    answer |= {"published_1940": [row.as_json() for row in beside]} if beside else {}
    tell(options, answer, [*_lines(findings, notes, beside), *written])


def _loss_options(options: argparse.Namespace) -> Any:  # noqa: ANN401 (of `LossOptions`)
    return {name: value for name, value in given(options).items() if name in declared(LossOptions)}


def _check_source(options: argparse.Namespace) -> None:
    """Refuse what names no counts, or names them twice."""
    sources = {
        "FILE or RELEASE": options.noisy_counts,
        "--reproduce": options.reproduce,
        "--demonstration": options.demonstration,
    }
    told = [name for name, value in sources.items() if value is not None]
    if len(told) > 1 or (not told and options.mechanism is None):
        raise ConfigError("audit epl needs one of FILE, RELEASE with TRUTH, --mechanism, --reproduce, --demonstration")
    if options.reproduce is not None:
        return
    if options.exact is not None and options.noisy_counts is None and options.data is None:
        raise ConfigError("--exact names a column of a FILE, or of --data FILE")
    if options.data is not None and options.demonstration is None and (told or options.mechanism is None):
        raise ConfigError("--data goes with --reproduce, --demonstration, or --mechanism and --exact COLUMN")


def _examined(
    options: argparse.Namespace, request: "LossRequest"
) -> "tuple[list[LossFinding], list[str], Sequence[PublishedLoss]]":
    """What was found, what a reader must know of it, and published results to show beside it."""
    from yupana.audit.empirical.loss import examine, examine_all, examine_mechanism

    law = _law(options)
    if options.demonstration is not None:
        series, notes = _demonstration(options)
        return examine_all(series, request), notes, ()
    if options.noisy_counts is not None and options.noisy_counts.is_dir():
        findings, beside = _release(options)
        return findings, [], beside
    if options.noisy_counts is not None:
        return [examine(_columns(options, law), request)], [], ()
    assert law is not None  # noqa: S101 (one of the three was given)
    if options.data is not None:
        return [examine(_with_noise(options, law), request)], [], ()
    number = [options.counts] if options.counts else []
    return [examine_mechanism(law, request, entropy(options.seed), *number)], [], ()


def _claimed(options: argparse.Namespace) -> "NewFile | None":
    """The page asked for, claimed before the work."""
    if options.report is None:
        return None
    from yupana.report.page import CONFIDENTIAL, claim_page

    homes = [path for path in (options.noisy_counts, options.truth) if path is not None]
    return claim_page(options.report, homes, mode=CONFIDENTIAL)


def _written(options: argparse.Namespace, page: "NewFile | None", *told: Any, **more: Any) -> list[str]:  # noqa: ANN401 (of `epl_page`)
    """Write the page that was claimed, and return the line that names it."""
    if page is None:
        return []
    from yupana.report.empirical import epl_page

    page.put(epl_page(*told, **more))
    return [f"{options.report}"]


def _law(options: argparse.Namespace) -> "Law | None":
    from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric

    needed = {"geometric": "epsilon", "discrete-gaussian": "rho"}
    for mechanism, budget in needed.items():
        if (getattr(options, budget) is not None) != (options.mechanism == mechanism):
            raise ConfigError(f"--mechanism {mechanism} and --{budget} go together")
        if (value := getattr(options, budget)) is not None and not _LEAST <= value <= _MOST:
            raise ConfigError(f"--{budget} must lie between 1e-9 and 100: noise beyond is none, or fits no double")
    if options.mechanism == "geometric":
        return TwoSidedGeometric(1 / options.epsilon)
    if options.mechanism == "discrete-gaussian":
        return DiscreteGaussian(1 / (2 * options.rho))
    return None


def _columns(options: argparse.Namespace, law: "Law | None") -> "Series":
    from yupana.audit.empirical.series import Series
    from yupana.confidential.audit_counts import read_numbers

    if options.exact is None or options.noisy is None or options.truth is not None:
        raise ConfigError("a file needs --exact COLUMN and --noisy COLUMN; a release needs the folder of its truth")
    exact, noisy = read_numbers(options.noisy_counts, (options.exact, options.noisy))
    return Series(f"{options.noisy_counts.name}, {options.noisy}", exact, noisy, law)


def _with_noise(options: argparse.Namespace, law: "Law") -> "Series":
    """A column of counts, and the same with noise of a law."""
    from yupana.audit.empirical.series import Series
    from yupana.confidential.audit_counts import read_counts
    from yupana.privacy.sampler import add_noise

    if options.exact is None or options.noisy is not None or options.counts is not None:
        raise ConfigError("--data FILE --mechanism needs --exact COLUMN, the counts to be given noise, and no other")
    (counts,) = read_counts(options.data, (options.exact,))
    noisy = add_noise(counts, law, entropy(options.seed))
    name = f"{options.data.name}, {options.exact} with noise"
    return Series(name, counts.astype(float), noisy.astype(float), law)


def _release(options: argparse.Namespace) -> "tuple[list[LossFinding], Sequence[PublishedLoss]]":
    from yupana.audit.empirical.series import read_published_1940
    from yupana.confidential.audit_counts import COUNTS

    if options.truth is None or not options.truth.is_dir():
        raise ConfigError("a release needs its truth: a folder of the same tables without noise, as `exact` writes")
    if not (options.noisy_counts / COUNTS).is_dir() and (options.query is not None or options.beside is not None):
        raise ConfigError("--query and --beside are for releases of TopDown")
    beside = read_published_1940(options.beside) if options.beside is not None else ()
    terms = _loss_options(options)
    return [*yupana.empirical_loss(options.noisy_counts, options.truth, queries=options.query, **terms)], beside


def _demonstration(options: argparse.Namespace) -> "tuple[list[Series], list[str]]":
    from yupana.audit.empirical.series import WORDS, composition, invariant
    from yupana.confidential.audit_counts import read_strata

    if options.data is None:
        raise ConfigError("--demonstration needs --data FILE, counts of P.L. 94-171 by block")
    run = {"composition": composition, "invariant": invariant}[options.demonstration]
    return run(read_strata(options.data), entropy(options.seed)), list(WORDS[options.demonstration])


def _reproduce(options: argparse.Namespace) -> None:
    from yupana.audit.empirical.kernel_density import REPLICATES, WHAT_B_AND_C_ARE, reproduce
    from yupana.audit.empirical.loss import LossRequest
    from yupana.confidential.paper_figures import WORDS, draw_figure

    others = ("mechanism", "counts", "exact", "noisy", "query", "beside", "bandwidth", "confidence")
    if unfit := [f"--{name}" for name in others if getattr(options, name) is not None]:
        raise ConfigError(f"--reproduce {options.reproduce} is as the paper has it: leave {', '.join(unfit)} out")
    name = options.reproduce
    page = _claimed(options)
    districts, notes = _districts(options)
    rows = list(reproduce()) if name == "SA1" else []
    drawn: list[Drawn] = []
    if name != "SA1" or page is not None:
        replicates = REPLICATES if options.replicates is None else options.replicates
        drawn = draw_figure(name, districts, LossRequest("published", replicates=replicates))
    words = [WORDS[name], *notes] if drawn else []
    words += [WHAT_B_AND_C_ARE] if rows else []
    printed = [d.printed for d in drawn]
    written = _written(options, page, [d.finding for d in drawn], words, rows=rows, printed=printed)
    for line in words if options.json else ():
        print(f"yupana: {line}", file=sys.stderr)
    lines = [*_rows_text(rows)]
    for one in drawn:
        of_paper = "none printed" if one.printed is None else f"printed {one.printed:g}"
        loss = "no EPL" if one.finding.loss is None else f"EPL {one.finding.loss:.4f}"
        lines.append(f"{one.figure}, {one.finding.series.name}: {loss}; {of_paper}")
    tell(options, [row.as_json() for row in (rows or drawn)], [*lines, "", *words, *written])


def _districts(options: argparse.Namespace) -> "tuple[Districts, list[str]]":
    """The districts of a figure, and what a reader must know of them."""
    from yupana.confidential.paper_figures import WANTED, made_up_districts, read_districts

    if options.data is not None:
        if options.reproduce == "SA2":
            raise ConfigError("SA2 is of noise alone; --data is for SA1, SA3 and SA4")
        found = read_districts(options.data)
        return found, [f"Drawn of {found.words}."]
    found = made_up_districts() if options.seed is None else made_up_districts(options.seed)
    return found, [] if options.reproduce == "SA2" else [f"Drawn of {found.words}.", WANTED]


def _rows_text(rows: "list[PublishedRow]") -> Iterator[str]:
    """Table SA1, with what its panels (b) and (c) would be if their values were used."""
    from yupana.audit.empirical.kernel_density import PANELS, honour

    if not rows:
        return
    honoured = {(row.panel, row.value): row for row in honour()}
    for panel, words in PANELS.items():
        yield f"({panel}) {words}"
        yield f"{'':>9} {'as printed':>27}" + ("   if the value were used" if panel != "a" else "")
        for row in rows:
            if row.panel == panel:
                used = honoured.get((panel, row.value))
                more = "" if used is None else f"   {used.mean:.4f} [{used.lower:.4f}, {used.upper:.4f}]"
                yield f"{row.value:9.4f} {row.mean:10.4f} [{row.lower:.4f}, {row.upper:.4f}]{more}"
        yield ""


def _lines(findings: "Sequence[LossFinding]", notes: Sequence[str], beside: "Sequence[PublishedLoss]") -> Iterator[str]:
    """Lines of text: each series, what to know of all, and the results of 1940."""
    from yupana.report.numbers import epl as shown

    width = max(len(finding.series.name) for finding in findings)
    for finding in findings:
        yield f"{finding.series.name:{width}}  EPL {shown(finding.loss):>8}  {_how(finding)}"
        if finding.replicates is not None:
            r = finding.replicates
            yield f"{'':{width}}  mean {shown(r.mean)} [{shown(r.lower)}, {shown(r.upper)}], {r.number} x {r.what}"
        for warning in (*finding.warnings, *([finding.problem] if finding.problem else [])):
            yield f"{'':{width}}  warning: {warning}"
        yield from _of_1940(finding, findings, beside)
    yield from notes


def _how(finding: "LossFinding") -> str:
    from yupana.audit.empirical.loss import describe
    from yupana.report.numbers import epl as shown

    estimate, parts = finding.estimate, []
    if finding.known is not None:
        parts.append(f"by the law ({describe(finding.series.law)})")
    if estimate is not None:
        ends = f"[{shown(estimate.lower)}, {shown(estimate.upper)}] at {estimate.confidence:.0%}"
        first = f"estimated {shown(estimate.loss)} {ends}" if finding.known is not None else ends
        by = "neighbouring counts" if estimate.method == "neighbours" else f"bandwidth {estimate.bandwidth:.3g}"
        parts.append(f"{first}, {by}, range {estimate.low:.4g} to {estimate.high:.4g}")
    if finding.curve is not None:
        parts.append(f"as published, bandwidth {finding.curve.bandwidth:.3g}")
    if finding.residuals is not None:
        parts.append(f"{finding.residuals.number:,} residuals")
    return "; ".join(parts)


def _of_1940(
    finding: "LossFinding", findings: "Sequence[LossFinding]", beside: "Sequence[PublishedLoss]"
) -> Iterator[str]:
    from yupana.audit.empirical.series import counterpart

    geolevel, _, query = finding.series.name.partition(" ")
    other = counterpart(geolevel, [f.series.name.partition(" ")[0] for f in findings])
    rows = [row for row in beside if (row.geolevel, row.query) == (other, query)]
    if rows:
        yield "    1940, as published, by epsilon: " + ", ".join(f"{row.epsilon:g}: {row.loss:g}" for row in rows)
