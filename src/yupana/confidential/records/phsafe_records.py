"""A census in the Census Bureau's PHSafe files, opened, checked and ready to count.

Validation is outside the privacy guarantee (PHSafe, section 6.1): what it finds is confidential.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Final

import duckdb
import numpy as np

from yupana.confidential.records.census_edited_file import is_cef, open_cef
from yupana.confidential.records.database import cut_by, memory_limit, numbers, private_database
from yupana.confidential.records.object_store import require_at_hand
from yupana.confidential.records.reader import damaged_parts, open_files
from yupana.confidential.records.sources import OpenedRecords, Source, find_broken, no_names, tell
from yupana.confidential.records.validation import BrokenRecords, Finding, add_broken
from yupana.files.columns import BUREAU, GEO, MAFID, PERSONS, UNITS, ColumnMap, RecordFile
from yupana.files.database import STOPS
from yupana.privacy.sealed import Sealed
from yupana.products.phsafe.configuration import Policy

FILES: Final = (PERSONS, UNITS, GEO)

SYNTHETIC_MARK: Final = "SYNTHETIC"
"""A file of this name says that the records beside it are nobody's."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of consistency: SQL that is true for a record that breaks it.

    ``subject`` is ``units`` (with what their persons add up to: see `_UNITS_WITH_PERSONS`), ``persons``, or ``geo``
    (with the RTYPE of the units file as ``unit_type``). A ``remark`` forbids nothing and takes no policy.
    """

    name: str
    subject: str
    broken: str
    text: str
    remark: bool = False


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

_TWICE = "MAFID IN (SELECT MAFID FROM {0} GROUP BY MAFID HAVING count(*) > 1)"
# Of no values at all even NULL is none, which would make the answer one of the shard.
_ABSENT = "MAFID IS NOT NULL AND MAFID NOT IN (SELECT MAFID FROM {0} WHERE MAFID IS NOT NULL)"

_LINKS: Final = (
    Rule("unique_mafid", "units", _TWICE.format("units"), "MAFID occurs twice"),
    Rule("unique_mafid", "geo", _TWICE.format("geo"), "MAFID occurs twice"),
    Rule("person_has_unit", "persons", _ABSENT.format("units"), "MAFID is not in the units file"),
    Rule("geography_has_unit", "geo", _ABSENT.format("units"), "MAFID is not in the units file"),
    Rule("unit_has_geography", "units", _ABSENT.format("geo"), "MAFID is not in the geo file"),
)

ABSENT: Final = "state_present"
"""The rule of states that are asked for and absent. Whether one is, shards do not know."""

_NO_BLOCK: Final = "OIDTB is not among the OIDTABBLK of the reference files"

_KEYS_AT_A_TIME: Final = 30_000_000
_BYTES_OF_A_KEY: Final = 50
"""Of the memory of the database: what is held beside it while keys are compared."""

_BYTES_OF_A_UNIT: Final = 12
"""What the database must hold of a unit with its persons when it can put the rest on the disk."""


@dataclass(frozen=True, slots=True, repr=False)
class CheckedRecords(Sealed):
    """What the check of a census finds, before anybody words it; of several shards it adds up.

    A shard holds whole units: what is linked by MAFID is in one. Sums are associative and commutative.

    Attributes
    ----------
    rows : mapping of str to int
        Records of each file that was checked.
    broken : mapping of Rule to BrokenRecords
    states : frozenset of int
        Those with a housing unit.
    """

    rows: Mapping[str, int]
    broken: Mapping[Rule, BrokenRecords]
    states: frozenset[int]

    def __add__(self, other: "CheckedRecords") -> "CheckedRecords":
        rows = {name: self.rows.get(name, 0) + other.rows.get(name, 0) for name in {**self.rows, **other.rows}}
        return CheckedRecords(rows, add_broken(self.broken, other.broken), self.states | other.states)


@dataclass(frozen=True, slots=True, repr=False)
class Census(OpenedRecords):
    """Opened records: relations ``persons``, ``units``, ``geo`` of numbers with a column ``record``, and findings.

    The relation ``dropped_units`` holds the MAFIDs that a policy drops; ``states`` are those with a housing unit,
    or None where records could not be read.
    """

    states: frozenset[int] | None = None

    @property
    def is_synthetic(self) -> bool:
        """Whether the folder holds a file named SYNTHETIC."""
        return is_synthetic(self.folder)


def is_synthetic(folder: Path) -> bool:
    """Whether a data folder is marked as made up."""
    return (folder / SYNTHETIC_MARK).is_file()


@contextmanager
def open_census(
    folder: Path,
    *,
    states: frozenset[int],
    policies: Mapping[str, Policy],
    memory: int | None = None,
    rules: Sequence[Rule] = RULES,
    columns: ColumnMap = BUREAU,
) -> Iterator[Census]:
    """Open and validate a folder of persons, units and geo files, or of CEF files.

    Parameters
    ----------
    folder : Path
    states : frozenset of int
        State codes that may occur in TABBLKST.
    policies : mapping of str to Policy
        Policy by rule of consistency; `Policy.FAIL` where none is given.
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
    require_at_hand(folder)
    with private_database(memory) as db:
        cef = is_cef(folder)
        if cef and columns.names:
            raise no_names(folder)
        sources, findings = (
            open_cef(db, folder)
            if cef
            else open_files(db, folder, {schema.name: columns.applied(schema) for schema in FILES})
        )
        intact = not findings
        # What completes other records was checked where it stands.
        here = [schema for schema in FILES if schema.name in sources and not sources[schema.name].beside]
        for schema in here:
            try:
                findings += word_domains(check_domains(db, schema), sources[schema.name], schema)
            except STOPS:
                raise
            except duckdb.Error:
                findings += damaged_parts(db, sources[schema.name])
                intact = False
        seen = None
        if intact:
            checked = check_units(db, states, policies, rules)
            findings, seen = findings + word_units(checked, sources, states, policies, rules), checked.states
        # Units and their geography may be of the same lines, and wrong in the same.
        yield Census(db, folder, sources, tuple(dict.fromkeys(findings)), seen)


def _of_domain(schema: RecordFile) -> list[Rule]:
    return [Rule("domain", schema.name, f"{c.name} IS NULL", f"{c.name} must be {c.rule}") for c in schema.columns]


def _of_states(states: frozenset[int]) -> Rule:
    outside = f"TABBLKST NOT IN ({', '.join(map(str, sorted(states)))})"
    return Rule("state_in_filter", "geo", outside, "TABBLKST is not in the state_filter of the configuration")


def check_domains(db: duckdb.DuckDBPyConnection, schema: RecordFile) -> CheckedRecords:
    """Count the records of a file, and find values outside their column's domain."""
    counts = ", ".join(f"count(*) - count({name})" for name in schema.header)
    total, *wrong = numbers(db, f"SELECT count(*), {counts} FROM {schema.name}")
    rules = [rule for rule, count in zip(_of_domain(schema), wrong, strict=True) if count]
    broken = {rule: find_broken(db, schema.name, rule.broken) for rule in rules}
    return CheckedRecords({schema.name: total}, broken, frozenset())


def check_units(
    db: duckdb.DuckDBPyConnection,
    states: frozenset[int],
    policies: Mapping[str, Policy],
    rules: Sequence[Rule],
) -> CheckedRecords:
    """Find what does not go together in the relations ``persons``, ``units`` and ``geo`` of a census or a shard of it.

    Makes the relation ``dropped_units``.

    Parameters
    ----------
    db : duckdb.DuckDBPyConnection
    states : frozenset of int
        State codes that may occur in TABBLKST.
    policies : mapping of str to Policy
    rules : sequence of Rule
        Rules of consistency.
    """
    agree = _keys_agree(db)
    links = [_of_states(states)] if agree else [*_LINKS, _of_states(states)]
    broken = {}
    for rule in links:
        (count,) = numbers(db, f"SELECT count(*) FROM {rule.subject} WHERE {rule.broken}")
        if count:
            broken[rule] = find_broken(db, rule.subject, rule.broken)
    # What has been compared with the keys need not be compared again.
    broken |= _consistency(db, policies, [rule for rule in rules if not (agree and rule.subject == "geo")])
    seen = db.execute("SELECT DISTINCT TABBLKST FROM geo WHERE RTYPE = 2 AND TABBLKST IS NOT NULL").fetchall()
    return CheckedRecords({}, broken, frozenset(int(row[0]) for row in seen))


def word_domains(checked: CheckedRecords, source: Source, schema: RecordFile) -> list[Finding]:
    """Say what was found in a file, or in all shards of it; one of units or geography must not be empty."""
    findings = []
    if not checked.rows[schema.name] and schema is not PERSONS:
        findings.append(Finding("not_empty", source.called(schema.name), f"the file has no {schema.row}"))
    for rule in _of_domain(schema):
        if rule in checked.broken:
            findings += tell(checked.broken[rule], source, Finding(rule.name, "", rule.text))
    return findings


def word_units(
    checked: CheckedRecords,
    sources: Mapping[str, Source],
    states: frozenset[int],
    policies: Mapping[str, Policy],
    rules: Sequence[Rule],
) -> list[Finding]:
    """Say what does not go together in a census, or in all shards of it, in the order of the rules.

    Also states that are asked for and have no housing unit: a forgotten file, or records of a part of the nation.

    Parameters
    ----------
    checked : CheckedRecords
    sources : mapping of str to Source
        The files.
    states, policies, rules
        As `check_units` was given them.
    """
    findings = []
    for rule in (*_LINKS, _of_states(states), *_in_order(rules)):
        if rule in checked.broken:
            text = _NO_BLOCK if rule.name == "unit_has_geography" and sources["geo"].beside else rule.text
            drop = policies.get(rule.name) is Policy.DROP
            finding = Finding(rule.name, "", text, dropped=drop, remark=rule.remark)
            findings += tell(checked.broken[rule], sources[rule.subject], finding)
    return findings + tell_absent(states, checked.states, sources["geo"])


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


def _in_order(rules: Sequence[Rule]) -> list[Rule]:
    """Rules of consistency by the records that they are about."""
    return [rule for subject in _RELATIONS for rule in rules if rule.subject == subject]


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


def _consistency(
    db: duckdb.DuckDBPyConnection, policies: Mapping[str, Policy], checked: Sequence[Rule]
) -> dict[Rule, BrokenRecords]:
    """Rules of consistency, all counted in one pass over each file that they are about, or part by part."""
    found: dict[Rule, BrokenRecords] = {}
    db.execute(f"CREATE TABLE dropped_units AS SELECT NULL::{MAFID.storage} AS MAFID WHERE false")
    for part, (subject, relation) in product(parts_of_units(db), _RELATIONS.items()):
        rules = [rule for rule in checked if rule.subject == subject]
        if not rules:
            continue
        of_part = relation.format(part=part)
        counts = numbers(db, f"SELECT {', '.join(f'count_if({rule.broken})' for rule in rules)} FROM {of_part}")
        broken = [rule for rule, count in zip(rules, counts, strict=True) if count]
        found = add_broken(found, {rule: find_broken(db, of_part, rule.broken) for rule in broken})
        drops = [rule.broken for rule in broken if policies.get(rule.name) is Policy.DROP]
        if drops:
            units = f"SELECT MAFID FROM {of_part} WHERE ({') OR ('.join(drops)})"
            db.execute(f"INSERT INTO dropped_units ({units} EXCEPT FROM dropped_units)")
    return found
