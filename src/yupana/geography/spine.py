"""A spine: a hierarchy with names and shares, whether it is one, and those that the digits of blocks alone make."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from yupana.arrays import Flags, Floats, Indices, Ints
from yupana.files.delimited import positions
from yupana.geography.blocks import Reference, in_areas
from yupana.geography.settings import DIGITS, Mechanism, SpineSettings
from yupana.geography.tree import Tree, nest
from yupana.release.lines import Texts, digits, texts


@dataclass(frozen=True, slots=True, eq=False)
class Geolevel:
    """The units of one geolevel, in the order of the tree; arrays of shape (units,)."""

    name: str
    width: int  # digits of an identifier; 0 for the root US, which is called by its name
    code: Ints  # identifiers as numbers
    part: Indices  # tells apart the units that a bypass made of one: 1, 2, ..., and 0 for a unit that is whole
    share: Indices  # positions in the shares of the spine
    bypassed: Flags  # whether the unit has given up its share to the unit above
    names: tuple[str, ...] = ()  # identifiers that are any texts, by the number in `code`; empty where they are digits

    @classmethod
    def whole(cls, name: str, width: int, code: Ints, *, share: int = 0, names: tuple[str, ...] = ()) -> "Geolevel":
        """Units that are whole and have not given up their share, which is that of one position."""
        parts, shares = (np.broadcast_to(np.int32(one), len(code)) for one in (0, share))
        return cls(name, width, code, parts, shares, np.broadcast_to(np.False_, len(code)), names)

    def labels(self, start: int = 0, stop: int | None = None) -> list[str]:
        """The identifiers of the units from `start` up to `stop`, unique within the geolevel."""
        if self.names:
            return [self.names[code] for code in self.code[start:stop].tolist()]
        if self.width == 0:
            return [self.name] * len(self.code[start:stop])
        names = [f"{code:0{self.width}d}" for code in self.code[start:stop].tolist()]
        parts = self.part[start:stop]
        if parts.any():
            for i in np.flatnonzero(parts).tolist():
                names[i] = f"{names[i]}-{parts[i]}"
        return names

    def texts(self, start: int = 0, stop: int | None = None) -> Texts:
        """The same identifiers as bytes, of shape (units,)."""
        if self.part[start:stop].any() or not self.width:
            return texts(self.labels(start, stop))
        return digits(self.code[start:stop], self.width)


@dataclass(frozen=True, slots=True, eq=False)
class Spine:
    """A tree over census blocks, with names and shares."""

    tree: Tree
    # in the order of the tree. The codes of the last are the 16 digits of the blocks, or their places in `names`.
    levels: tuple[Geolevel, ...]
    # the distinct shares that occur; few, whatever the number of units. None of a spine that was read without them.
    shares: tuple[Fraction, ...] = ()

    @property
    def blocks(self) -> Ints:
        """The 16 digits of the blocks as numbers, or their places among codes of any form, of shape (blocks,)."""
        return self.levels[-1].code

    def places(self, blocks: Ints) -> Ints:
        """The place of each of some blocks among those of the spine, or -1 if it has no such block."""
        order = np.argsort(self.blocks)
        return np.append(order, -1)[positions(blocks, self.blocks[order])]


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
        Geolevel.whole(name, width, key[first], share=distinct.index(share))
        for name, width, key, first, share in zip(names, widths, keys, firsts, shares, strict=True)
    ]
    return Spine(tree, tuple(levels), distinct)


def precisions(spine: Spine, mechanism: Mechanism) -> tuple[Floats, ...]:
    """The inverse variance of each unit's noisy total when the whole budget, 1, goes to the total query.

    Under zCDP a share s gives the variance 1/s at rho 1; under pure DP 8/s**2 at epsilon 1 (Laplace, scale 2/s).
    """
    values = np.array([float(share if mechanism == "zcdp" else share * share / 8) for share in spine.shares])
    return tuple(values[level.share] for level in spine.levels)


def check_spine(spine: Spine, blocks: Ints) -> list[str]:
    """Compare a spine with the blocks it was made of; return what is wrong, in words.

    Parameters
    ----------
    blocks : ndarray of int64
        In order, of shape (blocks,).
    """
    wrong = []
    if not np.array_equal(np.sort(spine.blocks), blocks):
        wrong.append("the blocks of the spine are not those of the reference file, each once")
    if spine.tree.units(0) != 1:
        wrong.append("the spine has no single root")
    for level, parent in enumerate(spine.tree.parents):
        name = spine.levels[level].name
        # Children side by side, every unit above with at least one.
        if level and not _covers(parent, spine.tree.units(level - 1)):
            wrong.append(f"the units of {name} do not lie in the order of their parents, each parent with a child")
        identifiers = np.stack([spine.levels[level].code, spine.levels[level].part.astype(np.int64)])
        if np.unique(identifiers, axis=1).shape[1] != len(parent):
            wrong.append(f"an identifier of {name} is there twice")
    return wrong + path_faults(spine)


def path_faults(spine: Spine) -> list[str]:
    """That the sums of shares along the paths from the root to the blocks are not all 1, exactly, in words."""
    paths = share_paths(spine.tree, [level.share for level in spine.levels])
    sums = {sum((spine.shares[i] for i in path), Fraction(0)) for path in paths}
    if sums == {Fraction(1)}:
        return []
    return [f"shares from the root to the blocks sum to {', '.join(sorted(map(str, sums)))}, not all to 1"]


def share_paths(tree: Tree, index: Sequence[Indices]) -> list[tuple[int, ...]]:
    """The distinct sequences of shares, by position, from the root to the blocks."""
    paths: list[tuple[int, ...]] = [()]
    of_parent = np.zeros(1, dtype=np.int64)
    shares = 1 + max(int(share.max(initial=0)) for share in index)
    for share, parent in zip(index, tree.parents, strict=True):
        cases, case = np.unique(of_parent[parent] * shares + share, return_inverse=True)
        paths = [(*paths[c // shares], c % shares) for c in cases.tolist()]
        of_parent = case.astype(np.int64)
    return paths


def _covers(parent: Indices, above: int) -> bool:
    steps = np.diff(parent)
    return bool(parent[0] == 0 and parent[-1] == above - 1 and ((steps == 0) | (steps == 1)).all())


def conventional_spine(reference: Reference, settings: SpineSettings) -> Spine:
    """Make a spine of the digits of the blocks: a unit is the blocks that begin alike.

    Parameters
    ----------
    settings : SpineSettings
        Its geolevels and shares.
    """
    order = np.argsort(reference.block, kind="stable")
    block = reference.block[order]
    widths = [DIGITS[level] for level in settings.levels]
    return make_spine(settings.levels, [block // 10 ** (16 - width) for width in widths], widths, settings.shares)


def aian_spine(reference: Reference, settings: SpineSettings) -> Spine:
    """Make the conventional spine of the two sides. A digit before an identifier tells the side: 1 inside, 0 outside.

    Parameters
    ----------
    settings : SpineSettings
        Its geolevels, shares and types of AIAN areas.
    """
    side = sides(reference, settings)
    order = np.lexsort((reference.block, side))
    block, side = reference.block[order], side[order]
    names = settings.levels
    return make_spine(names, [side_key(block, side, n) for n in names], [side_width(n) for n in names], settings.shares)


def sides(reference: Reference, settings: SpineSettings) -> Flags:
    """Which blocks lie in an AIAN area that is on the spine, of shape (blocks,)."""
    return in_areas(reference.aiannh, settings.aian_areas)


def side_width(level: str) -> int:
    """Digits of an identifier: one more than in tabulation geography, but for the nation and the blocks."""
    return DIGITS[level] + (level not in {"US", "Block"})


def side_key(block: Ints, side: Flags, level: str) -> Ints:
    """The identifier, as a number, of the unit of each block, of shape (blocks,)."""
    digits = DIGITS[level]
    key: Ints = block // 10 ** (16 - digits)
    return key if level in {"US", "Block"} else key + side.astype(np.int64) * 10**digits
