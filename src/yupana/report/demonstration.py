"""The reports of a demonstration: plans, releases, and the truth beside them, as invented people allow.

Nothing here reads a record: whoever calls hands over the truth.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from yupana.plan.plan import DEFAULT_DELTA, Plan
from yupana.privacy.zcdp import epsilon_tight
from yupana.products.phsafe.errors import CellError, PhsafeAccuracy
from yupana.products.phsafe.product import PHSAFE
from yupana.products.safetab.errors import LEFT_OUT, SIZES, LevelErrors, SafetabAccuracy, size_bins
from yupana.products.safetab.iterations import CharacteristicIterations, Iteration
from yupana.products.safetab.product import HOUSEHOLDS, PERSONS
from yupana.products.safetab.specification import AGE_TABLES, HOUSEHOLD_TYPE, TENURE, TOTALS
from yupana.report.charts import BLUE, ORANGE, Mark, dots_about_zero, funnel, grid_of_shares, intervals, share_bars
from yupana.report.errors import (
    DRAWS,
    OBSERVED,
    Columns,
    chance_band,
    error_sections,
    funnel_ends,
    published_counts,
    relative_figure,
    relative_row,
    relative_section,
)
from yupana.report.groups import (
    AGES,
    LEVEL_NAMES,
    TYPES,
    Received,
    Release,
    groups_by_table,
    loss_section,
    received_sections,
)
from yupana.report.html import Html
from yupana.report.numbers import percent, rounded, whole
from yupana.report.page import Chart, Figure, Page, Section, read_page, sections
from yupana.report.plans import level_sections, losses, plan_sections
from yupana.report.topdown_areas import words_of

_NATION: Final = 331_449_281
"""Residents of the United States on 1 April 2020."""


@dataclass(frozen=True, slots=True)
class Demonstration:
    """What a demonstration hands to its report.

    Attributes
    ----------
    plan : Plan
    taus : mapping of table to int
    states, persons, households, trials : int
        Sizes of the synthetic census, and how often it was measured.
    seed : int
        Of the census, not of the noise.
    status : str
    release : mapping of table to columns
        The tables as published.
    errors : sequence of CellError
    observed : sequence of PhsafeAccuracy
        Of the same errors.
    taken_as_public : sequence of str
    seconds : mapping of stage to float
    out : Path
        Where the demonstration will stand, as its user wrote it.
    """

    plan: Plan
    taus: Mapping[str, int]
    states: int
    persons: int
    households: int
    trials: int
    seed: int
    status: str
    release: Mapping[str, Columns]
    errors: Sequence[CellError]
    observed: Sequence[PhsafeAccuracy]
    taken_as_public: Sequence[str]
    seconds: Mapping[str, float]
    out: Path


def demonstration_page(demo: Demonstration) -> Page:
    """Assemble the report on PHSafe."""
    out = {name: str(demo.out / name) for name in ("config.json", "census", "release")}
    config, census, release = out.values()
    total = losses(demo.plan)
    times = _NATION / demo.persons
    return read_page(
        "demonstration_phsafe.html",
        demo=demo,
        counts=sum(len(columns["COUNT"]) for columns in demo.release.values()),
        unbounded=total["unbounded"],
        bounded=total["bounded"],
        epsilon=[epsilon_tight(rho, DEFAULT_DELTA) for rho in total["unbounded"]],
        delta=DEFAULT_DELTA,
        smaller=float(f"{times:.2g}") if times >= 2 else None,
        plan=plan_sections(demo.plan),
        relative=relative_section(
            demo.plan, published_counts(demo.release), "PH1_num", 2, "this release, noise included"
        ),
        errors=error_sections(demo.plan, demo.taus, demo.release, demo.errors, demo.observed, demo.trials),
        commands=_commands(
            {
                "what the plan costs, and how precise it is; needs no records": (PHSAFE.key, "plan", config),
                "another release: new noise, the same law": (PHSAFE.key, "run", config, census, "my-release"),
                "a release against its manifest and plan": ("check", release),
                "the counts without noise, as synthetic records allow": (
                    PHSAFE.key,
                    "exact",
                    config,
                    census,
                    "my-truth",
                ),
                "the errors, measured": (PHSAFE.key, "accuracy", config, census, "--trials", str(demo.trials)),
                "the same census, invented again": (
                    *("synth", "my-census", "--households", str(demo.households), "--seed", str(demo.seed)),
                ),
            }
        ),
        files=_files,
        seconds=_seconds(demo.seconds),
    )


def _commands(commands: Mapping[str, tuple[str, ...]]) -> str:
    return "\n\n".join(f"# {words}\nyupana {shlex.join(arguments)}" for words, arguments in commands.items())


def _files(held: Mapping[str, str]) -> dict[str, list[str]]:
    return {"File": [Html("<code>{}</code>").format(name) for name in held], "Holds": list(held.values())}


def _seconds(seconds: Mapping[str, float]) -> dict[str, list[str]]:
    return {"Stage": list(seconds), "Seconds": [f"{took:.2f}" for took in seconds.values()]}


_SHOWN: Final = {"state": "040", "county": "050", "tract": "140", "block_group": "150", "block": "750"}
"""Kinds of areas that the demonstration of TopDown compares, with their summary levels."""


def topdown_page_with_truth(
    released: Release, truth: Release, page: Page, status: str, *, persons: int, households: int
) -> Page:
    """Put the truth before the page of a TopDown release of invented people.

    Parameters
    ----------
    released, truth : mapping of table to columns
        With and without noise; of both table P1 is read.
    page : Page
    status : str
    persons, households : int
        Of the synthetic state.
    """
    areas = list(zip(truth["P1"]["SUMLEV"], truth["P1"]["GEOCODE"], strict=True))
    if areas != list(zip(released["P1"]["SUMLEV"], released["P1"]["GEOCODE"], strict=True)):
        raise ValueError("the truth is of other areas than the release")
    level = np.array([summary_level for summary_level, _ in areas])
    variables = [name for name in truth["P1"] if name not in {"SUMLEV", "GEOCODE"}]
    true, noisy = (np.array([t["P1"][name] for name in variables], dtype=np.int64) for t in (truth, released))
    off = noisy - true
    totals = {kind: off[0, level == code] for kind, code in _SHOWN.items()}
    lines = np.isin(level, [_SHOWN["tract"], _SHOWN["block_group"]]) & ((true > 0) | (noisy > 0))
    pairs = sorted(set(zip(true[lines].tolist(), off[lines].tolist(), strict=True)))
    points = [{"x": x, "y": y} for x, y in pairs]
    chart = Chart(
        "Errors of the lines of table P1 in tracts and block groups, against their true counts.",
        lambda width: dots_about_zero(points, width, x="true count", y="released less true"),
        {"True count": [whole(row["x"]) for row in points], "Released less true": [row["y"] for row in points]},
    )
    parts = sections(
        "demonstration_topdown.html",
        persons=persons,
        households=households,
        errors={
            "Areas": [words_of(kind)[1] for kind in totals],
            "Number": [whole(len(of)) for of in totals.values()],
            "Mean size of the error": [rounded(float(np.abs(of).mean())) for of in totals.values()],
            "Largest": [whole(np.abs(of).max()) for of in totals.values()],
            "Without error": [percent(float((of == 0).mean())) for of in totals.values()],
        },
        cells=Figure((chart,)),
    )
    words = (
        "A demonstration on invented people: the truth is shown beside the noisy counts. A report on real records must "
        "never do that."
    )
    return replace(
        page,
        title="TopDown on a synthetic state",
        status=status,
        status_words=words,
        sections=(*parts, *page.sections),
    )


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
    persons_observed, households_observed : sequence of SafetabAccuracy
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
    persons_observed: Sequence[SafetabAccuracy]
    households_observed: Sequence[SafetabAccuracy]
    taken_as_public: Sequence[str]
    seconds: Mapping[str, float]
    status: str
    out: Path


def safetab_page(demo: SafetabDemonstration) -> Page:
    """Assemble the report on SafeTab."""
    persons, households = _received(demo)
    parameters, census, first = (str(demo.out / name) for name in ("parameters", "census", PERSONS.key))
    totals = f"{first}/{TOTALS}.csv"
    return read_page(
        "demonstration_safetab.html",
        demo=demo,
        possible=sum(r.possible for r in persons),
        published=sum(r.published for r in persons),
        published_households=sum(r.published for r in households["types"]),
        counts=[
            sum(len(t["COUNT"]) for t in release.values())
            for release in (demo.persons_release, demo.households_release)
        ],
        received=received_sections(persons, households),
        confidence=float(demo.persons_plan.confidence),
        sizes=_sizes(demo),
        left_out=_left_out(demo),
        area=_area(demo),
        reliance=_reliance(demo),
        observed=_observed(demo),
        fewest=_FEWEST_DRAWS,
        loss=loss_section(demo.persons_plan, demo.households_plan),
        plans=_plans(demo),
        commands=_commands(
            {
                "what the plan costs, and how precise it is; needs no records": (PERSONS.key, "plan", parameters),
                "another release of persons: new noise, the same law": (
                    *(PERSONS.key, "run", parameters, census, "my-persons"),
                ),
                "and of households": (HOUSEHOLDS.key, "run", parameters, census, "my-households", "--totals", totals),
                "the errors, measured": (PERSONS.key, "accuracy", parameters, census, "--trials", str(demo.trials)),
            }
        ),
        files=_files,
        seconds=_seconds(demo.seconds),
    )


def _plans(demo: SafetabDemonstration) -> list[Section]:
    """Budgets and margins of both plans, as the explorer shows them."""
    plans = {"SafeTab-P": demo.persons_plan, "SafeTab-H": demo.households_plan}
    return [
        replace(section, anchor=f"{section.anchor}-{name[-1].lower()}", title=f"{section.title}, {name}")
        for name, plan in plans.items()
        for section in level_sections(plan)
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


_PANELS: Final = (
    ("Nation and states, regional groups", ("USA", "STATE"), 1),
    ("Nation and states, detailed groups", ("USA", "STATE"), 2),
    ("Smaller areas, regional groups", ("COUNTY", "TRACT", "PLACE", "AIANNH"), 1),
    ("Smaller areas, detailed groups", ("COUNTY", "TRACT", "PLACE", "AIANNH"), 2),
)
"""Levels that share their thresholds."""


def _sizes(demo: SafetabDemonstration) -> Figure:
    """Which table groups of each true size got."""
    panels = (_size_panel(title, _shares_by_size(demo, types, level)) for title, types, level in _PANELS)
    return Figure(tuple(panel for panel in panels if panel is not None), legend=tuple(AGES.values()))


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


def _left_out(demo: SafetabDemonstration) -> Figure | None:
    """Shares of groups left out, by level and true size."""
    # Both kinds of iterations of a level together: below the state there is one kind only.
    left = [row for row in demo.persons_observed if row.table == LEFT_OUT]
    levels = {(e.level.region.name, e.level.iteration_level): LEVEL_NAMES[e.level.name] for e in demo.persons_errors}
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
    if not rows:
        return None
    columns = [name for name in _SIZE_NAMES.values() if any(row["column"] == name for row in rows)]
    bounds = (0.01, 0.05, 0.25, 0.75, 0.99)
    chart = Chart(
        "Share of the population groups of each level and true size that zero suppression left out.",
        lambda width: grid_of_shares(rows, width, x="true number of people", bounds=bounds, columns=columns),
        {
            "Level": [row["category"] for row in rows],
            "True size": [row["column"] for row in rows],
            "Groups": [whole(row["groups"]) for row in rows],
            "Left out": [percent(row["value"], 2) for row in rows],
        },
    )
    return Figure((chart,))


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


def _area(demo: SafetabDemonstration) -> dict[str, Any]:
    """The groups of one area, published and true."""
    region_type, region_id = _busiest_area(demo.persons_release[TOTALS])
    rows = _rows_of(demo, region_type, region_id)
    kind = {"USA": "the nation", "STATE": f"state {region_id}"}.get(region_type, f"county {region_id}")
    # One bar for each group: those alone would stand beside nearly the same ones.
    drawn = [row for row in rows if row.iteration.alone is not True and row.count - row.margin >= 1][:_MOST_GROUPS]
    data = [
        {
            "category": row.iteration.name.removesuffix(" alone or in any combination"),
            "value": row.count,
            "low": row.count - row.margin,
            "high": row.count + row.margin,
            # The axis is logarithmic.
            "true": max(row.true, 1),
        }
        for row in drawn
    ]
    chart = Chart(
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
    )
    marks = Mark("published, with margin of error", BLUE, "circle"), Mark("true", ORANGE)
    return {
        "kind": kind,
        "county": region_type == "COUNTY",
        "groups": len(rows),
        "inside": sum(abs(row.count - row.true) <= row.margin for row in rows),
        "drawn": len(drawn),
        "figure": Figure((chart,), legend=marks),
    }


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


def _reliance(demo: SafetabDemonstration) -> dict[str, Figure]:
    """The relative error of totals by level and size."""
    share = percent(float(demo.persons_plan.confidence))
    names = ["1", *list(_SIZE_NAMES.values())[1:]]

    def figure(title: str, errors: Sequence[LevelErrors], plan: Plan) -> Figure:
        rows = _relative_errors(errors, float(plan.confidence))
        return relative_figure(
            f"{title}: the relative error that {share} of the published totals keep within, by level and true size.",
            rows,
            [name for name in names if any(row["column"] == name for row in rows)],
            x="true size of the group",
            heads=("True size", "Totals measured"),
            title=title,
        )

    return {
        "persons": figure("Totals of persons", demo.persons_errors, demo.persons_plan),
        "households": figure("Totals of households", demo.households_errors, demo.households_plan),
    }


def _relative_errors(errors: Sequence[LevelErrors], confidence: float) -> list[dict[str, Any]]:
    """The quantile of |error| / size of totals, measured or added up; tenure would count the same households again."""
    parts: dict[tuple[str, int], list[np.ndarray[tuple[int], np.dtype[np.float64]]]] = {}
    for e in errors:
        for t in e.tables:
            if t.table.name.startswith(TENURE.name):
                continue
            there = t.sizes > 0
            off = np.abs(t.noise[there].sum(axis=1)) / t.sizes[there]
            bins = size_bins(t.sizes[there])
            for number in np.unique(bins).tolist():
                parts.setdefault((LEVEL_NAMES[e.level.name], number), []).append(off[bins == number])
    # A level's rows stand together, whichever kind of iterations came first.
    levels = list(dict.fromkeys(LEVEL_NAMES[e.level.name] for e in errors))
    rows = []
    for (level, number), found in sorted(parts.items(), key=lambda part: (levels.index(part[0][0]), part[0][1])):
        if SIZES[number] in _SIZE_NAMES:
            size = _SIZE_NAMES[SIZES[number]].replace("0–1", "1")
            rows.append(relative_row(level, size, np.concatenate(found), confidence))
    return rows


_FEWEST_DRAWS: Final = 30
"""Behind a dot: fewer would be told by chance alone."""


def _observed(demo: SafetabDemonstration) -> Figure | None:
    """Observed over expected margins of measured cells; None where the census is too small to tell."""
    persons, households = (
        [row for row in rows if row.experimental_moe is not None and row.expected_moe and row.count >= _FEWEST_DRAWS]
        for rows in (_unselected(demo.persons_observed), demo.households_observed)
    )
    if not (persons and households):
        return None
    marks = (Mark("nation and states", BLUE, "circle"), Mark("smaller areas", ORANGE, "diamond"))
    counts = [row.count for row in (*persons, *households)]
    numbers = sorted({round(n) for n in np.geomspace(min(counts), max(counts), 24).tolist()})
    band = [
        {"x": n, "low": low, "high": high}
        for n, (low, high) in ((n, chance_band(min(n, _MOST_RANKS), demo.persons_plan.confidence)) for n in numbers)
    ]
    ends = funnel_ends([_ratio(row) for row in (*persons, *households)], band)

    def panel(title: str, rows: Sequence[SafetabAccuracy]) -> Chart:
        of = [marks[row.region_type not in {"USA", "STATE", "PR-STATE"}].name for row in rows]
        points = [{"x": row.count, "y": _ratio(row), "series": mark} for row, mark in zip(rows, of, strict=True)]
        return Chart(
            f"{title}: observed over expected margin of error by table, level and size of the group.",
            lambda width: funnel(points, band, marks, width, x=DRAWS, y=OBSERVED, ends=ends),
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

    return Figure((panel("Persons", persons), panel("Households", households)), legend=marks)


_MOST_RANKS: Final = 20_000
"""Beyond, the band is narrower than a dot."""


def _unselected(rows: Sequence[SafetabAccuracy]) -> list[SafetabAccuracy]:
    left = {(row.region_type, row.iteration_level, row.size) for row in rows if row.table == LEFT_OUT}
    return [row for row in rows if row.table != TOTALS or (row.region_type, row.iteration_level, row.size) not in left]


def _ratio(row: SafetabAccuracy) -> float:
    assert row.experimental_moe is not None  # noqa: S101 (rows without errors were dropped)
    assert row.expected_moe  # noqa: S101
    return row.experimental_moe / row.expected_moe
