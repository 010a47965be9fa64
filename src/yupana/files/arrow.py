"""A table that any data-frame library reads without copying, through the Arrow C stream interface."""

import html
import itertools
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, Self, TypeVar, runtime_checkable

from yupana.errors import InputError

if TYPE_CHECKING:
    import duckdb

    from yupana.files.arrow_stream import Column

_T = TypeVar("_T")

_SHOWN: Final = 10
"""Rows that a notebook shows."""

_SHOWN_OF_RESULTS: Final = 100

_WIDEST: Final = 60
"""Characters of a column that a text pads to."""

_NAMED: Final = 12
"""Columns that a representation names."""

_NUMBERS: Final = itertools.count()
_LOCK: Final = threading.Lock()


@runtime_checkable
class ArrowStream(Protocol):
    """What has columns to read: a frame of Polars or pandas, a table of pyarrow, a relation of DuckDB, `ArrowTable`."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand out a capsule with a stream of record batches."""


class Tabular(ABC):
    """What a data-frame library takes as it takes its `table`, and a notebook shows as that."""

    __slots__ = ()

    @abstractmethod
    def table(self) -> "ArrowTable":
        """Tabulate it."""

    def notes_shown(self) -> Sequence[str]:
        """What a notebook shows below the table."""
        return ()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand out a capsule with a stream of the rows of `table`."""
        return self.table().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes_shown())
        told = html.escape(repr(self).strip("<>"))
        return f"<p>{told}</p>{self.table().as_html(_SHOWN_OF_RESULTS)}{f'<ul>{notes}</ul>' if notes else ''}"


class Findings(Tabular, Generic[_T]):
    """Several findings, in order, and a table with a row for each.

    Parameters
    ----------
    name : str
        What they are, in the plural.
    found : iterable
    columns : mapping of str to (str, callable)
        Of each column the type that SQL gives it, and what it holds of a finding.
    """

    __slots__ = ("_columns", "_found", "_name")

    def __init__(
        self, name: str, found: Iterable[_T], columns: Mapping[str, tuple[str, Callable[[_T], object]]]
    ) -> None:
        self._name, self._found, self._columns = name, tuple(found), columns

    def table(self) -> "ArrowTable":
        """Tabulate them, with a row for each."""
        return ArrowTable.of(
            {name: (kind, [value(one) for one in self._found]) for name, (kind, value) in self._columns.items()}
        )

    def __len__(self) -> int:
        """How many there are."""
        return len(self._found)

    def __iter__(self) -> Iterator[_T]:
        """Go through them."""
        return iter(self._found)

    def __getitem__(self, place: int) -> _T:
        """One of them, by its place."""
        return self._found[place]

    def __repr__(self) -> str:
        return f"<{len(self)} {self._name}>"


class ArrowTable:
    """Columns with names and types, read through the Arrow C stream interface.

    ``polars.DataFrame(table)``, ``pyarrow.table(table)``, ``pandas.DataFrame.from_arrow(table)`` and
    ``duckdb.sql("from table")`` take it without a copy. Without any of these, ``table["COUNT"]`` is one column as a
    list, ``table.rows()`` goes through the rows, and ``len(table)`` counts them.

    Codes are text and keep their leading zeros. A table cannot be pickled: pickle what a library made of it.

    Parameters
    ----------
    query : str
        SQL of the rows in the database that all tables of a process share: a table of it, or files that stay where
        they are and are read anew each time.

    Source
    ------
    The Arrow PyCapsule interface, https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html
    """

    __slots__ = ("__weakref__", "_query", "_types")

    def __init__(self, query: str) -> None:
        self._query = query
        described = self._execute("DESCRIBE SELECT *").fetchall()
        self._types: dict[str, str] = {str(row[0]): str(row[1]) for row in described}

    @classmethod
    def of(cls, columns: Mapping[str, tuple[str, Sequence[object]]]) -> Self:
        """Make a table of values in memory.

        Parameters
        ----------
        columns : mapping
            Of each column the type that SQL gives it, and its values, None where there is none. All are as long.
        """
        from yupana.files.database import named

        lengths = {len(values) for _, values in columns.values()}
        if len(lengths) > 1:
            raise ValueError("the columns of a table are as long as each other")
        fields = ", ".join(f"unnest(?::{kind}[]) AS {named(column)}" for column, (kind, _) in columns.items())
        return cls._made(_cursor(), f"SELECT {fields}", [list(values) for _, values in columns.values()])

    @classmethod
    def _made(cls, cursor: "duckdb.DuckDBPyConnection", select: str, values: Sequence[object] = ()) -> Self:
        name = _new_name()
        cursor.execute(f"CREATE TABLE {name} AS {select}", values)
        table = cls(f"FROM {name}")
        weakref.finalize(table, _drop, name).atexit = False
        return table

    @classmethod
    def of_arrays(cls, columns: "Mapping[str, Column]", kinds: Mapping[str, str]) -> Self:
        """Make a table of arrays in memory; an empty text is no value.

        Parameters
        ----------
        columns : mapping of str to Column
            All are as long.
        kinds : mapping of str to str
            Of each column of texts the type that SQL gives it; one that is no such number is no value either.
        """
        from yupana.files.arrow_stream import ArrowParts
        from yupana.files.database import named

        fields = (
            f"TRY_CAST(NULLIF({named(column)}, '') AS {kinds[column]}) AS {named(column)}"
            if column in kinds
            else named(column)
            for column in columns
        )
        cursor, stream = _cursor(), _new_name()
        cursor.register(stream, ArrowParts([columns]))
        try:
            return cls._made(cursor, f"SELECT {', '.join(fields)} FROM {stream}")
        finally:
            cursor.unregister(stream)

    def mapped(self, names: Mapping[str, tuple[str, Mapping[str, str]]]) -> "ArrowTable":
        """The same table with more columns, each beside the one it follows from.

        Parameters
        ----------
        names : mapping
            By column: the name of a column after it, and the text that stands there for each value of the former; a
            value that is not listed gives none.
        """
        from yupana.files.database import named, quoted

        columns = []
        for name in self._types:
            columns.append(named(name))
            if name in names:
                other, texts = names[name]
                pairs = ", ".join(f"{quoted(key)}: {quoted(text)}" for key, text in texts.items())
                columns.append(f"MAP {{{pairs}}}[CAST({named(name)} AS VARCHAR)] AS {named(other)}")
        return ArrowTable(f"SELECT {', '.join(columns)} FROM ({self._query})")

    def where(self, values: Mapping[str, str]) -> "ArrowTable":
        """The rows that hold a text in each of some columns, as ``{"GEOCODE": "1714000"}``.

        Raises
        ------
        KeyError
            If there is no such column.
        """
        from yupana.files.database import named, quoted

        if missing := [name for name in values if name not in self._types]:
            raise KeyError(f"there is no column {missing[0]!r}; there are {', '.join(self._types)}")
        tests = " AND ".join(f"CAST({named(name)} AS VARCHAR) = {quoted(text)}" for name, text in values.items())
        return ArrowTable(f"SELECT * FROM ({self._query}) WHERE {tests or 'true'}")

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(self._types)

    @property
    def types(self) -> Mapping[str, str]:
        """The type of each column, as SQL names it."""
        return dict(self._types)

    def __len__(self) -> int:
        """Count the rows."""
        ((rows,),) = self._execute("SELECT count(*)").fetchall()
        return int(rows)

    def __bool__(self) -> bool:
        """Whether there are columns: a table without rows is a table."""
        return True

    def __getitem__(self, column: str) -> list[Any]:
        """Read one column.

        Raises
        ------
        KeyError
            If there is none of that name.
        """
        from yupana.files.database import named

        if column not in self._types:
            raise KeyError(f"there is no column {column!r}; there are {', '.join(self._types)}")
        return [row[0] for row in self._execute(f"SELECT {named(column)}").fetchall()]

    def __iter__(self) -> Iterator[str]:
        """Go through the names of the columns."""
        return iter(self._types)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Go through the rows, each a tuple of values in the order of the columns."""
        found = self._execute("SELECT *")
        while part := found.fetchmany(10_000):
            yield from part

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand out a capsule with a stream of the rows; each call reads them anew."""
        with _readable():
            return _cursor().sql(self._query).__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        columns = [f"{name} {kind}" for name, kind in self._types.items()]
        more = len(columns) - _NAMED
        shown = ", ".join(columns if more <= 1 else [*columns[:_NAMED], f"and {more} more columns"])
        try:
            rows = len(self)
        except InputError:
            return f"<a table whose file is no longer there: {shown}>"
        return f"<{rows:,} row{'s' * (rows != 1)}: {shown}>"

    def __str__(self) -> str:
        """Lay out the first rows; without rows the representation."""
        try:
            first = self._execute("SELECT *").fetchmany(_SHOWN)
        except InputError:
            first = []
        lines = [tuple(self._types), *(tuple(map(_text, row)) for row in first)]
        widths = [min(_WIDEST, max(map(len, column))) for column in zip(*lines, strict=True)]
        laid = ["  ".join(text.ljust(w) for text, w in zip(line, widths, strict=True)).rstrip() for line in lines]
        return "\n".join([repr(self), *(laid if first else [])])

    def as_html(self, most: int) -> str:
        """Write the first rows as an HTML table."""
        rows = len(self)
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self._types)
        first = self._execute("SELECT *").fetchmany(most)
        cells = ([html.escape("" if value is None else str(value)) for value in row] for row in first)
        body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in cells)
        more = f"<p>{rows:,} rows, of which {len(first)} are shown</p>" if rows > len(first) else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    def _repr_html_(self) -> str:
        return self.as_html(_SHOWN)

    def __reduce__(self) -> str:
        raise TypeError("a table of yupana cannot be pickled; pickle what polars, pandas or pyarrow makes of it")

    def _execute(self, select: str) -> "duckdb.DuckDBPyConnection":
        """Run a query on the rows, on a cursor of its own: a stream that is being read goes on beside it."""
        with _readable():
            return _cursor().execute(f"{select} FROM ({self._query})")


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.8g}"
    return "" if value is None else str(value)


@contextmanager
def _readable() -> Iterator[None]:
    import duckdb

    try:
        yield
    except duckdb.IOException:
        raise InputError("the file of this table is no longer there or can no longer be read") from None


def _cursor() -> "duckdb.DuckDBPyConnection":
    # A process that hands out no table does not load the database.
    from yupana.files.database import shared_database

    return shared_database().cursor()


def _new_name() -> str:
    with _LOCK:
        return f"table_{next(_NUMBERS)}"


def _drop(name: str) -> None:
    _cursor().execute(f"DROP TABLE IF EXISTS {name}")
