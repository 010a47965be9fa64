"""The counters of SafeTab: records of the Bureau's files, counted and measured as their descriptions say."""

from collections import Counter as Numbers
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np

from yupana.confidential.described.block_counts import DescribedCounts, count_shard_of_blocks, count_streams, passes
from yupana.confidential.described.counter import TablesCounter
from yupana.confidential.product_counter import MeasuredRun, Observed, Told, Validation, not_published
from yupana.confidential.records.database import default_memory, numbers, require_memory
from yupana.confidential.records.phsafe_records import is_synthetic
from yupana.confidential.records.safetab_files import BYTES_OF_A_BLOCK
from yupana.confidential.records.safetab_records import (
    OF_BLOCKS,
    RECORDS,
    DetailedRecords,
    Kind,
    detailed_sources,
    open_detailed,
)
from yupana.confidential.records.sources import Source
from yupana.confidential.records.validation import Finding
from yupana.confidential.request import RunRequest
from yupana.confidential.shards.census_edited_file import (
    DETAILED,
    count_details_by_state,
    lies_by_state,
    without_details,
)
from yupana.confidential.shards.count_in_shards import Cut, can_be_cut, count_in_shards, within, without_records
from yupana.confidential.shards.shard_tasks import Shard, Taker, TaskLimits
from yupana.confidential.tabulate.count_groups import memory_for_gathered
from yupana.confidential.tabulate.group_counts import GatheredShards, PartCounts
from yupana.engine.engine import Engine
from yupana.errors import InputError
from yupana.files.columns import BUREAU, HOUSING_UNITS, REFERENCE, ColumnMap, RecordFile
from yupana.files.database import named
from yupana.plan.ledger import Ledger
from yupana.plan.plan import Plan
from yupana.privacy.entropy import Entropy
from yupana.privacy.sealed import Sealed
from yupana.products.described.criteria import MeasurementErrors
from yupana.products.described.description import Description
from yupana.products.described.published import PublishedGroups
from yupana.products.safetab.errors import (
    IterationAccuracy,
    SafetabAccuracy,
    by_level,
    summarize,
    summarize_iterations,
)
from yupana.products.safetab.iterations import MOST_RACE_CODES
from yupana.products.safetab.product import (
    HOUSEHOLDS,
    IN_BARE_AREAS,
    IN_NO_ITERATION,
    NOT_LISTED,
    PERSONS,
    Parameters,
)
from yupana.products.safetab.regions import BY_NAME, LEVELS, REGION_TYPES
from yupana.products.safetab.specification import FAMILIES
from yupana.products.safetab.totals import DECLARED, FILE, Provenance, Totals, find_totals, provenance, read_totals
from yupana.products.tables import Groups, lay_out, without_negative
from yupana.progress import Stopwatch
from yupana.release.tables import ReleaseTable, RowTable, checksum, table_of, write_described

_MORE_CODES: Final = "records_with_more_race_codes"
_BYTES_OF_A_LISTED: Final = 60
"""What is held of each group that the totals list."""


@dataclass(frozen=True, eq=False)
class PublishedTotals:
    """T01001 as SafeTab-P published it, or somebody says so; public.

    Attributes
    ----------
    path : Path
    source : Provenance
    totals : Totals
    doubts : tuple of str
        Why it stands against a release that it may not be public, or not of the same groups.
    """

    path: Path
    source: Provenance
    totals: Totals
    doubts: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Listed:
    """The groups of T01001 in areas of the geography, and how many rows of it are left out.

    Attributes
    ----------
    sizes : mapping of ``table/level`` to PublishedGroups
        Of every table and level with a budget.
    empty : tuple of str
        Levels that have a budget, but no group.
    left_out : mapping of reason to int
    unknown : mapping of base to int
        How many rows are of areas that the reference file does not have, by kind of area.
    """

    sizes: Mapping[str, PublishedGroups]
    empty: tuple[str, ...]
    left_out: Mapping[str, int]
    unknown: Mapping[str, int]


@dataclass(frozen=True, eq=False)
class SafetabRecords:
    """Records, opened; of SafeTab-H beside the totals that say which groups are counted.

    Attributes
    ----------
    records : DetailedRecords
    config : Parameters
    published : PublishedTotals or None
        None where there are none yet, for validation alone.
    """

    records: DetailedRecords
    config: Parameters
    published: PublishedTotals | None = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Rules that the records break."""
        return self.records.findings

    @property
    def folder(self) -> Path:
        """Where they lie."""
        return self.records.folder

    @property
    def files(self) -> Mapping[str, Source]:
        """By file."""
        return self.records.files

    @property
    def totals(self) -> PublishedTotals:
        """The totals of whoever counts."""
        if self.published is None:
            raise RuntimeError("households cannot be counted without totals")
        return self.published

    @cached_property
    def listed(self) -> Listed:
        """The groups that are measured; of valid records."""
        return list_groups(self.records.db, self.config.description, self.totals.totals)


class SafetabCounter(TablesCounter[Parameters, SafetabRecords, list[RowTable]]):
    """What both counters do: tables are laid out as the groups pass the door."""

    stages = ("counting and adding noise", "", "")
    kind: Kind
    """What is counted."""

    def is_checked(self, config: Parameters) -> bool:
        """Tables may have hundreds of millions of rows."""
        del config
        return False

    def cut_files(self, config: Parameters, columns: ColumnMap) -> tuple[RecordFile, ...]:
        """The records; what tells of areas is public."""
        del config
        return (columns.applied(RECORDS[self.kind]),)

    def description(self, config: Parameters) -> Description:
        """What the parameters say."""
        return config.description

    def without_noise(self, config: Parameters) -> Parameters:
        """Infinite budgets for all that is measured."""
        return replace(config, config=config.config.without_noise())

    def published(
        self, config: Parameters, data: Path, request: RunRequest, *, to_count: bool
    ) -> PublishedTotals | None:
        """The totals that decide the detail of tables, where these are read."""
        del config, data, request, to_count
        return None

    @contextmanager
    def opened(
        self, config: Parameters, data: Path, request: RunRequest, out: Path | None, *, to_count: bool
    ) -> Iterator[SafetabRecords]:
        """Open records, the reference file, the list of housing units if there is one, and totals.

        On records that are not synthetic, totals that may not be public are refused.
        """
        del out
        published = self.published(config, data, request, to_count=to_count)
        checked = CheckedDetails(self.kind, config, request.columns, to_count=to_count)
        memory = memory_for_gathered(request.memory or default_memory())
        with GatheredShards(memory) as gathered, checked.open_as_asked(data, request, gathered) as records:
            counted = records if records.counted is None else replace(records, counted=tuple(gathered.each))
            yield SafetabRecords(counted, config, published)

    def public_inputs(self, records: SafetabRecords, config: Parameters) -> dict[str, str]:
        """Codes, the reference file, the list of housing units, and totals.

        Where housing units are counted in the records of units, these are no public file and have no checksum.
        """
        folder, files = records.folder, records.files
        public = [
            path
            for name, file in (("GRF-C", REFERENCE), ("housing-units", HOUSING_UNITS))
            for path in (files[name].paths if name in files else ())
            if path.relative_to(folder).parts[0] in file.file_names
        ]
        return {
            **config.iterations.files,
            **{path.relative_to(folder).as_posix(): checksum(path) for path in public},
            **({records.published.path.name: checksum(records.published.path)} if records.published else {}),
        }

    def count(
        self,
        records: SafetabRecords,
        config: Parameters,
        plan: Plan,
        *,
        bounded: bool = True,
        keep: bool = False,
    ) -> DescribedCounts:
        """Count as areas are asked for, unless the counts are to be kept."""
        del plan
        description, of = config.description, records.records
        sizes = records.listed.sizes if records.published else {}
        if of.counted is None:
            show_records(of.db, description)
        return count_streams(of.db, description, sizes, of.counted, bounded=bounded, keep=keep)

    def measure(
        self, exact: DescribedCounts, config: Parameters, ledger: Ledger, request: RunRequest, clock: Stopwatch
    ) -> list[RowTable]:
        """Measure group by group and lay the tables out.

        Where negative counts are not allowed, the cells were set to zero before they are added up here.
        """
        del clock
        groups, plan = self.groups(exact, ledger, config, request.entropy), ledger.plan
        return lay_out(FAMILIES[plan.product], groups, plan, [region.name for region in REGION_TYPES])

    def groups(
        self, exact: DescribedCounts, ledger: Ledger, config: Parameters, entropy: Entropy, *, cut: bool = True
    ) -> Iterator[Groups]:
        """As of `TablesCounter`; where negative counts are not allowed, they are cut off, too."""
        found = super().groups(exact, ledger, config, entropy, cut=cut)
        if config.config.settings.allow_negative_counts or not cut:
            return found
        return (replace(groups, counts=without_negative(groups.counts)) for groups in found)

    def write(
        self, folder: Path, run: MeasuredRun[Parameters, SafetabRecords, DescribedCounts, list[RowTable]]
    ) -> dict[str, dict[str, Any]]:
        """Every table of the product, header alone where it has no rows."""
        return write_described(folder, run.measured, run.request.format)

    def observed(
        self, config: Parameters, plan: Plan, exact: DescribedCounts, errors: list[MeasurementErrors], trials: int
    ) -> Observed:
        """Errors by level and table."""
        del exact
        levels, confidence = list(by_level(plan, errors, trials)), float(plan.confidence)
        rows = summarize(levels, confidence)
        tables = accuracy_tables(rows, summarize_iterations(levels, config.iterations, confidence))
        return Observed(plan.product, levels, rows, tables)


class PersonsCounter(SafetabCounter):
    """SafeTab-P: measured slice by slice of the country, as it is counted."""

    kind = "person-records"

    def tell(self, run: MeasuredRun[Parameters, SafetabRecords, DescribedCounts, list[RowTable]]) -> Told:
        """States, passes and policies; how many records each policy touches."""
        records, exact, config = run.records, run.exact, run.config
        of = records.records
        parameters = PERSONS.parameters(config.config, config.iterations.sha256, housing_units=of.has_housing_units)
        notes = {
            **notes_on(of, config),
            IN_NO_ITERATION: exact.uncounted.in_no_group.total(),
            IN_BARE_AREAS: dict(of.without_housing_units),
        }
        return Told(parameters, PERSONS.taken_as_public(config), {"notes": notes})


class HouseholdsCounter(SafetabCounter):
    """SafeTab-H: the groups that the totals list, each in the cells of the table that its total gives it."""

    takes = frozenset({"totals"})
    kind = "household-records"

    def published(
        self, config: Parameters, data: Path, request: RunRequest, *, to_count: bool
    ) -> PublishedTotals | None:
        """Totals; for validation there need be none."""
        if not (to_count or request.totals is not None or (data / FILE).exists()):
            return None
        return read_published(find_totals(data, request.totals), config, data)

    def doubts(self, records: SafetabRecords, config: Parameters) -> list[str]:
        """Why the totals may not be public, or not of these areas."""
        del config
        return [*records.totals.doubts, *reasons_against_areas(records)]

    def look(self, records: SafetabRecords, config: Parameters, request: RunRequest) -> Validation:
        """The findings; of valid records also whether the totals are of these areas."""
        del request
        if records.published is None:
            missing = "there are no totals to be checked; name SafeTab-P's T01001 with --totals"
            return Validation(records.findings, (missing,))
        if not records.findings:
            self.doubts(records, config)
        return Validation(records.findings)

    def tell(self, run: MeasuredRun[Parameters, SafetabRecords, DescribedCounts, list[RowTable]]) -> Told:
        """States, passes, policies and totals; how many records each policy touches."""
        records, exact, config = run.records, run.exact, run.config
        listed, source = records.listed, records.totals.source
        left_out = dict(listed.left_out)
        parameters = HOUSEHOLDS.parameters(
            config.config,
            config.iterations.sha256,
            {**source.described, "left_out": left_out, "levels_without_groups": list(listed.empty)},
            housing_units=records.records.has_housing_units,
            own=source.taken_as_public == DECLARED,
        )
        notes = {
            **notes_on(records.records, config),
            IN_NO_ITERATION: exact.uncounted.in_no_group.total(),
            NOT_LISTED: exact.uncounted.not_listed.total(),
        }
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


def read_published(path: Path, config: Parameters, data: Path) -> PublishedTotals:
    """Read totals, and say where they come from and why that stands against a release of these data.

    Raises
    ------
    InputError
        If they are no table of totals, or the records are not synthetic and the totals may not be public.
    """
    settings, iterations = config.config.settings, config.iterations
    source = provenance(path, settings, iterations)
    doubts = _reasons(path, source.doubts, data)
    return PublishedTotals(path, source, read_totals(path, settings, iterations), tuple(doubts))


def reasons_against_areas(households: SafetabRecords) -> list[str]:
    """Why totals stand against a release of these data by the areas that they are of.

    Raises
    ------
    InputError
        If nothing would be measured; or if the records are not synthetic and the geography lacks some areas.
    """
    listed, totals = households.listed, households.totals.path
    if not any(len(of.total) for of in listed.sizes.values()):
        raise InputError(
            f"{totals}: none of its rows is of an area that GRF-C.txt and the list of housing units have, at a level "
            "with a budget, so nothing would be measured; name the totals and the geography of one census"
        )
    # Ids of AIANNH areas do not tell their states, and totals without a manifest may be of more states than the run.
    numbers = {base: n for base, n in listed.unknown.items() if base != "aiannh" or households.totals.source.is_vouched}
    each = ", ".join(f"{base} {number:,}" for base, number in numbers.items())
    doubt = f"GRF-C.txt does not have the areas of {sum(numbers.values()):,} of its rows ({each})"
    return _reasons(totals, [doubt] if numbers else [], households.records.folder)


def _reasons(totals: Path, doubts: Sequence[str], data: Path) -> list[str]:
    """Why the output may not be released although its own noise is sound; refused on records that are not synthetic."""
    if doubts and not is_synthetic(data):
        what = "T01001 of a release of safetab-p by the same parameters and geography"
        raise not_published(totals, "totals that SafeTab-P has published", doubts, what)
    return [f"the totals ({totals.name}) may not be public, or not fit: {doubt}" for doubt in doubts]


def list_groups(db: duckdb.DuckDBPyConnection, description: Description, totals: Totals) -> Listed:
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
            of, base = totals.by_level[BY_NAME[level.name]], BY_NAME[level.name].region.base
            here, live = (np.isin(of.area, ids[level.areas]) for ids in (areas.every, areas.ids))
            unknown[base] += int((~here).sum())
            left_out["of areas without housing units"] += int((here & ~live).sum())
            # Of the one area of everything its place is wanted, not its id.
            area = of.area[live] if description.areas[level.areas].blocks else np.zeros_like(of.area[live])
            by_level[level.name] = PublishedGroups(area, of.group[live], of.total[live])
    for known, of in totals.by_level.items():
        if known.name not in by_level:
            left_out["of levels without a budget"] += len(of.total)
    (blocks,) = numbers(db, "SELECT count(*) FROM blocks")
    groups = sum(len(of.total) for of in by_level.values())
    needed = BYTES_OF_A_BLOCK * blocks + _BYTES_OF_A_LISTED * groups
    require_memory(db, needed, f"the {groups:,} groups that the totals list")
    left_out["of areas that GRF-C does not have"] += unknown.total()
    sizes = {name: by_level[level.name] for name, (_, level) in description.measured.items()}
    empty = tuple(level.name for level in LEVELS if level.name in by_level and not len(by_level[level.name].total))
    return Listed(sizes, empty, +left_out, +unknown)


@dataclass(frozen=True, slots=True)
class CheckedDetails:
    """How records of the states of all passes are opened, checked and counted: in one piece, or in shards.

    Attributes
    ----------
    kind : Kind
    config : Parameters
    columns : ColumnMap
    to_count : bool
        Whether shards are counted, too.
    """

    kind: Kind
    config: Parameters
    columns: ColumnMap = BUREAU
    to_count: bool = True

    @contextmanager
    def open(self, data: Path, memory: int | None) -> Iterator[DetailedRecords]:
        """Open and check a folder in ``memory`` bytes."""
        iterations = self.config.iterations
        with open_detailed(
            data,
            self.kind,
            states=self.config.config.settings.states,
            codes=frozenset(iterations.codes),
            ethnicity_codes=iterations.ethnicity_codes,
            memory=memory,
            columns=self.columns,
        ) as records:
            yield records

    @contextmanager
    def open_as_asked(self, data: Path, request: RunRequest, taker: Taker) -> Iterator[DetailedRecords]:
        """Open a folder as a request has it.

        Where there is an engine, the records of each shard are counted; ``taker`` takes the counts.
        """
        cut = Cut({self.columns.applied(RECORDS[self.kind]): _BLOCK_KEY}, request.shards)
        taker = _OfParts(taker)
        if request.engine is not None and not self.columns.names and lies_by_state(data, DETAILED):
            with self._by_state(request.engine, data, request, taker) as records:
                yield records
        elif request.engine is not None and can_be_cut(data, cut):
            task = partial(_count_shard, self)
            found = count_in_shards(request.engine, data, cut, task, request.memory, request.progress, taker)
            with without_records(data, cut) as public, self.open(public, request.memory) as records:
                files = dict(records.files) | {"records": found.files[self.kind]}
                there = {name: within(data, public, source) for name, source in files.items()}
                yield replace(_summed(records, found.parts), folder=data, files=there, findings=found.findings)
        else:
            with self.open(data, request.memory) as records:
                yield records

    @contextmanager
    def _by_state(self, engine: Engine, data: Path, request: RunRequest, taker: Taker) -> Iterator[DetailedRecords]:
        """Have the edited file counted; where a rule is broken, open it in one piece, to tell of all files."""
        limits, schema = TaskLimits.on(engine, request.memory), RECORDS[self.kind]
        codes = frozenset(self.config.iterations.codes)
        shard = Shard(data.absolute(), {}, partial(_count_shard, self), limits, None, {})
        found = count_details_by_state(engine, request.shards, shard, schema, codes, request.progress, taker)
        if found is None:
            taker.forget()
            with self.open(data, request.memory) as records:
                yield records
            return
        with (
            without_details(data, schema, found.stands, limits) as public,
            self.open(public, request.memory) as records,
        ):
            yield replace(_summed(records, found.parts), folder=data, files=detailed_sources(data), findings=())


def _summed(records: DetailedRecords, parts: Sequence["_DetailedPart"]) -> DetailedRecords:
    """Public files, opened, with what shards told of the records."""
    notes, without = Numbers(records.notes), Numbers(records.without_housing_units)
    for part in parts:
        notes += part.notes
        without += part.without_housing_units
    return replace(
        records,
        notes=dict.fromkeys(records.notes, 0) | notes,
        without_housing_units=dict.fromkeys(records.without_housing_units, 0) | without,
        counted=tuple(part.counts for part in parts),
    )


_BLOCK_KEY: Final = ("TABBLKST", "TABBLKCOU", "TABTRACTCE")
"""Any records may lie in a shard; by their tract each meets few areas."""


@dataclass(frozen=True, slots=True, repr=False)
class _DetailedPart(Sealed):
    """What a shard tells: what was counted, and notes on its records."""

    counts: list[list[PartCounts]]
    notes: Numbers[str]
    without_housing_units: Numbers[str]


@dataclass(frozen=True, slots=True)
class _OfParts:
    """Has the counts of parts taken."""

    counts: Taker

    def take(self, part: _DetailedPart) -> _DetailedPart:
        return replace(part, counts=self.counts.take(part.counts))

    def forget(self) -> None:
        self.counts.forget()


def _count_shard(
    checked: CheckedDetails, folder: Path, memory: int
) -> tuple[tuple[Finding, ...], _DetailedPart | None]:
    with checked.open(folder, memory) as records:
        if records.findings:
            return records.findings, None
        notes = notes_on(records, checked.config)
        of_records = Numbers({name: number for name, number in notes.items() if name not in OF_BLOCKS})
        counts: list[list[PartCounts]] = []
        if checked.to_count:
            description = checked.config.description
            show_records(records.db, description)
            counts = count_shard_of_blocks(records.db, description)
        return (), _DetailedPart(counts, of_records, Numbers(records.without_housing_units))


def notes_on(records: DetailedRecords, config: Parameters) -> dict[str, int]:
    """How many records are not counted in full, by the policy that leaves something out. Confidential."""
    if records.counted is not None:
        return {_MORE_CODES: 0, **records.notes}
    more = config.config.settings.max_race_codes + 1
    query = f"SELECT count_if(QRACE{more} <> 0) FROM records" if more <= MOST_RACE_CODES else "SELECT 0"
    return {**records.notes, _MORE_CODES: numbers(records.db, query)[0]}


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
