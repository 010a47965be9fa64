"""The same census through CSV, Parquet, Parquet by state and CEF: `python benchmarks/readers.py --households 400000`.

Each row: seconds to read and validate, records per second, the whole run (start-up included), its ratio to Parquet, and
the peak memory of the process.
"""

import argparse
import json
import os
import platform
import tempfile
from pathlib import Path

import duckdb
from run import timed

import yupana

FORMS = ("csv", "parquet", "parquet by state", "cef")
_PLACE = "TABBLKST|TABBLKCOU|TABTRACTCE|TABBLK|TABBLKGRPCE|REGIONCE|DIVISIONCE|PLACEFP|AIANNHCE"


def write_text(db: duckdb.DuckDBPyConnection, query: str, path: Path, header: str = "") -> None:
    """Write a query of one column of text as the lines of a file."""
    top = f"SELECT '{header}' AS line UNION ALL " if header else ""
    db.execute(f"COPY ({top}{query}) TO '{path}' (FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER '\x01')")


def write_others(source: Path, by_state: Path, cef: Path) -> None:
    """From a census in Parquet, the same in parts by state and as CEF files."""
    for folder in (by_state, cef):
        folder.mkdir()
        (folder / "SYNTHETIC").touch()
    with duckdb.connect(":memory:") as db:
        for name in ("persons", "units", "geo"):
            db.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{source / name}.parquet')")
            (by_state / f"{name}.parquet").mkdir()
        states = [row[0] for row in db.execute("SELECT DISTINCT TABBLKST FROM geo ORDER BY 1").fetchall()]
        code = f"concat({', '.join(name for name in _PLACE.split('|')[:5])}, PLACEFP, AIANNHCE)"
        for state in states:
            db.execute(
                f"CREATE OR REPLACE TABLE here AS SELECT *, left(lpad({code}, 22, '0'), 22) AS OIDTB "
                f"FROM geo WHERE TABBLKST = '{state}'"
            )
            for name in ("persons", "units", "geo"):
                path = by_state / f"{name}.parquet" / f"{state}.parquet"
                db.execute(f"COPY (SELECT * FROM {name} SEMI JOIN here USING (MAFID)) TO '{path}'")
            persons = (
                "concat(RTYPE, MAFID, repeat('0', 13), lpad(QAGE::VARCHAR, 3, '0'), repeat('0', 21), CENHISP, "
                "repeat('0', 33), CENRACE, '00', RELSHIP, '0000')"
            )
            write_text(
                db, f"SELECT {persons} FROM persons SEMI JOIN here USING (MAFID)", cef / f"CEF20_PER_{state}.txt"
            )
            units = (
                "concat(u.RTYPE, MAFID, repeat('0', 7), lpad(FINAL_POP::VARCHAR, 5, '0'), '000', HHSPAN, '0', HHRACE, "
                "TEN, repeat('0', 7), OIDTB, HHT, HHT2, CPLT, repeat('0', 13))"
            )
            query = f"SELECT {units} FROM units u JOIN here USING (MAFID)"
            write_text(db, query, cef / f"CEF20_UNIT_{state}.txt")
            query = f"SELECT DISTINCT concat_ws('|', OIDTB, {_PLACE.replace('|', ', ')}) FROM here"
            write_text(db, query, cef / f"grfc_tab20_{state}.txt", f"OIDTABBLK|{_PLACE}")


def main() -> None:
    """Make the census, run PHSafe on each form, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--households", type=int, default=400_000)
    parser.add_argument("--repeats", type=int, default=3, help="runs of each form; the fastest counts")
    options = parser.parse_args()
    print(f"yupana {yupana.__version__}, Python {platform.python_version()}, DuckDB {duckdb.__version__}; ", end="")
    print(f"{os.cpu_count()} cores, {platform.processor() or platform.machine()}\n")
    print(
        "| form | read, validated | records/s | whole run | Parquet's / this | peak memory |\n|---|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        folders = {form: root / form.replace(" ", "-") for form in FORMS}
        for form in ("csv", "parquet"):
            timed("synth", str(folders[form]), "--households", str(options.households), "--seed", "1", "--format", form)
        write_others(folders["parquet"], folders["parquet by state"], folders["cef"])
        rows = {}
        for form in FORMS:
            log, runs = root / "log", []
            for _ in range(options.repeats):
                arguments = ("phsafe", "run", "s-dhc-2020-us", str(folders[form]), str(root / "out"), "--overwrite")
                whole, memory = timed(*arguments, "--log", str(log))
                told = json.loads(log.read_text())
                runs.append((whole, memory, told["seconds"]["reading and checking the records"]))
            records = sum(told["records"].values())
            rows[form] = (
                min(run[2] for run in runs),
                records,
                min(run[0] for run in runs),
                max(run[1] for run in runs),
            )
        for form, (reading, records, whole, memory) in rows.items():
            rate, ratio = f"{records / reading / 1e6:.2f} M", rows["parquet"][2] / whole
            print(f"| {form} | {reading:.2f} s | {rate} | {whole:.2f} s | {ratio:.2f} | {memory:.2f} GB |")
        print(f"\n{told['records']}")


if __name__ == "__main__":
    main()
