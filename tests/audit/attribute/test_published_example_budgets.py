"""The budgets behind the printed numbers of the slides: solved for as a linear system, and what they leave over."""

from fractions import Fraction
from typing import Final

import numpy as np
import pytest
from numpy.typing import NDArray
from plans import plan_of, production_plan
from scipy import optimize

from yupana.audit.attribute.answers import (
    INDIVIDUALS,
    PRINTED,
    RHO,
    SECRETS,
    rule_of_the_slides,
    slides_plan,
    term_of,
)
from yupana.plan.measurement import Mechanism
from yupana.plan.plan import Plan
from yupana.products.phsafe.configuration import TAUS, budgets

HALF_A_DIGIT: Final = 0.0005
"""What a number printed to three decimals leaves open."""

LIKE: Final = (
    ("PH1_num", "PH4"),
    ("PH2",),
    ("PH3", "PH6"),
    ("PH3 by race",),
    ("PH7",),
    ("PH1_denom", "PH5_denom", "PH8_denom"),
)
"""Sums of budgets that are equal in 2020, and so supposed to be in the slides: six unknowns."""

PRINTS: Final = np.array([PRINTED[i.name, s.name] for i in INDIVIDUALS for s in SECRETS])
OF_2020: Final = production_plan(puerto_rico=False)


def by_the_rule(plan: Plan) -> list[Fraction]:
    found = [rule_of_the_slides(plan, TAUS, i, s.attributes) for i in INDIVIDUALS for s in SECRETS]
    assert all(isinstance(value, Fraction) for value in found)
    return [Fraction(value) for value in found]


def share(names: tuple[str, ...]) -> Plan:
    """The budgets of 2020 for some sums, scaled to one each, and nothing else."""
    rho = budgets(puerto_rico=False)
    terms = {name: term_of(*name.split("/")) for name in rho}
    sums: dict[str, Fraction] = {}
    for name, value in rho.items():
        sums[terms[name]] = sums.get(terms[name], Fraction(0)) + value
    chosen = {name: value / sums[terms[name]] for name, value in rho.items() if terms[name] in names}
    return plan_of({**dict.fromkeys(rho, Fraction(0)), **chosen}, TAUS, Mechanism.ZCDP)


@pytest.fixture(scope="module")
def system() -> NDArray[np.float64]:
    """The rule is linear in the budgets: by number printed and unknown, what a budget of one would cost."""
    return np.array([[float(value) for value in by_the_rule(share(names))] for names in LIKE]).T


def least_largest(system: NDArray[np.float64], target: NDArray[np.float64]) -> float:
    """The smallest possible largest difference from the target."""
    one = np.ones((len(target), 1))
    found = optimize.linprog(
        [0.0] * system.shape[1] + [1.0], np.block([[system, -one], [-system, -one]]), np.r_[target, -target]
    )
    assert found.status == 0
    return float(found.fun)


def test_the_rule_is_the_sum_of_its_parts(system: NDArray[np.float64]) -> None:
    rho = [of_2020(n[0]) for n in LIKE]
    assert system @ rho == pytest.approx([float(value) for value in by_the_rule(OF_2020)])


def test_least_squares_over_the_forty_numbers_give_the_budgets_named(system: NDArray[np.float64]) -> None:
    assert np.linalg.matrix_rank(system) == len(LIKE)
    solved = np.linalg.lstsq(system, PRINTS, rcond=None)[0]
    named = [{RHO[name] for name in names} for names in LIKE]
    assert [len(values) for values in named] == [1] * len(LIKE)
    assert [float(*values) for values in named] == pytest.approx(solved, abs=5.01e-6, rel=0)


def test_all_forty_numbers_come_out_as_printed() -> None:
    differences = [Fraction(str(p)) - f for p, f in zip(PRINTS, by_the_rule(slides_plan()), strict=True)]
    assert max(map(abs, differences)) < Fraction("0.0004")
    assert [round(float(value), 3) for value in by_the_rule(slides_plan())] == PRINTS.tolist()


def test_no_other_reading_at_hand_gives_all_forty(system: NDArray[np.float64]) -> None:
    # The budgets of 2020 miss by a third.
    assert max(abs(np.array([float(value) for value in by_the_rule(OF_2020)]) - PRINTS)) > 0.3
    # Were Carol's sex to cost PH2, too, as her relation to nobody might, no budgets at all would do.
    carol = next(place for place, (i, s) in enumerate(PRINTED) if (i, s) == ("Carol", "Sex"))
    with_ph2 = system.copy()
    for place in (carol, carol + 3):
        with_ph2[place, 1] += share_of_ph2()
    assert least_largest(with_ph2, PRINTS) > HALF_A_DIGIT > least_largest(system, PRINTS)
    # Nor does it do to change the tables that must change, and to leave all others as they were in 2020.
    kept, free = [0, 1, 2], [3, 4, 5]
    spent = [of_2020(LIKE[k][0]) for k in kept]
    assert least_largest(system[:, free], PRINTS - system[:, kept] @ spent) > HALF_A_DIGIT


def of_2020(term: str) -> float:
    """What was spent in 2020 on a term of the rule."""
    return float(sum(b for name, b in budgets(puerto_rico=False).items() if term_of(*name.split("/")) == term))


def share_of_ph2() -> float:
    """What a budget of one for PH2 costs who lives alone: the bounded loss is twice the budget."""
    return float(2 * Fraction(4, 2 * TAUS["PH2"] + 2) ** 2)


def test_what_the_forty_numbers_leave_open(system: NDArray[np.float64]) -> None:
    ends = []
    for unknown in range(len(LIKE)):
        cost = np.eye(len(LIKE))[unknown]
        ends.append(
            [
                sign
                * optimize.linprog(
                    sign * cost, np.vstack([system, -system]), np.r_[PRINTS, -PRINTS] + HALF_A_DIGIT, method="highs"
                ).fun
                for sign in (1, -1)
            ]
        )
    named = [float(RHO[names[0]]) for names in LIKE]
    assert all(low <= value <= high for value, (low, high) in zip(named, ends, strict=True))
    # Of 2020 are 0.182221, 0.01899, 0.007691, 0.671728, 0.182221 and 0.001506.
    assert np.array(ends) == pytest.approx(
        np.array(
            [
                [0.181620, 0.182404],
                [0.018625, 0.019375],
                [0.006695, 0.007713],
                [0.677578, 0.679110],
                [0.329914, 0.331105],
                [0.001789, 0.002187],
            ]
        ),
        abs=2e-6,
    )


def test_the_plan_has_the_shape_of_2020() -> None:
    sums: dict[str, Fraction] = {}
    for m in slides_plan().measurements:
        assert isinstance(m.budget, Fraction)
        name = term_of(m.table, m.level)
        sums[name] = sums.get(name, Fraction(0)) + m.budget
    assert sums == RHO
    assert [m.name for m in slides_plan().measurements] == [m.name for m in OF_2020.measurements]
    # The print's largest number is an arbitrary change, with each denominator at half of its bounded loss.
    denominators = sum(value for name, value in RHO.items() if name.endswith("denom"))
    assert float(slides_plan().loss(lambda m: m.sensitivity.bounded) - denominators) == pytest.approx(2.819, abs=5e-4)
