"""What TopDown counts that PHSafe's files do not tell: a histogram of blocks, and the types of group quarters.

A histogram, text or Parquet, has a row for a block and a cell of the schema, with its count.

The major type of group quarters that a unit is of is told by its line, by a file of its own (``quarters``: MAFID,
QGQTYP), or by what its block has: the persons tell whether the unit is institutional, and the public list of facilities
which type that is, where a block has only one.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import duckdb
import numpy as np

from yupana.confidential.records.census_edited_file import load_lines, units_in_lines
from yupana.confidential.records.database import numbers
from yupana.confidential.records.declared import Rule, check_file, find_rules, occurs_twice
from yupana.confidential.records.reader import ascii_header, open_files, open_records, or_damaged
from yupana.confidential.records.sources import OpenedRecords, Source, forms
from yupana.confidential.records.validation import Finding
from yupana.files.columns import MAFID, UNITS, Column, RecordFile
from yupana.files.database import quoted
from yupana.files.delimited import column_types, parquet_rows
from yupana.files.names import folded
from yupana.topdown.queries import Attribute, Schema

HISTOGRAM: Final = RecordFile("histogram", "row", ())
"""Where the histogram of a data folder is; its columns follow the schema."""

UNKNOWN_BLOCK: Final = (
    "block is not among those of the spine: not in the geography, or left out because nothing stands there"
)

_BLOCK_CODES: Final = "codes_of_blocks"

_MOST: Final = 999_999_999


def open_histogram(
    db: duckdb.DuckDBPyConnection, source: Source, schema: Schema, codes: Sequence[str] = ()
) -> list[Finding]:
    """Open a histogram and check its values one by one.

    Columns may stand in any order. A level is written as its number, from 0, or as its label; as its label only where
    the labels are numbers themselves and would be taken for others.

    Parameters
    ----------
    codes : sequence of str
        All codes that a block can have, if they are any texts; a block is then its place among them. Else 16 digits.

    Returns
    -------
    list of Finding
        If there are none, the database holds the relation ``histogram``: block and count, int64, cell, int32, and
        record (`Source`).
    """
    if codes:
        db.register("codes_now", {"place": np.arange(len(codes)), "code": np.array(codes, dtype=object)})
        db.execute(f"CREATE TYPE {_BLOCK_CODES} AS ENUM (SELECT code FROM codes_now ORDER BY place)")
        db.unregister("codes_now")
    # Names of attributes are the user's, and may be words of the database.
    attributes = {f"a{place}": attribute for place, attribute in enumerate(schema.attributes)}
    called = {"block": "block", **{name: attribute.name for name, attribute in attributes.items()}, "count": "count"}
    values: dict[str, Callable[[str, str], str]] = {
        "block": _block_of_codes if codes else partial(_whole, "16", 10**16 - 1),
        **{name: partial(_level, attribute) for name, attribute in attributes.items()},
        "count": partial(_whole, "1,9", _MOST),
    }
    columns = tuple(Column(name, range(1)) for name in called)
    of_file = RecordFile(HISTOGRAM.name, HISTOGRAM.row, columns, called=tuple(called.items()), alias="cells")
    findings = open_records(db, source, of_file, lambda column, kind: values[column.name](column.name, kind))
    if all(finding.rule == "columns_present" for finding in findings):
        findings += _other_columns(db, source, [*called.values()])
    return findings or or_damaged(db, source, lambda: _check_values(db, source, schema, any_codes=bool(codes)))


def _other_columns(db: duckdb.DuckDBPyConnection, source: Source, expected: Sequence[str]) -> list[Finding]:
    """Find columns that the schema does not have: all cells would be wrong."""
    findings, ours = [], {*map(folded, expected)}
    for path, name in zip(source.paths, source.names, strict=True):
        text = ascii_header(path) if source.header else None
        header = text.names if text else tuple(column_types(db, parquet_rows([path])))
        # A name that is not ours could be a value where the header is missing, so it is placed and not shown.
        if others := [str(place) for place, column in enumerate(header, 1) if folded(column) not in ours]:
            told = f"unexpected column at position {', '.join(others)} of the header; expected {', '.join(expected)}"
            findings.append(Finding("no_other_columns", name, told))
    return findings


def find_strangers(db: duckdb.DuckDBPyConnection, source: Source) -> list[Finding]:
    """Find rows whose block is not in the relation ``known``."""
    broken = "block NOT IN (SELECT block FROM known)"
    rule = Rule("block_in_geography", HISTOGRAM.name, broken, UNKNOWN_BLOCK)
    return rule.find(db, "histogram", {HISTOGRAM.name: source})


def place_repetitions(db: duckdb.DuckDBPyConnection, source: Source) -> list[Finding]:
    """Say which rows repeat a block and cell, once it is known that some do."""
    broken = "(block, cell) IN (SELECT (block, cell) FROM histogram GROUP BY block, cell HAVING count(*) > 1)"
    text = "a block and cell have more than one row; give each one row, with the sum"
    return Rule("unique_cell", HISTOGRAM.name, broken, text).find(db, "histogram", {HISTOGRAM.name: source})


def _whole(digits: str, most: int, field: str, kind: str) -> str:
    """SQL for a whole number of so many digits as a text."""
    if kind != "VARCHAR":
        return f"CASE WHEN {field} BETWEEN 0 AND {most} THEN {field}::BIGINT END"
    return f"CASE WHEN regexp_full_match({field}, '[0-9]{{{digits}}}') THEN TRY_CAST({field} AS BIGINT) END"


def _block_of_codes(field: str, kind: str) -> str:
    text = field if kind == "VARCHAR" else f"{field}::VARCHAR"
    return f"enum_code(TRY_CAST({text} AS {_BLOCK_CODES}))::BIGINT"


def _level(attribute: Attribute, field: str, kind: str) -> str:
    """SQL for the number of a level."""
    text = field if kind == "VARCHAR" else f"{field}::VARCHAR"
    number = f"TRY_CAST({text} AS INTEGER)"
    # Text such as 01 or 1.0 is no number of a level.
    written = f"CASE WHEN {number} BETWEEN 0 AND {attribute.size - 1} AND {number}::VARCHAR = {text} THEN {number} END"
    if attribute.labels == tuple(map(str, range(attribute.size))):
        return written
    labels = ", ".join(map(quoted, attribute.labels))
    of_label = f"list_position([{labels}], {text}) - 1"
    return of_label if has_numbers(attribute) else f"coalesce({of_label}, {written})"


def has_numbers(attribute: Attribute) -> bool:
    """Whether a label is a number, and that of another level."""
    numbered = (label for level, label in enumerate(attribute.labels) if label != str(level))
    return any(label.isascii() and label.isdecimal() for label in numbered)


def _check_values(db: duckdb.DuckDBPyConnection, source: Source, schema: Schema, *, any_codes: bool) -> list[Finding]:
    rules = {
        "block": "block must be a unit of the last of areas.levels"
        if any_codes
        else "block must be a code of 16 digits: state, county, tract, block group, block",
        "count": f"count must be a whole number from 0 to {_MOST:,}",
    }
    for place, attribute in enumerate(schema.attributes):
        numbered = "" if has_numbers(attribute) else f" or its number, 0 to {attribute.size - 1}"
        rules[f"a{place}"] = f"{attribute.name} must be a label of the schema{numbered}"
    if numbers(db, "SELECT count(*) FROM cells") == (0,):
        return [Finding("not_empty", source.names[0], "the file has no rows; give at least one count, such as 0")]
    wrong = [Rule("domain", HISTOGRAM.name, f"{column} IS NULL", text) for column, text in rules.items()]
    broken = find_rules(db, "cells", wrong)
    findings = [finding for rule, records in broken.items() for finding in rule.told(records, source)]
    cell = "0"
    for place, size in enumerate(schema.shape):
        cell = f"({cell} * {size} + a{place})"
    db.execute(f"CREATE VIEW histogram AS SELECT block, {cell}::INTEGER AS cell, count, record FROM cells")
    return findings


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

_QUARTERS_CODES: Final = frozenset(code for codes in MAJOR_TYPES.values() for code in codes)
_QGQTYP: Final = Column(
    "QGQTYP",
    _QUARTERS_CODES,
    3,
    saying="a type of group quarters, a code of 3 digits such as 301",
    about="by its first digit: correctional, juvenile, nursing, other institutions, college, military, other",
)

QUARTERS: Final = RecordFile("quarters", "group quarters", (MAFID, _QGQTYP))
"""quarters.csv: the type of each group quarters, one row per unit of RTYPE 4."""

QUARTERS_LAYOUT: Final = units_in_lines(
    RecordFile("quarters", "unit", (UNITS["RTYPE"], MAFID, Column("QGQTYP", _QUARTERS_CODES | {0}, 3)))
)

_MAJOR: Final = f"(CASE QGQTYP // 100 {' '.join(f'WHEN {n} THEN {min(n, 7)}' for n in range(1, 10))} END)"

_KINDS: Final = {37: range(1, 5), 38: range(5, 8)}
"""RELSHIP of the persons in institutional and noninstitutional group quarters, and the major types of each."""


def type_quarters(census: OpenedRecords, *, listed: bool) -> list[Finding]:
    """Make the relation ``typed_quarters``: MAFID and major type, 1 to 7, of the group quarters with persons.

    Parameters
    ----------
    census : OpenedRecords
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
        # The lines of units were checked already but for these.
        findings = load_lines(db, census.files["units"], QUARTERS_LAYOUT, only=("RTYPE", 4))
    elif forms(census.folder, QUARTERS):
        findings = _read_quarters(db, census.folder)
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


def _read_quarters(db: duckdb.DuckDBPyConnection, folder: Path) -> list[Finding]:
    sources, findings = open_files(db, folder, {QUARTERS.name: QUARTERS})
    stranger = "MAFID NOT IN (SELECT MAFID FROM units WHERE RTYPE = 4)"
    text = "MAFID is not that of a unit of RTYPE 4 in the units file"
    rules = (
        Rule("unique_mafid", QUARTERS.name, occurs_twice(QUARTERS.relation, "MAFID"), "MAFID occurs twice"),
        Rule("quarters_has_unit", QUARTERS.name, stranger, text),
    )
    return findings + [wrong for of in sources.values() for wrong in check_file(db, of, QUARTERS, rules)[0]]


def _of_facilities(census: OpenedRecords) -> list[Finding]:
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


def _missing(census: OpenedRecords, broken: str, text: str) -> list[Finding]:
    return Rule("group_quarters_type", "persons", broken, text).find(census.db, "persons", census.files)
