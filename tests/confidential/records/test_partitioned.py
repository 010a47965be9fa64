"""Parquet in parts, by state, is the same census; a faulty part is named, and rows are counted within it."""

import json
import shutil
from pathlib import Path

import duckdb
import pytest
from census_maker import Codes, random_census, seeded, write_csv, write_parquet
from refusals import CONFIG, Place, Refused
from refusals import place as place  # noqa: PLC0414
from refusals import refused as refused  # noqa: PLC0414

from yupana.cli.main import main

STATES = ("06", "17", "36")


def split(data: Path, name: str, pattern: str, parts: int) -> None:
    """Replace a Parquet file by parts, row by row in turn."""
    path = data / f"{name}.parquet"
    whole = path.rename(data / "whole")
    with duckdb.connect() as db:
        for part in range(parts):
            target = data / pattern.format(part)
            target.parent.mkdir(parents=True, exist_ok=True)
            read = f"read_parquet('{whole}', file_row_number = true)"
            chosen = f"SELECT * EXCLUDE (file_row_number) FROM {read} WHERE file_row_number % {parts} = {part}"
            db.execute(f"COPY ({chosen} ORDER BY file_row_number) TO '{target}' (FORMAT parquet)")
    whole.unlink()


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("pattern", "codes"),
    [
        ("{0}.parquet/{{:02}}.parquet", "text"),
        ("{0}.parquet/state={{:02}}/part-0.parquet", "bureau"),
        ("{0}.parquet/RTYPE=9/turn={{}}/part-0.parquet", "text"),
        ("{0}/{{}}.parquet", "integer"),
    ],
)
@pytest.mark.slow
def test_parts_are_the_same_census(tmp_path: Path, pattern: str, codes: Codes) -> None:
    census = random_census(seeded(6), STATES, 60)
    write_csv(tmp_path / "csv", census)
    write_parquet(tmp_path / "parts", census, codes)
    for name in ("persons", "units", "geo"):
        split(tmp_path / "parts", name, pattern.format(name), 3)
    (tmp_path / "parts" / pattern.format("persons").split("/")[0] / "_SUCCESS").touch()
    config = tmp_path / "config.json"
    config.write_text(json.dumps({**CONFIG, "state_filter": list(STATES)}))
    tables = []
    for name in ("csv", "parts"):
        out = tmp_path / f"out-{name}"
        assert main(["phsafe", "exact", str(config), str(tmp_path / name), str(out)]) == 0
        tables.append({path.name: path.read_bytes() for path in out.glob("*.csv")})
    assert tables[0] == tables[1] != {}


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.thorough
def test_a_hive_folder_above_the_data_is_no_column(tmp_path: Path, form: str) -> None:
    census = random_census(seeded(7), STATES, 20)
    made, data = tmp_path / "made", tmp_path / "QAGE=7" / "data"
    data.parent.mkdir()
    if form == "csv":
        write_csv(made, census)
    else:
        write_parquet(made, census, "text")
    made.rename(data)
    config = tmp_path / "config.json"
    config.write_text(json.dumps({**CONFIG, "state_filter": list(STATES)}))
    assert main(["phsafe", "validate", str(config), str(data)]) == 0


@pytest.fixture
def parts(place: Place) -> Place:
    """The sound records of the bad inputs, persons and units in two parts each."""
    for name in ("persons", "units", "geo"):
        place.as_parquet(name)
    split(place.data, "persons", "persons.parquet/{:02}.parquet", 2)
    split(place.data, "units", "units.parquet/TABBLKST={:02}/part-0.parquet", 2)
    return place


def rewrite(path: Path, select: str) -> None:
    """Replace a part by a query of its rows, ``{}``."""
    with duckdb.connect() as db:
        db.execute(f"CREATE TABLE rows AS SELECT * FROM read_parquet('{path}', hive_partitioning = false)")
        db.execute(f"COPY ({select.format('rows')}) TO '{path}' (FORMAT parquet)")


@pytest.mark.thorough
def test_the_records_that_are_spoiled_below_are_sound(parts: Place) -> None:
    assert main(parts.arguments("validate")) == 0


@pytest.mark.parametrize(
    ("name", "share"),
    [("persons.parquet/01.parquet", 0.0), ("units.parquet/TABBLKST=00/part-0.parquet", 0.5)],
)
@pytest.mark.slow
def test_a_part_cut_off(parts: Place, refused: Refused, name: str, share: float) -> None:
    path = parts.data / name
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    told = refused(f"{name}: {'is_parquet' if share else 'not_empty'}")
    assert told.count(".parquet:") == 1


@pytest.mark.thorough
def test_a_part_damaged_within(parts: Place, refused: Refused) -> None:
    path = parts.data / "persons.parquet" / "01.parquet"
    content = bytearray(path.read_bytes())
    content[4:60] = b"\xff" * 56
    path.write_bytes(content)
    told = refused("persons.parquet/01.parquet: is_parquet: damaged")
    assert "00.parquet" not in told


@pytest.mark.parametrize(
    ("select", "rule"),
    [
        ("SELECT * EXCLUDE (RELSHIP) FROM {}", "columns_present: missing column RELSHIP"),
        ("SELECT *, 1 AS TABBLKST FROM {}", "column_order: the columns are not those of persons.parquet/00.parquet"),
        ("SELECT * REPLACE (QAGE::DOUBLE AS QAGE) FROM {}", "column_type: column QAGE has type DOUBLE"),
        ("SELECT * REPLACE (CENRACE::INTEGER AS CENRACE) FROM {}", "column_type: column CENRACE has another type"),
    ],
)
@pytest.mark.thorough
def test_a_part_of_another_schema(parts: Place, refused: Refused, select: str, rule: str) -> None:
    rewrite(parts.data / "persons.parquet" / "01.parquet", select)
    told = refused(f"persons.parquet/01.parquet: {rule}")
    assert "00.parquet:" not in told


@pytest.mark.thorough
def test_rows_are_counted_within_each_part(parts: Place, refused: Refused) -> None:
    for part, rows in (("00", "WHERE RELSHIP <> '20'"), ("01", "")):
        rewrite(
            parts.data / "persons.parquet" / f"{part}.parquet",
            f"SELECT * REPLACE (CASE WHEN RELSHIP <> '20' THEN '117999' ELSE QAGE END AS QAGE) FROM {{}} {rows}",
        )
    refused(
        "persons.parquet/00.parquet: domain: QAGE must be 0 to 115; 2 records; rows 1, 2",
        "persons.parquet/01.parquet: domain: QAGE must be 0 to 115; 1 record; row 1",
        verb="validate",
    )


@pytest.mark.thorough
def test_a_rule_of_consistency_names_the_part(parts: Place, refused: Refused) -> None:
    path = parts.data / "units.parquet" / "TABBLKST=01" / "part-0.parquet"
    rewrite(path, "SELECT * REPLACE ('7' AS FINAL_POP) FROM {}")
    refused("units.parquet/TABBLKST=01/part-0.parquet: final_pop", "2 records; rows 1, 2")


@pytest.mark.thorough
def test_findings_of_very_many_parts_are_summed_up(parts: Place, refused: Refused) -> None:
    source = parts.data / "persons.parquet" / "00.parquet"
    rewrite(source, "SELECT * REPLACE ('117999' AS QAGE) FROM {} LIMIT 1")
    for part in range(10, 60):
        shutil.copy(source, source.with_name(f"{part}.parquet"))
    told = refused("31 more files from persons.parquet/", "31 records", verb="validate")
    assert told.count("domain: QAGE") == 21


@pytest.mark.thorough
def test_a_users_folder_names_no_records_elsewhere(parts: Place, refused: Refused) -> None:
    shutil.move(parts.data / "units.parquet", parts.root / "elsewhere")
    (path,) = (parts.root / "elsewhere" / "TABBLKST=00").iterdir()
    told = {"paths": [str(path)], "names": ["units"], "beside": [], "rows": [str(path)]}
    (parts.data / ".units.shard").write_text(json.dumps(told))
    refused("units.csv or units.parquet: file_present: no such file in")


@pytest.mark.thorough
def test_what_is_no_part(parts: Place, refused: Refused) -> None:
    stray = parts.data / "persons.parquet" / "02.csv"
    stray.write_text("SECRETX")
    refused("persons.parquet/02.csv: is_parquet")
    stray.unlink()
    for path in (parts.data / "persons.parquet").iterdir():
        path.unlink()
    refused("persons.parquet: not_empty")


@pytest.mark.thorough
def test_two_forms_at_once(parts: Place, refused: Refused) -> None:
    shutil.copytree(parts.data / "persons.parquet", parts.data / "persons")
    refused("persons.parquet or persons: one_file")
