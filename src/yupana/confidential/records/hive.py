"""Columns that stand in the names of folders alone, as Hive lays out a table: ``geo/TABBLKST=06/part-0.parquet``."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import duckdb

from yupana.files.columns import Column, RecordFile
from yupana.files.database import open_database, quoted
from yupana.files.delimited import column_types, parquet_rows

NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
"""How Hive writes that a column has no value."""


@dataclass(frozen=True, slots=True)
class PathColumns:
    """What the names of folders say of columns: by column the value of each part, as a file would write it.

    Attributes
    ----------
    alone : mapping of str to tuple of (str or None)
        Columns that the files leave to the folders.
    besides : mapping of str to tuple of (str or None)
        Columns that stand in the files, too, and are read there.
    """

    alone: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    besides: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)


def columns_in_path(paths: Sequence[Path], names: Sequence[str], schema: RecordFile) -> PathColumns:
    """Find the columns that every part has in its path. Keys are never there: they tell records apart.

    Parameters
    ----------
    paths : sequence of Path
        The parts, which need not be sound.
    names : sequence of str
        Their names from the folder of the records on.
    schema : RecordFile
    """
    told = [_told(name) for name in names]
    columns = [(column, schema.written[column.name].lower()) for column in schema.columns if not column.key]
    found = {column: [values[name] for values in told] for column, name in columns if all(name in of for of in told)}
    if not found:
        return PathColumns()
    there = _columns_of_first(paths)
    told_by_name = {column.name: tuple(_written(column, value) for value in of) for column, of in found.items()}
    besides = {name for name in told_by_name if schema.written[name].lower() in there}
    return PathColumns(
        {name: values for name, values in told_by_name.items() if name not in besides},
        {name: values for name, values in told_by_name.items() if name in besides},
    )


def _told(name: str) -> dict[str, str]:
    """What the folders of a path say, by lower case; of one that is there twice the inner one."""
    pairs = (segment.partition("=") for segment in name.split("/")[1:-1])
    return {unquote(column).lower(): unquote(value) for column, equals, value in pairs if equals}


def _columns_of_first(paths: Sequence[Path]) -> frozenset[str]:
    """The columns, in lower case, of the first part that is sound."""
    with open_database() as db:
        for path in paths:
            try:
                return frozenset(name.lower() for name in column_types(db, parquet_rows([path])))
            except duckdb.Error:
                continue
    return frozenset()


def _written(column: Column, value: str) -> str | None:
    """A value as a file would write it: a folder may leave out the leading zeros of a code, as of an integer."""
    if value == NO_VALUE:
        return None
    if column.width and not column.words and re.fullmatch("0|[1-9][0-9]*", value, re.ASCII):
        return value.zfill(column.width)
    return value


def in_path(values: Sequence[str | None]) -> str:
    """SQL for the value of each row of several Parquet files ``f``, or of one."""
    texts = ["NULL" if value is None else quoted(value) for value in values]
    if len(texts) == 1:
        return f"({texts[0]}::VARCHAR)"
    return f"([{', '.join(texts)}]::VARCHAR[])[f.file_index::BIGINT + 1]"
