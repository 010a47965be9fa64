"""Count records area by area where their files lie so: nothing is sent from one worker to another."""

import pickle
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.confidential.records.database import scratch_folder
from yupana.confidential.records.findings import Finding, merge_findings
from yupana.confidential.shards.areas import KeysOfAreas, Parts
from yupana.confidential.shards.folder import (
    CountedShards,
    Part,
    Shard,
    Taker,
    count_folder,
    hash_of_key,
    lost_rows,
    make_rows,
    read_part,
    rows_of,
    write_columns,
)
from yupana.engine.engine import Engine
from yupana.files.columns import RecordFile
from yupana.files.database import named, quoted
from yupana.privacy.sealed import packed
from yupana.progress import Progress, told


def count_by_area(
    engine: Engine,
    keys: Mapping[RecordFile, tuple[str, ...]],
    areas: Sequence[Parts],
    shard: Shard,
    progress: Progress,
    taker: Taker,
) -> CountedShards | None:
    """Count each area where its files are read; None if a key is in two areas, so that they cannot be counted apart."""
    work = [
        pickle.dumps(
            [shard.part(schema, part, keys[schema], 1) for schema in shard.sources for part in area[schema.name]]
        )
        for area in areas
    ]
    counted = CountedShards([], {}, [])
    with scratch_folder() as scratch:
        apart = KeysOfAreas(scratch)
        results = engine.map(partial(_count_area, shard), work)
        for result in told(results, "counting areas", len(work), progress):
            unread, digests, of_area, (found, of_shard) = pickle.loads(result)  # noqa: S301 (of a worker of ours)
            counted.unread.extend(unread)
            counted.digests.update(digests)
            counted.by_shard.append((found, None if of_shard is None else taker.take(of_shard)))
            apart.add(of_area)
        if not counted.unread and not apart.are_apart():
            return None
    return CountedShards(merge_findings([counted.unread]), counted.digests, counted.by_shard)


def _count_area(task: Shard, work: bytes) -> bytes:
    """What cannot be read of an area, what was brought, the keys that it has, and what is wrong and was counted."""
    parts: list[Part] = pickle.loads(work)  # noqa: S301 (of our driver)
    unread: list[Finding] = []
    digests: dict[str, str] = {}
    keys = [np.empty(0, np.uint64)]
    with scratch_folder() as folder:
        make_rows(folder, task.sources)
        for one in parts:
            with task.limits.database() as db:
                wrong, digest = read_part(db, one, partial(_write_area, db, folder, one, keys))
                unread += wrong
                digests |= digest
        # An area without a file has no records; one whose files others have removed must not be taken for it.
        if not unread and not all(_rows(folder, one).is_file() for one in parts):
            raise lost_rows()
        for schema in task.sources:
            if not any(rows_of(folder, schema.name).iterdir()) and not unread:
                with task.limits.database() as db:
                    first = task.part(schema, 0, (), 1)
                    unread += read_part(db, first, partial(write_columns, db, first, rows_of(folder, schema.name)))[0]
        if unread:
            return packed((unread, digests, keys, ((), None)))
        with task.limits.kept():
            return packed((unread, digests, keys, count_folder(task, folder)))


def _write_area(
    db: duckdb.DuckDBPyConnection, folder: Path, one: Part, keys: list[NDArray[np.uint64]], typed: Mapping[str, str]
) -> None:
    """Write the records of a part, and tell their keys."""
    relation = named(one.schema.relation)
    db.execute(f"COPY (SELECT * FROM {relation}) TO {quoted(str(_rows(folder, one)))} (FORMAT parquet)")
    query = f"SELECT DISTINCT {hash_of_key(one, typed)} AS key FROM {relation}"
    keys.append(np.asarray(db.execute(query).fetchnumpy()["key"], np.uint64))


def _rows(folder: Path, one: Part) -> Path:
    """Where the rows of a part of an area lie."""
    return rows_of(folder, one.schema.name) / f"{one.part:06d}.parquet"
