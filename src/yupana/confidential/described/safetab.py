"""The counters of SafeTab: records of the Bureau's files, counted and measured as their descriptions say."""

from collections import Counter as Numbers
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np

from yupana.confidential.described.block_counts import DescribedCounts, count_shard_of_blocks, count_streams, passes
from yupana.confidential.described.counter import TablesCounter
from yupana.confidential.product_counter import MeasuredRun, Observed, Told, Validation
from yupana.confidential.records.database import numbers, require_memory
from yupana.confidential.records.declared import BYTES_OF_A_BLOCK
from yupana.confidential.records.safetab_records import (
    BARE,
    MORE_CODES,
    NOTES,
    OF_BLOCKS,
    RECORDS,
    Kind,
    open_detailed,
)
from yupana.confidential.records.sources import OpenedRecords, is_synthetic
from yupana.confidential.shards.census_edited_file import count_details_by_state
from yupana.confidential.shards.count_in_shards import CountedFolder, Cut
from yupana.confidential.tabulate.group_counts import PartCounts
from yupana.errors import InputError
from yupana.files.columns import HOUSING_UNITS, REFERENCE
from yupana.files.database import named
from yupana.plan.ledger import Ledger
from yupana.plan.plan import Plan
from yupana.privacy.entropy import Entropy
from yupana.products.described.criteria import MeasurementErrors
from yupana.products.described.description import Description
from yupana.products.described.published import PublishedGroups, PublishedSource
from yupana.products.safetab.errors import (
    IterationAccuracy,
    SafetabAccuracy,
    by_level,
    summarize,
    summarize_iterations,
)
from yupana.products.safetab.product import (
    HOUSEHOLDS,
    IN_BARE_AREAS,
    IN_NO_ITERATION,
    NOT_LISTED,
    PERSONS,
    Parameters,
)
from yupana.products.safetab.regions import BY_NAME, REGION_TYPES
from yupana.products.safetab.specification import FAMILIES
from yupana.products.safetab.totals import (
    DECLARED,
    FILE,
    PUBLISHED,
    find_totals,
    provenance,
    read_totals,
)
from yupana.products.tables import Groups, lay_out, without_negative
from yupana.progress import Stopwatch
from yupana.release.tables import ReleaseTable, RowTable, checksum, table_of, write_described

_BYTES_OF_A_LISTED: Final = 60
"""What is held of each group that the totals list."""


class SafetabCounter(TablesCounter[Parameters, list[RowTable]]):
    """What both counters do: tables are laid out as the groups pass the door."""

    stages = ("counting and adding noise", "", "")
    totals = (
        "totals that SafeTab-P has published",
        "T01001 of a release of safetab-p by the same parameters and geography",
    )
    kind: Kind
    """What is counted."""

    @property
    def is_checked(self) -> bool:
        """Tables may have hundreds of millions of rows."""
        return False

    @property
    def cut(self) -> Cut:
        """The records; what tells of areas is public."""
        return Cut({self.request.columns.applied(RECORDS[self.kind]): _BLOCK_KEY}, self.request.shards)

    @property
    def description(self) -> Description:
        """What the parameters say."""
        return self.config.description

    def folder(self, *, to_count: bool) -> CountedFolder:
        """Records, the reference file and the list of housing units if there is one."""
        config, columns = self.config, self.request.columns
        return CountedFolder(
            partial(
                open_detailed,
                kind=self.kind,
                states=config.config.states,
                codes=frozenset(config.iterations.codes),
                ethnicity_codes=config.iterations.ethnicity_codes,
                most_codes=config.config.max_race_codes,
                columns=columns,
            ),
            partial(_count, config) if to_count else None,
            of_public=OF_BLOCKS,
            gather=to_count,
            edited=None if columns.names else partial(count_details_by_state, RECORDS[self.kind]),
        )

    def public_inputs(self, records: OpenedRecords) -> dict[str, str]:
        """Codes, the reference file, the list of housing units, and totals.

        Where housing units are counted in the records of units, these are no public file and have no checksum.
        """
        folder = records.folder.absolute()  # as shards name their files
        public = [
            path.absolute()
            for file in (REFERENCE, HOUSING_UNITS)
            for path in (records.files[file.name].paths if file.name in records.files else ())
            if path.absolute().relative_to(folder).parts[0].partition(".")[0] == file.name
        ]
        return {
            **self.config.iterations.files,
            **{path.relative_to(folder).as_posix(): checksum(path) for path in public},
            **({records.published.path.name: checksum(records.published.path)} if records.published else {}),
        }

    def count(self, records: OpenedRecords, *, bounded: bool = True, keep: bool = False) -> DescribedCounts:
        """Count as areas are asked for, unless the counts are to be kept."""
        description = self.description
        records.require_valid()
        sizes = records.published.by_level if records.published else {}
        if records.counted is None:
            show_records(records.db, description)
        return count_streams(records.db, description, sizes, records.counted, bounded=bounded, keep=keep)

    def measure(self, exact: DescribedCounts, ledger: Ledger, clock: Stopwatch) -> list[RowTable]:  # noqa: ARG002
        """Measure group by group and lay the tables out.

        Where negative counts are not allowed, the cells were set to zero before they are added up here.
        """
        groups, plan = self.groups(exact, ledger, self.request.entropy), ledger.plan
        return lay_out(FAMILIES[plan.product], groups, plan, [region.name for region in REGION_TYPES])

    def groups(self, exact: DescribedCounts, ledger: Ledger, entropy: Entropy, *, cut: bool = True) -> Iterator[Groups]:
        """As of `TablesCounter`; where negative counts are not allowed, they are cut off, too."""
        found = super().groups(exact, ledger, entropy, cut=cut)
        if self.config.config.allow_negative_counts or not cut:
            return found
        return (replace(groups, counts=without_negative(groups.counts)) for groups in found)

    def write(self, folder: Path, run: MeasuredRun[OpenedRecords, DescribedCounts, list[RowTable]]) -> dict[str, Any]:
        """Every table of the product, header alone where it has no rows."""
        return write_described(folder, run.measured, self.request.format)

    def observed(self, plan: Plan, exact: DescribedCounts, errors: list[MeasurementErrors], trials: int) -> Observed:
        """Errors by level and table."""
        del exact
        levels, confidence = list(by_level(plan, errors, trials)), float(plan.confidence)
        rows = summarize(levels, confidence)
        tables = accuracy_tables(rows, summarize_iterations(levels, self.config.iterations, confidence))
        return Observed(plan.product, levels, rows, tables)


class PersonsCounter(SafetabCounter):
    """SafeTab-P: measured slice by slice of the country, as it is counted."""

    kind = "person-records"

    def tell(self, run: MeasuredRun[OpenedRecords, DescribedCounts, list[RowTable]]) -> Told:
        """States, passes and policies; how many records each policy touches."""
        records, exact, config = run.records, run.exact, self.config
        housing_units = HOUSING_UNITS.name in records.files
        parameters = PERSONS.parameters(config.config, config.iterations.sha256, housing_units=housing_units)
        notes = {
            **notes_on(records, exact),
            IN_BARE_AREAS: {kind: records.notes[note] for kind, note in BARE.items() if note in records.notes},
        }
        return Told(parameters, PERSONS.taken_as_public(config), {"notes": notes})


class HouseholdsCounter(SafetabCounter):
    """SafeTab-H: the groups that the totals list, each in the cells of the table that its total gives it."""

    kind = "household-records"

    def published(self, data: Path, out: Path | None, *, to_count: bool) -> PublishedSource | None:
        """Totals; for validation there need be none."""
        del out
        config, totals = self.config, self.request.totals
        if not (to_count or totals is not None or (data / FILE).exists()):
            return None
        source = provenance(find_totals(data, totals), config.config, config.iterations)
        # Before the table is read: it may be large.
        self.require_published(source, source.doubts, synthetic=is_synthetic(data))
        return read_totals(source, config.config, config.iterations)

    def known(self, records: OpenedRecords) -> OpenedRecords:
        """The groups that are measured, which the areas decide."""
        if records.published is None or records.findings:
            return records
        return replace(records, published=list_groups(records.db, self.description, records.published))

    def doubts(self, records: OpenedRecords) -> list[str]:
        """Why the totals may not be public, or not of these areas."""
        source: PublishedSource = records.published
        of_areas = doubts_of_areas(source)
        self.require_published(source, of_areas, synthetic=records.is_synthetic)
        doubts = (*source.doubts, *of_areas)
        return [f"the totals ({source.path.name}) may not be public, or not fit: {doubt}" for doubt in doubts]

    def look(self, records: OpenedRecords) -> Validation:
        """The findings; of valid records also whether the totals are of these areas."""
        if records.published is None:
            missing = "there are no totals to be checked; name SafeTab-P's T01001 with --totals"
            return Validation(records.findings, (missing,))
        if not records.findings:
            self.doubts(records)
        return Validation(records.findings)

    def tell(self, run: MeasuredRun[OpenedRecords, DescribedCounts, list[RowTable]]) -> Told:
        """States, passes, policies and totals; how many records each policy touches."""
        records, exact, config = run.records, run.exact, self.config
        source: PublishedSource = records.published
        left_out, empty = dict(source.left_out), {name.partition("/")[2] for name in source.empty}
        parameters = HOUSEHOLDS.parameters(
            config.config,
            config.iterations.sha256,
            {**source.told, "left_out": left_out, "levels_without_groups": [name for name in BY_NAME if name in empty]},
            housing_units=HOUSING_UNITS.name in records.files,
            own=source.taken_as_public == DECLARED,
        )
        notes = {**notes_on(records, exact), NOT_LISTED: exact.uncounted.not_listed.total()}
        log = {"totals_left_out": left_out, "notes": notes}
        return Told(parameters, (*HOUSEHOLDS.taken_as_public(config), source.taken_as_public), log)


def show_records(db: duckdb.DuckDBPyConnection, description: Description) -> None:
    """Show the records under the names that a description has; codes are their places, but for those of responses."""
    (file,) = description.files.values()
    places = {
        name: f"({name} - {of.column.words[0]})::UTINYINT" if of.column.words else name
        for name, of in file.columns.items()
    }
    answers = [column for response in file.responses.values() for column in response.columns]
    columns = places | {name: name for name in (*answers, *(column.name for column in file.blocks))}
    shown = ", ".join(f"{of} AS {named(f'{file.name}.{name}')}" for name, of in columns.items())
    db.execute(f"CREATE OR REPLACE VIEW {named(file.schema.relation)} AS SELECT {shown} FROM records")


def doubts_of_areas(totals: PublishedSource) -> list[str]:
    """Why totals stand against a release by the areas that they are of.

    Raises
    ------
    InputError
        If nothing would be measured.
    """
    if len(totals.empty) == len(totals.by_level):
        raise InputError(
            f"{totals.path}: none of its rows is of an area that GRF-C.txt and the list of housing units have, at a "
            "level with a budget, so nothing would be measured; name the totals and the geography of one census"
        )
    # Ids of AIANNH areas do not tell their states, and totals without a manifest may be of more states than the run.
    numbers = {
        base: number
        for base, number in totals.unknown.items()
        if base != "aiannh" or totals.taken_as_public == PUBLISHED
    }
    each = ", ".join(f"{base} {number:,}" for base, number in numbers.items())
    return [f"GRF-C.txt does not have the areas of {sum(numbers.values()):,} of its rows ({each})"] if numbers else []


def list_groups(db: duckdb.DuckDBPyConnection, description: Description, totals: PublishedSource) -> PublishedSource:
    """Find the groups that a run measures: those of T01001 in areas that the geography has. A function of public files.

    Where housing units are listed, areas without one are left out.

    Raises
    ------
    InputError
        If there are more groups than fit into memory.
    """
    left_out, unknown, by_level = Numbers(totals.left_out), Numbers[str](), dict[str, PublishedGroups]()
    for of_pass in passes(description):
        areas = of_pass.areas(db)
        for level in (level for levels in of_pass.levels.values() for level in levels):
            of, base = totals.by_level[level.name], BY_NAME[level.name].region.base
            here, live = (np.isin(of.area, ids[level.areas]) for ids in (areas.every, areas.ids))
            unknown[base] += int((~here).sum())
            left_out["of areas without housing units"] += int((here & ~live).sum())
            # Of the one area of everything its place is wanted, not its id.
            area = of.area[live] if description.areas[level.areas].blocks else np.zeros_like(of.area[live])
            by_level[level.name] = PublishedGroups(area, of.group[live], of.total[live])
    for name in totals.by_level.keys() - by_level:
        left_out["of levels without a budget"] += len(totals.by_level[name].total)
    (blocks,) = numbers(db, "SELECT count(*) FROM blocks")
    groups = sum(len(of.total) for of in by_level.values())
    needed = BYTES_OF_A_BLOCK * blocks + _BYTES_OF_A_LISTED * groups
    require_memory(db, needed, f"the {groups:,} groups that the totals list")
    left_out["of areas that GRF-C does not have"] += unknown.total()
    sizes = {name: by_level[level.name] for name, (_, level) in description.measured.items()}
    return replace(totals, by_level=sizes, left_out=+left_out, unknown=+unknown)


def _count(config: Parameters, records: OpenedRecords) -> list[list[PartCounts]]:
    """What is counted of a shard."""
    show_records(records.db, config.description)
    return count_shard_of_blocks(records.db, config.description)


_BLOCK_KEY: Final = ("TABBLKST", "TABBLKCOU", "TABTRACTCE")
"""Any records may lie in a shard; by their tract each meets few areas."""


def notes_on(records: OpenedRecords, exact: DescribedCounts) -> dict[str, int]:
    """How many records are not counted in full, by the policy that leaves something out. Confidential."""
    found = {name: records.notes.get(name, 0) for name in (MORE_CODES, *NOTES)}
    return {**found, IN_NO_ITERATION: exact.uncounted.in_no_group.total()}


def accuracy_tables(rows: list[SafetabAccuracy], by_iteration: list[IterationAccuracy]) -> list[ReleaseTable]:
    """The rows as accuracy.csv and accuracy_by_iteration.csv."""
    groups = ("TABLE", "REGION_TYPE", "ITERATION_LEVEL")
    margins = ("EXPECTED_MOE", "EXPERIMENTAL_MOE", "EXPERIMENTAL_MOE_UNCAPPED", "RACE_CAP_BIAS")
    sizes = ("DETAILED_ONLY", "GROUP_SIZE", "GROUPS", "SHARE", "COUNT")
    iterations = ("ITERATION_CODE", "COUNT", "MEAN_SIZE")
    return [
        table_of("accuracy", rows, (*groups, *sizes, *margins, "COVERAGE"), {"GROUP_SIZE": "size"}),
        table_of(
            "accuracy_by_iteration", by_iteration, (*groups, *iterations, *margins), {"ITERATION_CODE": "iteration"}
        ),
    ]
