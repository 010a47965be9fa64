"""The explorer's server: every number is the library's, and what cannot be is refused by its field."""

import asyncio
import csv
import io
import json
import math
import socket
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plans import plan_of, production_plan

import yupana
from yupana.audit.certificate import PlanNoise
from yupana.audit.tradeoff import zcdp_guess
from yupana.cli.main import main
from yupana.errors import ConfigError
from yupana.geography.distance import distances
from yupana.geography.entities import published
from yupana.geography.tree import partition
from yupana.plan.account import Unit
from yupana.plan.budgets import budget_for_margin, equal_errors
from yupana.plan.measurement import Accounting, Margins, Mechanism, published_variance, z_value
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
from yupana.topdown.plan import make_plan as make_topdown_plan
from yupana.topdown.reading.configuration import read_configuration

pytest.importorskip("fastapi", reason="the explorer's server is not installed: explore")

import httpx

from yupana.explore.consequences import expected_tables
from yupana.explore.effects import unreliable_counts
from yupana.explore.products import Pages
from yupana.explore.reference import blocks
from yupana.explore.scenario import read_settings
from yupana.explore.server import make_app
from yupana.explore.spines import _spine, spine_errors

PORT = 8080
SHELF = Pages(tables="people-and-homes")
APP = make_app(SHELF, PORT)
OF_PHSAFE, OF_P, OF_H = "phsafe/s-dhc-2020-us", "safetab-p/ddhc-2020-us", "safetab-h/ddhc-2020-us"
OF_TOPDOWN, OF_UNITS, OF_TABLES = "topdown/pl94-2020-us", "topdown/h1-2020-us", "tables-own"
EVERY = (OF_PHSAFE, OF_P, OF_H, OF_TOPDOWN, OF_UNITS, OF_TABLES)


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


def asked(path: str, **body: object) -> Document:
    answered = CLIENT.post(path, json=body)
    assert "faults" not in answered.json(), answered.text
    return dict(answered.json())


def viewed(product: str, chosen: Document) -> Document:
    return asked("/api/view", product=product, settings=chosen)


def solved(product: str, chosen: Document, question: str, value: str = "", **more: object) -> Document:
    return asked("/api/solve", product=product, settings=chosen, question=question, value=value, **more)


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
    """What is shown against the library's plan: totals, budgets, margins, and chances of a guess, in full."""
    symbol = "ρ" if plan.mechanism is Mechanism.ZCDP else "ε"
    assert view["total"] == str(plan.loss())
    assert total(view, f"{symbol}, bounded") == str(plan.loss(lambda m: m.sensitivity.bounded))
    unbounded = plan.losses()["unbounded"]
    labels = {number["label"] for number in view["numbers"]}
    assert (f"{symbol}, unbounded" in labels) == (unbounded is not None)
    for name, shown in view["entries"].items():
        if name in budgets:
            assert Fraction(shown["budget_exact"]) == budgets[name]
            assert shown["margin_exact"] == repr(margins[name])
        else:
            assert not shown["on"]
            assert shown["budget"] == shown["margin"] == ""
    kind = plan.neighbours.value
    guess = 100 * PlanNoise(plan, adaptive=plan.product == "safetab-p").guess(
        plan.loss(lambda m: getattr(m.proven, kind))
    )
    assert guess - 1e-9 <= float(view["words"][0]["guess"].rstrip("%")) <= guess + 0.1
    curve, (at, here) = view["frontier"]["curve"], view["frontier"]["here"]
    assert at == float(plan.loss())
    assert all(later <= error * (1 + 1e-12) for (_, error), (_, later) in pairwise(curve))
    best = view["frontier"]["best"]
    assert best is None or best <= here * (1 + 1e-9)


NAMES_OF_PHSAFE = [f"{t.name}/{level.name}" for t in TABLES for level in t.levels]


@settings(max_examples=4, suppress_health_check=[HealthCheck.large_base_example, HealthCheck.data_too_large])
@given(
    st.fixed_dictionaries({name: st.integers(1, 60) for name in TAUS}),
    st.sampled_from(["90", "95", "99.5", "80.1"]),
    st.sampled_from(["zcdp", "puredp"]),
    st.sampled_from(["published", "tight"]),
    st.sampled_from(["exact", "bureau"]),
    entries(NAMES_OF_PHSAFE),
)
@pytest.mark.thorough
def test_every_number_of_phsafe_is_the_librarys(
    taus: dict[str, int],
    percent: str,
    mechanism: str,
    accounting: Accounting,
    margins: Margins,
    chosen: dict[str, Document],
) -> None:
    document = started(OF_PHSAFE)
    document["fields"] |= {f"tau.{name}": str(tau) for name, tau in taus.items()}
    document["fields"] |= {"confidence": percent, "privacy_defn": mechanism, "accounting": accounting, "delta": "1e-8"}
    document["fields"]["margins"] = margins
    document["entries"] |= chosen
    view = viewed(OF_PHSAFE, document)
    confidence = Fraction(percent) / 100
    kind = {"zcdp": Mechanism.ZCDP, "puredp": Mechanism.PURE}[mechanism]
    budgets: dict[str, Fraction] = {}
    for name, entry in chosen.items():
        d = sensitivity_of(taus.get(name.partition("/")[0]), kind, accounting).unbounded
        budget = Fraction(entry["value"]) if entry["on"] else Fraction(0)
        if entry["on"] and entry["by"] == "margin":
            budget = budget_for_margin(Fraction(entry["value"]), d, confidence, kind, margins)
        budgets[name] = budget
    plan = plan_of(budgets, taus, kind, accounting=accounting, confidence=confidence, margins=margins)
    found = {m.name: plan.margin(m) for m in plan.measurements}
    same_numbers(view, plan, found, {m.name: Fraction(m.budget) for m in plan.measurements})
    if kind is Mechanism.ZCDP:
        assert total(view, "ε at δ = 1e-08") == repr(epsilon_tight(plan.loss(), 1e-8))
    known = SHELF[OF_PHSAFE].known(SHELF[OF_PHSAFE].config)
    small = sum(n * (2 * found[e] > c) for e in found for c, n in zip(known[e].counts, known[e].numbers, strict=True))
    assert view["unreliable"]["unreliable"] == small


@pytest.fixture(scope="module")
def parameters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("safetab") / "parameters"
    write_parameters(folder)
    return folder


@settings(max_examples=3, suppress_health_check=list(HealthCheck))
@given(st.data())
@pytest.mark.thorough
def test_every_number_of_other_products_is_the_librarys(parameters: Path, data: st.DataObject) -> None:
    key = data.draw(st.sampled_from([OF_P, OF_H, OF_UNITS, OF_TABLES]))
    document = started(key)
    document["entries"] = data.draw(entries(list(document["entries"])))
    if key == OF_UNITS:
        for name in document["entries"]:
            document["entries"][name]["on"] = True  # an optimized spine needs every geolevel
    if "max_race_codes" in document["fields"]:
        document["fields"]["max_race_codes"] = str(data.draw(st.integers(1, 8)))
    view = viewed(key, document)
    exported = asked("/api/export", product=key, settings=document)
    path = parameters / exported["filename"]
    path.write_text(exported["content"])
    plan: Plan
    if key in (OF_P, OF_H):
        product = PERSONS if key == OF_P else HOUSEHOLDS
        plan = product.plan(Parameters(read_safetab(product.key, path), read_iterations(parameters)))
    else:
        plan = yupana.plan("topdown" if key == OF_UNITS else "tables", path)
    page = SHELF[key]
    cells = [m for m in plan.measurements if m.table != "stage 1" and not m.name.startswith("detailed-only")]
    margins = {page.product.entry_of(m): plan.margin(m) for m in cells}
    config = page.choose(read_settings(document, page.start)).config
    budgets = {n: Fraction(e.budget) for n, e in page.product.entries(config).items() if e.budget}
    same_numbers(view, plan, margins, budgets)
    for name, entry in document["entries"].items():
        if entry["on"] and entry["by"] == "budget":
            assert budgets[name] == Fraction(entry["value"])
        elif entry["on"]:
            assert margins[name] == float(entry["value"])


@pytest.mark.thorough
def test_the_page_opens_with_each_configuration_as_it_is(parameters: Path) -> None:
    iterations = read_iterations(parameters)
    plans = {
        OF_PHSAFE: production_plan(puerto_rico=False),
        "phsafe/s-dhc-2020-pr": production_plan(puerto_rico=True),
        OF_P: PERSONS.plan(Parameters(production_of_safetab("safetab-p", ("us",)), iterations)),
        OF_H: HOUSEHOLDS.plan(Parameters(production_of_safetab("safetab-h", ("us",)), iterations)),
        OF_TOPDOWN: make_topdown_plan(read_configuration("pl94-2020-us")),
        OF_UNITS: make_topdown_plan(read_configuration("h1-2020-us")),
        OF_TABLES: yupana.plan("tables", "people-and-homes"),
    }
    for key, plan in plans.items():
        assert viewed(key, started(key))["total"] == str(plan.loss())
    for key in SHELF:
        form = CLIENT.get(f"/api/products/{key}").json()
        assert {entry["table"] for entry in form["entries"]} == set(form["tables"])
        assert {entry["level"] for entry in form["entries"]} == set(form["levels"])
        assert {field["key"] for field in form["fields"]} == set(form["settings"]["fields"])


def test_parts_of_a_document_are_forms_of_their_own() -> None:
    shelf = Pages(topdown="pl94-2020-us-whole")
    own = [key for key in shelf if key.startswith("topdown-own/")]
    assert len(own) == 2
    units = {page.product.plan(page.config).privacy_unit for page in map(shelf.__getitem__, own)}
    assert units == {"person record", "housing unit"}


def test_options_of_the_document_decide_the_plan_and_budgets_are_none_of_them() -> None:
    fields = {key: set(started(key)["fields"]) for key in EVERY}
    assert {f"tau.{name}" for name in TAUS} | {"privacy_defn", "accounting"} <= fields[OF_PHSAFE]
    assert {"max_race_codes", "zero_suppression_chance", 'thresholds_p."(COUNTY, 2)"'} <= fields[OF_P]
    assert {"spine.kind", "spine.bypass_cutoff"} <= fields[OF_TOPDOWN]
    assert "mechanism" not in fields[OF_TOPDOWN]  # its total would need another name, so it is not offered
    assert "tables.tenure.limit.most" in fields[OF_TABLES]
    assert not [key for of in fields.values() for key in of if "level_1" in key or key.startswith(("rho", "shares"))]


def test_table_10_of_phsafe_comes_out_of_its_margins() -> None:
    document = started(OF_PHSAFE)
    document["fields"]["margins"] = "bureau"
    for name in document["entries"]:
        moe = "500" if "usa" in name else "68" if name.endswith("A-G") else "200"
        moe = "20" if name == "PH3/state_A-G" else moe
        document["entries"][name] = {"on": True, "by": "margin", "value": moe}
    shown = viewed(OF_PHSAFE, document)["entries"]
    published_budgets = {m.name: f"{float(m.budget):.6f}" for m in production_plan(puerto_rico=False).measurements}
    assert {name: entry["budget"] for name, entry in shown.items()} == published_budgets
    assert solved(OF_PHSAFE, document, "round")["view"]["total"] == "1257281/1000000"


def test_shares_and_totals_can_be_given() -> None:
    document = started(OF_TOPDOWN)
    of_state = [name for name in document["entries"] if name.startswith("State ")]
    found = solved(OF_TOPDOWN, document, "share", "20%", names=of_state)
    budgets = {n: Fraction(e["budget_exact"]) for n, e in found["view"]["entries"].items() if e["on"]}
    whole = sum(budgets.values())
    assert whole == read_configuration("pl94-2020-us").budget
    assert sum(budgets[name] for name in of_state) == whole / 5
    old = read_configuration("pl94-2020-us").shares
    tract, block = (sum(b for n, b in budgets.items() if n.startswith(f"{level} ")) for level in ("Tract", "Block"))
    assert tract / block == old["Tract"] / old["Block"]
    for share in ("7.3", "1/3", "99.999", "44"):  # numbers grow long, and the total is kept
        found = solved(OF_TOPDOWN, found["settings"], "share", share, names=of_state)
        assert Fraction(found["view"]["total"]) == whole
    assert solved(OF_TOPDOWN, found["settings"], "total", "1")["view"]["total"] == "1"
    for value in ("100", "0", "-3", "x", ""):
        body = {"product": OF_TOPDOWN, "settings": document, "question": "share", "value": value}
        assert "share" in faults("/api/solve", **body, names=of_state)
    for names in ([], ["nothing"], "x", [3], list(document["entries"])):
        body = {"product": OF_TOPDOWN, "settings": document, "question": "share", "value": "3"}
        assert "share" in faults("/api/solve", **body, names=names)


@pytest.mark.parametrize("key", EVERY)
@pytest.mark.thorough
def test_what_is_found_is_the_librarys(key: str) -> None:
    document = started(key)
    document["fields"]["margins"] = "bureau"
    page = SHELF[key]
    chosen = page.choose(read_settings(document, page.start))
    before = viewed(key, document)["frontier"]
    equal = solved(key, document, "equal")["view"]
    z = z_value(chosen.plan.confidence)
    sizes = {n: chosen.known[n].typical if chosen.known else Fraction(1) for n in chosen.entries}
    least = equal_errors(chosen.entries, sizes, Fraction(chosen.plan.loss()), chosen.plan.mechanism)
    name, entry = next(iter(chosen.entries.items()))
    law = chosen.plan.mechanism.law(entry.sensitivity, least[name] * entry.share)
    error = math.sqrt(published_variance(law)) / float(sizes[name])
    assert equal["total"] == str(chosen.plan.loss())
    assert equal["frontier"]["here"][1] == pytest.approx(z * error) == pytest.approx(before["best"])
    cheap = solved(key, document, "least")["view"]
    assert cheap["frontier"]["here"][1] == pytest.approx(before["here"][1])
    assert cheap["frontier"]["here"][0] < before["here"][0]
    product, _, source = ("tables", "", "people-and-homes") if key == OF_TABLES else key.partition("/")
    if not product.startswith("safetab"):
        strategy = yupana.strategy(source, product=product)
        due = {n: e.budget for n, e in page.product.entries(strategy.found).items() if e.budget}
        found = solved(key, document, "sum")
        assert {n: Fraction(e["budget_exact"]) for n, e in found["view"]["entries"].items() if e["on"]} == due
        assert Fraction(found["view"]["total"]) <= Fraction(chosen.plan.loss())


@pytest.mark.parametrize("key", [OF_PHSAFE, OF_H, OF_UNITS, OF_TABLES])
@pytest.mark.slow
def test_the_exact_epsilon_and_losses_of_attributes_come_after_the_rest(key: str) -> None:
    document = started(key)
    document["fields"]["delta"] = "1e-9"
    found = asked("/api/exact", product=key, settings=document)
    page = SHELF[key]
    chosen = page.choose(read_settings(document, page.start))
    exact = page.product.epsilon_exact(chosen.config, page.product.plan(chosen.config), 1e-9)
    assert found["exact"]["exact"] == repr(exact)
    assert found["attributes"]
    for one in found["attributes"]:
        due = 100 * zcdp_guess(Fraction(one["exact"]))
        assert due - 1e-9 <= float(one["guess"].rstrip("%")) <= due + 0.1 or one["guess"] == "100%"
    if key == OF_PHSAFE:
        moved = PHSAFE.by_attribute(chosen.plan, {"tau": TAUS})
        assert {one["name"]: Fraction(one["exact"]) for one in found["attributes"]} == dict(moved)
        household = Unit("household", 4).losses(chosen.plan)["unbounded"]
        assert household is not None
        assert household > 20
        assert viewed(key, document)["words"][1]["guess"] == "100%"
    assert all(len(set(map(len, one["columns"].values()))) == 1 for one in found["consequences"])


@pytest.mark.slow
def test_a_total_may_be_an_epsilon() -> None:
    found = solved(OF_UNITS, started(OF_UNITS), "epsilon", "7")
    exact = asked("/api/exact", product=OF_UNITS, settings=found["settings"])["exact"]["exact"]
    assert 7 * (1 - 1e-5) < float(exact) <= 7
    for epsilon, told in (("-1", "above 0"), ("x", "must be a number"), ("1e-9", "between"), ("0", "above 0")):
        body = {"product": OF_PHSAFE, "settings": started(OF_PHSAFE), "question": "epsilon", "value": epsilon}
        assert told in faults("/api/solve", **body)["epsilon"]


def test_where_the_law_gives_no_bound_the_page_says_so() -> None:
    chosen = started(OF_PHSAFE)
    for name in chosen["entries"]:
        chosen["entries"][name] |= {"on": name == "PH1_num/usa_*", "value": "500"}
    number = asked("/api/exact", product=OF_PHSAFE, settings=chosen)["exact"]
    assert (number["shown"], number["exact"]) == ("none", "")


@pytest.mark.slow
def test_budgets_from_next_to_nothing_to_next_to_no_noise_do_not_overflow() -> None:
    document = started(OF_TOPDOWN)
    for place, name in enumerate(document["entries"]):
        document["entries"][name] = {"on": True, "by": "budget", "value": "1e15" if place == 4 else "1e-15"}
    document["fields"] |= {"confidence": "1", "delta": "0.999"}
    assert asked("/api/exact", product=OF_TOPDOWN, settings=document)["exact"]["shown"] == "none"


def test_tables_and_areas_that_become_unreliable_are_named() -> None:
    document = started(OF_PHSAFE)
    assert viewed(OF_PHSAFE, document)["unreliable"]["new"] == []
    document["entries"]["PH3/state_A-G"] = {"on": True, "by": "margin", "value": "90000"}
    told = viewed(OF_PHSAFE, document)["unreliable"]
    assert told["new"] == ["PH3/state_A-G"]
    assert told["rows"][0]["name"] == "PH3/state_A-G"
    assert "Wyoming" in {area["name"] for area in told["areas"]}
    assert viewed(OF_TABLES, started(OF_TABLES))["unreliable"]["known"] == 0


@pytest.mark.parametrize(
    ("product", "change", "field"),
    [
        *(
            (OF_PHSAFE, {"fields": {"confidence": text}}, "confidence")
            for text in ("100", "0", "-90", "1e-30", "ninety")
        ),
        *((OF_PHSAFE, {"fields": {"delta": text}}, "delta") for text in ("0", "1", "1e-999", "")),
        *((OF_PHSAFE, {"fields": {"tau.PH3": text}}, "tau.PH3") for text in ("0", "2.5", "-1", "100000", "[1]", "x")),
        *((OF_PHSAFE, {"fields": {"household": text}}, "household") for text in ("0", "2.5", "100")),
        (OF_PHSAFE, {"fields": {"reliable": "0"}}, "reliable"),
        (OF_PHSAFE, {"fields": {"margins": "about"}}, "margins"),
        (OF_PHSAFE, {"fields": {"privacy_defn": "none"}}, "privacy_defn"),
        *(
            (OF_PHSAFE, {"entries": {"PH2/usa_*": {"on": True, "by": by, "value": value}}}, "PH2/usa_*")
            for by, values in {
                "budget": ("0", "-1", "", "Infinity", "1e999", "1/0"),
                "margin": ("0", "1e-16", "1e999", "1e14"),
                "guess": ("5",),
            }.items()
            for value in values
        ),
        (OF_PHSAFE, {"entries": {"PH2/usa_*": {"on": "yes", "by": "margin", "value": "5"}}}, "PH2/usa_*"),
        (OF_PHSAFE, {"fields": {"tau.PH9": "3"}}, ""),
        (OF_PHSAFE, {"entries": {"PH9/usa_*": {"on": True, "by": "budget", "value": "1"}}}, ""),
        *((OF_H, {"fields": {"max_race_codes": text}}, "max_race_codes") for text in ("0", "9")),
        *(
            (OF_H, {"fields": {'thresholds_h_t3."(COUNTY, 2)"': text}}, 'thresholds_h_t3."(COUNTY, 2)"')
            for text in ("5, 4, 3", "5, 6", "x", '1], "reader": [2')
        ),
        (OF_P, {"fields": {"zero_suppression_chance": "1.5"}}, "zero_suppression_chance"),
        (OF_TOPDOWN, {"entries": {"US cenrace": {"on": True, "by": "margin", "value": "-4"}}}, "US cenrace"),
        (OF_TABLES, {"fields": {"tables.tenure.limit.most": "-1"}}, "tables.tenure.limit.most"),
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
    for path in ("/api/view", "/api/exact", "/api/compare", "/api/solve", "/api/save", "/api/load", "/api/export"):
        answered = CLIENT.post(path, content=body, headers=headers)
        assert answered.json()["faults"]


def test_questions_that_are_none_are_refused_by_their_field() -> None:
    document = {"product": OF_PHSAFE, "settings": started(OF_PHSAFE)}
    assert "question" in faults("/api/solve", **document, question="why")
    assert "question" in faults("/api/solve", **document, question="total", value=3)
    for wrong in ("", "0", "-1", "lots", "1e99", "Infinity"):
        assert "total" in faults("/api/solve", **document, question="total", value=wrong)
    assert "name" in faults("/api/save", **document, name="")
    assert "product" in faults("/api/view", product="nothing", settings={})
    assert "others" in faults("/api/compare", **document, others="x")
    assert "others" in faults("/api/compare", **document, others=[{}] * 9)


def test_scenarios_stand_side_by_side() -> None:
    document, other, wrong = (started(OF_PHSAFE) for _ in range(3))
    other["entries"]["PH2/usa_*"] = {"on": True, "by": "budget", "value": "0.5"}
    other["entries"]["PH6/usa_*"]["on"] = False
    wrong["entries"]["PH2/usa_*"]["value"] = "none"
    others = [{"name": name, "settings": of} for name, of in (("<b>bold</b>", other), ("wrong", wrong))]
    found = asked("/api/compare", product=OF_PHSAFE, settings=document, others=others)
    assert found["names"] == ["here", "<b>bold</b>", "wrong"]
    assert found["refused"] == ["wrong"]
    assert found["points"][2] is None
    rows = {row["label"]: row for row in found["rows"]}
    assert rows["ρ, unbounded"]["shown"][0] == "1.257281"
    assert Fraction(rows["ρ, unbounded"]["shown"][1]) == Fraction(viewed(OF_PHSAFE, other)["total"])
    margins = [row for row in found["rows"] if row["part"] == "margins"]
    assert [row["label"].split(":")[0] for row in margins] == ["PH2", "PH6"]
    assert margins[1]["shown"][1] == "off"
    assert margins[0]["changes"][1].startswith("−")


def test_the_run_of_2020_is_a_scenario_where_there_was_one(tmp_path: Path) -> None:
    for key in (OF_PHSAFE, OF_P, OF_H, OF_TOPDOWN, OF_UNITS):
        form = CLIENT.get(f"/api/products/{key}").json()
        assert form["production"] == form["settings"]
    assert SHELF[OF_TABLES].production is None
    other = solved(OF_UNITS, started(OF_UNITS), "total", "1")["settings"]
    exported = asked("/api/export", product=OF_UNITS, settings=other)
    own = tmp_path / exported["filename"]
    own.write_text(exported["content"])
    page = Pages(topdown=str(own))["topdown-own"]
    assert page.production is not None
    assert page.first.plan.loss() == 1
    assert page.choose(page.production).plan.loss() == make_topdown_plan(read_configuration("h1-2020-us")).loss()


def test_a_scenario_comes_back_as_it_was_saved() -> None:
    for product in EVERY:
        document = started(product)
        name = next(iter(document["entries"]))
        document["entries"][name] = {"on": True, "by": "margin", "value": "123.5"}
        saved = asked("/api/save", product=product, settings=document, name="Öffentlich 1")
        assert saved["filename"].endswith(f".{product.replace('/', '-')}.json")
        loaded = asked("/api/load", text=saved["content"])
        assert loaded == {"product": product, "name": "Öffentlich 1", "settings": document, "said": ""}


def test_an_edited_or_stale_scenario_is_told() -> None:
    saved = asked("/api/save", product=OF_PHSAFE, settings=started(OF_PHSAFE), name="x")
    document = json.loads(saved["content"])
    other = json.loads(saved["content"])
    other["settings"]["entries"]["PH2/usa_*"]["value"] = "0.5"
    assert "edited" in asked("/api/load", text=json.dumps(other))["said"]
    other["settings"]["entries"]["PH2/usa_*"]["value"] = "-0.5"
    loaded = asked("/api/load", text=json.dumps(other))
    assert "edited" in loaded["said"]
    assert "PH2/usa_*" in faults("/api/view", product=OF_PHSAFE, settings=loaded["settings"])
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


@pytest.mark.thorough
def test_an_exported_configuration_runs_unchanged(tmp_path: Path) -> None:
    document = started(OF_PHSAFE)
    document["entries"]["PH2/usa_*"] = {"on": True, "by": "margin", "value": "77"}
    document["fields"]["tau.PH3"] = "4"
    exported = asked("/api/export", product=OF_PHSAFE, settings=document)
    path, census, out = tmp_path / exported["filename"], tmp_path / "census", tmp_path / "out"
    path.write_text(exported["content"])
    assert viewed(OF_PHSAFE, document)["total"] == str(PHSAFE.plan(read_config(path)).loss())
    assert main(["synth", str(census), "--households", "300", "--seed", "1"]) == 0
    assert main(["phsafe", "run", str(path), str(census), str(out)]) == 0
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["plan"]["totals"]["rho"] == viewed(OF_PHSAFE, document)["total"]
    assert manifest["parameters"]["tau"]["PH3"] == 4


def test_a_csv_holds_the_plan() -> None:
    body = {"product": OF_PHSAFE, "settings": started(OF_PHSAFE), "form": "csv", "name": "../a b"}
    exported = asked("/api/export", **body)
    assert exported["filename"] == "a-b.phsafe-s-dhc-2020-us.csv"
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
    body = {"product": OF_PHSAFE, "settings": started(OF_PHSAFE)}
    assert CLIENT.post("/api/view", json=body, headers=headers).status_code == status


def test_a_form_of_another_site_cannot_post() -> None:
    assert CLIENT.post("/api/view", content="{}", headers={"Content-Type": "text/plain"}).status_code == 415
    assert CLIENT.post("/api/view", data={"a": "b"}).status_code == 415
    long = {"Content-Type": "application/json", "Content-Length": "99999999"}
    assert CLIENT.post("/api/view", content=b"{}", headers=long).status_code == 413


@pytest.mark.parametrize(
    "path",
    [
        *("/../pyproject.toml", "/static/index.html", "/%2e%2e/server.py", "/server.py", "/etc/passwd"),
        *("/reference/phsafe.json", "/docs", "/openapi.json", "/api/products/..%2f", "//etc/passwd", "/explorer.js/"),
    ],
)
def test_no_other_file_is_served(path: str) -> None:
    assert CLIENT.get(path).status_code == 404


def test_every_file_of_the_page_is_served_with_a_strict_policy() -> None:
    for path in ("/", "/explorer.css", "/explorer.js", "/favicon.ico"):
        answered = CLIENT.get(path)
        assert answered.status_code == 200
        policy = answered.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert answered.headers["x-content-type-options"] == "nosniff"
        assert "https://" not in answered.text
        assert len(answered.content) < 100_000


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
    (whole,) = configuration.invariants["State"]
    with pytest.raises(ConfigError, match="so its total cannot be kept"):
        spine_errors(replace(configuration, invariants={"Tract": (whole,)}), "aian", here)
    spine = _spine(configuration.spine, here)
    place = published(here.reference)["place"]
    order = {block: i for i, block in enumerate(here.reference.block.tolist())}
    at = [order[block] for block in spine.blocks.tolist()]
    assert len(distances(spine.tree, partition(place.index[at], len(place.labels)))) == len(place.labels)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--counts", "{}/nowhere"], "nowhere"),
        (["--parameters", "{}/nowhere"], "does not exist"),
        (["--topdown", "{}/nowhere.toml"], "no such file"),
        (["--tables", "{}/nowhere.toml"], "nowhere"),
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


@pytest.mark.thorough
def test_counts_of_a_release_take_the_place_of_the_invented(tmp_path: Path) -> None:
    census, out, config = tmp_path / "census", tmp_path / "out", tmp_path / "config.json"
    config.write_text(json.dumps(production_config()))
    assert main(["synth", str(census), "--households", "300", "--seed", "1"]) == 0
    assert main(["phsafe", "run", str(config), str(census), str(out)]) == 0
    page = Pages(counts=out)[OF_PHSAFE]
    assert "the release out" in page.as_json()["counts"]
    invented = SHELF[OF_PHSAFE].first.known["PH2/state_*"]
    assert page.first.known["PH2/state_*"].total == invented.total
    assert page.first.known["PH2/state_*"].typical < invented.typical


@pytest.mark.thorough
def test_areas_of_a_release_of_any_product_are_named(tmp_path: Path) -> None:
    census, out = tmp_path / "census", tmp_path / "out"
    assert main(["synth", str(census), "--households", "300", "--seed", "1"]) == 0
    assert main(["tables", "run", "people-and-homes", str(census), str(out)]) == 0
    shelf = Pages(counts=out)
    page = shelf[OF_TABLES]
    assert page.as_json()["counts"] == "the release out, noise included"
    told = unreliable_counts(page.first)
    assert {"Wyoming", "Alaska"} <= {area["name"] for area in told["areas"]}
    opened = yupana.open_release(out)
    rows = [
        dict(zip(opened.columns("homes"), row, strict=True))
        for row in zip(*opened.columns("homes").values(), strict=True)
    ]
    small = sum(2 * page.first.margins[f"homes/{row['REGION_TYPE']}"] > max(0, int(row["COUNT"])) for row in rows)
    of_homes = [row for row in told["rows"] if row["name"].startswith("homes/")]
    assert sum(int(row["number"].replace(",", "")) for row in of_homes) == small


@pytest.mark.thorough
def test_areas_of_a_release_of_safetab_are_named(tmp_path: Path, parameters: Path) -> None:
    census, out = tmp_path / "census", tmp_path / "out"
    assert main(["synth", str(census), "--households", "300", "--seed", "1"]) == 0
    assert main(["safetab-p", "run", str(parameters), str(census), str(out)]) == 0
    page = Pages(counts=out, parameters=parameters)["safetab-p-own"]
    assert unreliable_counts(page.first)["areas"]
    names = next(iter(page.first.known.values())).names
    assert "Wyoming" in names
    assert any(name.startswith("County ") for name in names)
    assert set(page.first.known) <= set(page.places)


EXTREMES = st.one_of(
    st.builds(lambda v: {"by": "budget", "value": v}, st.sampled_from(["1e-15", "1e15", "1e-9", "1e9", "3/7"])),
    st.builds(lambda v: {"by": "margin", "value": v}, st.sampled_from(["1e-7", "0.01", "1e6", "1e12"])),
)


@settings(max_examples=6, suppress_health_check=list(HealthCheck))
@given(st.data())
@pytest.mark.thorough
def test_whatever_can_be_computed_can_be_shown(data: st.DataObject) -> None:
    """Noise from none to more than there are people: an answer, or a fault by its field, and never a broken page."""
    product = data.draw(st.sampled_from(EVERY))
    document = started(product)
    fields = document["fields"]
    fields["confidence"] = data.draw(st.sampled_from(["1", "90", "99.999999"]))
    fields["delta"] = data.draw(st.sampled_from(["1e-300", "0.999", "1e-10"]))
    if "privacy_defn" in fields:
        fields["privacy_defn"] = data.draw(st.sampled_from(["zcdp", "puredp"]))
    if "accounting" in fields:
        fields["accounting"] = data.draw(st.sampled_from(["published", "tight"]))
    for key in fields:
        if key.startswith("tau."):
            fields[key] = data.draw(st.sampled_from(["1", "99999"]))
    alike, every = data.draw(EXTREMES), data.draw(st.integers(1, 9))
    for place, name in enumerate(document["entries"]):
        document["entries"][name] = {"on": place % every == 0, **(data.draw(EXTREMES) if place < 5 else alike)}
    body = {"product": product, "settings": document}
    answered = CLIENT.post("/api/view", json=body)
    assert answered.status_code == 200
    assert "NaN" not in answered.text
    if "faults" in answered.json():
        assert all(fault["message"] for fault in answered.json()["faults"])
        return
    for question in ("round", "total", "equal", "sum", "least"):
        assert CLIENT.post("/api/solve", json={**body, "question": question, "value": "1"}).status_code == 200
    for path in ("/api/export", "/api/compare", "/api/exact"):
        assert CLIENT.post(path, json={**body, "others": []}).status_code == 200
