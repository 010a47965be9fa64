"""A district plan held against a release and its noisy measurements: are the true populations balanced? Public.

See docs/districts.md.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Final, Literal

import numpy as np
from scipy import special

from yupana.arrays import Flags, Floats, Ints
from yupana.errors import ConfigError, InputError
from yupana.estimate.areas.least_squares import law_of_areas
from yupana.estimate.areas.released import released_blocks
from yupana.estimate.intervals.query import Linear, evaluate, parse
from yupana.estimate.intervals.selections import Counted, Levels, counted_in
from yupana.estimate.intervals.tree import open_tree
from yupana.estimate.results import DistrictEstimates
from yupana.files.delimited import DelimitedFile, open_delimited, positions
from yupana.geography.kinds import BLOCK_WIDTH, block_codes, block_column
from yupana.geography.spine_files import WrittenSpine
from yupana.geography.tree import Members, partition
from yupana.products.gate import open_release
from yupana.release.release import ReleaseFolder
from yupana.topdown.plan import DEFAULT_CONFIDENCE

_DISTRICT: Final = "district"
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True, eq=False)
class DistrictPlan:
    """Which district each block of a spine lies in.

    Attributes
    ----------
    districts : tuple of str
        By number, and those that are no numbers before them.
    members : Members
        Every block of the spine in one district.
    beyond : int
        How many of its blocks the release has and the spine leaves out.
    """

    districts: tuple[str, ...]
    members: Members
    beyond: int


def read_plan(path: Path, spine: WrittenSpine, others: Callable[[], Ints]) -> DistrictPlan:
    """Read a plan for the blocks of a spine.

    Parameters
    ----------
    path : Path
        CSV or Parquet. The blocks' column is `block` or one of the Bureau's names, of 15 or 16 digits, or as the spine
        has them where its codes are no digits; the other column, or `district` among several, is the district.
    spine : WrittenSpine
    others : callable
        Gives more blocks, in order, that the release has and its spine leaves out: nobody lives there, and a plan may
        have them or not. Asked if the plan has blocks that the spine does not.

    Raises
    ------
    InputError
        Naming all that is wrong: columns, blocks that are unknown, listed twice, left out or in no district, and a
        plan of a single district.
    """
    with open_delimited(path, (), others=True) as file:
        column, other = _columns(file)
        districts = file.texts(other, nines=True)
        given = _listed(file, column, spine)
    at, left_out = given.places, ~given.on_spine
    if left_out.any() and not spine.names:
        left_out &= positions(given.codes, others()) < 0
    counted = np.bincount(at[given.on_spine], minlength=len(spine.block))
    outside = (at < 0) & ~left_out
    again = outside & _repeated(given.codes)
    faults = [
        *_fault("not in the release", map(given.name, np.flatnonzero(left_out).tolist())),
        *_fault("listed twice", map(spine.block_label, np.flatnonzero(counted > 1).tolist())),
        *_fault("listed twice", map(given.name, np.flatnonzero(again).tolist())),
        *_fault("left out", map(spine.block_label, np.flatnonzero(counted == 0).tolist())),
        *_fault("in no district", map(given.name, np.flatnonzero((districts.index < 0) & ~left_out).tolist())),
    ]
    if len(districts.labels) == 1:
        faults.append(f"there is one district alone, {districts.labels[0]}; a plan has several")
    if faults:
        raise InputError("\n  ".join([f"{path} is no plan for the blocks of the release:", *faults]))
    labels = sorted(districts.labels, key=_by_number)
    order = {label: i for i, label in enumerate(labels)}
    of_label = np.array([order[label] for label in districts.labels], dtype=np.int32)
    district = np.empty(len(spine.block), dtype=np.int32)
    district[at[given.on_spine]] = of_label[districts.index[given.on_spine]]
    return DistrictPlan(tuple(labels), partition(district, len(labels)), int(outside.sum()))


@dataclass(frozen=True, slots=True, eq=False)
class _Listed:
    """The blocks of a plan: the place of each on the spine or -1, and codes with what they are called."""

    places: Ints
    codes: Ints
    labels: tuple[str, ...]

    @property
    def on_spine(self) -> Flags:
        return self.places >= 0

    def name(self, row: int) -> str:
        code = int(self.codes[row])
        return f"{code:0{BLOCK_WIDTH}d}" if not self.labels else self.labels[code] if code >= 0 else "no code"


def _listed(file: DelimitedFile, column: str, spine: WrittenSpine) -> _Listed:
    if not spine.names:
        codes = block_codes(file, column)
        order = np.argsort(spine.block)
        found = positions(codes, spine.block[order])
        return _Listed(np.where(found >= 0, order[found], -1), codes, ())
    texts = file.texts(column, nines=True)
    place = {code: i for i, code in enumerate(spine.block_labels())}
    known = np.array([place.get(code, -1) for code in texts.labels] + [-1], dtype=np.int64)
    return _Listed(known[texts.index], texts.index.astype(np.int64), texts.labels)


def _repeated(codes: Ints) -> Flags:
    """Which codes are there more than once."""
    _, place, times = np.unique(codes, return_inverse=True, return_counts=True)
    return np.asarray(times[place] > 1)


def _columns(file: DelimitedFile) -> tuple[str, str]:
    """The columns of blocks and of districts."""
    blocks = block_column(file)
    others = [name for name in file.header if name != blocks]
    named = [name for name in others if name.lower() == _DISTRICT]
    chosen = named if len(named) == 1 else others
    if len(chosen) != 1:
        raise InputError(
            f"{file.path}, line 1: columns {', '.join(file.header)}; a plan has one column of blocks, and one of "
            f"districts, called {_DISTRICT} if there are others"
        )
    return blocks, chosen[0]


def _fault(words: str, blocks: Iterable[str]) -> list[str]:
    """How many blocks have a fault, and the first few; nothing of none."""
    found = list(dict.fromkeys(blocks))
    if not found:
        return []
    more = ", ..." if len(found) > _SHOWN else ""
    number = f"{len(found):,} block{'s are' if len(found) > 1 else ' is'}"
    return [f"{number} {words}: {', '.join(found[:_SHOWN])}{more}"]


def _by_number(label: str) -> tuple[int, str]:
    return (int(label), label) if label.isdecimal() and len(label) < _DIGITS else (0, label)


_DIGITS: Final = 19


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
    rule : Rule
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
    """The linear forms that a rule bounds: what they are worth, and how they and the sum of all districts err.

    Attributes
    ----------
    value, variance, with_total : ndarray of float64, shape (forms,)
        The last is the covariance with the sum.
    total, total_variance : float
    districts : int
    """

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
    rule : Rule
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
    rule : Rule
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
    rule : Rule
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
) -> DistrictEstimates:
    """Estimate the populations of districts with their joint law, and tell whether the true ones are balanced.

    Parameters
    ----------
    release, plan, noisy : Path
        A release of TopDown, a file of its blocks and their districts, and the noisy measurements of the same run.
    rule : Rule
    tolerance : Fraction, optional
        Above 0, in shares of the ideal; that of `TOLERANCES` if not given.
    level : Fraction
        The chance that a tightened tolerance keeps, above 1/2.
    query : str
        What is counted: an attribute's level, a variable of the tables, or sums and differences of these.
    confidence : Fraction, optional
        Of the intervals; that of the release's margins of error if not given.

    Raises
    ------
    ConfigError
        If the query is faulty, or names what is not there, the measurements do not determine it, or an option is none.
    InputError, OutputError
        If the plan is none for the blocks of the release, or release or measurements are not what they should be.
    """
    if level <= Fraction(1, 2):
        raise ConfigError(f"--chance {float(level):g}: a tightened rule is for a chance above 1/2")
    opened = open_release(release)
    measurements = open_tree(opened, noisy)
    counted = _counted(query, counted_in(measurements.schema))
    assigned = read_plan(plan, measurements.spine, lambda: _published(opened))
    law = law_of_areas(measurements, assigned.members, counted)
    if min(law.estimate.sum(), law.published.sum()) <= 0:
        raise ConfigError(f"--query {query!r}: the districts have nobody of it together, so there is no balance")
    bound = TOLERANCES[rule] if tolerance is None else tolerance
    sure = confidence or opened.confidence or DEFAULT_CONFIDENCE
    return DistrictEstimates(
        opened.name,
        str(opened.manifest.get("status")),
        query,
        assigned.districts,
        law.published,
        law.estimate,
        law.covariance,
        sure,
        NormalDist().inv_cdf(float((1 + sure) / 2)),
        rule,
        bound,
        level,
        {"published": float(departure(rule, law.published)), "estimated": float(departure(rule, law.estimate))},
        chance_of(rule, float(bound), law.estimate, law.covariance),
        tightened(rule, float(bound), float(level), law.published, law.estimate, law.covariance),
        (*measurements.notes, *_NOTES, *_beyond(assigned)),
    )


def _published(release: ReleaseFolder) -> Ints:
    """The blocks that a release has, in order, whether its spine has them or not."""
    published = released_blocks(release)
    return np.zeros(0, dtype=np.int64) if published is None else published.block


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
