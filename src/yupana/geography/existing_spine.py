"""A spine that was built before, or by another program, read from its folder and checked. Public."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from yupana.arrays import Indices, Ints
from yupana.errors import InputError
from yupana.geography.disk import BLOCKS, GEOUNITS, WrittenShares, WrittenSpine, read_checked
from yupana.geography.spine import Geolevel, Spine
from yupana.geography.tree import nest
from yupana.release.folder import MANIFEST
from yupana.release.tables import checksum

_LABEL: Final = re.compile(r"([0-9]{1,18})(?:-([1-9][0-9]{0,8}))?")


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """A spine from a folder.

    Attributes
    ----------
    spine : Spine
    checksums : dict of str to str
        SHA-256 of each file that says what the spine is.
    """

    spine: Spine
    checksums: dict[str, str]


def read_given(folder: Path) -> Given:
    """Read a spine from the folder that `spine build` made, in the order in which its units are listed there.

    Raises
    ------
    InputError
        If a file was changed, units do not nest, shares along a path do not sum to exactly 1, or a unit is not called
        by digits.
    OutputError
        If the folder holds no spine.
    """
    files, wrong = read_checked(folder)
    if wrong or files is None:
        raise InputError("\n".join([f"the spine {folder} cannot be used:", *(f"  {fault}" for fault in wrong)]))
    return Given(
        ordered_spine(folder, *files), {name: checksum(folder / name) for name in (BLOCKS, GEOUNITS, MANIFEST)}
    )


def ordered_spine(folder: Path, written: WrittenSpine, shares: WrittenShares) -> Spine:
    """The spine that files tell, its units in the order in which they are listed there.

    Parameters
    ----------
    folder : Path
        For messages.
    written : WrittenSpine
    shares : WrittenShares

    Raises
    ------
    InputError
        If a unit is not called by digits.
    """
    names = written.tree.names
    units = [written.tree.ancestors(level) for level in range(len(names))]
    rows = [row[unit] for row, unit in zip(shares.row, units, strict=True)]
    order = np.lexsort(rows[::-1])
    tree, firsts = nest(names, [row[order] for row in rows])
    levels = []
    for number, (name, first) in enumerate(zip(names, firsts, strict=True)):
        at = units[number][order][first]
        if number == len(names) - 1:
            width, code, part = 16, written.block[at], np.zeros(len(at), dtype=np.int32)
        else:
            width, code, part = _parsed(folder, name, [written.labels[number][unit] for unit in at.tolist()])
        levels.append(Geolevel(name, width, code, part, shares.index[number][at], shares.bypassed[number][at]))
    return Spine(tree, tuple(levels), shares.shares)


def _parsed(folder: Path, name: str, labels: Sequence[str]) -> tuple[int, Ints, Indices]:
    """The width, numbers and parts of identifiers."""
    if list(labels) == [name]:
        return 0, np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int32)
    found = [_LABEL.fullmatch(label) for label in labels]
    widths = {len(one[1]) if one else 0 for one in found}
    if len(widths) > 1 or 0 in widths:
        raise InputError(
            f"{folder / BLOCKS}, column {name}: call geounits by digits, as many for every unit of a geolevel, and the "
            "parts of one by -1, -2, ... behind them"
        )
    code = np.array([int(one[1]) for one in found if one], dtype=np.int64)
    part = np.array([int(one[2] or 0) for one in found if one], dtype=np.int32)
    return widths.pop(), code, part
