"""What a plan of PHSafe says, in words and pictures: its loss, its budgets and its margins of error. Needs no data."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from yupana.plan.margin import margin_words
from yupana.plan.measurement import Measurement, Mechanism, Sensitivity
from yupana.plan.plan import DEFAULT_DELTA, Plan
from yupana.privacy.exact import Budget
from yupana.privacy.zcdp import epsilon_tight
from yupana.products.phsafe.specification import DERIVED
from yupana.report.charts import Series, log_dots, stacked_bars
from yupana.report.html import code, paragraph, table
from yupana.report.numbers import confidence_percent, loss, percent, power_of_ten, rounded, whole
from yupana.report.page import Chart, Figure, Section

LEVELS: Final = {
    "usa_*": Series("Nation, everyone", "#2f6fb0", "circle"),
    "usa_A-G": Series("Nation, by race (A–G)", "#3fa0c9", "diamond"),
    "usa_H,I": Series("Nation, by origin (H, I)", "#8180d6", "triangle-up"),
    "state_*": Series("States, everyone", "#cf5a1e", "circle"),
    "state_A-G": Series("States, by race (A–G)", "#d9982a", "diamond"),
    "state_H,I": Series("States, by origin (H, I)", "#c65f95", "triangle-up"),
}
"""Population-group levels as they are called and drawn: a family of colours by region, a shape by iterations."""

TABLES: Final = {
    "PH1_num": "people in households, under 18 and over",
    "PH1_denom": "occupied housing units",
    "PH2": "people in households, by household type",
    "PH3": "children in households, by relationship and household type",
    "PH4": "people in families, under 18 and over",
    "PH5_num": "people in families, under 18 and over",
    "PH5_denom": "families",
    "PH6": "own children, by family type and age",
    "PH7": "people in households, by tenure",
    "PH8_num": "people in households, by owner or renter",
    "PH8_denom": "occupied housing units, by owner or renter",
}
"""What each table counts."""

_CHANGES: Final = {
    "unbounded": "One person is added or removed (unbounded)",
    "same_household": "One person is changed and stays in the household",
    "bounded": "One person is changed in any way (bounded)",
}


@dataclass(frozen=True, slots=True)
class Loss:
    """The loss of a plan against one kind of neighbours.

    Attributes
    ----------
    change : str
        How the neighbours differ, in words.
    promised, proven : Fraction or INFINITE
        rho, or epsilon under pure DP: by the plan's accounting, and by the smallest bounds proven.
    """

    change: str
    promised: Budget
    proven: Budget


def losses(plan: Plan) -> dict[str, Loss]:
    """The total loss of a plan by kind of neighbours: "unbounded", "same_household", "bounded"."""

    def total(pick: Callable[[Measurement], Sensitivity], kind: str) -> Budget:
        return plan.loss(lambda m: getattr(pick(m), kind))

    return {
        kind: Loss(words, total(lambda m: m.sensitivity, kind), total(lambda m: m.proven, kind))
        for kind, words in _CHANGES.items()
    }


def plan_sections(plan: Plan) -> tuple[Section, ...]:
    """The parts of a report that follow from a plan alone, and so may be published with a release.

    Returns
    -------
    tuple of Section
        The privacy loss, the budget by table and level, and the margins of error. Without budgets that are finite
        there is no noise, and only the first.
    """
    if not plan.is_finite:
        words = "A budget of this plan is infinite: counts without noise, which protect nobody."
        return (Section("loss", "Privacy loss", (paragraph(words),)),)
    return (_loss_section(plan), _budget_section(plan), _margin_section(plan))


def _loss_section(plan: Plan) -> Section:
    zcdp = plan.mechanism is Mechanism.ZCDP
    symbol = plan.mechanism.symbol
    rows = list(losses(plan).values())
    columns: dict[str, list[object]] = {
        "How two censuses differ": [row.change for row in rows],
        f"{symbol}, promised": [loss(row.promised) for row in rows],
        f"{symbol}, proven at most": [loss(row.proven) for row in rows],
    }
    if zcdp:
        columns["ε, promised"] = [rounded(epsilon_tight(row.promised, DEFAULT_DELTA), 4) for row in rows]
        columns["ε, proven at most"] = [rounded(epsilon_tight(row.proven, DEFAULT_DELTA), 4) for row in rows]
    note = f"ε is stated at δ = {power_of_ten(DEFAULT_DELTA)}, by the tight conversion from ρ." if zcdp else ""
    definition = (
        "zero-concentrated differential privacy (zCDP), measured by ρ"
        if zcdp
        else "pure differential privacy, measured by ε"
    )
    return Section(
        "loss",
        "Privacy loss",
        (
            paragraph(
                f"The noise keeps {definition}. The loss bounds how much the published tables can reveal about any one "
                "person, whatever else is known. It is the sum over all measurements, and smaller is safer. The unit "
                f"of privacy is a {plan.privacy_unit}."
            ),
            paragraph(
                "The promise is what the plan adds up by its own accounting. The same noise often loses less than "
                "promised: the smaller figure is proven in ",
                code("docs/phsafe-privacy.md"),
                ".",
            ),
            table(
                columns,
                "The total loss, by how two censuses differ. The smaller, the less the tables tell them apart.",
                note,
            ),
        ),
    )


def _budget_section(plan: Plan) -> Section:
    symbol = plan.mechanism.symbol
    total = float(plan.loss())
    rows = [{"category": m.table, "series": LEVELS[m.level].name, "value": float(m.budget)} for m in plan.measurements]
    data = {
        "Table": [m.table for m in plan.measurements],
        "Level": [LEVELS[m.level].name for m in plan.measurements],
        symbol: [loss(m.budget) for m in plan.measurements],
        "Share": [percent(float(m.budget) / total, 3) for m in plan.measurements],
    }
    most = max(plan.measurements, key=lambda m: m.budget)
    label = f"The privacy budget {symbol} of each table, by population-group level."
    return Section(
        "budget",
        "Budget by table and level",
        (
            paragraph(
                "The budget is the share of the loss that a measurement may use. More budget means less noise. The "
                f"total is {symbol} = {loss(plan.loss())}. The largest share, "
                f"{percent(float(most.budget) / total)}, goes to {most.table} ({TABLES[most.table]}) for the level "
                f"“{LEVELS[most.level].name}”."
            ),
            Figure(
                (Chart(label, lambda width: stacked_bars(rows, _levels(plan), width, axis=f"budget {symbol}"), data),),
                "Every bar adds up the levels of one table. Tables that are derived from others, "
                f"{' and '.join(d.name for d in DERIVED)}, cost nothing.",
                tuple(replace(series, shape="square") for series in _levels(plan)),
            ),
        ),
    )


def _at_least(plan: Plan) -> str:
    """Whole margins hold at least what they say; those of the Bureau, of the normal law, about that."""
    return "At least " if plan.margins == "exact" else "About "


def _margin_section(plan: Plan) -> Section:
    confidence = confidence_percent(plan.confidence)
    margins = [plan.margin(m) for m in plan.measurements]
    rows = [
        {"category": m.table, "series": LEVELS[m.level].name, "value": margin}
        for m, margin in zip(plan.measurements, margins, strict=True)
    ]
    data = {
        "Table": [m.table for m in plan.measurements],
        "Level": [LEVELS[m.level].name for m in plan.measurements],
        "Cells": [whole(m.cells) for m in plan.measurements],
        "σ": [rounded(m.sigma, 4) for m in plan.measurements],
        "Margin of error": [rounded(margin, 4) for margin in margins],
        "10% of a count of": [whole(10 * margin) for margin in margins],
    }
    label = f"The {confidence} margin of error of a single count, by table and population-group level."
    return Section(
        "margins",
        "Margin of error by table and level",
        (
            paragraph(
                f"{_at_least(plan)}{confidence} of all published counts lie within their margin of error of the count "
                f"before noise. {margin_words(plan.margins, plan.confidence)}. It follows from the plan, before any "
                "record is read, and is printed beside every number of the release. Setting counts below zero to zero, "
                "suppression and truncation come on top."
            ),
            paragraph(
                "The margin is the same for small and large counts of one table and level. So a count is the more "
                "reliable, relatively, the larger it is."
            ),
            Figure(
                (
                    Chart(
                        label,
                        lambda width: log_dots(
                            rows,
                            _levels(plan),
                            width,
                            axis=f"margin of error at {confidence} confidence, in people or units (log scale)"
                            if width > 500
                            else f"margin of error, {confidence} (log scale)",
                        ),
                        data,
                    ),
                ),
                "Dots to the left are more precise. A sum of k published counts has a margin about √k times as wide. "
                "The last column of the numbers tells how large a count must be for its margin to be a tenth of it.",
                _levels(plan),
            ),
        ),
    )


def _levels(plan: Plan) -> tuple[Series, ...]:
    """The levels a plan measures, in the order of the legend."""
    used = {m.level for m in plan.measurements}
    return tuple(series for key, series in LEVELS.items() if key in used)
