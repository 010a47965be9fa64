"""Runs get along with the memory they are given, and count the same in little of it."""

import argparse
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from census_maker import write_csv
from crowded_census import crowded
from edited_homes import homes_of, write_cef
from safetab_runs import PRODUCTION, needs_public_files
from safetab_worlds import random_world, seeded, write_data, write_parameters
from sharded_worlds import damaged, made, phsafe, refused
from watching import watched

from yupana.cli.main import main
from yupana.cli.options import size
from yupana.confidential.records import (
    declared,
    phsafe_records,
    safetab_records,
)
from yupana.confidential.records.database import (
    default_memory,
    memory_limit,
    private_database,
    require_memory,
    with_what_is_beside,
)
from yupana.confidential.shards.shard_tasks import TaskLimits
from yupana.engine.engine import LEAST_MEMORY, Engine
from yupana.errors import InputError
from yupana.products.phsafe.configuration import production_config
from yupana.synthetic.census import synthesize

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize(
    ("text", "amount"),
    [("4GB", 4 * 10**9), ("512MB", 512 * 10**6), ("1.5GiB", 3 * 2**29), ("2 TB", 2 * 10**12), ("300000kb", 3 * 10**8)],
)
def test_amounts_of_memory_are_read(text: str, amount: int) -> None:
    assert size(text) == amount


@pytest.mark.parametrize("text", ["", "4", "GB", "-4GB", "4 apples", "100MB", "0GB", "nanGB"])
def test_other_texts_are_no_amounts(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        size(text)


def test_the_database_gets_a_share_of_what_is_given() -> None:
    with private_database(10**9) as db:
        (limit,) = db.execute("SELECT current_setting('memory_limit')").fetchone() or ("",)
    assert limit in {"762.9 MiB", "800.0 MB"}
    assert default_memory() > 0
    # Of little the interpreter takes more than a fifth.
    for memory in (200 * 2**20, 300 * 2**20, 400 * 2**20):
        with private_database(memory) as db:
            assert memory_limit(db) == pytest.approx(max(memory - 150_000_000, memory // 2), rel=0.01)
        with private_database(with_what_is_beside(memory)) as db:
            assert memory_limit(db) == pytest.approx(0.8 * memory, rel=0.01)


def test_a_default_leaves_half_of_the_machine() -> None:
    total = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    assert default_memory() == pytest.approx(int(total.split()[1]) * 1024 / 2, rel=0.1)


def test_counts_do_not_depend_on_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, config = tmp_path / "data", tmp_path / "config.json"
    synthesize(data, households=60_000, seed=3, fmt="parquet")
    config.write_text(json.dumps(production_config()))
    tables = []
    for name, options in (("much", ()), ("little", ("--memory", "300MB"))):
        assert main(["phsafe", "exact", str(config), str(data), str(tmp_path / name), *options]) == 0
        tables.append({path.name: path.read_bytes() for path in (tmp_path / name).glob("*.csv")})
    assert tables[0] == tables[1]
    capsys.readouterr()


def test_too_little_memory_is_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["phsafe", "run", "config.json", "data", str(tmp_path / "out"), "--memory", "1MB"])
    assert stop.value.code == 2
    assert "--memory: 1MB is too little" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("needed", [10**7, 10**8, 10**9, 4 * 10**9])
def test_the_least_that_is_told_suffices_and_less_is_refused(needed: int) -> None:
    for memory in (300_000_000, 500_000_000, 1_000_000_000, 2_000_000_000, 8_000_000_000):
        with private_database(memory) as db:
            try:
                require_memory(db, needed, "that")
            except InputError as error:
                told = re.fullmatch(r"--memory is too little for that; give ([\d,]+) MB at least", str(error))
                assert told
                least = 10**6 * int(told[1].replace(",", ""))
                assert memory < least < 4 * (needed + 10**8)
                with private_database(least) as enough:
                    require_memory(enough, needed, "that")
            else:
                assert 5 * memory >= 4 * needed


def test_safetab_refuses_more_blocks_than_fit_before_records_are_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = random_world(seeded(1), noise="some")
    write_parameters(tmp_path / "parameters", world)
    write_data(tmp_path / "data", world)
    write_cef(tmp_path / "edited", homes_of(world), world.blocks)
    monkeypatch.setattr(declared, "BYTES_OF_A_BLOCK", 10**9)
    monkeypatch.setattr(declared, "check_file", None)
    monkeypatch.setattr(safetab_records, "load_lines", None)
    for data in ("data", "edited"):
        folders = [str(tmp_path / name) for name in ("parameters", data, "out")]
        assert main(["safetab-p", "run", *folders, "--memory", "300MB"]) == 2
        assert f"the {len(world.blocks)} blocks that are listed; give" in capsys.readouterr().err
        assert not (tmp_path / "out").exists()


@pytest.mark.slow
@needs_public_files
def test_safetab_counts_a_state_in_the_memory_that_is_given(tmp_path: Path) -> None:
    """Five million persons, who took 1.4 times as much while the counts of a state were held together."""
    synthesize(tmp_path / "data", households=2_000_000, states=("06",), seed=3, fmt="parquet")
    run = ("safetab-p", "run", str(PRODUCTION["safetab-p"]), str(tmp_path / "data"), str(tmp_path / "out"))
    command = [sys.executable, "-c", "from yupana.cli.start import entry; entry()", *run, "--memory", "300MB"]
    for options in ((), ("--shards", "4", "--overwrite")):
        found = watched().watch([*command, *options])
        assert 100_000_000 < found.whole.peak <= 1.25 * 300_000_000, found.stages


@pytest.mark.parametrize("seed", range(12))
def test_the_same_is_found_where_units_are_looked_at_part_by_part(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = seeded(seed)
    made_up = crowded(seed, random.choice([1, 5, 40]), breaks_rules=random.random() < 0.5)
    write_csv(tmp_path / "data", damaged(made_up, random) if seed % 3 else made_up)
    case = phsafe(tmp_path, random, drops=random.random() < 0.3)
    whole = refused(case, tmp_path / "data", None, None)
    released = None if whole else made(case, tmp_path / "data", tmp_path / "whole", None, None)
    monkeypatch.setattr(phsafe_records, "_BYTES_OF_A_UNIT", 10**9)
    monkeypatch.setattr(phsafe_records, "_BYTES_OF_A_KEY", 10**9)
    assert refused(case, tmp_path / "data", None, None) == whole
    if released:
        assert made(case, tmp_path / "data", tmp_path / "parts", None, None) == released


@pytest.mark.parametrize("slots", [1, 2, 10_000])
def test_a_task_has_what_it_needs_at_least(slots: int) -> None:
    """On a cluster with more slots than this machine has memory for, too."""
    engine: Engine = SimpleNamespace(slots=slots)  # type: ignore[assignment]
    limits = TaskLimits.on(engine, None)
    assert limits.memory == max(LEAST_MEMORY, default_memory() // slots)
    with limits.database() as db:
        assert memory_limit(db) >= 0.4 * LEAST_MEMORY
    assert TaskLimits.on(engine, 10**9).memory == 10**9
