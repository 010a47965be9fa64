"""A spine: a tree of named geounits, each with its share of the privacy budget."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from yupana.arrays import Flags, Floats, Indices, Ints
from yupana.geography.settings import Mechanism
from yupana.geography.tree import Tree, nest


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """The units of one geolevel, in the order of the tree; arrays of shape (units,).

    Attributes
    ----------
    name : str
    width : int
        Digits of an identifier; 0 for the root US, which is called by its name.
    code : ndarray of int64
        Identifiers as numbers.
    part : ndarray of int32
        Tells apart the units that a bypass made of one: 1, 2, ..., and 0 for a unit that is whole.
    share : ndarray of int32
        Positions in the shares of the spine.
    bypassed : ndarray of bool
        Whether the unit has given up its share to the unit above.
    """

    name: str
    width: int
    code: Ints
    part: Indices
    share: Indices
    bypassed: Flags

    def labels(self, start: int = 0, stop: int | None = None) -> list[str]:
        """The identifiers of the units from `start` up to `stop`, unique within the geolevel."""
        if self.width == 0:
            return [self.name] * len(self.code[start:stop])
        names = [f"{code:0{self.width}d}" for code in self.code[start:stop].tolist()]
        parts = self.part[start:stop]
        if parts.any():
            for i in np.flatnonzero(parts).tolist():
                names[i] = f"{names[i]}-{parts[i]}"
        return names


@dataclass(frozen=True, slots=True, eq=False)
class Spine:
    """A tree over census blocks, with names and shares.

    Attributes
    ----------
    tree : Tree
    levels : tuple of Level
        In the order of the tree. The codes of the last are the 16 digits of the blocks.
    shares : tuple of Fraction
        The distinct shares that occur; few, whatever the number of units.
    """

    tree: Tree
    levels: tuple[Level, ...]
    shares: tuple[Fraction, ...]

    @property
    def blocks(self) -> Ints:
        """The 16 digits of the blocks as numbers, of shape (blocks,)."""
        return self.levels[-1].code


def make_spine(names: Sequence[str], keys: Sequence[Ints], widths: Sequence[int], shares: Sequence[Fraction]) -> Spine:
    """Make a spine of blocks that lie in the order of their units.

    Parameters
    ----------
    names : sequence of str
        Geolevels.
    keys : sequence of ndarray of int64
        For each geolevel the identifier, as a number, of the unit of each block, of shape (blocks,).
    widths : sequence of int
        For each geolevel the digits of an identifier.
    shares : sequence of Fraction
        For each geolevel the share of its units.
    """
    tree, firsts = nest(names, keys)
    distinct = tuple(dict.fromkeys(shares))
    levels = [
        Level(
            name,
            width,
            key[first],
            np.zeros(len(first), dtype=np.int32),
            np.full(len(first), distinct.index(share), dtype=np.int32),
            np.zeros(len(first), dtype=np.bool_),
        )
        for name, width, key, first, share in zip(names, widths, keys, firsts, shares, strict=True)
    ]
    return Spine(tree, tuple(levels), distinct)


def precisions(spine: Spine, mechanism: Mechanism) -> tuple[Floats, ...]:
    """The inverse variance of each unit's noisy total when the whole budget, 1, goes to the total query.

    Under zCDP a share s gives the variance 1/s at rho 1; under pure DP 8/s**2 at epsilon 1 (Laplace, scale 2/s).
    """
    values = np.array([float(share if mechanism == "zcdp" else share * share / 8) for share in spine.shares])
    return tuple(values[level.share] for level in spine.levels)
