"""Budgets of PHSafe from margins of error, or from a total. Public."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from yupana.plan.budgets import Need
from yupana.plan.measurement import Accounting
from yupana.privacy.exact import Budget
from yupana.products.census import MECHANISMS, exact_number
from yupana.products.phsafe.configuration import Config
from yupana.products.phsafe.specification import TABLES, table


def entries(config: Config) -> dict[str, Budget]:
    """Every budget by the name of its measurement, such as ``PH1_num/usa_*``; zeros included."""
    return {f"{name}/{level}": budget for (name, level), budget in config.budgets.items()}


def needs(config: Config, margins: Mapping[str, Fraction], accounting: Accounting) -> Iterable[Need]:
    """What margins of error (or sizes) of single cells ask of the budgets."""
    for name, margin in margins.items():
        of_table = table(name.partition("/")[0])
        tau = config.taus.get(of_table.name) if of_table.persons is not None else None
        yield Need(name, margin, of_table.sensitivity(tau, config.mechanism, accounting).unbounded)


def with_budgets(config: Config, budgets: Mapping[str, Budget]) -> Config:
    """The configuration with some budgets replaced, named as by `entries`."""
    changed = {(name.partition("/")[0], name.partition("/")[2]): budget for name, budget in budgets.items()}
    return replace(config, budgets={**config.budgets, **changed})


def config_document(config: Config) -> dict[str, Any]:
    """A configuration as its config.json, which is read back exactly."""
    return {
        "privacy_budget": {
            t.name: {level.key: exact_number(config.budgets[t.name, level.key]) for level in t.levels} for t in TABLES
        },
        "tau": dict(config.taus),
        "state_filter": list(config.states),
        "reader": "csv",
        "privacy_defn": next(name for name, mechanism in MECHANISMS.items() if mechanism is config.mechanism),
        **({"truncation_key": config.truncation_key} if config.truncation_key else {}),
        **({"consistency": dict(config.consistency)} if config.consistency else {}),
    }
