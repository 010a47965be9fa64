"""The configuration of PHSafe: budgets by table and level, truncation thresholds, states; read without rounding."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from pathlib import Path
from typing import Any, Final, Literal

from yupana.files.declaration import read_budget
from yupana.files.document import UNCHANGED, Changes, Number, check_keys, located, refuse
from yupana.plan.measurement import Mechanism
from yupana.privacy.exact import Budget
from yupana.products.census import MECHANISMS, STATES, check_reader, exact_number, read_mechanism, read_states
from yupana.products.described.description import Description
from yupana.products.phsafe.specification import LEVELS, S_DHC, TABLES, of_states
from yupana.products.safetab.regions import PUERTO_RICO
from yupana.release.recipe import read_configuration_in

_REQUIRED: Final = ("privacy_budget", "tau", "state_filter", "reader", "privacy_defn")
_OPTIONAL: Final = ("truncation_key", "consistency")

RULES_OF_CONSISTENCY: Final = (
    "one_householder",
    "householder_race",
    "record_types",
    "group_quarters_relationship",
    "final_pop",
    "zero_codes",
    "own_child",
    "couple",
    "couple_type",
    "family_type",
    "geo_record_type",
)
"""Rules that may be given a policy under "consistency" (docs/phsafe.md says what each demands)."""


class Policy(Enum):
    """What to do with units that break a rule of consistency."""

    FAIL = "fail"
    DROP = "drop-and-count"


@dataclass(frozen=True, repr=False)
class PhsafeConfig(Description):
    """A validated configuration: the description of the S-DHC with its budgets, thresholds and states.

    Attributes
    ----------
    states : tuple of str
        FIPS codes as given, or Puerto Rico alone.
    consistency : mapping of rule to policy
    """

    states: tuple[str, ...] = ()
    consistency: Mapping[str, Literal["fail", "drop-and-count"]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        budgets: Mapping[str, Budget],
        taus: Mapping[str, int],
        states: Sequence[str],
        mechanism: Mechanism,
        *,
        truncation_key: str = "",
        consistency: Mapping[str, Literal["fail", "drop-and-count"]] | None = None,
    ) -> "PhsafeConfig":
        """Describe a run.

        Parameters
        ----------
        budgets : mapping of ``table/level`` to Fraction or INFINITE
            All entries, zeros included: a measurement of budget zero is not made.
        taus : mapping of table to int
        states : sequence of str
        mechanism : Mechanism
        truncation_key : str
            Key of the hash that orders a unit's persons before truncation.
        consistency : mapping of rule to policy
        """
        base = of_states(S_DHC, states)
        tables = tuple(
            replace(table, limit=table.limit and replace(table.limit, most=taus[table.name])) for table in base.tables
        )
        told: dict[str, Any] = {of.name: getattr(base, of.name) for of in fields(base)}
        told |= {"tables": tables, "mechanism": mechanism, "truncation_key": truncation_key}
        return cls(**told, states=tuple(states), consistency=consistency or {}).with_budgets(budgets)

    def __repr__(self) -> str:
        spent = sum(budget != 0 for budget in self.budgets.values())
        states = "1 state" if len(self.states) == 1 else f"{len(self.states)} states"
        return f"<configuration of phsafe: {self.mechanism.value}, {spent} budgets above 0, {states}>"

    @property
    def taus(self) -> dict[str, int]:
        """How many persons of a unit count at most, by table."""
        return {table.name: table.limit.most for table in self.tables if table.limit}

    @property
    def is_puerto_rico(self) -> bool:
        """Whether this is the Puerto Rico run."""
        return self.states == (PUERTO_RICO,)


def read_config(path: Path, changes: Changes = UNCHANGED) -> PhsafeConfig:
    """Read and check a configuration file, or that of a release by its manifest, with changes made in it.

    Raises
    ------
    ConfigError
        Naming the file, the key and what is wrong with it. All faults are named at once.
    """
    document, faults = read_configuration_in(path, "phsafe", changes)
    config = _parse(document, faults)
    if config is None or faults:
        raise refuse(path, faults)
    return config


BUILT_IN: Final = ("s-dhc-2020-us", "s-dhc-2020-pr")
"""Configurations that Yupana brings along, by name: those of the 2020 run."""


def locate(source: str | Path) -> Path:
    """Where a configuration lies, built-in or not.

    Raises
    ------
    ConfigError
        If there is none.
    """
    return located(source, "yupana.products.phsafe", BUILT_IN)


def config_document(config: PhsafeConfig) -> dict[str, Any]:
    """A configuration as its config.json, which is read back exactly."""
    return {
        "privacy_budget": {
            table.name: {level: exact_number(budget) for level, budget in table.budgets.items()}
            for table in config.tables
        },
        "tau": config.taus,
        "state_filter": list(config.states),
        "reader": "csv",
        "privacy_defn": next(name for name, mechanism in MECHANISMS.items() if mechanism is config.mechanism),
        **({"truncation_key": config.truncation_key} if config.truncation_key else {}),
        **({"consistency": dict(config.consistency)} if config.consistency else {}),
    }


def _is_unicode(text: str) -> bool:
    """Whether a text can be written: JSON can spell half a character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _parse(document: object, faults: list[str]) -> PhsafeConfig | None:
    if not isinstance(document, dict):
        faults.append("the top level must be an object with the keys " + ", ".join(_REQUIRED))
        return None
    check_keys("", document, _REQUIRED, faults, optional=_OPTIONAL)
    check_reader(document, faults)
    mechanism = read_mechanism(document, faults)
    truncation_key = document.get("truncation_key", "")
    if not isinstance(truncation_key, str) or isinstance(truncation_key, Number) or not _is_unicode(truncation_key):
        faults.append("truncation_key: must be a text")
    # A key that is missing has been named; only what is there is read.
    budgets = _budgets(document["privacy_budget"], faults) if "privacy_budget" in document else {}
    taus = _taus(document["tau"], faults) if "tau" in document else {}
    states = _states(document["state_filter"], faults) if "state_filter" in document else ()
    consistency = _consistency(document.get("consistency", {}), faults)
    if faults or mechanism is None:
        return None
    of_nation = [name.replace("/", ".") for name, budget in budgets.items() if budget and _of_nation(name)]
    if states == (PUERTO_RICO,) and of_nation:
        faults.append(
            f"privacy_budget: Puerto Rico is part of no nation's total (PHSafe, section 6.6); set to 0 what the "
            f"state_filter leaves without meaning: {', '.join(of_nation)}"
        )
    if not any(budgets.values()):
        faults.append("privacy_budget: every budget is 0, so nothing would be measured")
    return PhsafeConfig.of(budgets, taus, states, mechanism, truncation_key=truncation_key, consistency=consistency)


def _of_nation(name: str) -> bool:
    return LEVELS[name.partition("/")[2]].areas == "USA"


def _object(place: str, value: object, faults: list[str], read: Callable[[dict[str, Any]], None]) -> None:
    if isinstance(value, dict):
        read(value)
    else:
        faults.append(f"{place}: must be an object")


def _budgets(value: object, faults: list[str]) -> dict[str, Budget]:
    budgets: dict[str, Budget] = {}

    def read(tables: dict[str, Any]) -> None:
        check_keys("privacy_budget", tables, tuple(table.name for table in TABLES), faults)
        for table in TABLES:
            levels = tables.get(table.name)
            place = f"privacy_budget.{table.name}"
            if not isinstance(levels, dict):
                if table.name in tables:
                    faults.append(f"{place}: must be an object of budgets by level")
                continue
            names = tuple(level.name for level in table.levels)
            check_keys(place, levels, names, faults)
            for level in names:
                if level in levels:
                    budgets[f"{table.name}/{level}"] = read_budget(f"{place}.{level}", levels[level], faults)

    _object("privacy_budget", value, faults, read)
    return budgets


def _taus(value: object, faults: list[str]) -> dict[str, int]:
    taus: dict[str, int] = {}
    truncated = tuple(table.name for table in TABLES if table.limit)

    def read(tables: dict[str, Any]) -> None:
        check_keys("tau", tables, truncated, faults)
        for name in truncated:
            if name not in tables:
                continue
            tau = tables[name]
            # isdecimal is false for true, 2.5, -1 and "six".
            if not (isinstance(tau, Number) and tau.isdecimal() and tau.strip("0")):
                faults.append(f"tau.{name}: must be a whole number above 0")
            elif len(tau) > len(str(LARGEST_TAU)):
                faults.append(f"tau.{name}: must be at most {LARGEST_TAU}, the largest FINAL_POP")
            else:
                taus[name] = int(tau)

    _object("tau", value, faults, read)
    return taus


LARGEST_TAU: Final = 99_999


def _states(value: object, faults: list[str]) -> tuple[str, ...]:
    states = read_states("state_filter", value, (*STATES, PUERTO_RICO), faults)
    if PUERTO_RICO in states and len(states) > 1:
        faults.append(f"state_filter: Puerto Rico ({PUERTO_RICO!r}) is a run of its own, apart from the states")
    return states


def _consistency(value: object, faults: list[str]) -> dict[str, Literal["fail", "drop-and-count"]]:
    policies: dict[str, Literal["fail", "drop-and-count"]] = {}

    def read(rules: dict[str, Any]) -> None:
        check_keys("consistency", rules, (), faults, optional=RULES_OF_CONSISTENCY)
        for rule, policy in rules.items():
            if policy not in ("fail", "drop-and-count"):
                faults.append(f"consistency.{rule}: must be 'fail' or 'drop-and-count'")
            else:
                policies[rule] = policy

    _object("consistency", value, faults, read)
    return policies
