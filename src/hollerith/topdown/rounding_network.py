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

import numpy as np
from numpy.typing import NDArray

from hollerith.topdown.flow import compiled, improve
from hollerith.topdown.rounding_program import Joint, Limit, cannot_round

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Labels = NDArray[np.int32]

SCALE = 1 << 30
"""Units of cost per person where a pass holds the detailed query."""


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
        most = 0
        for i in range(cells):
            most = max(most, labels[q, i])
        number = np.full(most + 1, -1, dtype=np.int32)
        for i in range(cells):
            label = labels[q, i]
            if number[label] < 0:
                number[label] = size[q]
                size[q] += 1
            dense[q, i] = number[label]
    order = np.argsort(-size, kind="mergesort")
    level = np.zeros(queries, dtype=np.int32)
    nested = np.empty((queries, cells), dtype=np.int32)
    sizes = np.zeros(queries, dtype=np.int64)
    levels = 0
    for at in range(queries):
        q = order[at]
        if levels > 0:
            above = np.full(sizes[levels - 1], -1, dtype=np.int32)
            for i in range(cells):
                fine = nested[levels - 1, i]
                if above[fine] < 0:
                    above[fine] = dense[q, i]
                elif above[fine] != dense[q, i]:
                    level[0] = -1
                    return level, nested, sizes
            if size[q] == sizes[levels - 1]:
                level[q] = levels - 1
                continue
        nested[levels] = dense[q]
        sizes[levels] = size[q]
        level[q] = levels
        levels += 1
    return level, nested[:levels], sizes[:levels]


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
    children, cells = fraction.shape
    levels = len(sizes)
    passes = len(detailed)
    start = np.zeros(levels + 1, dtype=np.int64)
    for level in range(levels):
        start[level + 1] = start[level] + children * sizes[level]
    answers = start[levels]

    # What must go up or down, and what may.
    cell_choices = np.zeros(cells, dtype=np.int64)
    for c in range(children):
        for i in range(cells):
            if fraction[c, i] > 0:
                cell_choices[i] += 1
    entries = 0
    senders = 0
    for i in range(cells):
        if need[i] < 0 or need[i] > cell_choices[i]:
            return False
        if 0 < need[i] < cell_choices[i]:
            entries += cell_choices[i]
            senders += 1
    total = np.zeros(answers)  # of fractional parts
    forced = np.zeros(answers, dtype=np.int64)  # up without a choice
    choices = np.zeros(answers, dtype=np.int64)
    joint_rest = group_sum.copy()
    entry_child = np.empty(entries, dtype=np.int64)
    entry_cell = np.empty(entries, dtype=np.int64)
    first_entry = np.empty(senders + 1, dtype=np.int64)
    entry = 0
    sender = 0
    for i in range(cells):
        chosen = 0 < need[i] < cell_choices[i]
        if chosen:
            first_entry[sender] = entry
            sender += 1
        for c in range(children):
            up[c, i] = 0
            part = fraction[c, i]
            if part <= 0:
                continue
            if chosen:
                entry_child[entry] = c
                entry_cell[entry] = i
                entry += 1
            elif need[i] > 0:
                up[c, i] = 1
                if group[c] >= 0:
                    joint_rest[group[c]] -= 1
            for level in range(levels):
                answer = start[level] + c * sizes[level] + nested[level, i]
                total[answer] += part
                choices[answer] += chosen
                forced[answer] += up[c, i]
    first_entry[senders] = entries

    # Targets and bounds of what is chosen.
    bounded = len(floor) > 0
    target = np.empty(answers, dtype=np.int64)
    low = np.zeros(answers, dtype=np.int64)
    high = np.empty(answers, dtype=np.int64)
    made = np.zeros(answers, dtype=np.bool_)
    for answer in range(answers):
        target[answer] = np.int64(np.floor(total[answer] + (0.5 + 1e-6))) - forced[answer]
        high[answer] = choices[answer] + 1  # one more than ever flows, so that such an arc is never full
        made[answer] = choices[answer] > 1
        if bounded:
            low[answer] = max(floor[answer] - forced[answer], 0)
            limit = ceiling[answer] - forced[answer]
            if low[answer] > limit or low[answer] > choices[answer]:
                return False
            if limit < choices[answer]:
                high[answer] = limit
            if low[answer] > 0 or limit < choices[answer]:
                made[answer] = True

    # Nodes: the root, joint totals, cells, and answers. An answer with one choice costs what that choice costs, and
    # needs no node, unless it is bounded or a finer one has a node.
    for entry in range(entries):
        c = entry_child[entry]
        i = entry_cell[entry]
        below = False
        for level in range(levels):
            answer = start[level] + c * sizes[level] + nested[level, i]
            if below:
                made[answer] = True
            below = made[answer]
    joints = len(group_sum)
    nodes = 1 + joints + senders
    node_of = np.full(answers, -1, dtype=np.int64)
    arcs = entries
    for answer in range(answers):
        if made[answer]:
            node_of[answer] = nodes
            nodes += 1
            arcs += 2
    arcs += nodes  # at most one artificial arc each

    tail = np.empty(arcs, dtype=np.int64)
    head = np.empty(arcs, dtype=np.int64)
    capacity = np.empty(arcs, dtype=np.int64)
    flow = np.zeros(arcs, dtype=np.int64)
    state = np.zeros(arcs, dtype=np.int8)
    cost = np.zeros((passes, arcs), dtype=np.int64)
    parent = np.full(nodes, -1, dtype=np.int64)
    link = np.full(nodes, -1, dtype=np.int64)
    inflow = np.zeros(nodes, dtype=np.int64)
    scale = np.ones(passes, dtype=np.int64)
    for p in range(passes):
        if detailed[p] > 0:
            scale[p] = SCALE

    # Arcs from cells to children; at first the largest fractional parts go up.
    order = np.empty(children, dtype=np.int64)
    for sender in range(senders):
        cell_node = 1 + joints + sender
        first = first_entry[sender]
        many = first_entry[sender + 1] - first
        i = entry_cell[first]
        for at in range(many):
            entry = first + at
            c = entry_child[entry]
            part = fraction[c, i]
            place = at
            while place > 0 and fraction[entry_child[order[place - 1]], i] < part:
                order[place] = order[place - 1]
                place -= 1
            order[place] = entry
            onto = 1 + group[c]
            tail[entry] = cell_node
            capacity[entry] = 1
            for p in range(passes):
                cost[p, entry] = detailed[p] * np.int64(np.rint((1 - 2 * part) * SCALE))
            for level in range(levels):
                answer = start[level] + c * sizes[level] + nested[level, i]
                if made[answer]:
                    onto = node_of[answer]
                    break
                for p in range(passes):
                    cost[p, entry] += weight[p, level] * scale[p] * (1 if target[answer] <= 0 else -1)
            head[entry] = onto
        for at in range(many):
            entry = order[at]
            if at < need[i]:
                flow[entry] = 1
                state[entry] = -1
                inflow[head[entry]] += 1
            else:
                state[entry] = 1
        parent[cell_node] = head[order[need[i]]]
        link[cell_node] = order[need[i]]
        state[order[need[i]]] = 0

    # Arcs up the trees. A node hangs by an arc that is not full, or else by an artificial one to the root.
    arc = entries
    above = np.empty(answers, dtype=np.int64)
    for i in range(cells):
        for level in range(levels - 1):
            for c in range(children):
                fine = start[level] + c * sizes[level] + nested[level, i]
                above[fine] = start[level + 1] + c * sizes[level + 1] + nested[level + 1, i]
    for level in range(levels):
        for c in range(children):
            for answer in range(start[level] + c * sizes[level], start[level] + (c + 1) * sizes[level]):
                if not made[answer]:
                    continue
                node = node_of[answer]
                onto = node_of[above[answer]] if level + 1 < levels else 1 + group[c]
                through = min(max(inflow[node], low[answer]), high[answer])
                break_at = high[answer]
                for p in range(passes):
                    if weight[p, level] > 0:
                        break_at = min(max(target[answer], low[answer]), high[answer])
                inflow[onto] += through
                hung = False
                for piece in range(2):
                    begin = low[answer] if piece == 0 else break_at
                    room = (break_at if piece == 0 else high[answer]) - begin
                    if room <= 0:
                        continue
                    tail[arc] = node
                    head[arc] = onto
                    capacity[arc] = room
                    flow[arc] = min(max(through - begin, 0), room)
                    for p in range(passes):
                        slope = weight[p, level] * scale[p]
                        cost[p, arc] = -slope if begin < target[answer] else slope
                    if flow[arc] == room:
                        state[arc] = -1
                    elif hung or through != inflow[node]:
                        state[arc] = 1
                    else:
                        hung = True
                        parent[node] = onto
                        link[node] = arc
                    arc += 1
                inflow[node] -= through
    artificial = arc
    for node in range(1, nodes):
        if 1 <= node <= joints:
            inflow[node] -= joint_rest[node - 1]
        if parent[node] >= 0:
            continue
        tail[arc] = 0 if inflow[node] < 0 else node
        head[arc] = node if inflow[node] < 0 else 0
        flow[arc] = abs(inflow[node])
        capacity[arc] = entries + abs(inflow[node]) + 1
        parent[node] = 0
        link[node] = arc
        arc += 1

    # No path passes a node twice, so that an artificial arc that costs this much costs more than any path.
    potential = np.empty(nodes, dtype=np.int64)
    for p in range(passes):
        largest = np.int64(1)
        for at in range(artificial):
            largest = max(largest, abs(cost[p, at]))
        for at in range(artificial, arc):
            cost[p, at] = largest * (nodes + 1)
        improve(tail[:arc], head[:arc], capacity[:arc], cost[p, :arc], flow[:arc], state[:arc], parent, link, potential)
        for at in range(artificial, arc):
            if flow[at] > 0:
                return False
        for at in range(arc):
            if cost[p, at] + potential[tail[at]] - potential[head[at]] != 0:
                state[at] = 0
    for entry in range(entries):
        up[entry_child[entry], entry_cell[entry]] = flow[entry]
    return True


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
    queries = [labels for rows in passes for labels in rows if labels is not None]
    labels = np.empty((len(queries) + len(limits), cells), dtype=np.int32)
    for row, query in enumerate(queries):
        labels[row] = query
    for row, limit in enumerate(limits, len(queries)):
        labels[row] = limit.labels
    level, nested, sizes = nest(labels)
    if len(level) and level[0] < 0:
        return None
    weight = np.zeros((max(len(passes), 1), len(sizes)), dtype=np.int64)
    detailed = np.zeros(len(weight), dtype=np.int64)
    row = 0
    for number, rows in enumerate(passes):
        for query in rows:
            if query is None:
                detailed[number] += 1
            else:
                weight[number, level[row]] += 1
                row += 1
    floor, ceiling = _bounds_by_level(limits, level[len(queries) :], nested, sizes, children)
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
