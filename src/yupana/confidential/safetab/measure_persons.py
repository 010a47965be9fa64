"""SafeTab-P's two stages: totals that choose each group's table, then the table itself."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Ints
from yupana.confidential.tabulate.groups import SliceCounts, SummedCounts
from yupana.confidential.tabulate.pieces import GroupAreas
from yupana.plan.ledger import Ledger, Meter
from yupana.plan.measurement import Measurement
from yupana.plan.plan import Plan
from yupana.privacy.entropy import Entropy
from yupana.privacy.sealed import Sealed
from yupana.products.safetab.iterations import CharacteristicIterations
from yupana.products.safetab.persons import DETAILED_ONLY, STAGE_1, STAGE_2, PersonsConfig, measurement_name
from yupana.products.safetab.regions import Level, Run
from yupana.products.safetab.specification import AGE_TABLES, DETAILED_TOTALS, PERSONS
from yupana.products.tables import Family, Groups, without_negative
from yupana.release.rows import Coded

Details = Callable[[NDArray[np.bool_]], Ints]

_GROUPS_AT_ONCE = 1 << 20

_CELLS = np.array([choice.measured for choice in PERSONS.choices])
"""Measured cells of a group by its statistics level."""


@dataclass(frozen=True, eq=False, repr=False)
class PersonCounts(Sealed):
    """Exact counts, pass after pass.

    Attributes
    ----------
    passes : iterable of tuple of Run, GroupAreas, iterable of SliceCounts
        Of each pass its areas and its slices. Unless they are kept, a pass is counted as its slices are asked for,
        and before the next is begun: the database holds the areas of one pass.
    in_no_iteration : Counter
        How many records are in no iteration, by pass; told by the slices that were counted.
    """

    passes: Iterable[tuple[Run, GroupAreas, Iterable[SliceCounts]]]
    in_no_iteration: Counter[Run] = field(default_factory=Counter)

    def of_pass(self, run: Run, slices: Iterable[SliceCounts]) -> Iterator[SliceCounts]:
        """The slices of a pass; how many of their records are in no iteration is noted."""
        self.in_no_iteration[run] = 0
        for part in slices:
            self.in_no_iteration[run] += part.in_no_group
            yield part


@dataclass(slots=True)
class _LevelMeters:
    """What is measured of a level, and how many of its groups."""

    level: Level
    areas: list[str]
    iterations: list[str]
    thresholds: tuple[int, ...]
    suppressed_up_to: int | None
    common: Ints
    detailed_only: Ints
    stages: tuple[Meter, Meter] | None = None
    total: Meter | None = None

    def groups(
        self, family: Family, choice: int, area: Ints, iteration: Ints, counts: Ints, measurement: Measurement
    ) -> Groups:
        """Groups of the level by the places of their areas and iterations."""
        codes = Coded(self.areas, area), Coded(self.iterations, iteration)
        return Groups(family, choice, self.level.region.name, *codes, counts, measurement)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Chosen(Sealed):
    """Groups of some areas, one row of ``width`` iterations after the other, and what stage 1 chose for them.

    Attributes
    ----------
    first : int
        Position of the first group among those of all areas.
    width : int
    totals : numpy.ndarray of int64, shape (groups,)
    levels : numpy.ndarray of int8, shape (groups,)
        Which of the choices each group gets.
    large : numpy.ndarray of int64
        The groups that get more than a total, ascending.
    finest : numpy.ndarray of int64, shape (large groups, measured cells)
    """

    first: int
    width: int
    totals: Ints
    levels: NDArray[np.int8]
    large: Ints
    finest: Ints


@dataclass(slots=True)
class Measurer:
    """Passes the counts of one pass through the door, level by level and slice by slice."""

    config: PersonsConfig
    iterations: CharacteristicIterations
    areas: GroupAreas
    ledger: Ledger
    entropy: Entropy
    run: Run
    _areas: dict[str, list[str]] = field(default_factory=dict, init=False)
    _meters: dict[str, list[_LevelMeters]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        for level in self.config.settings.levels:
            if level.region.run == self.run and self.config.budgets[level] > 0:
                base = level.region.base
                if base not in self._areas:
                    self._areas[base] = self.areas.written(base)
                self._meters.setdefault(base, []).append(self._open(level))

    def measure(self, slices: Iterable[SliceCounts]) -> Iterable[Groups]:
        """Measure every group of the pass, in the order of the slices; areas that cross them come last."""
        sums = {}
        for base, meters in self._meters.items():
            if self.areas.crosses(base):
                shown = len(self.iterations.groups(meters[0].level.region.granularity))
                sums[base] = SummedCounts(len(self.areas.ids[base]), shown, PERSONS.measured)
        for part in slices:
            for base, meters in self._meters.items():
                if base in sums:
                    sums[base].add(part, base)
                else:
                    first, _ = part.range_of(base)
                    yield from self._measure_area_kind(meters, first, part.totals(base), partial(part.details, base))
        for base, summed in sums.items():
            yield from self._measure_area_kind(self._meters[base], 0, summed.totals(), summed.details)

    def _open(self, level: Level) -> _LevelMeters:
        eligible = self.iterations.eligible(level.iteration_level, level.region.granularity).iterations
        detailed_only = np.array([i.detailed_only for i in eligible], dtype=bool)
        areas = len(self.areas.ids[level.region.base])
        plan = self.ledger.plan
        meters = _LevelMeters(
            level,
            self._areas[level.region.base],
            [iteration.code for iteration in eligible],
            self.config.thresholds[level][: len(AGE_TABLES)],
            self._suppressed_up_to(plan, level),
            np.flatnonzero(~detailed_only),
            np.flatnonzero(detailed_only),
        )
        if len(meters.common):
            groups = areas * len(meters.common)
            stage_1, stage_2 = (plan[measurement_name(stage, level)] for stage in (STAGE_1, STAGE_2))
            meters.stages = self.ledger.open(stage_1, groups), self.ledger.open(stage_2, groups)
        if len(meters.detailed_only):
            total = plan[measurement_name(DETAILED_ONLY, level)]
            meters.total = self.ledger.open(total, areas * len(meters.detailed_only))
        return meters

    def _suppressed_up_to(self, plan: Plan, level: Level) -> int | None:
        """The largest noisy total that is left out, or None where none is.

        It is the quantile of the noise: the total of an empty group passes it with one minus the configured chance.
        """
        if not self.config.zero_suppression or level.region.base in {"nation", "state"}:
            return None
        names = {m.name for m in plan.measurements}
        name = measurement_name(STAGE_2, level)
        return plan[name].law.quantile(float(self.config.zero_suppression)) if name in names else None

    def _measure_area_kind(
        self, meters: list[_LevelMeters], first: int, totals: Ints, details: Details
    ) -> Iterable[Groups]:
        for of_level in meters:
            level = of_level.level
            columns = self.iterations.columns(level.iteration_level, level.region.granularity)
            if of_level.total is not None:
                of_detailed = totals[:, columns][:, of_level.detailed_only]
                yield self._measure_totals(of_level, of_level.total, first, of_detailed)
            if of_level.stages is not None:
                common = columns.start + of_level.common
                exact = totals[:, common]
                yield from self._measure_stages(of_level, *of_level.stages, first, exact, common, totals.shape, details)

    def _measure_totals(self, meters: _LevelMeters, meter: Meter, first: int, totals: Ints) -> Groups:
        areas, width = totals.shape
        ones = np.ones(totals.size, dtype=np.int64)
        noisy = self._clamped(meter.measure(first * width, ones, totals.ravel(), self.entropy))
        area, iteration = np.repeat(np.arange(first, first + areas), width), np.tile(meters.detailed_only, areas)
        return meters.groups(DETAILED_TOTALS, 0, area, iteration, noisy[:, None], meter.measurement)

    def _measure_stages(
        self,
        meters: _LevelMeters,
        stage_1: Meter,
        stage_2: Meter,
        first: int,
        totals: Ints,
        columns: Ints,
        shape: tuple[int, ...],
        details: Details,
    ) -> Iterable[Groups]:
        width = totals.shape[1]
        flat = totals.ravel()
        levels = np.zeros(len(flat), dtype=np.int8)
        for some in _stretches(len(flat), width):
            ones = np.ones(some.stop - some.start, dtype=np.int64)
            noisy = stage_1.measure(first * width + some.start, ones, flat[some], self.entropy)
            # As many thresholds as the noisy total reaches.
            levels[some] = np.searchsorted(meters.thresholds, noisy, side="right")
        large = np.flatnonzero(levels)
        selected = np.zeros(shape, dtype=bool)
        selected[large // width, columns[large % width]] = True
        finest = details(selected) if len(large) else np.zeros((0, PERSONS.measured), dtype=np.int64)
        chosen = _Chosen(first * width, width, flat, levels, large, finest)
        for some in _stretches(len(flat), width):
            yield from self._measure_stretch(meters, stage_2, chosen, some)

    def _measure_stretch(self, meters: _LevelMeters, stage_2: Meter, chosen: _Chosen, some: slice) -> Iterable[Groups]:
        """Stage 2 of some groups: a group is counted in the cells of its table, however many."""
        of_group = chosen.levels[some]
        of_choice = [np.flatnonzero(of_group == k) for k in range(len(_CELLS))]
        cells = _CELLS[of_group]
        starts = np.cumsum(cells) - cells
        counts = np.zeros(int(cells.sum()), dtype=np.int64)
        small, *larger = of_choice
        counts[starts[small]] = chosen.totals[some][small]
        for choice, groups in zip(PERSONS.choices[1:], larger, strict=True):
            exact = chosen.finest[np.searchsorted(chosen.large, groups + some.start)]
            for cell, of_finest in enumerate(choice.finest):
                counts[starts[groups] + of_finest] += exact[:, cell]
        noisy = stage_2.measure(chosen.first + some.start, cells, counts, self.entropy)
        if meters.suppressed_up_to is not None:
            small = small[noisy[starts[small]] > meters.suppressed_up_to]
        noisy = self._clamped(noisy)
        for k, groups in enumerate([small, *larger]):
            area, iteration = np.divmod(chosen.first + some.start + groups, chosen.width)
            counted = noisy[starts[groups, None] + np.arange(_CELLS[k])]
            yield meters.groups(PERSONS, k, area, meters.common[iteration], counted, stage_2.measurement)

    def _clamped(self, noisy: Ints) -> Ints:
        return noisy if self.config.settings.allow_negative_counts else without_negative(noisy)


def _stretches(groups: int, width: int) -> Iterable[slice]:
    step = max(1, _GROUPS_AT_ONCE // width) * width
    for start in range(0, groups, step):
        yield slice(start, min(start + step, groups))
