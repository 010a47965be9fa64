"""`yupana PRODUCT plan|validate|run|exact|accuracy`: the commands of all products, from one list of verbs."""

import argparse
import inspect
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yupana
from yupana.cli.arguments import Commands, confidence_level, count, place, positive, print_json, share
from yupana.cli.options import add_declared, add_options
from yupana.errors import ConfigError, InputError
from yupana.files.regular import NewFile
from yupana.files.store import store_at
from yupana.interface.arguments import out_of
from yupana.interface.configured import Configured, told_together
from yupana.interface.options import CHANGES, OF_ACCOUNT, OF_EXECUTION, OF_MEASUREMENTS, OPTIONS, Stage, declared
from yupana.interruption import whole
from yupana.plan.plan import DEFAULT_DELTA
from yupana.products import PRODUCTS, Listing
from yupana.products.parts import data_of, not_added
from yupana.topdown.interval_terms import INTERVAL_METHODS, REPLICATES

if TYPE_CHECKING:
    from yupana.interface.options import Place
    from yupana.release.release import ReleaseFolder

_DIFFERENCE = ("measurement", "value", "here", "production")
_OUT = "a folder that does not exist or is empty"


@dataclass(frozen=True, slots=True)
class Verb:
    """What can be asked of products.

    Attributes
    ----------
    name, about : str
    add : callable
        Adds its arguments.
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
    """Do what a verb asks."""
    answer = verb.do(key, options)
    if answer is not None:
        _tell(answer, options)


def _tell(answer: VerbAnswer, options: argparse.Namespace) -> None:
    if options.json:
        print_json(answer.json)
    else:
        print("\n".join(answer.lines))
    if answer.wrong:
        raise InputError(answer.wrong)


def given(function: Callable[..., Any], options: argparse.Namespace) -> dict[str, Any]:
    """The options that were given of those that a function takes, which have the names of its parameters."""
    names = inspect.signature(function).parameters
    return {name: value for name, value in vars(options).items() if name in names and value is not None}


def _of_each(
    key: str,
    options: argparse.Namespace,
    verb: str,
    do: "Callable[[Configured, argparse.Namespace, dict[str, Any]], VerbAnswer]",
) -> VerbAnswer:
    """What a verb answers of a configuration, or of each part of a document of parts."""
    asked, own = _asked(verb, key, options)
    if not asked.parts:
        return do(asked, options, own)
    if getattr(options, "targets", None) is not None:
        raise ConfigError("--targets: they are of one plan; name the configuration of a part")
    each = {name: _of_part(options, asked, name) for name in asked.parts}
    for part in each.values():
        if getattr(part, "out", None) is not None:
            out_of(part.out, overwrite=part.overwrite)
    answers = {name: do(asked.parts[name], part, own) for name, part in each.items()}
    lines = [line for name, answer in answers.items() for line in (f"{name}:", *answer.lines, "")]
    wrong = "; ".join(answer.wrong for answer in answers.values() if answer.wrong)
    if verb == "plan":
        lines.append(not_added(case.plan() for case in asked.parts.values()))
    told = {"product": asked.title, "parts": {name: answer.json for name, answer in answers.items()}}
    return VerbAnswer(told, lines, wrong)


def _of_part(options: argparse.Namespace, asked: Configured, name: str) -> argparse.Namespace:
    """The options as they are of one part: its records, and an output folder of its own."""
    told = dict(vars(options))
    if "data" in told:
        told["data"] = _data_of(options.data, tuple(asked.parts))[name]
    if told.get("out") is not None:
        told["out"] = options.out / name
    return argparse.Namespace(**told)


def _data_of(data: "Place", names: tuple[str, ...]) -> "Mapping[str, Place]":
    """Where the records of each part lie, as `data_of` tells it of a folder."""
    if (store := store_at(data)) is None:
        return data_of(Path(data), names)
    each = {file.name.partition("/")[0] for file in store.connect().files()} - {"SYNTHETIC"} == set(names)
    return {name: f"{store.url}/{name}" if each else store.url for name in names}


_PLACES: Final = frozenset({"config", "data", "out", "command", "json", "targets", "epsilon", "delta", "diff"})
"""Arguments that are no options of `setup` or of the verbs of a configured product."""


def _asked(verb: str, key: str, options: argparse.Namespace) -> tuple[Configured, dict[str, Any]]:
    """A product set up by the options that were given, and what is left of them for a verb."""
    told = {name: value for name, value in vars(options).items() if name not in _PLACES}
    if verb == "strategy":
        told["targets"] = options.targets
    elif verb != "plan":
        told["progress"] = True
    return told_together(verb, key, options.config, told)


def add_verb(
    verbs: Commands, name: str, text: str, command: Callable[[argparse.Namespace], None]
) -> argparse.ArgumentParser:
    """Add a verb of a command."""
    verb: argparse.ArgumentParser = verbs.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    verb.set_defaults(command=command)
    return verb


def add_source(verb: argparse.ArgumentParser, listing: Listing, stage: Stage) -> None:
    """What the configuration is read from, what changes it, and the options that a stage reads."""
    text = f"{listing.reads}, or a built-in name: {', '.join(listing.built_in)}"
    verb.add_argument("config", metavar=listing.source, help=text)
    add_declared(verb, CHANGES)
    add_options(verb, listing, stage)
    verb.add_argument("--json", action="store_true", help="print the answer as JSON")


def _add_data(verb: argparse.ArgumentParser, listing: Listing) -> None:
    verb.add_argument("data", type=place, metavar="DATA", help=f"{listing.data}, or s3://BUCKET/PREFIX")


def _add_validate(verb: argparse.ArgumentParser, listing: Listing) -> None:
    add_source(verb, listing, "records")
    _add_data(verb, listing)
    add_declared(verb, OF_EXECUTION)
    if "truncation" in listing.takes:
        verb.add_argument("--internal", action="store_true", help="tell, too, what each tau would leave out")


def _add_plan(verb: argparse.ArgumentParser, listing: Listing) -> None:
    add_source(verb, listing, "plan")
    text = "delta of the epsilon stated (default 1e-10)"
    verb.add_argument("--delta", type=share, default=None, metavar="D", help=text)
    text = "scale all budgets to the largest that have this epsilon at --delta (docs/exact-accounting.md)"
    verb.add_argument("--epsilon", type=positive, default=None, metavar="E", help=text)
    text = "solve for budgets: margins of error, or a total (docs/targets.md)"
    verb.add_argument("--targets", type=Path, metavar="FILE", help=text)
    if "production" in listing.takes:
        verb.add_argument("--diff", choices=("production",), help="list what differs from the 2020 run")


def _add_run(verb: argparse.ArgumentParser, listing: Listing) -> None:
    add_source(verb, listing, "run")
    _add_data(verb, listing)
    verb.add_argument("out", type=Path, metavar="OUT", help=_OUT)
    add_declared(verb, declared(Configured.run))
    add_declared(verb, OF_ACCOUNT)
    add_declared(verb, OF_EXECUTION)


def _add_exact(verb: argparse.ArgumentParser, listing: Listing) -> None:
    add_source(verb, listing, "release")
    _add_data(verb, listing)
    verb.add_argument("out", type=Path, metavar="OUT", help=_OUT)
    add_declared(verb, declared(Configured.exact))
    add_declared(verb, OF_EXECUTION)


def _add_accuracy(verb: argparse.ArgumentParser, listing: Listing) -> None:
    add_source(verb, listing, "records")
    _add_data(verb, listing)
    verb.add_argument("out", type=Path, nargs="?", metavar="OUT", help="write accuracy.csv into this folder, too")
    add_declared(verb, declared(Configured.accuracy))


def _add_compare(verb: argparse.ArgumentParser, listing: Listing) -> None:
    add_source(verb, listing, "records")
    _add_data(verb, listing)
    verb.add_argument("out", type=Path, metavar="OUT", help=_OUT)
    add_declared(verb, declared(Configured.compare))


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
    add_source(verb, listing, "plan")
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


def _add_from_files(verb: argparse.ArgumentParser, listing: Listing) -> None:
    text = "a folder of noisy measurement files (docs/noisy-measurement-files.md)"
    verb.add_argument("files", type=Path, metavar="NMF", help=text)
    verb.add_argument("out", type=Path, metavar="OUT", help=_OUT)
    verb.add_argument("--dataset", metavar="NAME", help="such as US_Person_PL_PROD, where there are several")
    text = "of the queries and the order of their passes (default: that of the dataset)"
    verb.add_argument("--config", metavar="CONFIG", help=text)
    verb.add_argument("--states", type=_states, metavar="50,...", help="these alone; with a digit before, one branch")
    text = "a reference file of blocks, for places and the like"
    verb.add_argument("--geography", type=Path, metavar="GRFC", help=text)
    text = "exact totals of states, which the files lack: columns state and total"
    verb.add_argument("--totals", type=Path, metavar="FILE", help=text)
    add_declared(verb, CHANGES)
    add_declared(verb, {name: OPTIONS[name] for name in OF_MEASUREMENTS}, listing)
    verb.add_argument("--overwrite", action="store_true", help="replace an earlier release in OUT")
    verb.add_argument("--json", action="store_true", help="print the manifest")


def _states(text: str) -> tuple[str, ...]:
    return tuple(state.strip() for state in text.split(","))


def _validate(key: str, options: argparse.Namespace) -> VerbAnswer:
    return _of_each(key, options, "validate", partial(_validated, key))


def _validated(key: str, asked: Configured, options: argparse.Namespace, own: dict[str, Any]) -> VerbAnswer:
    found = asked.validate(options.data, **own)
    if "truncation" in PRODUCTS.listing(key).takes:
        say_confidential(options)
    from yupana.cli.plan_text import left_out_text
    from yupana.confidential.records.validation import failing

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
    if options.epsilon is not None and options.targets is not None:
        raise ConfigError("plan takes --targets or --epsilon, not both: each asks for other budgets")
    return _of_each(key, options, "plan", _planned)


def _planned(asked: Configured, options: argparse.Namespace, _: dict[str, Any]) -> VerbAnswer:
    from yupana.plan.exact_loss import plan_as_json

    more: dict[str, Any] = {}
    if options.epsilon is not None:
        asked, found = asked.scaled(options.epsilon, options.delta)
        more = {"scaled": found.as_json()}
    if options.targets is not None:
        asked, spent = asked.solved(options.targets)
        more = {} if spent is None else {"spent": spent.as_json()}
    product = asked.product
    if options.epsilon is not None or options.targets is not None:
        more["configuration"] = product.document(asked.config)
    delta = float(options.delta) if options.delta is not None else DEFAULT_DELTA
    plan = asked.plan()
    more = product.promises(asked.config, plan, delta) | more
    production = asked.production() if getattr(options, "diff", None) else None
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
    asked, own = _asked("run", key, options)
    with resumable(f"{key} run", options):
        release = asked.run(options.data, options.out, **own)
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
    asked, own = _asked("exact", key, options)
    _say(options, asked.exact(options.data, options.out, **own))


def _say(options: argparse.Namespace, release: "ReleaseFolder") -> None:
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
    return _of_each(key, options, "accuracy", partial(_observed, key))


def _observed(key: str, asked: Configured, options: argparse.Namespace, own: dict[str, Any]) -> VerbAnswer:
    observed = asked.accuracy(options.data, options.out, **own).observed
    listing, rows = PRODUCTS.listing(key), [asdict(row) for row in observed.rows]
    if not listing.estimators:
        say_confidential(options)
    if options.json:
        if listing.estimators:
            return VerbAnswer({"product": observed.product, "trials": own.get("trials", 1), "rows": rows}, ())
        return VerbAnswer({"rows": rows, **observed.told} if observed.told else rows, ())
    from yupana.cli.accuracy_text import cells_text, counts_text, groups_text
    from yupana.cli.plan_text import criteria_text

    if listing.estimators:
        lines = counts_text(observed.rows)
    else:
        lines = groups_text(observed.rows) if "parameters" in listing.takes else cells_text(observed.rows)
    return VerbAnswer(rows, [*lines, *criteria_text(observed.told.get("criteria", {}))])


def _compare(key: str, options: argparse.Namespace) -> None:
    asked, own = _asked("compare", key, options)
    found = asked.compare(options.data, options.out, **own)
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
    told = {
        name: value for name, value in vars(options).items() if name not in {"command", "json"} and value is not None
    }
    _say(options, yupana.estimate_measurements(**told, progress=True))


def _intervals(_: str, options: argparse.Namespace) -> None:
    print_release(options, yupana.topdown_intervals(**given(yupana.topdown_intervals, options), progress=True))


def _is_draft(path: Path) -> bool:
    """Whether a file is the beginning of a configuration that a killed run left."""
    return path.name.endswith(".partial") and path.read_bytes().startswith(b"{\n")


def _strategy(key: str, options: argparse.Namespace) -> None:
    from yupana.cli.strategy_text import budgets_text, strategy_text
    from yupana.products.strategy.budgets import budgets_as_json
    from yupana.products.topdown.strategy import strategy_as_json

    place = None if options.out is None else NewFile(options.out, "the configuration", _is_draft, 0o666)
    if place is not None:
        place.check()
    asked, own = _asked("strategy", key, options)
    found = asked.strategy(**own)
    product, of_queries = PRODUCTS[key], key == "topdown"
    document = product.document(found.found)
    if place is not None:
        with whole():
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


def say_confidential(options: argparse.Namespace) -> None:
    """Say before anything else that what follows tells the truth; beside JSON, on the other stream."""
    if options.internal:
        text = "CONFIDENTIAL: this tells the truth about the records and must not be published."
        print(text, file=sys.stderr if options.json else sys.stdout)


def print_release(options: argparse.Namespace, release: "ReleaseFolder") -> None:
    """Say what has been released."""
    if options.json:
        print_json(release.manifest)
    else:
        number = len(release.manifest["tables"])
        tables = f"{number} table{'s' * (number != 1)}"
        print(f"{options.out}: {tables} and manifest.json; {release.manifest['status']}")
