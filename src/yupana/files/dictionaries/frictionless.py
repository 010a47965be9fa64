"""Read data packages and table schemas of Frictionless, and the metadata of CSV on the Web. Public."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

from yupana.files.dictionaries.dictionary import Dictionary, DictionaryItem, Questionnaire, RecordType, ValueRange
from yupana.files.dictionaries.told import (
    MOST_ITEMS,
    MOST_VALUES,
    ToldTable,
    apart,
    clean,
    loaded,
    read_bytes,
    texts_of,
    value_range,
)

PACKAGE: Final = "a data package of Frictionless"
CSVW: Final = "metadata of CSV on the Web"
_NUMBERS: Final = {"integer", "number", "year", "decimal", "int", "long", "short", "byte", "double", "float"}
_WHOLE: Final = {
    *("integer", "year", "gYear", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger"),
    *("unsignedInt", "unsignedLong", "unsignedShort", "unsignedByte"),
}
_ALTERNATIVES: Final = re.compile(r"\^?\(?((?:[\w -]+\|)+[\w -]+)\)?\$?")
"""A pattern that lists texts, such as ``^(M|F)$``."""


def package_dictionary(path: Path, document: dict[str, Any], faults: list[str]) -> Dictionary:
    """What a data package says; faults are added, and what is read is of use only if there are none."""
    top = ToldTable(document, "", faults)
    if "resources" not in document:
        records = [_table(path.stem, top, top, ())]
        return _dictionary(path, top, "a table schema of Frictionless", [], records)
    records, names = [], list[str]()
    for resource in top.each("resources"):
        schema = _schema(path, resource)
        if schema is not None:
            missing = texts_of(resource.table.get("missingValues")) or ()
            records.append(_table(_stem(_first_path(resource), resource.text("name")), resource, schema, missing))
            names.append(resource.text("name"))
    if not records and not faults:
        top.fault("resources", "none has a schema with fields")
    return _dictionary(path, top, "a data package", names, records)


_Links = list[tuple[str, str, str]]
"""Of foreign keys of one column: the column, the table it names, and the column of that."""


def _dictionary(
    path: Path, top: ToldTable, kind: str, names: Sequence[str], records: Sequence[tuple[RecordType, _Links]]
) -> Dictionary:
    """Tables together, linked by the names that foreign keys call them by."""
    above = dict(zip(names, (record for record, _ in records), strict=False))
    found = tuple(_linked(record, links, above) for record, links in records)
    for twice in apart([record.name for record in found]):
        top.faults.append(f"two tables are files called {twice}")
    if sum(len(record.items) for record in found) > MOST_ITEMS:
        top.faults.append(f"there are more than {MOST_ITEMS:,} columns")
    if sum(len(item.values) for record in found for item in record.items) > MOST_VALUES:
        top.faults.append(f"there are more than {MOST_VALUES:,} values")
    level = Questionnaire("", "", (), found)
    title = top.text("title") or _natural(top.table.get("dc:title"))
    return Dictionary(top.text("name") or path.stem, title, 0, 0, (level,), path, kind)


def _first_path(resource: ToldTable) -> str:
    paths = texts_of(resource.table.get("path")) or texts_of(resource.table.get("url"))
    return paths[0] if paths else ""


def _stem(path: str, name: str = "") -> str:
    """What the file of a table is called without its ending."""
    bare = PurePosixPath(path.split("?", maxsplit=1)[0].split("#", maxsplit=1)[0].replace("\\", "/")).name
    return clean(bare.partition(".")[0]) or name or "records"


def _schema(path: Path, resource: ToldTable) -> ToldTable | None:
    """The schema of a resource: a table, or a file beside the package that holds one."""
    told = resource.table.get("schema")
    if isinstance(told, str):
        place = PurePosixPath(told)
        if place.is_absolute() or ".." in place.parts or ":" in told or "\\" in told:
            resource.fault("schema", "must be a file beside the package, or below")
            return None
        beside = path.parent / Path(*place.parts)
        text = read_bytes(beside).decode("utf-8-sig", "replace")
        return ToldTable(loaded(beside, text), resource.at("schema"), resource.faults)
    if told is None:
        return None
    return resource.inner("schema")


def _table(name: str, table: ToldTable, schema: ToldTable, missing: Sequence[str]) -> tuple[RecordType, _Links]:
    missing = texts_of(schema.table.get("missingValues")) or missing or ("",)
    items = tuple(_field(one, missing) for one in schema.each("fields"))
    if not items:
        schema.fault("fields", "must be a list of fields")
    _check_names(schema, items)
    label = table.text("title") or table.text("description")
    return _keyed(RecordType(name, label, "", items), schema, "fields", {})


def _keyed(record: RecordType, schema: ToldTable, columns: str, called: Mapping[str, str]) -> tuple[RecordType, _Links]:
    """A table with its key, and its links, which name columns as its schema does and not as the file calls them."""
    links: _Links = []
    for one in schema.each("foreignKeys"):
        to = one.inner("reference")
        mine, theirs = texts_of(one.table.get(columns)), texts_of(to.table.get(columns))
        if len(mine) == len(theirs) == 1:
            links.append((called.get(mine[0], mine[0]), to.text("resource"), theirs[0]))
    keys = [called.get(name, name) for name in texts_of(schema.table.get("primaryKey"))]
    return replace(record, key=keys[0] if len(keys) == 1 else ""), links


def _check_names(schema: ToldTable, items: Sequence[DictionaryItem]) -> None:
    for name in apart([item.name for item in items]):
        schema.faults.append(f"{schema.place or 'fields'}: {name} is the name of two columns")


def _linked(record: RecordType, links: _Links, tables: Mapping[str, RecordType]) -> RecordType:
    """A table with the one that its records belong to: the first that a foreign key names by its key."""
    for column, resource, theirs in links:
        above = tables.get(resource)
        if above is not None and above.key == theirs and above.name != record.name:
            return replace(record, parent=above.name, link=column)
    return record


def _field(told: ToldTable, missing: Sequence[str]) -> DictionaryItem:
    kind = told.text("type", "string")
    rules = told.inner("constraints")
    missing = texts_of(told.table.get("missingValues")) or missing
    listed = _categories(told) or [(text, "") for text in texts_of(rules.table.get("enum"))]
    values = _values(
        told, kind, listed, [texts_of(rules.table.get(end)) for end in ("minimum", "maximum")],
        booleans=(_first(told, "trueValues", "true"), _first(told, "falseValues", "false")),
    )  # fmt: skip
    if not listed:
        values += _by_pattern(rules.text("pattern")) if kind == "string" else []
    return _made(
        told, kind, values, missing, told.text("title") or told.text("description"), required=rules.flag("required")
    )


def _first(told: ToldTable, name: str, default: str) -> str:
    return next(iter(texts_of(told.table.get(name))), default)


def _categories(told: ToldTable) -> list[tuple[str, str]]:
    """Values and labels, or values alone."""
    found = []
    for one in told.table.get("categories") or [] if isinstance(told.table.get("categories"), list) else []:
        if isinstance(one, dict):
            found += [(text, str(one.get("label", ""))) for text in texts_of(one.get("value"))[:1]]
        else:
            found += [(text, "") for text in texts_of(one)]
    return found


def _values(
    told: ToldTable,
    kind: str,
    listed: Iterable[tuple[str, str]],
    ends: Sequence[Sequence[str]],
    *,
    booleans: tuple[str, str],
) -> list[ValueRange]:
    """Values that are listed, or a range of whole numbers, or true and false."""
    is_number = kind in _NUMBERS or kind in _WHOLE
    found = []
    for text, label in listed:
        one = value_range(text, text, label, is_number=is_number)
        if one is None:
            told.faults.append(f"{told.place}: lists a value that is no {kind}")
            return []
        found.append(one)
    if not found and kind == "boolean":
        found = [ValueRange(text, text) for text in booleans]
    low, high = ends
    if not found and kind in _WHOLE and low and high:
        one = value_range(low[0], high[0], "", is_number=True)
        if one is None:
            told.faults.append(f"{told.place}: minimum must be no larger than maximum")
        else:
            found = [one]
    return found


def _by_pattern(pattern: str) -> list[ValueRange]:
    """Texts that a pattern lists."""
    match = _ALTERNATIVES.fullmatch(pattern)
    return [ValueRange(text, text) for text in dict.fromkeys(match[1].split("|"))] if match else []


def _made(
    told: ToldTable, kind: str, values: list[ValueRange], missing: Sequence[str], label: str, *, required: bool
) -> DictionaryItem:
    """A column, with the texts that stand for no value where it may lack one."""
    listed = {one.first for one in values}
    if not required and values:
        values = [
            *(ValueRange(one.first, one.last, one.label, missing=one.first in missing) for one in values),
            *(ValueRange(text, text, "", missing=True) for text in dict.fromkeys((*missing, "")) if text not in listed),
        ]
    is_number = kind in _NUMBERS or kind in _WHOLE
    return DictionaryItem(
        told.text("name", None), label, is_number=is_number, values=tuple(values),
        is_fraction=is_number and kind not in _WHOLE, required=required,
    )  # fmt: skip


def csvw_dictionary(path: Path, document: dict[str, Any], faults: list[str]) -> Dictionary:
    """What metadata of CSV on the Web say; faults are added, and what is read is of use only if there are none."""
    top = ToldTable(document, "", faults)
    tables = list(top.each("tables")) if "tables" in document else [top]
    urls = [_first_path(table) for table in tables]
    null = texts_of(document.get("null"))
    records = [_csvw_table(table, url, null) for table, url in zip(tables, urls, strict=True)]
    if not any(record.items for record, _ in records) and not faults:
        top.fault("tables", "none has a tableSchema with columns")
    return _dictionary(path, top, "CSV on the Web", urls, records)


def _csvw_table(table: ToldTable, url: str, null: Sequence[str]) -> tuple[RecordType, _Links]:
    schema = table.inner("tableSchema")
    null = texts_of(schema.table.get("null")) or texts_of(table.table.get("null")) or null or ("",)
    called: dict[str, str] = {}
    items = []
    for column in schema.each("columns"):
        if column.flag("virtual"):
            continue
        item = _column(column, null)
        called[column.text("name")] = item.name
        items.append(item)
    _check_names(schema, items)
    record = RecordType(_stem(url), _natural(table.table.get("dc:title")), "", tuple(items))
    return _keyed(record, schema, "columnReference", called)


def _column(told: ToldTable, null: Sequence[str]) -> DictionaryItem:
    """A column; files have its title in their header."""
    title = _natural(told.table.get("titles"))
    named = ToldTable({**told.table, "name": title or told.text("name")}, told.place, told.faults)
    kind, rules = told.text("datatype", "string"), ToldTable({}, told.place, told.faults)
    if not isinstance(told.table.get("datatype"), str):
        rules = told.inner("datatype")
        kind = rules.text("base", "string")
    ends = [
        next((found for name in names if (found := texts_of(rules.table.get(name)))), [])
        for names in (("minimum", "minInclusive"), ("maximum", "maxInclusive"))
    ]
    form = rules.text("format")
    true, _, false = form.partition("|") if kind == "boolean" and "|" in form else ("true", "", "false")
    values = _values(named, kind, (), ends, booleans=(true, false))
    values += _by_pattern(form) if kind == "string" else []
    null = texts_of(told.table.get("null")) or null
    return _made(
        named, kind, values, null, _natural(told.table.get("dc:description")) or title, required=told.flag("required")
    )


def _natural(told: object) -> str:
    """The first text of a property that may have several, by language."""
    if isinstance(told, dict):
        told = next(iter(told.values()), "")
    return next((clean(text) for text in texts_of(told)), "")
