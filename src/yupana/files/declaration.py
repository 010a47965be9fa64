"""What a document may hold, declared once: read with all faults named at once, and shown to editors as JSON Schema.

A document is declared by a frozen dataclass whose fields are made by `key`. A fault begins with its place, such as
``spine.kind``. What is refused is None, or is left out of its list or table. Public.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Generic, TypeVar, overload

from yupana.errors import nearest
from yupana.files.document import Number, check_keys, is_text, read_document, refuse
from yupana.files.names import LONGEST, RULE, fault_of, normal
from yupana.privacy.exact import INFINITE, Budget, read_exact

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")
C = TypeVar("C", bound=str)
Schema = dict[str, Any]
Reader = Callable[[str, object, list[str]], T | None]
"""Makes what it says of the value at a place; None, with faults, if it is refused."""


@dataclass(frozen=True, slots=True)
class Expected(Generic[T_co]):
    """What a value must be."""

    words: str  # the same in words, after "must be"
    schema: Schema  # the same as JSON Schema
    read: Reader[T_co]
    fits: Callable[[object], bool]  # whether a value is meant to be one of these, be it with faults inside

    def __or__(self, other: "Expected[U]") -> "Expected[T_co | U]":
        words = f"{self.words}, or {other.words}"
        each = [one for of in (self, other) for one in of.schema.get("anyOf", [of.schema])]

        def read(place: str, value: object, faults: list[str]) -> T_co | U | None:
            for of in (self, other):
                if of.fits(value):
                    return of.read(place, value, faults)
            must_be(place, words, faults)
            return None

        return Expected(words, {"anyOf": each}, read, lambda value: self.fits(value) or other.fits(value))

    def made(self, make: Callable[[str, T_co, list[str]], U | None]) -> "Expected[U]":
        """What a function makes of a value without faults; None, with faults, if it makes nothing."""

        def read(place: str, value: object, faults: list[str]) -> U | None:
            before = len(faults)
            found = self.read(place, value, faults)
            return None if found is None or len(faults) > before else make(place, found, faults)

        return Expected(self.words, self.schema, read, self.fits)

    def checked(self, check: Callable[[str, T_co, list[str]], None], **schema: object) -> "Expected[T_co]":
        """The same, of which a function names more faults; ``schema`` says as much as it can of these."""

        def read(place: str, value: object, faults: list[str]) -> T_co | None:
            before = len(faults)
            found = self.read(place, value, faults)
            if found is not None and len(faults) == before:
                check(place, found, faults)
            return found

        return replace(self, schema=self.schema | schema, read=read)

    def said(self, says: str, **schema: object) -> "Expected[T_co]":
        """The same, described to editors."""
        return replace(self, schema=self.schema | _said(says) | schema)


def must_be(place: str, words: str, faults: list[str]) -> None:
    """Say of a value that is refused what it must be."""
    faults.append(f"{f'{place}:' if place else 'the top level'} must be {words}")


def below(place: str, name: str) -> str:
    """The place of a key."""
    return f"{place}.{name}" if place else name


def scalar(words: str, take: Callable[[object], T | None], schema: Schema) -> Expected[T]:
    """A value without others in it; ``take`` gives None if it is none, or raises ValueError with what is wrong."""

    def read(place: str, value: object, faults: list[str]) -> T | None:
        try:
            found = take(value)
        except ValueError as error:
            faults.append(f"{place}: {error}")
            return None
        if found is None:
            must_be(place, words, faults)
        return found

    def fits(value: object) -> bool:
        faults: list[str] = []
        read("", value, faults)
        return not faults or not faults[0].endswith(words)

    return Expected(words, schema, read, fits)


def list_of(
    item: Expected[T], words: str, *, each: bool = False, least: int = 1, most: int | None = None
) -> Expected[tuple[T, ...]]:
    """A list; with ``each`` there is a fault of each item that is refused, with its number, else one of the list."""

    def read(place: str, value: object, faults: list[str]) -> tuple[T, ...] | None:
        told = value if isinstance(value, list) else []
        inner: list[str] = []
        found = [item.read(f"{place}[{i}]", one, inner) for i, one in enumerate(told)]
        right = isinstance(value, list) and least <= len(told) <= (most or len(told))
        if not right or (inner and not each):
            must_be(place, words, faults)
            return None
        faults += inner
        return tuple(one for one in found if one is not None)

    ends = {"minItems": least, "maxItems": most}
    schema = {"type": "array", "items": item.schema, **{name: end for name, end in ends.items() if end}}
    return Expected(words, schema, read, lambda value: isinstance(value, list))


def table_of(
    value: Expected[T],
    words: str = "a table of keys and values",
    *,
    instead: T | None = None,
    name: Expected[str] | None = None,
    offered: Collection[str] = (),
) -> Expected[dict[str, T]]:
    """A table whose keys the user chooses.

    Parameters
    ----------
    value : Expected
        What each key says.
    instead : optional
        What stands for a value that is refused.
    name : Expected, optional
        What keys are.
    offered : collection of str
        Keys that editors offer.
    """

    def read(place: str, told: object, faults: list[str]) -> dict[str, T] | None:
        if not isinstance(told, dict):
            must_be(place, words, faults)
            return None
        found = {}
        for key, of in told.items():
            here = below(place, key if len(key) <= LONGEST and key.isprintable() else f"{ascii(key)[1:41]}...")
            if name is not None:
                name.read(here, key, faults)
            read = value.read(here, of, faults)
            found[key] = instead if read is None else read
        return {key: one for key, one in found.items() if one is not None}

    schema = {
        "type": "object",
        **({"properties": dict.fromkeys(offered, value.schema)} if offered else {}),
        **({"propertyNames": name.schema} if name else {}),
        "additionalProperties": value.schema,
    }
    return Expected(words, schema, read, lambda told: isinstance(told, dict))


def declared(
    declaration: type[T],
    *,
    partial: bool = False,
    when: Callable[[dict[str, Any]], bool] | None = None,
    dashes: bool = False,
) -> Expected[T]:
    """A table with the keys of a declaration.

    Parameters
    ----------
    partial : bool
        Whether the rest is made where a key is refused or missing; such a key is None, or has its default.
    when : callable
        Where there are several declarations: whether a table is meant to be one of these.
    dashes : bool
        Whether keys may have - in place of _.
    """
    keys = {of.name.removesuffix("_"): of for of in fields(declaration)}  # type: ignore[arg-type]
    optional = [name for name, of in keys.items() if not of.metadata["required"]]
    kinds = {name: _shown(of.metadata["kind"], of) for name, of in keys.items()}
    table = keyed(kinds, (declaration.__doc__ or "").partition("\n\n")[0], optional=optional, dashes=dashes)

    def read(place: str, value: object, faults: list[str]) -> T | None:
        before = len(faults)
        found = table.read(place, value, faults)
        if found is None or (len(faults) > before and not partial):
            return None
        return declaration(**{keys[name].name: one for name, one in found.items()})

    def fits(told: object) -> bool:
        return isinstance(told, dict) and (when is None or when(told))

    return Expected(table.words, table.schema, read, fits)


def _shown(kind: Expected[T], of: Field[Any]) -> Expected[T]:
    """A key as editors show it: what it says, and its default where that is a word, a number or a truth value."""
    default = of.metadata["default"]
    is_told = isinstance(default, bool) or (isinstance(default, int | str) and default)
    return replace(kind, schema=kind.schema | _said(of.metadata["says"]) | ({"default": default} if is_told else {}))


def keyed(
    kinds: Mapping[str, Expected[T]],
    says: str = "",
    *,
    optional: Collection[str] = (),
    dashes: bool = False,
    words: str = "",
    others: bool = False,
) -> Expected[dict[str, T]]:
    """A table with these keys alone, or with any others; what is refused or missing is left out."""
    required = tuple(name for name in kinds if name not in optional)
    words = words or f"a table of {', '.join(kinds)}"

    def read(place: str, value: object, faults: list[str]) -> dict[str, T] | None:
        if not isinstance(value, dict):
            must_be(place, words, faults)
            return None
        told = {name.replace("-", "_"): of for name, of in value.items()} if dashes else value
        known = {name: of for name, of in told.items() if name in kinds} if others else told
        check_keys(place, known, required, faults, tuple(name for name in kinds if name in optional))
        found = {name: of.read(below(place, name), told[name], faults) for name, of in kinds.items() if name in told}
        return {name: one for name, one in found.items() if one is not None}

    properties = {name: of.schema for name, of in kinds.items()}
    schema = _said(says) | {
        "type": "object",
        "properties": properties | ({name.replace("_", "-"): of for name, of in properties.items()} if dashes else {}),
        **({"required": list(required)} if required else {}),
        "additionalProperties": others,
    }
    return Expected(words, schema, read, lambda told: isinstance(told, dict))


def _said(says: str) -> Schema:
    return {"description": " ".join(says.split())} if says else {}


def schema_of(title: str, kind: Expected[Any]) -> Schema:
    """The schema of a whole document."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **kind.schema}


def read_as(path: Path, kind: Expected[T], check: Callable[[T, list[str]], None] | None = None) -> T:
    """Read a document in TOML or JSON; ``check`` names more faults of what is read.

    Raises
    ------
    ConfigError
        Naming every fault.
    """
    document, faults = read_document(path)
    found = kind.read("", document, faults)
    if found is not None and check is not None:
        check(found, faults)
    if found is None or faults:
        raise refuse(path, faults)
    return found


@overload
def key(kind: Expected[T], says: str = "") -> T: ...
@overload
def key(kind: Expected[T], says: str = "", *, default: U) -> T | U: ...
def key(kind: Expected[Any], says: str = "", *, default: Any = MISSING) -> Any:
    """A key of a declaration; without a default it is required. ``says`` describes it to editors."""
    metadata = {"kind": kind, "says": says, "required": default is MISSING, "default": default}
    return field(default_factory=lambda: None if default is MISSING else default, metadata=metadata)


_WORD: Final = "[A-Za-z][A-Za-z0-9_-]{0,62}"
TEXT: Final = scalar(
    "a text of one line", lambda told: str(told) if is_text(told) else None, {"type": "string", "pattern": r"\S"}
)


def _any_text(told: object) -> str | None:
    """A text that can be written: JSON can spell half a character."""
    if not isinstance(told, str) or isinstance(told, Number):
        return None
    try:
        told.encode()
    except UnicodeEncodeError:
        return None
    return told


ANY_TEXT: Final = scalar("a text", _any_text, {"type": "string"})
SCALAR: Final = scalar(
    "a number or a text", lambda told: told if isinstance(told, str) else None, {"type": ["string", "number"]}
)
WORD: Final = scalar(
    "a word: letters, digits, - and _, beginning with a letter",
    lambda told: str(told) if is_text(told) and re.fullmatch(_WORD, str(told)) else None,
    {"pattern": f"^{_WORD}$"},
)


def _name(*, parted: bool) -> Expected[str]:
    def take(told: object) -> str | None:
        if not isinstance(told, str) or isinstance(told, Number):
            return None
        if fault := fault_of(own := normal(told), parted=parted):
            raise ValueError(fault)
        return own

    never = r'|"\\' + ("./:" if parted else "")
    return scalar(RULE, take, {"type": "string", "maxLength": LONGEST, "pattern": f"^[^{never}\\s_=+@-][^{never}]*$"})


NAME: Final = _name(parted=True)
"""What people call a file, a table, a kind of areas, a level or a criterion (`yupana.files.names`)."""

COLUMN: Final = _name(parted=False)
"""What people call a column, a recode or a group, which may have ``.``, ``/`` and ``:`` in it, too."""

FLAG: Final = scalar("true or false", lambda told: told if isinstance(told, bool) else None, {"type": "boolean"})


def choice(*choices: C) -> Expected[C]:
    """One of several texts."""
    words = " or ".join(map(repr, choices))

    def take(told: object) -> C | None:
        if is_text(told) and told not in choices:
            raise ValueError(f"must be {words}{nearest(str(told), choices)}")
        return next((one for one in choices if told == one), None)

    return scalar(words, take, {"enum": list(choices)})


def whole(least: int, most: int = 10**15, words: str = "") -> Expected[int]:
    """A whole number, written without point and exponent."""

    def take(told: object) -> int | None:
        is_whole = isinstance(told, Number) and told.isdecimal() and len(told) <= len(str(most))
        return number if is_whole and least <= (number := int(str(told))) <= most else None

    words = words or f"a whole number from {least} to {most}"
    return scalar(words, take, {"type": "integer", "minimum": least, "maximum": most})


_TEXT_OF_NUMBER: Final = r"^\s*([+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?|[+]?[0-9]+/[0-9]+)\s*$"
NUMBER: Final[Schema] = {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": _TEXT_OF_NUMBER}]}
"""An exact number that is not negative, as a schema: a number, or a text such as ``"3/8"``."""


def exact(fits: Callable[[Fraction], bool], rule: str) -> Expected[Fraction]:
    """A finite number, read without rounding; ``rule`` says which fit."""

    def take(told: object) -> Fraction | None:
        number = read_exact(told) if isinstance(told, str) else None
        if number is not None and not (isinstance(number, Fraction) and fits(number)):
            raise ValueError(rule)
        return None if number is None else Fraction(number)

    return scalar("a number, or a fraction as a text 'p/q'", take, NUMBER)


_SMALLEST_BUDGET: Final = Fraction(1, 10**15)
"""With the largest sensitivity, sigma is then 4e12: noise of no use, but still within 64 bits."""


def _budget(told: object) -> Budget | None:
    # A fraction p/q is a text in JSON; a number is a number.
    if not isinstance(told, str):
        return None
    budget = read_exact(told)
    if budget < 0:
        raise ValueError("must not be negative")
    if budget not in (0, INFINITE) and not _SMALLEST_BUDGET <= budget <= 1 / _SMALLEST_BUDGET:
        raise ValueError("must be 0, Infinity, or between 1e-15 and 1e15: other noise does not fit 64 bits")
    return budget


BUDGET: Final[Expected[Budget]] = scalar(
    "a number, or a fraction as a text 'p/q'",
    _budget,
    {"anyOf": [*NUMBER["anyOf"], {"enum": ["Infinity", "inf", "Inf"]}]},
)
"""A budget: an exact number, or infinite."""

UNREAD: Final[Expected[None]] = Expected("anything", {}, lambda _, __, ___: None, lambda _: True)
"""What another reader of the same document reads."""
