"""A census in the Census Bureau's PHSafe files, as it is declared: links and rules of consistency.

Validation is outside the privacy guarantee (PHSafe, section 6.1): what it finds is confidential.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Final

import duckdb
import numpy as np

from yupana.confidential.records.census_edited_file import is_cef, open_cef
from yupana.confidential.records.database import cut_by, memory_limit, numbers
from yupana.confidential.records.declared import Declared, Edited, Link, Rule, find_rules, occurs_twice, open_declared
from yupana.confidential.records.sources import OpenedRecords, Source
from yupana.confidential.records.validation import BrokenRecords, Finding, add_broken
from yupana.files.columns import BUREAU, GEO, MAFID, PERSONS, UNITS, ColumnMap
from yupana.products.phsafe.configuration import Policy

FILES: Final = (PERSONS, UNITS, GEO)

_ZERO_CODES = ("HHSPAN", "HHRACE", "TEN", "HHT", "HHT2", "CPLT")
_VACANT_OR_GQ = "(RTYPE = 4 OR FINAL_POP = 0)"

RULES: Final = (
    Rule(
        "one_householder",
        "units",
        "RTYPE = 2 AND FINAL_POP > 0 AND householders <> 1",
        "an occupied unit must have exactly one person of RELSHIP 20",
    ),
    Rule(
        "householder_race",
        "units",
        "householders = 1 AND RTYPE = 2 AND (HHRACE <> householder_race OR HHSPAN <> householder_hisp)",
        "HHRACE and HHSPAN must equal CENRACE and CENHISP of the householder",
    ),
    Rule(
        "record_types",
        "units",
        "(RTYPE = 2 AND of_type_3 <> people) OR (RTYPE = 4 AND of_type_5 <> people)",
        "a unit of RTYPE 2 must have persons of RTYPE 3, a unit of RTYPE 4 persons of RTYPE 5",
    ),
    Rule(
        "group_quarters_relationship",
        "persons",
        "RELSHIP IN (37, 38) AND RTYPE <> 5",
        "RELSHIP 37 and 38 are for persons of RTYPE 5 only",
    ),
    Rule("final_pop", "units", "FINAL_POP <> people", "FINAL_POP must equal the number of persons of the unit"),
    Rule(
        "zero_codes",
        "units",
        f"({_VACANT_OR_GQ} AND NOT ({' AND '.join(f'{c} = 0' for c in _ZERO_CODES)}))"
        f" OR (NOT {_VACANT_OR_GQ} AND ({' OR '.join(f'{c} = 0' for c in _ZERO_CODES)}))",
        f"{', '.join(_ZERO_CODES)} must be zero in vacant units and group quarters, and nowhere else",
    ),
    Rule(
        "own_child",
        "units",
        "(HHT2 IN (1, 3, 6, 10)) <> own_child",
        "HHT2 01, 03, 06 and 10 go with an own child under 18 (RELSHIP 25 to 27), and only with one",
    ),
    Rule(
        "couple",
        "units",
        "(CPLT = 1) <> of_21 OR (CPLT = 2) <> of_23 OR (CPLT = 3) <> of_22 OR (CPLT = 4) <> of_24",
        "CPLT 1, 2, 3, 4 go with a person of RELSHIP 21, 23, 22, 24, and only with one",
    ),
    Rule(
        "couple_type",
        "units",
        "(HHT2 IN (1, 2)) <> (CPLT IN (1, 2)) OR (HHT2 IN (3, 4)) <> (CPLT IN (3, 4))",
        "HHT2 01 and 02 go with CPLT 1 or 2, HHT2 03 and 04 with CPLT 3 or 4, and only with these",
    ),
    Rule(
        "family_type",
        "units",
        "(HHT = 1) <> (HHT2 IN (1, 2))",
        "HHT 1 goes with HHT2 01 or 02, and only with these",
    ),
    Rule(
        "relatives_outside_family",
        "units",
        "HHT >= 4 AND relatives",
        "HHT says that this is no family, but RELSHIP 21, 23 or 25 to 33 is in it: PH4 and PH5 leave these persons out",
        remark=True,
    ),
    Rule("geo_record_type", "geo", "RTYPE <> unit_type", "RTYPE must be that of the unit in the units file"),
)
"""The rules of consistency, and no others (NPF is not checked, ages are not compared)."""

_SEEN = {"own_child": 1, "of_21": 2, "of_22": 4, "of_23": 8, "of_24": 16, "relatives": 2 + 8 + 32}
"""Bits of what is seen among the persons of a unit: few aggregates keep the grouping small."""

_PERSONS_BY_UNIT = f"""
    SELECT MAFID, count(*) AS people, count_if(RTYPE = 3) AS of_type_3, count_if(RELSHIP = 20) AS householders,
        max(CASE WHEN RELSHIP = 20 THEN CENRACE * 4 + CENHISP END) AS householder,
        bit_or(CASE RELSHIP WHEN 21 THEN {_SEEN["of_21"]} WHEN 22 THEN {_SEEN["of_22"]} WHEN 23 THEN {_SEEN["of_23"]}
            WHEN 24 THEN {_SEEN["of_24"]}
            ELSE CASE WHEN RELSHIP BETWEEN 25 AND 27 AND QAGE < 18 THEN {_SEEN["own_child"] + 32}
            WHEN RELSHIP BETWEEN 25 AND 33 THEN 32 ELSE 0 END
            END::UTINYINT) AS seen
    FROM persons WHERE {{part}} GROUP BY MAFID"""

_UNITS_WITH_PERSONS = f"""
    SELECT u.*, coalesce(people, 0) AS people, coalesce(of_type_3, 0) AS of_type_3,
        coalesce(people - of_type_3, 0) AS of_type_5, coalesce(householders, 0) AS householders,
        householder // 4 AS householder_race, householder % 4 AS householder_hisp,
        {", ".join(f"coalesce(seen & {bit} > 0, false) AS {name}" for name, bit in _SEEN.items())}
    FROM (SELECT * FROM units WHERE {{part}}) u LEFT JOIN ({_PERSONS_BY_UNIT}) p USING (MAFID)"""

_GEO_WITH_UNITS = """
    SELECT g.*, u.RTYPE AS unit_type FROM (SELECT * FROM geo WHERE {part}) g
    JOIN (SELECT MAFID, RTYPE FROM units WHERE {part}) u USING (MAFID)"""

_RELATIONS: Final = {
    "units": f"({_UNITS_WITH_PERSONS})",
    "persons": "(FROM persons WHERE {part})",
    "geo": f"({_GEO_WITH_UNITS})",
}
"""What rules of consistency are asked of, by the file that they are about: of units of a part, and what is theirs."""

_RELATION_OF: Final = {schema.name: schema.relation for schema in FILES}
_ABSENT: Final = "MAFID is not in the {} file"
_LINKS: Final[tuple[Rule | Link, ...]] = (
    *(Rule("unique_mafid", name, occurs_twice(name, "MAFID"), "MAFID occurs twice") for name in ("units", "geo")),
    Link("persons", "MAFID", "units", "MAFID", _ABSENT.format("units"), "person_has_unit"),
    Link("geo", "MAFID", "units", "MAFID", _ABSENT.format("units"), "geography_has_unit"),
    Link("units", "MAFID", "geo", "MAFID", _ABSENT.format("geo"), "unit_has_geography"),
)

ABSENT: Final = "state_present"
"""The rule of states that are asked for and absent. Whether one is, shards do not know."""

_NO_BLOCK: Final = "OIDTB is not among the OIDTABBLK of the reference files"

_KEYS_AT_A_TIME: Final = 30_000_000
_BYTES_OF_A_KEY: Final = 50
"""Of the memory of the database: what is held beside it while keys are compared."""

_BYTES_OF_A_UNIT: Final = 12
"""What the database must hold of a unit with its persons when it can put the rest on the disk."""

DROPPED_UNITS: Final = "dropped units"
DROPPED_PERSONS: Final = "dropped persons"
_HOUSING_OF: Final = "housing units of "


def open_census(
    folder: Path,
    *,
    states: frozenset[int],
    policies: Mapping[str, Policy],
    memory: int | None = None,
    rules: Sequence[Rule] = RULES,
    columns: ColumnMap = BUREAU,
) -> AbstractContextManager[OpenedRecords]:
    """Open and validate a folder of persons, units and geo files, or of CEF files.

    The relation ``dropped_units`` holds the MAFIDs that a policy drops. Notes tell how many records there are by file,
    how many are dropped, and how many housing units by state.

    Parameters
    ----------
    states : frozenset of int
        State codes that may occur in TABBLKST.
    policies : mapping of str to Policy
        Policy by rule of consistency; ``fail`` where none is given.
    memory : int, optional
        Bytes to get along with (`private_database`).
    rules : sequence of Rule
        Which rules of consistency to check.
    columns : ColumnMap
        What the files call their columns.

    Raises
    ------
    InputError
        If the folder is missing. Broken rules are findings of the census, not errors.
    """
    dropped = tuple(replace(rule, dropped=policies.get(rule.name) == "drop-and-count") for rule in rules)
    declared = Declared(
        {schema.name: columns.applied(schema) for schema in FILES},
        wanted=frozenset({UNITS.name, GEO.name}),
        edited=Edited(is_cef, open_cef),
        together=partial(_check_units, states, dropped),
        note=_count_census,
    )
    return open_declared(declared, folder, memory)


def _check_units(
    states: frozenset[int],
    rules: Sequence[Rule],
    db: duckdb.DuckDBPyConnection,
    sources: Mapping[str, Source],
) -> list[Finding]:
    """Find what does not go together in the relations of a census, and remark on states that are absent.

    Makes the relation ``dropped_units``.
    """
    outside = f"TABBLKST NOT IN ({', '.join(map(str, sorted(states)))})"
    links = [Rule("state_in_filter", "geo", outside, "TABBLKST is not in the state_filter of the configuration")]
    if not (agree := _keys_agree(db)):
        links = [*(of.rule(db, _RELATION_OF) if isinstance(of, Link) else of for of in _LINKS), *links]
    findings = []
    for rule in links:
        edited = rule.name == "unit_has_geography" and sources["geo"].beside
        told = replace(rule, text=_NO_BLOCK) if edited else rule
        findings += told.find(db, _RELATION_OF[rule.file], sources)
    # What has been compared with the keys need not be compared again.
    broken = _consistency(db, [rule for rule in rules if not (agree and rule.file == "geo")])
    for rule in (rule for file in _RELATIONS for rule in rules if rule.file == file and rule in broken):
        findings += rule.told(broken[rule], sources[rule.file])
    return findings + tell_absent(states, states_of(_count_housing(db)), sources["geo"])


_MOST_STATES: Final = 6
"""States that a message lists."""


def tell_absent(states: frozenset[int], seen: frozenset[int], geo: Source) -> list[Finding]:
    """Remark on states that are asked for and have no housing unit: a forgotten file, or records of a part of them."""
    absent = [f"{state:02}" for state in sorted(states - seen)]
    return [Finding(ABSENT, geo.called("geo"), absent_words(absent), remark=True)] if absent else []


def absent_words(states: Sequence[str]) -> str:
    """What is said of states that are asked for and have no housing unit."""
    some = [*states[:_MOST_STATES], *["..."] * (len(states) > _MOST_STATES)]
    told = f"{', '.join(some)} ({len(states)} in all)"
    return f"no housing unit in these states of state_filter: {told}; the tables have no rows of them"


def states_of(notes: Mapping[str, int]) -> frozenset[int]:
    """The states with a housing unit, by what notes tell."""
    return frozenset(int(name.removeprefix(_HOUSING_OF)) for name in notes if name.startswith(_HOUSING_OF))


def _count_housing(db: duckdb.DuckDBPyConnection) -> dict[str, int]:
    query = "SELECT TABBLKST, count(*) FROM geo WHERE RTYPE = 2 AND TABBLKST IS NOT NULL GROUP BY ALL"
    return {f"{_HOUSING_OF}{state:02}": int(number) for state, number in db.execute(query).fetchall()}


def _count_census(db: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Records by file, those that a policy drops, and housing units by state."""
    relations = {schema.name: schema.relation for schema in FILES} | {
        DROPPED_UNITS: "dropped_units",
        DROPPED_PERSONS: "persons SEMI JOIN dropped_units USING (MAFID)",
    }
    return {name: numbers(db, f"SELECT count(*) FROM {of}")[0] for name, of in relations.items()} | _count_housing(db)


def parts_of_units(db: duckdb.DuckDBPyConnection) -> list[str]:
    """Conditions on MAFID that cut units, with all that is theirs, into parts; where memory is ample one that holds."""
    (units,) = numbers(db, "SELECT count(*) FROM units")
    return cut_by(db, "MAFID", units, _BYTES_OF_A_UNIT)


def _keys_agree(db: duckdb.DuckDBPyConnection) -> bool:
    """Whether units and geo hold the same keys, each once and of one RTYPE, and the persons no other.

    Then no link can be broken.

    Sorting the keys is several times as fast as joining on them, which is left to files that are not in order.
    """
    rows, least, most = numbers(db, "SELECT count(*), min(MAFID), max(MAFID) FROM units")
    at_a_time = min(_KEYS_AT_A_TIME, max(1, memory_limit(db) // _BYTES_OF_A_KEY))
    between = np.linspace(least, most + 1, 2 + rows // at_a_time, dtype=np.int64).tolist()[1:-1]
    bounds = [MAFID.low, *between, MAFID.high + 1]  # keys of geo alone lie anywhere
    nulls = "SELECT count_if(MAFID IS NULL OR RTYPE IS NULL) FROM"
    if sum(numbers(db, f"SELECT ({nulls} units), ({nulls} geo)")):
        return False
    for low, high in pairwise(bounds):
        # Twice a MAFID still fits 32 bits, so that the record type is compared at no cost.
        units, geo = (
            np.sort(
                db.execute(
                    f"SELECT MAFID * 2 + (RTYPE = 4)::INTEGER AS code FROM {name} "
                    f"WHERE MAFID >= {low} AND MAFID < {high}"
                ).fetchnumpy()["code"]
            )
            for name in ("units", "geo")
        )
        if not np.array_equal(units, geo) or bool((units[1:] >> 1 == units[:-1] >> 1).any()):
            return False
    return not any(
        sum(
            numbers(
                db,
                f"SELECT count(*) FROM (FROM persons WHERE {part}) ANTI JOIN (FROM units WHERE {part}) USING (MAFID)",
            )
        )
        for part in parts_of_units(db)
    )


def _consistency(db: duckdb.DuckDBPyConnection, checked: Sequence[Rule]) -> dict[Rule, BrokenRecords]:
    """Rules of consistency, all counted in one pass over each file that they are about, or part by part."""
    found: dict[Rule, BrokenRecords] = {}
    db.execute(f"CREATE TABLE dropped_units AS SELECT NULL::{MAFID.storage} AS MAFID WHERE false")
    for part, (file, relation) in product(parts_of_units(db), _RELATIONS.items()):
        rules, of_part = [rule for rule in checked if rule.file == file], relation.format(part=part)
        broken = find_rules(db, of_part, rules)
        found = add_broken(found, broken)
        if drops := [rule.broken for rule in broken if rule.dropped]:
            units = f"SELECT MAFID FROM {of_part} WHERE ({') OR ('.join(drops)})"
            db.execute(f"INSERT INTO dropped_units ({units} EXCEPT FROM dropped_units)")
    return found
