"""The margin of error that errors were observed to have. Public: plain numbers."""

import numpy as np

from yupana.arrays import Ints


def observed_margin(errors: Ints, confidence: float) -> int:
    """The smallest whole number that so large a part of the errors do not pass: the definition of an exact margin."""
    return int(np.quantile(np.abs(errors), confidence, method="inverted_cdf"))
