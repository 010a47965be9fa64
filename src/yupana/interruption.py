"""What a signal that stops a run does: it interrupts the work, but no step that must be done whole."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn


@dataclass(slots=True)
class _Run:
    """What is known of the one run of this process."""

    held: int = 0
    waiting: bool = False
    stopped: bool = False
    interrupted: float | None = None
    published: dict[Path, None] = field(default_factory=dict)
    charged: dict[Path, None] = field(default_factory=dict)


_RUN: Final = _Run()


def begin() -> None:
    """Forget an earlier run of the same process."""
    _RUN.held = 0
    _RUN.waiting = _RUN.stopped = False
    _RUN.interrupted = None
    _RUN.published.clear()
    _RUN.charged.clear()


def end() -> None:
    """Let no signal come in between from here on: the process ends, and tells why."""
    _RUN.held += 1


def is_waiting() -> bool:
    """Whether a signal waits for the end of a step, which may then end early."""
    return _RUN.waiting


def stop(_signal: int, _frame: FrameType | None) -> None:
    """Handle SIGINT and SIGTERM.

    Raises
    ------
    KeyboardInterrupt
        At once, or at the end of the step that is under way. A signal that comes less than a second after one that
        interrupted is the same wish, and does not interrupt what tells of it.
    """
    _RUN.stopped = True
    if _RUN.held:
        _RUN.waiting = True
    elif _RUN.interrupted is None or time.monotonic() - _RUN.interrupted >= 1:
        _interrupt()


def _interrupt() -> NoReturn:
    _RUN.interrupted = time.monotonic()
    raise KeyboardInterrupt


@contextmanager
def whole() -> Iterator[None]:
    """Let signals wait until a step is done, such as publishing, or cleaning up after an error."""
    _RUN.held += 1
    try:
        yield
    finally:
        _RUN.held -= 1
        if _RUN.waiting and not _RUN.held:
            _RUN.waiting = False
            _interrupt()


def publish(place: Path) -> None:
    """Note that an output stands, whatever happens after."""
    _RUN.published[place] = None


def unpublish(place: Path) -> None:
    """Note that an output is to be made anew."""
    _RUN.published.pop(place, None)


def is_published(place: Path) -> bool:
    """Whether an output of this run stands."""
    return place in _RUN.published


def charge(ledger: Path) -> None:
    """Note that the run was charged to a ledger."""
    _RUN.charged[ledger] = None


def _there() -> list[Path]:
    """What was published and still stands: what lay in a folder that is made whole or not at all has gone with it."""
    return [place for place in _RUN.published if place.exists()]


def stands() -> str:
    """Tell what this run has made so far, as the end of a message; empty if nothing stands."""
    made = [f"{' and '.join(map(str, there))} had been written by then"] if (there := _there()) else []
    made += [f"the run is charged to {' and '.join(map(str, _RUN.charged))}"] if _RUN.charged else []
    return "".join(f"; {one}" for one in made)


def is_stopped() -> bool:
    """Whether a signal came: what fails after it failed by it, in whatever words a library has for that."""
    return _RUN.stopped


def words() -> str:
    """Tell what an interrupted run leaves."""
    if _there():
        return f"interrupted{stands()}"
    return f"interrupted; nothing was released{stands()}"
