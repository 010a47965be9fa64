"""What engines cost, and what memory a run takes: `python benchmarks/engines.py --households 400000 4000000`.

PHSafe, SafeTab and TopDown on synthetic censuses in Parquet, in one piece, in shards on this machine, and on Spark
with one executor and with two: seconds, CPU seconds of all processes together, and the peak of what they hold. Compare
CPU seconds: Spark on one machine has no more cores than one machine. `--data FOLDER` takes records that are there, and
what stands behind `--` goes to every run, such as `--memory 4GB`.
"""

import argparse
import tempfile
from pathlib import Path

from run import COMMAND
from watched import watch

import yupana

ENGINES = {
    "one": [],
    "shards": ["--shards", "8"],
    "local": ["--engine", "spark", "--master", "local[2]", "--shards", "8"],
    "executor": ["--engine", "spark", "--master", "local-cluster[1,1,2048]", "--shards", "8"],
    "executors": ["--engine", "spark", "--master", "local-cluster[2,1,2048]", "--shards", "8"],
}
NAMES = {
    "one": "one piece",
    "shards": "8 shards",
    "local": "Spark, `local[2]`, 8 shards",
    "executor": "Spark, 1 executor, 8 shards",
    "executors": "Spark, 2 executors, 8 shards",
}
CONFIGURATIONS = {"phsafe": "s-dhc-2020-us", "topdown": "pl94-2020-us"}
PRODUCTS = ("phsafe", "safetab-p", "safetab-h", "topdown")


def measure(data: Path, product: str, config: str, out: Path, engines: list[str], more: list[str]) -> None:
    """Print a line for each engine."""
    alone = 0.0
    for engine in engines:
        command = [str(COMMAND), product, "run", config, str(data), str(out / product), "--overwrite", *ENGINES[engine]]
        totals = ["--totals", str(out / "safetab-p" / "T01001.csv")] if product == "safetab-h" else []
        found = watch([*command, *totals, *more]).whole
        alone = alone or found.cpu
        print(
            f"| {product} | {NAMES[engine]} | {found.seconds:.0f} | {found.cpu:.1f} | {found.cpu / alone:.1f} "
            f"| {found.peak / 1e9:.2f} |",
            flush=True,
        )


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--households", type=int, nargs="*", default=[])
    parser.add_argument("--data", type=Path, nargs="*", default=[], help="records that are there")
    parser.add_argument("--products", nargs="+", default=["phsafe", "topdown"], choices=PRODUCTS)
    parser.add_argument("--engines", nargs="+", default=[*ENGINES], choices=[*ENGINES])
    parser.add_argument("--safetab", type=Path, nargs=2, help="configuration folders of safetab-p and safetab-h")
    parser.add_argument("--keep", type=Path, help="where censuses are made and left")
    parser.add_argument("more", nargs="*", help="options of every run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        places = list(options.data)
        for households in options.households:
            places.append((options.keep or Path(temporary)) / f"census-{households}")
            if not places[-1].exists():
                yupana.synthesize(places[-1], households, format="parquet")
        for data in places:
            print(f"{data.name}\n\n| product | engine | s | CPU s | CPU ratio | GB |\n|---|---|---|---|---|---|")
            for product in options.products:
                folders = dict(zip(("safetab-p", "safetab-h"), map(str, options.safetab or ()), strict=False))
                config = {**CONFIGURATIONS, **folders}[product]
                measure(data, product, config, Path(temporary), options.engines, options.more)


if __name__ == "__main__":
    main()
