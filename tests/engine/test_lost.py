"""Records that another process removes while they are counted in shards: the run ends, and counts no remainder."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from census_maker import seeded, write_csv, write_parquet
from crowded_census import crowded
from record_folders import by_area
from sharded_worlds import made, phsafe

from yupana.confidential.shards import cut_records
from yupana.confidential.shards.shard_tasks import Shard
from yupana.engine.local import LocalEngine
from yupana.errors import EngineError


@pytest.mark.parametrize("what", ["folder", "file", "beginning"])
@pytest.mark.slow
def test_rows_of_a_shard_that_are_gone_are_missed(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them, one file, or a file of which there is more to come."""
    write_csv(tmp_path / "data", crowded(3, 40))
    parcels = tmp_path / "parcels"
    parcels.mkdir()
    monkeypatch.setattr(cut_records, "MOST_BYTES", 256)
    real, seen = cut_records.rows_of, []

    def rows(folder: Path, schema: str) -> Path:
        found = real(folder, schema)
        files = sorted(found.glob("*.parquet")) if found.is_dir() else []
        if not seen and len(files) > 1:
            seen.append(what)
            if what == "folder":
                shutil.rmtree(found)
            else:
                files[-1 if what == "beginning" else 0].unlink()
        return found

    monkeypatch.setattr(cut_records, "rows_of", rows)
    with pytest.raises(EngineError, match="records of a shard were lost"):
        made(phsafe(tmp_path, seeded(3)), tmp_path / "data", tmp_path / "out", LocalEngine(parcels), 3)
    assert seen


@pytest.mark.thorough
def test_files_of_an_area_that_are_gone_are_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of an area's files of some records: without them it would look like one where nobody lives."""
    write_parquet(tmp_path / "data", crowded(3, 40), "text")
    data, parcels = by_area(tmp_path / "data", tmp_path / "folders"), tmp_path / "parcels"
    parcels.mkdir()
    real, removed = cut_records.count_told, []

    def count(task: Shard, folder: Path) -> Any:  # noqa: ANN401
        for path in sorted((folder / "persons").rglob("*.parquet")) if not removed else ():
            path.unlink()
            removed.append(path)
        return real(task, folder)

    monkeypatch.setattr(cut_records, "count_told", count)
    with pytest.raises(EngineError, match="records of a shard were lost"):
        made(phsafe(tmp_path, seeded(3)), data, tmp_path / "out", LocalEngine(parcels), None)
    assert removed
