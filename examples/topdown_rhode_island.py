"""Turn the blocks of the 2018 End-to-End Census Test in Rhode Island into data for `yupana topdown`.

    python examples/topdown_rhode_island.py SOURCE OUT [--whole]

SOURCE holds rigeo2018_2020Style.pl and ri000012018_2020Style.pl to ri000032018_2020Style.pl, the prototype PL 94-171
files of the test, which are in the public domain. OUT receives

    histogram.csv        Hispanic origin (2) x race (63 combinations of six races) x voting age (2)
    geography.txt        the 569 blocks of the test
    group_quarters.csv   housing units, and one facility of each type of group quarters that has people

The counts follow from tables P1 to P4 exactly. Race by type of group quarters is not published, so there is no hhgq.
With --whole, OUT/persons has it all the same, for the product of 2020: people are dealt to the types that their block
has. OUT/units holds the housing units.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from published_tables import P5_TYPES, RACES, Ints, PublicCounts, cross_tables, write_data

import yupana

BLOCKS = b"750"
DEALT = (0, 1, 2, 4, 5, 6, 7, 3)
"""Households and types of group quarters, nursing facilities last."""

SOURCE = "2018 End-to-End Census Test, P.L. 94-171 prototype, Rhode Island"


def convert(source: Path, out: Path) -> int:
    """Write the data folder and return the number of blocks."""
    found = read_blocks(source)
    attributes = ("hispanic", "cenrace", "votingage")
    write_data(out, public_counts(found, attributes, persons_by_origin_race_age(found)), SOURCE)
    return found.records


def convert_whole(source: Path, out: Path) -> int:
    """Write OUT/persons, with type of group quarters, and OUT/units, and return the number of blocks."""
    found = read_blocks(source)
    attributes = ("hhgq", "votingage", "hispanic", "cenrace")
    write_data(out / "persons", public_counts(found, attributes, persons_by_quarters(found)), SOURCE)
    # Occupied and vacant in H1; vacant and occupied in the schema.
    write_data(out / "units", public_counts(found, ("h1",), found.counts["H1"][:, :0:-1]), SOURCE)
    return found.records


def read_blocks(source: Path) -> "yupana.SummaryFile":
    """The records of blocks."""
    everything = yupana.read_pl(source)
    return everything.keep(everything.fields["SUMLEV"] == BLOCKS)


def persons_by_origin_race_age(found: "yupana.SummaryFile") -> Ints:
    """Counts of shape (blocks, 2, 63, 2)."""
    return cross_tables(*(found.counts[f"P{table}"][:, RACES + 2 * (table % 2 == 0)] for table in (1, 2, 3, 4)))


def persons_by_quarters(found: "yupana.SummaryFile") -> Ints:
    """Counts of shape (blocks, 8, 2, 2, 63) that have all published sums.

    Which people of a block live in which quarters is not published. They are dealt in order of age, those in nursing
    facilities last, as nobody under 18 lives there.
    """
    counts = persons_by_origin_race_age(found).transpose(0, 3, 1, 2).reshape(found.records, -1)
    quarters = found.counts["P5"][:, P5_TYPES]
    households = found.counts["P1"][:, :1] - found.counts["P5"][:, :1]
    people = np.concatenate([households, quarters], axis=1)[:, DEALT]
    block, cell = (np.repeat(place.reshape(-1), counts.reshape(-1)) for place in np.indices(counts.shape))
    kind = np.repeat(np.tile(DEALT, found.records), people.reshape(-1))
    joint = np.zeros((found.records, len(DEALT), counts.shape[1]), dtype=np.int64)
    np.add.at(joint, (block, kind, cell), 1)
    return joint.reshape(found.records, len(DEALT), 2, 2, 63)


def public_counts(found: "yupana.SummaryFile", attributes: tuple[str, ...], counts: Ints) -> PublicCounts:
    """Counts of blocks with where these lie and what stands in them: one facility of each type that has people."""
    code = found.fields["STATE"]
    for name in ("COUNTY", "TRACT", "BLKGRP", "BLOCK"):
        code = np.char.add(code, found.fields[name])
    areas = {
        column: np.where(found.fields[name] == b"", none, found.fields[name]).astype(np.int64)
        for column, name, none in (
            ("AIANNHCE", "AIANHH", b"9999"),
            ("COUSUBFP", "COUSUB", b"99999"),
            ("PLACEFP", "PLACE", b"99999"),
        )
    }
    quarters = found.counts["P5"][:, P5_TYPES] > 0
    facilities = np.concatenate([found.counts["H1"][:, :1], quarters], axis=1)
    return PublicCounts(code.astype(np.int64), areas, attributes, counts, facilities)


def main() -> None:
    """Convert the state."""
    parser = argparse.ArgumentParser(description="Rhode Island, 2018 test, as data for yupana topdown.")
    parser.add_argument("source", type=Path, metavar="SOURCE")
    parser.add_argument("out", type=Path, metavar="OUT")
    text = "persons with type of group quarters, and housing units"
    parser.add_argument("--whole", action="store_true", help=text)
    options = parser.parse_args()
    try:
        blocks = (convert_whole if options.whole else convert)(options.source, options.out)
    except yupana.InputError as error:
        sys.exit(str(error))
    print(f"{options.out}: {blocks:,} blocks")


if __name__ == "__main__":
    main()
