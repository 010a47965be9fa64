"""Spines with block groups made anew: optimized ones, which no entity crosses, and pieces of tabulation block groups.

Tract groups are near to the entities, and units are bypassed.
"""

from typing import Final

import numpy as np

from yupana.arrays import Flags, Indices, Ints
from yupana.geography.aian import side_key, side_width, sides
from yupana.geography.blocks import Reference
from yupana.geography.bypass import bypass
from yupana.geography.entities import Entities
from yupana.geography.settings import DIGITS, PIECES, Grouping, SpineSettings
from yupana.geography.spine import Spine, make_spine
from yupana.geography.tract_groups import cap, chunks, group_tracts
from yupana.geography.tree import Members, nest
from yupana.progress import Stopwatch

_NUMBER: Final = 4
"""Digits that number the optimized block groups of a tract and the tract groups of a county."""


def optimized_spine(reference: Reference, entities: list[Entities], settings: SpineSettings, clock: Stopwatch) -> Spine:
    """Make an optimized spine or one of pieces.

    Block groups are redefined within each tract and side of AIAN areas: blocks of the same entities, on a spine of
    pieces also of the same tabulation block group, in the order of their digits, in chunks. Tract groups, where there
    are any, are found by Algorithm 2. Then Algorithm 3 bypasses.

    Parameters
    ----------
    reference : Reference
    entities : list of Entities
        What block groups must not cross and tract groups be near to, in the order of the reference.
    settings : SpineSettings
    clock : Stopwatch
        Announces the stages.
    """
    clock.start("redefining block groups")
    side = sides(reference, settings)
    tract_key = side_key(reference.block, side, "Tract")
    kind = _classes(reference, entities, settings)
    order = np.lexsort((reference.block, kind, tract_key))
    block, side, tract_key, kind = reference.block[order], side[order], tract_key[order], kind[order]
    group_key = tract_key * 10**_NUMBER + number_groups(tract_key, kind, settings.fanout_cutoff, settings.grouping)
    keys = {level: side_key(block, side, level) for level in settings.levels} | {"Block_Group": group_key}
    widths = {level: side_width(level) for level in settings.levels} | {"Block_Group": side_width("Tract") + _NUMBER}
    if "Tract_Group" in settings.levels:
        clock.start("grouping tracts")
        names = [level for level in settings.levels if level != "Tract_Group"]
        tree, firsts = nest(names, [keys[name] for name in names])
        members = _all_members([_ordered(e, order) for e in entities])
        number = group_tracts(tree, members, settings)
        of_block = np.repeat(number, np.diff(firsts[names.index("Tract")], append=len(block)))
        keys["Tract_Group"] = keys["County"] * 10**_NUMBER + of_block
        widths["Tract_Group"] = side_width("County") + _NUMBER
        again = np.argsort(keys["Tract_Group"], kind="stable")
        keys = {level: key[again] for level, key in keys.items()}
    spine = make_spine(
        settings.levels,
        [keys[level] for level in settings.levels],
        [widths[level] for level in settings.levels],
        settings.shares,
    )
    clock.start("bypassing")
    return bypass(spine, settings.mechanism, settings.bypass_cutoff, settings.unbypassed)


def number_groups(tract: Ints, kind: Ints, fanout_cutoff: int | None, grouping: Grouping) -> Ints:
    """Number the block groups of each tract from 1.

    Parameters
    ----------
    tract, kind : ndarray of int64
        Of blocks in order: by tract, then kind, then digits, of shape (blocks,).
    fanout_cutoff : int or None
        None leaves every class whole.
    grouping : "orig" or "even"

    Returns
    -------
    ndarray of int64
        For each block the number of its group within the tract, of shape (blocks,).
    """
    new_tract = np.diff(tract, prepend=-1) != 0
    new_part = new_tract | (np.diff(kind, prepend=-1) != 0)
    opens = new_part
    if fanout_cutoff is not None:
        largest = cap(_run_lengths(new_tract), fanout_cutoff)[np.cumsum(new_tract) - 1]
        length = _run_lengths(new_part)[np.cumsum(new_part) - 1]
        at = np.arange(len(tract)) - np.flatnonzero(new_part)[np.cumsum(new_part) - 1]
        opens = new_part | (np.diff(chunks(at, length, largest, grouping), prepend=-1) != 0)
    group: Ints = np.cumsum(opens)
    number: Ints = group - np.repeat(group[new_tract], _run_lengths(new_tract)) + 1
    return number


def _run_lengths(opens: Flags) -> Ints:
    return np.diff(np.flatnonzero(opens), append=len(opens))


def cut_pieces(reference: Reference, entities: list[Entities], settings: SpineSettings) -> tuple[int, int]:
    """How many classes of blocks the cut-off cuts, and how many classes there are."""
    if settings.fanout_cutoff is None:
        return 0, 0
    tract = side_key(reference.block, sides(reference, settings), "Tract")
    kind = _classes(reference, entities, settings)
    _, of_tract, blocks = np.unique(tract, return_inverse=True, return_counts=True)
    _, first, size = np.unique(np.stack([of_tract, kind]), axis=1, return_index=True, return_counts=True)
    largest = cap(blocks, settings.fanout_cutoff)[of_tract[first]]
    return int((size > largest).sum()), len(size)


def _classes(reference: Reference, entities: list[Entities], settings: SpineSettings) -> Ints:
    """One number for each combination of entities, and of pieces of the block group, of a block, shape (blocks,)."""
    kind = np.zeros(len(reference.block), dtype=np.int64)
    if settings.kind == PIECES:
        kind = reference.block // 10 ** (16 - DIGITS["Block_Group"]) % 10
    for found in entities:
        _, kind = np.unique(kind * (len(found.labels) + 1) + found.index + 1, return_inverse=True)
    return kind


def _ordered(entities: Entities, order: Ints) -> Entities:
    return Entities(entities.column, entities.index[order], entities.labels)


def _all_members(entities: list[Entities]) -> Members:
    """The members of entities of all kinds, numbered one kind after the other."""
    blocks: list[Indices] = [np.zeros(0, dtype=np.int32)]
    numbers: list[Indices] = [np.zeros(0, dtype=np.int32)]
    total = 0
    for found in entities:
        block = np.flatnonzero(found.index >= 0).astype(np.int32)
        blocks.append(block)
        numbers.append(found.index[block] + np.int32(total))
        total += len(found.labels)
    return Members(np.concatenate(blocks), np.concatenate(numbers), total)
