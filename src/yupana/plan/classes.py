"""Count first, map after: the classes of records that no cell can tell apart.

From the predicates of all cells, each column's values fall into atoms (values that every predicate treats alike), and
the combinations of atoms into classes (combinations that satisfy the same predicates). Records are counted once by
class; each cell is then a sum over classes. Where only children are tabulated by their own race, say, the race of
adults makes no classes: nobody has to say so.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from yupana.files.columns import RecordFile
from yupana.plan.predicates import Where

_MOST_COMBINATIONS = 1 << 22


class TooManyClassesError(ValueError):
    """Predicates tell more combinations of values apart than can be listed."""


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """The classes of one record file.

    Attributes
    ----------
    combination : str
        SQL over the file's columns for the combination of atoms of a record, from 0.
    class_of : numpy.ndarray of int64, shape (combinations,)
        The class of each combination; class 0 satisfies no predicate.
    members : numpy.ndarray of bool, shape (predicates, classes)
        Which predicates a class satisfies.
    """

    combination: str
    class_of: NDArray[np.int64]
    members: NDArray[np.bool_]

    @property
    def count(self) -> int:
        """How many classes there are."""
        return int(self.members.shape[1])


def classify(file: RecordFile, predicates: Sequence[Where]) -> Classes:
    """Find the classes of a file's records under predicates on its columns.

    Raises
    ------
    TooManyClassesError
        If the predicates tell more than four million combinations of values apart.
    """
    tests = [dict(predicate.columns) for predicate in predicates]
    columns = [column for column in file.columns if any(column.name in test for test in tests)]
    # Per column: its values, the atom of each, and per predicate the atoms it accepts.
    atoms = [_atoms(sorted(column.domain), [test.get(column.name) for test in tests]) for column in columns]
    sizes = [distinct.shape[1] for _, _, distinct in atoms]
    if math.prod(sizes) > _MOST_COMBINATIONS:
        raise TooManyClassesError(
            f"the predicates on {file.name} tell too many combinations apart to count them by class"
        )
    satisfied = np.ones((len(predicates), 1), dtype=np.bool_)
    for _, _, distinct in atoms:
        satisfied = (satisfied[:, :, None] & distinct[:, None, :]).reshape(len(predicates), -1)
    # Class 0 is kept for combinations no predicate accepts, whether any exist or not.
    satisfied = np.concatenate([np.zeros((len(predicates), 1), dtype=np.bool_), satisfied], axis=1)
    first, class_of = _alike(satisfied)
    code = " + ".join(
        f"{math.prod(sizes[place + 1 :])} * ({_atom_sql(column.name, values, atom_of)})"
        for place, (column, (values, atom_of, _)) in enumerate(zip(columns, atoms, strict=True))
    )
    # All-zero bytes sort first, so the class of the combination added above is class 0.
    return Classes(code or "0", class_of[1:].astype(np.int64), satisfied[:, first])


def _atoms(
    values: list[int], accepted: Sequence[frozenset[int] | None]
) -> tuple[list[int], NDArray[np.intp], NDArray[np.bool_]]:
    """The atoms of a column by the values that each predicate accepts, all if None: thousands may name few sets."""
    number = {wanted: row for row, wanted in enumerate(dict.fromkeys(accepted))}
    place = {value: i for i, value in enumerate(values)}
    accepts = np.ones((len(number), len(values)), dtype=np.bool_)
    for wanted, row in number.items():
        if wanted is not None:
            accepts[row] = False
            accepts[row, [place[value] for value in wanted if value in place]] = True
    # Of values in a row that are treated alike, the first stands for all.
    begins = np.append(True, (accepts[:, 1:] != accepts[:, :-1]).any(axis=0))
    first, kind = _alike(accepts[:, begins])
    first, atom_of = np.flatnonzero(begins)[first], kind[np.cumsum(begins) - 1]
    return values, atom_of, accepts[np.array([number[wanted] for wanted in accepted])][:, first]


def _alike(columns: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first of each kind of equal columns, kinds in order, and the kind of each column."""
    packed = np.ascontiguousarray(np.packbits(columns, axis=0).T)
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, kind = np.unique(keys, return_index=True, return_inverse=True)
    return first, kind


def _atom_sql(column: str, values: list[int], atom_of: NDArray[np.intp]) -> str:
    """SQL for the atom of a column's value, by runs of consecutive values of one atom."""
    ends = [*np.flatnonzero(np.diff(atom_of)), len(values) - 1]
    if len(ends) == 1:
        return "0"
    whens = " ".join(f"WHEN {column} <= {values[i]} THEN {atom_of[i]}" for i in ends[:-1])
    return f"CASE {whens} ELSE {atom_of[ends[-1]]} END"
