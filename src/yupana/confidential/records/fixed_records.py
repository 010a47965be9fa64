"""Records of fixed width by a dictionary: lines of each type are a file, and those of the same ids have a parent.

A value is a function of its line alone. Zeros and blanks before a number say nothing, nor do blanks after a text; what
is blank is no value. A file of questionnaires has a record for all lines of the same ids, and its columns are functions
of its key, the ids at full width (docs/tables-privacy.md, lemma 8).
"""

import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import duckdb

from yupana.confidential.records.declared import Rule, find_rules
from yupana.confidential.records.lines import CSDB, RecordLines, lines_of_table, lines_of_text
from yupana.confidential.records.reader import RECORD, check_header
from yupana.confidential.records.sources import Source
from yupana.confidential.records.validation import BrokenRecords, Finding, add_broken, require_none
from yupana.files.arrow_stream import ArrowParts
from yupana.files.columns import Column, RecordFile
from yupana.files.database import named, quoted
from yupana.files.delimited import parquet_rows
from yupana.files.dictionaries.dictionary import Dictionary, DictionaryItem, RecordType, case_keys
from yupana.files.dictionaries.layout import record_length

_MOST_SPELLED: Final = 1_000


@dataclass(frozen=True, slots=True)
class _Type:
    """A record type with its level, counted from 0."""

    level: int
    record: RecordType


def write_fixed(
    db: duckdb.DuckDBPyConnection,
    data: Path,
    layout: Dictionary,
    encoding: str,
    files: Mapping[str, RecordFile],
    rows: Mapping[str, Path],
) -> None:
    """Write the records of a file as Parquet, those of each record type and level by themselves.

    Parameters
    ----------
    data : Path
        Lines, or CSPro's SQLite file.
    encoding : str
        Of lines; UTF-8 where it is empty.
    files : mapping of str to RecordFile
        By the name of the record type or level.
    rows : mapping of str to Path
        An empty folder for each, for Parquet by our names of the columns, with the numbers of records.

    Raises
    ------
    BrokenRulesError
        If the file is not as the dictionary says, or a questionnaire has no whole key that is wanted.
    """
    types = [_Type(number, record) for number, level in enumerate(layout.levels) for record in level.records]
    levels = {
        level.name: number
        for number, level in enumerate(layout.levels)
        if level.name in files and level.name not in {of.record.name for of in types}
    }
    require_none(_absent(layout, types, levels, files))
    keys = {name.lower() for name in case_keys(layout)}
    has_key = bool(levels) or any(name.lower() in keys for of in files.values() for name in of.written.values())
    broken: dict[Rule, BrokenRecords] = {}
    parts = {name: rows[name].with_name(f"{rows[name].name}.parts") for name in levels}
    for folder in parts.values():
        folder.mkdir()
    is_table = data.suffix.lower() == CSDB
    for number, (lines, there) in enumerate(_lines(data, layout, encoding, types, files, every=bool(levels))):
        _load(db, lines)
        if not is_table:
            broken = add_broken(broken, find_rules(db, "lines", _rules_of_lines(layout, types)))
        for one in there:
            of_type = _is_of(layout, one.record)
            values = _values(layout, one)
            if has_key and layout.levels[0].ids:
                names = ", ".join(item.name for level in layout.levels[: one.level + 1] for item in level.ids)
                text = f"an id of the questionnaire is blank or, of a number, none; there must be {names}"
                key, _ = values[case_keys(layout)[one.level].lower()]
                broken = add_broken(broken, _without_key(db, data.name, text, f"{of_type} AND {key} IS NULL"))
            if one.record.name in files:
                _write(db, files[one.record.name], values, of_type, rows[one.record.name] / f"{number:06d}.parquet")
            for name, level in levels.items():
                if level <= one.level:
                    place = parts[name] / f"{number:06d}-{one.record.name}.parquet"
                    _write(db, files[name], values, of_type, place, case_keys(layout)[level])
    source = Source((data,), (data.name,))
    require_none(finding for rule, records in broken.items() for finding in rule.told(records, source))
    for name, folder in parts.items():
        found = sorted(folder.iterdir())
        columns = ", ".join(named(column.name) for column in files[name].columns)
        query = f"SELECT {columns}, min({RECORD}) AS {RECORD} FROM {parquet_rows(found)} GROUP BY {columns}, whole_key"
        db.execute(f"COPY ({query}) TO {quoted(str(rows[name] / 'all.parquet'))} (FORMAT parquet)")
        shutil.rmtree(folder)


def _absent(
    layout: Dictionary, types: list[_Type], levels: Mapping[str, int], files: Mapping[str, RecordFile]
) -> list[Finding]:
    """Columns that the dictionary does not have."""
    of_type = {one.record.name: one for one in types}
    of_level = {name: _Type(level, RecordType(name, "", "", ())) for name, level in levels.items()}
    findings = []
    for name, schema in files.items():
        header = [item.upper() for item in _values(layout, (of_type | of_level)[name])]
        findings += check_header(f"{layout.path.name or layout.name} ({name})", header, schema)
    return findings


def _lines(
    data: Path, layout: Dictionary, encoding: str, types: list[_Type], files: Mapping[str, RecordFile], *, every: bool
) -> Iterator[tuple[RecordLines, list[_Type]]]:
    """Some lines after others, with the record types that are wanted of them."""
    wanted = [one for one in types if every or one.record.name in files]
    if data.suffix.lower() != CSDB:
        for lines in lines_of_text(data, encoding):
            yield lines, wanted
        return
    for one in wanted:
        for lines in lines_of_table(data, layout, one.level, one.record):
            yield lines, [one]


def _load(db: duckdb.DuckDBPyConnection, lines: RecordLines) -> None:
    db.register("part", ArrowParts([{"line": lines.texts, "record": lines.numbers}]))
    db.execute("CREATE OR REPLACE TEMP TABLE lines AS SELECT rtrim(line, E' \\r\\n') AS line, record FROM part")
    db.unregister("part")


def _code(layout: Dictionary) -> str:
    return f"rtrim(substr(line, {layout.type_start}, {layout.type_length}))"


def _is_of(layout: Dictionary, record: RecordType) -> str:
    """SQL for whether a line is of a record type."""
    is_some = "line <> ''"
    return f"({is_some} AND {_code(layout)} = {quoted(record.code.rstrip())})" if layout.type_length else is_some


def _without_key(db: duckdb.DuckDBPyConnection, file: str, text: str, broken: str) -> dict[Rule, BrokenRecords]:
    """Lines of a questionnaire without a whole key: of one rule, whatever their record type."""
    found = find_rules(db, "lines", [Rule("key", file, broken, text)])
    return {replace(rule, broken=""): records for rule, records in found.items()}


def _rules_of_lines(layout: Dictionary, types: list[_Type]) -> list[Rule]:
    """That lines are of a record type, and no longer than it allows."""
    rules = []
    if layout.type_length:
        codes = ", ".join(quoted(one.record.code.rstrip()) for one in types)
        place = f"character{'s' * (layout.type_length > 1)} {layout.type_start}"
        place += f" to {layout.type_start + layout.type_length - 1}" if layout.type_length > 1 else ""
        text = f"{place} must say the record type: {', '.join(one.record.code for one in types)}"
        rules.append(Rule("record_type", "lines", f"line <> '' AND {_code(layout)} NOT IN ({codes})", text))
    for one in types:
        if longest := max(record_length(one.record), *_ends(layout, one)):
            text = f"is longer than the dictionary says: lines of {one.record.name} have {longest} characters at most"
            too_long = f"{_is_of(layout, one.record)} AND length(line) > {longest}"
            rules.append(Rule("row_shape", "lines", too_long, text))
    return rules


def _ends(layout: Dictionary, one: _Type) -> list[int]:
    ids = [item for level in layout.levels[: one.level + 1] for item in level.ids]
    return [0, 0, *(item.start + item.length - 1 for item in (*ids, *one.record.items))]


def _values(layout: Dictionary, one: _Type) -> dict[str, tuple[str, bool]]:
    """By lower case of each name SQL for its value, and whether it is a number's."""
    found: dict[str, tuple[str, bool]] = {}
    key = ""
    for level, name in zip(layout.levels[: one.level + 1], case_keys(layout), strict=False):
        for item in level.ids:
            found[item.name.lower()] = (_value(item), item.is_number)
            key += f"{' || ' if key else ''}{_at_full_width(item)}"
        if key:
            found[name.lower()] = (f"({key})", False)
    return found | {item.name.lower(): (_value(item), item.is_number) for item in one.record.items}


def _value(item: DictionaryItem) -> str:
    """SQL for the normal form of a value: of a number without zeros that say nothing; NULL where it is blank."""
    text = f"substr(line, {item.start}, {item.length})"
    if not item.is_number:
        return f"nullif(rtrim({text}), '')"
    text = f"trim({text})"
    if item.decimals:
        least = item.decimals + 1
        digits = f"lpad({text}, greatest({least}, length({text}))::INTEGER, '0')"
        pointed = f"left({digits}, -{item.decimals}) || '.' || right({digits}, {item.decimals})"
        text = f"CASE WHEN regexp_full_match({text}, '[0-9]+') THEN {pointed} ELSE {text} END"
    whole = f"regexp_replace({text}, '^(-?)0+([0-9])', '\\1\\2')"
    short = f"CASE WHEN contains({whole}, '.') THEN rtrim(rtrim({whole}, '0'), '.') ELSE {whole} END"
    found = short if item.decimals or item.is_fraction else whole
    return f"CASE WHEN regexp_full_match({text}, '-?[0-9]*[.]?[0-9]+') THEN {found} ELSE nullif({text}, '') END"


def _at_full_width(item: DictionaryItem) -> str:
    """SQL for an id of a key, so that no two keys of other ids are the same; NULL where it is none."""
    text = f"substr(line, {item.start}, {item.length})"
    if not item.is_number:
        return f"rpad(nullif(rtrim({text}), ''), {item.length}, ' ')"
    trimmed = f"trim({text})"
    return f"CASE WHEN regexp_full_match({trimmed}, '[0-9]+') THEN lpad({trimmed}, {item.length}, '0') END"


def as_spelled(column: Column, value: str) -> str:
    """SQL for a number as the description spells it, which may say ``01`` of what is ``1``."""
    codes = [word for word in column.words if word != column.blank]
    widths = {len(word) for word in codes}
    if codes and len(widths) == 1 and all(word.isdecimal() for word in codes):
        (width,) = widths
        if any(word.startswith("0") for word in codes) and width > 1:
            short = f"regexp_full_match({value}, '[0-9]{{1,{width}}}')"
            value = f"CASE WHEN {short} THEN lpad({value}, {width}, '0') ELSE {value} END"
        codes = []
    plain: dict[str, list[str]] = defaultdict(list)
    for word in (*codes, *([column.blank] if column.blank else [])):
        if word.isdecimal():
            plain[word.lstrip("0") or "0"].append(word)
    spelled = {number: words[0] for number, words in plain.items() if len(words) == 1 and words[0] != number}
    taken = set(column.words)
    pairs = ", ".join(f"{quoted(a)}: {quoted(b)}" for a, b in spelled.items() if a not in taken)
    if not pairs or len(spelled) > _MOST_SPELLED:
        return value
    return f"coalesce(MAP {{{pairs}}}[{value}], {value})"


def _selected(schema: RecordFile, values: Mapping[str, tuple[str, bool]]) -> str:
    found = []
    for column in schema.columns:
        value, is_number = values[schema.written[column.name].lower()]
        found.append(f"{as_spelled(column, value) if is_number else value} AS {named(column.name)}")
    return ", ".join(found)


def _write(
    db: duckdb.DuckDBPyConnection,
    schema: RecordFile,
    values: Mapping[str, tuple[str, bool]],
    where: str,
    path: Path,
    key: str = "",
) -> None:
    """Write the records of some lines; with a key those of the questionnaires that the lines are of."""
    query = f"SELECT {_selected(schema, values)}, record AS {RECORD} FROM lines WHERE {where}"
    if key:
        whole = f"{values[key.lower()][0]} AS whole_key, min(record) AS {RECORD}"
        query = f"SELECT {_selected(schema, values)}, {whole} FROM lines WHERE {where} GROUP BY ALL"
    db.execute(f"COPY ({query}) TO {quoted(str(path))} (FORMAT parquet)")
