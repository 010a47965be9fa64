"""SafeTab's data folders: persons or households with detailed race and ethnicity codes, and the blocks they live in.

`open_detailed` opens and checks one; its relations ``records`` and ``blocks`` hold what tabulation needs. Validation is
outside the privacy guarantee: what it finds is confidential.

Of the Census Edited File, `open_detailed_cef` makes the relations that SafeTab's own files would give: every person, or
every household with the codes of its householder, the blocks ``GRF_C`` and the number of ``housing_units`` in each. The
files of a state belong together: its persons live in its units.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.confidential.records import fixed_width
from yupana.confidential.records.census_edited_file import BLOCK as KEY
from yupana.confidential.records.census_edited_file import OIDTB, find_cef, is_cef, nothing, open_reference, stored
from yupana.confidential.records.database import numbers, private_database
from yupana.confidential.records.database import numbers as row_of
from yupana.confidential.records.fixed_width import (
    Layout,
)
from yupana.confidential.records.object_store import require_at_hand
from yupana.confidential.records.safetab_files import (
    BLOCK,
    BLOCK_CODE,
    Broken,
    OpenedFiles,
    check_uniqueness,
    count_races_after_blank,
    count_unknown,
    count_values,
    find_places,
    open_detailed_files,
    require_memory_for_blocks,
    rule_of,
    word_places,
)
from yupana.confidential.records.sources import OpenedRecords, Source, forms, no_names
from yupana.confidential.records.validation import MOST_LINES, Finding, more_files
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
from yupana.products.safetab.regions import NO_AIANNH, NO_PLACE

_RACES: Final = tuple(column for column in PERSON_RECORDS.columns if column.name.startswith("QRACE"))

PERSON_LAYOUT: Final = Layout(
    RecordFile(
        "people",
        "person",
        (
            PERSONS["MAFID"],
            PERSON_RECORDS["QSEX"],
            PERSONS["QAGE"],
            PERSON_RECORDS["QSPAN"],
            *_RACES,
            PERSONS["CENRACE"],
            PERSONS["RELSHIP"],
        ),
    ),
    91,
    {
        "MAFID": (1, 10),
        "QSEX": (22, 23),
        "QAGE": (23, 26),
        "QSPAN": (42, 46),
        **{column.name: (48 + 4 * place, 52 + 4 * place) for place, column in enumerate(_RACES)},
        "CENRACE": (81, 83),
        "RELSHIP": (85, 87),
    },
)
HOUSEHOLD_LAYOUT: Final = Layout(
    RecordFile("homes", "unit", tuple(UNITS[name] for name in ("RTYPE", "MAFID", "HHRACE", "TEN", "HHT"))),
    76,
    {"RTYPE": (0, 1), "MAFID": (1, 10), "HHRACE": (27, 29), "TEN": (29, 30), "HHT": (59, 60)},
    frozenset({"HHRACE", "TEN", "HHT"}),
)
# Persons are placed by their units; what else a unit's line says is of households only.
_PLACE_LAYOUT: Final = replace(HOUSEHOLD_LAYOUT, schema=RecordFile("homes", "unit", (UNITS["RTYPE"], UNITS["MAFID"])))

_HOUSEHOLDER: Final = 20
_HOUSING: Final = 2
_OCCUPIED: Final = f"RTYPE = {_HOUSING} AND HHT <> 0"
_PLACED: Final = f"{BLOCK[0]} IS NOT NULL"

_OF_PERSONS: Final = {
    "person_has_unit": (
        "MAFID IS NOT NULL AND MAFID NOT IN (SELECT MAFID FROM homes WHERE MAFID IS NOT NULL)",
        "MAFID is not in the units file of the state",
    ),
}
_OF_HOUSEHOLDERS: Final = {
    **_OF_PERSONS,
    "householder_has_household": (
        f"RELSHIP = {_HOUSEHOLDER}"
        f" AND MAFID IN (SELECT MAFID FROM homes WHERE MAFID IS NOT NULL AND NOT ({_OCCUPIED}))",
        "a person of RELSHIP 20 must be in an occupied housing unit: RTYPE 2, HHT not zero or blank",
    ),
}
_OF_UNITS: Final = {
    "block_in_reference": (f"NOT {_PLACED}", "OIDTB is not among the OIDTABBLK"),
    "unique_mafid": (
        "MAFID IN (SELECT MAFID FROM homes WHERE MAFID IS NOT NULL GROUP BY MAFID HAVING count(*) > 1)",
        "MAFID occurs twice",
    ),
}
_OF_HOUSEHOLDS: Final = {
    **_OF_UNITS,
    "zero_codes": (
        f"{_OCCUPIED} AND (HHRACE = 0 OR TEN = 0)",
        "HHRACE and TEN must not be zero or blank in an occupied housing unit",
    ),
    "zero_codes_elsewhere": (
        f"NOT ({_OCCUPIED}) AND (HHRACE <> 0 OR TEN <> 0 OR HHT <> 0)",
        "HHRACE, TEN and HHT must be zero or blank in a vacant unit and in group quarters",
    ),
    "one_householder": (
        f"{_OCCUPIED} AND MAFID IS NOT NULL AND MAFID NOT IN (SELECT MAFID FROM people"
        f" WHERE RELSHIP = {_HOUSEHOLDER} AND MAFID IS NOT NULL GROUP BY MAFID HAVING count(*) = 1)",
        "an occupied housing unit must have exactly one person of RELSHIP 20",
    ),
}


def open_detailed_cef(
    db: duckdb.DuckDBPyConnection,
    folder: Path,
    others: tuple[RecordFile, ...],
    codes: frozenset[int],
    *,
    households: bool,
) -> OpenedFiles:
    """Make the relations out of the files of all states, and check them.

    Parameters
    ----------
    db : duckdb.DuckDBPyConnection
    folder : Path
    others : tuple of RecordFile
        Records in other forms, which must not be there, too.
    codes : frozenset of int
        The race and ethnicity codes there are.
    households : bool
        Whether to make a record of each household, not of each person.

    Returns
    -------
    OpenedFiles
        With the relations if there are no findings, else with none.
    """
    found, findings = find_cef(folder, others)
    if findings:
        return OpenedFiles({}, findings)
    sources = _named(found)
    if findings := open_reference(db, found["grfc"], REFERENCE):
        return OpenedFiles(sources, findings)
    require_memory_for_blocks(db, "reference")
    findings = check_uniqueness(db, found["grfc"], "reference")
    db.execute("CREATE TABLE counted (block BIGINT, housing_units INTEGER)")
    of_persons: list[Finding] = []
    of_units: list[Finding] = []
    for path, unit_path in zip(found["per"].paths, found["unit"].paths, strict=True):
        wrong = _load_people(db, path, households=households)
        more = _load_homes(db, unit_path, HOUSEHOLD_LAYOUT if households else _PLACE_LAYOUT)
        if not wrong + more:
            wrong = _check_people(db, path.name, codes, households=households)
            more = _check_homes(db, unit_path.name, households=households)
        of_persons += wrong
        of_units += more
        if not findings + of_persons + of_units:
            _insert_records(db, households=households)
        db.execute("DROP TABLE people")
        db.execute("DROP TABLE homes")
    findings += _by_rule(of_persons) + _by_rule(of_units)
    if findings:
        return OpenedFiles(sources, findings)
    reference, listed = REFERENCE.relation, HOUSING_UNITS.relation
    db.execute("DROP VIEW reference")
    db.execute(f"ALTER TABLE reference_rows RENAME TO {reference}_rows")
    db.execute(f"CREATE VIEW {reference} AS FROM {reference}_rows")
    grouped = "SELECT block, sum(housing_units)::INTEGER AS housing_units FROM counted GROUP BY block"
    db.execute(f"CREATE TABLE {listed}_rows AS {grouped}")
    db.execute("DROP TABLE counted")
    db.execute(f"CREATE VIEW {listed} AS FROM {listed}_rows")
    return OpenedFiles(sources, findings, has_records=True, has_blocks=True)


def detailed_sources(folder: Path) -> dict[str, Source]:
    """The files that stand for records, GRF-C and housing-units, whatever is in them."""
    return _named(find_cef(folder, ())[0])


def _named(found: Mapping[str, Source]) -> dict[str, Source]:
    return {"records": found["per"], "GRF-C": found["grfc"], "housing-units": found["unit"]}


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


def _load_people(db: duckdb.DuckDBPyConnection, path: Path, *, households: bool) -> list[Finding]:
    """Make ``people``, the lines of persons with their numbers; of households, only householders are read."""
    schema, findings = PERSON_LAYOUT.schema, list[Finding]()
    db.execute(f"CREATE TABLE people AS {nothing(schema, ', NULL::INTEGER AS line')}")
    for _, columns, line in fixed_width.read_columns(path, PERSON_LAYOUT, findings):
        told = {**columns, "line": line.astype(np.int32)}
        if households:
            # One whose relationship cannot be read may be a householder.
            head = np.isin(columns["RELSHIP"], (_HOUSEHOLDER, fixed_width.NONE))
            told = {name: values[head] for name, values in told.items()}
        db.register("lines_now", told)
        db.execute(f"INSERT INTO people SELECT {stored(schema.columns)}, line FROM lines_now")
        db.unregister("lines_now")
    return findings


def _load_homes(db: duckdb.DuckDBPyConnection, path: Path, layout: Layout) -> list[Finding]:
    """Make ``homes``, the lines of units with their numbers and blocks: NULL where the reference files lack one."""
    columns = layout.schema.columns
    block = ", ".join(BLOCK)
    placed = replace(layout.schema, columns=(*columns, *(REFERENCE[name] for name in BLOCK)))
    db.execute(f"CREATE TABLE homes AS {nothing(placed, ', NULL::INTEGER AS line')}")
    findings: list[Finding] = []
    for lines, found, line in fixed_width.read_columns(path, layout, findings):
        texts, which = fixed_width.distinct_fields(lines, OIDTB)
        db.register("lines_now", {**found, "which": which, "line": line})
        db.register("blocks_now", {KEY: np.array(texts, dtype=object), "which": np.arange(len(texts))})
        db.execute(f"""
            INSERT INTO homes SELECT {stored(columns)}, {block}, line FROM lines_now
            JOIN (SELECT which, {block} FROM blocks_now LEFT JOIN reference_rows USING ({KEY})) USING (which)
            """)
        db.unregister("lines_now")
        db.unregister("blocks_now")
    return findings


def _check_people(
    db: duckdb.DuckDBPyConnection, file: str, codes: frozenset[int], *, households: bool
) -> list[Finding]:
    schema = PERSON_LAYOUT.schema
    _, broken = count_values(db, "people", schema.columns, codes)
    broken += count_races_after_blank(db, "people")
    broken += _count(db, "people", _OF_HOUSEHOLDERS if households else _OF_PERSONS)
    return _place(db, file, schema, codes, broken)


def _check_homes(db: duckdb.DuckDBPyConnection, file: str, *, households: bool) -> list[Finding]:
    schema = (HOUSEHOLD_LAYOUT if households else _PLACE_LAYOUT).schema
    _, broken = count_values(db, "homes", schema.columns, frozenset())
    broken += _count(db, "homes", _OF_HOUSEHOLDS if households else _OF_UNITS)
    return _place(db, file, schema, frozenset(), broken)


def _count(db: duckdb.DuckDBPyConnection, table: str, rules: dict[str, tuple[str, str]]) -> Broken:
    """Count lines that do not go with other lines."""
    counts = {rule: row_of(db, f"SELECT count(*) FROM {table} WHERE {broken}") for rule, (broken, _) in rules.items()}
    return +Counter({(rule, ""): count for rule, (count,) in counts.items()})


def _place(
    db: duckdb.DuckDBPyConnection, file: str, schema: RecordFile, codes: frozenset[int], broken: Broken
) -> list[Finding]:
    """Say on which lines of a file rules are broken."""
    rules = {**_OF_HOUSEHOLDERS, **_OF_HOUSEHOLDS}
    findings = []
    for (rule, name), count in broken.items():
        condition, text = rules.get(rule) or rule_of(rule, name, schema, codes)
        query = f"SELECT line FROM {schema.name} WHERE {condition} ORDER BY line LIMIT {MOST_LINES}"
        lines = tuple(int(row[0]) for row in db.execute(query).fetchall())
        findings.append(Finding(rule, file, text, count, lines))
    return findings


def _by_rule(findings: Iterable[Finding]) -> list[Finding]:
    """Findings of all files, those of one rule together, as many as `place_finding` would name."""
    grouped: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        grouped.setdefault((finding.rule, finding.text), []).append(finding)
    return [finding for same in grouped.values() for finding in (*same[:MOST_LINES], *more_files(same[MOST_LINES:]))]


def _insert_records(db: duckdb.DuckDBPyConnection, *, households: bool) -> None:
    """Add the records of a state, and its housing units by block."""
    if households:
        kind = "CASE HHT WHEN 6 THEN 4 WHEN 7 THEN 5 ELSE HHT END::UTINYINT AS HOUSEHOLD_TYPE"
        chosen, where = f"{kind}, TEN", f"WHERE {_OCCUPIED}"
    else:
        chosen, where = "QAGE, QSEX", ""
    codes = ", ".join((*(column.name for column in _RACES), "QSPAN"))
    query = f"SELECT {', '.join(BLOCK)}, {codes}, {chosen} FROM people JOIN homes USING (MAFID) {where}"
    db.execute(f"CREATE TABLE IF NOT EXISTS every_record AS FROM ({query}) WHERE false")
    db.execute(f"INSERT INTO every_record {query}")
    db.execute(f"INSERT INTO counted SELECT {BLOCK_CODE}, count(*) FROM homes WHERE RTYPE = {_HOUSING} GROUP BY ALL")


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
