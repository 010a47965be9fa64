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
    columns = [column for column in file.columns if any(column.name in dict(p.columns) for p in predicates)]
    atoms = []  # per column: the atom of each value, and per predicate the atoms it accepts
    for column in columns:
        values = sorted(column.domain)
        accepted = [dict(p.columns).get(column.name) for p in predicates]
        # Many predicates accept the same values; each such set is compared once.
        place = {of: i for i, of in enumerate(dict.fromkeys(accepted))}
        accepts = np.array([_accepts(np.array(values), of) for of in place])
        distinct, atom_of = np.unique(accepts, axis=1, return_inverse=True)
        atoms.append((values, atom_of.ravel(), distinct[[place[of] for of in accepted]]))
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
    packed = np.ascontiguousarray(np.packbits(satisfied, axis=0).T)
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, class_of = np.unique(keys, return_index=True, return_inverse=True)
    code = " + ".join(
        f"{math.prod(sizes[place + 1 :])} * ({_atom_sql(column.name, values, atom_of)})"
        for place, (column, (values, atom_of, _)) in enumerate(zip(columns, atoms, strict=True))
    )
    # All-zero bytes sort first, so the class of the combination added above is class 0.
    return Classes(code or "0", class_of[1:].astype(np.int64), satisfied[:, first])


def _accepts(values: NDArray[np.int64], wanted: frozenset[int] | None) -> NDArray[np.bool_]:
    """Which of some values in order are wanted; all without a condition."""
    if wanted is None:
        return np.ones(len(values), dtype=np.bool_)
    found = np.zeros(len(values), dtype=np.bool_)
    some = np.fromiter(wanted, dtype=np.int64, count=len(wanted))
    at = np.minimum(np.searchsorted(values, some), len(values) - 1)
    found[at[values[at] == some]] = True
    return found


def _atom_sql(column: str, values: list[int], atom_of: NDArray[np.intp]) -> str:
    """SQL for the atom of a column's value, by runs of consecutive values of one atom."""
    ends = [i for i in range(len(values)) if i + 1 == len(values) or atom_of[i] != atom_of[i + 1]]
    if len(ends) == 1:
        return "0"
    whens = " ".join(f"WHEN {column} <= {values[i]} THEN {atom_of[i]}" for i in ends[:-1])
    return f"CASE {whens} ELSE {atom_of[ends[-1]]} END"
