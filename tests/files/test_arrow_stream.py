"""Arrays reach the database as they are, part after part, and what keeps a part from being made is told."""

import gc
import os
import signal
import time
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yupana import interruption
from yupana.arrays import Ints
from yupana.files.arrow_stream import ArrowParts, Column, TextColumn, stream_columns
from yupana.files.database import open_database
from yupana.release.lines import texts
from yupana.release.tables import write_parts

TEXTS = ("", "ä", "long text, in no way short", "0", "7|8")
ROWS = st.lists(
    st.lists(st.tuples(st.integers(0, 4), st.integers(-(2**62), 2**62), st.floats(allow_nan=False)), max_size=5),
    min_size=1,
    max_size=4,
)


def part_of(rows: list[tuple[int, int, float]]) -> dict[str, Column]:
    at, whole, real = zip(*rows, strict=True) if rows else ((), (), ())
    texts_of = TextColumn(texts(TEXTS), np.array(at, dtype=np.int64))
    return {"ü": texts_of, "whole": np.array(whole, dtype=np.int64), "real": np.array(real, dtype=np.float64)}


@settings(max_examples=30)
@given(ROWS)
@pytest.mark.thorough
def test_rows_come_as_they_are(parts: list[list[tuple[int, int, float]]]) -> None:
    with duckdb.connect() as db:
        db.register("parts", ArrowParts(map(part_of, parts)))
        found = db.execute("FROM parts")
        assert found.fetchall() == [(TEXTS[at], whole, real) for rows in parts for at, whole, real in rows]


def test_columns_are_told_before_they_are_read() -> None:
    capsule = ArrowParts([part_of([(1, 2, 3.0)])]).__arrow_c_stream__()
    assert stream_columns(capsule) == (("ü", "l"), ("whole", "l"), ("real", "g"))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.slow
def test_order_stays_and_few_parts_are_held(ending: str, tmp_path: Path) -> None:
    alive: list[weakref.ref[Ints]] = []
    most, size = 0, 5_000

    def parts() -> Iterator[Mapping[str, Column]]:
        nonlocal most
        for first in range(0, 100 * size, size):
            number = np.arange(first, first + size)
            alive.append(weakref.ref(number))
            yield {"code": TextColumn(texts(map(str, range(size))), number - first), "number": number}
            del number
            most = max(most, sum(one() is not None for one in alive))

    path = tmp_path / f"table.{ending}"
    with open_database() as db:
        write_parts(db, path, parts())
    read = duckdb.read_csv(str(path), sep="|") if ending == "csv" else duckdb.read_parquet(str(path))
    expected = [(number % size, number) for number in range(100 * size)]
    assert [(int(code), number) for code, number in read.fetchall()] == expected
    gc.collect()
    assert most < 30
    assert not any(one() is not None for one in alive)


@pytest.mark.parametrize("fault", [ValueError, KeyboardInterrupt, MemoryError])
def test_a_part_that_cannot_be_made_ends_the_writing(fault: type[BaseException], tmp_path: Path) -> None:
    def parts() -> Iterator[Mapping[str, Column]]:
        yield {"number": np.arange(5)}
        raise fault

    with pytest.raises(fault), open_database() as db:
        write_parts(db, tmp_path / "table.parquet", parts())


def test_a_place_that_cannot_be_written_ends_in_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "table.parquet").mkdir()
    with open_database() as db, pytest.raises(OSError, match="disk may be full"):
        write_parts(db, tmp_path / "table.parquet", [{"number": np.arange(5)}])


def test_a_signal_while_rows_are_written_ends_them(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, interruption.stop)
    interruption.begin()
    seen = []

    def parts() -> Iterator[dict[str, Column]]:
        for number in range(100):
            seen.append(number)
            if number == 1:
                os.kill(os.getpid(), signal.SIGINT)
            # The database asks in threads of its own, and Python handles signals in the main one.
            time.sleep(0.05)
            yield {"n": np.arange(3)}

    try:
        with open_database() as db, pytest.raises(KeyboardInterrupt):
            write_parts(db, tmp_path / "rows.csv", parts())
    finally:
        interruption.begin()
        signal.signal(signal.SIGINT, before)
    assert len(seen) < 100
