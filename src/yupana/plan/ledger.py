"""The ledger of one run, and the door through which every confidential count must pass."""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from yupana.errors import BudgetError
from yupana.files.draw_log import DrawLog, DrawnStretch
from yupana.plan.measurement import Measurement
from yupana.plan.plan import Plan
from yupana.privacy.entropy import Entropy
from yupana.privacy.exact import Budget
from yupana.privacy.sampler import add_noise


@dataclass(slots=True)
class Ledger:
    """What a run has measured so far. It refuses what the plan does not hold, or twice, or over budget."""

    plan: Plan
    # where draws are kept before anything is made of them, and taken from if an earlier attempt of the run has drawn;
    # None where whoever measures keeps them, or nobody resumes
    draws: DrawLog | None = field(default=None, kw_only=True)
    _charged: dict[str, Measurement] = field(default_factory=dict, init=False)
    _limit: Budget = field(init=False)
    _in_sequence: Budget = field(init=False, default=Fraction(0))
    """The sum of what was charged; no way to compose it counts more."""

    def __post_init__(self) -> None:
        self._limit = self.plan.loss()

    @property
    def charged(self) -> tuple[str, ...]:
        """Names of the measurements made, in order."""
        return tuple(self._charged)

    @property
    def spent(self) -> Budget:
        """Loss so far, under the plan's own neighbours."""
        return self.plan.loss_of(tuple(self._charged.values()))

    def charge(self, measurement: Measurement) -> None:
        """Record a measurement before it is made.

        Raises
        ------
        BudgetError
            If the plan holds no such measurement, one of the same name with other terms, or it was made already.
        """
        if measurement not in self.plan.measurements:
            known = measurement.name in {m.name for m in self.plan.measurements}
            reason = "the plan holds it with other terms" if known else "the plan does not hold it"
            raise BudgetError(f"measurement {measurement.name} refused: {reason}")
        if measurement.name in self._charged:
            raise BudgetError(f"measurement {measurement.name} refused: it has been made already")
        in_sequence = self._in_sequence + measurement.budget
        charged = (*self._charged.values(), measurement)
        if in_sequence > self._limit and self.plan.loss_of(charged) > self._limit:
            raise BudgetError(f"measurement {measurement.name} refused: it would pass the budget of the plan")
        self._charged[measurement.name] = measurement
        self._in_sequence = in_sequence

    def open(self, measurement: Measurement, groups: int) -> "Meter":
        """Charge a measurement of ``groups`` population groups that will be measured piece by piece.

        Raises
        ------
        BudgetError
            If `charge` refuses the measurement.
        """
        self.charge(measurement)
        return Meter(measurement, groups, serial=len(self.charged), draws=self.draws)

    def measure(self, measurement: Measurement, counts: NDArray[np.int64], entropy: Entropy) -> NDArray[np.int64]:
        """Charge a measurement and return its noisy counts: the door from confidential to public.

        The result is ``measurement.loss(d)``-zCDP (epsilon-DP under pure DP) against neighbours whose ``counts`` lie at
        distance at most ``d``, with d the squared L2 (L1) distance.

        Parameters
        ----------
        measurement : Measurement
            As it stands in the plan.
        counts : numpy.ndarray of int64, shape (population groups, cells)
            Exact counts, zeros included. Population groups and cells must be public.

        Raises
        ------
        BudgetError
            If `charge` refuses the measurement.
        ValueError
            If the counts do not have the cells of the measurement.
        OverflowError
            If a noisy count does not fit into 64 bits.
        """
        if counts.ndim != 2 or counts.shape[1] != measurement.cells:
            raise ValueError(f"{measurement.name} counts {measurement.cells} cells per population group")
        cells = np.full(len(counts), measurement.cells)
        meter = self.open(measurement, len(counts))
        return meter.measure(0, cells, counts.ravel(), meter.stream(0, entropy)).reshape(counts.shape)


@dataclass(slots=True)
class Meter:
    """One charged measurement, made piece by piece: every population group at most once.

    All pieces together are one measurement: ``measurement.loss(d)``-zCDP (epsilon-DP) against neighbours whose counts,
    over all pieces, lie at squared L2 (L1) distance at most ``d``. How many cells a group is counted in may depend on
    what has been released before, not on the counts (docs/safetab-privacy.md).
    """

    measurement: Measurement
    groups: int  # population groups of the measurement, numbered from 0
    serial: int = field(kw_only=True)  # how many measurements the ledger had charged, this one included
    draws: DrawLog | None = field(default=None, kw_only=True)  # as the ledger has it
    _done: list[tuple[int, int]] = field(default_factory=list, init=False)

    def measure(
        self, first: int, cells: NDArray[np.int64], counts: NDArray[np.int64], entropy: Entropy
    ) -> NDArray[np.int64]:
        """Add noise to the counts of groups ``first``, ``first + 1``, ...; or take the noisy counts that were kept.

        Parameters
        ----------
        cells : numpy.ndarray of int64, shape (groups of the piece,)
            How many cells each group is counted in, up to those of the measurement. A group counted in none has been
            measured all the same.
        counts : numpy.ndarray of int64, shape (sum of cells,)
            Exact counts, zeros included, group after group.

        Raises
        ------
        BudgetError
            If a group is none of the measurement's, or has been measured already.
        ValueError
            If the counts do not have the cells named.
        OverflowError
            If a noisy count does not fit into 64 bits.
        OutputError
            If the draw cannot be kept, or the one that was kept is damaged.
        """
        end = first + len(cells)
        if not 0 <= first <= end <= self.groups:
            raise BudgetError(f"measurement {self.measurement.name} refused: it has no such population group")
        if any(first < to and start < end for start, to in self._done):
            raise BudgetError(f"measurement {self.measurement.name} refused: a group has been measured already")
        if len(cells) and not (cells.min() >= 0 and cells.max() <= self.measurement.cells):
            raise ValueError(f"{self.measurement.name} counts at most {self.measurement.cells} cells a group")
        if counts.ndim != 1 or len(counts) != int(cells.sum()):
            raise ValueError(f"{self.measurement.name}: the counts do not have the cells named")
        self._mark(first, end)
        draw = partial(add_noise, counts, self.measurement.law, entropy)
        if self.draws is None:
            return draw()
        return self.draws.take(DrawnStretch(self.measurement.name, first, len(cells), len(counts)), draw)

    def stream(self, first: int, entropy: Entropy) -> Entropy:
        """The noise of the piece that begins with a group.

        Named so, noise from a seed is the same in whichever order pieces are measured, and on any number of shards.
        """
        return entropy.branch(f"{self.serial} {first}")

    def _mark(self, first: int, end: int) -> None:
        """Remember a piece; pieces that touch become one, so the list stays short."""
        if first == end:
            return
        merged = [piece for piece in self._done if piece[1] != first and piece[0] != end]
        start = next((piece[0] for piece in self._done if piece[1] == first), first)
        to = next((piece[1] for piece in self._done if piece[0] == end), end)
        self._done = [*merged, (start, to)]
