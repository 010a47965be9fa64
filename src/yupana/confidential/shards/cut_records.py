"""Cut record files into shards by their keys, and count each shard; or count areas as their files lie.

Whatever lies in which part, the records of a key are brought together in one shard. Files of an area lie in folders of
the same name: where no key is in two areas, each is counted where its files are read, and no record is sent anywhere.
"""

import heapq
import os
import pickle
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeAlias

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.confidential.records.database import memory_limit, scratch_folder
from yupana.confidential.records.reader import open_records
from yupana.confidential.records.sources import Source, find_source, make_rows, rows_of
from yupana.confidential.records.validation import failing, merge_findings
from yupana.confidential.shards.shard_tasks import (
    EMPTY,
    CountedShards,
    Driver,
    Part,
    Shard,
    Told,
    count_told,
    hash_of_key,
    lay_out,
    link_others,
    linked,
    lost_rows,
    read_part,
    write_columns,
)
from yupana.engine.engine import MOST_BYTES, Engine
from yupana.errors import speaking_of
from yupana.files.columns import RecordFile
from yupana.files.database import named, quoted
from yupana.privacy.sealed import packed
from yupana.progress import told

Parts: TypeAlias = Mapping[str, tuple[int, ...]]
"""Numbers of parts by the name of their record file."""

_RANGES: Final = 16


def areas_of(sources: Mapping[str, Source], most: int | None) -> tuple[Parts, ...]:
    """Which parts of all record files lie together, in folders of the same name.

    Parameters
    ----------
    sources : mapping of str to Source
        By the name of the record file.
    most : int, optional
        How many areas are asked for; folders are put together to make as many, the largest first.

    Returns
    -------
    tuple of Parts
        Empty where a part lies in no folder, or there are fewer than two folders, or fewer than are asked for.
    """
    together: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    size: dict[str, int] = defaultdict(int)
    for name, source in sources.items():
        for part, (path, named_so) in enumerate(zip(source.paths, source.names, strict=True)):
            folders = named_so.split("/")[1:-1]
            if not folders:
                return ()
            together[folders[0]][name].append(part)
            size[folders[0]] += path.stat().st_size
    number = most or len(together)
    if len(together) < max(2, number):
        return ()
    return tuple(
        {name: tuple(sorted(part for folder in folders for part in together[folder][name])) for name in sources}
        for folders in shared_out(size, number)
    )


def shared_out(size: Mapping[str, int], number: int) -> list[list[str]]:
    """What has sizes, put into so many shares that are about as large, the largest first."""
    shares: list[tuple[int, int, list[str]]] = [(0, place, []) for place in range(number)]
    for name in sorted(size, key=lambda name: (-size[name], name)):
        taken, place, names = heapq.heappop(shares)
        heapq.heappush(shares, (taken + size[name], place, [*names, name]))
    return [names for _, _, names in sorted(shares, key=lambda share: share[1])]


@dataclass(frozen=True, slots=True)
class KeysOfAreas:
    """Tells whether two areas have a key in common, by 64 bits of each; they wait on disk, and are compared in ranges.

    Two keys may have the same bits, which is taken for one key in two areas: that costs time, and nothing else.

    Attributes
    ----------
    folder : Path
        Private and empty.
    """

    folder: Path

    def add(self, keys: Sequence[NDArray[np.uint64]]) -> None:
        """Take the keys of an area, those of each record file."""
        distinct = np.unique(np.concatenate(keys))
        bounds = np.searchsorted(distinct >> np.uint64(60), np.arange(_RANGES + 1))
        for number, (first, last) in enumerate(pairwise(bounds.tolist())):
            with (self.folder / str(number)).open("ab") as file:
                file.write(distinct[first:last].tobytes())

    def are_apart(self) -> bool:
        """Whether no key is in two areas."""
        for path in self.folder.iterdir():
            keys = np.sort(np.fromfile(path, np.uint64))
            if (keys[1:] == keys[:-1]).any():
                return False
        return True


_SHARD_BYTES: Final = 1 << 28
"""What a shard has of the record files, about."""


@dataclass(frozen=True, slots=True)
class _Parcel:
    """Some bytes of a Parquet file that holds a part's records of a shard."""

    schema: str
    file: str
    content: bytes


def count_by_key(driver: Driver, keys: Mapping[RecordFile, tuple[str, ...]], shard: Shard) -> CountedShards:
    """Cut each part by its keys into so many shards, and count them; by default as many as are best."""
    engine, progress = driver.engine, driver.progress
    number = driver.number or _number(engine, shard.sources.values())
    work = [
        pickle.dumps(shard.part(schema, part, keys[schema], number))
        for schema, source in shard.sources.items()
        for part in range(len(source.paths))
    ]
    task = partial(_gather, shard, number)
    progress("cutting records into shards", 0, 0)
    results = map(pickle.loads, engine.regroup(_cut, work, task, [number, *range(number)]))
    of_parts = next(results)
    counted = []
    with scratch_folder() as scratch:
        apart = KeysOfAreas(scratch)
        for (found, of_shard), values in told(results, "counting shards", number, progress):
            counted.append((found, driver.taken(of_shard)))
            if values:
                apart.add(values)
        if number > 1 and not apart.are_apart():
            # What occurs twice may be in two shards, so all that is wrong with it is told by one that has all records.
            driver.taker.forget()
            return count_by_key(replace(driver, number=1), keys, shard)
    unread = merge_findings([[finding for findings, _ in of_parts for finding in findings]])
    return CountedShards(unread, {name: digest for _, of in of_parts for name, digest in of.items()}, counted)


def _unique_values(task: Shard, folder: Path) -> list[NDArray[np.uint64]]:
    """The values in a shard of columns of which no value may occur twice, if these can be read."""
    values: list[NDArray[np.uint64]] = []
    for schema in (schema for schema in task.sources if schema.name in task.unique):
        source, _ = find_source(folder, schema)
        with task.limits.database() as db:
            if source is not None and not open_records(db, source, schema):
                values += _values_of(db, schema, task.unique, {name: named(name) for name in schema.header})
    return values


def _values_of(
    db: duckdb.DuckDBPyConnection, schema: RecordFile, unique: Mapping[str, str], typed: Mapping[str, str]
) -> list[NDArray[np.uint64]]:
    """64 bits of each value of the column of a file of which no value may occur twice, if it has one."""
    if schema.name not in unique:
        return []
    value = typed[unique[schema.name]]
    # Apart from keys that are in several files.
    key = f"hash(concat_ws('|', {quoted(unique[schema.name])}, CAST({value} AS VARCHAR)))"
    query = f"SELECT {key} AS key FROM {named(schema.relation)} WHERE {value} IS NOT NULL"
    return [np.asarray(db.execute(query).fetchnumpy()["key"], np.uint64)]


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
        write_columns(db, f"SELECT * FROM {named(one.schema.relation)} WHERE false", scratch)


def _write_apart(db: duckdb.DuckDBPyConnection, rows: str, folder: Path, shards: int) -> None:
    """Write rows as Parquet, a folder for each shard."""
    held = min(_ROWS_HELD, max(_FEWEST_HELD, memory_limit(db) // (_BYTES_OF_HELD * shards)))
    db.execute(f"SET partitioned_write_flush_threshold = {_ROWS_HELD}")
    db.execute(
        f"COPY ({rows}) TO {quoted(str(folder))} "
        f"(FORMAT parquet, PARTITION_BY ({_SHARD}), OVERWRITE_OR_IGNORE, ROW_GROUP_SIZE {held})"
    )


_ROWS_HELD: Final = 20_480
"""So many records of a shard wait until they are written, where memory allows it; the database's own number takes a
gigabyte for four shards, and twice the time."""
_FEWEST_HELD: Final = 2_048
_BYTES_OF_HELD: Final = 4_000


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
        lay_out(folder, task.whole(), task.sources)
        return packed((count_told(task, folder), _unique_values(task, folder)))


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


KeysOf: TypeAlias = Callable[[Sequence[Part]], list[NDArray[np.uint64]] | None]
"""Gives 64 bits of each key that parts have; None where these cannot be read."""


def count_by_area(
    driver: Driver, areas: Sequence[Sequence[Part]], shard: Shard, keys_of: KeysOf
) -> CountedShards | None:
    """Count each area where its files lie.

    Returns
    -------
    CountedShards or None
        None if a key is in two areas, so that they cannot be counted apart, or a rule is broken: whoever has all
        records tells.
    """
    counted = CountedShards([], {}, [])
    with scratch_folder() as scratch:
        apart = KeysOfAreas(scratch)
        results = driver.results(partial(_count_area, shard, keys_of), areas, "counting areas")
        for digests, keys, (found, of_area) in results:
            if keys is None or failing(found):
                return None
            counted.digests.update(digests)
            counted.by_shard.append((found, driver.taken(of_area)))
            apart.add(keys)
        return counted if apart.are_apart() else None


def _count_area(task: Shard, keys_of: KeysOf, work: bytes) -> bytes:
    """What was brought of an area, its keys, and what was found and counted; no keys if it cannot be read."""
    parts: list[Part] = pickle.loads(work)  # noqa: S301 (of our driver)
    with scratch_folder() as folder, speaking_of(task.folder, folder), task.limits.kept():
        paths = (path for source in task.sources.values() for path in source.paths)
        link_others(folder, task.whole(), {path.relative_to(task.folder).parts[0] for path in paths})
        with linked(folder, task.folder, parts) as (here, digests):
            keys = keys_of(here)
            found: Told = ((), None) if keys is None else count_told(task, folder)
    return packed((digests, keys, found))


def keys_of_records(unique: Mapping[str, str], parts: Sequence[Part]) -> list[NDArray[np.uint64]] | None:
    """The keys of records of an area, and values of columns of which none may occur twice."""
    keys: list[NDArray[np.uint64]] = []
    for one in parts:
        with one.limits.database() as db:
            if read_part(db, one, partial(_tell_keys, db, one, unique, keys))[0]:
                return None
    return keys


def _tell_keys(
    db: duckdb.DuckDBPyConnection,
    one: Part,
    unique: Mapping[str, str],
    keys: list[NDArray[np.uint64]],
    typed: Mapping[str, str],
) -> None:
    query = f"SELECT DISTINCT {hash_of_key(one, typed)} AS key FROM {named(one.schema.relation)}"
    keys.append(np.asarray(db.execute(query).fetchnumpy()["key"], np.uint64))
    keys += _values_of(db, one.schema, unique, typed)
