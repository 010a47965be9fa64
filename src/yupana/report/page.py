"""The shell of a report: one HTML file that loads nothing, reads well on any width, in the dark and on paper."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import yupana
from yupana.report.charts import Series, Spec
from yupana.report.html import Html, element, escape, join, paragraph, table
from yupana.report.svg import draw, prefixes

NARROW: Final = 340
"""Width in pixels of a chart on a telephone, and of one of several charts side by side."""

WIDE: Final = 820
"""Width in pixels of a chart that has the page to itself."""

_ROWS_SHOWN: Final = 120


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart with all that a reader needs who cannot see it.

    Attributes
    ----------
    label : str
        What it shows, in a sentence: the text for a screen reader and the caption of its table.
    spec : callable
        From a width in pixels to a Vega-Lite specification.
    data : mapping of heading to values
        The numbers drawn, written for people.
    title : str
        Stands above it where several charts share a figure.
    """

    label: str
    spec: Callable[[int], Spec]
    data: Mapping[str, Sequence[object]]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """One chart, or several of a kind side by side, with a legend above and words below."""

    charts: tuple[Chart, ...]
    caption: str
    legend: tuple[Series, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report, with its own line in the table of contents."""

    anchor: str
    title: str
    content: tuple[Html | Figure, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A report.

    Attributes
    ----------
    title : str
    status : str
        Whether it may be published, such as NOT FOR RELEASE.
    status_words : str
        Why.
    key_numbers : mapping of what to (number, explanation)
    sections : tuple of Section
    """

    title: str
    status: str
    status_words: str
    key_numbers: Mapping[str, tuple[str, str]]
    sections: tuple[Section, ...]


MARK: Final = '<meta name="generator" content="yupana">'
"""Tells a page of ours from every other file."""


def render(page: Page) -> str:
    """Lay out a report as one HTML file."""
    names = prefixes()

    def shown(content: Html | Figure) -> Html:
        return _figure(content, names) if isinstance(content, Figure) else content

    links = [element("li", element("a", s.title, href=f"#{s.anchor}")) for s in page.sections]
    sections = [element("section", element("h2", s.title), *map(shown, s.content), id=s.anchor) for s in page.sections]
    numbers = [
        element("div", element("dt", what), element("dd", number), element("dd", words, class_="note"))
        for what, (number, words) in page.key_numbers.items()
    ]
    body = join(
        element(
            "header",
            paragraph(element("strong", page.status), " ", page.status_words, class_="status", role="note"),
            element("h1", page.title),
        ),
        element("nav", element("h2", "Contents"), element("ol", *links), aria_label="Contents"),
        element("main", element("dl", *numbers, class_="key"), *sections),
        element("footer", paragraph(f"Made by yupana {yupana.__version__}. This file loads nothing from elsewhere.")),
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
{MARK}
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark">
<title>{escape(page.title)} · {escape(page.status)}</title>
<style>{STYLE}</style>
</head>
<body>
{body}
</body>
</html>
"""


def _figure(figure: Figure, names: Iterator[str]) -> Html:
    alone = len(figure.charts) == 1
    charts = [_chart(chart, names, alone=alone) for chart in figure.charts]
    shown = charts[0] if alone else element("div", *charts, class_="panels")
    tables = [chart_table(chart) for chart in figure.charts]
    numbers = element("details", element("summary", "The numbers drawn"), *tables)
    return element("figure", *legend(figure.legend), shown, element("figcaption", figure.caption), numbers)


_MARKS: Final = {
    "square": "M-6,-6H6V6H-6Z",
    "circle": "M-6,0A6,6 0 1 1 6,0A6,6 0 1 1 -6,0Z",
    "diamond": "M0,-7L6,0L0,7L-6,0Z",
    "triangle-up": "M0,-6L6.5,6H-6.5Z",
    "line": "M-8,-1.5H8V1.5H-8Z",
}


def legend(series: tuple[Series, ...]) -> list[Html]:
    """A legend that wraps where the page is narrow, which one inside a drawing cannot."""

    def mark(s: Series) -> Html:
        path = element("path", d=_MARKS[s.shape], fill=s.colour)
        return element("svg", path, viewBox="-8 -8 16 16", aria_hidden="true")

    return [element("ul", *(element("li", mark(s), s.name) for s in series), class_="legend")] if series else []


def _chart(chart: Chart, names: Iterator[str], *, alone: bool) -> Html:
    title = [element("h3", chart.title)] if chart.title else []
    narrow = draw(chart.spec(NARROW), chart.label, names)
    if not alone:
        return element("div", *title, narrow, class_="panel")
    # Drawn twice, and the style sheet shows one: a chart for a wide page is illegible when shrunk to a telephone.
    wide = draw(chart.spec(WIDE), chart.label, names)
    return join(*title, element("div", wide, class_="wide"), element("div", narrow, class_="narrow"))


def chart_table(chart: Chart) -> Html:
    """The numbers drawn in a chart."""
    rows = len(next(iter(chart.data.values()), ()))
    note = f"The first {_ROWS_SHOWN} of {rows:,} rows." if rows > _ROWS_SHOWN else ""
    return table({name: values[:_ROWS_SHOWN] for name, values in chart.data.items()}, chart.label, note)


STYLE: Final = """
:root { --ink: #1c2126; --soft: #59636e; --paper: #ffffff; --card: #f4f6f8; --line: #d5dbe1; --link: #0b5cad;
  --warn-ink: #5c1a00; --warn: #ffe9dc; --warn-line: #d9480f; }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ec; --soft: #a3adb8; --paper: #14181c; --card: #1e242a; --line: #38414a; --link: #7fb8f0;
    --warn-ink: #ffd9c4; --warn: #3b1a0c; --warn-line: #f08050; } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body { margin: 0 auto; padding: 1rem; max-width: 60rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 1.2rem 0 .6rem; }
h2 { font-size: 1.35rem; margin: 2.6rem 0 .6rem; padding-top: .6rem; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.2rem 0 .4rem; }
p, li { max-width: 44rem; }
a { color: var(--link); }
code { font: .92em/1.4 ui-monospace, "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  overflow-wrap: anywhere; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: .8rem; overflow-x: auto; }
pre code { overflow-wrap: normal; }
.status { max-width: none; margin: 0; padding: .6rem .8rem; color: var(--warn-ink); background: var(--warn);
  border-left: 5px solid var(--warn-line); border-radius: 4px; }
nav h2 { font-size: 1rem; border: 0; padding: 0; margin: 0 0 .3rem; }
nav { background: var(--card); border-radius: 6px; padding: .8rem 1rem; margin: 1rem 0; font-size: .95rem; }
nav ol { margin: 0; padding-left: 1.4rem; }
.key { display: grid; grid-template-columns: repeat(2, 1fr); gap: .7rem; margin: 1rem 0; }
@media (min-width: 44rem) { .key { grid-template-columns: repeat(3, 1fr); } }
.key > div { background: var(--card); border-radius: 6px; padding: .7rem .8rem; }
.key dt { font-size: .85rem; color: var(--soft); }
.key dd { margin: 0; font-size: 1.5rem; font-variant-numeric: tabular-nums; line-height: 1.3; }
.key dd.note { font-size: .82rem; }
.note { color: var(--soft); font-size: .88rem; line-height: 1.4; }
figure { margin: 1.2rem 0 1.8rem; }
figcaption { color: var(--soft); font-size: .92rem; max-width: 44rem; margin: .4rem 0; }
svg { display: block; width: 100%; height: auto; color: var(--ink); overflow: visible; }
svg text { font-family: inherit; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; list-style: none; padding: 0; margin: 0 0 .6rem;
  font-size: .85rem; }
.legend svg { display: inline-block; width: .8rem; height: .8rem; margin-right: .4rem; vertical-align: -.08rem; }
.wide svg { max-width: 58rem; }
.narrow { display: none; }
.narrow svg, .panel svg { max-width: 26rem; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(19rem, 100%), 1fr)); gap: 1rem 1.4rem; }
.panel h3 { margin: 0 0 .2rem; font-size: .95rem; }
@media screen and (max-width: 44rem) { .wide { display: none; } .narrow { display: block; } }
details { margin: .4rem 0; }
summary { cursor: pointer; color: var(--link); font-size: .92rem; }
.scroll { overflow-x: auto; }
.caption { margin-bottom: 0; }
table { border-collapse: collapse; margin: .3rem 0 .6rem; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--line); }
td { min-width: 3rem; }
td:first-child:not(.number) { min-width: 7rem; }
th { vertical-align: bottom; font-weight: 600; }
.number { text-align: right; white-space: nowrap; }
.tall { max-height: 34rem; overflow: auto; }
.shades { font-size: .82rem; border-collapse: separate; border-spacing: 0; }
.shades th, .shades td { padding: .18rem .5rem; border-bottom: 1px solid var(--line); }
.shades thead th { position: sticky; top: 0; background: var(--paper); z-index: 1; }
.shades tbody th { position: sticky; left: 0; background: var(--paper); font-weight: 400; white-space: nowrap; }
.shades thead th:first-child { left: 0; z-index: 2; }
.swatch { display: inline-block; width: .9rem; height: .9rem; margin-right: .4rem; vertical-align: -.12rem;
  border-radius: 2px; }
.s0 { background: #9cc5e6; color: #15191d; } .s1 { background: #c7def0; color: #15191d; }
.s2 { background: #ece8d9; color: #15191d; } .s3 { background: #f5d5ae; color: #15191d; }
.s4 { background: #efb18a; color: #15191d; } .s5 { background: #e38f76; color: #15191d; }
footer { margin-top: 3rem; border-top: 1px solid var(--line); color: var(--soft); font-size: .88rem; }
@media screen and (min-width: 80rem) {
  body { max-width: 84rem; padding: 1rem 2rem; display: grid; grid-template-columns: 15rem minmax(0, 1fr);
    column-gap: 3rem; }
  header, footer { grid-column: 1 / -1; }
  nav { position: sticky; top: 1rem; align-self: start; max-height: calc(100vh - 2rem); overflow-y: auto; }
}
@media screen and (min-width: 110rem) { body { max-width: 96rem; } }
@media print {
  body { max-width: none; font-size: 10pt; } nav { break-after: avoid; }
  figure, tr, .key > div { break-inside: avoid; } h2, h3 { break-after: avoid; }
  .tall { max-height: none; } .s0, .s1, .s2, .s3, .s4, .s5 { print-color-adjust: exact; }
  .panels { grid-template-columns: repeat(2, 1fr); } summary { display: none; }
}
"""
