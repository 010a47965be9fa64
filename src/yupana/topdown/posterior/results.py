"""What the posterior of the blocks came to, what it was given, and whether it can be trusted. Public.

A run is refused where its chains have not settled or the prior does not go with the data. By how much the errors of
block totals exceed their posterior deviations is told by the noisy answers alone: the posterior mean m of a total, its
deviation s, and the least squares y of that total from the block's own answers, of variance V, go together by Stein's
identity: the covariance of y and m is V times the slope of m in y, which is s^2 whatever the prior. So
(m - y)^2 - V + 2 s^2 is on average the squared error of m, however wrong the prior is (docs/topdown-posterior.md).
"""

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from scipy.optimize import nnls

from yupana.arrays import Floats, Ints
from yupana.errors import InputError
from yupana.topdown.posterior.learning import Draws, Restricted, Sweeps
from yupana.topdown.posterior.siblings import Prior

MOST_ERROR: Final = 0.35
"""Error of the means of block totals by chance, over their posterior standard deviation, that is still taken."""

MOST_APART: Final = 0.05
"""Share of blocks whose two halves of the chain may differ by more than a standard deviation."""

LEAST_MOVED: Final = 0.01
"""Share of proposals that must be taken."""

MOST_OFF: Final = 0.25
"""By how much the mean square of standardised residuals may differ from 1, beside what chance does."""

_CHANCE: Final = 6.0
"""Standard deviations that are left to chance."""


@dataclass(slots=True)
class Chains:
    """What the chains of many parents tell of themselves."""

    blocks: int = 0  # those that have siblings and a parent with people
    # error, spread: sums over blocks: of the squared error of the mean total by chance, told by the halves of the
    # chain, and of the variance of the total
    error: float = 0.0
    spread: float = 0.0
    apart: int = 0  # blocks whose halves differ by more than a standard deviation
    # made, asked: moves, and people asked to move
    made: int = 0
    asked: int = 0

    def add(self, draws: Draws) -> None:
        """Add those of one parent."""
        totals = draws.totals.astype(np.float64)
        half = len(totals) // 2
        change = totals[:half].mean(axis=0) - totals[half:].mean(axis=0)
        variance = totals.var(axis=0)
        free = variance > 0
        self.blocks += int(free.sum())
        self.error += float((change**2).sum()) / 4.0
        self.spread += float(variance.sum())
        self.apart += int((change[free] ** 2 > variance[free]).sum())
        self.made += int(draws.moves[0])
        self.asked += int(draws.moves[1])

    @property
    def relative_error(self) -> float:
        """Error of the mean totals by chance, over the posterior standard deviation; both root mean squares."""
        return float(np.sqrt(self.error / self.spread)) if self.spread > 0 else 0.0

    @property
    def apart_share(self) -> float:
        """Share of blocks whose halves differ by more than a standard deviation."""
        return self.apart / max(self.blocks, 1)

    @property
    def acceptance(self) -> float:
        """Share of people asked who moved."""
        return self.made / max(self.asked, 1)

    def told(self) -> dict[str, Any]:
        """For a manifest."""
        return {
            "blocks": self.blocks,
            "acceptance": round(self.acceptance, 4),
            "error_of_means": round(self.relative_error, 4),
            "halves_apart": round(self.apart_share, 5),
        }

    def check(self) -> None:
        """Refuse chains that do not move or whose halves disagree; of few blocks more is left to chance.

        Raises
        ------
        InputError
        """
        if self.blocks == 0:
            return
        faults = []
        if self.acceptance < LEAST_MOVED:
            faults.append(f"{self.acceptance:.2%} of the moves were made, and {LEAST_MOVED:.0%} are needed")
        if self.relative_error > MOST_ERROR * (1.0 + _CHANCE / (2.0 * self.blocks) ** 0.5):
            faults.append(
                f"the error of the mean totals is {self.relative_error:.2f} of their standard deviation, and "
                f"{MOST_ERROR} is the most"
            )
        if self.apart_share > MOST_APART + _CHANCE * (MOST_APART / self.blocks) ** 0.5:
            faults.append(
                f"in {self.apart_share:.1%} of the blocks the halves of the chain differ, and {MOST_APART:.0%} may"
            )
        if faults:
            raise InputError(
                f"--estimator posterior: the chains have not settled: {'; '.join(faults)}. "
                "Use --estimator full-information; a run that was measured goes on with it by --resume"
            )


@dataclass(slots=True)
class PriorFit:
    """How well draws go with the answers: under the model the squares below are 1 on average."""

    totals: list[float] = field(default_factory=list)
    cells: float = 0.0
    of_cells: int = 0

    def add(self, last: Ints, found: Restricted) -> None:
        """Add one parent: residuals of the last draw, of shape (k, m), by the precision of what was measured."""
        for number, covariance in enumerate(found.covariance):
            here = found.profile == number
            if not here.any():
                continue
            residual = found.estimate[here] - last[here]
            self.totals += (residual.sum(axis=1) ** 2 / covariance.sum()).tolist()
            self.cells += float(np.einsum("ki,ki->", residual, np.linalg.solve(covariance, residual.T).T))
            self.of_cells += residual.size

    @property
    def mean_total(self) -> float:
        """Mean square of the standardised totals."""
        return float(np.mean(self.totals)) if self.totals else 1.0

    @property
    def mean_cell(self) -> float:
        """Mean square of the standardised cells."""
        return self.cells / self.of_cells if self.of_cells else 1.0

    def told(self) -> dict[str, Any]:
        """For a manifest."""
        return {
            "blocks": len(self.totals),
            "squares_of_totals": round(self.mean_total, 3),
            "squares_of_cells": round(self.mean_cell, 3),
            "largest_of_totals": round(float(max(self.totals, default=0.0)) ** 0.5, 2),
        }

    def check(self) -> None:
        """Refuse a prior that the data contradict.

        Under the model a draw of the posterior differs from what was measured as the truth does, so mean squares are 1
        and single ones have the law chi-squared. A run whose model is right is refused with a chance below 1e-8.

        Raises
        ------
        InputError
        """
        faults = []
        for what, mean, number in (
            ("totals", self.mean_total, len(self.totals)),
            ("cells", self.mean_cell, self.of_cells),
        ):
            if number and abs(mean - 1.0) > MOST_OFF + _CHANCE * (2.0 / number) ** 0.5:
                faults.append(f"the squares of standardised {what} are {mean:.2f} on average, and 1 is expected")
        largest = max(self.totals, default=0.0)
        if self.totals and largest > 2.0 * np.log(len(self.totals)) + _CHANCE**2:
            faults.append(f"a block's total is {largest**0.5:.1f} standard deviations from what was measured of it")
        if faults:
            raise InputError(
                f"--estimator posterior: the data contradict the prior: {'; '.join(faults)}. Correct the housing "
                "units in group_quarters.csv, or use --estimator full-information; a run that was measured goes on "
                "with it by --resume"
            )


_SIZES: Final[Floats] = np.array([30.0, 100.0, 300.0])
"""Means of a total for which the excess of its squared error is told; linear in the logarithm between them."""


def _by_size(mean: Floats) -> Floats:
    """How much each of the sizes says of a total with such a mean; shape (sizes, k), columns sum to 1."""
    at = np.log(np.maximum(mean, 1.0))
    return np.stack([np.interp(at, np.log(_SIZES), one) for one in np.eye(len(_SIZES))])


@dataclass(frozen=True, slots=True)
class Inflation:
    """How many times its posterior variance the squared error of a total is, less 1."""

    # of totals of 30, 100 and 300; at least 0, so that no interval is narrower than that of the posterior
    excess: tuple[float, ...]

    def told(self) -> dict[str, Any]:
        """For a manifest."""
        return {f"{size:.0f}": round(one, 4) for size, one in zip(_SIZES, self.excess, strict=True)}


@dataclass(slots=True)
class SquaredErrors:
    """Weighted least squares of estimated squared errors by size; those of many parents add up."""

    normal: Floats = field(default_factory=lambda: np.zeros((len(_SIZES), len(_SIZES))))  # shape (sizes, sizes)
    said: Floats = field(default_factory=lambda: np.zeros(len(_SIZES)))  # shape (sizes,)

    def add(self, draws: Draws, measured: Floats, variance: Floats) -> None:
        """Add the children of one parent.

        Parameters
        ----------
        measured, variance : ndarray of float64, shape (k,)
            Least squares of the totals from each child's own answers, and their variances; nan of a child without.
        """
        totals = draws.totals.astype(np.float64)
        half = len(totals) // 2
        mean, spread = totals.mean(axis=0), totals.var(axis=0)
        # A chain sees less than the whole variance, by that of its own mean.
        slope = spread + (totals[:half].mean(axis=0) - totals[half:].mean(axis=0)) ** 2 / 4.0
        excess = (mean - measured) ** 2 - variance + 2.0 * slope - spread
        here = np.isfinite(variance) & (spread > 0)
        # What is estimated varies as the square of the variance, nearly whatever the counts.
        by = _by_size(mean[here]) * spread[here] / variance[here]
        self.normal += by @ by.T
        self.said += by @ (excess[here] / variance[here])

    def inflation(self) -> Inflation:
        """The inflation that fits best; none where nothing was added."""
        values, vectors = np.linalg.eigh(self.normal)
        root = np.sqrt(np.maximum(values, 0.0))
        told = np.where(root > 0, vectors.T @ self.said / np.where(root > 0, root, 1.0), 0.0)
        found, _ = nnls(root[:, None] * vectors.T, told)
        return Inflation(tuple(found.tolist()))


@dataclass(frozen=True, slots=True, eq=False)
class BlockPosterior:
    """What was found of the blocks beside their counts."""

    # mean, spread: shape (blocks,): posterior mean and standard deviation of the total of each block; where nothing was
    # drawn the count, and 0
    mean: Floats
    spread: Floats
    # of the squared errors of those totals over their posterior variances, as the noisy answers tell it
    inflation: Inflation
    prior: Prior  # as learned
    chains: Chains
    fit: PriorFit
    sweeps: Sweeps  # how many were left out, and how many counted
    seed: int  # of all draws. It is no secret: with it the estimate can be made again from the measurements.
    with_units: bool  # whether housing units were used

    def told(self) -> dict[str, Any]:
        """For a manifest."""
        return {
            "housing_units": self.with_units,
            "concentration_between": round(self.prior.between, 2),
            "concentration_within": round(self.prior.within, 2),
            "sweeps_left_out": self.sweeps[0],
            "sweeps": self.sweeps[1],
            "seed": str(self.seed),
            "inflation": self.inflation.told(),
            "chains": self.chains.told(),
            "fit": self.fit.told(),
        }
