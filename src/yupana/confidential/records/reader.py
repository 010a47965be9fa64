"""Open a record file, text or Parquet, as a typed relation. A value outside its column's domain becomes NULL.

After `open_records`, the database holds a relation named like the file (`RecordFile.relation`) with the columns of the
schema as numbers and a column ``record``: its number in its part of the file, from 1, and above that the number of the
part (`Source`). A file of one part numbers its records from 1.
"""

import codecs
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

import duckdb

from yupana.confidential.records.database import numbers
from yupana.confidential.records.sources import (
    PART_SHIFT,
    Source,
    check_readable,
    find_broken,
    find_source,
    in_path,
    lines_below_header,
    tell,
)
from yupana.confidential.records.validation import MOST_LINES, Finding
from yupana.confidential.records.values import from_stored, from_text, is_readable, trusted
from yupana.errors import OutputError, nearest
from yupana.files.columns import UNSAID, Column, Dialect, RecordFile
from yupana.files.database import STOPS, named, source_of
from yupana.files.delimited import (
    NO_SEPARATOR,
    SEPARATORS,
    Header,
    column_types,
    csv_rows,
    parquet_rows,
    possible_headers,
    read_header,
)
from yupana.files.names import folded
from yupana.files.regular import regular

_NUMBERED: Final = ("file_row_number", "file_index")
"""What the database calls the numbers of the rows and files of Parquet."""

NO_HEADER: Final = "the first line is no header of column names; is this a CSV file in UTF-8?"

RECORD: Final = "number_of_record"
"""What the rows of a shard call their numbers."""


Values: TypeAlias = Callable[[Column, str], str]
"""SQL for the value of a column by its SQL type, from its name."""


def open_records(
    db: duckdb.DuckDBPyConnection, source: Source, schema: RecordFile, values: Values = from_stored
) -> list[Finding]:
    """Open what `find_source` found.

    Parameters
    ----------
    values : callable
        Makes values of what is stored; by default numbers of the domain of their column.

    Returns
    -------
    list of Finding
        Phase 1: what keeps the file from being read as such records. Empty if the relation was made. A Parquet file
        damaged in its middle shows only when it is read: whoever reads it first must expect an error
        (`damaged_parts`).
    """
    if findings := [] if source.rows else check_readable(source):
        return findings
    return (_open_csv if source.header else _open_parquet)(db, source, schema, values)


def open_files(
    db: duckdb.DuckDBPyConnection, folder: Path, files: Mapping[str, RecordFile]
) -> tuple[dict[str, Source], list[Finding]]:
    """Open what can be opened of the files of a folder, by name, and say why the rest cannot."""
    sources: dict[str, Source] = {}
    findings: list[Finding] = []
    for name, schema in files.items():
        source, wrong = find_source(folder, schema)
        if source is not None and not (wrong := open_records(db, source, schema)):
            sources[name] = source
        findings += wrong
    return sources, findings


def ascii_header(path: Path, separators: str = "|,") -> Header | None:
    """Read the separator and the column names of a text file, or None if its first line is not ASCII text."""
    try:
        found = read_header(path, separators=separators)
    except UnicodeDecodeError:
        return None
    return found if all(name.isascii() for name in found.names) else None


def check_header(file: str, header: Sequence[str], schema: RecordFile) -> list[Finding]:
    """Compare column names with the schema: missing, or twice. Order, case and other columns do not matter."""
    seen = [*map(folded, header)]
    written = schema.written
    missing = [name for name in schema.header if folded(written[name]) not in seen]
    twice = [name for name in written.values() if seen.count(folded(name)) > 1]
    findings = []
    if missing:
        of_map = {name: written[name] for name in missing if not schema.alias and name != written[name]}
        told = [f"{of_map[name]} (for {name})" if name in of_map else written[name] for name in missing]
        text = f"missing column {', '.join(told)} in the header"
        # Without a name of ours the line may be a record, which is not shown.
        if len(missing) < len(schema.columns):
            ours = set(map(folded, written.values()))
            text += nearest(written[missing[0]], [name for name in header if folded(name) not in ours])
        findings.append(Finding("columns_present", file, text))
    return findings + [Finding("columns_present", file, f"column {name} is there twice") for name in twice]


@dataclass(frozen=True, slots=True)
class TextFile:
    """A text file with a header: where it is, what findings call it, its separator, and a name for each column."""

    path: Path
    called: str
    separator: str
    names: Sequence[str]


def _open_csv(db: duckdb.DuckDBPyConnection, source: Source, schema: RecordFile, values: Values) -> list[Finding]:
    """Load text files."""
    ours = {folded(name): column for column, name in schema.written.items()}
    value_of = (lambda column, _: from_text(column)) if values is from_stored else values
    typed = ", ".join(f"{value_of(column, 'VARCHAR')} AS {named(column.name)}" for column in schema.columns)
    texts, findings = list[TextFile](), list[Finding]()
    with ExitStack() as stack:
        for path, name in zip(source.paths, source.names, strict=True):
            found, wrong = _header(path, name, schema)
            if found is not None and not wrong:
                # Names that are not ours may be empty, or differ by case alone, which the database does not see.
                names = [ours.get(folded(name), f"column {place}") for place, name in enumerate(found.names, 1)]
                text, wrong = stack.enter_context(_in_utf_8(db, path, name, schema.dialect or UNSAID))
                texts.append(TextFile(text, name, found.separator, names))
            findings += wrong
        return findings or load_text(db, texts, schema.relation, typed)


def _header(path: Path, name: str, schema: RecordFile) -> tuple[Header | None, list[Finding]]:
    if schema.dialect is not None:
        return _free_header(path, name, schema)
    found = ascii_header(path)
    return found, check_header(name, found.names, schema) if found else [Finding("is_text", name, NO_HEADER)]


def _free_header(path: Path, name: str, schema: RecordFile) -> tuple[Header | None, list[Finding]]:
    """The header of a file of any office: of several separators the one by which all columns are there."""
    dialect = schema.dialect or UNSAID
    try:
        headers = possible_headers(path, separator=dialect.separator, encoding=dialect.encoding)
    except UnicodeError:
        return None, [_other_encoding(name, dialect.encoding, 1)]
    if any("\0" in one for one in headers[0].names):
        return None, [_other_encoding(name, dialect.encoding, 1)]
    wrong = [check_header(name, header.names, schema) for header in headers]
    if len(headers) == 1 or wrong.count([]) == 1:
        place = wrong.index([]) if [] in wrong else 0
        advice = f"; or is its encoding not {dialect.encoding}?" if dialect.encoding else ""
        return headers[place], [replace(finding, text=finding.text + advice) for finding in wrong[place]]
    called = {sign: word for word, sign in SEPARATORS.items()}
    signs = [repr(called[header.separator]) for header in headers]
    text = f"the header could be separated by {' or '.join(signs)}; say which, such as separator = {signs[0]}"
    if all(wrong):
        text += f", by which there is {wrong[0][0].text}" if wrong[0][0].text.startswith("missing") else ""
    return None, [Finding("separator", name, text, lines=(1,))]


def _other_encoding(name: str, encoding: str, line: int) -> Finding:
    """That a file is not in the encoding that was told."""
    advice = "say its encoding, such as encoding = 'cp1252' or 'utf-16'"
    return Finding("is_text", name, f"is not {encoding or 'UTF-8'} text; {advice}", lines=(line,))


@contextmanager
def _in_utf_8(
    db: duckdb.DuckDBPyConnection, path: Path, name: str, dialect: Dialect
) -> Iterator[tuple[Path, list[Finding]]]:
    """Give a file as the database reads it: one in another encoding is copied into its private folder for a while."""
    if not dialect.encoding:
        yield path, []
        return
    ((folder,),) = db.execute("SELECT current_setting('temp_directory')").fetchall()
    copy = Path(str(folder)) / "in-utf-8.csv"
    try:
        try:
            line = _copy_text(path, dialect.encoding, copy)
        except OSError as error:
            raise OutputError(f"{name} could not be copied in UTF-8 into {folder}: {error.strerror}") from None
        yield copy, [] if line is None else [_other_encoding(name, dialect.encoding, line)]
    finally:
        copy.unlink(missing_ok=True)


def _copy_text(path: Path, encoding: str, copy: Path) -> int | None:
    """Write a text in UTF-8, or return the line from which on it cannot be read in an encoding."""
    decoder, line = codecs.getincrementaldecoder(encoding)(), 1
    with open(path, "rb", opener=regular) as file, copy.open("w", encoding="utf-8", newline="") as into:
        while True:
            some = file.read(_AT_ONCE)
            try:
                text = decoder.decode(some, final=not some)
                into.write(text)
            except UnicodeError as error:
                before = error.object[: error.start] if isinstance(error, UnicodeDecodeError) else b""
                return line + before.decode(encoding, "replace").count("\n")
            line += text.count("\n")
            if not some:
                return None


_AT_ONCE: Final = 1 << 20


def load_text(db: duckdb.DuckDBPyConnection, texts: Sequence[TextFile], table: str, typed: str) -> list[Finding]:
    """Load the rows below the headers of text files, the parts of one.

    Parameters
    ----------
    table : str
        The relation to make, with the numbers of records in a column ``record``.
    typed : str
        SQL for the columns of the relation, from texts.
    """
    rows, findings = list[int](), list[Finding]()
    for part, text in enumerate(texts):
        kept = f"{table}_{part}_rejects"
        read = csv_rows(text.path, text.names, separator=text.separator, quote='"', rejects=kept)
        make = f"INSERT INTO {table}_rows" if rows else f"CREATE TABLE {table}_rows AS"
        try:
            db.execute(f"{make} SELECT {typed or 'NULL AS nothing'} FROM {read}")
        except STOPS:
            raise
        except duckdb.Error:
            words = "not readable as CSV throughout: binary content, or line ends of more than one kind"
            findings.append(Finding("is_text", text.called, words, lines=_odd_line(text.path)))
            continue
        (count,) = numbers(db, f"SELECT count(*) FROM {table}_rows")
        rows.append(count - sum(rows))
        findings += _rejected(db, kept, text.called, len(text.names)) or _empty_last_fields(db, text)
    if not findings:
        db.execute(f"CREATE VIEW {table} AS SELECT *, {number_of_row(rows)} AS record FROM {table}_rows")
    return findings


def number_of_row(rows: Sequence[int]) -> str:
    """SQL for the part and number of a row in a table that holds so many rows of each part, one after the other."""
    if len(rows) == 1:
        return "rowid + 1"
    expression, before = "", 0
    for part, count in enumerate(rows):
        number = (part << PART_SHIFT) - before + 1
        before += count
        expression += f" WHEN rowid < {before} THEN rowid + ({number})"
    return f"CASE{expression} END"


def drop_relations(db: duckdb.DuckDBPyConnection, *names: str) -> None:
    """Drop relations with the tables that hold their rows."""
    for name in names:
        db.execute(f"DROP VIEW IF EXISTS {name}")
        db.execute(f"DROP TABLE IF EXISTS {name}_rows")


def _odd_line(path: Path) -> tuple[int, ...]:
    """The first line that ends otherwise than the header or holds a NUL; none if there is no such line."""
    with open(path, encoding="latin-1", newline="", opener=regular) as file:
        end = ""
        for number, line in enumerate(iter(lambda: file.readline(_AT_ONCE), ""), 1):
            ends = line[len(line.rstrip("\r\n")) :]
            end = end or ends
            if (ends and ends != end) or "\0" in line:
                return (number,)
    return ()


def _rejected(db: duckdb.DuckDBPyConnection, kept: str, file: str, fields: int) -> list[Finding]:
    """Findings of the rows that the database could not read, which it keeps in a table."""
    rejects = f"FROM {kept}"
    rules = db.execute(f"SELECT error_type::VARCHAR, count(DISTINCT line) {rejects} GROUP BY 1 ORDER BY 1").fetchall()
    findings = []
    for kind, count in rules:
        query = f"SELECT DISTINCT line {rejects} WHERE error_type::VARCHAR = ? ORDER BY 1 LIMIT {MOST_LINES}"
        lines = tuple(int(row[0]) for row in db.execute(query, [kind]).fetchall())
        text = _REJECTED.get(kind, f"is no row of {fields} fields")
        findings.append(Finding("row_shape", file, text, int(count), lines))
    return findings


def _empty_last_fields(db: duckdb.DuckDBPyConnection, file: TextFile) -> list[Finding]:
    """Find rows with a field too many that is empty: the database forgives them."""
    path, separator, fields = file.path, file.separator, len(file.names)
    read = f"SELECT line FROM {csv_rows(path, ['line'], separator=NO_SEPARATOR)}"
    # A separator in quotes separates nothing; few lines come so far that quotes must be looked for.
    counts = [
        f"length({text}) - length(replace({text}, '{separator}', '')) >= {fields}"
        for text in ("line", "regexp_replace(line, '\"[^\"]*\"', '', 'g')")
    ]
    broken = f"ends_with(line, '{separator}') AND {' AND '.join(counts)}"
    (count,) = db.execute(f"SELECT count(*) FROM ({read}) WHERE {broken}").fetchone() or (0,)
    if not count:
        return []
    numbered = f"SELECT line, row_number() OVER () AS record FROM ({read})"
    query = f"SELECT record FROM ({numbered}) WHERE {broken} ORDER BY 1 LIMIT {MOST_LINES}"
    lines = lines_below_header(path, [int(row[0]) for row in db.execute(query).fetchall()])
    return [Finding("row_shape", file.called, _REJECTED["TOO MANY COLUMNS"], int(count), lines)]


_REJECTED: Final = {
    "MISSING COLUMNS": "has too few fields",
    "TOO MANY COLUMNS": "has too many fields",
    "UNQUOTED VALUE": "has a quotation mark that is not closed",
    "INVALID ENCODING": "is not UTF-8 text; of a description say its encoding, such as encoding = 'cp1252'",
    "LINE SIZE OVER MAXIMUM": "is too long to be a record",
}


def open_part(
    db: duckdb.DuckDBPyConnection, source: Source, part: int, schema: RecordFile
) -> tuple[dict[str, str], list[Finding]]:
    """Make the relation of one part with its values as they are written, for `write_shard`.

    Parameters
    ----------
    source : Source
        Found sound, as far as its parts tell without being read (`check_parts`).
    part : int

    Returns
    -------
    dict of str to str
        SQL for each column as a number of the domain, from the relation, whose record numbers are those of the source.
    list of Finding
        Rows that are none.
    """
    one = source.part(part)
    record = f"record + {part << PART_SHIFT} AS {RECORD}"
    raw = replace(schema, alias="as_written")
    if one.header:
        # An empty field of text is a text, where Parquet may have nothing at all.
        findings = _open_csv(db, one, raw, lambda column, _: f"coalesce({named(column.name)}, '')")
        typed = {column.name: from_text(column) for column in schema.columns}
    else:
        types, findings = stored_types(db, one, schema)
        typed = {} if findings else {column.name: from_stored(column, types[column.name]) for column in schema.columns}
        if not findings:
            _make_view(db, one, raw, {column.name: named(column.name) for column in schema.columns})
    if not findings:
        columns = ", ".join([*(named(column.name) for column in schema.columns), record])
        db.execute(f"CREATE VIEW {named(schema.relation)} AS SELECT {columns} FROM as_written")
        values = [f"{typed[name]} AS {named(name)}" for name in source.repeated]
        rows = f"(SELECT {', '.join([*values, f'{RECORD} AS record'])} FROM {named(schema.relation)})"
        findings = or_damaged(db, source, lambda: _in_wrong_folder(db, source, schema, rows))
    return typed, findings


def check_parts(db: duckdb.DuckDBPyConnection, source: Source, schema: RecordFile) -> list[Finding]:
    """Find what keeps files from being read as such records, as far as they tell that without being read."""
    return check_readable(source) or ([] if source.header else stored_types(db, source, schema)[1])


def _open_parquet(db: duckdb.DuckDBPyConnection, source: Source, schema: RecordFile, values: Values) -> list[Finding]:
    types, findings = stored_types(db, source, schema)
    if not findings:
        _make_view(db, source, schema, {c.name: values(c, types[c.name]) for c in schema.columns})
        findings = or_damaged(db, source, lambda: _in_wrong_folder(db, source, schema, schema.relation))
    return findings


def _in_wrong_folder(db: duckdb.DuckDBPyConnection, source: Source, schema: RecordFile, relation: str) -> list[Finding]:
    """Find records that have another code than the folder says that they lie in, as far as the folder tells a code."""
    findings = []
    for column in (column for column in schema.columns if column.name in source.repeated):
        told = source.repeated[column.name]
        value = from_stored(column, "VARCHAR")
        (codes,) = db.execute(
            f"SELECT list({value} ORDER BY place) FROM (SELECT unnest($1::VARCHAR[]) AS {named(column.name)}, "
            "generate_subscripts($1::VARCHAR[], 1) AS place)",
            [list(told)],
        ).fetchone() or ([],)
        of_part = ", ".join("NULL" if code is None else str(code) for code in codes)
        wrong = f"{named(column.name)} <> ([{of_part}])[(record >> {PART_SHIFT}) + 1]"
        text = f"{schema.written[column.name]} is not what its folder says; move the file, or rename the folder"
        findings += tell(find_broken(db, relation, wrong), source, Finding("in_folder", "", text))
    return findings


def _make_view(db: duckdb.DuckDBPyConnection, source: Source, schema: RecordFile, values: Mapping[str, str]) -> None:
    """Make the relation of Parquet files from SQL for the values of each column."""
    record = RECORD if source.rows else "file_row_number + 1"
    if len(source.paths) > 1 and not source.rows:
        record += f" + (file_index::BIGINT << {PART_SHIFT})"
    columns = ", ".join([*(f"{value} AS {named(name)}" for name, value in values.items()), f"{record} AS record"])
    db.execute(f"CREATE OR REPLACE VIEW {schema.relation} AS SELECT {columns} FROM {stored_rows(source, schema)}")


def trust(db: duckdb.DuckDBPyConnection, source: Source, schema: RecordFile) -> None:
    """Read the codes of Parquet without looking at them again, once all are known to be right: that takes the longest.

    Parameters
    ----------
    schema : RecordFile
        Of records without a finding.
    """
    if not source.is_parquet:
        return
    types, _ = stored_types(db, source, schema)
    _make_view(db, source, schema, {c.name: trusted(c, types[c.name]) for c in schema.columns})


_MANY: Final = 1 << 24


def count_unfit(
    db: duckdb.DuckDBPyConnection, source: Source, schema: RecordFile, codes: Mapping[str, str] = MappingProxyType({})
) -> tuple[int, dict[str, tuple[int, int]]]:
    """How many records there are, and of each column how many values are none of its domain, and none of known codes.

    Parquet stores a value of a column once, mostly, so its values are counted first and looked at after; keys are not,
    as they have one for each record.

    Parameters
    ----------
    codes : mapping of str to str
        SQL for the codes that a column may have.
    """
    at_once = [c.name for c in schema.columns if c.key or not source.is_parquet or len(c.domain) > _MANY]
    counts = ", ".join(["count(*)", *(f"count(*) - count({named(name)})" for name in at_once)])
    records, *wrong = numbers(db, f"SELECT {counts} FROM {named(schema.relation)}")
    found = dict.fromkeys(schema.header, (0, 0)) | {n: (w, 0) for n, w in zip(at_once, wrong, strict=True)}
    types = stored_types(db, source, schema)[0] if source.is_parquet else {}
    for column in schema.columns:
        name, value, rows = column.name, named(column.name), named(schema.relation)
        if name in at_once and name not in codes:
            continue
        if name not in at_once:
            value, rows = from_stored(column, types[name]), stored_rows(source, schema)
        unfit, unknown = numbers(
            db,
            f"SELECT sum(n) FILTER ({value} IS NULL), sum(n) FILTER ({value} NOT IN ({codes.get(name, 'NULL')})) "
            f"FROM (SELECT {named(name)}, count(*) AS n FROM {rows} GROUP BY ALL)",
        )
        found[name] = (unfit, unknown)
    return records, found


def stored_rows(source: Source, schema: RecordFile) -> str:
    """SQL for the rows of Parquet files, their columns by our names."""
    if source.rows:
        return parquet_rows(source.rows)
    rows = parquet_rows(source.paths)
    if not (schema.called or source.in_path):
        return rows
    alone = source.in_path
    columns = [
        f"{in_path(alone[column]) if column in alone else f'f.{named(name)}'} AS {named(column)}"
        for column, name in (schema.written | dict(source.spelled)).items()
    ]
    columns += ["f.file_row_number", *(["f.file_index"] if len(source.paths) > 1 else [])]
    return f"(SELECT {', '.join(columns)} FROM {rows} f)"


def stored_types(
    db: duckdb.DuckDBPyConnection, source: Source, schema: RecordFile
) -> tuple[dict[str, str], list[Finding]]:
    """SQL types of the columns, on which all parts of Parquet must agree, or what keeps them from being read so."""
    findings: list[Finding] = []
    types: dict[str, str] = {}
    first, order = "", list[str]()
    if source.rows:
        # What was cut into shards has been looked at before.
        return column_types(db, stored_rows(source, schema)), []
    ours = {folded(name): column for column, name in schema.written.items()}
    in_folders = [schema.written[column] for column in source.in_path]
    for path, name in zip(source.paths, source.names, strict=True):
        try:
            found = column_types(db, parquet_rows([path]))
            header = _stored_names(db, path, found)
        except STOPS:
            raise
        except duckdb.Error:
            findings.append(Finding("is_parquet", name, "not a complete Parquet file; was it cut off?"))
            continue
        kinds = {ours[own]: kind for column, kind in found.items() if (own := folded(column)) in ours}
        kinds = dict.fromkeys(source.in_path, "VARCHAR") | kinds
        wrong = check_header(name, [*header, *in_folders], schema) or check_types(name, kinds, schema)
        wrong += [
            Finding("columns_present", name, f"column {column} has a name that rows are numbered by; rename or drop it")
            for column in header
            if column.lower() in _NUMBERED
        ]
        if not wrong and types and [*map(folded, header)] != order:
            # The database takes columns of later parts by their position.
            wrong = [Finding("column_order", name, f"the columns are not those of {first} in their order")]
        elif not wrong and types and kinds != types:
            # The database would cast one to the other, and an integer would lose its leading zeros.
            columns = ", ".join(column for column, kind in kinds.items() if kind != types[column])
            wrong = [Finding("column_type", name, f"column {columns} has another type than in {first}; all must agree")]
        elif not wrong and not types:
            types, first, order = kinds, name, [*map(folded, header)]
        findings += wrong
    return types, findings


def _stored_names(db: duckdb.DuckDBPyConnection, path: Path, found: Mapping[str, str]) -> list[str]:
    """Names of the columns of Parquet; the database renames one that is there before but for its case."""
    query = f"SELECT DISTINCT name FROM parquet_schema({source_of(path)})"
    written = {str(row[0]) for row in db.execute(query).fetchall()}
    return [name if name in written else name.rpartition("_")[0] for name in found]


def check_types(file: str, types: Mapping[str, str], schema: RecordFile) -> list[Finding]:
    """Find columns whose values of a SQL type are not read as those of their domain."""
    findings = []
    for column in schema.columns:
        if needed := is_readable(column, kind := types[column.name]):
            text = f"column {schema.written[column.name]} has type {kind}; {needed} needed"
            findings.append(Finding("column_type", file, text))
    return findings


def or_damaged(db: duckdb.DuckDBPyConnection, source: Source, found: Callable[[], list[Finding]]) -> list[Finding]:
    """What is found in a file, or which of its parts are damaged."""
    try:
        return found()
    except STOPS:
        raise
    except duckdb.Error:
        return damaged_parts(db, source)


def damaged_parts(db: duckdb.DuckDBPyConnection, source: Source) -> list[Finding]:
    """Name the Parquet files whose values cannot all be read, after an error that says that there is one."""
    text = "damaged: some of its pages cannot be read"
    findings = []
    for path, name in zip(source.paths, source.names, strict=True):
        try:
            db.execute(f"SELECT max(hash(COLUMNS(*))) FROM {parquet_rows([path])}").fetchall()
        except STOPS:
            raise
        except duckdb.Error:
            findings.append(Finding("is_parquet", name, text))
    return findings or [Finding("is_parquet", source.names[0], text)]
