"""The Census Edited File gives the tables that the same census gives as CSV; its faults are named by file and line."""

import contextlib
import json
from pathlib import Path

import pytest
from cef_maker import unit_line, write_cef
from census_maker import Census, Person, Place, Unit, random_census, seeded, write_csv
from refusals import CONFIG, GEO, PERSONS, UNITS, Refused
from refusals import Place as Ground
from refusals import place as place  # noqa: PLC0414
from refusals import refused as refused  # noqa: PLC0414

from yupana.cli.main import main

STATES = ("06", "17", "36")


def tables(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in out.glob("*.csv")}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "form",
    [
        {},
        {"blank": False, "pad": " "},
        {"end": "\r\n"},
        {"last": False},
        {"folders": ("per", "unit", "geo/grfc")},
    ],
)
@pytest.mark.slow
def test_cef_and_csv_give_the_same_tables(tmp_path: Path, form: dict[str, object]) -> None:
    # Both files of a CEF census are one on what a unit is; only CSV can disagree with itself.
    census = random_census(seeded(5), STATES, 600)
    kinds = {unit.MAFID: unit.RTYPE for unit in census.units}
    census.geo = [row._replace(RTYPE=kinds[row.MAFID]) for row in census.geo]
    write_csv(tmp_path / "csv", census)
    write_cef(tmp_path / "cef", census, **form)  # type: ignore[arg-type]
    if "folders" in form:
        text = "[paths]\nper_dir = per\nunit_dir = unit/\nper_dir_pr = per\nunit_dir_pr = unit\ngrfc_dir = geo/grfc\n"
        text += "per_file_format = CEF20_PER_%%s.txt\nunit_file_format = CEF20_UNIT_%%s.txt\n"
        (tmp_path / "cef" / "cef_config.ini").write_text(text)
    config = tmp_path / "config.json"
    config.write_text(json.dumps({**CONFIG, "state_filter": list(STATES), "reader": "cef"}))
    for name in ("csv", "cef"):
        assert main(["phsafe", "exact", str(config), str(tmp_path / name), str(tmp_path / f"out-{name}")]) == 0
    assert tables(tmp_path / "out-csv") == tables(tmp_path / "out-cef") != {}
    log = json.loads((tmp_path / "out-cef.confidential.log").read_text())
    assert log["records"] == {name: len(getattr(census, name)) for name in ("persons", "units", "geo")}
    assert len(log["inputs"]) == 9


@pytest.fixture
def cef(place: Ground) -> Ground:
    """The sound records of the bad inputs, as CEF files of two states, each with people."""
    rows = [
        [kind(*line.split(",")) for line in text.splitlines()[1:]]
        for kind, text in ((Person, PERSONS), (Unit, UNITS), (Place, GEO))
    ]
    people, units, places = rows
    people.append(Person("3", "456700005", "50", "1", "01", "20"))
    units.append(Unit("2", "456700005", "1", "0", "1", "01", "1", "4", "09", "5"))
    places.append(Place("2", "456700005", *places[3][2:]))
    for path in place.data.iterdir():
        path.unlink()
    write_cef(place.data, Census(people, units, places))  # type: ignore[arg-type]
    # Real records: what follows must not depend on the mark.
    (place.data / "SYNTHETIC").unlink()
    return place


def change(path: Path, line: int, start: int, text: str) -> None:
    lines = path.read_text().split("\n")
    lines[line - 1] = lines[line - 1][:start] + text + lines[line - 1][start + len(text) :]
    path.write_text("\n".join(lines))


@pytest.mark.thorough
def test_the_records_that_are_spoiled_below_are_sound(cef: Ground) -> None:
    assert main(cef.arguments("validate")) == 0
    assert main(cef.arguments("run")) == 0


PER, UNIT, GRFC = "CEF20_PER_17.txt", "CEF20_UNIT_17.txt", "grfc_tab20_17.txt"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("file", "line", "start", "text", "said"),
    [
        (PER, 1, 0, "4", "domain: RTYPE"),
        (PER, 1, 23, "117", "domain: QAGE"),
        (PER, 1, 23, "   ", "domain: QAGE"),
        (PER, 1, 23, "5 0", "domain: QAGE"),
        (PER, 1, 23, "+50", "domain: QAGE"),
        (PER, 1, 23, "5.0", "domain: QAGE"),
        (PER, 1, 47, " ", "domain: CENHISP"),
        (PER, 1, 81, "1 ", "domain: CENRACE"),
        (PER, 1, 85, "39", "domain: RELSHIP"),
        (PER, 1, 1, "45670000X", "domain: MAFID"),
        (PER, 1, 1, "456700009", "person_has_unit"),
        (UNIT, 2, 1, "456700004", "unique_mafid"),
        (UNIT, 2, 17, "00002", "final_pop"),
        (UNIT, 2, 25, "9", "domain: HHSPAN"),
        (UNIT, 2, 25, " ", "householder_race"),
        (UNIT, 2, 27, " 1", "domain: HHRACE"),
        (UNIT, 2, 27, "  ", "zero_codes"),
        (UNIT, 2, 60, "13", "domain: HHT2"),
        (UNIT, 2, 62, "1", "couple"),
        (UNIT, 2, 37, "SECRETX".ljust(22), "unit_has_geography: OIDTB is not among"),
        (GRFC, 2, 4, "5", "domain: TABBLKST"),
    ],
)
@pytest.mark.slow
def test_a_value_is_named_by_file_and_line(
    cef: Ground, refused: Refused, file: str, line: int, start: int, text: str, said: str
) -> None:
    path = cef.data / file
    if (file, said) == (GRFC, "domain: TABBLKST"):
        text = path.read_text().split("\n")[1][4:6].replace("1", "x")
    change(path, line, start, text)
    told = refused(f"{file}: {said}", verb="validate")
    found = next(row for row in told.splitlines() if f"{file}: {said}" in row)
    assert found.endswith(f"1 record; line {line}") or "unique_mafid" in found


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"short", "is too short: a line has 91 characters; 1 record; line 2"),
        (b"", "is too short: a line has 91 characters; 1 record; line 2"),
        (b"3" * 92, "is too long: a line has 91 characters; 1 record; line 2"),
        (b"3" * 3_000_000, "is too long: a line has 91 characters; 1 record; line 2"),
        ("ü".encode() + b"3" * 89, "is_text: is not ASCII text; 1 record; line 2"),
        ("ü".encode() + b"3" * 90, "is_text: is not ASCII text; 1 record; line 2"),
        (b"\xff" + b"3" * 90, "is_text: is not ASCII text; 1 record; line 2"),
        (b"3" * 45 + b"\r" + b"3" * 45, ""),
        (b"3" * 45 + b"\0" + b"3" * 45, ""),
        (b'"' + b"3" * 90, "domain"),
    ],
    ids=["short", "blank", "long", "endless", "utf-8", "utf-8 one more", "latin-1", "return", "nul", "quote"],
)
@pytest.mark.parametrize("state", ["06", "17"])
@pytest.mark.slow
def test_a_line_of_another_shape(cef: Ground, refused: Refused, state: str, content: bytes, said: str) -> None:
    path = cef.data / f"CEF20_PER_{state}.txt"
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0], content, *lines[1:]]))
    assert said in refused(f"{path.name}: ")


def test_lines_too_short_in_every_file_are_all_named(cef: Ground, refused: Refused) -> None:
    for path in cef.data.glob("CEF20*"):
        path.write_bytes(b"x\n" * 25 + path.read_bytes())
    names = [f"{path.name}: row_shape" for path in cef.data.glob("CEF20*")]
    assert len(names) == 4
    refused(*names, "25 records; lines 1, 2, 3", ", ...")


def test_a_file_cut_within_its_last_line(cef: Ground, refused: Refused) -> None:
    path = cef.data / UNIT
    path.write_bytes(path.read_bytes()[:-20])
    refused(f"{UNIT}: row_shape", "line 2")


@pytest.mark.parametrize("name", [PER, UNIT, GRFC])
def test_a_missing_or_empty_file(cef: Ground, refused: Refused, name: str) -> None:
    (cef.data / name).write_bytes(b"")
    refused(f"{name}: not_empty")
    (cef.data / name).unlink()
    refused(f"{name}: file_present")


@pytest.mark.thorough
def test_a_state_without_any_file_is_told_and_left_out(cef: Ground, capsys: pytest.CaptureFixture[str]) -> None:
    for path in list(cef.data.glob("*_17.txt")):
        path.unlink()
    assert main(cef.arguments("validate")) == 0
    told = capsys.readouterr().out
    assert "CEF20_UNIT_06.txt: state_present: no housing unit in these states of state_filter: 17 (1 in all); " in told
    assert "it forbids nothing" in told
    assert main(cef.arguments("run")) == 0
    assert (
        "no housing unit in these states of state_filter: 17 (1 in all); the tables have no rows of them"
        in capsys.readouterr().out
    )


def test_a_file_of_no_state_and_one_of_two_forms(cef: Ground, refused: Refused) -> None:
    (cef.data / "CEF20_PER_XX.txt").write_text("x")
    refused("CEF20_PER_XX.txt: file_present")
    (cef.data / "CEF20_PER_XX.txt").unlink()
    (cef.data / "units.csv").write_text(UNITS)
    refused("one_file", "are both there")


@pytest.mark.parametrize(
    "text", ["", "nonsense", "[paths]\nper_dir = missing", "[paths]\nper_dir = ..", "[paths]\nper_file_format = a.txt"]
)
def test_a_configuration_that_is_none(cef: Ground, refused: Refused, text: str) -> None:
    (cef.data / "cef_config.ini").write_text(text)
    refused("cef_config.ini: ")


@pytest.mark.slow
def test_reference_files_that_are_none(cef: Ground, refused: Refused) -> None:
    path = cef.data / GRFC
    sound = path.read_text()
    path.write_text(sound.replace("PLACEFP", "SECRETX"))
    refused(f"{GRFC}: columns_present: missing column PLACEFP")
    path.write_text(sound + "a|b\n")
    refused(f"{GRFC}: row_shape", "line 4")
    path.write_text(sound + sound.split("\n")[1] + "\n")
    refused(f"{GRFC}: unique_block", "lines 2, 4")


@pytest.mark.thorough
def test_lines_are_right_far_into_the_files_of_several_states(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows are numbered over all files of a table that many threads fill."""
    people = {state: [f"5{100_000_001 + i:09}" for i in range(300_000)] for state in ("06", "17")}
    for state, lines in people.items():
        row = "5{:09}xxxxx" + state + "x" * 6 + "030" + "x" * 21 + "1" + "x" * 33 + "01xx38" + "x" * 4
        text = "\n".join(row.format(int(line[1:])) for line in lines).split("\n")
        text[250_000] = text[250_000].replace("030", "200")
        (tmp_path / f"CEF20_PER_{state}.txt").write_text("\n".join(text) + "\n")
        unit = Unit("4", "100000001", "1", "0", "0", "00", "0", "0", "00", "0")
        (tmp_path / f"CEF20_UNIT_{state}.txt").write_text(unit_line(unit, state, state, blank=True) + "\n")
        header = "|".join((*Place._fields[2:], "OIDTABBLK"))
        (tmp_path / f"grfc_tab20_{state}.txt").write_text(
            f"{header}\n{state}|001|000001|0001|1|4|9|99999|9999|{state:<22}\n"
        )
    config = tmp_path / "config.json"
    config.write_text(json.dumps(CONFIG))
    with contextlib.suppress(SystemExit):
        assert main(["phsafe", "validate", str(config), str(tmp_path)]) == 2
    told = "".join(capsys.readouterr())
    for state in people:
        assert f"CEF20_PER_{state}.txt: domain: QAGE must be 0 to 115; 1 record; line 250,001".replace(",", "") in (
            told.replace(",", "")
        )
