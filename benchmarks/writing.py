"""How long TopDown takes to write and to check a release: `python benchmarks/writing.py DATA ... [--format parquet]`.

DATA is what `yupana synth` makes. `topdown exact pl94-2020-us` writes and checks what a run does, without the estimate.
For each stage: seconds, CPU seconds of all processes, and the most memory that they shared out among them (PSS). An
older tree is measured with its `src` in PYTHONPATH.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from watched import Took, watch

STAGES: Final = ("writing the release", "checking")
_START: Final = "import sys; from yupana.cli.main import main; sys.exit(main(sys.argv[1:]))"


def measure(data: Path, out: Path, options: list[str]) -> Mapping[str, Took]:
    """What each stage took."""
    command = [sys.executable, "-c", _START, "topdown", "exact", "pl94-2020-us", str(data), str(out), "--overwrite"]
    return watch([*command, *options]).stages


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
            stages = [took[stage] for stage in STAGES]
            cells = [f"{one.seconds:.1f} | {one.cpu:.1f} | {one.peak / 1e9:.2f}" for one in stages]
            print(f"| {data.name} | {load:.0f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
