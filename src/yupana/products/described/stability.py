"""How far a table moves when one privacy unit changes, or one column: derived from links, limits and fixed columns.

In which cells a record can count, and how far two are apart, decides that with how many records move. The theorems and
their proofs are in docs/tables-privacy.md. Public: nothing here sees a record.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt, prod
from typing import Final

import numpy as np

from yupana.arrays import Flags, Ints
from yupana.errors import ConfigError
from yupana.plan.measurement import Sensitivity
from yupana.plan.predicates import Classes, TooManyClassesError, Where, alike, classify
from yupana.plan.responses import most_groups
from yupana.products.described.description import AreaKind, DescribedLevel, DescribedTable, Description, in_join

_MOST_COMPARED: Final = 1 << 28
"""Most products of a class, a class and a cell that are compared at once."""

_MOST_SETS: Final = 1 << 10
"""Most sets of classes, or of areas, that are gone through."""

_HEAVIEST: Final = 64
"""How many classes are compared first: usually two of them are as far apart as two can be."""


@dataclass(frozen=True, slots=True)
class Cells:
    """A number of cells, ``exact`` unless it is an upper bound only."""

    number: int
    exact: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Footprints:
    """The sets of cells of a level (area by group by cell) that one record of a table's universe can count in."""

    overlap: Cells  # the most cells that one record counts in, whatever its columns hold
    kind: AreaKind
    # the columns that tell in which areas of the kind a record lies; none where one area holds everything
    places: frozenset[str]
    # of combinations of values, by the groups, cells and number of areas that they count in; None if there are too many
    # combinations
    classes: Classes | None
    within: Flags  # shape (classes,): which are of the universe
    # of each group of conditions its cells: an empty name, and 1. Of all groups by one response together the cells of
    # one of them: the response, and how many of the groups a record is in at most.
    rows: tuple[tuple[str, int], ...]
    members: Flags  # shape (rows, classes)
    areas: Ints  # shape (classes,): how many areas the records of a class lie in
    common: Ints  # how many areas two records have in common at least, by how many each lies in
    _known: dict[frozenset[str], Cells] = field(default_factory=dict, init=False)

    def apart(self, shared: Collection[str]) -> Cells:
        """The most cells that exactly one of two records of the universe counts in, which agree in some columns.

        Parameters
        ----------
        shared : collection of str
            The columns, as a join names them; and responses, and the block as one column, of descriptions with blocks.
        """
        # Each of some kinds of neighbours asks the same.
        key = frozenset(shared)
        if key not in self._known:
            self._known[key] = self._apart(key)
        return self._known[key]

    def _apart(self, shared: Collection[str]) -> Cells:
        most = 2 * self.overlap.number
        if self.classes is None:
            return Cells(most, exact=False)
        sizes = self.classes.sizes
        same = [place for place, name in enumerate(self.classes.terms) if name in shared]
        rows = np.moveaxis(self.classes.class_of.reshape(sizes), same, range(len(same)))
        rows = rows.reshape(prod(sizes[place] for place in same), -1)
        rows = np.sort(np.ascontiguousarray(rows), axis=1)
        sets = rows[alike(rows.view(np.uint8))[0]]
        if len(sets) > _MOST_SETS:
            return Cells(most, exact=False)
        best = Cells(0, exact=True)
        for row in sets:
            classes = row[np.diff(row, prepend=-1) > 0]
            found = self._farthest(classes[self.within[classes]], shared)
            best = max(best, found, key=lambda cells: (cells.number, cells.exact))
            if best == Cells(most, exact=True):
                break
        return best

    def _farthest(self, classes: Ints, shared: Collection[str]) -> Cells:
        """Of records of some classes that agree in some columns: in their areas if what tells these is among them."""
        if not len(classes):
            return Cells(0, exact=True)
        one_area, number = self.places <= {*shared}, np.array([number for _, number in self.rows])
        # Two records that may answer otherwise may be in groups of which none is of both.
        agreeing = np.array([response in {"", *shared} for response, _ in self.rows])
        plain = bool(agreeing.all() and (number == 1).all())
        weight = self.areas[classes] * (number @ self.members[:, classes])
        heaviest, most = classes[np.argsort(-weight, kind="stable")], 2 * int(weight.max())
        for some in (heaviest[:_HEAVIEST], heaviest):
            if len(some) ** 2 * len(self.members) > _MOST_COMPARED:
                break
            of = self.members[:, some].astype(np.float32)
            together = of.T @ of
            both = together if plain else (of[agreeing].T * number[agreeing]) @ of[agreeing]
            areas = self.areas[some]
            weight = areas * (number @ of).astype(np.int64)
            common = areas[:, None] if one_area else self.common[areas[:, None], areas]
            far = weight[:, None] + weight - 2 * common * both.astype(np.int64)
            best = int(far.max())
            # Records without a cell in common may lie in any areas, and answer anything; others in areas that cells do
            # not read.
            apart = not together[far == best].all()
            exact = apart or (agreeing.all() and (one_area or self._areas_are_free(shared)))
            if best == most or len(some) == len(classes):
                return Cells(best, self.overlap.exact and bool(exact))
        return Cells(most, exact=False)

    def _areas_are_free(self, shared: Collection[str]) -> bool:
        """Whether records of every class, which agree in some columns, may lie in each set of areas of one size."""
        if self.places & {*shared}:
            return False
        atoms = dict(zip(self.classes.terms, self.classes.sizes, strict=True)) if self.classes else {}
        sizes = {len(inside) for inside in self.kind.of}
        read = prod(atoms.get(column, 1) for column in self.kind.columns)
        return read == len(sizes) and len(set(self.kind.of)) <= _MOST_SETS


def footprints(description: Description, table: DescribedTable, level: DescribedLevel) -> _Footprints:
    """Find the sets of cells of a level that records of a table can count in."""
    kind = description.areas[level.areas]
    places = frozenset([description.files[table.counts].block] if kind.blocks else kind.columns)
    groups, exact = _groups(description, level)
    of_group = description.predicates(table, [code for _, _, code in groups])
    predicates = [cell for _, _, code in groups for cell in of_group[code]]
    rows = tuple((response, number) for response, number, _ in groups for _ in table.cells)
    sizes = sorted({len(inside) for inside in kind.of}) or [1]
    lying_in = [frozenset(at for at, inside in enumerate(kind.of) if len(inside) == size) for size in sizes]
    # Combinations of several columns lie in one area each.
    lie_in = [Where(((kind.columns[0], values),)) for values in lying_in if len(sizes) > 1]
    try:
        classes = classify(description.of_record(table), [table.universe, *predicates, *lie_in])
    except TooManyClassesError:
        bound = Cells(kind.overlap * sum(number for _, number in rows), exact=False)
        nothing = np.zeros((0, 0), dtype=np.bool_)
        return _Footprints(bound, kind, places, None, nothing.ravel(), rows, nothing, *np.zeros((2, 0), dtype=np.int64))
    (within,), members, numbers = np.split(classes.members, [1, 1 + len(predicates)])
    areas = np.array(sizes) @ numbers if lie_in else np.full(classes.count, sizes[0])
    counted = np.array([number for _, number in rows]) @ members
    overlap = Cells(int((areas * counted).max(initial=0)), exact)
    return _Footprints(overlap, kind, places, classes, within, rows, members, areas.astype(np.int64), _in_common(kind))


def _groups(description: Description, level: DescribedLevel) -> tuple[list[tuple[str, int, str]], bool]:
    """Groups of conditions, each with its code; of each response how many groups a record is in, and the code of one.

    And whether some record is in so many groups of every response.
    """
    by_response, exact = description.of_responses(level), True
    decided = {code for groups in by_response.values() for code in groups}
    found = [("", 1, code) for code in level.groups if code not in decided]
    for name, groups in by_response.items():
        number, attained = most_groups(groups.values(), {name: description.responses[name].most})
        found.append((in_join(*name.split(".", 1)), number, next(iter(groups))))
        exact = exact and attained
    return found, exact


def _in_common(kind: AreaKind) -> Ints:
    """How many areas two records have in common at least, by how many each lies in; 0 where that is unknown."""
    sets = dict.fromkeys(kind.of)
    if len(sets) > _MOST_SETS or kind.blocks:
        return np.zeros((kind.overlap + 1, kind.overlap + 1), dtype=np.int64)
    inside = np.zeros((len(sets), len(kind.codes)), dtype=np.float32)
    for row, areas in zip(inside, sets, strict=True):
        row[list(areas)] = 1
    both = (inside @ inside.T).astype(np.int64)
    found = np.full((kind.overlap + 1, kind.overlap + 1), kind.overlap, dtype=np.int64)
    np.minimum.at(found, (np.diag(both)[:, None], np.diag(both)), both)
    return found


@dataclass(frozen=True, slots=True)
class Move:
    """Records that may appear in cells and disappear from others when one unit changes."""

    # at most so many appear, and so many disappear. Each that appears stands against one that disappears, or none.
    records: int
    # columns in which two that stand against each other agree; None if records only appear or only disappear
    shared: frozenset[str] | None
    # columns such that some neighbours move all of the records, from any values to any that agree in these; None if
    # that is not known of any
    attained: frozenset[str] | None
    alone: bool  # whether some neighbours move all of the records with none against them
    # whether records may appear with none against them when a unit is removed, as well as disappear
    both_ways: bool = False
    idle: bool = True  # whether it is known that a unit may be removed, or added, and move nothing

    def unbounded(self, of: _Footprints, power: int) -> tuple[int, bool]:
        """How far the records move at most when a unit is removed or added, and whether some neighbours do."""
        paired, known = self._pairs(of)
        most = max(paired, of.overlap.number)
        alone = self.alone and of.overlap == Cells(most, exact=True)
        return self.records**power * most, alone or known == most

    def bounded(self, of: _Footprints, power: int) -> tuple[int, bool]:
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

    def _pairs(self, of: _Footprints) -> tuple[int, int | None]:
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
    """What follows for the sensitivities of a table at a level."""

    sensitivity: Sensitivity
    # for `unbounded` and `bounded` neighbours, whether some are so far; else it is an upper bound that none exceeds,
    # and how far the farthest are is not known
    attained: dict[str, bool]
    overlap: Cells  # the most cells that one record counts in
    because: str  # why, in words


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
    read = [sorting_columns(description, table, level), sifting_columns(description, table)]
    # Responses and blocks are of files without others above or below them.
    may_change = {name: of for name, of in description.columns.items() if of.file in above_unit and not of.fixed}
    sorting, sifting = ({may_change[name].file for name in names & may_change.keys()} for names in read)
    # The highest file above the unit whose records may change so that the table sees it.
    changing = [file for file in chain if file in sorting | sifting or (file == table.counts and file in above_unit)]
    if not changing:
        return _of_own_records(description, table, chain, above_unit)
    top = changing[-1]
    if top == table.counts:
        because = f"the {record} that a {files[unit].record} belongs to may change, appear or vanish"
        return _of_one_record(description, table, sorting, sifting, because)
    if table.limit is None or table.limit.per not in chain[chain.index(top) :]:
        moving = (of for name, of in may_change.items() if of.file == top and name in read[0] | read[1])
        columns = ", ".join(sorted(f"{of.file}.{of.name}" for of in moving))
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
    # id is there because a record has it, and a questionnaire because a line has its ids.
    always = table.counts == unit or files[unit].ids_in == table.counts or files[unit].lines_of == (table.counts,)
    idle = not always or bool(sifting_columns(description, table))
    return Stability((Move(most, None, None, alone=True, idle=idle),), because)


def _columns_of(description: Description, files: Collection[str], but_changing: Collection[str] = ()) -> frozenset[str]:
    """The columns of files, but for those that are not fixed of some."""
    return frozenset(
        name
        for name, column in description.columns.items()
        if column.file in files and (column.fixed or column.file not in but_changing)
    )


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
    return found | _telling_areas(description, area, within)


def _telling_areas(description: Description, kind: AreaKind, within: Mapping[str, Collection[int]]) -> set[str]:
    """The columns of which two values that the universe holds, beside others that it holds, are of different areas."""
    if not kind.columns:
        return set()
    held = []
    for name, values in zip(kind.columns, kind.values, strict=True):
        some = within.get(name, description.columns[name].column.domain)
        held.append([place for place, value in enumerate(values) if value in some])
    number = {areas: place for place, areas in enumerate(dict.fromkeys(kind.of))}
    areas: Ints = np.array([number[inside] for inside in kind.of], dtype=np.int64).reshape(
        tuple(map(len, kind.values))
    )[np.ix_(*held)]
    return {
        name for axis, name in enumerate(kind.columns) if areas.size and (areas != areas.take([0], axis=axis)).any()
    }


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
        for response, number in dict(of.rows).items()
        if response
    ]
    unbounded, one_less = max(move.unbounded(of, power) for move in stable.moves)
    bounded, replaced = max(move.bounded(of, power) for move in stable.moves)
    return Derived(
        Sensitivity(unbounded=Fraction(unbounded), bounded=Fraction(bounded)),
        {"unbounded": one_less, "bounded": replaced},
        of.overlap,
        f"{stable.because}, each in at most {' and '.join(groups)}" if groups else stable.because,
    )


def column_move(description: Description, table: DescribedTable, level: DescribedLevel, name: str) -> Move | None:
    """Which records appear and disappear in a table when a column of a unit's records changes; None if none does.

    Parameters
    ----------
    name : str
        The column as joins call it, of the unit's file or one below it.
    """
    unit, limit, file = description.unit, table.limit, description.attributes[name][0]
    if file not in description.chain(table.counts):
        return None
    sorts = name in sorting_columns(description, table, level)
    sifts = name in sifting_columns(description, table)
    # A limit keeps the first by a hash of the records' own fields.
    orders = limit is not None and file == table.counts and name in description.columns
    if not (sorts or sifts or orders):
        return None
    most = limit.most if limit is not None and table.counts != unit else 1
    if not (sorts or orders) and file == unit and (limit is None or limit.per == unit):
        return Move(most, None, None, alone=False)
    # Without a limit, or where it keeps the same records, each stands against itself.
    kept = description.chain(limit.per if limit is not None and (sifts or orders) else table.counts)
    shared = frozenset(other for other, (of, _) in description.attributes.items() if of in kept and other != name)
    return Move(most, shared, None, alone=False)
