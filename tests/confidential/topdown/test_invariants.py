"""Invariants are totals of published areas: what is released without noise follows from them, and they are kept."""

import itertools
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from topdown_worlds import LEVELS, WIDTHS, World, configuration, make_world, write_configuration, write_world

from yupana.cli.main import main
from yupana.confidential.request import RunRequest
from yupana.confidential.topdown.estimate import estimate
from yupana.confidential.topdown.exact_counts import add_up
from yupana.confidential.topdown.world import World as TrueWorld
from yupana.confidential.topdown.world import open_world
from yupana.errors import ConfigError
from yupana.geography.optimized import bypass
from yupana.geography.spine import Spine, make_spine
from yupana.plan.ledger import Ledger
from yupana.privacy.entropy import SeededEntropy
from yupana.progress import Stopwatch
from yupana.topdown import Estimator
from yupana.topdown.budget import spend
from yupana.topdown.configuration import Configuration
from yupana.topdown.constraints import UNKNOWN, Kept, kept_areas, known_totals
from yupana.topdown.descent import measurements
from yupana.topdown.descent.checkpoint import BatchCheckpoint
from yupana.topdown.descent.descend import Descent
from yupana.topdown.histogram import Histogram, count_entries, whole
from yupana.topdown.reading.configuration import read_configuration

GROUPED = ("US", "State", "County", "Tract_Group", "Tract", "Block_Group", "Block")
SPINES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("conventional", LEVELS),
    ("conventional", GROUPED),
    ("aian", LEVELS),
    ("optimized", LEVELS),
    ("optimized", GROUPED),
)
TABULATED = {"State": "state", "County": "county", "Tract": "tract", "Block_Group": "block_group", "Block": "block"}


def document(
    kind: str, levels: tuple[str, ...], mechanism: str, invariants: list[str], *, quarters: bool = False
) -> dict[str, Any]:
    made = configuration(
        (8, 2) if quarters else (2, 2),
        mechanism=mechanism,
        shares=dict.fromkeys(levels, f"1/{len(levels)}"),
        queries={level: {"total": "1/4", "a0": "1/4", "detailed": "1/2"} for level in levels},
        invariants={level: ["total"] for level in invariants},
        spine={"kind": kind, "fanout_cutoff": 1},
    )
    budget = {"rho": "1/2"} if mechanism == "zcdp" else {"epsilon": "1/2"}
    if quarters:
        made["constraints"] = {"group_quarters": "a0"}
    return {key: value for key, value in made.items() if key != "rho"} | budget


def run(folder: Path, world: World, config: Path, *options: str) -> Path:
    if not (folder / "data").exists():
        write_world(world, folder / "data")
    out = folder / "out"
    code = main(
        ["topdown", "run", str(config), str(folder / "data"), str(out), "--overwrite", "--intervals", "none", *options]
    )
    assert code == (0 if out.exists() else 2)
    return out


def released(out: Path) -> dict[str, bytes]:
    """All files of a release; of the manifest what does not tell the time."""
    found = {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    manifest = json.loads(found.pop("manifest.json"))
    return found | {"manifest.json": json.dumps({**manifest, "created": None}).encode()}


def moved(world: World, here: tuple[str, int], there: tuple[str, int]) -> World:
    """The same with one record changed, its block and cell."""
    counts = dict(world.counts)
    counts[here] -= 1
    counts[there] = counts.get(there, 0) + 1
    return replace(world, counts={key: count for key, count in counts.items() if count})


@pytest.fixture
def without_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noisy answers that do not depend on the records: noise about zero."""

    def zeros(*arguments: Any) -> Any:  # noqa: ANN401
        return exact(*arguments) * 0

    exact = measurements.exact_answers
    monkeypatch.setattr(measurements, "exact_answers", zeros)


def tiny() -> World:
    """One county of 4 tracts, each of one block group of 3 blocks."""
    world = World((2, 2))
    for tract, block in itertools.product(range(1, 5), range(3)):
        name = f"01001{tract:06}1{1000 + block}"
        world.blocks.append(name)
        world.areas.append(("9999", "00001", "00001"))
        for cell in range(4):
            world.counts[name, cell] = 3 + (7 * tract + 5 * block + 3 * cell) % 11
    return world


def block_totals(out: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    for line in (out / "tabulation/block.csv").read_text().splitlines()[1:]:
        block, _, _, count = line.split("|")
        found[block] = found.get(block, 0) + int(count)
    return found


def totals_of(counts: dict[tuple[str, int], int], width: int) -> dict[str, int]:
    found: dict[str, int] = {}
    for (block, _), count in counts.items():
        found[block[:width]] = found.get(block[:width], 0) + count
    return found


@pytest.mark.usefixtures("without_records")
@pytest.mark.slow
def test_a_move_within_a_block_group_is_not_told_from_its_invariant_total(tmp_path: Path) -> None:
    config = write_configuration(
        document("optimized", LEVELS, "pure", ["US", "State", "Block_Group"]), tmp_path / "config.json"
    )
    world = tiny()
    other = moved(world, ("010010000011" + "1000", 0), ("010010000011" + "1001", 0))
    first = released(run(tmp_path / "first", world, config, "--seed", "1"))
    second = released(run(tmp_path / "second", other, config, "--seed", "1"))
    assert first == second


@pytest.mark.slow
def test_block_groups_in_parts_keep_their_totals_and_their_blocks_do_not(tmp_path: Path) -> None:
    config = write_configuration(
        document("optimized", LEVELS, "pure", ["US", "State", "Block_Group"]), tmp_path / "config.json"
    )
    world = tiny()
    different = 0
    for seed in range(3):
        out = run(tmp_path, world, config, "--seed", str(seed))
        spine = (out / "spine/geounits.csv").read_text()
        assert "Block_Group|00100100000100" not in spine or "-3|" in spine
        found = block_totals(out)
        for width in (0, 2, 12):
            sums = totals_of({(block, 0): count for block, count in found.items()}, width)
            assert sums == totals_of(world.counts, width)
        different += sum(found.get(block, 0) != count for block, count in totals_of(world.counts, 16).items())
    assert different > 12


def opened(folder: Path, world: World, made: dict[str, Any], *, quarters: bool) -> tuple[Configuration, TrueWorld]:
    folder.mkdir()
    found = read_configuration(write_configuration(made, folder / "config.json"))
    write_world(world, folder / "data", quarters=quarters)
    return found, open_world(found, folder / "data", RunRequest(), Stopwatch(lambda _: None))


def estimated(folder: Path, found: Configuration, world: TrueWorld, estimator: Estimator) -> Descent:
    checkpoint = BatchCheckpoint(folder / "checkpoint")
    checkpoint.begin({})
    clock = Stopwatch(lambda _: None)
    request, spending = RunRequest(estimator=estimator, entropy=SeededEntropy(1)), spend(found, world.spine)
    return estimate(found, world, spending, Ledger(spending.plan), checkpoint, request, clock).descent


def neighbour(rng: Random, world: TrueWorld, width: int, shape: tuple[int, ...]) -> TrueWorld | None:
    """Change one record, its cell and perhaps its block, and keep the totals of areas of so many digits."""
    exact, area = whole(world.exact.blocks), world.spine.blocks // 10 ** (16 - width)
    here = rng.randrange(len(exact.cells))
    block, cell = int(exact.owners()[here]), int(exact.cells[here])
    there = rng.choice(np.flatnonzero(area == area[block]).tolist())
    inner = int(np.prod(shape)) // shape[0]
    if world.facilities is None:
        other = rng.randrange(inner * shape[0])
    else:
        # In households, so that the public list of facilities holds for both.
        other = rng.randrange(inner)
        if cell >= inner or not world.facilities[there, 0]:
            return None
    moved = count_entries(
        np.append(exact.owners(), [block, there]),
        np.append(exact.cells, [cell, other]),
        np.append(exact.counts, [-1, 1]),
        exact.units,
    )
    return replace(world, exact=add_up(world.spine.tree, moved.part, None))


def same(one: Histogram, other: Histogram) -> bool:
    return all(map(np.array_equal, (one.starts, one.cells, one.counts), (other.starts, other.cells, other.counts)))


@pytest.mark.usefixtures("without_records")
@pytest.mark.parametrize(
    ("trials", "most", "bound", "refusals"), [(14, 6, 1, 0), pytest.param(35, 20, 2, 2, marks=pytest.mark.thorough)]
)
@pytest.mark.slow
def test_what_neighbours_release_differs_by_the_noisy_answers_alone(
    tmp_path: Path, trials: int, most: int, bound: int, refusals: int
) -> None:
    rng = Random(3)  # noqa: S311 (made-up worlds need no cryptography)
    compared = binding = 0
    refused: list[str] = []
    for trial in range(trials):
        kind, levels = SPINES[trial % len(SPINES)]
        mechanism = rng.choice(["zcdp", "pure"])
        invariants = [level for level in LEVELS if rng.random() < 0.25]
        quarters = rng.random() < 0.3
        shape = (8, 2) if quarters else (2, 2)
        made = document(kind, levels, mechanism, invariants, quarters=quarters)
        world = make_world(rng.randrange(10**6), shape, quarters=quarters, states=1)
        folder = tmp_path / str(trial)
        try:
            found, one = opened(folder, world, made, quarters=quarters)
        except ConfigError as error:
            refused.append(str(error))
            continue
        width = max((WIDTHS[level] for level in invariants), default=0)
        other = neighbour(rng, one, width, shape)
        if other is None:
            continue
        estimator: Estimator = rng.choice(["topdown", "full-information"])
        first, second = (estimated(folder / str(n), found, each, estimator) for n, each in enumerate((one, other)))
        assert all(map(same, *(map(whole, each.counts) for each in (first, second)))), (
            trial,
            kind,
            levels,
            mechanism,
            invariants,
        )
        assert first.failsafe == second.failsafe
        assert first.solvers == second.solvers
        compared += 1
        binding += width > 5 and kind != "conventional"
    assert compared >= most
    assert binding >= bound
    assert len(refused) >= refusals
    assert all("so its total cannot be kept" in error for error in refused)


@pytest.mark.parametrize(("trials", "bound"), [(12, 1), pytest.param(25, 2, marks=pytest.mark.thorough)])
@pytest.mark.slow
def test_published_totals_are_kept_or_refused(tmp_path: Path, trials: int, bound: int) -> None:
    rng = Random(4)  # noqa: S311 (made-up worlds need no cryptography)
    kept = 0
    refused: list[str] = []
    for trial in range(trials):
        kind, levels = SPINES[trial % len(SPINES)]
        level = rng.choice(LEVELS[1:-1])
        made = document(kind, levels, rng.choice(["zcdp", "pure"]), [level])
        world = make_world(rng.randrange(10**6), (2, 2), states=1)
        try:
            found, one = opened(tmp_path / str(trial), world, made, quarters=False)
        except ConfigError as error:
            refused.append(f"{kind} {error}")
            continue
        blocks = estimated(tmp_path / str(trial), found, one, "topdown").counts[-1]
        totals = whole(blocks).totals()
        _, area = np.unique(one.spine.blocks // 10 ** (16 - WIDTHS[level]), return_inverse=True)
        assert np.array_equal(np.bincount(area, totals), np.bincount(area, whole(one.exact.blocks).totals()))
        kept += kind == "optimized"
    assert kept >= bound
    assert len(refused) >= bound
    assert all("so its total cannot be kept; use a conventional spine" in error for error in refused)
    assert not any(error.startswith("conventional") for error in refused)


def test_a_tract_group_is_no_published_area(tmp_path: Path) -> None:
    made = document("conventional", GROUPED, "zcdp", ["Tract_Group"])
    with pytest.raises(ConfigError, match=r"invariants.Tract_Group: a tract group is no published area"):
        read_configuration(write_configuration(made, tmp_path / "config.json"))


def test_a_run_that_is_refused_charges_nothing(tmp_path: Path) -> None:
    world = tiny()
    world.areas[0] = ("0100", "00001", "00001")
    config = write_configuration(document("aian", LEVELS, "zcdp", ["Tract"]), tmp_path / "config.json")
    out = run(tmp_path, world, config, "--seed", "1", "--ledger", str(tmp_path / "ledger.json"), "--dataset", "D")
    assert not out.exists()
    assert not (tmp_path / "ledger.json").exists()


# Against linear algebra: what is known are combinations of the totals of areas, and they leave nothing of them out.


@st.composite
def spines(draw: st.DrawFn) -> Spine:
    """Any units over blocks of tabulation geography: blocks are put in order and cut anew at every geolevel."""
    count = draw(st.integers(1, 14))
    digits = draw(
        st.lists(
            st.tuples(st.integers(1, 2), st.integers(1, 2), st.integers(1, 3), st.integers(0, 9999)),
            min_size=count,
            max_size=count,
            unique=True,
        )
    )
    blocks = np.array([int(f"01{c:03}{t:06}{g}{b:04}") for c, t, g, b in digits])
    if draw(st.booleans()):
        blocks = np.sort(blocks)
    keys: list[Any] = []
    for _ in LEVELS[1:-1]:
        opens = draw(st.lists(st.booleans(), min_size=count, max_size=count))
        keys.append(np.cumsum(opens))
    keys = [np.zeros(count, dtype=np.int64), *keys, blocks]
    made = make_spine(LEVELS, keys, [0, 3, 4, 5, 6, 16], [Fraction(1, 6)] * 6)
    return bypass(made, draw(st.sampled_from(["zcdp", "pure"])), 150) if draw(st.booleans()) else made


def statements(spine: Spine, kept: Kept) -> list[Any]:
    """Every total that is known, as a row over the blocks."""
    unit = [spine.tree.ancestors(i) for i in range(len(spine.levels))]
    rows = []
    for number, sets in kept.sets.items():
        rows += [(unit[number] == u).astype(float) for u in np.flatnonzero(sets.alone)]
        rows += [np.isin(unit[number], units).astype(float) for units in sets.joined]
    return rows


def rank(rows: list[Any]) -> int:
    return int(np.linalg.matrix_rank(np.array(rows))) if rows else 0


@given(spines(), st.sampled_from(LEVELS), st.data())
@settings(max_examples=100, deadline=None)
@pytest.mark.slow
def test_known_totals_are_those_of_areas_and_all_of_them(spine: Spine, level: str, data: st.DataObject) -> None:
    found = read_configuration("pl94-2020-us")
    (total,) = found.invariants["State"]
    area = spine.blocks // 10 ** (16 - WIDTHS[level])
    areas = [(area == one).astype(float) for one in np.unique(area)]
    try:
        kept = kept_areas(replace(found, invariants={level: (total,)}), spine)
    except ConfigError:
        # Refused only where an area is no units of one parent at any geolevel.
        siblings = {row.tobytes() for row in unions_of_siblings(spine, area)}
        assert not {row.tobytes() for row in areas} <= siblings
        return
    assert kept is not None
    rows = statements(spine, kept)
    assert rank([*areas, *rows]) == rank(areas) == rank(rows)
    assert all(len(np.unique(spine.tree.parents[n][list(u)])) == 1 for n, s in kept.sets.items() for u in s.joined)
    counts = np.array(data.draw(st.lists(st.integers(0, 9), min_size=len(area), max_size=len(area))))
    assume(counts.any())
    here = np.flatnonzero(counts)
    histogram = Histogram(
        np.concatenate([[0], np.cumsum(counts > 0)]), np.zeros(len(here), dtype=np.int32), counts[here].astype(np.int64)
    )
    known = known_totals(kept, histogram)
    for number, one in known.items():
        true = np.zeros(spine.tree.units(number), dtype=np.int64)
        np.add.at(true, spine.tree.ancestors(number), counts)
        assert ((one.totals == true) | (one.totals == UNKNOWN)).all()
        assert all(true[list(joint.units)].sum() == joint.total for joint in one.joint)


def unions_of_siblings(spine: Spine, area: Any) -> Any:  # noqa: ANN401
    """Whatever units that share a parent can make up of whole areas."""
    for number in range(len(spine.levels)):
        unit, parents = spine.tree.ancestors(number), spine.tree.parents[number]
        for parent in np.unique(parents):
            mine = np.flatnonzero(parents == parent).tolist()
            for size in range(1, min(len(mine), 7) + 1):
                for some in itertools.combinations(mine, size):
                    inside = np.isin(unit, some)
                    if not set(area[inside]) & set(area[~inside]):
                        yield inside.astype(float)
