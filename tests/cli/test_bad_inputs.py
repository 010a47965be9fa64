"""Every bad input ends in one clear message, status 2, no confidential value printed and nothing left behind.

Records hold canaries: values that appear nowhere else, and so must appear neither on the screen nor in any file.
"""

import contextlib
import json
import math
import os
import random
import re
import resource
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from refusals import CANARIES, CONFIG, GEO, PERSONS, UNITS, Place, Refused, assert_proper_refusal
from refusals import place as place  # noqa: PLC0414
from refusals import refused as refused  # noqa: PLC0414

from yupana.cli.main import main
from yupana.confidential.records.phsafe_records import RULES
from yupana.products.phsafe.configuration import RULES_OF_CONSISTENCY


def refuses_records(refused: Refused, *needles: str, verbs: tuple[str, ...] = ("run",)) -> None:
    for verb in verbs:
        refused(*needles, verb=verb)


@pytest.mark.thorough
def test_the_records_that_are_spoiled_below_are_sound(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("validate", "run"):
        assert main(place.arguments(verb)) == 0
    assert capsys.readouterr().out.startswith(f"{place.data}: valid")
    assert {path.name for path in place.out.parent.iterdir()} == {"out", "out.confidential.log"}
    # The log is for its owner alone.
    assert place.out.with_name("out.confidential.log").stat().st_mode & 0o077 == 0
    place.assert_no_scratch()


# --- files that are not there, or are no such files -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["persons", "units", "geo"])
def test_a_missing_file(place: Place, refused: Refused, name: str) -> None:
    (place.data / f"{name}.csv").unlink()
    refuses_records(refused, f"{name}.csv", f"{name}.parquet", "no such file")


def test_a_missing_folder(place: Place, refused: Refused) -> None:
    place.data.rename(place.root / "elsewhere")
    refuses_records(refused, str(place.data))


def test_a_file_in_place_of_the_folder(place: Place, refused: Refused) -> None:
    place.data.rename(place.root / "elsewhere")
    place.data.write_text("SECRETX")
    refuses_records(refused, str(place.data))


def test_a_folder_whose_name_is_no_utf_8(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    folder = place.data.rename(os.fsdecode(os.fsencode(place.data) + b"\xff"))
    status = main(["phsafe", "validate", str(place.config), str(folder)])
    assert status in {0, 2}, capsys.readouterr().err


def test_a_file_in_both_forms(place: Place, refused: Refused) -> None:
    (place.data / "units.parquet").write_bytes(b"PAR1")
    refuses_records(refused, "units.csv", "units.parquet")


@pytest.mark.parametrize("name", ["persons", "units", "geo"])
def test_an_empty_file(place: Place, refused: Refused, name: str) -> None:
    (place.data / f"{name}.csv").write_bytes(b"")
    refuses_records(refused, f"{name}.csv", "empty")


@pytest.mark.parametrize(("name", "end"), [("persons", ""), ("units", "\r\n"), ("geo", "")])
def test_a_header_alone(place: Place, refused: Refused, name: str, end: str) -> None:
    path = place.data / f"{name}.csv"
    path.write_bytes((path.read_text().split("\n")[0] + end).encode())
    # Persons may be none; then the units' counts of them are wrong.
    rule = {"persons": "units.csv: final_pop", "units": "units.csv: not_empty", "geo": "geo.csv: not_empty"}[name]
    refuses_records(refused, rule)


@pytest.mark.parametrize(("name", "size"), [("persons", 1), ("units", 100), ("geo", 100_000)])
def test_binary_rubbish(place: Place, refused: Refused, name: str, size: int) -> None:
    (place.data / f"{name}.csv").write_bytes(random.Random(size).randbytes(size))  # noqa: S311
    refuses_records(refused, f"{name}.csv")


@pytest.mark.parametrize("seed", range(2))
def test_binary_rubbish_below_the_header(place: Place, refused: Refused, seed: int) -> None:
    path = place.data / "persons.csv"
    path.write_bytes(path.read_bytes() + b"SECRETX" + random.Random(seed).randbytes(5000))  # noqa: S311
    refuses_records(refused, "persons.csv")


@pytest.mark.parametrize(
    "content",
    [
        PERSONS.encode("utf-16"),
        PERSONS.encode("utf-16-le"),
        PERSONS.replace("45", "SECRETX\u00fc").encode("latin-1"),
        PERSONS.replace("45", "4\x005").encode(),
        PERSONS.replace("45", '"45').encode(),
        PERSONS.replace("45", '4"5').encode(),
        PERSONS.replace("45", '"4"5').encode(),
        PERSONS.replace("45", "SECRETX" * 1_000_000).encode(),
        b"\n\n\n",
        b"\xef\xbb\xbf",
        b"\xef\xbb\xbf\n" + PERSONS.encode(),
        b"\n" + PERSONS.encode(),
        PERSONS.replace(",", ";").encode(),
        PERSONS.replace(",", "\t").encode(),
        PERSONS.encode()[:25],
    ],
    ids=[
        "utf-16", "utf-16 without bom", "latin-1", "nul", "quote unclosed", "quote inside", "text after quote",
        "endless line", "blank lines", "bom alone", "bom and blank line", "blank line first", "semicolons", "tabs",
        "cut header",
    ],
)  # fmt: skip
@pytest.mark.slow
def test_what_is_no_such_csv(place: Place, refused: Refused, content: bytes) -> None:
    (place.data / "persons.csv").write_bytes(content)
    refuses_records(refused, "persons.csv")


# --- columns and fields ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csv", "parquet"])
class TestColumns:
    def spoil(self, place: Place, form: str, header: str) -> str:
        """Give persons other columns; return the file's name."""
        path = place.data / "persons.csv"
        path.write_text(PERSONS.replace("RTYPE,MAFID,QAGE,CENHISP,CENRACE,RELSHIP", header))
        if form == "parquet":
            place.as_parquet("persons")
        return f"persons.{form}"

    def test_renamed(self, place: Place, refused: Refused, form: str) -> None:
        file = self.spoil(place, form, "RTYPE,MAFID,AGE,CENHISP,CENRACE,RELSHIP")
        refuses_records(refused, file, "QAGE")

    def test_missing(self, place: Place, refused: Refused, form: str) -> None:
        path = place.data / "persons.csv"
        path.write_text("\n".join(line.rpartition(",")[0] for line in PERSONS.split("\n")))
        if form == "parquet":
            place.as_parquet("persons")
        refuses_records(refused, f"persons.{form}", "RELSHIP")


def test_a_column_twice(place: Place, refused: Refused) -> None:
    place.replace("persons", "CENRACE,RELSHIP", "CENRACE,RELSHIP,RELSHIP")
    refuses_records(refused, "persons.csv")


def test_no_header(place: Place, refused: Refused) -> None:
    (place.data / "persons.csv").write_text(PERSONS.partition("\n")[2])
    refuses_records(refused, "persons.csv", "RTYPE")


@pytest.mark.parametrize(
    ("spoiled", "end"),
    [
        ("3,456700001,44,2,07", "\r\n"),
        ("3", "\n"),
        ("3,456700001,44,2,07,21,SECRETX", "\n"),
        ("3,456700001,44,2,07,21,", "\r\n"),
    ],
    ids=["short", "one field", "long", "comma at the end"],
)
def test_a_row_of_the_wrong_length(place: Place, refused: Refused, spoiled: str, end: str) -> None:
    text = PERSONS.replace("3,456700001,44,2,07,21", spoiled).replace("\n", end)
    (place.data / "persons.csv").write_bytes(text.encode())
    refuses_records(refused, "persons.csv", "line 3", "fields")


BAD_VALUES = [
    ("persons", "RTYPE", ("2", "4", "", "SECRETX", "03")),
    ("persons", "MAFID", ("100000000", "900000000", "987654321", "", "SECRETX", "456700001.0", "99999999999999999999")),
    ("persons", "QAGE", ("116", "117999", "-1", "", "SECRETX", "45.5", "4e1", "0x2d", "nan", " 45", "+45", "4_5")),
    ("persons", "CENHISP", ("0", "3", "", "true")),
    ("persons", "CENRACE", ("00", "64", "1", "001", "", "-1", "SECRETX")),
    ("persons", "RELSHIP", ("19", "39", "", "SECRETX")),
    ("units", "RTYPE", ("1", "3", "")),
    ("units", "MAFID", ("100000000", "987654321", "")),
    ("units", "FINAL_POP", ("100000", "117999", "-1", "", "3.0")),
    ("units", "NPF", ("1", "98", "", "SECRETX")),
    ("units", "HHSPAN", ("3", "")),
    ("units", "HHRACE", ("64", "1", "")),
    ("units", "TEN", ("5", "")),
    ("units", "HHT", ("8", "")),
    ("units", "HHT2", ("13", "1", "")),
    ("units", "CPLT", ("6", "")),
    ("geo", "RTYPE", ("5", "3", "")),
    ("geo", "MAFID", ("987654321", "")),
    ("geo", "TABBLKST", ("6", "006", "", "CA", "AA")),
    ("geo", "TABBLKCOU", ("1", "0001", "")),
    ("geo", "TABTRACTCE", ("4001", "4001000", "4001.0")),
    ("geo", "TABBLK", ("100", "10000", "-100")),
    ("geo", "TABBLKGRPCE", ("", "10", "A")),
    ("geo", "REGIONCE", ("5", "0", "")),
    ("geo", "DIVISIONCE", ("10", "")),
    ("geo", "PLACEFP", ("9999", "")),
    ("geo", "AIANNHCE", ("99999", "999", "")),
]


@pytest.mark.parametrize("name", ["persons", "units", "geo"])
def test_values_outside_their_domain(place: Place, refused: Refused, name: str) -> None:
    # A copy of line 3 for each bad value, at the end of the file.
    path = place.data / f"{name}.csv"
    lines = path.read_text().rstrip().split("\n")
    row, header = lines[2].split(","), lines[0].split(",")
    expected = []
    for column, values in [(column, values) for file, column, values in BAD_VALUES if file == name]:
        numbers = [len(lines) + 1 + number for number in range(len(values))]
        expected.append(rf"{name}.csv: domain: {column} must be .*; lines? {', '.join(map(str, numbers))}$")
        place_of = header.index(column)
        lines += [",".join([*row[:place_of], value, *row[place_of + 1 :]]) for value in values]
    path.write_text("\n".join(lines) + "\n")
    said = refused(verb="validate")
    for pattern in expected:
        assert re.search(pattern, said, re.MULTILINE), (pattern, said)


def test_a_bad_value_is_not_repeated_by_later_rules(place: Place, refused: Refused) -> None:
    place.set_field("units", 2, "MAFID", "987654321")
    place.set_field("persons", 2, "QAGE", "117999")
    place.set_field("persons", 3, "RELSHIP", "SECRETX")
    refuses_records(refused, "units.csv: domain: MAFID", "persons.csv: domain: QAGE", "persons.csv: domain: RELSHIP")


@pytest.mark.parametrize("row_end", ["\n", "\r\n"])
def test_the_line_is_right_below_blank_lines(place: Place, refused: Refused, row_end: str) -> None:
    lines = PERSONS.replace("33", "117999").rstrip().split("\n")
    text = row_end.join([*lines[:3], "", "", *lines[3:]])
    (place.data / "persons.csv").write_bytes(text.encode())
    # Either the blank lines are refused, or they are passed over and counted as lines.
    said = refused("persons.csv", verb="validate")
    assert "lines 4, 5" in said or "line 4" in said or "line 8" in said, said


def test_blank_lines_at_the_end_do_no_harm(place: Place) -> None:
    for name, text in (("persons", PERSONS), ("units", UNITS), ("geo", GEO)):
        (place.data / f"{name}.csv").write_text(text + "\n\n")
    assert main(place.arguments("validate")) == 0


@pytest.mark.thorough
def test_the_line_is_right_in_a_long_file(place: Place, refused: Refused) -> None:
    # Long enough to be read in several pieces at once.
    rows = ["3,456700001,44,2,07,28"] * 300_000
    rows[250_000] = "3,456700001,117999,2,07,28"
    rows[299_999] = "3,456700001,117999,2,07,28"
    (place.data / "persons.csv").write_text(PERSONS + "\n".join(rows) + "\n")
    refused("QAGE", "2 records", "lines 250007, 300006", verb="validate")


def test_at_most_twenty_lines_are_listed(place: Place, refused: Refused) -> None:
    (place.data / "persons.csv").write_text(PERSONS + "3,456700001,117999,2,07,28\n" * 30)
    # The whole list up to its mark of more: a number alone could also stand in the path of the data.
    refused("30 records", "lines " + ", ".join(map(str, range(7, 27))) + ", ...", verb="validate")


@pytest.mark.slow
def test_all_faults_are_named_in_one_pass(place: Place, refused: Refused) -> None:
    place.set_field("persons", 2, "QAGE", "117999")
    place.set_field("persons", 3, "CENRACE", "SECRETX")
    place.set_field("units", 3, "TEN", "9")
    place.set_field("geo", 4, "TABBLKST", "AA")
    refuses_records(
        refused, "QAGE", "CENRACE", "TEN", "TABBLKST", "line 2", "line 3", "line 4", verbs=("run", "validate")
    )


# --- between files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["units", "geo"])
def test_a_mafid_twice(place: Place, refused: Refused, name: str) -> None:
    path = place.data / f"{name}.csv"
    path.write_text(path.read_text() + path.read_text().split("\n")[2] + "\n")
    refuses_records(refused, f"{name}.csv: unique_mafid", "lines 3, 6")


def test_a_person_without_unit(place: Place, refused: Refused) -> None:
    place.set_field("persons", 3, "MAFID", "456799999")
    refuses_records(refused, "persons.csv: person_has_unit", "line 3")


def test_a_unit_without_geography(place: Place, refused: Refused) -> None:
    place.replace("geo", "2,456700002,06,001,400100,1000,1,4,9,99999,9999\n", "")
    refuses_records(refused, "units.csv: unit_has_geography", "line 3")


def test_geography_without_unit(place: Place, refused: Refused) -> None:
    place.replace("units", "2,456700004,0,0,0,00,0,0,00,0\n", "")
    refuses_records(refused, "geo.csv: geography_has_unit", "line 5")


def test_a_state_outside_the_filter(place: Place, refused: Refused) -> None:
    place.configure("state_filter", ["06", "48"])
    refuses_records(refused, "geo.csv: state_in_filter", "TABBLKST", "line 5")


BROKEN_RULES = [
    ("one_householder", "units.csv", 2, ("persons", 2, "RELSHIP", "28")),
    ("one_householder", "units.csv", 2, ("persons", 3, "RELSHIP", "20")),
    ("householder_race", "units.csv", 3, ("units", 3, "HHRACE", "05")),
    ("householder_race", "units.csv", 3, ("units", 3, "HHSPAN", "1")),
    ("record_types", "units.csv", 2, ("persons", 4, "RTYPE", "5")),
    ("record_types", "units.csv", 4, ("persons", 6, "RTYPE", "3")),
    ("group_quarters_relationship", "persons.csv", 3, ("persons", 3, "RELSHIP", "37")),
    ("group_quarters_relationship", "persons.csv", 4, ("persons", 4, "RELSHIP", "38")),
    ("final_pop", "units.csv", 2, ("units", 2, "FINAL_POP", "4")),
    ("final_pop", "units.csv", 5, ("units", 5, "FINAL_POP", "1")),
    *(("zero_codes", "units.csv", 2, ("units", 2, column, "0")) for column in ("HHSPAN", "TEN", "HHT", "CPLT")),
    *(("zero_codes", "units.csv", 2, ("units", 2, column, "00")) for column in ("HHRACE", "HHT2")),
    *(("zero_codes", "units.csv", 4, ("units", 4, column, "1")) for column in ("HHSPAN", "TEN", "HHT", "CPLT")),
    *(("zero_codes", "units.csv", 5, ("units", 5, column, "02")) for column in ("HHRACE", "HHT2")),
    ("own_child", "units.csv", 2, ("units", 2, "HHT2", "02")),
    ("own_child", "units.csv", 2, ("persons", 4, "QAGE", "18")),
    ("own_child", "units.csv", 2, ("persons", 4, "RELSHIP", "30")),
    ("own_child", "units.csv", 3, ("units", 3, "HHT2", "06")),
    ("couple", "units.csv", 2, ("units", 2, "CPLT", "5")),
    ("couple", "units.csv", 2, ("units", 2, "CPLT", "2")),
    ("couple", "units.csv", 2, ("persons", 3, "RELSHIP", "22")),
    ("couple", "units.csv", 3, ("units", 3, "CPLT", "4")),
    ("couple_type", "units.csv", 2, ("units", 2, "HHT2", "03")),
    ("couple_type", "units.csv", 2, ("units", 2, "HHT2", "06")),
    ("couple_type", "units.csv", 2, ("units", 2, "CPLT", "3")),
    ("couple_type", "units.csv", 3, ("units", 3, "CPLT", "1")),
    ("couple_type", "units.csv", 3, ("units", 3, "HHT2", "04")),
    ("family_type", "units.csv", 2, ("units", 2, "HHT", "4")),
    ("family_type", "units.csv", 2, ("units", 2, "HHT2", "10")),
    ("family_type", "units.csv", 3, ("units", 3, "HHT", "1")),
    ("geo_record_type", "geo.csv", 2, ("geo", 2, "RTYPE", "4")),
    ("geo_record_type", "geo.csv", 4, ("geo", 4, "RTYPE", "2")),
    ("geo_record_type", "geo.csv", 5, ("units", 5, "RTYPE", "4")),
]


def test_every_rule_of_consistency_is_broken_below_and_may_have_a_policy() -> None:
    assert {rule for rule, *_ in BROKEN_RULES} == set(RULES_OF_CONSISTENCY)
    assert {rule.name for rule in RULES if not rule.remark} == set(RULES_OF_CONSISTENCY)


def test_each_rule_of_consistency_is_told_where_it_is_broken(place: Place, refused: Refused) -> None:
    # A copy of the records for each change, under other keys.
    sizes = {"persons": 5, "units": 4, "geo": 4}
    rows: dict[str, list[str]] = {"persons": [], "units": [], "geo": []}
    expected: dict[tuple[str, str], list[int]] = {}
    for number, (rule, file, line, (name, at, column, value)) in enumerate(BROKEN_RULES):
        place.write_records()
        place.set_field(name, at, column, value)
        for of, found in rows.items():
            copied = (place.data / f"{of}.csv").read_text().rstrip().split("\n")[1:]
            found += [row.replace("45670000", f"4567{number:02}00") for row in copied]
        expected.setdefault((file, rule), []).append(line + sizes[file.removesuffix(".csv")] * number)
    for name, text in (("persons", PERSONS), ("units", UNITS), ("geo", GEO)):
        (place.data / f"{name}.csv").write_text("\n".join([text.partition("\n")[0], *rows[name]]) + "\n")
    said = refused(verb="validate")
    findings = re.findall(r"^(?:.*/)?(\w+\.csv): (\w+): .*; lines? ([\d, ]+)", said, re.MULTILINE)
    told = {(file, rule): {int(line) for line in re.findall(r"\d+", lines)} for file, rule, lines in findings}
    for broken, due in expected.items():
        assert set(due) <= told[broken], (broken, due, told[broken])


def test_a_policy_for_one_rule_does_not_excuse_another(place: Place, refused: Refused) -> None:
    place.configure("consistency", {"final_pop": "drop-and-count"})
    place.set_field("units", 2, "CPLT", "2")
    refuses_records(refused, "couple", "line 2")


@pytest.mark.slow
def test_dropped_units_are_told_of_without_their_values(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.configure("consistency", {"couple": "drop-and-count"})
    place.set_field("units", 2, "CPLT", "2")
    assert main(place.arguments("validate")) == 0
    assert main(place.arguments("run")) == 0
    printed = capsys.readouterr()
    assert "couple" in printed.out
    assert "dropped" in printed.out
    written = [path.read_text() for path in (*place.out.iterdir(), place.out.with_name("out.confidential.log"))]
    assert not any(CANARIES.search(text) for text in (printed.out, printed.err, *written))
    manifest = json.loads((place.out / "manifest.json").read_text())
    assert manifest["parameters"]["consistency"] == dict.fromkeys(RULES_OF_CONSISTENCY, "fail") | {
        "couple": "drop-and-count"
    }
    assert {"truncation", "group quarters"} < set(manifest["parameters"]["left_out"])
    log = json.loads(place.out.with_name("out.confidential.log").read_text())
    assert (log["dropped_units"], log["dropped_persons"]) == (1, 3)


@pytest.mark.parametrize("order", ["kept", "reversed"])
@pytest.mark.thorough
def test_a_unit_that_only_geography_calls_group_quarters_is_dropped_by_its_policy(place: Place, order: str) -> None:
    # Whether keys are compared in order or joined must not matter.
    place.configure("consistency", {"geo_record_type": "drop-and-count"})
    place.set_field("geo", 2, "RTYPE", "4")
    if order == "reversed":
        path = place.data / "geo.csv"
        head, *lines = path.read_text().splitlines()
        path.write_text("\n".join([head, *reversed(lines)]) + "\n")
    assert main(place.arguments("exact")) == 2  # the records are not marked as synthetic
    (place.data / "SYNTHETIC").touch()
    assert main(place.arguments("exact")) == 0
    log = json.loads(place.out.with_name("out.confidential.log").read_text())
    assert (log["dropped_units"], log["dropped_persons"]) == (1, 3)
    counted = (place.out / "PH1_num.csv").read_text().splitlines()[1:]
    assert sum(int(row.split("|")[4]) for row in counted if row.startswith("1|USA|*|")) == 1


def test_relatives_where_there_is_no_family_are_told_of(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.set_field("units", 2, "HHT", "5")
    place.set_field("units", 2, "HHT2", "12")
    place.set_field("units", 2, "CPLT", "5")
    place.set_field("persons", 3, "RELSHIP", "28")
    place.set_field("persons", 4, "RELSHIP", "36")
    assert main(place.arguments("validate")) == 0
    said = capsys.readouterr().out
    assert "relatives_outside_family" in said
    assert "1 record; line 2 (a remark" in said


# --- Parquet --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9999])
def test_a_truncated_parquet_file(place: Place, refused: Refused, share: float) -> None:
    path = place.as_parquet("persons")
    content = path.read_bytes()
    path.write_bytes(content[: min(len(content) - 1, math.ceil(len(content) * share))])
    refuses_records(refused, "persons.parquet")


@pytest.mark.slow
def test_parquet_of_the_right_ends_and_nothing_sound_between(place: Place, refused: Refused) -> None:
    path = place.as_parquet("persons")
    for length in (0, 40, 1 << 31):
        path.write_bytes(b"PAR1" + b"SECRETX" * 20 + struct.pack("<I", length) + b"PAR1")
        refuses_records(refused, "persons.parquet")


def test_a_csv_file_named_parquet(place: Place, refused: Refused) -> None:
    (place.data / "persons.csv").rename(place.data / "persons.parquet")
    refuses_records(refused, "persons.parquet")


@pytest.mark.parametrize("tries", [4, pytest.param(25, marks=pytest.mark.thorough)])
@pytest.mark.slow
def test_damaged_parquet_never_ends_in_a_fault(place: Place, capsys: pytest.CaptureFixture[str], tries: int) -> None:
    path = place.as_parquet("persons")
    content = path.read_bytes()
    dice = random.Random(1)  # noqa: S311
    for _ in range(tries):
        damaged = bytearray(content)
        for _ in range(dice.choice((1, 1, 4))):
            damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        path.write_bytes(bytes(damaged))
        status = main(place.arguments("validate"))
        printed = capsys.readouterr()
        assert status in {0, 2}, printed.err
        if status:
            assert_proper_refusal(status, printed.out, printed.err)
    place.assert_nothing_left()


@pytest.mark.parametrize("kind", ["DOUBLE", "BOOLEAN", "DECIMAL(5, 2)", "HUGEINT", "BLOB", "STRUCT(a INTEGER)"])
def test_a_parquet_column_of_the_wrong_type(place: Place, refused: Refused, kind: str) -> None:
    values = {"STRUCT(a INTEGER)": "{'a': 1}"}
    values |= {"BOOLEAN": "true", "BLOB": "QAGE::BLOB"}
    place.as_parquet("persons", QAGE=values.get(kind, f"CAST(QAGE AS {kind})"))
    refuses_records(refused, "persons.parquet: column_type", "QAGE", "text or an integer")


@pytest.mark.parametrize(
    ("kind", "values"),
    [("VARCHAR", ["NULL", "'SECRETX'", "''"]), ("BIGINT", ["NULL", "117999", "-1", "9223372036854775807"])],
)
def test_parquet_values_outside_their_domain(
    place: Place, refused: Refused, kind: str, values: tuple[str, ...]
) -> None:
    spoiled = " ".join(f"WHEN '{age}' THEN {value}" for age, value in zip((45, 44, 9, 70), values, strict=False))
    place.as_parquet("persons", QAGE=f"CASE QAGE {spoiled} ELSE CAST(QAGE AS {kind}) END")
    rows = ", ".join(str(number + 1) for number in range(len(values)))
    refuses_records(refused, "persons.parquet: domain: QAGE", f"rows {rows}\n")


@pytest.mark.slow
def test_parquet_without_rows(place: Place, refused: Refused) -> None:
    (place.data / "units.csv").write_text(UNITS.split("\n", maxsplit=1)[0] + "\n")
    place.as_parquet("units")
    refuses_records(refused, "units.parquet: not_empty")


# --- the configuration ----------------------------------------------------------------------------------------------


def refuses_config(refused: Refused, *needles: str, verbs: tuple[str, ...] = ("run",)) -> None:
    for verb in verbs:
        refused("config.json", *needles, verb=verb)


@pytest.mark.parametrize(
    "content",
    [b"", b"SECRETX", b"\xff\xfe\x00", b"[" * 100_000, b"\x00" * 10, b"{} {}"],
)
def test_a_configuration_that_is_no_json(place: Place, refused: Refused, content: bytes) -> None:
    place.config.write_bytes(content)
    refused("config.json", verb="run")


def test_json_is_faulted_by_line_and_column(place: Place, refused: Refused) -> None:
    place.config.write_text('{\n "tau": {"PH2": 3,}\n}')
    refuses_config(refused, "line 2", "column")


@pytest.mark.parametrize("document", [[], None, 1, "text", True, {}])
def test_a_configuration_of_another_shape(place: Place, refused: Refused, document: object) -> None:
    place.write_config(document)
    refuses_config(refused, "privacy_budget")


def test_a_configuration_that_is_missing_or_a_folder(place: Place, refused: Refused) -> None:
    place.config.unlink()
    refuses_config(refused, "no such file")
    place.config.mkdir()
    refuses_config(refused, "folder")


@pytest.mark.parametrize(
    "entry",
    [
        *("privacy_budget", "tau", "state_filter", "reader", "privacy_defn"),
        *("privacy_budget.PH3", "privacy_budget.PH2.usa_*", "privacy_budget.PH1_denom.state_H,I"),
        *("tau.PH6", "tau.PH1_num"),
    ],
)
def test_a_missing_key(place: Place, refused: Refused, entry: str) -> None:
    place.configure(entry, ...)
    refuses_config(refused, *entry.split("."), "missing")


@pytest.mark.parametrize(
    "entry",
    ["typo", "Tau", "privacy_budget.PH9", "privacy_budget.PH5_num", "privacy_budget.PH2.usa_A-G", "tau.PH1_denom",
     "tau.ph2", "consistency.npf"],
)  # fmt: skip
def test_an_unknown_key(place: Place, refused: Refused, entry: str) -> None:
    place.configure(entry, {} if entry.count(".") == 1 and "budget" in entry else 3)
    refuses_config(refused, entry.rpartition(".")[2], "unknown")


def test_a_key_twice(place: Place, refused: Refused) -> None:
    place.config.write_text(place.config.read_text().replace('"PH6": 6', '"PH6": 6, "PH6": 1'))
    refuses_config(refused, "PH6", "twice")


@pytest.mark.parametrize(
    "budget",
    [-1, -0.0001, "-1/2", math.nan, -math.inf, None, True, "", "much", "1/0", "0x1", "1,5", [0.1], {"rho": 1}, "NaN"],
)
def test_a_budget_that_is_none(place: Place, refused: Refused, budget: object) -> None:
    place.configure("privacy_budget.PH4.state_H,I", budget)
    refuses_config(refused, "privacy_budget.PH4.state_H,I")


@pytest.mark.parametrize("budget", ["1e-999", "1e-300", "1e-40", "1/" + "9" * 400, "1/" + "9" * 5000, "9" * 5000])
def test_a_budget_beyond_all_measure(place: Place, refused: Refused, budget: str) -> None:
    place.configure("privacy_budget.PH4.state_H,I", budget)
    refused("PH4", verb="run")


@pytest.mark.parametrize("budget", ["1e999", "9" * 400])
def test_a_budget_of_almost_no_noise_does_no_harm(place: Place, budget: str) -> None:
    place.configure("privacy_budget.PH4.state_H,I", budget)
    for verb in ("plan", "run"):
        assert main(place.arguments(verb)) in {0, 2}


def test_budgets_of_zero_everywhere(place: Place, refused: Refused) -> None:
    none = {table: dict.fromkeys(levels, 0) for table, levels in CONFIG["privacy_budget"].items()}
    place.configure("privacy_budget", none)
    refused("privacy_budget", verb="run")


@pytest.mark.parametrize("level", ["PH1_num", "PH2"])
@pytest.mark.parametrize("budgets", [None, 1, [], "text"])
def test_budgets_of_a_table_that_are_no_object(place: Place, refused: Refused, level: str, budgets: object) -> None:
    place.configure(f"privacy_budget.{level}", budgets)
    refuses_config(refused, f"privacy_budget.{level}")


@pytest.mark.parametrize("tau", [0, -1, True, False, 2.5, 3.0, "3", None, [], {}, math.nan, math.inf, 10**9])
def test_a_threshold_that_is_none(place: Place, refused: Refused, tau: object) -> None:
    place.configure("tau.PH3", tau)
    refuses_config(refused, "tau.PH3")


def test_a_threshold_of_five_thousand_digits(place: Place, refused: Refused) -> None:
    place.config.write_text(place.config.read_text().replace('"PH6": 6', f'"PH6": {"9" * 5000}'))
    refuses_config(refused, "tau.PH6")


@pytest.mark.parametrize(
    ("states", "said"),
    [
        (["06", "06", "17"], "'06'"),
        (["06", "17", "72"], "72"),
        (["06", "03"], "'03'"),
        (["06", "57"], "'57'"),
        (["6"], "'6'"),
        (["CA"], "'CA'"),
        ([], "list"),
        ("06", "list"),
        ({"06": 1}, "list"),
        ([6, 17], "texts"),
        ([None], "texts"),
        ([["06"]], "texts"),
        (None, "list"),
    ],
)
def test_a_state_filter_that_cannot_be(place: Place, refused: Refused, states: object, said: str) -> None:
    place.configure("state_filter", states)
    refuses_config(refused, "state_filter", said)


def test_puerto_rico_has_no_nation(place: Place, refused: Refused) -> None:
    place.configure("state_filter", ["72"])
    refuses_config(refused, "Puerto Rico is part of no nation", "PH1_num.usa_A-G", "PH8_denom.usa_*")
    assert "state_*" not in refused(verb="plan")


@pytest.mark.sampled(10)
@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("reader", value) for value in ("spark", "CSV", "", 1, None, ["csv"], {"csv": 1})),
        *(("privacy_defn", value) for value in ("dp", "zCDP", "", 1, None, ["zcdp"], {})),
        *(("truncation_key", value) for value in (1, None, ["key"], True, "\ud800")),
        *(("consistency", value) for value in (None, [], "fail", 1)),
        *(("consistency.couple", value) for value in ("drop", "", None, True, ["fail"], {})),
    ],
)
def test_another_key_of_no_meaning(place: Place, refused: Refused, key: str, value: object) -> None:
    place.configure(key, value)
    refuses_config(refused, key)


def test_all_faults_of_a_configuration_are_named_at_once(place: Place, refused: Refused) -> None:
    document = json.loads(json.dumps(CONFIG))
    document["tau"]["PH2"] = 0
    document["privacy_budget"]["PH7"]["usa_*"] = -1
    document["state_filter"] = ["06", "06"]
    document["other"] = 1
    place.write_config(document)
    needles = ("tau.PH2", "privacy_budget.PH7.usa_*", "'06'", "'other'")
    refuses_config(refused, *needles, verbs=("plan", "validate", "run"))


# --- the place of the output ----------------------------------------------------------------------------------------


def test_an_output_that_is_not_empty(place: Place, refused: Refused) -> None:
    place.out.mkdir()
    (place.out / "mine.txt").write_text("mine")
    for options in ((), ("--overwrite",)):
        refused(str(place.out), options=options, leaves_nothing=False)
        assert {path.name for path in place.out.parent.rglob("*")} == {"out", "mine.txt"}
        assert (place.out / "mine.txt").read_text() == "mine"


def test_an_output_that_is_a_file(place: Place, refused: Refused) -> None:
    place.out.write_text("mine")
    for options in ((), ("--overwrite",)):
        refused(str(place.out), options=options, leaves_nothing=False)
        assert place.out.read_text() == "mine"


@pytest.mark.parametrize("below", ["results/file/out", "/proc/out", "/proc/1/out/deep", "/dev/null/out"])
def test_an_output_that_cannot_be_made(place: Place, capsys: pytest.CaptureFixture[str], below: str) -> None:
    (place.out.parent / "file").write_text("mine")
    out = place.root / below
    status = main(["phsafe", "run", str(place.config), str(place.data), str(out)])
    printed = capsys.readouterr()
    assert_proper_refusal(status, printed.out, printed.err)
    assert str(out) in printed.err
    assert [path.name for path in place.out.parent.iterdir()] == ["file"]
    place.assert_no_scratch()


def test_a_name_too_long_for_a_folder(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["phsafe", "run", str(place.config), str(place.data), str(place.out.parent / ("o" * 250))])
    printed = capsys.readouterr()
    assert_proper_refusal(status, printed.out, printed.err)
    place.assert_nothing_left()


@pytest.mark.parametrize("option", [("--log", "/"), ("--report", "/"), ("--ledger", "/", "--dataset", "D")])
def test_a_folder_is_no_place_for_a_file(
    place: Place, option: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["phsafe", "run", str(place.config), str(place.data), str(place.out), *option])
    printed = capsys.readouterr()
    assert_proper_refusal(status, printed.out, printed.err)
    place.assert_nothing_left()


def test_the_records_are_never_overwritten(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    for out in (place.data, place.root, Path("/")):
        status = main(["phsafe", "run", str(place.config), str(place.data), str(out), "--overwrite"])
        printed = capsys.readouterr()
        assert_proper_refusal(status, printed.out, printed.err)
    assert (place.data / "persons.csv").read_text() == PERSONS
    place.assert_nothing_left()


@pytest.mark.parametrize("log", ["/dev/full", "/proc/log", "missing/folder/log", "results"])
def test_a_log_that_cannot_be_written(place: Place, refused: Refused, log: str) -> None:
    refused(str(place.root / log), options=("--log", str(place.root / log)))


@pytest.mark.parametrize(
    "log", ["results/out/log", "results/out", "results/out/manifest.json", "results/out.partial/a"]
)
def test_a_log_within_the_release(place: Place, refused: Refused, log: str) -> None:
    # It holds confidential counts; the release is published.
    refused("log", options=("--log", str(place.root / log)))


@pytest.mark.parametrize("log", ["data/persons.csv", "data/geo.csv", "config.json"])
def test_a_log_in_place_of_an_input(place: Place, refused: Refused, log: str) -> None:
    before = (place.root / log).read_bytes()
    refused("log", options=("--log", str(place.root / log)))
    assert (place.root / log).read_bytes() == before


def test_a_log_in_place_of_the_ledger(place: Place, refused: Refused) -> None:
    # The log is written last: it would make the ledger forget what was spent.
    ledger = str(place.root / "ledger")
    refused("log", options=("--ledger", ledger, "--dataset", "d", "--log", ledger))


@pytest.mark.parametrize("options", [("--ledger", "L"), ("--dataset", "d"), ("--limit", "1")])
def test_half_a_ledger(refused: Refused, options: tuple[str, ...]) -> None:
    refused("--ledger", options=options)


@pytest.mark.parametrize("content", [b"SECRETX", b'{"format": "yupana-ledger-1"}', b"\xff\x00"])
def test_a_ledger_that_is_none(place: Place, refused: Refused, content: bytes) -> None:
    ledger = place.root / "ledger"
    ledger.write_bytes(content)
    refused(str(ledger), options=("--ledger", str(ledger), "--dataset", "d"))
    assert ledger.read_bytes() == content


@pytest.mark.parametrize("path", ["/proc/ledger", "missing/ledger", "results"])
def test_a_ledger_that_cannot_be_written(place: Place, refused: Refused, path: str) -> None:
    refused(path, options=("--ledger", str(place.root / path), "--dataset", "d"), leaves_nothing=path != "results")
    assert not place.out.exists()


@pytest.mark.slow
def test_a_run_past_the_limit(place: Place, refused: Refused) -> None:
    ledger = place.root / "ledger"
    refused("limit", options=("--ledger", str(ledger), "--dataset", "d", "--limit", "0.1"))
    assert not ledger.exists()


@pytest.mark.parametrize(
    "options",
    [("--format", "xls"), ("--seed", "-1"), ("--seed", "x"), ("--confidence", "1"), ("--confidence", "nan"),
     ("--sensitivity", "loose"), ("--unknown",), ("--limit", "-1"), ("--limit", "nan"), ("more",)],
)  # fmt: skip
def test_an_option_of_no_meaning(refused: Refused, options: tuple[str, ...]) -> None:
    refused(options[0], options=options)


# --- full disks, signals and kills ----------------------------------------------------------------------------------


def start(
    place: Place, arguments: list[str], program: str = "", preexec: Callable[[], None] | None = None
) -> "subprocess.Popen[str]":
    """Start the command line in a process of its own, with a program to run first."""
    code = f"import sys\nfrom yupana.cli.main import main\n{program}\nsys.exit(main(sys.argv[1:]))"
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(place.temporary)},
        preexec_fn=preexec,  # noqa: PLW1509 (it sets a limit, nothing else)
    )


def finish(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    folder.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(mount, check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("a small file system cannot be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize(("form", "size"), [("csv", "4k"), ("parquet", "16k"), ("csv", "40k")])
@pytest.mark.slow
def test_a_full_disk(place: Place, refused: Refused, form: str, size: str) -> None:
    with small_disk(place.out.parent, size):
        refused(str(place.out), options=("--format", form), leaves_nothing=False)
        place.assert_only_draws_left()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.thorough
def test_a_file_that_may_not_grow(place: Place, form: str) -> None:
    # As full disks are felt where none can be mounted: no file may pass 700 bytes.
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (700, 700))

    process = start(place, place.arguments("run", "--format", form), preexec=limit)
    assert_proper_refusal(*finish(process))
    place.assert_only_draws_left()


@pytest.mark.thorough
def test_a_full_screen(place: Place) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", "from yupana.cli.start import entry; entry()", *place.arguments("plan")],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=os.environ | {"TMPDIR": str(place.temporary)},
        )
    assert_proper_refusal(done.returncode, "", done.stderr)
    place.assert_nothing_left()


LONG_WAIT = """
import time
import yupana.release.tables as module
write = module.write_parts
def slow(db, path, parts):
    write(db, path, parts)
    print("written", file=sys.stderr, flush=True)
    time.sleep(30)
    return path
module.write_parts = slow
"""


def wait_for(process: "subprocess.Popen[str]", text: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if text in line:
            return
    raise AssertionError(f"ended without saying {text}")


def many_records(place: Place) -> None:
    """Records enough to keep the database busy for about half a second."""
    units = range(456_700_000, 456_740_000)
    (place.data / "persons.csv").write_text(
        PERSONS.split("\n", maxsplit=1)[0]
        + "\n"
        + "".join(f"3,{u},45,1,01,20\n3,{u},45,1,01,34\n3,{u},9,1,01,35\n" for u in units)
    )
    (place.data / "units.csv").write_text(
        UNITS.split("\n", maxsplit=1)[0] + "\n" + "".join(f"2,{u},3,0,1,01,1,5,12,5\n" for u in units)
    )
    (place.data / "geo.csv").write_text(
        GEO.split("\n", maxsplit=1)[0] + "\n" + "".join(f"2,{u},06,001,400100,1000,1,4,9,99999,9999\n" for u in units)
    )


@pytest.mark.sampled(1)
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.slow
def test_a_signal_while_records_are_read(place: Place, sent: signal.Signals) -> None:
    many_records(place)
    process = start(place, place.arguments("run"))
    wait_for(process, "reading")
    time.sleep(0.1)
    process.send_signal(sent)
    status, out, err = finish(process)
    assert_proper_refusal(status, out, err)
    assert "interrupted" in err
    # The records may have been read before the signal came.
    if "go on with --resume" in err:
        place.assert_only_draws_left()
    else:
        place.assert_nothing_left()


@pytest.mark.thorough
def test_a_kill_while_records_are_read_leaves_a_place_for_the_next_run(place: Place) -> None:
    many_records(place)
    process = start(place, place.arguments("run"))
    wait_for(process, "reading")
    time.sleep(0.1)
    process.kill()
    finish(process)
    assert [path.name for path in place.out.parent.iterdir()] == ["out.partial"]
    place.write_records()
    assert main(place.arguments("run")) == 0
    assert {path.name for path in place.out.parent.iterdir()} == {"out", "out.confidential.log"}
    # Python may have been killed at its own test of the temporary folder, so only ours is looked at.
    assert list(place.temporary.glob("yupana-*/*")) == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize("answer", ["--resume", "--overwrite"])
@pytest.mark.slow
def test_a_kill_while_tables_are_written_leaves_draws_to_go_on_with(
    place: Place, refused: Refused, answer: str
) -> None:
    process = start(place, place.arguments("run"), LONG_WAIT)
    wait_for(process, "written")
    process.kill()
    finish(process)
    assert {path.name for path in place.out.parent.iterdir()} == {"out.partial", "out.checkpoint"}
    refused("out.checkpoint holds noisy counts of an interrupted run", answer, leaves_nothing=False)
    assert main(place.arguments("run", answer)) == 0
    assert {path.name for path in place.out.parent.iterdir()} == {"out", "out.confidential.log"}
    place.assert_no_scratch()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.slow
def test_a_signal_while_tables_are_written_keeps_the_earlier_release(place: Place, sent: signal.Signals) -> None:
    assert main(place.arguments("run")) == 0
    before = {path.name: path.read_bytes() for path in place.out.iterdir()}
    process = start(place, place.arguments("run", "--overwrite"), LONG_WAIT)
    wait_for(process, "written")
    process.send_signal(sent)
    status, out, err = finish(process)
    assert_proper_refusal(status, out, err)
    assert "interrupted" in err
    assert "go on with --resume" in err
    assert {path.name for path in place.out.parent.iterdir()} == {"out", "out.confidential.log", "out.checkpoint"}
    assert {path.name: path.read_bytes() for path in place.out.iterdir()} == before
    place.assert_no_scratch()
    assert main(place.arguments("run", "--resume", "--overwrite")) == 0


@pytest.mark.thorough
def test_ctrl_c_at_the_very_start_prints_no_traceback(place: Place) -> None:
    for delay in (0.05, 0.1, 0.2):
        process = subprocess.Popen(
            [Path(sys.executable).with_name("yupana"), *place.arguments("run")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"TMPDIR": str(place.temporary)},
        )
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        _, out, err = finish(process)
        assert out == ""
        # Nothing of ours can answer before it has imported what it needs for that.
        seen = set(re.findall(r'File ".*/src/yupana/(.*)", line \d+', err))
        assert seen <= {"__init__.py", "version.py", "cli/__init__.py", "cli/start.py"}, err
