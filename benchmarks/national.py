"""PHSafe up to national size: `python benchmarks/national.py [--millions 1 10 100] [--memory 12GB] [--keep FOLDER]`.

For each size a synthetic census is written to Parquet, and `phsafe run` with the production configuration is timed from
outside, with its peak memory, its stages from the confidential log, and the floor beside it: DuckDB scanning the
columns that the run uses, and nothing else. 331 millions need 5 GB of disk.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import duckdb
from run import CONFIG, timed

_PERSONS_PER_HOUSEHOLD = 2.622
_USED = {
    "persons": ("RTYPE", "MAFID", "QAGE", "CENHISP", "CENRACE", "RELSHIP"),
    "units": ("RTYPE", "MAFID", "FINAL_POP", "HHSPAN", "HHRACE", "TEN", "HHT", "HHT2", "CPLT"),
    "geo": ("RTYPE", "MAFID", "TABBLKST"),
}


def floor(data: Path) -> float:
    """Seconds to scan the columns used, the better of two."""
    seconds = []
    for _ in range(2):
        began = time.perf_counter()
        with duckdb.connect(":memory:") as db:
            for name, columns in _USED.items():
                # A hash, for the largest value alone would be read from the file's statistics.
                used = ", ".join(f"bit_xor(hash({column}))" for column in columns)
                db.execute(f"SELECT {used} FROM read_parquet('{data / name}.parquet')").fetchall()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def measure(folder: Path, millions: float, memory: str | None) -> None:
    """Print one line for one size; a census that is there already is used again."""
    data, out, log = folder / f"census-{millions:g}", folder / "out", folder / "log"
    making = 0.0
    if not data.exists():
        households = str(round(millions * 1e6 / _PERSONS_PER_HOUSEHOLD))
        making, _ = timed("synth", str(data), "--households", households, "--seed", "1", "--format", "parquet")
    options = ("--memory", memory) if memory else ()
    seconds, peak = timed("phsafe", "run", CONFIG, str(data), str(out), "--overwrite", "--log", str(log), *options)
    told = json.loads(log.read_text())
    checking, counting = (told["seconds"][stage] for stage in ("reading and checking the records", "counting"))
    bare = floor(data)
    persons, units = told["records"]["persons"], told["records"]["units"]
    measured = (making, checking, counting, seconds, peak, bare, counting / bare)
    print(f"| {persons:,} | {units:,} | {' | '.join(f'{value:.1f}' for value in measured)} |", flush=True)


def main() -> None:
    """Measure every size asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millions", type=float, nargs="+", default=[1, 10, 100])
    parser.add_argument("--memory")
    parser.add_argument("--keep", type=Path, help="where censuses are made and left")
    options = parser.parse_args()
    columns = ("persons", "units", "made, s", "checked, s", "counted, s", "whole, s", "peak, GB", "scan, s", "ratio")
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        for millions in options.millions:
            measure(folder, millions, options.memory)


if __name__ == "__main__":
    main()
