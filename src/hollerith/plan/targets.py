"""Solve for budgets: the least that meets margins of error, or those that spend a total on equal relative errors.

Both answers are optimal under every composition of `Plan.loss` (docs/targets.md): the loss grows with each budget, and
in proportion where all grow alike.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from hollerith.plan.margin import margin_of_error, rho_for_margin
from hollerith.plan.measurement import Mechanism
from hollerith.privacy.laws import TwoSidedGeometric

_STEP: Final = Fraction(1, 10**15)
"""By how much a budget under pure DP, which has no exact solution, is first raised, relative to itself."""

_NEAR: Final = Fraction(1, 10**12)
"""How near to the largest relative error that could be had the search stops, relative to it."""


@dataclass(frozen=True, slots=True)
class Need:
    """A published count, and the entry of a configuration that pays for its noise.

    Attributes
    ----------
    entry : str
        The budget's name. Several counts may need the same one.
    margin : Fraction
        The largest margin of error, above zero.
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
    """How a total is spent so that relative errors are equal.

    Attributes
    ----------
    budgets : mapping of entry to Fraction
    error : float
        The largest margin of error as a multiple of the count's size, which no other budgets of this total beat.
    """

    budgets: Mapping[str, Fraction]
    error: float


def budget_for_margin(margin: Fraction, sensitivity: Fraction, confidence: Fraction, mechanism: Mechanism) -> Fraction:
    """The least budget of one measurement whose margin of error is at most ``margin``.

    Exact under zCDP: ``z^2 d / (2 MOE^2)``. Under pure DP the two-sided geometric law of parameter a = epsilon / L1
    has variance ``1 / (2 sinh(a / 2)^2)``; its solution is irrational, and rounded up where its margin would be missed.

    Raises
    ------
    ValueError
        If the margin is not positive.
    """
    rho = rho_for_margin(margin, sensitivity, confidence)
    if mechanism is Mechanism.ZCDP:
        return rho
    sigma = float(margin) / margin_of_error(1, confidence)
    exact = Fraction(2 * math.asinh(1 / (math.sqrt(2) * sigma))) * sensitivity
    epsilon, step = exact, _STEP
    while margin_of_error(TwoSidedGeometric(sensitivity / epsilon).variance, confidence) > margin:
        epsilon, step = exact * (1 + step), 2 * step
    return epsilon


def least_budgets(needs: Iterable[Need], confidence: Fraction, mechanism: Mechanism) -> dict[str, Fraction]:
    """The least budget of every entry whose counts all meet their margins.

    Each entry needs the largest of what its counts need, whatever the others have. So these budgets are the least one
    by one, and as no loss falls when a budget grows, their total is the least of all that meet the margins.
    """
    found: dict[str, Fraction] = {}
    for need in needs:
        budget = budget_for_margin(need.margin, need.sensitivity, confidence, mechanism) / need.share
        found[need.entry] = max(budget, found.get(need.entry, Fraction(0)))
    return found


def equal_errors(
    sizes: Iterable[Need],
    total: Fraction,
    confidence: Fraction,
    mechanism: Mechanism,
    loss: Callable[[Mapping[str, Fraction]], Fraction] | None = None,
) -> EqualErrors:
    """The budgets of a given total loss with the least largest relative error, that of every entry being the same.

    Parameters
    ----------
    sizes : iterable of Need
        With the size of the count in place of its margin: the error is the margin over this size. Divided by a weight,
        a size makes an error count for so much more.
    total : Fraction
        Above zero.
    confidence : Fraction
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
        needs = (Need(n.entry, n.margin * error, n.sensitivity, n.share) for n in sizes)
        return least_budgets(needs, confidence, mechanism)

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
