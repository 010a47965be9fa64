"""Lists of codes and of what each lies in: in a configuration, or in a public file that it names. Public."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yupana.files.declaration import TEXT, Expected, declared, key, list_of, scalar, table_of
from yupana.files.delimited import read_rows
from yupana.files.document import is_text


@dataclass(frozen=True, slots=True)
class CodeList:
    """Codes in order, and what each is called.

    Attributes
    ----------
    codes, labels : tuple of str
        Without labels a code is its own.
    """

    codes: tuple[str, ...]
    labels: tuple[str, ...]

    @property
    def document(self) -> list[str] | dict[str, str]:
        """The list as a description writes it in place."""
        return list(self.codes) if self.codes == self.labels else dict(zip(self.codes, self.labels, strict=True))


@dataclass(frozen=True, kw_only=True)
class CodesFile:
    """A public file of codes; where ``parent`` says what each lies in, those are meant that nothing lies in."""

    file: str = key(TEXT)
    code: str = key(TEXT)
    label: str | None = key(TEXT, default=None)
    parent: str | None = key(TEXT, default=None)


@dataclass(frozen=True, kw_only=True)
class PairsFile:
    """A public file of codes and areas."""

    file: str = key(TEXT)
    code: str = key(TEXT)
    area: str = key(TEXT)


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
_NONE = CodeList(("1",), ("1",))


def codes_of(place: str, told: Codes | None, folder: Path, faults: list[str]) -> CodeList:
    """A list of codes, read from the file that is named, if one is; None stands for what was refused."""
    before = len(faults)
    if told is None:
        return _NONE
    if isinstance(told, CodesFile):
        names = (told.code, told.label or told.code, told.parent or told.code)
        rows = [[row.values[name] for name in names] for row in read_rows(place, folder / told.file, names, faults)]
        above = {row[2] for row in rows} if told.parent else set()
        pairs = list({row[0]: row[1] for row in rows if row[0] not in above}.items())
    else:
        pairs = list(told.items()) if isinstance(told, dict) else [(code, code) for code in told]
    codes = tuple(dict(pairs))
    if not codes and len(faults) > before:
        return _NONE
    if not codes or any(not is_text(code) or "|" in code or '"' in code for code in codes):
        faults.append(f"{place}: a code is a line of text without | and quotes, and there must be one")
        return _NONE
    if len(codes) < len(pairs):
        faults.append(f"{place}: a code stands twice")
    return CodeList(codes, tuple(dict(pairs).values()))


def pairs_of(place: str, told: Pairs, folder: Path, faults: list[str]) -> dict[str, list[str]]:
    """Of each code the areas it lies in, read from the file that is named, if one is."""
    if isinstance(told, dict):
        return {code: [areas] if isinstance(areas, str) else list(areas) for code, areas in told.items()}
    found: dict[str, list[str]] = {}
    for row in read_rows(place, folder / told.file, (told.code, told.area), faults):
        code, area = row.values[told.code], row.values[told.area]
        found.setdefault(code, []).extend([area] if area and area not in found.get(code, ()) else [])
    return found
