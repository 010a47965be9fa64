"""The loss of a run on any spine is that of its configuration, and no pair of neighbours loses more."""

from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from topdown_worlds import LEVELS, configuration, make_world, write_configuration, write_world

from yupana.arrays import Ints
from yupana.confidential.request import RunRequest
from yupana.confidential.topdown.world import World, open_world
from yupana.errors import BudgetError
from yupana.plan.measurement import Mechanism
from yupana.privacy.entropy import SeededEntropy
from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric
from yupana.progress import Stopwatch
from yupana.topdown.budget import Spending, spend
from yupana.topdown.configuration import Configuration
from yupana.topdown.descent.checkpoint import BatchCheckpoint
from yupana.topdown.descent.measurements import Door, MeasuredOnDemand, SiblingBatch, ask_all
from yupana.topdown.reading.configuration import read_configuration

SHAPE = (3, 2)
SHARES = {"US": "1/20", "State": "3/20", "County": "1/10", "Tract": "1/5", "Block_Group": "3/10", "Block": "1/5"}


def opened(folder: Path, seed: int, kind: str, mechanism: str) -> tuple[Configuration, World, Spending]:
    budget = {"rho": "5/7"} if mechanism == "zcdp" else {"epsilon": "5/7"}
    document: dict[str, Any] = configuration(SHAPE, mechanism=mechanism, shares=SHARES)
    document = {key: value for key, value in document.items() if key != "rho"} | budget
    document["spine"] = {"kind": kind}
    place = folder / f"{seed}-{kind}-{mechanism}"
    if not place.exists():
        write_world(make_world(seed, SHAPE), place)
    found = read_configuration(write_configuration(document, place / "config.json"))
    world = open_world(found, place, RunRequest(), Stopwatch(lambda _: None))
    return found, world, spend(found, world.spine)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("worlds")


@given(st.integers(0, 40), st.sampled_from(["conventional", "aian", "optimized"]), st.sampled_from(["zcdp", "pure"]))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.slow
def test_the_loss_is_the_budget_along_every_path(folder: Path, seed: int, kind: str, mechanism: str) -> None:
    found, world, spending = opened(folder, seed, kind, mechanism)
    assert spending.plan.loss() == Fraction(5, 7)
    assert spending.plan.mechanism is (Mechanism.ZCDP if mechanism == "zcdp" else Mechanism.PURE)
    # By enumeration: every block has a path of units, each with its own measurements.
    for block in range(world.spine.tree.units(len(LEVELS) - 1)):
        unit, loss = block, Fraction(0)
        for level in range(len(LEVELS) - 1, -1, -1):
            spent, share = spending.levels[level], world.spine.levels[level].share[unit]
            for (query, part), measurement in zip(
                found.measured(LEVELS[level]), spent.measurements.get(int(share), ()), strict=False
            ):
                budget = Fraction(5, 7) * world.spine.shares[share] * part
                assert measurement.budget == budget
                assert measurement.cells == query.size
                loss += budget
                expected = DiscreteGaussian(1 / budget) if mechanism == "zcdp" else TwoSidedGeometric(2 / budget)
                assert measurement.law == expected
            unit = int(world.spine.tree.parents[level][unit])
        assert loss == Fraction(5, 7)


@pytest.mark.parametrize("mechanism", ["zcdp", "pure"])
@pytest.mark.slow
def test_no_change_of_a_record_costs_more_and_some_change_costs_as_much(folder: Path, mechanism: str) -> None:
    found, world, spending = opened(folder, 7, "optimized", mechanism)
    tree = world.spine.tree
    blocks, cells = tree.units(len(LEVELS) - 1), found.schema.cells
    paths = [path(world, block) for block in range(blocks)]
    losses = set()
    answers = {query: query.answers() for spent in spending.levels for query in spent.queries}
    for x, y, i, j in product(range(0, blocks, 6), range(0, blocks, 6), (0,), range(cells)):
        loss = Fraction(0)
        for level, spent in enumerate(spending.levels):
            for q, query in enumerate(spent.queries):
                answer = answers[query]
                changes: dict[tuple[int, int], int] = {}
                for unit, cell, by in ((paths[x][level], i, -1), (paths[y][level], j, 1)):
                    key = unit, int(answer[cell])
                    changes[key] = changes.get(key, 0) + by
                for unit in {unit for unit, _ in changes}:
                    row = spent.measurements.get(int(spent.share_of[unit]))
                    moved = [by for (u, _), by in changes.items() if u == unit]
                    distance = sum(by * by for by in moved) if mechanism == "zcdp" else sum(map(abs, moved))
                    loss += row[q].loss(Fraction(distance)) if row else 0
        losses.add(loss)
    # The total of the root is the one answer that no change of a record moves.
    assert max(losses) == Fraction(5, 7) * (1 - Fraction(1, 20) * Fraction(1, 4))


def path(world: World, block: int) -> list[int]:
    units = [block]
    for parents in world.spine.tree.parents[:0:-1]:
        units.append(int(parents[units[-1]]))
    return units[::-1]


def everything(world: World, level: int, cells: int) -> SiblingBatch:
    """All units of a geolevel as children of one parent in which all cells are live."""
    units = world.spine.tree.units(level)
    return SiblingBatch(np.array([0, units]), np.array([0, cells]), np.arange(cells, dtype=np.int32))


def test_the_door_opens_once_for_each_unit(folder: Path) -> None:
    found, world, spending = opened(folder, 7, "conventional", "zcdp")
    door = Door(world.exact.levels, spending, SeededEntropy(1))
    families = everything(world, 3, found.schema.cells)
    asked = ask_all(families, spending.levels[3].queries)
    door.measure(3, families, asked)
    with pytest.raises(BudgetError, match="already"):
        door.measure(3, families, asked)
    with pytest.raises(BudgetError, match="already"):
        door.measure_all(3, 0, 1)


def on_demand(world: World, spending: Spending, folder: Path) -> MeasuredOnDemand:
    checkpoint = BatchCheckpoint(folder / "checkpoint")
    checkpoint.begin({})
    return MeasuredOnDemand(checkpoint, Door(world.exact.levels, spending, SeededEntropy(1)))


def test_units_without_a_share_are_not_measured(folder: Path, tmp_path: Path) -> None:
    found, world, spending = opened(folder, 7, "optimized", "zcdp")
    evidence = on_demand(world, spending, tmp_path)
    seen = 0
    for level in range(len(LEVELS)):
        gathered = evidence.gather(level, everything(world, level, found.schema.cells))
        bare = np.array([world.spine.shares[s] == 0 for s in world.spine.levels[level].share])
        seen += int(bare.sum())
        assert (gathered.weights[bare] == 0).all()
        assert (gathered.weights[~bare] > 0).all()
        for q, query in enumerate(spending.levels[level].queries):
            values = gathered.values[q].reshape(-1, query.size)
            assert (values[bare] == 0).all()
    assert seen


def test_only_live_answers_are_drawn(folder: Path, tmp_path: Path) -> None:
    found, world, spending = opened(folder, 7, "conventional", "zcdp")
    evidence = on_demand(world, spending, tmp_path)
    units = world.spine.tree.units(2)
    live = np.array([1, 4], dtype=np.int32)
    gathered = evidence.gather(2, SiblingBatch(np.array([0, units]), np.array([0, 2]), live))
    for q, query in enumerate(spending.levels[2].queries):
        reached: Ints = np.unique(query.answers()[live])
        assert sorted(gathered.asked[q].answers.tolist()) == reached.tolist()
        assert len(gathered.values[q]) == units * len(reached)
    assert found.schema.cells == 6
