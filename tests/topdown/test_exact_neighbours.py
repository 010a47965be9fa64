"""No change of a record in small worlds is told better than exact accounting says of the plan."""

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from topdown_worlds import LEVELS, configuration, make_world, write_configuration, write_world

from yupana.confidential.request import RunRequest
from yupana.confidential.topdown.world import World, open_world
from yupana.geography import optimized
from yupana.plan.exact_loss import delta_exact, epsilon_exact, exact_where
from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric
from yupana.privacy.loss_law import delta_at
from yupana.privacy.loss_terms import Difference, Shift
from yupana.progress import Stopwatch
from yupana.topdown.budget import Spending, spend
from yupana.topdown.configuration import Configuration
from yupana.topdown.plan import (
    LossOnAnySpine,
    attribute_on_any_spine,
    epsilon_on_any_spine,
    move_on_any_spine,
    semantics_as_json,
)
from yupana.topdown.queries import Schema
from yupana.topdown.reading.configuration import read_configuration

SHARES = {"US": "1/20", "State": "3/20", "County": "1/10", "Tract": "1/5", "Block_Group": "3/10", "Block": "1/5"}


def opened(folder: Path, mechanism: str) -> tuple[Configuration, World, Spending]:
    document: dict[str, Any] = configuration((3, 2), mechanism=mechanism, shares=SHARES)
    document = {key: value for key, value in document.items() if key != "rho"}
    document |= {"rho": "9/7"} if mechanism == "zcdp" else {"epsilon": "9/7"}
    document["spine"] = {"kind": "optimized"}
    write_world(make_world(7, (3, 2)), folder)
    found = read_configuration(write_configuration(document, folder / "config.json"))
    world = open_world(found, folder, RunRequest(), Stopwatch(lambda _: None))
    return found, world, spend(found, world.spine)


def path(world: World, block: int) -> list[int]:
    units = [block]
    for parents in world.spine.tree.parents[:0:-1]:
        units.append(int(parents[units[-1]]))
    return units[::-1]


def moved(spending: Spending, here: list[int], there: list[int], cells: tuple[int, int]) -> Counter[Any]:
    """How many answers move by one, by the law of their noise."""
    found: Counter[Any] = Counter()
    for level, spent in enumerate(spending.levels):
        for q, query in enumerate(spent.queries):
            answer, changes = query.answers(), Counter[tuple[int, int]]()
            for unit, cell, by in ((here[level], cells[0], -1), (there[level], cells[1], 1)):
                changes[unit, int(answer[cell])] += by
            for (unit, _), by in changes.items():
                assert abs(by) <= 1
                row = spent.measurements.get(int(spent.share_of[unit]))
                if by and row:
                    law = row[q].law
                    assert isinstance(law, DiscreteGaussian | TwoSidedGeometric)
                    found[law] += 1
    return found


@pytest.mark.parametrize("mechanism", ["zcdp", "pure"])
@pytest.mark.slow
def test_no_change_of_a_record_is_told_better_than_the_plan_says(tmp_path: Path, mechanism: str) -> None:
    found, world, spending = opened(tmp_path / "world", mechanism)
    blocks, cells = world.spine.tree.units(len(LEVELS) - 1), found.schema.cells
    paths = [path(world, block) for block in range(blocks)]
    differences = {
        frozenset(moved(spending, paths[x], paths[y], (0, j)).items())
        for x, y, j in product(range(0, blocks, 7), range(0, blocks, 7), (0, 1, cells - 1))
    }
    assert len(spending.plan.paths) > 1
    assert len(differences) > 10
    epsilon = epsilon_exact(spending.plan, 1e-6)
    assert epsilon is not None
    at_most = delta_exact(spending.plan, epsilon)
    assert at_most is not None
    wherever = epsilon_on_any_spine(found, 1e-6)
    assert wherever is not None
    assert epsilon <= wherever * (1 + 1e-9) < epsilon * 1.2
    worst = 0.0
    for of in differences:
        if not of:
            continue
        bounds = delta_at(sum((Difference((Shift(law, 1, times),)) for law, times in of), Difference()), epsilon)
        assert bounds is not None
        assert bounds.lower <= 1e-6
        assert bounds.upper <= at_most * (1 + 1e-9)
        worst = max(worst, bounds.upper)
    # The root's total is the one answer that never moves, so the worst is near the bound and not at it.
    assert worst > at_most / (20 if mechanism == "zcdp" else 100)


def lost(moved: Counter[Any]) -> Fraction:
    """rho, or epsilon, of answers that move by one."""
    return sum((times * law.exponent for law, times in moved.items()), Fraction(0))


def tells(query: str, schema: Schema, axis: int) -> bool:
    return query == "detailed" or schema.names[axis] in query.split("*")


def keep(changes: Iterable[frozenset[tuple[Any, int]]], epsilon: float) -> None:
    for moved in changes:
        differ = sum((Difference((Shift(law, 1, times),)) for law, times in moved), Difference())
        found = delta_at(differ, epsilon)
        assert found is not None
        assert found.lower <= 1e-6


def most(changes: Iterable[Counter[Any]], bound: LossOnAnySpine) -> float:
    """The largest loss as a part of the bound; no change is told better than the bound says."""
    distinct = {frozenset(moved.items()) for moved in changes if moved}
    epsilon = bound.epsilon(1e-6)
    assert epsilon is not None
    keep(distinct, epsilon)
    losses = [lost(Counter(dict(moved))) for moved in distinct]
    assert max(losses) <= bound.loss
    return float(max(losses) / bound.loss)  # type: ignore[arg-type]


@pytest.mark.parametrize("mechanism", [pytest.param("zcdp", marks=pytest.mark.thorough), "pure"])
@pytest.mark.slow
def test_no_attribute_and_no_move_costs_more_than_on_any_spine(
    tmp_path: Path, mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, world, spending = opened(tmp_path / "world", mechanism)
    monkeypatch.setattr(optimized, "bypass", lambda spine, *_: spine)
    _, before, _ = opened(tmp_path / "before", mechanism)
    last, shape = len(LEVELS) - 1, found.schema.shape
    blocks = range(world.spine.tree.units(last))
    paths, old = ([path(of, block) for block in blocks] for of in (world, before))
    assert (world.spine.levels[last].code == before.spine.levels[last].code).all()

    def changed(block: int, start: int, axis: int) -> Counter[Any]:
        other = [(p + (i == axis)) % shape[i] for i, p in enumerate(np.unravel_index(start, shape))]
        return moved(spending, paths[block], paths[block], (start, int(np.ravel_multi_index(other, shape))))

    for axis in range(len(shape)):
        changes = (changed(block, start, axis) for block in blocks for start in range(0, found.schema.cells, 5))
        assert most(changes, attribute_on_any_spine(found, axis)) > 0.5
        # The plan of the spine that there is says less, and enough.
        told = {m.name: Fraction(2) for m in spending.plan.measurements if tells(m.table, found.schema, axis)}
        epsilon = exact_where(spending.plan, told, 1e-6)
        assert epsilon is not None
        wherever = attribute_on_any_spine(found, axis).epsilon(1e-6)
        assert wherever is not None
        assert epsilon <= wherever * (1 + 1e-9)
        keep({frozenset(changed(block, start, axis).items()) for block in blocks for start in (0, 5)}, epsilon)
    divided, nearest = 0, 0.0
    for level in range(last):
        pairs = [(x, y) for x, y in combinations(blocks, 2) if old[x][level] == old[y][level]]
        changes = (moved(spending, paths[x], paths[y], (0, 0)) for x, y in pairs)
        nearest = max(nearest, most(changes, move_on_any_spine(found, level)))
        divided += sum(paths[x][level] != paths[y][level] for x, y in pairs)
    assert bool(divided) == (mechanism == "pure")
    assert nearest > 0.9


@pytest.mark.slow
def test_where_nothing_is_bypassed_any_spine_is_the_plan() -> None:
    found = read_configuration("cook-2010")
    semantics = semantics_as_json(found)
    for entry in [*semantics["attributes"].values(), *semantics["geolevels"].values()]:
        assert entry["any_spine"]["rho"] == entry["rho"]
        assert entry["any_spine"]["epsilon_exact"] == pytest.approx(entry["epsilon_exact"], rel=1e-5)
