"""The configuration of PHSafe: budgets by table and level, truncation thresholds, states; and the run of 2020.

Read without rounding.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, get_args

from yupana.files.declaration import ANY_TEXT, BUDGET, choice, declared, key, keyed, whole
from yupana.files.document import UNCHANGED, Changes, refuse
from yupana.plan.measurement import Accounting, Mechanism, Sensitivity
from yupana.privacy.exact import Budget
from yupana.products.census import MECHANISM, MECHANISMS, READER, STATES, exact_number, states
from yupana.products.described.description import DescribedTable, Description
from yupana.products.described.stability import Cells, Derived
from yupana.products.phsafe.specification import LEVELS, S_DHC, TABLES, of_states
from yupana.products.safetab.regions import PUERTO_RICO
from yupana.release.recipe import read_configuration_in

LARGEST_TAU: Final = 99_999
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


Policy = Literal["fail", "drop-and-count"]
"""What to do with units that break a rule of consistency."""

POLICIES: Final[tuple[Policy, ...]] = get_args(Policy)
"""The first where none is given."""


def sensitivity_of(tau: int | None, mechanism: Mechanism, accounting: Accounting) -> Sensitivity:
    """How far the count vector of one level moves: squared L2 under zCDP, L1 under pure DP.

    ``published`` is the paper's: stability 2 tau + 2 of the truncated join (2 for units), its square under zCDP,
    and a factor 2 for an arbitrary change (PHSafe, lemma 6 and theorems 1 to 4). ``tight`` compares non-negative
    vectors of sum at most tau before and after, of one household, or of two for an arbitrary change
    (docs/phsafe-privacy.md).

    Parameters
    ----------
    tau : int or None
        Truncation threshold; None for a table of units.
    accounting : "published" or "tight"
    """
    if accounting == "published":
        stability = 2 if tau is None else 2 * tau + 2
        one = Fraction(stability**mechanism.power)
        return Sensitivity(unbounded=one, bounded=2 * one, same_household=2 * one)
    most = 1 if tau is None else tau
    one = Fraction(2 * most**mechanism.power)
    return Sensitivity(unbounded=one, bounded=2**mechanism.power * one, same_household=one)


@dataclass(frozen=True, repr=False)
class PhsafeConfig(Description):
    """A validated configuration: the description of the S-DHC with its budgets, thresholds and states."""

    states: tuple[str, ...] = ()  # FIPS codes as given, or Puerto Rico alone
    consistency: Mapping[str, Policy] = field(default_factory=dict)  # by rule

    @classmethod
    def of(
        cls,
        budgets: Mapping[str, Budget],
        taus: Mapping[str, int],
        states: Sequence[str],
        mechanism: Mechanism,
        *,
        truncation_key: str = "",
        consistency: Mapping[str, Policy] | None = None,
    ) -> "PhsafeConfig":
        """Describe a run.

        Parameters
        ----------
        budgets : mapping of ``table/level`` to Fraction or INFINITE
            All entries, zeros included: a measurement of budget zero is not made.
        taus : mapping of table to int
        truncation_key : str
            Key of the hash that orders a unit's persons before truncation.
        consistency : mapping of rule to policy
        """
        base = of_states(S_DHC, states)

        def bounded(table: DescribedTable) -> DescribedTable:
            stated = sensitivity_of(taus.get(table.name), mechanism, "published")
            limit = table.limit and replace(table.limit, most=taus[table.name])
            return replace(table, limit=limit, stated={level.name: stated for level in table.levels})

        told: dict[str, Any] = {of.name: getattr(base, of.name) for of in fields(base)}
        told |= {"name": "phsafe", "tables": tuple(map(bounded, base.tables))}
        told |= {"mechanism": mechanism, "truncation_key": truncation_key}
        return cls(**told, states=tuple(states), consistency=consistency or {}).with_budgets(budgets)

    def __repr__(self) -> str:
        spent = sum(budget != 0 for budget in self.budgets.values())
        states = "1 state" if len(self.states) == 1 else f"{len(self.states)} states"
        return f"<configuration of phsafe: {self.mechanism.value}, {spent} budgets above 0, {states}>"

    @cached_property
    def derived(self) -> dict[tuple[str, str], Derived]:
        """What is proven by hand; what is derived of the description alone may be less.

        A rule of consistency can drop a whole household because of one person.
        """
        return {
            (table.name, level.name): Derived(
                sensitivity_of(self.taus.get(table.name), self.mechanism, "tight"),
                {},
                Cells(1, exact=False),
                "docs/phsafe-privacy.md",
            )
            for table in self.tables
            for level in table.levels
        }

    @property
    def taus(self) -> dict[str, int]:
        """How many persons of a unit count at most, by table."""
        return {table.name: table.limit.most for table in self.tables if table.limit}

    @property
    def is_puerto_rico(self) -> bool:
        """Whether this is the Puerto Rico run."""
        return self.states == (PUERTO_RICO,)


def _check_states(place: str, codes: tuple[str, ...], faults: list[str]) -> None:
    if PUERTO_RICO in codes and len(codes) > 1:
        faults.append(f"{place}: Puerto Rico ({PUERTO_RICO!r}) is a run of its own, apart from the states")


_TAU: Final = whole(1, LARGEST_TAU, f"a whole number above 0 and at most {LARGEST_TAU}, the largest FINAL_POP")


@dataclass(frozen=True, kw_only=True)
class DeclaredPhsafe:
    """The configuration of PHSafe (S-DHC)."""

    privacy_budget: Mapping[str, Mapping[str, Budget]] = key(
        keyed({t.name: keyed({of.name: BUDGET for of in t.levels}, f"{t.name} by level") for t in TABLES}),
        "what each table spends at each level; 0 measures nothing",
    )
    tau: Mapping[str, int] = key(
        keyed({t.name: _TAU for t in TABLES if t.limit}), "how many persons of a household count at most"
    )
    state_filter: tuple[str, ...] = key(
        states(*STATES, PUERTO_RICO).checked(_check_states),
        f"the states of the run; {PUERTO_RICO}, Puerto Rico, is a run of its own",
    )
    reader: str = key(READER)
    privacy_defn: Mechanism = key(MECHANISM)
    truncation_key: str = key(
        ANY_TEXT,
        "key of the hash that chooses whom truncation keeps; public, and chosen without looking",
        default="",
    )
    consistency: Mapping[str, Policy] = key(
        keyed(dict.fromkeys(RULES_OF_CONSISTENCY, choice(*POLICIES)), optional=RULES_OF_CONSISTENCY),
        "what becomes of units that break a rule (docs/phsafe.md)",
        default={},
    )


DOCUMENT: Final = declared(DeclaredPhsafe)
"""A whole configuration."""


def read_config(path: Path, changes: Changes = UNCHANGED) -> PhsafeConfig:
    """Read and check a configuration file, or that of a release by its manifest, with changes made in it.

    Raises
    ------
    ConfigError
        Naming the file, the key and what is wrong with it. All faults are named at once.
    """
    document, faults = read_configuration_in(path, "phsafe", changes)
    told = DOCUMENT.read("", document, faults)
    if told is None or faults or not isinstance(document, dict):
        raise refuse(path, faults)
    budgets = {f"{table}/{level}": budget for table, of in told.privacy_budget.items() for level, budget in of.items()}
    of_nation = [name.replace("/", ".") for name, budget in budgets.items() if budget and _of_nation(name)]
    if told.state_filter == (PUERTO_RICO,) and of_nation:
        faults.append(
            f"privacy_budget: Puerto Rico is part of no nation's total (PHSafe, section 6.6); set to 0 what the "
            f"state_filter leaves without meaning: {', '.join(of_nation)}"
        )
    if not any(budgets.values()):
        faults.append("privacy_budget: every budget is 0, so nothing would be measured")
    if faults:
        raise refuse(path, faults)
    return PhsafeConfig.of(
        budgets,
        told.tau,
        told.state_filter,
        told.privacy_defn,
        truncation_key=told.truncation_key,
        # In the order of the file, which the manifest of a release keeps.
        consistency={rule: told.consistency[rule] for rule in document.get("consistency", ())},
    )


def _of_nation(name: str) -> bool:
    return LEVELS[name.partition("/")[2]].areas == "USA"


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


TAUS: Final = {table.name: table.limit.most for table in TABLES if table.limit}
"""The thresholds of 2020 (PHSafe, table 10)."""


def budgets(*, puerto_rico: bool) -> dict[str, Budget]:
    """The rho of every table and level in the 2020 run; zero for the nation in Puerto Rico's."""
    return {name: Fraction(0) if puerto_rico and _of_nation(name) else rho for name, rho in S_DHC.budgets.items()}


def production(*, puerto_rico: bool) -> PhsafeConfig:
    """The configuration of 2020 of the United States, or of Puerto Rico."""
    states = (PUERTO_RICO,) if puerto_rico else STATES
    return PhsafeConfig.of(budgets(puerto_rico=puerto_rico), TAUS, states, Mechanism.ZCDP)


def production_config() -> dict[str, Any]:
    """The production configuration of 2020 for the United States, as its config.json."""
    return config_document(production(puerto_rico=False))
