"""The methods of disclosure control that are compared: what they publish, and what that tells who knows the method."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from yupana.arrays import Flags, Floats, Ints
from yupana.errors import ConfigError, nearest
from yupana.privacy.exact import read_exact

UNBOUNDED: Final = 1 << 40
"""Stands for no upper bound: more than any count, and a million of them add up within 64 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """What is published of some counts."""

    values: Ints  # shape (counts,)
    flags: Flags  # whether a count is published at all

    @classmethod
    def whole(cls, values: Ints) -> "Shown":
        """All are published."""
        return cls(values, np.ones(len(values), dtype=bool))


class Chances(NamedTuple):
    """How likely a published value was for the true counts ``first``, ``first + 1``, and so on."""

    first: int
    of: Floats


Parameters = Mapping[str, tuple[str, Callable[[Any], Any]]]


class Method(ABC):
    """A way to publish counts, from the side of somebody who knows all of it but its random choices."""

    key: ClassVar[str]
    """What `read_methods` calls it."""

    parameters: ClassVar[Parameters] = {}
    """By what `read_methods` calls them, the fields that say more, and what they are."""

    unchanged_together = False
    """Whether two counts of the very same records are always published alike."""

    @property
    def name(self) -> str:
        """The method with all its parameters, as `read_methods` reads it: ``cell-key:D=5:V=3:js=2``."""
        told = (f"{called}={getattr(self, field)}" for called, (field, _) in self.parameters.items())
        return ":".join([self.key, *told])

    @property
    @abstractmethod
    def title(self) -> str:
        """What people call it."""

    def bounds(self, shown: Shown) -> tuple[Ints, Ints]:
        """The least and the largest true count that each published value leaves possible; nothing, unless told."""
        return np.zeros(len(shown.values), dtype=np.int64), np.full(len(shown.values), UNBOUNDED)

    def chances(self, value: int | None) -> Chances:
        """How likely a published value, None for one left out, was for each true count; unless told, taken as it is."""
        return Chances(value or 0, np.ones(1))


_LARGEST_D: Final = 50
_LEAST_V: Final = Fraction(1, 100)
_STEPS: Final = 200
_CLOSE: Final = 1e-13


@dataclass(frozen=True)
class CellKey(Method):
    """Whole noise from -D to D of mean 0 and variance V, and no published count from 1 to js.

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

    largest: int = 5  # D: the most that a count is changed by
    variance: Fraction = Fraction(3)  # V, of the noise of every count but 0, which stays 0
    gap: int = 2  # js: published counts are 0 or above it

    key = "cell-key"
    parameters: ClassVar[Parameters] = {"D": ("largest", int), "V": ("variance", Fraction), "js": ("gap", int)}
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
            table[count, allowed] = _most_entropy(noise[allowed].astype(np.float64), float(self.variance))
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


def _most_entropy(values: Floats, variance: float) -> Floats:
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


@dataclass(frozen=True, slots=True)
class RandomRounding(Method):
    """A count with remainder r goes up with chance r / base, and down otherwise; each by itself.

    Raises
    ------
    ConfigError
        If the base is not from 2 to 1,000.

    Source
    ------
    Handbook on Statistical Disclosure Control (ESSnet), section on rounding of frequency tables.
    """

    base: int

    def __post_init__(self) -> None:
        if not 2 <= self.base <= 1000:
            raise ConfigError(f"{self.name}: the base must be from 2 to 1,000")

    @property
    def name(self) -> str:
        """``rounding-3``."""
        return f"rounding-{self.base}"

    @property
    def title(self) -> str:
        """In words."""
        return f"Random rounding to {self.base}"

    def publish(self, counts: Ints, draws: Ints) -> Shown:
        """Round counts; ``draws`` are uniform from 0 to base - 1, one for each."""
        rest = counts % self.base
        return Shown.whole(counts - rest + np.where(draws < rest, self.base, 0))

    def bounds(self, shown: Shown) -> tuple[Ints, Ints]:
        """Less than a base away."""
        return np.maximum(0, shown.values - self.base + 1), shown.values + self.base - 1

    def chances(self, value: int | None) -> Chances:
        """Falling with the distance."""
        value = value or 0
        first = max(0, value - self.base + 1)
        counts = np.arange(first, value + self.base)
        return Chances(first, 1 - np.abs(counts - value) / self.base)


@dataclass(frozen=True, slots=True)
class Suppression(Method):
    """Counts from 1 to below - 1 are left out; 0 is published. No further counts are left out to protect these.

    Raises
    ------
    ConfigError
        If the threshold is below 2, which leaves out nothing, or above 1,000.

    Source
    ------
    Handbook on Statistical Disclosure Control (ESSnet), minimum frequency rule.
    """

    below: int = 3

    key = "suppression"
    parameters: ClassVar[Parameters] = {"below": ("below", int)}

    def __post_init__(self) -> None:
        if not 2 <= self.below <= 1000:
            raise ConfigError(f"{self.name}: must be from 2, below which no count is left out, to 1,000")

    @property
    def title(self) -> str:
        """In words."""
        return f"Counts below {self.below} left out"

    def publish(self, counts: Ints) -> Shown:
        """Leave out small counts; what stands in their place is 0."""
        small = (counts > 0) & (counts < self.below)
        return Shown(np.where(small, 0, counts), ~small)

    def bounds(self, shown: Shown) -> tuple[Ints, Ints]:
        """Exact where published, else below the threshold."""
        return np.where(shown.flags, shown.values, 1), np.where(shown.flags, shown.values, self.below - 1)

    def chances(self, value: int | None) -> Chances:
        """A count that is left out is any below the threshold."""
        return Chances(1, np.ones(self.below - 1)) if value is None else Chances(value, np.ones(1))


@dataclass(frozen=True, slots=True)
class Swapping(Method):
    """Risky records, and others until a share of all is reached, change areas with partners of the same size.

    Raises
    ------
    ConfigError
        If the rate is not from 0 to 1, or k from 0 to 1,000.

    Source
    ------
    Handbook on Statistical Disclosure Control (ESSnet), targeted record swapping; the defaults are those of recordSwap
    in the R package sdcMicro.
    """

    rate: Fraction = Fraction(1, 20)  # of the records that are swapped, at least; all risky ones are
    below: int = 3  # k: a record is risky if it counts in an area in a cell of fewer records

    key = "swapping"
    parameters: ClassVar[Parameters] = {"rate": ("rate", Fraction), "k": ("below", int)}

    def __post_init__(self) -> None:
        if not (0 <= self.rate <= 1 and 0 <= self.below <= 1000):
            raise ConfigError(f"{self.name}: rate must be from 0 to 1, and k from 0 to 1,000")

    @property
    def title(self) -> str:
        """In words."""
        return f"Targeted swapping, {float(100 * self.rate):g}%, k = {self.below}"


DEFAULT: Final = ("cell-key", "rounding-3", "rounding-5", "swapping", "suppression")

_ROUNDING: Final = "rounding-"

_KINDS: Final[Mapping[str, type[Method]]] = {kind.key: kind for kind in (CellKey, Swapping, Suppression)}


def read_methods(told: str | Sequence[str]) -> tuple[Method, ...]:
    """Read methods, as texts or one text with commas between them.

    Raises
    ------
    ConfigError
        Naming every fault: an unknown method or parameter, a value that is none, one method twice.
    """
    if not isinstance(told, str | Sequence):
        raise ConfigError(f"methods: must be texts such as {DEFAULT[0]!r}, and is of type {type(told).__name__}")
    texts = told.split(",") if isinstance(told, str) else told
    found: dict[str, Method] = {}
    faults = []
    for text in texts:
        try:
            method = _read(text.strip() if isinstance(text, str) else repr(text))
            if method.name in found:
                faults.append(f"{method.name}: is named twice")
            found[method.name] = method
        except ConfigError as error:
            faults.append(str(error))
    if not texts:
        faults.append(f"name one of {', '.join(DEFAULT)}")
    if faults:
        raise ConfigError("\n  ".join(["methods:", *faults]) if len(faults) > 1 else f"methods: {faults[0]}")
    return tuple(found.values())


def _read(text: str) -> Method:
    name, *pairs = text.split(":")
    if name.startswith(_ROUNDING) and not pairs:
        base = name.removeprefix(_ROUNDING)
        if not (base.isascii() and base.isdecimal() and len(base) < 5):
            raise ConfigError(f"{text}: must be {_ROUNDING} and a base, such as rounding-3")
        return RandomRounding(int(base))
    if name not in _KINDS:
        known = [*_KINDS, f"{_ROUNDING}N"]
        raise ConfigError(f"{text!r} is none of {', '.join(known)}{nearest(name, [*DEFAULT, *known])}")
    make, given = _KINDS[name], {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign or key not in make.parameters:
            raise ConfigError(
                f"{text}: {pair!r} is none of {', '.join(f'{known}=NUMBER' for known in make.parameters)}"
            )
        field, kind = make.parameters[key]
        if field in given:
            raise ConfigError(f"{text}: {key} is given twice")
        given[field] = _number(text, key, value, kind)
    return make(**given)


def _number(text: str, key: str, value: str, kind: Callable[[Any], Any]) -> Fraction | int:
    try:
        number = read_exact(value)
    except ValueError as error:
        raise ConfigError(f"{text}: {key}: {error}") from None
    if not isinstance(number, Fraction) or (kind is int and number.denominator != 1):
        raise ConfigError(f"{text}: {key} must be a {'whole' if kind is int else 'finite'} number")
    return kind(number)  # type: ignore[no-any-return]


class NoisyRelease(Method):
    """The release of the description itself: noise of unlimited size, so that no count is ever ruled out."""

    key = "release"
    title = "Differentially private release"


RELEASE: Final = NoisyRelease()
