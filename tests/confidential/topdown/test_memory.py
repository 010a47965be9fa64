"""A run of TopDown gets along with the memory it is given, as seen from outside, and less than it needs is refused."""

import sys
from pathlib import Path

import pytest
from topdown_worlds import configuration, make_world, write_configuration, write_world
from watching import watched

from yupana.cli.main import main
from yupana.confidential.topdown.resources import MemoryNeeds
from yupana.errors import ConfigError
from yupana.synthetic.census import synthesize

pytestmark = pytest.mark.thorough


def test_less_than_a_run_needs_is_refused_before_anything_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_world(make_world(1, (3, 2)), tmp_path / "data")
    (data / "histogram.csv").write_text("not read")
    config = write_configuration(configuration((3, 2), rho="1"), tmp_path / "config.json")
    ledger = ("--ledger", str(tmp_path / "ledger.json"), "--dataset", "D", "--limit", "3")
    run = ["topdown", "run", str(config), str(data), str(tmp_path / "out"), *ledger]
    assert main([*run, "--memory", "300MB"]) == 2
    told = capsys.readouterr().err
    assert "--memory: 300 MB are too little for this run, which needs 501 MB: 400 for itself" in told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "data"]
    assert main([*run, "--memory", "501MB"]) == 2
    assert "histogram.csv" in capsys.readouterr().err


def test_a_run_needs_more_for_more_blocks_and_for_estimates_that_it_keeps() -> None:
    few, many, full = (
        MemoryNeeds.of(listed, 2016, estimator)
        for listed, estimator in ((1000, "topdown"), (8_000_000, "topdown"), (1000, "full-information"))
    )
    assert few.least < full.least < many.least
    assert many.least < 4_000_000_000
    many.check(None)
    many.check(many.least)
    with pytest.raises(ConfigError, match=f"needs {-(-many.least // 10**6):,} MB"):
        many.check(many.least - 1)
    assert many.for_database(many.least + 7) == many.least + 7 - many.held
    assert 0 < many.for_database(None) <= 6_000_000_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "households", "memory"), [("topdown", 400_000, 700), ("full-information", 100_000, 1700)]
)
def test_the_process_tree_stays_within_what_is_given(
    tmp_path: Path, estimator: str, households: int, memory: int
) -> None:
    """A million persons, or a quarter of it: what all processes hold together, pages that they share counted once."""
    synthesize(tmp_path / "data", households=households, states=("06", "44"), seed=3, fmt="parquet")
    made = []
    # That batches and processes decide nothing of what full information makes, test_solvers.py shows in small worlds.
    any_memory = [("any", tuple[str, ...]())] if estimator == "topdown" else []
    for name, options in (("little", ("--memory", f"{memory}MB")), *any_memory):
        run = ("topdown", "run", "pl94-2020-us", str(tmp_path / "data"), str(tmp_path / name), "--seed", "1", *options)
        command = [sys.executable, "-c", "from yupana.cli.start import entry; entry()", *run]
        found = watched().watch([*command, "--intervals", "none", "--estimator", estimator])
        assert found.whole.peak > 100_000_000
        assert not options or found.whole.peak <= 1.25 * memory * 10**6, found.stages
        made.append({path.name: path.read_bytes() for path in (tmp_path / name / "counts").iterdir()})
    assert all(files == made[0] for files in made)
