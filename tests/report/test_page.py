"""The report: self-contained, labelled, escaped, and with the numbers of its plan."""

import re
import subprocess
import sys
from fractions import Fraction

import pytest

from yupana.privacy.exact import INFINITE
from yupana.report import numbers
from yupana.report.charts import Mark
from yupana.report.html import TEMPLATES, Html
from yupana.report.html import table as html_table
from yupana.report.page import Chart, Figure, render


def _page(nasty: str) -> str:
    """A page with the same text wherever a report has words of its own."""
    chart = Chart(nasty, lambda _: {"data": {"values": [{"a": 1}]}, "mark": "point"}, {nasty: [nasty]}, nasty)
    figure = Figure((chart, chart), (Mark(nasty, "red"),))
    series = {"title": nasty, "some": nasty, "scatter": figure, "density": figure, "curve": figure, "band": True}
    return render(
        "empirical.html",
        mode="sound",
        key_numbers=[(nasty, nasty, nasty)],
        notes=[nasty],
        warnings=[(nasty, nasty)],
        summary={nasty: [nasty]},
        panels={nasty: nasty},
        table_sa1={nasty: [nasty]},
        beside={nasty: [nasty]},
        series=[series],
    )


def test_names_are_escaped() -> None:
    text = _page("""<script>alert("1" & '2')</script>""")
    assert "<script" not in text
    assert '"1"' not in text


def test_titles_are_escaped() -> None:
    nasty = "<script>alert(1)</script>"
    names = ("certain", "methods", "remarks", "learnt_chart", "best_guess")
    tables = ("mean_errors", "exact_shares", "biases", "additivity", "learnt")
    errors = Figure((Chart("", lambda _: {"data": {"values": [{"a": 1}]}, "mark": "point"}, {}),))
    nothing = dict.fromkeys(names, ()) | {"best_guess": None} | {key: {"a": ()} for key in tables}
    text = render("side_by_side.html", title_of=nasty, status=nasty, few=1, counts=1, errors=errors, **nothing)
    assert "<script" not in text
    assert text.count(str(Html.escape(nasty))) == 4  # title and status, each in the head and above the text


def test_text_forges_no_figure() -> None:
    """Figures stand in the text of a section as elements, which no value can write."""
    nasty = "<figure>\n\n</figure><script>alert(1)</script>"
    text = _page(nasty)
    assert "<script" not in text
    assert text.count("<figure>") == 3
    assert f"<li>{Html.escape('<figure> </figure><script>alert(1)</script>')}</li>" in text


def test_a_long_table_of_a_chart_is_cut() -> None:
    drawn = html_table({"a": [*range(130)]}, most=120, caller=lambda: Html("caption"))
    assert drawn.count("<tr>") == 1 + 120
    assert "The first 120 of 130 rows." in drawn


def test_no_template_switches_escaping_off() -> None:
    for path in TEMPLATES.glob("*.html"):
        assert not re.search(r"\|\s*safe\b|autoescape|Markup", path.read_text()), path.name


def test_markup_is_escaped_once() -> None:
    drawn = html_table({"<": ["a < b & c", Html("<b>x</b>")]}, caller=lambda: Html.escape("<i>"))
    assert "<td>a &lt; b &amp; c</td>" in drawn
    assert "<td><b>x</b></td>" in drawn
    assert '<p class="note caption">&lt;i&gt;</p>' in drawn
    assert Html.escape(Html.escape("a < b")) == "a &lt; b"


def test_columns_of_numbers_are_set_right() -> None:
    drawn = html_table({"count": ["1,234", "−5"], "name": ["x", "7"]}, caller=lambda: Html("caption"))
    assert '<td class="number">1,234</td><td>x</td>' in drawn


@pytest.mark.thorough
def test_templates_are_loaded_when_a_page_is_made() -> None:
    modules = "yupana.interface.tools, yupana.cli.main"
    code = f"import sys, {modules}; print(sum(m in sys.modules for m in ('jinja2', 'vl_convert')))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "0\n"


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
