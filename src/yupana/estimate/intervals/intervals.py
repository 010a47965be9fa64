"""Intervals for sums, differences, ratios and percentages of published cells. Public; docs/intervals.md."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from yupana.arrays import Floats
from yupana.errors import ConfigError
from yupana.estimate.intervals.query import Form, Linear, Selection, evaluate, parse, shown

INFINITY: Final = math.inf


Pieces = tuple[tuple[float, float], ...]
"""Closed intervals from left to right; ends may be infinite."""


def fieller(n: float, d: float, vn: float, vd: float, c: float, z: float) -> Pieces:
    """Which ratios the estimates do not contradict: all r with (n - r d)² at most z² Var(n - r d).

    Parameters
    ----------
    n, d, vn, vd, c : float
        Two normal estimates with their true variances and covariance. A variance may be 0, but d and vd not both.
    z : float
        The two-sided quantile of the confidence.

    Returns
    -------
    Pieces
        An interval where d differs from 0 by more than z standard deviations; otherwise two rays, a ray, or the whole
        line: then the measurements do not tell the denominator from 0, and no bounded set could have the confidence.

    Notes
    -----
    E. C. Fieller, Some problems in interval estimation, J. R. Stat. Soc. B 16 (1954). For the true ratio r, n - r d is
    normal with mean 0, so the set holds r with exactly the confidence, whatever d is. Errors are those of rounding:
    the roots are taken so that nothing cancels.
    """
    leading, middle, last = d * d - z * z * vd, n * d - z * z * c, n * n - z * z * vn
    # middle² - leading last, without the terms that cancel in it.
    squared = z * z * (vd * n * n - 2 * c * n * d + vn * d * d - z * z * (vn * vd - c * c))
    if leading == 0:
        return _ray(middle, last)
    if squared <= 0:
        # A single point with a positive leading term: n and d are known without error.
        return ((middle / leading, middle / leading),) if leading > 0 else ((-INFINITY, INFINITY),)
    larger = middle + math.copysign(math.sqrt(squared), middle)
    low, high = sorted((larger / leading, last / larger))
    return ((low, high),) if leading > 0 else ((-INFINITY, low), (high, INFINITY))


def _ray(middle: float, last: float) -> Pieces:
    if middle > 0:
        return ((last / (2 * middle), INFINITY),)
    return ((-INFINITY, last / (2 * middle)),) if middle < 0 else ((-INFINITY, INFINITY),)


class IntervalEvidence(Protocol):
    """What a release tells of its cells."""

    @property
    def rule(self) -> str:
        """How variances of sums are found, in words."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What an interval covers and what not."""
        ...

    def select(self, selection: Selection) -> Linear:
        """Find rows, and write their sum in cells whose covariance is known."""
        ...

    def moments(self, forms: Sequence[Linear]) -> tuple[Floats, Floats]:
        """Estimates of forms, of shape (forms,), and their covariance, of shape (forms, forms)."""
        ...


@dataclass(frozen=True, slots=True)
class Interval:
    """The answer to a query.

    Attributes
    ----------
    query : str
    estimate : float or None
        None for a ratio whose denominator is estimated as 0.
    variance : float or None
        None for a ratio: it has none, as its denominator may be 0.
    pieces : Pieces
        The confidence set. More than one piece or an infinite end only for ratios.
    cells : int
        How many cells the query came to.
    method : str
    """

    query: str
    estimate: float | None
    variance: float | None
    pieces: Pieces
    cells: int
    method: str

    @property
    def is_bounded(self) -> bool:
        """Whether the set is one interval with two ends."""
        return len(self.pieces) == 1 and all(map(math.isfinite, self.pieces[0]))

    @property
    def standard_error(self) -> float | None:
        """Of the estimate; None where there is no variance."""
        return None if self.variance is None else math.sqrt(self.variance)

    def as_json(self) -> dict[str, Any]:
        """Describe it; an infinite end is null."""
        pieces = [[end if math.isfinite(end) else None for end in piece] for piece in self.pieces]
        lower, upper = pieces[0] if self.is_bounded else (None, None)
        return {
            "query": self.query,
            "estimate": self.estimate,
            "variance": self.variance,
            "standard_error": self.standard_error,
            "lower": lower,
            "upper": upper,
            "set": pieces,
            "bounded": self.is_bounded,
            "cells": self.cells,
            "method": self.method,
        }


def interval(query: str, evidence: IntervalEvidence, z: float) -> Interval:
    """Answer a query.

    Parameters
    ----------
    query : str
        In the language of `intervals_query`.
    z : float
        The two-sided normal quantile of the confidence.

    Raises
    ------
    ConfigError
        If the query is not of the language, names what is not there, or no exact interval is known for it.
    OutputError
        If the release does not hold together.
    """
    try:
        form = evaluate(parse(query), evidence.select)
        return _answer(query, form, evidence, z)
    except ConfigError as error:
        raise ConfigError(f"--query {shown(query)!r}: {error}") from None


def _answer(query: str, form: Form, evidence: IntervalEvidence, z: float) -> Interval:
    forms = (form,) if isinstance(form, Linear) else (form.above, form.below)
    if isinstance(form, Linear) and form.is_constant:
        raise ConfigError("no cell is left in it: the cells cancel, or it names none")
    factor = None if isinstance(form, Linear) else form.above.multiple_of(form.below)
    if factor is not None:
        return interval_of_multiple(query, float(factor))
    cells = len({cell for of in forms for cell in of.weights})
    return interval_of(query, *evidence.moments(forms), z, cells, evidence.rule)


def interval_of_multiple(query: str, factor: float) -> Interval:
    """The interval of a ratio whose numerator is the denominator times a number: that number, without error."""
    return Interval(query, factor, 0.0, ((factor, factor),), 0, "numerator and denominator are multiples")


def interval_of(query: str, values: Floats, covariance: Floats, z: float, cells: int, rule: str) -> Interval:
    """The normal interval of one estimate, or Fieller's confidence set of the ratio of two, with their covariance.

    Raises
    ------
    ConfigError
        If the denominator is known to be 0.
    """
    above, *below = values.tolist()
    variance = float(covariance[0, 0])
    if not below:
        reach = z * math.sqrt(max(variance, 0.0))
        return Interval(query, above, variance, ((above - reach, above + reach),), cells, rule)
    if below[0] == 0 and covariance[1, 1] == 0:
        raise ConfigError("the denominator is known to be 0")
    pieces = fieller(above, below[0], variance, float(covariance[1, 1]), float(covariance[0, 1]), z)
    estimate = above / below[0] if below[0] else None
    return Interval(query, estimate, None, pieces, cells, f"Fieller's confidence set; {rule}")
