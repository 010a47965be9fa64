"""A description of ten tables beside hand-written SQL: `python benchmarks/described.py [--millions 10 100]`.

Records of one Parquet file, tables for counties, states and the nation, all exact counts. Ours is `yupana tables exact`
with all it does: start-up, reading and checking every value, counting, writing and a manifest. The SQL counts each
table by county in DuckDB, adds counties up and writes the rows; it checks nothing. Both get the same memory, and the
counts must be equal. Memory is the most that all processes of a program shared out among them (PSS).
"""

import argparse
import csv
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

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


def shared_out(pid: int) -> int:
    """Bytes of memory of a process and all below it; 0 of what has ended."""
    try:
        rolled = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
        told = [path.read_text(encoding="ascii") for path in Path(f"/proc/{pid}/task").glob("*/children")]
        own = next(int(line.split()[1]) for line in rolled.splitlines() if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0
    return own * 1024 + sum(shared_out(int(child)) for text in told for child in text.split())


def timed(command: list[str]) -> tuple[float, float, float]:
    """Seconds, seconds of CPU, and the most memory (GB) of a program."""
    before, began, most = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter(), 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            most = max(most, shared_out(process.pid))
            time.sleep(0.1)
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        raise SystemExit(f"failed: {command[:3]}")
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, most / 1e9


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
    hand = timed([sys.executable, "-c", SQL, str(data / "persons.parquet"), str(sql), memory, json.dumps(TABLES)])
    told = [*(str(description), str(data), str(out)), "--overwrite", "--log", str(log), "--memory", memory]
    ours = timed([str(COMMAND), "tables", "exact", *told])
    for place, by in enumerate(TABLES):
        if counts(out / f"t{place}.csv", "|", by) != counts(sql / f"{place}.csv", ",", by):
            raise SystemExit(f"table {place} differs")
    stages = json.loads(log.read_text(encoding="utf-8"))["seconds"]
    reading, counting = (stages[stage] for stage in ("reading and checking the records", "counting"))
    for what, (seconds, cpu, peak) in (("SQL by hand", hand), ("yupana tables exact", ours)):
        print(
            f"| {millions} M | {what} | {seconds:.1f} | {cpu:.1f} | {peak:.2f} | {seconds / hand[0]:.2f} |", flush=True
        )
    of_it = f"of that reading and checking {reading:.1f} s, counting {counting:.1f} s"
    print(f"| | {of_it} | {reading + counting:.1f} | | | {(reading + counting) / hand[0]:.2f} |", flush=True)


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
