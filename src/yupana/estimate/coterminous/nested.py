"""The cells of a family of tables as one tree: which cells of the published tables refine which."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from yupana.products.least_squares import Parents
from yupana.products.safetab.specification import FAMILIES, KEYS
from yupana.products.tables import NUMBERS, Choice, Family

Block = frozenset[int]
"""Cells of the finest choice that some cell holds."""


@dataclass(frozen=True, slots=True)
class NestedRow:
    """A row that a population group has in a table, and the node of the tree that it counts."""

    table: str
    labels: tuple[str, ...]
    depth: int
    node: int


@dataclass(frozen=True, slots=True)
class NestedCells:
    """The tree of the cells of a family.

    Attributes
    ----------
    tables : tuple of str
        That of each choice, coarsest first.
    parents : Parents
        The total at depth 0.
    basis : tuple of int
        By choice, the depth whose nodes were measured; all other numbers are sums of them.
    rows : tuple of tuple of NestedRow
        By choice, the rows of a group in all its tables, in their order. In SafeTab-P a group with an age table has its
        row of T01001, too.
    """

    tables: tuple[str, ...]
    parents: Parents
    basis: tuple[int, ...]
    rows: tuple[tuple[NestedRow, ...], ...]


def nested(family: Family) -> NestedCells:
    """Build the tree from what each choice tells of the finest cells.

    Raises
    ------
    ValueError
        If the published cells are no tree: one overlaps another, or marginals do not divide all cells.
    """
    layers = _layers(family)
    place = [{block: node for node, block in enumerate(layer)} for layer in layers]
    parents = tuple(
        np.array([next(node for node, block in enumerate(above) if part <= block) for part in below], dtype=np.intp)
        for above, below in pairwise(layers)
    )
    basis, rows = [], []
    for choice in family.choices:
        blocks = _blocks(choice)
        basis.append(next(depth for depth, layer in enumerate(layers) if set(layer) == set(blocks)))
        found = []
        for table in choice.tables:
            for cell in table.cells:
                block = frozenset().union(*(blocks[part] for part in cell.parts))
                # A cell that finer depths leave as it is stands at each; it is counted at the finest measured.
                depth = max(depth for depth in range(basis[-1] + 1) if block in place[depth])
                found.append(NestedRow(table.name, tuple(map(str, cell.labels)), depth, place[depth][block]))
        rows.append(tuple(found))
    return NestedCells(tuple(choice.own.name for choice in family.choices), parents, tuple(basis), tuple(rows))


def _blocks(choice: Choice) -> list[Block]:
    """By measured cell, the finest cells that it holds."""
    return [frozenset(i for i, own in enumerate(choice.finest) if own == part) for part in range(choice.measured)]


def _layers(family: Family) -> list[tuple[Block, ...]]:
    """The depths of the tree: the measured cells of each choice, and what marginals divide all cells into."""
    divisions = {frozenset(_blocks(choice)) for choice in family.choices}
    measured = {block for division in divisions for block in division}
    marginals = frozenset(
        frozenset().union(*(_blocks(choice)[part] for part in cell.parts))
        for choice in family.choices
        for table in choice.tables
        for cell in table.cells
    )
    between = marginals - measured
    layers = sorted([*divisions, *([between] if between else [])], key=len)
    every = range(family.choices[-1].measured)
    holder = [{cell: block for block in layer for cell in block} for layer in layers]
    refined = all(
        sum(map(len, layer)) == len(every) == len(holder[depth])
        and all(block <= holder[max(depth - 1, 0)][min(block)] for block in (layer if depth else ()))
        for depth, layer in enumerate(layers)
    )
    if not refined:
        raise ValueError(f"the cells of {family.name} are no tree")
    # By the blocks that hold it, from the coarsest on, so that the children of a block are neighbours.
    order = sorted(every, key=lambda cell: [min(of[cell]) for of in holder])
    return [tuple(dict.fromkeys(of[cell] for cell in order)) for of in holder]


PUBLISHED: Final = tuple(family for families in FAMILIES.values() for family in families)
"""The families of the SafeTab products."""

TREES: Final = tuple(nested(family) for family in PUBLISHED if len(family.choices) > 1)
"""Persons (T01001, T02), households by type (T03), households by tenure (T04): measured apart, so combined apart."""

COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {name: of for family in PUBLISHED for name, of in family.tables.items()}
"""By table, its columns in order."""

CELL_COLUMNS: Final = {name: columns[len(KEYS) : -len(NUMBERS)] for name, columns in COLUMNS.items()}
"""By table, the columns that name its cell."""
