"""Attribute privacy loss: the most a plan of the S-DHC loses where one person differs in some attributes only.

The definition is that of the Census Bureau's slides, loss_A = sup over databases that differ in one record, and there
in the attributes A only; what is searched and what is proven of it is told in docs/attribute-loss.md. What one
household adds to the counts of the S-DHC, and what it costs when that changes, follows from a plan alone.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, lru_cache, partial
from itertools import groupby, product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats, Ints
from yupana.audit.attribute.households import (
    AGES,
    HOUSEHOLDER,
    RACES,
    RELATIONS,
    Household,
    Individual,
    Ordered,
    Person,
    UnitRecord,
    faults_of,
    others_of,
    person_of,
    places,
    reason_against,
    recoded,
    targets,
    unit_record,
    without,
)
from yupana.errors import ConfigError, InputError
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
    """The loss of a plan against any difference of the counts of a household."""

    plan: Plan  # of PHSafe
    taus: Mapping[str, int]  # by table
    # nation, state: shape (204,): loss by entry of `ENTRIES` and by unit of squared distance (of distance, under pure
    # DP), at the levels of the nation and of a state
    nation: Floats
    state: Floats
    _persons: dict[tuple[Person, UnitRecord], _Counted] = field(default_factory=dict)
    _units: dict[UnitRecord, tuple[int, ...]] = field(default_factory=dict)

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
        room = [self.taus[table.name] for table in _OF_PERSONS]
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


ATTRIBUTES: Final = ("Sex", "Age", "Race", "Ethnicity", "Relation", "HouseholdID", "Tenure")
"""Attributes of a person's record; tenure is that of the person's household."""

TENURES: Final = (1, 2, 3)
"""Owned with a mortgage, owned free and clear, rented: what the tables tell apart."""


@dataclass(frozen=True, slots=True)
class Secret:
    """What somebody may want to hide, and the attributes that would give it away."""

    name: str
    attributes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Change:
    """What happens to one unit, before and after; an empty or unknown unit has no people."""

    before: Household
    after: Household


@dataclass(frozen=True, slots=True)
class AttributeLoss:
    """The largest loss found."""

    value: Fraction  # rho under zCDP, epsilon under pure DP
    changes: tuple[Change, ...]  # where it is attained: one unit, or two for a move; empty where no change is possible
    same_state: bool  # whether the two units lie in one state
    tried: int  # how many pairs of households were compared


@dataclass(slots=True)
class _Differences:
    """Differences of counts, each once, with a change that makes it."""

    costs: Costs
    changes: dict[bytes, tuple[Ints, Change]] = field(default_factory=dict)
    tried: int = 0

    def add(self, before: Household, after: Household) -> None:
        """Note what a change does to the counts."""
        self.note(Change(before, after), self.costs.contribution(after) - self.costs.contribution(before))

    def note(self, change: Change, difference: Ints) -> None:
        """Note a change, with what it does to the counts."""
        self.tried += 1
        self.changes.setdefault(difference.tobytes(), (difference, change))

    def ranked(self) -> tuple[NDArray[np.int64], list[Change], NDArray[np.float64]]:
        """The differences from the most to the least costly, with changes and losses."""
        found = list(self.changes.values())
        losses = np.array([self.costs.loss(difference) for difference, _ in found])
        order = np.argsort(-losses, kind="stable").tolist()
        stacked = np.array([found[i][0] for i in order], dtype=np.int64)
        return stacked, [found[i][1] for i in order], losses[order]


def attribute_loss(costs: Costs, individual: Individual, attributes: Collection[str]) -> AttributeLoss:
    """Search for the largest loss where an individual's record changes in some attributes, in all ways they can.

    Parameters
    ----------
    attributes : collection of str
        Of `ATTRIBUTES`. More attributes never lose less.

    Raises
    ------
    InputError
        If the individual's household cannot exist, saying why.
    """
    if reason := reason_against(individual):
        raise InputError(f"{individual.name}: this household cannot exist: {reason}")
    staying = frozenset(attributes) - {"HouseholdID"}
    best = _staying(costs, individual, staying)
    if "HouseholdID" in attributes:
        moved = _moving(costs, individual, staying)
        best = replace(max(best, moved, key=lambda loss: loss.value), tried=best.tried + moved.tried)
    return best


def _variants(individual: Individual, attributes: frozenset[str]) -> tuple[list[Person], list[Person]]:
    """The person before, as far as it is told, and after: every value of the attributes, the others as before."""
    told = person_of(individual)
    race = sorted({*RACES, (told.race, told.ethnicity)})
    races = sorted({r for r, _ in race}) if "Race" in attributes else [told.race]
    ethnicities = sorted({e for _, e in race}) if "Ethnicity" in attributes else [told.ethnicity]
    before = product(
        [told.sex] if individual.sex is not None or "Sex" not in attributes else _sexes(individual),
        races if individual.race is None else [told.race],
        ethnicities if individual.ethnicity is None else [told.ethnicity],
    )
    after = product(
        (1, 2) if "Sex" in attributes else [told.sex],
        sorted({*AGES, told.age}) if "Age" in attributes else [told.age],
        races,
        ethnicities,
        sorted({*RELATIONS, told.relation}) if "Relation" in attributes else [told.relation],
    )
    return (
        [Person(sex, told.age, r, e, told.relation) for sex, r, e in before],
        [Person(*values) for values in after],
    )


def _arrivals(individual: Individual, attributes: frozenset[str]) -> list[Person]:
    """The person where a move ends: as before, and of another class of age and another race and ethnicity.

    These are fewer than `_variants`: in a move, what households as a whole do outweighs by far what one person does.
    """
    told = person_of(individual)
    found = {
        told._replace(
            age=age if "Age" in attributes else told.age,
            race=race if "Race" in attributes else told.race,
            ethnicity=ethnicity if "Ethnicity" in attributes else told.ethnicity,
        )
        for age, (race, ethnicity) in product((told.age, *_AGES_OF_ARRIVAL), ((told.race, told.ethnicity), *RACES[:2]))
    }
    return sorted(found)


_AGES_OF_ARRIVAL: Final = (8, 40)


def _sexes(individual: Individual) -> list[int]:
    known = individual.known_sex
    return [known] if individual.is_householder or individual.others is not None else [1, 2]


def _staying(costs: Costs, individual: Individual, attributes: frozenset[str]) -> AttributeLoss:
    """The largest loss where the person stays in the household."""
    befores, afters = _variants(individual, attributes)
    least = min(costs.taus.values())
    truncated = individual.size > least
    tenure = 1 if individual.tenure is None else individual.tenure
    tenures = sorted({*TENURES, tenure}) if "Tenure" in attributes else [tenure]
    best, changes, tried = Fraction(0), tuple[Change, ...](), 0
    largest = 0.0
    for others in others_of(individual, person_of(individual), least, moving=False):
        where_to = places(others, truncated=truncated)
        first = [h for p in befores for h in _living(p, others, tenure, individual, where_to)]
        then = [h for p in afters for t in tenures for h in _living(p, others, t, None, where_to)]
        if not first or not then:
            continue
        contributions = np.array([costs.contribution(h) for h in then])
        for household in first:
            differences = contributions - costs.contribution(household)
            losses = costs.each(differences) @ (costs.nation + costs.state)
            tried += len(then)
            place = int(losses.argmax())
            if losses[place] > largest:
                largest = float(losses[place])
                best = costs.exact(differences[place], np.zeros_like(differences[place]))
                changes = (Change(household, then[place]),)
    return AttributeLoss(best, changes, same_state=True, tried=tried)


def _living(
    person: Person, others: Ordered, tenure: int, wanted: Individual | None, standing: tuple[int, ...]
) -> Iterator[Household]:
    """The households of a person with others, if they can exist and are of the type wanted, by where the person is."""
    for place in standing:
        people = recoded((*others[:place], person, *others[place:]))
        if not faults_of(people) and (wanted is None or dict(unit_record(people, tenure))["HHT2"] == wanted.type):
            yield Household(people, tenure)


def _moving(costs: Costs, individual: Individual, attributes: frozenset[str]) -> AttributeLoss:
    """The largest loss where the person moves: out of the household, and into any other or none that is counted."""
    befores, _ = _variants(individual, attributes)
    afters = _arrivals(individual, attributes)
    least = min(costs.taus.values())
    truncated = individual.size > least
    tenure = 1 if individual.tenure is None else individual.tenure
    free = "Tenure" in attributes
    left = _Differences(costs)
    tenures = sorted({*TENURES, tenure}) if free else [tenure]
    for before, others in product(befores, list(others_of(individual, person_of(individual), least, moving=True))):
        for place in places(others, truncated=truncated):
            for household in _living(before, others, tenure, individual, (place,)):
                for people, new in product(without(household.people, place), tenures):
                    left.add(household, Household(people, new))
    fixed, changing = _joining(costs, tuple(afters))
    return _together(costs, left, changing if free else fixed)


@lru_cache(maxsize=4)
def _joining(costs: Costs, afters: tuple[Person, ...]) -> tuple[_Differences, _Differences]:
    """What it does to a unit that somebody moves in: without and with a change of its tenure.

    It does nothing, where the unit is not counted. Individuals alike, and their secrets, share the answer.
    """
    fixed, changing = _Differences(costs), _Differences(costs)
    fixed.add(_EMPTY, _EMPTY)
    changing.add(_EMPTY, _EMPTY)
    # Whoever joins them, those who were there before are often the same.
    without_one = cache(partial(_by_tenure, costs))
    for after in sorted({person._replace(relation=HOUSEHOLDER) for person in afters}):
        for people, place in targets(after, costs.taus.values()):
            joined = _by_tenure(costs, people)
            for rest in without(people, place):
                left = without_one(rest)
                for old, new in _TENURES_OF_A_TARGET:
                    change, difference = Change(left[old][0], joined[new][0]), joined[new][1] - left[old][1]
                    changing.note(change, difference)
                    if old == new:
                        fixed.note(change, difference)
    return fixed, changing


def _by_tenure(costs: Costs, people: Ordered) -> dict[int, tuple[Household, Ints]]:
    """Households of the same people, by tenure, each with what it adds to the counts."""
    found = [Household(people, tenure) for tenure in (TENURES[0], TENURES[-1])]
    return {household.tenure: (household, costs.contribution(household)) for household in found}


_EMPTY: Final = Household((), 0)

_TENURES_OF_A_TARGET: Final = ((1, 1), (1, 3), (3, 1))


def _together(costs: Costs, left: _Differences, joined: _Differences) -> AttributeLoss:
    """The largest loss of one difference of each kind, in one state or in two."""
    tried = left.tried * joined.tried
    if not left.changes:
        return AttributeLoss(Fraction(0), (), same_state=True, tried=tried)
    firsts, first_changes, first_losses = left.ranked()
    seconds, second_changes, second_losses = joined.ranked()
    # The triangle inequality, of L2 distances or of L1 distances, leaves out the seconds that cannot win.
    power = 1 / costs.plan.mechanism.power
    floor = max(costs.loss(seconds[0] + first) for first in firsts[:_LEADERS])
    kept = int((second_losses**power >= floor**power - first_losses[0] ** power - 1e-12).sum())
    seconds = seconds[:kept]
    alone = costs.each(seconds) @ costs.state
    best, pair, same = -1.0, (0, 0), True
    for i, first in enumerate(firsts):
        if (first_losses[i] ** power + second_losses[0] ** power) ** (1 / power) <= best:
            break
        both = costs.each(seconds + first)
        nation, together = both @ costs.nation, both @ costs.state
        apart = costs.each(first) @ costs.state + alone
        for in_one, total in ((True, nation + together), (False, nation + apart)):
            place = int(total.argmax())
            if total[place] > best + _TIE:
                best, pair, same = float(total[place]), (i, place), in_one
    one, two = firsts[pair[0]], seconds[pair[1]]
    value = costs.exact(one + two, np.zeros_like(one)) if same else costs.exact(one, two)
    return AttributeLoss(value, (first_changes[pair[0]], second_changes[pair[1]]), same_state=same, tried=tried)


_LEADERS: Final = 50
_TIE: Final = 1e-15
"""Losses that differ by less are one: which of their households is told then does not depend on rounding."""
