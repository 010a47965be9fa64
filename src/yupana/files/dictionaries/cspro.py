"""Read the dictionaries of CSPro: JSON since version 8, text before. Public.

Text is made into what JSON would say first, so that both forms of a dictionary are read as one.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from yupana.files.dictionaries.dictionary import (
    Dictionary,
    DictionaryItem,
    Questionnaire,
    RecordType,
    ValueRange,
    ValueSet,
)
from yupana.files.dictionaries.told import MOST_ITEMS, MOST_VALUES, ToldTable, apart, clean, value_range
from yupana.files.document import Number

KIND: Final = "a dictionary of CSPro"
_LONGEST_LINE: Final = 99_999
_LONGEST_ITEM: Final = 9_999
_MOST_LEVELS: Final = 3
_BLANK: Final = {"NOTAPPL", "MISSING"}
"""Special values that a blank stands for; others are never in a file unless they have a value of their own."""

_PAIR: Final = re.compile(r"'([^']*)'|([^\s:']+)(?:\s*:\s*([^\s:']+))?")
_QUOTED: Final = re.compile(r"\s*'([^']*)'\s*(?::\s*'([^']*)')?")


@dataclass(slots=True)
class _Room:
    """How many items and values are still allowed."""

    items: int = MOST_ITEMS
    values: int = MOST_VALUES


def cspro_dictionary(path: Path, document: dict[str, Any], faults: list[str]) -> Dictionary:
    """What a dictionary says as a table; faults are added, and what is read is of use only if there are none.

    Parameters
    ----------
    document : dict
        As JSON, with numbers as the file writes them.
    """
    told, room = ToldTable(document, "", faults), _Room()
    record_type = told.inner("recordType")
    start, length = (record_type.whole(name, 0, _LONGEST_LINE, 0) for name in ("start", "length"))
    has_types = bool(start and length)
    levels: list[Questionnaire] = []
    told_levels = list(told.each("levels"))
    if not 1 <= len(told_levels) <= _MOST_LEVELS:
        told.fault("levels", f"must be a list of 1 to {_MOST_LEVELS} levels")
    # Ids of all levels stand before the items of each record.
    end_of_ids = start + length - 1 if has_types else 0
    ids_of: list[tuple[DictionaryItem, ...]] = []
    for level in told_levels:
        ids = _items(level.inner("ids"), end_of_ids + 1, room)
        end_of_ids = max([end_of_ids, *(item.start + item.length - 1 for item in ids)])
        ids_of.append(ids)
    for level, ids in zip(told_levels, ids_of, strict=True):
        if not ids:
            level.fault("ids", "names no items, so nothing tells questionnaires apart")
        records = tuple(_record(record, end_of_ids + 1, room) for record in level.each("records"))
        levels.append(Questionnaire(level.text("name", None), _label(level), ids, records))
    found = Dictionary(
        told.text("name", None), _label(told), start if has_types else 0, length if has_types else 0,
        tuple(levels), path, "CSPro",
    )  # fmt: skip
    _check(found, told)
    return found


def _check(found: Dictionary, told: ToldTable) -> None:
    """That names and codes of record types are apart."""
    records = [record for level in found.levels for record in level.records]
    for name in apart([*(level.name for level in found.levels), *(record.name for record in records)]):
        told.faults.append(f"levels: {name} is the name of two levels or records")
    for level in found.levels:
        for record in level.records:
            for name in apart([item.name for item in (*level.ids, *record.items)]):
                told.faults.append(f"levels: {name} is the name of two items of {record.name}")
    if not records:
        told.fault("levels", "has no records")
    if found.type_length:
        codes = [record.code for record in records]
        for code in dict.fromkeys(code for code in codes if codes.count(code) > 1):
            told.faults.append(f"levels: {code!r} is the record type of two records")
        told.faults.extend(
            f"levels: the record type of {record.name} must have at most {found.type_length} characters"
            for record in records
            if len(record.code) > found.type_length
        )
    elif len(records) > 1:
        told.fault("recordType", "must say where a line holds its record type, as there are several records")


def _label(told: ToldTable) -> str:
    """The label in the first language."""
    return next((label.text("text") for label in told.each("labels")), "")


def _record(told: ToldTable, first: int, room: _Room) -> RecordType:
    items = _items(told, first, room)
    most = told.inner("occurrences").whole("maximum", 1, 9999, 1)
    code = told.table.get("recordType", "")
    length = told.whole("length", 0, 10 * _LONGEST_LINE, 0)
    name = told.text("name", None)
    items = tuple(replace(item, values=_or_blank(item)) for item in items)
    return RecordType(name, _label(told), str(code).strip(), items, most=most, length=length)


def _or_blank(item: DictionaryItem) -> tuple[ValueRange, ...]:
    """The values of an item with a blank: any field may be left out, whether or not a set of values says so."""
    if not item.values or any(not of.first for some in item.sets for of in some.values):
        return item.values
    return (*item.values, ValueRange("", "", "not applicable", missing=True))


def _items(told: ToldTable, first: int, room: _Room) -> tuple[DictionaryItem, ...]:
    """Items in order, each as often as it occurs.

    An item without a start begins where the last one ends; a subitem lies within the last item that is none.
    """
    found: list[DictionaryItem] = []
    above, times, after = DictionaryItem(""), 1, first
    for item in told.each("items"):
        kind = item.text("contentType", "numeric")
        if kind not in {"numeric", "alpha"}:
            # Pictures, sound and the like stand in no file of text.
            continue
        is_part = item.flag("subitem")
        length = item.whole("length", 1, _LONGEST_ITEM)
        own_times = item.inner("occurrences").whole("maximum", 1, MOST_ITEMS, 1)
        start = item.whole("start", 1, _LONGEST_LINE, after)
        if is_part and "subitemOffset" in item.table:
            start = above.start + item.whole("subitemOffset", 0, _LONGEST_ITEM)
        made = replace(_item(item, room, is_number=kind == "numeric"), start=start, length=length)
        if is_part:
            if not above.start <= start <= start + length * own_times - 1 <= above.start + above.length - 1:
                item.fault("start", f"{made.name} does not lie within {above.name or 'an item'}, which it is a part of")
            some = _occurrences(made, times if times > 1 else own_times, above.length if times > 1 else length)
        else:
            above, times, after = made, own_times, start + length * own_times
            some = _occurrences(made, own_times, length)
        room.items -= len(some)
        if room.items < 0:
            item.faults.append(f"{item.place}: there are more than {MOST_ITEMS:,} items")
            return ()
        found += some
        if after > _LONGEST_LINE:
            item.fault("length", f"ends after {_LONGEST_LINE:,} characters")
            return ()
    return tuple(found)


def _occurrences(item: DictionaryItem, times: int, apart_by: int) -> list[DictionaryItem]:
    """An item that occurs several times in a record, each with a name of its own."""
    if times == 1:
        return [item]
    return [
        replace(
            item, name=f"{item.name}_{number + 1}", start=item.start + number * apart_by,
            source=item.name, occurrence=number + 1,
        )
        for number in range(min(times, MOST_ITEMS + 1))
    ]  # fmt: skip


def _item(told: ToldTable, room: _Room, *, is_number: bool) -> DictionaryItem:
    """What an item says, but for its place."""
    decimals = told.whole("decimals", 0, 15, 0)
    # What the dictionary says by itself is for items that are made later.
    point = told.flag("decimalMark") and decimals > 0
    sets = []
    for of in told.each("valueSets"):
        values = tuple(_values(of, room, is_number=is_number))
        sets.append(ValueSet(of.text("name"), _label(of), values))
    return DictionaryItem(
        told.text("name", None), _label(told), is_number=is_number, decimals=0 if point else decimals,
        values=sets[0].values if sets else (), sets=tuple(sets), is_fraction=point,
    )  # fmt: skip


def _values(told: ToldTable, room: _Room, *, is_number: bool) -> Iterator[ValueRange]:
    for value in told.each("values"):
        label, special = _label(value), value.text("special")
        for pair in value.each("pairs"):
            room.values -= 1
            if room.values < 0:
                told.faults.append(f"{told.place}: there are more than {MOST_VALUES:,} values")
                return
            ends = pair.table.get("range")
            ends = ends if isinstance(ends, list) and len(ends) == 2 else [pair.table.get("value")] * 2
            texts = [str(end) if isinstance(end, str) else "" for end in ends]
            if not any(text.strip() for text in texts):
                # A text that is blank is not applicable, too.
                if special in _BLANK or not (special or is_number):
                    yield ValueRange("", "", label, missing=True)
                continue
            texts = [text if is_number else text.rstrip() for text in texts]
            found = value_range(texts[0], texts[1], label, is_number=is_number, missing=bool(special))
            if found is None:
                expected = "a number, or a range of numbers from the least to the largest"
                pair.faults.append(f"{pair.place}: must be {expected if is_number else 'a text'}")
            else:
                yield found


# The text of before version 8.

_SECTION: Final = re.compile(r"\[(\w+)\]")


def document_of_text(text: str, lines: dict[str, int], faults: list[str]) -> dict[str, Any]:
    """What JSON would say of a dictionary in text; ``lines`` gets the line of each place."""
    reader = _TextReader(lines, faults)
    for number, line in enumerate(text.splitlines(), 1):
        if match := _SECTION.fullmatch(line.strip()):
            reader.open(match[1], number)
        elif "=" in line:
            name, _, value = line.partition("=")
            reader.say(name.strip(), value, number)
        elif line.strip() and not line.lstrip().startswith(";"):
            faults.append(f"line {number}: must be a section such as [Item], or a name and a value")
    return reader.document


class _TextReader:
    """A section after another of a dictionary in text."""

    def __init__(self, lines: dict[str, int], faults: list[str]) -> None:
        self.document: dict[str, Any] = {"levels": []}
        self._lines, self._faults = lines, faults
        self._section = ""
        self._table: dict[str, Any] = {}
        self._place = ""
        self._items: tuple[list[Any], str] | None = None

    def open(self, section: str, number: int) -> None:
        """Begin a section."""
        levels = self.document["levels"]
        # What stands at the wrong place is read into a table of its own.
        self._section, self._table, self._place = section, {"values": []}, ""
        if section == "Dictionary":
            self._table, self._place = self.document, ""
        elif section == "Level":
            self._add(levels, "levels", {"ids": {"items": []}, "records": []}, number)
            self._items = None
        elif section not in {"IdItems", "Record", "Item", "ValueSet"}:
            # Relations, languages and what later versions add.
            self._section = ""
        elif not levels:
            self._faults.append(f"line {number}: [{section}] stands before any [Level]")
        elif section == "IdItems":
            self._items = (levels[-1]["ids"]["items"], f"levels[{len(levels) - 1}].ids.items")
        elif section == "Record":
            at = f"levels[{len(levels) - 1}].records"
            self._add(levels[-1]["records"], at, {"items": []}, number)
            self._items = (self._table["items"], f"{self._place}.items")
        elif self._items is None or (section == "ValueSet" and not self._items[0]):
            above = "[IdItems] or [Record]" if section == "Item" else "[Item]"
            self._faults.append(f"line {number}: [{section}] stands before any {above}")
        elif section == "Item":
            self._add(*self._items, {}, number)
        else:
            items, at = self._items
            sets = items[-1].setdefault("valueSets", [])
            self._add(sets, f"{at}[{len(items) - 1}].valueSets", {"values": []}, number)

    def _add(self, some: list[Any], at: str, table: dict[str, Any], number: int) -> None:
        self._table, self._place = table, f"{at}[{len(some)}]"
        some.append(table)
        self._lines[self._place] = number

    def say(self, name: str, value: str, number: int) -> None:
        """Take a line of the section."""
        table, bare = self._table, value.strip()
        if self._section == "ValueSet" and name == "Value":
            self._value(value, number)
        elif self._section == "ValueSet" and name == "Name" and table.get("values") and "Special" in bare:
            table["values"][-1]["special"] = bare.partition(",")[0].strip()
        elif name == "Name":
            table["name"] = bare
        elif name == "Label":
            table["labels"] = [{"text": bare.partition("|")[0]}]
        elif name in _KEYS.get(self._section, {}):
            key = _KEYS[self._section][name]
            self._lines[f"{self._place}.{'.'.join(key)}".lstrip(".")] = number
            for one in key[:-1]:
                table = table.setdefault(one, {})
            table[key[-1]] = _SAID.get(name, Number)(bare)

    def _value(self, value: str, number: int) -> None:
        """A value, range or several, and what they are called after a semicolon."""
        of, label = _parted(value)
        pairs: list[dict[str, Any]] = []
        place = f"{self._place}.values[{len(self._table['values'])}]"
        self._lines[place] = number
        rest = of
        while rest.strip():
            if quoted := _QUOTED.match(rest):
                first, last, rest = quoted[1], quoted[2], rest[quoted.end() :]
            elif match := _PAIR.match(rest.lstrip()):
                first, last, rest = match[2], match[3], rest.lstrip()[match.end() :]
            else:
                self._faults.append(f"line {number}: Value must be numbers, ranges such as 1:5, or texts in quotes")
                return
            pairs.append({"range": [first, last]} if last is not None else {"value": first})
        self._table["values"].append({"labels": [{"text": label}], "pairs": pairs or [{"value": ""}]})


def _parted(value: str) -> tuple[str, str]:
    """What stands before and after the first semicolon that is in no quotes; the label in the first language."""
    quoted = False
    for place, one in enumerate(value):
        quoted ^= one == "'"
        if one == ";" and not quoted:
            return value[:place], clean(value[place + 1 :].partition("|")[0])
    return value, ""


_KEYS: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "Dictionary": {
        "RecordTypeStart": ("recordType", "start"),
        "RecordTypeLen": ("recordType", "length"),
    },
    "Record": {
        "RecordTypeValue": ("recordType",),
        "MaxRecords": ("occurrences", "maximum"),
        "RecordLen": ("length",),
    },
    "Item": {
        "Start": ("start",),
        "Len": ("length",),
        "DataType": ("contentType",),
        "ItemType": ("subitem",),
        "Occurrences": ("occurrences", "maximum"),
        "Decimal": ("decimals",),
        "DecimalChar": ("decimalMark",),
    },
}
"""What a line of a section is in JSON."""


_SAID: Final[Mapping[str, Callable[[str], object]]] = {
    "DecimalChar": lambda value: value.lower() == "yes",
    "ItemType": lambda value: value.lower() == "subitem",
    "DataType": str.lower,
    "RecordTypeValue": lambda value: value.strip("'"),
}
"""What is made of the value of a line; of others a number."""
