"""The ledger refuses what the plan does not allow; the ledger file adds up what several runs spend."""

import json
import multiprocessing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from hollerith.errors import BudgetError
from hollerith.plan.account import charge_account
from hollerith.plan.ledger import Ledger
from hollerith.plan.measurement import Mechanism
from hollerith.plan.plan import Plan
from hollerith.privacy.entropy import SeededEntropy
from hollerith.privacy.exact import INFINITE
from hollerith.products.phsafe.plan import plan_of
from hollerith.products.phsafe.production import TAUS, budgets, production_plan

PLAN = production_plan(puerto_rico=True)
COUNTS = np.zeros((7, 2), dtype=np.int64)


def test_each_measurement_of_the_plan_passes_once() -> None:
    ledger = Ledger(PLAN)
    for m in PLAN.measurements:
        ledger.measure(m, np.zeros((1, m.cells), dtype=np.int64), SeededEntropy(1))
    assert ledger.charged == tuple(m.name for m in PLAN.measurements)
    assert ledger.spent == PLAN.loss()


def test_a_second_time_is_refused_and_leaves_the_ledger_as_it_was() -> None:
    ledger = Ledger(PLAN)
    m = PLAN["PH1_num/state_A-G"]
    ledger.measure(m, COUNTS, SeededEntropy(1))
    with pytest.raises(BudgetError, match=r"PH1_num/state_A-G refused: it has been made"):
        ledger.measure(m, COUNTS, SeededEntropy(1))
    assert ledger.spent == m.budget


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"name": "PH9/state_A-G"}, "does not hold it"),
        ({"budget": Fraction(1, 10)}, "other terms"),
        ({"calibration": Fraction(100)}, "other terms"),
        ({"cells": 3}, "cells"),
    ],
)
def test_what_is_not_in_the_plan_is_refused(change: dict, reason: str) -> None:
    ledger = Ledger(PLAN)
    with pytest.raises((BudgetError, ValueError), match=reason):
        ledger.measure(replace(PLAN["PH1_num/state_A-G"], **change), COUNTS, SeededEntropy(1))
    assert ledger.charged == ()


def test_counts_of_another_shape_are_refused_before_they_are_charged() -> None:
    ledger = Ledger(PLAN)
    with pytest.raises(ValueError, match="2 cells per population group"):
        ledger.measure(PLAN["PH1_num/state_A-G"], COUNTS.ravel(), SeededEntropy(1))
    assert ledger.charged == ()


def test_runs_add_up_on_disk_until_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    assert charge_account(path, "CEF", PLAN, Fraction(3)) == PLAN.loss()
    assert charge_account(path, "CEF", PLAN) == 2 * PLAN.loss()
    before = path.read_text()
    with pytest.raises(BudgetError, match="past its limit of 3"):
        charge_account(path, "CEF", PLAN)
    assert path.read_text() == before
    assert charge_account(path, "another census", PLAN) == PLAN.loss()


def test_a_limit_is_reached_exactly_but_not_passed(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    charge_account(path, "CEF", PLAN, 2 * PLAN.loss())
    charge_account(path, "CEF", PLAN)
    with pytest.raises(BudgetError, match="limit"):
        charge_account(path, "CEF", PLAN)


def test_a_recorded_limit_cannot_be_changed_by_a_run(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    charge_account(path, "CEF", PLAN, Fraction(3))
    with pytest.raises(BudgetError, match="limit on 'CEF' is 3, not 4"):
        charge_account(path, "CEF", PLAN, Fraction(4))


def test_losses_of_different_definitions_are_never_added(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    charge_account(path, "CEF", PLAN)
    pure = plan_of(budgets(puerto_rico=True), TAUS, Mechanism.PURE)
    with pytest.raises(BudgetError, match="mechanism"):
        charge_account(path, "CEF", pure)
    with pytest.raises(BudgetError, match="privacy_unit"):
        charge_account(path, "CEF", replace(PLAN, privacy_unit="household record"))


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", '{"format": "hollerith-ledger-1"}', "\x00\x01", '{"format": 1, "data": 3}']
)
def test_a_file_that_is_no_ledger_is_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "ledger.json"
    path.write_text(content)
    with pytest.raises(BudgetError, match="not a ledger"):
        charge_account(path, "CEF", PLAN)
    assert path.read_text() == content


def test_a_ledger_that_cannot_be_written_stops_the_run(tmp_path: Path) -> None:
    with pytest.raises(BudgetError, match="ledger"):
        charge_account(tmp_path / "missing" / "ledger.json", "CEF", PLAN)


def _charge(path: str, times: int) -> None:
    plan: Plan = production_plan(puerto_rico=True)
    for _ in range(times):
        charge_account(Path(path), "CEF", plan)


def test_runs_side_by_side_lose_no_charge(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_charge, args=(str(path), 5)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert len(json.loads(path.read_text())["data"]["CEF"]["runs"]) == 15


def test_a_meter_measures_every_group_once_whatever_the_order_of_the_pieces() -> None:
    m = PLAN["PH1_num/state_A-G"]
    meter = Ledger(replace(PLAN, measurements=(replace(m, budget=INFINITE),))).open(replace(m, budget=INFINITE), 10)
    for first, cells in [(4, [1, 2, 2]), (0, [1]), (7, [2, 2, 1]), (1, [1, 1, 2])]:
        counts = np.arange(sum(cells))
        assert np.array_equal(meter.measure(first, np.array(cells), counts, SeededEntropy(1)), counts)
    for first in range(10):
        with pytest.raises(BudgetError, match="has been measured already"):
            meter.measure(first, np.array([1]), np.zeros(1, dtype=np.int64), SeededEntropy(1))


@pytest.mark.parametrize(("first", "groups"), [(-1, 2), (9, 2), (10, 1)])
def test_a_meter_refuses_groups_that_are_none_of_the_measurement(first: int, groups: int) -> None:
    meter = Ledger(PLAN).open(PLAN["PH1_num/state_A-G"], 10)
    with pytest.raises(BudgetError, match="no such population group"):
        meter.measure(first, np.ones(groups, dtype=np.int64), np.zeros(groups, dtype=np.int64), SeededEntropy(1))


@pytest.mark.parametrize(("cells", "counts"), [([-1], 0), ([3], 3), ([1], 2), ([2, 1], 2)])
def test_a_meter_refuses_counts_that_do_not_fit(cells: list[int], counts: int) -> None:
    meter = Ledger(PLAN).open(PLAN["PH1_num/state_A-G"], 10)
    with pytest.raises(ValueError, match="cells"):
        meter.measure(0, np.array(cells), np.zeros(counts, dtype=np.int64), SeededEntropy(1))


def test_a_group_asked_nothing_counts_as_measured() -> None:
    meter = Ledger(PLAN).open(PLAN["PH1_num/state_A-G"], 3)
    noisy = meter.measure(0, np.array([1, 0, 1]), np.zeros(2, dtype=np.int64), SeededEntropy(1))
    assert len(noisy) == 2
    with pytest.raises(BudgetError, match="has been measured already"):
        meter.measure(1, np.array([1]), np.zeros(1, dtype=np.int64), SeededEntropy(1))
