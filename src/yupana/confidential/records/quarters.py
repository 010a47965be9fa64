"""Which major type of group quarters each unit is of: told by its line, by a file of its own, or by what its block has.

PHSafe's units do not tell their type. So DATA may hold ``quarters`` (MAFID, QGQTYP); without it the persons tell
whether the unit is institutional, and the public list of facilities which type that is, where a block has only one.
"""

from pathlib import Path
from typing import Final

import duckdb

from yupana.confidential.records.cef import UNIT_LAYOUT
from yupana.confidential.records.census import Census
from yupana.confidential.records.database import numbers
from yupana.confidential.records.findings import Finding
from yupana.confidential.records.fixed_width import Layout, read_lines
from yupana.confidential.records.fixed_width import numbers as columns_of
from yupana.confidential.records.reader import damaged_parts, find_source, forms, open_records, place_finding
from yupana.files.columns import MAFID, UNITS, Column, RecordFile
from yupana.files.database import STOPS

MAJOR_TYPES: Final = {
    1: (101, 102, 103, 104, 105, 106),
    2: (201, 202, 203),
    3: (301,),
    4: (401, 402, 403, 404, 405),
    5: (501,),
    6: (601, 602),
    7: (701, 702, 704, 706, 801, 802, 900, 901, 903, 904),
}
"""QGQTYP of each major type: correctional, juvenile, nursing, other institutions, college, military, other."""

_CODES: Final = frozenset(code for codes in MAJOR_TYPES.values() for code in codes)
_QGQTYP: Final = Column("QGQTYP", _CODES, 3, saying="a type of group quarters, a code of 3 digits such as 301")

QUARTERS: Final = RecordFile("quarters", "group quarters", (MAFID, _QGQTYP))
"""quarters.csv: the type of each group quarters, one row per unit of RTYPE 4."""

_LINES: Final = Layout(
    RecordFile("quarters", "unit", (UNITS["RTYPE"], MAFID, Column("QGQTYP", _CODES | {0}, 3))),
    UNIT_LAYOUT.width,
    {"RTYPE": (0, 1), "MAFID": (1, 10), "QGQTYP": (33, 36)},
    frozenset({"QGQTYP"}),
)

_MAJOR: Final = f"(CASE QGQTYP // 100 {' '.join(f'WHEN {n} THEN {min(n, 7)}' for n in range(1, 10))} END)"

_KINDS: Final = {37: range(1, 5), 38: range(5, 8)}
"""RELSHIP of the persons in institutional and noninstitutional group quarters, and the major types of each."""


def type_quarters(census: Census, *, listed: bool) -> list[Finding]:
    """Make the relation ``typed_quarters``: MAFID and major type, 1 to 7, of the group quarters with persons.

    Parameters
    ----------
    census : Census
        Valid, with a relation ``placed`` of MAFID and ``place``, the position of the unit's block.
    listed : bool
        Whether there is a relation ``facilities``: columns ``place`` and ``major`` for each major type of each block.

    Returns
    -------
    list of Finding
        Group quarters whose type is not known.
    """
    db = census.db
    if census.files["geo"].beside:
        findings = _read_lines(census)
    elif forms(census.folder, QUARTERS):
        findings = _read_file(db, census.folder)
    elif listed:
        return _of_facilities(census)
    else:
        text = "no such file; hhgq needs MAFID and QGQTYP of the group quarters, or facilities in group_quarters.csv"
        findings = [Finding("file_present", " or ".join(QUARTERS.file_names), text)]
    if findings:
        return findings
    db.execute(f"CREATE TABLE typed_quarters AS SELECT MAFID, {_MAJOR}::UTINYINT AS major FROM quarters")
    broken = "RTYPE = 5 AND MAFID NOT IN (SELECT MAFID FROM typed_quarters WHERE major IS NOT NULL)"
    return _missing(census, broken, "the unit of a person of RTYPE 5 has no QGQTYP")


def _read_lines(census: Census) -> list[Finding]:
    """The types of group quarters out of the lines of units, which were checked already but for these."""
    db, source = census.db, census.files["units"]
    db.execute("CREATE TABLE quarters (MAFID INTEGER, QGQTYP SMALLINT)")
    for path in source.paths:
        for lines in read_lines(path, _LINES.width):
            db.register("lines_now", columns_of(lines, _LINES))
            db.execute("INSERT INTO quarters SELECT MAFID, QGQTYP FROM lines_now WHERE RTYPE = 4 AND QGQTYP > 0")
            db.unregister("lines_now")
    return []


def _read_file(db: duckdb.DuckDBPyConnection, folder: Path) -> list[Finding]:
    source, findings = find_source(folder, QUARTERS)
    if source is None or (findings := open_records(db, source, QUARTERS)):
        return findings
    twice = "MAFID IN (SELECT MAFID FROM quarters GROUP BY MAFID HAVING count(*) > 1)"
    stranger = "MAFID NOT IN (SELECT MAFID FROM units WHERE RTYPE = 4)"
    rules = [
        ("domain", f"{column.name} must be {column.rule}", f"{column.name} IS NULL") for column in QUARTERS.columns
    ]
    try:
        links = [
            ("unique_mafid", "MAFID occurs twice", twice),
            ("quarters_has_unit", "MAFID is not that of a unit of RTYPE 4 in the units file", stranger),
        ]
        for rule, text, broken in [*rules, *links]:
            (count,) = numbers(db, f"SELECT count(*) FROM quarters WHERE {broken}")
            if count:
                findings += place_finding(db, source, Finding(rule, "", text, count), "quarters", broken)
    except STOPS:
        raise
    except duckdb.Error:
        return damaged_parts(db, source)
    return findings


def _of_facilities(census: Census) -> list[Finding]:
    kinds = " ".join(f"WHEN {relship} THEN {kind}" for kind, relship in enumerate(_KINDS))
    of_types = " ".join(f"WHEN major <= {types[-1]} THEN {kind}" for kind, types in enumerate(_KINDS.values()))
    census.db.execute(f"""
        CREATE TABLE typed_quarters AS
        WITH single AS (
            SELECT place, CASE {of_types} END AS kind, min(major) AS major FROM facilities GROUP BY ALL
            HAVING count(*) = 1),
        quarters AS (
            SELECT MAFID, min(CASE RELSHIP {kinds} END) AS kind FROM persons WHERE RTYPE = 5 GROUP BY MAFID
            HAVING count(DISTINCT RELSHIP) = 1)
        SELECT MAFID, major::UTINYINT AS major
        FROM quarters JOIN placed USING (MAFID) JOIN single USING (place, kind)""")
    broken = "RTYPE = 5 AND MAFID NOT IN (SELECT MAFID FROM typed_quarters)"
    text = (
        "group_quarters.csv lists no facility for RELSHIP 37 or 38 in the block, or several types, so the type of the "
        "unit is not known; give MAFID and QGQTYP in quarters.csv"
    )
    return _missing(census, broken, text)


def _missing(census: Census, broken: str, text: str) -> list[Finding]:
    (count,) = numbers(census.db, f"SELECT count(*) FROM persons WHERE {broken}")
    finding = Finding("group_quarters_type", "", text, count)
    return place_finding(census.db, census.files["persons"], finding, "persons", broken) if count else []
