"""Headers and rows of delimited text and Parquet, as every reader takes them."""

from pathlib import Path

import pytest

from yupana.errors import InputError
from yupana.files.code_tables import open_delimited
from yupana.files.database import open_database, source_of, write_query
from yupana.files.delimited import apart, column_types, csv_rows, parquet_rows, read_header


@pytest.mark.parametrize(
    ("head", "separator", "names"),
    [
        (b"A|B,C\n1|2\n", "|", ("A", "B,C")),
        (b"\xef\xbb\xbfA,B\r\n1,2\r\n", ",", ("A", "B")),
        (b'"A", B ,"C,D"', ",", ("A", "B", "C,D")),
        (b"A", "|", ("A",)),
        (b"", "|", ()),
        (b"\nA|B\n", "|", ()),
    ],
)
def test_a_header_has_a_separator_and_names(
    tmp_path: Path, head: bytes, separator: str, names: tuple[str, ...]
) -> None:
    (tmp_path / "file").write_bytes(head)
    found = read_header(tmp_path / "file")
    assert (found.separator, found.names) == (separator, names)


def test_a_header_of_a_release_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_text('"A"|B,C\n')
    assert read_header(tmp_path / "file", separators="|", quote="").names == ('"A"', "B,C")


def test_what_is_no_file_or_no_text_has_no_header(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"\xff\xfe|A\n")
    with pytest.raises(UnicodeDecodeError):
        read_header(tmp_path / "file")
    with pytest.raises(OSError, match="folder"):
        read_header(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_header(tmp_path / "none")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("rows", [0, 2])
def test_rows_of_text_have_the_types_asked_for(tmp_path: Path, rows: int, end: str) -> None:
    folder = tmp_path / "state=06"
    folder.mkdir()
    path = folder / "a'[b]*.csv"
    path.write_bytes(end.join(["\ufeffA|n", *['"x"|01'] * rows, ""]).encode())
    with open_database() as db:
        source = csv_rows(path, ("A", "n"), kinds={"n": "BIGINT"})
        assert column_types(db, source) == {"A": "VARCHAR", "n": "BIGINT"}
        assert db.execute(f"SELECT * FROM {source}").fetchall() == [('"x"', 1)] * rows
        source = csv_rows(path, ("A", "n"), quote='"')
        assert db.execute(f"SELECT * FROM {source}").fetchall() == [("x", "01")] * rows


def test_rows_that_cannot_be_read_are_kept_aside(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("A|B\n1|2\n3\n4|5\n")
    with open_database() as db:
        source = csv_rows(path, ("A", "B"), rejects="rows_left")
        assert db.execute(f"SELECT * FROM {source}").fetchall() == [("1", "2"), ("4", "5")]
        assert db.execute("SELECT line FROM rows_left").fetchall() == [(3,)]


def test_rows_of_parquet_do_not_take_a_path_for_data(tmp_path: Path) -> None:
    folder = tmp_path / "state=06"
    folder.mkdir()
    paths = [folder / "a.parquet", folder / "[b].parquet"]
    with open_database() as db:
        for number, path in enumerate(paths):
            db.execute(f"COPY (SELECT {number} AS n) TO '{path}' (FORMAT parquet)")
        assert column_types(db, parquet_rows(paths)) == {"n": "INTEGER"}
        assert db.execute(f"SELECT n FROM {parquet_rows(paths)} ORDER BY 1").fetchall() == [(0,), (1,)]
        assert source_of(paths[1]).endswith("[[]b].parquet'")


def test_a_fault_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "blocks.txt"
    path.write_text('NAME,CODE\n"two\nlines",01\n\nplain,1\n')
    with open_delimited(path, ("CODE",)) as file, pytest.raises(InputError, match="line 5, column CODE: the value is"):
        file.digits("CODE", 2)


def test_columns_of_numbers_are_read_from_text_as_from_parquet(tmp_path: Path) -> None:
    text, parquet = tmp_path / "blocks.csv", tmp_path / "it's [blocks].parquet"
    text.write_text("block,n\n001,5\n0002,0\n")
    with open_database() as db:
        db.execute("CREATE TABLE t AS SELECT * FROM (VALUES ('001', 5), ('0002', 0)) AS t(block, n)")
        write_query(db, "SELECT * FROM t", parquet)
    for path, place in ((text, "line 3"), (parquet, "row 2")):
        with open_delimited(path, ("BLOCK", "N")) as file:
            assert file.digits("block", 3, most=4).tolist() == [1, 2]
            assert file.lengths("block").tolist() == [3, 4]
            assert file.counts("n").tolist() == [5, 0]
            with pytest.raises(InputError, match=f"{place}, column block: the value is not a code of 3 digits"):
                file.digits("block", 3)
    parquet.write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match="not readable as Parquet"), open_delimited(parquet, ("BLOCK",)):
        pass


def test_names_that_differ_by_case_alone_are_told_apart() -> None:
    assert apart(("block", "US", "Block", "BLOCK", "Block_1")) == ["block", "US", "Block_1", "BLOCK_2", "Block_1_1"]
