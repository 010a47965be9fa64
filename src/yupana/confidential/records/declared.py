"""Record files as they are declared: opened, checked, and all that is wrong told at once, each with its place.

What differs between products is data of the declaration: columns with their domains, codes that are known, rules, links
between files, the public file of blocks beside them, and rules of all files together.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

import duckdb

from yupana.confidential.records.database import numbers, private_database, require_memory
from yupana.confidential.records.object_store import require_at_hand
from yupana.confidential.records.reader import count_unfit, damaged_parts, drop_relations, open_files, trust
from yupana.confidential.records.sources import OpenedRecords, Source, find_broken, is_synthetic, no_names, tell
from yupana.confidential.records.validation import BrokenRecords, Finding
from yupana.confidential.tabulate.group_tabulation import block_number, in_chosen
from yupana.files.columns import Column, RecordFile
from yupana.files.database import STOPS, named
from yupana.files.delimited import column_types
from yupana.geography.block_file import BlockFile, HousingUnitFile


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: SQL that is true for a record that breaks it.

    Attributes
    ----------
    name : str
    file : str
        Whose records it is about.
    broken, text : str
        The SQL, and what is wrong and what to do.
    among : str
        SQL for the records of the file that it is asked of, if not of all.
    remark, dropped : bool
        As `Finding` has them.
    """

    name: str
    file: str
    broken: str
    text: str
    among: str = ""
    remark: bool = False
    dropped: bool = False

    def find(self, db: duckdb.DuckDBPyConnection, relation: str, sources: Mapping[str, Source]) -> list[Finding]:
        """Find the records of a relation that break it, and say where they lie."""
        found = find_rules(db, self.among or relation, [self])
        return [finding for broken in found.values() for finding in self.told(broken, sources[self.file])]

    def told(self, broken: BrokenRecords, source: Source) -> list[Finding]:
        """Say where the records lie that break it."""
        return tell(broken, source, Finding(self.name, "", self.text, dropped=self.dropped, remark=self.remark))


def find_rules(db: duckdb.DuckDBPyConnection, relation: str, rules: Sequence[Rule]) -> dict[Rule, BrokenRecords]:
    """The records of a relation that break rules, all of which are counted in one pass."""
    if not rules:
        return {}
    counts = numbers(db, f"SELECT {', '.join(f'count_if({rule.broken})' for rule in rules)} FROM {relation}")
    broken = [rule for rule, count in zip(rules, counts, strict=True) if count]
    return {rule: find_broken(db, relation, rule.broken) for rule in broken}


def occurs_twice(relation: str, key: str) -> str:
    """SQL for records whose key another record has, too."""
    return f"{key} IN (SELECT {key} FROM {relation} GROUP BY ALL HAVING count(*) > 1)"


@dataclass(frozen=True, slots=True)
class Link:
    """That the records of a file name one of another file each, by its key; NULL names none.

    Attributes
    ----------
    file, column : str
        The file, and SQL for its column.
    of, key : str
        The other file, and SQL for its key.
    text : str
        What is wrong with a record that names none.
    name : str
        Of the rule.
    """

    file: str
    column: str
    of: str
    key: str
    text: str
    name: str = "link"

    def rule(self, db: duckdb.DuckDBPyConnection, relations: Mapping[str, str]) -> Rule:
        """The rule, by what the relations of files are called."""
        child, parent = relations[self.file], relations[self.of]
        column, key = compared(db, (child, self.column), (parent, self.key))
        orphans = (
            f"(SELECT c.* FROM {child} c ANTI JOIN (SELECT {key} AS key_above FROM {parent}) p ON {column} = key_above)"
        )
        return Rule(self.name, self.file, f"{self.column} IS NOT NULL", self.text, among=orphans)


def compared(db: duckdb.DuckDBPyConnection, *columns: tuple[str, str]) -> tuple[str, ...]:
    """SQL for columns of relations as they are compared: as texts where only some are texts."""
    kinds = [column_types(db, f"(SELECT {column} AS it FROM {relation})")["it"] for relation, column in columns]
    if kinds.count("VARCHAR") in {0, len(kinds)}:
        return tuple(column for _, column in columns)
    return tuple(f"CAST({column} AS VARCHAR)" for _, column in columns)


@dataclass(frozen=True, slots=True)
class KnownCodes:
    """The codes that a column may have, where its domain allows more, and what they are in words."""

    codes: frozenset[int]
    saying: str

    @property
    def listed(self) -> str:
        """SQL for them, and for a blank, which domains allow where it may stand."""
        return ", ".join(map(str, sorted({0, *self.codes})))


Opened: TypeAlias = tuple[dict[str, Source], list[Finding]]
"""Files by name, and what is wrong with them."""

Note: TypeAlias = Callable[[duckdb.DuckDBPyConnection], Mapping[str, int]]
Together: TypeAlias = Callable[[duckdb.DuckDBPyConnection, Mapping[str, Source]], list[Finding]]


class Edited(NamedTuple):
    """Whether a folder holds the Census Edited File, and what opens it. What it checks itself has files beside it."""

    is_there: Callable[[Path], bool]
    open: Callable[[duckdb.DuckDBPyConnection, Path], Opened]


@dataclass(frozen=True, slots=True)
class Declared:
    """What records are, and what they must keep.

    Attributes
    ----------
    files : mapping of str to RecordFile
        By name.
    wanted : frozenset of str
        Those that must have a record.
    codes : mapping of column to KnownCodes
    rules : tuple of Rule
        On records of sound or unsound files by themselves.
    links : tuple of Link
    blocks : BlockFile or None
        The public file of blocks beside the records.
    places : mapping of file to tuple of str
        SQL for the columns of its records that name their block; of files whose records lie in blocks.
    in_homes : frozenset of str
        Files whose records lie where housing units stand, if these are listed.
    edited : Edited or None
        The Census Edited File, which may stand in place of the files.
    together : callable or None
        Checks all files together, if all could be read.
    note : callable or None
        Counts what is no error but should be known, of records that could be read. The relation ``lived_in`` says which
        blocks hold how many records, where there is a file of blocks.
    """

    files: Mapping[str, RecordFile]
    wanted: frozenset[str] = frozenset()
    codes: Mapping[str, KnownCodes] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    links: tuple[Link, ...] = ()
    blocks: BlockFile | None = None
    places: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    in_homes: frozenset[str] = frozenset()
    edited: Edited | None = None
    together: Together | None = None
    note: Note | None = None

    @property
    def relations(self) -> dict[str, str]:
        """SQL for the relation of each file."""
        return {name: named(schema.relation) for name, schema in self.files.items()}


@contextmanager
def open_declared(declared: Declared, folder: Path, memory: int | None) -> Iterator[OpenedRecords]:
    """Open and check the files of a declaration.

    Parameters
    ----------
    memory : int, optional
        Bytes to get along with (`private_database`).

    Raises
    ------
    InputError
        If the folder is missing, or there are more blocks than fit into memory. Broken rules are findings, not errors.
    """
    require_at_hand(folder)
    synthetic = is_synthetic(folder)
    with private_database(memory) as db:
        if declared.edited is not None and declared.edited.is_there(folder):
            if any(schema.called for schema in declared.files.values()):
                raise no_names(folder)
            sources, findings = declared.edited.open(db, folder)
            blocks = None if findings else declared.blocks
        else:
            sources, findings = open_files(db, folder, declared.files)
            blocks = declared.blocks
        of_blocks = open_blocks(db, folder, blocks, sources) if blocks else []
        whole = sources.keys() >= declared.files.keys()
        for name, source in sources.items():
            # What completes other records was checked where it stands.
            if name in declared.files and not source.beside:
                must = name in declared.wanted
                wrong, could_be_read = check_file(
                    db, source, declared.files[name], declared.rules, declared.codes, wanted=must
                )
                findings += wrong
                whole &= could_be_read
        notes: Mapping[str, int] = {}
        if whole:
            for link in declared.links:
                findings += link.rule(db, declared.relations).find(db, "", sources)
            if declared.together:
                findings += declared.together(db, sources)
        findings += of_blocks
        if whole and not of_blocks:
            findings += _check_places(db, declared, sources)
            notes = declared.note(db) if declared.note else {}
        db.execute(f"DROP TABLE IF EXISTS {LIVED_IN}")
        drop_relations(db, FILE_OF_BLOCKS, FILE_OF_UNITS)
        # Two files may be of the same lines, and wrong in the same.
        yield OpenedRecords(db, folder, sources, tuple(dict.fromkeys(findings)), synthetic, notes)


def check_file(
    db: duckdb.DuckDBPyConnection,
    source: Source,
    schema: RecordFile,
    rules: Iterable[Rule] = (),
    codes: Mapping[str, KnownCodes] = MappingProxyType({}),
    *,
    wanted: bool = False,
) -> tuple[list[Finding], bool]:
    """Check the values of a file that was opened, and those of some rules that are about it.

    Other parameters are those of `Declared`; ``wanted`` is whether the file must have a record.

    Returns
    -------
    list of Finding, bool
        What is wrong, and whether the file could be read to its end.
    """
    relation, written = named(schema.relation), schema.written
    findings = []
    try:
        listed = {name: codes[name].listed for name in schema.header if name in codes}
        records, unfit = count_unfit(db, source, schema, listed)
        if not records and wanted:
            findings.append(Finding("not_empty", source.called(schema.name), f"the file has no {schema.row}"))
        for column in schema.columns:
            value, name = named(column.name), written[column.name]
            wrong, unknown = unfit[column.name]
            if wrong:
                text = f"{name} must have a value" if column.key else f"{name} must be {column.rule}"
                rule = Rule("key" if column.key else "domain", schema.name, f"{value} IS NULL", text)
                findings += rule.find(db, relation, {schema.name: source})
            if unknown:
                known = codes[column.name]
                text = f"{name} must be {f'{column.blank} or ' * bool(column.blank)}{known.saying}"
                rule = Rule("known_code", schema.name, f"{value} NOT IN ({known.listed})", text)
                findings += rule.find(db, relation, {schema.name: source})
        if not findings:
            trust(db, source, schema)
        for rule in rules:
            if rule.file == schema.name:
                findings += rule.find(db, relation, {schema.name: source})
    except STOPS:
        raise
    except duckdb.Error:
        return damaged_parts(db, source), False
    return findings, True


LIVED_IN: Final = "lived_in"
"""The relation that says which blocks hold how many records."""

FILE_OF_BLOCKS: Final = "file_of_blocks"
FILE_OF_UNITS: Final = "file_of_housing_units"
"""The relations of the public files beside records, while these are checked."""

_ENDINGS: Final = ("txt", "csv", "parquet")
_GEOID: Final = 15
"""Digits of a census block: state, county, tract and block."""

BYTES_OF_A_BLOCK: Final = 90
"""What is held of each block that is listed, and of the groups that are published of its areas: of the nation and of
California as it was seen from outside."""


def schema_of_blocks(blocks: BlockFile) -> RecordFile:
    """How the file of blocks is read."""
    columns = tuple(Column(c.name, range(10**c.digits), c.digits) for c in (*blocks.key, *blocks.columns))
    return RecordFile(blocks.file, "block", columns, _ENDINGS, alias=FILE_OF_BLOCKS)


def schema_of_units(blocks: BlockFile, units: HousingUnitFile) -> RecordFile:
    """How the file of housing units is read: by the digits of the key one after another."""
    digits, text = sum(column.digits for column in blocks.key), ""
    saying = f"{digits} digits"
    if digits == _GEOID:
        # The block group says nothing that the block does not.
        name, saying = named(units.block), f"{digits} digits, or {digits + 1} with the block group after the tract"
        text = f"CASE WHEN length({name}) = 16 THEN left({name}, 11) || right({name}, 4) ELSE {name} END"
    block = Column(units.block, range(10**digits), digits, saying=saying, text=text)
    number = Column(units.number, range(1 << 31), saying="a whole number")
    return RecordFile(units.file, "block", (block, number), _ENDINGS, alias=FILE_OF_UNITS)


def require_memory_for_blocks(db: duckdb.DuckDBPyConnection, relation: str) -> None:
    """Refuse more blocks than fit into memory beside the database.

    Raises
    ------
    InputError
        With the least that suffices.
    """
    (number,) = numbers(db, f"SELECT count(*) FROM {relation}")
    require_memory(db, BYTES_OF_A_BLOCK * number, f"the {number:,} blocks that are listed")


def open_blocks(
    db: duckdb.DuckDBPyConnection, folder: Path, blocks: BlockFile, sources: dict[str, Source]
) -> list[Finding]:
    """Make the relation ``blocks`` that `find_areas` reads, or say what is wrong with its files, which are added.

    Files that are among the sources were checked where they stand.

    Raises
    ------
    InputError
        If there are more blocks than fit into memory.
    """
    of_file, units = schema_of_blocks(blocks), blocks.housing_units
    key = block_number([named(column.name) for column in blocks.key], blocks.key)
    wanted = {of_file.name: (of_file, key)}
    if units:
        wanted[units.file] = (schema_of_units(blocks, units), named(units.block))
    opened, findings = open_files(
        db, folder, {name: schema for name, (schema, _) in wanted.items() if name not in sources}
    )
    if blocks.file in opened:
        require_memory_for_blocks(db, FILE_OF_BLOCKS)
    for name, source in opened.items():
        schema, block = wanted[name]
        again = Rule(
            "unique_block", name, occurs_twice(named(schema.relation), block), "the block is listed more than once"
        )
        findings += check_file(db, source, schema, (again,), wanted=True)[0]
    sources |= opened
    if findings:
        return findings
    columns, stand = ", ".join(named(column.name) for column in of_file.columns), "NULL::BIGINT"
    if units:
        number_of = f"SELECT {named(units.number)} FROM {FILE_OF_UNITS} WHERE {named(units.block)} = {key}"
        stand = f"coalesce(({number_of}), 0)"
    db.execute(
        f"CREATE TABLE blocks AS SELECT {columns}, {stand} AS housing_units FROM {FILE_OF_BLOCKS} "
        f"WHERE {in_chosen(named(blocks.key[0].name), blocks)}"
    )
    if numbers(db, "SELECT count(*) FROM blocks") == (0,):
        text = f"no block has a value of {blocks.key[0].name} that blocks.only or the configuration names"
        findings.append(Finding("not_empty", sources[blocks.file].names[0], text))
    return findings


def _check_places(db: duckdb.DuckDBPyConnection, declared: Declared, sources: Mapping[str, Source]) -> list[Finding]:
    """Find records that count in blocks that are not listed, or where no housing unit stands.

    The relation ``lived_in`` says which blocks hold how many records, of the last file.
    """
    blocks, findings = declared.blocks, list[Finding]()
    for name, key in declared.places.items() if blocks else ():
        assert blocks is not None  # noqa: S101 (there are places)
        relation = declared.relations[name]
        # By block first: there are fewer of them than records.
        number, chosen = block_number(key, blocks.key), in_chosen(key[0], blocks)
        counted = f"SELECT {', '.join(key)}, count(*) AS n FROM {relation} WHERE {chosen} GROUP BY ALL"
        db.execute(
            f"CREATE OR REPLACE TABLE {LIVED_IN} AS SELECT {number} AS block, n FROM ({counted}) "
            f"WHERE {number} IS NOT NULL"
        )
        if sources[name].beside:
            continue
        listed = f"SELECT {block_number([named(c.name) for c in blocks.key], blocks.key)} FROM blocks"
        among = {"block_in_reference": (f"NOT IN ({listed})", f"the block is not in {_called(sources, blocks.file)}")}
        if blocks.housing_units and name in declared.in_homes:
            called = _called(sources, blocks.housing_units.file)
            text = f"the block has no housing unit in {called}, so no household can live there"
            among["block_has_housing_unit"] = (f"IN ({listed} WHERE housing_units = 0)", text)
        for rule, (condition, text) in among.items():
            strange = f"SELECT block FROM {LIVED_IN} WHERE block {condition}"
            if numbers(db, f"SELECT count(*) FROM ({strange})") != (0,):
                broken = f"{chosen} AND {number} IN ({strange})"
                findings += Rule(rule, name, broken, text).find(db, relation, sources)
    return findings


def _called(sources: Mapping[str, Source], name: str) -> str:
    return sources[name].called(name)
