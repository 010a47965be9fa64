"""Public tables of codes as people have them: plans, areas, names, keys and lists. Public.

A table is Parquet, or text separated by a comma, a semicolon, ``|`` or a tab, in UTF-8, UTF-16 or an encoding that is
told. What spreadsheets and the Census Bureau put around a code is taken off; what they took away is told.
"""

import codecs
import csv
import re
import tempfile
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import duckdb

from yupana.errors import InputError, is_control, system_fault
from yupana.files.database import STOPS, open_database, quoted
from yupana.files.delimited import (
    NO_SEPARATOR,
    PARQUET,
    ROUNDED,
    DelimitedFile,
    TextLayout,
    csv_rows,
    is_exponent,
    parquet_as_text,
    refuse_twice,
    why_unreadable,
)
from yupana.files.document import is_text
from yupana.files.names import normal, on_disk
from yupana.files.regular import regular
from yupana.files.temporary import temporary_folder

SEPARATORS: Final = ",;|\t"
_AT_ONCE: Final = 1 << 20
_HEAD: Final = 1 << 16
_SAMPLED: Final = 50
_BLANKS: Final = " \t\u00a0\u202f\u3000\ufeff"

_DRESSED: Final = r"""^(?:=")?['‘’`]?(?:[0-9]{3}[0-9A-Z]{4}US)?([0-9][0-9A-Za-z.]*)['‘’`]?"?$"""
"""A code with what a spreadsheet puts around it, or the Bureau before it: ="06", '06, 0500000US06."""

_DOUBLE: Final = r"[0-9]{12,17}[.]0"
"""A code of so many digits that was kept as a double."""

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

NamesOf = Callable[[Sequence[str]], Sequence[str] | None]
"""What the columns of a table are whose first row this is, or None if that names them itself."""


_NO_ENCODING_OF_FILES: Final = frozenset({"idna", "punycode", "utf-7", "hz", "unicode_escape", "raw_unicode_escape"})


def codec_of(name: object) -> str | None:
    """An encoding of text that Python knows, as it calls it; empty for UTF-8, None if there is no such encoding."""
    if not is_text(name):
        return None
    try:
        found = codecs.lookup(str(name)).name
        known = found not in _NO_ENCODING_OF_FILES and "id".encode(found).decode(found) == "id"
    except (LookupError, ValueError):
        return None
    return (None if not known else "") if found in {"utf-8", "utf-8-sig", "ascii"} else found if known else None


def _check_encoding(encoding: str | None) -> str | None:
    """An encoding by the name that Python has for it."""
    if encoding is None:
        return None
    found = codec_of(encoding)
    if found is None:
        text = "such as utf-8, utf-16, cp1252 or latin-1"
        raise InputError(f"encoding: {encoding!r} is none that is known; name one {text}")
    return found or "utf-8"


def in_utf_8(path: Path) -> bool:
    """Whether a file that can be read is text in UTF-8, or says by its first bytes what it is."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with open(path, "rb", opener=regular) as file:
            part = file.read(_AT_ONCE)
            if any(part.startswith(mark) for mark, _ in _MARKS):
                return True
            while part:
                decoder.decode(part)
                part = file.read(_AT_ONCE)
            decoder.decode(b"", final=True)
    except OSError:
        return True
    except UnicodeDecodeError:
        return False
    return True


@contextmanager
def open_codes(
    path: Path,
    *,
    encoding: str | None = None,
    names_of: NamesOf = lambda _: None,
    empty: bool = False,
    written: Callable[[DelimitedFile, str], str] | None = None,
) -> Iterator[DelimitedFile]:
    """Open a public table of codes.

    Rows that are wholly blank are passed over, and so are columns without a name. Names and fields are in NFC.

    Parameters
    ----------
    path : Path
        Parquet if its name says so, else text.
    encoding : str, optional
        Of text; without it UTF-8, or UTF-16 with its mark.
    names_of : callable
        Given the fields of the first line, the names of the columns if these are codes and no names.
    empty : bool
        Whether there may be no row.
    written : callable, optional
        Given the table and its rows in SQL, a query of what is held of them as it is written, blank rows, too.

    Raises
    ------
    InputError
        If the file is missing or no such table, its encoding or separator is another, a column is there twice, or a row
        has too few or too many fields.
    """
    path = next(iter(on_disk(path)), path)
    with ExitStack() as stack:
        layout: TextLayout | None = None
        if path.suffix == PARQUET:
            header, rows = parquet_as_text(path)
        else:
            text = stack.enter_context(_in_utf8(path, _check_encoding(encoding)))
            layout, header = _layout(path, text, names_of, blanks=written is not None)
            columns = [f"c{place}" for place in range(len(header))]
            rows = csv_rows(text, columns, separator=layout.separator, quote='"').replace(
                "skip = 1", f"skip = {layout.skipped}"
            )
        header = tuple(normal(name.strip(_BLANKS)) for name in header)
        refuse_twice(path, [name for name in header if name])
        # A table that does not fit into memory is refused and not spilled: blocks of a nation take about a gigabyte.
        full = InputError(f"{path} does not fit into the memory of this machine")
        table = DelimitedFile(path, header, stack.enter_context(open_database(spills=False, full=full)), layout=layout)
        try:
            table.database.execute(f"CREATE TABLE rows AS {(written or _cleaned)(table, rows)}")
        except STOPS:
            raise
        except (duckdb.Error, UnicodeDecodeError):
            if layout is None:
                raise InputError(f"{path} is not readable as Parquet to its end") from None
            raise why_unreadable(path, layout, len(header)) from None
        if table.rows == 0 and not empty:
            raise InputError(f"{path} has a header and no rows; it must have one at least")
        yield table


def open_delimited(
    path: Path, required: Sequence[str], optional: Sequence[str] = (), *, others: bool = False
) -> AbstractContextManager[DelimitedFile]:
    """Open a table as `open_codes` does, and hold some columns as they are written.

    Parameters
    ----------
    required, optional : sequence of str
        Columns to hold; upper and lower case are the same.
    others : bool
        Hold all other columns, too.

    Raises
    ------
    InputError
        As of `open_codes`, or if the file lacks a column.
    """

    def held(file: DelimitedFile, rows: str) -> str:
        if missing := [name for name in required if not file.has(name)]:
            raise file.no_column(missing)
        names = file.header if others else [name for name in (*required, *optional) if file.has(name)]
        return f"SELECT {', '.join(dict.fromkeys(map(file.place, names)))} FROM {rows}"

    return open_codes(path, written=held)


def _cleaned(table: DelimitedFile, rows: str) -> str:
    """A query for rows without what stands around codes, and without those that are wholly blank."""
    database, columns = table.database, [f"c{place}" for place in range(len(table.header))]
    # Most files have bare codes alone. Two quick passes take less time than one that changes each field.
    bare = [
        f"bool_and({one} IS NULL OR regexp_full_match({one}, '[0-9A-Za-z]+') AND substr({one}, 8, 2) <> 'US')"
        for one in columns
    ]
    found = database.execute(f"SELECT {', '.join(bare)} FROM {rows}").fetchone() or ()
    dressed = [one for one, is_bare in zip(columns, found, strict=True) if not is_bare]
    if dressed:
        # The time to plan a query grows with the square of its expressions: some columns at a time.
        database.execute(f"CREATE TEMP TABLE written AS SELECT * FROM {rows}")
        for start in range(0, len(dressed), _COLUMNS_AT_ONCE):
            some = ", ".join(f"{one} = {_bare(one)}" for one in dressed[start : start + _COLUMNS_AT_ONCE])
            database.execute(f"UPDATE written SET {some}")
    return f"SELECT * FROM {'written' if dressed else rows} WHERE coalesce({', '.join(columns)}) IS NOT NULL"


_COLUMNS_AT_ONCE: Final = 5


def _bare(column: str) -> str:
    """SQL for a field without blanks, and of a code without what stands around it; NULL if nothing is left."""
    bare = f"trim(nfc_normalize({column}), {quoted(_BLANKS)})"
    dressed = f"left({bare}, 1) IN ('''', '‘', '’', '`', '=') OR substr({bare}, 8, 2) = 'US' OR right({bare}, 1) = ''''"
    code = f"coalesce(nullif(regexp_extract({bare}, {quoted(_DRESSED)}, 1), ''), {bare})"
    double = f"suffix({bare}, '.0') AND regexp_full_match({bare}, {quoted(_DOUBLE)})"
    return f"nullif(CASE WHEN {double} THEN {bare}[:-3] WHEN {dressed} THEN {code} ELSE {bare} END, '')"


@contextmanager
def _in_utf8(path: Path, encoding: str | None) -> Iterator[Path]:
    """A text file, or a copy of it in UTF-8 that has no name and is gone with the process."""
    with system_fault(InputError, f"{path} cannot be read"), open(path, "rb", opener=regular) as file:
        head = file.read(_HEAD)
        marked = next((name for mark, name in _MARKS if head.startswith(mark)), None)
        if not head:
            raise InputError(f"{path} is empty; give a table with a row for each code")
        if marked and encoding and not encoding.startswith(marked):
            raise InputError(f"{path} is in {marked}, as its first bytes say, and {encoding} was told")
        if encoding == "utf-16" and not marked and b"\0" not in head:
            raise InputError(f"{path}, line 1: not text in {encoding}; {_NAME_ENCODING}")
        # Without a mark the zeros of what is of ASCII, such as separators, tell the order of bytes.
        zeros = head[::2].count(0) - head[1::2].count(0)
        order = "" if encoding != "utf-16" else "-be" if zeros > 0 else "-le"
        found = marked or (f"{encoding}{order}" if encoding else "utf-8")
        if found == "utf-8" and b"\0" in head:
            text = "give a table of text; one in UTF-16 without its mark needs the encoding utf-16"
            raise InputError(f"{path} is no text file; {text}")
        lines = head.replace(b"\r\n", b"")
        if found == "utf-8" and b"\r" not in lines and (b"\r\n" not in head or b"\n" not in lines):
            yield path
            return
        file.seek(0)
        with tempfile.TemporaryFile(dir=temporary_folder()) as copy:
            _transcode(path, file, copy, found, told=encoding is not None)
            copy.flush()
            yield Path(f"/dev/fd/{copy.fileno()}")


def _transcode(path: Path, source: BinaryIO, copy: BinaryIO, encoding: str, *, told: bool) -> None:
    """Copy a text into UTF-8, lines ending alike."""
    decoder = codecs.getincrementaldecoder(encoding)()
    # A text in UTF-8 would be read in an encoding of single bytes, too.
    other = codecs.getincrementaldecoder("utf-8")() if told and not encoding.startswith("utf-") else None
    line, plain, carried, last = 1, True, "", False
    while not last:
        part = source.read(_AT_ONCE)
        last, plain = not part, plain and part.isascii()
        try:
            text = carried + decoder.decode(part, last)
        except UnicodeDecodeError as error:
            before = bytes(error.object[: error.start]).decode(encoding, "ignore")
            fault = f"{path}, line {line + before.count(_NEW_LINE)}: not text in {encoding}"
            raise InputError(f"{fault}; {_NAME_ENCODING}") from None
        except UnicodeError:
            raise InputError(f"{path} is not text in {encoding}; {_NAME_ENCODING}") from None
        try:
            _ = other and other.decode(part, last)
        except UnicodeDecodeError:
            other = None
        carried = "\r" if text.endswith("\r") and not last else ""
        text = text.removesuffix(carried).replace("\r\n", _NEW_LINE).replace("\r", _NEW_LINE)
        if odd := _NO_TEXT.search(text):
            at = line + text.count(_NEW_LINE, 0, odd.start())
            raise InputError(f"{path}, line {at}: not text in {encoding}; {_NAME_ENCODING}")
        line += text.count(_NEW_LINE)
        copy.write(text.encode())
    if other is not None and not plain:
        raise InputError(f"{path} is text in UTF-8, and {encoding} was told; leave the encoding out")


_NEW_LINE: Final = "\n"
_NO_TEXT: Final = re.compile("[\0\x80-\x84\x86-\x9f]")
"""No byte of a text means these, but in cp1252 it may mean something else."""

_NAME_ENCODING: Final = "name the encoding that it has, such as cp1252, or write it as UTF-8"


def _layout(path: Path, text: Path, names_of: NamesOf, *, blanks: bool) -> tuple[TextLayout, tuple[str, ...]]:
    """How the rows of a text are written, and its columns."""
    with text.open("rb") as file:
        head = file.read(_HEAD)
    whole = len(head) < _HEAD
    lines = head.removeprefix(codecs.BOM_UTF8).splitlines(keepends=True)
    if not whole and len(lines) < _LEAST_LINES:
        raise InputError(f"{path}, line 1: longer than {_HEAD:,} bytes; it must name the columns")
    sample: list[str] = []
    for number, line in enumerate(lines[: min(_SAMPLED, len(lines) if whole else len(lines) - 1)], 1):
        try:
            sample.append(line.decode())
        except UnicodeDecodeError:
            raise InputError(f"{path}, line {number}: not text in UTF-8; {_NAME_ENCODING}") from None
    skipped, said = 0, re.fullmatch(r"\"?sep=(.)\"?\s*", sample[0]) if sample else None
    if said:  # as Excel says it
        sample, skipped = sample[1:], 1
    if not sample or not sample[0].strip():
        raise InputError(f"{path}, line {skipped + 1}: blank; it must name the columns, or be a row of codes")
    separator = said[1] if said and said[1] in SEPARATORS else _separator(path, sample, skipped + 1)
    first = _fields(sample, separator)[0]
    codes = names_of([_dressed(field) for field in first])
    names = tuple(first if codes is None else codes)
    if any(map(is_control, "".join(names))):
        held = "a line break or another control character; a quote may not be closed"
        raise InputError(f"{path}, line {skipped + 1}: a name of a column holds {held}")
    return TextLayout(text, separator, skipped + (codes is None), blanks), names


_LEAST_LINES: Final = 2


def _separator(path: Path, sample: Sequence[str], line: int) -> str:
    """What separates the fields of the first lines; where it is none, each line is one field."""
    found = [one for one in SEPARATORS if len(_fields(sample[:1], one)[0]) > 1]
    if len(found) <= 1:
        return found[0] if found else NO_SEPARATOR
    even = [one for one in found if len({len(row) for row in _fields(sample, one) if row}) == 1]
    if len(even) == 1 and len(sample) > 1:
        return even[0]
    shown = " and ".join("a tab" if one == "\t" else one for one in found)
    raise InputError(f"{path}, line {line}: holds {shown}, and the rows do not tell which separates; write one alone")


def _fields(lines: Sequence[str], separator: str) -> list[list[str]]:
    try:
        return list(csv.reader(lines, delimiter=separator, skipinitialspace=True)) or [[]]
    except csv.Error:
        return [[]]


def _dressed(field: str) -> str:
    """A field as the database would give it; see `_bare`."""
    bare = field.strip(_BLANKS)
    if re.fullmatch(_DOUBLE, bare):
        return bare[:-2]
    match = re.match(_DRESSED, bare)
    return match[1] if match else bare


@dataclass(frozen=True, slots=True)
class TextRow:
    """A row: the line it ends on, and what it says in each column."""

    line: int
    values: Mapping[str, str]


def read_rows(
    place: str,
    path: Path,
    columns: Sequence[str],
    faults: list[str],
    encoding: str | None = None,
    names_of: NamesOf = lambda _: None,
    *,
    fold: bool = False,
) -> list[TextRow]:
    """Read a table that has some columns, and perhaps others; no rows, with faults, if it cannot be read.

    Parameters
    ----------
    place : str
        Where a configuration names the file; empty if none does.
    columns : sequence of str
        Which it must have; the first is of codes. Without any the first of the table is.
    faults : list of str
        What is wrong is added to it.
    encoding, names_of
        As of `open_codes`.
    fold : bool
        Whether names are compared, and given, in lower case.
    """
    where = f"{place}: " if place else ""
    try:
        with open_codes(path, encoding=encoding, names_of=names_of, empty=True) as table:
            called = {name: name.lower() if fold else name for name in table.header if name}
            wanted = {normal(name): name for name in columns}
            asked = {name: wanted[other] for name, other in called.items() if other in wanted}
            if lost := [name for name in columns if name not in asked.values()]:
                faults.extend(f"{where}{table.no_column([name])}" for name in dict.fromkeys(lost))
                return []
            called |= asked
            table.refuse_totals([*asked, *called][0])
            return list(_text_rows(where, table, called, asked or called, faults))
    except InputError as error:
        faults.append(f"{where}{error}")
        return []


def _text_rows(
    where: str, table: DelimitedFile, called: Mapping[str, str], codes: Container[str], faults: list[str]
) -> Iterator[TextRow]:
    for line, row in zip(table.lines(), table.records(tuple(called)), strict=True):
        for name, field in zip(called, row, strict=True):
            odd = "holds a control character; remove it" if any(map(is_control, field)) else ""
            odd = odd or (f"{field!r} {ROUNDED}" if name in codes and is_exponent(field) else "")
            if odd:
                faults.append(f"{where}{table.path}, line {line}, column {name}: {odd}")
                break
        else:
            yield TextRow(line, dict(zip(called.values(), row, strict=True)))
