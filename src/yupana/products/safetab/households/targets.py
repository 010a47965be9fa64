"""Budgets of SafeTab-H from margins of error, or from a total. Public."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

from yupana.plan.budgets import Need
from yupana.plan.measurement import Accounting
from yupana.privacy.exact import Budget
from yupana.products.census import exact_number
from yupana.products.safetab.configuration import settings_document
from yupana.products.safetab.households.configuration import Config
from yupana.products.safetab.households.plan import measurement_name
from yupana.products.safetab.iterations import CharacteristicIterations
from yupana.products.safetab.plan import sensitivity
from yupana.products.safetab.regions import LEVELS, Level
from yupana.products.safetab.specification import QUESTIONS, Question

NAMES: Final[Mapping[str, tuple[Question, Level]]] = {
    measurement_name(question, level): (question, level) for level in LEVELS for question in QUESTIONS
}
"""Every budget by the name of its measurement, such as ``T03/COUNTY 2``."""


def entries(config: Config, iterations: CharacteristicIterations) -> dict[str, Budget]:
    """Every budget of the passes that are run, by name, where there are groups to count; zeros included."""
    levels = [
        level
        for level in config.settings.levels
        if iterations.eligible(level.iteration_level, level.region.granularity).iterations
    ]
    return {name: config.budgets[question.key, level] for name, (question, level) in NAMES.items() if level in levels}


def pass_of(name: str) -> str:
    """The pass of a budget."""
    return NAMES[name][1].region.run


def needs(
    config: Config, iterations: CharacteristicIterations, margins: Mapping[str, Fraction], accounting: Accounting
) -> Iterable[Need]:
    """What margins of error (or sizes) of single cells ask of the budgets."""
    for name, margin in margins.items():
        _, level = NAMES[name]
        promised = sensitivity(iterations, level, config.settings.max_race_codes, accounting)
        yield Need(name, margin, promised.unbounded)


def with_budgets(config: Config, budgets: Mapping[str, Budget]) -> Config:
    """The configuration with some budgets replaced, named as by `entries`."""
    changed: dict[tuple[str, Level], Budget] = {
        (NAMES[name][0].key, NAMES[name][1]): budget for name, budget in budgets.items()
    }
    return replace(config, budgets={**config.budgets, **changed})


def config_document(config: Config) -> dict[str, Any]:
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
