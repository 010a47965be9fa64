"""`yupana audit epl`: empirical privacy loss."""

import argparse
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yupana
from yupana.cli.arguments import Commands, confidence_level, count, positive, print_json, seed
from yupana.cli.product import add_verb
from yupana.errors import ConfigError
from yupana.interface.arguments import entropy

if TYPE_CHECKING:
    from yupana.audit.empirical.kernel_density import PublishedRow
    from yupana.audit.empirical.loss import LossFinding, LossRequest
    from yupana.audit.empirical.series import PublishedLoss, Series
    from yupana.confidential.paper_figures import Districts, Drawn
    from yupana.files.regular import NewFile
    from yupana.privacy.laws import Law


_LEAST: Final = Fraction(1, 10**9)
_MOST: Final = Fraction(100)


def add(verbs: Commands) -> None:
    """Add the verb."""
    verb = add_verb(verbs, "epl", "empirical privacy loss of exact and noisy counts", _epl)
    verb.add_argument("noisy_counts", type=Path, nargs="?", metavar="FILE|RELEASE", help="CSV, Parquet, or a release")
    verb.add_argument("truth", type=Path, nargs="?", metavar="TRUTH", help="with RELEASE: the same without noise")
    verb.add_argument("--exact", metavar="COLUMN", help="with FILE: the column of exact counts")
    verb.add_argument("--noisy", metavar="COLUMN", help="with FILE: the column of noisy counts")
    verb.add_argument("--query", action="append", metavar="QUERY", help="of TopDown: total, detailed, race*hispanic")
    verb.add_argument("--beside", type=Path, metavar="FOLDER", help="with a release of TopDown: the results of 1940")
    verb.add_argument("--mechanism", choices=("geometric", "discrete-gaussian"), help="noise of a count of one person")
    verb.add_argument("--epsilon", type=positive, metavar="E", help="of geometric noise")
    verb.add_argument("--rho", type=positive, metavar="R", help="of discrete Gaussian noise")
    verb.add_argument("--counts", type=count, default=None, metavar="N", help="with a mechanism alone (2663)")
    verb.add_argument(
        "--reproduce",
        choices=("SA1", "SA2", "SA3", "SA4"),
        help="a figure of the paper, with its generator and seed; SA1 is the table, and with --report the figure, too",
    )
    verb.add_argument("--demonstration", choices=("composition", "invariant"), help="of the paper, on --data")
    verb.add_argument(
        "--data",
        type=Path,
        metavar="FILE",
        help="P.L. 94-171 of 2010 by block, of one county; with --reproduce also enumeration districts of 1940; with "
        "--mechanism any file, whose column --exact is given noise",
    )
    verb.add_argument("--mode", choices=("sound", "published"), default="sound")
    verb.add_argument("--bandwidth", type=_number, metavar="F", help="in standard deviations (0.5; published 0.1)")
    verb.add_argument("--range", type=_number, default=95.0, metavar="P", help="percentile where it ends (95)")
    verb.add_argument("--confidence", type=confidence_level, default=None, metavar="C", help="of the interval (0.95)")
    verb.add_argument("--replicates", type=count, default=None, metavar="N", help="(100)")
    verb.add_argument("--seed", type=seed, metavar="S", help="reproducible noise")
    verb.add_argument("--report", type=Path, metavar="HTML", help="write a page with the plots of the paper")
    verb.add_argument("--json", action="store_true")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None


def _epl(options: argparse.Namespace) -> None:
    _check_source(options)
    if options.reproduce is not None:
        _reproduce(options)
        return
    request = _request(options)
    page = _claimed(options)
    findings, notes, beside = _examined(options, request)
    if page is not None:
        from yupana.report.empirical import epl_page
        from yupana.report.place import write_page

        write_page(page, epl_page(findings, notes, beside))
    _print(options, findings, notes, beside)


def _check_source(options: argparse.Namespace) -> None:
    """Refuse what names no counts, or names them twice."""
    sources = {
        "FILE or RELEASE": options.noisy_counts,
        "--reproduce": options.reproduce,
        "--demonstration": options.demonstration,
    }
    given = [name for name, value in sources.items() if value is not None]
    if len(given) > 1 or (not given and options.mechanism is None):
        raise ConfigError("audit epl needs one of FILE, RELEASE with TRUTH, --mechanism, --reproduce, --demonstration")
    if options.reproduce is not None:
        return
    if options.exact is not None and options.noisy_counts is None and options.data is None:
        raise ConfigError("--exact names a column of a FILE, or of --data FILE")
    if options.data is not None and options.demonstration is None and (given or options.mechanism is None):
        raise ConfigError("--data goes with --reproduce, --demonstration, or --mechanism and --exact COLUMN")


def _request(options: argparse.Namespace) -> "LossRequest":
    from yupana.audit.empirical.kernel_density import REPLICATES
    from yupana.audit.empirical.local_likelihood import CONFIDENCE
    from yupana.audit.empirical.loss import LossRequest

    return LossRequest(
        options.mode,
        options.bandwidth,
        options.range,
        REPLICATES if options.replicates is None else options.replicates,
        CONFIDENCE if options.confidence is None else float(options.confidence),
    )


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
        findings, beside = _release(options, request)
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
    from yupana.report.place import CONFIDENTIAL, claim_page

    homes = [path for path in (options.noisy_counts, options.truth) if path is not None]
    return claim_page(options.report, homes, mode=CONFIDENTIAL)


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


def _release(
    options: argparse.Namespace, request: "LossRequest"
) -> "tuple[list[LossFinding], Sequence[PublishedLoss]]":
    from yupana.audit.empirical.series import read_published_1940
    from yupana.confidential.audit_counts import COUNTS

    if options.truth is None or not options.truth.is_dir():
        raise ConfigError("a release needs its truth: a folder of the same tables without noise, as `exact` writes")
    if not (options.noisy_counts / COUNTS).is_dir() and (options.query is not None or options.beside is not None):
        raise ConfigError("--query and --beside are for releases of TopDown")
    beside = read_published_1940(options.beside) if options.beside is not None else ()
    found = yupana.empirical_loss(
        options.noisy_counts,
        options.truth,
        queries=options.query,
        mode=request.mode,
        bandwidth=request.bandwidth,
        percentile=request.percentile,
        replicates=request.replicates,
        confidence=request.confidence,
    )
    return found, beside


def _demonstration(options: argparse.Namespace) -> "tuple[list[Series], list[str]]":
    from yupana.audit.empirical.demonstrations import WORDS, composition, invariant
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
    if page is not None:
        from yupana.report.empirical import epl_page
        from yupana.report.place import write_page

        write_page(page, epl_page([d.finding for d in drawn], words, rows=rows, printed=[d.printed for d in drawn]))
    _print_reproduced(options, rows, drawn, words)


def _print_reproduced(
    options: argparse.Namespace, rows: "list[PublishedRow]", drawn: "list[Drawn]", words: list[str]
) -> None:
    if options.json:
        for line in words:
            print(f"yupana: {line}", file=sys.stderr)
        print_json([row.as_json() for row in (rows or drawn)])
        return
    _print_rows(rows)
    for one in drawn:
        printed = "none printed" if one.printed is None else f"printed {one.printed:g}"
        loss = "no EPL" if one.finding.loss is None else f"EPL {one.finding.loss:.4f}"
        print(f"{one.figure}, {one.finding.series.name}: {loss}; {printed}")
    print("\n".join(["", *words]))
    if options.report is not None:
        print(options.report)


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


def _print_rows(rows: "list[PublishedRow]") -> None:
    """Table SA1, with what its panels (b) and (c) would be if their values were used."""
    from yupana.audit.empirical.kernel_density import PANELS, honour

    if not rows:
        return
    honoured = {(row.panel, row.value): row for row in honour()}
    for panel, words in PANELS.items():
        print(f"({panel}) {words}")
        print(f"{'':>9} {'as printed':>27}" + ("   if the value were used" if panel != "a" else ""))
        for row in rows:
            if row.panel == panel:
                used = honoured.get((panel, row.value))
                more = "" if used is None else f"   {used.mean:.4f} [{used.lower:.4f}, {used.upper:.4f}]"
                print(f"{row.value:9.4f} {row.mean:10.4f} [{row.lower:.4f}, {row.upper:.4f}]{more}")
        print()


def _print(
    options: argparse.Namespace, findings: "list[LossFinding]", notes: list[str], beside: "Sequence[PublishedLoss]"
) -> None:
    if options.json:
        answer: dict[str, Any] = {"confidential": True, "results": [finding.as_json() for finding in findings]}
        if notes:
            answer["notes"] = notes
        if beside:
            answer["published_1940"] = [row.as_json() for row in beside]
        print_json(answer)
        return
    from yupana.cli.epl_text import epl_text

    print("\n".join(epl_text(findings, notes, beside)))
    if options.report is not None:
        print(options.report)
