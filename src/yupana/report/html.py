"""Templates of pages, in `templates/`. Whatever is not `Html` is escaped on its way into one."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from yupana.report import numbers

Html = Markup
"""Markup that is safe to put into a page as it is."""

TEMPLATES: Final = Path(__file__).parent / "templates"

_ENVIRONMENT: Final = Environment(
    loader=FileSystemLoader(TEMPLATES),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)
_ENVIRONMENT.filters |= {
    name: getattr(numbers, name)
    for name in ("whole", "rounded", "percent", "power_of_ten", "loss", "confidence_percent")
}


def text_of(*files: str) -> Html:
    """Files of `templates/` that are no templates, style sheets or scripts, one after the other."""
    return Html("\n".join((TEMPLATES / name).read_text(encoding="utf-8") for name in files))


def fill(template: str, values: Mapping[str, Any]) -> Html:
    """Fill a template.

    Parameters
    ----------
    template : str
        A file of `templates/`.
    values : mapping of name to value
        What the template names; a name that is missing is an error of the program.
    """
    return Html(_ENVIRONMENT.get_template(template).render(values))


def table(columns: Mapping[str, Sequence[object]], caption: str, note: str = "") -> Html:
    """A table by its columns. Columns that hold numbers, formatted or not, are set flush right.

    Parameters
    ----------
    columns : mapping of heading to values, all of one length
    caption : str
        What the table shows; it stands above, outside of what scrolls.
    note : str, optional
        Stands below.
    """
    heads = [(name, all(_is_number(value) for value in values)) for name, values in columns.items()]
    rows = list(zip(*columns.values(), strict=True))
    return fill("table.html", {"heads": heads, "rows": rows, "caption": caption, "note": note})


def _is_number(value: object) -> bool:
    text = str(value).removesuffix("%").replace(",", "").removeprefix("−").removeprefix("-")
    return text in {"", "–", "infinite", "exact", "unknown", "none"} or text.replace(".", "", 1).isdecimal()


_BOUNDS: Final = (0.01, 0.05, 0.1, 0.25, 1.0)
"""Shares at which the shade changes; the classes are s0 to s5."""

_LEGEND: Final = ("up to 1%", "up to 5%", "up to 10%", "up to 25%", "up to 100%", "more than the count itself")


def shades(rows: Mapping[str, Sequence[float | None]], columns: Sequence[str], caption: str, corner: str) -> Html:
    """A table of shares whose fields are shaded: as good on paper and to a screen reader as to the eye.

    Parameters
    ----------
    rows : mapping of heading to shares
        None where there is nothing, infinite where a margin stands against a count of zero.
    columns : sequence of str
    caption, corner : str
        What the table shows, and the heading of the rows.
    """
    fields = {
        name: [None if v is None else (sum(v > bound for bound in _BOUNDS), _shown(v)) for v in values]
        for name, values in rows.items()
    }
    values = {"rows": fields, "columns": columns, "caption": caption, "corner": corner, "legend": _LEGEND}
    return fill("shades.html", values)


def _shown(share: float) -> str:
    """A share as a percentage of two digits."""
    if math.isinf(share):
        return "of 0"
    if share >= 10:
        return f"{numbers.rounded(share, 2)}×"
    return f"{numbers.rounded(100 * share, 2)}%" if share < 0.995 else numbers.percent(share)
