"""Spines from a county to the nation: seconds, peak memory and distances.

    python benchmarks/spines.py [--counties 50 3143] [--cook SOURCE_PARQUET] [--keep FOLDER]

The nation is made up: 3,143 counties in 51 states with 8.1 million blocks in 84,000 tracts, sizes unequal as real
ones are. Places, county subdivisions and AIAN areas are stretches that cut through tracts. `--cook` adds the real
blocks of Cook County, Illinois (examples/cook_county.py). Every row is a process of its own, start-up included;
the optimized spine has tract groups and group quarters. 3,143 counties take 1.5 GB of disk.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from run import COMMAND, timed

_STATES = tuple(f"{state:02}" for state in range(1, 57) if state not in {3, 7, 14, 43, 52})
_LEVELS = "US,State,County,Tract_Group,Tract,Block_Group,Block"
_TRACTS, _BLOCKS = 26.9, 96.0  # mean per county, mean per tract: about 8.1 million blocks in 3,143 counties
_MOST_TRACTS, _MOST_BLOCKS = 2500, 900


def write_nation(folder: Path, counties: int, seed: int = 1) -> int:
    """Write grfc.txt, blocks.csv and entities.csv of a made-up nation; return the number of blocks."""
    rng = np.random.default_rng(seed)
    tracts = np.clip(np.rint(rng.lognormal(0, 1.2, counties) * _TRACTS / np.exp(0.72)), 1, _MOST_TRACTS).astype(int)
    total = 0
    with (
        (folder / "grfc.txt").open("w") as grfc,
        (folder / "blocks.csv").open("w") as attributes,
        (folder / "entities.csv").open("w") as entities,
    ):
        grfc.write("TABBLKST|TABBLKCOU|TABTRACTCE|TABBLKGRPCE|TABBLK|AIANNHCE|COUSUBFP|PLACEFP\n")
        attributes.write("block|housing_units|gq1|gq2|gq3|gq4|gq5|gq6|gq7\n")
        entities.write("block|place|county_subdivision\n")
        for number in range(counties):
            state = _STATES[number * len(_STATES) // counties]
            county = f"{2 * (number % 400) + 1:03}"
            sizes = np.clip(np.rint(rng.lognormal(0, 0.6, tracts[number]) * _BLOCKS / np.exp(0.18)), 1, _MOST_BLOCKS)
            tract = np.repeat(np.arange(tracts[number]), sizes.astype(int))
            blocks = len(tract)
            within = np.arange(blocks) - np.searchsorted(tract, tract)
            group = 1 + within % rng.integers(1, 6, tracts[number])[tract]
            code = 1000 * group + within
            place = _stretches(rng, blocks, 300, 0.4, 99999)
            cousub = _stretches(rng, blocks, 250, 0.0, 99999)
            area = np.where(rng.random() < 0.15, _stretches(rng, blocks, 400, 0.9, 9999), 9999)
            units = rng.poisson(rng.exponential(14, blocks))
            quarters = (rng.random((blocks, 7)) < 0.003).astype(int)
            columns = (tract, group, code, area, cousub, place)
            rows = zip(*(column.tolist() for column in columns), strict=True)
            for (t, g, b, a, c, p), u, q in zip(rows, units.tolist(), quarters.tolist(), strict=True):
                grfc.write(f"{state}|{county}|{t + 1:04}00|{g}|{b:04}|{a:04}|{c:05}|{p:05}\n")
                block = f"{state}{county}{t + 1:04}00{g}{b:04}"
                attributes.write(f"{block}|{u}|{'|'.join(map(str, q))}\n")
                entities.write(f"{block}|{state}{county}{p:05}|{state}{county}{c:05}\n")
            total += blocks
    return total


def _stretches(rng: np.random.Generator, blocks: int, mean: int, none: float, nothing: int) -> NDArray[np.int64]:
    """A code for each block: areas of unequal size one after the other, some of them nothing."""
    number = max(1, blocks // mean)
    ends = np.sort(rng.integers(0, blocks + 1, number))
    area = np.searchsorted(ends, np.arange(blocks), side="right")
    empty = rng.random(number + 1) < none
    return np.where(empty[area], nothing, 1 + area % 4000).astype(np.int64)


def measure(folder: Path, name: str, blocks: int) -> None:
    """Print the rows of one reference file."""
    reference, attributes = str(folder / "grfc.txt"), str(folder / "blocks.csv")
    for kind in ("conventional", "aian", "optimized"):
        out = folder / kind
        more = ("--classes", "pme,aian,gq", "--blocks", attributes) if kind == "optimized" else ()
        seconds, peak = timed(
            "spine", "build", reference, str(out), "--kind", kind, "--levels", _LEVELS, "--overwrite", *more
        )
        began = time.perf_counter()
        answer = subprocess.run(
            [COMMAND, "spine", "distance", out, folder / "entities.csv", "--json"], check=True, capture_output=True
        )
        measuring = time.perf_counter() - began
        far: dict[str, list[int]] = {"place": [], "county_subdivision": []}
        for row in json.loads(answer.stdout):
            far[row["column"]].append(row["osed"])
        told = [f"{np.mean(values):.1f}, {max(values)}" for values in far.values()]
        figures = (name, f"{blocks:,}", kind, f"{seconds:.1f}", f"{peak:.2f}", f"{measuring:.1f}", *told)
        print(f"| {' | '.join(figures)} |", flush=True)


def main() -> None:
    """Measure every size asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--counties", type=int, nargs="*", default=[50, 3143])
    parser.add_argument("--cook", type=Path)
    parser.add_argument("--keep", type=Path, help="where files are made and left")
    options = parser.parse_args()
    far = ("places: mean, most", "subdivisions: mean, most")
    columns = ("what", "blocks", "spine", "build, s", "peak, GB", "distances, s", *far)
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    with tempfile.TemporaryDirectory() as temporary:
        home = options.keep or Path(temporary)
        if options.cook is not None:
            script = Path(__file__).parents[1] / "examples" / "cook_county.py"
            subprocess.run([sys.executable, script, options.cook, home / "cook"], check=True, stdout=sys.stderr)
            measure(home / "cook", "Cook County", 99_042)
        for counties in options.counties:
            folder = home / f"counties-{counties}"
            folder.mkdir(parents=True)
            measure(folder, f"{counties:,} made-up counties", write_nation(folder, counties))


if __name__ == "__main__":
    main()
