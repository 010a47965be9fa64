"""A description of tables in the explorer."""

import asyncio
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest

import yupana
from yupana.explore.products import Pages
from yupana.explore.server import make_app

PORT = 8080
Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def ask() -> Ask:
    app = make_app(Pages(tables="people-and-homes"), PORT)

    def ask(path: str, **body: object) -> dict[str, Any]:
        async def answer() -> httpx.Response:
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url=f"http://127.0.0.1:{PORT}") as client:
                return await (client.post(path, json=body) if body else client.get(path))

        return dict(asyncio.run(answer()).json())

    return ask


def test_losses_and_margins_move_with_the_budgets(ask: Ask, tmp_path: Path) -> None:
    settings = ask("/api/products/tables")["settings"]
    plan = yupana.plan("tables", "people-and-homes")
    assert set(settings["entries"]) == {m.name for m in plan.measurements}
    view = ask("/api/view", product="tables", settings=settings)
    assert Fraction(view["total"]) == plan.loss()
    assert {name: float(entry["margin_exact"]) for name, entry in view["entries"].items()} == {
        m.name: plan.margin(m) for m in plan.measurements
    }
    settings["entries"]["tenure/state"] = {"on": False, "by": "budget", "value": "1"}
    settings["entries"]["people/nation"] = {"on": True, "by": "margin", "value": "10"}
    settings["entries"]["homes/state"]["value"] = "1/3"
    view = ask("/api/view", product="tables", settings=settings)
    exported = ask("/api/export", product="tables", settings=settings)
    path = tmp_path / exported["filename"]
    path.write_text(exported["content"], encoding="utf-8")
    changed = yupana.plan("tables", path)
    assert Fraction(view["total"]) == changed.loss()
    assert changed.margin(changed["people/nation"]) == 10
    assert changed["homes/state"].budget == Fraction(1, 3)
    assert "tenure/state" not in {m.name for m in changed.measurements}
    json.loads(exported["content"])


def test_nothing_of_a_description_is_called_production(ask: Ask) -> None:
    told = ask("/api/products/tables")
    assert told["form"]["compared"] == "the start"
    sections = json.dumps(ask("/api/view", product="tables", settings=told["settings"])["sections"])
    assert "here and the start" in sections
    assert "production" not in sections
    assert ask("/api/products/phsafe")["form"]["compared"] == "production of 2020"


def test_what_cannot_be_is_told_by_the_field(ask: Ask) -> None:
    settings = ask("/api/products/tables")["settings"]
    settings["entries"]["people/nation"]["value"] = "-1"
    told = ask("/api/view", product="tables", settings=settings)["faults"]
    assert [fault["field"] for fault in told] == ["people/nation"]
    settings = ask("/api/products/tables")["settings"]
    told = ask("/api/solve", product="tables", settings=settings, question="equal", total="1")["faults"]
    assert "no count is known" in told[0]["message"]
    said = ask("/api/solve", product="tables", settings=settings, question="production")["said"]
    assert "2020" not in said


def test_a_description_without_noise_or_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(yupana.ConfigError, match="nothing"):
        Pages(tables=str(tmp_path / "nothing.toml"))
