"""How long the program takes to start, beside an interpreter that does nothing: `python benchmarks/startup.py`."""

import subprocess
import sys
import time
from pathlib import Path

TIMES = 9
COMMAND = str(Path(sys.executable).parent / "yupana")
CASES = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import yupana": [sys.executable, "-c", "import yupana"],
    "yupana --version": [COMMAND, "--version"],
    "yupana --help": [COMMAND, "--help"],
    "yupana phsafe --help": [COMMAND, "phsafe", "--help"],
    "yupana account": [COMMAND, "account", "--rho", "1"],
}


def least(command: list[str]) -> float:
    """The least of several times, in seconds: what the machine does beside only adds."""
    found = []
    for _ in range(TIMES):
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        found.append(time.perf_counter() - began)
    return min(found)


if __name__ == "__main__":
    nothing = 0.0
    print(f"{'':24}{'seconds':>9}{'beyond':>9}")
    for name, command in CASES.items():
        seconds = least(command)
        nothing = nothing or seconds
        print(f"{name:24}{seconds:9.3f}{seconds - nothing:9.3f}")
