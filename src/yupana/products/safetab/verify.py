"""Whether the tables of a SafeTab release hold together: with each other, and with their plan. Public.

National tables have tens of millions of rows, so the database reads the files and does the comparing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from yupana.errors import OutputError
from yupana.files.database import open_database, unreadable
from yupana.files.delimited import column_types
from yupana.plan.margin import z_value
from yupana.plan.plan import margin_from_json
from yupana.privacy.exact import read_exact
from yupana.products.safetab.household_tables import FAMILIES, Family, Table
from yupana.products.safetab.person_tables import AGE_TABLES, SEXES, TOTALS
from yupana.products.safetab.regions import REGION_TYPES, US
from yupana.release.processing import COTERMINOUS, RECORD, SUPPRESSED, SUPPRESSION
from yupana.release.tables import table_rows

_GROUP: Final = ("REGION_ID", "REGION_TYPE", "ITERATION_CODE")
_NUMBERS: Final = {"COUNT": "BIGINT", "VARIANCE": "DOUBLE", "MOE": "DOUBLE"}
_TOLERANCE: Final = 1e-9
_MOST_COTERMINOUS: Final = sum(region.run == US for region in REGION_TYPES)
"""Areas in a set: one of each summary level."""

_Noise = tuple[float, float]
"""A variance and its margin of error."""

_TABLES: Final = {
    "safetab-p": (TOTALS, *(table.name for table in AGE_TABLES)),
    "safetab-h": tuple(table.name for family in FAMILIES for table in family.tables),
}
_ALL_TABLES: Final = tuple(name for names in _TABLES.values() for name in names)


@dataclass(frozen=True, slots=True)
class _Release:
    """What a manifest says of a release, as far as it decides what its tables must satisfy.

    Attributes
    ----------
    tables : tuple of str
        Those that are here, in order.
    absent : tuple of str
        Other tables of the product.
    plan : mapping or None
        None of a table that was postprocessed without its manifest.
    combined, suppressed : bool
        Whether coterminous areas were combined, and counts suppressed.
    """

    tables: tuple[str, ...]
    absent: tuple[str, ...]
    plan: Mapping[str, Any] | None
    combined: bool
    suppressed: bool

    @property
    def unchecked(self) -> list[str]:
        """What cannot be checked, in words."""
        notes = []
        if self.absent and self.plan is not None:
            notes.append(f"what joins these tables with {', '.join(self.absent)}, which are not here")
        if self.plan is None:
            notes.append("variances and margins of error, as the manifest has no plan")
        elif self.combined:
            notes.append("variances one by one, as coterminous areas were combined, but only their range")
        if self.suppressed:
            notes.append(f"the numbers of rows with {SUPPRESSED}, and sums that such a row is part of")
        return notes


def _described(manifest: Mapping[str, Any]) -> _Release:
    listed = {str(described["table"]) for described in manifest["tables"].values()}
    rules = {str(record["rule"]) for record in manifest.get(RECORD, ())}
    due = _TABLES[manifest["product"]] if manifest["product"] != "tables" else _ALL_TABLES
    # A single table may be postprocessed, and one without its manifest has no plan.
    if not (listed == set(due) or (rules and listed and listed < set(due))):
        raise ValueError("the manifest does not list the tables of the product")
    return _Release(
        tuple(name for name in due if name in listed),
        tuple(name for name in due if name not in listed),
        manifest["plan"] if manifest["product"] != "tables" else None,
        COTERMINOUS in rules,
        SUPPRESSION in rules,
    )


def verify_release(folder: Path, manifest: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Compare the tables of a release with their plan.

    Of a release that was postprocessed, what still must hold is compared. A variance of combined areas must then lie
    between the least and the largest it can have: by theorem 1 of docs/coterminous.md none is above that of an area of
    the set by itself. And none is below the least of a single cell divided by the number of areas, as each area has
    one measurement that tells of a count, at best one of the very cell.

    Returns
    -------
    tuple
        What is wrong, and what could not be checked because the release was postprocessed, in words.

    Raises
    ------
    KeyError, TypeError, ValueError
        If the manifest does not hold a plan of SafeTab.
    """
    release = _described(manifest)
    paths = {str(described["table"]): folder / Path(name).name for name, described in manifest["tables"].items()}
    wrong = _compare(release, paths, manifest, (*_checks_p(release), *_checks_h(release)))
    return wrong, [] if wrong else release.unchecked


def verify_totals(path: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Compare the noise of the table of totals of a release of SafeTab-P with its plan, and nothing else.

    The other tables need not be there.

    Returns
    -------
    list of str
        What is wrong, in words.

    Raises
    ------
    KeyError, TypeError, ValueError, AttributeError
        If the manifest does not hold a plan of SafeTab and this table.
    """
    release = _described(manifest)
    return _compare(release, {TOTALS: path}, manifest, _noise_checks(release, TOTALS, _OF_TOTALS, _CELLS_OF_TOTALS))


def _compare(
    release: _Release,
    paths: Mapping[str, Path],
    manifest: Mapping[str, Any],
    checks: Iterable[tuple[str, str]],
) -> list[str]:
    """What is wrong with some tables of a release, in words."""
    wrong: list[str] = []
    with open_database() as db:
        for table, path in paths.items():
            try:
                with unreadable(OutputError(f"{path.name} is not readable as a table of a release")):
                    db.execute(f"CREATE VIEW {table} AS SELECT * FROM {_source(path, suppressed=release.suppressed)}")
                    found = list(column_types(db, table))
                    ((rows,),) = db.execute(f"SELECT count(*) FROM {table}").fetchall()
            except OutputError as error:
                wrong.append(str(error))
                continue
            described = manifest["tables"][path.name]
            if found != described["columns"]:
                wrong.append(f"{path.name} does not have the columns of the manifest")
            if rows != described["rows"]:
                wrong.append(f"{path.name} does not have the rows of the manifest")
        for text, query in checks if not wrong else ():
            try:
                with unreadable(OutputError(f"{text}: a value cannot be read")):
                    ((broken,),) = db.execute(f"SELECT count(*) FROM ({query})").fetchall()
            except OutputError as error:
                wrong.append(str(error))
                continue
            if broken:
                wrong.append(f"{text}: {broken:,} times not")
    return wrong


def _source(path: Path, *, suppressed: bool) -> str:
    """What to select a table from; a suppressed number is NULL."""
    if not suppressed:
        return table_rows(path, _NUMBERS)
    numbers = ", ".join(
        f"CAST(nullif(CAST({name} AS VARCHAR), '{SUPPRESSED}') AS {kind}) AS {name}" for name, kind in _NUMBERS.items()
    )
    return f"(SELECT * REPLACE ({numbers}) FROM {table_rows(path)})"


_OF_TOTALS: Final = ("detailed-only/", "stage 2/")
_CELLS_OF_TOTALS: Final = [1, *(table.cells for table in AGE_TABLES)]
"""The measurements that totals are of, and how many of their cells a total adds up."""


def _checks_p(release: _Release) -> Iterator[tuple[str, str]]:
    if TOTALS in release.tables:
        yield from _row_checks(release, TOTALS, (), _OF_TOTALS, _CELLS_OF_TOTALS)
    tables = [table for table in AGE_TABLES if table.name in release.tables]
    for table in tables:
        ages = len(table.starts)
        yield from _row_checks(release, table.name, ("AGESTART", "SEX"), ("stage 2/",), [1, ages])
        sums = f"""
            SELECT {", ".join(_GROUP)}, SEX, sum(CASE WHEN AGESTART = '*' THEN -COUNT ELSE COUNT END) AS left_over,
                count(*) AS n, count(COUNT) AS numbers FROM {table.name} GROUP BY ALL"""
        yield (
            f"{table.name}: the row of all ages is the sum of its {ages} ages",
            f"SELECT 1 FROM ({sums}) WHERE (left_over <> 0 AND numbers = n) OR n <> {ages + 1}",
        )
        if TOTALS not in release.tables:
            continue
        groups = f"""
            SELECT {", ".join(_GROUP)}, sum(COUNT) AS total, count(*) AS n, count(COUNT) AS numbers
            FROM {table.name} WHERE AGESTART <> '*' GROUP BY ALL"""
        yield (
            f"{table.name}: every group has its total in {TOTALS}",
            f"SELECT 1 FROM ({groups}) g LEFT JOIN (SELECT *, true AS is_there FROM {TOTALS}) t"
            f" USING ({', '.join(_GROUP)}) WHERE t.is_there IS NULL"
            f" OR (t.COUNT <> g.total AND g.numbers = g.n) OR g.n <> {ages * len(SEXES)}",
        )
    yield from _one_table_each([table.name for table in tables])


def _checks_h(release: _Release) -> Iterator[tuple[str, str]]:
    for family in FAMILIES:
        tables = [table for table in family.tables if table.name in release.tables]
        for table in tables:
            times = sorted({len(basis) for _, basis in family.published(table)})
            yield from _row_checks(release, table.name, (family.cell_column,), (f"{family.name}/",), times)
            yield from _marginals(family, table)
        yield from _one_table_each([table.name for table in tables])


def _marginals(family: Family, table: Table) -> Iterator[tuple[str, str]]:
    published = family.published(table)
    basis = [cell for cell, _ in table.basis]
    cells = {cell: f"max(COUNT) FILTER (WHERE {family.cell_column} = '{cell}')" for cell, _ in published}
    picked = ", ".join(f"{value} AS c{cell}" for cell, value in cells.items())
    broken = [f"n <> {len(published)}"]
    for cell, parts in published:
        if cell not in basis:
            broken.append(f"c{cell} <> {' + '.join(f'c{basis[part]}' for part in parts)}")
    groups = f"SELECT {', '.join(_GROUP)}, count(*) AS n, {picked} FROM {table.name} GROUP BY ALL"
    yield (
        f"{table.name}: marginals are the sums of their cells",
        f"SELECT 1 FROM ({groups}) WHERE {' OR '.join(broken)}",
    )


def _row_checks(
    release: _Release, table: str, cell: tuple[str, ...], measured: tuple[str, ...], times: Sequence[int]
) -> Iterator[tuple[str, str]]:
    """What every row of a table must satisfy by itself, and that none stands twice.

    Its variances are those of the measurements whose names begin so, times a number of cells.
    """
    key = ", ".join((*_GROUP, *cell))
    yield f"{table}: every group and cell stands once", f"SELECT 1 FROM {table} GROUP BY {key} HAVING count(*) > 1"
    areas = " OR ".join(
        f"(REGION_TYPE = '{r.name}' AND regexp_full_match(REGION_ID, '[0-9]{{{r.width}}}'))" for r in REGION_TYPES
    )
    yield (
        f"{table}: areas and iterations are written as codes",
        f"SELECT 1 FROM {table} WHERE NOT ({areas}) OR NOT regexp_full_match(ITERATION_CODE, '[0-9]{{4}}')"
        f" OR {_UNSUPPRESSED if release.suppressed else _WITHOUT_NUMBER}",
    )
    yield from _noise_checks(release, table, measured, times)


def _noise_checks(
    release: _Release, table: str, measured: tuple[str, ...], times: Sequence[int]
) -> Iterator[tuple[str, str]]:
    """That variances and margins of error are those of the measurements, times a number of cells."""
    if release.plan is None:
        return
    allowed = _allowed(release.plan, measured, times)
    if release.combined:
        least, most = _range([value for values in allowed.values() for value, _ in values])
        yield (
            f"{table}: variances lie within what combining areas of the plan gives",
            f"SELECT 1 FROM {table} WHERE NOT VARIANCE BETWEEN {least!r} AND {most!r}",
        )
    else:
        yield from _variances(table, allowed)
    yield _margins(release.plan, table, allowed, combined=release.combined)


def _margins(
    plan: Mapping[str, Any], table: str, allowed: Mapping[str, Sequence[_Noise]], *, combined: bool
) -> tuple[str, str]:
    """By the exact law, or z standard deviations: those of the Bureau, and of areas combined by least squares."""
    z = z_value(Fraction(str(plan["confidence"])))
    by_z = f"abs(MOE - {z!r} * sqrt(VARIANCE)) <= {_TOLERANCE} * (1 + sqrt(VARIANCE))"
    if plan.get("margins", "bureau") == "bureau":
        return f"{table}: margins of error are {z:g} standard deviations", f"SELECT 1 FROM {table} WHERE NOT {by_z}"
    # A variance that is not the plan's is told by itself.
    fits = f"{_fits(allowed, 'MOE')} OR {by_z if combined else f'NOT ({_fits(allowed)})'}"
    text = "margins of error are those of the noise of the plan"
    return f"{table}: {text}", f"SELECT 1 FROM {table} WHERE NOT ({fits})"


_WITHOUT_NUMBER: Final = "COUNT IS NULL OR VARIANCE IS NULL OR MOE IS NULL"
_UNSUPPRESSED: Final = " OR ".join(f"({name} IS NULL) <> (coalesce(REASON, '') <> '')" for name in _NUMBERS)
"""One of the numbers is X without a reason, or is there in spite of one."""


def _range(values: Sequence[float]) -> tuple[float, float]:
    least, most = (min(values), max(values)) if values else (0.0, 0.0)
    return least / _MOST_COTERMINOUS * (1 - _TOLERANCE), most * (1 + _TOLERANCE)


def _variances(table: str, allowed: Mapping[str, Sequence[_Noise]]) -> Iterator[tuple[str, str]]:
    yield f"{table}: variances are those of the plan", f"SELECT 1 FROM {table} WHERE NOT ({_fits(allowed)})"


def _fits(allowed: Mapping[str, Sequence[_Noise]], margin: str = "") -> str:
    """Whether a row has a variance of its region, and the margin that goes with it where that is asked."""
    found = [
        f"(REGION_TYPE = '{region}' AND {_near('VARIANCE', value)}" + (f" AND {margin} = {moe!r})" if margin else ")")
        for region, values in allowed.items()
        for value, moe in values
    ]
    return " OR ".join(found) or "false"


def _one_table_each(tables: Sequence[str]) -> Iterator[tuple[str, str]]:
    if len(tables) < 2:
        return
    groups = " UNION ALL ".join(f"SELECT DISTINCT {', '.join(_GROUP)} FROM {table}" for table in tables)
    yield (
        f"{tables[0]} to {tables[-1]}: a group is in one of them",
        f"SELECT 1 FROM ({groups}) GROUP BY {', '.join(_GROUP)} HAVING count(*) > 1",
    )


def _near(column: str, value: float) -> str:
    return f"abs({column} - {value!r}) <= {_TOLERANCE * (1 + abs(value))!r}"


def _allowed(plan: Mapping[str, Any], kinds: tuple[str, ...], times: Sequence[int]) -> dict[str, list[_Noise]]:
    """By region type the noise of sums of so many cells, of the measurements whose names begin so."""
    found: dict[str, list[_Noise]] = {}
    for m in plan["measurements"]:
        if str(m["name"]).startswith(kinds):
            sigma2 = float(read_exact(m["sigma2"]))
            here = found.setdefault(str(m["level"]).rsplit(" ", 1)[0], [])
            here += [(sigma2 * number, margin_from_json(plan, m, number)) for number in dict.fromkeys(times)]
    return found
