"""What a dictionary tells, taken out of JSON's or other tables, with every fault named by its place. Public."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from yupana.errors import ConfigError, is_control
from yupana.files.dictionaries.dictionary import ValueRange
from yupana.files.document import Number, is_deeper
from yupana.files.regular import regular

KINDS: Final = (
    "a dictionary of CSPro (.dcf)",
    "a DDI-Codebook (.xml), as of IPUMS",
    "a file of SPSS, Stata or SAS (.sav, .zsav, .dta, .sas7bdat, .xpt)",
    "a data package or table schema of Frictionless (datapackage.json)",
    "metadata of CSV on the Web (CSVW)",
    "a CSV of codes with the columns variable, code and label",
)
"""What can be read."""

MOST_BYTES: Final = 32 << 20
"""Of a dictionary as text: those of large censuses have a tenth of it."""

MOST_ITEMS: Final = 20_000
"""Of all records together; an item that occurs several times counts as often."""

MOST_VALUES: Final = 500_000
"""Values and ranges of all items together."""

MOST_FAULTS: Final = 50
"""How many are told; a dictionary may have one in each of its items."""

_DECIMAL: Final = re.compile(r"[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})", re.ASCII)
_LONGEST: Final = 1000
"""Characters of a label; what is longer is cut off."""


def read_bytes(path: Path, first: int | None = None) -> bytes:
    """Read a dictionary, or its first bytes.

    Raises
    ------
    ConfigError
        If there is none, or it is too large to be one.
    """
    try:
        with open(path, "rb", opener=regular) as file:
            found = file.read(first or MOST_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise ConfigError(f"{path}: is a folder; name the dictionary itself") from None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; name the dictionary itself") from None
    if len(found) > MOST_BYTES:
        raise ConfigError(f"{path}: larger than {MOST_BYTES >> 20} MiB, which no dictionary is; name the dictionary")
    return found


def refuse(path: Path, kind: str, faults: list[str]) -> ConfigError:
    """The error that names all faults of a dictionary, or the first ones of many."""
    faults = list(dict.fromkeys(faults))
    told = [f"  {fault}" for fault in faults[:MOST_FAULTS]]
    told += [f"  and {len(faults) - MOST_FAULTS:,} more"] if len(faults) > MOST_FAULTS else []
    return ConfigError("\n".join([f"{path} cannot be used as {kind}:", *told]))


def unknown(path: Path) -> ConfigError:
    """The error of a file that is none of the kinds."""
    return ConfigError(f"{path} is no dictionary; it may be {'; '.join(KINDS[:-1])}; or {KINDS[-1]}")


def loaded(path: Path, text: str) -> dict[str, Any]:
    """A table of JSON, numbers as they are written."""
    try:
        document = json.loads(text, parse_float=Number, parse_int=Number, parse_constant=Number)
    except json.JSONDecodeError as error:
        place = f"{error.msg} at line {error.lineno}, column {error.colno}"
        raise ConfigError(f"{path}: not JSON: {place}") from None
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply to be a dictionary") from None
    if is_deeper(document):
        raise ConfigError(f"{path}: nested too deeply to be a dictionary")
    if not isinstance(document, dict):
        raise unknown(path)
    return document


def clean(text: str) -> str:
    """A label on one line: what a terminal would obey is taken out."""
    return " ".join("".join(" " if is_control(one) else one for one in text[:_LONGEST]).split())


def whole_text(text: str) -> str | None:
    """A whole number as it is written without leading zeros, signs and blanks; None if a text is none."""
    bare = text.strip()
    digits = bare.removeprefix("-").removeprefix("+")
    # Others of int() are digits in other scripts, and underscores.
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 18:
        return None
    return str(int(bare))


@dataclass(frozen=True, slots=True)
class ToldTable:
    """A table of a dictionary, at its place."""

    table: dict[str, Any]
    place: str  # such as `levels[0].records[1]`; empty at the top
    faults: list[str]  # those found are added, each beginning with its place

    def at(self, name: str) -> str:
        """The place of a key."""
        return f"{self.place}.{name}".lstrip(".")

    def fault(self, name: str, text: str) -> None:
        """Say what is wrong with a key."""
        self.faults.append(f"{self.at(name)}: {text}")

    def text(self, name: str, default: str | None = "") -> str:
        """A text of one line; without a default it must be there."""
        value = self.table.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or not clean(value):
            if default is None:
                self.fault(name, "must be a text")
            return default or ""
        return clean(value)

    def whole(self, name: str, least: int, most: int, default: int | None = None) -> int:
        """A whole number; without a default it must be there."""
        value = self.table.get(name)
        if value is None and default is not None:
            return default
        number = whole_text(value) if isinstance(value, str) else None
        if number is None or not least <= int(number) <= most:
            self.fault(name, f"must be a whole number from {least} to {most:,}")
            return default or least
        return int(number)

    def flag(self, name: str) -> bool:
        """Whether it says true."""
        return self.table.get(name) is True

    def inner(self, name: str) -> "ToldTable":
        """A table in it; an empty one if there is none."""
        value = self.table.get(name)
        if value is not None and not isinstance(value, dict):
            self.fault(name, "must be a table")
        return ToldTable(value if isinstance(value, dict) else {}, self.at(name), self.faults)

    def each(self, name: str) -> "Iterator[ToldTable]":
        """The tables of a list in it."""
        value = self.table.get(name)
        if value is not None and not isinstance(value, list):
            self.fault(name, "must be a list")
        for number, one in enumerate(value if isinstance(value, list) else []):
            if isinstance(one, dict):
                yield ToldTable(one, f"{self.at(name)}[{number}]", self.faults)
            else:
                self.faults.append(f"{self.at(name)}[{number}]: must be a table")


def texts_of(value: object) -> list[str]:
    """The texts and numbers of a value that may be one or a list, as a file would write them."""
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, Number):
        return [str(value)]
    if isinstance(value, str):
        return [value]
    return [text for one in value for text in texts_of(one)] if isinstance(value, list) else []


def value_range(first: str, last: str, label: str, *, is_number: bool, missing: bool = False) -> ValueRange | None:
    """A value or range, numbers without leading zeros; None if it is none."""
    if not is_number:
        return ValueRange(first, last, clean(label), missing) if first == last else None
    low, high = whole_text(first), whole_text(last)
    if low is not None and high is not None:
        return ValueRange(low, high, clean(label), missing) if int(low) <= int(high) else None
    # What Python takes for a number is more than files have.
    if not (_DECIMAL.fullmatch(first.strip()) and _DECIMAL.fullmatch(last.strip()) and float(first) <= float(last)):
        return None
    return ValueRange(first.strip(), last.strip(), clean(label), missing)


def apart(names: "Iterator[str] | list[str]") -> list[str]:
    """Names that stand twice, whatever their case."""
    seen: dict[str, int] = {}
    for name in names:
        seen[name.lower()] = seen.get(name.lower(), 0) + 1
    return [name for name, number in seen.items() if number > 1]
