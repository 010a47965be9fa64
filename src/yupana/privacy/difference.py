"""What the noisy answers of two neighbours differ in: how many move, how far, and with which noise."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric

_SLACK: Final = 1e-6
"""What is allowed, of the logarithm of a probability, for replacing the noise of a measurement."""

_UP: Final = 1 + 2.0**-49
"""Rounds a few operations upward."""


@dataclass(frozen=True, slots=True)
class Shift:
    """Answers with independent noise of one law, each of which neighbours move by the same whole number.

    Attributes
    ----------
    law : DiscreteGaussian or TwoSidedGeometric
    by : int
        How far an answer moves, up or down; positive.
    times : int
        How many answers move so far; positive.
    """

    law: DiscreteGaussian | TwoSidedGeometric
    by: int = 1
    times: int = 1

    def __post_init__(self) -> None:
        if self.by < 1 or self.times < 1:
            raise ValueError("an answer moves by a whole number of 1 or more, and so does the number of answers")

    @property
    def most(self) -> float:
        """The largest loss, rounded up; infinite for Gaussian noise."""
        if isinstance(self.law, DiscreteGaussian):
            return math.inf
        return float(self.by * self.times * self.law.exponent) * _UP


@dataclass(frozen=True, slots=True)
class ShiftChoice:
    """So many records or parts of them, each of which moves the answers of one of several options.

    Attributes
    ----------
    times : int
        Each of them may take another option.
    options : tuple of tuple of Shift
    """

    times: int
    options: tuple[tuple[Shift, ...], ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """What the noisy answers of neighbours differ in, where the choices may fall in any way.

    Attributes
    ----------
    shifts : tuple of Shift
    choices : tuple of ShiftChoice
    squared : float
        Beside them a shift of continuous Gaussian noise by so many standard deviations, squared: mu^2.
    slack : float
        How much the logarithm of any probability may differ besides.
    """

    shifts: tuple[Shift, ...] = ()
    choices: tuple[ShiftChoice, ...] = ()
    squared: float = 0.0
    slack: float = 0.0

    @classmethod
    def of_distance(cls, law: DiscreteGaussian, distance: Fraction) -> "Difference":
        """Counts that move by any whole numbers with a sum of squares of at most ``distance``.

        Discrete noise of parameter sigma2 is made of continuous noise of variance sigma2 - s2, but for a slack for each
        count that moves, of which there are at most ``distance`` (docs/exact-accounting.md, theorem 3). s2 is about 1.

        Raises
        ------
        ValueError
            If sigma2 is less than twice s2, so that the bound would be worth little.
        """
        counts = math.floor(distance)
        if not counts:
            return cls()
        given_up = Fraction(math.ceil(1000 * math.log(8 * counts / _SLACK) / (2 * math.pi**2)), 1000)
        if law.sigma2 < 2 * given_up:
            raise ValueError("the noise is too small to be replaced by continuous noise")
        wave = 2 * math.fsum(math.exp(-2 * math.pi**2 * float(given_up) * m * m) for m in (1, 2, 3)) * _UP
        return cls(
            squared=float(distance / (law.sigma2 - given_up)) * _UP,
            slack=counts * (math.log1p(wave) - math.log1p(-wave)) * (1 + 1e-9),
        )

    def __add__(self, other: "Difference") -> "Difference":
        """What differs in the answers of both."""
        shifts: dict[tuple[DiscreteGaussian | TwoSidedGeometric, int], int] = {}
        for shift in (*self.shifts, *other.shifts):
            shifts[shift.law, shift.by] = shifts.get((shift.law, shift.by), 0) + shift.times
        choices: dict[tuple[tuple[Shift, ...], ...], int] = {}
        for choice in (*self.choices, *other.choices):
            choices[choice.options] = choices.get(choice.options, 0) + choice.times
        return Difference(
            tuple(Shift(law, by, times) for (law, by), times in shifts.items()),
            tuple(ShiftChoice(times, options) for options, times in choices.items()),
            (self.squared + other.squared) * _UP,
            (self.slack + other.slack) * _UP,
        )

    @property
    def in_order(self) -> "Difference":
        """The same, said in one order, so that numbers that follow do not depend on the order of a plan."""
        choices = (
            ShiftChoice(choice.times, tuple(sorted(map(_in_order, choice.options), key=_keys)))
            for choice in self.choices
        )
        ordered = sorted(choices, key=lambda choice: (choice.times, [_keys(option) for option in choice.options]))
        return replace(self, shifts=_in_order(self.shifts), choices=tuple(ordered))

    @property
    def most(self) -> float:
        """The largest loss, rounded up; infinite for Gaussian noise."""
        if self.squared or self.slack:
            return math.inf
        chosen = sum(c.times * max(sum(s.most for s in option) for option in c.options) for c in self.choices)
        return (math.fsum(shift.most for shift in self.shifts) + chosen) * _UP

    def least_epsilon(self, delta: float) -> float:
        """An epsilon that is not kept at ``delta``, by the chance of the largest loss alone; 0 if that tells nothing.

        Of geometric noise delta is at least p (1 - e^(epsilon - most)), p the chance of the largest loss.
        """
        if math.isinf(self.most) or self.choices:
            return 0.0
        chance = math.exp(-math.fsum(s.times * math.log1p(math.exp(-float(s.law.exponent))) for s in self.shifts))
        return max(0.0, (self.most + math.log1p(-delta / chance)) * (1 - 1e-13)) if delta < chance / 2 else 0.0

    @property
    def moves(self) -> bool:
        """Whether anything differs."""
        return bool(self.shifts) or bool(self.choices) or self.squared > 0 or self.slack > 0

    @property
    def mixtures(self) -> int:
        """In how many ways the choices can fall, up to order."""
        return math.prod(math.comb(c.times + len(c.options) - 1, len(c.options) - 1) for c in self.choices)


def _in_order(shifts: Sequence[Shift]) -> tuple[Shift, ...]:
    return tuple(sorted(shifts, key=lambda shift: _keys((shift,))))


def _keys(shifts: Sequence[Shift]) -> list[tuple[str, Fraction, int, int]]:
    return [(type(shift.law).__name__, shift.law.exponent, shift.by, shift.times) for shift in shifts]
