"""A plan as a table of its measurements."""

from dataclasses import replace
from fractions import Fraction

import polars as pl
from plans import production_plan

from yupana.plan.budgets import budgets_as_html
from yupana.plan.plan import Plan
from yupana.privacy.exact import INFINITE

PLAN = production_plan(puerto_rico=False)


def without_noise() -> Plan:
    return replace(PLAN, measurements=tuple(replace(m, budget=INFINITE) for m in PLAN.measurements))


def test_a_plan_hands_out_its_measurements_as_columns() -> None:
    rows = PLAN.as_json()["measurements"]
    found = pl.DataFrame(PLAN.table())
    columns = [name for name in rows[0] if name != "moves"]
    assert found.columns == columns
    assert found.rows() == [tuple(row[name] for name in columns) for row in rows]
    assert found.schema["rho"] == pl.String
    assert found.schema["moe"] == pl.Float64


def test_a_plan_shows_itself_shortly() -> None:
    shown = "rho 1.25728 for one person record, unbounded neighbours"
    assert repr(PLAN) == f"<Plan of phsafe: {len(PLAN.measurements)} measurements, {shown}>"
    assert "<table>" in PLAN._repr_html_()


def test_an_infinite_loss_is_shown() -> None:
    plan = without_noise()
    assert "rho inf" in repr(plan)
    assert pl.DataFrame(plan.table())["rho_float"].null_count() == len(plan.measurements)


def test_a_plan_of_nothing_has_no_columns() -> None:
    plan = replace(PLAN, measurements=())
    assert "0 measurements" in repr(plan)
    assert "rho 0" in plan._repr_html_()


def test_budgets_are_shown_exactly_and_escaped() -> None:
    shown = budgets_as_html("<PHSafe>", {"a&b": Fraction(1, 3), "c": INFINITE})
    assert shown == (
        "<p>&lt;PHSafe&gt;</p><table><thead><tr><th>budget</th><th>value</th></tr></thead><tbody>"
        "<tr><td>a&amp;b</td><td>1/3</td></tr><tr><td>c</td><td>Infinity</td></tr></tbody></table>"
    )
