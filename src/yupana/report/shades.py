"""A table of shares whose fields are shaded: as good on paper and to a screen reader as to the eye."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from yupana.report.html import Html, element, join, paragraph
from yupana.report.numbers import percent, rounded

BOUNDS: Final = (0.01, 0.05, 0.1, 0.25, 1.0)
"""Shares at which the shade changes; the classes are s0 to s5."""

_LEGEND: Final = ("up to 1%", "up to 5%", "up to 10%", "up to 25%", "up to 100%", "more than the count itself")


def shades(rows: Mapping[str, Sequence[float | None]], columns: Sequence[str], caption: str, corner: str) -> Html:
    """Lay out shares by row and column.

    Parameters
    ----------
    rows : mapping of heading to shares
        None where there is nothing, infinite where a margin stands against a count of zero.
    columns : sequence of str
    caption, corner : str
        What the table shows, and the heading of the rows.
    """
    heads = [element("th", corner, scope="col"), *(element("th", c, scope="col", class_="number") for c in columns)]
    body = [element("tr", element("th", name, scope="row"), *map(_field, values)) for name, values in rows.items()]
    legend = element(
        "ul",
        *(element("li", element("span", "", class_=f"swatch s{place}"), words) for place, words in enumerate(_LEGEND)),
        class_="legend",
    )
    found = element("table", element("thead", element("tr", *heads)), element("tbody", *body), class_="shades")
    return join(
        paragraph(caption, class_="note caption"),
        legend,
        element("div", found, class_="scroll tall", tabindex="0", role="region", aria_label=caption),
    )


def shade(share: float) -> int:
    """Which of the six shades a share has."""
    return sum(share > bound for bound in BOUNDS)


def _field(share: float | None) -> Html:
    if share is None:
        return element("td", "–", class_="number")
    return element("td", shown(share), class_=f"number s{shade(share)}")


def shown(share: float) -> str:
    """A share as a percentage of two digits."""
    if math.isinf(share):
        return "of 0"
    if share >= 10:
        return f"{rounded(share, 2)}×"
    return f"{rounded(100 * share, 2)}%" if share < 0.995 else percent(share)
