"""Lists of codes and of what each lies in: in a configuration, or in a public file that it names. Public."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yupana.files.code_tables import NamesOf, TextRow, read_rows
from yupana.files.declaration import TEXT, Expected, declared, key, list_of, scalar, table_of
from yupana.files.document import is_text


def in_place(labels: Mapping[str, str]) -> list[str] | dict[str, str]:
    """Codes and what each is called as a description writes them in place: a code without a label is its own."""
    return list(labels) if all(code == label for code, label in labels.items()) else dict(labels)


@dataclass(frozen=True, kw_only=True)
class CodesFile:
    """A public file of codes; where ``parent`` says what each lies in, those are meant that nothing lies in."""

    file: str = key(TEXT)
    code: str = key(TEXT)
    label: str | None = key(TEXT, default=None)
    parent: str | None = key(TEXT, default=None)
    encoding: str | None = key(TEXT, "of its text, if that is not UTF-8", default=None)


@dataclass(frozen=True, kw_only=True)
class PairsFile:
    """A public file of codes and areas."""

    file: str = key(TEXT)
    code: str = key(TEXT)
    area: str = key(TEXT)
    encoding: str | None = key(TEXT, "of its text, if that is not UTF-8", default=None)


def _names_file(told: dict[str, object]) -> bool:
    # In a manifest the areas of a code are a list, be it a code that is called "file".
    return is_text(told.get("file"))


Codes = CodesFile | dict[str, str] | tuple[str, ...]
"""Codes, codes and labels, or the file that says so."""

CODES: Final[Expected[Codes]] = (
    list_of(TEXT, 'a list of codes, which are texts such as "01"', least=0)
    | declared(CodesFile, when=_names_file)
    | table_of(TEXT, "a table of codes and labels")
)
_AREA: Final = scalar(
    "the code of an area, or a list of codes",
    lambda told: str(told) if is_text(told) and "|" not in str(told) else None,
    TEXT.schema,
)
Pairs = PairsFile | dict[str, str | tuple[str, ...]]
"""Of each code the areas it lies in, or the file that says so."""

PAIRS: Final[Expected[Pairs]] = declared(PairsFile, when=_names_file) | table_of(
    _AREA | list_of(_AREA, _AREA.words, least=0), "a table of codes and areas"
)
_NONE: Final = {"1": "1"}


def codes_of(place: str, told: Codes | None, folder: Path, faults: list[str]) -> Mapping[str, str]:
    """A list of codes, read from the file that is named, if one is; None stands for what was refused."""
    before = len(faults)
    if told is None:
        return _NONE
    if isinstance(told, CodesFile):
        names = (told.code, told.label or told.code, told.parent or told.code)
        read = read_rows(place, folder / told.file, names, faults, told.encoding, _unnamed(names))
        above = {row.values[names[2]] for row in read} if told.parent else set()
        wanted = [row for row in read if row.values[told.code] not in above]
        if not wanted and len(faults) > before:
            return _NONE
        return listed_rows(f"{place}: {folder / told.file}", wanted, told.code, names[1], faults)
    if not isinstance(told, dict) and len(set(told)) < len(told):
        faults.append(f"{place}: a code stands twice")
    return listed(place, told if isinstance(told, dict) else {code: code for code in told}, faults)


def _unnamed(names: Sequence[str]) -> NamesOf:
    """The columns of a file that does not name them: of codes that begin with a digit, and of what does not."""
    wanted = tuple(dict.fromkeys(names))

    def found(fields: Sequence[str]) -> tuple[str, ...] | None:
        code, *others = (field[:1].isdecimal() for field in fields)
        there = len(fields) == len(wanted) <= _PAIR and code and not any(others)
        return wanted if there and not {*fields} & {*wanted} else None

    return found


_PAIR: Final = 2


def listed(place: str, labels: Mapping[str, str], faults: list[str]) -> Mapping[str, str]:
    """A list of codes with what they are called."""
    if not labels or not all(map(_is_code, labels)):
        faults.append(f"{place}: {_CODE}, and there must be one")
        return _NONE
    return labels


def listed_rows(place: str, rows: Sequence[TextRow], code: str, label: str, faults: list[str]) -> Mapping[str, str]:
    """The codes that a column of a file lists, with what they are called in another."""
    if odd := [row.line for row in rows if not _is_code(row.values[code])]:
        more = f"; so are {len(odd) - 1:,} more" if len(odd) > 1 else ""
        faults.append(f"{place}, line {odd[0]}, column {code}: is empty or no code: {_CODE}{more}")
        return _NONE
    return listed(place, {row.values[code]: row.values[label] for row in rows}, faults)


def _is_code(text: str) -> bool:
    return is_text(text) and "|" not in text and '"' not in text


_CODE: Final = "a code is a line of text without | and quotes"


def lost_zeros(given: Collection[str], codes: Sequence[str]) -> dict[str, str]:
    """Of codes of digits that a file has without their leading zeros: how it writes them. It has lost all or none."""
    if any(code.startswith("0") and code in given for code in codes):
        return {}
    written = {code.lstrip("0"): code for code in given if code.isdecimal()}
    alike = Counter(code.lstrip("0") for code in codes)
    return {
        code: short
        for code in codes
        if code not in given
        and code.isdecimal()
        and alike[code.lstrip("0")] == 1
        and len(short := written.get(code.lstrip("0"), code)) < len(code)
    }


def pairs_of(place: str, told: Pairs, folder: Path, faults: list[str]) -> dict[str, list[str]]:
    """Of each code the areas it lies in, read from the file that is named, if one is."""
    if isinstance(told, dict):
        return {code: [areas] if isinstance(areas, str) else list(areas) for code, areas in told.items()}
    found: dict[str, list[str]] = {}
    names = (told.code, told.area)
    for row in read_rows(place, folder / told.file, names, faults, told.encoding, _unnamed(names)):
        code, area = row.values[told.code], row.values[told.area]
        found.setdefault(code, []).extend([area] if area and area not in found.get(code, ()) else [])
    return found
