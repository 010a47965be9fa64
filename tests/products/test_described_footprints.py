"""What two records can count in, against all pairs of them; and bounds where there are too many to compare."""

import copy
from collections.abc import Collection, Iterator
from itertools import product
from random import Random
from typing import Any

import pytest
from described_neighbours import random_document

from yupana.plan.predicates import TooManyClassesError
from yupana.products.described import stability as module
from yupana.products.described.description import AreaKind, DescribedLevel, DescribedTable, Description
from yupana.products.described.product import described
from yupana.products.described.stability import footprints

Record = dict[str, int]


def worlds(number: int) -> Iterator[tuple[Description, DescribedTable, DescribedLevel, Random]]:
    for seed in range(number):
        rng = Random(seed)  # noqa: S311 (a test)
        try:
            description = described(copy.deepcopy(random_document(rng)))
        except ValueError:
            continue
        (table,) = description.tables
        yield description, table, table.levels[0], rng


def every_record(description: Description, table: DescribedTable) -> list[Record]:
    columns = description.of_record(table).columns
    return [
        record
        for values in product(*(column.domain for column in columns))
        if (record := {column.name: value for column, value in zip(columns, values, strict=True)}) in table.universe
    ]


def place_of(description: Description, kind: AreaKind, record: Record) -> int:
    """The place of a record's combination of values among all of them."""
    domains = [description.columns[name].column.domain for name in kind.columns]
    return list(product(*domains)).index(tuple(record[name] for name in kind.columns))


def footprint(
    description: Description, table: DescribedTable, level: DescribedLevel, record: Record
) -> frozenset[tuple[Any, ...]]:
    kind = description.areas[level.areas]
    return frozenset(
        (area, group, cell)
        for area in kind.of[place_of(description, kind, record)]
        for group in level.groups
        for cell, of in enumerate(table.cells)
        if record in description.group(table, group) and record in of
    )


def agree(one: Record, other: Record, shared: Collection[str]) -> bool:
    return all(one[name] == other[name] for name in shared)


@pytest.mark.slow
def test_pairs_of_records_are_compared() -> None:
    compared = 0
    for description, table, level, rng in worlds(160):
        records = every_record(description, table)
        cells = [footprint(description, table, level, record) for record in records]
        columns = [column.name for column in description.of_record(table).columns]
        found = footprints(description, table, level)
        assert (found.overlap.number, found.overlap.exact) == (max(map(len, cells)), True)
        for shared in ([], columns, rng.sample(columns, rng.randint(0, len(columns)))):
            pairs = product(zip(records, cells, strict=True), repeat=2)
            farthest = max(len(u ^ w) for (one, u), (other, w) in pairs if agree(one, other, shared))
            apart = found.apart(shared)
            assert apart.number == farthest if apart.exact else apart.number >= farthest
            compared += apart.exact
    assert compared > 200


@pytest.mark.parametrize("too_many", ["_MOST_SETS", "_MOST_COMPARED", "classify"])
def test_what_is_too_much_to_compare_is_bounded(too_many: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bounded = 0
    for description, table, level, _ in worlds(40):
        exact = footprints(description, table, level)
        with monkeypatch.context() as few:
            few.setattr(module, too_many, _refuse if too_many == "classify" else 0)
            found = footprints(description, table, level)
            assert found.overlap.number >= exact.overlap.number
            assert found.apart([]).number >= exact.apart([]).number
            bounded += not found.apart([]).exact
    assert bounded


def _refuse(*_: object) -> None:
    raise TooManyClassesError
