"""Rows of a public text file with a header, whose fields stand between ``|`` or ``,``; each with its line. Public."""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from yupana.errors import is_control
from yupana.files.regular import regular


@dataclass(frozen=True, slots=True)
class TextRow:
    """A row: the line it ends on, and what it says in each column."""

    line: int
    values: Mapping[str, str]


def read_rows(place: str, path: Path, columns: tuple[str, ...], faults: list[str]) -> list[TextRow]:
    """Read a file that has some columns, and perhaps others; no rows, with faults, if it cannot be read.

    Parameters
    ----------
    place : str
        Where a configuration names the file.
    path : Path
    columns : tuple of str
        Which it must have.
    faults : list of str
        What is wrong is added to it.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="", opener=regular) as file:
            return list(_rows(f"{place}: {path}", file.read().splitlines(), columns, faults))
    except OSError as error:
        faults.append(f"{place}: {path}: {error.strerror}")
    except (UnicodeDecodeError, csv.Error):
        faults.append(f"{place}: {path} is no text file of columns")
    return []


def _rows(where: str, lines: list[str], columns: tuple[str, ...], faults: list[str]) -> Iterator[TextRow]:
    separator = "|" if lines and "|" in lines[0] else ","
    read = csv.reader(lines, delimiter=separator)
    header = [name.strip() for name in next(read, [])]
    lost = [column for column in dict.fromkeys(columns) if column not in header]
    faults += [f"{where} has no column {column}; it has {', '.join(header)}" for column in lost]
    for fields in read if not lost else ():
        if not any(field.strip() for field in fields):
            continue
        if len(fields) != len(header):
            faults.append(f"{where}: line {read.line_num}: must have {len(header)} fields, not {len(fields)}")
            continue
        if odd := [name for name, field in zip(header, fields, strict=True) if any(map(is_control, field))]:
            faults.append(f"{where}: line {read.line_num}, column {odd[0]}: holds a control character; remove it")
            continue
        yield TextRow(read.line_num, dict(zip(header, (field.strip() for field in fields), strict=True)))
