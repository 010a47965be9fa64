"""Exact counts, and noisy ones beside their truth, as audits read them.

Messages give places, never values: the counts may be confidential.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats
from yupana.audit.empirical.series import DETAILED, TOTAL, Series
from yupana.confidential.records.database import numbers, private_database
from yupana.errors import InputError
from yupana.files.database import named, unreadable
from yupana.files.delimited import PARQUET, column_types, csv_rows, parquet_rows, read_header
from yupana.files.regular import FILE, must_be
from yupana.privacy.laws import Law, Zero
from yupana.products.gate import open_release
from yupana.release.manifest import MANIFEST
from yupana.release.release import ReleaseFolder
from yupana.release.tables import read_table

_MOST: Final = 1 << 32
"""Sums of so large counts and their noise stay whole numbers in float64."""


def read_numbers(path: Path, names: Sequence[str]) -> tuple[Floats, ...]:
    """Read columns of numbers by their names.

    Parameters
    ----------
    path : Path
        Parquet by its name, otherwise CSV with a header, separated by ``|`` or ``,``.
    names : sequence of str
        As the file spells them.

    Returns
    -------
    tuple of ndarray of float64, shape (rows,)

    Raises
    ------
    InputError
        If there is no such file or column, or a field is no finite number.
    """
    with private_database() as database:
        header = _open(database, path)
        for name in names:
            if name not in header:
                raise InputError(f"{path}: no column {name!r}; it has {', '.join(header)}")
        read = [f"TRY_CAST({named(name)} AS DOUBLE) AS c{i}" for i, name in enumerate(names)]
        with unreadable(InputError(f"{path} could not be read to its end")):
            found = database.execute(f"SELECT {', '.join(read)} FROM rows ORDER BY line").fetchnumpy()
    columns = []
    for i, name in enumerate(names):
        column = np.ma.filled(np.ma.asarray(found[f"c{i}"], dtype=np.float64), np.nan)
        if (bad := np.flatnonzero(~np.isfinite(column))).size:
            raise InputError(f"{_place(path, bad[0])}, column {name}: not a finite number (empty, NaN or a text)")
        columns.append(np.asarray(column, dtype=np.float64))
    return tuple(columns)


def read_counts(path: Path, names: Sequence[str]) -> tuple[NDArray[np.int64], ...]:
    """Read columns of whole numbers of zero or more, at most 2^32; see `read_numbers`.

    Raises
    ------
    InputError
        As `read_numbers`, or if a number is not whole, negative or larger.
    """
    columns = read_numbers(path, names)
    for name, column in zip(names, columns, strict=True):
        if (bad := np.flatnonzero((column != np.floor(column)) | (column < 0) | (column > _MOST))).size:
            raise InputError(f"{_place(path, bad[0])}, column {name}: not a whole number from 0 to 2^32")
    return tuple(column.astype(np.int64) for column in columns)


def column_names(path: Path) -> list[str]:
    """The header of a file; see `read_numbers`."""
    with private_database() as database:
        return _open(database, path)


def _open(database: duckdb.DuckDBPyConnection, path: Path) -> list[str]:
    """Hold a file as the table ``rows``, with the number of each in ``line``; return its header."""
    must_be(FILE, path, "name a CSV or Parquet file")
    text = "not readable as CSV or Parquet; a CSV needs a header, and every line as many fields as it"
    with unreadable(InputError(f"{path}: {text}")):
        if path.suffix == PARQUET:
            rows = parquet_rows([path])
        else:
            header = read_header(path)
            rows = csv_rows(path, header.names, separator=header.separator, quote='"')
        database.execute(f"CREATE TABLE rows AS SELECT row_number() OVER () AS line, * FROM {rows}")
        return list(column_types(database, "rows"))[1:]


def _place(path: Path, row: int) -> str:
    return f"{path}, row {row + 1}" if path.suffix == ".parquet" else f"{path}, line {row + 2}"


_GEOGRAPHY: Final = ("state", "county", "tract", "BLKGRP")
_RACES: Final = tuple(range(3, 10))
"""Variables of P1 and P3: six races alone, and two or more."""

_RACES_NOT_HISPANIC: Final = tuple(range(5, 12))
"""The same races among those not Hispanic, in P2 and P4."""


def read_strata(path: Path) -> dict[str, NDArray[np.int64]]:
    """Read blocks and sum them up by block group and tract.

    Parameters
    ----------
    path : Path
        One row per block, with the columns state, county, tract, BLKGRP and the variables P001003 to P004011 of the
        2010 tables P1 to P4, as the Census Bureau's interface names them.

    Returns
    -------
    mapping of geolevel to ndarray of int64, shape (geounits, 28)
        Tract, Block_Group and Block. Strata: under and of voting age, Hispanic or not, seven races.

    Raises
    ------
    InputError
        If columns are missing, or the counts contradict each other.
    """
    all_ages, not_hispanic, adults, adults_not_hispanic = (
        [f"P{table:03}{number:03}" for number in numbers]
        for table, numbers in ((1, _RACES), (2, _RACES_NOT_HISPANIC), (3, _RACES), (4, _RACES_NOT_HISPANIC))
    )
    names = [*_GEOGRAPHY, *all_ages, *not_hispanic, *adults, *adults_not_hispanic]
    columns = read_numbers(path, names)
    codes = np.stack(columns[:4]).astype(np.int64)
    if len({(int(state), int(county)) for state, county in np.unique(codes[:2], axis=1).T}) > 1:
        raise InputError(f"{path}: the blocks must be of one county, whose total is the invariant")
    every, others, of_age, others_of_age = np.stack(columns[4:], axis=1).reshape(-1, 4, 7).transpose(1, 0, 2)
    adult = np.stack([of_age - others_of_age, others_of_age], axis=1)
    whole = np.stack([every - others, others], axis=1)
    blocks = np.stack([whole - adult, adult], axis=1).reshape(len(every), -1).astype(np.int64)
    if (bad := np.flatnonzero((blocks < 0).any(axis=1))).size:
        raise InputError(f"{path}, row {bad[0] + 1}: a part of P1 to P4 is larger than the whole")
    tract = codes[2]
    return {
        "Tract": _summed(blocks, tract),
        "Block_Group": _summed(blocks, tract * 10 + codes[3]),
        "Block": blocks,
    }


def _summed(blocks: NDArray[np.int64], unit: NDArray[np.int64]) -> NDArray[np.int64]:
    found, place = np.unique(unit, return_inverse=True)
    sums = np.zeros((len(found), blocks.shape[1]), dtype=np.int64)
    np.add.at(sums, place, blocks)
    return sums


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
    (found,) = numbers(database, "SELECT count(*) FROM (SELECT geounit FROM noisy UNION SELECT geounit FROM exact)")
    spine = release / SPINE
    if not spine.is_file():
        return found
    header = read_header(spine, quote="")
    rows = csv_rows(spine, header.names, separator=header.separator)
    query = f"SELECT count(*) FROM {rows} WHERE geolevel = ?"
    with unreadable(InputError(f"{spine} is not readable as a list of geounits")):
        ((listed,),) = database.execute(query, [geolevel]).fetchall()
    return max(found, int(listed))


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
        (cells,) = numbers(database, f"SELECT count(*) FROM ({listed})")
    exact, noisy = (np.asarray(found[name], dtype=np.float64) for name in ("exact", "noisy"))
    return Series(f"{geolevel} {query}", exact, noisy, both_zero=units * cells - exact.size)


_VALUES: Final = frozenset({"COUNT", "VARIANCE", "MOE", "NOISE_DISTRIBUTION"})
"""Columns that do not say which count a row is."""


def release_and_truth(release: Path, truth: Path) -> Iterator[Series]:
    """Pair the tables of a release with those of its truth, such as `phsafe run` and `phsafe exact` write.

    Counts are taken together by table and variance, so that a series has noise of one law. The law is known where the
    variance is that of a measurement of the plan; sums of measured cells have another. SafeTab chooses the table of a
    group by noise, so a noisy count may have no exact one; such counts are left out and numbered.

    Raises
    ------
    InputError, OutputError
        If one is no release, or their counts do not match.
    """
    noisy_release, exact_release = (open_release(folder).intact() for folder in (release, truth))
    for name in noisy_release.files.values():
        if name not in exact_release.files.values():
            raise InputError(f"{truth} has no table {name}, so its counts cannot be matched with those of {release}")
    try:
        for table, name in noisy_release.files.items():
            noisy, exact = (read_table(folder / name) for folder in (release, truth))
            for folder, counts in ((release, noisy), (truth, exact)):
                if "COUNT" not in counts:
                    raise InputError(f"{folder / name} has no column COUNT")
            yield from _by_variance(table, noisy, exact, noisy_release)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
        # The checksums hold, so whoever wrote them wrote other tables or another plan than this program does.
        raise InputError(f"{release} and {truth} do not hold the counts and the plan of a release") from None


def _by_variance(
    table: str, noisy: dict[str, list[str]], exact: dict[str, list[str]], release: ReleaseFolder
) -> Iterator[Series]:
    keys = [column for column in noisy if column not in _VALUES]
    if missing_keys := [key for key in keys if key not in exact]:
        raise InputError(f"table {table}: the truth has no column {missing_keys[0]}: the counts do not match")
    for counts in (noisy, exact):
        _check_numbers(table, [*counts["COUNT"], *counts.get("VARIANCE", ())])
    truth = dict(zip(zip(*(exact.get(key, []) for key in keys), strict=True), exact["COUNT"], strict=True))
    may_differ = release.product.startswith("safetab")
    missing: Counter[tuple[str, str]] = Counter()
    groups: dict[tuple[str, str], list[tuple[float, float]]] = {}
    rows = zip(*(noisy[key] for key in keys), strict=True)
    variances = noisy.get("VARIANCE", [""] * len(noisy["COUNT"]))
    regions = noisy.get("REGION_TYPE", [""] * len(noisy["COUNT"]))
    for row, count, variance, region in zip(rows, noisy["COUNT"], variances, regions, strict=True):
        if row not in truth and may_differ:
            missing[region, variance] += 1
            continue
        if row not in truth:
            place = ", ".join(f"{key} {value}" for key, value in zip(keys, row, strict=True))
            raise InputError(f"table {table}: the truth has no count for {place}: the counts do not match")
        groups.setdefault((region, variance), []).append((float(truth[row]), float(count)))
    laws = _laws(release)
    for (region, variance), pairs in groups.items():
        both = np.array(pairs)
        name = " ".join(filter(None, (table, region, f"variance {float(variance):.6g}" if variance else "")))
        law = _law(laws, table, float(variance)) if variance else None
        yield Series(name, both[:, 0], both[:, 1], law, 0, missing[region, variance])


def _check_numbers(table: str, values: list[str]) -> None:
    try:
        good = all(math.isfinite(float(value)) for value in values)
    except ValueError:
        good = False
    if not good:
        raise InputError(f"table {table}: a COUNT or VARIANCE is no number")


def _law(laws: dict[tuple[str, float], Law], table: str, variance: float) -> Law | None:
    """The law of a measurement of this table; plans of SafeTab say T03 for T03001, T01001-T02003 for all between."""
    for (measured, its_variance), law in laws.items():
        first, _, last = measured.partition("-")
        if its_variance == variance and (table.startswith(measured) or first <= table <= last):
            return law
    return None


def _laws(release: ReleaseFolder) -> dict[tuple[str, float], Law]:
    """Laws of the measurements of a plan, by table and variance as a table writes it."""
    measured = release.plan.measurements if release.plan else ()
    return {(m.table, float(m.variance)): m.law for m in measured if not isinstance(m.law, Zero)}
