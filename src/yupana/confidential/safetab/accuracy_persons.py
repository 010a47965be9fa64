"""Experimental against expected margins of error of SafeTab-P, on synthetic persons. Confidential by construction."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from yupana.arrays import Ints
from yupana.confidential.safetab.measure_persons import CROSS_STATES, Measurer, PersonCounts
from yupana.confidential.tabulate.groups import Areas, SliceCounts, SummedCounts, space_of
from yupana.plan.ledger import Ledger
from yupana.plan.plan import Plan
from yupana.privacy.entropy import Entropy
from yupana.products.safetab.errors import SIZES, LevelErrors, TableErrors, joined, size_bins
from yupana.products.safetab.iterations import CharacteristicIterations
from yupana.products.safetab.persons.configuration import Config
from yupana.products.safetab.product import Parameters
from yupana.products.safetab.regions import LEVELS, Level
from yupana.products.safetab.specification import PERSONS
from yupana.products.tables import Groups

_LEVELS = {level.name: level for level in LEVELS}


def errors_of(
    parameters: Parameters[Config],
    plan: Plan,
    exact: PersonCounts,
    all_codes: PersonCounts,
    number: int,
    entropy: Entropy,
) -> list[LevelErrors]:
    """Measure persons ``number`` times, both stages anew each time. All counts are held in memory at once.

    Returns
    -------
    list of LevelErrors
        By level, iterations with a total alone apart. A group without a table was left out by zero suppression.
    """
    config, iterations = parameters.config, parameters.iterations
    truths, uncapped = (
        {
            level: _truth(level, iterations, made.passes[level.region.run], list(made.slices[level.region.run]))
            for level in config.settings.levels
            if config.budgets[level] > 0
        }
        for made in (exact, all_codes)
    )
    found: defaultdict[tuple[Level, bool, int], list[TableErrors]] = defaultdict(list)
    for _ in range(number):
        ledger = Ledger(plan)
        for of_pass, areas in exact.passes.items():
            measurer = Measurer(config, iterations, areas, ledger, entropy, of_pass)
            for noisy in measurer.measure(exact.slices[of_pass]):
                level = _LEVELS[noisy.measurement.level]
                for detailed_only, errors in _errors(plan, noisy, truths[level], uncapped[level]):
                    found[level, detailed_only, noisy.choice].append(errors)
    return list(_by_level(truths, found, number))


@dataclass(frozen=True, eq=False)
class _Truth:
    """The groups of one level that are not empty, and all that exist.

    Attributes
    ----------
    groups : numpy.ndarray of int64, shape (occupied groups,)
        Numbers of groups, ascending: area times iterations plus iteration.
    cells : numpy.ndarray of int64, shape (occupied groups, cells of the finest table)
    areas : int
    detailed_only : numpy.ndarray of bool, shape (iterations,)
    """

    groups: Ints
    cells: Ints
    areas: int
    detailed_only: np.ndarray[tuple[int], np.dtype[np.bool_]]

    def cells_of(self, noisy: Groups) -> Ints:
        """True cells of some groups, in the finest table."""
        number = noisy.area.places * len(self.detailed_only) + noisy.iteration.places
        found = np.zeros((len(number), PERSONS.measured), dtype=np.int64)
        if len(self.groups):
            at = np.minimum(np.searchsorted(self.groups, number), len(self.groups) - 1)
            known = self.groups[at] == number
            found[known] = self.cells[at[known]]
        return found

    def sizes(self, *, detailed_only: bool) -> Ints:
        """How many groups of each size there are, empty ones included."""
        wanted = self.detailed_only[self.groups % len(self.detailed_only)] == detailed_only
        sizes = np.bincount(size_bins(self.cells[wanted].sum(axis=1)), minlength=len(SIZES))
        sizes[0] += self.areas * int((self.detailed_only == detailed_only).sum()) - int(wanted.sum())
        return sizes


def _truth(level: Level, iterations: CharacteristicIterations, areas: Areas, slices: Sequence[SliceCounts]) -> _Truth:
    base, granularity = level.region.base, level.region.granularity
    eligible = iterations.eligible(level.iteration_level, granularity).iterations
    space = space_of(iterations, granularity)
    columns = space.columns(level.iteration_level)
    groups, cells = [np.zeros(0, dtype=np.int64)], [np.zeros((0, PERSONS.measured), dtype=np.int64)]
    summed = SummedCounts(len(areas.ids[base]), space, PERSONS.measured)
    for part in slices:
        if base in CROSS_STATES:
            summed.add(part, base, granularity)
        else:
            occupied = _only(part.totals(base, granularity), columns)
            first, _ = part.range_of(base)
            groups.append(first * len(eligible) + np.flatnonzero(occupied[:, columns]))
            cells.append(part.details(base, granularity, occupied))
    if base in CROSS_STATES:
        occupied = _only(summed.totals(), columns)
        groups.append(np.flatnonzero(occupied[:, columns]))
        cells.append(summed.details(occupied))
    return _Truth(
        np.concatenate(groups),
        np.concatenate(cells),
        len(areas.ids[base]),
        np.array([i.detailed_only for i in eligible], dtype=bool),
    )


def _only(totals: Ints, columns: slice) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Which groups of some columns are not empty."""
    occupied = np.zeros(totals.shape, dtype=bool)
    occupied[:, columns] = totals[:, columns] > 0
    return occupied


def _errors(plan: Plan, noisy: Groups, truth: _Truth, whole: _Truth) -> Iterator[tuple[bool, TableErrors]]:
    """Errors of the groups of one table; ``whole`` is the truth with all race codes of every record."""
    finest = truth.cells_of(noisy)
    sizes, cells = finest.sum(axis=1), _in_table(noisy, finest)
    errors, bias = noisy.counts - cells, cells - _in_table(noisy, whole.cells_of(noisy))
    iterations = noisy.iteration.places.astype(np.int64)
    detailed_only = truth.detailed_only[iterations]
    name = noisy.family.choices[noisy.choice].own.name
    moe = plan.margin(noisy.measurement)
    for kind in (False, True):
        some = detailed_only == kind
        if some.any():
            yield kind, TableErrors(name, moe, sizes[some], errors[some], iterations[some], bias[some])


def _in_table(noisy: Groups, finest: Ints) -> Ints:
    """Cells of the table of some groups, from those of the finest."""
    cells = np.zeros(noisy.counts.shape, dtype=np.int64)
    for cell, of_finest in enumerate(PERSONS.choices[noisy.choice].finest):
        cells[:, of_finest] += finest[:, cell]
    return cells


def _by_level(
    truths: Mapping[Level, _Truth], found: Mapping[tuple[Level, bool, int], Sequence[TableErrors]], number: int
) -> Iterator[LevelErrors]:
    for level, truth in truths.items():
        for detailed_only in (False, True):
            if not (truth.detailed_only == detailed_only).any():
                continue
            tables = tuple(
                joined(found[level, detailed_only, table])
                for table in range(len(PERSONS.choices))
                if (level, detailed_only, table) in found
            )
            yield LevelErrors(level, detailed_only, truth.sizes(detailed_only=detailed_only), tables, number)
