"""A report: one HTML file that loads nothing, reads well on any width, in the dark and on paper, and where it may go.

It is never written over anything but an earlier page of ours, and never among records or tables.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yupana.errors import OutputError
from yupana.files.regular import NewFile, real, regular
from yupana.report.charts import Mark, Spec, draw, renderer
from yupana.report.html import Html, fill
from yupana.version import __version__

MARK: Final = '<meta name="generator" content="yupana">'
"""Tells a page of ours from every other file."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart with all that a reader needs who cannot see it."""

    label: str  # what it shows, in a sentence: the text for a screen reader and the caption of its table
    spec: Callable[[int], Spec]  # from a width in pixels to a Vega-Lite specification
    data: Mapping[str, Sequence[object]]  # by heading: the numbers drawn, written for people
    title: str = ""  # stands above it where several charts share a figure


@dataclass(frozen=True, slots=True)
class Figure:
    """One chart, or several of a kind side by side, with a legend above."""

    charts: tuple[Chart, ...]
    legend: tuple[Mark, ...] = ()


def render(template: str, **values: object) -> str:
    """Lay out a report as one HTML file, by a template that extends ``page.html``."""
    number = itertools.count(1)

    def drawing(chart: Chart, width: int) -> Html:
        return draw(chart.spec(width), chart.label, f"chart{next(number)}")

    return fill(template, {"mark": Html(MARK), "version": __version__, "drawing": drawing, **values})


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


def _is_page(path: Path) -> bool:
    try:
        with open(path, "rb", opener=regular) as file:
            return MARK.encode() in file.read(1000)
    except OSError:
        return False
