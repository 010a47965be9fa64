"""Open and check the record files of a description: domains, keys, links, and the public file of blocks beside them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb

from yupana.confidential.records.database import numbers, private_database
from yupana.confidential.records.foreign_files import RecordForms
from yupana.confidential.records.object_store import require_at_hand
from yupana.confidential.records.phsafe_records import is_synthetic
from yupana.confidential.records.reader import count_unfit, damaged_parts, open_records, trust
from yupana.confidential.records.sources import Source, find_source, place_finding
from yupana.confidential.records.validation import Finding, require_none
from yupana.confidential.shards.count_in_shards import Cut
from yupana.confidential.tabulate.group_tabulation import block_number, in_chosen
from yupana.files.columns import Column, ColumnMap, RecordFile
from yupana.files.database import STOPS, named
from yupana.files.delimited import column_types
from yupana.geography.block_file import BlockFile, HousingUnitFile
from yupana.privacy.sealed import Sealed
from yupana.products.described.description import DescribedFile, Description, in_join
from yupana.products.described.published import PublishedSource

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
        text = f"{column.name} must be {column.rule}"
        findings += _broken(db, source, schema.relation, f"{named(column.name)} IS NULL", "domain", text)
    if numbers(db, f"SELECT count(*) FROM {schema.relation}") == (0,):
        findings.append(Finding("not_empty", source.names[0], "the file has no block"))
    twice = "unique_block", "the block is listed more than once"
    return findings or _repeated(db, source, schema.relation, block, *twice)


def _repeated(
    db: duckdb.DuckDBPyConnection, source: Source, relation: str, value: str, rule: str, text: str
) -> list[Finding]:
    """Records of a relation with a value that another one has, too."""
    # Usually none is there twice, which is quicker to find than which.
    if numbers(db, f"SELECT count({value}) - count(DISTINCT {value}) FROM {relation}") == (0,):
        return []
    broken = f"{value} IN (SELECT {value} FROM {relation} GROUP BY ALL HAVING count(*) > 1)"
    return _broken(db, source, relation, broken, rule, text)


def _broken(
    db: duckdb.DuckDBPyConnection, source: Source, relation: str, broken: str, rule: str, text: str
) -> list[Finding]:
    """Records of a relation for which some SQL is true."""
    (count,) = numbers(db, f"SELECT count(*) FROM {relation} WHERE {broken}")
    return place_finding(db, source, Finding(rule, "", text, count), relation, broken) if count else []


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


_WITHOUT_VALUE: Final = "must have a value"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DescribedRecords(Sealed):
    """Records of a description in a database, one relation for each file (`RecordFile.relation`).

    Attributes
    ----------
    db : duckdb.DuckDBPyConnection
    folder : Path
        Where they lie.
    files : mapping of file to Source
    findings : tuple of Finding
        Rules that they break.
    is_synthetic : bool
        Whether the folder was marked as made up when it was opened; a mark that appears later counts for nothing.
    published : PublishedSource or None
        Totals that decide the detail of tables, where a description has such tables and they will be counted.
    counted : tuple or None
        What shards counted of the records, which are then not in the database; None if they are.
    """

    db: duckdb.DuckDBPyConnection
    folder: Path
    files: Mapping[str, Source]
    findings: tuple[Finding, ...]
    is_synthetic: bool
    published: PublishedSource | None = None
    counted: tuple[Any, ...] | None = None

    def require_valid(self) -> None:
        """Refuse records that break a rule."""
        require_none(self.findings)


@contextmanager
def open_described(
    description: Description, folder: Path, memory: int | None, columns: ColumnMap
) -> Iterator[DescribedRecords]:
    """Open and check the files of a description.

    Raises
    ------
    InputError
        If the folder is missing. Broken rules are findings, not errors.
    """
    require_at_hand(folder)
    synthetic = is_synthetic(folder)
    schemas = {file.name: columns.applied(file.schema) for file in description.record_files}
    with private_database(memory) as db:
        sources: dict[str, Source] = {}
        findings: list[Finding] = []
        for file in description.record_files:
            source, wrong = find_source(folder, schemas[file.name])
            if source is not None and not (wrong := open_records(db, source, schemas[file.name])):
                sources[file.name] = source
            findings += wrong
        intact = not findings
        for name, source in sources.items():
            try:
                findings += _domains(db, source, schemas[name])
            except STOPS:
                raise
            except duckdb.Error:
                findings += damaged_parts(db, source)
                intact = False
        findings += _places(db, description, folder, sources, intact=intact)
        if intact:
            for file in description.record_files:
                findings += _links(db, sources[file.name], description, file, schemas)
        for name, source in sources.items() if not findings else ():
            if name in schemas:
                trust(db, source, schemas[name])
        yield DescribedRecords(db, folder, sources, tuple(findings), synthetic)


def forms_of(description: Description, columns: ColumnMap) -> RecordForms:
    """The files of a description, each of which may be in any form."""
    schemas = {file.name: columns.applied(file.schema) for file in description.record_files}
    return RecordForms(schemas, description.layout, description.data, description.encoding)


def cut_of(description: Description, columns: ColumnMap, shards: int | None) -> Cut:
    """How records are cut so that all that is linked to one record of a unit is in one shard."""
    files = {file.name: file for file in description.record_files}
    keys: dict[RecordFile, tuple[str, ...]] = {}
    unique: dict[RecordFile, str] = {}
    for file in files.values():
        schema = columns.applied(file.schema)
        if file.parent in files and files[file.parent].parent:
            # A link tells the record above, and not the unit that this one is of.
            shards = 1
        own = file.link or file.key
        keys[schema] = (f"{file.name}.{own}",) if own else schema.header
        if file.key and file.key != own:
            unique[schema] = f"{file.name}.{file.key}"
    return Cut(keys, shards, unique)


def _places(
    db: duckdb.DuckDBPyConnection, description: Description, folder: Path, sources: dict[str, Source], *, intact: bool
) -> list[Finding]:
    """Open the file of blocks, if there is to be one; find records that lie in none of them."""
    if description.blocks is None:
        return []
    of_blocks, findings = open_blocks(db, folder, description.blocks)
    sources |= of_blocks
    return findings or (check_places(db, description, sources) if intact else [])


def _domains(db: duckdb.DuckDBPyConnection, source: Source, schema: RecordFile) -> list[Finding]:
    """Values that are none of their column, and keys without a value."""
    unfit, written = count_unfit(db, source, schema), schema.written
    findings = []
    for column in schema.columns:
        if count := unfit[column.name]:
            text = f"{written[column.name]} {_WITHOUT_VALUE if column.key else 'must be ' + column.rule}"
            rule = "key" if column.key else "domain"
            broken = f"{named(column.name)} IS NULL"
            findings += place_finding(db, source, Finding(rule, "", text, count), named(schema.relation), broken)
    return findings


def _links(
    db: duckdb.DuckDBPyConnection,
    source: Source,
    description: Description,
    file: DescribedFile,
    schemas: Mapping[str, RecordFile],
) -> list[Finding]:
    """Keys that must be unique, and links that must be to a record."""

    def written(of: DescribedFile, column: str) -> str:
        return schemas[of.name].written[f"{of.name}.{column}"]

    relation, findings = named(file.schema.relation), []
    if file.key:
        key = in_join(file.name, file.key)
        findings += _repeated(db, source, relation, key, "unique_key", f"{written(file, file.key)} occurs twice")
    if file.parent and not description.files[file.parent].ids_in:
        parent = description.files[file.parent]
        link, key = keys_of_link(db, description, file)
        orphans = f"(SELECT * FROM {relation} ANTI JOIN {named(parent.schema.relation)} ON {link} = {key})"
        broken = f"{in_join(file.name, file.link)} IS NOT NULL"
        text = f"{written(file, file.link)} is no {written(parent, parent.key)} of {parent.name}"
        findings += _broken(db, source, orphans, broken, "link", text)
    return findings


def keys_of_link(db: duckdb.DuckDBPyConnection, description: Description, child: DescribedFile) -> tuple[str, str]:
    """SQL for the link of a file and for the key it names: as texts where only one file holds them as numbers."""
    parent = description.files[child.parent]
    columns = in_join(child.name, child.link), in_join(parent.name, parent.key)
    kinds = [
        column_types(db, f"(SELECT {column} AS of_link FROM {named(file.schema.relation)})")["of_link"]
        for column, file in zip(columns, (child, parent), strict=True)
    ]
    if kinds.count("VARCHAR") != 1:
        return columns
    link, key = (f"CAST({column} AS VARCHAR)" for column in columns)
    return link, key
