"""A plan as a table of its measurements."""

from dataclasses import replace
from fractions import Fraction

import polars as pl
import pytest
from plans import plan_of, production_plan

from yupana.plan.budgets import budgets_as_html
from yupana.plan.measurement import Margins, Mechanism, bound_of_estimate
from yupana.plan.plan import Plan
from yupana.privacy.exact import INFINITE
from yupana.products.phsafe.configuration import TAUS, budgets

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


def test_a_plan_of_one_measurement_under_pure_differential_privacy() -> None:
    one = plan_of(budgets(puerto_rico=False), TAUS, Mechanism.PURE)
    one = replace(one, product="a<b", privacy_unit="a & b", measurements=one.measurements[:1])
    shown = f"epsilon {float(one.loss()):.6g} for one a &amp; b, unbounded neighbours"
    assert repr(one) == f"<Plan of a<b: 1 measurement, {shown}>"
    assert one._repr_html_().startswith(f"<p>Plan of a&lt;b: {shown}</p><table>")
    assert one.table().types["cells"] == "BIGINT"
    assert {one.table().types[name] for name in ("sigma", "moe", "epsilon_float")} == {"DOUBLE"}
    assert one.table().types["epsilon"] == "VARCHAR"


@pytest.mark.parametrize("margins", ["exact", "bureau"])
def test_the_margin_of_an_estimate_is_by_the_least_noise_of_the_plan(margins: Margins) -> None:
    for mechanism in Mechanism:
        plan = replace(plan_of(budgets(puerto_rico=False), TAUS, mechanism), margins=margins)
        least = min(float(m.variance) for m in plan.measurements)
        is_gaussian = mechanism is Mechanism.ZCDP
        for variance in (least, 1e6):
            expected = bound_of_estimate(variance, least, plan.confidence, margins, is_gaussian=is_gaussian)
            assert plan.margin_of_estimate(variance) == expected


def test_an_infinite_loss_is_shown() -> None:
    plan = without_noise()
    assert "rho inf" in repr(plan)
    assert pl.DataFrame(plan.table())["rho_float"].null_count() == len(plan.measurements)


def test_a_plan_of_nothing_has_no_columns() -> None:
    plan = replace(PLAN, measurements=())
    assert "0 measurements" in repr(plan)
    assert "rho 0" in plan._repr_html_()
    assert plan.table().columns == ("name",)


def test_budgets_are_shown_exactly_and_escaped() -> None:
    shown = budgets_as_html("<PHSafe>", {"a&b": Fraction(1, 3), "c": INFINITE})
    assert shown == (
        "<p>&lt;PHSafe&gt;</p><table><thead><tr><th>budget</th><th>value</th></tr></thead><tbody>"
        "<tr><td>a&amp;b</td><td>1/3</td></tr><tr><td>c</td><td>Infinity</td></tr></tbody></table>"
    )
