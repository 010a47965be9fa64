"""`hollerith audit epl`: empirical privacy loss."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hollerith.cli.arguments import Commands, count, positive, print_json, seed, share
from hollerith.cli.product import add_verb, entropy_of
from hollerith.errors import ConfigError

if TYPE_CHECKING:
    from hollerith.audit.epl import Finding, Request
    from hollerith.audit.hierarchy import PublishedLoss
    from hollerith.audit.series import Series
    from hollerith.privacy.laws import Law


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
    verb.add_argument("--reproduce", choices=("SA1",), help="a table of the paper, with its generator and seed")
    verb.add_argument("--demonstration", choices=("composition", "invariant"), help="of the paper, on --data")
    verb.add_argument("--data", type=Path, metavar="FILE", help="P.L. 94-171 of 2010 by block, of one county")
    verb.add_argument("--mode", choices=("sound", "published"), default="sound")
    verb.add_argument("--bandwidth", type=_number, metavar="F", help="in standard deviations (0.5; published 0.1)")
    verb.add_argument("--range", type=_number, default=95.0, metavar="P", help="percentile where it ends (95)")
    verb.add_argument("--confidence", type=share, default=None, metavar="C", help="of the interval (0.95)")
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
    given = [
        name
        for name, value in (
            ("FILE or RELEASE", options.noisy_counts),
            ("--reproduce", options.reproduce),
            ("--demonstration", options.demonstration),
        )
        if value is not None
    ]
    if len(given) > 1 or (not given and options.mechanism is None):
        raise ConfigError("audit epl needs one of FILE, RELEASE with TRUTH, --mechanism, --reproduce, --demonstration")
    if options.reproduce is not None:
        _reproduce(options)
        return
    from hollerith.audit.epl import Request, examine, examine_all, examine_mechanism
    from hollerith.audit.published import REPLICATES
    from hollerith.audit.sound import CONFIDENCE

    request = Request(
        options.mode,
        options.bandwidth,
        options.range,
        REPLICATES if options.replicates is None else options.replicates,
        CONFIDENCE if options.confidence is None else float(options.confidence),
    )
    page = None
    if options.report is not None:
        from hollerith.report.place import CONFIDENTIAL, claim_page

        homes = [path for path in (options.noisy_counts, options.truth) if path is not None]
        page = claim_page(options.report, homes, mode=CONFIDENTIAL)
    law = _law(options)
    notes: list[str] = []
    beside: Sequence[PublishedLoss] = ()
    if options.noisy_counts is None and options.demonstration is None:
        assert law is not None  # noqa: S101 (one of the three was given)
        findings = [examine_mechanism(law, request, entropy_of(options), *([options.counts] if options.counts else []))]
    elif options.demonstration is not None:
        series, notes = _demonstration(options)
        findings = examine_all(series, request)
    elif options.noisy_counts.is_dir():
        findings, beside = _release(options, request)
    else:
        findings = [examine(_columns(options, law), request)]
    if page is not None:
        from hollerith.report.epl import epl_page
        from hollerith.report.place import write_page

        write_page(page, epl_page(findings, notes, beside))
    _print(options, findings, notes, beside)


def _law(options: argparse.Namespace) -> "Law | None":
    from hollerith.privacy.laws import DiscreteGaussian, TwoSidedGeometric

    needed = {"geometric": "epsilon", "discrete-gaussian": "rho"}
    for mechanism, budget in needed.items():
        if (getattr(options, budget) is not None) != (options.mechanism == mechanism):
            raise ConfigError(f"--mechanism {mechanism} and --{budget} go together")
    if options.mechanism == "geometric":
        return TwoSidedGeometric(1 / options.epsilon)
    if options.mechanism == "discrete-gaussian":
        return DiscreteGaussian(1 / (2 * options.rho))
    return None


def _columns(options: argparse.Namespace, law: "Law | None") -> "Series":
    from hollerith.audit.columns import read_numbers
    from hollerith.audit.series import Series

    if options.exact is None or options.noisy is None or options.truth is not None:
        raise ConfigError("a file needs --exact COLUMN and --noisy COLUMN; a release needs the folder of its truth")
    exact, noisy = read_numbers(options.noisy_counts, (options.exact, options.noisy))
    return Series(f"{options.noisy_counts.name}, {options.noisy}", exact, noisy, law)


def _release(options: argparse.Namespace, request: "Request") -> "tuple[list[Finding], Sequence[PublishedLoss]]":
    from hollerith.audit.epl import examine_all
    from hollerith.audit.hierarchy import COUNTS, by_geolevel, read_published_1940
    from hollerith.audit.series import release_and_truth

    if options.truth is None or not options.truth.is_dir():
        raise ConfigError("a release needs its truth: a folder of the same tables without noise, as `exact` writes")
    if (options.noisy_counts / COUNTS).is_dir():
        beside = read_published_1940(options.beside) if options.beside is not None else ()
        return examine_all(list(by_geolevel(options.noisy_counts, options.truth, options.query)), request), beside
    if options.query is not None or options.beside is not None:
        raise ConfigError("--query and --beside are for releases of TopDown")
    return examine_all(list(release_and_truth(options.noisy_counts, options.truth)), request), ()


def _demonstration(options: argparse.Namespace) -> "tuple[list[Series], list[str]]":
    from hollerith.audit.block_counts import read_strata
    from hollerith.audit.demonstrations import WORDS, composition, invariant

    if options.data is None:
        raise ConfigError("--demonstration needs --data FILE, counts of P.L. 94-171 by block")
    run = {"composition": composition, "invariant": invariant}[options.demonstration]
    return run(read_strata(options.data), entropy_of(options)), list(WORDS[options.demonstration])


def _reproduce(options: argparse.Namespace) -> None:
    from hollerith.audit.published import PANELS, WHAT_B_AND_C_ARE, honour, reproduce

    rows = list(reproduce())
    if options.json:
        print(f"hollerith: {WHAT_B_AND_C_ARE}", file=sys.stderr)
        print_json([row.as_json() for row in rows])
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
    print(WHAT_B_AND_C_ARE)


def _print(
    options: argparse.Namespace, findings: "list[Finding]", notes: list[str], beside: "Sequence[PublishedLoss]"
) -> None:
    if options.json:
        answer: dict[str, Any] = {"confidential": True, "results": [finding.as_json() for finding in findings]}
        if notes:
            answer["notes"] = notes
        if beside:
            answer["published_1940"] = [row.as_json() for row in beside]
        print_json(answer)
        return
    from hollerith.cli.epl_text import epl_text

    print("\n".join(epl_text(findings, notes, beside)))
    if options.report is not None:
        print(options.report)
