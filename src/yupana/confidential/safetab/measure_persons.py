"""SafeTab-P's two stages: totals that choose each group's table, then the table itself."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from yupana.confidential.choices import Choosing, LevelGroups, left_out_up_to
from yupana.confidential.slices import CellSums, SlicedLevel, measure_slices
from yupana.confidential.tabulate.part_counts import CountedAreas
from yupana.confidential.tabulate.pieces import GroupAreas
from yupana.confidential.tabulate.tabulation import GroupTabulation
from yupana.plan.ledger import Ledger
from yupana.plan.plan import Plan
from yupana.privacy.entropy import Entropy
from yupana.privacy.sealed import Sealed
from yupana.products.safetab.iterations import CharacteristicIterations
from yupana.products.safetab.persons import STAGE_1, STAGE_2, PersonsConfig, measurement_name
from yupana.products.safetab.plan import DETAILED_ONLY
from yupana.products.safetab.regions import Level, Run
from yupana.products.safetab.specification import AGE_TABLES, DETAILED_TOTALS, PERSONS
from yupana.products.tables import Groups

_EACH: Final = CellSums(np.eye(PERSONS.measured, dtype=bool))
"""The categories that are counted are the cells of the finest table."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PassCounts(Sealed):
    """Exact counts of one pass, some areas at a time."""

    run: Run
    areas: GroupAreas
    tabulation: GroupTabulation
    counted: Iterable[CountedAreas]


@dataclass(frozen=True, eq=False, repr=False)
class PersonCounts(Sealed):
    """Exact counts, pass after pass.

    Attributes
    ----------
    passes : iterable of PassCounts
        Unless they are kept, a pass is counted as its areas are asked for, and before the next is begun: the database
        holds the areas of one pass.
    in_no_iteration : Counter
        How many records are in no iteration, by pass; told by what was counted.
    """

    passes: Iterable[PassCounts]
    in_no_iteration: Counter[Run] = field(default_factory=Counter)

    def areas_of(self, counts: PassCounts) -> Iterator[CountedAreas]:
        """The areas of a pass; how many of its records are in no iteration is noted."""
        self.in_no_iteration[counts.run] = 0
        for found in counts.counted:
            self.in_no_iteration[counts.run] += found.in_no_group
            yield found


def measure_persons(
    exact: PersonCounts, config: PersonsConfig, iterations: CharacteristicIterations, ledger: Ledger, entropy: Entropy
) -> Iterator[Groups]:
    """Measure every group, pass after pass as areas are counted; those that cross states come last."""
    for counts in exact.passes:
        levels = [
            _level(config, iterations, counts.areas, ledger.plan, level)
            for level in config.settings.levels
            if level.region.run == counts.run and config.budgets[level] > 0
        ]
        yield from measure_slices(exact.areas_of(counts), counts.areas, counts.tabulation, levels, [], ledger, entropy)


def _level(
    config: PersonsConfig, iterations: CharacteristicIterations, areas: GroupAreas, plan: Plan, level: Level
) -> SlicedLevel:
    """What a plan measures at a level. Stage 2 gives a large group its cells, and leaves out small totals."""
    region, measurements = level.region, {m.name: m for m in plan.measurements}
    eligible = iterations.eligible(level.iteration_level, region.granularity).iterations
    stage_1, stage_2, detailed_only = (
        measurements.get(measurement_name(kind, level)) for kind in (STAGE_1, STAGE_2, DETAILED_ONLY)
    )
    chance = None if region.base in {"nation", "state"} else config.zero_suppression
    groups = LevelGroups(
        kind=region.name,
        areas=areas.written(region.base),
        groups=[iteration.code for iteration in eligible],
        family=PERSONS,
        measured=stage_2,
        choosing=Choosing(
            stage_1,
            config.thresholds[level][: len(AGE_TABLES)],
            left_out_up_to(stage_2, chance),
        ),
        coarsest=(DETAILED_TOTALS, detailed_only) if detailed_only else None,
        always=np.array([iteration.detailed_only for iteration in eligible], dtype=bool),
        negative=config.settings.allow_negative_counts,
    )
    columns = iterations.columns(level.iteration_level, region.granularity)
    return SlicedLevel(region.base, columns, _EACH, groups)
