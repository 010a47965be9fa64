"""Random small descriptions and databases for them, and every neighbour of a database, by brute force.

A database is a mapping of (file, id) to a record; everything is counted by going through all of them, without SQL.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from random import Random
from typing import Any

PARENTS = {"a": "", "b": "a", "c": "b", "d": "a"}
"""Two files below `a`; one more below one of them."""

CODES = ("1", "2")
COLUMNS = ("x", "y")


@dataclass(frozen=True)
class Record:
    parent: str
    values: tuple[str, ...]


Database = dict[tuple[str, str], Record]


def chain(file: str) -> list[str]:
    found = [file]
    while PARENTS[found[-1]]:
        found.append(PARENTS[found[-1]])
    return found


def random_document(rng: Random) -> dict[str, Any]:
    """A description with one table; many are refused, as they have no sensitivity."""
    unit, counts = rng.choice("abcd"), rng.choice("abcd")
    columns = [f"{file}.{column}" for file in chain(counts) for column in COLUMNS]

    def where(most: int) -> dict[str, Any]:
        return {name: rng.choice(CODES) for name in rng.sample(columns, rng.randint(0, min(most, len(columns))))}

    above = chain(unit)[1:]
    files = {}
    for file, parent in PARENTS.items():
        told: dict[str, Any] = {"key": "id", "columns": {}}
        if parent:
            told["parent"] = {"file": parent, "column": "of"}
        for column in COLUMNS:
            told["columns"][column] = {"codes": list(CODES), "fixed": file in above and rng.random() < 0.5}
        files[file] = told
    cells = {f"cell {i}": where(2) for i in range(rng.randint(1, 3))}
    table: dict[str, Any] = {"counts": counts, "where": where(1), "cells": cells, "overlapping": True}
    if (above_counts := chain(counts)[1:]) and rng.random() < 0.6:
        table["limit"] = {"per": rng.choice(above_counts), "most": rng.randint(1, 3)}
    areas: dict[str, Any] = {"everywhere": {}}
    level = "everywhere"
    if rng.random() < 0.4:
        areas["kind"] = {"column": rng.choice(columns)}
        if rng.random() < 0.5:
            areas["kind"]["of"] = {code: rng.sample(["N", "S"], rng.randint(1, 2)) for code in CODES}
        level = "kind"
    elif (own := Random(f"{files} {table}")).random() < 0.15:  # noqa: S311 (no noise)
        # Other draws are as without it.
        areas["kind"] = {"columns": own.sample(columns, own.randint(2, min(3, len(columns))))}
        level = "kind"
    levels = {}
    groups = {}
    if rng.random() < 0.4:
        groups = {"G": {"where": where(1)}, "H": {"where": where(1)}}
        levels = {"level": {"areas": level, "groups": ["G", "H"]}}
        level = "level"
    return {
        "name": "small",
        "unit": unit,
        "privacy_defn": rng.choice(["zcdp", "puredp"]),
        "files": files,
        "areas": areas,
        "groups": groups,
        "levels": levels,
        "tables": {"t": {**table, "budget": {level: "1"}}},
    }


def random_database(rng: Random) -> Database:
    made: Database = {}

    def grow(file: str, parent: str, number: int) -> None:
        values = tuple(rng.choice(CODES) for _ in COLUMNS)
        for _ in range(number):
            name = f"{file}{len(made)}"
            # Alike records are the worst: they move together.
            own = values if rng.random() < 0.7 else tuple(rng.choice(CODES) for _ in COLUMNS)
            made[file, name] = Record(parent, own)
            for child in (child for child, of in PARENTS.items() if of == file):
                grow(child, name, rng.randint(0, 4 if child == "c" else 2))

    grow("a", "", rng.randint(1, 2))
    return made


def below(database: Database, of: tuple[str, str]) -> set[tuple[str, str]]:
    """A record and all that belong to it."""
    found = {of}
    for file in ("a", "b", "c", "d"):
        found |= {key for key, record in database.items() if key[0] == file and (PARENTS[file], record.parent) in found}
    return found


def without(database: Database, document: Mapping[str, Any], unit: tuple[str, str]) -> Iterator[Database]:
    """Every neighbour with one unit less: its ancestors changed in any way, or gone if nothing else is theirs."""
    rest = {key: record for key, record in database.items() if key not in below(database, unit)}
    yield from changed(rest, document, (PARENTS[unit[0]], database[unit].parent), may_vanish=True)


def changed(
    database: Database, document: Mapping[str, Any], place: tuple[str, str], *, may_vanish: bool
) -> Iterator[Database]:
    """A database with the records from a place upward changed in any way, except where they are fixed."""
    if not place[0]:
        yield database
        return
    record = database[place]
    above = PARENTS[place[0]], record.parent
    if may_vanish and below(database, place) == {place}:
        rest = {key: of for key, of in database.items() if key != place}
        yield from changed(rest, document, above, may_vanish=True)
    told = document["files"][place[0]]["columns"]
    choices = [
        (value,) if told[column]["fixed"] else CODES for column, value in zip(COLUMNS, record.values, strict=True)
    ]
    for values in product(*choices):
        yield from changed({**database, place: replace(record, values=values)}, document, above, may_vanish=False)


def arranged(document: Mapping[str, Any], rng: Random) -> tuple[Database, tuple[str, str]]:
    """A database made to be moved far, and the unit to take out: records alike, and others that they may displace.

    The first lie below the unit or beside it and come first in the order of the limit; the others share some of the
    records above the first.
    """
    (table,) = document["tables"].values()
    of, unit, limit = table["counts"], document["unit"], table.get("limit", {"per": "", "most": 1})
    made: Database = {}

    def add(file: str, parent: str, values: tuple[str, ...], first: str = "0123456789abcdef") -> str:
        while True:
            record, name = Record(parent, values), f"{file}{rng.randrange(10**9)}"
            if file != of or _order(name, record)[0] in first:
                made[file, name] = record
                return name

    kinds = [_countable(document, rng) for _ in range(2)]
    path = {"": ""}
    for file in (file for file in PARENTS if file in {*chain(of)[1:], *chain(unit)}):
        path[file] = add(file, path[PARENTS[file]], kinds[0][file], "01234567")
    for _ in range(rng.choice([0, limit["most"] - 1, limit["most"]])):
        add(of, path[PARENTS[of]], kinds[0][of], "01234567")
    if limit["per"]:
        between = chain(of)[1 : chain(of).index(limit["per"]) + 1]
        parent = path[at := rng.choice(between)]
        for file in reversed(between[: between.index(at)]):
            parent = add(file, parent, kinds[1][file])
        for _ in range(rng.choice([0, limit["most"], limit["most"]])):
            add(of, parent, kinds[1][of], "89abcdef")
    return made, (unit, path[unit])


def _countable(document: Mapping[str, Any], rng: Random) -> dict[str, tuple[str, ...]]:
    """Values for one record of every file, such that usually the universe holds one of the table's."""
    (table,) = document["tables"].values()
    found = {file: tuple(rng.choice(CODES) for _ in COLUMNS) for file in PARENTS}
    wanted = table["where"] | rng.choice([*table["cells"].values(), {}])
    return {
        file: tuple(
            wanted.get(f"{file}.{column}", value) if rng.random() < 0.8 else value
            for column, value in zip(COLUMNS, values, strict=True)
        )
        for file, values in found.items()
    }


def one_more(database: Database, document: Mapping[str, Any], rng: Random) -> Database | None:
    """One unit more, with what belongs to it, at a random place whose ancestors are changed at random."""
    file = document["unit"]
    parents = [key for key in database if key[0] == PARENTS[file]] if PARENTS[file] else [("", "")]
    if not parents:
        return None
    parent = rng.choice(parents)
    variants = list(changed(database, document, parent, may_vanish=False))
    grown = dict(rng.choice(variants))
    values = tuple(rng.choice(CODES) for _ in COLUMNS)

    def grow(file: str, parent: str) -> None:
        name = f"{file}new{len(grown)}"
        grown[file, name] = Record(parent, values)
        for child in (child for child, of in PARENTS.items() if of == file):
            for _ in range(rng.randint(0, 3)):
                grow(child, name)

    grow(file, parent[1])
    return grown


def counts(database: Database, document: Mapping[str, Any]) -> dict[tuple[str, str, str], int]:
    """The one table of a document, by area, group and cell, without zeros."""
    (table,) = document["tables"].values()
    (level,) = table["budget"]
    told = document["levels"].get(level, {"areas": level, "groups": ["*"]})
    kind = document["areas"][told["areas"]]
    found: dict[tuple[str, str, str], int] = {}
    for row in _kept(database, table):
        named = kind.get("columns", [kind["column"]] if "column" in kind else [])
        areas = ["".join(row[column] for column in named)]
        if "of" in kind:
            areas = kind["of"][areas[0]]
        for area, group, (cell, condition) in product(areas, told["groups"], table["cells"].items()):
            of_group = {} if group == "*" else document["groups"][group]["where"]
            if _holds(row, of_group) and _holds(row, condition):
                found[area, group, cell] = found.get((area, group, cell), 0) + 1
    return found


def _kept(database: Database, table: Mapping[str, Any]) -> list[dict[str, str]]:
    """The joined records that a table counts, its limit applied."""
    rows = sorted(
        (_joined(database, key) for key in database if key[0] == table["counts"]), key=lambda row: row["order"]
    )
    rows = [row for row in rows if _holds(row, table["where"])]
    if "limit" not in table:
        return rows
    seen: dict[str, int] = {}
    few = []
    for row in rows:
        parent = row[table["limit"]["per"]]
        seen[parent] = seen.get(parent, 0) + 1
        if seen[parent] <= table["limit"]["most"]:
            few.append(row)
    return few


def _joined(database: Database, key: tuple[str, str]) -> dict[str, str]:
    """A record beside those above it: their columns, their ids by file, and its place in the order of a limit."""
    row = {"order": _order(key[1], database[key])}
    while key[0]:
        record = database[key]
        row[key[0]] = key[1]
        row |= {f"{key[0]}.{column}": value for column, value in zip(COLUMNS, record.values, strict=True)}
        key = PARENTS[key[0]], record.parent
    return row


def _order(name: str, record: Record) -> str:
    return hashlib.sha256("|".join(["", name, record.parent, *record.values, "1"]).encode()).hexdigest()


def _holds(row: Mapping[str, str], condition: Mapping[str, str]) -> bool:
    return all(row[column] == value for column, value in condition.items())


def distance(one: Mapping[Any, int], other: Mapping[Any, int], power: int) -> int:
    return sum(abs(one.get(key, 0) - other.get(key, 0)) ** power for key in one.keys() | other.keys())
