"""What a release mechanism loses at least, by runs on neighbouring inputs: lower bounds with confidence.

Both bounds hold with the confidence stated whatever the mechanism does and however badly the event is chosen, because
the event is chosen on runs that are then put aside (theorems 1 to 3 of docs/audits.md). A bound above what a plan
promises proves that the mechanism breaks the promise; one below proves nothing.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from yupana.arrays import Floats, Ints
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
        float(_epsilon(*_ends(*_count(score, [choice.of_epsilon]), tail), delta)[0]),
        float(_rho(*_ends(*_count(score, [choice.of_rho]), tail))[0]),
        float(_by_mean(score, [choice.of_mean], tail)[0]),
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


_FUNCTIONS: Final = [_Function(step, clip, sign) for step in _STEPS for clip in _CLIPS for sign in (1, -1)]


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
    hits, runs = _count(score, events)
    scaled = [np.rint(found / size * number) for found, size in zip(hits, runs, strict=True)]
    ends = _ends(scaled, [number, number], tail)
    epsilons, rhos = _epsilon(*ends, delta), _rho(*ends)
    means = _by_mean(score, _FUNCTIONS, tail, number)
    return (
        float(max(rhos.max(), means.max())),
        events[int(np.argmax(epsilons))],
        events[int(np.argmax(rhos))],
        _FUNCTIONS[int(np.argmax(means))],
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


def _count(score: list[Floats], events: Sequence[_Event]) -> tuple[list[Ints], list[Ints]]:
    """How often each event occurs, and the number of runs: of the input that makes it likelier, and of the other."""
    here = np.array([event.sign == 1 for event in events])
    threshold = np.array([event.threshold for event in events])
    reached = [
        np.where(here, len(s) - np.searchsorted(s, threshold), np.searchsorted(s, -threshold, side="right"))
        for s in map(np.sort, score)
    ]
    runs = [np.full(len(events), len(s)) for s in score]
    hits, sizes = ([np.where(here, *of), np.where(here, *of[::-1])] for of in (reached, runs))
    return hits, sizes


def _ends(hits: Sequence[ArrayLike], runs: Sequence[ArrayLike], tail: float) -> tuple[Floats, Floats]:
    """Clopper and Pearson's lower end of the first probability and upper end of the second, each wrong at ``tail``."""
    (one, other), (size, other_size) = (list(map(np.asarray, of)) for of in (hits, runs))
    # The functions have no value where nothing, or everything, was hit.
    low = special.betaincinv(np.maximum(one, 1), size - one + 1, tail)
    high = special.betaincinv(other + 1, np.maximum(other_size - other, 1), 1 - tail)
    return np.where(one > 0, low, 0.0), np.where(other < other_size, high, 1.0)


def _epsilon(low: ArrayLike, high: ArrayLike, delta: float) -> Floats:
    """Theorem 1: P(E) <= e^epsilon Q(E) + delta."""
    left = np.asarray(low) - delta
    # Where nothing is left, the ratio is one, and its logarithm zero.
    return np.maximum(0.0, np.log(np.where(left > 0, left, high) / high))


def _rho(low: ArrayLike, high: ArrayLike) -> Floats:
    """Theorem 2: the Renyi divergence of order a of an event's probabilities is at most rho a."""
    # Where the bounds overlap both are taken as one, which diverge by nothing.
    p, q = np.maximum(low, high)[..., None], np.asarray(high, dtype=np.float64)[..., None]
    # A probability may be one, and its complement zero: 0^a is 0.
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [_ORDERS * np.log(of) + (1 - _ORDERS) * np.log(to) for of, to in ((p, q), (1 - p, 1 - q))]
        divergence = np.logaddexp(*terms) / (_ORDERS - 1)
    return np.where(np.asarray(low) > high, np.maximum(0.0, (divergence / _ORDERS).max(axis=-1)), 0.0)


def _by_mean(score: list[Floats], functions: Sequence[_Function], tail: float, number: int | None = None) -> Floats:
    """Theorem 3: E_P f - log E_Q e^f is at most the divergence of Kullback and Leibler, and that at most rho.

    Parameters
    ----------
    number : int, optional
        Of runs to reckon with, instead of those given.

    Returns
    -------
    ndarray of float64, shape (functions,)
    """
    found = np.zeros(len(functions))
    signs = np.array([function.sign for function in functions])
    for sign in (1, -1):
        of = [function for function in functions if function.sign == sign]
        step, clip = (np.array(values)[:, None] for values in ([f.step for f in of], [f.clip for f in of]))
        one, other = (np.clip(sign * step * s, -clip, clip) for s in score[::sign])
        low = _lower_mean(one, 2 * clip[:, 0], tail, number)
        # Of -e^f, whose range is that of e^f.
        high = -_lower_mean(-np.exp(other), 2 * np.sinh(clip[:, 0]), tail, number)
        found[signs == sign] = np.where(high > 0, low - np.log(np.where(high > 0, high, 1)), 0)
    return np.maximum(0.0, found)


def _lower_mean(values: Floats, spread: ArrayLike, tail: float, number: int | None) -> Floats:
    """A mean is above this but with probability ``tail`` (Maurer and Pontil 2009, theorem 4).

    Parameters
    ----------
    values : ndarray of float64, shape (..., runs)
        Independent, within an interval of length ``spread``.
    """
    n = number or values.shape[-1]
    log = math.log(2 / tail)
    deviation = np.sqrt(2 * values.var(axis=-1, ddof=1) * log / n)
    found: Floats = values.mean(axis=-1) - deviation - 7 * np.asarray(spread) * log / (3 * (n - 1))
    return found
