"""`phsafe accuracy` and `validate --internal` on a census whose truncation can be told by hand."""

import json
from pathlib import Path

import pytest
from census_maker import Census, Person, Place, Unit, random_census, seeded, write_csv

from yupana.cli.main import main
from yupana.products.phsafe.configuration import production_config
from yupana.release.tables import read_table

PERSON_TABLES = ("PH1_num", "PH2", "PH3", "PH4", "PH6", "PH7")


def census_of(households: list[tuple[str, int]]) -> Census:
    """Families of given race and size: a householder and siblings, all of 40 years."""
    census = Census([], [], [])
    for number, (race, size) in enumerate(households):
        mafid = str(200_000_001 + number)
        census.units.append(Unit("2", mafid, str(size), "0", "1", race, "1", "2", "11", "5"))
        census.geo.append(Place("2", mafid, "06", "001", "400100", "1000", "1", "4", "9", "99999", "9999"))
        census.persons += [Person("3", mafid, "40", "1", race, "20" if n == 0 else "28") for n in range(size)]
    return census


@pytest.fixture
def config(tmp_path: Path) -> Path:
    document = production_config()
    document["state_filter"] = ["06"]
    path = tmp_path / "config.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


@pytest.mark.thorough
def test_truncation_is_told_by_race(tmp_path: Path, config: Path) -> None:
    # At tau 10 the one household of race 03 loses 4 of 14, those of race 01 nobody.
    write_csv(tmp_path / "data", census_of([("01", 5), ("01", 10), ("03", 14)]))
    assert main(["phsafe", "accuracy", str(config), str(tmp_path / "data"), str(tmp_path / "out")]) == 0
    table = read_table(tmp_path / "out" / "accuracy.csv")
    keys = zip(table["TABLE"], table["LEVEL"], table["ITERATION_CODE"], table["DATA_CELL"], strict=True)
    bias = dict(zip(keys, map(float, table["TRUNCATION_BIAS"]), strict=True))
    assert len(bias) == len(table["TABLE"])
    for level in ("usa", "state"):
        by_race = {code: bias["PH1_num", f"{level}_A-G", code, "3"] for code in "ABCDEFG"}
        assert by_race == dict.fromkeys("ABDEFG", 0.0) | {"C": -4.0}
        assert bias["PH1_num", f"{level}_*", "*", "3"] == -4.0


def validated(
    config: Path, data: Path, capsys: pytest.CaptureFixture[str], *options: str
) -> tuple[str, dict[tuple[str, int], dict[str, int]]]:
    """What `validate --internal` prints, and its rows by table and tau."""
    assert main(["phsafe", "validate", str(config), str(data), "--internal"]) == 0
    text = capsys.readouterr().out
    assert main(["phsafe", "validate", str(config), str(data), "--internal", "--json", *options]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert next(iter(answer.items())) == ("confidential", True)
    assert answer["valid"]
    return text, {(row["table"], row["tau"]): row for row in answer["truncation"]}


@pytest.mark.thorough
def test_what_each_tau_would_leave_out(tmp_path: Path, config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    write_csv(data, census_of([("01", 1), ("01", 9), ("02", 11), ("03", 14), ("03", 14)]))
    (data / "SYNTHETIC").unlink()
    text, rows = validated(config, data, capsys)
    assert text.startswith("CONFIDENTIAL")
    assert "PH1_num        10             49            9  18.367%            3  configured" in text
    left_out = {tau: rows["PH1_num", tau]["left_out"] for tau in range(7, 14)}
    assert left_out == {7: 20, 8: 16, 9: 12, 10: 9, 11: 6, 12: 4, 13: 2}
    assert {tau: rows["PH1_num", tau]["units"] for tau in range(7, 14)} == {
        7: 4,
        8: 4,
        9: 3,
        10: 3,
        11: 2,
        12: 2,
        13: 2,
    }
    assert {tau for name, tau in rows if name == "PH1_num"} == set(range(7, 14))
    assert {tau for name, tau in rows if name == "PH3"} == set(range(3, 10))
    assert [tau for (name, tau), row in rows.items() if name == "PH3" and row["configured"]] == [6]
    assert rows["PH1_num", 10]["persons"] == 49
    assert rows["PH3", 6]["persons"] == 0
    # Nobody is told how records are cut without asking for it.
    assert main(["phsafe", "validate", str(config), str(data), "--json"]) == 0
    assert "truncation" not in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("tau", [1, pytest.param(2, marks=pytest.mark.thorough), 5])
@pytest.mark.thorough
def test_validation_foretells_what_a_run_leaves_out(
    tmp_path: Path, config: Path, tau: int, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(config.read_text(encoding="utf-8"))
    document["tau"] = dict.fromkeys(PERSON_TABLES, tau)
    document["consistency"] = {"own_child": "drop-and-count", "couple": "drop-and-count", "final_pop": "drop-and-count"}
    config.write_text(json.dumps(document), encoding="utf-8")
    census = random_census(seeded(tau), ["06"], 150)
    unit = next(unit for unit in census.units if int(unit.FINAL_POP) > 8 and unit.RTYPE == "2")
    census.units[census.units.index(unit)] = unit._replace(FINAL_POP="4")
    write_csv(tmp_path / "data", census)
    _, rows = validated(config, tmp_path / "data", capsys)
    assert main(["phsafe", "exact", str(config), str(tmp_path / "data"), str(tmp_path / "out")]) == 0
    log = json.loads((tmp_path / "out.confidential.log").read_text(encoding="utf-8"))
    told = {name: rows[name, tau]["left_out"] for name in PERSON_TABLES}
    assert told == log["persons_left_out_by_truncation"]
    assert all(told.values())
