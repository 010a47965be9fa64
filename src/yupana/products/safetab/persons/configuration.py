"""config.json of SafeTab-P. Public; read without rounding."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from yupana.files.changes import UNCHANGED, Changes
from yupana.files.document import refuse
from yupana.privacy.exact import INFINITE, Budget
from yupana.products.census import exact_number
from yupana.products.safetab.configuration import KEYS_H, KEYS_P, OPTIONAL_P, Settings, open_document, settings_document
from yupana.products.safetab.regions import LEVELS, Level


@dataclass(frozen=True, slots=True)
class PersonsConfig:
    """A validated configuration.

    Attributes
    ----------
    settings : Settings
    budgets : mapping of Level to Fraction or INFINITE
        rho (epsilon under pure DP) of every level, zeros included: a level of budget zero is not measured.
    stage_1 : Fraction
        Share of a level's budget that stage 1 spends on choosing the table of each population group.
    thresholds : mapping of Level to tuple of int
        Noisy totals from which a group is counted in 4, 9 and 23 ages.
    zero_suppression : Fraction
        The chance with which the total of an empty group is left out; 0 where none is.
    """

    settings: Settings
    budgets: Mapping[Level, Budget]
    stage_1: Fraction
    thresholds: Mapping[Level, tuple[int, ...]]
    zero_suppression: Fraction


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
    stage_1 = document.share("privacy_budget_p_stage_1_fraction", zero=False)
    zero = document.share("zero_suppression_chance", zero=True)
    thresholds = document.thresholds("thresholds_p", settings.levels if settings else (), 3, None)
    if stage_1 is None and document.keys.get("privacy_budget_p_stage_1_fraction", 0) is None:
        document.faults.append("privacy_budget_p_stage_1_fraction: must be a number above 0 and below 1")
    if document.faults or settings is None or stage_1 is None:
        raise refuse(path, document.faults)
    by_level = {level: budgets[f"privacy_budget_p_{level.budget_key}"] for level in LEVELS}
    return PersonsConfig(settings, by_level, stage_1, thresholds, zero or Fraction(0))


def config_document(config: PersonsConfig) -> dict[str, Any]:
    """A configuration as its config.json, which is read back exactly."""
    return {
        **settings_document(config.settings),
        **{f"privacy_budget_p_{level.budget_key}": exact_number(budget) for level, budget in config.budgets.items()},
        "privacy_budget_p_stage_1_fraction": exact_number(config.stage_1),
        "thresholds_p": {level.threshold_key: list(numbers) for level, numbers in config.thresholds.items()},
        "zero_suppression_chance": exact_number(config.zero_suppression),
    }


def without_noise(config: PersonsConfig) -> PersonsConfig:
    """The same configuration with infinite budgets for all that is measured: zero noise, for synthetic data only."""
    budgets = {level: INFINITE if budget > 0 else budget for level, budget in config.budgets.items()}
    return replace(config, budgets=budgets)
