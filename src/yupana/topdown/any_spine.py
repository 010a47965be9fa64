"""The loss of a configuration on whatever spine is built for it, with any geounits bypassed, by the exact law.

The share of what is bypassed moves up to the geounit that stands for it, so on the path of a record geolevels fall into
runs, and the highest of each run is measured with the shares of all of it. Every way to cut the geolevels into runs is
taken for the path that a record leaves, and for that which it enters (docs/exact-accounting.md, theorems 1 and 2).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, Final

from yupana.plan.exact_loss import epsilon_exact, exact_of_part
from yupana.plan.measurement import Measurement, Mechanism
from yupana.plan.plan import DEFAULT_DELTA
from yupana.privacy.exact import INFINITE, Budget
from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric
from yupana.privacy.loss_law import SMALLEST_DELTA, epsilon_at
from yupana.privacy.loss_terms import Difference, Shift, ShiftChoice
from yupana.topdown.configuration import OF_AREAS, Configuration
from yupana.topdown.plan import loss_as_json, make_measurement, make_plan, measurement_name, semantics_of
from yupana.topdown.queries import Query

_NEVER_BYPASSED: Final = frozenset({"conventional", "aian", OF_AREAS})
"""Kinds of spine on which every geounit keeps the share of its geolevel."""

_WIDTH: Final = 5e-3
"""The bound from above is as good as at a smaller width, and much quicker."""

_Run = tuple[int, ...]
"""Geolevels by position, from the highest, which is measured, to the lowest, whose geounit is bypassed into it."""

_Asked = Callable[[_Run, Query], bool]
"""Whether a query of the highest geounit of a run can move."""


@dataclass(frozen=True, slots=True)
class LossOnAnySpine:
    """What neighbours lose at most, whichever geounits are bypassed.

    Attributes
    ----------
    paths : tuple of tuple of Measurement
        For every way in which geolevels can fall into runs, the measurements of which answers move.
    records : 1 or 2
        Of how many paths neighbours move answers: two of each measurement of one path, or one of each of two.
    """

    paths: tuple[tuple[Measurement, ...], ...]
    records: int

    @property
    def loss(self) -> Budget:
        """rho, or epsilon under pure differential privacy."""
        return max(sum((m.budget for m in path), Fraction(0)) for path in self.paths)

    def epsilon(self, delta: float) -> float | None:
        """The least epsilon proven at ``delta`` by the exact law; rounded up.

        Returns
        -------
        float or None
            None without noise, below what doubles certify, or where the law gives no bound within its width.
        """
        if self.loss == INFINITE or delta < SMALLEST_DELTA:
            return None
        options = tuple(dict.fromkeys(tuple(_shift(m, 2 // self.records) for m in path) for path in self.paths))
        if not any(options):
            return 0.0
        found = epsilon_at(Difference(choices=(ShiftChoice(self.records, options),)), delta, _WIDTH)
        return None if found is None else found.upper


def epsilon_on_any_spine(configuration: Configuration, delta: float = DEFAULT_DELTA) -> float | None:
    """The least epsilon proven at ``delta`` whichever geounits a spine bypasses, by the exact law; rounded up.

    Returns
    -------
    float or None
        None as of `epsilon_exact`.
    """
    if configuration.spine_kind in _NEVER_BYPASSED:
        return epsilon_exact(make_plan(configuration), delta)
    return _lost(configuration, lambda _run, _query: True, 2).epsilon(delta)


def attribute_on_any_spine(configuration: Configuration, axis: int) -> LossOnAnySpine:
    """What is lost where one attribute of a record changes, whichever geounits a spine bypasses.

    Two answers of each query that tells its values apart move by one, in the geounits of one path.
    """
    return _lost(configuration, lambda _run, query: query.shape[axis] > 1, 1)


def move_on_any_spine(configuration: Configuration, within: int) -> LossOnAnySpine:
    """What is lost where a record moves within a geounit of the geolevel at this position, whichever are bypassed.

    The geounit is that of the spine before any was bypassed. One answer of each query moves by one in the geounits that
    are on one of the two paths only. A geounit with one child is bypassed as it is, so these lie below. Under pure
    differential privacy one with several children can be bypassed. It is then divided among them, so that the two
    paths may part as high as its run begins.
    """
    part = -1 if configuration.mechanism is Mechanism.PURE else 0
    return _lost(configuration, lambda run, _query: run[part] > within, 2)


def _lost(configuration: Configuration, asked: _Asked, records: int) -> LossOnAnySpine:
    return LossOnAnySpine(tuple(_paths(configuration, asked)), records)


def _paths(configuration: Configuration, asked: _Asked) -> list[tuple[Measurement, ...]]:
    """The measurements of every path that answer what is asked."""
    shares = list(configuration.shares.values())
    found = []
    for runs in _cuts(configuration):
        path: list[Measurement] = []
        for run in runs:
            level, share = configuration.levels[run[0]], sum((shares[i] for i in run), Fraction(0))
            queries = configuration.measured(level) if share > 0 else ()
            path += [make_measurement(configuration, level, q, share, part) for q, part in queries if asked(run, q)]
        found.append(tuple(path))
    return found


def _cuts(configuration: Configuration) -> Iterator[tuple[_Run, ...]]:
    """Every way to cut the geolevels, by position, into runs that a bypass can join."""
    levels = configuration.levels
    kept = levels if configuration.spine_kind in _NEVER_BYPASSED else configuration.spine.unbypassed
    joined = [(False,) if level in kept else (False, True) for level in levels[:-1]]
    for choice in product(*joined):
        runs: list[_Run] = [(0,)]
        for position, join in enumerate(choice, start=1):
            runs = [*runs[:-1], (*runs[-1], position)] if join else [*runs, (position,)]
        yield tuple(runs)


def _shift(m: Measurement, times: int) -> Shift:
    law = m.law
    assert isinstance(law, DiscreteGaussian | TwoSidedGeometric)  # noqa: S101 (the budget is finite)
    return Shift(law, 1, times)


def semantics_as_json(configuration: Configuration, delta: float = DEFAULT_DELTA) -> dict[str, Any]:
    """Describe `semantics_of` with the exact epsilon of each loss beside its conversion.

    Either change moves two answers of each measurement that can tell by one: two answers of one geounit where an
    attribute changes, one answer of each of two geounits where a record moves. As there, geounits are taken to have the
    share that their geolevel starts with. Under ``any_spine`` is what is lost whichever geounits are bypassed.
    """
    told = semantics_of(configuration).as_json(configuration.mechanism, delta)
    plan = make_plan(configuration)
    levels = [level for level in configuration.levels if configuration.shares[level] > 0]
    measured = {
        plan[measurement_name(level, query)]: (level, query)
        for level in levels
        for query, _ in configuration.measured(level)
    }

    pure = configuration.mechanism is Mechanism.PURE

    def exact(chosen: tuple[Any, ...], anywhere: LossOnAnySpine) -> dict[str, Any]:
        on_any = loss_as_json(anywhere.loss, configuration.mechanism, delta)
        on_any["epsilon_exact"] = on_any["epsilon_float"] if pure else anywhere.epsilon(delta)
        return {"epsilon_exact": exact_of_part(plan, chosen, delta), "any_spine": on_any}

    for axis, name in enumerate(configuration.schema.names):
        told["attributes"][name] |= exact(
            tuple(m for m, (_, query) in measured.items() if query.shape[axis] > 1),
            attribute_on_any_spine(configuration, axis),
        )
    for depth, level in enumerate(configuration.levels[:-1]):
        below = configuration.levels[depth + 1 :]
        told["geolevels"][f"Block in {level}"] |= exact(
            tuple(m for m, (of, _) in measured.items() if of in below),
            move_on_any_spine(configuration, depth),
        )
    return told
