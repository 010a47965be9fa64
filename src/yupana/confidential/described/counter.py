"""The counter of described tables: from record files to noisy counts, and what is observed of these."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

import numpy as np

from yupana.arrays import Flags, Ints
from yupana.confidential.accuracy import Seen, observe_at_the_door, sources_of_trials
from yupana.confidential.described.block_counts import (
    DescribedCounts,
    count_shard_of_blocks,
    count_streams,
)
from yupana.confidential.described.records import cut_of, forms_of, open_described
from yupana.confidential.described.tabulate import merge_tabulated, tabulate
from yupana.confidential.product_counter import (
    Counter,
    MeasuredRun,
    Observed,
    Told,
    input_checksums,
)
from yupana.confidential.records.foreign_files import RecordForms
from yupana.confidential.records.sources import OpenedRecords, is_synthetic
from yupana.confidential.records.validation import require_none
from yupana.confidential.request import check_outside
from yupana.confidential.shards.count_in_shards import CountedFolder, Cut
from yupana.errors import InputError
from yupana.files.columns import RecordFile
from yupana.plan.ledger import Ledger
from yupana.plan.plan import Plan
from yupana.privacy.entropy import Entropy
from yupana.products.described.criteria import (
    TESTED,
    Criterion,
    DescribedAccuracy,
    MeasurementErrors,
    predictions,
    rows_of,
    summarize,
)
from yupana.products.described.description import Description
from yupana.products.described.plan import coarsest_name, families_of, published_tables, total_name
from yupana.products.described.product import LEFT_OUT, SYSTEM, TABLES, limits
from yupana.products.described.published import PublishedSource, read_source, tables_by_size
from yupana.products.tables import Groups
from yupana.progress import Stopwatch
from yupana.release.manifest import MANIFEST
from yupana.release.tables import ReleaseTable, checksum, table_of, write_described

D = TypeVar("D")
M = TypeVar("M")


class TablesCounter(Counter[D, OpenedRecords, DescribedCounts, M]):
    """What counters of tables have in common, however their records are opened and counted."""

    stages = ("counting", "adding noise", "")

    totals: ClassVar[tuple[str, str]]
    """Where published totals decide what is measured: what a table must be, and what to name else."""

    @property
    @abstractmethod
    def description(self) -> Description:
        """What the configuration says, as a description."""

    @property
    @abstractmethod
    def cut(self) -> Cut:
        """How an engine cuts the records into shards."""

    @property
    def cut_files(self) -> tuple[RecordFile, ...]:
        """The files that can be cut."""
        return tuple(self.cut.keys)

    @abstractmethod
    def folder(self, *, to_count: bool) -> CountedFolder:
        """How the records are opened, and counted by an engine."""

    def published(self, data: Path, out: Path | None, *, to_count: bool) -> PublishedSource | None:  # noqa: ARG002
        """The totals that decide the detail of tables, if there are such tables and nothing forbids to take them."""
        return None

    def known(self, records: OpenedRecords) -> OpenedRecords:
        """Records with what is known once all of them are opened."""
        return records

    @contextmanager
    def open(
        self, data: Path, clock: Stopwatch, *, out: Path | None = None, kept: Path | None = None, to_count: bool = True
    ) -> Iterator[OpenedRecords]:
        """Open and check the records that the configuration speaks of, and totals."""
        del kept
        clock.start("reading and checking the records")
        source = self.published(data, out, to_count=to_count)
        with self.folder(to_count=to_count).opened(data, self.cut, self.request) as records:
            yield self.known(replace(records, published=source))

    def require_published(self, source: PublishedSource, doubts: Sequence[str], *, synthetic: bool) -> None:
        """Refuse totals that decide what is measured of records that may be real, if there are doubts.

        Raises
        ------
        InputError
        """
        if doubts and not synthetic:
            wanted, name = self.totals
            head = f"{source.path} cannot be taken for {wanted}:"
            told = [head, *(f"  {doubt}" for doubt in doubts), f"name {name}, with its {MANIFEST} beside it"]
            raise InputError("\n".join(told))

    def inputs(self, records: OpenedRecords) -> dict[str, str]:
        """All files that were opened."""
        return input_checksums(records.folder, records.files)

    def groups(self, exact: DescribedCounts, ledger: Ledger, entropy: Entropy, *, cut: bool = True) -> Iterator[Groups]:
        """Pass every count through the door; ``cut`` what the configuration leaves out or cuts off after it."""
        return exact.measured(self.description, ledger, entropy, leave_out=cut)

    def observe(self, plan: Plan, data: Path, trials: int) -> Observed:
        """Errors of all that is measured, with what limits leave out. All counts are held in memory at once."""
        request = self.request
        with self.open(data, Stopwatch(request.announce)) as records:
            require_none(records.findings)
            request.announce("counting")
            self.doubts(records)
            exact, whole = (self.count(records, bounded=bounded, keep=True) for bounded in (True, False))
        request.announce(f"adding noise, {trials} times")
        choosing = [f"{total_name(table)}/{level.name}" for table, level in self.description.at_levels.values()]
        seen = (
            (trial, found)
            for trial, entropy in enumerate(sources_of_trials(request.entropy, trials))
            for found in observe_at_the_door(
                exact,
                whole,
                plan,
                partial(self.groups, entropy=entropy),
                partial(self.groups, entropy=entropy, cut=False),
                choosing,
            )
        )
        return self.observed(plan, exact, list(_errors(seen)), trials)

    @abstractmethod
    def observed(self, plan: Plan, exact: DescribedCounts, errors: list[MeasurementErrors], trials: int) -> Observed:
        """What `observe` tells of errors."""


Own = TypeVar("Own", bound=Description)


class DescriptionCounter(TablesCounter[Own, list[Groups]]):
    """A counter whose configuration is a description: what passed the door is laid out at the end."""

    @property
    def description(self) -> Description:
        """The configuration itself."""
        return self.config

    def measure(self, exact: DescribedCounts, ledger: Ledger, clock: Stopwatch) -> list[Groups]:  # noqa: ARG002
        """Pass every measurement through the door, in the plan's order."""
        return list(self.groups(exact, ledger, self.request.entropy))

    def write(self, folder: Path, run: MeasuredRun[OpenedRecords, DescribedCounts, list[Groups]]) -> dict[str, Any]:
        """Every table that was measured, and those that add up its cells."""
        return write_described(folder, published_tables(self.config, run.plan, run.measured), self.request.format)


class DescribedCounter(DescriptionCounter[Description]):
    """Counts every cell of every area and group that a description names."""

    totals = ("totals that are published", "a table of totals in its release")

    @property
    def frames(self) -> Mapping[str, str]:
        """The files of the description, and the public ones of blocks that lie beside them."""
        public = self.config.blocks.files if self.config.blocks else ()
        return dict.fromkeys((*(file.name for file in self.config.record_files), *public), "parquet")

    @property
    def forms(self) -> RecordForms:
        """The files of the description."""
        return forms_of(self.config, self.request.columns)

    @property
    def is_checked(self) -> bool:
        """Unless areas are made of blocks: then tables may have hundreds of millions of rows, as SafeTab's."""
        return self.config.blocks is None

    @property
    def cut(self) -> Cut:
        """By the units, so that all that is linked to one is together."""
        return cut_of(self.config, self.request.columns, self.request.shards)

    def folder(self, *, to_count: bool) -> CountedFolder:
        """The files of the description."""
        return CountedFolder(
            partial(open_described, self.config, columns=self.request.columns),
            partial(_count, self.config) if to_count else None,
            gather=self.config.blocks is not None,
        )

    def published(self, data: Path, out: Path | None, *, to_count: bool) -> PublishedSource | None:
        """The totals that decide the detail of tables; for validation there need be none.

        Raises
        ------
        InputError, OutputError
            If the totals are missing or not wanted, or would go with what is replaced at ``out``.
        """
        totals, needing = self.request.totals, [table.name for table in tables_by_size(self.config)]
        if totals is None:
            if needing and to_count:
                raise InputError(
                    f"the detail of {', '.join(needing)} needs published totals; name a table with --totals"
                )
            return None
        if not needing:
            raise InputError(f"no detail of {self.config.name} is decided by published totals, so none are taken")
        if out is not None:
            check_outside(out, [totals])
        source = read_source(self.config, totals)
        self.require_published(source, source.doubts, synthetic=is_synthetic(data))
        return source

    def doubts(self, records: OpenedRecords) -> list[str]:
        """Why totals may not be public; of synthetic records also that criteria are tested on their true counts."""
        against = records.published.doubts if records.published else ()
        doubts = [f"the totals that decide detail may not be public: {doubt}" for doubt in against]
        return [*doubts, TESTED] if self.config.criteria and records.is_synthetic else doubts

    def public_inputs(self, records: OpenedRecords) -> dict[str, str]:
        """The totals that decide the detail of tables, and the file of blocks."""
        source = records.published
        public = {file: source for file, source in records.files.items() if file not in self.config.files}
        of_blocks = [path for source in public.values() for path in source.paths]
        return {
            **({source.path.name: str(source.told["sha256"])} if source else {}),
            **{path.relative_to(records.folder).as_posix(): checksum(path) for path in of_blocks},
        }

    def count(self, records: OpenedRecords, *, bounded: bool = True, keep: bool = False) -> DescribedCounts:
        """Count what has a budget."""
        config = self.config
        records.require_valid()
        sizes = records.published.by_level if records.published else {}
        if config.blocks:
            return count_streams(records.db, config, sizes, records.counted, bounded=bounded, keep=keep)
        if records.counted is None:
            found = tabulate(records.db, config, limited=bounded)
        else:
            found = merge_tabulated([shard[0 if bounded else -1] for shard in records.counted])
        return DescribedCounts(found.by_level, found.left_out, sizes)

    def tell(self, run: MeasuredRun[OpenedRecords, DescribedCounts, list[Groups]]) -> Told:
        """The unit, criteria and what is promised of them; and for the log what limits left out.

        Of synthetic records criteria are tested, too. Of others nothing here but the log depends on the exact counts.
        """
        records, exact, config, plan = run.records, run.exact, self.config, run.plan
        source, criteria = records.published, predictions(config, plan)
        if criteria and records.is_synthetic:
            whole = self.count(records, bounded=False).by_level if limits(config) else exact.by_level
            criteria = tested(config, plan, list(_errors((0, _seen(config, found, whole)) for found in run.measured)))
        return Told(
            parameters=TABLES.parameters(config, source.told, source.empty)
            if source
            else TABLES.parameters(config, None),
            taken_as_public=(*TABLES.taken_as_public(config), *([source.taken_as_public] if source else [])),
            log={
                "records_left_out_by_limits": dict(exact.left_out),
                **({"records_in_no_group": dict(exact.uncounted.in_no_group)} if config.blocks else {}),
            },
            others={
                "system": SYSTEM,
                **TABLES.processing(config),
                **({"criteria": criteria} if criteria else {}),
                **({LEFT_OUT: lost} if (lost := TABLES.left_out(config)) else {}),
            },
        )

    def observed(self, plan: Plan, exact: DescribedCounts, errors: list[MeasurementErrors], trials: int) -> Observed:
        """Errors by table, level and cell, and tests of criteria."""
        del exact, trials
        rows = summarize(self.config, plan, errors)
        told = {"criteria": tested(self.config, plan, errors), "tested_plan": plan.as_json()}
        return Observed(plan.product, errors, rows, [accuracy_table(rows, _ACCURACY)], told)


def _count(config: Description, records: OpenedRecords) -> Any:  # noqa: ANN401 (as `CountedFolder` has it)
    """What is counted of a shard."""
    if config.blocks:
        return count_shard_of_blocks(records.db, config)
    # Of synthetic records criteria are tested on what limits leave out, too.
    without_limits = config.criteria and records.is_synthetic and limits(config)
    return [tabulate(records.db, config, limited=limited) for limited in ((True, False) if without_limits else (True,))]


def _errors(seen: Iterable[tuple[int, Seen]]) -> Iterator[MeasurementErrors]:
    """What was seen of each measurement and step, over all trials."""
    parts: dict[tuple[str, int], list[tuple[int, Seen]]] = {}
    for trial, found in seen:
        parts.setdefault((found.noisy.measurement.name, found.noisy.choice), []).append((trial, found))
    for of in parts.values():
        shown = [found.shown for _, found in of]
        truth = [found.truth.counts[places] for (_, found), places in zip(of, shown, strict=True)]
        whole = [found.whole.counts[places] for (_, found), places in zip(of, shown, strict=True)]
        noisy = [found.noisy for _, found in of]
        yield MeasurementErrors(
            measurement=noisy[0].measurement,
            table=noisy[0].family.choices[noisy[0].choice].own,
            trial=np.concatenate([np.full(len(n.counts), trial) for (trial, _), n in zip(of, noisy, strict=True)]),
            area=np.concatenate([n.area.places for n in noisy]),
            group=np.concatenate([n.iteration.places for n in noisy]),
            truth=np.concatenate(truth),
            left_out=np.concatenate(truth) - np.concatenate(whole),
            noise=np.concatenate([n.counts for n in noisy]) - np.concatenate(truth),
            every=np.concatenate([found.truth.counts.sum(axis=1) for _, found in of]),
        )


def _seen(config: Description, found: Groups, whole: Mapping[str, Ints]) -> Seen:
    """What one run measured beside all exact counts; what limits leave out is an error of it."""
    table = next(of for of in config.tables if found.measurement.table in {of.name, coarsest_name(of)})
    level = config.levels[found.measurement.level]
    # Of groups that always get the first step the cells are not told in the finest.
    choice = (found.family if found.family.name == table.name else families_of(table)[0]).choices[found.choice]
    rows = found.area.places.astype(np.int64) * len(level.groups) + found.iteration.places
    truth = np.zeros((choice.measured, len(rows)), dtype=np.int64)
    np.add.at(truth, list(choice.finest), whole[f"{table.name}/{level.name}"][rows].T)
    exact = replace(found, counts=truth.T)
    return Seen(found, exact, exact)


def accuracy_table(rows: Sequence[DescribedAccuracy], columns: Sequence[str]) -> ReleaseTable:
    """The rows as accuracy.csv."""
    renamed = {"ITERATION_CODE": "iteration", "DATA_CELL": "cell", "TRUNCATION_BIAS": "bias_from_truncation"}
    return table_of("accuracy", rows, columns, renamed)


_ACCURACY: Final = (
    *("TABLE", "LEVEL", "ITERATION_CODE", "CELL", "COUNT", "EXPECTED_MOE", "EXPERIMENTAL_MOE"),
    *("EXPERIMENTAL_MOE_WITH_TRUNCATION", "TRUNCATION_BIAS", "COVERAGE"),
)


def tested(description: Description, plan: Plan, errors: Sequence[MeasurementErrors]) -> dict[str, dict[str, Any]]:
    """Of every criterion what it says, what the plan promises, and under "tested" what the truth says of it.

    Parameters
    ----------
    errors : sequence of MeasurementErrors
        Of all that was measured, over all trials. Those that no criterion is about are not looked at.
    """
    told = predictions(description, plan)
    trials = 1 + max((int(of.trial.max()) for of in errors if len(of.trial)), default=0)
    for criterion in description.criteria:
        rows, groups = rows_of(description, criterion), len(description.levels[criterion.level].groups)
        seen: list[tuple[Ints, Ints, Ints]] = []
        for of in errors:
            parts = rows.parts.get((of.measurement.name, of.table.name))
            if parts is None:
                continue
            some = np.isin(of.area * groups + of.group, rows.groups)
            truth, noisy = (
                np.stack([counts[some][:, of_row].sum(axis=1) for of_row in parts], axis=1)
                for counts in (of.truth - of.left_out, of.truth + of.noise)
            )
            seen.append((np.repeat(of.trial[some], len(parts)), truth.ravel(), noisy.ravel()))
        by_trial, truth, noisy = (np.concatenate(column) for column in zip(*seen, strict=True)) if seen else [_NONE] * 3
        told[criterion.name]["tested"] = _tested(criterion, trials, by_trial, truth, noisy)
    return told


_NONE: Final = np.zeros(0, dtype=np.int64)


def _tested(criterion: Criterion, trials: int, trial: Ints, truth: Ints, noisy: Ints) -> Mapping[str, Any]:
    """Compare noisy counts of rows with their true ones, trial by trial; arrays of shape (rows of all trials,)."""
    some = _of_size(criterion, truth)
    errors = np.abs(noisy[some] - truth[some]) / (truth[some] if criterion.relative else 1)
    numbers = np.bincount(trial[some], minlength=trials)
    by_trial = np.split(errors[np.argsort(trial[some], kind="stable")], np.cumsum(numbers)[:-1])
    of_trials = [np.sort(of)[ceil(criterion.quantile * len(of)) - 1] for of in by_trial if len(of) >= criterion.fewest]
    told = {"rows": int(numbers.max()), "trials": trials}
    if not of_trials:
        return {**told, "value": None, "holds": None}
    value = float(np.sort(of_trials)[ceil(criterion.chance * len(of_trials)) - 1])
    return {**told, "value": value, "holds": value <= float(criterion.most)}


def _of_size(criterion: Criterion, truth: Ints) -> Flags:
    most = np.iinfo(np.int64).max if criterion.at_most is None else criterion.at_most
    found: Flags = (truth >= criterion.at_least) & (truth <= most)
    return found
