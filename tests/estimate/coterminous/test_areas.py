"""What the files of blocks must hold for areas of the same blocks to be found in them."""

from pathlib import Path

import numpy as np
import pytest

from yupana.errors import InputError
from yupana.estimate.coterminous_areas import Blocks, read_blocks, read_live

HEADER = "TABBLKST|TABBLKCOU|TABTRACTCE|TABBLK|PLACEFP|AIANNHCE|NAME"
ROWS = ("06|001|000100|1001|00562|9999|a", "06|001|000100|1002|99999|0010|b", "72|001|000100|1001|99999|9999|c")


def reference(folder: Path, *rows: str, header: str = HEADER) -> Path:
    path = folder / "GRF-C.txt"
    path.write_text("\n".join([header, *rows, ""]), encoding="utf-8")
    return path


def test_blocks_have_their_place_and_area_or_none(tmp_path: Path) -> None:
    blocks = read_blocks(reference(tmp_path, *ROWS))
    assert blocks.block.tolist() == [60010001001001, 60010001001002, 720010001001001]
    assert blocks.place.tolist() == [600562, -1, -1]
    assert blocks.aiannh.tolist() == [-1, 10, -1]
    assert blocks.state.tolist() == [6, 6, 72]
    assert read_blocks(reference(tmp_path, *ROWS), ["72"]).block.tolist() == [720010001001001]


@pytest.mark.parametrize(
    ("rows", "header", "fault"),
    [
        ((), HEADER, "no rows"),
        (ROWS, "TABBLKST|TABBLKCOU|TABTRACTCE|TABBLK|PLACEFP|X|NAME", "no column AIANNHCE"),
        ((*ROWS, "6|001|000100|1003|99999|9999|d"), HEADER, "line 5, column TABBLKST: the value is not a code of 2"),
        ((*ROWS, "06|001|000100|1003||9999|d"), HEADER, "line 5, column PLACEFP: the value is not a code of 5"),
        ((*ROWS, ROWS[0]), HEADER, "block 060010001001001 is listed more than once; first in line 2"),
        ((*ROWS, "06|001"), HEADER, "line 5: 2 fields, but the header names 7 columns"),
    ],
)
def test_a_faulty_reference_is_refused(tmp_path: Path, rows: tuple[str, ...], header: str, fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        read_blocks(reference(tmp_path, *rows, header=header))


@pytest.mark.parametrize(
    ("text", "live"),
    [
        ("block,housing_units\n060010001001002,3\n0600100010011001,0\n", [False, True, False]),
        ("BLOCK|HOUSING_UNITS\n0600100010011001|1\n720010001001001|2\n", [True, False, True]),
        ("TABBLKST,TABBLKCOU,TABTRACTCE,TABBLK,HOUSING_UNITS\n06,001,000100,1001,1\n", [True, False, False]),
    ],
)
def test_blocks_with_housing_units_are_live(tmp_path: Path, text: str, live: list[bool]) -> None:
    blocks = read_blocks(reference(tmp_path, *ROWS))
    units = tmp_path / "housing-units.txt"
    units.write_text(text, encoding="utf-8")
    assert read_live(units, blocks).tolist() == live


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("block,housing_units\n06001000100100,3\n", "line 2, column BLOCK: the value is not a code of 15 to 16 digits"),
        (
            "block,housing_units\n060010001001001,many\n",
            "line 2, column HOUSING_UNITS: the value is not a whole number",
        ),
        ("unit,housing_units\n060010001001001,1\n", "must have a column BLOCK, or TABBLKST"),
        ("block,housing_units\n480010001001001,1\n", "it may be of another state"),
        ("block\n060010001001001\n", "no column HOUSING_UNITS"),
    ],
)
def test_a_faulty_list_of_housing_units_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    units = tmp_path / "housing-units.txt"
    units.write_text(text, encoding="utf-8")
    one = np.array([60010001001001])
    with pytest.raises(InputError, match=fault):
        read_live(units, Blocks(one, one, one))
