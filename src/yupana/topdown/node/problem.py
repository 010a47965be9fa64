"""One node of the estimation: a parent's counts to divide among its children, by weighted least squares."""

from dataclasses import dataclass

from yupana.arrays import Floats, Indices


class InfeasibleNode(ValueError):  # noqa: N818 - a state of the node, named so by the callers that catch it
    """No children satisfy both their parent and the constraints; the failsafe takes over where there is one."""


@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """Bounds on the answers of one query, child by child: of an answer without a live cell, which is 0, too."""

    labels: Indices  # shape (m,): which answer each live cell counts in
    # low, high: shape (k, size), in persons; infinite values bound nothing
    low: Floats
    high: Floats

    @classmethod
    def near(cls, labels: Indices, values: Floats, slack: float = 0.0) -> "Constraint":
        """Hold answers, of shape (k, size), as an earlier pass has given them, but for so many persons."""
        return cls(labels, values - slack, values + slack)


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A parent with k children and m live cells: what the solver minimises, and over what.

    Minimise sum over children c and queries q of weights[c, q] * |Q_q x_c - answers[q][c]|^2 over counts x >= 0 of
    shape (k, m) whose sum over the children is the parent, cell by cell, within the constraints.
    """

    parent: Floats  # shape (m,): counts of the live cells, all positive, in persons
    queries: tuple[Indices, ...]  # shape (m,): which answer each live cell counts in, from 0
    # shape (k, size of the query): noisy answers; not read, so possibly nan, where the weight is 0
    answers: tuple[Floats, ...]
    # shape (k, queries): inverse variances; 0 where not measured. Single weights may be negative as long as the
    # quadratic form of each child is positive semidefinite, as in precision matrices written as signed sums over
    # margins.
    weights: Floats
    constraints: tuple[Constraint, ...] = ()
    joint: tuple[tuple[tuple[int, ...], float], ...] = ()  # positions of children, and what their totals must add up to

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
