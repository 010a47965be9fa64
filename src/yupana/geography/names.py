"""What published areas are called, how large they are and where they lie. Public."""

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yupana.errors import InputError, is_control
from yupana.files.regular import regular
from yupana.geography.header import PLACES, is_header, records
from yupana.geography.kinds import KINDS
from yupana.geography.published import AREAS_FOLDER, NATION

NAMES: Final = f"{AREAS_FOLDER}/names.csv"
NAME_COLUMNS: Final = ("kind", "code", "name", "land", "water", "latitude", "longitude")

_REQUIRED: Final = 3

_FIELDS: Final = {
    "name": "NAME",
    "land": "AREALAND",
    "water": "AREAWATR",
    "latitude": "INTPTLAT",
    "longitude": "INTPTLON",
}
"""Where a geographic header has what is read."""

_KIND_OF: Final = {kind.summary_level: name for name, kind in KINDS.items()}
_BEFORE_CODE: Final = "US"


@dataclass(frozen=True, slots=True)
class AreaName:
    """What is known of an area; texts as the file has them, empty where it has none.

    Attributes
    ----------
    name : str
    land, water : str
        Square metres.
    latitude, longitude : str
        Of a point within, in degrees.
    """

    name: str = ""
    land: str = ""
    water: str = ""
    latitude: str = ""
    longitude: str = ""


AreaNames = Mapping[tuple[str, str], AreaName]
"""By kind and identifier."""


def read_names(path: Path) -> AreaNames:
    """Read a geographic header file of P.L. 94-171, or a table of `NAME_COLUMNS` with the first three at least.

    Raises
    ------
    InputError
        If it is neither, an area is named twice, or a number is none.
    """
    found: dict[tuple[str, str], AreaName] = {}
    for line, kind, code, name in _rows(path):
        if (kind, code) in found:
            raise InputError(f"{path}, line {line}: {kind} {code} is there twice")
        for column, text, low, high in (
            ("land", name.land, 0.0, 1e15),
            ("water", name.water, 0.0, 1e15),
            ("latitude", name.latitude, -90.0, 90.0),
            ("longitude", name.longitude, -180.0, 180.0),
        ):
            if text and not _within(text, low, high):
                raise InputError(f"{path}, line {line}, column {column}: not a number from {low:g} to {high:g}")
        found[kind, code] = name
    if not found:
        raise InputError(f"{path} names no area")
    return found


def _within(text: str, low: float, high: float) -> bool:
    try:
        return low <= float(text) <= high
    except ValueError:
        return False


def _rows(path: Path) -> Iterator[tuple[int, str, str, AreaName]]:
    try:
        with open(path, "rb", opener=regular) as file:
            content = file.read()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    if is_header(content):
        yield from _of_header(path, content)
        return
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8") from None
    separator = "|" if b"|" in content.split(b"\n", 1)[0] else ","
    rows = csv.reader(text.splitlines(), delimiter=separator)
    header = [name.strip().lower() for name in next(rows, [])]
    if missing := [name for name in NAME_COLUMNS[:_REQUIRED] if name not in header]:
        raise InputError(
            f"{path}, line 1: no column {', '.join(missing)}; give a geographic header file of P.L. 94-171, or a table "
            f"of {', '.join(NAME_COLUMNS)}"
        )
    for number, row in enumerate(rows, 2):
        if row and len(row) != len(header):
            raise InputError(f"{path}, line {number}: {len(row)} fields, but the header names {len(header)} columns")
        told = dict(zip(header, row, strict=False))
        if odd := [name for name, field in told.items() if any(map(is_control, field))]:
            raise InputError(f"{path}, line {number}, column {odd[0]}: holds a control character; remove it")
        if row:
            others = {name: told.get(name, "").strip() for name in NAME_COLUMNS[_REQUIRED - 1 :]}
            yield number, told["kind"].strip(), told["code"].strip(), AreaName(**others)


def _of_header(path: Path, content: bytes) -> Iterator[tuple[int, str, str, AreaName]]:
    for number, fields in records(path, content):
        kind = _KIND_OF.get(fields[PLACES["SUMLEV"]])
        _, found, code = fields[PLACES["GEOID"]].partition(_BEFORE_CODE)
        if kind is None or not found:
            continue  # a part of an area that is not published here
        told = {name: fields[PLACES[field]] for name, field in _FIELDS.items()}
        if any(is_control(one) for text in (code, *told.values()) for one in text):
            raise InputError(f"{path}, line {number}: holds a control character; remove it")
        yield number, kind, _identifier(kind, code), AreaName(**told)


def _identifier(kind: str, code: str) -> str:
    """The identifier of an area as a release has it: blocks with their block group, and a word for the nation."""
    if kind == "block":
        return code[:11] + code[11:12] + code[11:]
    return code or NATION


def write_names(folder: Path, names: AreaNames, published: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """Write areas/names.csv: what is known of the areas that are published, in the order of their identifiers.

    Parameters
    ----------
    folder : Path
        The release.
    names : mapping
    published : mapping of str to iterable of str
        By kind, the identifiers in order.

    Returns
    -------
    dict of str to int
        Rows, by the file's path within the folder.
    """
    rows = 0
    with (folder / NAMES).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="|", lineterminator="\n")
        writer.writerow(NAME_COLUMNS)
        for kind, codes in published.items():
            for code in codes:
                if (one := names.get((kind, code))) is not None:
                    writer.writerow((kind, code, one.name, one.land, one.water, one.latitude, one.longitude))
                    rows += 1
    return {NAMES: rows}
