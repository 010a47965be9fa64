"""The table of chances of the cell key method against published values, an optimiser and the definition."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from yupana.errors import ConfigError
from yupana.products.disclosure_control.methods import CellKey, Shown

CASES = [(2, Fraction(1), 0), (5, Fraction(3), 2), (3, Fraction(21, 10), 2), (10, Fraction(2), 1), (8, Fraction(7), 3)]


def noise_of(method: CellKey) -> np.ndarray:
    return np.arange(-method.largest, method.largest + 1)


def allowed(method: CellKey, count: int) -> np.ndarray:
    """Which noise a count may have, by the definition."""
    to = count + noise_of(method)
    return (to == 0) | (to > method.gap) if count else to == 0


def test_counts_that_can_fall_and_rise_by_two_are_those_of_the_package_ptable() -> None:
    # The introduction to ptable 1.0.0 prints these for create_cnt_ptable(D = 2, V = 1), original count 2.
    found = CellKey(2, Fraction(1), 0).p_table[2]
    assert found[0] == pytest.approx(0.0638, abs=5e-5)
    assert found[2] == pytest.approx(0.383, abs=5e-4)


@pytest.mark.parametrize("case", CASES)
def test_noise_is_unbiased_of_one_variance_and_leaves_the_gap_free(case: tuple[int, Fraction, int]) -> None:
    method = CellKey(*case)
    table, noise = method.p_table, noise_of(method)
    assert table[0].tolist() == (noise == 0).tolist()
    assert np.abs(table.sum(axis=1) - 1).max() < 1e-12
    assert np.abs(table @ noise).max() < 1e-9
    assert np.abs(table[1:] @ noise**2 - float(method.variance)).max() < 1e-9
    for count, chances in enumerate(table):
        assert (chances[~allowed(method, count)] == 0).all()
        assert (chances[allowed(method, count)] > 0).all()
    assert np.allclose(table[-1], table[-1][::-1])


@pytest.mark.parametrize("case", CASES[:3])
def test_no_noise_has_more_entropy(case: tuple[int, Fraction, int]) -> None:
    method = CellKey(*case)
    for count in range(1, method.last + 1):
        values = noise_of(method)[allowed(method, count)].astype(float)
        limits = np.stack([np.ones(len(values)), values, values**2])
        sides = np.array([1.0, 0.0, float(method.variance)])
        best = _optimum(limits, sides)
        ours = method.p_table[count][allowed(method, count)]
        assert np.abs(ours - best).max() < 1e-4
        assert float(ours @ np.log(ours)) <= float(best @ np.log(best)) + 1e-7


def _optimum(limits: np.ndarray, sides: np.ndarray) -> np.ndarray:
    """The chances of the largest entropy under linear limits, by a general optimiser."""
    number = limits.shape[1]
    found = minimize(
        lambda p: float(p @ np.log(p)),
        np.full(number, 1 / number),
        jac=lambda p: np.log(p) + 1,
        bounds=[(1e-12, 1)] * number,
        constraints={"type": "eq", "fun": lambda p: limits @ p - sides, "jac": lambda _: limits},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return np.asarray(found.x)


@pytest.mark.slow
def test_parameters_are_refused_just_where_some_count_has_no_such_noise() -> None:
    for largest, variance, gap in product(range(1, 6), (Fraction(n, 2) for n in range(1, 14)), range(4)):
        exists = all(_exists(largest, variance, gap, count) for count in range(1, largest + gap + 3))
        try:
            CellKey(largest, variance, gap)
        except ConfigError:
            assert not exists, (largest, variance, gap)
        else:
            assert exists, (largest, variance, gap)


def _exists(largest: int, variance: Fraction, gap: int, count: int) -> bool:
    """Whether there are chances, all above 0, of mean 0 and the variance."""
    values = [v for v in range(-largest, largest + 1) if count + v == 0 or count + v > gap]
    # The last variable is the least of the chances.
    rows = [[1.0] * len(values) + [0], [float(v) for v in values] + [0], [float(v * v) for v in values] + [0]]
    least = np.hstack([-np.eye(len(values)), np.ones((len(values), 1))])
    found = linprog(
        [0.0] * len(values) + [-1],
        A_ub=least,
        b_ub=np.zeros(len(values)),
        A_eq=rows,
        b_eq=[1, 0, float(variance)],
        bounds=[(0, 1)] * len(values) + [(-1, 1)],
    )
    return found.status == 0 and -found.fun > 1e-9


@pytest.mark.parametrize("case", CASES[:3])
def test_uniform_keys_find_noise_by_the_table(case: tuple[int, Fraction, int]) -> None:
    method, number = CellKey(*case), 1 << 14
    keys = (np.arange(number, dtype=np.uint64) << np.uint64(50)).view(np.int64)
    for count in (0, 1, 2, method.last, 1000):
        shown = method.publish(np.full(number, count), keys)
        assert shown.flags.all()
        shares = [(shown.values - count == value).mean() for value in noise_of(method)]
        assert np.abs(shares - method.p_table[min(count, method.last)]).max() <= 2 / number


def test_what_a_published_value_leaves_possible_is_what_the_table_can_give() -> None:
    method = CellKey(3, Fraction(5, 2), 2)
    table, noise = method.p_table, noise_of(method)
    for value in (0, *range(3, 20)):
        able = {
            count: float(table[min(count, method.last), noise == value - count].sum())
            for count in range(30)
            if table[min(count, method.last), noise == value - count].sum() > 0
        }
        low, high = method.bounds(Shown.whole(np.array([value])))
        assert (int(low[0]), int(high[0])) == (min(able), max(able))
        chances = method.chances(value)
        told = {chances.first + i: float(c) for i, c in enumerate(chances.of) if c > 0}
        assert told == able
