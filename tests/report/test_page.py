"""The report: self-contained, labelled, escaped, and with the numbers of its plan."""

import html
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from plans import plan_of, production_plan
from scipy.stats import beta, norm

from yupana.errors import ConfigError
from yupana.plan.measurement import Mechanism
from yupana.plan.plan import Plan
from yupana.privacy.exact import INFINITE
from yupana.products.phsafe.configuration import TAUS, budgets
from yupana.products.phsafe.specification import LEVELS, Group, cell_column, cells_of, groups_of, table
from yupana.report import numbers
from yupana.report.demonstration import Demonstration, demonstration_page
from yupana.report.errors import chance_band, published_beside_truth
from yupana.report.html import TEMPLATES, Html
from yupana.report.html import table as html_table
from yupana.report.page import Chart, Figure, Page, Section, render, sections
from yupana.report.plans import plan_sections

STATES = ("02", "06")
TRIALS = 3


@dataclass(frozen=True)
class Errors:
    """As the accuracy of a product hands them over, made from nothing."""

    table: str
    level: str
    cell: int
    groups: tuple[Group, ...]
    truth: NDArray[np.int64]
    truncation_error: NDArray[np.int64]
    noise: NDArray[np.int64]


@dataclass(frozen=True)
class Observed:
    table: str
    level: str
    iteration: str
    cell: int
    count: int
    expected_moe: float
    experimental_moe: float
    experimental_moe_with_truncation: float


def demonstration(plan: Plan, out: Path = Path("demo")) -> Demonstration:
    rng = np.random.default_rng(5)
    errors, observed = [], []
    release: dict[str, dict[str, list[str]]] = {}
    for m in plan.measurements:
        found = groups_of(LEVELS[m.level], STATES)
        iterated = table(m.table).has_groups
        columns = release.setdefault(m.table, {})
        for cell in cells_of(table(m.table)):
            truth = rng.integers(0, 20_000, len(found))
            truth[0] = 0
            noise = rng.normal(0, m.sigma, (TRIALS, len(found))).round().astype(np.int64)
            errors.append(Errors(m.table, m.level, cell, found, truth, -(truth // 500), noise))
            margins = plan.margin(m), 1.1 * plan.margin(m), 9.0
            observed += [
                Observed(m.table, m.level, code, cell, TRIALS * [g.iteration for g in found].count(code), *margins)
                for code in LEVELS[m.level].groups
            ]
            for place, group in enumerate(found):
                row = {
                    "REGION_ID": group.region_id,
                    "REGION_TYPE": group.region_type,
                    **({"ITERATION_CODE": group.iteration} if iterated else {}),
                    cell_column(m.table): str(cell),
                    "COUNT": str(truth[place] + noise[0, place]),
                    "MOE": repr(plan.margin(m)),
                }
                for name, value in row.items():
                    columns.setdefault(name, []).append(value)
    return Demonstration(
        plan=plan,
        taus=TAUS,
        states=len(STATES),
        persons=123_456,
        households=45_678,
        trials=TRIALS,
        seed=7,
        status="NOT FOR RELEASE",
        release=release,
        errors=errors,
        observed=observed,
        taken_as_public=("the list of <units>",),
        seconds={"counting": 1.25},
        out=out,
    )


@pytest.fixture(scope="module")
def page() -> Page:
    return demonstration_page(demonstration(production_plan(puerto_rico=False)))


@pytest.fixture(scope="module")
def text(page: Page) -> str:
    return render(page)


def charts(page: Page) -> Iterator[tuple[Figure, Chart]]:
    for section in page.sections:
        for content in section.content:
            if isinstance(content, Figure):
                yield from ((content, chart) for chart in content.charts)


def test_page_loads_nothing(text: str) -> None:
    assert "://" not in text
    assert not re.findall(r"<(script|link|img|iframe|object|embed|image|use)\b|@import|@font-face", text)
    assert not re.findall(r"""\b(src|xlink:href)=|\bhref="(?!#)""", text)
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", text))
    assert "default-src 'none'" in text


def test_identifiers_are_unique_and_links_lead_somewhere(text: str) -> None:
    identifiers = re.findall(r'\bid="([^"]+)"', text)
    assert len(identifiers) == len(set(identifiers))
    targets = set(re.findall(r'href="#([^"]+)"', text)) | set(re.findall(r"url\(#([^)]+)\)", text))
    assert targets <= set(identifiers)


def test_every_chart_is_there_with_label_and_numbers(page: Page, text: str) -> None:
    found = list(charts(page))
    assert len(found) == 13
    for figure, chart in found:
        drawn = 2 if len(figure.charts) == 1 else 1
        assert text.count(f'<svg role="img" aria-label="{html.escape(chart.label)}"') == drawn
        assert len({len(values) for values in chart.data.values()}) == 1
        assert f'<table aria-label="{html.escape(chart.label)}">' in text
    assert text.count("<svg role") == text.count('role="img"')


def test_no_chart_is_empty(page: Page, text: str) -> None:
    """A mark of every chart reaches the drawing: Vega-Lite drops silently what it does not understand."""
    drawings = re.findall(r'<svg role="img".*?</svg>', text, re.DOTALL)
    assert len(drawings) == sum(2 if len(figure.charts) == 1 else 1 for figure, _ in charts(page))
    for drawing in drawings:
        assert re.search(r'class="mark-(rect|symbol) role-mark[^>]*><path', drawing)
        assert "NaN" not in drawing
        assert "undefined" not in drawing


def test_numbers_are_those_of_the_plan(text: str) -> None:
    plan = production_plan(puerto_rico=False)
    totals = plan.as_json()["totals"]
    for key in ("unbounded_rho_float", "bounded_rho_float", "same_household_rho_float"):
        assert f"{totals[key]:.6f}" in text
        assert f"{totals['proven'][key]:.6f}" in text
    assert f"{totals['epsilon']:.2f}" in text
    assert "1.257281" in text
    assert "2.514562" in text
    for m in plan.measurements:
        row = [numbers.whole(m.cells), numbers.rounded(m.sigma, 5), numbers.rounded(plan.margin(m), 5)]
        assert "".join(f'<td class="number">{value}</td>' for value in row) in text
        assert f'<td class="number">{float(m.budget):.6f}</td>' in text


def test_status_and_sizes_are_told(text: str) -> None:
    assert "<strong>NOT FOR RELEASE</strong>" in text
    assert "NOT FOR RELEASE</title>" in text
    assert "123,456" in text
    assert "45,678" in text


def test_names_are_escaped() -> None:
    nasty = """<script>alert("1" & '2')</script>"""
    chart = Chart(nasty, lambda _: {"data": {"values": [{"a": 1}]}, "mark": "point"}, {nasty: [nasty]}, nasty)
    figure = Figure((chart, chart), nasty)
    page = Page(nasty, nasty, nasty, {nasty: (nasty, nasty)}, (Section("a", nasty, (figure,)),))
    text = render(page)
    assert "<script" not in text
    assert '"1"' not in text


def test_text_forges_no_figure() -> None:
    """Figures are kept by a comment in the text of a template, which no value can write."""
    chart = Chart("label", lambda _: {"data": {"values": [{"a": 1}]}, "mark": "point"}, {"a": [1]})
    nasty = "<!--figure 0--><script>alert(1)</script>"
    (section,) = sections("groups_tables.html", anchor="a", heading=nasty, words=nasty, groups=Figure((chart,)))
    assert [isinstance(part, Figure) for part in section.content] == [False, True]
    text = render(Page("title", "status", "", {}, (section,)))
    assert "<script" not in text
    assert "<!--" not in text
    assert text.count(str(Html.escape(nasty))) == 3  # in the contents, the heading and the words


def test_no_template_switches_escaping_off() -> None:
    for path in TEMPLATES.glob("*.html"):
        assert not re.search(r"\|\s*safe\b|autoescape|Markup", path.read_text()), path.name


def test_commands_quote_the_folder() -> None:
    demo = demonstration(production_plan(puerto_rico=False), Path("my <demo>; rm -rf"))
    text = render(demonstration_page(demo))
    assert "<demo>" not in text
    assert Html.escape("yupana check 'my <demo>; rm -rf/release'") in text
    assert "the list of &lt;units&gt;" in text.lower()


def test_markup_is_escaped_once() -> None:
    drawn = html_table({"<": ["a < b & c", Html("<b>x</b>")]}, "<i>")
    assert "<td>a &lt; b &amp; c</td>" in drawn
    assert "<td><b>x</b></td>" in drawn
    assert '<p class="note caption">&lt;i&gt;</p>' in drawn
    assert Html.escape(Html.escape("a < b")) == "a &lt; b"


def test_columns_of_numbers_are_set_right() -> None:
    drawn = html_table({"count": ["1,234", "−5"], "name": ["x", "7"]}, "caption")
    assert '<td class="number">1,234</td><td>x</td>' in drawn


@pytest.mark.parametrize("puerto_rico", [False, True])
@pytest.mark.parametrize("mechanism", list(Mechanism))
def test_plan_alone_makes_sections(mechanism: Mechanism, puerto_rico: bool) -> None:  # noqa: FBT001
    plan = plan_of(budgets(puerto_rico=puerto_rico), TAUS, mechanism)
    sections = plan_sections(plan)
    assert [section.anchor for section in sections] == ["loss", "budget", "margins"]
    text = render(Page("plan", "status", "", {}, sections))
    assert f"{float(plan.loss()):.6f}" in text
    assert ("Nation" in text) is not puerto_rico


def test_plan_without_noise_shows_no_margins() -> None:
    plan = production_plan(puerto_rico=False)
    exact = replace(plan, measurements=tuple(replace(m, budget=INFINITE) for m in plan.measurements))
    (section,) = plan_sections(exact)
    assert "infinite" in render(Page("plan", "status", "", {}, (section,)))


@pytest.mark.parametrize("number", [50, 51, 357, 2550, 17_850])
def test_chance_band_is_that_of_an_order_statistic(number: int) -> None:
    k = math.ceil(0.9 * number)
    levels = beta(k, number - k + 1).ppf([0.025, 0.975])
    expected = norm.ppf((1 + levels) / 2) / norm.ppf(0.95)
    assert np.allclose(chance_band(number, Fraction(9, 10)), expected, rtol=1e-6)


def test_published_counts_find_their_truth() -> None:
    demo = demonstration(production_plan(puerto_rico=False))
    for e in demo.errors[:40]:
        rows = published_beside_truth(demo.release[e.table], [e])
        assert [row.group for row in rows] == list(e.groups)
        assert [row.true for row in rows] == (e.truth - e.truncation_error).tolist()
        assert [row.noisy for row in rows] == (e.truth + e.noise[0]).tolist()


def test_templates_are_loaded_when_a_page_is_made() -> None:
    modules = "yupana.interface.tools, yupana.cli.main"
    code = f"import sys, {modules}; print(sum(m in sys.modules for m in ('jinja2', 'vl_convert')))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "0\n"


def test_missing_renderer_is_named(monkeypatch: pytest.MonkeyPatch, page: Page) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(ConfigError, match=r"extra report"):
        render(page)


@pytest.mark.parametrize(
    ("value", "digits", "written"),
    [(0, 3, "0"), (1234.5, 3, "1,234"), (0.012345, 3, "0.0123"), (11.4132, 4, "11.41"), (float("inf"), 3, "infinite")],
)
def test_numbers_are_written_for_people(value: float, digits: int, written: str) -> None:
    assert numbers.rounded(value, digits) == written


def test_losses_and_powers_are_written_for_people() -> None:
    assert numbers.loss(Fraction(1257281, 10**6)) == "1.257281"
    assert numbers.loss(INFINITE) == "infinite"
    assert numbers.power_of_ten(1e-10) == "10⁻¹⁰"
    assert numbers.power_of_ten(2e-10) == "2e-10"
    assert numbers.percent(0.9049, 1) == "90.5%"
