"""Published areas: which of each kind the blocks lie in, as arrays and as files of a release. Public."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from yupana.arrays import Indices, Ints
from yupana.errors import InputError
from yupana.files.code_tables import open_delimited
from yupana.files.delimited import Labels, positions
from yupana.geography.blocks import Reference, coded_areas, refuse_repeated, write_labels
from yupana.geography.kinds import BLOCK_WIDTH, KINDS, NESTED, STATE, TOLD, US, kind_of
from yupana.geography.spine import Spine
from yupana.release.lines import Texts, digits, texts
from yupana.release.tables import Format

AREAS_FOLDER: Final = "areas"
BLOCKS_STEM: Final = "blocks"

NATION: Final = "US"
"""The identifier of the nation."""


@dataclass(frozen=True, slots=True, eq=False)
class Areas:
    """The areas of one kind of published geography that the blocks of a spine lie in."""

    name: str
    labels: Texts  # shape (areas,): identifiers, in order
    index: Ints  # shape (units,): the area of each unit below, or -1 for none
    below: str  # what the units below are: another kind whose areas these add up, or `""` for the blocks of the spine

    @property
    def number(self) -> int:
        """How many areas there are."""
        return len(self.labels)


def areas_of_spine(spine: Spine) -> list[Areas]:
    """The units of each geolevel as published areas, from the blocks up."""
    names, parents = spine.tree.names, spine.tree.parents
    above = [*(of.astype(np.int64) for of in parents[1:]), np.arange(len(parents[-1]))]
    labels = [level.texts() for level in spine.levels]
    return [Areas(*of) for of in zip(names, labels, above, (*names[1:], ""), strict=True)][::-1]


@dataclass(frozen=True, slots=True, eq=False)
class PublishedBlocks:
    """All blocks that are published, and the areas they lie in."""

    block: Ints  # shape (blocks,): 16 digits as a number, in order
    nation: bool  # whether they are what the nation consists of, as far as a release tells
    # for each kind that the digits of a block do not tell, the identifier of the area of each block
    kinds: dict[str, Labels]

    def areas(self, blocks: Ints) -> list[Areas]:
        """The areas of every kind, those that add up others after them.

        They are all of the published blocks, whether a block of the spine lies in them or not. Identifiers are the
        digits of GEOIDs: state 2, county 5, tract 11, block group 12, block 16 as elsewhere in a release, others as
        `KINDS` says.

        Parameters
        ----------
        blocks : ndarray of int64, shape (units,)
            Those of the spine, in its order.
        """
        here = positions(blocks, self.block)
        found = [Areas("block", digits(self.block, BLOCK_WIDTH), here, "")]
        codes, width = self.block, BLOCK_WIDTH
        for name, fewer in NESTED.items():
            above = codes // 10 ** (width - fewer)
            known = np.unique(above)
            found.append(Areas(name, digits(known, fewer), positions(above, known), found[-1].name))
            codes, width = known, fewer
        if self.nation:
            found.append(Areas(US, texts([NATION]), np.zeros(found[-1].number, dtype=np.int64), STATE))
        for name, column in (self.kinds | _derived(self.block, self.kinds)).items():
            index = np.append(column.index, -1)[here].astype(np.int64)
            found.append(Areas(name, texts(column.labels), index, ""))
        return found


def published_blocks(reference: Reference, *, nation: bool) -> PublishedBlocks:
    """What a reference file tells of published areas.

    Parameters
    ----------
    reference : Reference
        All blocks.
    nation : bool
        Whether the root of the spine is the nation.
    """
    kinds = coded_areas(reference)
    for name, column in reference.columns.items():
        if name in reference.assigned:
            kinds[name] = column
        elif (kind := kind_of(name)) in KINDS and kind not in TOLD and kind not in reference.assigned:
            kinds[kind] = within(kind, reference.block, column)
    return PublishedBlocks(reference.block, nation, kinds)


def within(kind: str, block: Ints, column: Labels) -> Labels:
    """Put the identifier of the state or county of each block before an area's own code, as GEOIDs have it."""
    width = KINDS[kind].outer
    return column if not width else _joined(block // 10 ** (BLOCK_WIDTH - width), width, column)


def _joined(before: Ints, width: int, column: Labels) -> Labels:
    """Digits and texts as one text for each block; none where there is no text."""
    some = column.index >= 0
    pairs, place = np.unique(before[some] * (len(column.labels) or 1) + column.index[some], return_inverse=True)
    first, last = np.divmod(pairs, len(column.labels) or 1)
    labels = (f"{a:0{width}d}{column.labels[b]}" for a, b in zip(first.tolist(), last.tolist(), strict=True))
    return Labels.at(some, len(before), place, labels)


def _derived(block: Ints, kinds: dict[str, Labels]) -> dict[str, Labels]:
    """Parts of places in counties, and of AIANNH areas in states: the kinds that two others tell."""
    county = block // 10**11
    places, tribal = kinds["place"], kinds["aiannh"]
    parts = _joined(county, 5, places)
    return {
        # The Bureau writes the place before the county: state, place, county.
        "place_county": parts.relabelled([f"{label[5:]}{label[2:5]}" for label in parts.labels]),
        "state_aiannh": _joined(block // 10**14, 2, tribal),
    }


def write_published(folder: Path, published: PublishedBlocks, fmt: Format) -> dict[str, int]:
    """Write areas/blocks: ``block`` and a column for each kind that the digits of a block do not tell.

    Returns
    -------
    dict of str to int
        Rows, by the file's path within the folder.
    """
    name = f"{AREAS_FOLDER}/{BLOCKS_STEM}.{fmt}"
    return {name: write_labels(folder / name, published.block, published.kinds)}


def read_published(folder: Path, *, nation: bool) -> PublishedBlocks:
    """Read areas/blocks of a release.

    Parameters
    ----------
    folder : Path
        The release.
    nation : bool
        Whether the root of its spine is the nation.

    Raises
    ------
    InputError
        If the file is not there, or is no such table.
    """
    stem = folder / AREAS_FOLDER / BLOCKS_STEM
    path = next((p for p in (stem.with_suffix(".csv"), stem.with_suffix(".parquet")) if p.exists()), None)
    if path is None:
        raise InputError(f"{folder} has no {AREAS_FOLDER}/{BLOCKS_STEM}.csv, which tells the areas of its blocks")
    with open_delimited(path, ("block",), others=True) as file:
        block = file.digits("block", BLOCK_WIDTH)
        refuse_repeated(file, "block", block)
        names = [name for name in file.header if name != "block"]
        columns = {name: file.texts(name, nines=True) for name in names}
    order = np.argsort(block)
    kinds = {name: column.of(order) for name, column in columns.items()}
    if missing := [name for name in ("place", "aiannh") if name not in kinds]:
        raise InputError(f"{path}, line 1: no column {', '.join(missing)}")
    return PublishedBlocks(block[order], nation, kinds)


def indices(areas: Sequence[Areas], units: int) -> dict[str, Indices]:
    """The area of each block of a spine, or -1, by kind; arrays of shape (units,)."""
    found: dict[str, Ints] = {"": np.arange(units, dtype=np.int64)}
    for kind in areas:
        # Position -1 is that of no area.
        found[kind.name] = np.append(kind.index, -1)[found[kind.below]]
    del found[""]
    return {name: index.astype(np.int32) for name, index in found.items()}
