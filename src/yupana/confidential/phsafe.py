"""PHSafe's counter: from persons, units and geography to the noisy counts of its tables."""

from collections import Counter as Numbers
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Ints
from yupana.confidential.accuracy import sources_of_trials
from yupana.confidential.counter import Counter, Observed, Told, Validation, input_checksums
from yupana.confidential.records.census import ABSENT, FILES, Census, open_census, tell_absent
from yupana.confidential.records.database import numbers
from yupana.confidential.records.findings import Finding, failing
from yupana.confidential.records.reader import Source
from yupana.confidential.request import RunRequest
from yupana.confidential.shards.in_shards import Cut, can_be_cut, count_in_shards
from yupana.confidential.tabulate.joined import Counts, Tabulation, merge_counts, tabulate
from yupana.confidential.tabulate.unit_sizes import count_crowds
from yupana.errors import ConfigError
from yupana.files.column_map import BUREAU, ColumnMap
from yupana.files.columns import RecordFile
from yupana.plan.ledger import Ledger
from yupana.plan.plan import Plan
from yupana.privacy.entropy import Entropy
from yupana.privacy.sealed import Sealed
from yupana.products.phsafe.configuration import LARGEST_TAU, PhsafeConfig, Policy, without_noise
from yupana.products.phsafe.errors import CellError, PhsafeAccuracy, summarize
from yupana.products.phsafe.product import PHSAFE
from yupana.products.phsafe.specification import FAMILIES, TABLES, MeasuredTable
from yupana.products.phsafe.tables import groups, level_of, noisy_groups, published_tables
from yupana.progress import Stopwatch
from yupana.release.rows import write_described
from yupana.release.tables import ReleaseTable, table_of

_AROUND: Final = 3
"""How many thresholds to either side of the configured one are tried."""


@dataclass(frozen=True, slots=True, repr=False)
class ExactCounts(Sealed):
    """Counts by measurement, with what truncation left out of each table.

    Attributes
    ----------
    states : tuple of str
        States with a housing unit in the geography file; public.
    by_measurement : mapping of name to int64 array, shape (population groups, cells)
    truncated : mapping of table to int
    """

    states: tuple[str, ...]
    by_measurement: Mapping[str, Ints]
    truncated: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What one threshold leaves out of one table, to choose tau by.

    Attributes
    ----------
    table : str
    tau : int
    configured : bool
        Whether this is the threshold of the configuration.
    persons : int
        Whom the table counts without truncation.
    left_out : int
        Persons beyond the threshold.
    units : int
        Households with such persons.
    """

    table: str
    tau: int
    configured: bool
    persons: int
    left_out: int
    units: int


@dataclass(frozen=True, slots=True)
class NoisyCounts:
    """What passed the door: of the states that are published, noisy counts by measurement."""

    states: tuple[str, ...]
    by_measurement: Mapping[str, Ints]


@dataclass(frozen=True, slots=True, repr=False)
class CountedCensus(Sealed):
    """A census whose shards were checked and counted elsewhere.

    Attributes
    ----------
    folder : Path
    files : mapping of str to Source
    findings : tuple of Finding
    counts : Counts or None
        None where they are not asked for, or a rule is broken.
    records : Counter
        How many there are, by file, and how many are dropped.
    """

    folder: Path
    files: Mapping[str, Source]
    findings: tuple[Finding, ...]
    counts: Counts | None
    records: Numbers[str]


class PhsafeCounter(Counter[PhsafeConfig, Census | CountedCensus, ExactCounts, NoisyCounts]):
    """Counts every basis cell of every population group, of each unit at most tau persons."""

    stages = ("counting", "adding noise", "")

    def without_noise(self, config: PhsafeConfig) -> PhsafeConfig:
        """Infinite budgets for all that is measured."""
        return without_noise(config)

    @contextmanager
    def open(
        self,
        config: PhsafeConfig,
        data: Path,
        request: RunRequest,
        clock: Stopwatch,
        *,
        out: Path | None = None,
        kept: Path | None = None,
        to_count: bool = True,
    ) -> Iterator[Census | CountedCensus]:
        """Open the records a configuration speaks of; on an engine they are counted, too."""
        del out, kept
        clock.start("reading and checking the records")
        cut = Cut({request.columns.applied(schema): _KEY for schema in FILES}, request.shards, by_state=True)
        if request.engine is not None and can_be_cut(data, cut):
            yield _counted_in_shards(config, data, cut, request, to_count=to_count)
            return
        with checked_census(config, data, request.memory, request.columns) as census:
            yield census

    def cut_files(self, config: PhsafeConfig, columns: ColumnMap) -> tuple[RecordFile, ...]:
        """Persons, units and geography."""
        del config
        return tuple(map(columns.applied, FILES))

    def inputs(self, records: Census | CountedCensus) -> dict[str, str]:
        """Persons, units and geography."""
        return input_checksums(records.folder, records.files)

    def look(self, records: Census | CountedCensus, config: PhsafeConfig, request: RunRequest) -> Validation:
        """The findings, and for internal use what each tau would leave out."""
        rows: list[LeftOut] = []
        if request.internal and isinstance(records, CountedCensus):
            raise ConfigError("what each tau would leave out is told where the records are counted in one shard")
        if request.internal and not isinstance(records, CountedCensus) and not failing(records.findings):
            request.announce("counting persons beyond each tau")
            rows = left_out(records, config)
        return Validation(tuple(records.findings), truncation=tuple(rows))

    def count(
        self,
        records: Census | CountedCensus,
        config: PhsafeConfig,
        plan: Plan,
        *,
        bounded: bool = True,
        keep: bool = False,
    ) -> ExactCounts:
        """Every population group and basis cell, zeros included."""
        del keep
        if isinstance(records, Census):
            return count(records, config, plan, truncate=bounded)
        if records.counts is None or not bounded:
            raise RuntimeError("shards were not counted so")
        return _exact(records.counts, plan)

    def measure(
        self, exact: ExactCounts, config: PhsafeConfig, ledger: Ledger, request: RunRequest, clock: Stopwatch
    ) -> NoisyCounts:
        """Measurement after measurement, in the plan's order."""
        del config, clock
        return NoisyCounts(exact.states, measure(ledger, exact, request.entropy))

    def tell(
        self,
        records: Census | CountedCensus,
        exact: ExactCounts,
        measured: NoisyCounts,
        config: PhsafeConfig,
        plan: Plan,
        request: RunRequest,
    ) -> Told:
        """Thresholds, states and policies; how many records there were, and what was left out."""
        del plan, request
        counted = _how_many(records) if isinstance(records, Census) else records.records
        log = {
            "records": {name: counted[name] for name in records.files},
            "dropped_units": counted[_DROPPED_UNITS],
            "dropped_persons": counted[_DROPPED_PERSONS],
            "findings": [str(finding) for finding in records.findings],
            "persons_left_out_by_truncation": dict(exact.truncated),
        }
        return Told(PHSAFE.parameters(config, measured.states), PHSAFE.taken_as_public(config), log)

    def write(
        self,
        folder: Path,
        records: Census | CountedCensus,
        measured: NoisyCounts,
        config: PhsafeConfig,
        plan: Plan,
        request: RunRequest,
    ) -> dict[str, dict[str, Any]]:
        """The basis tables, and those derived from them."""
        del records, config
        tables = published_tables(plan, noisy_groups(plan, measured.states, measured.by_measurement))
        return write_described(folder, tables, request.fmt)

    def observe(self, config: PhsafeConfig, plan: Plan, data: Path, trials: int, request: RunRequest) -> Observed:
        """Errors by cell, of noise alone and with truncation."""
        errors = _trials(config, plan, data, trials, request)
        rows = summarize(errors, float(plan.confidence))
        return Observed(plan.product, errors, rows, [_accuracy_table(rows)])


@contextmanager
def checked_census(
    config: PhsafeConfig, data: Path, memory: int | None = None, columns: ColumnMap = BUREAU
) -> Iterator[Census]:
    """Open the records a configuration speaks of, in ``memory`` bytes (`private_database` tells the default)."""
    policies = {rule: Policy(policy) for rule, policy in config.consistency.items()}
    with open_census(
        data, states=frozenset(map(int, config.states)), policies=policies, memory=memory, columns=columns
    ) as census:
        yield census


def count(census: Census, config: PhsafeConfig, plan: Plan, *, truncate: bool = True) -> ExactCounts:
    """Count what a plan measures: every population group and basis cell, zeros included.

    Parameters
    ----------
    truncate : bool
        Keep at most tau persons of a unit, as a run does; False counts all, to tell truncation error from noise.
    """
    # Truncation looks for crowded units by FINAL_POP, which validation has compared with their persons.
    census.require_valid()
    tables = [table for table in TABLES if any(m.table == table.name for m in plan.measurements)]
    return _exact(_tabulate(census, tables, config, truncate=truncate), plan)


def _tabulate(census: Census, tables: Iterable[MeasuredTable], config: PhsafeConfig, *, truncate: bool) -> Counts:
    tabulations = [_tabulation(table, config, truncate=truncate) for table in tables]
    return tabulate(census.db, tabulations, config.truncation_key)


def _exact(counts: Counts, plan: Plan) -> ExactCounts:
    """What a plan measures, of counts of its tables and maybe of others."""
    by_measurement = {}
    for of in (table for table in TABLES if any(m.table == table.name for m in plan.measurements)):
        cells = counts.by_table[of.name].reshape(len(counts.states), len(of.iterations), len(of.cells))
        for m in plan.measurements:
            if m.table == of.name:
                level = level_of(m.level)
                chosen = cells[:, [of.iterations.index(code) for code in level.iterations]]
                if level.region_type == "USA":
                    chosen = chosen.sum(axis=0)
                by_measurement[m.name] = chosen.reshape(-1, m.cells)
    states = tuple(f"{code:02}" for code in counts.states)
    measured = {m.table for m in plan.measurements}
    truncated = {name: number for name, number in counts.truncated.items() if name in measured}
    return ExactCounts(states, by_measurement, truncated)


_KEY: Final = ("MAFID",)
"""What holds a unit together."""


def _counted_in_shards(
    config: PhsafeConfig, data: Path, cut: Cut, request: RunRequest, *, to_count: bool
) -> CountedCensus:
    """Check a census in shards of whole units, and count what the configuration measures."""
    task = partial(_count_shard, config, request.columns, to_count)
    found = count_in_shards(request.on_engine, data, cut, task, request.memory, request.progress)
    parts = found.parts
    records = sum((part.records for part in parts), Numbers[str]())
    states = [part.states for part in parts if part.states is not None]
    findings = [finding for finding in found.findings if finding.rule != ABSENT]
    if parts and len(states) == len(parts):
        seen = frozenset[int]().union(*states)
        findings += tell_absent(frozenset(map(int, config.states)), seen, found.files["geo"])
    counted = [part.counts for part in parts if part.counts is not None]
    counts = merge_counts(counted) if counted and not failing(findings) else None
    return CountedCensus(data, found.files, tuple(findings), counts, records)


@dataclass(frozen=True, slots=True, repr=False)
class _CensusPart(Sealed):
    """What a shard tells: counts if they were asked for, how many records there are, and states with a housing unit."""

    counts: Counts | None
    records: Numbers[str]
    states: frozenset[int] | None


def _count_shard(
    config: PhsafeConfig,
    columns: ColumnMap,
    to_count: bool,  # noqa: FBT001 (of `partial` alone)
    folder: Path,
    memory: int,
) -> tuple[tuple[Finding, ...], _CensusPart]:
    with checked_census(config, folder, memory, columns) as census:
        fit = not failing(census.findings)
        counts = _tabulate(census, TABLES, config, truncate=True) if fit and to_count else None
        return census.findings, _CensusPart(counts, _how_many(census) if fit else Numbers(), census.states)


_DROPPED_UNITS: Final = "dropped units"
_DROPPED_PERSONS: Final = "dropped persons"


def _how_many(census: Census) -> Numbers[str]:
    """Records by file, and those that a policy drops."""
    relations = {name: name for name in census.files} | {
        _DROPPED_UNITS: "dropped_units",
        _DROPPED_PERSONS: "persons SEMI JOIN dropped_units USING (MAFID)",
    }
    return Numbers({name: numbers(census.db, f"SELECT count(*) FROM {of}")[0] for name, of in relations.items()})


def _tabulation(table: MeasuredTable, config: PhsafeConfig, *, truncate: bool) -> Tabulation:
    return Tabulation(
        name=table.name,
        persons=table.persons,
        units=table.units,
        cells=tuple(table.iteration(code) & cell for code in table.iterations for cell in table.cells.values()),
        tau=config.taus[table.name] if table.persons is not None and truncate else None,
    )


def measure(ledger: Ledger, exact: ExactCounts, entropy: Entropy) -> dict[str, NDArray[np.int64]]:
    """Pass every measurement of the plan through the door, in the plan's order."""
    return {m.name: ledger.measure(m, exact.by_measurement[m.name], entropy) for m in ledger.plan.measurements}


def left_out(census: Census, config: PhsafeConfig) -> list[LeftOut]:
    """Tell for every table of persons what thresholds about the configured one leave out.

    Parameters
    ----------
    census : Census
        Valid.
    config : PhsafeConfig
    """
    tables = [(t, t.persons) for t in TABLES if t.persons is not None]
    rows = []
    for (of, _), (sizes, units) in zip(
        tables, count_crowds(census.db, [(persons, t.units) for t, persons in tables]), strict=True
    ):
        own = config.taus[of.name]
        for tau in range(max(1, own - _AROUND), min(LARGEST_TAU, own + _AROUND) + 1):
            beyond = sizes > tau
            rows.append(
                LeftOut(
                    of.name,
                    tau,
                    tau == own,
                    int((sizes * units).sum()),
                    int(((sizes - tau) * units)[beyond].sum()),
                    int(units[beyond].sum()),
                )
            )
    return rows


def _trials(config: PhsafeConfig, plan: Plan, data: Path, number: int, request: RunRequest) -> list[CellError]:
    """Count a synthetic census, or for internal use any, once and measure it ``number`` times.

    Raises
    ------
    InputError
        If the records break a rule.
    """
    request.announce("reading and checking the records")
    with checked_census(config, data, request.memory, request.columns) as census:
        census.require_valid()
        request.announce("counting with truncation")
        truncated = count(census, config, plan)
        request.announce("counting without truncation")
        untruncated = count(census, config, plan, truncate=False)
    request.announce(f"adding noise, {number} times")
    exact = truncated.by_measurement
    drawn = [measure(Ledger(plan), truncated, source) for source in sources_of_trials(request.entropy, number)]
    noise = {m.name: np.stack([noisy[m.name] - exact[m.name] for noisy in drawn]) for m in plan.measurements}
    lost = {m.name: exact[m.name] - untruncated.by_measurement[m.name] for m in plan.measurements}
    return list(_cells(plan, truncated.states, exact, lost, noise))


def _cells(
    plan: Plan,
    states: tuple[str, ...],
    exact: Mapping[str, Ints],
    lost: Mapping[str, Ints],
    noise: Mapping[str, Ints],
) -> Iterator[CellError]:
    families = {family.name: family for family in FAMILIES}
    for m in plan.measurements:
        for table in families[m.table].choices[0].tables:
            for labels, parts in table.cells:
                columns = list(parts)
                yield CellError(
                    table=table.name,
                    level=m.level,
                    cell=int(labels[0]),
                    groups=groups(level_of(m.level), states),
                    expected_moe=plan.margin(m, len(parts)),
                    truth=exact[m.name][:, columns].sum(axis=-1),
                    truncation_error=lost[m.name][:, columns].sum(axis=-1),
                    noise=noise[m.name][:, :, columns].sum(axis=-1),
                )


def _accuracy_table(rows: list[PhsafeAccuracy]) -> ReleaseTable:
    """The rows as accuracy.csv."""
    columns = (
        *("TABLE", "REGION_TYPE", "LEVEL", "ITERATION_CODE", "DATA_CELL"),
        *("EXPERIMENTAL_MOE", "EXPERIMENTAL_MOE_WITH_TRUNCATION", "TRUNCATION_BIAS", "COUNT", "EXPECTED_MOE"),
        "COVERAGE",
    )
    renamed = {"ITERATION_CODE": "iteration", "DATA_CELL": "cell", "TRUNCATION_BIAS": "bias_from_truncation"}
    return table_of("accuracy", rows, columns, renamed)
