"""The cell key method: noise on each count that its records decide, by a table of chances of the largest entropy."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np

from yupana.arrays import Floats, Ints
from yupana.errors import ConfigError
from yupana.products.disclosure_control.method import Chances, Method, Shown

_LARGEST_D: Final = 50
_LEAST_V: Final = Fraction(1, 100)
_STEPS: Final = 200
_CLOSE: Final = 1e-13


@dataclass(frozen=True)
class CellKey(Method):
    """Whole noise from -D to D of mean 0 and variance V, and no published count from 1 to js.

    Attributes
    ----------
    largest : int
        D: the most that a count is changed by.
    variance : Fraction
        V, of the noise of every count but 0, which stays 0.
    gap : int
        js: published counts are 0 or above it.

    Raises
    ------
    ConfigError
        If no such noise exists. A count of i needs noise of -i, or of js + 1 - i and more, so V must lie above
        i (js + 1 - i) for each i up to js; a count of 1 has noise of -1 and up to D, so V must lie below D.

    Source
    ------
    Marley and Leaver (2011); Giessing (2016), doi:10.1007/978-3-319-45381-1_18; parameters as in the R package ptable,
    without its further condition that chances fall to both sides (docs/side-by-side.md).
    """

    largest: int = 5
    variance: Fraction = Fraction(3)
    gap: int = 2

    unchanged_together = True

    def __post_init__(self) -> None:
        least = (self.gap + 1) ** 2 // 4
        if not 1 <= self.largest <= _LARGEST_D or self.gap < 0 or self.variance < _LEAST_V:
            raise ConfigError(
                f"{self.name}: D must be from 1 to {_LARGEST_D}, js 0 or more, and V {float(_LEAST_V):g} or more"
            )
        if not least < self.variance < self.largest:
            raise ConfigError(
                f"{self.name}: no such noise exists; with js={self.gap} and D={self.largest}, V must lie above {least} "
                f"and below {self.largest}"
            )

    @property
    def name(self) -> str:
        """``cell-key:D=5:V=3:js=2``."""
        return f"cell-key:D={self.largest}:V={self.variance}:js={self.gap}"

    @property
    def title(self) -> str:
        """In words."""
        return f"Cell key, D = {self.largest}, V = {float(self.variance):g}, js = {self.gap}"

    @property
    def last(self) -> int:
        """The count from which on the noise is the same and symmetric."""
        return self.largest + (self.gap + 1 if self.gap else 0)

    @cached_property
    def p_table(self) -> Floats:
        """Chances of noise -D to D, by column, for true counts 0 to `last`, by row; shape (last + 1, 2 D + 1)."""
        noise = np.arange(-self.largest, self.largest + 1)
        table = np.zeros((self.last + 1, len(noise)))
        table[0, self.largest] = 1.0
        for count in range(1, self.last + 1):
            to = count + noise
            allowed = (to == 0) | (to > self.gap)
            table[count, allowed] = most_entropy(noise[allowed].astype(np.float64), float(self.variance))
        return table

    def publish(self, counts: Ints, keys: Ints) -> Shown:
        """Add to each count the noise that its key finds in the table.

        Parameters
        ----------
        counts : int64 array, shape (counts,)
        keys : int64 array, of the same shape
            The sums of the keys of the records that are counted, modulo 2^64, as bits.
        """
        # The first 53 bits: a double holds no more, and none becomes 1.
        uniform = (keys.view(np.uint64) >> np.uint64(11)).astype(np.float64) / (1 << 53)
        rows = np.minimum(counts, self.last)
        values = counts.copy()
        for row in np.unique(rows).tolist():
            of = np.flatnonzero(rows == row)
            noise = np.flatnonzero(self.p_table[row])
            steps = np.cumsum(self.p_table[row, noise])
            place = np.minimum(np.searchsorted(steps, uniform[of], side="right"), len(noise) - 1)
            values[of] += noise[place] - self.largest
        return Shown.whole(values)

    def bounds(self, shown: Shown) -> tuple[Ints, Ints]:
        """At most D away; a count of 0 is never moved up."""
        values = shown.values
        return np.maximum(values - self.largest, np.minimum(values, 1)), values + self.largest

    def chances(self, value: int | None) -> Chances:
        """By the table, which is known."""
        value = value or 0
        first = max(0, value - self.largest)
        counts = np.arange(first, value + self.largest + 1)
        return Chances(first, self.p_table[np.minimum(counts, self.last), value - counts + self.largest])


def most_entropy(values: Floats, variance: float) -> Floats:
    """The chances of some values, of the largest entropy among those of mean 0 and a variance.

    They are proportional to exp(b x + c x^2). The two numbers are the minimum of a convex function, the logarithm of
    the sum of exp(b x + c (x^2 - variance)), which Newton's method finds.

    Parameters
    ----------
    values : float64 array, shape (values,)
    variance : float
        Strictly between the least and the largest that a mean of 0 leaves possible.

    Returns
    -------
    float64 array, shape (values,)
    """
    features = np.stack([values, values**2 - variance])
    scale = np.abs(features).max(axis=1, keepdims=True)
    features = features / scale
    found = np.zeros(2)
    for _ in range(_STEPS):
        height, chances = _tilted(features, found)
        slope = features @ chances
        if np.abs(slope).max() < _CLOSE:
            break
        bend = (features * chances) @ features.T - np.outer(slope, slope)
        step = np.linalg.solve(bend, slope)
        share = 1.0
        while _tilted(features, found - share * step)[0] > height - 1e-4 * share * float(slope @ step) and share > 1e-6:
            share /= 2
        found -= share * step
    return _tilted(features, found)[1]


def _tilted(features: Floats, by: Floats) -> tuple[float, Floats]:
    exponents = by @ features
    highest = float(exponents.max())
    weights = np.exp(exponents - highest)
    total = float(weights.sum())
    return highest + float(np.log(total)), weights / total
