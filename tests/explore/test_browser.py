"""The explorer as a committee meets it: in Chromium, without a head, and without a network."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from itertools import cycle
from typing import Any

import pytest
from chromium import at_rest, faults_for_readers
from plans import production_plan

from yupana.plan.budgets import budget_for_margin
from yupana.plan.measurement import Mechanism
from yupana.products.phsafe.specification import STATE_NAMES

pytest.importorskip("uvicorn", reason="the explorer's server is not installed: explore")
pytestmark = pytest.mark.thorough

START = "from yupana.cli.start import entry; entry()"
OF_PHSAFE, OF_TABLES = "phsafe/s-dhc-2020-us", "tables-own"
OTHERS = ("safetab-p/ddhc-2020-us", "safetab-h/ddhc-2020-us", "topdown/pl94-2020-us", "topdown/h1-2020-us", OF_TABLES)
PURE = "?f.privacy_defn=puredp"
EVERY = (OF_PHSAFE, OF_TABLES + PURE, OF_PHSAFE + PURE, *OTHERS)
SIZES = ((1280, 800), (768, 1000), (390, 844))
FORMS = [*((size, OF_PHSAFE) for size in SIZES), *zip(cycle((SIZES[2], SIZES[0])), EVERY[1:], strict=False)]
"""One form in every window, the others in one each."""
REACHED = [
    pytest.param(size, key, marks=() if key == OF_TABLES else pytest.mark.thorough)
    for size, key in FORMS
    if key != "topdown/h1-2020-us"
]
"""The forms of TopDown have the same controls, so that one of them, the quicker, is gone through by keyboard."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    command = [sys.executable, "-c", START, "explore", "--no-browser", "--tables", "people-and-homes"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.send_signal(signal.SIGINT)
        assert server.wait(20) == 0


@pytest.fixture
def page(request: pytest.FixtureRequest, browser: Any, address: str) -> Iterator[Any]:  # noqa: ANN401
    width, height = request.param
    opened = browser.new_page(viewport={"width": width, "height": height}, accept_downloads=True)
    wrong: list[str] = []
    opened.on("console", lambda m: wrong.append(m.text) if m.type in ("error", "warning") else None)
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("request", lambda r: None if r.url.startswith((address, "blob:")) else wrong.append(r.url))
    yield opened
    opened.close()
    assert wrong == []


OPEN = """() => { for (const one of document.querySelectorAll('details')) one.open = true;
    for (const one of document.querySelectorAll('button[aria-expanded=false]')) one.click() }"""
ALL_CONTROLS = """() => [...document.querySelectorAll(
    'button, select, summary, input:not([type=file]), .scroll')].map((one, at) => { one.dataset.at = at; return at })"""
FOCUSED = """() => { const one = document.activeElement, box = one.getBoundingClientRect();
    const x = box.x + Math.min(box.width, innerWidth - box.x) / 2;
    const seen = [0.5, 0.1, 0.9].some((part) => { const over = document.elementFromPoint(x, box.y + box.height * part);
        return over && (one.contains(over) || over.contains(one)) });
    return [Number(one.dataset.at ?? -1), seen, one.outerHTML.slice(0, 120)] }"""


WORDS = """() => { const found = new Set(), walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) if (!walk.currentNode.parentElement.closest('noscript, script'))
        found.add(walk.currentNode.data.trim());
    for (const name of ['aria-label', 'placeholder', 'aria-valuetext', 'label'])
        for (const one of document.querySelectorAll(`[${name}]`)) found.add(one.getAttribute(name).trim());
    return [...found, document.title] }"""
SAID = "the|of|and|is|are|with|by|must|which|from|to|its|for|where|this|not|be|nothing"
ENGLISH = re.compile(rf"(?<![-\w])({SAID})(?![-\w])", re.IGNORECASE)


def settled(page: Any) -> None:  # noqa: ANN401 (playwright may be missing)
    at_rest(page)
    page.wait_for_selector(".fields")


def finished(page: Any) -> None:  # noqa: ANN401
    """Settled, with what the page asks only when nothing has moved for a moment."""
    settled(page)
    page.wait_for_selector(".glance [role=status]:not(:empty)", state="attached")
    page.wait_for_function("() => !/being computed|se está calculando/.test(document.body.innerText)")


def arrive(page: Any, address: str, link: str) -> None:  # noqa: ANN401
    page.goto("about:blank")
    page.goto(f"{address}#{link}")
    page.wait_for_selector(".frontier svg, .alarm")
    settled(page)


def total(page: Any) -> str:  # noqa: ANN401
    return str(page.locator("[data-total]").get_attribute("data-total"))


def await_total(page: Any, due: str) -> None:  # noqa: ANN401
    """The total becomes what is due; on a slow machine what was typed last is asked after a while."""
    page.wait_for_selector(f"[data-total='{due}']")


def budget_of_margin(page: Any, margin: int) -> None:  # noqa: ANN401
    """A field becomes the budget that gives a margin."""
    budget = budget_for_margin(Fraction(margin), Fraction(484), Fraction(9, 10), Mechanism.ZCDP)
    page.wait_for_selector(f"[aria-label='budget of PH2/usa_*'][data-exact='{budget}']")


@pytest.mark.parametrize("page", [SIZES[0], SIZES[2]], indirect=True)
def test_fields_and_what_they_do_are_in_view_and_move_together(page: Any, address: str) -> None:  # noqa: ANN401
    arrive(page, address, OF_PHSAFE)
    height = page.viewport_size["height"]
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    await_total(page, str(production_plan(puerto_rico=False).loss()))
    for part in (".frontier svg", ".whole input[type=range]", ".group .margins input[type=range]"):
        box = page.locator(part).first.bounding_box()
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= height, part
    # However far one scrolls among the fields, the picture stays.
    page.locator(".group").last.scroll_into_view_if_needed()
    assert page.locator(".frontier svg").bounding_box()["y"] >= 0
    page.get_by_role("button", name="Nation, everyone").click()
    page.get_by_label("margin of error of PH2/usa_*").fill("300")
    settled(page)
    budget_of_margin(page, 300)
    page.keyboard.type("0")  # letters of one field are one step
    budget_of_margin(page, 3000)
    settled(page)
    link = page.url.partition("#")[2]
    told = total(page)
    arrive(page, address, link)
    await_total(page, told)
    share = page.get_by_label("share, percent of States, everyone")
    share.fill("20")
    settled(page)
    await_total(page, told)
    share.blur()
    assert float(share.input_value()) == pytest.approx(20)
    slider = page.get_by_label("all margins: Nation, everyone", exact=True)
    slider.focus()
    page.keyboard.press("ArrowRight")
    settled(page)
    page.wait_for_selector(f"[data-total]:not([data-total='{told}'])")
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name="Undo").click()
    settled(page)
    await_total(page, told)


@pytest.mark.parametrize("page", [SIZES[0], SIZES[2]], indirect=True)
def test_answers_stand_beside_their_buttons_and_scenarios_are_columns(page: Any, address: str) -> None:  # noqa: ANN401
    arrive(page, address, f"{OF_PHSAFE}?name=First")
    page.get_by_role("button", name="Keep this scenario").click()
    button = page.get_by_role("button", name="Same total, smallest error")
    button.click()
    settled(page)
    answer = page.locator(".solve li", has=button).locator("output")
    assert "falls from" in answer.inner_text()
    assert abs(answer.bounding_box()["y"] - button.bounding_box()["y"]) < 60
    page.locator("#name").fill("Second")
    page.locator(".columns thead th", has_text="Second").wait_for()
    page.locator(".columns thead th", has_text="First").wait_for()
    page.get_by_role("button", name="Take: First").click()
    settled(page)
    await_total(page, "1257281/1000000")


@pytest.mark.parametrize("page", SIZES[:1], indirect=True)
def test_what_is_wrong_is_told_by_its_field_and_no_number_stays(page: Any, address: str) -> None:  # noqa: ANN401
    arrive(page, address, f"{OF_PHSAFE}?e.PH3%2Fusa_*=b:-1&e.PH9%2Fusa_*=b:1&f.nothing=3&x=y&e.PH2%2Fusa_*=??")
    assert "4 settings of this link" in page.locator(".told").inner_text()
    assert page.locator("[data-total]").count() == 0
    assert "above 0" in page.locator("[data-entry='PH3/usa_*'] .fault").inner_text()
    page.get_by_role("button", name="Go to it").click()
    page.keyboard.press("Control+a")
    page.keyboard.type("0.001061")
    settled(page)
    await_total(page, "1257281/1000000")
    for odd in ("%%%", "nothing/at-all", f"{OF_PHSAFE}?e.", "?name=x", f"{OF_PHSAFE}?name={'x' * 500}"):
        arrive(page, address, odd)
        await_total(page, "1257281/1000000")


@pytest.mark.parametrize("page", SIZES[:1], indirect=True)
def test_nothing_of_one_configuration_stands_in_another(page: Any, address: str) -> None:  # noqa: ANN401
    arrive(page, address, OF_PHSAFE)
    page.locator("#epsilon").fill("3")
    page.locator("#name").fill("Of persons")
    page.get_by_label("Configuration").select_option(OF_TABLES)
    page.locator("h1", has_text="People and homes").wait_for()
    settled(page)
    assert page.locator("#epsilon").input_value() == ""
    assert page.locator("#name").input_value() == ""
    await_total(page, "3/5")
    text = page.locator("main").inner_text()
    assert "2020" not in re.sub("as in 2020", "", text)
    assert "reliable from" in text.lower()


@pytest.mark.parametrize("page", SIZES[:1], indirect=True)
def test_a_file_or_a_link_that_is_no_scenario_is_told_and_the_form_stays(page: Any, address: str) -> None:  # noqa: ANN401
    format_of = b'{"format": "yupana-scenario-%d"'
    for content in (b"\x89PNG\r\n\xff", format_of % 1, format_of % 0 + b"}"):
        arrive(page, address, OF_PHSAFE)
        page.set_input_files("input[type=file]", {"name": "x.json", "mimeType": "application/json", "buffer": content})
        page.locator(".told", has_text="not a scenario").wait_for()
        await_total(page, "1257281/1000000")
    for link in ("%E0%A4%A", "__proto__", "phsafe/of-1999?f.x=1", f"{OF_PHSAFE}?e.PH2%2Fusa_*", "?" * 900):
        arrive(page, address, link)
        assert page.locator(".told").inner_text()
        await_total(page, "1257281/1000000")


def test_zoom_forced_colours_and_reduced_motion_lose_nothing(browser: Any, address: str) -> None:  # noqa: ANN401
    page = browser.new_context(
        viewport={"width": 640, "height": 400}, device_scale_factor=2, reduced_motion="reduce", forced_colors="active"
    ).new_page()
    arrive(page, address, f"{OF_PHSAFE}?name=X")
    page.evaluate(OPEN)
    assert page.evaluate("document.documentElement.scrollWidth") <= 640
    for part in (".solve button", ".group .name", ".options input", "#keep", ".frontier svg"):
        one = page.locator(part).last
        one.scroll_into_view_if_needed()
        box = one.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 640, part
        middle = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
        over = "([x, y]) => document.elementFromPoint(x, y)?.closest('header, .glance')?.className ?? ''"
        assert page.evaluate(over, middle) == ("glance" if "svg" in part else ""), part
    page.locator(".solve button").first.click()
    assert page.evaluate("document.getAnimations().length") == 0
    drawn = "getComputedStyle(document.querySelector('.frontier .curve')).stroke"
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(drawn) != page.evaluate(ground)
    page.context.close()


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("page", "key"), FORMS, indirect=["page"])
def test_every_form_passes_axe_and_fits_its_window(page: Any, address: str, key: str) -> None:  # noqa: ANN401
    size = page.viewport_size
    arrive(page, address, key)
    question = page.locator("h1").bounding_box()
    assert question["y"] >= 0
    for part in (".glance-numbers", ".frontier svg", ".whole input[type=range]"):
        box = page.locator(part).first.bounding_box()
        assert box["y"] + box["height"] <= size["height"], part
        assert box["x"] + box["width"] <= size["width"], part
    if size["width"] > 1000:
        box = page.locator(".solve button").first.bounding_box()
        assert box["y"] + box["height"] <= size["height"]
    finished(page)
    page.evaluate(OPEN)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function("() => document.getAnimations().every(one => one.playState !== 'running')")
        assert faults_for_readers(page) == [], scheme
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    cut = page.evaluate("""() => [...document.querySelectorAll('button, label, summary, .figure, dd')].filter(
        one => one.scrollWidth > one.clientWidth + 1 && one.clientWidth && getComputedStyle(one).display !== 'inline'
        && !one.closest('.unseen, .scroll')).map(one => one.outerHTML)""")
    assert cut == []


@pytest.mark.parametrize(("page", "key"), REACHED, indirect=["page"])
def test_every_control_has_a_name_and_is_reached_and_seen_by_keyboard(page: Any, address: str, key: str) -> None:  # noqa: ANN401
    arrive(page, address, f"{key}{'&' if '?' in key else '?'}name=First")
    finished(page)
    began = total(page)
    page.locator("#keep").focus()
    page.keyboard.press("Enter")
    page.evaluate(OPEN)
    page.locator(".columns .acts button").first.wait_for()
    finished(page)
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    controls = ("button", "textbox", "slider", "checkbox", "combobox", "link", "DisclosureTriangle", "image", "group")
    nameless = [n for n in tree if not n["ignored"] and n["role"]["value"] in controls and not n["name"]["value"]]
    assert [n["role"] for n in nameless if n["role"]["value"] != "group"] == []
    missing = set(page.evaluate(ALL_CONTROLS))
    assert len(missing) > 20
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    for _ in range(len(missing) + 5):
        page.keyboard.press("Tab")
        at, seen, what = page.evaluate(FOCUSED)
        assert seen or at not in missing, what
        missing.discard(at)
    assert [page.locator(f"[data-at='{at}']").evaluate("one => one.outerHTML") for at in missing] == []
    answers = page.locator(".solve button")
    for place in range(answers.count()):
        answers.nth(place).focus()
        page.keyboard.press("Enter")
        settled(page)
        assert answers.nth(place).evaluate("one => one === document.activeElement")
        assert page.locator(".solve output").nth(place).inner_text(), place
    page.locator(".columns .acts button").first.focus()
    page.keyboard.press("Enter")
    finished(page)
    await_total(page, began)


@pytest.mark.thorough
@pytest.mark.parametrize("key", EVERY)
def test_no_sentence_of_the_spanish_page_is_english(browser: Any, address: str, key: str) -> None:  # noqa: ANN401
    told: dict[str, set[str]] = {}
    for locale in ("en-US", "es-ES"):
        page = browser.new_context(locale=locale, viewport={"width": 1280, "height": 800}).new_page()
        arrive(page, address, f"{key}{'&' if '?' in key else '?'}name=X1")
        page.locator("#keep").click()
        page.evaluate(OPEN)
        finished(page)
        told[locale] = set(page.evaluate(WORDS))
        total_field = page.locator(".whole .pair input").first
        Fraction(total_field.input_value())
        total_field.fill("0.5" if locale == "en-US" else "0,5")
        settled(page)
        await_total(page, "1/2")
        answers = page.locator(".solve button")
        for place in range(answers.count()):
            answers.nth(place).click()
            settled(page)
            told[locale] |= set(page.locator(".solve output").all_inner_texts())
        fields = page.locator(".options input, .row input[type=text]").all()
        for field in fields[:: max(len(fields) // 4, 1)]:
            for wrong in ("-1", "x"):
                field.fill(wrong)
                settled(page)
                told[locale] |= set(page.locator(".fault, .alarm p").all_inner_texts())
            field.fill("1")
            settled(page)
        page.context.close()
    names = {*STATE_NAMES.values(), "Puerto Rico"}
    spoken = {text for text in told["es-ES"] if re.search(r"[a-z]{3,}", text) and text not in names}
    assert {text for text in spoken if ENGLISH.search(text)} == set()
    assert {text for text in spoken & told["en-US"] if re.search(r"[a-z]{3,},? [a-z]{3,}", text)} == set()
