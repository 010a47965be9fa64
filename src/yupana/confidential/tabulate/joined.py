"""Tabulate persons joined with their units, truncated, and units alone: one scan of the persons for all tables.

Counting is linear, so every table is counted without truncation first and the few records that truncation drops are
subtracted: only units with more persons than a threshold are ever sorted. They are sought among those whose FINAL_POP
passes the smallest, so the census must have been validated: a unit that hid its persons would escape truncation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.confidential.records.census import parts_of_units
from yupana.files.columns import PERSONS, UNITS, RecordFile
from yupana.plan.predicates import Classes, Where, as_sql, classify

Int64Array = NDArray[np.int64]

_HOUSING_UNIT = 2


@dataclass(frozen=True, slots=True)
class Tabulation:
    """One table to count.

    Attributes
    ----------
    name : str
    persons : Where or None
        Universe of persons, applied before truncation; None to count units.
    units : Where
        Universe of units.
    cells : sequence of Where
        Cells on columns of persons and units; a record counts in each cell it satisfies.
    tau : int or None
        Most persons of the universe kept per unit; None to keep all.
    """

    name: str
    persons: Where | None
    units: Where
    cells: tuple[Where, ...]
    tau: int | None = None

    def parts(self, columns: frozenset[str], universe: Where) -> list[Where]:
        """The cells' conditions on the columns of one file, within its universe."""
        return [universe & cell.on(columns) for cell in self.cells]


@dataclass(frozen=True, slots=True)
class Counts:
    """Exact counts of several tables.

    Attributes
    ----------
    states : tuple of int
        The states in which the geography file has a housing unit, ascending; public.
    by_table : mapping of str to int64 array, shape (states, cells)
    truncated : mapping of str to int
        Persons whom truncation left out, of those that some cell would count.
    """

    states: tuple[int, ...]
    by_table: Mapping[str, Int64Array]
    truncated: Mapping[str, int]


def merge_counts(parts: Sequence[Counts]) -> Counts:
    """Counts of shards together: in any order, and merged before or not, the same.

    Parameters
    ----------
    parts : sequence of Counts
        One at least, of the same tabulations with the same key. No unit is in two shards, and a unit with all its
        persons is in one: truncation is by unit.
    """
    states = tuple(sorted({state for part in parts for state in part.states}))
    place = {state: row for row, state in enumerate(states)}
    by_table = {
        name: np.zeros((len(states), of_table.shape[1]), dtype=np.int64) for name, of_table in parts[0].by_table.items()
    }
    for part in parts:
        rows = [place[state] for state in part.states]
        for name, of_table in part.by_table.items():
            by_table[name][rows] += of_table
    truncated = {name: sum(part.truncated[name] for part in parts) for name in parts[0].truncated}
    return Counts(states, by_table, truncated)


@dataclass(frozen=True, slots=True, eq=False)
class _Groups:
    """Records counted by state, unit class and person class: columns of one length."""

    state: Int64Array
    unit_class: Int64Array
    person_class: Int64Array
    count: Int64Array


def tabulate(db: duckdb.DuckDBPyConnection, tabulations: Sequence[Tabulation], truncation_key: str) -> Counts:
    """Count all tabulations over the relations ``persons``, ``units``, ``geo`` and ``dropped_units`` of a census.

    Persons count in the housing unit they are in, by the unit's state; group quarters and dropped units do not count.

    Parameters
    ----------
    db : duckdb.DuckDBPyConnection
    tabulations : sequence of Tabulation
    truncation_key : str
        Kept persons of a unit are the ``tau`` smallest by SHA-256 of this key, the record's fields in file order and
        its number among identical records, joined by ``|``.
    """
    of_units, of_persons = _columns(UNITS), _columns(PERSONS) - _columns(UNITS)
    with_persons = [t for t in tabulations if t.persons is not None]
    unit_predicates = [p for t in tabulations for p in t.parts(of_units, t.units)]
    person_predicates = [p for t in with_persons for p in t.parts(of_persons, t.persons or Where())]
    unit_classes, person_classes = classify(UNITS, unit_predicates), classify(PERSONS, person_predicates)
    _store_classes(db, "unit_classes", unit_classes)
    _store_classes(db, "person_classes", person_classes)
    # Units with all that is theirs are counted part by part, as shards are, where memory does not hold all.
    return merge_counts(
        [_tabulate_part(db, tabulations, unit_classes, person_classes, truncation_key, p) for p in parts_of_units(db)]
    )


def _tabulate_part(
    db: duckdb.DuckDBPyConnection,
    tabulations: Sequence[Tabulation],
    unit_classes: Classes,
    person_classes: Classes,
    key: str,
    part: str,
) -> Counts:
    """Count the units for whose MAFID a condition holds, and their persons."""
    with_persons = [t for t in tabulations if t.persons is not None]
    states = _open_units(db, unit_classes, part)
    units = _count_units(db, unit_classes)
    persons = _count_persons(db, unit_classes, person_classes, part)
    dropped = _count_dropped(db, unit_classes, person_classes, with_persons, key)

    by_table, truncated = {}, {}
    unit_place, person_place = 0, 0
    for t in tabulations:
        of_unit = unit_classes.members[unit_place : unit_place + len(t.cells)]
        unit_place += len(t.cells)
        if t.persons is None:
            by_table[t.name] = _cells(units, of_unit, np.ones_like(of_unit[:, :1]), len(states))
            continue
        of_person = person_classes.members[person_place : person_place + len(t.cells)]
        person_place += len(t.cells)
        by_table[t.name] = _cells(persons, of_unit, of_person, len(states))
        if (t.persons, t.tau) in dropped:
            left_out = dropped[t.persons, t.tau]
            by_table[t.name] -= _cells(left_out, of_unit, of_person, len(states))
            units_of_it, persons_of_it = np.logical_or.reduce(of_unit), np.logical_or.reduce(of_person)
            would_count = units_of_it[left_out.unit_class] & persons_of_it[left_out.person_class]
            truncated[t.name] = int(left_out.count[would_count].sum())
    return Counts(states, by_table, truncated)


def _columns(file: RecordFile) -> frozenset[str]:
    return frozenset(file.header)


def _cells(groups: _Groups, of_unit: NDArray[np.bool_], of_person: NDArray[np.bool_], states: int) -> Int64Array:
    """Sum groups into cells: shape (states, cells). Sums of counts are exact in int64."""
    out = np.zeros((states, len(of_unit)), dtype=np.int64)
    for cell, (units, persons) in enumerate(zip(of_unit, of_person, strict=True)):
        counts = units[groups.unit_class] & persons[groups.person_class]
        np.add.at(out[:, cell], groups.state[counts], groups.count[counts])
    return out


def _store_classes(db: duckdb.DuckDBPyConnection, name: str, classes: Classes) -> None:
    """Make a relation of combination and class, without those that no cell counts: joining with it filters, too."""
    combination = np.flatnonzero(classes.class_of)
    db.register("classes_now", {"combination": combination, "class": classes.class_of[combination]})
    db.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT combination::INTEGER AS combination, class FROM classes_now")
    db.unregister("classes_now")


def _open_units(db: duckdb.DuckDBPyConnection, classes: Classes, part: str) -> tuple[int, ...]:
    """Make the relation ``counted_units``: MAFID and one code for state and class, for units that any table counts.

    The states are those of all units, in any part.
    """
    housing = f"geo.RTYPE = {_HOUSING_UNIT}"
    found = db.execute(f"SELECT DISTINCT TABBLKST FROM geo WHERE {housing} ORDER BY 1").fetchall()
    states = tuple(int(row[0]) for row in found)
    place = f"list_position([{', '.join(map(str, states))}], geo.TABBLKST::INTEGER) - 1" if states else "0"
    db.execute(f"""
        CREATE OR REPLACE TABLE counted_units AS
        SELECT MAFID, (({place}) * {classes.count} + class)::INTEGER AS code
        FROM (SELECT MAFID, {classes.combination} AS combination FROM units WHERE {part})
        JOIN unit_classes USING (combination) JOIN (FROM geo WHERE {part}) geo USING (MAFID)
        WHERE {housing} AND MAFID NOT IN (SELECT MAFID FROM dropped_units)
        """)
    return states


def _groups(db: duckdb.DuckDBPyConnection, units: Classes, query: str) -> _Groups:
    """Run a query of code, person class and count."""
    columns = db.execute(query).fetchnumpy()
    code, person_class, count = (np.asarray(column, dtype=np.int64) for column in columns.values())
    return _Groups(code // units.count, code % units.count, person_class, count)


def _count_units(db: duckdb.DuckDBPyConnection, units: Classes) -> _Groups:
    return _groups(db, units, "SELECT code, 0, count(*) FROM counted_units GROUP BY code")


def _count_persons(db: duckdb.DuckDBPyConnection, units: Classes, persons: Classes, part: str) -> _Groups:
    return _groups(
        db,
        units,
        f"""
        SELECT code, class, count(*) FROM (SELECT MAFID, {persons.combination} AS combination FROM persons WHERE {part})
        JOIN person_classes USING (combination) JOIN counted_units USING (MAFID) GROUP BY code, class
        """,
    )


def _count_dropped(
    db: duckdb.DuckDBPyConnection, units: Classes, persons: Classes, tabulations: Sequence[Tabulation], key: str
) -> dict[tuple[Where, int | None], _Groups]:
    """Count the persons left out by each distinct truncation (universe and threshold)."""
    truncations = {(t.persons, t.tau): None for t in tabulations if t.persons is not None and t.tau is not None}
    if not truncations:
        return {}
    numbered = {f"universe_{number}": pair for number, pair in enumerate(truncations)}
    smallest = min(tau for _, tau in truncations if tau is not None)
    crowds = " OR ".join(f"count_if({as_sql(universe)}) > {tau}" for universe, tau in truncations)
    ranks = ", ".join(
        f"({as_sql(universe)}) AS {name}, "
        f"row_number() OVER (PARTITION BY MAFID, ({as_sql(universe)}) ORDER BY hash) AS {name}_rank"
        for name, (universe, _) in numbered.items()
    )
    fields = ", '|', ".join(
        f"lpad({column.name}::VARCHAR, {column.width}, '0')" if column.width else f"{column.name}::VARCHAR"
        for column in PERSONS.columns
    )
    same = ", ".join(PERSONS.header)
    # Identical records get the numbers 1, 2, ... among themselves; which gets which does not matter.
    db.execute(
        f"""
        CREATE OR REPLACE TABLE crowded AS
        WITH many AS MATERIALIZED (
            SELECT * FROM persons SEMI JOIN (
                SELECT MAFID FROM units SEMI JOIN counted_units USING (MAFID) WHERE FINAL_POP > {smallest}
            ) USING (MAFID)
        ), hashed AS (
            SELECT *, {persons.combination} AS combination,
                sha256(concat(?::VARCHAR, '|', {fields}, '|', row_number() OVER (PARTITION BY {same}))) AS hash
            FROM many SEMI JOIN (SELECT MAFID FROM many GROUP BY MAFID HAVING {crowds}) USING (MAFID)
        )
        SELECT MAFID, combination, {ranks}
        FROM hashed
        """,
        [key],
    )
    return {
        pair: _groups(
            db,
            units,
            f"""
            SELECT code, class, count(*)
            FROM crowded JOIN person_classes USING (combination) JOIN counted_units USING (MAFID)
            WHERE {name} AND {name}_rank > {pair[1]} GROUP BY code, class
            """,
        )
        for name, pair in numbered.items()
    }
