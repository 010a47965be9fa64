"""One table of codes in all the ways that people have it, and what is none."""

import itertools
import os
import random
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from yupana.errors import InputError
from yupana.files.code_tables import open_codes, read_rows
from yupana.files.database import open_database, write_query
from yupana.geography.kinds import block_names

ROWS = (
    ("060014001001000", "Sao"),
    ("060014001001001", "Zoé; | é"),
    ("060014001001002", 'x, "y"'),
    ("060014001001003", ""),
)


def read(path: Path, encoding: str | None = None) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    with open_codes(path, encoding=encoding, names_of=block_names) as table:
        return table.header, list(table.records(table.header))


def written(
    rows: Sequence[Sequence[str]], separator: str, *, quotes: bool, header: bool, dress: str, end: str, blanks: bool
) -> str:
    def one(field: str) -> str:
        quoted = quotes or any(mark in field for mark in ',;|\t"')
        return '"' + field.replace('"', '""') + '"' if quoted else field

    lines = [("block", "district")] * header + [(dress.format(code), *rest) for code, *rest in rows]
    space = " " if blanks and not quotes else ""
    return "".join(separator.join(f"{space}{one(field)}{space}" for field in line) + end for line in lines)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("separator", list(",;|\t"))
@pytest.mark.slow
def test_any_dialect_of_a_table_is_the_same_table(separator: str, header: bool, tmp_path: Path) -> None:  # noqa: FBT001
    path = tmp_path / "plan.csv"
    encodings = ((None, "utf-8"), (None, "utf-8-sig"), (None, "utf-16"), ("utf-16", "utf-16-be"), ("cp1252", "cp1252"))
    dresses = ("{}", "'{}", "1000000US{}", '="{}"')
    chance = random.Random(separator + str(header))  # noqa: S311
    every = list(itertools.product(encodings, dresses, (True, False), ("\n", "\r\n", "\r"), (True, False)))
    for (told, encoding), dress, quotes, end, blanks in chance.sample(every, 25):
        text = written(ROWS, separator, quotes=quotes, header=header, dress=dress, end=end, blanks=blanks)
        path.write_bytes(text.encode(encoding))
        found = read(path, told)
        assert found == (("block", "district"), list(ROWS)), (encoding, dress, quotes, end, blanks)


def test_parquet_holds_the_same_table(tmp_path: Path) -> None:
    path = tmp_path / "plan.parquet"
    with open_database() as db:
        values = ", ".join(f"({code[1:]}, '{name}')" for code, name in ROWS)
        write_query(db, f"SELECT a::DOUBLE AS block, b AS district FROM (VALUES {values}) AS t(a, b)", path)
    assert read(path)[1] == [(code[1:], name) for code, name in ROWS]


def test_what_a_table_may_have_beside(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(
        "sep=;\r\n;Re\u0301gion;n\r\n1;'s-Gravenhage;2\r\n;;\r\n\r\n2; a\u00a0;'03'\r\n".encode("utf-8-sig")
    )
    faults: list[str] = []
    rows = read_rows("keys", path, ("R\u00e9gion", "n"), faults)
    assert faults == []
    found = [(row.line, dict(row.values)) for row in rows]
    assert found == [(3, {"R\u00e9gion": "'s-Gravenhage", "n": "2"}), (6, {"R\u00e9gion": "a", "n": "03"})]


@pytest.mark.thorough
def test_a_hundred_columns_take_no_longer_than_their_number(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    rows = [",".join(f"'0{row} é" for _ in range(100)) for row in range(3)]
    path.write_text("\n".join([",".join(f"n{at}" for at in range(100)), *rows]), encoding="utf-8")
    begun = time.process_time()
    found = read_rows("", path, ("n0", "n99"), [])
    assert [row.values["n99"] for row in found] == ["'00 é", "'01 é", "'02 é"]
    assert time.process_time() - begun < 5  # a query for all of them took 20 s


BAD: dict[str, tuple[bytes, str | None, str]] = {
    "empty": (b"", None, "is empty"),
    "blank": (b"\n\n1,2\n", None, "line 1: blank"),
    "a header alone": (b"a,b\n", None, "has a header and no rows"),
    "two separators": (b"a;b,c\n1;2,3\n", None, "line 1: holds , and ;, and the rows do not tell"),
    "a column twice": (b"a,b,a\n1,2,3\n", None, "line 1: column a is there twice"),
    "a column twice in NFC": ("\u00e9,e\u0301\n1,2\n".encode(), None, "line 1: column \u00e9 is there twice"),
    "too many fields": (b"a,b\n1,2\n\n1,2,3\n", None, "line 4: 3 fields, but the header names 2 columns"),
    "too many without a header": (b"060014001001000,1\n060014001001001\n", None, "line 2: 1 field, but the first"),
    "Latin-1 at once": ("a,b\n1,\u00e9\n".encode("latin-1"), None, "line 2: not text in UTF-8; name the encoding"),
    "Latin-1 late": (b"a,b\n" + b"1,2\n" * 100 + b"1,\xff\n", None, "line 102: not text in UTF-8"),
    "UTF-8 that was told otherwise": ("a,b\n1,\u00e9\n".encode(), "cp1252", "is text in UTF-8, and cp1252 was told"),
    "UTF-16 that was told otherwise": ("a,b\n1,2\n".encode("utf-16"), "cp1252", "is in utf-16"),
    "UTF-16 without a mark": ("a,b\n1,2\n".encode("utf-16-le"), None, "needs the encoding utf-16"),
    "UTF-8 told as UTF-16": (b"a,b\n1,2,3\n1,\n", "utf-16", "not text in utf-16"),
    "cp1252 told as Latin-1": (b"a,b\n1,\x93\n", "latin-1", "line 2: not text in iso8859-1"),
    "no encoding": (b"a,b\n1,2\n", "nonsense", "'nonsense' is none that is known"),
    "no encoding of text": (b"a,b\n1,2\n", "base64", "'base64' is none that is known"),
    "NUL": (b"a,b\n1,\0\n", None, "is no text file"),
    "binary": (bytes(range(256)) * 9, None, "is no text file"),
    "a quote that does not end": (b'a,b\n1,"2\n3,4\n', None, "line 2: a quote is opened and not closed"),
    "lines that end in several ways": (b"a,b\r\n1,2\r3,4\n5\n", None, "line 4: 1 field"),
    "a name of two lines": (b'a,"b\n1,2\n3,4"\n', None, "line 1: a name of a column holds a line break"),
    "UTF-8 of even length told as UTF-16": (b"a,b\n1,22\n", "utf-16", "line 1: not text in utf-16"),
    "no encoding of files": (b"a,b\n1,2\n", "idna", "'idna' is none that is known"),
    "a total without other fields": (b"a,b\n1,2\nTotal\n", None, "it seems to be a row of totals; remove it"),
    "a line that does not end": (b"x" * 100_000, None, "line 1: longer than 65,536 bytes"),
    "no Parquet": (b"PAR1", "parquet", "is not readable as Parquet"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_no_table_is_refused(what: str, tmp_path: Path) -> None:
    content, encoding, said = BAD[what]
    path = tmp_path / ("table.parquet" if encoding == "parquet" else "table.csv")
    path.write_bytes(content)
    with pytest.raises(InputError) as raised:
        read(path, None if encoding == "parquet" else encoding)
    assert said in str(raised.value)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, said in (("none", "No such file"), ("", "is a folder"), ("pipe", "is a pipe")):
        with pytest.raises(InputError, match=said):
            read(tmp_path / name)


def test_rounded_codes_and_totals_are_named(tmp_path: Path) -> None:
    path = tmp_path / "keys.csv"
    for rows, said in (
        ("3.6E+14\n1\n", "line 2, column code: '3.6E+14' is a number that a spreadsheet rounded"),
        ("1\n6,00100010E+13\n", "line 3, column code: '6,00100010E+13' is a number"),
        ("1\n2\nTotal\n", "line 4 seems to be a row of totals; remove it"),
        ("1\n\nGrand total:\n\n", "line 4 seems to be a row of totals"),
    ):
        path.write_text("code;n\n" + rows.replace("\n", ";5\n").replace("\n;5\n", "\n\n"))
        faults: list[str] = []
        read_rows("keys", path, ("code",), faults)
        assert len(faults) == 1
        assert [fault.replace("keys: ", "") for fault in faults] == _faults(path)
        assert said in faults[0], faults


def _faults(path: Path) -> list[str]:
    faults: list[str] = []
    read_rows("", path, (), faults)
    return faults


PIECES = (b'"', b",", b";", b"\0", b"\xff", b"\r", b"\n", b"|", b"'", b"US", b"\t", b"E+14")


def mutated(text: bytes, chance: random.Random) -> bytes:
    """A table with a few bytes changed, left out, put in or moved."""
    found = bytearray(text)
    for _ in range(chance.randint(1, 5)):
        at, to = sorted(chance.randrange(len(found) + 1) for _ in range(2))
        choice = chance.randrange(4)
        if choice == 0:
            found[at:at] = chance.choice(PIECES)
        elif choice == 1:
            del found[at : min(to, at + 9)]
        elif choice == 2:
            found[at:at] = found[at:to]
        else:
            found[at : at + 1] = bytes([chance.randrange(256)])
    return bytes(found)


@pytest.mark.parametrize("number", [60, pytest.param(400, marks=pytest.mark.thorough)])
@pytest.mark.slow
def test_mutations_are_read_or_refused(number: int, tmp_path: Path) -> None:
    chance, path = random.Random(35), tmp_path / "table.csv"  # noqa: S311
    refused: list[str] = []
    texts = [
        written(ROWS, separator, quotes=quotes, header=header, dress="'{}", end="\r\n", blanks=False).encode(encoding)
        for separator in ",;"
        for quotes in (True, False)
        for header in (True, False)
        for encoding in ("utf-8-sig", "utf-16")
    ]
    for _ in range(number):
        path.write_bytes(mutated(chance.choice(texts), chance))
        try:
            header, rows = read(path, told := chance.choice([None, None, "cp1252", "utf-16"]))
        except InputError as error:
            refused.append(str(error))
            continue
        assert all(len(row) == len(header) for row in rows)
        faults: list[str] = []
        found = read_rows("keys", path, [name for name in header if name][:1], faults, told, block_names)
        assert len(found) == len(rows) or faults
    assert all(text.startswith(str(path)) for text in refused)
    assert 0 < len(refused) < number
