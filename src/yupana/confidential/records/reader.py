"""Open a record file, text or Parquet, as a typed relation. A value outside its column's domain becomes NULL.

After `open_records`, the database holds a relation named like the file (`RecordFile.relation`) with the columns of the
schema as numbers and a column ``record``: its number in its part of the file, from 1, and above that the number of the
part (`Source`). A file of one part numbers its records from 1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import duckdb

from yupana.confidential.records.database import numbers
from yupana.confidential.records.sources import (
    PART_SHIFT,
    PathColumns,
    Source,
    check_readable,
    find_source,
    in_path,
    lines_below_header,
    place_finding,
)
from yupana.confidential.records.validation import MOST_LINES, Finding
from yupana.errors import nearest
from yupana.files.columns import Column, RecordFile
from yupana.files.database import STOPS, named, quoted, source_of
from yupana.files.delimited import (
    NO_SEPARATOR,
    Header,
    column_types,
    csv_rows,
    parquet_rows,
    read_header,
)
from yupana.files.names import folded

_FEW_CODES: Final = 100

_NUMBERED: Final = ("file_row_number", "file_index")
"""What the database calls the numbers of the rows and files of Parquet."""

NO_HEADER: Final = "the first line is no header of column names; is this a CSV file?"

RECORD: Final = "number_of_record"
"""What the rows of a shard call their numbers."""


def open_records(db: duckdb.DuckDBPyConnection, source: Source, schema: RecordFile) -> list[Finding]:
    """Open what `find_source` found.

    Parameters
    ----------
    db : duckdb.DuckDBPyConnection
    source : Source
    schema : RecordFile

    Returns
    -------
    list of Finding
        Phase 1: what keeps the file from being read as such records. Empty if the relation was made. A Parquet file
        damaged in its middle shows only when it is read: whoever reads it first must expect an error
        (`damaged_parts`).
    """
    if findings := [] if source.rows else check_readable(source):
        return findings
    return _open_csv(db, source.paths[0], schema) if source.header else _open_parquet(db, source, schema)


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


def _open_csv(
    db: duckdb.DuckDBPyConnection, path: Path, schema: RecordFile, values: Mapping[str, str] | None = None
) -> list[Finding]:
    """Load a text file: SQL for the value of each column is that of its domain, if none is given."""
    try:
        found = read_header(path) if schema.alias else ascii_header(path)
    except UnicodeDecodeError:
        found = None
    if found is None:
        return [Finding("is_text", path.name, NO_HEADER)]
    header = found.names
    if findings := check_header(path.name, header, schema):
        return findings
    ours = {folded(name): column for column, name in schema.written.items()}
    # Names that are not ours may be empty, or differ by case alone, which the database does not see.
    names = [ours.get(folded(name), f"column {place}") for place, name in enumerate(header, 1)]
    of = values or {column.name: from_text(column) for column in schema.columns}
    typed = ", ".join(f"{value} AS {named(name)}" for name, value in of.items())
    return load_text(db, path, schema.relation, found.separator, names, typed)


def load_text(
    db: duckdb.DuckDBPyConnection, path: Path, table: str, separator: str, names: Sequence[str], typed: str
) -> list[Finding]:
    """Load the rows below the header of a text file.

    Parameters
    ----------
    db : duckdb.DuckDBPyConnection
    path : Path
    table : str
        The relation to make, with the numbers of records in a column ``record``.
    separator : str
    names : sequence of str
        What to call the columns of the file, each by another name.
    typed : str
        SQL for the columns of the relation, from texts.
    """
    rows = csv_rows(path, names, separator=separator, quote='"', rejects=f"{table}_rejects")
    try:
        db.execute(f"CREATE TABLE {table}_rows AS SELECT {typed} FROM {rows}")
    except STOPS:
        raise
    except duckdb.Error:
        text = "not readable as CSV throughout: binary content, or line ends of more than one kind"
        return [Finding("is_text", path.name, text)]
    findings = rejected(db, table, path.name, len(names))
    if not findings:
        findings = _empty_last_fields(db, path, separator, len(names))
    if not findings:
        db.execute(f"CREATE VIEW {table} AS SELECT *, rowid + 1 AS record FROM {table}_rows")
    return findings


def rejected(db: duckdb.DuckDBPyConnection, table: str, file: str, fields: int) -> list[Finding]:
    """Findings of the rows that the database could not read, which it keeps in ``<table>_rejects``."""
    rejects = f"FROM {table}_rejects"
    rules = db.execute(f"SELECT error_type::VARCHAR, count(DISTINCT line) {rejects} GROUP BY 1 ORDER BY 1").fetchall()
    findings = []
    for kind, count in rules:
        query = f"SELECT DISTINCT line {rejects} WHERE error_type::VARCHAR = ? ORDER BY 1 LIMIT {MOST_LINES}"
        lines = tuple(int(row[0]) for row in db.execute(query, [kind]).fetchall())
        text = _REJECTED.get(kind, f"is no row of {fields} fields")
        findings.append(Finding("row_shape", file, text, int(count), lines))
    return findings


def _empty_last_fields(db: duckdb.DuckDBPyConnection, path: Path, separator: str, fields: int) -> list[Finding]:
    """Find rows with a field too many that is empty: the database forgives them."""
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
    return [Finding("row_shape", path.name, _REJECTED["TOO MANY COLUMNS"], int(count), lines)]


_REJECTED: Final = {
    "MISSING COLUMNS": "has too few fields",
    "TOO MANY COLUMNS": "has too many fields",
    "UNQUOTED VALUE": "has a quotation mark that is not closed",
    "INVALID ENCODING": "is not UTF-8 text",
    "LINE SIZE OVER MAXIMUM": "is too long to be a record",
}


def open_part(
    db: duckdb.DuckDBPyConnection, source: Source, part: int, schema: RecordFile
) -> tuple[dict[str, str], list[Finding]]:
    """Make the relation of one part with its values as they are written, for `write_shard`.

    Parameters
    ----------
    db : duckdb.DuckDBPyConnection
    source : Source
        Found sound, as far as its parts tell without being read (`check_parts`).
    part : int
    schema : RecordFile

    Returns
    -------
    dict of str to str
        SQL for each column as a number of the domain, from the relation, whose record numbers are those of the source.
    list of Finding
        Rows that are none.
    """
    here = slice(part, part + 1)
    alone = {column: values[here] for column, values in source.in_path.alone.items()}
    paths, names, in_path = source.paths[here], source.names[here], PathColumns(alone)
    one = Source(paths, names, source.header, rows=source.rows, in_path=in_path, spelled=source.spelled)
    record = f"record + {part << PART_SHIFT} AS {RECORD}"
    raw = replace(schema, alias="as_written")
    if one.header:
        # An empty field of text is a text, where Parquet may have nothing at all.
        texts = {column.name: f"coalesce({named(column.name)}, '')" for column in schema.columns}
        findings = _open_csv(db, one.paths[0], raw, texts)
        typed = {column.name: from_text(column) for column in schema.columns}
    else:
        types, findings = stored_types(db, one, schema)
        typed = {} if findings else {column.name: from_stored(column, types[column.name]) for column in schema.columns}
        if not findings:
            _make_view(db, one, raw, {column.name: named(column.name) for column in schema.columns})
    if not findings:
        columns = ", ".join(named(column.name) for column in schema.columns)
        db.execute(f"CREATE VIEW {named(schema.relation)} AS SELECT {columns}, {record} FROM as_written")
        values = ", ".join(f"{typed[name]} AS {named(name)}" for name in source.in_path.besides)
        rows = f"(SELECT {values}, {RECORD} AS record FROM {named(schema.relation)})"
        findings = _in_wrong_folder(db, source, schema, rows)
    return typed, findings


def check_parts(db: duckdb.DuckDBPyConnection, source: Source, schema: RecordFile) -> list[Finding]:
    """Find what keeps files from being read as such records, as far as they tell that without being read."""
    return check_readable(source) or ([] if source.header else stored_types(db, source, schema)[1])


def _open_parquet(db: duckdb.DuckDBPyConnection, source: Source, schema: RecordFile) -> list[Finding]:
    types, findings = stored_types(db, source, schema)
    if not findings:
        _make_view(db, source, schema, {c.name: from_stored(c, types[c.name]) for c in schema.columns})
        findings = _in_wrong_folder(db, source, schema, schema.relation)
    return findings


def _in_wrong_folder(db: duckdb.DuckDBPyConnection, source: Source, schema: RecordFile, relation: str) -> list[Finding]:
    """Find records that have another code than the folder says that they lie in, as far as the folder tells a code."""
    findings = []
    for column in (column for column in schema.columns if column.name in source.in_path.besides):
        told = source.in_path.besides[column.name]
        value = from_stored(column, "VARCHAR")
        (codes,) = db.execute(
            f"SELECT list({value} ORDER BY place) FROM (SELECT unnest($1::VARCHAR[]) AS {named(column.name)}, "
            "generate_subscripts($1::VARCHAR[], 1) AS place)",
            [list(told)],
        ).fetchone() or ([],)
        of_part = ", ".join("NULL" if code is None else str(code) for code in codes)
        wrong = f"{named(column.name)} <> ([{of_part}])[(record >> {PART_SHIFT}) + 1]"
        text = f"{schema.written[column.name]} is not what its folder says; move the file, or rename the folder"
        try:
            findings += place_finding(db, source, Finding("in_folder", "", text), relation, wrong)
        except STOPS:
            raise
        except duckdb.Error:
            return damaged_parts(db, source)
    return findings


def _make_view(db: duckdb.DuckDBPyConnection, source: Source, schema: RecordFile, values: Mapping[str, str]) -> None:
    """Make the relation of Parquet files from SQL for the values of each column."""
    columns = ", ".join(f"{value} AS {named(name)}" for name, value in values.items())
    record = RECORD if source.rows else "file_row_number + 1"
    if len(source.paths) > 1 and not source.rows:
        record += f" + (file_index::BIGINT << {PART_SHIFT})"
    rows = stored_rows(source, schema)
    db.execute(f"CREATE OR REPLACE VIEW {schema.relation} AS SELECT {columns}, {record} AS record FROM {rows}")


def trust(db: duckdb.DuckDBPyConnection, source: Source, schema: RecordFile) -> None:
    """Read the codes of Parquet without looking at them again, once all are known to be right: that takes the longest.

    Parameters
    ----------
    db : duckdb.DuckDBPyConnection
    source : Source
    schema : RecordFile
        Of records without a finding.
    """
    if source.header:
        return
    types, _ = stored_types(db, source, schema)
    _make_view(db, source, schema, {c.name: _trusted(c, types[c.name]) for c in schema.columns})


def count_unfit(db: duckdb.DuckDBPyConnection, source: Source, schema: RecordFile) -> dict[str, int]:
    """How many values of each column are none of its domain.

    Parquet stores a value of a column once, mostly, so its values are counted first and looked at after; keys are not,
    as they have one for each record.
    """
    at_once = [column.name for column in schema.columns if column.key or source.header]
    found = dict.fromkeys(schema.header, 0)
    if at_once:
        counts = ", ".join(f"count(*) - count({named(name)})" for name in at_once)
        found |= zip(at_once, numbers(db, f"SELECT {counts} FROM {named(schema.relation)}"), strict=True)
    if not source.header:
        types, _ = stored_types(db, source, schema)
        for column in (column for column in schema.columns if not column.key):
            values = f"SELECT {named(column.name)}, count(*) AS n FROM {stored_rows(source, schema)} GROUP BY ALL"
            unfit = f"{from_stored(column, types[column.name])} IS NULL"
            (found[column.name],) = numbers(db, f"SELECT sum(n) FILTER ({unfit}) FROM ({values})")
    return found


def _trusted(column: Column, kind: str) -> str:
    """SQL for a value of the domain as a number."""
    if column.width and kind == "VARCHAR" and not (column.key or column.words or column.text or column.blank):
        return f"TRY_CAST({named(column.name)} AS {column.storage})"
    return from_stored(column, kind)


def stored_rows(source: Source, schema: RecordFile) -> str:
    """SQL for the rows of Parquet files, their columns by our names."""
    if source.rows:
        return parquet_rows(source.rows)
    rows = parquet_rows(source.paths)
    if not (schema.called or source.in_path.alone):
        return rows
    alone = source.in_path.alone
    columns = ", ".join(
        f"{in_path(alone[column]) if column in alone else f'f.{named(name)}'} AS {named(column)}"
        for column, name in (schema.written | dict(source.spelled)).items()
    )
    index = ", f.file_index" if len(source.paths) > 1 else ""
    return f"(SELECT {columns}, f.file_row_number{index} FROM {rows} f)"


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
    in_folders = [schema.written[column] for column in source.in_path.alone]
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
        kinds = dict.fromkeys(source.in_path.alone, "VARCHAR") | kinds
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


_FLOATS: Final = {"FLOAT", "DOUBLE"}
INTEGERS: Final = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}


def check_types(file: str, types: Mapping[str, str], schema: RecordFile) -> list[Finding]:
    """Find columns whose values of a SQL type are not read as those of their domain."""
    findings = []
    for column in schema.columns:
        kind = types[column.name]
        if column.words and not _are_numbers([word for word in column.words if word != column.blank]):
            # Of false and true the database makes 0 and 1.
            truth = tuple(word.lower() for word in column.words) == ("false", "true")
            allowed = {"BOOLEAN"} if truth else set[str]()
            needed = "text or true and false are" if truth else "text is"
        else:
            # Data frames make floating-point numbers of whole ones where some are missing.
            allowed = INTEGERS | _FLOATS if column.blank_is_last else INTEGERS
            needed = "text or an integer type is"
        if kind not in {"VARCHAR", *allowed}:
            findings.append(Finding("column_type", file, f"column {column.name} has type {kind}; {needed} needed"))
    return findings


def _are_numbers(words: Sequence[str]) -> bool:
    """Whether words are whole numbers as an integer type tells them: without leading zeros."""
    return all(word.isdecimal() and str(int(word)) == word for word in words)


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


def from_text(column: Column) -> str:
    """SQL for a text value as a number of the domain, or NULL. Codes need their leading zeros."""
    name = column.text or named(column.name)
    if column.key:
        return f"nullif({name}, '')"
    if column.words:
        return _from_words(column, name)
    if column.blank_is_last:
        text = f"coalesce({_compared(name, column.blank)}, '')"
        return _or_none(column, f"{text} IN ('', {quoted(column.blank)})", from_text(column.numbers))
    number = f"TRY_CAST({name} AS {'INTEGER' if column.high < 1 << 31 else 'BIGINT'})"
    if column.width:
        written = f"{_written_code(column, number)} = {name}"
    else:
        written = f"regexp_full_match({name}, '[0-9]{{1,9}}')"
    blank = f"WHEN {name} = {quoted(column.blank)} THEN 0::{column.storage} " if column.blank else ""
    return f"CASE {blank}WHEN {written} THEN {in_domain(column, number)} END"


def _written_code(column: Column, number: str) -> str:
    """SQL for the digits of a code, filled up with zeros where codes begin with some."""
    text = f"{number}::VARCHAR"
    return text if column.width and column.low >= 10 ** (column.width - 1) else f"lpad({text}, {column.width}, '0')"


def from_stored(column: Column, kind: str) -> str:
    """SQL for a value as Parquet stores it, of the SQL type `kind`, as a number of the domain, or NULL."""
    name = named(column.name)
    if column.key:
        return f"nullif({name}, '')" if kind == "VARCHAR" else name
    if kind == "BOOLEAN":
        return f"CAST({name} AS {column.storage})"
    if column.words:
        return _from_words(column, name if kind == "VARCHAR" else f"CAST({name} AS VARCHAR)")
    if column.blank_is_last and kind != "VARCHAR":
        missing = f"{name} IS NULL" + (f" OR {name} = {int(column.blank)}" if column.blank.isdecimal() else "")
        value = in_domain(column.numbers, name)
        if kind in _FLOATS:
            # The database takes isnan for false where it knows the least and the largest value of a file.
            missing += f" OR CAST({name} AS VARCHAR) = 'nan'"
            value = f"CASE WHEN {name} = floor({name}) THEN {value} END"
        return _or_none(column, missing, value)
    if kind != "VARCHAR":
        value = in_domain(column, name)
    else:
        few = column.width is not None and len(column.domain) <= _FEW_CODES and not column.blank
        value = _from_list(column, name) if few else from_text(column)
    return _or_none(column, f"{name} IS NULL", value) if column.blank else value


def _or_none(column: Column, missing: str, value: str) -> str:
    """SQL for a value, or for what stands for none where a condition holds."""
    return f"CASE WHEN {missing} THEN {column.none}::{column.storage} ELSE {value} END"


def _from_words(column: Column, text: str) -> str:
    """SQL for a word by its place; nothing at all is the word for no value, which comes first."""
    value = _from_list(column, text)
    # Not a function around the text, which would then be read for each record.
    return (
        f"CASE WHEN {text} IS NULL OR {text} = '' THEN 0::{column.storage} ELSE {value} END" if column.blank else value
    )


def _from_list(column: Column, text: str) -> str:
    """SQL for a text value by its place in the list of those allowed.

    The database evaluates a function of one column once per distinct value where Parquet stores each value once, which
    makes this ten times as fast as `from_text` there. Words are found by a hash: there may be thousands.
    """
    values = sorted(column.domain)
    text = _compared(text, "".join(column.words))
    codes = ", ".join(quoted(column.written(value)) for value in values)
    if column.words:
        return f"CAST(enum_code(TRY_CAST({text} AS ENUM({codes}))) AS {column.storage})"
    return f"([{', '.join(map(str, values))}]::{column.storage}[])[list_position([{codes}], {text})]"


def _compared(text: str, with_: str) -> str:
    """SQL for a text in the normal form of what it is compared with; as it is where that is ASCII."""
    return text if with_.isascii() else f"nfc_normalize({text})"


def in_domain(column: Column, number: str) -> str:
    """SQL for a number if it lies in the domain, else NULL."""
    test = f"{number} BETWEEN {column.low} AND {column.high}"
    if isinstance(column.domain, frozenset):
        test = f"{number} IN ({', '.join(map(str, sorted(column.domain)))})"
    return f"CASE WHEN {test} THEN CAST({number} AS {column.storage}) END"
