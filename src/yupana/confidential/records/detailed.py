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
from typing import Any, Final, Literal, TypeAlias

import duckdb

from yupana.confidential.records.cef import is_cef
from yupana.confidential.records.database import numbers, private_database
from yupana.confidential.records.detailed_cef import open_detailed_cef
from yupana.confidential.records.detailed_files import open_detailed_files
from yupana.confidential.records.detailed_rules import BLOCK, BLOCK_CODE, count_unknown, find_places, word_places
from yupana.confidential.records.reader import OpenedRecords, forms, no_names
from yupana.confidential.records.stored import require_at_hand
from yupana.files.column_map import BUREAU, ColumnMap
from yupana.files.columns import HOUSEHOLD_RECORDS, HOUSING_UNITS, PERSON_RECORDS, REFERENCE, RecordFile
from yupana.products.safetab.regions import NO_AIANNH, NO_PLACE

Kind: TypeAlias = Literal["person-records", "household-records"]

RECORDS: Final[Mapping[Kind, RecordFile]] = MappingProxyType(
    {"person-records": PERSON_RECORDS, "household-records": HOUSEHOLD_RECORDS}
)

_OF_AREAS: Final = {
    "state": ("TABBLKST", "true"),
    "county": ("TABBLKST, TABBLKCOU", "true"),
    "tract": ("TABBLKST, TABBLKCOU, TABTRACTCE", "true"),
    "place": ("TABBLKST, PLACEFP", f"PLACEFP <> {NO_PLACE}"),
    "aiannh": ("AIANNHCE", f"AIANNHCE <> {NO_AIANNH}"),
}
"""By kind of area the columns that tell one from another, and which blocks are in one."""

NOTES: Final = (
    "records_of_other_states",
    "blocks_of_other_states",
    "qspan_is_race_code",
    "housing_units_outside_reference",
)

OF_BLOCKS: Final = ("blocks_of_other_states", "housing_units_outside_reference")
"""Notes on public files, which are the same for any records."""


@dataclass(frozen=True, slots=True, repr=False)
class DetailedRecords(OpenedRecords):
    """Opened records, and the findings about them.

    If there are no findings, the database holds two relations, in which all values are whole numbers:

    ``records`` has a row for each record of the states asked for, with TABBLKST, TABBLKCOU, TABTRACTCE, TABBLK, QRACE1
    to QRACE8 (0 for Null), QSPAN, and QAGE and QSEX of persons or HOUSEHOLD_TYPE and TEN of households. Over Parquet it
    is a view: a query reads only the columns it names, and of the row groups only those of the states it names.

    ``blocks`` has a row for each block of these states, with TABBLKST, TABBLKCOU, TABTRACTCE, TABBLK, PLACEFP, AIANNHCE
    and housing_units: 0 for a block that the list of housing units leaves out, NULL if there is no list. In the Census
    Edited File, the units are the list.

    The files by name are records, GRF-C, and housing-units if there is such a list.

    Attributes
    ----------
    notes : mapping of str to int
        What is no error but should be known: records_of_other_states, blocks_of_other_states, qspan_is_race_code
        (records whose QSPAN no ethnicity iteration has) and housing_units_outside_reference (blocks of the list that
        the reference file lacks).
    without_housing_units : mapping of str to int
        By kind of area, how many records lie in such areas where no housing unit stands; empty if none are listed.
        Nothing shows these areas, but larger ones and those of other kinds count the records.
    has_housing_units : bool
        Whether a list of housing units was given.
    counted : tuple or None
        What shards told of the records, which are then not in the database; None if they are.
    """

    notes: Mapping[str, int]
    without_housing_units: Mapping[str, int]
    has_housing_units: bool
    counted: tuple[Any, ...] | None = None


@contextmanager
def open_detailed(
    folder: Path,
    kind: Kind,
    *,
    states: frozenset[int],
    codes: frozenset[int],
    ethnicity_codes: frozenset[int],
    memory: int | None = None,
    columns: ColumnMap = BUREAU,
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
        Bytes to get along with (`private_database`).
    columns : ColumnMap
        What the records call their columns.

    Raises
    ------
    InputError
        If the folder is missing. Broken rules are findings, not errors.
    """
    require_at_hand(folder)
    schema, others = RECORDS[kind], tuple(RECORDS.values())
    households = schema is HOUSEHOLD_RECORDS
    with private_database(memory) as db:
        cef = is_cef(folder, others)
        if cef and columns.names:
            raise no_names(folder)
        # A list that is a folder or a broken link is refused, not passed over; that of a shard has no name of its own.
        named_so = any(os.path.lexists(folder / name) for name in HOUSING_UNITS.file_names)
        listed = cef or named_so or bool(forms(folder, HOUSING_UNITS))
        if cef:
            sources, findings, has_records, has_blocks = open_detailed_cef(
                db, folder, others, codes, households=households
            )
        else:
            sources, findings, has_records, has_blocks = open_detailed_files(
                db, folder, columns.applied(schema), codes, listed=listed
            )
        notes, without = dict.fromkeys(NOTES, 0), dict[str, int]()
        if has_records:
            db.execute(f"CREATE VIEW records AS SELECT * FROM every_record WHERE {_in_states('TABBLKST', states)}")
            notes |= _note_records(db, states, ethnicity_codes)
        if has_blocks:
            notes |= _make_blocks(db, states, listed=listed)
        if has_records and has_blocks:
            _count_by_block(db)
            if not cef:
                strangers = find_places(db, schema, households=households)
                findings = findings + word_places(strangers, sources["records"])
            if listed:
                without = _count_without_units(db)
            db.execute("DROP TABLE lived_in")
        for name in (REFERENCE.relation, HOUSING_UNITS.relation):
            db.execute(f"DROP VIEW IF EXISTS {name}")
            db.execute(f"DROP TABLE IF EXISTS {name}_rows")
        yield DetailedRecords(db, folder, sources, tuple(findings), notes, without, listed)


def _in_states(state: str, states: frozenset[int]) -> str:
    return f"{state} IN ({', '.join(map(str, sorted(states)))})"


def _note_records(
    db: duckdb.DuckDBPyConnection, states: frozenset[int], ethnicity_codes: frozenset[int]
) -> dict[str, int]:
    (others,) = numbers(db, f"SELECT count(*) FROM every_record WHERE NOT {_in_states('TABBLKST', states)}")
    races = count_unknown(db, "records", "QSPAN", ethnicity_codes)
    return {"records_of_other_states": others, "qspan_is_race_code": races}


def _count_by_block(db: duckdb.DuckDBPyConnection) -> None:
    """Make the relation ``lived_in``: how many records each block holds."""
    columns = ", ".join(BLOCK)
    known = " AND ".join(f"{column} IS NOT NULL" for column in BLOCK)
    db.execute(f"CREATE TABLE lived_in AS SELECT {columns}, count(*) AS n FROM records WHERE {known} GROUP BY ALL")


def _count_without_units(db: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Count records in areas without a housing unit, by kind of area."""
    lived_in = f"lived_in JOIN blocks USING ({', '.join(BLOCK)})"
    found = {}
    for base, (area, within) in _OF_AREAS.items():
        bare = f"SELECT {area} FROM blocks WHERE {within} GROUP BY ALL HAVING sum(housing_units) = 0"
        (found[base],) = numbers(db, f"SELECT sum(n) FROM {lived_in} SEMI JOIN ({bare}) USING ({area})")
    return found


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
        FROM (SELECT *, {BLOCK_CODE} AS block FROM ({reference})) LEFT JOIN ({units}) u USING (block)
        """)
    (outside,) = numbers(
        db,
        f"""
        SELECT count(*) FROM {HOUSING_UNITS.relation} WHERE {_in_states("block // 10_000_000_000_000", states)}
            AND block NOT IN (SELECT {BLOCK_CODE} FROM blocks)
        """,
    )
    return {"blocks_of_other_states": others, "housing_units_outside_reference": outside}
