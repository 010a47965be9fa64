"""Where records of fixed width hold what, as a document: what a manifest keeps of the dictionary of a description.

Labels and values are left out: a description says itself which values it counts. Public.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from yupana.files.declaration import ANY_TEXT, FLAG, TEXT, Expected, keyed, list_of, table_of, whole
from yupana.files.dictionaries.dictionary import Dictionary, DictionaryItem, Questionnaire, RecordType

_PLACE: Final = whole(0, 1_000_000)


_Declared = Expected[dict[str, Any]]

_ITEM: Final[_Declared] = keyed(
    {
        "start": _PLACE.said("the first place, from 1"),
        "length": _PLACE,
        "number": FLAG.said("whether blanks and zeros before a value say nothing", default=False),
        "decimals": _PLACE.said("how many digits stand behind a decimal point that is not written"),
        "source": ANY_TEXT.said("of an item that a record holds several times: its own name"),
        "occurrence": _PLACE.said("which of these times"),
    },
    "Where a line holds an item.",
    optional=("number", "decimals", "source", "occurrence"),
)
_ITEMS: Final = table_of(_ITEM).made(
    lambda _, told, __: tuple(
        DictionaryItem(name, is_number=of.pop("number", False), **of) for name, of in told.items()
    )
)
_RECORD: Final[_Declared] = keyed(
    {
        "code": ANY_TEXT.said("what such a line says at the place of record types"),
        "length": _PLACE.said("of its longest line"),
        "items": _ITEMS,
    },
    "Lines of one kind.",
    optional=("length", "items"),
)
_RECORDS: Final = table_of(_RECORD).made(
    lambda _, told, __: tuple(
        RecordType(name, name, of["code"], of.get("items", ()), length=of.get("length", 0)) for name, of in told.items()
    )
)
_LEVEL: Final[_Declared] = keyed(
    {"name": ANY_TEXT, "ids": _ITEMS, "records": _RECORDS}, "A level: lines of the same ids.", optional=("ids",)
)
_LAYOUT: Final[_Declared] = keyed(
    {
        "name": TEXT,
        "type_start": _PLACE.said("where a line tells its record type; 0 where all are of one"),
        "type_length": _PLACE,
        "encoding": ANY_TEXT,
        "levels": list_of(
            _LEVEL.made(lambda _, of, __: Questionnaire(of["name"], of["name"], of.get("ids", ()), of["records"])),
            "a list of levels",
            each=True,
        ),
    },
    "What a dictionary says of lines.",
    optional=("type_start", "type_length", "encoding"),
)
LAYOUT: Final = _LAYOUT.made(
    lambda _, told, __: Dictionary(
        **{"label": told["name"], "type_start": 0, "type_length": 0, **told},
        path=Path(),
    )
)
"""The document: the dictionary as far as it says where lines hold what."""


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
