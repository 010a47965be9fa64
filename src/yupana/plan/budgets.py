"""Solve for budgets: the least that meets margins of error, or those that spend a total on equal relative errors.

Both answers are optimal under every composition of `Plan.loss` (docs/targets.md): the loss grows with each budget, and
in proportion where all grow alike.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Final

from yupana.plan.margin import Margins, margin_of_error, rho_for_margin
from yupana.plan.measurement import Mechanism
from yupana.privacy.coverage import covers, noise_of
from yupana.privacy.exact import Budget
from yupana.privacy.laws import TwoSidedGeometric

_DIGITS: Final = 12
"""To how many digits a budget that has no exact value is rounded up where margins are exact."""

_STEP: Final = Fraction(1, 10**15)
"""By how much a budget under pure DP, which has no exact solution, is first raised, relative to itself."""

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


@dataclass(frozen=True, slots=True)
class Need:
    """A published count, and the entry of a configuration that pays for its noise.

    Attributes
    ----------
    entry : str
        The budget's name. Several counts may need the same one.
    margin : Fraction
        The largest margin of error, above zero; or a size, where errors are to be equal.
    sensitivity : Fraction
        What the noise of the measurement is scaled to: squared L2 under zCDP, L1 under pure DP.
    share : Fraction
        The part of the entry's budget that the measurement gets.
    """

    entry: str
    margin: Fraction
    sensitivity: Fraction
    share: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True)
class EqualErrors:
    """How a total is spent so that relative errors are equal: standard deviations over sizes.

    Attributes
    ----------
    budgets : mapping of entry to Fraction
    error : float
        The largest margin of error as a multiple of the count's size, which no other budgets of this total beat.
    """

    budgets: Mapping[str, Fraction]
    error: float


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
    if not margin > 0:
        raise ValueError("a margin of error must be positive")
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
    low, high = 10 ** (_DIGITS - 1), 10**_DIGITS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if within(middle * unit) else (middle, high)
    return high * unit


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


def least_budgets(
    needs: Iterable[Need], confidence: Fraction, mechanism: Mechanism, margins: Margins = "exact"
) -> dict[str, Fraction]:
    """The least budget of every entry whose counts all meet their margins.

    Each entry needs the largest of what its counts need, whatever the others have. So these budgets are the least one
    by one, and as no loss falls when a budget grows, their total is the least of all that meet the margins.
    """
    return _largest(needs, lambda n: budget_for_margin(n.margin, n.sensitivity, confidence, mechanism, margins))


def _largest(needs: Iterable[Need], budget: Callable[[Need], Fraction]) -> dict[str, Fraction]:
    found: dict[str, Fraction] = {}
    for need in needs:
        found[need.entry] = max(budget(need) / need.share, found.get(need.entry, Fraction(0)))
    return found


def equal_errors(
    sizes: Iterable[Need],
    total: Fraction,
    mechanism: Mechanism,
    loss: Callable[[Mapping[str, Fraction]], Fraction] | None = None,
) -> EqualErrors:
    """The budgets of a given total loss with the least largest relative error, that of every entry being the same.

    Parameters
    ----------
    sizes : iterable of Need
        With the size of the count in place of its margin: the error is the standard deviation over this size. Divided
        by a weight, a size makes an error count for so much more. Margins are steps where they are whole; standard
        deviations are not.
    total : Fraction
        Above zero.
    mechanism : Mechanism
    loss : callable, optional
        The total loss of budgets by entry; by default their sum. No budget that grows may lower it, and under zCDP it
        must grow in proportion with all of them, as `Plan.loss` does.

    Raises
    ------
    ValueError
        If the total is not positive, or there is nothing to spend it on.
    """
    sizes, spent = list(sizes), loss or (lambda budgets: sum(budgets.values(), Fraction(0)))
    if not sizes or not total > 0:
        raise ValueError("a total above zero and counts to spend it on are needed")

    def budgets(error: Fraction) -> dict[str, Fraction]:
        return _largest(sizes, lambda n: _budget_for_sigma(n.margin * error, n.sensitivity, mechanism))

    whole = budgets(Fraction(1))
    if mechanism is Mechanism.ZCDP:
        # rho goes with the inverse square of the error, so all are scaled alike.
        factor = total / spent(whole)
        return EqualErrors({entry: rho * factor for entry, rho in whole.items()}, 1 / math.sqrt(factor))
    low, high = Fraction(1), Fraction(1)  # the total is passed at low, and not at high
    while spent(budgets(low)) <= total:
        low /= 2
    while spent(budgets(high)) > total:
        high *= 2
    while high - low > high * _NEAR:
        middle = (low + high) / 2
        low, high = (middle, high) if spent(budgets(middle)) > total else (low, middle)
    return EqualErrors(budgets(high), float(high))
