"""Exact numbers: a decimal is the decimal it shows, a fraction is ``p/q``, a budget may be infinite."""

import math
import re
from fractions import Fraction
from typing import Final

INFINITE: Final = math.inf
"""The budget of a measurement without noise. Only synthetic data may be measured with it."""

Budget = Fraction | float
"""A privacy-loss budget: an exact rational, or `INFINITE`, the only float that ever stands for one."""

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?|[+-]?\d+/\d+", re.ASCII)


def read_exact(text: str) -> Budget:
    """Read ``0.002619``, ``1e-6``, ``293764/114921``, ``Infinity`` or ``inf`` without rounding.

    Raises
    ------
    ValueError
        If the text is no such number (``NaN`` is none), or divides by zero.
    """
    text = text.strip()
    if text in {"Infinity", "inf", "Inf"}:
        return INFINITE
    if not _NUMBER.fullmatch(text):
        raise ValueError("not an exact number such as 0.25, 1e-6, 3/8 or Infinity")
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise ValueError("a fraction with denominator zero") from None


def show_exact(number: Budget) -> str:
    """Write a number as `read_exact` reads it: ``p/q``, an integer, or ``Infinity``."""
    return str(number) if isinstance(number, Fraction) else "Infinity"
