"""How far released counts are from the truth, by kind of area, query and population."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats, Ints
from yupana.confidential.request import RunRequest
from yupana.confidential.topdown.estimate import check_run, estimate
from yupana.confidential.topdown.world import open_world
from yupana.geography.published import Areas, indices
from yupana.geography.spine import Spine
from yupana.plan.ledger import Ledger
from yupana.progress import Stopwatch
from yupana.release.tables import ReleaseTable
from yupana.topdown.budget import spend
from yupana.topdown.configuration import Configuration
from yupana.topdown.descent.checkpoint import unkept
from yupana.topdown.histogram import Histogram, count_entries, whole
from yupana.topdown.queries import TOTAL, Query, query_named

ACCURACY: Final = "accuracy"

QUANTILES: Final = (5, 25, 50, 250, 500, 750, 950, 975, 995)
"""In thousandths, as the Bureau's metrics have them."""

BINS: Final = (0, 1, 10, 100, 1_000, 10_000, 100_000)
"""Least population of the areas of each bin."""

_EVERYTHING: Final = "all"
_WITHIN: Final = 20  # one part in so many is 5 percent


@dataclass(frozen=True, slots=True, eq=False)
class AreaSet:
    """Areas of one kind."""

    name: str
    index: NDArray[np.integer]  # shape (blocks,): the area of each block, or -1 for none
    number: int  # how many areas there are


@dataclass(frozen=True, slots=True)
class AccuracyRow:
    """The errors, released less true, of one query in areas of one kind and size."""

    geolevel: str
    query: str
    population: str  # the areas' true population, such as `"10-99"`, or `"all"`
    areas: int
    answers: int  # of the query in each area; what follows is over areas, answers and replicates, zeros included
    # mae, rmse, bias: mean absolute error, root mean squared error, and mean error
    mae: float
    rmse: float
    bias: float
    quantiles: tuple[int, ...]  # of the errors, at `QUANTILES`: the least value that so large a part does not exceed
    within_5_percent: float | None  # share of areas whose total is at most 5 percent off; of the query of totals only
    # share of areas with people in which the share of the truly largest answer is at most 5 percentage points off; of
    # queries with several answers
    largest_within_5_points: float | None


def area_sets(spine: Spine, areas: Sequence[Areas]) -> list[AreaSet]:
    """The geolevels of a spine and the published geography of its blocks, as kinds of areas."""
    found = [
        AreaSet(f"spine {level.name}", spine.tree.ancestors(i), len(level.code)) for i, level in enumerate(spine.levels)
    ]
    of_block = indices(areas, spine.tree.units(len(spine.levels) - 1))
    return [*found, *(AreaSet(kind.name, of_block[kind.name], kind.number) for kind in areas)]


def accuracy(
    truth: Histogram, released: Sequence[Histogram], queries: Sequence[Query], areas: Sequence[AreaSet]
) -> list[AccuracyRow]:
    """Compare one or more releases with the truth.

    Parameters
    ----------
    truth : Histogram
        Of the blocks.
    released : sequence of Histogram
        Of the same blocks: replicates, whose errors are pooled.
    """
    rows: list[AccuracyRow] = []
    for kind in areas:
        true = truth.sum_to(kind.index, kind.number)
        copies = [copy.sum_to(kind.index, kind.number) for copy in released]
        population = true.totals()
        for query in queries:
            answers = query.answers()
            rows += _compare(
                kind, query, population, _answered(true, answers), [_answered(copy, answers) for copy in copies]
            )
    return rows


def accuracy_table(rows: Sequence[AccuracyRow]) -> ReleaseTable:
    """The rows as accuracy.csv: their fields, a column for each quantile; empty where a figure has no meaning."""
    columns: dict[str, list[str | int | float]] = {}
    for field in fields(AccuracyRow):
        values = [getattr(row, field.name) for row in rows]
        if field.name == "quantiles":
            columns |= {f"q{q / 10:g}": [value[i] for value in values] for i, q in enumerate(QUANTILES)}
        else:
            columns[field.name] = ["" if value is None else value for value in values]
    return ReleaseTable(ACCURACY, columns)


def observe_runs(configuration: Configuration, data: Path, number: int, request: RunRequest) -> list[AccuracyRow]:
    """Make ``number`` runs and compare them with the truth; whether that is allowed was asked before.

    Raises
    ------
    InputError
        If the records break a rule.
    """
    clock = Stopwatch(request.announce)
    world = open_world(configuration, data, request, clock)
    check_run(configuration, world, request)
    spending = spend(configuration, world.spine)
    released = []
    for trial in range(number):
        of_trial = replace(request, entropy=request.entropy.branch(f"trial {trial}"))
        clock.start(f"trial {trial + 1} of {number}")
        keeper = unkept(request.estimator)
        found = estimate(configuration, world, spending, Ledger(spending.plan), keeper, of_trial, clock)
        released.append(whole(found.descent.counts[-1]))
    clock.start("comparing")
    published = [] if world.published is None else world.published.areas(world.spine.blocks)
    areas = area_sets(world.spine, published)
    rows = accuracy(whole(world.exact.blocks), released, _queries(configuration), areas)
    clock.stop()
    return rows


def _queries(configuration: Configuration) -> list[Query]:
    """The total, and what is measured anywhere, once each; by geolevel from the root down."""
    total = query_named(TOTAL, configuration.schema, configuration.recodes)
    named = {query.factors: query for level in configuration.levels for query, _ in configuration.measured(level)}
    return list({total.factors: total, **named}.values())


def _answered(counts: Histogram, answers: NDArray[np.int32]) -> Histogram:
    return count_entries(counts.owners(), answers[counts.cells], counts.counts, counts.units)


def _compare(
    kind: AreaSet, query: Query, population: Ints, true: Histogram, copies: Sequence[Histogram]
) -> Iterator[AccuracyRow]:
    of_area = np.searchsorted(BINS, population, side="right") - 1
    unit, error = _errors(true, copies, query.size)
    of_error = of_area[unit]
    totals = [copy.totals() for copy in copies]
    close = largest = None
    if query.size == 1:
        close = np.mean([_WITHIN * np.abs(total - population) <= population for total in totals], axis=0)
    else:
        largest = _largest(true, copies, population, totals)
    for number in (-1, *range(len(BINS))):
        inside = of_area == number if number >= 0 else np.ones(len(of_area), dtype=np.bool_)
        areas = int(inside.sum())
        if not areas:
            continue
        some = error[of_error == number] if number >= 0 else error
        size = areas * query.size * len(copies)
        inhabited = inside & (population > 0)
        yield AccuracyRow(
            kind.name,
            query.name,
            _bin_name(number),
            areas,
            query.size,
            float(np.abs(some).sum()) / size,
            float(np.sqrt((some.astype(np.float64) ** 2).sum() / size)),
            float(some.sum()) / size,
            _quantiles(some, size),
            None if close is None else float(close[inside].mean()),
            None if largest is None or not inhabited.any() else float(largest[inhabited].mean()),
        )


def _bin_name(number: int) -> str:
    if number < 0:
        return _EVERYTHING
    if number + 1 == len(BINS):
        return f"{BINS[number]}+"
    low, high = BINS[number], BINS[number + 1] - 1
    return str(low) if low == high else f"{low}-{high}"


def _errors(true: Histogram, copies: Sequence[Histogram], size: int) -> tuple[Ints, Ints]:
    """The unit and the size of every error that is not zero, of all copies."""
    units, errors = [], []
    owner = true.owners() * size + true.cells
    for copy in copies:
        key = np.concatenate([owner, copy.owners() * size + copy.cells])
        change = np.concatenate([-true.counts, copy.counts])
        order = np.argsort(key, kind="stable")
        key, change = key[order], change[order]
        first = np.flatnonzero(np.diff(key, prepend=-1))
        error = np.add.reduceat(change, first) if len(first) else change
        units.append(key[first][error != 0] // size)
        errors.append(error[error != 0])
    return np.concatenate(units), np.concatenate(errors)


def _quantiles(errors: Ints, size: int) -> tuple[int, ...]:
    """Quantiles of so many errors, those not listed being zero."""
    ordered = np.sort(errors)
    negative = int((ordered < 0).sum())
    zeros = size - len(ordered)
    found = []
    for q in QUANTILES:
        place = -(-q * size // 1000) - 1
        if place < negative:
            found.append(int(ordered[place]))
        else:
            found.append(0 if place < negative + zeros else int(ordered[place - zeros]))
    return tuple(found)


def _largest(true: Histogram, copies: Sequence[Histogram], population: Ints, totals: Sequence[Ints]) -> Floats:
    """In what part of the copies the largest answer's share is close, for each area, of shape (areas,)."""
    # The first entry of each unit in the order of falling counts, then of answers.
    order = np.lexsort((true.cells, -true.counts, true.owners()))
    some = np.flatnonzero(population > 0)
    first = order[true.starts[some]]
    largest = count_entries(some, true.cells[first], true.counts[first], true.units)
    close = np.zeros((len(copies), len(population)))
    for number, (copy, total) in enumerate(zip(copies, totals, strict=True)):
        # Both shares times both totals, so that nothing is rounded. An area that lost all its people is not close.
        apart = np.abs(copy.counts_at(largest) * population[some] - largest.counts * total[some])
        close[number, some] = (total[some] > 0) & (_WITHIN * apart <= population[some] * total[some])
    return np.asarray(close.mean(axis=0), dtype=np.float64)
