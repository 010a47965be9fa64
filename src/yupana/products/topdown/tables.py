"""Tables P1 to P5 and H1 of the redistricting data, in the order of their published variables."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Final

import numpy as np

from yupana.arrays import Flags, Ints
from yupana.products.topdown.schema import counts_persons, counts_units, levels
from yupana.release.lines import Texts, digits, texts, whole, write_header, write_lines
from yupana.topdown.disk import Areas, sum_to_areas
from yupana.topdown.histogram import Histogram
from yupana.topdown.queries import Schema

TABLES: Final = "tables"

SUMMARY_LEVELS: Final = {
    "state": "040",
    "county": "050",
    "county_subdivision": "060",
    "tract": "140",
    "block_group": "150",
    "place": "160",
    "aiannh": "250",
    "block": "750",
}
"""Codes of the Bureau for the kinds of areas, in the order in which the tables hold them."""

_RACES: Final = 6
_AREAS_AT_ONCE: Final = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class RedistrictingTable:
    """A published table as sums over the cells of a histogram.

    Attributes
    ----------
    name : str
    size : int
        How many variables it has.
    member : ndarray of int64, shape (cells, k)
        The variables that each cell counts in, -1 for none.
    """

    name: str
    size: int
    member: Ints

    @property
    def variables(self) -> tuple[str, ...]:
        """Their names of 2020, such as P0010001."""
        kind, number = self.name[0], int(self.name[1:])
        return tuple(f"{kind}{number:03d}{place:04d}" for place in range(1, self.size + 1))

    def tabulate(self, histogram: Histogram, first: int, last: int) -> Ints:
        """The variables of the units from `first` up to `last`, of shape (last - first, size)."""
        part = slice(histogram.starts[first], histogram.starts[last])
        owner = np.repeat(np.arange(last - first), np.diff(histogram.starts[first : last + 1]))
        out = np.zeros((last - first) * self.size, dtype=np.int64)
        for variable in self.member[histogram.cells[part]].T:
            some = variable >= 0
            np.add.at(out, owner[some] * self.size + variable[some], histogram.counts[part][some])
        return out.reshape(-1, self.size)


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


_PERSON_TABLES: Final[Mapping[str, tuple[int, Callable[[Mapping[str, Ints]], Ints]]]] = {
    "P1": (71, lambda level: _races(level, level["votingage"] >= 0)),
    "P2": (73, lambda level: _races_of_not_hispanic(level, level["votingage"] >= 0)),
    "P3": (71, lambda level: _races(level, level["votingage"] == 1)),
    "P4": (73, lambda level: _races_of_not_hispanic(level, level["votingage"] == 1)),
    "P5": (10, _quarters),
}


def tables_of(schema: Schema) -> list[RedistrictingTable]:
    """The published tables that a schema gives: P1 to P5 of persons, H1 of housing units, none of another schema."""
    if counts_units(schema):
        return [RedistrictingTable("H1", 3, np.array([[0, 2], [0, 1]]))]
    if not counts_persons(schema):
        return []
    level = levels(schema, np.arange(schema.cells, dtype=np.int32))
    return [RedistrictingTable(name, size, make(level)) for name, (size, make) in _PERSON_TABLES.items()]


def write_tables(folder: Path, schema: Schema, histogram: Histogram, areas: list[Areas]) -> dict[str, int]:
    """Write tables/P1.csv and so on: a row for every area, with SUMLEV, GEOCODE and the variables.

    Parameters
    ----------
    folder : Path
        Where the release is made.
    schema : Schema
    histogram : Histogram
        Final counts of blocks.
    areas : list of Areas
        Published geography of these blocks. GEOCODE is the area's identifier but for blocks, which have 15 digits in
        the Bureau's files: without that of the block group, which the block number repeats.

    Returns
    -------
    dict of str to int
        Rows, by the file's path within the folder; none if the schema gives no such table.
    """
    found = tables_of(schema)
    if not found:
        return {}
    (folder / TABLES).mkdir()
    sums = {kind.name: (kind, counts) for kind, counts in sum_to_areas(histogram, areas)}
    rows = {}
    for table in found:
        name = f"{TABLES}/{table.name}.csv"
        rows[name] = 0
        with (folder / name).open("wb") as file:
            write_header(file, ("SUMLEV", "GEOCODE", *table.variables))
            for columns in _rows(table, sums):
                write_lines(file, columns)
                rows[name] += len(columns[0])
    return rows


def _rows(table: RedistrictingTable, sums: Mapping[str, tuple[Areas, Histogram]]) -> Iterator[list[Texts]]:
    for name, summary_level in SUMMARY_LEVELS.items():
        kind, counts = sums[name]
        geocodes = kind.labels if name != "block" else digits(kind.code // 10**5 * 10**4 + kind.code % 10**4, 15)
        for first in range(0, counts.units, _AREAS_AT_ONCE):
            last = min(first + _AREAS_AT_ONCE, counts.units)
            values = table.tabulate(counts, first, last)
            head = np.broadcast_to(texts([summary_level]), (last - first,))
            yield [head, geocodes[first:last], *(whole(column) for column in values.T)]
