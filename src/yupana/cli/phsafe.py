"""`yupana phsafe validate|plan|run|exact|accuracy|estimate`: the S-DHC."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from yupana.cli.arguments import Commands, confidence_level, print_json
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
from yupana.products.phsafe.configuration import Config, locate, read_config
from yupana.products.phsafe.plan import DEFAULT_CONFIDENCE, make_plan
from yupana.products.phsafe.product import PHSAFE
from yupana.products.phsafe.production import production_plan

_STAGES = 5


def add(commands: Commands) -> None:
    """Add the command and its verbs."""
    parser = commands.add_parser("phsafe", help="the Supplemental Demographic and Housing Characteristics File")
    verbs = parser.add_subparsers(metavar="VERB", required=True)

    validate = _verb(verbs, "validate", "check the records; the report is confidential", _validate)
    _data(validate)
    add_memory(validate)
    validate.add_argument("--json", action="store_true")
    validate.add_argument("--internal", action="store_true", help="tell, too, what each tau would leave out")

    plan = _verb(verbs, "plan", "what a run would measure, and what it costs; needs no data", _plan)
    add_plan_arguments(plan)
    _planning(plan)

    run = _verb(verbs, "run", "make a release", _run)
    exact = _verb(verbs, "exact", "the same without noise: synthetic data, or --internal", _exact)
    for verb in (run, exact):
        _data(verb)
        add_release_arguments(verb)
        _planning(verb)
    add_internal_argument(exact)
    add_noise_arguments(run)
    add_report_argument(run)

    accuracy = _verb(verbs, "accuracy", "experimental against expected error: synthetic data, or --internal", _accuracy)
    _data(accuracy)
    add_accuracy_arguments(accuracy)
    add_internal_argument(accuracy)
    _planning(accuracy)

    estimate = add_verb(verbs, "estimate", "from noisy measurements to published tables with intervals", _estimate)
    estimate.add_argument("release", type=Path, metavar="RELEASE", help="a release of PHSafe")
    estimate.add_argument("out", type=Path, metavar="OUT", help="a folder that does not exist or is empty")
    estimate.add_argument(
        "--puerto-rico", type=Path, metavar="RELEASE", help="the release of Puerto Rico, for tables that show both"
    )
    estimate.add_argument(
        "--confidence",
        type=confidence_level,
        default=DEFAULT_CONFIDENCE,
        metavar="C",
        help="of the credible intervals (0.9)",
    )
    estimate.add_argument(
        "--method", choices=("exact", "original"), default="exact", help="original: round as the Census Bureau did"
    )
    estimate.add_argument(
        "--combine",
        choices=("independent", "joint"),
        default="independent",
        help="joint: use all measurements of the same people together (docs/phsafe-estimates.md)",
    )
    estimate.add_argument(
        "--publish", action="store_true", help="refuse a release that is NOT FOR RELEASE; else OUT is marked so, too"
    )
    estimate.add_argument("--format", choices=("csv", "parquet"), default="csv")
    estimate.add_argument("--overwrite", action="store_true", help="replace earlier estimates in OUT")
    estimate.add_argument("--json", action="store_true", help="print the manifest")


def _verb(
    verbs: Commands, name: str, text: str, command: Callable[[argparse.Namespace], None]
) -> argparse.ArgumentParser:
    verb = add_verb(verbs, name, text, command)
    text = "config.json or .toml, a release's manifest, or a built-in name: s-dhc-2020-us"
    verb.add_argument("config", type=Path, metavar="CONFIG", help=text)
    return verb


def _data(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "data", type=Path, metavar="DATA", help="a folder with persons, units and geo (CSV, Parquet or CEF)"
    )


def _planning(verb: argparse.ArgumentParser) -> None:
    add_planning_arguments(verb, DEFAULT_CONFIDENCE)
    verb.add_argument(
        "--sensitivity",
        choices=("published", "tight"),
        help="scale the noise to the paper's 2 tau + 2 (published), or to the tight bound (docs/phsafe-privacy.md)",
    )


def _configured(options: argparse.Namespace) -> tuple[Config, Plan]:
    path = locate(options.config)
    config = read_config(path)
    settle(options, path, {**PLANNED, "confidence": DEFAULT_CONFIDENCE, "sensitivity": "published"})
    return config, _planned(options, config)


def _planned(options: argparse.Namespace, config: Config) -> Plan:
    return make_plan(config, accounting=options.sensitivity, confidence=options.confidence, margins=options.margins)


def _validate(options: argparse.Namespace) -> None:
    from dataclasses import asdict

    from yupana.cli.progress import stages
    from yupana.confidential.run import validate

    config = read_config(locate(options.config))
    with stages("validate", 1 + options.internal) as announce:
        found = validate(PHSAFE, config, options.data, request_of(options, announce))
    rows = found.truncation
    say_confidential(options)
    print_findings(options, found.findings, {"truncation": [asdict(row) for row in rows]} if rows else None)
    if rows and not options.json:
        print(f"{'table':11}{'tau':>6}{'persons':>15}{'left out':>13}{'share':>9}{'households':>13}")
        for row in rows:
            print(
                f"{row.table:11}{row.tau:6}{row.persons:15,}{row.left_out:13,}"
                f"{row.left_out / max(1, row.persons):9.3%}{row.units:13,}{'  configured' * row.configured}"
            )


def _plan(options: argparse.Namespace) -> None:
    config, plan = _configured(options)
    more = None
    if options.targets is not None:
        from yupana.products.phsafe.targets import config_document, entries, needs, with_budgets

        budgets = solve_targets(
            options,
            entries(config),
            lambda margins: needs(config, margins, options.sensitivity),
            options.confidence,
            config.mechanism,
        )
        config = with_budgets(config, budgets)
        plan = _planned(options, config)
        more = {"configuration": config_document(config)}
    print_plan(options, plan, lambda: production_plan(puerto_rico=config.is_puerto_rico), more)


def _run(options: argparse.Namespace) -> None:
    from yupana.confidential.run import run

    _release(options, *_configured(options), run)


def _exact(options: argparse.Namespace) -> None:
    from yupana.confidential.run import exact

    config, plan = _configured(options)
    _release(options, config, plan.without_noise(), exact)


def _release(options: argparse.Namespace, config: Config, plan: Plan, make: Callable[..., dict[str, Any]]) -> None:
    from yupana.cli.progress import stages

    report = report_of(options)
    with stages("phsafe", _STAGES) as announce:
        manifest = make(PHSAFE, config, options.data, options.out, request_of(options, announce))
    if report is not None:
        from yupana.release.check import check_files
        from yupana.report.release import write_release_report

        _, tables, _ = check_files(options.out)
        production = production_plan(puerto_rico=config.is_puerto_rico)
        write_release_report(report, plan, production, manifest, tables)
    print_release(options, manifest)
    # The list of states is public (`TAKEN_AS_PUBLIC`).
    absent = sorted(set(config.states) - set(manifest["parameters"]["states"]))
    if absent and not options.json:
        print(f"no housing unit of the state_filter's {', '.join(absent)}: the tables leave such states out")


def _accuracy(options: argparse.Namespace) -> None:
    from dataclasses import asdict

    from yupana.cli.progress import stages
    from yupana.confidential.accuracy import accuracy, write_accuracy

    config, _ = _configured(options)
    with stages("accuracy", _STAGES - 1) as announce:
        request = request_of(options, announce)
        observed = accuracy(PHSAFE, config, options.data, request, trials=options.trials)
    if options.out is not None:
        write_accuracy(observed, options.out, request)
    rows = observed.rows
    say_confidential(options)
    if options.json:
        print_json([asdict(row) for row in rows])
        return
    heads = f"{'expected':>10}{'noise':>10}{'within':>9}{'with truncation':>17}{'bias':>10}"
    print(f"{'table':11}{'level':11}{'iteration':9}{'cell':>5}{'n':>8}{heads}")
    for row in rows:
        print(
            f"{row.table:11}{row.level:11}{row.iteration:9}{row.cell:5}{row.count:8}{row.expected_moe:10.1f}"
            f"{row.experimental_moe:10.1f}{row.coverage:9.2%}{row.experimental_moe_with_truncation:17.1f}"
            f"{row.bias_from_truncation:10.2f}"
        )


def _estimate(options: argparse.Namespace) -> None:
    from yupana.cli.progress import stages
    from yupana.report.final_tables import PAGE, EstimateRequest, publish_estimates

    request = EstimateRequest(
        release=options.release,
        out=options.out,
        puerto_rico=options.puerto_rico,
        confidence=options.confidence,
        method=options.method,
        combination=options.combine,
        fmt=options.format,
        overwrite=options.overwrite,
        publish=options.publish,
    )
    with stages("estimate", 3 + (options.puerto_rico is not None)) as announce:
        manifest = publish_estimates(request, announce)
    print_release(options, manifest)
    if not options.json:
        print(f"browse the tables: {options.out / PAGE}")
