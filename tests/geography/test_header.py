"""A geographic header of P.L. 94-171 as a table of blocks and the areas they lie in."""

from pathlib import Path
from typing import Any

import pytest

from yupana.errors import InputError
from yupana.geography.assignments import kinds_of, read_with_areas
from yupana.geography.header import HEADER, PLACES
from yupana.geography.published import published_blocks

BLOCKS = ("440010001001000", "440010001001001", "440010001002000", "440030001001000")
REFERENCE = "TABBLKST|TABBLKCOU|TABTRACTCE|TABBLKGRPCE|TABBLK|AIANNHCE|COUSUBFP|PLACEFP\n" + "".join(
    f"{block[:2]}|{block[2:5]}|{block[5:11]}|{block[11]}|{block[11:]}|9999|11111|{place}\n"
    for block, place in zip(BLOCKS, ("99999", "33333", "33333", "33333"), strict=True)
)


def record(level: str, code: str, **fields: str) -> str:
    """A line of a header."""
    told: dict[str, Any] = dict.fromkeys(HEADER, "")
    told |= {"FILEID": "PLST", "SUMLEV": level, "GEOID": f"{level}0000US{code}", "GEOCODE": code, **fields}
    return "|".join(told.values()) + "\n"


def header(folder: Path, *, name: str = "rigeo2020.pl", **more: tuple[str, ...]) -> Path:
    """A header of a state and the blocks, with the fields given for each."""
    fields = {
        "COUSUB": ("11111",) * 4,
        "PLACE": ("99999", "33333", "33333", "33333"),
        "AIANHH": ("9999",) * 4,
        "CD116": ("01", "01", "02", "02"),
        "SLDU18": ("001", "ZZZ", "001", "002"),
        "SLDL18": ("010",) * 4,
        "VTD": ("000001", "000002", "000001", "00000A"),
        "SDELM": ("99999",) * 4,
        "SDUNI": ("00030", "00030", "99999", "00060"),
        **more,
    }
    lines = [
        record("750", block, NAME="Block ñ", **{field: values[i] for field, values in fields.items()})
        for i, block in enumerate(BLOCKS)
    ]
    path = folder / name
    path.write_bytes((record("040", "44", NAME="Rhode Island") + "".join(lines)).encode("latin-1"))
    return path


def published(folder: Path, *files: Path) -> dict[str, list[str]]:
    """By kind the identifier of the area of each block, or an empty text."""
    (folder / "geography.txt").write_text(REFERENCE)
    found = published_blocks(read_with_areas(folder / "geography.txt", (), files, schools=False)[0], nation=True)
    return {kind: [[*of.labels, ""][i] for i in of.index.tolist()] for kind, of in found.kinds.items()}


def test_a_header_tells_every_kind_of_areas_that_it_has(tmp_path: Path) -> None:
    path = header(tmp_path)
    assert published(tmp_path, path) == published(tmp_path) | {
        "congressional_district": ["4401", "4401", "4402", "4402"],
        "state_upper": ["44001", "44ZZZ", "44001", "44002"],
        "state_lower": ["44010"] * 4,
        "voting_district": ["44001000001", "44001000002", "44001000001", "4400300000A"],
        "school_unified": ["4400030", "4400030", "", "4400060"],
    }
    # Nobody lies in an elementary district; places are told whether there are some or not, to be compared.
    assert "school_elementary" not in kinds_of(path)
    assert {"place", "county_subdivision", "aiannh"} <= set(kinds_of(path))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"PLACE": ("99999",) * 4}, "3 blocks lie in another place than the reference file says"),
        ({"CD118": ("01",) * 4}, "the fields CD116 and CD118 both tell the congressional_district"),
        ({"SDUNI": ("00030", "000300", "99999", "00060")}, "line 3, field SDUNI: '000300' has more than 5 characters"),
        ({"SLDL18": ("010", "10", "010", "010")}, "line 3, column SLDL18: '10' is no state_lower"),
    ],
)
def test_faults_are_named_by_line_and_field(tmp_path: Path, more: dict[str, tuple[str, ...]], words: str) -> None:
    path = header(tmp_path, **more)
    with pytest.raises(InputError) as refused:
        published(tmp_path, path)
    assert words in str(refused.value)


def test_headers_that_are_cut_short_or_hold_no_block_are_refused(tmp_path: Path) -> None:
    path = header(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[:-60])
    with pytest.raises(InputError, match=r"line 5: \d+ fields; a geographic header has 97"):
        published(tmp_path, path)
    path.write_bytes(content.split(b"\n")[0] + b"\n")
    with pytest.raises(InputError, match=r"no record of a block \(summary level 750\)"):
        published(tmp_path, path)
    lines = content.splitlines(keepends=True)
    path.write_bytes(b"".join([*lines, lines[2]]))
    with pytest.raises(
        InputError, match="line 6, column GEOCODE: block 4400100010011001 is listed twice; first in line 3"
    ):
        published(tmp_path, path)
    path.write_bytes(b"".join(lines[:-1]))
    with pytest.raises(InputError, match="1 of 4 blocks of the reference file are missing"):
        published(tmp_path, path)


def test_fields_stand_where_the_bureau_has_them() -> None:
    # Of its loader for 2020: the first field, the last, and some between.
    assert len(HEADER) == 97
    places = {"FILEID": 0, "GEOID": 8, "GEOCODE": 9, "BLOCK": 34, "VTD": 77, "AREALAND": 84, "NAME": 87, "UGA": 96}
    assert {name: PLACES[name] for name in places} == places
    assert sum(HEADER.values()) == 722
