"""The explorer's server: every number is the library's, and what cannot be is refused by its field."""

import asyncio
import csv
import io
import json
import socket
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plans import plan_of, production_plan

from yupana.cli.main import main
from yupana.errors import ConfigError
from yupana.geography.distance import distances
from yupana.geography.entities import published
from yupana.geography.tree import partition
from yupana.plan.budgets import budget_for_margin
from yupana.plan.exact_loss import epsilon_exact
from yupana.plan.measurement import Accounting, Margins, Mechanism, z_value
from yupana.plan.plan import Plan
from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric
from yupana.privacy.zcdp import epsilon_tight
from yupana.products.phsafe.configuration import TAUS, production_config, read_config, sensitivity_of
from yupana.products.phsafe.product import PHSAFE
from yupana.products.phsafe.specification import TABLES
from yupana.products.safetab.configuration import production_config as production_of_safetab
from yupana.products.safetab.configuration import read_config as read_safetab
from yupana.products.safetab.demonstration_parameters import write_parameters
from yupana.products.safetab.iterations import read_iterations
from yupana.products.safetab.product import HOUSEHOLDS, PERSONS, Parameters
from yupana.products.safetab.regions import LEVELS
from yupana.products.safetab.specification import QUESTIONS
from yupana.report.groups import expected_tables
from yupana.report.topdown import _spine, spine_errors
from yupana.topdown.plan import make_plan as make_topdown_plan
from yupana.topdown.reading.configuration import read_configuration

pytest.importorskip("fastapi", reason="the explorer's server is not installed: explore")

import httpx

from yupana.explore.products import Pages
from yupana.explore.reference import blocks
from yupana.explore.scenario import read_settings
from yupana.explore.server import make_app

PORT = 8080
SHELF = Pages()
APP = make_app(SHELF, PORT)


class Client:
    """Asks the application without a network."""

    def get(self, path: str, **more: Any) -> httpx.Response:  # noqa: ANN401 (what httpx takes)
        return self.ask("GET", path, **more)

    def post(self, path: str, **more: Any) -> httpx.Response:  # noqa: ANN401
        return self.ask("POST", path, **more)

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:  # noqa: ANN401
        async def answer() -> httpx.Response:
            transport = httpx.ASGITransport(app=APP)
            async with httpx.AsyncClient(transport=transport, base_url=f"http://127.0.0.1:{PORT}") as client:
                return await client.request(method, path, **more)

        return asyncio.run(answer())


CLIENT = Client()
Document = dict[str, Any]

DECIMALS = st.decimals("0.0001", "50", places=4).map(str)
MARGINS = st.integers(1, 5000).map(str)


def started(product: str) -> Document:
    answered = CLIENT.get(f"/api/products/{product}")
    assert answered.status_code == 200
    return dict(answered.json()["settings"])


def viewed(product: str, chosen: Document, **more: object) -> Document:
    answered = CLIENT.post("/api/view", json={"product": product, "settings": chosen, **more})
    assert "faults" not in answered.json(), answered.text
    return dict(answered.json())


def faults(path: str, **body: object) -> dict[str, str]:
    answered = CLIENT.post(path, json=body)
    assert set(answered.json()) == {"faults"}, answered.text
    return {fault["field"]: fault["message"] for fault in answered.json()["faults"]}


def total(view: Document, label: str) -> str:
    return next(str(n["exact"]) for n in view["numbers"] if n["label"] == label)


def entries(names: list[str]) -> st.SearchStrategy[dict[str, Document]]:
    one = st.one_of(
        st.builds(lambda v: {"on": True, "by": "budget", "value": v}, DECIMALS),
        st.builds(lambda v: {"on": True, "by": "margin", "value": v}, MARGINS),
        st.builds(lambda v: {"on": False, "by": "budget", "value": v}, DECIMALS),
    )
    return st.fixed_dictionaries(dict.fromkeys(names, one)).filter(lambda e: any(x["on"] for x in e.values()))


def same_numbers(view: Document, plan: Plan, margins: dict[str, float], budgets: dict[str, Fraction]) -> None:
    """What is shown against the library's plan: totals, budgets and margins in full."""
    symbol = "ρ" if plan.mechanism is Mechanism.ZCDP else "ε"
    assert view["total"] == str(plan.loss())
    assert total(view, f"{symbol}, bounded") == str(plan.loss(lambda m: m.sensitivity.bounded))
    unbounded = plan.losses()["unbounded"]
    labels = {number["label"] for number in view["numbers"]}
    assert (f"{symbol}, unbounded" in labels) == (unbounded is not None)
    assert unbounded is None or total(view, f"{symbol}, unbounded") == str(unbounded)
    for name, shown in view["entries"].items():
        if name in budgets:
            assert Fraction(shown["budget_exact"]) == budgets[name]
            assert shown["margin_exact"] == repr(margins[name])
        else:
            assert not shown["on"]
            assert shown["budget"] == shown["margin"] == ""


NAMES_OF_PHSAFE = [f"{t.name}/{level.name}" for t in TABLES for level in t.levels]


@settings(max_examples=8, suppress_health_check=[HealthCheck.large_base_example, HealthCheck.data_too_large])
@given(
    st.fixed_dictionaries({name: st.integers(1, 60) for name in TAUS}),
    st.sampled_from(["90", "95", "99.5", "80.1"]),
    st.sampled_from(["zcdp", "puredp"]),
    st.sampled_from(["published", "tight"]),
    st.sampled_from(["exact", "bureau"]),
    entries(NAMES_OF_PHSAFE),
)
def test_every_number_of_phsafe_is_the_librarys(
    taus: dict[str, int],
    percent: str,
    mechanism: str,
    accounting: Accounting,
    margins: Margins,
    chosen: dict[str, Document],
) -> None:
    document = started("phsafe")
    document["fields"] |= {f"tau.{name}": str(tau) for name, tau in taus.items()}
    document["fields"] |= {"confidence": percent, "mechanism": mechanism, "accounting": accounting, "delta": "1e-8"}
    document["fields"]["margins"] = margins
    document["entries"] = chosen
    view = viewed("phsafe", document)
    confidence = Fraction(percent) / 100
    kind = {"zcdp": Mechanism.ZCDP, "puredp": Mechanism.PURE}[mechanism]
    budgets: dict[str, Fraction] = {}
    for name, entry in chosen.items():
        d = sensitivity_of(taus.get(name.partition("/")[0]), kind, accounting).unbounded
        budget = Fraction(entry["value"]) if entry["on"] else Fraction(0)
        if entry["on"] and entry["by"] == "margin":
            # Under zCDP the Bureau has a formula; other margins have none, and are checked below.
            z = Fraction(str(z_value(confidence)))
            shown = Fraction(view["entries"][name]["budget_exact"])
            by_formula = kind is Mechanism.ZCDP and margins == "bureau"
            budget = z * z * d / (2 * Fraction(entry["value"]) ** 2) if by_formula else shown
        budgets[name] = budget
    plan = plan_of(budgets, taus, kind, accounting=accounting, confidence=confidence, margins=margins)
    found = {m.name: plan.margin(m) for m in plan.measurements}
    same_numbers(view, plan, found, {m.name: Fraction(m.budget) for m in plan.measurements})
    for name, entry in chosen.items():
        if entry["on"] and entry["by"] == "margin":
            assert found[name] == pytest.approx(float(entry["value"]), rel=1e-9)
            assert margins == "bureau" or found[name] == int(entry["value"])
    if kind is Mechanism.ZCDP:
        assert total(view, "ε at δ = 1e-08") == repr(epsilon_tight(plan.loss(), 1e-8))


@pytest.fixture(scope="module")
def parameters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("safetab") / "parameters"
    write_parameters(folder)
    return folder


@settings(max_examples=4, suppress_health_check=list(HealthCheck))
@given(st.integers(1, 8), st.sampled_from(["95", "90"]), entries([level.name for level in LEVELS]))
def test_every_number_of_safetab_p_is_the_librarys(
    parameters: Path, codes: int, percent: str, chosen: dict[str, Document]
) -> None:
    document = started("safetab-p")
    document["fields"] |= {"race_codes": str(codes), "confidence": percent, "stage_1": "0.2"}
    document["entries"] = chosen
    view = viewed("safetab-p", document)
    config = config_of_export("safetab-p", document, parameters)
    assert config.settings.max_race_codes == codes
    plan = PERSONS.plan(Parameters(config, read_iterations(parameters)), confidence=Fraction(percent) / 100)
    cells = {m.level: m for m in plan.measurements if m.name.startswith("stage 2")}
    margins = {level: plan.margin(m) for level, m in cells.items()}
    budgets = {entry: Fraction(b) for entry, b in config.budgets.items() if b}
    same_numbers(view, plan, margins, budgets)
    for name, entry in chosen.items():
        if entry["on"] and entry["by"] == "margin":
            assert margins[name] == pytest.approx(float(entry["value"]), rel=1e-9)
        elif entry["on"]:
            assert budgets[name] == Fraction(entry["value"])


@settings(max_examples=4, suppress_health_check=list(HealthCheck))
@given(st.integers(1, 8), entries([asked.entry(level) for level in LEVELS for asked in QUESTIONS["safetab-h"]]))
def test_every_number_of_safetab_h_is_the_librarys(parameters: Path, codes: int, chosen: dict[str, Document]) -> None:
    document = started("safetab-h")
    document["fields"] |= {"race_codes": str(codes)}
    document["entries"] = chosen
    view = viewed("safetab-h", document)
    config = config_of_export("safetab-h", document, parameters)
    plan = HOUSEHOLDS.plan(Parameters(config, read_iterations(parameters)))
    budgets = {m.name: Fraction(m.budget) for m in plan.measurements}
    same_numbers(view, plan, {m.name: plan.margin(m) for m in plan.measurements}, budgets)
    s = max(2, codes) + 1
    for name, entry in chosen.items():
        if entry["on"] and entry["by"] == "margin":
            margin = Fraction(entry["value"])
            assert budgets[name] == budget_for_margin(margin, Fraction(s), Fraction(95, 100), Mechanism.ZCDP)


def config_of_export(product: str, document: Document, parameters: Path) -> Any:  # noqa: ANN401
    answered = CLIENT.post("/api/export", json={"product": product, "settings": document, "form": "configuration"})
    path = parameters / "exported.json"
    path.write_text(answered.json()["content"])
    return read_safetab(product, path)


@settings(max_examples=4, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_every_number_of_topdown_is_the_librarys(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    document = started("topdown-h1")
    document["entries"] = data.draw(entries(list(document["entries"])))
    for name in document["entries"]:
        document["entries"][name]["on"] = True  # an optimized spine needs every geolevel
    view = viewed("topdown-h1", document)
    answered = CLIENT.post("/api/export", json={"product": "topdown-h1", "settings": document})
    path = tmp_path_factory.mktemp("topdown") / answered.json()["filename"]
    path.write_text(answered.json()["content"])
    plan = make_topdown_plan(read_configuration(path))
    same_numbers(
        view,
        plan,
        {m.name: plan.margin(m) for m in plan.measurements},
        {m.name: Fraction(m.budget) for m in plan.measurements},
    )


def test_the_page_opens_with_the_production_of_2020(parameters: Path) -> None:
    iterations = read_iterations(parameters)
    plans = {
        "phsafe": production_plan(puerto_rico=False),
        "safetab-p": PERSONS.plan(Parameters(production_of_safetab("safetab-p", ("us", "pr")), iterations)),
        "safetab-h": HOUSEHOLDS.plan(Parameters(production_of_safetab("safetab-h", ("us", "pr")), iterations)),
        "topdown": make_topdown_plan(read_configuration("pl94-2020-us")),
        "topdown-h1": make_topdown_plan(read_configuration("h1-2020-us")),
    }
    for product, plan in plans.items():
        start = started(product)
        view = viewed(product, start)
        assert view["total"] == str(plan.loss())
        assert "No budget or margin differs" in json.dumps(view["sections"][-1])
    of_passes = viewed("safetab-h", started("safetab-h"))
    assert total(of_passes, "ρ, US") == str(Fraction("8.895302"))
    assert total(of_passes, "ρ, PR") == str(Fraction("4.754134"))
    assert of_passes["entries"]["T03/PR-STATE 2"]["share"] == "40.40%"  # of its own pass


def test_table_10_of_phsafe_comes_out_of_its_margins() -> None:
    document = started("phsafe")
    document["fields"]["margins"] = "bureau"
    for name in document["entries"]:
        moe = "500" if "usa" in name else "68" if name.endswith("A-G") else "200"
        moe = "20" if name == "PH3/state_A-G" else moe
        document["entries"][name] = {"on": True, "by": "margin", "value": moe}
    shown = viewed("phsafe", document)["entries"]
    published = {m.name: f"{float(m.budget):.6f}" for m in production_plan(puerto_rico=False).measurements}
    assert {name: entry["budget"] for name, entry in shown.items()} == published
    rounded = CLIENT.post("/api/solve", json={"product": "phsafe", "settings": document, "question": "round"}).json()
    assert viewed("phsafe", rounded["settings"])["total"] == "1257281/1000000"


def test_table_9_of_safetab_h_comes_out_of_its_margins() -> None:
    document = started("safetab-h")
    document["fields"]["margins"] = "bureau"
    targets = {"T03 1": "50", "T04 1": "50", "T03 2": "11", "T04 2": "11"}
    asked = {"product": "safetab-h", "settings": document, "question": "least", "targets": targets}
    document = CLIENT.post("/api/solve", json=asked).json()["settings"]
    for name in document["entries"]:
        if name.endswith(("USA 2", "/STATE 2", "PR-STATE 2")):
            document["entries"][name] = {"on": True, "by": "margin", "value": "3"}
    shown = viewed("safetab-h", document)["entries"]
    assert shown["T03/USA 2"]["budget"] == "1.920800"
    assert shown["T04/AIANNH 2"]["budget"] == "0.142869"
    assert shown["T03/PLACE 1"]["budget"] == "0.006915"
    rounded = CLIENT.post("/api/solve", json={"product": "safetab-h", "settings": document, "question": "round"}).json()
    assert total(viewed("safetab-h", rounded["settings"]), "ρ, US") == str(Fraction("8.895302"))


def test_a_total_is_spent_on_equal_relative_errors() -> None:
    document = started("phsafe")
    document["fields"]["margins"] = "bureau"
    asked = {"product": "phsafe", "settings": document, "question": "equal", "total": "2", "weights": {"usa_*": "2"}}
    found = CLIENT.post("/api/solve", json=asked).json()
    view = viewed("phsafe", found["settings"])
    assert view["total"] == "2"
    product = SHELF["phsafe"]
    sizes = product.sizes(None)  # type: ignore[arg-type]
    errors = {
        n: float(e["margin_exact"]) / float(sizes[n]) * (2 if n.endswith("usa_*") else 1)
        for n, e in view["entries"].items()
    }
    assert max(errors.values()) == pytest.approx(min(errors.values()), rel=1e-9)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("product", ["phsafe", "safetab-p", "safetab-h", "topdown", "topdown-h1"])
def test_the_exact_epsilon_is_that_of_any_run_and_comes_after_the_rest(product: str) -> None:
    chosen = started(product)
    chosen["fields"]["delta"] = "1e-9"
    label = "ε at δ = 1e-09, exact"
    first = viewed(product, chosen)
    assert next(n for n in first["numbers"] if n["label"] == label)["shown"] == "…"
    found = CLIENT.post("/api/exact", json={"product": product, "settings": chosen}).json()
    page = SHELF[product]
    config = page.choose(read_settings(chosen, page.start())).config
    exact = page.product.epsilon_exact(config, page.product.plan(config), 1e-9)
    assert total(found, label) == repr(exact)
    assert float(total(found, label)) < float(total(found, "ε at δ = 1e-09"))
    assert [n for n in found["numbers"] if n["label"] != label] == [n for n in first["numbers"] if n["label"] != label]
    assert [section["anchor"] for section in found["sections"]] == ["against"]
    assert label in found["sections"][0]["content"][0]["html"]
    if product.startswith("topdown"):
        at_most = epsilon_exact(page.product.plan(config), 1e-9)
        assert at_most is not None
        assert exact > at_most


def test_where_the_law_gives_no_bound_the_page_says_so() -> None:
    chosen = started("phsafe")
    for name in chosen["entries"]:
        chosen["entries"][name] |= {"on": name == "PH1_num/usa_*", "value": "500"}
    found = CLIENT.post("/api/exact", json={"product": "phsafe", "settings": chosen}).json()
    (number,) = (n for n in found["numbers"] if n["label"].endswith("exact"))
    assert (number["shown"], number["exact"]) == ("none", "")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("product", ["phsafe", "safetab-h", "topdown-h1"])
@pytest.mark.parametrize("question", ["equal", "scale"])
def test_a_total_may_be_an_epsilon(product: str, question: str) -> None:
    asked = {"product": product, "settings": started(product), "question": question, "total_epsilon": "7"}
    found = CLIENT.post("/api/solve", json=asked).json()
    exact = CLIENT.post("/api/exact", json={"product": product, "settings": found["settings"]}).json()
    assert 7 * (1 - 1e-5) < float(total(exact, "ε at δ = 1e-10, exact")) <= 7


def test_an_epsilon_that_is_none_is_refused_by_its_field() -> None:
    asked = {"product": "phsafe", "settings": started("phsafe"), "question": "equal"}
    for epsilon, told in (("-1", "above 0"), ("x", "must be a number"), ("1e-9", "between"), ("0", "above 0")):
        assert told in faults("/api/solve", **asked, total_epsilon=epsilon)["total_epsilon"]
    assert "not both" in faults("/api/solve", **asked, total_epsilon="4", total="1")["total_epsilon"]
    assert "must be a number" in faults("/api/solve", **asked)["total"]


def test_shares_and_totals_of_a_strategy_can_be_given() -> None:
    asked = {"product": "topdown", "settings": started("topdown"), "question": "shares", "shares": {"State": "20%"}}
    found = CLIENT.post("/api/solve", json=asked).json()["settings"]
    budgets = {n: Fraction(e["budget_exact"]) for n, e in viewed("topdown", found)["entries"].items() if e["on"]}
    whole = sum(budgets.values())
    assert whole == read_configuration("pl94-2020-us").budget
    assert sum(b for n, b in budgets.items() if n.startswith("State ")) == whole / 5
    old = read_configuration("pl94-2020-us").shares
    tract, block = (sum(b for n, b in budgets.items() if n.startswith(f"{level} ")) for level in ("Tract", "Block"))
    assert tract / block == old["Tract"] / old["Block"]
    asked = {"product": "topdown", "settings": found, "question": "scale", "total": "1"}
    assert viewed("topdown", CLIENT.post("/api/solve", json=asked).json()["settings"])["total"] == "1"
    assert "shares" in faults("/api/solve", product="topdown", settings=found, question="shares", shares={})
    too_much = {"State": "70", "Block": "40"}
    assert (
        "110" in faults("/api/solve", product="topdown", settings=found, question="shares", shares=too_much)["shares"]
    )


def test_a_total_is_spent_on_equal_relative_errors_of_average_geounits() -> None:
    for product in ("topdown", "topdown-h1", "topdown-pr", "topdown-h1-pr"):
        settings = started(product)
        settings["fields"]["margins"] = "bureau"
        asked = {"product": product, "settings": settings, "question": "equal", "total": "2.5"}
        view = viewed(product, CLIENT.post("/api/solve", json=asked).json()["settings"])
        assert view["total"] == "5/2"
        margins = {name: float(entry["margin_exact"]) for name, entry in view["entries"].items() if entry["on"]}
        records = 928_692 if "h1" not in product else 407_530
        errors = [margins["State detailed"] / records, margins["Block detailed"] / (records / 18_908)]
        assert errors[0] == pytest.approx(errors[1])


@pytest.mark.parametrize(
    ("product", "change", "field"),
    [
        ("phsafe", {"fields": {"confidence": "100"}}, "confidence"),
        ("phsafe", {"fields": {"confidence": "0"}}, "confidence"),
        ("phsafe", {"fields": {"confidence": "-90"}}, "confidence"),
        ("phsafe", {"fields": {"confidence": "99.99999999999999999999"}}, "confidence"),
        ("phsafe", {"fields": {"confidence": "1e-30"}}, "confidence"),
        ("phsafe", {"fields": {"delta": "0.99999999999999999999"}}, "delta"),
        ("phsafe", {"fields": {"confidence": "ninety"}}, "confidence"),
        ("phsafe", {"fields": {"delta": "0"}}, "delta"),
        ("phsafe", {"fields": {"delta": "1"}}, "delta"),
        ("phsafe", {"fields": {"delta": "1e-999"}}, "delta"),
        ("phsafe", {"fields": {"mechanism": "none"}}, "mechanism"),
        ("phsafe", {"fields": {"tau.PH3": "0"}}, "tau.PH3"),
        ("phsafe", {"fields": {"tau.PH3": "2.5"}}, "tau.PH3"),
        ("phsafe", {"fields": {"tau.PH3": "-1"}}, "tau.PH3"),
        ("phsafe", {"fields": {"tau.PH3": "100000"}}, "tau.PH3"),
        ("phsafe", {"fields": {"shown": "PH9 1"}}, "shown"),
        ("phsafe", {"entries": {"PH2/usa_*": {"on": True, "by": "budget", "value": "0"}}}, "PH2/usa_*"),
        ("phsafe", {"entries": {"PH2/usa_*": {"on": True, "by": "budget", "value": "-1"}}}, "PH2/usa_*"),
        ("phsafe", {"entries": {"PH2/usa_*": {"on": True, "by": "budget", "value": ""}}}, "PH2/usa_*"),
        ("phsafe", {"entries": {"PH2/usa_*": {"on": True, "by": "budget", "value": "Infinity"}}}, "PH2/usa_*"),
        ("phsafe", {"entries": {"PH2/usa_*": {"on": True, "by": "budget", "value": "1e999"}}}, "PH2/usa_*"),
        ("phsafe", {"entries": {"PH2/usa_*": {"on": True, "by": "budget", "value": "1/0"}}}, "PH2/usa_*"),
        ("phsafe", {"entries": {"PH2/usa_*": {"on": True, "by": "margin", "value": "0"}}}, "PH2/usa_*"),
        ("phsafe", {"entries": {"PH2/usa_*": {"on": True, "by": "margin", "value": "1e-16"}}}, "PH2/usa_*"),
        ("phsafe", {"fields": {"margins": "about"}}, "margins"),
        ("phsafe", {"entries": {"PH2/usa_*": {"on": True, "by": "margin", "value": "1e999"}}}, "PH2/usa_*"),
        ("phsafe", {"entries": {"PH2/usa_*": {"on": True, "by": "margin", "value": "1e14"}}}, "PH2/usa_*"),
        ("phsafe", {"entries": {"PH2/usa_*": {"on": "yes", "by": "margin", "value": "5"}}}, "PH2/usa_*"),
        ("phsafe", {"entries": {"PH2/usa_*": {"on": True, "by": "guess", "value": "5"}}}, "PH2/usa_*"),
        ("phsafe", {"fields": {"tau.PH9": "3"}}, ""),
        ("phsafe", {"entries": {"PH9/usa_*": {"on": True, "by": "budget", "value": "1"}}}, ""),
        ("safetab-h", {"fields": {"race_codes": "9"}}, "race_codes"),
        ("safetab-h", {"fields": {"race_codes": "0"}}, "race_codes"),
        ("safetab-h", {"fields": {"t3.COUNTY 2": "5, 4, 3"}}, "t3.COUNTY 2"),
        ("safetab-h", {"fields": {"t3.COUNTY 2": "5, 6"}}, "t3.COUNTY 2"),
        ("safetab-h", {"fields": {"t4.COUNTY 2": "-5"}}, "t4.COUNTY 2"),
        ("safetab-p", {"fields": {"stage_1": "0"}}, "stage_1"),
        ("safetab-p", {"fields": {"stage_1": "1"}}, "stage_1"),
        ("safetab-p", {"fields": {"stage_1": "1/3"}}, "stage_1"),
        ("safetab-p", {"fields": {"zero": "1.5"}}, "zero"),
        ("topdown", {"fields": {"confidence": ""}}, "confidence"),
        ("topdown", {"entries": {"US cenrace": {"on": True, "by": "margin", "value": "-4"}}}, "US cenrace"),
    ],
)
def test_what_cannot_be_is_refused_by_its_field(product: str, change: Document, field: str) -> None:
    document = started(product)
    for part, values in change.items():
        document[part] |= values
    assert field in faults("/api/view", product=product, settings=document)


def test_nothing_switched_on_is_refused() -> None:
    for product in SHELF:
        document = started(product)
        for entry in document["entries"].values():
            entry["on"] = False
        assert "nothing is switched on" in faults("/api/view", product=product, settings=document)[""]


@pytest.mark.parametrize("body", ["", "[]", "3", "{", '"x"', "\ud800".encode("utf-8", "surrogatepass"), "[" * 100_000])
def test_requests_that_are_none_are_refused(body: str | bytes) -> None:
    headers = {"Content-Type": "application/json"}
    for path in ("/api/view", "/api/solve", "/api/save", "/api/load", "/api/export"):
        answered = CLIENT.post(path, content=body, headers=headers)
        assert answered.json()["faults"]


def test_questions_that_are_none_are_refused_by_their_field() -> None:
    document = {"product": "phsafe", "settings": started("phsafe")}
    assert "question" in faults("/api/solve", **document, question="why")
    assert "targets" in faults("/api/solve", **document, question="least", targets={})
    assert "target.usa_*" in faults("/api/solve", **document, question="least", targets={"usa_*": "-5"})
    assert "target.usa_*" in faults("/api/solve", **document, question="least", targets={"usa_*": "1e-9"})
    for wrong in ("", "0", "-1", "lots", "1e99", "Infinity"):
        assert "total" in faults("/api/solve", **document, question="equal", total=wrong)
    assert "weight.usa_*" in faults("/api/solve", **document, question="equal", total="1", weights={"usa_*": "0"})
    assert "name" in faults("/api/save", **document, name="")
    assert "product" in faults("/api/view", product="nothing", settings={})


def test_a_scenario_comes_back_as_it_was_saved() -> None:
    for product in SHELF:
        document = started(product)
        name = next(iter(document["entries"]))
        document["entries"][name] = {"on": True, "by": "margin", "value": "123.5"}
        saved = CLIENT.post("/api/save", json={"product": product, "settings": document, "name": "Öffentlich 1"}).json()
        assert saved["filename"].endswith(f".{product}.json")
        loaded = CLIENT.post("/api/load", json={"text": saved["content"]}).json()
        assert loaded == {"product": product, "name": "Öffentlich 1", "settings": document, "said": ""}


def test_an_edited_or_stale_scenario_is_told() -> None:
    saved = CLIENT.post("/api/save", json={"product": "phsafe", "settings": started("phsafe"), "name": "x"}).json()
    document = json.loads(saved["content"])
    other = json.loads(saved["content"])
    other["settings"]["entries"]["PH2/usa_*"]["value"] = "0.5"
    assert "edited" in CLIENT.post("/api/load", json={"text": json.dumps(other)}).json()["said"]
    other["settings"]["entries"]["PH2/usa_*"]["value"] = "-0.5"
    loaded = CLIENT.post("/api/load", json={"text": json.dumps(other)}).json()
    assert "edited" in loaded["said"]
    assert "PH2/usa_*" in faults("/api/view", product="phsafe", settings=loaded["settings"])
    del other["settings"]["entries"]["PH2/usa_*"]
    assert "is missing" in faults("/api/load", text=json.dumps(other))["file"]
    for wrong in (
        "",
        "{",
        "[]",
        "{}",
        json.dumps({**document, "format": "yupana-scenario-0"}),
        json.dumps({**document, "product": "other"}),
        json.dumps({**document, "product": ["phsafe"]}),
        json.dumps({**document, "settings": 3}),
        json.dumps({**document, "settings": {"fields": {}, "entries": []}}),
        json.dumps({**document, "total": 3}),
        "[" * 100_000,
    ):
        assert "file" in faults("/api/load", text=wrong)
    assert "name" in faults("/api/load", text=json.dumps({**document, "name": "two\nlines"}))


def test_two_scenarios_stand_side_by_side() -> None:
    document, other = started("phsafe"), started("phsafe")
    other["entries"]["PH2/usa_*"] = {"on": True, "by": "budget", "value": "0.5"}
    other["entries"]["PH6/usa_*"]["on"] = False
    against = {"name": "<b>bold</b>", "settings": other}
    section = viewed("phsafe", document, against=against)["sections"][-1]
    html = "".join(part["html"] for part in section["content"])
    assert "<b>bold" not in html
    assert "&lt;b&gt;bold" in html
    assert "0.500000" in html
    assert "not measured" in html
    other["entries"]["PH2/usa_*"]["value"] = "none"
    assert "against" in faults("/api/view", product="phsafe", settings=document, against=against)


def test_an_exported_configuration_runs_unchanged(tmp_path: Path) -> None:
    document = started("phsafe")
    document["entries"]["PH2/usa_*"] = {"on": True, "by": "margin", "value": "77"}
    document["fields"]["tau.PH3"] = "4"
    exported = CLIENT.post("/api/export", json={"product": "phsafe", "settings": document}).json()
    assert exported["filename"] == "config.json"
    path, census, out = tmp_path / "config.json", tmp_path / "census", tmp_path / "out"
    path.write_text(exported["content"])
    assert viewed("phsafe", document)["total"] == str(PHSAFE.plan(read_config(path)).loss())
    assert main(["synth", str(census), "--households", "300", "--seed", "1"]) == 0
    assert main(["phsafe", "run", str(path), str(census), str(out)]) == 0
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["plan"]["totals"]["rho"] == viewed("phsafe", document)["total"]
    assert manifest["parameters"]["tau"]["PH3"] == 4


def test_a_csv_holds_the_plan() -> None:
    asked = {"product": "phsafe", "settings": started("phsafe"), "form": "csv", "name": "../a b"}
    exported = CLIENT.post("/api/export", json=asked).json()
    assert exported["filename"] == "a-b.phsafe.csv"
    rows = list(csv.DictReader(io.StringIO(exported["content"])))
    plan = production_plan(puerto_rico=False)
    assert [row["MEASUREMENT"] for row in rows] == [m.name for m in plan.measurements]
    assert all(Fraction(row["RHO_EXACT"]) == m.budget for row, m in zip(rows, plan.measurements, strict=True))
    assert all(float(row["MOE_90"]) == plan.margin(m) for row, m in zip(rows, plan.measurements, strict=True))


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1:9"}, 421),
        ({"Host": f"127.0.0.1.evil.example:{PORT}"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": f"https://127.0.0.1:{PORT}"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": f"http://127.0.0.1:{PORT}", "Sec-Fetch-Site": "same-origin"}, 200),
        ({"Host": f"localhost:{PORT}"}, 200),
    ],
)
def test_only_the_page_itself_may_ask(headers: dict[str, str], status: int) -> None:
    assert CLIENT.get("/api/products", headers=headers).status_code == status
    body = {"product": "phsafe", "settings": started("phsafe")}
    assert CLIENT.post("/api/view", json=body, headers=headers).status_code == status


def test_a_form_of_another_site_cannot_post() -> None:
    assert CLIENT.post("/api/view", content="{}", headers={"Content-Type": "text/plain"}).status_code == 415
    assert CLIENT.post("/api/view", data={"a": "b"}).status_code == 415
    long = {"Content-Type": "application/json", "Content-Length": "99999999"}
    assert CLIENT.post("/api/view", content=b"{}", headers=long).status_code == 413


@pytest.mark.parametrize(
    "path",
    [
        "/../pyproject.toml",
        "/static/index.html",
        "/%2e%2e/server.py",
        "/server.py",
        "/etc/passwd",
        "/reference/phsafe.json",
        "/docs",
        "/openapi.json",
        "/api/products/..%2f",
        "//etc/passwd",
    ],
)
def test_no_other_file_is_served(path: str) -> None:
    assert CLIENT.get(path).status_code == 404


def test_every_file_of_the_page_is_served_with_a_strict_policy() -> None:
    for path in (
        "/",
        "/style.css",
        "/report.css",
        "/explorer.js",
        "/grid.js",
        "/charts.js",
        "/server.js",
        "/favicon.ico",
    ):
        answered = CLIENT.get(path)
        assert answered.status_code == 200
        policy = answered.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert answered.headers["x-content-type-options"] == "nosniff"
        assert "https://" not in answered.text
    assert len(CLIENT.get("/").content) < 20_000


@pytest.mark.parametrize(
    "law",
    [
        DiscreteGaussian(Fraction(9)),
        DiscreteGaussian(Fraction(10**5)),
        TwoSidedGeometric(Fraction(40)),
        DiscreteGaussian(Fraction(9 * 10**6)),
    ],
)
def test_expected_tables_are_those_of_the_law(law: DiscreteGaussian | TwoSidedGeometric) -> None:
    sizes, thresholds = [(1, 3), (40, 2), (100, 1), (70_000, 4)], (50, 50, 60_000)
    chances = [[1 - law.cdf(t - size - 1) for t in thresholds] for size, _ in sizes]
    reached = [sum(n * c[i] for (_, n), c in zip(sizes, chances, strict=True)) for i in range(3)]
    wanted = [10 - reached[0], reached[0] - reached[1], reached[1] - reached[2], reached[2]]
    assert expected_tables(sizes, thresholds, law) == pytest.approx(wanted, abs=1e-6)
    assert expected_tables(sizes, thresholds, None) == [5, 0, 1, 4]


def test_least_squares_errors_are_smaller_on_the_optimized_spine_for_areas_nearer_to_it() -> None:
    configuration, here = read_configuration("pl94-2020-us"), blocks()
    errors = {kind: spine_errors(configuration, kind, here) for kind in ("conventional", "aian", "optimized")}
    assert errors["optimized"].entities["place"][0] < errors["conventional"].entities["place"][0]
    assert errors["optimized"].entities["aiannh"][0] < errors["conventional"].entities["aiannh"][0]
    assert errors["conventional"].units["State"] < 1e-3  # an invariant
    assert errors["aian"].units["US"] < 1e-3
    assert errors["aian"].units["State"] > 1e-2  # of a side of the state, whose total is not known alone
    (total,) = configuration.invariants["State"]
    with pytest.raises(ConfigError, match="so its total cannot be kept"):
        spine_errors(replace(configuration, invariants={"Tract": (total,)}), "aian", here)
    spine = _spine(configuration.spine, here)
    place = published(here.reference)[0]
    order = {block: i for i, block in enumerate(here.reference.block.tolist())}
    at = [order[block] for block in spine.blocks.tolist()]
    assert len(distances(spine.tree, partition(place.index[at], len(place.labels)))) == len(place.labels)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--counts", "{}/nowhere"], "nowhere"),
        (["--parameters", "{}/nowhere"], "does not exist"),
        (["--topdown", "{}/nowhere.toml"], "no such file"),
        (["--port", "{port}"], "cannot be used"),
    ],
)
def test_what_cannot_be_served_is_refused_at_the_start(
    arguments: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        given = [argument.format(tmp_path, port=port) for argument in arguments]
        assert main(["explore", "--no-browser", *given]) == 2
    assert told in capsys.readouterr().err


def test_counts_of_a_release_take_the_place_of_the_invented(tmp_path: Path) -> None:
    census, out, config = tmp_path / "census", tmp_path / "out", tmp_path / "config.json"
    config.write_text(json.dumps(production_config()))
    assert main(["synth", str(census), "--households", "300", "--seed", "1"]) == 0
    assert main(["phsafe", "run", str(config), str(census), str(out)]) == 0
    product = Pages(counts=out)["phsafe"]
    start = product.start()
    html = str(product.sections(start, product.choose(start))[3].content[0])
    assert "the release out" in html


def test_a_configuration_of_ones_own_is_shown_too() -> None:
    shelf = Pages(topdown="cook-2010")
    assert list(shelf)[-1] == "topdown-own"
    product = shelf["topdown-own"]
    assert product.choose(product.start()).plan.loss() == read_configuration("cook-2010").budget


def test_puerto_rico_is_not_set_against_counts_of_the_states() -> None:
    document = started("phsafe")
    document["fields"]["area"] = "pr"
    found = CLIENT.post("/api/solve", json={"product": "phsafe", "settings": document, "question": "production"}).json()
    view = viewed("phsafe", found["settings"])
    assert view["total"] == str(production_plan(puerto_rico=True).loss())
    assert "No counts of this table" in json.dumps(view["sections"][3])


EXTREMES = st.one_of(
    st.builds(lambda v: {"by": "budget", "value": v}, st.sampled_from(["1e-15", "1e15", "1e-9", "1e9", "3/7"])),
    st.builds(lambda v: {"by": "margin", "value": v}, st.sampled_from(["1e-7", "0.01", "1e6", "1e12"])),
)


@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_whatever_can_be_computed_can_be_shown(data: st.DataObject) -> None:
    """Noise from none to more than there are people: an answer, or a fault by its field, and never a broken page."""
    product = data.draw(st.sampled_from(list(SHELF)))
    document = started(product)
    fields = document["fields"]
    fields["confidence"] = data.draw(st.sampled_from(["1", "90", "99.999999"]))
    fields["delta"] = data.draw(st.sampled_from(["1e-300", "0.999", "1e-10"]))
    if "mechanism" in fields:
        fields["mechanism"] = data.draw(st.sampled_from(["zcdp", "puredp"]))
        fields["accounting"] = data.draw(st.sampled_from(["published", "tight"]))
    if "race_codes" in fields:
        fields["race_codes"] = data.draw(st.sampled_from(["1", "8"]))
    for key in fields:
        if key.startswith("tau."):
            fields[key] = data.draw(st.sampled_from(["1", "99999"]))
    alike, every = data.draw(EXTREMES), data.draw(st.integers(1, 9))
    for place, name in enumerate(document["entries"]):
        document["entries"][name] = {"on": place % every == 0, **(data.draw(EXTREMES) if place < 5 else alike)}
    answered = CLIENT.post("/api/view", json={"product": product, "settings": document})
    assert answered.status_code == 200
    if "faults" in answered.json():
        assert all(fault["message"] for fault in answered.json()["faults"])
        return
    for question in ("round", "scale"):
        asked = {"product": product, "settings": document, "question": question, "total": "1"}
        assert CLIENT.post("/api/solve", json=asked).status_code == 200
    assert CLIENT.post("/api/export", json={"product": product, "settings": document}).status_code == 200
