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
        (
            {"homes": None},
            ["homes.csv or homes.txt or homes.tsv or homes.parquet: file_present: no such file in FOLDER"],
        ),
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


@pytest.mark.slow
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
    assert told == "my-people.parquet: column_type: column employed has type BOOLEAN; text is needed"


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


UNSAID = {"employed": {"codes": ["1", "2"], "missing": "unknown"}, "age": {"whole": [0, 99], "missing": "999"}}


def without_values(told: dict[str, Any]) -> dict[str, Any]:
    """The description where people need not say whether they are employed, nor their age, which is counted."""
    changed: dict[str, Any] = json.loads(json.dumps(told))
    changed["files"]["my-people"]["columns"] = UNSAID
    changed["recodes"] = {"grown": {"column": "my-people.age", "classes": {"no": "0-17", "yes": "18-99", "?": "999"}}}
    changed["tables"]["workers"] |= {"by": ["my-people.employed", "grown"]}
    return changed


def test_whole_numbers_may_be_missing(tmp_path: Path) -> None:
    people = PEOPLE.replace("no", "1").replace("yes", "2") + "p83,h71,1,\np84,h71,,999\np85,h72,2,0999\np86,h72,2,100\n"
    (tmp_path / "homes.csv").write_text(HOMES, encoding="utf-8")
    (tmp_path / "my-people.csv").write_text(people, encoding="utf-8")
    told = [str(one) for one in yupana.validate("tables", without_values(FAMILY), tmp_path)]
    # What is not the text itself is a number, and 100 is no number that stands for none.
    assert told == ["my-people.csv: domain: age must be 0 to 99, or 999; 2 records; lines 6, 7"]


@pytest.mark.parametrize(
    ("kind", "ages"),
    [
        (pa.int64(), [3, 44, None, 999]),
        (pa.float64(), [3.0, 44.0, None, 999.0]),
        (pa.float32(), [3.0, 44.0, float("nan"), 999.0]),
        (pa.string(), ["3", "044", None, ""]),
    ],
)
def test_missing_numbers_and_codes_of_parquet_are_null(tmp_path: Path, kind: pa.DataType, ages: list[Any]) -> None:
    (tmp_path / "SYNTHETIC").touch()
    pq.write_table(pa.table({"home id": [1], "where": ["N"]}), tmp_path / "homes.parquet")
    people = {"id": [*"abcd"], "home": [1] * 4, "employed": pa.array([1, None, 2, 1], pa.int8())}
    pq.write_table(pa.table({**people, "age": pa.array(ages, kind)}), tmp_path / "my-people.parquet")
    release = yupana.exact("tables", without_values(FAMILY), tmp_path, tmp_path / "out")
    rows = release.columns("workers")
    of = zip(rows["REGION_ID"], rows["employed"], rows["grown"], rows["COUNT"], strict=True)
    counted = {(employed, grown) for area, employed, grown, count in of if (area, count) == ("N", "1")}
    assert counted == {("1", "no"), ("unknown", "yes"), ("2", "?"), ("1", "?")}


def test_numbers_with_a_fraction_are_none(tmp_path: Path) -> None:
    pq.write_table(pa.table({"home id": [1], "where": ["N"]}), tmp_path / "homes.parquet")
    people = pa.table({"id": ["a", "b", "c"], "home": [1] * 3, "employed": [1] * 3, "age": [98.6, 2.0, float("inf")]})
    pq.write_table(people, tmp_path / "my-people.parquet")
    (told,) = map(str, yupana.validate("tables", without_values(FAMILY), tmp_path))
    assert told == "my-people.parquet: domain: age must be 0 to 99, or 999; 2 records; rows 1, 3"
