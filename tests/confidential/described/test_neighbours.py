"""Derived sensitivities against counts of the real files of neighbours, by the program itself."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from described_forests import Forests, Node

from yupana.arrays import Ints
from yupana.confidential.described.records import open_described
from yupana.confidential.described.tabulate import tabulate
from yupana.files.columns import ColumnMap
from yupana.products.described.description import Description
from yupana.products.described.plan import make_plan
from yupana.products.described.product import described

WORLDS = 10


def counted(description: Description, forests: Forests, forest: list[Node]) -> Mapping[str, Ints]:
    with TemporaryDirectory() as folder:
        forests.write(forest, Path(folder))
        with open_described(description, Path(folder), None, ColumnMap()) as records:
            records.require_valid()
            return tabulate(records.db, description, limited=True).by_level


def search(seed: int, neighbours: int) -> list[float]:
    """How far random neighbours of a random forest are, as shares of what is derived; none above 1."""
    forests = Forests(seed)
    description = described(forests.document)
    plan = make_plan(description)
    forest = forests.forest()
    here, power = counted(description, forests, forest), description.mechanism.power
    found = []
    for _ in range(neighbours):
        less = forests.less(forest)
        others = [(less, "unbounded"), (forests.more(forest), "unbounded"), (less and forests.more(less), "bounded")]
        for other, kind in others:
            if other is None:
                continue
            there = counted(description, forests, other)
            for m in plan.measurements:
                far = int((abs(there[m.name] - here[m.name]) ** power).sum())
                derived = getattr(m.proven, kind)
                assert far <= derived, (seed, m.name, kind, far, forests.document)
                found.append(float(far / derived))
    return found


@pytest.mark.slow
def test_no_neighbour_is_farther_than_derived() -> None:
    """Through files, links, limits, and orders of hashes, as a run counts."""
    shares = [share for seed in range(WORLDS) for share in search(seed, 1)]
    assert len(shares) > 3 * WORLDS
    # They move, and some as far as is derived.
    assert sum(share > 0 for share in shares) > len(shares) / 4
    assert max(shares) == 1


@pytest.mark.thorough
def test_of_more_worlds_no_neighbour_is_farther_than_derived() -> None:
    for seed in range(WORLDS, 30):
        search(seed, 1)
