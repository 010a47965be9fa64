"""The exact law of the loss of plans: which answers move, figures of 2020, and budgets scaled by it."""

import json
import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import yupana
from yupana.errors import ConfigError
from yupana.plan.exact_budget import SpentEpsilon, scale_to, times
from yupana.plan.exact_loss import (
    Untold,
    delta_exact,
    differences,
    epsilon_exact,
    exact_of_part,
    exact_totals,
    exact_where,
    missed_exact,
    plan_as_json,
)
from yupana.plan.measurement import Measurement, Mechanism, Sensitivity
from yupana.plan.plan import Neighbours, Plan, read_plan
from yupana.privacy.exact import INFINITE, Budget
from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric
from yupana.privacy.loss_law import epsilon_at
from yupana.privacy.loss_terms import Difference, Shift, ShiftChoice
from yupana.privacy.zcdp import epsilon_tight
from yupana.topdown.plan import epsilon_on_any_spine

ONE = Sensitivity(Fraction(1), Fraction(2))


def measured(name: str, budget: Budget, mechanism: Mechanism = Mechanism.ZCDP, **terms: object) -> Measurement:
    given: Any = {"sensitivity": ONE, "proven": ONE, "by_one": True} | terms
    return Measurement(name, name, "level", 4, mechanism, Fraction(2), budget=budget, **given)


def planned(*measurements: Measurement, **terms: object) -> Plan:
    mechanism = measurements[0].mechanism if measurements else Mechanism.ZCDP
    given: Any = {"neighbours": Neighbours.BOUNDED} | terms
    return Plan("p", "record", accounting="tight", confidence=Fraction(9, 10), mechanism=mechanism,
                measurements=measurements, **given)  # fmt: skip


def gaussian(budget: Budget) -> DiscreteGaussian:
    assert isinstance(budget, Fraction)
    return DiscreteGaussian(1 / budget)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("pl94-2020-us", 16.464, 16.49),
        ("pl94-2020-pr", 16.464, 16.49),
        ("h1-2020-us", 2.3631, 2.364),
        ("h1-2020-pr", 2.3631, 2.364),
    ],
)
def test_the_redistricting_data_of_2020(name: str, low: float, high: float) -> None:
    plan = yupana.plan("topdown", name)
    found = epsilon_exact(plan)
    assert found is not None
    assert low < found < high < epsilon_tight(plan.loss(), 1e-10)


def test_the_runs_of_the_dhc_by_their_budgets() -> None:
    """docs/exact-accounting.md; budgets in ten thousandths, of ten queries and of nine and one, by geolevel."""
    base = [73, 999, 310, 478, 478, 868, 430, 11]
    persons = [*base * 8, 292, 3996, 1240, 1912, 1912, 3472, 430, 11, 73, 999, 1240, 478, 478, 3472, 430, 11]
    units = [
        *(792, 212, 212, 792, 792, 257, 257, 212, 1049, 259, 714, 193, 191, 1428, 714, 3216, 3216, 193, 3931, 3216),
        *(986, 266, 1500, 1972, 3944, 1380, 1380, 266, 1380, 1380),
        *(973, 214, 1500, 1946, 973, 973, 973, 214, 973, 973) * 2,
        *(1150, 310, 1750, 2300, 4601, 1610, 1610, 310, 1610, 1610),
        *(291, 78, 442, 581, 1162, 407, 407, 78, 407, 407, 11, 3, 17, 22, 44, 15, 15, 3, 15, 15),
    ]
    for budgets, rho, expected in ((persons, Fraction(24811, 5000), 24.456), (units, Fraction(15401, 2000), 32.072)):
        plan = planned(*(measured(str(i), Fraction(budget, 10_000)) for i, budget in enumerate(budgets)))
        assert plan.loss() == rho
        assert epsilon_exact(plan) == pytest.approx(expected, abs=1e-3)


def test_attributes_and_moves_of_the_persons() -> None:
    from yupana.products.topdown.product import TOPDOWN  # noqa: PLC0415

    configuration = TOPDOWN.read("pl94-2020-us")
    told = TOPDOWN.promises(configuration, TOPDOWN.plan(configuration), 1e-10)["semantics"]
    entries = [*told["attributes"].values(), *told["geolevels"].values()]
    assert all(0 < entry["epsilon_exact"] < entry["epsilon"] for entry in entries)
    assert told["geolevels"]["Block in Block_Group"]["epsilon_exact"] == pytest.approx(2.795, abs=1e-3)


def test_one_way_counts_all_answers_that_a_record_moves() -> None:
    plan = planned(measured("a", Fraction(1, 3)), measured("b", Fraction(1, 5)))
    laws = gaussian(Fraction(1, 3)), gaussian(Fraction(1, 5))
    assert differences(plan, "unbounded") == (Difference(tuple(Shift(law) for law in laws)),)
    assert differences(plan, "bounded") == (Difference(tuple(Shift(law, 1, 2) for law in laws)),)


def test_a_record_that_changes_is_on_any_two_paths() -> None:
    a, b, c = (Fraction(1, n) for n in (3, 4, 5))
    plan = planned(measured("a", a), measured("b", b), measured("c", c), paths=((0, 1), (0, 2)))
    found = set(differences(plan, "bounded"))
    shift = [Shift(gaussian(budget), 1, 2) for budget in (a, b, c)]
    mixed = Difference((shift[0], Shift(gaussian(b)), Shift(gaussian(c))))
    assert found == {Difference((shift[0], shift[1])), Difference((shift[0], shift[2])), mixed}
    worst = max(bounds.upper for of in found if (bounds := epsilon_at(of, 1e-6)) is not None)
    assert epsilon_exact(plan, 1e-6) == pytest.approx(min(worst, epsilon_tight(plan.loss(), 1e-6)), rel=1e-9)


def test_many_paths_are_taken_together() -> None:
    """More pairs than are gone through one by one; the worst is that of the worst pair."""
    budgets = [Fraction(1, 9 + n) for n in range(28)]
    shared = [measured(f"shared {n}", Fraction(1, 20)) for n in range(8)]
    paths = tuple((n, *range(28, 36)) for n in range(28))
    plan = planned(*(measured(str(n), budget) for n, budget in enumerate(budgets)), *shared, paths=paths)
    with pytest.raises(Untold):
        differences(plan, "bounded")
    of_all = Shift(gaussian(Fraction(1, 20)), 1, 16)
    few = [gaussian(budget) for budget in budgets[:3]]
    pairs = [Difference((of_all, Shift(a), Shift(b))) for a, b in combinations(few, 2)]
    same = [Difference((of_all, Shift(a, 1, 2))) for a in few]
    worst = max(bounds.upper for of in (*pairs, *same) if (bounds := epsilon_at(of, 1e-6)) is not None)
    assert epsilon_exact(plan, 1e-6) == pytest.approx(worst, rel=5e-3)
    assert missed_exact(plan, [0.1]) is not None


def test_neighbours_that_move_some_measurements_are_those_of_a_plan_of_these() -> None:
    a, b, c = (measured(name, Fraction(1, n)) for name, n in (("a", 2), ("b", 3), ("c", 5)))
    plan, moved = planned(a, b, c), {"a": Fraction(2), "b": Fraction(0), "c": Fraction(3)}
    alike = planned(
        replace(a, proven=Sensitivity(Fraction(2), Fraction(4))),
        replace(c, proven=Sensitivity(Fraction(3), Fraction(6))),
        neighbours=Neighbours.UNBOUNDED,
    )
    for delta in (1e-10, 1e-4):
        found = exact_where(plan, moved, delta)
        assert found is not None
        assert found == epsilon_exact(alike, delta, "unbounded")
    assert exact_where(plan, moved) == exact_where(plan, moved, 1e-10)
    assert exact_where(plan, {}) == exact_where(plan, {"b": Fraction(0)}) == 0
    # Of paths, a record is on one; of several passes, neighbours may exchange records between them.
    ways, alone = planned(a, b, c, paths=((0, 1), (2,))), {"a": Fraction(2)}
    both = exact_where(ways, alone | {"c": Fraction(3)})
    assert both == pytest.approx(max(exact_where(ways, {name: moved[name]}) or 0 for name in "ac"), rel=1e-9)
    apart = [measured(name, Fraction(1), composition=f"pass:{name}") for name in "ab"]
    assert exact_where(planned(apart[0]), alone) is not None
    assert exact_where(planned(*apart), alone) is None


@pytest.mark.parametrize("mechanism", list(Mechanism))
def test_the_totals_tell_of_bounded_neighbours_beside_those_of_the_plan(mechanism: Mechanism) -> None:
    plan = planned(measured("a", Fraction(1, 2), mechanism), neighbours=Neighbours.UNBOUNDED)
    told = exact_totals(plan, 1e-6)
    at = told["exact_at_delta"] if mechanism is Mechanism.PURE else told
    assert at["epsilon_exact"] == epsilon_exact(plan, 1e-6, "unbounded")
    assert at["bounded_epsilon_exact"] == epsilon_exact(plan, 1e-6, "bounded") > at["epsilon_exact"]


def test_of_branches_that_move_more_than_one_count_the_worst_is_bounded() -> None:
    by_many = {"by_one": False, "composition": ""}
    for mechanism in Mechanism:
        names = {name: measured(name, Fraction(1, n), mechanism, **(by_many | {"composition": f"level:{name}"}))
                 for name, n in (("a", 40), ("b", 20))}  # fmt: skip
        both, worst = planned(*names.values()), planned(names["b"])
        for change in ("unbounded", "bounded"):
            assert epsilon_exact(both, 1e-6, change) == epsilon_exact(worst, 1e-6, change) is not None


def test_passes_are_ways_and_branches_are_choices() -> None:
    a, b, c = (Fraction(1, n) for n in (3, 4, 5))
    plan = planned(
        measured("a", a, composition="pass:us/level:x"),
        measured("b", b, composition="pass:us/level:y"),
        measured("c", c, composition="pass:pr"),
    )
    one, other, third = (Shift(gaussian(budget)) for budget in (a, b, c))
    assert set(differences(plan, "unbounded")) == {
        Difference(choices=(ShiftChoice(1, ((one,), (other,))),)),
        Difference((third,)),
    }
    assert set(differences(plan, "bounded")) == {
        Difference(choices=(ShiftChoice(2, ((one,), (other,))),)),
        Difference((third,), (ShiftChoice(1, ((one,), (other,))),)),
        Difference((replace(third, times=2),)),
    }


def test_small_noise_whose_worst_neighbours_are_not_known_has_no_figure() -> None:
    plan = planned(measured("a", Fraction(2), by_one=False))
    assert epsilon_exact(plan) is None
    assert delta_exact(plan, 1.0) is None
    assert missed_exact(plan, [0.1]) is None
    assert exact_totals(plan) == {"epsilon_exact": None, "bounded_epsilon_exact": None}


def test_wide_noise_whose_worst_neighbours_are_not_known_is_bounded_from_the_distance() -> None:
    plan = planned(measured("a", Fraction(1, 50), by_one=False))
    known = planned(measured("a", Fraction(1, 50)))
    found, least = epsilon_exact(plan), epsilon_exact(known)
    assert found is not None
    assert least is not None
    assert least < found < epsilon_tight(plan.loss(), 1e-10)


def test_pure_differential_privacy() -> None:
    plan = planned(*(measured(str(i), Fraction(1, 10), Mechanism.PURE) for i in range(30)))
    assert epsilon_exact(plan, 0.0) == 3.0
    told = exact_totals(plan, 1e-6)
    assert (told["epsilon_exact"], told["exact_at_delta"]["delta"]) == (3.0, 1e-6)
    exact = epsilon_at(Difference((Shift(TwoSidedGeometric(Fraction(20)), 1, 60),)), 1e-6)
    assert exact is not None
    assert told["exact_at_delta"]["epsilon_exact"] == exact.upper < 2.0
    unknown = planned(*(measured(str(i), Fraction(1, 10), Mechanism.PURE, by_one=False) for i in range(30)))
    bound = epsilon_exact(unknown, 1e-6)
    assert bound is not None
    assert exact.upper < bound < 3.0


def test_without_noise_or_neighbours_there_is_no_figure() -> None:
    assert epsilon_exact(planned(measured("a", INFINITE))) is None
    fixed = planned(measured("a", Fraction(1)), fixed_total=True)
    assert epsilon_exact(fixed, 1e-10, "unbounded") is None
    assert epsilon_exact(fixed) is not None
    assert epsilon_exact(planned(), 1e-10) == 0.0
    assert exact_of_part(fixed, ()) == 0.0


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, math.nan])
def test_impossible_deltas_are_refused(delta: float) -> None:
    with pytest.raises(ValueError, match="delta must lie strictly between 0 and 1"):
        epsilon_exact(planned(measured("a", Fraction(1))), delta)


def test_below_what_doubles_certify_there_is_no_figure() -> None:
    assert epsilon_exact(planned(measured("a", Fraction(1))), 1e-295) is None


def test_delta_and_epsilon_are_each_others_answer() -> None:
    plan = yupana.plan("topdown", "cook-2010")
    epsilon = epsilon_exact(plan, 1e-10)
    assert epsilon is not None
    assert delta_exact(plan, epsilon) == pytest.approx(1e-10, rel=1e-3)


def test_the_trade_off_curve_lies_below_that_of_normal_noise_and_near_it() -> None:
    plan = yupana.plan("topdown", "h1-2020-us")
    errors = [0.001, 0.05, 0.3]
    found = missed_exact(plan, errors)
    assert found is not None
    from yupana.audit.tradeoff import gaussian_missed  # noqa: PLC0415

    mu = math.sqrt(2 * float(plan.loss()))
    for a, b in zip(errors, found, strict=True):
        assert 0.98 * gaussian_missed(mu, a) < b < gaussian_missed(mu, a) + 1e-6


def test_plans_on_the_same_records_compose() -> None:
    one = planned(measured("a", Fraction(1, 3)))
    both = epsilon_exact([one, one])
    assert both == epsilon_exact(planned(measured("a", Fraction(1, 3)), measured("b", Fraction(1, 3))))
    with pytest.raises(ValueError, match="different records"):
        epsilon_exact([one, replace(one, privacy_unit="housing unit")])
    with pytest.raises(ValueError, match="no plan"):
        epsilon_exact([])


def test_a_plan_read_back_has_the_same_figures() -> None:
    plan = planned(measured("a", Fraction(1, 3)), measured("b", Fraction(1, 5)), fixed_total=True)
    described = plan_as_json(plan)
    again = read_plan(described)
    assert described["totals"]["epsilon_exact"] == epsilon_exact(again)
    assert epsilon_exact(again, 1e-10, "unbounded") is None
    described["measurements"][0]["moves"]["bounded"] = "1/0"
    with pytest.raises(ValueError, match=r"denominator zero"):
        read_plan(described)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 17.14, 60.0])
def test_budgets_are_scaled_to_the_largest_that_keep_epsilon(epsilon: float) -> None:
    plan = planned(*(measured(str(i), Fraction(1, 7 + i)) for i in range(5)))
    factor, found = scale_to(plan, epsilon, 1e-8)
    assert found.by == "exact"
    at = epsilon_exact(times(plan, factor), 1e-8)
    more = epsilon_exact(times(plan, factor * Fraction(100_001, 100_000)), 1e-8)
    assert at is not None
    assert more is not None
    assert at == found.epsilon <= epsilon < more


def test_budgets_that_the_law_does_not_bound_are_scaled_by_the_conversion() -> None:
    plan = planned(measured("a", Fraction(2), by_one=False))
    factor, found = scale_to(plan, 40.0, 1e-10)
    assert found.as_json() == {"epsilon": 40.0, "delta": 1e-10, "by": "conversion"}
    third = Sensitivity(Fraction(1, 3), ONE.bounded)
    pure = planned(measured("a", Fraction(2), Mechanism.PURE, by_one=False, proven=third))
    assert scale_to(pure, 5.0, 1e-10, lambda _: None) == (Fraction(5, 2), SpentEpsilon(5.0, 1e-10, "conversion"))
    assert epsilon_tight(times(plan, factor).loss(), 1e-10) == pytest.approx(40.0, rel=1e-6)
    assert epsilon_tight(times(plan, factor).loss(), 1e-10) <= 40.0


@pytest.mark.parametrize(
    ("plan", "epsilon", "delta", "told"),
    [
        (planned(measured("a", Fraction(1))), 0.0, 1e-10, "positive and finite"),
        (planned(measured("a", Fraction(1))), math.inf, 1e-10, "positive and finite"),
        (planned(measured("a", Fraction(1))), 1.0, 0.0, "strictly between 0 and 1"),
        (planned(measured("a", Fraction(1))), 1.0, 1.0, "strictly between 0 and 1"),
        (planned(measured("a", INFINITE)), 1.0, 1e-10, "infinite"),
        (planned(), 1.0, 1e-10, "measures nothing"),
    ],
)
def test_what_cannot_be_scaled_is_refused(plan: Plan, epsilon: float, delta: float, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        scale_to(plan, epsilon, delta)


def test_a_configuration_is_scaled() -> None:
    found = yupana.solve("topdown", "h1-2020-us", epsilon=3, delta="1e-8")
    epsilon = epsilon_on_any_spine(found, 1e-8)
    assert epsilon == pytest.approx(3, rel=2e-6)
    assert epsilon <= 3
    own = epsilon_exact(yupana.plan("topdown", found), 1e-8)
    assert own is not None
    assert 2.98 < own < epsilon
    with pytest.raises(ConfigError, match="needs one of"):
        yupana.solve("topdown", "h1-2020-us", epsilon=3, margins={"US total": 5})
    with pytest.raises(ConfigError, match="with epsilon only"):
        yupana.solve("topdown", "h1-2020-us", margins={"US total": 5}, delta=1e-8)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("account --plan nothing", "no plan of that name"),
        ("account --plan ddhc-2020-us", "several products have it"),
        ("account --plan cook-2010 --rho 1", "takes --delta or --epsilon"),
        ("account --plan pl94-2020-us --plan h1-2020-us", "do not compose"),
        ("topdown plan cook-2010 --epsilon 1 --targets nowhere.json", "not both"),
    ],
)
def test_what_the_command_line_refuses(arguments: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    from yupana.cli.main import main  # noqa: PLC0415

    assert main(arguments.split()) == 2
    assert told in capsys.readouterr().err


def test_the_command_line_tells_exact_epsilons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from yupana.cli.main import main  # noqa: PLC0415

    assert main(["topdown", "plan", "cook-2010", "--epsilon", "2", "--json"]) == 0
    written = tmp_path / "plan.json"
    written.write_text(capsys.readouterr().out, encoding="utf-8")
    told = json.loads(written.read_text(encoding="utf-8"))
    assert 2 * (1 - 2e-6) <= told["totals"]["epsilon_exact"] == told["scaled"]["epsilon"] <= 2
    assert main(["account", "--plan", str(written), "--delta", "1e-10", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["epsilon_exact"] == told["totals"]["epsilon_exact"]
    assert [point["delta"] for point in again["curve"]] == [1e-10, 1e-6, 1e-8, 1e-12]
    assert main(["account", "--plan", str(written), "--epsilon", "2"]) == 0
    assert "delta, exact" in capsys.readouterr().out
    del told["measurements"][0]["moves"]
    written.write_text(json.dumps(told), encoding="utf-8")
    assert main(["account", "--plan", str(written)]) == 2
    assert "holds no plan" in capsys.readouterr().err
