"""A district plan held against a release and its noisy measurements: are the true populations balanced? Public.

See docs/districts.md.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Final, Literal

import numpy as np
from scipy import special

from yupana.arrays import Flags, Floats, Ints
from yupana.errors import ConfigError
from yupana.estimate.areas.least_squares import AreaLaw, law_of_areas
from yupana.estimate.areas.released import released_blocks
from yupana.estimate.intervals.query import Linear, evaluate, parse
from yupana.estimate.intervals.selections import Counted, Levels, counted_in
from yupana.estimate.intervals.tree import open_tree
from yupana.estimate.results import DistrictEstimates, Unassigned
from yupana.geography.district_plan import DistrictPlan, PlanOptions, read_plan
from yupana.geography.tree import partition
from yupana.products.gate import open_release
from yupana.topdown.plan import DEFAULT_CONFIDENCE

Rule = Literal["range", "deviation"]
"""The largest district less the smallest, or the largest difference from the ideal; in shares of the ideal."""

DRAWS: Final = 100_000
_SEED: Final = 2409
_AT_ONCE: Final = 1 << 22
_CERTAIN: Final = 1e-6
"""Bounds that are as near to each other need no draws."""

_STEPS: Final = 40
_ROUNDING: Final = 1e-9
"""Of the sum of all districts: a form that is larger by less has the value of its bound."""


@dataclass(frozen=True, slots=True)
class Chance:
    """The chance that a rule is met.

    Attributes
    ----------
    value : float
    standard_error : float
        Of the draws it was found by; 0 if by formula.
    lower, upper : float
        What is certain without a draw.
    """

    value: float
    standard_error: float
    lower: float
    upper: float


def departure(rule: Rule, populations: Floats) -> Floats:
    """How far populations depart from balance, in shares of the ideal: what a rule holds against its tolerance.

    Parameters
    ----------
    populations : ndarray of float64, shape (..., districts)
        Their sum is above 0.

    Returns
    -------
    ndarray of float64, shape (...)
    """
    ideal = populations.mean(axis=-1)
    largest, smallest = populations.max(axis=-1), populations.min(axis=-1)
    if rule == "range":
        return np.asarray((largest - smallest) / ideal)
    return np.asarray(np.maximum(largest - ideal, ideal - smallest) / ideal)


@dataclass(frozen=True, slots=True, eq=False)
class Forms:
    """The linear forms that a rule bounds: what they are worth, and how they and the sum of all districts err."""

    # value, variance, with_total: shape (forms,): the last is the covariance with the sum
    value: Floats
    variance: Floats
    with_total: Floats
    total: float
    total_variance: float
    districts: int

    def deviations(self, tolerance: float) -> tuple[Floats, Floats]:
        """Standard deviations of f - t S / k and of -f - t S / k."""
        share = tolerance / self.districts
        both = self.variance + share**2 * self.total_variance
        above, below = (np.sqrt(np.maximum(both + sign * 2 * share * self.with_total, 0.0)) for sign in (-1, 1))
        return above, below


def forms_of(rule: Rule, estimate: Floats, covariance: Floats) -> Forms:
    """The forms of a rule; of two districts there is one, for both rules bound their difference.

    Parameters
    ----------
    estimate : ndarray of float64, shape (districts,)
    covariance : ndarray of float64, shape (districts, districts)
    """
    districts, own, with_total = len(estimate), np.diag(covariance), covariance.sum(axis=1)
    total, total_variance = float(estimate.sum()), max(float(covariance.sum()), 0.0)
    if total_variance <= _ROUNDING * float(own.sum()):
        with_total, total_variance = np.zeros(districts), 0.0
    if rule == "range":
        first, second = np.triu_indices(districts, 1)
        value = estimate[first] - estimate[second]
        variance = own[first] + own[second] - 2 * covariance[first, second]
        along = with_total[first] - with_total[second]
    else:
        some = slice(1) if districts == 2 else slice(None)
        value = (estimate - total / districts)[some]
        variance = (own - 2 * with_total / districts + total_variance / districts**2)[some]
        along = (with_total - total_variance / districts)[some]
    return Forms(value, np.maximum(variance, 0.0), along, total, total_variance, districts)


def chance_of(rule: Rule, tolerance: float, estimate: Floats, covariance: Floats) -> Chance:
    """The chance that normal populations meet a rule.

    By one normal number if the rule has one form; otherwise by draws of a fixed seed, within what single inequalities
    make certain: at most the smallest of their chances, and at least 1 less the chances that each is broken.

    Parameters
    ----------
    tolerance : float
        Above 0.
    estimate : ndarray of float64, shape (districts,)
    covariance : ndarray of float64, shape (districts, districts)
        Symmetric, no eigenvalue below 0 but for rounding; may be singular.
    """
    forms = forms_of(rule, estimate, covariance)
    bound, (above, below) = tolerance / forms.districts * forms.total, forms.deviations(tolerance)
    slack = _ROUNDING * abs(forms.total)
    broken = _chance_above(forms.value - bound, above, slack) + _chance_above(-forms.value - bound, below, slack)
    lower, upper = max(0.0, 1.0 - float(broken.sum())), max(0.0, 1.0 - float(broken.max()))
    if upper - lower <= _CERTAIN:
        return Chance(lower, 0.0, lower, upper)
    met = _met(rule, tolerance, estimate, covariance)
    # Never 0: that no draw broke the rule does not make it certain.
    share = (met + 1) / (DRAWS + 2)
    return Chance(min(max(met / DRAWS, lower), upper), sqrt(share * (1 - share) / DRAWS), lower, upper)


def _met(rule: Rule, tolerance: float, estimate: Floats, covariance: Floats) -> int:
    """How many of the draws meet the rule."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    rng = np.random.default_rng(_SEED)
    met, left = 0, DRAWS
    while left:
        some = min(left, max(1, _AT_ONCE // len(estimate)))
        drawn = estimate + rng.standard_normal((some, len(estimate))) @ root.T
        met += int(((drawn.sum(axis=1) > 0) & (departure(rule, drawn) <= tolerance)).sum())
        left -= some
    return met


def tightened(
    rule: Rule, tolerance: float, chance: float, published: Floats, estimate: Floats, covariance: Floats
) -> float | None:
    """The tolerance for published populations that keeps the chance for the true ones.

    If populations whose least-squares estimate differs from what was published as here are published and meet it, then
    the true ones meet `tolerance` with at least the chance, given all measurements. And whatever the true populations
    are: if they break `tolerance`, published ones meet this with a chance of at most 1 - `chance`, over the noise.

    Parameters
    ----------
    tolerance : float
        For the true populations.
    chance : float
        Above 1/2.
    published, estimate : ndarray of float64, shape (districts,)
    covariance : ndarray of float64, shape (districts, districts)
        Of the estimate.

    Returns
    -------
    float or None
        At most `tolerance`; the largest if the rule has one form, else the largest by the sum of the chances that each
        inequality is broken. None if populations that are all alike could break the rule, too.
    """

    def is_kept(share: float) -> bool:
        return chance_broken(rule, tolerance, share, published, estimate, covariance) <= 1 - chance

    if not is_kept(0.0):
        return None
    low, high = 0.0, tolerance
    if is_kept(high):
        return high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_kept(middle) else (low, middle)
    return low


def chance_broken(
    rule: Rule, tolerance: float, share: float, published: Floats, estimate: Floats, covariance: Floats
) -> float:
    """How likely it is at most that the true populations break a rule, if published ones depart by a share.

    The sum of the chances that each inequality is broken, each form of the published populations being at the end of
    its bound that is worse. Parameters as of `tightened`; of what is published its difference from the estimate counts.
    """
    forms = forms_of(rule, estimate, covariance)
    apart = forms_of(rule, published - estimate, np.zeros_like(covariance)).value
    above, below = forms.deviations(tolerance)
    bound, end = tolerance / forms.districts * forms.total, share * float(published.sum()) / forms.districts
    slack = _ROUNDING * abs(forms.total)
    high, low = (
        _chance_above(value - bound, above, slack) + _chance_above(-value - bound, below, slack)
        for value in (end - apart, -end - apart)
    )
    return float(np.maximum(high, low).sum())


def _chance_above(mean: Floats, deviation: Floats, slack: float) -> Floats:
    """The chance that a normal number is above 0; one without a deviation is if it is by more than a rounding error."""
    known = deviation == 0
    return np.where(known, mean > slack, special.ndtr(mean / np.where(known, 1.0, deviation)))


TOLERANCES: Final[dict[Rule, Fraction]] = {"range": Fraction(1, 10), "deviation": Fraction(1, 20)}
"""The tolerance of each rule if none is said: 10 percent from the smallest to the largest, 5 from the ideal."""

LEVEL: Final = Fraction(95, 100)


def districts(
    release: Path,
    plan: Path,
    noisy: Path,
    *,
    rule: Rule = "range",
    tolerance: Fraction | None = None,
    level: Fraction = LEVEL,
    query: str = "total",
    confidence: Fraction | None = None,
    reading: PlanOptions = PlanOptions(),  # noqa: B008 (frozen)
) -> DistrictEstimates:
    """Estimate the populations of districts with their joint law, as `releases.districts` tells."""
    if level <= Fraction(1, 2):
        raise ConfigError(f"--chance {float(level):g}: a tightened rule is for a chance above 1/2")
    opened = open_release(release)
    measurements = open_tree(opened, noisy)
    counted = _counted(query, counted_in(measurements.schema))

    def people(some: Flags) -> float:
        members = partition(np.where(some, 0, -1).astype(np.int32), 1)
        return float(law_of_areas(measurements, members, counted).published[0])

    def published_blocks() -> Ints:
        """Whether the spine has them or not."""
        blocks = released_blocks(opened)
        return np.zeros(0, dtype=np.int64) if blocks is None else blocks.block

    assigned = read_plan(plan, measurements.spine, published_blocks, reading, people)
    law = law_of_areas(measurements, assigned.members, counted)
    number = len(assigned.districts)
    published, estimate, covariance = law.published[:number], law.estimate[:number], law.covariance[:number, :number]
    if min(estimate.sum(), published.sum()) <= 0:
        raise ConfigError(f"--query {query!r}: the districts have nobody of it together, so there is no balance")
    bound = TOLERANCES[rule] if tolerance is None else tolerance
    nobody = [] if reading.unassigned is None or assigned.apart else ["no block of the plan is unassigned"]
    sure = confidence or opened.confidence or DEFAULT_CONFIDENCE
    return DistrictEstimates(
        opened.name,
        str(opened.manifest.get("status")),
        query,
        assigned.districts,
        published,
        estimate,
        covariance,
        sure,
        NormalDist().inv_cdf(float((1 + sure) / 2)),
        rule,
        bound,
        level,
        {"published": float(departure(rule, published)), "estimated": float(departure(rule, estimate))},
        chance_of(rule, float(bound), estimate, covariance),
        tightened(rule, float(bound), float(level), published, estimate, covariance),
        (*measurements.notes, *_NOTES, *_beyond(assigned), *assigned.notes, *nobody),
        _apart(assigned, law, reading),
    )


def _apart(plan: DistrictPlan, law: AreaLaw, reading: PlanOptions) -> Unassigned | None:
    """The blocks that are kept apart from the balance: the area after the districts."""
    if not plan.apart:
        return None
    at = len(plan.districts)
    deviation = float(law.covariance[at, at]) ** 0.5
    return Unassigned(
        reading.unassigned or "", plan.apart, float(law.published[at]), float(law.estimate[at]), deviation
    )


def _beyond(plan: DistrictPlan) -> list[str]:
    number = plan.beyond
    if not number:
        return []
    blocks = f"{number:,} block{'s of the plan are' if number > 1 else ' of the plan is'}"
    return [f"{blocks} not on the spine, which leaves out where nobody can live, and counted as 0"]


_NOTES: Final = (
    "the chance is given all measurements, under a flat prior: the true populations are normal about the estimates",
    "if published populations that meet the tightened tolerance are taken, true ones that break the rule pass with at "
    "most the rest of the chance, over the draw of the noise and whatever they are",
)


def _counted(query: str, words: Counted) -> dict[Levels, Fraction]:
    """The answers that a query adds up, with their weights."""
    try:
        form = evaluate(parse(query), words.select)
    except ConfigError as error:
        raise ConfigError(f"--query {query!r}: {error}") from None
    if not isinstance(form, Linear) or form.constant or form.is_constant:
        raise ConfigError(f"--query {query!r}: of districts only sums and differences of counts can be asked for")
    return {cell: weight for cell, weight in form.weights.items() if isinstance(cell, tuple)}
