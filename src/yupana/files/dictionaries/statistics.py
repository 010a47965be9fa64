"""Read what files of SPSS, Stata and SAS say of their variables: labels and missing values, and no record. Public."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from yupana.errors import ConfigError
from yupana.files.dictionaries.dictionary import Dictionary, DictionaryItem, Questionnaire, RecordType, ValueRange
from yupana.files.dictionaries.told import MOST_VALUES, clean, value_range, whole_text
from yupana.files.statistics_reader import NoLibraryError, UnreadableError, reading

_SAS: Final = bytes.fromhex("000000000000000000000000c2ea8160b31411cfbd92080009c7318c181f1011")
_STATA: Final = (*range(104, 116), *range(117, 120))
"""Versions of Stata's files that have no mark but the number; later ones say ``<stata_dta>``."""

_DATE: Final = re.compile(r"%t|DATE|TIME|DAY|MONTH|WKDAY|QYR|MOYR|YYMM|MMDD|DDMM|JDATE|DTIME|YMDHMS", re.IGNORECASE)

_FAR: Final = 20

_READERS: Final = {
    "SPSS": ("read_sav", {"user_missing": True}),
    "Stata": ("read_dta", {"user_missing": True}),
    "SAS": ("read_sas7bdat", {"user_missing": True}),
    "SAS transport": ("read_xport", {}),
}


def kind_of(head: bytes) -> str:
    """What wrote a file that begins so; empty if it is none of these."""
    if head[:4] in {b"$FL2", b"$FL3"}:
        return "SPSS"
    if head.startswith(b"<stata_dta>") or (len(head) > 3 and head[0] in _STATA and head[1] in {1, 2} and head[2] == 1):
        return "Stata"
    if head[:32] == _SAS:
        return "SAS"
    return "SAS transport" if head.startswith(b"HEADER RECORD*******LIB") else ""


def read_metadata(path: Path, kind: str) -> Dictionary:
    """What a file of a kind says of its variables.

    Raises
    ------
    ConfigError
        If pyreadstat is not there, or the file is damaged.
    """
    name, options = _READERS[kind]
    try:
        with reading(name, path) as read:
            _, found = read(metadataonly=True, output_format="dict", **options)
    except NoLibraryError:
        raise ConfigError(
            f"{path} is a file of {kind}, which needs pyreadstat; install Yupana's extra statistics (docs/README.md)"
        ) from None
    except UnreadableError as error:
        # Of bytes, for no record was read.
        raise ConfigError(f"{path}: damaged, or no file of {kind}: {clean(str(error))[:200]}") from None
    items = tuple(_item(found, place) for place in range(len(found.column_names)))
    record = RecordType(path.stem, "", "", items)
    level = Questionnaire("", "", (), (record,))
    return Dictionary(path.stem, clean(found.file_label or ""), 0, 0, (level,), path, kind, lists_all=False)


def _item(found: Any, place: int) -> DictionaryItem:  # noqa: ANN401 (pyreadstat has no types)
    name = found.column_names[place]
    label = clean(found.column_labels[place] or "")
    is_number = found.readstat_variable_types.get(name) != "string"
    labels: Mapping[Any, Any] = found.variable_value_labels.get(name) or {}
    form = found.original_variable_types.get(name) or ""
    if is_number and _DATE.search(form):
        return DictionaryItem(clean(name), label)
    ranges = [(_text(one["lo"]), _text(one["hi"])) for one in found.missing_ranges.get(name) or ()]
    values = []
    for value, said in list(labels.items())[:MOST_VALUES]:
        text = _text(value)
        missing = any(_between(low, text, high) for low, high in ranges)
        one = value_range(text, text, str(said), is_number=is_number, missing=missing) if text else None
        # Tagged missing values, such as .a of Stata, are no numbers, and fields that have one hold none.
        if one is not None and (not is_number or whole_text(text) is not None):
            values.append(one)
    if is_number and (found.variable_measure.get(name) == "scale" or _are_some(values)):
        # Labels of some values of a quantity, such as 98 for 98 and over, do not list the others.
        values = []
    if values:
        # Those that are missing are read as no value, as what is left out is.
        said = {one.label for one in values if one.missing} - {""}
        blank = ValueRange("", "", said.pop() if len(said) == 1 else "", missing=True)
        values = [*(one for one in values if not one.missing), blank]
    return DictionaryItem(clean(name), label, is_number=is_number, values=tuple(values))


def _are_some(values: Sequence[ValueRange]) -> bool:
    """Whether labels of numbers seem to be of ends alone: of one value, or of two or three that are far apart."""
    real = [int(one.first) for one in values if not one.missing]
    return len(real) < 2 or (len(real) < 4 and max(real) - min(real) > _FAR)


def _between(low: str, text: str, high: str) -> bool:
    try:
        return float(low) <= float(text) <= float(high)
    except ValueError:
        return low == text


def _text(value: object) -> str:
    """A value as a file of text would write it: whole numbers without a point."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return str(value).rstrip()
