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
    """How the intervals of a release are made."""

    method: IntervalMethod
    confidence: Fraction  # of each interval alone
    replicates: int = REPLICATES  # of Monte Carlo

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


def no_intervals(answers: int, takes: int = 0, memory: int | None = None) -> str | None:
    """Why a run that names no method makes none, as it is remarked of its release; None if it makes them.

    Parameters
    ----------
    answers : int
        Noisy answers that the plan has.
    takes : int
        Bytes that least squares takes.
    memory : int, optional
        Bytes that the run may take.
    """
    on_demand = "they are made on demand; `yupana topdown intervals RELEASE OUT` makes them"
    if answers > MOST_ANSWERS:
        return f"{NO_INTERVALS}: the plan has {answers:,} noisy answers, and above {MOST_ANSWERS:,} {on_demand}"
    if memory is not None and memory < takes:
        have = f"they take {-(-takes // 10**6):,} MB, and with {memory // 10**6:,} MB"
        return f"{NO_INTERVALS}: {have} {on_demand}"
    return None


def tells_measured(method: IntervalMethod, answers: int) -> bool:
    """Whether full information tells intervals of what it measured, too, in files that grow with its answers."""
    return method != "none" or answers <= MOST_ANSWERS


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
    """The method where none is named, by how many noisy answers there are (docs/topdown-intervals.md)."""
    return "least-squares" if no_intervals(answers) is None else "none"
