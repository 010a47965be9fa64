"""Strategies of whole configurations: better than what there was, read back by a run, and refused with a reason."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from scipy.optimize import minimize

import yupana
from yupana.arrays import Floats
from yupana.cli.main import main
from yupana.plan.measurement import z_value
from yupana.products import PRODUCTS
from yupana.products.strategy import Joined

_ALONE: Final[tuple[Joined, ...]] = ("sum", "max")
LEVELS: Final = ("US", "State", "County", "Tract", "Block_Group", "Block")
SMALL: dict[str, Any] = {
    "product": "small",
    "rho": "1/2",
    "schema": {"sex": 2, "age": 4},
    "shares": {"US": "1/2", "State": "1/4", "Block": "1/4"},
    "queries": {level: {"total": "1/4", "sex": "1/4", "detailed": "1/2"} for level in ("US", "State", "Block")},
}


def small(**more: object) -> dict[str, Any]:
    return {**SMALL, **more}


@pytest.mark.parametrize("name", ["pl94-2020-us", "pl94-2020-pr", "cook-2010", "pl94-2020-us-block-total"])
@pytest.mark.parametrize("loss", ["sum", "max"])
@pytest.mark.parametrize("least", ["0", "1/50"])
def test_at_every_geolevel_ten_percent_below_production(name: str, loss: Joined, least: str) -> None:
    found = yupana.strategy(name, loss=loss, least=least)
    assert found.gap < 2e-6
    assert found.found_loss <= 0.9 * found.given_loss
    assert found.found.budget == found.given.budget
    assert found.found.shares == found.given.shares
    assert found.found.invariants == found.given.invariants
    for level, of_level in found.found.queries.items():
        assert sum(share for _, share in of_level) == 1, level
    if loss == "sum":
        assert set(found.levels) == set(found.given.levels)
        assert all(ratio <= 0.9 for ratio in found.levels.values())
        assert sum(row.weight * row.given for row in found.rows) == pytest.approx(found.given_loss)
        assert sum(row.weight * row.found for row in found.rows) == pytest.approx(found.found_loss)


def test_a_target_of_every_query_is_never_worse_than_what_there_was_or_equal_shares() -> None:
    for targets in (
        {"queries": {"total": 3, "detailed": "1/10"}},
        {"queries": {"sex": 1, "age": 1}, "levels": {"US": 1, "Block": 2}},
        {"queries": {"T1": 1, "detailed": 1}, "levels": {"State": 1}, "children": {"State": 4, "Block": 30}},
        {"queries": {"T1": 1}, "children": {"State": 4, "Block": 30}},
    ):
        for loss in _ALONE:
            found = yupana.strategy(small(), targets=targets, loss=loss, least=0)
            equal = {level: {"total": "1/3", "sex": "1/3", "detailed": "1/3"} for level in SMALL["queries"]}
            third = {"US": "1/3", "State": "1/3", "Block": "1/3"}
            even = yupana.strategy(
                small(queries=equal, shares=third if "levels" in targets else SMALL["shares"]),
                targets=targets,
                loss=loss,
                least=0,
            )
            assert found.gap < 2e-6
            assert found.found_loss <= found.given_loss * (1 + 2e-6)
            assert found.found_loss <= even.given_loss * (1 + 2e-6)
            assert found.found_loss == pytest.approx(even.found_loss, rel=4e-6)


def test_all_queries_are_estimated_together_as_is_predicted() -> None:
    found = yupana.strategy("cook-2010").found
    for level in found.levels:
        assert found.passes[level].estimate == (tuple(query for query, _ in found.measured(level)),)
        assert found.passes[level].round == yupana.PRODUCTS["topdown"].read("cook-2010").passes[level].round


def test_what_is_written_is_read_back_with_the_same_loss_of_privacy(tmp_path: Path) -> None:
    found = yupana.strategy(
        "pl94-2020-us", targets={"queries": {"P1": 1}, "levels": {"Tract": 1, "Block": 1}}, least=0.005
    )
    path = tmp_path / "found.json"
    path.write_text(json.dumps(PRODUCTS["topdown"].document(found.found)))
    plan = yupana.plan("topdown", path)
    assert plan.loss() == yupana.plan("topdown", "pl94-2020-us").loss()
    assert yupana.plan("topdown", found.found).loss() == plan.loss()


@pytest.mark.slow
def test_the_largest_ratio_leaves_no_answer_worse() -> None:
    found = yupana.strategy("cook-2010", targets={"queries": {"T1": 1, "hispanic*race": 1}}, loss="ratio", least=0)
    assert found.given_loss == pytest.approx(1)
    assert found.found_loss < 1
    assert found.gap < 2e-6
    for target in ("total", "race", "hispanic", "votingage", "hispanic*race"):
        one = yupana.strategy(
            PRODUCTS["topdown"].document(found.found), targets={"queries": {target: 1}}, loss="max"
        ).given_loss
        assert one <= yupana.strategy("cook-2010", targets={"queries": {target: 1}}, loss="max").given_loss, target


@pytest.mark.parametrize("loss", ["max", "ratio"])
@pytest.mark.thorough
def test_the_largest_of_all_geolevels_is_least(loss: Joined) -> None:
    # Many goals of very unlike sizes, where shares of geolevels are found.
    found = yupana.strategy("pl94-2020-us", targets={"levels": dict.fromkeys(LEVELS, 1)}, loss=loss)
    assert found.gap < 2e-6
    assert found.found_loss < 0.91 * found.given_loss


def test_each_query_has_the_least_that_is_asked_for() -> None:
    found = yupana.strategy("pl94-2020-us", least=Fraction(1, 50))
    plain = yupana.strategy("pl94-2020-us", least=0)
    for level, of_level in found.found.queries.items():
        assert all(share >= Fraction(1, 50) - Fraction(1, 10**6) for q, share in of_level if q.keeps_or_sums), level
    assert not found.found.without_detail()
    assert found.found_loss > plain.found_loss


@pytest.mark.parametrize(
    ("targets", "told"),
    [
        ({"queries": {"total": 0, "sex": 0}}, "weights of all queries are 0"),
        ({"queries": {}}, "weights of all queries are 0"),
        ({"queries": {"income": 1}}, "'income' is unknown.*T1"),
        ({"queries": {"sex": -1}}, "queries.sex: must be 0 or more, and finite"),
        ({"queries": {"sex": "Infinity"}}, "queries.sex: must be 0 or more, and finite"),
        ({"queries": {"sex": "much"}}, "queries.sex"),
        ({"levels": {"Tract": 1}}, "levels.Tract: is no geolevel with a share"),
        ({"levels": {"US": 0}}, "weights of all geolevels are 0"),
        ({"children": {"State": 5}}, "children.Block: is missing"),
        ({"children": {"State": 5, "Block": "1/2"}}, "children.Block: must be 1 or more"),
        ({"children": {"US": 5, "State": 5, "Block": 2}}, "children.US: is no geolevel"),
        ({"areas": {}}, "key 'areas' is unknown"),
    ],
)
def test_questions_without_an_answer_are_refused(targets: dict[str, object], told: str) -> None:
    with pytest.raises(yupana.ConfigError, match=told):
        yupana.strategy(small(), targets=targets)


def test_a_target_that_no_query_tells_is_refused() -> None:
    queries = {level: {"total": "1/2", "sex": "1/2"} for level in ("US", "State", "Block")}
    with pytest.raises(yupana.ConfigError, match="told by no query"):
        yupana.strategy(small(queries=queries), targets={"queries": {"age": 1}})


def test_a_ratio_to_what_is_not_told_is_refused() -> None:
    queries = {level: {"total": "1/2", "sex": "1/2", "age": 0} for level in ("US", "State", "Block")}
    with pytest.raises(yupana.ConfigError, match="no ratio"):
        yupana.strategy(small(queries=queries), targets={"queries": {"age": 1}}, loss="ratio")
    # A share of 0 lets a query take part.
    assert yupana.strategy(small(queries=queries), targets={"queries": {"age": 1}}).found_loss > 0


@pytest.mark.parametrize("changes", [{"mechanism": "pure", "epsilon": 1, "rho": None}, {"rho": "Infinity"}])
def test_other_noise_is_refused(changes: dict[str, object]) -> None:
    document = {key: value for key, value in small(**changes).items() if value is not None}
    with pytest.raises(yupana.ConfigError, match="finite budget under zCDP"):
        yupana.strategy(document)


@pytest.mark.parametrize("least", ["1/3", 1, -0.1, "Infinity"])
def test_shares_that_are_too_large_to_be_kept_are_refused(least: str | float) -> None:
    with pytest.raises(yupana.ConfigError, match="least"):
        yupana.strategy(small(), least=least)


def test_the_command_prints_both_strategies_and_writes_the_one_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "found.json"
    assert main(["topdown", "strategy", "cook-2010", "--loss", "ratio", "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert "Block_Group T1" in told
    assert "no shares of these queries have less than" in told
    assert main(["topdown", "strategy", str(out), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    shares = json.loads(out.read_text())["queries"]["Block"]
    assert again["geolevels"]["Block"]["queries_given"] == shares
    assert again["gap"] < 2e-6
    assert {row["target"] for row in again["targets"]} == {"T1"}
    assert main(["topdown", "strategy", "cook-2010", "--out", str(out)]) != 0
    assert "name another place" in capsys.readouterr().err


@pytest.mark.slow
def test_margins_are_met_by_the_least_rho_that_a_general_solver_finds() -> None:
    margins = {"State": {"sex": 6, "total": 5}, "Block": {"detailed": 10, "total": 9}}
    found = yupana.strategy(small(), targets={"margins": margins}, least=0)
    cells = np.eye(8)
    rows = {"total": cells.sum(axis=0)[None], "sex": cells.reshape(2, 4, 8).sum(axis=1), "detailed": cells}

    def largest(spent: Floats) -> Floats:
        """Of State and Block: variances of least squares by what their margins allow."""
        by_level = []
        for level, budgets in zip(margins, spent.reshape(2, 3), strict=True):
            information = sum(budget * rows[name].T @ rows[name] for name, budget in zip(rows, budgets, strict=True))
            covariance = np.linalg.pinv(information, rcond=1e-12, hermitian=True)
            by_level += [
                (z_value(Fraction(9, 10)) / margin) ** 2 * np.einsum("ij,jk,ik->i", rows[name], covariance, rows[name])
                for name, margin in margins[level].items()
            ]
        return np.concatenate(by_level)

    config = found.found
    spent = [config.budget * config.shares[level] * share for level in margins for _, share in config.queries[level]]
    assert config.shares["US"] == 0
    assert largest(np.array(spent, dtype=np.float64)).max() == pytest.approx(1, rel=1e-6)
    least = minimize(
        np.sum,
        np.full(6, 0.2),
        bounds=[(1e-9, None)] * 6,
        constraints={"type": "ineq", "fun": lambda budgets: 1 - largest(budgets)},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert least.success
    assert float(config.budget) == pytest.approx(least.fun, rel=1e-5)
    assert 0 <= found.gap < 1e-6


def test_margins_cost_in_proportion_to_one_over_their_square() -> None:
    def of(margin: int) -> Fraction:
        targets = {"margins": {"Tract": {"T1": margin}, "Block": {"total": margin}}}
        return Fraction(yupana.strategy("cook-2010", targets=targets).found.budget)

    assert float(of(5) / of(50)) == pytest.approx(100, rel=1e-4)


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        ({"margins": {}}, "no margin is asked for"),
        ({"margins": {"Tract": {"total": 0}}}, "margins.Tract.total: must be more than 0"),
        ({"margins": {"Tract": {"foo": 3}}}, "'foo' is unknown"),
        ({"margins": {"Parish": {"total": 3}}}, "margins.Parish: is no geolevel"),
        ({"margins": {"Tract": {"total": 3}}, "levels": {"Tract": 1}}, "key 'levels' is unknown; known are margins"),
        ({"margins": {"County": {"total": 3}}}, "known exactly"),
    ],
)
def test_margins_that_mean_nothing_are_refused(targets: dict[str, Any], said: str) -> None:
    with pytest.raises(yupana.ConfigError, match=said):
        yupana.strategy("cook-2010", targets=targets)
