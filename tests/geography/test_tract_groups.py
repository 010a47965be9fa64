"""Algorithm 2 against a literal one that measures every distance anew for every pair."""

from dataclasses import dataclass
from math import isqrt
from random import Random

import numpy as np
import pytest
from census_maker import seeded
from hypothesis import given, settings
from hypothesis import strategies as st
from spine_maker import make_tree, nested

from yupana.geography.optimized import _first_no_larger, chunks, group_tracts
from yupana.geography.settings import SpineSettings
from yupana.geography.tree import Members, Tree

NAMES = ("US", "State", "County", "Tract", "Block")
COUNTY = 2


def distance(root: object, entity: set[int]) -> int:
    """Algorithm 1 on a tree of nested lists of blocks."""

    def up(unit: object) -> tuple[int, int]:
        if isinstance(unit, int):
            return (1, 0) if unit in entity else (0, 1)
        assert isinstance(unit, list)
        below = [up(child) for child in unit]
        x, y = sum(c for c, _ in below), sum(c for _, c in below)
        return min(x, y + 1), min(y, x + 1)

    return up(root)[0]


Groups = list[list[list[list[int]]]]
"""Tracts by group, county and state."""


@dataclass
class Literal:
    """Algorithm 2 as the paper writes it, with the threshold of the 2020 code and what it does where nothing is far."""

    tracts: list[list[int]]
    groups: Groups
    far: list[set[int]]
    caps: list[list[int]]

    def vector(self) -> list[int]:
        tree = [[[[self.tracts[t] for t in group] for group in county] for county in state] for state in self.groups]
        return sorted((distance(tree, e) for e in self.far), reverse=True)

    def meets(self, county: list[list[int]]) -> bool:
        blocks = {block for group in county for t in group for block in self.tracts[t]}
        return any(e & blocks for e in self.far)

    def sweep(self, county: list[list[int]], cap: int) -> bool:
        """Try every pair once."""
        changed, now = False, self.vector()
        u = 0
        while u < len(county) - 1:
            v = u + 1
            while v < len(county):
                kept = list(county)
                if len(county[u]) + len(county[v]) <= cap:
                    county[u] = county[u] + county[v]
                    del county[v]
                    if (trial := self.vector()) <= now:
                        now, changed = trial, True
                        continue
                    county[:] = kept
                v += 1
            u += 1
        return changed

    def run(self, grouping: str) -> list[int]:
        counties = [
            (county, cap) for s, c in zip(self.groups, self.caps, strict=True) for county, cap in zip(s, c, strict=True)
        ]
        for county, cap in counties:
            if not self.meets(county):
                n, every = len(county), [t for (t,) in county]
                chunk = chunks(np.arange(n), np.full(n, n), np.full(n, cap), "even" if grouping == "even" else "orig")
                county[:] = [[every[i] for i in np.flatnonzero(chunk == c)] for c in np.unique(chunk)]
        met = [(county, cap) for county, cap in counties if self.meets(county)]
        joined = True
        while joined:
            joined = any([self.sweep(county, cap) for county, cap in met])  # noqa: C419 (every county has its turn)
        number = [0] * len(self.tracts)
        for county, _ in counties:
            for place, group in enumerate(sorted(county, key=min), 1):
                for t in group:
                    number[t] = place
        return number


def literal(tree: Tree, entities: list[set[int]], cutoff: int, threshold: int, grouping: str) -> list[int]:
    plain = nested(tree)
    tracts = [sorted(plain.leaves(3, t)) for t in range(plain.units(3))]
    groups = [[[[t] for t in plain.children[2][c]] for c in counties] for counties in plain.children[1]]
    without = [[[tracts[t] for (t,) in county] for county in state] for state in groups]
    far = [e for e in entities if e and distance(without, e) > threshold]
    caps = [[isqrt(len(county)) + cutoff + 1 for county in state] for state in groups]
    return Literal(tracts, groups, far, caps).run(grouping)


@st.composite
def nations(draw: st.DrawFn) -> Tree:
    states = draw(st.integers(1, 2))
    counties = draw(st.lists(st.integers(1, 2), min_size=states, max_size=states))
    tracts = draw(st.lists(st.integers(1, 7), min_size=sum(counties), max_size=sum(counties)))
    blocks = draw(st.lists(st.integers(1, 4), min_size=sum(tracts), max_size=sum(tracts)))
    return make_tree([[states], counties, tracts, blocks], NAMES)


@given(nations(), st.data(), st.integers(0, 2), st.integers(0, 4), st.sampled_from(["orig", "even"]))
@settings(max_examples=80)
@pytest.mark.thorough
def test_groups_are_those_of_the_literal_algorithm(
    tree: Tree, data: st.DataObject, cutoff: int, threshold: int, grouping: str
) -> None:
    blocks = tree.units(4)
    part = st.tuples(st.integers(0, blocks - 1), st.integers(1, 8), st.sets(st.integers(0, blocks - 1), max_size=3))
    drawn = data.draw(st.lists(part, max_size=8))
    entities = [set(range(start, min(start + length, blocks))) ^ more for start, length, more in drawn]
    pairs = sorted((block, entity) for entity, held in enumerate(entities) for block in held)
    members = Members(*(np.array([p[i] for p in pairs], dtype=np.int32) for i in range(2)), len(entities))
    chosen = SpineSettings(
        "optimized", fanout_cutoff=cutoff, entity_threshold=threshold, grouping="even" if grouping == "even" else "orig"
    )
    found = group_tracts(tree, members, chosen).tolist()
    assert found == literal(tree, entities, cutoff, threshold, grouping)
    county = tree.parents[3]
    for c in range(tree.units(COUNTY)):
        n = int((county == c).sum())
        sizes = np.bincount(np.array(found)[county == c])
        assert sizes.max() <= int(n**0.5 + cutoff) + 1


@given(st.integers(1, 5), st.integers(1, 4), st.data())
@pytest.mark.thorough
def test_vectors_are_compared_as_they_would_be_whole(entities: int, columns: int, data: st.DataObject) -> None:
    values = st.lists(st.integers(0, 3), min_size=entities, max_size=entities)
    now, trials = data.draw(values), data.draw(st.lists(values, min_size=columns, max_size=columns))
    allowed = [i for i, trial in enumerate(trials) if sorted(trial, reverse=True) <= sorted(now, reverse=True)]
    found = _first_no_larger(np.array(trials).T, np.array(now)[:, None])
    assert found == (allowed[0] if allowed else None)


def random_nation(rng: Random) -> tuple[Tree, list[set[int]]]:
    """Two states and entities that scatter over their tracts, some of them over county and state lines."""
    counties = [rng.randint(1, 2) for _ in range(2)]
    tracts = [rng.randint(2, 9) for _ in range(sum(counties))]
    blocks = [rng.randint(1, 4) for _ in range(sum(tracts))]
    entities = []
    for _ in range(rng.randint(4, 14)):
        length = rng.randint(2, sum(blocks))
        start = rng.randrange(sum(blocks))
        density = rng.choice([0.3, 0.7, 0.95])
        entities.append({b for b in range(start, min(start + length, sum(blocks))) if rng.random() < density})
    return make_tree([[2], counties, tracts, blocks], NAMES), [e for e in entities if e]


@pytest.mark.parametrize("seed", range(40))
def test_groups_are_those_of_the_literal_algorithm_on_larger_trees(seed: int) -> None:
    rng = seeded(seed)
    tree, entities = random_nation(rng)
    cutoff, threshold = rng.choice([0, 1, 2]), rng.choice([0, 0, 2, 4])
    pairs = sorted((block, entity) for entity, held in enumerate(entities) for block in held)
    members = Members(*(np.array([p[i] for p in pairs], dtype=np.int32) for i in range(2)), len(entities))
    chosen = SpineSettings("optimized", fanout_cutoff=cutoff, entity_threshold=threshold)
    assert group_tracts(tree, members, chosen).tolist() == literal(tree, entities, cutoff, threshold, "orig")
