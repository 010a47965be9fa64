"""Loops that numpy cannot say, compiled by numba when first called and kept on disk from then on."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, ParamSpec, TypeVar

from numba import njit
from numba.core.event import Event, Listener, install_listener

_P = ParamSpec("_P")
_R = TypeVar("_R")

_PART: Final = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "no_rewrites": True}


def compiled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile a function of numbers and arrays that Python calls.

    It runs without the interpreter's lock, so threads run side by side, and a division by zero gives infinity.

    What is compiled is kept beside the source, in the user's cache folder where that cannot be written, or in the
    folder NUMBA_CACHE_DIR; several processes may fill it at once. Where none of them can be written, each process
    compiles anew. What is kept is looked up by the file of the function: after a change to one that a function of
    another file calls, delete the ``__pycache__`` folder beside them.
    """
    try:
        return njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)(function)  # type: ignore[no-any-return]
    except RuntimeError:  # no folder to keep it in
        return njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True)(function)  # type: ignore[no-any-return]


def compiled_part(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile a function that only compiled ones call; without an entry for Python it compiles in half the time."""
    return njit(nogil=True, error_model="numpy", **_PART)(function)  # type: ignore[no-any-return]


def compiled_step(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile a step of a loop into the loop itself: a call would cost as much as the step where arrays are small."""
    return njit(nogil=True, error_model="numpy", forceinline=True, **_PART)(function)  # type: ignore[no-any-return]


def is_kept(function: Callable[..., object]) -> bool:
    """Whether there is a folder that keeps a compiled function for the next process."""
    dispatcher: Any = function
    return dispatcher.stats.cache_path is not None


class _First(Listener):  # type: ignore[misc]
    """Calls a function when the first compilation begins."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell: Callable[[], None] | None = tell

    def on_start(self, event: Event) -> None:
        """Tell of the compilation, if it is the first."""
        del event
        tell, self._tell = self._tell, None
        if tell is not None:
            tell()

    def on_end(self, event: Event) -> None:
        """Do nothing."""


@contextmanager
def on_compiling(tell: Callable[[], None]) -> Iterator[None]:
    """Call a function as soon as something must be compiled, once; never where all is found on disk."""
    with install_listener("numba:compile", _First(tell)):
        yield
