"""Count the Census Edited File state by state, as its files lie: a shard has the files of some states.

A shard is not told of other states. So the driver sees to it that no unit and no block is in two of them; where one is,
or where a shard finds a rule broken, it reads all files itself, and tells what is wrong with them together.

Of SafeTab, areas may cross states, and one where no housing unit stands is left out: so first the blocks where one
stands are found, of which each shard is told.
"""

import pickle
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Flags
from yupana.confidential.records.census_edited_file import (
    BLOCK,
    CONFIG,
    PERSON_LAYOUT,
    UNIT_LAYOUT,
    block_keys,
    edited_sources,
    find_cef,
    is_cef,
    nothing,
    open_reference,
)
from yupana.confidential.records.database import is_scratch, scratch_folder
from yupana.confidential.records.fixed_width import Layout, ShapeError, numbers, read_lines
from yupana.confidential.records.reader import RECORD
from yupana.confidential.records.safetab_records import BLOCK_CODE, STANDING, blocks_with_housing, detailed_sources
from yupana.confidential.records.sources import Source, make_rows, rows_of, write_shard
from yupana.confidential.records.validation import failing, require_none
from yupana.confidential.shards.cut_records import count_by_area, shared_out
from yupana.confidential.shards.shard_tasks import (
    EMPTY,
    Driver,
    InShards,
    Part,
    Shard,
    TaskLimits,
    count_told,
    linked,
    stamps_of,
    write_columns,
)
from yupana.errors import speaking_of
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
from yupana.privacy.sealed import packed

_BLOCKS: Final = RecordFile("grfc", "block", ())
_IDS: Final = {
    RecordFile(kind, "record", (MAFID,)): Layout(
        RecordFile(kind, "record", (MAFID,)), layout.width, {MAFID.name: layout.fields[MAFID.name]}
    )
    for kind, layout in (("per", PERSON_LAYOUT), ("unit", UNIT_LAYOUT))
}
"""The record files of the edited file, and where their lines have the unit."""


def lies_by_state(folder: Path, others: tuple[RecordFile, ...] = (PERSONS, UNITS, GEO)) -> bool:
    """Whether a folder holds the Census Edited File, and no others, where every worker can read it."""
    # What was copied from a store is in a folder of the driver alone.
    return is_cef(folder, others) and not (is_scratch(folder) or is_scratch(folder.parent))


def _with_files(shard: Shard, others: tuple[RecordFile, ...]) -> tuple[Shard, int]:
    """A shard of the files of a folder, and of how many states these are: none where something is wrong with them.

    A part is that of a state; only blocks may be listed of more states.
    """
    found, findings = find_cef(shard.folder, others)
    sources = {schema: found[schema.name] for schema in (*_IDS, _BLOCKS)}
    if findings:
        return shard, 0
    return replace(shard, sources=sources, stamps=stamps_of(shard.folder, sources.values())), len(found["per"].paths)


def _shared_out(shard: Shard, states: int, most: int | None) -> list[list[int]]:
    """The states of each task, of so many tasks at most."""
    if not states:
        return []
    files = [source for schema, source in shard.sources.items() if schema in _IDS]
    size = {str(place): sum(file.paths[place].stat().st_size for file in files) for place in range(states)}
    return [[int(place) for place in some] for some in shared_out(size, min(most or states, states))]


def count_by_state(driver: Driver, shard: Shard) -> InShards | None:
    """Count the files of some states in each shard; in so many shards at most, by default one for each state.

    Returns
    -------
    InShards or None
        None where that cannot be done, or there is one shard: whoever reads all files together counts, or tells why.
    """
    of_files, states = _with_files(shard, (PERSONS, UNITS, GEO))
    # Where blocks are listed of states without records, one task would tell of that.
    states = states if states and len(of_files.sources[_BLOCKS].paths) == states else 0
    areas = [
        [of_files.part(schema, place, (), 1) for schema in of_files.sources for place in some]
        for some in _shared_out(of_files, states, driver.number)
    ]
    found = count_by_area(driver, areas, of_files, _keys) if len(areas) > 1 else None
    if found is None:
        return None
    # Nothing public lies beside such files that they are opened with.
    return InShards(edited_sources(shard.folder), found.findings, found.parts, scratch_folder())


_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)
"""An odd number, so that no two ids become one; what is compared in ranges then lies in all of them."""


def _keys(parts: Sequence[Part]) -> list[NDArray[np.uint64]] | None:
    """The units and blocks of some states. That of a person is one of these, or a rule is broken."""
    keys = []
    for one in parts:
        if one.schema == _BLOCKS:
            with one.limits.database() as db:
                if (found := block_keys(db, one.source.part(one.part))) is None:
                    return None
                keys.append(found)
            continue
        layout = _IDS[one.schema]
        try:
            ids = (numbers(lines, layout)[MAFID.name] for lines in read_lines(one.source.paths[one.part], layout.width))
            keys += [np.unique(some.astype(np.uint64) * _SPREAD) for some in ids]
        except ShapeError:
            return None
    return keys


DETAILED: Final = (PERSON_RECORDS, HOUSEHOLD_RECORDS)
"""SafeTab's own records, which must not lie beside the edited file."""


def count_details_by_state(schema: RecordFile, driver: Driver, shard: Shard) -> InShards | None:
    """Count the files of some states as SafeTab's records of a kind, in as many shards as `count_by_state`.

    Returns
    -------
    InShards or None
        None where a rule is broken: whoever reads all files together tells.
    """
    of_files, states = _with_files(shard, DETAILED)
    if not states:
        return None
    persons, units, blocks = of_files.sources

    def parts(schema: RecordFile, places: Iterable[int]) -> list[Part]:
        return [of_files.part(schema, place, (), 1) for place in places]

    found = driver.results(_find_housing, parts(units, range(states)), "finding housing units")
    reference = of_files.sources[blocks]
    if (stands := _standing(shard.limits, reference, found)) is None:
        return None
    bits = np.packbits(stands).tobytes()
    # A unit's block may be in the file of any state.
    listed = parts(blocks, range(len(reference.paths)))
    shares = _shared_out(of_files, states, driver.number)
    work = [([*parts(persons, some), *parts(units, some), *listed], bits) for some in shares]
    counted = []
    for broken, of_states in driver.results(partial(_count_details, of_files), work, "counting states"):
        if broken:
            return None
        counted.append(driver.taken(of_states))
    files = {of.name: source for of, source in of_files.sources.items()}
    return InShards(
        detailed_sources(files, households=schema.name == HOUSEHOLD_RECORDS.name),
        (),
        tuple(part for part in counted if part is not None),
        _without_details(shard, schema, stands),
    )


@contextmanager
def _without_details(shard: Shard, schema: RecordFile, stands: Flags) -> Iterator[Path]:
    """A folder of SafeTab's own files without a record, of the reference files of another."""
    with scratch_folder() as empty:
        make_rows(empty, (schema, REFERENCE, HOUSING_UNITS))
        with shard.limits.database() as db:
            require_none(open_reference(db, find_cef(shard.folder, ())[0]["grfc"], REFERENCE))
            _write(db, empty, schema, nothing(schema, f", NULL::BIGINT AS {RECORD}"))
            _write_blocks(db, empty, "reference_rows", stands)
        yield empty


def _find_housing(work: bytes) -> bytes:
    """The blocks where housing units of a file stand; None where its lines cannot be read."""
    one: Part = pickle.loads(work)  # noqa: S301 (of our driver)
    with one.at_hand() as (source, _):
        try:
            return packed(blocks_with_housing(source.paths[one.part]))
        except ShapeError:
            return packed(None)


def _standing(limits: TaskLimits, reference: Source, found: Iterator[Any]) -> Flags | None:
    """Of each block of the reference files, whether a housing unit stands there; None where some cannot be read."""
    with limits.database() as db:
        if open_reference(db, reference, REFERENCE):
            return None
        db.execute(f"CREATE TABLE housed ({BLOCK} VARCHAR)")
        for blocks in found:
            if blocks is None:
                return None
            db.register("blocks_now", {BLOCK: blocks.astype(str).astype(object)})
            db.execute("INSERT INTO housed FROM blocks_now")
            db.unregister("blocks_now")
        query = f"SELECT {BLOCK} IN (FROM housed) AS stands FROM reference_rows ORDER BY rowid"
        return np.asarray(db.execute(query).fetchnumpy()["stands"], dtype=np.bool_)


def _count_details(task: Shard, work: bytes) -> bytes:
    """Whether a rule is broken, and what was counted of some states."""
    parts, bits = cast("tuple[list[Part], bytes]", pickle.loads(work))  # noqa: S301 (of our driver)
    with scratch_folder() as folder, task.limits.kept(), ExitStack() as stack:
        if (config := task.folder / CONFIG).is_file():
            (folder / CONFIG).symlink_to(config)
        stack.enter_context(speaking_of(task.folder, folder))
        stack.enter_context(linked(folder, task.folder, parts))
        (folder / STANDING).write_bytes(bits)
        findings, counted = count_told(task, folder)
        return packed((bool(failing(findings)), counted))


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
    rows = rows_of(folder, schema.name)
    write_columns(db, query, rows)
    write_shard(folder, schema, Source((rows / EMPTY,), (f"{schema.name} of the edited file",)))
