"""Noisy counts of PHSafe beside the truth, in words and pictures: for synthetic records only, NOT FOR RELEASE.

Nothing here reads a record. Whoever calls hands over the truth, and may do so of invented people only.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from yupana.arrays import Ints
from yupana.plan.measurement import Measurement
from yupana.plan.plan import Plan
from yupana.products.phsafe.errors import Accuracy, CellError
from yupana.products.phsafe.specification import DERIVED, cell_column
from yupana.products.phsafe.tables import Group
from yupana.report.charts import (
    BLUE,
    ORANGE,
    Mark,
    funnel,
    grid_of_shares,
    histogram_with_law,
    labelled_bars,
    scatter_with_band,
)
from yupana.report.html import paragraph
from yupana.report.numbers import percent, rounded, whole
from yupana.report.page import Chart, Figure, Section
from yupana.report.plans import LEVELS, TABLES

Columns = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Published:
    """One published count beside the true count of everybody."""

    group: Group
    cell: int
    true: int
    noisy: int
    margin: float

    @property
    def inside(self) -> bool:
        """Whether the error is at most the margin."""
        return abs(self.noisy - self.true) <= self.margin


def published_beside_truth(columns: Columns, errors: Sequence[CellError]) -> list[Published]:
    """Look up in a published table the counts of some of its cells."""
    iterations = columns.get("ITERATION_CODE", ["*"] * len(columns["COUNT"]))
    cells = columns[cell_column(errors[0].table)]
    keys = zip(columns["REGION_TYPE"], columns["REGION_ID"], iterations, cells, strict=True)
    found = dict(zip(keys, zip(columns["COUNT"], columns["MOE"], strict=True), strict=True))
    rows = []
    for e in errors:
        for group, true in zip(e.groups, (e.truth - e.truncation_error).tolist(), strict=True):
            count, margin = found[group.region_type, group.region_id, group.iteration, str(e.cell)]
            rows.append(Published(group, e.cell, true, int(count), float(margin)))
    return rows


_PANELS: Final = (
    ("PH1_num", "usa_A-G"),
    ("PH1_num", "state_*"),
    ("PH1_num", "state_A-G"),
    ("PH3", "state_A-G"),
    ("PH7", "state_*"),
    ("PH8_denom", "state_A-G"),
)
"""Tables and levels whose published counts are drawn against the truth: persons and units, nation and states."""


def truth_section(plan: Plan, release: Mapping[str, Columns], errors: Sequence[CellError]) -> Section:
    """Published against true counts, for some tables and levels."""
    by_level: dict[tuple[str, str], list[CellError]] = {}
    for e in errors:
        by_level.setdefault((e.table, e.level), []).append(e)
    rows = {key: published_beside_truth(release[key[0]], found) for key, found in by_level.items()}
    number = sum(map(len, rows.values()))
    inside = sum(row.inside for found in rows.values() for row in found)
    outside = percent(1 - float(plan.confidence))
    return Section(
        "truth",
        "Noisy against true counts",
        (
            paragraph(
                "Each dot is a count of the release. Across is the true count of everybody, before truncation and "
                "noise. Up is the number published. The grey band is the truth plus and minus the margin of error; "
                f"{outside} of the dots should lie outside of it."
            ),
            paragraph(
                f"Of all {whole(number)} counts in the release, {percent(inside / number, 1)} lie within their margin "
                "of the truth. Noise can push a small count below zero. It is left there, so that sums stay unbiased."
            ),
            Figure(
                tuple(_panel(*key, rows[key]) for key in _PANELS if key in rows),
                "Both axes are linear near zero and logarithmic further out.",
                (
                    Mark("within the margin of error", BLUE, "circle"),
                    Mark("outside of it", ORANGE, "circle"),
                ),
            ),
        ),
    )


def _panel(table: str, level: str, rows: Sequence[Published]) -> Chart:
    margin, words = rows[0].margin, LEVELS[level].name
    most = max(max(row.true, row.noisy) for row in rows)
    powers = [10**power for power in range(1, math.ceil(math.log10(max(most, 10))) + 1)]
    ends = np.concatenate([np.arange(20) / 20, np.geomspace(1, max(1.5, 1.15 * most), 80)])
    band = [{"x": float(x), "low": float(x - margin), "high": float(x + margin)} for x in ends]
    points = [{"x": row.true, "y": row.noisy, "inside": row.inside} for row in rows]
    ticks = [*(-power for power in reversed(powers)), 0, *powers, 5 * powers[-1] // 10]
    inside = percent(sum(row.inside for row in rows) / len(rows))
    return Chart(
        f"{table}, {words}: published against true counts; {inside} of {whole(len(rows))} lie within the margin of "
        f"error of {rounded(margin)}.",
        lambda width: scatter_with_band(points, band, width, x="true count", y="published count", ticks=ticks),
        {
            "Region": [row.group.region_id for row in rows],
            "Iteration": [row.group.iteration for row in rows],
            "Cell": [str(row.cell) for row in rows],
            "True": [whole(row.true) for row in rows],
            "Published": [whole(row.noisy) for row in rows],
            "Error": [whole(row.noisy - row.true) for row in rows],
            "Margin": [rounded(row.margin) for row in rows],
        },
        title=f"{table} · {words}",
    )


def chance_band(number: int, confidence: Fraction, coverage: float = 0.95) -> tuple[float, float]:
    """Where the ratio of observed to expected margin lies by chance, if the margins are right.

    The observed margin is an order statistic of ``number`` absolute errors. That of rank k lies below the quantile of
    level u with the probability that a binomial (number, u) is at least k; the errors are taken as normal.

    Parameters
    ----------
    number : int
        Independent errors.
    confidence : Fraction
        Of the margins.
    coverage : float
        Probability of the band.
    """
    ranks = np.arange(number + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, number + 1)))])
    ways = logs[number] - logs - logs[::-1]
    k = math.ceil(number * float(confidence))

    def level(probability: float) -> float:
        low, high = 0.0, 1.0
        for _ in range(40):
            u = (low + high) / 2
            terms = ways[k:] + ranks[k:] * math.log(u) + (number - ranks[k:]) * math.log1p(-u)
            low, high = (u, high) if np.exp(terms).sum() < probability else (low, u)
        return (low + high) / 2

    def ratio(probability: float) -> float:
        return NormalDist().inv_cdf((1 + level(probability)) / 2) / NormalDist().inv_cdf((1 + float(confidence)) / 2)

    return ratio((1 - coverage) / 2), ratio((1 + coverage) / 2)


def observed_section(plan: Plan, observed: Sequence[Accuracy], trials: int) -> Section:
    """Observed over expected margins of error, against the number of draws behind each."""
    # Derived tables repeat the noise of their source: drawn again they would count twice.
    derived = {d.name for d in DERIVED}
    observed = [o for o in observed if o.table not in derived and o.expected_moe]
    chance = {number: chance_band(number, plan.confidence) for number in sorted({o.count for o in observed})}
    few, many = min(chance), max(chance)
    numbers = sorted({*np.geomspace(max(10, 0.75 * few), 1.4 * many, 24).round().astype(int).tolist(), *chance})
    band = [
        {"x": n, "low": low, "high": high}
        for n, (low, high) in ((n, chance.get(n) or chance_band(n, plan.confidence)) for n in numbers)
    ]
    alone = [o.experimental_moe / o.expected_moe for o in observed]
    both = [o.experimental_moe_with_truncation / o.expected_moe for o in observed]
    ends = (
        math.floor(10 * min(*alone, *both, band[0]["low"]) - 0.2) / 10,
        math.ceil(10 * max(*alone, *both, band[0]["high"]) + 0.2) / 10,
    )
    levels = tuple(series for key, series in LEVELS.items() if any(o.level == key for o in observed))
    inside = sum(low <= r <= high for r, (low, high) in ((r, chance[o.count]) for o, r in zip(observed, alone)))  # noqa: B905
    share = percent(float(plan.confidence))

    def panel(title: str, ratios: Sequence[float]) -> Chart:
        tables = list(dict.fromkeys(o.table for o in observed))
        points = [
            {
                # Tables of one level have the same number of draws: set them a little apart.
                "x": o.count * 1.035 ** (tables.index(o.table) - len(tables) // 2),
                "y": ratio,
                "series": LEVELS[o.level].name,
            }
            for o, ratio in zip(observed, ratios, strict=True)
        ]
        return Chart(
            f"{title}: observed over expected margin of error of every table, level, iteration and cell, against "
            "the number of draws.",
            lambda width: funnel(
                points, band, levels, width, x="draws (log scale)", y="observed / expected margin", ends=ends
            ),
            {
                "Table": [o.table for o in observed],
                "Level": [LEVELS[o.level].name for o in observed],
                "Iteration": [o.iteration for o in observed],
                "Cell": [str(o.cell) for o in observed],
                "Draws": [whole(o.count) for o in observed],
                "Expected": [rounded(o.expected_moe, 4) for o in observed],
                "Observed": [rounded(ratio * o.expected_moe, 4) for o, ratio in zip(observed, ratios, strict=True)],
                "Ratio": [f"{ratio:.3f}" for ratio in ratios],
            },
            title=title,
        )

    return Section(
        "observed",
        "Observed errors against margins of error",
        (
            paragraph(
                f"The census was measured {whole(trials)} times. For every table, level, iteration and cell, the "
                f"observed margin is the {share} quantile of the absolute error, over all regions and trials. A dot at "
                "1 says that the margin is what the plan promised."
            ),
            paragraph(
                f"A quantile of few draws is itself uncertain: {whole(few)} draws stand behind a cell of the smallest "
                f"level, {whole(many)} behind one of the largest. The grey band holds 95% of the dots if the margins "
                f"are right. With noise alone it holds {inside} of {len(alone)} ({percent(inside / len(alone))})."
            ),
            Figure(
                (panel("Noise alone", alone), panel("Noise and truncation error", both)),
                "On the right, what truncation left out is added to the noise. The margin of error speaks of noise "
                "only, so dots may rise there. Derived tables are left out: their noise is that of their source.",
                levels,
            ),
        ),
    )


def law_section(plan: Plan, errors: Sequence[CellError]) -> Section:
    """The draws of one measurement, that with the most of them, against the exact probabilities."""
    drawn = {
        m.name: np.concatenate([e.noise.ravel() for e in errors if (e.table, e.level) == (m.table, m.level)])
        for m in plan.measurements
    }
    name = max(drawn, key=lambda name: drawn[name].size)
    m, noise = plan[name], drawn[name]
    rows = _bins(m, noise)
    width_of_bin = round(rows[0]["high"] - rows[0]["low"])
    margin = plan.margin(m)
    inside = float((np.abs(noise) <= margin).mean())
    expected = 1 - 2 * m.law.cdf(-math.floor(margin) - 1)
    words = f"{m.table}, {LEVELS[m.level].name}"
    per = "integer" if width_of_bin == 1 else f"{width_of_bin:,} integers"
    return Section(
        "noise",
        "The noise itself",
        (
            paragraph(
                f"The noise is a whole number, drawn exactly from the law that the tables call “{m.law.name}”, with "
                "entropy from the operating system. Shown is the measurement with the most draws: "
                f"{words}, with standard deviation {rounded(m.sigma, 4)}."
            ),
            paragraph(
                f"Of the {whole(noise.size)} draws, {percent(inside, 1)} lie within the margin of error of "
                f"{rounded(margin)}; the law says {percent(expected, 1)}. Their mean is "
                f"{f'{noise.mean():.3f}'.replace('-', '−')}, their standard deviation {rounded(float(noise.std()), 4)}."
            ),
            Figure(
                (
                    Chart(
                        f"{words}: how often each value of the noise was drawn, and its exact probability.",
                        lambda width: histogram_with_law(
                            rows, width, x="noise added to a count", y=f"share of draws per {per}"
                        ),
                        {
                            "From": [whole(math.ceil(row["low"])) for row in rows],
                            "To": [whole(math.floor(row["high"])) for row in rows],
                            "Drawn": [whole(row["observed"] * noise.size) for row in rows],
                            "Expected": [f"{row['expected'] * noise.size:,.1f}" for row in rows],
                        },
                    ),
                ),
                "The line is computed from the plan. Nothing was fitted to the draws.",
                (
                    Mark(f"{whole(noise.size)} draws", BLUE, "square"),
                    Mark("exact probability", ORANGE, "line"),
                ),
            ),
        ),
    )


def _bins(m: Measurement, noise: Ints) -> list[dict[str, float]]:
    """Shares of the noise and of its law, in at most about a hundred bins over 3.6 standard deviations."""
    step = max(1, round(m.sigma / 14))
    reach = math.ceil(3.6 * m.sigma / step) * step
    values, counts = np.unique(noise, return_counts=True)
    rows = []
    for first in range(-reach - step // 2, reach + 1, step):
        last = first + step - 1
        observed = counts[(values >= first) & (values <= last)].sum() / noise.size
        rows.append(
            {
                "low": first - 0.5,
                "high": last + 0.5,
                "middle": (first + last) / 2,
                "observed": float(observed),
                "expected": m.law.cdf(last) - m.law.cdf(first - 1),
            }
        )
    return rows


_SIZES: Final = ((1, "1–9"), (10, "10–99"), (100, "100–999"), (1000, "1,000–9,999"), (10_000, "10,000+"))
_BOUNDS: Final = (0.02, 0.05, 0.1, 0.25, 1.0)


def reliance_section(plan: Plan, errors: Sequence[CellError]) -> Section:
    """The relative error by level and size of the count."""
    share = percent(float(plan.confidence))
    rows = _relative_errors(errors, float(plan.confidence))
    label = f"The relative error that {share} of the counts keep within, by level and size of the true count."
    return Section(
        "reliance",
        "Who can rely on what",
        (
            paragraph(
                f"{share} of the counts of a level and size are off by no more than this share of the truth, noise and "
                "truncation together. Read along a row to find the size from which a count is of use to you."
            ),
            paragraph(
                "All tables of a level are taken together. For a single number, divide its margin of error by it. The "
                "noise does not grow with the count, so the figures hold for counts of this size in any census with "
                "these budgets."
            ),
            Figure(
                (
                    Chart(
                        label,
                        lambda width: grid_of_shares(
                            rows, width, x="size of the true count", bounds=_BOUNDS, columns=[c for _, c in _SIZES]
                        ),
                        {
                            "Level": [row["category"] for row in rows],
                            "True count": [row["column"] for row in rows],
                            "Relative error": [row["text"] for row in rows],
                            "Errors measured": [whole(row["draws"]) for row in rows],
                        },
                    ),
                ),
                "Blue is off by at most a twentieth, sand by a tenth, orange by more. 3× is three times the truth. A "
                "field is empty where no count has that size. Counts of zero have no relative error and are left out.",
            ),
        ),
    )


def _relative_errors(errors: Sequence[CellError], share: float) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    bounds = [least for least, _ in _SIZES] + [math.inf]
    for key, series in LEVELS.items():
        found = [e for e in errors if e.level == key]
        if not found:
            continue
        true = np.concatenate([np.broadcast_to(e.truth - e.truncation_error, e.noise.shape).ravel() for e in found])
        error = np.concatenate([np.abs(e.noise + e.truncation_error).ravel() for e in found])
        for (least, column), below in zip(_SIZES, bounds[1:], strict=True):
            chosen = (true >= least) & (true < below)
            if chosen.any():
                value = float(np.quantile(error[chosen] / true[chosen], share))
                draws = int(chosen.sum())
                rows.append(
                    {
                        "column": column,
                        "category": series.name,
                        "value": value,
                        "text": relative(value),
                        "draws": draws,
                    }
                )
    return rows


def relative(value: float) -> str:
    """A relative error as a percentage, or as a multiple where a percentage would be absurd."""
    if value >= 2:
        return f"{value:,.0f}×" if value >= 10 else f"{value:.1f}×"
    return percent(value, 0 if value >= 0.1 else 1)


def truncation_section(taus: Mapping[str, int], errors: Sequence[CellError]) -> Section:
    """Persons left out by truncation, by table."""
    rows: list[dict[str, Any]] = []
    for table, tau in taus.items():
        # Everyone once: the level without iterations, the nation's where it is measured.
        levels = ([e for e in errors if (e.table, e.level) == (table, level)] for level in ("usa_*", "state_*"))
        found = next((cells for cells in levels if cells), [])
        if found:
            out = -sum(int(e.truncation_error.sum()) for e in found)
            everyone = out + sum(int(e.truth.sum()) for e in found)
            text = f"{whole(out)} of {whole(everyone)}"
            share = 1000 * out / max(1, everyone)
            rows.append({"category": table, "value": share, "text": text, "tau": tau, "out": out, "of": everyone})
    return Section(
        "truncation",
        "Left out by truncation",
        (
            paragraph(
                "A table of persons counts at most τ persons of a household. The others are left out, in the order of "
                "a keyed hash. This bounds what one household can change, and so keeps the noise small. The price is "
                "an error that always points down and that no margin of error tells. Tables of units leave out nothing."
            ),
            Figure(
                (
                    Chart(
                        "Persons left out by truncation in each table, per thousand persons of its universe.",
                        lambda width: labelled_bars(rows, width, axis="persons left out, per thousand"),
                        {
                            "Table": [row["category"] for row in rows],
                            "What it counts": [TABLES[row["category"]] for row in rows],
                            "τ": [str(row["tau"]) for row in rows],
                            "Left out": [whole(row["out"]) for row in rows],
                            "Of": [whole(row["of"]) for row in rows],
                            "Per thousand": [f"{row['value']:.2f}" for row in rows],
                        },
                    ),
                ),
                "These numbers depend on the records without noise. For a real census they stay in the confidential "
                "log.",
            ),
        ),
    )
