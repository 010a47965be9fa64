"""What record files call columns that have other names here: the Census Bureau's, or a description's. Public."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from yupana.errors import ConfigError, nearest
from yupana.files.columns import GEO, HOUSEHOLD_RECORDS, PERSON_RECORDS, PERSONS, UNITS, RecordFile
from yupana.files.declaration import TEXT, scalar, table_of
from yupana.files.document import is_text, read_document, refuse

BUREAU_FILES: Final = {file.name: file for file in (PERSONS, UNITS, GEO, PERSON_RECORDS, HOUSEHOLD_RECORDS)}
"""The record files of the Census Bureau's products."""


@dataclass(frozen=True, slots=True)
class ColumnMap:
    """Names of columns by record file.

    Attributes
    ----------
    names : mapping of file to mapping of str to str
        Of each record file, without extension: the names in it by ours. Others are ours.
    """

    names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def applied(self, file: RecordFile) -> RecordFile:
        """The record file with these names."""
        names = self.names.get(file.name, {})
        written = ((ours, names.get(own, own)) for ours, own in file.written.items())
        return replace(file, called=tuple((ours, own) for ours, own in written if ours != own))

    def as_text(self) -> str:
        """Describe it, for the options of a manifest; empty if every column has our name."""
        return json.dumps(self.names) if self.names else ""


BUREAU: Final = ColumnMap()
"""Every column has the Census Bureau's name."""


def read_column_map(path: Path, files: Mapping[str, RecordFile] = BUREAU_FILES) -> ColumnMap:
    """Read a map in TOML or JSON: a table for each record file, such as ``AGE = "alter"`` in ``[persons]``.

    Parameters
    ----------
    path : Path
    files : mapping of str to RecordFile
        The record files there are, by name.

    Raises
    ------
    ConfigError
        If a file or column is unknown, or a name stands for two columns. All faults are named at once.
    """
    document, faults = read_document(path)
    found = _checked(document, files, faults)
    if faults:
        raise refuse(path, faults)
    return found


def column_map_of(
    text: str, name: str = "options.columns", files: Mapping[str, RecordFile] = BUREAU_FILES
) -> ColumnMap:
    """Read what `ColumnMap.as_text` wrote; ``name`` is what an error calls it.

    Raises
    ------
    ConfigError
        If it is something else.
    """
    faults: list[str] = []
    try:
        found = _checked(json.loads(text) if text else {}, files, faults)
    except (ValueError, RecursionError):
        faults.append("must be JSON")
    if faults:
        raise ConfigError(f"{name}: {'; '.join(faults)}")
    return found


def _ascii(told: object) -> str | None:
    return str(told) if is_text(told) and str(told).isascii() and str(told)[0].isalpha() else None


_NAME: Final = scalar("a name in ASCII that begins with a letter", _ascii, TEXT.schema)


def _checked(document: object, files: Mapping[str, RecordFile], faults: list[str]) -> ColumnMap:
    names = table_of(table_of(_NAME)).read("", document, faults) or {}
    known = ", ".join(files)
    faults += [
        f"{name!r} is no record file; there are {known}{nearest(name, files)}" for name in names if name not in files
    ]
    for name, table in names.items():
        if name in files:
            _check_names(files[name], table, faults)
    return ColumnMap({name: table for name, table in names.items() if table})


def _check_names(file: RecordFile, table: Mapping[str, str], faults: list[str]) -> None:
    strange = [column for column in table if column not in file.header]
    faults += [
        f"{file.name}: {column!r} is no column; there are {', '.join(file.header)}{nearest(column, file.header)}"
        for column in strange
    ]
    if strange:
        return
    ours: dict[str, str] = {}
    for column in file.header:
        name = table.get(column, column)
        first = ours.setdefault(name.lower(), column)
        if first != column:
            faults.append(f"{file.name}: {name!r} would be both {first} and {column}; map each to a name of its own")
