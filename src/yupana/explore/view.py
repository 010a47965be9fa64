"""What the page shows for settings: every number computed here, by the library, and sent as text."""

import csv
import io
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from yupana.explore.form import Chosen, ProductPage
from yupana.explore.scenario import Filled, Typed
from yupana.plan.measurement import Mechanism
from yupana.plan.plan import Plan, compose
from yupana.privacy.exact import Budget, show_exact
from yupana.privacy.zcdp import epsilon_bun_steinke, epsilon_tight
from yupana.report.html import Html, table
from yupana.report.numbers import loss, percent, rounded
from yupana.report.page import NARROW, WIDE, Chart, Figure, Section, chart_table, legend

_CHANGES: Final = {
    "unbounded": "one {unit} added or removed (unbounded)",
    "same_household": "one {unit} changed, staying in its household",
    "bounded": "one {unit} changed in any way (bounded)",
}
_SHORT: Final = 12
"""Characters of a budget that is shown as it was typed."""

_DIGITS: Final = 6
"""Digits after the point of budgets, as in 2020."""


def view(
    page: ProductPage, settings: Filled, chosen: Chosen, against: tuple[str, Filled, Chosen], *, narrow: bool
) -> dict[str, Any]:
    """Everything the page shows.

    Parameters
    ----------
    page : ProductPage
    settings : Filled
    chosen : Chosen
        The same, understood.
    against : (name, Filled, Chosen)
        The scenario beside it.
    narrow : bool
        Whether charts are drawn for a telephone.
    """
    of_pass: defaultdict[str, Fraction] = defaultdict(Fraction)
    for entry in chosen.entries.values():
        of_pass[entry.population] += Fraction(entry.budget)
    population = {name: entry.population for name, entry in chosen.entries.items()}
    return {
        "total": show_exact(chosen.plan.loss()),
        "numbers": [*totals(chosen), _number(exact_label(chosen), "…", "", "is being computed")],
        "entries": {
            name: _entry(typed, chosen, name, of_pass[population.get(name, "")])
            for name, typed in settings.entries.items()
        },
        "sections": [
            *(section_as_json(section, narrow=narrow) for section in page.sections(settings, chosen)),
            _comparison(chosen, against, totals(chosen), totals(against[2])),
        ],
    }


def exact_view(page: ProductPage, chosen: Chosen, against: tuple[str, Filled, Chosen]) -> dict[str, Any]:
    """What of `view` needs the exact law of the loss, which takes longer: the losses, and the comparison with them.

    The epsilon is that of any run of the configuration: of TopDown whichever geounits the spine bypasses.
    """
    here, there = ([*totals(of), _exact(page, of)] for of in (chosen, against[2]))
    return {"numbers": here, "sections": [_comparison(chosen, against, here, there)]}


def exact_label(chosen: Chosen) -> str:
    """What the epsilon by the exact law is called."""
    return f"ε at δ = {float(chosen.delta):g}, exact"


def _exact(page: ProductPage, chosen: Chosen) -> dict[str, str]:
    label, plan = exact_label(chosen), chosen.plan
    found = page.product.epsilon_exact(chosen.config, plan, float(chosen.delta))
    if found is None:
        return _number(label, "none", "", "the exact law of the loss gives no bound here")
    note = f"{plan.neighbours.value}, of any run, by the exact law of the loss and what is proven of neighbours"
    return _number(label, rounded(found, 5), repr(found), note)


def totals(chosen: Chosen) -> list[dict[str, str]]:
    """The losses of a plan: label, number as shown, number in full, and a note."""
    plan = chosen.plan
    symbol = plan.mechanism.symbol
    found = []
    for kind, promised in plan.losses().items():
        if promised is None:
            continue
        proven = _proven(plan, kind)
        note = _CHANGES[kind].format(unit=plan.privacy_unit)
        if proven != promised:
            note += f"; proven at most {loss(proven)}"
        label = {"unbounded": "unbounded", "bounded": "bounded", "same_household": "within a household"}[kind]
        found.append(_number(f"{symbol}, {label}", loss(promised), show_exact(promised), note))
    for name, measurements in plan.passes.items():
        if len(plan.passes) > 1:
            own = compose(measurements)
            note = f"of the {name.upper()} pass alone; the two passes protect different people and are never added"
            found.append(_number(f"{symbol}, {name.upper()}", loss(own), show_exact(own), note))
    if plan.mechanism is Mechanism.ZCDP:
        delta = float(chosen.delta)
        tight, simple = epsilon_tight(plan.loss(), delta), epsilon_bun_steinke(plan.loss(), delta)
        note = f"{plan.neighbours.value}, tight conversion; the simple one gives {rounded(simple, 5)}"
        found.append(_number(f"ε at δ = {delta:g}", rounded(tight, 5), repr(tight), note))
    return found


def _proven(plan: Plan, kind: str) -> Budget:
    return plan.loss(lambda m: getattr(m.proven, kind))


def _number(label: str, shown: str, exact: str, note: str) -> dict[str, str]:
    return {"label": label, "shown": shown, "exact": exact, "note": note}


def _entry(entry: Typed, chosen: Chosen, name: str, of_pass: Fraction) -> dict[str, Any]:
    budget = chosen.budgets.get(name)
    if not entry.on or budget is None:
        return {"on": entry.on, "budget": "", "budget_exact": "", "margin": "", "margin_exact": "", "share": ""}
    margin = chosen.margins[name]
    value = entry.value.strip()
    typed = value if len(value) <= _SHORT and "/" not in value else ""
    return {
        "on": True,
        "budget": (entry.by == "budget" and typed) or short(budget),
        "budget_exact": show_exact(budget),
        "margin": (entry.by == "margin" and typed) or rounded(margin, 5).replace(",", ""),
        "margin_exact": repr(margin),
        "share": percent(float(budget / of_pass), 2),
    }


def short(budget: Fraction) -> str:
    """A budget to six decimals, as in 2020, or to six digits where that is too few."""
    return f"{float(budget):.{_DIGITS}f}" if budget >= Fraction(1, 10**5) else f"{float(budget):.{_DIGITS}g}"


def section_as_json(section: Section, *, narrow: bool, wide: int = WIDE) -> dict[str, Any]:
    """A section as the page reads it; ``wide`` is the width of its charts where there is room."""
    return {
        "anchor": section.anchor,
        "title": section.title,
        "content": [
            _figure(part, NARROW if narrow else wide) if isinstance(part, Figure) else {"html": part}
            for part in section.content
        ],
    }


def _figure(figure: Figure, width: int) -> dict[str, Any]:
    """A figure whose charts the page draws itself, of the specifications that the reports draw."""
    width = NARROW if len(figure.charts) > 1 else width

    def chart(of: Chart) -> dict[str, Any]:
        return {"title": of.title, "label": of.label, "spec": of.spec(width)}

    return {
        "charts": [chart(of) for of in figure.charts],
        "legend": legend(figure.legend),
        "caption": figure.caption,
        "numbers": Html("").join(map(chart_table, figure.charts)),
    }


def _comparison(
    chosen: Chosen, against: tuple[str, Filled, Chosen], here: list[dict[str, str]], there: list[dict[str, str]]
) -> dict[str, Any]:
    """Two scenarios side by side: the totals of both, then every budget and margin that differs."""
    name, _, other = against
    rows, both = list(_differences(chosen, other)), _both(here, there)
    content: list[Html] = [
        table(
            {
                "Total": [n["label"] for n in both],
                "Here": [n["here"] for n in both],
                name: [n["there"] for n in both],
                "Change": [n["change"] for n in both],
            },
            f"Totals here and in {name}",
        )
    ]
    if rows:
        heads = ("Budget", "Here", name, "Change", "Margin here", f"Margin, {name}", "Change of margin")
        columns: dict[str, Sequence[object]] = (
            dict(zip(heads, zip(*rows, strict=True), strict=True)) if name not in heads[:2] else {}
        )
        content.append(table(columns, f"What differs from {name}, budget by budget"))
    else:
        content.append(Html("<p>No budget or margin differs from {}.</p>").format(name))
    return {
        "anchor": "against",
        "title": f"Side by side: here and {name}",
        "content": [{"html": part} for part in content],
    }


def _both(here: list[dict[str, str]], others: list[dict[str, str]]) -> list[dict[str, str]]:
    there = {n["label"]: n for n in others}
    found = []
    for n in here:
        theirs = there.get(n["label"])
        known = theirs is not None and n["exact"] and theirs["exact"]
        change = _change(_float(n["exact"]), _float(theirs["exact"])) if theirs is not None and known else ""
        found.append(
            {"label": n["label"], "here": n["shown"], "there": theirs["shown"] if theirs else "–", "change": change}
        )
    return found


def _float(exact: str) -> float:
    return float(Fraction(exact)) if exact != "Infinity" else float("inf")


def _differences(chosen: Chosen, other: Chosen) -> Iterator[tuple[str, ...]]:
    for name in dict.fromkeys((*chosen.budgets, *other.budgets)):
        mine, theirs = chosen.budgets.get(name), other.budgets.get(name)
        margin, their_margin = chosen.margins.get(name), other.margins.get(name)
        if mine == theirs and margin == their_margin:
            continue
        yield (
            name,
            "not measured" if mine is None else short(mine),
            "not measured" if theirs is None else short(theirs),
            "" if mine is None or theirs is None else _change(float(mine), float(theirs)),
            "–" if margin is None else rounded(margin, 5),
            "–" if their_margin is None else rounded(their_margin, 5),
            "" if margin is None or their_margin is None else _change(margin, their_margin),
        )


def _change(here: float, there: float) -> str:
    if here == there:
        return "none"
    if not there or abs(here / there - 1) > 9:
        return f"×{rounded(here / there, 3)}" if there else ""
    return f"{100 * (here / there - 1):+.2f}%".replace("-", "−")


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
    """Filled with the budgets of an answer."""
    return settings.with_entries(
        {name: Typed(on=True, by="budget", value=show_exact(budget)) for name, budget in budgets.items()}
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
