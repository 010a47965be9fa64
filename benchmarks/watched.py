"""A command watched from outside: seconds, CPU seconds, and the peak of what its process and all below it hold."""

import os
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

_EVERY = 0.1
"""Seconds between two looks."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What a command took.

    Attributes
    ----------
    seconds, cpu : float
        Of the clock, and of all processors together.
    peak : int
        Bytes: the largest sum of proportional set sizes of the process and those it started.
    peaks : dict of str to int
        The same by stage, the part of a line on stderr before its second colon.
    error : str
        What it wrote on stderr.
    status : int
    """

    seconds: float
    cpu: float
    peak: int
    peaks: dict[str, int]
    error: str
    status: int


def watch(command: list[str], env: dict[str, str] | None = None) -> Watched:
    """Run a command and look at its memory ten times a second."""
    began = time.perf_counter()
    lines: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=env) as process:
        reader = threading.Thread(target=lambda: lines.extend(iter(process.stderr.readline, "")))  # type: ignore[union-attr]
        reader.start()
        peaks: dict[str, int] = {}
        used: dict[int, float] = {}
        while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0:
            stage = ": ".join(lines[-1].split(": ")[1:2]).split(" (")[0].strip() if lines else ""
            peaks[stage] = max(peaks.get(stage, 0), proportional(process.pid))
            used |= {one: found for one in _below(process.pid) if (found := _used(one))}
            time.sleep(_EVERY)
        process.returncode = os.waitstatus_to_exitcode(ended[1])
        reader.join()
    # Nobody waits for a Java machine, so that the system does not add up what it used.
    cpu = max(ended[2].ru_utime + ended[2].ru_stime, sum(used.values()))
    seconds = time.perf_counter() - began
    return Watched(seconds, cpu, max(peaks.values(), default=0), peaks, "".join(lines), process.returncode)


def proportional(pid: int) -> int:
    """Bytes that a process and all that it started hold, pages that several share counted once."""
    total = 0
    for one in _below(pid):
        try:
            told = Path(f"/proc/{one}/smaps_rollup").read_text()
        except OSError:
            continue  # it has ended
        total += sum(int(line.split()[1]) * 1024 for line in told.splitlines() if line.startswith("Pss:"))
    return total


def _used(pid: int) -> float:
    """Seconds that a process has used a processor itself."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")


def _below(pid: int) -> list[int]:
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    except OSError:
        return []
    return [pid, *(one for child in children for one in _below(child))]
