"""The geographic header of P.L. 94-171, in the layout of 2020: its fields, and where its blocks lie. Public."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np

from yupana.errors import InputError, system_fault
from yupana.files.database import open_database, store_arrays
from yupana.files.delimited import DelimitedFile
from yupana.files.regular import read_regular, regular
from yupana.geography.kinds import KINDS, kind_of

_HEADER: Final = """
FILEID:6 STUSAB:2 SUMLEV:3 GEOVAR:2 GEOCOMP:2 CHARITER:3 CIFSN:2 LOGRECNO:7 GEOID:60 GEOCODE:51 REGION:1 DIVISION:1
STATE:2 STATENS:8 COUNTY:3 COUNTYCC:2 COUNTYNS:8 COUSUB:5 COUSUBCC:2 COUSUBNS:8 SUBMCD:5 SUBMCDCC:2 SUBMCDNS:8
ESTATE:5 ESTATECC:2 ESTATENS:8 CONCIT:5 CONCITCC:2 CONCITNS:8 PLACE:5 PLACECC:2 PLACENS:8 TRACT:6 BLKGRP:1 BLOCK:4
AIANHH:4 AIHHTLI:1 AIANHHFP:5 AIANHHCC:2 AIANHHNS:8 AITS:3 AITSFP:5 AITSCC:2 AITSNS:8 TTRACT:6 TBLKGRP:1 ANRC:5
ANRCCC:2 ANRCNS:8 CBSA:5 MEMI:1 CSA:3 METDIV:5 NECTA:5 NMEMI:1 CNECTA:3 NECTADIV:5 CBSAPCI:1 NECTAPCI:1 UA:5
UATYPE:1 UR:1 CD116:2 CD118:2 CD119:2 CD120:2 CD121:2 SLDU18:3 SLDU22:3 SLDU24:3 SLDU26:3 SLDU28:3 SLDL18:3 SLDL22:3
SLDL24:3 SLDL26:3 SLDL28:3 VTD:6 VTDI:1 ZCTA:5 SDELM:5 SDSEC:5 SDUNI:5 PUMA:5 AREALAND:14 AREAWATR:14 BASENAME:100
NAME:125 FUNCSTAT:1 GCUNI:1 POP100:9 HU100:9 INTPTLAT:11 INTPTLON:12 LSADC:2 PARTFLAG:1 UGA:5
"""

HEADER: Final = {name: int(width) for name, width in (field.split(":") for field in _HEADER.split())}
"""The 97 fields of the geographic header in their order, and the most characters of each."""

PLACES: Final = {name: place for place, name in enumerate(HEADER)}
"""Where each field stands in a record, from 0."""

ENCODING: Final = "latin-1"
"""Of names, such as that of a municipio."""


SEPARATOR: Final = "|"

_CODE: Final = "GEOCODE"
_WITHIN_STATES: Final = ("county_subdivision", "place", "aiannh")
"""Kinds that reference files tell, too, so that it matters if a header has none."""


def records(path: Path, content: bytes) -> Iterator[tuple[int, list[str]]]:
    """The records of a geographic header: number of the line, and fields.

    Raises
    ------
    InputError
        If a line has more or fewer fields.
    """
    for number, line in enumerate(_decoded(content).removesuffix("\n").split("\n"), 1):
        fields = line.removesuffix("\r").split(SEPARATOR)
        if len(fields) != len(HEADER):
            raise InputError(f"{path}, line {number}: {len(fields)} fields; a geographic header has {len(HEADER)}")
        yield number, fields


def _decoded(content: bytes) -> str:
    # The Bureau writes Latin-1 in some years and UTF-8 in others.
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode(ENCODING)


def begins_as_header(path: Path) -> bool:
    """Whether a file is a geographic header, by its first line; no where it cannot be read."""
    try:
        with open(path, "rb", opener=regular) as file:
            return file.readline(1 << 16).count(SEPARATOR.encode()) == len(HEADER) - 1
    except OSError:
        return False


@contextmanager
def open_blocks(path: Path) -> Iterator[DelimitedFile]:
    """Open a geographic header as a table of its blocks, with a column for each kind of areas that it tells.

    The columns are GEOCODE and the fields of kinds in which some block lies, with those that reference files tell, too.

    Raises
    ------
    InputError
        If it cannot be read, a line has more or fewer fields, there is no block, a code is longer than its field, or
        two fields tell districts of the same kind.
    """
    with system_fault(InputError, f"{path} cannot be read"):
        content = read_regular(path)
    names = (_CODE, *(name for name in HEADER if kind_of(name) in KINDS and KINDS[kind_of(name)].most))
    places, level = [PLACES[name] for name in names], PLACES["SUMLEV"]
    block = KINDS["block"].summary_level
    rows = [
        (line, *(fields[place] for place in places))
        for line, fields in records(path, content)
        if fields[level] == block
    ]
    if not rows:
        raise InputError(
            f"{path} has no record of a block (summary level {block}), so that it does not tell where blocks lie"
        )
    lines, *columns = zip(*rows, strict=True)
    told = dict(zip(names, columns, strict=True))
    for name, texts in told.items():
        if long := next((at for at, text in enumerate(texts) if len(text) > HEADER[name]), None):
            raise InputError(
                f"{path}, line {lines[long]}, field {name}: {texts[long]!r} has more than {HEADER[name]} characters"
            )
    # A kind is told where some block lies in an area; one that reference files tell, too, where the field is filled.
    none = {name: "" if kind_of(name) in _WITHIN_STATES else "9" for name in told}
    kept = {name: of for name, of in told.items() if name == _CODE or any(text.strip(none[name]) for text in set(of))}
    for name in kept:
        if also := [other for other in kept if other != name and kind_of(other) == kind_of(name)]:
            raise InputError(
                f"{path}: the fields {name} and {also[0]} both tell the {kind_of(name)} of blocks; give a table with "
                "one of them, or a block assignment file"
            )
    with open_database(spills=False, full=InputError(f"{path} does not fit into the memory of this machine")) as db:
        listed = {f"c{place}": np.array(texts, dtype=object) for place, texts in enumerate(kept.values())}
        store_arrays(db, "rows", listed)
        yield DelimitedFile(path, tuple(kept), db, lines=np.array(lines, dtype=np.int64))
