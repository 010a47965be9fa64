"""PHSafe's counter: a description's, of records in the Census Bureau's files and with its rules of consistency."""

from collections import Counter as Numbers
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import duckdb
import numpy as np

from yupana.arrays import Ints
from yupana.confidential.described.block_counts import DescribedCounts
from yupana.confidential.described.counter import DescriptionCounter, accuracy_table
from yupana.confidential.described.tabulate import Tabulated, chain_of, merge_tabulated, tabulate
from yupana.confidential.product_counter import MeasuredRun, Observed, Told, Validation
from yupana.confidential.records.database import numbers
from yupana.confidential.records.phsafe_records import (
    ABSENT,
    DROPPED_PERSONS,
    DROPPED_UNITS,
    FILES,
    open_census,
    parts_of_units,
    states_of,
    tell_absent,
)
from yupana.confidential.records.sources import OpenedRecords
from yupana.confidential.records.validation import failing, require_none
from yupana.confidential.shards.census_edited_file import count_by_state
from yupana.confidential.shards.count_in_shards import CountedFolder, Cut
from yupana.confidential.tabulate.linked_tables import joined
from yupana.errors import ConfigError
from yupana.files.columns import BUREAU, MAFID, ColumnMap
from yupana.files.database import named
from yupana.plan.plan import Plan
from yupana.plan.predicates import as_sql
from yupana.products.described.criteria import MeasurementErrors
from yupana.products.described.description import DescribedTable, in_join
from yupana.products.phsafe.configuration import LARGEST_TAU, PhsafeConfig
from yupana.products.phsafe.errors import summarize
from yupana.products.phsafe.product import PHSAFE
from yupana.products.phsafe.specification import of_states
from yupana.products.tables import Groups

_AROUND: Final = 3
"""How many thresholds to either side of the configured one are tried."""


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


class PhsafeCounter(DescriptionCounter[PhsafeConfig]):
    """Counts every basis cell of every population group, of each unit at most tau persons."""

    @property
    def cut(self) -> Cut:
        """Persons, units and geography by the unit."""
        files = map(self.request.columns.applied, FILES)
        return Cut(dict.fromkeys(files, (MAFID.name,)), self.request.shards)

    def folder(self, *, to_count: bool) -> CountedFolder:
        """The records that the configuration speaks of."""
        config = self.config
        count = partial(count_census, config=config) if to_count else None
        return CountedFolder(
            partial(checked_census, config, columns=self.request.columns), count, edited=count_by_state
        )

    def known(self, records: OpenedRecords) -> OpenedRecords:
        """Which states are absent: a shard does not know which ones others have."""
        if records.counted is None:
            return records
        findings = [finding for finding in records.findings if finding.rule != ABSENT]
        if records.notes:
            asked = frozenset(map(int, self.config.states))
            findings += tell_absent(asked, states_of(records.notes), records.files["geo"])
        return replace(records, findings=tuple(findings))

    def look(self, records: OpenedRecords) -> Validation:
        """The findings, and for internal use what each tau would leave out."""
        request = self.request
        rows: list[LeftOut] = []
        if request.internal and records.counted is not None:
            raise ConfigError("what each tau would leave out is told where the records are counted in one shard")
        if request.internal and not failing(records.findings):
            request.announce("counting persons beyond each tau")
            rows = left_out(records, self.config)
        return Validation(tuple(records.findings), truncation=tuple(rows))

    def count(self, records: OpenedRecords, *, bounded: bool = True, keep: bool = False) -> DescribedCounts:  # noqa: ARG002
        """Every population group and basis cell of the states of the records, zeros included."""
        # Truncation looks for crowded units by FINAL_POP, which validation has compared with their persons.
        require_none(records.findings)
        if records.counted is None:
            found = count_census(records, self.config, bounded=bounded)
        elif not records.counted or not bounded:
            raise RuntimeError("shards were not counted so")
        else:
            found = merge_tabulated(records.counted)
        return _of_the_records(found, self.config, states_of(records.notes))

    def tell(self, run: MeasuredRun[OpenedRecords, DescribedCounts, list[Groups]]) -> Told:
        """Thresholds, states and policies; how many records there were, and what was left out."""
        records, exact = run.records, run.exact
        notes = Numbers(records.notes)
        log = {
            "records": {name: notes[name] for name in records.files},
            "dropped_units": notes[DROPPED_UNITS],
            "dropped_persons": notes[DROPPED_PERSONS],
            "findings": [str(finding) for finding in records.findings],
            "persons_left_out_by_truncation": dict(exact.left_out),
        }
        states = exact.shown["STATE"].codes
        return Told(PHSAFE.parameters(self.config, states), PHSAFE.taken_as_public(self.config), log)

    def observed(self, plan: Plan, exact: DescribedCounts, errors: list[MeasurementErrors], trials: int) -> Observed:
        """Errors by cell, of noise alone and with truncation."""
        del exact, trials
        rows = summarize(plan, errors)
        return Observed(plan.product, errors, rows, [accuracy_table(rows, _ACCURACY)])


def checked_census(
    config: PhsafeConfig, data: Path, memory: int | None = None, columns: ColumnMap = BUREAU
) -> AbstractContextManager[OpenedRecords]:
    """Open the records a configuration speaks of, in ``memory`` bytes (`private_database` tells the default)."""
    states = frozenset(map(int, config.states))
    return open_census(data, states=states, policies=config.consistency, memory=memory, columns=columns)


def count_census(census: OpenedRecords, config: PhsafeConfig, *, bounded: bool = True) -> Tabulated:
    """Count what has a budget in all states of the configuration, of each unit at most tau persons if ``bounded``."""
    parts = []
    # Units with all that is theirs are counted part by part, as shards are, where memory does not hold all.
    for part in parts_of_units(census.db):
        _show(census.db, config, part)
        if bounded:
            _find_large(census.db, config, part)
        parts.append(tabulate(census.db, config, limited=bounded, crowded={"persons": _CROWDED}))
    return merge_tabulated(parts)


def _show(db: duckdb.DuckDBPyConnection, config: PhsafeConfig, part: str = "true") -> None:
    """Show the records of a census by the names of the description, without units that a policy drops."""
    (dropped,) = numbers(db, "SELECT count(*) FROM dropped_units")
    for file in config.record_files:
        kept = f"{part} AND MAFID NOT IN (SELECT MAFID FROM dropped_units)" if dropped else part
        columns = ", ".join(f"{column} AS {named(f'{file.name}.{column}')}" for column in (MAFID.name, *file.columns))
        db.execute(
            f"CREATE OR REPLACE VIEW {named(file.schema.relation)} AS SELECT {columns} FROM {file.name} WHERE {kept}"
        )


_CROWDED: Final = "crowded_persons"


def _find_large(db: duckdb.DuckDBPyConnection, config: PhsafeConfig, part: str) -> None:
    """Make the table of persons of units that have more than the smallest tau, which FINAL_POP says."""
    persons = config.files["persons"]
    large = f"SELECT MAFID FROM units WHERE {part} AND FINAL_POP > {min(config.taus.values())}"
    db.execute(
        f"CREATE OR REPLACE TABLE {_CROWDED} AS FROM {named(persons.schema.relation)} "
        f"WHERE {in_join(persons.name, persons.link)} IN ({large})"
    )


def _of_the_records(found: Tabulated, config: PhsafeConfig, states: frozenset[int]) -> DescribedCounts:
    """The counts of states with a housing unit; no others are published."""
    every = config.areas["STATE"].codes
    shown = of_states(config, [code for code in every if int(code) in states]).areas
    places = [place for place, code in enumerate(every) if int(code) in states]
    by_level = dict(found.by_level)
    for table in config.tables:
        for level in table.levels:
            counts = by_level.get(f"{table.name}/{level.name}")
            if counts is not None and level.areas == "STATE":
                of_state = counts.reshape(len(every), len(level.groups), -1)[places]
                by_level[f"{table.name}/{level.name}"] = of_state.reshape(-1, counts.shape[1])
    return DescribedCounts(by_level, found.left_out, {}, shown=shown)


def left_out(census: OpenedRecords, config: PhsafeConfig) -> list[LeftOut]:
    """Tell for every table of persons what thresholds about the configured one leave out.

    Parameters
    ----------
    census : OpenedRecords
        Valid.
    """
    _show(census.db, config)
    rows = []
    for table in config.tables:
        if table.limit is None:
            continue
        own, (sizes, units) = table.limit.most, _sizes(census.db, config, table)
        for tau in range(max(1, own - _AROUND), min(LARGEST_TAU, own + _AROUND) + 1):
            beyond = sizes > tau
            rows.append(
                LeftOut(
                    table.name,
                    tau,
                    tau == own,
                    int((sizes * units).sum()),
                    int(((sizes - tau) * units)[beyond].sum()),
                    int(units[beyond].sum()),
                )
            )
    return rows


def _sizes(db: duckdb.DuckDBPyConnection, config: PhsafeConfig, table: DescribedTable) -> tuple[Ints, Ints]:
    """The numbers of persons of a table's universe that units have, from 1, and how many units have so many."""
    chain, read = chain_of(db, config, table.counts), {name for name, _ in table.universe.columns}
    shown = [[name for name in file.header if name in read] for file in chain]
    found = db.execute(
        f"SELECT persons, count(*) FROM (SELECT count(*) AS persons FROM {joined(chain, shown)} "
        f"WHERE {as_sql(table.universe)} GROUP BY link_0) GROUP BY 1 ORDER BY 1"
    )
    sizes, units = (np.asarray(column, dtype=np.int64) for column in found.fetchnumpy().values())
    return sizes, units


_ACCURACY: Final = (
    *("TABLE", "REGION_TYPE", "LEVEL", "ITERATION_CODE", "DATA_CELL", "EXPERIMENTAL_MOE"),
    *("EXPERIMENTAL_MOE_WITH_TRUNCATION", "TRUNCATION_BIAS", "COUNT", "EXPECTED_MOE", "COVERAGE"),
)
