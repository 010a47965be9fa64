"""A summary file of P.L. 94-171: a record for each area, read from the four files and written to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from yupana.arrays import Flags, Indices, Ints
from yupana.errors import InputError
from yupana.files.regular import regular
from yupana.geography.header import HEADER
from yupana.products.topdown.pl.fields import Lines, read_lines
from yupana.products.topdown.pl.layout import FILES, LINKS, SEGMENTS, file_names, segment_variables
from yupana.products.topdown.tables import SIZES, variables_of
from yupana.release.lines import Texts, texts, whole, write_lines

_GEO: Final = "geo"
_AT_ONCE: Final = 1 << 14
_LF: Final = b"\n"


@dataclass(frozen=True, slots=True, eq=False)
class SummaryFile:
    """The records of a summary file, in the order of its geographic header.

    Attributes
    ----------
    header : mapping of str to ndarray of bytes, shape (records,)
        All fields of the geographic header by name, in latin-1, as they stand in the file.
    tables : mapping of str to ndarray of int32, shape (records, variables)
        P1 to P5 and H1.
    ends : tuple of bytes
        What the lines of each of the four files end with.
    """

    header: Mapping[str, Texts]
    tables: Mapping[str, Indices]
    ends: tuple[bytes, ...] = (_LF,) * len(FILES)

    @property
    def records(self) -> int:
        """How many."""
        return len(self.header["LOGRECNO"])

    def keep(self, kept: Flags | Ints) -> "SummaryFile":
        """Some of the records."""
        header = {name: values[kept] for name, values in self.header.items()}
        return replace(self, header=header, tables={name: values[kept] for name, values in self.tables.items()})

    def variable(self, name: str) -> Indices:
        """A variable by its name, such as P0010001, of shape (records,).

        Raises
        ------
        KeyError
            If there is none of that name.
        """
        for table, values in self.tables.items():
            if name in (names := variables_of(table)):
                return values[:, names.index(name)]
        raise KeyError(name)


def header_in(place: Path) -> Path:
    """The geographic header that a path names, or the only one in a folder.

    Raises
    ------
    InputError
        If there is none, or more than one.
    """
    if not place.is_dir():
        return place
    found = sorted(path for path in place.glob(f"*{_GEO}*.pl") if path.is_file())
    if len(found) != 1:
        told = f"there are {', '.join(path.name for path in found)}; name one of them" if found else "there is none"
        raise InputError(f"{place}: a summary file has one geographic header, such as rigeo2020.pl; {told}")
    return found[0]


def read_summary_file(place: Path) -> SummaryFile:
    """Read the four files of a state.

    Parameters
    ----------
    place : Path
        The geographic header, such as rigeo2020.pl, or the folder that holds one. Its segments lie beside it.

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
    try:
        with open(path, "rb", opener=regular) as file:
            return file.readline().count(b"|") == len(HEADER) - 1
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None


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
    folder : Path
    file : SummaryFile
        What `read_summary_file` gave is written as it was, byte for byte.
    rest : str
        How the names of the files end.

    Returns
    -------
    list of str
        Their names, which begin with STUSAB: rigeo2020.pl, ri000012020.pl and so on.
    """
    state = file.header["STUSAB"][0].decode().lower()
    names = file_names(state, rest)
    with (folder / names[0]).open("wb") as out:
        for first in range(0, file.records, _AT_ONCE):
            part = slice(first, first + _AT_ONCE)
            write_lines(out, [file.header[name][part] for name in HEADER], file.ends[0])
    links = [file.header[name] for name in LINKS if name != "CIFSN"]
    for number, tables in enumerate(SEGMENTS, 1):
        with (folder / names[number]).open("wb") as out:
            for first in range(0, file.records, _AT_ONCE):
                part = slice(first, first + _AT_ONCE)
                head = [link[part] for link in links]
                cifsn = np.broadcast_to(texts([FILES[number]]), len(head[0]))
                values = [whole(column) for table in tables for column in file.tables[table][part].T]
                write_lines(out, [*head[:-1], cifsn, head[-1], *values], file.ends[number])
    return list(names)
