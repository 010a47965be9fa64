"""Rows in compiled loops, against rows made in plain Python; and every other text is no such rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from schemas import make_schema

from yupana.files.arrow_stream import TextColumn
from yupana.release.lines import texts
from yupana.topdown.text_rows import (
    NO_NUMBER,
    Bytes,
    NumberForm,
    lay_records,
    lay_rows,
    match_rows,
    parse_counts,
)

LABELS = ("", "ä", "long label", "0", "7")
ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.sampled_from([0, 1, 9, 10, 4711])), max_size=8)
TIMES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 3)), max_size=8)
LONG = make_schema(sex=("männlich", "female"), race=tuple(f"race {i} of many; and more" for i in range(40)), age=3)


def columns(rows: list[tuple[int, int, int]]) -> tuple[TextColumn, TextColumn]:
    first, second, _ = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return TextColumn(texts(LABELS), first.copy()), TextColumn(texts(LABELS), second.copy())


def read_only(text: bytes) -> Bytes:
    return np.frombuffer(text, dtype=np.uint8)


@given(ROWS, st.data())
@pytest.mark.slow
def test_rows_are_texts_and_numbers_and_no_other_text_is_them(
    rows: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    first, second = columns(rows)
    numbers = np.array([[number, 3] for *_, number in rows], dtype=np.int64).reshape(-1, 2)
    expected = "".join(f"{LABELS[a]}|{LABELS[b]}|{number}|3\n" for a, b, number in rows).encode()
    assert lay_rows(first, second, numbers).tobytes() == expected
    assert match_rows(read_only(expected + b"more"), first, second, numbers, NumberForm()) == len(expected)
    if rows:
        at = data.draw(st.integers(0, len(expected) - 1))
        other = bytes([expected[at] ^ data.draw(st.integers(1, 255))])
        for changed in (expected[:at], expected[:at] + other + expected[at + 1 :]):
            assert match_rows(read_only(changed), first, second, numbers, NumberForm()) == -1


@given(rows=ROWS, below=st.integers(0, 3), above=st.integers(0, 3), shown=st.booleans())
@pytest.mark.slow
def test_ends_of_intervals_must_be_in_order_and_as_far_as_they_say(
    rows: list[tuple[int, int, int]], below: int, above: int, *, shown: bool
) -> None:
    first, second = columns(rows)
    numbers = np.array([[number] for *_, number in rows], dtype=np.int64).reshape(-1, 1)
    form = NumberForm(shown=shown, bounded=True)

    def written(more: int, *, switched: bool = False) -> bytes:
        lines = []
        for a, b, number in rows:
            lower, upper = max(number - below, 0), number + above
            margin = (upper - lower + 1) // 2 + more
            ends = (upper, lower) if switched else (lower, upper)
            told = [number] * shown + [*ends, margin]
            lines.append(f"{LABELS[a]}|{LABELS[b]}|{'|'.join(map(str, told))}\n")
        return "".join(lines).encode()

    assert match_rows(read_only(written(0)), first, second, numbers, form) == len(written(0))
    if rows:
        assert match_rows(read_only(written(1)), first, second, numbers, form) == -1
        if above and below:
            assert match_rows(read_only(written(0, switched=True)), first, second, numbers, form) == -1


@given(TIMES, st.sampled_from([NO_NUMBER, 1, 9, 98, 999_999_997]))
def test_records_are_as_many_as_counted_and_numbered(rows: list[tuple[int, int, int]], number: int) -> None:
    first, second = columns(rows)
    times = np.array([times for *_, times in rows], dtype=np.int64)
    lines, running = [], number
    for a, b, many in rows:
        for _ in range(many):
            lines.append(f"{LABELS[a]}|{'' if number < 0 else f'{running:09d}|'}{LABELS[b]}\n")
            running += 1
    expected = "".join(lines).encode()
    assert lay_records(first, second, times, number).tobytes() == expected


@given(st.lists(st.tuples(st.integers(0, 999), st.integers(0, 239), st.integers(1, 10**12)), max_size=8), st.data())
@pytest.mark.slow
def test_counts_are_read_back_and_nothing_else_is(rows: list[tuple[int, int, int]], data: st.DataObject) -> None:
    lines = []
    for code, cell, count in rows:
        levels = np.unravel_index(cell, LONG.shape)
        names = [a.labels[int(level)] for a, level in zip(LONG.attributes, levels, strict=True)]
        lines.append(f"{code:03d}|{'|'.join(names)}|{count}\n")
    text = "".join(lines).encode()
    found = parse_counts(read_only(text), len(rows), 3, LONG)
    assert found is not None
    assert list(zip(*(column.tolist() for column in found), strict=True)) == rows
    assert parse_counts(read_only(text + b"\n"), len(rows), 3, LONG) is None
    if rows:
        at = data.draw(st.integers(0, len(text) - 1))
        assert parse_counts(read_only(text[:at]), len(rows), 3, LONG) is None
        for other in (b"|", b"\n", b"x"):
            if text[at : at + 1] != other:
                assert parse_counts(read_only(text[:at] + other + text[at + 1 :]), len(rows), 3, LONG) is None
