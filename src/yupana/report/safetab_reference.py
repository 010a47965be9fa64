"""What plans of SafeTab mean for population groups of known sizes: which table each gets, and how good it is."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from statistics import NormalDist
from types import MappingProxyType
from typing import Final

import numpy as np

from yupana.arrays import Floats, Ints
from yupana.plan.measurement import Measurement
from yupana.plan.plan import Plan
from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric
from yupana.products.safetab.regions import Level
from yupana.report.charts import GREY, Mark, share_bars
from yupana.report.html import Html, paragraph, table
from yupana.report.numbers import percent, whole
from yupana.report.page import Chart, Figure, Section
from yupana.report.safetab import level_name
from yupana.report.shades import shades

Noise = DiscreteGaussian | TwoSidedGeometric

Sizes = Sequence[tuple[int, int]]
"""Pairs of a size and how many population groups have it."""


def expected_tables(sizes: Sizes, thresholds: Sequence[int], law: Noise | None) -> list[float]:
    """How many groups are expected in each of the tables that thresholds divide them into, the coarsest first.

    Parameters
    ----------
    sizes : Sizes
    thresholds : sequence of int
        Totals from which a group gets the next finer table.
    law : Law or None
        Of the noise of the totals that decide; None where totals decide as they are.
    """
    size, groups = np.array([*sizes, (0, 0)], dtype=np.int64).T
    reached = [float(groups @ _survival(law, threshold - size)) for threshold in thresholds]
    at_least = [float(groups.sum()), *reached]
    return [here - there for here, there in zip(at_least, [*reached, 0.0], strict=True)]


_SUMMED: Final = 2_000.0
"""Up to this standard deviation chances are summed; beyond, the normal with continuity correction is within 1e-8."""


def _survival(law: Noise | None, at: Ints) -> Floats:
    """The chance that noise is at least so much, for each of some numbers."""
    if law is None:
        return (at <= 0).astype(np.float64)
    sigma = max(1.0, law.variance**0.5)
    reach = int(10 * sigma) + 20
    if sigma > _SUMMED:
        normal = NormalDist(0, sigma)
        distinct, place = np.unique(np.clip(at, -reach, reach), return_inverse=True)
        return np.array([1 - normal.cdf(k - 0.5) for k in distinct.tolist()])[place]
    k = np.arange(-reach, reach + 1)
    exponent = float(law.exponent)
    weights = np.exp(-exponent * (k * k if law.curvature == 2 else np.abs(k)))
    from_here = np.cumsum(weights[::-1])[::-1] / weights.sum()
    found: Floats = np.append(from_here, 0.0)[np.clip(at + reach, 0, 2 * reach + 1)]
    return found


def tables_section(
    rows: Mapping[Level, Sequence[float]], names: Sequence[str], title: str, anchor: str, words: str
) -> Section:
    """Which table the groups of each level get.

    Parameters
    ----------
    rows : mapping of Level to numbers of groups by table
    names : sequence of str
        What the tables are called.
    title, anchor, words : str
    """
    series = tuple(
        Mark(name, colour) for name, colour in zip(names, (GREY, "#3fa0c9", "#d9982a", "#cf5a1e"), strict=False)
    )
    points = [
        {"category": level_name(level), "series": name, "value": number / total, "text": whole(total)}
        for level, numbers in rows.items()
        if (total := sum(numbers))
        for name, number in zip(names, numbers, strict=True)
    ]
    data: dict[str, list[object]] = {
        "Level": [level_name(level) for level in rows],
        "Groups with anybody": [whole(sum(numbers)) for numbers in rows.values()],
        **{name: [whole(numbers[i]) for numbers in rows.values()] for i, name in enumerate(names)},
    }
    return Section(
        anchor,
        title,
        (
            paragraph(words),
            Figure(
                (
                    Chart(
                        f"{title}, by level.",
                        lambda width: share_bars(
                            points,
                            series,
                            width,
                            axis="share of groups; their number beside" if width > 500 else "share of groups",
                        ),
                        data,
                    ),
                ),
                "Every bar is all groups of a level that anybody is in.",
                series,
            ),
        )
        if points
        else (paragraph("No level that is switched on has groups to show."),),
    )


_SIZES: Final = (10, 30, 100, 300, 1_000, 3_000, 10_000, 100_000)


def sizes_section(
    plan: Plan,
    measured: Mapping[Level, Measurement],
    sizes: Mapping[str, Sizes] = MappingProxyType({}),
    source: str = "",
) -> Section:
    """The margin of error of a group's total as a share of its size, and how many groups are within a tenth."""
    rows = {level_name(level): [plan.margin(m) / size for size in _SIZES] for level, m in measured.items()}
    within: list[Html] = []
    known = [(level, m, sizes[us_level(level)]) for level, m in measured.items() if us_level(level) in sizes]
    if known:
        parts = [[percent(_within(found, plan.margin(m) / share), 1) for share in (0.1, 0.5)] for _, m, found in known]
        within = [
            table(
                {
                    "Level": [level_name(level) for level, _, _ in known],
                    "Groups": [whole(sum(n for _, n in found)) for _, _, found in known],
                    "within 10%": [part[0] for part in parts],
                    "within 50%": [part[1] for part in parts],
                },
                "Shares of groups whose margin of error is at most 10 and 50 percent of their size",
                f"The groups are those of {source}.",
            )
        ]
    return Section(
        "relative",
        "Relative error by level and size of group",
        (
            shades(
                rows,
                [whole(size) for size in _SIZES],
                "Margin of error of one measured count as a share of its size",
                "Level",
            ),
            *within,
        ),
    )


def _within(sizes: Sizes, least: float) -> float:
    """The share of groups of at least some size."""
    return sum(groups for size, groups in sizes if size >= least) / sum(groups for _, groups in sizes)


def us_level(level: Level) -> str:
    """The level of the United States whose groups stand in for one of Puerto Rico."""
    return level.name.removeprefix("PR-")


def median_size(sizes: Sizes) -> Fraction:
    """The size that half of the groups have at least."""
    half, seen = sum(n for _, n in sizes) / 2, 0
    for size, number in sorted(sizes):
        seen += number
        if seen >= half:
            return Fraction(max(1, size))
    return Fraction(1)
