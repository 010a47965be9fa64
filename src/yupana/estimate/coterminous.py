"""Areas of the same blocks show the same numbers: combined by least squares, shown all or not at all. Public.

The rules and their proofs are in docs/coterminous.md. Everything here is a function of published tables and the
reference file of blocks, so it costs no privacy.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Flags
from yupana.errors import ConfigError, InputError, OutputError
from yupana.estimate.coterminous_areas import Area, coterminous_sets, read_blocks, read_live
from yupana.estimate.safetab_tables import CELL_COLUMNS, COLUMNS, TREES, NestedCells, TableSource, open_source
from yupana.estimate.suppression import CHANCE_OF_RUN, refuse_suppressed, without_small_totals
from yupana.files.database import store_arrays
from yupana.plan.measurement import z_value
from yupana.products.least_squares import average, estimate, non_negative, sums_of_children, whole
from yupana.products.safetab.iterations import CharacteristicIterations, read_iterations
from yupana.products.safetab.regions import ITERATION_LEVELS, REGION_TYPES
from yupana.products.safetab.specification import KEYS, TOTALS
from yupana.progress import Announce
from yupana.release.recipe import COTERMINOUS
from yupana.release.release import ReleaseFolder
from yupana.release.tables import checksum, written

_REGIONS: Final = {region.name: region for region in REGION_TYPES}

Indices = NDArray[np.intp]
Sets = tuple[tuple[Area, ...], ...]
"""Areas of the same blocks."""


Rows = tuple[Indices, Indices, Indices, NDArray[np.float64], NDArray[np.float64]]
"""New rows of a table: areas, iterations, cells (places among the rows that a group has), counts and variances."""


@dataclass(frozen=True, slots=True)
class _CoterminousWorld:
    """Who is in which set, and what may be shown where."""

    set_of: Indices  # shape (areas,): the set of each area; the areas of a set are neighbours
    kept: Flags  # shape (areas,): areas whose groups are never suppressed: nation and states
    shown: Flags  # shape (areas, iterations): whether an iteration is tabulated for the summary level of the area


@dataclass(frozen=True, slots=True)
class _Combined:
    """What became of the groups of a family."""

    rows: Mapping[str, Sequence[Rows]]  # all rows of the groups that were combined, counts whole
    replaced: Indices  # the groups whose earlier rows are to be removed: combined or dropped
    dropped: int  # how many of them were dropped
    added: int  # how many groups were combined in whose area there had been no row


@dataclass(frozen=True, slots=True)
class _Groups:
    """Population groups of one table, all in areas that lie in sets."""

    key: Indices  # shape (groups,): area * iterations + iteration
    # count, variance: shape (groups, cells)
    count: NDArray[np.float64]
    variance: NDArray[np.float64]

    def chosen(self, some: Flags) -> "_Groups":
        """Those of some groups."""
        return _Groups(self.key[some], self.count[some], self.variance[some])


def combine(
    family: NestedCells, tables: Mapping[str, _Groups], world: _CoterminousWorld, *, non_negative_counts: bool
) -> _Combined:
    """Give all areas of each set the same numbers, iteration by iteration.

    Parameters
    ----------
    tables : mapping of table name to _Groups
        With all cells of each.
    non_negative_counts : bool
        Whether the release shows no negative counts, so that none may arise.

    Raises
    ------
    OutputError
        If the marginals of a group are not the sums of its cells.
    """
    iterations = world.shown.shape[1]
    details = {
        detail: found.chosen(world.shown[found.key // iterations, found.key % iterations])
        for detail, found in _measured(family, tables).items()
    }
    key = np.concatenate([groups.key for groups in details.values()])
    area, iteration = np.divmod(key, iterations)
    units, unit_of = np.unique(world.set_of[area] * iterations + iteration, return_inverse=True)
    detail = np.repeat(list(details), [groups.key.size for groups in details.values()])
    finest = np.zeros(units.size, dtype=np.intp)
    np.maximum.at(finest, unit_of, detail)
    safe = np.zeros(units.size, dtype=bool)
    np.logical_or.at(safe, unit_of, world.kept[area] | (detail > 0))
    member_unit, member_area = _members(units, iterations, world)
    eligible = np.bincount(member_unit, minlength=units.size)
    present = np.bincount(unit_of, minlength=units.size)
    show = (eligible > 1) & ((present == eligible) | safe)
    drop = (eligible > 1) & ~show

    none = np.empty(0, dtype=np.intp)
    gathered: dict[str, list[Rows]] = {table: [(none, none, none, np.empty(0), np.empty(0))] for table in family.tables}
    for level in range(len(family.tables)):
        chosen = np.flatnonzero(show & (finest == level))
        if not chosen.size:
            continue
        counts, variances = _fit(
            family,
            level,
            {of: (groups, unit_of[detail == of]) for of, groups in details.items() if of <= level},
            chosen,
            units.size,
            non_negative_counts=non_negative_counts,
        )
        place = np.full(units.size, -1)
        place[chosen] = np.arange(chosen.size)
        member = place[member_unit]
        area_of, of = member_area[member >= 0], member[member >= 0]
        for table in dict.fromkeys(row.table for row in family.rows[level]):
            shown = [row for row in family.rows[level] if row.table == table]
            parts = [(counts[row.depth][of, row.node], variances[row.depth][of, row.node]) for row in shown]
            gathered[table].append(
                (
                    np.repeat(area_of, len(shown)),
                    np.repeat(units[chosen][of] % iterations, len(shown)),
                    np.tile(np.arange(len(shown)), of.size),
                    np.stack([count for count, _ in parts], axis=1).astype(np.float64).ravel(),
                    np.stack([variance for _, variance in parts], axis=1).ravel(),
                )
            )
    touched = (show | drop)[unit_of]
    return _Combined(gathered, key[touched], int(drop[unit_of].sum()), int((eligible - present)[show].sum()))


def _fit(
    family: NestedCells,
    level: int,
    details: Mapping[int, tuple[_Groups, Indices]],
    chosen: Indices,
    units: int,
    *,
    non_negative_counts: bool,
) -> tuple[Sequence[NDArray[np.int64]], Sequence[NDArray[np.float64]]]:
    """Whole counts and variances of the nodes, by depth, of the units whose finest table is of ``level``.

    By detail the groups that count, and the unit of each.
    """
    last = family.basis[level]
    parents = family.parents[:last]
    values = [np.zeros((chosen.size, n)) for n in (1, *(parent.size for parent in parents))]
    variances = [np.full(v.shape, np.inf) for v in values]
    place = np.full(units, -1)
    place[chosen] = np.arange(chosen.size)
    for detail, (groups, unit_of) in details.items():
        of, depth = place[unit_of], family.basis[detail]
        some = groups.chosen(of >= 0)
        values[depth], variances[depth] = average(some.count, some.variance, of[of >= 0], chosen.size)
    found = estimate(parents, values, variances)
    return whole(parents, non_negative(parents, found) if non_negative_counts else found.values), found.variances


_INCOMPLETE: Final = "table {} has a population group that lacks a cell or has one twice"


def _measured(family: NestedCells, tables: Mapping[str, _Groups]) -> dict[int, _Groups]:
    """The groups of a family by detail with their measured cells; checked to have marginals that are sums."""
    total = family.tables[0]
    taken = np.concatenate([tables[table].key for table in tables if table != total] or [np.empty(0, dtype=np.intp)])
    found = {}
    for detail, table in enumerate(family.tables):
        if table not in tables:
            continue
        shown, groups = [row for row in family.rows[detail] if row.table == table], tables[table]
        measured = {row.node: i for i, row in enumerate(shown) if row.depth == family.basis[detail]}
        basis = [measured[node] for node in range(len(measured))]
        nodes = _sums(family.parents[: family.basis[detail]], groups.count[:, basis])
        if any(not np.array_equal(nodes[row.depth][:, row.node], groups.count[:, i]) for i, row in enumerate(shown)):
            raise OutputError(f"table {table} has a marginal that is not the sum of its cells")
        if table != total and total in tables and total in {row.table for row in family.rows[detail]}:
            place = np.searchsorted(tables[total].key, groups.key)
            there = np.append(tables[total].key, -1)[place] == groups.key
            if not there.all() or not np.array_equal(tables[total].count[place, 0], nodes[0][:, 0]):
                words = f"table {total} lacks the total of a population group of {table}, or has another number"
                raise OutputError(words)
        of_table = _Groups(groups.key, groups.count[:, basis], groups.variance[:, basis])
        # A group of a finer table has its total twice: once by itself, and once as the sum of its cells.
        found[detail] = of_table.chosen(~np.isin(groups.key, taken)) if table == total else of_table
    return found


def _sums(parents: Sequence[Indices], cells: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """The sums of cells at every depth above them, then themselves."""
    nodes = [cells]
    for parent in reversed(parents):
        nodes.insert(0, sums_of_children(nodes[0], parent))
    return nodes


def _members(units: Indices, iterations: int, world: _CoterminousWorld) -> tuple[Indices, Indices]:
    """The areas of each unit (a set and an iteration) that may show it, as pairs of unit and area."""
    sizes = np.bincount(world.set_of)
    starts = np.cumsum(sizes) - sizes
    sets, iteration = units // iterations, units % iterations
    repeats = sizes[sets]
    unit = np.repeat(np.arange(units.size), repeats)
    within = np.arange(unit.size) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    area = starts[sets][unit] + within
    own = world.shown[area, iteration[unit]]
    return unit[own], area[own]


def make_coterminous(
    release: Path,
    reference: Path,
    out: Path,
    *,
    housing_units: Path | None,
    parameters: Path | None,
    zero_suppression: Fraction | None = None,
    overwrite: bool,
    announce: Announce,
) -> ReleaseFolder:
    """Write a release whose coterminous areas show the same numbers, as `combine_coterminous` tells; return it."""
    announce("reading the release")
    if zero_suppression is not None and parameters is None:
        raise ConfigError("zero suppression needs to know the iterations of each level; name --parameters FOLDER")
    with open_source(release) as source:
        if zero_suppression is not None:
            refuse_suppressed(source.release.manifest, str(release))
        families = [family for family in TREES if _has(family, source, release)]
        announce("finding coterminous areas")
        sets = _find_sets(source, reference, housing_units)
        iterations = read_iterations(parameters) if parameters else None
        record = _recorded(sets, (reference, housing_units), iterations, zero_suppression)
        selects = {table: f"SELECT * FROM {table}" for table in source.tables}
        if _combined_before(source.release, release, record):
            return source.release.derive(out, selects, None, database=source.db, overwrite=overwrite)
        record["groups"] = {"combined": 0, "added": 0, "dropped": 0}
        for family in families if sets else ():
            announce(f"combining {family.tables[0]}")
            selects |= _combine_in(source, family, sets, iterations, record["groups"])
        if zero_suppression is not None and iterations is not None:
            plan = source.release.measured
            selects[TOTALS] = without_small_totals(source.db, selects, sets, iterations, plan, zero_suppression)
        announce("writing the release")
        return source.release.derive(out, selects, record, database=source.db, overwrite=overwrite)


def _recorded(
    sets: Sets,
    files: tuple[Path, Path | None],
    iterations: CharacteristicIterations | None,
    zero_suppression: Fraction | None,
) -> dict[str, Any]:
    """What a manifest says of how areas were combined; ``files`` are the reference file and housing units."""
    return {
        "rule": COTERMINOUS,
        "housing_units": files[1] is not None,
        "public_inputs": {
            **{path.name: checksum(path) for path in files if path is not None},
            **(iterations.files if iterations else {}),
        },
        "sets": len(sets),
        "sets_sha256": hashlib.sha256(repr(sets).encode()).hexdigest(),
        **({CHANCE_OF_RUN: str(zero_suppression)} if zero_suppression is not None else {}),
    }


def _combined_before(release: ReleaseFolder, place: Path, record: Mapping[str, Any]) -> bool:
    """Whether the same areas of a release were combined before; refused where others were, or totals are to go."""
    earlier = next((entry for entry in release.record if entry.get("rule") == COTERMINOUS), None)
    if earlier is None:
        return False
    if earlier.get("sets_sha256") != record["sets_sha256"]:
        raise OutputError(f"{place} was made coterminous for other areas; begin with the release before that")
    if CHANCE_OF_RUN in record:
        raise OutputError(f"{place} was made coterminous already; begin with the release before that")
    return True


def _has(family: NestedCells, source: TableSource, release: Path) -> bool:
    found = [table for table in family.tables if table in source.tables]
    whole_family = family.tables[0] in found and (release.is_dir() or family.tables[0] == "T01001")
    if found and not whole_family:
        raise OutputError(
            f"{release} has {', '.join(found)} without all of {', '.join(family.tables)}; give the folder"
        )
    return bool(found)


def _find_sets(source: TableSource, reference: Path, housing_units: Path | None) -> Sets:
    """Sets by the blocks of the states of the release: of the others it says nothing, not even in its nation."""
    regions = " UNION ".join(f"SELECT DISTINCT REGION_TYPE, left(REGION_ID, 2) FROM {table}" for table in source.tables)
    found = {(str(kind), str(state)) for kind, state in source.db.execute(regions).fetchall()}
    base = {name: region.base for name, region in _REGIONS.items()}
    states = {state for kind, state in found if base.get(kind) not in {"nation", "aiannh"}}
    has_states = any(base.get(kind) == "state" for kind, _ in found)
    blocks = read_blocks(reference, states if has_states else None)
    if not blocks.block.size:
        raise InputError(f"{reference} holds no block of the states of the release, {', '.join(sorted(states))}")
    return coterminous_sets(blocks, read_live(housing_units, blocks) if housing_units else None)


def _combine_in(
    source: TableSource,
    family: NestedCells,
    sets: Sets,
    iterations: CharacteristicIterations | None,
    tally: dict[str, int],
) -> dict[str, str]:
    """Combine a family within the database; return what each of its tables is to hold."""
    db = source.db
    tables = [table for table in family.tables if table in source.tables]
    keys = " UNION ALL ".join(f"SELECT {', '.join(KEYS)}, COUNT FROM {table}" for table in tables)
    kinds = db.execute(f"SELECT DISTINCT REGION_TYPE, ITERATION_CODE FROM ({keys})").fetchall()
    least = db.execute(f"SELECT min(CAST(COUNT AS BIGINT)) FROM ({keys})").fetchall()[0][0]
    shown_for = _shown({(str(kind), str(code)) for kind, code in kinds}, iterations)
    codes = sorted({str(code) for _, code in kinds})
    if not codes:
        return {}
    areas = [area for members in sets for area in members]
    world = _CoterminousWorld(
        np.repeat(np.arange(len(sets)), [len(members) for members in sets]).astype(np.intp),
        np.array([_REGIONS[area.region_type].base in {"nation", "state"} for area in areas]),
        np.array([[(area.region_type, code) in shown_for for code in codes] for area in areas], dtype=bool),
    )
    ids, types = (np.array([getattr(a, name) for a in areas], dtype=object) for name in ("region_id", "region_type"))
    store_arrays(db, "area", {"area": np.arange(len(areas)), "REGION_ID": ids, "REGION_TYPE": types})
    store_arrays(db, "code", {"iteration": np.arange(len(codes)), "ITERATION_CODE": np.array(codes, dtype=object)})
    read = {table: _read(source, family, table, len(codes)) for table in tables}
    combined = combine(family, read, world, non_negative_counts=int(least) >= 0)
    tally["combined"] += len(combined.replaced) - combined.dropped
    tally["added"] += combined.added
    tally["dropped"] += combined.dropped
    area, iteration = np.divmod(combined.replaced, len(codes))
    db.register("gone_arrays", {"area": area, "iteration": iteration})
    db.execute(
        f"CREATE TABLE gone_{family.tables[0]} AS SELECT REGION_ID, REGION_TYPE, ITERATION_CODE"
        " FROM gone_arrays JOIN area USING (area) JOIN code USING (iteration)"
    )
    z = _z(source, tables)
    return {table: _rewrite(source, family, table, combined.rows[table], z) for table in tables}


def _shown(kinds: set[tuple[str, str]], iterations: CharacteristicIterations | None) -> set[tuple[str, str]]:
    """Region types and iterations that are tabulated together."""
    if iterations is None:
        return kinds
    by_code = {iteration.code: iteration for iteration in iterations.iterations}
    if unknown := sorted({code for _, code in kinds} - set(by_code)):
        raise InputError(
            f"the parameters do not hold iteration {unknown[0]} of the release, and {len(unknown) - 1} more"
        )
    # A level without a budget is not tabulated at all, such as regional groups of AIANNH areas in 2020.
    levels = {(kind, by_code[code].level) for kind, code in kinds if kind in _REGIONS}
    codes = {code for _, code in kinds}
    return {
        (kind, code)
        for kind, level in levels
        for code in codes
        if level in ITERATION_LEVELS
        and by_code[code].level == level
        and by_code[code].is_eligible(_REGIONS[kind].granularity)
    }


def _read(source: TableSource, family: NestedCells, table: str, iterations: int) -> _Groups:
    """The groups of a table in areas that lie in sets, each cell of a group once."""
    db = source.db
    shown = [row for row in family.rows[family.tables.index(table)] if row.table == table]
    cells = CELL_COLUMNS[table]
    labels = {name: np.array([row.labels[i] for row in shown], dtype=object) for i, name in enumerate(cells)}
    store_arrays(db, f"cell_{table}", {"cell": np.arange(len(shown)), **labels})
    alike = " AND ".join(["true", *(f"CAST(t.{name} AS VARCHAR) = c.{name}" for name in cells)])
    found = db.execute(
        "SELECT area, iteration, coalesce(cell, -1) AS cell, CAST(COUNT AS DOUBLE) AS count,"
        f" CAST(VARIANCE AS DOUBLE) AS variance FROM {table} t"
        " JOIN area USING (REGION_ID, REGION_TYPE) JOIN code USING (ITERATION_CODE)"
        f" LEFT JOIN cell_{table} c ON {alike} ORDER BY area, iteration, cell"
    ).fetchnumpy()
    if found["cell"].size % len(shown):
        raise OutputError(_INCOMPLETE.format(table))
    area, iteration, cell, count, variance = (np.asarray(of).reshape(-1, len(shown)) for of in found.values())
    whose = area.astype(np.intp) * iterations + iteration
    key = whose[:, 0]
    if (whose != key[:, None]).any() or (cell != np.arange(len(shown))).any() or (np.diff(key) == 0).any():
        raise OutputError(_INCOMPLETE.format(table))
    return _Groups(key, count.astype(np.float64), variance.astype(np.float64))


def _z(source: TableSource, tables: Sequence[str]) -> float:
    """What a standard deviation is multiplied by: a combined count is no sum of cells, and has no margin of its law.

    That of the plan's confidence; of a single table without a plan, that of its first row that has noise, unless its
    margin is a whole number by the exact law.
    """
    if source.release.confidence is not None:
        return z_value(source.release.confidence)
    for table in tables:
        rows = source.db.execute(
            "SELECT CAST(VARIANCE AS DOUBLE), TRY_CAST(MOE AS DOUBLE)"
            f" FROM {table} WHERE CAST(VARIANCE AS DOUBLE) > 0 ORDER BY rowid LIMIT 1"
        ).fetchall()
        if rows and rows[0][1] is not None:
            z = float(rows[0][1]) / math.sqrt(rows[0][0])
            known = (z_value(Fraction(95, 100)), z_value(Fraction(9, 10)))
            if not float(rows[0][1]).is_integer() or any(math.isclose(z, k, rel_tol=1e-9) for k in known):
                return next((k for k in known if math.isclose(z, k, rel_tol=1e-9)), z)
    return z_value(Fraction(95, 100))


def _rewrite(source: TableSource, family: NestedCells, table: str, rows: Sequence[Rows], z: float) -> str:
    """Store new rows; return the select that holds them in place of the old ones.

    Rows that stay keep their order. A group's new rows come where its first old row stood, or at the end.
    """
    db = source.db
    area, iteration, cell, count, variance = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    order = np.lexsort((cell, iteration, area))
    variances, of = np.unique(variance[order], return_inverse=True)
    texts = [
        np.array([written(float(v)) for v in values], dtype=object) for values in (variances, z * np.sqrt(variances))
    ]
    db.register(
        "new_arrays",
        {
            "area": area[order],
            "iteration": iteration[order],
            "cell": cell[order],
            "COUNT": count[order].astype(np.int64),
            "VARIANCE": texts[0][of],
            "MOE": texts[1][of],
        },
    )
    types = source.tables[table]
    fields = COLUMNS[table]
    cast = ", ".join(f"CAST({name} AS {types[name]}) AS {name}" for name in fields)
    db.execute(
        f"CREATE TABLE new_{table} AS WITH old AS (SELECT area, iteration, min(t.rowid) AS place FROM {table} t"
        " JOIN area USING (REGION_ID, REGION_TYPE) JOIN code USING (ITERATION_CODE) GROUP BY ALL)"
        f" SELECT {cast}, coalesce(place, (SELECT count(*) FROM {table}) + area) AS place, area, iteration, cell"
        f" FROM new_arrays JOIN area USING (area) JOIN code USING (iteration) JOIN cell_{table} USING (cell)"
        " LEFT JOIN old USING (area, iteration)"
    )
    names = ", ".join(fields)
    stay = " AND ".join(f"g.{name} = t.{name}" for name in KEYS)
    return (
        f"SELECT {names} FROM (SELECT {names}, t.rowid AS place, 0 AS area, 0 AS iteration, 0 AS cell FROM {table} t"
        f" WHERE NOT EXISTS (SELECT 1 FROM gone_{family.tables[0]} g WHERE {stay})"
        f" UNION ALL SELECT {names}, place, area, iteration, cell FROM new_{table})"
        " ORDER BY place, area, iteration, cell"
    )
