"""Open the public file of blocks beside the records, and check that every record lies in a block of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import duckdb

from yupana.confidential.records.database import numbers
from yupana.confidential.records.findings import Finding
from yupana.confidential.records.reader import Source, find_source, open_records, place_finding
from yupana.confidential.tabulate.pieces import block_number, in_chosen
from yupana.files.columns import Column, RecordFile
from yupana.files.database import named
from yupana.geography.block_file import BlockFile
from yupana.products.described.description import Description, in_join

RELATION: Final = "file_of_blocks"


def schema_of(blocks: BlockFile) -> RecordFile:
    """How the file of blocks is read."""
    columns = tuple(Column(c.name, range(10**c.digits), c.digits) for c in (*blocks.key, *blocks.columns))
    return RecordFile(blocks.file, "block", columns, ("txt", "csv", "parquet"), alias=RELATION)


def open_blocks(db: duckdb.DuckDBPyConnection, folder: Path, blocks: BlockFile) -> tuple[Source | None, list[Finding]]:
    """Make the relation ``blocks`` that `find_areas` reads, or say what is wrong with the file."""
    schema = schema_of(blocks)
    source, wrong = find_source(folder, schema)
    if source is None or (wrong := open_records(db, source, schema)):
        return source, wrong
    key = [named(column.name) for column in blocks.key]
    findings = []
    for column in schema.columns:
        broken = f"{named(column.name)} IS NULL"
        (count,) = numbers(db, f"SELECT count(*) FROM {RELATION} WHERE {broken}")
        if count:
            text = f"{column.name} must be {column.rule}"
            findings += place_finding(db, source, Finding("domain", "", text, count), RELATION, broken)
    (rows, different) = numbers(db, f"SELECT count(*), count(DISTINCT {block_number(key, blocks.key)}) FROM {RELATION}")
    if not rows:
        findings.append(Finding("not_empty", source.names[0], "the file has no block"))
    if rows > different and not findings:
        broken = f"({', '.join(key)}) IN (SELECT ({', '.join(key)}) FROM {RELATION} GROUP BY ALL HAVING count(*) > 1)"
        (count,) = numbers(db, f"SELECT count(*) FROM {RELATION} WHERE {broken}")
        text = "the block is listed more than once"
        findings += place_finding(db, source, Finding("unique_block", "", text, count), RELATION, broken)
    if not findings:
        columns = ", ".join(named(column.name) for column in schema.columns)
        db.execute(
            f"CREATE TABLE blocks AS SELECT {columns}, NULL::INTEGER AS housing_units FROM {RELATION} "
            f"WHERE {in_chosen(key[0], blocks)}"
        )
    return source, findings


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
