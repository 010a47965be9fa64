"""What a release mechanism loses at least, by runs on neighbouring inputs: lower bounds with confidence.

Both bounds hold with the confidence stated whatever the mechanism does and however badly the event is chosen, because
the event is chosen on runs that are then put aside (theorems 1 to 3 of docs/audits.md). A bound above what a plan
promises proves that the mechanism breaks the promise; one below proves nothing.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from yupana.arrays import Floats
from yupana.errors import InputError

CONFIDENCE: Final = 1 - 1e-6

_SELECTION: Final = 1 / 3
"""Share of the runs on which the event is chosen."""

FEWEST: Final = 60
"""With fewer runs of each input, no bound can be above zero."""

_SINGLE: Final = 4
"""Statistics that are one coordinate alone."""

_EACH: Final = 20
"""Runs for each number, where all are weighed together."""

_SHRINKAGE: Final = (0.01, 0.2)
"""Of the covariance towards its diagonal: numbers that always add up to the same have none of full rank."""

_STATISTICS: Final = 1 + len(_SHRINKAGE) + _SINGLE
_THRESHOLDS: Final = 60
_ORDERS: Final = np.concatenate([1 + np.geomspace(0.01, 100, 60)])
_STEPS: Final = (0.3, 0.5, 0.7, 0.85, 1.0)
_CLIPS: Final = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)


@dataclass(frozen=True, slots=True)
class LowerBound:
    """Lower bounds that hold together with the confidence stated.

    Attributes
    ----------
    epsilon : float
        Of (epsilon, delta)-differential privacy.
    rho : float
        Of zero-concentrated differential privacy: the larger of `rho_by_event` and `rho_by_mean`.
    rho_by_event, rho_by_mean : float
        By the probabilities of one event (theorem 2), and by the means of one function (theorem 3).
    delta : float
    confidence : float
    runs : int
        Of each input, on which the bounds stand; those the event was chosen on are not counted.
    """

    epsilon: float
    rho_by_event: float
    rho_by_mean: float
    delta: float
    confidence: float
    runs: int

    @property
    def rho(self) -> float:
        """The larger of the two bounds."""
        return max(self.rho_by_event, self.rho_by_mean)

    def as_json(self) -> dict[str, Any]:
        """All bounds."""
        return {
            "epsilon": self.epsilon,
            "rho": self.rho,
            "rho_by_event": self.rho_by_event,
            "rho_by_mean": self.rho_by_mean,
            "delta": self.delta,
            "confidence": self.confidence,
            "runs": self.runs,
        }


def lower_bound(here: Floats, there: Floats, delta: float = 0.0, confidence: float = CONFIDENCE) -> LowerBound:
    """Bound the loss of a mechanism from below by its outputs on two neighbouring inputs.

    Parameters
    ----------
    here, there : ndarray of float64, shape (runs, numbers)
        One row for each independent run: any numbers computed from what the run published, the same for all runs.
    delta : float
        Of the epsilon.
    confidence : float
        Probability with which all bounds hold.

    Raises
    ------
    InputError
        If the runs do not match, are too few, or hold numbers that are not finite.
    """
    for which, runs in (("first", here), ("second", there)):
        if runs.ndim != 2 or runs.shape[1:] != here.shape[1:]:
            raise InputError(f"the runs on the {which} input do not match: each run needs the same numbers")
        if len(runs) < FEWEST:
            raise InputError(f"{len(runs)} runs on the {which} input are too few; at least {FEWEST} are needed")
        if not np.isfinite(runs).all():
            raise InputError(f"a run on the {which} input holds a number that is not finite")
    first = [round(len(runs) * _SELECTION) for runs in (here, there)]
    chosen, kept = (
        [runs[part] for runs, part in zip((here, there), parts, strict=True)]
        for parts in ([slice(n) for n in first], [slice(n, None) for n in first])
    )
    tail = (1 - confidence) / 6
    number = min(map(len, kept))
    choice = _choose(chosen[0], chosen[1], number, delta, tail)
    score = [runs @ choice.weights - choice.centre for runs in kept]
    return LowerBound(
        _epsilon(*_ends(*_count(score, choice.of_epsilon), tail), delta),
        _rho(*_ends(*_count(score, choice.of_rho), tail)),
        _by_mean(score, choice.of_mean, tail),
        delta,
        confidence,
        number,
    )


@dataclass(frozen=True, slots=True)
class _Event:
    """The score of a run, times a sign, reaches a threshold; more probable under the input that comes first."""

    threshold: float
    sign: int


@dataclass(frozen=True, slots=True)
class _Function:
    """The score times a step, clipped; with the sign, as in `_Event`."""

    step: float
    clip: float
    sign: int


@dataclass(frozen=True, slots=True, eq=False)
class _Choice:
    """What is tested on the runs that were not used to choose it."""

    weights: Floats
    centre: float
    of_epsilon: _Event
    of_rho: _Event
    of_mean: _Function


def _choose(here: Floats, there: Floats, number: int, delta: float, tail: float) -> _Choice:
    """Choose statistic, events and function by the bounds they promise for as many runs as are kept.

    Statistics are compared on runs that they were not made from: each half of the runs judges those of the other.
    """
    halves = [[runs[start::2] for runs in (here, there)] for start in (0, 1)]
    promised = np.zeros(_STATISTICS)
    for one, other in (halves, halves[::-1]):
        for place, (weights, centre) in enumerate(_statistics(one[0], one[1])):
            promised[place] += _tests([runs @ weights - centre for runs in other], number, delta, tail)[0]
    weights, centre = _statistics(here, there)[int(np.argmax(promised))]
    _, of_epsilon, of_rho, of_mean = _tests([r @ weights - centre for r in (here, there)], number, delta, tail)
    return _Choice(weights, centre, of_epsilon, of_rho, of_mean)


def _tests(score: list[Floats], number: int, delta: float, tail: float) -> tuple[float, _Event, _Event, _Function]:
    """What a score promises for rho, and the events for epsilon and rho and the function that promise most."""
    events = list(_events(score))
    # The counts are scaled to the number of runs kept, so that chance is weighed as it will be.
    ends = []
    for event in events:
        shares = [hits / runs for hits, runs in zip(*_count(score, event), strict=True)]
        ends.append(_ends([round(share * number) for share in shares], [number, number], tail))
    epsilons = [_epsilon(low, high, delta) for low, high in ends]
    rhos = [_rho(low, high) for low, high in ends]
    functions = [_Function(step, clip, sign) for step in _STEPS for clip in _CLIPS for sign in (1, -1)]
    means = [_by_mean(score, function, tail, number) for function in functions]
    return (
        max(*rhos, *means),
        events[int(np.argmax(epsilons))],
        events[int(np.argmax(rhos))],
        functions[int(np.argmax(means))],
    )


def _statistics(here: Floats, there: Floats) -> list[tuple[Floats, float]]:
    """Linear statistics: log-likelihood ratios of normal numbers, dependent or not, and the best numbers alone.

    Returns
    -------
    list of (weights, centre)
        `_STATISTICS` of them.
    """
    difference = here.mean(axis=0) - there.mean(axis=0)
    variance = (here.var(axis=0) + there.var(axis=0)) / 2
    # A number without noise that differs tells the inputs apart at once; it gets a weight that outdoes all others.
    floor = 1e-6 * difference**2 + np.finfo(float).tiny
    variance = np.maximum(variance, floor)
    standard = np.abs(difference) / np.sqrt(variance * (1 / len(here) + 1 / len(there)))
    order = np.argsort(-standard)
    telling = standard >= math.sqrt(2 * math.log(max(2, difference.size))) + 1
    telling[order[0]] = True
    weights = [np.where(telling, difference / variance, 0.0)]
    # Numbers that tell nothing alone may take noise off others, where there are runs enough to know.
    together = np.ones_like(telling) if difference.size <= len(here) // _EACH else telling
    for share in _SHRINKAGE:
        covariance = np.cov(here[:, together].T, ddof=0) + np.cov(there[:, together].T, ddof=0)
        shrunken = (1 - share) * np.atleast_2d(covariance) / 2 + share * np.diag(variance[together])
        weighed = np.zeros_like(difference)
        weighed[together] = np.linalg.solve(shrunken + np.diag(floor[together]), difference[together])
        weights.append(weighed)
    for place in range(_SINGLE):
        alone = np.arange(difference.size) == order[min(place, order.size - 1)]
        weights.append(np.where(alone, difference / variance, 0.0))
    middle = (here.mean(axis=0) + there.mean(axis=0)) / 2
    return [(w, float(w @ middle)) for w in weights]


def _events(score: list[Floats]) -> Iterator[_Event]:
    both = np.concatenate(score)
    for threshold in np.unique(np.quantile(both, np.linspace(0.002, 0.998, _THRESHOLDS), method="nearest")).tolist():
        yield _Event(threshold, 1)
        yield _Event(-threshold, -1)


def _count(score: list[Floats], event: _Event) -> tuple[list[int], list[int]]:
    """How often the event occurs, and the number of runs: of the input that makes it likelier, and of the other."""
    ordered = score[:: event.sign]
    return [int((event.sign * s >= event.threshold).sum()) for s in ordered], [len(s) for s in ordered]


def _ends(hits: list[int], runs: list[int], tail: float) -> tuple[float, float]:
    """Clopper and Pearson's lower end of the first probability and upper end of the second, each wrong at ``tail``."""
    from scipy import special  # noqa: PLC0415 (half a second, and not every command needs it)

    low = special.betaincinv(hits[0], runs[0] - hits[0] + 1, tail) if hits[0] > 0 else 0.0
    high = special.betaincinv(hits[1] + 1, runs[1] - hits[1], 1 - tail) if hits[1] < runs[1] else 1.0
    return float(low), float(high)


def _epsilon(low: float, high: float, delta: float) -> float:
    """Theorem 1: P(E) <= e^epsilon Q(E) + delta."""
    return max(0.0, math.log((low - delta) / high)) if low > delta else 0.0


def _rho(low: float, high: float) -> float:
    """Theorem 2: the Renyi divergence of order a of an event's probabilities is at most rho a."""
    if not low > high:
        return 0.0
    p, q = (np.array([value, 1 - value]) for value in (low, high))
    # 1 - low may be zero: 0^a is 0.
    with np.errstate(divide="ignore"):
        terms = _ORDERS[:, None] * np.log(p) + (1 - _ORDERS[:, None]) * np.log(q)
    divergence = np.logaddexp(terms[:, 0], terms[:, 1]) / (_ORDERS - 1)
    return max(0.0, float((divergence / _ORDERS).max()))


def _by_mean(score: list[Floats], function: _Function, tail: float, number: int | None = None) -> float:
    """Theorem 3: E_P f - log E_Q e^f is at most the divergence of Kullback and Leibler, and that at most rho.

    Parameters
    ----------
    number : int, optional
        Of runs to reckon with, instead of those given.
    """
    one, other = (
        np.clip(function.sign * function.step * s, -function.clip, function.clip) for s in score[:: function.sign]
    )
    low = _lower_mean(one, 2 * function.clip, tail, number)
    # Of -e^f, whose range is that of e^f.
    exponential = -np.exp(other)
    spread = math.exp(function.clip) - math.exp(-function.clip)
    high = -_lower_mean(exponential, spread, tail, number)
    return max(0.0, low - math.log(high)) if high > 0 else 0.0


def _lower_mean(values: Floats, spread: float, tail: float, number: int | None) -> float:
    """A mean is above this but with probability ``tail`` (Maurer and Pontil 2009, theorem 4).

    Parameters
    ----------
    values : ndarray of float64, shape (runs,)
        Independent, within an interval of length ``spread``.
    """
    n = number or values.size
    log = math.log(2 / tail)
    return float(values.mean() - math.sqrt(2 * values.var(ddof=1) * log / n) - 7 * spread * log / (3 * (n - 1)))
