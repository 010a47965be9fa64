"""Divide one parent among its children: estimate in passes, then round in passes. Public."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats, Indices, Ints
from yupana.topdown.node.general import solve_failsafe
from yupana.topdown.node.problem import Constraint, Node
from yupana.topdown.node.solve import solve
from yupana.topdown.rounding.program import Limit, sum_by
from yupana.topdown.rounding.rounding import Rounding, round_counts, round_failsafe

_NOISE: Final = 1e-6
"""Error of a linear programme's optimum, in persons."""

_SLACK: Final = 1e-6
"""Persons by which a later pass of the failsafe may miss what an earlier one holds: about the error of its solution."""


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """What one pass fits: queries on the live cells, their answers and weights, as in `Node`; and which it holds."""

    queries: tuple[Indices, ...]  # shape (m,)
    answers: tuple[Floats, ...]  # shape (k, size)
    weights: Floats  # shape (k, queries)
    held: tuple[Indices, ...]  # shape (m,): queries whose estimated answers later passes keep

    def apart(self) -> "Terms":
        """The same of what the live cells reach, in arrays of its own: it keeps alive no others, such as a batch's."""
        queries, answers = zip(*map(self.reached, range(len(self.queries))), strict=True)
        return Terms(queries, answers, self.weights.copy(), self.held)

    def reached(self, query: int) -> tuple[Indices, Floats]:
        """The answers to a query that live cells reach, and which each cell counts in; in arrays of their own."""
        reached, local = np.unique(self.queries[query], return_inverse=True)
        return local.astype(np.int32), self.answers[query][:, reached]


@dataclass(frozen=True, slots=True, eq=False)
class Siblings:
    """A parent with its children and all that the estimate must satisfy."""

    parent: Ints  # shape (m,): counts of the live cells
    children: int
    # shape (m,), or None: queries of each rounding pass; None is the detailed one
    rounding: tuple[tuple[Indices | None, ...], ...]
    limits: tuple[Limit, ...]  # by the level of the first attribute, if it is bounded
    totals: Ints | None  # shape (k,), or None: known totals of the children
    joint: tuple[tuple[tuple[int, ...], int], ...]  # positions of children, and the known sum of their totals


@dataclass(frozen=True, slots=True, eq=False)
class Divided:
    """Counts of the children of one parent."""

    counts: Ints  # shape (k, m)
    solvers: tuple[str, ...]  # what solved each estimation pass: `NodeEstimate.solver`
    # under the failsafe, by how many persons, over all cells, the children must differ from the parent
    missed: int | None = None


def divide(family: Siblings, passes: Sequence[Callable[[], Terms]]) -> Divided:
    """Estimate the counts of the children and round them; the result sums to the parent, cell by cell.

    Parameters
    ----------
    passes : sequence of callable
        Makes the terms of each estimation pass.

    Raises
    ------
    InfeasibleNode
        If no counts of the children satisfy the parent and the constraints.
    """
    estimate, solvers = _estimate_in_passes(family, passes)
    return Divided(round_counts(estimate, rounding_of(family)), solvers)


def _estimate_in_passes(family: Siblings, passes: Sequence[Callable[[], Terms]]) -> tuple[Floats, tuple[str, ...]]:
    """Estimate the counts of the children; each pass keeps what the earlier ones hold.

    A pass is solved on the coarsest cells that its queries, what is held and the bounds can tell apart. Where the last
    pass leaves cells together, their counts go to the cells in proportion to the parent's. Passes after one that holds
    every cell change nothing, and are left out.

    Returns
    -------
    tuple
        Estimates, of shape (k, m), and what solved each pass.
    """
    held = list(map(_constraint, _known_totals(family)))
    parent = family.parent.astype(np.float64)
    counts = np.zeros((family.children, len(parent)))
    solvers: list[str] = []
    for make in passes:
        terms = make()
        coarse, cell = collapse(_node(family, terms, held))
        solution = solve(coarse)
        solvers.append(solution.solver)
        counts = solution.counts
        if len(coarse.parent) < len(parent):
            counts = counts[:, cell] * (parent / coarse.parent[cell])
        held += [Constraint.near(label, sum_by(counts, label)) for label in terms.held]
        if _holds_all(terms):
            break
    return counts, tuple(solvers)


def _holds_all(terms: Terms) -> bool:
    """Whether later passes hold every cell, so that nothing is left for them to decide."""
    return any(len(np.unique(label)) == len(label) for label in terms.held)


def _node(family: Siblings, terms: Terms, held: Sequence[Constraint]) -> Node:
    constraints = (*held, *map(_constraint, family.limits))
    joint = tuple((positions, float(total)) for positions, total in family.joint)
    parent = family.parent.astype(np.float64)
    return Node(parent, terms.queries, terms.answers, terms.weights, constraints, joint)


def _constraint(limit: Limit) -> Constraint:
    return Constraint(limit.labels, limit.lower.astype(np.float64), limit.upper.astype(np.float64))


def divide_failsafe(family: Siblings, passes: Sequence[Callable[[], Terms]]) -> Divided:
    """Divide a parent that its children's constraints contradict: bend its cells, as little as possible.

    Within a group of the first attribute cells are alike to the constraints, so it is the parent's group totals that
    they contradict: the children keep the constraints and the parent's total, not its group totals.

    Parameters
    ----------
    family : Siblings
        On every cell that can hold someone.
    """
    held = list(map(_constraint, _known_totals(family)))
    counts = np.zeros((family.children, len(family.parent)))
    solvers: list[str] = []
    least: float | None = None
    for make in passes:
        terms = make()
        solution, least = solve_failsafe(_node(family, terms, held), least)
        counts = solution.counts
        solvers.append(f"{solution.solver}, failsafe")
        held += [Constraint.near(label, sum_by(counts, label), _SLACK) for label in terms.held]
        if _holds_all(terms):
            break
    # What cannot be met in fractions cannot be met in whole persons; the least departure is a whole number or above.
    missed = int(np.ceil((least or 0.0) - _NOISE))
    return Divided(round_failsafe(counts, rounding_of(family), missed), tuple(solvers), missed)


def collapse(node: Node) -> tuple[Node, NDArray[np.intp]]:
    """Put cells together that nothing in a node tells apart.

    Returns
    -------
    tuple
        The node on the coarser cells, and the coarser cell of each cell, of shape (m,).
    """
    labels = [*node.queries, *(constraint.labels for constraint in node.constraints)]
    everything = np.arange(node.live)
    if any(int(label.max(initial=0)) + 1 >= node.live and len(np.unique(label)) == node.live for label in labels):
        return node, everything
    key = np.zeros(node.live, dtype=np.int64)
    for label in labels:
        # Numbered anew after each step, so that products of sizes stay small.
        _, key = np.unique(key * (int(label.max(initial=0)) + 1) + label, return_inverse=True)
    first = np.unique(key, return_index=True)[1]
    if len(first) == node.live:
        return node, everything
    coarse = replace(
        node,
        parent=np.bincount(key, node.parent, len(first)).astype(np.float64),
        queries=tuple(label[first] for label in node.queries),
        constraints=tuple(replace(of, labels=of.labels[first]) for of in node.constraints),
    )
    return coarse, key


def _known_totals(family: Siblings) -> list[Limit]:
    """Known totals of the children as answers of the total query."""
    totals = [] if family.totals is None else [family.totals[:, None]]
    return [Limit(np.zeros(len(family.parent), dtype=np.int32), values, values) for values in totals]


def rounding_of(family: Siblings) -> Rounding:
    """What a rounding of the children goes by."""
    return Rounding(family.parent, family.rounding, (*_known_totals(family), *family.limits), family.joint)
