"""Off-spine entities: areas that a spine should be near to, or whose distance from it is asked.

By their kind they are `Labels`: for each block the place of its entity, or -1 for none.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from yupana.arrays import Indices, Ints
from yupana.errors import InputError
from yupana.files.code_tables import open_delimited
from yupana.files.delimited import Labels, positions
from yupana.geography.blocks import (
    NO_ENTITY,
    SCHOOL_COLUMNS,
    Reference,
    coded_areas,
    in_areas,
    labels_of_codes,
    refuse_repeated,
    subdivision_codes,
)
from yupana.geography.settings import AREAS, NO_AREA, PLACES, QUARTERS, SCHOOLS, SpineSettings
from yupana.geography.spine import sides

_PLACE_WIDTHS: Final = (7, 10)
"""Digits of a place with its state, and of a county subdivision with its county, which is never less than 10**7."""


def targets(reference: Reference, quarters: Indices | None, settings: SpineSettings) -> dict[str, Labels]:
    """The entities that an optimized spine is brought closer to.

    Parameters
    ----------
    quarters : ndarray of int32, shape (blocks,), optional
        As of `quarters_in`; needed for the class "gq".

    Returns
    -------
    dict of str to Labels
        Places are told apart by state, county subdivisions by county, combinations of group quarters by tract.
    """
    found: dict[str, Labels] = {}
    for name in settings.classes:
        if name == PLACES:
            # Where county subdivisions govern, and outside of AIAN areas on the spine, they count in place of places.
            strong = np.isin(reference.block // 10**14, settings.strong_mcd_states)
            subdivision = strong & ~sides(reference, settings)
            code = np.where(subdivision, reference.cousub, reference.place)
            place = reference.block // 10**14 * 10**5 + code
            unit = np.where(subdivision, subdivision_codes(reference), place)
            found[name] = labels_of_codes(unit, code == NO_ENTITY, *_PLACE_WIDTHS)
        elif name == AREAS:
            found[name] = labels_of_codes(reference.aiannh.astype(np.int64), ~sides(reference, settings), 4)
        elif name == QUARTERS and quarters is not None:
            found[name] = labels_of_codes(reference.block // 10**5 * 1000 + quarters, quarters == 0, 14)
        elif name == SCHOOLS:
            found |= {column: reference.columns[column] for column in SCHOOL_COLUMNS}
        else:
            found[name] = reference.columns[name]
    return found


def published(reference: Reference) -> dict[str, Labels]:
    """All areas that the reference file names, whatever the spine considers, by names that are unique in the nation."""
    return coded_areas(reference) | dict(reference.columns)


def listed(reference: Reference, quarters: Indices | None, settings: SpineSettings) -> dict[str, Labels]:
    """Those of `published`, and what else the spine considers; parameters as of `targets`."""
    considered = targets(reference, quarters, settings)
    return published(reference) | {kind: of for kind, of in considered.items() if kind in {PLACES, QUARTERS}}


def considered(areas: Mapping[str, Labels], settings: SpineSettings) -> dict[str, Labels]:
    """Those of `targets`, of the areas that are `listed` with a spine of any kind.

    Raises
    ------
    InputError
        If one is not among them.
    """
    found: dict[str, Labels] = {}
    for name in settings.classes:
        for column in SCHOOL_COLUMNS if name == SCHOOLS else ("aiannh",) if name == AREAS else (name,):
            if column not in areas:
                raise InputError(f"the areas of the spine have no column {column}, which its class {name} is made of")
            kind = areas[column]
            if name == AREAS:
                codes = np.array([*map(int, kind.labels), NO_AREA], dtype=np.int32)[kind.index]
                index = np.where(in_areas(codes, settings.aian_areas), kind.index, np.int32(-1))
                found[AREAS] = Labels(index, kind.labels)
            else:
                found[column] = kind
    return found


def read_entities(path: Path, block: Ints, *, live: bool) -> dict[str, Labels]:
    """Read entities: a column ``block`` and one column per kind, empty or all nines for none.

    Parameters
    ----------
    block : ndarray of int64
        The blocks of the spine, in order.
    live : bool
        Whether the spine left out blocks where nothing stands; then blocks it does not know are passed over.

    Raises
    ------
    InputError
        If the file is no such table, a block is listed twice, or lies outside of the spine.
    """
    with open_delimited(path, ("block",), others=True) as file:
        name = "block" if "block" in file.header else next(n for n in file.header if n.lower() == "block")
        kinds = [column for column in file.header if column != name]
        if not kinds:
            raise InputError(f"{path}, line 1: no column but block; name a column for each kind of entity")
        listed = file.digits(name, 16)
        refuse_repeated(file, name, listed)
        at = positions(listed, block)
        rule = "is not on the spine, so its entities lie outside of it"
        file.refuse((at < 0) & (not live), name, lambda row: f"block {listed[row]:016d} {rule}")
        found, there = {}, at >= 0
        for kind in kinds:
            texts = file.texts(kind)
            found[kind] = Labels.at(at[there], len(block), texts.index[there], texts.labels)
    return found
