"""The accuracy of TopDown's releases, against plain Python over every cell of every area."""

from math import isclose, sqrt
from pathlib import Path

import numpy as np
import pytest
from block_spines import make_spine
from hypothesis import given
from hypothesis import strategies as st
from reference_maker import BLOCKS
from spine_maker import read_table, write_reference

from yupana.confidential.topdown.accuracy import QUANTILES, AccuracyRow, AreaSet, accuracy, accuracy_table, area_sets
from yupana.geography.blocks import read_reference
from yupana.geography.published import published_blocks
from yupana.release.tables import write_table
from yupana.topdown.histogram import Histogram, count_entries
from yupana.topdown.queries import Query, margin

SHAPE = (2, 3)
CELLS = 6
QUERIES = (
    margin("total", SHAPE, (0, 0)),
    margin("a", SHAPE, (1, 0)),
    Query("b groups", ((0, 0), (0, 1, 1))),
    margin("detailed", SHAPE, (1, 1)),
)
NAMES = ("0", "1-9", "10-99", "100-999", "1000-9999", "10000-99999", "100000+")
EDGES = (0, 1, 10, 100, 1000, 10_000, 100_000, 10**9)

Counts = list[list[int]]
Expected = tuple[int, int, float, float, float, tuple[int, ...], float | None, float | None]


def histogram(counts: Counts) -> Histogram:
    unit, cell = np.indices((len(counts), CELLS))
    return count_entries(
        unit.ravel(), cell.ravel().astype(np.int32), np.array(counts, dtype=np.int64).ravel(), len(counts)
    )


def largest_is_close(true: list[int], released: list[int]) -> bool:
    top = true.index(max(true))
    total, other = sum(true), sum(released)
    return other > 0 and abs(released[top] * total - true[top] * other) * 20 <= total * other


def oracle(truth: Counts, copies: list[Counts], query: Query, area: list[int], number: int) -> dict[str, Expected]:
    answer = query.answers().tolist()

    def answered(counts: Counts) -> Counts:
        found = [[0] * query.size for _ in range(number)]
        for block, row in enumerate(counts):
            for cell, count in enumerate(row):
                if area[block] >= 0:
                    found[area[block]][answer[cell]] += count
        return found

    true, released = answered(truth), [answered(copy) for copy in copies]
    found: dict[str, Expected] = {}
    for name, low, high in [("all", 0, 10**9), *zip(NAMES, EDGES[:-1], EDGES[1:], strict=True)]:
        areas = [u for u in range(number) if low <= sum(true[u]) < high]
        if not areas:
            continue
        errors = sorted(c[u][i] - true[u][i] for c in released for u in areas for i in range(query.size))
        n = len(errors)
        quantiles = tuple(errors[-(-q * n // 1000) - 1] for q in QUANTILES)
        close = largest = None
        if query.size == 1:
            close = sum(abs(c[u][0] - true[u][0]) * 100 <= 5 * true[u][0] for c in released for u in areas) / n
        elif people := [u for u in areas if sum(true[u])]:
            hits = sum(largest_is_close(true[u], c[u]) for c in released for u in people)
            largest = hits / (len(people) * len(released))
        found[name] = (
            len(areas), query.size, sum(map(abs, errors)) / n, sqrt(sum(e * e for e in errors) / n), sum(errors) / n,
            quantiles, close, largest,
        )  # fmt: skip
    return found


def figures(row: AccuracyRow) -> Expected:
    return (
        row.areas, row.answers, row.mae, row.rmse, row.bias, row.quantiles,
        row.within_5_percent, row.largest_within_5_points,
    )  # fmt: skip


def agree(found: Expected, expected: Expected) -> bool:
    return all(
        isclose(a, b, rel_tol=1e-12, abs_tol=1e-12) if isinstance(a, float) and isinstance(b, float) else a == b
        for a, b in zip(found, expected, strict=True)
    )


COUNT = st.one_of(st.integers(0, 3), st.integers(0, 40), st.integers(0, 20_000))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Counts, list[Counts], list[int], int]:
    number = draw(st.integers(1, 6))
    blocks = draw(st.integers(1, 8))
    rows = st.lists(st.lists(COUNT, min_size=CELLS, max_size=CELLS), min_size=blocks, max_size=blocks)
    truth = draw(rows)
    near = [[[max(c + draw(st.integers(-2, 2)), 0) for c in row] for row in truth]]
    copies = [*near, *draw(st.lists(rows, max_size=2))]
    area = draw(st.lists(st.integers(-1, number - 1), min_size=blocks, max_size=blocks))
    return truth, copies, area, number


@given(cases())
@pytest.mark.thorough
def test_all_figures_are_those_of_the_oracle(case: tuple[Counts, list[Counts], list[int], int]) -> None:
    truth, copies, area, number = case
    rows = accuracy(
        histogram(truth), [histogram(copy) for copy in copies], QUERIES, [AreaSet("area", np.array(area), number)]
    )
    for query in QUERIES:
        expected = oracle(truth, copies, query, area, number)
        found = {row.population: figures(row) for row in rows if row.query == query.name}
        assert list(found) == list(expected)
        assert all(agree(found[name], expected[name]) for name in expected)


@pytest.mark.parametrize("optimized", [False, True])
def test_kinds_of_areas_and_the_file(tmp_path: Path, *, optimized: bool) -> None:
    reference = read_reference(write_reference(tmp_path / "grfc.txt", BLOCKS))
    spine = make_spine(reference, optimized=optimized)
    sets = area_sets(spine, published_blocks(reference, nation=True).areas(spine.blocks))
    assert [kind.name for kind in sets[:6]] == [f"spine {level}" for level in spine.tree.names]
    digits = {"state": 2, "county": 5, "tract": 11, "block_group": 12, "block": 16}
    for kind in sets:
        assert len(kind.index) == len(spine.blocks)
        if kind.name in digits:
            code = spine.blocks // 10 ** (16 - digits[kind.name])
            assert kind.index.tolist() == [sorted(set(code.tolist())).index(c) for c in code.tolist()]
    truth = histogram([[10] * CELLS for _ in spine.blocks])
    rows = accuracy(truth, [truth], QUERIES, sets)
    assert all((row.mae, row.rmse, row.bias, set(row.quantiles)) == (0, 0, 0, {0}) for row in rows)
    path = write_table(tmp_path, accuracy_table(rows), "csv")
    table = read_table(path)
    assert len(table) == len(rows)
    assert list(table[0])[:8] == ["geolevel", "query", "population", "areas", "answers", "mae", "rmse", "bias"]
    assert [name for name in table[0] if name.startswith("q") and name != "query"] == [
        "q0.5", "q2.5", "q5", "q25", "q50", "q75", "q95", "q97.5", "q99.5",
    ]  # fmt: skip
    assert table[0]["within_5_percent"] == "1"
    assert table[0]["largest_within_5_points"] == ""
