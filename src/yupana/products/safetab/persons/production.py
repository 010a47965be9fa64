"""SafeTab-P as it was run for the 2020 Census: the published numbers, as a plan. Public."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from yupana.plan.measurement import Mechanism
from yupana.plan.plan import Plan
from yupana.products.census import STATES
from yupana.products.safetab.configuration import Settings
from yupana.products.safetab.iterations import MOST_RACE_CODES, CharacteristicIterations
from yupana.products.safetab.persons.configuration import PersonsConfig
from yupana.products.safetab.persons.plan import make_plan
from yupana.products.safetab.regions import LEVELS, Level, Run

STAGE_1: Final = Fraction(1, 10)
ZERO_SUPPRESSION: Final = Fraction(9999, 10_000)

_REGIONAL: Final = Fraction(8, 1000)
_DETAILED_NATION_AND_STATE: Final = Fraction(2134, 1000)
_DETAILED_ELSEWHERE: Final = Fraction(159, 1000)


def budgets() -> Mapping[Level, Fraction]:
    """Rho of every level."""
    return {level: _budget(level) for level in LEVELS}


def _budget(level: Level) -> Fraction:
    if level.iteration_level == 1:
        return Fraction(0) if level.region.base == "aiannh" else _REGIONAL
    return _DETAILED_NATION_AND_STATE if level.region.granularity == "detailed" else _DETAILED_ELSEWHERE


def thresholds() -> Mapping[Level, tuple[int, int, int]]:
    """Noisy totals from which a group is counted in 4, 9 and 23 ages."""
    return {level: _thresholds(level) for level in LEVELS}


def _thresholds(level: Level) -> tuple[int, int, int]:
    if level.iteration_level == 1:
        return 4971, 19971, 149971
    return (471, 971, 6971) if level.region.granularity == "detailed" else (971, 4971, 19971)


def production_config(runs: tuple[Run, ...]) -> PersonsConfig:
    """The configuration of 2020 for the given passes."""
    settings = Settings(
        MOST_RACE_CODES, allow_negative_counts=True, runs=runs, us_states=STATES, mechanism=Mechanism.ZCDP
    )
    return PersonsConfig(settings, budgets(), STAGE_1, thresholds(), ZERO_SUPPRESSION)


def production_plan(runs: tuple[Run, ...], iterations: CharacteristicIterations) -> Plan:
    """The plan of 2020 for the given passes and iterations."""
    return make_plan(production_config(runs), iterations)
