"""A scenario: what somebody chose on the page, as the page sends it and as a file keeps it. Read strictly."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

FORMAT: Final = "yupana-scenario-1"
LONGEST: Final = 400
"""Characters of a value. Exact budgets are long, but not that long."""

_LONGEST_NAME: Final = 80

By = Literal["budget", "margin"]


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one field, in a sentence that says what to do; an empty field is the whole."""

    field: str
    message: str


class RefusedError(Exception):
    """Filled that no plan can be made of, with every fault."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(f"{fault.field}: {fault.message}" for fault in self.faults))


@dataclass(frozen=True, slots=True)
class Typed:
    """One budget, given as it is or by the margin of error it is to buy."""

    on: bool  # whether it is measured at all
    by: By
    value: str  # as typed


@dataclass(frozen=True, slots=True)
class Filled:
    """Everything that can be set for one product."""

    fields: Mapping[str, str] = field(default_factory=dict)  # by key: as typed
    entries: Mapping[str, Typed] = field(default_factory=dict)  # by name: in the order of the page

    def with_entries(self, changed: Mapping[str, Typed]) -> "Filled":
        """The same with some entries replaced."""
        return replace(self, entries={name: changed.get(name, entry) for name, entry in self.entries.items()})


@dataclass(frozen=True, slots=True)
class Scenario:
    """Filled with a name."""

    product: str
    name: str
    settings: Filled
    total: str = ""  # the exact total that its file says; empty where it says none


def read_settings(value: object, known: Filled) -> Filled:
    """Read settings that must have exactly the keys of others.

    Raises
    ------
    RefusedError
        Naming every key that is missing, unknown or of the wrong kind.
    """
    if not isinstance(value, dict) or set(value) != {"fields", "entries"}:
        raise RefusedError([Fault("", "settings must be an object with the keys fields and entries")])
    faults: list[Fault] = []
    fields = _keyed("field", value["fields"], tuple(known.fields), faults)
    entries = _keyed("entry", value["entries"], tuple(known.entries), faults)
    for key, text in fields.items():
        if not _is_text(text):
            faults.append(Fault(key, "must be a text"))
    read = {name: _entry(name, entry, faults) for name, entry in entries.items()}
    if faults:
        raise RefusedError(faults)
    return Filled({key: fields[key] for key in known.fields}, {name: read[name] for name in known.entries})


def _keyed(what: str, value: object, known: tuple[str, ...], faults: list[Fault]) -> dict[str, Any]:
    if not isinstance(value, dict):
        faults.append(Fault("", f"every {what} must stand under its key in an object"))
        return {}
    faults += [
        Fault("", f"the {what} {key!r} is missing: the file is incomplete, or of another version")
        for key in known
        if key not in value
    ]
    faults += [
        Fault("", f"the {what} {str(key)[:80]!r} is unknown: the file was edited, or is of another version")
        for key in value
        if key not in known
    ]
    return {key: item for key, item in value.items() if key in known}


def _entry(name: str, value: object, faults: list[Fault]) -> Typed:
    if (
        isinstance(value, dict)
        and set(value) == {"on", "by", "value"}
        and isinstance(value["on"], bool)
        and value["by"] in ("budget", "margin")
        and _is_text(value["value"])
    ):
        return Typed(value["on"], value["by"], value["value"])
    faults.append(Fault(name, "must have on (true or false), by ('budget' or 'margin') and value (a text)"))
    return Typed(on=False, by="budget", value="")


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST and (value.isprintable() or not value)


def read_name(value: object) -> str:
    """The name of a scenario.

    Raises
    ------
    RefusedError
        If it is no line of text.
    """
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST_NAME or not value.isprintable():
        raise RefusedError([Fault("name", f"must be one line of 1 to {_LONGEST_NAME} characters")])
    return value.strip()


def read_scenario(text: str, known: Collection[str], start: Callable[[str], Filled]) -> Scenario:
    """Read the file of a scenario.

    Parameters
    ----------
    known : collection of str
        The products.
    start : callable
        From a product to what its settings look like.

    Raises
    ------
    RefusedError
        If it is none, or has been edited into none.
    """
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        message = f"not a scenario: not JSON at line {error.lineno}, column {error.colno}"
        raise RefusedError([Fault("file", message)]) from None
    except RecursionError:
        raise RefusedError([Fault("file", "not a scenario: nested too deeply")]) from None
    except ValueError:
        # Python reads no whole number of thousands of digits.
        raise RefusedError([Fault("file", "not a scenario: it holds a number that is too long")]) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise RefusedError([Fault("file", f'not a scenario: a scenario says "format": "{FORMAT}"')])
    product = document.get("product")
    if not isinstance(product, str) or product not in known:
        raise RefusedError([Fault("file", f"the product must be one of {', '.join(known)}")])
    name = read_name(document.get("name"))
    try:
        settings = read_settings(document.get("settings"), start(product))
    except RefusedError as refused:
        raise RefusedError(
            Fault("file", f"{fault.field}: {fault.message}".removeprefix(": ")) for fault in refused.faults
        ) from None
    total, version = document.get("total", ""), document.get("yupana", "")
    if not _is_text(total) or not _is_text(version):
        raise RefusedError([Fault("file", "total and yupana must be texts")])
    return Scenario(product, name, settings, total)
