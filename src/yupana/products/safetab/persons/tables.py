"""From noisy groups to the tables of SafeTab-P, with a variance and a margin of error on every row. Public."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from yupana.arrays import Ints
from yupana.plan.measurement import Measurement
from yupana.plan.plan import Plan
from yupana.products.safetab.iterations import CharacteristicIterations
from yupana.products.safetab.person_tables import AGE_TABLES, SEXES, TOTALS, AgeTable
from yupana.products.safetab.regions import Level
from yupana.products.safetab.tables import AreaCodes, Variances
from yupana.release.rows import Coded, RowTable


@dataclass(frozen=True, eq=False)
class NoisyGroups:
    """Noisy counts of some population groups of one level, public.

    Attributes
    ----------
    level : Level
    table : int
        0 for totals; k for the sex by age cells of ``AGE_TABLES[k - 1]``.
    areas, iterations : numpy.ndarray of int64, shape (groups,)
        Places in the areas of the kind and in the iterations of the level.
    counts : numpy.ndarray of int64, shape (groups, cells)
    measurement : Measurement
        Whose noise every cell has.
    """

    level: Level
    table: int
    areas: Ints
    iterations: Ints
    counts: Ints
    measurement: Measurement


def published_tables(
    groups: Iterable[NoisyGroups],
    iterations: CharacteristicIterations,
    areas: AreaCodes,
    plan: Plan,
) -> list[RowTable]:
    """Lay out T01001 and T02001 to T02003.

    The total of a group counted by sex and age is the sum of its cells; each sex has a row for all its ages. Where
    negative counts are not allowed, the cells were set to zero before they are added up here.

    Parameters
    ----------
    groups : iterable of NoisyGroups
    iterations : CharacteristicIterations
    areas : AreaCodes
        Of all passes.
    plan : Plan
        Of the margins of error.
    """
    variances = Variances(plan)
    parts: list[list[_Rows]] = [[] for _ in range(1 + len(AGE_TABLES))]
    for found in groups:
        if len(found.counts):
            eligible = iterations.eligible(found.level.iteration_level, found.level.region.granularity).iterations
            place = _Place(areas.places(found.level, found.areas), iterations.places(eligible)[found.iterations])
            parts[0].append(_totals(found, place, variances))
            if found.table:
                parts[found.table].append(_by_sex_and_age(found, place, variances))
    names = [TOTALS, *(table.name for table in AGE_TABLES)]
    layouts = [None, *AGE_TABLES]
    return [
        _table(name, layout, rows, iterations, areas, variances)
        for name, layout, rows in zip(names, layouts, parts, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class _Place:
    """Of each group the place of its area among all areas, and that of its iteration among all iterations."""

    area: Ints
    iteration: Ints


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of a table as numbers, all of one length."""

    area: Ints
    iteration: Ints
    cell: Ints
    count: Ints
    variance: Ints


def _totals(found: NoisyGroups, place: _Place, variances: Variances) -> _Rows:
    groups, cells = found.counts.shape
    total = found.counts.sum(axis=1)
    variance = np.full(groups, variances.place(found.measurement, cells))
    return _Rows(place.area, place.iteration, np.zeros(groups, dtype=np.int64), total, variance)


def _by_sex_and_age(found: NoisyGroups, place: _Place, variances: Variances) -> _Rows:
    """Of each group and sex the row of all ages, then those of its ages."""
    groups, cells = found.counts.shape
    by_sex = found.counts.reshape(groups, len(SEXES), -1)
    ages = by_sex.shape[2]
    count = np.concatenate([by_sex.sum(axis=2, keepdims=True), by_sex], axis=2).reshape(groups, -1)
    one, several = variances.place(found.measurement, 1), variances.place(found.measurement, ages)
    rows = cells + len(SEXES)
    return _Rows(
        np.repeat(place.area, rows),
        np.repeat(place.iteration, rows),
        np.tile(np.arange(rows), groups),
        count.ravel(),
        np.tile(np.tile([several, *[one] * ages], len(SEXES)), groups),
    )


def _table(
    name: str,
    layout: AgeTable | None,
    parts: list[_Rows],
    iterations: CharacteristicIterations,
    areas: AreaCodes,
    variances: Variances,
) -> RowTable:
    def column(of: str) -> Ints:
        return np.concatenate([np.zeros(0, dtype=np.int64), *(getattr(part, of) for part in parts)])

    area, iteration, cell, variance = (column(of) for of in ("area", "iteration", "cell", "variance"))
    by_cell = {}
    if layout is not None:
        starts = ["*", *map(str, layout.starts)] * len(SEXES)
        ends = ["*", *map(str, layout.ends)] * len(SEXES)
        sexes = np.repeat([str(sex) for sex in SEXES], 1 + len(layout.starts)).tolist()
        by_cell = {"AGESTART": Coded(starts, cell), "AGEEND": Coded(ends, cell), "SEX": Coded(sexes, cell)}
    return RowTable(
        name,
        {
            "REGION_ID": Coded(areas.ids, area),
            "REGION_TYPE": Coded(areas.types, area),
            "ITERATION_CODE": Coded([i.code for i in iterations.iterations], iteration),
            **by_cell,
            "COUNT": column("count"),
            "VARIANCE": Coded(variances.values, variance),
            "MOE": Coded(variances.margins, variance),
        },
        order=(area * len(iterations.iterations) + iteration) * _MOST_ROWS + cell,
    )


_MOST_ROWS: Final = 64
"""More than a group has rows in one table."""
