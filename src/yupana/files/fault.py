"""Where the details of a fault go: a traceback may quote a record, so they go to a private file."""

import os
import tempfile
import traceback

from yupana.files.temporary import temporary_folder


def keep_fault(error: BaseException) -> str:
    """Write the traceback of an error to a private file, and say where, in a sentence."""
    try:
        descriptor, name = tempfile.mkstemp(prefix="yupana-fault-", suffix=".confidential.log", dir=temporary_folder())
        with os.fdopen(descriptor, "w") as file:
            traceback.print_exception(error, file=file)
    except OSError as refused:
        return f"Details could not be written to {temporary_folder()}: {refused.strerror}."
    return f"Details are in {name}, which may hold confidential values."
