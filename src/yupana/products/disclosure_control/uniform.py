"""Whole numbers that are equally likely, for choices that protect nothing by themselves."""

import numpy as np

from yupana.arrays import Ints
from yupana.privacy.entropy import Entropy


def uniform(below: int, size: int, entropy: Entropy) -> Ints:
    """Draw ``size`` numbers from 0 to ``below`` - 1, equally likely to ``below`` in 2^64; no noise of a release."""
    words = np.frombuffer(entropy.take(8 * size), dtype="<u8")
    return (words % np.uint64(below)).astype(np.int64)


def shuffled(size: int, entropy: Entropy) -> Ints:
    """The numbers from 0 to ``size`` - 1 in an order by chance."""
    return np.argsort(np.frombuffer(entropy.take(8 * size), dtype="<u8"), kind="stable")
