"""In which cells of a level a record of a table can count, and how far two records are apart. Public.

docs/tables-privacy.md, theorem 2, tells what follows for sensitivities.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from yupana.arrays import Flags, Ints
from yupana.plan.predicates import Classes, TooManyClassesError, Where, alike, classify
from yupana.plan.responses import most_groups
from yupana.products.described.description import AreaKind, DescribedLevel, DescribedTable, Description, in_join

_MOST_COMPARED: Final = 1 << 28
"""Most products of a class, a class and a cell that are compared at once."""

_MOST_SETS: Final = 1 << 10
"""Most sets of classes, or of areas, that are gone through."""

_HEAVIEST: Final = 64
"""How many classes are compared first: usually two of them are as far apart as two can be."""


@dataclass(frozen=True, slots=True)
class Cells:
    """A number of cells, ``exact`` unless it is an upper bound only."""

    number: int
    exact: bool


@dataclass(frozen=True, slots=True, eq=False)
class Footprints:
    """The sets of cells of a level (area by group by cell) that one record of a table's universe can count in.

    Attributes
    ----------
    overlap : Cells
        The most cells that one record counts in, whatever its columns hold.
    kind : AreaKind
    place : str
        The column that tells in which areas of the kind a record lies; empty where one area holds everything.
    classes : Classes or None
        Of combinations of values, by the groups, cells and number of areas that they count in; None if there are too
        many combinations.
    within : ndarray of bool, shape (classes,)
        Which are of the universe.
    rows : tuple of (str, int)
        Of each group of conditions its cells: an empty name, and 1. Of all groups by one response together the cells of
        one of them: the response, and how many of the groups a record is in at most.
    members : ndarray of bool, shape (rows, classes)
    areas : ndarray of int64, shape (classes,)
        How many areas the records of a class lie in.
    common : ndarray of int64
        How many areas two records have in common at least, by how many each lies in.
    """

    overlap: Cells
    kind: AreaKind
    place: str
    classes: Classes | None
    within: Flags
    rows: tuple[tuple[str, int], ...]
    members: Flags
    areas: Ints
    common: Ints
    _known: dict[frozenset[str], Cells] = field(default_factory=dict, init=False)

    @property
    def by_responses(self) -> dict[str, int]:
        """How many groups by each response a record is in at most."""
        return {response: number for response, number in self.rows if response}

    def apart(self, shared: Collection[str]) -> Cells:
        """The most cells that exactly one of two records of the universe counts in, which agree in some columns.

        Parameters
        ----------
        shared : collection of str
            The columns, as a join names them; and responses, and the block as one column, of descriptions with blocks.
        """
        # Each of some kinds of neighbours asks the same.
        key = frozenset(shared)
        if key not in self._known:
            self._known[key] = self._apart(key)
        return self._known[key]

    def _apart(self, shared: Collection[str]) -> Cells:
        most = 2 * self.overlap.number
        if self.classes is None:
            return Cells(most, exact=False)
        sizes = self.classes.sizes
        same = [place for place, name in enumerate(self.classes.terms) if name in shared]
        rows = np.moveaxis(self.classes.class_of.reshape(sizes), same, range(len(same)))
        rows = rows.reshape(math.prod(sizes[place] for place in same), -1)
        rows = np.sort(np.ascontiguousarray(rows), axis=1)
        sets = rows[alike(rows.view(np.uint8))[0]]
        if len(sets) > _MOST_SETS:
            return Cells(most, exact=False)
        best = Cells(0, exact=True)
        for row in sets:
            classes = row[np.diff(row, prepend=-1) > 0]
            found = self._farthest(classes[self.within[classes]], shared)
            best = max(best, found, key=lambda cells: (cells.number, cells.exact))
            if best == Cells(most, exact=True):
                break
        return best

    def _farthest(self, classes: Ints, shared: Collection[str]) -> Cells:
        """Of records of some classes that agree in some columns: in their areas if what tells these is among them."""
        if not len(classes):
            return Cells(0, exact=True)
        one_area, number = self.place in {"", *shared}, np.array([number for _, number in self.rows])
        # Two records that may answer otherwise may be in groups of which none is of both.
        agreeing = np.array([response in {"", *shared} for response, _ in self.rows])
        plain = bool(agreeing.all() and (number == 1).all())
        weight = self.areas[classes] * (number @ self.members[:, classes])
        heaviest, most = classes[np.argsort(-weight, kind="stable")], 2 * int(weight.max())
        for some in (heaviest[:_HEAVIEST], heaviest):
            if len(some) ** 2 * len(self.members) > _MOST_COMPARED:
                break
            of = self.members[:, some].astype(np.float32)
            together = of.T @ of
            both = together if plain else (of[agreeing].T * number[agreeing]) @ of[agreeing]
            areas = self.areas[some]
            weight = areas * (number @ of).astype(np.int64)
            common = areas[:, None] if one_area else self.common[areas[:, None], areas]
            far = weight[:, None] + weight - 2 * common * both.astype(np.int64)
            best = int(far.max())
            # Records without a cell in common may lie in any areas, and answer anything; others in areas that cells do
            # not read.
            apart = not together[far == best].all()
            exact = apart or (agreeing.all() and (one_area or self._areas_are_free))
            if best == most or len(some) == len(classes):
                return Cells(best, self.overlap.exact and bool(exact))
        return Cells(most, exact=False)

    @property
    def _areas_are_free(self) -> bool:
        """Whether records of every class may lie in each set of areas of one size."""
        atoms = dict(zip(self.classes.terms, self.classes.sizes, strict=True)) if self.classes else {}
        sizes = {len(inside) for inside in self.kind.of}
        return atoms.get(self.kind.column, 1) == len(sizes) and len(set(self.kind.of)) <= _MOST_SETS


def footprints(description: Description, table: DescribedTable, level: DescribedLevel) -> Footprints:
    """Find the sets of cells of a level that records of a table can count in."""
    kind = description.areas[level.areas]
    place = description.files[table.counts].block if kind.blocks else kind.column
    groups, exact = _groups(description, level)
    of_group = description.predicates(table, [code for _, _, code in groups])
    predicates = [cell for _, _, code in groups for cell in of_group[code]]
    rows = tuple((response, number) for response, number, _ in groups for _ in table.cells)
    sizes = sorted({len(inside) for inside in kind.of}) or [1]
    lie_in = [Where(((kind.column, frozenset(_lying_in(kind, size))),)) for size in sizes if len(sizes) > 1]
    try:
        classes = classify(description.of_record(table), [table.universe, *predicates, *lie_in])
    except TooManyClassesError:
        bound = Cells(kind.overlap * sum(number for _, number in rows), exact=False)
        nothing = np.zeros((0, 0), dtype=np.bool_)
        return Footprints(bound, kind, place, None, nothing.ravel(), rows, nothing, *np.zeros((2, 0), dtype=np.int64))
    (within,), members, numbers = np.split(classes.members, [1, 1 + len(predicates)])
    areas = np.array(sizes) @ numbers if lie_in else np.full(classes.count, sizes[0])
    counted = np.array([number for _, number in rows]) @ members
    overlap = Cells(int((areas * counted).max(initial=0)), exact)
    return Footprints(overlap, kind, place, classes, within, rows, members, areas.astype(np.int64), _in_common(kind))


def _groups(description: Description, level: DescribedLevel) -> tuple[list[tuple[str, int, str]], bool]:
    """Groups of conditions, each with its code; of each response how many groups a record is in, and the code of one.

    And whether some record is in so many groups of every response.
    """
    by_response, exact = description.of_responses(level), True
    decided = {code for groups in by_response.values() for code in groups}
    found = [("", 1, code) for code in level.groups if code not in decided]
    for name, groups in by_response.items():
        number, attained = most_groups(groups.values(), {name: description.responses[name].most})
        found.append((in_join(*name.split(".", 1)), number, next(iter(groups))))
        exact = exact and attained
    return found, exact


def _lying_in(kind: AreaKind, number: int) -> list[int]:
    """The values of a kind's column that lie in so many areas."""
    return [value for value, inside in enumerate(kind.of) if len(inside) == number]


def _in_common(kind: AreaKind) -> Ints:
    """How many areas two records have in common at least, by how many each lies in; 0 where that is unknown."""
    sets = dict.fromkeys(kind.of)
    if len(sets) > _MOST_SETS or kind.blocks:
        return np.zeros((kind.overlap + 1, kind.overlap + 1), dtype=np.int64)
    inside = np.zeros((len(sets), len(kind.codes)), dtype=np.float32)
    for row, areas in zip(inside, sets, strict=True):
        row[list(areas)] = 1
    both = (inside @ inside.T).astype(np.int64)
    found = np.full((kind.overlap + 1, kind.overlap + 1), kind.overlap, dtype=np.int64)
    np.minimum.at(found, (np.diag(both)[:, None], np.diag(both)), both)
    return found
