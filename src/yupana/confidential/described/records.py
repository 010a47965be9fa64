"""The record files of a description, as they are opened, checked and cut."""

from contextlib import AbstractContextManager
from pathlib import Path

from yupana.confidential.records.declared import Declared, Link, Rule, occurs_twice, open_declared
from yupana.confidential.records.foreign_files import RecordForms
from yupana.confidential.records.sources import OpenedRecords
from yupana.confidential.shards.count_in_shards import Cut
from yupana.files.columns import ColumnMap, RecordFile
from yupana.files.database import named
from yupana.products.described.description import DescribedFile, Description, in_join


def open_described(
    description: Description, folder: Path, memory: int | None, columns: ColumnMap
) -> AbstractContextManager[OpenedRecords]:
    """Open and check the files of a description.

    Raises
    ------
    InputError
        If the folder is missing. Broken rules are findings, not errors.
    """
    return open_declared(declared_by(description, columns), folder, memory)


def declared_by(description: Description, columns: ColumnMap) -> Declared:
    """What a description declares of its records: unique keys, links to a record, and blocks that are listed."""
    schemas = {file.name: columns.applied(file.schema) for file in description.record_files}

    def written(of: DescribedFile, column: str) -> str:
        return schemas[of.name].written[f"{of.name}.{column}"]

    rules, links = [], []
    for file in description.record_files:
        if file.key:
            twice = occurs_twice(named(file.schema.relation), in_join(file.name, file.key))
            rules.append(Rule("unique_key", file.name, twice, f"{written(file, file.key)} occurs twice"))
        if file.parent and not description.files[file.parent].ids_in:
            parent = description.files[file.parent]
            text = f"{written(file, file.link)} is no {written(parent, parent.key)} of {parent.name}"
            own, above = in_join(file.name, file.link), in_join(parent.name, parent.key)
            links.append(Link(file.name, own, parent.name, above, text))
    places = {file.name: key_of(description, file.name) for file in description.record_files if file.blocks}
    return Declared(
        schemas, rules=tuple(rules), links=tuple(links), blocks=description.blocks,
        places=places if description.blocks else {},
    )  # fmt: skip


def key_of(description: Description, file: str) -> tuple[str, ...]:
    """SQL for the columns of a file's records that name their block."""
    return tuple(in_join(file, column.name) for column in description.files[file].blocks)


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
