"""Numbers as people read them."""

import math
from fractions import Fraction

from yupana.privacy.exact import Budget


def whole(value: float) -> str:
    """A count, with thousands separators."""
    return f"{round(value):,}"


def rounded(value: float, digits: int = 3) -> str:
    """A number to a few significant digits, with thousands separators and never an exponent."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "infinite"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{places}f}"


def percent(share: float, digits: int = 0) -> str:
    """A share as a percentage."""
    return f"{100 * share:,.{digits}f}%"


def at_most(share: float) -> str:
    """A share as a percentage, rounded up to a tenth: a bound must not be rounded down."""
    return f"{min(-(-share * 1000 // 1), 1000) / 10:g}%"


def power_of_ten(value: float) -> str:
    """A small number such as a delta, as 10⁻¹⁰ where it is a power of ten."""
    exponent = round(math.log10(value))
    if not math.isclose(value, 10.0**exponent):
        return f"{value:g}"
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def loss(value: Budget | float | None) -> str:
    """A privacy loss to six decimals, as the 2020 budgets are stated."""
    if value is None or (not isinstance(value, Fraction) and math.isinf(value)):
        return "infinite"
    return f"{float(value):,.6f}"


def epl(value: float | None) -> str:
    """An empirical privacy loss to three decimals, or three digits where it is small."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "infinite"
    return f"{value:.3f}" if value >= 0.1 else f"{value:.3g}"
