"""The attributes that a histogram counts, and query groups: what is asked of a histogram, by name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats
from yupana.errors import nearest


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of a record."""

    name: str
    # its levels, in order; `"0"`, `"1"`, ... where a configuration gives a number of levels only.
    labels: tuple[str, ...]

    @property
    def size(self) -> int:
        """How many levels it has."""
        return len(self.labels)


@dataclass(frozen=True, slots=True)
class Schema:
    """The attributes of a histogram. Its cells are numbered in C order: the last attribute varies fastest."""

    attributes: tuple[Attribute, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes' names."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Levels of each attribute."""
        return tuple(attribute.size for attribute in self.attributes)

    @property
    def cells(self) -> int:
        """How many cells a histogram has."""
        return prod(self.shape)


Factor = tuple[int, ...]
"""Which group each level of an attribute belongs to, groups numbered from 0 without gaps."""


@dataclass(frozen=True, slots=True)
class Query:
    """One query group."""

    name: str  # as configurations write it, such as `"hispanic*race"`, `"total"` or `"detailed"`
    # for each attribute its grouping: all levels in group 0 where it is summed over, each in its own where it is kept,
    # anything between for a recode. Every cell then lies in exactly one answer, so that one record changes one answer
    # by one: sensitivity 1, and squared L2 distance 2 between neighbours that change a record.
    factors: tuple[Factor, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Groups of each attribute; 1 where it is summed over."""
        return tuple(max(factor) + 1 for factor in self.factors)

    @property
    def size(self) -> int:
        """How many answers it has."""
        return prod(self.shape)

    @property
    def cells(self) -> int:
        """How many cells the histogram has."""
        return prod(map(len, self.factors))

    @property
    def is_detailed(self) -> bool:
        """Whether every cell is an answer of its own."""
        return self.size == self.cells

    @property
    def keeps_or_sums(self) -> bool:
        """Whether every attribute is kept or summed over as a whole, with no grouping between."""
        return all(max(factor) in {0, len(factor) - 1} for factor in self.factors)

    def answers(self) -> NDArray[np.int32]:
        """Which answer each cell counts in, of shape (cells,); answers in C order of `shape`."""
        index = np.zeros((), dtype=np.int32)
        for factor, size in zip(self.factors, self.shape, strict=True):
            index = index[..., None] * np.int32(size) + np.asarray(factor, dtype=np.int32)
        return np.ascontiguousarray(index.reshape(-1))


def margin(name: str, shape: Sequence[int], kept: Sequence[bool | int]) -> Query:
    """Make the query that keeps some attributes and sums over the others."""
    return Query(
        name,
        tuple(tuple(range(size)) if keep else (0,) * size for size, keep in zip(shape, kept, strict=True)),
    )


def told_apart(rows: Floats, shape: Sequence[int]) -> tuple[tuple[bool, ...], Floats]:
    """The attributes whose levels have different weights in some row, and the rows on the margin that keeps them."""
    weights = rows.reshape(len(rows), *shape)
    kept = []
    for axis in range(1, weights.ndim):
        first = weights.take([0], axis=axis)
        kept.append(bool((weights != first).any()))
        if not kept[-1]:
            weights = first
    return tuple(kept), weights.reshape(len(rows), -1)


TOTAL: Final = "total"
DETAILED: Final = "detailed"
_JOINED: Final = "*"


@dataclass(frozen=True, slots=True)
class Recode:
    """A grouping of the levels of an attribute."""

    name: str
    attribute: str  # whose levels it groups
    factor: Factor  # the group of each level; groups in the order they were given


def query_named(name: str, schema: Schema, recodes: Mapping[str, Recode]) -> Query:
    """Make the query that a name stands for.

    An attribute named is kept, one named by a recode is grouped, and the others are summed over; the order of the
    names does not matter. ``total`` sums over all attributes, ``detailed`` keeps all.

    Parameters
    ----------
    recodes : mapping of name to Recode
        Their names are no attributes of the schema.

    Returns
    -------
    Query
        Called by the name as given.

    Raises
    ------
    ValueError
        If a part of the name is unknown, or two parts mean the same attribute.
    """
    if name in {TOTAL, DETAILED}:
        return margin(name, schema.shape, [name == DETAILED] * len(schema.shape))
    factors: dict[str, Factor] = {}
    named: dict[str, str] = {}
    sizes = dict(zip(schema.names, schema.shape, strict=True))
    for part in name.split(_JOINED):
        recode = recodes.get(part)
        attribute = recode.attribute if recode is not None else part
        if attribute not in sizes:
            known = (*schema.names, *recodes, TOTAL, DETAILED)
            raise ValueError(f"query {name!r}: {part!r} is unknown; known are {', '.join(known)}{nearest(part, known)}")
        if attribute in named:
            raise ValueError(f"query {name!r}: {named[attribute]!r} and {part!r} both mean {attribute!r}; name one")
        named[attribute] = part
        factors[attribute] = recode.factor if recode is not None else tuple(range(sizes[attribute]))
    return Query(name, tuple(factors.get(attribute, (0,) * sizes[attribute]) for attribute in schema.names))


def nested_chain(schema: Schema) -> tuple[Query, ...]:
    """The total, then one attribute more after the other in the order of the schema, down to the detailed query.

    Each query splits the answers of the one before it, so that together they are laminar.
    """
    names = [TOTAL, *(_JOINED.join(schema.names[: i + 1]) for i in range(len(schema.names) - 1)), DETAILED]
    return tuple(query_named(name, schema, {}) for name in names)


def kept_columns(query: Query, schema: Schema, recodes: Mapping[str, Recode]) -> dict[str, list[str]]:
    """The columns that tell answers of a query apart: by attribute or recode kept, the label of each answer.

    A recode's groups are numbered from 0. Answers are in C order of the attributes.
    """
    if query.name == TOTAL:
        return {}
    parts = set(schema.names if query.name == DETAILED else query.name.split("*"))
    places = np.unravel_index(np.arange(query.size), query.shape)
    columns: dict[str, list[str]] = {}
    for attribute, place, size in zip(schema.attributes, places, query.shape, strict=True):
        if attribute.name in parts:
            columns[attribute.name] = [attribute.labels[i] for i in place.tolist()]
        for recode in recodes.values():
            if recode.attribute == attribute.name and recode.name in parts:
                columns[recode.name] = [str(i) for i in place.tolist() if i < size]
    return columns
