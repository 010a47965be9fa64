"""Read a plan back from the JSON that `Plan.as_json` writes."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from yupana.plan.margin import Margins
from yupana.plan.measurement import Measurement, Mechanism, Sensitivity
from yupana.plan.plan import Neighbours, Plan
from yupana.privacy.exact import Budget, read_exact

_TOLERANCE: Final = 1e-9
"""Variances under pure DP are doubles, whose last digits differ from machine to machine."""

_SMALLEST: Final = Fraction(1, 10**30)
_LARGEST: Final = 10**15
"""No plan has finite budgets or sensitivities beyond these."""

_DEEPEST: Final = 8
"""More groups than any composition has within each other."""


def read_plan(described: object) -> Plan:
    """Read a plan: its measurements, laws and composition.

    Sensitivities are all the calibration, and what is proven is what "moves" says; losses for other neighbours are in
    the totals alone. Variances, standard deviations and the total must be those that follow from the budgets.

    Parameters
    ----------
    described : object
        As JSON has it.

    Raises
    ------
    ValueError
        If it is no plan, or contradicts itself.
    """
    try:
        return _read(described)
    except (KeyError, TypeError, AttributeError, OverflowError, ZeroDivisionError):
        raise ValueError("a key of the plan is missing, or has a value of another kind") from None


def tells_moves(described: Mapping[str, Any]) -> bool:
    """Whether the JSON of a plan tells how far neighbours move each measurement: older plans do not."""
    return all("moves" in m for m in described["measurements"])


def _read(described: Any) -> Plan:  # noqa: ANN401 (JSON)
    mechanism = Mechanism(described["mechanism"])
    confidence = described["confidence"]
    if not isinstance(confidence, float) or not 0 < confidence < 1:
        raise ValueError("the confidence does not lie strictly between 0 and 1")
    plan = Plan(
        _text(described["product"]),
        _text(described["privacy_unit"]),
        Neighbours(described["neighbours"]),
        _text(described["sensitivity"]),
        Fraction(str(confidence)),
        mechanism,
        tuple(_measurement(m, mechanism) for m in described["measurements"]),
        tuple(tuple(map(_place, path)) for path in described.get("paths", ())),
        fixed_total=described["totals"][f"unbounded_{mechanism.budget_name}"] is None,
        margins=_margins(described.get("margins", "bureau")),
    )
    if not plan.measurements:
        raise ValueError("the plan measures nothing")
    totals = described["totals"]
    symbol = mechanism.budget_name
    if _exact(totals[symbol]) != plan.loss():
        raise ValueError("the total is not that of the measurements")
    for by in (totals, totals["proven"]):
        for kind in ("unbounded", "bounded", "same_household"):
            if by[f"{kind}_{symbol}"] is not None:
                _exact(by[f"{kind}_{symbol}"])
    return plan


def _measurement(m: Any, mechanism: Mechanism) -> Measurement:  # noqa: ANN401 (JSON)
    calibration = Fraction(_exact(m[mechanism.distance_name]))
    spent = _exact(m[mechanism.budget_name])
    if any(isinstance(n, Fraction) and not _SMALLEST <= n <= _LARGEST for n in (calibration, spent)):
        raise ValueError("a budget or a sensitivity is none that a plan can have")
    composition = _text(m["composition"])
    if composition.count("/") > _DEEPEST:
        raise ValueError("a composition is nested too deeply")
    sensitivity = Sensitivity(calibration, calibration)
    proven, by_one = _moves(m["moves"]) if "moves" in m else (sensitivity, False)
    found = Measurement(
        _text(m["name"]),
        _text(m["table"]),
        _text(m["level"]),
        _place(m["cells"]),
        mechanism,
        calibration,
        sensitivity,
        proven,
        spent,
        composition,
        by_one=by_one,
    )
    written = (_exact(m["sigma2"]), m["sigma2_float"], m["sigma"])
    due = (found.variance, found.variance, found.sigma)
    if not all(math.isclose(value, other, rel_tol=_TOLERANCE) for value, other in zip(written, due, strict=True)):
        raise ValueError(f"the variance of {found.name} does not follow from its budget")
    return found


def _moves(described: Any) -> tuple[Sensitivity, bool]:  # noqa: ANN401 (JSON)
    """How far neighbours move a measurement, and whether by one each; plans made before do not tell."""
    unbounded, bounded = (_exact(described[change]) for change in ("unbounded", "bounded"))
    by_one = described["by_one"]
    household = _exact(described["same_household"]) if "same_household" in described else None
    if not isinstance(unbounded, Fraction) or not isinstance(bounded, Fraction) or not isinstance(by_one, bool):
        raise TypeError
    if not 0 <= unbounded <= bounded <= _LARGEST or (household is not None and not 0 <= household <= bounded):
        raise ValueError("neighbours move a measurement by no distance that a plan can have")
    return Sensitivity(unbounded, bounded, None if household is None else Fraction(household)), by_one


def _margins(value: object) -> Margins:
    """A plan that does not name its margins has those of the Bureau."""
    if value == "exact":
        return "exact"
    if value == "bureau":
        return "bureau"
    raise ValueError("margins are exact or bureau")


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError("a name in the plan is no text of one line")
    return value


def _place(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("a number in the plan is no whole number")
    return value


def _exact(value: object) -> Budget:
    if not isinstance(value, str):
        raise TypeError
    return read_exact(value)
