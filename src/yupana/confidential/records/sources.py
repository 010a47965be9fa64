"""The files that hold records: which forms are there, with their parts and shards, and where in them a record stands.

Columns may stand in the names of folders alone, as Hive lays out a table: ``geo/TABBLKST=06/part-0.parquet``.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

import duckdb

from yupana.confidential.records.database import is_scratch
from yupana.confidential.records.validation import MOST_LINES, BrokenRecords, Finding, more_files, require_none
from yupana.errors import InputError
from yupana.files.columns import Column, RecordFile
from yupana.files.database import open_database, quoted
from yupana.files.delimited import PARQUET, column_types, parquet_rows
from yupana.files.names import folded, normal, on_disk
from yupana.files.regular import FOLDER, must_be, regular
from yupana.privacy.sealed import Sealed

SHARD: Final = ".shard"
"""How the name of a file ends that says where the records of a shard are; none but `write_shard` makes one."""


PART_SHIFT: Final = 40
"""A record's number counts within its part in the bits below this one, and the parts in those above."""


NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
"""How Hive writes that a column has no value."""


PathColumns: TypeAlias = Mapping[str, tuple[str | None, ...]]
"""What the names of folders say of columns: by column the value of each part, as a file would write it."""


def columns_in_path(paths: Sequence[Path], names: Sequence[str], schema: RecordFile) -> tuple[PathColumns, PathColumns]:
    """Find the columns that every part has in its path: those that files leave to folders, and those in both.

    Keys are never there: they tell records apart.

    Parameters
    ----------
    paths : sequence of Path
        The parts, which need not be sound.
    names : sequence of str
        Their names from the folder of the records on.
    """
    told = [_told(name) for name in names]
    columns = [(column, folded(schema.written[column.name])) for column in schema.columns if not column.key]
    found = {column: [values[name] for values in told] for column, name in columns if all(name in of for of in told)}
    if not found:
        return {}, {}
    there = _columns_of_first(paths).keys()
    told_by_name = {column.name: tuple(_written(column, value) for value in of) for column, of in found.items()}
    besides = {name for name in told_by_name if folded(schema.written[name]) in there}
    alone = {name: values for name, values in told_by_name.items() if name not in besides}
    return alone, {name: values for name, values in told_by_name.items() if name in besides}


def _told(name: str) -> dict[str, str]:
    """What the folders of a path say, by `folded` names; of one that is there twice the inner one."""
    pairs = (segment.partition("=") for segment in name.split("/")[1:-1])
    return {folded(unquote(column)): unquote(value) for column, equals, value in pairs if equals}


def _columns_of_first(paths: Sequence[Path]) -> dict[str, str]:
    """The columns of the first part that is sound as it spells them, by `folded` names."""
    with open_database() as db:
        for path in paths:
            try:
                return {folded(name): name for name in column_types(db, parquet_rows([path]))}
            except duckdb.Error:
                continue
    return {}


def _spelled(paths: Sequence[Path], schema: RecordFile) -> dict[str, str]:
    """How Parquet spells the columns that it may spell otherwise than by case, by our names."""
    wanted = {column: name for column, name in schema.written.items() if not name.isascii() or " " in name}
    there = _columns_of_first(paths) if wanted else {}
    return {column: there[folded(name)] for column, name in wanted.items() if folded(name) in there}


def _written(column: Column, value: str) -> str | None:
    """A value as a file would write it: a folder may leave out the leading zeros of a code, as of an integer."""
    if value == NO_VALUE:
        return None
    if column.width and not column.words and re.fullmatch("0|[1-9][0-9]*", value, re.ASCII):
        return value.zfill(column.width)
    return value


def in_path(values: Sequence[str | None]) -> str:
    """SQL for the value of each row of several Parquet files ``f``, or of one."""
    texts = ["NULL" if value is None else quoted(value) for value in values]
    if len(texts) == 1:
        return f"({texts[0]}::VARCHAR)"
    return f"([{', '.join(texts)}]::VARCHAR[])[f.file_index::BIGINT + 1]"


@dataclass(frozen=True, slots=True)
class Source:
    """The file or files that hold one kind of records.

    Attributes
    ----------
    paths : tuple of Path
        The parts, in the order of their numbers.
    names : tuple of str
        What findings call them.
    header : bool
        Whether the first line of each is no record.
    beside : tuple of Path
        Files of another kind that complete these records and were checked with them.
    rows : tuple of Path
        Of a shard: Parquet files that hold its records of all parts, by our names of the columns, and their numbers.
        They are read in place of the parts.
    in_path, repeated : PathColumns
        What the names of folders say of columns that the files leave to them, and of others.
    digests : tuple of str
        SHA-256 of each part, where others than this process have read them.
    spelled : mapping of str to str
        How Parquet spells columns that the database would not find by what the schema says, by our names.
    encoding : str
        Of text; empty for one whose lines end as those of ASCII.
    """

    paths: tuple[Path, ...]
    names: tuple[str, ...]
    header: bool = False
    beside: tuple[Path, ...] = ()
    rows: tuple[Path, ...] = ()
    in_path: PathColumns = field(default_factory=dict)
    repeated: PathColumns = field(default_factory=dict)
    digests: tuple[str, ...] = ()
    spelled: Mapping[str, str] = field(default_factory=dict)
    encoding: str = ""

    @property
    def is_parquet(self) -> bool:
        """Whether the database reads its records where they lie."""
        return bool(self.rows) or self.paths[0].suffix == PARQUET

    def part(self, place: int) -> "Source":
        """One part alone."""
        here = slice(place, place + 1)
        alone = {column: values[here] for column, values in self.in_path.items()}
        one = replace(self, paths=self.paths[here], names=self.names[here], in_path=alone)
        return replace(one, repeated={}, beside=(), digests=())

    def called(self, name: str) -> str:
        """What a finding about all parts calls records of this name."""
        return self.names[0] if len(self.names) == 1 else f"{name} ({len(self.names):,} files)"

    def places(self, part: int, records: Iterable[int]) -> tuple[int, ...]:
        """Where records of a part stand in it: rows of Parquet, lines of text, of which blank ones are no records."""
        wanted = sorted(records)
        if not self.header or not wanted:
            return tuple(wanted)
        return lines_below_header(self.paths[part], wanted, self.encoding)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OpenedRecords(Sealed):
    """Records that a database holds as relations (`RecordFile.relation`), and what was found in them.

    Attributes
    ----------
    db : duckdb.DuckDBPyConnection
    folder : Path
        Where they lie.
    files : mapping of str to Source
    findings : tuple of Finding
        Rules broken, and remarks.
    is_synthetic : bool
        Whether the folder was marked as made up when it was opened; a mark that appears later counts for nothing.
    notes : mapping of str to int
        What is no error but should be known; of several shards it adds up.
    counted : tuple or None
        What shards counted of the records, which are then not in the database; None if they are.
    published : object
        Public totals that decide what is measured, where there are any.
    """

    db: duckdb.DuckDBPyConnection
    folder: Path
    files: Mapping[str, Source]
    findings: tuple[Finding, ...]
    is_synthetic: bool
    notes: Mapping[str, int] = field(default_factory=dict)
    counted: tuple[Any, ...] | None = None
    published: Any = None

    def require_valid(self) -> None:
        """Refuse records that break rules.

        Raises
        ------
        InputError
            Naming every rule broken, how often and where.
        """
        require_none(self.findings)


SYNTHETIC_MARK: Final = "SYNTHETIC"
"""A file of this name says that the records beside it are nobody's."""


def is_synthetic(folder: Path) -> bool:
    """Whether a data folder is marked as made up."""
    return (folder / SYNTHETIC_MARK).is_file()


def forms(folder: Path, schema: RecordFile) -> list[Path]:
    """Which forms of a record file are there: text, Parquet, or a folder of Parquet files under either name."""
    # In the folder of a user it would lead to any file of this machine.
    if is_scratch(folder) and (cut := folder / f".{schema.name}{SHARD}").is_file():
        return [cut]
    paths = [path for name in schema.file_names for path in on_disk(folder / name)]
    there = [path for path in paths if path.is_file() or (path.suffix == PARQUET and path.is_dir())]
    folders = on_disk(folder / schema.name) if PARQUET[1:] in schema.endings else []
    return there + [parts for parts in folders if _is_partitioned(parts)]


def _is_partitioned(parts: Path) -> bool:
    try:
        return parts.is_dir() and any(parts.rglob(f"*{PARQUET}"))
    except OSError:
        return False


def rows_of(folder: Path, schema: str) -> Path:
    """Where the rows of some records of a shard lie."""
    return folder / f".{schema}.rows"


def make_rows(folder: Path, schemas: Iterable[RecordFile]) -> None:
    """Make the folders of rows of a shard, once: one that others remove with its rows must not be there again."""
    for schema in schemas:
        rows_of(folder, schema.name).mkdir()


def write_shard(folder: Path, schema: RecordFile, source: Source) -> None:
    """Say in the folder of a shard that its rows of some records are in `rows_of`, and what they were cut from."""
    source = replace(source, rows=tuple(sorted(rows_of(folder, schema.name).iterdir())))
    told = {name: [str(path) for path in getattr(source, name)] for name in ("paths", "names", "beside", "rows")}
    (folder / f".{schema.name}{SHARD}").write_text(json.dumps(told))


def read_shard(path: Path) -> Source:
    """What `write_shard` said. Findings then tell the numbers of records, not the lines that text has them on."""
    told = json.loads(path.read_text())
    paths, beside, rows = (tuple(map(Path, told[name])) for name in ("paths", "beside", "rows"))
    return Source(paths, tuple(told["names"]), beside=beside, rows=rows)


def find_source(folder: Path, schema: RecordFile) -> tuple[Source | None, list[Finding]]:
    """Which form of a record file is there, or what is wrong with that."""
    there = forms(folder, schema)
    if len(there) > 1:
        names = " or ".join(path.name for path in there)
        text = f"{'both' if len(there) == 2 else 'all'} are there; leave one"
        if len({normal(path.name) for path in there}) < len(there):
            text = f"are there, two spellings of one name in Unicode ({there[0].name!a}, {there[1].name!a}); leave one"
        return None, [Finding("one_file", names, text)]
    if not there:
        return None, [Finding("file_present", " or ".join(schema.file_names), f"no such file in {folder}")]
    path = there[0]
    if path.suffix == SHARD:
        return read_shard(path), []
    if path.is_dir():
        return _partitioned(path, schema)
    encoding = schema.dialect.encoding if schema.dialect else ""
    is_text = path.suffix != PARQUET
    spelled = {} if is_text else _spelled([path], schema)
    return Source((path,), (path.name,), is_text, spelled=spelled, encoding=encoding), []


def _partitioned(root: Path, schema: RecordFile) -> tuple[Source | None, list[Finding]]:
    """The Parquet files in a folder and the folders in it. Hidden files and marks such as ``_SUCCESS`` are no parts."""
    marks = ("_", ".")
    try:
        found = sorted(path for path in root.rglob("*") if not path.is_dir() and not path.name.startswith(marks))
    except OSError as error:
        return None, [Finding("readable", root.name, error.strerror or "cannot be read")]
    parts = [(path, path.relative_to(root.parent).as_posix()) for path in found]
    # A part passed over would be a state left out of the tables, so nothing is.
    findings = [
        Finding("is_parquet", name, "a part must be a file whose name ends in .parquet; take it out of the folder")
        for path, name in parts
        if path.suffix != PARQUET or not path.is_file()
    ]
    if not parts:
        findings = [Finding("not_empty", root.name, "the folder holds no file that ends in .parquet")]
    if findings:
        return None, findings
    paths, names = tuple(path for path, _ in parts), tuple(name for _, name in parts)
    in_path, repeated = columns_in_path(paths, names, schema)
    return Source(paths, names, in_path=in_path, repeated=repeated, spelled=_spelled(paths, schema)), []


def require_folder(folder: Path) -> None:
    """Refuse a folder of records that is none, or that the database could not name.

    Raises
    ------
    InputError
    """
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        raise InputError(f"the name of the data folder {folder!a} is not UTF-8; rename it") from None
    must_be(FOLDER, folder, "name the folder that holds the records")


def no_names(folder: Path) -> InputError:
    """The error on a map of columns where names are none of the user's own."""
    return InputError(f"--columns is for persons, units, geo and records as CSV or Parquet; {folder} holds others")


def check_readable(source: Source) -> list[Finding]:
    """Find files that cannot be opened or are empty."""
    findings = []
    for path, name in zip(source.paths, source.names, strict=True):
        try:
            with open(path, "rb", opener=regular) as file:
                head = file.read(1)
        except OSError as error:
            findings.append(Finding("readable", name, error.strerror or "cannot be read"))
            continue
        if not head:
            text = (
                "the file is empty: not even a header"
                if source.header or path.suffix == PARQUET
                else "the file is empty"
            )
            findings.append(Finding("not_empty", name, text))
    return findings


def lines_below_header(path: Path, wanted: Sequence[int], encoding: str = "") -> tuple[int, ...]:
    """Lines of a CSV file on which records stand, whose numbers are in order."""
    found: list[int] = []
    record = 0
    # Universal newlines, as the database reads them; the bytes of a record do not matter here.
    with path.open(encoding=encoding or "latin-1", errors="replace") as file:
        for line, text in enumerate(file, 1):
            if line == 1 or text == "\n":
                continue
            record += 1
            while len(found) < len(wanted) and wanted[len(found)] == record:
                found.append(line)
            if len(found) == len(wanted):
                break
    return tuple(found)


def find_broken(db: duckdb.DuckDBPyConnection, relation: str, broken: str) -> BrokenRecords:
    """Find the records of a relation for which some SQL is true."""
    found = db.execute(
        f"SELECT record >> {PART_SHIFT}, count(*), min(record, {MOST_LINES}) FROM {relation} WHERE {broken} "
        "GROUP BY 1 ORDER BY 1"
    ).fetchall()
    first = {part: tuple(sorted(records)) for part, _, records in found[:MOST_LINES]}
    return BrokenRecords({part: count for part, count, _ in found}, first)


def tell(broken: BrokenRecords, source: Source, finding: Finding) -> list[Finding]:
    """Say in which files, and where in them, records lie: one finding for each file."""
    findings = []
    for part, records in broken.first.items():
        lines = source.places(part, (record & ((1 << PART_SHIFT) - 1) for record in records))
        findings.append(replace(finding, file=source.names[part], count=broken.counts[part], lines=lines))
    beyond = [(part, count) for part, count in broken.counts.items() if part not in broken.first]
    others = [replace(finding, file=source.names[part], count=count) for part, count in beyond]
    # Those of shards are put together when all are known (`merge_findings`).
    return findings + (others if source.rows else more_files(others))
