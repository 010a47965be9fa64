"""A column that stands in the names of folders alone is read from there; one that stands in the files is read there."""

import tempfile
from pathlib import Path
from typing import Any

import duckdb
import pytest
from census_maker import Codes, random_census, seeded, write_csv, write_parquet
from detailed_maker import HEADERS, sound_world, write_world
from detailed_maker import write_parquet as write_detailed
from detailed_relations import opened, relations
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import Place, Refused
from refusals import place as place  # noqa: PLC0414
from refusals import refused as refused  # noqa: PLC0414

from yupana.cli.main import main
from yupana.confidential.records.phsafe_records import FILES, open_census
from yupana.confidential.records.safetab_records import Kind

STATES = ("06", "17", "36")
IN_FOLDERS = [
    ("geo", ("TABBLKST",)),
    ("geo", ("TABBLKST", "TABBLKCOU")),
    ("geo", ("REGIONCE", "DIVISIONCE", "AIANNHCE")),
    ("geo", ("PLACEFP", "TABBLKST")),
    ("persons", ("QAGE",)),
    ("persons", ("RELSHIP", "CENRACE")),
    ("units", ("RTYPE", "TEN")),
    ("units", ("HHRACE", "FINAL_POP")),
]


def lay_out(path: Path, columns: tuple[str, ...], *, kept: bool = False) -> None:
    """Replace a Parquet file by Hive-style folders of the same name."""
    whole = path.rename(path.with_name("whole"))
    by = ", ".join(columns)
    with duckdb.connect() as db:
        rows = f"FROM read_parquet('{whole}', hive_partitioning = false)"
        db.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet, PARTITION_BY ({by}), WRITE_PARTITION_COLUMNS {kept})")
    whole.unlink()


def census_relations(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    with open_census(folder, states=frozenset(map(int, STATES)), policies={}) as census:
        census.require_valid()
        query = "SELECT * EXCLUDE (record) FROM {} ORDER BY ALL"
        return {file.name: census.db.execute(query.format(file.name)).fetchall() for file in FILES}


def columns_of_folders_are_those_of_files(
    chosen: tuple[str, tuple[str, ...]], codes: Codes, seed: int, *, kept: bool
) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        census, (name, columns) = random_census(seeded(seed), STATES, 20), chosen
        write_csv(Path(scratch) / "csv", census)
        write_parquet(Path(scratch) / "hive", census, codes)
        lay_out(Path(scratch) / "hive" / f"{name}.parquet", columns, kept=kept)
        assert census_relations(Path(scratch) / "csv") == census_relations(Path(scratch) / "hive")


@pytest.mark.parametrize(
    ("chosen", "codes"),
    [(IN_FOLDERS[1], "text"), (IN_FOLDERS[5], "integer"), (IN_FOLDERS[6], "bureau")],
)
@pytest.mark.thorough
def test_columns_of_folders_are_those_of_files(chosen: tuple[str, tuple[str, ...]], codes: Codes) -> None:
    columns_of_folders_are_those_of_files(chosen, codes, 1, kept=codes == "bureau")


@pytest.mark.thorough
@given(st.sampled_from(IN_FOLDERS), st.sampled_from(["text", "bureau", "integer"]), st.integers(0, 99), st.booleans())
@settings(max_examples=10)
def test_any_columns_of_folders_are_those_of_files(
    chosen: tuple[str, tuple[str, ...]],
    codes: Codes,
    seed: int,
    kept: bool,  # noqa: FBT001
) -> None:
    columns_of_folders_are_those_of_files(chosen, codes, seed, kept=kept)


@pytest.mark.parametrize(
    ("kind", "columns"), [("person-records", ("QRACE2", "QRACE1")), ("household-records", ("TABBLKST", "QSPAN"))]
)
@pytest.mark.slow
def test_detailed_records_in_folders(tmp_path: Path, kind: Kind, columns: tuple[str, ...]) -> None:
    world = sound_world(kind, listed=True)
    found = []
    for form in ("text", "hive"):
        folder = tmp_path / form
        folder.mkdir()
        write_world(folder, world)
        if form == "hive":
            (folder / f"{kind}.txt").unlink()
            casts = {race: f"nullif({race}, 'Null')" for race in ("QRACE2", "QRACE3")}
            write_detailed(folder / f"{kind}.parquet", HEADERS[kind], world.records, casts)
            lay_out(folder / f"{kind}.parquet", columns)
        with opened(folder, kind) as records:
            assert not records.findings
            found.append(relations(records, kind))
    assert found[0] == found[1]


@pytest.fixture
def in_folders(place: Place) -> Place:
    """The sound records of the bad inputs, units' geography by state in folders alone."""
    lay_out(place.as_parquet("geo"), ("TABBLKST",))
    return place


@pytest.mark.parametrize("shards", [pytest.param("1", marks=pytest.mark.thorough), "3"])
@pytest.mark.thorough
def test_shards_have_the_columns_of_folders(in_folders: Place, shards: str) -> None:
    made = []
    for more in ([], ["--shards", shards]):
        out = in_folders.root / f"out{len(made)}"
        assert (
            main(["phsafe", "exact", str(in_folders.config), str(in_folders.data), str(out), "--internal", *more]) == 0
        )
        made.append({path.name: path.read_bytes() for path in out.glob("*.csv")})
    assert made[0] == made[1] != {}


def states(place: Place) -> list[Path]:
    return sorted((place.data / "geo.parquet").iterdir())


@pytest.mark.thorough
def test_the_records_that_are_spoiled_below_are_sound(in_folders: Place) -> None:
    assert [path.name for path in states(in_folders)] == ["TABBLKST=06", "TABBLKST=17"]
    assert main(in_folders.arguments("validate")) == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["TABBLKST=6", "tabblkst=06", "TABBLKST=%306"])
@pytest.mark.slow
def test_other_ways_to_write_a_code(in_folders: Place, name: str) -> None:
    states(in_folders)[0].rename(in_folders.data / "geo.parquet" / name)
    assert main(in_folders.arguments("validate")) == 0


@pytest.mark.parametrize("names", [("=006", "="), ("=CA", "=__HIVE_DEFAULT_PARTITION__")])
def test_a_folder_whose_name_is_no_code(in_folders: Place, refused: Refused, names: tuple[str, str]) -> None:
    said = []
    for path, name, rows in zip(states(in_folders), names, ("3 records; rows 1, 2, 3", "1 record; row 1"), strict=True):
        path.rename(path.with_name(f"TABBLKST{name}"))
        said.append((f"geo.parquet/TABBLKST{name}/data_0.parquet: domain: TABBLKST must be 00 to 99", rows))
    told = refused(*(start for start, _ in said)).splitlines()
    for start, end in said:
        assert any(start in line and line.endswith(end) for line in told), told


def test_a_part_outside_its_folder(in_folders: Place, refused: Refused) -> None:
    (path,) = states(in_folders)[0].iterdir()
    path.rename(in_folders.data / "geo.parquet" / "stray.parquet")
    refused("geo.parquet/stray.parquet: columns_present: missing column TABBLKST")


def test_a_part_that_has_the_column_besides(in_folders: Place, refused: Refused) -> None:
    (path,) = states(in_folders)[1].iterdir()
    with duckdb.connect() as db:
        db.execute(f"CREATE TABLE rows AS SELECT * FROM read_parquet('{path}', hive_partitioning = true)")
        db.execute(f"COPY rows TO '{path}' (FORMAT parquet)")
    refused("geo.parquet/TABBLKST=17/data_0.parquet: columns_present: column TABBLKST is there twice")


@pytest.fixture
def in_both(place: Place) -> Place:
    """The same with the state in the files, too."""
    lay_out(place.as_parquet("geo"), ("TABBLKST",), kept=True)
    return place


@pytest.mark.parametrize(
    ("name", "shards"),
    [
        ("TABBLKST=36", ("--shards", "3")),
        ("TABBLKST=6", ()),
        pytest.param("TABBLKST=36", (), marks=pytest.mark.thorough),
        pytest.param("TABBLKST=6", ("--shards", "3"), marks=pytest.mark.thorough),
    ],
)
@pytest.mark.thorough
def test_a_folder_of_another_state(
    in_both: Place, capsys: pytest.CaptureFixture[str], name: str, shards: tuple[str, ...]
) -> None:
    assert main(in_both.arguments("validate")) == 0
    states(in_both)[1].rename(in_both.data / "geo.parquet" / name)
    capsys.readouterr()
    assert main(in_both.arguments("run", *shards)) == 2
    told = capsys.readouterr().err
    file = f"geo.parquet/{name}/data_0.parquet"
    assert f"{file}: in_folder: TABBLKST is not what its folder says; move the file, or rename the folder; 1 " in told


@pytest.mark.thorough
def test_a_folder_whose_name_is_no_code_says_nothing_of_files_that_do(in_both: Place) -> None:
    states(in_both)[1].rename(in_both.data / "geo.parquet" / "TABBLKST=Illinois")
    assert main(in_both.arguments("validate")) == 0


def test_a_part_cut_off_is_all_that_is_told(in_folders: Place, refused: Refused) -> None:
    (path,) = states(in_folders)[0].iterdir()
    path.write_bytes(path.read_bytes()[:100])
    told = refused("geo.parquet/TABBLKST=06/data_0.parquet: is_parquet")
    assert "columns_present" not in told


@pytest.mark.thorough
def test_a_column_by_its_name_in_the_files(in_folders: Place) -> None:
    for path, name in zip(states(in_folders), ("state=06", "state=17"), strict=True):
        path.rename(path.with_name(name))
    columns = in_folders.root / "columns.toml"
    columns.write_text('[geo]\nTABBLKST = "state"\n')
    assert main([*in_folders.arguments("run"), "--columns", str(columns)]) == 0


TOWN = """
name = "town"
title = "Town"
unit = "people"

[files.people]
record = "person"

[files.people.columns]
age = { whole = [0, 9] }
sex = { codes = ["f", "m"] }
district = { codes = ["north", "far south"] }

[areas.town]
code = "T"
labels = { T = "Town" }

[tables.ages]
title = "Ages"
counts = "people"
by = ["people.age", "people.sex", "people.district"]
budget = { town = "1" }
"""


@pytest.mark.thorough
def test_records_of_a_description(tmp_path: Path) -> None:
    (tmp_path / "town.toml").write_text(TOWN)
    rows = [(age % 10, "fm"[age % 2], ("north", "far south")[age % 3 == 0]) for age in range(60)]
    tables = []
    for form, columns in (("csv", ()), ("district", ("district",)), ("all", ("district", "sex", "age"))):
        data = tmp_path / form
        data.mkdir()
        (data / "SYNTHETIC").touch()
        with duckdb.connect() as db:
            db.execute("CREATE TABLE people (age INTEGER, sex VARCHAR, district VARCHAR, other INTEGER)")
            db.executemany("INSERT INTO people VALUES (?, ?, ?, 1)", rows)
            ending = "parquet" if columns else "csv"
            db.execute(f"COPY people TO '{data}/people.{ending}' (FORMAT {ending})")
        if columns:
            lay_out(data / "people.parquet", columns)
        out = tmp_path / f"out-{form}"
        assert main(["tables", "exact", str(tmp_path / "town.toml"), str(data), str(out)]) == 0
        tables.append({path.name: path.read_bytes() for path in out.rglob("*.csv")})
    assert tables[0] == tables[1] == tables[2] != {}
