"""The options of a configuration: what its document says beside budgets that decides how much noise there is."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from yupana.errors import ConfigError
from yupana.explore.scenario import Fault
from yupana.files.document import Changes
from yupana.products.product import Product

_OF_RECORDS: Final = frozenset(
    (
        *("files", "recodes", "areas", "groups", "blocks", "schema", "constraints", "queries", "passes", "reader"),
        *("criteria", "run_us", "run_pr", "neighbours", "unit", "privacy_unit", "truncation_key", "consistency"),
        "stated",
    )
)
"""Keys that say what records hold and how they are read and added up: no question of a budget."""

_LONGEST: Final = 6
"""Numbers of a list that can be set."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting: a choice where it has choices, else a number or numbers."""

    key: str  # its place in the document, as `Changes` names it; or a word of the page's own
    label: str
    start: str  # what it begins with
    hint: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)  # by value
    group: str = ""  # options of a group are told together
    numbers: bool = False  # whether it is a list of numbers

    def as_json(self) -> dict[str, Any]:
        """As the page reads it."""
        return {name: getattr(self, name) for name in ("key", "label", "hint", "choices", "group")}

    def value(self, text: str) -> str:
        """What is typed, as `Changes` reads it."""
        if self.numbers:
            return f"[{text.strip().strip('[]')}]"
        return text.strip()


def options_of(product: Product[Any], config: Any, read: Callable[[Changes], Any]) -> Mapping[str, Setting]:  # noqa: ANN401
    """The options of a configuration by their places. A choice that the product refuses here is not offered."""
    entries = product.entries(config)
    document, schema = product.document(config), product.schema()
    # What other budgets change in the document is theirs.
    others = product.document(product.with_budgets(config, {n: 2 * e.budget + (i + 1) for i, (n, e) in
                                                           enumerate(entries.items())}))  # fmt: skip
    found: dict[str, Setting] = {}
    names = {**product.words.tables, **product.words.levels}
    for path, value in _leaves(document):
        if not _OF_RECORDS.isdisjoint(path) or _at(others, path) != value or "budget" in path:
            continue
        option = _option(path, value, _described(schema, path), names)
        if option is None or option.hint.startswith("the budget of"):
            continue
        choices = {key: words for key, words in option.choices.items() if _can(read, option, key)}
        if option.choices and len(choices) < 2:
            continue
        found[option.key] = replace(option, choices=choices)
    return found


def values_of(product: Product[Any], config: Any) -> dict[str, str]:  # noqa: ANN401 (the product's own)
    """What the document of a configuration says of every setting, by its place."""
    schema = product.schema()
    found = (_option(path, value, _described(schema, path), {}) for path, value in _leaves(product.document(config)))
    return {option.key: option.start for option in found if option is not None}


def _can(read: Callable[[Changes], Any], option: Setting, value: str) -> bool:
    if value == option.start:
        return True
    try:
        read(Changes(((option.key, option.value(value)),)))
    except ConfigError:
        return False
    return True


def _leaves(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(value, dict):
        for key, of in value.items():
            yield from _leaves(of, (*path, str(key)))
    elif path:
        yield path, value


def _at(document: object, path: tuple[str, ...]) -> object:
    for key in path:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _described(schema: Mapping[str, Any], path: tuple[str, ...]) -> Mapping[str, Any]:
    """What a schema says of a place; nothing where it names no such key."""
    at: Any = schema
    for key in path:
        under = at.get("properties", {}).get(key, at.get("additionalProperties"))
        at = under if isinstance(under, Mapping) else {}
        if "$ref" in at:
            at = schema.get("$defs", {}).get(str(at["$ref"]).rpartition("/")[2], {})
    return at if isinstance(at, Mapping) else {}


def _option(
    path: tuple[str, ...], value: object, described: Mapping[str, Any], names: Mapping[str, str]
) -> Setting | None:
    """The option of a leaf; None of what is no number and no choice."""
    place = ".".join(key if key.replace("_", "").replace("-", "").isalnum() else f'"{key}"' for key in path)
    last, group = path[-1].strip("()").replace(", ", " "), " ".join(path[:-1]).replace("_", " ")
    label = f"{last}: {names[last]}" if last in names else last.replace("_", " ")
    hint = str(described.get("description", ""))
    if isinstance(value, bool):
        return Setting(place, label, json.dumps(value), hint, {"true": "yes", "false": "no"}, group)
    if isinstance(value, int | float):
        return Setting(place, label, json.dumps(value), hint, group=group)
    if isinstance(value, str) and value in (allowed := described.get("enum", ())):
        return Setting(place, label, value, hint, {str(one): str(one) for one in allowed}, group)
    if isinstance(value, list) and 0 < len(value) <= _LONGEST and all(type(one) is int for one in value):
        return Setting(place, label, ", ".join(map(str, value)), hint, group=group, numbers=True)
    return None


def faults_of(error: ConfigError, options: Mapping[str, Setting]) -> list[Fault]:
    """Each fault of a configuration by the option that it names, or by none."""
    lines = str(error).splitlines()
    found = []
    for line in lines[1:] or lines:
        words = line.strip()
        if words.startswith("line "):
            words = words.partition(": ")[2]
        place, _, message = words.partition(": ")
        plain = {key.replace('"', ""): key for key in options}
        key = next((key for text, key in plain.items() if place == text or place.startswith(f"{text}[")), "")
        found.append(Fault(key, message if key else words))
    return found
