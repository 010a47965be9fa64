"""Files of SPSS, Stata and SAS, read by pyreadstat a stretch of rows at a time."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np

from yupana.confidential.records.fixed_records import as_spelled
from yupana.confidential.records.reader import RECORD, check_header, check_types
from yupana.confidential.records.validation import Finding, require_none
from yupana.errors import InputError
from yupana.files.arrow_stream import ArrowParts, Column, Texts
from yupana.files.columns import Column as RecordColumn
from yupana.files.columns import RecordFile
from yupana.files.database import named, quoted
from yupana.files.names import folded
from yupana.files.regular import must_be_regular
from yupana.files.statistics_reader import NoLibraryError, Read, UnreadableError, reading

STATISTICS: Final[Mapping[str, tuple[str, str]]] = {
    ".sav": ("read_sav", "SPSS"),
    ".zsav": ("read_sav", "SPSS"),
    ".dta": ("read_dta", "Stata"),
    ".sas7bdat": ("read_sas7bdat", "SAS"),
    ".xpt": ("read_xport", "SAS"),
}
"""How names of such files end, what reads them, and what wrote them."""

_VALUES_AT_ONCE: Final = 700_000
_MOST_ROWS: Final = 250_000

_DAYS: Final = {
    "Stata": re.compile("%-?t?d"),
    "SAS": re.compile(
        "DATE(?!TIME|AMPM)|DAY|DDMMYY|MMDDYY|YYMM|YYQ|YEAR|MONYY|MONTH|JULIAN|JULDAY|WEEKDA|WORDDA|QTR|NLDATE(?!W?N)|"
        "[EB]8601DA"
    ),
}
"""Formats of days, by what wrote the file."""

_MOMENTS: Final = {
    "Stata": (re.compile("%-?tc", re.IGNORECASE), 1000),
    "SAS": (re.compile("DATETIME|DATEAMPM|MDYAMPM|DT|NLDATM|[EB]8601D[TNZX]"), 1),
}
"""Formats of moments, and how many units a second has."""

_SPSS: Final = re.compile("([EASJ]?DATE|QYR|MOYR|WKYR)[0-9]*$")
_SPSS_MOMENTS: Final = re.compile("(DATETIME|YMDHMS)")


def write_statistics(
    db: duckdb.DuckDBPyConnection, path: Path, schema: RecordFile, rows: Path, encoding: str = ""
) -> None:
    """Write the records of a file as Parquet, part after part.

    System-missing and user-missing values are none; whole numbers are without a point; codes stay, whatever their
    labels; what has a format of dates is a date.

    Parameters
    ----------
    rows : Path
        An empty folder, for Parquet by our names of the columns, with the numbers of records.
    encoding : str
        Of texts, where the file does not say.

    Raises
    ------
    InputError
        If pyreadstat is not installed, a column is missing, or the file is damaged.
    """
    with _reader(path, encoding) as read:
        told = read(metadataonly=True)[1]
        names = list(told.column_names)
        require_none(check_header(path.name, names, schema))
        by_name = {folded(name): name for name in names}
        wanted = {column: by_name[folded(schema.written[column.name])] for column in schema.columns}
        system = STATISTICS[path.suffix.lower()][1]
        texts = {name for name in wanted.values() if str(told.readstat_variable_types[name]).startswith("string")}
        formats = {name: "" if name in texts else str(told.original_variable_types.get(name, "")) for name in names}
        values = {column: _value(column, name, formats[name], system, name in texts) for column, name in wanted.items()}
        require_none(check_types(path.name, {column.name: kind for column, (_, kind) in values.items()}, schema))
        selected = ", ".join([*(f"{value} AS {named(column.name)}" for column, (value, _) in values.items()), RECORD])
        done = 0
        # Where no column is wanted, one tells how many records there are.
        use = list(dict.fromkeys(wanted.values())) or names[:1]
        if not use:
            raise UnreadableError
        for number, part in enumerate(_parts(read, use, texts)):
            count = len(next(iter(part.values())))
            numbers = np.arange(done + 1, done + 1 + count, dtype=np.int64)
            db.register("part", ArrowParts([{**part, RECORD: numbers}]))
            place = quoted(str(rows / f"{number:06d}.parquet"))
            db.execute(f"COPY (SELECT {selected} FROM part) TO {place} (FORMAT parquet)")
            db.unregister("part")
            done += count
        if told.number_rows is not None and told.number_rows > done:
            raise UnreadableError


@contextmanager
def _reader(path: Path, encoding: str) -> Iterator[Read]:
    """Read a file by pyreadstat; what it says of a failure may quote records, so its words are left out."""
    function, system = STATISTICS[path.suffix.lower()]
    options = {"output_format": "dict", "disable_datetime_conversion": True}
    options |= {"encoding": encoding} if encoding else {}
    failed = False
    try:
        must_be_regular(path)
        with reading(function, path) as read:
            yield partial(read, **options)
    except NoLibraryError:
        way_out = "install Yupana's extra statistics (docs/README.md)"
        raise InputError(f"{path.name}: files of SPSS, Stata and SAS need pyreadstat; {way_out}") from None
    except (UnreadableError, OSError):
        failed = True
    if failed:  # raised here, so that it does not hold the library's
        text = (
            f"cannot be read to its end as {system} writes {path.suffix}: is it damaged, cut off, encrypted or of "
            "another kind, or are its texts in another encoding than it says? Write it again, or say encoding in the "
            "description"
        )
        require_none([Finding("is_statistics", path.name, text)])


def _parts(read: Read, use: Sequence[str], texts: set[str]) -> Iterator[dict[str, Column]]:
    """Columns of some rows after others; at least once, be it of no row."""
    at_once = max(1_000, min(_MOST_ROWS, _VALUES_AT_ONCE // len(use)))
    done = 0
    while True:
        found = read(usecols=list(use), row_offset=done, row_limit=at_once)[0]
        part = {name: _texts(found[name]) if name in texts else _numbers(found[name]) for name in use}
        count = len(part[use[0]])
        if count or not done:
            yield part
        done += count
        if count < at_once:
            return


def _texts(values: Sequence[Any]) -> Texts:
    return Texts.of([("" if value is None or value != value else str(value)).encode() for value in values])  # noqa: PLR0124


def _numbers(values: Sequence[Any]) -> Column:
    return np.array([np.nan if isinstance(value, str) else value for value in values], dtype=np.float64)


def _value(column: RecordColumn, name: str, form: str, system: str, is_text: bool) -> tuple[str, str]:  # noqa: FBT001
    """SQL for a value, and its type: a text, a whole number without a point as text, or a date."""
    value = named(name)
    if is_text:
        return f"nullif(rtrim({value}), '')", "VARCHAR"
    none = f"CAST({value} AS VARCHAR) = 'nan'"
    when, kind = _date(value, form, system)
    if when and not column.key:
        return f"CASE WHEN {none} THEN NULL ELSE {when} END", kind
    is_whole = f"{value} = floor({value}) AND abs({value}) < 1e15"
    whole = f"CAST(CAST({value} AS BIGINT) AS VARCHAR)"
    number = f"CASE WHEN {none} THEN NULL WHEN {is_whole} THEN {whole} ELSE CAST({value} AS VARCHAR) END"
    return as_spelled(column, f"({number})"), "VARCHAR"


def _date(value: str, form: str, system: str) -> tuple[str, str]:
    """SQL for the date or moment that a number is by its format, and its type; empty if it is none."""
    if system == "SPSS":
        moment = f"(TIMESTAMP '1582-10-14' + to_seconds(TRY_CAST({value} AS BIGINT)))"
        if _SPSS_MOMENTS.match(form):
            return moment, "TIMESTAMP"
        return (f"CAST({moment} AS DATE)", "DATE") if _SPSS.match(form) else ("", "")
    of_moments, per_second = _MOMENTS[system]
    if of_moments.match(form):
        return f"(TIMESTAMP '1960-01-01' + to_seconds(TRY_CAST({value} / {per_second} AS BIGINT)))", "TIMESTAMP"
    if _DAYS[system].match(form):
        return f"(DATE '1960-01-01' + TRY_CAST({value} AS INTEGER))", "DATE"
    return "", ""
