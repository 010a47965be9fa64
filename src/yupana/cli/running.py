"""Run, validate and observe products for the command line, and print what comes of it."""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from yupana.cli.arguments import print_json
from yupana.cli.product import (
    Configured,
    print_findings,
    print_release,
    report_of,
    request_of,
    say_confidential,
)

if TYPE_CHECKING:
    from yupana.confidential.request import RunRequest

Make = Callable[..., dict[str, Any]]

_STAGES: Final = 5
"""Most stages of a run, for the bar."""


@contextmanager
def _requested(case: Configured, title: str, options: argparse.Namespace) -> "Iterator[RunRequest]":
    """What is asked, with progress shown: by geolevels of a product that estimates them, else by stages."""
    from yupana.cli.progress import geolevels, stages

    if case.listing.estimators and title != "exact":
        with geolevels(f"{case.product.key} {title}") as (announce, progress):
            yield request_of(options, announce, progress)
    else:
        with stages(title if case.listing.accountings else f"{case.product.key} {title}", _STAGES) as announce:
            yield request_of(options, announce)


def validate(case: Configured, options: argparse.Namespace) -> None:
    """Check records, and print what is wrong with them."""
    from yupana.confidential.run import validate as look

    with _requested(case, "validate", options) as request:
        found = look(case.product, case.config, options.data, request)
    rows = found.truncation
    if "truncation" in case.listing.takes:
        say_confidential(options)
    print_findings(options, found.findings, {"truncation": [asdict(row) for row in rows]} if rows else None)
    _print_remarks(found.remarks)
    if rows and not options.json:
        print(f"{'table':11}{'tau':>6}{'persons':>15}{'left out':>13}{'share':>9}{'households':>13}")
        for row in rows:
            print(
                f"{row.table:11}{row.tau:6}{row.persons:15,}{row.left_out:13,}"
                f"{row.left_out / max(1, row.persons):9.3%}{row.units:13,}{'  configured' * row.configured}"
            )


def run(case: Configured, options: argparse.Namespace) -> None:
    """Make a release, and say what it is."""
    from yupana.confidential.run import run as make

    report = report_of(options)
    try:
        manifest = _made(case, "run", make, options)
    except KeyboardInterrupt:
        if "resume" in case.listing.takes:
            told = f"finished work is kept beside {options.out}; go on with --resume"
            print(f"{case.product.key} run: {told}", file=sys.stderr)
        raise
    if report is not None:
        from yupana.release.check import check_files
        from yupana.report.release import write_release_report

        # Tables with an iteration of every group can be too large to be read at once; their report shows no counts.
        tables = check_files(options.out)[1] if "codes" not in case.listing.takes else {}
        production = case.product.plan(case.product.production(case.config))
        write_release_report(report, case.plan(options), production, manifest, tables)
    _say(options, manifest)


def exact(case: Configured, options: argparse.Namespace) -> None:
    """Make the same without noise, and say what it is."""
    from yupana.confidential.run import exact as make

    _say(options, _made(case, "exact", make, options))


def _made(case: Configured, title: str, make: Make, options: argparse.Namespace) -> dict[str, Any]:
    with _requested(case, case.product.key if case.listing.accountings else title, options) as request:
        return make(case.product, case.config, options.data, options.out, request)


def _say(options: argparse.Namespace, manifest: dict[str, Any]) -> None:
    print_release(options, manifest)
    parameters = manifest["parameters"]
    _print_remarks(parameters.get("remarks", ()))
    # The list of states is public.
    absent = sorted(set(parameters.get("state_filter", ())) - set(parameters.get("states", ())))
    if absent and not options.json:
        print(f"no housing unit of the state_filter's {', '.join(absent)}: the tables leave such states out")


def _print_remarks(remarks: Sequence[str]) -> None:
    for remark in remarks:
        print(f"remark: {remark}", file=sys.stderr)


def accuracy(case: Configured, options: argparse.Namespace) -> None:
    """Compare noisy with exact counts, and print the errors."""
    from yupana.confidential.accuracy import accuracy as observe
    from yupana.confidential.accuracy import write_accuracy

    with _requested(case, "accuracy", options) as request:
        observed = observe(case.product, case.config, options.data, request, trials=options.trials)
    if options.out is not None:
        write_accuracy(observed, options.out, request)
    rows = observed.rows
    if case.listing.estimators:
        _print_counts(case, rows, options)
        return
    say_confidential(options)
    if options.json:
        print_json([asdict(row) for row in rows])
    elif "codes" in case.listing.takes:
        _print_groups(rows)
    else:
        _print_cells(rows)


def _print_cells(rows: Sequence[Any]) -> None:
    heads = f"{'expected':>10}{'noise':>10}{'within':>9}{'with truncation':>17}{'bias':>10}"
    print(f"{'table':11}{'level':11}{'iteration':9}{'cell':>5}{'n':>8}{heads}")
    for row in rows:
        print(
            f"{row.table:11}{row.level:11}{row.iteration:9}{row.cell:5}{row.count:8}{row.expected_moe:10.1f}"
            f"{row.experimental_moe:10.1f}{row.coverage:9.2%}{row.experimental_moe_with_truncation:17.1f}"
            f"{row.bias_from_truncation:10.2f}"
        )


def _print_groups(rows: Sequence[Any]) -> None:
    print(
        f"{'table':10}{'level':14}{'size':>22}{'groups':>12}{'share':>9}{'n':>12}{'expected':>10}{'noise':>10}"
        f"{'within':>9}{'cap':>10}"
    )
    for row in rows:
        level = f"{row.region_type} {row.iteration_level}{'*' * row.detailed_only}"
        margins = (row.expected_moe, row.experimental_moe, row.race_cap_bias)
        expected, found, bias = ("-" if m is None else f"{m:.1f}" for m in margins)
        print(
            f"{row.table:10}{level:14}{row.size:>22}{row.groups:12,}{row.share:9.2%}{row.count:12,}"
            f"{expected:>10}{found:>10}{'-' if row.coverage is None else f'{row.coverage:.2%}':>9}{bias:>10}"
        )
    print("cap: how many records the limit on race codes adds to a group, on average")
    if any(row.detailed_only for row in rows):
        print("* iterations of which only totals are made")


def _print_counts(case: Configured, rows: Sequence[Any], options: argparse.Namespace) -> None:
    if options.json:
        name = case.config.product
        print_json({"product": name, "trials": options.trials, "rows": [asdict(row) for row in rows]})
        return
    print("CONFIDENTIAL: these errors tell the truth about the records.")
    print(f"{'areas':22} {'query':24} {'population':>16} {'number':>8} {'MAE':>10} {'RMSE':>10} {'bias':>10}")
    for row in rows:
        print(
            f"{row.geolevel:22} {row.query:24} {row.population:>16} {row.areas:8,} {row.mae:10.3f} {row.rmse:10.3f} "
            f"{row.bias:+10.3f}"
        )
