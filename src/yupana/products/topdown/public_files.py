"""From published redistricting tables to a data folder of TopDown: public counts stand in for confidential ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from yupana.arrays import Ints
from yupana.errors import InputError
from yupana.geography.attributes import QUARTERS_COLUMNS
from yupana.geography.blocks import COLUMNS
from yupana.release.lines import digits, texts, whole, write_header, write_lines

_WIDTHS: Final = dict(zip(COLUMNS, (2, 3, 6, 1, 4, 4, 5, 5), strict=True))

P5_TYPES: Final = (2, 3, 4, 5, 7, 8, 9)
"""Where table P5, counted from 0, has the population of the major types 1 to 7."""


@dataclass(frozen=True, slots=True, eq=False)
class PublicCounts:
    """Published counts of blocks; arrays have a row for each block.

    Attributes
    ----------
    block : ndarray of int64, shape (blocks,)
        16 digits of each as a number.
    areas : mapping of str to ndarray of int64
        AIANNHCE, COUSUBFP and PLACEFP.
    attributes : tuple of str
        The axes of the counts.
    counts : ndarray of int64, shape (blocks, levels of each attribute)
    facilities : ndarray of int64, shape (blocks, 8)
        Housing units, and facilities by major type.
    """

    block: Ints
    areas: Mapping[str, Ints]
    attributes: tuple[str, ...]
    counts: Ints
    facilities: Ints


def cross_tables(everyone: Ints, not_hispanic: Ints, adults: Ints, adults_not_hispanic: Ints) -> Ints:
    """Derive counts by Hispanic origin, race and voting age from what tables P1 to P4 say of each race.

    Parameters
    ----------
    everyone, not_hispanic, adults, adults_not_hispanic : ndarray of int64, shape (units, races)
        From P1, P2, P3 and P4: the lines of races that exclude each other and make up everyone.

    Returns
    -------
    ndarray of int64, shape (units, 2, races, 2)
        Not Hispanic, Hispanic; races; under 18, 18 and over.

    Raises
    ------
    InputError
        If a difference is negative: the tables are not those of one population.
    """
    hispanic, adults_hispanic = everyone - not_hispanic, adults - adults_not_hispanic
    minors = np.stack([not_hispanic - adults_not_hispanic, hispanic - adults_hispanic], axis=1)
    found = np.stack([minors, np.stack([adults_not_hispanic, adults_hispanic], axis=1)], axis=-1)
    if (found < 0).any():
        raise InputError("tables P1 to P4 contradict each other: more adults than people, or more non-Hispanic ones")
    return found


def write_data(out: Path, counts: PublicCounts, source: str) -> None:
    """Write histogram.csv, geography.txt and group_quarters.csv, and the mark of data that protect nobody.

    Parameters
    ----------
    out : Path
        A folder that does not exist or is empty.
    counts : PublicCounts
    source : str
        What was published, for the mark.

    Raises
    ------
    InputError
        If the folder holds something.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} is not an empty folder; name another")
    out.mkdir(parents=True, exist_ok=True)
    order = np.argsort(counts.block)
    block = counts.block[order]
    labels = digits(block, 16)
    unit, *levels = np.nonzero(counts.counts[order])
    with (out / "histogram.csv").open("wb") as file:
        write_header(file, ("block", *counts.attributes, "count"))
        write_lines(file, [labels[unit], *map(whole, levels), whole(counts.counts[order][unit, *levels])])
    parts, rest = {}, 16
    for name in COLUMNS[:5]:
        rest -= _WIDTHS[name]
        parts[name] = block // 10**rest % 10 ** _WIDTHS[name]
    parts |= {name: values[order] for name, values in counts.areas.items()}
    with (out / "geography.txt").open("wb") as file:
        write_header(file, COLUMNS)
        write_lines(file, [digits(parts[name], _WIDTHS[name]) for name in COLUMNS])
    with (out / "group_quarters.csv").open("wb") as file:
        write_header(file, ("block", "housing_units", *QUARTERS_COLUMNS))
        write_lines(file, [labels, *map(whole, counts.facilities[order].T)])
    (out / "SYNTHETIC").write_bytes(
        texts([f"Published counts: {source}.\nThey are public already, so nothing here needs protection.\n"])[0]
    )
