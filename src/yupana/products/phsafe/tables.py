"""The published tables of PHSafe, from noisy counts. Public: nothing here sees a record or an exact count."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from yupana.arrays import Ints
from yupana.plan.plan import Plan
from yupana.products.phsafe.specification import FAMILIES, LEVELS, PhsafeLevel
from yupana.products.tables import Groups, lay_out
from yupana.release.rows import Coded, RowTable

REGION_TYPES: Final = ("USA", "STATE")


@dataclass(frozen=True, slots=True)
class Group:
    """A population group: a region and an iteration."""

    region_type: str
    region_id: str
    iteration: str


def level_of(key: str) -> PhsafeLevel:
    """Find a population-group level by its key in the configuration, or raise KeyError."""
    return _LEVELS[key]


_LEVELS: Final[Mapping[str, PhsafeLevel]] = {level.key: level for level in LEVELS}


def groups(level: PhsafeLevel, states: tuple[str, ...]) -> tuple[Group, ...]:
    """The population groups of a level, in the order of the rows: by region, then by iteration."""
    regions = regions_of(level, states)
    return tuple(Group(level.region_type, region, code) for region in regions for code in level.iterations)


def regions_of(level: PhsafeLevel, states: tuple[str, ...]) -> tuple[str, ...]:
    """The codes of a level's regions."""
    return ("1",) if level.region_type == "USA" else states


def noisy_groups(plan: Plan, states: tuple[str, ...], noisy: Mapping[str, Ints]) -> Iterator[Groups]:
    """The population groups of a plan, measurement by measurement.

    Parameters
    ----------
    plan : Plan
    states : tuple of str
        Codes of the states published.
    noisy : mapping of measurement name to int64 array, shape (population groups of the level, cells)
    """
    families = {family.name: family for family in FAMILIES}
    for m in plan.measurements:
        level = level_of(m.level)
        regions = regions_of(level, states)
        area, iteration = np.divmod(np.arange(len(regions) * len(level.iterations)), len(level.iterations))
        codes = Coded(regions, area), Coded(level.iterations, iteration)
        yield Groups(families[m.table], 0, level.region_type, *codes, noisy[m.name], m)


def published_tables(plan: Plan, groups: Iterable[Groups]) -> list[RowTable]:
    """Lay out every table: a row per population group and basis cell, zeros included, and the derived tables.

    The nation comes first, then states; within a region the total, then iterations.
    """
    measured = {m.table for m in plan.measurements}
    return lay_out([family for family in FAMILIES if family.name in measured], groups, plan, REGION_TYPES)
