"""SafeTab-H as it was run for the 2020 Census: the published numbers, as a plan. Public."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from yupana.plan.measurement import Mechanism
from yupana.plan.plan import Plan
from yupana.products.census import STATES
from yupana.products.safetab.configuration import Settings
from yupana.products.safetab.households.configuration import HouseholdsConfig
from yupana.products.safetab.households.plan import make_plan
from yupana.products.safetab.iterations import MOST_RACE_CODES, CharacteristicIterations
from yupana.products.safetab.regions import LEVELS, Level, Run
from yupana.products.safetab.specification import QUESTIONS

_REGIONAL: Final = Fraction("0.006915")
_DETAILED_NATION_AND_STATE: Final = Fraction("1.9208")
_DETAILED_ELSEWHERE: Final = Fraction("0.142869")


def budgets() -> Mapping[tuple[str, Level], Fraction]:
    """Rho by question and level; the same for both questions."""
    return {(question.key, level): _budget(level) for question in QUESTIONS for level in LEVELS}


def _budget(level: Level) -> Fraction:
    if level.iteration_level == 1:
        return Fraction(0) if level.region.base == "aiannh" else _REGIONAL
    return _DETAILED_NATION_AND_STATE if level.region.granularity == "detailed" else _DETAILED_ELSEWHERE


def thresholds() -> Mapping[tuple[str, Level], tuple[int, ...]]:
    """Totals from which a group gets the next larger table of a family."""
    found: dict[tuple[str, Level], tuple[int, ...]] = {}
    for level in LEVELS:
        of_level = _thresholds(level)
        found["t3", level] = of_level
        found["t4", level] = of_level[:1]
    return found


def _thresholds(level: Level) -> tuple[int, int, int]:
    detailed = level.region.granularity == "detailed"
    if level.iteration_level == 1 and level.region.base != "aiannh":
        # The last differs by one in the files of 2020.
        return (4971, 19971, 149971) if detailed else (4971, 19971, 149970)
    return (471, 971, 6971) if detailed else (971, 4971, 19971)


def production_config(runs: tuple[Run, ...]) -> HouseholdsConfig:
    """The configuration of 2020 for the given passes."""
    settings = Settings(
        MOST_RACE_CODES, allow_negative_counts=True, runs=runs, us_states=STATES, mechanism=Mechanism.ZCDP
    )
    return HouseholdsConfig(settings, budgets(), thresholds())


def production_plan(runs: tuple[Run, ...], iterations: CharacteristicIterations) -> Plan:
    """The plan of 2020 for the given passes and iterations."""
    return make_plan(production_config(runs), iterations)
