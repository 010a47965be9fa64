"""HTML that cannot be mistaken for text: whatever is not `Html` is escaped on its way into a page."""

import html
from collections.abc import Mapping, Sequence


class Html(str):
    """Markup that is safe to put into a page as it is."""

    __slots__ = ()


def escape(text: object) -> Html:
    """Escape a text; leave `Html` as it is."""
    return text if isinstance(text, Html) else Html(html.escape(str(text)))


def join(*parts: object) -> Html:
    """Put parts one after the other, each escaped unless it is `Html`."""
    return Html("".join(escape(part) for part in parts))


def element(name: str, *content: object, **attributes: str) -> Html:
    """An element. A trailing underscore of an attribute's name is dropped: ``class_`` is class."""
    written = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items())
    return Html(f"<{name}{written}>{join(*content)}</{name}>")


def paragraph(*content: object, **attributes: str) -> Html:
    """A paragraph."""
    return element("p", *content, **attributes)


def code(text: str) -> Html:
    """Something that is typed, or the name of a file."""
    return element("code", text)


def bullets(*items: object) -> Html:
    """A list."""
    return element("ul", *(element("li", item) for item in items))


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
    numeric = {name: all(_is_number(value) for value in values) for name, values in columns.items()}
    heads = [_cell("th", name, number=numeric[name], scope="col") for name in columns]
    rows = [
        element("tr", *(_cell("td", value, number=numeric[name]) for name, value in zip(columns, row, strict=True)))
        for row in zip(*columns.values(), strict=True)
    ]
    body = element("table", element("thead", element("tr", *heads)), element("tbody", *rows), aria_label=caption)
    return join(
        paragraph(caption, class_="note caption"),
        # What scrolls must be reachable by keyboard.
        element("div", body, class_="scroll", tabindex="0", role="region", aria_label=caption),
        *([paragraph(note, class_="note")] if note else []),
    )


def _cell(name: str, value: object, *, number: bool, **attributes: str) -> Html:
    return element(name, value, **attributes, **({"class_": "number"} if number else {}))


def _is_number(value: object) -> bool:
    text = str(value).removesuffix("%").replace(",", "").removeprefix("−").removeprefix("-")
    return text in {"", "–", "infinite", "exact", "unknown"} or text.replace(".", "", 1).isdecimal()
