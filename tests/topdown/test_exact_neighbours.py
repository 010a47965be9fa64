"""No change of a record in small worlds is told better than exact accounting says of the plan."""

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from topdown_worlds import LEVELS, configuration, make_world, write_configuration, write_world

from yupana.confidential.request import RunRequest
from yupana.confidential.topdown.world import World, open_world
from yupana.plan.exact_loss import delta_exact, epsilon_exact
from yupana.privacy.difference import Difference, Shift
from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric
from yupana.privacy.loss_law import delta_at
from yupana.progress import Stopwatch
from yupana.topdown.any_spine import epsilon_on_any_spine
from yupana.topdown.budget import Spending, spend
from yupana.topdown.configuration import Configuration
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
def test_no_change_of_a_record_is_told_better_than_the_plan_says(tmp_path: Path, mechanism: str) -> None:
    found, world, spending = opened(tmp_path / "world", mechanism)
    blocks, cells = world.spine.tree.units(len(LEVELS) - 1), found.schema.cells
    paths = [path(world, block) for block in range(blocks)]
    differences = {
        frozenset(moved(spending, paths[x], paths[y], (0, j)).items())
        for x, y, j in product(range(0, blocks, 4), range(0, blocks, 4), (0, 1, cells - 1))
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
