"""SafeTab's own files: records as text or Parquet, the reference file of blocks, and a list of housing units."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import duckdb

from yupana.confidential.records.detailed_rules import (
    BLOCK_CODE,
    Broken,
    OpenedFiles,
    check_uniqueness,
    count_races_after_blank,
    count_values,
    find_rules,
    require_memory_for_blocks,
    word_rules,
)
from yupana.confidential.records.findings import Finding
from yupana.confidential.records.reader import (
    Source,
    damaged_parts,
    find_source,
    from_stored,
    open_records,
    stored_rows,
    stored_types,
)
from yupana.files.columns import HOUSING_UNITS, REFERENCE, Column, RecordFile
from yupana.files.database import STOPS

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
    sources, findings = _open(db, folder, files)
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


def _open(
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
        name = source.names[0] if len(source.names) == 1 else f"{schema.name} ({len(source.names):,} files)"
        findings = [Finding("not_empty", name, f"the file has no {schema.row}")]
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
