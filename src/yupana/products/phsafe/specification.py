"""The S-DHC as specified (PHSafe, section 2): the built-in description, in the codes of the Census Edited File.

Public: nothing here reads a record. A description knows a code by its place in a list; what opens the Census Bureau's
files knows it by its number.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from yupana.files.columns import GEO, PERSONS, UNITS
from yupana.files.document import located, read_document, refuse
from yupana.plan.predicates import Where
from yupana.products.described.description import EVERYONE, DescribedFile, DescribedLevel, DescribedTable, Description
from yupana.products.described.plan import families_of
from yupana.products.described.reading.description import parse
from yupana.products.safetab.regions import PUERTO_RICO

D = TypeVar("D", bound=Description)


@dataclass(frozen=True, slots=True)
class Group:
    """A population group: a region and an iteration."""

    region_type: str
    region_id: str
    iteration: str


def _read() -> Description:
    name = "s-dhc-2020-us"
    path = located(name, "yupana.products.described", (name,))
    document, faults = read_document(path)
    found = parse(document, path.parent, faults, check=False)
    if found is None:
        raise refuse(path, faults)
    return found


_DESCRIPTION: Final = _read()

STATE_NAMES: Final = {**_DESCRIPTION.areas["STATE"].labels, PUERTO_RICO: "Puerto Rico"}
"""State equivalents by their FIPS code."""


def of_states(description: D, states: Iterable[str]) -> D:
    """A description of the S-DHC with these states alone, ascending."""
    codes = tuple(sorted(states))
    place = {int(code): number for number, code in enumerate(codes)}
    geo, kind = description.files["geo"], description.areas["STATE"]
    state = replace(geo.columns["TABBLKST"], column=replace(GEO["TABBLKST"], domain=frozenset(place)))
    of = tuple((place[number],) if number in place else () for number in range(max(place, default=0) + 1))
    labels = {code: STATE_NAMES[code] for code in codes}
    return replace(
        description,
        files={**description.files, "geo": replace(geo, columns={**geo.columns, "TABBLKST": state})},
        areas={
            **description.areas,
            "STATE": replace(kind, codes=codes, of=of, labels=labels, values=(range(len(of)),)),
        },
    )


def _in_numbers(description: Description) -> Description:
    """The same, where the number of a code stands for it, and that of a cell for the cell."""
    words, bureau = description.columns, {file.name: file for file in (PERSONS, UNITS, GEO)}

    def where(of: Where) -> Where:
        return Where(
            tuple((name, frozenset(int(words[name].column.written(v)) for v in values)) for name, values in of.columns)
        )

    def file(of: DescribedFile) -> DescribedFile:
        columns = {n: replace(column, column=bureau[of.name][n], labels={}) for n, column in of.columns.items()}
        return replace(of, columns=columns)

    def table(of: DescribedTable) -> DescribedTable:
        return replace(
            of,
            universe=where(of.universe),
            cells=tuple(map(where, of.cells)),
            numbered=True,
            groups={code: where(group) for code, group in of.groups.items()},
        )

    return replace(
        description,
        files={name: file(of) for name, of in description.files.items()},
        groups={code: where(group) for code, group in description.groups.items() if isinstance(group, Where)},
        tables=tuple(map(table, description.tables)),
    )


S_DHC: Final = of_states(_in_numbers(_DESCRIPTION), _DESCRIPTION.areas["STATE"].codes)
"""The S-DHC of the United States, with the budgets and thresholds of 2020 (PHSafe, table 10)."""

TABLES: Final = S_DHC.tables
"""The nine tables that are measured."""

LEVELS: Final = {level.name: level for table in TABLES for level in table.levels}
"""The population-group levels, such as ``state_A-G``."""

FAMILIES: Final = tuple(family for table in TABLES for family in families_of(table))


def cell_column(table: str) -> str:
    """Name of the column that numbers a table's cells, such as PH1_NUM_DATA_CELL."""
    return f"{table.upper()}_DATA_CELL"


def cells_of(table: DescribedTable) -> tuple[int, ...]:
    """The numbers of the basis cells of a table."""
    return tuple(int(label) for (label,) in table.labels)


def iterations_of(table: DescribedTable) -> tuple[str, ...]:
    """The iterations that a table is published for."""
    return (*EVERYONE, *S_DHC.groups) if table.has_groups else EVERYONE


def groups_of(level: DescribedLevel, states: Iterable[str]) -> tuple[Group, ...]:
    """The population groups of a level, in the order of the rows: by region, then by iteration."""
    regions = S_DHC.areas["USA"].codes if level.areas == "USA" else tuple(states)
    return tuple(Group(level.areas, region, code) for region in regions for code in level.groups)


def table(name: str) -> DescribedTable:
    """Find a measured table by name, or raise KeyError."""
    return _BY_NAME[name]


_BY_NAME: Final = {table.name: table for table in TABLES}
