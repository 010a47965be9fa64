"""However a geolevel is cut into batches, each parent is posed with the same children and rules."""

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from yupana.geography.tree import Tree
from yupana.topdown.constraints import UNKNOWN, Joint, Limits
from yupana.topdown.descent import descend
from yupana.topdown.descent.descend import Rules, prepare, prepare_level, runs_of, siblings_of
from yupana.topdown.histogram import count_entries
from yupana.topdown.queries import margin

SHAPE = (3, 4)


def world(seed: int) -> tuple[Any, Any]:
    """Parents with counts, and their geolevel below with bounds, totals and joint totals."""
    random = np.random.default_rng(seed)
    children = random.integers(1, 5, 12)
    owner = np.repeat(np.arange(12), children)
    units = len(owner)
    tree = Tree(("Tract", "Block"), (np.full(12, -1, dtype=np.int32), owner.astype(np.int32)))
    cells = random.integers(0, 11, 60)
    parents = count_entries(random.integers(0, 12, 60), cells, random.integers(1, 9, 60), 12)
    lower = random.integers(0, 2, (units, 3))
    joint = []
    for parent in random.choice(12, 5, replace=False).tolist():
        members = np.flatnonzero(owner == parent)
        joint.append(Joint(tuple(members[: 1 + int(random.integers(len(members)))].tolist()), int(random.integers(30))))
    queries = (margin("first", SHAPE, (True, False)), margin("detailed", SHAPE, (True, True)))
    totals = np.where(random.random(units) < 0.5, random.integers(0, 20, units), UNKNOWN)
    rules = Rules((queries,), Limits(lower, lower + 50), None if seed % 2 else totals, tuple(joint))
    return parents, prepare_level(tree, 1, rules, np.arange(12) < 11)


def posed(parents: Any, level: Any, first: int, last: int) -> list[Any]:  # noqa: ANN401
    batch = pickle.loads(pickle.dumps(prepare(parents.part(first, last), level, first)))  # noqa: S301
    labels, found = batch.labels(), []
    for position in range(last - first):
        one = siblings_of(batch, labels, position)
        rounding = [None if q is None else q.tolist() for queries in one.rounding for q in queries]
        limits = [of for limit in one.limits for of in (limit.labels, limit.lower, limit.upper)]
        arrays = [a if a is None else a.tolist() for a in (one.parent, one.totals, *limits)]
        live = batch.families.live[batch.families.starts[position] : batch.families.starts[position + 1]]
        asked = (live.tolist(), batch.families.children[position : position + 2].tolist())
        found.append(
            (batch.first + position, asked, arrays, rounding, one.children, one.joint, position in batch.failing)
        )
    return found


@pytest.mark.parametrize("seed", range(20))
def test_parents_are_posed_alike_in_any_batch(seed: int) -> None:
    parents, level = world(seed)
    whole = posed(parents, level, 0, 12)
    assert any(joint for *_, joint, _ in whole)
    assert any(failing for *_, failing in whole)
    cuts = sorted({0, 12, *np.random.default_rng(seed).integers(0, 13, 4).tolist()})
    parts = [posed(parents, level, first, last) for first, last in pairwise(cuts)]
    assert [one for part in parts for one in part] == whole


@pytest.mark.parametrize("seed", range(20))
def test_small_trees_are_divided_together(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(seed)
    units = int(random.integers(1, 9))
    starts, leaves = [], [[unit] for unit in range(units)]
    for _ in range(int(random.integers(0, 4))):
        number = sum(map(len, leaves))
        starts.append(np.cumsum([0, *random.integers(1, 4, number)]))
        leaves = [[child for one in of for child in range(starts[-1][one], starts[-1][one + 1])] for of in leaves]
    most = int(random.integers(1, 30))
    monkeypatch.setattr(descend, "_UNITS_OF_A_RUN", most)
    runs = list(runs_of(starts, units))
    assert [unit for first, end in runs for unit in range(first, end)] == list(range(units))
    sizes = [sum(map(len, leaves[first:end])) for first, end in runs]
    assert all(size <= most or end == first + 1 for size, (first, end) in zip(sizes, runs, strict=True))
    # Another tree would be too much.
    assert all(size + len(leaves[end]) > most for size, (_, end) in zip(sizes[:-1], runs, strict=False))
