"""`yupana PRODUCT plan|validate|run|exact|accuracy`: the commands of all products, from one list of verbs."""

import argparse
import inspect
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

import yupana
from yupana.asked import TERMS, ask, ask_parts, out_of, question_of
from yupana.cli.arguments import (
    Commands,
    confidence_level,
    count,
    limits,
    place,
    positive,
    print_json,
    seed,
    setting,
    share,
    size,
)
from yupana.engine.engine import ENGINES
from yupana.errors import ConfigError, InputError
from yupana.files.new_file import NewFile
from yupana.files.store import store_at
from yupana.plan.plan import DEFAULT_DELTA
from yupana.plan.unit import UnitName
from yupana.products import PRODUCTS, Listing
from yupana.products.parts import ALONE, data_of, not_added
from yupana.topdown.interval_terms import INTERVAL_METHODS, REPLICATES

if TYPE_CHECKING:
    from yupana.asked import AskedParts, Place
    from yupana.release.release import Release

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
        Does it, for the product of a key; what it returns is told.
    needs : str
        What a product must take to have it (`Listing.takes`); empty where all have it.
    """

    name: str
    about: str
    add: Callable[[argparse.ArgumentParser, Listing], None]
    do: "Callable[[str, argparse.Namespace], VerbAnswer | None]"
    needs: str = ""


@dataclass(frozen=True, slots=True)
class VerbAnswer:
    """What a verb tells of one configuration.

    Attributes
    ----------
    json : object
        With ``--json``.
    lines : sequence of str
        Else.
    wrong : str
        Why the command fails, after all that is told.
    """

    json: object
    lines: Sequence[str]
    wrong: str = ""


def add(commands: Commands) -> None:
    """Add the commands of all products with their verbs."""
    for key in PRODUCTS:
        listing = PRODUCTS.listing(key)
        verbs = commands.add_parser(key, help=listing.about).add_subparsers(metavar="VERB", required=True)
        for verb in VERBS:
            if not verb.needs or verb.needs in listing.takes:
                verb.add(add_verb(verbs, verb.name, verb.about, partial(_do, verb, key)), listing)


def _do(verb: Verb, key: str, options: argparse.Namespace) -> None:
    """Do what a verb asks; of a document of parts for each of them, unless the verb takes the whole."""
    if verb.name not in _OF_EACH:
        verb.do(key, options)
        return
    asked = ask_parts(key, **given(ask, options), **{name: getattr(options, name, None) for name in TERMS})
    if asked.is_whole and getattr(options, "targets", None) is not None:
        raise ConfigError("--targets: they are of one plan; name the configuration of a part")
    of_parts = {name: _of_part(options, asked, name) for name in asked.cases}
    for part in of_parts.values():
        if getattr(part, "out", None) is not None:
            out_of(part.out, overwrite=part.overwrite)
    answers = {name: verb.do(key, part) for name, part in of_parts.items()}
    is_plan = asked.is_whole and verb.name == "plan"
    _tell(asked, answers, options, not_added(case.plan() for case in asked.cases.values()) if is_plan else "")


def _data_of(data: "Place", names: tuple[str, ...]) -> "Mapping[str, Place]":
    """Where the records of each part lie, as `data_of` tells it of a folder."""
    if (store := store_at(data)) is None:
        return data_of(Path(data), names)
    if names == (ALONE,):
        return {ALONE: data}
    each = {file.name.partition("/")[0] for file in store.connect().files()} - {"SYNTHETIC"} == set(names)
    return {name: f"{store.url}/{name}" if each else store.url for name in names}


_OF_EACH: Final = frozenset({"validate", "plan", "accuracy"})
"""Verbs that are done for each part of a document; others take the whole."""


def _of_part(options: argparse.Namespace, asked: "AskedParts", name: str) -> argparse.Namespace:
    """The options as they are of one part: its configuration, its records, and an output folder of its own."""
    told = {**vars(options), "config": asked.cases[name]}
    if "data" in told:
        told["data"] = _data_of(options.data, tuple(asked.cases))[name]
    if told.get("out") is not None:
        told["out"] = options.out / name
    return argparse.Namespace(**told)


def _tell(
    asked: "AskedParts", answers: "Mapping[str, VerbAnswer | None]", options: argparse.Namespace, note: str
) -> None:
    """Print what was answered of each part, or of one configuration."""
    told = {name: answer for name, answer in answers.items() if answer is not None}
    if options.json:
        each = {name: answer.json for name, answer in told.items()}
        print_json({"product": asked.title, "parts": each} if asked.is_whole else each[ALONE])
    else:
        for name, answer in told.items():
            print("\n".join([*([f"{name}:"] if name else []), *answer.lines, *([""] if name else [])]))
        if note:
            print(note)
    if wrong := [answer.wrong for answer in told.values() if answer.wrong]:
        raise InputError("; ".join(wrong))


def add_verb(
    verbs: Commands, name: str, text: str, command: Callable[[argparse.Namespace], None]
) -> argparse.ArgumentParser:
    """Add a verb of a command."""
    verb: argparse.ArgumentParser = verbs.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    verb.set_defaults(command=command)
    return verb


def _add_source(verb: argparse.ArgumentParser, listing: Listing) -> None:
    """What the configuration is read from, and what changes it."""
    text = f"{listing.reads}, or a built-in name: {', '.join(listing.built_in)}"
    verb.add_argument("config", metavar=listing.source, help=text)
    _add_changes(verb)
    if "renormalise" in listing.takes:
        text = "divide shares that do not sum to 1 by their sum, of geolevels and of the queries of each"
        verb.add_argument("--renormalise", action="store_true", help=text)
    if "codes" in listing.takes:
        text = f"the public files of codes and groups (default: where {listing.source} lies)"
        verb.add_argument("--codes", type=Path, metavar="FOLDER", help=text)


def _add_changes(verb: argparse.ArgumentParser) -> None:
    text = "instead of its own value, such as tau.PH2=10 (docs/configuration.md); may be repeated"
    verb.add_argument("--set", type=setting, action="append", default=[], metavar="KEY=VALUE", help=text)


def _add_records(verb: argparse.ArgumentParser, listing: Listing) -> None:
    verb.add_argument("data", type=place, metavar="DATA", help=f"{listing.data}, or s3://BUCKET/PREFIX")
    text = "what your record files call their columns (docs/configuration.md)"
    verb.add_argument("--columns", type=Path, metavar="MAP", help=text)


def _add_data(verb: argparse.ArgumentParser, listing: Listing) -> None:
    _add_records(verb, listing)
    if "totals" in listing.takes:
        text = "published totals of population groups, such as T01001 of safetab-p"
        verb.add_argument("--totals", type=Path, metavar="FILE", help=text)


def _add_estimating(verb: argparse.ArgumentParser, listing: Listing) -> None:
    if "spine" in listing.takes:
        text = "instead of CONFIG's: conventional, aian, optimized, pieces, or a folder that spine build made"
        verb.add_argument("--spine", metavar="KIND|FOLDER", help=text)
    if "areas" in listing.takes:
        _add_areas(verb)
    if listing.estimators:
        _add_estimator(verb, listing)


def _add_areas(verb: argparse.ArgumentParser) -> None:
    text = "which areas the blocks lie in, beside the reference file: a table, or the Bureau's; may be repeated"
    verb.add_argument("--areas", type=Path, action="append", metavar="FILE", help=text)


def _add_estimator(verb: argparse.ArgumentParser, listing: Listing) -> None:
    verb.add_argument("--estimator", choices=listing.estimators, help=f"({listing.estimators[0]})")


def _add_planning(verb: argparse.ArgumentParser, listing: Listing) -> None:
    """What a plan says of margins of error and of sensitivities."""
    text = f"of the margins ({listing.confidence})"
    verb.add_argument("--confidence", type=confidence_level, metavar="C", help=text)
    text = "the smallest whole number with the confidence (exact, default), or the Bureau's z sigma (docs/margins.md)"
    verb.add_argument("--margins", choices=("exact", "bureau"), help=text)
    if listing.accountings:
        verb.add_argument("--sensitivity", dest="accounting", choices=("published", "tight"), help=listing.accountings)


def _add_validate(verb: argparse.ArgumentParser, listing: Listing) -> None:
    _add_source(verb, listing)
    _add_data(verb, listing)
    add_memory(verb)
    _add_engine(verb)
    verb.add_argument("--json", action="store_true")
    if "truncation" in listing.takes:
        verb.add_argument("--internal", action="store_true", help="tell, too, what each tau would leave out")


def _add_plan(verb: argparse.ArgumentParser, listing: Listing) -> None:
    _add_source(verb, listing)
    text = "delta of the epsilon stated (default 1e-10)"
    verb.add_argument("--delta", type=share, default=None, metavar="D", help=text)
    text = "scale all budgets to the largest that have this epsilon at --delta (docs/exact-accounting.md)"
    verb.add_argument("--epsilon", type=positive, default=None, metavar="E", help=text)
    text = "solve for budgets: margins of error, or a total (docs/targets.md)"
    verb.add_argument("--targets", type=Path, metavar="FILE", help=text)
    if "production" in listing.takes:
        verb.add_argument("--diff", choices=("production",), help="list what differs from the 2020 run")
    verb.add_argument("--json", action="store_true")
    _add_planning(verb, listing)


def _add_release(verb: argparse.ArgumentParser, listing: Listing) -> None:
    """Arguments of `run` and `exact`."""
    _add_source(verb, listing)
    _add_data(verb, listing)
    verb.add_argument("out", type=Path, metavar="OUT", help="a folder that does not exist or is empty")
    _add_form(verb, listing)
    verb.add_argument("--log", type=Path, metavar="FILE", help="the confidential log (default: beside OUT)")
    add_memory(verb)
    _add_engine(verb)
    _add_planning(verb, listing)
    _add_estimating(verb, listing)


def _add_interval_method(verb: argparse.ArgumentParser) -> None:
    text = "of published counts, in tabulation and tables (least-squares up to a size: docs/topdown-intervals.md)"
    verb.add_argument("--intervals", choices=INTERVAL_METHODS, help=text)


def _add_form(verb: argparse.ArgumentParser, listing: Listing) -> None:
    """What a release holds beside its tables, and in which form."""
    verb.add_argument("--format", choices=("csv", "parquet"), help="(csv)")
    verb.add_argument("--overwrite", action="store_true", help="replace an earlier release in OUT")
    verb.add_argument("--json", action="store_true", help="print the manifest")
    if "names" in listing.takes:
        text = "what areas are called: a table, or a geographic header file of P.L. 94-171"
        verb.add_argument("--names", type=Path, metavar="FILE", help=text)
    if "microdata" in listing.takes:
        text = "write no records of persons or units, only counts and tables"
        verb.add_argument("--no-microdata", dest="microdata", action="store_false", default=None, help=text)


def _add_run(verb: argparse.ArgumentParser, listing: Listing) -> None:
    _add_release(verb, listing)
    add_noise_arguments(verb)
    add_resume_argument(verb)
    if "report" in listing.takes:
        text = "an HTML page on the release: its loss, margins and tables; no truth"
        verb.add_argument("--report", type=Path, metavar="FILE", help=text)
    if "noisy_measurements" in listing.takes:
        text = "draw and write all measurements, too"
        verb.add_argument("--noisy-measurements", type=Path, metavar="DIR", help=text)
    if "intervals" in listing.takes:
        _add_interval_method(verb)
        text = f"of --intervals monte-carlo: runs on the published counts ({REPLICATES})"
        verb.add_argument("--replicates", type=count, metavar="N", help=text)
    if "nmf" in listing.takes:
        text = "the same in the Census Bureau's layout (docs/noisy-measurement-files.md)"
        verb.add_argument("--nmf", type=Path, metavar="DIR", help=text)
    if "pl" in listing.takes:
        text = "the files of P.L. 94-171, too, of a configuration with persons and units, such as pl94-2020-us-whole"
        verb.add_argument("--pl", type=Path, metavar="DIR", help=text)


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


def _add_compare(verb: argparse.ArgumentParser, listing: Listing) -> None:
    _add_source(verb, listing)
    _add_records(verb, listing)
    verb.add_argument("out", type=Path, metavar="OUT", help="a folder that does not exist or is empty")
    text = (
        "with commas between: cell-key:D=5:V=3:js=2, rounding-3, rounding-5, swapping:rate=0.05:k=3, "
        "suppression:below=3; parameters may be left out (default: all these)"
    )
    verb.add_argument("--methods", metavar="METHODS", help=text)
    text = "reproducible random choices, for synthetic data only"
    verb.add_argument("--seed", type=seed, metavar="S", help=text)
    verb.add_argument("--sensitivity", dest="accounting", choices=("published", "tight"), help=listing.accountings)
    verb.add_argument("--overwrite", action="store_true", help="replace an earlier output in OUT")
    verb.add_argument("--json", action="store_true")
    add_internal_argument(verb)
    add_memory(verb)


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
    verb.add_argument("--format", choices=("csv", "parquet"), default="csv")
    verb.add_argument("--overwrite", action="store_true", help="replace earlier estimates in OUT")
    verb.add_argument("--json", action="store_true", help="print the manifest")


def _add_pl(verb: argparse.ArgumentParser, _: Listing) -> None:
    text = "a folder with releases of persons and of housing units, in persons and units"
    verb.add_argument("release", type=Path, metavar="RELEASE", help=text)
    verb.add_argument("out", type=Path, metavar="DIR", help="a folder that does not exist or is empty")
    text = "a geographic header of the Bureau: areas that it has get its names and other fields"
    verb.add_argument("--names", type=Path, metavar="FILE", help=text)
    verb.add_argument("--overwrite", action="store_true", help="replace earlier files in DIR")
    verb.add_argument("--json", action="store_true", help="print the manifest")


def _add_intervals(verb: argparse.ArgumentParser, _: Listing) -> None:
    verb.add_argument("release", type=Path, metavar="RELEASE", help="of TopDown")
    verb.add_argument("out", type=Path, metavar="OUT", help="a folder that does not exist or is empty")
    text = "(least-squares where measurements are given, else monte-carlo)"
    verb.add_argument("--method", choices=[method for method in INTERVAL_METHODS if method != "none"], help=text)
    text = f"of Monte Carlo: runs on the published counts ({REPLICATES})"
    verb.add_argument("--replicates", type=count, metavar="N", help=text)
    text = "(that of the release's margins)"
    verb.add_argument("--confidence", type=confidence_level, metavar="C", help=text)
    text = "those of the run that made the release, for least squares"
    verb.add_argument("--noisy-measurements", type=Path, metavar="DIR", help=text)
    verb.add_argument("--nmf", type=Path, metavar="DIR", help="the same as noisy measurement files")
    verb.add_argument("--overwrite", action="store_true", help="replace an earlier release in OUT")
    verb.add_argument("--json", action="store_true", help="print the manifest")


def _add_strategy(verb: argparse.ArgumentParser, listing: Listing) -> None:
    _add_source(verb, listing)
    of_queries = bool(listing.estimators)
    text = "weights of tables and levels, margins of error to be kept (default: every published cell counts alike)"
    if of_queries:
        text = "weights of queries, tables and geolevels (default: published tables at the shares of geolevels given)"
    verb.add_argument("--targets", type=Path, metavar="FILE", help=text)
    text = "the weighted sum of all variances, the largest, or the largest over that of the budgets given (sum)"
    verb.add_argument("--loss", choices=("sum", "max", "ratio"), help=text)
    text = "what each budget keeps of the one given (1/50)"
    if of_queries:
        text = "what each query has at least of its geolevel's budget (1/50)"
    verb.add_argument("--least", metavar="SHARE", help=text)
    if not of_queries:
        text = "what the budgets may cost, of each pass where there are several (default: what they cost now)"
        verb.add_argument("--total", type=positive, metavar="LOSS", help=text)
    text = "write the configuration found, as JSON: a file that does not exist"
    verb.add_argument("--out", type=Path, metavar="FILE", help=text)
    verb.add_argument("--json", action="store_true")
    if not of_queries:
        _add_planning(verb, listing)


def _add_from_files(verb: argparse.ArgumentParser, listing: Listing) -> None:
    text = "a folder of noisy measurement files (docs/noisy-measurement-files.md)"
    verb.add_argument("files", type=Path, metavar="NMF", help=text)
    verb.add_argument("out", type=Path, metavar="OUT", help="a folder that does not exist or is empty")
    verb.add_argument("--dataset", metavar="NAME", help="such as US_Person_PL_PROD, where there are several")
    text = "of the queries and the order of their passes (default: that of the dataset)"
    verb.add_argument("--config", metavar="CONFIG", help=text)
    verb.add_argument("--states", type=_states, metavar="50,...", help="these alone; with a digit before, one branch")
    text = "a reference file of blocks, for places and the like"
    verb.add_argument("--geography", type=Path, metavar="GRFC", help=text)
    text = "exact totals of states, which the files lack: columns state and total"
    verb.add_argument("--totals", type=Path, metavar="FILE", help=text)
    _add_estimator(verb, listing)
    _add_areas(verb)
    _add_interval_method(verb)
    _add_planning(verb, listing)
    _add_changes(verb)
    _add_form(verb, listing)


def _states(text: str) -> tuple[str, ...]:
    return tuple(state.strip() for state in text.split(","))


def given(function: Callable[..., Any], options: argparse.Namespace) -> dict[str, Any]:
    """The options that were given of those that a function takes, which have the names of its parameters."""
    names = inspect.signature(function).parameters
    return {name: value for name, value in vars(options).items() if name in names and value is not None}


def _validate(key: str, options: argparse.Namespace) -> VerbAnswer:
    found = yupana.validate(key, **given(yupana.validate, options), progress=True)
    if "truncation" in PRODUCTS.listing(key).takes:
        say_confidential(options)
    from yupana.cli.plan_text import left_out_text
    from yupana.confidential.records.findings import failing

    broken = failing(found)
    _print_remarks(found.remarks)
    told: dict[str, Any] = {"findings": [asdict(finding) for finding in found]}
    told |= {"truncation": [asdict(row) for row in found.truncation]} if found.truncation else {}
    told |= {"left_out": list(found.left_out)} if found.left_out else {}
    confidential = "CONFIDENTIAL: this report is outside the privacy guarantee and must not be published."
    lines = [confidential, *map(str, found)] if found else []
    wrong = f"{options.data} breaks {len(broken)} rule{'s' * (len(broken) > 1)}; see the report" if broken else ""
    lines += [] if broken else [f"{options.data}: valid"]
    lines += left_out_text(found.left_out)
    if found.truncation and not broken:
        lines.append(f"{'table':11}{'tau':>6}{'persons':>15}{'left out':>13}{'share':>9}{'households':>13}")
        lines += [
            f"{row.table:11}{row.tau:6}{row.persons:15,}{row.left_out:13,}"
            f"{row.left_out / max(1, row.persons):9.3%}{row.units:13,}{'  configured' * row.configured}"
            for row in found.truncation
        ]
    return VerbAnswer({"confidential": True, "valid": not broken, **told}, lines, wrong)


def _plan(key: str, options: argparse.Namespace) -> VerbAnswer:
    from yupana.api import scaled, solved
    from yupana.plan.exact_loss import plan_as_json

    case = ask(key, **given(yupana.plan, options))
    more: dict[str, Any] = {}
    if options.epsilon is not None:
        if options.targets is not None:
            raise ConfigError("plan takes --targets or --epsilon, not both: each asks for other budgets")
        config, found = scaled(case, options.epsilon, options.delta)
        case, more["scaled"] = replace(case, config=config), found.as_json()
        more["configuration"] = case.product.document(case.config)
    if options.targets is not None:
        entries = case.product.entries(case.config, case.accounting)
        config, spent = solved(case, question_of(options.targets, entries))
        case = replace(case, config=config)
        more = {"configuration": case.product.document(case.config)}
        if spent is not None:
            more["spent"] = spent.as_json()
    delta = float(options.delta) if options.delta is not None else DEFAULT_DELTA
    plan = yupana.plan(key, case)
    more = case.product.promises(case.config, plan, delta) | more
    production = case.production() if getattr(options, "diff", None) else None
    differences = [] if production is None else plan.differences(production)
    answer = plan_as_json(plan, delta) | more
    if production is not None:
        rows = [(d.measurement, d.value, d.here, d.there) for d in differences]
        answer["differences"] = [dict(zip(_DIFFERENCE, row, strict=True)) for row in rows]
    if options.json:
        return VerbAnswer(answer, ())
    from yupana.cli.plan_text import differences_text, plan_text, promises_text

    lines = [plan_text(plan, delta), *promises_text(plan, more)]
    if production is not None:
        lines += ["", *differences_text(differences)]
    return VerbAnswer(answer, lines)


def _run(key: str, options: argparse.Namespace) -> None:
    with resumable(f"{key} run", options):
        release = yupana.run(key, **given(yupana.run, options), progress=True)
    _say(options, release)


@contextmanager
def resumable(command: str, options: argparse.Namespace) -> Iterator[None]:
    """Say of a run that is interrupted that what it has drawn is kept, if it has begun."""
    try:
        yield
    except KeyboardInterrupt:
        from yupana.release.checkpoint import is_interrupted

        if is_interrupted(options.out):
            told = f"what was drawn is kept beside {options.out}; go on with --resume"
            print(f"{command}: {told}", file=sys.stderr)
        raise


def _exact(key: str, options: argparse.Namespace) -> None:
    _say(options, yupana.exact(key, **given(yupana.exact, options), progress=True))


def _say(options: argparse.Namespace, release: "Release") -> None:
    """Say what has been released."""
    print_release(options, release)
    parts = list(release.parts.values()) or [release]
    remarks = (text for part in parts for text in part.manifest["parameters"].get("remarks", ()))
    _print_remarks(list(dict.fromkeys(remarks)))
    parameters = parts[0].manifest["parameters"]
    # The list of states is public.
    absent = sorted(set(parameters.get("state_filter", ())) - set(parameters.get("states", ())))
    if absent and not options.json:
        print(f"no housing unit of the state_filter's {', '.join(absent)}: the tables leave such states out")


def _print_remarks(remarks: Sequence[str]) -> None:
    for remark in remarks:
        print(f"remark: {remark}", file=sys.stderr)


def _accuracy(key: str, options: argparse.Namespace) -> VerbAnswer:
    observed = yupana.accuracy(key, **given(yupana.accuracy, options), progress=True).observed
    listing, rows = PRODUCTS.listing(key), [asdict(row) for row in observed.rows]
    if not listing.estimators:
        say_confidential(options)
    if options.json:
        if listing.estimators:
            return VerbAnswer({"product": observed.product, "trials": options.trials, "rows": rows}, ())
        return VerbAnswer({"rows": rows, **observed.told} if observed.told else rows, ())
    from yupana.cli.accuracy_text import cells_text, counts_text, groups_text
    from yupana.cli.plan_text import criteria_text

    if listing.estimators:
        lines = counts_text(observed.rows)
    else:
        lines = groups_text(observed.rows) if "parameters" in listing.takes else cells_text(observed.rows)
    return VerbAnswer(rows, [*lines, *criteria_text(observed.told.get("criteria", {}))])


def _compare(key: str, options: argparse.Namespace) -> None:
    found = yupana.compare(key, **given(yupana.compare, options), progress=True)
    say_confidential(options)
    if options.json:
        told = {name: [asdict(row) for row in getattr(found, name)] for name in ("errors", "additivity", "learnt")}
        print_json({"methods": [method.name for method in found.methods], **told, "best_guess": found.best_guess})
        return
    from yupana.cli.comparison_text import comparison_text

    print("\n".join(comparison_text(found)))
    print(f"{options.out}: errors, additivity, differencing (.csv) and report.html; not for release")


def _estimate(_: str, options: argparse.Namespace) -> None:
    release = yupana.estimate(**given(yupana.estimate, options), progress=True)
    print_release(options, release)
    if not options.json:
        from yupana.report.final_tables import PAGE

        print(f"browse the tables: {options.out / PAGE}")


def _pl(_: str, options: argparse.Namespace) -> None:
    print_release(options, yupana.write_pl(**given(yupana.write_pl, options)))


def _from_files(_: str, options: argparse.Namespace) -> None:
    _say(options, yupana.estimate_measurements(**given(yupana.estimate_measurements, options), progress=True))


def _intervals(_: str, options: argparse.Namespace) -> None:
    print_release(options, yupana.topdown_intervals(**given(yupana.topdown_intervals, options), progress=True))


def _strategy(key: str, options: argparse.Namespace) -> None:
    from yupana.cli.strategy_text import budgets_text, strategy_text
    from yupana.products.strategy.budgets import budgets_as_json
    from yupana.products.topdown.strategy import strategy_as_json

    place = None if options.out is None else NewFile(options.out, "the configuration", lambda _: False, 0o666)
    if place is not None:
        place.check()
    found = yupana.strategy(**given(yupana.strategy, options), product=key)
    product, of_queries = PRODUCTS[key], key == "topdown"
    document = product.document(found.found)
    if place is not None:
        place.write(json.dumps(document, indent=1) + "\n")
        place.keep()
    if options.json:
        told = strategy_as_json(found) if of_queries else budgets_as_json(product, found)
        print_json(told | {"configuration": document})
        return
    print("\n".join(strategy_text(found) if of_queries else budgets_text(product, found)))
    if options.out is not None:
        beside = "; name the folder of its public files by --codes" if "codes" in PRODUCTS.listing(key).takes else ""
        print(f"{options.out}: written; see what it costs with plan, and give it to run{beside}")


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
        "compare",
        "the same tables by cell key, rounding, swapping and suppression: synthetic data, or --internal",
        _add_compare,
        _compare,
        "compare",
    ),
    Verb(
        "estimate",
        "from noisy measurements to published tables with intervals",
        _add_estimate,
        _estimate,
        "estimate",
    ),
    Verb(
        "intervals",
        "the same release with an interval for every count, from itself or from its noisy measurements",
        _add_intervals,
        _intervals,
        "intervals",
    ),
    Verb(
        "strategy",
        "the budgets that make what you care for least variable at the same loss; needs no data",
        _add_strategy,
        _strategy,
    ),
    Verb("pl", "write the files of P.L. 94-171 from releases of persons and housing units", _add_pl, _pl, "pl"),
    Verb(
        "estimate",
        "from the Census Bureau's noisy measurement files to counts, tables and records",
        _add_from_files,
        _from_files,
        "nmf",
    ),
)
"""In the order of help pages."""


def add_memory(verb: argparse.ArgumentParser) -> None:
    """Let a verb be told how much memory to use."""
    text = "to get along with (default: 3/4 of the machine's, at most 12GB)"
    verb.add_argument("--memory", type=size, metavar="4GB", help=text)


def _add_engine(verb: argparse.ArgumentParser) -> None:
    """Let a verb be told where its work is done."""
    text = "where records are counted and nodes solved: this machine (local), or a cluster (docs/engines.md)"
    verb.add_argument("--engine", choices=ENGINES, help=text)
    text = "of spark: local[N] (default: all cores), spark://HOST:PORT, yarn, k8s://..., or sc://HOST:PORT"
    verb.add_argument("--master", metavar="URL", help=text)
    text = "cut records into so many shards, counted one at a time or by several workers"
    verb.add_argument("--shards", type=count, metavar="N", help=text)
    text = "of spark: another setting; may be repeated"
    verb.add_argument("--spark-conf", type=setting, action=_Settings, metavar="KEY=VALUE", help=text)


class _Settings(argparse.Action):
    """Collects KEY=VALUE."""

    def __call__(self, _parser: object, options: argparse.Namespace, pair: Any, _option: object = None) -> None:  # noqa: ANN401
        """Add one."""
        setattr(options, self.dest, {**(getattr(options, self.dest) or {}), pair[0]: pair[1]})


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
    text = (
        "largest loss the ledger may reach for the data: L of the plan's own, or KIND=L,... as unbounded=3,bounded=6; "
        "of a configuration of parts PART=L or PART.KIND=L"
    )
    verb.add_argument("--limit", type=limits, metavar="L", help=text)


def add_resume_argument(verb: argparse.ArgumentParser) -> None:
    """``--resume`` of `run` and `count`."""
    text = "go on with a run that was interrupted, with what it had drawn (docs/interrupted-runs.md)"
    verb.add_argument("--resume", action="store_true", help=text)


def print_release(options: argparse.Namespace, release: "Release") -> None:
    """Say what has been released."""
    if options.json:
        print_json(release.manifest)
    else:
        number = len(release.manifest["tables"])
        tables = f"{number} table{'s' * (number != 1)}"
        print(f"{options.out}: {tables} and manifest.json; {release.manifest['status']}")
