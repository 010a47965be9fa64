"""`yupana count` on 10 million records beside OpenDP and a bare count: `python benchmarks/count.py [PYTHON]`.

PYTHON is an interpreter that has ``opendp[polars]`` with the version of Polars that it asks for, or else ours.
Each is a process of its own, start-up included. Printed are seconds, the most memory, and the bound on the error of one
cell at 90 percent. Without a unit every record is one; with a unit one record of each id counts.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

ROWS = 10_000_000
IDS = 8_000_000
REGIONS = [f"R{number:02}" for number in range(50)]
COMMAND = Path(sys.executable).with_name("yupana")

OPENDP = """
import sys, polars as pl, opendp.prelude as dp
dp.enable_features("contrib")
records, with_unit = sys.argv[1], sys.argv[2] == "unit"
frame = pl.scan_parquet(records).with_columns((pl.col("age") // 5 * 5).alias("bin"))
keys = pl.LazyFrame({"region": [f"R{number:02}" for number in range(50)]})
for name, values in (("bin", range(0, 116, 5)), ("sex", ["1", "2"])):
    kind = {name: pl.Int32} if name == "bin" else None
    keys = keys.join(pl.LazyFrame({name: list(values)}, schema=kind), how="cross")
one = {"identifier": pl.col("person_id")} if with_unit else {}
context = dp.Context.compositor(
    data=frame, privacy_unit=dp.unit_of(contributions=1, **one), privacy_loss=dp.loss_of(epsilon=1.0),
    split_evenly_over=1, margins=[dp.polars.Margin(max_length=20_000_000)],
)
query = context.query().truncate_per_group(1) if with_unit else context.query()
query = query.group_by("region", "bin", "sex").agg(dp.len()).with_keys(keys)
accuracy = query.summarize(alpha=0.1)["accuracy"][0]
query.release().collect()
print(accuracy)
"""

BARE = """
import sys, duckdb
duckdb.sql("SET enable_progress_bar = false")
one = "GROUP BY person_id" if sys.argv[2] == "unit" else ""
first = "first(region), first(age), first(sex)" if one else "region, age, sex"
some = f"SELECT {first} FROM '{sys.argv[1]}' {one}"
duckdb.sql(f"SELECT r, a // 5, s, count(*) FROM ({some}) AS t(r, a, s) GROUP BY ALL").fetchall()
print(0)
"""


def make(path: Path) -> None:
    """Records of nobody: codes, ages and ids by a hash of the row."""
    duckdb.sql(
        "COPY (SELECT 'R' || lpad((hash(i) % 50)::VARCHAR, 2, '0') AS region, (hash(i * 7 + 1) % 116)::INTEGER AS age, "
        f"((hash(i * 13 + 5) % 2) + 1)::VARCHAR AS sex, (hash(i * 17 + 3) % {IDS})::BIGINT AS person_id "
        f"FROM range({ROWS}) AS t(i)) TO '{path}' (FORMAT parquet)"
    )


def timed(what: str, command: list[str]) -> None:
    """Run a program and print a row: its seconds, and the most memory that it took."""
    with tempfile.TemporaryFile("w+") as answer, tempfile.TemporaryFile("w+") as words:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=answer, stderr=words)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - began
        answer.seek(0)
        words.seek(0)
        found, failure = answer.read().strip(), words.read().strip()
    if process.returncode:
        print(f"| {what} | did not run: {failure.splitlines()[-1][:100]} | | |", flush=True)
        return
    error = json.loads(found)["plan"]["measurements"][0]["moe"] if found.startswith("{") else float(found)
    print(f"| {what} | {seconds:.1f} s | {used.ru_maxrss * 1024 / 1e9:.2f} GB | {error:.3g} |", flush=True)


def main() -> None:
    """Print the table."""
    python = sys.argv[1] if len(sys.argv) > 1 else sys.executable
    print("| what | seconds | memory | error of a cell |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        records, out = Path(scratch) / "records.parquet", Path(scratch) / "out"
        make(records)
        ours = [
            *(str(COMMAND), "count", str(records), "--by", "region,age:5:0-115,sex", "--epsilon", "1", "--json"),
            *("--domain", f"region={','.join(REGIONS)}", "--domain", "sex=1,2", "--out", str(out), "--overwrite"),
        ]
        for unit, more in (("record", []), ("unit", ["--unit", "person_id"])):
            told = "each record is a unit" if unit == "record" else "one record of each id"
            timed(f"yupana count, {told}", [*ours, *more])
            timed(f"OpenDP, {told}", [python, "-c", OPENDP, str(records), unit])
            timed(f"DuckDB without noise, {told}", [sys.executable, "-c", BARE, str(records), unit])


if __name__ == "__main__":
    main()
