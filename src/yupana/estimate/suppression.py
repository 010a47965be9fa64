"""Counts of SafeTab that are suppressed or left out: by a policy, and small ones after areas were combined. Public.

A policy replaces counts that cannot be true by X, with the reason beside them. docs/suppression.md says what it is for,
and what it is not: it hides nothing that privacy demands be hidden.

SafeTab-P leaves out totals below the state up to a quantile of its noise. Done within the run, that would choose among
the very numbers that are to be combined; so a run with `zero_suppression_chance` 0 keeps them all, and what is small
is left out here once coterminous areas are combined: of all areas of a set, or of none.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import duckdb

from yupana.errors import ConfigError, OutputError
from yupana.estimate.coterminous_areas import Area
from yupana.estimate.safetab_tables import CELL_COLUMNS, open_source
from yupana.files.database import store_rows
from yupana.files.declaration import TEXT, choice, declared, key, list_of, read_as, scalar
from yupana.files.document import is_text
from yupana.plan.plan import Plan
from yupana.products.safetab.iterations import CharacteristicIterations, Iteration, read_iterations
from yupana.products.safetab.product import PERSONS
from yupana.products.safetab.regions import ITERATION_LEVELS, REGION_TYPES
from yupana.products.safetab.specification import AGE_TABLES, KEYS, TOTALS
from yupana.products.tables import NUMBERS
from yupana.progress import Announce
from yupana.release.recipe import SUPPRESSED, SUPPRESSION
from yupana.release.release import ReleaseFolder


def pair_iterations(found: CharacteristicIterations) -> tuple[dict[str, str], list[str]]:
    """Pair iterations of race by their codes, or else by their names.

    From the code of an iteration alone to that of its counterpart in combination; and the iterations without one.

    The counterpart of "X alone" is the iteration in combination of the same level with the same codes; where there are
    several, or none, the one named "X alone or in ...", provided that it has all codes of "X alone": only then can the
    true counts not be the wrong way round.
    """
    by_codes: dict[tuple[int, frozenset[int]], list[Iteration]] = defaultdict(list)
    by_level: dict[int, list[Iteration]] = defaultdict(list)
    for iteration in found.iterations:
        if iteration.alone is False:
            by_codes[iteration.level, found.members[iteration.code]].append(iteration)
            by_level[iteration.level].append(iteration)
    pairs: dict[str, str] = {}
    unpaired = []
    for iteration in found.iterations:
        if not iteration.alone:
            continue
        own = found.members[iteration.code]
        same = by_codes.get((iteration.level, own), []) if own else []
        if len(same) != 1:
            named = [other for other in same or by_level[iteration.level] if _is_named_after(iteration, other)]
            same = [other for other in named if own <= found.members[other.code]]
        if len(same) == 1:
            pairs[iteration.code] = same[0].code
        else:
            unpaired.append(iteration.code)
    return pairs, unpaired


def _is_named_after(alone: Iteration, other: Iteration) -> bool:
    """Whether one is "X alone" or "X alone, Y" and the other "X alone or in ..." or "X alone or in ..., Y"."""
    start, found, end = alone.name.partition(" alone")
    return bool(found) and other.name.startswith(f"{start} alone or in ") and other.name.endswith(end)


NEGATIVE: Final = "negative"
ALONE: Final = "alone-exceeds-combination"
RULES: Final = (NEGATIVE, ALONE)
SIDES: Final = ("alone", "combination", "both")


_REASON: Final = scalar(
    "a code of 1 to 32 letters, digits, - and _",
    lambda told: str(told) if is_text(told) and re.fullmatch(r"[A-Za-z0-9_-]{1,32}", str(told)) else None,
    {"pattern": "^[A-Za-z0-9_-]{1,32}$"},
)


@dataclass(frozen=True, slots=True)
class _SuppressionRule:
    """One rule of a policy."""

    # "negative": a count below zero. "alone-exceeds-combination": the count of an iteration alone is above that of its
    # counterpart alone or in any combination, in the same region and cell.
    rule: str = key(choice(*RULES))
    # where rows are suppressed
    tables: tuple[str, ...] = key(list_of(choice(*CELL_COLUMNS), "a list of tables", each=True))
    reason: str = key(_REASON)  # what REASON says
    # of "alone-exceeds-combination": which of the two rows, "alone", "combination" or "both"
    suppress: str = key(choice(*SIDES), default="")


def _check_side(place: str, rule: _SuppressionRule, faults: list[str]) -> None:
    if rule.rule == ALONE and not rule.suppress:
        faults.append(f"{place}: key 'suppress' is missing; {ALONE} needs it")
    if rule.rule == NEGATIVE and rule.suppress:
        faults.append(f"{place}.suppress: is for {ALONE} only")


@dataclass(frozen=True, slots=True)
class DeclaredPolicy:
    """A policy of suppression."""

    rule: tuple[_SuppressionRule, ...] = key(
        list_of(declared(_SuppressionRule).checked(_check_side), "a list of rules, [[rule]] in TOML", each=True)
    )
    parameters: str | None = key(TEXT, "the Census Bureau's folder that pairs iterations", default=None)


def read_policy(path: Path) -> DeclaredPolicy:
    """Read a policy (TOML).

    Raises
    ------
    ConfigError
        If it cannot be read, or has an unknown key, rule, table or side; all faults are told at once.
    """
    return read_as(path, declared(DeclaredPolicy))


def suppress_release(
    release: Path, policy_file: Path, out: Path, *, parameters: Path | None, overwrite: bool, announce: Announce
) -> ReleaseFolder:
    """Write a release with suppressed counts; a folder of parameters goes before that of the policy."""
    policy = read_policy(policy_file)
    pairs: Mapping[str, str] = {}
    unpaired: Sequence[str] = ()
    codes: Mapping[str, str] = {}
    if any(rule.rule == ALONE for rule in policy.rule):
        if parameters is None and policy.parameters is None:
            raise ConfigError(
                f"{policy_file}: {ALONE} needs the iterations; name their folder by parameters or --parameters"
            )
        iterations = read_iterations(parameters or policy_file.parent / str(policy.parameters))
        (pairs, unpaired), codes = pair_iterations(iterations), iterations.files
    announce("reading the release")
    with open_source(release) as source:
        if not any(table in source.tables for rule in policy.rule for table in rule.tables):
            raise OutputError(f"{release} has none of the tables of {policy_file}")
        announce("suppressing")
        counts = _find_suppressed(source.db, tuple(source.tables), policy.rule, pairs)
        selects = {table: _select(table) for table in source.tables}
        record = {
            "rule": SUPPRESSION,
            "policy": [{name: told for name, told in asdict(rule).items() if told} for rule in policy.rule],
            "public_inputs": dict(codes),
            "unpaired": list(unpaired),
            "suppressed": counts,
        }
        announce("writing the release")
        return source.release.derive(out, selects, record, database=source.db, overwrite=overwrite)


def _find_suppressed(
    db: duckdb.DuckDBPyConnection,
    tables: tuple[str, ...],
    rules: tuple[_SuppressionRule, ...],
    pairs: Mapping[str, str],
) -> dict[str, dict[str, int]]:
    """Make ``suppressed_<table>`` (place, REASON) of each table, by its own counts; how many rows have which reason."""
    # Reasons of several rules stand in the order of the policy; no rule sees what another has suppressed.
    store_rows(db, "pair", {"alone": "VARCHAR", "combination": "VARCHAR"}, [*pairs.items()])
    counts: dict[str, dict[str, int]] = {}
    for table in tables:
        hits = [
            f"SELECT place, {number} AS rule, '{rule.reason}' AS reason FROM ({_hits(table, tables, rule)})"
            for number, rule in enumerate(rules)
            if table in rule.tables
        ]
        every = " UNION ".join(hits) if hits else "SELECT 0 AS place, 0 AS rule, '' AS reason WHERE false"
        db.execute(
            f"CREATE OR REPLACE TABLE suppressed_{table} AS"
            f" SELECT place, string_agg(reason, ';' ORDER BY rule) AS REASON FROM ({every}) GROUP BY place"
        )
        reasons = db.execute(f"SELECT REASON, count(*) FROM suppressed_{table} GROUP BY ALL ORDER BY ALL").fetchall()
        counts[table] = {str(reason): int(n) for reason, n in reasons}
    return counts


def _hits(table: str, tables: tuple[str, ...], rule: _SuppressionRule) -> str:
    """The rows of a table that a rule suppresses."""
    if rule.rule == NEGATIVE:
        return f"SELECT rowid AS place FROM {table} WHERE CAST(COUNT AS BIGINT) < 0"
    # A cell is compared wherever both groups show it, be it in tables of different detail.
    columns = ("REGION_ID", "REGION_TYPE", *CELL_COLUMNS[table])
    others = [other for other in tables if CELL_COLUMNS[other] == CELL_COLUMNS[table]]
    text = ", ".join(f"CAST({name} AS VARCHAR) AS {name}" for name in columns)
    fields = f"{text}, ITERATION_CODE, CAST(COUNT AS BIGINT) AS n"
    own = f"(SELECT {fields}, rowid AS place FROM {table}) own"
    theirs = "(" + " UNION ALL ".join(f"SELECT {fields} FROM {other}" for other in others) + ") other"
    same = f"USING ({', '.join(columns)})"
    sides = {
        "alone": ("own.ITERATION_CODE = alone AND other.ITERATION_CODE = combination", "own.n > other.n"),
        "combination": ("own.ITERATION_CODE = combination AND other.ITERATION_CODE = alone", "own.n < other.n"),
    }
    chosen = sides.values() if rule.suppress == "both" else [sides[rule.suppress]]
    return " UNION ".join(
        f"SELECT place FROM {own} JOIN {theirs} {same} JOIN pair ON {codes} WHERE {exceeds}"
        for codes, exceeds in chosen
    )


def _select(table: str) -> str:
    fields = ", ".join((*KEYS, *CELL_COLUMNS[table]))
    # Text as in CSV: a whole number without a point.
    numbers = ", ".join(
        f"CASE WHEN REASON IS NULL THEN regexp_replace(CAST({name} AS VARCHAR), '\\.0$', '')"
        f" ELSE '{SUPPRESSED}' END AS {name}"
        for name in NUMBERS
    )
    return (
        f"SELECT {fields}, {numbers}, coalesce(REASON, '') AS REASON"
        f" FROM {table} t LEFT JOIN suppressed_{table} s ON t.rowid = s.place ORDER BY t.rowid"
    )


CHANCE_OF_RUN: Final = "zero_suppression_chance"
"""Where the manifest of a run says what it has suppressed already."""

_NEVER: Final = frozenset({"nation", "state"})


def refuse_suppressed(manifest: Mapping[str, Any], name: str) -> None:
    """Refuse a release whose small totals were left out before they could be combined.

    Raises
    ------
    OutputError
        If its manifest says so, or does not say that they were not, or lists no plan of SafeTab-P.
    """
    parameters = manifest.get("parameters")
    chance = parameters.get(CHANCE_OF_RUN) if isinstance(parameters, dict) else None
    if manifest.get("product") != PERSONS.key or chance != "0":
        raise OutputError(
            f"{name}: zero suppression after combining needs a release of SafeTab-P that was made with "
            f"{CHANCE_OF_RUN} 0 and still has its manifest"
        )


def without_small_totals(
    db: duckdb.DuckDBPyConnection,
    selects: Mapping[str, str],
    sets: Sequence[Sequence[Area]],
    iterations: CharacteristicIterations,
    plan: Plan,
    chance: Fraction,
) -> str:
    """SQL for T01001 without the totals of small groups below the state.

    A total stays if it is above the smallest k with P(noise <= k) >= chance, of the noise of one measured total of its
    level. Areas of a set show the same number and are held to the largest k of theirs, so that all or none stay; a set
    with a nation or state in it stays whole. Groups with a table of ages stay.

    Parameters
    ----------
    selects : mapping of table name to SQL
        The tables as they are to be written.
    plan : Plan
        Of the run.
    """
    cuts = [
        (region.name, iteration.code, cut)
        for region in REGION_TYPES
        if region.base not in _NEVER
        for level in ITERATION_LEVELS
        if (cut := _cut(plan, f"{region.name} {level}", chance)) is not None
        for iteration in iterations.eligible(level, region.granularity).iterations
    ]
    store_rows(db, "cut_of", {"REGION_TYPE": "VARCHAR", "ITERATION_CODE": "VARCHAR", "cut": "BIGINT"}, cuts)
    bases = {region.name: region.base for region in REGION_TYPES}
    members = [
        (area.region_type, area.region_id, number, any(bases[one.region_type] in _NEVER for one in areas))
        for number, areas in enumerate(sets)
        for area in areas
    ]
    kinds = {"REGION_TYPE": "VARCHAR", "REGION_ID": "VARCHAR", "number": "BIGINT", "is_whole": "BOOLEAN"}
    store_rows(db, "set_of", kinds, members)
    db.execute("""
        CREATE OR REPLACE TABLE set_cut AS SELECT number, ITERATION_CODE, max(cut) AS cut
        FROM set_of JOIN cut_of USING (REGION_TYPE) GROUP BY ALL""")
    key = "REGION_ID, REGION_TYPE, ITERATION_CODE"
    tables = " UNION ".join(f"SELECT DISTINCT {key} FROM ({selects[t]})" for t in AGE_TABLES if t in selects)
    db.execute(f"CREATE OR REPLACE TABLE with_ages AS {tables or f'SELECT {key} FROM {TOTALS} WHERE false'}")
    return f"""
        SELECT t.* EXCLUDE (place) FROM (SELECT *, row_number() OVER () AS place FROM ({selects[TOTALS]})) t
        LEFT JOIN set_of s USING (REGION_TYPE, REGION_ID) LEFT JOIN cut_of c USING (REGION_TYPE, ITERATION_CODE)
        LEFT JOIN set_cut m ON m.number = s.number AND m.ITERATION_CODE = t.ITERATION_CODE
        WHERE s.is_whole OR CAST(t.COUNT AS BIGINT) > coalesce(m.cut, c.cut, -9223372036854775808)
            OR EXISTS (SELECT 1 FROM with_ages a WHERE a.REGION_ID = t.REGION_ID
                AND a.REGION_TYPE = t.REGION_TYPE AND a.ITERATION_CODE = t.ITERATION_CODE)
        ORDER BY place"""


def _cut(plan: Plan, level: str, chance: Fraction) -> int | None:
    """The largest total left out at a level, or None where it is not measured."""
    for measurement in plan.measurements:
        if measurement.name == f"stage 2/{level}":
            return measurement.law.quantile(float(chance))
    return None
