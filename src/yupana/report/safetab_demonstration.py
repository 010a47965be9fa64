"""The report of a demonstration of SafeTab: the chain from persons to households, and the truth beside it.

For invented people only. Nothing here reads a record: whoever calls hands over the truth.
"""

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from yupana.plan.plan import Plan
from yupana.products.safetab.errors import LEFT_OUT, SIZES, Accuracy, LevelErrors, size_bins
from yupana.products.safetab.iterations import CharacteristicIterations, Iteration
from yupana.products.safetab.persons.plan import DETAILED_ONLY, STAGE_1, STAGE_2
from yupana.products.safetab.specification import AGE_TABLES, HOUSEHOLD_TYPE, TENURE, TOTALS
from yupana.report.charts import BLUE, ORANGE, Mark, funnel, grid_of_shares, intervals, share_bars
from yupana.report.groups import (
    AGES,
    TYPES,
    Columns,
    Received,
    Release,
    groups_by_table,
    level_name,
    loss_section,
    received_sections,
)
from yupana.report.html import Html, bullets, code, element, join, paragraph, table
from yupana.report.numbers import loss, percent, rounded, whole
from yupana.report.page import Chart, Figure, Page, Section
from yupana.report.phsafe_errors import chance_band, relative
from yupana.report.plans import level_sections

_SIZE_NAMES: Final = dict(zip(SIZES, ("0–1", "2–10", "11–100", "101–1k", "1k–10k", "10k–100k"), strict=False))
_MOST_GROUPS: Final = 24
"""Of the example area, drawn."""


@dataclass(frozen=True, slots=True, eq=False)
class SafetabDemonstration:
    """What a demonstration hands to its report.

    Attributes
    ----------
    iterations : CharacteristicIterations
    persons_plan, households_plan : Plan
    persons, households, trials : int
        Sizes of the synthetic census, and how often it was measured.
    persons_release, households_release : mapping of table to columns
        The tables as published.
    truth : mapping of column to values
        T01001 without noise; a group that is not in it is empty.
    persons_errors, households_errors : sequence of LevelErrors
    persons_observed, households_observed : sequence of Accuracy
        Of the same errors.
    taken_as_public : sequence of str
    seconds : mapping of stage to float
    status : str
    out : Path
        Where the demonstration will stand, as its user wrote it.
    """

    iterations: CharacteristicIterations
    persons_plan: Plan
    households_plan: Plan
    persons: int
    households: int
    trials: int
    persons_release: Release
    households_release: Release
    truth: Columns
    persons_errors: Sequence[LevelErrors]
    households_errors: Sequence[LevelErrors]
    persons_observed: Sequence[Accuracy]
    households_observed: Sequence[Accuracy]
    taken_as_public: Sequence[str]
    seconds: Mapping[str, float]
    status: str
    out: Path


def safetab_page(demo: SafetabDemonstration) -> Page:
    """Assemble the report."""
    persons, households = _received(demo)
    return Page(
        title="SafeTab on a synthetic census",
        status=demo.status,
        status_words="A demonstration on invented people: the truth is shown beside the noisy counts. A report on real "
        "records must never do that.",
        key_numbers=_key_numbers(demo, persons, households),
        sections=(
            _summary(demo),
            *received_sections(persons, households),
            _size_section(demo),
            _left_out_section(demo),
            _area_section(demo),
            _reliance_section(demo),
            _observed_section(demo),
            loss_section(demo.persons_plan, demo.households_plan),
            *_plans(demo),
            _public(demo),
            _again(demo),
        ),
    )


def _plans(demo: SafetabDemonstration) -> list[Section]:
    """Budgets and margins of both plans, as the explorer shows them."""
    kinds = {STAGE_1: "choosing the table", STAGE_2: "the counts", DETAILED_ONLY: "groups of totals only"}
    persons, households = demo.persons_plan, demo.households_plan
    by_stage = {m.name: m.name.partition("/")[0] for m in persons.measurements}
    by_table = {m.name: m.table for m in households.measurements}
    families = {family.name: words for family, words in ((HOUSEHOLD_TYPE, "household type"), (TENURE, "tenure"))}
    sections = {
        "SafeTab-P": level_sections(persons, kinds, kind_of=by_stage, beside=DETAILED_ONLY),
        "SafeTab-H": level_sections(households, families, kind_of=by_table),
    }
    return [
        replace(section, anchor=f"{section.anchor}-{name[-1].lower()}", title=f"{section.title}, {name}")
        for name, of_product in sections.items()
        for section in of_product
    ]


def _received(demo: SafetabDemonstration) -> tuple[list[Received], dict[str, list[Received]]]:
    """What groups received by level: of persons, and of households by family of tables."""
    possible: dict[Any, int] = {}
    for e in demo.persons_errors:
        possible[e.level] = possible.get(e.level, 0) + int(e.groups.sum())
    tables = (TOTALS, *AGE_TABLES)
    counted = groups_by_table(demo.persons_release, tables, demo.iterations)
    persons = [Received(level, possible[level], counted.get(level, {})) for level in possible]
    households = {}
    for key, family in (("types", HOUSEHOLD_TYPE), ("tenures", TENURE)):
        names = family.tables
        of_family = groups_by_table(demo.households_release, names, demo.iterations)
        households[key] = [Received(level, sum(groups.values()), groups) for level, groups in of_family.items()]
    return persons, households


def _key_numbers(
    demo: SafetabDemonstration, persons: Sequence[Received], households: Mapping[str, Sequence[Received]]
) -> dict[str, tuple[str, str]]:
    published = sum(r.published for r in persons)
    possible = sum(r.possible for r in persons)
    return {
        "Persons": (whole(demo.persons), "all of them invented"),
        "Groups of persons published": (whole(published), f"of {whole(possible)} possible ones"),
        "ρ of SafeTab-P": (loss(demo.persons_plan.loss()), f"protects one {demo.persons_plan.privacy_unit}"),
        "Households": (whole(demo.households), "of the same people"),
        "Groups of households published": (
            whole(sum(r.published for r in households["types"])),
            "all that persons were published for",
        ),
        "ρ of SafeTab-H": (loss(demo.households_plan.loss()), f"protects one {demo.households_plan.privacy_unit}"),
    }


def _summary(demo: SafetabDemonstration) -> Section:
    rows = {of: sum(len(t["COUNT"]) for t in release.values()) for of, release in _releases(demo).items()}
    return Section(
        "summary",
        "What was done",
        (
            paragraph(
                "SafeTab made the detailed tables on race and ethnicity of the 2020 US Census (the Detailed DHC-A and "
                "DHC-B). We ran both of its products on a census of invented people, with the budgets and thresholds "
                "used then, one after the other:"
            ),
            element(
                "ol",
                element("li", f"{whole(demo.persons)} person records go into SafeTab-P."),
                element(
                    "li",
                    f"SafeTab-P publishes {whole(rows['persons'])} noisy counts: a total of each group (T01001), and "
                    "sex by 4, 9 or 23 ages of the larger ones (T02001 to T02003).",
                ),
                element(
                    "li",
                    f"Those totals and {whole(demo.households)} household records go into SafeTab-H.",
                ),
                element(
                    "li",
                    f"SafeTab-H publishes {whole(rows['households'])} noisy counts: household types (T03001 to T03004) "
                    "and tenure (T04001, T04002), the finer the larger the published total.",
                ),
            ),
            paragraph(
                "The groups of race and ethnicity are a made-up, much simpler list than that of 2020, and the census "
                "is far smaller than the nation. The noise is that of 2020. So errors are as large in people as they "
                "were then, and far larger as a share of the counts. ",
                element("a", "The report on PHSafe", href="report.html"),
                " is about the same people.",
            ),
        ),
    )


def _releases(demo: SafetabDemonstration) -> dict[str, Release]:
    return {"persons": demo.persons_release, "households": demo.households_release}


_PANELS: Final = (
    ("Nation and states, regional groups", ("USA", "STATE"), 1),
    ("Nation and states, detailed groups", ("USA", "STATE"), 2),
    ("Smaller areas, regional groups", ("COUNTY", "TRACT", "PLACE", "AIANNH"), 1),
    ("Smaller areas, detailed groups", ("COUNTY", "TRACT", "PLACE", "AIANNH"), 2),
)
"""Levels that share their thresholds."""


def _size_section(demo: SafetabDemonstration) -> Section:
    """Which table groups of each true size got."""
    panels = (_size_panel(title, _shares_by_size(demo, types, level)) for title, types, level in _PANELS)
    return Section(
        "size",
        "What size decides",
        (
            paragraph(
                "The larger a group, the more is told about it. Thresholds are lower for detailed groups and for the "
                "nation and the states, where there is less noise. Size is seen through noise only. "
                "So of two groups that are just as large, one may reach a threshold and the other not."
            ),
            Figure(
                tuple(panel for panel in panels if panel is not None),
                f"By the true number of people, averaged over {whole(demo.trials)} measurements. Where a bar ends "
                "early, the rest of the groups was left out of all tables. The number of groups stands beside. Small "
                "groups for which only totals are made are among the detailed groups of the nation and the states.",
                tuple(AGES.values()),
            ),
        ),
    )


def _shares_by_size(
    demo: SafetabDemonstration, region_types: Sequence[str], iteration_level: int
) -> dict[str, tuple[int, dict[str, float]]]:
    """By size, how many groups some levels have, and the share that got each table."""
    rows = [
        row
        for row in demo.persons_observed
        if row.region_type in region_types and row.iteration_level == iteration_level
    ]
    groups = {(row.region_type, row.detailed_only, row.size): row.groups for row in rows}
    found = {}
    for size in SIZES:
        number = sum(n for key, n in groups.items() if key[-1] == size)
        if number:
            found[size] = (
                number,
                {
                    name: sum(row.share * row.groups for row in rows if (row.size, row.table) == (size, name)) / number
                    for name in AGES
                },
            )
    return found


def _size_panel(title: str, found: Mapping[str, tuple[int, Mapping[str, float]]]) -> Chart | None:
    shown = {size: told for size, told in found.items() if size in _SIZE_NAMES}
    if not shown:
        return None
    rows = [
        {"category": _SIZE_NAMES[size], "series": AGES[name].name, "value": share, "text": whole(number)}
        for size, (number, shares) in shown.items()
        for name, share in shares.items()
    ]
    return Chart(
        f"{title}: share of the groups of each true size by what they received.",
        lambda width: share_bars(rows, tuple(AGES.values()), width, axis="share of all groups"),
        {
            "True size": [_SIZE_NAMES[size] for size in shown],
            "Groups": [whole(number) for number, _ in shown.values()],
            "Left out": [_share_left(round(1 - sum(shares.values()), 9)) for _, shares in shown.values()],
            **{AGES[name].name: [percent(shares[name], 1) for _, shares in shown.values()] for name in AGES},
        },
        title=title,
    )


def _left_out_section(demo: SafetabDemonstration) -> Section:
    """Shares of groups left out, by level and true size."""
    # Both kinds of iterations of a level together: below the state there is one kind only.
    left = [row for row in demo.persons_observed if row.table == LEFT_OUT]
    levels = {(e.level.region.name, e.level.iteration_level): level_name(e.level) for e in demo.persons_errors}
    some = {(row.region_type, row.iteration_level) for row in left}
    sizes = {(r.region_type, r.iteration_level, r.size): r for r in demo.persons_observed}
    gone = {(r.region_type, r.iteration_level, r.size): r.share for r in left}
    rows: list[dict[str, Any]] = [
        {
            "category": levels[key[:2]],
            "column": _SIZE_NAMES[key[2]],
            "value": gone.get(key, 0.0),
            "text": _share_left(gone.get(key, 0.0)),
            "groups": row.groups,
        }
        for key, row in sizes.items()
        if key[:2] in some and key[2] in _SIZE_NAMES
    ]
    words: list[Html | Figure] = [
        paragraph(
            "Most groups of a county, tract or place are empty. Their noisy totals would fill the tables with numbers "
            "that are noise and nothing else. SafeTab-P leaves a total out when noise alone could have made it: of "
            "10,000 empty groups, about one shows. The price is paid by small groups that do exist: many of them are "
            "left out, too."
        ),
        paragraph(
            "This is a rule about noisy numbers, so it costs no privacy. It does bias what is left: of the smallest "
            "groups only those show whose noise was large."
        ),
    ]
    if rows:
        columns = [name for name in _SIZE_NAMES.values() if any(row["column"] == name for row in rows)]
        words.append(
            Figure(
                (
                    Chart(
                        "Share of the population groups of each level and true size that zero suppression left out.",
                        lambda width: grid_of_shares(
                            rows,
                            width,
                            x="true number of people",
                            bounds=(0.01, 0.05, 0.25, 0.75, 0.99),
                            columns=columns,
                        ),
                        {
                            "Level": [row["category"] for row in rows],
                            "True size": [row["column"] for row in rows],
                            "Groups": [whole(row["groups"]) for row in rows],
                            "Left out": [percent(row["value"], 2) for row in rows],
                        },
                    ),
                ),
                f"Averages over {whole(demo.trials)} measurements. Nothing is left out of the tables of the nation and "
                "the states. A field is empty where no group has that size.",
            )
        )
    return Section("left-out", "What zero suppression left out", tuple(words))


def _share_left(share: float) -> str:
    """A share that is neither all nor nothing never reads as if it were."""
    if 0 < share < 0.01:
        return "<1%"
    if 0.99 < share < 1:
        return ">99%"
    return percent(share)


@dataclass(frozen=True, slots=True)
class _Row:
    """A group of the example area."""

    iteration: Iteration
    count: int
    margin: float
    true: int
    table: str
    households: str
    households_table: str


def _area_section(demo: SafetabDemonstration) -> Section:
    """The groups of one area, published and true."""
    region_type, region_id = _busiest_area(demo.persons_release[TOTALS])
    rows = _rows_of(demo, region_type, region_id)
    kind = {"USA": "the nation", "STATE": f"state {region_id}"}.get(region_type, f"county {region_id}")
    # One bar for each group: those alone would stand beside nearly the same ones.
    drawn = [row for row in rows if row.iteration.alone is not True and row.count - row.margin >= 1][:_MOST_GROUPS]
    inside = sum(abs(row.count - row.true) <= row.margin for row in rows)
    words: list[Html | Figure] = [
        paragraph(
            f"This is {kind}, the county of this census with the most published groups. SafeTab-P published "
            f"{whole(len(rows))} groups of its people. {whole(inside)} of these totals "
            f"({percent(inside / max(1, len(rows)))}) lie within their margin of error of the truth."
            if region_type == "COUNTY"
            else f"This census is so small that few counties have a group of their own, so the example is {kind}, with "
            f"{whole(len(rows))} published groups."
        ),
        paragraph(
            "A few more lie outside than the margin of error says: small groups show only where noise lifted them. "
            "The margin of a regional group is wider, for regional totals got less of the budget. A group that is told "
            "by sex and age has a wider margin, too: its total is the sum of noisy cells."
        ),
    ]
    if drawn:
        data = [
            {
                "category": _short(row.iteration),
                "value": row.count,
                "low": row.count - row.margin,
                "high": row.count + row.margin,
                # The axis is logarithmic.
                "true": max(row.true, 1),
            }
            for row in drawn
        ]
        words.append(
            Figure(
                (
                    Chart(
                        f"Published totals of {kind} by group, with margin of error, and the true totals.",
                        lambda width: intervals(data, width, axis="persons (log scale)"),
                        {
                            "Group": [row.iteration.name for row in rows],
                            "Published": [whole(row.count) for row in rows],
                            "Margin": [rounded(row.margin) for row in rows],
                            "True": [whole(row.true) for row in rows],
                            "Told by": [AGES[row.table].name for row in rows],
                            "Households": [row.households for row in rows],
                            "Told by ": [row.households_table for row in rows],
                        },
                    ),
                ),
                f"The {len(drawn)} largest groups, alone or in any combination, or of Hispanic origin. The numbers "
                "hold all groups, and the households of each.",
                (
                    Mark("published, with margin of error", BLUE, "circle"),
                    Mark("true", ORANGE, "square"),
                ),
            )
        )
    return Section("area", "One area and its groups", tuple(words))


def _busiest_area(totals: Columns) -> tuple[str, str]:
    """The county with the most groups; the nation where no county has ten."""
    counties: dict[str, int] = {}
    for region_type, region_id in zip(totals["REGION_TYPE"], totals["REGION_ID"], strict=True):
        if region_type == "COUNTY":
            counties[region_id] = counties.get(region_id, 0) + 1
    best = max(counties, key=lambda region_id: counties[region_id], default="")
    return ("COUNTY", best) if counties.get(best, 0) >= 10 else ("USA", "1")


def _rows_of(demo: SafetabDemonstration, region_type: str, region_id: str) -> list[_Row]:
    """Groups of an area, the largest first."""
    by_code = {iteration.code: iteration for iteration in demo.iterations.iterations}
    names = list(AGE_TABLES)
    table_of = dict.fromkeys(by_code, TOTALS)
    table_of |= {
        iteration: name for name in names for iteration in _of_area(demo.persons_release[name], region_type, region_id)
    }
    truth = _of_area(demo.truth, region_type, region_id)
    households: dict[str, tuple[str, str]] = {}
    for name in HOUSEHOLD_TYPE.tables:
        columns = demo.households_release[name]
        found = _of_area(columns, region_type, region_id, columns["T3_DATA_CELL"])
        households |= {
            iteration: (f"{whole(int(count))} ± {rounded(float(margin))}", TYPES[name].name)
            for iteration, (count, margin) in found.items()
        }
    rows = [
        _Row(
            iteration=by_code[code],
            count=int(count),
            margin=float(margin),
            true=int(truth.get(code, ("0", ""))[0]),
            table=table_of[code],
            households=households.get(code, ("", ""))[0],
            households_table=households.get(code, ("", ""))[1],
        )
        for code, (count, margin) in _of_area(demo.persons_release[TOTALS], region_type, region_id).items()
    ]
    return sorted(rows, key=lambda row: -row.count)


def _of_area(
    columns: Columns, region_type: str, region_id: str, cells: Sequence[str] | None = None
) -> dict[str, tuple[str, str]]:
    """COUNT and MOE by iteration of one area; of a table with cells, those of the total."""
    keys = zip(columns["REGION_TYPE"], columns["REGION_ID"], cells or ["0"] * len(columns["COUNT"]), strict=True)
    here = [place for place, key in enumerate(keys) if key == (region_type, region_id, "0")]
    return {columns["ITERATION_CODE"][i]: (columns["COUNT"][i], columns["MOE"][i]) for i in here}


def _short(iteration: Iteration) -> str:
    return iteration.name.removesuffix(" alone or in any combination")


_BOUNDS: Final = (0.02, 0.05, 0.1, 0.25, 1.0)


def _reliance_section(demo: SafetabDemonstration) -> Section:
    """The relative error of totals by level and size."""
    share = percent(float(demo.persons_plan.confidence))
    names = ["1", *list(_SIZE_NAMES.values())[1:]]

    def panel(title: str, errors: Sequence[LevelErrors], confidence: float) -> Chart:
        rows = _relative_errors(errors, confidence)
        columns = [name for name in names if any(row["column"] == name for row in rows)]
        return Chart(
            f"{title}: the relative error that {share} of the published totals keep within, by level and true size.",
            lambda width: grid_of_shares(rows, width, x="true size of the group", bounds=_BOUNDS, columns=columns),
            {
                "Level": [row["category"] for row in rows],
                "True size": [row["column"] for row in rows],
                "Relative error": [row["text"] for row in rows],
                "Totals measured": [whole(row["draws"]) for row in rows],
            },
            title=title,
        )

    caption = "Blue is off by at most a twentieth, sand by a tenth, orange by more. 3× is three times the truth."
    return Section(
        "reliance",
        "Who can rely on what",
        (
            paragraph(
                f"{share} of the published totals of a level and size are off by no more than this share of the truth. "
                "The noise does not grow with the group, so totals get better the larger the group is. Empty groups "
                "have no relative error and are left out here."
            ),
            Figure(
                (panel("Totals of persons", demo.persons_errors, float(demo.persons_plan.confidence)),),
                f"{caption} Only published totals can be compared, so in the smallest sizes below the state these are "
                "the few that noise lifted over the bar.",
            ),
            Figure(
                (panel("Totals of households", demo.households_errors, float(demo.households_plan.confidence)),),
                caption,
            ),
        ),
    )


def _relative_errors(errors: Sequence[LevelErrors], confidence: float) -> list[dict[str, Any]]:
    """The quantile of |error| / size of totals, measured or added up; tenure would count the same households again."""
    parts: dict[tuple[str, int], list[np.ndarray[tuple[int], np.dtype[np.float64]]]] = {}
    for e in errors:
        for t in e.tables:
            if t.table.startswith(TENURE.name):
                continue
            there = t.sizes > 0
            off = np.abs(t.errors[there].sum(axis=1)) / t.sizes[there]
            bins = size_bins(t.sizes[there])
            for number in np.unique(bins).tolist():
                parts.setdefault((level_name(e.level), number), []).append(off[bins == number])
    # A level's rows stand together, whichever kind of iterations came first.
    levels = list(dict.fromkeys(level_name(e.level) for e in errors))
    rows = []
    for (level, number), found in sorted(parts.items(), key=lambda part: (levels.index(part[0][0]), part[0][1])):
        if SIZES[number] in _SIZE_NAMES:
            off = np.concatenate(found)
            value = float(np.quantile(off, confidence))
            column = _SIZE_NAMES[SIZES[number]].replace("0–1", "1")
            rows.append(
                {"category": level, "column": column, "value": value, "text": relative(value), "draws": len(off)}
            )
    return rows


_FEWEST_DRAWS: Final = 30
"""Behind a dot: fewer would be told by chance alone."""


def _observed_section(demo: SafetabDemonstration) -> Section:
    """Observed over expected margins of measured cells."""
    persons, households = (
        [row for row in rows if row.experimental_moe is not None and row.expected_moe and row.count >= _FEWEST_DRAWS]
        for rows in (_unselected(demo.persons_observed), demo.households_observed)
    )
    if not (persons and households):
        words = "The census is too small to tell."
        return Section("observed", "Observed errors against margins of error", (paragraph(words),))
    share = percent(float(demo.persons_plan.confidence))
    series = (Mark("nation and states", BLUE, "circle"), Mark("smaller areas", ORANGE, "diamond"))
    counts = [row.count for row in (*persons, *households)]
    numbers = sorted({round(n) for n in np.geomspace(min(counts), max(counts), 24).tolist()})
    band = [
        {"x": n, "low": low, "high": high}
        for n, (low, high) in ((n, chance_band(min(n, _MOST_RANKS), demo.persons_plan.confidence)) for n in numbers)
    ]
    ratios = [_ratio(row) for row in (*persons, *households)]
    ends = (
        math.floor(10 * min(*ratios, band[0]["low"]) - 0.2) / 10,
        math.ceil(10 * max(*ratios, band[0]["high"]) + 0.2) / 10,
    )

    def panel(title: str, rows: Sequence[Accuracy]) -> Chart:
        points = [{"x": row.count, "y": _ratio(row), "series": _series_of(row, series)} for row in rows]
        return Chart(
            f"{title}: observed over expected margin of error by table, level and size of the group.",
            lambda width: funnel(
                points, band, series, width, x="draws (log scale)", y="observed / expected margin", ends=ends
            ),
            {
                "Table": [row.table for row in rows],
                "Areas": [row.region_type for row in rows],
                "Level": [str(row.iteration_level) for row in rows],
                "True size": [row.size for row in rows],
                "Draws": [whole(row.count) for row in rows],
                "Expected": [rounded(row.expected_moe or 0.0, 4) for row in rows],
                "Observed": [rounded(row.experimental_moe or 0.0, 4) for row in rows],
                "Ratio": [f"{_ratio(row):.3f}" for row in rows],
            },
            title=title,
        )

    return Section(
        "observed",
        "Observed errors against margins of error",
        (
            paragraph(
                f"The census was measured {whole(demo.trials)} times. For every table, level and size of the group, "
                f"the observed margin is the {share} quantile of the absolute error of the measured cells. A dot at 1 "
                "says that the margin is what the plan promised. The grey band holds 95% of the dots, but for one "
                "thing: counts are whole numbers, so a margin of 3 is either 2, 3 or 4 when it is observed."
            ),
            Figure(
                (panel("Persons", persons), panel("Households", households)),
                f"Rows with fewer than {_FEWEST_DRAWS} draws are not drawn. Nor are totals of persons in sizes of "
                "which zero suppression left some out: what it lets through is chosen by its noise.",
                series,
            ),
        ),
    )


_MOST_RANKS: Final = 20_000
"""Beyond, the band is narrower than a dot."""


def _unselected(rows: Sequence[Accuracy]) -> list[Accuracy]:
    left = {(row.region_type, row.iteration_level, row.size) for row in rows if row.table == LEFT_OUT}
    return [row for row in rows if row.table != TOTALS or (row.region_type, row.iteration_level, row.size) not in left]


def _ratio(row: Accuracy) -> float:
    assert row.experimental_moe is not None  # noqa: S101 (rows without errors were dropped)
    assert row.expected_moe  # noqa: S101
    return row.experimental_moe / row.expected_moe


def _series_of(row: Accuracy, series: tuple[Mark, Mark]) -> str:
    return series[0 if row.region_type in {"USA", "STATE", "PR-STATE"} else 1].name


def _public(demo: SafetabDemonstration) -> Section:
    return Section(
        "public",
        "What is taken as public",
        (
            paragraph(
                "The guarantees protect the records of persons and of households. They take as known to everybody:"
            ),
            bullets(*(item[0].upper() + item[1:] + "." for item in demo.taken_as_public)),
        ),
    )


FILES: Final = {
    "safetab.html": "this report",
    "parameters/": "codes, iterations and config.json: a made-up parameter folder in the Bureau's format",
    "census/": "person-records.txt, household-records.txt, GRF-C.txt, housing-units.txt",
    "safetab-p/": "T01001, T02001 to T02003, and manifest.json with plan, ledger and checksums",
    "safetab-h/": "T03001 to T03004, T04001, T04002 and manifest.json",
    "safetab-p-exact/": "the tables of persons without noise, as synthetic records allow",
    "safetab-*.confidential.log": "what depends on the records without noise; never part of a release",
}


def _again(demo: SafetabDemonstration) -> Section:
    parameters, census, persons = (str(demo.out / name) for name in ("parameters", "census", "safetab-p"))
    totals = f"{persons}/{TOTALS}.csv"
    commands = {
        "what the plan costs, and how precise it is; needs no records": ("safetab-p", "plan", parameters),
        "another release of persons: new noise, the same law": ("safetab-p", "run", parameters, census, "my-persons"),
        "and of households": ("safetab-h", "run", parameters, census, "my-households", "--totals", totals),
        "the errors, measured": ("safetab-p", "accuracy", parameters, census, "--trials", str(demo.trials)),
    }
    lines = "\n\n".join(f"# {words}\nyupana {shlex.join(arguments)}" for words, arguments in commands.items())
    return Section(
        "again",
        "The files, and how to do it again",
        (
            join(paragraph("Everything lies in the folder ", code(str(demo.out)), ".")),
            table({"File": [code(name) for name in FILES], "Holds": list(FILES.values())}, "The files"),
            paragraph("These commands repeat it part by part, from the folder where the demonstration was started."),
            element("pre", code(lines), tabindex="0"),
            table(
                {
                    "Stage": list(demo.seconds),
                    "Seconds": [f"{seconds:.2f}" for seconds in demo.seconds.values()],
                },
                "How long each stage took, up to this report",
            ),
        ),
    )
