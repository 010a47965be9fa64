"""The atlas of a release as one page, which loads nothing: for a file to send, and for a notebook."""

import html
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Final

from yupana.atlas.site import AtlasRequest, pages_of, parts_of
from yupana.atlas.tables import kinds_of, shown_tables
from yupana.products.gate import open_release
from yupana.report.page import MARK

ONE_FILE_BYTES: Final = 8_000_000
"""Of one page."""

_MOST_ROWS: Final = 4_000_000
"""Of one page: more fit into no 8 MB, so that they are not read."""


@dataclass(frozen=True, slots=True, repr=False)
class InlineAtlas:
    """The atlas of a release as one page, which a notebook shows."""

    release: Path
    page: str  # HTML
    told: str = ""  # what the page does not hold, and what shows all; empty if it holds all

    def __repr__(self) -> str:
        return f"<InlineAtlas of {self.release}>"

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self.page)}" style="width: 100%; height: 44em; border: 0"></iframe>'


def inline_atlas(request: AtlasRequest) -> InlineAtlas:
    """The atlas of a release as one page: all of it, or the kinds with the fewest areas that fit into 8 MB.

    Raises
    ------
    OutputError
        As by `pages_of`.
    """
    files = _made(request)
    left: tuple[str, ...] = ()
    if files is None:
        kinds = _coarsest_first(request)
        for number in range(len(kinds)):
            found = _made(replace(request, kinds=kinds[:number], left_out=kinds[number:]))
            if found is None:
                break
            files, left = found, kinds[number:]
    told = f"holds no areas of these kinds, as it would be too large: {', '.join(left)}. All: {request.command()}"
    return InlineAtlas(request.release, _as_page(files or {}), told if left else "")


def _coarsest_first(request: AtlasRequest) -> tuple[str, ...]:
    """The kinds of areas of a release, those with the fewest areas first."""
    found: dict[str, int] = {}
    for part in parts_of(open_release(request.release, confidential=True)).values():
        for kind, number in kinds_of(part).items():
            found[kind] = max(number, found.get(kind, 0))
    return tuple(kind for kind in sorted(found, key=found.__getitem__) if not request.kinds or kind in request.kinds)


class _TooLarge(Exception):  # noqa: N818 (no error: another page is tried)
    """A page has more bytes than one file may."""


def _made(request: AtlasRequest) -> dict[str, str] | None:
    """The files of a site; None if they are too large for one page."""
    if not request.kinds and not request.left_out:
        release = open_release(request.release, confidential=True)
        if sum(table.rows for part in parts_of(release).values() for table in shown_tables(part)) > _MOST_ROWS:
            return None
    files: dict[str, str] = {}
    size = 0

    def put(name: str, content: bytes) -> None:
        nonlocal size
        size += len(content)
        if size > ONE_FILE_BYTES and (request.kinds or not request.left_out):
            raise _TooLarge
        files[name] = content.decode()

    try:
        pages_of(request, put)
    except _TooLarge:
        return None
    return files


def _as_page(files: dict[str, str]) -> str:
    """One page of the files of a site, in which by their checksums its own scripts run alone."""
    data = "".join(text for name, text in files.items() if name.startswith("data/"))
    # What the calls of the data do is said before them, and the pages come last.
    scripts, style = (f"{_KEPT}{data}", files["atlas.js"]), files["atlas.css"]
    policy = (
        f"default-src 'none'; script-src {_sources(scripts)}; style-src {_sources([style])}; "
        "img-src blob: data:; base-uri 'none'; form-action 'none'"
    )
    page = files["index.html"]
    start, end = page.index("<meta http-equiv"), page.index("<title>")
    page = f'{page[:start]}{MARK}\n<meta http-equiv="Content-Security-Policy" content="{policy}">\n{page[end:]}'
    page = page.replace('<link rel="stylesheet" href="atlas.css">', f"<style>{style}</style>")
    written = "".join(f"<script>{text}</script>" for text in scripts)
    return page.replace('<script src="atlas.js"></script>', written)


def _sources(texts: Sequence[str]) -> str:
    return " ".join(f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in texts)


_KEPT: Final = (
    "window.atlasInline={pieces:{},maps:[]};"
    "atlasRelease=t=>{atlasInline.release=t};atlasAreas=t=>{atlasInline.areas=t};"
    "atlasPiece=(id,text)=>{atlasInline.pieces[id]=text};atlasMap=t=>{atlasInline.maps.push(t)};\n"
)
"""Keeps what the data of the page say until the page asks for it."""
