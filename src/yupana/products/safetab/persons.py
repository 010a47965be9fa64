"""SafeTab-P: its keys of config.json, and the run of 2020. Public; no data needed."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Final

from yupana.files.document import UNCHANGED, Changes, refuse
from yupana.privacy.exact import Budget
from yupana.products.census import exact_number
from yupana.products.safetab.configuration import (
    KEYS_H,
    KEYS_P,
    OPTIONAL_P,
    SafetabConfig,
    budgets_of_2020,
    open_document,
    settings_document,
    settings_of_2020,
)
from yupana.products.safetab.regions import LEVELS, Level, Run

_STAGE_1_FRACTION: Final = "privacy_budget_p_stage_1_fraction"
_ZERO_SUPPRESSION: Final = "zero_suppression_chance"


@dataclass(frozen=True, slots=True)
class PersonsConfig(SafetabConfig[Level]):
    """A validated configuration, its budgets and thresholds by level.

    A group is counted in 4, 9 and 23 ages from noisy totals of its level's three thresholds.

    Attributes
    ----------
    stage_1 : Fraction
        Share of a level's budget that stage 1 spends on choosing the table of each population group.
    zero_suppression : Fraction
        The chance with which the total of an empty group is left out; 0 where none is.
    """

    product: ClassVar = "safetab-p"
    stage_1: Fraction
    zero_suppression: Fraction

    def of_table(self, table: str) -> tuple[Mapping[Level, Budget], Mapping[Level, tuple[int, ...]]]:
        """The one table: stages share the budget of a level, and totals of detailed-only iterations have all of it."""
        del table
        return self.budgets, self.thresholds


def read_config(path: Path, changes: Changes = UNCHANGED) -> PersonsConfig:
    """Read and check a configuration file, with changes made in it.

    Raises
    ------
    ConfigError
        Naming the file, the key and what is wrong with it. All faults are named at once.
    """
    document = open_document(path, "safetab-p", changes, KEYS_P, (*OPTIONAL_P, *KEYS_H))
    settings = document.settings()
    budgets = document.budgets(f"privacy_budget_p_{level.budget_key}" for level in LEVELS)
    stage_1 = document.share(_STAGE_1_FRACTION, zero=False)
    zero = document.share(_ZERO_SUPPRESSION, zero=True)
    thresholds = document.thresholds("thresholds_p", settings.levels if settings else (), 3, None)
    if stage_1 is None and document.keys.get(_STAGE_1_FRACTION, 0) is None:
        document.faults.append(f"{_STAGE_1_FRACTION}: must be a number above 0 and below 1")
    if document.faults or settings is None or stage_1 is None:
        raise refuse(path, document.faults)
    by_level = {level: budgets[f"privacy_budget_p_{level.budget_key}"] for level in LEVELS}
    return PersonsConfig(settings, by_level, thresholds, stage_1, zero or Fraction(0))


def config_document(config: PersonsConfig) -> dict[str, Any]:
    """A configuration as its config.json, which is read back exactly."""
    return {
        **settings_document(config.settings),
        **{f"privacy_budget_p_{level.budget_key}": exact_number(budget) for level, budget in config.budgets.items()},
        _STAGE_1_FRACTION: exact_number(config.stage_1),
        "thresholds_p": {level.threshold_key: list(numbers) for level, numbers in config.thresholds.items()},
        _ZERO_SUPPRESSION: exact_number(config.zero_suppression),
    }


def production_config(runs: tuple[Run, ...]) -> PersonsConfig:
    """The configuration of 2020 for the given passes."""
    budgets = budgets_of_2020(Fraction(8, 1000), Fraction(2134, 1000), Fraction(159, 1000))
    thresholds = {level: _thresholds_of_2020(level) for level in LEVELS}
    return PersonsConfig(settings_of_2020(runs), budgets, thresholds, Fraction(1, 10), Fraction(9999, 10_000))


def _thresholds_of_2020(level: Level) -> tuple[int, int, int]:
    if level.iteration_level == 1:
        return 4971, 19971, 149971
    return (471, 971, 6971) if level.region.granularity == "detailed" else (971, 4971, 19971)
