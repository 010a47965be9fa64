"""Plans: the published totals, the formulas, composition, differences."""

import math
from dataclasses import replace
from fractions import Fraction
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plans import plan_of, production_plan

from yupana.errors import ConfigError
from yupana.plan.measurement import (
    Measurement,
    Mechanism,
    PersonSensitivity,
    Sensitivity,
    margin_of,
    margin_of_error,
    margin_words,
    of_household_record,
    of_occupancy,
    of_own_record,
    published_variance,
    rho_for_margin,
    z_value,
)
from yupana.plan.plan import Neighbours, Plan, PlanDifference, margin_from_json, number
from yupana.privacy.exact import INFINITE, Budget
from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric, Zero
from yupana.privacy.zcdp import epsilon_tight
from yupana.products.phsafe.configuration import TAUS, budgets

POSITIVE = st.fractions(Fraction(1, 10**6), 10**3, max_denominator=10**6)


def measurement(
    name: str, budget: Fraction, composition: str = "", mechanism: Mechanism = Mechanism.ZCDP
) -> Measurement:
    sensitivity = Sensitivity(Fraction(4), Fraction(8), Fraction(8))
    return Measurement(name, "T", "level", 3, mechanism, Fraction(4), sensitivity, sensitivity, budget, composition)


def plan(*measurements: Measurement, mechanism: Mechanism = Mechanism.ZCDP) -> Plan:
    return Plan("test", "person record", Neighbours.UNBOUNDED, "published", Fraction(9, 10), mechanism, measurements)


@pytest.mark.parametrize(
    ("puerto_rico", "measurements", "unbounded", "bounded", "tight", "tight_bounded"),
    [(False, 46, "1.257281", "2.514562", 0.488408, 1.953631), (True, 23, "1.226649", "2.453298", 0.475927, 1.903709)],
)
def test_production_totals_are_the_published_ones(
    *, puerto_rico: bool, measurements: int, unbounded: str, bounded: str, tight: float, tight_bounded: float
) -> None:
    plan = production_plan(puerto_rico=puerto_rico)
    assert len(plan.measurements) == measurements
    assert plan.loss() == Fraction(unbounded)
    assert plan.loss(lambda m: m.sensitivity.unbounded) == Fraction(unbounded)
    assert plan.loss(lambda m: m.sensitivity.bounded) == Fraction(bounded)
    assert float(plan.loss(lambda m: m.proven.unbounded)) == pytest.approx(tight, abs=5e-7)
    assert float(plan.loss(lambda m: m.proven.bounded)) == pytest.approx(tight_bounded, abs=7e-7)


@pytest.mark.parametrize(
    ("name", "variance", "margin"),
    [
        ("PH1_num/usa_*", 92401.680031, 500),
        ("PH7/state_*", 14782.236882, 200),
        ("PH4/state_A-G", 1708.774061, 68),
        ("PH3/state_A-G", 147.818322, 20),
        ("PH6/usa_*", 92365.692743, 500),
        ("PH1_denom/usa_A-G", 90909.090909, 496),
    ],
)
def test_production_variances_and_margins_are_the_published_ones(name: str, variance: float, margin: float) -> None:
    plan = replace(production_plan(puerto_rico=False), margins="bureau")
    assert float(plan[name].variance) == pytest.approx(variance, abs=1e-6)
    assert plan.margin(plan[name]) == pytest.approx(margin, abs=0.5)


def test_margins_of_table_10_give_its_budgets_back() -> None:
    # PHSafe table 10: rho to six decimals from the target margin and tau.
    for moe, delta2, rho in [
        (500, 22**2, "0.002619"),
        (200, 22**2, "0.016371"),
        (68, 22**2, "0.141622"),
        (20, 14**2, "0.662976"),
    ]:
        assert round(rho_for_margin(Fraction(moe), Fraction(delta2), Fraction(9, 10)), 6) == Fraction(rho)


@pytest.mark.parametrize("mechanism", list(Mechanism))
def test_tight_plans_keep_the_unbounded_promise_at_less_noise(mechanism: Mechanism) -> None:
    published, tight = (
        plan_of(budgets(puerto_rico=False), TAUS, mechanism, accounting=a) for a in ("published", "tight")
    )
    assert tight.loss(lambda m: m.sensitivity.unbounded) == published.loss() == tight.loss()
    assert tight.loss(lambda m: m.sensitivity.same_household) == tight.loss()
    factor = 4 if mechanism is Mechanism.ZCDP else 2
    assert tight.loss(lambda m: m.sensitivity.bounded) == factor * tight.loss()
    for one, other in zip(published.measurements, tight.measurements, strict=True):
        # L1 of a unit table is 2 in either accounting; everything else gains.
        assert other.variance < one.variance or one.calibration == other.calibration == 2
        assert other.sensitivity == other.proven == one.proven


@given(POSITIVE, POSITIVE, POSITIVE)
def test_sequential_losses_add_and_parallel_ones_take_the_largest(a: Fraction, b: Fraction, c: Fraction) -> None:
    together = plan(measurement("a", a), measurement("b", b, "states"), measurement("c", c, "states"))
    assert together.loss() == a + max(b, c)
    assert together.loss(lambda m: 2 * m.calibration) == 2 * (a + max(b, c))


@given(POSITIVE)
def test_laws_follow_from_budgets(budget: Fraction) -> None:
    assert measurement("m", budget).law == DiscreteGaussian(4 / (2 * budget))
    assert measurement("m", budget, mechanism=Mechanism.PURE).law == TwoSidedGeometric(4 / budget)
    assert measurement("m", budget).variance == 2 / budget
    # The loss of the law against its own calibration is the budget: no slack, no rounding.
    assert measurement("m", budget).loss(Fraction(4)) == budget


def test_an_infinite_budget_means_no_noise_and_no_promise() -> None:
    m = measurement("m", Fraction(1))
    boundless = plan(replace(m, budget=INFINITE), replace(m, name="n"))
    assert isinstance(boundless.measurements[0].law, Zero)
    assert boundless.measurements[0].variance == 0
    assert boundless.loss() == INFINITE
    assert boundless.against_release
    totals = boundless.as_json()["totals"]
    assert (totals["rho"], totals["rho_float"], totals["epsilon"]) == ("Infinity", None, None)


def test_a_plan_without_noise_measures_the_same() -> None:
    noisy = replace(plan(measurement("m", Fraction(1)), measurement("n", Fraction(2))), paths=((0,), (1,)))
    exact = noisy.without_noise()
    assert {d.value for d in exact.differences(noisy)} == {"budget"}
    assert exact == replace(noisy, measurements=exact.measurements)
    assert all(isinstance(m.law, Zero) for m in exact.measurements)
    assert exact.without_noise() == exact


def test_json_gives_rationals_as_text_with_floats_beside() -> None:
    answer = production_plan(puerto_rico=False).as_json()
    assert list(answer) == [
        "product", "mechanism", "privacy_unit", "neighbours", "sensitivity", "confidence", "margins", "measurements",
        "totals",
    ]  # fmt: skip
    first = answer["measurements"][0]
    assert Fraction(first["sigma2"]) == Fraction(first["l2_sensitivity_squared"]) / (2 * Fraction(first["rho"]))
    assert first["sigma2_float"] == pytest.approx(first["sigma"] ** 2)
    assert first["moe"] == margin_of(DiscreteGaussian(Fraction(first["sigma2"])), 1, Fraction(9, 10), "exact")
    bureau = replace(production_plan(puerto_rico=False), margins="bureau").as_json()
    assert bureau["measurements"][0]["moe"] == pytest.approx(1.645 * first["sigma"])
    for described in (answer, bureau):
        m = described["measurements"][0]
        assert margin_from_json(described, m, 1) == m["moe"]
    assert answer["totals"]["rho"] == "1257281/1000000"
    assert answer["totals"]["bounded_rho_float"] == 2.514562


def test_pure_plans_speak_of_epsilon() -> None:
    answer = plan(measurement("m", Fraction(1, 2), mechanism=Mechanism.PURE), mechanism=Mechanism.PURE).as_json()
    m, totals = answer["measurements"][0], answer["totals"]
    assert (m["epsilon"], m["l1_sensitivity"]) == ("1/2", "4")
    assert "rho" not in m
    assert (totals["rho"], totals["epsilon"], totals["bounded_epsilon"], totals["delta"]) == (None, "1/2", "1", 0)
    assert m["sigma2_float"] == pytest.approx(TwoSidedGeometric(Fraction(8)).variance)


def test_differences_name_what_changed() -> None:
    here = plan(measurement("same", Fraction(1)), measurement("new", Fraction(2)), measurement("more", Fraction(3)))
    there = plan(
        measurement("same", Fraction(1)), measurement("more", Fraction(1, 3)), measurement("gone", Fraction(1))
    )
    rows = {(d.measurement, d.value, d.here, d.there) for d in here.differences(there)}
    assert rows == {("new", "budget", "2", None), ("more", "budget", "3", "1/3"), ("gone", "budget", None, "1")}
    assert production_plan(puerto_rico=True).differences(production_plan(puerto_rico=True)) == []


def test_plans_refuse_what_cannot_be() -> None:
    one = measurement("m", Fraction(1))
    with pytest.raises(ValueError, match="twice"):
        plan(one, one)
    with pytest.raises(ValueError, match="one mechanism"):
        plan(one, mechanism=Mechanism.PURE)
    with pytest.raises(ValueError, match="positive"):
        measurement("m", Fraction(0))


def test_confidence_as_the_bureau_rounds_it() -> None:
    assert (z_value(Fraction(9, 10)), z_value(Fraction(95, 100))) == (1.645, 1.96)
    assert z_value(Fraction(99, 100)) == pytest.approx(2.5758293035489)
    assert margin_of_error(Fraction(4), Fraction(95, 100)) == pytest.approx(3.92)
    with pytest.raises(ValueError, match="confidence"):
        z_value(Fraction(1))


def test_losses_add_within_a_branch_and_of_the_branches_the_largest_counts() -> None:
    nested = plan(
        measurement("a", Fraction(1), "pass:us/detail:fine"),
        measurement("b", Fraction(2), "pass:us/detail:coarse"),
        measurement("c", Fraction(3), "pass:us/detail:coarse"),
        measurement("d", Fraction(7), "pass:us"),
        measurement("e", Fraction(11), "pass:pr"),
        measurement("f", Fraction(100)),
    )
    assert nested.loss() == 100 + max(7 + max(1, 2 + 3), 11)
    assert [len(measurements) for measurements in nested.passes.values()] == [4, 1]
    totals = nested.as_json()["totals"]
    assert totals["passes"]["us"] == {"rho": "12", "rho_float": 12.0, "bounded_rho": "24", "bounded_rho_float": 24.0}


@given(st.lists(st.tuples(POSITIVE, st.sampled_from(["", "g", "g:1", "g:2", "h:1/k:1", "h:1/k:2", "h:2"]))))
def test_nested_composition_agrees_with_its_definition(terms: list[tuple[Fraction, str]]) -> None:
    def of(where: str) -> Fraction:
        return sum((rho for rho, composition in terms if composition == where), Fraction(0))

    alone = max((rho for rho, composition in terms if composition == "g"), default=Fraction(0))
    measured = [measurement(str(n), rho, composition) for n, (rho, composition) in enumerate(terms)]
    expected = of("") + max(alone, of("g:1"), of("g:2")) + max(of("h:1/k:1"), of("h:1/k:2"), of("h:2"))
    assert plan(*measured).loss() == expected


def test_a_loss_that_has_no_meaning_is_none() -> None:
    sensitivity = Sensitivity(Fraction(9), Fraction(18))
    m = replace(measurement("a", Fraction(1)), sensitivity=sensitivity, proven=sensitivity, calibration=Fraction(9))
    totals = plan(m).as_json()["totals"]
    assert totals["same_household_rho"] is None
    assert totals["bounded_rho"] == "2"
    assert "passes" not in totals


@given(
    st.lists(st.fractions(Fraction(1, 9), 9), min_size=1, max_size=5),
    st.lists(st.sets(st.integers(0, 4), min_size=1), min_size=1, max_size=4),
)
def test_of_the_paths_of_a_plan_the_largest_loss_counts(budgets: list[Fraction], chosen: list[set[int]]) -> None:
    measurements = [measurement(str(i), budget) for i, budget in enumerate(budgets)]
    paths = tuple(tuple(sorted(i for i in path if i < len(budgets))) for path in chosen)
    whole = plan(*measurements)
    if set().union(*paths) != set(range(len(budgets))):
        with pytest.raises(ValueError, match="lies on a path"):
            replace(whole, paths=paths)
        return
    forked = replace(whole, paths=paths)
    assert forked.loss() == max(sum((budgets[i] for i in path), Fraction(0)) for path in paths)
    assert forked.loss_of(measurements[:1]) == budgets[0]
    assert replace(whole, paths=(tuple(range(len(budgets))),)).loss() == whole.loss()


TABLE_10 = (
    ("PH1_num PH4 PH7", "usa_* usa_A-G usa_H,I", "0.002619", "0.005238"),
    ("PH1_num PH4 PH7", "state_* state_H,I", "0.016371", "0.032742"),
    ("PH1_num PH4 PH7", "state_A-G", "0.141622", "0.283244"),
    ("PH1_denom PH5_denom PH8_denom", "usa_* usa_A-G usa_H,I", "0.000022", "0.000044"),
    ("PH1_denom PH5_denom PH8_denom", "state_* state_H,I", "0.000135", "0.00027"),
    ("PH1_denom PH5_denom PH8_denom", "state_A-G", "0.00117", "0.00234"),
    ("PH2", "usa_*", "0.002619", "0.005238"),
    ("PH2", "state_*", "0.016371", "0.032742"),
    ("PH3", "usa_* usa_A-G usa_H,I", "0.001061", "0.002122"),
    ("PH3", "state_* state_H,I", "0.006630", "0.01326"),
    ("PH3", "state_A-G", "0.662976", "1.325952"),
    ("PH6", "usa_*", "0.001061", "0.002122"),
    ("PH6", "state_*", "0.006630", "0.01326"),
)
"""PHSafe paper, table 10: tables, population group levels, unbounded and bounded rho."""


def test_the_bounded_column_of_table_10_of_phsafe() -> None:
    described = {m["name"]: m for m in production_plan(puerto_rico=False).as_json()["measurements"]}
    for tables, levels, unbounded, bounded in TABLE_10:
        for name in (f"{table}/{level}" for table in tables.split() for level in levels.split()):
            measurement = described.pop(name)
            stated = Fraction(measurement["rho"]), Fraction(measurement["bounded_rho"])
            assert stated == (Fraction(unbounded), Fraction(bounded)), name
            assert measurement["bounded_rho_float"] == float(bounded)
    assert not described


def test_bounded_losses_stand_in_the_totals_with_their_epsilons() -> None:
    totals = production_plan(puerto_rico=False).as_json()["totals"]
    for kind in ("unbounded", "bounded", "same_household"):
        assert totals[f"{kind}_epsilon"] == pytest.approx(epsilon_tight(Fraction(totals[f"{kind}_rho"]), 1e-10))
    assert totals["epsilon"] == totals["unbounded_epsilon"] < totals["bounded_epsilon"]


# --- word by word ---------------------------------------------------------------------------------------------------


def own(name: str, rho: str, composition: str, mechanism: Mechanism) -> Measurement:
    """A measurement whose sensitivities all differ, with those of a person."""
    promised, proven = Sensitivity(Fraction(4), Fraction(8)), Sensitivity(Fraction(2), Fraction(3), Fraction(1))
    person = of_own_record(replace(promised, same_household=Fraction(6)))
    return Measurement(
        name, "P1", "state", 7, mechanism, Fraction(4), promised, proven, Fraction(rho), composition, person
    )


def two_passes(mechanism: Mechanism) -> Plan:
    measurements = own("a", "1/2", "pass:us", mechanism), own("b", "1/4", "pass:pr/x:1", mechanism)
    return Plan("phsafe", "record", Neighbours.BOUNDED, "tight", Fraction(19, 20), mechanism, measurements)


def test_the_json_of_a_plan_under_zcdp() -> None:
    described = two_passes(Mechanism.ZCDP).as_json(1e-5)
    first, second = described.pop("measurements")
    totals = described.pop("totals")
    assert described == {
        "product": "phsafe",
        "mechanism": "zcdp",
        "privacy_unit": "record",
        "neighbours": "bounded",
        "sensitivity": "tight",
        "confidence": 0.95,
        "margins": "exact",
    }
    assert first == {
        "name": "a", "table": "P1", "level": "state", "cells": 7,
        "l2_sensitivity_squared": "4", "l2_sensitivity_squared_float": 4.0, "rho": "1/2", "rho_float": 0.5,
        "bounded_rho": "1", "bounded_rho_float": 1.0, "sigma2": "4", "sigma2_float": 4.0, "sigma": 2.0, "moe": 4,
        "composition": "pass:us", "moves": {"by_one": False, "unbounded": "2", "bounded": "3", "same_household": "1"},
    }  # fmt: skip
    assert (second["name"], second["composition"], second["sigma2"]) == ("b", "pass:pr/x:1", "8")
    assert totals == {
        "rho": "1/2", "rho_float": 0.5,
        "unbounded_rho": "1/2", "unbounded_rho_float": 0.5, "bounded_rho": "1", "bounded_rho_float": 1.0,
        "same_household_rho": None, "same_household_rho_float": None,
        "proven": {
            "unbounded_rho": "1/4", "unbounded_rho_float": 0.25, "bounded_rho": "3/8", "bounded_rho_float": 0.375,
            "same_household_rho": None, "same_household_rho_float": None,
        },
        "person": {
            "unbounded_rho": "1/2", "unbounded_rho_float": 0.5, "same_household_rho": "3/4",
            "same_household_rho_float": 0.75, "bounded_rho": "1", "bounded_rho_float": 1.0,
        },
        "passes": {
            "us": {"rho": "1/2", "rho_float": 0.5, "bounded_rho": "1", "bounded_rho_float": 1.0},
            "pr": {"rho": "1/4", "rho_float": 0.25, "bounded_rho": "1/2", "bounded_rho_float": 0.5},
        },
        "epsilon": epsilon_tight(0.5, 1e-5), "unbounded_epsilon": epsilon_tight(0.5, 1e-5),
        "bounded_epsilon": epsilon_tight(1, 1e-5), "same_household_epsilon": None, "delta": 1e-5,
    }  # fmt: skip
    paths = replace(two_passes(Mechanism.ZCDP), paths=((0,), (1,)), confidence=Fraction(9, 10)).as_json()
    assert (paths["paths"], paths["confidence"], paths["totals"]["delta"]) == ([[0], [1]], 0.9, 1e-10)


def test_the_json_of_a_plan_under_pure_dp() -> None:
    described = replace(two_passes(Mechanism.PURE), margins="bureau").as_json()
    first, totals = described["measurements"][0], described["totals"]
    law = TwoSidedGeometric(Fraction(8))
    assert (described["mechanism"], described["margins"], "paths" in described) == ("pure", "bureau", False)
    assert first == {
        "name": "a", "table": "P1", "level": "state", "cells": 7,
        "l1_sensitivity": "4", "l1_sensitivity_float": 4.0, "epsilon": "1/2", "epsilon_float": 0.5,
        "bounded_epsilon": "1", "bounded_epsilon_float": 1.0,
        "sigma2": repr(law.variance), "sigma2_float": law.variance, "sigma": math.sqrt(law.variance),
        "moe": 1.96 * math.sqrt(law.variance), "composition": "pass:us",
        "moves": {"by_one": False, "unbounded": "2", "bounded": "3", "same_household": "1"},
    }  # fmt: skip
    assert totals == {
        "rho": None, "epsilon": "1/2", "epsilon_float": 0.5,
        "unbounded_epsilon": "1/2", "unbounded_epsilon_float": 0.5,
        "bounded_epsilon": "1", "bounded_epsilon_float": 1.0,
        "same_household_epsilon": None, "same_household_epsilon_float": None,
        "proven": {
            "unbounded_epsilon": "1/4", "unbounded_epsilon_float": 0.25,
            "bounded_epsilon": "3/8", "bounded_epsilon_float": 0.375,
            "same_household_epsilon": None, "same_household_epsilon_float": None,
        },
        "person": {
            "unbounded_epsilon": "1/2", "unbounded_epsilon_float": 0.5,
            "same_household_epsilon": "3/4", "same_household_epsilon_float": 0.75,
            "bounded_epsilon": "1", "bounded_epsilon_float": 1.0,
        },
        "passes": {
            "us": {
                "epsilon": "1/2", "epsilon_float": 0.5, "bounded_epsilon": "1", "bounded_epsilon_float": 1.0
            },
            "pr": {
                "epsilon": "1/4", "epsilon_float": 0.25, "bounded_epsilon": "1/2", "bounded_epsilon_float": 0.5
            },
        },
        "delta": 0,
    }  # fmt: skip


@pytest.mark.parametrize("mechanism", list(Mechanism))
def test_margins_by_the_json_of_a_plan(mechanism: Mechanism) -> None:
    for margins in ("exact", "bureau"):
        plan = replace(two_passes(mechanism), margins=margins)
        described = plan.as_json()
        m = described["measurements"][1]
        assert margin_from_json(described, m, 3) == plan.margin(plan.measurements[1], 3)
        assert margin_from_json(described, m, 1) == plan.margin(plan.measurements[1]) == m["moe"]
    del described["margins"]
    assert margin_from_json(described, m, 3) == plan.margin(plan.measurements[1], 3)


def test_where_invariants_fix_the_number_of_records_no_loss_has_one_more() -> None:
    fixed = replace(two_passes(Mechanism.ZCDP), fixed_total=True)
    assert fixed.losses() == {"unbounded": None, "bounded": 1, "same_household": None}
    totals = fixed.as_json()["totals"]
    assert [totals["unbounded_rho"], totals["proven"]["unbounded_rho"], totals["unbounded_epsilon"]] == [None] * 3


def test_a_person_of_whom_one_measurement_says_nothing_has_no_loss() -> None:
    one, other = two_passes(Mechanism.ZCDP).measurements
    silent = replace(two_passes(Mechanism.ZCDP), measurements=(one, replace(other, person=None)))
    assert silent.person_losses() == {"unbounded": None, "same_household": None, "bounded": None}


def test_a_measurement_is_found_by_its_name() -> None:
    both = two_passes(Mechanism.ZCDP)
    assert both["b"] is both.measurements[1]
    with pytest.raises(KeyError, match=r"^'c'$"):
        both["c"]


def test_every_difference_of_two_plans_is_named() -> None:
    here = plan(measurement("m", Fraction(1)))
    m = Measurement(
        "m", "T", "l", 4, Mechanism.PURE, Fraction(5), Sensitivity(Fraction(5), Fraction(5)),
        Sensitivity(Fraction(5), Fraction(5)), Fraction(1, 2), "g:1",
    )  # fmt: skip
    there = plan(m, mechanism=Mechanism.PURE)
    assert here.differences(there) == [
        PlanDifference("m", "budget", "1", "1/2"),
        PlanDifference("m", "sensitivity", "4", "5"),
        PlanDifference("m", "cells", "3", "4"),
        PlanDifference("m", "composition", "", "g:1"),
        PlanDifference("m", "mechanism", "zcdp", "pure"),
    ]
    empty = plan()
    assert here.differences(empty) == [PlanDifference("m", "budget", "1", None)]
    assert empty.differences(here) == [PlanDifference("m", "budget", None, "1")]


def test_plans_say_what_is_wrong_with_them() -> None:
    a, b = measurement("a", Fraction(1)), measurement("b", Fraction(1))
    with pytest.raises(ValueError, match=r"^measurements named twice: a, b$"):
        plan(a, b, a, measurement("c", Fraction(1)), b, a)
    with pytest.raises(ValueError, match=r"^a plan has one mechanism$"):
        plan(a, measurement("b", Fraction(1), mechanism=Mechanism.PURE))
    for paths in [((0,),), ((0, 1, 2),), ((-1, 0),)]:
        with pytest.raises(ValueError, match=r"^every measurement lies on a path, and paths hold nothing else$"):
            replace(plan(a, b), paths=paths)


def test_why_a_plan_may_not_be_released() -> None:
    def reasons(*budgets: Budget) -> tuple[str, ...]:
        return plan(
            *(replace(measurement(str(i), Fraction(1)), budget=b) for i, b in enumerate(budgets))
        ).against_release

    infinite = "a budget is infinite, so counts without noise are in it"
    large = "a budget is so large that less than one count in a million would have noise"
    assert reasons(*[Fraction(20)] * 5) == ()
    assert reasons(*[Fraction(20)] * 5, Fraction(1, 10**9)) == ("the loss is above 100, which protects nobody",)
    assert reasons(Fraction(1), INFINITE) == (infinite,)
    assert reasons(Fraction(1000), Fraction(1)) == (large,)
    assert reasons(Fraction(1000), INFINITE) == (infinite, large)


def test_numbers_stand_as_text_and_as_floats() -> None:
    assert number("x", Fraction(1, 4)) == {"x": "1/4", "x_float": 0.25}
    assert number("x", INFINITE) == {"x": "Infinity", "x_float": None}
    assert number("x", 0.1) == {"x": "0.1", "x_float": 0.1}
    assert number("x", None) == {"x": None, "x_float": None}


def test_a_loss_of_part_of_a_plan_on_paths() -> None:
    a, b, c = (measurement(name, Fraction(n)) for name, n in (("a", 1), ("b", 2), ("c", 4)))
    forked = replace(plan(a, b, c), paths=((0, 1), (0, 2)))
    assert forked.loss_of([a, b]) == 3
    assert forked.loss_of([a, b, c]) == 5
    assert forked.loss_of([b], lambda m: 3 * m.calibration) == 6
    assert forked.loss(lambda m: 3 * m.calibration) == 15
    assert plan(a, b, c).loss_of([b, c], lambda m: 3 * m.calibration) == 18


def test_a_group_whose_branches_are_not_named_has_one_for_each() -> None:
    assert plan(measurement("a", Fraction(1), "g"), measurement("b", Fraction(2), "g:1")).loss() == 2
    assert plan(measurement("a", Fraction(1), "g:1"), measurement("b", Fraction(2), "h:2")).loss() == 3
    assert plan(measurement("a", Fraction(1), "g"), measurement("b", Fraction(2), "g")).loss() == 2
    inner = plan(measurement("a", Fraction(1), "g:1//h"), measurement("b", Fraction(2), "g:1/h"))
    assert inner.loss() == 2


# --- margins --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("confidence", [Fraction(0), Fraction(1), Fraction(3, 2), Fraction(-1)])
def test_a_confidence_is_a_chance(confidence: Fraction) -> None:
    with pytest.raises(ValueError, match=r"^a confidence level lies strictly between 0 and 1$"):
        z_value(confidence)


def test_a_margin_has_a_budget_if_it_is_positive() -> None:
    assert rho_for_margin(Fraction(1, 2), Fraction(3), Fraction(9, 10)) == Fraction("1.645") ** 2 * 6
    z = Fraction(str(NormalDist().inv_cdf(0.995)))
    assert rho_for_margin(Fraction(5), Fraction(3), Fraction(99, 100)) == z * z * 3 / 50
    for margin in (Fraction(0), Fraction(-1)):
        with pytest.raises(ValueError, match=r"^a margin of error must be positive$"):
            rho_for_margin(margin, Fraction(3), Fraction(9, 10))


def test_reports_say_what_a_margin_is() -> None:
    assert margin_words("exact", Fraction(9, 10)) == (
        "The margin is the smallest whole number m so that the noise lies within ±m with a chance of at least 90%, "
        "by the exact law of the noise"
    )
    assert margin_words("exact", Fraction(999, 1000)).split("at least ")[1] == "99.9%, by the exact law of the noise"
    assert margin_words("bureau", Fraction(99, 100)) == (
        "The margin is 2.576 times the standard deviation σ of the noise"
    )


def test_margins_of_sums_are_of_the_published_variance() -> None:
    law = TwoSidedGeometric(Fraction(3))
    assert margin_of(law, 5, Fraction(9, 10), "bureau") == 1.645 * math.sqrt(5 * law.variance)
    assert margin_of(Zero(), 5, Fraction(9, 10), "bureau") == 0


# --- measurements ---------------------------------------------------------------------------------------------------


def test_the_noise_of_a_cell() -> None:
    assert Mechanism.ZCDP.law(Fraction(9), Fraction(3)) == DiscreteGaussian(Fraction(3, 2))
    assert Mechanism.PURE.law(Fraction(9), Fraction(2)) == TwoSidedGeometric(Fraction(9, 2))
    assert Mechanism.PURE.law(Fraction(9), INFINITE) == Zero()
    assert published_variance(DiscreteGaussian(Fraction(1, 3))) == Fraction(1, 3)
    assert published_variance(TwoSidedGeometric(Fraction(2))) == TwoSidedGeometric(Fraction(2)).variance
    nothing = published_variance(Zero())
    assert (nothing, type(nothing)) == (0, Fraction)


def test_a_mechanism_tells_what_its_losses_are_called_and_how_they_grow() -> None:
    zcdp, pure = Mechanism.ZCDP, Mechanism.PURE
    assert (zcdp.symbol, zcdp.budget_name, zcdp.distance_name, zcdp.power) == ("ρ", "rho", "l2_sensitivity_squared", 2)
    assert (pure.symbol, pure.budget_name, pure.distance_name, pure.power) == ("ε", "epsilon", "l1_sensitivity", 1)
    assert zcdp.epsilon(Fraction(1, 2), 1e-10) == epsilon_tight(Fraction(1, 2), 1e-10)
    assert pure.epsilon(Fraction(1, 2), 1e-10) == 0.5
    assert math.isinf(pure.epsilon(INFINITE, 1e-10))


def test_what_one_person_changes() -> None:
    record = Sensitivity(Fraction(9), Fraction(18))
    assert of_own_record(record) == PersonSensitivity(Fraction(9), Fraction(18), Fraction(18))
    assert of_own_record(replace(record, same_household=Fraction(12))) == PersonSensitivity(
        Fraction(9), Fraction(12), Fraction(18)
    )
    assert of_household_record(record, Mechanism.ZCDP) == PersonSensitivity(Fraction(18), Fraction(18), Fraction(72))
    assert of_household_record(record, Mechanism.PURE) == PersonSensitivity(Fraction(18), Fraction(18), Fraction(36))
    assert of_occupancy(record) == PersonSensitivity(Fraction(18), Fraction(0), Fraction(36))


def test_measurements_say_what_is_wrong_with_them() -> None:
    for budget in (Fraction(0), Fraction(-1)):
        with pytest.raises(ValueError, match=r"^the budget of m must be positive$"):
            measurement("m", budget)
    for calibration in (Fraction(0), Fraction(-1)):
        with pytest.raises(ValueError, match=r"^the sensitivity of m must be positive$"):
            replace(measurement("m", Fraction(1)), calibration=calibration)
    for mechanism, widest in ((Mechanism.ZCDP, 10**30), (Mechanism.PURE, 10**16)):
        m = measurement("m", Fraction(1), mechanism=mechanism)
        assert replace(m, calibration=Fraction(widest)).loss(Fraction(2 * widest)) == 2
        replace(m, calibration=Fraction(widest + 1), budget=INFINITE)
        told = (
            r"^measurement m: its noise would not fit 64 bits; give it more budget, or lower the sensitivity, "
            r"such as tau$"
        )
        with pytest.raises(ConfigError, match=told):
            replace(m, calibration=Fraction(widest + 1))
        with pytest.raises(ConfigError, match=told):
            replace(m, budget=Fraction(1, widest))
    half = replace(measurement("m", Fraction(1, 2)), calibration=Fraction(1, 2))
    assert half.loss(Fraction(1)) == 1
    assert replace(half, budget=INFINITE).loss(Fraction(1)) == INFINITE
