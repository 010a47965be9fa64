"""A browser for the tests of pages, and the judge of what everybody can read in them."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="playwright, which drives the browser, is not installed")
CHROMIUM = next((found for name in ("chromium", "google-chrome") if (found := shutil.which(name))), "")
WIDTHS = ((1280, "light"), (768, "dark"), (390, "light"))
_AXE = Path(str(files("axe_playwright_python"))) / "axe.min.js"


@contextmanager
def chromium() -> Iterator[Any]:
    """A running Chromium; without one the test is skipped."""
    if not CHROMIUM:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    with playwright.sync_playwright() as play:
        started = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


def at_rest(page: Any) -> None:  # noqa: ANN401
    """Wait for the next frames of a page, its transitions, and what it reads and is told, on a machine of any speed."""
    page.evaluate(
        "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"
    )
    page.evaluate(
        "() => Promise.allSettled("
        "document.getAnimations().filter(one => one instanceof CSSTransition).map(one => one.finished))"
    )
    page.wait_for_selector("body:not([data-busy]):not(:has([aria-busy=true]))")


def faults_for_readers(page: Any) -> list[tuple[str, str]]:  # noqa: ANN401
    """The rules of WCAG 2.2 AA and of good practice that an open page breaks, by axe, each with the first place.

    The context of the page must bypass the CSP.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(_AXE.read_text())
    found = page.evaluate(
        "axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa', 'best-practice']})"
    )
    return [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]]
