"""What the code of an area, and a release, tell of its record in a geographic header: fields, names, sizes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from yupana.errors import InputError, OutputError
from yupana.geography.gazetteer import NAMES, AreaName, AreaNames, read_names
from yupana.geography.header import ENCODING, HEADER
from yupana.geography.kinds import BLOCK_WIDTH, COUNTY, KINDS, STATE
from yupana.geography.published import AREAS_FOLDER, BLOCKS_STEM, PublishedBlocks, read_published
from yupana.products.topdown.pl.summary_file import FILES
from yupana.products.topdown.tables import short_blocks
from yupana.release.lines import Texts, cut, digits, texts
from yupana.release.release import ReleaseFolder

PARTS: Final = {
    b"040": ("STATE",),
    b"050": ("STATE", "COUNTY"),
    b"060": ("STATE", "COUNTY", "COUSUB"),
    b"140": ("STATE", "COUNTY", "TRACT"),
    b"150": ("STATE", "COUNTY", "TRACT", "BLKGRP"),
    b"155": ("STATE", "PLACE", "COUNTY"),
    b"160": ("STATE", "PLACE"),
    b"280": ("STATE", "AIANHH"),
    b"500": ("STATE", "CD116"),
    b"610": ("STATE", "SLDU18"),
    b"620": ("STATE", "SLDL18"),
    b"700": ("STATE", "COUNTY", "VTD"),
    b"750": ("STATE", "COUNTY", "TRACT", "BLOCK"),
    b"950": ("STATE", "SDELM"),
    b"960": ("STATE", "SDSEC"),
    b"970": ("STATE", "SDUNI"),
}
"""The fields that the code of an area of a summary level is made of, by the levels that lie within a state."""

_VARIANTS: Final = {b"500": b"16", b"610": b"U6", b"620": b"L6"}
"""GEOVAR of districts of 2020: the 116th Congress, and legislatures of 2018."""

_WHOLE: Final = b"00"
"""GEOCOMP of an area as a whole, and GEOVAR of most."""

_STATES: Final = """
01:AL:3:6 02:AK:4:9 04:AZ:4:8 05:AR:3:7 06:CA:4:9 08:CO:4:8 09:CT:1:1 10:DE:3:5 11:DC:3:5 12:FL:3:5 13:GA:3:5 15:HI:4:9
16:ID:4:8 17:IL:2:3 18:IN:2:3 19:IA:2:4 20:KS:2:4 21:KY:3:6 22:LA:3:7 23:ME:1:1 24:MD:3:5 25:MA:1:1 26:MI:2:3 27:MN:2:4
28:MS:3:6 29:MO:2:4 30:MT:4:8 31:NE:2:4 32:NV:4:8 33:NH:1:1 34:NJ:1:2 35:NM:4:8 36:NY:1:2 37:NC:3:5 38:ND:2:4 39:OH:2:3
40:OK:3:7 41:OR:4:9 42:PA:1:2 44:RI:1:1 45:SC:3:5 46:SD:2:4 47:TN:3:6 48:TX:3:7 49:UT:4:8 50:VT:1:1 51:VA:3:5 53:WA:4:9
54:WV:3:5 55:WI:2:3 56:WY:4:8 72:PR:9:0
"""
_OF_STATES: Final = {code: tuple(rest) for code, *rest in (state.split(":") for state in _STATES.split())}
"""STUSAB, REGION and DIVISION by state."""


def record_fields(level: bytes, codes: Texts) -> dict[str, Texts]:
    """The fields of the geographic header that follow from the codes of areas of a summary level.

    Parameters
    ----------
    level : bytes
        Of `PARTS`.
    codes : ndarray of bytes, shape (areas,)
        GEOCODE; all of one state.

    Returns
    -------
    dict of str to ndarray of bytes, shape (areas,)

    Raises
    ------
    InputError
        If the state has no abbreviation.
    """
    state = codes[0][: HEADER["STATE"]].decode()
    if state not in _OF_STATES:
        raise _no_abbreviation(state)
    variant = _VARIANTS.get(level, _WHOLE)
    constant = {
        **dict(zip(("STUSAB", "REGION", "DIVISION"), map(str.encode, _OF_STATES[state]), strict=True)),
        "FILEID": b"PLST",
        "SUMLEV": level,
        "GEOVAR": variant,
        "GEOCOMP": _WHOLE,
        "CHARITER": b"000",
        "CIFSN": FILES[0].encode(),
    }
    found = {name: np.full(len(codes), value) for name, value in constant.items()}
    found |= _split(codes, PARTS[level])
    found |= {"GEOCODE": codes, "GEOID": np.char.add(level + variant + _WHOLE + b"US", codes)}
    if "BLOCK" in found:
        found["BLKGRP"] = found["BLOCK"].astype("S1")
    return found | _names(level, found)


def check_states(published: PublishedBlocks | None) -> None:
    """Refuse areas that no geographic header can be made of: those of a configuration, and states without a name.

    Raises
    ------
    InputError
    """
    if published is None:
        raise InputError(
            "--pl: the configuration has areas of its own, and a geographic header is made of the Census Bureau's "
            "blocks"
        )
    for state in np.unique(published.block // 10**14).tolist():
        if f"{state:02d}" not in _OF_STATES:
            raise _no_abbreviation(f"{state:02d}")


def _no_abbreviation(state: str) -> InputError:
    return InputError(f"state {state!r} has no abbreviation, by which the files of P.L. 94-171 are named")


def _split(codes: Texts, names: tuple[str, ...]) -> dict[str, Texts]:
    """Codes cut into fields of their widths; the last has what is left."""
    found, first = {}, 0
    for name in names:
        found[name] = cut(codes, first, first + HEADER[name])
        first += HEADER[name]
    return found


def _names(level: bytes, fields: dict[str, Texts]) -> dict[str, Texts]:
    """BASENAME, NAME, FUNCSTAT and LSADC of the areas that are called by their codes."""
    if level not in _CALLED:
        return {}
    field, words, description = _CALLED[level]
    base = fields[field] if field != "TRACT" else texts(tract_name(code.decode()) for code in fields[field].tolist())
    return {
        "FUNCSTAT": np.full(len(base), b"S"),
        "LSADC": np.full(len(base), description),
        "BASENAME": base,
        "NAME": np.char.add(words, base),
    }


_CALLED: Final = {
    b"140": ("TRACT", b"Census Tract ", b"CT"),
    b"150": ("BLKGRP", b"Block Group ", b"BG"),
    b"750": ("BLOCK", b"Block ", b"BK"),
}


def tract_name(code: str) -> str:
    """A tract as it is called: 1.01 of 000101, 2 of 000200."""
    whole, part = int(code[:4]), code[4:]
    return str(whole) if part == "00" else f"{whole}.{part}"


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
    """What a release tells of its areas."""

    blocks: PublishedBlocks  # the areas that they lie in
    names: AreaNames  # what areas are called; empty of a release without names

    def fields(self, level: bytes, codes: Texts) -> dict[str, Texts]:
        """The fields of the areas of a summary level, of shape (areas,), empty where nothing is told.

        Parameters
        ----------
        codes : ndarray of bytes, shape (areas,)
            GEOCODE.
        """
        found = self._of_blocks(codes) if level == _LEVEL_OF_BLOCKS else {}
        return found | self._named(level, codes) if self.names else found

    def _of_blocks(self, codes: Texts) -> dict[str, Texts]:
        """The codes of the areas that blocks lie in, without those of state and county."""
        known = short_blocks(digits(self.blocks.block, BLOCK_WIDTH))
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
        # A block is named with the digit of its block group.
        end = _IN_TRACT + (level == _LEVEL_OF_BLOCKS)
        known = (code[:end] + code[_IN_TRACT:] for code in map(bytes.decode, codes.tolist()))
        areas = [self.names.get((kind, code), nothing) for code in known]
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
        for field, told in _FIELDS.items():
            text = told(area)
            if (wrong := _unfit(field, text)) is not None:
                raise InputError(f"--names: the name of {kind} {code}, {text!r}, {wrong}, as {field} of --pl must not")


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


def _rounded(text: str) -> str:
    """Square metres, without a point."""
    return text if not text or text.isdecimal() else f"{float(text):.0f}"


def _degrees(text: str, width: int) -> str:
    """Degrees with a sign and seven digits after the point."""
    return f"{float(text):+0{width}.7f}" if text else ""
