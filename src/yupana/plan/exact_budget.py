"""Scale the budgets of a plan to the largest that keep an epsilon at a delta, by the exact law of the loss."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, Literal

from yupana.errors import ConfigError
from yupana.plan.exact_loss import epsilon_exact
from yupana.plan.measurement import Mechanism
from yupana.plan.plan import Plan
from yupana.privacy.zcdp import rho_for_epsilon

_NEAR: Final = 1e-6
"""How near to the epsilon asked for the search stops, relative to it."""

_DIGITS: Final = 9
"""To how many digits a factor is rounded down."""

_MOST_STEPS: Final = 40


@dataclass(frozen=True, slots=True)
class Scaled:
    """All budgets of a plan times one factor.

    Attributes
    ----------
    factor : Fraction
    epsilon, delta : float
        What the scaled plan is proven to keep; epsilon is at most the one asked for.
    by : "exact" or "conversion"
        By the exact law of the loss, or by the conversion of the loss where the law gives no bound.
    """

    factor: Fraction
    epsilon: float
    delta: float
    by: Literal["exact", "conversion"]

    def as_json(self) -> dict[str, Any]:
        """Describe it."""
        return {"factor": str(self.factor), "epsilon": self.epsilon, "delta": self.delta, "by": self.by}


def times(plan: Plan, factor: Fraction) -> Plan:
    """The plan with all budgets times a positive factor."""
    return replace(plan, measurements=tuple(replace(m, budget=m.budget * factor) for m in plan.measurements))


def scale_to(
    plan: Plan, epsilon: float, delta: float, epsilon_of: Callable[[Fraction], float | None] | None = None
) -> Scaled:
    """Find the largest factor of all budgets by which a plan keeps an epsilon at a delta, under its own neighbours.

    The epsilon of the answer is proven; it is below the one asked for by a part of 1e-6 at most where it is exact.

    Parameters
    ----------
    plan : Plan
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
    found = _exact(lambda factor: epsilon_exact(times(plan, factor), delta), epsilon, delta)
    if epsilon_of is not None:
        # That of the plan is quick, and near.
        found = _exact(epsilon_of, epsilon, delta, 1.0 if found is None else float(found.factor))
    if found is not None:
        return found
    if plan.mechanism is Mechanism.PURE:
        return Scaled(Fraction(epsilon) / loss, epsilon, delta, "conversion")
    return Scaled(_down(rho_for_epsilon(epsilon, delta) / float(loss)), epsilon, delta, "conversion")


def _exact(
    epsilon_of: Callable[[Fraction], float | None], epsilon: float, delta: float, factor: float = 1.0
) -> Scaled | None:
    """By the secant of the logarithms, between a factor that keeps epsilon and one that does not."""
    kept: tuple[float, float] | None = None
    passed: tuple[float, float] | None = None
    for _ in range(_MOST_STEPS):
        exact = _down(factor)
        found = epsilon_of(exact)
        if found is None:
            return None
        if found <= epsilon:
            if found >= epsilon * (1 - _NEAR):
                return Scaled(exact, found, delta, "exact")
            kept = (float(exact), found)
        else:
            passed = (float(exact), found)
        factor = _next(kept, passed, epsilon * (1 - _NEAR / 2))
    return None if kept is None else Scaled(_down(kept[0]), kept[1], delta, "exact")


def _next(kept: tuple[float, float] | None, passed: tuple[float, float] | None, epsilon: float) -> float:
    if kept is None or passed is None:
        # Epsilon grows about as a power of the factor between a half and one, so this goes a little too far.
        factor, found = kept or passed or (1.0, epsilon)
        grown = math.exp(2 * math.log(epsilon / max(found, 1e-300)))
        return factor * min(1e6, max(1e-6, grown)) * (1.00001 if kept else 0.99999)
    low, high = (math.log(max(value, 1e-300)) for _, value in (kept, passed))
    part = (math.log(epsilon) - low) / (high - low) if high > low else 0.5
    least, most = math.log(kept[0]), math.log(passed[0])
    return math.exp(least + min(0.98, max(0.02, part)) * (most - least))


def _down(factor: float) -> Fraction:
    """Round down to so many digits."""
    unit: Fraction = Fraction(10) ** (math.floor(math.log10(factor)) + 1 - _DIGITS)
    return math.floor(Fraction(factor) / unit) * unit
