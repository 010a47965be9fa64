"""A chain over the people of one parent: each holds a cell and has a block, and moves between blocks one at a time.

With labelled people the multinomial coefficients cancel, and a move costs the same however many cells a schema has. The
intensity of a block's number of people is integrated out (`_worth`). The model is told in docs/topdown-posterior.md.
"""

from math import exp, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats, Ints
from yupana.compiled import compiled, compiled_part, compiled_step

TABLE = 128
"""Numbers of people of a row whose prior is remembered; a power of two."""

_NEGLIGIBLE = 30.0
"""Intervals of intensity so far below the likeliest one, in the logarithm, are left out."""


class ChildrenAsked(NamedTuple):
    """What is asked of the children, and by what they are bound.

    A row is a child with one kind of people: households, or group quarters of one type; all people where a schema
    does not bound them.
    """

    # kind, group: shape (m,): the kind of people and the group, within it, that each live cell belongs to
    kind: Ints
    group: Ints
    place: Ints  # shape (m, queries): where in `residual` the answer stands that each cell counts in
    weights: Floats  # shape (k, queries)
    lower: Ints  # shape (k, kinds)
    upper: Ints  # shape (k, kinds)
    # shape (k,): children of one number have a total that is known together; people move within them only
    together: Ints
    doors: Ints  # shape (kinds, k): the children that may hold people of a kind, then whatever
    opened: Ints  # shape (kinds,): how many those are
    position: Ints  # shape (kinds, k): where each child stands in `doors`


class Believed(NamedTuple):
    """The prior of the children of one parent."""

    # theta, log_theta: shape (intervals,): midpoints of the intervals of an intensity over its base
    theta: Floats
    log_theta: Floats
    density: Floats  # shape (classes, intervals): weight of each interval; positive
    base: Floats  # shape (k, kinds): people expected in a row where the intensity is 1
    klass: Ints  # shape (k, kinds): the class of each row
    # of_group, of_cell: shapes (groups,) and (m,): shares of the parent's people of a kind in each group, times
    # `between`; of a group's people in each cell, times `within`
    of_group: Floats
    of_cell: Floats
    # between, within: concentrations of the groups within a row, and of the cells within a group
    between: float
    within: float


class _Walk(NamedTuple):
    """Where a chain stands."""

    counts: Floats  # shape (k, m)
    groups: Floats  # shape (k, groups)
    people: Ints  # shape (k, kinds)
    residual: Floats  # shape (k, answers): answers of the counts less noisy ones
    # shape (k, kinds): prior factors of one person more, and of the last one there
    gain: Floats
    loss: Floats
    known: NDArray[np.int32]  # shape (k, kinds, TABLE): for which number of people `table` was filled, or -1
    table: Floats  # shape (k, kinds, TABLE)


@compiled_part
def _span(log_theta: Floats, theta: Floats, base: float, people: int) -> tuple[int, int, float]:
    """The intervals of intensity that so many people leave likely, and the log likelihood of the likeliest of them."""
    intervals = len(theta)
    best = 0
    if people > 0:
        best = int((log(people / base) - log_theta[0]) / (log_theta[1] - log_theta[0]) + 0.5)
        best = min(max(best, 0), intervals - 1)
    highest = people * log_theta[best] - base * theta[best]
    first, last = best, best + 1
    while first > 0 and people * log_theta[first - 1] - base * theta[first - 1] > highest - _NEGLIGIBLE:
        first -= 1
    while last < intervals and people * log_theta[last] - base * theta[last] > highest - _NEGLIGIBLE:
        last += 1
    return first, last, highest


@compiled_part
def _expected(log_theta: Floats, theta: Floats, density: Floats, base: float, people: int) -> float:
    """The intensity expected of a row that holds so many people."""
    first, last, highest = _span(log_theta, theta, base, people)
    below, above = 0.0, 0.0
    for i in range(first, last):
        part = density[i] * exp(people * log_theta[i] - base * theta[i] - highest)
        below += part
        above += part * theta[i]
    return base * above / below


@compiled_part
def _fill(known: NDArray[np.int32], table: Floats, believed: Believed, child: int, kind: int, people: int) -> float:
    """Remember the prior factor of one person more in a row that holds so many."""
    density, base = believed.density[believed.klass[child, kind]], believed.base[child, kind]
    found = _expected(believed.log_theta, believed.theta, density, base, people) / (people + believed.between)
    known[child, kind, people & (TABLE - 1)] = people
    table[child, kind, people & (TABLE - 1)] = found
    return float(found)


@compiled_step
def _energy(residual: Floats, weights: Floats, place: Ints, cell: int, source: int, target: int) -> float:
    """By how much half the weighted squares grow when a person of a cell moves."""
    energy = 0.0
    for q in range(place.shape[1]):
        at = place[cell, q]
        energy += weights[source, q] * (0.5 - residual[source, at]) + weights[target, q] * (0.5 + residual[target, at])
    return energy


@compiled_part
def _worth(walk: _Walk, believed: Believed, child: int, kind: int, people: int) -> float:
    """The prior factor of one person more in a row that holds so many."""
    slot = people & (TABLE - 1)
    if walk.known[child, kind, slot] == people:
        return float(walk.table[child, kind, slot])
    return float(_fill(walk.known, walk.table, believed, child, kind, people))


@compiled_part
def _ratio(walk: _Walk, asked: ChildrenAsked, believed: Believed, cell: int, source: int, target: int) -> float:
    """How much likelier the children become when a person of a cell moves."""
    energy = _energy(walk.residual, asked.weights, asked.place, cell, source, target)
    kind, group = asked.kind[cell], asked.group[cell]
    here, there = walk.groups[source, group] - 1.0, walk.groups[target, group]
    of_group, of_cell = believed.of_group[group], believed.of_cell[cell]
    above = walk.gain[target, kind] * (there + of_group) * (walk.counts[target, cell] + of_cell)
    below = walk.loss[source, kind] * (here + of_group) * (walk.counts[source, cell] - 1.0 + of_cell)
    return float(above * (here + believed.within) / (below * (there + believed.within)) * exp(-energy))


@compiled_part
def _move(walk: _Walk, asked: ChildrenAsked, believed: Believed, cell: int, source: int, target: int) -> None:
    """Move a person of a cell."""
    kind, group = asked.kind[cell], asked.group[cell]
    walk.counts[source, cell] -= 1.0
    walk.counts[target, cell] += 1.0
    walk.groups[source, group] -= 1.0
    walk.groups[target, group] += 1.0
    for q in range(asked.place.shape[1]):
        at = asked.place[cell, q]
        walk.residual[source, at] -= 1.0
        walk.residual[target, at] += 1.0
    fewer, more = walk.people[source, kind] - 1, walk.people[target, kind] + 1
    walk.people[source, kind], walk.people[target, kind] = fewer, more
    walk.gain[source, kind] = walk.loss[source, kind]
    walk.loss[target, kind] = walk.gain[target, kind]
    walk.gain[target, kind] = _worth(walk, believed, target, kind, more)
    if fewer > 0:
        walk.loss[source, kind] = _worth(walk, believed, source, kind, fewer - 1)


@compiled_part
def _within(asked: ChildrenAsked, walk: _Walk, child: int, kind: int) -> bool:
    people = walk.people[child, kind]
    return bool(asked.lower[child, kind] <= people <= asked.upper[child, kind])


@compiled_part
def _swap(
    walk: _Walk,
    asked: ChildrenAsked,
    believed: Believed,
    cells: tuple[int, int],
    places: tuple[int, int],
    chance: float,
) -> bool:
    """Let two people change places, if chance has it."""
    (one, other), (here, there) = cells, places
    kind, second = asked.kind[one], asked.kind[other]
    if asked.position[kind, there] >= asked.opened[kind] or asked.position[second, here] >= asked.opened[second]:
        return False
    ratio = _ratio(walk, asked, believed, one, here, there)
    _move(walk, asked, believed, one, here, there)
    ratio *= _ratio(walk, asked, believed, other, there, here)
    _move(walk, asked, believed, other, there, here)
    fits = kind == second or (
        _within(asked, walk, here, kind)
        and _within(asked, walk, there, kind)
        and _within(asked, walk, here, second)
        and _within(asked, walk, there, second)
    )
    if fits and chance < ratio:
        return True
    _move(walk, asked, believed, other, here, there)
    _move(walk, asked, believed, one, there, here)
    return False


@compiled_part
def _placed(start: Ints, random: np.random.Generator) -> tuple[Ints, Ints]:
    """Where everybody is, and the cell of each, in random order.

    In the order of their blocks a sweep would empty one after the other, and be far off for hundreds of sweeps.
    """
    number = start.sum()
    place, cell = np.empty(number, np.int64), np.empty(number, np.int64)
    i = 0
    for b in range(start.shape[0]):
        for c in range(start.shape[1]):
            for _ in range(start[b, c]):
                j = int(random.random() * (i + 1))
                place[i], cell[i] = place[j], cell[j]
                place[j], cell[j] = b, c
                i += 1
    return place, cell


@compiled_part
def _begin(start: Ints, asked: ChildrenAsked, believed: Believed, residual: Floats) -> _Walk:
    children, kinds = asked.lower.shape
    groups = np.zeros((children, len(believed.of_group)))
    people = np.zeros((children, kinds), np.int64)
    for b in range(children):
        for c in range(start.shape[1]):
            groups[b, asked.group[c]] += start[b, c]
            people[b, asked.kind[c]] += start[b, c]
    gain, loss = np.zeros((children, kinds)), np.zeros((children, kinds))
    known = np.full((children, kinds, TABLE), np.int32(-1))
    walk = _Walk(
        start.astype(np.float64), groups, people, residual, gain, loss, known, np.zeros((children, kinds, TABLE))
    )
    for b in range(children):
        for k in range(kinds):
            if asked.position[k, b] < asked.opened[k]:
                gain[b, k] = _worth(walk, believed, b, k, people[b, k])
                loss[b, k] = _worth(walk, believed, b, k, max(people[b, k] - 1, 0))
    return walk


@compiled_part
def _held(walk: _Walk, asked: ChildrenAsked, believed: Believed, held: Floats) -> None:
    """Add, for every row, the chance of each interval of intensity given its people."""
    for k in range(asked.lower.shape[1]):
        if asked.opened[k] == 0:
            continue
        for j in range(asked.opened[k]):
            b = asked.doors[k, j]
            people, row = walk.people[b, k], believed.klass[b, k]
            first, last, highest = _span(believed.log_theta, believed.theta, believed.base[b, k], people)
            part = np.empty(last - first)
            for i in range(first, last):
                likely = people * believed.log_theta[i] - believed.base[b, k] * believed.theta[i] - highest
                part[i - first] = believed.density[row, i] * exp(likely)
            whole = part.sum()
            for i in range(first, last):
                held[row, i] += part[i - first] / whole


@compiled_part
def _sweep(
    place: Ints, cells: Ints, walk: _Walk, asked: ChildrenAsked, believed: Believed, random: np.random.Generator
) -> int:
    """Ask everybody once to move to another child; returns how many did.

    Every array is a variable of its own, as taking them out of tuples in the loop costs ten times as much.
    """
    counts, groups, people, residual, gain, loss, known, table = walk
    cell_kind, cell_group, cell_place, weights, lower, upper, together, doors, opened, position = asked
    _, _, _, _, _, of_group, of_cell, _, within = believed
    made = 0
    for i in range(len(place)):
        c, b = cells[i], place[i]
        kind, group = cell_kind[c], cell_group[c]
        others = opened[kind] - 1
        if others < 1:
            continue
        # One number says where to and, by what is left of it, whether.
        drawn = random.random() * others
        at = min(int(drawn), others - 1)
        chance = drawn - at
        if at >= position[kind, b]:
            at += 1
        d = doors[kind, at]
        if together[b] != together[d] or people[b, kind] <= lower[b, kind] or people[d, kind] >= upper[d, kind]:
            continue
        energy = _energy(residual, weights, cell_place, c, b, d)
        here, there = groups[b, group] - 1.0, groups[d, group]
        above = gain[d, kind] * (there + of_group[group]) * (counts[d, c] + of_cell[c]) * (here + within)
        below = loss[b, kind] * (here + of_group[group]) * (counts[b, c] - 1.0 + of_cell[c]) * (there + within)
        if chance * below >= above * exp(-energy):
            continue
        made += 1
        place[i] = d
        counts[b, c] -= 1.0
        counts[d, c] += 1.0
        groups[b, group] -= 1.0
        groups[d, group] += 1.0
        for q in range(cell_place.shape[1]):
            at = cell_place[c, q]
            residual[b, at] -= 1.0
            residual[d, at] += 1.0
        fewer, more = people[b, kind] - 1, people[d, kind] + 1
        people[b, kind], people[d, kind] = fewer, more
        gain[b, kind], loss[d, kind] = loss[b, kind], gain[d, kind]
        slot = more & (TABLE - 1)
        gain[d, kind] = table[d, kind, slot]
        if known[d, kind, slot] != more:
            gain[d, kind] = _fill(known, table, believed, d, kind, more)
        if fewer > 0:
            slot = (fewer - 1) & (TABLE - 1)
            loss[b, kind] = table[b, kind, slot]
            if known[b, kind, slot] != fewer - 1:
                loss[b, kind] = _fill(known, table, believed, b, kind, fewer - 1)
    return made


@compiled_part
def _exchange(
    place: Ints,
    cells: Ints,
    walk: _Walk,
    asked: ChildrenAsked,
    believed: Believed,
    swaps: int,
    random: np.random.Generator,
) -> int:
    """Propose to one person in so many to change places with anybody; returns how many did."""
    number, made = len(place), 0
    for _ in range(number // swaps + 1):
        i, j = int(random.random() * number), int(random.random() * number)
        b, d = place[i], place[j]
        if b == d or cells[i] == cells[j]:
            continue
        if _swap(walk, asked, believed, (cells[i], cells[j]), (b, d), random.random()):
            place[i], place[j] = d, b
            made += 1
    return made


@compiled_part
def _note(place: Ints, cells: Ints, walk: _Walk, sums: Ints, totals: NDArray[np.int32]) -> None:
    """Add a draw to the sums, and note its totals."""
    for i in range(len(place)):
        sums[place[i], cells[i]] += 1
    for b in range(len(totals)):
        for k in range(walk.people.shape[1]):
            totals[b] += walk.people[b, k]


@compiled
def wander(
    start: Ints,
    asked: ChildrenAsked,
    believed: Believed,
    residual: Floats,
    swaps: int,
    sweeps: tuple[int, int],
    learning: bool,  # noqa: FBT001 (compiled functions take no names)
    random: np.random.Generator,
) -> tuple[Ints, NDArray[np.int32], Floats, Ints]:
    """Draw the children of one parent again and again.

    Parameters
    ----------
    start : ndarray of int64, shape (k, m)
        Counts that meet every bound; overwritten by the last draw.
    residual : ndarray of float64, shape (k, answers)
        Answers of `start` less noisy ones; overwritten.
    swaps : int
        0: nobody changes places with another. 1: that is all that happens, as all totals are known. n: in each sweep
        one person in so many is asked to, after everybody was asked to move.
    sweeps : tuple of (int, int)
        How many are left out, and how many count.
    learning : bool
        Whether it is told which intensities the rows have.
    random : numpy.random.Generator

    Returns
    -------
    tuple
        Sums of the draws that count, of shape (k, m); the total of each child in each of them, (sweeps, k); by class
        and interval, how many rows were there in all, (classes, intervals); how many moves were made, and how many
        people asked, (2,).
    """
    place, cells = _placed(start, random)
    walk = _begin(start, asked, believed, residual)
    burn, keep = sweeps
    sums = np.zeros(start.shape, np.int64)
    totals = np.zeros((keep, len(start)), np.int32)
    held = np.zeros(believed.density.shape)
    made = 0
    for sweep in range(burn + keep):
        if swaps != 1:
            made += _sweep(place, cells, walk, asked, believed, random)
        if swaps > 0:
            made += _exchange(place, cells, walk, asked, believed, swaps, random)
        if sweep >= burn:
            _note(place, cells, walk, sums, totals[sweep - burn])
            if learning:
                _held(walk, asked, believed, held)
    for b in range(len(start)):
        for c in range(start.shape[1]):
            start[b, c] = int(walk.counts[b, c])
    return sums, totals, held, np.array([made, (burn + keep) * len(place)])
