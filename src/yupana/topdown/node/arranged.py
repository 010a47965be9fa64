"""A node in the terms of the kernels: children by profile, queries as blocks, constraints as rows with bounds."""

from dataclasses import dataclass

import numpy as np

from yupana.arrays import Flags, Floats, Indices
from yupana.topdown.node.admm import Penalty
from yupana.topdown.node.arrange import arrange, linear_term
from yupana.topdown.node.kernels import Conditions, Positions, Squares
from yupana.topdown.node.problem import Constraint, InfeasibleNode, Node

NEAR = 1e-6
"""Persons by which sums may miss each other before a node is infeasible; parents and bounds are whole or held."""


@dataclass(frozen=True, slots=True, eq=False)
class Arranged:
    """What the kernels take; see `arrange` and `linear_term` for the arrays not described here."""

    labels: Indices
    offsets: Positions
    targets: Floats
    inverse: Floats
    order: Positions
    squares: Squares
    conditions: Conditions
    penalty: Penalty


def check(node: Node, constraint: Constraint) -> Floats:
    """Find the parent's answers to the query of a constraint, and whether the bounds leave room for them.

    Raises
    ------
    InfeasibleNode
        If the bounds of the children, added up, leave the parent's answer out, or a lower bound exceeds an upper one.
    """
    low = np.maximum(constraint.low, 0.0)
    answers: Floats = np.bincount(constraint.labels, node.parent, low.shape[1]).astype(np.float64)
    least = low.sum(axis=0)
    most = constraint.high.sum(axis=0)
    near = NEAR * (1.0 + 1e-6 * answers)
    if (least > answers + near).any() or (most < answers - near).any() or (low > constraint.high + NEAR).any():
        raise InfeasibleNode(
            "the constraints on the children leave no room for the parent's counts: added up, their bounds exclude "
            "a total of the parent. Use the failsafe, or correct the bounds."
        )
    return answers


def shut_and_binding(node: Node) -> tuple[Flags, list[Constraint]]:
    """Sort constraints into counts that must be 0 and bounds that could bind.

    Returns
    -------
    shut : ndarray of bool, shape (m, k)
    binding : list of Constraint

    Raises
    ------
    InfeasibleNode
        Where sums alone show that no counts satisfy everything.
    """
    shut = np.zeros((node.live, node.children), dtype=np.bool_)
    binding = []
    for constraint in node.constraints:
        answers = check(node, constraint)
        zero = constraint.high <= 1e-9
        if zero.any():
            shut |= zero[:, constraint.labels].T
        if ((constraint.low > 0.0) | ((constraint.high < answers) & ~zero)).any():
            # a bound that counts >= 0 or the parent imply anyway only makes the active set ambiguous.
            low = np.where(constraint.low > 0.0, constraint.low, -np.inf)
            high = np.where(constraint.high < answers, np.maximum(constraint.high, constraint.low), np.inf)
            binding.append(Constraint(constraint.labels, low, high))
    if bool(shut.all(axis=1).any()):
        raise InfeasibleNode(
            "a cell of the parent has people, and every child must have none there. Use the failsafe, or correct the "
            "bounds."
        )
    return shut, binding


def pack(joint: tuple[tuple[tuple[int, ...], float], ...]) -> list[int]:
    """Spread joint totals over as few rows as keep those in one row free of common children."""
    taken: list[set[int]] = []
    places = []
    for children, _ in joint:
        place = next((i for i, row in enumerate(taken) if row.isdisjoint(children)), len(taken))
        if place == len(taken):
            taken.append(set())
        taken[place].update(children)
        places.append(place)
    return places


def arrange_node(node: Node, shut: Flags, binding: list[Constraint]) -> Arranged:
    """Bring a node into the form of the kernels."""
    m, k = node.live, node.children
    n_queries = len(node.queries)
    offsets = np.zeros(n_queries + 1, dtype=np.int64)
    np.cumsum([answers.shape[1] for answers in node.answers], out=offsets[1:])
    labels = np.array(node.queries, dtype=np.int32).reshape(n_queries, m)
    answers = np.ascontiguousarray(np.concatenate(node.answers, axis=1)) if n_queries else np.empty((k, 0))
    weights = np.ascontiguousarray(node.weights)
    places = pack(node.joint)
    totals = max(places, default=-1) + 1
    bounded = np.zeros((len(binding) + totals, m), dtype=np.int32)
    for at, constraint in enumerate(binding):
        bounded[at] = constraint.labels
    rows = sum(min(constraint.low.shape[1], m) for constraint in binding) + totals
    order, scale, starts, whole, single, blocks, form, pull, overlap, row_of, row_label, row_query, strength = arrange(
        labels, weights, bounded, rows
    )
    b, targets, inverse = linear_term(labels, offsets, weights, answers, order, scale)
    low = np.full((len(row_label), k), -np.inf)
    high = np.full((len(row_label), k), np.inf)
    for at, constraint in enumerate(binding):
        here = row_query == at
        low[here] = constraint.low[order][:, row_label[here]].T
        high[here] = constraint.high[order][:, row_label[here]].T
    joint = np.zeros((len(node.joint), k), dtype=np.bool_)
    for at, (children, _) in enumerate(node.joint):
        joint[at, list(children)] = True
    first = len(row_label) - totals
    return Arranged(
        labels=labels,
        offsets=offsets,
        targets=targets,
        inverse=inverse,
        order=order,
        squares=Squares(b, scale, starts, single, blocks, form),
        conditions=Conditions(
            parent=np.ascontiguousarray(node.parent),
            row_of=row_of,
            low=low,
            high=high,
            joint=np.ascontiguousarray(joint[:, order]),
            joint_total=np.array([total for _, total in node.joint], dtype=np.float64),
            shut=np.ascontiguousarray(shut[:, order]),
        ),
        penalty=Penalty(whole, pull, overlap, strength, np.array([first + place for place in places], dtype=np.int64)),
    )
