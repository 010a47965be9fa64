"""Turn the blocks of the 2018 End-to-End Census Test in Rhode Island into data for `yupana topdown`.

    python examples/topdown_rhode_island.py SOURCE OUT

SOURCE holds rigeo2018_2020Style.pl and ri000012018_2020Style.pl to ri000032018_2020Style.pl, the prototype PL 94-171
files of the test, which are in the public domain. OUT receives

    histogram.csv        Hispanic origin (2) x race (63 combinations of six races) x voting age (2)
    geography.txt        the 569 blocks of the test
    group_quarters.csv   housing units, and one facility of each type of group quarters that has people

The counts follow from tables P1 to P4 exactly. Race by type of group quarters is not published, so there is no hhgq.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from published_tables import P5_TYPES, RACES, PublicCounts, cross_tables, write_data

import yupana

BLOCKS = "750"
_HEADER = 5
"""Fields of a data segment before its variables; the last is the number of the record."""

# Places of fields in the geographic header.
_SUMMARY_LEVEL, _RECORD, _STATE, _COUNTY, _COUSUB, _PLACE, _TRACT, _BLOCK, _AIANNH = 2, 7, 12, 14, 17, 29, 32, 34, 35


def read_tables(source: Path) -> tuple[list[list[str]], dict[str, np.ndarray]]:
    """Read the geographic header of all areas, and tables P1 to P5 and H1 by name, a row for each area."""
    geography = [line.split("|") for line in (source / "rigeo2018_2020Style.pl").read_text("latin-1").splitlines()]
    segments = []
    for number in (1, 2, 3):
        rows = [line.split("|") for line in (source / f"ri0000{number}2018_2020Style.pl").read_text().splitlines()]
        by_record = {row[_HEADER - 1]: list(map(int, row[_HEADER:])) for row in rows}
        segments.append(np.array([by_record[area[_RECORD]] for area in geography]))
    first, second, third = segments
    return geography, {
        "P1": first[:, :71],
        "P2": first[:, 71:],
        "P3": second[:, :71],
        "P4": second[:, 71:144],
        "H1": second[:, 144:],
        "P5": third,
    }


def convert(source: Path, out: Path) -> int:
    """Write the data folder and return the number of blocks."""
    geography, tables = read_tables(source)
    chosen = [i for i, area in enumerate(geography) if area[_SUMMARY_LEVEL] == BLOCKS]
    rows = [geography[i] for i in chosen]
    block = [int(r[_STATE] + r[_COUNTY] + r[_TRACT] + r[_BLOCK][0] + r[_BLOCK]) for r in rows]
    areas = {
        name: np.array([int(row[place] or none) for row in rows])
        for name, place, none in (
            ("AIANNHCE", _AIANNH, "9999"),
            ("COUSUBFP", _COUSUB, "99999"),
            ("PLACEFP", _PLACE, "99999"),
        )
    }
    counts = cross_tables(*(tables[f"P{table}"][chosen][:, RACES + 2 * (table % 2 == 0)] for table in (1, 2, 3, 4)))
    people = tables["P5"][chosen][:, P5_TYPES]
    facilities = np.concatenate([tables["H1"][chosen][:, :1], (people > 0).astype(np.int64)], axis=1)
    public = PublicCounts(np.array(block), areas, ("hispanic", "cenrace", "votingage"), counts, facilities)
    write_data(out, public, "2018 End-to-End Census Test, P.L. 94-171 prototype, Rhode Island")
    return len(block)


def main() -> None:
    """Convert the state."""
    parser = argparse.ArgumentParser(description="Rhode Island, 2018 test, as data for yupana topdown.")
    parser.add_argument("source", type=Path, metavar="SOURCE")
    parser.add_argument("out", type=Path, metavar="OUT")
    options = parser.parse_args()
    try:
        blocks = convert(options.source, options.out)
    except yupana.InputError as error:
        sys.exit(str(error))
    except (OSError, ValueError, KeyError, IndexError):
        sys.exit(f"{options.source} does not hold the files described in this program")
    print(f"{options.out}: {blocks:,} blocks")


if __name__ == "__main__":
    main()
