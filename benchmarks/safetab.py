"""SafeTab up to national size: `python benchmarks/safetab.py PARAMETERS_P PARAMETERS_H [--millions 1 10] [--keep F]`.

For each size a synthetic census is written to Parquet (or one that is there is used again), and `safetab-p run` and
`safetab-h run` on its totals are timed from outside, with their peak memory and their stages from the confidential
log. The parameter folders are the Census Bureau's of 2020. The floor beside them is DuckDB scanning the columns used.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import duckdb
from run import timed

_PERSONS_PER_HOUSEHOLD = 2.622
_CODES = (*(f"QRACE{number}" for number in range(1, 9)), "QSPAN", "TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLK")
_USED = {"person-records": (*_CODES, "QAGE", "QSEX"), "household-records": (*_CODES, "HOUSEHOLD_TYPE", "TEN")}


def floor(data: Path, name: str) -> float:
    """Seconds to scan the columns used, the better of two."""
    seconds = []
    for _ in range(2):
        began = time.perf_counter()
        with duckdb.connect(":memory:") as db:
            used = ", ".join(f"bit_xor(hash({column}))" for column in _USED[name])
            db.execute(f"SELECT {used} FROM read_parquet('{data / name}.parquet')").fetchall()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def measure(folder: Path, millions: float, parameters: dict[str, Path], memory: str | None) -> None:
    """Print a line for each product at one size."""
    data, log = folder / f"census-{millions:g}", folder / "log"
    if not data.exists():
        households = str(round(millions * 1e6 / _PERSONS_PER_HOUSEHOLD))
        timed("synth", str(data), "--households", households, "--seed", "1", "--format", "parquet")
    outs = {product: folder / f"out-{product}" for product in parameters}
    for product, name in (("safetab-p", "person-records"), ("safetab-h", "household-records")):
        totals = ("--totals", str(outs["safetab-p"] / "T01001.csv")) if product == "safetab-h" else ()
        options = ("--memory", memory) if memory else ()
        arguments = (product, "run", str(parameters[product]), str(data), str(outs[product]), "--overwrite")
        seconds, peak = timed(*arguments, "--log", str(log), *totals, *options)
        told = json.loads(log.read_text())["seconds"]
        with duckdb.connect(":memory:") as db:
            (records,) = db.execute(f"SELECT count(*) FROM read_parquet('{data / name}.parquet')").fetchone() or (0,)
        manifest = json.loads((outs[product] / "manifest.json").read_text())
        rows = sum(table["rows"] for table in manifest["tables"].values())
        stages = [told[s] for s in ("reading and checking the records", "counting and adding noise")]
        bare = floor(data, name)
        figures = (*stages, told["writing the release"], seconds, seconds - stages[0], peak, bare, stages[1] / bare)
        shown = " | ".join(f"{value:.1f}" for value in figures)
        print(f"| {product} | {records:,} | {rows:,} | {shown} |", flush=True)


def main() -> None:
    """Measure every size asked for."""
    parser = argparse.ArgumentParser(description="SafeTab up to national size.")
    parser.add_argument("parameters_p", type=Path)
    parser.add_argument("parameters_h", type=Path)
    parser.add_argument("--millions", type=float, nargs="+", default=[1, 10, 100])
    parser.add_argument("--memory")
    parser.add_argument("--keep", type=Path, help="leave the censuses in this folder, and use those that are there")
    options = parser.parse_args()
    stages = ("checked", "counted", "written", "whole", "unchecked")
    columns = ("product", "records", "rows", *stages, "GB", "scan", "counted / scan")
    print(f"| {' | '.join(columns)} |")
    print("|---" * len(columns) + "|")
    parameters = {"safetab-p": options.parameters_p, "safetab-h": options.parameters_h}
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for millions in options.millions:
            measure(folder, millions, parameters, options.memory)


if __name__ == "__main__":
    main()
