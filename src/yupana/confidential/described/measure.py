"""Pass the counts of described tables through the door: whole tables, or as finely as a noisy total allows."""

from collections.abc import Iterator, Mapping

import numpy as np

from yupana.arrays import Flags, Ints
from yupana.plan.ledger import Ledger
from yupana.privacy.entropy import Entropy
from yupana.products.described.description import DescribedLevel, DescribedTable, Description, Detail
from yupana.products.described.published import PublishedSizes
from yupana.products.described.tables import coarsest_name, families_of, total_name
from yupana.products.tables import Family, Groups
from yupana.release.rows import Coded


def measure_tables(
    exact: Mapping[str, Ints],
    description: Description,
    ledger: Ledger,
    entropy: Entropy,
    published: Mapping[str, PublishedSizes],
    *,
    leave_out: bool = True,
) -> Iterator[Groups]:
    """Measure every table at every level of a plan, in the plan's order.

    Parameters
    ----------
    exact : mapping of ``table/level`` to int64 array, shape (areas by groups of the level, cells)
    description : Description
    ledger : Ledger
    entropy : Entropy
    published : mapping of ``table/level`` to PublishedSizes
        Of the tables whose detail published totals decide.
    leave_out : bool
        Leave out what a description's ``detail.leave_out`` says; False shows all that was measured.
    """
    for table in description.tables:
        for level in table.levels:
            counts = exact.get(f"{table.name}/{level.name}")
            if counts is not None:
                measurer = _Measurer(description, table, level, ledger, entropy)
                sizes = published.get(f"{table.name}/{level.name}")
                yield from measurer.measure(counts, sizes, leave_out=leave_out)


class _Measurer:
    """Measures a table at a level."""

    def __init__(
        self, description: Description, table: DescribedTable, level: DescribedLevel, ledger: Ledger, entropy: Entropy
    ) -> None:
        self._table, self._level = table, level
        self._areas = description.areas[level.areas].codes
        self._families = families_of(table)
        self._ledger, self._entropy = ledger, entropy

    def measure(self, counts: Ints, sizes: PublishedSizes | None, *, leave_out: bool) -> Iterator[Groups]:
        """Measure all groups of the level, shape (areas by groups, cells)."""
        detail, every = self._table.detail, np.arange(len(counts))
        if detail is None:
            yield self._whole(self._table.name, self._families[0], every, counts)
            return
        always: Flags = np.isin(every % len(self._level.groups), self._places(detail))
        if always.any():
            coarse = _added_up(counts[always], self._families[0].choices[0].finest)
            yield self._whole(coarsest_name(self._table), self._families[1], every[always], coarse)
        if not always.all():
            if detail.published:
                if sizes is None:
                    raise ValueError(f"{self._table.name} needs published totals")
                # A group without a published total is not measured.
                every, counts, total = every[sizes.listed], counts[sizes.listed], sizes.total[sizes.listed]
            else:
                every, counts = every[~always], counts[~always]
                total = self._noisy_total(counts)
            yield from self._chosen(detail, total, every, counts, leave_out=leave_out)

    def _places(self, detail: Detail) -> list[int]:
        return [place for place, code in enumerate(self._level.groups) if code in detail.coarsest]

    def _whole(self, name: str, family: Family, places: Ints, counts: Ints) -> Groups:
        """One measurement of groups at some places."""
        measurement = self._ledger.plan[f"{name}/{self._level.name}"]
        return self._groups(family, 0, places, self._ledger.measure(measurement, counts, self._entropy), name)

    def _noisy_total(self, counts: Ints) -> Ints:
        """A total of each group, which is not published."""
        measurement = self._ledger.plan[f"{total_name(self._table)}/{self._level.name}"]
        return self._ledger.measure(measurement, counts.sum(axis=1, keepdims=True), self._entropy)[:, 0]

    def _chosen(self, detail: Detail, total: Ints, places: Ints, counts: Ints, *, leave_out: bool) -> Iterator[Groups]:
        """Counts of each group in the cells that its total allows.

        The counts are those of the step, whichever it is, so that every cell has the noise of one measurement
        (docs/tables-privacy.md, theorem 4).
        """
        plan, family = self._ledger.plan, self._families[0]
        step = np.searchsorted(detail.thresholds[self._level.name], total, side="right")
        cells = np.array([choice.measured for choice in family.choices])[step]
        starts = np.cumsum(cells) - cells
        flat = np.zeros(int(cells.sum()), dtype=np.int64)
        of_step = [np.flatnonzero(step == k) for k in range(len(family.choices))]
        for choice, groups in zip(family.choices, of_step, strict=True):
            at = starts[groups, None] + np.arange(choice.measured)
            flat[at] = _added_up(counts[groups], choice.finest)
        measurement = plan[f"{self._table.name}/{self._level.name}"]
        noisy = self._ledger.open(measurement, len(counts)).measure(0, cells, flat, self._entropy)
        chance = detail.leave_out.get(self._level.name) if leave_out else None
        if chance is not None:
            small = of_step[0]
            of_step[0] = small[noisy[starts[small]] > measurement.law.quantile(float(chance))]
        for k, groups in enumerate(of_step):
            at = starts[groups, None] + np.arange(family.choices[k].measured)
            yield self._groups(family, k, places[groups], noisy[at], self._table.name)

    def _groups(self, family: Family, choice: int, places: Ints, noisy: Ints, name: str) -> Groups:
        area, group = np.divmod(places, len(self._level.groups))
        codes = Coded(self._areas, area), Coded(self._level.groups, group)
        measurement = self._ledger.plan[f"{name}/{self._level.name}"]
        return Groups(family, choice, self._level.areas, *codes, noisy, measurement)


def _added_up(counts: Ints, finest: tuple[int, ...]) -> Ints:
    """Counts of coarser cells; ``finest`` tells which of them holds each cell."""
    out = np.zeros((len(counts), max(finest) + 1), dtype=np.int64)
    for cell, holds in enumerate(finest):
        out[:, holds] += counts[:, cell]
    return out
