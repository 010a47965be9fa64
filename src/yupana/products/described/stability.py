"""How far a table moves when one privacy unit changes: derived from links, limits and fixed columns.

The theorems and their proofs are in docs/tables-privacy.md. Public: nothing here sees a record.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from yupana.errors import ConfigError
from yupana.plan.measurement import Mechanism, Sensitivity
from yupana.products.described.description import DescribedLevel, DescribedTable, Description
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
    """

    records: int
    shared: frozenset[str] | None
    attained: frozenset[str] | None
    alone: bool

    @property
    def twice(self) -> "Move":
        """What a replacement moves that moves so much twice, the second time the other way round."""
        return replace(self, records=2 * self.records)

    def cells(self, of: Footprints) -> Cells:
        """How many cells one of the records, with the one against it, counts in otherwise than before."""
        one = of.overlap
        if self.shared is None:
            return one
        most = max(of.apart(self.shared), one, key=lambda cells: cells.number)
        found = [of.apart(self.attained)] if self.attained is not None else []
        found += [one] if self.alone else []
        return Cells(most.number, any(cells.exact and cells.number == most.number for cells in found))


@dataclass(frozen=True, slots=True)
class Stability:
    """How many records of a table can appear and disappear, for each kind of neighbours.

    Attributes
    ----------
    unbounded : tuple of Move
        One unit is added or removed: what can happen.
    bounded : tuple of Move
        One unit is replaced.
    because : str
        Why, in words.
    """

    unbounded: tuple[Move, ...]
    bounded: tuple[Move, ...]
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
        all_or_none = Move(most, None, None, alone=True)
        own = (Move(most if below else 1, shared, shared, alone=False),) if unit in chain else ()
        return Stability((all_or_none, *own), (all_or_none.twice, *(move.twice for move in own)), because)
    moved = [file for file in chain[1:] if file in sifting]
    beside = unit not in chain and table.counts not in above_unit
    attained = shared
    if not (below or any(file != per for file in moved) or (most == 1 and not beside)):
        # The same records count before and after, but for one.
        attained = _columns_of(description, chain, but_changing=[file for file in above_unit if file != table.counts])
        shared = attained if beside else shared
    move = Move(most, shared, attained, alone=bool(moved) or below or (most == 1 and not beside))
    return Stability((move,), (replace(move.twice, alone=bool(moved)),), because)


def _of_one_record(
    description: Description, table: DescribedTable, sorting: Collection[str], sifting: Collection[str], because: str
) -> Stability:
    """Where a record that is counted is above the unit, and no other changes."""
    chain = description.chain(table.counts)
    if table.limit is not None:
        shared = _columns_of(description, chain[chain.index(table.limit.per) :])
    elif sorting:
        shared = _columns_of(description, chain, but_changing=[table.counts])
    else:
        alone = Move(1, None, None, alone=True)
        # A record that is gone stands against a new one; if the universe reads what may change, two may come in.
        nothing = frozenset[str]()
        replaced = (alone.twice,) if sifting else (Move(1, nothing, nothing, alone=True),)
        return Stability((alone,), replaced, because)
    move = Move(1, shared, shared, alone=True)
    return Stability((move,), (replace(move.twice, alone=bool(sifting)),), because)


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
        move = Move(most, shared, shared, alone=True)
        text = f"{because}, which displace as many of the same {files[limit.per].record}"
        return Stability((move,), (replace(move.twice, alone=False),), text)
    nothing = frozenset[str]()
    # Each unit has one record of its own file, perhaps outside the universe, and perhaps none of those below.
    replaced = Move(most, nothing, nothing, alone=table.counts != unit or bool(_sifting(description, table)))
    return Stability((Move(most, None, None, alone=True),), (replaced,), because)


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
        return {columns[name].file for name in names if columns[name].file in above_unit and not columns[name].fixed}

    return changing(_sorting(description, table, level)), changing(_sifting(description, table))


def _sifting(description: Description, table: DescribedTable) -> set[str]:
    """The columns that decide whether a record is of the universe."""
    domains = {name: column.column.domain for name, column in description.columns.items()}
    return {name for name, values in table.universe.columns if not values.issuperset(domains[name])}


def _sorting(description: Description, table: DescribedTable, level: DescribedLevel) -> set[str]:
    """The columns that tell areas, groups and cells of a level apart within the universe."""
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
    area = description.areas[level.areas]
    if area.column and len({area.of[value] for value in values(area.column)}) > 1:
        found.add(area.column)
    return found


def _changing_columns(description: Description, table: DescribedTable, level: DescribedLevel, file: str) -> set[str]:
    columns = description.columns
    names = _sorting(description, table, level) | _sifting(description, table)
    return {f"{file}.{columns[n].name}" for n in names if columns[n].file == file and not columns[n].fixed}


def derive(description: Description, table: DescribedTable, level: DescribedLevel) -> Derived:
    """Derive the sensitivities of a table at a level (docs/tables-privacy.md, theorems 1 and 2).

    Squared L2 under zCDP, L1 under pure differential privacy.

    Raises
    ------
    ConfigError
        If no bound holds, or nothing that is protected moves the table.
    """
    stable, of = stability(description, table, level), footprints(description, table, level)
    unbounded, bounded = (_farthest(moves, of, description.mechanism) for moves in (stable.unbounded, stable.bounded))
    return Derived(
        Sensitivity(unbounded=unbounded[0], bounded=bounded[0]),
        {"unbounded": unbounded[1], "bounded": bounded[1]},
        of.overlap,
        stable.because,
    )


def _farthest(moves: Sequence[Move], of: Footprints, mechanism: Mechanism) -> tuple[Fraction, bool]:
    """How far the moves go at most, and whether one of them goes so far."""
    found = []
    for move in moves:
        cells = move.cells(of)
        found.append((Fraction(move.records**mechanism.power * cells.number), cells.exact))
    return max(found)
