"""How far a table moves when one privacy unit changes: derived from links, limits and fixed columns.

The theorems and their proofs are in docs/tables-privacy.md. Public: nothing here sees a record.
"""

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from yupana.errors import ConfigError
from yupana.plan.measurement import Sensitivity
from yupana.products.described.description import DescribedLevel, DescribedTable, Description, in_join
from yupana.products.described.footprints import Cells, Footprints, footprints


@dataclass(frozen=True, slots=True)
class Move:
    """Records that may appear in cells and disappear from others when one unit changes.

    Attributes
    ----------
    records : int
        At most so many appear, and so many disappear. Each that appears stands against one that disappears, or none.
    shared : frozenset of str or None
        Columns in which two that stand against each other agree; None if records only appear or only disappear.
    attained : frozenset of str or None
        Columns such that some neighbours move all of the records, from any values to any that agree in these; None
        if that is not known of any.
    alone : bool
        Whether some neighbours move all of the records with none against them.
    both_ways : bool
        Whether records may appear with none against them when a unit is removed, as well as disappear.
    idle : bool
        Whether it is known that a unit may be removed, or added, and move nothing.
    """

    records: int
    shared: frozenset[str] | None
    attained: frozenset[str] | None
    alone: bool
    both_ways: bool = False
    idle: bool = True

    def unbounded(self, of: Footprints, power: int) -> tuple[int, bool]:
        """How far the records move at most when a unit is removed or added, and whether some neighbours do."""
        paired, known = self._pairs(of)
        most = max(paired, of.overlap.number)
        alone = self.alone and of.overlap == Cells(most, exact=True)
        return self.records**power * most, alone or known == most

    def bounded(self, of: Footprints, power: int) -> tuple[int, bool]:
        """How far they move at most when a unit is replaced, and whether some neighbours do."""
        (paired, known), one, other = self._pairs(of), of.overlap.number, of.apart(())
        sure = self.alone and of.overlap.exact
        if self.both_ways or paired >= one:
            most = max(paired, one)
            return (2 * self.records) ** power * most, known == most or (self.both_ways and sure and one == most)
        # One that stands against another, and one alone; or two alone, which come and go.
        mixed = paired + one + (isqrt(4 * paired * one) if power == 2 else 0)
        most = max(2**power * paired, mixed, other.number)
        come_and_go = self.alone and other == Cells(most, exact=True)
        return self.records**power * most, come_and_go or (sure and self.idle and one == most)

    def _pairs(self, of: Footprints) -> tuple[int, int | None]:
        """In how many cells one of two that stand against each other counts at most, and in how many surely."""
        if self.shared is None:
            return 0, None
        known = of.apart(self.attained) if self.attained is not None else None
        return of.apart(self.shared).number, known.number if known is not None and known.exact else None


@dataclass(frozen=True, slots=True)
class Stability:
    """How many records of a table can appear and disappear: what can happen when one unit changes, and why."""

    moves: tuple[Move, ...]
    because: str


@dataclass(frozen=True, slots=True)
class Derived:
    """What follows for the sensitivities of a table at a level.

    Attributes
    ----------
    sensitivity : Sensitivity
    attained : mapping
        For ``unbounded`` and ``bounded`` neighbours, whether some are so far; else it is an upper bound that none
        exceeds, and how far the farthest are is not known.
    overlap : Cells
        The most cells that one record counts in.
    because : str
        Why, in words.
    """

    sensitivity: Sensitivity
    attained: dict[str, bool]
    overlap: Cells
    because: str


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
        return _of_one_record(description, table, sorting, sifting, because)
    if table.limit is None or table.limit.per not in chain[chain.index(top) :]:
        columns = ", ".join(sorted(_changing_columns(description, table, level, top)))
        raise ConfigError(
            f"{place}: it reads {columns}, which may change with a {files[unit].record} and then moves every {record} "
            f'of one {files[top].record}; limit how many count, as limit = {{ per = "{top}", most = 5 }}, or '
            "declare the column fixed if nothing below changes it"
        )
    most, per = table.limit.most, table.limit.per
    because = f"all of at most {most} of one {files[per].record} may move, as columns above them may change"
    shared = _columns_of(description, chain[chain.index(per) :], but_changing=above_unit)
    below = unit in chain and table.counts != unit
    if not sorting and per == top and changing == [top]:
        # Read by the universe alone, and of the record that has the limit: all of its records count, or none.
        all_or_none = Move(most, None, None, alone=True, both_ways=True)
        own = (Move(most if below else 1, shared, shared, alone=False, both_ways=True),) if unit in chain else ()
        return Stability((all_or_none, *own), because)
    moved = [file for file in chain[1:] if file in sifting]
    beside = unit not in chain and table.counts not in above_unit
    attained = shared
    if not (below or any(file != per for file in moved) or (most == 1 and not beside)):
        # The same records count before and after, but for one.
        attained = _columns_of(description, chain, but_changing=[file for file in above_unit if file != table.counts])
        shared = attained if beside else shared
    alone = bool(moved) or below or (most == 1 and not beside)
    return Stability((Move(most, shared, attained, alone, both_ways=bool(sifting)),), because)


def moves_by_one(description: Description, table: DescribedTable, level: DescribedLevel) -> bool:
    """Whether neighbours move no count by more than one: one footprint comes or goes, or one of each.

    Raises
    ------
    ConfigError
        As `stability`.
    """
    moves = stability(description, table, level).moves
    return all(move.records == 1 and move.shared is None and not move.both_ways for move in moves)


def _of_one_record(
    description: Description, table: DescribedTable, sorting: Collection[str], sifting: Collection[str], because: str
) -> Stability:
    """Where a record that is counted is above the unit, and no other changes."""
    chain = description.chain(table.counts)
    shared: frozenset[str] | None = None
    if table.limit is not None:
        shared = _columns_of(description, chain[chain.index(table.limit.per) :])
    elif sorting:
        shared = _columns_of(description, chain, but_changing=[table.counts])
    # If the universe reads what may change, the record may come in when its unit goes.
    return Stability((Move(1, shared, shared, alone=True, both_ways=bool(sifting)),), because)


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
    because = f"one {of_unit} brings at most {most} {record} records"
    if limit is not None and limit.per in above_unit:
        shared = _columns_of(description, chain[chain.index(limit.per) :])
        text = f"{because}, which displace as many of the same {files[limit.per].record}"
        return Stability((Move(most, shared, shared, alone=True),), text)
    # Each unit has one record of its own file, perhaps outside the universe, and perhaps none of those below; but an
    # id is there because a record has it.
    always = table.counts == unit or files[unit].ids_in == table.counts
    idle = not always or bool(sifting_columns(description, table))
    return Stability((Move(most, None, None, alone=True, idle=idle),), because)


def _columns_of(description: Description, files: Collection[str], but_changing: Collection[str] = ()) -> frozenset[str]:
    """The columns of files, but for those that are not fixed of some."""
    return frozenset(
        name
        for name, column in description.columns.items()
        if column.file in files and (column.fixed or column.file not in but_changing)
    )


def _reads(
    description: Description, table: DescribedTable, level: DescribedLevel, above_unit: Collection[str]
) -> tuple[set[str], set[str]]:
    """The files above the unit of which columns that may change tell cells apart, and those that the universe reads."""
    columns = description.columns

    def changing(names: Collection[str]) -> set[str]:
        # Responses and blocks are of files without others above or below them.
        read = [columns[name] for name in names if name in columns]
        return {column.file for column in read if column.file in above_unit and not column.fixed}

    return changing(sorting_columns(description, table, level)), changing(sifting_columns(description, table))


def sifting_columns(description: Description, table: DescribedTable) -> set[str]:
    """The columns that decide whether a record is of the universe; the block, too, if those of some are left out."""
    domains = {name: column.column.domain for name, column in description.columns.items()}
    found = {name for name, values in table.universe.columns if not values.issuperset(domains[name])}
    if description.blocks is not None and description.blocks.chosen is not None:
        found.add(description.files[table.counts].block)
    return found


def sorting_columns(description: Description, table: DescribedTable, level: DescribedLevel) -> set[str]:
    """The columns, responses and blocks that tell areas, groups and cells of a level apart within the universe."""
    conditions = [*table.cells, *(description.group(table, code) for code in level.groups)]
    within = dict(table.universe.columns)

    def values(name: str) -> Collection[int]:
        return within.get(name, description.columns[name].column.domain)

    found = {
        name
        for where in dict.fromkeys(conditions)
        for name, wanted in where.columns
        if not wanted.issuperset(values(name))
    }
    found |= {in_join(*name.split(".", 1)) for name in description.of_responses(level)}
    area = description.areas[level.areas]
    if area.blocks or area.chosen is not None:
        found.add(description.files[table.counts].block)
    if area.column and len({area.of[value] for value in values(area.column)}) > 1:
        found.add(area.column)
    return found


def _changing_columns(description: Description, table: DescribedTable, level: DescribedLevel, file: str) -> set[str]:
    columns = description.columns
    names = sorting_columns(description, table, level) | sifting_columns(description, table)
    read = [columns[name] for name in names if name in columns]
    return {f"{file}.{column.name}" for column in read if column.file == file and not column.fixed}


def derive(description: Description, table: DescribedTable, level: DescribedLevel) -> Derived:
    """Derive the sensitivities of a table at a level (docs/tables-privacy.md, theorems 1 and 2).

    Squared L2 under zCDP, L1 under pure differential privacy.

    Raises
    ------
    ConfigError
        If no bound holds, or nothing that is protected moves the table.
    """
    # Reading, planning and telling ask the same; what is no part of the description is never looked up.
    is_own = any(table is own for own in description.tables) and any(level is own for own in table.levels)
    found: Derived | None = description.derived.get((table.name, level.name)) if is_own else None
    if found is None:
        found = _derive(description, table, level)
        if is_own:
            description.derived[table.name, level.name] = found
    return found


def _derive(description: Description, table: DescribedTable, level: DescribedLevel) -> Derived:
    stable, of = stability(description, table, level), footprints(description, table, level)
    power = description.mechanism.power
    groups = [
        f"{number} {'group' if number == 1 else 'groups'} by {description.attributes[response][1]}"
        for response, number in of.by_responses.items()
    ]
    unbounded, one_less = max(move.unbounded(of, power) for move in stable.moves)
    bounded, replaced = max(move.bounded(of, power) for move in stable.moves)
    return Derived(
        Sensitivity(unbounded=Fraction(unbounded), bounded=Fraction(bounded)),
        {"unbounded": one_less, "bounded": replaced},
        of.overlap,
        f"{stable.because}, each in at most {' and '.join(groups)}" if groups else stable.because,
    )
