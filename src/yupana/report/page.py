"""A report: one HTML file that loads nothing, reads well on any width, in the dark and on paper, and where it may go.

It is never written over anything but an earlier page of ours, and never among records or tables.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from yupana.errors import OutputError
from yupana.files.regular import NewFile, real, regular
from yupana.interruption import whole
from yupana.release.status import CONFIDENTIAL as CONFIDENTIAL_STATUS
from yupana.release.status import NOT_FOR_RELEASE
from yupana.report.charts import Mark, Spec, draw, prefixes, renderer
from yupana.report.html import Html, fill, table, text_of
from yupana.version import __version__

NARROW: Final = 340
"""Width in pixels of a chart on a telephone, and of one of several charts side by side."""

WIDE: Final = 820
"""Width in pixels of a chart that has the page to itself."""

STYLE: Final = text_of("tokens.css", "style.css")

MARK: Final = '<meta name="generator" content="yupana">'
"""Tells a page of ours from every other file."""

_ROWS_SHOWN: Final = 120


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart with all that a reader needs who cannot see it."""

    label: str  # what it shows, in a sentence: the text for a screen reader and the caption of its table
    spec: Callable[[int], Spec]  # from a width in pixels to a Vega-Lite specification
    data: Mapping[str, Sequence[object]]  # by heading: the numbers drawn, written for people
    title: str = ""  # stands above it where several charts share a figure


@dataclass(frozen=True, slots=True)
class Figure:
    """One chart, or several of a kind side by side, with a legend above and words below."""

    charts: tuple[Chart, ...]
    caption: str = ""
    legend: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report, with its own line in the table of contents."""

    anchor: str
    title: str
    content: tuple[Html | Figure, ...]


_FIGURE: Final = re.compile(r"<!--figure (\d+)-->")
_SPACE: Final = re.compile(r"(<pre.*?</pre>)|\s+", re.DOTALL)


@dataclass(slots=True)
class Page:
    """A report. Its template calls what it says of itself: ``_on_title`` is known to it as ``title``."""

    title: str = ""
    status: str = ""  # whether it may be published, such as NOT FOR RELEASE
    status_words: str = ""  # why
    key_numbers: dict[str, tuple[str, str]] = field(default_factory=dict)  # by what
    sections: tuple[Section, ...] = ()
    sheet: str = ""  # a style sheet of its own
    figures: list[Figure] = field(default_factory=list)

    @property
    def meaning(self) -> str:
        """The class of the status, which gives its colour (docs/design.md)."""
        return {NOT_FOR_RELEASE: "danger", CONFIDENTIAL_STATUS: "secret"}.get(self.status, "public")

    def _on_title(self, words: str) -> str:
        self.title = words
        return ""

    def _on_status(self, status: str, caller: Callable[[], Html]) -> str:
        self.status, self.status_words = status, caller().striptags()
        return ""

    def _on_sheet(self, *names: str) -> str:
        self.sheet = text_of(*names)
        return ""

    def _on_number(self, what: str, number: str, caller: Callable[[], Html]) -> str:
        self.key_numbers[what] = number, caller().striptags()
        return ""

    def _on_section(self, anchor: str, title: str, caller: Callable[[], Html]) -> str:
        text = _SPACE.sub(lambda space: space[1] or " ", caller())
        pieces = _FIGURE.split(text)
        content = (self.figures[int(piece)] if i % 2 else Html(piece.strip()) for i, piece in enumerate(pieces))
        return self._on_sections([Section(anchor, title, tuple(part for part in content if part))])

    def _on_sections(self, made: Iterable[Section]) -> str:
        self.sections = (*self.sections, *made)
        return ""

    def _on_figure(self, figure: Figure, caller: Callable[[], Html]) -> Html:
        self.figures.append(replace(figure, caption=caller().striptags()))
        return Html("<!--figure {}-->").format(len(self.figures) - 1)

    def _on_table(self, columns: Mapping[str, Sequence[object]], note: str = "", *, caller: Callable[[], Html]) -> Html:
        return table(columns, caller().striptags(), note)

    def fill(self, template: str, values: Mapping[str, Any]) -> "Page":
        """Let a template say it, and return it."""
        said = {name.removeprefix("_on_"): getattr(self, name) for name in dir(self) if name.startswith("_on_")}
        fill(template, {**said, **values})
        return self


def sections(template: str, **values: object) -> tuple[Section, ...]:
    """Sections of a report, by the template that holds their words.

    Parameters
    ----------
    template : str
        A file of `templates/` that calls ``section(anchor, title)``; in it ``figure(charts)`` and ``table(columns)``,
        each with its caption inside.
    values
        What it names.
    """
    return Page().fill(template, values).sections


def read_page(template: str, **values: object) -> Page:
    """A report by its template.

    It also calls ``title(words)``, ``status(status)``, ``number(what, number)`` and, if the page has one,
    ``sheet(file, ...)``.
    """
    return Page().fill(template, values)


def render(page: Page) -> str:
    """Lay out a report as one HTML file."""
    names = prefixes()

    def drawing(chart: Chart, width: int) -> Html:
        return draw(chart.spec(width), chart.label, names)

    values = {"page": page, "style": STYLE, "mark": Html(MARK), "version": __version__}
    shown = {"drawing": drawing, "legend": legend, "numbers": chart_table, "wide": WIDE, "narrow": NARROW}
    return fill("page.html", values | shown)


def legend(series: tuple[Mark, ...]) -> Html:
    """A legend that wraps where the page is narrow, which one inside a drawing cannot."""
    return fill("legend.html", {"series": series})


def chart_table(chart: Chart) -> Html:
    """The numbers drawn in a chart."""
    rows = len(next(iter(chart.data.values()), ()))
    note = f"The first {_ROWS_SHOWN} of {rows:,} rows." if rows > _ROWS_SHOWN else ""
    return table({name: values[:_ROWS_SHOWN] for name, values in chart.data.items()}, chart.label, note)


CONFIDENTIAL: Final = 0o600
PUBLIC: Final = 0o666


def claim_page(path: Path, apart_from: Iterable[Path] = (), *, mode: int = PUBLIC, has_charts: bool = True) -> NewFile:
    """Check where a page is to go, before the work.

    Parameters
    ----------
    apart_from : iterable of Path
        Folders it may not lie in: of records, or of a release, which holds tables only.
    mode : int
        Of the file, before the user's mask.
    has_charts : bool
        Whether charts will be drawn for it here.

    Raises
    ------
    OutputError
        If it would lie in one of these, is named as another format than HTML, replaces a file that is no report of
        ours, or cannot be written.
    ConfigError
        If charts cannot be drawn because the extra ``report`` is not installed.
    """
    if has_charts:
        renderer()
    path = path.absolute()
    if path.suffix.lower() not in {"", ".html", ".htm"}:
        raise OutputError(f"the report {path} is a page of HTML; let its name end in .html")
    for folder in apart_from:
        if real(folder) in real(path).parents:
            raise OutputError(f"the report {path} would lie in {folder}; name another place")
    page = NewFile(path, "the report", _is_page, mode)
    page.check()
    return page


def write_page(page: NewFile, text: str) -> None:
    """Write a page that was claimed.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    with whole():
        page.write(text)
        page.keep()


def _is_page(path: Path) -> bool:
    try:
        with open(path, "rb", opener=regular) as file:
            return MARK.encode() in file.read(1000)
    except OSError:
        return False
