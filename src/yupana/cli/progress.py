"""Progress on stderr: a line per stage, with a bar on a terminal and plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

_SECONDS = 2.0
"""How often progress within a stage is told."""


def _tell(line: str) -> None:
    # A run does not end because nobody can be told how far it is.
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)


@contextmanager
def stages(title: str, number: int | None = None) -> Iterator[Callable[[str], None]]:
    """Announce stages as they begin.

    Parameters
    ----------
    title : str
    number : int, optional
        How many stages there will be, for the bar.
    """
    console = Console(file=sys.stderr)
    if not console.is_terminal:
        began = time.perf_counter()

        def plain(stage: str) -> None:
            _tell(f"{title}: {stage} ({time.perf_counter() - began:.1f} s)")

        yield plain
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(title, total=number)
        begun = 0

        def advance(stage: str) -> None:
            nonlocal begun
            progress.update(task, description=f"{title}: {stage}", completed=begun)
            begun += 1

        yield advance
        progress.update(task, description=f"{title}: done", completed=begun, total=begun)


@contextmanager
def counting(title: str) -> Iterator[Callable[[int, int], None]]:
    """Show how many of how many are done, as a bar on a terminal and every tenth part elsewhere."""
    console = Console(file=sys.stderr)
    if not console.is_terminal:
        shown = -1

        def plain(done: int, total: int) -> None:
            nonlocal shown
            tenth = 10 * done // max(1, total)
            if tenth > shown:
                shown = tenth
                _tell(f"{title}: {done:,} of {total:,}")

        yield plain
        return
    with Progress(console=console) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def geolevels(title: str) -> Iterator[tuple[Callable[[str], None], Callable[[str, int, int], None]]]:
    """Announce stages, and within them how many geounits of a geolevel are done, with the time left for it.

    Yields
    ------
    tuple of callable
        One called with the name of a stage, one with a geolevel, the geounits done and those there are.
    """
    with stages(title) as announce:
        begun: dict[str, float] = {}
        said = 0.0

        def advance(geolevel: str, done: int, total: int) -> None:
            nonlocal said
            now = time.perf_counter()
            # The first piece of a geolevel is done when it is first heard of, so its beginning is when the last ended.
            start = begun.setdefault(geolevel, begun.get("", now))
            begun[""] = now
            if now - said < _SECONDS and done < total:
                return
            said = now
            left = (now - start) * (total - done) / max(1, done)
            announce(f"{geolevel}: {done:,} of {total:,}" + (f", about {left:.0f} s left" if done < total else ""))

        def stage(name: str) -> None:
            begun[""] = time.perf_counter()
            announce(name)

        yield stage, advance
