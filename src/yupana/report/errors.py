"""Errors of PHSafe in words and pictures: margins beside public counts, and noisy counts beside the truth.

Nothing here reads a record. Whoever calls hands over the truth, and may do so of invented people only.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from yupana.arrays import Floats, Ints
from yupana.plan.measurement import Measurement
from yupana.plan.plan import Plan
from yupana.products.phsafe.errors import CellError, PhsafeAccuracy
from yupana.products.phsafe.product import PHSAFE
from yupana.products.phsafe.shells import area_name
from yupana.products.phsafe.specification import DERIVED, STATE_NAMES, Group, cell_column
from yupana.products.phsafe.specification import LEVELS as SPEC_LEVELS
from yupana.products.phsafe.specification import TABLES as MEASURED
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
from yupana.report.html import shades
from yupana.report.numbers import percent, rounded, whole
from yupana.report.page import Chart, Figure, Section, sections
from yupana.report.plans import LEVELS

_WORDS: Final = PHSAFE.words.tables

Columns = Mapping[str, Sequence[str]]

Counts = Mapping[str, Mapping[int, Mapping[str, Mapping[str, int]]]]
"""Counts by table, cell, iteration and region."""

CELLS: Final = {
    "PH1_num": {2: "under 18", 3: "18 and over"},
    "PH1_denom": {1: "occupied housing units"},
    "PH2": {
        3: "opposite-sex married couple",
        4: "same-sex married couple",
        6: "opposite-sex cohabiting couple",
        7: "same-sex cohabiting couple",
        9: "male householder alone",
        10: "male householder with others",
        12: "female householder alone",
        13: "female householder with others",
    },
    "PH3": {
        2: "householder, spouse, partner or nonrelative",
        4: "own child, married couple",
        5: "own child, cohabiting couple",
        6: "own child, male householder",
        7: "own child, female householder",
        9: "grandchild",
        10: "other relative",
    },
    "PH4": {2: "under 18", 3: "18 and over"},
    "PH5_denom": {1: "families"},
    "PH6": {
        first + place: f"{family}, {ages}"
        for first, family in ((3, "married"), (8, "cohabiting"), (13, "male"), (18, "female"))
        for place, ages in enumerate(("under 4", "4 and 5", "6 to 11", "12 to 17"))
    },
    "PH7": {2: "owned with a mortgage", 3: "owned free and clear", 4: "rented"},
    "PH8_denom": {2: "owned", 3: "rented"},
}
"""What each measured cell counts."""

ITERATIONS: Final = {
    "*": "Everyone",
    "A": "White",
    "B": "Black",
    "C": "AIAN",
    "D": "Asian",
    "E": "NHPI",
    "F": "Other",
    "G": "Two or more",
    "H": "Hispanic",
    "I": "White, not Hispanic",
}

_LEVEL_OF: Final = {(level.areas, code): level.name for level in SPEC_LEVELS.values() for code in level.groups}


def published_counts(tables: Mapping[str, Mapping[str, Sequence[str]]]) -> Counts:
    """The counts of a release, by its tables as columns of text; those below zero as 0."""
    counts: dict[str, dict[int, dict[str, dict[str, int]]]] = {t.name: {c: {} for c in CELLS[t.name]} for t in MEASURED}
    for of_table in MEASURED:
        columns = tables.get(of_table.name)
        if columns is None:
            continue
        iterations = columns.get("ITERATION_CODE", ["*"] * len(columns["COUNT"]))
        cells = columns[cell_column(of_table.name)]
        for region, code, cell, count in zip(columns["REGION_ID"], iterations, cells, columns["COUNT"], strict=True):
            counts[of_table.name][int(cell)].setdefault(code, {})[region] = max(0, int(count))
    return counts


def relative_section(plan: Plan, counts: Counts | None, name: str, cell: int, source: str) -> Section:
    """The margin of error of one cell as a share of its count, by region and iteration.

    Parameters
    ----------
    plan : Plan
    counts : Counts or None
        Public: published or invented; None where none are at hand.
    name : str
        A table.
    cell : int
        One of its cells.
    source : str
        Whose counts they are, to finish a sentence.
    """
    if counts is None:
        return sections("relative.html", what="")[0]
    margins = {m.level: plan.margin(m) for m in plan.measurements if m.table == name}
    found = counts[name][cell]
    codes = [code for code in ITERATIONS if code in found]
    regions = {region for code in codes for region in found[code]}

    def error(region: str, code: str) -> float | None:
        margin = margins.get(_LEVEL_OF["USA" if region == "1" else "STATE", code])
        count = found[code].get(region)
        if margin is None or count is None:
            return None
        return margin / count if count else float("inf")

    rows = {
        area_name("USA" if region == "1" else "STATE", region, "Nation"): [error(region, code) for code in codes]
        for region in sorted(regions, key=lambda r: (r != "1", STATE_NAMES.get(r, r)))
    }
    known = [e for values in rows.values() for e in values if e is not None]
    (section,) = sections(
        "relative.html",
        what=f"{name}, {_WORDS[name]}: {CELLS[name][cell]}",
        source=source,
        known=len(known),
        small=sum(e <= 0.1 for e in known),
        shades=shades(rows, [ITERATIONS[code] for code in codes], "Margin of error as a share of the count", "Region"),
        within=_share_within(plan, counts),
    )
    return section


def _share_within(plan: Plan, counts: Counts) -> dict[str, list[str]]:
    """For every table and level, how many counts are known to a tenth of themselves."""
    used = [key for key in LEVELS if any(m.level == key for m in plan.measurements)]
    rows: dict[str, list[str]] = {}
    for m in plan.measurements:
        margin, values = plan.margin(m), _counts_of_level(counts, m.table, m.level)
        shown = percent(sum(margin <= 0.1 * count for count in values) / len(values)) if values else "–"
        rows.setdefault(m.table, ["–"] * len(used))[used.index(m.level)] = shown
    of_levels = {LEVELS[key].name: [of_table[i] for of_table in rows.values()] for i, key in enumerate(used)}
    return {"Table": list(rows), **of_levels} if rows else {}


def _counts_of_level(counts: Counts, name: str, key: str) -> list[int]:
    """All counts of the cells of a table at a level."""
    level = SPEC_LEVELS[key]
    return [
        count
        for of_cell in counts[name].values()
        for code in level.groups
        for region, count in of_cell.get(code, {}).items()
        if (region == "1") == (level.areas == "USA")
    ]


def left_out(households: Mapping[int, int], tau: int) -> tuple[int, int, int]:
    """Persons left out by a threshold, all persons, and the households that lose somebody."""
    lost = sum((persons - tau) * number for persons, number in households.items() if persons > tau)
    people = sum(persons * number for persons, number in households.items())
    return lost, people, sum(number for persons, number in households.items() if persons > tau)


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


def error_sections(
    plan: Plan,
    taus: Mapping[str, int],
    release: Mapping[str, Columns],
    errors: Sequence[CellError],
    observed: Sequence[PhsafeAccuracy],
    trials: int,
) -> tuple[Section, ...]:
    """Published against true counts, and errors observed, of invented people.

    Parameters
    ----------
    plan : Plan
    taus : mapping of table to int
    release : mapping of table to columns
        The tables as published.
    errors : sequence of CellError
    observed : sequence of PhsafeAccuracy
        Of the same errors.
    trials : int
        How often the census was measured.
    """
    return sections(
        "errors.html",
        confidence=float(plan.confidence),
        trials=trials,
        truth=_truth(release, errors),
        observed=_observed(plan, observed),
        noise=_law(plan, errors),
        reliance=_reliance(plan, errors),
        truncated=_truncation(taus, errors),
    )


def _truth(release: Mapping[str, Columns], errors: Sequence[CellError]) -> dict[str, Any]:
    """Published against true counts, for some tables and levels."""
    by_level: dict[tuple[str, str], list[CellError]] = {}
    for e in errors:
        by_level.setdefault((e.table, e.level), []).append(e)
    rows = {key: published_beside_truth(release[key[0]], found) for key, found in by_level.items()}
    counts = [row for found in rows.values() for row in found]
    marks = Mark("within the margin of error", BLUE, "circle"), Mark("outside of it", ORANGE, "circle")
    panels = tuple(_panel(*key, rows[key]) for key in _PANELS if key in rows)
    return {
        "number": len(counts),
        "inside": sum(row.inside for row in counts) / len(counts),
        "figure": Figure(panels, legend=marks),
    }


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


_BAND: Final = 0.95
"""The probability of the band of a funnel."""


def chance_band(number: int, confidence: Fraction) -> tuple[float, float]:
    """Where the ratio of observed to expected margin lies by chance, if the margins are right.

    The observed margin is an order statistic of ``number`` absolute errors. That of rank k lies below the quantile of
    level u with the probability that a binomial (number, u) is at least k; the errors are taken as normal.

    Parameters
    ----------
    number : int
        Independent errors.
    confidence : Fraction
        Of the margins.
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

    return ratio((1 - _BAND) / 2), ratio((1 + _BAND) / 2)


def _observed(plan: Plan, observed: Sequence[PhsafeAccuracy]) -> dict[str, Any]:
    """Observed over expected margins of error, against the number of draws behind each."""
    # Derived tables repeat the noise of their source: drawn again they would count twice.
    observed = [o for o in observed if o.table not in DERIVED and o.expected_moe]
    chance = {number: chance_band(number, plan.confidence) for number in sorted({o.count for o in observed})}
    few, many = min(chance), max(chance)
    numbers = sorted({*np.geomspace(max(10, 0.75 * few), 1.4 * many, 24).round().astype(int).tolist(), *chance})
    band = [
        {"x": n, "low": low, "high": high}
        for n, (low, high) in ((n, chance.get(n) or chance_band(n, plan.confidence)) for n in numbers)
    ]
    alone = [o.experimental_moe / o.expected_moe for o in observed]
    both = [o.experimental_moe_with_truncation / o.expected_moe for o in observed]
    ends = funnel_ends([*alone, *both], band)
    marks = tuple(mark for key, mark in LEVELS.items() if any(o.level == key for o in observed))
    inside = sum(chance[o.count][0] <= ratio <= chance[o.count][1] for o, ratio in zip(observed, alone, strict=True))
    tables = list(dict.fromkeys(o.table for o in observed))

    def panel(title: str, ratios: Sequence[float]) -> Chart:
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
            lambda width: funnel(points, band, marks, width, x=DRAWS, y=OBSERVED, ends=ends),
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

    panels = panel("Noise alone", alone), panel("Noise and truncation error", both)
    figure = Figure(panels, legend=marks)
    return {"few": few, "many": many, "inside": inside, "of": len(alone), "figure": figure}


DRAWS: Final = "draws (log scale)"
OBSERVED: Final = "observed / expected margin"
"""Titles of the axes of a funnel."""


def funnel_ends(ratios: Sequence[float], band: Sequence[Mapping[str, float]]) -> tuple[float, float]:
    """The ends of the axis of ratios of a funnel, with a little room."""
    low, high = min(*ratios, band[0]["low"]), max(*ratios, band[0]["high"])
    return math.floor(10 * low - 0.2) / 10, math.ceil(10 * high + 0.2) / 10


def _law(plan: Plan, errors: Sequence[CellError]) -> dict[str, Any]:
    """The draws of one measurement, that with the most of them, against the exact probabilities."""
    drawn = {
        m.name: np.concatenate([e.noise.ravel() for e in errors if (e.table, e.level) == (m.table, m.level)])
        for m in plan.measurements
    }
    name = max(drawn, key=lambda name: drawn[name].size)
    m, noise = plan[name], drawn[name]
    rows = _bins(m, noise)
    integers = round(rows[0]["high"] - rows[0]["low"])
    margin = plan.margin(m)
    words = f"{m.table}, {LEVELS[m.level].name}"
    per = "integer" if integers == 1 else f"{integers:,} integers"
    chart = Chart(
        f"{words}: how often each value of the noise was drawn, and its exact probability.",
        lambda width: histogram_with_law(rows, width, x="noise added to a count", y=f"share of draws per {per}"),
        {
            "From": [whole(math.ceil(row["low"])) for row in rows],
            "To": [whole(math.floor(row["high"])) for row in rows],
            "Drawn": [whole(row["observed"] * noise.size) for row in rows],
            "Expected": [f"{row['expected'] * noise.size:,.1f}" for row in rows],
        },
    )
    marks = Mark(f"{whole(noise.size)} draws", BLUE), Mark("exact probability", ORANGE, "line")
    return {
        "law": m.law.name,
        "measurement": words,
        "sigma": m.sigma,
        "draws": noise.size,
        "margin": margin,
        "inside": float((np.abs(noise) <= margin).mean()),
        "expected": 1 - 2 * m.law.cdf(-math.floor(margin) - 1),
        "mean": f"{noise.mean():.3f}".replace("-", "−"),
        "deviation": float(noise.std()),
        "figure": Figure((chart,), legend=marks),
    }


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
BOUNDS: Final = (0.02, 0.05, 0.1, 0.25, 1.0)
"""Relative errors at which the colour changes."""


def _reliance(plan: Plan, errors: Sequence[CellError]) -> Figure:
    """The relative error by level and size of the count."""
    share = percent(float(plan.confidence))
    return relative_figure(
        f"The relative error that {share} of the counts keep within, by level and size of the true count.",
        _relative_errors(errors, float(plan.confidence)),
        [words for _, words in _SIZES],
        x="size of the true count",
        heads=("True count", "Errors measured"),
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
                rows.append(relative_row(series.name, column, error[chosen] / true[chosen], share))
    return rows


def relative_row(level: str, size: str, errors: Floats, share: float) -> dict[str, Any]:
    """A row of `relative_figure`: the relative error that so large a share of some keep within."""
    value = float(np.quantile(errors, share))
    return {"column": size, "category": level, "value": value, "text": relative(value), "draws": len(errors)}


def relative_figure(
    said: str, rows: Sequence[dict[str, Any]], sizes: Sequence[str], *, x: str, heads: tuple[str, str], title: str = ""
) -> Figure:
    """A grid of relative errors by level and true size; ``heads`` are those of the sizes and of the draws."""
    data = {
        "Level": [row["category"] for row in rows],
        heads[0]: [row["column"] for row in rows],
        "Relative error": [row["text"] for row in rows],
        heads[1]: [whole(row["draws"]) for row in rows],
    }
    return Figure(
        (Chart(said, lambda width: grid_of_shares(rows, width, x=x, bounds=BOUNDS, columns=sizes), data, title),)
    )


def relative(value: float) -> str:
    """A relative error as a percentage, or as a multiple where a percentage would be absurd."""
    if value >= 2:
        return f"{value:,.0f}×" if value >= 10 else f"{value:.1f}×"
    return percent(value, 0 if value >= 0.1 else 1)


def _truncation(taus: Mapping[str, int], errors: Sequence[CellError]) -> Figure:
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
    chart = Chart(
        "Persons left out by truncation in each table, per thousand persons of its universe.",
        lambda width: labelled_bars(rows, width, axis="persons left out, per thousand"),
        {
            "Table": [row["category"] for row in rows],
            "What it counts": [_WORDS[row["category"]] for row in rows],
            "τ": [str(row["tau"]) for row in rows],
            "Left out": [whole(row["out"]) for row in rows],
            "Of": [whole(row["of"]) for row in rows],
            "Per thousand": [f"{row['value']:.2f}" for row in rows],
        },
    )
    return Figure((chart,))
