"""Read a CSV of codes: a row for each code of each variable, whose columns are found by their names. Public."""

import csv
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from yupana.errors import ConfigError
from yupana.files.dictionaries.dictionary import Dictionary, DictionaryItem, Questionnaire, RecordType, ValueRange
from yupana.files.dictionaries.told import MOST_ITEMS, MOST_VALUES, clean, refuse, unknown, value_range, whole_text

KIND: Final = "a CSV of codes"
_SEPARATORS: Final = ",;|\t"
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "variable": (
        *("variable", "variablename", "var", "varname", "column", "columnname", "field", "fieldname", "item"),
        *("itemname", "campo", "variavel", "variable_id", "question"),
    ),
    "code": ("code", "codes", "value", "values", "category", "codevalue", "valuecode", "codigo", "valor", "valeur"),
    "label": (
        *("label", "labels", "valuelabel", "codelabel", "categorylabel", "meaning", "description", "codedescription"),
        *("valuedescription", "text", "etiqueta", "libelle", "rotulo", "descricao", "descripcion", "name"),
    ),
    "file": ("file", "filename", "table", "tablename", "dataset", "record", "recordtype", "resource"),
    "title": ("variablelabel", "variabledescription", "columnlabel", "fieldlabel", "vardescription", "varlabel"),
}
"""What columns may be called, without blanks, accents and punctuation; the first that is there is taken."""


@dataclass(slots=True)
class _Coded:
    """The codes of a variable."""

    name: str
    label: str = ""
    codes: list[tuple[int, str, str]] = field(default_factory=list)


def code_list_dictionary(path: Path, text: str) -> Dictionary:
    """What a CSV of codes says.

    Raises
    ------
    ConfigError
        If it is none, or has faults: all are named by their lines.
    """
    lines = text.splitlines()
    separator = max(_SEPARATORS, key=(lines[0] if lines else "").count)
    rows = csv.reader(lines, delimiter=separator)
    faults: list[str] = []
    try:
        columns = _columns(next(rows, []))
        if not {"variable", "code"} <= columns.keys():
            raise unknown(path)
        variables = _variables(((rows.line_num, row) for row in rows), columns, faults)
    except csv.Error as error:
        raise ConfigError(f"{path}, line {rows.line_num}: not readable as CSV ({error})") from None
    records: dict[str, list[DictionaryItem]] = {}
    for (file, _), listed in variables.items():
        records.setdefault(file or "records", []).append(_item(listed, faults))
    if not records and not faults:
        faults.append("line 2: there are no codes below the header")
    if faults:
        raise refuse(path, KIND, faults)
    types = tuple(RecordType(file, "", "", tuple(items)) for file, items in records.items())
    return Dictionary(path.stem, "", 0, 0, (Questionnaire("", "", (), types),), path, KIND)


def _bare(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name).casefold()
    return "".join(one for one in plain if one.isalnum())


def _columns(header: Sequence[str]) -> dict[str, int]:
    """The places of the columns that are known."""
    names = [_bare(name) for name in header]
    found: dict[str, int] = {}
    for what, known in _NAMES.items():
        place = next((names.index(_bare(name)) for name in known if _bare(name) in names), None)
        if place is not None and place not in found.values():
            found[what] = place
    return found


def _variables(
    rows: Iterable[tuple[int, list[str]]], columns: Mapping[str, int], faults: list[str]
) -> dict[tuple[str, str], _Coded]:
    """By file and name in lower case."""
    found: dict[tuple[str, str], _Coded] = {}
    before, number = "", 0
    for line, row in rows:
        if not any(one.strip() for one in row):
            continue
        # What is left out at the end of a line is empty.
        said = {what: clean(row[place]) if place < len(row) else "" for what, place in columns.items()}
        # A variable that stands once above its codes is meant for all of them.
        before = said["variable"] or before
        if not before:
            faults.append(f"line {line}: names no variable")
            continue
        number += 1
        of = found.setdefault((said.get("file", ""), before.lower()), _Coded(before))
        if len(found) > MOST_ITEMS or number > MOST_VALUES:
            faults.append(f"line {line}: there are more than {MOST_ITEMS:,} variables or {MOST_VALUES:,} codes")
            break
        of.label = of.label or said.get("title", "")
        if said["code"]:
            of.codes.append((line, said["code"], said.get("label", "")))
    return found


def _item(listed: _Coded, faults: list[str]) -> DictionaryItem:
    """Codes, and ranges such as 0-17; numbers where all are written as such."""
    ends = [_ends(code) for _, code, _ in listed.codes]
    is_number = bool(ends) and all(end is not None for end in ends)
    values: list[ValueRange] = []
    seen: set[str] = set()
    for (line, code, label), end in zip(listed.codes, ends, strict=True):
        first, last = end if is_number and end else (code, code)
        one = value_range(first, last, label, is_number=is_number)
        if one is None:
            faults.append(f"line {line}: must be a code, or a range from the least to the largest")
        elif code in seen:
            faults.append(f"line {line}: the code stands twice for {listed.name}")
        else:
            values.append(one)
        seen.add(code)
    return DictionaryItem(listed.name, listed.label, is_number=is_number, values=tuple(values))


def _ends(code: str) -> tuple[str, str] | None:
    """The ends of a number or range as a table of codes writes it; None of a text, such as one with a leading zero."""
    for sign in ("-", ":", ".."):
        first, middle, last = code.partition(sign)
        if middle and _is_plain(first) and _is_plain(last):
            return first.strip(), last.strip()
    return (code, code) if _is_plain(code) else None


def _is_plain(text: str) -> bool:
    return whole_text(text) == text.strip() and not text.strip().startswith("-")
