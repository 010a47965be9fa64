"""Count SafeTab's records out of the Census Edited File state by state, as its files lie.

A task makes of the files of some states what SafeTab's own files would be, and counts these. Areas may cross states,
and one where no housing unit stands is left out: so the blocks of all states where one stands are found first.
"""

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import duckdb
import numpy as np

from yupana.arrays import Flags
from yupana.confidential.records.cef import BLOCK, EditedNames, find_states, open_reference
from yupana.confidential.records.database import scratch_folder
from yupana.confidential.records.detailed_cef import blocks_with_housing, detailed_sources, open_detailed_cef
from yupana.confidential.records.detailed_rules import BLOCK_CODE
from yupana.confidential.records.findings import require_none
from yupana.confidential.records.fixed_width import ShapeError
from yupana.confidential.records.reader import RECORD, Source, write_shard
from yupana.confidential.shards.areas import shared_out
from yupana.confidential.shards.by_state import EditedFiles, files_of, link_files, require_stamps, speaking_of
from yupana.confidential.shards.folder import EMPTY, Shard, Taker, TaskLimits, count_told, make_rows, rows_of
from yupana.engine.engine import Engine
from yupana.files.columns import HOUSEHOLD_RECORDS, HOUSING_UNITS, PERSON_RECORDS, REFERENCE, RecordFile
from yupana.files.database import quoted
from yupana.privacy.sealed import Sealed, packed
from yupana.progress import Progress, told

_OF_STATES: Final = ("per", "unit")
"""The files that a task has of its states alone."""

DETAILED: Final = (PERSON_RECORDS, HOUSEHOLD_RECORDS)
"""SafeTab's own records, which must not lie beside the edited file."""

_Work: TypeAlias = tuple[EditedFiles, EditedNames, bytes]
"""The files of a shard, how they are named, and of each block that is listed a bit: whether a housing unit stands."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CountedDetails(Sealed):
    """What came of an edited file that breaks no rule.

    Attributes
    ----------
    stands : numpy.ndarray of bool, shape (blocks,)
        Whether a housing unit stands in a block, in the order of the reference files.
    parts : tuple
        What was counted, by shard.
    """

    stands: Flags
    parts: tuple[Any, ...]


def count_details_by_state(
    engine: Engine,
    most: int | None,
    shard: Shard,
    schema: RecordFile,
    codes: frozenset[int],
    progress: Progress,
    taker: Taker,
) -> CountedDetails | None:
    """Count the files of some states in each shard; in so many shards at most, by default one for each state.

    Parameters
    ----------
    engine : Engine
    most : int or None
    shard : Shard
        Of the folder that holds the edited file.
    schema : RecordFile
        Which of `DETAILED` is made.
    codes : frozenset of int
        The race and ethnicity codes there are.
    progress : callable
    taker : Taker

    Returns
    -------
    CountedDetails or None
        None where a rule is broken, or there is no record: whoever reads all files together tells.
    """
    names, files = find_states(shard.folder, DETAILED)
    if not files:
        return None
    by_state = {state: files_of({kind: {state: files[kind][state]} for kind in _OF_STATES}) for state in files["per"]}
    # A unit's block may be in the file of any state.
    listed = files_of({"grfc": files["grfc"]})
    units = [*map(pickle.dumps, by_state.values())]
    found = told(engine.map(_find_housing, units), "finding housing units", len(units), progress)
    if (stands := _standing(shard.limits, shard.folder, found)) is None:
        return None
    size = {state: sum(files[kind][state].stat().st_size for kind in _OF_STATES) for state in by_state}
    bits = np.packbits(stands).tobytes()
    work = []
    for states in shared_out(size, min(most or len(size), len(size))):
        of_states = {
            kind: {name: place for state in states for name, place in by_state[state][kind].items()}
            for kind in _OF_STATES
        }
        work.append(pickle.dumps(({**of_states, **listed}, names, bits)))
    parts = []
    task = partial(_count_states, shard, schema, codes)
    for result in told(engine.map(task, work), "counting states", len(work), progress):
        broken, counted = pickle.loads(result)  # noqa: S301 (of a worker of ours)
        if broken:
            return None
        if counted is not None:
            parts.append(taker.take(counted))
    return CountedDetails(stands, tuple(parts)) if parts else None


@contextmanager
def without_details(folder: Path, schema: RecordFile, stands: Flags, limits: TaskLimits) -> Iterator[Path]:
    """A folder of SafeTab's own files without a record, of the reference files of another."""
    with scratch_folder() as empty:
        make_rows(empty, (schema, REFERENCE, HOUSING_UNITS))
        with limits.database() as db:
            require_none(open_reference(db, detailed_sources(folder)["GRF-C"], REFERENCE))
            none = ", ".join(f"NULL::{column.storage} AS {column.name}" for column in schema.columns)
            _write(db, empty, schema, f"SELECT {none}, NULL::BIGINT AS {RECORD} WHERE false")
            _write_blocks(db, empty, "reference_rows", stands)
        yield empty


def _find_housing(work: bytes) -> bytes:
    """The blocks where housing units of a file stand; None where its lines cannot be read."""
    files: EditedFiles = pickle.loads(work)  # noqa: S301 (of our driver)
    with require_stamps(files):
        try:
            return packed([blocks_with_housing(path) for path, _ in files["unit"].values()])
        except ShapeError:
            return packed(None)


def _standing(limits: TaskLimits, folder: Path, found: Iterator[bytes]) -> Flags | None:
    """Of each block of the reference files, whether a housing unit stands there; None where some cannot be read."""
    with limits.database() as db:
        if open_reference(db, detailed_sources(folder)["GRF-C"], REFERENCE):
            return None
        db.execute(f"CREATE TABLE housed ({BLOCK} VARCHAR)")
        for result in found:
            if (of_file := pickle.loads(result)) is None:  # noqa: S301 (of a worker of ours)
                return None
            for blocks in of_file:
                db.register("blocks_now", {BLOCK: blocks.astype(str).astype(object)})
                db.execute("INSERT INTO housed FROM blocks_now")
                db.unregister("blocks_now")
        query = f"SELECT {BLOCK} IN (FROM housed) AS stands FROM reference_rows ORDER BY rowid"
        return np.asarray(db.execute(query).fetchnumpy()["stands"], dtype=np.bool_)


def _count_states(task: Shard, schema: RecordFile, codes: frozenset[int], work: bytes) -> bytes:
    """Whether a rule is broken, and what was counted of some states: None where they have no record."""
    files, names, bits = cast("_Work", pickle.loads(work))  # noqa: S301 (of our driver)
    with scratch_folder() as edited, scratch_folder() as folder, task.limits.kept(), require_stamps(files):
        link_files(edited, names, files)
        make_rows(folder, (schema, REFERENCE, HOUSING_UNITS))
        with speaking_of(edited, task.folder), task.limits.database() as db:
            households = schema is HOUSEHOLD_RECORDS
            opened = open_detailed_cef(db, edited, DETAILED, codes, households=households)
            if opened.findings:
                return packed((True, None))
            _write_records(db, folder, schema)
            table = f"{REFERENCE.relation}_rows"
            (blocks,) = db.execute(f"SELECT count(*) FROM {table}").fetchone() or (0,)
            stands = np.unpackbits(np.frombuffer(bits, dtype=np.uint8), count=int(blocks)).astype(np.bool_)
            _write_blocks(db, folder, table, stands)
        with speaking_of(folder, task.folder):
            findings, counted = count_told(task, folder)
        broken = any((finding.rule, finding.file) != ("not_empty", _called(schema)) for finding in findings)
        return packed((broken, counted))


def _write_records(db: duckdb.DuckDBPyConnection, folder: Path, schema: RecordFile) -> None:
    there = {str(row[0]) for row in db.execute("SELECT column_name FROM (DESCRIBE every_record)").fetchall()}
    # What is not tabulated has been checked, and is any of its values.
    columns = ", ".join(
        f"{(f'nullif({c.name}, 0)' if c.blank else c.name) if c.name in there else repr(c.written(c.low))} AS {c.name}"
        for c in schema.columns
    )
    _write(db, folder, schema, f"SELECT {columns}, rowid + 1 AS {RECORD} FROM every_record")


def _write_blocks(db: duckdb.DuckDBPyConnection, folder: Path, table: str, stands: Flags) -> None:
    """Write the blocks, and of those where a housing unit stands that one does."""
    columns = ", ".join(REFERENCE.header)
    _write(db, folder, REFERENCE, f"SELECT {columns}, rowid + 1 AS {RECORD} FROM {table}")
    db.register("standing", {"place": np.flatnonzero(stands)})
    of_block = f"{BLOCK_CODE} AS block, 1 AS housing_units, place + 1 AS {RECORD}"
    _write(db, folder, HOUSING_UNITS, f"SELECT {of_block} FROM {table} t JOIN standing ON t.rowid = place")
    db.unregister("standing")


def _write(db: duckdb.DuckDBPyConnection, folder: Path, schema: RecordFile, query: str) -> None:
    """Write rows of a file, and say where they are."""
    path = rows_of(folder, schema.name) / EMPTY
    db.execute(f"COPY ({query}) TO {quoted(str(path))} (FORMAT parquet)")
    write_shard(folder, schema, Source((path,), (_called(schema),), rows=(path,)))


def _called(schema: RecordFile) -> str:
    return f"{schema.name} of the edited file"
