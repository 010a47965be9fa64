"""`yupana PRODUCT plan|validate|run|exact|accuracy`: the commands of all products, from one list of verbs."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

from yupana.cli.arguments import Commands, confidence_level, count, limits, print_json, seed, setting, share, size
from yupana.errors import ConfigError, InputError
from yupana.plan.plan import DEFAULT_DELTA, Plan
from yupana.plan.unit import UnitName
from yupana.products import PRODUCTS, Listing

if TYPE_CHECKING:
    from yupana.confidential.records.findings import Finding
    from yupana.confidential.request import Account, RunRequest
    from yupana.files.column_map import ColumnMap
    from yupana.files.new_file import NewFile
    from yupana.geography.settings import Kind
    from yupana.plan.measurement import Accounting
    from yupana.privacy.entropy import Entropy
    from yupana.products.product import Product
    from yupana.progress import Announce, Progress
    from yupana.release.recipe import Recipe
    from yupana.topdown.configuration import Configuration

_DIFFERENCE = ("measurement", "value", "here", "production")


@dataclass(frozen=True, slots=True)
class Verb:
    """What can be asked of products.

    Attributes
    ----------
    name, about : str
    add : callable
        Adds its arguments, but for the configuration.
    do : callable
        Does it, for the product of a key.
    needs : str
        What a product must take to have it (`Listing.takes`); empty where all have it.
    """

    name: str
    about: str
    add: Callable[[argparse.ArgumentParser, Listing], None]
    do: Callable[[str, argparse.Namespace], None]
    needs: str = ""


def add(commands: Commands) -> None:
    """Add the commands of all products with their verbs."""
    for key in PRODUCTS:
        listing = PRODUCTS.listing(key)
        verbs = commands.add_parser(key, help=listing.about).add_subparsers(metavar="VERB", required=True)
        for verb in VERBS:
            if not verb.needs or verb.needs in listing.takes:
                verb.add(add_verb(verbs, verb.name, verb.about, partial(verb.do, key)), listing)


def add_verb(
    verbs: Commands, name: str, text: str, command: Callable[[argparse.Namespace], None]
) -> argparse.ArgumentParser:
    """Add a verb of a command."""
    verb: argparse.ArgumentParser = verbs.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    verb.set_defaults(command=command)
    return verb


def _add_source(verb: argparse.ArgumentParser, listing: Listing) -> None:
    """What the configuration is read from, and what changes it."""
    verb.add_argument("config", metavar=listing.source, help=listing.reads)
    text = "instead of its own value, such as tau.PH2=10 (docs/configuration.md); may be repeated"
    verb.add_argument("--set", type=setting, action="append", default=[], metavar="KEY=VALUE", help=text)
    if "renormalise" in listing.takes:
        text = "divide shares that do not sum to 1 by their sum, of geolevels and of the queries of each"
        verb.add_argument("--renormalise", action="store_true", help=text)
    if "codes" in listing.takes:
        text = "the files of codes and iterations (default: in PARAMETERS)"
        verb.add_argument("--codes", type=Path, metavar="FOLDER", help=text)


def _add_data(verb: argparse.ArgumentParser, listing: Listing) -> None:
    verb.add_argument("data", type=Path, metavar="DATA", help=listing.data)
    text = "what your record files call their columns (docs/configuration.md)"
    verb.add_argument("--columns", type=Path, metavar="MAP", help=text)
    if "totals" in listing.takes:
        text = "T01001 as safetab-p wrote it (default: in DATA)"
        verb.add_argument("--totals", type=Path, metavar="FILE", help=text)


def _add_estimating(verb: argparse.ArgumentParser, listing: Listing) -> None:
    if "spine" in listing.takes:
        text = "instead of CONFIG's: conventional, aian, optimized, or a folder that spine build made"
        verb.add_argument("--spine", metavar="KIND|FOLDER", help=text)
    if listing.estimators:
        verb.add_argument("--estimator", choices=listing.estimators, help=f"({listing.estimators[0]})")


def _add_planning(verb: argparse.ArgumentParser, listing: Listing) -> None:
    """What a plan says of margins of error and of sensitivities."""
    text = f"of the margins ({listing.confidence})"
    verb.add_argument("--confidence", type=confidence_level, metavar="C", help=text)
    text = "the smallest whole number with the confidence (exact, default), or the Bureau's z sigma (docs/margins.md)"
    verb.add_argument("--margins", choices=_CHOICES["margins"], help=text)
    if listing.accountings:
        verb.add_argument("--sensitivity", choices=_CHOICES["sensitivity"], help=listing.accountings)


def _add_validate(verb: argparse.ArgumentParser, listing: Listing) -> None:
    _add_source(verb, listing)
    _add_data(verb, listing)
    add_memory(verb)
    verb.add_argument("--json", action="store_true")
    if "truncation" in listing.takes:
        verb.add_argument("--internal", action="store_true", help="tell, too, what each tau would leave out")


def _add_plan(verb: argparse.ArgumentParser, listing: Listing) -> None:
    _add_source(verb, listing)
    text = "delta of the epsilon stated (default 1e-10)"
    verb.add_argument("--delta", type=share, default=None, metavar="D", help=text)
    text = "solve for budgets: margins of error, or a total (docs/targets.md)"
    verb.add_argument("--targets", type=Path, metavar="FILE", help=text)
    verb.add_argument("--diff", choices=("production",), help="list what differs from the 2020 run")
    verb.add_argument("--json", action="store_true")
    _add_planning(verb, listing)


def _add_release(verb: argparse.ArgumentParser, listing: Listing) -> None:
    """Arguments of `run` and `exact`."""
    _add_source(verb, listing)
    _add_data(verb, listing)
    verb.add_argument("out", type=Path, metavar="OUT", help="a folder that does not exist or is empty")
    verb.add_argument("--format", choices=_CHOICES["format"], help="(csv)")
    verb.add_argument("--overwrite", action="store_true", help="replace an earlier release in OUT")
    verb.add_argument("--log", type=Path, metavar="FILE", help="the confidential log (default: beside OUT)")
    verb.add_argument("--json", action="store_true", help="print the manifest")
    add_memory(verb)
    _add_planning(verb, listing)
    _add_estimating(verb, listing)


def _add_run(verb: argparse.ArgumentParser, listing: Listing) -> None:
    _add_release(verb, listing)
    add_noise_arguments(verb)
    if "report" in listing.takes:
        text = "an HTML page on the release: its loss, margins and tables; no truth"
        verb.add_argument("--report", type=Path, metavar="FILE", help=text)
    if "resume" in listing.takes:
        verb.add_argument("--resume", action="store_true", help="go on with a run that was interrupted")
    if "noisy_measurements" in listing.takes:
        text = "draw and write all measurements, too"
        verb.add_argument("--noisy-measurements", type=Path, metavar="DIR", help=text)


def _add_exact(verb: argparse.ArgumentParser, listing: Listing) -> None:
    _add_release(verb, listing)
    add_internal_argument(verb)


def _add_accuracy(verb: argparse.ArgumentParser, listing: Listing) -> None:
    _add_source(verb, listing)
    _add_data(verb, listing)
    verb.add_argument("out", type=Path, nargs="?", metavar="OUT", help="write accuracy.csv into this folder, too")
    verb.add_argument("--trials", type=count, default=1, metavar="N", help="how often noise is drawn (default 1)")
    verb.add_argument("--seed", type=seed, metavar="S", help="reproducible noise")
    verb.add_argument("--overwrite", action="store_true", help="replace an earlier output in OUT")
    verb.add_argument("--json", action="store_true")
    add_internal_argument(verb)
    if listing.estimators:
        add_memory(verb)
        _add_estimating(verb, listing)
    else:
        _add_planning(verb, listing)


def _add_estimate(verb: argparse.ArgumentParser, listing: Listing) -> None:
    verb.add_argument("release", type=Path, metavar="RELEASE", help="a release of PHSafe")
    verb.add_argument("out", type=Path, metavar="OUT", help="a folder that does not exist or is empty")
    text = "the release of Puerto Rico, for tables that show both"
    verb.add_argument("--puerto-rico", type=Path, metavar="RELEASE", help=text)
    text = f"of the credible intervals ({listing.confidence})"
    level = Fraction(listing.confidence)
    verb.add_argument("--confidence", type=confidence_level, default=level, metavar="C", help=text)
    text = "original: round as the Census Bureau did"
    verb.add_argument("--method", choices=("exact", "original"), default="exact", help=text)
    text = "joint: use all measurements of the same people together (docs/phsafe-estimates.md)"
    verb.add_argument("--combine", choices=("independent", "joint"), default="independent", help=text)
    text = "refuse a release that is NOT FOR RELEASE; else OUT is marked so, too"
    verb.add_argument("--publish", action="store_true", help=text)
    verb.add_argument("--format", choices=_CHOICES["format"], default="csv")
    verb.add_argument("--overwrite", action="store_true", help="replace earlier estimates in OUT")
    verb.add_argument("--json", action="store_true", help="print the manifest")


def configured(key: str, options: argparse.Namespace) -> "Configured":
    """Read the configuration, and settle what was not given by it.

    Raises
    ------
    ConfigError
        Naming what is wrong with it.
    """
    from yupana.files.changes import Changes

    product, listing = PRODUCTS[key], PRODUCTS.listing(key)
    more = {name: getattr(options, name) for name in ("codes", "renormalise") if name in listing.takes}
    read: Callable[..., Any] = product.read
    config = read(options.config, Changes(tuple(options.set)), **more)
    if getattr(options, "spine", None) is not None:
        config = _on_spine(config, options.spine)
    choices = _CHOICES | {"estimator": listing.estimators}
    settle(options, product.locate(options.config), _defaults(product, listing), choices)
    return Configured(product, listing, config)


@dataclass(frozen=True, slots=True)
class Configured:
    """A product and a configuration of it."""

    product: "Product[Any]"
    listing: Listing
    config: Any

    def plan(self, options: argparse.Namespace) -> Plan:
        """The plan that options ask for."""
        return self.product.plan(
            self.config,
            accounting=_accounting(options),
            confidence=options.confidence,
            margins=options.margins,
        )


def _defaults(product: "Product[Any]", listing: Listing) -> "Mapping[str, str | Fraction]":
    """What options are if neither they nor a manifest say otherwise."""
    return {
        "margins": "exact",
        "format": "csv",
        "confidence": product.confidence,
        **({"sensitivity": "published"} if listing.accountings else {}),
        **({"estimator": listing.estimators[0]} if listing.estimators else {}),
    }


def _accounting(options: argparse.Namespace) -> "Accounting":
    return "tight" if getattr(options, "sensitivity", None) == "tight" else "published"


def _on_spine(configuration: "Configuration", spine: str) -> "Configuration":
    from yupana.geography.disk import manifest_of, settings_of
    from yupana.topdown.given import on_given

    if (folder := spine_folder(spine)) is None:
        return configuration.on_spine(KINDS[spine])
    if not folder.is_dir():
        raise ConfigError(f"--spine {spine}: neither {', '.join(KINDS)} nor a folder")
    return on_given(configuration, settings_of(manifest_of(folder), folder), folder)


def _validate(key: str, options: argparse.Namespace) -> None:
    from yupana.cli import running

    running.validate(configured(key, options), options)


def _plan(key: str, options: argparse.Namespace) -> None:
    case = configured(key, options)
    more: dict[str, Any] = {}
    if options.targets is not None:
        case = _solved(case, options)
        more = {"configuration": case.product.document(case.config)}
    plan = case.plan(options)
    more = case.product.promises(case.config, delta_of(options)) | more
    production = partial(_production, case)
    print_plan(options, plan, production, more)


def _production(case: Configured) -> Plan:
    return case.product.plan(case.product.production(case.config))


def _solved(case: Configured, options: argparse.Namespace) -> Configured:
    """The configuration with the budgets that the file of ``--targets`` asks for.

    Raises
    ------
    ConfigError
        If the file asks for something impossible.
    """
    from yupana.plan.budgets import read_question, solve

    entries = case.product.entries(case.config, _accounting(options))
    question = read_question(options.targets, entries)
    mechanism = case.plan(options).mechanism
    budgets = solve(question, entries, options.confidence, mechanism, options.margins)
    return replace(case, config=case.product.with_budgets(case.config, budgets))


def _run(key: str, options: argparse.Namespace) -> None:
    from yupana.cli import running

    running.run(configured(key, options), options)


def _exact(key: str, options: argparse.Namespace) -> None:
    from yupana.cli import running

    running.exact(configured(key, options), options)


def _accuracy(key: str, options: argparse.Namespace) -> None:
    from yupana.cli import running

    running.accuracy(configured(key, options), options)


def _estimate(_: str, options: argparse.Namespace) -> None:
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


VERBS: Final = (
    Verb("validate", "check the records; the report is confidential", _add_validate, _validate),
    Verb("plan", "what a run would measure, and what it costs; needs no data", _add_plan, _plan),
    Verb("run", "make a release", _add_run, _run),
    Verb("exact", "the same without noise: synthetic data, or --internal", _add_exact, _exact),
    Verb(
        "accuracy",
        "experimental against expected error: synthetic data, or --internal",
        _add_accuracy,
        _accuracy,
    ),
    Verb(
        "estimate",
        "from noisy measurements to published tables with intervals",
        _add_estimate,
        _estimate,
        "estimate",
    ),
)
"""In the order of help pages."""


def add_memory(verb: argparse.ArgumentParser) -> None:
    """Let a verb be told how much memory to use."""
    text = "to get along with (default: 3/4 of the machine's, at most 12GB)"
    verb.add_argument("--memory", type=size, metavar="4GB", help=text)


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
    asked["columns"] = _columns_of(options)
    return RunRequest(
        account=_account_of(options),
        entropy=entropy_of(options),
        announce=announce,
        progress=progress or silent,
        **asked,
    )


def _columns_of(options: argparse.Namespace) -> "ColumnMap":
    """The map of columns that is named, or else that of the release which is repeated."""
    from yupana.files.column_map import BUREAU, column_map_of, read_column_map

    if (path := getattr(options, "columns", None)) is not None:
        return read_column_map(path)
    recipe: Recipe | None = getattr(options, "repeats", None)
    return BUREAU if recipe is None else column_map_of(recipe.options.get("columns", ""))


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


def settle(
    options: argparse.Namespace,
    config: Path,
    defaults: "Mapping[str, str | Fraction]",
    choices: Mapping[str, Sequence[str]],
) -> None:
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
            if name in choices and value not in choices[name]:
                raise ConfigError(f"config {config}: options.{name}: must be {' or '.join(map(repr, choices[name]))}")
        setattr(options, name, value)


_CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "format": ("csv", "parquet"),
    "margins": ("exact", "bureau"),
    "sensitivity": ("published", "tight"),
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
    more: Mapping[str, Any],
) -> None:
    """Print a plan, and what differs from the 2020 run if that was asked; with what else a product has to say."""
    delta = delta_of(options)
    differences = plan.differences(production()) if options.diff else []
    if options.json:
        answer = plan.as_json(delta) | dict(more)
        if options.diff:
            rows = [(d.measurement, d.value, d.here, d.there) for d in differences]
            answer["differences"] = [dict(zip(_DIFFERENCE, row, strict=True)) for row in rows]
        print_json(answer)
        return
    from yupana.cli.plan_text import plan_text, promises_text

    print("\n".join([plan_text(plan, delta), *promises_text(plan, more)]))
    if options.diff:
        print()
        if not differences:
            print("No difference from the production plan of 2020.")
        width = max([24, *(len(d.measurement) for d in differences)])
        for d in differences:
            here, there = d.here or "not measured", d.there or "not measured"
            print(f"{d.measurement:{width}} {d.value:12} here {here:>14}   production {there:>14}")


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
