"""The report that sets methods of disclosure control beside a differentially private release. It shows the truth."""

from itertools import cycle
from typing import Final

from yupana.products.disclosure_control.differencing import FEW
from yupana.products.disclosure_control.results import LearntRow, SideBySide, SizeErrors
from yupana.report.charts import SERIES, Mark, labelled_bars, log_dots
from yupana.report.numbers import percent, rounded, whole
from yupana.report.page import Chart, Figure, render

_SHAPES: Final = ("circle", "diamond", "triangle-up", "square", "diamond")
"""Of numbers without a common divisor, so that many methods look different."""

_TARGETS: Final = {
    "areas": "Areas that differ by few",
    "groups": "Groups that differ by few",
    "counts": "Small published counts",
}
_KINDS: Final = {"margins": "cells in a table", "areas": "areas in areas", "groups": "groups in everyone"}


def comparison_page(found: SideBySide, title: str, status: str) -> str:
    """The page of a comparison.

    Parameters
    ----------
    title : str
        Of the description.
    status : str
        NOT FOR RELEASE or CONFIDENTIAL.
    """
    titles = {method.name: method.title for method in found.methods}
    return render(
        "side_by_side.html",
        title_of=title,
        status=status,
        few=FEW,
        counts=sum(row.counts for row in found.errors if row.method == found.methods[0].name),
        best_guess=found.best_guess,
        remarks=found.remarks,
        methods=[*titles.values()],
        certain=_certain(found, titles),
        errors=_errors(found, titles),
        mean_errors=_by_size(found, titles, "mean_absolute_error"),
        exact_shares=_by_size(found, titles, "exact"),
        biases=_by_size(found, titles, "bias"),
        additivity=_additivity(found, titles),
        learnt=_learnt(found, titles),
        learnt_chart=_learnt_chart(found, titles),
    )


def _errors(found: SideBySide, titles: dict[str, str]) -> Figure:
    """The mean error by size and method."""
    shown = [(row, row.mean_absolute_error) for row in found.errors if row.mean_absolute_error is not None]
    rows = [{"category": row.size, "series": titles[row.method], "value": value} for row, value in shown]
    marks = tuple(map(Mark, titles.values(), cycle(SERIES), cycle(_SHAPES)))
    chart = Chart(
        "The mean absolute error of published counts, by their true size and the method.",
        lambda width: log_dots(rows, marks, width, axis="mean absolute error, in records"),
        {
            "True size": [row.size for row, _ in shown],
            "Method": [titles[row.method] for row, _ in shown],
            "Mean absolute error": [rounded(value) for _, value in shown],
        },
    )
    return Figure((chart,), legend=marks)


def _by_size(found: SideBySide, titles: dict[str, str], value: str) -> dict[str, list[str]]:
    """A figure of the errors with a row for each method and a column for each size."""
    sizes = dict.fromkeys(row.size for row in found.errors)
    of = {(row.method, row.size): row for row in found.errors}
    return {
        "Method": [*titles.values()],
        **{size: [_told(of[name, size], value) for name in titles] for size in sizes},
    }


def _told(row: SizeErrors, value: str) -> str:
    number = getattr(row, value)
    if number is None:
        return "–"
    return percent(number) if value == "exact" else f"{number:,.2f}".replace("-", "−")


def _additivity(found: SideBySide, titles: dict[str, str]) -> dict[str, list[str]]:
    rows = sorted(found.additivity, key=lambda row: [*_KINDS].index(row.kind))
    return {
        "Sums of": [_KINDS[row.kind] for row in rows],
        "Method": [titles[row.method] for row in rows],
        "Number": [whole(row.sums) for row in rows],
        "Shown with all parts": [whole(row.shown) for row in rows],
        "Add up": [_share(row.exact) for row in rows],
        "Mean difference": ["–" if row.mean_difference is None else rounded(row.mean_difference) for row in rows],
        "Largest": ["–" if row.largest is None else whole(row.largest) for row in rows],
    }


def _learnt(found: SideBySide, titles: dict[str, str]) -> dict[str, list[str]]:
    rows = sorted(_with_targets(found), key=lambda row: [*_TARGETS].index(row.target))
    return {
        "Target": [_TARGETS[row.target] for row in rows],
        "Method": [titles[row.method] for row in rows],
        "Number": [whole(row.number) for row in rows],
        "Read off right": [_share(row.face) for row in rows],
        "Guessed right": [_share(row.guess) for row in rows],
        "Known for certain": [_share(row.certain) for row in rows],
    }


def _learnt_chart(found: SideBySide, titles: dict[str, str]) -> Figure | None:
    """What is known for certain, by target; None where there are no targets."""
    by_target = {target: [row for row in _with_targets(found) if row.target == target] for target in _TARGETS}
    charts = [_certain_chart(_TARGETS[target], rows, titles) for target, rows in by_target.items() if rows]
    return Figure(tuple(charts)) if charts else None


def _with_targets(found: SideBySide) -> list[LearntRow]:
    return [row for row in found.learnt if row.number]


def _certain_chart(words: str, rows: list[LearntRow], titles: dict[str, str]) -> Chart:
    shares = [row.certain or 0.0 for row in rows]
    bars = [
        {"category": titles[row.method], "value": 100 * share, "text": percent(share, 1)}
        for row, share in zip(rows, shares, strict=True)
    ]
    return Chart(
        f"{words}: the share whose exact value is known for certain, by method.",
        lambda width: labelled_bars(bars, width, axis="known for certain, %"),
        {"Method": [bar["category"] for bar in bars], "Known for certain": [bar["text"] for bar in bars]},
        title=words,
    )


def _certain(found: SideBySide, titles: dict[str, str]) -> list[tuple[str, str, str]]:
    """By method, what is known for certain of all targets together: method, share, words."""
    told: list[tuple[str, str, str]] = []
    for name, title in titles.items():
        rows = [row for row in _with_targets(found) if row.method == name]
        if targets := sum(row.number for row in rows):
            known = sum(round((row.certain or 0) * row.number) for row in rows)
            told.append((title, percent(known / targets, 1), f"of {whole(targets)} small counts and differences"))
    return told


def _share(value: float | None) -> str:
    return "–" if value is None else percent(value, 1)
