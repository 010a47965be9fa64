"""TopDown from a description of raw records: against a count by hand, and against the same schema and queries."""

import csv
import json
import runpy
import tomllib
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from yupana.cli.main import main
from yupana.errors import ConfigError
from yupana.products.topdown.product import TOPDOWN

EXAMPLES = Path(__file__).parents[3] / "examples"
LEVELS = ("country", "province", "commune")
Key = tuple[str, str, str, str]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The persons that the example invents."""
    runpy.run_path(str(EXAMPLES / "country.py"))["main"](tmp_path / "data")
    return tmp_path / "data"


def document(**budget: str) -> dict[str, Any]:
    """The example, its file of units by its whole name; every budget above 0 replaced if one is given."""
    told = tomllib.loads((EXAMPLES / "country.toml").read_text(encoding="utf-8"))
    told["files"]["persons"]["columns"]["commune"]["codes"]["file"] = str(EXAMPLES / "country.csv")
    told["hierarchies"]["elbonia"]["of"]["file"] = str(EXAMPLES / "country.csv")
    for table in told["tables"].values():
        table["budget"] = {level: budget.get("budget", rho) for level, rho in table["budget"].items()}
    return told


def write(folder: Path, told: dict[str, Any]) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(told), encoding="utf-8")
    return path


def run(folder: Path, config: Path, out: str = "out", *options: str) -> Path:
    assert (
        main(
            [
                "topdown",
                "run",
                str(config),
                str(folder / "data"),
                str(folder / out),
                "--seed",
                "3",
                "--intervals",
                "none",
                *options,
            ]
        )
        == 0
    )
    return folder / out


def above() -> dict[str, str]:
    with (EXAMPLES / "country.csv").open(encoding="utf-8") as file:
        return {row["CODE"]: row["WITHIN"] for row in csv.DictReader(file, delimiter="|")}


def by_hand(persons: Path) -> dict[str, Counter[Key]]:
    """Counts by level, unit and cell, a record after the other."""
    parent, found = above(), {level: Counter[Key]() for level in LEVELS}
    with persons.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            group = "under 15" if int(row["age"]) < 15 else "15-64" if int(row["age"]) < 65 else "65+"
            unit = row["commune"]
            for level in reversed(LEVELS):
                found[level][unit, row["sex"], group, row["language"]] += 1
                unit = parent[unit]
    return found


def released(out: Path, level: str) -> dict[Key, int]:
    lines = (out / "counts" / f"{level}.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "geounit|sex|age_group|language|count"
    rows = [line.split("|") for line in lines[1:]]
    assert len({tuple(row[:4]) for row in rows}) == len(rows)
    return {(row[0], row[1], row[2], row[3]): int(row[4]) for row in rows}


@pytest.mark.slow
def test_without_noise_counts_are_those_by_hand(tmp_path: Path, data: Path) -> None:
    out = run(tmp_path, write(tmp_path, document(budget="inf")))
    expected = by_hand(data / "persons.csv")
    for level in LEVELS:
        assert released(out, level) == expected[level]
    records = (out / "microdata.csv").read_text(encoding="utf-8").splitlines()
    assert Counter(tuple(line.split("|")) for line in records[1:]) == expected["commune"]
    assert main(["check", str(out)]) == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("estimator", ["topdown", "full-information"])
@pytest.mark.slow
def test_the_same_schema_and_queries_make_the_same_release(tmp_path: Path, data: Path, estimator: str) -> None:
    out = run(tmp_path, write(tmp_path, document()), "out", "--estimator", estimator)
    assert main(["check", str(out)]) == 0
    (tmp_path / "plain").mkdir()
    expected = by_hand(data / "persons.csv")
    rows = ["|".join([*key, str(count)]) for key, count in expected["commune"].items()]
    (tmp_path / "plain" / "data").mkdir()
    (tmp_path / "plain" / "data" / "histogram.csv").write_text(
        "\n".join(["block|sex|age_group|language|count", *rows, ""]), encoding="utf-8"
    )
    (tmp_path / "plain" / "data" / "SYNTHETIC").touch()
    plain = {
        "product": "elbonia-2026",
        "rho": "1",
        "areas": {"levels": LEVELS, "of": {unit: within for unit, within in above().items() if within}},
        "schema": {"sex": ["f", "m"], "age_group": ["under 15", "15-64", "65+"], "language": ["el", "north", "other"]},
        "recodes": {"adult": {"of": "age_group", "groups": [["under 15"], ["15-64", "65+"]]}},
        "shares": {"country": "1/10", "province": "2/10", "commune": "7/10"},
        "queries": {
            "country": {"total": "1/2", "detailed": "1/2"},
            "province": {"total": "1/4", "sex*adult": "1/4", "detailed": "1/2"},
            "commune": {"total": "1/7", "sex*adult": "1/7", "detailed": "5/7"},
        },
        "invariants": {"country": ["total"]},
        "constraints": {"structural_zeros": [{"age_group": "under 15", "language": "other"}]},
    }
    other = run(tmp_path / "plain", write(tmp_path / "plain", plain), "out", "--estimator", estimator)
    names = [path.relative_to(other) for path in other.rglob("*.csv")]
    assert len(names) > 5
    for name in names:
        assert (out / name).read_bytes() == (other / name).read_bytes()
    assert released(out, "commune") != expected["commune"]
    assert sum(released(out, "country").values()) == expected["country"].total()
    repeated = run(tmp_path, out / "manifest.json", "again", "--estimator", estimator)
    assert all((out / name).read_bytes() == (repeated / name).read_bytes() for name in names)


@pytest.mark.thorough
def test_blocks_may_be_told_by_a_record_above(tmp_path: Path, data: Path) -> None:
    told = document(budget="inf")
    commune = told["files"]["persons"]["columns"].pop("commune") | {"fixed": True}
    told["files"]["homes"] = {"key": "home", "columns": {"commune": commune}}
    told["files"]["persons"]["parent"] = {"file": "homes", "column": "home"}
    told["hierarchies"]["elbonia"]["column"] = "homes.commune"
    with (data / "persons.csv").open(encoding="utf-8") as file:
        persons = list(csv.DictReader(file))
    homes = sorted({person["commune"] for person in persons})
    (data / "homes.csv").write_text("\n".join(["home,commune", *(f"{i},{c}" for i, c in enumerate(homes)), ""]))
    rows = [f"{homes.index(p['commune'])},{p['sex']},{p['age']},{p['language']}" for p in persons]
    expected = by_hand(data / "persons.csv")
    (data / "persons.csv").write_text("\n".join(["home,sex,age,language", *rows, ""]))
    out = run(tmp_path, write(tmp_path, told))
    assert released(out, "commune") == expected["commune"]
    assert all(m.person is None for m in TOPDOWN.plan(TOPDOWN.read(out / "manifest.json")).measurements)
    assert any("homes.commune" in one for one in json.loads((out / "manifest.json").read_text())["taken_as_public"])
    # A home that may move with one person moves everyone in it, so that one record is no longer what is protected.
    del told["files"]["homes"]["columns"]["commune"]["fixed"]
    with pytest.raises(ConfigError, match=r"reads homes\.commune, which may change with a person"):
        TOPDOWN.read(write(tmp_path, told))


def test_budgets_that_are_solved_for_are_written_back(tmp_path: Path) -> None:
    config = TOPDOWN.read(write(tmp_path, document()))
    budgets = {name: entry.budget * (i + 1) for i, (name, entry) in enumerate(TOPDOWN.entries(config).items())}
    changed = TOPDOWN.with_budgets(config, budgets)
    again = TOPDOWN.read(write(tmp_path, TOPDOWN.document(changed)))
    assert TOPDOWN.plan(again) == TOPDOWN.plan(changed)
    assert TOPDOWN.plan(again).loss() == sum(budgets.values())


def changed(*path: str, to: object) -> dict[str, Any]:
    told = deepcopy(document())
    here = told
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = to
    return told


TWICE = {"all": {"counts": "persons", "by": ["adult", "age_group"], "budget": {"commune": "1"}}}


@pytest.mark.parametrize(
    ("told", "fault"),
    [
        (changed("neighbours", to="add-remove"), 'neighbours: must be "replace"'),
        (changed("topdown", to={}), "topdown: key 'spine' is missing"),
        (changed("topdown", "cells", to="everything"), "topdown.cells: 'everything' is none of the tables"),
        (changed("topdown", "cells", to="people"), "tables.all.by: sex tells records apart that people"),
        (changed("topdown", "spine", to=["country", "canton"]), "topdown.spine: must be a list of kinds of areas"),
        (changed("topdown", "spine", to=["country", ["x"], 3]), "topdown.spine: must be a list of kinds of areas"),
        (changed("topdown", "structural_zeros", to=["x"]), "topdown.structural_zeros[0]: must be a table"),
        (changed("topdown", "spine", to=["province", "commune"]), "topdown.spine: province must be one area"),
        (changed("topdown", "spine", to=["country", "commune"]), "budget.province: is no kind of areas of"),
        (changed("topdown", "invariants", to={"province": {"by": ["adult"]}}), "only totals can be kept exactly"),
        (changed("topdown", "invariants", to={"town": {"by": []}}), "topdown.invariants: 'town' is no kind of areas"),
        (changed("topdown", "structural_zeros", to=[{"adult": "minor"}]), "adult = 'minor' is no class of the cells"),
        (
            changed("tables", "people", "budget", "province", to={"moe": 5}),
            "budget.province: must be a budget; what TopDown estimates has no margin known beforehand",
        ),
        (
            changed("tables", "people", "where", to={"adult": "minor"}),
            "tables.people.where: every record counts once in every query",
        ),
        (
            changed("recodes", "adult", "classes", to={"every": "0-115"}) | {"tables": TWICE},
            "tables.all.by: tells one column apart in two ways",
        ),
        (changed("criteria", to={}), "criteria: is of tables that are measured one by one"),
        (changed("tables", "adults", "by", to=["persons.age"]), "tables.adults.by: age tells records apart that all"),
        (changed("tables", "adults", "by", to=["persons.edge"]), "'persons.edge' is neither a column nor a recode"),
        (changed("recodes", "adult", "classes", to={"minor": "0-14"}), "holds 15-115 of persons.age"),
        (changed("tables", "all", "budget", "country", to="inf"), "some budgets are infinite and others are not"),
        (
            changed("tables", "again", to={"counts": "persons", "budget": {"country": "1"}}),
            "tables.again.budget.country: another table is the same query there",
        ),
    ],
)
@pytest.mark.slow
def test_faults_are_named(tmp_path: Path, told: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigError) as error:
        TOPDOWN.read(write(tmp_path, told))
    assert fault in str(error.value)


def test_a_fault_has_its_line(tmp_path: Path) -> None:
    text = (EXAMPLES / "country.toml").read_text(encoding="utf-8").replace('cells = "all"', 'cells = "al"')
    (tmp_path / "country.toml").write_text(text.replace('"country.csv"', f'"{EXAMPLES / "country.csv"}"'))
    line = text.splitlines().index('cells = "al"') + 1
    with pytest.raises(ConfigError, match=f"line {line}: topdown.cells"):
        TOPDOWN.read(tmp_path / "country.toml")


def test_unknown_codes_are_counted_and_not_shown(
    tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (data / "persons.csv").open("a") as file:
        file.write("SECRET,f,20,el\n")
    arguments = [str(write(tmp_path, document())), str(data), str(tmp_path / "out")]
    assert main(["topdown", "run", *arguments, "--seed", "1"]) == 2
    told = capsys.readouterr().err
    assert "1 record" in told
    assert "SECRET" not in told


def test_what_the_histogram_reads_above_the_unit_is_fixed_whether_or_not_it_is_measured(tmp_path: Path) -> None:
    told: dict[str, Any] = {
        "name": "td",
        "unit": "persons",
        "neighbours": "replace",
        "files": {
            "houses": {
                "key": "id",
                "columns": {"county": {"codes": ["1", "2"], "fixed": True}, "tenure": {"codes": ["o", "r"]}},
            },
            "persons": {"parent": {"file": "houses", "column": "house"}, "columns": {"sex": {"codes": ["1", "2"]}}},
        },
        "areas": {"nation": {"code": "X"}, "county": {"column": "houses.county"}},
        "tables": {
            "cells": {"counts": "persons", "by": ["persons.sex", "houses.tenure"], "budget": {}},
            "sexes": {"counts": "persons", "by": ["persons.sex"], "budget": {"nation": 1, "county": 1}},
        },
        "topdown": {"spine": ["nation", "county"], "cells": "cells"},
    }
    with pytest.raises(ConfigError, match=r"files\.houses\.columns\.tenure: must be fixed, as the histogram reads it"):
        TOPDOWN.read(write(tmp_path, told))
    told["files"]["houses"]["columns"] |= {"county": {"codes": ["1", "2"]}}
    told["files"]["houses"]["columns"]["tenure"]["fixed"] = True
    told["tables"]["sexes"]["budget"] = {"nation": 1}
    with pytest.raises(ConfigError, match=r"files\.houses\.columns\.county: must be fixed, as the histogram reads it"):
        TOPDOWN.read(write(tmp_path, told))
    told["files"]["houses"]["columns"]["county"]["fixed"] = True
    assert TOPDOWN.read(write(tmp_path, told))
