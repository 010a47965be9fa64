"""TopDown on real blocks, of a state and of a nation: `python benchmarks/topdown.py [--cook DATA] [--state DATA ...]`.

DATA of Cook County is what `examples/topdown_cook.py` makes: both estimators on the conventional and the optimized
spine are timed from outside, with start-up, reading, checking and writing; then the errors of both estimators on the
same noise are compared over replicates, by geolevel and query, and those of places between spines. DATA of a state is
what `yupana synth` makes in Parquet: one run each of `pl94-2020-us`, or of what `--configuration` names, with its
stages. `--nation MILLIONS` makes such data of so many persons in all states, unless the folder of `--keep` has them
already, and runs it. Runs of states and nations are watched from outside: the peak is that of the process with all
that it starts (`watched.py`).
"""

import argparse
import json
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final, Literal, TypeAlias

from run import COMMAND, timed
from watched import watch

import yupana

Errors: TypeAlias = dict[tuple[str, str], float]

PERSONS_PER_HOUSEHOLD = 2.622
BAR_SECONDS, BAR_GIGABYTES = 20, 2
KINDS = ("conventional", "optimized")
ESTIMATORS: Final = ("topdown", "full-information")
BARS = {
    ("tract", "total"): 0.80,
    ("tract", "votingage"): 0.78,
    ("tract", "detailed"): 0.78,
    ("block_group", "total"): 0.95,
    ("block_group", "detailed"): 0.92,
    ("block", "total"): 1.01,
    ("block", "votingage"): 1.01,
    ("block", "detailed"): 1.01,
}
"""Mean absolute error of full information over that of topdown, at most."""


def time_cook(data: Path, folder: Path) -> None:
    """Print a line for each spine and estimator."""
    print("| spine | estimator | seconds | GB | bar / seconds |\n|---|---|---|---|---|")
    for kind in KINDS:
        for estimator in ESTIMATORS:
            arguments = ("topdown", "run", "cook-2010", str(data), str(folder / "out"), "--overwrite", "--seed", "1")
            seconds, peak = timed(*arguments, "--spine", kind, "--estimator", estimator)
            print(f"| {kind} | {estimator} | {seconds:.1f} | {peak:.2f} | {BAR_SECONDS / seconds:.1f} |", flush=True)


def errors(data: Path, kind: str, estimator: Literal["topdown", "full-information"], trials: int) -> Errors:
    """Mean absolute errors over all areas of a kind, by kind and query."""
    found = yupana.accuracy("topdown", "cook-2010", data, trials=trials, seed=1, spine=kind, estimator=estimator)
    return {(row.geolevel, row.query): row.mae for row in found.observed.rows if row.population == "all"}


def compare(data: Path, replicates: int) -> None:
    """Print errors of both estimators on the same noise, and of places on both spines."""
    found = {estimator: errors(data, "conventional", estimator, replicates) for estimator in ESTIMATORS}
    print("\n| areas | query | topdown MAE | full information | ratio | bar |\n|---|---|---|---|---|---|")
    for key, mae in found["topdown"].items():
        if key[0] not in {"tract", "block_group", "block", "place", "county_subdivision"}:
            continue
        other = found["full-information"][key]
        bar = f"≤ {BARS[key]}" if key in BARS else ""
        print(f"| {key[0]} | {key[1]} | {mae:.3f} | {other:.3f} | {other / mae:.3f} | {bar} |")
    optimized = errors(data, "optimized", "topdown", replicates)
    print("\n| areas | query | conventional MAE | optimized MAE | ratio | bar |\n|---|---|---|---|---|---|")
    for key in (("place", "total"), ("place", "votingage"), ("place", "race"), ("block_group", "total")):
        before, after = found["topdown"][key], optimized[key]
        bar = "≥ 5" if key == ("place", "total") else ""
        print(f"| {key[0]} | {key[1]} | {before:.2f} | {after:.2f} | {before / after:.2f} | {bar} |")


def time_state(configuration: str, data: Path, folder: Path, options: list[str]) -> None:
    """Print a line for one run, then one for each of its stages; its release is removed then.

    That of a run that failed stays in the folder, for `-- --resume`.
    """
    log = folder / "log"
    run = ("topdown", "run", configuration, data, folder / "out", "--overwrite", "--seed", "1", "--log", log, *options)
    found = watch([str(COMMAND), *map(str, run)])
    told = json.loads(log.read_text())
    manifest = json.loads((folder / "out" / "manifest.json").read_text())
    solvers = Counter[str]()
    for by in manifest["solvers"].values():
        solvers.update(by)
    blocks = manifest["tables"]["spine/blocks.csv"]["rows"]
    print(f"\n{told['records']:,} records, {blocks:,} blocks; nodes by solver: {dict(solvers)}", flush=True)
    print("\n| stage | seconds | CPU s | GB |\n|---|---|---|---|")
    for stage, took in {**found.stages, "all": found.whole}.items():
        print(f"| {stage} | {took.seconds:.1f} | {took.cpu:.1f} | {took.peak / 1e9:.2f} |", flush=True)
    shutil.rmtree(folder / "out")


def nation(millions: float, folder: Path) -> Path:
    """Synthetic records of all states, made once."""
    data = folder / f"nation-{millions:g}"
    if not data.exists():
        households = str(round(millions * 1e6 / PERSONS_PER_HOUSEHOLD))
        timed("synth", str(data), "--households", households, "--seed", "1", "--format", "parquet")
    return data


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description="TopDown on real blocks and at the size of a state.")
    parser.add_argument("--cook", type=Path, help="what examples/topdown_cook.py made")
    parser.add_argument("--replicates", type=int, default=4)
    parser.add_argument("--state", type=Path, nargs="*", default=[], help="what yupana synth made")
    parser.add_argument("--nation", type=float, nargs="*", default=[], metavar="MILLIONS", help="331 is that of 2020")
    parser.add_argument("--configuration", default="pl94-2020-us", help="of runs of states and nations")
    parser.add_argument("--keep", type=Path, help="where data of a nation are left, and what a failed run left")
    parser.add_argument("more", nargs="*", help="after --, options of the runs of states and nations")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if options.cook is not None:
            time_cook(options.cook, folder)
            compare(options.cook, options.replicates)
        nations = [nation(millions, folder) for millions in options.nation]
        for data in (*options.state, *nations):
            time_state(options.configuration, data, folder, options.more)


if __name__ == "__main__":
    main()
