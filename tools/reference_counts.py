"""Make the counts of invented people that the explorer sets margins of error against: src/yupana/explore/reference.

Run on synthetic censuses only:

    yupana synth NATION --households 600000 --seed 2020 --format parquet
    yupana synth STATE --households 1680000 --states 41 --seed 2020 --format parquet
    yupana synth AREAS --households 368000 --states 46 --seed 2020 --format parquet
    python tools/reference_counts.py phsafe NATION
    python tools/reference_counts.py safetab NATION STATE
    python tools/reference_counts.py blocks AREAS
"""

import json
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np

from yupana.cli.main import main as yupana
from yupana.geography.build import SpineRequest, read_blocks
from yupana.geography.settings import production_settings
from yupana.products.census import STATES
from yupana.products.phsafe.configuration import production_config
from yupana.products.phsafe.specification import TABLES
from yupana.products.safetab.demonstration_parameters import write_parameters
from yupana.products.safetab.iterations import read_iterations
from yupana.products.safetab.specification import HOUSEHOLD_TYPE
from yupana.release.release import read_release

REFERENCE = Path(__file__).parents[1] / "src" / "yupana" / "explore" / "reference"

HOUSEHOLDS = 126_817_580
"""Occupied housing units of the 2020 Census, PL 94-171."""

UNIVERSES = {
    "PH1_num": "p.RTYPE = '3'",
    "PH2": "p.RTYPE = '3'",
    "PH3": "p.RTYPE = '3' AND p.QAGE < 18",
    "PH4": "p.RELSHIP IN ('20', '21', '23', '25', '26', '27', '28', '29', '30', '31', '32', '33') AND u.HHT < '4'",
    "PH6": "p.RTYPE = '3' AND p.QAGE < 18 AND p.RELSHIP IN ('25', '26', '27')",
    "PH7": "p.RTYPE = '3'",
}
"""Who is counted in a table before truncation."""


def rounded(number: float) -> int:
    """Three digits: more would be an air of precision."""
    return int(float(f"{number:.3g}"))


def phsafe(census: Path) -> None:
    """Counts without truncation by table, cell, iteration and region, and households by persons counted."""
    with tempfile.TemporaryDirectory() as folder:
        config = production_config()
        config["tau"] = dict.fromkeys(config["tau"], 99_999)
        path = Path(folder) / "config.json"
        path.write_text(json.dumps(config))
        out = Path(folder) / "exact"
        if yupana(["phsafe", "exact", str(path), str(census), str(out), "--log", f"{folder}/log"]):
            sys.exit("no counts")
        release = read_release(out).intact()
        tables = {table: release.columns(table) for table in release}
    db = duckdb.connect()
    source = f"'{census}/persons.parquet' p JOIN '{census}/units.parquet' u USING (MAFID)"
    sizes = {}
    for table, universe in UNIVERSES.items():
        rows = db.execute(
            f"SELECT n, count(*) FROM (SELECT count(*) n FROM {source} WHERE {universe} GROUP BY MAFID) "
            "GROUP BY n ORDER BY n"
        ).fetchall()
        sizes[table] = dict(rows)
    total = sum(sizes["PH1_num"].values())
    scale = HOUSEHOLDS / total
    counts: dict[str, dict[str, dict[str, dict[str, int]]]] = {}
    for measured in TABLES:
        columns = tables[measured.name]
        cells: dict[str, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
        for region, iteration, cell, count in zip(
            columns["REGION_ID"],
            columns.get("ITERATION_CODE", ["*"] * len(columns["COUNT"])),
            columns[f"{measured.name.upper()}_DATA_CELL"],
            columns["COUNT"],
            strict=True,
        ):
            cells[cell][iteration][region] = rounded(int(count) * scale)
        counts[measured.name] = cells
    write(
        "phsafe",
        {
            "source": f"{total:,} invented households, scaled to the {HOUSEHOLDS:,} of 2020",
            "households_by_persons": {t: {str(n): rounded(h * scale) for n, h in s.items()} for t, s in sizes.items()},
            "counts": counts,
        },
    )


def safetab(nation: Path, state: Path) -> None:
    """Population groups by persons and by households and level: those of the nation scaled, of a state as they are."""
    found: dict[str, dict[str, Counter[int]]] = {"persons": defaultdict(Counter), "households": defaultdict(Counter)}
    for census, scale in ((nation, HOUSEHOLDS / 600_000), (state, 1.0)):
        with tempfile.TemporaryDirectory() as folder:
            parameters = Path(folder) / "parameters"
            write_parameters(parameters)
            path = parameters / "config.json"
            config = json.loads(path.read_text())
            config["state_filter_us"] = list(STATES) if census == nation else ["41"]
            path.write_text(json.dumps(config))
            iterations = {i.code: i for i in read_iterations(parameters).iterations}
            totals = Path(folder) / "p" / "T01001.csv"
            for product, more in (("p", []), ("h", ["--totals", str(totals)])):
                out = Path(folder) / product
                command = [f"safetab-{product}", "exact", str(parameters), str(census), str(out)]
                if yupana([*command, *more, "--log", f"{folder}/{product}.log"]):
                    sys.exit("no counts")
                release = read_release(out)
                tables = {table: release.columns(table) for table in release}
                kind = "persons" if product == "p" else "households"
                for name in ["T01001"] if product == "p" else HOUSEHOLD_TYPE.tables:
                    columns = tables[name]
                    cells = columns.get("T3_DATA_CELL", ["0"] * len(columns["COUNT"]))
                    rows = zip(columns["REGION_TYPE"], columns["ITERATION_CODE"], cells, columns["COUNT"], strict=True)
                    for region, code, cell, count in rows:
                        if cell != "0" or (region == "USA") != (census == nation) or int(count) <= 0:
                            continue
                        level = f"{region} {iterations[code].level}"
                        only = " detailed-only" if iterations[code].detailed_only else ""
                        found[kind][level + only][rounded(int(count) * scale)] += 1
    write(
        "safetab",
        {
            "source": "invented people: a nation of 600,000 households, scaled to 2020, and one state in full size of "
            "1,680,000 households, in the groups of the demonstration",
            **{
                kind: {level: sorted(sizes.items()) for level, sizes in levels.items()}
                for kind, levels in found.items()
            },
        },
    )


def blocks(areas: Path) -> None:
    """The blocks where somebody lives, with their areas and group quarters: what spines are made of."""
    settings = replace(production_settings(puerto_rico=False), live=True)
    request = SpineRequest(areas / "GRF-C.txt", areas / "group_quarters.csv", areas / "unused", overwrite=False)
    reference, quarters = read_blocks(settings, request, print)
    path = REFERENCE / "blocks.npz"
    np.savez_compressed(
        path,
        block=np.diff(reference.block, prepend=0),
        aiannh=reference.aiannh,
        place=reference.place,
        cousub=reference.cousub,
        quarters=np.asarray(quarters),
    )
    print(path, path.stat().st_size, len(reference.block))


def write(name: str, document: object) -> None:
    """Write a file of reference counts."""
    REFERENCE.mkdir(exist_ok=True)
    path = REFERENCE / f"{name}.json"
    path.write_text(json.dumps(document, separators=(",", ":")) + "\n")
    print(path, path.stat().st_size)


if __name__ == "__main__":
    censuses = [Path(argument) for argument in sys.argv[2:]]
    match sys.argv[1], censuses:
        case "phsafe", [nation]:
            phsafe(nation)
        case "safetab", [nation, state]:
            safetab(nation, state)
        case "blocks", [areas]:
            blocks(areas)
        case _:
            sys.exit(__doc__)
