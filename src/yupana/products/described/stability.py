"""How far a table moves when one privacy unit changes: derived from links, limits and fixed columns.

The theorem and its proof are in docs/tables-privacy.md. Public: nothing here sees a record.
"""

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction

from yupana.errors import ConfigError
from yupana.plan.classes import TooManyClassesError, classify
from yupana.plan.measurement import Mechanism, Sensitivity
from yupana.products.described.description import DescribedLevel, DescribedTable, Description

Move = tuple[int, int]
"""How many records appear in a table at most, and how many disappear."""


@dataclass(frozen=True, slots=True)
class Stability:
    """How many records of a table can appear and disappear, for each kind of neighbours.

    Attributes
    ----------
    unbounded : frozenset of Move
        One unit is added or removed: what can happen, each the most of its kind.
    bounded : frozenset of Move
        One unit is replaced, its parent included.
    because : str
        Why, in words.
    """

    unbounded: frozenset[Move]
    bounded: frozenset[Move]
    because: str


@dataclass(frozen=True, slots=True)
class Overlap:
    """In how many cells of a level one record counts at most; ``exact`` unless only a bound could be computed."""

    cells: int
    exact: bool


def stability(description: Description, table: DescribedTable, level: DescribedLevel) -> Stability:
    """Derive how many records a change of one unit moves in a table at a level (docs/tables-privacy.md, theorem 1).

    Raises
    ------
    ConfigError
        If no bound holds, or nothing that is protected moves the table.
    """
    files, unit = description.files, description.unit
    chain, above_unit = description.chain(table.counts), description.chain(unit)[1:]
    record, place = files[table.counts].record, f"tables.{table.name}"
    if not set(chain) & set(description.chain(unit)):
        raise ConfigError(
            f"{place}: no link joins {table.counts} with {unit}, the privacy unit, so nothing would protect what it "
            "counts"
        )
    sorting, sifting = _reads(description, table, level, above_unit)
    # The highest file above the unit whose records may change so that the table sees it.
    changing = [file for file in chain if file in sorting | sifting or (file == table.counts and file in above_unit)]
    if not changing:
        return _of_own_records(description, table, chain, above_unit)
    top = changing[-1]
    if top == table.counts:
        because = f"the {record} that a {files[unit].record} belongs to may change, appear or vanish"
        if top in sorting or table.limit is not None:
            return _stability({(1, 1)}, {(1, 1)}, because)
        if top in sifting:
            return _stability({(1, 0), (0, 1)}, {(1, 0), (0, 1)}, because)
        return _stability({(0, 1)}, {(1, 0)}, because)
    if table.limit is None or table.limit.per not in chain[chain.index(top) :]:
        columns = ", ".join(sorted(_changing_columns(description, table, level, top)))
        raise ConfigError(
            f"{place}: it reads {columns}, which may change with a {files[unit].record} and then moves every {record} "
            f'of one {files[top].record}; limit how many count, as limit = {{ per = "{top}", most = 5 }}, or '
            "declare the column fixed if nothing below changes it"
        )
    most = table.limit.most
    because = f"all of at most {most} of one {files[table.limit.per].record} may move, as columns above them may change"
    if sorting or table.limit.per != top or changing != [top]:
        return _stability({(most, most)}, {(most, most)}, because)
    # Read by the universe alone, and of the record that has the limit: all of its records count, or none.
    own = most if table.counts != unit else 1
    either = {(most, 0), (0, most)} | ({(own, own)} if unit in chain else set())
    return _stability(either, either, because)


def _of_own_records(
    description: Description, table: DescribedTable, chain: tuple[str, ...], above_unit: Collection[str]
) -> Stability:
    """Where nothing moves but the records of the unit itself, and those that they displace."""
    files, unit, limit = description.files, description.unit, table.limit
    record, of_unit = files[table.counts].record, files[unit].record
    if unit not in chain:
        raise ConfigError(
            f"tables.{table.name}: no change of a {of_unit} moves it, so it would be published without noise; read a "
            f"column that may change, or count {unit}"
        )
    if table.counts == unit:
        most = 1
    elif limit is not None and limit.per in chain[chain.index(unit) :]:
        most = limit.most
    else:
        raise ConfigError(
            f"tables.{table.name}: one {of_unit} may have any number of {table.counts}; limit how many count, as "
            f'limit = {{ per = "{unit}", most = 5 }}'
        )
    if limit is not None and limit.per in above_unit:
        text = f"one {of_unit} brings at most {most} {record} records, which displace as many of the same "
        return _stability({(most, most)}, {(most, most)}, text + files[limit.per].record)
    return _stability({(0, most)}, {(most, 0)}, f"one {of_unit} brings at most {most} {record} records")


def _stability(removed: Collection[Move], added: Collection[Move], because: str) -> Stability:
    """What a replacement moves is what a removal and then an addition move."""
    replaced = {(a + c, b + d) for a, b in removed for c, d in added}
    return Stability(frozenset((*removed, *added)), frozenset(replaced), because)


def _reads(
    description: Description, table: DescribedTable, level: DescribedLevel, above_unit: Collection[str]
) -> tuple[set[str], set[str]]:
    """The files above the unit of which columns that may change tell cells apart, and those that the universe reads."""
    columns = description.columns

    def changing(names: Collection[str]) -> set[str]:
        return {columns[name].file for name in names if columns[name].file in above_unit and not columns[name].fixed}

    return changing(_sorting(description, table, level)), changing({name for name, _ in table.universe.columns})


def _sorting(description: Description, table: DescribedTable, level: DescribedLevel) -> set[str]:
    """The columns that tell areas, groups and cells of a level apart."""
    conditions = [*table.cells, *(description.group(table, code) for code in level.groups)]
    area = description.areas[level.areas].column
    return {name for where in conditions for name, _ in where.columns} | ({area} if area else set())


def _changing_columns(description: Description, table: DescribedTable, level: DescribedLevel, file: str) -> set[str]:
    columns = description.columns
    names = _sorting(description, table, level) | {name for name, _ in table.universe.columns}
    return {f"{file}.{columns[n].name}" for n in names if columns[n].file == file and not columns[n].fixed}


def overlap(description: Description, table: DescribedTable, level: DescribedLevel) -> Overlap:
    """The most cells of a level that one record of a table counts in, whatever its columns hold."""
    areas = description.areas[level.areas].overlap
    predicates = description.predicates(table)
    try:
        classes = classify(description.of_record(table), [p for code in level.groups for p in predicates[code]])
    except TooManyClassesError:
        return Overlap(areas * len(level.groups) * len(table.cells), exact=False)
    return Overlap(areas * int(classes.members.sum(axis=0).max(initial=0)), exact=True)


def sensitivity(stable: Stability, cells: int, mechanism: Mechanism) -> Sensitivity:
    """Distances from moves: squared L2 under zCDP, L1 under pure DP (docs/tables-privacy.md, theorem 2).

    Parameters
    ----------
    stable : Stability
    cells : int
        The most that one record counts in.
    mechanism : Mechanism
    """

    def most(moves: Collection[Move]) -> Fraction:
        return Fraction(max(cells * (a**mechanism.power + b**mechanism.power) for a, b in moves))

    return Sensitivity(unbounded=most(stable.unbounded), bounded=most(stable.bounded))
