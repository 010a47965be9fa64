"""The charts of the reports, as Vega-Lite specifications: pure functions from rows and a width to plain dicts.

Each fits the width it is given, axes included; the page sets the legends. Text takes the colour of the page it stands
on, and marks have colours of middle lightness, so that one drawing serves light and dark pages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Spec = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]

BLUE: Final = "#3d86c6"
ORANGE: Final = "#e07b28"
GREY: Final = "#8a939c"

_TEXT: Final = "currentColor"
_NARROW: Final = 500
"""Below this width, axes have fewer ticks and charts are less flat."""

_LETTER: Final = 6.2
"""Pixels that a letter of a label takes in a wide font: the reader's fonts are not those of the renderer."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What one mark stands for, in charts and their legends.

    Attributes
    ----------
    name, colour : str
    shape : str
        A point shape of Vega-Lite: "circle", "diamond", "triangle-up" or "square"; "line" only in legends.
    """

    name: str
    colour: str
    shape: str = "square"


def stacked_bars(rows: Rows, series: Sequence[Mark], width: int, *, axis: str) -> Spec:
    """Bars by category, each made of the parts of every series, with their sum written beside.

    Parameters
    ----------
    rows : rows of category, series, value
    series : sequence of Mark
        In the order of the stack.
    width : int
    axis : str
        Title of the axis of values.
    """
    categories = _categories(rows)
    order = {s.name: place for place, s in enumerate(series)}
    sums = dict.fromkeys(categories, 0.0)
    for row in rows:
        sums[row["category"]] += row["value"]
    across = {
        "field": "value",
        "type": "quantitative",
        "title": axis,
        "scale": _room_for_text(list(sums.values()), width),
        "axis": {"tickCount": _ticks(width)},
    }
    up = _category_axis(categories)
    return _layers(
        [
            {
                "data": {"values": [{**row, "order": order[row["series"]]} for row in rows]},
                "mark": {"type": "bar", "height": {"band": 0.72}},
                "encoding": {
                    "x": {**across, "stack": "zero"},
                    "y": up,
                    "color": _colours(series),
                    "order": {"field": "order", "type": "quantitative"},
                },
            },
            {
                "data": {"values": [{"category": category, "value": value} for category, value in sums.items()]},
                "mark": _BESIDE,
                "encoding": {
                    "x": across,
                    "y": up,
                    "text": {"field": "value", "type": "quantitative", "format": ".2~r"},
                },
            },
        ],
        width,
        44 + 26 * len(categories),
    )


def share_bars(rows: Rows, series: Sequence[Mark], width: int, *, axis: str) -> Spec:
    """Bars of one length by category, divided by shares, with a text beside each.

    Parameters
    ----------
    rows : rows of category, series, value (from 0 to 1), text (the same in all rows of a category)
    series : sequence of Mark
        In the order of the stack.
    width : int
    axis : str
        Title of the axis of shares.
    """
    categories = _categories(rows)
    order = {s.name: place for place, s in enumerate(series)}
    across = {
        "field": "value",
        "type": "quantitative",
        "title": axis,
        "scale": {"domain": [0, 1.12 if width >= _NARROW else 1.5], "nice": False},
        "axis": {"values": [0, 0.25, 0.5, 0.75, 1] if width >= _NARROW else [0, 0.5, 1], "format": ".0%"},
    }
    up = _category_axis(categories)
    texts = {str(row["category"]): row["text"] for row in rows}
    return _layers(
        [
            {
                "data": {"values": [{**row, "order": order[row["series"]]} for row in rows]},
                "mark": {"type": "bar", "height": {"band": 0.72}},
                "encoding": {
                    "x": {**across, "stack": "zero"},
                    "y": up,
                    "color": _colours(series),
                    "order": {"field": "order", "type": "quantitative"},
                },
            },
            {
                "data": {"values": [{"category": c, "value": 1, "text": text} for c, text in texts.items()]},
                "mark": _BESIDE,
                "encoding": {"x": across, "y": up, "text": {"field": "text", "type": "nominal"}},
            },
        ],
        width,
        44 + 26 * len(categories),
    )


def intervals(rows: Rows, width: int, *, axis: str) -> Spec:
    """A published count by category with its interval and the true count, on a logarithmic axis.

    Parameters
    ----------
    rows : rows of category, value, low, high, true
        Counts above zero; ``low`` and ``high`` are the ends of the interval.
    width : int
    axis : str
        Title of the axis of counts.
    """
    categories = _categories(rows)
    reach = [float(row[end]) for row in rows for end in ("low", "high", "true")]
    across = {
        "field": "value",
        "type": "quantitative",
        "title": axis,
        "scale": {"type": "log", "nice": False, "domain": _log_domain(reach)},
        "axis": _log_axis(reach),
    }
    axes = {**_category_axis(categories)}
    axes["axis"] = {**axes["axis"], "grid": True}
    return _layers(
        [
            {
                "mark": {"type": "bar", "color": BLUE, "opacity": 0.4, "height": {"band": 0.62}, "cornerRadius": 2},
                "encoding": {"x": {**across, "field": "low"}, "x2": {"field": "high"}, "y": axes},
            },
            {
                "mark": {"type": "point", "filled": True, "color": BLUE, "size": 45, "opacity": 1},
                "encoding": {"x": across, "y": axes},
            },
            {
                "mark": {"type": "tick", "color": ORANGE, "thickness": 2.5, "height": {"band": 0.8}, "opacity": 1},
                "encoding": {"x": {**across, "field": "true"}, "y": axes},
            },
        ],
        width,
        44 + 20 * len(categories),
        data=rows,
    )


def log_dots(rows: Rows, series: Sequence[Mark], width: int, *, axis: str) -> Spec:
    """A dot per category and series on a logarithmic axis, one below the other so that equal values do not hide.

    Parameters
    ----------
    rows : rows of category, series, value
        Values of 0 have no place on the axis and are not drawn.
    series : sequence of Mark
    width : int
    axis : str
        Title of the axis of values.
    """
    rows = [row for row in rows if row["value"] > 0]
    categories = _categories(rows)
    names = [s.name for s in series]
    lane = {"field": "series", "type": "nominal", "sort": names, "scale": {"domain": names}}
    return _chart(
        rows,
        width,
        44 + (9 * len(series) + 6) * len(categories),
        mark={"type": "point", "filled": True, "size": 55, "opacity": 1},
        encoding={
            "x": {
                "field": "value",
                "type": "quantitative",
                "title": axis,
                "scale": {"type": "log", "nice": False, "domain": _log_domain([row["value"] for row in rows])},
                "axis": _log_axis([row["value"] for row in rows]),
            },
            "y": {
                **_category_axis(categories),
                "scale": {"paddingInner": 0.25, "paddingOuter": 0.1},
                "axis": {"grid": True, "tickBand": "extent", "labelLimit": 300, "minExtent": _extent(categories)},
            },
            "yOffset": lane,
            "color": _colours(series),
            "shape": _shapes(series),
        },
    )


def scatter_with_band(points: Rows, band: Rows, width: int, *, x: str, y: str, ticks: Sequence[int]) -> Spec:
    """Points around the diagonal, on axes that are logarithmic on both sides of zero, with a band.

    Parameters
    ----------
    points : rows of x, y, inside (whether the band holds it)
    band : rows of x, low, high
    width : int
    x, y : str
        Titles of the axes.
    ticks : sequence of int
        Where both axes are labelled, if they reach so far.
    """
    highest = 1.15 * max(max(row["x"], row["y"]) for row in points)
    lowest = min(*(1.25 * row["y"] for row in points), *(row["low"] for row in band))

    def axis(field: str, title: str, first: float) -> Spec:
        return {
            "field": field,
            "type": "quantitative",
            "title": title,
            "scale": {"type": "symlog", "constant": 10, "domain": [first, highest], "nice": False},
            "axis": {
                "values": [tick for tick in ticks if first <= tick <= highest],
                "format": ",d",
                "labelOverlap": "greedy",
                "labelSeparation": 10 if field == "x" else 0,
            },
        }

    # A little room to the left of zero, where many dots are.
    across, up = axis("x", x, -1.5), axis("y", y, lowest)
    return _layers(
        [
            {
                "data": {"values": list(band)},
                "mark": {"type": "area", "color": GREY, "opacity": 0.3, "clip": True},
                "encoding": {"x": across, "y": {**up, "field": "low"}, "y2": {"field": "high"}},
            },
            {
                "data": {"values": list(band)},
                "mark": {"type": "line", "color": GREY, "strokeWidth": 1, "clip": True},
                "encoding": {"x": across, "y": {**up, "field": "x"}},
            },
            {
                "data": {"values": list(points)},
                "mark": {"type": "point", "filled": True, "size": 14 if len(points) > 200 else 26, "opacity": 0.75},
                "encoding": {
                    "x": across,
                    "y": up,
                    "color": {
                        "field": "inside",
                        "type": "nominal",
                        "scale": {"domain": [True, False], "range": [BLUE, ORANGE]},
                        "legend": None,
                    },
                },
            },
        ],
        width,
        round(0.85 * width),
    )


def funnel(
    points: Rows, band: Rows, series: Sequence[Mark], width: int, *, x: str, y: str, ends: tuple[float, float]
) -> Spec:
    """Ratios against the number of draws behind each, with the band that chance alone would fill.

    Parameters
    ----------
    points : rows of x (above 0), y, series
    band : rows of x, low, high
    series : sequence of Mark
    width : int
    x, y : str
        Titles of the axes.
    ends : pair of floats
        Of the axis of ratios, so that charts side by side compare.
    """
    numbers = [row["x"] for row in band]
    across = {
        "field": "x",
        "type": "quantitative",
        "title": x,
        "scale": {"type": "log", "nice": False, "domain": [min(numbers), max(numbers)]},
        "axis": _log_axis(numbers),
    }
    up = {
        "field": "y",
        "type": "quantitative",
        "title": y,
        "scale": {"domain": list(ends), "nice": False},
        "axis": {"tickCount": 6, "format": ".1f"},
    }
    return _layers(
        [
            {
                "data": {"values": list(band)},
                "mark": {"type": "area", "color": GREY, "opacity": 0.3, "clip": True},
                "encoding": {"x": across, "y": {**up, "field": "low"}, "y2": {"field": "high"}},
            },
            {
                "data": {"values": [{"y": 1}]},
                "mark": {"type": "rule", "color": _TEXT, "strokeWidth": 1, "opacity": 0.6},
                "encoding": {"y": up},
            },
            {
                "data": {"values": list(points)},
                "mark": {"type": "point", "filled": True, "size": 26, "opacity": 0.85},
                "encoding": {"x": across, "y": up, "color": _colours(series), "shape": _shapes(series)},
            },
        ],
        width,
        round(0.85 * width) if width < _NARROW else round(0.5 * width),
    )


def histogram_with_law(rows: Rows, width: int, *, x: str, y: str) -> Spec:
    """Bars of observed shares with a line of those expected.

    Parameters
    ----------
    rows : rows of low, high, middle, observed, expected
        Bins, touching each other.
    width : int
    x, y : str
        Titles of the axes.
    """

    def across(field: str) -> Spec:
        return {
            "field": field,
            "type": "quantitative",
            "title": x,
            "axis": {"format": ",d", "tickCount": _ticks(width)},
            "scale": {"nice": False, "zero": False},
        }

    up = {"type": "quantitative", "title": y, "axis": {"tickCount": 5, "format": ".1%"}}
    return _layers(
        [
            {
                "mark": {"type": "rect", "color": BLUE, "opacity": 0.75},
                "encoding": {
                    "x": across("low"),
                    "x2": {"field": "high"},
                    "y": {**up, "field": "observed"},
                    "y2": {"datum": 0},
                },
            },
            {
                "mark": {"type": "line", "color": ORANGE, "strokeWidth": 2.5},
                "encoding": {"x": across("middle"), "y": {**up, "field": "expected"}},
            },
        ],
        width,
        round(0.75 * width) if width < _NARROW else round(0.42 * width),
        data=rows,
    )


def grid_of_shares(rows: Rows, width: int, *, x: str, bounds: Sequence[float], columns: Sequence[str]) -> Spec:
    """A share in every field of a grid, written out and coloured by the bounds it lies between.

    Parameters
    ----------
    rows : rows of column, category, value, text
    width : int
    x : str
        Title of the columns.
    bounds : sequence of five floats
    columns : sequence of str
        In order.
    """
    categories = _categories(rows)
    across = {
        "field": "column",
        "type": "nominal",
        "sort": list(columns),
        "title": x,
        "axis": {"orient": "top", "labelAngle": 0 if width >= _NARROW else -40, "domain": False, "ticks": False},
    }
    up = {**_category_axis(categories), "scale": {"paddingInner": 0.06, "paddingOuter": 0}}
    narrow = 10 if len(columns) <= 5 else 9
    size = 12 if width >= _NARROW else narrow
    # The fields are light in both modes, so their text is dark in both.
    fills = ["#9cc5e6", "#c7def0", "#ece8d9", "#f5d5ae", "#efb18a", "#e38f76"]
    return _layers(
        [
            {
                "mark": {"type": "rect", "cornerRadius": 3},
                "encoding": {
                    "x": {**across, "scale": {"paddingInner": 0.04, "paddingOuter": 0}},
                    "y": up,
                    "color": {
                        "field": "value",
                        "type": "quantitative",
                        "scale": {"type": "threshold", "domain": list(bounds), "range": fills},
                        "legend": None,
                    },
                },
            },
            {
                "mark": {"type": "text", "color": "#15191d", "fontSize": size},
                "encoding": {"x": across, "y": up, "text": {"field": "text", "type": "nominal"}},
            },
        ],
        width,
        80 + 38 * len(categories),
        data=rows,
        # Slanted headings reach beyond the last column.
        right=4 if width >= _NARROW else 24,
    )


def labelled_bars(rows: Rows, width: int, *, axis: str) -> Spec:
    """Bars by category with their value written beside.

    Parameters
    ----------
    rows : rows of category, value, text
    width : int
    axis : str
        Title of the axis of values.
    """
    categories = _categories(rows)
    across = {
        "field": "value",
        "type": "quantitative",
        "title": axis,
        "scale": _room_for_text([row["value"] for row in rows], width),
        "axis": {"tickCount": _ticks(width)},
    }
    up = _category_axis(categories)
    return _layers(
        [
            {"mark": {"type": "bar", "color": ORANGE, "height": {"band": 0.72}}, "encoding": {"x": across, "y": up}},
            {
                "mark": _BESIDE,
                "encoding": {"x": across, "y": up, "text": {"field": "text", "type": "nominal"}},
            },
        ],
        width,
        44 + 28 * len(categories),
        data=rows,
    )


def before_and_after(rows: Rows, series: Sequence[Mark], width: int, *, x: str, y: str) -> Spec:
    """Points about a diagonal on logarithmic axes of one scale: those below it became smaller.

    Parameters
    ----------
    rows : rows of x, y (both above 0), series
    series : sequence of Mark
    width : int
    x, y : str
        Titles of the axes.
    """
    values = [row[field] for row in rows for field in ("x", "y")]
    low, high = _log_domain(values)

    def axis(field: str, title: str) -> Spec:
        return {
            "field": field,
            "type": "quantitative",
            "title": title,
            "scale": {"type": "log", "nice": False, "domain": [low, high]},
            "axis": _log_axis(values),
        }

    across, up = axis("x", x), axis("y", y)
    return _layers(
        [
            {
                "data": {"values": [{"x": low, "y": low}, {"x": high, "y": high}]},
                "mark": {"type": "line", "color": GREY, "strokeWidth": 1},
                "encoding": {"x": across, "y": up},
            },
            {
                "data": {"values": list(rows)},
                "mark": {"type": "point", "filled": True, "size": 30, "opacity": 0.75},
                "encoding": {"x": across, "y": up, "color": _colours(series), "shape": _shapes(series)},
            },
        ],
        width,
        round(0.85 * width) if width < _NARROW else round(0.6 * width),
    )


def trend(points: Rows, series: Sequence[Mark], width: int, *, x: str, y: str) -> Spec:
    """A line with dots for each series, on a logarithmic axis of shares.

    Parameters
    ----------
    points : rows of x (a whole number), y (above 0), series
    series : sequence of Mark
    width : int
    x, y : str
        Titles of the axes.
    """
    across = {"field": "x", "type": "quantitative", "title": x, "axis": {"tickMinStep": 1, "grid": False}}
    values = [row["y"] for row in points] or [1]
    up = {
        "field": "y",
        "type": "quantitative",
        "title": y,
        "scale": {"type": "log", "nice": False, "domain": _log_domain(values)},
        "axis": {**_log_axis(values), "format": "~%"},
    }
    encoding = {"x": across, "y": up, "color": _colours(series)}
    return _layers(
        [
            {"mark": {"type": "line", "strokeWidth": 1.5}, "encoding": encoding},
            {"mark": {"type": "point", "filled": True, "size": 30, "opacity": 1}, "encoding": encoding},
        ],
        width,
        round(0.85 * width) if width < _NARROW else round(0.45 * width),
        data=points,
    )


def shaded_map(shapes: Sequence[Mapping[str, Any]], width: int, height: int) -> Spec:
    """Areas filled with colours.

    Parameters
    ----------
    shapes : sequence of GeoJSON features
        In a plane, north up; the property "colour" fills each.
    width, height : int
    """
    return _chart(
        [],
        width,
        height,
        data={"values": {"type": "FeatureCollection", "features": list(shapes)}, "format": {"property": "features"}},
        projection={"type": "identity", "reflectY": True},
        mark={"type": "geoshape", "stroke": _TEXT, "strokeWidth": 0.5, "strokeOpacity": 0.6},
        encoding={"color": {"field": "properties.colour", "type": "nominal", "scale": None, "legend": None}},
    )


def dots_about_zero(points: Rows, width: int, *, x: str, y: str) -> Spec:
    """Dots above and below zero, against a count on an axis that is linear near zero and logarithmic further out.

    Parameters
    ----------
    points : rows of x (zero or more), y
    width : int
    x, y : str
        Titles of the axes.
    """
    across = {
        "field": "x",
        "type": "quantitative",
        "title": x,
        "scale": {"type": "symlog", "constant": 10, "nice": False},
        "axis": {"values": [0, *(10**power for power in range(1, 10))], "format": ",d", "labelOverlap": "greedy"},
    }
    up = {"field": "y", "type": "quantitative", "title": y, "axis": {"tickCount": 7}}
    return _layers(
        [
            {
                "data": {"values": [{"y": 0}]},
                "mark": {"type": "rule", "color": _TEXT, "strokeWidth": 1, "opacity": 0.6},
                "encoding": {"y": up},
            },
            {
                "data": {"values": list(points)},
                "mark": {"type": "point", "filled": True, "size": 10, "opacity": 0.6, "color": BLUE},
                "encoding": {"x": across, "y": up},
            },
        ],
        width,
        round(0.75 * width) if width < _NARROW else round(0.42 * width),
    )


def dots_about_diagonal(points: Rows, width: int, *, x: str, y: str) -> Spec:
    """Dots and the diagonal, on axes that are linear near zero and logarithmic further out.

    Parameters
    ----------
    points : rows of x, y
    width : int
    x, y : str
        Titles of the axes.
    """
    ends = [f(row[side] for row in points) for f in (min, max) for side in ("x", "y")]
    low, high = min(0, *ends), max(1, *ends)
    ticks = [0, *(10**power for power in range(1, 10))]

    def axis(field: str, title: str) -> Spec:
        return {
            "field": field,
            "type": "quantitative",
            "title": title,
            "scale": {"type": "symlog", "constant": 10, "domain": [low, high], "nice": False},
            "axis": {
                "values": [sign * tick for tick in ticks for sign in (1, -1) if low <= sign * tick <= high],
                "format": ",d",
                "labelOverlap": "greedy",
            },
        }

    across, up = axis("x", x), axis("y", y)
    return _layers(
        [
            {
                "data": {"values": [{"x": low, "y": low}, {"x": high, "y": high}]},
                "mark": {"type": "line", "color": _TEXT, "strokeWidth": 1, "opacity": 0.6},
                "encoding": {"x": across, "y": up},
            },
            {
                "data": {"values": list(points)},
                "mark": {"type": "point", "filled": True, "size": 10, "opacity": 0.6, "color": BLUE},
                "encoding": {"x": across, "y": up},
            },
        ],
        width,
        round(0.75 * width) if width < _NARROW else round(0.42 * width),
    )


def curve_with_band(rows: Rows, marks: Rows, width: int, *, x: str, y: str) -> Spec:
    """A curve with a band about it, and horizontal lines to compare with.

    Parameters
    ----------
    rows : rows of x, y, low, high
    marks : rows of y, colour
    width : int
    x, y : str
        Titles of the axes.
    """
    across = {
        "field": "x",
        "type": "quantitative",
        "title": x,
        "scale": {"nice": False, "zero": False},
        "axis": {"format": ",d", "tickCount": _ticks(width)},
    }
    up = {"field": "y", "type": "quantitative", "title": y, "axis": {"tickCount": 7}}
    return _layers(
        [
            {
                "data": {"values": list(rows)},
                "mark": {"type": "area", "color": GREY, "opacity": 0.3},
                "encoding": {"x": across, "y": {**up, "field": "low"}, "y2": {"field": "high"}},
            },
            {
                "data": {"values": list(marks)},
                "mark": {"type": "rule", "strokeWidth": 1.5, "strokeDash": [5, 3]},
                "encoding": {"y": up, "color": {"field": "colour", "type": "nominal", "scale": None, "legend": None}},
            },
            {
                "data": {"values": list(rows)},
                "mark": {"type": "line", "color": BLUE, "strokeWidth": 2.5},
                "encoding": {"x": across, "y": up},
            },
        ],
        width,
        round(0.75 * width) if width < _NARROW else round(0.42 * width),
    )


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


def _layers(layers: list[Spec], width: int, height: int, data: Rows = (), right: int = 4) -> Spec:
    padding = {"left": 4, "right": right, "top": 4, "bottom": 4}
    return _chart(data, width, height, layer=layers, padding=padding)


_FONT: Final = "system-ui, Segoe UI, Helvetica, Arial, sans-serif"

_CONFIG: Final[Spec] = {
    "font": _FONT,
    # The page says what a chart shows; a description of every mark would multiply its size.
    "aria": False,
    "view": {"stroke": None},
    "axis": {
        "labelColor": _TEXT,
        "titleColor": _TEXT,
        "tickColor": _TEXT,
        "domainColor": _TEXT,
        "gridColor": _TEXT,
        "gridOpacity": 0.14,
        "domainOpacity": 0.5,
        "tickOpacity": 0.5,
        "labelFontSize": 11.5,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
    },
}

_BESIDE: Final[Spec] = {"type": "text", "align": "left", "dx": 5, "color": _TEXT, "fontSize": 11.5}
"""Text to the right of a bar."""


def _categories(rows: Rows) -> list[str]:
    return list(dict.fromkeys(str(row["category"]) for row in rows))


def _category_axis(categories: Sequence[str]) -> Spec:
    return {
        "field": "category",
        "type": "nominal",
        "sort": list(categories),
        "title": None,
        "axis": {"labelLimit": 300, "ticks": False, "domain": False, "minExtent": _extent(categories)},
    }


def _extent(labels: Sequence[str]) -> float:
    return 9 + _LETTER * max(map(len, labels), default=0)


def _room_for_text(values: Sequence[float], width: int) -> Spec:
    """A scale from zero that leaves room to the right of the longest bar."""
    most = max(values, default=0) or 1
    return {"domain": [0, most * (1.15 if width >= _NARROW else 1.45)], "nice": False}


def _colours(series: Sequence[Mark]) -> Spec:
    return {
        "field": "series",
        "type": "nominal",
        "sort": [s.name for s in series],
        "scale": {"domain": [s.name for s in series], "range": [s.colour for s in series]},
        "legend": None,
    }


def _shapes(series: Sequence[Mark]) -> Spec:
    return {
        "field": "series",
        "type": "nominal",
        "sort": [s.name for s in series],
        "scale": {"domain": [s.name for s in series], "range": [s.shape for s in series]},
        "legend": None,
    }


def _ticks(width: int) -> int:
    return 4 if width < _NARROW else 8


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
