"""The published tables of PHSafe, from noisy counts. Public: nothing here sees a record or an exact count."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from yupana.plan.measurement import Measurement
from yupana.plan.plan import Plan
from yupana.products.phsafe.specification import DERIVED, LEVELS, Level, Table, cell_column, table
from yupana.release.tables import ReleaseTable


@dataclass(frozen=True, slots=True)
class Group:
    """A population group: a region and an iteration."""

    region_type: str
    region_id: str
    iteration: str


def level_of(key: str) -> Level:
    """Find a population-group level by its key in the configuration, or raise KeyError."""
    return _LEVELS[key]


_LEVELS: Final[Mapping[str, Level]] = {level.key: level for level in LEVELS}


def groups(level: Level, states: tuple[str, ...]) -> tuple[Group, ...]:
    """The population groups of a level, in the order of the rows: by region, then by iteration."""
    regions = ("1",) if level.region_type == "USA" else states
    return tuple(Group(level.region_type, region, code) for region in regions for code in level.iterations)


@dataclass(frozen=True, slots=True)
class _Row:
    group: Group
    cell: int
    count: int
    noise: str
    variance: float
    margin: float


def published_tables(plan: Plan, states: tuple[str, ...], noisy: Mapping[str, NDArray[np.int64]]) -> list[ReleaseTable]:
    """Lay out every table: a row per population group and basis cell, zeros included, and the derived tables.

    Parameters
    ----------
    plan : Plan
    states : tuple of str
        Codes of the states published.
    noisy : mapping of measurement name to int64 array, shape (population groups of the level, cells)
    """
    tables = []
    for name in dict.fromkeys(m.table for m in plan.measurements):
        source = table(name)
        measurements = [m for m in plan.measurements if m.table == name]
        tables.append(_table(source.name, source, _rows(plan, source, measurements, states, noisy, _basis(source))))
        tables += [
            _table(derived.name, source, _rows(plan, source, measurements, states, noisy, derived.cells))
            for derived in DERIVED
            if derived.source == name
        ]
    return tables


def _basis(source: Table) -> dict[int, tuple[int, ...]]:
    return {cell: (cell,) for cell in source.cells}


def _rows(
    plan: Plan,
    source: Table,
    measurements: list[Measurement],
    states: tuple[str, ...],
    noisy: Mapping[str, NDArray[np.int64]],
    cells: Mapping[int, tuple[int, ...]],
) -> list[_Row]:
    """Rows of one table whose cells are sums of the basis cells of ``source``: counts and variances add."""
    place = {cell: i for i, cell in enumerate(source.cells)}
    rows = []
    for m in measurements:
        noise = m.law.name
        variances = {cell: len(parts) * m.variance for cell, parts in cells.items()}
        margins = {cell: plan.margin(m, len(parts)) for cell, parts in cells.items()}
        for group, counts in zip(groups(level_of(m.level), states), noisy[m.name].tolist(), strict=True):
            for cell, parts in cells.items():
                count = sum(counts[place[part]] for part in parts)
                rows.append(_Row(group, cell, count, noise, float(variances[cell]), margins[cell]))
    # The nation first, then states; within a region by iteration, the total first.
    return sorted(rows, key=lambda r: (r.group.region_type != "USA", r.group.region_id, r.group.iteration, r.cell))


def _table(name: str, source: Table, rows: list[_Row]) -> ReleaseTable:
    iterations = {"ITERATION_CODE": [r.group.iteration for r in rows]} if source.iterated_by else {}
    return ReleaseTable(
        name,
        {
            "REGION_ID": [r.group.region_id for r in rows],
            "REGION_TYPE": [r.group.region_type for r in rows],
            **iterations,
            cell_column(name): [r.cell for r in rows],
            "COUNT": [r.count for r in rows],
            "NOISE_DISTRIBUTION": [r.noise for r in rows],
            "VARIANCE": [r.variance for r in rows],
            "MOE": [r.margin for r in rows],
        },
    )
