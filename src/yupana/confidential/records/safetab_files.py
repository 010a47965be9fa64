"""SafeTab's own files: records as text or Parquet, the reference file of blocks, and a list of housing units.

The rules that such records must keep are those of any files that hold them.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

import duckdb

from yupana.confidential.records.database import numbers, require_memory
from yupana.confidential.records.reader import damaged_parts, open_files, stored_rows, stored_types
from yupana.confidential.records.sources import Source, find_broken, place_finding, tell
from yupana.confidential.records.validation import BrokenRecords, Finding
from yupana.confidential.records.values import from_stored
from yupana.files.columns import HOUSING_UNITS, REFERENCE, Column, RecordFile
from yupana.files.database import STOPS

BLOCK: Final = ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLK")

BLOCK_CODE: Final = (
    "(TABBLKST::BIGINT * 10_000_000_000_000 + TABBLKCOU::BIGINT * 10_000_000_000"
    " + TABTRACTCE::BIGINT * 10_000 + TABBLK)"
)
"""SQL for the 15 digits of a block as a number, as ``housing-units.txt`` has them."""

_RACES: Final = tuple(f"QRACE{number}" for number in range(1, 9))
_CODED: Final = (*_RACES, "QSPAN")

_AFTER_BLANK: Final = " OR ".join(
    f"({race} = 0 AND greatest({', '.join(later)}) > 0)"
    for race, later in ((_RACES[i], _RACES[i + 1 :]) for i in range(1, 7))
)

BYTES_OF_A_BLOCK: Final = 90
"""What is held of each block that is listed, and of the groups that are published of its areas: of the nation and of
California as it was seen from outside."""

Broken: TypeAlias = Counter[tuple[str, str]]
"""How many records break a rule, by its name and the column it is about, if it is about one."""


class OpenedFiles(NamedTuple):
    """Files of one form, opened.

    Attributes
    ----------
    sources : dict of str to Source
        By name, as `DetailedRecords.files`.
    findings : list of Finding
    has_records : bool
        Whether ``every_record`` was made.
    has_blocks : bool
        Whether ``GRF_C`` and, if there is a list, ``housing_units`` were made and are sound.
    """

    sources: dict[str, Source]
    findings: list[Finding]
    has_records: bool = False
    has_blocks: bool = False


def require_memory_for_blocks(db: duckdb.DuckDBPyConnection, relation: str) -> None:
    """Refuse more blocks than fit into memory beside the database.

    Raises
    ------
    InputError
        With the least that suffices.
    """
    (blocks,) = numbers(db, f"SELECT count(*) FROM {relation}")
    require_memory(db, BYTES_OF_A_BLOCK * blocks, f"the {blocks:,} blocks that are listed")


def count_values(
    db: duckdb.DuckDBPyConnection,
    relation: str,
    columns: Sequence[Column],
    codes: frozenset[int],
    typed: Callable[[Column], str] | None = None,
) -> tuple[int, Broken]:
    """Count records, and among them values outside their column's domain and codes that there are not.

    Parameters
    ----------
    db : duckdb.DuckDBPyConnection
    relation : str
    columns : sequence of Column
    codes : frozenset of int
    typed : callable, optional
        SQL that makes a value of a column a number of its domain, or NULL; without it, values are that already. Then
        they are counted first and judged after: a column has few, and Parquet stores them once each.
    """
    known = _known(codes)
    broken: Broken = Counter()
    if typed is None:
        nulls = ", ".join(f"count(*) - count({column.name})" for column in columns)
        total, *outside = numbers(db, f"SELECT count(*), {nulls} FROM {relation}")
        broken += Counter({("domain", column.name): n for column, n in zip(columns, outside, strict=True)})
        for column in (column for column in columns if column.name in _CODED):
            broken += Counter({("known_code", column.name): count_unknown(db, relation, column.name, codes)})
        return total, broken
    total = 0
    for column in columns:
        value = typed(column)
        unknown = f"{value} NOT IN ({known})" if column.name in _CODED else "false"
        total, wrong, strange = numbers(
            db,
            f"""
            SELECT sum(n), sum(n) FILTER ({value} IS NULL), sum(n) FILTER ({unknown})
            FROM (SELECT {column.name}, count(*) AS n FROM {relation} GROUP BY ALL)
            """,
        )
        broken += Counter({("domain", column.name): wrong, ("known_code", column.name): strange})
    return total, broken


def count_unknown(db: duckdb.DuckDBPyConnection, relation: str, column: str, codes: frozenset[int]) -> int:
    """Count records whose code is not among those given. NULL and 0 are none that could be unknown."""
    values = f"SELECT {column}, count(*) AS n FROM {relation} GROUP BY ALL"
    # A condition in place of a filter would be asked of every record before they are counted.
    (unknown,) = numbers(db, f"SELECT sum(n) FILTER ({column} NOT IN ({_known(codes)})) FROM ({values})")
    return unknown


def count_races_after_blank(db: duckdb.DuckDBPyConnection, relation: str) -> Broken:
    """Count records with a race after a blank, which some would read and others not."""
    (count,) = numbers(db, f"SELECT count_if({_AFTER_BLANK}) FROM {relation}")
    return +Counter({("race_after_null", ""): count})


def find_rules(
    db: duckdb.DuckDBPyConnection, schema: RecordFile, codes: frozenset[int], broken: Broken
) -> dict[tuple[str, str], BrokenRecords]:
    """Find the records that break the rules counted above; of several shards they add up (`add_broken`)."""
    return {key: find_broken(db, schema.relation, rule_of(*key, schema, codes)[0]) for key in broken}


def word_rules(
    found: Mapping[tuple[str, str], BrokenRecords], source: Source, schema: RecordFile, codes: frozenset[int]
) -> list[Finding]:
    """Say in which files, and where in them, the rules are broken: the same for any order in which they were found."""
    columns, rules = [column.name for column in schema.columns], ("domain", "known_code")
    # Text is counted rule by rule, Parquet column by column.
    keys = product(rules, columns) if source.header else ((rule, name) for name, rule in product(columns, rules))
    findings = []
    for rule, name in (*keys, ("race_after_null", "")):
        if (rule, name) in found:
            finding = Finding(rule, "", rule_of(rule, name, schema, codes)[1])
            findings += tell(found[rule, name], source, finding)
    return findings


def rule_of(rule: str, name: str, schema: RecordFile, codes: frozenset[int]) -> tuple[str, str]:
    """SQL for the records that break a rule counted above, and what to say of them."""
    if rule == "race_after_null":
        return _AFTER_BLANK, "a race code must not stand after a Null in QRACE2 to QRACE8"
    if rule == "known_code":
        blank = f"{schema[name].blank} or " if schema[name].blank else ""
        text = f"{name} must be {blank}a RACE_ETH_CODE of race-and-ethnicity-codes.txt"
        return f"{name} NOT IN ({_known(codes)})", text
    return f"{name} IS NULL", f"{name} must be {schema[name].rule}"


def _known(codes: frozenset[int]) -> str:
    """SQL for the codes there are, and for a blank, which domains allow where it may stand."""
    return ", ".join(map(str, sorted({0, *codes})))


_PLACES: Final = MappingProxyType(
    {
        "block_in_reference": "the block is not in GRF-C.txt",
        "block_has_housing_unit": "the block has no housing unit in housing-units.txt, so no household can live there",
    }
)


def find_places(db: duckdb.DuckDBPyConnection, schema: RecordFile, *, households: bool) -> dict[str, BrokenRecords]:
    """Find records in blocks that are not in the reference file, and households where no housing unit stands, by rule.

    Those of several shards add up (`add_broken`). The relation ``lived_in`` says which blocks hold how many records.
    """
    columns = ", ".join(BLOCK)
    places = {"block_in_reference": f"ANTI JOIN blocks USING ({columns})"}
    if households:
        bare = "SELECT * FROM blocks WHERE housing_units = 0"
        places["block_has_housing_unit"] = f"SEMI JOIN ({bare}) USING ({columns})"
    found = {}
    for rule, among in places.items():
        (count,) = numbers(db, f"SELECT sum(n) FROM lived_in {among}")
        if count:
            broken = f"{BLOCK_CODE} IN (SELECT {BLOCK_CODE} FROM lived_in {among})"
            found[rule] = find_broken(db, schema.relation, broken)
    return found


def word_places(found: Mapping[str, BrokenRecords], source: Source) -> list[Finding]:
    """Say where the records stand that `find_places` found."""
    findings = []
    for rule, text in _PLACES.items():
        if rule in found:
            findings += tell(found[rule], source, Finding(rule, "", text))
    return findings


def check_uniqueness(
    db: duckdb.DuckDBPyConnection, source: Source, relation: str, code: str = BLOCK_CODE
) -> list[Finding]:
    """Find blocks that a file lists more than once: each time would count everyone there once more."""
    (twice,) = numbers(db, f"SELECT count({code}) - count(DISTINCT {code}) FROM {relation}")
    if not twice:
        return []
    broken = f"{code} IN (SELECT {code} FROM {relation} GROUP BY ALL HAVING count(*) > 1)"
    return place_finding(
        db, source, Finding("unique_block", "", "the block is listed more than once"), relation, broken
    )


_NOT_TABULATED: Final = ("HOUSEHOLDER", "CENRACE", "HHRACE")


def open_detailed_files(
    db: duckdb.DuckDBPyConnection, folder: Path, schema: RecordFile, codes: frozenset[int], *, listed: bool
) -> OpenedFiles:
    """Make the relations out of the files of a folder, and check each file by itself.

    Parameters
    ----------
    db : duckdb.DuckDBPyConnection
    folder : Path
    schema : RecordFile
        The records.
    codes : frozenset of int
        The race and ethnicity codes there are.
    listed : bool
        Whether there is a list of housing units.

    Raises
    ------
    InputError
        If there are more blocks than fit into memory.
    """
    files = {"records": schema, "GRF-C": REFERENCE} | ({"housing-units": HOUSING_UNITS} if listed else {})
    sources, findings = open_files(db, folder, files)
    if "GRF-C" in sources:
        require_memory_for_blocks(db, REFERENCE.relation)
    whole = {}
    for name, source in sources.items():
        try:
            whole[name] = _check(db, source, files[name], codes)
        except STOPS:
            raise
        except duckdb.Error:
            findings += damaged_parts(db, source)
    for wrong in whole.values():
        findings += wrong
    has_blocks = all(whole.get(name) == [] for name in files if name != "records")
    return OpenedFiles(sources, findings, "records" in whole, has_blocks)


def _check(db: duckdb.DuckDBPyConnection, source: Source, schema: RecordFile, codes: frozenset[int]) -> list[Finding]:
    """Check a file, and make the relation ``every_record`` if it is the one of records."""
    if source.header:
        total, broken = count_values(db, schema.relation, schema.columns, codes)
    else:
        types, _ = stored_types(db, source, schema)
        total, broken = count_values(
            db,
            stored_rows(source, schema),
            schema.columns,
            codes,
            lambda column: from_stored(column, types[column.name]),
        )
    findings = []
    if not total:
        findings = [Finding("not_empty", source.called(schema.name), f"the file has no {schema.row}")]
    if schema is REFERENCE or schema is HOUSING_UNITS:
        findings += word_rules(find_rules(db, schema, codes, broken), source, schema, codes)
        block = "block" if schema is HOUSING_UNITS else BLOCK_CODE
        return findings + check_uniqueness(db, source, schema.relation, block)
    _make_records(db, source, schema, broken)
    broken += count_races_after_blank(db, "every_record")
    return findings + word_rules(find_rules(db, schema, codes, broken), source, schema, codes)


def _make_records(db: duckdb.DuckDBPyConnection, source: Source, schema: RecordFile, broken: Broken) -> None:
    columns = [column for column in schema.columns if column.name not in _NOT_TABULATED]
    if broken or source.header:
        chosen, relation = ", ".join(column.name for column in columns), schema.relation
    else:
        # Once all values are known to be right, they need not be looked at again: this is cheap where checking is not.
        chosen, relation = (
            ", ".join(f"{_trusted(column)} AS {column.name}" for column in columns),
            stored_rows(source, schema),
        )
    db.execute(f"CREATE VIEW every_record AS SELECT {chosen} FROM {relation}")


def _trusted(column: Column) -> str:
    """SQL for a value of the domain, text or integer, as a number: evaluated once per value stored."""
    number = f"TRY_CAST({column.name} AS {column.storage})"
    return f"coalesce({number}, 0)" if column.blank else number
