"""What is done to the noisy counts of a description after the door: consistent, coterminous, non-negative, suppressed.

Everything here is a function of noisy counts and of the description, so it costs no privacy. docs/tables.md says what
is published and what is kept; docs/margins.md ("Estimates") proves the margins. Public: nothing here sees a record.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats, Ints
from yupana.plan.plan import Plan
from yupana.products.described.description import AreaKind, Description
from yupana.products.least_squares import Parents, average, estimate, non_negative, whole
from yupana.products.tables import Groups, MovedCounts, without_negative
from yupana.release.recipe import SUPPRESSED
from yupana.release.tables import Coded, RowTable, written


def postprocessed(description: Description, plan: Plan, measured: Iterable[Groups]) -> list[Groups]:
    """Do to noisy counts what a description says, but for suppression, which is of rows.

    Parameters
    ----------
    measured : iterable of Groups
        Of all its measurements, each with all groups of its level.
    """
    asked = description.postprocess
    left = {table.name for table in description.tables if asked.fitted and table.detail}
    found = [
        groups if groups.measurement.table in left and not asked.non_negative else _as_measured(groups)
        for groups in measured
    ]
    for table in description.tables:
        if table.name in left:
            continue
        of_table = [groups for groups in found if groups.measurement.table == table.name]
        for code in dict.fromkeys(code for level in table.levels for code in level.groups):
            nodes = [
                _Nodes(groups, rows)
                for groups in of_table
                if (rows := np.flatnonzero(np.array(groups.iteration.values)[groups.iteration.places] == code)).size
            ]
            kinds = [description.areas[of.groups.region_type] for of in nodes]
            if asked.consistent and len(kinds) > 1:
                _fit_sums(plan, nodes, kinds, none_negative=asked.non_negative)
            elif asked.coterminous and len(kinds) > 1:
                _fit_same(plan, nodes, kinds)
    if asked.non_negative:
        found = [replace(groups, counts=without_negative(groups.counts)) for groups in found]
    return found


@dataclass(frozen=True, slots=True)
class _Nodes:
    """The rows of one population group at one level, by area in order; their numbers are replaced in place."""

    groups: Groups
    rows: NDArray[np.intp]


def _as_measured(groups: Groups) -> Groups:
    """Groups whose estimates are their measurements. Their arrays are their own."""
    values = groups.counts.astype(np.float64)
    variances = np.full(values.shape, float(groups.measurement.variance))
    estimated = MovedCounts(values, variances, np.ones(len(values), dtype=bool))
    return replace(groups, counts=groups.counts.copy(), estimated=estimated)


def _fit_sums(plan: Plan, nodes: Sequence[_Nodes], kinds: Sequence[AreaKind], *, none_negative: bool) -> None:
    """Best linear unbiased estimates of a forest of areas, each the sum of those in it, cell by cell."""
    by_size = sorted(range(len(kinds)), key=lambda i: len(kinds[i].codes))
    nodes, kinds = [nodes[i] for i in by_size], [kinds[i] for i in by_size]
    orders, parents = _forest(kinds)
    values = [of.groups.counts[of.rows[order]].T.astype(np.float64) for of, order in zip(nodes, orders, strict=True)]
    variances = [np.full(v.shape, float(of.groups.measurement.variance)) for of, v in zip(nodes, values, strict=True)]
    found = estimate(parents, values, variances)
    counts = whole(parents, non_negative(parents, found) if none_negative else found.values)
    for depth, (of, order) in enumerate(zip(nodes, orders, strict=True)):
        _replace(plan, of, order, counts[depth].T, found.values[depth].T, found.variances[depth].T)


def _fit_same(plan: Plan, nodes: Sequence[_Nodes], kinds: Sequence[AreaKind]) -> None:
    """Averages, by inverse variance, over areas of different kinds that hold the same values of a column."""
    place = {key: i for i, key in enumerate(dict.fromkeys(key for kind in kinds for key in _held(kind)))}
    which = np.array([place[key] for kind in kinds for key in _held(kind)])
    values = np.concatenate([of.groups.counts[of.rows] for of in nodes]).astype(np.float64)
    spread = [np.full((len(of.rows), values.shape[1]), float(of.groups.measurement.variance)) for of in nodes]
    averages, variances = average(values, np.concatenate(spread), which, len(place))
    counts = np.rint(averages).astype(np.int64)
    shared = np.bincount(which)[which] > 1
    start = 0
    for of in nodes:
        order = np.flatnonzero(shared[start : start + len(of.rows)])
        some = which[start + order]
        _replace(plan, of, order, counts[some], averages[some], variances[some])
        start += len(of.rows)


def _replace(plan: Plan, of: _Nodes, order: NDArray[np.intp], counts: Ints, values: Floats, variances: Floats) -> None:
    """Give some areas, by their places among the rows, other counts; arrays of shape (areas, cells).

    A margin is that of the estimate, or that of the measurement where this is expected to leave the smaller one. The
    choice depends on variances alone, so either margin holds.
    """
    rows, estimated, measurement = of.rows[order], of.groups.estimated, of.groups.measurement
    if estimated is None:
        raise TypeError("groups must have estimates")
    own, measured = plan.margin(measurement), float(measurement.variance)
    least, which = np.unique(variances.min(axis=1), return_inverse=True)
    bounds = np.array([plan.margin_of_estimate(variance) for variance in least.tolist()])
    alone = (own + np.sqrt(np.maximum(measured - least, 0)) <= bounds)[which.ravel()]
    of.groups.counts[rows], estimated.variances[rows], estimated.alone[rows] = counts, variances, alone
    estimated.values[rows[~alone]] = values[~alone]


def parents_of(above: AreaKind, below: AreaKind) -> NDArray[np.intp] | None:
    """Of each area of a kind the one of another that it lies in; None unless these are sums of those.

    They are if every value of one column, or combination of values of several, lies in one area of each kind, or in
    none of either, and the areas of the upper kind hold the lower ones whole.
    """
    finest = max(above, below, key=lambda kind: len(kind.columns))
    if not {*above.columns, *below.columns} <= {*finest.columns}:
        return None
    parent = np.full(len(below.codes), -1, dtype=np.intp)
    uppers, lowers = (kind.over(finest) for kind in (above, below))
    for upper, lower in zip(uppers, lowers, strict=True):
        if len(upper) != len(lower) or len(lower) > 1:
            return None
        for mine, theirs in zip(lower, upper, strict=True):
            if parent[mine] not in {-1, theirs}:
                return None
            parent[mine] = theirs
    return parent


def _forest(kinds: Sequence[AreaKind]) -> tuple[list[NDArray[np.intp]], Parents]:
    """The areas of nested kinds, each kind in an order in which those of one area above are neighbours."""
    orders, parents = [np.arange(len(kinds[0].codes))], []
    for above, below in pairwise(kinds):
        found = parents_of(above, below)
        if found is None:
            raise ValueError(f"areas of {above.name} are no sums of those of {below.name}")
        place = np.empty(len(above.codes), dtype=np.intp)
        place[orders[-1]] = np.arange(len(place))
        orders.append(np.argsort(place[found], kind="stable"))
        parents.append(place[found][orders[-1]])
    return orders, tuple(parents)


def _held(kind: AreaKind) -> list[object]:
    """What each area holds: the columns and their values, or everything."""
    held: list[list[int]] = [[] for _ in kind.codes]
    for value, areas in enumerate(kind.of):
        for area in areas:
            held[area].append(value)
    return ["everything" if len(values) == len(kind.of) else (kind.columns, *values) for values in held]


def suppressed(table: RowTable, below: int) -> RowTable:
    """A table whose numbers are X in rows with a count below a number, with the reason beside them."""
    counts = table.columns["COUNT"]
    if isinstance(counts, Coded):
        raise TypeError("counts must be numbers")
    hidden = counts < below
    columns = dict(table.columns)
    distinct, places = np.unique(counts, return_inverse=True)
    columns["COUNT"] = _hidden(list(map(str, distinct.tolist())), places, hidden)
    for name in ("VARIANCE", "MOE"):
        shown = table.columns[name]
        if isinstance(shown, Coded):
            columns[name] = _hidden([written(value) for value in shown.values], shown.places, hidden)
    columns["REASON"] = Coded(["", f"below-{below}"], hidden.astype(np.int32))
    return replace(table, columns=columns)


def _hidden(values: list[str], places: NDArray[np.integer], hidden: NDArray[np.bool_]) -> Coded:
    return Coded([*values, SUPPRESSED], np.where(hidden, len(values), places))
