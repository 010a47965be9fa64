"""The hypothesis-test audit of a mechanism that is made from a plan: run it on neighbours, and bound its loss.

A product is audited by two functions of the same form, one for each of two neighbouring inputs, that make one release
under a plan and return its numbers in one order: for TopDown the noisy measurements, or the counts of a geolevel.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from lower_bound import LowerBound, lower_bound
from numpy.typing import NDArray

from yupana.plan.plan import Plan

Floats = NDArray[np.float64]

RUNS = 2500
"""Enough to catch a third of the variance where the promise is a rho between 0.5 and 2."""

FEW = 1000
"""Enough where there is no noise at all."""

FORGOTTEN = Fraction(1, 10**9)
"""A scale of noise that leaves none."""

Release = Callable[[Plan, int], Floats]
"""What one run publishes under a plan, by its number, which seeds its noise."""

Audited = tuple[Plan, tuple[Release, Release]]


def scaled(plan: Plan, scale: Fraction, *names: str) -> Plan:
    """A broken implementation of a plan: the variance of some measurements, or of all, is scaled."""
    return replace(
        plan,
        measurements=tuple(
            replace(m, calibration=m.calibration * scale) if not names or m.name in names else m
            for m in plan.measurements
        ),
    )


def audit(pair: Sequence[Release], implemented: Plan, runs: int = RUNS) -> LowerBound:
    """Bound the loss of an implementation by runs on both inputs, with independent noise."""
    here, there = (
        np.stack([release(implemented, 2 * run + side) for run in range(runs)]) for side, release in enumerate(pair)
    )
    return lower_bound(here, there)
