"""Count the Census Edited File state by state, as its files lie: a shard has the files of some states.

A shard is not told of other states. So the driver sees to it that no unit and no block is in two of them; where one is,
or where a shard finds a rule broken, all files are counted as one shard, which tells what is wrong with them together.

Of SafeTab, a task makes of the files of some states what SafeTab's own files would be, and counts these. Areas may
cross states, and one where no housing unit stands is left out: so first the blocks where one stands are found.
"""

import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Flags
from yupana.confidential.records.census_edited_file import (
    BLOCK,
    CONFIG,
    PERSON_LAYOUT,
    UNIT_LAYOUT,
    EditedNames,
    UnreadableBlocksError,
    block_keys,
    find_cef,
    find_states,
    is_cef,
    open_reference,
)
from yupana.confidential.records.database import is_scratch, scratch_folder
from yupana.confidential.records.declared import FILE_OF_BLOCKS
from yupana.confidential.records.fixed_width import Layout, ShapeError, numbers, read_lines
from yupana.confidential.records.reader import RECORD
from yupana.confidential.records.safetab_records import BLOCK_CODE, blocks_with_housing, open_detailed_cef
from yupana.confidential.records.sources import SHARD, Source, rows_of, write_shard
from yupana.confidential.records.validation import failing, require_none
from yupana.confidential.shards.cut_records import KeysOfAreas, shared_out
from yupana.confidential.shards.shard_tasks import (
    EMPTY,
    CountedShards,
    Shard,
    Stamp,
    Taker,
    TaskLimits,
    Told,
    count_told,
    make_rows,
    require_stamp,
)
from yupana.engine.engine import Engine
from yupana.errors import YupanaError
from yupana.files.columns import (
    GEO,
    HOUSEHOLD_RECORDS,
    HOUSING_UNITS,
    MAFID,
    PERSON_RECORDS,
    PERSONS,
    REFERENCE,
    UNITS,
    RecordFile,
)
from yupana.files.database import quoted
from yupana.privacy.sealed import Sealed, packed
from yupana.progress import Progress, told

EditedFiles: TypeAlias = Mapping[str, Mapping[str, tuple[Path, Stamp | None]]]
"""Where the files of some states lie, by kind and by what they are called."""
_Work: TypeAlias = tuple[EditedFiles, EditedNames, Mapping[str, Stamp | None]]
"""The files of a shard, how they are named, and public files beside them."""
_Keys: TypeAlias = tuple[list[NDArray[np.uint64]], list[NDArray[np.uint64]]]
"""Those of units, and of blocks."""


def lies_by_state(folder: Path, others: tuple[RecordFile, ...] = (PERSONS, UNITS, GEO)) -> bool:
    """Whether a folder holds the Census Edited File, and no others, where every worker can read it."""
    # What was copied from a store is in a folder of the driver alone.
    return is_cef(folder, others) and not (is_scratch(folder) or is_scratch(folder.parent))


def count_by_state(engine: Engine, most: int | None, shard: Shard, progress: Progress, taker: Taker) -> CountedShards:
    """Count the files of some states in each shard; in so many shards at most, by default one for each state."""
    names, files = find_states(shard.folder)
    # Where blocks are listed of states without records, one task tells of that.
    states = list(files["per"]) if files and files["grfc"].keys() == files["per"].keys() else []
    size = {state: sum(of[state].stat().st_size for of in files.values()) for state in states}
    theirs = {path for of in files.values() for path in of.values()} | {shard.folder / CONFIG}
    # A file that is called as one of ours, which says where else records lie, would be believed in a folder of ours.
    beside = {
        path.name: Stamp.of(path)
        for path in shard.folder.iterdir()
        if path.is_file() and path not in theirs and not path.name.endswith(SHARD)
    }
    by_state = [
        (files_of({kind: {state: of[state] for state in some} for kind, of in files.items()}), names, beside)
        for some in shared_out(size, min(most or len(states), len(states)))
    ]
    found = _counted(engine, shard, by_state, progress, taker) if len(by_state) > 1 else None
    if found is None:
        taker.forget()
        (result,) = engine.map(partial(_count_whole, shard), [b""])
        findings, counted = pickle.loads(result)  # noqa: S301 (of a worker of ours)
        found = [(findings, None if counted is None else taker.take(counted))]
    return CountedShards([], {}, found)


def _counted(
    engine: Engine, shard: Shard, by_state: Sequence[_Work], progress: Progress, taker: Taker
) -> list[Told] | None:
    """What each shard found and counted; None where that is not all that there is to find."""
    work = [*map(pickle.dumps, by_state)]
    counted = []
    with scratch_folder() as of_units, scratch_folder() as of_blocks:
        units, blocks = KeysOfAreas(of_units), KeysOfAreas(of_blocks)
        for result in told(engine.map(partial(_count_states, shard), work), "counting states", len(work), progress):
            keys, (findings, of_shard) = pickle.loads(result)  # noqa: S301 (of a worker of ours)
            if keys is None or failing(findings) or of_shard is None:
                return None
            units.add(keys[0])
            blocks.add(keys[1])
            counted.append((findings, taker.take(of_shard)))
        return counted if units.are_apart() and blocks.are_apart() else None


def files_of(paths: Mapping[str, Mapping[str, Path]]) -> EditedFiles:
    """Files by kind and state as tasks are told of them."""
    return {kind: {path.name: (path, Stamp.of(path)) for path in of.values()} for kind, of in paths.items()}


def link_files(folder: Path, names: EditedNames, files: EditedFiles) -> None:
    """Make a folder of the edited file that has these."""
    (folder / CONFIG).write_text(names.as_config())
    for kind, of_kind in files.items():
        (folder / kind).mkdir()
        for name, (path, _) in of_kind.items():
            (folder / kind / name).symlink_to(path)


@contextmanager
def require_stamps(files: EditedFiles) -> Iterator[None]:
    """Refuse files that are not those that the driver saw, before they are read and after.

    Raises
    ------
    InputError
        As `require_stamp` has it.
    """
    places = [place for of_kind in files.values() for place in of_kind.values()]
    for path, stamp in places:
        require_stamp(path, stamp)
    yield
    for path, stamp in places:
        require_stamp(path, stamp)


def _count_whole(task: Shard, _work: bytes) -> bytes:
    """What is found and counted of all files together."""
    with task.limits.kept():
        return packed(count_told(task, task.folder))


def _count_states(task: Shard, work: bytes) -> bytes:
    """The keys of some states, and what was found and counted of them; no keys if these cannot be read."""
    files, names, beside = cast("_Work", pickle.loads(work))  # noqa: S301 (of our driver)
    with scratch_folder() as folder, speaking_of(folder, task.folder), task.limits.kept(), require_stamps(files):
        for name, stamp in beside.items():
            require_stamp(task.folder / name, stamp)
            (folder / name).symlink_to(task.folder / name)
        link_files(folder, names, files)
        keys = _keys(task, files)
        found: Told = ((), None) if keys is None else count_told(task, folder)
    return packed((keys, found))


_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)
"""An odd number, so that no two ids become one; what is compared in ranges then lies in all of them."""
_IDS: Final = RecordFile("ids", "record", (MAFID,))
_ID_OF: Final = {
    kind: Layout(_IDS, layout.width, {MAFID.name: layout.fields[MAFID.name]})
    for kind, layout in (("per", PERSON_LAYOUT), ("unit", UNIT_LAYOUT))
}


def _keys(task: Shard, files: EditedFiles) -> _Keys | None:
    try:
        ids = [
            np.unique(numbers(lines, layout)[MAFID.name].astype(np.uint64) * _SPREAD)
            for kind, layout in _ID_OF.items()
            for path, _ in files[kind].values()
            for lines in read_lines(path, layout.width)
        ]
        with task.limits.database() as db:
            blocks = [block_keys(db, path) for path, _ in files["grfc"].values()]
    except (ShapeError, UnreadableBlocksError):
        return None
    return ids, blocks


@contextmanager
def speaking_of(ours: Path, theirs: Path) -> Iterator[None]:
    """Let errors speak of the folder of the records."""
    try:
        yield
    except YupanaError as error:
        raise error.reworded(lambda text: text.replace(str(ours), str(theirs))) from None


_OF_STATES: Final = ("per", "unit")
"""The files that a task has of its states alone."""

DETAILED: Final = (PERSON_RECORDS, HOUSEHOLD_RECORDS)
"""SafeTab's own records, which must not lie beside the edited file."""

_DetailedWork: TypeAlias = tuple[EditedFiles, EditedNames, bytes]
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
    task = partial(_count_details, shard, schema, codes)
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
            require_none(open_reference(db, find_cef(folder, ())[0]["grfc"], REFERENCE))
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
        if open_reference(db, find_cef(folder, ())[0]["grfc"], REFERENCE):
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


def _count_details(task: Shard, schema: RecordFile, codes: frozenset[int], work: bytes) -> bytes:
    """Whether a rule is broken, and what was counted of some states: None where they have no record."""
    files, names, bits = cast("_DetailedWork", pickle.loads(work))  # noqa: S301 (of our driver)
    with scratch_folder() as edited, scratch_folder() as folder, task.limits.kept(), require_stamps(files):
        link_files(edited, names, files)
        make_rows(folder, (schema, REFERENCE, HOUSING_UNITS))
        with speaking_of(edited, task.folder), task.limits.database() as db:
            if open_detailed_cef(codes, schema.name == HOUSEHOLD_RECORDS.name, db, edited)[1]:
                return packed((True, None))
            _write_records(db, folder, schema)
            table = f"{FILE_OF_BLOCKS}_rows"
            (blocks,) = db.execute(f"SELECT count(*) FROM {table}").fetchone() or (0,)
            stands = np.unpackbits(np.frombuffer(bits, dtype=np.uint8), count=int(blocks)).astype(np.bool_)
            _write_blocks(db, folder, table, stands)
        with speaking_of(folder, task.folder):
            findings, counted = count_told(task, folder)
        broken = any((finding.rule, finding.file) != ("not_empty", _called(schema)) for finding in findings)
        return packed((broken, counted))


def _write_records(db: duckdb.DuckDBPyConnection, folder: Path, schema: RecordFile) -> None:
    there = {str(row[0]) for row in db.execute("SELECT column_name FROM (DESCRIBE records)").fetchall()}
    # What is not tabulated has been checked, and is any of its values.
    columns = ", ".join(
        f"{(f'nullif({c.name}, 0)' if c.blank else c.name) if c.name in there else repr(c.written(c.low))} AS {c.name}"
        for c in schema.columns
    )
    _write(db, folder, schema, f"SELECT {columns}, rowid + 1 AS {RECORD} FROM records")


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
