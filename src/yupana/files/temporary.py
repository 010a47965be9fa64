"""Where temporary files go, and the details of a fault: where the user says, and nowhere else."""

import os
import tempfile
import traceback
from pathlib import Path


def temporary_folder() -> Path:
    """The folder that TMPDIR names, or else that of the system.

    What is put there may be confidential, so no other takes its place where the one that was named cannot be used.
    """
    named = os.environ.get("TMPDIR")
    return Path(named).absolute() if named else Path(tempfile.gettempdir())


def keep_fault(error: BaseException) -> str:
    """Write the traceback of an error to a private file, and say where, in a sentence."""
    try:
        descriptor, name = tempfile.mkstemp(prefix="yupana-fault-", suffix=".confidential.log", dir=temporary_folder())
        with os.fdopen(descriptor, "w") as file:
            traceback.print_exception(error, file=file)
    except OSError as refused:
        return f"Details could not be written to {temporary_folder()}: {refused.strerror}."
    return f"Details are in {name}, which may hold confidential values."
