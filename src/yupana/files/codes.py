"""Lists of codes and of what each lies in: in a configuration, or in a public file that it names. Public."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yupana.files.delimited import read_rows
from yupana.files.document import check_keys, is_text


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


_NONE = CodeList(("1",), ("1",))


def read_codes(place: str, told: object, folder: Path, faults: list[str]) -> CodeList:
    """A list of codes, a table of codes and labels, or a file: ``{ file = "x.csv", code = "ID", label = "NAME" }``.

    Of a file that says with ``parent`` what each unit lies in, the codes are those that nothing lies in.
    """
    before = len(faults)
    if isinstance(told, dict) and "file" in told:
        check_keys(place, told, ("file", "code"), faults, optional=("label", "parent"))
        if not all(isinstance(value, str) for value in told.values()) or "code" not in told:
            faults.append(f"{place}: file, code, label and parent must be texts")
            return _NONE
        label, parent = ("label" if "label" in told else "code"), ("parent" if "parent" in told else "code")
        rows = _rows(place, told, ("code", label, parent), folder, faults)
        above = {row[2] for row in rows} if "parent" in told else set()
        pairs: list[tuple[str, str]] = [(row[0], row[1]) for row in rows if row[0] not in above]
    elif isinstance(told, dict):
        pairs = [(code, label) for code, label in told.items() if is_text(label)]
        if len(pairs) < len(told):
            faults.append(f"{place}: every code needs a label that is a text")
    elif isinstance(told, list):
        pairs = [(code, code) for code in told if isinstance(code, str)]
        if len(pairs) < len(told):
            faults.append(f'{place}: codes are texts, such as "01"')
    else:
        faults.append(f'{place}: must be a list of codes, such as ["1", "2"], a table of codes and labels, or a file')
        return _NONE
    codes = tuple(dict(pairs))
    if not codes and len(faults) > before:
        return _NONE
    if not codes or any(not is_text(code) or "|" in code or '"' in code for code in codes):
        faults.append(f"{place}: a code is a line of text without | and quotes, and there must be one")
        return _NONE
    if len(codes) < len(pairs) and not (isinstance(told, dict) and "file" in told):
        faults.append(f"{place}: a code stands twice")
    return CodeList(codes, tuple(dict(pairs).values()))


def read_pairs(place: str, told: object, folder: Path, faults: list[str]) -> dict[str, list[str]]:
    """Of each code the areas it lies in: a table, or a file: ``{ file = "x.csv", code = "BLOCK", area = "ID" }``."""
    if not isinstance(told, dict):
        faults.append(f"{place}: must be a table of codes and areas, or a file")
        return {}
    found: dict[str, list[str]] = {}
    # In a manifest the areas of a code are a list, be it a code that is called "file".
    if isinstance(told.get("file"), str):
        check_keys(place, told, ("file", "code", "area"), faults)
        if not all(isinstance(value, str) for value in told.values()) or not {"code", "area"} <= told.keys():
            return {}
        for code, area in _rows(place, told, ("code", "area"), folder, faults):
            found.setdefault(code, []).extend([area] if area and area not in found.get(code, ()) else [])
        return found
    for code, areas in told.items():
        several = areas if isinstance(areas, list) else [areas]
        if not all(is_text(area) and "|" not in area for area in several):
            faults.append(f"{place}.{code}: must be the code of an area, or a list of codes")
        found[code] = [str(area) for area in several]
    return found


def _rows(place: str, told: dict[str, Any], keys: tuple[str, ...], folder: Path, faults: list[str]) -> list[list[str]]:
    """What a public file says in some columns, which a configuration names."""
    names = tuple(told[key] for key in keys)
    rows = read_rows(place, folder / told["file"], names, faults)
    return [[row.values[name] for name in names] for row in rows]
