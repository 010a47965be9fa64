"""TopDown from the command line: the identity without noise, what always holds, and runs that are interrupted."""

import json
import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from topdown_worlds import LEVELS, WIDTHS, World, configuration, make_world, write_configuration, write_world

from yupana.cli.main import main
from yupana.confidential.topdown import counter as run_module
from yupana.topdown.descent import descend

KINDS = ("conventional", "aian", "optimized")
ESTIMATORS = ("topdown", "full-information")


def rows(path: Path) -> Iterator[list[str]]:
    with path.open() as file:
        next(file)
        for line in file:
            yield line.rstrip("\n").split("|")


def counts(release: Path, name: str, shape: tuple[int, ...]) -> dict[tuple[str, int], int]:
    found: dict[tuple[str, int], int] = {}
    for unit, *levels, count in rows(release / f"{name}.csv"):
        key = unit, int(np.ravel_multi_index(tuple(map(int, levels)), shape))
        assert key not in found
        assert int(count) > 0
        found[key] = int(count)
    return found


def go(tmp_path: Path, world: World, document: dict[str, Any], *options: str, quarters: bool = False) -> Path:
    data = tmp_path / "data"
    if not data.exists():
        write_world(world, data, quarters=quarters)
    config = write_configuration(document, tmp_path / "config.json")
    out = tmp_path / "out"
    assert (
        main(["topdown", "run", str(config), str(data), str(out), "--seed", "5", "--intervals", "none", *options]) == 0
    )
    return out


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(("seed", "shape"), [(1, (3, 2)), (2, (5,)), (3, (2, 1, 4))])
@pytest.mark.slow
def test_without_noise_the_output_is_the_input(
    tmp_path: Path, seed: int, shape: tuple[int, ...], kind: str, estimator: str
) -> None:
    world = make_world(seed, shape)
    out = go(tmp_path, world, configuration(shape), "--spine", kind, "--estimator", estimator)
    names = {"State": "state", "County": "county", "Tract": "tract", "Block_Group": "block_group", "Block": "block"}
    for level, name in names.items():
        assert counts(out, f"tabulation/{name}", shape) == world.totals(WIDTHS[level])
    assert counts(out, "counts/US", shape) == world.totals(0)
    assert counts(out, "counts/Block", shape) == world.counts
    persons: dict[tuple[str, int], int] = {}
    for block, *levels in rows(out / "microdata.csv"):
        key = block, int(np.ravel_multi_index(tuple(map(int, levels)), shape))
        persons[key] = persons.get(key, 0) + 1
    assert persons == world.counts
    assert main(["check", str(out)]) == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_exact_counts_hold_together(tmp_path: Path, kind: str) -> None:
    data = write_world(make_world(1, (3, 2)), tmp_path / "data")
    config = write_configuration(configuration((3, 2), rho="1"), tmp_path / "config.json")
    out = tmp_path / "out"
    assert main(["topdown", "exact", str(config), str(data), str(out), "--spine", kind]) == 0
    assert main(["check", str(out)]) == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.slow
def test_invariants_and_constraints_hold_at_every_level(tmp_path: Path, seed: int, kind: str, estimator: str) -> None:
    shape = (8, 2)
    world = make_world(seed, shape, quarters=True)
    document = configuration(
        shape,
        rho="1/3",
        invariants={"US": ["total"], "State": ["total"]},
        constraints={"group_quarters": "a0", "structural_zeros": [{"a0": 3, "a1": 1}]},
    )
    # What the structural zeros exclude is not there, as in any real data.
    for block, cell in [key for key in world.counts if key[1] == 7]:
        world.counts[block, 6] = world.counts.get((block, 6), 0) + world.counts.pop((block, cell))
    out = go(tmp_path, world, document, "--spine", kind, "--estimator", estimator, quarters=True)
    true = world.totals(2)
    found = counts(out, "tabulation/state", shape)
    for state in ("01", "02"):
        assert sum(n for (s, _), n in found.items() if s == state) == sum(n for (s, _), n in true.items() if s == state)
    spine = [dict(zip(("block", *LEVELS), row, strict=True)) for row in rows(out / "spine/blocks.csv")]
    for level in LEVELS:
        there = counts(out, f"counts/{level}", shape)
        facilities: dict[str, list[int]] = {}
        for row in spine:
            so_far = facilities.setdefault(row[level], [0] * 8)
            facilities[row[level]] = [a + b for a, b in zip(so_far, world.facilities[row["block"]], strict=True)]
        for unit, listed in facilities.items():
            assert (unit, 7) not in there
            for group in range(8):
                persons = there.get((unit, 2 * group), 0) + there.get((unit, 2 * group + 1), 0)
                assert (0 if group == 0 else listed[group]) <= persons <= 99999 * listed[group]
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["failsafe"] == []
    assert main(["check", str(out)]) == 0


@pytest.mark.thorough
def test_children_sum_to_their_parents(tmp_path: Path) -> None:
    shape = (3, 2)
    options = ("--spine", "optimized", "--confidence", "0.99", "--margins", "bureau")
    out = go(tmp_path, make_world(4, shape), configuration(shape, rho="1/2"), *options)
    spine = [dict(zip(("block", *LEVELS), row, strict=True)) for row in rows(out / "spine/blocks.csv")]
    for upper, lower in pairwise(LEVELS):
        parent = {row[lower]: row[upper] for row in spine}
        sums: dict[tuple[str, int], int] = {}
        for (unit, cell), count in counts(out, f"counts/{lower}", shape).items():
            sums[parent[unit], cell] = sums.get((parent[unit], cell), 0) + count
        assert sums == counts(out, f"counts/{upper}", shape)
    # The manifest has the margins that were asked for.
    plan = json.loads((out / "manifest.json").read_text())["plan"]
    assert (plan["confidence"], plan["margins"]) == (0.99, "bureau")
    assert plan["measurements"]
    for m in plan["measurements"]:
        assert m["moe"] == pytest.approx(2.5758293035489 * m["sigma"])


@pytest.mark.thorough
def test_block_totals_kept_with_group_quarters_go_through_the_failsafe(tmp_path: Path) -> None:
    shape = (8, 2)
    world = make_world(3, shape, quarters=True)
    document = configuration(shape, rho="1/50", invariants={"Block": ["total"]}, constraints={"group_quarters": "a0"})
    out = go(tmp_path, world, document, quarters=True)
    found = counts(out, "counts/Block", shape)
    for block in world.blocks:
        true = sum(n for (b, _), n in world.counts.items() if b == block)
        assert sum(n for (b, _), n in found.items() if b == block) == true
    assert main(["check", str(out)]) == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.slow
def test_a_run_goes_on_where_it_was_interrupted(
    tmp_path: Path, estimator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(descend, "_UNITS_OF_A_RUN", 1)
    shape = (3, 2)
    world = make_world(6, shape)
    document = configuration(shape, rho="1/2")
    whole = go(tmp_path, world, document, "--estimator", estimator)
    expected = {path.name: path.read_bytes() for path in (whole / "counts").iterdir()}
    out = tmp_path / "again"
    arguments = ["topdown", "run", str(tmp_path / "config.json"), str(tmp_path / "data"), str(out), "--seed", "5"]
    arguments += ["--estimator", estimator, "--intervals", "none"]
    kept = run_module.BatchCheckpoint.save
    saved: list[int] = []

    def stop_at_tracts(self: Any, level: int, batch: int, piece: Any) -> None:  # noqa: ANN401
        kept(self, level, batch, piece)
        saved.append(level)
        if level == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(run_module.BatchCheckpoint, "save", stop_at_tracts)
    assert main(arguments) == 2
    assert not out.exists()
    monkeypatch.setattr(run_module.BatchCheckpoint, "save", kept)
    assert main(arguments) == 2  # noisy counts are there: only --resume or --overwrite will do
    drawn = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "again.checkpoint").iterdir()}
    monkeypatch.setattr(
        run_module.BatchCheckpoint,
        "save",
        lambda self, level, *rest: (saved.append(level), kept(self, level, *rest))[1],
    )
    saved.clear()
    assert main([*arguments, "--resume"]) == 0
    # What is left of the first state, and the second.
    assert saved == [4, 5, 2, 3, 4, 5]
    assert drawn
    assert {path.name: path.read_bytes() for path in (out / "counts").iterdir()} == expected
    assert not (tmp_path / "again.checkpoint").exists()


def interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Leave a run interrupted; returns the arguments that resume it."""
    shape = (3, 2)
    data, config = tmp_path / "data", tmp_path / "config.json"
    write_world(make_world(6, shape), data)
    write_configuration(configuration(shape, rho="1/2"), config)
    arguments = ["topdown", "run", str(config), str(data), str(tmp_path / "out"), "--seed", "5"]
    kept = run_module.BatchCheckpoint.save

    def stop(self: Any, level: int, batch: int, piece: Any) -> None:  # noqa: ANN401
        kept(self, level, batch, piece)
        if level == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run_module.BatchCheckpoint, "save", stop)
        assert main(arguments) == 2
    return [*arguments, "--resume"]


@pytest.mark.slow
def test_resume_refuses_changed_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = interrupted(tmp_path, monkeypatch)
    path = tmp_path / "data" / "histogram.csv"
    before = path.read_text()
    path.write_text(before.rstrip("\n")[:-1] + "9\n")
    capsys.readouterr()
    assert main(arguments) == 2
    assert "histogram.csv" in capsys.readouterr().err
    path.write_text(before)
    assert main([*arguments, "--estimator", "full-information"]) == 2
    assert "estimator" in capsys.readouterr().err
    assert main(arguments) == 0


@pytest.mark.slow
def test_resume_refuses_a_damaged_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = interrupted(tmp_path, monkeypatch)
    path = next((tmp_path / "out.checkpoint").glob("*json"))
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    capsys.readouterr()
    assert main(arguments) == 2
    assert path.name in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    path.write_bytes(content)
    assert main(arguments) == 0


def test_nothing_to_resume(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shape = (3, 2)
    write_world(make_world(6, shape), tmp_path / "data")
    config = write_configuration(configuration(shape, rho="1/2"), tmp_path / "config.json")
    assert main(["topdown", "run", str(config), str(tmp_path / "data"), str(tmp_path / "out"), "--resume"]) == 2
    assert "no interrupted run" in capsys.readouterr().err


def test_a_checkpoint_is_its_owners_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted(tmp_path, monkeypatch)
    folder = tmp_path / "out.checkpoint"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert os.listdir(folder)  # noqa: PTH208


def test_without_noise_the_detailed_query_is_needed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shape = (3, 2)
    document = configuration(shape)
    document["queries"] = {**document["queries"], "Tract": {"total": "1"}}
    write_world(make_world(6, shape), tmp_path / "data")
    config = write_configuration(document, tmp_path / "config.json")
    assert main(["topdown", "run", str(config), str(tmp_path / "data"), str(tmp_path / "out")]) == 2
    assert "Tract measures no detailed query" in capsys.readouterr().err


@pytest.mark.thorough
def test_puerto_rico_has_no_nation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = make_world(6, (3, 2), states=1)
    world.blocks = [f"72{block[2:]}" for block in world.blocks]
    world.counts = {(f"72{block[2:]}", cell): count for (block, cell), count in world.counts.items()}
    write_world(world, tmp_path / "data")
    document = configuration((3, 2))
    config = write_configuration(document, tmp_path / "config.json")
    assert main(["topdown", "run", str(config), str(tmp_path / "data"), str(tmp_path / "out")]) == 2
    assert "begin with State" in capsys.readouterr().err
    del document["shares"]["US"], document["queries"]["US"]
    document["shares"] = dict.fromkeys(document["shares"], "1/5")
    config = write_configuration(document, tmp_path / "config.json")
    assert main(["topdown", "run", str(config), str(tmp_path / "data"), str(tmp_path / "out")]) == 0


@pytest.mark.thorough
def test_noisy_measurements_are_what_the_estimate_was_made_of(tmp_path: Path) -> None:
    shape = (3, 2)
    world = make_world(8, shape)
    noisy = tmp_path / "noisy"
    document = configuration(shape, rho="2000")
    go(tmp_path, world, document, "--noisy-measurements", str(noisy), "--spine", "optimized")
    assert main(["check", str(noisy)]) == 0
    for level in LEVELS:
        found = {unit: int(value) for unit, value, _ in rows(noisy / level / "total.csv")}
        assert sum(found.values()) <= sum(world.counts.values())
        # A sixth of the budget for each geolevel, a quarter of that for the total, and what a bypass adds.
        for row in rows(noisy / level / "total.csv"):
            assert any(float(row[-1]) == pytest.approx(24 / 2000 / parts) for parts in range(1, 7))
    detailed = list(rows(noisy / "US" / "detailed.csv"))
    assert [row[1:3] for row in detailed] == [[str(a), str(b)] for a in range(3) for b in range(2)]
    assert [int(row[3]) for row in detailed] == [world.totals(0).get(("US", cell), 0) for cell in range(6)]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("known", [{}, {"Block": ["total"]}])
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.slow
def test_a_geolevel_that_measures_nothing_is_divided_all_the_same(
    tmp_path: Path, estimator: str, known: dict[str, list[str]]
) -> None:
    shape = (3, 2)
    document = configuration(shape, rho="1/2", invariants=known)
    document["shares"] |= {"Tract": "0", "Block": "1/3"}
    del document["queries"]["Tract"]
    out = go(tmp_path, make_world(4, shape), document, "--estimator", estimator)
    assert sum(counts(out, "counts/Tract", shape).values()) == sum(counts(out, "counts/US", shape).values())
    assert main(["check", str(out)]) == 0


@pytest.mark.thorough
def test_a_root_that_nothing_is_known_of_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shape = (3, 2)
    world = make_world(4, shape)
    document = configuration(shape, rho="1/2", invariants={})
    document["shares"] |= {"US": "0", "Block": "1/3"}
    config = write_configuration(document, tmp_path / "config.json")
    data = write_world(world, tmp_path / "data")
    ledger = tmp_path / "ledger.json"
    account = ["--ledger", str(ledger), "--dataset", "D"]
    assert main(["topdown", "run", str(config), str(data), str(tmp_path / "out"), *account]) == 2
    assert "US has no share" in capsys.readouterr().err
    assert not ledger.exists()
    # What is below, or a total that is kept, tells how many there are.
    out = go(tmp_path, world, document, "--estimator", "full-information")
    assert 0 < sum(counts(out, "counts/US", shape).values()) < 2 * sum(world.counts.values())
    document["invariants"] = {"State": ["total"]}
    out = go(tmp_path, world, document, "--overwrite")
    assert sum(counts(out, "counts/US", shape).values()) == sum(world.counts.values())


@pytest.mark.thorough
def test_tables_have_every_area_and_the_spine_those_where_something_stands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = make_world(5, (2,))
    empty = [block for number, block in enumerate(world.blocks) if number % 3 == 0]
    world.areas = [("0200" if block in empty else "0100", "00001", "00001") for block in world.blocks]
    for block in world.blocks:
        world.facilities[block] = [int(block not in empty), *[0] * 7]
        world.counts |= {(block, 0): 3, (block, 1): 4}
    world.counts = {key: count for key, count in world.counts.items() if key[0] not in empty}
    document = configuration((2,), rho="1/2", spine={"live": True}) | {"schema": {"h1": 2}}
    document["queries"] = {level: {"detailed": "1"} for level in LEVELS}
    data = write_world(world, tmp_path / "data", quarters=True)
    (data / "histogram.csv").write_text((data / "histogram.csv").read_text().replace("a0", "h1"))
    out = go(tmp_path, world, document)
    assert len(list(rows(out / "spine/blocks.csv"))) == len(world.blocks) - len(empty)
    table = {(level, code): list(map(int, more)) for level, code, *more in rows(out / "tables/H1.csv")}
    assert {code for level, code in table if level == "750"} == {block[:11] + block[12:] for block in world.blocks}
    assert all(table["750", block[:11] + block[12:]] == [0, 0, 0] for block in empty)
    assert table["250", "0200"] == [0, 0, 0]
    assert {code for level, code in table if level == "150"} == {block[:12] for block in world.blocks}
    assert main(["check", str(out)]) == 0
    capsys.readouterr()
    line = ["topdown", "accuracy", str(tmp_path / "config.json"), str(data), "--trials", "1", "--json"]
    assert main(line) == 0
    found = {(row["geolevel"], row["population"]): row["areas"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert found["block", "all"] == len(world.blocks)
    assert found["block", "0"] == len(empty)
    assert found["spine Block", "all"] == len(world.blocks) - len(empty)
    assert found["aiannh", "all"] == 2


def test_an_invariant_that_the_spine_cannot_keep_is_refused_before_it_costs_anything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shape = (3, 2)
    world = make_world(2, shape)
    # Both sides of a county lie in a state of their own on the spine.
    world.areas = [("0100" if number % 2 else "9999", "00001", "00001") for number in range(len(world.blocks))]
    data = write_world(world, tmp_path / "data")
    document = configuration(shape, rho="1/2", invariants={"County": ["total"]}, spine={"kind": "aian"})
    config = write_configuration(document, tmp_path / "config.json")
    account = ["--ledger", str(tmp_path / "ledger.json"), "--dataset", "D"]
    assert main(["topdown", "run", str(config), str(data), str(tmp_path / "out"), *account]) == 2
    assert "its total cannot be kept" in capsys.readouterr().err
    assert not (tmp_path / "ledger.json").exists()
    assert not (tmp_path / "out.checkpoint").exists()


@pytest.mark.thorough
def test_passes_after_the_detailed_query_have_nothing_to_decide(tmp_path: Path) -> None:
    """They would be systems without any freedom, which take the solver for ever."""
    shape = (3, 2)
    document = configuration(shape, rho="1/2")
    document["passes"] = {level: {"estimate": [["detailed"], ["a0"], ["total"]]} for level in LEVELS}
    solvers = json.loads((go(tmp_path, make_world(4, shape), document) / "manifest.json").read_text())["solvers"]
    document["passes"] = {level: {"estimate": [["total"], ["a0"], ["detailed"]]} for level in LEVELS}
    more = json.loads((go(tmp_path, make_world(4, shape), document, "--overwrite") / "manifest.json").read_text())
    assert sum(solvers["US"].values()) == 1
    assert sum(more["solvers"]["US"].values()) == 3


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.slow
def test_areas_of_other_files_are_published_on_every_spine(tmp_path: Path, kind: str, estimator: str) -> None:
    world = make_world(4, (3,))
    listed = tmp_path / "wards.csv"
    ward = {block: ("north", "south", "")[number % 3] for number, block in enumerate(sorted(world.blocks))}
    listed.write_text("block,ward\n" + "".join(f"{block},{name}\n" for block, name in ward.items()))
    out = go(tmp_path, world, configuration((3,)), "--spine", kind, "--estimator", estimator, "--areas", str(listed))
    expected: dict[tuple[str, int], int] = {}
    for (block, cell), count in world.counts.items():
        if ward[block]:
            expected[ward[block], cell] = expected.get((ward[block], cell), 0) + count
    assert counts(out, "tabulation/ward", (3,)) == expected


@pytest.mark.parametrize("option", ["--areas", "--names"])
def test_faulty_public_files_are_refused_before_anything_is_drawn(tmp_path: Path, option: str) -> None:
    world = make_world(4, (3,))
    write_world(world, tmp_path / "data")
    config = write_configuration(configuration((3,), rho="1"), tmp_path / "config.json")
    (tmp_path / "bad.csv").write_text("no|table\n1|2\n")
    run = [
        "topdown",
        "run",
        str(config),
        str(tmp_path / "data"),
        str(tmp_path / "out"),
        option,
        str(tmp_path / "bad.csv"),
    ]
    assert main(run) == 2
    assert not list(tmp_path.glob("out*"))
