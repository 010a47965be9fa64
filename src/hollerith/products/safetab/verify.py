"""Whether the tables of a SafeTab release hold together: with each other, and with their plan. Public.

National tables have tens of millions of rows, so the database reads the files and does the comparing.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import duckdb

from hollerith.plan.margin import z_value
from hollerith.populations.household_tables import FAMILIES, Family
from hollerith.populations.person_tables import AGE_TABLES, SEXES, TOTALS
from hollerith.populations.regions import REGION_TYPES
from hollerith.privacy.exact import read_exact

_GROUP: Final = ("REGION_ID", "REGION_TYPE", "ITERATION_CODE")
_TAIL: Final = ("COUNT", "VARIANCE", "MOE")
_TOLERANCE: Final = 1e-9


def verify_release(folder: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Compare the tables of a release with their plan, and say what is wrong, in words.

    Raises
    ------
    KeyError, TypeError, ValueError
        If the manifest does not hold a plan of SafeTab.
    """
    wrong: list[str] = []
    paths = {str(described["table"]): folder / Path(name).name for name, described in manifest["tables"].items()}
    with duckdb.connect(":memory:") as db:
        db.execute("SET enable_progress_bar = false")
        for table, path in paths.items():
            try:
                db.execute(f"CREATE VIEW {table} AS SELECT * FROM {_source(path)}")
                found = [str(row[0]) for row in db.execute(f"DESCRIBE {table}").fetchall()]
                (rows,) = db.execute(f"SELECT count(*) FROM {table}").fetchone() or (0,)
            except duckdb.Error:
                wrong.append(f"{path.name} is not readable as a table of a release")
                continue
            described = manifest["tables"][path.name]
            if found != described["columns"]:
                wrong.append(f"{path.name} does not have the columns of the manifest")
            if rows != described["rows"]:
                wrong.append(f"{path.name} does not have the rows of the manifest")
        if wrong:
            return wrong
        checks = _checks_p if manifest["product"] == "safetab-p" else _checks_h
        for text, query in checks(manifest["plan"], set(paths)):
            try:
                (broken,) = db.execute(f"SELECT count(*) FROM ({query})").fetchone() or (0,)
            except duckdb.Error:
                wrong.append(f"{text}: a value cannot be read")
                continue
            if broken:
                wrong.append(f"{text}: {broken:,} times not")
    return wrong


def _source(path: Path) -> str:
    text = "".join(f"[{c}]" if c in "*?[" else c for c in str(path)).replace("'", "''")
    if path.suffix == ".parquet":
        return f"read_parquet('{text}')"
    columns = _columns_of(path)
    return f"read_csv('{text}', delim = '|', header = true, quote = '', auto_detect = false, columns = {columns})"


def _columns_of(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as file:
        header = file.readline().rstrip("\n").split("|")
    kinds = {"COUNT": "BIGINT", "VARIANCE": "DOUBLE", "MOE": "DOUBLE"}
    listed = ", ".join("'" + name.replace("'", "''") + f"': '{kinds.get(name, 'VARCHAR')}'" for name in header)
    return "{" + listed + "}"


def _checks_p(plan: Mapping[str, Any], tables: set[str]) -> Iterator[tuple[str, str]]:
    names = [TOTALS, *(table.name for table in AGE_TABLES)]
    _require(names, tables)
    totals = _sigma2(plan, ("detailed-only/", "stage 2/"))
    cells = _sigma2(plan, ("stage 2/",))
    times = [1, *(table.cells for table in AGE_TABLES)]
    yield from _row_checks(TOTALS, (), _allowed(totals, times), plan)
    for table in AGE_TABLES:
        ages = len(table.starts)
        yield from _row_checks(table.name, ("AGESTART", "SEX"), _allowed(cells, [1, ages]), plan)
        sums = f"""
            SELECT {", ".join(_GROUP)}, SEX, sum(CASE WHEN AGESTART = '*' THEN -COUNT ELSE COUNT END) AS left_over,
                count(*) AS n FROM {table.name} GROUP BY ALL"""
        yield (
            f"{table.name}: the row of all ages is the sum of its {ages} ages",
            f"SELECT 1 FROM ({sums}) WHERE left_over <> 0 OR n <> {ages + 1}",
        )
        groups = f"""
            SELECT {", ".join(_GROUP)}, sum(COUNT) AS total, count(*) AS n FROM {table.name}
            WHERE AGESTART <> '*' GROUP BY ALL"""
        yield (
            f"{table.name}: every group has its total in {TOTALS}",
            f"SELECT 1 FROM ({groups}) g LEFT JOIN {TOTALS} t USING ({', '.join(_GROUP)})"
            f" WHERE t.COUNT IS NULL OR t.COUNT <> g.total OR g.n <> {ages * len(SEXES)}",
        )
    yield from _one_table_each([table.name for table in AGE_TABLES])


def _checks_h(plan: Mapping[str, Any], tables: set[str]) -> Iterator[tuple[str, str]]:
    _require([table.name for family in FAMILIES for table in family.tables], tables)
    for family in FAMILIES:
        sigma2 = _sigma2(plan, (f"{family.name}/",))
        for number, table in enumerate(family.tables):
            times = sorted({len(basis) for _, basis in family.published(table)})
            yield from _row_checks(table.name, (family.cell_column,), _allowed(sigma2, times), plan)
            yield from _marginals(family, number)
        yield from _one_table_each([table.name for table in family.tables])


def _marginals(family: Family, number: int) -> Iterator[tuple[str, str]]:
    table = family.tables[number]
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
    table: str, cell: tuple[str, ...], allowed: Mapping[str, Sequence[float]], plan: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """What every row of a table must satisfy by itself, and that none stands twice."""
    key = ", ".join((*_GROUP, *cell))
    yield f"{table}: every group and cell stands once", f"SELECT 1 FROM {table} GROUP BY {key} HAVING count(*) > 1"
    areas = " OR ".join(
        f"(REGION_TYPE = '{r.name}' AND regexp_full_match(REGION_ID, '[0-9]{{{r.width}}}'))" for r in REGION_TYPES
    )
    yield (
        f"{table}: areas and iterations are written as codes",
        f"SELECT 1 FROM {table} WHERE NOT ({areas}) OR NOT regexp_full_match(ITERATION_CODE, '[0-9]{{4}}')"
        " OR COUNT IS NULL OR VARIANCE IS NULL OR MOE IS NULL",
    )
    fits = " OR ".join(
        f"(REGION_TYPE = '{region}' AND ({_near('VARIANCE', values)}))" for region, values in allowed.items() if values
    )
    yield f"{table}: variances are those of the plan", f"SELECT 1 FROM {table} WHERE NOT ({fits or 'false'})"
    z = z_value(Fraction(str(plan["confidence"])))
    yield (
        f"{table}: margins of error are {z:g} standard deviations",
        f"SELECT 1 FROM {table} WHERE abs(MOE - {z!r} * sqrt(VARIANCE)) > {_TOLERANCE} * (1 + MOE)",
    )


def _one_table_each(tables: Sequence[str]) -> Iterator[tuple[str, str]]:
    groups = " UNION ALL ".join(f"SELECT DISTINCT {', '.join(_GROUP)} FROM {table}" for table in tables)
    yield (
        f"{tables[0]} to {tables[-1]}: a group is in one of them",
        f"SELECT 1 FROM ({groups}) GROUP BY {', '.join(_GROUP)} HAVING count(*) > 1",
    )


def _near(column: str, values: Sequence[float]) -> str:
    return " OR ".join(f"abs({column} - {value!r}) <= {_TOLERANCE * (1 + abs(value))!r}" for value in values)


def _sigma2(plan: Mapping[str, Any], kinds: tuple[str, ...]) -> dict[str, list[float]]:
    """Variances of a cell by region type, of the measurements whose names begin so."""
    found: dict[str, list[float]] = {}
    for m in plan["measurements"]:
        if str(m["name"]).startswith(kinds):
            found.setdefault(str(m["level"]).rsplit(" ", 1)[0], []).append(float(read_exact(m["sigma2"])))
    return found


def _allowed(sigma2: Mapping[str, Sequence[float]], times: Sequence[int]) -> dict[str, list[float]]:
    return {region: [value * number for value in values for number in times] for region, values in sigma2.items()}


def _require(names: Sequence[str], tables: set[str]) -> None:
    if set(names) != tables:
        raise ValueError("the manifest does not list the tables of the product")
