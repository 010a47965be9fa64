"""A district plan held against a release and its noisy measurements. Public; docs/districts.md."""

from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Final

import numpy as np

from yupana.arrays import Ints
from yupana.errors import ConfigError
from yupana.estimate.areas.released_areas import released_blocks
from yupana.estimate.districts.balance import Rule, chance_of, departure, tightened
from yupana.estimate.districts.plan_file import DistrictPlan, read_plan
from yupana.estimate.intervals.area_covariance import law_of_areas
from yupana.estimate.intervals.counted import Counted, Levels, counted_in
from yupana.estimate.intervals.forms import Linear, evaluate
from yupana.estimate.intervals.query import Selection, parse
from yupana.estimate.intervals.tree import open_tree
from yupana.estimate.results import DistrictEstimates
from yupana.products.gate import open_release
from yupana.release.release import ReleaseFolder
from yupana.topdown.plan import DEFAULT_CONFIDENCE

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

    def select(selection: Selection) -> Linear:
        return Linear(Fraction(0), dict.fromkeys(words.of(selection), Fraction(1)))

    try:
        form = evaluate(parse(query), select)
    except ConfigError as error:
        raise ConfigError(f"--query {query!r}: {error}") from None
    if not isinstance(form, Linear) or form.constant or form.is_constant:
        raise ConfigError(f"--query {query!r}: of districts only sums and differences of counts can be asked for")
    return {cell: weight for cell, weight in form.weights.items() if isinstance(cell, tuple)}
