"""One node of the estimation: a parent's counts to divide among its children, by weighted least squares."""

from dataclasses import dataclass

from yupana.arrays import Floats, Indices


class InfeasibleNode(ValueError):  # noqa: N818 - a state of the node, named so by the callers that catch it
    """No children satisfy both their parent and the constraints; the failsafe takes over where there is one."""


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A query that an earlier pass has answered: |Q x_c - v_c| <= slack for every child c.

    Attributes
    ----------
    labels : ndarray of int32, shape (m,)
        Which answer each live cell counts in.
    values : ndarray of float64, shape (k, size)
        The answers to stay near, in persons. An answer without a live cell is 0, and must be held near 0.
    slack : float
        In persons; 0 holds the answers exactly.
    """

    labels: Indices
    values: Floats
    slack: float


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A parent with k children and m live cells: what the solver minimises, and over what.

    Minimise sum over children c and queries q of weights[c, q] * |Q_q x_c - answers[q][c]|^2 over counts x >= 0 of
    shape (k, m) whose sum over the children is the parent, cell by cell, within the constraints.

    Attributes
    ----------
    parent : ndarray of float64, shape (m,)
        Counts of the live cells, all positive, in persons.
    queries : tuple of ndarray of int32, each of shape (m,)
        Which answer each live cell counts in, from 0.
    answers : tuple of ndarray of float64, each of shape (k, size of the query)
        Noisy answers; not read, so possibly nan, where the weight is 0.
    weights : ndarray of float64, shape (k, queries)
        Inverse variances; 0 where not measured. Single weights may be negative as long as the quadratic form of each
        child is positive semidefinite, as in precision matrices written as signed sums over margins.
    groups : ndarray of int32, shape (m,), or None
        The group of each live cell, the level of the first attribute for bounds.
    lower, upper : ndarray of float64, shape (k, groups), or None
        Bounds on each child's totals by group; given with `groups`. Infinite values bound nothing. A group without
        a live cell has total 0.
    joint : tuple of (tuple of int, float)
        Positions of children, and what their totals must add up to.
    """

    parent: Floats
    queries: tuple[Indices, ...]
    answers: tuple[Floats, ...]
    weights: Floats
    held: tuple[Held, ...] = ()
    groups: Indices | None = None
    lower: Floats | None = None
    upper: Floats | None = None
    joint: tuple[tuple[tuple[int, ...], float], ...] = ()

    @property
    def children(self) -> int:
        """How many children share the parent."""
        return len(self.weights)

    @property
    def live(self) -> int:
        """How many cells have a positive count in the parent."""
        return len(self.parent)


@dataclass(frozen=True, slots=True, eq=False)
class NodeEstimate:
    """What the children of a node are estimated to be, and how far that can be trusted.

    Attributes
    ----------
    counts : ndarray of float64, shape (k, m)
        Non-negative; they sum to the parent, cell by cell, but under the failsafe.
    objective : float
        The weighted sum of squares over the answers given, the constant included.
    kkt_residual : float
        The largest violation of the conditions of optimality, in persons: of the constraints themselves, and of
        stationarity and of the signs of the multipliers divided by the scale of the child, about its
        least curvature.
    iterations : int
        Of the solver named.
    solver : str
        What found the counts: "active-set", "admm" or "clarabel"; "(not certified)" is appended where the residual
        stayed above the tolerance.
    """

    counts: Floats
    objective: float
    kkt_residual: float
    iterations: int
    solver: str
