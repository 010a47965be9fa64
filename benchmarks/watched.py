"""A command watched from outside: seconds, CPU seconds, and the peak of what its process and all below it hold."""

import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

_EVERY: Final = 0.1
"""Seconds between two looks."""

_REST: Final = 40
"""How many times as long as a look the time between two is at least: the system walks all pages of a process for one,
and the process waits where it asks for others."""

_PARTS: Final = 2
_TICK: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Took:
    """What a command, or a stage of it, took.

    Attributes
    ----------
    seconds, cpu : float
        Of the clock, and of all processors together.
    peak : int
        Bytes: the largest sum of proportional set sizes of the process and those it started.
    """

    seconds: float
    cpu: float
    peak: int


@dataclass(frozen=True, slots=True)
class Watched:
    """What a command took.

    Attributes
    ----------
    whole : Took
    stages : mapping of str to Took
        By what stands on stderr in a line such as ``topdown run: checking (14.6 s)``.
    """

    whole: Took
    stages: Mapping[str, Took]


def watch(command: Sequence[str]) -> Watched:
    """Run a command and look at its memory, ten times a second or as often as looking takes a fortieth of the time.

    Raises
    ------
    SystemExit
        If it fails, with what it wrote on stderr and its peak.
    """
    began = time.perf_counter()
    lines: list[str] = []
    used: dict[int, float] = {}
    looks = [(began, 0.0, 0, "starting")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        reader = threading.Thread(target=lambda: lines.extend(process.stderr or ()))
        reader.start()
        while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0:
            look = time.perf_counter()
            tree = _below(process.pid)
            used |= {one: found for one in tree if (found := _used(one))}
            looks.append((look, sum(used.values()), sum(map(_proportional, tree)), _stage(lines)))
            time.sleep(max(_EVERY, _REST * (time.perf_counter() - look)))
        process.returncode = os.waitstatus_to_exitcode(ended[1])
        reader.join()
    if process.returncode:
        raise SystemExit("".join([*lines, f"peak {max(peak for _, _, peak, _ in looks) / 1e9:.2f} GB\n"]))
    # Nobody waits for a Java machine, so that the system does not add up what it used.
    cpu = max(ended[2].ru_utime + ended[2].ru_stime, sum(used.values()))
    looks.append((time.perf_counter(), cpu, 0, looks[-1][-1]))
    stages: dict[str, Took] = {}
    for before, after in pairwise(looks):
        so_far = stages.get(after[-1], Took(0, 0, 0))
        seconds, more = after[0] - before[0], after[1] - before[1]
        stages[after[-1]] = Took(so_far.seconds + seconds, so_far.cpu + more, max(so_far.peak, after[2]))
    whole = Took(looks[-1][0] - began, cpu, max(peak for _, _, peak, _ in looks))
    return Watched(whole, stages)


def _stage(lines: Sequence[str]) -> str:
    """The stage under way; how far it is stands in lines of two colons."""
    parts = (line.split(" (")[0].split(": ") for line in reversed(lines))
    return next((found[1] for found in parts if len(found) == _PARTS), "starting")


def _proportional(pid: int) -> int:
    """Bytes that a process holds, pages that several share counted in part."""
    try:
        told = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0  # it has ended
    return sum(int(line.split()[1]) * 1024 for line in told.splitlines() if line.startswith("Pss:"))


def _used(pid: int) -> float:
    """Seconds that a process has used a processor itself."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(told[11]) + int(told[12])) / _TICK


def _below(pid: int) -> list[int]:
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    except OSError:
        return []
    return [pid, *(one for child in children for one in _below(child))]
