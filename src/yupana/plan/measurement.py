"""A Measurement: one noisy count vector, and the only place where a budget becomes a noise scale; and margins of error.

Margins are by the exact law of the noise, or as the Census Bureau computes them. Public; docs/margins.md.
"""

import math
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from statistics import NormalDist
from typing import Final, Literal, TypedDict

from yupana.errors import ConfigError
from yupana.privacy.exact import INFINITE, Budget
from yupana.privacy.laws import DiscreteGaussian, Law, TwoSidedGeometric, Zero
from yupana.privacy.zcdp import epsilon_tight

_HARDLY_EVER: Final = 1e-6
"""Noise that is not zero with a smaller probability is no noise."""


Accounting = Literal["published", "tight"]
"""Which sensitivities noise is scaled to: those of the originals, or the least that are proven."""


class Mechanism(Enum):
    """The definition of privacy a plan promises, with the noise that keeps it."""

    ZCDP = "zcdp"
    """rho-zCDP by discrete Gaussian noise; sensitivities are squared L2 distances."""

    PURE = "pure"
    """epsilon-DP by two-sided geometric noise; sensitivities are L1 distances."""

    @property
    def symbol(self) -> str:
        """What a loss is written as: ``ρ`` or ``ε``."""
        return "ρ" if self is Mechanism.ZCDP else "ε"

    @property
    def budget_name(self) -> str:
        """What a loss is called in files: ``rho`` or ``epsilon``."""
        return "rho" if self is Mechanism.ZCDP else "epsilon"

    @property
    def distance_name(self) -> str:
        """What a distance is called in files."""
        return "l2_sensitivity_squared" if self is Mechanism.ZCDP else "l1_sensitivity"

    @property
    def power(self) -> int:
        """A change k times as far, or k changes one after another, cost k to this power times as much."""
        return 2 if self is Mechanism.ZCDP else 1

    def law(self, calibration: Fraction, budget: Budget) -> Law:
        """The noise of a cell whose sensitivity (squared L2, or L1 under pure DP) and budget are given."""
        if not isinstance(budget, Fraction):
            return Zero()
        if self is Mechanism.ZCDP:
            return DiscreteGaussian(calibration / (2 * budget))
        return TwoSidedGeometric(calibration / budget)

    def epsilon(self, loss: Budget, delta: float) -> float:
        """The epsilon of a loss at ``delta``: its tight conversion under zCDP, itself under pure DP."""
        return epsilon_tight(loss, delta) if self is Mechanism.ZCDP else float(loss)


_WIDEST: Final = {Mechanism.ZCDP: Fraction(10) ** 30, Mechanism.PURE: Fraction(10) ** 16}
"""Largest ratio of sensitivity and budget: noise beyond 2^62 has then probability below 1e-200."""


def published_variance(law: Law) -> Fraction | float:
    """Variance of a cell as tables show it; see `Measurement.variance`."""
    if isinstance(law, DiscreteGaussian):
        return law.sigma2
    return law.variance if isinstance(law, TwoSidedGeometric) else Fraction(0)


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How far a count vector can move when one privacy unit changes: squared L2 under zCDP, L1 under pure DP."""

    unbounded: Fraction  # one record added or removed
    bounded: Fraction  # one record changed in any way, its place included
    # one person's record changed while the person stays in the household; None where that has no meaning
    same_household: Fraction | None = None


@dataclass(frozen=True, slots=True)
class PersonSensitivity:
    """How far a count vector can move when one *person* changes, whatever the records count (docs/person-loss.md).

    Distances as in `Sensitivity`, by the accounting the plan promises by.
    """

    unbounded: Fraction | None  # the person is added or removed; None where invariants leave no such neighbours
    same_household: Fraction  # the person is changed, and stays in the household
    bounded: Fraction  # the person is changed in any way, the household included


def of_own_record(record: Sensitivity) -> PersonSensitivity:
    """Where a record is one person's, and no other person's change alters it."""
    within = record.bounded if record.same_household is None else record.same_household
    return PersonSensitivity(record.unbounded, within, record.bounded)


def of_household_record(record: Sensitivity, mechanism: Mechanism) -> PersonSensitivity:
    """Where a record is a household's: any change of a member replaces it, and who moves replaces two of them."""
    return PersonSensitivity(record.bounded, record.bounded, 2**mechanism.power * record.bounded)


def of_occupancy(record: Sensitivity) -> PersonSensitivity:
    """Where a record says whether a housing unit is occupied, and nothing else: who moves empties one and fills one."""
    return PersonSensitivity(record.bounded, Fraction(0), 2 * record.bounded)


@dataclass(frozen=True, slots=True)
class Measurement:
    """One noisy measurement of a product table at one population-group level.

    Attributes
    ----------
    name : str
        Unique in its plan.
    table, level : str
        The product table and the population-group level or geolevel, in the field's own terms.
    cells : int
        Cells counted per population group.
    mechanism : Mechanism
    calibration : Fraction
        The sensitivity the noise is scaled to, under the plan's own neighbours: squared L2 or L1.
    sensitivity : Sensitivity
        The accounting the plan promises by; `calibration` is one of its entries.
    proven : Sensitivity
        The smallest bounds proven (docs/phsafe-privacy.md); equal to `sensitivity` where nothing better is known.
    budget : Fraction or INFINITE
        rho under zCDP, epsilon under pure DP.
    composition : str
        Empty, or where this measurement stands among others whose losses do not add: ``"GROUP:BRANCH"``. No change of
        one privacy unit costs more than the largest of the branches of a group, as on disjoint records; within a
        branch losses add. Groups nest as ``"GROUP:BRANCH/GROUP:BRANCH"``; without a branch a measurement is one of
        its own.
    person : PersonSensitivity or None
        The same as seen from one person; None where nothing is stated.
    by_one : bool
        Whether neighbours move no answer by more than one, so that `proven` counts the answers that move, and a bounded
        change is an unbounded one twice (docs/exact-accounting.md).
    """

    name: str
    table: str
    level: str
    cells: int
    mechanism: Mechanism
    calibration: Fraction
    sensitivity: Sensitivity
    proven: Sensitivity
    budget: Budget
    composition: str = ""
    person: PersonSensitivity | None = None
    by_one: bool = False

    def __post_init__(self) -> None:
        if not self.budget > 0:
            raise ValueError(f"the budget of {self.name} must be positive")
        if not self.calibration > 0:
            raise ValueError(f"the sensitivity of {self.name} must be positive")
        if isinstance(self.budget, Fraction) and self.calibration / self.budget > _WIDEST[self.mechanism]:
            raise ConfigError(
                f"measurement {self.name}: its noise would not fit 64 bits; give it more budget, or lower the "
                "sensitivity, such as tau"
            )

    @property
    def law(self) -> Law:
        """The noise of every cell: ``sigma2 = l2_sensitivity_squared / (2 rho)``, or ``scale = l1 / epsilon``."""
        return self.mechanism.law(self.calibration, self.budget)

    @property
    def is_without_noise(self) -> bool:
        """Whether noise is zero with a probability above 1 - 1e-6, so that counts are as good as exact."""
        return self.law.pmf(0) > 1 - _HARDLY_EVER

    @property
    def variance(self) -> Fraction | float:
        """Variance of a cell as published: sigma2, exact, under zCDP; that of the geometric law under pure DP."""
        return published_variance(self.law)

    @property
    def sigma(self) -> float:
        """Standard deviation of a cell, the root of `variance`."""
        return math.sqrt(self.variance)

    def loss(self, distance: Fraction) -> Budget:
        """Loss against neighbours whose count vectors differ by ``distance`` (squared L2, or L1 under pure DP)."""
        if not isinstance(self.budget, Fraction):
            return INFINITE
        return self.budget * distance / self.calibration


Margins = Literal["exact", "bureau"]
"""``exact``: the smallest whole m with P(|noise| <= m) >= confidence. ``bureau``: z times sigma."""


class PlanTerms(TypedDict, total=False):
    """What a plan is asked for beside its configuration."""

    accounting: Accounting  # which sensitivities the noise is scaled to: the published ones unless told
    confidence: Fraction | None  # of the margins of error, strictly between 0 and 1: the configuration's unless told
    margins: Margins  # how margins of error are computed: exactly unless told


_AS_ROUNDED: Final = {Fraction(9, 10): 1.645, Fraction(95, 100): 1.96}
"""z as the Census Bureau rounds it (PHSafe at 90 percent, SafeTab at 95 percent)."""


def margin_of(law: Law, cells: int, confidence: Fraction, margins: Margins) -> float:
    """The margin of error of a sum of cells that each have independent noise of one law; whole if ``exact``.

    It is of the noise alone: before counts are clamped at zero, suppressed or truncated.
    """
    if margins == "exact":
        from yupana.privacy.coverage import least_bound, noise_of

        return least_bound(noise_of([(law, cells)]), confidence)
    return margin_of_error(cells * published_variance(law), confidence)


def bound_of_estimate(
    variance: float, least: float, confidence: Fraction, margins: Margins, *, is_gaussian: bool
) -> float:
    """What a weighted sum of independent noises exceeds with at most the chance that the confidence leaves.

    With ``exact`` margins it is a proven bound (docs/margins.md, "Estimates"): no law of such a sum is computed.

    Parameters
    ----------
    variance : float
        Of the sum, as tables show variances.
    least : float
        The smallest variance of a noise in it.
    margins : "exact" or "bureau"
    is_gaussian : bool
        Whether the noises are discrete Gaussian, or else two-sided geometric.
    """
    if margins == "bureau" or not variance:
        return margin_of_error(variance, confidence)
    left = float(1 - confidence)
    if is_gaussian:
        return math.sqrt(2 * variance * math.log(2 / left))
    return math.sqrt(variance) * math.sqrt(math.sqrt((6 + 1 / least) / left))


def margin_words(margins: Margins, confidence: Fraction) -> str:
    """How a margin of error is defined, in a sentence for reports."""
    if margins == "exact":
        return (
            f"The margin is the smallest whole number m so that the noise lies within ±m with a chance of at least "
            f"{100 * float(confidence):g}%, by the exact law of the noise"
        )
    return f"The margin is {z_value(confidence):.4g} times the standard deviation σ of the noise"


def z_value(confidence: Fraction | float) -> float:
    """Two-sided normal quantile: 1.645 at 90 percent, 1.96 at 95 percent, exact at any other confidence.

    A double is taken as its shortest decimal, so that 0.9 is 90 percent.

    Raises
    ------
    ValueError
        If the confidence does not lie strictly between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise ValueError("a confidence level lies strictly between 0 and 1")
    level = Fraction(str(confidence))
    rounded = _AS_ROUNDED.get(level)
    return NormalDist().inv_cdf(float((1 + level) / 2)) if rounded is None else rounded


def margin_of_error(variance: Fraction | float, confidence: Fraction | float) -> float:
    """``z * sigma`` for a count of the given variance: the margin of the Bureau.

    Raises
    ------
    ValueError
        If the variance is negative, or the confidence does not lie strictly between 0 and 1.
    """
    if not 0 <= variance < math.inf:
        raise ValueError("a variance is a finite number, zero or more")
    return z_value(confidence) * math.sqrt(variance)


def check_margin(margin: Fraction) -> None:
    """Refuse a margin of error that is not positive."""
    if not margin > 0:
        raise ValueError("a margin of error must be positive")


def rho_for_margin(margin: Fraction, l2_sensitivity_squared: Fraction, confidence: Fraction | float) -> Fraction:
    """The rho whose ``z * sigma`` is ``margin``: ``z^2 d / (2 MOE^2)`` (PHSafe, corollary 2), with z of `z_value`.

    Raises
    ------
    ValueError
        If the margin is not positive.
    """
    check_margin(margin)
    z = Fraction(str(z_value(confidence)))
    return z * z * l2_sensitivity_squared / (2 * margin * margin)
