"""config.json of SafeTab-H. Public; read without rounding."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from yupana.files.changes import UNCHANGED, Changes
from yupana.files.document import refuse
from yupana.privacy.exact import INFINITE, Budget
from yupana.products.census import exact_number
from yupana.products.safetab.configuration import (
    BUDGET_KEYS_H,
    KEYS_H,
    KEYS_P,
    OPTIONAL_P,
    Settings,
    open_document,
    settings_document,
)
from yupana.products.safetab.regions import LEVELS, Level
from yupana.products.safetab.specification import QUESTIONS


@dataclass(frozen=True, slots=True)
class HouseholdsConfig:
    """A validated configuration.

    Attributes
    ----------
    settings : Settings
    budgets : mapping of (key of a question, Level) to Fraction or INFINITE
        rho (epsilon under pure DP), zeros included: what has budget zero is not measured.
    thresholds : mapping of (key of a question, Level) to tuple of int
        Totals of T01001 from which a group gets the next larger table.
    """

    settings: Settings
    budgets: Mapping[tuple[str, Level], Budget]
    thresholds: Mapping[tuple[str, Level], tuple[int, ...]]


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
    thresholds: dict[tuple[str, Level], tuple[int, ...]] = {
        (question.key, level): numbers
        for question, (least, most) in zip(QUESTIONS, ((3, None), (1, 1)), strict=True)
        for level, numbers in document.thresholds(f"thresholds_h_{question.key}", levels, least, most).items()
    }
    if document.faults or settings is None:
        raise refuse(path, document.faults)
    by_level: dict[tuple[str, Level], Budget] = {
        (question.key, level): budgets[f"privacy_budget_h_{question.key}_{level.budget_key}"]
        for question in QUESTIONS
        for level in LEVELS
    }
    return HouseholdsConfig(settings, by_level, thresholds)


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


def without_noise(config: HouseholdsConfig) -> HouseholdsConfig:
    """The same configuration with infinite budgets for all that is measured: zero noise, for synthetic data only."""
    budgets = {place: INFINITE if budget > 0 else budget for place, budget in config.budgets.items()}
    return replace(config, budgets=budgets)
