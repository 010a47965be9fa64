"""Releases, boundaries and links that are not as the usual ones: a sentence and the tables."""

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from area_releases import make_release
from atlas_pages import opened
from boundary_files import write_geojson
from chromium import at_rest

import yupana
from yupana.cli.main import main
from yupana.errors import InputError, OutputError
from yupana.products.safetab.demonstration_parameters import write_parameters

LONG = "W" * 5000
MARKUP = "</script><img src=x onerror=alert(1)>"
ARABIC = "محافظة قطر"
DESCRIPTION: dict[str, Any] = {
    "name": "homes",
    "unit": "units",
    "files": {"units": {"columns": {"TEN": {"codes": ["1", "2", "3"]}, "S": {"codes": ["06", "44", "72"]}}}},
    "areas": {"nation": {"code": "US"},
              "state": {"column": "units.S", "labels": {"06": LONG, "44": ARABIC, "72": MARKUP}}},
    "groups": {"one": {"label": MARKUP, "where": {"units.TEN": "1"}},
               "two": {"label": ARABIC + LONG, "where": {"units.TEN": "2"}}},
    "levels": {"nation": {"areas": "nation"}, "state": {"areas": "state", "groups": ["one", "two"]}},
    "tables": {"homes": {"counts": "units", "by": ["units.TEN"], "budget": {"nation": "1/10", "state": "1/20"}}},
}  # fmt: skip


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release with names of every kind that may not be published."""
    folder = tmp_path_factory.mktemp("odd")
    (folder / "data").mkdir()
    rows = [f"{1 + i % 3},{('06', '44', '72')[i % 7 % 3]}" for i in range(900)]
    (folder / "data" / "units.csv").write_text("\n".join(["TEN,S", *rows]) + "\n")
    (folder / "data" / "SYNTHETIC").touch()
    yupana.run("tables", DESCRIPTION, folder / "data", folder / "release", seed=7)
    return folder / "release"


@pytest.fixture(scope="module")
def safetab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("safetab")
    write_parameters(folder / "parameters")
    assert main(["synth", str(folder / "census"), "--households", "300", "--states", "44", "--seed", "2"]) == 0
    run = ["safetab-p", "run", str(folder / "parameters"), str(folder / "census"), str(folder / "release")]
    assert main([*run, "--seed", "1"]) == 0
    return folder / "release"


def chosen(browser: Any, site: Path, rows: list[str], operation: str) -> str:  # noqa: ANN401
    page = opened(browser, site.as_uri(), "".join(f"&row={row}" for row in rows))
    page.get_by_role("button", name=operation, exact=True).click()
    at_rest(page)
    found = str(page.locator(".answer p").inner_text())
    page.context.close()
    return found


@pytest.mark.thorough
def test_suppressed_numbers_are_left_out_and_have_no_interval(
    safetab: Path,
    tmp_path: Path,
    browser: Any,  # noqa: ANN401
) -> None:
    rule = '[[rule]]\nrule = "negative"\ntables = ["T01001"]\nreason = "N"\n'
    (tmp_path / "policy.toml").write_text(f'parameters = "{safetab.parent / "parameters"}"\n{rule}')
    suppressed = tmp_path / "suppressed"
    assert main(["postprocess", "suppress", str(safetab), str(tmp_path / "policy.toml"), str(suppressed)]) == 0
    site = yupana.atlas(suppressed, tmp_path / "site")
    told = pl.DataFrame(yupana.open_release(suppressed)["T01001"]).filter(pl.col("REGION_TYPE") == "STATE")
    (hidden, *_), shown = (
        told.filter(pl.col("REASON").fill_null("") == reason)["ITERATION_CODE"].to_list() for reason in ("N", "")
    )
    page = opened(browser, site.as_uri(), f"table=T01001&area=STATE:44&group={hidden}")
    assert "left out" in page.locator("table.reading tbody").inner_text()
    assert page.locator("h1").inner_text() == "Total population T01001"
    assert page.locator("#area").input_value() == "Rhode Island"
    page.context.close()
    rows = [f"T01001|STATE:44|{group}|" for group in (hidden, *shown[:2])]
    assert "no interval" in chosen(browser, site, rows[:2], "Sum")
    found = chosen(browser, site, rows[1:], "Sum").replace(",", "").replace("– ", "").split()
    of = [f"sum(T01001[REGION_ID=44, REGION_TYPE=STATE, ITERATION_CODE={group}])" for group in shown[:2]]
    (due,) = pl.DataFrame(yupana.interval(suppressed, " + ".join(of))).rows(named=True)
    assert [float(one) for one in found] == pytest.approx([due["estimate"], due["lower"], due["upper"]], abs=0.51)


@pytest.mark.thorough
def test_names_of_any_kind_and_the_mark_of_what_may_not_be_published(
    odd: Path,
    tmp_path: Path,
    browser: Any,  # noqa: ANN401
) -> None:
    write_geojson(tmp_path / "states.json", {"06": (0, 0), "44": (2, 0), "72": (4, 0)})
    site = yupana.atlas(odd, tmp_path / "site", boundaries=tmp_path / "states.json").as_uri()
    for link in (
        "table=homes&area=state:06&group=two",
        "table=homes&area=state:72&group=one&beside=state:06&beside=state:44&row=homes|state:06|two|1",
        "table=homes&area=state:44&group=two&view=areas",
        "view=about",
    ):
        page = opened(browser, site, link)
        assert page.locator(".banner").inner_text().startswith("NOT FOR RELEASE"), link
        assert page.locator("img, main script").count() == 0
        assert page.locator(".unseen").count() == 0 or page.locator("h1").is_visible()
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 800})
            at_rest(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (link, width)
        page.context.close()
    page = opened(browser, site, "table=homes&area=state:44&group=two")
    assert page.locator("#area").input_value() == ARABIC
    page.locator("#search").fill("قطر")
    assert ARABIC in page.locator("#search-hits").inner_text()


@pytest.mark.thorough
def test_links_of_any_kind_show_a_table(odd: Path, tmp_path: Path, browser: Any) -> None:  # noqa: ANN401
    site = yupana.atlas(odd, tmp_path / "site").as_uri()
    whole = "table=homes&area=state%3A06&group=one&view=areas&cell=2&share=1&lang=es&beside=state%3A44"
    whole += "&row=homes%7Cstate%3A06%7Cone%7C1"
    links = [whole[:at] for at in range(3, len(whole), 27)]
    links += ["%E0%A4%A", "table=%F0%9F", "row=" + "|" * 2000, "&".join(["row=homes|state:06|one|1"] * 300), "lang=xx"]
    links += [
        "across=nothing&share=%00&cell=-1&other=1",
        "table=t0&row=t0|state:06|one|0",
        "beside=&beside=&beside=",
        "=&=&;",
    ]
    page = opened(browser, site, "")
    for link in links:
        page.goto("about:blank")
        page.goto(f"{site}#{link}")
        page.wait_for_selector("table.reading tbody tr")
        assert page.locator("h1").inner_text(), link
    page.context.close()


@pytest.mark.thorough
def test_boundaries_of_another_vintage_or_projection_are_told(odd: Path, tmp_path: Path, browser: Any) -> None:  # noqa: ANN401
    path = tmp_path / "states.json"
    write_geojson(path, {"06": (0, 0), "44": (2, 0), "97": (4, 0), "98": (6, 0), "99": (8, 0)})
    page = opened(
        browser, yupana.atlas(odd, tmp_path / "site", boundaries=path).as_uri(), "area=state:06&view=areas&group=one"
    )
    told = page.locator(".map").inner_text()
    assert "2 of 3 areas have a boundary in the file" in told
    assert "3 boundaries are of no area of the release" in told
    assert page.locator("table.reading tbody tr").count() == 3
    write_geojson(path, {"97": (0, 0)})
    with pytest.raises(InputError, match=r"such as 97, the release .*06 of state"):
        yupana.atlas(odd, tmp_path / "none", boundaries=path)
    write_geojson(path, {"06": (1_500_000.0, 400_000.0)})
    with pytest.raises(InputError, match="no degrees east and north; give boundaries that were not projected"):
        yupana.atlas(odd, tmp_path / "none", boundaries=path)
    assert not (tmp_path / "none").exists()


def test_what_check_refuses_is_refused_with_a_sentence(
    odd: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def spoiled(name: str) -> Path:
        return Path(shutil.copytree(odd, tmp_path / name))

    def manifest(name: str, **changes: object) -> Path:
        folder = spoiled(name)
        path = folder / "manifest.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))
        return folder

    changed, lacking, torn = spoiled("changed"), spoiled("lacking"), spoiled("torn")
    (changed / "homes.csv").write_text((changed / "homes.csv").read_text().replace("|", "|1", 1))
    (lacking / "homes.csv").unlink()
    (torn / "manifest.json").write_text((odd / "manifest.json").read_text()[:200])
    (tmp_path / "empty").mkdir()
    plan = copy.deepcopy(json.loads((odd / "manifest.json").read_text())["plan"])
    plan["measurements"][0]["sigma2"] = "1"
    folders = [
        changed, lacking, torn, tmp_path / "empty", tmp_path / "nowhere", manifest("plan", plan=plan),
        manifest("status", status="CONFIDENTIAL"),
    ]  # fmt: skip
    for folder in folders:
        out = tmp_path / "site"
        assert main(["atlas", str(folder), "--to", str(out)]) == 2, folder
        told = capsys.readouterr().err
        assert str(folder) in told, told
        assert "fault" not in told, told
        assert not out.exists()
        with pytest.raises((OutputError, InputError)):
            yupana.atlas(folder, out)


@pytest.mark.thorough
def test_counts_without_intervals_and_names_say_so(tmp_path: Path, browser: Any) -> None:  # noqa: ANN401
    make_release(tmp_path, (3, 2))
    site = yupana.atlas(tmp_path / "out", tmp_path / "site")
    page = opened(browser, site.as_uri(), "table=T1&area=tract:01001000002")
    assert page.locator("table.reading tbody tr").count() == 6
    assert "Census tract 01001000002" in page.locator("#area").input_value()
    page.context.close()
    told = chosen(browser, site, ["T1|county:01001||T0010001"], "Sum")
    assert "No interval: the release has none. yupana topdown intervals" in told
    told = chosen(browser, site, ["T1|county:01001||T0010001", "T1|county:02001||T0010001"], "Difference")
    assert "does not tell how errors of its counts depend on each other" in told


@pytest.mark.thorough
def test_kinds_of_counts_by_all_attributes_are_told(tmp_path: Path) -> None:
    make_release(tmp_path, (3, 2))
    with pytest.raises(OutputError, match=r"holds no table of planet .*; its tables are of .*county.*tract"):
        yupana.atlas(tmp_path / "out", kinds=["planet"])
