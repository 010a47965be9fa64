"""What stands where in the segments, and the names of the four files. The header is in `yupana.geography.header`."""

from typing import Final

from yupana.products.topdown.tables import variables_of

SEGMENTS: Final = (("P1", "P2"), ("P3", "P4", "H1"), ("P5",))
"""The tables of each segment, in their order."""

LINKS: Final = ("FILEID", "STUSAB", "CHARITER", "CIFSN", "LOGRECNO")
"""The fields before the variables of a segment, which the header has, too."""

PL_FILES: Final = "topdown, P.L. 94-171 files"
"""What the manifest of a folder of such files calls them."""

FILES: Final = ("00", "01", "02", "03")
"""CIFSN of the header and of the segments."""


def segment_variables(segment: int) -> tuple[str, ...]:
    """The variables of a segment, from 0, such as P0010001, in their order."""
    return tuple(name for table in SEGMENTS[segment] for name in variables_of(table))


def file_names(state: str, rest: str) -> tuple[str, ...]:
    """The names of header and segments: ``rigeo2020.pl``, ``ri000012020.pl`` and so on, for ri and ``2020.pl``."""
    return (f"{state}geo{rest}", *(f"{state}0000{number}{rest}" for number in range(1, 1 + len(SEGMENTS))))
