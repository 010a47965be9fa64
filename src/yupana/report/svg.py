"""From a chart's specification to SVG inside a page. The renderer is an optional dependency, imported when used."""

import itertools
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Final

from yupana.errors import ConfigError
from yupana.report.charts import Spec
from yupana.report.html import Html, escape

VEGA_LITE: Final = "6.4"
"""The version of the language that the specifications are written in."""

_ID: Final = re.compile(r'\bid="([^"]+)"|url\(#([^)]+)\)|href="#([^"]+)"')
_NAMESPACES: Final = re.compile(r' xmlns(:xlink)?="[^"]*"')


def renderer() -> ModuleType:
    """Import the renderer.

    Raises
    ------
    ConfigError
        If it is not installed, saying how to install it. Ask before long work that ends in a report.
    """
    try:
        import vl_convert  # noqa: PLC0415 (optional, and half a second to start)
    except ImportError:
        raise ConfigError(
            "the charts of a report need the package vl-convert-python; install it: pip install 'yupana[report]'"
        ) from None
    module: ModuleType = vl_convert
    return module


def draw(spec: Spec, label: str, names: Iterator[str]) -> Html:
    """Render a chart as an SVG element that a screen reader knows by its label.

    Parameters
    ----------
    spec : Spec
    label : str
        What the chart shows, in a sentence.
    names : iterator of str
        Prefixes for the identifiers in the SVG: several SVGs in one page share one space of names.
    """
    svg = renderer().vegalite_to_svg(spec, vl_version=VEGA_LITE)
    prefix = next(names)
    svg = _ID.sub(lambda m: m.group().replace(m[1] or m[2] or m[3], f"{prefix}-{m[1] or m[2] or m[3]}"), svg)
    # Inside HTML the namespaces are known, and without them no address occurs in the page at all.
    svg = _NAMESPACES.sub("", svg)
    return Html(svg.replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1))


def prefixes() -> Iterator[str]:
    """Names for the charts of a page."""
    return (f"chart{i}" for i in itertools.count(1))
