"""Generalised least squares on the whole tree: all noisy measurements of all geounits at once, exactly, in two passes.

Upward, level by level from the blocks: what the measurements of a unit and of all units below it say of it (`own`,
`summed`, `combined`). Downward from the root: what all measurements of the tree say of it (`down`). Both are linear in
the number of units and need the level at hand and the one next to it alone, or a subtree of those: a driver may work
county by county. Coordinates and spectra are those of `yupana.topdown.tree.basis`. Proofs are in
docs/topdown-least-squares.md; the two passes are those of Cumings-Menon and Zhuravlev, arXiv 2404.13164.

Covariances of weighted sums over any geounits follow by the same recursion, with weights of any kind at any geolevel:
coordinates of one part S are alike and independent, so each is a tree of numbers of its own (docs/intervals.md).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from yupana.arrays import Flags, Floats, Indices, Ints
from yupana.geography.tree import Members, Tree, touch
from yupana.topdown.queries import Query
from yupana.topdown.tree.basis import Basis, box


@dataclass(frozen=True, slots=True, eq=False)
class TreeAnswers:
    """One query of all units of a level, or of some that lie side by side."""

    query: Query  # keeps or sums whole attributes
    answers: NDArray[np.generic]  # shape (units, query.size): what stands where the precision is 0 is not looked at
    # shape (units,): 1 / variance. 0 where the unit was not measured; infinity where the answers are exact, as
    # invariants are.
    precision: Floats


@dataclass(frozen=True, slots=True, eq=False)
class TreeEstimate:
    """Estimates of units that lie side by side: unbiased, maybe negative and fractional."""

    # shape (units, cells): see `Basis.histograms`; 0 in the parts of precision 0, if nothing tells of them
    coordinates: Floats
    # shape (units, 2^attributes): 1 / variance in each part S, so that the covariance is the sum of P_S / precision_S.
    # 0 where the measurements do not determine the part, infinity where they are exact.
    precision: Floats

    def part(self, first: int, last: int) -> "TreeEstimate":
        """Estimates of the units from `first` up to `last`."""
        return TreeEstimate(self.coordinates[first:last], self.precision[first:last])


@dataclass(frozen=True, slots=True, eq=False)
class Quadratic:
    """For each of k units, (x - e)'L(x - e) as sum over margins T of weight_T |Q_T x - answers_T|^2."""

    queries: tuple[Query, ...]  # the margins T whose weight is not zero throughout
    answers: tuple[Floats, ...]  # shape (k, size of T)
    weights: Floats  # shape (k, margins): some may be negative; the sum is convex all the same

    def part(self, first: int, last: int) -> "Quadratic":
        """Those of the units from `first` up to `last`: made for a level at once and cut by node, they cost least."""
        return Quadratic(self.queries, tuple(rows[first:last] for rows in self.answers), self.weights[first:last])


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Between which whole numbers true counts lie, with a stated confidence each."""

    # lower, upper: lower is at least 0 and at most upper. The published count need not lie between them.
    lower: Ints
    upper: Ints

    @property
    def margins(self) -> Ints:
        """Half the width of each interval, rounded up; its middle is the estimate, and not the published count."""
        width = self.upper - self.lower
        return np.asarray(width // 2 + width % 2, dtype=np.int64)

    @property
    def ends(self) -> tuple[Ints, Ints, Ints]:
        """What stands after a count: LOWER, UPPER and MOE."""
        return self.lower, self.upper, self.margins


@dataclass(frozen=True, slots=True, eq=False)
class TreeIntervals(Bounds):
    """Estimates of the answers of one query and intervals of whole numbers about them; all of shape (units, size).

    Where the measurements do not determine an answer, the ends are 0 and the largest number of the type.
    """

    estimate: Floats
    variance: Floats  # infinite there


def own(basis: Basis, units: int, measurements: Sequence[TreeAnswers]) -> TreeEstimate:
    """Estimate units from their own measurements alone.

    Parameters
    ----------
    measurements : sequence of TreeAnswers
        May be empty. Exact answers must agree with each other; the later one counts.
    """
    coordinates = np.zeros((units, *basis.sizes))
    for measured in measurements:
        kept = basis.kept(measured.query)
        weight = np.where(np.isfinite(measured.precision), measured.precision, 0.0)
        place = weight.reshape(-1, *(1 for _ in basis.sizes))
        unmeasured = weight[:, None] == 0
        answers = np.where(unmeasured, 0.0, measured.answers) if unmeasured.any() else measured.answers
        part = basis.coordinates(answers, kept)
        part *= place * basis.summed(kept) ** 0.5
        coordinates[box(kept)] += part
    precision = own_precision(basis, units, [(measured.query, measured.precision) for measured in measurements])
    # Exact parts are set below, and those that are not determined have 0 already.
    variance = _known_variance(precision)
    coordinates = basis.scaled(coordinates.reshape(units, basis.cells), variance).reshape(coordinates.shape)
    for measured in measurements:
        exact = np.flatnonzero(np.isinf(measured.precision))
        if len(exact):
            kept = basis.kept(measured.query)
            part = coordinates[exact]
            part[box(kept)] = basis.coordinates(measured.answers[exact], kept) / basis.summed(kept) ** 0.5
            coordinates[exact] = part
    return TreeEstimate(coordinates.reshape(units, basis.cells), precision)


def own_precision(basis: Basis, units: int, measurements: Sequence[tuple[Query, Floats]]) -> Floats:
    """Precision of the estimates of units from their own measurements alone.

    Parameters
    ----------
    measurements : sequence of (Query, ndarray of float64 of shape (units,))
        What was asked, and with which precision; 0 and infinity as in `TreeAnswers`.

    Returns
    -------
    ndarray of float64, shape (units, 2^attributes)
    """
    numbers = {kept: number for number, kept in enumerate(basis.subsets)}
    weights = np.zeros((units, len(numbers)))
    for query, precision in measurements:
        weights[:, numbers[basis.kept(query)]] += np.where(np.isfinite(precision), precision, 0.0)
    found = basis.precision(weights)
    for query, precision in measurements:
        found[np.ix_(np.isinf(precision), basis.within(basis.kept(query)))] = np.inf
    return found


def summed(children: TreeEstimate, parents: Indices, units: int) -> TreeEstimate:
    """Estimate parents by the sums of the estimates of their children.

    Parameters
    ----------
    children : TreeEstimate
        Of all children of these parents: what the measurements of them and below them say.
    parents : ndarray of int, shape (children,)
        Never decreasing.
    units : int
        How many parents there are. One without a child gets precision 0.
    """
    starts, found = _families(parents)
    coordinates = np.zeros((units, children.coordinates.shape[1]))
    variance = np.full((units, children.precision.shape[1]), np.inf)
    if len(starts):
        coordinates[found] = np.add.reduceat(children.coordinates, starts, axis=0)
        variance[found] = np.add.reduceat(_inverse(children.precision), starts, axis=0)
    return TreeEstimate(coordinates, _inverse(variance))


def combined(basis: Basis, one: TreeEstimate, other: TreeEstimate) -> TreeEstimate:
    """Average two independent estimates of the same units by their precisions.

    Where both are exact they should agree, and `one` counts.
    """
    change = basis.scaled(other.coordinates - one.coordinates, _share(other.precision, one.precision))
    change += one.coordinates
    return TreeEstimate(change, one.precision + other.precision)


def down(basis: Basis, children: TreeEstimate, parents: Indices, known: TreeEstimate) -> TreeEstimate:
    """Estimate children from all measurements of the tree, given such estimates of their parents.

    Parameters
    ----------
    children : TreeEstimate
        Of all children of these parents: what the measurements of them and below them say.
    parents : ndarray of int, shape (children,)
        Never decreasing.
    known : TreeEstimate
        The parents: what all measurements of the tree say. At the root that is its upward estimate.

    Returns
    -------
    TreeEstimate
        Of the children. They sum to their parents. Where several children of one parent are not determined, what
        their siblings leave of it is divided among them evenly, and their precision stays 0.
    """
    family = _family(children.precision, parents, len(known.precision))
    gap = known.coordinates - summed(children, parents, len(known.precision)).coordinates
    coordinates = children.coordinates + basis.scaled(gap[parents], family.share)
    above = _inverse(known.precision)[parents]
    passed = np.multiply(family.share**2, above, out=np.zeros_like(above), where=family.share > 0)
    return TreeEstimate(coordinates, _inverse(family.rest + passed))


def quadratic(basis: Basis, estimate: TreeEstimate, queries: Sequence[Query] = ()) -> Quadratic:
    """Write the distance from an estimate, by its precision, in the form that the node solver takes.

    Parameters
    ----------
    estimate : TreeEstimate
        For the estimation of a node: its children by `combined`, what they and those below them tell. With the sum of
        the children fixed to the parent, the minimum without inequalities, from the root down, is `down`.
    queries : sequence of Query
        Count only what these determine, as an earlier pass of the estimation does, such as ``total`` alone; all parts
        where none is given. The parts are uncorrelated, so nothing is lost or counted twice.

    Notes
    -----
    A part that is exact cannot enter by a weight. It gets the largest finite precision of its unit (1 if there is
    none), which does not matter where the driver holds that part fixed, as it must.
    """
    seen = np.ones(len(basis.subsets), dtype=np.bool_)
    if queries:
        seen = np.any([basis.within(basis.kept(query)) for query in queries], axis=0)
    finite = np.where(np.isfinite(estimate.precision) & seen, estimate.precision, 0.0)
    largest = finite.max(axis=1, keepdims=True)
    precision = np.where(np.isinf(estimate.precision) & seen, np.where(largest > 0, largest, 1.0), finite)
    weights = basis.weights(precision)
    used = np.flatnonzero((weights != 0).any(axis=0))
    margins = tuple(basis.margin(basis.subsets[number]) for number in used)
    answers = tuple(basis.answers(estimate.coordinates, query) for query in margins)
    return Quadratic(margins, answers, np.ascontiguousarray(weights[:, used]))


def variances(basis: Basis, precision: Floats, query: Query) -> Floats:
    """Variances of the answers of any query, groupings included.

    Parameters
    ----------
    precision : ndarray of float64, shape (units, 2^attributes)

    Returns
    -------
    ndarray of float64, shape (units, query.size)
        Not writable where all answers of a unit share one variance, which they do where whole attributes are kept.
    """
    loadings = basis.loadings(query)
    if query.keeps_or_sums:
        loadings = loadings[:1]
    found = variances_by(precision, loadings)
    return np.broadcast_to(found, (len(found), query.size))


def variances_by(precision: Floats, loadings: Floats) -> Floats:
    """Variances of answers from what part of each lies in each S.

    Parameters
    ----------
    precision : ndarray of float64, shape (units, 2^attributes)
    loadings : ndarray of float64, shape (answers, 2^attributes)
        Of `Basis.loadings` or `Basis.loadings_of`.

    Returns
    -------
    ndarray of float64, shape (units, answers)
        Infinite where a part that an answer lies in is not determined.
    """
    variance = _inverse(precision)
    unknown = np.isinf(variance)
    out = np.asarray(np.where(unknown, 0.0, variance) @ loadings.T)
    if unknown.any():
        out[(unknown.astype(np.float64) @ (loadings.T > 0)) > 0] = np.inf
    return out


def intervals(basis: Basis, estimate: TreeEstimate, query: Query, confidence: float = 0.9) -> TreeIntervals:
    """Estimate the answers of a query, with intervals that hold the true counts with a given chance each.

    Parameters
    ----------
    estimate : TreeEstimate
        By `down`; of the root by `combined`.
    query : Query
        Of the release, whether it was measured or not.
    confidence : float
        Between 0 and 1.

    Notes
    -----
    The normal interval, less its ends that are no counts: the lower end is rounded up and the upper one down, which
    loses no count it holds, and both are raised to 0. Where no whole number lies between them, as with an exact count
    and its rounding error, both are the nearest to the estimate. What the chance is of, and where the normal law is
    coarse, is told in docs/topdown-least-squares.md.
    """
    value, variance = basis.answers(estimate.coordinates, query), variances(basis, estimate.precision, query)
    return whole_intervals(value, variance, confidence)


def whole_intervals(value: Floats, variance: Floats, confidence: float) -> TreeIntervals:
    """Put intervals of whole numbers about estimates, as `intervals` says; all of one shape."""
    unknown = np.isinf(variance)
    reach = NormalDist().inv_cdf((1.0 + confidence) / 2.0) * np.sqrt(np.where(unknown, 0.0, variance))
    lower, upper = np.ceil(value - reach), np.floor(value + reach)
    empty = lower > upper
    lower, upper = (np.maximum(np.where(empty, np.rint(value), end), 0.0).astype(np.int64) for end in (lower, upper))
    lower[unknown], upper[unknown] = 0, np.iinfo(np.int64).max
    return TreeIntervals(lower, upper, value, variance)


def precisions_of_sums(tree: Tree, upward: Sequence[Floats], root: Floats, members: Members) -> Floats:
    """Precisions of the estimates of sums of blocks, such as places, wherever in the tree the blocks lie.

    Parameters
    ----------
    upward : sequence of ndarray of float64, shape (units of the level, 2^attributes) each
        Precisions by `combined`, from the root to the blocks.
    root : ndarray of float64, shape (1, 2^attributes)
        Precision of the root from all measurements; that of `upward` where the tree is whole.
    members : Members
        The blocks of each sum; one block may be in many.

    Returns
    -------
    ndarray of float64, shape (members.number, 2^attributes)
        Precisions of the sums in each part S, for `variances`. The estimate of a sum is the sum of estimates.
    """
    touched = touch(tree, members)
    parts = upward[0].shape[1]
    bottom = len(tree.names) - 1
    # Of the sum of an entity's blocks within a unit, given the unit: its slope on the unit and its variance.
    slope, given = np.ones((len(touched.unit[bottom]), parts)), np.zeros((len(touched.unit[bottom]), parts))
    for level in range(bottom, 0, -1):
        family = _family(upward[level], tree.parents[level], tree.units(level - 1))
        unit, up, above = touched.unit[level], touched.up[level], touched.unit[level - 1]
        share, variance = family.share[unit], family.variance[unit]
        # The children that are not in the entity have slope 0 and enter by the family's sums.
        mean = _by_pair(slope * share, up, len(above))
        rest = family.determined[above] - _by_pair(variance, up, len(above))
        spread = _by_pair((slope - mean[up]) ** 2 * variance + given, up, len(above))
        spread += mean**2 * np.maximum(rest, 0.0)
        # Undetermined children leave the sum determined only if all have one slope, 0 where not in the entity.
        unknown = family.unknown[unit]
        differs = _by_pair(unknown & (np.abs(slope - mean[up]) > 1e-9), up, len(above)) > 0
        spread[differs] = np.inf
        slope, given = mean, spread
    found = np.zeros((members.number, parts))
    variance = _inverse(root)[touched.unit[0]]
    passed = np.multiply(slope**2, variance, out=np.zeros_like(slope), where=slope > 0)
    found[touched.entity[0]] = given + passed
    return _inverse(found)


def upward_precisions(tree: Tree, own: Iterable[Floats]) -> list[Floats]:
    """Precision of what the measurements of units and of all below them say of them, by level from the root.

    Parameters
    ----------
    own : iterable of ndarray of float
        For each level, from the blocks up, the precision by the measurements of its units, shape (units, parts).
    """
    found: list[Floats] = []
    for parents, precision in zip([*tree.parents[1:], None][::-1], own, strict=True):
        here = precision
        if parents is not None:
            nothing = np.empty((len(found[0]), 0))
            here = here + summed(TreeEstimate(nothing, found[0]), parents, len(here)).precision
        found.insert(0, here)
    return found


def _of_totals(tree: Tree, precisions: Sequence[Floats]) -> list[Floats]:
    return upward_precisions(tree, [precision[:, None] for precision in reversed(precisions)])


def unit_variances(tree: Tree, precisions: Sequence[Floats]) -> tuple[Floats, ...]:
    """The variance of the estimated total of every geounit, if nothing but totals is measured.

    Parameters
    ----------
    precisions : sequence of ndarray of float
        For each geolevel the inverse variance of each unit's noise, of shape (units,); 0 of one that is not measured.

    Returns
    -------
    tuple of ndarray of float
        For each geolevel, of shape (units,); infinite where the measurements do not determine the total.
    """
    upward = [TreeEstimate(np.zeros_like(precision), precision) for precision in _of_totals(tree, precisions)]
    found = upward[:1]
    for here, parents in zip(upward[1:], tree.parents[1:], strict=True):
        found.append(down(Basis((1,)), here, parents, found[-1]))
    return tuple(_inverse(estimate.precision[:, 0]) for estimate in found)


def entity_variances(tree: Tree, precisions: Sequence[Floats], members: Members) -> Floats:
    """The variance of the estimated total of each entity, of shape (entities,), if nothing but totals is measured.

    Parameters
    ----------
    precisions : sequence of ndarray of float
        As in `unit_variances`.

    Returns
    -------
    ndarray of float
        Infinite where the measurements do not determine the total, 0 for an entity without blocks.
    """
    upward = _of_totals(tree, precisions)
    return _inverse(precisions_of_sums(tree, upward, upward[0], members)[:, 0])


@dataclass(frozen=True, slots=True, eq=False)
class _Family:
    """How the children of each parent share what is known of their sum: all by part S."""

    variance: Floats  # shape (children, parts): of the children; 0 where undetermined
    unknown: Flags  # shape (children, parts): which are undetermined
    share: Floats  # shape (children, parts): what part of a change of the parent a child takes
    rest: Floats  # shape (children, parts): variance of the child given its parent
    determined: Floats  # shape (parents, parts): sum of `variance`


def _family(precision: Floats, parents: Indices, units: int) -> _Family:
    starts, found = _families(parents)
    unknown = precision == 0
    variance = _known_variance(precision)
    determined, undetermined = (np.zeros((units, precision.shape[1])) for _ in range(2))
    if len(starts):
        determined[found] = np.add.reduceat(variance, starts, axis=0)
        undetermined[found] = np.add.reduceat(unknown.astype(np.float64), starts, axis=0)
    total, missing = determined[parents], undetermined[parents]
    share = np.divide(variance, total, out=np.zeros_like(variance), where=(missing == 0) & (total > 0))
    share = np.divide(1.0, missing, out=share, where=unknown)
    rest = np.where(unknown, total, variance * (1.0 - share))
    rest[unknown & (missing > 1)] = np.inf
    return _Family(variance, unknown, share, rest, determined)


def _families(parents: Indices) -> tuple[NDArray[np.intp], Indices]:
    """The first child of each parent that has one, and those parents."""
    starts = np.flatnonzero(np.diff(parents, prepend=-1))
    return starts, parents[starts]


def _share(one: Floats, other: Floats) -> Floats:
    """Compute one / (one + other): 0 where both are 0 or the other is infinite, 1 where only one is infinite."""
    finite = np.isfinite(one) & np.isfinite(other)
    total = np.where(finite, one + other, 0.0)
    share = np.divide(one, total, out=np.zeros_like(one), where=total > 0)
    share[np.isinf(one) & np.isfinite(other)] = 1.0
    return share


def _inverse(values: Floats) -> Floats:
    """1 / values, of 0 infinity and of infinity 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(1.0 / values)


def _known_variance(precision: Floats) -> Floats:
    """The inverse; 0 where it is not determined."""
    found = _inverse(precision)
    found[precision == 0] = 0.0
    return found


def _by_pair(values: NDArray[np.generic], up: Ints, pairs: int) -> Floats:
    """Sums over the pairs that lie in the same pair above."""
    out = np.zeros((pairs, *values.shape[1:]))
    np.add.at(out, up, values)
    return out


_ALIKE: Final = 1e-9
"""Slopes that differ by less, in units of the largest weight, differ by rounding."""

_EXACT: Final = 1e-12
"""A variance below this share of what its units would have by themselves is a rounding error of 0."""


def covariance_of_sums(
    tree: Tree, precisions: Sequence[Floats], weights: Mapping[int, sparse.csr_array], sums: int
) -> Floats:
    """Covariance of the estimates of weighted sums of units in one part S, given all measurements of the tree.

    Parameters
    ----------
    precisions : sequence of ndarray of float64, shape (units of the level,) each
        Of what the measurements of a unit and of all below it say of that part of it, from the root to the blocks.
    weights : mapping of int to sparse array, shape (units of the level, coordinates * sums) each
        By geolevel, of one at least, the weights of every sum: of one coordinate of the part after the other, which
        are alike and independent. Of sums that weigh all of them in one proportion one suffices.
    sums : int
        How many sums there are.

    Returns
    -------
    ndarray of float64, shape (sums, sums)
        The variance is infinity, and covariances are 0, where the measurements do not determine the sum; what they
        know exactly has 0.
    """
    tolerance = _ALIKE * max(float(abs(of).max()) for of in weights.values())
    found, alone, is_open = np.zeros((sums, sums)), np.zeros(sums), np.zeros(sums, dtype=np.bool_)
    for level, of in weights.items():
        rows, variance, _ = _by_coordinate(of, precisions[level], sums)
        alone += rows.power(2).T @ variance
    for slope, precision in _deviations(tree, precisions, weights):
        rows, variance, unknown = _by_coordinate(slope, precision, sums)
        found += (rows.T @ _scaled(variance, rows)).toarray()
        moving = rows[np.flatnonzero(unknown)].tocoo()
        is_open[moving.coords[1][np.abs(moving.data) > tolerance]] = True
    exact = (np.diag(found) <= _EXACT * alone) | is_open
    found[exact] = 0.0
    found[:, exact] = 0.0
    found[is_open, is_open] = np.inf
    return found


def _deviations(
    tree: Tree, precisions: Sequence[Floats], weights: Mapping[int, sparse.csr_array]
) -> Iterator[tuple[sparse.csr_array, Floats]]:
    """Slopes of sums on what units differ by from what their parents tell of them, upward; and the units' precisions.

    Last come the slopes on the root itself.
    """
    deepest = max(weights)
    slope = weights[deepest]
    for level in range(deepest, 0, -1):
        parents, units = tree.parents[level], tree.units(level - 1)
        family = _family(precisions[level][:, None], parents, units)
        ones, children = np.ones(len(parents)), np.arange(len(parents))
        child = sparse.csr_array((ones, (children, parents)), shape=(len(parents), units))
        mean = child.T @ _scaled(family.share[:, 0], slope)
        # Of all children of the parents that a sum meets: those without weights have slope 0, and vary against it.
        yield (slope - child @ mean).tocsr(), precisions[level]
        slope = (mean + weights[level - 1] if level - 1 in weights else mean).tocsr()
    yield slope, precisions[0]


def _by_coordinate(slope: sparse.csr_array, precision: Floats, sums: int) -> tuple[sparse.csr_array, Floats, Flags]:
    """Rows of units and coordinates that have slopes, with their variances, 0 where not determined, and where so."""
    entries = slope.reshape((-1, sums)).tocoo()
    found, row = np.unique(entries.coords[0], return_inverse=True)
    rows = sparse.csr_array((entries.data, (row, entries.coords[1])), shape=(len(found), sums))
    of_row = precision[found // (slope.shape[1] // sums)]
    return rows, _known_variance(of_row), of_row == 0


def _scaled(factor: Floats, rows: sparse.csr_array) -> sparse.csr_array:
    """Rows times a number each."""
    out = rows.tocsr(copy=True)
    out.data *= np.repeat(factor, np.diff(out.indptr))
    return out
