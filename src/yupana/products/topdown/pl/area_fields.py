"""What a release tells of areas beyond their codes, as fields of a geographic header: names, sizes, areas of blocks."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from yupana.errors import InputError, OutputError
from yupana.geography.gazetteer import NAMES, AreaName, AreaNames, read_names
from yupana.geography.header import ENCODING, HEADER
from yupana.geography.kinds import BLOCK_WIDTH, COUNTY, KINDS, STATE
from yupana.geography.published import AREAS_FOLDER, BLOCKS_STEM, PublishedBlocks, read_published
from yupana.release.lines import Texts, digits, texts
from yupana.release.release import ReleaseFolder

_LEVEL_OF_BLOCKS: Final = b"750"
_IN_TRACT: Final = 11

_NINES: Final = {
    "county_subdivision": "COUSUB",
    "place": "PLACE",
    "aiannh": "AIANHH",
    "school_elementary": "SDELM",
    "school_secondary": "SDSEC",
    "school_unified": "SDUNI",
}
"""Fields of a block with the code of the area that it lies in, which are all nines where it lies in none."""

_EMPTY: Final = {
    "congressional_district": "CD116",
    "state_upper": "SLDU18",
    "state_lower": "SLDL18",
    "voting_district": "VTD",
}
"""Those that are empty then, for the reference has no block without one."""

_BEFORE: Final = {STATE: HEADER["STATE"], COUNTY: HEADER["STATE"] + HEADER["COUNTY"]}

_KIND_OF: Final = {kind.summary_level.encode(): name for name, kind in KINDS.items()}

_FIELDS: Final[dict[str, Callable[[AreaName], str]]] = {
    "NAME": lambda area: area.name,
    "AREALAND": lambda area: _rounded(area.land),
    "AREAWATR": lambda area: _rounded(area.water),
    "INTPTLAT": lambda area: _degrees(area.latitude, HEADER["INTPTLAT"]),
    "INTPTLON": lambda area: _degrees(area.longitude, HEADER["INTPTLON"]),
}


@dataclass(frozen=True, slots=True, eq=False)
class ToldAreas:
    """What a release tells of its areas.

    Attributes
    ----------
    blocks : PublishedBlocks
        The areas that they lie in.
    names : mapping
        What areas are called; empty of a release without names.
    """

    blocks: PublishedBlocks
    names: AreaNames

    def fields(self, level: bytes, codes: Texts) -> dict[str, Texts]:
        """The fields of the areas of a summary level, of shape (areas,), empty where nothing is told.

        Parameters
        ----------
        level : bytes
        codes : ndarray of bytes, shape (areas,)
            GEOCODE.
        """
        found = self._of_blocks(codes) if level == _LEVEL_OF_BLOCKS else {}
        return found | self._named(level, codes) if self.names else found

    def _of_blocks(self, codes: Texts) -> dict[str, Texts]:
        """The codes of the areas that blocks lie in, without those of state and county."""
        letters = digits(self.blocks.block, BLOCK_WIDTH).view("S1").reshape(-1, BLOCK_WIDTH)
        # The digit of the block group, which begins the number of the block, is there twice.
        known = np.delete(letters, _IN_TRACT, axis=1).copy().view(f"S{BLOCK_WIDTH - 1}").reshape(-1)
        at = np.searchsorted(known, codes)
        found = {}
        for kind, field in (_NINES | _EMPTY).items():
            if (column := self.blocks.kinds.get(kind)) is not None:
                before = _BEFORE.get(KINDS[kind].within, 0)
                none = "9" * HEADER[field] if kind in _NINES else ""
                found[field] = texts([*(label[before:] for label in column.labels), none])[column.index[at]]
        return found

    def _named(self, level: bytes, codes: Texts) -> dict[str, Texts]:
        kind, nothing = _KIND_OF[level], AreaName()
        areas = [self.names.get((kind, _identifier(level, code.decode())), nothing) for code in codes.tolist()]
        return {
            field: np.array([told(area).encode(ENCODING) for area in areas], dtype=bytes)
            for field, told in _FIELDS.items()
        }


def told_areas(release: ReleaseFolder) -> ToldAreas:
    """Read what a release tells of its areas.

    Raises
    ------
    InputError, OutputError
        If it tells of none, or its files were changed or are none of ours.
    """
    if (blocks := f"{AREAS_FOLDER}/{BLOCKS_STEM}") not in release:
        raise OutputError(f"{release.folder} has no {blocks}, which tells the areas of its blocks; make it anew")
    release.path(blocks)
    names = NAMES.removesuffix(".csv")
    return ToldAreas(
        read_published(release.folder, nation=False), read_names(release.path(names)) if names in release else {}
    )


def check_names(names: AreaNames) -> None:
    """Refuse names that a geographic header cannot hold.

    Raises
    ------
    InputError
    """
    for (kind, code), area in names.items():
        for field, text in _told(area):
            if (wrong := _unfit(field, text)) is not None:
                raise InputError(f"--names: the name of {kind} {code}, {text!r}, {wrong}, as {field} of --pl must not")


def _told(area: AreaName) -> Iterable[tuple[str, str]]:
    return ((field, told(area)) for field, told in _FIELDS.items())


def _unfit(field: str, text: str) -> str | None:
    if any(character in text for character in "|\r\n\0"):
        return "has a line break or |"
    if len(text) > HEADER[field]:
        return f"has more than {HEADER[field]} characters"
    try:
        text.encode(ENCODING)
    except UnicodeEncodeError:
        return f"has a character that {ENCODING} has not"
    return None


def _identifier(level: bytes, code: str) -> str:
    """An area as a release names it."""
    return code[:_IN_TRACT] + code[_IN_TRACT] + code[_IN_TRACT:] if level == _LEVEL_OF_BLOCKS else code


def _rounded(text: str) -> str:
    """Square metres, without a point."""
    return text if not text or text.isdecimal() else f"{float(text):.0f}"


def _degrees(text: str, width: int) -> str:
    """Degrees with a sign and seven digits after the point."""
    return f"{float(text):+0{width}.7f}" if text else ""
