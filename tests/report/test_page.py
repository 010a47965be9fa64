"""The report: self-contained, labelled, escaped, and with the numbers of its plan."""

import re
import subprocess
import sys
from fractions import Fraction

import pytest

from yupana.privacy.exact import INFINITE
from yupana.report import numbers
from yupana.report.html import TEMPLATES, Html
from yupana.report.html import table as html_table
from yupana.report.page import Chart, Figure, Page, Section, render, sections


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
    nasty = "<!--figure 0--><script>alert(1)</script>"
    (section,) = sections("criteria.html", columns={nasty: [nasty]}, tested=False)
    assert [isinstance(part, Figure) for part in section.content] == [False]
    text = render(Page("title", "status", "", {}, (section,)))
    assert "<script" not in text
    assert "<!--" not in text
    assert text.count(str(Html.escape(nasty))) == 2  # a heading and a field


def test_no_template_switches_escaping_off() -> None:
    for path in TEMPLATES.glob("*.html"):
        assert not re.search(r"\|\s*safe\b|autoescape|Markup", path.read_text()), path.name


def test_markup_is_escaped_once() -> None:
    drawn = html_table({"<": ["a < b & c", Html("<b>x</b>")]}, "<i>")
    assert "<td>a &lt; b &amp; c</td>" in drawn
    assert "<td><b>x</b></td>" in drawn
    assert '<p class="note caption">&lt;i&gt;</p>' in drawn
    assert Html.escape(Html.escape("a < b")) == "a &lt; b"


def test_columns_of_numbers_are_set_right() -> None:
    drawn = html_table({"count": ["1,234", "−5"], "name": ["x", "7"]}, "caption")
    assert '<td class="number">1,234</td><td>x</td>' in drawn


@pytest.mark.slow
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
