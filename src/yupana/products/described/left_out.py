"""Which records a description counts nowhere: by universes, incomplete classes, areas and groups. Public."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import prod
from typing import Any, Final

import numpy as np

from yupana.files.columns import Column
from yupana.plan.predicates import Where
from yupana.products.described.description import (
    EVERYONE,
    DescribedColumn,
    DescribedLevel,
    DescribedTable,
    Description,
)

_MOST_SHOWN: Final = 12
_MOST_COMBINATIONS: Final = 1 << 22
_FEW: Final = 3
"""Combinations that are named as examples."""

NO_CELL: Final = "no cell of the table counts them"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Records that a table counts in none of its rows.

    Attributes
    ----------
    table : str
    levels : tuple of str
        Where it is so; empty for all.
    of : str
        The column, as ``file.column``; several with "and" between them.
    values : str
        Those of such records, as the file writes them.
    because : str
    """

    table: str
    levels: tuple[str, ...]
    of: str
    values: str
    because: str

    def __str__(self) -> str:
        where = f" at {', '.join(self.levels)}" if self.levels else ""
        return f"{self.table}{where}: leaves out records with {self.of} {self.values}: {self.because}"

    def as_json(self) -> dict[str, Any]:
        """Describe it."""
        return {**asdict(self), "levels": list(self.levels)}


def left_out(config: Description) -> list[LeftOut]:
    """Which records no row of a table counts, by the description alone.

    A record of a table's file is in some cell of a table at a level if and only if no entry of the two is of its
    values. What a limit leaves out depends on other records, and is told under the table's limit.
    """
    found: list[LeftOut] = []
    for table in config.tables:
        columns = {column.column.name: column for column in config.columns.values()}
        found += _by_universe(table, columns)
        found += _uncounted(table.name, (), table.universe, table.cells, columns, NO_CELL, _incomplete(config))
        for level in table.levels:
            found += _by_level(config, table, level, columns)
    merged: dict[tuple[str, str, str, str], tuple[str, ...]] = {}
    for one in found:
        key = (one.table, one.of, one.values, one.because)
        merged[key] = (*merged.get(key, ()), *one.levels)
    return [LeftOut(table, levels, of, values, because) for (table, of, values, because), levels in merged.items()]


def shown(values: Iterable[int], column: Column) -> str:
    """Values of a column as its file writes them, with runs of whole numbers as ranges."""
    ordered = sorted(values)
    if column.words:
        texts = [column.written(value) for value in ordered]
    else:
        numbers = [value for value in ordered if not (column.blank_is_last and value == column.none)]
        ends = [i for i, (one, other) in enumerate(pairwise(numbers), 1) if other != one + 1]
        runs = [(numbers[i], numbers[j - 1]) for i, j in pairwise([0, *ends, len(numbers)])] if numbers else []
        texts = [column.written(low) if low == high else f"{low}-{high}" for low, high in runs]
        texts += [column.blank] * (len(numbers) < len(ordered))
    more = [f"and {len(texts) - _MOST_SHOWN:,} more"] if len(texts) > _MOST_SHOWN else []
    return ", ".join([*(text or "none" for text in texts[:_MOST_SHOWN]), *more])


def _by_universe(table: DescribedTable, columns: Mapping[str, DescribedColumn]) -> Iterator[LeftOut]:
    for name, allowed in table.universe.columns:
        if lost := set(columns[name].column.domain) - allowed:
            yield LeftOut(table.name, (), _name(columns[name]), shown(lost, columns[name].column), "its universe")


def _incomplete(config: Description) -> dict[str, str]:
    """By column, the recodes that say of themselves that they are incomplete."""
    found: dict[str, str] = {}
    for name, told in config.document.get("recodes", {}).items():
        if told.get("incomplete") is True:
            found[str(told["column"])] = f"recode {name} is incomplete"
    return found


def _uncounted(
    table: str,
    levels: tuple[str, ...],
    within: Where,
    counted: Sequence[Where],
    columns: Mapping[str, DescribedColumn],
    because: str,
    reasons: Mapping[str, str],
) -> Iterator[LeftOut]:
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
            why = reasons.get(_name(column), because)
            yield LeftOut(table, levels, _name(column), shown(lost, column.column), why)
    yield from _combinations(table, levels, some, covered, columns, because)


def _combinations(
    table: str,
    levels: tuple[str, ...],
    some: Sequence[Where],
    covered: Mapping[str, frozenset[int]],
    columns: Mapping[str, DescribedColumn],
    because: str,
) -> Iterator[LeftOut]:
    """Combinations of values that no condition holds, though each value is in some."""
    tests = [dict(one.columns) for one in some]
    atoms: list[list[list[int]]] = []
    for name in covered:
        by_tests: dict[tuple[bool, ...], list[int]] = {}
        for value in sorted(covered[name]):
            by_tests.setdefault(tuple(value in of.get(name, (value,)) for of in tests), []).append(value)
        atoms.append(list(by_tests.values()))
    names = " and ".join(_name(columns[name]) for name in covered)
    if prod(map(len, atoms)) > _MOST_COMBINATIONS:
        yield LeftOut(table, levels, names, "of some combinations perhaps", "there are too many to compare")
        return
    held = np.zeros([len(of) for of in atoms], dtype=np.bool_)
    for of in tests:
        held[
            np.ix_(
                *(
                    [i for i, values in enumerate(kinds) if values[0] in of.get(name, values)]
                    for name, kinds in zip(covered, atoms, strict=True)
                )
            )
        ] = True
    lost = np.argwhere(~held)
    if len(lost):
        examples = [
            " with ".join(
                shown(kinds[place], columns[name].column)
                for place, name, kinds in zip(places, covered, atoms, strict=True)
            )
            for places in lost[:_FEW].tolist()
        ]
        more = f" and {len(lost) - _FEW:,} more combinations" if len(lost) > _FEW else ""
        yield LeftOut(table, levels, names, "; ".join(examples) + more, because)


def _by_level(
    config: Description, table: DescribedTable, level: DescribedLevel, columns: Mapping[str, DescribedColumn]
) -> Iterator[LeftOut]:
    """Records in no area and in no group of a level."""
    kind = config.areas[level.areas]
    if kind.blocks is None and kind.column:
        column = columns[kind.column]
        allowed = dict(table.universe.columns).get(kind.column, frozenset(column.column.domain))
        values = sorted(column.column.domain)
        lost = [value for value, areas in zip(values, kind.of, strict=True) if not areas and value in allowed]
        if lost:
            why = f"they lie in no area of {kind.name}"
            yield LeftOut(table.name, (level.name,), _name(column), shown(lost, column.column), why)
    if level.groups == EVERYONE:
        return
    if responses := config.of_responses(level):
        for name, groups in responses.items():
            response = config.responses[name]
            members = frozenset().union(*(group.members for group in groups.values()))
            if lost_codes := set(response.column.domain) - members:
                why = "a record without another code is in no group"
                yield LeftOut(table.name, (level.name,), name, shown(lost_codes, response.column), why)
        return
    groups_of = [config.group(table, code) for code in level.groups]
    why = "no group holds them"
    yield from _uncounted(table.name, (level.name,), table.universe, groups_of, columns, why, {})


def _name(column: DescribedColumn) -> str:
    return f"{column.file}.{column.name}"


def told(config: Description) -> list[dict[str, Any]]:
    """What is left out, for a manifest and an answer in JSON."""
    return [one.as_json() for one in left_out(config)]
