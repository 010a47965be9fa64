"""Scale the budgets of a plan to an epsilon at a delta, or spend one evenly, by the exact law of the loss."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, Literal

from yupana.errors import ConfigError
from yupana.plan.budgets import Entry, EpsilonTotal, Question, equal_errors, round_down
from yupana.plan.exact_loss import epsilon_exact
from yupana.plan.measurement import Mechanism
from yupana.plan.plan import Plan
from yupana.privacy.exact import Budget
from yupana.privacy.zcdp import rho_for_epsilon

_NEAR: Final = 1e-6
"""How near to the epsilon asked for the search stops, relative to it."""

_DIGITS: Final = 9
"""To how many digits a factor is rounded down."""

_MOST_STEPS: Final = 40


@dataclass(frozen=True, slots=True)
class SpentEpsilon:
    """What budgets keep that were found for an epsilon.

    Attributes
    ----------
    epsilon, delta : float
        Proven; epsilon is at most the one asked for, and of the population that has most where there are several.
    by : "exact" or "conversion"
        By the exact law of the loss, or by the conversion of the loss where the law gives no bound.
    """

    epsilon: float
    delta: float
    by: Literal["exact", "conversion"]

    def as_json(self) -> dict[str, Any]:
        """Describe it."""
        return {"epsilon": self.epsilon, "delta": self.delta, "by": self.by}


def times(plan: Plan, factor: Fraction) -> Plan:
    """The plan with all budgets times a positive factor."""
    return replace(plan, measurements=tuple(replace(m, budget=m.budget * factor) for m in plan.measurements))


def scale_to(
    plan: Plan, epsilon: float, delta: float, epsilon_of: Callable[[Fraction], float | None] | None = None
) -> tuple[Fraction, SpentEpsilon]:
    """Find the largest factor of all budgets by which a plan keeps an epsilon at a delta, and what it then keeps.

    Neighbours are the plan's own.

    The epsilon of the answer is proven; it is below the one asked for by a part of 1e-6 at most where it is exact.
    "Largest" is where the law passes epsilon: docs/exact-accounting.md, section 5, says what that leaves out.

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        Strictly between 0 and 1.
    epsilon_of : callable, optional
        The exact epsilon by the factor; that of the plan if not given.

    Raises
    ------
    ConfigError
        If a number is not in its range, the plan measures nothing or without noise, or no factor is found.
    """
    if not 0 < epsilon < math.inf:
        raise ConfigError("--epsilon: must be positive and finite")
    if not 0 < delta < 1:
        raise ConfigError("--delta: must lie strictly between 0 and 1")
    if not plan.measurements:
        raise ConfigError("--epsilon: the plan measures nothing, so there is no budget to scale")
    loss = plan.loss()
    if not plan.is_finite or not isinstance(loss, Fraction):
        raise ConfigError("--epsilon: a budget is infinite; there is nothing to scale")
    found = largest(lambda factor: epsilon_exact(times(plan, factor), delta), epsilon, delta, 1.0)
    if epsilon_of is not None:
        # That of the plan is quick, and near.
        found = largest(epsilon_of, epsilon, delta, 1.0 if found is None else float(found[0]))
    if found is not None:
        return found[0], SpentEpsilon(found[1], delta, "exact")
    by_conversion = SpentEpsilon(epsilon, delta, "conversion")
    if plan.mechanism is Mechanism.PURE:
        return Fraction(epsilon) / loss, by_conversion
    return _down(rho_for_epsilon(epsilon, delta) / float(loss)), by_conversion


def largest(
    epsilon_of: Callable[[Fraction], float | None], epsilon: float, delta: float, first: float, least: float = 0.0
) -> tuple[Fraction, float] | None:
    """Find about the largest number that keeps an epsilon at a delta, and the epsilon that it keeps.

    By the secant of rho, which is nearly linear in budgets, between a number that keeps epsilon and one that does not.
    What is returned has been asked of ``epsilon_of``, so it keeps epsilon even where more noise is told better.

    Parameters
    ----------
    epsilon_of : callable
        The proven epsilon by the number, which is positive.
    first : float
        Where the search begins.
    least : float
        The epsilon of the number 0, below ``epsilon``.

    Returns
    -------
    (Fraction, float) or None
        None where ``epsilon_of`` has no answer, or nothing that keeps epsilon is found.
    """

    def rho(found: float) -> float:
        return rho_for_epsilon(found, delta) if found > 0 else 0.0

    goal, at_none = rho(epsilon * (1 - _NEAR / 2)), rho(least)
    low, at_low, high, at_high = 0.0, at_none, math.inf, math.inf
    kept: tuple[Fraction, float] | None = None
    number = first
    for _ in range(_MOST_STEPS):
        exact = _down(number)
        found = epsilon_of(exact)
        if found is None:
            return None
        if found <= epsilon:
            kept = exact, found
            if found >= epsilon * (1 - _NEAR):
                return kept
            low, at_low = float(exact), rho(found)
            slope = low / (at_low - at_none) if at_low > at_none else math.inf
        else:
            high, at_high = float(exact), rho(found)
        if math.isinf(high):
            number = min(1e6 * low, (low + (goal - at_low) * slope) * 1.00001)
        else:
            part = (goal - at_low) / (at_high - at_low) if at_high > at_low else 0.5
            number = low + min(0.98, max(0.02, part)) * (high - low)
    return kept


def _down(factor: float) -> Fraction:
    """Round down to so many digits."""
    unit: Fraction = Fraction(10) ** (math.floor(math.log10(factor)) + 1 - _DIGITS)
    return math.floor(Fraction(factor) / unit) * unit


_BACK: Final = Fraction(1, 10**4)
"""By which part a total is lowered where rounding its budgets has raised epsilon."""

_MOST_TRIALS: Final = 20

EpsilonOf = Callable[[Mapping[str, Budget], str, float], float | None]
"""The exact epsilon, by all budgets of a population, its name and delta; None where the law gives none."""


def spend_epsilon(
    question: Question, entries: Mapping[str, Entry], mechanism: Mechanism, epsilon_of: EpsilonOf
) -> tuple[dict[str, Budget], SpentEpsilon]:
    """All budgets of a configuration, those with a size such that relative errors are equal and the epsilon is kept.

    The budgets that are found are rounded as the question says, and what they keep is asked of the law again, so the
    epsilon holds of them as they are (docs/targets.md).

    Parameters
    ----------
    question : Question
        With an `EpsilonTotal` and sizes. Each population may spend it.
    entries : mapping of name to Entry

    Raises
    ------
    ConfigError
        If entries without a size leave nothing, or a budget would be rounded to 0.
    TypeError
        If the total is no epsilon.
    """
    if not isinstance(question.total, EpsilonTotal):
        raise TypeError("the total is no epsilon")
    kept: dict[str, Budget] = {name: entry.budget for name, entry in entries.items()}
    spent = [
        _spend(question, question.total, entries, mechanism, epsilon_of, population)
        for population in dict.fromkeys(entries[name].population for name in question.sizes)
    ]
    found = {name: budget for budgets, _ in spent for name, budget in budgets.items()}
    most = max((of for _, of in spent), key=lambda of: (of.by == "conversion", of.epsilon))
    return {**kept, **found}, most


def _spend(
    question: Question,
    total: EpsilonTotal,
    entries: Mapping[str, Entry],
    mechanism: Mechanism,
    epsilon_of: EpsilonOf,
    population: str,
) -> tuple[dict[str, Budget], SpentEpsilon]:
    epsilon, delta = float(total.epsilon), float(total.delta)
    here = {name: entry for name, entry in entries.items() if entry.population == population}
    sizes = {name: size for name, size in question.sizes.items() if name in here}
    kept = sum((entry.budget for name, entry in here.items() if name not in sizes), Fraction(0))
    if not isinstance(kept, Fraction):
        raise ConfigError("total: entries without a size keep an infinite budget, which leaves nothing")
    unspent: dict[str, Budget] = {name: Fraction(0) if name in sizes else e.budget for name, e in here.items()}
    floor = epsilon_of(unspent, population, delta) if kept else 0.0
    if floor is not None and floor >= epsilon:
        raise ConfigError(
            f"total: entries without a size keep epsilon {floor:g} at this delta, which leaves nothing; give them "
            "sizes, or budgets of 0"
        )

    def budgets(shared: Fraction, decimals: int | None) -> dict[str, Budget]:
        of_sized = equal_errors(here, sizes, shared, mechanism)
        return {**unspent, **{name: round_down(budget, decimals) for name, budget in of_sized.items()}}

    promised = Fraction(epsilon if mechanism is Mechanism.PURE else rho_for_epsilon(epsilon, delta))
    first = max(promised - kept, promised / 1000)
    found = (
        None
        if floor is None
        else largest(
            lambda shared: epsilon_of(budgets(shared, None), population, delta), epsilon, delta, float(first), floor
        )
    )
    if found is None:
        if promised <= kept:
            raise ConfigError(
                "total: the exact law gives no bound here, and by the conversion of the loss entries without a size "
                f"keep {float(kept):g}, which leaves nothing"
            )
        return budgets(promised - kept, question.decimals), SpentEpsilon(epsilon, delta, "conversion")
    number = found[0]
    for _ in range(_MOST_TRIALS):
        rounded = budgets(number, question.decimals)
        keeps = epsilon_of(rounded, population, delta)
        if keeps is not None and keeps <= epsilon:
            return rounded, SpentEpsilon(keeps, delta, "exact")
        number *= 1 - _BACK
    raise ConfigError("decimals: no budgets of so few digits keep this epsilon")
