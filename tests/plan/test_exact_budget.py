"""A total told as an epsilon: kept by the law atom by atom, spent to the last millionth, on equal relative errors."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from composed_losses import composed, delta_of

import yupana
from yupana.cli.main import main
from yupana.errors import ConfigError
from yupana.interface.configured import setup
from yupana.plan.budgets import Entry, EpsilonTotal, Question, solve
from yupana.plan.exact_budget import SpentEpsilon, spend_epsilon
from yupana.plan.exact_loss import epsilon_exact
from yupana.plan.measurement import Measurement, Mechanism, Sensitivity
from yupana.plan.plan import Neighbours, Plan
from yupana.privacy.exact import INFINITE, Budget
from yupana.privacy.loss_terms import Shift
from yupana.privacy.zcdp import epsilon_tight
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


def asked(epsilon: str, sizes: Mapping[str, int], decimals: int | None = None) -> Question:
    total = EpsilonTotal(Fraction(epsilon), DELTA)
    return Question(total=total, sizes={name: Fraction(size) for name, size in sizes.items()}, decimals=decimals)


@pytest.mark.parametrize("mechanism", Mechanism)
@pytest.mark.parametrize(
    ("kept", "decimals"),
    [pytest.param(Fraction(0), None, marks=pytest.mark.thorough), (Fraction(1, 2), None), (Fraction(1, 2), 4)],
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
        return law_of()(budgets, population, delta)

    found, spent = spend_epsilon(asked("4", {"a": 1, "b": 1, "c": 1}), entries, Mechanism.ZCDP, epsilon_of)
    assert set(seen) == {("us", frozenset("ab")), ("pr", frozenset("c"))}
    for names in ("ab", "c"):
        epsilon = law_of()({name: found[name] for name in names}, "", float(DELTA))
        assert epsilon is not None
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
        epsilon = law_of()(budgets, population, delta)
        assert epsilon is not None
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
