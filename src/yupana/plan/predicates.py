"""What a cell counts, as predicates on the columns of a record, and the classes of records that no cell can tell apart.

Count first, map after: from the predicates of all cells, each column's values fall into atoms (values that every
predicate treats alike), and the combinations of atoms into classes (combinations that satisfy the same predicates).
Records are counted once by class; each cell is then a sum over classes. Where only children are tabulated by their own
race, say, the race of adults makes no classes: nobody has to say so.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from yupana.files.columns import RecordFile


@dataclass(frozen=True, slots=True)
class Where:
    """Records whose every named column holds one of the named values; without a column, all records."""

    columns: tuple[tuple[str, frozenset[int]], ...] = ()

    def __and__(self, other: "Where") -> "Where":
        """Records that satisfy both."""
        merged = dict(self.columns)
        for column, values in other.columns:
            merged[column] = merged[column] & values if column in merged else values
        return Where(tuple(sorted(merged.items())))

    def __contains__(self, record: dict[str, int]) -> bool:
        """Whether a record, as a mapping of columns to numbers, satisfies this."""
        return all(record[column] in values for column, values in self.columns)

    @property
    def is_possible(self) -> bool:
        """Whether any record can satisfy this."""
        return all(values for _, values in self.columns)

    def on(self, columns: frozenset[str]) -> "Where":
        """The part of this that speaks of the given columns."""
        return Where(tuple((column, values) for column, values in self.columns if column in columns))


def as_sql(predicate: Where) -> str:
    """A condition in SQL, its columns by the names that they have there."""
    return " AND ".join(_test(column, sorted(values)) for column, values in predicate.columns) or "true"


def _test(column: str, values: list[int]) -> str:
    if not values:
        return "false"
    if len(values) == values[-1] - values[0] + 1:
        return f"{column} BETWEEN {values[0]} AND {values[-1]}"
    return f"{column} IN ({', '.join(map(str, values))})"


_MOST_COMBINATIONS = 1 << 22

_MOST_BITS = 1 << 31
"""Combinations times predicates, each a bit while they are compared."""

_MOST_MEMBERS = 1 << 29
"""Classes times predicates, each a byte of the result."""


_TOO_MANY = "the predicates tell too many combinations of values apart to count them by class"


class TooManyClassesError(ValueError):
    """Predicates tell more combinations of values apart than can be listed."""


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """The classes of one record file."""

    # by column: SQL over one column each; their sum is the combination of atoms of a record, from 0
    terms: Mapping[str, str]
    class_of: NDArray[np.int64]  # shape (combinations,): the class of each combination; class 0 satisfies no predicate
    members: NDArray[np.bool_]  # shape (predicates, classes): which predicates a class satisfies
    # how many atoms each column of `terms` has. Combinations are numbered with the last column running fastest.
    sizes: tuple[int, ...]

    @property
    def combination(self) -> str:
        """SQL over the file's columns for the combination of atoms of a record."""
        return " + ".join(self.terms.values()) or "0"

    @property
    def count(self) -> int:
        """How many classes there are."""
        return int(self.members.shape[1])


def classify(file: RecordFile, predicates: Sequence[Where]) -> Classes:
    """Find the classes of a file's records under predicates on its columns.

    Raises
    ------
    TooManyClassesError
        If the predicates tell more than four million combinations of values apart, or so many that to list which
        predicates each satisfies takes more than half a gigabyte.
    """
    atoms = _atoms_of_columns(file, predicates)
    sizes = [len(bits) for _, _, bits in atoms.values()]
    combinations = math.prod(sizes)
    if combinations > _MOST_COMBINATIONS or combinations * len(predicates) > _MOST_BITS:
        raise TooManyClassesError(_TOO_MANY)
    # Of each combination a bit for each predicate: those that all its atoms satisfy.
    satisfied = np.packbits(np.ones((1, len(predicates)), dtype=np.bool_), axis=1)
    for _, _, bits in atoms.values():
        satisfied = (satisfied[:, None, :] & bits[None, :, :]).reshape(-1, bits.shape[1])
    # Class 0 is kept for combinations no predicate accepts, whether any exist or not: all-zero bytes sort first.
    satisfied = np.concatenate([np.zeros_like(satisfied[:1]), satisfied])
    first, class_of = alike(satisfied)
    if len(first) * len(predicates) > _MOST_MEMBERS:
        raise TooManyClassesError(_TOO_MANY)
    members = _unpacked(np.ascontiguousarray(satisfied[first].T))[: len(predicates)]
    terms = {
        column: f"{math.prod(sizes[place + 1 :])} * ({_atom_sql(column, values, atom_of)})"
        for place, (column, (values, atom_of, _)) in enumerate(atoms.items())
    }
    return Classes(terms, class_of[1:].astype(np.int64), members, tuple(sizes))


def told_apart(file: RecordFile, predicates: Sequence[Where]) -> dict[str, NDArray[np.int64]]:
    """Of each column that predicates read, in the order of its values, which of these they treat alike, from 0."""
    return {column: of.astype(np.int64) for column, (_, of, _) in _atoms_of_columns(file, predicates).items()}


_Atoms = tuple[list[int], NDArray[np.intp], NDArray[np.uint8]]


def _atoms_of_columns(file: RecordFile, predicates: Sequence[Where]) -> dict[str, _Atoms]:
    """The atoms of each column that predicates read."""
    tests = [dict(predicate.columns) for predicate in predicates]
    return {
        column.name: _atoms(sorted(column.domain), [test.get(column.name) for test in tests])
        for column in file.columns
        if any(column.name in test for test in tests)
    }


def _atoms(values: list[int], accepted: Sequence[frozenset[int] | None]) -> _Atoms:
    """The atoms of a column by the values that each predicate accepts, all if None: thousands may name few sets.

    Given are the values, the atom of each, and of each atom a bit for each predicate that accepts it.
    """
    number = {wanted: row for row, wanted in enumerate(dict.fromkeys(accepted))}
    if len(number) * len(values) > _MOST_MEMBERS:
        raise TooManyClassesError(_TOO_MANY)
    place = {value: i for i, value in enumerate(values)}
    accepts = np.ones((len(number), len(values)), dtype=np.bool_)
    for wanted, row in number.items():
        if wanted is not None:
            accepts[row] = False
            accepts[row, [place[value] for value in wanted if value in place]] = True
    # Of values in a row that are treated alike, the first stands for all.
    begins = np.append(True, (accepts[:, 1:] != accepts[:, :-1]).any(axis=0))
    first, kind = alike(np.packbits(accepts[:, begins], axis=0).T)
    first, atom_of = np.flatnonzero(begins)[first], kind[np.cumsum(begins) - 1]
    accepts = accepts[:, first]
    bits = np.packbits(accepts[np.array([number[wanted] for wanted in accepted])], axis=0)
    return values, atom_of, np.ascontiguousarray(bits.T)


def alike(rows: NDArray[np.uint8]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first of each kind of equal rows, kinds in order, and the kind of each row."""
    if not rows.shape[1]:
        return np.zeros(1, dtype=np.intp), np.zeros(len(rows), dtype=np.intp)
    keys = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1]))).ravel()
    _, first, kind = np.unique(keys, return_index=True, return_inverse=True)
    return first, kind


def _unpacked(bits: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Eight rows of each row of bytes; several times as fast as numpy's own way."""
    out = np.empty((len(bits), 8, bits.shape[1]), dtype=np.uint8)
    for place in range(8):
        np.right_shift(bits, 7 - place, out=out[:, place])
    out &= 1
    return out.reshape(-1, bits.shape[1]).view(np.bool_)


def _atom_sql(column: str, values: list[int], atom_of: NDArray[np.intp]) -> str:
    """SQL for the atom of a column's value, by runs of consecutive values of one atom."""
    ends = [*np.flatnonzero(np.diff(atom_of)), len(values) - 1]
    if len(ends) == 1:
        return "0"
    whens = " ".join(f"WHEN {column} <= {values[i]} THEN {atom_of[i]}" for i in ends[:-1])
    return f"CASE {whens} ELSE {atom_of[ends[-1]]} END"
