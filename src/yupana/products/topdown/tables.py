"""What the redistricting data are made of and called: histograms, published tables, columns of records, datasets."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from yupana.arrays import Flags, Ints
from yupana.geography.kinds import summary_levels
from yupana.geography.spine import Spine
from yupana.products.safetab.regions import PUERTO_RICO
from yupana.release.lines import Texts
from yupana.topdown.configuration import Configuration
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


GEOGRAPHY: Final = {"TABBLKST": 2, "TABBLKCOU": 3, "TABTRACTCE": 6, "TABBLKGRPCE": 1, "TABBLK": 4}
"""Columns that name a block, with the digits of each."""

_HEAD: Final = ("SCHEMA_TYPE_CODE", "SCHEMA_BUILD_ID", *GEOGRAPHY)

PERSON_COLUMNS: Final = (*_HEAD, "EPNUM", "RTYPE", "GQTYPE_PL", "VOTING_AGE", "CENHISP", "CENRACE")
UNIT_COLUMNS: Final = (*_HEAD, "RTYPE", "HH_STATUS")


SPINE: Final = "spine"
TABLES: Final = "tables"
COUNTS: Final = "counts"
TABULATION: Final = "tabulation"
MICRODATA: Final = "microdata.csv"

AREA_COLUMNS: Final = ("SUMLEV", "GEOCODE")
"""What names the area of a row of a published table."""

BOUNDS: Final = ("LOWER", "UPPER", "MOE")
"""What stands after a count that has an interval."""

INTERVALS_OF: Final = "_intervals"
"""What the name of a table of intervals has after that of the table they belong to."""

SIZES: Final = {"P1": 71, "P2": 73, "P3": 71, "P4": 73, "P5": 10, "H1": 3}
"""How many variables each table of the redistricting data has."""

TOTALS: Final = "T1"
"""The table of a schema that gives none of these: the total, and every level of every attribute."""

_RACES: Final = 6


@dataclass(frozen=True, slots=True, eq=False)
class RedistrictingTable:
    """A published table as sums over the cells of a histogram."""

    name: str
    member: Ints  # shape (cells, k): the variables that each cell counts in, -1 for none
    size: int  # how many variables it has

    @property
    def variables(self) -> tuple[str, ...]:
        """Their names, made as those of 2020 are."""
        return _variables(self.name, self.size)

    @property
    def ends(self) -> tuple[str, ...]:
        """What the columns of the intervals of its variables are called, such as P0010001_LOWER."""
        return tuple(f"{variable}_{end}" for variable in self.variables for end in BOUNDS)


def variables_of(table: str) -> tuple[str, ...]:
    """The names of 2020 of the variables of a table of the redistricting data, such as P0010001."""
    return _variables(table, SIZES[table])


def _variables(table: str, size: int) -> tuple[str, ...]:
    kind, number = table[0], int(table[1:])
    return tuple(f"{kind}{number:03d}{place:04d}" for place in range(1, size + 1))


def race_variables() -> Ints:
    """The variables of the 71 of table P1, from 0, in which each of the 63 combinations of races counts.

    Returns
    -------
    ndarray of int64, shape (63, 4)
        Total; one race, or two or more; of so many races (one race has no such line: -1); the combination itself.
    """
    rows = []
    line = 1
    total, several = 0, 8
    for number in range(1, _RACES + 1):
        # A head line, and one for each combination; all of two or more races have another head above.
        line = several + 1 if number == 2 else line
        head = line
        for _ in combinations(range(_RACES), number):
            line += 1
            rows.append((total, head if number == 1 else several, -1 if number == 1 else head, line))
        line += 1
    return np.array(rows, dtype=np.int64)


def _races(level: Mapping[str, Ints], counted: Flags) -> Ints:
    return np.where(counted[:, None], race_variables()[level["cenrace"]], -1)


def _races_of_not_hispanic(level: Mapping[str, Ints], counted: Flags) -> Ints:
    """P2 and P4: total, Hispanic, not Hispanic, and below that the lines of P1 but its first, two further down."""
    hispanic = level["hispanic"] == 1
    below = race_variables()[level["cenrace"]]
    lines = np.where((below > 0) & ~hispanic[:, None], below + 2, -1)
    head = np.where(hispanic, 1, 2)[:, None]
    total = np.zeros_like(head)
    return np.where(counted[:, None], np.concatenate([total, head, lines], axis=1), -1)


def _quarters(level: Mapping[str, Ints]) -> Ints:
    """P5: total, institutional and its four types, noninstitutional and its three."""
    kind = level["hhgq"]
    institutional = kind < 5
    lines = np.stack([np.zeros_like(kind), np.where(institutional, 1, 6), np.where(institutional, kind + 1, kind + 2)])
    return np.where(kind > 0, lines, -1).T


_PERSON_TABLES: Final[Mapping[str, Callable[[Mapping[str, Ints]], Ints]]] = {
    "P1": lambda level: _races(level, level["votingage"] >= 0),
    "P2": lambda level: _races_of_not_hispanic(level, level["votingage"] >= 0),
    "P3": lambda level: _races(level, level["votingage"] == 1),
    "P4": lambda level: _races_of_not_hispanic(level, level["votingage"] == 1),
    "P5": _quarters,
}


def tables_of(schema: Schema) -> list[RedistrictingTable]:
    """The published tables that a schema gives: P1 to P5 of persons, H1 of housing units, `TOTALS` of others."""
    if counts_units(schema):
        return [RedistrictingTable("H1", np.array([[0, 2], [0, 1]]), SIZES["H1"])]
    cells = np.arange(schema.cells, dtype=np.int32)
    if not counts_persons(schema):
        first = 1 + np.cumsum([0, *schema.shape])
        above = [first[place] + level for place, level in enumerate(np.unravel_index(cells, schema.shape))]
        return [RedistrictingTable(TOTALS, np.stack([np.zeros_like(above[0]), *above], axis=1), int(first[-1]))]
    level = levels(schema, cells)
    return [RedistrictingTable(name, make(level), SIZES[name]) for name, make in _PERSON_TABLES.items()]


def levels_of(kinds: Iterable[str]) -> dict[str, str]:
    """What SUMLEV is for each kind of areas, in the order of the tables: the Bureau's kinds, then those of the user."""
    there = set(kinds)
    return {name: level for name, level in summary_levels().items() if name in there} | {
        name: name for name in sorted(there - set(summary_levels()))
    }


def geocodes(name: str, labels: Texts) -> Texts:
    """GEOCODE of the areas of a kind: their identifiers, but for blocks, which have 15 digits in the Bureau's files.

    They lack that of the block group, which the number of a block repeats.
    """
    return short_blocks(labels) if name == "block" else labels


def short_blocks(labels: Texts) -> Texts:
    """The 15 digits of blocks, from their 16."""
    written = labels.view(np.uint8).reshape(-1, labels.itemsize)
    found: Texts = np.ascontiguousarray(np.delete(written, 11, axis=1)).view(f"S{labels.itemsize - 1}").reshape(-1)
    return found


DATASETS: Final = {
    "US_Person_PL_PROD": "pl94-2020-us",
    "PR_Person_PL_PROD": "pl94-2020-pr",
    "US_Unit_PL_PROD": "h1-2020-us",
    "PR_Unit_PL_PROD": "h1-2020-pr",
}
"""By the name of a dataset of the Census Bureau the built-in configuration."""


def dataset_name(configuration: Configuration, spine: Spine) -> str:
    """The name of the dataset that a run makes: of the redistricting data the Bureau's, else one with its product."""
    state = "PR" if (spine.blocks // 10**14 == int(PUERTO_RICO)).all() else "US"
    if counts_persons(configuration.schema):
        return f"{state}_Person_PL_PROD"
    if counts_units(configuration.schema):
        return f"{state}_Unit_PL_PROD"
    return f"{state}_{re.sub('[^A-Za-z0-9-]', '_', configuration.product)}"
