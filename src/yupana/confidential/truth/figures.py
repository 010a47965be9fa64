"""Figures SA1 to SA4 of the paper (Flaxman and Petti 2020), as the authors' code makes them.

Where the code and the text of the paper differ, the text's mechanism stands beside the code's (docs/audits.md). The
noise is that of the paper, from its generator and seed, and protects nobody.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from yupana.arrays import Floats, Ints
from yupana.audit.empirical.kernel_density import DISTRICTS, generator_of_the_figures, noise
from yupana.audit.empirical.local_likelihood import known_loss
from yupana.audit.empirical.loss import LossFinding, LossRequest, examine_all
from yupana.audit.empirical.series import Series, least_absolute, least_squares
from yupana.confidential.truth.districts import Districts
from yupana.privacy.laws import TwoSidedGeometric

_EPSILON: Final = 0.25
_OF_TOTALS, _OF_STRATA = 0.25, 0.75
_PENALTY: Final = 100.0
"""SA4: what the square of a county's excess costs where that of a stratum costs one."""


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """One series of a figure, and the number printed for it.

    Attributes
    ----------
    figure : str
    epsilon : float
        As the paper counts it: twice the loss of a step, nearly.
    printed : float or None
        The EPL that the paper gives; None where it gives none for this mechanism.
    finding : LossFinding
        By the published estimate.
    """

    figure: str
    epsilon: float
    printed: float | None
    finding: LossFinding

    @property
    def difference(self) -> float | None:
        """Printed minus computed; None where one is missing."""
        loss = self.finding.loss
        return None if self.printed is None or loss is None else self.printed - loss

    def as_json(self) -> dict[str, Any]:
        """The number printed, the number computed, and all that belongs to it."""
        return {
            "figure": self.figure,
            "what": self.finding.series.name,
            "epsilon": self.epsilon,
            "printed": self.printed,
            "epl": self.finding.loss,
            "difference": self.difference,
            "result": self.finding.as_json(),
        }


@dataclass(frozen=True, slots=True, eq=False)
class _AskedFigure:
    """A series with its epsilon and the number printed."""

    series: Series
    epsilon: float
    printed: float | None


def draw_figure(name: str, districts: Districts, request: LossRequest) -> list[Drawn]:
    """Make the series of a figure, and estimate their losses.

    Parameters
    ----------
    name : str
        Of `FIGURES`.
    districts : Districts
        Not looked at by SA2, which is of noise alone.
    request : LossRequest
        Of mode published.
    """
    asked = list(FIGURES[name](districts))
    drawn = []
    for one, finding in zip(asked, examine_all([a.series for a in asked], request), strict=True):
        law = one.series.law
        known = finding if law is None else replace(finding, known=known_loss(law, request.percentile))
        drawn.append(Drawn(name, one.epsilon, one.printed, known))
    return drawn


def _sa1(districts: Districts) -> Iterator[_AskedFigure]:
    exact = districts.counts.sum(axis=1).astype(np.float64)
    noisy = exact + noise(generator_of_the_figures(), _EPSILON, exact.size)
    yield _AskedFigure(Series("counts of districts with geometric noise", exact, noisy, _law(_EPSILON)), _EPSILON, None)


def _sa2(_: Districts) -> Iterator[_AskedFigure]:
    for epsilon, printed in ((_EPSILON, 0.18), (0.05, 0.043)):
        drawn = noise(generator_of_the_figures(), epsilon, DISTRICTS).astype(np.float64)
        series = Series(f"geometric noise of epsilon {epsilon:g}", np.zeros(DISTRICTS), drawn, _law(epsilon))
        yield _AskedFigure(series, epsilon, printed)


def _sa3(districts: Districts) -> Iterator[_AskedFigure]:
    counts, generator = districts.counts, generator_of_the_figures()
    exact = counts.sum(axis=1).astype(np.float64)
    totals = exact + noise(generator, _OF_TOTALS, exact.size)
    strata = _with(counts, noise(generator, _OF_STRATA, counts.size))
    fits = {
        "totals after least squares, as in the code": least_squares(totals, strata, _OF_TOTALS / _OF_STRATA),
        "totals after least absolute deviations, as in the text": least_absolute(strata),
    }
    for (words, fit), printed in zip(fits.items(), (0.54, None), strict=True):
        yield _AskedFigure(Series(words, exact, fit.sum(axis=1)), _OF_TOTALS + _OF_STRATA, printed)


def _sa4(districts: Districts) -> Iterator[_AskedFigure]:
    exact = districts.counts.astype(np.float64)
    strata = _with(districts.counts, noise(generator_of_the_figures(), _EPSILON, exact.size))
    ways = {
        "strata after a penalty on the county's total, as in the code": (_PENALTY, 2.3),
        "strata with the county's total kept, as in the text": (math.inf, None),
    }
    for words, (weight, printed) in ways.items():
        fit = np.empty_like(strata)
        for county in np.unique(districts.county):
            inside = districts.county == county
            total = np.array([exact[inside].sum()])
            fit[inside] = least_squares(total, strata[inside].reshape(1, -1), weight).reshape(-1, strata.shape[1])
        yield _AskedFigure(Series(words, exact.ravel(), fit.ravel()), _EPSILON, printed)
    clipped = np.maximum(strata, 0.0)
    yield _AskedFigure(
        Series("strata without negative counts, and no total", exact.ravel(), clipped.ravel()), _EPSILON, None
    )


FIGURES: Final[Mapping[str, Callable[[Districts], Iterator[_AskedFigure]]]] = {
    "SA1": _sa1,
    "SA2": _sa2,
    "SA3": _sa3,
    "SA4": _sa4,
}


WORDS: Final[Mapping[str, str]] = {
    "SA1": "Noise of epsilon 0.25 on the total of every district. The printed figure gives no number; the EPL of this "
    "noise is that of Figure SA2.",
    "SA2": "Noise alone: the difference of two geometric draws whose success probability is epsilon / 2, so a step of "
    "one count loses -log(1 - epsilon / 2): 0.1335 at epsilon 0.25, 0.0253 at 0.05. The captions print 0.18, the text "
    "0.043.",
    "SA3": "Totals with epsilon 0.25 and strata with 0.75. The code minimises 0.25 (sum - total)^2 + 0.75 sum (x - "
    "stratum)^2 over x >= 0; the text says absolute differences, under which the noisy total is never used.",
    "SA4": "Strata with epsilon 0.25. The code has no invariant: it minimises 100 (sum - total)^2 + sum (x - "
    "stratum)^2 over x >= 0, county by county; the text says that the total is kept. The third series shows what "
    "x >= 0 does alone.",
}
"""What a figure is of, and where the code differs from the text."""


def _with(counts: Ints, drawn: Ints) -> Floats:
    return (counts + drawn.reshape(counts.shape)).astype(np.float64)


def _law(epsilon: float) -> TwoSidedGeometric:
    """The law of the paper's noise, P(k) proportional to (1 - epsilon / 2)^|k|."""
    return TwoSidedGeometric(Fraction(-1 / math.log1p(-epsilon / 2)))
