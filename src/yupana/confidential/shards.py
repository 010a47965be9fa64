"""Count records in shards, on any engine: they are cut by keys, and each shard is counted as a folder of its own.

A task makes a folder in which its shard looks like any data folder: its records are there, with public files beside.
So what opens, checks and counts a folder does so unchanged. What it returns is added up by whoever asked.
"""

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import duckdb

from yupana.confidential.records.database import default_memory, private_database, scratch_folder, threads_at_most
from yupana.confidential.records.findings import BrokenRulesError, Finding, merge_findings
from yupana.confidential.records.reader import (
    RECORD,
    Source,
    check_parts,
    damaged_parts,
    find_source,
    forms,
    open_part,
    require_folder,
    stored_types,
    write_shard,
)
from yupana.engine.engine import MOST_BYTES, Engine
from yupana.files.columns import RecordFile
from yupana.files.database import STOPS, named, quoted
from yupana.privacy.sealed import Sealed, packed

P = TypeVar("P")

CountFolder = Callable[[Path, int], tuple[Sequence[Finding], P | None]]
"""Finds what is wrong with the records of a folder, and counts them if they are fit, in so many bytes of memory."""

_SHARD_BYTES: Final = 1 << 28
"""What a shard has of the record files, about."""


@dataclass(frozen=True, slots=True)
class Cut:
    """How the records of a folder are cut into shards: those with the same key are in the same.

    Attributes
    ----------
    keys : mapping of RecordFile to tuple of str
        By record file the columns of the key; a file may be missing.
    number : int or None
        How many shards; by the size of the files if nothing is said.
    """

    keys: Mapping[RecordFile, tuple[str, ...]]
    number: int | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class InShards(Sealed, Generic[P]):
    """What came of shards.

    Attributes
    ----------
    files : mapping of str to Source
        What was cut, by name.
    findings : tuple of Finding
        Rules that the records break, and remarks.
    parts : tuple
        What was counted, by shard; less than that if a rule is broken that forbids a run.
    """

    files: Mapping[str, Source]
    findings: tuple[Finding, ...]
    parts: tuple[P, ...]


def can_be_cut(folder: Path, cut: Cut) -> bool:
    """Whether a folder holds files that can be cut; others are read in one piece, such as the Census Edited File."""
    return any(forms(folder, schema) for schema in cut.keys)


def count_in_shards(
    engine: Engine, folder: Path, cut: Cut, count: CountFolder[P], memory: int | None = None
) -> InShards[P]:
    """Cut the records of a folder into shards, and count each.

    Parameters
    ----------
    engine : Engine
    folder : Path
        That every worker can read.
    cut : Cut
    count : callable
        May raise `BrokenRulesError` of records that break rules.
    memory : int, optional
        Bytes that a task may use; by default its share of this machine's.

    Raises
    ------
    InputError, OutputError, EngineError
        If the records cannot be read, or the engine fails.
    """
    limits = _TaskLimits(memory or default_memory() // engine.slots, 1 if engine.slots > 1 else None)
    sources, findings = _find(folder, cut, limits)
    if findings:
        return InShards(sources, tuple(findings), ())
    if not sources:
        # There is nothing to be cut: records of another form are counted here, and what is missing is told.
        found_here, part_here = count(folder, limits.memory)
        return InShards({}, tuple(found_here), () if part_here is None else (part_here,))
    number = cut.number or _number(engine, sources)
    work = [
        pickle.dumps(_Part(schema, sources[schema.name], part, key, number, limits))
        for schema, key in cut.keys.items()
        if schema.name in sources
        for part in range(len(sources[schema.name].paths))
    ]
    there = {schema: sources[schema.name] for schema in cut.keys if schema.name in sources}
    task = partial(_gather, _Shard(folder.absolute(), there, count, limits), number)
    unread, *counted = map(pickle.loads, engine.regroup(_cut, work, task, [number, *range(number)]))
    found = merge_findings([of for of, _ in counted])
    # What could not be read is told before what was read without it, and by its lines.
    told = tuple(merge_findings([unread])) or tuple(_placed(finding, sources) for finding in found)
    return InShards(sources, told, tuple(part for _, part in counted if part is not None))


@contextmanager
def without_records(folder: Path, cut: Cut, memory: int | None = None) -> Iterator[Path]:
    """A folder with all that a data folder has but the records that are cut, of whose files there are the columns.

    What depends on public files alone is found in it.
    """
    limits = _TaskLimits(memory or default_memory(), None)
    sources, findings = _find(folder, cut, limits)
    if findings or not sources:
        yield folder
        return
    there = {schema: sources[schema.name] for schema in cut.keys if schema.name in sources}
    parcels = []
    with scratch_folder() as scratch, limits.database() as db:
        for schema, source in there.items():
            columns = dict.fromkeys(schema.header, "VARCHAR") if source.header else stored_types(db, source, schema)[0]
            none = ", ".join(f"NULL::{kind} AS {named(name)}" for name, kind in columns.items())
            path = scratch / f"{schema.name}.parquet"
            query = f"SELECT {none}, NULL::BIGINT AS {RECORD} WHERE false"
            db.execute(f"COPY ({query}) TO {quoted(str(path))} (FORMAT parquet)")
            parcels.append(pickle.dumps(_Parcel(schema.name, path.name, path.read_bytes())))
    with scratch_folder() as empty:
        _lay_out(empty, folder.absolute(), there, iter(parcels))
        yield empty


def within(folder: Path, public: Path, source: Source) -> Source:
    """A file of a folder `without_records`, as a file of the one that it stands for."""
    paths = tuple(folder / path.relative_to(public) if path.is_relative_to(public) else path for path in source.paths)
    return replace(source, paths=paths)


@dataclass(frozen=True, slots=True)
class _TaskLimits:
    """What a task may use: bytes of memory, and threads; None for all cores."""

    memory: int
    threads: int | None

    @contextmanager
    def database(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with self.kept(), private_database(self.memory) as db:
            yield db

    def kept(self) -> AbstractContextManager[None]:
        return nullcontext() if self.threads is None else threads_at_most(self.threads)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a record file, to be cut: the first part says in every shard which columns there are."""

    schema: RecordFile
    source: Source
    part: int
    key: tuple[str, ...]
    shards: int
    limits: _TaskLimits


@dataclass(frozen=True, slots=True)
class _Parcel:
    """Some bytes of a Parquet file that holds a part's records of a shard."""

    schema: str
    file: str
    content: bytes


@dataclass(frozen=True, slots=True)
class _Shard:
    """How a shard is counted."""

    folder: Path
    sources: Mapping[RecordFile, Source]
    count: CountFolder[Any]
    limits: _TaskLimits


def _find(folder: Path, cut: Cut, limits: _TaskLimits) -> tuple[dict[str, Source], list[Finding]]:
    """The record files, and what keeps them from being read."""
    require_folder(folder)
    sources: dict[str, Source] = {}
    findings: list[Finding] = []
    with limits.database() as db:
        for schema in cut.keys:
            # What is missing is told by whoever needs it.
            source, wrong = find_source(folder, schema) if forms(folder, schema) else (None, [])
            findings += wrong
            if source is not None:
                sources[schema.name] = source
                findings += check_parts(db, source, schema)
    return sources, findings


def _number(engine: Engine, sources: Mapping[str, Source]) -> int:
    """How many shards keep the engine busy and are not too large."""
    size = sum(path.stat().st_size for source in sources.values() for path in source.paths)
    return max(engine.slots, -(-size // _SHARD_BYTES))


def _cut(work: bytes) -> Iterator[tuple[int, bytes]]:
    """The parcels of a part; what cannot be read goes to the shard after the last."""
    one: _Part = pickle.loads(work)  # noqa: S301 (of our driver)
    with scratch_folder() as scratch, one.limits.database() as db:
        try:
            typed, findings = open_part(db, one.source, one.part, one.schema)
            if not findings:
                _write(db, scratch, one, typed)
        except STOPS:
            raise
        except duckdb.Error:
            part = replace(one.source, paths=(one.source.paths[one.part],), names=(one.source.names[one.part],))
            findings = damaged_parts(db, part)
        if findings:
            yield one.shards, pickle.dumps(findings)
            return
        for shard in range(one.shards):
            for path in sorted((scratch / f"{_SHARD}={shard}").glob("*")):
                yield from _parcels(shard, path, f"{one.part:06d}-{path.stem}", one)
            if one.part == 0:
                yield from _parcels(shard, scratch / _EMPTY, "columns", one)


_SHARD: Final = "shard_of_record"
_EMPTY: Final = "columns.parquet"


def _write(db: duckdb.DuckDBPyConnection, scratch: Path, one: _Part, typed: Mapping[str, str]) -> None:
    """Write the records of a part by shard. A key is compared as the text of its value, whatever its type."""
    key = ", ".join(f"CAST({typed[name]} AS VARCHAR)" for name in one.key)
    rows = f"SELECT *, hash(concat_ws('|', {key})) % {one.shards} AS {_SHARD} FROM {named(one.schema.relation)}"
    db.execute(
        f"COPY ({rows}) TO {quoted(str(scratch))} (FORMAT parquet, PARTITION_BY ({_SHARD}), OVERWRITE_OR_IGNORE)"
    )
    if one.part == 0:
        none = f"SELECT * FROM {named(one.schema.relation)} WHERE false"
        db.execute(f"COPY ({none}) TO {quoted(str(scratch / _EMPTY))} (FORMAT parquet)")


def _parcels(shard: int, path: Path, name: str, one: _Part) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as file:
        while content := file.read(MOST_BYTES):
            yield shard, pickle.dumps(_Parcel(one.schema.name, f"{name}.parquet", content))


def _gather(task: _Shard, findings: int, shard: int, parcels: Iterator[bytes]) -> bytes:
    """Count a shard; that of a number after the last tells what could not be read."""
    if shard == findings:
        return pickle.dumps([finding for parcel in parcels for finding in pickle.loads(parcel)])  # noqa: S301
    with scratch_folder() as folder, task.limits.kept():
        _lay_out(folder, task.folder, task.sources, parcels)
        try:
            found, counted = task.count(folder, task.limits.memory)
        except BrokenRulesError as error:
            found, counted = error.findings, None
        ours, theirs = str(folder), str(task.folder)
        return packed(([replace(finding, text=finding.text.replace(ours, theirs)) for finding in found], counted))


def _lay_out(folder: Path, whole: Path, sources: Mapping[RecordFile, Source], parcels: Iterator[bytes]) -> None:
    """Make a data folder of a shard: its records, and beside them whatever else the folder of all records has."""
    rows: dict[str, dict[str, Path]] = {schema.name: {} for schema in sources}
    for parcel in parcels:
        one: _Parcel = pickle.loads(parcel)  # noqa: S301 (of a worker of ours)
        path = folder / f".{one.schema}.rows" / one.file
        path.parent.mkdir(exist_ok=True)
        with path.open("ab") as file:
            file.write(one.content)
        rows[one.schema][one.file] = path
    ours = {path.name for schema in sources for path in forms(whole, schema)}
    for path in whole.iterdir():
        if path.name not in ours:
            (folder / path.name).symlink_to(path)
    for schema, source in sources.items():
        write_shard(folder, schema, replace(source, rows=tuple(sorted(rows[schema.name].values()))))


def _placed(finding: Finding, sources: Mapping[str, Source]) -> Finding:
    """A finding with the lines of its file in place of the numbers of records, where these are not the same."""
    for source in sources.values():
        if source.header and finding.file in source.names:
            return replace(finding, lines=source.places(source.names.index(finding.file), finding.lines))
    return finding
