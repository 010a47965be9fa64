"""A description of ten tables beside hand-written SQL: `python benchmarks/described.py [--millions 10 100]`.

Records of one Parquet file, tables for counties, states and the nation, all exact counts. Ours is `yupana tables exact`
with all it does: start-up, reading and checking every value, counting, writing and a manifest. The SQL counts each
table by county in DuckDB, adds counties up and writes the rows; it checks nothing. Both get the same memory, and the
counts must be equal. Memory is the most that all processes of a program shared out among them (PSS).
"""

import argparse
import csv
import json
import sys
import tempfile
from pathlib import Path

import duckdb
from watched import watch

COMMAND = Path(sys.executable).with_name("yupana")
COUNTIES = [f"{state:02}{county:03}" for state in range(1, 51) for county in range(1, 64)]
COLUMNS = {
    "county": COUNTIES,
    "sex": ["1", "2"],
    "race": [f"{code:02}" for code in range(1, 8)],
    "hispanic": ["1", "2"],
    "school": [f"{code:02}" for code in range(16)],
    "work": list("123456"),
    "tenure": list("1234"),
}
TABLES = [
    ["sex"],
    ["age"],
    ["sex", "age"],
    ["race"],
    ["race", "hispanic"],
    ["school"],
    ["work"],
    ["school", "sex"],
    ["work", "age"],
    ["tenure", "race"],
]

SQL = """
import json, sys, duckdb
records, out, memory, tables = sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
db = duckdb.connect(config={"memory_limit": memory})
db.execute("SET enable_progress_bar = false")
for place, by in enumerate(tables):
    shown = ", ".join("age // 5 AS age" if name == "age" else name for name in by)
    names = ", ".join(by)
    db.execute(f"CREATE TEMP TABLE c AS SELECT county, {shown}, count(*) AS n FROM '{records}' GROUP BY ALL")
    db.execute(
        f"COPY (SELECT county AS area, {names}, n FROM c UNION ALL SELECT left(county, 2), {names}, sum(n) FROM c "
        f"GROUP BY ALL UNION ALL SELECT 'all', {names}, sum(n) FROM c GROUP BY ALL) TO '{out}/{place}.csv'"
    )
    db.execute("DROP TABLE c")
"""


def make(path: Path, rows: int) -> None:
    """Records of nobody, every value by a hash of the row."""
    codes = [
        f"list_extract({values}, (hash(i * {2 * place + 3} + {place}) % {len(values)})::INTEGER + 1) AS {name}"
        for place, (name, values) in enumerate(COLUMNS.items())
    ]
    ages = "(hash(i * 31 + 7) % 100)::UTINYINT AS age"
    with duckdb.connect(":memory:") as db:
        db.execute("SET enable_progress_bar = false")
        db.execute(f"COPY (SELECT {', '.join([*codes, ages])} FROM range({rows}) AS t(i)) TO '{path}' (FORMAT parquet)")
    (path.parent / "SYNTHETIC").touch()


def describe(path: Path) -> None:
    """The description of the same tables."""
    columns = {name: {"codes": codes} for name, codes in COLUMNS.items()} | {"age": {"whole": [0, 99]}}
    document = {
        "name": "ten-tables",
        "unit": "persons",
        "files": {"persons": {"record": "person", "columns": columns}},
        "recodes": {
            "five": {
                "column": "persons.age",
                "classes": {str(low // 5): f"{low}-{low + 4}" for low in range(0, 100, 5)},
            }
        },
        "areas": {
            "county": {"column": "persons.county"},
            "state": {"column": "persons.county", "first": 2},
            "all": {"code": "all"},
        },
        "tables": {
            f"t{place}": {
                "counts": "persons",
                "by": ["five" if name == "age" else f"persons.{name}" for name in by],
                "budget": dict.fromkeys(("county", "state", "all"), "1/100"),
            }
            for place, by in enumerate(TABLES)
        },
    }
    path.write_text(json.dumps(document), encoding="utf-8")


def counts(path: Path, separator: str, by: list[str]) -> dict[tuple[str, ...], int]:
    """The counts of a table that are not zero, by area and cell."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter=separator)
        found = {}
        for row in rows:
            ours = "REGION_ID" in row
            names = ["REGION_ID" if ours else "area", *("five" if ours and name == "age" else name for name in by)]
            found[tuple(row[name] for name in names)] = int(row["COUNT" if ours else "n"])
    return {key: count for key, count in found.items() if count}


def measure(folder: Path, millions: int, memory: str) -> None:
    """Print a row for each program."""
    data, out, sql, log = folder / f"records-{millions}", folder / "out", folder / "sql", folder / "log"
    description = folder / "tables.json"
    describe(description)
    sql.mkdir(exist_ok=True)
    if not data.exists():
        data.mkdir()
        make(data / "persons.parquet", millions * 1_000_000)
    hand = watch([sys.executable, "-c", SQL, str(data / "persons.parquet"), str(sql), memory, json.dumps(TABLES)]).whole
    told = [*(str(description), str(data), str(out)), "--overwrite", "--log", str(log), "--memory", memory]
    ours = watch([str(COMMAND), "tables", "exact", *told]).whole
    for place, by in enumerate(TABLES):
        if counts(out / f"t{place}.csv", "|", by) != counts(sql / f"{place}.csv", ",", by):
            raise SystemExit(f"table {place} differs")
    stages = json.loads(log.read_text(encoding="utf-8"))["seconds"]
    reading, counting = (stages[stage] for stage in ("reading and checking the records", "counting"))
    for what, took in (("SQL by hand", hand), ("yupana tables exact", ours)):
        told_of = f"{took.seconds:.1f} | {took.cpu:.1f} | {took.peak / 1e9:.2f} | {took.seconds / hand.seconds:.2f}"
        print(f"| {millions} M | {what} | {told_of} |", flush=True)
    of_it = f"of that reading and checking {reading:.1f} s, counting {counting:.1f} s"
    print(f"| | {of_it} | {reading + counting:.1f} | | | {(reading + counting) / hand.seconds:.2f} |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millions", type=int, nargs="+", default=[10])
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--keep", type=Path, help="where records are made and left")
    options = parser.parse_args()
    print("| records | what | seconds | CPU s | GB | ratio |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        for millions in options.millions:
            measure(folder, millions, options.memory)


if __name__ == "__main__":
    main()
