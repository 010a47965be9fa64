"""The histograms that the redistricting data are made from, and how their levels are written in records and tables."""

from typing import Final

import numpy as np

from yupana.arrays import Ints
from yupana.topdown.histogram import Cells
from yupana.topdown.queries import Schema

PERSONS: Final = {"hhgq": 8, "votingage": 2, "hispanic": 2, "cenrace": 63}
"""Attributes of persons and how many levels they have: households and seven types of group quarters; under 18, and 18
and over; not Hispanic, Hispanic; and the combinations of six races in the order of CENRACE."""

UNITS: Final = {"h1": 2}
"""The attribute of housing units: vacant, occupied."""


def counts_persons(schema: Schema) -> bool:
    """Whether a schema has the attributes of persons, in any order."""
    return len(schema.names) == len(PERSONS) and {a.name: a.size for a in schema.attributes} == PERSONS


def counts_units(schema: Schema) -> bool:
    """Whether a schema has the attribute of housing units."""
    return [(a.name, a.size) for a in schema.attributes] == list(UNITS.items())


def levels(schema: Schema, cells: Cells) -> dict[str, Ints]:
    """The level of each attribute in each cell, by the attribute's name; arrays of shape (cells,)."""
    found = np.unravel_index(cells, schema.shape)
    return {name: np.asarray(level, dtype=np.int64) for name, level in zip(schema.names, found, strict=True)}
