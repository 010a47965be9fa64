"""SafeTab's data folders: persons or households with detailed race and ethnicity codes, and the blocks they live in.

`open_detailed` opens and checks one; its relations ``records`` and ``blocks`` hold what tabulation needs. Validation is
outside the privacy guarantee: what it finds is confidential.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import duckdb

from hollerith.records.database import STOPS, numbers, open_database
from hollerith.records.findings import Finding, require_none
from hollerith.records.reader import (
    Source,
    damaged_parts,
    find_source,
    from_stored,
    open_records,
    parquet,
    place_finding,
    require_folder,
    stored_types,
)
from hollerith.records.schema import HOUSEHOLD_RECORDS, HOUSING_UNITS, PERSON_RECORDS, REFERENCE, Column, RecordFile

Kind: TypeAlias = Literal["person-records", "household-records"]

RECORDS: Final[Mapping[Kind, RecordFile]] = MappingProxyType(
    {"person-records": PERSON_RECORDS, "household-records": HOUSEHOLD_RECORDS}
)

_RACES: Final = tuple(f"QRACE{number}" for number in range(1, 9))
_CODED: Final = (*_RACES, "QSPAN")
_BLOCK: Final = ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLK")
NOTES: Final = (
    "records_of_other_states",
    "blocks_of_other_states",
    "qspan_is_race_code",
    "housing_units_outside_reference",
)
_NOT_TABULATED: Final = ("HOUSEHOLDER", "CENRACE", "HHRACE")

_BLOCK_CODE: Final = (
    "(TABBLKST::BIGINT * 10_000_000_000_000 + TABBLKCOU::BIGINT * 10_000_000_000"
    " + TABTRACTCE::BIGINT * 10_000 + TABBLK)"
)
"""SQL for the 15 digits of a block as a number, as ``housing-units.txt`` has them."""

_AFTER_BLANK: Final = " OR ".join(
    f"({race} = 0 AND greatest({', '.join(later)}) > 0)"
    for race, later in ((_RACES[i], _RACES[i + 1 :]) for i in range(1, 7))
)


@dataclass(frozen=True, slots=True)
class DetailedRecords:
    """Opened records, and the findings about them.

    If there are no findings, the database holds two relations, in which all values are whole numbers:

    ``records`` has a row for each record of the states asked for, with TABBLKST, TABBLKCOU, TABTRACTCE, TABBLK, QRACE1
    to QRACE8 (0 for Null), QSPAN, and QAGE and QSEX of persons or HOUSEHOLD_TYPE and TEN of households. Over Parquet it
    is a view: a query reads only the columns it names, and of the row groups only those of the states it names.

    ``blocks`` has a row for each block of these states, with TABBLKST, TABBLKCOU, TABTRACTCE, TABBLK, PLACEFP, AIANNHCE
    and housing_units: 0 for a block that the list of housing units leaves out, NULL if there is no list.

    Attributes
    ----------
    db : duckdb.DuckDBPyConnection
    folder : Path
    files : mapping of str to Source
        By name: records, GRF-C, and housing-units if there is such a list.
    findings : tuple of Finding
        Rules broken.
    notes : mapping of str to int
        What is no error but should be known: records_of_other_states, blocks_of_other_states, qspan_is_race_code
        (records whose QSPAN no ethnicity iteration has) and housing_units_outside_reference (blocks of the list that
        the reference file lacks).
    has_housing_units : bool
        Whether a list of housing units was given.
    """

    db: duckdb.DuckDBPyConnection
    folder: Path
    files: Mapping[str, Source]
    findings: tuple[Finding, ...]
    notes: Mapping[str, int]
    has_housing_units: bool

    def require_valid(self) -> None:
        """Refuse records that break rules.

        Raises
        ------
        InputError
            Naming every rule broken, how often and where.
        """
        require_none(self.findings)


@contextmanager
def open_detailed(
    folder: Path,
    kind: Kind,
    *,
    states: frozenset[int],
    codes: frozenset[int],
    ethnicity_codes: frozenset[int],
    memory: int | None = None,
) -> Iterator[DetailedRecords]:
    """Open and validate a folder of records, the reference file of blocks and, if it is there, the housing units.

    Parameters
    ----------
    folder : Path
    kind : {"person-records", "household-records"}
    states : frozenset of int
        State codes of the run. Records and blocks of others are left out and counted.
    codes : frozenset of int
        The race and ethnicity codes there are (RACE_ETH_CODE, 1000 to 9999).
    ethnicity_codes : frozenset of int
        Those that some ethnicity iteration holds.
    memory : int, optional
        Bytes to get along with (`open_database`).

    Raises
    ------
    InputError
        If the folder is missing. Broken rules are findings, not errors.
    """
    require_folder(folder)
    files = {"records": RECORDS[kind], "GRF-C": REFERENCE}
    # A list that is a folder or a broken link is refused, not passed over.
    if any(os.path.lexists(folder / name) for name in HOUSING_UNITS.file_names):
        files["housing-units"] = HOUSING_UNITS
    listed = "housing-units" in files
    with open_database(memory) as db:
        sources, findings = _open_files(db, folder, files)
        wrong: dict[str, list[Finding]] = {}
        for name, source in sources.items():
            try:
                wrong[name] = _check_values(db, source, files[name], codes)
            except STOPS:
                raise
            except duckdb.Error:
                findings += damaged_parts(db, source)
        notes = dict.fromkeys(NOTES, 0)
        if "records" in wrong:
            _make_records(db, sources["records"], files["records"], states, sound=not wrong["records"])
            wrong["records"] += _check_races(db, sources["records"], files["records"])
            notes |= _note_records(db, states, ethnicity_codes)
        for name in wrong.keys() - {"records"}:
            wrong[name] += _check_uniqueness(db, sources[name], files[name])
        # What a faulty reference file lacks says nothing of the records.
        if len(wrong) == len(files) and not any(wrong[name] for name in wrong.keys() - {"records"}):
            notes |= _make_blocks(db, states, listed=listed)
            wrong["records"] += _check_places(db, sources["records"], files["records"])
        for name in wrong.keys() - {"records"}:
            db.execute(f"DROP TABLE {files[name].relation}_rows CASCADE")
        found = [finding for name in wrong for finding in wrong[name]]
        yield DetailedRecords(db, folder, sources, (*findings, *found), notes, listed)


def _open_files(
    db: duckdb.DuckDBPyConnection, folder: Path, files: Mapping[str, RecordFile]
) -> tuple[dict[str, Source], list[Finding]]:
    """Open what can be opened, by name, and say why the rest cannot."""
    sources: dict[str, Source] = {}
    findings: list[Finding] = []
    for name, schema in files.items():
        source, wrong = find_source(folder, schema)
        if source is not None and not (wrong := open_records(db, source, schema)):
            sources[name] = source
        findings += wrong
    return sources, findings


def _check_values(
    db: duckdb.DuckDBPyConnection, source: Source, schema: RecordFile, codes: frozenset[int]
) -> list[Finding]:
    """Values outside their column's domain, and codes that there are not.

    Values are counted first and judged after: a column has few, and Parquet stores them once each.
    """
    stored = not source.header
    types = stored_types(db, source, schema)[0] if stored else {}
    relation = parquet(source.paths) if stored else schema.relation
    known = ", ".join(map(str, sorted({0, *codes})))
    findings = []
    for column in schema.columns:
        value = from_stored(column, types[column.name]) if stored else column.name
        unknown = f"{value} NOT IN ({known})" if column.name in _CODED else "false"
        total, outside, strange = numbers(
            db,
            f"""
            SELECT sum(n), sum(n) FILTER ({value} IS NULL), sum(n) FILTER ({unknown})
            FROM (SELECT {column.name}, count(*) AS n FROM {relation} GROUP BY ALL)
            """,
        )
        if not total:
            name = source.names[0] if len(source.names) == 1 else f"{schema.name} ({len(source.names):,} files)"
            return [Finding("not_empty", name, f"the file has no {schema.row}")]
        if outside:
            finding = Finding("domain", "", f"{column.name} must be {column.rule}", outside)
            findings += place_finding(db, source, finding, schema.relation, f"{column.name} IS NULL")
        if strange:
            blank = f"{column.blank} or " if column.blank else ""
            text = f"{column.name} must be {blank}a RACE_ETH_CODE of race-and-ethnicity-codes.txt"
            finding = Finding("known_code", "", text, strange)
            findings += place_finding(db, source, finding, schema.relation, f"{column.name} NOT IN ({known})")
    return findings


def _make_records(
    db: duckdb.DuckDBPyConnection, source: Source, schema: RecordFile, states: frozenset[int], *, sound: bool
) -> None:
    """Make the relation ``every_record``, and ``records``, those of the states of the run."""
    columns = [column for column in schema.columns if column.name not in _NOT_TABULATED]
    if sound and not source.header:
        # Once all values are known to be right, they need not be looked at again: this is cheap where checking is not.
        chosen = ", ".join(f"{_trusted(column)} AS {column.name}" for column in columns)
        relation = parquet(source.paths)
    else:
        chosen, relation = ", ".join(column.name for column in columns), schema.relation
    db.execute(f"CREATE VIEW every_record AS SELECT {chosen} FROM {relation}")
    db.execute(f"CREATE VIEW records AS SELECT * FROM every_record WHERE {_in_states('TABBLKST', states)}")


def _trusted(column: Column) -> str:
    """SQL for a value of the domain, text or integer, as a number: evaluated once per value stored."""
    number = f"TRY_CAST({column.name} AS {column.storage})"
    return f"coalesce({number}, 0)" if column.blank else number


def _in_states(state: str, states: frozenset[int]) -> str:
    return f"{state} IN ({', '.join(map(str, sorted(states)))})"


def _check_races(db: duckdb.DuckDBPyConnection, source: Source, schema: RecordFile) -> list[Finding]:
    """Find records with a race after a blank, which some would read and others not."""
    (count,) = numbers(db, f"SELECT count_if({_AFTER_BLANK}) FROM every_record")
    finding = Finding("race_after_null", "", "a race code must not stand after a Null in QRACE2 to QRACE8", count)
    return place_finding(db, source, finding, schema.relation, _AFTER_BLANK) if count else []


def _note_records(
    db: duckdb.DuckDBPyConnection, states: frozenset[int], ethnicity_codes: frozenset[int]
) -> dict[str, int]:
    (others,) = numbers(db, f"SELECT count(*) FROM every_record WHERE NOT {_in_states('TABBLKST', states)}")
    known = ", ".join(map(str, sorted({0, *ethnicity_codes})))
    (races,) = numbers(db, f"SELECT count(*) FROM records WHERE QSPAN NOT IN ({known})")
    return {"records_of_other_states": others, "qspan_is_race_code": races}


def _check_uniqueness(db: duckdb.DuckDBPyConnection, source: Source, schema: RecordFile) -> list[Finding]:
    """Find blocks that a file lists more than once: each time would count everyone there once more."""
    code = _BLOCK_CODE if schema is REFERENCE else "block"
    (twice,) = numbers(db, f"SELECT count({code}) - count(DISTINCT {code}) FROM {schema.relation}")
    if not twice:
        return []
    broken = f"{code} IN (SELECT {code} FROM {schema.relation} GROUP BY ALL HAVING count(*) > 1)"
    (count,) = numbers(db, f"SELECT count(*) FROM {schema.relation} WHERE {broken}")
    finding = Finding("unique_block", "", "the block is listed more than once", count)
    return place_finding(db, source, finding, schema.relation, broken)


def _make_blocks(db: duckdb.DuckDBPyConnection, states: frozenset[int], *, listed: bool) -> dict[str, int]:
    """Make the relation ``blocks``; count what was left out."""
    columns = ", ".join(REFERENCE.header)
    reference = f"SELECT {columns} FROM {REFERENCE.relation} WHERE {_in_states('TABBLKST', states)}"
    (others,) = numbers(db, f"SELECT count(*) FROM {REFERENCE.relation} WHERE NOT {_in_states('TABBLKST', states)}")
    if not listed:
        db.execute(f"CREATE TABLE blocks AS SELECT *, NULL::INTEGER AS housing_units FROM ({reference})")
        return {"blocks_of_other_states": others}
    units = f"SELECT block, {HOUSING_UNITS.relation}.housing_units FROM {HOUSING_UNITS.relation}"
    db.execute(f"""
        CREATE TABLE blocks AS SELECT {columns}, coalesce(u.housing_units, 0) AS housing_units
        FROM (SELECT *, {_BLOCK_CODE} AS block FROM ({reference})) LEFT JOIN ({units}) u USING (block)
        """)
    (outside,) = numbers(
        db,
        f"""
        SELECT count(*) FROM {HOUSING_UNITS.relation} WHERE {_in_states("block // 10_000_000_000_000", states)}
            AND block NOT IN (SELECT {_BLOCK_CODE} FROM blocks)
        """,
    )
    return {"blocks_of_other_states": others, "housing_units_outside_reference": outside}


def _check_places(db: duckdb.DuckDBPyConnection, source: Source, schema: RecordFile) -> list[Finding]:
    """Find records in blocks that are not in the reference file, and households where no housing unit stands."""
    columns = ", ".join(_BLOCK)
    known = " AND ".join(f"{column} IS NOT NULL" for column in _BLOCK)
    db.execute(f"CREATE TABLE lived_in AS SELECT {columns}, count(*) AS n FROM records WHERE {known} GROUP BY ALL")
    rules = [("block_in_reference", f"ANTI JOIN blocks USING ({columns})", "the block is not in GRF-C.txt")]
    if schema is HOUSEHOLD_RECORDS:
        bare = f"SEMI JOIN (SELECT * FROM blocks WHERE housing_units = 0) USING ({columns})"
        text = "the block has no housing unit in housing-units.txt, so no household can live there"
        rules.append(("block_has_housing_unit", bare, text))
    findings = []
    for rule, among, text in rules:
        (count,) = numbers(db, f"SELECT sum(n) FROM lived_in {among}")
        if count:
            broken = f"{_BLOCK_CODE} IN (SELECT {_BLOCK_CODE} FROM lived_in {among})"
            findings += place_finding(db, source, Finding(rule, "", text, count), schema.relation, broken)
    db.execute("DROP TABLE lived_in")
    return findings
