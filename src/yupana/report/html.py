"""Templates of pages, in `templates/`. Whatever is not `Html` is escaped on its way into one."""

import re
from collections.abc import Callable, Mapping, Sequence
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
    name: getattr(numbers, name) for name in ("whole", "rounded", "percent", "power_of_ten", "loss")
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


def table(
    columns: Mapping[str, Sequence[object]], note: str = "", most: int | None = None, *, caller: Callable[[], Html]
) -> Html:
    """A table by its columns. Columns that hold numbers, formatted or not, are set flush right.

    Parameters
    ----------
    columns : mapping of heading to values, all of one length
    note : str, optional
        Stands below.
    most : int, optional
        More rows than these are not shown, and that is said below.
    caller
        Gives what the table shows; it stands above, outside of what scrolls.
    """
    heads = [(name, all(_is_number(value) for value in values[:most])) for name, values in columns.items()]
    rows = list(zip(*columns.values(), strict=True))
    if most is not None and len(rows) > most:
        note = f"The first {most} of {len(rows):,} rows."
    return fill("table.html", {"heads": heads, "rows": rows[:most], "caption": caller().striptags(), "note": note})


def _is_number(value: object) -> bool:
    text = str(value).removesuffix("%").replace(",", "").removeprefix("−").removeprefix("-")
    return text in {"", "–", "infinite", "exact", "unknown", "none"} or text.replace(".", "", 1).isdecimal()


_FIGURE: Final = re.compile("(<figure>.*?</figure>)", re.DOTALL)


def _in_lines(text: Html) -> Html:
    """Text in one line, but for its figures, which stand between lines as they are."""
    pieces = (piece if i % 2 else " ".join(piece.split()) for i, piece in enumerate(_FIGURE.split(text)))
    return Html("\n".join(piece for piece in pieces if piece))


_ENVIRONMENT.filters["in_lines"] = _in_lines
_ENVIRONMENT.globals.update(table=table, text_of=text_of)
