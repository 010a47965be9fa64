"""District plans on a release: against one dense system, and every refusal, through the command line and Python."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from dense_release import dense, read
from opened_once import opened_once
from topdown_worlds import configuration, make_world, write_configuration, write_world

import yupana
from yupana.cli.main import main
from yupana.estimate import districts as asking
from yupana.release.folder import write_manifest

SHAPE = (3, 2)
Run = tuple[Path, Path]
CONVENTIONAL = pytest.mark.parametrize("runs", ["conventional"], indirect=True)


@pytest.fixture(scope="module", params=["conventional", pytest.param("optimized", marks=pytest.mark.thorough)])
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("districts")
    write_world(make_world(4, SHAPE, states=1), folder / "data")
    config = write_configuration(configuration(SHAPE, rho="4"), folder / "config.json")
    arguments = [str(config), str(folder / "data"), str(folder / "out"), "--seed", "5", "--spine", request.param]
    assert main(["topdown", "run", *arguments, "--noisy-measurements", str(folder / "noisy")]) == 0
    return folder / "out", folder / "noisy"


@pytest.fixture(scope="module", autouse=True)
def _measurements_are_opened_once() -> Iterator[None]:
    """What is refused of a question is refused with the same measurements open."""
    with opened_once(asking):
        yield


def write_plan(path: Path, rows: list[tuple[str, str]], header: str = "block,district") -> Path:
    path.write_text("\n".join([header, *(f"{block},{district}" for block, district in rows)]) + "\n")
    return path


def plan_of(out: Path, number: int) -> list[tuple[str, str]]:
    return [(row["block"], str(i % number + 8)) for i, row in enumerate(read(out / "spine/blocks.csv"))]


@pytest.mark.parametrize(
    ("query", "cells"),
    [
        ("total", [1, 1, 1, 1, 1, 1]),
        ("a1[a1=1]", [0, 1, 0, 1, 0, 1]),
        ("total - 2 * a0[a0=0] + detailed[a0=0, a1=1] - sum(a0*a1[a0=1|2, a1=0])", [-1, 0, 0, 1, 0, 1]),
    ],
)
@pytest.mark.thorough
def test_the_joint_law_is_that_of_one_dense_system(runs: Run, tmp_path: Path, query: str, cells: list[int]) -> None:
    out, noisy = runs
    _, estimate, covariance, names = dense(out, noisy, SHAPE)
    rows = plan_of(out, 3)
    # Numbers sort as numbers, and blocks may be written with 15 digits.
    found = yupana.districts(
        out, write_plan(tmp_path / "plan.csv", [(b[:11] + b[12:], d) for b, d in rows]), noisy, query=query
    )
    assert found.districts == ("8", "9", "10")
    weights = np.array([np.kron([dict(rows)[name] == d for name in names], cells) for d in found.districts])
    np.testing.assert_allclose(found.estimate, weights @ estimate, atol=1e-6)
    np.testing.assert_allclose(found.covariance, weights @ covariance @ weights.T, rtol=1e-7, atol=1e-6)
    counts = np.zeros(len(estimate))
    for row in read(out / "counts/Block.csv"):
        counts[names.index(row["geounit"]) * 6 + 2 * int(row["a0"]) + int(row["a1"])] = int(row["count"])
    np.testing.assert_allclose(found.published, weights @ counts)
    if query == "total":
        # The totals of the states are known, and so is their sum.
        assert found.covariance.sum() == pytest.approx(0, abs=1e-6)
        assert found.estimate.sum() == pytest.approx(found.published.sum())


@CONVENTIONAL
@pytest.mark.thorough
def test_what_is_told_holds_together(runs: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, noisy = runs
    plan = write_plan(tmp_path / "plan.csv", plan_of(out, 3), "GEOID20,District")
    more = ["--noisy-measurements", str(noisy), "--rule", "deviation", "--tolerance", "30%", "--chance", "0.9"]
    capsys.readouterr()
    assert main(["districts", str(out), str(plan), *more, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    found = yupana.districts(out, plan, noisy, rule="deviation", tolerance="0.3", chance=0.9)
    assert told == found.as_json()
    assert len(found) == found.table()["district"].__len__() == 3
    for row, variance in zip(told["districts"], np.diag(told["covariance"]), strict=True):
        assert row["upper"] - row["estimate"] == pytest.approx(1.6448536269514722 * variance**0.5)
    balance = told["balance"]
    assert balance["at_least"] <= balance["chance"] <= balance["at_most"]
    if balance["tightened"] is not None and balance["published"] <= balance["tightened"]:
        assert balance["at_least"] >= 0.9
    assert main(["districts", str(out), str(plan), *more]) == 0
    said = capsys.readouterr().out
    assert all(f"\n{name} " in said for name in found.districts)
    assert "largest difference from the ideal at most 30 % of the ideal" in said


def refused(capsys: pytest.CaptureFixture[str], out: Path, plan: Path, noisy: Path, *more: str) -> str:
    capsys.readouterr()
    assert main(["districts", str(out), str(plan), "--noisy-measurements", str(noisy), *more]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    return said.err


@CONVENTIONAL
@pytest.mark.thorough
def test_plans_that_are_none_are_refused(runs: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, noisy = runs
    rows, path = plan_of(out, 3), tmp_path / "plan.csv"

    def told(changed: list[tuple[str, str]], header: str = "block,district") -> str:
        return refused(capsys, out, write_plan(path, changed, header), noisy)

    unknown = rows[0][0][:12] + rows[0][0][11] + "999"
    everything = told([*rows[2:], (unknown, "8"), rows[4], (rows[1][0], "")])
    assert f"1 block is not in the release: {unknown}\n    their counties are known" in everything
    assert f"1 block is listed twice: {rows[4][0]}\n" in everything
    assert "line 2, column block: the value is not a code of 15 to 16 digits" in told([("9999", "8"), *rows])
    assert "the block group disagrees" in told([(f"{rows[0][0][:11]}9{rows[0][0][12:]}", "8"), *rows[1:]])
    assert f"1 block is left out: {rows[0][0]}\n  1 block is in no district: {rows[1][0]}" in everything
    assert "4 blocks are left out" in told(rows[4:])
    assert "one district alone, 7" in told([(block, "7") for block, _ in rows])
    assert yupana.districts(out, write_plan(path, rows, "a,b"), noisy).districts == ("8", "9", "10")
    assert "no column block" in told([("x", "8"), *rows], "a,b")
    assert "block and GEOID may all be" in told(rows, "block,GEOID")
    path.write_text("block,district,name\n" + "".join(f"{b},{d},x\n" for b, d in rows))
    assert yupana.districts(out, path, noisy).districts == ("8", "9", "10")
    path.write_text("block,area,name\n" + "".join(f"{b},{d},x\n" for b, d in rows))
    assert "columns block, area, name" in refused(capsys, out, path, noisy)
    path.write_text("block,district\n")
    assert "no rows" in refused(capsys, out, path, noisy)
    assert str(tmp_path / "nowhere") in refused(capsys, out, tmp_path / "nowhere", noisy)


@pytest.mark.thorough
def test_a_plan_may_have_the_blocks_that_a_live_spine_leaves_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = make_world(4, (8, 2), quarters=True)
    write_world(world, tmp_path / "data", quarters=True)
    spine = {"kind": "conventional", "live": True}
    config = write_configuration(configuration((8, 2), rho="4", spine=spine), tmp_path / "config.json")
    out, noisy = tmp_path / "out", tmp_path / "noisy"
    arguments = [str(config), str(tmp_path / "data"), str(out), "--seed", "5", "--noisy-measurements", str(noisy)]
    assert main(["topdown", "run", *arguments]) == 0
    live = {row["block"] for row in read(out / "spine/blocks.csv")}
    dead = [block for block in world.blocks if block not in live]
    assert dead
    plan = [(block, str(int(i % 2 == 0))) for i, block in enumerate(world.blocks)]
    whole = yupana.districts(out, write_plan(tmp_path / "whole.csv", plan), noisy)
    part = yupana.districts(out, write_plan(tmp_path / "part.csv", [one for one in plan if one[0] in live]), noisy)
    np.testing.assert_array_equal(whole.published, part.published)
    np.testing.assert_allclose(whole.covariance, part.covariance)
    assert f"{len(dead)} block" in whole.notes[-1]
    assert whole.notes[:-1] == part.notes
    said = refused(capsys, out, write_plan(tmp_path / "short.csv", [row for row in plan if row[0] != min(live)]), noisy)
    assert f"1 block is left out: {min(live)}" in said
    twice = [*plan, (dead[0], "1")]
    said = refused(capsys, out, write_plan(tmp_path / "twice.csv", twice), noisy)
    assert f"1 block is listed twice, in two districts: {dead[0]}" in said


@CONVENTIONAL
@pytest.mark.thorough
def test_what_cannot_be_asked_is_refused(runs: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, noisy = runs
    plan = write_plan(tmp_path / "plan.csv", plan_of(out, 3))
    for query, words in (
        ("race", "race is nothing that is counted here; there are total, detailed, a0, a1"),
        ("P0010001", "nothing that is counted here"),
        ("a0", "they differ in a0"),
        ("a0[a1=0]", "no column a1; it has a0"),
        ("a0[a0=7]", "'7' is none of 0, 1, 2"),
        ("total[a0=1]", "none: it is one number"),
        ("a0[a0=1] / total", "only sums and differences"),
        ("total + 5", "only sums and differences"),
        ("total - total", "only sums and differences"),
        ("a0[a0=1] - total", "nobody of it together"),
        ("", "character 1"),
    ):
        assert words in refused(capsys, out, plan, noisy, "--query", query), query
    assert "above 1/2" in refused(capsys, out, plan, noisy, "--chance", "0.5")
    assert "does not hold noisy measurements" in refused(capsys, out, plan, out)
    assert "name the release" in refused(capsys, noisy, plan, noisy)
    other = tmp_path / "other"
    shutil.copytree(noisy, other)
    manifest = json.loads((noisy / "manifest.json").read_text())
    write_manifest(other, {**manifest, "created": "then"})
    assert "another run" in refused(capsys, out, plan, other)
    write_manifest(other, {**manifest, "system": "else", "product": "phsafe"})
    assert "not a release of TopDown" in refused(capsys, other, plan, noisy)
    with pytest.raises(yupana.ConfigError, match="tolerance"):
        yupana.districts(out, plan, noisy, tolerance=2)
    with pytest.raises(yupana.ConfigError, match="rule"):
        yupana.districts(out, plan, noisy, rule="evenness")  # type: ignore[arg-type]
