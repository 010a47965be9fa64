"""All noisy measurements of a run, from the tables that it wrote, as least squares on the tree reads them. Public."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats, narrow
from yupana.errors import OutputError
from yupana.estimate.intervals.files import open_file
from yupana.files.database import named, open_database, unreadable
from yupana.geography.spine import Spine
from yupana.release.release import ReleaseFolder
from yupana.topdown.answers_file import kept_columns
from yupana.topdown.budget import LevelSpending, Spending
from yupana.topdown.configuration import Configuration
from yupana.topdown.queries import Query

_NEAR = 1e-9
"""How far a variance that was written may be off the plan's, as a share."""


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredTables:
    """Measurements of queries that keep or sum whole attributes, in memory.

    Attributes
    ----------
    spending : Spending
    read : mapping of (int, int) to ndarray of int, shape (units, size)
        By geolevel and place among its queries.
    """

    spending: Spending
    read: Mapping[tuple[int, int], NDArray[np.integer]]

    def queries(self, level: int) -> tuple[Query, ...]:
        """What a geolevel was measured with."""
        return tuple(query for query in self.spending.levels[level].queries if query.keeps_or_sums)

    def precisions(self, level: int, first: int, last: int) -> Floats:
        """1 / variance of the units from ``first`` up to ``last``, of shape (units, queries); 0 where not measured."""
        spent = self.spending.levels[level]
        kept = [q for q, query in enumerate(spent.queries) if query.keeps_or_sums]
        return spent.weights[spent.share_of[first:last]][:, kept]

    def answers(self, level: int, first: int, last: int) -> list[NDArray[np.integer]]:
        """The answers of each query for the units from ``first`` up to ``last``, of shape (units, size)."""
        return [self.read[level, q][first:last] for q in range(len(self.queries(level)))]


def read_measured(
    noisy: ReleaseFolder, configuration: Configuration, spine: Spine, spending: Spending
) -> MeasuredTables:
    """Read the measurements of a run; of which spine and plan they are was checked.

    Raises
    ------
    OutputError
        If a file is missing, was changed, or does not hold each answer once with the variance of the plan.
    """
    read: dict[tuple[int, int], NDArray[np.integer]] = {}
    for number, (level, spent) in enumerate(zip(spine.levels, spending.levels, strict=True)):
        kept = [(q, query) for q, query in enumerate(spent.queries) if query.keeps_or_sums]
        for place, (q, query) in enumerate(kept):
            name = f"{level.name}/{query.name.replace('*', '.')}.csv"
            if name not in noisy.files.values():
                raise OutputError(f"{noisy.folder} has no {name}; it does not hold all measurements of the run")
            columns = kept_columns(query, configuration.schema, configuration.recodes)
            with open_database() as db:
                read[number, place] = _read(db, noisy.file(name), level.labels(), columns, spent, q)
    return MeasuredTables(spending, read)


def _read(
    db: duckdb.DuckDBPyConnection,
    path: Path,
    labels: list[str],
    columns: Mapping[str, list[str]],
    spent: LevelSpending,
    q: int,
) -> NDArray[np.integer]:
    """The answers of a query for all geounits, zeros where it was not measured."""
    wanted = ["geounit", *columns, "value", "variance"]
    if open_file(db, "measured", path) != wanted:
        raise OutputError(f"{path} must have the columns {'|'.join(wanted)}")
    _list(db, "units", ["label"], [labels])
    size = spent.queries[q].size
    _list(db, "answers", [f"k{i}" for i in range(len(columns))], [*columns.values()] or [[]], size)
    on = " AND ".join(f"k{i} = {named(name)}" for i, name in enumerate(columns)) or "true"
    with unreadable(OutputError(f"{path} is not readable as noisy measurements")):
        found = db.execute(
            "SELECT coalesce(units.place, -1) AS unit, coalesce(answers.place, -1) AS answer, value::BIGINT AS value, "
            "variance::DOUBLE AS variance FROM measured LEFT JOIN units ON units.label = geounit "
            f"LEFT JOIN answers ON {on}"
        ).fetchnumpy()
    unit, answer = (np.asarray(found[name], dtype=np.int64) for name in ("unit", "answer"))
    values = np.zeros((len(labels), size), dtype=np.int64)
    expected = spent.variances[spent.share_of, q]
    measured = np.isfinite(expected)
    ok = not np.ma.isMaskedArray(found["value"]) and bool((unit >= 0).all() and (answer >= 0).all())
    if not ok or len(np.unique(unit * size + answer)) != len(unit) or len(unit) != size * int(measured.sum()):
        raise OutputError(f"{path} does not hold each answer of the geounits that were measured once")
    if not np.allclose(found["variance"], expected[unit], rtol=_NEAR, atol=0):
        raise OutputError(f"{path} has variances that are not those of the plan of the release")
    values[unit, answer] = found["value"]
    return narrow(values)


def _list(
    db: duckdb.DuckDBPyConnection, name: str, columns: list[str], texts: list[list[str]], rows: int | None = None
) -> None:
    number = len(texts[0]) if rows is None else rows
    of = {column: np.array(values, dtype=object) for column, values in zip(columns, texts, strict=False)}
    db.register("listed", {"place": np.arange(number), **of})
    db.execute(f"CREATE TABLE {name} AS SELECT * FROM listed")
    db.unregister("listed")
