"""The ledger of one run, and the door through which every confidential count must pass."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hollerith.errors import BudgetError
from hollerith.plan.measurement import Measurement
from hollerith.plan.plan import Plan, compose
from hollerith.privacy.entropy import Entropy
from hollerith.privacy.exact import Budget
from hollerith.privacy.sampler import add_noise


@dataclass(slots=True)
class Ledger:
    """What a run has measured so far. It refuses what the plan does not hold, or twice, or over budget."""

    plan: Plan
    _charged: dict[str, Measurement] = field(default_factory=dict, init=False)

    @property
    def charged(self) -> tuple[str, ...]:
        """Names of the measurements made, in order."""
        return tuple(self._charged)

    @property
    def spent(self) -> Budget:
        """Loss so far, under the plan's own neighbours."""
        return compose(tuple(self._charged.values()))

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
        after = compose((*self._charged.values(), measurement))
        if after > self.plan.loss():
            raise BudgetError(f"measurement {measurement.name} refused: it would pass the budget of the plan")
        self._charged[measurement.name] = measurement

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
        entropy : Entropy

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
        self.charge(measurement)
        return add_noise(counts, measurement.law, entropy)
