"""Budgets of least variance: against a general solver on random plans, the closed form, bounds, and noise drawn."""

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

import yupana
from yupana.arrays import Floats
from yupana.cli.main import main
from yupana.plan.budgets import Entry
from yupana.plan.measurement import Accounting, Measurement, Mechanism, Sensitivity
from yupana.plan.plan import Neighbours, Plan
from yupana.privacy.exact import Budget
from yupana.products import PRODUCTS
from yupana.products.product import Product
from yupana.products.safetab.demonstration_parameters import write_parameters
from yupana.products.strategy import BudgetQuestion, Joined, Strategy, TableTargets, find_budgets
from yupana.products.tables import Cell, Choice, Family, Table

_LOSSES: Final[tuple[Joined, ...]] = ("sum", "max")


@dataclass(frozen=True)
class Spent:
    """What one budget of a made-up product pays for: so many cells, scaled to a sensitivity, shown in a table of sums.

    ``beside`` is the sensitivity of counts of other groups, which no record is in together with the first, so that
    both have the whole; else a share of the budget decides the detail and is not published.
    """

    population: str
    budget: Fraction
    sensitivity: Fraction
    sums: tuple[int, ...]
    hidden: Fraction
    beside: Fraction | None


class MadeUp(Product[Mapping[str, Spent]]):
    """A product whose configuration is its budgets."""

    key = "made-up"

    def families_of(self, config: Mapping[str, Spent]) -> tuple[Family, ...]:
        return tuple(
            Family(f"{kind}{name}", (), (Choice(tuple(range(cells)), (own, sums)),))
            for name, of in config.items()
            for kind in ("", "beside ")
            for cells in [sum(of.sums)]
            for ends in [np.cumsum([0, *of.sums]).tolist()]
            for own in [Table(f"own {kind}{name}", ("C",), tuple(Cell((i,), (i,)) for i in range(cells)))]
            for sums in [
                Table(
                    f"sums {kind}{name}",
                    ("C",),
                    tuple(Cell((i,), tuple(range(ends[i], ends[i + 1]))) for i in range(len(of.sums))),
                )
            ]
        )

    def entry_of(self, measurement: Measurement) -> str:
        return measurement.level

    def entries(self, config: Mapping[str, Spent], accounting: Accounting = "published") -> Mapping[str, Entry]:
        del accounting
        return {name: Entry(of.budget, of.sensitivity, 1 - of.hidden, of.population) for name, of in config.items()}

    def with_budgets(self, config: Mapping[str, Spent], budgets: Mapping[str, Budget]) -> Mapping[str, Spent]:
        return {
            name: Spent(of.population, Fraction(budgets[name]), of.sensitivity, of.sums, of.hidden, of.beside)
            for name, of in config.items()
        }

    def plan(self, config: Mapping[str, Spent], **_: object) -> Plan:
        return Plan(
            "made-up",
            "record",
            Neighbours.UNBOUNDED,
            "published",
            Fraction(9, 10),
            Mechanism.ZCDP,
            tuple(m for name, of in config.items() for m in self._measured(name, of)),
        )

    @staticmethod
    def _measured(name: str, of: Spent) -> list[Measurement]:
        def measure(what: str, budget: Fraction, sensitivity: Fraction, branch: str) -> Measurement:
            one = Sensitivity(sensitivity, 2 * sensitivity)
            place = f"pass:{of.population}/{name}:{branch}"
            return Measurement(
                f"{what}{name}", f"{what}{name}", name, 9, Mechanism.ZCDP, sensitivity, one, one, budget, place
            )

        found = [measure("", of.budget * (1 - of.hidden), of.sensitivity, "common")]
        if of.hidden:
            found.append(measure("decides ", of.budget * of.hidden, of.sensitivity, "common"))
        if of.beside is not None:
            found.append(measure("beside ", of.budget, of.beside, "beside"))
        return found


MADE_UP = MadeUp()


def random_budgets(rng: np.random.Generator) -> dict[str, Spent]:
    def fraction(low: float, high: float) -> Fraction:
        return Fraction(float(rng.uniform(low, high))).limit_denominator(1000)

    return {
        f"b{number}": Spent(
            population=str(rng.choice(["us", "pr"])),
            budget=fraction(0.05, 3),
            sensitivity=Fraction(int(rng.integers(1, 30))),
            sums=tuple(rng.integers(1, 5, rng.integers(1, 4)).tolist()),
            hidden=fraction(0, 0.5) if rng.random() < 0.4 else Fraction(0),
            beside=Fraction(int(rng.integers(1, 9))) if rng.random() < 0.4 else None,
        )
        for number in range(rng.integers(2, 7))
    }


def random_question(rng: np.random.Generator, config: Mapping[str, Spent], loss: Joined) -> BudgetQuestion:
    tables = [f"{sort} {name}" for name in config for sort in ("own", "sums")]
    tables += [f"own beside {name}" for name, of in config.items() if of.beside is not None]
    weights = {name: Fraction(int(rng.integers(1, 40)), 10) for name in tables if rng.random() < 0.7}
    return BudgetQuestion(
        TableTargets(weights or {tables[0]: Fraction(1)}), loss, Fraction(int(rng.integers(0, 8)), 10)
    )


def find(config: Mapping[str, Spent], question: BudgetQuestion) -> Strategy[Mapping[str, Spent]]:
    return find_budgets(MADE_UP, config, MADE_UP.plan(config), question)


def loss_of(config: Mapping[str, Spent], question: BudgetQuestion) -> float:
    """The loss, by the variances of the measurements of the plan alone."""
    plan = MADE_UP.plan(config)
    each, total = [0.0], 0.0
    for m in plan.measurements:
        sizes = {f"own {m.table}": [1] * sum(config[m.level].sums), f"sums {m.table}": list(config[m.level].sums)}
        for table, sums in sizes.items():
            weight = question.targets.weight(table, m.level)
            each += [float(weight * m.variance * size) for size in sums]
    total = sum(each)
    return total if question.loss == "sum" else max(each)


def by_general_solver(config: Mapping[str, Spent], question: BudgetQuestion) -> float:
    """The least loss that SLSQP finds under the plan's own loss, budgets without a weight kept."""
    entries = MADE_UP.entries(config)
    counted = [
        name
        for name in config
        if any(
            question.targets.weight(f"{sort} {m.table}", name)
            for m in MADE_UP.plan(config).measurements
            if m.level == name
            for sort in ("own", "sums")
        )
    ]
    start = np.array([float(config[name].budget) for name in counted])
    first = loss_of(config, question)

    def at(point: Floats) -> Mapping[str, Spent]:
        found = {name: Fraction(max(float(one), 1e-9)) for name, one in zip(counted, point, strict=True)}
        return MADE_UP.with_budgets(config, {**{name: of.budget for name, of in config.items()}, **found})

    def loss_in(population: str, point: Floats) -> float:
        plan = MADE_UP.plan(at(point))
        return float(plan.loss_of(plan.passes[population]))

    passes = {entries[name].population for name in counted}
    totals = {name: loss_in(name, start) for name in passes}
    # The largest of goals is a bound on all of them, with a variable of its own.
    last = question.loss != "sum"

    def each(point: Floats) -> Floats:
        found = at(point)
        one = [
            loss_of(found, BudgetQuestion(TableTargets({table: weight}), "max"))
            for table, weight in (question.targets.tables or {}).items()
        ]
        return np.array(one) / first

    def objective(point: Floats) -> float:
        return float(point[-1]) if last else loss_of(at(point), question) / first

    inner = slice(0, len(counted))
    constraints = [
        {"type": "ineq", "fun": lambda point, name=name: (totals[name] - loss_in(name, point[inner])) / totals[name]}
        for name in passes
    ]
    if last:
        constraints.append({"type": "ineq", "fun": lambda point: point[-1] - each(point[inner])})
    low = [float(question.least) * one for one in start]
    found = optimize.minimize(
        objective,
        np.append(start, 1.0) if last else start,
        method="SLSQP",
        bounds=[*zip(low, [None] * len(low), strict=True), *([(0, None)] if last else [])],
        constraints=constraints,
        options={"maxiter": 300, "ftol": 1e-12},
    )
    point = np.maximum(found.x[inner], low)
    over = max((loss_in(name, point) / totals[name] for name in passes), default=1.0)
    return loss_of(at(point), question) * max(over, 1.0)


@pytest.mark.parametrize("seeds", [range(4), pytest.param(range(4, 20), marks=pytest.mark.thorough)], ids=["4", "20"])
@pytest.mark.parametrize("loss", _LOSSES)
@pytest.mark.slow
def test_it_is_as_good_as_a_general_solver_under_the_loss_of_the_plan(loss: Joined, seeds: range) -> None:
    for seed in seeds:
        rng = np.random.default_rng(seed)
        config = random_budgets(rng)
        question = random_question(rng, config, loss)
        plan = MADE_UP.plan(config)
        found = find(config, question)
        general = by_general_solver(config, question)
        assert found.found_loss == pytest.approx(loss_of(found.found, question), rel=1e-9), seed
        assert found.given_loss == pytest.approx(loss_of(config, question), rel=1e-9), seed
        assert found.found_loss <= general * (1 + 2e-6), seed
        assert general <= found.found_loss * 1.002, seed
        assert found.bound <= general * (1 + 1e-8), seed
        assert found.gap < 2e-6, seed
        after = MADE_UP.plan(found.found)
        for name, measurements in plan.passes.items():
            assert after.loss_of(after.passes[name]) == plan.loss_of(measurements), seed
        assert all(found.found[name].budget >= question.least * of.budget for name, of in config.items())


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.sampled_from(_LOSSES))
@pytest.mark.thorough
def test_no_budgets_within_the_limits_are_below_the_bound(seed: int, loss: Joined) -> None:
    rng = np.random.default_rng(seed)
    config = random_budgets(rng)
    question = random_question(rng, config, loss)
    found = find(config, question)
    for _ in range(20):
        budgets = {}
        for population in {of.population for of in config.values()}:
            here = {name: of.budget for name, of in config.items() if of.population == population}
            moved = [name for name in here if found.found[name].budget != here[name]]
            left = sum(here[name] for name in moved) * (1 - question.least)
            shares = rng.dirichlet(np.full(max(len(moved), 1), rng.choice([0.3, 2.0])))
            budgets |= here
            budgets |= {
                name: question.least * here[name] + left * Fraction(float(share)) + Fraction(1, 10**9)
                for name, share in zip(moved, shares, strict=False)
            }
        # A billionth more than there is keeps budgets above 0.
        assert loss_of(MADE_UP.with_budgets(config, budgets), question) >= found.bound * (1 - 1e-6)


def test_budgets_go_with_the_root_of_weight_times_sensitivity() -> None:
    """The closed form where losses add and nothing else limits."""
    found = yupana.strategy("s-dhc-2020-us", product="phsafe", least=0)
    entries = PRODUCTS["phsafe"].entries(found.found)
    cells = {
        family.name: sum(len(c.parts) for t in family.choices[0].tables for c in t.cells)
        for family in PRODUCTS["phsafe"].families
    }
    size = {name: (cells[name.partition("/")[0]] * entry.sensitivity) ** 0.5 for name, entry in entries.items()}
    whole = sum(entry.budget for entry in entries.values())
    for name, entry in entries.items():
        assert float(entry.budget / whole) == pytest.approx(size[name] / sum(size.values()), rel=2e-3), name
    closed = sum(size.values()) ** 2 / (2 * float(whole))
    assert found.bound <= closed * (1 + 1e-12)
    assert found.found_loss == pytest.approx(closed, rel=2e-6)


@pytest.fixture(scope="module")
def parameters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "parameters"
    write_parameters(folder)
    return folder


def source(product: str, parameters: Path) -> str:
    return {"phsafe": "s-dhc-2020-us", "tables": "people-and-homes"}.get(product, str(parameters))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("product", ["phsafe", "tables", "safetab-p", "safetab-h"])
@pytest.mark.parametrize("loss", _LOSSES)
def test_what_is_written_is_read_back_with_the_same_loss_of_privacy(
    product: str, loss: str, parameters: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, out = source(product, parameters), tmp_path / "found.json"
    assert main([product, "strategy", given, "--loss", loss, "--out", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["loss"] < told["loss_given"]
    assert told["gap"] < 2e-6
    codes = ["--codes", str(parameters)] if product.startswith("safetab") else []
    plans = []
    for config, more in ((given, []), (str(out), codes)):
        assert main([product, "plan", config, *more, "--json"]) == 0
        plans.append(json.loads(capsys.readouterr().out))
    assert plans[0]["totals"]["rho"] == plans[1]["totals"]["rho"]
    assert main([product, "strategy", str(out), *codes, "--loss", loss, "--least", "0", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["loss_given"] == pytest.approx(told["loss"], rel=1e-12)
    assert {name: one["budget_given"] for name, one in again["budgets"].items()} == {
        name: one["budget"] for name, one in told["budgets"].items()
    }
    assert main([product, "strategy", given, "--out", str(out)]) != 0
    assert "name another place" in capsys.readouterr().err


@pytest.mark.parametrize("runs", [4, pytest.param(8, marks=pytest.mark.thorough)])
@pytest.mark.slow
def test_variances_told_are_those_of_the_rows_of_a_run_and_of_its_noise(tmp_path: Path, runs: int) -> None:
    """Every row of a run says the variance that was told, and its noise has it, to four standard errors."""
    census = tmp_path / "census"
    yupana.synthesize(census, households=200, states=("02", "44", "56"), seed=3)
    weights = {"people": 3, "people_total": 1, "tenure_total": 1, "homes": 1}
    found = yupana.strategy("people-and-homes", product="tables", targets={"tables": weights})
    yupana.exact("tables", found.found, census, tmp_path / "truth")
    told = {(row.level, row.target): row.found for row in found.rows}
    truth = {table: rows_of(tmp_path / "truth", table) for table in weights}
    errors: dict[tuple[str, str], list[int]] = {}
    for seed in range(runs):
        yupana.run("tables", found.found, census, tmp_path / f"run{seed}", seed=seed)
        for table, expected in truth.items():
            for (level, *cell), (count, variance) in rows_of(tmp_path / f"run{seed}", table).items():
                assert variance == pytest.approx(told[level, table], rel=1e-12)
                errors.setdefault((level, table), []).append(count - expected[level, *cell][0])
    assert set(errors) == set(told)
    for key, noise in errors.items():
        ratio = np.square(noise).mean() / told[key]
        assert abs(ratio - 1) < 4 * np.sqrt(2 / len(noise)), key


NOISE: Final = ("NOISE_DISTRIBUTION", "VARIANCE", "MOE")


def rows_of(release: Path, table: str) -> dict[tuple[str, ...], tuple[int, float]]:
    """Count and variance of the rows of a table, by level and what tells them apart."""
    found = {}
    with (release / f"{table}.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="|"):
            level = "state-by-origin" if row.get("ITERATION_CODE") in {"H", "N"} else row["REGION_TYPE"]
            cell = [value for name, value in row.items() if name not in {"COUNT", *NOISE}]
            found[level, *cell] = int(row["COUNT"]), float(row["VARIANCE"])
    return found


@pytest.mark.slow
def test_a_table_that_groups_of_several_details_are_shown_counts_as_their_mean(parameters: Path) -> None:
    """In SafeTab the measured cells of a group are those of its detail: a total is 1, 8, 18 or 46 of them."""
    found = yupana.strategy(parameters, product="safetab-p", targets={"levels": {"COUNTY 1": 1}})
    one = float(yupana.plan("safetab-p", found.found)["stage 2/COUNTY 1"].variance)
    told = {row.target: row.found for row in found.rows}
    assert told["T01001"] == pytest.approx(one * (1 + 8 + 18 + 46) / 4)
    # Of each sex so many ages, and a row that adds them up.
    for table, ages in (("T02001", 4), ("T02002", 9), ("T02003", 23)):
        assert told[table] == pytest.approx(one * 2 * ages / (ages + 1))
    households = yupana.strategy(parameters, product="safetab-h", targets={"levels": {"COUNTY 1": 1}})
    one = float(yupana.plan("safetab-h", households.found)["T03/COUNTY 1"].variance)
    told = {row.target: row.found for row in households.rows}
    # Total, family, married, other, nonfamily, alone, not alone.
    assert told["T03003"] == pytest.approx(one * (4 + 2 + 1 + 1 + 2 + 1 + 1) / 7)


@pytest.mark.slow
def test_a_pass_keeps_its_own_loss_and_may_spend_a_total(parameters: Path) -> None:
    """Nobody loses more than before unless a total is named; then the smaller pass is raised at no cost to the plan."""
    both = {"run_us": True, "run_pr": True}
    given = yupana.plan("safetab-p", parameters, set=both)
    own = yupana.strategy(parameters, product="safetab-p", set=both)
    plan = yupana.plan("safetab-p", own.found)
    losses = {name: given.loss_of(measured) for name, measured in given.passes.items()}
    assert losses["pr"] < losses["us"]
    assert {name: plan.loss_of(measured) for name, measured in plan.passes.items()} == losses
    raised = yupana.strategy(parameters, product="safetab-p", set=both, total=losses["us"])
    plan = yupana.plan("safetab-p", raised.found)
    assert plan.loss() == given.loss()
    assert all(plan.loss_of(measured) == losses["us"] for measured in plan.passes.values())
    assert raised.found_loss < own.found_loss


def test_margins_asked_for_are_kept_and_what_has_no_weight_keeps_its_budget() -> None:
    targets = {"levels": {"state_A-G": 1, "usa_*": "1/10"}, "margins": {"PH3/state_A-G": 25, "PH2/state_*": 150}}
    found = yupana.strategy("s-dhc-2020-us", product="phsafe", targets=targets)
    plan = yupana.plan("phsafe", found.found)
    assert plan.loss() == yupana.plan("phsafe", "s-dhc-2020-us").loss()
    assert plan.margin(plan["PH3/state_A-G"]) == 25
    assert plan.margin(plan["PH2/state_*"]) == 150
    assert plan["PH4/state_*"].budget == Fraction("0.016371")
    free = yupana.strategy("s-dhc-2020-us", product="phsafe", targets={"levels": targets["levels"]})
    assert free.found_loss < found.found_loss
    assert found.gap < 2e-6


def test_with_a_larger_total_no_variance_need_grow() -> None:
    found = yupana.strategy("s-dhc-2020-us", product="phsafe", least=1, total="1.5")
    assert yupana.plan("phsafe", found.found).loss() == Fraction("1.5")
    assert all(row.found <= row.given for row in found.rows)
    assert found.found_loss < found.given_loss * 0.2
    ratio = yupana.strategy("s-dhc-2020-us", product="phsafe", loss="ratio", total="1.5")
    assert ratio.found_loss == pytest.approx(1.257281 / 1.5, rel=1e-5)


@pytest.mark.parametrize(
    ("targets", "told"),
    [
        ({"tables": {"PH3": 0}}, "all weights are 0"),
        ({"tables": {}}, "all weights are 0"),
        ({"levels": {"usa_*": 0}}, "all weights are 0"),
        ({"tables": {"PH9": 1}}, "tables.PH9: is no table that is measured and published"),
        ({"tables": {"PH3": -1}}, "tables.PH3: must be 0 or more, and finite"),
        ({"tables": {"PH3": "Infinity"}}, "tables.PH3: must be 0 or more, and finite"),
        ({"tables": {"PH3": "much"}}, "tables.PH3"),
        ({"levels": {"county_*": 1}}, "levels.county_.*: is no level that is measured and published"),
        ({"tables": {"PH2": 1, "PH3": 1}, "levels": {"usa_A-G": 1}}, "tables.PH2: nothing of it that is measured"),
        ({"margins": {"PH3/usa": 5}}, "PH3/usa' is no entry"),
        ({"margins": {"PH3/usa_*": 0}}, "margins.PH3/usa_.*: must be a number between"),
        ({"margins": {"PH3/state_A-G": 1}}, "a total of 1.25728 meets no such strategy"),
        ({"queries": {}}, "key 'queries' is unknown"),
    ],
)
def test_questions_without_an_answer_are_refused(targets: dict[str, object], told: str) -> None:
    with pytest.raises(yupana.ConfigError, match=told) as error:
        yupana.strategy("s-dhc-2020-us", product="phsafe", targets=targets)
    assert str(error.value).count("\n") <= 1


def test_what_is_not_measured_is_no_target() -> None:
    levels = ("usa_A-G", "usa_H,I", "usa_*", "state_A-G", "state_H,I", "state_*")
    without = {f"privacy_budget.PH3.{level}": 0 for level in levels}
    with pytest.raises(yupana.ConfigError, match=r"tables.PH3: is no table that is measured"):
        yupana.strategy("s-dhc-2020-us", product="phsafe", targets={"tables": {"PH3": 1}}, set=without)
    with pytest.raises(yupana.ConfigError, match=r"margins.PH3/usa_\*: is not measured, for its budget is 0"):
        yupana.strategy("s-dhc-2020-us", product="phsafe", targets={"margins": {"PH3/usa_*": 9}}, set=without)
    found = yupana.strategy("s-dhc-2020-us", product="phsafe", set=without)
    assert not PRODUCTS["phsafe"].entries(found.found)["PH3/usa_*"].budget


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"set": {"privacy_defn": "puredp"}}, "finite budgets under zCDP"),
        ({"set": {"privacy_budget.PH2.usa_*": "Infinity"}}, "finite budgets under zCDP"),
        ({"total": 0}, "a total of 0 meets no such strategy"),
        ({"total": "0.01"}, "a total of 0.01 meets no such strategy"),
        ({"total": -1}, "total: must be a finite number that is not negative"),
        ({"total": "Infinity"}, "total: must be a finite number that is not negative"),
        ({"least": "Infinity"}, "least: must be a finite number that is not negative"),
        ({"least": 1}, "meets no such strategy"),
        ({"least": 2}, "meets no such strategy"),
    ],
)
def test_other_noise_and_totals_that_meet_nothing_are_refused(more: dict[str, Any], told: str) -> None:
    with pytest.raises(yupana.ConfigError, match=told):
        yupana.strategy("s-dhc-2020-us", product="phsafe", **more)


def test_topdown_takes_no_total() -> None:
    with pytest.raises(yupana.ConfigError, match="topdown takes no total"):
        yupana.strategy("cook-2010", total=1)
