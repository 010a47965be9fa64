"""Spend an epsilon at a delta, by the exact law of the loss, so that relative errors are equal."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal

from yupana.errors import ConfigError
from yupana.plan.budgets import Entry, EpsilonTotal, Question, equal_errors, round_down
from yupana.plan.exact_budget import largest
from yupana.plan.measurement import Mechanism
from yupana.privacy.exact import Budget
from yupana.privacy.zcdp import rho_for_epsilon

_BACK: Final = Fraction(1, 10**4)
"""By which part a total is lowered where rounding its budgets has raised epsilon."""

_MOST_STEPS: Final = 20

EpsilonOf = Callable[[Mapping[str, Budget], str, float], float | None]
"""The exact epsilon, by all budgets of a population, its name and delta; None where the law gives none."""


@dataclass(frozen=True, slots=True)
class SpentEpsilon:
    """What the budgets of an `EpsilonTotal` keep.

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
    mechanism : Mechanism
    epsilon_of : EpsilonOf

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
        of_sized = equal_errors(here, sizes, shared, mechanism).budgets
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
    for _ in range(_MOST_STEPS):
        rounded = budgets(number, question.decimals)
        keeps = epsilon_of(rounded, population, delta)
        if keeps is not None and keeps <= epsilon:
            return rounded, SpentEpsilon(keeps, delta, "exact")
        number *= 1 - _BACK
    raise ConfigError("decimals: no budgets of so few digits keep this epsilon")
