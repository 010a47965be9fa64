"""The same release as text and as Parquet, whole or gone on with, on every spine, by every mechanism and estimator."""

import json
from pathlib import Path
from typing import Any

import pytest
from topdown_worlds import configuration, make_world, write_configuration, write_world

from yupana.cli.main import main
from yupana.confidential.topdown import counter
from yupana.release.tables import read_table
from yupana.synthetic.census import synthesize
from yupana.topdown.descent import checkpoint
from yupana.topdown.posterior.results import Chains

SHAPE = (3, 2)
BUDGETS: dict[str, dict[str, str]] = {"zcdp": {"rho": "1/2"}, "pure": {"epsilon": "1/2"}}


def tables(out: Path) -> dict[str, Any]:
    """What all tables of a release hold, by path without its ending."""
    described = json.loads((out / "manifest.json").read_text())["tables"]
    return {str(Path(name).with_suffix("")): read_table(out / name) for name in described}


def world(folder: Path, spine: str, mechanism: str) -> list[str]:
    data = write_world(make_world(8, SHAPE, states=1), folder / "data")
    made = configuration(SHAPE, spine={"kind": spine}, mechanism=mechanism)
    del made["rho"]
    return [str(write_configuration({**made, **BUDGETS[mechanism]}, folder / "config.json")), str(data)]


def compare(arguments: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    line = ["topdown", "run", *arguments]
    more = ["--seed", "2", *options]
    assert main([*line, str(folder / "text"), *more]) == 0
    with monkeypatch.context() as patch:
        patch.setattr(counter, "write_outputs", lambda *_, **__: 1 / 0)
        assert main([*line, str(folder / "parquet"), *more, "--format", "parquet"]) == 1
    # Every draw is read back from the disk.
    assert main([*line, str(folder / "parquet"), *more, "--format", "parquet", "--resume"]) == 0
    assert tables(folder / "text") == tables(folder / "parquet")
    for out in ("text", "parquet"):
        assert main(["check", str(folder / out)]) == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("spine", ["conventional", "aian", "optimized", "pieces"])
@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        ("zcdp", ()),
        ("zcdp", ("--estimator", "full-information")),
        ("zcdp", ("--intervals", "monte-carlo", "--replicates", "2")),
        ("pure", ("--intervals", "none")),
    ],
)
@pytest.mark.thorough
def test_every_spine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spine: str, mechanism: str, options: tuple[str, ...]
) -> None:
    compare(world(tmp_path, spine, mechanism), tmp_path, monkeypatch, *options)


@pytest.mark.parametrize(
    ("name", "states"),
    [
        ("h1-2020-pr", ("72",)),
        pytest.param("pl94-2020-pr", ("72",), marks=pytest.mark.thorough),
        pytest.param("h1-2020-us", ("10", "44"), marks=pytest.mark.thorough),
    ],
)
@pytest.mark.thorough
def test_built_in_configurations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, states: tuple[str, ...]
) -> None:
    synthesize(tmp_path / "data", households=20, states=states, seed=1)
    compare([name, str(tmp_path / "data")], tmp_path, monkeypatch, "--intervals", "none")


POSTERIOR = ("--seed", "3", "--intervals", "none", "--estimator", "posterior")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release by the posterior, beside its configuration and records."""
    folder = tmp_path_factory.mktemp("posterior")
    write_world(make_world(5, SHAPE), folder / "data")
    write_configuration(configuration(SHAPE, rho="1/2"), folder / "config.json")
    assert main([*again(folder), str(folder / "out"), *POSTERIOR]) == 0
    return folder / "out"


def again(folder: Path) -> list[str]:
    return ["topdown", "run", str(folder / "config.json"), str(folder / "data")]


@pytest.mark.thorough
def test_a_posterior_that_dies_when_it_is_kept_is_made_again(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = [*again(whole.parent), str(tmp_path / "out"), *POSTERIOR]
    with monkeypatch.context() as patch:
        patch.setattr(Chains, "check", lambda _: 1 / 0)
        assert main(line) == 1
    counts = [path.name for path in (tmp_path / "out.checkpoint").glob("06-*.counts")]
    assert counts, "what was drawn is kept as a geolevel below the blocks"
    assert main([*line, "--resume"]) == 0
    assert tables(whole) == tables(tmp_path / "out")


@pytest.mark.parametrize("part", [1, pytest.param(7, marks=pytest.mark.thorough)])
@pytest.mark.thorough
def test_a_posterior_in_parts_is_that_of_the_whole(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    """Levels come in parts of a million counts; parents and their blocks are cut at other places."""
    monkeypatch.setattr(checkpoint, "_ENTRIES_AT_ONCE", part)
    assert main([*again(whole.parent), str(tmp_path / "out"), *POSTERIOR]) == 0
    assert tables(whole) == tables(tmp_path / "out")
