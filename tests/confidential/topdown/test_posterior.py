"""`topdown run --estimator posterior`: constraints, the same bits for any number of threads, and refusals."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from topdown_worlds import World, configuration, make_world, write_configuration, write_world

from yupana.cli.main import main
from yupana.errors import InputError
from yupana.topdown.descent import estimate as estimating
from yupana.topdown.posterior.results import Chains, PriorFit

SHAPE = (3, 2, 2)


def documented(**more: Any) -> dict[str, Any]:  # noqa: ANN401
    return configuration(SHAPE, **{"rho": "2", **more})


def quartered(seed: int) -> World:
    world = make_world(seed, SHAPE, quarters=True)
    for there in world.facilities.values():
        there[SHAPE[0] :] = [0] * (8 - SHAPE[0])
    return world


def run(folder: Path, document: dict[str, Any], *options: str, out: str = "out", seed: str | None = "3") -> int:
    config = write_configuration(document, folder / "config.json")
    seeded = [] if seed is None else ["--seed", seed]
    return main(
        ["topdown", "run", str(config), str(folder / "data"), str(folder / out), *seeded, "--intervals", "none",
         "--estimator", "posterior", *options]
    )  # fmt: skip


def counted(folder: Path, level: str) -> dict[tuple[str, ...], int]:
    lines = (folder / "counts" / f"{level}.csv").read_text().splitlines()[1:]
    return {tuple(line.split("|")[:-1]): int(line.rsplit("|", 1)[1]) for line in lines}


def summed(counts: dict[tuple[str, ...], int], width: int) -> dict[tuple[str, ...], int]:
    found: dict[tuple[str, ...], int] = {}
    for (block, *cell), count in counts.items():
        key = (block[:width], *cell)
        found[key] = found.get(key, 0) + count
    return found


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.slow
def test_quarters_zeros_and_totals_are_kept(tmp_path: Path, seed: int) -> None:
    world = quartered(seed)
    zeros = [{"a0": 1, "a1": 0}]
    world.counts = {key: n for key, n in world.counts.items() if key[1] // 2 != 2}
    for block, there in world.facilities.items():
        if there[1]:
            world.counts[block, 6] = 3
    write_world(world, tmp_path / "data", quarters=True)
    invariants = {"State": ["total"], "County": ["total"]}
    constraints = {"group_quarters": "a0", "structural_zeros": zeros}
    document = documented(invariants=invariants, constraints=constraints)
    assert run(tmp_path, document) == 0
    blocks = counted(tmp_path / "out", "Block")
    assert summed(blocks, 12) == counted(tmp_path / "out", "Block_Group")
    for county in {block[:5] for block in world.blocks}:
        true = sum(n for (block, _), n in world.counts.items() if block[:5] == county)
        assert sum(n for key, n in blocks.items() if key[0][:5] == county) == true
    people: dict[tuple[str, int], int] = {}
    for (block, kind, second, _), n in blocks.items():
        assert not (kind == "1" and second == "0" and n)
        people[block, int(kind)] = people.get((block, int(kind)), 0) + n
    for block, there in world.facilities.items():
        for kind in range(SHAPE[0]):
            n = people.get((block, kind), 0)
            assert (there[kind] if kind else 0) <= n <= 99_999 * there[kind]
    assert main(["check", str(tmp_path / "out")]) == 0


@pytest.mark.thorough
def test_known_totals_of_blocks_are_kept(tmp_path: Path) -> None:
    world = make_world(4, SHAPE)
    write_world(world, tmp_path / "data", quarters=True)
    assert run(tmp_path, documented(invariants={"Block": ["total"]})) == 0
    blocks = counted(tmp_path / "out", "Block")
    for block in world.blocks:
        true = sum(n for (where, _), n in world.counts.items() if where == block)
        assert sum(n for key, n in blocks.items() if key[0] == block) == true


@pytest.mark.parametrize("several", [5, pytest.param(2, marks=pytest.mark.thorough)])
@pytest.mark.thorough
def test_any_number_of_threads_makes_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, several: int
) -> None:
    write_world(make_world(5, SHAPE, states=1), tmp_path / "data", quarters=True)
    made = []
    for threads in (1, several):
        monkeypatch.setattr(os, "cpu_count", lambda threads=threads: threads)
        assert run(tmp_path, documented(), out=f"out{threads}") == 0
        manifest = json.loads((tmp_path / f"out{threads}" / "manifest.json").read_text())
        made.append(((tmp_path / f"out{threads}" / "counts" / "Block.csv").read_bytes(), manifest["posterior"]))
    assert made[0] == made[1]


@pytest.mark.parametrize("seed", [None, pytest.param("3", marks=pytest.mark.thorough)])
@pytest.mark.slow
def test_a_run_that_dies_of_its_coins_goes_on_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: str | None
) -> None:
    """Else what is released would be made of coins that were chosen."""
    write_world(make_world(5, SHAPE, states=1), tmp_path / "data", quarters=True)
    seen: list[int] = []
    made = estimating.estimate_posterior

    def mortal(*arguments: Any) -> Any:  # noqa: ANN401
        seen.append(next(one for one in arguments if isinstance(one, int) and one > 2**32))
        if len(seen) < 3:
            raise KeyboardInterrupt
        return made(*arguments)

    monkeypatch.setattr(estimating, "estimate_posterior", mortal)
    for more in ((), ("--resume",), ("--resume",)):
        run(tmp_path, documented(), *more, seed=seed)
    assert len(seen) == 3
    assert len(set(seen)) == 1
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["posterior"]["seed"] == str(seen[0])


@pytest.mark.slow
def test_the_manifest_tells_what_was_learned_and_what_is_public(tmp_path: Path) -> None:
    data = write_world(make_world(6, SHAPE, states=1), tmp_path / "data", quarters=True)
    assert run(tmp_path, documented()) == 0
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["posterior"]["housing_units"] is True
    assert 0 < manifest["posterior"]["chains"]["acceptance"] < 1
    assert any("housing units" in told for told in manifest["taken_as_public"])
    assert any("unlike its block group" in remark for remark in manifest["parameters"]["remarks"])
    (data / "group_quarters.csv").unlink()
    assert run(tmp_path, documented(), out="without") == 0
    manifest = json.loads((tmp_path / "without" / "manifest.json").read_text())
    assert manifest["posterior"]["housing_units"] is False
    assert not any("housing units" in told for told in manifest["taken_as_public"])


def test_units_of_some_blocks_only_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = make_world(7, SHAPE)
    data = write_world(world, tmp_path / "data", quarters=True)
    listed = data / "group_quarters.csv"
    lines = listed.read_text().splitlines()
    listed.write_text("\n".join(lines[:3] + lines[4:]) + "\n")
    assert run(tmp_path, documented()) == 2
    told = capsys.readouterr().err
    assert lines[3][:16] in told
    assert "take the file away" in told
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rho": "inf"}, "infinite"),
        ({"mechanism": "pure", "epsilon": "1", "rho": None}, "pure DP"),
        ({"blocks": {"total": "1/2", "a0": "1/2"}}, "detailed query of Block"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(
    tmp_path: Path, change: dict[str, Any], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_world(make_world(8, SHAPE), tmp_path / "data", quarters=True)
    document = {**documented(), **change}
    if blocks := document.pop("blocks", None):
        document["queries"] = {**document["queries"], "Block": blocks}
    document = {key: value for key, value in document.items() if value is not None}
    assert run(tmp_path, document) == 2
    assert words in capsys.readouterr().err


@pytest.mark.thorough
def test_units_that_the_measurements_contradict_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = make_world(9, SHAPE, states=2)
    for number, block in enumerate(world.blocks):
        world.counts |= {(block, cell): 60 for cell in range(12)}
        world.facilities[block][0] = 10**9 if number % 3 == 0 else 1
    write_world(world, tmp_path / "data", quarters=True)
    assert run(tmp_path, documented(rho="200")) == 2
    assert "contradict the prior" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    # What was measured is kept, and full information goes on with it.
    assert run(tmp_path, documented(rho="200"), "--resume", "--estimator", "full-information") == 0
    assert "posterior" not in json.loads((tmp_path / "out" / "manifest.json").read_text())


def test_chains_that_do_not_move_or_agree_are_refused() -> None:
    settled = Chains(blocks=1000, error=10.0, spread=1000.0, apart=10, made=500, asked=1000)
    settled.check()
    for fault in ({"made": 5}, {"error": 400.0}, {"apart": 200}):
        chains = Chains(blocks=1000, error=10.0, spread=1000.0, apart=10, made=500, asked=1000)
        for name, value in fault.items():
            setattr(chains, name, value)
        with pytest.raises(InputError, match="have not settled"):
            chains.check()
    PriorFit(totals=[1.0] * 500, cells=5000.0, of_cells=5000).check()
    with pytest.raises(InputError, match="contradict"):
        PriorFit(totals=[1.0] * 499 + [400.0], cells=5000.0, of_cells=5000).check()
    with pytest.raises(InputError, match="contradict"):
        PriorFit(totals=[1.0] * 500, cells=9000.0, of_cells=5000).check()
