"""The door of TopDown: exact answers go in, noisy answers come out, each once."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Ints
from yupana.plan.ledger import Ledger, Meter
from yupana.privacy.entropy import Entropy
from yupana.topdown.budget import Spending
from yupana.topdown.families import Asked, SiblingBatch, exact_answers
from yupana.topdown.histogram import Histogram
from yupana.topdown.queries import Query


class CountsOfUnits(Protocol):
    """Counts of the units of one geolevel, of which parts are read; `Histogram` is one."""

    @property
    def units(self) -> int:
        """How many units are counted."""
        ...

    def part(self, first: int, last: int) -> Histogram:
        """The units from ``first`` up to ``last``, numbered from 0."""
        ...


class Door:
    """Measures geounits through the ledger, drawing only the answers that are asked.

    The counts are those of the records, or, of a replicate, those of a release (`monte_carlo`): the noise has one law.
    What is released has the law it would have had if every answer of the plan had been drawn: the estimate never reads
    the others (docs/topdown-privacy.md). The ledger is charged with the whole plan.

    Parameters
    ----------
    exact : sequence of CountsOfUnits
        Counts of each geolevel; of a batch, those of its geounits are read.
    spending : Spending
    entropy : Entropy
    ledger : Ledger, optional
        Of the plan of ``spending``; a new one if none is given.
    """

    def __init__(
        self, exact: Sequence[CountsOfUnits], spending: Spending, entropy: Entropy, ledger: Ledger | None = None
    ) -> None:
        self._exact = exact
        self.spending = spending
        self._entropy = entropy
        self.ledger = ledger or Ledger(spending.plan)
        self._rank = [_rank(level.share_of) for level in spending.levels]
        self._labels: dict[Query, NDArray[np.int32]] = {}
        self._meters: Mapping[str, Meter] = {
            measurement.name: self.ledger.open(measurement, int((level.share_of == share).sum()))
            for level in spending.levels
            for share, row in level.measurements.items()
            for measurement in row
        }

    def measure(self, level: int, families: SiblingBatch, asked: Sequence[Asked]) -> tuple[Ints, ...]:
        """Measure the children of families: of each query the answers asked, placed as `Asked.places` says."""
        return tuple(self._measure(level, q, families, one) for q, one in enumerate(asked))

    def measure_all(self, level: int, first: int, last: int) -> tuple[Ints, ...]:
        """Measure everything of the geounits from ``first`` up to ``last``: of each query an array (units, size)."""
        units = SiblingBatch(np.array([first, last]), np.zeros(2, dtype=np.int64), np.zeros(0, dtype=np.int32))
        found = []
        for q, query in enumerate(self.spending.levels[level].queries):
            answers = np.arange(query.size, dtype=np.int32)
            everything = Asked(answers[:0], np.array([0, query.size]), answers)
            values = self._measure(level, q, units, everything)
            found.append(values.reshape(last - first, query.size))
        return tuple(found)

    def _measure(self, level: int, q: int, families: SiblingBatch, asked: Asked) -> Ints:
        exact = self._exact[level].part(families.first, families.last)
        spent = self.spending.levels[level]
        query = spent.queries[q]
        values = exact_answers(
            exact.starts,
            exact.cells,
            exact.counts,
            families.children - families.first,
            self._label(query),
            asked.starts,
            asked.answers,
            query.size,
        )
        share = spent.share_of[families.first : families.last]
        cells = np.repeat(np.diff(asked.starts), np.diff(families.children))
        noisy = np.zeros_like(values)
        for position in np.unique(share).tolist():
            if position not in spent.measurements:
                continue  # no share, no measurement: the zeros stay
            units = share == position
            entries = slice(None) if units.all() else np.repeat(units, cells)
            meter = self._meters[spent.measurements[position][q].name]
            first = int(self._rank[level][families.first + int(np.argmax(units))])
            source = self._entropy.branch(f"{level} {q} {position} {families.first}")
            noisy[entries] = meter.measure(first, cells[units], values[entries], source)
        return noisy

    def _label(self, query: Query) -> NDArray[np.int32]:
        if query not in self._labels:
            self._labels[query] = query.answers()
        return self._labels[query]


def _rank(share: NDArray[np.int32]) -> Ints:
    """Number the units of each share from 0."""
    rank = np.empty(len(share), dtype=np.int64)
    for position in np.unique(share).tolist():
        mine = share == position
        rank[mine] = np.arange(int(mine.sum()))
    return rank
