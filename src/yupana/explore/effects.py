"""What follows from settings: every number is computed here, by the library, and sent as text."""

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final

import numpy as np

from yupana.audit.attribute.bounds import bounds
from yupana.audit.certificate import CHANGES, OF_HOUSEHOLD, PlanNoise
from yupana.audit.tradeoff import pure_guess, zcdp_guess
from yupana.errors import BudgetError
from yupana.explore.form import BudgetPage, Chosen
from yupana.explore.scenario import Filled, RefusedError, Typed
from yupana.plan.account import Unit
from yupana.plan.budgets import least_error
from yupana.plan.measurement import Mechanism, z_value
from yupana.plan.plan import Plan, compose
from yupana.privacy.exact import INFINITE, Budget, read_exact, show_exact
from yupana.privacy.zcdp import epsilon_tight
from yupana.products.phsafe.product import PHSAFE
from yupana.products.safetab.product import SafetabProduct
from yupana.report.numbers import at_most, loss, percent, rounded

_DIGITS: Final = 6
"""Digits after the point of budgets, as in 2020."""

_SHORT: Final = 12
"""Characters of a budget that is shown as it was typed."""

_STEPS: Final = 25
_REACH: Final = 32
"""Totals of the frontier: so many, from so much less to so much more than a configuration begins with."""

_CERTAIN: Final = 20
"""Of a loss above nothing is computed: nobody is right more often than always, and less is hardly promised."""

_NAMED: Final = 60
"""Areas and tables that are named; the rest are counted."""


def view(page: BudgetPage, filled: Filled, chosen: Chosen) -> dict[str, Any]:
    """Everything the page shows of a scenario at once."""
    unreliable = unreliable_counts(chosen)
    return {
        "total": show_exact(chosen.plan.loss()),
        "symbol": chosen.plan.mechanism.symbol,
        "confidence": f"{float(100 * chosen.plan.confidence):g}%",
        "numbers": totals(chosen),
        "words": list(_words(page, chosen)),
        "entries": _entries(filled, chosen),
        "groups": {kind: _shares(page, chosen, kind) for kind in ("table", "level")},
        "frontier": frontier(page, chosen),
        "unreliable": unreliable | {"new": _new(chosen, page.first)},
        "against_release": list(chosen.plan.against_release),
    }


def exact_view(page: BudgetPage, chosen: Chosen) -> dict[str, Any]:
    """What takes longer: the epsilon of any run by the exact law, and what is lost about single attributes."""
    plan = chosen.plan
    return {
        "exact": _exact_epsilon(page, chosen) if plan.mechanism is Mechanism.ZCDP else None,
        "attributes": [
            {"name": name, "loss": loss(value), "exact": show_exact(value), "guess": _guess(plan.mechanism, value)}
            for name, value in _attributes(page, chosen)
        ],
    }


def _exact_epsilon(page: BudgetPage, chosen: Chosen) -> dict[str, str]:
    delta = float(chosen.delta)
    found = page.product.epsilon_exact(chosen.config, chosen.plan, delta)
    shown, exact = ("none", "") if found is None else (rounded(found, 5), repr(found))
    return number(f"ε at δ = {delta:g}, exact", shown, exact, "of any run, by the exact law of the loss")


def number(label: str, shown: str, exact: str, note: str) -> dict[str, str]:
    """A number as it is shown, and in full."""
    return {"label": label, "shown": shown, "exact": exact, "note": note}


def totals(chosen: Chosen) -> list[dict[str, str]]:
    """The losses of a plan: label, number as shown, number in full, and what it is the loss of."""
    plan, symbol = chosen.plan, chosen.plan.mechanism.symbol
    found = []
    labels = {"unbounded": "unbounded", "bounded": "bounded", "same_household": "within a household"}
    for kind, promised in plan.losses().items():
        if promised is not None:
            proven = plan.loss(lambda m, kind=kind: getattr(m.proven, kind))  # type: ignore[misc]
            note = CHANGES[kind].format(unit=plan.privacy_unit)
            note += f"; proven at most {loss(proven)}" if proven != promised else ""
            found.append(number(f"{symbol}, {labels[kind]}", loss(promised), show_exact(promised), note))
    for name, measurements in plan.passes.items():
        if len(plan.passes) > 1:
            own = compose(measurements)
            note = "the two passes protect different people and are never added"
            found.append(number(f"{symbol}, {name.upper()}", loss(own), show_exact(own), note))
    if plan.mechanism is Mechanism.ZCDP:
        delta = float(chosen.delta)
        tight = epsilon_tight(plan.loss(), delta)
        note = f"{plan.neighbours.value}, by the tight conversion"
        found.append(number(f"ε at δ = {delta:g}", rounded(tight, 5), repr(tight), note))
    return found


def _words(page: BudgetPage, chosen: Chosen) -> Iterator[dict[str, Any]]:
    """What the best attacker gains about a record and a household: how often a guess is right at most."""
    plan = chosen.plan
    kind = plan.neighbours.value
    told = _guess_of(plan, adaptive=page.product.is_adaptive(plan))
    yield {"of": plan.privacy_unit, "change": CHANGES[kind].format(unit=plan.privacy_unit), "guess": at_most(told)}
    try:
        of_household = Unit("household", chosen.household).losses(plan)
    except BudgetError as error:
        yield {"of": "household", "change": str(error), "guess": ""}
        return
    lost = of_household.get(kind)
    if lost is not None:
        changed = OF_HOUSEHOLD[kind].format(cap=chosen.household)
        yield {"of": f"household of {chosen.household}", "change": changed, "guess": _guess(plan.mechanism, lost)}


def _guess_of(plan: Plan, *, adaptive: bool) -> float:
    """Of the plan's own neighbours, by the smallest loss that is proven."""
    kind = plan.neighbours.value
    return PlanNoise(plan, adaptive).guess(plan.loss(lambda m: getattr(m.proven, kind)))


@lru_cache(maxsize=256)
def _guess(mechanism: Mechanism, value: Budget) -> str:
    """How often a guess is right at most, for a loss."""
    if value == INFINITE or value > _CERTAIN:
        return at_most(1.0)
    return at_most(pure_guess(float(value)) if mechanism is Mechanism.PURE else zcdp_guess(value))


def _attributes(page: BudgetPage, chosen: Chosen) -> Iterator[tuple[str, Budget]]:
    """The most that is lost where one record differs in one attribute only, or is moved within a geounit."""
    product, plan = page.product, chosen.plan
    if page.product.key == PHSAFE.key or isinstance(product, SafetabProduct):
        yield from product.by_attribute(plan, product.document(chosen.config)).items()
        return
    for bound in bounds(product, chosen.config, plan):
        if len(bound.attributes) < 2:
            name = ", ".join(bound.attributes) or f"block within its {bound.within.replace('_', ' ').lower()}"
            yield name, bound.loss


def _entries(filled: Filled, chosen: Chosen) -> dict[str, Any]:
    of_pass: defaultdict[str, Fraction] = defaultdict(Fraction)
    for entry in chosen.entries.values():
        of_pass[entry.population] += Fraction(entry.budget)
    known = chosen.known
    found = {}
    for name, typed in filled.entries.items():
        spent = chosen.entries.get(name)
        if not typed.on or spent is None:
            found[name] = {"on": typed.on, "budget": "", "budget_exact": "", "margin": "", "margin_exact": ""}
            continue
        margin, budget = chosen.margins[name], Fraction(spent.budget)
        value = typed.value.strip()
        shown = value if len(value) <= _SHORT and "/" not in value else ""
        found[name] = {
            "on": True,
            "budget": (typed.by == "budget" and shown) or short(budget),
            "budget_exact": show_exact(budget),
            "margin": (typed.by == "margin" and shown) or _in_records(margin).replace(",", ""),
            "margin_exact": repr(margin),
            "share": percent(float(budget / of_pass[spent.population]), 2),
            "least": _in_records(float(margin / chosen.reliable)),
            "typical": f"{int(known[name].typical):,}" if name in known else "",
        }
    return found


def _in_records(value: float) -> str:
    """A margin as it is, where it is whole, or to five digits."""
    return f"{int(value):,}" if value == int(value) else rounded(value, 5)


def short(budget: Fraction) -> str:
    """A budget to six decimals, as in 2020, or to six digits where that is too few."""
    return f"{float(budget):.{_DIGITS}f}" if budget >= Fraction(1, 10**5) else f"{float(budget):.{_DIGITS}g}"


def _shares(page: BudgetPage, chosen: Chosen, kind: str) -> dict[str, dict[str, str]]:
    """What tables, or levels, have of the whole: in percent, and as a budget."""
    spent: defaultdict[str, Fraction] = defaultdict(Fraction)
    for name, budget in chosen.budgets.items():
        spent[getattr(page.places[name], kind)] += budget
    whole = sum(spent.values())
    return {
        group: {"share": f"{float(100 * value / whole):.4g}", "exact": show_exact(100 * value / whole)}
        for group, value in spent.items()
    }


def sizes(chosen: Chosen) -> tuple[Mapping[str, Fraction], bool]:
    """What standard deviations are divided by, and whether that is a typical count: else it is 1."""
    known = chosen.known
    if any(name in known for name in chosen.entries):
        return {name: known[name].typical for name in chosen.entries if name in known}, True
    return dict.fromkeys(chosen.entries, Fraction(1)), False


def largest_error(chosen: Chosen) -> float:
    """The largest margin of error, z times sigma, over its typical count, or in records where none is known."""
    of, _ = sizes(chosen)
    return max(z_value(chosen.plan.confidence) * chosen.sigmas[name] / float(size) for name, size in of.items())


def frontier(page: BudgetPage, chosen: Chosen) -> dict[str, Any]:
    """The least that the largest margin can be for each total loss, and where this scenario stands."""
    of, relative = sizes(chosen)
    kept = float(sum(budget for name, budget in chosen.budgets.items() if name not in of))
    z, total, began = z_value(chosen.plan.confidence), float(chosen.plan.loss()), float(page.first.plan.loss())

    def least(spent: float) -> float | None:
        """For a total; each population spends it."""
        errors = []
        for population in {chosen.entries[name].population for name in of}:
            here = {name: size for name, size in of.items() if chosen.entries[name].population == population}
            errors.append(least_error(chosen.entries, here, spent, chosen.plan.mechanism) if spent > 0 else None)
        return None if None in errors else z * max(error for error in errors if error is not None)

    at = [float(f"{began * _REACH ** (2 * i / (_STEPS - 1) - 1):.6g}") for i in range(_STEPS)]
    return {
        "relative": relative,
        "curve": [[spent + kept, error] for spent in at if (error := least(spent)) is not None],
        "here": [total, largest_error(chosen)],
        "best": least(total - kept),
    }


def unreliable_counts(chosen: Chosen) -> dict[str, Any]:
    """Which tables and areas have counts whose margin is too large a part of them, by name."""
    known = {name: chosen.known[name] for name in chosen.entries if name in chosen.known}
    least = {name: chosen.margins[name] / float(chosen.reliable) for name in known}
    rows = [(name, of.below(least[name]), of.total) for name, of in known.items()]
    names = next((of.names for of in known.values()), ())
    areas: list[tuple[str, int, int]] = []
    if names:
        below = np.sum([of.by_area(least[name]) for name, of in known.items()], axis=0)
        every = np.sum([of.by_area() for of in known.values()], axis=0)
        areas = [*zip(names, below.tolist(), every.tolist(), strict=True)]
    return {
        "known": sum(total for *_, total in rows),
        "unreliable": sum(below for _, below, _ in rows),
        "tables": [name for name, below, total in rows if 2 * below > total],
        "rows": _worst(sorted(rows, reverse=True)),
        "areas": _worst(areas),
    }


def _worst(found: Iterable[tuple[str, int, int]]) -> list[dict[str, Any]]:
    """Names with how many counts are too small, of how many: those with the largest part, in the order given."""
    some = [(below / total, name, below, total) for name, below, total in found if below]
    return [
        {"name": name, "share": percent(part, 1), "part": part, "number": f"{below:,}", "of": f"{total:,}"}
        for part, name, below, total in sorted(some, key=itemgetter(0), reverse=True)[:_NAMED]
    ]


def _new(chosen: Chosen, start: Chosen) -> list[str]:
    """Which tables are unreliable that were not at the start: where more than half of the counts are."""
    return [
        name
        for name, margin in chosen.margins.items()
        if _is_unreliable(name, chosen, margin)
        and not (name in start.margins and _is_unreliable(name, start, start.margins[name]))
    ]


def _is_unreliable(name: str, chosen: Chosen, margin: float) -> bool:
    known = chosen.known.get(name)
    return known is not None and 2 * known.below(margin / float(chosen.reliable)) > known.total


def compare(page: BudgetPage, scenarios: Sequence[tuple[str, Filled]]) -> dict[str, Any]:
    """Scenarios as columns: totals, shares, and every budget that is not the same in all; changes from the first."""
    chosen: list[Chosen | None] = []
    for _, filled in scenarios:
        try:
            chosen.append(page.choose(filled))
        except RefusedError:
            chosen.append(None)
    rows = [*_rows_of_totals(page, chosen), *_rows_of_budgets(page, chosen)]
    return {
        "names": [name for name, _ in scenarios],
        "refused": [name for (name, _), of in zip(scenarios, chosen, strict=True) if of is None],
        "points": [None if of is None else [float(of.plan.loss()), largest_error(of)] for of in chosen],
        "rows": rows,
    }


def _row(label: str, part: str, values: Sequence[float | None], shown: Sequence[str]) -> dict[str, Any]:
    first = next(iter(values))
    changes = ["", *(_change(one, first) if one is not None and first is not None else "" for one in values[1:])]
    return {"label": label, "part": part, "shown": list(shown), "changes": changes}


def _rows_of_totals(page: BudgetPage, chosen: Sequence[Chosen | None]) -> Iterator[dict[str, Any]]:
    by_label: dict[str, list[tuple[float | None, str]]] = {}
    for place, of in enumerate(chosen):
        if of is None:
            continue
        told = [(n["label"], float(read_exact(n["exact"])), n["shown"]) for n in totals(of)]
        guess = _guess_of(of.plan, adaptive=page.product.is_adaptive(of.plan))
        told.append((f"Best guess about one {of.plan.privacy_unit}, right at most", guess, at_most(guess)))
        error, relative = largest_error(of), sizes(of)[1]
        label = "Largest margin of a typical count" if relative else "Largest margin of error"
        told.append((label, error, percent(error, 1) if relative else rounded(error, 4)))
        found = unreliable_counts(of)
        if found["known"]:
            part = found["unreliable"] / found["known"]
            told.append(("Unreliable counts", part, percent(part, 1)))
        for label, value, shown in told:
            by_label.setdefault(label, [(None, "–")] * len(chosen))[place] = (value, shown)
    for label, cells in by_label.items():
        yield _row(label, "totals", [value for value, _ in cells], [shown for _, shown in cells])


def _rows_of_budgets(page: BudgetPage, chosen: Sequence[Chosen | None]) -> Iterator[dict[str, Any]]:
    for name in page.places:
        budgets = [None if of is None else of.budgets.get(name) for of in chosen]
        margins = [None if of is None else of.margins.get(name) for of in chosen]
        usable = [place for place, of in enumerate(chosen) if of is not None]
        if len({(budgets[place], margins[place]) for place in usable}) > 1:
            place = page.places[name]
            label = f"{page.label_of_table(place.table)}; {page.label_of_level(place.level)}"
            yield _row(label, "margins", margins, ["off" if m is None else f"± {_in_records(m)}" for m in margins])


def _change(here: float, there: float) -> str:
    if here == there:
        return "="
    if not there or abs(here / there - 1) > 9:
        return f"×{rounded(here / there, 3)}" if there else ""
    return f"{100 * (here / there - 1):+.3g}%".replace("-", "−")


def as_csv(plan: Plan) -> str:
    """The measurements of a plan, one a line; budgets and variances in full and as decimals."""
    budget, sensitivity = ("RHO", "L2_SQUARED") if plan.mechanism is Mechanism.ZCDP else ("EPSILON", "L1")
    rows = [
        {
            "MEASUREMENT": m.name,
            "TABLE": m.table,
            "LEVEL": m.level,
            "CELLS": m.cells,
            sensitivity: m.calibration,
            budget: float(m.budget),
            f"{budget}_EXACT": show_exact(m.budget),
            "VARIANCE": float(m.variance),
            "SIGMA": m.sigma,
            f"MOE_{float(100 * plan.confidence):g}": plan.margin(m),
        }
        for m in plan.measurements
    ]
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def solved(settings: Filled, budgets: Mapping[str, Fraction]) -> Filled:
    """Settings with the budgets of an answer; those of 0 are switched off."""
    return settings.with_entries(
        {
            name: Typed(on=True, by="budget", value=show_exact(budget))
            if budget
            else Typed(on=False, by="budget", value=settings.entries[name].value)
            for name, budget in budgets.items()
        }
    )


def to_six_decimals(settings: Filled, chosen: Chosen) -> Filled:
    """The form with budgets rounded as those of 2020 were, to the nearest; but none becomes 0."""
    least = Fraction(1, 10**_DIGITS)
    rounded_budgets = {name: max(round(budget, _DIGITS), least) for name, budget in chosen.budgets.items()}
    return settings.with_entries(
        {
            name: Typed(on=True, by="budget", value=f"{float(budget):.{_DIGITS}f}")
            for name, budget in rounded_budgets.items()
        }
    )
