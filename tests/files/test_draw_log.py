"""Draws on disk: one of each stretch, whenever a run dies, and none that was not sealed."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yupana.errors import OutputError
from yupana.files import draw_log
from yupana.files.draw_log import DrawLog, DrawnStretch
from yupana.files.regular import take_room

NUMBERS = st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9), max_size=9)


class Dead(BaseException):
    """The process is gone."""


def new(folder: Path) -> Path:
    path = folder / "draws"
    DrawLog.create(path)
    return path


def stretches(drawn: list[list[int]]) -> list[DrawnStretch]:
    """Of two measurements in turn, one group after another."""
    return [DrawnStretch(f"m{n % 2}/é", n // 2, 1, len(values)) for n, values in enumerate(drawn)]


def draw_of(values: list[int]) -> Callable[[], np.ndarray]:
    return lambda: np.array(values, dtype=np.int64)


def take_all(path: Path, drawn: list[list[int]]) -> None:
    with DrawLog(path) as log:
        for stretch, values in zip(stretches(drawn), drawn, strict=True):
            assert log.take(stretch, draw_of(values)).tolist() == values


def nothing() -> np.ndarray:
    raise AssertionError("drawn again")


@settings(max_examples=50)
@given(st.lists(NUMBERS, max_size=6))
@pytest.mark.slow
def test_what_was_drawn_is_taken_again(tmp_path_factory: pytest.TempPathFactory, drawn: list[list[int]]) -> None:
    path = new(tmp_path_factory.mktemp("log"))
    with DrawLog(path) as log:
        for stretch, values in zip(stretches(drawn), drawn, strict=True):
            assert log.take(stretch, draw_of(values)).tolist() == values
            if values:
                assert log.take(stretch, nothing).tolist() == values
    with DrawLog(path) as log:
        assert log.stretches == tuple(one for one in stretches(drawn) if one.values)
        for stretch, values in zip(stretches(drawn), drawn, strict=True):
            found = log.take(stretch, nothing if values else draw_of([]))
            assert (found.dtype, found.tolist()) == (np.int64, values)


@settings(max_examples=50)
@given(st.data())
@pytest.mark.slow
def test_a_death_at_any_byte_keeps_what_was_sealed(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """A process that is killed leaves a prefix of its writes, one of them in part. A seal is written whole or not."""
    path = new(tmp_path_factory.mktemp("log"))
    drawn = data.draw(st.lists(NUMBERS.filter(len), min_size=1, max_size=4))
    death = data.draw(st.integers(1, 3 * len(drawn)), "write")
    write, writes = DrawLog._write, 0

    def dying(self: DrawLog, start: int, content: bytes) -> None:
        nonlocal writes
        writes += 1
        if writes == death:
            parts = st.sampled_from([0, len(content)]) if writes % 3 == 0 else st.integers(0, len(content))
            write(self, start, content[: data.draw(parts, "bytes")])
            raise Dead
        write(self, start, content)

    def dying_of_room(descriptor: int, start: int, size: int) -> None:
        nonlocal writes
        writes += 1
        dies = writes == death
        take_room(descriptor, start, data.draw(st.integers(1, size), "room") if dies else size)
        if dies:
            raise Dead

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DrawLog, "_write", dying)
        patch.setattr(draw_log, "take_room", dying_of_room)
        with pytest.raises(Dead):
            take_all(path, drawn)
    with DrawLog(path) as log:
        kept = len(log.stretches)
        assert kept in {(death - 1) // 3, death // 3}
        size = path.stat().st_size
        for stretch, values in zip(stretches(drawn)[:kept], drawn, strict=False):
            assert log.take(stretch, nothing).tolist() == values
        assert path.stat().st_size == size
        for stretch, values in list(zip(stretches(drawn), drawn, strict=True))[kept:]:
            other = [~value for value in values]
            assert log.take(stretch, draw_of(other)).tolist() == other
    with DrawLog(path) as log:
        assert log.stretches == tuple(stretches(drawn))


def test_every_damage_is_refused(tmp_path: Path) -> None:
    path, drawn = new(tmp_path), [[1, -2, 70000], [5]]
    take_all(path, drawn)
    content = path.read_bytes()
    for place in range(len(content)):
        for damage in (content[:place], content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]):
            path.write_bytes(damage)
            with pytest.raises(OutputError, match="is damaged, so the run cannot be resumed"):
                DrawLog(path)
            assert path.read_bytes() == damage
    path.write_bytes(content)
    with DrawLog(path) as log:
        assert len(log.stretches) == 2


def test_another_stretch_of_the_same_groups_is_refused(tmp_path: Path) -> None:
    with DrawLog(new(tmp_path)) as log:
        log.take(DrawnStretch("m", 0, 2, 3), draw_of([1, 2, 3]))
        strange = [(0, 3, 3), (0, 2, 2), (1, 1, 1), (1, 5, 5)]
        for other in (DrawnStretch("m", *numbers) for numbers in strange):
            with pytest.raises(OutputError, match="damaged"):
                log.take(other, nothing)
        assert log.take(DrawnStretch("m", 2, 1, 1), draw_of([7])).tolist() == [7]
        assert log.take(DrawnStretch("n", 1, 1, 1), draw_of([7])).tolist() == [7]


def test_a_seed_that_draws_something_else_is_refused(tmp_path: Path) -> None:
    path, stretch = new(tmp_path), DrawnStretch("m", 0, 2, 2)
    with DrawLog(path, repeatable=True) as log:
        log.take(stretch, draw_of([1, 2]))
    with DrawLog(path, repeatable=True) as log:
        assert log.take(stretch, draw_of([1, 2])).tolist() == [1, 2]
        with pytest.raises(OutputError, match="damaged"):
            log.take(stretch, draw_of([1, 3]))


def test_room_is_taken_before_anything_is_drawn(tmp_path: Path) -> None:
    """Draws that need more bytes must not die of a full disk where others would not."""
    path = new(tmp_path)
    sizes = []

    def draw() -> np.ndarray:
        sizes.append(path.stat().st_size)
        return np.array([2**62, -(2**62)] * 50)

    with DrawLog(path) as log:
        log.take(DrawnStretch("m", 0, 100, 100), draw)
        assert path.stat().st_size <= sizes[0]
        log.take(DrawnStretch("m", 100, 100, 100), lambda: np.ones(100, dtype=np.int64))
    assert path.stat().st_size < 2 * sizes[0] - 500


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "draws"
    for make in (path.mkdir, lambda: path.symlink_to(new(tmp_path / "other"))):
        (tmp_path / "other").mkdir(exist_ok=True)
        make()
        with pytest.raises(OutputError, match="damaged"):
            DrawLog(path)
        path.unlink() if path.is_symlink() else path.rmdir()
    with pytest.raises(OutputError, match="damaged"):
        DrawLog(path)
