"""Pages of the atlas in Chromium."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

CHROMIUM = next((found for name in ("chromium", "google-chrome") if (found := shutil.which(name))), "")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright, which drives the browser, is not installed"
    )
    if not CHROMIUM:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    with playwright.sync_playwright() as play:
        started = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


def opened(browser: Any, site: str, link: str, *, width: int = 1280, **context: Any) -> Any:  # noqa: ANN401
    """A page of a site, which fails the test if a script does."""
    options = {"viewport": {"width": width, "height": 800}, "locale": "en-US", **context}
    page = browser.new_context(**options).new_page()
    page.on("pageerror", lambda error: pytest.fail(str(error)))
    page.goto(f"{site}#{link}")
    page.wait_for_selector("h1")
    page.wait_for_timeout(250)
    return page
