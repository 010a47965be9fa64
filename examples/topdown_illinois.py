"""Turn the 2020 census tracts of Illinois into data for `yupana topdown`, each tract as one block.

    python examples/topdown_illinois.py SOURCE_PARQUET OUT

SOURCE_PARQUET holds one row per tract with STATE, COUNTY, TRACT and all variables of tables P1 to P5 and H1 (P0010001
and so on) of the 2020 Census PL 94-171 file, which is in the public domain. OUT receives

    histogram.csv        Hispanic origin (2) x race (63 combinations of six races) x voting age (2)
    geography.txt        block 1000 in block group 1 of each tract, in no place, county subdivision or AIAN area
    group_quarters.csv   housing units, and one facility of each type of group quarters that has people

The counts follow from the tables exactly. They were published with the noise of 2020, and serve as if they were true.
"""

import argparse
import sys
from pathlib import Path

import duckdb
import numpy as np
from published_tables import P5_TYPES, RACES, PublicCounts, cross_tables, write_data

import yupana

_SIZES = {"P001": 71, "P002": 73, "P003": 71, "P004": 73, "P005": 10, "H001": 3}


def convert(source: Path, out: Path) -> int:
    """Write the data folder and return the number of tracts."""
    names = [f"{table}{line:04}" for table, size in _SIZES.items() for line in range(1, size + 1)]
    with duckdb.connect() as db:
        variables = ", ".join(f"{name}::BIGINT AS {name}" for name in names)
        query = f"SELECT (STATE || COUNTY || TRACT || '11000')::BIGINT AS block, {variables} FROM read_parquet(?)"
        found = db.execute(query, [str(source)]).fetchnumpy()
    tables = {
        table: np.stack([found[f"{table}{line:04}"] for line in range(1, size + 1)], axis=1)
        for table, size in _SIZES.items()
    }
    counts = cross_tables(*(tables[f"P00{table}"][:, RACES + 2 * (table % 2 == 0)] for table in (1, 2, 3, 4)))
    people = tables["P005"][:, P5_TYPES]
    facilities = np.concatenate([tables["H001"][:, :1], (people > 0).astype(np.int64)], axis=1)
    tracts = len(found["block"])
    areas = {
        name: np.full(tracts, none) for name, none in (("AIANNHCE", 9999), ("COUSUBFP", 99999), ("PLACEFP", 99999))
    }
    public = PublicCounts(found["block"], areas, ("hispanic", "cenrace", "votingage"), counts, facilities)
    write_data(out, public, "2020 Census, P.L. 94-171, tracts of Illinois, each as one block")
    return tracts


def main() -> None:
    """Convert the state."""
    parser = argparse.ArgumentParser(description="Illinois by tract as data for yupana topdown.")
    parser.add_argument("source", type=Path, metavar="SOURCE_PARQUET")
    parser.add_argument("out", type=Path, metavar="OUT")
    options = parser.parse_args()
    try:
        tracts = convert(options.source, options.out)
    except yupana.InputError as error:
        sys.exit(str(error))
    except duckdb.Error:
        sys.exit(f"{options.source} is not the file of tracts described in this program")
    print(f"{options.out}: {tracts:,} tracts")


if __name__ == "__main__":
    main()
