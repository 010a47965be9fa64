"""Counts of a hierarchy of geounits beside their truth.

A release of TopDown and its truth each hold ``counts/<geolevel>.csv`` (geounit, one column per attribute, count), in
which absent rows are zero.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import duckdb
import numpy as np

from yupana.audit.empirical.series import DETAILED, TOTAL, Series
from yupana.confidential.records.database import private_database
from yupana.errors import InputError
from yupana.files.database import named, unreadable
from yupana.files.delimited import csv_rows, read_header
from yupana.products.gate import open_release
from yupana.release.folder import MANIFEST

COUNTS: Final = "counts"
SPINE: Final = Path("spine", "geounits.csv")


def by_geolevel(release: Path, truth: Path, queries: Sequence[str] | None = None) -> Iterator[Series]:
    """Pair the counts of a release with their truth, geolevel by geolevel and query by query.

    A query is counted in every geounit that occurs in either, and in every cell that occurs anywhere on its geolevel;
    a geounit listed by ``spine/geounits.csv`` of the release counts even where all its counts are zero.

    Parameters
    ----------
    release, truth : Path
        Folders.
    queries : sequence of str, optional
        ``total``, ``detailed``, or the names of the attributes kept, joined by ``*``. By default the total, each
        attribute, and all of them.

    Raises
    ------
    InputError
        If the two do not have the same spine, geolevels and attributes, or a count is no whole number.
    OutputError
        If one has a manifest and files that are not the manifest's.
    """
    for folder in (release, truth):
        if (folder / MANIFEST).exists():
            open_release(folder).intact()
    levels = sorted((release / COUNTS).glob("*.csv"))
    if not levels:
        raise InputError(f"{release / COUNTS} holds no counts by geolevel; name a release of TopDown")
    spines = [folder / SPINE for folder in (release, truth)]
    if all(path.is_file() for path in spines) and spines[0].read_bytes() != spines[1].read_bytes():
        raise InputError(f"{spines[1]} is another spine than {spines[0]}; make the truth on the spine of the release")
    for path in levels:
        other = truth / COUNTS / path.name
        if not other.is_file():
            raise InputError(f"{other}: no such file, so the counts of {path.stem} cannot be matched")
        with private_database() as database:
            attributes = _load(database, path, "noisy")
            if _load(database, other, "exact") != attributes:
                raise InputError(f"{other} does not have the columns of {path}, so their counts do not match")
            units = _units(database, release, path.stem)
            for query in queries or (TOTAL, *attributes, *([DETAILED] if len(attributes) > 1 else [])):
                yield _series(database, path.stem, query, _kept(query, attributes, path), units)


def _kept(query: str, attributes: Sequence[str], path: Path) -> tuple[str, ...]:
    if query == TOTAL:
        return ()
    kept = tuple(attributes) if query == DETAILED else tuple(query.split("*"))
    for name in kept:
        if name not in attributes:
            raise InputError(f"query {query}: {path} has no attribute {name!r}; it has {', '.join(attributes)}")
    return kept


def _load(database: duckdb.DuckDBPyConnection, path: Path, name: str) -> tuple[str, ...]:
    """Hold counts as a table; return the attributes."""
    with unreadable(InputError(f"{path} is not readable as counts")):
        found = read_header(path, quote="")
        header = found.names
        if header[0] != "geounit" or header[-1] != "count" or len(set(header)) != len(header):
            raise InputError(f"{path}: the columns must be geounit, the attributes, and count")
        rows = csv_rows(path, header, separator=found.separator)
        database.execute(f"CREATE TABLE {name} AS SELECT * FROM {rows}")
        wrong = database.execute(
            f"SELECT min(rowid) FROM {name} WHERE NOT coalesce(regexp_full_match(\"count\", '-?[0-9]{{1,15}}'), false)"
        ).fetchall()[0][0]
    if wrong is not None:
        raise InputError(f"{path}, line {wrong + 2}, column count: not a whole number")
    return tuple(header[1:-1])


def _units(database: duckdb.DuckDBPyConnection, release: Path, geolevel: str) -> int:
    """How many geounits a geolevel has."""
    found = database.execute(
        "SELECT count(*) FROM (SELECT geounit FROM noisy UNION SELECT geounit FROM exact)"
    ).fetchall()[0][0]
    spine = release / SPINE
    if not spine.is_file():
        return int(found)
    header = read_header(spine, quote="")
    rows = csv_rows(spine, header.names, separator=header.separator)
    query = f"SELECT count(*) FROM {rows} WHERE geolevel = ?"
    with unreadable(InputError(f"{spine} is not readable as a list of geounits")):
        ((listed,),) = database.execute(query, [geolevel]).fetchall()
    return max(int(found), int(listed))


def _series(
    database: duckdb.DuckDBPyConnection, geolevel: str, query: str, kept: tuple[str, ...], units: int
) -> Series:
    names = [named(name) for name in kept]
    columns = ", ".join(["geounit", *names])

    def summed(table: str) -> str:
        return f'(SELECT {columns}, sum("count"::BIGINT)::DOUBLE AS n FROM {table} GROUP BY ALL)'

    found = database.execute(
        f"SELECT coalesce(e.n, 0) AS exact, coalesce(r.n, 0) AS noisy FROM {summed('exact')} e "
        f"FULL OUTER JOIN {summed('noisy')} r USING ({columns}) ORDER BY {columns}"
    ).fetchnumpy()
    cells = 1
    if kept:
        listed = f"SELECT {', '.join(names)} FROM noisy UNION SELECT {', '.join(names)} FROM exact"
        cells = int(database.execute(f"SELECT count(*) FROM ({listed})").fetchall()[0][0])
    exact, noisy = (np.asarray(found[name], dtype=np.float64) for name in ("exact", "noisy"))
    return Series(f"{geolevel} {query}", exact, noisy, both_zero=units * cells - exact.size)
