"""SafeTab's data folders: sound ones in every form give the same relations; every fault is named, without a value."""

import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from detailed_maker import (
    ADDRESS,
    HEADERS,
    RACES,
    World,
    broken_rules,
    code_of,
    notes,
    sound_world,
    tabulated,
    write_parquet,
    write_text,
    write_world,
)
from detailed_relations import CANARY, KINDS, notes_of, opened, relations, said
from detailed_relations import folder as folder  # noqa: PLC0414
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from yupana.errors import InputError

# --- forms ----------------------------------------------------------------------------------------------------------

INTEGERS = {name: f"TRY_CAST({name} AS INTEGER)" for name in (*ADDRESS, "CENRACE", "HHRACE", *RACES, "QSPAN", "QAGE")}
FORMS: dict[str, dict[str, Any]] = {
    "pipes": {},
    "commas": {"separator": ","},
    "crlf": {"end": "\r\n"},
    "csv": {"ending": "csv"},
    "text in Parquet": {"casts": {}},
    "integers in Parquet": {"casts": INTEGERS},
    "NULL in Parquet": {"casts": {race: f"nullif({race}, 'Null')" for race in RACES}},
    "BOOLEAN in Parquet": {"casts": {"HOUSEHOLDER": "HOUSEHOLDER = 'True'"}},
    "bytes in Parquet": {"casts": {"QSEX": "QSEX::UTINYINT", "QSPAN": "QSPAN::USMALLINT"}},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.slow
def test_every_form_gives_the_same_relations(tmp_path: Path, form: str) -> None:
    # Each form with one kind of records, with the list and without it in turn.
    number, how = list(FORMS).index(form), FORMS[form]
    kind, listed = KINDS["HOUSEHOLDER" not in how.get("casts", ()) and number % 2], number % 3 > 0
    world = sound_world(kind, listed=listed)
    write_world(tmp_path, world, separator=how.get("separator", "|"), end=how.get("end", "\n"))
    text = tmp_path / f"{kind}.txt"
    if "ending" in how:
        text.rename(text.with_suffix("." + how["ending"]))
    if "casts" in how:
        text.unlink()
        casts = {name: cast for name, cast in how["casts"].items() if name in HEADERS[kind]}
        write_parquet(text.with_suffix(".parquet"), HEADERS[kind], world.records, casts)
    with opened(tmp_path, kind) as data:
        assert data.findings == ()
        data.require_valid()
        assert relations(data, kind) == tabulated(world)
        assert notes_of(data) == notes(world)
        assert set(data.files) == {kind, "GRF-C", *["housing-units"] * listed}
        types = dict(data.db.execute("SELECT column_name, column_type FROM (DESCRIBE records)").fetchall())
        assert {types[race] for race in RACES} == {"SMALLINT"}


def test_byte_order_marks_blank_lines_and_other_columns(tmp_path: Path) -> None:
    world = sound_world(kind := KINDS[1])
    world.reference_columns = ("NAME", "AIANNHCE", *ADDRESS[::-1], "", "tabblkst_2", "PLACEFP", "")
    world.blocks = [{**row, "NAME": 'a, "b"', "": "x", "tabblkst_2": "99"} for row in world.blocks]
    for row in world.blocks:
        row["NAME"] = "Ñ, q'"
    write_world(tmp_path, world)
    for path in tmp_path.iterdir():
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n") + b"\r\n\r\n")
    with opened(tmp_path, kind) as data:
        assert data.findings == ()
        assert relations(data, kind) == tabulated(world)


def test_blocks_of_15_and_16_digits(tmp_path: Path) -> None:
    world = sound_world()
    assert world.housing
    world.housing[0]["block"] = code_of(world.blocks[0], 15)
    # The block group is not compared: it says nothing that the block does not.
    world.housing[1]["block"] = world.housing[1]["block"][:11] + "7" + world.housing[1]["block"][12:]
    write_world(tmp_path, world)
    with opened(tmp_path, world.kind) as data:
        assert data.findings == ()
        assert relations(data, world.kind) == tabulated(world)


@pytest.mark.parametrize("pattern", ["{0}.parquet/{1}.parquet", "{0}/state=0{1}/part.parquet"])
@pytest.mark.thorough
def test_parquet_in_parts(tmp_path: Path, pattern: str) -> None:
    world = sound_world()
    write_world(tmp_path, world)
    (tmp_path / f"{world.kind}.txt").unlink()
    for part in range(2):
        path = tmp_path / pattern.format(world.kind, part)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_parquet(path, HEADERS[world.kind], world.records[2 * part :][:2])
    with opened(tmp_path, world.kind) as data:
        assert data.findings == ()
        assert relations(data, world.kind) == tabulated(world)
        assert len(data.files[world.kind].paths) == 2
    write_parquet(path, HEADERS[world.kind], [world.records[2], {**world.records[2], "QSPAN": CANARY}])
    assert f"{path.relative_to(tmp_path)}: known_code: QSPAN must be" in said(tmp_path)
    assert "1 record; row 2" in said(tmp_path)


# --- random worlds against plain Python -----------------------------------------------------------------------------

ODD = (
    *("", "Null", "null", "NULL", "x", " ", "0", "00", "1", "01", "63", "64", "06", "17", "72", "6", "028", "116"),
    *("+1", "-1", "1.0", "1e3", "0x10", "1_000", "1000", "1001", "0999", "10000", " 1000", "1000 ", "9950", "9999"),
    *("\u0661\u0660\u0660\u0660", "\u00b2", "True", "true", "TRUE", "False", "T", "99999999999", "0000000000"),
    *("001", "400100", "010100", "2000", "060014001001000", "0600140010011000", "1720310101002000", "nan", "é"),
)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A sound world with some of its rows repeated, left out and spoiled."""
    world = sound_world(draw(st.sampled_from(KINDS)), listed=draw(st.booleans()))
    lists = [world.records, world.blocks] + ([world.housing] if world.housing else [])
    for rows in lists:
        for _ in range(draw(st.integers(0, 2))):
            rows.insert(draw(st.integers(0, len(rows))), dict(draw(st.sampled_from(rows))))
        if draw(st.integers(0, 3)) == 0:
            del rows[draw(st.integers(0, len(rows) - 1))]
        for _ in range(draw(st.integers(0, 2))):
            row = draw(st.sampled_from(rows))
            row[draw(st.sampled_from(sorted(row)))] = draw(st.sampled_from(ODD))
    if draw(st.booleans()):
        draw(st.sampled_from(world.records))[draw(st.sampled_from(RACES[1:]))] = draw(st.sampled_from(("3105", "Null")))
    if world.housing and draw(st.booleans()):
        draw(st.sampled_from(world.housing))["housing_units"] = "0"
    if draw(st.booleans()):
        # Without this, hardly any world would be sound.
        for rows in (world.blocks, world.housing or []):
            first = {tuple(row.get(name, "") for name in (*ADDRESS, "block")): row for row in rows}
            rows[:] = first.values()
    return world


@pytest.mark.parametrize("examples", [10, pytest.param(50, marks=pytest.mark.thorough)])
@pytest.mark.slow
def test_random_worlds_against_plain_python(examples: int) -> None:
    @settings(max_examples=examples)
    @given(world=worlds(), parquet=st.booleans(), separator=st.sampled_from("|,"))
    def check(world: World, separator: str, *, parquet: bool) -> None:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            write_world(folder, world, parquet=parquet, separator=separator)
            expected = {}
            for (file, rule, column), rows in broken_rules(world).items():
                ending, first = ("parquet", 1) if parquet and file == world.kind else ("txt", 2)
                expected[f"{file}.{ending}", rule, column] = tuple(row + first for row in rows)
            with opened(folder, world.kind) as data:
                found = {
                    (
                        finding.file,
                        finding.rule,
                        finding.text.split()[0] if finding.rule in {"domain", "known_code"} else "",
                    ): finding.lines
                    for finding in data.findings
                }
                assert found == expected
                assert all(finding.count == len(finding.lines) for finding in data.findings if finding.count)
                if not expected:
                    assert relations(data, world.kind) == tabulated(world)
                    assert notes_of(data) == notes(world)

    check()


@pytest.mark.thorough
def test_random_worlds_break_every_rule_and_some_break_none() -> None:
    rules = {"domain", "known_code", "race_after_null", "unique_block", "block_in_reference", "block_has_housing_unit"}
    # No example need be made small.
    quick = settings(phases=[Phase.generate], max_examples=2000)
    for rule in rules:
        find(
            worlds(), lambda world, rule=rule: rule in {broken for _, broken, _ in broken_rules(world)}, settings=quick
        )
    find(worlds(), lambda world: not broken_rules(world) and any(notes(world).values()), settings=quick)


# --- faults, one by one ---------------------------------------------------------------------------------------------


def test_the_folder_that_is_spoiled_below_is_sound(folder: Path) -> None:
    assert said(folder) == said(folder, KINDS[1]) == ""


def replace(path: Path, old: str, new: str, count: int = 1) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, count))


@pytest.mark.slow
def test_values_are_named_by_file_rule_and_line(folder: Path) -> None:
    expected = []
    for file, old, new, rule, place in (
        ("person-records", "028|", f"{CANARY}|", "domain: QAGE must be 0 to 115", "line 2"),
        ("person-records", "True|06", f"{CANARY}|06", "domain: HOUSEHOLDER must be False, True", "line 2"),
        ("person-records", "|2020", f"|{CANARY}", "known_code: QSPAN must be a RACE_ETH_CODE", "line 3"),
        ("person-records", "|1010|", f"|{CANARY}|", "known_code: QRACE2 must be Null or a RACE_ETH_CODE", "line 3"),
        ("person-records", "Null|Null|9950", "Null|3105|9950", "race_after_null", "line 2"),
        ("GRF-C", "|14000|", f"|{CANARY}|", "domain: PLACEFP must be 00000 to 99999 (a code of 5 digits)", "line 4"),
        ("GRF-C", "1001|00562", "1000|99999", "unique_block: the block is listed more than once", "lines 2, 3"),
        ("housing-units", "|3", f"|{CANARY}.5", "domain: housing_units must be a whole number", "line 2"),
        ("housing-units", "1703101010011000|", f"{CANARY}|", "domain: block must be 15 digits", "line 4"),
        ("housing-units", "0600140010011001|", "060014001001000|", "unique_block", "lines 2, 3"),
    ):
        replace(folder / f"{file}.txt", old, new)
        expected.append((f"{file}.txt: {rule}", place))
    lines = said(folder).splitlines()
    assert len(lines) == len(expected), lines
    for start, end in expected:
        assert any(line.startswith(start) and line.endswith(f" {end}") for line in lines), (start, end, lines)


@pytest.mark.slow
def test_a_block_that_the_reference_lacks_is_named(folder: Path) -> None:
    replace(folder / "person-records.txt", "|1001|", f"|{CANARY}|")
    (line,) = said(folder).splitlines()
    assert line.startswith("person-records.txt: block_in_reference: the block is not in GRF-C.txt")
    assert line.endswith(" line 3")


@pytest.mark.thorough
def test_a_household_where_no_housing_unit_stands(folder: Path) -> None:
    replace(folder / "housing-units.txt", "0600140010011001|2", "0600140010011001|0")
    # People may live in group quarters.
    assert said(folder) == ""
    assert "household-records.txt: block_has_housing_unit" in said(folder, KINDS[1])
    assert said(folder, KINDS[1]).endswith("1 record; line 3")
    replace(folder / "housing-units.txt", "0600140010011001|0\n", "")
    assert said(folder, KINDS[1]).endswith("1 record; line 3")


@pytest.mark.thorough
def test_places_of_other_states_are_not_compared(folder: Path) -> None:
    for kind in KINDS:
        replace(folder / f"{kind}.txt", "72|031", "72|999")
    replace(folder / "housing-units.txt", "1703101010022000", "7203101010029999")
    assert said(folder) == said(folder, KINDS[1]) == ""
    with opened(folder, KINDS[0]) as data:
        assert data.notes["housing_units_outside_reference"] == 0


@pytest.mark.parametrize("name", ["person-records", "GRF-C"])
@pytest.mark.thorough
def test_a_missing_file(folder: Path, name: str) -> None:
    (folder / f"{name}.txt").unlink()
    assert f"{name}.txt or {name}.csv" in said(folder)
    assert "no such file" in said(folder)


@pytest.mark.thorough
def test_a_missing_folder_and_a_list_that_is_no_file(folder: Path) -> None:
    with pytest.raises(InputError, match="does not exist"), opened(folder / "elsewhere", KINDS[0]):
        pass
    path = folder / "housing-units.txt"
    path.unlink()
    path.symlink_to(folder / "nowhere")
    assert "housing-units.txt or housing-units.csv or housing-units.parquet: file_present" in said(folder)
    path.unlink()
    path.mkdir()
    assert "housing-units.txt or housing-units.csv or housing-units.parquet: file_present" in said(folder)


@pytest.mark.parametrize("other", ["person-records.parquet", "GRF-C.csv", "housing-units.csv"])
@pytest.mark.slow
def test_two_forms_of_one_file(folder: Path, other: str) -> None:
    (folder / other).write_bytes(b"x")
    assert f"{Path(other).stem}.txt or {other}: one_file: both are there; leave one" in said(folder)


@pytest.mark.parametrize("name", ["person-records", "GRF-C", "housing-units"])
@pytest.mark.thorough
def test_an_empty_file_and_a_header_alone(folder: Path, name: str) -> None:
    path = folder / f"{name}.txt"
    header = path.read_text().split("\n")[0]
    for content in ("", "\n\n", header, header + "\r\n\r\n") if name == "person-records" else ("", header + "\n"):
        path.write_text(content, newline="")
        rule = "columns_present" if content == "\n\n" else "not_empty"
        assert f"{name}.txt: {rule}" in said(folder), repr(content)
    if name == "person-records":
        path.unlink()
        write_parquet(path.with_suffix(".parquet"), HEADERS[name], [])
        assert said(folder) == f"{name}.parquet: not_empty: the file has no person"


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.slow
def test_rubbish(folder: Path, seed: int) -> None:
    name = ("person-records", "GRF-C", "housing-units")[(seed + seed // 3) % 3]
    path = folder / f"{name}.txt"
    noise = random.Random(seed).randbytes((1, 100, 100_000)[seed % 3])  # noqa: S311
    path.write_bytes(noise if seed < 3 else path.read_bytes() + noise)
    assert f"{name}.txt: " in said(folder)


@pytest.mark.parametrize("name", ["person-records", "GRF-C", "housing-units"])
@pytest.mark.thorough
def test_text_of_another_shape(folder: Path, name: str) -> None:
    path = folder / f"{name}.txt"
    sound = path.read_text()
    first, second, rest = sound.split("\n", 2)
    shapes = {
        sound.replace("|", ";"): "columns_present",
        sound.replace("|", "\t"): "columns_present",
        f"{first}\n{second}|{CANARY}\n{rest}": "row_shape: has too many fields; 1 record; line 2",
        f"{first}\n{second}|\n{rest}": "row_shape: has too many fields; 1 record; line 2",
        f"{first}\n{second.rpartition('|')[0]}\n{rest}": "row_shape: has too few fields; 1 record; line 2",
        f'{first}\n{second}"\n{rest}': "",
        f'{first}\n"{second}\n{rest}': "",
        f"{first}\n{second}\n{rest}".replace("06", "0\x006", 2): "",
        f"{second}\n{rest}": "columns_present",
        f"\n{sound}": "columns_present",
        sound.encode("utf-16").decode("latin-1"): "",
    }
    # The files are read alike: the records in every shape, of the others each in a third of them.
    which = {"person-records": shapes, "GRF-C": list(shapes)[::3], "housing-units": list(shapes)[1::3]}[name]
    for content, what in ((content, shapes[content]) for content in which):
        path.write_text(content, encoding="latin-1", newline="")
        told = [line for line in said(folder).splitlines() if line.startswith(f"{name}.txt: {what}")]
        assert told, (content[:200], said(folder))


@pytest.mark.slow
def test_columns_missing_and_there_twice(folder: Path) -> None:
    rows = sound_world().records
    header = HEADERS["person-records"]
    text, parquet = (folder / f"person-records.{ending}" for ending in ("txt", "parquet"))
    for columns, what in (
        (header[:-1], "columns_present: missing column QSPAN"),
        ((*header[:-1], "QSPAM"), "columns_present: missing column QSPAN in the header; did you mean QSPAM?"),
    ):
        write_text(text, columns, [{**row, "QSPAM": "1"} for row in rows])
        assert said(folder).startswith(f"person-records.txt: {what}")
        text.unlink()
        write_parquet(parquet, columns, [{**row, "QSPAM": "1"} for row in rows])
        assert said(folder).startswith(f"person-records.parquet: {what}")
        parquet.unlink()
    replace(folder / "GRF-C.txt", "PLACEFP", "TABBLK")
    write_text(text, header, rows)
    assert "GRF-C.txt: columns_present: missing column PLACEFP" in said(folder)
    assert "GRF-C.txt: columns_present: column TABBLK is there twice" in said(folder)


@pytest.mark.parametrize("cast", ["QAGE::DOUBLE", "QAGE IS NULL", "[QAGE]", "QAGE::BLOB"])
@pytest.mark.thorough
def test_parquet_of_another_type(folder: Path, cast: str) -> None:
    path = folder / "person-records.txt"
    path.unlink()
    write_parquet(path.with_suffix(".parquet"), HEADERS["person-records"], sound_world().records, {"QAGE": cast})
    assert said(folder).startswith("person-records.parquet: column_type: column QAGE has type")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
@pytest.mark.thorough
def test_parquet_cut_off_or_damaged(folder: Path, share: float) -> None:
    (folder / "person-records.txt").unlink()
    path = folder / "person-records.parquet"
    write_parquet(path, HEADERS["person-records"], sound_world().records)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    assert said(folder).startswith(f"person-records.parquet: {'is_parquet' if share else 'not_empty'}")
    path.write_bytes(content[:4] + b"\xff" * 60 + content[64:])
    assert said(folder).startswith("person-records.parquet: is_parquet: damaged")


@pytest.mark.slow
def test_no_form_lets_a_query_see_more_than_it_should(folder: Path) -> None:
    """Integers below 1000 and NULL are no codes where there must be one."""
    rows = sound_world().records
    path = folder / "person-records.parquet"
    (folder / "person-records.txt").unlink()
    casts = {
        "QRACE1": "NULL::INTEGER",
        "QRACE2": "0",
        "QRACE3": "999",
        "QSPAN": "NULL::VARCHAR",
        "QAGE": "-1",
        "HOUSEHOLDER": "NULL::BOOLEAN",
        "TABBLKST": "100",
        "QSEX": "NULL::VARCHAR",
    }
    write_parquet(path, HEADERS["person-records"], rows, casts)
    lines = said(folder).splitlines()
    assert len(lines) == len(casts)
    for column in casts:
        (line,) = [line for line in lines if line.startswith(f"person-records.parquet: domain: {column} must be")]
        assert line.endswith("4 records; rows 1, 2, 3, 4")
