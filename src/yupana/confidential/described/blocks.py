"""Open the public file of blocks beside the records, and check that every record lies in a block of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import duckdb

from yupana.confidential.records.database import numbers
from yupana.confidential.records.reader import damaged_parts, open_records
from yupana.confidential.records.sources import Source, find_source, place_finding
from yupana.confidential.records.validation import Finding
from yupana.confidential.tabulate.group_tabulation import block_number, in_chosen
from yupana.files.columns import Column, RecordFile
from yupana.files.database import STOPS, named
from yupana.geography.block_file import BlockFile, HousingUnitFile
from yupana.products.described.description import Description, in_join

_ENDINGS: Final = ("txt", "csv", "parquet")
_GEOID: Final = 15
"""Digits of a census block: state, county, tract and block."""

_BLOCKS: Final = "file_of_blocks"


_UNITS: Final = "file_of_housing_units"


def _schema_of(blocks: BlockFile) -> RecordFile:
    """How the file of blocks is read."""
    columns = tuple(Column(c.name, range(10**c.digits), c.digits) for c in (*blocks.key, *blocks.columns))
    return RecordFile(blocks.file, "block", columns, _ENDINGS, alias=_BLOCKS)


def _schema_of_units(blocks: BlockFile, units: HousingUnitFile) -> RecordFile:
    """How the file of housing units is read: by the digits of the key one after another."""
    digits, text = sum(column.digits for column in blocks.key), ""
    saying = f"{digits} digits"
    if digits == _GEOID:
        # The block group says nothing that the block does not.
        name, saying = named(units.block), f"{digits} digits, or {digits + 1} with the block group after the tract"
        text = f"CASE WHEN length({name}) = 16 THEN left({name}, 11) || right({name}, 4) ELSE {name} END"
    block = Column(units.block, range(10**digits), digits, saying=saying, text=text)
    return RecordFile(
        units.file, "block", (block, Column(units.number, range(1 << 31), saying="a whole number")), _ENDINGS,
        alias=_UNITS,
    )  # fmt: skip


def open_blocks(
    db: duckdb.DuckDBPyConnection, folder: Path, blocks: BlockFile
) -> tuple[dict[str, Source], list[Finding]]:
    """Make the relation ``blocks`` that `find_areas` reads, or say what is wrong with its files; the files by name."""
    of_file = _schema_of(blocks)
    key = block_number([named(column.name) for column in blocks.key], blocks.key)
    wanted = [(of_file, key)]
    if units := blocks.housing_units:
        wanted.append((_schema_of_units(blocks, units), named(units.block)))
    sources: dict[str, Source] = {}
    findings: list[Finding] = []
    for schema, block in wanted:
        source, wrong = find_source(folder, schema)
        if source is not None:
            sources[schema.name] = source
            try:
                wrong = open_records(db, source, schema) or _check(db, source, schema, block)
            except STOPS:
                raise
            except duckdb.Error:
                wrong = damaged_parts(db, source)
        findings += wrong
    if not findings:
        columns, stand = ", ".join(named(column.name) for column in of_file.columns), "NULL::BIGINT"
        if units:
            number = f"SELECT {named(units.number)} FROM {_UNITS} WHERE {named(units.block)} = {key}"
            stand = f"coalesce(({number}), 0)"
        db.execute(
            f"CREATE TABLE blocks AS SELECT {columns}, {stand} AS housing_units FROM {_BLOCKS} "
            f"WHERE {in_chosen(named(blocks.key[0].name), blocks)}"
        )
        if numbers(db, "SELECT count(*) FROM blocks") == (0,):
            text = f"no block has a value of {blocks.key[0].name} that blocks.only names"
            findings.append(Finding("not_empty", sources[blocks.file].names[0], text))
    return sources, findings


def _check(db: duckdb.DuckDBPyConnection, source: Source, schema: RecordFile, block: str) -> list[Finding]:
    """Values that are none of their column, and blocks that are listed twice: they would count everyone there twice."""
    findings = []
    for column in schema.columns:
        broken = f"{named(column.name)} IS NULL"
        (count,) = numbers(db, f"SELECT count(*) FROM {schema.relation} WHERE {broken}")
        if count:
            text = f"{column.name} must be {column.rule}"
            findings += place_finding(db, source, Finding("domain", "", text, count), schema.relation, broken)
    (rows, different) = numbers(db, f"SELECT count(*), count(DISTINCT {block}) FROM {schema.relation}")
    if not rows:
        findings.append(Finding("not_empty", source.names[0], "the file has no block"))
    if rows > different and not findings:
        broken = f"{block} IN (SELECT {block} FROM {schema.relation} GROUP BY ALL HAVING count(*) > 1)"
        (count,) = numbers(db, f"SELECT count(*) FROM {schema.relation} WHERE {broken}")
        text = "the block is listed more than once"
        findings += place_finding(db, source, Finding("unique_block", "", text, count), schema.relation, broken)
    return findings


def key_of(description: Description, file: str) -> tuple[str, ...]:
    """SQL for the columns of a file's records that name their block."""
    return tuple(in_join(file, column.name) for column in description.files[file].blocks)


def check_places(
    db: duckdb.DuckDBPyConnection, description: Description, sources: Mapping[str, Source]
) -> list[Finding]:
    """Find records in blocks that the file of blocks does not list, of those that count."""
    blocks, findings = description.blocks, []
    for file in description.record_files if blocks else ():
        if not (file.blocks and blocks):
            continue
        key, relation = key_of(description, file.name), named(file.schema.relation)
        listed = f"SELECT {block_number([named(c.name) for c in blocks.key], blocks.key)} FROM blocks"
        broken = f"{in_chosen(key[0], blocks)} AND {block_number(key, blocks.key)} NOT IN ({listed})"
        # By block first: there are fewer of them than records.
        lived_in = f"SELECT {', '.join(key)}, count(*) AS n FROM {relation} GROUP BY ALL"
        (count,) = numbers(db, f"SELECT sum(n) FROM ({lived_in}) WHERE {broken}")
        if count:
            text = f"the block is not in {blocks.file}"
            finding = Finding("block_in_reference", "", text, count)
            findings += place_finding(db, sources[file.name], finding, relation, broken)
    return findings
