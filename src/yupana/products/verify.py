"""Whether the tables of a release are what its families and its plan say: every row, its noise, and every sum.

National tables have tens of millions of rows, so the database reads the files and does the comparing: of each table
once by population group, and once by what the noise of its rows is said to be.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import duckdb

from yupana.errors import OutputError
from yupana.files.database import named, open_database, quoted, store_rows, unreadable
from yupana.files.delimited import column_types
from yupana.plan.measurement import Mechanism, z_value
from yupana.plan.plan import margin_from_json
from yupana.privacy.exact import read_exact
from yupana.products.tables import Cell, Choice, Family, Table
from yupana.release.recipe import COTERMINOUS, RECORD, SINGLE_TABLE, SUPPRESSED, SUPPRESSION
from yupana.release.tables import table_rows

Key = tuple[str, ...]
"""What the columns that name a population group say."""

Check = tuple[tuple[str, ...], str]
"""What must hold, in words, and a query of one row that counts how often each of them does not."""

_NUMBERS: Final = {"COUNT": "BIGINT", "VARIANCE": "DOUBLE", "MOE": "DOUBLE"}
_TOLERANCE: Final = 1e-9
_SMALL: Final = 20_000_000
"""Bytes of tables that are read once and kept, where the many questions cost more than the rows."""


@dataclass(frozen=True, slots=True)
class Codes:
    """What a product says of the codes that name its population groups."""

    written: Callable[[Family], str]  # of a family SQL for whether the codes of a group are written as they are to be
    region_type: Callable[[str], str]  # of a level, as plans name it, the kind of its areas
    # of a family and a level the groups that are measured, if public files are not needed to tell
    groups: Callable[[Family, str], Iterable[Key]] | None = None
    may_lack: frozenset[tuple[str, str]] = frozenset()  # names of families and levels of which groups may be left out
    most_combined: int = 1  # most coterminous areas that may be combined


@dataclass(frozen=True, slots=True)
class Described:
    """What a manifest says of a release, as far as it decides what its tables must satisfy."""

    tables: Mapping[str, Mapping[str, Any]]  # by table: those that are here
    absent: tuple[str, ...]  # tables of the product that are not, as a single table may be postprocessed
    plan: Mapping[str, Any] | None  # none of a table that was postprocessed without its manifest
    # combined, suppressed: whether coterminous areas were combined, and counts suppressed
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


def described(manifest: Mapping[str, Any], families: Sequence[Family]) -> tuple[Described, list[str]]:
    """Read what a manifest says of the tables of some families, and which are missing or strangers, in words.

    Raises
    ------
    KeyError, TypeError, ValueError
        If it is no manifest of tables.
    """
    listed = {str(entry["table"]): {**entry, "file": name} for name, entry in manifest["tables"].items()}
    rules = {str(record["rule"]) for record in manifest.get(RECORD, ())}
    due = tuple(dict.fromkeys(table for family in families for table in family.tables))
    absent = tuple(table for table in due if table not in listed)
    wrong = [f"table {table} is not in the plan" for table in listed if table not in due]
    # A single table may be postprocessed, and one without its manifest has no plan.
    if not rules or len(absent) == len(due):
        wrong += [f"table {table} is missing" for table in absent]
    here = {table: listed[table] for table in due if table in listed}
    plan = manifest["plan"] if manifest["product"] != SINGLE_TABLE else None
    return Described(here, absent, plan, COTERMINOUS in rules, SUPPRESSION in rules), wrong


def verify_tables(
    folder: Path, manifest: Mapping[str, Any], families: Sequence[Family], codes: Codes
) -> tuple[list[str], list[str]]:
    """Compare the tables of a release with each other and with their plan.

    Of a release that was postprocessed, what still must hold is compared. A variance of combined areas must then lie
    between the least and the largest it can have: by theorem 1 of docs/coterminous.md none is above that of an area of
    the set by itself. And none is below the least of a single cell divided by the number of areas, as each area has
    one measurement that tells of a count, at best one of the very cell.

    Parameters
    ----------
    manifest : mapping
        Whose plan is as `Plan.as_json` describes it.
    families : sequence of Family
        All that the release publishes.

    Returns
    -------
    tuple
        What is wrong, and what could not be checked because the release was postprocessed, in words.

    Raises
    ------
    KeyError, TypeError, ValueError
        If the manifest does not hold tables and a plan of them.
    """
    release, wrong = described(manifest, families)
    wrong = wrong or _compare(release, folder, families, codes, sums=True)
    return wrong, [] if wrong else release.unchecked


def verify_noise(
    path: Path, manifest: Mapping[str, Any], families: Sequence[Family], codes: Codes, table: str
) -> list[str]:
    """Compare the noise of one table of a release with its plan, and nothing else; others need not be there.

    Raises
    ------
    KeyError, TypeError, ValueError, AttributeError
        If the manifest does not hold a plan of this table.
    """
    release, wrong = described(manifest, families)
    alone = Described({table: release.tables[table]}, (), release.plan, release.combined, release.suppressed)
    return wrong or _compare(alone, path.parent, families, codes, sums=False)


def _compare(release: Described, folder: Path, families: Sequence[Family], codes: Codes, *, sums: bool) -> list[str]:
    """What is wrong with some tables of a release, in words."""
    wrong: list[str] = []
    paths = {table: folder / Path(entry["file"]).name for table, entry in release.tables.items()}
    are_small = sum(path.stat().st_size for path in paths.values() if path.is_file()) <= _SMALL
    with open_database(threads=1 if are_small else None) as db:
        columns = {table: of for family in families for table, of in family.tables.items()}
        kind = "TEMP TABLE" if are_small else "VIEW"
        try:
            for table, path in paths.items():
                wrong += _open(db, kind, path, table, columns[table], release)
            if wrong:
                return wrong
            for texts, query in _Checks(db, release, families, codes).every(sums=sums):
                broken = _read(db, query, texts[0].partition(":")[0]).fetchone() or ()
                wrong += [
                    f"{text}: {int(times):,} times not" for text, times in zip(texts, broken, strict=True) if times
                ]
        except _UnreadableTableError as error:
            wrong.append(f"{error}: a value cannot be read")
    return wrong


def _open(
    db: duckdb.DuckDBPyConnection, kind: str, path: Path, table: str, columns: Sequence[str], release: Described
) -> list[str]:
    """Show a file to the database, as a view or a copy: numbers as such, a suppressed one as NULL, all else as text."""
    entry = release.tables[table]
    fault = OutputError(f"{path.name} is not readable as a table of a release")
    try:
        with unreadable(fault):
            source = table_rows(path, {} if release.suppressed else _NUMBERS)
            found = list(column_types(db, source))
            ((rows,),) = db.execute(f"SELECT count(*) FROM {source}").fetchall()
        if found != list(entry["columns"]):
            return [f"{path.name} does not have the columns of the manifest"]
        if rows != entry["rows"]:
            return [f"{path.name} does not have the rows of the manifest"]
        if found != [*columns, *(["REASON"] if release.suppressed else [])]:
            return [f"{path.name} must have the columns {', '.join(columns)}"]
        cast = [f"CAST({named(name)} AS VARCHAR) AS {named(name)}" for name in columns if name not in _NUMBERS]
        cast += [
            f"CAST(nullif(CAST({name} AS VARCHAR), '{SUPPRESSED}') AS {kind}) AS {name}"
            for name, kind in (_NUMBERS.items() if release.suppressed else ())
        ]
        with unreadable(fault):
            _read(db, f"CREATE {kind} {named(table)} AS SELECT * REPLACE ({', '.join(cast)}) FROM {source}", table)
    except OutputError as error:
        return [str(error)]
    return []


class _UnreadableTableError(Exception):
    """A table has a value that is none of its column."""


def _read(db: duckdb.DuckDBPyConnection, query: str, table: str) -> duckdb.DuckDBPyConnection:
    try:
        return db.execute(query)
    except (duckdb.ConversionException, duckdb.InvalidInputException):
        raise _UnreadableTableError(table) from None


@dataclass(frozen=True, slots=True)
class _Checks:
    """What the tables of a release must satisfy, each check as a query that counts where it does not hold."""

    db: duckdb.DuckDBPyConnection
    release: Described
    families: Sequence[Family]
    codes: Codes
    _gathered: set[str] = field(default_factory=set)
    """Tables whose groups are kept, as other checks need them."""

    def every(self, *, sums: bool) -> Iterator[Check]:
        """All checks; ``sums`` are those of a group's rows with each other."""
        if sums:
            for table in self.release.tables:
                yield from self._groups(table)
            for family in self.families:
                yield from self._choices(family)
        if self.release.plan is not None:
            for table in self.release.tables:
                yield from self._noise(table, self.release.plan)

    def _shown(self, table: str) -> list[tuple[Family, Choice]]:
        """The choices that a table is shown in; that whose measured cells it shows by themselves comes first."""
        found = [(family, choice) for family in self.families for choice in family.having(table)]
        return sorted(found, key=lambda pair: pair[1].own.name != table)

    def _deciding(self, family: Family) -> dict[str, int]:
        """The tables that are here and that groups of one choice alone are in, and which choice."""
        return {
            choice.own.name: number
            for number, choice in enumerate(family.choices)
            if choice.own.name in self.release.tables and len(family.having(choice.own.name)) == 1
        }

    def _groups(self, name: str) -> Iterator[Check]:
        """Gather a table by population group, and check each group by itself."""
        family, choice = self._shown(name)[0]
        table, keys = choice[name], _names(family.keys)
        own = choice.own.name == name
        marginals = [cell for cell in table.cells if cell not in choice.alone] if own else []
        others = [o for o in choice.tables if o.name != name and o.name in self.release.tables] if own else []
        # How often a count enters a sum: that of a marginal less its cells, or that of a cell of another table.
        weights = {f"_m{i}": {**_parts(choice, cell), cell: -1} for i, cell in enumerate(marginals)}
        weights |= {
            f"_s{i}_{j}": _parts(choice, c) for i, other in enumerate(others) for j, c in enumerate(other.cells)
        }
        groups = self._gather(family, table, weights)
        yield self._whole(family, table, groups, len(marginals))
        for i, other in enumerate(others):
            yield _summed_in(other, f"_s{i}", table, groups, keys)
        if self.release.plan is not None and (due := self._due(name, self.release.plan)):
            yield (
                (f"{name}: no group is there but those of the plan",),
                f"SELECT count(*) FROM (SELECT {keys} FROM {groups} EXCEPT SELECT {keys} FROM {due})",
            )

    def _gather(self, family: Family, table: Table, weights: Mapping[str, Mapping[Cell, int]]) -> str:
        """Keep what is to be known of each group of a table: its rows, and sums of its counts by their names."""
        name, keys = table.name, _names(family.keys)
        kinds = {**dict.fromkeys(table.columns, "VARCHAR"), **dict.fromkeys(("_cell", *weights), "INTEGER")}
        lines = [
            (*map(str, cell.labels), place, *(weight.get(cell, 0) for weight in weights.values()))
            for place, cell in enumerate(table.cells)
        ]
        store_rows(self.db, f"cells|{name}", kinds, lines)
        distinct = "bit_count(bit_or(CAST(1 AS BIGINT) << _cell))" if len(lines) < 63 else "count(DISTINCT _cell)"
        hidden = _UNSUPPRESSED if self.release.suppressed else _WITHOUT_NUMBER
        gathered = _listed(
            [
                keys,
                "count(*) AS _n",
                "count(_cell) AS _known",
                f"{distinct} AS _cells",
                f"bool_or({hidden}) AS _hidden",
                *(f"sum(CAST(COUNT AS HUGEINT) * {weight}) AS {weight}" for weight in weights),
                # A sum with a suppressed count in it cannot be told.
                *(f"bool_or({weight} <> 0 AND COUNT IS NULL) AS {weight}_hidden" for weight in weights),
            ]
        )
        self._gathered.add(name)
        return self._keep(
            f"groups|{name}",
            f"SELECT {gathered} FROM {named(name)} t LEFT JOIN {named(f'cells|{name}')} c"
            f" ON {_same(table.columns, 't', 'c')} GROUP BY {keys}",
        )

    def _whole(self, family: Family, table: Table, groups: str, marginals: int) -> Check:
        """That groups have each cell of their table once, and marginals that add up."""
        name, rows = table.name, len(table.cells)
        texts = [
            f"{name}: every group and cell stands once",
            f"{name}: every row is of a cell of the table",
            f"{name}: areas and iterations are written as codes",
        ]
        broken = ["_known > _cells", "_n > _known", f"_hidden OR NOT ({self.codes.written(family)})"]
        if rows > 1:
            apart = [f"(NOT _m{i}_hidden AND _m{i} <> 0)" for i in range(marginals)]
            texts.append(f"{name}: marginals are the sums of their cells")
            broken.append(" OR ".join([f"_cells <> {rows}", *apart]))
        return tuple(texts), f"SELECT {_listed(f'count_if({each})' for each in broken)} FROM {groups}"

    def _choices(self, family: Family) -> Iterator[Check]:
        """That a group is in the tables of one choice, and every group of the plan in some."""
        keys, tables = _names(family.keys), list(self._deciding(family))
        plan, here = self.release.plan, [name for name in family.tables if name in self.release.tables]
        due = plan and self._due_groups(family, plan)
        if plan and due:
            whole = [
                str(place)
                for place, m in enumerate(plan["measurements"])
                if (m["table"], str(m["level"])) not in self.codes.may_lack
            ]
            # Of a family of one choice each table shows them all; of several, all tables together.
            together = [here] if len(here) == len(family.tables) else []
            for some in [[name] for name in here] if len(family.choices) == 1 else together:
                shown = " UNION ALL ".join(f"SELECT {keys} FROM {named(f'groups|{name}')}" for name in some)
                yield (
                    (f"{', '.join(some)}: every group of the plan is there",),
                    f"SELECT count(*) FROM (SELECT {keys} FROM {due} WHERE _place IN ({', '.join(whole) or -1})"
                    f" EXCEPT SELECT {keys} FROM ({shown}))",
                )
        if len(tables) > 1:
            groups = " UNION ALL ".join(f"SELECT {keys} FROM {named(f'groups|{table}')}" for table in tables)
            yield (
                (f"{tables[0]} to {tables[-1]}: a group is in one of them",),
                f"SELECT count(*) FROM (SELECT 1 FROM ({groups}) GROUP BY {keys} HAVING count(*) > 1)",
            )
        for name in family.tables:
            owns = [choice.own.name for choice in family.having(name)]
            if name in self.release.tables and name not in owns and set(owns) <= set(self.release.tables):
                there = " UNION ALL ".join(f"SELECT {keys} FROM {named(f'groups|{own}')}" for own in owns)
                yield (
                    (f"{name}: every group has its cells in {', '.join(owns)}",),
                    f"SELECT count(*) FROM {named(f'groups|{name}')} ANTI JOIN ({there}) USING ({keys})",
                )

    def _noise(self, name: str, plan: Mapping[str, Any]) -> Iterator[Check]:
        """Gather a table by what its rows say of their noise, and compare that with the plan."""
        shown = self._shown(name)
        family, table = shown[0][0], shown[0][1][name]
        says_law = "NOISE_DISTRIBUTION" in family.numbers
        deciding = {own: n for own, n in self._deciding(family).items() if own in self._gathered}
        deciding = deciding if len(family.having(name)) > 1 else {}
        lines = []
        for of, choice in shown:
            # A group that no finer table has is of the choice whose own table this is, or one whose table is not here.
            which = deciding.get(choice.own.name, -1) if of is family else -1
            for place, m in enumerate(plan["measurements"]):
                if m["table"] == of.name:
                    start = (which, place if self.codes.groups else -1, self.codes.region_type(str(m["level"])))
                    lines += [
                        (*start, *map(str, cell.labels), *_said(plan, m, len(cell.parts)))
                        for cell in choice[name].cells
                    ]
        by = {"_choice": "INTEGER", "_place": "INTEGER", "REGION_TYPE": "VARCHAR"}
        by |= dict.fromkeys(table.columns, "VARCHAR")
        store_rows(
            self.db, f"due noise|{name}", {**by, "_law": "VARCHAR", "_variance": "DOUBLE", "_moe": "DOUBLE"}, lines
        )
        keys = _names(family.keys)
        joins, picked = "", ["-1 AS _choice", "-1 AS _place", "REGION_TYPE", *map(named, table.columns)]
        if deciding:
            chosen = (f"SELECT {keys}, {n} AS _choice FROM {named(f'groups|{own}')}" for own, n in deciding.items())
            joins += f" LEFT JOIN (SELECT DISTINCT * FROM ({' UNION ALL '.join(chosen)})) USING ({keys})"
            picked[0] = "coalesce(_choice, -1) AS _choice"
        if due := self._due(name, plan):
            joins += f" LEFT JOIN {due} USING ({keys})"
            picked[1] = "coalesce(_place, -1) AS _place"
        picked += ["NOISE_DISTRIBUTION AS _law"] if says_law else []
        said = self._keep(
            f"noise|{name}",
            f"SELECT {_listed([*picked, 'VARIANCE AS _variance', 'MOE AS _moe', 'count(*) AS _n'])}"
            f" FROM {named(name)}{joins} GROUP BY ALL",
        )
        same = " AND ".join([_same([*by, *(["_law"] if says_law else [])], "s", "d"), _near("_variance")])
        due_noise = named(f"due noise|{name}")
        fits = f"EXISTS (SELECT 1 FROM {due_noise} d WHERE {same})"
        fits_too = f"EXISTS (SELECT 1 FROM {due_noise} d WHERE {same} AND {_near('_moe')})"
        if self.release.combined:
            z = z_value(Fraction(str(plan["confidence"])))
            by_z = f"abs(_moe - {z!r} * sqrt(_variance)) <= {_TOLERANCE} * (1 + sqrt(_variance))"
            range_ = f"(SELECT min(_variance) * {1 - _TOLERANCE} / {self.codes.most_combined} FROM {due_noise})"
            most = f"(SELECT max(_variance) * {1 + _TOLERANCE} FROM {due_noise})"
            texts = "variances lie within what combining areas of the plan gives"
            fits, fits_too = f"coalesce(_variance BETWEEN {range_} AND {most}, false)", f"({fits_too} OR {by_z})"
        else:
            texts = "variances are those of the plan"
            # A variance that is not the plan's is told by itself.
            fits_too = f"({fits_too} OR NOT {fits})"
        apart = f"(SELECT coalesce(sum(_n), 0) FROM {said} s WHERE _variance IS NOT NULL AND NOT {{}})"
        yield (
            (f"{name}: {texts}", f"{name}: margins of error are those of the noise of the plan"),
            f"SELECT {apart.format(fits)}, {apart.format(fits_too)}",
        )

    def _due(self, table: str, plan: Mapping[str, Any]) -> str | None:
        """The groups that a table may show, of all its families; see `_due_groups`."""
        due = [self._due_groups(family, plan) for family in self.families if table in family.tables]
        return f"({' UNION ALL '.join(f'SELECT * FROM {of}' for of in due)})" if all(due) else None

    def _due_groups(self, family: Family, plan: Mapping[str, Any]) -> str | None:
        """The groups of a family that its plan measures, and the place of the measurement, where the plan tells."""
        if self.codes.groups is None:
            return None
        name = f"due groups|{family.name}"
        if name not in self._gathered:
            lines = [
                (*key, place)
                for place, m in enumerate(plan["measurements"])
                if m["table"] == family.name
                for key in self.codes.groups(family, str(m["level"]))
            ]
            store_rows(self.db, name, {**dict.fromkeys(family.keys, "VARCHAR"), "_place": "INTEGER"}, lines)
            self._gathered.add(name)
        return named(name)

    def _keep(self, name: str, query: str) -> str:
        """Make a table of a query; its name as SQL writes it."""
        _read(self.db, f"CREATE TEMP TABLE {named(name)} AS {query}", name.rpartition("|")[2])
        return named(name)


_WITHOUT_NUMBER: Final = "COUNT IS NULL OR VARIANCE IS NULL OR MOE IS NULL"
_UNSUPPRESSED: Final = " OR ".join(f"({name} IS NULL) <> (coalesce(REASON, '') <> '')" for name in _NUMBERS)
"""One of the numbers is X without a reason, or is there in spite of one."""


def _parts(choice: Choice, cell: Cell) -> dict[Cell, int]:
    """The rows that show the measured cells of a published cell, each once."""
    return dict.fromkeys((choice.alone[part] for part in cell.parts), 1)


def _summed_in(other: Table, sums: str, table: Table, groups: str, keys: str) -> Check:
    """That another table has the sums of each group, by its cells; ``sums`` is how their names begin."""
    cells = len(other.cells)
    picked = [f"max(COUNT) FILTER (WHERE {_is(other, cell)}) AS _c{j}" for j, cell in enumerate(other.cells)]
    theirs = f"SELECT {_listed([keys, 'count(*) AS _k', *picked])} FROM {named(other.name)} GROUP BY {keys}"
    if not other.columns:
        theirs = f"SELECT {keys}, 1 AS _k, COUNT AS _c0 FROM {named(other.name)}"
    apart = [f"(NOT {sums}_{j}_hidden AND _c{j} <> {sums}_{j})" for j in range(cells)]
    broken = ["_k IS NULL", f"_k <> {cells}", f"_cells <> {len(table.cells)}", *apart]
    return (
        (f"{table.name}: every group has its total in {other.name}",),
        f"SELECT count_if({' OR '.join(broken)}) FROM {groups} LEFT JOIN ({theirs}) USING ({keys})",
    )


def _said(plan: Mapping[str, Any], m: Mapping[str, Any], cells: int) -> tuple[str, float, float]:
    """The law, variance and margin of error of a sum of so many cells of a measurement."""
    mechanism = Mechanism(plan["mechanism"])
    law = mechanism.law(Fraction(m[mechanism.distance_name]), read_exact(m[mechanism.budget_name]))
    return law.name, float(read_exact(m["sigma2"])) * cells, margin_from_json(plan, m, cells)


def _names(columns: Iterable[str]) -> str:
    return _listed(map(named, columns))


def _listed(parts: Iterable[str]) -> str:
    return ", ".join(parts)


def _same(columns: Iterable[str], one: str, other: str) -> str:
    return " AND ".join(["true", *(f"{one}.{named(column)} = {other}.{named(column)}" for column in columns)])


def _is(table: Table, cell: Cell) -> str:
    labels = zip(table.columns, cell.labels, strict=True)
    return " AND ".join(["true", *(f"{named(column)} = {quoted(str(label))}" for column, label in labels)])


def _near(column: str) -> str:
    return f"abs(s.{column} - d.{column}) <= {_TOLERANCE} * (1 + abs(d.{column}))"
