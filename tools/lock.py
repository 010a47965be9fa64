"""Resolve the dependencies anew and write uv.lock without the addresses of any registry.

The lock names packages, versions and hashes. Where they come from is the business of the machine that
installs them, so the addresses are dropped; `uv export --frozen`, which the Makefile uses, needs none.
"""

import re
import subprocess
import sys
from pathlib import Path

LOCK = Path(__file__).parent.parent / "uv.lock"


def without_hosts(lock: str) -> str:
    """Replace every registry by the word ``index`` and every file address by the file's name."""
    lock = re.sub(r'registry = "[^"]*"', 'registry = "index"', lock)
    return re.sub(r'url = "[^"]*/([^"/]+)"', r'url = "\1"', lock)


if __name__ == "__main__":
    LOCK.unlink(missing_ok=True)
    subprocess.run(["uv", "lock", *sys.argv[1:]], cwd=LOCK.parent, check=True)
    LOCK.write_text(without_hosts(LOCK.read_text()))
