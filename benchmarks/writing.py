"""How long TopDown takes to write and to check a release: `python benchmarks/writing.py DATA ... [--format parquet]`.

DATA is what `yupana synth` makes. `topdown exact pl94-2020-us` writes and checks what a run does, without the estimate.
For each stage: seconds, CPU seconds of all processes, and the most memory that they shared out among them (PSS). An
older tree is measured with its `src` in PYTHONPATH.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Final

from described import shared_out

STAGES: Final = ("writing the release", "checking")
_START: Final = "import sys; from yupana.cli.main import main; sys.exit(main(sys.argv[1:]))"
_TICK: Final = os.sysconf("SC_CLK_TCK")
_TIMES: Final = slice(11, 15)
"""Where the line of a process has its ticks, and those of its children that have ended, behind its name."""


def cpu_seconds(pid: int) -> float:
    """What a process has used, and its children that have ended; 0 if it has ended itself."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, told[_TIMES])) / _TICK


def measure(data: Path, out: Path, options: list[str]) -> dict[str, tuple[float, float, float]]:
    """Seconds, CPU seconds and the most memory (GB) of each stage."""
    command = [sys.executable, "-c", _START, "topdown", "exact", "pl94-2020-us", str(data), str(out), "--overwrite"]
    begun: list[tuple[str, float, float]] = []
    peaks: dict[str, int] = {}
    ended = threading.Event()
    # The last thing that is asked of the process is how it ended, with what it used.
    process = subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def watch() -> None:
        while not ended.wait(0.2):
            if begun:
                stage = begun[-1][0]
                peaks[stage] = max(peaks.get(stage, 0), shared_out(process.pid))

    watching = threading.Thread(target=watch)
    watching.start()
    for line in process.stderr or ():
        stage = line.partition(": ")[2].partition(" (")[0]
        begun.append((stage, time.perf_counter(), cpu_seconds(process.pid)))
    _, status, used = os.wait4(process.pid, 0)
    begun.append(("", time.perf_counter(), used.ru_utime + used.ru_stime))
    ended.set()
    watching.join()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"failed: yupana {' '.join(command[3:])}")
    return {
        stage: (after[1] - seconds, after[2] - cpu, peaks.get(stage, 0) / 1e9)
        for (stage, seconds, cpu), after in pairwise(begun)
    }


def main() -> None:
    """Print a line for each census."""
    parser = argparse.ArgumentParser(description="How long TopDown takes to write and to check a release.")
    parser.add_argument("data", type=Path, nargs="+", help="what yupana synth made")
    parser.add_argument("--format", default="csv")
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    print("| census | load | " + " | ".join(f"{stage}, s | CPU s | GB" for stage in STAGES) + " |")
    print("|---|---|" + "---|---|---|" * len(STAGES))
    with tempfile.TemporaryDirectory() as temporary:
        for data in options.data * options.repeats:
            load = os.getloadavg()[0]
            took = measure(data, Path(temporary) / "out", ["--format", options.format])
            cells = [
                f"{value:.{digits}f}" for stage in STAGES for value, digits in zip(took[stage], (1, 1, 2), strict=True)
            ]
            print(f"| {data.name} | {load:.0f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
