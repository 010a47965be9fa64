"""The built-in descriptions of 2020 beside the products' own code: `python benchmarks/descriptions_2020.py P H`.

P and H are the Census Bureau's parameter folders of SafeTab-P and SafeTab-H. For each product the same synthetic census
is run with the same seed by the product and by the description, in turn, several times each; the tables must be the
same byte by byte. Printed are medians of seconds and of CPU seconds, and their ratios; the bar is 1.10.
"""

import argparse
import statistics
import tempfile
from pathlib import Path

from run import COMMAND
from watched import Took, watch

_PERSONS_PER_HOUSEHOLD = 2.622


def measure(folder: Path, millions: float, parameters: dict[str, Path], times: int) -> None:
    """Print a line for each product at one size."""
    data = folder / "census"
    households = str(round(millions * 1e6 / _PERSONS_PER_HOUSEHOLD))
    watch([str(COMMAND), "synth", str(data), "--households", households, "--seed", "1", "--format", "parquet"])
    totals = ["--totals", str(folder / "safetab-p" / "T01001.csv")]
    for product, config, description, more in (
        ("phsafe", "s-dhc-2020-us", "s-dhc-2020-us", []),
        ("safetab-p", str(parameters["safetab-p"]), "ddhc-a-2020-us", []),
        ("safetab-h", str(parameters["safetab-h"]), "ddhc-b-2020-us", totals),
    ):
        codes = ["--codes", config] if product in parameters else []
        ways = {product: [product, "run", config], description: ["tables", "run", description, *codes]}
        found: dict[str, list[Took]] = {way: [] for way in ways}
        for _ in range(times):
            for (way, command), out in zip(ways.items(), (product, f"{product}-described"), strict=True):
                terms = [str(data), str(folder / out), *more, "--seed", "3", "--overwrite"]
                found[way].append(watch([str(COMMAND), *command, *terms]).whole)
        for table in sorted((folder / product).glob("*.csv")):
            if table.read_bytes() != (folder / f"{product}-described" / table.name).read_bytes():
                raise SystemExit(f"{table.name} of {description} is not that of {product}")
        took = [found[way] for way in ways]
        seconds = [statistics.median(one.seconds for one in of) for of in took]
        cpu = [statistics.median(one.cpu for one in of) for of in took]
        peak = [statistics.median(one.peak for one in of) / 1e9 for of in took]
        figures = (*seconds, seconds[1] / seconds[0], *cpu, cpu[1] / cpu[0], *peak)
        print(f"| {product} | {description} | {' | '.join(f'{value:.2f}' for value in figures)} |", flush=True)


def main() -> None:
    """Measure the size asked for."""
    parser = argparse.ArgumentParser(description="The descriptions of 2020 beside the products.")
    parser.add_argument("parameters_p", type=Path)
    parser.add_argument("parameters_h", type=Path)
    parser.add_argument("--millions", type=float, default=2, help="persons")
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    print("| product | description | s | s | ratio | CPU s | CPU s | ratio | GB | GB |")
    print("|---" * 10 + "|")
    with tempfile.TemporaryDirectory() as folder:
        parameters = {"safetab-p": options.parameters_p, "safetab-h": options.parameters_h}
        measure(Path(folder), options.millions, parameters, options.times)


if __name__ == "__main__":
    main()
