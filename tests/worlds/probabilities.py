"""Probabilities of a law of noise as an array."""

import numpy as np
from numpy.typing import NDArray

from yupana.privacy.laws import Law


def pmf_array(law: Law, reach: int) -> NDArray[np.float64]:
    """P(X = k) for k = -reach .. reach, shape (2 reach + 1,)."""
    half = [law.pmf(k) for k in range(reach + 1)]  # a law is symmetric, as its own tests say
    return np.array([*half[:0:-1], *half])
