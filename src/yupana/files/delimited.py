"""Read delimited text files into columns of numbers; whatever is wrong is named by file, line, column and rule."""

import codecs
import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb
import numpy as np

from yupana.arrays import Indices, Ints
from yupana.errors import InputError
from yupana.files.database import STOPS, open_database, quoted
from yupana.files.regular import regular

_HEADER_LIMIT: Final = 1 << 16
_SEPARATORS: Final = "|,"
_BAD: Final = -2
_NONE: Final = -1


@dataclass(frozen=True, slots=True)
class Labels:
    """A column of texts.

    Attributes
    ----------
    index : ndarray of int32
        For each row the position of its text, or -1 for none, of shape (rows,).
    labels : tuple of str
        The texts that occur, in order.
    """

    index: Indices
    labels: tuple[str, ...]


class DelimitedFile:
    """A file with a header, its rows held in an embedded database. Made by `open_delimited`."""

    def __init__(
        self,
        path: Path,
        header: Sequence[str],
        database: duckdb.DuckDBPyConnection,
        rows: str = "rows",
        places: Ints | None = None,
    ) -> None:
        self.path = path
        self.header = tuple(header)
        """All columns of the file, as it spells them."""
        self._database = database
        self._rows = rows
        self._places = places

    def where(self, column: str, text: str) -> "DelimitedFile":
        """Return the rows that have a text in a column, as a file that knows their lines."""
        name = self._name(column)
        chosen = self._numbers(f"CASE WHEN {name} = {quoted(text)} THEN 1 ELSE 0 END")
        rows = f"rows_{self._name(column)}_{text.encode().hex()}"
        self._database.execute(
            f"CREATE OR REPLACE TEMP TABLE {rows} AS SELECT * FROM {self._rows} WHERE {name} = {quoted(text)}"
        )
        return DelimitedFile(self.path, self.header, self._database, rows, np.flatnonzero(chosen))

    def has(self, column: str) -> bool:
        """Whether there is such a column; upper and lower case are the same."""
        return _find(self.header, column) is not None

    def digits(self, column: str, width: int, *, none: int | None = None) -> Ints:
        """Read codes of a fixed number of digits as numbers, of shape (rows,).

        Parameters
        ----------
        column : str
        width : int
        none : int, optional
            What an empty field stands for; without it a field may not be empty.

        Raises
        ------
        InputError
            If a field is not such a code.
        """
        name = self._name(column)
        empty = _BAD if none is None else none
        values = self._numbers(
            f"CASE WHEN {name} IS NULL THEN {empty} WHEN regexp_full_match({name}, '[0-9]{{{width}}}') "
            f"THEN TRY_CAST({name} AS BIGINT) ELSE {_BAD} END"
        )
        self._check(
            values, column, f"is not a code of {width} digits" + (" and is not empty" if none is not None else "")
        )
        return values

    def widths(self, column: str) -> set[int]:
        """How many characters the fields of a column have."""
        name = self._name(column)
        found = self._database.execute(f"SELECT DISTINCT coalesce(length({name}), 0) FROM {self._rows}").fetchall()
        return {int(row[0]) for row in found}

    def counts(self, column: str) -> Ints:
        """Read whole numbers, zero or more, of shape (rows,).

        Raises
        ------
        InputError
            If a field is no such number.
        """
        name = self._name(column)
        values = self._numbers(
            f"CASE WHEN regexp_full_match({name}, '[0-9]{{1,12}}') THEN TRY_CAST({name} AS BIGINT) ELSE {_BAD} END"
        )
        self._check(values, column, "is not a whole number, zero or more")
        return values

    def texts(self, column: str, *, nines: bool = False) -> Labels:
        """Read texts as they are. Empty means none, and so do all nines unless `nines` are a text like others."""
        name = self._name(column)
        some = f"{name} IS NOT NULL" + ("" if nines else f" AND NOT regexp_full_match({name}, '9+')")
        self._database.execute(
            "CREATE OR REPLACE TEMP TABLE labels AS SELECT label, row_number() OVER (ORDER BY label) - 1 AS number "
            f"FROM (SELECT DISTINCT {name} AS label FROM {self._rows} WHERE {some})"
        )
        labels = self._database.execute("SELECT label FROM labels ORDER BY number").fetchall()
        # A join does not keep the order of rows, so it tells their places.
        joined = self._database.execute(
            f"SELECT r.rowid AS place, l.number AS number FROM {self._rows} r JOIN labels l ON r.{name} = l.label"
        ).fetchnumpy()
        index = np.full(self.rows, _NONE, dtype=np.int32)
        index[joined["place"]] = joined["number"]
        return Labels(index, tuple(str(row[0]) for row in labels))

    @property
    def rows(self) -> int:
        """How many rows."""
        found = self._database.execute(f"SELECT count(*) FROM {self._rows}").fetchone()
        return int(found[0]) if found else 0

    def fault(self, row: int, column: str, rule: str) -> InputError:
        """Return an error about a field, named by its line."""
        return InputError(f"{self.path}, line {self.line(row)}, column {column}: {rule}")

    def line(self, row: int) -> int:
        """Return the line of a row; lines count from 1, rows from 0."""
        row = row if self._places is None else int(self._places[row])
        with self.path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=_separator(file.readline()))
            seen = -1
            for fields in reader:
                seen += bool(fields)
                if seen == row:
                    return reader.line_num + 1
        return row + 2

    def _name(self, column: str) -> str:
        at = _find(self.header, column)
        if at is None:
            raise _no_column(self.path, [column])
        return f"c{at}"

    def _numbers(self, expression: str) -> Ints:
        values = self._database.execute(f"SELECT {expression} AS v FROM {self._rows}").fetchnumpy()["v"]
        return np.ascontiguousarray(values, dtype=np.int64)

    def _check(self, values: Ints, column: str, rule: str) -> None:
        bad = np.flatnonzero(values == _BAD)
        if len(bad):
            more = f"; so are {len(bad) - 1:,} more" if len(bad) > 1 else ""
            raise self.fault(int(bad[0]), column, f"the value {rule}{more}")


@contextmanager
def open_delimited(
    path: Path, required: Sequence[str], optional: Sequence[str] = (), *, others: bool = False
) -> Iterator[DelimitedFile]:
    """Read the columns of a file with a header, separated by ``|`` or ``,``.

    Parameters
    ----------
    path : Path
    required, optional : sequence of str
        Columns to hold; upper and lower case are the same.
    others : bool
        Hold all other columns, too.

    Raises
    ------
    InputError
        If the file is missing, is no such text, has no rows, lacks a column or has one twice, or a row has too few
        or too many fields.
    """
    header, separator = _read_header(path)
    for place, name in enumerate(header):
        if name in header[:place]:
            raise InputError(f"{path}, line 1: column {name} is there twice; name every column once")
    if missing := [name for name in required if _find(header, name) is None]:
        raise _no_column(path, missing)
    held = {_find(header, name) for name in (*required, *optional)} - {None}
    # Names differ by case alone in some files, which the database would not tell apart.
    columns = [f"c{place}" for place in range(len(header))]
    kept = columns if others else [columns[place] for place in sorted(place for place in held if place is not None)]
    # A table that does not fit into memory is refused and not spilled: blocks of a nation take about a gigabyte.
    full = InputError(f"{path} does not fit into the memory of this machine")
    with open_database(spills=False, full=full) as database:
        try:
            database.execute(
                f"CREATE TABLE rows AS SELECT {', '.join(kept)} FROM read_csv(?, delim = ?, header = true, "
                "auto_detect = false, all_varchar = true, quote = '\"', escape = '\"', strict_mode = true, "
                "columns = {" + ", ".join(f"{name}: 'VARCHAR'" for name in columns) + "})",
                [str(path), separator],
            )
        except STOPS:
            raise
        except duckdb.Error:
            raise _why_unreadable(path, separator, len(header)) from None
        opened = DelimitedFile(path, header, database)
        if opened.rows == 0:
            raise InputError(f"{path} has a header and no rows; it must name at least one block")
        yield opened


def _find(header: Sequence[str], column: str) -> int | None:
    """The place of a column: the one spelled so, or the one that differs by upper and lower case alone."""
    if column in header:
        return list(header).index(column)
    places = [place for place, name in enumerate(header) if name.lower() == column.lower()]
    return places[0] if len(places) == 1 else None


def _no_column(path: Path, missing: Sequence[str]) -> InputError:
    return InputError(
        f"{path}, line 1: no column {', '.join(missing)}; the first line must name the columns, separated by | or ,"
    )


def _read_header(path: Path) -> tuple[list[str], str]:
    try:
        with open(path, "rb", opener=regular) as file:
            head = file.read(_HEADER_LIMIT)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    if not head:
        raise InputError(f"{path} is empty; its first line must name the columns")
    line = head.removeprefix(codecs.BOM_UTF8).splitlines()[0] if head.strip() else b""
    try:
        text = line.decode()
    except UnicodeDecodeError:
        text = "\0"
    if b"\0" in head or "\0" in text:
        raise InputError(f"{path} is no text file; give a table of text, separated by | or ,")
    separator = _separator(text)
    return next(csv.reader([text], delimiter=separator), [""]), separator


def _separator(line: str) -> str:
    return max(_SEPARATORS, key=line.count)


def _why_unreadable(path: Path, separator: str, fields: int) -> InputError:
    """Find the line that the database could not read: the slow way, once something is wrong."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for row in (reader := csv.reader(file, delimiter=separator, strict=True)):
                if row and len(row) != fields:
                    return InputError(
                        f"{path}, line {reader.line_num}: {len(row)} fields, but the header names {fields} columns"
                    )
                if any("\0" in field for field in row):
                    return InputError(f"{path}, line {reader.line_num}: not text; a field holds a NUL character")
    except UnicodeDecodeError:
        return InputError(f"{path} is not text in UTF-8")
    except csv.Error as error:
        return InputError(f"{path}: not readable as a table of text ({error})")
    except OSError as error:
        return InputError(f"{path} cannot be read: {error.strerror}")
    return InputError(f"{path} is not readable as a table of text, separated by | or ,")


def first_repeated(values: Ints) -> tuple[int, int] | None:
    """Positions of the first value that occurs twice and of its first repetition, or None."""
    order = np.argsort(values, kind="stable")
    again = np.flatnonzero(values[order][1:] == values[order][:-1])
    if not len(again):
        return None
    at = again[np.argmin(order[again + 1])]
    return int(order[at]), int(order[at + 1])


def positions(values: Ints, known: Ints) -> Ints:
    """The position of each value among known ones, which are in order, or -1 if it is unknown; of shape (values,)."""
    if not len(known):
        return np.full(len(values), -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[at] == values, at, -1)
