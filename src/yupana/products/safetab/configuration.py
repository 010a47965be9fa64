"""What both SafeTab products read of a config.json, and its values of 2020. Public; read without rounding."""

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, Self, TypeVar

from yupana.files.declaration import read_budget
from yupana.files.document import Changes, Number, check_keys, refuse
from yupana.plan.measurement import Mechanism
from yupana.privacy.exact import INFINITE, Budget, read_exact
from yupana.products.census import MECHANISMS, STATES, check_reader, read_mechanism, read_states
from yupana.products.safetab.iterations import MOST_RACE_CODES
from yupana.products.safetab.regions import LEVELS, PR, PUERTO_RICO, US, Level, Run
from yupana.release.recipe import read_configuration_in

_COMMON: Final = (
    *("max_race_codes", "allow_negative_counts", "run_us", "run_pr", "reader", "state_filter_us", "privacy_defn"),
)
BUDGET_KEYS_P: Final = tuple(f"privacy_budget_p_{level.budget_key}" for level in LEVELS)
BUDGET_KEYS_H: Final = tuple(
    f"privacy_budget_h_{table}_{level.budget_key}" for table in ("t3", "t4") for level in LEVELS
)
KEYS_P: Final = (*BUDGET_KEYS_P, "privacy_budget_p_stage_1_fraction", "thresholds_p")
OPTIONAL_P: Final = ("zero_suppression_chance",)
KEYS_H: Final = (*BUDGET_KEYS_H, "thresholds_h_t3", "thresholds_h_t4")
"""The keys of each product. One config may hold both sets; a product reads its own."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What both products read.

    Attributes
    ----------
    max_race_codes : int
        How many race codes of a record count, 1 to 8: the first ones.
    allow_negative_counts : bool
        Whether a noisy count below zero stays as it is, rather than becoming 0.
    runs : tuple of "us" and "pr"
        The passes.
    us_states : tuple of str
        FIPS codes of the US pass.
    mechanism : Mechanism
    """

    max_race_codes: int
    allow_negative_counts: bool
    runs: tuple[Run, ...]
    us_states: tuple[str, ...]
    mechanism: Mechanism

    @property
    def states(self) -> frozenset[int]:
        """State codes of all passes."""
        return frozenset().union(*(self.states_of(run) for run in self.runs))

    def states_of(self, run: Run) -> frozenset[int]:
        """State codes of one pass."""
        return frozenset(map(int, self.us_states if run == US else (PUERTO_RICO,)))

    @property
    def levels(self) -> tuple[Level, ...]:
        """Population-group levels of the passes."""
        return tuple(level for level in LEVELS if level.region.run in self.runs)


P = TypeVar("P")
"""What a budget is spent on: a level, or a question at a level."""


@dataclass(frozen=True, slots=True)
class SafetabConfig(Generic[P]):
    """What both products read of a config.json, validated.

    Attributes
    ----------
    settings : Settings
    budgets : mapping to Fraction or INFINITE
        rho (epsilon under pure DP), zeros included: what has budget zero is not measured.
    thresholds : mapping to tuple of int
        Totals from which a population group gets the next larger table.
    """

    product: ClassVar[str]
    settings: Settings
    budgets: Mapping[P, Budget]
    thresholds: Mapping[P, tuple[int, ...]]

    @abstractmethod
    def of_table(self, table: str) -> tuple[Mapping[Level, Budget], Mapping[Level, tuple[int, ...]]]:
        """Budgets and thresholds by level of a table that is measured."""

    def with_budgets(self, budgets: Mapping[P, Budget]) -> Self:
        """The same with some budgets replaced."""
        return replace(self, budgets={**self.budgets, **budgets})

    def without_noise(self) -> Self:
        """The same with infinite budgets for all that is measured: zero noise, for synthetic data only."""
        return self.with_budgets({place: INFINITE for place, budget in self.budgets.items() if budget > 0})


def settings_of_2020(runs: tuple[Run, ...]) -> Settings:
    """What both products read of the configurations of 2020, for the given passes."""
    return Settings(MOST_RACE_CODES, allow_negative_counts=True, runs=runs, us_states=STATES, mechanism=Mechanism.ZCDP)


def budgets_of_2020(regional: Fraction, nation_and_state: Fraction, elsewhere: Fraction) -> dict[Level, Budget]:
    """The budget of each level of 2020 from those of regional groups, and of detailed groups by their areas."""

    def of(level: Level) -> Fraction:
        if level.iteration_level == 1:
            return Fraction(0) if level.region.base == "aiannh" else regional
        return nation_and_state if level.region.granularity == "detailed" else elsewhere

    return {level: of(level) for level in LEVELS}


@dataclass(slots=True)
class Document:
    """A configuration being read: its keys, and the faults found so far."""

    path: Path
    keys: Mapping[str, Any]
    faults: list[str]

    def settings(self) -> Settings | None:
        """Read the common keys; None if they have a fault."""
        document, faults = dict(self.keys), self.faults
        before = len(faults)
        check_reader(document, faults)
        mechanism = read_mechanism(document, faults)
        most = self._whole("max_race_codes", 1, MOST_RACE_CODES)
        negative, us, pr = (self._flag(key) for key in ("allow_negative_counts", "run_us", "run_pr"))
        if us is False and pr is False:
            faults.append("run_us and run_pr: at least one of them must be true")
        states: tuple[str, ...] = ()
        if "state_filter_us" in document:
            states = read_states("state_filter_us", document["state_filter_us"], STATES, faults)
        if len(faults) > before or mechanism is None or most is None or negative is None:
            return None
        runs: tuple[Run, ...] = (*((US,) if us else ()), *((PR,) if pr else ()))
        return Settings(most, negative, runs, states, mechanism)

    def budgets(self, keys: Iterable[str]) -> dict[str, Budget]:
        """Read budgets, of which one at least must be above zero."""
        budgets = {key: read_budget(key, self.keys[key], self.faults) for key in keys if key in self.keys}
        if budgets and not any(budgets.values()):
            self.faults.append("every budget is 0, so nothing would be measured")
        return budgets

    def thresholds(
        self, key: str, levels: Iterable[Level], least: int, most: int | None
    ) -> dict[Level, tuple[int, ...]]:
        """Read thresholds by level: ``least`` to ``most`` numbers that do not descend."""
        value = self.keys.get(key)
        if key not in self.keys:
            return {}
        if not isinstance(value, dict):
            self.faults.append(f'{key}: must be an object with keys such as "(USA, 1)"')
            return {}
        needed = tuple(levels)
        known = tuple(level.threshold_key for level in LEVELS)
        given = {" ".join(name.split()): numbers for name, numbers in value.items()}
        required = tuple(level.threshold_key for level in needed)
        check_keys(key, given, required, self.faults, optional=tuple(k for k in known if k not in required))
        found = {}
        for level in needed:
            if level.threshold_key in given:
                found[level] = self._numbers(f"{key}.{level.threshold_key}", given[level.threshold_key], least, most)
        return found

    def share(self, key: str, *, zero: bool) -> Fraction | None:
        """Read a number (or a text ``p/q``) between 0 and 1, without ends but for 0 where ``zero``; None if missing."""
        if self.keys.get(key) is None:
            return None
        text = self.keys[key]
        value = self._exact(Number(text) if isinstance(text, str) else text)
        if not isinstance(value, Fraction) or not 0 <= value < 1 or (value == 0 and not zero):
            least = "at least 0" if zero else "above 0"
            self.faults.append(f"{key}: must be a number {least} and below 1")
            return None
        return value

    def _numbers(self, place: str, value: object, least: int, most: int | None) -> tuple[int, ...]:
        numbers = [self._exact(number) for number in value] if isinstance(value, list) else []
        exact = [number for number in numbers if isinstance(number, Fraction)]
        wanted = f"{least} thresholds" if most is None else f"{most} threshold{'s' * (most > 1)}"
        too_many = most is not None and len(numbers) > most
        if (
            len(exact) < len(numbers)
            or len(numbers) < least
            or too_many
            or any(
                isinstance(n, str) and not isinstance(n, Number)
                for n in value  # type: ignore[attr-defined]
            )
        ):
            self.faults.append(f"{place}: must be a list of {'at least ' * (most is None)}{wanted}, each a number")
            return ()
        if exact != sorted(exact):
            self.faults.append(f"{place}: thresholds must not descend")
            return ()
        # A count reaches a threshold exactly when it reaches the next whole number.
        return tuple(math.ceil(number) for number in exact)

    @staticmethod
    def _exact(value: object) -> Budget | None:
        if not isinstance(value, Number):
            return None
        try:
            return read_exact(value)
        except ValueError:
            return None

    def _whole(self, key: str, low: int, high: int) -> int | None:
        if key not in self.keys:
            return None
        value = self.keys[key]
        if not (isinstance(value, Number) and value.isdecimal() and low <= int(value) <= high):
            self.faults.append(f"{key}: must be a whole number from {low} to {high}")
            return None
        return int(value)

    def _flag(self, key: str) -> bool | None:
        value = self.keys.get(key)
        if key in self.keys and not isinstance(value, bool):
            self.faults.append(f"{key}: must be true or false")
        return value if isinstance(value, bool) else None


def open_document(
    path: Path, product: str, changes: Changes, required: tuple[str, ...], optional: tuple[str, ...]
) -> Document:
    """Read a configuration, or that of a release by its manifest, make changes in it, and check which keys it has.

    Raises
    ------
    ConfigError
        If it is no JSON object.
    """
    document, faults = read_configuration_in(path, product, changes)
    if not isinstance(document, dict):
        raise refuse(path, [*faults, "the top level must be an object"])
    check_keys("", document, (*_COMMON, *required), faults, optional=optional)
    return Document(path, document, faults)


def settings_document(settings: Settings) -> dict[str, Any]:
    """The keys of config.json that both products have."""
    return {
        "max_race_codes": settings.max_race_codes,
        "allow_negative_counts": settings.allow_negative_counts,
        "run_us": US in settings.runs,
        "run_pr": PR in settings.runs,
        "reader": "csv",
        "state_filter_us": list(settings.us_states),
        "privacy_defn": next(name for name, mechanism in MECHANISMS.items() if mechanism is settings.mechanism),
    }
