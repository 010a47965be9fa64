"""Case and order of column names, and columns beside ours, change nothing; one missing or doubled is refused."""

import csv
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from yupana.cli.main import main

Rows = list[list[str]]


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("headers") / "census"
    assert main(["synth", str(folder), "--households", "150", "--states", "44", "--seed", "7"]) == 0
    assert main(["phsafe", "init", str(folder.parent / "config.toml"), "--like", "s-dhc-2020-us"]) == 0
    assert main(["safetab-p", "init", str(folder.parent / "parameters")]) == 0
    return folder


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


@pytest.mark.parametrize("product", RUNS)
def test_case_order_and_other_columns_change_no_byte(product: str, census: Path, tmp_path: Path) -> None:
    config, files = RUNS[product]
    other = tmp_path / "census"
    shutil.copytree(census, other)
    for name in files:
        rewrite(other / name, disguise)
    source = config if product == "topdown" else str(census.parent / config)
    for data, out in ((census, "one"), (other, "two")):
        assert main([product, "run", source, str(data), str(tmp_path / out), "--seed", "3"]) == 0
    one, two = released(tmp_path / "one"), released(tmp_path / "two")
    assert one == two
    assert len(one) > 3


def test_parquet_in_any_case_and_order(census: Path, tmp_path: Path) -> None:
    other = tmp_path / "census"
    shutil.copytree(census, other)
    path = other / "persons.csv"
    rewrite(path, disguise)
    with duckdb.connect() as database:
        read = f"read_csv('{path}', delim = '|', header = true, all_varchar = true)"
        database.execute(f"COPY (FROM {read}) TO '{path.with_suffix('.parquet')}' (FORMAT parquet)")
    path.unlink()
    config = str(census.parent / "config.toml")
    for data, out in ((census, "one"), (other, "two")):
        assert main(["phsafe", "run", config, str(data), str(tmp_path / out), "--seed", "3"]) == 0
    assert released(tmp_path / "one") == released(tmp_path / "two")


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
