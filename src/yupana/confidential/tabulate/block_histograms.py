"""The records of a census as TopDown counts them: a histogram over the cells of a schema for each block."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Integers, Ints
from yupana.confidential.records.census_edited_file import is_cef
from yupana.confidential.records.database import numbers, private_database
from yupana.confidential.records.declared import Rule
from yupana.confidential.records.object_store import require_at_hand
from yupana.confidential.records.phsafe_records import FILES, RULES, open_census
from yupana.confidential.records.sources import (
    OpenedRecords,
    Source,
    find_source,
    forms,
    no_names,
    require_folder,
)
from yupana.confidential.records.topdown_records import (
    HISTOGRAM,
    QUARTERS,
    UNKNOWN_BLOCK,
    find_strangers,
    open_histogram,
    place_repetitions,
    type_quarters,
)
from yupana.confidential.records.validation import BrokenRulesError, Finding, require_none
from yupana.confidential.request import RunRequest
from yupana.confidential.shards.census_edited_file import count_by_state
from yupana.confidential.shards.count_in_shards import CountedFolder, Cut, EditedCount
from yupana.errors import InputError
from yupana.files.columns import ColumnMap, RecordFile
from yupana.files.database import store_arrays
from yupana.privacy.sealed import Sealed
from yupana.topdown.constraints import MOST_PERSONS
from yupana.topdown.histogram import BlockParts, Histogram, add_entries, count_entries
from yupana.topdown.queries import Schema

QUARTERS_ATTRIBUTE: Final = "hhgq"

_RECODES: Final = MappingProxyType(
    {
        QUARTERS_ATTRIBUTE: (8, "CASE WHEN RTYPE = 3 THEN 0 ELSE major END"),
        "votingage": (2, "CASE WHEN QAGE >= 18 THEN 1 ELSE 0 END"),
        "hispanic": (2, "CENHISP - 1"),
        "cenrace": (63, "CENRACE - 1"),
    }
)
"""How many levels an attribute of persons has, and SQL for the level, as in PL 94-171 of 2020."""

UNITS_ATTRIBUTE: Final = ("h1", 2)
"""The one attribute of housing units: 0 for vacant, 1 for occupied."""

_CHECKED: Final = tuple(
    rule
    for rule in RULES
    if rule.name in {"record_types", "group_quarters_relationship", "final_pop", "geo_record_type"}
)
"""Rules of PHSafe on what TopDown counts; families and relationships are none of its business."""

_EVERY_STATE: Final = frozenset(range(100))

_BLOCK: Final = (
    "(TABBLKST::BIGINT * 100_000_000_000_000 + TABBLKCOU::BIGINT * 100_000_000_000 + TABTRACTCE::BIGINT * 100_000"
    " + TABBLKGRPCE * 10_000 + TABBLK)"
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BlockCounts(Sealed):
    """Confidential counts of blocks, which a database holds while it is open."""

    blocks: Ints  # shape (blocks,): their 16 digits as numbers, or their places among `codes`, in the order asked for
    files: Mapping[str, Source]  # what was read, for the confidential log
    part: Callable[[int, int], Histogram]  # gives the counts of the blocks from one place up to another: a `Histogram`
    codes: tuple[str, ...] = ()  # all codes of blocks, if they are any texts; else they are digits

    def name(self, unit: int) -> str:
        """The code of a block by its place."""
        block = int(self.blocks[unit])
        return self.codes[block] if self.codes else f"{block:016d}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BlockEntries(Sealed):
    """Records counted by block and cell: columns of one length. Confidential."""

    place: Integers  # the position of the block among those of the spine
    cell: Integers
    count: Integers

    def histogram(self, units: int) -> Histogram:
        """The counts of so many blocks."""
        return count_entries(self.place, self.cell, self.count, units)


def merge_entries(parts: Sequence[BlockEntries]) -> BlockEntries:
    """Counts of shards together: in any order, and merged before or not, the same.

    Parameters
    ----------
    parts : sequence of BlockEntries
        One at least, of the same blocks and schema. No record is in two shards.
    """
    columns = (np.concatenate([getattr(part, name) for part in parts]) for name in BlockEntries.__slots__)
    return BlockEntries(*add_entries(*columns))


def open_block_counts(
    folder: Path,
    schema: Schema,
    blocks: Ints,
    request: RunRequest,
    facilities: Integers | None = None,
    *,
    codes: tuple[str, ...] = (),
) -> AbstractContextManager[BlockCounts]:
    """Count the records of a data folder, a histogram or microdata, by block; a block without records has zeros.

    What is counted stays in the database, which spills to private scratch, until parts of it are asked for.

    Parameters
    ----------
    folder : Path
        With ``histogram``, as CSV or Parquet, or with the files of PHSafe or of the CEF.
    blocks : ndarray of int64, shape (blocks,)
        The 16 digits of the blocks of the spine, in any order, each once.
    request : RunRequest
        Tells the memory to get along with, what files of persons, units and geo call their columns, and the engine that
        counts microdata in shards; a histogram is read here.
    facilities : ndarray of integers, shape (blocks, 8), optional
        Housing units and facilities by major type in each of these blocks (`read_facilities`). Where microdata do not
        tell the type of group quarters, it is read off these.
    codes : tuple of str
        All codes of blocks, if they are any texts; a block is then its place among them, and only a histogram is read.

    Raises
    ------
    InputError
        If the records break a rule, or have a block that is not among those given.
    """
    require_folder(folder)
    columns = request.columns
    if not forms(folder, HISTOGRAM) and not codes:
        query = _what_is_counted(schema)
        count = CountedBlocks(
            partial(_open_microdata, schema, columns),
            partial(_keys, query, schema, blocks, facilities),
            schema.cells,
            count_by_state,
        )
        cut = Cut(dict.fromkeys(files_of_microdata(schema, columns), ("MAFID",)), request.shards)
        return count.opened(folder, blocks, cut, request)
    require_at_hand(folder)
    if columns.names:
        raise no_names(folder)
    if is_cef(folder, (HISTOGRAM,)) or any(forms(folder, schema) for schema in FILES):
        raise InputError(f"{folder} holds a histogram and microdata; leave one of them")
    return _read_histogram(folder, schema, blocks, codes, request.memory)


def check_facilities(
    parts: BlockParts, name: Callable[[int], str], schema: Schema, attribute: str, facilities: Integers
) -> None:
    """Refuse counts that contradict the list of housing units and group quarters.

    Parameters
    ----------
    parts : BlockParts
        Confidential counts.
    name : callable
        The code of a block by its place.
    attribute : str
        Of which 0 is households, and g the group quarters of major type g.
    facilities : ndarray of integers, shape (blocks, 8)
        In the order of the counts; read as far as the attribute has levels.

    Raises
    ------
    InputError
        If a block has persons where nothing stands, fewer persons than facilities of a type, or more than
        `MOST_PERSONS` for each unit or facility. With such data the constraints of the configuration would keep out
        the truth.
    """
    axis = schema.names.index(attribute)
    inner = int(np.prod(schema.shape[axis + 1 :], dtype=np.int64))
    size = schema.shape[axis]
    broken = _BrokenBlocks(name)
    for first, found in parts:
        people = np.bincount(
            found.owners() * size + found.cells // inner % size, found.counts, minlength=found.units * size
        ).reshape(-1, size)
        standing = facilities[first : first + found.units, :size].astype(np.int64)
        least = np.where(np.arange(size) == 0, 0, standing)
        broken.add(
            "the block has persons in households or a type of group quarters of which it has none",
            first,
            (people > 0) & (standing == 0),
        )
        broken.add("the block has fewer persons than facilities of a type of group quarters", first, people < least)
        broken.add(
            f"the block has more than {MOST_PERSONS:,} persons for each housing unit or facility of a type",
            first,
            (standing > 0) & (people > standing * MOST_PERSONS),
        )
    broken.refuse(
        "the records contradict group_quarters.csv (confidential: it tells of records):",
        "correct the list, or leave group_quarters out of [constraints]",
    )


def check_structural_zeros(parts: BlockParts, name: Callable[[int], str], impossible: NDArray[np.bool_]) -> None:
    """Refuse counts in cells that can hold no record; other parameters are those of `check_facilities`.

    Parameters
    ----------
    impossible : ndarray of bool, shape (cells,)

    Raises
    ------
    InputError
        If a block counts records there. The estimate would move them to other cells without a word.
    """
    if not impossible.any():
        return
    broken = _BrokenBlocks(name)
    for first, found in parts:
        wrong = np.zeros((found.units, 1), dtype=np.bool_)
        wrong[found.owners()[impossible[found.cells]]] = True
        broken.add("the block has records in a combination that no record can have", first, wrong)
    broken.refuse(
        "the records contradict structural_zeros (confidential: it tells of records):",
        "correct the records, or leave the combination out of structural_zeros in [constraints]",
    )


@dataclass(slots=True, eq=False)
class _BrokenBlocks:
    """Blocks that break rules: by rule how many, and the first of them."""

    name: Callable[[int], str]
    found: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add(self, rule: str, first: int, wrong: NDArray[np.bool_]) -> None:
        """Add the blocks of a part, from ``first`` on, that break a rule anywhere in a row of (blocks, k)."""
        broken = np.flatnonzero(wrong.any(axis=1))
        if len(broken):
            number, example = self.found.get(rule, (0, first + int(broken[0])))
            self.found[rule] = number + len(broken), example

    def refuse(self, title: str, advice: str) -> None:
        """Raise an error if any block broke a rule."""
        if self.found:
            lines = [
                f"  {number:,} block{'s' * (number > 1)}, such as {self.name(example)}: {rule}"
                for rule, (number, example) in self.found.items()
            ]
            raise InputError("\n".join([title, *lines, advice]))


@contextmanager
def _read_histogram(
    folder: Path, schema: Schema, blocks: Ints, codes: tuple[str, ...], memory: int | None
) -> Iterator[BlockCounts]:
    source, findings = find_source(folder, HISTOGRAM)
    with private_database(memory) as db:
        if source is None or (findings := open_histogram(db, source, schema, codes)):
            raise BrokenRulesError(findings)
        store_arrays(db, "known", {"block": blocks, "place": np.arange(len(blocks))})
        require_none(find_strangers(db, source))
        repeated = partial(place_repetitions, db, source)
        query = f"SELECT place * {schema.cells} + cell AS key, count FROM histogram JOIN known USING (block)"
        yield BlockCounts(blocks, {HISTOGRAM.name: source}, count_keys(db, query, schema.cells, repeated), codes)


@dataclass(frozen=True, slots=True, eq=False)
class CountedBlocks:
    """How the records of a folder are opened, and counted by block and cell."""

    open: Callable[[Path, int | None], AbstractContextManager[OpenedRecords]]  # opens and checks a folder
    keys: Callable[[OpenedRecords], str]  # a query that counts valid records, as `count_keys` reads it
    cells: int  # of the schema
    edited: EditedCount | None = None  # as `CountedFolder` has it

    @contextmanager
    def opened(
        self, folder: Path, blocks: Ints, cut: Cut, request: RunRequest, codes: tuple[str, ...] = ()
    ) -> Iterator[BlockCounts]:
        """Count a folder, in shards where there is an engine; parameters are those of `open_block_counts`."""
        with CountedFolder(self.open, self.entries, edited=self.edited).opened(folder, cut, request) as records:
            records.require_valid()
            if records.counted is None:
                part = count_keys(records.db, self.keys(records), self.cells)
            else:
                part = merge_entries(records.counted).histogram(len(blocks)).part
            yield BlockCounts(blocks, dict(records.files), part, codes)

    def entries(self, records: OpenedRecords) -> BlockEntries:
        """Count valid records, which may be a shard: some units, each with its persons."""
        key, count = records.db.execute(self.keys(records)).fetchnumpy().values()
        unit, cell = np.divmod(np.asarray(key, dtype=np.int64), self.cells)
        return BlockEntries(unit, cell, np.asarray(count, dtype=np.int64))


@contextmanager
def _open_microdata(schema: Schema, columns: ColumnMap, folder: Path, memory: int | None) -> Iterator[OpenedRecords]:
    """Open and check persons and units; the types of group quarters are among the files, if they are told."""
    with open_census(
        folder, states=_EVERY_STATE, policies={}, memory=memory, rules=_CHECKED, columns=columns
    ) as census:
        files = dict(census.files)
        if QUARTERS_ATTRIBUTE in schema.names and forms(folder, QUARTERS):
            source, _ = find_source(folder, QUARTERS)
            files |= {QUARTERS.name: source} if source else {}
        yield replace(census, files=files)


def files_of_microdata(schema: Schema, columns: ColumnMap) -> tuple[RecordFile, ...]:
    """The files of records that a histogram of a schema is counted from."""
    return (*map(columns.applied, FILES), *([QUARTERS] if QUARTERS_ATTRIBUTE in schema.names else []))


def count_keys(
    db: duckdb.DuckDBPyConnection, query: str, cells: int, repeated: Callable[[], list[Finding]] | None = None
) -> Callable[[int, int], Histogram]:
    """Run a query that counts by block and cell, and keep what it finds in the database, in order.

    Parameters
    ----------
    query : str
        Gives ``key``, the place of a block times ``cells`` and the cell, and ``count``.
    repeated : callable, optional
        What is wrong if a key comes twice; without it none does.

    Returns
    -------
    callable
        Gives the counts of the blocks from one place up to another.
    """
    columns = "key::BIGINT AS key, count::INTEGER AS count"  # a larger count is refused
    db.execute(f"CREATE TABLE counted AS SELECT {columns} FROM ({query}) ORDER BY key")

    def part(first: int, last: int) -> Histogram:
        begin, end = first * cells, last * cells
        rows = f"SELECT key - {begin} AS key, count FROM counted WHERE key >= {begin} AND key < {end}"
        key, count = db.execute(rows).fetchnumpy().values()
        if repeated is not None and bool((key[1:] == key[:-1]).any()):
            require_none(repeated())
        unit, cell = np.divmod(np.asarray(key, dtype=np.int64), cells)
        return count_entries(unit, cell, np.asarray(count, dtype=np.int64), last - first)

    return part


def _keys(query: "_Query", schema: Schema, blocks: Ints, facilities: Integers | None, census: OpenedRecords) -> str:
    """A query that counts the records of a census, as `count_keys` reads it.

    Raises
    ------
    InputError
        If a unit lies in a block that is not among those given, or the type of group quarters is not known.
    """
    require_none(_place_units(census, blocks))
    return query(census, schema, facilities)


_Query = Callable[[OpenedRecords, Schema, Integers | None], str]


def _what_is_counted(schema: Schema) -> _Query:
    if [(a.name, a.size) for a in schema.attributes] == [UNITS_ATTRIBUTE]:
        return _count_units
    if all(a.name in _RECODES and _RECODES[a.name][0] == a.size for a in schema.attributes):
        return _count_persons
    known = ", ".join(f"{name} ({size} levels)" for name, (size, _) in _RECODES.items())
    raise InputError(
        f"the schema {', '.join(f'{a.name} ({a.size} levels)' for a in schema.attributes)} cannot be counted from "
        f"persons and units: they tell of persons {known}, and of housing units {UNITS_ATTRIBUTE[0]} (2 levels) alone; "
        "give a histogram.csv, or name the attributes so"
    )


def _place_units(census: OpenedRecords, blocks: Ints) -> list[Finding]:
    """Make the relation ``placed``: MAFID of every unit and the ``place``, the position of its block."""
    db = census.db
    store_arrays(db, "known", {"block": blocks, "place": np.arange(len(blocks))})
    db.execute(
        f"CREATE TABLE placed AS SELECT MAFID, place "
        f"FROM (SELECT MAFID, {_BLOCK} AS block FROM geo) JOIN known USING (block)"
    )
    if numbers(db, "SELECT (SELECT count(*) FROM geo) - (SELECT count(*) FROM placed)") == (0,):
        return []
    broken = f"{_BLOCK} NOT IN (SELECT block FROM known)"
    return Rule("block_in_geography", "geo", broken, UNKNOWN_BLOCK).find(db, "geo", census.files)


def _count_persons(census: OpenedRecords, schema: Schema, facilities: Integers | None) -> str:
    people = "persons"
    if QUARTERS_ATTRIBUTE in schema.names:
        if facilities is not None:
            place, kind = np.nonzero(facilities[:, 1:])
            store_arrays(census.db, "facilities", {"place": place, "major": kind + 1})
        require_none(type_quarters(census, listed=facilities is not None))
        people = "persons LEFT JOIN typed_quarters USING (MAFID)"
    cell = "0"
    for attribute in schema.attributes:
        cell = f"({cell} * {attribute.size} + {_RECODES[attribute.name][1]})"
    return f"""
        SELECT place * {schema.cells} + cell AS key, count(*) AS count
        FROM (SELECT MAFID, {cell}::INTEGER AS cell FROM {people}) JOIN placed USING (MAFID) GROUP BY key"""


def _count_units(_census: OpenedRecords, _schema: Schema, _facilities: Integers | None) -> str:
    return """
        SELECT place * 2 + CASE WHEN FINAL_POP > 0 THEN 1 ELSE 0 END AS key, count(*) AS count
        FROM units JOIN placed USING (MAFID) WHERE RTYPE = 2 GROUP BY key"""
