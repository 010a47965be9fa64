"""Long work in named stages: announced as they begin, timed, and told to whoever listens."""

import html
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

Announce = Callable[[str], None]
"""Called with the name of each stage as it begins."""


class Progress(Protocol):
    """Called with a stage that begins; or with a part of one, how much of it is done, and how much there is."""

    def __call__(self, stage: str, done: int = 0, total: int = 0, /) -> None:
        """Tell it."""


def silent(*_: object) -> None:
    """Tell nobody."""


def told(items: Iterable[T], part: str, total: int, progress: Progress) -> Iterator[T]:
    """The items, each told as one of so many when it is there."""
    progress(part, 0, total)
    for done, item in enumerate(items, 1):
        progress(part, done, total)
        yield item


class Stopwatch:
    """Announces stages and keeps how long each took, in seconds."""

    def __init__(self, announce: Announce) -> None:
        self._announce = announce
        self._seconds: dict[str, float] = {}
        self._since = time.perf_counter()
        self._stage: str | None = None

    def start(self, stage: str) -> None:
        """End the stage under way, if any, and begin the next."""
        self.stop()
        self._stage, self._since = stage, time.perf_counter()
        self._announce(stage)

    def stop(self) -> dict[str, float]:
        """End the stage under way and return the seconds of all stages so far."""
        if self._stage is not None:
            self._seconds[self._stage] = round(time.perf_counter() - self._since, 3)
            self._stage = None
        return dict(self._seconds)

    def within(self, part: str) -> Announce:
        """Announce the stages of a part of the work under its name."""
        return lambda stage: self.start(f"{part}: {stage}")


@dataclass(frozen=True, slots=True)
class Step:
    """How far long work is; ``str`` of it is a line for people.

    Attributes
    ----------
    stage : str
        What is under way: a stage, or a geolevel within one.
    done, total : int
        How many of how many parts of the stage are done, such as geounits; both 0 where it has no parts.
    """

    stage: str
    done: int = 0
    total: int = 0

    def __str__(self) -> str:
        return f"{self.stage}: {self.done:,} of {self.total:,}" if self.total else self.stage


Listener = Callable[[Step], None]
"""Called with each step of long work. What it raises ends the work as any error does."""


@contextmanager
def listening(progress: Listener | bool, title: str) -> Iterator[Progress]:  # noqa: FBT001 (as users give it)
    """Tell steps to whoever listens: to a callable, with True to a bar, else to nobody."""
    listener = progress if callable(progress) else None
    bar = _bar(title) if progress and listener is None else nullcontext(listener or silent)
    with bar as show:
        yield lambda stage, done=0, total=0: show(Step(stage, done, total))


@contextmanager
def _bar(title: str) -> Iterator[Listener]:
    """Show steps as a bar in a notebook and on a terminal, and elsewhere as lines on stderr."""
    if (display := _notebook()) is not None:
        shown = display.display(display.HTML(html.escape(title)), display_id=True)
        yield lambda step: shown.update(display.HTML(_as_html(title, step)))
        shown.update(display.HTML(html.escape(f"{title}: done")))
    elif sys.stderr is not None and sys.stderr.isatty():
        with _terminal(title) as show:
            yield show
    else:
        yield _Lines(title).tell


@contextmanager
def _terminal(title: str) -> Iterator[Listener]:
    from rich.console import Console  # noqa: PLC0415 (only who shows a bar needs it)
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(file=sys.stderr)) as shown:
        task, pace = shown.add_task(title, total=None), _Pace()
        yield lambda step: shown.update(
            task,
            description=f"{title}: {step.stage}{pace.left(step)}",
            completed=step.done,
            total=step.total or None,
        )
        shown.update(task, description=f"{title}: done", completed=1, total=1)


class _Pace:
    """How long the parts of a stage that are still to be done will take."""

    def __init__(self) -> None:
        self._stage = ""
        self._since = self._last = time.perf_counter()

    def left(self, step: Step) -> str:
        """Tell it in words; empty before a first part was done, and after the last."""
        now = time.perf_counter()
        if step.stage != self._stage:
            # The first part of a stage is done when it is first heard of: it began when the stage before it ended.
            self._stage, self._since = step.stage, self._last
        self._last = now
        if not 0 < step.done < step.total:
            return ""
        return f", about {(now - self._since) * (step.total - step.done) / step.done:.0f} s left"


class _Lines:
    """A line on stderr as each stage begins, and one every two seconds while its parts are done."""

    def __init__(self, title: str) -> None:
        self._title, self._pace = title, _Pace()
        self._began = self._said = time.perf_counter()

    def tell(self, step: Step) -> None:
        """Print a line, unless one of the same stage was printed just now."""
        left, now = self._pace.left(step), time.perf_counter()
        if left and now - self._said < _SECONDS:
            return
        self._said = now
        # Work does not end because nobody can be told how far it is.
        with suppress(OSError):
            print(f"{self._title}: {step}{left} ({now - self._began:.1f} s)", file=sys.stderr, flush=True)  # noqa: T201


_SECONDS = 2.0
"""How often parts of a stage are told."""


def _notebook() -> Any | None:  # noqa: ANN401 (a module of IPython, which need not be there)
    """The module that shows things in a notebook, if this is one."""
    if (ipython := sys.modules.get("IPython")) is None:
        return None
    shell = ipython.get_ipython()
    return ipython.display if shell is not None and "IPKernelApp" in shell.config else None


def _as_html(title: str, step: Step) -> str:
    bar = f'<progress max="{step.total}" value="{step.done}"></progress> ' if step.total else "<progress></progress> "
    return bar + html.escape(f"{title}: {step}")
