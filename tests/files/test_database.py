"""The embedded database is opened in one place, and what goes wrong with it is told in our words."""

import re
from pathlib import Path

import duckdb
import pytest

import yupana
from yupana import interruption
from yupana.confidential.records.database import private_database
from yupana.errors import InputError, OutputError
from yupana.files.database import named, open_database, quoted, shared_database, source_of, unreadable, write_query

SOURCES = Path(yupana.__file__).parent


def test_duckdb_is_opened_in_one_file() -> None:
    opening = [
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        if re.search(r"duckdb\.connect|from duckdb import|\bread_csv_auto\b", path.read_text(encoding="utf-8"))
    ]
    assert opening == ["files/database.py"]


def test_names_and_texts_are_quoted_in_one_file() -> None:
    quoting = [
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        if '.replace("\'", "\'\'")' in path.read_text(encoding="utf-8")
    ]
    assert quoting == ["files/database.py"]


def test_what_does_not_fit_is_an_error_of_ours() -> None:
    rows = "CREATE TABLE t AS SELECT range AS a, hash(range) AS b FROM range(20000000)"
    with (
        pytest.raises(InputError, match="the file does not fit"),
        open_database(memory=30_000_000, spills=False, full=InputError("the file does not fit")) as db,
    ):
        db.execute(rows)
    with (
        pytest.raises(OutputError, match="memory or the disk of the temporary folder ran out"),
        open_database(memory=30_000_000, spills=False) as db,
    ):
        db.execute(rows)


@pytest.mark.parametrize("signal", [duckdb.InterruptException("INTERRUPT"), RuntimeError("Query interrupted")])
def test_a_signal_within_a_query_is_an_interrupt(signal: Exception) -> None:
    with pytest.raises(KeyboardInterrupt), open_database():
        raise signal
    with pytest.raises(RuntimeError, match="something else"), open_database():
        raise RuntimeError("something else")


@pytest.mark.slow
def test_openings_see_no_tables_of_each_other_and_one_that_failed_within_is_not_used_again() -> None:
    with open_database() as one, open_database() as other:
        one.execute("CREATE TABLE t AS SELECT 1 AS a")
        other.execute("CREATE TABLE t AS SELECT 2 AS a")
        assert one.execute("SELECT a FROM t").fetchall() == [(1,)]
        assert other.execute("SELECT a FROM t").fetchall() == [(2,)]
    names = "SELECT database_name FROM duckdb_databases() WHERE database_name LIKE 'opened%'"
    with open_database() as db:
        assert len(db.execute(names).fetchall()) == 1
        with pytest.raises(duckdb.CatalogException):
            db.execute("SELECT * FROM t")
    before = shared_database()
    with pytest.raises(duckdb.FatalException), open_database():
        raise duckdb.FatalException
    assert shared_database() is not before
    with open_database() as db:
        assert db.execute("SELECT 1").fetchall() == [(1,)]


def test_what_spills_goes_to_the_folder_of_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    setting = "SELECT current_setting('temp_directory')"
    with open_database() as db:
        ((folder,),) = db.execute(setting).fetchall()
        assert Path(folder).parent == tmp_path
        assert not any(tmp_path.iterdir())
    with open_database(spill=tmp_path / "here") as db:
        assert db.execute(setting).fetchall() == [(str(tmp_path / "here"),)]


def test_a_fault_of_a_file_takes_the_place_of_what_the_database_says(tmp_path: Path) -> None:
    fault = InputError("not readable")
    with open_database() as db:
        with pytest.raises(InputError, match="not readable"), unreadable(fault):
            db.execute(f"SELECT * FROM read_parquet({source_of(tmp_path / 'none.parquet')})")
        with pytest.raises(duckdb.InterruptException), unreadable(fault):
            raise duckdb.InterruptException
        with pytest.raises(InputError), unreadable(fault):
            (tmp_path / "none").read_text()


@pytest.mark.parametrize("name", ["plain.csv", "it's [one] * ?.csv", "it's [one] * ?.parquet"])
def test_rows_are_written_and_read_under_any_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    column, text = named('a "b"'), quoted("it's")
    with open_database() as db:
        write_query(db, f"SELECT {text} AS {column}, 1 AS n", path)
        read = "read_parquet" if path.suffix == ".parquet" else "read_csv"
        assert db.execute(f"SELECT {column}, n FROM {read}({source_of(path)})").fetchall() == [("it's", 1)]
        with pytest.raises(OSError, match="its disk may be full"):
            write_query(db, "SELECT 1 AS a", tmp_path / "no folder" / "a.csv")


def test_what_fails_after_a_signal_failed_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # The database tells of some signals by an error of no class of its own.
    with pytest.raises(InputError, match="could not be read"), private_database():
        raise duckdb.Error("Error")
    monkeypatch.setattr(interruption, "is_stopped", lambda: True)
    for error in (duckdb.Error("Error"), duckdb.IOException("short"), duckdb.InterruptException("stopped")):
        with pytest.raises(KeyboardInterrupt), private_database():
            raise error
    with pytest.raises(KeyboardInterrupt), unreadable(InputError("no such file")):
        raise duckdb.Error("Error")
