"""The charts of the reports, as Vega-Lite specifications from rows and a width, and their drawing as SVG.

Each fits the ``width`` it is given, axes included; the page sets the legends. ``axis``, or ``x`` and ``y``, are the
titles of axes. Text takes the colour of the page it stands on, and marks have colours of middle lightness, so that one
drawing serves light and dark pages. The renderer is an optional dependency, imported when used; the explorer draws the
same specifications itself.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from yupana.errors import needing
from yupana.report.html import Html

Spec = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]

BLUE: Final = "#3d86c6"
ORANGE: Final = "#e07b28"
GREY: Final = "#8a939c"
SERIES: Final = (BLUE, ORANGE, "#8180d6", "#4b9b6b", "#c65f95", "#3fa0c9", "#d9982a")
"""What is compared, in this order (docs/design.md)."""

VEGA_LITE: Final = "6.4"
"""The version of the language that the specifications are written in."""

_TEXT: Final = "currentColor"
_NARROW: Final = 500
"""Below this width, axes have fewer ticks and charts are less flat."""

_LETTER: Final = 6.2
"""Pixels that a letter of a label takes in a wide font: the reader's fonts are not those of the renderer."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What one mark stands for, in charts and their legends."""

    name: str
    colour: str
    # a point shape of Vega-Lite: "circle", "diamond", "triangle-up" or "square"; "line" only in legends
    shape: str = "square"


def labelled_bars(rows: Rows, width: int, *, axis: str) -> Spec:
    """Bars by category with their value written beside.

    Parameters
    ----------
    rows : rows of category, value, text
    """
    categories = _categories(rows)
    scale = _room_for_text([row["value"] for row in rows], width)
    across = _number("value", axis, scale=scale, axis={"tickCount": _ticks(width)})
    up = _category_axis(categories, {"ticks": False, "domain": False})
    beside = {"type": "text", "align": "left", "dx": 5, "color": _TEXT, "fontSize": 11.5}
    bars = _layer({"type": "bar", "color": ORANGE, "height": {"band": 0.72}}, x=across, y=up)
    texts = _layer(beside, x=across, y=up, text=_kind("text"))
    return _layers([bars, texts], width, 44 + 28 * len(categories), data=rows)


def log_dots(rows: Rows, marks: Sequence[Mark], width: int, *, axis: str) -> Spec:
    """A dot per category and mark on a logarithmic axis, one below the other so that equal values do not hide.

    Parameters
    ----------
    rows : rows of category, series (the name of a mark), value
        Values of 0 have no place on the axis and are not drawn.
    """
    rows = [row for row in rows if row["value"] > 0]
    categories = _categories(rows)
    names = [mark.name for mark in marks]
    up = _category_axis(categories, {"grid": True, "tickBand": "extent"})
    layer = _layer(
        {"type": "point", "filled": True, "size": 55, "opacity": 1},
        None,
        x=_logarithmic("value", axis, [row["value"] for row in rows]),
        y={**up, "scale": {"paddingInner": 0.25, "paddingOuter": 0.1}},
        yOffset=_kind("series", sort=names, scale={"domain": names}),
        **_by_mark(marks),
    )
    return _chart(rows, width, 44 + (9 * len(marks) + 6) * len(categories), **layer)


def histogram_with_law(rows: Rows, width: int, *, x: str, y: str) -> Spec:
    """Bars of observed shares with a line of those expected.

    Parameters
    ----------
    rows : rows of low, high, middle, observed, expected
        Bins, touching each other.
    """
    ticks = {"format": ",d", "tickCount": _ticks(width)}
    low, middle = (_number(f, x, axis=ticks, scale={"nice": False, "zero": False}) for f in ("low", "middle"))
    observed, expected = (
        _number(field, y, axis={"tickCount": 5, "format": ".1%"}) for field in ("observed", "expected")
    )
    bars = {"type": "rect", "color": BLUE, "opacity": 0.75}
    return _layers(
        [
            _layer(bars, x=low, x2={"field": "high"}, y=observed, y2={"datum": 0}),
            _layer({"type": "line", "color": ORANGE, "strokeWidth": 2.5}, x=middle, y=expected),
        ],
        width,
        _height(width, 0.42, 0.75),
        data=rows,
    )


def before_and_after(rows: Rows, marks: Sequence[Mark], width: int, *, x: str, y: str) -> Spec:
    """Points about a diagonal on logarithmic axes of one scale: those below it became smaller.

    Parameters
    ----------
    rows : rows of x, y (both above 0), series (the name of a mark)
    """
    values = [row[field] for row in rows for field in ("x", "y")]
    across, up = _logarithmic("x", x, values), _logarithmic("y", y, values)
    diagonal = [{"x": end, "y": end} for end in _log_domain(values)]
    dots = {"type": "point", "filled": True, "size": 30, "opacity": 0.75}
    return _layers(
        [
            _layer({"type": "line", "color": GREY, "strokeWidth": 1}, diagonal, x=across, y=up),
            _layer(dots, rows, x=across, y=up, **_by_mark(marks)),
        ],
        width,
        _height(width, 0.6, 0.85),
    )


def dots_about_zero(points: Rows, width: int, *, x: str, y: str) -> Spec:
    """Dots above and below zero, against a count on an axis that is linear near zero and logarithmic further out.

    Parameters
    ----------
    points : rows of x (zero or more), y
    """
    ticks = {"values": _POWERS, "format": ",d", "labelOverlap": "greedy"}
    across = _number("x", x, scale={"type": "symlog", "constant": 10, "nice": False}, axis=ticks)
    up = _number("y", y, axis={"tickCount": 7})
    zero = {"type": "rule", "color": _TEXT, "strokeWidth": 1, "opacity": 0.6}
    layers = [_layer(zero, [{"y": 0}], y=up), _layer(_DOTS, points, x=across, y=up)]
    return _layers(layers, width, _height(width, 0.42, 0.75))


def dots_about_diagonal(points: Rows, width: int, *, x: str, y: str) -> Spec:
    """Dots and the diagonal, on axes that are linear near zero and logarithmic further out.

    Parameters
    ----------
    points : rows of x, y
    """
    values = [row[side] for row in points for side in ("x", "y")]
    ends = min(0, *values), max(1, *values)
    ticks = [sign * tick for tick in _POWERS for sign in (1, -1)]
    across, up = _symmetric("x", x, ticks, ends), _symmetric("y", y, ticks, ends)
    diagonal = [{"x": end, "y": end} for end in ends]
    line = {"type": "line", "color": _TEXT, "strokeWidth": 1, "opacity": 0.6}
    layers = [_layer(line, diagonal, x=across, y=up), _layer(_DOTS, points, x=across, y=up)]
    return _layers(layers, width, _height(width, 0.42, 0.75))


def curve_with_band(rows: Rows, marks: Rows, width: int, *, x: str, y: str) -> Spec:
    """A curve with a band about it, and horizontal lines to compare with.

    Parameters
    ----------
    rows : rows of x, y, low, high
    marks : rows of y, colour
    """
    ticks = {"format": ",d", "tickCount": _ticks(width)}
    across = _number("x", x, scale={"nice": False, "zero": False}, axis=ticks)
    up = _number("y", y, axis={"tickCount": 7})
    rules = {"type": "rule", "strokeWidth": 1.5, "strokeDash": [5, 3]}
    band = {"type": "area", "color": GREY, "opacity": 0.3}
    return _layers(
        [
            _layer(band, rows, x=across, y={**up, "field": "low"}, y2={"field": "high"}),
            _layer(rules, marks, y=up, color=_kind("colour", scale=None, legend=None)),
            _layer({"type": "line", "color": BLUE, "strokeWidth": 2.5}, rows, x=across, y=up),
        ],
        width,
        _height(width, 0.42, 0.75),
    )


_DOTS: Final[Spec] = {"type": "point", "filled": True, "size": 10, "opacity": 0.6, "color": BLUE}
_POWERS: Final = [0, *(10**power for power in range(1, 10))]

_CONFIG: Final[Spec] = {
    "font": "system-ui, Segoe UI, Helvetica, Arial, sans-serif",
    # The page says what a chart shows; a description of every mark would multiply its size.
    "aria": False,
    "view": {"stroke": None},
    "axis": {
        **dict.fromkeys(("labelColor", "titleColor", "tickColor", "domainColor", "gridColor"), _TEXT),
        "gridOpacity": 0.14,
        "domainOpacity": 0.5,
        "tickOpacity": 0.5,
        "labelFontSize": 11.5,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
    },
}


def _chart(rows: Rows, width: int, height: int, **parts: Any) -> Spec:  # noqa: ANN401 (the language is untyped)
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": width,
        "height": height,
        "autosize": {"type": "fit", "contains": "padding"},
        "padding": 4,
        "background": None,
        "data": {"values": list(rows)},
        "config": _CONFIG,
        **parts,
    }


def _layers(layers: list[Spec], width: int, height: int, data: Rows = ()) -> Spec:
    return _chart(data, width, height, layer=layers)


def _layer(mark: Spec, rows: Rows | None = None, **encoding: Spec) -> Spec:
    """Marks with what they encode, of rows of their own or of the chart's."""
    data = {} if rows is None else {"data": {"values": list(rows)}}
    return {**data, "mark": mark, "encoding": encoding}


def _number(field: str, title: str, **more: Spec) -> Spec:
    return {"field": field, "type": "quantitative", "title": title, **more}


def _kind(field: str, **more: Any) -> Spec:  # noqa: ANN401 (the language is untyped)
    return {"field": field, "type": "nominal", **more}


def _logarithmic(field: str, title: str, values: Sequence[float]) -> Spec:
    scale = {"type": "log", "nice": False, "domain": _log_domain(values)}
    return _number(field, title, scale=scale, axis=_log_axis(values))


def _symmetric(field: str, title: str, ticks: Sequence[int], ends: tuple[float, float]) -> Spec:
    """An axis that is linear near zero and logarithmic further out, on both sides."""
    low, high = ends
    scale = {"type": "symlog", "constant": 10, "domain": [low, high], "nice": False}
    labels = {"values": [tick for tick in ticks if low <= tick <= high], "format": ",d", "labelOverlap": "greedy"}
    return _number(field, title, scale=scale, axis=labels)


def _categories(rows: Rows) -> list[str]:
    return list(dict.fromkeys(str(row["category"]) for row in rows))


def _category_axis(categories: Sequence[str], axis: Spec) -> Spec:
    labels = {"labelLimit": 300, "minExtent": 9 + _LETTER * max(map(len, categories), default=0)}
    return _kind("category", sort=list(categories), title=None, axis={**axis, **labels})


def _room_for_text(values: Sequence[float], width: int) -> Spec:
    """A scale from zero that leaves room to the right of the longest bar."""
    most = max(values, default=0) or 1
    return {"domain": [0, most * (1.15 if width >= _NARROW else 1.45)], "nice": False}


def _by_mark(marks: Sequence[Mark]) -> dict[str, Spec]:
    """The colours and shapes of points."""
    names = [mark.name for mark in marks]
    return {
        channel: _kind("series", sort=names, scale={"domain": names, "range": values}, legend=None)
        for channel, values in (("color", [m.colour for m in marks]), ("shape", [m.shape for m in marks]))
    }


def _ticks(width: int) -> int:
    return 4 if width < _NARROW else 8


def _height(width: int, wide: float, narrow: float) -> int:
    """The height of a chart as a share of its width."""
    return round((narrow if width < _NARROW else wide) * width)


def _log_domain(values: Sequence[float]) -> list[float]:
    """The ends of a logarithmic axis; where there is nothing to draw, those of an empty one."""
    above = [value for value in values if value > 0] or [1.0]
    return [min(above) / 1.25, max(above) * 1.25]


def _log_axis(values: Sequence[float]) -> Spec:
    """Label 1, 2 and 5 times the powers of ten, and only where they are few enough to be read."""
    low, high = _log_domain(values)
    steps = (1, 2, 5) if high / low < 1000 else (1,)
    ticks = [step * 10.0**power for power in range(-12, 15) for step in steps]
    return {"values": [tick for tick in ticks if low <= tick <= high], "format": ",~r", "labelOverlap": "greedy"}


_ID: Final = re.compile(r'\bid="([^"]+)"|url\(#([^)]+)\)|href="#([^"]+)"')
_NAMESPACES: Final = re.compile(r' xmlns(:xlink)?="[^"]*"')


def renderer() -> ModuleType:
    """Import the renderer.

    Raises
    ------
    ConfigError
        If it is not installed, saying how to install it. Ask before long work that ends in a report.
    """
    with needing("the charts of a report need the package vl-convert-python", "report"):
        return import_module("vl_convert")  # optional, and half a second to start


def draw(spec: Spec, label: str, prefix: str) -> Html:
    """Render a chart as an SVG element that a screen reader knows by its label.

    Parameters
    ----------
    label : str
        What the chart shows, in a sentence.
    prefix : str
        Of the identifiers in the SVG: several SVGs in one page share one space of names.
    """
    svg = renderer().vegalite_to_svg(spec, vl_version=VEGA_LITE)
    svg = _ID.sub(lambda m: m.group().replace(m[1] or m[2] or m[3], f"{prefix}-{m[1] or m[2] or m[3]}"), svg)
    # Inside HTML the namespaces are known, and without them no address occurs in the page at all.
    svg = _NAMESPACES.sub("", svg)
    return Html(svg.replace("<svg ", f'<svg role="img" aria-label="{Html.escape(label)}" ', 1))
