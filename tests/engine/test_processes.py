"""Processes do not run the script of whoever started them, and do not outlive it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = """
import sys
from pathlib import Path
from yupana.engine.local import open_processes

print("begun", flush=True)
with open_processes(Path(sys.argv[1]), 2) as engine:
    print(*engine.map(bytes.upper, [b"a", b"b", b"c"]), flush=True)
    print(*(process.pid for process in engine.pool._processes.values()), flush=True)
    {then}
"""


def started(folder: Path, then: str) -> "subprocess.Popen[str]":
    script = folder / "script.py"
    script.write_text(SCRIPT.format(then=then))
    return subprocess.Popen([sys.executable, str(script), str(folder)], stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_a_script_without_a_guard_is_run_once(tmp_path: Path) -> None:
    out, _ = started(tmp_path, "pass").communicate(timeout=60)
    assert out.splitlines()[:2] == ["begun", "b'A' b'B' b'C'"]
    assert len(out.splitlines()) == 3


def test_processes_end_with_a_killed_one(tmp_path: Path) -> None:
    with started(tmp_path, "import time; time.sleep(60)") as process:
        assert process.stdout is not None
        pids = [process.stdout.readline() for _ in range(3)][-1].split()
        process.send_signal(signal.SIGKILL)
    assert len(pids) == 2
    ends = time.monotonic() + 10
    while any(is_running(pid) for pid in pids):
        assert time.monotonic() < ends
        time.sleep(0.05)


def is_running(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
