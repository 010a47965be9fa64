"""What one household adds to the counts of the S-DHC, and what it costs when that changes: from a plan alone."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import groupby
from typing import Final

import numpy as np

from yupana.arrays import Floats, Ints
from yupana.audit.attribute.households import Household, Person, UnitRecord, unit_record
from yupana.errors import ConfigError
from yupana.plan.plan import Plan
from yupana.products.described.description import DescribedTable, in_join
from yupana.products.phsafe.specification import LEVELS, S_DHC, TABLES, cells_of, iterations_of

ENTRIES: Final = tuple(
    (table.name, code, cell) for table in TABLES for code in iterations_of(table) for cell in cells_of(table)
)
"""Every table, iteration and basis cell of one region: 204."""

_PLACE: Final = {entry: place for place, entry in enumerate(ENTRIES)}
_OF_PERSONS: Final = tuple(table for table in TABLES if table.counts == "persons")
_OF_UNITS: Final = tuple(table for table in TABLES if table.counts == "units")
_PERSON: Final = frozenset(in_join("persons", name) for name in S_DHC.files["persons"].columns)

_HOUSING_UNIT: Final = {in_join("geo", "RTYPE"): 2}

_Counted = tuple[tuple[int, tuple[int, ...]], ...]


@dataclass(frozen=True, eq=False)
class Costs:
    """The loss of a plan against any difference of the counts of a household.

    Attributes
    ----------
    plan : Plan
        Of PHSafe.
    taus : mapping of table to int
    nation, state : ndarray of float64, shape (204,)
        Loss by entry of `ENTRIES` and by unit of squared distance (of distance, under pure DP), at the levels of the
        nation and of a state.
    """

    plan: Plan
    taus: Mapping[str, int]
    nation: Floats
    state: Floats
    _persons: dict[tuple[Person, UnitRecord], _Counted] = field(default_factory=dict)
    _units: dict[UnitRecord, tuple[int, ...]] = field(default_factory=dict)

    @cached_property
    def _room(self) -> tuple[int, ...]:
        return tuple(self.taus[table.name] for table in _OF_PERSONS)

    def contribution(self, household: Household) -> Ints:
        """What a household adds to the counts of its state, and to those of the nation: shape (204,).

        Of the persons in a table's universe the first tau are counted, in the order of `Household.people`. A unit
        that is empty or not counted adds nothing.
        """
        if not household.people:
            return np.zeros(len(ENTRIES), dtype=np.int64)
        unit = unit_record(household.people, household.tenure)
        # A list is quicker than an array where single entries are counted.
        counts = [0] * len(ENTRIES)
        for place in self._of_unit(unit):
            counts[place] += 1
        room = list(self._room)
        # Alike people stand side by side more often than not.
        for person, alike in groupby(household.people):
            number = sum(1 for _ in alike)
            for table, entries in self._of_person(person, unit):
                kept = min(number, room[table])
                room[table] -= kept
                for place in entries:
                    counts[place] += kept
        return np.array(counts, dtype=np.int64)

    def loss(self, difference: Ints) -> float:
        """Loss where the counts of one state and of the nation differ so."""
        return float(self.each(difference) @ (self.nation + self.state))

    def each(self, difference: Ints) -> Floats:
        """By entry the squared distance, or the distance under pure DP."""
        return np.asarray(np.abs(difference) ** self.plan.mechanism.power, dtype=np.float64)

    def exact(self, state: Ints, elsewhere: Ints) -> Fraction:
        """The loss as a fraction where two states differ, each in its own counts.

        Parameters
        ----------
        state, elsewhere : ndarray of int64, shape (204,)
            Differences of the counts of two states; the second is zero where all happens in one.
        """
        total = Fraction(0)
        for m in self.plan.measurements:
            level = LEVELS[m.level]
            rows = [_PLACE[entry] for entry in ENTRIES if entry[0] == m.table and entry[1] in level.groups]
            parts = [state + elsewhere] if level.areas == "USA" else [state, elsewhere]
            distance = sum(int(self.each(part)[rows].sum()) for part in parts)
            loss = m.loss(Fraction(distance))
            total += loss if isinstance(loss, Fraction) else Fraction(0)
        return total

    def _of_unit(self, unit: UnitRecord) -> tuple[int, ...]:
        if unit not in self._units:
            record = _of_unit(unit)
            self._units[unit] = tuple(place for table in _OF_UNITS for place in _places(table, record))
        return self._units[unit]

    def _of_person(self, person: Person, unit: UnitRecord) -> _Counted:
        """What a person enters, by the number of each table of persons in whose universe the person is."""
        if (person, unit) not in self._persons:
            values = (3, person.age, person.ethnicity, person.race, person.relation)
            names = ("RTYPE", "QAGE", "CENHISP", "CENRACE", "RELSHIP")
            own = {in_join("persons", name): value for name, value in zip(names, values, strict=True)}
            record = {**_of_unit(unit), **own}
            self._persons[person, unit] = tuple(
                (number, tuple(_places(table, record)))
                for number, table in enumerate(_OF_PERSONS)
                if own in table.universe.on(_PERSON)
            )
        return self._persons[person, unit]


def _of_unit(unit: UnitRecord) -> dict[str, int]:
    """A unit's record beside its geography, as a table reads it."""
    return {in_join("units", name): value for name, value in unit} | _HOUSING_UNIT


def _places(table: DescribedTable, record: dict[str, int]) -> Iterator[int]:
    """The entries of a table that a record counts in."""
    if record in table.universe:
        for code in iterations_of(table):
            if record in S_DHC.group(table, code):
                for cell, where in zip(cells_of(table), table.cells, strict=True):
                    if record in where:
                        yield _PLACE[table.name, code, cell]


def costs_of(plan: Plan, taus: Mapping[str, int]) -> Costs:
    """Price every entry by a plan.

    Raises
    ------
    ConfigError
        If a budget of the plan is infinite: without noise every change costs an infinite loss.
    """
    if not plan.is_finite:
        raise ConfigError("a budget is infinite: counts without noise protect nobody, so every loss is infinite")
    nation, state = np.zeros(len(ENTRIES)), np.zeros(len(ENTRIES))
    for m in plan.measurements:
        level = LEVELS[m.level]
        prices = nation if level.areas == "USA" else state
        for place, (table, code, _) in enumerate(ENTRIES):
            if table == m.table and code in level.groups:
                prices[place] += float(m.loss(Fraction(1)))
    return Costs(plan, taus, nation, state)
