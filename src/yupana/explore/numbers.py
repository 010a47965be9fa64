"""Read what is typed into a field: exact numbers, or a fault that says what is wanted."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from yupana.explore.scenario import Entry, Fault
from yupana.plan.budgets import budget_for_margin
from yupana.plan.margin import Margins
from yupana.plan.measurement import Mechanism
from yupana.privacy.exact import Budget, read_exact

_LEAST: Final = Fraction(1, 10**15)
"""Smaller budgets, and larger than its inverse, are refused by every configuration: the noise would not fit."""


def positive(field: str, text: str, what: str, faults: list[Fault]) -> Fraction | None:
    """A finite number above zero."""
    try:
        value = read_exact(text)
    except ValueError:
        faults.append(Fault(field, f"{what} must be a number such as 0.25, 1e-6 or 3/8"))
        return None
    if not isinstance(value, Fraction):
        faults.append(Fault(field, f"{what} must be finite: without noise nobody is protected"))
    elif value <= 0:
        faults.append(Fault(field, f"{what} must be above 0; to leave it out, switch it off"))
    else:
        return value
    return None


def between(field: str, text: str, what: str, faults: list[Fault]) -> Fraction | None:
    """A number strictly between 0 and 1, and not so near to them that a double could not tell."""
    value = _exact_or(text, Fraction(-1))
    if isinstance(value, Fraction) and 0 < value < 1 and 0.0 < float(value) < 1.0:
        return value
    faults.append(Fault(field, f"{what} must be a number above 0 and below 1, such as 1e-10"))
    return None


def confidence_of(field: str, text: str, faults: list[Fault]) -> Fraction | None:
    """A confidence level in percent, as such."""
    value = _exact_or(text.strip().removesuffix("%"), Fraction(-1))
    if isinstance(value, Fraction) and 1 <= value <= Fraction("99.999999"):
        return value
    faults.append(Fault(field, "confidence must be a percentage from 1 to 99.999999"))
    return None


def _exact_or(text: str, other: Fraction) -> Budget:
    try:
        return read_exact(text)
    except ValueError:
        return other


def whole(field: str, text: str, what: str, low: int, high: int, faults: list[Fault]) -> int | None:
    """A whole number, ends included."""
    digits = text.strip()
    if digits.isascii() and digits.isdecimal() and len(digits) <= 9 and low <= int(digits) <= high:
        return int(digits)
    faults.append(Fault(field, f"{what} must be a whole number from {low} to {high:,}"))
    return None


def choice(field: str, text: str, choices: Mapping[str, str], faults: list[Fault]) -> str:
    """One of several keys."""
    if text not in choices:
        faults.append(Fault(field, f"must be one of {', '.join(choices)}"))
        return next(iter(choices))
    return text


MARGINS: Final[Mapping[str, str]] = {"exact": "whole, by the exact law", "bureau": "z times σ, as in 2020"}
"""How margins of error are computed, as the page says it."""


def margins_of(field: str, text: str, faults: list[Fault]) -> Margins:
    """The choice of margins."""
    return "bureau" if choice(field, text, MARGINS, faults) == "bureau" else "exact"


def budget_of(
    name: str,
    entry: Entry,
    sensitivity: Fraction,
    confidence: Fraction,
    mechanism: Mechanism,
    margins: Margins,
    faults: list[Fault],
) -> Fraction | None:
    """The budget of an entry, by itself or by its margin of error."""
    symbol = mechanism.symbol
    if entry.by == "budget":
        budget = positive(name, entry.value, symbol, faults)
    else:
        margin = positive(name, entry.value, "a margin of error", faults)
        budget = None
        if margin is not None and not _LEAST <= margin <= 1 / _LEAST:
            faults.append(Fault(name, "no noise has this margin of error: it must be between 1e-15 and 1e15"))
        elif margin is not None:
            budget = budget_for_margin(margin, sensitivity, confidence, mechanism, margins)
    if budget is not None and not _LEAST <= budget <= 1 / _LEAST:
        which = "this" if entry.by == "budget" else f"the {symbol} of this margin, {float(budget):.3g},"
        faults.append(Fault(name, f"{which} is out of reach: {symbol} must be between 1e-15 and 1e15"))
        return None
    return budget


def share(field: str, text: str, what: str, faults: list[Fault], *, zero: bool) -> Fraction | None:
    """A decimal below 1, and above 0 or, where ``zero``, at least 0. It must be one that a configuration can hold."""
    value = _exact_or(text, Fraction(-1))
    if not isinstance(value, Fraction) or not 0 <= value < 1 or (value == 0 and not zero):
        faults.append(Fault(field, f"{what} must be a number {'from' if zero else 'above'} 0 and below 1"))
        return None
    if Fraction(repr(float(value))) != value:
        faults.append(Fault(field, f"{what} must be a decimal of at most 15 digits"))
        return None
    return value
