"""Targeted swapping on records: risky ones change areas with partners of the same size, and all beneath goes along."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import duckdb
import numpy as np

from yupana.arrays import Flags, Ints
from yupana.confidential.described.tabulate import chain_of, tabulate
from yupana.confidential.records.database import numbers
from yupana.confidential.tabulate.linked_tables import (
    Chain,
    LinkedCounts,
    LinkedTable,
    joined,
    make_batches,
    numbered,
    numbers_of,
    tally,
)
from yupana.files.database import named, quoted
from yupana.privacy.entropy import Entropy
from yupana.products.described.description import AreaKind, Description
from yupana.products.disclosure_control.methods import Swapping


@dataclass(frozen=True, slots=True)
class Swapped:
    """How many records there are of the files that name areas, how many of them were risky, and how many swapped."""

    records: int
    risky: int
    swapped: int


def swap(
    db: duckdb.DuckDBPyConnection,
    description: Description,
    method: Swapping,
    entropy: Entropy,
) -> Swapped:
    """Let records change areas in the database, for good: what is counted afterwards is swapped.

    A record of a file that names areas is risky if it, or one beneath it, counts in an area in a cell of fewer than k.
    Its partner lies in another area and has as many records of each file beneath it. So of every area the number of
    records of each file stays, and so does every count that reads no area.

    Parameters
    ----------
    db : duckdb.DuckDBPyConnection
        With valid records.
    """
    told = Swapped(0, 0, 0)
    for file, columns in _naming_areas(description).items():
        (records, *values) = _columns(db, description, file, columns)
        areas = np.unique(np.stack(values, axis=1), axis=0, return_inverse=True)[1].ravel()
        risky = np.isin(records, _risky(db, description, file, method.below))
        partners = pair_up(areas, _sizes(db, description, file, records), risky, method.rate, entropy)
        _exchange(db, description, file, columns, records, [value[partners] for value in values])
        moved = int((partners != np.arange(len(partners))).sum())
        told = Swapped(told.records + len(records), told.risky + int(risky.sum()), told.swapped + moved)
    return told


def pair_up(areas: Ints, sizes: Ints, risky: Flags, rate: Fraction, entropy: Entropy) -> Ints:
    """Whose area each record gets: that of a partner of the same size in another area, or its own.

    Parameters
    ----------
    areas, sizes : int64 array, shape (records,)
        Numbers that stand for the areas of a record, and for what its partner must share.
    risky : bool array, shape (records,)
        All of them are swapped, as far as there are partners.
    rate : Fraction
        Others are, too, until this share of all is.

    Returns
    -------
    int64 array, shape (records,)
        Its own inverse.
    """
    partners = np.arange(len(areas))
    order = shuffled(len(areas), entropy)
    order = order[np.argsort(~risky[order], kind="stable")]
    free = {size: _Free(order[sizes[order] == size].tolist(), areas) for size in np.unique(sizes).tolist()}
    swapped, least = 0, rate * len(areas)
    for record in order.tolist():
        if not risky[record] and swapped >= least:
            break
        of_size = free[int(sizes[record])]
        if partners[record] == record and (other := of_size.partner(record, entropy)) is not None:
            partners[record], partners[other] = other, record
            of_size.take(record, other)
            swapped += 2
    return partners


_TRIES = 20
"""Before all that are free are looked through; whoever lies outside the largest area seldom needs them."""


class _Free:
    """Records of one size that have no partner yet."""

    def __init__(self, records: list[int], areas: Ints) -> None:
        self.records, self.areas = records, areas
        self.taken: set[int] = set()
        self.left = Counter(areas[records].tolist())

    def partner(self, record: int, entropy: Entropy) -> int | None:
        """Any other in another area, each as likely; None if there is none."""
        own = int(self.areas[record])
        if self.left.total() == self.left[own]:
            return None
        for place in uniform(len(self.records), _TRIES, entropy).tolist():
            other = self.records[place]
            if other not in self.taken and self.areas[other] != own:
                return int(other)
        self.records = [other for other in self.records if other not in self.taken]
        elsewhere = [other for other in self.records if self.areas[other] != own]
        return elsewhere[int(uniform(len(elsewhere), 1, entropy)[0])]

    def take(self, *records: int) -> None:
        """They have partners now."""
        self.taken.update(records)
        self.left.subtract(self.areas[list(records)].tolist())


def _naming_areas(description: Description) -> dict[str, tuple[str, ...]]:
    """The files whose columns name areas, with these columns."""
    kinds = {level.areas for _, level in description.measured.values()}
    columns = {column for kind in kinds for column in description.areas[kind].columns}
    files = dict.fromkeys(description.columns[column].file for column in sorted(columns))
    return {
        file: tuple(sorted(column for column in columns if description.columns[column].file == file)) for file in files
    }


def _columns(db: duckdb.DuckDBPyConnection, description: Description, file: str, columns: Iterable[str]) -> list[Ints]:
    """The numbers of the records of a file in order, and their values."""
    query = f"SELECT record, {', '.join(columns)} FROM {named(description.files[file].schema.relation)} ORDER BY record"
    return [np.asarray(column, dtype=np.int64) for column in db.execute(query).fetchnumpy().values()]


def _sizes(db: duckdb.DuckDBPyConnection, description: Description, file: str, records: Ints) -> Ints:
    """A number for each record that stands for how many records of each file are beneath it."""
    sizes = [np.zeros(len(records), dtype=np.int64)]
    for beneath in description.record_files:
        files = description.chain(beneath.name)
        if file in files[1:]:
            shown: list[list[str]] = [*([] for _ in range(files.index(file))), ["record AS of_record"]]
            rows = joined(chain_of(db, description, beneath.name), shown)
            query = f"SELECT of_record, count(*) FROM {rows} GROUP BY 1"
            of, number = (np.asarray(column, dtype=np.int64) for column in db.execute(query).fetchnumpy().values())
            sizes.append(np.zeros(len(records), dtype=np.int64))
            sizes[-1][np.searchsorted(records, of)] = number
    return np.unique(np.stack(sizes, axis=1), axis=0, return_inverse=True)[1].ravel()


def _risky(
    db: duckdb.DuckDBPyConnection,
    description: Description,
    file: str,
    below: int,
) -> Ints:
    """The records of a file that count in an area in a small cell, or whose records beneath do."""
    kinds = {level.name: description.areas[level.areas] for _, level in description.measured.values()}
    relation = named(description.files[file].schema.relation)
    found = [np.zeros(0, dtype=np.int64)]

    def look(
        db: duckdb.DuckDBPyConnection, chain: Chain, tables: Sequence[LinkedTable], key: str
    ) -> dict[str, LinkedCounts]:
        del key
        batches = make_batches(chain, tables)
        tallies = tally(db, numbered(chain, batches), len(batches))
        shown = [[*of.header, *(["record AS of_record"] * (of.relation == relation))] for of in chain]
        counted = {}
        for batch, of_batch, number in zip(batches, tallies, numbers_of(batches), strict=True):
            small = np.zeros(len(of_batch.number), dtype=bool)
            for table in batch.tables:
                counts = counted[table.name] = batch.counts(table, of_batch, 0)
                if any(description.columns[column].file == file for column in table.areas):
                    small |= _in_small_cells(counts, kinds[table.name.split("/")[1]], below)
            if small.any():
                db.register("small_now", {"small": of_batch.number[small]})
                query = (
                    f"SELECT DISTINCT of_record FROM (SELECT of_record, {number} FROM {joined(chain, shown)}) "
                    f"SEMI JOIN small_now ON small = {number.rpartition(' AS ')[2]}"
                )
                found.append(np.asarray(db.execute(query).fetchnumpy()["of_record"], dtype=np.int64))
                db.unregister("small_now")
        return counted

    tabulate(db, description, limited=False, count=look)
    return np.unique(np.concatenate(found))


def _in_small_cells(counts: LinkedCounts, kind: AreaKind, below: int) -> Flags:
    """Of records that were counted together, whether they count in an area in a cell of few."""
    cells = counts.cells(kind.of, len(kind.codes))
    small = ((cells > 0) & (cells < below)).astype(np.int64)
    by_area = small @ counts.members.astype(np.int64) > 0
    by_value = np.stack([by_area[list(areas)].any(axis=0) for areas in kind.of])
    risky: Flags = by_value[counts.value, counts.of_class]
    return risky


def _exchange(
    db: duckdb.DuckDBPyConnection,
    description: Description,
    file: str,
    columns: Sequence[str],
    records: Ints,
    values: Sequence[Ints],
) -> None:
    """Put other values into the columns of a file."""
    relation = named(description.files[file].schema.relation)
    db.register("new_now", {"of_record": records, **{f"new_{i}": value for i, value in enumerate(values)}})
    replaced = ", ".join(f"new_{i} AS {column}" for i, column in enumerate(columns))
    db.execute(
        f"CREATE OR REPLACE TABLE described_swapped AS SELECT old.* REPLACE ({replaced}) "
        f"FROM {relation} old JOIN new_now ON old.record = of_record"
    )
    db.unregister("new_now")
    (is_view,) = numbers(
        db, f"SELECT count(*) FROM duckdb_views() WHERE view_name = {quoted(description.files[file].schema.relation)}"
    )
    db.execute(f"DROP {'VIEW' if is_view else 'TABLE'} {relation}")
    db.execute(f"ALTER TABLE described_swapped RENAME TO {relation}")


def uniform(below: int, size: int, entropy: Entropy) -> Ints:
    """Draw ``size`` numbers from 0 to ``below`` - 1, equally likely to ``below`` in 2^64; no noise of a release."""
    words = np.frombuffer(entropy.take(8 * size), dtype="<u8")
    return (words % np.uint64(below)).astype(np.int64)


def shuffled(size: int, entropy: Entropy) -> Ints:
    """The numbers from 0 to ``size`` - 1 in an order by chance."""
    return np.argsort(np.frombuffer(entropy.take(8 * size), dtype="<u8"), kind="stable")
