"""Summary files of P.L. 94-171 from the published tables of a release of persons and one of housing units. Public."""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from yupana.arrays import Flags, Indices, Ints
from yupana.errors import InputError, OutputError
from yupana.files.database import open_database, unreadable
from yupana.files.delimited import csv_rows, read_header
from yupana.geography.header import HEADER
from yupana.products.topdown.pl.area_fields import ToldAreas, told_areas
from yupana.products.topdown.pl.areas import PARTS, record_fields
from yupana.products.topdown.pl.layout import SEGMENTS
from yupana.products.topdown.pl.summary_file import SummaryFile
from yupana.products.topdown.tables import TABLES, variables_of
from yupana.release.lines import Texts, digits, whole
from yupana.release.release import ReleaseFolder

_HOUSING: Final = "H1"
_COUNTED: Final = ("POP100", "HU100")
"""Fields that are not those of the names, but of the release."""

_ONE_AREA: Final = b"00"
"""GEOCOMP of an area as a whole."""


def summary_files(
    persons: ReleaseFolder, units: ReleaseFolder, known: Mapping[str, Texts] | None
) -> Iterator[SummaryFile]:
    """The summary file of each state, one after another.

    Levels that cross state lines are left out, and kinds of areas without a summary level.

    Parameters
    ----------
    persons, units : ReleaseFolder
        Of P1 to P5, and of H1, for the same areas.
    known : mapping of str to ndarray of bytes, shape (records,), optional
        A geographic header (`read_geographic_header`). The areas that it holds have all its fields but the counts;
        others have what their codes and the release of persons tell, and numbers of records after its last.

    Raises
    ------
    InputError
        If an area is twice in the header.
    OutputError
        If a table is missing, or persons and units are of different areas.
    """
    areas, tables = _tables(persons, units)
    told = told_areas(persons)
    level = areas.astype(f"S{HEADER['SUMLEV']}")
    code = _without_level(areas)
    here = np.isin(level, list(PARTS))
    state = code.astype(f"S{HEADER['STATE']}")
    for one in np.unique(state[here]):
        chosen = np.flatnonzero(here & (state == one))
        chosen = chosen[np.argsort(areas[chosen], kind="stable")]
        header = _header(level[chosen], code[chosen], told, known)
        header["POP100"] = whole(tables["P1"][chosen, 0])
        header["HU100"] = whole(tables[_HOUSING][chosen, 0])
        yield SummaryFile(header, {name: values[chosen] for name, values in tables.items()})


def _tables(persons: ReleaseFolder, units: ReleaseFolder) -> tuple[Texts, dict[str, Indices]]:
    """All tables, and the areas that are their rows."""
    areas, first = _read(persons, "P1")
    tables = {"P1": first}
    for table in (name for segment in SEGMENTS for name in segment if name not in tables):
        here, tables[table] = _read(units if table == _HOUSING else persons, table)
        if len(here) != len(areas) or (here != areas).any():
            told = (
                f"{persons.folder} and {units.folder} are of different areas: the files of P.L. 94-171 have persons "
                "and housing units of the same ones"
            )
            raise OutputError(
                told if table == _HOUSING else f"{persons.folder}: tables P1 and {table} are of different areas"
            )
    return areas, tables


def _read(release: ReleaseFolder, table: str) -> tuple[Texts, Indices]:
    """A published table: summary level and code of each area as one text, and the variables."""
    path = release.path(f"{TABLES}/{table}")
    names, numbers = ("SUMLEV", "GEOCODE"), variables_of(table)
    fault = OutputError(f"{path} is not readable as table {table}")
    with unreadable(fault), open_database() as db:
        if read_header(path, separators="|", quote="").names != (*names, *numbers):
            raise fault
        rows = csv_rows(path, (*names, *numbers), kinds=dict.fromkeys(numbers, "INTEGER"))
        found = db.execute(f"SELECT SUMLEV || GEOCODE AS area, * EXCLUDE (SUMLEV, GEOCODE) FROM {rows}").fetchnumpy()
    values = np.empty((len(found["area"]), len(numbers)), dtype=np.int32)
    for place, name in enumerate(numbers):
        values[:, place] = found[name]
    return found["area"].astype("S"), values


def _without_level(areas: Texts) -> Texts:
    letters = np.ascontiguousarray(areas.view("S1").reshape(len(areas), -1)[:, HEADER["SUMLEV"] :])
    found: Texts = letters.view(f"S{letters.shape[1]}").reshape(-1)
    return found


def _header(level: Texts, code: Texts, told: ToldAreas, known: Mapping[str, Texts] | None) -> dict[str, Texts]:
    """The geographic header of the areas of a state, of which the header may hold some."""
    parts = []
    for one in np.unique(level):
        codes = code[level == one]
        longest = int(np.char.str_len(codes).max())
        empty = np.zeros(len(codes), dtype="S1")
        fields = record_fields(one, codes.astype(f"S{longest}"))
        for name, values in told.fields(one, codes).items():
            fields[name] = np.where(values == b"", fields.get(name, empty), values)
        parts.append({name: fields.get(name, empty) for name in HEADER})
    header = {name: np.concatenate([part[name] for part in parts]) for name in HEADER}
    at = np.full(len(level), -1) if known is None else _places(np.char.add(level, code), known)
    if known is not None:
        for name in set(HEADER) - set(_COUNTED):
            header[name] = np.where(at < 0, header[name], known[name][np.maximum(at, 0)])
    header["LOGRECNO"] = _numbered(header["LOGRECNO"], at < 0, known)
    return header


def _places(areas: Texts, known: Mapping[str, Texts]) -> Ints:
    """The record of each area in a geographic header, or -1."""
    names, line = areas_in(known)
    if not len(line):
        return np.full(len(areas), -1)
    at = np.minimum(np.searchsorted(names, areas), len(line) - 1)
    return np.where(names[at] == areas, line[at], -1)


def areas_in(known: Mapping[str, Texts]) -> tuple[Texts, Ints]:
    """Summary level and code of the areas of a geographic header in their order, and the record of each.

    Raises
    ------
    InputError
        If an area is there twice.
    """
    line = np.flatnonzero((known["GEOCOMP"] == _ONE_AREA) & np.isin(known["SUMLEV"], list(PARTS)))
    names = np.char.add(known["SUMLEV"][line], known["GEOCODE"][line])
    order = np.argsort(names, kind="stable")
    again = np.flatnonzero(names[order][1:] == names[order][:-1])
    if len(again):
        first, second = (int(line[order[again[0] + step]]) + 1 for step in (0, 1))
        raise InputError(
            f"the header of names has area {names[order[again[0]]].decode()[3:]} of summary level "
            f"{names[order[again[0]]].decode()[:3]} twice, in lines {first} and {second}; leave one of them out"
        )
    return names[order], line[order]


def _numbered(record: Texts, new: Flags, known: Mapping[str, Texts] | None) -> Texts:
    """LOGRECNO, of new records after those of the header, as wide as they are there."""
    last, width = 0, HEADER["LOGRECNO"]
    if known is not None:
        lengths = np.char.str_len(known["LOGRECNO"])
        last, width = int(known["LOGRECNO"].astype(np.int64).max()), int(lengths.min())
    numbers = last + np.cumsum(new)
    written = digits(numbers, width) if last + int(new.sum()) < 10**width else whole(numbers)
    return np.where(new, written, record)
