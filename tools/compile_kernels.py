"""Compile the loops of TopDown once, by a run on a few made-up households, so that no later run waits for it.

numba keeps what it compiles beside the source, or in the user's cache where that cannot be written.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

YUPANA = Path(sys.executable).with_name("yupana")


def main() -> None:
    """Run both estimators on the schema of the redistricting data."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        data, out = str(folder / "census"), str(folder / "out")
        commands = [["synth", data, "--households", "300", "--states", "06,17", "--seed", "1"]]
        for estimator in ("topdown", "full-information"):
            options = ["--estimator", estimator, "--seed", "1", "--overwrite"]
            commands.append(["topdown", "run", "pl94-2020-us", data, out, *options])
        for command in commands:
            subprocess.run([str(YUPANA), *command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
