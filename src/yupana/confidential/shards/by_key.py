"""Cut record files by keys, and bring together what belongs to a shard: all parts, whatever lies in them."""

import os
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import duckdb

from yupana.confidential.records.database import memory_limit, numbers, scratch_folder
from yupana.confidential.records.findings import merge_findings
from yupana.confidential.records.reader import Source
from yupana.confidential.shards.folder import (
    EMPTY,
    CountedShards,
    Part,
    Shard,
    Taker,
    TaskLimits,
    count_folder,
    hash_of_key,
    lost_rows,
    make_rows,
    read_part,
    rows_of,
    write_columns,
)
from yupana.engine.engine import MOST_BYTES, Engine
from yupana.files.columns import RecordFile
from yupana.files.database import named, quoted
from yupana.privacy.sealed import packed
from yupana.progress import Progress, told

_SHARD_BYTES: Final = 1 << 28
"""What a shard has of the record files, about."""


@dataclass(frozen=True, slots=True)
class _Parcel:
    """Some bytes of a Parquet file that holds a part's records of a shard."""

    schema: str
    file: str
    content: bytes


def count_by_key(
    engine: Engine,
    keys: Mapping[RecordFile, tuple[str, ...]],
    most: int | None,
    shard: Shard,
    progress: Progress,
    taker: Taker,
) -> CountedShards:
    """Cut each part by its keys into so many shards, and count them; by default as many as are best."""
    number = most or _number(engine, shard.sources.values())
    work = [
        pickle.dumps(shard.part(schema, part, keys[schema], number))
        for schema, source in shard.sources.items()
        for part in range(len(source.paths))
    ]
    task = partial(_gather, shard, number)
    progress("cutting records into shards", 0, 0)
    results = map(pickle.loads, engine.regroup(_cut, work, task, [number, *range(number)]))
    of_parts = next(results)
    counted = [
        (found, None if of_shard is None else taker.take(of_shard))
        for found, of_shard in told(results, "counting shards", number, progress)
    ]
    unread = merge_findings([[finding for findings, _ in of_parts for finding in findings]])
    return CountedShards(unread, {name: digest for _, of in of_parts for name, digest in of.items()}, counted)


def is_repeated(engine: Engine, unique: Mapping[RecordFile, str], most: int | None, shard: Shard) -> bool:
    """Whether a value of a column that must be unique occurs twice, in whichever parts of its file.

    Parts that cannot be read are passed over: `count_by_key` tells of them.

    Parameters
    ----------
    engine : Engine
    unique : mapping of RecordFile to str
        The column of each file.
    most : int or None
        In how many pieces the values are looked at; by default as many as are best.
    shard : Shard
    """
    number = most or _number(engine, shard.sources.values())
    work = [
        pickle.dumps(shard.part(schema, part, (column,), number))
        for schema, column in unique.items()
        for part in range(len(shard.sources[schema].paths))
    ]
    look = partial(_look_for_repeated, shard.limits, tuple(unique))
    return b"1" in set(engine.regroup(_cut_values, work, look, list(range(number))))


def _cut_values(work: bytes) -> Iterator[tuple[int, bytes]]:
    """Parcels of the values of a part's key, by what they are."""
    one: Part = pickle.loads(work)  # noqa: S301 (of our driver)
    with scratch_folder() as scratch, one.limits.database() as db:
        if read_part(db, one, partial(_write_values, db, scratch, one))[0]:
            return
        for shard in range(one.shards):
            for path in sorted((scratch / f"{_SHARD}={shard}").glob("*")):
                yield from _parcels(shard, path, f"{one.part:06d}-{path.stem}", one)


def _write_values(db: duckdb.DuckDBPyConnection, scratch: Path, one: Part, typed: Mapping[str, str]) -> None:
    value = f"CAST({typed[one.key[0]]} AS VARCHAR)"
    rows = f"{value} AS value, {hash_of_key(one, typed)} % {one.shards} AS {_SHARD}"
    _write_apart(db, f"SELECT {rows} FROM {named(one.schema.relation)} WHERE {value} IS NOT NULL", scratch, one.shards)


def _look_for_repeated(
    limits: TaskLimits, schemas: Sequence[RecordFile], _shard: int, parcels: Iterator[bytes]
) -> bytes:
    """Whether some value of a file is there twice."""
    with scratch_folder() as folder, limits.database() as db:
        make_rows(folder, schemas)
        _write_rows(folder, parcels)
        for schema in schemas:
            if not any(rows_of(folder, schema.name).iterdir()):
                continue
            every = f"read_parquet({quoted(str(rows_of(folder, schema.name) / '*'))}, hive_partitioning = false)"
            (again,) = numbers(db, f"SELECT count(*) - count(DISTINCT value) FROM {every}")
            if again:
                return b"1"
    return b""


def _number(engine: Engine, sources: Iterable[Source]) -> int:
    """How many shards keep the engine busy and are not too large."""
    size = sum(path.stat().st_size for source in sources for path in source.paths)
    return max(engine.slots, -(-size // _SHARD_BYTES))


def _cut(work: bytes) -> Iterator[tuple[int, bytes]]:
    """The parcels of a part; what cannot be read goes to the shard after the last."""
    one: Part = pickle.loads(work)  # noqa: S301 (of our driver)
    with scratch_folder() as scratch, one.limits.database() as db:
        findings, digest = read_part(db, one, partial(_write_by_shard, db, scratch, one))
        if findings or digest:
            yield one.shards, pickle.dumps((findings, digest))
        if findings:
            return
        for shard in range(one.shards):
            for path in sorted((scratch / f"{_SHARD}={shard}").glob("*")):
                yield from _parcels(shard, path, f"{one.part:06d}-{path.stem}", one)
            if one.part == 0:
                yield from _parcels(shard, scratch / EMPTY, "columns", one)


_SHARD: Final = "shard_of_record"


def _write_by_shard(db: duckdb.DuckDBPyConnection, scratch: Path, one: Part, typed: Mapping[str, str]) -> None:
    """Write the records of a part by shard."""
    rows = f"SELECT *, {hash_of_key(one, typed)} % {one.shards} AS {_SHARD} FROM {named(one.schema.relation)}"
    _write_apart(db, rows, scratch, one.shards)
    if one.part == 0:
        write_columns(db, one, scratch, typed)


_ROWS_HELD: Final = 20_480
"""So many records of a shard wait until they are written, where memory allows it; the database's own number takes a
gigabyte for four shards, and twice the time."""
_FEWEST_HELD: Final = 2_048
_BYTES_OF_HELD: Final = 4_000


def _write_apart(db: duckdb.DuckDBPyConnection, rows: str, folder: Path, shards: int) -> None:
    """Write rows as Parquet, a folder for each shard."""
    held = min(_ROWS_HELD, max(_FEWEST_HELD, memory_limit(db) // (_BYTES_OF_HELD * shards)))
    db.execute(f"SET partitioned_write_flush_threshold = {_ROWS_HELD}")
    db.execute(
        f"COPY ({rows}) TO {quoted(str(folder))} "
        f"(FORMAT parquet, PARTITION_BY ({_SHARD}), OVERWRITE_OR_IGNORE, ROW_GROUP_SIZE {held})"
    )


def _parcels(shard: int, path: Path, name: str, one: Part) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as file:
        while content := file.read(MOST_BYTES):
            yield shard, pickle.dumps(_Parcel(one.schema.name, f"{name}.parquet", content))


def _gather(task: Shard, findings: int, shard: int, parcels: Iterator[bytes]) -> bytes:
    """Count a shard; that of a number after the last tells what could not be read."""
    if shard == findings:
        return pickle.dumps([pickle.loads(parcel) for parcel in parcels])  # noqa: S301 (of a worker of ours)
    with scratch_folder() as folder, task.limits.kept():
        make_rows(folder, task.sources)
        _write_rows(folder, parcels)
        return packed(count_folder(task, folder))


def _write_rows(folder: Path, parcels: Iterator[bytes]) -> None:
    """Write the files of a shard, whose parcels come one after the other.

    Raises
    ------
    EngineError
        If some are gone at the end, or before.
    """
    sizes: dict[Path, int] = {}
    try:
        for parcel in parcels:
            one: _Parcel = pickle.loads(parcel)  # noqa: S301 (of a worker of ours)
            path = rows_of(folder, one.schema) / one.file
            # A file is made once: its end alone, where others have removed its beginning, is no file of records.
            with path.open("r+b" if path in sizes else "xb") as file:
                file.seek(0, os.SEEK_END)
                file.write(one.content)
            sizes[path] = sizes.get(path, 0) + len(one.content)
        whole = all(path.stat().st_size == size for path, size in sizes.items())
    except FileNotFoundError:
        whole = False
    if not whole:
        raise lost_rows()
