"""config.json of PHSafe: budgets by table and level, truncation thresholds, states. Public; read without rounding."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Literal

from hollerith.errors import ConfigError
from hollerith.plan.measurement import Mechanism
from hollerith.privacy.exact import INFINITE, Budget, read_exact
from hollerith.products.phsafe.spec import PUERTO_RICO, STATES, TABLES

_REQUIRED: Final = ("privacy_budget", "tau", "state_filter", "reader", "privacy_defn")
_OPTIONAL: Final = ("truncation_key", "consistency")
_MECHANISMS: Final = {"zcdp": Mechanism.ZCDP, "puredp": Mechanism.PURE}

RULES_OF_CONSISTENCY: Final = (
    "one_householder",
    "householder_race",
    "record_types",
    "group_quarters_relationship",
    "final_pop",
    "zero_codes",
    "own_child",
    "couple",
)
"""Rules that may be given a policy under "consistency" (docs/phsafe.md says what each demands)."""


@dataclass(frozen=True, slots=True)
class Config:
    """A validated configuration.

    Attributes
    ----------
    budgets : mapping of (table, level key) to Fraction or INFINITE
        All entries, zeros included: a measurement of budget zero is not made.
    taus : mapping of table to int
    states : tuple of str
        FIPS codes, or Puerto Rico alone.
    mechanism : Mechanism
    truncation_key : str
        Key of the hash that orders a unit's persons before truncation.
    consistency : mapping of rule to policy
    """

    budgets: Mapping[tuple[str, str], Budget]
    taus: Mapping[str, int]
    states: tuple[str, ...]
    mechanism: Mechanism
    truncation_key: str = ""
    consistency: Mapping[str, Literal["fail", "drop-and-count"]] = field(default_factory=dict)

    @property
    def is_puerto_rico(self) -> bool:
        """Whether this is the Puerto Rico run."""
        return self.states == (PUERTO_RICO,)


def read_config(path: Path) -> Config:
    """Read and check a configuration file.

    Raises
    ------
    ConfigError
        Naming the file, the key and what is wrong with it. All faults are named at once.
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
            parse_float=_Number,
            parse_int=_Number,
            parse_constant=_Number,
            object_pairs_hook=lambda pairs: _unique(pairs, faults),
        )
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"config {path}: not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from None
    except RecursionError:
        raise ConfigError(f"config {path}: not a configuration: nested too deeply") from None
    config = _parse(document, faults)
    if config is None or faults:
        raise ConfigError("\n".join([f"config {path} cannot be used:", *(f"  {fault}" for fault in faults)]))
    return config


class _Number(str):
    """A number as the file writes it, so that a decimal stays the decimal it shows."""

    __slots__ = ()


def _is_unicode(text: str) -> bool:
    """Whether a text can be written: JSON can spell half a character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _unique(pairs: list[tuple[str, Any]], faults: list[str]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    faults += [f"key {key!r} is given twice" for key in dict.fromkeys(keys) if keys.count(key) > 1]
    return dict(pairs)


def _parse(document: object, faults: list[str]) -> Config | None:
    if not isinstance(document, dict):
        faults.append("the top level must be an object with the keys " + ", ".join(_REQUIRED))
        return None
    _keys("", document, _REQUIRED, faults, optional=_OPTIONAL)
    reader = document.get("reader", "csv")
    if reader not in ("csv", "cef"):
        faults.append("reader: must be 'csv' or 'cef'")
    definition = document.get("privacy_defn", "zcdp")
    mechanism = _MECHANISMS.get(definition) if isinstance(definition, str) else None
    if mechanism is None:
        faults.append("privacy_defn: must be 'zcdp' or 'puredp'")
    truncation_key = document.get("truncation_key", "")
    if not isinstance(truncation_key, str) or isinstance(truncation_key, _Number) or not _is_unicode(truncation_key):
        faults.append("truncation_key: must be a text")
    # A key that is missing has been named; only what is there is read.
    budgets = _budgets(document["privacy_budget"], faults) if "privacy_budget" in document else {}
    taus = _taus(document["tau"], faults) if "tau" in document else {}
    states = _states(document["state_filter"], faults) if "state_filter" in document else ()
    consistency = _consistency(document.get("consistency", {}), faults)
    if faults or mechanism is None:
        return None
    if not any(budgets.values()):
        faults.append("privacy_budget: every budget is 0, so nothing would be measured")
    return Config(budgets, taus, states, mechanism, truncation_key, consistency)


def _keys(
    place: str, value: dict[str, Any], required: tuple[str, ...], faults: list[str], optional: tuple[str, ...] = ()
) -> None:
    faults += [f"{place}: key {key!r} is missing".lstrip(": ") for key in required if key not in value]
    known = (*required, *optional)
    faults += [
        f"{place}: key {key!r} is unknown; known are {', '.join(known)}".lstrip(": ")
        for key in value
        if key not in known
    ]


def _object(place: str, value: object, faults: list[str], read: Callable[[dict[str, Any]], None]) -> None:
    if isinstance(value, dict):
        read(value)
    else:
        faults.append(f"{place}: must be an object")


def _budgets(value: object, faults: list[str]) -> dict[tuple[str, str], Budget]:
    budgets: dict[tuple[str, str], Budget] = {}

    def read(tables: dict[str, Any]) -> None:
        _keys("privacy_budget", tables, tuple(table.name for table in TABLES), faults)
        for table in TABLES:
            levels = tables.get(table.name)
            place = f"privacy_budget.{table.name}"
            if not isinstance(levels, dict):
                if table.name in tables:
                    faults.append(f"{place}: must be an object of budgets by level")
                continue
            _keys(place, levels, tuple(level.key for level in table.levels), faults)
            for level in table.levels:
                if level.key in levels:
                    budgets[table.name, level.key] = _budget(f"{place}.{level.key}", levels[level.key], faults)

    _object("privacy_budget", value, faults, read)
    return budgets


def _budget(place: str, value: object, faults: list[str]) -> Budget:
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


_SMALLEST_BUDGET: Final = Fraction(1, 10**15)
"""With the largest tau, sigma is then 4e12: noise of no use, but still within 64 bits."""


def _taus(value: object, faults: list[str]) -> dict[str, int]:
    taus: dict[str, int] = {}
    truncated = tuple(table.name for table in TABLES if table.persons is not None)

    def read(tables: dict[str, Any]) -> None:
        _keys("tau", tables, truncated, faults)
        for name in truncated:
            if name not in tables:
                continue
            tau = tables[name]
            # isdecimal is false for true, 2.5, -1 and "six".
            if not (isinstance(tau, _Number) and tau.isdecimal() and tau.strip("0")):
                faults.append(f"tau.{name}: must be a whole number above 0")
            elif len(tau) > len(str(_LARGEST_TAU)):
                faults.append(f"tau.{name}: must be at most {_LARGEST_TAU}, the largest FINAL_POP")
            else:
                taus[name] = int(tau)

    _object("tau", value, faults, read)
    return taus


_LARGEST_TAU: Final = 99_999


def _states(value: object, faults: list[str]) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        faults.append('state_filter: must be a list of state codes, such as ["06", "17"]')
        return ()
    states = []
    for code in value:
        if not isinstance(code, str) or isinstance(code, _Number):
            faults.append('state_filter: codes are texts of two digits, such as "06"')
        elif code not in {*STATES, PUERTO_RICO}:
            faults.append(f"state_filter: {code!r} is no state code")
        elif code in states:
            faults.append(f"state_filter: {code!r} is given twice")
        else:
            states.append(code)
    if PUERTO_RICO in states and len(states) > 1:
        faults.append(f"state_filter: Puerto Rico ({PUERTO_RICO!r}) is a run of its own, apart from the states")
    return tuple(states)


def _consistency(value: object, faults: list[str]) -> dict[str, Literal["fail", "drop-and-count"]]:
    policies: dict[str, Literal["fail", "drop-and-count"]] = {}

    def read(rules: dict[str, Any]) -> None:
        _keys("consistency", rules, (), faults, optional=RULES_OF_CONSISTENCY)
        for rule, policy in rules.items():
            if policy not in ("fail", "drop-and-count"):
                faults.append(f"consistency.{rule}: must be 'fail' or 'drop-and-count'")
            else:
                policies[rule] = policy

    _object("consistency", value, faults, read)
    return policies
