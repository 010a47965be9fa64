"""Minimum-cost flow in a directed graph with integer capacities and costs: the primal network simplex method.

The method of the textbooks (Ahuja, Magnanti and Orlin, Network Flows, 1993, chapter 11): a basis is a spanning tree,
whose potentials price every other arc; the arc that violates optimality the most in a block of arcs enters, flow is
pushed around the cycle it closes, and the last arc to block, counted from the apex in the direction of the push,
leaves. With that rule a tree stays strongly feasible (from every node some flow can be sent to the root along the
tree), so that the method cannot cycle. Everything is int64: no tolerance.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Ints
from yupana.compiled import compiled_part


class Graph(NamedTuple):
    """A flow in a graph, arc by arc: arrays of int64, shape (arcs,)."""

    tail: Ints
    head: Ints
    capacity: Ints
    cost: Ints
    flow: Ints
    # 1 for an arc outside the tree without flow, -1 for one that is full, 0 for an arc of the tree and for one that
    # must keep its flow. An arc of capacity 0 must be 0.
    state: NDArray[np.int8]


class SpanningTree(NamedTuple):
    """A spanning tree, node by node; children of a node are a doubly linked list, so that branches move quickly."""

    parent: Ints
    link: Ints
    potential: Ints
    depth: Ints
    eldest: Ints
    younger: Ints
    older: Ints
    stack: Ints  # room for a walk through the tree


@compiled_part
def improve(graph: Graph, parent: Ints, link: Ints, potential: Ints) -> int:
    """Pivot from a strongly feasible tree to an optimal one.

    Parameters
    ----------
    graph : Graph
        Its flow is feasible. Flow and state are changed in place.
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
    tree = _plant(graph, parent, link, potential)
    block = max(int(np.sqrt(len(graph.tail))), 24)
    pivots = 0
    at = 0
    while True:
        entering, at = _price(graph, potential, at, block)
        if entering < 0:
            return pivots
        pivots += 1
        forward = graph.state[entering] == 1
        first = graph.tail[entering] if forward else graph.head[entering]
        second = graph.head[entering] if forward else graph.tail[entering]
        apex = _meet(tree, first, second)
        push, leaving, on_first = _block(graph, tree, first, second, apex, graph.capacity[entering])
        if push > 0:
            graph.flow[entering] += push if forward else -push
            _send(graph, tree, first, apex, -push)
            _send(graph, tree, second, apex, push)
        if leaving < 0:
            graph.state[entering] = -graph.state[entering]
            continue
        out = link[leaving]
        graph.state[out] = 1 if graph.flow[out] == 0 else -1
        graph.state[entering] = 0
        if on_first:
            _rehang(graph, tree, entering, leaving, first, second)
        else:
            _rehang(graph, tree, entering, leaving, second, first)


@compiled_part
def _plant(graph: Graph, parent: Ints, link: Ints, potential: Ints) -> SpanningTree:
    """Lists of children, depths and potentials of a tree given by its parents."""
    nodes = len(parent)
    room = np.empty((5, nodes), dtype=np.int64)
    room[:] = -1
    tree = SpanningTree(parent, link, potential, room[0], room[1], room[2], room[3], room[4])
    tree.depth[0] = 0
    for node in range(1, nodes):
        _adopt(tree, node, parent[node])
    potential[0] = 0
    tree.stack[0] = 0
    height = 1
    while height > 0:
        height -= 1
        node = tree.stack[height]
        child = tree.eldest[node]
        while child >= 0:
            arc = link[child]
            tree.depth[child] = tree.depth[node] + 1
            potential[child] = potential[node] + (-graph.cost[arc] if graph.tail[arc] == child else graph.cost[arc])
            tree.stack[height] = child
            height += 1
            child = tree.younger[child]
    return tree


@compiled_part
def _adopt(tree: SpanningTree, node: int, above: int) -> None:
    """Put a node first among the children of another."""
    next_child = tree.eldest[above]
    tree.older[node] = -1
    tree.younger[node] = next_child
    if next_child >= 0:
        tree.older[next_child] = node
    tree.eldest[above] = node


@compiled_part
def _price(graph: Graph, potential: Ints, at: int, block: int) -> tuple[int, int]:
    """The arc to enter, the worst of the first block that has any, or -1; and where the next search starts."""
    arcs = len(graph.tail)
    entering = -1
    worst = np.int64(0)
    left = block
    for _ in range(arcs):
        reduced = graph.cost[at] + potential[graph.tail[at]] - potential[graph.head[at]]
        price = graph.state[at] * reduced
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
    return entering, at


@compiled_part
def _meet(tree: SpanningTree, one: int, other: int) -> int:
    """The lowest node above both."""
    while one != other:
        if tree.depth[one] > tree.depth[other]:
            one = tree.parent[one]
        elif tree.depth[other] > tree.depth[one]:
            other = tree.parent[other]
        else:
            one = tree.parent[one]
            other = tree.parent[other]
    return one


@compiled_part
def _block(graph: Graph, tree: SpanningTree, first: int, second: int, apex: int, push: int) -> tuple[int, int, bool]:
    """How much can go from the apex down to first, over the entering arc to second and up to the apex.

    With it the node whose arc to its parent blocks last on that way, -1 where the entering arc does, and whether that
    node lies on the side of first.
    """
    leaving = -1
    on_first = True
    node = first
    while node != apex:
        arc = tree.link[node]
        room = graph.flow[arc] if graph.tail[arc] == node else graph.capacity[arc] - graph.flow[arc]
        if room < push:
            push = room
            leaving = node
        node = tree.parent[node]
    node = second
    while node != apex:
        arc = tree.link[node]
        room = graph.capacity[arc] - graph.flow[arc] if graph.tail[arc] == node else graph.flow[arc]
        if room <= push:
            push = room
            leaving = node
            on_first = False
        node = tree.parent[node]
    return push, leaving, on_first


@compiled_part
def _send(graph: Graph, tree: SpanningTree, node: int, apex: int, amount: int) -> None:
    """Push an amount up the tree from a node to one above it."""
    while node != apex:
        arc = tree.link[node]
        graph.flow[arc] += amount if graph.tail[arc] == node else -amount
        node = tree.parent[node]


@compiled_part
def _rehang(graph: Graph, tree: SpanningTree, entering: int, leaving: int, moved: int, onto: int) -> None:
    """Cut the branch below the leaving arc, and hang it by the entering arc from ``moved`` to ``onto``."""
    # The path from the entering to the leaving arc is turned upside down.
    node = moved
    above = onto
    arc = entering
    while True:
        before = tree.parent[node]
        old_arc = tree.link[node]
        prior = tree.older[node]
        following = tree.younger[node]
        if prior >= 0:
            tree.younger[prior] = following
        else:
            tree.eldest[before] = following
        if following >= 0:
            tree.older[following] = prior
        _adopt(tree, node, above)
        tree.parent[node] = above
        tree.link[node] = arc
        if node == leaving:
            break
        above = node
        arc = old_arc
        node = before
    reduced = graph.cost[entering] + tree.potential[graph.tail[entering]] - tree.potential[graph.head[entering]]
    shift = -reduced if graph.tail[entering] == moved else reduced
    tree.stack[0] = moved
    height = 1
    while height > 0:
        height -= 1
        node = tree.stack[height]
        tree.potential[node] += shift
        tree.depth[node] = tree.depth[tree.parent[node]] + 1
        child = tree.eldest[node]
        while child >= 0:
            tree.stack[height] = child
            height += 1
            child = tree.younger[child]
