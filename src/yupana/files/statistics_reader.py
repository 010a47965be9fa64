"""Read files of SPSS, Stata and SAS by pyreadstat, in a process of its own that a damaged file may crash.

The file is a script, too, which imports nothing of yupana.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

Read = Callable[..., tuple[dict[str, Any], SimpleNamespace]]
"""Reads columns by name, and what the file says of them, with options of pyreadstat."""


class NoLibraryError(Exception):
    """pyreadstat is not installed."""


class UnreadableError(Exception):
    """The library cannot read a file. What it says of that may quote records of it, but not if it read none."""


@contextmanager
def reading(function: str, path: Path) -> Iterator[Read]:
    """Start a process that reads a file by a function of pyreadstat, as often as it is asked to.

    Raises
    ------
    NoLibraryError, UnreadableError
        The latter where it reads.
    """
    if find_spec("pyreadstat") is None:
        raise NoLibraryError
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(  # noqa: S603 (our own file)
        [sys.executable, "-P", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=environment,
    ) as process:  # fmt: skip

        def read(**options: Any) -> tuple[dict[str, Any], SimpleNamespace]:  # noqa: ANN401 (of a library)
            assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 (they are pipes)
            try:
                pickle.dump((function, str(path), options), process.stdin)
                process.stdin.flush()
                columns, told, wrong = pickle.load(process.stdout)  # noqa: S301 (of our process)
            except (OSError, EOFError, pickle.UnpicklingError):
                raise UnreadableError("the library crashed") from None
            if wrong is not None:
                raise MemoryError if wrong == MemoryError.__name__ else UnreadableError(wrong)
            return columns, SimpleNamespace(**told)

        try:
            yield read
        finally:
            process.kill()


def _serve() -> None:
    """Answer on the standard output stream, on which the library then prints no more."""
    import pyreadstat  # noqa: PLC0415 (of an extra)

    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    while True:
        try:
            function, path, options = pickle.load(sys.stdin.buffer)  # noqa: S301 (of the process that began this one)
        except EOFError:
            return
        try:
            columns, told = getattr(pyreadstat, function)(path, **options)
            answer: tuple[Any, ...] = (columns, vars(told), None)
        except MemoryError:
            answer = (None, None, MemoryError.__name__)
        except Exception as error:  # noqa: BLE001 (whatever a library raises)
            answer = (None, None, str(error))
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    _serve()
