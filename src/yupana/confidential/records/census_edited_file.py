"""The Census Edited File of 2020: persons and units in lines of fixed width, and the blocks they lie in, by state.

`open_cef` makes the same relations as the other readers, and so does everything else the same: ``persons``, ``units``
and ``geo``. A unit's line names its block (OIDTB), and the reference file of blocks (``grfc_tab20_*.txt``) says where
that lies; so a record of ``geo`` is the line of its unit.
"""

import configparser
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.confidential.records.fixed_width import NONE, Bytes, Layout, distinct_fields, read_columns
from yupana.confidential.records.reader import ascii_header, rejected
from yupana.confidential.records.sources import PART_SHIFT, Source, forms, place_finding
from yupana.confidential.records.validation import Finding
from yupana.confidential.records.values import from_text
from yupana.files.columns import GEO, PERSONS, UNITS, Column, RecordFile
from yupana.files.database import STOPS
from yupana.files.delimited import csv_rows
from yupana.files.regular import read_regular, real

CONFIG: Final = "cef_config.ini"
BLOCK: Final = "OIDTABBLK"
"""The reference file's key, and what a unit's OIDTB must be found among."""
OIDTB: Final = (37, 59)
"""Where a unit's line names its block."""

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

Opened = tuple[dict[str, Source], list[Finding]]


def is_cef(folder: Path, others: tuple[RecordFile, ...] = (PERSONS, UNITS, GEO)) -> bool:
    """Whether a folder holds CEF files, or their configuration or reference files and no records in other forms."""
    patterns = [pattern.replace("%s", "*") for pattern in _PATTERNS.values()]
    if any(next(folder.glob(pattern), None) for pattern in patterns[:2]):
        return True
    if any(forms(folder, schema) for schema in others):
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
    sources, findings = find_cef(folder)
    if findings:
        return {}, findings
    persons, units, reference = sources.values()
    sources = {}
    if not (wrong := load_lines(db, persons, PERSON_LAYOUT)):
        sources["persons"] = persons
    findings += wrong
    if not (wrong := open_reference(db, reference, _PLACED) or load_lines(db, units, UNIT_LAYOUT, placed=_PLACED)):
        placed = ", ".join(_PLACED.header)
        db.execute(
            f"CREATE VIEW geo AS SELECT RTYPE, MAFID, {placed}, record FROM units WHERE {_PLACED.header[0]} IS NOT NULL"
        )
        sources |= {"units": units, "geo": _places_of(units, reference)}
    drop_relations(db, "reference")
    return sources, findings + wrong


def _places_of(units: Source, reference: Source) -> Source:
    """The geography: a record is the line of its unit."""
    return replace(units, beside=reference.paths)


def edited_sources(folder: Path) -> dict[str, Source]:
    """The files that stand for persons, units and geo, whatever is in them."""
    persons, units, reference = find_cef(folder)[0].values()
    return {"persons": persons, "units": units, "geo": _places_of(units, reference)}


def find_cef(folder: Path, others: tuple[RecordFile, ...] = (PERSONS, UNITS, GEO)) -> Opened:
    """Find the files of persons (``per``), units (``unit``) and blocks (``grfc``), each a part for each state.

    Parameters
    ----------
    folder : Path
    others : tuple of RecordFile
        Records in other forms, which must not be there, too.

    Returns
    -------
    dict of str to Source, list of Finding
        The files, by kind; and what is wrong with which are there.
    """
    files, findings = _find(folder, others)
    findings += _unfit(files)
    sources = {
        name: Source(tuple(kind.values()), tuple(path.name for path in kind.values()), header=name == "grfc")
        for name, kind in files.items()
    }
    return sources, findings


def _unfit(files: Mapping[str, Mapping[str, Path]]) -> list[Finding]:
    """What is there by name, and is no file that holds something."""
    findings = []
    for path in (path for kind in files.values() for path in kind.values()):
        try:
            found = path.stat()
            if not stat.S_ISREG(found.st_mode):
                findings.append(Finding("readable", path.name, "not a regular file"))
            elif not found.st_size:
                findings.append(Finding("not_empty", path.name, "the file is empty"))
        except OSError as error:
            findings.append(Finding("readable", path.name, error.strerror or "cannot be read"))
    return findings


def _find(folder: Path, others: tuple[RecordFile, ...]) -> tuple[dict[str, dict[str, Path]], list[Finding]]:
    """The files by kind and state, and what is wrong with which are there."""
    files: dict[str, dict[str, Path]] = {kind: {} for kind in _PATTERNS}
    findings = []
    if there := [schema.name for schema in others if forms(folder, schema)]:
        text = f"CEF files and files of {', '.join(there)} are both there; leave one"
        return files, [Finding("one_file", _PATTERNS["per"] % "*", text)]
    places, wrong = _places(folder)
    patterns = {kind: pattern for kind, _, pattern in places}
    for kind, place, pattern in places:
        before, after = pattern.split("%s")
        for path in sorted(place.glob(f"{before}*{after}")):
            state = path.name.removeprefix(before).removesuffix(after)
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


def _places(folder: Path) -> tuple[list[tuple[str, Path, str]], list[Finding]]:
    """Kind, folder and pattern of the names of files, as ``cef_config.ini`` says, or all in the folder itself."""
    findings = []
    patterns = dict(_PATTERNS)
    folders = {f"{kind}_dir{country}": folder for kind in _PATTERNS for country in ("", "_pr")}
    if (folder / CONFIG).is_file():
        # Names are written with %%s, which is %s to those that interpolate.
        parser = configparser.RawConfigParser()
        try:
            parser.read_string(read_regular(folder / CONFIG).decode())
            keys = dict(parser["paths"])
        except (OSError, UnicodeDecodeError, configparser.Error, KeyError):
            return [], [Finding("readable", CONFIG, "no configuration of a section [paths] with keys and values")]
        for key, value in keys.items():
            kind, _, what = key.partition("_")
            if key in folders:
                folders[key] = folder / value
                inside = real(folder) in (real(folders[key]), *real(folders[key]).parents)
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


def load_lines(
    db: duckdb.DuckDBPyConnection,
    source: Source,
    layout: Layout,
    *,
    placed: RecordFile | None = None,
    only: tuple[str, int] | None = None,
) -> list[Finding]:
    """Make the relation of a layout's record file from the lines of all parts; their values are not checked.

    Parameters
    ----------
    db : duckdb.DuckDBPyConnection
    source : Source
    layout : Layout
    placed : RecordFile, optional
        Columns of ``reference_rows`` that say where the block of a line lies: NULL where it is not there.
    only : tuple of str and int, optional
        A column, and its value in the lines that are wanted. Those where it cannot be read are, too.
    """
    schema, record = layout.schema, ", NULL::BIGINT AS record" if only else ""
    schema = replace(schema, columns=(*schema.columns, *(placed.columns if placed else ())))
    db.execute(f"CREATE TABLE {schema.name}_rows AS {nothing(schema, record)}")
    rows, findings = [], list[Finding]()
    for part, path in enumerate(source.paths):
        count = 0
        for lines, read, line in read_columns(path, layout, findings):
            count = int(line[-1])
            columns: dict[str, NDArray[Any]] = {**read, **(_blocks_of(db, lines, placed) if placed else {})}
            if only:
                wanted = np.isin(columns[only[0]], (only[1], NONE))
                columns = {name: values[wanted] for name, values in columns.items()}
                columns["record"] = line[wanted] + (part << PART_SHIFT)
            db.register("columns_now", columns)
            values = ", ".join([_stored(schema.columns), *(["record"] if only else [])])
            db.execute(f"INSERT INTO {schema.name}_rows SELECT {values} FROM columns_now")
            db.unregister("columns_now")
        rows.append(count)
    if not findings:
        number = "" if only else f", {_record(rows)} AS record"
        db.execute(f"CREATE VIEW {schema.name} AS SELECT *{number} FROM {schema.name}_rows")
    return findings


def drop_relations(db: duckdb.DuckDBPyConnection, *names: str) -> None:
    """Drop relations with the tables that hold their rows."""
    for name in names:
        db.execute(f"DROP VIEW IF EXISTS {name}")
        db.execute(f"DROP TABLE IF EXISTS {name}_rows")


def _stored(columns: Iterable[Column]) -> str:
    """SQL for numbers out of lines as tables store them, NULL for none of the domain."""
    return ", ".join(f"nullif({column.name}, {NONE})::{column.storage} AS {column.name}" for column in columns)


def _blocks_of(db: duckdb.DuckDBPyConnection, lines: Bytes, placed: RecordFile) -> dict[str, NDArray[np.int32]]:
    """What the reference file says of the blocks of lines, each of which is looked up once."""
    texts, which = distinct_fields(lines, OIDTB)
    db.register("blocks_now", {BLOCK: np.array(texts, dtype=object), "place": np.arange(len(texts))})
    columns = ", ".join(f"coalesce({name}, {NONE})::INTEGER AS {name}" for name in placed.header)
    found = db.execute(f"SELECT {columns} FROM blocks_now LEFT JOIN reference_rows USING ({BLOCK}) ORDER BY place")
    places = {name: values[which] for name, values in found.fetchnumpy().items()}
    db.unregister("blocks_now")
    return places


def open_reference(db: duckdb.DuckDBPyConnection, source: Source, schema: RecordFile) -> list[Finding]:
    """Make ``reference_rows``, the blocks of the reference files: the columns of a schema and their key.

    Their values are checked here: a line of this file says more than one of a unit.

    If nothing is found, the view ``reference`` has the number of each record, too.
    """
    typed = ", ".join(f"{from_text(column)} AS {column.name}" for column in schema.columns)
    db.execute(f"CREATE TABLE reference_rows AS {nothing(schema, f', NULL::VARCHAR AS {BLOCK}')}")
    rows, findings = [], []
    for part, path in enumerate(source.paths):
        header, wrong = _reference_header(path, schema)
        findings += wrong
        if wrong:
            continue
        table = f"reference_{part}"
        read = csv_rows(path, header, quote='"', rejects=f"{table}_rejects")
        try:
            (count,) = db.execute(f"INSERT INTO reference_rows SELECT {typed}, {BLOCK} FROM {read}").fetchone() or (0,)
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
    nulls = ", ".join(f"count(*) - count({name})" for name in (BLOCK, *schema.header))
    query = f"SELECT count(*) - count(DISTINCT {BLOCK}), {nulls} FROM reference"
    twice, missing, *wrongs = map(int, db.execute(query).fetchone() or ())
    for column, count in zip(schema.columns, wrongs, strict=True):
        if count:
            finding = Finding("domain", "", f"{column.name} must be {column.rule}", count)
            findings += place_finding(db, source, finding, "reference", f"{column.name} IS NULL")
    if missing:
        finding = Finding("domain", "", f"{BLOCK} must not be empty", missing)
        findings += place_finding(db, source, finding, "reference", f"{BLOCK} IS NULL")
    elif twice:
        broken = f"{BLOCK} IN (SELECT {BLOCK} FROM reference GROUP BY 1 HAVING count(*) > 1)"
        findings += place_finding(db, source, Finding("unique_block", "", f"{BLOCK} occurs twice"), "reference", broken)
    return findings


class UnreadableBlocksError(Exception):
    """A reference file whose blocks cannot be told."""


def block_keys(db: duckdb.DuckDBPyConnection, path: Path) -> NDArray[np.uint64]:
    """64 bits of the key of each block of a reference file.

    Raises
    ------
    UnreadableBlocksError
        If it cannot be read; `open_reference` tells why.
    """
    header, wrong = _reference_header(path, _PLACED)
    try:
        if not wrong:
            rows = csv_rows(path, header, quote='"')
            return np.asarray(db.execute(f"SELECT hash({BLOCK}) AS key FROM {rows}").fetchnumpy()["key"], np.uint64)
    except STOPS:
        raise
    except duckdb.Error:
        pass
    raise UnreadableBlocksError


def _reference_header(path: Path, schema: RecordFile) -> tuple[tuple[str, ...], list[Finding]]:
    if (found := ascii_header(path, separators="|")) is None:
        return (), [Finding("is_text", path.name, "the first line is no header of column names")]
    header = found.names
    needed = (BLOCK, *schema.header)
    missing = [name for name in needed if name not in header]
    if missing:
        text = f"missing column {', '.join(missing)} in the header, whose names are separated by |"
        return (), [Finding("columns_present", path.name, text)]
    if len({name.upper() for name in header}) < len(header):
        return (), [Finding("columns_present", path.name, "a column name occurs twice in the header")]
    return header, []


def nothing(schema: RecordFile, more: str = "") -> str:
    """SQL for no records, of the right types."""
    columns = ", ".join(f"NULL::{column.storage} AS {column.name}" for column in schema.columns)
    return f"SELECT {columns}{more} WHERE false"


def _record(rows: list[int]) -> str:
    """SQL for the part and number of a row in a table that holds so many rows of each part, one after the other."""
    expression, before = "", 0
    for part, count in enumerate(rows):
        number = (part << PART_SHIFT) - before + 1
        before += count
        expression += f" WHEN rowid < {before} THEN rowid + ({number})"
    return f"CASE{expression} END"
