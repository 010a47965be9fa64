"""`yupana safetab-p|safetab-h validate|plan|run|exact|accuracy`: the Detailed DHC-A and DHC-B."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yupana.cli.arguments import Commands, print_json
from yupana.cli.product import (
    PLANNED,
    add_accuracy_arguments,
    add_internal_argument,
    add_memory,
    add_noise_arguments,
    add_plan_arguments,
    add_planning_arguments,
    add_release_arguments,
    add_report_argument,
    add_verb,
    print_findings,
    print_plan,
    print_release,
    report_of,
    request_of,
    say_confidential,
    settle,
    solve_targets,
)
from yupana.plan.plan import Plan
from yupana.products.safetab.iterations import CharacteristicIterations
from yupana.products.safetab.parameters import locate, read_iterations
from yupana.products.safetab.plan import DEFAULT_CONFIDENCE
from yupana.products.safetab.product import HOUSEHOLDS, PERSONS, Parameters, SafetabProduct

if TYPE_CHECKING:
    from yupana.files.new_file import NewFile
    from yupana.products.safetab.households.configuration import Config as ConfigH
    from yupana.products.safetab.persons.configuration import Config as ConfigP

_STAGES = 3

Command = Callable[[argparse.Namespace], None]


def add(commands: Commands) -> None:
    """Add both commands and their verbs."""
    _add_product(
        commands,
        "safetab-p",
        "the Detailed Demographic and Housing Characteristics File A: persons",
        {"validate": _validate_p, "plan": _plan_p, "run": _run_p, "exact": _exact_p, "accuracy": _accuracy_p},
    )
    household = _add_product(
        commands,
        "safetab-h",
        "the Detailed Demographic and Housing Characteristics File B: households",
        {"validate": _validate_h, "plan": _plan_h, "run": _run_h, "exact": _exact_h, "accuracy": _accuracy_h},
    )
    for name in ("validate", "run", "exact", "accuracy"):
        household[name].add_argument(
            "--totals", type=Path, metavar="FILE", help="T01001 as safetab-p wrote it (default: in DATA)"
        )


def _add_product(
    commands: Commands, name: str, text: str, doing: dict[str, Command]
) -> dict[str, argparse.ArgumentParser]:
    verbs = commands.add_parser(name, help=text).add_subparsers(metavar="VERB", required=True)
    texts = {
        "validate": "check the records; the report is confidential",
        "plan": "what a run would measure, and what it costs; needs no data",
        "run": "make a release",
        "exact": "the same without noise: synthetic data, or --internal",
        "accuracy": "experimental against expected error: synthetic data, or --internal",
    }
    added = {verb: add_verb(verbs, verb, texts[verb], command) for verb, command in doing.items()}
    for verb, parser in added.items():
        parser.add_argument(
            "parameters",
            type=Path,
            metavar="PARAMETERS",
            help="a parameter folder, a release's manifest, or a built-in name",
        )
        parser.add_argument(
            "--codes", type=Path, metavar="FOLDER", help="the files of codes and iterations (default: in PARAMETERS)"
        )
        if verb != "plan":
            parser.add_argument("data", type=Path, metavar="DATA", help="a folder with the records and GRF-C.txt")
    add_memory(added["validate"])
    added["validate"].add_argument("--json", action="store_true")
    add_plan_arguments(added["plan"])
    for verb in ("run", "exact"):
        add_release_arguments(added[verb])
    add_accuracy_arguments(added["accuracy"])
    for verb in ("exact", "accuracy"):
        add_internal_argument(added[verb])
    for verb in ("plan", "run", "exact", "accuracy"):
        _planning(added[verb])
    add_noise_arguments(added["run"])
    add_report_argument(added["run"])
    return added


def _planning(verb: argparse.ArgumentParser) -> None:
    add_planning_arguments(verb, DEFAULT_CONFIDENCE)
    verb.add_argument(
        "--sensitivity",
        choices=("published", "tight"),
        help="scale the noise to the originals' bound (published), or to the least the code files allow"
        " (docs/safetab-privacy.md)",
    )


def _places(options: argparse.Namespace) -> tuple[Path, Path]:
    """The configuration and the folder of codes: PARAMETERS is a folder with both, or the manifest of a release."""
    path = locate(options.parameters)
    return path, options.codes or path.parent


def _terms(options: argparse.Namespace) -> dict[str, Any]:
    """What a plan is told beside its configuration."""
    return {"accounting": options.sensitivity, "confidence": options.confidence, "margins": options.margins}


def _planned_p(options: argparse.Namespace) -> "tuple[ConfigP, CharacteristicIterations, Plan]":
    from yupana.products.safetab.persons.configuration import read_config
    from yupana.products.safetab.persons.plan import make_plan

    path, codes = _places(options)
    config, iterations = read_config(path), read_iterations(codes)
    settle(options, path, {**PLANNED, "confidence": DEFAULT_CONFIDENCE, "sensitivity": "published"})
    plan = make_plan(config, iterations, **_terms(options))
    return config, iterations, plan


def _planned_h(options: argparse.Namespace) -> "tuple[ConfigH, CharacteristicIterations, Plan]":
    from yupana.products.safetab.households.configuration import read_config
    from yupana.products.safetab.households.plan import make_plan

    path, codes = _places(options)
    config, iterations = read_config(path), read_iterations(codes)
    settle(options, path, {**PLANNED, "confidence": DEFAULT_CONFIDENCE, "sensitivity": "published"})
    plan = make_plan(config, iterations, **_terms(options))
    return config, iterations, plan


def _validate_p(options: argparse.Namespace) -> None:
    _validate(options, PERSONS)


def _validate_h(options: argparse.Namespace) -> None:
    _validate(options, HOUSEHOLDS)


def _validate(options: argparse.Namespace, product: "SafetabProduct[Any]") -> None:
    from yupana.cli.progress import stages
    from yupana.confidential.run import validate

    config = product.read(options.parameters, options.codes)
    with stages("validate", 1) as announce:
        found = validate(product, config, options.data, request_of(options, announce))
    print_findings(options, found.findings)
    _print_remarks(found.remarks)


def _plan_p(options: argparse.Namespace) -> None:
    from yupana.products.safetab.persons.plan import make_plan
    from yupana.products.safetab.persons.production import production_plan

    config, iterations, plan = _planned_p(options)
    more = None
    if options.targets is not None:
        from yupana.products.safetab.persons.targets import config_document, entries, needs, pass_of, with_budgets

        budgets = solve_targets(
            options,
            entries(config, iterations),
            lambda margins: needs(config, iterations, margins, options.sensitivity),
            options.confidence,
            config.settings.mechanism,
            pass_of,
        )
        config = with_budgets(config, budgets)
        plan = make_plan(config, iterations, **_terms(options))
        more = {"configuration": config_document(config)}
    print_plan(options, plan, lambda: production_plan(config.settings.runs, iterations), more)


def _plan_h(options: argparse.Namespace) -> None:
    from yupana.products.safetab.households.plan import make_plan
    from yupana.products.safetab.households.production import production_plan

    config, iterations, plan = _planned_h(options)
    more = None
    if options.targets is not None:
        from yupana.products.safetab.households.targets import config_document, entries, needs, pass_of, with_budgets

        budgets = solve_targets(
            options,
            entries(config, iterations),
            lambda margins: needs(config, iterations, margins, options.sensitivity),
            options.confidence,
            config.settings.mechanism,
            pass_of,
        )
        config = with_budgets(config, budgets)
        plan = make_plan(config, iterations, **_terms(options))
        more = {"configuration": config_document(config)}
    print_plan(options, plan, lambda: production_plan(config.settings.runs, iterations), more)


def _run_p(options: argparse.Namespace) -> None:
    from yupana.confidential.run import run

    _release_p(options, run)


def _exact_p(options: argparse.Namespace) -> None:
    from yupana.confidential.run import exact

    _release_p(options, exact)


def _run_h(options: argparse.Namespace) -> None:
    from yupana.confidential.run import run

    _release_h(options, run)


def _exact_h(options: argparse.Namespace) -> None:
    from yupana.confidential.run import exact

    _release_h(options, exact)


def _release_p(options: argparse.Namespace, make: Callable[..., dict[str, Any]]) -> None:
    config, iterations, plan = _planned_p(options)
    report, manifest = _made(options, PERSONS, Parameters(config, iterations), make)
    if report is not None:
        from yupana.products.safetab.persons.production import production_plan
        from yupana.report.release import write_release_report

        write_release_report(report, plan, production_plan(config.settings.runs, iterations), manifest, {})
    print_release(options, manifest)
    _print_remarks(manifest["parameters"]["remarks"])


def _release_h(options: argparse.Namespace, make: Callable[..., dict[str, Any]]) -> None:
    config, iterations, plan = _planned_h(options)
    report, manifest = _made(options, HOUSEHOLDS, Parameters(config, iterations), make)
    if report is not None:
        from yupana.products.safetab.households.production import production_plan
        from yupana.report.release import write_release_report

        write_release_report(report, plan, production_plan(config.settings.runs, iterations), manifest, {})
    print_release(options, manifest)
    _print_remarks(manifest["parameters"]["remarks"])


def _made(
    options: argparse.Namespace,
    product: "SafetabProduct[Any]",
    config: "Parameters[Any]",
    make: Callable[..., dict[str, Any]],
) -> "tuple[NewFile | None, dict[str, Any]]":
    """Where a report is wanted, and the manifest of the release that was made."""
    from yupana.cli.progress import stages

    report = report_of(options)
    with stages(product.key, _STAGES) as announce:
        return report, make(product, config, options.data, options.out, request_of(options, announce))


def _print_remarks(remarks: "Sequence[str]") -> None:
    for remark in remarks:
        print(f"remark: {remark}", file=sys.stderr)


def _accuracy_p(options: argparse.Namespace) -> None:
    config, iterations, _ = _planned_p(options)
    _accuracy(options, PERSONS, Parameters(config, iterations))


def _accuracy_h(options: argparse.Namespace) -> None:
    config, iterations, _ = _planned_h(options)
    _accuracy(options, HOUSEHOLDS, Parameters(config, iterations))


def _accuracy(options: argparse.Namespace, product: "SafetabProduct[Any]", config: "Parameters[Any]") -> None:
    from dataclasses import asdict

    from yupana.cli.progress import stages
    from yupana.confidential.accuracy import accuracy, write_accuracy

    with stages("accuracy", _STAGES) as announce:
        request = request_of(options, announce)
        observed = accuracy(product, config, options.data, request, trials=options.trials)
    if options.out is not None:
        write_accuracy(observed, options.out, request)
    rows = observed.rows
    say_confidential(options)
    if options.json:
        print_json([asdict(row) for row in rows])
        return
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
