"""Pass the counts of described tables through the door: whole tables, or as finely as a noisy total allows."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from yupana.arrays import Flags, Ints
from yupana.confidential.measure_groups import (
    Choosing,
    ChosenCounts,
    GroupCounts,
    LevelGroups,
    LevelMeasurer,
    left_out_up_to,
    measure_listed,
    needs_cells,
)
from yupana.plan.ledger import Ledger
from yupana.plan.plan import Plan
from yupana.privacy.entropy import Entropy
from yupana.products.described.description import DescribedLevel, DescribedTable, Description
from yupana.products.described.published import PublishedGroups
from yupana.products.described.tables import coarsest_name, families_of, total_name
from yupana.products.tables import Family, Groups


def measure_tables(
    exact: Mapping[str, Ints],
    description: Description,
    ledger: Ledger,
    entropy: Entropy,
    published: Mapping[str, PublishedGroups],
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
    published : mapping of ``table/level`` to PublishedGroups
        Of the tables whose detail published totals decide.
    leave_out : bool
        Leave out what a description's ``detail.leave_out`` says; False shows all that was measured.
    """
    for table in description.tables:
        for level in table.levels:
            counts = exact.get(f"{table.name}/{level.name}")
            if counts is None:
                continue
            areas = description.areas[level.areas].codes
            groups = groups_of_level(table, families_of(table), level, areas, ledger.plan, leave_out=leave_out)
            totals = counts.sum(axis=1)
            if not (table.detail and table.detail.published):
                by_area = totals.reshape(len(areas), len(level.groups))
                of = GroupCounts(0, by_area, lambda chosen, c=counts: c[chosen.ravel()])  # type: ignore[misc]
                yield from LevelMeasurer(groups, ledger, entropy).measure(of)
                continue
            sizes = published.get(f"{table.name}/{level.name}")
            if sizes is None:
                raise ValueError(f"{table.name} needs published totals")
            listed = sizes.area * len(level.groups) + sizes.group
            choice = groups.choosing.choice(sizes.total)
            rows = np.flatnonzero(needs_cells(groups.family, choice))
            chosen_counts = ChosenCounts(0, choice, totals[listed], rows, counts[listed[rows]])
            yield from measure_listed(groups, listed, chosen_counts, ledger, entropy)


def groups_of_level(
    table: DescribedTable,
    families: Sequence[Family],
    level: DescribedLevel,
    areas: Sequence[str],
    plan: Plan,
    *,
    leave_out: bool,
) -> LevelGroups:
    """What a plan measures of a table, which these are the families of, at a level whose areas have these codes."""
    measurements, detail = {m.name: m for m in plan.measurements}, table.detail
    family, *coarsest = families
    measured = measurements.get(f"{table.name}/{level.name}")
    always: Flags = np.isin(level.groups, sorted(detail.coarsest) if detail else [])
    choosing = Choosing()
    if detail is not None and measured is not None:
        choosing = Choosing(
            measurements.get(f"{total_name(table)}/{level.name}"),
            detail.thresholds[level.name],
            left_out_up_to(measured, detail.leave_out.get(level.name)) if leave_out else None,
        )
    alone = measurements.get(f"{coarsest_name(table)}/{level.name}")
    return LevelGroups(
        level.areas, areas, level.groups, family, measured, choosing, (coarsest[0], alone) if alone else None, always
    )  # fmt: skip
