"""The page of a TopDown release: every number from the release's files and manifest, whatever the schema and areas."""

import base64
import contextlib
import csv
import hashlib
import html
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from area_worlds import country_configuration, make_country, write_country
from boundary_files import write_geojson
from scipy.stats import norm
from topdown_worlds import LEVELS, WIDTHS, configuration, make_world, write_configuration, write_world

import yupana
from yupana.cli.main import main
from yupana.interface.configured import setup
from yupana.report.topdown_areas import TopdownRelease

pytest.importorskip("vl_convert", reason="the charts of reports need the extra: report")

SHAPE = (2, 3)
KINDS = {"state": 2, "county": 5, "tract": 11, "block_group": 12}


def call(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


@dataclass(frozen=True)
class Made:
    """A release, its page and what the page holds."""

    release: Path
    page: Path

    @property
    def text(self) -> str:
        return self.page.read_text(encoding="utf-8")

    @property
    def words(self) -> str:
        without = re.sub(r"<(script|style).*?</\1>", " ", self.text, flags=re.DOTALL)
        return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", without)).split())

    @property
    def profiles(self) -> dict[str, Any]:
        (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', self.text, re.DOTALL)
        return {kind["key"]: kind for kind in json.loads(found)["kinds"]}

    def rows(self, name: str) -> list[dict[str, str]]:
        with (self.release / f"{name}.csv").open(encoding="utf-8") as file:
            return list(csv.DictReader(file, delimiter="|"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("release")


@pytest.fixture(scope="module")
def made(folder: Path) -> Made:
    """A release of a schema of its own, whose page was made after the records were gone."""
    data = write_world(make_world(1, SHAPE), folder / "data")
    config = write_configuration(configuration(SHAPE, rho="1/2"), folder / "config.json")
    assert call("topdown", "run", config, data, folder / "release", "--intervals", "none") == 0
    shutil.rmtree(data)
    config.unlink()
    assert call("report", folder / "release", folder / "page.html") == 0
    return Made(folder / "release", folder / "page.html")


@pytest.fixture(scope="module")
def persons(folder: Path) -> Made:
    """The redistricting data of a synthetic census, without noise, which is quick."""
    assert call("synth", folder / "census", "--households", 40, "--states", 44, "--seed", 1) == 0
    assert call("topdown", "exact", "pl94-2020-us", folder / "census", folder / "persons") == 0
    assert call("report", folder / "persons", folder / "persons.html") == 0
    return Made(folder / "persons", folder / "persons.html")


def test_the_page_says_what_was_measured_and_what_it_costs(made: Made) -> None:
    manifest = json.loads((made.release / "manifest.json").read_text())
    words = made.words
    assert "ρ 0.500000" in words
    total = sum(int(row["count"]) for row in made.rows("counts/US"))
    assert f"Records {total:,}" in words or f"People {total:,}" in words
    for level, passes in manifest["solvers"].items():
        for number in passes.values():
            assert re.search(rf"\b{level} (\d+ )*{number}\b", words), (level, passes)
    assert "No geounit needed the failsafe" in words
    for item in manifest["taken_as_public"]:
        assert item[1:] in words
    units = Counter(row["geolevel"] for row in made.rows("spine/geounits"))
    for level in LEVELS:
        assert f"{level} {units[level]} 0 16.67% 3" in words


def test_it_loads_nothing_and_runs_its_own_script_alone(made: Made, persons: Made) -> None:
    for page in (made, persons):
        assert "://" not in page.text
        policy = re.search(r"http-equiv=\"Content-Security-Policy\" content=\"([^\"]*)\"", page.text)
        (script,) = re.findall(r"<script>(.*?)</script>", page.text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert policy is not None
        assert html.unescape(policy[1]).endswith(f"script-src 'sha256-{digest}'")


def test_profiles_hold_the_counts_of_the_files(made: Made) -> None:
    profiles = made.profiles
    assert "block" not in profiles
    for kind, width in KINDS.items():
        sums: Counter[tuple[str, str, str]] = Counter()
        for row in made.rows("counts/Block"):
            sums[row["geounit"][:width], row["a0"], row["a1"]] += int(row["count"])
        blocks = {row["block"][:width] for row in made.rows("spine/blocks")}
        told = profiles[kind]
        codes = [code for code, _ in told["areas"]]
        assert {code for code, *_ in sums} <= set(codes) <= blocks
        *margins, cells = told["tables"]
        assert cells["lines"] == [f"{a}, {b}" for a in range(SHAPE[0]) for b in range(SHAPE[1])]
        for code, row in zip(codes, cells["rows"], strict=True):
            assert row == [sums[code, str(a), str(b)] for a in range(SHAPE[0]) for b in range(SHAPE[1])]
        for place, code in enumerate(codes):
            shown = {table["title"]: table["rows"][place] for table in margins}
            total, *levels = shown["T1. The total, and every level of every attribute"]
            assert total == sum(n for k, n in sums.items() if k[0] == code)
            of_a1 = [sum(n for k, n in sums.items() if (k[0], k[2]) == (code, str(b))) for b in range(SHAPE[1])]
            assert levels[SHAPE[0] :] == of_a1


@pytest.mark.thorough
def test_profiles_hold_the_intervals_of_a_run(tmp_path: Path) -> None:
    data = write_world(make_world(1, SHAPE), tmp_path / "data")
    config = write_configuration(configuration(SHAPE, rho="1/2"), tmp_path / "config.json")
    assert call("topdown", "run", config, data, tmp_path / "release") == 0
    assert call("report", tmp_path / "release", tmp_path / "page.html") == 0
    made = Made(tmp_path / "release", tmp_path / "page.html")
    counted = {row["GEOCODE"]: row for row in made.rows("tables/T1") if row["SUMLEV"] == "050"}
    ends = {row["GEOCODE"]: row for row in made.rows("tables/T1_intervals") if row["SUMLEV"] == "050"}
    told = made.profiles["county"]
    table = told["tables"][0]
    for place, (code, _) in enumerate(told["areas"]):
        for k, name in enumerate(name for name in counted[code] if name.startswith("T001")):
            count = int(counted[code][name])
            assert table["rows"][place][k] == count
            assert table["below"][place][k] == count - int(ends[code][f"{name}_LOWER"])
            assert table["above"][place][k] == int(ends[code][f"{name}_UPPER"]) - count


def test_profiles_hold_the_published_tables(persons: Made) -> None:
    profiles = persons.profiles
    levels = {"state": "040", "county": "050", "tract": "140", "block_group": "150", "place": "160"}
    for number in range(1, 6):
        rows = persons.rows(f"tables/P{number}")
        for kind, level in levels.items():
            table = profiles[kind]["tables"][number - 1]
            assert table["title"].startswith(f"P{number}. ")
            expected = {
                row["GEOCODE"]: [int(value) for name, value in row.items() if name.startswith("P")]
                for row in rows
                if row["SUMLEV"] == level
            }
            found = dict(zip([code for code, _ in profiles[kind]["areas"]], table["rows"], strict=True))
            assert found == expected
            assert len(table["lines"]) == len(table["rows"][0])
    assert "NOT FOR RELEASE" in persons.words


def released(made: Made) -> TopdownRelease:
    release = yupana.open_release(made.release)
    asked = setup(release.product, made.release / "manifest.json")
    return TopdownRelease(release, asked.config, asked.plan())


def test_expected_margins_are_those_of_least_squares_of_every_answer(made: Made) -> None:
    """The oracle solves for every cell of every block, from all answers at once, with the states' totals known."""
    found = released(made)
    blocks = [row["block"] for row in made.rows("spine/blocks")]
    cells = SHAPE[0] * SHAPE[1]
    cell = np.arange(cells)
    answers = {"total": cell * 0, "a0": cell // SHAPE[1], "detailed": cell}
    normal = np.zeros((len(blocks) * cells,) * 2)
    for level in LEVELS:
        units = np.array([block[: WIDTHS[level]] for block in blocks])
        for unit in set(units.tolist()):
            inside = np.repeat(units == unit, cells)
            for query, answer in answers.items():
                variance = float(found.plan[f"{level} {query}"].variance)
                for number in set(answer.tolist()):
                    row = inside * np.tile(answer == number, len(blocks))
                    normal += np.outer(row, row) / variance
            if level == "State":
                normal += 1e6 * np.outer(inside, inside)
    covariance = np.linalg.inv(normal)
    for kind in found.kinds:
        if kind.name not in KINDS:
            continue
        assert kind.margins is not None
        for code, margin in zip(kind.codes, kind.margins.tolist(), strict=True):
            row = np.repeat([block.startswith(code) for block in blocks], cells).astype(float)
            sigma = float(np.sqrt(row @ covariance @ row))
            assert margin == pytest.approx(norm.ppf(0.95) * sigma, rel=1e-3, abs=2e-2)
            assert (margin == 0) == (kind.name == "state")


@pytest.mark.thorough
def test_maps_tell_the_totals_and_name_what_does_not_match(made: Made, tmp_path: Path) -> None:
    counties = Counter[str]()
    for row in made.rows("tabulation/county"):
        counties[row["geounit"]] += int(row["count"])
    codes = sorted(counties)
    squares = {code: (float(2 * place), 40.0) for place, code in enumerate([*codes[1:], "99999"])}
    shapes = write_geojson(tmp_path / "counties.json", squares)
    states = write_geojson(tmp_path / "states.json", {"01": (0.0, 0.0), "02": (1.0, 0.0)}, ALAND=0)
    page = Made(made.release, tmp_path / "page.html")
    assert call("report", made.release, page.page, "--boundaries", shapes) == 0
    titles = {html.unescape(title) for title in re.findall(r"<use [^>]*><title>(.*?)</title>", page.text)}
    margins = next(kind for kind in released(made).kinds if kind.name == "county").margins
    assert margins is not None
    assert {title.split(" ± ")[0] for title in titles} == {f"Area <{c}> ({c}): {counties[c]:,}" for c in codes[1:]}
    assert page.text.count("<use ") == 2 * len(titles)
    assert page.text.count("<path id=") == len(titles)
    assert f"Without a boundary in the file: 1 county ({codes[0]})" in page.words
    assert "Boundaries of no such area of the release: 1 (99999)" in page.words
    assert "Area <9" not in page.text
    # What is all water leaves no map, and says so.
    assert call("report", made.release, tmp_path / "wet.html", "--boundaries", states) == 2


def test_boundaries_of_elsewhere_are_refused(made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shapes = write_geojson(tmp_path / "map.json", {"7": (0.0, 0.0)})
    assert call("report", made.release, tmp_path / "page.html", "--boundaries", shapes) == 2
    told = capsys.readouterr().err
    assert "shows no area of this release: its areas are such as 7" in told
    assert "counties such as 01001" in told
    (tmp_path / "rubbish.zip").write_bytes(b"PK\3\4 and no more")
    assert call("report", made.release, tmp_path / "page.html", "--boundaries", tmp_path / "rubbish.zip") == 2
    assert not (tmp_path / "page.html").exists()


@pytest.mark.thorough
def test_areas_of_any_codes_have_a_page(tmp_path: Path) -> None:
    country = make_country(3, 4)
    data = write_country(country, tmp_path)
    config = write_configuration(country_configuration(country, rho="2"), tmp_path / "config.json")
    assert call("topdown", "run", config, data, tmp_path / "release", "--format", "parquet") == 0
    assert call("report", tmp_path / "release", tmp_path / "page.html") == 0
    page = Made(tmp_path / "release", tmp_path / "page.html")
    for level in country.levels[1:-1]:
        codes = {code for code, _ in page.profiles[level]["areas"]}
        assert codes <= {unit for unit, *_ in country.of(level)} | set(country.parent)


def test_the_truth_of_real_records_stays_with_its_owner(tmp_path: Path) -> None:
    data = write_world(make_world(4, SHAPE), tmp_path / "data")
    (data / "SYNTHETIC").unlink()
    config = write_configuration(configuration(SHAPE, rho="1"), tmp_path / "config.json")
    assert call("topdown", "exact", config, data, tmp_path / "truth", "--internal") == 0
    assert call("report", tmp_path / "truth", tmp_path / "page.html") == 0
    assert (tmp_path / "page.html").stat().st_mode & 0o077 == 0
    page = Made(tmp_path / "truth", tmp_path / "page.html")
    assert page.words.count("CONFIDENTIAL") >= 1
    assert "Errors against size" not in page.words


@contextlib.contextmanager
def opened(page: Path, width: int) -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright, which drives the browser, is missing")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        wrong: list[str] = []
        tab = browser.new_page(viewport={"width": width, "height": 900})
        tab.on("console", lambda told: wrong.append(told.text))
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.goto(page.as_uri())
        yield tab
        assert wrong == []
        browser.close()


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_a_reader_finds_an_area_by_name_and_on_the_map(made: Made, width: int, tmp_path: Path) -> None:
    counties = made.profiles["county"]
    code = counties["areas"][1][0]
    squares = {area: (2.0 * place, 40.0) for place, (area, _) in enumerate(counties["areas"])}
    page = tmp_path / "page.html"
    shapes = write_geojson(tmp_path / "map.json", squares)
    assert call("report", made.release, page, "--boundaries", shapes) == 0
    total = f"{counties['tables'][0]['rows'][1][0]:,}"
    with opened(page, width) as tab:
        assert tab.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        tab.select_option("#kind", "county")
        tab.fill("#search", code)
        assert tab.inner_text("#shown h3") == code
        assert tab.inner_text("#shown tbody tr td.e") == total
        assert tab.evaluate("location.hash").startswith("#profile/county/")
        tab.fill("#search", "nowhere")
        assert tab.inner_text("#shown") == ""
        tab.click(".map.counts use:nth-of-type(2)")
        assert total in tab.inner_text(".map.counts .pointed")
        assert tab.inner_text("#shown h3") == code
        tab.goto(f"{page.as_uri()}#profile/county/{code}")
        tab.reload()
        assert tab.inner_text("#shown h3") == code
