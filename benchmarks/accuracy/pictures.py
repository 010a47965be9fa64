"""What was measured, as pictures: ratios by level, errors and bias of totals of blocks by size."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from tables import Done, of_size, ratio, sizes
from worlds import PRODUCTION, World

from yupana.report.charts import VEGA_LITE, renderer

COLOURS: Final = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#8a939c")
"""Told apart by those who do not see all colours, too."""

SHAPES: Final = ("circle", "diamond", "square", "triangle-up", "cross", "triangle-down", "stroke")

LEVELLED: Final = ("total", "votingage", "hispanic", "detailed")
"""The queries whose answers are drawn by level."""

SIZED: Final = (
    PRODUCTION,
    "pieces, full information",
    "block total, full information",
    "posterior",
    "block total, posterior",
    "moved budget, full information",
)
"""The cases whose blocks differ enough to be told apart by eye."""


def draw_levels(worlds: Iterable[World], done: Mapping[str, Done], path: Path) -> None:
    """A panel for each kind of areas, a row for every case, a dot for each answer: its error by production's."""
    _draw([_levels(world, done[world.name]) for world in worlds], path)


def _levels(world: World, done: Done) -> dict[str, Any]:
    cases = [case for case in world.cases if case in done and case != PRODUCTION]
    queries = {query: world.queries[query] for query in LEVELLED}
    rows = [
        {"case": case, "areas": words, "answer": queries[query], "ratio": ratio(done, case, (kind, query))[0]}
        for case in cases
        for kind, words in world.kinds.items()
        for query in queries
    ]
    across = {
        "field": "ratio",
        "type": "quantitative",
        "title": "part of production's error",
        "axis": {"values": [0.1, 0.3, 1, 3, 10]},
    }
    up = {"field": "case", "type": "nominal", "sort": cases, "title": None, "axis": {"labelLimit": 260, "grid": True}}
    answers = list(queries.values())
    dots = {
        "mark": {"type": "point", "filled": True, "size": 65, "opacity": 0.85},
        "encoding": {
            "x": {**across, "scale": {"type": "log", "domain": [0.07, 14], "nice": False, "clamp": True}},
            "y": up,
            "color": _coded("answer", answers, COLOURS),
            "shape": _coded("answer", answers, SHAPES),
        },
    }
    line = {"mark": {"type": "rule", "color": "#8a939c", "strokeDash": [4, 3]}, "encoding": {"x": {"datum": 1}}}
    facet = {"field": "areas", "type": "nominal", "sort": list(world.kinds.values()), "title": None}
    return {
        "title": {"text": world.title, "anchor": "start"},
        "data": {"values": rows},
        "facet": {"column": facet},
        "spec": {"width": 150, "height": {"step": 22}, "layer": [line, dots]},
    }


def draw_sizes(world: World, done: Done, path: Path) -> None:
    """Mean absolute error, and bias, of totals of the last units by their true population."""
    cases = [case for case in SIZED if case in done]
    words = sizes(world)
    charts = []
    for what, title in (("mae", "mean absolute error, persons"), ("bias", "bias, persons")):
        rows = [
            {"size": words[low], "case": case, "value": of_size(done, case, low, what)}
            for case in cases
            for low in words
        ]
        unit = next(iter(world.kinds.values()))
        across = {
            "field": "size",
            "type": "ordinal",
            "sort": list(words.values()),
            "title": f"true persons of the {unit}",
            "axis": {"labelAngle": -35},
        }
        up = {"field": "value", "type": "quantitative", "title": title}
        coded = {"color": _coded("case", cases, COLOURS), "shape": _coded("case", cases, SHAPES)}
        mark = {"type": "line", "point": {"filled": True, "size": 60}}
        charts.append(
            {
                "width": 330,
                "height": 280,
                "data": {"values": rows},
                "mark": mark,
                "encoding": {"x": across, "y": up, **coded},
            }
        )
    _draw([{"hconcat": charts}], path)


def _coded(name: str, domain: list[str], values: tuple[str, ...]) -> dict[str, Any]:
    return {
        "field": name,
        "type": "nominal",
        "scale": {"domain": domain, "range": list(values[: len(domain)])},
        "legend": {"title": None, "orient": "bottom", "columns": 4, "labelLimit": 260},
    }


def _draw(charts: list[dict[str, Any]], path: Path) -> None:
    # Text is drawn in the colour of the page, which an image of its own does not have.
    spec = {
        "vconcat": charts,
        "background": "white",
        "padding": 12,
        "resolve": {"scale": {"color": "independent", "shape": "independent"}},
        "config": {"font": "sans-serif", "axis": {"gridColor": "#e4e7ea"}, "view": {"stroke": None}},
    }
    path.write_text(renderer().vegalite_to_svg(spec, vl_version=VEGA_LITE), encoding="utf-8")
