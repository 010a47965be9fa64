"""Figures SA1 to SA4 of the paper (Flaxman and Petti 2020), made as the authors do, of districts read or made up.

Where the code and the text of the paper differ, the text's mechanism stands beside the code's (docs/audits.md). The
noise is that of the paper, from its generator and seed, and protects nobody.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from yupana.arrays import Floats, Ints
from yupana.audit.empirical.kernel_density import DISTRICTS, generator_of_the_figures, noise
from yupana.audit.empirical.local_likelihood import known_loss
from yupana.audit.empirical.loss import LossFinding, LossRequest, examine_all
from yupana.audit.empirical.series import Series, least_absolute, least_squares
from yupana.confidential.audit_counts import column_names, read_counts, read_strata
from yupana.errors import InputError
from yupana.privacy.laws import TwoSidedGeometric

_KEYS: Final = ("state", "county", "enum_dist", "age", "race", "eth")
COLUMNS: Final = (*_KEYS, "count")
"""Of a file of enumeration districts: one row for every district and stratum with people."""

_CELLS: Final = 20_000_000
"""Counts of a file, at most: a state of 1940 has 64,000."""

WANTED: Final = (
    "The printed figure is of Washington State in 1940: 2,663 enumeration districts of 39 counties, 24 strata each. "
    f"Such counts are read by --data FILE, with the columns {', '.join(COLUMNS)}, one row for every district and "
    "stratum with people; the authors counted them from the complete census of 1940 that IPUMS holds. A file of P.L. "
    "94-171 by block is read, too, and its block groups stand for districts."
)


@dataclass(frozen=True, slots=True, eq=False)
class Districts:
    """People of every district by stratum."""

    counts: Ints  # shape (districts, strata)
    county: Ints  # shape (districts,): a number for each county, the same for all of its districts
    words: str  # what these districts are


def read_districts(path: Path) -> Districts:
    """Read enumeration districts of one state (`COLUMNS`), or blocks of one county (`read_strata`).

    Strata are all combinations of the ages, races and ethnicities that occur; districts and strata are in the order of
    their numbers, as the authors' code has them, so that its noise falls on the same counts.

    Raises
    ------
    InputError
        If columns are missing, a number is not whole or is negative, or the rows are of several states.
    """
    if "enum_dist" not in column_names(path):
        groups = read_strata(path)["Block_Group"]
        words = f"{len(groups):,} block groups of {path.name}, all of one county"
        return Districts(groups, np.zeros(len(groups), dtype=np.int64), words)
    state, county, district, *strata, count = read_counts(path, COLUMNS)
    if not state.size or (state != state[0]).any():
        raise InputError(
            f"{path}: the districts must be of one state, and at least one; the figure's is Washington, 53"
        )
    places, row = np.unique(np.stack([county, district]), axis=1, return_inverse=True)
    column = np.zeros(len(count), dtype=np.int64)
    number = 1
    for codes in strata:
        known, code = np.unique(codes, return_inverse=True)
        column, number = column * len(known) + code, number * len(known)
    if places.shape[1] * number > _CELLS:
        raise InputError(f"{path}: more than {_CELLS:,} counts of districts by stratum; age is 17 or 18, as in 1940")
    counts = np.zeros((places.shape[1], number), dtype=np.int64)
    np.add.at(counts, (row.ravel(), column), count)
    words = f"{len(counts):,} districts of {len(np.unique(places[0])):,} counties of {path.name}"
    return Districts(counts, places[0], words)


_COUNTIES: Final = 39
_STRATA: Final = 24
_PEOPLE: Final = 652
"""Of a district on average: 1,736,191 people of Washington in 1940, over its districts."""

_SPREAD: Final = 0.687
"""Standard deviation of the logarithm of a district's people: that of a lognormal law with the ratio of standard
deviation and mean, 762.7 / 981.8, that enumeration districts of all states have (results_dp_counts.json)."""

_ADULTS: Final = 0.72
_OCCUPIED: Final = (9869 / DISTRICTS - 2) / (_STRATA - 2)
"""Share of the strata with people beyond the two that every district has: 9,869 in all have people."""

_FEW: Final = 8.4
"""People of such a stratum on average: those who were not White, over these strata."""


def made_up_districts(seed: int = 1940) -> Districts:
    """People invented to stand for Washington in 1940, by what is published of it."""
    generator = np.random.default_rng(seed)
    people = np.ceil(generator.lognormal(np.log(_PEOPLE) - _SPREAD**2 / 2, _SPREAD, DISTRICTS)).astype(np.int64)
    shape = (DISTRICTS, _STRATA - 2)
    others = np.where(generator.random(shape) < _OCCUPIED, generator.geometric(1 / _FEW, shape), 0)
    adults = generator.binomial(people, _ADULTS)
    weights = 1 / np.arange(1, _COUNTIES + 1)
    county = np.sort(generator.choice(_COUNTIES, DISTRICTS, p=weights / weights.sum()))
    words = (
        f"{DISTRICTS:,} made-up districts of {_COUNTIES} counties, with about as many people and as many strata "
        "without any as Washington had in 1940"
    )
    return Districts(np.column_stack([people - adults, adults, others]), county, words)


_EPSILON: Final = 0.25
_OF_TOTALS, _OF_STRATA = 0.25, 0.75
_PENALTY: Final = 100.0
"""SA4: what the square of a county's excess costs where that of a stratum costs one."""


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """One series of a figure, and the number printed for it."""

    figure: str
    epsilon: float  # as the paper counts it: twice the loss of a step, nearly
    printed: float | None  # the EPL that the paper gives; None where it gives none for this mechanism
    finding: LossFinding  # by the published estimate

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


_AskedFigure: TypeAlias = tuple[Series, float, float | None]
"""A series with its epsilon and the number printed."""


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
    series, epsilons, printed = zip(*FIGURES[name](districts), strict=True)
    drawn = []
    for finding, epsilon, number in zip(examine_all(list(series), request), epsilons, printed, strict=True):
        law = finding.series.law
        known = finding if law is None else replace(finding, known=known_loss(law, request.percentile))
        drawn.append(Drawn(name, epsilon, number, known))
    return drawn


def _sa1(districts: Districts) -> Iterator[_AskedFigure]:
    exact = districts.counts.sum(axis=1).astype(np.float64)
    noisy = exact + noise(generator_of_the_figures(), _EPSILON, exact.size)
    yield Series("counts of districts with geometric noise", exact, noisy, _law(_EPSILON)), _EPSILON, None


def _sa2(_: Districts) -> Iterator[_AskedFigure]:
    for epsilon, printed in ((_EPSILON, 0.18), (0.05, 0.043)):
        drawn = noise(generator_of_the_figures(), epsilon, DISTRICTS).astype(np.float64)
        series = Series(f"geometric noise of epsilon {epsilon:g}", np.zeros(DISTRICTS), drawn, _law(epsilon))
        yield series, epsilon, printed


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
        yield Series(words, exact, fit.sum(axis=1)), _OF_TOTALS + _OF_STRATA, printed


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
        yield Series(words, exact.ravel(), fit.ravel()), _EPSILON, printed
    clipped = np.maximum(strata, 0.0)
    yield Series("strata without negative counts, and no total", exact.ravel(), clipped.ravel()), _EPSILON, None


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
