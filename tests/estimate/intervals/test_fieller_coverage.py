"""Fieller's set holds the true ratio with its confidence, however near to 0 the denominator is; fixed seed."""

import numpy as np
import pytest

from yupana.estimate.intervals.intervals import fieller

pytestmark = pytest.mark.quality

DRAWS = 20_000
Z = {0.9: 1.6448536269514722, 0.95: 1.959963984540054}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("confidence", sorted(Z))
@pytest.mark.parametrize("correlation", [-0.6, 0.0, 0.8])
@pytest.mark.parametrize("below", [40.0, 4.0, 1.5, 0.2, 0.0])
def test_coverage(below: float, correlation: float, confidence: float) -> None:
    rng = np.random.default_rng([int(10 * below), int(10 * correlation) + 10, int(100 * confidence)])
    deviations = np.array([2.0, 1.0])
    covariance = np.array([[1.0, correlation], [correlation, 1.0]]) * np.outer(deviations, deviations)
    above = 3.0
    found = rng.multivariate_normal([above, below], covariance, DRAWS)
    held, unbounded = 0, 0
    for n, d in found.tolist():
        pieces = fieller(n, d, covariance[0, 0], covariance[1, 1], covariance[0, 1], Z[confidence])
        unbounded += len(pieces) > 1 or not np.isfinite(pieces[0]).all()
        # A ratio of infinite size is held by a set without end.
        held += any(low <= above / below <= high for low, high in pieces) if below else not np.isfinite(pieces).all()
    error = (confidence * (1 - confidence) / DRAWS) ** 0.5
    assert abs(held / DRAWS - confidence) < 6 * error
    assert (unbounded > 0) == (below < 10)
