"""All that a description publishes, in one row of counts, and which of them add up to or lie within which others."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from yupana.arrays import Ints
from yupana.products.described.description import EVERYONE, AreaKind, DescribedLevel, DescribedTable, Description
from yupana.products.disclosure_control.differencing import Nested, Relations
from yupana.products.disclosure_control.methods import Shown
from yupana.products.tables import Groups


@dataclass(frozen=True, slots=True)
class _PublishedLevel:
    """The counts of a table at a level: areas by groups by rows, which are its cells and the sums of these."""

    table: DescribedTable
    level: DescribedLevel
    start: int  # the place of its first count among all
    areas: int  # how many there are
    rows: tuple[tuple[int, ...], ...]  # of each row the cells it adds up; those of one cell come first

    @property
    def size(self) -> int:
        """How many counts there are."""
        return self.areas * len(self.level.groups) * len(self.rows)

    @property
    def first_rows(self) -> dict[str, int]:
        """Of the table and of those that add up its cells, the first row by name."""
        found, first = {self.table.name: 0}, len(self.table.cells)
        for sums in self.table.sums:
            found[sums.name], first = first, first + len(sums.rows)
        return found

    def places(self, areas: Ints, group: int) -> Ints:
        """Of some areas, the places of the counts of a group, shape (areas, rows)."""
        lines = areas * len(self.level.groups) + group
        return self.start + lines[:, None] * len(self.rows) + np.arange(len(self.rows))

    def added(self, cells: Ints) -> Ints:
        """The counts from those of the cells, shape (areas by groups, cells); modulo 2^64."""
        return np.stack([cells[:, list(parts)].sum(axis=1) for parts in self.rows], axis=1).ravel()


@dataclass(frozen=True, slots=True, eq=False)
class PublishedCounts:
    """Everything that is published, and what is known of it before any record is read."""

    levels: tuple[_PublishedLevel, ...]
    # by kind: `margins` of cells in a table, `areas` that are made of areas, `groups` that are made of groups
    sums: Mapping[str, Relations]
    nested: Mapping[str, Nested]  # by kind: `areas` that lie in larger ones, `groups` that are part of everyone

    def row(self, cells: Mapping[str, Ints]) -> Ints:
        """All counts in their order, from those of the cells by ``table/level``, shape (areas by groups, cells)."""
        return np.concatenate([of.added(cells[f"{of.table.name}/{of.level.name}"]) for of in self.levels])

    def shown(self, groups: Iterable[Groups]) -> Shown:
        """All counts in their order, of a release: those that its tables show."""
        size = sum(of.size for of in self.levels)
        values, flags = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=bool)
        of_name = {(table, of.level.name): (of, row) for of in self.levels for table, row in of.first_rows.items()}
        for some in groups:
            for table in some.family.choices[some.choice].tables:
                of, first = of_name[table.name, some.measurement.level]
                lines = some.area.places.astype(np.int64) * len(of.level.groups) + some.iteration.places
                places = of.start + lines * len(of.rows) + first
                for row, cell in enumerate(table.cells):
                    values[places + row] = some.counts[:, list(cell.parts)].sum(axis=1)
                    flags[places + row] = True
        return Shown(values, flags)


def published_counts(description: Description) -> PublishedCounts:
    """What a description publishes: every table at every level with a budget."""
    levels: list[_PublishedLevel] = []
    for table, level in description.measured.values():
        rows: tuple[tuple[int, ...], ...] = tuple((cell,) for cell in range(len(table.cells)))
        rows += tuple(parts for sums in table.sums for _, parts in sums.rows)
        start = levels[-1].start + levels[-1].size if levels else 0
        levels.append(_PublishedLevel(table, level, start, len(description.areas[level.areas].codes), rows))
    pairs = [(one, other) for one in levels for other in levels if one.table is other.table]
    of_areas = [bundle for one, other in pairs for bundle in _areas(description, one, other)]
    of_groups = [(one, other) for one, other in pairs if _is_everyone_of(one, other)]
    return PublishedCounts(
        tuple(levels),
        {
            "margins": Relations.of(bundle for level in levels for bundle in _margins(level)),
            "areas": Relations.of((outer, inner) for outer, inner, whole in of_areas if whole),
            "groups": Relations.of(
                bundle
                for one, other in of_groups
                if _is_partition(description, other)
                for bundle in _groups(one, other)
            ),
        },
        {
            "areas": _nested(
                (np.repeat(outer, inner.shape[1]), inner.ravel()) for outer, inner, whole in of_areas if not whole
            ),
            "groups": _nested(
                (outer, inner[:, group])
                for one, other in of_groups
                for outer, inner in _groups(one, other)
                for group in range(inner.shape[1])
            ),
        },
    )


def _nested(pairs: Iterable[tuple[Ints, Ints]]) -> Nested:
    none = np.zeros(0, dtype=np.int64)
    found = list(pairs)
    return Nested(*(np.concatenate([none, *(pair[side] for pair in found)]) for side in (0, 1)))


def _margins(level: _PublishedLevel) -> Iterator[tuple[Ints, Ints]]:
    """The rows that add up cells, with these."""
    lines = level.start + np.arange(level.areas * len(level.level.groups)) * len(level.rows)
    for row in range(len(level.table.cells), len(level.rows)):
        yield lines + row, lines[:, None] + np.array(level.rows[row])


def _areas(description: Description, one: _PublishedLevel, other: _PublishedLevel) -> Iterator[tuple[Ints, Ints, bool]]:
    """The counts of areas, those of the areas that lie in them, shape (counts, areas), and whether these make them up.

    Areas that make up another come once so, and each that is smaller once more by itself.
    """
    shared = [
        (one.level.groups.index(code), other.level.groups.index(code))
        for code in one.level.groups
        if code in other.level.groups
    ]
    if not shared:
        return
    for area, inside, is_whole in _inside(description.areas[one.level.areas], description.areas[other.level.areas]):
        for group, same in shared:
            outer = one.places(np.array([area]), group).ravel()
            inner = other.places(np.array(inside), same).T
            yield outer, inner, is_whole


def _inside(one: AreaKind, other: AreaKind) -> Iterator[tuple[int, list[int], bool]]:
    """Of each area of a kind the areas of another that lie in it, told by public codes, and whether they make it up."""
    if not other.columns or not {*one.columns} <= {*other.columns}:
        return
    of = one.over(other)
    sizes, small_sizes = (
        Counter(area for areas in of for area in areas),
        Counter(a for areas in other.of for a in areas),
    )
    both = Counter(
        (area, small) for areas, smalls in zip(of, other.of, strict=True) for area in areas for small in smalls
    )
    inside: dict[int, list[int]] = {}
    for (area, small), size in both.items():
        if size == small_sizes[small] and not (one is other and area == small):
            inside.setdefault(area, []).append(small)
    covered = Counter(
        area
        for areas, smalls in zip(of, other.of, strict=True)
        for area in areas
        if {*inside.get(area, ())} & {*smalls}
    )
    for area, smalls in inside.items():
        if covered[area] == sizes[area] == sum(small_sizes[small] for small in smalls):
            yield area, smalls, True
        if strict := [small for small in smalls if small_sizes[small] < sizes[area]]:
            yield area, strict, False


def _is_everyone_of(one: _PublishedLevel, other: _PublishedLevel) -> bool:
    """Whether the first level is of everyone, and the second of groups in the same areas."""
    return (
        one.level.areas == other.level.areas and one.level.groups == EVERYONE and EVERYONE[0] not in other.level.groups
    )


def _groups(one: _PublishedLevel, other: _PublishedLevel) -> Iterator[tuple[Ints, Ints]]:
    """The counts of everyone, and those of the groups, shape (counts, groups)."""
    areas = np.arange(one.areas)
    inner = [other.places(areas, group).ravel() for group in range(len(other.level.groups))]
    yield one.places(areas, 0).ravel(), np.stack(inner, axis=1)


def _is_partition(description: Description, of: _PublishedLevel) -> bool:
    """Whether everyone is in one of the groups of a level: they divide the values of one column."""
    conditions = [description.group(of.table, code).columns for code in of.level.groups]
    if any(len(columns) != 1 for columns in conditions) or len({columns[0][0] for columns in conditions}) != 1:
        return False
    (name,) = {columns[0][0] for columns in conditions}
    values = [value for columns in conditions for value in columns[0][1]]
    return len(values) == len(set(values)) == len(description.columns[name].column.domain)
