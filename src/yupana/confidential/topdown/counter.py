"""TopDown's counter: from counts of blocks to noisy measurements, and to consistent counts of all geounits."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from yupana.confidential.described.records import cut_of, forms_of
from yupana.confidential.product_counter import Counter, MeasuredRun, Observed, Told, input_checksums
from yupana.confidential.records.database import scratch_folder
from yupana.confidential.records.foreign_files import RecordForms
from yupana.confidential.records.validation import Finding
from yupana.confidential.request import Layout, RunRequest
from yupana.confidential.tabulate.block_histograms import files_of_microdata
from yupana.confidential.topdown.accuracy import accuracy_table, observe_runs
from yupana.confidential.topdown.estimate import Estimated, check_run, estimate
from yupana.confidential.topdown.resources import (
    memory_for_intervals,
    memory_for_replicates,
    needs_of_full_information,
    require_disk,
)
from yupana.confidential.topdown.world import World, open_world, public_checksums
from yupana.errors import ConfigError
from yupana.files.columns import RecordFile
from yupana.files.temporary import temporary_folder
from yupana.geography.gazetteer import AreaNames, read_names
from yupana.geography.published import Areas
from yupana.plan.ledger import Ledger
from yupana.plan.plan import Plan
from yupana.privacy.exact import INFINITE
from yupana.products.topdown.described import DescribedConfiguration
from yupana.products.topdown.outputs import check_labels, describe_files, write_outputs, write_spine
from yupana.products.topdown.pl.areas import check_states
from yupana.products.topdown.product import UNUSUAL_BLOCKS, parameters, taken_as_public
from yupana.products.topdown.tables import dataset_name
from yupana.products.topdown.verify import NOISY, SYSTEM
from yupana.progress import Stopwatch
from yupana.release.folder import write_manifest
from yupana.topdown.budget import Spending, spend
from yupana.topdown.configuration import Configuration
from yupana.topdown.descent.checkpoint import BatchCheckpoint
from yupana.topdown.descent.estimate import failsafe_told
from yupana.topdown.descent.measurements import StoredMeasurements
from yupana.topdown.histogram import whole
from yupana.topdown.interval_terms import (
    NO_INTERVALS,
    REPLICATES,
    IntervalMethod,
    IntervalTerms,
    check_terms,
    no_intervals,
    tells_measured,
)
from yupana.topdown.intervals import CountIntervals, ExactIntervals, MonteCarloIntervals, ReleasedCounts, replicates
from yupana.topdown.nmf.writing import check_writable, write_measurement_files, write_noisy
from yupana.topdown.tree.full_information import FullInformation
from yupana.topdown.tree.intervals import least_squares_intervals, write_intervals

_IN_FULL: Final = "noisy measurements"


@dataclass(frozen=True, eq=False)
class _CountedBlocks:
    """What a run knows before it measures."""

    config: Configuration
    data: Path
    world: World  # geography, spine and exact counts
    # where a run keeps what it has drawn, so that it can go on; None where none is made
    checkpoint: BatchCheckpoint | None
    request: RunRequest
    names: AreaNames | None = None  # what areas are called; read before anything is drawn
    notes: tuple[str, ...] = ()  # how codes of their file were changed
    findings: tuple[Finding, ...] = ()  # empty: blocks that break a rule are not opened

    @cached_property
    def spending(self) -> Spending:
        """What is measured on this spine."""
        return spend(self.config, self.world.spine)

    def intervals(self, confidence: Fraction) -> IntervalTerms:
        """How those of its counts are found."""
        return IntervalTerms(self.method, confidence, self.request.replicates or REPLICATES)

    @property
    def method(self) -> IntervalMethod:
        """What finds them, whatever their confidence."""
        return self.request.intervals or ("least-squares" if self.no_intervals is None else "none")

    @cached_property
    def no_intervals(self) -> str | None:
        """Why there are none where none were named; None if there are."""
        if self.begun_in_full is False and self.config.budget != INFINITE:
            return f"{NO_INTERVALS}: the run was begun without them, and does not draw all that they are made of"
        return no_intervals(self.spending.answers, self.takes_for_intervals, self.request.memory)

    @cached_property
    def begun_in_full(self) -> bool | None:
        """Whether the run that goes on was to draw everything when it began; None of a run that begins.

        By default that follows from ``memory``, which may be another when a run goes on.
        """
        if not self.request.resume or self.checkpoint is None:
            return None
        found = self.checkpoint.told(_IN_FULL)
        return found if isinstance(found, bool) else None

    @property
    def takes_for_intervals(self) -> int:
        """Bytes of memory that a run with intervals by least squares takes."""
        spine, published = self.world.spine, self.world.published
        areas = {level.name: spine.tree.units(number) for number, level in enumerate(spine.levels)}
        if published is not None:
            areas |= {f"published {kind}": len(labels.labels) for kind, labels in published.kinds.items()}
            areas[spine.levels[-1].name] = len(published.block)
        return memory_for_intervals(areas, self.config.schema.cells)

    def check_memory(self) -> None:
        """Refuse intervals that were asked for and do not fit into the memory that was named."""
        method, memory = self.request.intervals, self.request.memory
        if memory is None or method is None or method == "none":
            return
        words, needed = "least squares", self.takes_for_intervals
        if method == "monte-carlo":
            replicates, blocks = self.request.replicates or REPLICATES, len(self.world.spine.blocks)
            words, needed = "Monte Carlo", memory_for_replicates(blocks, self.config.schema.cells, replicates)
        if memory < needed:
            raise ConfigError(
                f"--memory: {memory // 10**6:,} MB are too little for intervals by {words}, which need "
                f"{-(-needed // 10**6):,} MB; ask for --intervals none: `yupana topdown intervals` makes them later"
            )

    def check_disk(self) -> None:
        """Refuse full information where the disk has no room for what it keeps until the release is written."""
        if self.request.estimator == "topdown" or self.checkpoint is None:
            return
        tree = self.world.spine.tree
        units = sum(tree.units(number) for number in range(len(self.world.spine.levels) - 1))
        kept, scratch, cells = self.checkpoint.folder, temporary_folder(), self.config.schema.cells
        require_disk(needs_of_full_information(self.spending.answers, units, cells, kept, scratch))

    @property
    def in_full(self) -> bool:
        """Whether everything is drawn, for noisy measurements that are written or intervals that are made of them."""
        by_least_squares = self.method == "least-squares"
        asked = bool(self.request.layouts) or (by_least_squares and self.config.budget != INFINITE)
        return asked or (self.request.intervals is None and self.begun_in_full is True)

    @property
    def kept(self) -> BatchCheckpoint:
        """The checkpoint of whoever measures."""
        if self.checkpoint is None:
            raise RuntimeError("a run of TopDown keeps what it draws")
        return self.checkpoint


_Run: TypeAlias = MeasuredRun[_CountedBlocks, _CountedBlocks, Estimated | None]


class TopdownCounter(Counter[Configuration, _CountedBlocks, _CountedBlocks, Estimated | None]):
    """Draws as the estimate asks, or all beforehand, and keeps every draw until the release stands.

    Of exact counts nothing is estimated: they are those of the world.
    """

    stages = ("", "", "checking")
    draws_at_the_door = False
    reads_on = True  # exact counts lie on scratch

    @property
    def frames(self) -> Mapping[str, str]:
        """The files of a description, or those of a census."""
        if isinstance(self.config, DescribedConfiguration):
            return dict.fromkeys((file.name for file in self.config.description.record_files), "parquet")
        return super().frames

    @property
    def forms(self) -> RecordForms:
        """The files of a description; those of a census are as the Bureau writes them."""
        if isinstance(self.config, DescribedConfiguration):
            return forms_of(self.config.description, self.request.columns)
        return super().forms

    @property
    def cut_files(self) -> tuple[RecordFile, ...]:
        """Files of a description, or microdata, if there is any and no histogram."""
        if isinstance(self.config, DescribedConfiguration):
            return tuple(cut_of(self.config.description, self.request.columns, None).keys)
        return files_of_microdata(self.config.schema, self.request.columns)

    @contextmanager
    def open(
        self, data: Path, clock: Stopwatch, *, out: Path | None = None, kept: Path | None = None, to_count: bool = True
    ) -> Iterator[_CountedBlocks]:
        """Read geography and records, and build the spine or read it."""
        del to_count, out
        config, request = self.config, self.request
        check_labels(config.schema)
        check_terms(request.intervals, request.replicates)
        checkpoint = None if kept is None else BatchCheckpoint(kept)
        notes: list[str] = []
        names = None if request.names is None else read_names(request.names, request.encoding, notes)
        with scratch_folder() as scratch:
            world = open_world(config, data, request, clock, scratch)
            yield _CountedBlocks(config, data, world, checkpoint, request, names, tuple(notes))

    def public_inputs(self, records: _CountedBlocks) -> dict[str, str]:
        """The reference file, housing units with facilities, and the spine where it is given."""
        return public_checksums(records.data, records.world, self.request)

    def count(self, records: _CountedBlocks, *, bounded: bool = True, keep: bool = False) -> _CountedBlocks:  # noqa: ARG002
        """The records are counts of blocks: they were counted when they were opened."""
        return records

    def planned(self, records: _CountedBlocks, plan: Plan) -> Plan:
        """The plan with the shares of this spine, whose units may have given theirs to others."""
        return replace(records.spending.plan, confidence=plan.confidence, margins=plan.margins)

    def inputs(self, records: _CountedBlocks) -> dict[str, str]:
        """The records, and all public files."""
        return input_checksums(records.data, records.world.files) | self.public_inputs(records)

    def terms(self, records: _CountedBlocks) -> dict[str, Any]:
        """The estimator, the spine, and whether everything is drawn."""
        estimator = self.request.estimator
        return {
            # The posterior begins with full information and draws no other noise, so either goes on with the other.
            "estimator": "full-information" if estimator == "posterior" else estimator,
            "spine": records.world.given,
            _IN_FULL: records.in_full,
        }

    def check_measurable(self, records: _CountedBlocks) -> None:
        """Refuse what cannot be estimated or written.

        Raises
        ------
        ConfigError
            If the configuration does not go with the spine, or the files asked for cannot be made of it.
        OutputError
            If there is too little room on the disk.
        """
        check_run(self.config, records.world, self.request)
        records.check_memory()
        records.check_disk()
        if "nmf" in self.request.layouts:
            check_writable(self.config, records.world.spine)
        if self.request.pl is not None:
            check_states(records.world.published)

    def measure(self, exact: _CountedBlocks, ledger: Ledger, clock: Stopwatch) -> Estimated:
        """Measure and estimate, from the root down; what the checkpoint holds is taken from there."""
        world, spending, in_full = exact.world, exact.spending, exact.in_full
        found = estimate(self.config, world, spending, ledger, exact.kept, self.request, clock, in_full=in_full)
        is_told = isinstance(found.evidence, FullInformation) and tells_measured(exact.method, spending.answers)
        return found if is_told else replace(found, evidence=None)

    def exact(self, exact: _CountedBlocks, ledger: Ledger, clock: Stopwatch) -> None:  # noqa: ARG002
        """The counts of the blocks themselves. Nothing is measured and nothing estimated."""
        clock.start("writing the counts")

    def tell(self, run: _Run) -> Told:
        """The configuration, how nodes were solved, and which went through the failsafe; how many records there are."""
        records, measured, config, request = run.records, run.measured, self.config, self.request
        world, terms = records.world, records.intervals(run.plan.confidence)
        remarks = [*world.remarks, *records.notes]
        others: dict[str, Any] = {"system": SYSTEM}
        if measured is None:
            terms = replace(terms, method="none")
        else:
            descent = measured.descent
            others |= {"failsafe": failsafe_told(world.spine, descent), "solvers": descent.solvers}
            if request.intervals is None and records.no_intervals is not None:
                remarks.append(records.no_intervals)
            if descent.posterior is not None:
                remarks.append(UNUSUAL_BLOCKS)
                others["posterior"] = descent.posterior.told()
        told = parameters(
            config,
            spine=config.spine_kind,
            estimator=request.estimator,
            intervals=terms.as_json(),
            areas={one.kind: {"file": one.file, "areas": one.areas} for one in world.assignments},
            remarks=remarks,
        )
        public = taken_as_public(config, given=bool(world.given), facilities=world.facilities is not None)
        log = {"records": world.exact.records}
        encoded = {} if request.encoding is None else {"encoding": request.encoding}
        of_intervals = {} if measured is None else terms.options
        options = {"estimator": request.estimator, **encoded, **of_intervals}
        return Told(told, tuple(public), log, options, others)

    def write(self, folder: Path, run: _Run) -> dict[str, Any]:
        """The spine, counts, tabulation, records and published tables, with intervals."""
        records, measured, config = run.records, run.measured, self.config
        world, asked, terms = records.world, self.request, records.intervals(run.plan.confidence)
        intervals = None
        if measured is not None and terms.method != "none":
            intervals = partial(_intervals, records, measured, terms)
        # Nobody could make replicates of the release without what its counts were made of beside measurements.
        listed = world.facilities if config.group_quarters or asked.estimator == "posterior" else None
        rows = write_spine(folder, world.spine, listed) | write_outputs(
            folder,
            world.spine,
            world.published,
            config.schema,
            world.exact.blocks if measured is None else measured.descent.counts[-1],
            facilities=world.facilities,
            names=records.names,
            microdata=asked.microdata,
            fmt=asked.format,
            intervals=intervals,
        )
        evidence = measured and measured.evidence
        if isinstance(evidence, FullInformation):
            rows |= write_intervals(folder, records.world.spine, config.schema, config.recodes, evidence)
        return describe_files(folder, rows)

    def write_noisy(
        self,
        folder: Path,
        layout: Layout,
        run: _Run,
        manifest: Mapping[str, Any],
        clock: Stopwatch,
    ) -> None:
        """Write every measurement of the plan; all of them were drawn."""
        clock.start("writing the noisy measurements")
        records, measured, config = run.records, run.measured, self.config
        world, stored = records.world, StoredMeasurements(records.spending.levels, records.kept)
        if measured is None:
            raise RuntimeError("nothing was measured")
        if layout == "nmf":
            dataset = dataset_name(config, world.spine)
            written = write_measurement_files(folder, dataset, measured.premises, stored, world.facilities)
        else:
            written = write_noisy(folder, world.spine, config.schema, config.recodes, stored)
        # The codebook is of the tables of the release.
        others = {key: value for key, value in manifest.items() if key != "reports"}
        write_manifest(folder, {**others, "system": NOISY, "tables": describe_files(folder, written)})

    def observe(self, plan: Plan, data: Path, trials: int) -> Observed:
        """Errors of counts in all kinds of areas, by query and population."""
        rows = observe_runs(self.config, data, trials, self.request)
        told = {"trials": trials}
        return Observed(plan.product, rows, rows, [accuracy_table(rows)], told)


def _intervals(
    records: _CountedBlocks, estimated: Estimated, terms: IntervalTerms, areas: list[Areas]
) -> CountIntervals:
    """Make ready what finds the intervals of published areas: from what was drawn, or from the counts alone."""
    config, request, spine = records.config, records.request, records.world.spine
    counts = whole(estimated.descent.counts[-1])
    if config.budget == INFINITE:
        return ExactIntervals.of(counts, areas)
    if terms.method == "least-squares":
        stored = StoredMeasurements(records.spending.levels, records.kept)
        known = estimated.premises.known
        return least_squares_intervals(stored, spine, config.schema, known, areas, terms.confidence)
    published = ReleasedCounts(config, spine, records.world.facilities, request.estimator, counts)
    # Of a seed a branch of its own; else new coins like all.
    source = request.entropy.branch("replicates")
    made = replicates(published, terms.replicates, source, request.progress)
    return MonteCarloIntervals.of(counts, made, areas, terms.confidence)
