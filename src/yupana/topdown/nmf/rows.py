"""The rows of noisy measurement files: one relation for each geolevel and kind. Public."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.errors import InputError, system_fault
from yupana.files.database import named, quoted, source_of, store_arrays, unreadable
from yupana.files.delimited import column_types, parquet_rows
from yupana.files.regular import must_be_regular
from yupana.release.lines import Texts
from yupana.topdown.nmf.layout import CONSTRAINT, JOINED, LEVEL_NAMES, QUERY_ENDING, SUMMED, WHOLE
from yupana.topdown.queries import DETAILED, TOTAL, Attribute, Factor, Query, Recode, Schema

_INTEGERS: Final = {f"{sign}{size}INT[]" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG")} | {
    "INTEGER[]",
    "UINTEGER[]",
}
_VALUES_AT_ONCE: Final = 1 << 24
"""Numbers that are held at once."""


@dataclass(frozen=True, slots=True)
class RowKind:
    """What rows of one name say beside their geounit and their numbers."""

    name: str
    sign: str  # `"="`, `">="` or `"<="` of constraints; empty of measurements
    axes: tuple[str, ...]  # how each attribute is kept, in the order of the schema
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LevelRows:
    """The rows of one kind of a geolevel."""

    database: duckdb.DuckDBPyConnection
    place: str  # what messages call them
    parts: Mapping[str, tuple[Path, ...]]  # by partition
    relation: str  # SQL for them, with part, geocode, name, sign, axes, shape, value and variance
    kinds: tuple[RowKind, ...]

    def read(self, query: str) -> dict[str, NDArray[Any]]:
        """Ask something of the rows.

        Raises
        ------
        InputError
            If a file is broken behind what was read of it before.
        """
        with _broken(self.place):
            return self.database.execute(query).fetchnumpy()

    def geocodes(self) -> Texts:
        """The different geocodes, in order."""
        found = self.read(f"SELECT DISTINCT geocode FROM {self.relation} ORDER BY 1")
        return np.array([text.encode() for text in found["geocode"]] or [b""][:0], dtype=np.bytes_)

    def stretches(self) -> Iterator[tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.object_]]]:
        """The rows, in stretches of at least a row group: the place of their geounit, of their kind, their numbers.

        Geounits are those of the table "units" of the database, kinds those of the table "kinds"; -1 for others.
        """
        for files in self.parts.values():
            for path in files:
                for first, last in self._stretches(path):
                    rows = (
                        f"FROM read_parquet({source_of(path)}, hive_partitioning = false, file_row_number = true) "
                        f"WHERE file_row_number BETWEEN {first} AND {last}"
                    )
                    # Numbers are not joined, which would copy them; a scan keeps the order of its file.
                    places = self.read(
                        "SELECT coalesce(units.place, -1) AS unit, coalesce(kinds.place, -1) AS kind "
                        f"FROM (SELECT geocode, query_name, file_row_number {rows}) rows "
                        "LEFT JOIN units ON units.geocode = rows.geocode LEFT JOIN kinds ON kinds.name = query_name "
                        "ORDER BY file_row_number"
                    )
                    found = self.read(f"SELECT value {rows}")
                    yield places["unit"], places["kind"], found["value"]

    def answers(
        self, names: Sequence[str], sizes: Sequence[int]
    ) -> Iterator[tuple[int, NDArray[np.integer], NDArray[np.integer]]]:
        """The numbers of rows of some names, as `stretches` gives them, name by name.

        Parameters
        ----------
        names : sequence of str
            Rows of others are left out.
        sizes : sequence of int
            How many numbers a row of each has.

        Yields
        ------
        tuple
            The place of the name, the places of geounits, and their numbers, of shape (geounits, size).

        Raises
        ------
        InputError
            If a row has more or fewer numbers, or some of them are missing.
        """
        list_kinds(self, names)
        for unit, kind, lists in self.stretches():
            for q in range(len(names)):
                here = np.flatnonzero(kind == q)
                if not len(here):
                    continue
                chosen = lists if len(here) == len(lists) else lists[here]
                lengths = np.fromiter(map(len, chosen), dtype=np.int64, count=len(chosen))
                wrong = lengths != sizes[q]
                if not wrong.any():
                    flat: NDArray[np.integer] = np.concatenate(list(chosen))
                    if not np.ma.isMaskedArray(flat):
                        yield q, unit[here], flat.reshape(len(here), sizes[q])
                        continue
                at = int(np.argmax(wrong)) if wrong.any() else int(np.argmax([np.ma.is_masked(of) for of in chosen]))
                number = f"{lengths[at]:,}" if wrong.any() else "missing"
                raise InputError(
                    f"{self.place}: {self.code(int(unit[here[at]]))} has {names[q]} with {number} numbers, and its "
                    f"query_shape says {sizes[q]:,}"
                )

    def code(self, unit: int) -> str:
        """The geocode of a geounit of the table "units"."""
        ((code,),) = self.database.execute(f"SELECT geocode FROM units WHERE place = {unit}").fetchall()
        return f"geocode {code}"

    def _stretches(self, path: Path) -> Iterator[tuple[int, int]]:
        groups = self.database.execute(
            "SELECT any_value(row_group_num_rows), max(num_values) FROM "
            f"parquet_metadata({source_of(path)}) GROUP BY row_group_id ORDER BY row_group_id"
        ).fetchall()
        first = stop = held = 0
        for group_rows, group_values in groups:
            # A large group is cut, which reads it anew for each piece.
            pieces = min(group_rows, -(-group_values // _VALUES_AT_ONCE)) or 1
            for piece in range(pieces):
                rows = group_rows * (piece + 1) // pieces - group_rows * piece // pieces
                values = group_values // pieces
                if held and held + values > _VALUES_AT_ONCE:
                    yield first, stop - 1
                    first, held = stop, 0
                stop, held = stop + rows, held + values
        if stop > first:
            yield first, stop - 1


def level_rows(
    database: duckdb.DuckDBPyConnection, place: str, kind: str, parts: Mapping[str, tuple[Path, ...]], schema: Schema
) -> LevelRows | None:
    """Open the rows of a geolevel; None where there are no files.

    Parameters
    ----------
    place : str
        What messages call them.
    kind : "DPQuery" or "Constraint"
    schema : Schema
        Whose attributes must be columns, in this order; other columns are not looked at.

    Raises
    ------
    InputError
        If a file is not Parquet, lacks a column, or holds numbers of another type; if a row lies in another partition
        than its geocode says, or has no value; if rows of one name differ in axes, shape or sign.
    """
    if not parts:
        return None
    for paths in parts.values():
        for path in paths:
            _check_columns(database, path, kind, schema)
    sign = "sign::VARCHAR" if kind == CONSTRAINT else "''"
    axes = f"[{', '.join(f'{named(name)}::VARCHAR' for name in schema.names)}]"
    relation = " UNION ALL ".join(
        f"SELECT {quoted(state)} AS part, geocode::VARCHAR AS geocode, query_name::VARCHAR AS name, {sign} AS sign, "
        f"{axes} AS axes, query_shape::BIGINT[] AS shape, value::BIGINT[] AS value, variance::DOUBLE AS variance "
        f"FROM {parquet_rows([path])}"
        for state, paths in parts.items()
        for path in paths
    )
    relation = f"({relation})"
    with _broken(place):
        found = database.execute(
            f"SELECT name, sign, axes, shape, count_if({_ODD}) FROM {relation} GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        if any(odd for *_, odd in found):
            _refuse_odd(database, place, relation)
    kinds = tuple(RowKind(name, sign, tuple(axes), tuple(shape)) for name, sign, axes, shape, _ in found)
    names = [one.name for one in kinds]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"{place}: rows of {twice[0]!r} differ in their axes, their query_shape or their sign")
    return LevelRows(database, place, parts, relation, kinds)


def _broken(place: str) -> AbstractContextManager[None]:
    return unreadable(InputError(f"{place}: its files are not readable as Parquet to their end"))


def _check_columns(database: duckdb.DuckDBPyConnection, path: Path, kind: str, schema: Schema) -> None:
    with system_fault(InputError, str(path)):
        must_be_regular(path)
    with unreadable(InputError(f"{path} is not readable as Parquet")):
        types = column_types(database, parquet_rows([path]))
    needed = ["geocode", "query_name", *schema.names, "query_shape", "value", "variance"]
    missing = [name for name in (*needed, *(["sign"] if kind == CONSTRAINT else [])) if name not in types]
    if missing:
        raise InputError(f"{path}: has no column {', '.join(missing)}; it is of another schema, or no {kind}")
    order = [name for name in types if name in schema.names]
    if tuple(order) != schema.names:
        raise InputError(
            f"{path}: is of another schema: its attributes are {', '.join(order)}, and not {', '.join(schema.names)}"
        )
    for name in ("query_shape", "value"):
        if types[name] not in _INTEGERS:
            raise InputError(f"{path}, column {name}: is of type {types[name]} and must be lists of whole numbers")
    _check_lists(database, path, {"query_shape": len(schema.names), "value": schema.cells})


def _check_lists(database: duckdb.DuckDBPyConnection, path: Path, most: Mapping[str, int]) -> None:
    """Refuse lists that are longer than any of the schema before they are read: a few bytes can say many zeros."""
    with unreadable(InputError(f"{path} is not readable as Parquet")):
        groups = database.execute(
            "SELECT split_part(path_in_schema, ',', 1), row_group_num_rows, num_values "
            f"FROM parquet_metadata({source_of(path)})"
        ).fetchall()
    for name, rows, values in groups:
        if values > rows * most.get(name, values):
            raise InputError(
                f"{path}, column {name}: holds {values:,} numbers in {rows:,} rows, and a row has at most "
                f"{most[name]:,}; it is of another schema, or damaged"
            )


_ODD: Final = (
    "geocode IS NULL OR name IS NULL OR shape IS NULL OR variance IS NULL OR sign IS NULL "
    "OR list_count(axes) <> len(axes) OR (part <> '' AND part <> left(geocode, 3))"
)
"""SQL for a row that lacks a value or lies in another partition."""


def _refuse_odd(database: duckdb.DuckDBPyConnection, place: str, relation: str) -> None:
    ((state, code),) = database.execute(f"SELECT part, geocode FROM {relation} WHERE {_ODD} LIMIT 1").fetchall()
    is_here = code is None or state in {"", code[:3]}
    rule = "a row of it lacks a value" if is_here else "lies in another partition"
    raise InputError(f"{place}, State={state}, geocode {code}: {rule}")


def list_kinds(rows: LevelRows, names: Sequence[str]) -> None:
    """Make the table "kinds" of names of rows and their places."""
    store_arrays(rows.database, "kinds", {"name": np.array(names, dtype=object), "place": np.arange(len(names))})


def query_of(kind: RowKind, schema: Schema, recodes: Mapping[str, Recode]) -> Query | str:
    """The query that rows of measurements answer, or what is wrong with them."""
    if not kind.name.endswith(QUERY_ENDING):
        return f"{kind.name!r} does not end in {QUERY_ENDING}"
    factors: list[Factor] = []
    for attribute, axis in zip(schema.attributes, kind.axes, strict=True):
        factor = _factor(attribute, axis, recodes)
        if factor is None:
            return f"{kind.name}: {axis!r} is no way to keep {attribute.name}; it is a query of another schema"
        factors.append(factor)
    parts = kind.name.removesuffix(QUERY_ENDING).split(JOINED.strip())
    query = Query("*".join(map(str.strip, parts)), tuple(factors))
    if query.shape != kind.shape:
        return f"{kind.name}: query_shape is {list(kind.shape)}, and its axes have {list(query.shape)} answers"
    return query


def named_as(query: Query, kind: RowKind, schema: Schema) -> bool:
    """Whether the name of rows says what their axes do."""
    if query.name == TOTAL:
        return query.size == 1
    if query.name == DETAILED:
        return query.is_detailed
    kept = [schema.names[i] if axis == WHOLE else axis for i, axis in enumerate(kind.axes) if axis != SUMMED]
    return sorted(query.name.split("*")) == sorted(kept)


def _factor(attribute: Attribute, axis: str, recodes: Mapping[str, Recode]) -> Factor | None:
    if axis == SUMMED:
        return (0,) * attribute.size
    if axis in {WHOLE, attribute.name}:
        return tuple(range(attribute.size))
    recode = recodes.get(axis)
    return recode.factor if recode is not None and recode.attribute == attribute.name else None


def zero_of(kind: RowKind, schema: Schema) -> tuple[int | None, ...] | None:
    """The levels that no record has together, None for all of an attribute; None if rows do not say that."""
    if prod(kind.shape) != 1 or kind.sign != "=" or all(axis == SUMMED for axis in kind.axes):
        return None
    known = {name: level for level, name in LEVEL_NAMES.items()}
    levels: list[int | None] = []
    for attribute, axis in zip(schema.attributes, kind.axes, strict=True):
        name, _, number = axis.partition("=")
        of, level = known.get(axis, (name, int(number) if number.isdecimal() else -1))
        if axis != SUMMED and (of != attribute.name or not 0 <= level < attribute.size):
            return None
        levels.append(None if axis == SUMMED else level)
    return tuple(levels)
