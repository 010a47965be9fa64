"""Read delimited text and Parquet: headers, rows as relations of the database, and columns of numbers.

What is wrong is named by file, line, column and rule.
"""

import codecs
import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Final

import duckdb
import numpy as np

from yupana.arrays import Flags, Indices, Integers, Ints
from yupana.errors import InputError, is_control, system_fault
from yupana.files.database import named, open_database, quoted, source_of
from yupana.files.regular import must_be_regular, regular

_HEADER_LIMIT: Final = 1 << 16
_BAD: Final = -2
_NONE: Final = -1

NO_SEPARATOR: Final = "\x01"
"""Stands in no file, so that each line is one field."""

PARQUET: Final = ".parquet"
"""How the name of a Parquet file ends; all others are text."""


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a file of text."""

    separator: str
    names: tuple[str, ...]  # of the columns, in order, without blanks around them


def read_header(path: Path, *, separators: str = "|,", quote: str = '"') -> Header:
    """Read the names of the columns of a text file.

    Parameters
    ----------
    separators : str
        What may separate fields; of several the first that occurs, or the first of all.
    quote : str
        What names may be quoted with; empty if nothing is.

    Raises
    ------
    OSError
        If it is no file or cannot be read.
    UnicodeDecodeError
        If its first line is no text in UTF-8.
    """
    with open(path, "rb", opener=regular) as file:
        head = file.read(_HEADER_LIMIT)
    # The head may end within a character, so only its first line must be text.
    line = next(iter(head.removeprefix(codecs.BOM_UTF8).splitlines()), b"").decode()
    separator = next((s for s in separators if s in line), separators[0])
    names = next(csv.reader([line], delimiter=separator), []) if quote else line.split(separator)
    return Header(separator, tuple(name.strip() for name in names))


SEPARATORS: Final = {",": ",", ";": ";", "|": "|", "tab": "\t"}
"""What may separate the fields of a file of any office, by its name."""


def possible_headers(path: Path, *, separator: str = "", encoding: str = "") -> list[Header]:
    """Read the names of the columns of a text file, as each separator that stands in them outside quotes divides them.

    Parameters
    ----------
    separator : str
        The one there is; empty if the header tells.
    encoding : str
        As Python calls it; empty for UTF-8, with or without a byte order mark.

    Raises
    ------
    OSError
        If it is no file or cannot be read.
    UnicodeError
        If its first line is no text in this encoding.
    """
    decoder = codecs.getincrementaldecoder(encoding or UTF_8)()
    head = ""
    with open(path, "rb", opener=regular) as file:
        while len(head) < _LONGEST_LINE and not _LINE_END.search(head) and (some := file.read(_HEADER_LIMIT)):
            head += decoder.decode(some)
    line = _LINE_END.split(head.removeprefix("\ufeff"), maxsplit=1)[0]
    unquoted = re.sub('"[^"]*"', "", line)
    there = [separator] if separator else [one for one in SEPARATORS.values() if one in unquoted] or [","]
    return [Header(one, _names(line, one)) for one in there]


def _names(line: str, separator: str) -> tuple[str, ...]:
    try:
        names = next(csv.reader([line], delimiter=separator, skipinitialspace=separator != "\t"), [])
    except csv.Error:  # a name beyond what a field may hold
        names = line.split(separator)
    return tuple(name.strip() for name in names)


UTF_8: Final = "utf-8-sig"
_LONGEST_LINE: Final = 1 << 22
_LINE_END: Final = re.compile("[\r\n]")


def csv_rows(
    path: Path,
    names: Sequence[str],
    *,
    separator: str = "|",
    quote: str = "",
    kinds: Mapping[str, str] | None = None,
    rejects: str = "",
) -> str:
    """SQL for the rows below the header of a text file.

    Parameters
    ----------
    names : sequence of str
        What to call its columns, each by another name.
    separator, quote : str
        As its fields are written; no quote means that every character is taken as it is.
    kinds : mapping of str to str, optional
        SQL types of columns that are not to be text.
    rejects : str
        Rows that cannot be read are kept in a table of this name and do not stop the query.
    """
    types = kinds or {}
    columns = ", ".join(f"{quoted(name)}: {quoted(types.get(name, 'VARCHAR'))}" for name in names)
    kept = f", store_rejects = true, rejects_table = '{rejects}', rejects_scan = '{rejects}_scan'" if rejects else ""
    return (
        f"read_csv({source_of(path)}, auto_detect = false, hive_partitioning = false, header = false, skip = 1, "
        f"delim = {quoted(separator)}, quote = {quoted(quote)}, escape = {quoted(quote)}, strict_mode = true, "
        f"columns = {{{columns}}}{kept})"
    )


def apart(names: Sequence[str]) -> list[str]:
    """Names that the database tells apart, as it does not by upper and lower case alone: ``block``, ``Block_1``."""
    found: list[str] = []
    for name in names:
        taken, other, number = {one.lower() for one in found}, name, 0
        while other.lower() in taken:
            number += 1
            other = f"{name}_{number}"
        found.append(other)
    return found


def parquet_rows(paths: Iterable[Path]) -> str:
    """SQL for Parquet files of one schema. What a path says, as in ``TABBLKST=06``, is not read as data."""
    files = ", ".join(map(source_of, paths))
    return f"read_parquet([{files}], hive_partitioning = false)"


def column_types(database: duckdb.DuckDBPyConnection, rows: str) -> dict[str, str]:
    """SQL types of the columns of a relation, by name and in order."""
    return {str(row[0]): str(row[1]) for row in database.execute(f"DESCRIBE SELECT * FROM {rows}").fetchall()}


@dataclass(frozen=True, slots=True)
class Labels:
    """A column of texts."""

    index: Indices  # for each row the position of its text, or -1 for none, of shape (rows,)
    labels: tuple[str, ...]  # the texts that occur, in order

    @classmethod
    def at(cls, rows: Ints | Flags, number: int, places: Integers, labels: Iterable[str]) -> "Labels":
        """So many rows, of which some have the texts at the given places, and others none."""
        index = np.full(number, _NONE, dtype=np.int32)
        index[rows] = places
        return cls(index, tuple(labels))

    def of(self, rows: Ints | Flags) -> "Labels":
        """The same of some rows, by their places or flags."""
        return Labels(self.index[rows], self.labels)

    def relabelled(self, texts: Sequence[str]) -> "Labels":
        """The same with another text for each of its own, in order; those that are alike become one."""
        labels = sorted(set(texts))
        place = {label: number for number, label in enumerate(labels)}
        index = np.array([*(place[text] for text in texts), _NONE], dtype=np.int32)[self.index]
        return Labels(index, tuple(labels))


@dataclass(frozen=True, slots=True)
class TextLayout:
    """How the rows of a text file are written."""

    text: Path  # where they are in UTF-8: the file, or a copy
    separator: str
    skipped: int = 1  # lines before the first row
    blanks: bool = True  # whether a row whose fields are all blank is a row

    def read(self, *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
        """The rows, each with the line that it ends on; slower than the database. If `strict`, quotes must end.

        Raises
        ------
        OSError, UnicodeDecodeError, csv.Error
            If they cannot be read.
        """
        with self.text.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=self.separator, skipinitialspace=True, strict=strict)
            for fields in reader:
                if reader.line_num > self.skipped and (any(map(str.strip, fields)) or (fields and self.blanks)):
                    yield reader.line_num, fields

    def lines(self) -> list[int]:
        """The line that each row ends on, up to a field that is longer than can be told."""
        found = list[int]()
        with suppress(csv.Error):
            found.extend(line for line, _ in self.read())
        return found


_EXPONENT: Final = re.compile(r"[0-9](?:[eE]\+|[.,][0-9]+[eE]\+?)[0-9]{2,3}")
_ROWS_AT_ONCE: Final = 10_000


def is_exponent(text: str) -> bool:
    """Whether a text is a code that a spreadsheet took for a number and rounded, such as 3.6E+14."""
    return _EXPONENT.fullmatch(text) is not None


ROUNDED: Final = (
    "is a number that a spreadsheet rounded, and its last digits are gone; take the file from its source, and open it "
    "with this column as text"
)


class DelimitedFile:
    """A file with columns, its rows held in an embedded database. Made by `yupana.files.code_tables`."""

    def __init__(
        self,
        path: Path,
        header: Sequence[str],
        database: duckdb.DuckDBPyConnection,
        rows: str = "rows",
        places: Ints | None = None,
        lines: Ints | None = None,
        layout: TextLayout | None = None,
    ) -> None:
        self.path = path
        self.header = tuple(header)
        """All columns of the file, as it spells them."""
        self._layout = layout
        self.database = database
        self._rows = rows
        self._places = places
        self._lines = lines

    def where(self, column: str, text: str) -> "DelimitedFile":
        """Return the rows that have a text in a column, as a file that knows their lines."""
        rows = f"rows_{self.place(column)}_{text.encode().hex()}"
        chosen = f"FROM {self._rows} WHERE {self.place(column)} = {quoted(text)}"
        self.database.execute(f"CREATE OR REPLACE TEMP TABLE {rows} AS SELECT * {chosen}")
        places = self.database.execute(f"SELECT rowid AS place {chosen} ORDER BY ALL").fetchnumpy()["place"]
        return DelimitedFile(self.path, self.header, self.database, rows, places, layout=self._layout)

    def has(self, column: str) -> bool:
        """Whether there is such a column; upper and lower case are the same."""
        return find_column(self.header, column) is not None

    def digits(self, column: str, width: int, *, none: int | None = None, most: int = 0, said: str = "") -> Ints:
        """Read codes of a fixed number of digits as numbers, of shape (rows,).

        Parameters
        ----------
        most : int
            The largest number of digits, if that is another.
        none : int, optional
            What an empty field stands for; without it a field may not be empty.
        said : str
            What messages call such codes, if not by these numbers of digits.

        Raises
        ------
        InputError
            If a field is not such a code.
        """
        name = self.place(column)
        empty = _BAD if none is None else none
        most = most or width
        values = self._numbers(
            f"CASE WHEN {name} IS NULL THEN {empty} WHEN regexp_full_match({name}, '[0-9]{{{width},{most}}}') "
            f"THEN TRY_CAST({name} AS BIGINT) ELSE {_BAD} END"
        )
        digits = said or (f"{width} digits" if most == width else f"{width} to {most} digits")
        self._check(values, column, f"is not a code of {digits}" + (" and is not empty" if none is not None else ""))
        return values

    def lengths(self, column: str) -> Ints:
        """How many characters the fields of a column have, of shape (rows,)."""
        return self._numbers(f"coalesce(length({self.place(column)}), 0)")

    def counts(self, column: str) -> Ints:
        """Read whole numbers, zero or more, of shape (rows,).

        Raises
        ------
        InputError
            If a field is no such number.
        """
        name = self.place(column)
        values = self._numbers(
            f"CASE WHEN regexp_full_match({name}, '[0-9]{{1,12}}') THEN TRY_CAST({name} AS BIGINT) ELSE {_BAD} END"
        )
        self._check(values, column, "is not a whole number, zero or more")
        return values

    def texts(self, column: str, *, nines: bool = False, whole: bool = False) -> Labels:
        """Read texts as they are; empty means none.

        Parameters
        ----------
        nines : bool
            Whether all nines are a text like others, and not none.
        whole : bool
            Whether whole numbers may end in ``.0``, which is no part of a code.

        Raises
        ------
        InputError
            If a text is a rounded number, or has a control character.
        """
        name = self.place(column)
        # Parquet tells an empty text from none; here they are the same.
        some = f"{name} <> ''" + ("" if nines else f" AND NOT regexp_full_match({name}, '9+')")
        self.database.execute(
            "CREATE OR REPLACE TEMP TABLE labels AS SELECT label, row_number() OVER (ORDER BY label) - 1 AS number "
            f"FROM (SELECT DISTINCT {name} AS label FROM {self._rows} WHERE {some})"
        )
        labels = self.database.execute("SELECT label FROM labels ORDER BY number").fetchall()
        # A join does not keep the order of rows, so it tells their places.
        joined = self.database.execute(
            f"SELECT r.rowid AS place, l.number AS number FROM {self._rows} r JOIN labels l ON r.{name} = l.label"
        ).fetchnumpy()
        index = np.full(self.rows, _NONE, dtype=np.int32)
        index[joined["place"]] = joined["number"]
        found = Labels(index, tuple(str(row[0]) for row in labels))
        for is_odd, rule in ((_has_control, "holds a control character; remove it"), (is_exponent, ROUNDED)):
            if odd := [number for number, label in enumerate(found.labels) if is_odd(label)]:
                raise self.fault(int(np.argmax(index == odd[0])), column, rule)
        return found.relabelled([_without_fraction(label) for label in found.labels]) if whole else found

    @property
    def rows(self) -> int:
        """How many rows."""
        found = self.database.execute(f"SELECT count(*) FROM {self._rows}").fetchone()
        return int(found[0]) if found else 0

    def records(self, columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """The rows in order, as texts that are empty where there is none."""
        names = ", ".join(f"coalesce({self.place(column)}, '')" for column in columns)
        cursor = self.database.execute(f"SELECT {names} FROM {self._rows}")
        while rows := cursor.fetchmany(_ROWS_AT_ONCE):
            yield from rows

    def field(self, row: int, column: str) -> str:
        """What a row says in a column."""
        query = f"SELECT {self.place(column)} FROM {self._rows} LIMIT 1 OFFSET {row}"
        found = self.database.execute(query).fetchone()
        return "" if found is None or found[0] is None else str(found[0])

    def fault(self, row: int, column: str, rule: str) -> InputError:
        """Return an error about a field; where it is of a row of totals at the end, that."""
        text = self.field(row, column)
        # A row of totals says so, or has nothing where others begin.
        begin = text or self.field(row, next(name for name in self.header if name))
        if row == self.rows - 1 and row > 0 and (not begin or is_total(begin)):
            return self.of_totals(row)
        told = f"{text!r} {ROUNDED}" if is_exponent(text) else rule
        return InputError(f"{self.path}, {self.at(row)}, column {column}: {told}")

    def of_totals(self, row: int) -> InputError:
        """Return an error about a row that seems to add up the others."""
        return InputError(f"{self.path}, {self.at(row)} seems to be a row of totals; remove it")

    def refuse_totals(self, column: str) -> None:
        """Refuse a row of totals at the end, where any text may be a code.

        Raises
        ------
        InputError
        """
        last = self.rows - 1
        if last > 0 and is_total(self.field(last, column)):
            raise self.of_totals(last)

    def refuse(self, wrong: Flags, column: str, rule: Callable[[int], str]) -> None:
        """Refuse the first of the rows that are wrong, if any is; ``rule`` says what is wrong with a row.

        Raises
        ------
        InputError
        """
        if wrong.any():
            row = int(wrong.argmax())
            raise self.fault(row, column, rule(row))

    def at(self, row: int) -> str:
        """Name a row in messages: by its line, or its number in Parquet."""
        return f"{'row' if self.path.suffix == PARQUET else 'line'} {self.line(row)}"

    def lines(self) -> list[int]:
        """The line of each row, or its number in Parquet."""
        if self._layout is None:
            return list(range(1, self.rows + 1))
        found = self._layout.lines()
        return found if len(found) == self.rows else [at + self._layout.skipped + 1 for at in range(self.rows)]

    def line(self, row: int) -> int:
        """Return the line of a row; lines count from 1, rows from 0. Of Parquet it is the number of the row, from 1."""
        row = row if self._places is None else int(self._places[row])
        if self._lines is not None:
            return int(self._lines[row])
        if self._layout is None:
            return row + 1
        return next(islice(self._layout.lines(), row, None), row + 1 + self._layout.skipped)

    def no_column(self, missing: Sequence[str]) -> InputError:
        """Return an error about columns that are not there."""
        there = shown([name for name in self.header if name])
        return InputError(f"{self.path}, line 1: no column {', '.join(missing)}; it has {there}")

    def place(self, column: str) -> str:
        """What the database calls a column, as names may differ by case alone."""
        at = find_column(self.header, column)
        if at is None:
            raise self.no_column([column])
        return f"c{at}"

    def _numbers(self, expression: str) -> Ints:
        values = self.database.execute(f"SELECT {expression} AS v FROM {self._rows}").fetchnumpy()["v"]
        return np.ascontiguousarray(values, dtype=np.int64)

    def _check(self, values: Ints, column: str, rule: str) -> None:
        bad = np.flatnonzero(values == _BAD)
        if len(bad):
            more = f"; so are {len(bad) - 1:,} more" if len(bad) > 1 else ""
            raise self.fault(int(bad[0]), column, f"the value {rule}{more}")


def _has_control(text: str) -> bool:
    return any(map(is_control, text))


def _without_fraction(label: str) -> str:
    """A whole number without ``.0``, as it is where a column was kept as doubles."""
    return label[:-2] if label.endswith(".0") and label[:-2].isdecimal() else label


def refuse_twice(path: Path, header: Sequence[str]) -> None:
    """Refuse a header that names a column twice.

    Raises
    ------
    InputError
    """
    for place, name in enumerate(header):
        if name in header[:place]:
            raise InputError(f"{path}, line 1: column {name} is there twice; name every column once")


def shown(names: Sequence[str]) -> str:
    """Names of columns in a message: the first ones, and the beginning of long ones."""
    some = [name if len(name) <= _LONG else f"{name[:_LONG]}..." for name in names[:_MOST_SHOWN]]
    return ", ".join([*some, *(["..."] if len(names) > _MOST_SHOWN else [])])


_LONG: Final = 40
_MOST_SHOWN: Final = 10


def find_column(header: Sequence[str], column: str) -> int | None:
    """The place of a column: the one spelled so, or the one that differs by upper and lower case alone."""
    if column in header:
        return list(header).index(column)
    places = [place for place, name in enumerate(header) if name.lower() == column.lower()]
    return places[0] if len(places) == 1 else None


def parquet_as_text(path: Path) -> tuple[tuple[str, ...], str]:
    """The columns of a Parquet file, and SQL for its rows, in which the columns are texts c0, c1 and so on.

    Raises
    ------
    InputError
        If it is no such file.
    """
    with system_fault(InputError, f"{path} cannot be read"):
        must_be_regular(path)
    try:
        with open_database() as database:
            names = tuple(column_types(database, parquet_rows([path])))
    except duckdb.Error:
        raise InputError(f"{path} is not readable as Parquet") from None
    cast = ", ".join(f"CAST({named(name)} AS VARCHAR) AS c{place}" for place, name in enumerate(names))
    return names, f"(SELECT {cast} FROM {parquet_rows([path])})"


def why_unreadable(path: Path, layout: TextLayout, fields: int) -> InputError:
    """Find the line that the database could not read: the slow way, once something is wrong."""
    line = layout.skipped
    try:
        for line, row in replace(layout, blanks=True).read(strict=True):
            if len(row) != fields:
                held = f"the header names {fields} columns" if layout.skipped else f"the first line has {fields}"
                more = "; it seems to be a row of totals; remove it" if is_total(row[0].strip()) else ""
                return InputError(f"{path}, line {line}: {len(row)} field{'s' * (len(row) > 1)}, but {held}{more}")
            if any("\0" in field for field in row):
                return InputError(f"{path}, line {line}: not text; a field holds a NUL character")
    except UnicodeDecodeError:
        with layout.text.open("rb") as file:
            line = next((number for number, row in enumerate(file, 1) if not _is_text(row)), 1)
        text = "write it so, or name the encoding that it has where one can be told"
        return InputError(f"{path}, line {line}: not text in UTF-8; {text}")
    except csv.Error as error:
        text = str(error)
        fault = "a field is longer than 131,072 characters" if "limit" in text else _QUOTES
        return InputError(f"{path}, line {line + 1}: {fault}")
    except OSError as error:
        return InputError(f"{path} cannot be read: {error.strerror}")
    text = "its lines may end in several ways, so write them in one"
    return InputError(f"{path} is not readable as a table of text; {text}")


_QUOTES: Final = (
    "a quote is opened and not closed, or text follows one that is closed; put quotes around a whole field, and write "
    "those within it twice"
)
_TOTAL: Final = re.compile(
    r"(?:grand |sub)?totals?(?: .*)?:?|sum:?|totale|totaal|(?:ins)?gesamt|всего|итого|合計|总计|總計|합계|المجموع",
    re.IGNORECASE,
)


def is_total(text: str) -> bool:
    """Whether the first field of a row says that it adds up the others."""
    return _TOTAL.fullmatch(text) is not None


def _is_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


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
