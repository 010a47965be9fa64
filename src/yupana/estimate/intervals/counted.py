"""What a query counts of an area of TopDown: cells of its schema, or a variable of the published tables. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod
from typing import Final

import numpy as np

from yupana.arrays import Floats
from yupana.errors import ConfigError, nearest
from yupana.estimate.intervals.query import Selection
from yupana.estimate.intervals.table_cells import chosen, missing_values
from yupana.products.topdown.tables import RedistrictingTable, tables_of
from yupana.topdown.queries import DETAILED, TOTAL, Schema

Levels = tuple[tuple[int, int], ...]
"""An answer of a margin: each attribute kept and its level, both by position. Attributes not named are summed over."""

_MOST_CELLS: Final = 1 << 24


@dataclass(frozen=True, slots=True)
class Counted:
    """The words in which counts of a schema can be asked for.

    Attributes
    ----------
    schema : Schema
    tables : tuple of RedistrictingTable
        The published tables that the schema gives.
    """

    schema: Schema
    tables: tuple[RedistrictingTable, ...]

    def of(self, selection: Selection) -> list[Levels]:
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
                return self._of_variable(table, table.variables.index(selection.table))
        kept = kept_by(selection.table.replace(".", "*"), self.schema)
        if kept is None:
            raise ConfigError(f"{selection.table} is nothing that is counted here; {self._known(selection.table)}")
        columns = {self.schema.names[i]: self.schema.attributes[i].labels for i in kept}
        found = chosen_places(selection, columns)
        return list(product(*([(i, place) for place in found[self.schema.names[i]]] for i in kept)))

    def _of_variable(self, table: RedistrictingTable, place: int) -> list[Levels]:
        inside = (table.member == place).any(axis=1).reshape(self.schema.shape)
        kept = []
        for axis in range(len(self.schema.shape)):
            if (inside == inside.take([0], axis=axis)).all():
                inside = inside.take([0], axis=axis)
            else:
                kept.append(axis)
        return [tuple((axis, int(at[axis])) for axis in kept) for at in np.argwhere(inside)]

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
