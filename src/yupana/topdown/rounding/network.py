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

from yupana.arrays import Flags, Floats, Indices, Ints
from yupana.compiled import compiled, compiled_part
from yupana.topdown.node.kernels import refines, renumber
from yupana.topdown.rounding.flow import Graph, improve
from yupana.topdown.rounding.program import TOLERANCE, Joint, Limit, cannot_round

SCALE = 1 << 30
"""Units of cost per person where a pass holds the detailed query."""

LIMIT = float(1 << 59)
"""Costs of paths stay below this, so that nothing overflows."""

HALF_UP = 0.5 + TOLERANCE
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
        Indices numbered without gaps, finest query first.
    sizes : ndarray of int64, shape (levels,)
    """
    queries, cells = labels.shape
    dense = np.empty((queries, cells), dtype=np.int32)
    size = np.empty(queries, dtype=np.int64)
    for q in range(queries):
        numbered, old = renumber(labels[q])
        for i in range(cells):  # to assign a slice would have the message of a fault compiled
            dense[q, i] = numbered[i]
        size[q] = len(old)
    level = np.empty(queries, dtype=np.int32)
    level[:] = 0
    nested = np.empty((queries, cells), dtype=np.int32)
    sizes = np.empty(queries, dtype=np.int64)
    levels = 0
    done = np.empty(queries, dtype=np.bool_)
    done[:] = False
    above = np.empty(cells, dtype=np.int32)
    for _ in range(queries):
        q = -1
        for other in range(queries):
            if not done[other] and (q < 0 or size[other] > size[q]):
                q = other
        done[q] = True
        if levels > 0 and not refines(nested[levels - 1], sizes[levels - 1], dense[q], above):
            level[0] = -1
            break
        if levels == 0 or size[q] < sizes[levels - 1]:
            for i in range(cells):
                nested[levels, i] = dense[q, i]
            sizes[levels] = size[q]
            levels += 1
        level[q] = levels - 1
    return level, nested[:levels], sizes[:levels]


class Queries(NamedTuple):
    """What the passes ask, level by level from fine to coarse, and the bounds."""

    nested: NDArray[np.int32]  # shape (levels, m)
    sizes: Ints  # shape (levels,)
    slope: Ints  # shape (passes, levels): what a unit of distance to the targets of a level costs
    detailed: Ints  # shape (passes,): how many detailed queries a pass holds
    # shape (levels,): where the bounds of a level start in `floor` and `ceiling`, child by child; -1 for a level
    # without
    bound_start: Ints
    floor: Ints  # shape (bounds,)
    ceiling: Ints  # shape (bounds,)


class Parts(NamedTuple):
    """The fractional counts, child by child."""

    child: Ints
    cell: Ints
    part: Floats
    way: NDArray[np.int8]  # 1 if it must go up, 0 if it must not, -1 if it may
    by_cell: Ints  # those that may, cell by cell: each is an arc
    first: Ints  # where the arcs of each cell start that has any, and the end
    need: Ints  # how many of them go up


class NodeAnswers(NamedTuple):
    """Answers that some fractional count counts in, level by level, child by child."""

    start: Ints  # where each level starts
    of: Ints  # by level and fractional count: the answer it counts in
    above: Ints  # the coarser answer it is part of; -1 on the last level
    child: Ints
    target: Ints  # how many with a choice should go up
    low: Ints  # how many must
    high: Ints  # how many may; one more than there are where that is not bounded
    made: NDArray[np.bool_]  # whether the network has a node for it


class Network(NamedTuple):
    """The network and its first tree; see `yupana.topdown.rounding.flow.improve`."""

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
def round_by_flow(estimate: Floats, parent: Ints, queries: Queries, group: Ints, group_sum: Ints, counts: Ints) -> bool:
    """Round the children of one parent.

    Parameters
    ----------
    estimate : ndarray of float64, shape (k, m)
    parent : ndarray of int64, shape (m,)
    group : ndarray of int64, shape (k,)
        The joint total each child counts in, or -1.
    group_sum : ndarray of int64, shape (joint totals,)
    counts : ndarray of int64, shape (k, m)
        Filled with the answer.

    Returns
    -------
    bool
        Whether it is possible.
    """
    possible, parts = _find_parts(estimate, parent, counts)
    if not possible:
        return False
    possible, answers = _sum_answers(parts, counts, queries)
    if not possible:
        return False
    network = _lay_out(parts, answers, group, group_sum, counts, len(queries.detailed))
    _send_cells(parts, queries, group, answers, network, len(group_sum))
    real = _climb(queries, group, answers, network, len(parts.by_cell))
    arcs = _join_root(network, real)
    if not _solve(network, real, arcs):
        return False
    for arc in range(len(parts.by_cell)):
        entry = parts.by_cell[arc]
        counts[parts.child[entry], parts.cell[entry]] += network.flow[arc]
    return True


@compiled_part
def _solve(network: Network, real: int, arcs: int) -> bool:
    """Minimise the costs of the passes in their order; whether the artificial arcs, from ``real`` on, end empty."""
    potential = np.empty(len(network.parent), dtype=np.int64)
    left = _join_passes(network, real)
    for p in range(len(left)):
        if not left[p]:
            continue
        cost = network.cost[p, :arcs]
        cost[real:] = _largest(cost, real) * len(potential)  # more than any path, for none passes a node twice
        graph = Graph(
            network.tail[:arcs], network.head[:arcs], network.capacity[:arcs], cost, network.flow, network.state
        )
        improve(graph, network.parent, network.link, potential)
        for arc in range(real, arcs):
            if network.flow[arc] != 0:
                return False
        for arc in range(arcs):
            if cost[arc] + potential[network.tail[arc]] - potential[network.head[arc]] != 0:
                network.state[arc] = 0
    return True


@compiled_part
def _join_passes(network: Network, real: int) -> Flags:
    """Add the costs of passes up as far as int64 allows; which passes are left to be solved.

    A flow is lexicographically optimal where no cycle of the residual network has lexicographically negative costs.
    No cycle passes a node twice, so that an earlier pass weighs enough if its unit is more than all nodes together
    can cost in the later ones.
    """
    nodes = len(network.parent)
    left = np.empty(len(network.cost), dtype=np.bool_)
    left[:] = True
    last = len(network.cost) - 1
    for p in range(last - 1, -1, -1):
        most = _largest(network.cost[last], real)
        weight = most * nodes + 1
        # Potentials reach twice what the artificial arcs cost, which is this times the nodes.
        if (float(_largest(network.cost[p], real)) * weight + most) * nodes < LIMIT:
            for arc in range(real):
                network.cost[last, arc] += weight * network.cost[p, arc]
            left[p] = False
        else:
            last = p
    return left


@compiled_part
def _largest(cost: Ints, arcs: int) -> int:
    """The largest absolute cost of the first arcs, at least 1."""
    largest = 1
    for arc in range(arcs):
        largest = max(largest, abs(cost[arc]))
    return largest


@compiled_part
def _find_parts(estimate: Floats, parent: Ints, counts: Ints) -> tuple[bool, Parts]:
    """The fractional counts, and in ``counts`` what has no choice."""
    children, cells = estimate.shape
    need, fractional = _take_floors(estimate, parent, counts)
    place = np.empty(cells, dtype=np.int64)
    first = np.empty(cells + 1, dtype=np.int64)
    first[0] = 0
    wanted = np.empty(cells, dtype=np.int64)
    arcs = 0
    senders = 0
    entries = 0
    possible = True
    for i in range(cells):
        place[i] = arcs
        entries += fractional[i]
        if need[i] < 0 or need[i] > fractional[i]:
            possible = False
        if 0 < need[i] < fractional[i]:
            wanted[senders] = need[i]
            arcs += fractional[i]
            senders += 1
            first[senders] = arcs
    child = np.empty(entries, dtype=np.int64)
    cell = np.empty(entries, dtype=np.int64)
    part = np.empty(entries)
    way = np.empty(entries, dtype=np.int8)
    way[:] = 0
    by_cell = np.empty(arcs, dtype=np.int64)
    entry = 0
    for c in range(children):
        for i in range(cells):
            rest = estimate[c, i] - counts[c, i]
            if rest <= TOLERANCE:
                continue
            child[entry] = c
            cell[entry] = i
            part[entry] = rest
            if need[i] == fractional[i]:
                counts[c, i] += 1
                way[entry] = 1
            elif need[i] > 0:
                way[entry] = -1
                by_cell[place[i]] = entry
                place[i] += 1
            entry += 1
    return possible, Parts(child, cell, part, way, by_cell, first[: senders + 1], wanted[:senders])


@compiled_part
def _take_floors(estimate: Floats, parent: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Fill ``counts`` with floors; by cell what is left of the parent, and how many children are above their floor."""
    children, cells = estimate.shape
    need = np.empty(cells, dtype=np.int64)
    for i in range(cells):
        need[i] = parent[i]
    fractional = np.empty(cells, dtype=np.int64)
    fractional[:] = 0
    for c in range(children):
        for i in range(cells):
            counts[c, i] = np.int64(np.floor(max(estimate[c, i], 0.0) + TOLERANCE))
            need[i] -= counts[c, i]
            fractional[i] += estimate[c, i] - counts[c, i] > TOLERANCE
    return need, fractional


@compiled_part
def _sum_answers(parts: Parts, counts: Ints, queries: Queries) -> tuple[bool, NodeAnswers]:
    """Targets and bounds of the answers, for what has a choice only.

    An answer with one choice costs what that choice costs, and needs no node, unless it is bounded or a finer answer
    has a node.
    """
    start, of, child = _number_answers(parts, queries)
    levels = len(queries.sizes)
    size = start[levels]
    above = np.empty(size, dtype=np.int64)
    above[:] = -1
    total = np.empty(size)
    total[:] = 0.0
    forced = np.empty(size, dtype=np.int64)
    forced[:] = 0
    many = np.empty(size, dtype=np.int64)
    many[:] = 0
    for level in range(levels):
        for entry in range(len(parts.child)):
            answer = of[level, entry]
            total[answer] += parts.part[entry]
            forced[answer] += parts.way[entry] > 0
            many[answer] += parts.way[entry] < 0
            if level + 1 < levels:
                above[answer] = of[level + 1, entry]
    target = np.empty(size, dtype=np.int64)
    low = np.empty(size, dtype=np.int64)
    high = np.empty(size, dtype=np.int64)
    for answer in range(size):
        target[answer] = np.int64(np.floor(total[answer] + HALF_UP)) - forced[answer]
        low[answer] = 0
        high[answer] = many[answer] + 1
    possible = True
    for level in range(levels):
        if queries.bound_start[level] >= 0:
            possible = possible and _bound(parts, counts, queries, level, of[level], low, high)
    made = np.empty(size, dtype=np.bool_)
    for answer in range(size):
        made[answer] = many[answer] > 1 or low[answer] > 0 or high[answer] <= many[answer]
    for answer in range(size):  # finer answers come first
        if made[answer] and above[answer] >= 0:
            made[above[answer]] = True
    return possible, NodeAnswers(start, of, above, child, target, low, high, made)


@compiled_part
def _number_answers(parts: Parts, queries: Queries) -> tuple[Ints, Ints, Ints]:
    """Number the answers that fractional counts count in: `start`, `of` and `child` of `NodeAnswers`."""
    levels = len(queries.sizes)
    entries = len(parts.child)
    start = np.empty(levels + 1, dtype=np.int64)
    start[0] = 0
    of = np.empty((levels, entries), dtype=np.int64)
    child = np.empty(levels * entries, dtype=np.int64)
    answers = 0
    for level in range(levels):
        last = np.empty(queries.sizes[level], dtype=np.int64)
        last[:] = -1
        number = np.empty(queries.sizes[level], dtype=np.int64)
        for entry in range(entries):
            label = queries.nested[level, parts.cell[entry]]
            if last[label] != parts.child[entry]:
                last[label] = parts.child[entry]
                number[label] = answers
                child[answers] = parts.child[entry]
                answers += 1
            of[level, entry] = number[label]
        start[level + 1] = answers
    return start, of, child[:answers]


@compiled_part
def _bound(parts: Parts, counts: Ints, queries: Queries, level: int, of: Ints, low: Ints, high: Ints) -> bool:
    """Put the bounds of a level into ``low`` and ``high``; whether they can be kept one by one."""
    children, cells = counts.shape
    size = queries.sizes[level]
    begin = queries.bound_start[level]
    least = np.empty(children * size, dtype=np.int64)
    most = np.empty(children * size, dtype=np.int64)
    many = np.empty(children * size, dtype=np.int64)
    for at in range(children * size):
        least[at] = queries.floor[begin + at]
        most[at] = queries.ceiling[begin + at]
        many[at] = 0
    for c in range(children):
        for i in range(cells):
            least[c * size + queries.nested[level, i]] -= counts[c, i]
            most[c * size + queries.nested[level, i]] -= counts[c, i]
    for entry in range(len(of)):
        many[parts.child[entry] * size + queries.nested[level, parts.cell[entry]]] += parts.way[entry] < 0
    for entry in range(len(of)):
        at = parts.child[entry] * size + queries.nested[level, parts.cell[entry]]
        low[of[entry]] = max(least[at], 0)
        if most[at] < many[at]:
            high[of[entry]] = most[at]
    possible = True
    for at in range(len(least)):
        possible = possible and max(least[at], 0) <= min(most[at], many[at])
    return possible


@compiled_part
def _lay_out(parts: Parts, answers: NodeAnswers, group: Ints, group_sum: Ints, counts: Ints, passes: int) -> Network:
    """An empty network with its nodes numbered: the root, joint totals, cells, answers."""
    nodes = len(group_sum) + len(parts.first)
    node_of = np.empty(len(answers.made), dtype=np.int64)
    node_of[:] = -1
    for answer in range(len(node_of)):
        if answers.made[answer]:
            node_of[answer] = nodes
            nodes += 1
    inflow = np.empty(nodes, dtype=np.int64)
    inflow[:] = 0
    for g in range(len(group_sum)):
        inflow[1 + g] = -group_sum[g]
    for c in range(len(group)):
        if group[c] >= 0:
            for i in range(counts.shape[1]):
                inflow[1 + group[c]] += counts[c, i]
    arcs = len(parts.by_cell) + 3 * nodes
    cost = np.empty((passes, arcs), dtype=np.int64)
    cost[:] = 0
    state = np.empty(arcs, dtype=np.int8)
    state[:] = 0
    ends = np.empty((4, arcs), dtype=np.int64)
    ends[3] = 0
    tree = np.empty((2, nodes), dtype=np.int64)
    tree[:] = -1
    return Network(ends[0], ends[1], ends[2], cost, ends[3], state, tree[0], tree[1], inflow, node_of)


@compiled_part
def _send_cells(
    parts: Parts, queries: Queries, group: Ints, answers: NodeAnswers, network: Network, joint: int
) -> None:
    """Arcs from the cells to the children. At first the largest fractional parts go up.

    A cell hangs in the tree by the largest part that does not go up.
    """
    _connect(parts, queries, group, answers, network)
    senders = len(parts.need)
    first_node = 1 + joint
    order = np.empty(len(group), dtype=np.int64)
    for sender in range(senders):
        node = first_node + sender
        need = parts.need[sender]
        first = parts.first[sender]
        many = parts.first[sender + 1] - first
        for at in range(many):
            arc = first + at
            part = parts.part[parts.by_cell[arc]]
            place = at
            while place > 0 and parts.part[parts.by_cell[order[place - 1]]] < part:
                order[place] = order[place - 1]
                place -= 1
            order[place] = arc
            network.tail[arc] = node
            network.capacity[arc] = 1
        for at in range(many):
            arc = order[at]
            if at < need:
                network.flow[arc] = 1
                network.state[arc] = -1
                network.inflow[network.head[arc]] += 1
            elif at > need:
                network.state[arc] = 1
        network.parent[node] = network.head[order[need]]
        network.link[node] = order[need]


@compiled_part
def _connect(parts: Parts, queries: Queries, group: Ints, answers: NodeAnswers, network: Network) -> None:
    """The head of each arc from a cell, the finest answer that has a node, and its cost, with the answers before."""
    for arc in range(len(parts.by_cell)):
        entry = parts.by_cell[arc]
        network.head[arc] = 1 + group[parts.child[entry]]
        for p in range(len(queries.detailed)):
            network.cost[p, arc] = queries.detailed[p] * np.int64(np.rint((1 - 2 * parts.part[entry]) * SCALE))
        for level in range(len(queries.sizes)):
            answer = answers.of[level, entry]
            if answers.made[answer]:
                network.head[arc] = network.node_of[answer]
                break
            for p in range(len(queries.detailed)):
                slope = queries.slope[p, level]
                network.cost[p, arc] += slope if answers.target[answer] <= 0 else -slope


@compiled_part
def _climb(queries: Queries, group: Ints, answers: NodeAnswers, network: Network, arc: int) -> int:
    """Arcs from each answer to the coarser one it is part of, from number ``arc`` on; their end.

    One arc up to the target, where each unit brings the answer nearer, and one from there. An answer hangs by the
    first that has room.
    """
    for level in range(len(queries.sizes)):
        weighed = False
        for p in range(len(queries.detailed)):
            weighed = weighed or queries.slope[p, level] != 0
        for answer in range(answers.start[level], answers.start[level + 1]):
            node = network.node_of[answer]
            if node < 0:
                continue
            above = answers.above[answer]
            onto = network.node_of[above] if above >= 0 else 1 + group[answers.child[answer]]
            low = answers.low[answer]
            high = answers.high[answer]
            through = min(max(network.inflow[node], low), high)
            network.inflow[node] -= through
            network.inflow[onto] += through
            middle = min(max(answers.target[answer], low), high) if weighed else high
            for side in range(2):
                begin = low if side == 0 else middle
                end = middle if side == 0 else high
                if begin == end:
                    continue
                network.tail[arc] = node
                network.head[arc] = onto
                network.capacity[arc] = end - begin
                network.flow[arc] = min(max(through - begin, 0), end - begin)
                for p in range(len(queries.detailed)):
                    network.cost[p, arc] = (2 * side - 1) * queries.slope[p, level]
                if through >= end:
                    network.state[arc] = -1
                elif network.parent[node] >= 0 or network.inflow[node] != 0:
                    network.state[arc] = 1
                else:
                    network.parent[node] = onto
                    network.link[node] = arc
                arc += 1
    return arc


@compiled_part
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
    estimate: Floats,
    parent: Ints,
    passes: Sequence[Sequence[Indices | None]],
    limits: Sequence[Limit],
    joint: Sequence[Joint],
) -> Ints | None:
    """Round where queries and limits are nested and joint totals share no child; None elsewhere.

    Parameters are those of `round_by_program`.

    Returns
    -------
    ndarray of int64, shape (k, m), or None
        The distances are the least lexicographically: those of a later pass are the least among all optima of the
        earlier ones.
    """
    children, cells = estimate.shape
    members = [child for together, _ in joint for child in together]
    if len(set(members)) < len(members):
        return None
    wanted = [labels for queries in passes for labels in queries if labels is not None]
    labels = np.empty((len(wanted) + len(limits), cells), dtype=np.int32)
    for row, query in enumerate(wanted):
        labels[row] = query
    for row, limit in enumerate(limits, len(wanted)):
        labels[row] = limit.labels
    level, nested, sizes = nest(labels)
    if len(level) and level[0] < 0:
        return None
    slope = np.zeros((max(len(passes), 1), len(sizes)), dtype=np.int64)
    detailed = np.zeros(len(slope), dtype=np.int64)
    row = 0
    for number, asked in enumerate(passes):
        detailed[number] = sum(labels is None for labels in asked)
        unit = SCALE if detailed[number] else 1
        for _ in range(len(asked) - detailed[number]):
            slope[number, level[row]] += unit
            row += 1
    bounds = _bounds_by_level(limits, level[len(wanted) :], nested, sizes, children)
    group = np.full(children, -1, dtype=np.int64)
    for number, (together, _) in enumerate(joint):
        group[list(together)] = number
    totals = np.array([total for _, total in joint], dtype=np.int64)
    counts = np.empty((children, cells), dtype=np.int64)
    # Arrays of one kind, or the kernel would be compiled for every kind anew.
    values = np.ascontiguousarray(estimate, dtype=np.float64)
    sums = np.ascontiguousarray(parent, dtype=np.int64)
    queries = Queries(nested, sizes, slope, detailed, *bounds)
    if not round_by_flow(values, sums, queries, group, totals, counts):
        raise cannot_round()
    return counts


def _bounds_by_level(
    limits: Sequence[Limit], level: NDArray[np.int32], nested: NDArray[np.int32], sizes: Ints, children: int
) -> tuple[Ints, Ints, Ints]:
    """The limits as `round_by_flow` takes them."""
    start = np.full(len(sizes), -1, dtype=np.int64)
    end = 0
    for at in sorted(set(level.tolist())):
        start[at] = end
        end += children * int(sizes[at])
    floor = np.full(end, -(1 << 60), dtype=np.int64)
    ceiling = np.full(end, 1 << 60, dtype=np.int64)
    for limit, at in zip(limits, level, strict=True):
        answer = np.full(limit.lower.shape[1], -1)
        answer[limit.labels] = nested[at]
        used = answer >= 0
        if (limit.lower[:, ~used] > 0).any() or (limit.upper[:, ~used] < 0).any():
            raise cannot_round()
        block = slice(start[at], start[at] + children * sizes[at])
        low, high = (bound[block].reshape(children, sizes[at]) for bound in (floor, ceiling))
        low[:, answer[used]] = np.maximum(low[:, answer[used]], limit.lower[:, used])
        high[:, answer[used]] = np.minimum(high[:, answer[used]], limit.upper[:, used])
    return start, floor, ceiling
