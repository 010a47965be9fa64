"""Which intervals published counts get: how they are found, with what confidence, and up to which size. Public."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, get_args

from yupana.errors import ConfigError

IntervalMethod = Literal["none", "least-squares", "monte-carlo"]
INTERVAL_METHODS: Final[tuple[IntervalMethod, ...]] = get_args(IntervalMethod)

REPLICATES: Final = 25
"""So many suffice (Ashmead et al. 2024, who tried 25, 50, 75 and 100)."""

LEAST_REPLICATES: Final = 2
"""Fewer do not tell bias from spread."""

MOST_ANSWERS: Final = 500_000_000
"""The noisy answers of a plan up to which least squares is the default: it draws and keeps all of them."""


@dataclass(frozen=True, slots=True)
class IntervalTerms:
    """How the intervals of a release are made.

    Attributes
    ----------
    method : "none", "least-squares" or "monte-carlo"
    confidence : Fraction
        Of each interval alone.
    replicates : int
        Of Monte Carlo.
    """

    method: IntervalMethod
    confidence: Fraction
    replicates: int = REPLICATES

    @property
    def options(self) -> dict[str, str]:
        """The options that ask for them, for a manifest."""
        of_method = {"replicates": str(self.replicates)} if self.method == "monte-carlo" else {}
        return {"intervals": self.method, **of_method}

    def as_json(self) -> dict[str, Any]:
        """Describe them, for a manifest."""
        if self.method == "none":
            return {"method": self.method}
        of_method = {"replicates": self.replicates} if self.method == "monte-carlo" else {}
        return {"method": self.method, "confidence": str(self.confidence), **of_method}


NO_INTERVALS: Final = "counts have no intervals"


def no_intervals(answers: int) -> str:
    """What is remarked of a release of a plan that is too large for them to be the default."""
    return (
        f"{NO_INTERVALS}: the plan has {answers:,} noisy answers, and above {MOST_ANSWERS:,} they are made on demand; "
        "`yupana topdown intervals RELEASE OUT` makes them"
    )


def check_terms(method: IntervalMethod | None, replicates: int | None) -> None:
    """Refuse methods that there are not, and numbers of replicates that mean nothing.

    Raises
    ------
    ConfigError
        If there are fewer than two replicates, or the intervals are not those of Monte Carlo.
    """
    if method is not None and method not in INTERVAL_METHODS:
        raise ConfigError(f"intervals: must be {' or '.join(map(repr, INTERVAL_METHODS))}")
    if replicates is None:
        return
    if method != "monte-carlo":
        raise ConfigError("--replicates: only intervals by Monte Carlo have replicates; add --intervals monte-carlo")
    if replicates < LEAST_REPLICATES:
        raise ConfigError(
            f"--replicates {replicates}: an interval takes {LEAST_REPLICATES} replicates or more, for fewer do not "
            "tell bias from spread"
        )


def default_method(answers: int) -> IntervalMethod:
    """The method of a run that names none, by how many noisy answers its plan has (docs/topdown-intervals.md)."""
    return "least-squares" if answers <= MOST_ANSWERS else "none"
