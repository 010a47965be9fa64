"""A plan is read back from its JSON, and one that is none is refused in words."""

import copy
import json
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from yupana.plan.measurement import Measurement, Mechanism, Sensitivity
from yupana.plan.plan import Neighbours, Plan, read_plan
from yupana.privacy.exact import INFINITE, Budget

LEAST = Fraction(1, 10**30)


def cell(name: str, budget: Budget, composition: str = "", mechanism: Mechanism = Mechanism.ZCDP) -> Measurement:
    four = Sensitivity(Fraction(4), Fraction(4))
    return Measurement(name, "P1", "state", 7, mechanism, Fraction(4), four, four, budget, composition)


def plan_of(mechanism: Mechanism) -> Plan:
    cells = (
        cell("a", Fraction(1, 3), "pass:us", mechanism),
        cell("b", Fraction(2), "pass:pr/g:1", mechanism),
        replace(cell("c", Fraction(1, 5), "", mechanism), cells=0),
    )
    return Plan("phsafe", "person record", Neighbours.BOUNDED, "tight", Fraction(19, 20), mechanism, cells)


PLANS = [
    plan_of(Mechanism.ZCDP),
    plan_of(Mechanism.PURE),
    replace(plan_of(Mechanism.ZCDP), margins="bureau", neighbours=Neighbours.UNBOUNDED),
    replace(plan_of(Mechanism.ZCDP), paths=((0, 2), (1, 2))),
    replace(plan_of(Mechanism.ZCDP), measurements=(cell("d", INFINITE),)),
    replace(plan_of(Mechanism.ZCDP), measurements=(cell("d", Fraction(10**15)),)),
    replace(
        plan_of(Mechanism.ZCDP),
        measurements=(
            replace(
                cell("d", Fraction(1)),
                budget=LEAST,
                calibration=LEAST,
                sensitivity=Sensitivity(LEAST, LEAST),
                proven=Sensitivity(LEAST, LEAST),
            ),
        ),
    ),
]


def as_json(plan: Plan) -> dict[str, Any]:
    """The plan as a file has it, a copy to change."""
    return dict(json.loads(json.dumps(plan.as_json())))


@pytest.mark.parametrize("plan", PLANS, ids=["zcdp", "pure", "bureau", "paths", "infinite", "largest", "smallest"])
def test_a_plan_is_read_as_it_was_written(plan: Plan) -> None:
    assert read_plan(as_json(plan)) == plan


def test_a_plan_that_names_no_margins_has_those_of_the_bureau() -> None:
    described = as_json(PLANS[0])
    del described["margins"]
    assert read_plan(described).margins == "bureau"


def test_the_last_digits_of_a_variance_do_not_matter() -> None:
    described = as_json(PLANS[1])
    described["measurements"][0]["sigma2_float"] *= 1 + 1e-12
    assert read_plan(described) == PLANS[1]


def test_losses_without_a_meaning_are_not_read() -> None:
    described = as_json(PLANS[0])
    assert described["totals"]["same_household_rho"] is None
    assert described["totals"]["proven"]["same_household_rho"] is None
    read_plan(described)


def test_a_composition_may_be_nested_eight_times_more() -> None:
    deep = "/".join(f"g{i}:1" for i in range(9))
    plan = replace(PLANS[0], measurements=(cell("a", Fraction(1), deep),))
    assert read_plan(as_json(plan)) == plan


KIND = "a key of the plan is missing, or has a value of another kind"
TEXT = "a name in the plan is no text of one line"
WHOLE = "a number in the plan is no whole number"
RANGE = "a budget or a sensitivity is none that a plan can have"
VARIANCE = "the variance of a does not follow from its budget"
CONFIDENCE = "the confidence does not lie strictly between 0 and 1"
EXACT = "not an exact number such as 0.25, 1e-6, 3/8 or Infinity"


def changed(*keys: str | int, to: object) -> Callable[[dict[str, Any]], None]:
    def change(described: dict[str, Any]) -> None:
        for key in keys[:-1]:
            described = described[key]  # type: ignore[index]
        described[keys[-1]] = to  # type: ignore[index]

    return change


FIRST = ("measurements", 0)
REFUSED: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    *((lambda d, key=key: d.pop(key), KIND) for key in as_json(PLANS[0]) if key != "margins"),
    *(
        (lambda d, key=key: d["measurements"][0].pop(key), KIND)
        for key in as_json(PLANS[0])["measurements"][0]
        if key
        in {
            "name",
            "table",
            "level",
            "cells",
            "l2_sensitivity_squared",
            "rho",
            "sigma2",
            "sigma2_float",
            "sigma",
            "composition",
        }
    ),
    *((lambda d, key=f"{kind}_rho": d["totals"].pop(key), KIND) for kind in ("unbounded", "bounded", "same_household")),
    *(
        (lambda d, key=f"{kind}_rho": d["totals"]["proven"].pop(key), KIND)
        for kind in ("unbounded", "bounded", "same_household")
    ),
    *((changed("totals", f"{kind}_rho", to="x"), EXACT) for kind in ("unbounded", "bounded", "same_household")),
    (changed("totals", "proven", "bounded_rho", to="x"), EXACT),
    (changed("totals", "proven", "bounded_rho", to=1), KIND),
    (changed("mechanism", to="none"), "'none' is not a valid Mechanism"),
    (changed("neighbours", to="none"), "'none' is not a valid Neighbours"),
    *((changed("confidence", to=value), CONFIDENCE) for value in (0.0, 1.0, 1.5, 1, "0.9", None)),
    (changed("measurements", to=[]), "the plan measures nothing"),
    (changed("totals", "rho", to="1"), "the total is not that of the measurements"),
    (changed("margins", to="exacter"), "margins are exact or bureau"),
    *((changed(key, to="a\nb"), TEXT) for key in ("product", "privacy_unit", "sensitivity")),
    *((changed(*FIRST, key, to="a\nb"), TEXT) for key in ("name", "table", "level", "composition")),
    *((changed(*FIRST, key, to=5), TEXT) for key in ("name", "table", "level", "composition")),
    *((changed(*FIRST, "cells", to=value), WHOLE) for value in (-1, 1.0, True, "1")),
    (changed("paths", to=[[0, -1]]), WHOLE),
    (changed("paths", to=[[0, 1]]), "every measurement lies on a path, and paths hold nothing else"),
    (changed(*FIRST, "composition", to="/".join(["g:1"] * 10)), "a composition is nested too deeply"),
    *((changed(*FIRST, "rho", to=value), RANGE) for value in ("0", "-1", "1e-31", "1000000000000001")),
    *((changed(*FIRST, "l2_sensitivity_squared", to=value), RANGE) for value in ("0", "1e-31", "1000000000000001")),
    (changed(*FIRST, "rho", to=0.5), KIND),
    (changed(*FIRST, "rho", to="NaN"), EXACT),
    (changed(*FIRST, "l2_sensitivity_squared", to="Infinity"), KIND),
    (changed(*FIRST, "sigma2", to="6.00001"), VARIANCE),
    (changed(*FIRST, "sigma2_float", to=6.00001), VARIANCE),
    (changed(*FIRST, "sigma", to=2.44950), VARIANCE),
    (changed(*FIRST, "sigma", to=None), KIND),
]


@pytest.mark.parametrize(("change", "told"), REFUSED)
def test_a_plan_that_is_none_is_refused_in_words(change: Callable[[dict[str, Any]], object], told: str) -> None:
    described = copy.deepcopy(as_json(PLANS[0]))
    change(described)
    with pytest.raises(ValueError, match=f"^{re.escape(told)}$"):
        read_plan(described)


@pytest.mark.parametrize("none", [None, [], "plan", {}, 3])
def test_what_is_no_object_is_refused(none: object) -> None:
    with pytest.raises(ValueError, match=f"^{KIND}$"):
        read_plan(none)


def test_a_pure_plan_is_asked_for_epsilon() -> None:
    described = as_json(PLANS[1])
    del described["totals"]["bounded_epsilon"]
    with pytest.raises(ValueError, match=f"^{KIND}$"):
        read_plan(described)
