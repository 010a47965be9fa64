"""SQL for values of record files as numbers of their column's domain; what is none of it becomes NULL.

The Census Bureau's files write each value in one way. Columns of other offices (`Column.free`) are read in all ways in
which their tools write the same value: with spaces around it, with a decimal point or comma that was told, as a number
of floating point, as a truth value, as a date. Each value follows from one field of one record, the type of its column
and the description alone (docs/tables-privacy.md).
"""

import re
from collections.abc import Sequence
from typing import Final

from yupana.files.columns import Column
from yupana.files.database import named, quoted

_FEW_CODES: Final = 100
_FLOATS: Final = {"FLOAT": 24, "DOUBLE": 53}
"""Binary digits of a whole number that a type of floating point keeps."""

INTEGERS: Final = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
_WIDE: Final = {"HUGEINT", "UHUGEINT"}
_BLANKS: Final = quoted(" \t")
"""What may stand around a value and is no part of it."""

_TRUTH: Final = ("true", "false")


def is_text_type(kind: str) -> bool:
    """Whether values of a SQL type are texts, or all missing."""
    return kind in {"VARCHAR", '"NULL"'} or kind.startswith("ENUM")


def is_readable(column: Column, kind: str) -> str:
    """Empty if values of a SQL type can be read as such a column; or else the types that can."""
    words = [word for word in column.words if word not in {column.blank, column.others} or not word]
    if not column.free:
        return _is_fixed(column, kind, words)
    if is_text_type(kind):
        return ""
    numeric = kind in INTEGERS | _WIDE | _FLOATS.keys() or kind.startswith("DECIMAL")
    date = kind == "DATE" or kind.startswith("TIMESTAMP")
    if column.key:
        fits, needed = numeric or kind in _AS_TEXT, "text or a whole number is"
    elif column.words and not _are_numbers(words):
        fits, needed = kind == "DATE" and any(map(_ISO.fullmatch, words)), "text is"
        if truth := _truth(column):
            fits, needed = kind == "BOOLEAN", f"text, or {' and '.join(truth)}, is"
    elif column.of:
        fits, needed = date, "a date or text is"
    else:
        whole = not column.words and not column.width
        fits, needed = numeric or (whole and date), f"text{', a date' * whole} or a type of whole numbers is"
    return "" if fits else needed


_AS_TEXT: Final = {"BOOLEAN", "DATE", "UUID"}
_ISO: Final = re.compile(r"\d{4}-\d{2}-\d{2}")


def _is_fixed(column: Column, kind: str, words: Sequence[str]) -> str:
    if column.words and not _are_numbers(words):
        # Of false and true the database makes 0 and 1.
        truth = tuple(word.lower() for word in column.words) == ("false", "true")
        allowed = {"BOOLEAN"} if truth else set[str]()
        needed = "text or true and false are" if truth else "text is"
    else:
        allowed, needed = INTEGERS, "text or an integer type is"
    return "" if kind in {"VARCHAR", *allowed} else needed


def _are_numbers(words: Sequence[str]) -> bool:
    """Whether words are whole numbers as an integer type tells them: without leading zeros."""
    return all(word.isdecimal() and str(int(word)) == word for word in words)


def from_text(column: Column) -> str:
    """SQL for a text value as a number of the domain, or NULL. Codes need their leading zeros."""
    if column.free:
        return _free(column, "VARCHAR")
    name = column.text or named(column.name)
    if column.key:
        return f"nullif({name}, '')"
    return _from_words(column, name) if column.words else _number(column, name)


def from_stored(column: Column, kind: str) -> str:
    """SQL for a value as Parquet stores it, of the SQL type `kind`, as a number of the domain, or NULL."""
    if column.free:
        return _free(column, kind)
    name = named(column.name)
    if column.key:
        return f"nullif({name}, '')" if kind == "VARCHAR" else name
    if kind == "BOOLEAN":
        return f"CAST({name} AS {column.storage})"
    if column.words:
        return _from_words(column, name if kind == "VARCHAR" else f"CAST({name} AS VARCHAR)")
    if kind != "VARCHAR":
        value = in_domain(column, name)
    else:
        few = column.width is not None and len(column.domain) <= _FEW_CODES and not column.blank
        value = _from_list(column, name) if few else from_text(column)
    return f"CASE WHEN {name} IS NULL THEN 0::{column.storage} ELSE {value} END" if column.blank else value


def trusted(column: Column, kind: str) -> str:
    """SQL for a value of the domain as a number: what is known to be one is not looked at again."""
    if not (column.width and kind == "VARCHAR") or column.key or column.words or column.text:
        return from_stored(column, kind)
    number = f"TRY_CAST({named(column.name)} AS {column.storage})"
    if not column.blank:
        return number
    return from_stored(column, kind) if column.free else f"coalesce({number}, 0)"


def in_domain(column: Column, number: str) -> str:
    """SQL for a number if it lies in the domain, else NULL."""
    test = f"{number} BETWEEN {column.low} AND {column.high}"
    if isinstance(column.domain, frozenset):
        test = f"{number} IN ({', '.join(map(str, sorted(column.domain)))})"
    return f"CASE WHEN {test} THEN CAST({number} AS {column.storage}) END"


def _number(column: Column, text: str) -> str:
    """SQL for the number of a text of digits alone."""
    number = f"TRY_CAST({text} AS {'INTEGER' if column.high < 1 << 31 else 'BIGINT'})"
    if column.width:
        written = f"{_written_code(column, number)} = {text}"
    else:
        written = f"regexp_full_match({text}, '[0-9]{{1,9}}')"
    blank = f"WHEN {text} = {quoted(column.blank)} THEN 0::{column.storage} " if column.blank else ""
    return f"CASE {blank}WHEN {written} THEN {in_domain(column, number)} END"


def _written_code(column: Column, number: str) -> str:
    """SQL for the digits of a code, filled up with zeros where codes begin with some."""
    text = f"{number}::VARCHAR"
    return text if column.width and column.low >= 10 ** (column.width - 1) else f"lpad({text}, {column.width}, '0')"


def _from_words(column: Column, text: str) -> str:
    """SQL for a word by its place; nothing at all is the word for no value, which comes first."""
    value = _from_list(column, text)
    # Not a function around the text, which would then be read for each record.
    return (
        f"CASE WHEN {text} IS NULL OR {text} = '' THEN 0::{column.storage} ELSE {value} END" if column.blank else value
    )


def _from_list(column: Column, text: str) -> str:
    """SQL for a text value by its place in the list of those allowed.

    The database evaluates a function of one column once per distinct value where Parquet stores each value once, which
    makes this ten times as fast as `from_text` there. Words are found by a hash: there may be thousands.
    """
    values = sorted(column.domain)
    text = _compared(text, "".join(column.words))
    codes = ", ".join(quoted(column.written(value)) for value in values)
    if column.words:
        return f"CAST(enum_code(TRY_CAST({text} AS ENUM({codes}))) AS {column.storage})"
    return f"([{', '.join(map(str, values))}]::{column.storage}[])[list_position([{codes}], {text})]"


def _compared(text: str, with_: str) -> str:
    """SQL for a text in the normal form of what it is compared with; as it is where that is ASCII."""
    return text if with_.isascii() else f"nfc_normalize({text})"


def _free(column: Column, kind: str) -> str:
    """SQL for a value of a column of any office.

    What comes first is tried first, and the rest for those records alone that it makes nothing of: the value as it is
    mostly written, the same in other ways, no value, and any other.
    """
    name = f"CAST({named(column.name)} AS VARCHAR)" if kind == '"NULL"' else named(column.name)
    if column.key:
        return _key(column, name, kind)
    ways, nothing = _of_text(column, name) if is_text_type(kind) else _of_type(column, name, kind)
    none, other = f"{column.none}::{column.storage}", f"{column.high}::{column.storage}"
    if column.blank:
        ways.append(f"CASE WHEN {nothing} THEN {none} END")
    if column.others:
        ways.append(other)
    if len(ways) == 1:
        return ways[0]
    lost = none if column.blank else other if column.others else "NULL"
    # Within a CASE, so that the database does not find what the later ways share for all records.
    rest = f"CASE WHEN {name} IS NULL THEN {lost} ELSE coalesce({', '.join(ways[1:])}) END"
    return f"CAST(coalesce({ways[0]}, {rest}) AS {column.storage})"


def _of_text(column: Column, name: str) -> tuple[list[str], str]:
    """SQL for a text as a value, in the ways it may be written, and for whether it is none."""
    clean = _clean(column, name)
    words = ["", *([column.blank] if column.blank_is_last else [])]
    nothing = f"coalesce({_compared(clean, column.blank)}, '') IN ({', '.join(map(quoted, words))})"
    if column.words:
        return [_from_list(column, name), _from_list(column, clean)], nothing
    numbers = column.numbers
    iso = f"regexp_full_match({clean}, '[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}([T ].*)?')"
    date = f"CASE WHEN {iso} THEN {_in_date(column, f'TRY_CAST(left({clean}, 10) AS DATE)')} END"
    if column.of:
        return [date], nothing
    if column.width:
        return [_number(column, name), _number(column, clean)], nothing
    return [_number(numbers, name), _number(numbers, clean), date], nothing


def _clean(column: Column, name: str) -> str:
    """SQL for a text without blanks around it and, where a decimal point or comma was told, without zeros behind it."""
    text = f"trim({name}, {_BLANKS})"
    if not column.decimal:
        return text
    return f"regexp_replace({text}, '^(-?[0-9]+)[{column.decimal}]0*$', '\\1')"


def _of_type(column: Column, name: str, kind: str) -> tuple[list[str], str]:
    """The same for a value of a SQL type that is none of texts."""
    nothing = f"{name} IS NULL"
    if kind == "BOOLEAN":
        places = {truth: column.words.index(word) for truth, word in _truth(column).items()}
        cases = " ".join(f"WHEN {name} = {truth} THEN {place}::{column.storage}" for truth, place in places.items())
        return [f"CASE {cases} END"], nothing
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        if column.words:
            return [_from_list(column, f"CAST({name} AS VARCHAR)")], nothing
        # In UTC, wherever this runs.
        date = f"make_timestamp(epoch_us({name}))" if kind.endswith("TIME ZONE") else name
        return [_in_date(column, f"TRY_CAST({date} AS DATE)")], nothing
    number = _whole(name, kind)
    if kind in _FLOATS:
        # The database takes isnan for false where it knows the least and the largest value of a file.
        nothing += f" OR CAST({name} AS VARCHAR) = 'nan'"
    if column.blank_is_last and column.blank.isdecimal():
        nothing += f" OR {number} = {int(column.blank)}"
    value = _from_list(column, f"CAST({number} AS VARCHAR)") if column.words else in_domain(column.numbers, number)
    return [value], nothing


def _whole(name: str, kind: str) -> str:
    """SQL for a number that is whole, or NULL; of floating point, only where no digit can have been lost."""
    if kind in INTEGERS | _WIDE:
        return name
    if kind.startswith("DECIMAL"):
        return f"CASE WHEN {name} = floor({name}) THEN TRY_CAST({name} AS HUGEINT) END"
    exact = f"abs({name}) < {1 << _FLOATS[kind]} AND {name} = floor({name})"
    # NULL of what is not finite, whatever the database believes of the values of a file.
    return f"CASE WHEN {exact} THEN TRY_CAST({name} AS BIGINT) END"


_PARTS: Final = {
    "": "year({})",
    "year": "year({})",
    "month": "month({})",
    "year-month": "100 * year({0}) + month({0})",
    "date": "10000 * year({0}) + 100 * month({0}) + day({0})",
}


def _in_date(column: Column, date: str) -> str:
    """SQL for what a column tells of a date."""
    return in_domain(column.numbers, f"({_PARTS[column.of].format(date)})")


def _truth(column: Column) -> dict[str, str]:
    """By truth value the code that says so; empty if the codes are others."""
    found = {}
    for truth in _TRUTH:
        same = [word for word in column.words if word.lower() == truth]
        if truth in same or len(same) == 1:
            found[truth] = truth if truth in same else same[0]
    return found if len(found) == len(_TRUTH) else {}


def _key(column: Column, name: str, kind: str) -> str:
    """SQL for a key: the number or the text that it is, so that 7, 7.0 and "7" are the same."""
    if is_text_type(kind):
        clean = f"nullif({_clean(column, name)}, '')"
        # Blanks come before all signs; what has none around it, as most texts, is not looked at again.
        blank = " OR ".join(f"ends_with({name}, {quoted(end)})" for end in (" ", "\t"))
        return clean if column.decimal else f"CASE WHEN {name} > '!' AND NOT ({blank}) THEN {name} ELSE {clean} END"
    if kind in _AS_TEXT:
        return f"CAST({name} AS VARCHAR)"
    return _whole(name, kind)
