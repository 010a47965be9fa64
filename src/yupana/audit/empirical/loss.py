"""Empirical privacy loss of a series of counts, or of a mechanism, in either mode."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from yupana.arrays import Floats
from yupana.audit.empirical import kernel_density as published
from yupana.audit.empirical import local_likelihood as sound
from yupana.audit.empirical.kernel_density import DISTRICTS, Curve, published_curve
from yupana.audit.empirical.local_likelihood import LossEstimate, estimate_loss, known_loss, repeated_loss
from yupana.audit.empirical.series import Residuals, Series, checked
from yupana.errors import ConfigError, InputError, YupanaError
from yupana.privacy.entropy import Entropy
from yupana.privacy.laws import DiscreteGaussian, Law, TwoSidedGeometric
from yupana.privacy.sampler import sample

Mode = Literal["sound", "published"]

_ALARM: Final = 1e-6
"""Probability below which residuals are said not to follow a law."""

_DUE: Final = 20


@dataclass(frozen=True, slots=True)
class LossRequest:
    """How losses are to be estimated."""

    mode: Mode = "sound"
    bandwidth: float | None = None  # multiple of the standard deviation of the residuals
    percentile: float = published.PERCENTILE  # of the range
    replicates: int = published.REPLICATES
    confidence: float = sound.CONFIDENCE

    def __post_init__(self) -> None:
        if self.bandwidth is not None and not 0 < self.bandwidth < math.inf:
            raise ConfigError("the bandwidth must be a number above zero: with none, every residual is a spike")
        if not 50 < self.percentile < 100:
            raise ConfigError("the range must end at a percentile between 50 and 100")
        if not 0 < self.confidence < 1:
            raise ConfigError(f"confidence: {self.confidence} does not lie strictly between 0 and 1")
        if self.replicates < 0:
            raise ConfigError("replicates: must be a whole number, zero or more")

    @property
    def factor(self) -> float:
        """The bandwidth given, or that of the mode."""
        default = published.BANDWIDTH if self.mode == "published" else sound.BANDWIDTH
        return default if self.bandwidth is None else self.bandwidth


@dataclass(frozen=True, slots=True)
class Replicates:
    """The estimate over repetitions: its mean, and the 2.5th and 97.5th percentiles."""

    number: int
    what: str  # what was repeated: "fresh noise", or "resampled counts"
    mean: float
    lower: float
    upper: float

    def as_json(self) -> dict[str, Any]:
        """With the names of the attributes; an end that is not finite is None."""
        ends = {name: getattr(self, name) for name in ("mean", "lower", "upper")}
        return {
            "number": self.number,
            "what": self.what,
            **{name: value if math.isfinite(value) else None for name, value in ends.items()},
        }


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LossFinding:
    """What was found of one series. Confidential: it follows from true counts.

    Attributes
    ----------
    series : Series
    request : LossRequest
    residuals : Residuals or None
        None where there are too few.
    known : LossEstimate or None
        By the law of the noise, where it is known.
    estimate : LossEstimate or None
        In sound mode.
    curve : Curve or None
        In published mode.
    replicates : Replicates or None
    problem : str
        Why nothing could be estimated; empty if it could.
    """

    series: Series
    request: LossRequest
    residuals: Residuals | None
    known: LossEstimate | None = None
    estimate: LossEstimate | None = None
    curve: Curve | None = None
    replicates: Replicates | None = None
    problem: str = ""

    def __repr__(self) -> str:
        found = self.problem if self.loss is None else f"epsilon {self.loss:.4g}"
        return f"<{self.series.name}: {found}; confidential>"

    @property
    def loss(self) -> float | None:
        """The EPL in the mode asked for; by the law where it is known and the mode is sound."""
        if self.curve is not None:
            return self.curve.largest
        best = self.known or self.estimate
        return None if best is None else best.loss

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must know."""
        # Where the law is known, the loss is not estimated.
        words = list(self.estimate.warnings) if self.estimate is not None and self.known is None else []
        if self.request.mode == "published" and self.loss is not None:
            words.append(
                "the published estimate is the largest value of a noisy curve: it depends on the bandwidth and the "
                "range, and is no bound in either direction; --mode sound has an interval"
            )
        if self.residuals is not None and self.series.law is not None:
            p = follows(self.residuals, self.series.law)
            if p < _ALARM:
                words.append(
                    f"the residuals do not follow the law of the noise (chi-square, p = {p:.1g}), so its loss is not "
                    "theirs; either the law or the pairing of the counts is wrong"
                )
        if self.series.left_out:
            words.append(
                f"{self.series.left_out:,} noisy counts without an exact one were left out; noise decided which, so "
                "the residuals of the others are no fair sample of it"
            )
        return tuple(words)

    def as_json(self) -> dict[str, Any]:
        """The loss with all that belongs to it."""
        loss = self.loss
        answer: dict[str, Any] = {
            "name": self.series.name,
            "mode": self.request.mode,
            "epl": loss if loss is not None and math.isfinite(loss) else None,
            "bandwidth_factor": self.request.factor,
            "range_percentile": self.request.percentile,
        }
        if self.known is not None:
            answer["known"] = {**self.known.as_json(), "law": describe(self.series.law)}
        if self.estimate is not None:
            answer["estimate"] = self.estimate.as_json()
        if self.curve is not None:
            answer["bandwidth"] = self.curve.bandwidth
        if self.replicates is not None:
            answer["replicates"] = self.replicates.as_json()
        if self.residuals is not None:
            answer["residuals"] = self.residuals.number
        return answer | {"problem": self.problem or None, "warnings": list(self.warnings)}


COLUMNS: Final[Mapping[str, tuple[str, Callable[[LossFinding], object]]]] = {
    "series": ("VARCHAR", lambda finding: finding.series.name),
    "loss": ("DOUBLE", lambda finding: finding.loss),
    "counts": ("BIGINT", lambda finding: len(finding.series.noisy)),
    "problem": ("VARCHAR", lambda finding: finding.problem or None),
    "warnings": ("VARCHAR", lambda finding: "; ".join(finding.warnings) or None),
}
"""Findings as a table."""


def examine(series: Series, request: LossRequest) -> LossFinding:
    """Estimate the loss of one series.

    Raises
    ------
    InputError
        If nothing can be estimated, and the law is not known.
    """
    known = known_loss(series.law, request.percentile) if series.law is not None and request.mode == "sound" else None
    try:
        residuals = series.residuals()
        if request.mode == "sound":
            estimate = estimate_loss(residuals, request.factor, request.percentile, request.confidence)
            return LossFinding(series, request, residuals, known, estimate)
        curve = published_curve(residuals, request.factor, request.percentile)
    except InputError as error:
        if known is None:
            raise
        return LossFinding(series, request, None, known, problem=str(error))
    return LossFinding(series, request, residuals, curve=curve, replicates=_resampled(residuals, request))


def examine_all(series: Sequence[Series], request: LossRequest) -> list[LossFinding]:
    """Estimate the losses of many series; of those that do not allow it, say why.

    Raises
    ------
    InputError
        If nothing can be said of any.
    """
    found = []
    for one in series:
        try:
            found.append(examine(one, request))
        except InputError as error:
            found.append(LossFinding(one, request, None, problem=str(error)))
    if all(finding.loss is None for finding in found):
        raise InputError("\n".join(["no loss could be estimated:", *(f"  {f.problem}" for f in found[:5])]))
    return found


def examine_mechanism(law: Law, request: LossRequest, entropy: Entropy, number: int = DISTRICTS) -> LossFinding:
    """Draw noise of a law as often as asked, and estimate its loss each time; the first draw is shown.

    Parameters
    ----------
    number : int
        Counts in each replicate.
    """
    drawn = [sample(law, number, entropy).astype(np.float64) for _ in range(request.replicates)]
    first = examine(Series(describe(law), np.zeros(number), drawn[0], law), request)
    losses = []
    for noise in drawn:
        try:
            losses.append(_loss(checked(noise), request))
        except YupanaError:
            losses.append(math.nan)
    if not np.isfinite(losses).any():
        return first
    return replace(first, replicates=_summary(losses, "fresh noise"))


def describe(law: Law | None) -> str:
    """Name a law with what it is a law of."""
    if isinstance(law, TwoSidedGeometric):
        return f"two-sided geometric, scale {float(law.scale):g}"
    if isinstance(law, DiscreteGaussian):
        return f"discrete Gaussian, sigma2 {float(law.sigma2):g}"
    return "unknown"


def follows(residuals: Residuals, law: Law) -> float:
    """Probability of residuals as unlike a law as these (chi-square over classes of 20 draws or more); 1 if too few.

    Residuals that are no whole numbers have probability zero.
    """
    if not residuals.are_whole:
        return 0.0
    from scipy import stats  # noqa: PLC0415 (half a second, and not every command needs it)

    classes = min(50, residuals.number // _DUE)
    if classes < 2:
        return 1.0
    edges = np.unique([law.quantile(level) for level in np.arange(1, classes) / classes])
    seen = np.bincount(np.searchsorted(edges, residuals.values, side="left"), residuals.times, minlength=edges.size + 1)
    due = np.diff([0.0, *(law.cdf(int(edge)) for edge in edges), 1.0]) * residuals.number
    while due.size > 2 and due[-1] < _DUE / 2:
        seen, due = (np.append(values[:-2], values[-2:].sum()) for values in (seen, due))
    return float(stats.chisquare(seen, due).pvalue)


def _loss(residuals: Residuals, request: LossRequest) -> float:
    if request.mode == "published":
        return published_curve(residuals, request.factor, request.percentile).largest
    return repeated_loss(residuals, request.factor, request.percentile)


def _resampled(residuals: Residuals, request: LossRequest) -> Replicates:
    """The published estimate of counts drawn anew from those given, with replacement."""
    # Resampling, which protects nothing: a fixed seed, so that the same counts give the same interval.
    generator = np.random.default_rng(1)
    shares = residuals.times / residuals.number
    losses = []
    for times in generator.multinomial(residuals.number, shares, size=request.replicates):
        kept = times > 0
        again = Residuals(residuals.values[kept], times[kept].astype(np.float64))
        try:
            losses.append(published_curve(again, request.factor, request.percentile).largest)
        except YupanaError:
            losses.append(math.nan)
    return _summary(losses, "resampled counts")


def _summary(losses: Sequence[float], what: str) -> Replicates:
    finite: Floats = np.array([loss for loss in losses if not math.isnan(loss)])
    if not finite.size:
        return Replicates(len(losses), what, math.nan, math.nan, math.nan)
    lower, upper = np.percentile(finite, [2.5, 97.5])
    return Replicates(finite.size, what, float(finite.mean()), float(lower), float(upper))
