"""How text is divided and decoded, what types of frames mean, and what is refused with the way out."""

import math
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from free_files import dates
from hypothesis import given, settings
from hypothesis import strategies as st

import yupana
from yupana.confidential.records.values import from_stored, is_readable
from yupana.files.columns import Column
from yupana.files.database import open_database

SEXES = ["f", "m", "f", "f", "m"]
AGES = [3, None, 41, 0, 99]


def _described(folder: Path, told: dict[str, Any] | None = None, **columns: dict[str, Any]) -> dict[str, Any]:
    own = columns or {"sex": {"codes": ["f", "m"]}, "age": {"whole": [0, 99], "missing": "none"}}
    tables = {name: {"counts": "people", "by": [f"people.{name}"], "budget": {"all": 1}} for name in own}
    folder.mkdir(exist_ok=True)
    (folder / "SYNTHETIC").touch()
    return {
        "name": "t", "unit": "people", "files": {"people": {**(told or {}), "columns": own}},
        "areas": {"all": {}}, "tables": tables,
    }  # fmt: skip


def _counts(document: dict[str, Any], data: Any, out: Path, **options: Any) -> dict[str, dict[str, int]]:  # noqa: ANN401
    """By table and class what is not 0, without noise."""
    release = yupana.exact("tables", document, data, out, overwrite=True, **options)
    found = {}
    for name in release:
        frame = pl.DataFrame(release[name])
        rows = zip(frame[frame.columns[2]].to_list(), frame["COUNT"].to_list(), strict=True)
        found[name] = {str(label): int(number) for label, number in rows if number}
    return found


def _refused(document: dict[str, Any], folder: Path) -> str:
    with pytest.raises((yupana.InputError, yupana.ConfigError)) as refused:
        yupana.exact("tables", document, folder, folder.parent / "out")
    assert not (folder.parent / "out").exists()
    return str(refused.value)


TEXTS: dict[str, tuple[bytes, dict[str, Any]]] = {
    "semicolons": (b"sex;age\nf;3\nm;\nf;41\nf;0\nm;99\n", {}),
    "tabs and CRLF": (b"age\tsex\r\n3\tf\r\n\tm\r\n41\tf\r\n0\tf\r\n99\tm\r\n", {}),
    "bars, a byte order mark, blanks and quotes": (
        b'\xef\xbb\xbf"sex" | age\n f |"3"\n"m"| \nf|41 \nf| 0\n m|99\n', {},
    ),
    "UTF-16": ("sex,age\nf,3\nm,none\nf,41\nf,0\nm,99".encode("utf-16"), {"encoding": "utf-16"}),
    "cp1252 in a column that is not read": (
        b"sex,n\xe9,age\nf,\x80,3\nm,,\nf,,41\nf,,0\nm,,99\n", {"encoding": "cp1252"},
    ),
    "a decimal comma": (b"sex;age\nf;3,0\nm;\nf;41,00\nf;0,\nm;99\n", {"decimal": ","}),
    "a decimal point": (b"sex,age\nf,3.0\nm,\nf,41\nf,0.000\nm,99.\n", {"decimal": "."}),
    "another separator within quotes in the header": (
        b'sex,"a;b",age\nf,,3\nm,,\nf,,41\nf,,0\nm,,99\n', {},
    ),
    "two separators, of which one gives all columns": (b"sex;a,b;age\nf;;3\nm;;\nf;;41\nf;;0\nm;;99\n", {}),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.thorough
def test_text_is_read_as_offices_write_it(tmp_path: Path, name: str) -> None:
    text, told = TEXTS[name]
    document = _described(tmp_path / "data", told)
    (tmp_path / "data/people.csv").write_bytes(text)
    expected = {"sex": {"f": 3, "m": 2}, "age": {"3": 1, "none": 1, "41": 1, "0": 1, "99": 1}}
    assert _counts(document, tmp_path / "data", tmp_path / "out") == expected


@pytest.mark.parametrize(
    ("text", "told", "says"),
    [
        (b"sex;age\nf;\xe9\n", {}, "people.csv: is_text: "),
        (b"s\xe9x,age\nf,3\n", {}, "is_text: is not UTF-8 text; say its encoding, such as encoding = 'cp1252'"),
        ("sex,age\nf,3\n".encode("utf-16"), {}, "is_text"),
        (b"sex,age\nf,3\nf,\xff\n", {"encoding": "utf-16"}, "people.csv: "),
        (b"sex,age\nf,3\n\x81,4\n", {"encoding": "cp1252"}, "is not cp1252 text; say its encoding, such as"),
        (b"sex;a,age\nf;1,3\n", {}, "the header could be separated by ',' or ';'; say which, such as separator = ','"),
        (b"sex,age\nf,3\n", {"separator": ";"}, "missing column sex, age in the header"),
        (b"sex,age\nf,3.0\n", {}, "people.csv: domain: age must be 0 to 99, or none; 1 record; line 2"),
        (b"sex,age\nf,3.5\n", {"decimal": "."}, "people.csv: domain: age must be 0 to 99, or none; 1 record; line 2"),
        (b"sex,age\nf,3\nx,3\n", {}, "people.csv: domain: sex must be f, m; 1 record; line 3"),
        (b"sex,age\nf,3\n", {"encoding": "klingon"}, "files.people.encoding: must be an encoding of text, such as"),
        (b"sex,age\nf,3\n", {"encoding": "base64"}, "files.people.encoding: must be an encoding of text"),
        (b"sex,age\nf,3\n", {"separator": ":"}, "files.people.separator: must be"),
    ],
)  # fmt: skip
def test_text_that_is_not_as_was_told_is_refused_with_its_line_and_the_way_out(
    tmp_path: Path, text: bytes, told: dict[str, Any], says: str
) -> None:
    document = _described(tmp_path / "data", told)
    (tmp_path / "data/people.csv").write_bytes(text)
    assert says in _refused(document, tmp_path / "data")


MADE: dict[str, Callable[[], Any]] = {
    "pandas": lambda: pd.DataFrame({"sex": SEXES, "age": AGES, "own": [True, False] * 2 + [True], "no": [None] * 5}),
    "pandas with categories": lambda: pd.DataFrame(
        {"sex": pd.Categorical(SEXES), "age": pd.array(AGES, "Int8"), "own": [True, False] * 2 + [True], "no": None}
    ),
    "pandas by pyarrow": lambda: MADE["pandas"]().convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda: pl.DataFrame({"sex": SEXES, "age": AGES, "own": [True, False] * 2 + [True], "no": [None] * 5}),
    "polars with enums": lambda: MADE["polars"]().with_columns(
        pl.col("sex").cast(pl.Enum(["f", "m"])), pl.col("age").cast(pl.Float64).fill_null(math.nan)
    ),
    "pyarrow": lambda: pa.table(
        {"sex": pa.array(SEXES).dictionary_encode(), "age": pa.array(AGES, pa.decimal128(5, 1)),
         "own": [True, False] * 2 + [True], "no": pa.nulls(5)}
    ),
}  # fmt: skip


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", MADE)
@pytest.mark.slow
def test_frames_are_read_as_libraries_make_them(tmp_path: Path, name: str) -> None:
    document = _described(
        tmp_path,
        sex={"codes": ["f", "m"]},
        age={"whole": [0, 99], "missing": "none"},
        own={"codes": {"true": "Owned", "false": "Rented"}},
        no={"codes": ["a"], "missing": "-"},
    )
    assert _counts(document, {"people": MADE[name]()}, tmp_path / "out", synthetic=True) == {
        "sex": {"f": 3, "m": 2},
        "age": {"3": 1, "none": 1, "41": 1, "0": 1, "99": 1},
        "own": {"true": 3, "false": 2},
        "no": {"-": 5},
    }


@pytest.mark.slow
def test_dates_count_by_what_is_told_of_them(tmp_path: Path) -> None:
    rng = Random(1)  # noqa: S311 (no noise)
    years = [rng.choice((rng.randint(1898, 1903), rng.randint(1890, 2040))) for _ in range(40)]
    days = [date(year, rng.randint(1, 12), rng.randint(1, 28)) for year in years] + [None] * 3
    parts: dict[str, tuple[list[int], Callable[[date], int]]] = {
        "year": ([1900, 2030], lambda day: day.year),
        "month": ([1, 12], lambda day: day.month),
        "year-month": ([190001, 203012], lambda day: 100 * day.year + day.month),
        "date": ([19000101, 19011231], lambda day: 10000 * day.year + 100 * day.month + day.day),
    }
    arrays = {part: dates(rng, days) for part in parts}
    document = _described(
        tmp_path,
        **{part: {"whole": ends, "of": part, "missing": "none", "others": "else"} for part, (ends, _) in parts.items()},
    )
    document["recodes"] = {
        f"r{part}": {
            "column": f"people.{part}",
            "classes": {str(ends): f"{ends[0]}-{ends[1]}", "-": ["none"], "x": ["else"]},
        }
        for part, (ends, _) in parts.items()
    }
    for part in parts:
        document["tables"][part]["by"] = [f"r{part}"]
    found = _counts(document, {"people": pa.table(arrays)}, tmp_path / "out", synthetic=True)
    for part, (ends, of) in parts.items():
        within = sum(day is not None and ends[0] <= of(day) <= ends[1] for day in days)
        expected = {str(ends): within, "-": 3, "x": len(days) - 3 - within}
        assert found[part] == {label: number for label, number in expected.items() if number}


def _exactly(value: object) -> Fraction | None:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return Fraction(value)  # type: ignore[arg-type]


_TYPES: dict[str, Callable[[], st.SearchStrategy[Any]]] = {
    "float64": lambda: st.floats() | st.integers(-5, 30).map(float) | st.sampled_from([2.0**53, 2.0**53 + 2, 2.0**63]),
    "float32": lambda: st.floats(width=32) | st.integers(-5, 30).map(float) | st.just(2.0**24),
    "int64": lambda: st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 30),
    "uint64": lambda: st.integers(0, 2**64 - 1) | st.integers(0, 30),
    "int8": lambda: st.integers(-128, 127),
    "decimal": lambda: st.decimals(-999, 999, places=2) | st.integers(-5, 30).map(Decimal),
}
_KINDS = {
    "float64": pa.float64(), "float32": pa.float32(), "int64": pa.int64(), "uint64": pa.uint64(), "int8": pa.int8(),
    "decimal": pa.decimal128(9, 2),
}  # fmt: skip


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", _TYPES)
@settings(max_examples=15, deadline=None)
@given(data=st.data(), low=st.integers(0, 3), width=st.integers(0, 25), words=st.sampled_from(["", "b", "o", "bo"]))
@pytest.mark.slow
def test_a_number_of_any_type_is_the_whole_number_that_it_is_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, kind: str, low: int, width: int, words: str
) -> None:
    blank, others = "b" in words, "o" in words
    values = data.draw(st.lists(st.none() | _TYPES[kind](), max_size=30))
    column = Column(
        "x", range(low, low + width + 1 + blank + others), blank="none" if blank else "", blank_is_last=blank,
        others="else" if others else "", free=True,
    )  # fmt: skip
    path = tmp_path_factory.mktemp("typed") / "x.parquet"
    pq.write_table(pa.table({"x": pa.array(values, _KINDS[kind])}), path, row_group_size=5)
    with open_database() as db:
        relation = f"read_parquet('{path}')"
        ((_, stored, *_),) = db.execute(f"DESCRIBE SELECT x FROM {relation}").fetchall()
        assert not is_readable(column, stored)
        found = [of for (of,) in db.execute(f"SELECT {from_stored(column, stored)} FROM {relation}").fetchall()]
    for value, got in zip(values, found, strict=True):
        exact = _exactly(value)
        nothing = value is None or (isinstance(value, float) and math.isnan(value))
        if exact is not None and exact.denominator == 1 and low <= exact <= low + width:
            assert got == exact
        elif nothing and blank:
            assert got == column.none
        elif others:
            assert got == column.high
        else:
            assert got is None


@pytest.mark.thorough
def test_keys_are_the_same_in_every_type(tmp_path: Path) -> None:
    keys = [7, 8, 2**53 - 1]
    links = [7, 7, 2**53 - 1, 8]
    document = {
        "name": "t", "unit": "people",
        "files": {
            "homes": {"key": "id", "columns": {"kind": {"codes": ["a", "b"]}}},
            "people": {"parent": {"file": "homes", "column": "home"}, "columns": {"sex": {"codes": ["f", "m"]}}},
        },
        "areas": {"all": {}, "kind": {"column": "homes.kind"}},
        "tables": {"t": {"counts": "people", "limit": {"per": "homes", "most": 5}, "budget": {"kind": 1}}},
    }  # fmt: skip
    kinds = [pa.int64(), pa.float64(), pa.string(), pa.decimal128(20, 2)]
    document["unit"] = "homes"
    say = {pa.string(): str, pa.float64(): float}
    for of_key, of_link in zip(kinds, kinds[1:] + kinds[:1], strict=True):
        homes = pa.table({"id": pa.array(map(say.get(of_key, int), keys), of_key), "kind": ["a", "b", "b"]})
        people = pa.table({"home": pa.array(map(say.get(of_link, int), links), of_link), "sex": [*"ffmm"]})
        given_frames = {"homes": homes, "people": people}
        found = yupana.exact("tables", document, given_frames, tmp_path / "out", synthetic=True, overwrite=True)
        assert pl.DataFrame(found["t"])["COUNT"].to_list() == [2, 2], (of_key, of_link)


@pytest.mark.parametrize(("form", "shards"), [("csv", None), ("parquet", 2), ("frame", 2)])
@pytest.mark.slow
def test_files_of_which_no_column_is_read_are_counted(tmp_path: Path, form: str, shards: int | None) -> None:
    document = _described(tmp_path / "data")
    document["files"]["people"]["columns"] = {}
    document["tables"] = {"all": {"counts": "people", "budget": {"all": 1}}}
    frame = pl.DataFrame({"x": [1, 2, 3]})
    frame.write_csv(tmp_path / "data/people.csv") if form == "csv" else frame.write_parquet(
        tmp_path / "data/people.parquet"
    )
    options: dict[str, Any] = {"shards": shards} if shards else {}
    data: Any = tmp_path / "data"
    if form == "frame":
        data, options = {"people": frame}, options | {"synthetic": True}
    assert _counts(document, data, tmp_path / "out", **options) == {"all": {"total": 3}}
