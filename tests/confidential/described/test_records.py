"""Record files that do not fit their description: findings name file, rule and numbers, and no value of a record."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import yupana

WORDS = ["no", "yes"]
FAMILY: dict[str, Any] = {
    "name": "family",
    "unit": "my-people",
    "files": {
        "homes": {"key": "home id", "columns": {"where": {"codes": ["N", "S"], "fixed": True}}},
        "my-people": {
            "key": "id",
            "parent": {"file": "homes", "column": "home"},
            "columns": {"employed": {"codes": WORDS}, "age": {"whole": [0, 99]}},
        },
    },
    "areas": {"side": {"column": "homes.where"}},
    "tables": {"workers": {"counts": "my-people", "by": ["my-people.employed"], "budget": {"side": 1}}},
}
HOMES = "home id,where\nh71,N\nh72,S\n"
PEOPLE = "id,home,employed,age\np81,h71,no,3\np82,h72,yes,44\n"


def found(tmp_path: Path, **texts: str | None) -> list[str]:
    """What `validate` says of files of these texts; None for no file."""
    data = tmp_path / "data"
    data.mkdir(exist_ok=True)
    for name, text in {
        "homes": HOMES,
        "my-people": PEOPLE,
        **{k.replace("_", "-"): v for k, v in texts.items()},
    }.items():
        if text is not None:
            (data / f"{name}.csv").write_bytes(text.encode())
    return [str(one) for one in yupana.validate("tables", described(tmp_path), data)]


def described(tmp_path: Path) -> Path:
    """The description as a file."""
    path = tmp_path / "family.json"
    path.write_text(json.dumps(FAMILY), encoding="utf-8")
    return path


def test_records_that_fit_have_no_findings(tmp_path: Path) -> None:
    assert found(tmp_path) == []


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ({"homes": HOMES + "h71,S\n"}, ["homes.csv: unique_key: home id occurs twice; 2 records; lines 2, 4"]),
        ({"homes": HOMES + ",S\n"}, ["homes.csv: key: home id must have a value; 1 record; line 4"]),
        (
            {"my_people": PEOPLE + "p83,h79,no,4\np84,,no,5\n"},
            [
                "my-people.csv: key: home must have a value; 1 record; line 5",
                "my-people.csv: link: home is no home id of homes; 1 record; line 4",
            ],
        ),
        (
            {"homes": HOMES + ",S\n", "my_people": PEOPLE + "p83,h79,no,4\n"},
            [
                "homes.csv: key: home id must have a value; 1 record; line 4",
                "my-people.csv: link: home is no home id of homes; 1 record; line 4",
            ],
        ),
        (
            {"my_people": PEOPLE + "p83,h71,perhaps,104\np84,h71,,-1\n"},
            [
                "my-people.csv: domain: employed must be no, yes; 2 records; lines 4, 5",
                "my-people.csv: domain: age must be 0 to 99; 2 records; lines 4, 5",
            ],
        ),
        ({"homes": "home id,where\n", "my_people": "id,home,employed,age\n"}, []),
        ({"homes": None}, ["homes.csv or homes.txt or homes.parquet: file_present: no such file in FOLDER"]),
        ({"homes": ""}, ["homes.csv: not_empty: the file is empty: not even a header"]),
        (
            {"homes": HOMES.replace("where", "place")},
            ["homes.csv: columns_present: missing column where in the header"],
        ),
        (
            {"homes": HOMES.replace("where", "Where,where").replace("N", "N,N").replace("S", "S,S")},
            ["homes.csv: columns_present: column where is there twice"],
        ),
        ({"homes": HOMES + "h73\n"}, ["homes.csv: row_shape: has too few fields; 1 record; line 4"]),
    ],
)
def test_findings_name_file_rule_and_numbers(tmp_path: Path, texts: dict[str, str | None], expected: list[str]) -> None:
    assert found(tmp_path, **texts) == [one.replace("FOLDER", str(tmp_path / "data")) for one in expected]


def test_no_message_holds_a_name_of_the_database(tmp_path: Path) -> None:
    broken = PEOPLE + 'p83,"h79,no,4\n'
    for text in (broken, "\0\0\0", PEOPLE.replace("\n", "\r") + "\n", PEOPLE + "p,\xff,no,4\n", "x\n"):
        told = "\n".join(found(tmp_path, my_people=text))
        assert told.startswith("my-people.csv: ")
        assert not any(name in told for name in ("records_", '"', "rejects", "h79", "p83", "the_", "rowid")), told


def parquet(tmp_path: Path, **columns: list[Any] | None) -> tuple[Path, Path]:
    """The description, and a folder in which people have some other columns."""
    data = tmp_path / "data"
    data.mkdir()
    pq.write_table(pa.table({"home id": [1, 2], "where": ["N", "S"]}), data / "homes.parquet")
    own = {"id": ["a", "b"], "home": ["1", "2"], "employed": WORDS, "age": [1, 2]} | columns
    pq.write_table(pa.table({name: column for name, column in own.items() if column}), data / "my-people.parquet")
    return described(tmp_path), data


def test_truth_values_are_not_taken_for_codes_by_their_places(tmp_path: Path) -> None:
    (told,) = map(str, yupana.validate("tables", *parquet(tmp_path, employed=[True, False])))
    assert told == "my-people.parquet: column_type: column my-people.employed has type BOOLEAN; text is needed"


@pytest.mark.parametrize("column", ["file_row_number", "File_Index"])
def test_a_column_may_not_be_named_as_the_database_numbers_rows(tmp_path: Path, column: str) -> None:
    (told,) = map(str, yupana.validate("tables", *parquet(tmp_path, **{column: ["x", "y"]})))
    assert told == (
        f"my-people.parquet: columns_present: column {column} has a name that rows are numbered by; rename or drop it"
    )


def test_parquet_may_lack_columns_and_hold_nothing(tmp_path: Path) -> None:
    (told,) = map(str, yupana.validate("tables", *parquet(tmp_path, age=None)))
    assert told == "my-people.parquet: columns_present: missing column age in the header"


def test_keys_that_are_null_are_counted(tmp_path: Path) -> None:
    told = [str(one) for one in yupana.validate("tables", *parquet(tmp_path, id=["a", None], home=[7, None]))]
    assert told == [
        "my-people.parquet: key: id must have a value; 1 record; row 2",
        "my-people.parquet: key: home must have a value; 1 record; row 2",
        "my-people.parquet: link: home is no home id of homes; 1 record; row 1",
    ]


def test_a_separator_in_quotes_is_no_field_too_many(tmp_path: Path) -> None:
    told = json.loads(json.dumps(FAMILY))
    told["files"]["my-people"]["columns"] = {"employed": {"codes": WORDS, "missing": "unknown"}}
    (tmp_path / "homes.csv").write_text('home id,where\n"h,7""1",N\n', encoding="utf-8")
    for fields, expected in (("", []), (",", ["my-people.csv: row_shape: has too many fields; 1 record; line 2"])):
        (tmp_path / "my-people.csv").write_text(f'id,home,employed\n"p,81","h,7""1",{fields}\n', encoding="utf-8")
        assert [str(one) for one in yupana.validate("tables", told, tmp_path)] == expected
