"""What a selection of a query means: rows of a table of a release, or cells of a schema of TopDown. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod
from pathlib import Path
from typing import Final

import duckdb
import numpy as np

from yupana.arrays import Floats
from yupana.errors import ConfigError, OutputError, nearest
from yupana.estimate.intervals.query import Condition, Linear, Selection
from yupana.files.database import named, store_arrays, unreadable
from yupana.files.delimited import column_types
from yupana.products.topdown.tables import RedistrictingTable, tables_of
from yupana.release.tables import table_rows
from yupana.topdown.queries import DETAILED, TOTAL, Schema, told_apart

_LISTED: Final = 12


def open_file(db: duckdb.DuckDBPyConnection, view: str, path: Path) -> list[str]:
    """Make a view of a file, all columns text, and return the columns.

    Raises
    ------
    OutputError
        If it is not readable as a table of a release.
    """
    with unreadable(OutputError(f"{path} is not readable as a table of a release")):
        db.execute(f"CREATE VIEW {named(view)} AS SELECT COLUMNS(*)::VARCHAR FROM {table_rows(path)}")
        return list(column_types(db, named(view)))


def list_labels(db: duckdb.DuckDBPyConnection, name: str, labels: Sequence[str]) -> None:
    """Make a table of labels and their places."""
    store_arrays(db, name, {"place": np.arange(len(labels)), "label": np.array(labels, dtype=object)})


def rows_where(
    db: duckdb.DuckDBPyConnection, view: str, columns: Sequence[str], keys: Sequence[str], selection: Selection
) -> list[tuple[str, ...]]:
    """The values of some columns in the rows that a selection means.

    Parameters
    ----------
    view : str
        Made by `open_file`.
    keys : sequence of str
        Columns that conditions may name.

    Raises
    ------
    ConfigError
        If a column or a value is unknown, no row is meant, or several are without ``sum``.
    OutputError
        If the file cannot be read to its end.
    """
    for condition in selection.conditions:
        if condition.column not in keys:
            raise ConfigError(
                f"{selection.table} has no column {condition.column} to choose by; it has {', '.join(keys)}"
            )
    where, values = _where(selection.conditions)
    with unreadable(OutputError(f"{selection.table} is not readable as a table of a release")):
        picked = ", ".join(map(named, columns))
        found = db.execute(f"SELECT {picked} FROM {named(view)} WHERE {where}", values).fetchall()
        if not found:
            raise ConfigError(f"no row is {selection.text}{_why_none(db, view, selection)}")
    rows = [tuple(map(str, row)) for row in found]
    for condition in selection.conditions:
        held = {row[columns.index(condition.column)] for row in rows}
        if missing := missing_values(sorted(held), condition):
            raise ConfigError(f"no row of {selection.text} has {condition.column} {missing[0]!r}; leave it out")
    if len(rows) > 1 and not selection.is_sum:
        differing = [name for i, name in enumerate(columns) if name in keys and len({row[i] for row in rows}) > 1]
        told = f"they differ in {', '.join(differing)}" if differing else "the release has a row twice"
        raise ConfigError(
            f"{len(rows):,} rows are {selection.text}; {told}. Choose one, or write sum({selection.text})"
        )
    return rows


def chosen(labels: Sequence[str], condition: Condition) -> list[int]:
    """Positions of the labels that a condition on them means."""
    if condition.is_prefix:
        return [i for i, label in enumerate(labels) if label.startswith(condition.values)]
    place = {label: i for i, label in enumerate(labels)}
    return [place[value] for value in condition.values if value in place]


def missing_values(labels: Sequence[str], condition: Condition) -> list[str]:
    """Values of a condition that no label meets."""
    if condition.is_prefix:
        return [value for value in condition.values if not any(label.startswith(value) for label in labels)]
    there = set(labels)
    return [value for value in condition.values if value not in there]


def _where(conditions: Sequence[Condition]) -> tuple[str, list[str]]:
    parts, values = ["true"], list[str]()
    for condition in conditions:
        name = named(condition.column)
        test = f"starts_with({name}, ?)" if condition.is_prefix else f"{name} = ?"
        parts.append(f"({' OR '.join([test] * len(condition.values))})")
        values += condition.values
    return " AND ".join(parts), values


def _why_none(db: duckdb.DuckDBPyConnection, view: str, selection: Selection) -> str:
    """Name the first condition that no row meets by itself, and what its column holds."""
    for condition in selection.conditions:
        where, values = _where([condition])
        if db.execute(f"SELECT 1 FROM {named(view)} WHERE {where} LIMIT 1", values).fetchall():
            continue
        name = named(condition.column)
        found = db.execute(f"SELECT DISTINCT {name} FROM {named(view)} ORDER BY 1 LIMIT {_LISTED + 1}").fetchall()
        held = [str(row[0]) for row in found]
        more = ", ..." if len(held) > _LISTED else ""
        return f": {condition.column} holds {', '.join(held[:_LISTED])}{more}" if held else ": the table has no rows"
    return ": each condition is met by some row, but not all by one"


Levels = tuple[tuple[int, int], ...]
"""An answer of a margin: each attribute kept and its level, both by position. Attributes not named are summed over."""

_MOST_CELLS: Final = 1 << 24


@dataclass(frozen=True, slots=True)
class Counted:
    """The words in which counts of a schema can be asked for."""

    schema: Schema
    tables: tuple[RedistrictingTable, ...]  # the published tables that the schema gives

    def select(self, selection: Selection) -> Linear:
        """The answers that a selection adds up, each once: ``P0010003``, or ``sex*age[sex=1, age=0]``.

        Raises
        ------
        ConfigError
            If there is no such attribute, level or variable, or several answers are meant without ``sum``.
        """
        for table in self.tables:
            if selection.table in table.variables:
                if selection.conditions:
                    raise ConfigError(f"{selection.text}: a variable of a table counts what it counts; leave out [...]")
                answers = self._of_variable(table, table.variables.index(selection.table))
                return Linear(Fraction(0), dict.fromkeys(answers, Fraction(1)))
        kept = kept_by(selection.table.replace(".", "*"), self.schema)
        if kept is None:
            raise ConfigError(f"{selection.table} is nothing that is counted here; {self._known(selection.table)}")
        columns = {self.schema.names[i]: self.schema.attributes[i].labels for i in kept}
        found = chosen_places(selection, columns)
        cells = product(*([(i, place) for place in found[self.schema.names[i]]] for i in kept))
        return Linear(Fraction(0), dict.fromkeys(cells, Fraction(1)))

    def _of_variable(self, table: RedistrictingTable, place: int) -> list[Levels]:
        inside = (table.member == place).any(axis=1)
        needed, (found,) = told_apart(inside[None], self.schema.shape)
        kept = [axis for axis, is_needed in enumerate(needed) if is_needed]
        answers = np.argwhere(found.reshape([self.schema.shape[axis] for axis in kept]))
        return [tuple(zip(kept, levels, strict=True)) for levels in answers.tolist()]

    def _known(self, name: str) -> str:
        variables = [variable for table in self.tables for variable in table.variables]
        listed = [f"variables such as {variables[0]}"] if variables else []
        told = ", ".join([TOTAL, DETAILED, *self.schema.names, *listed])
        return f"there are {told}, and attributes joined by *{nearest(name, (*self.schema.names, *variables))}"


def counted_in(schema: Schema) -> Counted:
    """The words for a schema."""
    return Counted(schema, tuple(tables_of(schema)))


def chosen_places(selection: Selection, columns: Mapping[str, Sequence[str]]) -> dict[str, list[int]]:
    """The places of the values that a selection means in each column; all where it does not say.

    Raises
    ------
    ConfigError
        If it names another column or value, or means several rows without ``sum``.
    """
    found = {column: list(range(len(labels))) for column, labels in columns.items()}
    for condition in selection.conditions:
        if condition.column not in columns:
            known = ", ".join(columns) or "none: it is one number"
            raise ConfigError(f"{selection.table} has no column {condition.column}; it has {known}")
        labels = columns[condition.column]
        if missing := missing_values(labels, condition):
            some = ", ".join(labels[:12]) + (", ..." if len(labels) > 12 else "")
            raise ConfigError(f"no row is {selection.text}: {condition.column} {missing[0]!r} is none of {some}")
        found[condition.column] = chosen(labels, condition)
    sizes = {column: len(places) for column, places in found.items()}
    number = prod(sizes.values())
    if number > 1 and not selection.is_sum:
        free = ", ".join(column for column, size in sizes.items() if size > 1)
        raise ConfigError(
            f"{number:,} answers are {selection.text}; they differ in {free}. Choose one, or write "
            f"sum({selection.text})"
        )
    if number > _MOST_CELLS:
        raise ConfigError(f"{number:,} answers are {selection.text}; sum a coarser query or geolevel")
    return found


def kept_by(name: str, schema: Schema) -> tuple[int, ...] | None:
    """Which attributes a query keeps, by its name; None if it names anything else."""
    if name in {TOTAL, DETAILED}:
        return tuple(range(len(schema.names))) if name == DETAILED else ()
    parts = name.split("*")
    if len(set(parts)) < len(parts) or not set(parts) <= set(schema.names):
        return None
    return tuple(sorted(schema.names.index(part) for part in parts))


def weights_on(answers: Mapping[Levels, Fraction], schema: Schema) -> tuple[tuple[int, ...], Floats]:
    """Write weighted answers as weights on the cells of the attributes that they keep.

    Returns
    -------
    tuple
        The attributes kept, and the weights, of shape (cells of these attributes,), in C order.
    """
    kept = tuple(sorted({attribute for levels in answers for attribute, _ in levels}))
    axis = {attribute: place for place, attribute in enumerate(kept)}
    weights = np.zeros(tuple(schema.shape[i] for i in kept) or (1,))
    for levels, weight in answers.items():
        at: list[int | slice] = [slice(None)] * weights.ndim
        for attribute, level in levels:
            at[axis[attribute]] = level
        weights[tuple(at)] += float(weight)
    return kept, weights.reshape(-1)
