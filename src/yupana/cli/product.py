"""`yupana PRODUCT plan|validate|run|exact|accuracy|compare|strategy`: what is asked of a configured product."""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from yupana.cli.options import tell
from yupana.errors import ConfigError, InputError
from yupana.files.regular import NewFile
from yupana.files.store import store_at
from yupana.interface.arguments import out_of
from yupana.interface.configured import Configured, told_together
from yupana.plan.plan import DEFAULT_DELTA
from yupana.products.parts import data_of, not_added

if TYPE_CHECKING:
    from yupana.interface.options import Place
    from yupana.release.release import ReleaseFolder

_DIFFERENCE = ("measurement", "value", "here", "production")


@dataclass(frozen=True, slots=True)
class _VerbAnswer:
    """What a verb tells of one configuration."""

    json: object  # with `--json`
    lines: Sequence[str]  # else
    wrong: str = ""  # why the command fails, after all that is told


def _do(verb: str, key: str, options: argparse.Namespace) -> None:
    """Do what a verb asks of a product, and tell it."""
    asked, own = _asked(verb, key, options)
    by_part = verb in _OF_PARTS and asked.parts
    answer = _of_each(verb, asked, options, own) if by_part else _VERBS[verb](asked, options, own)
    if answer is None:
        return
    tell(options, answer.json, answer.lines)
    if answer.wrong:
        raise InputError(answer.wrong)


def _of_each(verb: str, asked: Configured, options: argparse.Namespace, own: dict[str, Any]) -> _VerbAnswer:
    """What a verb answers of each part of a document of parts."""
    if getattr(options, "targets", None) is not None:
        raise ConfigError("--targets: they are of one plan; name the configuration of a part")
    if getattr(options, "beside", None):
        raise ConfigError("--beside: name configurations of one plan, not of parts")
    each = {name: _of_part(options, asked, name) for name in asked.parts}
    for part in each.values():
        if getattr(part, "out", None) is not None:
            out_of(part.out, overwrite=part.overwrite)
    found = ((name, _VERBS[verb](asked.parts[name], part, own)) for name, part in each.items())
    answers = {name: answer for name, answer in found if answer is not None}
    lines = [line for name, answer in answers.items() for line in (f"{name}:", *answer.lines, "")]
    wrong = "; ".join(answer.wrong for answer in answers.values() if answer.wrong)
    if verb == "plan":
        lines.append(not_added(case.plan() for case in asked.parts.values()))
    told = {"product": asked.title, "parts": {name: answer.json for name, answer in answers.items()}}
    return _VerbAnswer(told, lines, wrong)


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


_PLACES: Final = frozenset(
    {"config", "data", "out", "command", "json", "targets", "epsilon", "delta", "diff", "beside"}
)
"""Arguments that are no options of `setup` or of the verbs of a configured product."""


def _asked(verb: str, key: str, options: argparse.Namespace) -> tuple[Configured, dict[str, Any]]:
    """A product set up by the options that were given, and what is left of them for a verb."""
    if verb == "plan" and options.epsilon is not None and options.targets is not None:
        raise ConfigError("plan takes --targets or --epsilon, not both: each asks for other budgets")
    told = {name: value for name, value in vars(options).items() if name not in _PLACES}
    if verb == "strategy":
        told["targets"] = options.targets
        if options.out is not None:
            _place_found(options.out).check()
    elif verb != "plan":
        told["progress"] = True
    asked, own = told_together(verb, key, options.config, told)
    print_remarks([note for case in asked.cases.values() for note in getattr(case.config, "notes", ())])
    return asked, own


def _validate(asked: Configured, options: argparse.Namespace, own: dict[str, Any]) -> _VerbAnswer:
    found = asked.validate(options.data, **own)
    if "truncation" in asked.listing.takes:
        say_confidential(options)
    from yupana.cli.product_text import left_out_text
    from yupana.confidential.records.validation import failing

    broken = failing(found)
    print_remarks(found.remarks)
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
    return _VerbAnswer({"confidential": True, "valid": not broken, **told}, lines, wrong)


def _plan(asked: Configured, options: argparse.Namespace, _: dict[str, Any]) -> _VerbAnswer:
    from yupana.plan.exact_loss import plan_as_json

    more: dict[str, Any] = {}
    if options.epsilon is not None:
        asked, factor, kept = asked.scaled(options.epsilon, options.delta)
        more = {"scaled": {"factor": str(factor), **kept.as_json()}}
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
        return _VerbAnswer(answer, ())
    from yupana.cli.product_text import differences_text, plan_text, promises_text

    lines = [plan_text(plan, delta), *promises_text(plan, more)]
    if production is not None:
        lines += ["", *differences_text(differences)]
    return _VerbAnswer(answer, lines)


def _run(asked: Configured, options: argparse.Namespace, own: dict[str, Any]) -> None:
    with resumable(f"{asked.product.key} run", options):
        release = asked.run(options.data, options.out, **own)
    say(options, release)


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


def _exact(asked: Configured, options: argparse.Namespace, own: dict[str, Any]) -> None:
    say(options, asked.exact(options.data, options.out, **own))


def say(options: argparse.Namespace, release: "ReleaseFolder") -> None:
    """Say what has been released."""
    print_release(options, release)
    parts = list(release.parts.values()) or [release]
    remarks = (text for part in parts for text in part.manifest["parameters"].get("remarks", ()))
    print_remarks(list(dict.fromkeys(remarks)))
    parameters = parts[0].manifest["parameters"]
    # The list of states is public.
    absent = sorted(set(parameters.get("state_filter", ())) - set(parameters.get("states", ())))
    if absent and not options.json:
        from yupana.confidential.records.phsafe_records import absent_words

        print(absent_words(absent))


def print_remarks(remarks: Iterable[str]) -> None:
    """Tell what must be known of what was made, beside the answer."""
    for remark in remarks:
        print(f"remark: {remark}", file=sys.stderr)


def _accuracy(asked: Configured, options: argparse.Namespace, own: dict[str, Any]) -> _VerbAnswer:
    if getattr(options, "beside", None):
        return _beside(asked, options, own)
    observed = asked.accuracy(options.data, options.out, **own).observed
    listing, rows = asked.listing, [asdict(row) for row in observed.rows]
    if not listing.estimators:
        say_confidential(options)
    if options.json:
        if listing.estimators:
            return _VerbAnswer({"product": observed.product, "trials": own.get("trials", 1), "rows": rows}, ())
        return _VerbAnswer({"rows": rows, **observed.told} if observed.told else rows, ())
    from yupana.cli.product_text import cells_text, counts_text, criteria_text, groups_text

    if listing.estimators:
        lines = counts_text(observed.rows)
    else:
        lines = groups_text(observed.rows) if "parameters" in listing.takes else cells_text(observed.rows)
    return _VerbAnswer(rows, [*lines, *criteria_text(observed.told.get("criteria", {}))])


def _beside(asked: Configured, options: argparse.Namespace, own: dict[str, Any]) -> _VerbAnswer:
    """The errors of several configurations; all are read before the first is run."""
    from yupana.cli.product_text import errors_text

    if options.out is not None:
        raise ConfigError(
            "--beside prints the errors of several configurations, and OUT is for those of one: leave out OUT "
            "(--json prints a document)"
        )
    others = (argparse.Namespace(**vars(options) | {"config": str(config)}) for config in options.beside)
    cases = [(str(options.config), asked)]
    cases += [(other.config, _asked("accuracy", asked.product.key, other)[0]) for other in others]
    if any(case.parts for _, case in cases):
        raise ConfigError("--beside: name configurations of one plan, not of parts")
    found = [(name, case.accuracy(options.data, **own).observed.rows) for name, case in cases]
    told = [{"config": name, "rows": [asdict(row) for row in rows]} for name, rows in found]
    return _VerbAnswer({"trials": own.get("trials", 1), "configurations": told}, list(errors_text(found)))


def _compare(asked: Configured, options: argparse.Namespace, own: dict[str, Any]) -> None:
    found = asked.compare(options.data, options.out, **own)
    say_confidential(options)
    from yupana.cli.product_text import comparison_text

    told = {name: [asdict(row) for row in getattr(found, name)] for name in ("errors", "additivity", "learnt")}
    answer = {"methods": [method.name for method in found.methods], **told, "best_guess": found.best_guess}
    made = f"{options.out}: errors, additivity, differencing (.csv) and report.html; not for release"
    tell(options, answer, [*comparison_text(found), made])


def _place_found(out: Path) -> NewFile:
    """Where the configuration that is found is written."""
    return NewFile(out, "the configuration", _is_draft, 0o666)


def _is_draft(path: Path) -> bool:
    """Whether a file is the beginning of a configuration that a killed run left."""
    return path.name.endswith(".partial") and path.read_bytes().startswith(b"{\n")


def _strategy(asked: Configured, options: argparse.Namespace, own: dict[str, Any]) -> None:
    from yupana.cli.product_text import budgets_text, strategy_text
    from yupana.products.strategy import budgets_as_json
    from yupana.products.topdown.strategy import strategy_as_json

    found = asked.strategy(**own)
    product, of_queries = asked.product, asked.product.key == "topdown"
    document = product.document(found.found)
    if options.out is not None:
        _place_found(options.out).put(json.dumps(document, indent=1) + "\n")
    told = strategy_as_json(found) if of_queries else budgets_as_json(product, found)
    lines = strategy_text(found) if of_queries else budgets_text(product, found)
    if options.out is not None:
        beside = "; name the folder of its public files by --codes" if "codes" in asked.listing.takes else ""
        lines.append(f"{options.out}: written; see what it costs with plan, and give it to run{beside}")
    tell(options, told | {"configuration": document}, lines)


_VERBS: "Final[Mapping[str, Callable[[Configured, argparse.Namespace, dict[str, Any]], _VerbAnswer | None]]]" = {
    "validate": _validate,
    "plan": _plan,
    "run": _run,
    "exact": _exact,
    "accuracy": _accuracy,
    "compare": _compare,
    "strategy": _strategy,
}
"""What does each, of what was set up, the options and those that are its own; what it returns is told."""

_OF_PARTS: Final = {"validate", "plan", "accuracy"}
"""Of a document of parts these are asked part by part."""

DO: Final = {verb: partial(_do, verb) for verb in _VERBS}
"""What does each, given the key of a product and the options."""


def say_confidential(options: argparse.Namespace) -> None:
    """Say before anything else that what follows tells the truth; beside JSON, on the other stream."""
    if options.internal:
        text = "CONFIDENTIAL: this tells the truth about the records and must not be published."
        print(text, file=sys.stderr if options.json else sys.stdout)


def print_release(options: argparse.Namespace, release: "ReleaseFolder", *more: str) -> None:
    """Say what has been released."""
    number = len(release.manifest["tables"])
    tables = f"{number} table{'s' * (number != 1)}"
    told = f"{options.out}: {tables} and manifest.json; {release.manifest['status']}"
    tell(options, release.manifest, [told, *more])
