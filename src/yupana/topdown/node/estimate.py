"""The node solver without a run: plain arrays in, an estimate out."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from yupana.arrays import Floats
from yupana.topdown.node.problem import Node, NodeEstimate
from yupana.topdown.node.solve import solve
from yupana.topdown.queries import margin

_AIM: Final = 1e-9
"""KKT residual, in persons, that small nodes are brought to: degenerate ones need more rounds, which cost little."""

_SMALL: Final = 4096
"""Children times live cells of a small node."""


def numbers(name: str, values: ArrayLike, shape: tuple[int, ...], meaning: str) -> Floats:
    """Read an argument as an array of the shape it must have."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}; it must have shape {shape}: {meaning}.")
    return array


def bounds_of(
    shape: Sequence[int], children: int, lower: ArrayLike | None, upper: ArrayLike | None
) -> tuple[Floats, Floats] | None:
    """Read bounds; None where there are none."""
    if lower is None and upper is None:
        return None
    first = (children, shape[0])
    meaning = "one bound for each child and level of the first attribute"
    low = np.zeros(first) if lower is None else numbers("lower", lower, first, meaning)
    high = np.full(first, np.inf) if upper is None else numbers("upper", upper, first, meaning)
    if np.isnan(low).any() or np.isnan(high).any():
        raise ValueError("lower and upper must be numbers; write -inf or inf where nothing is bounded.")
    return low, high


def estimate_node(
    parent: ArrayLike,
    shape: Sequence[int],
    queries: Sequence[Sequence[int | bool]],
    answers: ArrayLike,
    variances: ArrayLike,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
) -> NodeEstimate:
    """Estimate the counts of the children of one parent from noisy answers, by non-negative least squares.

    Minimises the sum over children, queries and answers of (answer of the counts - noisy answer)^2 / variance over
    counts >= 0 that sum over the children to the parent, cell by cell.

    Parameters
    ----------
    parent : array_like, shape (cells,)
        Counts of the parent, not negative.
    shape : sequence of int
        Levels of each attribute; cells are in C order.
    queries : sequence of sequences of flags
        Each row says which attributes a query keeps; it sums over the others.
    answers : array_like, shape (children, answers)
        Those of each query side by side, in C order; not read where the variance is infinite.
    variances : array_like, shape (children, queries)
        Positive; inf where a query was not measured.
    lower, upper : array_like, shape (children, shape[0]), optional
        Bounds on each child's totals by the first attribute.

    Returns
    -------
    NodeEstimate

    Raises
    ------
    InfeasibleNode
        If no counts satisfy the parent and the bounds.
    ValueError
        If the arguments do not fit together.
    """
    cells = prod(shape)
    whole = numbers("parent", parent, (cells,), f"one count for each of the {cells} cells")
    if not (np.isfinite(whole).all() and (whole >= 0.0).all()):
        raise ValueError("parent must hold finite counts that are not negative.")
    if any(len(row) != len(shape) for row in queries):
        raise ValueError(f"each query is a row of {len(shape)} flags, one for each attribute of the shape.")
    asked = [margin(str(at), shape, row) for at, row in enumerate(queries)]
    starts = np.concatenate([[0], np.cumsum([query.size for query in asked], dtype=np.int64)])
    variance = np.asarray(variances, dtype=np.float64)
    children = len(variance) if variance.ndim else 0
    if children == 0:
        raise ValueError("variances must have shape (children, queries), with one child at least.")
    numbers("variances", variance, (children, len(asked)), "one variance for each child and query")
    if not (variance > 0.0).all():
        raise ValueError("variances must be positive; write inf where a query was not measured.")
    noisy = numbers("answers", answers, (children, int(starts[-1])), "the answers of all queries side by side")
    weights = 1.0 / variance
    parts = [noisy[:, starts[at] : starts[at + 1]] for at in range(len(asked))]
    for at, part in enumerate(parts):
        if not np.isfinite(part[weights[:, at] > 0.0]).all():
            raise ValueError(f"query {at} has an answer that is not finite; give it the variance inf, or correct it.")
    bounds = bounds_of(shape, children, lower, upper)
    live = np.flatnonzero(whole > 0.0)
    groups = (live // (cells // shape[0])).astype(np.int32) if bounds is not None else None
    node = Node(
        parent=whole[live],
        queries=tuple(query.answers()[live] for query in asked),
        answers=tuple(parts),
        weights=weights,
        groups=groups,
        lower=None if bounds is None else bounds[0],
        upper=None if bounds is None else bounds[1],
    )
    found = solve(node, aim=_AIM if children * len(live) <= _SMALL else None)
    counts = np.zeros((children, cells))
    counts[:, live] = found.counts
    return replace(found, counts=counts)
