"""Solve for it: the questions of the page, answered as `plan --targets` answers them."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from yupana.errors import ConfigError
from yupana.explore.form import Chosen, ProductPage, positive
from yupana.explore.scenario import Fault, Filled, RefusedError
from yupana.explore.view import solved
from yupana.plan.budgets import EpsilonTotal, Question, solve
from yupana.plan.exact_budget import scale_to


def least(page: ProductPage, settings: Filled, chosen: Chosen, targets: Mapping[str, str]) -> Filled:
    """The least total that meets margins of error by column of the grid; what has none keeps its budget."""
    faults: list[Fault] = []
    read = {c: positive(f"target.{c}", text, "a margin of error", faults) for c, text in targets.items() if text}
    wanted = {
        entry: margin
        for (_, column), entry in page.form.cells.items()
        if entry in chosen.budgets and (margin := read.get(column)) is not None
    }
    if not faults and not wanted:
        faults.append(Fault("targets", "type a margin of error for at least one level that is switched on"))
    faults += [
        Fault(f"target.{column}", "no useful noise has such a margin of error: it must be between 1e-6 and 1e12")
        for column, margin in read.items()
        if margin is not None and not Fraction(1, 10**6) <= margin <= 10**12
    ]
    if faults:
        raise RefusedError(faults)
    return _answered(settings, chosen, Question(margins=wanted))


@dataclass(frozen=True, slots=True)
class AskedTotal:
    """A total as it was typed: a loss, or an epsilon at the delta of the page by the exact law; one of them is ""."""

    loss: str
    epsilon: str = ""

    def read(self, delta: Fraction, faults: list[Fault]) -> Fraction | EpsilonTotal | None:
        """Understand it; None where there is a fault."""
        if self.loss and self.epsilon:
            faults.append(Fault("total_epsilon", "give a total or an epsilon, not both"))
            return None
        field, what = ("total_epsilon", "ε") if self.epsilon else ("total", "the total")
        spend = positive(field, self.epsilon or self.loss, what, faults)
        if spend is not None and not Fraction(1, 10**6) <= spend <= 10**9:
            faults.append(Fault(field, f"{what} must be between 1e-6 and 1e9"))
        return EpsilonTotal(spend, delta) if self.epsilon and spend is not None else spend


def equal(page: ProductPage, settings: Filled, chosen: Chosen, total: AskedTotal, weights: Mapping[str, str]) -> Filled:
    """The budgets of a total whose relative errors are equal, or in the proportion of weights by column."""
    faults: list[Fault] = []
    spend = total.read(chosen.delta, faults)
    read = {c: positive(f"weight.{c}", text, "a weight", faults) for c, text in weights.items() if text}
    faults += [
        Fault(f"weight.{column}", "a weight must be between 0.0001 and 10000")
        for column, weight in read.items()
        if weight is not None and not Fraction(1, 10**4) <= weight <= 10**4
    ]
    sizes = page.sizes(chosen)
    if unknown := [entry for entry in chosen.budgets if entry not in sizes]:
        message = f"no count is known to set the error of {unknown[0]} against; switch it off"
        faults.append(Fault("total", message))
    if faults or spend is None:
        raise RefusedError(faults)
    column_of = {entry: column for (_, column), entry in page.form.cells.items()}
    weighted = {entry: sizes[entry] / (read.get(column_of[entry]) or 1) for entry in chosen.budgets}
    question = Question(total=spend, sizes=weighted)
    if not isinstance(spend, EpsilonTotal):
        return _answered(settings, chosen, question)
    try:
        budgets, _ = page.product.spend_epsilon(chosen.config, question, chosen.accounting)
    except ConfigError as error:
        raise RefusedError([Fault("total_epsilon", str(error))]) from None
    return solved(settings, {name: Fraction(budgets[name]) for name in weighted})


def scaled(page: ProductPage, settings: Filled, chosen: Chosen, total: AskedTotal) -> Filled:
    """Every budget times the same, so that each pass costs at most the total, and the dearest exactly that."""
    faults: list[Fault] = []
    spend = total.read(chosen.delta, faults)
    if faults or spend is None:
        raise RefusedError(faults)
    if isinstance(spend, EpsilonTotal):
        delta = float(spend.delta)

        def epsilon_of(factor: Fraction) -> float | None:
            return page.product.epsilon_exact(chosen.config, chosen.plan, delta, factor)

        factor = scale_to(chosen.plan, float(spend.epsilon), delta, epsilon_of).factor
    else:
        factor = spend / Fraction(chosen.plan.loss())
    return solved(settings, {name: budget * factor for name, budget in chosen.budgets.items()})


def shared(page: ProductPage, settings: Filled, chosen: Chosen, shares: Mapping[str, str]) -> Filled:
    """The same total with other shares of columns; columns without one share the rest as they did."""
    faults: list[Fault] = []
    column_of = {entry: column for (_, column), entry in page.form.cells.items()}
    old: defaultdict[str, Fraction] = defaultdict(Fraction)
    for name, budget in chosen.budgets.items():
        old[column_of[name]] += budget
    given = {
        column: value / 100
        for column, text in shares.items()
        if text and (value := positive(f"share.{column}", text.removesuffix("%"), "a share", faults)) is not None
    }
    rest = Fraction(sum(budget for column, budget in old.items() if column not in given))
    if given or not faults:
        faults += _faults_of_shares(given, old)
    if faults:
        raise RefusedError(faults)
    total, left = Fraction(chosen.plan.loss()), 1 - sum(given.values())
    new = {c: total * given[c] if c in given else total * left * old[c] / rest for c in old}
    return solved(settings, {n: budget * new[column_of[n]] / old[column_of[n]] for n, budget in chosen.budgets.items()})


def _faults_of_shares(given: Mapping[str, Fraction], columns: Collection[str]) -> Iterator[Fault]:
    """What is wrong with shares of some of the columns that are switched on."""
    yield from (Fault(f"share.{c}", "nothing of this level is switched on") for c in given if c not in columns)
    together, all_given = sum(given.values()), set(columns) <= set(given)
    if not given:
        yield Fault("shares", "give the share of at least one level, in percent")
    elif together != 1 if all_given else together >= 1:
        wanted = "must be 100" if all_given else "must stay below 100"
        message = f"the shares given add up to {float(100 * together):g} percent; together they {wanted}"
        yield Fault("shares", message)


def _answered(settings: Filled, chosen: Chosen, question: Question) -> Filled:
    plan = chosen.plan
    try:
        found = solve(question, chosen.entries, plan.confidence, plan.mechanism, plan.margins)
    except ConfigError as error:
        raise RefusedError([Fault("total", str(error))]) from None
    wanted = question.sizes or question.margins
    return solved(settings, {name: Fraction(budget) for name, budget in found.items() if name in wanted})
