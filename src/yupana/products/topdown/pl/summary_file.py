"""A summary file of P.L. 94-171: a record for each area, read from the four files and written to them.

Lines of fields with ``|`` between and no header are bytes in numpy, a column of a stretch of lines at a time. Bytes are
taken as they are, whatever their encoding, so that what is written is what was read. The header is in
`yupana.geography.header`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Flags, Indices, Ints
from yupana.errors import InputError, system_fault
from yupana.files.regular import read_regular, regular
from yupana.geography.header import HEADER
from yupana.products.topdown.pl.summary_records import SummaryFile
from yupana.products.topdown.tables import SIZES, variables_of
from yupana.release.lines import Texts, texts, whole, write_lines

SEGMENTS: Final = (("P1", "P2"), ("P3", "P4", "H1"), ("P5",))
"""The tables of each segment, in their order."""

LINKS: Final = ("FILEID", "STUSAB", "CHARITER", "CIFSN", "LOGRECNO")
"""The fields before the variables of a segment, which the header has, too."""

PL_FILES: Final = "topdown, P.L. 94-171 files"
"""What the manifest of a folder of such files calls them."""

FILES: Final = ("00", "01", "02", "03")
"""CIFSN of the header and of the segments."""


def segment_variables(segment: int) -> tuple[str, ...]:
    """The variables of a segment, from 0, such as P0010001, in their order."""
    return tuple(name for table in SEGMENTS[segment] for name in variables_of(table))


def file_names(state: str, rest: str) -> tuple[str, ...]:
    """The names of header and segments: ``rigeo2020.pl``, ``ri000012020.pl`` and so on, for ri and ``2020.pl``."""
    return (f"{state}geo{rest}", *(f"{state}0000{number}{rest}" for number in range(1, 1 + len(SEGMENTS))))


_Bytes = NDArray[np.uint8]

_BYTES_AT_ONCE: Final = 1 << 22
_STROKE, _END, _RETURN = b"|\n\r"
_MOST_DIGITS: Final = 9


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    r"""A file of lines of as many fields each."""

    path: Path
    content: _Bytes  # shape (bytes,)
    newline: Ints  # shape (lines,): where each line ends
    end: bytes  # what every line ends with, `\n` or `\r\n`
    width: int  # how many fields a line has

    def fault(self, line: int, text: str) -> InputError:
        """An error about a line, which counts from 0."""
        return InputError(f"{self.path}, line {line + 1}: {text}")

    def __len__(self) -> int:
        """How many lines."""
        return len(self.newline)

    def stretches(self) -> Iterator["Stretch"]:
        """Some lines at a time.

        Raises
        ------
        InputError
            If a line has another number of fields.
        """
        first = 0
        while first < len(self.newline):
            start = int(self.newline[first - 1]) + 1 if first else 0
            last = max(first + 1, int(np.searchsorted(self.newline, start + _BYTES_AT_ONCE)))
            yield self._stretch(first, last, start)
            first = last

    def _stretch(self, first: int, last: int, start: int) -> "Stretch":
        part = self.content[start : int(self.newline[last - 1]) + 1]
        separator = np.flatnonzero((part == _STROKE) | (part == _END))
        newline = self.newline[first:last] - start
        if len(separator) != (last - first) * self.width or (separator[self.width - 1 :: self.width] != newline).any():
            fields = np.diff(np.searchsorted(separator, newline, side="right"), prepend=0)
            line = int(np.argmax(fields != self.width))
            raise self.fault(first + line, f"{fields[line]} fields, where {self.width} belong")
        ends = separator.reshape(-1, self.width)
        starts = np.concatenate([[0], separator[:-1] + 1]).reshape(-1, self.width)
        ends[:, -1] -= len(self.end) - 1
        return Stretch(self, slice(first, last), part, starts, ends)


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """Some lines of a file, and where their fields begin and end in ``content``; arrays of shape (lines, fields)."""

    lines: Lines
    part: slice
    content: _Bytes
    starts: Ints
    ends: Ints

    def texts(self, place: int, width: int, name: str) -> Texts:
        """The fields of a column as bytes, of shape (lines,).

        Raises
        ------
        InputError
            If a field has more than so many characters.
        """
        start, length = self.starts[:, place], self.ends[:, place] - self.starts[:, place]
        most = int(length.max())
        if most > width:
            text = f"{name} has {most} characters, and at most {width} are allowed"
            raise self.lines.fault(self.part.start + int(np.argmax(length)), text)
        if not most:
            return np.zeros(len(start), dtype="S1")
        # A field at the end of the content is shorter than others perhaps; what lies beyond its end is taken out.
        at = np.minimum(start[:, None] + np.arange(most), len(self.content) - 1)
        written = self.content[at]
        if length.min() < most:
            written[np.arange(most) >= length[:, None]] = 0
        found: Texts = written.view(f"S{most}").reshape(-1)
        return found

    def texts_of(self, widths: Mapping[str, int]) -> dict[str, Texts]:
        """The first columns, by name; each with the most characters of a field."""
        return {name: self.texts(place, width, name) for place, (name, width) in enumerate(widths.items())}

    def numbers(self, first: int, names: tuple[str, ...]) -> Indices:
        """The fields from a place on, one for each name, as whole numbers of int32 from 0 on, of shape (lines, names).

        Raises
        ------
        InputError
            If a field is no such number.
        """
        starts, ends = (each[:, first : first + len(names)].reshape(-1) for each in (self.starts, self.ends))
        length = ends - starts
        wrong = (length < 1) | (length > _MOST_DIGITS)
        digit = self.content[np.maximum(ends - 1, 0)] - np.uint8(ord("0"))
        found = digit.astype(np.int32)
        # One digit after another from the right; few numbers have many.
        longer = np.flatnonzero((length > 1) & ~wrong)
        wrong |= digit > 9
        for place in range(1, _MOST_DIGITS):
            if not len(longer):
                break
            digit = self.content[ends[longer] - 1 - place] - np.uint8(ord("0"))
            wrong[longer] |= digit > 9
            found[longer] += digit.astype(np.int32) * 10**place
            longer = longer[length[longer] > place + 1]
        self._refuse(wrong, names)
        return found.reshape(-1, len(names))

    def _refuse(self, wrong: Flags, names: tuple[str, ...]) -> None:
        if wrong.any():
            line, place = divmod(int(np.argmax(wrong)), len(names))
            raise self.lines.fault(self.part.start + line, f"{names[place]} is not a whole number of at most 9 digits")


def read_lines(path: Path, width: int) -> Lines:
    """Read a file of lines of so many fields.

    Raises
    ------
    InputError
        If it cannot be read, is empty, is not text, or its last line was cut short.
    """
    try:
        content = np.frombuffer(read_regular(path), dtype=np.uint8)
    except FileNotFoundError:
        raise InputError(f"{path} is not there; header and three segments belong together") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    newline = np.flatnonzero(content == _END)
    if not len(content):
        raise InputError(f"{path} is empty")
    ends = content[np.maximum(newline - 1, 0)] == _RETURN
    lines = Lines(path, content, newline, b"\r\n" if len(ends) and ends[0] else b"\n", width)
    if content[-1] != _END:
        raise lines.fault(len(newline), "the file is cut short: its last line has no end")
    if (ends != ends[0]).any():
        raise lines.fault(int(np.argmax(ends != ends[0])), "the line ends otherwise than the first")
    if not content.all():
        raise lines.fault(int(np.searchsorted(newline, np.argmin(content))), "not text: it holds a NUL character")
    return lines


_GEO: Final = "geo"
_AT_ONCE: Final = 1 << 14
_SEGMENT: Final = re.compile(r"0000[1-3]\w*\.pl$")


def _headers_in(place: Path) -> list[Path]:
    """The geographic header that a path names, or all in a folder, in the order of their names."""
    if not place.is_dir():
        return [place]
    paths = sorted(path for path in place.glob("*.pl") if path.is_file())
    found = [path for path in paths if _GEO in path.name]
    if not found:
        raise InputError(f"{place}: a summary file has a geographic header, such as rigeo2020.pl; there is none")
    names = {name for path in found for name in file_names(*path.name.split(_GEO, 1))}
    for path in found:
        if path.name.partition(_GEO)[2] != found[0].name.partition(_GEO)[2]:
            raise InputError(f"{place}: {found[0].name} and {path.name} are of different runs; name one of them")
    for path in paths:
        if path.name not in names and _SEGMENT.search(path.name):
            raise InputError(f"{path} has no geographic header beside it; header and three segments belong together")
    return found


def header_in(place: Path) -> Path:
    """The geographic header that a path names, or the only one in a folder.

    Raises
    ------
    InputError
        If there is none, or more than one.
    """
    found = _headers_in(place)
    if len(found) > 1:
        raise InputError(f"{place}: there are {', '.join(path.name for path in found)}; name one of them")
    return found[0]


def read_summary_files(places: Sequence[Path]) -> SummaryFile:
    """Read the files of one or more states as one, a state after another.

    Parameters
    ----------
    places : sequence of Path
        Each a geographic header, such as rigeo2020.pl, or a folder that holds one or more. Segments lie beside them.

    Raises
    ------
    InputError
        As `read_summary_file`, or if a state is there twice.
    """
    read: dict[bytes, Path] = {}
    files = []
    for path in [path for place in places for path in _headers_in(place)]:
        files.append(read_summary_file(path))
        for state in np.unique(files[-1].fields["STUSAB"]):
            if state in read:
                raise InputError(f"{path} and {read[state]} are of the same state, {_shown(state)}; name one of them")
            read[state] = path
    if not files:
        raise InputError("there is no summary file; name a geographic header, such as rigeo2020.pl, or its folder")
    if len(files) == 1:
        return files[0]
    counts = {table: np.concatenate([file.counts[table] for file in files]) for table in files[0].counts}
    return SummaryFile(_columns([file.fields for file in files]), counts, files[0].ends)


def read_summary_file(place: Path) -> SummaryFile:
    """Read the four files of a state; see `read_summary_files`.

    Raises
    ------
    InputError
        Naming file and line: if one is missing, cut short, not as wide as it should be, or not of the same run as the
        others; if a record is there twice, or a field is no number that should be one.
    """
    path = header_in(place)
    state, found, rest = path.name.partition(_GEO)
    if not found:
        raise InputError(f"{path} is no geographic header; its name should be such as rigeo2020.pl")
    head = read_lines(path, len(HEADER))
    header = _header(head)
    _refuse_repeated(head, header["LOGRECNO"])
    tables: dict[str, Indices] = {}
    ends = [head.end]
    for segment, name in enumerate(file_names(state, rest)[1:]):
        lines = read_lines(path.with_name(name), len(LINKS) + len(segment_variables(segment)))
        tables |= _read_segment(lines, segment, head, header)
        ends.append(lines.end)
    _compare_totals(head, header["POP100"], tables)
    return SummaryFile(header, tables, tuple(ends))


def is_geographic_header(path: Path) -> bool:
    """Whether the first line of a file has the fields of a geographic header.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    with system_fault(InputError, f"{path} cannot be read"), open(path, "rb", opener=regular) as file:
        return file.readline().count(b"|") == len(HEADER) - 1


def read_geographic_header(path: Path) -> Mapping[str, Texts]:
    """Read a geographic header without its segments: its fields by name, of shape (records,), in latin-1.

    Raises
    ------
    InputError
        As `read_summary_file`.
    """
    return _header(read_lines(path, len(HEADER)))


def _header(head: Lines) -> dict[str, Texts]:
    """All fields of a geographic header, by name."""
    header = _columns([stretch.texts_of(HEADER) for stretch in head.stretches()])
    _check_number(head, header["CIFSN"], FILES[0])
    return header


def _columns(parts: Sequence[Mapping[str, Texts]]) -> dict[str, Texts]:
    """Columns of stretches one after another."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _read_segment(lines: Lines, segment: int, head: Lines, header: Mapping[str, Texts]) -> dict[str, Indices]:
    """The tables of a segment, in the order of the header."""
    variables = segment_variables(segment)
    numbers = np.empty((len(lines), len(variables)), dtype=np.int32)
    links = []
    for stretch in lines.stretches():
        links.append(stretch.texts_of({name: HEADER[name] for name in LINKS}))
        numbers[stretch.part] = stretch.numbers(len(LINKS), variables)
    linked = _columns(links)
    _check_number(lines, linked["CIFSN"], FILES[segment + 1])
    order = _join(lines, linked["LOGRECNO"], head, header["LOGRECNO"])
    if order is not None:
        numbers = numbers[order]
        linked = {name: values[order] for name, values in linked.items()}
    for name in ("FILEID", "STUSAB", "CHARITER"):
        apart = np.flatnonzero(linked[name] != header[name])
        if len(apart):
            record = int(apart[0])
            text = (
                f"{name} is {_shown(linked[name][record])}, and {_shown(header[name][record])} in line {record + 1} "
                f"of {head.path.name}: they are of different runs"
            )
            raise lines.fault(record if order is None else int(order[record]), text)
    cuts = np.cumsum([SIZES[table] for table in SEGMENTS[segment]])[:-1]
    return dict(zip(SEGMENTS[segment], np.split(numbers, cuts, axis=1), strict=True))


def _join(lines: Lines, record: Texts, head: Lines, known: Texts) -> Ints | None:
    """The line of each record of the header; None if they stand in the same order."""
    if len(record) == len(known) and (record == known).all():
        return None
    _refuse_repeated(lines, record)
    order = np.argsort(record)
    at = np.minimum(np.searchsorted(record[order], known), len(record) - 1)
    missing = np.flatnonzero(record[order][at] != known)
    if len(missing):
        line = int(missing[0])
        more = f", nor {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise head.fault(
            line, f"record {_shown(known[line])} is not in {lines.path.name}{more}: it is cut short or of another run"
        )
    if len(record) > len(known):
        line = int(np.argmin(np.isin(record, known)))
        raise lines.fault(line, f"record {_shown(record[line])} is not in {head.path.name}: they are of different runs")
    found: Ints = order[at]
    return found


def _check_number(lines: Lines, given: Texts, expected: str) -> None:
    """Whether every line says which of the four files it is of."""
    apart = np.flatnonzero(given != expected.encode())
    if len(apart):
        line = int(apart[0])
        raise lines.fault(line, f"CIFSN is {_shown(given[line])}, and {expected} in this file: it is another segment")


def _refuse_repeated(lines: Lines, record: Texts) -> None:
    order = np.argsort(record, kind="stable")
    again = np.flatnonzero(record[order][1:] == record[order][:-1])
    if len(again):
        line = int(order[again + 1].min())
        first = int(np.argmax(record == record[line]))
        raise lines.fault(line, f"record {_shown(record[line])} is there twice; first in line {first + 1}")


def _compare_totals(head: Lines, population: Texts, tables: Mapping[str, Indices]) -> None:
    """Whether header and segments count the same people. Housing units of the test of 2018 differ even in one run."""
    everyone = tables["P1"][:, 0]
    for wrong, told in (
        (population != whole(everyone), "POP100 is not P0010001 of segment 1"),
        (tables["P3"][:, 0] > everyone, "P0030001 of segment 2 is more than P0010001 of segment 1"),
        (tables["P5"][:, 0] > everyone, "P0050001 of segment 3 is more than P0010001 of segment 1"),
    ):
        if wrong.any():
            raise head.fault(int(np.argmax(wrong)), f"{told}: they are of different runs")


def _shown(text: bytes) -> str:
    """A field for a message."""
    return ascii(text.decode("latin-1")) if text else "empty"


def write_summary_file(folder: Path, file: SummaryFile, rest: str = "2020.pl") -> list[str]:
    """Write the four files.

    Parameters
    ----------
    file : SummaryFile
        What `read_summary_file` gave is written as it was, byte for byte.
    rest : str
        How the names of the files end.

    Returns
    -------
    list of str
        Their names, which begin with STUSAB: rigeo2020.pl, ri000012020.pl and so on.
    """
    state = file.fields["STUSAB"][0].decode().lower()
    names = file_names(state, rest)
    with (folder / names[0]).open("wb") as out:
        for first in range(0, file.records, _AT_ONCE):
            part = slice(first, first + _AT_ONCE)
            write_lines(out, [file.fields[name][part] for name in HEADER], file.ends[0])
    links = [file.fields[name] for name in LINKS if name != "CIFSN"]
    for number, tables in enumerate(SEGMENTS, 1):
        with (folder / names[number]).open("wb") as out:
            for first in range(0, file.records, _AT_ONCE):
                part = slice(first, first + _AT_ONCE)
                head = [link[part] for link in links]
                cifsn = np.broadcast_to(texts([FILES[number]]), len(head[0]))
                values = [whole(column) for table in tables for column in file.counts[table][part].T]
                write_lines(out, [*head[:-1], cifsn, head[-1], *values], file.ends[number])
    return list(names)
