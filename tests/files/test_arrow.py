"""Tables that data-frame libraries read through the Arrow C stream interface."""

import gc
import pickle
import sys
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from yupana.errors import InputError
from yupana.files.arrow import ArrowStream, ArrowTable
from yupana.files.database import shared_database

CODES, COUNTS, MARGINS = ["01", None, "06"], [3, -1, None], [1.5, None, float("inf")]


def made() -> ArrowTable:
    return ArrowTable.of({"CODE": ("VARCHAR", CODES), "COUNT": ("BIGINT", COUNTS), 'a {b} "c"': ("DOUBLE", MARGINS)})


def test_it_reads_itself_without_any_library() -> None:
    table = made()
    assert table.columns == tuple(table) == ("CODE", "COUNT", 'a {b} "c"')
    assert len(table) == 3
    assert (table["CODE"], table["COUNT"], table['a {b} "c"']) == (CODES, COUNTS, MARGINS)
    assert list(table.rows()) == list(zip(CODES, COUNTS, MARGINS, strict=True))
    assert isinstance(table, ArrowStream)
    with pytest.raises(KeyError, match="there are CODE, COUNT"):
        table["count"]


def test_every_library_reads_it() -> None:
    table = made()
    assert pl.DataFrame(table)["CODE"].to_list() == CODES
    assert pl.DataFrame(table).schema["COUNT"] == pl.Int64
    assert pa.table(table).column("COUNT").to_pylist() == COUNTS
    assert pd.DataFrame.from_arrow(table)["CODE"].iloc[0] == "01"
    # By its name in this frame, in the database of the module and in another.
    x = table
    assert duckdb.sql("from x").fetchall() == list(x.rows())
    with duckdb.connect() as other:
        assert other.sql("select CODE from x where COUNT = 3").fetchall() == [("01",)]


@pytest.mark.thorough
def test_it_is_read_as_often_as_wanted_and_outlives_its_table() -> None:
    table = made()

    class Once:
        def __init__(self, capsule: object) -> None:
            self.capsule = capsule

        def __arrow_c_stream__(self, _schema: object | None = None) -> object:
            return self.capsule

    first, second = (Once(table.__arrow_c_stream__()) for _ in range(2))
    del table
    gc.collect()
    assert pl.DataFrame(second)["CODE"].to_list() == pl.DataFrame(first)["CODE"].to_list() == CODES


@pytest.mark.thorough
def test_what_nobody_holds_is_dropped() -> None:
    held = [made() for _ in range(3)]
    tables = lambda: shared_database().cursor().execute("SELECT count(*) FROM duckdb_tables()").fetchall()  # noqa: E731
    before = tables()[0][0]
    held.clear()
    gc.collect()
    assert tables()[0][0] == before - 3


def test_an_empty_table_has_columns() -> None:
    table = ArrowTable.of({"CODE": ("VARCHAR", []), "COUNT": ("BIGINT", [])})
    assert len(table) == 0
    assert table
    assert pl.DataFrame(table).schema == {"CODE": pl.String, "COUNT": pl.Int64}
    assert repr(table) == "<0 rows: CODE VARCHAR, COUNT BIGINT>"


def test_it_shows_itself_shortly_and_escaped() -> None:
    table = ArrowTable.of({"<b>": ("VARCHAR", ["<script>", None] * 20)})
    assert repr(table) == "<40 rows: <b> VARCHAR>"
    page = table._repr_html_()
    assert "&lt;b&gt;" in page
    assert "&lt;script&gt;" in page
    assert "<script>" not in page
    assert "40 rows, of which 10 are shown" in page


def test_as_text_it_lays_out_the_first_rows() -> None:
    assert str(made()).splitlines() == [
        repr(made()),
        'CODE  COUNT  a {b} "c"',
        "01    3      1.5",
        "      -1",
        "06           inf",
    ]
    long = ArrowTable.of({"A": ("VARCHAR", ["x" * 90] * 40), "B": ("DOUBLE", [1 / 3] * 40)})
    assert len(str(long).splitlines()) == 12
    assert str(long).endswith("x  0.33333333")


def test_it_is_not_pickled() -> None:
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(made())


def test_rows_of_a_file_are_read_when_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    duckdb.sql("SELECT '01' AS CODE, 7 AS COUNT").write_parquet(str(path))
    table = ArrowTable(f"FROM read_parquet('{path}')")
    assert pl.DataFrame(table).rows() == [("01", 7)]
    path.unlink()
    with pytest.raises(InputError, match="no longer"):
        table["CODE"]


def test_columns_of_unequal_length_are_a_fault() -> None:
    with pytest.raises(ValueError, match="as long as each other"):
        ArrowTable.of({"a": ("BIGINT", [1]), "b": ("BIGINT", [])})


def test_no_library_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyarrow", "polars", "pandas"):
        monkeypatch.setitem(sys.modules, name, None)
    x = made()
    with duckdb.connect() as other:
        assert other.sql("from x").fetchall() == list(x.rows())
