"""Where temporary files go: where the user says, and nowhere else."""

import os
import tempfile
from pathlib import Path


def temporary_folder() -> Path:
    """The folder that TMPDIR names, or else that of the system.

    What is put there may be confidential, so no other takes its place where the one that was named cannot be used.
    """
    named = os.environ.get("TMPDIR")
    return Path(named).absolute() if named else Path(tempfile.gettempdir())
