"""The explorer as its first-time user meets it: in Chromium, without a head, and without a network."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import pytest
from plans import plan_of, production_plan

import yupana
from yupana.plan.budgets import budget_for_margin
from yupana.plan.measurement import Mechanism
from yupana.privacy.zcdp import epsilon_tight
from yupana.products.phsafe.configuration import TAUS, budgets, read_config
from yupana.products.phsafe.product import PHSAFE

pytest.importorskip("uvicorn", reason="the explorer's server is not installed: explore")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright, which drives the browser, is not installed")

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), ""
)
pytestmark = [
    pytest.mark.thorough,
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium on this machine: apt-get install chromium"),
]

START = "from yupana.cli.start import entry; entry()"


@contextmanager
def serving(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The explorer and its address; afterwards it is ended, if it has not been, as its user would."""
    command = [sys.executable, "-c", START, "explore", "--no-browser", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server, server.stdout.readline().strip()
        finally:
            server.send_signal(signal.SIGINT)
            assert server.wait(20) == 0


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving() as (_, url):
        yield url


@pytest.fixture(scope="module")
def browser():  # noqa: ANN201 (playwright may be missing)
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@dataclass
class Watched:
    """A page with everything that went wrong, and everywhere it went."""

    page: "playwright.Page"
    wrong: list[str] = field(default_factory=list)
    bytes_read: int = 0

    def total(self, label: str = "ρ, unbounded") -> str:
        return str(self.page.locator(f'[data-total="{label}"]').get_attribute("data-exact"))

    def field(self, entry: str, by: str) -> "playwright.Locator":
        return self.page.locator(f'input[data-entry="{entry}"][data-by={by}]')

    def settled(self) -> None:
        """Wait until the answer to the last change is shown."""
        self.page.wait_for_timeout(50)
        self.page.wait_for_selector("body:not([aria-busy])")

    def open(self, url: str) -> None:
        self.page.goto(url)
        self.page.wait_for_selector("#totals dd")
        self.settled()


@pytest.fixture
def watched(browser: "playwright.Browser", address: str) -> Iterator[Watched]:
    context = browser.new_context(viewport={"width": 1280, "height": 1000}, accept_downloads=True)
    made = watch(context.new_page(), address)
    made.open(address)
    yield made
    context.close()
    assert made.wrong == []


def watch(page: "playwright.Page", address: str) -> Watched:
    made = Watched(page)

    def answered(response: "playwright.Response") -> None:
        made.bytes_read += int(response.headers.get("content-length", 0))

    page.on("console", lambda m: made.wrong.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: made.wrong.append(str(error)))
    page.on("request", lambda r: None if r.url.startswith((address, "blob:", "data:")) else made.wrong.append(r.url))
    page.on("response", lambda r: answered(r) if r.url.startswith(address) else None)
    return made


def test_the_page_is_there_at_once_and_small(browser: "playwright.Browser") -> None:
    began = time.monotonic()
    with serving() as (_, url):
        told = time.monotonic() - began
        made = watch(browser.new_page(), url)
        made.open(url)
        made.page.wait_for_selector("#results svg")
        made.settled()
        assert 900_000 < made.bytes_read < 2_000_000
        assert made.wrong == []
        made.page.close()
    # Generous, for machines that do other work; on an idle one it takes less than a second.
    assert told < 8
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", url)


def test_budgets_and_margins_follow_each_other(watched: Watched) -> None:
    assert watched.total() == "1257281/1000000"
    watched.field("PH2/usa_*", "budget").fill("0.01")
    watched.settled()
    rho = budgets(puerto_rico=False)
    plan = plan_of(rho | {"PH2/usa_*": Fraction("0.01")}, TAUS, Mechanism.ZCDP)
    assert watched.total() == str(plan.loss())
    margin = watched.field("PH2/usa_*", "margin")
    assert margin.get_attribute("data-exact") == repr(plan.margin(plan["PH2/usa_*"]))
    margin.fill("300")
    watched.settled()
    wanted = budget_for_margin(Fraction(300), Fraction(484), Fraction(9, 10), Mechanism.ZCDP)
    assert watched.field("PH2/usa_*", "budget").get_attribute("data-exact") == str(wanted)
    margin.press_sequentially("00")
    watched.settled()
    watched.page.get_by_role("button", name="Undo").click()  # one step, however many letters
    watched.settled()
    assert watched.field("PH2/usa_*", "budget").get_attribute("data-exact") == "1/100"
    margin.fill("300")
    watched.settled()
    # What was given as a margin keeps it when the threshold changes; what was given as a budget keeps that.
    watched.page.locator('[data-field="tau.PH2"]').fill("5")
    watched.settled()
    assert watched.field("PH2/usa_*", "budget").get_attribute("data-exact") == str(wanted * 144 / 484)
    assert watched.field("PH2/state_*", "budget").get_attribute("data-exact") == "16371/1000000"
    watched.page.get_by_label("Measure all of PH2", exact=True).uncheck()
    watched.settled()
    assert watched.total() == str(production_plan(puerto_rico=False).loss() - Fraction("0.018990"))
    watched.page.get_by_role("button", name="Production of 2020").click()
    watched.settled()
    assert watched.total() == "1257281/1000000"
    watched.page.get_by_role("button", name="Undo").click()
    watched.settled()
    assert watched.total() == str(production_plan(puerto_rico=False).loss() - Fraction("0.018990"))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_number_on_the_page_is_the_librarys(watched: Watched, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 (a choice of settings)
    names = [m.name for m in production_plan(puerto_rico=False).measurements]
    watched.page.locator('[data-field="confidence"]').fill(chance.choice(["95", "99", "80.5"]))
    for name in chance.sample([*TAUS], 3):
        watched.page.locator(f'[data-field="tau.{name}"]').fill(str(chance.randint(1, 20)))
    for name in chance.sample(names, 6):
        by, text = chance.choice(
            [("budget", str(chance.randint(1, 900) / 1000)), ("margin", str(chance.randint(5, 900)))]
        )
        watched.field(name, by).fill(text)
    for name in chance.sample(names, 4):
        watched.field(name, "on").uncheck()
    watched.settled()
    with watched.page.expect_download() as exported:
        watched.page.get_by_role("button", name="Export configuration").click()
    exported.value.save_as(tmp_path / "config.json")
    confidence = Fraction(watched.page.locator('[data-field="confidence"]').input_value()) / 100
    plan = PHSAFE.plan(read_config(tmp_path / "config.json"), confidence=confidence)
    assert len(plan.measurements) == 42
    for m in plan.measurements:
        assert watched.field(m.name, "budget").get_attribute("data-exact") == str(m.budget)
        assert watched.field(m.name, "margin").get_attribute("data-exact") == repr(plan.margin(m))
        assert float(watched.field(m.name, "margin").input_value()) == pytest.approx(plan.margin(m), rel=1e-4)
    assert watched.total() == str(plan.loss())
    assert watched.total("ρ, bounded") == str(plan.loss(lambda m: m.sensitivity.bounded))
    assert watched.total("ε at δ = 1e-10") == repr(epsilon_tight(plan.loss(), 1e-10))


def test_a_wrong_number_is_told_by_its_field_and_none_is_shown(watched: Watched) -> None:
    page = watched.page
    for wrong, told in (("-1", "above 0"), ("0", "above 0"), ("much", "must be a number"), ("1e99", "out of reach")):
        watched.field("PH3/usa_*", "budget").fill(wrong)
        watched.settled()
        assert told in page.locator('[data-fault="PH3/usa_*"]').inner_text()
        assert watched.field("PH3/usa_*", "budget").get_attribute("aria-invalid") == "true"
        assert page.locator("#totals dd").first.is_hidden()
        assert watched.field("PH3/usa_*", "margin").input_value() == ""
        assert page.get_by_role("button", name="Export configuration").is_disabled()
    watched.field("PH3/usa_*", "budget").fill("0.5")
    watched.settled()
    assert page.locator("#totals dd").first.is_visible()
    assert page.locator(".fault:visible").count() == 0


def test_the_page_solves(watched: Watched) -> None:
    page = watched.page
    for label, target in (("Nation, everyone", "500"), ("States, by race (A–G)", "68")):
        page.locator("#targets").get_by_label(label).fill(target)
    page.get_by_role("button", name="Find the smallest total").click()
    watched.settled()
    wanted = budget_for_margin(Fraction(68), Fraction(196), Fraction(9, 10), Mechanism.ZCDP)
    assert watched.field("PH3/state_A-G", "budget").get_attribute("data-exact") == str(wanted)
    assert "smallest total" in page.locator("#said").inner_text()
    page.locator("#total").fill("2")
    page.get_by_role("button", name="Spend it equally").click()
    watched.settled()
    assert watched.total() == "2"
    page.get_by_role("button", name="Round the budgets").click()
    watched.settled()
    assert re.fullmatch(r"\d+/\d+|2", watched.total())


def test_table_10_can_be_typed(watched: Watched) -> None:
    page = watched.page
    page.locator('[data-field="margins"]').select_option("bureau")
    targets = {"usa_*": 500, "usa_A-G": 500, "usa_H,I": 500, "state_*": 200, "state_A-G": 68, "state_H,I": 200}
    for level, target in targets.items():
        page.locator(f'#targets [data-column="{level}"]').fill(str(target))
    page.get_by_role("button", name="Find the smallest total").click()
    watched.settled()
    watched.field("PH3/state_A-G", "margin").fill("20")
    watched.settled()
    page.locator("#name").focus()
    watched.settled()
    published = {m.name: f"{float(m.budget):.6f}" for m in production_plan(puerto_rico=False).measurements}
    shown = {name: watched.field(name, "budget").input_value() for name in published}
    assert shown == published
    page.get_by_role("button", name="Round the budgets").click()
    watched.settled()
    assert watched.total() == "1257281/1000000"


def test_scenarios_go_to_files_and_come_back(watched: Watched, tmp_path: Path) -> None:
    page = watched.page
    page.locator("#name").fill("Committee, first round")
    watched.field("PH2/usa_*", "margin").fill("333")
    watched.settled()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save to file").click()
    path = tmp_path / saved.value.suggested_filename
    saved.value.save_as(path)
    assert path.name == "Committee--first-round.phsafe.json"
    with page.expect_download() as exported:
        page.get_by_role("button", name="Export configuration").click()
    config = tmp_path / exported.value.suggested_filename
    exported.value.save_as(config)
    assert str(PHSAFE.plan(read_config(config)).loss()) == watched.total()
    with page.expect_download() as written:
        page.get_by_role("button", name="Export CSV").click()
    assert written.value.suggested_filename.endswith(".csv")
    before = watched.total()
    page.get_by_role("button", name="Production of 2020").click()
    watched.settled()
    load(watched, "Load from file", path)
    assert watched.total() == before
    assert page.locator("#name").input_value() == "Committee, first round"
    edited = json.loads(path.read_text())
    edited["settings"]["entries"]["PH2/usa_*"]["value"] = "444"
    path.write_text(json.dumps(edited))
    load(watched, "Load from file", path)
    assert "was edited" in page.locator("#said").inner_text()
    path.write_text("{}")
    load(watched, "Load from file", path)
    assert "not a scenario" in page.locator("#fault-file").inner_text()


def load(watched: Watched, button: str, path: Path) -> None:
    with watched.page.expect_file_chooser() as chooser:
        watched.page.get_by_role("button", name=button).click()
    chooser.value.set_files(path)
    watched.settled()


def test_two_scenarios_stand_side_by_side(watched: Watched) -> None:
    page = watched.page
    page.locator("#name").fill("First")
    page.get_by_role("button", name="Keep what is here").click()
    watched.field("PH6/usa_*", "budget").fill("0.25")
    watched.settled()
    section = page.locator("#at-against")
    assert "First" in section.locator("h2").inner_text()
    assert "PH6/usa_*" in section.inner_text()
    assert "0.250000" in section.inner_text()
    assert "0.001061" in section.inner_text()
    page.reload()
    page.wait_for_selector("#totals dd")
    watched.settled()
    assert watched.field("PH6/usa_*", "budget").input_value() == "0.25"  # a reload loses nothing


def test_two_windows_do_not_mix(watched: Watched, address: str) -> None:
    other = watch(watched.page.context.new_page(), address)
    other.open(address)
    other.field("PH2/usa_*", "budget").fill("1")
    other.settled()
    watched.page.bring_to_front()
    assert watched.total() == "1257281/1000000"
    assert "another window" in watched.page.locator("#windows").inner_text()
    assert "another window" in other.page.locator("#windows").inner_text()
    assert other.wrong == []


def test_a_server_that_is_gone_is_told(browser: "playwright.Browser") -> None:
    with serving() as (server, url):
        page = watch(browser.new_page(), url)
        page.open(url)
        server.send_signal(signal.SIGINT)
        server.wait(20)
        page.field("PH2/usa_*", "budget").fill("1")
        page.settled()
        assert "yupana explore" in page.page.locator("#banner").inner_text()
        assert page.page.locator("#totals dd").first.is_hidden()
        page.page.close()


PRODUCTS = {
    "phsafe": "1257281/1000000",
    "safetab-p": "618/125",
    "safetab-h": "4447651/500000",
    "topdown": "293764/114921",
    "topdown-h1": "11417641/152349649",
    "topdown-pr": "293764/114921",
}


@pytest.mark.parametrize("product", PRODUCTS)
def test_every_product_opens_and_fits_every_width(watched: Watched, address: str, product: str, tmp_path: Path) -> None:
    page = watched.page
    page.goto(f"{address}#{product}")
    page.wait_for_selector(f"#products a[data-key={product}][aria-current]")
    watched.settled()
    # The invariants of TopDown leave no unbounded neighbours.
    assert watched.total("ρ, bounded" if product.startswith("topdown") else "ρ, unbounded") == PRODUCTS[product]
    keep = Path(os.environ.get("YUPANA_SCREENSHOTS", tmp_path))
    for width in (390, 1280, 1920):
        page.set_viewport_size({"width": width, "height": 1000})
        watched.settled()
        page.wait_for_selector("#results svg")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.screenshot(path=keep / f"{product}-{width}.png", full_page=True)
        assert (keep / f"{product}-{width}.png").stat().st_size > 50_000
    assert watched.page.locator("svg[role=img]:not([aria-label])").count() == 0
    unnamed = page.evaluate(
        "[...document.querySelectorAll('input, select, button')].filter(e => e.type !== 'file' && "
        "!e.labels?.length && !e.getAttribute('aria-label') && !e.textContent.trim()).length"
    )
    assert unnamed == 0


PICTURE = "#strategy-trade-off svg.marks"


def of_total(watched: Watched) -> str | None:
    """The budget of the total of blocks."""
    return watched.field("Block total", "budget").get_attribute("data-exact")


@pytest.fixture
def weighing(watched: Watched, address: str) -> Watched:
    """The panel of strategies."""
    assert watched.page.locator("#strategy").is_hidden()  # PHSafe has none
    watched.page.goto(f"{address}#topdown")
    watched.page.wait_for_selector(f"{PICTURE}[role=img][aria-label]")
    watched.settled()
    return watched


def test_a_weight_moves_what_is_found(weighing: Watched) -> None:
    page = weighing.page
    before, said = (weighing.total("ρ, bounded"), of_total(weighing)), page.locator("#strategy-said").inner_text()
    assert "14.22%" in said
    shares = page.locator("#at-strategy-shares").inner_text()
    picture = page.locator(PICTURE).inner_html()
    # With the keys alone.
    slider = page.get_by_role("slider", name="Weight of total", exact=True)
    slider.focus()
    for _ in range(9):
        page.keyboard.press("ArrowRight")
    weighing.settled()
    assert page.get_by_role("textbox", name="total", exact=True).input_value() == "10"
    assert slider.get_attribute("aria-valuetext") == "10"
    assert page.locator("#at-strategy-shares").inner_text() != shares
    assert page.locator("#strategy-said").inner_text() != said
    page.wait_for_function(f"old => document.querySelector('{PICTURE}').innerHTML !== old", arg=picture)
    # Nothing else has changed.
    assert (weighing.total("ρ, bounded"), of_total(weighing)) == before
    page.reload()
    page.wait_for_selector(PICTURE)
    weighing.settled()
    assert page.get_by_role("textbox", name="total", exact=True).input_value() == "10"  # a reload loses nothing


def test_shares_that_are_found_are_taken_and_given_back(weighing: Watched, tmp_path: Path) -> None:
    page = weighing.page
    before, production = weighing.total("ρ, bounded"), of_total(weighing)
    page.get_by_role("textbox", name="total", exact=True).fill("2.5")
    weighing.settled()
    page.get_by_role("button", name="Take these shares").click()
    weighing.settled()
    assert "total is as it was" in page.locator("#said").inner_text()
    assert weighing.total("ρ, bounded") == before
    assert of_total(weighing) != production
    with page.expect_download() as exported:
        page.get_by_role("button", name="Export configuration").click()
    exported.value.save_as(tmp_path / "taken.json")
    targets = {"queries": {**dict.fromkeys(["P1", "P2", "P3", "P4", "P5"], 1), "total": "2.5"}}
    document = yupana.PRODUCTS["topdown"].document(yupana.strategy("pl94-2020-us", targets=targets).found)
    assert json.loads((tmp_path / "taken.json").read_text()) == document
    page.get_by_role("button", name="Undo").click()
    weighing.settled()
    assert of_total(weighing) == production


def test_a_weight_that_is_none_is_marked_and_nothing_can_be_taken(weighing: Watched) -> None:
    page = weighing.page
    weight = page.get_by_role("textbox", name="P2", exact=True)
    weight.fill("a lot")
    weighing.settled()
    assert "must be a number" in page.locator('[data-fault="strategy.query.P2"]').inner_text()
    assert weight.get_attribute("aria-invalid") == "true"
    assert page.locator("#at-strategy-shares").is_hidden()
    assert page.locator("#take").is_disabled()
    assert page.locator("#totals dd").first.is_visible()
    weight.fill("1")
    weighing.settled()
    assert page.locator("#strategy .fault:visible").count() == 0
    assert page.locator("#at-strategy-shares").is_visible()
    page.get_by_label("The other answer").select_option("total")
    weighing.settled()
    assert "two different answers" in page.locator('[data-fault="strategy.pair"]').inner_text()
    assert page.locator("#at-strategy-shares").is_visible()


def test_what_is_found_for_another_product_is_not_shown(weighing: Watched, address: str) -> None:
    page = weighing.page
    held: list[playwright.Route] = []

    def hold(route: "playwright.Route") -> None:
        held.append(route)

    page.route("**/api/strategy", lambda route: route.continue_() if held else hold(route))
    page.get_by_role("textbox", name="total", exact=True).fill("7")
    page.wait_for_timeout(500)
    # The answer comes when another product is there, and nothing has been found for that.
    page.route("**/api/view", hold)
    page.goto(f"{address}#topdown-h1")
    page.wait_for_selector("#products a[data-key=topdown-h1][aria-current]")
    page.wait_for_timeout(500)
    with page.expect_response("**/api/strategy"):
        held[0].continue_()
    page.wait_for_timeout(200)
    assert page.locator("#strategy-said").inner_text() == ""
    held[1].continue_()
    weighing.settled()
    assert "variances" in page.locator("#strategy-said").inner_text()


def test_geolevels_have_weights_where_their_shares_are_found(weighing: Watched) -> None:
    page = weighing.page
    assert page.locator("#strategy-by-level").is_hidden()
    assert page.get_by_label("Geolevel of the other").is_hidden()
    page.get_by_role("combobox", name="Shares of geolevels").select_option("found")
    page.get_by_label("Geolevel of the one").select_option("Tract")
    weighing.settled()
    assert page.get_by_role("slider", name="Weight of Block Group", exact=True).is_visible()
    assert "Tract total against Block detailed" in page.locator("#strategy-trade-off h3").first.inner_text()


def test_keys_alone_are_enough(watched: Watched) -> None:
    page = watched.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")  # the first box of the grid: everything for the nation
    watched.settled()
    assert not watched.field("PH2/usa_*", "on").is_checked()
    page.keyboard.press("Space")
    watched.settled()
    assert watched.total() == "1257281/1000000"


def test_it_reads_in_the_dark_and_on_paper(browser: "playwright.Browser", address: str, tmp_path: Path) -> None:
    context = browser.new_context(color_scheme="dark")
    made = watch(context.new_page(), address)
    made.open(address)
    colour = "getComputedStyle(document.body).backgroundColor"
    assert made.page.evaluate(colour) == "rgb(20, 24, 28)"
    made.page.wait_for_selector("#results svg")
    made.page.pdf(path=tmp_path / "page.pdf", format="A4")
    assert (tmp_path / "page.pdf").stat().st_size > 20_000
    assert made.wrong == []
    context.close()
