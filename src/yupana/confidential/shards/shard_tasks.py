"""A part of a record file as a worker reads it, and a shard as a folder that looks like any data folder."""

import pickle
import socket
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import duckdb

from yupana.confidential.records.database import default_memory, private_database, scratch_folder, threads_at_most
from yupana.confidential.records.object_store import LeftOnStore, bring_part, folder_of_others
from yupana.confidential.records.reader import damaged_parts, open_part
from yupana.confidential.records.sources import SHARD, Source, forms, rows_of, write_shard
from yupana.confidential.records.validation import BrokenRulesError, Finding, merge_findings
from yupana.confidential.tabulate.group_counts import Taker
from yupana.engine.engine import LEAST_MEMORY, Engine
from yupana.errors import EngineError, InputError
from yupana.files.columns import RecordFile
from yupana.files.database import STOPS, quoted
from yupana.files.delimited import PARQUET
from yupana.privacy.sealed import Sealed
from yupana.progress import Progress, told


@dataclass(frozen=True, slots=True, repr=False)
class ShardPart(Sealed):
    """What a shard tells: what was counted, if anything, and notes on its records."""

    counts: Any
    notes: Counter[str]


Told: TypeAlias = tuple[Sequence[Finding], ShardPart | None]
"""What a shard found, and what it told."""

CountFolder: TypeAlias = Callable[[Path, int], Told]
"""Finds what is wrong with the records of a folder, and counts them if they are fit, in so many bytes of memory."""

EMPTY: Final = "columns.parquet"
"""What a file is called that says which columns there are."""


@dataclass(frozen=True, slots=True)
class TaskLimits:
    """What a task may use: bytes of memory, and threads; None for all cores."""

    memory: int
    threads: int | None

    @staticmethod
    def on(engine: Engine, memory: int | None) -> "TaskLimits":
        """Those of an engine's tasks, which may use so much memory; by default their share of this machine's.

        A cluster has more slots than this machine, whose share of one may be too little for anything.
        """
        share = max(LEAST_MEMORY, default_memory() // engine.slots)
        return TaskLimits(memory or share, 1 if engine.slots > 1 else None)

    @contextmanager
    def database(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A database within the limits."""
        with self.kept(), private_database(self.memory) as db:
            yield db

    def kept(self) -> AbstractContextManager[None]:
        """Keep what is done within it to the threads."""
        return nullcontext() if self.threads is None else threads_at_most(self.threads)


@dataclass(frozen=True, slots=True)
class Driver:
    """Has an engine do what is asked of it: in so many shards, if that is said, and tells of its progress."""

    engine: Engine
    number: int | None
    progress: Progress
    taker: Taker

    def results(self, task: Callable[[bytes], bytes], work: Sequence[object], stage: str) -> Iterator[Any]:
        """What a task makes of each piece of work, as soon as it is there."""
        pieces = [pickle.dumps(one) for one in work]
        for result in told(self.engine.map(task, pieces), stage, len(work), self.progress):
            yield pickle.loads(result)  # noqa: S301 (of a worker of ours)

    def taken(self, part: ShardPart | None) -> ShardPart | None:
        """A part with what is kept of its counts, if it has any."""
        return part if part is None or part.counts is None else replace(part, counts=self.taker.take(part.counts))


class Stamp(NamedTuple):
    """What tells a file from another one at the same place: bytes, and when it was changed, in seconds.

    Mounts and copies may round times.
    """

    size: int
    changed: int

    @classmethod
    def of(cls, path: Path) -> "Stamp | None":
        """That of a file; None if there is none."""
        try:
            status = path.stat()
        except OSError:
            return None
        return cls(status.st_size, int(status.st_mtime))


def require_stamp(path: Path, stamp: Stamp | None) -> None:
    """Refuse a file that is not the one that the driver saw; None where it saw none.

    Raises
    ------
    InputError
        By its name and this machine's; what it holds is not told.
    """
    if stamp is None or Stamp.of(path) == stamp:
        return
    raise InputError(
        f"{path} is not the same file on {socket.gethostname()} as where the run began: its size or the time of its "
        "last change is another. Let all workers read one folder, or copies that keep these times, and begin again "
        "when nobody writes there"
    )


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a record file, to be cut: the first part says in every shard which columns there are."""

    schema: RecordFile
    source: Source
    part: int
    key: tuple[str, ...]
    shards: int
    limits: TaskLimits
    left: LeftOnStore | None
    stamp: Stamp | None

    @contextmanager
    def at_hand(self) -> Iterator[tuple[Source, dict[str, str]]]:
        """The file as this machine can read it; by its name its SHA-256, if it was brought from a store."""
        name = self.source.names[self.part]
        if self.left is None or name not in self.left.of_name:
            require_stamp(self.source.paths[self.part], self.stamp)
            yield self.source, {}
            require_stamp(self.source.paths[self.part], self.stamp)
            return
        with scratch_folder() as folder:
            path = folder / Path(name).name
            digest = bring_part(self.left, name, path)
            paths = tuple(path if part == self.part else other for part, other in enumerate(self.source.paths))
            yield replace(self.source, paths=paths), {name: digest}


@dataclass(frozen=True, slots=True)
class Shard:
    """How a shard is counted.

    ``stamps`` are those of the files of the folder, but for what was left on a store. ``unique`` names a column of some
    record files of which no value may occur twice, in whichever shards.
    """

    folder: Path
    sources: Mapping[RecordFile, Source]
    count: CountFolder
    limits: TaskLimits
    left: LeftOnStore | None
    stamps: Mapping[Path, Stamp | None]
    unique: Mapping[str, str] = field(default_factory=dict)

    def part(self, schema: RecordFile, number: int, key: tuple[str, ...], shards: int) -> Part:
        """A part of a record file, to be cut into so many shards."""
        source = self.sources[schema]
        stamp = self.stamps.get(source.paths[number])
        return Part(schema, source, number, key, shards, self.limits, self.left, stamp)

    def whole(self) -> Path:
        """The folder of all records, with its public files; on another machine one that has these alone.

        Raises
        ------
        InputError
            If a public file is another one than the driver's.
        """
        records = {path for source in self.sources.values() for path in source.paths}
        for path, stamp in self.stamps.items():
            if path not in records:
                require_stamp(path, stamp)
        return self.folder if self.left is None or self.folder.is_dir() else folder_of_others(self.left)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CountedShards(Sealed):
    """What could not be read, SHA-256 of what was brought from a store, and what was found and counted by shard."""

    unread: list[Finding]
    digests: dict[str, str]
    by_shard: list[Told]

    @property
    def findings(self) -> list[Finding]:
        """What was found, of all shards together."""
        return merge_findings([found for found, _ in self.by_shard])

    @property
    def parts(self) -> tuple[ShardPart, ...]:
        """What was counted, by shard."""
        return tuple(part for _, part in self.by_shard if part is not None)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class InShards(Sealed):
    """What came of all shards of a folder.

    Attributes
    ----------
    files : mapping of str to Source
        What was cut, by name.
    findings : sequence of Finding
        Rules that the records break, and remarks.
    parts : tuple
        What was counted, by shard; less than that if a rule is broken that forbids a run.
    public : context manager
        Gives a folder with all that the folder has but its records, in which what depends on public files is found.
    """

    files: Mapping[str, Source]
    findings: Sequence[Finding]
    parts: tuple[ShardPart, ...]
    public: AbstractContextManager[Path]


def stamps_of(folder: Path, sources: Iterable[Source]) -> dict[Path, Stamp | None]:
    """Stamps of record files, and of tables beside them; what else lies there decides nothing, and may be written."""
    beside = [path for path in folder.iterdir() if path.suffix in _TABLES and path.is_file()]
    return {path: Stamp.of(path) for path in (*beside, *(path for source in sources for path in source.paths))}


_TABLES: Final = (".csv", ".ini", PARQUET, ".tsv", ".txt")


def read_part(
    db: duckdb.DuckDBPyConnection, one: Part, take: Callable[[Mapping[str, str]], None]
) -> tuple[list[Finding], dict[str, str]]:
    """Open a part and take its records; what keeps them from being read, and SHA-256 of what was brought."""
    with one.at_hand() as (source, digest):
        try:
            typed, findings = open_part(db, source, one.part, one.schema)
            if not findings:
                take(typed)
        except STOPS:
            raise
        except duckdb.Error:
            part = replace(source, paths=(source.paths[one.part],), names=(source.names[one.part],))
            findings = damaged_parts(db, part)
        return findings, digest


def hash_of_key(one: Part, typed: Mapping[str, str]) -> str:
    """SQL for 64 bits of a record's key, which is compared as the text of its value, whatever its type."""
    # Records of which no column is read are all alike, and stay together.
    key = ", ".join(f"CAST({typed[name]} AS VARCHAR)" for name in one.key) or "''"
    return f"hash(concat_ws('|', {key}))"


def write_columns(db: duckdb.DuckDBPyConnection, query: str, folder: Path) -> None:
    """Write which columns there are, for a shard without records, or all its rows."""
    db.execute(f"COPY ({query}) TO {quoted(str(folder / EMPTY))} (FORMAT parquet)")


def count_told(task: Shard, folder: Path) -> Told:
    """Count a folder that stands for that of all records, and tell what is wrong in words of that."""
    try:
        found, counted = task.count(folder, task.limits.memory)
    except BrokenRulesError as error:
        found, counted = error.findings, None
    ours, theirs = str(folder), str(task.folder)
    return [replace(finding, text=finding.text.replace(ours, theirs)) for finding in found], counted


def lost_rows() -> EngineError:
    """The error on rows of a shard that were written, and are gone."""
    return EngineError(
        "records of a shard were lost, as others have removed files of the temporary folder; nothing can be made of "
        "what is left"
    )


def lay_out(folder: Path, whole: Path, sources: Mapping[RecordFile, Source]) -> None:
    """Make a data folder of a shard whose rows it has: beside them is whatever else the folder of all records has."""
    link_others(
        folder,
        whole,
        {path.name for schema in sources for path in (*forms(whole, schema), rows_of(folder, schema.name))},
    )
    for schema, source in sources.items():
        write_shard(folder, schema, source)


def link_others(folder: Path, whole: Path, ours: Collection[str]) -> None:
    """Link whatever else the folder of all records has.

    A file that says where else records lie would be believed in a folder of ours, so none is linked.
    """
    for path in whole.iterdir():
        if path.name not in ours and not path.name.endswith(SHARD):
            (folder / path.name).symlink_to(path)


@contextmanager
def linked(folder: Path, whole: Path, parts: Sequence[Part]) -> Iterator[tuple[list[Part], dict[str, str]]]:
    """Link parts in a folder as they lie in that of all records.

    Gives the parts as this machine can read them, and SHA-256 of what was brought from a store.

    Raises
    ------
    EngineError
        If links are gone at the end.
    """
    links = [folder / one.source.paths[one.part].relative_to(whole) for one in parts]
    for place in {path.relative_to(whole).parent for one in parts for path in one.source.paths}:
        (folder / place).mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        here, digests = list[Part](), dict[str, str]()
        for one, link in zip(parts, links, strict=True):
            source, digest = stack.enter_context(one.at_hand())
            link.symlink_to(source.paths[one.part])
            here.append(replace(one, source=source, left=None, stamp=None))
            digests |= digest
        yield here, digests
    # What others removed meanwhile may not have been read.
    if not all(link.is_symlink() for link in links):
        raise lost_rows()
