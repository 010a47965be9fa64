"""A report: one HTML file that loads nothing, reads well on any width, in the dark and on paper, and where it may go.

It is never written over anything but an earlier page of ours, and never among records or tables.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
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


@dataclass(frozen=True, slots=True)
class Page:
    """A report."""

    title: str
    status: str  # whether it may be published, such as NOT FOR RELEASE
    status_words: str  # why
    key_numbers: Mapping[str, tuple[str, str]]  # by what
    sections: tuple[Section, ...]
    script: str = ""  # what the page runs; nothing else can run in it
    sheet: str = ""  # a style sheet of its own

    @property
    def meaning(self) -> str:
        """The class of the status, which gives its colour (docs/design.md)."""
        return {NOT_FOR_RELEASE: "danger", CONFIDENTIAL_STATUS: "secret"}.get(self.status, "public")


_FIGURE: Final = re.compile(r"<!--figure (\d+)-->")
_SPACE: Final = re.compile(r"(<pre.*?</pre>)|\s+", re.DOTALL)


@dataclass(slots=True)
class _Draft:
    """What the template of a page calls to say its parts: its methods are the names that templates know."""

    head: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, tuple[str, str]] = field(default_factory=dict)
    parts: list[Section] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)

    def title(self, words: str) -> str:
        self.head["title"] = words
        return ""

    def status(self, status: str, caller: Callable[[], Html]) -> str:
        self.head |= {"status": status, "status_words": caller().striptags()}
        return ""

    def script(self, text: str) -> str:
        self.head["script"] = f"\n{text}\n"
        return ""

    def sheet(self, *names: str) -> str:
        self.head["sheet"] = text_of(*names)
        return ""

    def number(self, what: str, number: str, caller: Callable[[], Html]) -> str:
        self.numbers[what] = number, caller().striptags()
        return ""

    def section(self, anchor: str, title: str, caller: Callable[[], Html]) -> str:
        text = _SPACE.sub(lambda space: space[1] or " ", caller())
        pieces = _FIGURE.split(text)
        content = (self.figures[int(piece)] if i % 2 else Html(piece.strip()) for i, piece in enumerate(pieces))
        self.parts.append(Section(anchor, title, tuple(part for part in content if part)))
        return ""

    def sections(self, made: Iterable[Section]) -> str:
        self.parts.extend(made)
        return ""

    def figure(self, figure: Figure, caller: Callable[[], Html]) -> Html:
        self.figures.append(replace(figure, caption=caller().striptags()))
        return Html("<!--figure {}-->").format(len(self.figures) - 1)

    def table(self, columns: Mapping[str, Sequence[object]], note: str = "", *, caller: Callable[[], Html]) -> Html:
        return table(columns, caller().striptags(), note)

    def fill(self, template: str, values: Mapping[str, Any]) -> "_Draft":
        names = ("title", "status", "script", "sheet", "number", "section", "sections", "figure", "table")
        fill(template, {**{name: getattr(self, name) for name in names}, **values})
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
    return tuple(_Draft().fill(template, values).parts)


def read_page(template: str, **values: object) -> Page:
    """A report by its template.

    It also calls ``title(words)``, ``status(status)``, ``number(what, number)`` and, if the page has one,
    ``script(text)`` and ``sheet(file, ...)``.
    """
    draft = _Draft().fill(template, values)
    return Page(**draft.head, key_numbers=draft.numbers, sections=tuple(draft.parts))


def render(page: Page) -> str:
    """Lay out a report as one HTML file."""
    names = prefixes()

    def drawing(chart: Chart, width: int) -> Html:
        return draw(chart.spec(width), chart.label, names)

    values = {"page": page, "style": STYLE, "mark": Html(MARK), "version": __version__}
    # By its checksum the script is the only one that a browser runs here.
    digest = b64encode(sha256(page.script.encode()).digest()).decode()
    values |= {"script": Html(page.script), "script_source": f"'sha256-{digest}'" if page.script else "'none'"}
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
