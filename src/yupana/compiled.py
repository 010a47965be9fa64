"""Loops that numpy cannot say, compiled by numba when first called and kept on disk from then on."""

from collections.abc import Callable
from typing import TypeVar

from numba import njit

_Function = TypeVar("_Function", bound=Callable[..., object])

compiled: Callable[[_Function], _Function] = njit(cache=True, nogil=True)
"""Compile a function of numbers and arrays. It runs without the interpreter's lock, so threads run side by side.

What is kept on disk is looked up by the file of the outermost function: after a change to one that a function of
another file calls, delete the ``__pycache__`` folder beside them.
"""
