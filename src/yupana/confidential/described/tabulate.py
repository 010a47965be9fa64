"""Count the cells of the tables of a description, each record at most as often as a limit allows, and measure them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import duckdb
import numpy as np

from yupana.arrays import Flags, Ints
from yupana.confidential.measure_groups import (
    Choosing,
    GroupCounts,
    LevelGroups,
    LevelMeasurer,
    measure_listed,
)
from yupana.confidential.records.declared import compared
from yupana.confidential.tabulate.linked_tables import (
    Chain,
    CountLinked,
    LinkedCounts,
    LinkedFile,
    LinkedLimit,
    LinkedTable,
    count_linked,
)
from yupana.errors import ConfigError
from yupana.files.database import named, quoted
from yupana.plan.ledger import Ledger
from yupana.plan.plan import Plan
from yupana.plan.predicates import TooManyClassesError
from yupana.privacy.entropy import Entropy
from yupana.privacy.sealed import Sealed
from yupana.products.described.description import DescribedFile, DescribedLevel, DescribedTable, Description, in_join
from yupana.products.described.plan import coarsest_name, families_of, total_name
from yupana.products.described.published import PublishedGroups
from yupana.products.tables import Family, Groups


@dataclass(frozen=True, slots=True, repr=False)
class Tabulated(Sealed):
    """Exact counts of some tables.

    Attributes
    ----------
    by_level : mapping of ``table/level`` to int64 array, shape (areas by groups of the level, cells)
    left_out : mapping of table to int
        Records of the universe that its limit left out.
    """

    by_level: Mapping[str, Ints]
    left_out: Mapping[str, int]


def merge_tabulated(parts: Sequence[Tabulated]) -> Tabulated:
    """Counts of shards together: in any order, and merged before or not, the same.

    Parameters
    ----------
    parts : sequence of Tabulated
        One at least, of the same tables. No unit is in two shards, and a unit with all that is linked to it is in one:
        limits are by unit, or by what a unit holds.
    """
    return Tabulated(
        {name: sum((part.by_level[name] for part in parts[1:]), first) for name, first in parts[0].by_level.items()},
        {name: sum(part.left_out[name] for part in parts) for name in parts[0].left_out},
    )


def tabulate(
    db: duckdb.DuckDBPyConnection,
    description: Description,
    *,
    limited: bool,
    count: CountLinked = count_linked,
    crowded: Mapping[str, str] | None = None,
) -> Tabulated:
    """Count what has a budget over the relations of valid records; tables of one file are counted in one scan.

    Parameters
    ----------
    limited : bool
        Keep at most as many records as the limits say, as a run does; False keeps all.
    count : callable
        Counts the tables of a file; or adds up something else of their records in the place of 1 for each.
    crowded : mapping of file to str, optional
        As `LinkedFile` has it, of files of which that is known.
    """
    found: dict[str, Ints] = {}
    left_out: dict[str, int] = {}
    for file in dict.fromkeys(table.counts for table, _ in description.measured.values()):
        own, *above = chain_of(db, description, file)
        chain = [replace(own, crowded=(crowded or {}).get(file, "")), *above]
        levels = [at for at in description.measured.values() if at[0].counts == file]
        for (table, level), counted in zip(
            levels, _count(db, description, chain, levels, count, limited=limited), strict=True
        ):
            kind = description.areas[level.areas]
            # By area, group and cell.
            cells = np.concatenate([of.cells(kind.of, len(kind.codes)) for of in counted], axis=1)
            found[f"{table.name}/{level.name}"] = cells.reshape(-1, len(table.cells))
            if table.limit and limited:
                left_out[table.name] = counted[0].left_out
    return Tabulated(found, left_out)


def _count(
    db: duckdb.DuckDBPyConnection,
    description: Description,
    chain: Chain,
    levels: Sequence[tuple[DescribedTable, DescribedLevel]],
    count: CountLinked,
    *,
    limited: bool,
) -> list[list[LinkedCounts]]:
    """Count levels of tables of one file: the groups of each level together, or one by one if they are too many."""
    for together in (True, False):
        parts = [
            [
                _linked_table(description, table, level, codes, limited=limited)
                for codes in ([level.groups] if together else [(code,) for code in level.groups])
            ]
            for table, level in levels
        ]
        try:
            found = count(db, chain, [part for some in parts for part in some], description.truncation_key)
        except TooManyClassesError:
            continue
        return [[found[part.name] for part in some] for some in parts]
    names = ", ".join(dict.fromkeys(table.name for table, _ in levels))
    raise ConfigError(
        f"tables: of {names} some cell and group together tell too many combinations of values apart; recode columns"
    )


def _linked_table(
    description: Description, table: DescribedTable, level: DescribedLevel, codes: Sequence[str], *, limited: bool
) -> LinkedTable:
    predicates, kind = description.predicates(table, codes), description.areas[level.areas]
    limit = None
    if table.limit and limited:
        per = description.files[table.limit.per]
        beneath = description.chain(table.counts).index(per.name) - 1
        limit = LinkedLimit(beneath, table.limit.most, of_ids=per.ids_in == table.counts)
    return LinkedTable(
        name=f"{table.name}/{level.name}/{','.join(codes)}",
        universe=table.universe,
        cells=tuple(cell for code in codes for cell in predicates[code]),
        areas=dict(zip(kind.columns, kind.values, strict=True)),
        limit=limit,
    )


def chain_of(db: duckdb.DuckDBPyConnection, description: Description, counts: str) -> list[LinkedFile]:
    """A file that is counted and those above it, as the database has them."""
    found, key = [], ""
    for name in description.chain(counts):
        file = description.files[name]
        if file.ids_in:
            break
        link, key_above = in_join(name, file.link) if file.link else "", ""
        if file.parent and not description.files[file.parent].ids_in:
            parent = description.files[file.parent]
            key_above = in_join(parent.name, parent.key)
            relations = (named(of.schema.relation) for of in (file, parent))
            link, key_above = compared(db, *zip(relations, (link, key_above), strict=True))
        columns = tuple(replace(column, name=named(column.name)) for column in file.schema.columns)
        written = tuple(_written(file, field) for field in file.hashed)
        found.append(LinkedFile(named(file.schema.relation), columns, key, link, written))
        key = key_above
    return found


def _written(file: DescribedFile, name: str) -> str:
    """SQL for a field as its file writes it; codes are stored as their places in a list, no value as a number."""
    field = in_join(file.name, name)
    if name not in file.columns:
        return field
    column = file.columns[name].column
    if column.not_numbers:
        words = " ".join(f"WHEN {field} = {value} THEN {quoted(word)}" for word, value in column.not_numbers.items())
        return f"CASE {words} ELSE CAST({field} AS VARCHAR) END"
    if column.width:
        return f"lpad(CAST({field} AS VARCHAR), {column.width}, '0')"
    return f"([{', '.join(map(quoted, column.words))}])[{field} + 1]" if column.words else field


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
    published : mapping of ``table/level`` to PublishedGroups
        Of the tables whose detail published totals decide.
    leave_out : bool
        Leave out what a description's ``detail.leave_out`` says; False shows all that was measured.
    """
    for name, (table, level) in description.at_levels.items():
        counts = exact.get(name)
        if counts is None:
            continue
        areas = description.areas[level.areas].codes
        totals, sizes = counts.sum(axis=1), published.get(name)
        for groups in groups_of_level(table, families_of(table), level, areas, ledger.plan, leave_out=leave_out):
            if not (table.detail and table.detail.published):
                by_area = totals.reshape(len(areas), len(level.groups))
                of = GroupCounts(0, by_area, lambda chosen, c=counts: c[chosen.ravel()])  # type: ignore[misc]
                yield from LevelMeasurer(groups, ledger, entropy).measure(of)
                continue
            if sizes is None:
                raise ValueError(f"{table.name} needs published totals")
            listed = sizes.area * len(level.groups) + sizes.group
            # Without a copy of all of them.
            finest = partial(lambda every, of, rows: every[of[rows]], counts, listed)
            yield from measure_listed(groups, sizes, totals[listed], finest, ledger, entropy)


def groups_of_level(
    table: DescribedTable,
    families: Sequence[Family],
    level: DescribedLevel,
    areas: Sequence[str],
    plan: Plan,
    *,
    leave_out: bool,
) -> list[LevelGroups]:
    """What a plan measures of a table, which these are the families of, at a level whose areas have these codes.

    First the groups whose detail is decided, then those that always get the first step.
    """
    measurements, detail = {m.name: m for m in plan.measurements}, table.detail
    family, *coarsest = families
    always: Flags = np.isin(level.groups, sorted(detail.coarsest) if detail else [])
    found = []
    if measured := measurements.get(f"{table.name}/{level.name}"):
        choosing = Choosing()
        if detail is not None:
            chance = detail.leave_out.get(level.name)
            choosing = Choosing(
                measurements.get(f"{total_name(table)}/{level.name}"),
                detail.thresholds[level.name],
                # The total of an empty group passes it with one minus the chance.
                measured.law.quantile(float(chance)) if leave_out and chance else None,
            )
        found.append((np.flatnonzero(~always), measured, family, choosing))
    if alone := measurements.get(f"{coarsest_name(table)}/{level.name}"):
        found.append((np.flatnonzero(always), alone, coarsest[0], Choosing()))
    return [
        LevelGroups(level.areas, areas, level.groups, places, measurement, family, published, choosing)
        for places, measurement, published, choosing in found
    ]
