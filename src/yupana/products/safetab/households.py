"""SafeTab-H: its keys of config.json, and the run of 2020. Public; no data needed."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

from yupana.files.document import UNCHANGED, Changes, refuse
from yupana.privacy.exact import Budget
from yupana.products.census import exact_number
from yupana.products.safetab.configuration import (
    BUDGET_KEYS_H,
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
from yupana.products.safetab.specification import QUESTIONS, HouseholdQuestion

Asked = tuple[str, Level]
"""The key of a question, and the level at which it is asked."""


@dataclass(frozen=True, slots=True)
class HouseholdsConfig(SafetabConfig[Asked]):
    """A validated configuration, its budgets and thresholds by question and level.

    A group gets the next larger table of a question from a total of T01001 that reaches the next threshold.
    """

    product: ClassVar = "safetab-h"

    def of_table(self, table: str) -> tuple[Mapping[Level, Budget], Mapping[Level, tuple[int, ...]]]:
        """Those of a question."""
        (key,) = (question.key for question in QUESTIONS if question.name == table)
        budgets = {level: budget for (asked, level), budget in self.budgets.items() if asked == key}
        return budgets, {level: numbers for (asked, level), numbers in self.thresholds.items() if asked == key}


def read_config(path: Path, changes: Changes = UNCHANGED) -> HouseholdsConfig:
    """Read and check a configuration file, with changes made in it.

    Raises
    ------
    ConfigError
        Naming the file, the key and what is wrong with it. All faults are named at once.
    """
    document = open_document(path, "safetab-h", changes, KEYS_H, (*KEYS_P, *OPTIONAL_P))
    settings = document.settings()
    budgets = document.budgets(BUDGET_KEYS_H)
    levels = settings.levels if settings else ()
    thresholds: dict[Asked, tuple[int, ...]] = {
        (question.key, level): numbers
        for question, (least, most) in zip(QUESTIONS, ((3, None), (1, 1)), strict=True)
        for level, numbers in document.thresholds(f"thresholds_h_{question.key}", levels, least, most).items()
    }
    if document.faults or settings is None:
        raise refuse(path, document.faults)
    asked: dict[Asked, Budget] = {
        (q.key, level): budgets[f"privacy_budget_h_{q.key}_{level.budget_key}"] for q in QUESTIONS for level in LEVELS
    }
    return HouseholdsConfig(settings, asked, thresholds)


def config_document(config: HouseholdsConfig) -> dict[str, Any]:
    """A configuration as its config.json, which is read back exactly."""
    return {
        **settings_document(config.settings),
        **{
            f"privacy_budget_h_{family}_{level.budget_key}": exact_number(budget)
            for (family, level), budget in config.budgets.items()
        },
        **{
            f"thresholds_h_{q.key}": {
                level.threshold_key: list(numbers)
                for (family, level), numbers in config.thresholds.items()
                if family == q.key
            }
            for q in QUESTIONS
        },
    }


def measurement_name(question: HouseholdQuestion, level: Level) -> str:
    """Name of a measurement: ``T03/COUNTY 2``."""
    return f"{question.name}/{level.name}"


def production_config(runs: tuple[Run, ...]) -> HouseholdsConfig:
    """The configuration of 2020 for the given passes; budgets are the same for both questions."""
    budgets = budgets_of_2020(Fraction("0.006915"), Fraction("1.9208"), Fraction("0.142869"))
    asked: dict[Asked, Budget] = {
        (question.key, level): budget for question in QUESTIONS for level, budget in budgets.items()
    }
    thresholds: dict[Asked, tuple[int, ...]] = {}
    for level in LEVELS:
        of_level = _thresholds_of_2020(level)
        thresholds["t3", level] = of_level
        thresholds["t4", level] = of_level[:1]
    return HouseholdsConfig(settings_of_2020(runs), asked, thresholds)


def _thresholds_of_2020(level: Level) -> tuple[int, int, int]:
    detailed = level.region.granularity == "detailed"
    if level.iteration_level == 1 and level.region.base != "aiannh":
        # The last differs by one in the files of 2020.
        return (4971, 19971, 149971) if detailed else (4971, 19971, 149970)
    return (471, 971, 6971) if detailed else (971, 4971, 19971)
