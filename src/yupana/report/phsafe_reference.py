"""Margins of error of a plan of PHSafe beside public counts, and what truncation would cost. It shows no truth."""

from collections.abc import Mapping, Sequence
from typing import Final

from yupana.plan.plan import Plan
from yupana.products.phsafe.specification import LEVELS as SPEC_LEVELS
from yupana.products.phsafe.specification import TABLES, cell_column
from yupana.report.charts import Mark, trend
from yupana.report.html import Html, paragraph, shades, table
from yupana.report.numbers import percent, rounded, whole
from yupana.report.page import Chart, Figure, Section
from yupana.report.plans import LEVELS
from yupana.report.plans import TABLES as WORDS

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

# fmt: off
STATE_NAMES: Final = {
    "01": "Alabama", "02": "Alaska", "04": "Arizona", "05": "Arkansas", "06": "California", "08": "Colorado",
    "09": "Connecticut", "10": "Delaware", "11": "District of Columbia", "12": "Florida", "13": "Georgia",
    "15": "Hawaii", "16": "Idaho", "17": "Illinois", "18": "Indiana", "19": "Iowa", "20": "Kansas", "21": "Kentucky",
    "22": "Louisiana", "23": "Maine", "24": "Maryland", "25": "Massachusetts", "26": "Michigan", "27": "Minnesota",
    "28": "Mississippi", "29": "Missouri", "30": "Montana", "31": "Nebraska", "32": "Nevada", "33": "New Hampshire",
    "34": "New Jersey", "35": "New Mexico", "36": "New York", "37": "North Carolina", "38": "North Dakota",
    "39": "Ohio", "40": "Oklahoma", "41": "Oregon", "42": "Pennsylvania", "44": "Rhode Island",
    "45": "South Carolina", "46": "South Dakota", "47": "Tennessee", "48": "Texas", "49": "Utah", "50": "Vermont",
    "51": "Virginia", "53": "Washington", "54": "West Virginia", "55": "Wisconsin", "56": "Wyoming",
    "72": "Puerto Rico",
}
# fmt: on

_LEVEL_OF: Final = {(level.region_type, code): level.key for level in SPEC_LEVELS for code in level.iterations}


def published_counts(tables: Mapping[str, Mapping[str, Sequence[str]]]) -> Counts:
    """The counts of a release, by its tables as columns of text; those below zero as 0."""
    counts: dict[str, dict[int, dict[str, dict[str, int]]]] = {t.name: {c: {} for c in CELLS[t.name]} for t in TABLES}
    for of_table in TABLES:
        columns = tables.get(of_table.name)
        if columns is None:
            continue
        iterations = columns.get("ITERATION_CODE", ["*"] * len(columns["COUNT"]))
        cells = columns[cell_column(of_table.name)]
        for region, code, cell, count in zip(columns["REGION_ID"], iterations, cells, columns["COUNT"], strict=True):
            counts[of_table.name][int(cell)].setdefault(code, {})[region] = max(0, int(count))
    return counts


def relative_section(plan: Plan, counts: Counts, name: str, cell: int, source: str) -> Section:
    """The margin of error of one cell as a share of its count, by region and iteration.

    Parameters
    ----------
    plan : Plan
    counts : Counts
        Public: published or invented.
    name : str
        A table.
    cell : int
        One of its cells.
    source : str
        Whose counts they are, to finish a sentence.
    """
    margins = {m.level: plan.margin(m) for m in plan.measurements if m.table == name}
    found = counts[name][cell]
    codes = [code for code in ITERATIONS if code in found]
    regions = list(dict.fromkeys(region for code in codes for region in found[code]))

    def error(region: str, code: str) -> float | None:
        margin = margins.get(_LEVEL_OF["USA" if region == "1" else "STATE", code])
        count = found[code].get(region)
        if margin is None or count is None:
            return None
        return margin / count if count else float("inf")

    rows = {
        "Nation" if region == "1" else STATE_NAMES.get(region, region): [error(region, code) for code in codes]
        for region in sorted(regions, key=lambda r: (r != "1", STATE_NAMES.get(r, r)))
    }
    known = [e for values in rows.values() for e in values if e is not None]
    small = sum(e <= 0.1 for e in known)
    told = (
        f"Of {whole(len(known))} counts of this cell, {whole(small)} have a margin of error of at most a tenth of "
        "themselves."
        if known
        else "No level of this table is switched on."
    )
    words = f"{name}, {WORDS[name]}: {CELLS[name][cell]}"
    return Section(
        "relative",
        "Relative error by state and iteration",
        (
            paragraph(f"{words}. The counts are those of {source}. {told}"),
            shades(
                rows,
                [ITERATIONS[code] for code in codes],
                "Margin of error as a share of the count",
                "Region",
            ),
            *_share_within(plan, counts),
        ),
    )


def _share_within(plan: Plan, counts: Counts) -> list[Html]:
    """For every table and level, how many counts are known to a tenth of themselves."""
    used = [key for key in LEVELS if any(m.level == key for m in plan.measurements)]
    rows: dict[str, list[str]] = {}
    for m in plan.measurements:
        margin, values = plan.margin(m), _counts_of_level(counts, m.table, m.level)
        shown = percent(sum(margin <= 0.1 * count for count in values) / len(values)) if values else "–"
        rows.setdefault(m.table, ["–"] * len(used))[used.index(m.level)] = shown
    if not rows:
        return []
    columns: dict[str, list[str]] = {
        "Table": list(rows),
        **{LEVELS[key].name: [of_table[i] for of_table in rows.values()] for i, key in enumerate(used)},
    }
    return [table(columns, "How many of the counts have a margin of error of at most a tenth of themselves")]


def _counts_of_level(counts: Counts, name: str, key: str) -> list[int]:
    """All counts of the cells of a table at a level."""
    level = next(level for level in SPEC_LEVELS if level.key == key)
    return [
        count
        for of_cell in counts[name].values()
        for code in level.iterations
        for region, count in of_cell.get(code, {}).items()
        if (region == "1") == (level.region_type == "USA")
    ]


def typical_sizes(counts: Counts) -> dict[tuple[str, str], int]:
    """The median count of the cells of each table and level, at least 1."""
    found = {}
    for of_table in TABLES:
        for level in of_table.levels:
            if values := sorted(_counts_of_level(counts, of_table.name, level.key)):
                found[of_table.name, level.key] = max(1, values[len(values) // 2])
    return found


def left_out(households: Mapping[int, int], tau: int) -> tuple[int, int, int]:
    """Persons left out by a threshold, all persons, and the households that lose somebody."""
    lost = sum((persons - tau) * number for persons, number in households.items() if persons > tau)
    people = sum(persons * number for persons, number in households.items())
    return lost, people, sum(number for persons, number in households.items() if persons > tau)


def cost_section(taus: Mapping[str, int], households: Mapping[str, Mapping[int, int]], source: str) -> Section:
    """What truncation at the thresholds of a plan leaves out, and would at others.

    Parameters
    ----------
    taus : mapping of table to int
    households : mapping of table to mapping of persons to households
        How many households have so many persons of the table's universe.
    source : str
        Whose households they are, to finish a sentence.
    """
    rows = []
    points = []
    shapes = dict(zip(households, ("#2f6fb0", "#3fa0c9", "#8180d6", "#cf5a1e", "#d9982a", "#c65f95"), strict=False))
    for name, of_table in households.items():
        lost, people, affected = left_out(of_table, taus[name])
        rows.append((name, whole(taus[name]), whole(lost), _parts(lost, people), whole(affected)))
        for tau in range(1, 16):
            share = left_out(of_table, tau)[0] / people
            if share > 0:
                points.append({"x": tau, "y": share, "series": name})
    columns = dict(
        zip(("Table", "Threshold τ", "Persons left out", "of all", "Households"), zip(*rows, strict=True), strict=True)
    )
    series = tuple(Mark(name, colour, "circle") for name, colour in shapes.items())
    label = "The share of persons that truncation leaves out, by table and threshold."
    data: dict[str, list[object]] = {
        "Threshold": [str(p["x"]) for p in points],
        "Table": [p["series"] for p in points],
        "Share left out": [percent(float(str(p["y"])), 4) for p in points],
    }
    return Section(
        "truncation",
        "What truncation would cost",
        (
            paragraph(
                "Of a household with more than τ persons of a table's universe, only τ are counted. A lower threshold "
                "means less noise at the same ρ, and more people left out. The noise is known, and this error is not "
                f"part of any margin. The households are those of {source}; how many are crowded is an assumption."
            ),
            table(columns, "Persons and households that the thresholds chosen would leave out"),
            Figure(
                (
                    Chart(
                        label,
                        lambda width: trend(points, series, width, x="threshold τ", y="share of persons left out"),
                        data,
                    ),
                ),
                "On a logarithmic scale: each line is a table, and the chosen threshold is in the list above.",
                series,
            ),
        ),
    )


def _parts(lost: int, people: int) -> str:
    return f"{rounded(100 * lost / people, 3)}%" if lost else "0%"
