"""Records of fixed width, of CSPro's SQLite files and of SPSS, Stata and SAS, as they come to the reader."""

import gzip
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from yupana.confidential.records.database import _scratch
from yupana.confidential.records.foreign_files import RecordForms, as_parquet
from yupana.confidential.records.reader import RECORD
from yupana.confidential.records.sources import find_source
from yupana.confidential.records.statistics_files import _date
from yupana.confidential.records.validation import BrokenRulesError
from yupana.errors import ConfigError, InputError
from yupana.files.columns import Column, RecordFile
from yupana.files.delimited import parquet_rows
from yupana.files.dictionaries.dictionary import Dictionary, DictionaryItem, Questionnaire, RecordType
from yupana.files.dictionaries.reading import read_dictionary

ANY = range(1 << 20)


def number(name: str, start: int, length: int, decimals: int = 0) -> DictionaryItem:
    return DictionaryItem(name, start=start, length=length, is_number=True, decimals=decimals)


def text(name: str, start: int, length: int) -> DictionaryItem:
    return DictionaryItem(name, start=start, length=length)


PERSON = RecordType("PERSON", "", "1", (number("AGE", 6, 3), text("NAME", 9, 4), number("PAY", 13, 4, 2)))
HOUSING = RecordType("HOUSING", "", "2", (number("ROOMS", 6, 2),))
IDS = (number("AREA", 2, 2), text("HOUSE", 4, 2))
LAYOUT = Dictionary("TINY", "", 1, 1, (Questionnaire("QUEST", "", IDS, (PERSON, HOUSING)),), Path("tiny.dcf"))

_COLUMNS = ("QUESTIONNAIRE", "AREA", "AGE", "NAME", "PAY")
PEOPLE = RecordFile("PERSON", "person", tuple(Column(name, ANY, key=name == "QUESTIONNAIRE") for name in _COLUMNS))
QUEST = RecordFile("QUEST", "quest", (Column("QUESTIONNAIRE", ANY, key=True), Column("AREA", ANY)))


@contextmanager
def read(folder: Path, forms: RecordForms) -> Iterator[Callable[[str], list[tuple[object, ...]]]]:
    with as_parquet(folder, forms, None) as place, duckdb.connect() as db:

        def rows(name: str) -> list[tuple[object, ...]]:
            source, findings = find_source(place, forms.schemas[name])
            assert source is not None
            assert not findings
            return db.execute(f"FROM {parquet_rows(source.rows)} ORDER BY {RECORD}").fetchall()

        yield rows
    assert not list(_scratch().glob(f"{os.getpid()}-*"))


def fixed(*files: RecordFile, data: str = "", encoding: str = "", layout: Dictionary = LAYOUT) -> RecordForms:
    return RecordForms({file.name: file for file in files}, layout, data, encoding)


def refused(folder: Path, forms: RecordForms) -> str:
    with pytest.raises(InputError) as caught, read(folder, forms):
        pass
    return str(caught.value)


LINES = "101a 030Ana 1250\r\n2 1a 04\r\n\r\n1 2b  5      50  \r\n101a 1x        \r\n"
WANTED = [
    ("01a ", "1", "30", "Ana", "12.5", 1),
    ("02b ", "2", "5", None, "0.5", 4),
    ("01a ", "1", "1x", None, None, 5),
]


@pytest.mark.parametrize(
    ("name", "content", "encoding"),
    [
        ("c.dat", b"\xef\xbb\xbf" + LINES.encode(), ""),
        ("c.dat", LINES.replace("\r", "").encode().rstrip(b"\n") + b"\n\x1a", "utf-8"),
        ("c.dat", LINES.encode("utf-16"), "utf-16"),
        ("c.dat.gz", gzip.compress(LINES.encode("cp1252"), mtime=0), "cp1252"),
    ],
    ids=["mark", "DOS", "UTF-16", "gzip"],
)
def test_zeros_and_blanks_say_nothing_and_lines_need_not_stand_together(
    tmp_path: Path, name: str, content: bytes, encoding: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with read(tmp_path, fixed(PEOPLE, QUEST, encoding=encoding)) as rows:
        assert rows("PERSON") == WANTED
        assert rows("QUEST") == [("01a ", "1", 1), ("02b ", "2", 4)]


def test_letters_are_characters_and_not_bytes(tmp_path: Path) -> None:
    (tmp_path / "c.dat").write_bytes("101a 030João1250".encode("cp1252"))
    with read(tmp_path, fixed(PEOPLE, encoding="cp1252")) as rows:
        assert rows("PERSON") == [("01a ", "1", "30", "João", "12.5", 1)]
    said = refused(tmp_path, fixed(PEOPLE))
    assert "is not utf-8 text" in said
    assert 'encoding = "cp1252"' in said


def test_a_code_is_spelled_as_the_description_does(tmp_path: Path) -> None:
    (tmp_path / "c.dat").write_text("101a  1\n112a  99\n1 3a 123\n")
    words = RecordFile(
        "PERSON", "person", (
            Column("AREA", range(3), words=("01", "03", "12")),
            Column("AGE", range(121), blank="099", blank_is_last=True),
        ),
    )  # fmt: skip
    with read(tmp_path, fixed(words)) as rows:
        assert rows("PERSON") == [("01", "1", 1), ("12", "099", 2), ("03", "123", 3)]


@pytest.mark.slow
def test_what_contradicts_the_dictionary_is_named_by_its_line_and_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "c.dat"
    lines = ["101a 030", "x01a 77secret", "2  a 01", "101a 030Ana 1250toolongsecret", "1", "101  030"]
    path.write_text("\n".join(lines))
    said = refused(tmp_path, fixed(PEOPLE, QUEST))
    assert "character 1 must say the record type: 1, 2; 1 record; line 2" in said
    assert "lines of PERSON have 16 characters at most; 1 record; line 4" in said
    assert "there must be AREA, HOUSE; 3 records; lines 3, 5, 6" in said
    assert "secret" not in said
    assert "nothing" not in refused(tmp_path, fixed(RecordFile("PERSON", "p", (Column("AGES", ANY),))))
    path.write_bytes(b"")
    assert "the file is empty" in refused(tmp_path, fixed(PEOPLE))
    path.write_bytes(b"1\0" * 100)
    assert "null bytes" in refused(tmp_path, fixed(PEOPLE))
    path.write_bytes(b"1" * (3 << 20))
    assert "too long" in refused(tmp_path, fixed(PEOPLE))
    (tmp_path / "c.dat.gz").write_bytes(gzip.compress(b"101a 030\n" * 1000)[:-20])
    assert "was it cut off?" in refused(tmp_path, fixed(PEOPLE, data="c.dat.gz"))


@pytest.mark.thorough
def test_the_file_is_the_only_one_or_is_named(tmp_path: Path) -> None:
    forms = fixed(PEOPLE)
    assert "no .dat, .csdb or .txt is" in refused(tmp_path, forms)
    (tmp_path / "a.txt").write_text("101a 030\n")
    with read(tmp_path, forms) as rows:
        assert len(rows("PERSON")) == 1
    (tmp_path / "b.dat").write_text("101a 030\n101a 031\n")
    with read(tmp_path, forms) as rows:
        assert len(rows("PERSON")) == 2
    (tmp_path / "c.dat").write_text("901a 030\n")  # of a record type of another dictionary
    with read(tmp_path, forms) as rows:
        assert len(rows("PERSON")) == 2
    (tmp_path / "c.dat").write_text("101a 030\n")
    assert "b.dat, c.dat" in refused(tmp_path, forms)
    with read(tmp_path, fixed(PEOPLE, data="a.txt")) as rows:
        assert len(rows("PERSON")) == 1
    assert "no such file" in refused(tmp_path, fixed(PEOPLE, data="d.dat"))
    (tmp_path / "PERSON.csv").write_text("AGE\n1\n")
    assert "one_file" in refused(tmp_path, fixed(PEOPLE, data="a.txt"))


def test_records_of_a_lower_level_have_the_ids_and_keys_of_those_above(tmp_path: Path) -> None:
    member = RecordType("MEMBER", "", "3", (number("AGE", 5, 2),))
    layout = Dictionary(
        "DEEP", "", 1, 1,
        (
            Questionnaire("HOUSE", "", (number("H", 2, 1),), (RecordType("ROOF", "", "1", (number("KIND", 3, 1),)),)),
            Questionnaire("FAMILY", "", (number("F", 3, 2),), (member,)),
        ),
        Path(),
    )  # fmt: skip
    (tmp_path / "c.dat").write_text("11 \n31 130\n31 231\n32 140\n31 132")
    keys = ("QUESTIONNAIRE", "QUESTIONNAIRE_2")
    files = [
        RecordFile("HOUSE", "h", (Column("H", ANY), Column(keys[0], ANY, key=True))),
        RecordFile("FAMILY", "f", tuple(Column(name, ANY) for name in ("F", *keys))),
        RecordFile("MEMBER", "m", tuple(Column(name, ANY) for name in ("H", "AGE", keys[1]))),
    ]
    with read(tmp_path, fixed(*files, layout=layout)) as rows:
        assert rows("HOUSE") == [("1", "1", 1), ("2", "2", 4)]
        assert rows("FAMILY") == [("1", "1", "101", 2), ("2", "1", "102", 3), ("1", "2", "201", 4)]
        assert rows("MEMBER")[3] == ("1", "32", "101", 5)


def test_ipums_files_have_no_questionnaires(tmp_path: Path) -> None:
    """Rectangular ones are of one record type; in hierarchical ones records hold the key of their household."""
    person = RecordType("PERSON", "", "P", (number("SERIALP", 2, 4), number("AGE", 6, 3), number("WEIGHT", 9, 4, 2)))
    household = RecordType("HOUSEHOLD", "", "H", (number("SERIAL", 2, 4), number("STATE", 6, 2)))
    of_person = RecordFile("PERSON", "p", tuple(Column(name, ANY) for name in ("SERIALP", "AGE", "WEIGHT")))
    of_household = RecordFile("HOUSEHOLD", "h", (Column("SERIAL", ANY, key=True), Column("STATE", ANY)))
    layout = Dictionary("usa", "", 1, 1, (Questionnaire("", "", (), (household, person)),), Path())
    (tmp_path / "usa.dat").write_text("H000106\nP00010340150\nP00010020100\nH000248\n")
    with read(tmp_path, fixed(of_person, of_household, layout=layout)) as rows:
        assert rows("PERSON") == [("1", "34", "1.5", 2), ("1", "2", "1", 3)]
        assert rows("HOUSEHOLD") == [("1", "6", 1), ("2", "48", 4)]
    every = RecordType("PERSON", "", "", person.items)
    alone = Dictionary("usa", "", 0, 0, (Questionnaire("", "", (), (every,)),), Path())
    (tmp_path / "usa.dat").write_text(" 00010340150\n 00020020100\n")
    with read(tmp_path, fixed(of_person, layout=alone)) as rows:
        assert rows("PERSON") == [("1", "34", "1.5", 1), ("2", "2", "1", 2)]
    keyed = RecordFile("PERSON", "p", (Column("AGE", ANY), Column("QUESTIONNAIRE", ANY, key=True)))
    assert "missing column QUESTIONNAIRE" in refused(tmp_path, fixed(keyed, layout=alone))


def make_csdb(path: Path, *, deleted: int = 1) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.executescript(f"""
            CREATE TABLE meta (dictionary TEXT); INSERT INTO meta VALUES ('{{"name": "TINY", "labels": []}}');
            CREATE TABLE cases (id TEXT, deleted INTEGER, partial_save_mode TEXT);
            INSERT INTO cases VALUES ('u', 0, NULL), ('v', {deleted}, NULL), ('w', 0, '1');
            CREATE TABLE "level-1" ("level-1-id" INTEGER PRIMARY KEY, "case-id" TEXT, area INTEGER, house TEXT);
            INSERT INTO "level-1" VALUES (1, 'u', 1, 'a'), (2, 'v', 2, 'b'), (3, 'w', 12, 'ç');
            CREATE TABLE person ("person-id" INTEGER PRIMARY KEY, "level-1-id" INTEGER, occ INTEGER,
                age INTEGER, name TEXT, pay REAL);
            INSERT INTO person VALUES (4, 1, 1, 30, 'Ana', 12.5), (5, 2, 1, 40, 'Bo', 1), (6, 1, 2, NULL, NULL, NULL),
                (7, 3, 1, 1234, 'Ümit', 0.25);
            CREATE TABLE housing ("housing-id" INTEGER PRIMARY KEY, "level-1-id" INTEGER, occ INTEGER, rooms INTEGER);
            CREATE TABLE "binary-data" (data BLOB); INSERT INTO "binary-data" VALUES (x'00');
        """)
        db.commit()


def test_csdb_is_read_without_its_deleted_cases(tmp_path: Path) -> None:
    make_csdb(tmp_path / "c.csdb")
    (tmp_path / "other.csdb").write_bytes(b"no SQLite")
    with read(tmp_path, fixed(PEOPLE, QUEST)) as rows:
        assert rows("PERSON") == [
            ("01a ", "1", "30", "Ana", "12.5", 4),
            ("01a ", "1", None, None, None, 6),
            ("12ç ", "12", "***", "Ümit", "0.25", 7),
        ]
        assert [row[:2] for row in rows("QUEST")] == [("01a ", "1"), ("12ç ", "12")]


def test_a_csdb_that_is_not_of_the_dictionary_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.csdb"
    forms = fixed(PEOPLE, QUEST, data="c.csdb")
    make_csdb(path)
    whole = path.read_bytes()
    (tmp_path / "c.csdb-wal").touch()
    assert "close CSPro" in refused(tmp_path, forms)
    (tmp_path / "c.csdb-wal").unlink()
    for statement, said in (
        ("ALTER TABLE person RENAME COLUMN age TO years", "has no column person.age"),
        ("DROP TABLE housing", "has no table housing"),
    ):
        path.write_bytes(whole)
        with closing(sqlite3.connect(path)) as db:
            db.execute(statement)
            db.commit()
        assert said in refused(tmp_path, forms)
    for bytes_of in (b"encrypted" * 1000, whole[: len(whole) // 2], b""):
        path.write_bytes(bytes_of)
        said = refused(tmp_path, forms)
        assert "c.csdb: is_csdb: cannot be read as SQLite" in said or "has no table" in said


def statistics() -> RecordFile:
    return RecordFile("people", "person", tuple(Column(name, ANY) for name in ("sex", "age", "region")))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("ending", [".sav", ".zsav", ".dta", ".xpt"])
@pytest.mark.slow
def test_statistics_files_give_codes_and_no_labels(tmp_path: Path, ending: str) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = pd.DataFrame({"SEX": [1.0, 2.0, 1.0], "age": [30.0, float("nan"), 2.5], "region": ["Nord ", "Süd", ""]})
    path = tmp_path / f"people{ending}"
    if ending in {".sav", ".zsav"}:
        frame = pd.concat([frame, pd.DataFrame({"SEX": [2.0], "age": [999.0], "region": ["Süd"]})])
        labels = {"SEX": {1.0: "male", 2.0: "female"}}
        terms = {"missing_ranges": {"age": [999]}, "variable_value_labels": labels, "compress": ending == ".zsav"}
        pyreadstat.write_sav(frame, str(path), **terms)
    else:
        (pyreadstat.write_dta if ending == ".dta" else pyreadstat.write_xport)(frame, str(path))
    with read(tmp_path, RecordForms({"people": statistics()})) as rows:
        found = rows("people")
    assert found[:3] == [("1", "30", "Nord", 1), ("2", None, "Süd", 2), ("1", "2.5", None, 3)]
    assert found[3:] in ([], [("2", None, "Süd", 4)])
    with read(tmp_path, RecordForms({"people": RecordFile("people", "person", ())})) as rows:
        assert len(rows("people")) == len(found)
    whole = path.read_bytes()
    for cut in (0, 80, *([len(whole) - 9] if ending == ".sav" else [])):  # others end in what is no record
        path.write_bytes(whole[:cut])
        assert f"{path.name}: is_statistics: cannot be read" in refused(tmp_path, RecordForms({"people": statistics()}))


@pytest.mark.thorough
def test_a_file_that_crashes_the_library_is_refused_as_one_that_is_damaged(tmp_path: Path) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    path = tmp_path / "people.sav"
    frame = pd.DataFrame({"sex": [1.0, 2.0], "age": [30.0, 31.0], "region": ["a", "b"]})
    pyreadstat.write_sav(frame, str(path), variable_value_labels={"sex": {1: "Male", 2: "Female"}})
    data = bytearray(path.read_bytes())
    data[180] |= 128  # of the type of the first variable, upon which pyreadstat 1.3.7 reads where nothing is
    path.write_bytes(data)
    assert "people.sav: is_statistics: cannot be read" in refused(tmp_path, RecordForms({"people": statistics()}))
    with pytest.raises(ConfigError, match="damaged, or no file of SPSS"):
        read_dictionary(path)


def test_a_file_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "people.sav").touch()
    (tmp_path / "people.csv").touch()
    with (
        pytest.raises(BrokenRulesError, match=r"people.csv or people.sav: more than one is there|one_file"),
        read(tmp_path, RecordForms({"people": statistics()})),
    ):
        pass


@pytest.mark.parametrize(
    ("value", "form", "system", "day"),
    [
        (12_219_379_200.0, "DATE11", "SPSS", "1970-01-01"),
        (12_219_379_260.0, "DATETIME20", "SPSS", "1970-01-01 00:01:00"),
        (-1.0, "%td", "Stata", "1959-12-31"),
        (86_400_000.0, "%tcHH", "Stata", "1960-01-02 00:00:00"),
        (366.0, "DATE9", "SAS", "1961-01-01"),
        (86_400.0, "DATETIME18", "SAS", "1960-01-02 00:00:00"),
        (5.0, "F8.2", "SPSS", ""),
        (5.0, "TIME8", "SPSS", ""),
    ],
)
def test_dates_begin_where_each_system_begins_them(value: float, form: str, system: str, day: str) -> None:
    sql, kind = _date(f"{value}::DOUBLE", form, system)
    assert bool(kind) == bool(day)
    if day:
        assert duckdb.sql(f"SELECT CAST(CAST({sql} AS {kind}) AS VARCHAR)").fetchall() == [(day,)]
