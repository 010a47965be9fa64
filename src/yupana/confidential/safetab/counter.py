"""What the counters of both SafeTab products do alike: open records, tell of them, write row tables."""

from abc import abstractmethod
from collections import Counter as Numbers
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from yupana.confidential.accuracy import Seen, observe_at_the_door, sources_of_trials
from yupana.confidential.counter import Counter, E, Observed, R
from yupana.confidential.records.database import numbers
from yupana.confidential.records.detailed import OF_BLOCKS, RECORDS, DetailedRecords, Kind, open_detailed
from yupana.confidential.records.detailed_cef import detailed_sources
from yupana.confidential.records.findings import Finding, require_none
from yupana.confidential.request import RunRequest
from yupana.confidential.shards.by_state import lies_by_state
from yupana.confidential.shards.detailed_by_state import DETAILED, count_details_by_state, without_details
from yupana.confidential.shards.folder import AsCounted, Shard, Taker, TaskLimits
from yupana.confidential.shards.in_shards import Cut, can_be_cut, count_in_shards, within, without_records
from yupana.engine.engine import Engine
from yupana.files.column_map import BUREAU, ColumnMap
from yupana.files.columns import HOUSING_UNITS, REFERENCE, RecordFile
from yupana.plan.ledger import Ledger
from yupana.plan.plan import Plan
from yupana.privacy.entropy import Entropy
from yupana.privacy.sealed import Sealed
from yupana.products.safetab.configuration import SafetabConfig, Settings
from yupana.products.safetab.errors import (
    SIZES,
    IterationAccuracy,
    LevelErrors,
    SafetabAccuracy,
    TableErrors,
    joined,
    size_bins,
    summarize,
    summarize_iterations,
)
from yupana.products.safetab.iterations import MOST_RACE_CODES, CharacteristicIterations
from yupana.products.safetab.product import Parameters
from yupana.products.safetab.regions import LEVELS, REGION_TYPES
from yupana.products.safetab.specification import DETAILED_TOTALS, FAMILIES
from yupana.products.tables import Family, Groups, lay_out
from yupana.progress import Stopwatch
from yupana.release.rows import RowTable, write_described
from yupana.release.tables import ReleaseTable, checksum, table_of

_LEVELS: Final = {level.name: level for level in LEVELS}

K = TypeVar("K", bound=SafetabConfig[Any])
"""The keys of config.json that one of the products reads."""


class SafetabCounter(Counter[Parameters[K], R, E, list[RowTable]]):
    """What both counters do with what they have counted: tables are laid out as the groups pass the door."""

    stages = ("counting and adding noise", "", "")
    choosing: str = ""
    """How the names of measurements begin that are not published, if there are any."""
    kind: Kind
    """What is counted."""

    def is_checked(self, config: Parameters[K]) -> bool:
        """Tables may have hundreds of millions of rows."""
        del config
        return False

    def cut_files(self, config: Parameters[K], columns: ColumnMap) -> tuple[RecordFile, ...]:
        """The records; what tells of areas is public."""
        del config
        return (columns.applied(RECORDS[self.kind]),)

    def without_noise(self, config: Parameters[K]) -> Parameters[K]:
        """Infinite budgets for all that is measured."""
        return replace(config, config=config.config.without_noise())

    @abstractmethod
    def groups(self, exact: E, config: Parameters[K], ledger: Ledger, entropy: Entropy) -> Iterator[Groups]:
        """Pass every count through the door."""

    @abstractmethod
    def uncut(self, config: Parameters[K]) -> Parameters[K]:
        """The configuration by which nothing is left out or cut off after the door."""

    def measure(
        self, exact: E, config: Parameters[K], ledger: Ledger, request: RunRequest, clock: Stopwatch
    ) -> list[RowTable]:
        """Measure group by group and lay the tables out.

        Where negative counts are not allowed, the cells were set to zero before they are added up here.
        """
        del clock
        groups, plan = self.groups(exact, config, ledger, request.entropy), ledger.plan
        return lay_out(FAMILIES[plan.product], groups, plan, [region.name for region in REGION_TYPES])

    def write(
        self,
        folder: Path,
        records: R,
        measured: list[RowTable],
        config: Parameters[K],
        plan: Plan,
        request: RunRequest,
    ) -> dict[str, dict[str, Any]]:
        """Every table of the product, header alone where it has no rows."""
        del records, config, plan
        return write_described(folder, measured, request.format)

    def observe(self, config: Parameters[K], plan: Plan, data: Path, trials: int, request: RunRequest) -> Observed:
        """Errors by level and table. All counts are held in memory at once."""
        with self.open(config, data, request, Stopwatch(request.announce)) as records:
            require_none(records.findings)
            self.doubts(records, config)
            request.announce("counting")
            exact, whole = (self.count(records, config, plan, bounded=bounded, keep=True) for bounded in (True, False))
        request.announce(f"adding noise, {trials} times")
        choosing = [m.name for m in plan.measurements if self.choosing and m.name.startswith(self.choosing)]
        uncut = self.uncut(config)
        seen = (
            found
            for entropy in sources_of_trials(request.entropy, trials)
            for found in observe_at_the_door(
                exact,
                whole,
                plan,
                partial(self._observed, config=config, entropy=entropy),
                partial(self._observed, config=uncut, entropy=entropy),
                choosing,
            )
        )
        errors = list(_by_level(plan, seen, trials))
        confidence = float(plan.confidence)
        rows = summarize(errors, confidence)
        tables = accuracy_tables(rows, summarize_iterations(errors, config.iterations, confidence))
        return Observed(plan.product, errors, rows, tables)

    def _observed(self, exact: E, ledger: Ledger, config: Parameters[K], entropy: Entropy) -> Iterator[Groups]:
        return self.groups(exact, config, ledger, entropy)


def _by_level(plan: Plan, seen: Iterable[Seen], trials: int) -> Iterator[LevelErrors]:
    """Errors by level and family of tables, in the plan's order."""
    sizes = {m.name: np.zeros(len(SIZES), dtype=np.int64) for m in plan.measurements}
    parts: dict[str, dict[int, list[TableErrors]]] = {m.name: {} for m in plan.measurements}
    families: dict[str, Family] = {}
    for found in seen:
        noisy, shown, true = found.noisy, found.shown, found.truth.counts
        name, total = noisy.measurement.name, true.sum(axis=1)
        families[name] = noisy.family
        sizes[name] += np.bincount(size_bins(total), minlength=len(SIZES))
        if len(shown):
            parts[name].setdefault(noisy.choice, []).append(
                TableErrors(
                    table=noisy.family.choices[noisy.choice].own.name,
                    expected_moe=plan.margin(noisy.measurement),
                    sizes=total[shown],
                    errors=noisy.counts - true[shown],
                    iterations=noisy.iteration.places.astype(np.int64),
                    bias=true[shown] - found.whole.counts[shown],
                )
            )
    for m in plan.measurements:
        if m.name in families:
            yield LevelErrors(
                _LEVELS[m.level],
                detailed_only=families[m.name] is DETAILED_TOTALS,
                groups=sizes[m.name] // trials,
                tables=tuple(joined(parts[m.name][choice]) for choice in sorted(parts[m.name])),
                trials=trials,
            )


@dataclass(frozen=True, slots=True)
class CheckedDetails:
    """How records of the states of all passes are opened and checked: in one piece, or in shards.

    Attributes
    ----------
    kind : Kind
    settings : Settings
    iterations : CharacteristicIterations
    columns : ColumnMap
    """

    kind: Kind
    settings: Settings
    iterations: CharacteristicIterations
    columns: ColumnMap = BUREAU

    @contextmanager
    def open(self, data: Path, memory: int | None) -> Iterator[DetailedRecords]:
        """Open and check a folder in ``memory`` bytes."""
        codes, ethnic = frozenset(self.iterations.codes), self.iterations.ethnicity_codes
        with open_detailed(
            data,
            self.kind,
            states=self.settings.states,
            codes=codes,
            ethnicity_codes=ethnic,
            memory=memory,
            columns=self.columns,
        ) as records:
            yield records

    @contextmanager
    def open_as_asked(
        self,
        data: Path,
        request: RunRequest,
        count: Callable[[DetailedRecords], Any],
        taker: Taker | None = None,
    ) -> Iterator[DetailedRecords]:
        """Open a folder as a request has it.

        Where there is an engine, ``count`` counts the records of each shard; ``taker`` takes the counts.
        """
        cut = Cut({self.columns.applied(RECORDS[self.kind]): _BLOCK_KEY}, request.shards)
        taker = _OfParts(taker or AsCounted())
        if request.engine is not None and not self.columns.names and lies_by_state(data, DETAILED):
            with self._by_state(request.engine, data, request, count, taker) as records:
                yield records
        elif request.engine is not None and can_be_cut(data, cut):
            task = partial(_count_shard, self, count)
            found = count_in_shards(request.engine, data, cut, task, request.memory, request.progress, taker)
            with without_records(data, cut) as public, self.open(public, request.memory) as records:
                files = dict(records.files) | {"records": found.files[self.kind]}
                there = {name: within(data, public, source) for name, source in files.items()}
                yield replace(_summed(records, found.parts), folder=data, files=there, findings=found.findings)
        else:
            with self.open(data, request.memory) as records:
                yield records

    @contextmanager
    def _by_state(
        self, engine: Engine, data: Path, request: RunRequest, count: Callable[[DetailedRecords], Any], taker: Taker
    ) -> Iterator[DetailedRecords]:
        """Have the edited file counted; where a rule is broken, open it in one piece, to tell of all files."""
        limits, schema = TaskLimits.on(engine, request.memory), RECORDS[self.kind]
        codes = frozenset(self.iterations.codes)
        shard = Shard(data.absolute(), {}, partial(_count_shard, self, count), limits, None, {})
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

    counts: Any
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
    checked: CheckedDetails, count: Callable[[DetailedRecords], Any], folder: Path, memory: int
) -> tuple[tuple[Finding, ...], _DetailedPart | None]:
    with checked.open(folder, memory) as records:
        if records.findings:
            return records.findings, None
        notes = notes_on(records, checked.settings)
        of_records = Numbers({name: number for name, number in notes.items() if name not in OF_BLOCKS})
        return (), _DetailedPart(count(records), of_records, Numbers(records.without_housing_units))


def notes_on(records: DetailedRecords, settings: Settings) -> dict[str, int]:
    """How many records are not counted in full, by the policy that leaves something out. Confidential."""
    if records.counted is not None:
        return {_MORE_CODES: 0, **records.notes}
    more = settings.max_race_codes + 1
    query = f"SELECT count_if(QRACE{more} <> 0) FROM records" if more <= MOST_RACE_CODES else "SELECT 0"
    return {**records.notes, _MORE_CODES: numbers(records.db, query)[0]}


_MORE_CODES: Final = "records_with_more_race_codes"


def public_inputs(records: DetailedRecords, iterations: CharacteristicIterations, *others: Path) -> dict[str, str]:
    """SHA-256 of the public files of a run by name: codes, the reference file, housing units, and others.

    Where housing units are counted in the records of units, these are no public file and have no checksum.
    """
    public = [
        path
        for name, file in (("GRF-C", REFERENCE), ("housing-units", HOUSING_UNITS))
        for path in (records.files[name].paths if name in records.files else ())
        if path.relative_to(records.folder).parts[0] in file.file_names
    ]
    return {
        **iterations.files,
        **{path.relative_to(records.folder).as_posix(): checksum(path) for path in public},
        **{path.name: checksum(path) for path in others},
    }


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
