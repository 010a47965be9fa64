"""Long work in named stages: announced as they begin, and timed."""

import time
from collections.abc import Callable

Announce = Callable[[str], None]
"""Called with the name of each stage as it begins."""


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
