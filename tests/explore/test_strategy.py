"""The panel of strategies: the server finds what the command finds, and what cannot be is refused by its field."""

import asyncio
import json
from fractions import Fraction
from html.parser import HTMLParser
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import yupana
from yupana.cli.main import main
from yupana.plan.measurement import z_value

pytest.importorskip("fastapi", reason="the explorer's server is not installed: explore")

import httpx

from yupana.explore.products import Pages
from yupana.explore.server import make_app
from yupana.explore.strategy import STOPS, places

PORT = 8080
APP = make_app(Pages(topdown="cook-2010"), PORT)
Document = dict[str, Any]
SOURCES = {
    "topdown": "pl94-2020-us",
    "topdown-pr": "pl94-2020-pr",
    "topdown-h1": "h1-2020-us",
    "topdown-own": "cook-2010",
}


def ask(path: str, **body: object) -> Document:
    async def answer() -> httpx.Response:
        transport = httpx.ASGITransport(app=APP)
        async with httpx.AsyncClient(transport=transport, base_url=f"http://127.0.0.1:{PORT}") as client:
            return await (client.post(path, json=body) if body else client.get(path))

    answered = asyncio.run(answer())
    assert answered.status_code == 200
    return dict(answered.json())


def started(product: str) -> tuple[Document, Document]:
    page = ask(f"/api/products/{product}")
    return page["settings"], page["strategy"]["start"]


def found(product: str, **changes: str) -> Document:
    chosen, asked = started(product)
    return ask("/api/strategy", product=product, settings=chosen, asked=asked | changes)


def marked(product: str, **changes: str) -> dict[str, str]:
    answered = found(product, **changes)
    assert set(answered) == {"faults"}, answered
    return {fault["field"]: fault["message"] for fault in answered["faults"]}


class Rows(HTMLParser):
    """The rows of a table, as texts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._inside = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self._inside = tag == "td"
        if tag == "tr":
            self.rows.append([])
        if self._inside:
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag != "td"

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.rows[-1][-1] += data


def rows(html: str) -> list[list[str]]:
    return [row for row in Rows(html).rows if row]


TARGETS: list[tuple[str, Document, Document]] = [
    ("topdown", {}, {}),
    (
        "topdown",
        {"query.P1": "", "query.P2": "0", "query.P3": "", "query.P4": "", "query.total": "50", "query.detailed": "1/3"},
        {"queries": {"P5": 1, "total": 50, "detailed": "1/3"}},
    ),
    (
        "topdown-pr",
        {"shares": "found", "level.State": "", "level.Tract": "2.5", "loss": "max", "least": "1/200"},
        {"levels": {"County": 1, "Tract": "2.5", "Block_Group": 1, "Block": 1}},
    ),
    (
        "topdown-h1",
        {"level.Block": "100"},
        {"levels": {"US": 1, "State": 1, "County": 1, "Tract": 1, "Block_Group": 1, "Block": 100}},
    ),
    ("topdown-own", {"loss": "ratio", "least": "0.001"}, {}),
]


@pytest.mark.parametrize(("product", "typed", "document"), TARGETS)
def test_shares_that_are_taken_are_those_of_the_command(
    product: str, typed: Document, document: Document, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    targets, out = tmp_path / "targets.json", tmp_path / "found.json"
    targets.write_text(json.dumps(document))
    options = [option for key in ("loss", "least") if key in typed for option in (f"--{key}", typed[key])]
    command = ["topdown", "strategy", SOURCES[product], "--targets", str(targets), "--out", str(out)]
    assert main([*command, *options]) == 0
    capsys.readouterr()
    chosen, asked = started(product)
    body = {"product": product, "settings": chosen, "asked": asked | typed}
    taken = ask("/api/solve", question="strategy", **body)
    assert "the total is as it was" in taken["said"]
    exported = ask("/api/export", product=product, settings=taken["settings"])
    assert exported["content"] == out.read_text()
    # Once taken they are the shares that there are, and nothing better is found.
    again = ask("/api/strategy", product=product, settings=taken["settings"], asked=asked | typed | {"loss": "sum"})
    assert all(here == there for *_, here, there in rows(again["found"][1]["content"][0]["html"])) == (
        typed.get("loss", "sum") == "sum"
    )


@pytest.mark.parametrize(("product", "typed", "document"), TARGETS)
def test_every_number_is_the_librarys(product: str, typed: Document, document: Document) -> None:
    answered = found(product, **typed)
    strategy = yupana.strategy(
        SOURCES[product], targets=document, loss=typed.get("loss", "sum"), least=typed.get("least")
    )
    margins, shares = (rows(section["content"][0]["html"]) for section in answered["found"])
    z = z_value(Fraction(9, 10))
    by_name = {(row.target, row.level): row for row in strategy.rows}
    assert {(row[0], row[1].replace(" ", "_")) for row in margins} == set(by_name)
    for target, level, here, there, _ in margins:
        row = by_name[target, level.replace(" ", "_")]
        assert float(here.replace(",", "")) == pytest.approx(z * sqrt(row.given), rel=1e-3)
        assert float(there.replace(",", "")) == pytest.approx(z * sqrt(row.found), rel=1e-3)
    told = {(level, query): (here, there) for level, query, here, there in shares}
    for level, of_level in strategy.found.queries.items():
        spaced = level.replace("_", " ")
        assert told[spaced, "the geolevel"][1] == f"{float(100 * strategy.found.shares[level]):.3f}%"
        for (query, share), (_, given_share) in zip(of_level, strategy.given.queries[level], strict=True):
            assert told[spaced, query.name] == tuple(f"{float(100 * one):.3f}%" for one in (given_share, share))
    assert f"{100 * strategy.found_loss / strategy.given_loss:.2f}%" in answered["said"]
    (figure,) = answered["trade_off"][0]["content"]
    points = rows(figure["numbers"])
    assert [row[0] for row in points if row[0] != "the least possible"] == (
        ["as set here", "found"] if product == "topdown-own" else ["production of 2020", "as set here", "found"]
    )
    assert len(points) >= 33


def test_the_found_point_is_at_the_margins_that_are_told() -> None:
    answered = found("topdown", **{"query.total": "1", "query.detailed": "1"})
    margins = {(row[0], row[1]): row[2:4] for row in rows(answered["found"][0]["content"][0]["html"])}
    points = {row[0]: row[1:] for row in rows(answered["trade_off"][0]["content"][0]["numbers"])}
    wanted = [margins["total", "Block"], margins["detailed", "Block"]]
    assert points["found"] == [there for _, there in wanted]
    # Grouping queries are left out of points, and so those of production are drawn a little further out.
    for shown, (here, _) in zip(points["as set here"], wanted, strict=True):
        assert float(here) <= float(shown) <= 1.1 * float(here)
    assert points["as set here"] == points["production of 2020"]


@pytest.mark.parametrize(
    ("product", "typed", "field", "told"),
    [
        ("topdown", {"query.P1": "much"}, "strategy.query.P1", "must be a number"),
        ("topdown", {"query.P1": "-1"}, "strategy.query.P1", "must be a number"),
        ("topdown", {"query.P1": "1e-9"}, "strategy.query.P1", "must be a number"),
        ("topdown", {"query.P1": "Infinity"}, "strategy.query.P1", "must be a number"),
        ("topdown", {f"query.P{i}": "" for i in range(1, 6)}, "strategy.query", "every weight is 0"),
        (
            "topdown-h1",
            {f"level.{level}": "0" for level in ("US", "State", "County", "Tract", "Block_Group", "Block")},
            "strategy.level",
            "every weight is 0",
        ),
        ("topdown", {"shares": "found", "level.US": "1/0"}, "strategy.level.US", "must be a number"),
        ("topdown", {"least": "1/3"}, "strategy.least", "cannot have a share"),
        ("topdown", {"least": "some"}, "strategy.least", "must be a share"),
        ("topdown", {"loss": "mean"}, "strategy.loss", "must be one of"),
        ("topdown", {"shares": "lost"}, "strategy.shares", "must be one of"),
        ("topdown-h1", {"shares": "kept"}, "strategy.shares", "must be one of"),
        ("topdown", {"first": "P9"}, "strategy.first", "must be one of"),
        ("topdown", {"query.P9": "1"}, "strategy", "another version"),
    ],
)
def test_what_cannot_be_weighed_is_refused_by_its_field(product: str, typed: Document, field: str, told: str) -> None:
    assert told in marked(product, **typed)[field]


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ({"first": "total", "first_level": "US"}, "known exactly"),
        ({"second": "total"}, "two different answers"),
    ],
)
def test_a_pair_without_a_trade_off_is_marked_and_the_rest_is_shown(typed: Document, told: str) -> None:
    answered = found("topdown", **typed)
    assert answered["trade_off"] == []
    assert told in answered["marked"][0]["message"]
    assert answered["marked"][0]["field"] == "strategy.pair"
    assert len(answered["found"]) == 2


def test_a_geolevel_that_is_switched_off_has_no_weight() -> None:
    chosen, asked = started("topdown")
    for name, entry in chosen["entries"].items():
        entry["on"] = not name.startswith("Tract ")
    body = {"product": "topdown", "settings": chosen}
    kept = ask("/api/strategy", **body, asked=asked)
    assert "Tract" not in {row[1] for row in rows(kept["found"][0]["content"][0]["html"])}
    refused = ask("/api/strategy", **body, asked=asked | {"shares": "found"})
    assert refused["faults"][0]["field"] == "strategy.level.Tract"
    free = ask("/api/strategy", **body, asked=asked | {"shares": "found", "level.Tract": "0"})
    assert free["said"]


def test_settings_that_are_not_understood_are_told_first() -> None:
    chosen, asked = started("topdown")
    chosen["entries"]["Block total"]["value"] = "-1"
    refused = ask("/api/strategy", product="topdown", settings=chosen, asked=asked)
    assert [fault["field"] for fault in refused["faults"]] == ["Block total"]


def test_where_nothing_can_be_found_nothing_is_offered(tmp_path: Path) -> None:
    assert ask("/api/products/phsafe")["strategy"] is None
    refused = ask("/api/strategy", product="phsafe", settings=ask("/api/products/phsafe")["settings"], asked={})
    assert "no strategy" in refused["faults"][0]["message"]
    document = yupana.PRODUCTS["topdown"].document(yupana.PRODUCTS["topdown"].read("h1-2020-us"))
    document = {key: value for key, value in document.items() if key != "rho"} | {"mechanism": "pure", "epsilon": "1"}
    path = tmp_path / "pure.json"
    path.write_text(json.dumps(document))
    assert Pages(topdown=str(path))["topdown-own"].strategy_form is None  # type: ignore[attr-defined]


def test_sliders_stand_at_the_nearest_stop() -> None:
    stands = places({"query.a": "", "query.b": "1", "level.c": "0.2", "query.d": "5e5", "query.e": "x", "least": "1"})
    assert stands == {"query.a": 0, "query.b": STOPS.index("1"), "level.c": STOPS.index("1/3"), "query.d": 13}


@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_whatever_is_weighed_there_is_an_answer(data: st.DataObject) -> None:
    product = data.draw(st.sampled_from([*SOURCES]))
    chosen, asked = started(product)
    for name in data.draw(st.lists(st.sampled_from([*chosen["entries"]]), max_size=8)):
        entry = chosen["entries"][name]
        entry["on"], entry["value"] = data.draw(st.booleans()), data.draw(st.sampled_from(["1e-15", "1e15", "1/7"]))
    page = ask(f"/api/products/{product}")["strategy"]
    for key in data.draw(st.lists(st.sampled_from([*asked]), max_size=8)):
        choices = {
            "loss": ["sum", "max"],
            "shares": [*page["shares"]],
            "least": ["", "0", "1/1000"],
            **{answer: [*page["answers"]] for answer in ("first", "second")},
            **{level: [*page["levels"]] for level in ("first_level", "second_level")},
        }
        asked[key] = data.draw(st.sampled_from(choices.get(key, ["", "0", "1e-6", "1", "1e6"])))
    answered = ask("/api/strategy", product=product, settings=chosen, asked=asked)
    assert all(fault["message"] for fault in answered.get("faults", answered.get("marked", [])))
    assert "nan" not in json.dumps(answered)
