"""The pages for everybody: at three widths, at twice the size, in the reader's own colours, with numbers by locale."""

import json
from pathlib import Path
from typing import Any

import pytest
from atlas_pages import opened
from chromium import at_rest

import yupana

DESCRIPTION: dict[str, Any] = {
    "name": "people",
    "unit": "people",
    "files": {"people": {"columns": {"S": {"codes": ["1", "2"]}, "W": {"codes": {"1": "works", "2": "looks for work"}},
                                     "D": {"codes": {"01": "North", "02": "South"}}}}},
    "areas": {"nation": {"code": "XX"}, "district": {"column": "people.D"}},
    "levels": {"nation": {"areas": "nation"}, "district": {"areas": "district"}},
    "tables": {"work": {"title": "People by sex and by whether they have work, in the week before the census",
                        "counts": "people", "by": ["people.S", "people.W"],
                        "budget": {"nation": "1/10", "district": "1/10"}}},
}  # fmt: skip
BOXES = """() => ['h1', '.axis', '.reading tbody tr'].map((one) => {
  const found = document.querySelector(one).getBoundingClientRect();
  return [found.top >= 0, Math.round(found.bottom), Math.round(found.right)];
})"""
NAMELESS = """() => [...document.querySelectorAll('a, button, input, select, svg[role=img], table')].filter((one) =>
  !(one.textContent.trim() || one.ariaLabel || one.labels?.length || one.title || one.tagName === 'TABLE')
).map((one) => one.outerHTML)"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("people")
    (folder / "data").mkdir()
    rows = [f"{1 + i % 2},{1 + (i % 5 == 0)},{('01', '02')[i % 3 == 0]}" for i in range(40_000)]
    (folder / "data" / "people.csv").write_text("\n".join(["S,W,D", *rows]) + "\n")
    (folder / "data" / "SYNTHETIC").touch()
    yupana.run("tables", DESCRIPTION, folder / "data", folder / "release", seed=7)
    shapes = folder / "shapes.json"
    squares = [[[x, 0], [x + 1, 0], [x + 1, 1], [x, 1], [x, 0]] for x in (0, 2)]
    features = [
        {"type": "Feature", "properties": {"GEOID": code}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
        for code, ring in zip(("01", "02"), squares, strict=True)
    ]
    shapes.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return Path(yupana.atlas(folder / "release", folder / "site", boundaries=shapes)).as_uri()


LINKS = (
    "table=work",
    "table=work&across=-&beside=district:01",
    "table=work&area=district:01&row=work|district:01||1~1",
)


@pytest.mark.thorough
def test_title_axis_and_first_row_are_in_the_first_screen(site: str, browser: Any) -> None:  # noqa: ANN401
    for link in LINKS:
        page = opened(browser, site, link)
        for width, height in ((1280, 800), (768, 1024), (390, 844)):
            page.set_viewport_size({"width": width, "height": height})
            at_rest(page)
            for is_below_top, bottom, right in page.evaluate(BOXES):
                assert is_below_top, (link, width)
                assert bottom <= height, (link, width)
                assert right <= width, (link, width)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.evaluate(NAMELESS) == []
        page.context.close()


@pytest.mark.thorough
def test_twice_the_size_loses_nothing(site: str, browser: Any) -> None:  # noqa: ANN401
    for link in (LINKS[2], "table=work&area=district:01&view=areas", "view=about"):
        page = opened(browser, site, link, viewport={"width": 640, "height": 400}, device_scale_factor=2)
        assert page.evaluate("document.documentElement.scrollWidth") <= 640, link
        assert page.locator("#search").is_visible()
        # What has the focus is not below what stays in view.
        for one in page.locator("main button, main input, main select").all()[:12]:
            one.focus()
            place = one.bounding_box()
            assert place is not None
            assert -1 <= place["y"] <= 400, link
        page.context.close()


@pytest.mark.thorough
def test_colours_and_motion_are_those_that_the_reader_asks_for(site: str, browser: Any) -> None:  # noqa: ANN401
    page = opened(browser, site, LINKS[2], forced_colors="active", reduced_motion="reduce")
    colours = page.evaluate("""() => [...document.querySelectorAll('.bar .point, .bar .interval')].slice(0, 2)
        .map((one) => getComputedStyle(one).fill).concat(getComputedStyle(document.body).backgroundColor)""")
    assert len(set(colours)) == 3, colours
    assert page.evaluate("getComputedStyle(document.querySelector('.chosen')).outlineStyle") == "solid"
    moving = (
        "[...document.querySelectorAll('*')].filter((one) => parseFloat(getComputedStyle(one).transitionDuration) > 0)"
    )
    assert page.evaluate(f"{moving}.length") == 0
    page.context.close()
    page = opened(browser, site, "table=work&area=district:01&view=areas", forced_colors="active")
    shades = page.evaluate("[...document.querySelectorAll('.map path')].map((one) => getComputedStyle(one).fill)")
    legend = page.evaluate(
        "[...document.querySelectorAll('.legend i')].map((one) => getComputedStyle(one).backgroundColor)"
    )
    assert set(shades) <= set(legend)
    page.context.close()


@pytest.mark.thorough
def test_numbers_are_written_as_the_locale_has_them(site: str, browser: Any) -> None:  # noqa: ANN401
    for locale, grouped in (("en-US", "10,"), ("es-ES", "10."), ("es-MX", "10,"), ("de-DE", "10,")):
        page = opened(browser, site, "table=work&across=-", locale=locale)
        shown = page.locator("table.reading tbody tr").first.inner_text()
        assert any(part.startswith((grouped, "15", "16")) for part in shown.split("\t")), (locale, shown)
        assert page.evaluate("document.documentElement.lang") == locale[:2].replace("de", "en")
        page.context.close()
