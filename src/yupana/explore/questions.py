"""Questions of the page: shares, a total, found strategies. Each is answered with settings, and in words."""

from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import Any, Final, Literal

from yupana.errors import ConfigError
from yupana.explore.effects import largest_error, sizes, solved, to_six_decimals
from yupana.explore.form import BudgetPage, Chosen, positive
from yupana.explore.scenario import Fault, Filled, RefusedError
from yupana.plan.budgets import Question, solve
from yupana.plan.exact_budget import scale_to
from yupana.plan.measurement import Mechanism, z_value
from yupana.products.strategy import LEAST, BudgetQuestion, Strategy, TableTargets, find_budgets
from yupana.report.numbers import percent
from yupana.topdown.configuration import Configuration

_LONGEST: Final = 60
"""Characters of a share of a budget, beyond which all but one of those that are scaled are rounded."""

_FEWEST: Final = Fraction(1, 10**14)
"""The least budget of an answer."""

_NEAR: Final = 0.9995
"""A strategy that brings less is none."""

_LOSSES: Final[Mapping[Literal["sum", "max"], str]] = {
    "sum": "the variances of the published counts together",
    "max": "the largest variance of a published count",
}


def offered(chosen: Chosen) -> list[str]:
    """The questions that have an answer here: some need several budgets, some zCDP."""
    zcdp, budgets = chosen.plan.mechanism is Mechanism.ZCDP, chosen.budgets
    several = ("equal", "least", *(_LOSSES if zcdp else ()))
    rough = any(budget != round(budget, 6) for budget in budgets.values())
    found = ("share", "total", *(("epsilon",) if zcdp else ()), *(several if len(budgets) > 1 else ()))
    return [*found, *(("round",) if rough else ())]


def answer(page: BudgetPage, settings: Filled, chosen: Chosen, asked: Mapping[str, Any]) -> tuple[Filled, str]:
    """Answer a question: the settings, and what was done, in words.

    Raises
    ------
    RefusedError
        If it is none, or cannot be answered.
    """
    question, value = asked.get("question"), asked.get("value", "")
    if not isinstance(value, str) or len(value) > 400:
        raise RefusedError([Fault("question", "its value must be a text")])
    value = value.strip()
    if question == "share":
        found = _shared(chosen, settings, _named(asked, chosen), value)
        return found, "The total is as it was."
    if question in ("total", "epsilon"):
        found = _scaled(page, settings, chosen, value, of_epsilon=question == "epsilon")
        return found, f"Every budget was scaled alike: {show(page.choose(found))}."
    if question == "equal":
        return _equal(page, settings, chosen)
    if question == "least":
        return _least(page, settings, chosen)
    for loss in _LOSSES:
        if question == loss:
            return _strategy(page, settings, chosen, loss)
    if question == "round":
        found = to_six_decimals(settings, chosen)
        return found, f"Rounded to six decimals, as in 2020: {show(page.choose(found))}."
    raise RefusedError([Fault("question", f"must be share, total, epsilon, equal, least, round, {', '.join(_LOSSES)}")])


def show(chosen: Chosen) -> str:
    """The total of a plan in words."""
    return f"{chosen.plan.mechanism.symbol} = {float(chosen.plan.loss()):.6f}"


def _named(asked: Mapping[str, Any], chosen: Chosen) -> Collection[str]:
    names = asked.get("names")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise RefusedError([Fault("share", "names must be a list of texts")])
    found = [name for name in names if name in chosen.entries]
    if not found:
        raise RefusedError([Fault("share", "nothing of it is switched on")])
    return found


def _shared(chosen: Chosen, settings: Filled, names: Collection[str], text: str) -> Filled:
    """The same total, of which some entries have so much together; the others share the rest as they did."""
    faults: list[Fault] = []
    share = positive("share", text.removesuffix("%"), "a share", faults)
    budgets = chosen.budgets
    here = Fraction(sum(budgets[name] for name in names))
    total = Fraction(sum(budgets.values()))
    if share is not None and (share >= 100 or here == total):
        faults.append(Fault("share", "must stay below 100 percent, and leave something else switched on"))
    if faults or share is None:
        raise RefusedError(faults)
    wanted = total * share / 100
    new = {
        name: budget * (wanted / here if name in names else (total - wanted) / (total - here))
        for name, budget in budgets.items()
    }
    return solved(settings, _brief(new, total))


def _brief(budgets: Mapping[str, Fraction], total: Fraction) -> dict[str, Fraction]:
    """Budgets of a total as they are, or where they grow long rounded, all but the largest; the total is kept."""
    if all(len(str(budget)) <= _LONGEST for budget in budgets.values()) and sum(budgets.values()) == total:
        return dict(budgets)
    largest = max(budgets, key=lambda name: budgets[name])
    found = {name: Fraction(f"{float(budget):.15g}") for name, budget in budgets.items()}
    found[largest] = Fraction(0)
    found[largest] = total - Fraction(sum(found.values()))
    return found


def _scaled(page: BudgetPage, settings: Filled, chosen: Chosen, text: str, *, of_epsilon: bool) -> Filled:
    """Every budget times the same, so that each pass costs at most the total, and the dearest exactly that."""
    faults: list[Fault] = []
    field, what = ("epsilon", "ε") if of_epsilon else ("total", "the total")
    spend = positive(field, text, what, faults)
    if spend is not None and not Fraction(1, 10**6) <= spend <= 10**9:
        faults.append(Fault(field, f"{what} must be between 1e-6 and 1e9"))
    if faults or spend is None:
        raise RefusedError(faults)
    if of_epsilon:
        delta = float(chosen.delta)

        def epsilon_of(factor: Fraction) -> float | None:
            return page.product.epsilon_exact(chosen.config, chosen.plan, delta, factor)

        try:
            factor, _ = scale_to(chosen.plan, float(spend), delta, epsilon_of)
        except ConfigError as error:
            raise RefusedError([Fault("epsilon", str(error))]) from None
        return solved(settings, {name: budget * factor for name, budget in chosen.budgets.items()})
    factor = spend / Fraction(chosen.plan.loss())
    scaled = {name: budget * factor for name, budget in chosen.budgets.items()}
    return solved(settings, _brief(scaled, Fraction(sum(scaled.values()))))


def _solved(settings: Filled, chosen: Chosen, question: Question) -> Filled:
    plan = chosen.plan
    try:
        found = solve(question, chosen.entries, plan.confidence, plan.mechanism, "bureau")
    except ConfigError as error:
        raise RefusedError([Fault("question", str(error))]) from None
    except (OverflowError, ValueError):
        raise RefusedError([Fault("question", "so large a budget leaves next to no noise to share out")]) from None
    wanted = question.sizes or question.margins
    # Less would be noise beyond all use, which configurations refuse.
    budgets = {name: max(Fraction(budget), _FEWEST) for name, budget in found.items() if name in wanted}
    total = sum(Fraction(budget) for name, budget in found.items() if name in wanted)
    return solved(settings, _brief(budgets, Fraction(total if question.total else sum(budgets.values()))))


def _equal(page: BudgetPage, settings: Filled, chosen: Chosen) -> tuple[Filled, str]:
    """The same total with the least largest error."""
    of, relative = sizes(chosen)
    before = largest_error(chosen)
    found = _solved(settings, chosen, Question(total=Fraction(chosen.plan.loss()), sizes=of))
    after = largest_error(page.choose(found))
    return (
        found,
        f"For the same total the largest margin falls from {_said(before, relative)} to {_said(after, relative)}.",
    )


def _least(page: BudgetPage, settings: Filled, chosen: Chosen) -> tuple[Filled, str]:
    """The same largest error for the least total."""
    of, _ = sizes(chosen)
    largest = max(chosen.sigmas[name] / float(size) for name, size in of.items())
    z = Fraction(z_value(chosen.plan.confidence))
    margins = {name: z * Fraction(largest) * size for name, size in of.items()}
    found = _solved(settings, chosen, Question(margins=margins))
    return found, f"With the same largest margin the total falls from {show(chosen)} to {show(page.choose(found))}."


def _said(error: float, relative: bool) -> str:  # noqa: FBT001 (two ways to say one number)
    return percent(error, 1) if relative else f"{error:,.1f}"


def _strategy(page: BudgetPage, settings: Filled, chosen: Chosen, loss: Literal["sum", "max"]) -> tuple[Filled, str]:
    """The budgets of the same total with which published counts vary least."""
    found: Strategy[Any]
    try:
        if isinstance(chosen.config, Configuration):
            # Its loops are compiled, and not every installation has the compiler.
            from yupana.products.topdown.strategy import default_targets, find_strategy, usual_least  # noqa: PLC0415

            targets = default_targets(chosen.config)
            found = find_strategy(chosen.config, targets, loss, usual_least(chosen.config, targets))
        else:
            question = BudgetQuestion(TableTargets(), loss, LEAST, None)
            found = find_budgets(page.product, chosen.config, chosen.plan, question)
    except ConfigError as error:
        raise RefusedError([Fault("question", str(error))]) from None
    entries = page.product.entries(found.found, chosen.accounting)
    new = solved(settings, {name: Fraction(entry.budget) for name, entry in entries.items() if name in chosen.entries})
    fell = found.found_loss / found.given_loss if found.given_loss else 1.0
    if fell > _NEAR:
        return new, f"These budgets are the best already: {_LOSSES[loss]} cannot fall for this total."
    return new, f"For the same total, {_LOSSES[loss]} fall{'s' * (loss == 'max')} to {percent(fell, 1)} of before."
