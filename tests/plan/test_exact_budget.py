"""A total told as an epsilon: kept by the law atom by atom, spent to the last millionth, on equal relative errors."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest
from composed_losses import composed, delta_of

import yupana
from yupana.cli.main import main
from yupana.errors import ConfigError
from yupana.interface.configured import setup
from yupana.plan.budgets import Entry, EpsilonTotal, Question, solve
from yupana.plan.exact_budget import SpentEpsilon, _down, largest, scale_to, spend_epsilon, times
from yupana.plan.exact_loss import epsilon_exact
from yupana.plan.measurement import Measurement, Mechanism, Sensitivity
from yupana.plan.plan import Neighbours, Plan
from yupana.privacy.exact import INFINITE, Budget
from yupana.privacy.loss_terms import Shift
from yupana.privacy.zcdp import epsilon_tight, rho_for_epsilon
from yupana.products.safetab.demonstration_parameters import write_parameters

DELTA = Fraction(1, 10**6)
NINETY = Fraction(9, 10)


def entries_of(budgets: Mapping[str, Budget], population: str = "") -> dict[str, Entry]:
    return {name: Entry(budget, Fraction(2), population=population) for name, budget in budgets.items()}


def planned(budgets: Mapping[str, Budget], mechanism: Mechanism, *, by_one: bool = True) -> Plan:
    one = Sensitivity(Fraction(1), Fraction(2))
    measurements = tuple(
        Measurement(name, name, "l", 1, mechanism, Fraction(2), one, one, budget, by_one=by_one)
        for name, budget in budgets.items()
        if budget
    )
    return Plan("p", "record", Neighbours.BOUNDED, "tight", NINETY, mechanism, measurements)


def law_of(
    mechanism: Mechanism = Mechanism.ZCDP, *, by_one: bool = True
) -> Callable[[Mapping[str, Budget], str, float], float | None]:
    return lambda budgets, _, delta: epsilon_exact(planned(budgets, mechanism, by_one=by_one), delta)


def quickly(budgets: Mapping[str, Budget], _: str, delta: float) -> float:
    """An epsilon that is told in no time, where it does not matter by which law."""
    return epsilon_tight(sum(Fraction(budget) for budget in budgets.values()), delta)


def asked(epsilon: str, sizes: Mapping[str, int], decimals: int | None = None) -> Question:
    total = EpsilonTotal(Fraction(epsilon), DELTA)
    return Question(total=total, sizes={name: Fraction(size) for name, size in sizes.items()}, decimals=decimals)


@pytest.mark.parametrize(
    ("mechanism", "kept", "decimals"),
    [
        *(pytest.param(mechanism, Fraction(0), None, marks=pytest.mark.thorough) for mechanism in Mechanism),
        *((mechanism, Fraction(1, 2), None) for mechanism in Mechanism),
        (Mechanism.PURE, Fraction(1, 2), 4),
    ],
)
def test_the_law_atom_by_atom_keeps_the_epsilon_and_no_larger_total_does(
    mechanism: Mechanism, kept: Fraction, decimals: int | None
) -> None:
    entries = entries_of({"a": Fraction(1), "b": kept})
    found, spent = spend_epsilon(asked("6", {"a": 30}, decimals), entries, mechanism, law_of(mechanism))
    assert found["b"] == kept
    assert spent.by == "exact"

    def delta(factor: Fraction) -> float:
        noise = (m.law for m in planned({n: b * factor for n, b in found.items()}, mechanism).measurements)
        return float(delta_of(composed(Shift(law, 1, 2) for law in noise), spent.epsilon))  # type: ignore[arg-type]

    assert delta(Fraction(1)) <= float(DELTA)
    assert spent.epsilon <= 6
    if decimals is None:
        assert spent.epsilon > 6 * (1 - 1e-6)
        assert delta(Fraction("1.001")) > float(DELTA)
    else:
        assert Fraction(found["a"]) * 10**4 == int(Fraction(found["a"]) * 10**4)


@pytest.mark.parametrize("mechanism", Mechanism)
def test_relative_errors_are_equal(mechanism: Mechanism) -> None:
    entries = entries_of({"a": Fraction(1), "b": Fraction(1), "c": Fraction(1, 10)})
    found, _ = spend_epsilon(asked("3", {"a": 30, "b": 20}), entries, mechanism, law_of(mechanism))
    plan = planned(found, mechanism)
    assert plan["a"].sigma / 30 == pytest.approx(plan["b"].sigma / 20, rel=1e-9)


def test_each_population_spends_the_epsilon() -> None:
    entries = entries_of({"a": Fraction(1), "b": Fraction(1)}, "us") | entries_of({"c": Fraction(1)}, "pr")
    seen = []

    def epsilon_of(budgets: Mapping[str, Budget], population: str, delta: float) -> float | None:
        seen.append((population, frozenset(budgets)))
        return quickly(budgets, population, delta)

    found, spent = spend_epsilon(asked("4", {"a": 1, "b": 1, "c": 1}), entries, Mechanism.ZCDP, epsilon_of)
    assert set(seen) == {("us", frozenset("ab")), ("pr", frozenset("c"))}
    for names in ("ab", "c"):
        epsilon = quickly({name: found[name] for name in names}, "", float(DELTA))
        assert 4 * (1 - 1e-6) < epsilon <= spent.epsilon <= 4


def test_where_the_law_gives_no_bound_the_conversion_is_kept() -> None:
    entries = entries_of({"a": Fraction(2), "b": Fraction(1)})
    question = asked("40", {"a": 1})
    found, spent = spend_epsilon(question, entries, Mechanism.ZCDP, law_of(by_one=False))
    assert (spent.by, found["b"]) == ("conversion", Fraction(1))
    loss = sum(Fraction(budget) for budget in found.values())
    assert 40 * (1 - 1e-9) < epsilon_tight(loss, float(DELTA)) <= 40
    with pytest.raises(ConfigError, match="by the conversion of the loss entries without a size keep 1"):
        spend_epsilon(asked("1", {"a": 1}), entries, Mechanism.ZCDP, law_of(by_one=False))


def test_what_cannot_be_spent_is_refused() -> None:
    question = asked("1", {"a": 1})
    for kept, told in ((Fraction(1), r"keep epsilon \d"), (INFINITE, "keep an infinite budget")):
        with pytest.raises(ConfigError, match=told):
            spend_epsilon(question, entries_of({"a": Fraction(1), "b": kept}), Mechanism.ZCDP, law_of())
    with pytest.raises(ConfigError, match="rounded down to 0"):
        spend_epsilon(asked("0.1", {"a": 1}, 1), entries_of({"a": Fraction(1)}), Mechanism.ZCDP, law_of())
    with pytest.raises(TypeError, match="no epsilon"):
        spend_epsilon(replace(question, total=Fraction(1)), {}, Mechanism.ZCDP, law_of())
    with pytest.raises(TypeError, match="spend_epsilon"):
        solve(question, entries_of({"a": Fraction(1)}), NINETY, Mechanism.ZCDP)


def test_rounding_that_raises_epsilon_lowers_the_total() -> None:
    """More noise of one discrete law is not always told worse, so what is rounded down is asked of the law again."""
    rounded = []

    def epsilon_of(budgets: Mapping[str, Budget], population: str, delta: float) -> float | None:
        epsilon = quickly(budgets, population, delta)
        if budgets["a"].denominator > 10**3:  # type: ignore[union-attr]
            return epsilon
        rounded.append(budgets["a"])
        return 3.1 if len(rounded) == 1 else epsilon

    found, spent = spend_epsilon(asked("3", {"a": 1}, 3), entries_of({"a": Fraction(1)}), Mechanism.ZCDP, epsilon_of)
    assert len(rounded) == 2
    assert found["a"] == rounded[1] <= rounded[0]
    assert spent.epsilon <= 6


SIZES = {"PH2/usa_*": "1000000", "PH2/state_*": "20000"}


def test_the_command_and_the_function_say_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "targets.json"
    path.write_text(json.dumps({"total": {"epsilon": "9.5"}, "sizes": SIZES, "decimals": 6}))
    assert main(["phsafe", "plan", "s-dhc-2020-us", "--targets", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["spent"] == {"epsilon": told["totals"]["epsilon_exact"], "delta": 1e-10, "by": "exact"}
    assert 9.49 < told["spent"]["epsilon"] <= 9.5
    plan = yupana.plan("phsafe", told["configuration"])
    assert {m.name: str(m.budget) for m in plan.measurements} == {m["name"]: m["rho"] for m in told["measurements"]}
    same = yupana.solve("phsafe", "s-dhc-2020-us", targets=path)
    also = yupana.solve("phsafe", "s-dhc-2020-us", total={"epsilon": "9.5", "delta": "1e-10"}, sizes=SIZES, decimals=6)
    assert yupana.plan("phsafe", same) == yupana.plan("phsafe", also) == plan
    assert main(["phsafe", "plan", "s-dhc-2020-us", "--targets", str(path)]) == 0
    assert "at delta 1e-10 by the exact law" in capsys.readouterr().out


@pytest.mark.parametrize(("product", "name"), [("tables", "s-dhc-2020-us"), ("topdown", "cook-2010")])
def test_products_spend_an_epsilon(product: str, name: str) -> None:
    case = setup(product, name, set=None, renormalise=False, codes=None, accounting=None, confidence=None, margins=None)
    sizes = {name: 100 * (1 + number) for number, name in enumerate(case.product.entries(case.config))}
    found = yupana.solve(product, case, total={"epsilon": 5, "delta": "1e-8"}, sizes=sizes)
    epsilon = case.product.epsilon_exact(found, yupana.plan(product, found), 1e-8)
    assert 5 * (1 - 1e-6) < epsilon <= 5


@pytest.mark.parametrize("product", ["safetab-p", "safetab-h"])
def test_safetab_spends_it_in_its_pass(product: str, tmp_path: Path) -> None:
    folder = tmp_path / "parameters"
    write_parameters(folder)
    case = setup(product, folder, accounting=None, confidence=None, margins=None)
    entries = case.product.entries(case.config)
    assert {entry.population for entry in entries.values()} == {"us"}
    found = yupana.solve(product, case, total={"epsilon": 5}, sizes=dict.fromkeys(entries, 1000))
    epsilon = epsilon_exact(yupana.plan(product, found))
    assert epsilon is not None
    assert 5 * (1 - 1e-6) < epsilon <= 5


@pytest.mark.parametrize(
    ("total", "told"),
    [
        ({}, "total: key 'epsilon' is missing"),
        ({"delta": "1e-10"}, "total: key 'epsilon' is missing"),
        ({"epsilon": 0}, "total.epsilon: must be a number between"),
        ({"epsilon": "lots"}, "total.epsilon"),
        ({"epsilon": "4", "delta": 0}, "total.delta: must lie strictly between 0 and 1"),
        ({"epsilon": "4", "delta": "1"}, "total.delta: must lie strictly between 0 and 1"),
        ({"epsilon": "4", "delta": "1e-400"}, "total.delta: must lie strictly between 0 and 1"),
        ({"epsilon": "4", "delta": []}, "total.delta: must be a number"),
        ({"epsilon": "4", "dleta": "1e-9"}, "'dleta' is unknown"),
        ({"epsilon": "4", "delta": "x"}, "total.delta"),
        ([4], "total: must be a number"),
        ({"epsilon": "1e-3"}, "which leaves nothing"),
    ],
)
def test_a_total_that_is_none_is_refused_by_its_key(
    total: object, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "targets.json"
    path.write_text(json.dumps({"total": total, "sizes": SIZES}))
    assert main(["phsafe", "plan", "s-dhc-2020-us", "--targets", str(path)]) == 2
    message = capsys.readouterr().err
    assert told in message
    assert "Traceback" not in message


def test_what_is_spent_is_described() -> None:
    spent = SpentEpsilon(1.5, 1e-6, "conversion")
    assert spent.as_json() == {"epsilon": 1.5, "delta": 1e-6, "by": "conversion"}


def test_the_largest_number_is_found_by_the_secant_of_rho() -> None:
    """Where rho is linear in the number, as here, a few steps are enough; 0 may keep an epsilon already."""
    asked: list[Fraction] = []

    def epsilon_of(number: Fraction) -> float:
        asked.append(number)
        return epsilon_tight(Fraction(1, 50) + 3 * number, 1e-6)

    for first in (1e-4, 0.02, 1.0, 300.0):
        asked.clear()
        found = largest(epsilon_of, 2.0, 1e-6, first, epsilon_tight(Fraction(1, 50), 1e-6))
        assert found is not None
        assert 2.0 * (1 - 1e-6) <= found[1] <= 2.0
        assert 3 * float(found[0]) + 0.02 == pytest.approx(rho_for_epsilon(2.0, 1e-6), rel=3e-6)
        assert len(asked) <= (6 if first < 1 else 12)
        assert asked[0] == Fraction(str(first))
    assert largest(lambda _: None, 2.0, 1e-6, 1.0) is None


def test_the_search_goes_on_for_forty_steps_within_its_bracket() -> None:
    asked: list[float] = []

    def step(number: Fraction) -> float:
        asked.append(float(number))
        return 5.0 if number > Fraction(3, 10) else 1.0

    found = largest(step, 2.0, 1e-6, 1.0)
    assert found is not None
    assert 0.2999 < found[0] <= Fraction(3, 10)
    assert found[1] == 1.0
    assert len(asked) == 40
    # A step goes to between a fiftieth and 49 of the bracket: this one, linear in rho, to 3/10 of it or more.
    low, high = 0.0, math.inf
    for number, after in pairwise(asked):
        low, high = (number, high) if number <= 0.3 else (low, number)
        assert low + 0.0199 * (high - low) <= after <= low + 0.9801 * (high - low)
    # What never keeps the epsilon is halved or less, and gives nothing; what always keeps it grows a millionfold.
    asked.clear()
    assert largest(lambda number: asked.append(float(number)) or 5.0, 2.0, 1e-6, 1.0) is None  # type: ignore[func-returns-value]
    assert len(asked) == 40
    asked.clear()
    most = largest(lambda number: asked.append(float(number)) or 0.0, 2.0, 1e-6, 1.0)  # type: ignore[func-returns-value]
    assert most is not None
    assert asked[:3] == pytest.approx([1.0, 1e6, 1e12], rel=1e-8)
    assert float(most[0]) == asked[-1]
    # An epsilon that is met to less than a millionth ends it.
    for told, steps in ((2.0, 1), (2.0 * (1 - 0.9e-6), 1), (2.0 * (1 - 1.1e-6), 40)):
        asked.clear()
        assert largest(lambda number, told=told: asked.append(float(number)) or told, 2.0, 1e-6, 1.0) is not None  # type: ignore[misc]
        assert len(asked) == steps


def test_factors_are_rounded_down_to_nine_digits() -> None:
    for number, digits in ((0.123456789987, "0.123456789"), (1234567899.0, "1234567890"), (1.0, "1"), (0.001, "0.001"),
                           (99.9999999999, "99.9999999")):  # fmt: skip
        assert _down(number) == Fraction(digits)


def test_all_budgets_are_scaled_by_one_factor_to_what_the_law_or_the_conversion_keeps() -> None:
    plan = planned({"a": Fraction(1, 90), "b": Fraction(1, 70)}, Mechanism.ZCDP, by_one=False)
    assert [m.budget for m in times(plan, Fraction(3, 2)).measurements] == [Fraction(1, 60), Fraction(3, 140)]

    def epsilon_of(factor: Fraction) -> float:
        return epsilon_tight(plan.loss() * factor, 1e-6)  # type: ignore[operator, arg-type]

    factor, found = scale_to(plan, 1.5, 1e-6, epsilon_of)
    assert (found.by, found.delta) == ("exact", 1e-6)
    assert 1.5 * (1 - 1e-6) <= found.epsilon == epsilon_of(factor) <= 1.5
    assert found.as_json() == {"epsilon": found.epsilon, "delta": 1e-6, "by": "exact"}
    small = planned({"a": Fraction(2), "b": Fraction(1)}, Mechanism.ZCDP, by_one=False)
    factor, told = scale_to(small, 40.0, 1e-6)
    assert (told.by, told.epsilon, told.delta) == ("conversion", 40.0, 1e-6)
    assert float(factor) == pytest.approx(rho_for_epsilon(40.0, 1e-6) / 3, rel=2e-9)
    assert float(factor) <= rho_for_epsilon(40.0, 1e-6) / 3
    pure = planned({"a": Fraction(2), "b": Fraction(1)}, Mechanism.PURE)
    # The search from outside begins where that of the plan ended, and at 1 where it found nothing.
    asked: list[Fraction] = []
    by_conversion = SpentEpsilon(6.0, 1e-6, "conversion")
    assert scale_to(pure, 6.0, 1e-6, asked.append) == (2, by_conversion)  # type: ignore[func-returns-value]
    assert len(asked) == 1
    assert 2 * (1 - 2e-6) < asked[0] < 2 * (1 - 1e-7)
    asked.clear()
    assert scale_to(small, 40.0, 1e-6, asked.append)[1].by == "conversion"  # type: ignore[func-returns-value]
    assert asked == [1]


@pytest.mark.parametrize(
    ("plan", "epsilon", "delta", "words"),
    [
        (planned({"a": Fraction(1)}, Mechanism.ZCDP), 0.0, 0.1, "--epsilon: must be positive and finite"),
        (planned({"a": Fraction(1)}, Mechanism.ZCDP), 1.0, 1.0, "--delta: must lie strictly between 0 and 1"),
        (
            planned({}, Mechanism.ZCDP),
            1.0,
            0.1,
            "--epsilon: the plan measures nothing, so there is no budget to scale",
        ),
        (
            planned({"a": INFINITE}, Mechanism.ZCDP),
            1.0,
            0.1,
            "--epsilon: a budget is infinite; there is nothing to scale",
        ),
    ],
)
def test_what_cannot_be_scaled_is_refused_in_these_words(plan: Plan, epsilon: float, delta: float, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        scale_to(plan, epsilon, delta)
    assert str(caught.value) == words


def by_conversion(budgets: Mapping[str, Budget], population: str, delta: float) -> float | None:
    """Stands for a law that tells what the conversion tells, quickly."""
    assert population == "us"
    loss = sum(Fraction(budget) for budget in budgets.values())
    return epsilon_tight(loss, delta) if loss else 0.0


def test_a_total_is_spent_to_the_last_millionth_beside_what_is_kept() -> None:
    entries = entries_of({"a": Fraction(7), "b": Fraction(7), "c": Fraction(1, 100)}, "us")
    rho = rho_for_epsilon(3.0, float(DELTA))
    found, spent = spend_epsilon(asked("3", {"a": 30, "b": 20}), entries, Mechanism.ZCDP, by_conversion)
    assert (list(found), found["c"]) == (["a", "b", "c"], Fraction(1, 100))
    assert float(sum(Fraction(of) for of in found.values())) == pytest.approx(rho, rel=3e-6)
    # Errors by size are equal: budgets are as the squares of 1 / size.
    assert float(found["a"] / found["b"]) == pytest.approx((20 / 30) ** 2, rel=1e-9)
    assert spent.by == "exact"
    assert spent.delta == float(DELTA)
    assert 3 * (1 - 1e-6) <= spent.epsilon == by_conversion(found, "us", float(DELTA)) <= 3
    rounded, spent = spend_epsilon(asked("3", {"a": 30, "b": 20}, 3), entries, Mechanism.ZCDP, by_conversion)
    assert all(Fraction(rounded[name]) * 1000 == int(Fraction(found[name]) * 1000) for name in "ab")
    assert spent.epsilon == by_conversion(rounded, "us", float(DELTA))


def test_where_there_is_no_bound_the_rest_of_the_loss_is_shared() -> None:
    entries = entries_of({"a": Fraction(7), "c": Fraction(1, 2)}, "us")
    for mechanism, rest in ((Mechanism.PURE, Fraction(17, 2)), (Mechanism.ZCDP, rho_for_epsilon(9.0, 1e-6) - 0.5)):
        budgets, spent = spend_epsilon(asked("9", {"a": 9}), entries, mechanism, lambda *_: None)
        assert float(budgets["a"]) == pytest.approx(float(rest), rel=1e-9)
        assert (budgets["c"], spent) == (Fraction(1, 2), SpentEpsilon(9.0, float(DELTA), "conversion"))


def test_what_leaves_nothing_is_refused_in_these_words() -> None:
    kept = entries_of({"a": Fraction(1), "b": Fraction(1)}, "us")
    for entries, epsilon_of, words in (
        (
            entries_of({"a": Fraction(1), "b": INFINITE}, "us"),
            by_conversion,
            "total: entries without a size keep an infinite budget, which leaves nothing",
        ),
        (
            kept,
            lambda *_: 1.0,
            "total: entries without a size keep epsilon 1 at this delta, which leaves nothing; give them sizes, or "
            "budgets of 0",
        ),
        (
            kept,
            lambda *_: None,
            "total: the exact law gives no bound here, and by the conversion of the loss entries without a size keep "
            "1, which leaves nothing",
        ),
    ):
        with pytest.raises(ConfigError) as caught:
            spend_epsilon(asked("1", {"a": 1}), entries, Mechanism.PURE, epsilon_of)  # type: ignore[arg-type]
        assert str(caught.value) == words


def test_rounding_that_never_keeps_the_epsilon_is_tried_twenty_times_with_ever_less() -> None:
    rounded: list[Fraction] = []

    def epsilon_of(budgets: Mapping[str, Budget], _: str, delta: float) -> float:
        if Fraction(budgets["a"]).denominator <= 10**4:
            rounded.append(Fraction(budgets["a"]))
            return 3.1
        return epsilon_tight(Fraction(budgets["a"]), delta)

    with pytest.raises(ConfigError) as caught:
        spend_epsilon(asked("3", {"a": 1}, 4), entries_of({"a": Fraction(1)}), Mechanism.ZCDP, epsilon_of)
    assert str(caught.value) == "decimals: no budgets of so few digits keep this epsilon"
    assert len(rounded) == 20
    assert float(rounded[-1] / rounded[0]) == pytest.approx((1 - 1e-4) ** 19, abs=1e-3)
    with pytest.raises(TypeError, match=r"^the total is no epsilon$"):
        spend_epsilon(replace(asked("3", {"a": 1}), total=Fraction(1)), {}, Mechanism.ZCDP, epsilon_of)


def test_the_population_that_has_most_is_told() -> None:
    """By the conversion, if any of them is; else the largest epsilon."""
    entries = entries_of({"a": Fraction(1)}, "us") | entries_of({"b": Fraction(1)}, "pr")

    def epsilon_of(budgets: Mapping[str, Budget], population: str, delta: float) -> float | None:
        return None if population == unknown else epsilon_tight(sum(map(Fraction, budgets.values())), delta)

    for unknown, by in (("us", "conversion"), ("pr", "conversion"), ("none", "exact")):  # noqa: B007 (of epsilon_of)
        _, spent = spend_epsilon(asked("3", {"a": 1, "b": 1}), entries, Mechanism.ZCDP, epsilon_of)
        assert spent.by == by
        assert 3 * (1 - 1e-6) <= spent.epsilon <= 3


def test_a_share_of_the_loss_is_rounded_as_well_and_any_population_by_conversion_is_told() -> None:
    entries = entries_of({"a": Fraction(1)}, "us") | entries_of({"b": Fraction(1)}, "pr")

    def epsilon_of(budgets: Mapping[str, Budget], population: str, _: float) -> float | None:
        return None if population == "us" else float(sum(map(Fraction, budgets.values())))

    budgets, spent = spend_epsilon(asked("2.99999", {"a": 1, "b": 1}, 2), entries, Mechanism.PURE, epsilon_of)
    assert (budgets["a"], budgets["b"]) == (Fraction("2.99"), Fraction("2.99"))
    # The other population keeps 2.99.
    assert spent == SpentEpsilon(2.99999, float(DELTA), "conversion")
