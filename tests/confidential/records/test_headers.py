"""Case and order of column names, and columns beside ours, change nothing; one missing or doubled is refused."""

import csv
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from yupana.cli.main import main
from yupana.confidential.records.census_edited_file import CONFIG
from yupana.errors import ConfigError
from yupana.files.columns import column_map_of, read_column_map

Rows = list[list[str]]


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("headers") / "census"
    assert main(["synth", str(folder), "--households", "60", "--states", "44", "--seed", "7"]) == 0
    assert main(["phsafe", "init", str(folder.parent / "config.toml"), "--like", "s-dhc-2020-us"]) == 0
    assert main(["safetab-p", "init", str(folder.parent / "parameters")]) == 0
    return folder


@pytest.fixture(scope="module")
def plain(census: Path) -> dict[str, dict[str, bytes]]:
    """What PHSafe and SafeTab-P publish of the census."""
    made = {}
    for product in ("phsafe", "safetab-p"):
        out = census.parent / f"plain-{product}"
        source = str(census.parent / RUNS[product][0])
        assert main([product, "run", source, str(census), str(out), "--seed", "3"]) == 0
        made[product] = released(out)
    assert all(len(files) > 3 for files in made.values())
    return made


def rewrite(path: Path, change: Callable[[Rows], Rows]) -> None:
    with path.open(newline="") as file:
        rows = list(csv.reader(file, delimiter="|"))
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter="|", lineterminator="\n").writerows(change(rows))


def disguise(rows: Rows) -> Rows:
    """Lower case, another order, and columns of others: one without a name, one with that of no column of ours."""
    order = random.Random(5).sample(range(len(rows[0])), len(rows[0]))  # noqa: S311
    header, *records = ([row[place] for place in order] for row in rows)
    told = [name.lower() if place % 2 else name.title() for place, name in enumerate(header)]
    return [["", *told, "Note"], *(["7", *record, "x|y"] for record in records)]


def released(folder: Path) -> dict[str, bytes]:
    tables = (path for path in folder.rglob("*") if path.is_file() and path.name != "manifest.json")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in tables}


RUNS = {
    "phsafe": ("config.toml", ("persons.csv", "units.csv", "geo.csv")),
    "safetab-p": ("parameters", ("person-records.txt",)),
    "topdown": ("pl94-2020-us", ("persons.csv", "units.csv", "geo.csv")),
}


@pytest.mark.parametrize("product", ["phsafe", "safetab-p"])
@pytest.mark.thorough
def test_case_order_and_other_columns_change_no_byte(
    product: str, census: Path, plain: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    other, source = disguised(product, census, tmp_path), str(census.parent / RUNS[product][0])
    assert main([product, "run", source, str(other), str(tmp_path / "out"), "--seed", "3"]) == 0
    assert released(tmp_path / "out") == plain[product]


@pytest.mark.thorough
def test_case_order_and_other_columns_change_no_byte_of_topdown(census: Path, tmp_path: Path) -> None:
    other = disguised("topdown", census, tmp_path)
    for data, out in ((census, "one"), (other, "two")):
        assert main(["topdown", "run", "pl94-2020-us", str(data), str(tmp_path / out), "--seed", "3"]) == 0
    assert released(tmp_path / "one") == released(tmp_path / "two")


def disguised(product: str, census: Path, folder: Path) -> Path:
    other = Path(shutil.copytree(census, folder / "census"))
    for name in RUNS[product][1]:
        rewrite(other / name, disguise)
    return other


@pytest.mark.thorough
def test_parquet_in_any_case_and_order(census: Path, plain: dict[str, dict[str, bytes]], tmp_path: Path) -> None:
    other = tmp_path / "census"
    shutil.copytree(census, other)
    path = other / "persons.csv"
    rewrite(path, disguise)
    with duckdb.connect() as database:
        read = f"read_csv('{path}', delim = '|', header = true, all_varchar = true)"
        database.execute(f"COPY (FROM {read}) TO '{path.with_suffix('.parquet')}' (FORMAT parquet)")
    path.unlink()
    config = str(census.parent / "config.toml")
    assert main(["phsafe", "run", config, str(other), str(tmp_path / "out"), "--seed", "3"]) == 0
    assert released(tmp_path / "out") == plain["phsafe"]


def refused(census: Path, change: Callable[[Rows], Rows], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    other = tmp_path / "census"
    shutil.copytree(census, other)
    rewrite(other / "persons.csv", change)
    assert main(["phsafe", "validate", str(census.parent / "config.toml"), str(other)]) == 2
    return capsys.readouterr().out


def test_a_column_twice_is_refused_in_whatever_case(
    census: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = refused(census, lambda rows: [[*row, row[1].swapcase()] for row in rows], tmp_path, capsys)
    with (census / "persons.csv").open() as file:
        name = file.readline().split("|")[1]
    assert f"columns_present: column {name} is there twice" in told


def test_a_column_twice_in_parquet_is_refused(census: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    other = tmp_path / "census"
    shutil.copytree(census, other)
    with (other / "persons.csv").open(newline="") as file:
        header, *records = csv.reader(file, delimiter="|")
    (other / "persons.csv").unlink()
    columns = [arrow.array(list(column)) for column in zip(*records, strict=True)]
    parquet.write_table(
        arrow.Table.from_arrays([*columns, columns[1]], names=[*header, header[1].lower()]), other / "persons.parquet"
    )
    assert main(["phsafe", "validate", str(census.parent / "config.toml"), str(other)]) == 2
    assert f"columns_present: column {header[1]} is there twice" in capsys.readouterr().out


def test_a_missing_column_is_told_the_nearest_name(
    census: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def misspell(rows: Rows) -> Rows:
        return [["RELSHP" if name == "RELSHIP" else name for name in rows[0]], *rows[1:]]

    told = refused(census, misspell, tmp_path, capsys)
    assert "columns_present: missing column RELSHIP in the header; did you mean RELSHP?" in told


def test_a_record_in_place_of_the_header_is_not_shown(
    census: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = refused(census, lambda rows: [["relsh1p"] * len(rows[0]), *rows[1:]], tmp_path, capsys)
    assert "columns_present: missing column" in told
    assert "relsh1p" not in told


MAP = {
    "persons": {"QAGE": "alter", "RELSHIP": "CENHISP", "CENHISP": "RELSHIP"},
    "units": {"MAFID": "home id"},
    "person-records": {"QAGE": "alter", "QRACE1": "first race", "TABBLKST": "land"},
}


def renamed(census: Path, folder: Path) -> Path:
    """A map, and beside it the records with its names."""
    shutil.copytree(census, folder / "census")
    for name, table in MAP.items():
        path = folder / "census" / f"{name}.{'txt' if name == 'person-records' else 'csv'}"
        rewrite(path, lambda rows, table=table: [[table.get(column, column) for column in rows[0]], *rows[1:]])
    lines = [line for name, table in MAP.items() for line in (f"[{name}]", *(f'{a} = "{b}"' for a, b in table.items()))]
    (folder / "map.toml").write_text("\n".join(lines))
    return folder / "map.toml"


def to_parquet(folder: Path, *names: str, parts: int = 1) -> None:
    for name in names:
        path = next(folder.glob(f"{name}.*"))
        with duckdb.connect() as database:
            read = f"read_csv('{path}', delim = '|', header = true, all_varchar = true)"
            database.execute(f"CREATE TABLE whole AS SELECT *, row_number() OVER () AS place FROM {read}")
            if parts > 1:
                (folder / name).mkdir()
            for part in range(parts):
                to = folder / name / f"{part}.parquet" if parts > 1 else folder / f"{name}.parquet"
                rows = f"SELECT * EXCLUDE place FROM whole WHERE place % {parts} = {part} ORDER BY place"
                database.execute(f"COPY ({rows}) TO '{to}' (FORMAT parquet)")
        path.unlink()


@pytest.mark.parametrize(
    ("product", "parts"),
    [("phsafe", 2), pytest.param("phsafe", 0, marks=pytest.mark.thorough), ("safetab-p", 0), ("safetab-p", 1)],
)
@pytest.mark.thorough
def test_names_of_ones_own_change_no_byte(
    product: str, parts: int, census: Path, plain: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    columns = renamed(census, tmp_path)
    if parts:
        names = ("persons", "units") if product == "phsafe" else ("person-records",)
        to_parquet(tmp_path / "census", *names, parts=parts)
    source, out = str(census.parent / RUNS[product][0]), tmp_path / "out"
    told = ["--seed", "3", "--columns", str(columns)]
    assert main([product, "run", source, str(tmp_path / "census"), str(out), *told]) == 0
    assert released(out) == plain[product]
    manifest = json.loads((out / "manifest.json").read_text())
    assert json.loads(manifest["options"]["columns"]) == MAP
    beside = census.parent / f"plain-{product}" / "manifest.json"
    assert "columns" not in json.loads(beside.read_text())["options"]


@pytest.mark.thorough
def test_a_release_is_repeated_with_its_names(census: Path, tmp_path: Path) -> None:
    columns = renamed(census, tmp_path)
    data, config = str(tmp_path / "census"), str(census.parent / "config.toml")
    told = ["--seed", "3", "--columns", str(columns)]
    assert main(["phsafe", "run", config, data, str(tmp_path / "one"), *told]) == 0
    manifest = str(tmp_path / "one" / "manifest.json")
    assert main(["phsafe", "run", manifest, data, str(tmp_path / "two"), "--seed", "3"]) == 0
    assert released(tmp_path / "one") == released(tmp_path / "two")


def test_a_mapped_column_that_is_missing_is_named(
    census: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = tmp_path / "map.toml"
    columns.write_text('[persons]\nQAGE = "alter"\n')
    config = str(census.parent / "config.toml")
    assert main(["phsafe", "validate", config, str(census), "--columns", str(columns)]) == 2
    assert "columns_present: missing column alter (for QAGE) in the header" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[person]\nQAGE = "a"', "'person' is no record file; there are .*; did you mean persons"),
        ('[persons]\nqage = "a"', "persons: 'qage' is no column; there are .*; did you mean QAGE"),
        ("[persons]\nQAGE = 3", "persons.QAGE: must be a name"),
        ('[persons]\nQAGE = "3"', "persons.QAGE: must be a name"),
        ('[persons]\nQAGE = "größe"', "persons.QAGE: must be a name in ASCII"),
        ('[persons]\nQAGE = "relship"', "would be both .* map each to a name of its own"),
        ("persons = 3", "persons: must be a table"),
    ],
)
def test_a_map_that_says_what_cannot_be_is_refused(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "map.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=told):
        read_column_map(path)
    with pytest.raises(ConfigError, match=r"options.columns: "):
        column_map_of('{"persons": {"QAGE": 3}}')


def test_a_map_for_other_kinds_of_files_is_refused(
    census: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = renamed(census, tmp_path)
    data = tmp_path / "data"
    shutil.copytree(census, data)
    for name in ("persons", "units", "geo"):
        (data / f"{name}.csv").unlink()
    (data / "histogram.csv").write_text("block|cell|count\n")
    assert main(["topdown", "validate", "pl94-2020-us", str(data), "--columns", str(columns)]) == 2
    assert "--columns is for persons, units, geo and records" in capsys.readouterr().err


def test_a_map_for_the_census_edited_file_is_refused(
    census: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = renamed(census, tmp_path)
    data = tmp_path / "cef"
    data.mkdir()
    (data / CONFIG).write_text("")
    config, parameters = (str(census.parent / name) for name in ("config.toml", "parameters"))
    for product, source in (("phsafe", config), ("safetab-p", parameters)):
        assert main([product, "validate", source, str(data), "--columns", str(columns)]) == 2
        assert "--columns is for persons, units, geo and records" in capsys.readouterr().err
