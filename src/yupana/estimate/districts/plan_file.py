"""A district plan as a file: a row for each block, with the district it lies in. Public."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from yupana.arrays import Flags, Ints
from yupana.errors import InputError
from yupana.files.delimited import DelimitedFile, open_delimited, positions
from yupana.geography.kinds import BLOCK_WIDTH, block_codes, block_column
from yupana.geography.spine_files import WrittenSpine
from yupana.geography.tree import Members, partition

_DISTRICT: Final = "district"
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True, eq=False)
class DistrictPlan:
    """Which district each block of a spine lies in.

    Attributes
    ----------
    districts : tuple of str
        By number, and those that are no numbers before them.
    members : Members
        Every block of the spine in one district.
    beyond : int
        How many of its blocks the release has and the spine leaves out.
    """

    districts: tuple[str, ...]
    members: Members
    beyond: int


def read_plan(path: Path, spine: WrittenSpine, others: Callable[[], Ints]) -> DistrictPlan:
    """Read a plan for the blocks of a spine.

    Parameters
    ----------
    path : Path
        CSV or Parquet. The blocks' column is `block` or one of the Bureau's names, of 15 or 16 digits, or as the spine
        has them where its codes are no digits; the other column, or `district` among several, is the district.
    spine : WrittenSpine
    others : callable
        Gives more blocks, in order, that the release has and its spine leaves out: nobody lives there, and a plan may
        have them or not. Asked if the plan has blocks that the spine does not.

    Raises
    ------
    InputError
        Naming all that is wrong: columns, blocks that are unknown, listed twice, left out or in no district, and a
        plan of a single district.
    """
    with open_delimited(path, (), others=True) as file:
        column, other = _columns(file)
        districts = file.texts(other, nines=True)
        given = _listed(file, column, spine)
    at, left_out = given.places, ~given.on_spine
    if left_out.any() and not spine.names:
        left_out &= positions(given.codes, others()) < 0
    counted = np.bincount(at[given.on_spine], minlength=len(spine.block))
    outside = (at < 0) & ~left_out
    again = outside & _repeated(given.codes)
    faults = [
        *_fault("not in the release", map(given.name, np.flatnonzero(left_out).tolist())),
        *_fault("listed twice", map(spine.block_label, np.flatnonzero(counted > 1).tolist())),
        *_fault("listed twice", map(given.name, np.flatnonzero(again).tolist())),
        *_fault("left out", map(spine.block_label, np.flatnonzero(counted == 0).tolist())),
        *_fault("in no district", map(given.name, np.flatnonzero((districts.index < 0) & ~left_out).tolist())),
    ]
    if len(districts.labels) == 1:
        faults.append(f"there is one district alone, {districts.labels[0]}; a plan has several")
    if faults:
        raise InputError("\n  ".join([f"{path} is no plan for the blocks of the release:", *faults]))
    labels = sorted(districts.labels, key=_by_number)
    order = {label: i for i, label in enumerate(labels)}
    of_label = np.array([order[label] for label in districts.labels], dtype=np.int32)
    district = np.empty(len(spine.block), dtype=np.int32)
    district[at[given.on_spine]] = of_label[districts.index[given.on_spine]]
    return DistrictPlan(tuple(labels), partition(district, len(labels)), int(outside.sum()))


@dataclass(frozen=True, slots=True, eq=False)
class _Listed:
    """The blocks of a plan: the place of each on the spine or -1, and codes with what they are called."""

    places: Ints
    codes: Ints
    labels: tuple[str, ...]

    @property
    def on_spine(self) -> Flags:
        return self.places >= 0

    def name(self, row: int) -> str:
        code = int(self.codes[row])
        return f"{code:0{BLOCK_WIDTH}d}" if not self.labels else self.labels[code] if code >= 0 else "no code"


def _listed(file: DelimitedFile, column: str, spine: WrittenSpine) -> _Listed:
    if not spine.names:
        codes = block_codes(file, column)
        order = np.argsort(spine.block)
        found = positions(codes, spine.block[order])
        return _Listed(np.where(found >= 0, order[found], -1), codes, ())
    texts = file.texts(column, nines=True)
    place = {code: i for i, code in enumerate(spine.block_labels())}
    known = np.array([place.get(code, -1) for code in texts.labels] + [-1], dtype=np.int64)
    return _Listed(known[texts.index], texts.index.astype(np.int64), texts.labels)


def _repeated(codes: Ints) -> Flags:
    """Which codes are there more than once."""
    _, place, times = np.unique(codes, return_inverse=True, return_counts=True)
    return np.asarray(times[place] > 1)


def _columns(file: DelimitedFile) -> tuple[str, str]:
    """The columns of blocks and of districts."""
    blocks = block_column(file)
    others = [name for name in file.header if name != blocks]
    named = [name for name in others if name.lower() == _DISTRICT]
    chosen = named if len(named) == 1 else others
    if len(chosen) != 1:
        raise InputError(
            f"{file.path}, line 1: columns {', '.join(file.header)}; a plan has one column of blocks, and one of "
            f"districts, called {_DISTRICT} if there are others"
        )
    return blocks, chosen[0]


def _fault(words: str, blocks: Iterable[str]) -> list[str]:
    """How many blocks have a fault, and the first few; nothing of none."""
    found = list(dict.fromkeys(blocks))
    if not found:
        return []
    more = ", ..." if len(found) > _SHOWN else ""
    number = f"{len(found):,} block{'s are' if len(found) > 1 else ' is'}"
    return [f"{number} {words}: {', '.join(found[:_SHOWN])}{more}"]


def _by_number(label: str) -> tuple[int, str]:
    return (int(label), label) if label.isdecimal() and len(label) < _DIGITS else (0, label)


_DIGITS: Final = 19
