"""`yupana topdown plan|run|accuracy|exact`: the TopDown Algorithm."""

import argparse
import sys
from collections.abc import Callable
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yupana.cli.arguments import Commands, print_json
from yupana.cli.product import (
    KINDS,
    PLANNED,
    add_accuracy_arguments,
    add_internal_argument,
    add_memory,
    add_noise_arguments,
    add_plan_arguments,
    add_planning_arguments,
    add_release_arguments,
    add_verb,
    delta_of,
    print_plan,
    print_release,
    request_of,
    settle,
    solve_targets,
    spine_folder,
)
from yupana.errors import ConfigError

if TYPE_CHECKING:
    from yupana.plan.plan import Plan
    from yupana.topdown.configuration import Configuration
    from yupana.topdown.plan import Semantics

_CONFIDENCE = Fraction(9, 10)
"""That of `yupana.topdown.plan`, which takes a second to import."""

_DATA = "histogram.csv, or persons, units and geo; geography.txt; group_quarters.csv"


def add(commands: Commands) -> None:
    """Add the command and its verbs."""
    parser = commands.add_parser("topdown", help="the TopDown Algorithm: consistent counts for a hierarchy of geounits")
    verbs = parser.add_subparsers(metavar="VERB", required=True)

    plan = _verb(verbs, "plan", "what a run would measure, and what it costs; needs no data", _plan)
    add_plan_arguments(plan)
    add_planning_arguments(plan, _CONFIDENCE)

    run = _verb(verbs, "run", "counts with noise, consistent from the root to the blocks", _run)
    run.add_argument("data", type=Path, metavar="DATA", help=_DATA)
    add_release_arguments(run)
    add_noise_arguments(run)
    add_planning_arguments(run, _CONFIDENCE)
    _estimating(run)
    run.add_argument("--resume", action="store_true", help="go on with a run that was interrupted")
    run.add_argument("--noisy-measurements", type=Path, metavar="DIR", help="draw and write all measurements, too")

    accuracy = _verb(verbs, "accuracy", "released against true counts: synthetic data, or --internal", _accuracy)
    accuracy.add_argument("data", type=Path, metavar="DATA", help=_DATA)
    add_accuracy_arguments(accuracy)
    add_memory(accuracy)
    _estimating(accuracy)
    add_internal_argument(accuracy)

    exact = _verb(verbs, "exact", "the counts of all areas without noise: synthetic data, or --internal", _exact)
    exact.add_argument("data", type=Path, metavar="DATA", help=_DATA)
    add_release_arguments(exact)
    add_planning_arguments(exact, _CONFIDENCE)
    _estimating(exact)
    add_internal_argument(exact)


def _verb(
    verbs: Commands, name: str, text: str, command: Callable[[argparse.Namespace], None]
) -> argparse.ArgumentParser:
    verb = add_verb(verbs, name, text, command)
    # A name or a file; which names there are is told by docs/topdown.md and by the error on a file that is not there.
    text = "a file in TOML or JSON, a release's manifest, or a built-in name: pl94-2020-us"
    verb.add_argument("config", metavar="CONFIG", help=text)
    return verb


def _estimating(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--spine",
        metavar="KIND|FOLDER",
        help="instead of CONFIG's: conventional, aian, optimized, or a folder that spine build made",
    )
    verb.add_argument("--estimator", choices=("topdown", "full-information"), help="(topdown)")


def _configured(options: argparse.Namespace) -> "Configuration":
    from yupana.topdown.reading.configuration import path_of, read_configuration

    configuration = read_configuration(options.config)
    if getattr(options, "spine", None) is not None:
        configuration = _on_spine(configuration, options.spine)
    settle(options, path_of(options.config), {**PLANNED, "confidence": _CONFIDENCE, "estimator": "topdown"})
    return configuration


def _planned(options: argparse.Namespace, configuration: "Configuration") -> "Plan":
    from yupana.topdown.plan import make_plan

    return make_plan(configuration, confidence=options.confidence, margins=options.margins)


def _on_spine(configuration: "Configuration", spine: str) -> "Configuration":
    from yupana.geography.disk import manifest_of, settings_of
    from yupana.topdown.given import on_given

    if (folder := spine_folder(spine)) is None:
        return configuration.on_spine(KINDS[spine])
    if not folder.is_dir():
        raise ConfigError(f"--spine {spine}: neither {', '.join(KINDS)} nor a folder")
    return on_given(configuration, settings_of(manifest_of(folder), folder), folder)


def _plan(options: argparse.Namespace) -> None:
    from yupana.topdown.plan import make_plan, semantics_of
    from yupana.topdown.production import production_configuration

    configuration = _configured(options)
    solved: dict[str, Any] = {}
    if options.targets is not None:
        configuration = _solved(options, configuration)
        from yupana.topdown.reading.document import configuration_document

        solved = {"configuration": configuration_document(configuration)}
    plan, semantics = _planned(options, configuration), semantics_of(configuration)
    more = {
        "invariants": {level: [query.name for query in queries] for level, queries in configuration.invariants.items()},
        "semantics": semantics.as_json(configuration.mechanism, delta_of(options)),
        **solved,
    }

    def production() -> "Plan":
        return make_plan(production_configuration(configuration))

    print_plan(options, plan, production, more, _semantics_text(configuration, semantics, delta_of(options)))


def _run(options: argparse.Namespace) -> None:
    from yupana.cli.progress import geolevels
    from yupana.confidential.run import run
    from yupana.products.topdown.product import TOPDOWN

    configuration = _configured(options)
    try:
        with geolevels("topdown run") as (announce, progress):
            request = request_of(options, announce, progress)
            manifest = run(TOPDOWN, configuration, options.data, options.out, request)
    except KeyboardInterrupt:
        print(f"topdown run: finished work is kept beside {options.out}; go on with --resume", file=sys.stderr)
        raise
    print_release(options, manifest)


def _exact(options: argparse.Namespace) -> None:
    from yupana.cli.progress import stages
    from yupana.confidential.run import exact
    from yupana.products.topdown.product import TOPDOWN

    configuration = _configured(options)
    with stages("topdown exact", 4) as announce:
        manifest = exact(TOPDOWN, configuration, options.data, options.out, request_of(options, announce))
    print_release(options, manifest)


def _accuracy(options: argparse.Namespace) -> None:
    from yupana.cli.progress import geolevels
    from yupana.confidential.accuracy import accuracy, write_accuracy
    from yupana.products.topdown.product import TOPDOWN

    configuration = _configured(options)
    with geolevels("topdown accuracy") as (announce, progress):
        request = request_of(options, announce, progress)
        observed = accuracy(TOPDOWN, configuration, options.data, request, trials=options.trials)
    if options.out is not None:
        write_accuracy(observed, options.out, request)
    rows = observed.rows
    if options.json:
        print_json({"product": configuration.product, "trials": options.trials, "rows": [asdict(row) for row in rows]})
        return
    print("CONFIDENTIAL: these errors tell the truth about the records.")
    print(f"{'areas':22} {'query':24} {'population':>16} {'number':>8} {'MAE':>10} {'RMSE':>10} {'bias':>10}")
    for row in rows:
        print(
            f"{row.geolevel:22} {row.query:24} {row.population:>16} {row.areas:8,} {row.mae:10.3f} {row.rmse:10.3f} "
            f"{row.bias:+10.3f}"
        )


def _solved(options: argparse.Namespace, configuration: "Configuration") -> "Configuration":
    from yupana.privacy.exact import INFINITE
    from yupana.topdown.targets import entries, needs, with_budgets

    if configuration.budget == INFINITE:
        raise ConfigError("--targets: the configuration's budget is infinite; there is nothing to solve")
    budgets = solve_targets(options, entries(configuration), needs, options.confidence, configuration.mechanism)
    return with_budgets(configuration, {name: Fraction(budget) for name, budget in budgets.items()})


def _semantics_text(configuration: "Configuration", semantics: "Semantics", delta: float) -> list[str]:
    described = semantics.as_json(configuration.mechanism, delta)
    kept = ", ".join(configuration.invariants)
    losses = [
        *((f"in its {name} alone", loss) for name, loss in described["attributes"].items()),
        *(
            (name.replace("Block in", "in its block, in the same"), loss)
            for name, loss in described["geolevels"].items()
        ),
    ]
    return [
        *(["", f"kept exactly, outside the guarantee: the totals of {kept}"] if kept else []),
        "",
        f"epsilon where one {configuration.privacy_unit} changes less:",
        *(f"{words:52} {_epsilon(loss):>12}" for words, loss in losses),
    ]


def _epsilon(described: dict[str, Any]) -> str:
    # Under pure DP the exact epsilon is a text, with its float beside it.
    value = described.get("epsilon_float", described["epsilon"])
    return "infinite" if value is None else f"{value:.6f}"
