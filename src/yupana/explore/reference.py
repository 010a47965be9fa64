"""Public counts to set errors against: of invented people, or of a release; and blocks to try spines on."""

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from importlib.resources import as_file, files
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from yupana.errors import InputError
from yupana.explore.spines import SampleBlocks, average_geounits
from yupana.geography.blocks import Reference
from yupana.products.phsafe.product import PHSAFE
from yupana.products.phsafe.shells import area_name
from yupana.products.phsafe.specification import TABLES, cell_column
from yupana.products.safetab.product import PERSONS, Parameters
from yupana.products.safetab.regions import Level
from yupana.products.safetab.specification import DETAILED_ONLY, QUESTIONS
from yupana.topdown.configuration import Configuration

_FOLDER: Final = files("yupana.explore") / "reference"

Counts = Mapping[str, Mapping[int, Mapping[str, Mapping[str, int]]]]
"""Counts by table, cell, iteration and region."""


CELLS: Final = {
    "PH1_num": {2: "under 18", 3: "18 and over"},
    "PH1_denom": {1: "occupied housing units"},
    "PH2": {
        3: "opposite-sex married couple",
        4: "same-sex married couple",
        6: "opposite-sex cohabiting couple",
        7: "same-sex cohabiting couple",
        9: "male householder alone",
        10: "male householder with others",
        12: "female householder alone",
        13: "female householder with others",
    },
    "PH3": {
        2: "householder, spouse, partner or nonrelative",
        4: "own child, married couple",
        5: "own child, cohabiting couple",
        6: "own child, male householder",
        7: "own child, female householder",
        9: "grandchild",
        10: "other relative",
    },
    "PH4": {2: "under 18", 3: "18 and over"},
    "PH5_denom": {1: "families"},
    "PH6": {
        first + place: f"{family}, {ages}"
        for first, family in ((3, "married"), (8, "cohabiting"), (13, "male"), (18, "female"))
        for place, ages in enumerate(("under 4", "4 and 5", "6 to 11", "12 to 17"))
    },
    "PH7": {2: "owned with a mortgage", 3: "owned free and clear", 4: "rented"},
    "PH8_denom": {2: "owned", 3: "rented"},
}
"""What each measured cell counts."""


ITERATIONS: Final = {
    "*": "Everyone",
    "A": "White",
    "B": "Black",
    "C": "AIAN",
    "D": "Asian",
    "E": "NHPI",
    "F": "Other",
    "G": "Two or more",
    "H": "Hispanic",
    "I": "White, not Hispanic",
}


Sizes = Sequence[tuple[int, int]]
"""Pairs of a size and how many population groups have it."""


@dataclass(frozen=True, eq=False)
class KnownCounts:
    """The counts that an entry pays for, as far as they are public.

    Attributes
    ----------
    counts : tuple of int
        In ascending order.
    numbers : tuple of int
        How many cells have each of them.
    names : tuple of (area, what) or ()
        Whose each is; empty where they have no names.
    """

    counts: tuple[int, ...]
    numbers: tuple[int, ...]
    names: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, found: Iterable[tuple[int, int, tuple[str, str]]]) -> "KnownCounts":
        """Of counts with their numbers and names, in any order."""
        counts, numbers, names = zip(*sorted(found), strict=True)
        return cls(counts, numbers, names if any(area for area, _ in names) else ())

    @cached_property
    def total(self) -> int:
        """How many cells there are."""
        return sum(self.numbers)

    @cached_property
    def typical(self) -> Fraction:
        """The median, 1 at least."""
        until = list(accumulate(self.numbers))
        return Fraction(max(1, self.counts[bisect_left(until, until[-1] / 2)]))

    def below(self, least: float) -> tuple[int, Counter[str]]:
        """How many counts are smaller than some number, and how many of each area."""
        end = bisect_left(self.counts, least)
        return sum(self.numbers[:end]), Counter(area for area, _ in self.names[:end])

    @cached_property
    def by_area(self) -> Counter[str]:
        """How many counts each area has."""
        return Counter(area for area, _ in self.names)


def _document(name: str) -> dict[str, Any]:
    """Read a file of the package, such as ``phsafe``."""
    return dict(json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8")))


@cache
def invented_phsafe() -> dict[str, Any]:
    """Counts of PHSafe of invented people, ``counts`` by table, cell, group and area, and households by persons."""
    return _document(PHSAFE.key)


def known_to_phsafe(release: Path | None) -> tuple[Mapping[str, KnownCounts], str]:
    """Counts of invented people, or of a release of PHSafe, by entry; and whose they are.

    Raises
    ------
    OutputError, InputError
        If the folder holds no release of PHSafe, or one that does not hold together.
    """
    invented = invented_phsafe()
    counts: Counts = {
        table: {int(cell): of for cell, of in cells.items()} for table, cells in invented["counts"].items()
    }
    source = str(invented["source"])
    if release is not None:
        counts, source = _counts_of(release), f"the release {release.name}, noise included"
    found = {}
    for table in TABLES:
        for level in table.levels:
            rows = [
                (count, 1, (area_name("USA" if area == "1" else "STATE", area, "United States"), f"{group}, {words}"))
                for cell, words in CELLS[table.name].items()
                for code in level.groups
                if (group := ITERATIONS[code]) is not None
                for area, count in counts[table.name][cell].get(code, {}).items()
                if (area == "1") == (level.areas == "USA")
            ]
            if rows:
                found[f"{table.name}/{level.name}"] = KnownCounts.of(rows)
    return found, source


def published_counts(tables: Mapping[str, Mapping[str, Sequence[str]]]) -> Counts:
    """The counts of a release, by its tables as columns of text; those below zero as 0."""
    counts: dict[str, dict[int, dict[str, dict[str, int]]]] = {t.name: {c: {} for c in CELLS[t.name]} for t in TABLES}
    for of_table in TABLES:
        columns = tables.get(of_table.name)
        if columns is None:
            continue
        iterations = columns.get("ITERATION_CODE", ["*"] * len(columns["COUNT"]))
        cells = columns[cell_column(of_table.name)]
        for region, code, cell, count in zip(columns["REGION_ID"], iterations, cells, columns["COUNT"], strict=True):
            counts[of_table.name][int(cell)].setdefault(code, {})[region] = max(0, int(count))
    return counts


def _counts_of(release: Path) -> Counts:
    from yupana.products.gate import open_checked  # noqa: PLC0415 (it brings a database, which the page does not need)

    opened = open_checked(release)
    if opened.product != PHSAFE.key:
        raise InputError(f"{release} is a release of {opened.product}, and counts of phsafe are needed")
    return published_counts({table: opened.columns(table) for table in opened})


@cache
def invented_groups() -> dict[str, Any]:
    """Sizes of the population groups of invented people: ``persons`` and ``households`` by level, and ``source``."""
    return _document("safetab")


def us_level(level: Level) -> str:
    """The level of the United States whose groups stand in for one of Puerto Rico."""
    return level.name.removeprefix("PR-")


def known_to_safetab(config: Parameters) -> Mapping[str, KnownCounts]:
    """The sizes of groups by entry: persons, or of SafeTab-H households."""
    product, found = config.config.product, dict[str, KnownCounts]()
    sizes: Mapping[str, Sizes] = invented_groups()["persons" if product == PERSONS.key else "households"]
    for level in config.config.settings.levels:
        name = us_level(level)
        of_level = [*sizes.get(name, ()), *(() if product == PERSONS.key else sizes.get(f"{name} {DETAILED_ONLY}", ()))]
        if of_level:
            known = KnownCounts.of((size, number, ("", "")) for size, number in of_level)
            found |= {question.entry(level): known for question in QUESTIONS[product]}
    return found


def known_to_topdown(config: Configuration) -> Mapping[str, KnownCounts]:
    """The records of an average geounit of each geolevel, for each of its queries."""
    sizes = average_geounits(config, blocks())
    return {
        f"{level} {query.name}": KnownCounts((max(1, round(sizes[level])),), (1,))
        for level in config.levels
        if level in sizes
        for query, _ in config.queries[level]
    }


@cache
def blocks() -> SampleBlocks:
    """The blocks of an invented state, to try spines on."""
    with as_file(_FOLDER / "blocks.npz") as path, np.load(path) as found:
        reference = Reference(
            np.cumsum(found["block"]),
            found["aiannh"],
            found["cousub"],
            found["place"],
            MappingProxyType({}),
        )
        quarters = found["quarters"]
    source = f"an invented state of 368,000 households in {len(quarters):,} blocks"
    return SampleBlocks(reference, quarters, source, {"person record": 928_692, "housing unit": 407_530})
