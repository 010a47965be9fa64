"""Installs the wheel and the source archive in `dist/` without a compiler, each into an empty environment, and uses it.

`python tools/trial.py`. On Windows, where files have no locks, no release is made.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
WITHOUT_COMPILER: Final = {"CC": "no-compiler", "CXX": "no-compiler"}
READS: Final = ("--version", "phsafe plan s-dhc-2020-us", "docs tables")
WRITES: Final = (
    "synth census --households 200 --seed 1",
    "phsafe init config.toml",
    "phsafe run config.toml census release",
    "check release",
    "atlas release --to atlas",
)


def tried(archive: Path) -> None:
    """Install one archive, and make a release with it."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(Path(folder) / "env", with_pip=True)
        programs = Path(folder) / "env" / ("Scripts" if os.name == "nt" else "bin")
        options = ["--quiet", "--disable-pip-version-check", "--only-binary", ":all:", "--no-binary", "yupana"]
        install = [str(programs / "python"), "-m", "pip", "install", *options, str(archive)]
        subprocess.run(install, check=True, env=os.environ | WITHOUT_COMPILER)
        for words in (*READS, *(() if os.name == "nt" else WRITES)):
            print(f"{archive.name}: yupana {words}", flush=True)
            subprocess.run([programs / "yupana", *words.split()], check=True, cwd=folder, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    archives = [*(ROOT / "dist").glob("*.whl"), *(ROOT / "dist").glob("*.tar.gz")]
    if len(archives) != 2:
        sys.exit("dist/ holds no wheel and source archive; `make dist` makes them")
    for archive in archives:
        tried(archive)
