"""From published redistricting tables to a data folder of TopDown: public counts stand in for confidential ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
from numpy.typing import NDArray

import yupana

Ints = NDArray[Any]

RACES: Final = np.r_[2:8, 10:25, 26:46, 47:62, 63:69, 70]
"""Where tables P1 and P3, counted from 0, have the 63 combinations of six races; P2 and P4 have them two further on."""

P5_TYPES: Final = (2, 3, 4, 5, 7, 8, 9)
"""Where table P5, counted from 0, has the population of the major types 1 to 7."""

_WIDTHS: Final = {
    "TABBLKST": 2,
    "TABBLKCOU": 3,
    "TABTRACTCE": 6,
    "TABBLKGRPCE": 1,
    "TABBLK": 4,
    "AIANNHCE": 4,
    "COUSUBFP": 5,
    "PLACEFP": 5,
}
"""Columns of GRF-C.txt that TopDown reads, and their digits; the first five are parts of the block's number."""


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
        raise yupana.InputError(
            "tables P1 to P4 contradict each other: more adults than people, or more non-Hispanic ones"
        )
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
        raise yupana.InputError(f"{out} is not an empty folder; name another")
    out.mkdir(parents=True, exist_ok=True)
    order = np.argsort(counts.block)
    block, cells = counts.block[order], counts.counts[order]
    unit, *levels = np.nonzero(cells)
    histogram = {"block": (block[unit], 16)}
    histogram |= {name: (level, 0) for name, level in zip(counts.attributes, levels, strict=True)}
    _write(out / "histogram.csv", {**histogram, "count": (cells[unit, *levels], 0)})
    geography, rest = {}, 16
    for name in tuple(_WIDTHS)[:5]:
        rest -= _WIDTHS[name]
        geography[name] = block // 10**rest % 10 ** _WIDTHS[name]
    geography |= {name: values[order] for name, values in counts.areas.items()}
    _write(out / "geography.txt", {name: (geography[name], width) for name, width in _WIDTHS.items()})
    names = ("housing_units", *(f"gq{kind}" for kind in range(1, 8)))
    facilities = dict(zip(names, counts.facilities[order].T, strict=True))
    _write(
        out / "group_quarters.csv",
        {"block": (block, 16), **{name: (values, 0) for name, values in facilities.items()}},
    )
    text = f"Published counts: {source}.\nThey are public already, so nothing here needs protection.\n"
    (out / "SYNTHETIC").write_text(text, encoding="utf-8")


def _write(path: Path, columns: Mapping[str, tuple[Ints, int]]) -> None:
    """Write whole numbers, each column with so many digits at least, separated by strokes."""
    fields = ", ".join(f"printf('%0{width}d', {name}::BIGINT) AS {name}" for name, (_, width) in columns.items())
    with duckdb.connect() as database:
        database.register("given", {name: np.ascontiguousarray(values) for name, (values, _) in columns.items()})
        database.execute(f"COPY (SELECT {fields} FROM given) TO '{path}' (FORMAT csv, DELIMITER '|', QUOTE '')")
