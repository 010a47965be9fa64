"""Tables of a release opened to look up cells: checked against the manifest, columns as text. Public."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import duckdb
import numpy as np

from yupana.errors import ConfigError, OutputError
from yupana.estimate.intervals.query import Condition, Selection
from yupana.files.database import named, unreadable
from yupana.files.delimited import column_types
from yupana.release.release import ReleaseFolder
from yupana.release.tables import table_rows

_LISTED: Final = 12


@dataclass(slots=True)
class OpenedTables:
    """Tables of a release that are opened at their first use.

    Attributes
    ----------
    db : duckdb.DuckDBPyConnection
    release : ReleaseFolder
    """

    db: duckdb.DuckDBPyConnection
    release: ReleaseFolder
    _columns: dict[str, list[str]] = field(default_factory=dict, init=False)


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


def cell_of(db: duckdb.DuckDBPyConnection, columns: Sequence[tuple[str, Sequence[str]]]) -> str:
    """SQL for the number of an answer, in C order, from columns and their labels; makes tables l0, l1, ..."""
    cell = "0"
    for k, (_, labels) in enumerate(columns):
        list_labels(db, f"l{k}", labels)
        cell = f"({cell} * {len(labels)} + l{k}.place)"
    return cell


def list_labels(db: duckdb.DuckDBPyConnection, name: str, labels: Sequence[str]) -> None:
    """Make a table of labels and their places."""
    db.register("listed", {"place": np.arange(len(labels)), "label": np.array(labels, dtype=object)})
    db.execute(f"CREATE TABLE {name} AS SELECT * FROM listed")
    db.unregister("listed")


def rows_where(
    db: duckdb.DuckDBPyConnection, view: str, columns: Sequence[str], keys: Sequence[str], selection: Selection
) -> list[tuple[str, ...]]:
    """The values of some columns in the rows that a selection means.

    Parameters
    ----------
    db : duckdb.DuckDBPyConnection
    view : str
        Made by `open_file`.
    columns : sequence of str
    keys : sequence of str
        Columns that conditions may name.
    selection : Selection

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
