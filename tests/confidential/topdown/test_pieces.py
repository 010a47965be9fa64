"""Runs on a spine of pieces: block groups by place and AIAN area, whatever else the configuration says of spines."""

import json
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from spine_maker import read_table
from topdown_worlds import configuration, make_world, write_configuration, write_world

from yupana.cli.main import main

ESTIMATORS = ("topdown", "full-information")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    return write_world(make_world(7, (3, 2), quarters=True, states=1), folder / "data", quarters=True)


def run(data: Path, tmp_path: Path, spine: dict[str, Any], *options: str) -> dict[str, Any]:
    made = {**configuration((3, 2), rho="1"), "spine": spine}
    config = write_configuration(made, tmp_path / "config.json")
    out = tmp_path / "out"
    arguments = ["topdown", "run", str(config), str(data), str(out), "--seed", "3", "--overwrite"]
    assert main([*arguments, "--intervals", "none", *options]) == 0
    assert main(["check", str(out)]) == 0
    manifest: dict[str, Any] = json.loads((out / "manifest.json").read_text())
    return manifest


def units(out: Path) -> set[frozenset[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for row in read_table(out / "spine/blocks.csv"):
        found[row["Block_Group"]].add(row["block"])
    return set(map(frozenset, found.values()))


def pieces(data: Path) -> set[frozenset[str]]:
    """By the reference file alone; the world's states are none where county subdivisions govern."""
    found: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for row in read_table(data / "geography.txt"):
        block = "".join(row[name] for name in ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLKGRPCE", "TABBLK"))
        code = int(row["AIANNHCE"])
        area = row["AIANNHCE"] if code <= 7999 or 9000 <= code <= 9499 else ""
        found[block[:12], row["PLACEFP"], area].add(block)
    return set(map(frozenset, found.values()))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("kind", ["conventional", "optimized", "pieces"])
@pytest.mark.slow
def test_pieces_of_any_configuration(data: Path, tmp_path: Path, kind: str, estimator: str) -> None:
    # What a configuration says for an optimized spine does not cut pieces.
    more = {} if kind == "pieces" else {"classes": ["pme", "aian", "gq"], "fanout_cutoff": 0}
    manifest = run(data, tmp_path, {"kind": kind, **more}, "--spine", "pieces", "--estimator", estimator)
    assert manifest["parameters"]["spine"] == "pieces"
    assert "fanout_cutoff" not in manifest["configuration"]["spine"]
    assert "remarks" not in manifest["parameters"]
    assert units(tmp_path / "out") == pieces(data)
    # The release says all that is needed to repeat it.
    again = tmp_path / "again"
    source = str(tmp_path / "out/manifest.json")
    assert main(["topdown", "run", source, str(data), str(again), "--seed", "3"]) == 0
    for name in ("spine/geounits.csv", "counts/Block.csv"):
        assert (again / name).read_bytes() == (tmp_path / "out" / name).read_bytes()


@pytest.mark.thorough
def test_the_folder_of_a_spine_of_pieces(data: Path, tmp_path: Path) -> None:
    made = ["spine", "build", str(data / "geography.txt"), str(tmp_path / "spine"), "--kind", "pieces"]
    assert main(made) == 0
    manifest = run(data, tmp_path, {"kind": "conventional"}, "--spine", str(tmp_path / "spine"))
    assert manifest["parameters"]["spine"] == "pieces"
    assert units(tmp_path / "out") == pieces(data)
    given = (tmp_path / "out/spine/geounits.csv").read_bytes()
    run(data, tmp_path, {"kind": "conventional"}, "--spine", "pieces")
    assert (tmp_path / "out/spine/geounits.csv").read_bytes() == given


@pytest.mark.parametrize("live", [False, pytest.param(True, marks=pytest.mark.thorough)])
@pytest.mark.thorough
def test_a_cut_off_of_the_configuration_is_named(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], *, live: bool
) -> None:
    alike = shutil.copytree(data, tmp_path / "alike")
    header, *lines = (data / "geography.txt").read_text().splitlines()
    codes = {"AIANNHCE": "9999", "COUSUBFP": "00001", "PLACEFP": "00001"}
    same = ["|".join(map(codes.get, header.split("|"), line.split("|"))) for line in lines]
    (alike / "geography.txt").write_text("\n".join([header, *same]) + "\n")
    for spine in (
        {"kind": "pieces", "fanout_cutoff": 0},
        {"kind": "optimized", "classes": ["pme", "aian", "TABBLKGRPCE"], "fanout_cutoff": 0},
    ):
        (remark,) = run(alike, tmp_path, {**spine, "live": live})["parameters"]["remarks"]
        assert "the fan-out cut-off 0 cuts" in remark
        assert remark in capsys.readouterr().err
    run(alike, tmp_path, {"kind": "optimized", "fanout_cutoff": 0})
    assert "cut-off" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("spine", "told"),
    [
        ({"kind": "piece"}, "spine.kind"),
        ({"kind": "pieces", "classes": ["pme", "pme"]}, "pme is named twice"),
        ({"kind": "pieces", "fanout_cutoff": -1}, "spine.fanout_cutoff: must be a whole number"),
        ({"kind": "pieces", "classes": ["ward"]}, "ward"),
    ],
)
def test_refusals(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], spine: dict[str, Any], told: str
) -> None:
    config = write_configuration({**configuration((3, 2), rho="1"), "spine": spine}, tmp_path / "config.json")
    assert main(["topdown", "run", str(config), str(data), str(tmp_path / "out")]) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
