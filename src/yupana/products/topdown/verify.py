"""Whether the files of a TopDown release hold together: sums, published geography, records and tables. Public.

What a file should hold follows from the counts of the blocks. A file of text that stands in the order in which it is
written is compared as it is read (`yupana.products.topdown.in_order`); any other is read once, into a sparse histogram,
each row checked as it is read.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from math import isclose
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Ints
from yupana.errors import InputError, OutputError
from yupana.files.database import named, open_database, quoted, store_arrays, unreadable
from yupana.files.delimited import NO_SEPARATOR, csv_rows, positions
from yupana.geography.published import AREAS_FOLDER, BLOCKS_STEM, PublishedBlocks, areas_of_spine, read_published
from yupana.geography.settings import ROOT
from yupana.geography.spine import Spine
from yupana.geography.spine_files import read_spine
from yupana.privacy.exact import read_exact
from yupana.products.topdown.tables import (
    BOUNDS,
    COUNTS,
    INTERVALS_OF,
    MICRODATA,
    PERSON_COLUMNS,
    TABLES,
    TABULATION,
    UNIT_COLUMNS,
    RedistrictingTable,
    counts_persons,
    counts_units,
    geocodes,
    levels_of,
    tables_of,
)
from yupana.release.lines import Texts
from yupana.release.tables import table_columns, table_rows
from yupana.topdown.histogram import Histogram, count_entries, sum_to_areas
from yupana.topdown.nmf.layout import DPQUERY
from yupana.topdown.queries import Attribute, Schema


class CountFileError(Exception):
    """A file that does not hold what it should; the text says so."""


def read_counts(
    db: duckdb.DuckDBPyConnection,
    folder: Path,
    name: str,
    schema: Schema,
    labels: Texts,
    more: Sequence[str] = (),
) -> Histogram:
    """Counts of units in the order of their labels, from a table whose rows are in any order."""
    source = source_of(folder, name, schema, more)
    unit, joined, known = units_named(db, labels, "geounit")
    cell = cell_of(schema.attributes)
    with unreadable(_unreadable(name)):
        found = db.execute(f"""SELECT coalesce({unit}, -1) AS unit, coalesce({cell}, -1) AS cell,
            coalesce(TRY_CAST("count" AS BIGINT), -1) AS "count" FROM {source} {joined}""").fetchnumpy()
    place, cells, count = _places(found["unit"], known), np.asarray(found["cell"]), np.asarray(found["count"])
    if bool((place < 0).any()):
        raise CountFileError(f"{name} has a geounit that the blocks of the spine do not have")
    if bool((cells < 0).any()) or bool((count <= 0).any()):
        raise CountFileError(f"{name} has a row outside the schema, or a count that is no whole number above 0")
    counts = count_entries(place, cells, count, len(labels))
    if len(counts.counts) < len(count):
        raise CountFileError(f"{name} has a cell of a geounit twice")
    return counts


def units_named(db: duckdb.DuckDBPyConnection, labels: Texts, column: str) -> tuple[str, str, Ints]:
    """SQL for the number of the unit that a column names, NULL for none, what it joins, and the numbers of all units.

    No attribute has a name with a space.
    """
    if (codes := codes_of(labels)) is not None:
        return code_of(labels.itemsize, column), "", codes
    written = np.array([label.decode() for label in labels.tolist()], dtype=object)
    places = np.arange(len(labels))
    store_arrays(db, "labels", {"a label": written, "its place": places})
    return '"its place"', f'LEFT JOIN labels ON "a label" = {column}', places


def code_of(width: int, column: str = "geounit") -> str:
    """SQL for a text of so many digits as a number; NULL where it is none."""
    return f"CASE WHEN length({column}) = {width} THEN TRY_CAST({column} AS BIGINT) END"


def _places(units: NDArray[Any], known: Ints) -> Ints:
    """The place of each unit among those known, which are different; -1 for none."""
    order = np.argsort(known)
    return np.append(order, -1)[positions(np.asarray(units), known[order])]


def source_of(folder: Path, name: str, schema: Schema, more: Sequence[str] = ()) -> str:
    """SQL for a table of counts with more columns, all columns text."""
    paths = [path for path in (folder / f"{name}.csv", folder / f"{name}.parquet") if path.is_file()]
    if len(paths) != 1:
        raise CountFileError(f"{name} is missing, or there both as CSV and as Parquet")
    return open_columns(paths[0], ("geounit", *schema.names, "count", *more), name)


def codes_of(labels: Texts) -> Ints | None:
    """Identifiers as numbers, if all are digits and equally many."""
    lengths = np.char.str_len(labels)
    if not np.char.isdigit(labels).all() or bool((lengths != lengths[:1]).any()):
        return None
    return np.asarray(labels.astype(np.int64))


def open_columns(path: Path, columns: Sequence[str], name: str = "") -> str:
    """SQL for a table with these columns, all text; ``name`` is what messages call it, if not as its file."""
    with unreadable(CountFileError(f"{name or path.name} is missing or not readable")):
        found, rows = table_columns(path), table_rows(path)
    if found != list(columns):
        raise CountFileError(f"{name or path.name} must have the columns {', '.join(columns)}")
    return f"(SELECT COLUMNS(*)::VARCHAR FROM {rows})"


def levels_in(attributes: Iterable[Attribute]) -> dict[str, str]:
    """SQL for the number of each attribute's level, from its label; NULL for no label of the schema."""
    found = {}
    for attribute in attributes:
        name = named(attribute.name)
        if attribute.labels == tuple(map(str, range(attribute.size))):
            number = f"TRY_CAST({name} AS INTEGER)"
            found[attribute.name] = f"CASE WHEN {number} BETWEEN 0 AND {attribute.size - 1} THEN {number} END"
        else:
            found[attribute.name] = f"(list_position([{', '.join(map(quoted, attribute.labels))}], {name}) - 1)"
    return found


def cell_of(attributes: Sequence[Attribute], levels: Mapping[str, str] | None = None) -> str:
    """SQL for the number of a cell, from that of each attribute's level, as of `levels_in` if it is not given."""
    levels, cell = levels or levels_in(attributes), "0"
    for attribute in attributes:
        cell = f"({cell} * {attribute.size} + {levels[attribute.name]})"
    return cell


SYSTEM: Final = "topdown"
"""What the manifest of a release calls the system that made it; its product is called as the configuration says."""

NOISY: Final = "topdown, noisy measurements"

MEASUREMENTS: Final = "measurements"
"""Where the manifest of a release that was made of noisy measurement files tells of these."""

_EPNUM: Final = (31, 41)
"""Where EPNUM and the separator after it begin and end in a record of a person."""

_AREAS_AT_ONCE: Final = 1 << 16


def verify_release(
    folder: Path, schema: Schema, levels: Sequence[str], *, any_codes: bool = False, intervals: bool = False
) -> list[str]:
    """Compare the files of a release with each other.

    Parameters
    ----------
    levels : sequence of str
        Geolevels from the root to the blocks.
    any_codes : bool
        Whether the configuration had areas of its own: blocks then have codes of any form, and what is published are
        the units of the spine.
    intervals : bool
        Whether each count of tabulation and tables has one.

    Returns
    -------
    list of str
        What is wrong, in words; empty if nothing is. If the counts of blocks cannot be read, nothing else is compared.
    """
    try:
        spine = read_spine(folder / "spine", tuple(levels), any_codes=any_codes)
    except InputError as error:
        return [str(error)]
    # A release may do without records; its manifest then lists none.
    asked = {COUNTS, TABULATION, *([MICRODATA] if (folder / MICRODATA).exists() else [])}
    with open_database() as db:
        files = _Files(folder, schema, spine, any_codes, intervals, db)
        unknown = asked - files.held_in_order(asked)
        return files.faults(unknown) if unknown else []


def verify_noisy(folder: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Compare the variances that noisy measurements state with those of their plan, geolevel by geolevel.

    Returns
    -------
    list of str
        What is wrong, in words.
    """
    due: dict[str, list[float]] = {}
    for m in manifest["plan"]["measurements"]:
        due.setdefault(str(m["level"]), []).append(float(read_exact(m["sigma2"])))
    wrong = []
    with open_database() as db:
        for name in manifest["tables"]:
            parts = Path(name).parts
            if DPQUERY not in parts and Path(name).suffix == ".parquet":
                continue  # what holds exactly has no noise
            level = next(part for part in (*parts[:-1], "") if Path(part).stem in due or not part)
            try:
                with unreadable(OutputError(f"{name} is not readable")):
                    found = db.execute(
                        f"SELECT DISTINCT variance FROM {table_rows(folder / name, {'variance': 'DOUBLE'})}"
                    ).fetchall()
            except OutputError as error:
                wrong.append(str(error))
                continue
            known = due.get(Path(level).stem, [])
            if any(not any(isclose(of, one, rel_tol=_NEAR) for one in known) for (of,) in found):
                wrong.append(f"{name}: variances are not those of the plan")
    return wrong


_NEAR: Final = 1e-6
"""How near variances of 24 binary digits are to those of a plan."""


@dataclass(frozen=True, slots=True, eq=False)
class _Files:
    """What is compared with the counts of the blocks: where, and how these are cut."""

    folder: Path
    schema: Schema
    spine: Spine
    any_codes: bool
    intervals: bool
    db: duckdb.DuckDBPyConnection  # reads files whose rows stand in any order

    def published(self) -> PublishedBlocks:
        """The areas of the blocks."""
        found = read_published(self.folder, nation=self.spine.tree.names[0] == ROOT)
        if bool((positions(self.spine.blocks, found.block) < 0).any()):
            raise InputError(f"{self.folder}: {AREAS_FOLDER}/{BLOCKS_STEM} does not have every block of the spine")
        return found

    def held_in_order(self, asked: AbstractSet[str]) -> AbstractSet[str]:
        """What is found to hold as it would have been written: counts, records, or tabulation with tables."""
        from yupana.products.topdown.in_order import counts_hold, tabulation_holds

        if self.any_codes:
            return frozenset()
        # Group quarters stand between the records of units, and no other file tells how many.
        records = asked & {MICRODATA} if not counts_units(self.schema) else frozenset()
        if not counts_hold(self.folder, self.schema, self.spine, records=bool(records)):
            return frozenset()
        held = {COUNTS, *records}
        try:
            published = self.published()
        except InputError:
            return held
        if tabulation_holds(self.folder, self.schema, self.spine, published, intervals=self.intervals):
            held.add(TABULATION)
        return held

    def faults(self, unknown: AbstractSet[str]) -> list[str]:
        """What is wrong with what was not found to hold."""
        spine, more = self.spine, BOUNDS if self.intervals else ()
        labels, counted = spine.levels[-1].texts(), f"{COUNTS}/{spine.tree.names[-1]}"
        try:
            blocks = read_counts(self.db, self.folder, counted, self.schema, labels)
        except CountFileError as error:
            return [str(error)]
        units = [*sum_to_areas(blocks, areas_of_spine(spine))][::-1]
        checks: list[Callable[[], None]] = []
        if COUNTS in unknown:
            checks += [partial(self._check_counts, f"{COUNTS}/{kind.name}", kind.labels, of) for kind, of in units[:-1]]
        if MICRODATA in unknown:
            checks.append(partial(self._check_records, labels, blocks))
        tables = [] if self.any_codes else tables_of(self.schema)
        if TABULATION not in unknown or (self.any_codes and not self.intervals):
            return _told(checks)
        try:
            tabulated = units if self.any_codes else [*sum_to_areas(blocks, self.published().areas(spine.blocks))]
        except InputError as error:
            return [*_told(checks), str(error)]
        kinds = {kind.name: (kind.labels, of) for kind, of in tabulated}
        checks += [partial(self._check_counts, f"{TABULATION}/{name}", *kind, more) for name, kind in kinds.items()]
        checks += [partial(self._check_table, table, kinds) for table in tables]
        checks += [partial(self._check_intervals, table, kinds) for table in tables if more]
        return _told(checks)

    def _check_counts(self, file: str, labels: Texts, counts: Histogram, more: Sequence[str] = ()) -> None:
        """Compare the counts of a kind of areas, be it a geolevel, with the blocks; ``more`` are of intervals."""
        _agree(read_counts(self.db, self.folder, file, self.schema, labels, more), counts, file)
        if more:
            self._check_bounds(file, source_of(self.folder, file, self.schema, more), [BOUNDS])

    def _check_bounds(self, file: str, source: str, ends: Iterable[tuple[str, ...]]) -> None:
        """Refuse ends that are no whole numbers, not in order or below 0, or whose margin is not half the width."""
        wrong = " OR ".join(
            f"NOT coalesce({lower} >= 0 AND {lower} <= {upper} AND "
            f"{margin} = ({upper} - {lower}) // 2 + ({upper} - {lower}) % 2, false)"
            for lower, upper, margin in ([f"TRY_CAST({named(name)} AS BIGINT)" for name in three] for three in ends)
        )
        with unreadable(_unreadable(file)):
            ((odd,),) = self.db.execute(f"SELECT count(*) FROM {source} WHERE {wrong}").fetchall()
        if odd:
            raise CountFileError(
                f"{file} has intervals whose ends are not in order from 0 on, or whose MOE is not half their width, in "
                f"{odd:,} rows"
            )

    def _check_intervals(self, table: RedistrictingTable, kinds: Mapping[str, tuple[Texts, Histogram]]) -> None:
        """Compare the intervals of a published table with it: the same areas, and bounds that go with the counts."""
        file = f"{TABLES}/{table.name}{INTERVALS_OF}.csv"
        area = ("SUMLEV", "GEOCODE")
        counted = open_columns(self.folder / TABLES / f"{table.name}.csv", (*area, *table.variables))
        source = open_columns(self.folder / file, (*area, *table.ends))
        areas = sum(len(labels) for labels, _ in kinds.values())
        with unreadable(_unreadable(file)):
            ((rows, met),) = (
                self.db.execute(f"""SELECT (SELECT count(*) FROM {source}), count(DISTINCT (SUMLEV, GEOCODE))
                FROM {source} WHERE (SUMLEV, GEOCODE) IN (SELECT (SUMLEV, GEOCODE) FROM {counted})""").fetchall()
            )
        if (rows, met) != (areas, areas):
            raise CountFileError(f"{file} does not have each area of {table.name} once")
        self._check_bounds(file, source, [tuple(f"{variable}_{end}" for end in BOUNDS) for variable in table.variables])

    def _check_records(self, labels: Texts, blocks: Histogram) -> None:
        """Count the records by block and cell."""
        schema, any_codes = self.schema, self.any_codes
        block = "TABBLKST || TABBLKCOU || TABTRACTCE || TABBLKGRPCE || TABBLK"
        where, odd = "true", "false"
        if counts_persons(schema) and not any_codes:
            columns: Sequence[str] = PERSON_COLUMNS
            levels = {
                "hhgq": "TRY_CAST(GQTYPE_PL AS INTEGER)",
                "votingage": "TRY_CAST(VOTING_AGE AS INTEGER) - 1",
                "hispanic": "TRY_CAST(CENHISP AS INTEGER) - 1",
                "cenrace": "TRY_CAST(CENRACE AS INTEGER) - 1",
            }
            odd = "RTYPE <> CASE GQTYPE_PL WHEN '0' THEN '3' ELSE '5' END"
        elif counts_units(schema) and not any_codes:
            columns = UNIT_COLUMNS
            levels = {"h1": "CASE HH_STATUS WHEN '2' THEN 0 WHEN '1' THEN 1 END"}
            where, odd = "RTYPE = '2'", "RTYPE <> '2' AND NOT (RTYPE = '4' AND HH_STATUS = '0')"
        else:
            block, columns = "block", ("block", *schema.names)
            levels = levels_in(schema.attributes)
        source = self._open_records(columns)
        unit, joined, units = units_named(self.db, labels, "block" if any_codes else f"({block})")
        known = " AND ".join(f"{levels[a.name]} BETWEEN 0 AND {a.size - 1}" for a in schema.attributes)
        cell = f"CASE WHEN {known} THEN {cell_of(schema.attributes, levels)} END"
        query = f"""SELECT coalesce({unit}, -1) AS unit, coalesce({cell}, -1) AS cell,
            sum(CASE WHEN {where} THEN times ELSE 0 END)::BIGINT AS count, count_if(misshapen OR {odd}) AS odd
            FROM {source} {joined} GROUP BY 1, 2"""
        with unreadable(CountFileError(f"{MICRODATA} is not readable as records of a release")):
            found = self.db.execute(query).fetchnumpy()
        counted = found["count"] > 0
        place, cells, count = _places(found["unit"][counted], units), found["cell"][counted], found["count"][counted]
        if bool(found["odd"].any()) or bool((place < 0).any()) or bool((cells < 0).any()):
            raise CountFileError(f"{MICRODATA} has a record of no block of the spine, or with codes that there are not")
        _agree(count_entries(place, cells, count, len(labels)), blocks, MICRODATA)

    def _open_records(self, columns: Sequence[str]) -> str:
        """SQL for the different records and how often each is there, in ``times``, but for the number of a record.

        Lines are grouped as they are: few fields have to be told apart then.
        """
        open_columns(self.folder / MICRODATA, columns)
        line, fields = "line", list(columns)
        if fields == list(PERSON_COLUMNS):
            fields.remove("EPNUM")
            line = f"left(line, {_EPNUM[0]}) || substr(line, {_EPNUM[1] + 1})"
        parts = ", ".join(f"split_part(line, '|', {place}) AS {named(name)}" for place, name in enumerate(fields, 1))
        lines = csv_rows(self.folder / MICRODATA, ["line"], separator=NO_SEPARATOR)
        misshapen = f"length(line) - length(replace(line, '|', '')) <> {len(fields) - 1}"
        return f"""(SELECT {parts}, times, {misshapen} AS misshapen FROM
            (SELECT {line} AS line, count(*) AS times FROM {lines} GROUP BY 1))"""

    def _check_table(self, table: RedistrictingTable, kinds: Mapping[str, tuple[Texts, Histogram]]) -> None:
        """Compare a published table with the counts of all kinds of areas; those without people stand there, too."""
        file = f"{TABLES}/{table.name}.csv"
        source = open_columns(self.folder / file, ("SUMLEV", "GEOCODE", *table.variables))
        numbers = ", ".join(f"coalesce(TRY_CAST({name} AS BIGINT), -1) AS {name}" for name in table.variables)
        with unreadable(_unreadable(file)):
            self.db.execute(f"CREATE OR REPLACE TABLE published AS SELECT SUMLEV, GEOCODE, {numbers} FROM {source}")
        levels = levels_of(kinds)
        found = self.db.execute("SELECT DISTINCT SUMLEV FROM published").fetchall()
        if not {level for (level,) in found} <= set(levels.values()):
            raise CountFileError(f"{file} has a summary level that there is not")
        for name, level in levels.items():
            labels, counts = kinds[name]
            area, joined, known = units_named(self.db, geocodes(name, labels), "GEOCODE")
            rows = f"""(SELECT * EXCLUDE (GEOCODE), coalesce({area}, -1) AS area
                FROM (SELECT * FROM published WHERE SUMLEV = {quoted(level)}) {joined})"""
            areas = self.db.execute(f"SELECT area FROM {rows} ORDER BY 1").fetchnumpy()["area"]
            if not np.array_equal(areas, known):
                raise CountFileError(f"{file} does not have each area of summary level {level} once")
            for first in range(0, len(known), _AREAS_AT_ONCE):
                last = min(first + _AREAS_AT_ONCE, len(known))
                part = self.db.execute(f"""SELECT {", ".join(table.variables)} FROM {rows}
                    WHERE area BETWEEN {known[first]} AND {known[last - 1]} ORDER BY area""").fetchnumpy()
                values = table.tabulate(counts, first, last)
                if any(not np.array_equal(part[name], values[:, i]) for i, name in enumerate(table.variables)):
                    raise CountFileError(f"{file} does not agree with {TABULATION}/{name}")


def _told(checks: Iterable[Callable[[], None]]) -> list[str]:
    wrong = []
    for check in checks:
        try:
            check()
        except CountFileError as error:
            wrong.append(str(error))
    return wrong


def _unreadable(file: str) -> CountFileError:
    return CountFileError(f"{file} is not readable as a table of a release")


def _agree(found: Histogram, expected: Histogram, name: str) -> None:
    same = (
        np.array_equal(found.starts, expected.starts)
        and np.array_equal(found.cells, expected.cells)
        and np.array_equal(found.counts, expected.counts)
    )
    if not same:
        raise CountFileError(f"{name} does not agree with the counts of the blocks")
