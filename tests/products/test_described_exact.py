"""No neighbours of small described databases are told better than the exact law says, whichever counts they move."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from random import Random
from typing import Any

import pytest
from described_neighbours import Database, arranged, counts, one_more, random_document, without

from yupana.errors import ConfigError
from yupana.plan.exact_loss import Change, epsilon_exact
from yupana.plan.plan import Plan
from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric
from yupana.privacy.loss_law import delta_at
from yupana.privacy.loss_terms import Difference, Shift
from yupana.products.described.plan import make_plan
from yupana.products.described.product import described

DELTA = 1e-4

Moved = tuple[int, ...]
"""By how much counts differ, the largest first."""


def moved(here: Mapping[Any, int], there: Mapping[Any, int]) -> Moved:
    by = (abs(here.get(key, 0) - there.get(key, 0)) for key in here.keys() | there.keys())
    return tuple(sorted((n for n in by if n), reverse=True))


@cache
def delta_of(law: DiscreteGaussian | TwoSidedGeometric, by: Moved, epsilon: float) -> float:
    differ = Difference(tuple(Shift(law, n, times) for n, times in Counter(by).items()))
    bounds = delta_at(differ, epsilon, 1e-2)
    return 0.0 if bounds is None else bounds.lower


def planned(document: dict[str, Any], budget: Fraction) -> Plan | None:
    try:
        plan = make_plan(described(document))
    except (ConfigError, ValueError):  # no description, or no sensitivity
        return None
    return replace(plan, measurements=tuple(replace(m, budget=budget * m.calibration) for m in plan.measurements))


def neighbours(document: dict[str, Any], rng: Random) -> tuple[set[Moved], set[Moved]]:
    """What neighbours by one unit less differ in, and some by one changed."""
    less_by, changed_by = set[Moved](), set[Moved]()
    for _ in range(3):
        database, unit = arranged(document, rng)
        here = counts(database, document)
        fewer: list[Database] = list(without(database, document, unit))
        less_by |= {moved(here, counts(less, document)) for less in fewer}
        for less in rng.sample(fewer, min(6, len(fewer))):
            if (other := one_more(less, document, rng)) is not None:
                changed_by.add(moved(here, counts(other, document)))
    return less_by, changed_by


@pytest.mark.parametrize("worlds", [60, pytest.param(150, marks=pytest.mark.thorough)])
@pytest.mark.slow
def test_no_neighbours_are_told_better_than_the_exact_law_says(worlds: int) -> None:
    told: Counter[tuple[bool, str]] = Counter()
    nearest = 0.0
    for seed in range(worlds):
        rng = Random(seed)  # noqa: S311 (a test)
        document = random_document(rng)
        plan = planned(document, rng.choice([Fraction(1, 4), Fraction(1, 16)]))
        if plan is None:
            continue
        (m,) = plan.measurements
        law = m.law
        assert isinstance(law, DiscreteGaussian | TwoSidedGeometric)
        kinds: tuple[Change, Change] = ("unbounded", "bounded")
        for kind, vectors in zip(kinds, neighbours(document, rng), strict=True):
            epsilon = epsilon_exact(plan, DELTA, kind)
            if epsilon is None:
                assert not m.by_one
                continue
            for by in vectors:
                assert not m.by_one or max(by, default=0) <= 1, (seed, kind, by)
                found = delta_of(law, by, epsilon)
                assert found <= DELTA, (seed, kind, by, epsilon, document)
                nearest = max(nearest, found / DELTA)
            told[m.by_one, kind] += bool(vectors - {()})
    assert nearest > 0.9
    assert min(told[by_one, kind] for by_one in (True, False) for kind in kinds) > 5
