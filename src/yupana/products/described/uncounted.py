"""Which records a description counts nowhere: by universes, incomplete classes, areas and groups. Public."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, islice, pairwise, product
from math import comb
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from yupana.files.columns import Column, RecordFile
from yupana.plan.predicates import TooManyClassesError, Where, classify, told_apart
from yupana.plan.responses import ResponseGroup
from yupana.products.described.description import (
    EVERYONE,
    DescribedColumn,
    DescribedLevel,
    DescribedTable,
    Description,
    MultipleResponse,
    Sums,
)

_MOST_SHOWN: Final = 12
_MOST_TRIED: Final = 1 << 16
"""Sets of codes that are tried one by one."""
_FEW: Final = 3
"""Combinations that are named as examples."""

NO_CELL: Final = "no cell of the table counts them"
NO_GROUP: Final = "no group holds them"
TOO_MANY: Final = ("of some combinations perhaps", "there are too many to compare")

_Lost = tuple[str, str, str]
"""Of records that are lost the column or response, its values, and why, as `Uncounted` has them."""


@dataclass(frozen=True, slots=True)
class Uncounted:
    """Records that a table counts in none of its rows."""

    table: str
    levels: tuple[str, ...]  # where it is so; empty for all
    of: str  # the column, or the response, as `file.column`; several with "and" between them
    values: str  # those of such records, as the file writes them
    because: str

    def __str__(self) -> str:
        where = f" at {', '.join(self.levels)}" if self.levels else ""
        return f"{self.table}{where}: leaves out records with {self.of} {self.values}: {self.because}"

    def as_json(self) -> dict[str, Any]:
        """Describe it."""
        return {**asdict(self), "levels": list(self.levels)}


def left_out(config: Description) -> list[Uncounted]:
    """Which records no row of a table counts, by the description alone.

    A record of a table's file is in some cell of a table at a level if and only if no entry of the two is of its
    values. What a limit leaves out depends on other records, and is told under the table's limit.
    """
    merged: dict[tuple[str, _Lost], tuple[str, ...]] = {}

    def tell(table: str, lost: Iterable[_Lost], *levels: str) -> None:
        for one in lost:
            merged[table, one] = (*merged.get((table, one), ()), *levels)

    for table in config.tables:
        tell(table.name, _by_blocks(config, table))
        tell(table.name, _by_universe(table, config.columns))
        tell(table.name, _uncounted(table.universe, table.cells, config.columns, NO_CELL, _recodes(config, table)))
        for level in table.levels:
            tell(table.name, _by_area(config, table, level), level.name)
            tell(table.name, _by_group(config, table, level), level.name)
        for sums in table.sums:
            tell(sums.name, _by_sum(config, table, sums))
    return [Uncounted(table, levels, *lost) for (table, lost), levels in merged.items()]


def shown(values: Iterable[int], column: Column) -> str:
    """Values of a column as its file writes them, with runs of whole numbers as ranges."""
    ordered = sorted(values)
    if column.words:
        texts = [column.written(value) for value in ordered]
    else:
        said = [word for word, value in column.not_numbers.items() if value in ordered]
        numbers = [value for value in ordered if value not in column.not_numbers.values()]
        ends = [i for i, (one, other) in enumerate(pairwise(numbers), 1) if other != one + 1]
        runs = [(numbers[i], numbers[j - 1]) for i, j in pairwise([0, *ends, len(numbers)])] if numbers else []
        texts = [column.written(low) if low == high else f"{low}-{high}" for low, high in runs]
        texts += said
    more = [f"and {len(texts) - _MOST_SHOWN:,} more"] if len(texts) > _MOST_SHOWN else []
    return ", ".join([*(text or "none" for text in texts[:_MOST_SHOWN]), *more])


def _by_universe(table: DescribedTable, columns: Mapping[str, DescribedColumn]) -> Iterator[_Lost]:
    for name, allowed in table.universe.columns:
        if lost := set(columns[name].column.domain) - allowed:
            yield _name(columns[name]), shown(lost, columns[name].column), "its universe"


def _by_blocks(config: Description, table: DescribedTable) -> Iterator[_Lost]:
    """Records in blocks that the description leaves out."""
    blocks = config.blocks
    if blocks is None:
        return
    if blocks.chosen is not None:
        first, *_ = blocks.key
        others = ", ".join(f"{value:0{first.digits}}" for value in sorted(blocks.chosen))
        yield f"{table.counts}.{first.name}", f"other than {others}", "blocks.only leaves out other blocks"
    if units := blocks.housing_units:
        yield f"{units.file}.{units.number}", "0 in a whole area", "areas without a housing unit are left out"


def _recodes(config: Description, table: DescribedTable) -> dict[str, str]:
    """By column, why a table by a recode of it leaves values out."""
    recodes, found = config.document.get("recodes", {}), dict[str, list[str]]()
    for name in config.document["tables"][table.name].get("by", []):
        if name in recodes:
            found.setdefault(str(recodes[name]["column"]), []).append(name)
    return {column: f"recode {' or '.join(names)} has no class for them" for column, names in found.items()}


def _by_sum(config: Description, table: DescribedTable, sums: Sums) -> Iterator[_Lost]:
    """Cells of a table that no row of a sum adds, with records that are in no other cell which one adds."""
    kept = {cell for _, parts in sums.rows for cell in parts}
    lost = [i for i, cell in enumerate(table.cells) if i not in kept and (cell & table.universe).is_possible]
    if config.document["tables"][table.name].get("overlapping") is True:
        added = [table.cells[i] for i in sorted(kept)]
        within = [(i, table.cells[i] & table.universe) for i in lost]
        lost = [i for i, cell in within if any(True for _ in _uncounted(cell, added, config.columns))]
    if lost:
        texts = [" with ".join(table.labels[i]) for i in lost[:_MOST_SHOWN]]
        texts += [f"and {len(lost) - _MOST_SHOWN:,} more"] if len(lost) > _MOST_SHOWN else []
        yield f"{' and '.join(table.columns)} of {table.name}", ", ".join(texts), "no row of the sum adds them"


def _uncounted(
    within: Where,
    counted: Sequence[Where],
    columns: Mapping[str, DescribedColumn],
    because: str = "",
    reasons: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[_Lost]:
    """Records within a universe that none of some conditions holds: by single columns, then by combinations."""
    some = [one & within for one in counted if (one & within).is_possible]
    inside = dict(within.columns)
    read = list(dict.fromkeys(name for one in counted for name, _ in one.columns))
    covered = {}
    for name in read:
        column = columns[name]
        domain = frozenset(column.column.domain)
        tests = [dict(one.columns).get(name, domain) for one in some]
        covered[name] = frozenset().union(*tests) & inside.get(name, domain)
        if lost := inside.get(name, domain) - covered[name]:
            yield _name(column), shown(lost, column.column), reasons.get(_name(column), because)
    yield from _combinations(some, covered, columns, because)


def _combinations(
    some: Sequence[Where], covered: Mapping[str, frozenset[int]], columns: Mapping[str, DescribedColumn], because: str
) -> Iterator[_Lost]:
    """Combinations of values that no condition holds, though each value is in some."""
    names = " and ".join(_name(columns[name]) for name in covered)
    file = RecordFile("", "", tuple(columns[name].column for name in covered))
    predicates = [Where(tuple(covered.items())), *some]
    try:
        classes = classify(file, predicates)
    except TooManyClassesError:
        yield names, *TOO_MANY
        return
    is_lost = (classes.members[0] & ~classes.members[1:].any(axis=0))[classes.class_of].reshape(classes.sizes)
    kinds: list[list[list[int]]] = []
    for axis, (name, kind_of) in enumerate(told_apart(file, predicates).items()):
        # Kinds of values in the order of the first of each.
        order = np.argsort(np.unique(kind_of, return_index=True)[1])
        is_lost = is_lost.take(order, axis=axis)
        values = np.array(sorted(columns[name].column.domain))
        kinds.append([values[kind_of == kind].tolist() for kind in order])
    lost = np.argwhere(is_lost)
    if len(lost):
        examples = [
            " with ".join(
                shown(of[place], columns[name].column) for place, name, of in zip(places, covered, kinds, strict=True)
            )
            for places in lost[:_FEW].tolist()
        ]
        more = f" and {len(lost) - _FEW:,} more combinations" if len(lost) > _FEW else ""
        yield names, "; ".join(examples) + more, because


def _by_area(config: Description, table: DescribedTable, level: DescribedLevel) -> Iterator[_Lost]:
    """Records in no area of a level."""
    kind, why = config.areas[level.areas], "in no area of"
    if kind.blocks is not None and config.blocks is not None:
        for column in kind.blocks.columns:
            value = (kind.blocks.nowhere or {}).get(column.name)
            if value is not None:
                of, text = f"{config.blocks.file}.{column.name}", f"{value:0{column.digits}}"
                yield of, text, f"their blocks lie {why} {kind.name}"
    elif len(kind.columns) == 1:
        # A combination of several columns lies in one area.
        of_areas = config.columns[kind.columns[0]]
        allowed = dict(table.universe.columns).get(kind.columns[0], frozenset(of_areas.column.domain))
        values = sorted(of_areas.column.domain)
        lost = [value for value, areas in zip(values, kind.of, strict=True) if not areas and value in allowed]
        if lost:
            yield _name(of_areas), shown(lost, of_areas.column), f"they lie {why} {kind.name}"


def _by_group(config: Description, table: DescribedTable, level: DescribedLevel) -> Iterator[_Lost]:
    """Records in no group of a level: neither by columns nor by any response, which do not depend on each other."""
    if set(EVERYONE) & set(level.groups):
        return
    responses = config.of_responses(level)
    by_response = {code for of in responses.values() for code in of}
    wheres = [config.group(table, code) for code in level.groups if code not in by_response]
    parts = [_in_no_group(config.responses[name], name, [*of.values()]) for name, of in responses.items()]
    if wheres:
        parts.insert(0, [*_uncounted(table.universe, wheres, config.columns, NO_GROUP)])
    for some in product(*parts):
        names, values, reasons = zip(*some, strict=True)
        yield " and ".join(names), " with ".join(values), reasons[0] if len(some) == 1 else NO_GROUP


def _in_no_group(response: MultipleResponse, name: str, groups: Sequence[ResponseGroup]) -> list[_Lost]:
    """Records that are in none of some groups by a response: whose codes they have, and why.

    A record is in none if none of its codes is a member of a group of any code, and no group alone holds all of them.
    """
    of_any = frozenset().union(*(group.members for group in groups if not group.alone))
    alone = [group.members for group in groups if group.alone]
    none = {response.column.none} if response.column.blank else set[int]()
    kinds: dict[frozenset[int], list[int]] = {}
    for code in sorted(set(response.column.domain) - of_any - none):
        kinds.setdefault(frozenset(i for i, members in enumerate(alone) if code in members), []).append(code)
    found = []
    if single := none.union(kinds.pop(frozenset(), [])):
        found.append((name, shown(single, response.column), "a record without another code is in no group"))
    tried = 0
    for number in range(2, min(response.most, len(kinds)) + 1):
        tried += comb(len(kinds), number)
        if tried > _MOST_TRIED:
            return [*found, (name, *TOO_MANY)]
        lost = (some for some in combinations(kinds, number) if not frozenset.intersection(*some))
        texts = [" with ".join(shown(kinds[kind], response.column) for kind in some) for some in islice(lost, _FEW)]
        if texts:
            more = " and more combinations" if next(lost, None) else ""
            return [*found, (name, "; ".join(texts) + more, NO_GROUP)]
    return found


def _name(column: DescribedColumn) -> str:
    return f"{column.file}.{column.name}"
