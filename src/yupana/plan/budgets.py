"""Solve for budgets: the least that meets margins of error, or those that spend a total on equal relative errors.

Both answers are optimal (docs/targets.md): the loss grows with each budget, and in proportion where all grow alike.
"""

import html
import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Final

import numpy as np

from yupana.errors import ConfigError, nearest
from yupana.files.declaration import declared, exact, key, read_as, table_of, whole
from yupana.plan.measurement import Margins, Mechanism, check_margin, margin_of_error, rho_for_margin
from yupana.privacy.coverage import covers, noise_of
from yupana.privacy.exact import Budget, show_exact
from yupana.privacy.laws import TwoSidedGeometric

_DIGITS: Final = 12
"""To how many digits a budget that has no exact value is rounded up where margins are exact."""

_STEP: Final = Fraction(1, 10**15)
"""By how much a budget under pure DP, which has no exact solution, is first raised, relative to itself."""

_LEAST: Final = Fraction(1, 10**6)
_MOST: Final = Fraction(10**12)
"""Margins, sizes and totals beyond are slips of the pen: no noise of use has them."""

_NUMBER: Final = exact(lambda number: _LEAST <= number <= _MOST, "must be a number between 1e-6 and 1e12")
_MOST_DECIMALS: Final = 15

_NEAR: Final = Fraction(1, 10**12)
"""How near to the largest relative error that could be had the search stops, relative to it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A budget of a configuration, and what its noise is scaled to.

    Attributes
    ----------
    budget : Fraction or INFINITE
        0 where nothing is measured.
    sensitivity : Fraction
        Of the published cells that it pays for: squared L2 under zCDP, L1 under pure DP.
    share : Fraction
        The part of the budget that these cells have.
    population : str
        The pass it belongs to. Passes are over disjoint people, so their losses are never added.
    """

    budget: Budget
    sensitivity: Fraction
    share: Fraction = Fraction(1)
    population: str = ""


def budget_for_margin(
    margin: Fraction, sensitivity: Fraction, confidence: Fraction, mechanism: Mechanism, margins: Margins = "exact"
) -> Fraction:
    """The least budget of one measurement whose margin of error is at most ``margin``.

    Exact margins: the chance that the noise lies within the largest whole number below ``margin`` grows with the
    budget, so a single budget is the least that reaches the confidence. It is irrational, and rounded up: the budget
    per unit of sensitivity to 12 digits. No number of 12 digits below it meets the margin (docs/targets.md).

    Those of the Bureau: ``z^2 d / (2 MOE^2)`` under zCDP, which is rational. Under pure DP the two-sided geometric law
    of parameter a = epsilon / L1 has variance ``1 / (2 sinh(a / 2)^2)``; its solution is irrational, and rounded up
    where its margin would be missed.

    Raises
    ------
    ValueError
        If the margin is not positive.
    """
    check_margin(margin)
    if margins == "exact":
        return sensitivity * _least_exponent(mechanism, math.floor(margin), confidence)
    if mechanism is Mechanism.ZCDP:
        return rho_for_margin(margin, sensitivity, confidence)
    return _epsilon_for_sigma(margin / Fraction(margin_of_error(1, confidence)), sensitivity)


@cache
def _least_exponent(mechanism: Mechanism, bound: int, confidence: Fraction) -> Fraction:
    """The least number of 12 digits that is the exponent of a law within ``bound`` with at least this chance.

    The exponent of a law is its budget over its sensitivity, under both mechanisms.
    """

    def within(exponent: Fraction) -> bool:
        return covers(noise_of([(mechanism.law(Fraction(1), exponent), 1)]), bound, confidence)

    # The power of ten at or above it, which is near bound^-2 or bound^-1.
    power = -mechanism.power * len(str(bound))
    while not within(Fraction(10) ** power):
        power += 1
    while within(Fraction(10) ** (power - 1)):
        power -= 1
    unit = Fraction(10) ** (power - _DIGITS)
    numbers = range(10 ** (_DIGITS - 1) + 1, 10**_DIGITS)
    return (numbers.start + bisect_left(numbers, True, key=lambda number: within(number * unit))) * unit  # noqa: FBT003


def _budget_for_sigma(sigma: Fraction, sensitivity: Fraction, mechanism: Mechanism) -> Fraction:
    """The least budget whose noise has at most this standard deviation."""
    if mechanism is Mechanism.ZCDP:
        return sensitivity / (2 * sigma * sigma)
    return _epsilon_for_sigma(sigma, sensitivity)


def _epsilon_for_sigma(sigma: Fraction, sensitivity: Fraction) -> Fraction:
    exact = Fraction(2 * math.asinh(1 / (math.sqrt(2) * float(sigma)))) * sensitivity
    epsilon, step = exact, _STEP
    while TwoSidedGeometric(sensitivity / epsilon).variance > sigma * sigma:
        epsilon, step = exact * (1 + step), 2 * step
    return epsilon


def least(
    entries: Mapping[str, Entry],
    margins: Mapping[str, Fraction],
    confidence: Fraction,
    mechanism: Mechanism,
    definition: Margins = "exact",
) -> dict[str, Fraction]:
    """The least budget of every entry that is given a margin.

    It does not depend on the others. As no loss falls when a budget grows, the total is the least of all that meet the
    margins.

    Parameters
    ----------
    entries : mapping of name to Entry
    margins : mapping of name to Fraction
        The largest margins of error of the published cells, above zero.
    definition : "exact" or "bureau"
        How margins of error are computed.
    """
    return {
        name: budget_for_margin(margin, entries[name].sensitivity, confidence, mechanism, definition)
        / entries[name].share
        for name, margin in margins.items()
    }


def spend(
    entries: Mapping[str, Entry], total: Fraction, sizes: Mapping[str, Fraction], mechanism: Mechanism
) -> dict[str, Fraction]:
    """The budgets of the entries with a size, so that each population spends the total on equal relative errors.

    Entries without a size keep their budgets, which are taken off the total of their population.

    Raises
    ------
    ConfigError
        If that leaves nothing.
    """
    found: dict[str, Fraction] = {}
    for population in dict.fromkeys(entries[name].population for name in sizes):
        here = {name: entry for name, entry in entries.items() if entry.population == population}
        kept = sum((entry.budget for name, entry in here.items() if name not in sizes), Fraction(0))
        if not isinstance(kept, Fraction) or kept >= total:
            spent = f"{float(kept):g}" if isinstance(kept, Fraction) else "an infinite budget"
            raise ConfigError(
                f"total: entries without a size keep {spent}, which leaves nothing; give them sizes, or budgets of 0"
            )
        of_these = {name: size for name, size in sizes.items() if name in here}
        found |= equal_errors(here, of_these, total - kept, mechanism)
    return found


def equal_errors(
    entries: Mapping[str, Entry], sizes: Mapping[str, Fraction], total: Fraction, mechanism: Mechanism
) -> dict[str, Fraction]:
    """The budgets of a given sum with the least largest relative error, that of every entry being the same.

    A relative error is a standard deviation over a size. No other budgets of this total have a smaller largest one.

    Parameters
    ----------
    entries : mapping of name to Entry
    sizes : mapping of name to Fraction
        What standard deviations are divided by. Divided by a weight, a size makes an error count for so much more.
        Margins are steps where they are whole; standard deviations are not.
    total : Fraction
        Above zero.

    Raises
    ------
    ValueError
        If the total is not positive, or there is nothing to spend it on.
    """
    if not sizes or not total > 0:
        raise ValueError("a total above zero and counts to spend it on are needed")

    def budgets(error: Fraction) -> dict[str, Fraction]:
        return {
            name: _budget_for_sigma(size * error, entries[name].sensitivity, mechanism) / entries[name].share
            for name, size in sizes.items()
        }

    def spent(error: Fraction) -> Fraction:
        return sum(budgets(error).values(), Fraction(0))

    if mechanism is Mechanism.ZCDP:
        # rho goes with the inverse square of the error, so all are scaled alike.
        factor = total / spent(Fraction(1))
        return {name: rho * factor for name, rho in budgets(Fraction(1)).items()}
    low, high = Fraction(1), Fraction(1)  # the total is passed at low, and not at high
    while spent(low) <= total:
        low /= 2
    while spent(high) > total:
        high *= 2
    while high - low > high * _NEAR:
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle) > total else (low, middle)
    return budgets(high)


def least_error(
    entries: Mapping[str, Entry], sizes: Mapping[str, Fraction], total: float, mechanism: Mechanism
) -> float | None:
    """The error of `equal_errors` in floating point, for pictures; None where it leaves next to no noise."""
    of = np.array([float(size) for size in sizes.values()])
    weights = np.array([float(entries[name].sensitivity / entries[name].share) for name in sizes])
    if mechanism is Mechanism.ZCDP:
        return math.sqrt(float((weights / (2 * of * of)).sum()) / total)

    def spent(error: float) -> float:
        return float((2 * weights * np.arcsinh(1 / (math.sqrt(2) * of * error))).sum())

    low, high = -230.0, 230.0
    if not spent(math.exp(high)) < total < spent(math.exp(low)):
        return None
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if spent(math.exp(middle)) > total else (low, middle)
    return math.exp(high)


@dataclass(frozen=True, slots=True)
class EpsilonTotal:
    """A total told as an epsilon at a delta, by the exact law of the loss (docs/exact-accounting.md)."""

    epsilon: Fraction = key(_NUMBER)
    delta: Fraction = key(
        exact(lambda number: 0.0 < float(number) < 1.0, "must lie strictly between 0 and 1"),
        default=Fraction(1, 10**10),
    )


@dataclass(frozen=True, slots=True)
class Question:
    """Either margins of error, or a total with sizes."""

    # by entry: the largest margin of error of a count that the entry pays for. Entries without one keep their budget.
    margins: Mapping[str, Fraction] = field(default_factory=dict)
    # what all budgets together may cost, those that are kept included; of each population, where there are several. An
    # `EpsilonTotal` is spent by `yupana.plan.exact_budget.spend_epsilon`, as it needs more than entries.
    total: Fraction | EpsilonTotal | None = None
    # by entry: what the standard deviation of each entry is divided by. Divided by a weight, a size makes an error
    # count more.
    sizes: Mapping[str, Fraction] = field(default_factory=dict)
    # to how many digits after the point budgets are rounded: up for margins that are exact; to the nearest for those of
    # the Bureau, as in 2020, so that they may be missed by as much; down for a total, which is kept
    decimals: int | None = None


def solve(
    question: Question,
    entries: Mapping[str, Entry],
    confidence: Fraction,
    mechanism: Mechanism,
    definition: Margins = "exact",
) -> dict[str, Budget]:
    """All budgets of a configuration, with the least that do what is asked.

    Raises
    ------
    ConfigError
        If the total is spent already on entries without a size, or a budget would be rounded to 0.
    TypeError
        If the total is an epsilon.
    """
    if isinstance(question.total, EpsilonTotal):
        raise TypeError("an epsilon is spent by spend_epsilon")
    kept: dict[str, Budget] = {name: entry.budget for name, entry in entries.items()}
    rounded: Callable[[Fraction, int | None], Fraction]
    if question.total is None:
        rounded = partial(_rounded, to=round if definition == "bureau" else math.ceil)
        found = least(entries, question.margins, confidence, mechanism, definition)
    else:
        rounded, found = round_down, spend(entries, question.total, question.sizes, mechanism)
    return {**kept, **{name: rounded(budget, question.decimals) for name, budget in found.items()}}


def _rounded(budget: Fraction, decimals: int | None, to: Callable[[Fraction], int]) -> Fraction:
    """Round to so many digits after the point, but never to 0, which would leave the count out."""
    return budget if decimals is None else Fraction(max(to(budget * 10**decimals), 1), 10**decimals)


def round_down(budget: Fraction, decimals: int | None) -> Fraction:
    """Round a budget down to so many digits after the point.

    Raises
    ------
    ConfigError
        If nothing is left.
    """
    if decimals is None:
        return budget
    down = Fraction(budget * 10**decimals // 1, 10**decimals)
    if not down:
        raise ConfigError(f"decimals: a budget of {float(budget):.3g} would be rounded down to 0; use more digits")
    return down


_DECIMALS: Final = whole(1, _MOST_DECIMALS)
NUMBERS_BY_ENTRY: Final = table_of(_NUMBER, "an object of numbers by entry")
"""Numbers by the names of entries, of a file of targets."""


@dataclass(frozen=True, slots=True)
class DeclaredMargins:
    """A file of margins: ``{"margins": {"PH1_num/usa_*": 500}}``, with ``"decimals"`` where budgets are rounded."""

    margins: Mapping[str, Fraction] = key(NUMBERS_BY_ENTRY)
    decimals: int | None = key(_DECIMALS, default=None)


@dataclass(frozen=True, slots=True)
class _DeclaredTotal:
    """A file of a total: ``{"total": "1.25", "sizes": {...}, "weights": {...}}``, with ``"decimals"`` as well.

    A total may be ``{"epsilon": "16", "delta": "1e-10"}``.
    """

    total: Fraction | EpsilonTotal = key(_NUMBER | declared(EpsilonTotal))
    sizes: Mapping[str, Fraction] = key(NUMBERS_BY_ENTRY)
    weights: Mapping[str, Fraction] = key(NUMBERS_BY_ENTRY, default={})
    decimals: int | None = key(_DECIMALS, default=None)


def read_question(path: Path, entries: Collection[str]) -> Question:
    """Read a file of targets: `DeclaredMargins` or `_DeclaredTotal`.

    Parameters
    ----------
    entries : collection of str
        The names of the entries there are. One of budget 0 may be given a margin or a size like others.

    Raises
    ------
    ConfigError
        Naming the file, the key and what is wrong with it. All faults are named at once.
    """

    def check(told: DeclaredMargins | _DeclaredTotal, faults: list[str]) -> None:
        by_entry = {name: of for name in ("margins", "sizes", "weights") if (of := getattr(told, name, None))}
        for place, of in by_entry.items():
            check_entries(place, of, entries, faults)
        if isinstance(told, _DeclaredTotal):
            faults += [f"weights.{name}: has no size" for name in told.weights if name not in told.sizes]
        if not by_entry:
            place = "margins" if isinstance(told, DeclaredMargins) else "sizes"
            faults.append(f"{place}: names no entry, so there is nothing to solve")

    told = read_as(path, _TARGETS, check)
    if isinstance(told, DeclaredMargins):
        return Question(told.margins, None, {}, told.decimals)
    sizes = {name: size / told.weights.get(name, Fraction(1)) for name, size in told.sizes.items()}
    return Question({}, told.total, sizes, told.decimals)


_TARGETS: Final = declared(DeclaredMargins, when=lambda told: "margins" in told) | declared(
    _DeclaredTotal, when=lambda told: "total" in told
)


def check_entries(place: str, told: Collection[str], entries: Collection[str], faults: list[str]) -> None:
    """Name the entries of a file of targets that a configuration does not have."""
    known = f"; there are {', '.join(list(entries)[:3])}, ..."
    faults += [
        f"{place}: {name!r} is no entry of this configuration{nearest(name, entries) or known}"
        for name in told
        if name not in entries
    ]


def budgets_as_html(title: str, budgets: Mapping[str, Budget]) -> str:
    """A configuration as a notebook shows it: its budgets, exactly, by name."""
    rows = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{html.escape(show_exact(value))}</td></tr>"
        for name, value in budgets.items()
    )
    head = "<tr><th>budget</th><th>value</th></tr>"
    return f"<p>{html.escape(title)}</p><table><thead>{head}</thead><tbody>{rows}</tbody></table>"
