"""The trade-off between two answers: no point dominates another, and no strategy lies below."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import yupana
from yupana.products import PRODUCTS
from yupana.products.topdown.strategy import LEAST, AnswerPair, Frontier, TradeOff
from yupana.topdown.configuration import Configuration
from yupana.topdown.plan import with_budgets

BLOCKS = AnswerPair(("Block", "total"), ("Block", "detailed"), levels_kept=True)
PAIRS = {
    "pl94-2020-us": [
        BLOCKS,
        AnswerPair(("Block_Group", "total"), ("Block_Group", "P2"), levels_kept=True),
        AnswerPair(("Tract", "hispanic*cenrace"), ("Block", "total"), levels_kept=False),
        AnswerPair(("Block", "total"), ("Block", "detailed"), levels_kept=False),
    ],
    "h1-2020-us": [AnswerPair(("Tract", "H1"), ("Block", "H1"), levels_kept=False)],
    "cook-2010": [BLOCKS, AnswerPair(("Tract", "T1"), ("Block", "hispanic*race"), levels_kept=False)],
}


def below(frontier: Frontier, variances: tuple[float, float]) -> float:
    """By how much a point has a smaller weighted sum than any shares can have; not positive unless a bound is false."""
    return float((1 - frontier.weights @ np.array(variances) / frontier.bounds).max())


@pytest.mark.parametrize(("name", "pair"), [(name, pair) for name, pairs in PAIRS.items() for pair in pairs])
@pytest.mark.parametrize("least", [Fraction(0), LEAST / 6])
def test_no_point_dominates_another_and_no_strategy_lies_below(name: str, pair: AnswerPair, least: Fraction) -> None:
    config = PRODUCTS["topdown"].read(name)
    production = PRODUCTS["topdown"].production(config) if name != "cook-2010" else config
    between = TradeOff(config, pair)
    frontier = between.frontier(least, [production])
    first, second = frontier.variances.T
    assert (np.diff(first) > 0).all()
    assert (np.diff(second) < 0).all()
    assert (frontier.weights * frontier.variances).sum(axis=1) == pytest.approx(frontier.bounds, rel=1e-6)
    # Every point is on the right side of the tangents of all others: none lies below the curve.
    assert all(below(frontier, (one, other)) <= 1e-6 for one, other in frontier.variances)
    assert below(frontier, between.variances(config)) <= 1e-6
    assert below(frontier, between.variances(production)) <= 1e-6
    rng = np.random.default_rng(1)
    for _ in range(20):
        other = with_budgets(config, {n: Fraction(rng.exponential()) for n in PRODUCTS["topdown"].entries(config)})
        assert below(TradeOff(config, pair).frontier(Fraction(0), [other]), between.variances(other)) <= 1e-6


@pytest.mark.parametrize("levels", [None, {"Tract": 1, "Block": 1}])
def test_what_a_strategy_finds_for_the_two_alone_is_on_it(levels: dict[str, int] | None) -> None:
    for name in ("cook-2010", "pl94-2020-us"):
        config = PRODUCTS["topdown"].read(name)
        targets = {"queries": {"total": 1, "detailed": "1/5"}} | ({"levels": levels} if levels else {})
        found = yupana.strategy(name, targets=targets, least=0)
        pair = replace(BLOCKS, levels_kept=levels is None)
        between = TradeOff(config, pair)
        frontier = between.frontier(Fraction(0))
        there = between.variances(found.found)
        assert below(frontier, there) <= 1e-6
        told = {row.target: row.found for row in found.rows if row.level == "Block"}
        assert there == pytest.approx((told["total"], told["detailed"]))
        if levels is None:
            # The tangent with these weights touches it there.
            weights = np.array([1, PRODUCTS["topdown"].read(name).schema.cells / 5])
            nearest = (frontier.variances @ weights).min()
            assert np.array(there) @ weights <= nearest * (1 + 1e-6)


def test_variances_are_at_the_budget_that_there_is() -> None:
    config = PRODUCTS["topdown"].read("cook-2010")
    richer = replace(config, budget=config.budget * 3)
    for kept in (True, False):
        between = TradeOff(config, replace(BLOCKS, levels_kept=kept))
        assert between.variances(richer) == pytest.approx(between.variances(config))
    blocks = {
        n: Fraction(1) if n.startswith("Block ") else Fraction(1, 10) for n in PRODUCTS["topdown"].entries(config)
    }
    other = with_budgets(config, blocks)
    shares = [TradeOff(config, replace(BLOCKS, levels_kept=kept)).variances(other)[1] for kept in (True, False)]
    assert shares[0] / shares[1] == pytest.approx(float(other.shares["Block"] / config.shares["Block"]))


def test_a_query_has_the_least_asked_for_or_what_it_has() -> None:
    config = PRODUCTS["topdown"].read("cook-2010")
    even = with_budgets(config, dict.fromkeys(PRODUCTS["topdown"].entries(config), Fraction(1)))
    wide, narrow = (TradeOff(one, BLOCKS).frontier(LEAST) for one in (config, even))
    scale = float(config.budget * config.shares["Block"] / (even.budget * even.shares["Block"]))
    # With production's shares, which are below the least, the curve reaches further.
    assert wide.variances[-1, 1] < narrow.variances[-1, 1] / scale
    assert below(TradeOff(config, BLOCKS).frontier(LEAST), TradeOff(config, BLOCKS).variances(config)) <= 1e-6


def coarse() -> Configuration:
    levels = ("US", "State", "Block")
    document = {
        "product": "coarse",
        "rho": "1/2",
        "schema": {"sex": 2, "age": 4},
        "shares": dict.fromkeys(levels, "1/3"),
        "queries": {level: {"total": "1/2", "sex": "1/2"} for level in levels},
    }
    return yupana.strategy(document, targets={"queries": {"total": 1}}).given


@pytest.mark.parametrize(
    ("first", "second", "kept", "told"),
    [
        (("Block", "total"), ("State", "total"), True, "cost each other nothing"),
        (("Tract", "total"), ("Block", "total"), False, "Tract has no share"),
        (("Block", "income"), ("Block", "total"), True, "'income' is unknown"),
        (("Block", "age"), ("Block", "total"), True, "told by no query"),
        (("Block", "total"), ("Block", "total"), True, "two different answers"),
    ],
)
def test_pairs_without_a_trade_off_are_refused(
    first: tuple[str, str], second: tuple[str, str], *, kept: bool, told: str
) -> None:
    with pytest.raises(yupana.ConfigError, match=told):
        TradeOff(coarse(), AnswerPair(first, second, kept)).frontier(Fraction(0))


def test_what_is_exact_has_no_trade_off() -> None:
    config = PRODUCTS["topdown"].read("pl94-2020-us")
    with pytest.raises(yupana.ConfigError, match="total of US is known exactly"):
        TradeOff(config, AnswerPair(("US", "total"), ("US", "detailed"), levels_kept=True))
