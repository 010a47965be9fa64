"""A configuration file in JSON, read without rounding and with all its faults named at once. Public."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from hollerith.errors import ConfigError
from hollerith.plan.measurement import Mechanism
from hollerith.privacy.exact import INFINITE, Budget, read_exact

MECHANISMS: Final = {"zcdp": Mechanism.ZCDP, "puredp": Mechanism.PURE}
"""Mechanism by its name under "privacy_defn"."""

STATES: Final = tuple(f"{code:02}" for code in range(1, 57) if code not in {3, 7, 14, 43, 52})
"""FIPS codes of the fifty states and the District of Columbia."""

_SMALLEST_BUDGET: Final = Fraction(1, 10**15)
"""With the largest sensitivity, sigma is then 4e12: noise of no use, but still within 64 bits."""


class Number(str):
    """A number as the file writes it, so that a decimal stays the decimal it shows."""

    __slots__ = ()


def read_document(path: Path) -> tuple[object, list[str]]:
    """Read JSON whose numbers are `Number`, with the keys that are given twice as the first faults.

    Raises
    ------
    ConfigError
        If there is no such file, or it is not JSON.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"config {path}: no such file") from None
    except IsADirectoryError:
        raise ConfigError(f"config {path}: is a folder; name the config.json itself") from None
    except UnicodeDecodeError:
        raise ConfigError(f"config {path}: not a text file") from None
    except OSError as error:
        raise ConfigError(f"config {path}: {error.strerror}") from None
    faults: list[str] = []
    try:
        document = json.loads(
            text,
            parse_float=Number,
            parse_int=Number,
            parse_constant=Number,
            object_pairs_hook=lambda pairs: _unique(pairs, faults),
        )
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"config {path}: not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from None
    except RecursionError:
        raise ConfigError(f"config {path}: not a configuration: nested too deeply") from None
    return document, faults


def refuse(path: Path, faults: list[str]) -> ConfigError:
    """The error that names all faults of a configuration."""
    return ConfigError("\n".join([f"config {path} cannot be used:", *(f"  {fault}" for fault in faults)]))


def _unique(pairs: list[tuple[str, Any]], faults: list[str]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    faults += [f"key {key!r} is given twice" for key in dict.fromkeys(keys) if keys.count(key) > 1]
    return dict(pairs)


def check_keys(
    place: str, value: dict[str, Any], required: tuple[str, ...], faults: list[str], optional: tuple[str, ...] = ()
) -> None:
    """Name the keys that are missing, and those that are neither required nor optional."""
    faults += [f"{place}: key {key!r} is missing".lstrip(": ") for key in required if key not in value]
    known = (*required, *optional)
    faults += [
        f"{place}: key {key!r} is unknown; known are {', '.join(known)}".lstrip(": ")
        for key in value
        if key not in known
    ]


def check_reader(document: dict[str, Any], faults: list[str]) -> None:
    """Check the key "reader"; the data folder's files decide, whatever it says."""
    if document.get("reader", "csv") not in ("csv", "cef"):
        faults.append("reader: must be 'csv' or 'cef'")


def read_mechanism(document: dict[str, Any], faults: list[str]) -> Mechanism | None:
    """The mechanism under "privacy_defn"."""
    definition = document.get("privacy_defn", "zcdp")
    mechanism = MECHANISMS.get(definition) if isinstance(definition, str) else None
    if mechanism is None:
        faults.append("privacy_defn: must be 'zcdp' or 'puredp'")
    return mechanism


def read_budget(place: str, value: object, faults: list[str]) -> Budget:
    """A budget: a number, or a fraction as a text."""
    # A fraction p/q is a text in JSON; a number is a number.
    if isinstance(value, str):
        try:
            budget = read_exact(value)
        except ValueError as error:
            faults.append(f"{place}: {error}")
            return INFINITE
        if budget < 0:
            faults.append(f"{place}: must not be negative")
        elif budget not in (0, INFINITE) and not _SMALLEST_BUDGET <= budget <= 1 / _SMALLEST_BUDGET:
            faults.append(f"{place}: must be 0, Infinity, or between 1e-15 and 1e15: other noise does not fit 64 bits")
        return budget
    faults.append(f"{place}: must be a number, or a fraction as a text 'p/q'")
    return INFINITE


def read_states(place: str, value: object, allowed: tuple[str, ...], faults: list[str]) -> tuple[str, ...]:
    """A list of distinct state codes among those allowed."""
    if not isinstance(value, list) or not value:
        faults.append(f'{place}: must be a list of state codes, such as ["06", "17"]')
        return ()
    states: list[str] = []
    for code in value:
        if not isinstance(code, str) or isinstance(code, Number):
            faults.append(f'{place}: codes are texts of two digits, such as "06"')
        elif code not in allowed:
            faults.append(f"{place}: {code!r} is no state code")
        elif code in states:
            faults.append(f"{place}: {code!r} is given twice")
        else:
            states.append(code)
    return tuple(states)
