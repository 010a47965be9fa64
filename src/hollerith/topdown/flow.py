"""Minimum-cost flow in a directed graph with integer capacities and costs: the primal network simplex method.

The method of the textbooks (Ahuja, Magnanti and Orlin, Network Flows, 1993, chapter 11): a basis is a spanning tree,
whose potentials price every other arc; the arc that violates optimality the most in a block of arcs enters, flow is
pushed around the cycle it closes, and the last arc to block, counted from the apex in the direction of the push,
leaves. With that rule a tree stays strongly feasible (from every node some flow can be sent to the root along the
tree), so that the method cannot cycle. Everything is int64: no tolerance.
"""

from collections.abc import Callable
from typing import TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

from hollerith.topdown.infeasible import InfeasibleNode

Ints = NDArray[np.int64]
Kernel = TypeVar("Kernel", bound=Callable[..., object])


def compiled(function: Kernel) -> Kernel:
    """Compile to machine code that is kept on disk and runs without the interpreter's lock."""
    kernel: Kernel = numba.njit(cache=True, nogil=True)(function)
    return kernel


@compiled
def improve(
    tail: Ints,
    head: Ints,
    capacity: Ints,
    cost: Ints,
    flow: Ints,
    state: NDArray[np.int8],
    parent: Ints,
    link: Ints,
    potential: Ints,
) -> int:
    """Pivot from a strongly feasible tree to an optimal one.

    Parameters
    ----------
    tail, head, capacity, cost : ndarray of int64, shape (arcs,)
    flow : ndarray of int64, shape (arcs,)
        Feasible; changed in place.
    state : ndarray of int8, shape (arcs,)
        1 for an arc outside the tree without flow, -1 for one that is full, 0 for an arc of the tree and for one that
        must keep its flow; changed in place.
    parent, link : ndarray of int64, shape (nodes,)
        The tree: for each node the next one on the way to the root, and the arc between; -1 for the root, which is
        node 0. Changed in place.
    potential : ndarray of int64, shape (nodes,)
        Filled so that cost + potential[tail] - potential[head], the reduced cost, is 0 on the tree, and not negative
        where state is 1, not positive where it is -1.

    Returns
    -------
    int
        How many pivots it took.
    """
    nodes = len(parent)
    arcs = len(tail)
    # Children of a node are a doubly linked list, so that a branch is moved in constant time.
    eldest = np.full(nodes, -1, dtype=np.int64)
    younger = np.full(nodes, -1, dtype=np.int64)
    older = np.full(nodes, -1, dtype=np.int64)
    for node in range(1, nodes):
        above = parent[node]
        next_child = eldest[above]
        younger[node] = next_child
        if next_child >= 0:
            older[next_child] = node
        eldest[above] = node
    depth = np.zeros(nodes, dtype=np.int64)
    stack = np.empty(nodes, dtype=np.int64)
    potential[0] = 0
    stack[0] = 0
    height = 1
    while height > 0:
        height -= 1
        node = stack[height]
        child = eldest[node]
        while child >= 0:
            arc = link[child]
            depth[child] = depth[node] + 1
            if tail[arc] == child:
                potential[child] = potential[node] - cost[arc]
            else:
                potential[child] = potential[node] + cost[arc]
            stack[height] = child
            height += 1
            child = younger[child]

    block = max(np.int64(np.sqrt(arcs)), np.int64(24))
    pivots = 0
    at = 0
    while True:
        # The arc to enter: the worst of a block; blocks go round, and a whole round without any is the end.
        entering = -1
        worst = np.int64(0)
        left = block
        for _ in range(arcs):
            price = state[at] * (cost[at] + potential[tail[at]] - potential[head[at]])
            if price < worst:
                worst = price
                entering = at
            at += 1
            if at == arcs:
                at = 0
            left -= 1
            if left == 0:
                if entering >= 0:
                    break
                left = block
        if entering < 0:
            return pivots
        pivots += 1

        forward = state[entering] == 1
        first = tail[entering] if forward else head[entering]
        second = head[entering] if forward else tail[entering]
        one = first
        other = second
        while one != other:
            if depth[one] > depth[other]:
                one = parent[one]
            elif depth[other] > depth[one]:
                other = parent[other]
            else:
                one = parent[one]
                other = parent[other]
        apex = one

        # How much can go round, and which arc blocks last.
        push = capacity[entering]
        leaving = -1
        on_first = True
        node = first
        while node != apex:
            arc = link[node]
            room = flow[arc] if tail[arc] == node else capacity[arc] - flow[arc]
            if room < push:
                push = room
                leaving = node
            node = parent[node]
        node = second
        while node != apex:
            arc = link[node]
            room = capacity[arc] - flow[arc] if tail[arc] == node else flow[arc]
            if room <= push:
                push = room
                leaving = node
                on_first = False
            node = parent[node]

        if push > 0:
            flow[entering] += push if forward else -push
            node = first
            while node != apex:
                arc = link[node]
                flow[arc] += -push if tail[arc] == node else push
                node = parent[node]
            node = second
            while node != apex:
                arc = link[node]
                flow[arc] += push if tail[arc] == node else -push
                node = parent[node]
        if leaving < 0:
            state[entering] = -state[entering]
            continue
        out = link[leaving]
        state[out] = 1 if flow[out] == 0 else -1
        state[entering] = 0

        # Hang the cut-off branch by the entering arc: turn the path from its end to the leaving arc upside down.
        moved = first if on_first else second
        node = moved
        above = second if on_first else first
        arc = entering
        while True:
            before = parent[node]
            old_arc = link[node]
            prior = older[node]
            following = younger[node]
            if prior >= 0:
                younger[prior] = following
            else:
                eldest[before] = following
            if following >= 0:
                older[following] = prior
            next_child = eldest[above]
            older[node] = -1
            younger[node] = next_child
            if next_child >= 0:
                older[next_child] = node
            eldest[above] = node
            parent[node] = above
            link[node] = arc
            if node == leaving:
                break
            above = node
            arc = old_arc
            node = before
        reduced = cost[entering] + potential[tail[entering]] - potential[head[entering]]
        shift = -reduced if tail[entering] == moved else reduced
        stack[0] = moved
        height = 1
        while height > 0:
            height -= 1
            node = stack[height]
            potential[node] += shift
            depth[node] = depth[parent[node]] + 1
            child = eldest[node]
            while child >= 0:
                stack[height] = child
                height += 1
                child = younger[child]


def min_cost_flow(tail: Ints, head: Ints, capacity: Ints, cost: Ints, supply: Ints) -> Ints:
    """The cheapest flow that takes every node's supply to the nodes that demand it.

    Parameters
    ----------
    tail, head : ndarray of int64, shape (arcs,)
        The nodes each arc leaves and enters; parallel arcs are allowed.
    capacity, cost : ndarray of int64, shape (arcs,)
        Capacities are not negative. The sum of the absolute costs must stay below 2^60.
    supply : ndarray of int64, shape (nodes,)
        Negative for a demand; sums to zero.

    Returns
    -------
    ndarray of int64, shape (arcs,)

    Raises
    ------
    InfeasibleNode
        Where the capacities let no such flow through.
    """
    nodes = len(supply)
    if supply.sum() != 0:
        raise ValueError(f"supply must sum to zero; it sums to {supply.sum()}.")
    ceiling = int(np.abs(cost).sum()) + 1
    if ceiling >= 1 << 60:
        raise ValueError("The sum of the absolute costs must stay below 2^60; scale them down.")
    # A root is joined to every node by an arc that costs more than any path: the first tree.
    every = np.arange(1, nodes + 1)
    gives = supply >= 0
    amount = np.abs(supply)
    real = len(tail)
    flow = np.concatenate([np.zeros(real, dtype=np.int64), amount])
    state = np.concatenate([np.where(capacity > 0, 1, 0), np.zeros(nodes)]).astype(np.int8)
    improve(
        np.concatenate([tail + 1, np.where(gives, every, 0)]),
        np.concatenate([head + 1, np.where(gives, 0, every)]),
        np.concatenate([capacity, np.full(nodes, amount.sum() + 1)]),
        np.concatenate([cost, np.full(nodes, ceiling)]),
        flow,
        state,
        np.concatenate([[-1], np.zeros(nodes, dtype=np.int64)]),
        np.concatenate([[-1], real + np.arange(nodes)]),
        np.zeros(nodes + 1, dtype=np.int64),
    )
    if flow[real:].any():
        raise InfeasibleNode("No flow fits the capacities; raise capacities or lower the supplies.")
    return flow[:real]
