"""Whether the files of a TopDown release hold together: sums, published geography, records and tables. Public.

What a file should hold is what would be written of the counts of the blocks. It is compared with that as it is read, in
the order in which it is written (`yupana.products.topdown.in_order`); one that differs then, by its rows in any order.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import numpy as np

from yupana.arrays import Ints
from yupana.errors import InputError
from yupana.files.arrow_stream import Column
from yupana.files.arrow_stream import Texts as Lines
from yupana.files.database import named, open_database, unreadable
from yupana.files.delimited import NO_SEPARATOR, csv_rows, positions
from yupana.geography.kinds import BLOCK_WIDTH, BLOCKS_OF_COUNTY
from yupana.geography.published import (
    AREAS_FOLDER,
    BLOCKS_STEM,
    Areas,
    PublishedBlocks,
    areas_of_spine,
    read_published,
)
from yupana.geography.settings import ROOT
from yupana.geography.spine import Spine
from yupana.geography.spine_files import read_spine
from yupana.products.topdown.in_order import OutOfOrderError, WrittenBlocks, as_written, unlike
from yupana.products.topdown.rows import CountSection, RecordSection, RowsFile, count_file, record_file, tabulated_files
from yupana.products.topdown.tables import (
    COUNTS,
    GEOGRAPHY,
    MICRODATA,
    SPINE,
    UNIT_COLUMNS,
    counts_units,
    tables_of,
)
from yupana.products.topdown.verify import (
    CountFileError,
    cannot_be_read,
    code_of,
    places_of,
    read_counts,
    source_of,
)
from yupana.release.tables import streamed
from yupana.topdown.histogram import BlockParts, Histogram, PartsByCounty, sums_in_parts
from yupana.topdown.queries import Schema


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
        spine = read_spine(folder / SPINE, tuple(levels), any_codes=any_codes)
        with open_database() as db:
            return [*_ReleaseAgreement(folder, schema, spine, any_codes, intervals, db).faults()]
    except (InputError, CountFileError) as error:
        return [str(error)]


@dataclass(frozen=True, slots=True, eq=False)
class _ReleaseAgreement:
    """A release, whose files are compared with what would be written of the counts of its blocks."""

    folder: Path
    schema: Schema
    spine: Spine
    any_codes: bool
    intervals: bool
    db: duckdb.DuckDBPyConnection  # reads files whose rows stand in any order

    def faults(self) -> Iterator[str]:
        """What is wrong, in words."""
        spine = self.spine if self.any_codes else as_written(self.spine)
        units = areas_of_spine(spine)
        files = [count_file(self.folder / COUNTS, self.schema, kind) for kind in units[1:]]
        # A release may do without records; its manifest then lists none.
        if (self.folder / MICRODATA).exists():
            quarters = self._quarters(spine.blocks) if counts_units(self.schema) and not self.any_codes else None
            files.append(record_file(self.folder, self.schema, spine, quarters, any_codes=self.any_codes))
        blocks: BlockParts
        try:
            blocks = self._counted(units) if self.any_codes else WrittenBlocks(self.folder, self.schema, spine)
            found = unlike(blocks, units, files)
        except OutOfOrderError:
            blocks = self._counted(units)
            found = unlike(blocks, units, files)
        yield from self._faults_of(found, blocks, units)
        if self.any_codes:
            if not self.intervals:
                return
            kinds, tables = units, []
        else:
            try:
                published = self._published()
            except InputError as error:
                yield str(error)
                return
            blocks = PartsByCounty(blocks, spine.blocks // BLOCKS_OF_COUNTY)
            kinds, tables = blocks.areas(published.areas(spine.blocks)), tables_of(self.schema)
        files = tabulated_files(self.folder, self.schema, kinds, tables, bounded=self.intervals)
        yield from self._faults_of(unlike(blocks, kinds, files), blocks, kinds)

    def _counted(self, units: Sequence[Areas]) -> Histogram:
        """Counts of the blocks, whose rows stand in any order."""
        return read_counts(self.db, self.folder, f"{COUNTS}/{units[0].name}", self.schema, units[0].labels)

    def _published(self) -> PublishedBlocks:
        """The areas of the blocks."""
        found = read_published(self.folder, nation=self.spine.tree.names[0] == ROOT)
        if bool((positions(self.spine.blocks, found.block) < 0).any()):
            raise InputError(f"{self.folder}: {AREAS_FOLDER}/{BLOCKS_STEM} does not have every block of the spine")
        return found

    def _quarters(self, blocks: Ints) -> Ints:
        """Group quarters of the blocks, as `record_file` takes them: the records alone tell how many there are."""
        quarters, block = np.zeros((len(blocks), 2), dtype=np.int64), " || ".join(GEOGRAPHY)
        # What cannot be read is told where records are compared; so is a record of no block.
        with suppress(CountFileError), unreadable(cannot_be_read(MICRODATA)):
            source = source_of(self.folder / MICRODATA, UNIT_COLUMNS, MICRODATA)
            found = self.db.execute(f"""SELECT coalesce({code_of(BLOCK_WIDTH, f"({block})")}, -1) AS block,
                count(*) AS number FROM {source} WHERE RTYPE = '4' GROUP BY 1""").fetchnumpy()
            place = places_of(found["block"], blocks)
            quarters[place[place >= 0], 1] = found["number"][place >= 0]
        return quarters

    def _faults_of(self, files: Iterable[RowsFile], blocks: BlockParts, kinds: Sequence[Areas]) -> Iterator[str]:
        """What is wrong with files that are not as they would have been written, but for the order of rows."""
        for file in files:
            place = file.path.relative_to(self.folder)
            # Counts may be of either form.
            name = (place.with_suffix("") if isinstance(file.sections[0], CountSection) else place).as_posix()
            try:
                source = source_of(file.path, file.columns, name)
                with unreadable(cannot_be_read(name)):
                    if differing := self._differing(source, file, blocks, kinds):
                        yield f"{name} does not agree with the counts of the blocks in {differing:,} rows"
                    elif odd := self._odd_intervals(source, file):
                        yield (
                            f"{name} has intervals whose ends are not in order from 0 on, or whose MOE is not half "
                            f"their width, in {odd:,} rows"
                        )
            except CountFileError as error:
                yield str(error)

    def _differing(self, source: str, file: RowsFile, blocks: BlockParts, kinds: Sequence[Areas]) -> int:
        """How many rows a file has too many or too few, in what the counts of the blocks decide."""
        # Any record may have any number, and what has no number of its own tells its area alone.
        sections = [replace(one, numbered=False) if isinstance(one, RecordSection) else one for one in file.sections]
        shown = [named(column) for column in file.counted if column != "EPNUM"]
        due = "line" if file.form.shown else "split_part(line, '|', 1) || '|' || split_part(line, '|', 2) || chr(10)"

        def lines() -> Iterator[dict[str, Column]]:
            yield {"line": Lines.of([])}
            for summed in sums_in_parts(blocks, kinds):
                for rows in (rows for section in sections for rows in section.rows(summed)):
                    text = rows.text()
                    yield {"line": Lines(text, np.append(0, np.flatnonzero(text == ord("\n")) + 1))}

        with streamed(self.db, "due", lines()):
            ((differing,),) = self.db.execute(f"""SELECT coalesce(sum(abs(times)), 0)::BIGINT FROM (
                SELECT sum(times) AS times FROM (SELECT {" || '|' || ".join(shown)} || chr(10) AS line, 1 AS times
                FROM {source} UNION ALL SELECT {due}, -1 FROM due) GROUP BY line)""").fetchall()
        return int(differing) + (self._torn(file) if file.path.is_file() else 0)

    def _torn(self, file: RowsFile) -> int:
        """How many lines have other fields than the columns: the database takes an empty one at the end for none."""
        lines = csv_rows(file.path, ["line"], separator=NO_SEPARATOR)
        fields = "length(line) - length(replace(line, '|', '')) + 1"
        query = f"SELECT count(*) FROM {lines} WHERE {fields} <> {len(file.columns)}"
        ((torn,),) = self.db.execute(query).fetchall()
        return int(torn)

    def _odd_intervals(self, source: str, file: RowsFile) -> int:
        """How many rows have ends that are no whole numbers, not in order or below 0, or another margin."""
        ends = [f"TRY_CAST({named(name)} AS BIGINT)" for name in file.ends]
        wrong = " OR ".join(
            f"NOT coalesce({lower} >= 0 AND {lower} <= {upper} AND "
            f"{margin} = ({upper} - {lower}) // 2 + ({upper} - {lower}) % 2, false)"
            for lower, upper, margin in zip(ends[::3], ends[1::3], ends[2::3], strict=True)
        )
        ((odd,),) = self.db.execute(f"SELECT count(*) FROM {source} WHERE {wrong or 'false'}").fetchall()
        return int(odd)
