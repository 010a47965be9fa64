"""What a plan says in words and pictures: loss, budgets, margins of error, acceptance criteria. Needs no data."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from yupana.plan.exact_loss import CHANGES, epsilon_exact
from yupana.plan.measurement import Measurement, Mechanism, Sensitivity, margin_words
from yupana.plan.plan import DEFAULT_DELTA, Plan
from yupana.privacy.exact import Budget
from yupana.privacy.zcdp import epsilon_tight
from yupana.products import PRODUCTS
from yupana.products.described.criteria import verdicts
from yupana.products.phsafe.product import PHSAFE
from yupana.products.phsafe.specification import DERIVED
from yupana.products.safetab.specification import DETAILED_ONLY
from yupana.report.charts import SERIES, Mark, log_dots, stacked_bars
from yupana.report.numbers import confidence_percent, loss, percent, rounded, whole
from yupana.report.page import Chart, Figure, Section, sections

LEVELS: Final = {
    key: Mark(words, colour, shape)
    for (key, words), colour, shape in zip(
        PHSAFE.words.levels.items(),
        SERIES,
        ("circle", "diamond", "triangle-up") * 2,
        strict=False,
    )
}
"""Levels of PHSafe as they are called and drawn: a family of colours by region, a shape by iterations."""

_CHANGES: Final = {
    "unbounded": "One person is added or removed (unbounded)",
    "same_household": "One person is changed and stays in the household",
    "bounded": "One person is changed in any way (bounded)",
}


@dataclass(frozen=True, slots=True)
class Line:
    """A measurement in the pictures of a plan: the row it stands in, and its mark there."""

    measurement: Measurement
    row: str
    mark: Mark


def pictures(
    plan: Plan, lines: Sequence[Line], marks: Iterable[Mark], heads: tuple[str, str], beside: str = ""
) -> dict[str, Figure]:
    """The pictures of the budgets and of the margins of error of a plan whose budgets are finite.

    Parameters
    ----------
    plan : Plan
    lines : sequence of Line
        Measurements left out are not drawn.
    marks : iterable of Mark
        In the order of the legend; those of no line are left out.
    heads : pair of str
        What rows and marks are called: ``table`` and ``level``.
    beside : str, optional
        A mark whose budgets are not added to the others of a row, because no record meets both: left out of the bars.

    Returns
    -------
    mapping of "budget" and "margins" to Figure
    """
    marks = tuple(mark for mark in marks if any(line.mark == mark for line in lines))
    squares = tuple(replace(mark, shape="square") for mark in marks if mark.name != beside)
    confidence, symbol = confidence_percent(plan.confidence), plan.mechanism.symbol
    measured = [line.measurement for line in lines]
    budgets = [
        {"category": line.row, "series": line.mark.name, "value": float(line.measurement.budget)}
        for line in lines
        if line.mark.name != beside
    ]
    margins = [
        {"category": line.row, "series": line.mark.name, "value": plan.margin(line.measurement)} for line in lines
    ]
    total = plan.loss()
    adds_up = sum(m.budget for m in measured) == total
    data: dict[str, list[object]] = {
        heads[0].capitalize(): [line.row for line in lines],
        heads[1].capitalize(): [line.mark.name for line in lines],
        symbol: [loss(m.budget) for m in measured],
        **({"Share": [percent(float(m.budget) / float(total), 3) for m in measured]} if adds_up else {}),
        "Cells": [whole(m.cells) for m in measured],
        "σ": [rounded(m.sigma, 5) for m in measured],
        f"Margin at {confidence}": [rounded(plan.margin(m), 5) for m in measured],
        "10% of a count of": [whole(10 * plan.margin(m)) for m in measured],
    }
    of = " and ".join(heads)

    def axis(width: int) -> str:
        told = f" at {confidence} confidence, in people or units" if width > 500 else f", {confidence}"
        return f"margin of error{told} (log scale)"

    bars = Chart(
        f"The privacy budget {symbol} by {of}.",
        lambda width: stacked_bars(budgets, squares, width, axis=f"budget {symbol}"),
        data,
    )
    dots = Chart(
        f"The {confidence} margin of error of a single count, by {of}.",
        lambda width: log_dots(margins, marks, width, axis=axis(width)),
        data,
    )
    return {"budget": Figure((bars,), legend=squares), "margins": Figure((dots,), legend=marks)}


def losses(plan: Plan) -> dict[str, tuple[Budget, Budget]]:
    """The total loss of a plan by kind of neighbours, by its own accounting and by the smallest bounds proven."""

    def total(pick: Callable[[Measurement], Sensitivity], kind: str) -> Budget:
        return plan.loss(lambda m: getattr(pick(m), kind))

    return {kind: (total(lambda m: m.sensitivity, kind), total(lambda m: m.proven, kind)) for kind in _CHANGES}


def plan_sections(plan: Plan) -> tuple[Section, ...]:
    """The parts of a report on PHSafe that follow from a plan alone, and so may be published with a release.

    Returns
    -------
    tuple of Section
        The privacy loss, the budget by table and level, and the margins of error. Without budgets that are finite
        there is no noise, and only the first.
    """
    if not plan.is_finite:
        return sections("plan_phsafe.html", plan=plan)
    zcdp = plan.mechanism is Mechanism.ZCDP
    symbol, rows = plan.mechanism.symbol, losses(plan)
    columns: dict[str, list[str]] = {
        "How two censuses differ": [_CHANGES[kind] for kind in rows],
        f"{symbol}, promised": [loss(promised) for promised, _ in rows.values()],
        f"{symbol}, proven at most": [loss(proven) for _, proven in rows.values()],
    }
    if zcdp:
        columns["ε, promised"] = [rounded(epsilon_tight(rho, DEFAULT_DELTA), 4) for rho, _ in rows.values()]
        columns["ε, proven at most"] = [rounded(epsilon_tight(rho, DEFAULT_DELTA), 4) for _, rho in rows.values()]
        exact: dict[str, float | None] = {kind: epsilon_exact(plan, change=kind) for kind in CHANGES}
        columns["ε, exact law"] = ["none" if (of := exact[kind]) is None else rounded(of, 4) for kind in rows]
    most = max(plan.measurements, key=lambda m: m.budget)
    lines = [Line(m, m.table, LEVELS[m.level]) for m in plan.measurements]
    return sections(
        "plan_phsafe.html",
        plan=plan,
        zcdp=zcdp,
        symbol=symbol,
        delta=DEFAULT_DELTA,
        losses=columns,
        total=plan.loss(),
        most={
            "share": float(most.budget) / float(plan.loss()),
            "table": most.table,
            "words": PHSAFE.words.tables[most.table],
            "level": LEVELS[most.level].name,
        },
        derived=" and ".join(DERIVED),
        margin_words=margin_words(plan.margins, plan.confidence),
        figures=pictures(plan, lines, LEVELS.values(), ("table", "level")),
    )


def level_sections(plan: Plan) -> tuple[Section, ...]:
    """The budgets and the margins of a plan of SafeTab by level, if its budgets are finite.

    Groups of totals only are measured beside the others of their level: no record meets both, so their budgets are not
    added.
    """
    if not plan.is_finite:
        return ()
    words = PRODUCTS[plan.product].words
    coloured = zip(words.kinds.items(), SERIES, strict=False)
    marks = {kind: Mark(name, colour, "circle") for (kind, name), colour in coloured}
    lines = [Line(m, words.levels[m.level], marks[m.name.partition("/")[0]]) for m in plan.measurements]
    beside = words.kinds.get(DETAILED_ONLY, "")
    return sections(
        "plan_safetab.html",
        plan=plan,
        beside=beside,
        margin_words=margin_words(plan.margins, plan.confidence),
        figures=pictures(plan, lines, marks.values(), ("level", "part"), beside),
    )


def criteria_sections(of_releases: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> tuple[Section, ...]:
    """The section on the criteria of releases, by name; none where they have none."""
    found = [(release, of) for release, criteria in of_releases.items() for of in verdicts(criteria)]
    if not found:
        return ()
    tested = any(of.tested for _, of in found)
    columns = {
        **({"Release": [release for release, _ in found]} if len(of_releases) > 1 else {}),
        "Criterion": [of.name for _, of in found],
        "What it says": [of.says for _, of in found],
        "Predicted": [of.predicted for _, of in found],
        **({"Tested on synthetic records": [of.tested for _, of in found]} if tested else {}),
    }
    return sections("criteria.html", columns=columns, tested=tested)
