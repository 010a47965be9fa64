"""The site of the documentation: `make docs` makes it of pages and notebooks where they stand, without a network.

Each version has a folder of its own (`build/site/VERSION`), so that a site may hold several. The first word below a
page's title is its kind, which is its place in the navigation. A page without a kind is in no list of pages, which ends
the build. So does a link that leads nowhere.
"""

import hashlib
import inspect
import json
import os
import re
from pathlib import Path
from typing import Final

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

import yupana
from yupana.cli.reference import GENERATED

ROOT: Final = Path(__file__).parent.parent
KINDS: Final = {
    "Tutorial": "Tutorials",
    "How-to": "How to",
    "Reference": "Reference",
    "Explanation": "Explanations",
}

PROJECT: Final = "The project"
"""Of pages beside the documentation: how it is worked on, tested and released."""

project = "Yupana"
release = yupana.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/README"
include_patterns = [
    "docs/*.md",
    "docs/notebooks/*.ipynb",
    "*.md",
    "benchmarks/README.md",
    "tests/README.md",
    "tools/*.md",
]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = f"Yupana {release}"
html_math_renderer = "mathml"
html_copy_source = False
html_static_path = ["notebooks/tables.css"]
html_css_files = ["tables.css"]
templates_path = ["."]
_SIDEBAR: Final = ("brand", "search", "scroll-start", "navigation", "scroll-end", "variant-selector")
html_sidebars = {"**": [*(f"sidebar/{part}.html" for part in _SIDEBAR), "versions.html"]}
html_show_copyright = False
autodoc_typehints = "none"  # the docstrings have them
suppress_warnings = ["misc.highlighting_failure", "myst.header"]

nb_execution_in_temp = True
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 300
os.environ["MATPLOTLIBRC"] = str(ROOT / "docs" / "notebooks" / "matplotlibrc")


def _computed_from() -> str:
    """A hash of what the results of notebooks follow from beside their cells: the package, the style, the data."""
    found = hashlib.sha256(os.environ.get("YUPANA_DATA", "").encode())
    for path in (Path(os.environ["MATPLOTLIBRC"]), *sorted((ROOT / "src").rglob("*.py"))):
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


nb_execution_cache_path = str(ROOT / "build" / "notebooks" / _computed_from())

_API: Final = """

## Every name in full

Made from the docstrings.

```{{eval-rst}}
{}
```
"""


_HEAD: Final = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
)
_LEADING: Final = '<meta http-equiv="refresh" content="0; url={0}"><title>Yupana</title><a href="{0}">Yupana</a>'
_LISTING: Final = "<title>Versions</title><h1>Versions of this documentation</h1><ul>{}</ul>"


def kind(page: Path) -> str:
    """The kind of a page, by the line below its title; empty where it has none."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        text = "".join(json.loads(text)["cells"][0]["source"])
    found = re.match(r"# .*\n\n\*([A-Z][a-z-]+)[. ]", text)
    if found and found[1] in KINDS:
        return KINDS[found[1]]
    return "" if ROOT / "docs" in page.parents else PROJECT


def pages() -> dict[str, str]:
    """The kind of every page, by its name without an ending."""
    paths = sorted(path for pattern in include_patterns for path in ROOT.glob(pattern))
    named = {path.relative_to(ROOT).with_suffix("").as_posix(): kind(path) for path in paths}
    return {name: found for name, found in named.items() if name != root_doc}


def _of_readers(page: str) -> tuple[bool, str]:
    """The tutorials of the four readers come first."""
    return not page.startswith("docs/tutorial-"), page


def _complete(_: Sphinx, name: str, source: list[str]) -> None:
    """Give the first page its navigation, and others what is made of the code."""
    if name == root_doc:
        placed = pages()
        for caption in (*KINDS.values(), PROJECT):
            here = sorted((page for page, found in placed.items() if found == caption), key=_of_readers)
            listed = "\n".join(f"/{page}" for page in here)
            source[0] += f"\n\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{listed}\n```\n"
    if made := GENERATED.get(name.removeprefix("docs/")):
        source[0] += f"\n\n{made()}"
    if name == "docs/python":
        source[0] += _API.format("\n\n".join(_documented(one) for one in sorted(yupana.__all__) if one[0] != "_"))


def _documented(name: str) -> str:
    found = getattr(yupana, name)
    if inspect.isclass(found):
        return f".. autoclass:: yupana.{name}\n   :members:"
    described = "function" if inspect.isfunction(found) else "module" if inspect.ismodule(found) else "data"
    return f".. auto{described}:: yupana.{name}"


def _mathematics(translator: nodes.NodeVisitor, node: nodes.Element) -> None:
    """Write a formula as MathML, which browsers draw by themselves."""
    display = "block" if isinstance(node, nodes.math_block) else "inline"
    translator.body.append(convert(node.astext(), display=display))
    raise nodes.SkipNode


def _versions(app: Sphinx, _: Exception | None) -> None:
    """Lead to the first page of this version, and list all versions that stand beside it."""
    site, first = Path(app.outdir).parent, f"{root_doc}.html"
    found = [path.parent.name for path in site.glob("*/index.html")] + [release]
    versions = sorted(set(found), key=lambda name: [int(part) for part in re.findall(r"\d+", name)], reverse=True)
    listed = "".join(f'<li><a href="{name}/{first}">Yupana {name}</a></li>' for name in versions)
    for page, start in ((Path(app.outdir) / "index.html", first), (site / "index.html", f"{versions[0]}/{first}")):
        page.write_text(_HEAD + _LEADING.format(start) + "\n", encoding="utf-8")
    (site / "versions.html").write_text(_HEAD + _LISTING.format(listed) + "\n", encoding="utf-8")


def _search(app: Sphinx, _: Exception | None) -> None:
    """Without scripts the page of the search says what to do instead."""
    page = Path(app.outdir) / "search.html"
    if page.exists():
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace(_NO_SCRIPTS, _INSTEAD), encoding="utf-8")


_NO_SCRIPTS: Final = "Please activate JavaScript to enable the search functionality."
_INSTEAD: Final = f'The search needs scripts. <a href="{root_doc}.html">All pages</a> are listed by what they are for.'


def setup(app: Sphinx) -> None:
    """Register what the pages need beside the extensions."""
    app.add_html_math_renderer("mathml", (_mathematics, None), (_mathematics, None))
    app.connect("source-read", _complete)
    app.connect("build-finished", _versions)
    app.connect("build-finished", _search)
