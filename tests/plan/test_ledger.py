"""The ledger refuses what the plan does not allow."""

from collections.abc import Callable
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from plans import production_plan

from yupana.errors import BudgetError
from yupana.files.draw_log import DrawnStretch
from yupana.plan.ledger import Ledger
from yupana.plan.plan import Plan
from yupana.privacy.entropy import SeededEntropy
from yupana.privacy.exact import INFINITE, Budget
from yupana.privacy.sampler import add_noise

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


# --- word by word ---------------------------------------------------------------------------------------------------

M = PLAN["PH1_num/state_A-G"]
REFUSED = "measurement PH1_num/state_A-G refused"


def zeros(*shape: int) -> NDArray[np.int64]:
    return np.zeros(shape, dtype=np.int64)


def test_why_a_measurement_is_refused() -> None:
    ledger = Ledger(PLAN)
    with pytest.raises(BudgetError, match=r"^measurement PH9 refused: the plan does not hold it$"):
        ledger.charge(replace(M, name="PH9"))
    with pytest.raises(BudgetError, match=f"^{REFUSED}: the plan holds it with other terms$"):
        ledger.charge(replace(M, cells=3))
    ledger.charge(M)
    assert (ledger.charged, ledger.spent) == ((M.name,), M.budget)
    with pytest.raises(BudgetError, match=f"^{REFUSED}: it has been made already$"):
        ledger.charge(M)


def test_a_loss_above_that_of_the_plan_is_refused() -> None:
    class Cheap(Plan):
        """Says that it costs less than its measurements do."""

        def loss(self, _: object = None) -> Budget:
            return M.budget

    ledger = Ledger(Cheap(*(getattr(PLAN, entry.name) for entry in fields(Plan))))
    ledger.charge(M)
    other = next(m for m in PLAN.measurements if m != M)
    with pytest.raises(BudgetError, match=f"^measurement {other.name} refused: it would pass the budget of the plan$"):
        ledger.charge(other)
    assert ledger.charged == (M.name,)


def test_what_is_never_spent_on_one_record_may_be_more_in_sequence_than_the_budget() -> None:
    one, other = (replace(M, name=name, composition=f"pass:{name}") for name in ("us", "pr"))
    ledger = Ledger(replace(PLAN, measurements=(one, other)))
    ledger.charge(one)
    ledger.charge(other)
    assert ledger.spent == M.budget == PLAN.loss_of((M,))


def test_a_draw_is_kept_by_what_it_is_of_and_one_that_was_kept_is_taken() -> None:
    class Log:
        """Keeps what it is given to keep, or has kept zeros."""

        def __init__(self) -> None:
            self.asked: list[DrawnStretch] = []
            self.has_drawn = False

        def take(self, stretch: DrawnStretch, draw: Callable[[], NDArray[np.int64]]) -> NDArray[np.int64]:
            self.asked.append(stretch)
            return zeros(stretch.values) if self.has_drawn else draw()

    log: Any = Log()
    ledger = Ledger(PLAN, draws=log)
    meter, counts = ledger.open(M, 7), np.array([5, 6, 7], dtype=np.int64)
    found = meter.measure(2, np.array([2, 1]), counts, meter.stream(2, SeededEntropy(1)))
    np.testing.assert_array_equal(found, add_noise(counts, M.law, meter.stream(2, SeededEntropy(1))))
    log.has_drawn = True
    np.testing.assert_array_equal(meter.measure(4, np.array([2]), counts[:2], SeededEntropy(1)), [0, 0])
    assert log.asked == [DrawnStretch(M.name, 2, 2, 3), DrawnStretch(M.name, 4, 1, 2)]


def test_counts_have_the_cells_of_their_measurement() -> None:
    for shape in ((4,), (2, 3), (2, 2, 2)):
        with pytest.raises(ValueError, match=r"^PH1_num/state_A-G counts 2 cells per population group$"):
            Ledger(PLAN).measure(M, zeros(*shape), SeededEntropy(1))
    assert Ledger(PLAN).measure(M, zeros(0, 2), SeededEntropy(1)).shape == (0, 2)
    noisy = Ledger(PLAN).measure(M, COUNTS, SeededEntropy(1))
    assert np.array_equal(noisy.ravel(), add_noise(COUNTS.ravel(), M.law, SeededEntropy(1).branch("1 0")))


def test_noise_of_a_seed_is_that_of_the_measurement_and_the_piece() -> None:
    """In whichever order pieces are measured; and no two share it."""
    entropy, cells, counts = SeededEntropy(1), np.ones(50, dtype=np.int64), zeros(50)
    drawn = []
    for firsts in (0, 50), (50, 0):
        ledger = Ledger(PLAN)
        meters = [ledger.open(m, 100) for m in PLAN.measurements[:2]]
        pieces = {
            (n, f): m.measure(f, cells, counts, m.stream(f, entropy)) for n, m in enumerate(meters) for f in firsts
        }
        drawn.append(pieces)
        laws = [m.measurement.law for m in meters]
        standard = [tuple(piece / laws[n].variance ** 0.5) for (n, _), piece in pieces.items()]
        assert len(set(standard)) == len(standard)
    assert all(np.array_equal(drawn[0][key], drawn[1][key]) for key in drawn[0])


def test_why_a_piece_is_refused() -> None:
    meter = Ledger(PLAN).open(M, 10)
    assert (meter.measurement, meter.groups) == (M, 10)
    with pytest.raises(BudgetError, match=f"^{REFUSED}: it has no such population group$"):
        meter.measure(9, np.ones(2, dtype=np.int64), zeros(2), SeededEntropy(1))
    for cells, counts in ([-1, 1], zeros(0)), ([3], zeros(3)):
        with pytest.raises(ValueError, match=r"^PH1_num/state_A-G counts at most 2 cells a group$"):
            meter.measure(0, np.array(cells), counts, SeededEntropy(1))
    for cells, counts in ([1], zeros(2)), ([2], zeros(1, 2)), ([2], zeros(2, 1)):
        with pytest.raises(ValueError, match=r"^PH1_num/state_A-G: the counts do not have the cells named$"):
            meter.measure(0, np.array(cells), counts, SeededEntropy(1))
    assert meter._done == []
    meter.measure(0, np.array([0]), zeros(0), SeededEntropy(1))
    with pytest.raises(BudgetError, match=f"^{REFUSED}: a group has been measured already$"):
        meter.measure(0, np.array([1]), zeros(1), SeededEntropy(1))


def test_pieces_that_touch_become_one() -> None:
    meter = Ledger(PLAN).open(M, 10)
    seen = []
    for first, groups in [(4, 2), (8, 1), (0, 1), (3, 0), (10, 0), (6, 2), (1, 3), (9, 1)]:
        meter.measure(first, np.full(groups, 2), zeros(2 * groups), SeededEntropy(1))
        seen.append(sorted(meter._done))
    assert seen == [
        [(4, 6)],
        [(4, 6), (8, 9)],
        *[[(0, 1), (4, 6), (8, 9)]] * 3,
        [(0, 1), (4, 9)],
        [(0, 9)],
        [(0, 10)],
    ]
