"""Reads files of a TopDown release whose rows stand in any order: counts as a histogram, noisy measurements. Public.

Whether they hold together is checked by `yupana.products.topdown.agreement`.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import isclose
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Ints
from yupana.errors import OutputError
from yupana.files.database import named, open_database, quoted, store_arrays, unreadable
from yupana.files.delimited import PARQUET, positions
from yupana.privacy.exact import read_exact
from yupana.release.lines import Texts
from yupana.release.tables import table_columns, table_rows
from yupana.topdown.histogram import Histogram, count_entries
from yupana.topdown.nmf.layout import DPQUERY
from yupana.topdown.queries import Attribute, Schema


class CountFileError(Exception):
    """A file that does not hold what it should; the text says so."""


def read_counts(
    db: duckdb.DuckDBPyConnection,
    folder: Path,
    name: str,
    schema: Schema,
    labels: Texts,
) -> Histogram:
    """Counts of units in the order of their labels, from a table whose rows are in any order."""
    source = source_of(folder / f"{name}.csv", ("geounit", *schema.names, "count"), name)
    unit, joined, known = units_named(db, labels, "geounit")
    cell = cell_of(schema.attributes)
    with unreadable(cannot_be_read(name)):
        found = db.execute(f"""SELECT coalesce({unit}, -1) AS unit, coalesce({cell}, -1) AS cell,
            coalesce(TRY_CAST("count" AS BIGINT), -1) AS "count" FROM {source} {joined}""").fetchnumpy()
    place, cells, count = places_of(found["unit"], known), np.asarray(found["cell"]), np.asarray(found["count"])
    if bool((place < 0).any()):
        raise CountFileError(f"{name} has a geounit that the blocks of the spine do not have")
    if bool((cells < 0).any()) or bool((count <= 0).any()):
        raise CountFileError(f"{name} has a row outside the schema, or a count that is no whole number above 0")
    counts = count_entries(place, cells, count, len(labels))
    if len(counts.counts) < len(count):
        raise CountFileError(f"{name} has a cell of a geounit twice")
    return counts


def units_named(db: duckdb.DuckDBPyConnection, labels: Texts, column: str) -> tuple[str, str, Ints]:
    """SQL for the number of the unit that a column names, NULL for none, what it joins, and the numbers of all units.

    No attribute has a name with a space.
    """
    if (codes := codes_of(labels)) is not None:
        return code_of(labels.itemsize, column), "", codes
    written = np.array([label.decode() for label in labels.tolist()], dtype=object)
    places = np.arange(len(labels))
    store_arrays(db, "labels", {"a label": written, "its place": places})
    return '"its place"', f'LEFT JOIN labels ON "a label" = {column}', places


def code_of(width: int, column: str = "geounit") -> str:
    """SQL for a text of so many digits as a number; NULL where it is none."""
    return f"CASE WHEN length({column}) = {width} THEN TRY_CAST({column} AS BIGINT) END"


def places_of(units: NDArray[Any], known: Ints) -> Ints:
    """The place of each unit among those known, which are different; -1 for none."""
    order = np.argsort(known)
    return np.append(order, -1)[positions(np.asarray(units), known[order])]


def codes_of(labels: Texts) -> Ints | None:
    """Identifiers as numbers, if all are digits and equally many."""
    lengths = np.char.str_len(labels)
    if not np.char.isdigit(labels).all() or bool((lengths != lengths[:1]).any()):
        return None
    return np.asarray(labels.astype(np.int64))


def source_of(path: Path, columns: Sequence[str], name: str) -> str:
    """SQL for a table with these columns, all text; there may be one of Parquet in its place."""
    paths = [each for each in (path, path.with_suffix(PARQUET)) if each.is_file()]
    if len(paths) != 1:
        raise CountFileError(f"{name} is missing, or there both as CSV and as Parquet")
    with unreadable(cannot_be_read(name)):
        found, rows = table_columns(paths[0]), table_rows(paths[0])
    if found != list(columns):
        raise CountFileError(f"{name} must have the columns {', '.join(columns)}")
    return f"(SELECT COLUMNS(*)::VARCHAR FROM {rows})"


def cell_of(attributes: Iterable[Attribute]) -> str:
    """SQL for the number of a cell, from the labels of the attributes' levels; NULL if one is none of the schema."""
    cell = "0"
    for attribute in attributes:
        name = named(attribute.name)
        if attribute.labels == tuple(map(str, range(attribute.size))):
            number = f"TRY_CAST({name} AS INTEGER)"
            level = f"CASE WHEN {number} BETWEEN 0 AND {attribute.size - 1} THEN {number} END"
        else:
            level = f"(list_position([{', '.join(map(quoted, attribute.labels))}], {name}) - 1)"
        cell = f"({cell} * {attribute.size} + {level})"
    return cell


SYSTEM: Final = "topdown"
"""What the manifest of a release calls the system that made it; its product is called as the configuration says."""

NOISY: Final = "topdown, noisy measurements"

MEASUREMENTS: Final = "measurements"
"""Where the manifest of a release that was made of noisy measurement files tells of these."""


def verify_noisy(folder: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Compare the variances that noisy measurements state with those of their plan, geolevel by geolevel.

    Returns
    -------
    list of str
        What is wrong, in words.
    """
    due: dict[str, list[float]] = {}
    for m in manifest["plan"]["measurements"]:
        due.setdefault(str(m["level"]), []).append(float(read_exact(m["sigma2"])))
    wrong = []
    with open_database() as db:
        for name in manifest["tables"]:
            parts = Path(name).parts
            if DPQUERY not in parts and Path(name).suffix == ".parquet":
                continue  # what holds exactly has no noise
            level = next(part for part in (*parts[:-1], "") if Path(part).stem in due or not part)
            try:
                with unreadable(OutputError(f"{name} is not readable")):
                    found = db.execute(
                        f"SELECT DISTINCT variance FROM {table_rows(folder / name, {'variance': 'DOUBLE'})}"
                    ).fetchall()
            except OutputError as error:
                wrong.append(str(error))
                continue
            known = due.get(Path(level).stem, [])
            if any(not any(isclose(of, one, rel_tol=_NEAR) for one in known) for (of,) in found):
                wrong.append(f"{name}: variances are not those of the plan")
    return wrong


_NEAR: Final = 1e-6
"""How near variances of 24 binary digits are to those of a plan."""


def cannot_be_read(file: str) -> CountFileError:
    """What is wrong with a file that is no table."""
    return CountFileError(f"{file} is not readable as a table of a release")
