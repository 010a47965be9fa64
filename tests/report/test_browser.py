"""Certificates and estimates as their readers meet them: in Chromium, at three widths, and on paper."""

import re
from pathlib import Path
from typing import Any

import pytest
from chromium import WIDTHS, at_rest, faults_for_readers

import yupana

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("pages")
    yupana.synthesize(place / "census", households=100, states=["44"], seed=1)
    dhc = yupana.setup("phsafe", "s-dhc-2020-us", set={"state_filter": ["44"]})
    homes = dhc.run(place / "census", place / "homes", seed=1)
    people = yupana.run("topdown", "pl94-2020-us", place / "census", place / "people", seed=1)
    return {
        "one": homes.certificate().write(place / "one"),
        "other": people.certificate().write(place / "other"),
        "both": yupana.certificate(homes, people, household_cap=10).write(place / "both"),
        "estimates": homes.estimate(place / "estimates").folder / "index.html",
    }


@pytest.mark.thorough
def test_a_certificate_prints_on_one_page(pages: dict[str, Path], browser: Any) -> None:  # noqa: ANN401
    for name in ("one", "other", "both"):
        page = browser.new_page()
        page.goto(pages[name].as_uri())
        assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4", prefer_css_page_size=True))) == 1, name
        page.close()


@pytest.mark.thorough
def test_pages_are_for_everybody_and_none_is_wider_than_its_window(pages: dict[str, Path], browser: Any) -> None:  # noqa: ANN401
    for name, path in pages.items():
        page = browser.new_page(bypass_csp=True, reduced_motion="reduce")
        page.goto(path.as_uri())
        for width, scheme in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            page.emulate_media(color_scheme=scheme)
            at_rest(page)
            # The certificates of one release are alike.
            if (name, width) not in {("one", 768), ("one", 390), ("other", 1280), ("other", 390)}:
                assert faults_for_readers(page) == [], (name, width)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
        page.close()
