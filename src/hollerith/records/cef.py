"""The Census Edited File of 2020: persons and units in lines of fixed width, and the blocks they lie in, by state.

`open_cef` makes the same relations as the other readers, and so does everything else the same: ``persons``, ``units``
and ``geo``. A unit's line names its block (OIDTB), and the reference file of blocks (``grfc_tab20_*.txt``) says where
that lies; so a record of ``geo`` is the line of its unit.
"""

import configparser
import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import duckdb

from hollerith.records.database import STOPS
from hollerith.records.findings import MOST_LINES, Finding
from hollerith.records.reader import (
    PART_SHIFT,
    Source,
    forms,
    from_text,
    in_domain,
    place_finding,
    quoted,
    rejected,
    source_of,
)
from hollerith.records.schema import GEO, PERSONS, UNITS, Column, RecordFile

CONFIG: Final = "cef_config.ini"
BLOCK: Final = "OIDTABBLK"
"""The reference file's key, and what a unit's OIDTB must be found among."""
_OIDTB: Final = (37, 59)


@dataclass(frozen=True, slots=True)
class Layout:
    """A line of fixed width: where the columns of a record file stand in it, counted from 0, ends excluded."""

    schema: RecordFile
    width: int
    fields: dict[str, tuple[int, int]]
    blank_is_zero: frozenset[str] = frozenset()


PERSON_LAYOUT: Final = Layout(
    PERSONS,
    91,
    {
        "RTYPE": (0, 1),
        "MAFID": (1, 10),
        "QAGE": (23, 26),
        "CENHISP": (47, 48),
        "CENRACE": (81, 83),
        "RELSHIP": (85, 87),
    },
)
UNIT_LAYOUT: Final = Layout(
    UNITS,
    76,
    {
        "RTYPE": (0, 1),
        "MAFID": (1, 10),
        "FINAL_POP": (17, 22),
        "HHSPAN": (25, 26),
        "HHRACE": (27, 29),
        "TEN": (29, 30),
        "HHT": (59, 60),
        "HHT2": (60, 62),
        "CPLT": (62, 63),
    },
    frozenset({"HHSPAN", "HHRACE", "TEN", "HHT", "HHT2", "CPLT"}),
)
_PLACED: Final = RecordFile("reference", "block", tuple(c for c in GEO.columns if c.name not in {"RTYPE", "MAFID"}))

_PATTERNS: Final = {"per": "CEF20_PER_%s.txt", "unit": "CEF20_UNIT_%s.txt", "grfc": "grfc_tab20_%s.txt"}
_LONGEST: Final = 1 << 16

Opened = tuple[dict[str, Source], list[Finding]]


def is_cef(folder: Path) -> bool:
    """Whether a folder holds CEF files, or their configuration or reference files and no records in another form."""
    patterns = [pattern.replace("%s", "*") for pattern in _PATTERNS.values()]
    if any(next(folder.glob(pattern), None) for pattern in patterns[:2]):
        return True
    if any(forms(folder, schema) for schema in (PERSONS, UNITS, GEO)):
        return False
    return (folder / CONFIG).is_file() or next(folder.glob(patterns[2]), None) is not None


def open_cef(db: duckdb.DuckDBPyConnection, folder: Path) -> Opened:
    """Open the files of all states.

    Parameters
    ----------
    db : duckdb.DuckDBPyConnection
    folder : Path

    Returns
    -------
    dict of str to Source, list of Finding
        What the relations were made from, by name, of those that could be made; and why others could not.
    """
    files, findings = _find(folder)
    for path in (path for kind in files.values() for path in kind.values()):
        try:
            if not path.stat().st_size:
                findings.append(Finding("not_empty", path.name, "the file is empty"))
        except OSError as error:
            findings.append(Finding("readable", path.name, error.strerror or "cannot be read"))
    if findings:
        return {}, findings
    persons, units, reference = (
        Source(tuple(kind.values()), tuple(path.name for path in kind.values())) for kind in files.values()
    )
    sources = {}
    if not (wrong := _open_persons(db, persons)):
        sources["persons"] = persons
    findings += wrong
    wrong = _open_reference(db, replace(reference, header=True)) or _open_units(db, units)
    if not wrong:
        sources |= {"units": units, "geo": replace(units, beside=reference.paths)}
    return sources, findings + wrong


def _find(folder: Path) -> tuple[dict[str, dict[str, Path]], list[Finding]]:
    """The files by kind and state, and what is wrong with which are there."""
    files: dict[str, dict[str, Path]] = {kind: {} for kind in _PATTERNS}
    findings = []
    if any(forms(folder, schema) for schema in (PERSONS, UNITS, GEO)):
        text = "CEF files and files of persons, units or geo are both there; leave one"
        return files, [Finding("one_file", _PATTERNS["per"] % "*", text)]
    places, wrong = _places(folder)
    patterns = {kind: pattern for kind, _, pattern in places}
    for kind, place, pattern in places:
        for path, state in _named(place, pattern):
            if not re.fullmatch("[0-9]{2}", state):
                text = "the name holds no state code of two digits"
                findings.append(Finding("file_present", path.name, f"{text}; expected {pattern % '06'}"))
            elif files[kind].setdefault(state, path) != path:
                findings.append(Finding("one_file", path.name, "the state's file is there twice; leave one"))
    # The reference files may be those of the whole nation.
    states = sorted({*files["per"], *files["unit"]} or files["grfc"])
    findings += [
        Finding("file_present", patterns[kind] % state, f"no such file, though others of state {state} are there")
        for kind in patterns
        for state in states
        if state not in files[kind]
    ]
    if not states:
        findings += [
            Finding("file_present", pattern % "*", f"no such file in {folder}") for pattern in patterns.values()
        ]
    return {kind: dict(sorted(found.items())) for kind, found in files.items()}, findings + wrong


def _named(folder: Path, pattern: str) -> Iterator[tuple[Path, str]]:
    """Files of a pattern, with what stands in their names for the state."""
    before, after = pattern.split("%s")
    for path in sorted(folder.glob(f"{before}*{after}")):
        yield path, path.name.removeprefix(before).removesuffix(after)


def _places(folder: Path) -> tuple[list[tuple[str, Path, str]], list[Finding]]:
    """Kind, folder and pattern of the names of files, as ``cef_config.ini`` says, or all in the folder itself."""
    findings = []
    patterns = dict(_PATTERNS)
    folders = {f"{kind}_dir{country}": folder for kind in _PATTERNS for country in ("", "_pr")}
    if (folder / CONFIG).is_file():
        # Names are written with %%s, which is %s to those that interpolate.
        parser = configparser.RawConfigParser()
        try:
            parser.read_string((folder / CONFIG).read_text(encoding="utf-8"))
            keys = dict(parser["paths"])
        except (OSError, UnicodeDecodeError, configparser.Error, KeyError):
            return [], [Finding("readable", CONFIG, "no configuration of a section [paths] with keys and values")]
        for key, value in keys.items():
            kind, _, what = key.partition("_")
            if key in folders:
                folders[key] = folder / value
                inside = folder.resolve() in (folders[key].resolve(), *folders[key].resolve().parents)
                if not inside or not folders[key].is_dir():
                    findings.append(Finding("file_present", CONFIG, f"{key} must name a folder within {folder}"))
            elif kind in patterns and what == "file_format":
                patterns[kind] = value.replace("%%", "%")
                if not re.fullmatch(r"[\w.-]*%s[\w.-]*", patterns[kind]):
                    findings.append(
                        Finding("file_present", CONFIG, f"{key} must be a file name with %%s for the state")
                    )
            else:
                known = ", ".join([*folders, *(f"{kind}_file_format" for kind in patterns)])
                findings.append(Finding("readable", CONFIG, f"unknown key in [paths]; known are {known}"))
    places = {(kind, folders[key], patterns[kind]): None for key in folders for kind in [key.partition("_")[0]]}
    return ([] if findings else list(places)), findings


def _open_persons(db: duckdb.DuckDBPyConnection, source: Source) -> list[Finding]:
    columns = _columns(PERSON_LAYOUT)
    rows, findings = [], []
    for part, path in enumerate(source.paths):
        lines = f"SELECT {columns} FROM {_lines(path, PERSON_LAYOUT.width)}"
        verb = "INSERT INTO persons_rows" if part else "CREATE TABLE persons_rows AS"
        count, wrong = _load(db, f"{verb} {lines}", path, PERSON_LAYOUT.width)
        rows.append(count)
        findings += wrong
        if wrong and not part:
            # Other states' lines are still to be checked.
            db.execute(f"CREATE OR REPLACE TABLE persons_rows AS {_nothing(PERSON_LAYOUT)}")
    if not findings:
        db.execute(f"CREATE VIEW persons AS SELECT *, {_record(rows)} AS record FROM persons_rows")
    return findings


def _open_units(db: duckdb.DuckDBPyConnection, source: Source) -> list[Finding]:
    """Units and their geography, state by state, so that few of the long block codes are held at a time."""
    columns = _columns(UNIT_LAYOUT)
    db.execute(f"CREATE TABLE units_rows AS {_nothing(UNIT_LAYOUT)}")
    geography = ", ".join(column.name for column in _PLACED.columns)
    typed = ", ".join(f"NULL::{GEO[name].storage} AS {name}" for name in GEO.header)
    db.execute(f"CREATE TABLE geo AS SELECT {typed}, NULL::BIGINT AS record WHERE false")
    rows, findings = [], []
    for part, path in enumerate(source.paths):
        lines = f"SELECT {columns}, {_field(*_OIDTB)} AS {BLOCK} FROM {_lines(path, UNIT_LAYOUT.width)}"
        count, wrong = _load(db, f"CREATE TABLE part AS {lines}", path, UNIT_LAYOUT.width)
        rows.append(count)
        findings += wrong
        if wrong:
            continue
        db.execute(f"INSERT INTO units_rows SELECT * EXCLUDE ({BLOCK}) FROM part")
        record = f"{part << PART_SHIFT} + part.rowid + 1"
        db.execute(
            f"INSERT INTO geo SELECT RTYPE, MAFID, {geography}, {record} FROM part JOIN reference_rows USING ({BLOCK})"
        )
        db.execute("DROP TABLE part")
    db.execute("DROP VIEW reference")
    db.execute("DROP TABLE reference_rows")
    if not findings:
        db.execute(f"CREATE VIEW units AS SELECT *, {_record(rows)} AS record FROM units_rows")
    return findings


def _open_reference(db: duckdb.DuckDBPyConnection, source: Source) -> list[Finding]:
    """The blocks of the reference files, whose values are checked here: a file line says more than a unit's."""
    typed = ", ".join(f"{from_text(column)} AS {column.name}" for column in _PLACED.columns)
    storage = ", ".join(f"NULL::{column.storage} AS {column.name}" for column in _PLACED.columns)
    db.execute(f"CREATE TABLE reference_rows AS SELECT NULL::VARCHAR AS {BLOCK}, {storage} WHERE false")
    rows, findings = [], []
    for part, path in enumerate(source.paths):
        header, wrong = _reference_header(path)
        findings += wrong
        if wrong:
            continue
        columns = ", ".join(f"{quoted(name)}: 'VARCHAR'" for name in header)
        table = f"reference_{part}"
        read = f"""read_csv({source_of(path)}, auto_detect = false, hive_partitioning = false, header = false, skip = 1,
            delim = '|', quote = '"', escape = '"', columns = {{{columns}}}, strict_mode = true,
            store_rejects = true, rejects_table = '{table}_rejects', rejects_scan = '{table}_rejects_scan')"""
        try:
            (count,) = db.execute(f"INSERT INTO reference_rows SELECT {BLOCK}, {typed} FROM {read}").fetchone() or (0,)
        except STOPS:
            raise
        except duckdb.Error:
            findings.append(Finding("is_text", path.name, "not readable as text separated by | throughout"))
            continue
        rows.append(int(count))
        findings += rejected(db, table, path.name, len(header))
    if findings:
        return findings
    db.execute(f"CREATE VIEW reference AS SELECT *, {_record(rows)} AS record FROM reference_rows")
    nulls = ", ".join(f"count(*) - count({name})" for name in (BLOCK, *_PLACED.header))
    query = f"SELECT count(*) - count(DISTINCT {BLOCK}), {nulls} FROM reference"
    twice, missing, *wrongs = map(int, db.execute(query).fetchone() or ())
    for column, count in zip(_PLACED.columns, wrongs, strict=True):
        if count:
            finding = Finding("domain", "", f"{column.name} must be {column.rule}", count)
            findings += place_finding(db, source, finding, "reference", f"{column.name} IS NULL")
    if missing:
        finding = Finding("domain", "", f"{BLOCK} must not be empty", missing)
        findings += place_finding(db, source, finding, "reference", f"{BLOCK} IS NULL")
    elif twice:
        broken = f"{BLOCK} IN (SELECT {BLOCK} FROM reference GROUP BY 1 HAVING count(*) > 1)"
        (count,) = db.execute(f"SELECT count(*) FROM reference WHERE {broken}").fetchone() or (0,)
        finding = Finding("unique_block", "", f"{BLOCK} occurs twice", int(count))
        findings += place_finding(db, source, finding, "reference", broken)
    return findings


def _reference_header(path: Path) -> tuple[tuple[str, ...], list[Finding]]:
    try:
        with path.open("rb") as file:
            line = file.readline(_LONGEST).removeprefix(b"\xef\xbb\xbf").decode("ascii")
    except UnicodeDecodeError:
        return (), [Finding("is_text", path.name, "the first line is no header of column names")]
    header = tuple(name.strip() for name in next(csv.reader([line], delimiter="|"), []))
    needed = (BLOCK, *_PLACED.header)
    missing = [name for name in needed if name not in header]
    if missing:
        text = f"missing column {', '.join(missing)} in the header, whose names are separated by |"
        return (), [Finding("columns_present", path.name, text)]
    if len({name.upper() for name in header}) < len(header):
        return (), [Finding("columns_present", path.name, "a column name occurs twice in the header")]
    return header, []


def _load(db: duckdb.DuckDBPyConnection, statement: str, path: Path, width: int) -> tuple[int, list[Finding]]:
    """Load the lines of a file, or find those that are none of the layout."""
    try:
        (count,) = db.execute(statement).fetchone() or (0,)
        # Line ends of two kinds, or none but carriage returns: then lines were not what they seem.
        if path.stat().st_size in {end * int(count) + cut for end, cut in _sizes(width)}:
            return int(count), []
    except STOPS:
        raise
    except (duckdb.Error, OSError):
        pass
    return 0, _misshapen(path, width) or [
        Finding("is_text", path.name, "not readable as lines of text throughout: line ends of more than one kind")
    ]


def _sizes(width: int) -> Iterator[tuple[int, int]]:
    """Bytes of a line with its end, and what the last line may lack of that."""
    for end in (1, 2):
        yield from ((width + end, 0), (width + end, -end))


def _misshapen(path: Path, width: int) -> list[Finding]:
    """Lines that are not ASCII, too short or too long, by reading the file once more."""
    texts = {
        "is_text": "is not ASCII text",
        "short": f"is too short: a line has {width} characters",
        "long": f"is too long: a line has {width} characters",
    }
    lines: dict[str, list[int]] = {kind: [] for kind in texts}
    counts = dict.fromkeys(texts, 0)
    number = 0
    with path.open("rb") as file:
        while line := file.readline(_LONGEST):
            number += 1
            text = line.removesuffix(b"\n").removesuffix(b"\r")
            while len(line) == _LONGEST and not line.endswith(b"\n"):
                line = file.readline(_LONGEST)
            if not text.isascii():
                kind = "is_text"
            elif len(text) != width:
                kind = "short" if len(text) < width else "long"
            else:
                continue
            counts[kind] += 1
            lines[kind] += [number] * (len(lines[kind]) < MOST_LINES)
    return [
        Finding("is_text" if kind == "is_text" else "row_shape", path.name, text, counts[kind], tuple(lines[kind]))
        for kind, text in texts.items()
        if counts[kind]
    ]


def _lines(path: Path, width: int) -> str:
    """SQL for the lines of a file; a line of another length, or with characters of several bytes, is an error."""
    return f"""(SELECT CASE WHEN length(line) = {width} AND strlen(line) = {width} THEN line ELSE error('shape') END
            AS line FROM read_csv({source_of(path)}, auto_detect = false, hive_partitioning = false,
            header = false, delim = '\x01', quote = '', escape = '', columns = {{line: 'VARCHAR'}}))"""


def _field(start: int, end: int) -> str:
    return f"substring(line, {start + 1}, {end - start})"


def _columns(layout: Layout) -> str:
    """SQL for the columns of a record file out of lines."""
    return ", ".join(f"{_column(layout, column)} AS {column.name}" for column in layout.schema.columns)


def _column(layout: Layout, column: Column) -> str:
    if column.name not in layout.fields:
        # NPF is in no file; no table needs it and no rule speaks of it.
        return f"0::{column.storage}"
    start, end = layout.fields[column.name]
    field, width = _field(start, end), end - start
    if width == 1:
        # By far most fields: a list is searched faster than text is read as a number.
        values = [value for value in column.domain if value < 10]
        codes = "".join(map(str, values)) + " " * (column.name in layout.blank_is_zero)
        numbers = [*values, *[0] * (column.name in layout.blank_is_zero)]
        return f"([{', '.join(map(str, numbers))}]::{column.storage}[])[nullif(instr({quoted(codes)}, {field}), 0)]"
    if column.name in layout.blank_is_zero:
        field = f"replace({field}, {quoted(' ' * width)}, {quoted('0' * width)})"
    elif column.width is None:
        # Numbers may be filled up with blanks in place of zeros, but not all with blanks.
        field = f"lpad(nullif(ltrim({field}, ' '), ''), {width}, '0')"
    number = f"TRY_CAST({field} AS INTEGER)"
    written = f"lpad({number}::VARCHAR, {width}, '0') = {field}"
    return f"CASE WHEN {written} THEN {in_domain(column, number)} END"


def _nothing(layout: Layout) -> str:
    """SQL for no records, of the right types."""
    columns = ", ".join(f"NULL::{column.storage} AS {column.name}" for column in layout.schema.columns)
    return f"SELECT {columns} WHERE false"


def _record(rows: list[int]) -> str:
    """SQL for the part and number of a row in a table that holds so many rows of each part, one after the other."""
    expression, before = "", 0
    for part, count in enumerate(rows):
        number = (part << PART_SHIFT) - before + 1
        before += count
        expression += f" WHEN rowid < {before} THEN rowid + ({number})"
    return f"CASE{expression} END"
