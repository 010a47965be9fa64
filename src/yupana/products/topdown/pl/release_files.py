"""The files of P.L. 94-171 as an output of their own: made of the published tables of two releases, with a manifest.

The releases, of persons and of housing units, lie side by side.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from yupana.arrays import Flags, Indices, Ints
from yupana.errors import ConfigError, InputError, OutputError
from yupana.files.database import open_database, unreadable
from yupana.files.delimited import csv_rows, read_header
from yupana.files.regular import FOLDER, must_be
from yupana.geography.gazetteer import read_names
from yupana.geography.header import HEADER
from yupana.products.gate import open_checked, open_release
from yupana.products.topdown.pl.areas import PARTS, ToldAreas, check_names, record_fields, told_areas
from yupana.products.topdown.pl.summary_file import (
    LINKS,
    PL_FILES,
    SEGMENTS,
    header_in,
    is_geographic_header,
    read_geographic_header,
    segment_variables,
    write_summary_file,
)
from yupana.products.topdown.pl.summary_records import SummaryFile
from yupana.products.topdown.tables import AREA_COLUMNS, TABLES, counts_persons, counts_units, variables_of
from yupana.release.folder import new_folder, write_manifest
from yupana.release.lines import Texts, cut, digits, whole
from yupana.release.manifest import MANIFEST
from yupana.release.release import ReleaseFolder
from yupana.release.status import CONFIDENTIAL, MEASURED, NOT_FOR_RELEASE, refuse_confidential
from yupana.release.tables import describe
from yupana.topdown.configuration import Configuration
from yupana.version import __version__

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
    code = cut(areas, HEADER["SUMLEV"], areas.itemsize)
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
    names, numbers = AREA_COLUMNS, variables_of(table)
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
    names, line = _areas_in(known)
    if not len(line):
        return np.full(len(areas), -1)
    at = np.minimum(np.searchsorted(names, areas), len(line) - 1)
    return np.where(names[at] == areas, line[at], -1)


def _areas_in(known: Mapping[str, Texts]) -> tuple[Texts, Ints]:
    """Summary level and code of the areas of a geographic header in their order, and the record of each."""
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


_PARTS: Final = {
    "persons": ("tables/P1", "a configuration such as pl94-2020-us"),
    "units": ("tables/H1", "a configuration such as h1-2020-us"),
}
"""The folders of the two releases, a table that each has, and what makes it."""


def write_release_files(release: Path, out: Path, names: Path | None, *, overwrite: bool = False) -> dict[str, Any]:
    """Write the four files of every state, and return their manifest.

    They follow from public files alone, so that they cost no privacy; they are as fit for release as what they are of.

    Parameters
    ----------
    release : Path
        A folder with the release of persons in ``persons`` and that of housing units in ``units``.
    out : Path
        A folder that does not exist or is empty; it appears whole.
    names : Path, optional
        A geographic header, or the folder that holds one; areas that it has get its fields.
    overwrite : bool
        Replace an earlier output.

    Raises
    ------
    InputError
        If the header is faulty.
    OutputError
        If a release is missing, was changed, is CONFIDENTIAL, or they are of different areas; or ``out`` cannot be
        used.
    """
    must_be(FOLDER, release, "name the folder of the releases of persons and units", OutputError)
    parts = {part: _part(release, part, open_checked) for part in _PARTS}
    known = None if names is None else read_geographic_header(header_in(names))
    with new_folder(out, overwrite=overwrite, noisy=False) as draft:
        return _write(draft, parts, known)


@contextmanager
def claim_files(
    configurations: Mapping[str, Configuration], out: Path, names: Path | None, *, overwrite: bool
) -> Iterator[Callable[[Path], object]]:
    """Claim the folder of the files before a run, and refuse what none could be written of.

    Parameters
    ----------
    configurations : mapping of str to Configuration
        Of the parts that the run makes, by name.
    out : Path
        A folder that does not exist or is empty; it appears whole at the end.
    names : Path, optional
        What areas are called: a geographic header, or a table, which the releases keep.
    overwrite : bool
        Replace an earlier output.

    Yields
    ------
    callable
        Writes the files, of the folder with the releases of the parts.

    Raises
    ------
    ConfigError
        If there are no persons or no housing units.
    InputError, OutputError
        If the header is faulty, or ``out`` cannot be used.
    """
    for part, counts in (("persons", counts_persons), ("units", counts_units)):
        if part not in configurations or not counts(configurations[part].schema):
            raise ConfigError(
                "--pl: the files of P.L. 94-171 hold persons and housing units, and neither is left out or written as "
                f"zero. This run has no part {part!r} with the schema of P.L. 94-171; run a document of the parts "
                "persons and units, such as pl94-2020-us-whole"
            )
    known = None
    if names is not None and is_geographic_header(names):
        known = read_geographic_header(names)
        _areas_in(known)
    elif names is not None:
        check_names(read_names(names))
    with new_folder(out, overwrite=overwrite, noisy=False) as draft:
        # The run that has just made them has checked every row.
        yield lambda release: _write(draft, {part: _part(release, part, open_release) for part in _PARTS}, known)


def _write(draft: Path, parts: Mapping[str, ReleaseFolder], known: Mapping[str, Texts] | None) -> dict[str, Any]:
    """Write the files of all states and their manifest."""
    statuses = [refuse_confidential(part.manifest, str(part.folder)) for part in parts.values()]
    columns = [list(HEADER), *([*LINKS, *segment_variables(segment)] for segment in range(3))]
    tables: dict[str, Any] = {}
    for file in summary_files(parts["persons"], parts["units"], known):
        for name, fields in zip(write_summary_file(draft, file), columns, strict=True):
            tables[name] = describe(name.removesuffix(".pl"), draft / name, file.records, fields)
    reasons = list(dict.fromkeys(why for part in parts.values() for why in part.manifest.get("reasons", ())))
    manifest = {
        "yupana": __version__,
        "product": PL_FILES,
        "status": NOT_FOR_RELEASE if {NOT_FOR_RELEASE, CONFIDENTIAL} & set(statuses) else MEASURED,
        **({"reasons": reasons} if reasons else {}),
        "parts": {name: {"manifest_sha256": part.sha256} for name, part in parts.items()},
        "tables": tables,
    }
    write_manifest(draft, manifest)
    return manifest


def _part(release: Path, part: str, opened: Callable[[Path], ReleaseFolder]) -> ReleaseFolder:
    """One of the two releases, whose files are those of its manifest."""
    table, made_by = _PARTS[part]
    folder = release / part
    if not (folder / MANIFEST).is_file():
        alone = f"{release} is one release by itself" if (release / MANIFEST).is_file() else f"{folder} is no release"
        raise OutputError(
            f"{alone}: the files of P.L. 94-171 hold persons and housing units, and neither is left out or written as "
            f"zero. Name a folder with a release of each in {' and '.join(_PARTS)}; {part} are made by a run of "
            f"{made_by}"
        )
    found = opened(folder)
    if table not in found:
        raise OutputError(
            f"{folder} has no table {table.removeprefix('tables/')}: {part} are made by a run of {made_by}"
        )
    return found
