"""Turn the 2010 census blocks of Cook County, Illinois, into input for `yupana spine` (docs/spines.md).

    python examples/cook_county.py SOURCE_PARQUET OUT

SOURCE_PARQUET holds one row per block with the columns state, county, tract, BLKGRP, block, COUSUB, PLACE and H001001
(housing units), as text but for the last: table H1 and the geography of the 2010 Census PL 94-171 file, which is in
the public domain. OUT receives

    grfc.txt        the reference file, with AIANNHCE 9999: the county has no such area
    blocks.csv      housing units by block; facilities by major type are 0, because the source does not list them
    entities.csv    places and county subdivisions, as `yupana spine distance` reads them

Nothing is drawn or invented, and no count of persons is read.
"""

import argparse
import sys
from pathlib import Path

import duckdb

QUERIES = {
    "grfc.txt": """
        SELECT state AS TABBLKST, county AS TABBLKCOU, tract AS TABTRACTCE, BLKGRP AS TABBLKGRPCE, block AS TABBLK,
               '9999' AS AIANNHCE, COUSUB AS COUSUBFP, PLACE AS PLACEFP
        FROM source ORDER BY ALL""",
    "blocks.csv": """
        SELECT state || county || tract || BLKGRP || block AS block, H001001 AS housing_units,
               0 AS gq1, 0 AS gq2, 0 AS gq3, 0 AS gq4, 0 AS gq5, 0 AS gq6, 0 AS gq7
        FROM source ORDER BY block""",
    "entities.csv": """
        SELECT state || county || tract || BLKGRP || block AS block, PLACE AS place, COUSUB AS county_subdivision
        FROM source ORDER BY block""",
}


def convert(source: Path, out: Path) -> int:
    """Write the three files and return the number of blocks."""
    out.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as db:
        db.execute("CREATE VIEW source AS SELECT * FROM read_parquet('" + str(source).replace("'", "''") + "')")
        for name, query in QUERIES.items():
            rows = db.execute(query)
            header = "|".join(column[0] for column in rows.description)
            lines = ["|".join(map(str, row)) for row in rows.fetchall()]
            (out / name).write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return len(lines)


def main() -> None:
    """Convert the county."""
    parser = argparse.ArgumentParser(description="Cook County, Illinois, as a reference file for yupana spine.")
    parser.add_argument("source", type=Path, metavar="SOURCE_PARQUET")
    parser.add_argument("out", type=Path, metavar="OUT")
    options = parser.parse_args()
    if options.out.exists() and any(options.out.iterdir()):
        sys.exit(f"{options.out} is not empty; name another folder")
    try:
        blocks = convert(options.source, options.out)
    except duckdb.Error:
        sys.exit(f"{options.source} is not the file of blocks that docs/spines.md names")
    print(f"{options.out}: {blocks:,} blocks")


if __name__ == "__main__":
    main()
