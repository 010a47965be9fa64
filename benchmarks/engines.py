"""What engines cost: `python benchmarks/engines.py --households 400000 4000000 [--keep FOLDER]`.

PHSafe and TopDown on a synthetic census in Parquet, in one piece, in shards on this machine, and on Spark: seconds, CPU
seconds of all processes together, and the peak of what they hold. Compare CPU seconds: Spark on one machine has no more
cores than one machine.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from run import COMMAND
from watched import watch

import yupana

ENGINES = {
    "one piece": [],
    "8 shards": ["--shards", "8"],
    "Spark, local[2], 8 shards": ["--engine", "spark", "--master", "local[2]", "--shards", "8"],
}
RUNS = {"phsafe": "s-dhc-2020-us", "safetab-p": "", "topdown": "pl94-2020-us"}


def measure(data: Path, product: str, config: str, out: Path) -> None:
    """Print a line for each engine."""
    alone = 0.0
    for engine, options in ENGINES.items():
        command = [str(COMMAND), product, "run", config, str(data), str(out), "--overwrite", *options]
        found = watch(command)
        if found.status:
            sys.exit(found.error)
        alone = alone or found.cpu
        print(
            f"| {product} | {engine} | {found.seconds:.0f} | {found.cpu:.1f} | {found.cpu / alone:.1f} "
            f"| {found.peak / 1e9:.2f} |",
            flush=True,
        )


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--households", type=int, nargs="+", default=[400_000])
    parser.add_argument("--products", nargs="+", default=["phsafe", "topdown"], choices=[*RUNS])
    parser.add_argument("--safetab", default="", help="the configuration folder of safetab-p")
    parser.add_argument("--keep", type=Path, help="where the census is made and left")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        for households in options.households:
            data = folder / f"census-{households}"
            if not data.exists():
                yupana.synthesize(data, households, format="parquet")
            print(f"{households:,} households\n")
            print("| product | engine | s | CPU s | CPU ratio | GB |\n|---|---|---|---|---|---|")
            for product in options.products:
                measure(data, product, RUNS[product] or options.safetab, Path(temporary) / product)


if __name__ == "__main__":
    main()
