"""Count records in shards, on any engine: they are cut by keys, and each shard is counted as a folder of its own.

A task makes a folder in which its shard looks like any data folder: its records are there, with public files beside.
So what opens, checks and counts a folder does so unchanged. What it returns is added up by whoever asked.

Files that lie in folders by area are counted area by area, and no record is sent from one worker to another. That each
key is in one area is seen from what was read; where it is not so, the records are cut by keys as any others are.
"""

from collections import Counter as Numbers
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from yupana.confidential.records.database import default_memory, scratch_folder
from yupana.confidential.records.object_store import left_on_store, require_at_hand
from yupana.confidential.records.reader import RECORD, check_parts, stored_types
from yupana.confidential.records.sources import (
    OpenedRecords,
    Source,
    find_source,
    forms,
    is_synthetic,
    make_rows,
    require_folder,
    rows_of,
)
from yupana.confidential.records.validation import Finding, failing
from yupana.confidential.request import RunRequest
from yupana.confidential.shards.census_edited_file import lies_by_state
from yupana.confidential.shards.cut_records import areas_of, count_by_area, count_by_key, keys_of_records
from yupana.confidential.shards.shard_tasks import (
    CountedShards,
    Driver,
    InShards,
    Shard,
    ShardPart,
    TaskLimits,
    lay_out,
    stamps_of,
    write_columns,
)
from yupana.confidential.tabulate.count_groups import memory_for_gathered
from yupana.confidential.tabulate.group_counts import GatheredShards, Taker
from yupana.engine.engine import Engine, EngineTerms
from yupana.engine.local import LocalEngine
from yupana.files.columns import RecordFile
from yupana.files.database import named


@dataclass(frozen=True, slots=True)
class Cut:
    """How the records of a folder are cut into shards: those with the same key are in the same.

    Attributes
    ----------
    keys : mapping of RecordFile to tuple of str
        By record file the columns of the key; a file may be missing.
    number : int or None
        How many shards; by the size of the files if nothing is said.
    unique : mapping of RecordFile to str
        A column of which no value may occur twice, of files that are cut by another.
    """

    keys: Mapping[RecordFile, tuple[str, ...]]
    number: int | None = None
    unique: Mapping[RecordFile, str] = field(default_factory=dict)


def count_in_shards(driver: Driver, shard: Shard, cut: Cut) -> InShards:
    """Cut the records of a folder into shards, and count each.

    Parameters
    ----------
    shard : Shard
        Of a folder that every worker can read, with files that can be cut.

    Raises
    ------
    InputError, OutputError, EngineError
        If the records cannot be read, or the engine fails.
    """
    folder = shard.folder
    sources, findings = _find(folder, cut, shard.limits)
    public = _without_records(folder, cut)
    if findings:
        return InShards(sources, findings, (), public)
    there = {schema: sources[schema.name] for schema in cut.keys if schema.name in sources}
    left = left_on_store(folder)
    # What is left on a store has a version that is compared.
    stamps = stamps_of(folder, there.values()) if left is None else {}
    unique = {schema.name: column for schema, column in cut.unique.items()}
    shard = replace(shard, sources=there, left=left, stamps=stamps, unique=unique)
    areas = areas_of(sources, cut.number)
    counted: CountedShards | None = None
    if areas and all(all(area.values()) for area in areas):
        parts = [
            [shard.part(schema, part, cut.keys[schema], 1) for schema in there for part in area[schema.name]]
            for area in areas
        ]
        counted = count_by_area(driver, parts, shard, partial(keys_of_records, unique))
    if counted is None:
        driver.taker.forget()
        counted = count_by_key(driver, cut.keys, shard)
    found = counted.findings
    if found and shard.left is not None:
        require_at_hand(folder)  # lines of text are counted in the whole file
    # What could not be read is told before what was read without it, and by its lines.
    told = counted.unread or [_placed(finding, sources) for finding in found]
    files = {
        name: replace(source, digests=tuple(counted.digests[part] for part in source.names))
        if counted.digests.keys() >= set(source.names)
        else source
        for name, source in sources.items()
    }
    return InShards(files, told, counted.parts, public)


@contextmanager
def _without_records(folder: Path, cut: Cut) -> Iterator[Path]:
    """A folder with all that a data folder has but the records that are cut, of whose files there are the columns.

    What depends on public files alone is found in it.
    """
    limits = TaskLimits(default_memory(), None)
    sources, findings = _find(folder, cut, limits)
    if findings or not sources:
        yield folder
        return
    there = {schema: sources[schema.name] for schema in cut.keys if schema.name in sources}
    with scratch_folder() as empty:
        make_rows(empty, there)
        with limits.database() as db:
            for schema, source in there.items():
                columns = (
                    dict.fromkeys(schema.header, "VARCHAR") if source.header else stored_types(db, source, schema)[0]
                )
                none = [f"NULL::{kind} AS {named(name)}" for name, kind in {**columns, RECORD: "BIGINT"}.items()]
                write_columns(db, f"SELECT {', '.join(none)} WHERE false", rows_of(empty, schema.name))
        lay_out(empty, folder.absolute(), there)
        yield empty


EditedCount: TypeAlias = Callable[[Driver, Shard], InShards | None]


@dataclass(frozen=True, slots=True)
class CountedFolder:
    """How the records of a folder are opened and counted, in one piece or in shards.

    Attributes
    ----------
    open : callable
        Opens and checks a folder in so many bytes of memory.
    count : callable or None
        Counts records that are fit; None if they are only checked.
    of_public : collection of str
        Notes that depend on public files alone, which shards share.
    gather : bool
        Whether counts of shards are gathered part by part (`GatheredShards`).
    edited : callable or None
        Counts the Census Edited File where it lies, state by state; None where that cannot be done, and whoever reads
        all files together tells why.
    """

    open: Callable[[Path, int | None], AbstractContextManager[OpenedRecords]]
    count: Callable[[OpenedRecords], Any] | None
    of_public: Collection[str] = ()
    gather: bool = False
    edited: EditedCount | None = None

    def shard(self, folder: Path, memory: int) -> tuple[Sequence[Finding], ShardPart]:
        """What is found in a shard, and told of it."""
        with self.open(folder, memory) as records:
            counts = self.count(records) if self.count and not failing(records.findings) else None
            notes = {name: number for name, number in records.notes.items() if name not in self.of_public}
            return records.findings, ShardPart(counts, Numbers(notes))

    @contextmanager
    def opened(self, data: Path, cut: Cut, request: RunRequest) -> Iterator[OpenedRecords]:
        """Open a folder as a request has it: on an engine its records are checked and counted in shards.

        The counts of shards are then ``counted``, and the database has public files alone.
        """
        synthetic = is_synthetic(data)
        with GatheredShards(memory_for_gathered(request.memory or default_memory())) as gathered:
            found = self._in_shards(data, cut, request, gathered if self.gather else Taker())
            if found is None:
                with self.open(data, request.memory) as records:
                    yield records
                return
            with found.public as folder, self.open(folder, request.memory) as records:
                counted = [part.counts for part in found.parts if part.counts is not None]
                yield replace(
                    records,
                    folder=data,
                    files={name: _within(data, folder, of) for name, of in records.files.items()} | dict(found.files),
                    findings=tuple(found.findings),
                    is_synthetic=synthetic,
                    notes=_summed(records.notes, found.parts),
                    counted=tuple(gathered.each if self.gather else counted),
                )

    def _in_shards(self, data: Path, cut: Cut, request: RunRequest, taker: Taker) -> InShards | None:
        """What came of shards, or None if there are to be none."""
        if request.engine is None:
            return None
        driver = Driver(request.engine, cut.number, request.progress, taker)
        # A worker may be in another place.
        shard = Shard(data.absolute(), {}, self.shard, TaskLimits.on(request.engine, request.memory), None, {})
        if self.edited is not None and lies_by_state(data, tuple(cut.keys)):
            if (counted := self.edited(driver, shard)) is None:
                taker.forget()
            return counted
        return count_in_shards(driver, shard, cut) if any(forms(data, schema) for schema in cut.keys) else None


def _summed(notes: Mapping[str, int], parts: Sequence[ShardPart]) -> dict[str, int]:
    """Notes on public files and on shards; none if no shard was read, as no number of records is known then."""
    told = [part.notes for part in parts if part.notes]
    return dict.fromkeys(notes, 0) | sum(told, Numbers[str](notes)) if told else {}


def _within(folder: Path, public: Path, source: Source) -> Source:
    """A file of a folder without records, as a file of the one that it stands for."""
    paths = tuple(folder / path.relative_to(public) if path.is_relative_to(public) else path for path in source.paths)
    return replace(source, paths=paths)


def _find(folder: Path, cut: Cut, limits: TaskLimits) -> tuple[dict[str, Source], list[Finding]]:
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


def _placed(finding: Finding, sources: Mapping[str, Source]) -> Finding:
    """A finding with the lines of its file in place of the numbers of records, where these are not the same."""
    for source in sources.values():
        if source.header and finding.file in source.names:
            return replace(finding, lines=source.places(source.names.index(finding.file), finding.lines))
    return finding


@contextmanager
def open_engine(terms: EngineTerms) -> Iterator[Engine | None]:
    """The engine; None where records are counted in one piece by this process, which is quickest where they fit.

    Raises
    ------
    ConfigError, EngineError
        If it cannot be had.
    """
    if terms.kind == "spark":
        from yupana.engine.spark_session import open_spark  # noqa: PLC0415 (only who asks for it needs it)

        with open_spark(terms) as engine:
            yield engine
    elif terms.shards is None:
        yield None
    else:
        with scratch_folder() as folder:
            yield LocalEngine(folder)
