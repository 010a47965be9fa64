"""What a release of TopDown tells of itself: its schema, its geolevels, its spine and its noisy measurements. Public.

It imports nothing of the least squares, so that what only reads tables does not wait for the compiler.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats, narrow
from yupana.errors import OutputError
from yupana.estimate.intervals.selections import list_labels, open_file
from yupana.files.database import named, open_database, store_arrays, unreadable
from yupana.geography.spine import Spine
from yupana.geography.spine_files import WrittenSpine, read_spine
from yupana.products.topdown.verify import NOISY, SYSTEM
from yupana.release.release import ReleaseFolder
from yupana.topdown.budget import LevelSpending, Spending
from yupana.topdown.configuration import OF_AREAS, Configuration
from yupana.topdown.queries import Attribute, Query, Schema, kept_columns

SPINE: Final = "spine"


def must_be_of_topdown(release: ReleaseFolder) -> None:
    """Refuse what is no release of TopDown.

    Raises
    ------
    OutputError
    """
    if release.product == NOISY:
        raise OutputError(
            f"{release.folder} holds noisy measurements, without the spine they were made on; name the release, and "
            f"give this folder with --noisy-measurements"
        )
    if release.product != SYSTEM:
        raise OutputError(f"{release.folder} is of {release.product!r}, and not a release of TopDown")
    schema_of(release)


def schema_of(release: ReleaseFolder) -> tuple[Schema, tuple[str, ...]]:
    """The schema and the geolevels that the manifest of a TopDown release tells.

    Raises
    ------
    OutputError
        If it does not.
    """
    try:
        told = release.manifest["parameters"]
        attributes = tuple(Attribute(name, tuple(labels)) for name, labels in told["schema"].items())
        dict(told["invariants"])
        str(told["spine"])
        return Schema(attributes), tuple(told["geolevels"])
    except (KeyError, TypeError, ValueError, AttributeError):
        raise OutputError(f"{release.folder}: the manifest does not hold the schema and geolevels of TopDown") from None


def released_spine(release: ReleaseFolder) -> WrittenSpine:
    """The spine of a release of TopDown.

    Raises
    ------
    InputError, OutputError
        If it is missing, was changed, or is none.
    """
    _, levels = schema_of(release)
    # The manifest lists the spine; without it, nobody can say which geounits add up to which.
    if f"{SPINE}/blocks.csv" not in release.files.values():
        raise OutputError(f"{release.folder} has no {SPINE}/blocks.csv; name the release whose measurements these are")
    release.file(f"{SPINE}/blocks.csv")
    any_codes = release.manifest["parameters"]["spine"] == OF_AREAS
    return read_spine(release.folder / SPINE, levels, any_codes=any_codes)


def file_of(release: ReleaseFolder, stem: str) -> str | None:
    """The file of a release, text or Parquet, that is called so without its ending; None if it has none.

    Raises
    ------
    OutputError
        If it has both.
    """
    found = [name for name in (f"{stem}.csv", f"{stem}.parquet") if name in release.files.values()]
    if len(found) > 1:
        raise OutputError(f"{release.folder} has {' and '.join(found)}, which say the same; run yupana check")
    return found[0] if found else None


_NEAR = 1e-9
"""How far a variance that was written may be off the plan's, as a share."""


@dataclass(frozen=True, slots=True, eq=False)
class _MeasuredTables:
    """Measurements of queries that keep or sum whole attributes, in memory."""

    spending: Spending
    read: Mapping[tuple[int, int], NDArray[np.integer]]  # shape (units, size): by geolevel and place among its queries

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
) -> _MeasuredTables:
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
    return _MeasuredTables(spending, read)


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
    list_labels(db, "units", labels)
    size = spent.queries[q].size
    texts = {f"k{i}": np.array(values, dtype=object) for i, values in enumerate(columns.values())}
    store_arrays(db, "answers", {"place": np.arange(size), **texts})
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
