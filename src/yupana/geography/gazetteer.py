"""What published areas are called, how large they are and where they lie; finding the one that is meant. Public."""

import csv
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from yupana.errors import ConfigError, InputError, is_control, nearest
from yupana.files.code_tables import read_rows
from yupana.files.regular import read_regular
from yupana.geography.header import PLACES, begins_as_header, records
from yupana.geography.kinds import COUNTY, KINDS, NESTED, kind_of
from yupana.geography.published import AREAS_FOLDER, NATION, PublishedBlocks

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

_DIGITS: Final = NESTED | {name: kind.outer + kind.most for name, kind in KINDS.items() if 0 < kind.least == kind.most}
"""Digits of the whole identifiers of a kind, where all have as many."""

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


def read_names(path: Path, encoding: str | None = None, notes: list[str] | None = None) -> AreaNames:
    """Read a geographic header file of P.L. 94-171, or a table of `NAME_COLUMNS` with the first three at least.

    Parameters
    ----------
    encoding : str, optional
        Of the text of a table; see `open_codes`.
    notes : list of str, optional
        How codes were changed is added to it.

    Raises
    ------
    InputError
        If it is neither, an area is named twice, or a number is none.
    """
    found: dict[tuple[str, str], AreaName] = {}
    restored: list[int] = []
    for line, kind, given, name in _rows(path, encoding):
        code = given.zfill(len(given) + 1) if given.isdecimal() and len(given) + 1 == _DIGITS.get(kind) else given
        restored += [line] if code != given else []
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
    if restored and notes is not None:
        text = "codes got back the leading zero that they had lost, first in line"
        notes.append(f"{path.name}: {len(restored):,} {text} {restored[0]}")
    return found


def _within(text: str, low: float, high: float) -> bool:
    try:
        return low <= float(text) <= high
    except ValueError:
        return False


def _rows(path: Path, encoding: str | None) -> Iterator[tuple[int, str, str, AreaName]]:
    if begins_as_header(path):
        yield from _of_header(path, read_regular(path))
        return
    faults: list[str] = []
    rows = read_rows("", path, NAME_COLUMNS[:_REQUIRED], faults, encoding, _without_names, fold=True)
    if faults:
        more = f"; give a geographic header file of P.L. 94-171, or a table of {', '.join(NAME_COLUMNS)}"
        raise InputError("\n  ".join(faults) + (more if ": no column" in faults[0] else ""))
    for row in rows:
        kind, code, *others = (row.values.get(name, "") for name in NAME_COLUMNS)
        yield row.line, kind, code, AreaName(*others)


def _without_names(fields: Sequence[str]) -> tuple[str, ...] | None:
    """The columns of a table that does not name them, and begins with a kind of the Bureau's."""
    there = _REQUIRED <= len(fields) <= len(NAME_COLUMNS) and fields[0] in KINDS
    return NAME_COLUMNS[: len(fields)] if there else None


def _of_header(path: Path, content: bytes) -> Iterator[tuple[int, str, str, AreaName]]:
    for number, fields in records(path, content):
        kind = _KIND_OF.get(fields[PLACES["SUMLEV"]])
        _, found, code = fields[PLACES["GEOID"]].partition(_BEFORE_CODE)
        if kind is None or not found:
            continue  # a part of an area that is not published here
        told = {name: fields[PLACES[field]] for name, field in _FIELDS.items()}
        if any(is_control(one) for text in (code, *told.values()) for one in text):
            raise InputError(f"{path}, line {number}: holds a control character; remove it")
        # As a release has it: blocks with their block group, and a word for the nation.
        code = code[:12] + code[11:] if kind == "block" else code or NATION
        yield number, kind, code, AreaName(**told)


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


_SHOWN: Final = 6
_LONGEST: Final = 500
_BEFORE: Final = {name: kind.outer for name, kind in KINDS.items()} | {
    COUNTY: 2,
    "tract": 5,
    "block_group": 5,
    "state_aiannh": 2,
}
"""How many digits of an identifier name the state or county that the rest of it is a code of."""

_DESCRIPTIONS: Final = (
    "city and borough",
    "city",
    "town",
    "village",
    "borough",
    "charter township",
    "township",
    "plantation",
    "CDP",
    "CCD",
    "UT",
    "County",
    "Parish",
    "Municipality",
    "Municipio",
    "Census Area",
    "zona urbana",
    "comunidad",
    "barrio-pueblo",
    "barrio",
    "Indian Reservation",
    "Reservation and Off-Reservation Trust Land",
    "Reservation",
    "Off-Reservation Trust Land",
    "Rancheria",
    "Pueblo",
    "Indian Colony",
    "OTSA",
    "SDTSA",
    "TDSA",
    "ANVSA",
    "School District",
)
"""Legal and statistical descriptions at the end of the Bureau's names; of two the longer one goes before."""

_SUFFIX: Final = re.compile(rf"\s+(?:{'|'.join(map(re.escape, _DESCRIPTIONS))})$", re.IGNORECASE)
_PREFIX: Final = re.compile(
    r"^(?:Census Tract|Tract|Block Group|Block|Voting District|Congressional District|State Senate District|"
    r"State House District|State Legislative District)\s+",
    re.IGNORECASE,
)
_BALANCE: Final = re.compile(r"\s+\(balance\)$")


@dataclass(frozen=True, slots=True)
class NamedArea:
    """An area: its kind, its identifier in the tables, and its name, empty where the release has none."""

    kind: str
    code: str
    name: str

    @property
    def text(self) -> str:
        """The area as it can be asked for."""
        return f"{self.kind}={self.code}"

    @property
    def label(self) -> str:
        """The area in words."""
        return f"{self.kind} {self.code}" + (f" ({self.name})" if self.name else "")


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()


_RULES: Final[Mapping[str, Callable[[str], str]]] = {
    "code": str,
    "bare": lambda text: text.lstrip("0"),
    "name": str,
    "folded": _folded,
    "short": _folded,
}
"""What areas are found by, of codes before names and the strictest first, with what is made of a text for it."""

_KindIndex = Mapping[str, dict[str, list[int]]]
"""The places of the areas of a kind, by rule and by whatever they may be called."""


@dataclass(frozen=True, slots=True, eq=False)
class Gazetteer:
    """The areas that can be asked for."""

    # identifiers by kind, in order: the Bureau's kinds by summary level, then others
    codes: Mapping[str, Sequence[str]]
    names: AreaNames  # what is known of them
    _indices: dict[str, _KindIndex] = field(default_factory=dict, init=False)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of areas."""
        return tuple(self.codes)

    def known(self, kind: str) -> list[tuple[NamedArea, AreaName]]:
        """The areas of a kind with what is known of each, in order.

        Raises
        ------
        ConfigError
            If there is no such kind.
        """
        kind = self.kind(kind)
        none = AreaName()
        told = [(code, self.names.get((kind, code), none)) for code in self.codes[kind]]
        return [(NamedArea(kind, code, one.name), one) for code, one in told]

    def kind(self, text: str) -> str:
        """The kind that a text means: its name, the Bureau's name of a column of it, or its summary level.

        Raises
        ------
        ConfigError
            If it means none, or one that the release does not tell.
        """
        plain = re.sub(r"[\s-]+", "_", text.strip())
        for name in (plain, kind_of(plain), _KIND_OF.get(plain, "")):
            if name in self.codes:
                return name
        same = [name for name in self.codes if name.lower() == plain.lower()]
        if len(same) == 1:
            return same[0]
        there = ", ".join(self.codes)
        if kind_of(plain) in KINDS:
            raise ConfigError(
                f"the release does not tell which {kind_of(plain)} its blocks lie in; it has {there}. Give a file of "
                "blocks and areas with --areas"
            )
        raise ConfigError(f"there is no kind of areas {text.strip()!r}; there are {there}{nearest(plain, self.codes)}")

    def find(self, text: str) -> NamedArea:
        """Find the area that KIND=CODE or KIND=NAME means.

        Codes are whole identifiers or, of kinds within a state or county, what stands after it, with leading zeros or
        without. Names are taken as the release writes them, then in any case, then without a description such as
        "city" at their end or "Census Tract" before them. Codes go before names; the first of these rules that an area
        meets decides.

        Raises
        ------
        ConfigError
            If no area is meant, or several are by the same rule.
        """
        if len(text) > _LONGEST:
            raise ConfigError(
                f"an area of {len(text):,} characters is none; the longest names have less than {_LONGEST}"
            )
        kind, sign, called = text.partition("=")
        called = " ".join(called.split())
        if not sign or not kind.strip() or not called:
            raise ConfigError(f"{text!r} names no area; write KIND=CODE or KIND=NAME, such as place=1714000")
        kind = self.kind(kind)
        index = self._index(kind)
        told = ((rule, make(called)) for rule, make in _RULES.items())
        found = next((index[rule][key] for rule, key in told if key in index[rule]), [])
        if len(found) == 1:
            return self._area(kind, found[0])
        if found:
            listed = ", ".join(self._area(kind, at).label.removeprefix(f"{kind} ") for at in found[:_SHOWN])
            more = ", ..." if len(found) > _SHOWN else ""
            parts = "; aiannh has it whole, in all states" if kind == "state_aiannh" else ""
            raise ConfigError(
                f"{len(found):,} areas are {text.strip()!r}: {listed}{more}; name one by its whole code{parts}"
            )
        raise ConfigError(f"no {kind} is {called!r}; {self._near(kind, called, index)}")

    def _area(self, kind: str, place: int) -> NamedArea:
        code = self.codes[kind][place]
        return NamedArea(kind, code, self.names[kind, code].name if (kind, code) in self.names else "")

    def _index(self, kind: str) -> _KindIndex:
        if kind not in self._indices:
            index, before = {rule: dict[str, list[int]]() for rule in _RULES}, _BEFORE.get(kind, 0)
            for place, code in enumerate(self.codes[kind]):
                index["code"][code] = [place]
                for bare in {code.lstrip("0"), code[before:].lstrip("0")}:
                    index["bare"].setdefault(bare, []).append(place)
                name = " ".join(self.names[kind, code].name.split()) if (kind, code) in self.names else ""
                # Areas of a user's kinds are called as they are written.
                name = name or ("" if kind in KINDS else code)
                if name:
                    index["name"].setdefault(name, []).append(place)
                    index["folded"].setdefault(_folded(name), []).append(place)
                    index["short"].setdefault(_folded(_without_description(name)), []).append(place)
            self._indices[kind] = index
        return self._indices[kind]

    def _near(self, kind: str, called: str, index: _KindIndex) -> str:
        codes = self.codes[kind]
        if not codes:
            return f"the release has no {kind}"
        some = ", ".join(self._area(kind, at).label.removeprefix(f"{kind} ") for at in range(min(3, len(codes))))
        told = f"there are {len(codes):,}, such as {some}; --list {kind} lists them"
        # A code that is near another one is another area.
        return (
            told
            if called.isdecimal()
            else told + nearest(called, [*index["name"], *map(_without_description, index["name"])])
        )


def gazetteer_of(published: PublishedBlocks, names: AreaNames) -> Gazetteer:
    """The areas of all kinds that published blocks lie in."""
    areas = {kind.name: kind.labels for kind in published.areas(np.zeros(0, dtype=np.int64))}
    order = [*(name for name in KINDS if name in areas), *(name for name in areas if name not in KINDS)]
    return Gazetteer({name: tuple(label.decode() for label in areas[name].tolist()) for name in order}, names)


def _without_description(name: str) -> str:
    return _SUFFIX.sub("", _BALANCE.sub("", _PREFIX.sub("", name)))
