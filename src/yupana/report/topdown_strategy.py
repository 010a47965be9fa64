"""A strategy of TopDown that was found, beside the one there is, and the trade-off between two answers."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil, floor, inf, isfinite, log10, sqrt
from typing import Final

from yupana.plan.measurement import z_value
from yupana.products.strategy.results import Joined, Strategy
from yupana.products.topdown.frontier import Frontier, TradeOff
from yupana.report.charts import BLUE, GREY, ORANGE, Mark, curve_with_points
from yupana.report.numbers import percent, rounded
from yupana.report.page import Chart, Figure, Section, sections
from yupana.topdown.configuration import Configuration

FOUND: Final = Mark("found", BLUE, "diamond")
HERE: Final = Mark("as set here", ORANGE, "circle")
PRODUCTION: Final = Mark("production of 2020", GREY, "square")

_CURVE: Final = Mark("the least possible", BLUE, "line")
_NEAREST: Final = 1e-6
_LOSSES: Final[Mapping[Joined, str]] = {
    "sum": "The weighted sum of the variances",
    "max": "The largest weighted variance",
    "ratio": "The largest weighted ratio of a variance to what it is now",
}


def loss_in_words(strategy: Strategy[Configuration], loss: Joined) -> str:
    """What is made least, beside what it was, and how near the least it is proven to be."""
    now = (
        f"is {percent(strategy.found_loss / strategy.given_loss, 2)} of what it is with the shares set here"
        if isfinite(strategy.given_loss)
        else "is finite; with the shares set here nothing tells one of the answers asked for"
    )
    near = (
        f"no shares of these queries that keep the least asked for bring it lower by more than {_at_most(strategy.gap)}"
    )
    words = [f"{_LOSSES[loss]} {now}. It is proven that {near}."]
    if lost := [level for level in strategy.found.without_detail() if level not in strategy.given.without_detail()]:
        words.append(
            f"Single cells are no longer measured at {', '.join(map(_spaced, lost))}; counts below will suffer."
        )
    return " ".join(words)


def _at_most(share: float) -> str:
    """A percentage of two digits, rounded up; a millionth at least."""
    if share <= _NEAREST:
        return f"{100 * _NEAREST:.4f}%"
    unit = 10.0 ** (floor(log10(share)) - 1)
    return f"{rounded(100 * unit * ceil(share / unit - _NEAREST), 2)}%"


def found_sections(strategy: Strategy[Configuration], confidence: Fraction) -> tuple[Section, ...]:
    """Margins of the answers asked for, and shares, each beside what it is now."""
    z = z_value(confidence)
    rows = strategy.rows
    margins = {
        "Answer": [row.target for row in rows],
        "Geolevel": [_spaced(row.level) for row in rows],
        "Here": [rounded(z * sqrt(row.given), 4) for row in rows],
        "Found": [rounded(z * sqrt(row.found), 4) for row in rows],
        "Change": [_change(row.given, row.found) for row in rows],
    }
    given, found = strategy.given, strategy.found
    lines = [
        line
        for level in given.levels
        for line in (
            (_spaced(level), "the geolevel", given.shares[level], found.shares[level]),
            *(
                (_spaced(level), query.name, mine, theirs)
                for (query, mine), (_, theirs) in zip(given.queries[level], found.queries[level], strict=True)
                if given.shares[level] or found.shares[level]
            ),
        )
    ]
    levels, queries, here, there = zip(*lines, strict=True)
    shares = {
        "Geolevel": levels,
        "Query": queries,
        "Here": [percent(float(share), 3) for share in here],
        "Found": [percent(float(share), 3) for share in there],
    }
    return sections("topdown_strategy.html", margins=margins, shares=shares, confidence=confidence)


def _change(given: float, found: float) -> str:
    if not isfinite(given):
        return "–"
    return f"{100 * (sqrt(found / given) - 1):+.1f}%".replace("-", "−") if given else "none"


def _spaced(level: str) -> str:
    return level.replace("_", " ")


def frontier_section(
    between: TradeOff, frontier: Frontier, strategies: Mapping[Mark, Configuration], confidence: Fraction
) -> Section:
    """The frontier of two answers as a curve, and strategies as points on or above it."""
    z = z_value(confidence)
    pair = between.pair
    names = [f"{_spaced(level)} {of}" for level, of in (pair.first, pair.second)]
    curve = [{"x": z * sqrt(first), "y": z * sqrt(second)} for first, second in frontier.variances]
    placed = {mark: tuple(z * sqrt(one) for one in between.variances(of)) for mark, of in strategies.items()}
    marks = [mark for mark, (first, second) in placed.items() if max(first, second) < inf]
    points = [{"x": placed[mark][0], "y": placed[mark][1], "series": mark.name} for mark in marks]
    data: dict[str, Sequence[object]] = {
        "Point": [*(mark.name for mark in placed), *("the least possible" for _ in curve)],
        names[0]: [rounded(one, 4) for one in (*(x for x, _ in placed.values()), *(row["x"] for row in curve))],
        names[1]: [rounded(one, 4) for one in (*(y for _, y in placed.values()), *(row["y"] for row in curve))],
    }
    chart = Chart(
        f"The margin of error of {names[0]} against that of {names[1]}: the least possible, and strategies.",
        lambda width: curve_with_points(
            curve, points, marks, width, x=f"margin of {names[0]}", y=f"margin of {names[1]}"
        ),
        data,
    )
    figure = Figure((chart,), legend=(_CURVE, *marks))
    levels = dict.fromkeys(_spaced(level) for level, _ in (pair.first, pair.second))
    (section,) = sections(
        "topdown_frontier.html",
        drawn=figure,
        names=names,
        level=next(iter(levels)) if pair.levels_kept else "",
        grouping=between.grouping,
        other=PRODUCTION in strategies and not between.asks_all_that(strategies[PRODUCTION]),
        untold=[mark.name for mark in placed if mark not in marks],
    )
    return section
