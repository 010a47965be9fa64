"""Open and check the record files of a description: domains, keys, links."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb

from yupana.confidential.described.blocks import check_places, open_blocks
from yupana.confidential.records.database import numbers, private_database
from yupana.confidential.records.object_store import require_at_hand
from yupana.confidential.records.phsafe_records import is_synthetic
from yupana.confidential.records.reader import count_unfit, damaged_parts, open_records, trust
from yupana.confidential.records.sources import Source, find_source, place_finding
from yupana.confidential.records.validation import Finding, require_none
from yupana.confidential.shards.count_in_shards import Cut
from yupana.files.columns import ColumnMap, RecordFile
from yupana.files.database import STOPS, named
from yupana.files.delimited import column_types
from yupana.privacy.sealed import Sealed
from yupana.products.described.description import DescribedFile, Description, in_join
from yupana.products.described.published import PublishedSource

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
        # Usually none is there twice, which is quicker to find than which.
        (again,) = numbers(db, f"SELECT count({key}) - count(DISTINCT {key}) FROM {relation}")
        if again:
            broken = f"{key} IN (SELECT {key} FROM {relation} GROUP BY 1 HAVING count(*) > 1)"
            (count,) = numbers(db, f"SELECT count(*) FROM {relation} WHERE {broken}")
            text = f"{written(file, file.key)} occurs twice"
            findings += place_finding(db, source, Finding("unique_key", "", text, count), relation, broken)
    if file.parent and not description.files[file.parent].ids_in:
        parent = description.files[file.parent]
        link, key = keys_of_link(db, description, file)
        orphans = f"(SELECT * FROM {relation} ANTI JOIN {named(parent.schema.relation)} ON {link} = {key})"
        broken = f"{in_join(file.name, file.link)} IS NOT NULL"
        (count,) = numbers(db, f"SELECT count(*) FROM {orphans} WHERE {broken}")
        if count:
            text = f"{written(file, file.link)} is no {written(parent, parent.key)} of {parent.name}"
            findings += place_finding(db, source, Finding("link", "", text, count), orphans, broken)
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
