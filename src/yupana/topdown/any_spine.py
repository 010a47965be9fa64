"""The exact epsilon of a configuration on whatever spine is built for it, with any geounits bypassed."""

from collections.abc import Iterator
from itertools import product
from typing import Final

from yupana.plan.exact_loss import epsilon_exact
from yupana.plan.plan import DEFAULT_DELTA
from yupana.privacy.difference import Difference, Shift, ShiftChoice
from yupana.privacy.exact import INFINITE
from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric
from yupana.privacy.loss_law import SMALLEST_DELTA, epsilon_at
from yupana.topdown.configuration import OF_AREAS, Configuration
from yupana.topdown.plan import make_measurement, make_plan

_NEVER_BYPASSED: Final = frozenset({"conventional", "aian", OF_AREAS})
"""Kinds of spine on which every geounit keeps the share of its geolevel."""

_MOST_LEVELS: Final = 8

_WIDTH: Final = 5e-3
"""The bound from above is as good as at a smaller width, and much quicker."""


def epsilon_on_any_spine(configuration: Configuration, delta: float = DEFAULT_DELTA) -> float | None:
    """The least epsilon proven at ``delta`` whichever geounits a spine bypasses, by the exact law; rounded up.

    A geounit that is bypassed gives its share to the geounit above it that is not, so on the path of a record geolevels
    fall into runs, and the highest of each run is measured with the shares of all of it. Every way to cut the geolevels
    into runs is taken for the path that a record leaves, and for that which it enters (docs/exact-accounting.md).

    Returns
    -------
    float or None
        None as of `epsilon_exact`, and where there are more than eight geolevels.
    """
    if configuration.spine_kind in _NEVER_BYPASSED:
        return epsilon_exact(make_plan(configuration), delta)
    if configuration.budget == INFINITE or len(configuration.levels) > _MOST_LEVELS or delta < SMALLEST_DELTA:
        return None
    options = tuple(dict.fromkeys(_shifts(configuration, runs) for runs in _runs(configuration)))
    found = epsilon_at(Difference(choices=(ShiftChoice(2, options),)), delta, _WIDTH)
    return None if found is None else found.upper


def _runs(configuration: Configuration) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Every way to cut the geolevels, by position, into runs that a bypass can join."""
    levels = configuration.levels
    joined = [(False,) if level in configuration.spine.unbypassed else (False, True) for level in levels[:-1]]
    for choice in product(*joined):
        runs: list[tuple[int, ...]] = [(0,)]
        for position, join in enumerate(choice, start=1):
            runs = [*runs[:-1], (*runs[-1], position)] if join else [*runs, (position,)]
        yield tuple(runs)


def _shifts(configuration: Configuration, runs: tuple[tuple[int, ...], ...]) -> tuple[Shift, ...]:
    shares = list(configuration.shares.values())
    found = []
    for run in runs:
        level, share = configuration.levels[run[0]], sum((shares[position] for position in run[1:]), shares[run[0]])
        for query, part in configuration.measured(level) if share > 0 else ():
            law = make_measurement(configuration, level, query, share, part).law
            assert isinstance(law, DiscreteGaussian | TwoSidedGeometric)  # noqa: S101 (the budget is finite)
            found.append(Shift(law))
    return tuple(found)
