"""A summary file of P.L. 94-171: a record for each area, read from the four files and written to them.

Lines have fields with ``|`` between and no header. Bytes are taken as they are, whatever their encoding, so that what
is written is what was read. The fields of the geographic header are in `yupana.geography.header`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from yupana.arrays import Indices, Ints
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


_AT_ONCE: Final = 1 << 14
_LINES_AT_ONCE: Final = 1 << 8
"""So few that their fields stay near the processor."""

_ENDS: Final = (b"\n", b"\r\n")
_COUNTS: Final = re.compile(rb"[0-9]{1,9}(?:\|[0-9]{1,9})*")
"""Whole numbers of at most nine digits."""


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    r"""A file of lines of fields."""

    path: Path
    lines: list[bytes]  # without their ends
    end: bytes  # what every line ends with, `\n` or `\r\n`

    def fault(self, line: int, text: str) -> InputError:
        """An error about a line, which counts from 0."""
        return InputError(f"{self.path}, line {line + 1}: {text}")

    def __len__(self) -> int:
        """How many lines."""
        return len(self.lines)

    def columns(self, widths: Mapping[str, int], variables: Sequence[str] = ()) -> tuple[dict[str, Texts], Indices]:
        """The first columns as texts, by name, and those after them as whole numbers.

        Parameters
        ----------
        widths : mapping of str to int
            The most characters that the fields of each column may have.
        variables : sequence of str
            The columns of numbers.

        Returns
        -------
        tuple
            Arrays of shape (lines,), and one of shape (lines, variables).

        Raises
        ------
        InputError
            If a line has another number of fields, a field too many characters, or one is no number that should be.
        """
        parts, numbers = [], np.empty((len(self), len(variables)), dtype=np.int32)
        for first in range(0, len(self), _LINES_AT_ONCE):
            lines = self.lines[first : first + _LINES_AT_ONCE]
            for line, text in enumerate(lines, first):
                if (fields := text.count(b"|") + 1) != len(widths) + len(variables):
                    raise self.fault(line, f"{fields} fields, where {len(widths) + len(variables)} belong")
            fields_of = [*zip(*(line.split(b"|", len(widths)) for line in lines), strict=True)]
            parts.append({name: np.array(of, dtype=bytes) for name, of in zip(widths, fields_of, strict=False)})
            for name, found in parts[-1].items():
                if found.itemsize > widths[name]:
                    line = first + int(np.argmax(np.char.str_len(found)))
                    most = f"{found.itemsize} characters, and at most {widths[name]} are allowed"
                    raise self.fault(line, f"{name} has {most}")
            if variables:
                numbers[first : first + len(lines)] = self._numbers(first, fields_of[-1], variables)
        return _columns(parts), numbers

    def _numbers(self, first: int, rest: Sequence[bytes], variables: Sequence[str]) -> Indices:
        """What the lines from ``first`` on have behind the texts."""
        joined = b"|".join(rest)
        if not _COUNTS.fullmatch(joined):
            fields = [field for text in rest for field in text.split(b"|")]
            line, place = divmod([not _COUNTS.fullmatch(field) for field in fields].index(True), len(variables))
            raise self.fault(first + line, f"{variables[place]} is not a whole number of at most 9 digits")
        return np.fromstring(joined.decode(), dtype=np.int32, sep="|").reshape(len(rest), -1)


def read_lines(path: Path) -> Lines:
    """Read a file of lines.

    Raises
    ------
    InputError
        If it cannot be read, is empty, is not text, or its last line was cut short.
    """
    try:
        content = read_regular(path)
    except FileNotFoundError:
        raise InputError(f"{path} is not there; header and three segments belong together") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    if not content:
        raise InputError(f"{path} is empty")
    *texts_of, rest = content.split(b"\n")
    returns = bool(texts_of) and texts_of[0].endswith(b"\r")
    lines = Lines(path, [text.removesuffix(b"\r") for text in texts_of] if returns else texts_of, _ENDS[returns])
    if rest:
        raise lines.fault(len(lines), "the file is cut short: its last line has no end")
    for line, text in enumerate(texts_of):
        if text.endswith(b"\r") != returns:
            raise lines.fault(line, "the line ends otherwise than the first")
        if b"\0" in text:
            raise lines.fault(line, "not text: it holds a NUL character")
    return lines


_GEO: Final = "geo"
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
    head = read_lines(path)
    header = _header(head)
    _refuse_repeated(head, header["LOGRECNO"])
    tables: dict[str, Indices] = {}
    ends = [head.end]
    for segment, name in enumerate(file_names(state, rest)[1:]):
        lines = read_lines(path.with_name(name))
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
    return _header(read_lines(path))


def _header(head: Lines) -> dict[str, Texts]:
    """All fields of a geographic header, by name."""
    header, _ = head.columns(HEADER)
    _check_number(head, header["CIFSN"], FILES[0])
    return header


def _columns(parts: Sequence[Mapping[str, Texts]]) -> dict[str, Texts]:
    """Columns of stretches one after another."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _read_segment(lines: Lines, segment: int, head: Lines, header: Mapping[str, Texts]) -> dict[str, Indices]:
    """The tables of a segment, in the order of the header."""
    linked, numbers = lines.columns({name: HEADER[name] for name in LINKS}, segment_variables(segment))
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
