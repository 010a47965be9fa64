"""A worker that finds another file than the driver at the same place refuses it, and tells nothing of what it holds."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from census_maker import seeded, write_parquet
from crowded_census import crowded
from record_folders import by_area
from safetab_worlds import random_world, write_data, write_parameters
from sharded_worlds import made, phsafe

from yupana.confidential.shards.shard_tasks import Stamp
from yupana.engine.engine import Cut, Engine, Gather, Task
from yupana.engine.local import LocalEngine
from yupana.errors import InputError
from yupana.interface.configured import Configured, setup


@dataclass(frozen=True)
class Elsewhere:
    """An engine whose workers have another copy of the files, when there is work, or when it is brought together."""

    engine: Engine
    change: Callable[[], None]
    later: bool = False

    @property
    def slots(self) -> int:
        return self.engine.slots

    def map(self, task: Task, work: Iterable[bytes]) -> Iterator[bytes]:
        self.change()
        return self.engine.map(task, work)

    def regroup(self, cut: Cut, work: Sequence[bytes], gather: Gather, shards: Sequence[int]) -> Iterator[bytes]:
        if not self.later:
            self.change()

        def gathering(shard: int, parcels: Iterator[bytes]) -> bytes:
            if self.later:
                self.change()
            return gather(shard, parcels)

        return self.engine.regroup(cut, work, gathering, shards)


def copied(path: Path, what: str) -> Callable[[], None]:
    """Another copy: of another time, of another size at the same time, or none."""
    status = path.stat()

    def change() -> None:
        if what == "gone":
            path.unlink(missing_ok=True)
        elif what == "time":
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 10**9))
        else:
            path.write_bytes(path.read_bytes() + b"\n")
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    return change


def check_refused(case: Configured, data: Path, out: Path, path: Path, engine: Elsewhere, shards: int | None) -> None:
    with pytest.raises(InputError, match=r"is not the same file on .* as where the run began") as told:
        made(case, data, out, engine, shards)
    assert str(told.value).startswith(f"{path} ")


@pytest.mark.parametrize("what", ["time", "size", "gone"])
@pytest.mark.parametrize("lie", ["one file", "by area"])
@pytest.mark.slow
def test_another_copy_of_records_is_refused(what: str, lie: str, tmp_path: Path) -> None:
    write_parquet(tmp_path / "data", crowded(3, 40), "text")
    data, shards, path = tmp_path / "data", 3, tmp_path / "data" / "units.parquet"
    if lie == "by area":
        data = by_area(data, tmp_path / "folders")
        shards, path = None, data / "units" / "area=2" / "part-1.parquet"
    (tmp_path / "parcels").mkdir()
    engine = Elsewhere(LocalEngine(tmp_path / "parcels"), copied(path, what))
    check_refused(phsafe(tmp_path, seeded(3)), data, tmp_path / "out", path, engine, shards)


@pytest.mark.parametrize("what", ["time", "size", "gone"])
def test_another_copy_of_a_public_file_is_refused(what: str, tmp_path: Path) -> None:
    of = random_world(seeded(1), noise="some")
    case, data = setup("safetab-p", write_parameters(tmp_path / "parameters", of)), write_data(tmp_path / "data", of)
    (tmp_path / "parcels").mkdir()
    path = data / "GRF-C.txt"
    engine = Elsewhere(LocalEngine(tmp_path / "parcels"), copied(path, what), later=True)
    check_refused(case, data, tmp_path / "out", path, engine, 2)


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_parquet(tmp_path / "data", crowded(3, 40), "text")
    path = tmp_path / "data" / "geo.parquet"
    (tmp_path / "parcels").mkdir()
    real, asked = Stamp.of, []

    def late(of: Path) -> Stamp | None:
        asked.extend([of] * (of == path))
        if len(asked) == 3:
            copied(path, "time")()
        return real(of)

    monkeypatch.setattr(Stamp, "of", late)
    engine = Elsewhere(LocalEngine(tmp_path / "parcels"), lambda: None)
    check_refused(phsafe(tmp_path, seeded(3)), tmp_path / "data", tmp_path / "out", path, engine, 3)
