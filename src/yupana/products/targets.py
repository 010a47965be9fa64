"""The question of `plan --targets`: which budgets meet margins of error, or spend a total equally. Public."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Final

from yupana.errors import ConfigError
from yupana.files.document import Number, check_keys, read_document, refuse
from yupana.plan.budgets import Need, equal_errors, least_budgets
from yupana.plan.margin import Margins
from yupana.plan.measurement import Mechanism
from yupana.privacy.exact import INFINITE, Budget, read_exact

_LEAST: Final = Fraction(1, 10**6)
_MOST: Final = Fraction(10**12)
"""Margins, sizes and totals beyond are slips of the pen: no noise of use has them."""

_MOST_DECIMALS: Final = 15


@dataclass(frozen=True, slots=True)
class Question:
    """Either margins of error, or a total with sizes.

    Attributes
    ----------
    margins : mapping of entry to Fraction
        The largest margin of error of a count that the entry pays for. Entries without one keep their budget.
    total : Fraction or None
        What all budgets together may cost, those that are kept included; of each pass, where a product has passes.
    sizes : mapping of entry to Fraction
        What the margin of error of each entry is divided by. Divided by a weight, a size makes an error count more.
    decimals : int or None
        To how many digits after the point budgets are rounded: up for margins that are exact; to the nearest for those
        of the Bureau, as in 2020, so that they may be missed by as much; down for a total, which is kept.
    """

    margins: Mapping[str, Fraction] = field(default_factory=dict)
    total: Fraction | None = None
    sizes: Mapping[str, Fraction] = field(default_factory=dict)
    decimals: int | None = None


Needs = Callable[[Mapping[str, Fraction]], Iterable[Need]]
"""What margins of error by entry ask of the budgets of a product."""


def answer(
    question: Question,
    budgets: Mapping[str, Budget],
    needs: Needs,
    confidence: Fraction,
    mechanism: Mechanism,
    pass_of: Callable[[str], str] = lambda _: "",
    margins: Margins = "exact",
) -> dict[str, Budget]:
    """All budgets of a configuration, with the least that do what is asked.

    Parameters
    ----------
    question : Question
    budgets : mapping of entry to Fraction or INFINITE
        As they are; the total is their sum, or the largest of the sums of passes.
    needs : callable
    confidence : Fraction
        Of the margins.
    mechanism : Mechanism
    pass_of : callable, optional
        The pass of an entry. Passes protect different people, and each may spend the total.
    margins : "exact" or "bureau"
        How margins of error are computed.

    Raises
    ------
    ConfigError
        If the total is spent already on entries without a size.
    """
    if question.total is None:
        found = least_budgets(needs(question.margins), confidence, mechanism, margins)
        rounded = _nearest if margins == "bureau" else _up
        return {**budgets, **{name: rounded(budget, question.decimals) for name, budget in found.items()}}
    changed: dict[str, Budget] = {}
    for own in dict.fromkeys(pass_of(name) for name in question.sizes):
        sizes = {name: size for name, size in question.sizes.items() if pass_of(name) == own}
        kept = sum((b for name, b in budgets.items() if pass_of(name) == own and name not in sizes), Fraction(0))
        if not isinstance(kept, Fraction) or kept >= question.total:
            spent = f"{float(kept):g}" if isinstance(kept, Fraction) else "an infinite budget"
            raise ConfigError(
                f"total: entries without a size keep {spent}, which leaves nothing; give them sizes, or budgets of 0"
            )
        found = dict(equal_errors(needs(sizes), question.total - kept, mechanism).budgets)
        changed |= {name: _down(budget, question.decimals) for name, budget in found.items()}
    return {**budgets, **changed}


def _nearest(budget: Fraction, decimals: int | None) -> Fraction:
    """The nearest, but never 0, which would leave the count out."""
    if decimals is None:
        return budget
    return max(round(budget, decimals), Fraction(1, 10**decimals))


def _up(budget: Fraction, decimals: int | None) -> Fraction:
    return budget if decimals is None else Fraction(math.ceil(budget * 10**decimals), 10**decimals)


def _down(budget: Fraction, decimals: int | None) -> Fraction:
    if decimals is None:
        return budget
    down = Fraction(budget * 10**decimals // 1, 10**decimals)
    if not down:
        raise ConfigError(f"decimals: a budget of {float(budget):.3g} would be rounded down to 0; use more digits")
    return down


def read_question(path: Path, budgets: Mapping[str, Budget]) -> Question:
    """Read a file of targets, JSON.

    ``{"margins": {"PH1_num/usa_*": 500}}`` or ``{"total": "1.25", "sizes": {...}, "weights": {...}}``, each with
    ``"decimals"`` where budgets are to be rounded.

    Parameters
    ----------
    path : Path
    budgets : mapping of entry to Fraction or INFINITE
        The entries there are. One of budget 0 is not measured, and may be given a margin or a size like others.

    Raises
    ------
    ConfigError
        Naming the file, the key and what is wrong with it. All faults are named at once.
    """
    document, faults = read_document(path)
    if not isinstance(document, dict) or ("margins" in document) == ("total" in document):
        raise refuse(path, [*faults, 'must be an object with either "margins", or "total" and "sizes"'])
    if "margins" in document:
        check_keys("", document, ("margins",), faults, optional=("decimals",))
    else:
        check_keys("", document, ("total", "sizes"), faults, optional=("weights", "decimals"))
    margins, sizes, weights = (
        _by_entry(key, document.get(key, {}), budgets, faults) for key in ("margins", "sizes", "weights")
    )
    faults += [f"weights.{name}: has no size" for name in weights if name not in sizes]
    total = _positive("total", document["total"], faults) if "total" in document else None
    decimals = _decimals(document["decimals"], faults) if "decimals" in document else None
    for key, found in (("margins", margins), ("sizes", sizes)):
        if key in document and not found and not faults:
            faults.append(f"{key}: names no entry, so there is nothing to solve")
    if faults:
        raise refuse(path, faults)
    weighted = {name: size / weights.get(name, Fraction(1)) for name, size in sizes.items()}
    return Question(margins, total, weighted, decimals)


def _by_entry(key: str, value: object, budgets: Mapping[str, Budget], faults: list[str]) -> dict[str, Fraction]:
    if not isinstance(value, dict):
        faults.append(f"{key}: must be an object of numbers by entry")
        return {}
    found = {}
    for name, number in value.items():
        if name not in budgets:
            some = ", ".join(list(budgets)[:3])
            faults.append(f"{key}: {name!r} is no entry of this configuration; there are {some}, ...")
        elif (read := _positive(f"{key}.{name}", number, faults)) is not None:
            found[name] = read
    return found


def _positive(place: str, value: object, faults: list[str]) -> Fraction | None:
    try:
        number = read_exact(value) if isinstance(value, str) else INFINITE
    except ValueError as error:
        faults.append(f"{place}: {error}")
        return None
    if not isinstance(number, Fraction) or not _LEAST <= number <= _MOST:
        faults.append(f"{place}: must be a number between 1e-6 and 1e12")
        return None
    return number


def _decimals(value: object, faults: list[str]) -> int | None:
    if isinstance(value, Number) and value.isdecimal() and 0 < int(value) <= _MOST_DECIMALS:
        return int(value)
    faults.append(f"decimals: must be a whole number from 1 to {_MOST_DECIMALS}")
    return None
