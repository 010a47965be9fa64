"""SafeTab's records out of the Census Edited File are those of its own files, made from the same people."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from detailed_maker import ADDRESS, CODES, ETHNICITY_CODES, RACES
from detailed_relations import KINDS, notes_of, opened, relations, said
from edited_homes import BLOCKS, Home, Person, draw_homes, homes_of, write_cef, write_files
from safetab_runs import released
from safetab_worlds import random_world, seeded, write_parameters

from yupana.confidential.records.safetab_records import open_detailed


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.thorough
def test_the_same_people_give_the_same_relations(tmp_path: Path, kind: str) -> None:
    homes = draw_homes(random.Random(3), 400)  # noqa: S311
    write_files(tmp_path / "files", homes)
    write_cef(tmp_path / "cef", homes)
    found = []
    for name in ("files", "cef"):
        with opened(tmp_path / name, kind) as data:  # type: ignore[arg-type]
            data.require_valid()
            types = dict(data.db.execute("SELECT column_name, column_type FROM (DESCRIBE records)").fetchall())
            types = {name: types[name] for name in (*ADDRESS, *RACES, "QSPAN")}
            found.append((relations(data, kind), notes_of(data), types, set(data.files)))  # type: ignore[arg-type]
    assert found[0] == found[1]
    assert sum(found[0][0][0].values()) > 100
    assert found[0][1]["records_of_other_states"] > 10


@pytest.mark.thorough
def test_the_same_people_give_the_same_tables(tmp_path: Path) -> None:
    world = random_world(seeded(11))
    homes = homes_of(world)
    write_files(tmp_path / "files", homes, world.blocks)
    write_cef(tmp_path / "cef", homes, world.blocks)
    world.config.budgets("Infinity").thresholds((3, 6, 12), 4)
    document = world.config.document() | {"reader": "cef"}
    parameters = write_parameters(tmp_path / "parameters", world, document=document)
    totals = str(tmp_path / "files-p" / "T01001.csv")
    tables = []
    for name in ("files", "cef"):
        data, out = tmp_path / name, tmp_path / f"{name}-p"
        (data / "SYNTHETIC").touch()
        of_persons = released("safetab-p", parameters, data, out, verb="exact")
        of_households = released(
            "safetab-h", parameters, data, tmp_path / f"{name}-h", "--totals", totals, verb="exact"
        )
        tables.append((of_persons, of_households))
    assert tables[0] == tables[1]
    assert all(any(row.count for rows in found.values() for row in rows.values()) for found in tables[0])


@pytest.fixture
def cef(tmp_path: Path) -> Path:
    """Two homes in each of two states, and one in a state that is left out."""
    null = ["Null"] * 7

    def people(code: str) -> list[Person]:
        return [Person("1", "50", [code, *null, "9950"], "20"), Person("2", "9", [code, *null, "9950"], "25")]

    homes = [
        Home("456700001", "2", BLOCKS[0], people("1000"), "1", "1"),
        Home("456700002", "4", BLOCKS[1], [Person("2", "80", ["2020", *null, "9950"], "37")]),
        Home("456700003", "2", BLOCKS[3], people("1010"), "6", "4"),
        Home("456700004", "2", BLOCKS[3], []),
        Home("456700005", "2", BLOCKS[5], people("7680"), "7", "2"),
    ]
    write_cef(tmp_path / "cef", homes)
    return tmp_path / "cef"


@pytest.mark.thorough
def test_the_records_that_are_spoiled_below_are_sound(cef: Path) -> None:
    assert said(cef) == said(cef, KINDS[1]) == ""


def change(path: Path, line: int, start: int, text: str) -> None:
    lines = path.read_text().split("\n")
    lines[line - 1] = lines[line - 1][:start] + text + lines[line - 1][start + len(text) :]
    path.write_text("\n".join(lines))


PER, UNIT = "CEF20_PER_17.txt", "CEF20_UNIT_17.txt"
BOTH, PERSONS, HOUSEHOLDS = KINDS, KINDS[:1], KINDS[1:]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("file", "line", "start", "text", "rule", "kinds"),
    [
        (PER, 1, 22, "3", "domain: QSEX", BOTH),
        (PER, 2, 22, "3", "domain: QSEX", PERSONS),
        (PER, 1, 23, "117", "domain: QAGE", BOTH),
        (PER, 1, 42, "    ", "domain: QSPAN", BOTH),
        (PER, 1, 42, "9173", "known_code: QSPAN must be a RACE_ETH_CODE", BOTH),
        (PER, 1, 48, "    ", "domain: QRACE1", BOTH),
        (PER, 1, 48, "0101", "domain: QRACE1", BOTH),
        (PER, 1, 52, "0000", "domain: QRACE2 must be Null or a code of 4 digits", BOTH),
        (PER, 1, 52, "Null", "domain: QRACE2", BOTH),
        (PER, 1, 52, "9173", "known_code: QRACE2 must be Null or a RACE_ETH_CODE", BOTH),
        (PER, 2, 52, "9173", "known_code: QRACE2", PERSONS),
        (PER, 1, 76, "1000", "race_after_null", BOTH),
        (PER, 1, 81, "64", "domain: CENRACE", BOTH),
        (PER, 2, 85, "19", "domain: RELSHIP", BOTH),
        (PER, 2, 1, "45670000X", "domain: MAFID", PERSONS),
        (PER, 2, 1, "456700009", "person_has_unit", PERSONS),
        (PER, 2, 1, "456700001", "person_has_unit", PERSONS),
        (UNIT, 1, 0, "3", "domain: RTYPE", BOTH),
        (UNIT, 2, 37, "nowhere".ljust(22), "block_in_reference: OIDTB is not among the OIDTABBLK", BOTH),
        (UNIT, 1, 29, "5", "domain: TEN", HOUSEHOLDS),
        (UNIT, 1, 29, " ", "zero_codes", HOUSEHOLDS),
        (UNIT, 1, 27, "00", "zero_codes", HOUSEHOLDS),
        (UNIT, 1, 59, "8", "domain: HHT", HOUSEHOLDS),
        (UNIT, 1, 59, " ", "zero_codes_elsewhere", HOUSEHOLDS),
        (UNIT, 2, 59, "1", "one_householder", HOUSEHOLDS),
        (UNIT, 2, 29, "3", "zero_codes_elsewhere", HOUSEHOLDS),
        (PER, 1, 1, "456700004", "householder_has_household", HOUSEHOLDS),
    ],
)
@pytest.mark.slow
def test_a_value_is_named_by_file_and_line(
    cef: Path, file: str, line: int, start: int, text: str, rule: str, kinds: tuple[str, ...]
) -> None:
    change(cef / file, line, start, text)
    for kind in KINDS:
        told = [row for row in said(cef, kind).splitlines() if row.startswith(f"{file}: {rule}")]
        assert [row.endswith(f"; 1 record; line {line}") for row in told] == [True] * (kind in kinds), said(cef, kind)


@pytest.mark.parametrize(("file", "start", "text"), [(UNIT, 0, "4"), (UNIT, 59, " "), (UNIT, 59, "0")])
@pytest.mark.slow
def test_a_householder_of_no_household_is_not_lost(cef: Path, file: str, start: int, text: str) -> None:
    """What makes a unit a household is its RTYPE and HHT; a householder elsewhere would be in no table."""
    for place, blank in ((27, "00"), (29, "0")):
        change(cef / file, 1, place, blank)
    change(cef / file, 1, start, text)
    assert f"{PER}: householder_has_household" in said(cef, KINDS[1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_units_that_are_there_twice_and_two_householders(cef: Path, kind: str) -> None:
    change(cef / PER, 2, 85, "20")
    told = said(cef, kind)  # type: ignore[arg-type]
    assert (f"{UNIT}: one_householder" in told) == (kind in HOUSEHOLDS)
    change(cef / UNIT, 2, 1, "456700003")
    assert f"{UNIT}: unique_mafid: MAFID occurs twice; 2 records; lines 1, 2" in said(cef, kind)  # type: ignore[arg-type]


@pytest.mark.parametrize("states", [1, 23])
@pytest.mark.thorough
def test_records_of_a_rule_are_counted_in_every_file(tmp_path: Path, states: int) -> None:
    """Also where there is one file alone, and where there are more than there is room for."""
    blocks = [(f"{10 + state}", "001", "400100", "1000", "99999", "9999") for state in range(states)]
    null = ["Null"] * 7
    people = [Person("2", "80", [code, *null, "9950"], "37") for code in ("9173", "1000", "9173")]
    homes = [Home("456700001", "4", block, people) for block in blocks for _ in range(3)]
    write_cef(tmp_path / "cef", homes, blocks)
    expected = []
    for kind, rule, count, lines in (
        ("PER", "known_code: QRACE1 must be a RACE_ETH_CODE of race-and-ethnicity-codes.txt", 6, "1, 3, 4, 6, 7, 9"),
        ("UNIT", "unique_mafid: MAFID occurs twice", 3, "1, 2, 3"),
    ):
        expected += [f"CEF20_{kind}_{block[0]}.txt: {rule}; {count} records; lines {lines}" for block in blocks[:20]]
        if states > 20:
            expected.append(f"3 more files from CEF20_{kind}_30.txt on: {rule}; {3 * count} records")
    assert said(tmp_path / "cef").splitlines() == expected


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (lambda folder: (folder / PER).unlink(), f"{PER}: file_present"),
        (lambda folder: (folder / UNIT).write_bytes(b""), f"{UNIT}: not_empty"),
        (lambda folder: (folder / PER).write_bytes((folder / PER).read_bytes()[:-20]), f"{PER}: row_shape"),
        (lambda folder: (folder / UNIT).write_bytes(b"\xff" * 400), f"{UNIT}: "),
        (lambda folder: (folder / "person-records.txt").write_text("x"), "one_file"),
        (lambda folder: (folder / "household-records.parquet").write_text("x"), "one_file"),
        (lambda folder: (folder / "grfc_tab20_17.txt").write_text("TABBLKST|x\n17|1\n"), "columns_present"),
        (
            lambda folder: (folder / "grfc_tab20_17.txt").write_text(
                (folder / "grfc_tab20_17.txt").read_text().replace("2000|010100|031", "1000|010100|031")
            ),
            "grfc_tab20_17.txt: unique_block: the block is listed more than once; 2 records; lines 2, 3",
        ),
    ],
)
@pytest.mark.slow
def test_files_that_are_none(cef: Path, kind: str, spoil: Callable[[Path], object], what: str) -> None:
    spoil(cef)
    assert what in said(cef, kind)  # type: ignore[arg-type]


@pytest.mark.slow
def test_every_state_may_be_asked_for(cef: Path) -> None:
    with open_detailed(
        cef, kind="household-records", states=frozenset({72}), codes=CODES, ethnicity_codes=ETHNICITY_CODES
    ) as data:
        data.require_valid()
        assert data.db.execute("SELECT QRACE1, HOUSEHOLD_TYPE, TEN FROM records WHERE TABBLKST = 72").fetchall() == [
            (7680, 5, 2)
        ]
        assert data.db.execute("SELECT TABBLKST, housing_units FROM blocks").fetchall() == [(72, 1)]
        assert (data.notes["records_of_other_states"], data.notes["blocks_of_other_states"]) == (2, 5)


@pytest.mark.thorough
def test_lines_are_right_far_into_the_files(tmp_path: Path) -> None:
    """Rows are numbered while threads read them."""
    home = Home("456700001", "4", BLOCKS[0], [Person("1", "30", ["1000", *["Null"] * 7, "9950"], "37")])
    write_cef(tmp_path / "cef", [home])
    path = tmp_path / "cef" / "CEF20_PER_06.txt"
    path.write_text(path.read_text() * 400_000)
    change(path, 350_001, 22, "9")
    assert said(tmp_path / "cef").endswith("domain: QSEX must be 1, 2; 1 record; line 350001")
