"""What stands where in the four files: fields of the geographic header, tables of the segments, names of the files."""

from typing import Final

from yupana.products.topdown.tables import variables_of

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

SEGMENTS: Final = (("P1", "P2"), ("P3", "P4", "H1"), ("P5",))
"""The tables of each segment, in their order."""

LINKS: Final = ("FILEID", "STUSAB", "CHARITER", "CIFSN", "LOGRECNO")
"""The fields before the variables of a segment, which the header has, too."""

FILES: Final = ("00", "01", "02", "03")
"""CIFSN of the header and of the segments."""

ENCODING: Final = "latin-1"
"""Of names, such as that of a municipio."""


def segment_variables(segment: int) -> tuple[str, ...]:
    """The variables of a segment, from 0, such as P0010001, in their order."""
    return tuple(name for table in SEGMENTS[segment] for name in variables_of(table))


def file_names(state: str, rest: str) -> tuple[str, ...]:
    """The names of header and segments: ``rigeo2020.pl``, ``ri000012020.pl`` and so on, for ri and ``2020.pl``."""
    return (f"{state}geo{rest}", *(f"{state}0000{number}{rest}" for number in range(1, 1 + len(SEGMENTS))))
