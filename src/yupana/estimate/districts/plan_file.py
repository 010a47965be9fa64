"""A district plan as a file: a row for each block, with the district it lies in. Public."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from yupana.errors import InputError
from yupana.files.delimited import DelimitedFile, open_delimited
from yupana.geography.tree import Members, partition

_BLOCK: Final = ("block", "blockid", "geoid", "geoid10", "geoid20")
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
        Every block in one district.
    """

    districts: tuple[str, ...]
    members: Members


def read_plan(path: Path, blocks: Sequence[str]) -> DistrictPlan:
    """Read a plan for the blocks of a spine.

    Parameters
    ----------
    path : Path
        CSV or Parquet. The blocks' column is `block` (16 digits, or as the release has them), or one of the Bureau's
        `BLOCKID`, `GEOID`, `GEOID10` and `GEOID20`, of 15 digits; the other column, or `district` among several, is
        the district.
    blocks : sequence of str
        Those of the spine.

    Raises
    ------
    InputError
        Naming all that is wrong: columns, blocks that are unknown, listed twice, left out or in no district, and a
        plan of a single district.
    """
    with open_delimited(path, (), others=True) as file:
        column, other = _columns(file)
        codes, districts = file.texts(column, nines=True), file.texts(other, nines=True)
    place = {code: i for i, code in enumerate(blocks)}
    known = np.array([place.get(_sixteen(code, place), -1) for code in codes.labels] + [-1], dtype=np.int64)
    at = known[codes.index]
    listed = np.bincount(at[at >= 0], minlength=len(blocks))
    faults = [
        *_fault("not in the release", (codes.labels[i] if i >= 0 else "no code" for i in codes.index[at < 0].tolist())),
        *_fault("listed twice", (blocks[i] for i in np.flatnonzero(listed > 1).tolist())),
        *_fault("left out", (blocks[i] for i in np.flatnonzero(listed == 0).tolist())),
        *_fault("in no district", (blocks[i] for i in at[(districts.index < 0) & (at >= 0)].tolist())),
    ]
    if len(districts.labels) == 1:
        faults.append(f"there is one district alone, {districts.labels[0]}; a plan has several")
    if faults:
        raise InputError("\n  ".join([f"{path} is no plan for the blocks of the release:", *faults]))
    labels = sorted(districts.labels, key=_by_number)
    order = {label: i for i, label in enumerate(labels)}
    of_label = np.array([order[label] for label in districts.labels], dtype=np.int32)
    district = np.empty(len(blocks), dtype=np.int32)
    district[at] = of_label[districts.index]
    return DistrictPlan(tuple(labels), partition(district, len(labels)))


def _columns(file: DelimitedFile) -> tuple[str, str]:
    """The columns of blocks and of districts."""
    blocks = [name for name in file.header if name.lower() in _BLOCK]
    others = [name for name in file.header if name not in blocks]
    named = [name for name in others if name.lower() == _DISTRICT]
    chosen = named if len(named) == 1 else others
    if len(blocks) != 1 or len(chosen) != 1:
        raise InputError(
            f"{file.path}, line 1: columns {', '.join(file.header)}; a plan has one column of blocks, called block or "
            f"{', '.join(name.upper() for name in _BLOCK[1:])}, and one of districts, called {_DISTRICT} if there are "
            "others"
        )
    return blocks[0], chosen[0]


def _sixteen(code: str, known: Mapping[str, int]) -> str:
    """The 16 digits of a block of which 15 are given: the block group is the first digit of the block."""
    return code if code in known or len(code) != _SHORT else code[:11] + code[11] + code[11:]


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


_SHORT: Final = 15
_DIGITS: Final = 19
