"""When a signal interrupts."""

import signal
import time
from pathlib import Path

import pytest

from yupana import interruption


def test_two_signals_at_once_interrupt_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    with pytest.raises(KeyboardInterrupt):
        interruption.stop(signal.SIGINT, None)
    clock[0] += 0.9
    interruption.stop(signal.SIGTERM, None)
    clock[0] += 0.2
    with pytest.raises(KeyboardInterrupt):
        interruption.stop(signal.SIGINT, None)


def test_a_signal_waits_for_the_end_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    done = []
    with pytest.raises(KeyboardInterrupt), interruption.whole():  # noqa: PT012
        interruption.stop(signal.SIGINT, None)
        interruption.stop(signal.SIGTERM, None)
        assert interruption.is_waiting()
        done.append("step")
    assert done == ["step"]
    assert not interruption.is_waiting()
    interruption.stop(signal.SIGTERM, None)


def test_what_went_with_its_folder_is_not_said_to_stand(tmp_path: Path) -> None:
    interruption.begin()
    interruption.publish(tmp_path / "gone")
    assert interruption.words() == "interrupted; nothing was released"
    interruption.publish(tmp_path)
    assert interruption.words() == f"interrupted; {tmp_path} had been written by then"
    interruption.begin()
