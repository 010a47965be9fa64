"""Lines of fixed width, some at a time: of a file of text, or of the SQLite file that CSPro keeps questionnaires in."""

import codecs
import gzip
import re
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from yupana.confidential.records.validation import BrokenRulesError, Finding, require_none
from yupana.files.arrow_stream import Texts
from yupana.files.database import named, quoted
from yupana.files.dictionaries.dictionary import Dictionary, DictionaryItem, RecordType
from yupana.files.dictionaries.layout import record_length
from yupana.files.regular import regular

_AT_ONCE: Final = 1 << 24
_LONGEST: Final = 1 << 20
_ROWS_AT_ONCE: Final = 100_000
_LOOKED_AT: Final = 100

CSDB: Final = ".csdb"
"""How the name of CSPro's SQLite files ends."""

WIDE: Final = ("utf-16",)
"""Encodings of which a line end is not one byte."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordLines:
    """Some lines.

    Attributes
    ----------
    texts : Texts
        With their ends.
    numbers : ndarray of int64, shape (lines,)
        From 1: of a text file those of its lines, of a table its ids.
    """

    texts: Texts
    numbers: NDArray[np.int64]


def _refuse(rule: str, name: str, text: str, *lines: int) -> None:
    require_none([Finding(rule, name, text, lines=lines)])


def lines_of_text(path: Path, encoding: str) -> Iterator[RecordLines]:
    """The lines of a file of text, which may be compressed by gzip.

    Parameters
    ----------
    encoding : str
        UTF-8 where it is empty; a byte-order mark is left out.

    Raises
    ------
    BrokenRulesError
        If it is not text in the encoding, or a line is longer than any record.
    """
    done = 0
    try:
        with open(path, "rb", opener=regular) as raw:
            file = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
            for part in _parts(file, path.name, encoding or "utf-8", done):
                content = np.frombuffer(part, dtype=np.uint8)
                ends = np.flatnonzero(content == ord("\n")) + 1
                if not len(ends) or ends[-1] != len(content):
                    ends = np.append(ends, len(content))
                texts = Texts(content, np.concatenate([[0], ends]).astype(np.int64))
                yield RecordLines(texts, np.arange(done + 1, done + 1 + len(ends), dtype=np.int64))
                done += len(ends)
    except OSError as error:
        _refuse("readable", path.name, error.strerror or "cannot be read; is it damaged?")
    except (EOFError, zlib.error):
        _refuse("readable", path.name, "is no complete gzip file; was it cut off?")
    if not done:
        _refuse("not_empty", path.name, "the file is empty")


def _parts(file: BinaryIO | gzip.GzipFile, name: str, encoding: str, done: int) -> Iterator[bytes]:
    """Whole lines, in UTF-8."""
    wide = codecs.getincrementaldecoder(encoding)() if encoding in WIDE else None
    kept, first = b"", True
    while True:
        block = file.read(_AT_ONCE)
        final = not block
        if wide is not None:
            try:
                block = wide.decode(block, final).encode()
            except UnicodeError:
                _refuse("is_text", name, f"is not {encoding} throughout; say encoding in the description")
        data = kept + block
        if first:
            if data[:2] in {codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE}:
                _refuse("is_text", name, 'is UTF-16; say encoding = "utf-16" in the description')
            data = data.removeprefix(codecs.BOM_UTF8)
        first = False
        cut = len(data) if final else data.rfind(b"\n") + 1
        if len(data) - cut > _LONGEST:
            _refuse("row_shape", name, "a line is too long to be a record", done + 1)
        part, kept = data[:cut], data[cut:]
        if final:
            part = part.removesuffix(b"\x1a")  # as DOS ended files
        if part:
            yield _as_text(part, name, "utf-8" if wide else encoding, done)
            done += part.count(b"\n")
        if final:
            return


def _as_text(part: bytes, name: str, encoding: str, done: int) -> bytes:
    """Some lines in UTF-8."""
    if b"\0" in part:
        line = done + 1 + part.count(b"\n", 0, part.index(b"\0"))
        _refuse("is_text", name, 'holds null bytes; if it is UTF-16, say encoding = "utf-16"', line)
    if part.isascii():
        return part
    try:
        text = part.decode(encoding)
    except UnicodeDecodeError as error:
        line = done + 1 + part.count(b"\n", 0, error.start)
        other = "cp1252" if encoding == "utf-8" else "utf-8"
        told = f'is not {encoding} text; say the encoding of the file in the description, such as encoding = "{other}"'
        _refuse("is_text", name, told, line)
    return part if encoding == "utf-8" else text.encode()


def lines_of_table(path: Path, dictionary: Dictionary, level: int, record: RecordType) -> Iterator[RecordLines]:
    """The records of one type in CSPro's SQLite file, as the lines of text that they would be.

    Cases that are marked as deleted are left out. Those that are saved in part are kept.

    Raises
    ------
    BrokenRulesError
        If it is no such file, is being written, is damaged, or has other tables or columns than the dictionary says.
    """
    name = path.name
    if any(Path(f"{path}{ending}").exists() for ending in ("-wal", "-journal")):
        _refuse("readable", name, "a file beside it holds what is not yet in it; close CSPro, and copy it then")
    ids = [(number, item) for number in range(level + 1) for item in dictionary.levels[number].ids]
    try:
        with closing(_open(path)) as db:
            tables = dict(db.execute("SELECT lower(name), name FROM sqlite_master WHERE type = 'table'").fetchall())
            joined, own = f"level-{level + 1}", record.name.lower()
            wanted = ["cases", *(f"level-{number + 1}" for number in range(level + 1)), own]
            if missing := [table for table in wanted if table not in tables]:
                told = f"has no table {', '.join(missing)}, which the dictionary says; is it of another dictionary?"
                _refuse("columns_present", name, told)
            columns = {table: _columns(db, tables[table]) for table in wanted}
            fields = [(f"level-{number + 1}", item) for number, item in ids] + [(own, item) for item in record.items]
            line, absent = _line(dictionary, record, fields, columns)
            needed = {own: [f"{own}-id", f"{joined}-id"], "cases": ["id", "deleted"]}
            absent += [f"{t}.{c}" for t, of in needed.items() for c in of if c not in columns[t]]
            if absent:
                told = f"has no column {', '.join(absent[:5])}, which the dictionary says; is it of another dictionary?"
                _refuse("columns_present", name, told)
            query = (
                f"SELECT {named(own)}.{named(own + '-id')}, {line} FROM {named(own)}{_joins(level)} "
                f"WHERE cases.deleted = 0 ORDER BY 1"
            )
            rows = db.execute(query)
            rows.arraysize = _ROWS_AT_ONCE
            while found := rows.fetchmany():
                yield _as_lines(found)
    except sqlite3.DatabaseError:
        told = "cannot be read as SQLite: is it damaged, encrypted (.csdbe), or another kind of file? Copy or export it"
        _refuse("is_csdb", name, f"{told} again with CSPro")


def _as_lines(rows: Sequence[tuple[int, str]]) -> RecordLines:
    texts = Texts.of([text.encode("utf-8", "replace") for _, text in rows])
    return RecordLines(texts, np.array([number for number, _ in rows], dtype=np.int64))


def _open(path: Path) -> sqlite3.Connection:
    with open(path, "rb", opener=regular):
        pass
    place = str(path.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    db = sqlite3.connect(f"file:{place}?mode=ro&immutable=1", uri=True)
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
    db.execute("PRAGMA trusted_schema = OFF")
    return db


def _columns(db: sqlite3.Connection, table: str) -> dict[str, str]:
    return {str(row[1]).lower(): str(row[1]) for row in db.execute(f"PRAGMA table_info({named(table)})").fetchall()}


def _joins(level: int) -> str:
    found = ""
    for number in range(level, -1, -1):
        found += f" JOIN {named(f'level-{number + 1}')} USING ({named(f'level-{number + 1}-id')})"
    return f'{found} JOIN cases ON cases.id = "level-1"."case-id"'


def _line(
    dictionary: Dictionary,
    record: RecordType,
    fields: Sequence[tuple[str, DictionaryItem]],
    columns: dict[str, dict[str, str]],
) -> tuple[str, list[str]]:
    """SQL for the line of a record, and the columns that are not there."""
    pieces, at, absent = [], 1, list[str]()
    code = [("", DictionaryItem("", start=dictionary.type_start, length=dictionary.type_length))]
    whole = [*(code if dictionary.type_length else ()), *fields]
    for table, item in sorted(whole, key=lambda field: (field[1].start, -field[1].length)):
        if item.start < at:
            continue  # of an item that stands there already
        pieces += [f"printf('%{item.start - at}s', '')"] if item.start > at else []
        at = item.start + item.length
        if not table:
            pieces.append(f"substr({quoted(record.code)} || printf('%{item.length}s', ''), 1, {item.length})")
            continue
        column = next((columns[table][name] for name in _called(item) if name in columns[table]), None)
        if column is None:
            absent.append(f"{table}.{item.name.lower()}")
        else:
            pieces.append(_field(f"{named(table)}.{named(column)}", item))
    return " || ".join(pieces), absent


def _called(item: DictionaryItem) -> tuple[str, ...]:
    name, occurrence = (item.source or item.name).lower(), item.occurrence
    return (item.name.lower(), f"{name}({occurrence})", f"{name}_{occurrence}", name)[: 3 if occurrence > 1 else 4]


def _field(column: str, item: DictionaryItem) -> str:
    """SQL for a value as a line has it; what does not fit is stars, which are no value."""
    width = item.length
    text = f"replace(replace(CAST({column} AS TEXT), char(10), ' '), char(13), ' ')"
    if item.is_number:
        scaled = f"{column} * 1{'0' * item.decimals}" if item.decimals else column
        whole = f"printf('%0{width}d', round({scaled}))"
        right = f"abs(round({scaled}) - {scaled}) < 1e-6"
        text = f"CASE WHEN typeof({column}) IN ('integer', 'real') AND {right} THEN {whole} ELSE {text} END"
    return (
        f"CASE WHEN {column} IS NULL THEN printf('%{width}s', '') WHEN length({text}) > {width} "
        f"THEN '{'*' * width}' ELSE substr({text} || printf('%{width}s', ''), 1, {width}) END"
    )


def embedded_name(path: Path) -> str:
    """The name of the dictionary that CSPro's SQLite file holds; empty if it cannot be had."""
    try:
        with closing(_open(path)) as db:
            db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1 << 26)
            (text,) = db.execute("SELECT dictionary FROM meta").fetchone() or ("",)
    except (sqlite3.DatabaseError, OSError):
        return ""
    found = re.search(r'"name"\s*:\s*"([^"]*)"|^\s*Name=(.*?)\s*$', str(text), re.MULTILINE)
    return (found[1] or found[2] or "") if found else ""


def begins_as(path: Path, dictionary: Dictionary, encoding: str) -> bool:
    """Whether the first lines of a file of text are of record types of a dictionary, and no longer than these allow."""
    first = dictionary.type_start - 1
    longest = {
        record.code.rstrip(): max(record_length(record), *(item.start + item.length - 1 for item in level.ids), 0)
        for level in dictionary.levels
        for record in level.records
    }
    try:
        lines = next(lines_of_text(path, encoding))
    except (BrokenRulesError, StopIteration):
        return False
    ends = lines.texts.ends[: _LOOKED_AT + 1].tolist()
    found = [lines.texts.content[a:b].tobytes().decode().rstrip() for a, b in pairwise(ends)]
    codes = [
        (line, line[first : first + dictionary.type_length].rstrip() if first >= 0 else "") for line in found if line
    ]
    return bool(codes) and all(code in longest and len(line) <= longest[code] for line, code in codes)
