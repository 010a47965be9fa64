"""What `yupana spine` refuses: each named, with status 2, and nothing written."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from reference_maker import BLOCKS
from spine_maker import COLUMNS, Block, write_reference

from yupana.cli.main import main


@pytest.fixture
def refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command that must be refused; returns what it says."""

    def run(*arguments: str, out: str = "out") -> str:
        capsys.readouterr()
        try:
            status = main(["spine", *arguments])
        except SystemExit as exit_:
            status = int(str(exit_.code))
        assert status == 2
        assert not (tmp_path / out).exists()
        assert not (tmp_path / f"{out}.partial").exists()
        said = capsys.readouterr()
        assert said.out == ""
        return said.err

    return run


def build(tmp_path: Path, *options: str, kind: str = "optimized") -> list[str]:
    return ["build", str(tmp_path / "grfc.txt"), str(tmp_path / "out"), "--kind", kind, *options]


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


Changed = Callable[[list[str]], list[str]]

BAD_REFERENCES: dict[str, tuple[Changed, list[str]]] = {
    "a block twice": (lambda rows: [*rows, rows[3]], ["line 14", "listed twice", "line 4", "1703100100011002"]),
    "parts that disagree": (
        lambda rows: [rows[0], rows[1].replace("|1|1000|", "|2|1000|"), *rows[2:]],
        ["line 2", "TABBLKGRPCE", "disagrees"],
    ),
    "no county": (lambda rows: [*rows[:2], rows[2].replace("|031|", "||"), *rows[3:]], ["line 3", "TABBLKCOU"]),
    "no tract": (lambda rows: [*rows[:2], rows[2].replace("|001000|", "||"), *rows[3:]], ["line 3", "TABTRACTCE"]),
    "a short code": (
        lambda rows: [*rows[:2], rows[2].replace("17|", "7|", 1), *rows[3:]],
        ["line 3", "TABBLKST", "2 digits"],
    ),
    "a place of letters": (lambda rows: [*rows[:2], rows[2][:-5] + "ABCDE", *rows[3:]], ["line 3", "PLACEFP"]),
    "an area of no type": (
        lambda rows: [*rows[:2], rows[2].replace("|9999|", "|4995|"), *rows[3:]],
        ["line 3", "AIANNHCE", "4995"],
    ),
    "too few fields": (lambda rows: [*rows[:4], "17|031", *rows[4:]], ["line 5", "2 fields", "8 columns"]),
    "too many fields": (lambda rows: [*rows[:4], rows[4] + "|1", *rows[5:]], ["line 5", "9 fields"]),
    "a missing column": (lambda rows: [rows[0].replace("PLACEFP", "PLACE"), *rows[1:]], ["line 1", "PLACEFP"]),
    "a column twice": (lambda rows: [rows[0].replace("PLACEFP", "TABBLK"), *rows[1:]], ["line 1", "TABBLK", "twice"]),
    "no separator": (lambda rows: [row.replace("|", " ") for row in rows], ["line 1", "no column TABBLKST", "it has"]),
    "no rows": (lambda rows: rows[:1], ["no rows"]),
}


@pytest.mark.parametrize("case", BAD_REFERENCES)
def test_a_bad_reference_file_is_refused(tmp_path: Path, refused: Callable[..., str], case: str) -> None:
    change, words = BAD_REFERENCES[case]
    path = write_reference(tmp_path / "grfc.txt", BLOCKS)
    path.write_text("\n".join(change(lines(path))) + "\n")
    said = refused(*build(tmp_path))
    assert "grfc.txt" in said
    assert all(word in said for word in words), said


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"\x00\x01\x02" * 100,
        b"PK\x03\x04" + bytes(range(256)),
        "TABBLKST|TABBLKCOU\n17|é".encode("latin-1"),
        b'"',
    ],
)
def test_rubbish_is_refused(tmp_path: Path, refused: Callable[..., str], content: bytes) -> None:
    (tmp_path / "grfc.txt").write_bytes(content)
    assert "grfc.txt" in refused(*build(tmp_path))


def test_rubbish_after_a_good_beginning_is_refused(tmp_path: Path, refused: Callable[..., str]) -> None:
    path = write_reference(tmp_path / "grfc.txt", BLOCKS)
    good = path.read_bytes()
    for bad in (
        b"17|031|\xff\xfe|1|1000|9999|99999|99999\n",
        b"17|0\x0031|001000|1|1900|9999|99999|99999\n",
        b'17|"31\n',
    ):
        path.write_bytes(good + bad)
        assert "grfc.txt" in refused(*build(tmp_path))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path, refused: Callable[..., str]) -> None:
    assert "grfc.txt" in refused(*build(tmp_path))
    (tmp_path / "grfc.txt").mkdir()
    assert "grfc.txt" in refused(*build(tmp_path))


def test_a_geocode_that_disagrees_with_its_parts_is_refused(tmp_path: Path, refused: Callable[..., str]) -> None:
    for short in (False, True):
        codes = [block.geocode[:11] + block.geocode[12:] if short else block.geocode for block in BLOCKS]
        rows = ["|".join((*COLUMNS, "GEOID")), *("|".join((*b, code)) for b, code in zip(BLOCKS, codes, strict=True))]
        rows[4] = rows[4][:-1] + "9"
        (tmp_path / "grfc.txt").write_text("\n".join(rows) + "\n")
        said = refused(*build(tmp_path))
        assert all(word in said for word in ("line 5", "GEOID", "disagrees"))


BAD_OPTIONS = {
    "a negative share": (
        ["--shares", "us=-1/10,state=1/2,county=1/5,tract=1/5,block_group=1/10,block=1/10"],
        ["US", "negative"],
    ),
    "shares that sum to less": (["--shares", "us=0,state=0,county=0,tract=0,block_group=0,block=1/2"], ["sum to 1/2"]),
    "a share left out": (["--shares", "us=1/2,state=1/2"], ["County", "missing"]),
    "a share twice": (["--shares", "us=1/2,us=1/2"], ["US", "twice"]),
    "a share of no level": (["--shares", "town=1"], ["town"]),
    "a share of a level left out": (
        ["--shares", "us=0,state=0,county=0,tract_group=1,tract=0,block_group=0,block=0"],
        ["Tract_Group"],
    ),
    "an infinite share": (["--shares", "us=inf"], ["infinite"]),
    "a share that is no number": (["--shares", "us=nan"], ["US=nan"]),
    "a share of no form": (["--shares", "us"], ["level=p/q"]),
    "a level twice": (["--levels", "US,State,County,Tract,Tract,Block_Group,Block"], ["Tract", "twice"]),
    "a level left out": (["--levels", "US,State,County,Block_Group,Block"], ["Tract", "missing"]),
    "no blocks": (["--levels", "US,State,County,Tract,Block_Group"], ["Block", "missing"]),
    "levels out of order": (["--levels", "US,County,State,Tract,Block_Group,Block"], ["order"]),
    "an unknown level": (["--levels", "US,State,Parish,Tract,Block_Group,Block"], ["Parish"]),
    "a negative fan-out cutoff": (["--fanout-cutoff", "-1"], ["fanout-cutoff", "-1"]),
    "a negative threshold": (["--entity-threshold", "-1"], ["entity-threshold", "-1"]),
    "a negative bypass cutoff": (["--bypass-cutoff", "-1"], ["bypass-cutoff", "-1"]),
    "a broken cutoff": (["--fanout-cutoff", "1.5"], ["fanout-cutoff"]),
    "group quarters from nowhere": (["--classes", "pme,gq"], ["--blocks"]),
    "live from nowhere": (["--live"], ["--blocks"]),
    "a class that is no column": (["--classes", "pme,ward"], ["ward"]),
    "a class twice": (["--classes", "pme,PME"], ["PME", "twice"]),
    "an empty class": (["--classes", "pme,"], ["empty"]),
    "school districts from nowhere": (["--classes", "school"], ["SDUNILEA"]),
    "an unknown type of area": (["--aian-areas", "federal,moon"], ["moon"]),
    "a state of one digit": (["--strong-mcd-states", "9"], ["'9'"]),
    "a file of attributes that is not there": (["--blocks", "nowhere.txt"], ["nowhere.txt"]),
}


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_a_bad_option_is_refused(tmp_path: Path, refused: Callable[..., str], case: str) -> None:
    options, words = BAD_OPTIONS[case]
    write_reference(tmp_path / "grfc.txt", BLOCKS)
    said = refused(*build(tmp_path, *options))
    assert all(word in said for word in words), said


def test_a_kind_is_needed(tmp_path: Path, refused: Callable[..., str]) -> None:
    write_reference(tmp_path / "grfc.txt", BLOCKS)
    assert "--kind" in refused("build", str(tmp_path / "grfc.txt"), str(tmp_path / "out"))


def test_two_states_need_a_nation(tmp_path: Path, refused: Callable[..., str]) -> None:
    write_reference(tmp_path / "grfc.txt", [*BLOCKS, BLOCKS[0]._replace(state="18")])
    assert "no root" in refused(*build(tmp_path, "--levels", "State,County,Tract,Block_Group,Block"))


HEADER = "block|housing_units|gq1|gq2|gq3|gq4|gq5|gq6|gq7"


def attributes(path: Path, change: Changed, units: dict[str, int] | None = None) -> str:
    rows = [f"{b.geocode}|{(units or {}).get(b.county, 1)}|0|0|0|0|0|0|0" for b in BLOCKS]
    path.write_text("\n".join(change([HEADER, *rows])) + "\n")
    return str(path)


BAD_ATTRIBUTES: dict[str, tuple[Changed, list[str]]] = {
    "a block twice": (lambda rows: [*rows, rows[2]], ["line 14", "twice", "line 3"]),
    "a block left out": (lambda rows: [*rows[:2], *rows[3:]], ["missing", BLOCKS[1].geocode]),
    "an unknown block": (lambda rows: [*rows, "18" + rows[1][2:]], ["line 14", "not in the reference file"]),
    "a negative count": (
        lambda rows: [rows[0], rows[1].replace("|1|", "|-1|"), *rows[2:]],
        ["line 2", "housing_units"],
    ),
    "a count left out": (lambda rows: [rows[0], rows[1][:-1], *rows[2:]], ["line 2", "gq7"]),
    "a column left out": (lambda rows: [rows[0].replace("gq4", "x"), *rows[1:]], ["line 1", "gq4"]),
    "a block of letters": (lambda rows: [rows[0], "x" + rows[1], *rows[2:]], ["line 2", "block"]),
}


@pytest.mark.parametrize("case", BAD_ATTRIBUTES)
def test_bad_attributes_are_refused(tmp_path: Path, refused: Callable[..., str], case: str) -> None:
    change, words = BAD_ATTRIBUTES[case]
    write_reference(tmp_path / "grfc.txt", BLOCKS)
    said = refused(*build(tmp_path, "--blocks", attributes(tmp_path / "blocks.txt", change), "--live"))
    assert "blocks.txt" in said
    assert all(word in said for word in words), said


def test_an_empty_county_is_refused(tmp_path: Path, refused: Callable[..., str]) -> None:
    write_reference(tmp_path / "grfc.txt", BLOCKS)
    listed = attributes(tmp_path / "blocks.txt", lambda rows: rows, {"043": 0})
    said = refused(*build(tmp_path, "--blocks", listed, "--live"))
    assert "17043" in said
    assert "empty" in said
    listed = attributes(tmp_path / "blocks.txt", lambda rows: rows, {"043": 0, "031": 0})
    assert "no block has" in refused(*build(tmp_path, "--blocks", listed, "--live"))


@pytest.fixture
def spine(tmp_path: Path) -> Path:
    write_reference(tmp_path / "grfc.txt", BLOCKS)
    assert main(["spine", *build(tmp_path, kind="aian")]) == 0
    (tmp_path / "out").rename(tmp_path / "spine")
    return tmp_path / "spine"


BAD_ENTITIES = {
    "a block that is not there": (["block|ward", "9917031000100001|1"], ["line 2", "not on the spine"]),
    "a block twice": (
        ["block|ward", f"{BLOCKS[0].geocode}|1", f"{BLOCKS[0].geocode}|2"],
        ["line 3", "twice", "line 2"],
    ),
    "a block of 15 digits": (["block|ward", f"{BLOCKS[0].geocode[:15]}|1"], ["line 2", "16 digits"]),
    "no kind": (["block", BLOCKS[0].geocode], ["no column but block"]),
    "no block": (["ward|zone", "1|2"], ["no column block"]),
    "no rows": (["block|ward"], ["no rows"]),
    "too few fields": (["block|ward|zone", f"{BLOCKS[0].geocode}|1"], ["line 2", "2 fields"]),
}


@pytest.mark.parametrize("case", BAD_ENTITIES)
def test_bad_entities_are_refused(tmp_path: Path, spine: Path, refused: Callable[..., str], case: str) -> None:
    rows, words = BAD_ENTITIES[case]
    (tmp_path / "entities.txt").write_text("\n".join(rows) + "\n")
    said = refused("distance", str(spine), str(tmp_path / "entities.txt"), "--json")
    assert "entities.txt" in said
    assert all(word in said for word in words), said


def test_a_folder_without_a_spine_is_refused(tmp_path: Path, spine: Path, refused: Callable[..., str]) -> None:
    entities = str(spine / "entities.csv")
    assert "nowhere" in refused("distance", str(tmp_path / "nowhere"), entities)
    assert "manifest.json" in refused("distance", str(tmp_path), entities)
    assert "nowhere" in refused("report", str(tmp_path / "nowhere"))
    manifest = json.loads((spine / "manifest.json").read_text())
    for broken in (
        {"product": "phsafe"},
        {"settings": {}},
        {"settings": manifest["settings"] | {"levels": ["US", "Moon"]}},
    ):
        (spine / "manifest.json").write_text(json.dumps(manifest | broken))
        assert "manifest.json" in refused("distance", str(spine), entities)


@pytest.mark.slow
def test_a_damaged_spine_is_refused(tmp_path: Path, spine: Path, refused: Callable[..., str]) -> None:
    blocks, units = (spine / "blocks.csv").read_text(), (spine / "geounits.csv").read_text()
    # A tract in two counties.
    (spine / "blocks.csv").write_text(blocks.replace("|017|017031|017031001000|", "|017|017043|017031001000|", 1))
    assert "blocks.csv" in refused("distance", str(spine), str(spine / "entities.csv"))
    (spine / "blocks.csv").write_text(blocks)
    for damaged in (units.replace("|1/6|", "|x|", 1), "\n".join(units.splitlines()[:-1]) + "\n"):
        (spine / "geounits.csv").write_text(damaged)
        assert "geounits.csv" in refused("report", str(spine), "--to", str(tmp_path / "out"))


@pytest.mark.slow
def test_bad_boundaries_are_refused(tmp_path: Path, spine: Path, refused: Callable[..., str]) -> None:
    (tmp_path / "map.zip").write_bytes(b"PK rubbish")
    for name in ("map.zip", "nowhere.zip"):
        assert name in refused("report", str(spine), "--boundaries", str(tmp_path / name))
    assert not (spine / "report.html").exists()


def test_a_folder_in_use_is_refused_and_replaced_only_when_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_reference(tmp_path / "grfc.txt", BLOCKS)
    arguments = ["spine", *build(tmp_path)]
    assert main(arguments) == 0
    before = (tmp_path / "out" / "blocks.csv").read_bytes()
    assert main(arguments) == 2
    assert "not empty" in capsys.readouterr().err
    assert (tmp_path / "out" / "blocks.csv").read_bytes() == before
    assert main([*arguments, "--overwrite"]) == 0
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "diary.txt").write_text("mine")
    arguments[3] = str(tmp_path / "other")
    assert main([*arguments, "--overwrite"]) == 2
    assert (tmp_path / "other" / "diary.txt").read_text() == "mine"


@pytest.mark.thorough
def test_a_run_killed_halfway_leaves_only_its_partial_folder(tmp_path: Path) -> None:
    rows = [
        Block("17", f"{county:03}", f"{tract:04}00", "1", f"{i}", "9999", "10000", "99999")
        for county in range(1, 100, 2)
        for tract in range(1, 5)
        for i in range(1000, 1900)
    ]
    write_reference(tmp_path / "grfc.txt", rows)
    command = [sys.executable, "-c", "from yupana.cli.start import entry; entry()", "spine", *build(tmp_path)]
    for number in (signal.SIGTERM, signal.SIGKILL):
        run = subprocess.Popen(command, stderr=subprocess.PIPE, env=dict(os.environ))
        while not (tmp_path / "out.partial").exists() and run.poll() is None:
            time.sleep(0.01)
        run.send_signal(number)
        run.communicate()
        assert run.returncode != 0
        assert not (tmp_path / "out").exists()
        assert (tmp_path / "out.partial").exists() is (number == signal.SIGKILL)
    # A spine holds nothing secret, so the next run clears away what the killed one left.
    (tmp_path / "out.partial" / "blocks.csv").write_text("half")
    assert main(["spine", *build(tmp_path)]) == 0
    assert not (tmp_path / "out.partial").exists()
