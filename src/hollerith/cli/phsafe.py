"""`hollerith phsafe validate|plan|run|exact|accuracy`: the S-DHC."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hollerith.cli.arguments import Commands, budget, count, print_json, seed, share, size
from hollerith.errors import ConfigError, InputError
from hollerith.plan.plan import DEFAULT_DELTA, Plan
from hollerith.products.phsafe.config import Config, read_config
from hollerith.products.phsafe.plan import DEFAULT_CONFIDENCE, make_plan
from hollerith.products.phsafe.production import production_plan

if TYPE_CHECKING:
    from hollerith.privacy.entropy import Entropy
    from hollerith.products.run import Account

_STAGES = 5
_DIFFERENCE = ("measurement", "value", "here", "production")


def add(commands: Commands) -> None:
    """Add the command and its verbs."""
    parser = commands.add_parser("phsafe", help="the Supplemental Demographic and Housing Characteristics File")
    verbs = parser.add_subparsers(metavar="VERB", required=True)

    validate = _verb(verbs, "validate", "check the records; the report is confidential", _validate)
    _data(validate)
    _memory(validate)
    validate.add_argument("--json", action="store_true")

    plan = _verb(verbs, "plan", "what a run would measure, and what it costs; needs no data", _plan)
    plan.add_argument(
        "--delta", type=share, default=None, metavar="D", help="delta of the epsilon stated (default 1e-10)"
    )
    plan.add_argument("--diff", choices=("production",), help="list what differs from the 2020 run")
    plan.add_argument("--json", action="store_true")
    _planning(plan)

    run = _verb(verbs, "run", "make a release", _run)
    exact = _verb(verbs, "exact", "the same without noise, for synthetic data", _exact)
    for verb in (run, exact):
        _data(verb)
        verb.add_argument("out", type=Path, metavar="OUT", help="a folder that does not exist or is empty")
        verb.add_argument("--format", choices=("csv", "parquet"), default="csv")
        verb.add_argument("--overwrite", action="store_true", help="replace an earlier release in OUT")
        verb.add_argument("--log", type=Path, metavar="FILE", help="the confidential log (default: beside OUT)")
        verb.add_argument("--json", action="store_true", help="print the manifest")
        _memory(verb)
        _planning(verb)
    run.add_argument(
        "--seed", type=seed, metavar="S", help="reproducible noise, for synthetic data only; NOT FOR RELEASE"
    )
    run.add_argument(
        "--ledger", type=Path, metavar="FILE", help="add this run's loss to what was spent on the same data"
    )
    run.add_argument("--dataset", metavar="NAME", help="your name for the data in the ledger")
    run.add_argument("--limit", type=budget, metavar="L", help="largest loss the ledger may reach for the data")

    accuracy = _verb(verbs, "accuracy", "experimental against expected error, on synthetic data", _accuracy)
    _data(accuracy)
    accuracy.add_argument("out", type=Path, nargs="?", metavar="OUT", help="write accuracy.csv into this folder, too")
    accuracy.add_argument("--trials", type=count, default=1, metavar="N", help="how often noise is drawn (default 1)")
    accuracy.add_argument("--seed", type=seed, metavar="S")
    accuracy.add_argument("--overwrite", action="store_true", help="replace an earlier output in OUT")
    accuracy.add_argument("--json", action="store_true")
    _planning(accuracy)


def _verb(
    verbs: Commands, name: str, text: str, command: Callable[[argparse.Namespace], None]
) -> argparse.ArgumentParser:
    verb: argparse.ArgumentParser = verbs.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    verb.add_argument("config", type=Path, metavar="CONFIG", help="the Bureau's config.json")
    verb.set_defaults(command=command)
    return verb


def _data(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "data", type=Path, metavar="DATA", help="a folder with persons, units and geo (CSV, Parquet or CEF)"
    )


def _memory(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--memory", type=size, metavar="4GB", help="to get along with (default: 3/4 of the machine's)")


def _planning(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--confidence", type=share, default=DEFAULT_CONFIDENCE, metavar="C", help="of the margins (0.9)")
    verb.add_argument(
        "--sensitivity",
        choices=("published", "tight"),
        default="published",
        help="scale the noise to the paper's 2 tau + 2, or to the tight bound (docs/phsafe-privacy.md)",
    )


def _configured(options: argparse.Namespace) -> tuple[Config, Plan]:
    config = read_config(options.config)
    return config, make_plan(config, accounting=options.sensitivity, confidence=options.confidence)


def _validate(options: argparse.Namespace) -> None:
    from dataclasses import asdict

    from hollerith.cli.progress import stages
    from hollerith.products.phsafe.run import checked_census
    from hollerith.records.findings import failing

    config = read_config(options.config)
    with stages("validate", 1) as announce:
        announce("reading and checking the records")
        with checked_census(config, options.data, options.memory) as census:
            findings = census.findings
    broken = failing(findings)
    if options.json:
        print_json({"valid": not broken, "confidential": True, "findings": [asdict(finding) for finding in findings]})
    elif findings:
        print("CONFIDENTIAL: this report is outside the privacy guarantee and must not be published.")
        for finding in findings:
            print(finding)
    if broken:
        raise InputError(f"{options.data} breaks {len(broken)} rule{'s' * (len(broken) > 1)}; see the report")
    if not options.json:
        print(f"{options.data}: valid")


def _plan(options: argparse.Namespace) -> None:
    config, plan = _configured(options)
    delta = float(options.delta) if options.delta is not None else DEFAULT_DELTA
    differences = []
    if options.diff:
        differences = plan.differences(production_plan(puerto_rico=config.is_puerto_rico))
    if options.json:
        answer = plan.as_json(delta)
        if options.diff:
            rows = [(d.measurement, d.value, d.here, d.there) for d in differences]
            answer["differences"] = [dict(zip(_DIFFERENCE, row, strict=True)) for row in rows]
        print_json(answer)
        return
    from hollerith.cli.plan_text import plan_text

    print(plan_text(plan, delta))
    if options.diff:
        print()
        if not differences:
            print("No difference from the production plan of 2020.")
        for d in differences:
            here, there = d.here or "not measured", d.there or "not measured"
            print(f"{d.measurement:24} {d.value:12} here {here:>14}   production {there:>14}")


def _run(options: argparse.Namespace) -> None:
    from hollerith.privacy.entropy import SeededEntropy, SystemEntropy
    from hollerith.products.run import Account

    config, plan = _configured(options)
    ledger = (options.ledger, options.dataset)
    if (None in ledger and ledger != (None, None)) or (options.limit is not None and options.ledger is None):
        raise ConfigError("a ledger needs both --ledger FILE and --dataset NAME, and --limit needs a ledger")
    account = Account(options.ledger, options.dataset, options.limit) if options.ledger else None
    entropy = SystemEntropy() if options.seed is None else SeededEntropy(options.seed)
    _release(options, config, plan, entropy, account)


def _exact(options: argparse.Namespace) -> None:
    from hollerith.privacy.entropy import SystemEntropy
    from hollerith.products.run import without_noise

    config, plan = _configured(options)
    _release(options, config, without_noise(plan), SystemEntropy(), None)


def _release(
    options: argparse.Namespace, config: Config, plan: Plan, entropy: "Entropy", account: "Account | None"
) -> None:
    from hollerith.cli.progress import stages
    from hollerith.products.phsafe.run import run
    from hollerith.products.run import Request

    request = Request(
        options.data, options.out, options.format, options.overwrite, options.log, account, options.memory
    )
    with stages("phsafe", _STAGES) as announce:
        manifest = run(config, plan, request, entropy, announce)
    if options.json:
        print_json(manifest)
        return
    print(f"{options.out}: {len(manifest['tables'])} tables and manifest.json; {manifest['status']}")


def _accuracy(options: argparse.Namespace) -> None:
    from dataclasses import asdict

    from hollerith.cli.progress import stages
    from hollerith.privacy.entropy import SeededEntropy, SystemEntropy
    from hollerith.products.phsafe.accuracy import trials, write_accuracy
    from hollerith.products.phsafe.errors import summarize

    config, plan = _configured(options)
    entropy = SystemEntropy() if options.seed is None else SeededEntropy(options.seed)
    with stages("accuracy", _STAGES - 1) as announce:
        errors = trials(config, plan, options.data, options.trials, entropy, announce)
    rows = summarize(errors, float(options.confidence))
    if options.out is not None:
        write_accuracy(rows, options.out, overwrite=options.overwrite)
    if options.json:
        print_json([asdict(row) for row in rows])
        return
    print(
        f"{'table':11}{'level':11}{'cell':>5}{'n':>8}{'expected':>10}{'noise':>10}{'with truncation':>17}{'bias':>10}"
    )
    for row in rows:
        print(
            f"{row.table:11}{row.level:11}{row.cell:5}{row.count:8}{row.expected_moe:10.1f}{row.experimental_moe:10.1f}"
            f"{row.experimental_moe_with_truncation:17.1f}{row.bias_from_truncation:10.2f}"
        )
