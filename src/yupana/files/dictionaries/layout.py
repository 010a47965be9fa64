"""Where records of fixed width hold what, as a document: what a manifest keeps of the dictionary of a description.

Labels and values are left out: a description says itself which values it counts. Public.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from yupana.files.declaration import FLAG, TEXT, Expected, declared, key, list_of, scalar, table_of, whole
from yupana.files.dictionaries.dictionary import Dictionary, DictionaryItem, Questionnaire, RecordType

_PLACE: Final = whole(0, 1_000_000)
_TEXT: Final = scalar("a text", lambda told: str(told) if isinstance(told, str) else None, {"type": "string"})


@dataclass(frozen=True, kw_only=True)
class DeclaredItem:
    """Where a line holds an item."""

    start: int = key(_PLACE, "the first place, from 1")
    length: int = key(_PLACE)
    number: bool = key(FLAG, "whether blanks and zeros before a value say nothing", default=False)
    decimals: int = key(_PLACE, "how many digits stand behind a decimal point that is not written", default=0)
    source: str = key(_TEXT, "of an item that a record holds several times: its own name", default="")
    occurrence: int = key(_PLACE, "which of these times", default=0)


_ITEMS: Final = table_of(declared(DeclaredItem))


@dataclass(frozen=True, kw_only=True)
class DeclaredRecordType:
    """Lines of one kind."""

    code: str = key(_TEXT, "what such a line says at the place of record types")
    length: int = key(_PLACE, "of its longest line", default=0)
    items: Mapping[str, DeclaredItem] = key(_ITEMS, default={})


@dataclass(frozen=True, kw_only=True)
class DeclaredQuestionnaire:
    """A level: lines of the same ids."""

    name: str = key(_TEXT)
    ids: Mapping[str, DeclaredItem] = key(_ITEMS, default={})
    records: Mapping[str, DeclaredRecordType] = key(table_of(declared(DeclaredRecordType)))


@dataclass(frozen=True, kw_only=True)
class DeclaredLayout:
    """What a dictionary says of lines."""

    name: str = key(TEXT)
    type_start: int = key(_PLACE, "where a line tells its record type; 0 where all are of one", default=0)
    type_length: int = key(_PLACE, default=0)
    encoding: str = key(_TEXT, default="")
    levels: tuple[DeclaredQuestionnaire, ...] = key(
        list_of(declared(DeclaredQuestionnaire), "a list of levels", each=True)
    )


LAYOUT: Final[Expected[DeclaredLayout]] = declared(DeclaredLayout)
"""The document."""


def layout_document(dictionary: Dictionary, described: Callable[[str], bool]) -> dict[str, Any]:
    """The document of a dictionary, with the items of those record types that are described."""

    def items(of: tuple[DictionaryItem, ...]) -> dict[str, Any]:
        return {item.name: _item(item) for item in of}

    def record(of: RecordType) -> dict[str, Any]:
        told = {"items": items(of.items)} if described(of.name) else {}
        return {"code": of.code, "length": record_length(of), **told}

    return {
        "name": dictionary.name or "dictionary",
        "type_start": dictionary.type_start,
        "type_length": dictionary.type_length,
        "encoding": dictionary.encoding,
        "levels": [
            {"name": level.name, "ids": items(level.ids), "records": {of.name: record(of) for of in level.records}}
            for level in dictionary.levels
        ],
    }


def _item(item: DictionaryItem) -> dict[str, Any]:
    told = {"number": item.is_number, "decimals": item.decimals, "source": item.source, "occurrence": item.occurrence}
    return {"start": item.start, "length": item.length, **{name: value for name, value in told.items() if value}}


def record_length(record: RecordType) -> int:
    """How many characters the lines of a record type have at most; 0 where nobody says."""
    return record.length or max((item.start + item.length - 1 for item in record.items), default=0)


def dictionary_of(layout: DeclaredLayout) -> Dictionary:
    """The dictionary of a document, as far as it says where lines hold what."""

    def items(of: Mapping[str, DeclaredItem]) -> tuple[DictionaryItem, ...]:
        return tuple(
            DictionaryItem(
                name, start=item.start, length=item.length, is_number=item.number, decimals=item.decimals,
                source=item.source, occurrence=item.occurrence,
            )
            for name, item in of.items()
        )  # fmt: skip

    levels = tuple(
        Questionnaire(
            level.name,
            level.name,
            items(level.ids),
            tuple(
                replace(RecordType(name, name, of.code, items(of.items)), length=of.length)
                for name, of in level.records.items()
            ),
        )
        for level in layout.levels
    )
    return Dictionary(
        layout.name, layout.name, layout.type_start, layout.type_length, levels, Path(), encoding=layout.encoding
    )
