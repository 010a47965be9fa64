"""What the commands of all products share: their verbs' arguments, and how answers are printed."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

from yupana.cli.arguments import Commands, confidence_level, count, limits, print_json, seed, share, size
from yupana.errors import ConfigError, InputError
from yupana.plan.plan import DEFAULT_DELTA, Plan
from yupana.plan.unit import UnitName

if TYPE_CHECKING:
    from fractions import Fraction

    from yupana.confidential.records.findings import Finding
    from yupana.confidential.request import Account, RunRequest
    from yupana.files.new_file import NewFile
    from yupana.geography.settings import Kind
    from yupana.plan.measurement import Mechanism
    from yupana.privacy.entropy import Entropy
    from yupana.privacy.exact import Budget
    from yupana.products.targets import Needs
    from yupana.progress import Announce, Progress

_DIFFERENCE = ("measurement", "value", "here", "production")


def add_verb(
    verbs: Commands, name: str, text: str, command: Callable[[argparse.Namespace], None]
) -> argparse.ArgumentParser:
    """Add a verb of a product."""
    verb: argparse.ArgumentParser = verbs.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    verb.set_defaults(command=command)
    return verb


def add_memory(verb: argparse.ArgumentParser) -> None:
    """Let a verb be told how much memory to use."""
    text = "to get along with (default: 3/4 of the machine's, at most 12GB)"
    verb.add_argument("--memory", type=size, metavar="4GB", help=text)


def add_plan_arguments(verb: argparse.ArgumentParser) -> None:
    """Arguments of `plan` alone."""
    verb.add_argument(
        "--delta", type=share, default=None, metavar="D", help="delta of the epsilon stated (default 1e-10)"
    )
    verb.add_argument(
        "--targets", type=Path, metavar="FILE", help="solve for budgets: margins of error, or a total (docs/targets.md)"
    )
    verb.add_argument("--diff", choices=("production",), help="list what differs from the 2020 run")
    verb.add_argument("--json", action="store_true")


def add_planning_arguments(verb: argparse.ArgumentParser, confidence: "Fraction") -> None:
    """What a plan says of margins of error."""
    text = f"of the margins ({float(confidence):g})"
    verb.add_argument("--confidence", type=confidence_level, metavar="C", help=text)
    text = "the smallest whole number with the confidence (exact, default), or the Bureau's z sigma (docs/margins.md)"
    verb.add_argument("--margins", choices=_CHOICES["margins"], help=text)


def add_release_arguments(verb: argparse.ArgumentParser) -> None:
    """Arguments of `run` and `exact`."""
    verb.add_argument("out", type=Path, metavar="OUT", help="a folder that does not exist or is empty")
    verb.add_argument("--format", choices=("csv", "parquet"), help="(csv)")
    verb.add_argument("--overwrite", action="store_true", help="replace an earlier release in OUT")
    verb.add_argument("--log", type=Path, metavar="FILE", help="the confidential log (default: beside OUT)")
    verb.add_argument("--json", action="store_true", help="print the manifest")
    add_memory(verb)


def add_internal_argument(verb: argparse.ArgumentParser) -> None:
    """Let a verb tell the truth about records that may be real."""
    text = "on real records, too; what it tells is CONFIDENTIAL, and nobody but you can read the files"
    verb.add_argument("--internal", action="store_true", help=text)


def say_confidential(options: argparse.Namespace) -> None:
    """Say before anything else that what follows tells the truth; beside JSON, on the other stream."""
    if options.internal:
        text = "CONFIDENTIAL: this tells the truth about the records and must not be published."
        print(text, file=sys.stderr if options.json else sys.stdout)


def add_noise_arguments(verb: argparse.ArgumentParser) -> None:
    """Arguments of `run` alone."""
    verb.add_argument(
        "--seed", type=seed, metavar="S", help="reproducible noise, for synthetic data only; NOT FOR RELEASE"
    )
    verb.add_argument(
        "--ledger", type=Path, metavar="FILE", help="add this run's loss to what was spent on the same data"
    )
    verb.add_argument("--dataset", metavar="NAME", help="your name for the data in the ledger")
    text = "whose loss is added up: the records' own (default), one person's, or a household's (docs/person-loss.md)"
    verb.add_argument("--unit", choices=get_args(UnitName), help=text)
    verb.add_argument("--household-cap", type=count, metavar="K", help="with --unit household: the most persons in one")
    text = "largest loss the ledger may reach for the data: L of the plan's own, or KIND=L,... as unbounded=3,bounded=6"
    verb.add_argument("--limit", type=limits, metavar="L", help=text)


def add_report_argument(verb: argparse.ArgumentParser) -> None:
    """Let `run` write a page on what it released."""
    text = "an HTML page on the release: its loss, margins and tables; no truth"
    verb.add_argument("--report", type=Path, metavar="FILE", help=text)


def add_accuracy_arguments(verb: argparse.ArgumentParser) -> None:
    """Arguments of `accuracy` alone."""
    verb.add_argument("out", type=Path, nargs="?", metavar="OUT", help="write accuracy.csv into this folder, too")
    verb.add_argument("--trials", type=count, default=1, metavar="N", help="how often noise is drawn (default 1)")
    verb.add_argument("--seed", type=seed, metavar="S", help="reproducible noise")
    verb.add_argument("--overwrite", action="store_true", help="replace an earlier output in OUT")
    verb.add_argument("--json", action="store_true")


def request_of(options: argparse.Namespace, announce: "Announce", progress: "Progress | None" = None) -> "RunRequest":
    """What a verb that sees records was asked to do.

    Raises
    ------
    ConfigError
        If the arguments of the ledger do not go together.
    BudgetError
        If its unit has no such limit, or lacks a cap.
    """
    from yupana.confidential.request import RunRequest
    from yupana.progress import silent

    called = {"accounting": "sensitivity", "fmt": "format"}
    names = {field.name: called.get(field.name, field.name) for field in fields(RunRequest)}
    asked: dict[str, Any] = {name: getattr(options, told) for name, told in names.items() if hasattr(options, told)}
    if "spine" in asked:
        asked["spine"] = spine_folder(asked["spine"])
    return RunRequest(
        account=_account_of(options),
        entropy=entropy_of(options),
        announce=announce,
        progress=progress or silent,
        **asked,
    )


KINDS: "Final[dict[str, Kind]]" = {"conventional": "conventional", "aian": "aian", "optimized": "optimized"}
"""What ``--spine`` may name, beside a folder."""


def spine_folder(spine: str | None) -> Path | None:
    """The folder that ``--spine`` names; None where it names a kind, or is not given."""
    return None if spine is None or spine in KINDS else Path(spine)


def _account_of(options: argparse.Namespace) -> "Account | None":
    from yupana.confidential.request import Account
    from yupana.plan.unit import Unit

    file, dataset, limit = (getattr(options, name, None) for name in ("ledger", "dataset", "limit"))
    unit, cap = (getattr(options, name, None) for name in ("unit", "household_cap"))
    if file is None and dataset is None and (limit, unit, cap) == (None, None, None):
        return None
    if file is None or dataset is None:
        raise ConfigError(
            "a ledger needs both --ledger FILE and --dataset NAME, "
            "and --limit, --unit and --household-cap need a ledger"
        )
    whose = Unit(unit or "record", cap)
    whose.check_columns(limit or {})
    return Account(file, dataset, limit or {}, whose)


def settle(options: argparse.Namespace, config: Path, defaults: "Mapping[str, str | Fraction]") -> None:
    """Give options that were not given the values of the release that CONFIG is the manifest of, or else defaults.

    How that release was made is kept as ``options.repeats``, None where CONFIG is no manifest.

    Raises
    ------
    ConfigError
        If the manifest does not tell an option, or tells one that there is not.
    """
    from yupana.release.recipe import read_recipe

    options.repeats = recipe = read_recipe(config)
    for name, default in defaults.items():
        if getattr(options, name, default) is not None:
            continue
        value = default
        if recipe is not None:
            value = recipe.options.get(name, "")
            try:
                value = share(value) if name == "confidence" else value
            except argparse.ArgumentTypeError as error:
                raise ConfigError(f"config {config}: options.confidence: {error}") from None
            if name in _CHOICES and value not in _CHOICES[name]:
                raise ConfigError(f"config {config}: options.{name}: must be {' or '.join(map(repr, _CHOICES[name]))}")
        setattr(options, name, value)


PLANNED: Final = {"margins": "exact", "format": "csv"}
"""What every product's options are if neither they nor a manifest say otherwise."""

_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "format": ("csv", "parquet"),
    "margins": ("exact", "bureau"),
    "sensitivity": ("published", "tight"),
    "estimator": ("topdown", "full-information"),
}


def report_of(options: argparse.Namespace) -> "NewFile | None":
    """Where `run` is to write a report, checked before the work; None where none was asked for."""
    path = getattr(options, "report", None)
    if path is None:
        return None
    from yupana.report.place import claim_page

    return claim_page(path, (options.out, options.data))


def entropy_of(options: argparse.Namespace) -> "Entropy":
    """The operating system's randomness, or that of the seed given."""
    from yupana.privacy.entropy import SeededEntropy, SystemEntropy

    seeded = getattr(options, "seed", None)
    return SystemEntropy() if seeded is None else SeededEntropy(seeded)


def print_release(options: argparse.Namespace, manifest: dict[str, Any]) -> None:
    """Say what has been released."""
    if options.json:
        print_json(manifest)
    else:
        print(f"{options.out}: {len(manifest['tables'])} tables and manifest.json; {manifest['status']}")


def print_plan(
    options: argparse.Namespace,
    plan: Plan,
    production: Callable[[], Plan],
    more: Mapping[str, Any] | None = None,
    more_text: Sequence[str] = (),
) -> None:
    """Print a plan, and what differs from the 2020 run if that was asked; with what else a product has to say."""
    delta = delta_of(options)
    differences = plan.differences(production()) if options.diff else []
    if options.json:
        answer = plan.as_json(delta) | dict(more or {})
        if options.diff:
            rows = [(d.measurement, d.value, d.here, d.there) for d in differences]
            answer["differences"] = [dict(zip(_DIFFERENCE, row, strict=True)) for row in rows]
        print_json(answer)
        return
    from yupana.cli.plan_text import plan_text

    print("\n".join([plan_text(plan, delta), *more_text]))
    if options.diff:
        print()
        if not differences:
            print("No difference from the production plan of 2020.")
        width = max([24, *(len(d.measurement) for d in differences)])
        for d in differences:
            here, there = d.here or "not measured", d.there or "not measured"
            print(f"{d.measurement:{width}} {d.value:12} here {here:>14}   production {there:>14}")


def solve_targets(
    options: argparse.Namespace,
    budgets: "Mapping[str, Budget]",
    needs: "Needs",
    confidence: "Fraction",
    mechanism: "Mechanism",
    pass_of: Callable[[str], str] = lambda _: "",
) -> "dict[str, Budget]":
    """The budgets that the file of ``--targets`` asks for.

    Raises
    ------
    ConfigError
        If the file asks for something impossible.
    """
    from yupana.products.targets import answer, read_question

    question = read_question(options.targets, budgets)
    return answer(question, budgets, needs, confidence, mechanism, pass_of, options.margins)


def delta_of(options: argparse.Namespace) -> float:
    """The delta that `plan` was asked for."""
    return float(options.delta) if options.delta is not None else DEFAULT_DELTA


def print_findings(
    options: argparse.Namespace, findings: Sequence["Finding"], more: Mapping[str, Any] | None = None
) -> None:
    """Print what validation found; ``more`` is told in JSON only.

    Raises
    ------
    InputError
        If a rule is broken that no policy covers.
    """
    from yupana.confidential.records.findings import failing

    broken = failing(findings)
    if options.json:
        told = [asdict(finding) for finding in findings]
        print_json({"confidential": True, "valid": not broken, "findings": told, **(more or {})})
    elif findings:
        print("CONFIDENTIAL: this report is outside the privacy guarantee and must not be published.")
        for finding in findings:
            print(finding)
    if broken:
        raise InputError(f"{options.data} breaks {len(broken)} rule{'s' * (len(broken) > 1)}; see the report")
    if not options.json:
        print(f"{options.data}: valid")
