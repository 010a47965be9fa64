"""A privacy unit that is a column of ids: what follows from its limit, against every neighbour of small databases."""

import csv
import json
from collections import Counter
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

import yupana


def document(most: int = 2, mechanism: str = "zcdp") -> dict[str, Any]:
    return {
        "name": "visits",
        "unit": {"file": "visits", "column": "patient"},
        "privacy_defn": mechanism,
        "files": {"visits": {"record": "visit", "columns": {"ward": {"codes": ["A", "B"]}}}},
        "areas": {"all": {}},
        "tables": {
            "wards": {
                "counts": "visits",
                "by": ["visits.ward"],
                "limit": {"per": "patient", "most": most},
                "budget": {"all": "1"},
            }
        },
    }


def refusal(changed: dict[str, Any]) -> str:
    with pytest.raises(yupana.ConfigError) as caught:
        yupana.plan("tables", changed)
    return str(caught.value)


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("mechanism", ["zcdp", "puredp"])
def test_no_neighbour_is_farther_than_derived_and_some_are_as_far(most: int, mechanism: str) -> None:
    plan = yupana.plan("tables", document(most, mechanism))
    (measured,) = plan.measurements
    power = plan.mechanism.power
    # Of one patient all that may count: up to `most` visits to either ward. Others stay as they are.
    own = [Counter(A=a, B=b) for a, b in product(range(most + 1), repeat=2) if a + b <= most]

    def far(one: Counter[str], other: Counter[str]) -> int:
        return sum(abs(one[ward] - other[ward]) ** power for ward in "AB")

    assert max(far(one, Counter()) for one in own) == measured.proven.unbounded
    assert max(far(one, other) for one in own for other in own) == measured.proven.bounded
    assert plan.privacy_unit == "patient with all its records"


def visits(rows: list[tuple[str, str]], folder: Path) -> Path:
    folder.mkdir()
    text = "".join(f"{patient},{ward}\n" for patient, ward in rows)
    (folder / "visits.csv").write_text("patient,ward\n" + text)
    (folder / "SYNTHETIC").touch()
    return folder


def counted(rows: list[tuple[str, str]], folder: Path, most: int) -> dict[str, int]:
    made = yupana.exact("tables", document(most), visits(rows, folder / "in"), folder / "out")
    table = (made.folder / "wards.csv").read_text().splitlines()
    names = table[0].split("|")
    return {row.split("|")[names.index("ward")]: int(row.split("|")[names.index("COUNT")]) for row in table[1:]}


@pytest.mark.slow
def test_a_limit_keeps_so_many_of_each_and_moves_no_other(tmp_path: Path) -> None:
    rows = [("1", "A"), ("1", "A"), ("1", "B"), ("2", "B"), ("3", "B"), ("3", "B"), ("3", "A"), ("3", "A")]
    found = {}
    for left in (None, "1", "2", "3"):
        (home := tmp_path / str(left)).mkdir()
        found[left] = counted([row for row in rows if row[0] != left], home, 2)
    assert sum(found[None].values()) == 5
    for left, number in (("1", 2), ("2", 1), ("3", 2)):
        moved = {ward: found[None][ward] - found[left][ward] for ward in "AB"}
        assert min(moved.values()) >= 0
        assert sum(moved.values()) == number
    (tmp_path / "all").mkdir()
    assert counted(rows, tmp_path / "all", 9) == {"A": 4, "B": 4}


def test_records_without_an_id_are_counted_and_refused(tmp_path: Path) -> None:
    folder = visits([("1", "A"), ("", "B")], tmp_path / "in")
    with pytest.raises(yupana.InputError, match=r"visits.csv: key: patient must have a value; 1 record; line 3"):
        yupana.run("tables", document(), folder, tmp_path / "out")


def test_what_a_column_of_ids_cannot_be_is_refused() -> None:
    told = document()
    del told["tables"]["wards"]["limit"]
    assert 'limit how many count, as limit = { per = "patient", most = 5 }' in refusal(told)
    told = document()
    told["tables"]["wards"]["counts"] = "patient"
    assert "'patient' is none of the files" in refusal(told)
    told = document()
    told["files"]["visits"]["columns"]["patient"] = {"codes": ["1"]}
    assert "ids tell no cells apart" in refusal(told)
    told = document()
    told["files"] |= {"wards": {"key": "id", "columns": {}}}
    told["files"]["visits"]["parent"] = {"file": "wards", "column": "of"}
    assert "so that the records of one id could be of several" in refusal(told)
    for unit in ({"file": "visit", "column": "patient"}, {"file": ["visits"], "column": "patient"}):
        assert "unit.file:" in refusal(document() | {"unit": unit})
    assert "unit.column: must be a text of one line" in refusal(document() | {"unit": {"file": "visits", "column": 3}})
    assert "unit: " in refusal(document() | {"unit": ["visits"]})
    assert "key 'column' is missing" in refusal(document() | {"unit": {"file": "visits"}})


def test_codes_that_occur_are_told_to_be_taken_as_public(tmp_path: Path) -> None:
    told = document()
    told["files"]["visits"]["columns"]["ward"]["occurring"] = True
    made = yupana.run("tables", told, visits([("1", "A")], tmp_path / "in"), tmp_path / "out")
    assert "the values of ward that occur in the records, as the user declares" in made.manifest["taken_as_public"]
    told["files"]["visits"]["columns"]["ward"]["occurring"] = "yes"
    assert "occurring: must be true or false" in refusal(told)


def test_which_records_of_an_id_count_does_not_depend_on_their_values_alone(tmp_path: Path) -> None:
    """Otherwise of all who have one visit to each ward the same visit would be left out."""
    rows = [(str(patient), ward) for patient in range(400) for ward in "AB"]
    found = counted(rows, tmp_path, 1)
    assert found["A"] + found["B"] == 400
    assert 140 < found["A"] < 260


@pytest.mark.slow
def test_what_is_kept_does_not_depend_on_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With little memory the ids are taken in parts."""
    rng = Random(3)  # noqa: S311 (records of nobody)
    rows = [(str(rng.randrange(500)), rng.choice("AB")) for _ in range(2000)]
    (one := tmp_path / "one").mkdir()
    whole = counted(rows, one, 1)
    monkeypatch.setattr("yupana.confidential.records.database.memory_limit", lambda _: 100_000)
    (two := tmp_path / "two").mkdir()
    assert counted(rows, two, 1) == whole
    assert sum(whole.values()) == len({patient for patient, _ in rows})


def test_areas_of_records_that_are_kept_are_theirs(tmp_path: Path) -> None:
    """A record is packed into one number while it is chosen, its area included."""
    told = document(1)
    told["files"]["visits"]["columns"]["town"] = {"codes": ["x", "y", "z"]}
    told["areas"] = {"town": {"column": "visits.town"}}
    told["tables"]["wards"]["budget"] = {"town": "1"}
    rows = [(str(i), "AB"[i % 2], "xyz"[i % 3]) for i in range(60)]
    (folder := tmp_path / "in").mkdir()
    (folder / "visits.csv").write_text("patient,ward,town\n" + "".join(f"{','.join(row)}\n" for row in rows * 2))
    (folder / "SYNTHETIC").touch()
    made = yupana.exact("tables", told, folder, tmp_path / "out")
    with (made.folder / "wards.csv").open() as file:
        found = {(row["REGION_ID"], row["ward"]): int(row["COUNT"]) for row in csv.DictReader(file, delimiter="|")}
    assert found == Counter((town, ward) for _, ward, town in rows)
    log = json.loads((tmp_path / "out.confidential.log").read_text())
    assert log["records_left_out_by_limits"] == {"wards": 60}


@pytest.mark.slow
def test_tables_that_are_counted_apart_keep_the_same_record_of_each_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is a number of the record then, and these are chosen together."""
    told = document(1)
    told["files"]["visits"]["columns"] |= {name: {"codes": [*"abc"]} for name in ("x", "y")}
    table = told["tables"]["wards"]
    told["tables"] = {name: {**table, "by": [f"visits.{name}"]} for name in ("ward", "x", "y")}
    told["tables"]["xy"] = {**table, "by": ["visits.x", "visits.y"]}
    rng = Random(4)  # noqa: S311 (records of nobody)
    rows = [(rng.randrange(50), rng.choice("AB"), rng.choice("abc"), rng.choice("abc")) for _ in range(300)]
    (folder := tmp_path / "in").mkdir()
    text = "".join(",".join(map(str, row)) + "\n" for row in rows)
    (folder / "visits.csv").write_text("patient,ward,x,y\n" + text)
    (folder / "SYNTHETIC").touch()
    found = []
    for few in (1 << 17, 1):
        monkeypatch.setattr("yupana.confidential.tabulate.linked_tables._FEW", few)
        made = yupana.exact("tables", told, folder, tmp_path / str(few))
        found.append([made.path(name).read_bytes() for name in told["tables"]])
    assert found[0] == found[1]
    with made.path("xy").open() as file:
        cells = list(csv.DictReader(file, delimiter="|"))
    assert sum(int(cell["COUNT"]) for cell in cells) == len({row[0] for row in rows})


def test_a_limit_of_one_per_id_holds_for_records_below_those_that_have_ids(tmp_path: Path) -> None:
    told = document(1)
    told["files"]["visits"]["key"] = "id"
    told["files"]["scans"] = {
        "parent": {"file": "visits", "column": "visit"},
        "columns": {"kind": {"codes": ["x", "y"]}},
    }
    told["tables"] = {
        "scans": {
            "counts": "scans",
            "by": ["scans.kind"],
            "limit": {"per": "patient", "most": 1},
            "budget": {"all": "1"},
        }
    }
    (folder := tmp_path / "in").mkdir()
    (folder / "visits.csv").write_text("id,patient,ward\n" + "".join(f"{i},{i % 3},A\n" for i in range(12)))
    (folder / "scans.csv").write_text("visit,kind\n" + "".join(f"{i},{'xy'[i % 2]}\n" for i in range(12)) * 2)
    (folder / "SYNTHETIC").touch()
    made = yupana.exact("tables", told, folder, tmp_path / "out")
    rows = [row.split("|") for row in (made.folder / "scans.csv").read_text().splitlines()]
    assert sum(int(row[rows[0].index("COUNT")]) for row in rows[1:]) == 3
