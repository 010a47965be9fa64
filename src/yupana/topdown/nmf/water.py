"""The fifteen blocks of the spine of 2020 that lie in water and are not tabulated: where their counts went. Public."""

from dataclasses import replace
from typing import Final

import numpy as np

from yupana.arrays import Flags, Ints
from yupana.files.delimited import positions
from yupana.geography.spine import Spine
from yupana.geography.tree import nest
from yupana.topdown.histogram import Histogram

MOVED: Final = {
    "010039900000001": "010030108002009",
    "060739901000002": "060730187001280",
    "060759902000001": "060750179031031",
    "120759900000008": "120759704001101",
    "120869900000022": "120860080002011",
    "250259901010031": "250250503001006",
    "360819901000002": "360810916041000",
    "410079900000010": "410079511004030",
    "450299901000001": "450299708003004",
    "450539901000002": "450539503024009",
    "481679901000039": "481677239003135",
    "530099901000035": "530090019021025",
    "530619900020017": "530610401004007",
    "550259917020003": "550250032001000",
    "721039900130009": "721031704004006",
}
"""By the 15 digits of a block of the spine those of the block that its counts are published in."""


def tabulated(spine: Spine, counts: Histogram) -> tuple[Spine, Histogram, dict[str, str]]:
    """Move the counts of these blocks as the Census Bureau did, where they are there.

    A block whose target is on the spine, too, is taken off it, with the units that hold no other; one whose target is
    not takes its name.

    Parameters
    ----------
    spine : Spine
    counts : Histogram
        Of its blocks.

    Returns
    -------
    tuple
        The spine and the counts, and which blocks were moved.
    """
    pairs = [(_sixteen(source), _sixteen(target), source) for source, target in MOVED.items()]
    there = [pair for pair in pairs if pair[0] in spine.blocks]
    if not there:
        return spine, counts, {}
    order = np.argsort(spine.blocks)
    place = {block: int(order[at]) for block, at in _found(spine.blocks[order], there)}
    code, goes = spine.blocks.copy(), np.arange(len(spine.blocks))
    for source, target, _ in there:
        if target in place:
            goes[place[source]] = place[target]
        else:
            code[place[source]] = target
    last = replace(spine.levels[-1], code=code)
    moved = counts.sum_to(goes, counts.units)
    stays = goes == np.arange(len(goes))
    renamed = Spine(spine.tree, (*spine.levels[:-1], last), spine.shares)
    kept = moved.sum_to(np.where(stays, np.cumsum(stays) - 1, -1), int(stays.sum()))
    return _without(renamed, stays), kept, {name: MOVED[name] for *_, name in there}


def published_in(blocks: Ints) -> Ints:
    """The block that the counts of each block are published in: another one for some that lie in water."""
    found = blocks.copy()
    for source, target in MOVED.items():
        found[found == _sixteen(source)] = _sixteen(target)
    return found


def _sixteen(block: str) -> int:
    """The digits of a block with that of its block group, which the number of the block repeats."""
    return int(block[:12] + block[11:])


def _found(blocks: Ints, pairs: list[tuple[int, int, str]]) -> list[tuple[int, int]]:
    """The blocks of pairs that are among some in order, and their places there."""
    wanted = [block for source, target, _ in pairs for block in (source, target)]
    at = positions(np.array(wanted, dtype=np.int64), blocks).tolist()
    return [(block, place) for block, place in zip(wanted, at, strict=True) if place >= 0]


def _without(spine: Spine, stays: Flags) -> Spine:
    """The spine of some of its blocks."""
    units = [spine.tree.ancestors(level)[stays] for level in range(len(spine.levels))]
    tree, firsts = nest(spine.tree.names, [of.astype(np.int64) for of in units])
    levels = []
    for level, of, first in zip(spine.levels, units, firsts, strict=True):
        here = of[first]
        parts = {name: getattr(level, name)[here] for name in ("code", "part", "share", "bypassed")}
        levels.append(replace(level, **parts))
    return Spine(tree, tuple(levels), spine.shares)
