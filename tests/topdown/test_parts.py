"""The small parts of TopDown against dictionaries and enumeration: histograms, live answers, bounds, feasibility."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yupana.geography.tree import Tree
from yupana.topdown.constraints import UNKNOWN, Joint, Limits, facility_limits, impossible, limits_by_level
from yupana.topdown.descent.divide import collapse
from yupana.topdown.descent.measurements import SiblingBatch, ask, exact_answers
from yupana.topdown.histogram import Histogram, count_entries
from yupana.topdown.node.problem import Constraint, Node
from yupana.topdown.node.solve import solve
from yupana.topdown.queries import Query, margin

CELLS = 6
ENTRIES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, CELLS - 1), st.integers(0, 9)), max_size=30)


def histogram(entries: list[tuple[int, int, int]], units: int = 5) -> tuple[Histogram, dict[tuple[int, int], int]]:
    unit, cell, count = (np.array([e[i] for e in entries], dtype=np.int64) for i in range(3))
    plain: dict[tuple[int, int], int] = {}
    for u, c, n in entries:
        plain[u, c] = plain.get((u, c), 0) + n
    return count_entries(unit, cell, count, units), {key: n for key, n in plain.items() if n}


@given(ENTRIES, st.lists(st.integers(-1, 2), min_size=5, max_size=5))
@pytest.mark.slow
def test_histograms_add_up_like_dictionaries(entries: list[tuple[int, int, int]], parents: list[int]) -> None:
    counts, plain = histogram(entries)
    assert {
        (int(u), int(c)): int(n) for u, c, n in zip(counts.owners(), counts.cells, counts.counts, strict=True)
    } == plain
    assert counts.totals().tolist() == [sum(n for (u, _), n in plain.items() if u == unit) for unit in range(5)]
    dense = counts.dense(1, 4, CELLS)
    assert dense.tolist() == [[plain.get((u, c), 0) for c in range(CELLS)] for u in (1, 2, 3)]
    above = counts.sum_to(np.array(parents), 3)
    sums: dict[tuple[int, int], int] = {}
    for (u, c), n in plain.items():
        if parents[u] >= 0:
            sums[parents[u], c] = sums.get((parents[u], c), 0) + n
    assert {(int(u), int(c)): int(n) for u, c, n in zip(above.owners(), above.cells, above.counts, strict=True)} == sums


@given(ENTRIES, st.lists(st.sets(st.integers(0, CELLS - 1)), min_size=2, max_size=2), st.integers(0, 5))
@settings(deadline=None)
@pytest.mark.slow
def test_only_answers_that_live_cells_reach_are_asked_and_summed(
    entries: list[tuple[int, int, int]], live: list[set[int]], split: int
) -> None:
    counts, plain = histogram(entries)
    shape = (2, 3)
    query = [margin("", shape, kept) for kept in product((0, 1), repeat=2)][split % 4]
    label = query.answers()
    cells = np.array([c for part in live for c in sorted(part)], dtype=np.int32)
    families = SiblingBatch(np.array([0, split, 5]), np.array([0, len(live[0]), len(cells)]), cells)
    asked = ask(families, label, query.size)
    places = asked.places(families.children)
    values = exact_answers(
        counts.starts,
        counts.cells,
        counts.counts,
        families.children,
        label,
        asked.starts,
        asked.answers,
        query.size,
    )
    for parent, (first, last) in enumerate(((0, split), (split, 5))):
        answers = asked.answers[asked.starts[parent] : asked.starts[parent + 1]].tolist()
        assert sorted(answers) == sorted({int(label[c]) for c in live[parent]})
        mine = asked.local[families.starts[parent] : families.starts[parent + 1]]
        assert [answers[i] for i in mine] == [int(label[c]) for c in sorted(live[parent])]
        found = values[places[parent] : places[parent + 1]].reshape(last - first, len(answers))
        for row, unit in enumerate(range(first, last)):
            for column, answer in enumerate(answers):
                assert found[row, column] == sum(n for (u, c), n in plain.items() if u == unit and label[c] == answer)


BOUNDS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=4, max_size=4)


@given(
    BOUNDS,
    st.tuples(st.integers(0, 5), st.integers(0, 5)),
    st.sampled_from(["none", "each", "joint"]),
    st.integers(0, 5),
)
@settings(max_examples=300, deadline=None)
@pytest.mark.thorough
def test_feasibility_is_that_of_enumeration(
    bounds: list[tuple[int, int]], groups: tuple[int, int], known: str, first: int
) -> None:
    lower = np.array([low for low, _ in bounds]).reshape(2, 2)
    upper = lower + np.array([more for _, more in bounds]).reshape(2, 2)
    total = sum(groups)
    totals = np.array([first, total - first]) if known == "each" else None
    joint = (Joint((0, 1), total),) if known == "joint" else ()
    ranges = [range(int(low), int(high) + 1) for low, high in zip(lower.ravel(), upper.ravel(), strict=True)]
    exists = any(
        (a + c, b + d) == groups and (totals is None or (a + b, c + d) == tuple(totals))
        for a, b, c, d in product(*ranges)
    )
    assert impossible(np.array(groups), slice(0, 2), Limits(lower, upper), totals, joint) == (not exists)


def test_without_bounds_totals_decide() -> None:
    groups = np.array([7])
    assert not impossible(groups, slice(1, 3), None, np.array([9, 3, 4]), ())
    assert impossible(groups, slice(1, 3), None, np.array([9, 3, 5]), ())
    assert not impossible(groups, slice(1, 3), None, None, (Joint((1,), 7),))
    assert impossible(groups, slice(1, 3), None, None, (Joint((1,), 8),))


def test_bounds_add_up_and_known_totals_tighten_them() -> None:
    tree = Tree(("Tract", "Block"), (np.zeros(1, dtype=np.int32), np.zeros(2, dtype=np.int32)))
    facilities = np.array([[3, 1, 0], [0, 0, 2]])
    blocks = facility_limits(facilities)
    assert blocks.lower.tolist() == [[0, 1, 0], [0, 0, 2]]
    assert blocks.upper.tolist() == [[299997, 99999, 0], [0, 0, 199998]]
    tract, below = limits_by_level(tree, blocks, {1: np.array([10, UNKNOWN])}, {})
    # Ten people: nine at most in housing units, as one is in group quarters; all at most in those.
    assert below.lower.tolist() == [[0, 1, 0], [0, 0, 2]]
    assert below.upper.tolist() == [[9, 10, 0], [0, 0, 199998]]
    assert tract.lower.tolist() == [[0, 1, 2]]
    assert tract.upper.tolist() == [[9, 10, 199998]]
    # In the second block everybody is in group quarters of type 2, whatever their number.
    assert limits_by_level(tree, blocks, {1: np.array([UNKNOWN, 6])}, {})[1].lower.tolist() == [[0, 1, 0], [0, 0, 6]]


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_a_pass_on_coarser_cells_has_the_same_answers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = (2, 2, 3)
    queries: list[Query] = [margin("", shape, (1, 0, 0)), margin("", shape, (1, 1, 0))]
    labels = tuple(query.answers() for query in queries)
    parent = rng.integers(1, 20, 12).astype(np.float64)
    answers = tuple(rng.normal(8, 5, (3, query.size)) for query in queries)
    held = (Constraint.near(np.zeros(12, dtype=np.int32), np.full((3, 1), parent.sum() / 3)),)
    node = Node(parent, labels, answers, np.array([[1.0, 0.5]] * 3), held)
    coarse, cell = collapse(node)
    assert coarse.live == 4
    assert coarse.parent.sum() == parent.sum()
    whole, part = solve(node), solve(coarse)
    assert part.objective == pytest.approx(whole.objective, rel=1e-7, abs=1e-7)
    spread = part.counts[:, cell] * (parent / coarse.parent[cell])
    assert spread.sum(axis=0) == pytest.approx(parent)
