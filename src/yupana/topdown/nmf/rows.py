"""The rows of noisy measurement files: one relation for each geolevel and kind. Public."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.errors import InputError
from yupana.files.database import named, quoted, source_of, unreadable
from yupana.files.delimited import column_types, parquet_rows
from yupana.release.lines import Texts
from yupana.topdown.nmf.layout import CONSTRAINT
from yupana.topdown.queries import Schema

_INTEGERS: Final = {f"{sign}{size}INT[]" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG")} | {
    "INTEGER[]",
    "UINTEGER[]",
}
_VALUES_AT_ONCE: Final = 1 << 24
"""Numbers that are held at once; a row group of a file is never cut."""


@dataclass(frozen=True, slots=True)
class RowKind:
    """What rows of one name say beside their geounit and their numbers.

    Attributes
    ----------
    name : str
    sign : str
        ``"="``, ``">="`` or ``"<="`` of constraints; empty of measurements.
    axes : tuple of str
        How each attribute is kept, in the order of the schema.
    shape : tuple of int
    """

    name: str
    sign: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LevelRows:
    """The rows of one kind of a geolevel.

    Attributes
    ----------
    database : duckdb.DuckDBPyConnection
    place : str
        What messages call them.
    parts : mapping of str to tuple of Path
        By partition.
    relation : str
        SQL for them, with part, geocode, name, sign, axes, shape, value and variance.
    kinds : tuple of RowKind
    """

    database: duckdb.DuckDBPyConnection
    place: str
    parts: Mapping[str, tuple[Path, ...]]
    relation: str
    kinds: tuple[RowKind, ...]

    def geocodes(self) -> Texts:
        """The different geocodes, in order."""
        found = self.database.execute(f"SELECT DISTINCT geocode FROM {self.relation} ORDER BY 1").fetchnumpy()
        return np.array([text.encode() for text in found["geocode"]] or [b""][:0], dtype=np.bytes_)

    def check_lengths(self) -> None:
        """Refuse rows whose numbers are not as many as their shape says, or are missing.

        Raises
        ------
        InputError
        """
        for kind in self.kinds:
            row = self.database.execute(
                f"SELECT geocode, len(value) FROM {self.relation} WHERE name = {quoted(kind.name)} AND "
                f"(len(value) <> {prod(kind.shape)} OR list_count(value) <> len(value)) LIMIT 1"
            ).fetchone()
            if row is not None:
                raise InputError(
                    f"{self.place}, geocode {row[0]}: {kind.name} has {row[1]:,} numbers, some of them missing or more "
                    f"or fewer than its query_shape {list(kind.shape)} says, {prod(kind.shape):,}"
                )

    def answers(self) -> Iterator[tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.object_]]]:
        """The rows, in stretches of at least a row group: the place of their geounit, of their kind, their numbers.

        Geounits are those of the table "units" of the database, kinds those of the table "kinds".
        """
        for files in self.parts.values():
            for path in files:
                for first, last in self._stretches(path):
                    found = self.database.execute(
                        "SELECT units.place AS unit, kinds.place AS kind, rows.value AS value FROM ("
                        "SELECT geocode, query_name, value FROM "
                        f"read_parquet({source_of(path)}, hive_partitioning = false, file_row_number = true) "
                        f"WHERE file_row_number BETWEEN {first} AND {last}) rows "
                        "JOIN units ON units.geocode = rows.geocode JOIN kinds ON kinds.name = rows.query_name"
                    ).fetchnumpy()
                    yield found["unit"], found["kind"], found["value"]

    def _stretches(self, path: Path) -> Iterator[tuple[int, int]]:
        groups = self.database.execute(
            "SELECT any_value(row_group_num_rows), max(num_values) FROM "
            f"parquet_metadata({source_of(path)}) GROUP BY row_group_id ORDER BY row_group_id"
        ).fetchall()
        first = stop = held = 0
        for rows, values in groups:
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
    database : duckdb.DuckDBPyConnection
    place : str
        What messages call them.
    kind : "DPQuery" or "Constraint"
    parts : mapping of str to tuple of Path
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
    with unreadable(InputError(f"{place}: its files are not readable as Parquet to their end")):
        _check_partitions(database, place, relation)
        found = database.execute(f"SELECT DISTINCT name, sign, axes, shape FROM {relation} ORDER BY ALL").fetchall()
    kinds = tuple(RowKind(name, sign, tuple(axes), tuple(shape)) for name, sign, axes, shape in found)
    names = [one.name for one in kinds]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"{place}: rows of {twice[0]!r} differ in their axes, their query_shape or their sign")
    return LevelRows(database, place, parts, relation, kinds)


def _check_columns(database: duckdb.DuckDBPyConnection, path: Path, kind: str, schema: Schema) -> None:
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


def _check_partitions(database: duckdb.DuckDBPyConnection, place: str, relation: str) -> None:
    row = database.execute(
        f"SELECT part, geocode FROM {relation} WHERE geocode IS NULL OR name IS NULL OR shape IS NULL "
        "OR variance IS NULL OR sign IS NULL OR list_count(axes) <> len(axes) "
        "OR (part <> '' AND part <> left(geocode, 3)) LIMIT 1"
    ).fetchone()
    if row is not None:
        rule = (
            "a row of it lacks a value" if row[1] is None or row[0] in {"", row[1][:3]} else "lies in another partition"
        )
        raise InputError(f"{place}, State={row[0]}, geocode {row[1]}: {rule}")
