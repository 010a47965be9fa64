"""The tables of a release as they are exported: columns with titles and labels, margins beside counts, rows as SQL.

Everything comes from the release: its manifest, its codebook and its tables.
"""

import itertools
import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import PurePosixPath
from types import ModuleType
from typing import Any, Final, Literal
from unicodedata import category

import duckdb

from yupana.errors import ConfigError, OutputError, nearest, needing
from yupana.files.database import named, quoted
from yupana.files.names import file_of
from yupana.products import PRODUCTS
from yupana.products.described.product import described_in
from yupana.products.described.uncounted import shown
from yupana.products.phsafe.product import PHSAFE
from yupana.products.phsafe.shells import SHELLS
from yupana.release.codebook import REASON
from yupana.release.recipe import ESTIMATES, SUPPRESSED
from yupana.release.release import ReleaseFolder
from yupana.release.status import NOT_FOR_RELEASE

NOISE: Final = "NOISE_DISTRIBUTION"
_TOLD: Final = ("MOE", "LOWER", "UPPER")
_BESIDE: Final = (*_TOLD, "NOISY", "VARIANCE", NOISE, REASON)
"""What is told of a count, in the order in which it stands beside it."""

VALUES: Final = ("COUNT", "count", "ESTIMATE")
_INTERVALS: Final = "_intervals"
_CODES: Final = {"DATA_CELL", "DEPTH"}
"""Columns of whole numbers that are no counts."""

_NAMES: Final = {"AREA", "ITERATION", "LABEL", "DEPTH"}
"""Columns of estimates that only name what another column codes."""

Cell = str | int | float | None
"""A value: a code or text, a number, `SUPPRESSED`, or None of a number that is not there."""

Row = Sequence[Cell]


@dataclass(frozen=True, slots=True)
class ExportColumn:
    """A column of an exported table."""

    name: str  # as the release has it
    title: str
    description: str
    kind: Literal["code", "text", "whole", "real"]  # a code tells rows apart; a text is told of a row
    labels: Mapping[str, str]  # what its codes are called; empty where they are not listed

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers."""
        return self.kind in {"whole", "real"}

    def cell(self, value: object) -> Cell:
        """A value of a file, as a text or as a number."""
        text = "" if value is None else str(value)
        if not self.is_number:
            return text
        if text in {"", SUPPRESSED} or text.lower() == "nan":
            return SUPPRESSED if text == SUPPRESSED else None
        number = float(text)
        if self.kind == "real" or not number.is_integer():
            return number
        return int(text) if text.lstrip("-").isdigit() else int(number)

    def read(self, value: object) -> Cell:
        """A value of a file that others may have changed."""
        try:
            return self.cell(value)
        except ValueError:
            return "no number"


@dataclass(frozen=True, slots=True)
class ExportTable:
    """A table to export."""

    name: str  # with the name of the part before it, such as `persons/tables/P1`
    title: str
    universe: str
    columns: tuple[ExportColumn, ...]  # in the order of the export: codes, then each count with what is told of it
    query: str  # SQL of its rows, all columns as text, in the order of the release
    rows: int
    release: ReleaseFolder  # that it lies in: the release, or a part of it

    @property
    def numbers(self) -> tuple[ExportColumn, ...]:
        """Its columns of numbers."""
        return tuple(column for column in self.columns if column.is_number)

    @property
    def confidence(self) -> str:
        """The confidence of its margins of error and intervals; empty where there is none."""
        manifest = self.release.manifest
        told = manifest.get("parameters", {}).get("intervals", {}).get("confidence") or manifest.get("confidence")
        return str(told or self.release.confidence or "")

    def headers(self) -> list[str]:
        """What the columns are called, codes and labels apart; no two alike.

        A title that stands for several columns has the name of the column behind it.
        """
        met = Counter(column.title.casefold() for column in self.columns)
        found: list[str] = []
        for column in self.columns:
            title = column.title if met[column.title.casefold()] == 1 else f"{column.title} ({column.name})"
            found += [f"{title} code", title] if column.labels else [title]
        return distinct(found, LONGEST_HEADER)

    def texts(self, database: duckdb.DuckDBPyConnection, most: int = 10_000) -> Iterator[tuple[str, ...]]:
        """Go through its rows, as texts."""
        found = database.cursor().execute(self.query)
        while part := found.fetchmany(most):
            yield from part

    def cells(self, database: duckdb.DuckDBPyConnection) -> Iterator[tuple[Cell, ...]]:
        """Go through its rows as every format must give them back: beside each listed code its label."""
        for texts in self.texts(database):
            yield tuple(self.shown(texts))

    def shown(self, texts: Sequence[object]) -> Iterator[Cell]:
        """A row with labels."""
        for column, text in zip(self.columns, texts, strict=True):
            cell = column.cell(text)
            yield cell
            if column.labels:
                yield column.labels.get(str(cell), "")


LONGEST_HEADER: Final = 255
"""Characters, in a workbook."""


def distinct(names: Iterable[str], most: int, taken: Collection[str] = ()) -> list[str]:
    """Names cut to a length, of which no two are alike in any case: a later one ends in ``_2``, ``_3``, ..."""
    met = {name.casefold() for name in taken}
    found = []
    for name in names:
        one, number = name[:most], 1
        while one.casefold() in met:
            number += 1
            ending = f"_{number}"
            one = name[: most - len(ending)] + ending
        met.add(one.casefold())
        found.append(one)
    return found


def tables_of(
    release: ReleaseFolder,
    database: duckdb.DuckDBPyConnection,
    chosen: Collection[str] = (),
    *,
    counts: bool,
    labelled: bool = True,
) -> list[ExportTable]:
    """The tables of a release, or of all its parts.

    Parameters
    ----------
    release : ReleaseFolder
        Of which nothing is wrong.
    database : duckdb.DuckDBPyConnection
        That the queries are for.
    chosen : collection of str
        Names of tables; all if empty.
    counts : bool
        Leave out tables that hold no numbers, if none is chosen.
    labelled : bool
        Refuse a release without a codebook. Otherwise codes stand for themselves.

    Raises
    ------
    ConfigError
        If there is no table of a chosen name, or nothing would be exported.
    OutputError
        If it has no codebook.
    """
    parts = {f"{name}/": part for name, part in release.parts.items()} or {"": release}
    known = {f"{prefix}{name}": (part, name) for prefix, part in parts.items() for name in part.files}
    for name in chosen:
        if name not in known:
            raise ConfigError(f"tables: there is no table {name!r}{nearest(name, known)}; there are {', '.join(known)}")
    found = []
    for name, (part, within) in known.items():
        if chosen and name not in chosen:
            continue
        base = name.removesuffix(_INTERVALS)
        if base != name and base in known and (not chosen or base in chosen) and _joined(part, within, database):
            continue
        table = _table(name, part, within, database, labelled=labelled)
        if chosen or table.numbers or not counts:
            found.append(table)
    if not found:
        raise ConfigError(f"{release.folder} holds no table with numbers; name tables, or export it as labelled")
    return found


def _table(
    name: str, part: ReleaseFolder, within: str, database: duckdb.DuckDBPyConnection, *, labelled: bool
) -> ExportTable:
    file = part.files[within]
    resource = _resource(part, within, labelled=labelled)
    estimates = part.product == ESTIMATES
    columns = [_column(field, estimates=estimates) for field in resource["schema"]["fields"]]
    query = part.rows(within, as_text=True)
    intervals = f"{within}{_INTERVALS}"
    if intervals in part.files and _joined(part, intervals, database):
        query = f"(SELECT a.*, b.* EXCLUDE ({_keys(columns)}) FROM {_both(part, intervals)})"
        beside = _resource(part, intervals, labelled=labelled)
        told = {field["name"]: _column(field, estimates=False) for field in beside["schema"]["fields"]}
        columns = [
            one
            for column in columns
            for one in (column, *(told[name] for name in (f"{column.name}_{end}" for end in _TOLD) if name in told))
        ]
    else:
        columns = sorted(columns, key=_place) if any(column.name in VALUES for column in columns) else columns
    selected = ", ".join(
        f"coalesce(CAST({named(column.name)} AS VARCHAR), '') AS {named(column.name)}" for column in columns
    )
    title = one_line(resource["title"]) or name
    universe = resource.get("universe") or _universe(part, PurePosixPath(within).name) or title
    rows = int(part.manifest["tables"][file].get("rows", 0))
    return ExportTable(name, title, universe, tuple(columns), f"SELECT {selected} FROM {query}", rows, part)


def _resource(part: ReleaseFolder, within: str, *, labelled: bool) -> Mapping[str, Any]:
    """What the codebook says of a table, or else what its columns are called."""
    file = part.files[within]
    found = next((one for one in (part.codebook or {"resources": ()})["resources"] if one["path"] == file), None)
    if found is not None:
        return dict(found)
    if labelled:
        none = f"{part.folder} has no codebook, which says what tables and codes are called; export a release"
        raise OutputError(
            f"{part.folder}: the codebook does not describe {file}" if part.codebook is not None else none
        )
    kinds = {**dict.fromkeys(_BESIDE, "number"), **dict.fromkeys(VALUES, "number"), NOISE: "string", REASON: "string"}
    told = [str(column) for column in part.manifest["tables"][file].get("columns", ())]
    fields = [{"name": one, "title": one, "type": kinds.get(one, _kind_of(one))} for one in told]
    return {"path": file, "title": within, "schema": {"fields": fields}}


def _kind_of(column: str) -> str:
    """The type of a column without a codebook: variables of TopDown hold numbers."""
    return "integer" if re.fullmatch(r"[A-Z]\d{7}(_LOWER|_UPPER|_MOE)?", column) else "string"


def _place(column: ExportColumn) -> int:
    """Where a column stands: codes, the count, what is told of it."""
    if column.name in VALUES:
        return 1
    return 2 + _BESIDE.index(column.name) if column.name in _BESIDE else 0 if not column.is_number else 2 + len(_BESIDE)


def _column(field: Mapping[str, Any], *, estimates: bool) -> ExportColumn:
    name = field["name"]
    told = name in {NOISE, REASON} or (estimates and name in _NAMES)
    labels = {str(one["value"]): one_line(one["label"]) for one in field.get("categories", ())}
    kind: Literal["code", "text", "whole", "real"] = "text" if told else "code"
    if field["type"] in {"integer", "number"} and not labels and name not in _CODES:
        kind = "whole" if field["type"] == "integer" else "real"
    return ExportColumn(name, one_line(field["title"]) or name, one_line(field.get("description", "")), kind, labels)


def _joined(part: ReleaseFolder, intervals: str, database: duckdb.DuckDBPyConnection) -> bool:
    """Whether a table of intervals has row by row the areas of its table."""
    base = intervals.removesuffix(_INTERVALS)
    one, other = (part.manifest["tables"][part.files[name]] for name in (base, intervals))
    keys = [name for name in other["columns"] if name in one["columns"]]
    if one["rows"] != other["rows"]:
        return False
    apart = " OR ".join(f"a.{named(key)} IS DISTINCT FROM b.{named(key)}" for key in keys) or "true"
    ((found,),) = database.execute(f"SELECT count(*) FROM {_both(part, intervals)} WHERE {apart}").fetchall()
    return not found


def _both(part: ReleaseFolder, intervals: str) -> str:
    base, beside = (part.rows(name, as_text=True) for name in (intervals.removesuffix(_INTERVALS), intervals))
    return f"(SELECT * FROM {base}) a POSITIONAL JOIN (SELECT * FROM {beside}) b"


def _keys(columns: Sequence[ExportColumn]) -> str:
    return ", ".join(named(column.name) for column in columns if not column.is_number)


def _universe(part: ReleaseFolder, table: str) -> str:
    """Which records a table counts; empty where its title says it all."""
    if part.product in {ESTIMATES, PHSAFE.key}:
        # Of an average the shell tells what it is of, and not what its numerator counts.
        if table.endswith("_num"):
            return ""
        return next(
            (shell.universe for shell in SHELLS if table.split("_", maxsplit=1)[0] in {shell.name, shell.source}), ""
        )
    product = PRODUCTS.of(part.manifest)
    if product is None or product.key != "tables":
        return ""
    config = described_in(part.manifest)
    of = next((one for one in config.tables if table in one.published), None)
    if of is None:
        return ""
    counted = next(file for file in config.files.values() if file.name == of.counts)
    tested = [(config.columns[name], values) for name, values in of.universe.columns]
    tests = [f"{column.name} is {shown(values, column.column)}" for column, values in tested]
    return one_line(f"Records of {counted.name}" + (f" whose {' and whose '.join(tests)}" if tests else ""))


def one_line(text: str) -> str:
    """A text on one line, without what no document may hold: control characters, halves of characters."""
    clean = "".join("\ufffd" if _is_no_text(one) else one for one in text)
    return " ".join(clean.split())


def _is_no_text(character: str) -> bool:
    return character in "\ufffe\uffff" or (category(character) in {"Cc", "Cs"} and not character.isspace())


@dataclass(frozen=True, slots=True)
class Export:
    """What is exported."""

    release: ReleaseFolder
    tables: tuple[ExportTable, ...]
    split: str = ""  # a column, each of whose values has a workbook; empty where there is one
    agency: str = "YUPANA"  # that maintains the SDMX structures

    @property
    def is_marked(self) -> bool:
        """Whether it may not be published."""
        return self.release.status == NOT_FOR_RELEASE

    def title(self, text: str) -> str:
        """A title, which says so of what may not be published."""
        return f"{NOT_FOR_RELEASE}: {text}" if self.is_marked else text

    def files(self, names: Iterable[str], ending: str) -> list[str]:
        """Names of files, marked as the titles are, by the rule that tables of releases have."""
        mark = f"-{NOT_FOR_RELEASE.lower().replace(' ', '-')}" if self.is_marked else ""
        plain = (file_of(name.replace("/", "-")) for name in names)
        return [f"{name}{mark}{ending}" for name in distinct(plain, 60)]

    def names(self, ending: str) -> list[str]:
        """Names of the files of its tables."""
        return self.files((table.name for table in self.tables), ending)

    @property
    def made(self) -> datetime:
        """When the release was made, in the time of the world; of one that does not say so a day of 2020."""
        try:
            told = datetime.fromisoformat(str(self.release.manifest.get("created")))
        except ValueError:
            return datetime(2020, 1, 1, tzinfo=UTC)
        return told.astimezone(UTC).replace(microsecond=0)

    def source(self, table: ExportTable) -> str:
        """Where the numbers of a table come from."""
        return (
            f"Release of {table.release.name} made {self.release.manifest.get('created', 'at an unknown time')}, table "
            f"{table.name}; {self.release.status}; SHA-256 of its manifest {self.release.sha256}"
        )


def differences(name: str, headers: Sequence[str], due: Iterable[Row], told: Iterable[Row]) -> Iterator[str]:
    """The first place where what was read back is not the release, in words."""
    for number, (one, other) in enumerate(itertools.zip_longest(due, told), 1):
        if one is None or other is None:
            what = "the release has no more rows" if one is None else "the row of the release is missing"
            yield f"{name}: row {number:,}: {what}"
            return
        if one != other:
            column = next((h for h, a, b in zip(headers, one, other, strict=False) if a != b), "the number of columns")
            yield f"{name}: row {number:,}: {column} is not that of the release"
            return


def library(name: str, what: str) -> ModuleType:
    """A library of the extra ``publish``.

    Raises
    ------
    ConfigError
        If it is not installed.
    """
    with needing(f"{what} needs the package {name.partition('.')[0]}", "publish"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a file that gptables leaves open
        return import_module(name)


_NUMBERS: Final = itertools.count()


def listed(database: duckdb.DuckDBPyConnection, column: str, texts: Mapping[str, str], otherwise: str) -> str:
    """SQL that maps the texts of a column to others, in a time that does not grow with the list.

    Parameters
    ----------
    database : duckdb.DuckDBPyConnection
        That gets a type for the list.
    column, otherwise : str
        SQL: what is looked up, and what stands for a text that is not listed.
    """
    if not texts:
        return otherwise
    kind = f"listed_{next(_NUMBERS)}"
    database.execute(f"CREATE TYPE {kind} AS ENUM ({', '.join(map(quoted, texts))})")
    values = ", ".join(quoted(text) for text in texts.values())
    return f"coalesce([{values}][enum_code(TRY_CAST({column} AS {kind})) + 1], {otherwise})"
