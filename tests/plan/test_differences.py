"""What the answers of neighbours may differ in, by the composition of a plan; and what follows for epsilon and delta.

All plans here are small, so that what is expected is written down by hand.
"""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from yupana.errors import ConfigError
from yupana.plan import exact_loss
from yupana.plan.exact_budget import scale_to
from yupana.plan.exact_loss import (
    Change,
    Untold,
    _as_choices,
    _differences_of_all,
    _gaussian,
    _proven_loss,
    delta_exact,
    differences,
    epsilon_exact,
    exact_of_part,
    exact_totals,
    exact_where,
    missed_exact,
    own_change,
    plan_as_json,
)
from yupana.plan.measurement import Measurement, Mechanism, Sensitivity
from yupana.plan.plan import Neighbours, Plan, read_plan
from yupana.privacy.exact import INFINITE, Budget
from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric, Zero
from yupana.privacy.loss_law import SMALLEST_DELTA, WIDTH, LossBounds, epsilon_at
from yupana.privacy.loss_terms import Difference, Shift, ShiftChoice
from yupana.privacy.zcdp import epsilon_tight

ONE = Sensitivity(Fraction(1), Fraction(2))
PURE = Mechanism.PURE


def m(name: str, budget: Budget | str, composition: str = "", **terms: object) -> Measurement:
    given: Any = {"sensitivity": ONE, "proven": ONE, "by_one": True, "mechanism": Mechanism.ZCDP} | terms
    exact = Fraction(budget) if isinstance(budget, str) else budget
    return Measurement(name, name, "level", 4, calibration=Fraction(2), budget=exact, composition=composition, **given)


def planned(*measurements: Measurement, **terms: object) -> Plan:
    mechanism = measurements[0].mechanism if measurements else Mechanism.ZCDP
    given: Any = {"neighbours": Neighbours.BOUNDED} | terms
    return Plan("p", "record", accounting="tight", confidence=Fraction(9, 10), mechanism=mechanism,
                measurements=measurements, **given)  # fmt: skip


def g(budget: str, times: int = 1) -> Shift:
    """Under the calibration 2 of these plans sigma2 is 1 / rho."""
    return Shift(DiscreteGaussian(1 / Fraction(budget)), 1, times)


def t(scale: str, times: int = 1) -> Shift:
    return Shift(TwoSidedGeometric(Fraction(scale)), 1, times)


def near(number: object) -> object:
    return pytest.approx(number, rel=1e-12, abs=0)


FAR = Sensitivity(Fraction(3), Fraction(6), Fraction(5))
HALF = Sensitivity(Fraction(3, 2), Fraction(3))
MANY: dict[str, Any] = {"by_one": False}


@pytest.mark.parametrize(
    ("plan", "change", "reason"),
    [
        (planned(m("a", INFINITE)), "bounded", "a budget is infinite"),
        (
            planned(m("a", "1"), fixed_total=True),
            "unbounded",
            "invariants leave no neighbours that differ by a record more",
        ),
        (
            planned(m("a", "1", "pass:us"), m("b", "1")),
            "unbounded",
            "some measurements are of a pass, and others are not",
        ),
        (planned(m("a", "1", "x:a/y:b")), "unbounded", "groups of parallel composition stand within each other"),
        (planned(m("a", "1")), "same_household", "of a no such neighbours are known"),
        (
            planned(m("a", "1", **MANY)),
            "bounded",
            "the noise of a is small, and which neighbours are worst is not known",
        ),
        (
            planned(m("a", "1", "x:a"), m("b", "1", "x:b", proven=FAR)),
            "bounded",
            "the branches of a group move by distances of their own",
        ),
        (
            planned(m("a", "1", proven=Sensitivity(Fraction(3, 2), Fraction(3)))),
            "unbounded",
            "a moves by no whole number of counts",
        ),
        (
            planned(m("a", "1", "x:a", proven=HALF), m("b", "1", "x:b", proven=HALF)),
            "unbounded",
            "a moves by no whole number of counts",
        ),
        (planned(m("a", "1", mechanism=PURE, proven=HALF)), "unbounded", "a moves by no whole number of counts"),
    ],
)
def test_why_there_is_no_law(plan: Plan, change: Change, reason: str) -> None:
    with pytest.raises(Untold) as caught:
        differences(plan, change)
    assert caught.value.reason == reason
    assert epsilon_exact(plan, 1e-6, change) is delta_exact(plan, 1.0, change) is None


def test_noise_that_is_none_has_no_law() -> None:
    with pytest.raises(Untold, match=r"^noise is missing$"):
        _gaussian(Zero())


@pytest.mark.parametrize(
    ("measurements", "change", "expected"),
    [
        # By one: as many answers as the distance says. Scale is the calibration, 2, by epsilon.
        ((m("a", "1/4", proven=FAR),), "unbounded", Difference((g("1/4", 3),))),
        ((m("a", "1/4", proven=FAR),), "same_household", Difference((g("1/4", 5),))),
        ((m("a", "1/4", mechanism=PURE),), "bounded", Difference((t("8", 2),))),
        ((m("a", "1/4"), m("b", "1/4"), m("c", "1/5")), "bounded", Difference((g("1/4", 4), g("1/5", 2)))),
        # Of a distance: theorem 3, or randomised response of the whole loss.
        (
            (m("a", "1/9", proven=FAR, **MANY),),
            "unbounded",
            Difference.of_distance(DiscreteGaussian(Fraction(9)), Fraction(3)),
        ),
        ((m("a", "1/4", mechanism=PURE, proven=FAR, **MANY),), "bounded", Difference((t("4/3"),))),
        ((m("a", "1", proven=Sensitivity(Fraction(0), Fraction(0)), **MANY),), "bounded", Difference()),
        # A group: each part of a record that counts is in one of the branches.
        (
            (m("a", "1/4", "x:a"), m("b", "1/5", "x:b"), m("c", "1/6", "x:b"), m("d", "1/7")),
            "bounded",
            Difference((g("1/7", 2),), (ShiftChoice(2, ((g("1/4"),), (g("1/5"), g("1/6")))),)),
        ),
        (
            (m("a", "1/4", "x:a", mechanism=PURE), m("b", "1/5", "x:b", mechanism=PURE)),
            "unbounded",
            Difference(choices=(ShiftChoice(1, ((t("8"),), (t("10"),))),)),
        ),
        # Without a branch each measurement is one of its own.
        (
            (m("a", "1/4", "x"), m("b", "1/5", "x")),
            "unbounded",
            Difference(choices=(ShiftChoice(1, ((g("1/4"),), (g("1/5"),))),)),
        ),
        # Two groups are two choices.
        (
            (m("a", "1/4", "x:a"), m("b", "1/5", "x:b"), m("c", "1/6", "y:c"), m("d", "1/7", "y:d")),
            "unbounded",
            Difference(
                choices=(ShiftChoice(1, ((g("1/4"),), (g("1/5"),))), ShiftChoice(1, ((g("1/6"),), (g("1/7"),))))
            ),
        ),
        # The worst branch loses 3/2 (1/4 + 1/5) of 2: by distance 3 of calibration 2.
        (
            (
                m("a", "1/4", "x:a", mechanism=PURE, proven=FAR, **MANY),
                m("b", "1/5", "x:a", mechanism=PURE, proven=FAR, by_one=True),
                m("c", "2/5", "x:b", mechanism=PURE, proven=FAR, **MANY),
            ),
            "unbounded",
            Difference((t("40/27"),)),
        ),
    ],
)
def test_what_the_answers_of_neighbours_differ_in(
    measurements: tuple[Measurement, ...], change: Change, expected: Difference
) -> None:
    (found,) = differences(planned(*measurements), change)
    assert (found.shifts, found.choices) == (expected.shifts, expected.choices)
    assert (found.squared, found.slack) == near((expected.squared, expected.slack))
    assert found.slack >= expected.slack


def test_of_gaussian_branches_the_largest_distance_and_the_largest_slack_count() -> None:
    """s2 grows with the distance alone, so slack adds within a branch and mu^2 is linear in rho, about."""
    proven: dict[str, Any] = {"proven": ONE, "by_one": False}
    one, two, three = (Difference.of_distance(DiscreteGaussian(Fraction(n)), Fraction(2)) for n in (5, 60, 70))
    plan = planned(m("a", "1/5", "x:a", **proven), m("b", "1/60", "x:b", **proven), m("c", "1/70", "x:b", **proven))
    (found,) = differences(plan, "bounded")
    # The wide branch moves less far, and has the slack of two measurements.
    assert (found.squared, found.slack) == near((one.squared, (two + three).slack))
    assert found.squared > (two + three).squared
    assert found.slack > one.slack > 0


def test_a_record_lies_on_one_way_and_one_that_changes_on_two(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(m("a", "1/4"), m("b", "1/5"), paths=((0,), (1,)))
    ways = (g("1/4"),), (g("1/5"),)
    assert differences(plan, "unbounded") == tuple(map(Difference, ways))
    three = (Difference((g("1/4", 2),)), Difference((g("1/4"), g("1/5"))), Difference((g("1/5", 2),)))
    assert differences(plan, "bounded") == three
    for most, told in ((3, True), (2, False)):
        monkeypatch.setattr(exact_loss, "_MOST_DIFFERENCES", most)
        if told:
            assert differences(plan, "bounded") == three
        else:
            with pytest.raises(Untold, match=r"^records can lie in too many ways$"):
                differences(plan, "bounded")
    # One record more lies in two ways, in each of two plans.
    for most, told in ((4, True), (3, False)):
        monkeypatch.setattr(exact_loss, "_MOST_DIFFERENCES", most)
        if told:
            found = _differences_of_all((plan, plan), "unbounded", joined=False)
            assert found == tuple(Difference(one) + Difference(other) for one in ways for other in ways)
        else:
            with pytest.raises(Untold, match=r"^records can lie in too many ways$"):
                _differences_of_all((plan, plan), "unbounded", joined=False)


def test_ways_of_plain_shifts_are_taken_together_as_choices() -> None:
    plan = planned(m("a", "1/4"), m("b", "1/5"), m("c", "1/5"), paths=((0,), (1,), (2,)))
    options = ((g("1/4"),), (g("1/5"),))
    assert _as_choices(plan, "unbounded") == Difference(choices=(ShiftChoice(1, options),))
    assert _as_choices(plan, "bounded") == Difference(choices=(ShiftChoice(2, options),))
    household = replace(plan, measurements=tuple(replace(of, proven=FAR) for of in plan.measurements))
    for other, change in (
        (plan.without_noise(), "bounded"),
        (household, "same_household"),
        (replace(plan, fixed_total=True), "unbounded"),
        (planned(m("a", "1/4")), "bounded"),
        (planned(m("a", "1/4", "x:a"), m("b", "1/5", "x:b"), m("c", "1/6"), paths=((0, 1), (2,))), "bounded"),
    ):
        assert _as_choices(other, change) is None  # type: ignore[arg-type]
    assert _as_choices(replace(plan, fixed_total=True), "bounded") == _as_choices(plan, "bounded")
    two = planned(*plan.measurements[:2], paths=((0,), (1,)))
    once = Difference(choices=(ShiftChoice(1, options),))
    assert _as_choices(two, "unbounded") == once
    assert _differences_of_all((two,), "unbounded", joined=True) == (once,)
    joined = _differences_of_all((plan, planned(m("d", "1/6"))), "bounded", joined=True)
    assert joined == (Difference((g("1/6", 2),), (ShiftChoice(2, options),)),)
    assert len(_differences_of_all((plan,), "bounded", joined=False)) == 6


def test_the_loss_of_the_smallest_distances_that_are_proven() -> None:
    plan = planned(m("a", "1/3", proven=FAR), m("b", "1/5"), neighbours=Neighbours.UNBOUNDED)
    # rho times distance by calibration: 1/3 * 3/2 + 1/5 * 1/2, and 1/3 * 6/2 + 1/5.
    assert _proven_loss(plan, "unbounded") == Fraction(3, 5)
    assert _proven_loss(plan, "bounded") == Fraction(6, 5)
    assert _proven_loss(plan, "same_household") is None
    fixed = replace(plan, fixed_total=True)
    assert _proven_loss(fixed, "unbounded") is None
    assert _proven_loss(fixed, "bounded") == Fraction(6, 5)
    assert _proven_loss(plan.without_noise(), "bounded") is None
    assert own_change(plan) == "unbounded"
    assert own_change(replace(plan, neighbours=Neighbours.BOUNDED)) == "bounded"


def test_epsilon_is_the_smaller_of_the_law_and_the_conversion(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under zCDP; of a plan's own neighbours unless others are asked for."""
    plan = planned(m("a", "1/3"), neighbours=Neighbours.UNBOUNDED)
    asked = []

    def told(plans: tuple[Plan, ...], delta: float, change: Change) -> LossBounds:
        asked.append((plans, delta, change))
        return LossBounds(1.0, 100.0)

    monkeypatch.setattr(exact_loss, "_epsilon", told)
    for change, rho in (("unbounded", Fraction(1, 6)), ("bounded", Fraction(1, 3))):
        assert epsilon_exact(plan, 1e-6, change) == epsilon_tight(rho, 1e-6)  # type: ignore[arg-type]
    assert epsilon_exact(plan, 1e-6) == epsilon_tight(Fraction(1, 6), 1e-6)
    assert [change for *_, change in asked] == ["unbounded", "bounded", "unbounded"]
    assert epsilon_exact([plan, plan]) == epsilon_tight(Fraction(1, 3), 1e-10)
    # Without a loss, and under pure differential privacy, there is no conversion of rho.
    assert epsilon_exact(plan, 1e-6, "same_household") == 100.0
    assert epsilon_exact(planned(m("a", "1/3", mechanism=PURE)), 1e-6) == 100.0
    assert epsilon_exact([plan, planned(m("a", "1/3", mechanism=PURE), neighbours=Neighbours.UNBOUNDED)]) == 100.0
    # At the smallest delta that is certified, and not below.
    assert epsilon_exact(planned(m("a", "1/3", mechanism=PURE)), SMALLEST_DELTA) == 100.0
    assert epsilon_exact(plan, SMALLEST_DELTA / 2) is None
    monkeypatch.setattr(exact_loss, "_epsilon", lambda *_: LossBounds(0.1, 0.2))
    assert epsilon_exact(plan, 1e-6) == 0.2


def test_pure_differential_privacy_is_told_at_delta_0() -> None:
    plan = planned(m("a", "1/3", mechanism=PURE), m("b", "1/7", mechanism=PURE))
    assert epsilon_exact(plan, 0.0) == float(Fraction(10, 21))
    assert epsilon_exact(plan, 0.0, "unbounded") == float(Fraction(5, 21))
    assert epsilon_exact([plan, plan], 0.0) == float(Fraction(20, 21))
    assert epsilon_exact(plan, 0.0, "same_household") is None
    with pytest.raises(ValueError, match=r"^delta must lie strictly between 0 and 1$"):
        epsilon_exact([plan, planned(m("a", "1/3"))], 0.0)
    # Not the conversion of rho, which it has none of.
    exact = epsilon_at(Difference((t("6", 2), t("14", 2))), 1e-3)
    assert exact is not None
    assert epsilon_exact(plan, 1e-3) == exact.upper
    assert exact_totals(plan, 1e-3) == {
        "epsilon_exact": float(Fraction(10, 21)),
        "bounded_epsilon_exact": float(Fraction(10, 21)),
        "exact_at_delta": {"delta": 1e-3, "epsilon_exact": exact.upper, "bounded_epsilon_exact": exact.upper},
    }
    assert exact_of_part(plan, plan.measurements[:1]) == float(Fraction(1, 3))


def test_some_measurements_alone_have_the_epsilon_of_a_plan_of_these(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(m("a", "1/3"), m("b", "1/5"), m("c", "1/7"), paths=((0, 1), (2,)))
    part = (plan.measurements[0], plan.measurements[2])
    assert exact_of_part(plan, ()) == 0.0
    pure = planned(m("a", "1/3", mechanism=PURE), neighbours=Neighbours.UNBOUNDED)
    assert exact_where(pure, {"a": Fraction(3)}, 0.0) == 0.5
    asked: list[Any] = []
    monkeypatch.setattr(exact_loss, "epsilon_exact", lambda *of: asked.append(of) or 1.5)
    assert exact_of_part(plan, part, 1e-6) == exact_of_part(plan, part) == exact_of_part(pure, pure.measurements) == 1.5
    assert asked == [(planned(*part), 1e-6), (planned(*part), 1e-10), (pure, 0.0)]
    # Neighbours as of one record more, whatever the plan fixes, on the paths that are left.
    asked.clear()
    assert exact_where(replace(plan, fixed_total=True), {"a": Fraction(3), "c": Fraction(2)}, 1e-6) == 1.5
    moved = [replace(part[0], proven=Sensitivity(Fraction(3), Fraction(6)))]
    moved.append(replace(part[1], proven=Sensitivity(Fraction(2), Fraction(4))))
    assert asked == [(planned(*moved, paths=((0,), (1,))), 1e-6, "unbounded")]
    assert exact_where(plan, {"d": Fraction(3)}) == 0.0


def test_delta_is_that_of_the_worst_way_at_the_closest_width(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(m("a", "1/4"), m("b", "1/5", "x:a"), m("c", "1/9", "x:b"), paths=((0,), (1, 2)))
    known: dict[Difference, LossBounds | None] = {}
    asked = []

    def told(difference: Difference, epsilon: float, width: float = WIDTH) -> LossBounds | None:
        asked.append((epsilon, width))
        return known[difference]

    monkeypatch.setattr(exact_loss, "delta_at", told)
    monkeypatch.setattr(exact_loss, "_delta", exact_loss._delta.__wrapped__)
    one, other = differences(plan, "unbounded")
    for first, second in ((0.1, 0.3), (0.4, 0.2)):
        known |= {one: LossBounds(0.05, first), other: LossBounds(0.01, second)}
        assert delta_exact(plan, 2.0, "unbounded") == max(first, second)
    assert set(asked) == {(2.0, WIDTH)}
    # One way of two has no bound in doubles.
    known[one] = None
    assert delta_exact(plan, 2.0, "unbounded") is None
    known[Difference((g("1/4", 2),))] = LossBounds(0.1, 0.2)
    assert delta_exact(planned(m("a", "1/4")), 2.0) == 0.2
    # Ways of plain shifts are asked for together.
    plain = planned(m("a", "1/4"), m("b", "1/5"), paths=((0,), (1,)))
    known = {Difference(choices=(ShiftChoice(2, ((g("1/4"),), (g("1/5"),))),)): LossBounds(0.1, 0.3)}
    assert delta_exact(plain, 2.0) == 0.3


def test_the_trade_off_curve_is_the_best_of_forty_one_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an epsilon and its delta: b >= 1 - delta - e^epsilon a, and b >= e^-epsilon (1 - delta - a)."""
    plan = planned(m("a", "1/4"), m("b", "1/5"), m("c", "1/6", "x:a"), m("d", "1/7", "x:b"), paths=((0, 1), (2, 3)))
    asked = []

    def deltas(difference: Difference, epsilons: list[float], width: float) -> tuple[float, ...] | None:
        asked.append((difference, epsilons, width))
        worse = 0.1 if difference.choices else 0.0
        return tuple(max(0.0, 0.4 - e / 9) + worse * (e > 1) for e in epsilons)

    highest: list[float | None] = [4.0]
    monkeypatch.setattr(exact_loss, "epsilon_exact", lambda *of: highest[0] if of[1:] == (1e-6, "unbounded") else None)
    monkeypatch.setattr(exact_loss, "deltas_at", deltas)
    monkeypatch.setattr(exact_loss, "_curve", exact_loss._curve.__wrapped__)
    errors = [0.0, 0.01, 0.2, 0.5, 0.9, 1.0]
    found = missed_exact(plan, errors, "unbounded")
    assert [of for of, _, _ in asked] == list(differences(plan, "unbounded"))
    assert all(epsilons == near([n / 10 for n in range(41)]) for _, epsilons, _ in asked)
    assert {width for *_, width in asked} == {0.01}
    points = [(n / 10, max(0.0, 0.4 - n / 90) + 0.1 * (n > 10)) for n in range(41)]
    best = [max(max(1 - d - math.exp(e) * a, math.exp(-e) * (1 - d - a)) for e, d in points) for a in errors]
    assert found == pytest.approx([max(0.0, y) for y in best], rel=1e-12, abs=1e-15)
    assert found is not None
    assert found[-1] == 0.0
    asked.clear()
    plain = planned(*plan.measurements[:2], paths=((0,), (1,)))
    assert missed_exact(plain, errors, "unbounded") is not None
    assert [of for of, _, _ in asked] == [_as_choices(plain, "unbounded")]
    monkeypatch.setattr(exact_loss, "deltas_at", lambda of, *_: None if of.choices else (0.0,) * 41)
    assert missed_exact(plan, errors, "unbounded") is None
    monkeypatch.setattr(exact_loss, "deltas_at", lambda *_: (0.0,) * 41)
    # An epsilon beyond what e^epsilon holds tells of no error but 0.
    highest[0] = 4000.0
    assert missed_exact(plan, [0.0, 0.5], "unbounded") == (1.0, 0.5)
    highest[0] = None
    assert missed_exact(plan, errors, "unbounded") is None


def test_plans_compose_only_on_the_same_records() -> None:
    plan = planned(m("a", "1/90", **MANY))
    words = r"^the plans protect different records, or against other neighbours, and do not compose$"
    for other in (replace(plan, privacy_unit="unit"), replace(plan, neighbours=Neighbours.UNBOUNDED)):
        with pytest.raises(ValueError, match=words):
            epsilon_exact([plan, other])
    with pytest.raises(ValueError, match=r"^there is no plan$"):
        delta_exact([], 1.0)
    both = planned(plan.measurements[0], m("b", "1/90", **MANY))
    assert epsilon_exact([plan, plan], 1e-6) == pytest.approx(epsilon_exact(both, 1e-6), rel=1e-6)
    assert plan_as_json(plan, 1e-6)["totals"].items() >= exact_totals(plan, 1e-6).items()
    assert plan_as_json(plan)["totals"]["epsilon_exact"] == epsilon_exact(plan, 1e-10)


def test_distances_read_back_are_those_of_the_plan() -> None:
    far = Sensitivity(Fraction(3), Fraction(10**15), Fraction(5))
    plan = planned(m("a", "1/4", proven=far), m("b", "1/5", **MANY))
    again = read_plan(plan_as_json(plan))
    assert [(of.proven, of.by_one) for of in again.measurements] == [(far, True), (ONE, False)]
    described = plan.as_json()
    for distances in ({"bounded": str(10**15 + 1)}, {"unbounded": "3", "bounded": "2"}, {"same_household": "-1"}):
        described["measurements"][1]["moves"] = {"by_one": True, "unbounded": "1", "bounded": "2"} | distances
        with pytest.raises(ValueError, match=r"neighbours move a measurement by no distance that a plan can have"):
            read_plan(described)


def test_no_delta_of_1_or_above_and_no_epsilon_without_end() -> None:
    plan = planned(m("a", "1/4"))
    for delta in (1.0, 1.5):
        with pytest.raises(ValueError, match=r"^delta must lie strictly between 0 and 1$"):
            epsilon_exact(plan, delta)
    with pytest.raises(ConfigError, match=r"^--epsilon: must be positive and finite$"):
        scale_to(plan, math.inf, 0.1)
    with pytest.raises(ConfigError, match=r"^--delta: must lie strictly between 0 and 1$"):
        scale_to(plan, 1.0, 0.0)
