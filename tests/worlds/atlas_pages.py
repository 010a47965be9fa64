"""Pages of the atlas in Chromium."""

from typing import Any

import pytest
from chromium import at_rest


def opened(browser: Any, site: str, link: str, *, width: int = 1280, **context: Any) -> Any:  # noqa: ANN401
    """A page of a site, which fails the test if a script does."""
    options = {"viewport": {"width": width, "height": 800}, "locale": "en-US", **context}
    page = browser.new_context(**options).new_page()
    page.on("pageerror", lambda error: pytest.fail(str(error)))
    page.goto(f"{site}#{link}")
    page.wait_for_selector("h1")
    at_rest(page)
    return page
