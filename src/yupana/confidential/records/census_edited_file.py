"""The Census Edited File of 2020: persons and units in lines of fixed width, and the blocks they lie in, by state.

`open_cef` makes the same relations as the other readers, and so does everything else the same: ``persons``, ``units``
and ``geo``. A unit's line names its block (OIDTB), and the reference file of blocks (``grfc_tab20_*.txt``) says where
that lies; so a record of ``geo`` is the line of its unit.
"""

import configparser
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.confidential.records.declared import Opened, Rule, check_file, occurs_twice
from yupana.confidential.records.fixed_width import NONE, Bytes, Layout, distinct_fields, read_columns
from yupana.confidential.records.reader import drop_relations, number_of_row, open_records
from yupana.confidential.records.sources import PART_SHIFT, Source, check_readable, forms
from yupana.confidential.records.validation import Finding
from yupana.files.columns import GEO, PERSONS, UNITS, Column, RecordFile
from yupana.files.regular import read_regular, real

CONFIG: Final = "cef_config.ini"
BLOCK: Final = "OIDTABBLK"
"""The reference file's key, and what a unit's OIDTB must be found among."""
OIDTB: Final = (37, 59)
"""Where a unit's line names its block."""

_PERSON_FIELDS: Final = {
    "RTYPE": (0, 1),
    "MAFID": (1, 10),
    "QSEX": (22, 23),
    "QAGE": (23, 26),
    "QSPAN": (42, 46),
    "CENHISP": (47, 48),
    **{f"QRACE{number}": (44 + 4 * number, 48 + 4 * number) for number in range(1, 9)},
    "CENRACE": (81, 83),
    "RELSHIP": (85, 87),
}
_UNIT_FIELDS: Final = {
    "RTYPE": (0, 1),
    "MAFID": (1, 10),
    "FINAL_POP": (17, 22),
    "HHSPAN": (25, 26),
    "HHRACE": (27, 29),
    "TEN": (29, 30),
    "QGQTYP": (33, 36),
    "HHT": (59, 60),
    "HHT2": (60, 62),
    "CPLT": (62, 63),
}
_BLANK_IS_ZERO: Final = frozenset({"HHSPAN", "HHRACE", "TEN", "QGQTYP", "HHT", "HHT2", "CPLT"})


def persons_in_lines(schema: RecordFile) -> Layout:
    """Where the lines of persons hold the columns of a record file."""
    return Layout(schema, 91, {name: _PERSON_FIELDS[name] for name in schema.header})


def units_in_lines(schema: RecordFile) -> Layout:
    """Where the lines of units hold the columns of a record file, if they do."""
    fields = {name: _UNIT_FIELDS[name] for name in schema.header if name in _UNIT_FIELDS}
    return Layout(schema, 76, fields, _BLANK_IS_ZERO.intersection(fields))


PERSON_LAYOUT: Final = persons_in_lines(PERSONS)
UNIT_LAYOUT: Final = units_in_lines(UNITS)
_PLACED: Final = RecordFile("reference", "block", tuple(c for c in GEO.columns if c.name not in {"RTYPE", "MAFID"}))

_PATTERNS: Final = {"per": "CEF20_PER_%s.txt", "unit": "CEF20_UNIT_%s.txt", "grfc": "grfc_tab20_%s.txt"}


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
    others : tuple of RecordFile
        Records in other forms, which must not be there, too.

    Returns
    -------
    dict of str to Source, list of Finding
        The files, by kind; and what is wrong with which are there.
    """
    files, findings = _find(folder, others)
    sources = {
        name: Source(tuple(kind.values()), tuple(path.name for path in kind.values()), header=name == "grfc")
        for name, kind in files.items()
    }
    return sources, findings + [wrong for source in sources.values() for wrong in check_readable(source)]


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
        number = "" if only else f", {number_of_row(rows)} AS record"
        db.execute(f"CREATE VIEW {schema.name} AS SELECT *{number} FROM {schema.name}_rows")
    return findings


def _stored(columns: Iterable[Column]) -> str:
    """SQL for numbers out of lines as tables store them, NULL for none of the domain."""
    return ", ".join(f"nullif({column.name}, {NONE})::{column.storage} AS {column.name}" for column in columns)


def _blocks_of(db: duckdb.DuckDBPyConnection, lines: Bytes, placed: RecordFile) -> dict[str, NDArray[Any]]:
    """What the reference file says of the blocks of lines, each of which is looked up once."""
    texts, which = distinct_fields(lines, OIDTB)
    db.register("blocks_now", {BLOCK: np.array(texts, dtype=object), "place": np.arange(len(texts))})
    kinds = {column.name: "SMALLINT" if column.high < 1 << 15 else "INTEGER" for column in placed.columns}
    columns = ", ".join(f"coalesce({name}, {NONE})::{kind} AS {name}" for name, kind in kinds.items())
    found = db.execute(f"SELECT {columns} FROM blocks_now LEFT JOIN reference_rows USING ({BLOCK}) ORDER BY place")
    places = {name: values[which] for name, values in found.fetchnumpy().items()}
    db.unregister("blocks_now")
    return places


_KEY: Final = Column(BLOCK, range(1), key=True)


def open_reference(db: duckdb.DuckDBPyConnection, source: Source, schema: RecordFile) -> list[Finding]:
    """Make ``reference``, the blocks of the reference files, and ``reference_rows``: the key and columns of a schema.

    Their values are checked here: a line of this file says more than one of a unit.
    """
    keyed = RecordFile("reference", "block", (_KEY, *schema.columns))
    again = Rule("unique_block", keyed.name, occurs_twice(keyed.relation, BLOCK), f"{BLOCK} occurs twice")
    return open_records(db, source, keyed) or check_file(db, source, keyed, (again,))[0]


def block_keys(db: duckdb.DuckDBPyConnection, source: Source) -> NDArray[np.uint64] | None:
    """64 bits of the key of each block of reference files; None if they cannot be read (`open_reference` tells why)."""
    if open_records(db, source, RecordFile("reference", "block", (_KEY,))):
        return None
    return np.asarray(db.execute(f"SELECT hash({BLOCK}) AS key FROM reference").fetchnumpy()["key"], np.uint64)


def nothing(schema: RecordFile, more: str = "") -> str:
    """SQL for no records, of the right types."""
    columns = ", ".join(f"NULL::{column.storage} AS {column.name}" for column in schema.columns)
    return f"SELECT {columns}{more} WHERE false"
