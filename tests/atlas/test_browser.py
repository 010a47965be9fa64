"""The atlas as its reader meets it: opened from disk in Chromium, its numbers against those of the library."""

import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from atlas_pages import opened
from chromium import WIDTHS, at_rest, faults_for_readers

import yupana
from yupana.atlas import one_file
from yupana.atlas import site as pages
from yupana.errors import InputError, OutputError

WEB = Path(__file__).parents[2] / "web"
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


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("atlas")
    (folder / "data").mkdir()
    rows = [f"{1 + i % 4},{('06', '44')[i % 3 == 0]}" for i in range(900)]
    (folder / "data" / "units.csv").write_text("\n".join(["TEN,TABBLKST", *rows]) + "\n")
    (folder / "data" / "SYNTHETIC").touch()
    yupana.run("tables", DESCRIPTION, folder / "data", folder / "release", seed=7, format="parquet")
    return folder / "release"


@pytest.fixture(scope="module")
def site(release: Path) -> str:
    return Path(yupana.atlas(release, release.parent / "site")).as_uri()


@pytest.fixture(scope="module")
def pure(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return yupana.count(
        pl.DataFrame({"sex": ["f", "m", "f"]}), "sex", tmp_path_factory.mktemp("pure") / "pure",
        domains={"sex": ["f", "m"]}, epsilon=2, synthetic=True,
    ).folder  # fmt: skip


@pytest.mark.thorough
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
def test_a_release_in_pure_differential_privacy_says_its_loss(pure: Path, tmp_path: Path) -> None:
    yupana.atlas(pure, tmp_path / "site")
    told = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "site").rglob("*.js"))
    assert '"symbol":"epsilon","loss":2.0' in told.replace(": ", ":").replace(", ", ",")


@pytest.mark.thorough
def test_numbers_and_intervals_are_those_of_the_library(release: Path, site: str, browser: Any) -> None:  # noqa: ANN401
    page = browser.new_page(viewport={"width": 1280, "height": 800}, locale="en-US")
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda told: errors.append(told.text) if told.type == "error" else None)
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
        at_rest(page)
        told = page.locator(".answer p").inner_text().replace("%", "").replace(",", "")
        estimate, ends = told.split(None, 1)
        low, high = (float(end) for end in ends.split("–"))
        (due,) = pl.DataFrame(yupana.interval(release, query)).rows(named=True)
        wide = 0.51 * 10.0**-digits
        found = [float(due[name]) for name in ("estimate", "lower", "upper")]
        assert [float(estimate), low, high] == pytest.approx(found, abs=wide)
    assert not errors
    page.close()


@pytest.fixture(scope="module")
def other(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of the same records by another draw, in the other form of files."""
    folder = tmp_path_factory.mktemp("other")
    yupana.run("tables", DESCRIPTION, release.parent / "data", folder / "later", seed=8)
    return folder / "later"


@pytest.mark.thorough
def test_two_releases_have_the_differences_that_their_variances_give(
    release: Path,
    other: Path,
    pure: Path,
    tmp_path: Path,
    browser: Any,  # noqa: ANN401
) -> None:
    site = yupana.atlas(release, tmp_path / "site", other=other).as_uri()
    page = opened(browser, site, "table=homes&area=state:06&other=1")
    shown = page.locator("table.reading tbody tr").all_inner_texts()
    one, two = (
        pl.DataFrame(yupana.open_release(folder)["homes"]).filter(pl.col("REGION_ID") == "06")
        for folder in (release, other)
    )
    assert len(shown) == 4
    for at, text in enumerate(shown):
        difference = two["COUNT"][at] - one["COUNT"][at]
        half = 1.645 * (one["VARIANCE"][at] + two["VARIANCE"][at]) ** 0.5
        assert text.split("\t")[-2 - 1] == f"{difference:,} ± {half:,.0f}"
    page = opened(browser, site, "table=homes&area=state:06&view=areas&other=1")
    assert page.locator("table.reading thead").inner_text().startswith("Area\tDifference")
    # A release beside itself has no difference that an interval could be about.
    (tmp_path / "copy").symlink_to(release)
    site = yupana.atlas(release, tmp_path / "same", other=tmp_path / "copy").as_uri()
    page = opened(browser, site, "table=homes&area=state:06&other=1")
    assert "hold the same noise" in page.locator("main").inner_text()
    with pytest.raises(OutputError, match="no table in common"):
        yupana.atlas(release, tmp_path / "none", other=pure)


@pytest.mark.thorough
def test_every_page_passes_axe_and_none_is_wider_than_its_window(
    release: Path,
    other: Path,
    tmp_path: Path,
    browser: Any,  # noqa: ANN401
) -> None:
    shapes = {"type": "FeatureCollection", "features": [square("06", 0), square("44", 2)]}
    (tmp_path / "shapes.json").write_text(json.dumps(shapes))
    site = yupana.atlas(release, tmp_path / "site", other=other, boundaries=tmp_path / "shapes.json").as_uri()
    state = "table=homes&area=state:06"
    for link in (
        state, f"{state}&beside=state:44&lang=es&row=homes|state:06||1", f"{state}&other=1", f"{state}&view=areas",
        f"{state}&view=areas&share=2", "view=about&lang=es", "table=nothing&area=zz",
    ):  # fmt: skip
        page = opened(browser, site, link, bypass_csp=True)
        for width, scheme in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            page.emulate_media(color_scheme=scheme)
            at_rest(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (link, width)
            if (scheme == "dark") == ("lang=es" in link):
                assert faults_for_readers(page) == [], (link, width)
        page.context.close()


@pytest.mark.thorough
def test_what_is_seen_is_saved_in_four_forms(release: Path, site: str, tmp_path: Path, browser: Any) -> None:  # noqa: ANN401
    page = opened(browser, site, "table=homes&area=state:06")
    counts = pl.DataFrame(yupana.open_release(release)["homes"]).filter(pl.col("REGION_ID") == "06")["COUNT"].to_list()
    saved: dict[str, Path] = {}
    for form in ("CSV", "Parquet", "SVG", "PNG"):
        with page.expect_download() as told:
            page.get_by_role("button", name=form, exact=True).click()
        saved[form] = tmp_path / told.value.suggested_filename
        told.value.save_as(saved[form])
    assert pl.read_parquet(saved["Parquet"])["Count"].to_list() == counts
    read = pl.read_csv(saved["CSV"])
    assert read["Count"].to_list() == counts
    assert any("<b>rented</b>" in row for row in read.rows())
    assert "&lt;b&gt;rented" in saved["SVG"].read_text()
    assert saved["PNG"].read_bytes().startswith(b"\x89PNG")


@pytest.mark.thorough
def test_a_notebook_has_the_atlas_within_one_page(
    release: Path,
    tmp_path: Path,
    browser: Any,  # noqa: ANN401
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = yupana.open_release(release).atlas()._repr_html_()
    (tmp_path / "notebook.html").write_text(f"<!doctype html><h1>Cell</h1>{shown}")
    page = opened(browser, (tmp_path / "notebook.html").as_uri(), "")
    frame = page.frame_locator("iframe")
    frame.locator("table.reading tbody tr").first.wait_for()
    frame.get_by_role("checkbox").first.check()
    frame.locator(".answer strong").wait_for()
    monkeypatch.setattr(one_file, "ONE_FILE_BYTES", 1000)
    assert "yupana atlas" in yupana.atlas(release)._repr_html_()


@pytest.mark.thorough
def test_labels_of_any_kind_do_no_harm(release: Path, tmp_path: Path, browser: Any) -> None:  # noqa: ANN401
    odd = {"1": "W" * 5000, "2": "</script><img src=x onerror=alert(1)>", "3": "=1+1", "4": "منزل ٤"}
    described = json.loads(json.dumps(DESCRIPTION))
    described["files"]["units"]["columns"]["TEN"]["codes"] = odd
    described["tables"]["homes"]["title"] = "T" * 300 + " <script>alert(1)</script>"
    yupana.run("tables", described, release.parent / "data", tmp_path / "odd", seed=1)
    site = yupana.atlas(tmp_path / "odd", tmp_path / "site").as_uri()
    page = opened(browser, site, "table=homes&row=homes|nation:US||1")
    assert page.locator("table.reading tbody tr").count() == 4
    assert page.locator("img, main script").count() == 0
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        at_rest(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    (tmp_path / "site" / "data" / "t0-0.js").unlink()
    page = opened(browser, site, "table=homes")
    assert "data/t0-0.js is missing" in page.locator("[role=alert]").inner_text()


@pytest.mark.thorough
def test_the_keyboard_alone_reads_a_release(site: str, browser: Any) -> None:  # noqa: ANN401
    page = opened(browser, site, "")
    for key in ("Tab", "Tab"):  # past the link that skips
        page.keyboard.press(key)
    page.keyboard.type("califor")
    page.keyboard.press("Enter")
    at_rest(page)
    assert page.locator("#area").input_value() == "California"
    page.locator("#area").focus()
    page.keyboard.type("قطر")
    page.keyboard.press("Enter")
    at_rest(page)
    assert page.locator("#area").input_value() == "قطر"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "beside"


@pytest.mark.thorough
def test_a_static_site_has_so_many_rows_or_chosen_kinds(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "MOST_ROWS", 12)
    with pytest.raises(OutputError, match=r"choose kinds of areas with --kinds, or serve it"):
        yupana.atlas(release, tmp_path / "whole")
    yupana.atlas(release, tmp_path / "nation", kinds=["nation"])
    assert '"06"' not in (tmp_path / "nation" / "data" / "areas.js").read_text()
    with pytest.raises(OutputError, match="no table of county that an atlas can show; its tables are of nation, state"):
        yupana.atlas(release, tmp_path / "none", kinds=["county"])


def test_the_built_pages_are_those_of_the_sources() -> None:
    found = hashlib.sha256()
    for path in sorted(WEB.glob("src/*")):
        if path.suffix in {".ts", ".tsx", ".css"}:
            found.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    told = (pages.STATIC / "sources.sha256").read_text().strip()
    assert told == found.hexdigest(), "run npm run build in web/"


@pytest.mark.slow
def test_the_parts_of_the_pages_hold_by_themselves() -> None:
    if not (WEB / "node_modules" / ".bin" / "esbuild").exists() or not shutil.which("npm"):
        pytest.skip("node and the packages of web/ are not installed")
    done = subprocess.run(["npm", "test", "--silent"], cwd=WEB, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


def square(code: str, at: int) -> dict[str, object]:
    """A feature of GeoJSON."""
    ring = [[at, 0], [at + 1, 0], [at + 1, 1], [at, 1], [at, 0]]
    properties = {"GEOID": code, "NAME": f"Area {code}"}
    return {"type": "Feature", "properties": properties, "geometry": {"type": "Polygon", "coordinates": [ring]}}


@pytest.mark.thorough
def test_a_link_that_means_nothing_shows_the_first_table(site: str, browser: Any) -> None:  # noqa: ANN401
    page = browser.new_page(viewport={"width": 390, "height": 800})
    for odd in ("table=zz&area=state:99&group=q&cell=99", "row=|||&row=t0|state:06||77", "view=%00&cell=-1", "%%%"):
        page.goto("about:blank")
        page.goto(f"{site}#{odd}")
        page.wait_for_selector("table.reading tbody tr")
        assert "Homes by tenure" in page.locator("h1").inner_text()
        assert page.locator(".doubt").count() == (odd.startswith(("table", "row")))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()


@pytest.mark.thorough
def test_a_map_shades_areas_and_leads_to_them(release: Path, tmp_path: Path, browser: Any) -> None:  # noqa: ANN401
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
