"""The Microdata Detail File of P.L. 94-171: one record for each person, or for each housing unit and group quarters."""

from typing import Final

import numpy as np

from yupana.arrays import Integers, Ints
from yupana.files.arrow_stream import TextColumn
from yupana.products.topdown.record_columns import GEOGRAPHY, PERSON_COLUMNS, UNIT_COLUMNS
from yupana.products.topdown.schema import levels
from yupana.release.lines import Texts, digits, join, texts
from yupana.topdown.count_pieces import RecordForm
from yupana.topdown.histogram import Histogram, count_entries
from yupana.topdown.queries import Schema

_PERSON, _UNIT, _BUILD = "MPD", "MUD", "1.1.0"
_UNIT_STATUS: Final = texts(("2|2", "2|1", "4|0"))
"""RTYPE and HH_STATUS of a vacant unit, an occupied one, and group quarters."""


def person_records(blocks: Ints, schema: Schema) -> RecordForm:
    """How persons are written. EPNUM numbers the records of the file, from 1.

    Parameters
    ----------
    blocks : ndarray of int64, shape (blocks,)
        16 digits of each as a number.
    schema : Schema
        With the attributes of persons.
    """
    level = levels(schema, np.arange(schema.cells, dtype=np.int32))
    quarters = level["hhgq"]
    rtype = texts("35")[(quarters > 0).astype(np.int64)]
    codes = [digits(level[name] + 1, 1) for name in ("votingage", "hispanic")]
    tails = join([rtype, digits(quarters, 1), *codes, digits(level["cenrace"] + 1, 2)])

    return RecordForm(
        PERSON_COLUMNS,
        lambda first, last: _heads(_PERSON, blocks[first:last]),
        lambda cells: TextColumn(tails, cells.astype(np.int64)),
        numbered=True,
    )


def unit_records(blocks: Ints) -> RecordForm:
    """How units are written, whose counts `with_quarters` made."""
    return RecordForm(
        UNIT_COLUMNS,
        lambda first, last: _heads(_UNIT, blocks[first:last]),
        lambda cells: TextColumn(_UNIT_STATUS, cells.astype(np.int64)),
    )


def with_quarters(histogram: Histogram, facilities: Integers) -> Histogram:
    """Append the public numbers of group quarters to counts of housing units, as a third cell.

    Parameters
    ----------
    histogram : Histogram
        Vacant and occupied units of each block.
    facilities : ndarray of integers, shape (blocks, 8)
        Housing units and facilities by major type; the first column is not used.
    """
    units = np.arange(histogram.units)
    return count_entries(
        np.concatenate([histogram.owners(), units]),
        np.concatenate([histogram.cells, np.full(histogram.units, 2, dtype=np.int32)]),
        np.concatenate([histogram.counts, facilities[:, 1:].sum(axis=1)]),
        histogram.units,
    )


def _heads(kind: str, blocks: Ints) -> Texts:
    constant = np.full(len(blocks), f"{kind}|{_BUILD}".encode())
    parts, rest = [], 16
    for width in GEOGRAPHY.values():
        rest -= width
        parts.append(digits(blocks // 10**rest % 10**width, width))
    return join([constant, *parts])
