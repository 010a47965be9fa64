"""A release hands its tables to data-frame libraries, whichever format they have."""

from pathlib import Path

import polars as pl
import pytest

from yupana.errors import OutputError
from yupana.release.release import read_columns
from yupana.release.tables import Format, ReleaseTable, write_table

TABLE = ReleaseTable(
    "T",
    {
        "REGION_ID": ["01", "02"],
        "PH1_DATA_CELL": [1, 2],
        "COUNT": [3, -4],
        "VARIANCE": [4.5, 0.0],
        "MOE": [4, 4],
    },
)


@pytest.mark.parametrize("fmt", ["csv", "parquet"])
def test_numbers_are_numbers_and_codes_are_text(fmt: Format, tmp_path: Path) -> None:
    found = pl.DataFrame(read_columns(write_table(tmp_path, TABLE, fmt)))
    assert found.rows() == [("01", "1", 3, 4.5, 4.0), ("02", "2", -4, 0.0, 4.0)]
    assert found.dtypes == [pl.String, pl.String, pl.Int64, pl.Float64, pl.Float64]


def test_suppressed_numbers_stay_text(tmp_path: Path) -> None:
    path = write_table(tmp_path, ReleaseTable("T", {"COUNT": ["X", "3"], "REASON": ["1", ""]}), "csv")
    assert read_columns(path)["COUNT"] == ["X", "3"]


def test_names_that_differ_in_case_only_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "blocks.csv"
    path.write_text("block|County|Block\n0100|01|0100\n")
    assert list(read_columns(path).rows()) == [("0100", "01", "0100")]
    assert read_columns(path).columns == ("block", "County", "Block_2")


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_text("no table")
    for name in ("t.parquet", "nothing.csv"):
        with pytest.raises(OutputError, match="is not readable as a table of a release"):
            read_columns(tmp_path / name)
