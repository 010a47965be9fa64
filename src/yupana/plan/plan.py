"""A Plan: measurements and how they compose, with what they cost together; read back from the JSON that it writes."""

import html
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum
from fractions import Fraction
from typing import Any, Final, get_args

from yupana.errors import is_line
from yupana.files.arrow import ArrowTable, Tabular
from yupana.plan.measurement import (
    Margins,
    Measurement,
    Mechanism,
    PersonSensitivity,
    Sensitivity,
    bound_of_estimate,
    margin_of,
)
from yupana.privacy.exact import INFINITE, Budget, read_exact, show_exact
from yupana.privacy.zcdp import epsilon_tight

DEFAULT_DELTA = 1e-10
"""The delta at which the 2020 products state their epsilon."""


NO_NOISE: Final = "a budget is infinite, so counts without noise are in it"
"""Why a plan that measures without noise may not be released."""

LARGEST_LOSS: Final = 100
"""The largest rho (epsilon under pure DP) of a plan that may be released: far above what any census has spent."""

_MOVES: Final = "moves"
"""The key of how far neighbours move a measurement, as it is proven; exact accounting reads it."""

POPULATIONS: Final = "pass"
"""The group of `Measurement.composition` whose branches are passes over disjoint populations."""


class Neighbours(Enum):
    """Which two databases a plan's own loss compares."""

    UNBOUNDED = "unbounded"
    """One privacy unit added or removed."""

    BOUNDED = "bounded"
    """One privacy unit changed arbitrarily."""


@dataclass(frozen=True, slots=True)
class PlanDifference:
    """One value in which two plans differ; None where a plan lacks the measurement."""

    measurement: str
    value: str
    here: str | None
    there: str | None


@dataclass(frozen=True, slots=True, repr=False)
class Plan(Tabular):
    """Everything a run will measure, public and computed without data.

    Attributes
    ----------
    product : str
    privacy_unit : str
        Whose data one unit of loss protects, such as "person record". Losses of different units never add.
    neighbours : Neighbours
        What the budgets of the measurements refer to.
    accounting : str
        Whose sensitivities the noise is scaled to: "published" or "tight".
    confidence : Fraction
        Confidence of the margins of error.
    mechanism : Mechanism
    measurements : tuple of Measurement
    paths : tuple of tuple of int
        Positions of the measurements that count one record together, for each way a record can lie in the geography;
        empty where every record may count in all of them. No record counts in the measurements of two paths
        (docs/topdown-privacy.md).
    fixed_total : bool
        Whether invariants fix the number of records, so that no neighbours differ by a record added or removed.
    margins : "exact" or "bureau"
        How margins of error are computed (docs/margins.md).

    Raises
    ------
    ValueError
        If two measurements share a name, one belongs to another mechanism, or one lies on no path.
    """

    product: str
    privacy_unit: str
    neighbours: Neighbours
    accounting: str
    confidence: Fraction
    mechanism: Mechanism
    measurements: tuple[Measurement, ...]
    paths: tuple[tuple[int, ...], ...] = ()
    fixed_total: bool = False
    margins: Margins = "exact"

    def __post_init__(self) -> None:
        twice = [name for name, times in Counter(m.name for m in self.measurements).items() if times > 1]
        if twice:
            raise ValueError(f"measurements named twice: {', '.join(twice)}")
        if any(m.mechanism is not self.mechanism for m in self.measurements):
            raise ValueError("a plan has one mechanism")
        if self.paths and {i for path in self.paths for i in path} != set(range(len(self.measurements))):
            raise ValueError("every measurement lies on a path, and paths hold nothing else")

    def __getitem__(self, name: str) -> Measurement:
        """Find a measurement by name, or raise KeyError."""
        for measurement in self.measurements:
            if measurement.name == name:
                return measurement
        raise KeyError(name)

    @property
    def is_finite(self) -> bool:
        """Whether every measurement has a finite budget."""
        return all(m.budget != INFINITE for m in self.measurements)

    @property
    def against_release(self) -> tuple[str, ...]:
        """Why what is measured under the plan may not be released: what it calls noise is none (docs/manifest.md)."""
        reasons = []
        if not self.is_finite:
            reasons.append(NO_NOISE)
        if any(m.budget != INFINITE and m.is_without_noise for m in self.measurements):
            reasons.append("a budget is so large that less than one count in a million would have noise")
        if self.loss() > LARGEST_LOSS and not reasons:
            reasons.append(f"the loss is above {LARGEST_LOSS}, which protects nobody")
        return tuple(reasons)

    def without_noise(self) -> "Plan":
        """The same plan with infinite budgets: zero noise, for synthetic data or for use in the house."""
        return replace(self, measurements=tuple(replace(m, budget=INFINITE) for m in self.measurements))

    def margin(self, measurement: Measurement, cells: int = 1) -> float:
        """Margin of error of a sum of so many cells of a measurement at the plan's confidence."""
        return margin_of(measurement.law, cells, self.confidence, self.margins)

    def margin_of_estimate(self, variance: float) -> float:
        """Margin of error of an estimate from several measurements, by its variance (`bound_of_estimate`)."""
        least = min(float(m.variance) for m in self.measurements)
        return bound_of_estimate(
            variance, least, self.confidence, self.margins, is_gaussian=self.mechanism is Mechanism.ZCDP
        )

    def loss(self, distance: Callable[[Measurement], Fraction] | None = None) -> Budget:
        """Compose the losses of all measurements against one kind of neighbours.

        Parameters
        ----------
        distance : callable, optional
            The distance (squared L2, or L1 under pure DP) between the count vectors of neighbours, by measurement.
            By default the calibration of each, which gives the plan's own loss: the sum of the budgets.

        Notes
        -----
        Sequential losses add; of the branches of a group the largest counts (Bun and Steinke 2016, lemmas 7 and 8;
        `Measurement.composition`), and of the paths of a plan the largest.
        """
        return self.loss_of(self.measurements, distance)

    def loss_of(
        self, made: Collection[Measurement], distance: Callable[[Measurement], Fraction] | None = None
    ) -> Budget:
        """Compose the losses of some measurements of the plan; see `loss`."""
        if not self.paths:
            return compose(made, distance)
        # By name: what was made is part of the plan, and names are unique there.
        names = {m.name for m in made}
        on_paths = ([self.measurements[i] for i in path] for path in self.paths)
        return max(compose([m for m in path if m.name in names], distance) for path in on_paths)

    def losses(self) -> dict[str, Budget | None]:
        """The loss promised for each kind of neighbours of `Sensitivity`; None where there are no such neighbours."""
        found = {entry.name: self.loss_against(lambda m: m.sensitivity, entry.name) for entry in fields(Sensitivity)}
        return {**found, "unbounded": None} if self.fixed_total else found

    def person_losses(self) -> dict[str, Budget | None]:
        """The loss of one person for each kind of neighbours of `PersonSensitivity`; None where it has no meaning.

        Losses of several plans on the same people add, neighbours by neighbours, if their mechanisms are the same
        (docs/person-loss.md).
        """
        return {entry.name: self.loss_against(lambda m: m.person, entry.name) for entry in fields(PersonSensitivity)}

    @property
    def passes(self) -> Mapping[str, tuple[Measurement, ...]]:
        """Measurements by pass over disjoint populations, such as ``us`` and ``pr``; empty where a plan has none.

        The losses of two passes protect different records and are never added.
        """
        passes: dict[str, list[Measurement]] = {}
        for m in self.measurements:
            group, _, branch = m.composition.partition("/")[0].partition(":")
            if group == POPULATIONS:
                passes.setdefault(branch, []).append(m)
        return {name: tuple(measurements) for name, measurements in passes.items()}

    def as_json(self, delta: float = DEFAULT_DELTA) -> dict[str, Any]:
        """Describe the plan as design's ``plan --json``: rationals as strings, each with a float beside it."""
        return {
            "product": self.product,
            "mechanism": self.mechanism.value,
            "privacy_unit": self.privacy_unit,
            "neighbours": self.neighbours.value,
            "sensitivity": self.accounting,
            "confidence": float(self.confidence),
            "margins": self.margins,
            "measurements": [self._measurement_as_json(m) for m in self.measurements],
            **({"paths": [list(path) for path in self.paths]} if self.paths else {}),
            "totals": self._totals(delta),
        }

    def table(self) -> ArrowTable:
        """Tabulate the measurements, a row each, with the columns of "measurements" in `as_json` but "moves".

        Exact numbers are text, such as "293764/114921", with a double beside them in a column that ends in
        ``_float``; ``moe`` is the margin of error of one cell, in records, at the plan's confidence.
        """
        rows = [self._measurement_as_json(m) for m in self.measurements]
        names = [name for name in rows[0] if name != _MOVES] if rows else ["name"]
        return ArrowTable.of({name: (_column_type(name), [row[name] for row in rows]) for name in names})

    def __repr__(self) -> str:
        number = len(self.measurements)
        return f"<Plan of {self.product}: {number} measurement{'s' * (number != 1)}, {self._summary()}>"

    def _repr_html_(self) -> str:
        return f"<p>Plan of {html.escape(self.product)}: {self._summary()}</p>{self.table().as_html(100)}"

    def _summary(self) -> str:
        loss, unit = self.loss(), "rho" if self.mechanism is Mechanism.ZCDP else "epsilon"
        return f"{unit} {float(loss):.6g} for one {html.escape(self.privacy_unit)}, {self.neighbours.value} neighbours"

    def differences(self, other: "Plan") -> list[PlanDifference]:
        """List what this plan changes against another, measurement by measurement."""

        def described(plan: Plan) -> dict[str, dict[str, str]]:
            return {
                m.name: {
                    "budget": show_exact(m.budget),
                    "sensitivity": str(m.calibration),
                    "cells": str(m.cells),
                    "composition": m.composition,
                    "mechanism": m.mechanism.value,
                }
                for m in plan.measurements
            }

        here, there = described(self), described(other)
        rows = []
        for name in [*here, *(n for n in there if n not in here)]:
            mine, theirs = here.get(name), there.get(name)
            if mine is None or theirs is None:
                rows.append(PlanDifference(name, "budget", (mine or {}).get("budget"), (theirs or {}).get("budget")))
            else:
                rows += [PlanDifference(name, v, mine[v], theirs[v]) for v in mine if mine[v] != theirs[v]]
        return rows

    def _measurement_as_json(self, m: Measurement) -> dict[str, Any]:
        budget, sensitivity = self.mechanism.budget_name, self.mechanism.distance_name
        return {
            "name": m.name,
            "table": m.table,
            "level": m.level,
            "cells": m.cells,
            **number(sensitivity, m.calibration),
            **number(budget, m.budget),
            **number(f"bounded_{budget}", m.loss(m.sensitivity.bounded)),
            **number("sigma2", m.variance),
            "sigma": m.sigma,
            "moe": self.margin(m),
            "composition": m.composition,
            _MOVES: {
                "by_one": m.by_one,
                "unbounded": str(m.proven.unbounded),
                "bounded": str(m.proven.bounded),
                **({} if m.proven.same_household is None else {"same_household": str(m.proven.same_household)}),
            },
        }

    def _totals(self, delta: float) -> dict[str, Any]:
        symbol = self.mechanism.budget_name

        def named(by: Mapping[str, Budget | None]) -> dict[str, Any]:
            return {key: value for name, loss in by.items() for key, value in number(f"{name}_{symbol}", loss).items()}

        own, promised = self.loss(), self.losses()
        proven = {
            name: None if loss is None else self.loss_against(lambda m: m.proven, name)
            for name, loss in promised.items()
        }
        totals: dict[str, Any] = {
            **named(promised),
            "proven": named(proven),
            "person": named(self.person_losses()),
        }
        if passes := self.passes:
            totals["passes"] = {
                name: {
                    **number(symbol, compose(measurements)),
                    **number(f"bounded_{symbol}", compose(measurements, lambda m: m.sensitivity.bounded)),
                }
                for name, measurements in passes.items()
            }
        if self.mechanism is Mechanism.PURE:
            return {"rho": None, **number("epsilon", own), **totals, "delta": 0}
        epsilons = {
            f"{name}_epsilon": None if loss is None else _finite(epsilon_tight(loss, delta))
            for name, loss in promised.items()
        }
        epsilon = _finite(epsilon_tight(own, delta))
        return {**number("rho", own), **totals, "epsilon": epsilon, **epsilons, "delta": delta}

    def loss_against(
        self, pick: Callable[[Measurement], Sensitivity | PersonSensitivity | None], neighbours: str
    ) -> Budget | None:
        """Loss by the sensitivities of one kind of neighbours, or None where a measurement has none for them."""
        distances: dict[str, Fraction] = {}
        for m in self.measurements:
            distance = getattr(pick(m), neighbours, None)
            if distance is None:
                return None
            distances[m.name] = distance
        return self.loss(lambda m: distances[m.name])


def _column_type(name: str) -> str:
    if name == "cells":
        return "BIGINT"
    return "DOUBLE" if name in {"sigma", "moe"} or name.endswith("_float") else "VARCHAR"


def margin_from_json(plan: Mapping[str, Any], measurement: Mapping[str, Any], cells: int) -> float:
    """Margin of error of a sum of so many cells, of a plan as `Plan.as_json` describes it.

    A plan that does not name its margins was made before there was a choice, and has those of the Bureau.

    Raises
    ------
    KeyError, TypeError, ValueError
        If it is no plan.
    """
    mechanism = Mechanism(plan["mechanism"])
    calibration, budget = (measurement[name] for name in (mechanism.distance_name, mechanism.budget_name))
    margins: Margins = "exact" if plan.get("margins") == "exact" else "bureau"
    law = mechanism.law(Fraction(calibration), read_exact(budget))
    return margin_of(law, cells, Fraction(str(plan["confidence"])), margins)


def compose(measurements: Iterable[Measurement], distance: Callable[[Measurement], Fraction] | None = None) -> Budget:
    """Total loss of measurements: see `Plan.loss`."""
    return _in_series(
        [(place_in(m, number), m.loss(distance(m)) if distance else m.budget) for number, m in enumerate(measurements)]
    )


Place = tuple[tuple[str, str], ...]


def place_in(m: Measurement, number: int) -> Place:
    """The groups and branches a measurement stands in, outermost first; ``number`` tells it from others."""
    parts = (part.partition(":") for part in m.composition.split("/") if part)
    # NUL cannot collide with a branch somebody names.
    return tuple((group, branch if colon else f"\0{number}") for group, colon, branch in parts)


def _in_series(terms: list[tuple[Place, Budget]]) -> Budget:
    """Add losses; of the branches of a group only the largest counts."""
    total: Budget = Fraction(0)
    groups: dict[str, dict[str, list[tuple[Place, Budget]]]] = {}
    for path, loss in terms:
        if path:
            (group, branch), *rest = path
            groups.setdefault(group, {}).setdefault(branch, []).append((tuple(rest), loss))
        else:
            total += loss
    for branches in groups.values():
        total += max(_in_series(branch) for branch in branches.values())
    return total


def number(key: str, value: Budget | None) -> dict[str, Any]:
    """Write an exact number as a string under ``key`` and as a float under ``key_float`` (None where infinite).

    A float that is no rational of ours, such as the variance of a geometric law, is written as its decimal; what has
    no meaning, as None.
    """
    if value is None:
        return {key: None, f"{key}_float": None}
    if isinstance(value, Fraction):
        return {key: str(value), f"{key}_float": float(value)}
    return {key: "Infinity" if value == INFINITE else repr(value), f"{key}_float": _finite(value)}


def _finite(value: float) -> float | None:
    return None if value == INFINITE else value


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
        # A plan that does not name its margins has those of the Bureau.
        margins=described.get("margins", "bureau"),
    )
    if plan.margins not in get_args(Margins):
        raise ValueError("margins are exact or bureau")
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
    proven, by_one = _moves(m[_MOVES])
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
    """How far neighbours move a measurement, and whether by one each."""
    unbounded, bounded = (_exact(described[change]) for change in ("unbounded", "bounded"))
    by_one = described["by_one"]
    household = _exact(described["same_household"]) if "same_household" in described else None
    if not isinstance(unbounded, Fraction) or not isinstance(bounded, Fraction) or not isinstance(by_one, bool):
        raise TypeError
    if not 0 <= unbounded <= bounded <= _LARGEST or (household is not None and not 0 <= household <= bounded):
        raise ValueError("neighbours move a measurement by no distance that a plan can have")
    return Sensitivity(unbounded, bounded, None if household is None else Fraction(household)), by_one


def _text(value: object) -> str:
    if not isinstance(value, str) or not is_line(value):
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
