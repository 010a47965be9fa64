"""The estimate for coterminous areas errs as docs/coterminous.md proves: without bias, and with the variance stated.

Bounds are 6 standard errors on each of 150 numbers (false alarm below 1e-6, by the normal tail 2e-9 each).
"""

from fractions import Fraction

import numpy as np
import pytest

from yupana.estimate.safetab_tables import TREES
from yupana.privacy.entropy import SeededEntropy
from yupana.privacy.laws import DiscreteGaussian
from yupana.privacy.sampler import sample
from yupana.products.least_squares import average, estimate

pytestmark = pytest.mark.quality

TRIALS = 4000
AREAS = ((4, Fraction(225, 96)), (4, Fraction(63, 2)), (2, Fraction(63, 2)), (0, Fraction(9, 4)))
"""Depth measured and variance of each area: two with 23 ages, one with 4, one with a total."""


def test_estimates_are_unbiased_with_the_variance_stated() -> None:
    family = TREES[0]
    widths = [1, *(parent.size for parent in family.parents)]
    truth = [np.arange(widths[-1], dtype=float)]
    for parent in reversed(family.parents):
        truth.insert(0, np.bincount(parent, truth[0]))
    entropy = SeededEntropy(20)
    values = [np.zeros((TRIALS, n)) for n in widths]
    variances = [np.full((TRIALS, n), np.inf) for n in widths]
    for depth in {depth for depth, _ in AREAS}:
        own = [variance for at, variance in AREAS if at == depth]
        shape = (TRIALS, widths[depth])
        noisy = [sample(DiscreteGaussian(v), shape[0] * shape[1], entropy).reshape(shape) + truth[depth] for v in own]
        spread = [np.full(shape, float(v)) for v in own]
        trial = np.tile(np.arange(TRIALS), len(own))
        values[depth], variances[depth] = average(np.concatenate(noisy), np.concatenate(spread), trial, TRIALS)
    found = estimate(family.parents, values, variances)
    for true, estimates, stated in zip(truth, found.values, found.variances, strict=True):
        sigma = np.sqrt(stated[0])
        errors = estimates - true
        assert (np.abs(errors.mean(axis=0)) < 6 * sigma / np.sqrt(TRIALS)).all()
        assert (np.abs((errors**2).mean(axis=0) / stated[0] - 1) < 6 * np.sqrt(2 / TRIALS)).all()
