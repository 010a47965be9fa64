"""Blocks in tables of users and of the Bureau: the name of their column, and codes of 15 or 16 digits. Public."""

from typing import Final

import numpy as np

from yupana.arrays import Ints
from yupana.errors import InputError
from yupana.files.delimited import DelimitedFile
from yupana.geography.kinds import BLOCK_WIDTH

BLOCK_COLUMNS: Final = ("block", "blockid", "geocode", "geoid", "geoid20", "geoid10")
"""What the column of blocks may be called, in any case."""

_SHORT: Final = 15


def block_column(file: DelimitedFile) -> str:
    """The column of blocks, as the file spells it.

    Raises
    ------
    InputError
        If there is none, or several could be it.
    """
    names = [name for name in file.header if name.lower() in BLOCK_COLUMNS]
    if len(names) != 1:
        told = f"{' and '.join(names)} may all be the column of blocks" if names else "no column block"
        raise InputError(f"{file.path}, line 1: {told}; name one column of blocks block, BLOCKID or GEOID")
    return names[0]


def block_codes(file: DelimitedFile, column: str) -> Ints:
    """Codes of blocks as numbers of 16 digits, of shape (rows,); a block may be there twice.

    Parameters
    ----------
    file : DelimitedFile
    column : str
        Of 16 digits, or of 15, which leave out the block group: it is the first digit of the block.

    Raises
    ------
    InputError
        If a field is no such code, or its block group is not that of its block.
    """
    block = file.digits(column, _SHORT, most=BLOCK_WIDTH)
    short = file.lengths(column) == _SHORT
    whole = np.where(short, block // 10**4 * 10**5 + block % 10**4 // 10**3 * 10**4 + block % 10**4, block)
    wrong = np.flatnonzero(whole // 10**4 % 10 != whole // 10**3 % 10)
    if len(wrong):
        raise file.fault(int(wrong[0]), column, "the block group disagrees with the first digit of the block")
    return whole
