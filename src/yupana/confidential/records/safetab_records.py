"""SafeTab's data folders, as they are declared: persons or households with detailed race and ethnicity codes.

Validation is outside the privacy guarantee: what it finds is confidential.

Of the Census Edited File, `open_detailed_cef` makes the relations that SafeTab's own files would give: every person, or
every household with the codes of its householder, the blocks and the number of housing units in each. The files of a
state belong together: its persons live in its units.
"""

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.confidential.records import fixed_width
from yupana.confidential.records.census_edited_file import (
    OIDTB,
    find_cef,
    is_cef,
    load_lines,
    open_reference,
    persons_in_lines,
    units_in_lines,
)
from yupana.confidential.records.database import is_scratch, numbers
from yupana.confidential.records.declared import (
    FILE_OF_BLOCKS,
    FILE_OF_UNITS,
    LIVED_IN,
    Declared,
    Edited,
    KnownCodes,
    Link,
    Opened,
    Rule,
    check_file,
    occurs_twice,
    open_declared,
    require_memory_for_blocks,
    schema_of_units,
)
from yupana.confidential.records.object_store import require_at_hand
from yupana.confidential.records.reader import drop_relations
from yupana.confidential.records.sources import OpenedRecords, Source, forms
from yupana.confidential.records.validation import Finding, merge_findings
from yupana.confidential.tabulate.group_tabulation import block_number, in_chosen
from yupana.files.columns import (
    BUREAU,
    HOUSEHOLD_RECORDS,
    HOUSING_UNITS,
    PERSON_RECORDS,
    PERSONS,
    REFERENCE,
    UNITS,
    ColumnMap,
    RecordFile,
)
from yupana.files.database import store_arrays
from yupana.geography.block_file import BlockColumn, BlockFile, HousingUnitFile
from yupana.products.safetab.regions import NO_AIANNH, NO_PLACE

Kind: TypeAlias = Literal["person-records", "household-records"]

RECORDS: Final[Mapping[Kind, RecordFile]] = MappingProxyType(
    {
        "person-records": replace(PERSON_RECORDS, alias="records"),
        "household-records": replace(HOUSEHOLD_RECORDS, alias="records"),
    }
)

_UNITS: Final = HousingUnitFile(HOUSING_UNITS.name, *HOUSING_UNITS.header)
BLOCKS: Final = BlockFile(
    REFERENCE.name,
    tuple(BlockColumn(name, REFERENCE[name].width or 0) for name in REFERENCE.header[:4]),
    tuple(BlockColumn(name, REFERENCE[name].width or 0) for name in REFERENCE.header[4:]),
    housing_units=_UNITS,
)
_LISTED: Final = schema_of_units(BLOCKS, _UNITS)
_BLOCK: Final = tuple(column.name for column in BLOCKS.key)
BLOCK_CODE: Final = block_number(_BLOCK, BLOCKS.key)
"""SQL for the 15 digits of a block as a number, as ``housing-units.txt`` has them."""

STANDING: Final = ".standing"
"""The file of a shard of the edited file that tells where housing units stand in all shards: a bit for each block of
the reference files."""

_OF_AREAS: Final = {
    "state": ("TABBLKST", "true"),
    "county": ("TABBLKST, TABBLKCOU", "true"),
    "tract": ("TABBLKST, TABBLKCOU, TABTRACTCE", "true"),
    "place": ("TABBLKST, PLACEFP", f"PLACEFP <> {NO_PLACE}"),
    "aiannh": ("AIANNHCE", f"AIANNHCE <> {NO_AIANNH}"),
}
"""By kind of area the columns that tell one from another, and which blocks are in one."""

BARE: Final = MappingProxyType({kind: f"records in a {kind} without housing units" for kind in _OF_AREAS})
"""Notes on records in areas where no housing unit stands. Nothing shows these areas, but larger ones and those of other
kinds count the records."""

MORE_CODES: Final = "records_with_more_race_codes"

OF_BLOCKS: Final = ("blocks_of_other_states", "housing_units_outside_reference")
"""Notes on public files, which are the same for any records."""

NOTES: Final = ("records_of_other_states", "qspan_is_race_code", *OF_BLOCKS)
"""Notes on what a policy leaves out: records and blocks of other states, records whose QSPAN no ethnicity iteration
has, and blocks of the list of housing units that the reference file lacks."""


def open_detailed(
    folder: Path,
    memory: int | None = None,
    *,
    kind: Kind,
    states: frozenset[int],
    codes: frozenset[int],
    ethnicity_codes: frozenset[int],
    most_codes: int | None = None,
    columns: ColumnMap = BUREAU,
) -> AbstractContextManager[OpenedRecords]:
    """Open and validate a folder of records, the reference file of blocks and, if it is there, the housing units.

    If there are no findings, the database holds two relations, in which all values are whole numbers: ``records``, with
    0 for Null, and ``blocks``, those of the states asked for with their housing_units: 0 for a block that the list of
    housing units leaves out, NULL if there is no list. In the Census Edited File, the units are the list. Over Parquet
    ``records`` is a view: a query reads only the columns it names, and of the row groups only those of the states it
    names. The files by name are those of the folder.

    Parameters
    ----------
    memory : int, optional
        Bytes to get along with (`private_database`).
    kind : {"person-records", "household-records"}
    states : frozenset of int
        State codes of the run. Records and blocks of others are left out and counted.
    codes : frozenset of int
        The race and ethnicity codes there are (RACE_ETH_CODE, 1000 to 9999).
    ethnicity_codes : frozenset of int
        Those that some ethnicity iteration holds.
    most_codes : int, optional
        How many race codes of a record count: records with more are noted.
    columns : ColumnMap
        What the records call their columns.

    Raises
    ------
    InputError
        If the folder is missing. Broken rules are findings, not errors.
    """
    require_at_hand(folder)
    schema = columns.applied(RECORDS[kind])
    # A list that is a folder or a broken link is refused, not passed over; that of a shard has no name of its own.
    named_so = any(os.path.lexists(folder / name) for name in _LISTED.file_names)
    listed = is_cef(folder, (schema,)) or named_so or bool(forms(folder, _LISTED))
    blocks = replace(BLOCKS, chosen=states, housing_units=_UNITS if listed else None)
    households = frozenset({HOUSEHOLD_RECORDS.name})
    declared = Declared(
        {kind: schema},
        wanted=frozenset({kind}),
        codes=_known(codes),
        rules=(_after_blank(kind),),
        blocks=blocks,
        places={kind: _BLOCK},
        in_homes=households,
        edited=Edited(lambda folder: is_cef(folder, (schema,)), partial(open_detailed_cef, codes, kind in households)),
        note=partial(_note, blocks, ethnicity_codes, most_codes),
    )
    return open_declared(declared, folder, memory)


def _known(codes: frozenset[int]) -> dict[str, KnownCodes]:
    return dict.fromkeys(_CODED, KnownCodes(codes, "a RACE_ETH_CODE of race-and-ethnicity-codes.txt"))


def _after_blank(file: str) -> Rule:
    """That a race does not stand after a blank, which some would read and others not."""
    names = [column.name for column in _RACES]
    broken = " OR ".join(f"({names[i]} = 0 AND greatest({', '.join(names[i + 1 :])}) > 0)" for i in range(1, 7))
    return Rule("race_after_null", file, broken, "a race code must not stand after a Null in QRACE2 to QRACE8")


def _note(
    blocks: BlockFile, ethnicity_codes: frozenset[int], most_codes: int | None, db: duckdb.DuckDBPyConnection
) -> dict[str, int]:
    """Count what no rule forbids, and what lies where no housing unit stands."""
    here = in_chosen(_BLOCK[0], blocks)
    ethnicities = ", ".join(map(str, sorted({0, *ethnicity_codes})))
    queries = {
        # Conditions in place of filters would be asked of every record before they are counted.
        "records_of_other_states": f"sum(n) FILTER (NOT {here}) FROM "
        f"(SELECT {_BLOCK[0]}, count(*) AS n FROM records GROUP BY ALL)",
        "qspan_is_race_code": f"sum(n) FILTER (QSPAN NOT IN ({ethnicities})) FROM "
        f"(SELECT QSPAN, count(*) AS n FROM records WHERE {here} GROUP BY ALL)",
        "blocks_of_other_states": f"count_if(NOT {here}) FROM {FILE_OF_BLOCKS}",
    }
    if most_codes is not None and most_codes < len(_RACES):
        queries[MORE_CODES] = f"count_if(QRACE{most_codes + 1} <> 0) FROM records WHERE {here}"
    if units := blocks.housing_units:
        state = in_chosen(f"{units.block} // 10_000_000_000_000", blocks)
        queries["housing_units_outside_reference"] = (
            f"count(*) FROM {FILE_OF_UNITS} WHERE {state} AND {units.block} NOT IN (SELECT {BLOCK_CODE} FROM blocks)"
        )
        for kind, (area, within) in _OF_AREAS.items():
            bare = f"SELECT {area} FROM blocks WHERE {within} GROUP BY ALL HAVING sum(housing_units) = 0"
            lived_in = f"{LIVED_IN} JOIN (SELECT *, {BLOCK_CODE} AS block FROM blocks) USING (block)"
            queries[BARE[kind]] = f"sum(n) FROM {lived_in} SEMI JOIN ({bare}) USING ({area})"
    return dict.fromkeys(NOTES, 0) | {name: numbers(db, f"SELECT {query}")[0] for name, query in queries.items()}


_RACES: Final = tuple(column for column in PERSON_RECORDS.columns if column.name.startswith("QRACE"))

_CODED: Final = (*(column.name for column in _RACES), "QSPAN")

_OF_PERSONS: Final = ("MAFID", "QSEX", "QAGE", *_CODED, "CENRACE", "RELSHIP")
PERSON_LAYOUT: Final = persons_in_lines(
    RecordFile(
        "people",
        "person",
        tuple((PERSONS if name in PERSONS.header else PERSON_RECORDS)[name] for name in _OF_PERSONS),
    )
)
HOUSEHOLD_LAYOUT: Final = units_in_lines(
    RecordFile("homes", "unit", tuple(UNITS[name] for name in ("RTYPE", "MAFID", "HHRACE", "TEN", "HHT")))
)
# Persons are placed by their units; what else a unit's line says is of households only.
_PLACE_LAYOUT: Final = units_in_lines(RecordFile("homes", "unit", (UNITS["RTYPE"], UNITS["MAFID"])))

_KEY: Final = replace(REFERENCE, columns=REFERENCE.columns[: len(_BLOCK)])
"""What persons are placed by."""

_HOUSEHOLDER: Final = 20
_HOUSING: Final = 2
_OCCUPIED: Final = f"RTYPE = {_HOUSING} AND HHT <> 0"

_NO_UNIT: Final = "MAFID is not in the units file of the state"
_HAS_UNIT: Final = Link("people", "MAFID", "homes", "MAFID", _NO_UNIT, "person_has_unit")
_OF_STATE: Final = (
    _after_blank("people"),
    Rule("block_in_reference", "homes", f"{_BLOCK[0]} IS NULL", "OIDTB is not among the OIDTABBLK"),
    Rule("unique_mafid", "homes", occurs_twice("homes", "MAFID"), "MAFID occurs twice"),
)
_OF_HOUSEHOLDS: Final = (
    Rule(
        "householder_has_household",
        "people",
        f"RELSHIP = {_HOUSEHOLDER}"
        f" AND MAFID IN (SELECT MAFID FROM homes WHERE MAFID IS NOT NULL AND NOT ({_OCCUPIED}))",
        "a person of RELSHIP 20 must be in an occupied housing unit: RTYPE 2, HHT not zero or blank",
    ),
    Rule(
        "zero_codes",
        "homes",
        f"{_OCCUPIED} AND (HHRACE = 0 OR TEN = 0)",
        "HHRACE and TEN must not be zero or blank in an occupied housing unit",
    ),
    Rule(
        "zero_codes_elsewhere",
        "homes",
        f"NOT ({_OCCUPIED}) AND (HHRACE <> 0 OR TEN <> 0 OR HHT <> 0)",
        "HHRACE, TEN and HHT must be zero or blank in a vacant unit and in group quarters",
    ),
    Rule(
        "one_householder",
        "homes",
        f"{_OCCUPIED} AND MAFID IS NOT NULL AND MAFID NOT IN (SELECT MAFID FROM people"
        f" WHERE RELSHIP = {_HOUSEHOLDER} AND MAFID IS NOT NULL GROUP BY MAFID HAVING count(*) = 1)",
        "an occupied housing unit must have exactly one person of RELSHIP 20",
    ),
)


def open_detailed_cef(
    codes: frozenset[int],
    households: bool,  # noqa: FBT001 (of `partial` alone)
    db: duckdb.DuckDBPyConnection,
    folder: Path,
) -> Opened:
    """Make the relations out of the files of all states, and check them.

    Parameters
    ----------
    codes : frozenset of int
        The race and ethnicity codes there are.
    households : bool
        Whether to make a record of each household, not of each person.

    Returns
    -------
    Opened
        No files if something is wrong with one.
    """
    found, findings = find_cef(folder, tuple(RECORDS.values()))
    findings = findings or open_reference(db, found["grfc"], REFERENCE)
    if findings:
        return {}, findings
    require_memory_for_blocks(db, "reference")
    again = Rule("unique_block", "grfc", occurs_twice("reference", BLOCK_CODE), "the block is listed more than once")
    findings = again.find(db, "reference", found)
    db.execute("CREATE TABLE counted (block BIGINT, housing_units INTEGER)")
    by_state: list[list[Finding]] = []
    for place in range(len(found["per"].paths)):
        people, homes = (found[kind].part(place) for kind in ("per", "unit"))
        by_state.append(_load_state(db, people, homes, codes, households=households))
        if not findings and not any(by_state):
            _insert_records(db, households=households)
        drop_relations(db, "people", "homes")
    if findings := findings + merge_findings(by_state):
        return {}, findings
    db.execute("DROP VIEW reference")
    db.execute(f"ALTER TABLE reference_rows RENAME TO {FILE_OF_BLOCKS}_rows")
    db.execute(f"CREATE VIEW {FILE_OF_BLOCKS} AS FROM {FILE_OF_BLOCKS}_rows")
    grouped = "SELECT block, sum(housing_units)::INTEGER AS housing_units FROM counted GROUP BY block"
    # In the folder of a user it would be believed.
    if is_scratch(folder) and (standing := folder / STANDING).is_file():
        stands = np.unpackbits(np.frombuffer(standing.read_bytes(), dtype=np.uint8))
        store_arrays(db, "standing", {"place": np.flatnonzero(stands)})
        rows = f"{FILE_OF_BLOCKS}_rows t JOIN standing ON t.rowid = place"
        grouped = f"SELECT {BLOCK_CODE} AS block, 1 AS housing_units FROM {rows}"
    db.execute(f"CREATE TABLE {FILE_OF_UNITS}_rows AS {grouped}")
    db.execute("DROP TABLE counted")
    db.execute(f"CREATE VIEW {FILE_OF_UNITS} AS FROM {FILE_OF_UNITS}_rows")
    return detailed_sources(found, households=households), []


def detailed_sources(found: Mapping[str, Source], *, households: bool) -> dict[str, Source]:
    """The files of `find_cef` that stand for records, blocks and housing units, whatever is in them."""
    records = HOUSEHOLD_RECORDS if households else PERSON_RECORDS
    # They were checked together.
    return {
        records.name: replace(found["per"], beside=found["unit"].paths),
        REFERENCE.name: found["grfc"],
        HOUSING_UNITS.name: found["unit"],
    }


def _load_state(
    db: duckdb.DuckDBPyConnection, people: Source, homes: Source, codes: frozenset[int], *, households: bool
) -> list[Finding]:
    """Make ``people`` and ``homes`` of a state, and check them; of households, only householders are read."""
    layouts = (PERSON_LAYOUT, HOUSEHOLD_LAYOUT if households else _PLACE_LAYOUT)
    only = ("RELSHIP", _HOUSEHOLDER) if households else None
    findings = load_lines(db, people, layouts[0], only=only) + load_lines(db, homes, layouts[1], placed=_KEY)
    if findings:
        return findings
    rules = (
        _HAS_UNIT.rule(db, {"people": "people", "homes": "homes"}),
        *_OF_STATE,
        *(_OF_HOUSEHOLDS if households else ()),
    )
    for layout, source in zip(layouts, (people, homes), strict=True):
        findings += check_file(db, source, layout.schema, rules, _known(codes))[0]
    return findings


def _insert_records(db: duckdb.DuckDBPyConnection, *, households: bool) -> None:
    """Add the records of a state, and its housing units by block."""
    if households:
        kind = "CASE HHT WHEN 6 THEN 4 WHEN 7 THEN 5 ELSE HHT END::UTINYINT AS HOUSEHOLD_TYPE"
        chosen, where = f"{kind}, TEN", f"WHERE {_OCCUPIED}"
    else:
        chosen, where = "QAGE, QSEX", ""
    query = f"SELECT {', '.join(_BLOCK)}, {', '.join(_CODED)}, {chosen} FROM people JOIN homes USING (MAFID) {where}"
    db.execute(f"CREATE TABLE IF NOT EXISTS records AS FROM ({query}) WHERE false")
    db.execute(f"INSERT INTO records {query}")
    db.execute(f"INSERT INTO counted SELECT {BLOCK_CODE}, count(*) FROM homes WHERE RTYPE = {_HOUSING} GROUP BY ALL")


def blocks_with_housing(path: Path) -> NDArray[np.bytes_]:
    """The keys of the blocks where housing units of a units file stand, each once.

    Raises
    ------
    ShapeError
        If the file is not made of lines of one width.
    """
    blocks: set[str] = set()
    for lines in fixed_width.read_lines(path, _PLACE_LAYOUT.width):
        units = lines[fixed_width.numbers(lines, _PLACE_LAYOUT)["RTYPE"] == _HOUSING]
        blocks.update(fixed_width.distinct_fields(units, OIDTB)[0])
    return np.array(sorted(blocks), dtype=f"S{OIDTB[1] - OIDTB[0]}")
