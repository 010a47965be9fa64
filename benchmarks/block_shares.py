"""A direct block total at the 2,016 cells of 2020, its costs and gains: `python benchmarks/block_shares.py DATA OUT`.

DATA is what `yupana synth` makes of one state. The block level's budget is divided between a few queries in several
ways, its share of rho unchanged, on one spine of pieces and with full information; errors are told as ratios to those
of production's division with the same seeds: the mean over replicates, and its standard error. What was measured is
kept in OUT. docs/accuracy.md has the table.
"""

import argparse
import json
import os
from pathlib import Path
from typing import Any, Final

import numpy as np

import yupana
from yupana.topdown.reading.configuration import read_configuration

CONFIGURATION: Final = "pl94-2020-us"
PRODUCTION: Final = "production"
FINER: Final = "votingage*hispanic*cenrace"
DIVISIONS: Final[dict[str, dict[str, str]]] = {
    PRODUCTION: {},
    "5 / 1 / 94": {"total": "0.05", "hispanic*cenrace": "0.01", "detailed": "0.94"},
    "15 / 1 / 84": {"total": "0.15", "hispanic*cenrace": "0.01", "detailed": "0.84"},
    "15 / 5 / 80": {"total": "0.15", "hispanic*cenrace": "0.05", "detailed": "0.80"},
    "15 / 1 of voting age, too / 84": {"total": "0.15", FINER: "0.01", "detailed": "0.84"},
    "15 / 10 of voting age, too / 75": {"total": "0.15", FINER: "0.10", "detailed": "0.75"},
    "24 / 1 / 75": {"total": "0.24", "hispanic*cenrace": "0.01", "detailed": "0.75"},
    "30 / 2 / 68": {"total": "0.30", "hispanic*cenrace": "0.02", "detailed": "0.68"},
    "30 / 10 / 60": {"total": "0.30", "hispanic*cenrace": "0.10", "detailed": "0.60"},
}
"""By percent of total, of Hispanic origin by race, and of detailed: shares of the block level's queries."""

QUERIES: Final = ("total", "votingage", "hispanic", "cenrace", "hhgq", "hispanic*cenrace", FINER, "detailed")
KINDS: Final = ("block", "block_group", "tract", "place")


def changes(division: dict[str, str]) -> dict[str, str]:
    """The shares as values of the configuration; a query that is not named has none."""
    if not division:
        return {}
    asked = [query.name for query, _ in read_configuration(CONFIGURATION).queries["Block"]]
    return {f"queries.Block.{query}": division.get(query, "0") for query in asked}


def measure(division: dict[str, str], data: Path, seed: int) -> dict[str, Any]:
    """Mean absolute errors of one release, by kind of areas and query."""
    found = yupana.accuracy(
        "topdown",
        CONFIGURATION,
        data,
        set=changes(division),
        trials=1,
        seed=seed,
        spine="pieces",
        estimator="full-information",
    )
    rows = [row for row in found.observed.rows if row.population == "all" and row.geolevel in KINDS]
    return {"mae": {f"{row.geolevel} {row.query}": row.mae for row in rows}, "load": round(os.getloadavg()[0], 1)}


def main() -> None:
    """Measure what is not in the figures yet, and print the table."""
    parser = argparse.ArgumentParser(description="Divisions of the block level's budget at 2,016 cells.")
    parser.add_argument("data", type=Path, metavar="DATA", help="what yupana synth made")
    parser.add_argument("figures", type=Path, metavar="FIGURES", help="a JSON file of what was measured")
    parser.add_argument("--replicates", type=int, default=4)
    options = parser.parse_args()
    done = json.loads(options.figures.read_text()) if options.figures.exists() else {}
    for seed in map(str, range(1, options.replicates + 1)):
        for name, division in DIVISIONS.items():
            if seed not in done.setdefault(name, {}):
                done[name][seed] = measure(division, options.data, int(seed))
                options.figures.write_text(json.dumps(done, indent=1) + "\n")
    print("| areas | query | " + " | ".join(DIVISIONS) + " |\n" + "|---" * (2 + len(DIVISIONS)) + "|")
    for kind in KINDS:
        for query in QUERIES:
            key = f"{kind} {query}"
            base = {seed: of["mae"][key] for seed, of in done[PRODUCTION].items()}
            cells = [f"{np.mean(list(base.values())):.4g}"]
            for name in list(DIVISIONS)[1:]:
                ratio = np.array([of["mae"][key] / base[seed] for seed, of in done[name].items()])
                error = f" ± {ratio.std(ddof=1) / np.sqrt(len(ratio)):.3f}" if len(ratio) > 1 else ""
                cells.append(f"{ratio.mean():.3f}{error}")
            print(f"| {kind.replace('_', ' ')} | {query} | " + " | ".join(cells) + " |")
    load = np.mean([of["load"] for runs in done.values() for of in runs.values()])
    print(f"\n{len(done[PRODUCTION])} replicates at a load of {load:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
