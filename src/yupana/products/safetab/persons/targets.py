"""Budgets of SafeTab-P from margins of error, or from a total. Public."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

from yupana.plan.budgets import Need
from yupana.plan.measurement import Accounting
from yupana.privacy.exact import Budget
from yupana.products.census import exact_number
from yupana.products.safetab.configuration import settings_document
from yupana.products.safetab.iterations import CharacteristicIterations
from yupana.products.safetab.persons.configuration import Config
from yupana.products.safetab.plan import sensitivity
from yupana.products.safetab.regions import LEVELS, Level

NAMES: Final[Mapping[str, Level]] = {level.name: level for level in LEVELS}
"""Every budget by its level, such as ``COUNTY 2``: its measurements share it."""


def entries(config: Config, iterations: CharacteristicIterations) -> dict[str, Budget]:
    """Every budget of the passes that are run, by name, where there are groups to count; zeros included."""
    return {
        level.name: config.budgets[level]
        for level in config.settings.levels
        if iterations.eligible(level.iteration_level, level.region.granularity).iterations
    }


def pass_of(name: str) -> str:
    """The pass of a budget."""
    return NAMES[name].region.run


def share_of_cells(config: Config, iterations: CharacteristicIterations, level: Level) -> Fraction:
    """The part of a level's budget that its published cells have.

    Stage 1 takes the rest, but not of iterations of which only totals are made: these have the whole, so that where
    there are others, they decide.
    """
    eligible = iterations.eligible(level.iteration_level, level.region.granularity).iterations
    return 1 - config.stage_1 if any(not i.detailed_only for i in eligible) else Fraction(1)


def needs(
    config: Config, iterations: CharacteristicIterations, margins: Mapping[str, Fraction], accounting: Accounting
) -> Iterable[Need]:
    """What margins of error (or sizes) of single cells, those of stage 2, ask of the budgets."""
    for name, margin in margins.items():
        level = NAMES[name]
        promised = sensitivity(iterations, level, config.settings.max_race_codes, accounting)
        yield Need(name, margin, promised.unbounded, share_of_cells(config, iterations, level))


def with_budgets(config: Config, budgets: Mapping[str, Budget]) -> Config:
    """The configuration with some budgets replaced, named as by `entries`."""
    return replace(config, budgets={**config.budgets, **{NAMES[name]: budget for name, budget in budgets.items()}})


def config_document(config: Config) -> dict[str, Any]:
    """A configuration as its config.json, which is read back exactly."""
    return {
        **settings_document(config.settings),
        **{f"privacy_budget_p_{level.budget_key}": exact_number(budget) for level, budget in config.budgets.items()},
        "privacy_budget_p_stage_1_fraction": exact_number(config.stage_1),
        "thresholds_p": {level.threshold_key: list(numbers) for level, numbers in config.thresholds.items()},
        "zero_suppression_chance": exact_number(config.zero_suppression),
    }
