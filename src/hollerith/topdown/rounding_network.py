"""Roundings as a flow: exact and quick where the queries are nested.

Each cell sends as many units as children must be rounded up in it, over arcs of capacity 1, to the children that may
be. In each child the units run through the answers of the finest query, of the next coarser one, and so on, to the
root; the arcs between cost what the distance to the target costs, which is convex and breaks at integers only. So an
optimal flow is integral and is an optimal rounding. Children with a known joint total end in a node of their own.

Later passes choose among the optima of earlier ones: after a pass, arcs with a reduced cost other than zero keep their
flow, which is what all optima have in common.

Costs are integers. Where a pass holds the detailed query they are multiples of 2^-30, so that the distance of that
pass may exceed the optimum by at most 2^-31 for each fractional count. No node comes near what this could matter to:
2^-31 times 10^6 fractional counts is 0.0005.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hollerith.topdown.flow import compiled, improve
from hollerith.topdown.rounding_program import Joint, Limit, cannot_round

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Labels = NDArray[np.int32]

SCALE = 1 << 30
"""Units of cost per person where a pass holds the detailed query."""

HALF_UP = 0.5 + 1e-6
"""What is added before the floor; see `round_half_up`."""


@compiled
def nest(labels: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32], Ints]:
    """Order queries from fine to coarse, equal ones as one.

    Parameters
    ----------
    labels : ndarray of int32, shape (queries, m)

    Returns
    -------
    level : ndarray of int32, shape (queries,)
        Where each query stands; the first is -1 where some two queries are not nested.
    nested : ndarray of int32, shape (levels, m)
        Labels numbered without gaps, finest query first.
    sizes : ndarray of int64, shape (levels,)
    """
    queries, cells = labels.shape
    dense = np.empty((queries, cells), dtype=np.int32)
    size = np.zeros(queries, dtype=np.int64)
    for q in range(queries):
        size[q] = _number(labels[q], dense[q])
    level = np.zeros(queries, dtype=np.int32)
    nested = np.empty((queries, cells), dtype=np.int32)
    sizes = np.zeros(queries, dtype=np.int64)
    levels = 0
    left = size.copy()
    for _ in range(queries):
        q = int(left.argmax())
        left[q] = -1
        if levels > 0 and not _refines(nested[levels - 1], sizes[levels - 1], dense[q]):
            level[0] = -1
            break
        if levels == 0 or size[q] < sizes[levels - 1]:
            nested[levels] = dense[q]
            sizes[levels] = size[q]
            levels += 1
        level[q] = levels - 1
    return level, nested[:levels], sizes[:levels]


@compiled
def _number(labels: NDArray[np.int32], dense: NDArray[np.int32]) -> int:
    """Number the labels that occur without gaps, in order of appearance; how many there are."""
    most = 0
    for label in labels:
        most = max(most, label)
    number = np.full(most + 1, -1, dtype=np.int32)
    size = 0
    for i, label in enumerate(labels):
        if number[label] < 0:
            number[label] = size
            size += 1
        dense[i] = number[label]
    return size


@compiled
def _refines(fine: NDArray[np.int32], size: int, coarse: NDArray[np.int32]) -> bool:
    """Whether cells with the same fine label always have the same coarse one."""
    above = np.full(size, -1, dtype=np.int32)
    for i in range(len(fine)):
        if above[fine[i]] < 0:
            above[fine[i]] = coarse[i]
        elif above[fine[i]] != coarse[i]:
            return False
    return True


class Choices(NamedTuple):
    """The fractional counts that may go up or down: entries, cell by cell."""

    child: Ints
    cell: Ints
    first: Ints  # where the entries of each such cell start, and the end


class Answers(NamedTuple):
    """The answers of all queries for all children, level by level, child by child."""

    start: Ints  # where each level starts
    target: Ints  # how many choices should go up
    low: Ints  # how many must
    high: Ints  # how many may; one more than there are where that is not bounded
    made: NDArray[np.bool_]  # whether the network has a node for it


class Queries(NamedTuple):
    """What the passes ask; see `flow_up`."""

    nested: NDArray[np.int32]
    sizes: Ints
    weight: Ints
    detailed: Ints


class Network(NamedTuple):
    """The network and its first tree; see `hollerith.topdown.flow.improve`."""

    tail: Ints
    head: Ints
    capacity: Ints
    cost: Ints  # by pass
    flow: Ints
    state: NDArray[np.int8]
    parent: Ints
    link: Ints
    inflow: Ints  # by node: what has come in and has not gone on
    node_of: Ints  # by answer


@compiled
def flow_up(
    fraction: Floats,
    need: Ints,
    nested: NDArray[np.int32],
    sizes: Ints,
    weight: Ints,
    detailed: Ints,
    floor: Ints,
    ceiling: Ints,
    group: Ints,
    group_sum: Ints,
    up: Ints,
) -> bool:
    """Choose which counts to round up.

    Parameters
    ----------
    fraction : ndarray of float64, shape (k, m)
        0 where there is no choice.
    need : ndarray of int64, shape (m,)
        How many children of each cell to round up.
    nested : ndarray of int32, shape (levels, m)
    sizes : ndarray of int64, shape (levels,)
    weight : ndarray of int64, shape (passes, levels)
        How many queries of a pass stand on a level.
    detailed : ndarray of int64, shape (passes,)
        How many detailed queries a pass holds.
    floor, ceiling : ndarray of int64, shape (k * sum of sizes,) or (0,)
        Bounds on answers rounded up, level by level and child by child; empty for none.
    group : ndarray of int64, shape (k,)
        The joint total each child counts in, or -1.
    group_sum : ndarray of int64, shape (joint totals,)
    up : ndarray of int64, shape (k, m)
        Filled with 1 where rounded up, 0 elsewhere.

    Returns
    -------
    bool
        Whether it is possible.
    """
    possible, choices = _find_choices(fraction, need, up)
    if not possible:
        return False
    possible, answers = _sum_answers(fraction, up, choices, nested, sizes, floor, ceiling)
    if not possible:
        return False
    queries = Queries(nested, sizes, weight, detailed)
    network = _lay_out(choices, answers, group, group_sum, up, len(detailed))
    _send_cells(fraction, need, queries, group, choices, answers, network)
    real = _climb(queries, group, answers, network, len(choices.child))
    arcs = _join_root(network, real)
    tail = network.tail[:arcs]
    head = network.head[:arcs]
    flow = network.flow[:arcs]
    state = network.state[:arcs]
    potential = np.empty(len(network.parent), dtype=np.int64)
    for p in range(len(detailed)):
        cost = network.cost[p, :arcs]
        largest = 1
        for arc in range(real):
            largest = max(largest, abs(cost[arc]))
        cost[real:] = largest * len(potential)  # more than any path, for none passes a node twice
        improve(tail, head, network.capacity[:arcs], cost, flow, state, network.parent, network.link, potential)
        if flow[real:].any():
            return False
        for arc in range(arcs):
            if cost[arc] + potential[tail[arc]] - potential[head[arc]] != 0:
                state[arc] = 0
    for entry in range(len(choices.child)):
        up[choices.child[entry], choices.cell[entry]] = flow[entry]
    return True


@compiled
def _lay_out(choices: Choices, answers: Answers, group: Ints, group_sum: Ints, up: Ints, passes: int) -> Network:
    """An empty network with its nodes numbered: the root, joint totals, cells, answers."""
    entries = len(choices.child)
    nodes = len(group_sum) + len(choices.first)
    node_of = np.full(len(answers.made), -1, dtype=np.int64)
    for answer in range(len(node_of)):
        if answers.made[answer]:
            node_of[answer] = nodes
            nodes += 1
    inflow = np.zeros(nodes, dtype=np.int64)
    inflow[1 : 1 + len(group_sum)] = -group_sum
    for c in range(len(group)):
        if group[c] >= 0:
            inflow[1 + group[c]] += up[c].sum()
    arcs = entries + 3 * nodes
    return Network(
        np.empty(arcs, dtype=np.int64),
        np.empty(arcs, dtype=np.int64),
        np.empty(arcs, dtype=np.int64),
        np.zeros((passes, arcs), dtype=np.int64),
        np.zeros(arcs, dtype=np.int64),
        np.zeros(arcs, dtype=np.int8),
        np.full(nodes, -1, dtype=np.int64),
        np.full(nodes, -1, dtype=np.int64),
        inflow,
        node_of,
    )


@compiled
def _find_choices(fraction: Floats, need: Ints, up: Ints) -> tuple[bool, Choices]:
    """The entries, and in ``up`` what goes up without a choice."""
    children, cells = fraction.shape
    fractional = np.zeros(cells, dtype=np.int64)
    for c in range(children):
        for i in range(cells):
            fractional[i] += fraction[c, i] > 0
    entries = 0
    senders = 0
    possible = True
    for i in range(cells):
        if need[i] < 0 or need[i] > fractional[i]:
            possible = False
        if 0 < need[i] < fractional[i]:
            entries += fractional[i]
            senders += 1
    child = np.empty(entries, dtype=np.int64)
    cell = np.empty(entries, dtype=np.int64)
    first = np.zeros(senders + 1, dtype=np.int64)
    entry = 0
    sender = 0
    for i in range(cells):
        all_up = need[i] == fractional[i]
        chosen = 0 < need[i] < fractional[i]
        for c in range(children):
            part = fraction[c, i] > 0
            up[c, i] = part and all_up
            if part and chosen:
                child[entry] = c
                cell[entry] = i
                entry += 1
        if chosen:
            sender += 1
            first[sender] = entry
    return possible, Choices(child, cell, first)


@compiled
def _sum_answers(
    fraction: Floats,
    up: Ints,
    choices: Choices,
    nested: NDArray[np.int32],
    sizes: Ints,
    floor: Ints,
    ceiling: Ints,
) -> tuple[bool, Answers]:
    """Targets and bounds of the answers, counting choices only.

    An answer with one choice costs what that choice costs, and needs no node, unless it is bounded or a finer answer
    has a node.
    """
    children, cells = fraction.shape
    levels = len(sizes)
    start = np.zeros(levels + 1, dtype=np.int64)
    for level in range(levels):
        start[level + 1] = start[level] + children * sizes[level]
    total = np.zeros(start[levels])
    forced = np.zeros(start[levels], dtype=np.int64)
    many = np.zeros(start[levels], dtype=np.int64)
    for level in range(levels):
        for c in range(children):
            for i in range(cells):
                answer = start[level] + c * sizes[level] + nested[level, i]
                total[answer] += fraction[c, i]
                forced[answer] += up[c, i]
        for entry in range(len(choices.child)):
            many[start[level] + choices.child[entry] * sizes[level] + nested[level, choices.cell[entry]]] += 1
    low = np.zeros(start[levels], dtype=np.int64)
    high = many + 1
    made = many > 1
    possible = True
    for answer in range(len(floor)):
        low[answer] = max(floor[answer] - forced[answer], 0)
        limit = min(ceiling[answer] - forced[answer], many[answer])
        if low[answer] > limit:
            possible = False
        if limit < many[answer]:
            high[answer] = limit
        made[answer] = made[answer] or low[answer] > 0 or limit < many[answer]
    _complete(made, choices, nested, sizes, start)
    target = np.floor(total + HALF_UP).astype(np.int64) - forced
    return possible, Answers(start, target, low, high, made)


@compiled
def _complete(made: NDArray[np.bool_], choices: Choices, nested: NDArray[np.int32], sizes: Ints, start: Ints) -> None:
    """Give every answer a node that has a finer answer with a node below."""
    for entry in range(len(choices.child)):
        below = False
        for level in range(len(sizes)):
            answer = start[level] + choices.child[entry] * sizes[level] + nested[level, choices.cell[entry]]
            made[answer] = made[answer] or below
            below = made[answer]


@compiled
def _send_cells(
    fraction: Floats,
    need: Ints,
    queries: Queries,
    group: Ints,
    choices: Choices,
    answers: Answers,
    network: Network,
) -> None:
    """Arcs from the cells to the children. At first the largest fractional parts go up.

    A cell hangs in the tree by the largest part that does not go up.
    """
    first_node = len(network.parent) - answers.made.sum() - len(choices.first) + 1
    order = np.empty(len(group), dtype=np.int64)
    for sender in range(len(choices.first) - 1):
        node = first_node + sender
        first = choices.first[sender]
        many = choices.first[sender + 1] - first
        i = choices.cell[first]
        for at in range(many):
            entry = first + at
            part = fraction[choices.child[entry], i]
            place = at
            while place > 0 and fraction[choices.child[order[place - 1]], i] < part:
                order[place] = order[place - 1]
                place -= 1
            order[place] = entry
            network.tail[entry] = node
            network.head[entry] = _connect(part, entry, queries, group, choices, answers, network)
            network.capacity[entry] = 1
        for at in range(many):
            entry = order[at]
            if at < need[i]:
                network.flow[entry] = 1
                network.state[entry] = -1
                network.inflow[network.head[entry]] += 1
            elif at > need[i]:
                network.state[entry] = 1
        network.parent[node] = network.head[order[need[i]]]
        network.link[node] = order[need[i]]


@compiled
def _connect(
    part: float, entry: int, queries: Queries, group: Ints, choices: Choices, answers: Answers, network: Network
) -> int:
    """The node that an entry leads to, the finest there is; its cost counts the answers before."""
    c = choices.child[entry]
    for p in range(len(queries.detailed)):
        network.cost[p, entry] = queries.detailed[p] * np.int64(np.rint((1 - 2 * part) * SCALE))
    for level in range(len(queries.sizes)):
        answer = answers.start[level] + c * queries.sizes[level] + queries.nested[level, choices.cell[entry]]
        if answers.made[answer]:
            return int(network.node_of[answer])
        for p in range(len(queries.detailed)):
            slope = _slope(queries, p, level)
            network.cost[p, entry] += slope if answers.target[answer] <= 0 else -slope
    return 1 + int(group[c])


@compiled
def _climb(queries: Queries, group: Ints, answers: Answers, network: Network, arc: int) -> int:
    """Arcs from each answer to the coarser one it is part of, from number ``arc`` on; their end.

    One arc up to the target, where each unit brings the answer nearer, and one from there. An answer hangs by the
    first that has room.
    """
    for level in range(len(queries.sizes)):
        above = _coarser(queries, group, answers, network, level)
        weighed = queries.weight[:, level].any()
        for answer in range(answers.start[level], answers.start[level + 1]):
            node = network.node_of[answer]
            if node < 0:
                continue
            onto = above[answer - answers.start[level]]
            low = answers.low[answer]
            high = answers.high[answer]
            through = min(max(network.inflow[node], low), high)
            network.inflow[node] -= through
            network.inflow[onto] += through
            middle = min(max(answers.target[answer], low), high) if weighed else high
            for begin, end, sign in ((low, middle, -1), (middle, high, 1)):
                if begin == end:
                    continue
                network.tail[arc] = node
                network.head[arc] = onto
                network.capacity[arc] = end - begin
                network.flow[arc] = min(max(through - begin, 0), end - begin)
                for p in range(len(queries.detailed)):
                    network.cost[p, arc] = sign * _slope(queries, p, level)
                if through >= end:
                    network.state[arc] = -1
                elif network.parent[node] >= 0 or network.inflow[node] != 0:
                    network.state[arc] = 1
                else:
                    network.parent[node] = onto
                    network.link[node] = arc
                arc += 1
    return arc


@compiled
def _slope(queries: Queries, p: int, level: int) -> int:
    """What a unit of distance to the target costs in a pass."""
    slope: int = queries.weight[p, level] * (SCALE if queries.detailed[p] > 0 else 1)
    return slope


@compiled
def _coarser(queries: Queries, group: Ints, answers: Answers, network: Network, level: int) -> Ints:
    """The node above each answer of a level, child by child."""
    size = queries.sizes[level]
    out = np.zeros(len(group) * size, dtype=np.int64)
    for c in range(len(group)):
        for i in range(queries.nested.shape[1]):
            fine = c * size + queries.nested[level, i]
            if level + 1 == len(queries.sizes):
                out[fine] = 1 + group[c]
            else:
                coarse = c * queries.sizes[level + 1] + queries.nested[level + 1, i]
                out[fine] = network.node_of[answers.start[level + 1] + coarse]
    return out


@compiled
def _join_root(network: Network, arc: int) -> int:
    """Artificial arcs from number ``arc`` on to or from the nodes that no arc with room hangs; their end.

    They take the flow that is too much or too little for the bounds.
    """
    for node in range(1, len(network.parent)):
        if network.parent[node] >= 0:
            continue
        rest = network.inflow[node]
        network.tail[arc] = 0 if rest < 0 else node
        network.head[arc] = node if rest < 0 else 0
        network.flow[arc] = abs(rest)
        network.capacity[arc] = np.int64(1) << 60
        network.parent[node] = 0
        network.link[node] = arc
        arc += 1
    return arc


def round_on_network(
    fractions: Floats,
    need: Ints,
    passes: Sequence[Sequence[Labels | None]],
    limits: Sequence[Limit],
    joint: Sequence[Joint],
) -> Ints | None:
    """Round up or down by flows, where queries and limits are nested; None where they are not.

    Parameters and errors are those of `round_by_program`. The distances are the least lexicographically: those of a
    later pass are the least among all optima of the earlier ones.
    """
    children, cells = fractions.shape
    wanted = [labels for rows in passes for labels in rows if labels is not None]
    labels = np.empty((len(wanted) + len(limits), cells), dtype=np.int32)
    for row, query in enumerate(wanted):
        labels[row] = query
    for row, limit in enumerate(limits, len(wanted)):
        labels[row] = limit.labels
    level, nested, sizes = nest(labels)
    if len(level) and level[0] < 0:
        return None
    weight = np.zeros((max(len(passes), 1), len(sizes)), dtype=np.int64)
    detailed = np.zeros(len(weight), dtype=np.int64)
    row = 0
    for number, rows in enumerate(passes):
        for asked in rows:
            if asked is None:
                detailed[number] += 1
            else:
                weight[number, level[row]] += 1
                row += 1
    floor, ceiling = _bounds_by_level(limits, level[len(wanted) :], nested, sizes, children)
    group = np.full(children, -1, dtype=np.int64)
    for number, (members, _) in enumerate(joint):
        group[list(members)] = number
    up = np.empty((children, cells), dtype=np.int64)
    totals = np.array([total for _, total in joint], dtype=np.int64)
    if not flow_up(fractions, need, nested, sizes, weight, detailed, floor, ceiling, group, totals, up):
        raise cannot_round()
    return up


def _bounds_by_level(
    limits: Sequence[Limit], level: NDArray[np.int32], nested: NDArray[np.int32], sizes: Ints, children: int
) -> tuple[Ints, Ints]:
    """The limits as `flow_up` takes them."""
    if not limits:
        none = np.zeros(0, dtype=np.int64)
        return none, none
    starts = children * np.concatenate([[0], np.cumsum(sizes)])
    floor = np.full(starts[-1], -(1 << 60))
    ceiling = np.full(starts[-1], 1 << 60)
    for limit, at in zip(limits, level, strict=True):
        answer = np.full(limit.lower.shape[1], -1)
        answer[limit.labels] = nested[at]
        used = answer >= 0
        if (limit.lower[:, ~used] > 0).any() or (limit.upper[:, ~used] < 0).any():
            raise cannot_round()
        block = slice(starts[at], starts[at + 1])
        low, high = (bound[block].reshape(children, sizes[at]) for bound in (floor, ceiling))
        low[:, answer[used]] = np.maximum(low[:, answer[used]], limit.lower[:, used])
        high[:, answer[used]] = np.minimum(high[:, answer[used]], limit.upper[:, used])
    return floor, ceiling
