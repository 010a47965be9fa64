"""Turn the 2010 census blocks of Cook County, Illinois, into data for `yupana topdown`.

    python examples/topdown_cook.py SOURCE_PARQUET OUT

SOURCE_PARQUET holds one row per block with its geography, tables P1 to P4 to the number of races and H1, as the 2010
Census PL 94-171 file has them, which is in the public domain. OUT receives

    histogram.csv        Hispanic origin (2) x race (11: six races alone, then two to six races) x voting age (2)
    geography.txt        the blocks with a housing unit or a person; AIANNHCE is 9999: the county has no such area
    group_quarters.csv   housing units; facilities by major type are 0, because the source does not list them

The counts follow from the tables exactly: P1 less P2 is the Hispanic population, P1 less P3 that under 18. They are
published, and therefore marked as in no need of protection.
"""

import argparse
import sys
from pathlib import Path

import duckdb
import numpy as np
from published_tables import PublicCounts, cross_tables, write_data

import yupana

_RACES = (3, 4, 5, 6, 7, 8, 10, 26, 47, 63, 70)
"""Lines of P1 and P3; P2 and P4 have them two further down."""


def convert(source: Path, out: Path) -> int:
    """Write the data folder and return the number of blocks."""
    tables = [[f"P00{table}{line + (table % 2 == 0) * 2:03}" for line in _RACES] for table in (1, 2, 3, 4)]
    columns = ", ".join(f"{name}::BIGINT AS {name}" for names in tables for name in names)
    with duckdb.connect() as db:
        query = f"""
            SELECT (state || county || tract || BLKGRP || block)::BIGINT AS block, COUSUB::BIGINT AS cousub,
                   PLACE::BIGINT AS place, H001001::BIGINT AS units, {columns}
            FROM read_parquet(?) WHERE H001001 > 0 OR P001001 > 0"""
        found = db.execute(query, [str(source)]).fetchnumpy()
    blocks = len(found["block"])
    facilities = np.zeros((blocks, 8), dtype=np.int64)
    facilities[:, 0] = found["units"]
    areas = {"AIANNHCE": np.full(blocks, 9999), "COUSUBFP": found["cousub"], "PLACEFP": found["place"]}
    counts = cross_tables(*(np.stack([found[name] for name in names], axis=1) for names in tables))
    public = PublicCounts(found["block"], areas, ("hispanic", "race", "votingage"), counts, facilities)
    write_data(out, public, "2010 Census, P.L. 94-171, blocks of Cook County, Illinois")
    return blocks


def main() -> None:
    """Convert the county."""
    parser = argparse.ArgumentParser(description="Cook County, Illinois, as data for yupana topdown.")
    parser.add_argument("source", type=Path, metavar="SOURCE_PARQUET")
    parser.add_argument("out", type=Path, metavar="OUT")
    options = parser.parse_args()
    try:
        blocks = convert(options.source, options.out)
    except yupana.InputError as error:
        sys.exit(str(error))
    except duckdb.Error:
        sys.exit(f"{options.source} is not the file of blocks described in this program")
    print(f"{options.out}: {blocks:,} blocks")


if __name__ == "__main__":
    main()
