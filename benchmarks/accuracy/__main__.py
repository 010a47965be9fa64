"""Estimators, spines and strategies at the same loss: `make accuracy COOK=PARQUET ILLINOIS=PARQUET`.

    python benchmarks/accuracy FOLDER [--replicates 4] [--world NAME ...] [--only CASE ...] [--docs docs]

FOLDER holds the data of each world (worlds.py): cook and illinois, made by the programs in examples/, and state, made
by yupana synth. Every case is run with the seeds 1, 2, ...: cases of one spine and strategy are estimated from the
same noisy answers. Errors are mean absolute ones over all areas of a kind and all answers of a query, told as ratios to
those of production's queries, spine and estimator with the same seed: the mean over replicates, and its standard error.
What was measured is kept in FOLDER/NAME.json, run by run, so that work that was interrupted goes on, and cases can be
added, and all figures are in FOLDER/figures.md. --docs writes the table and pictures of docs/accuracy.md, too.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from errors import measure, truth
from pictures import draw_levels, draw_sizes
from tables import bars, by_area, by_size, one_table, speed
from worlds import COOK, WORLDS, World


def work(world: World, folder: Path, replicates: int, only: list[str] | None) -> None:
    """Measure what is not in the figures of a world yet."""
    path, data = folder / f"{world.name}.json", folder / world.name
    done: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    wanted = [
        (str(seed), case)
        for seed in range(1, replicates + 1)
        for case in world.cases
        if (not only or case in only) and str(seed) not in done.get(case, {})
    ]
    if not wanted:
        return
    with truth(world, data) as db:
        for at, (seed, case) in enumerate(wanted):
            print(f"{world.name}: {case}, replicate {seed} ({at + 1} of {len(wanted)})", flush=True)
            done.setdefault(case, {})[seed] = measure(world.cases[case], world, data, db, int(seed))
            path.write_text(json.dumps(done, indent=1) + "\n")


def main() -> None:
    """Measure, and print or write."""
    parser = argparse.ArgumentParser(description="Estimators, spines and strategies at the same loss.")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="data and figures of each world")
    parser.add_argument("--replicates", type=int, default=4)
    parser.add_argument("--world", nargs="*", choices=tuple(WORLDS), default=list(WORLDS))
    parser.add_argument("--only", nargs="*", metavar="CASE")
    parser.add_argument("--docs", type=Path, metavar="FOLDER", help="write the tables and pictures here, too")
    options = parser.parse_args()
    for name in options.world:
        work(WORLDS[name], options.folder, options.replicates, options.only)
    there = [world for world in WORLDS.values() if (options.folder / f"{world.name}.json").exists()]
    done = {world.name: json.loads((options.folder / f"{world.name}.json").read_text()) for world in there}
    lines = list(one_table(there, done))
    if COOK in there:
        lines += ["**Bars, Cook County**", "", *bars(COOK, done[COOK.name]), ""]
    print("\n".join(lines))
    more = [line for world in there for line in _page(world, done[world.name])]
    (options.folder / "figures.md").write_text("\n".join([_HEAD, *more]) + "\n", encoding="utf-8")
    if options.docs:
        page = options.docs / "accuracy.md"
        before, _, after = page.read_text(encoding="utf-8").partition(_BEGIN)
        page.write_text("\n".join([before + _BEGIN, "", *lines, _END]) + after.partition(_END)[2], encoding="utf-8")
        draw_levels(there, done, options.docs / "accuracy-levels.svg")
        draw_sizes(COOK, done[COOK.name], options.docs / "accuracy-sizes.svg")


_BEGIN = "<!-- make accuracy writes what follows -->"
_END = "<!-- as far as here -->"
_HEAD = """# All figures of accuracy

docs/accuracy.md says what they mean. MAE is the mean absolute error. All
other figures are ratios to production's with the same seed, ± their standard errors. By size they are mean absolute
errors, and bias in brackets, in persons."""


def _page(world: World, done: dict[str, Any]) -> list[str]:
    parts = [by_area(world, done), by_size(world, done), speed(world, done)]
    return ["", f"## {world.title}", *(line for part in parts for line in ("", *part))]


if __name__ == "__main__":
    main()
