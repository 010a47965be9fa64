"""Open a record file, CSV or Parquet, as a typed relation. A value outside its column's domain becomes NULL.

After `open_records`, the database holds a relation named like the file (``persons``) with the columns of the schema as
numbers and a column ``record``, its number in the file, from 1.
"""

import codecs
import csv
import glob
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import duckdb

from hollerith.records.database import STOPS
from hollerith.records.findings import MOST_LINES, Finding
from hollerith.records.schema import Column, RecordFile

_HEADER_LIMIT: Final = 1 << 16
_SEPARATORS: Final = "|,"
_FEW_CODES: Final = 100


def open_records(db: duckdb.DuckDBPyConnection, folder: Path, schema: RecordFile) -> list[Finding]:
    """Open ``folder/<name>.csv`` or ``folder/<name>.parquet``.

    Parameters
    ----------
    db : duckdb.DuckDBPyConnection
    folder : Path
    schema : RecordFile

    Returns
    -------
    list of Finding
        Phase 1: what keeps the file from being read as such records. Empty if the relation was made. A Parquet file
        damaged in its middle shows only when it is read: whoever reads it first must expect an error.
    """
    path, findings = find_file(folder, schema)
    if path is None:
        return findings
    try:
        with path.open("rb") as file:
            head = file.read(_HEADER_LIMIT)
    except OSError as error:
        return [Finding("readable", path.name, error.strerror or "cannot be read")]
    if not head:
        return [Finding("not_empty", path.name, "the file is empty: not even a header")]
    return _open_parquet(db, path, schema) if path.suffix == ".parquet" else _open_csv(db, path, head, schema)


def find_file(folder: Path, schema: RecordFile) -> tuple[Path | None, list[Finding]]:
    """Which of the two forms of a file is there, or what is wrong with that."""
    there = [path for suffix in ("csv", "parquet") if (path := folder / f"{schema.name}.{suffix}").is_file()]
    if len(there) == 1:
        return there[0], []
    name = f"{schema.name}.csv or {schema.name}.parquet"
    if there:
        return None, [Finding("one_file", name, "both are there; leave one")]
    return None, [Finding("file_present", name, f"no such file in {folder}")]


def check_header(path: Path, header: tuple[str, ...], schema: RecordFile) -> list[Finding]:
    """Compare column names with the schema: missing, unexpected, or out of order."""
    expected = schema.header
    # A name that is not ours could be a record where the header is missing, so unexpected names are placed, not shown.
    unexpected = [str(place) for place, name in enumerate(header, 1) if name not in expected]
    missing = [name for name in expected if name not in header]
    findings = []
    if missing:
        findings.append(Finding("columns_present", path.name, f"missing column {', '.join(missing)} in the header"))
    if unexpected:
        text = f"unexpected column at position {', '.join(unexpected)} of the header; expected {', '.join(expected)}"
        findings.append(Finding("no_other_columns", path.name, text))
    if not findings and header != expected:
        findings.append(Finding("column_order", path.name, f"columns out of order; expected {', '.join(expected)}"))
    return findings


def _open_csv(db: duckdb.DuckDBPyConnection, path: Path, head: bytes, schema: RecordFile) -> list[Finding]:
    try:
        # The head may end within a character, so only its first line must be text.
        line = head.removeprefix(codecs.BOM_UTF8).splitlines()[0].decode("ascii")
    except (UnicodeDecodeError, IndexError):
        return [Finding("is_text", path.name, "the first line is no header of column names; is this a CSV file?")]
    separator = next((s for s in _SEPARATORS if s in line), _SEPARATORS[0])
    header = tuple(name.strip() for name in next(csv.reader([line], delimiter=separator)))
    if findings := check_header(path, header, schema):
        return findings
    columns = ", ".join(f"{_quoted(name)}: 'VARCHAR'" for name in schema.header)
    typed = ", ".join(f"{_from_text(column)} AS {column.name}" for column in schema.columns)
    try:
        db.execute(f"""
            CREATE TABLE {schema.name}_rows AS SELECT {typed} FROM read_csv({_source(path)},
                auto_detect = false, header = false, skip = 1,
                delim = {_quoted(separator)}, quote = '"', escape = '"',
                columns = {{{columns}}}, strict_mode = true, store_rejects = true,
                rejects_table = '{schema.name}_rejects', rejects_scan = '{schema.name}_rejects_scan')
            """)
    except STOPS:
        raise
    except duckdb.Error:
        text = "not readable as CSV throughout: binary content, or line ends of more than one kind"
        return [Finding("is_text", path.name, text)]
    rejects = f"FROM {schema.name}_rejects"
    rules = db.execute(f"SELECT error_type::VARCHAR, count(DISTINCT line) {rejects} GROUP BY 1 ORDER BY 1").fetchall()
    findings = []
    for kind, count in rules:
        query = f"SELECT DISTINCT line {rejects} WHERE error_type::VARCHAR = ? ORDER BY 1 LIMIT {MOST_LINES}"
        lines = tuple(int(row[0]) for row in db.execute(query, [kind]).fetchall())
        text = _REJECTED.get(kind, f"is no row of {len(schema.columns)} fields")
        findings.append(Finding("row_shape", path.name, text, int(count), lines))
    if not findings:
        findings = _empty_last_fields(db, path, separator, len(schema.columns))
    if not findings:
        db.execute(f"CREATE VIEW {schema.name} AS SELECT *, rowid + 1 AS record FROM {schema.name}_rows")
    return findings


def _empty_last_fields(db: duckdb.DuckDBPyConnection, path: Path, separator: str, fields: int) -> list[Finding]:
    """Find rows with a field too many that is empty: the database forgives them."""
    read = f"""
        SELECT line FROM read_csv({_source(path)}, auto_detect = false, header = false, skip = 1,
            delim = '\x01', quote = '', escape = '', columns = {{line: 'VARCHAR'}})"""
    broken = f"ends_with(line, '{separator}') AND length(line) - length(replace(line, '{separator}', '')) >= {fields}"
    (count,) = db.execute(f"SELECT count(*) FROM ({read}) WHERE {broken}").fetchone() or (0,)
    if not count:
        return []
    numbered = f"SELECT line, row_number() OVER () AS record FROM ({read})"
    query = f"SELECT record FROM ({numbered}) WHERE {broken} ORDER BY 1 LIMIT {MOST_LINES}"
    records = [int(row[0]) for row in db.execute(query).fetchall()]
    return [Finding("row_shape", path.name, _REJECTED["TOO MANY COLUMNS"], int(count), places(path, records))]


def places(path: Path, records: Iterable[int]) -> tuple[int, ...]:
    """Where records stand in their file: rows of Parquet, lines of CSV, of which blank ones are no records."""
    wanted = sorted(records)
    if path.suffix == ".parquet" or not wanted:
        return tuple(wanted)
    found: list[int] = []
    record = 0
    # Universal newlines, as the database reads them; the bytes of a record do not matter here.
    with path.open(encoding="latin-1") as file:
        for line, text in enumerate(file, 1):
            if line == 1 or text == "\n":
                continue
            record += 1
            while len(found) < len(wanted) and wanted[len(found)] == record:
                found.append(line)
            if len(found) == len(wanted):
                break
    return tuple(found)


_REJECTED: Final = {
    "MISSING COLUMNS": "has too few fields",
    "TOO MANY COLUMNS": "has too many fields",
    "UNQUOTED VALUE": "has a quotation mark that is not closed",
    "INVALID ENCODING": "is not UTF-8 text",
    "LINE SIZE OVER MAXIMUM": "is too long to be a record",
}


def _open_parquet(db: duckdb.DuckDBPyConnection, path: Path, schema: RecordFile) -> list[Finding]:
    source = f"read_parquet({_source(path)}, file_row_number = true)"
    try:
        described = db.execute(f"DESCRIBE SELECT * EXCLUDE (file_row_number) FROM {source}").fetchall()
    except STOPS:
        raise
    except duckdb.Error:
        return [Finding("is_parquet", path.name, "not a complete Parquet file; was it cut off?")]
    types = {str(row[0]): str(row[1]) for row in described}
    if findings := check_header(path, tuple(types), schema):
        return findings
    allowed = {"VARCHAR", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
    findings = [
        Finding("column_type", path.name, f"column {name} has type {kind}; text or an integer type is needed")
        for name, kind in types.items()
        if kind not in allowed
    ]
    if findings:
        return findings

    def typed(column: Column) -> str:
        if types[column.name] != "VARCHAR":
            return _in_domain(column, column.name)
        few = column.width is not None and len(column.domain) <= _FEW_CODES
        return _from_dictionary(column) if few else _from_text(column)

    columns = ", ".join(f"{typed(column)} AS {column.name}" for column in schema.columns)
    db.execute(f"CREATE VIEW {schema.name} AS SELECT {columns}, file_row_number + 1 AS record FROM {source}")
    return []


def _from_text(column: Column) -> str:
    """SQL for a text value as a number of the domain, or NULL. Codes need their leading zeros."""
    number = f"TRY_CAST({column.name} AS INTEGER)"
    if column.width:
        written = f"lpad({number}::VARCHAR, {column.width}, '0') = {column.name}"
    else:
        written = f"regexp_full_match({column.name}, '[0-9]{{1,9}}')"
    return f"CASE WHEN {written} THEN {_in_domain(column, number)} END"


def _from_dictionary(column: Column) -> str:
    """The same for a column whose values Parquet stores once each.

    The database evaluates a function of one such column once per distinct value, which makes this ten times as fast as
    `_from_text`; for values that are not stored so, it is a search through the list.
    """
    values = sorted(column.domain)
    codes = ", ".join(_quoted(column.written(value)) for value in values)
    return f"([{', '.join(map(str, values))}]::{column.storage}[])[list_position([{codes}], {column.name})]"


def _in_domain(column: Column, number: str) -> str:
    """SQL for a number if it lies in the domain, else NULL."""
    test = f"{number} BETWEEN {column.low} AND {column.high}"
    if isinstance(column.domain, frozenset):
        test = f"{number} IN ({', '.join(map(str, sorted(column.domain)))})"
    return f"CASE WHEN {test} THEN CAST({number} AS {column.storage}) END"


def _source(path: Path) -> str:
    """A path as the database reads it, which takes ``*`` and ``[`` for patterns."""
    return _quoted(glob.escape(str(path)))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
