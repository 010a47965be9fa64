"""The atlas as its reader meets it: opened from disk in Chromium, its numbers against those of the library."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import yupana
from yupana.errors import InputError, OutputError

playwright = pytest.importorskip("playwright.sync_api", reason="playwright, which drives the browser, is not installed")
CHROMIUM = next((found for name in ("chromium", "google-chrome") if (found := shutil.which(name))), "")
DESCRIPTION = {
    "name": "homes",
    "unit": "units",
    "files": {"units": {"columns": {"TEN": {"codes": {"1": "owned", "2": "<b>rented</b>", "3": "free", "4": "none"}},
                                    "TABBLKST": {"codes": ["06", "44"]}}}},
    "areas": {
        "nation": {"code": "US"},
        "state": {"column": "units.TABBLKST", "labels": {"06": "California", "44": "قطر"}},
    },
    "levels": {"nation": {"areas": "nation"}, "state": {"areas": "state"}},
    "tables": {"homes": {"title": "Homes by tenure", "counts": "units", "by": ["units.TEN"], "margins": {"total": []},
                         "budget": {"nation": "1/10", "state": "1/20"}}},
}  # fmt: skip


@pytest.fixture(scope="module", params=["csv", "parquet"])
def release(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("atlas")
    (folder / "data").mkdir()
    rows = [f"{1 + i % 4},{('06', '44')[i % 3 == 0]}" for i in range(900)]
    (folder / "data" / "units.csv").write_text("\n".join(["TEN,TABBLKST", *rows]) + "\n")
    (folder / "data" / "SYNTHETIC").touch()
    yupana.run("tables", DESCRIPTION, folder / "data", folder / "release", seed=7, format=request.param)
    return folder / "release"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if not CHROMIUM:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    with playwright.sync_playwright() as play:
        started = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


def test_a_site_is_whole_and_refuses_what_it_may_not_show(release: Path, tmp_path: Path) -> None:
    page = yupana.atlas(release, tmp_path / "site")
    assert page == tmp_path / "site" / "index.html"
    assert not yupana.check(tmp_path / "site").wrong
    (tmp_path / "site" / "atlas.js").write_text("")
    assert yupana.check(tmp_path / "site").wrong
    with pytest.raises(OutputError, match="not empty"):
        yupana.atlas(release, tmp_path / "site")
    with pytest.raises(OutputError):
        yupana.atlas(tmp_path / "site", tmp_path / "other")


@pytest.mark.slow
def test_numbers_and_intervals_are_those_of_the_library(release: Path, tmp_path: Path, browser: Any) -> None:  # noqa: ANN401
    page = browser.new_page(viewport={"width": 1280, "height": 800}, locale="en-US")
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda told: errors.append(told.text) if told.type == "error" else None)
    site = yupana.atlas(release, tmp_path / "site").as_uri()
    opened = yupana.open_release(release)
    table = {name: [str(one) for one in of] for name, of in opened.columns("homes").items()}
    labels = {"1": "owned", "2": "<b>rented</b>", "3": "free", "4": "none"}
    for area in ("nation:US", "state:06", "state:44"):
        kind, code = area.split(":")
        page.goto("about:blank")
        page.goto(f"{site}#table=t0&area={area}")
        page.wait_for_selector("table.reading tbody tr:nth-child(4)")
        shown = page.locator("table.reading tbody tr").all_inner_texts()
        rows = [
            (labels[cell], count, margin)
            for of_kind, of, cell, count, margin in zip(
                table["REGION_TYPE"], table["REGION_ID"], table["TEN"], table["COUNT"], table["MOE"], strict=True
            )
            if (of_kind, of) == (kind, code)
        ]
        assert len(rows) == len(shown) == 4
        for (label, count, margin), text in zip(rows, shown, strict=True):
            assert label in text
            assert text.split("\t")[-3:-1] == [f"{int(count):,}", f"± {int(margin):,}"]
    cells = ["homes[REGION_ID=06, TEN=1]", "homes[REGION_ID=06, TEN=2]", "total[REGION_ID=06]"]
    rows_of = ["t0|state:06||0", "t0|state:06||1", "t1|state:06||0"]
    asked = [
        ("Sum", [0, 1], f"{cells[0]} + {cells[1]}", 0),
        ("Difference", [0, 1], f"{cells[0]} - {cells[1]}", 0),
        ("Ratio", [0, 1], f"{cells[0]} / {cells[1]}", 4),
        ("Share", [0, 2], f"{cells[0]} % {cells[2]}", 2),
    ]
    for operation, places, query, digits in asked:
        rows = "".join(f"&row={rows_of[place]}" for place in places)
        page.goto("about:blank")
        page.goto(f"{site}#table=t0{rows}")
        page.get_by_role("button", name=operation, exact=True).click()
        page.wait_for_selector(".answer strong")
        page.wait_for_timeout(150)
        told = page.locator(".answer p").inner_text().replace("%", "").replace(",", "")
        estimate, ends = told.split(None, 1)
        low, high = (float(end) for end in ends.split("–"))
        (due,) = pl.DataFrame(yupana.interval(release, query)).rows(named=True)
        wide = 0.51 * 10.0**-digits
        found = [float(due[name]) for name in ("estimate", "lower", "upper")]
        assert [float(estimate), low, high] == pytest.approx(found, abs=wide)
    assert not errors
    page.close()


@pytest.mark.slow
def test_a_link_that_means_nothing_shows_the_first_table(release: Path, tmp_path: Path, browser: Any) -> None:  # noqa: ANN401
    page = browser.new_page(viewport={"width": 390, "height": 800})
    site = yupana.atlas(release, tmp_path / "site").as_uri()
    for odd in ("table=zz&area=state:99&group=q&cell=99", "row=|||&row=t0|state:06||77", "view=%00&cell=-1", "%%%"):
        page.goto("about:blank")
        page.goto(f"{site}#{odd}")
        page.wait_for_selector("table.reading tbody tr")
        assert "Homes by tenure" in page.locator("h1").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()


@pytest.mark.slow
def test_a_map_shades_areas_and_leads_to_them(release: Path, tmp_path: Path, browser: Any) -> None:  # noqa: ANN401
    def square(code: str, at: int) -> dict[str, object]:
        ring = [[at, 0], [at + 1, 0], [at + 1, 1], [at, 1], [at, 0]]
        properties = {"GEOID": code, "NAME": f"Area {code}"}
        return {"type": "Feature", "properties": properties, "geometry": {"type": "Polygon", "coordinates": [ring]}}

    shapes = {"type": "FeatureCollection", "features": [square("06", 0), square("44", 2), square("99", 4)]}
    (tmp_path / "shapes.json").write_text(json.dumps(shapes))
    site = yupana.atlas(release, tmp_path / "site", boundaries=tmp_path / "shapes.json").as_uri()
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(f"{site}#table=t0&area=state:06&view=areas")
    page.wait_for_selector(".map path")
    assert page.locator(".map path").count() == 2
    page.locator(".map path").first.click()
    page.wait_for_selector("table.reading tbody tr:nth-child(4)")
    assert "area=state" in page.url
    shapes["features"] = [square("77", 0)]
    (tmp_path / "shapes.json").write_text(json.dumps(shapes))
    with pytest.raises(InputError, match="no boundary of an area"):
        yupana.atlas(release, tmp_path / "other", boundaries=tmp_path / "shapes.json")
    page.close()
