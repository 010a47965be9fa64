"""Whether a release of a description is what its plan, and what is done to its counts, make of it. Public."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from yupana.files.database import quoted
from yupana.plan.plan import Plan, read_plan
from yupana.products.described.description import EVERYONE, Description
from yupana.products.described.plan import coarsest_name, families, published_groups, published_tables
from yupana.products.tables import Family, Groups
from yupana.products.verify import Codes, Key, verify_noise, verify_tables
from yupana.release.recipe import MEASURED, RECORD
from yupana.release.tables import Coded, read_table, write_all

_TOLERANCE = 1e-9


def verify_described(folder: Path, manifest: Mapping[str, Any], config: Description) -> tuple[list[str], list[str]]:
    """Compare every row of every table with the plan; `verify_tables` tells what is returned and raised.

    Where something was done to the counts, the tables as they were measured are compared with the plan, and the others
    with what is made of them once more.
    """
    codes = _codes(config)
    if not config.postprocess:
        return verify_tables(folder, manifest, families(config), codes)
    listed: dict[str, Any] = dict(manifest["tables"])
    wrong, unchecked = verify_tables(folder / MEASURED, _as_measured(manifest), families(config), codes)
    if not wrong:
        paths = {str(told["table"]): folder / name for name, told in listed.items()}
        wrong = list(_made_again(config, read_plan(manifest["plan"]), paths))
    return wrong, unchecked


def noise_faults(folder: Path, manifest: Mapping[str, Any], config: Description, table: str) -> list[str]:
    """What is wrong with the noise of one table, as it was measured; see `verify_noise`."""
    if config.postprocess:
        folder, manifest, table = folder / MEASURED, _as_measured(manifest), table.removeprefix(f"{MEASURED}/")
    return verify_noise(folder / table, manifest, families(config), _codes(config), table)


def _codes(config: Description) -> Codes:
    may_lack = frozenset(
        (table.name, level.name)
        for table, level in config.at_levels.values()
        if table.detail and (table.detail.published or level.name in table.detail.leave_out)
    )
    # Which areas are made of blocks is told by a file that is not in the release.
    groups = None if config.blocks else partial(published_groups, config)
    return Codes(partial(_written, config), lambda level: config.levels[level].areas, groups, may_lack=may_lack)


def _as_measured(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest of the tables as they were measured, in a folder of their own."""
    within = f"{MEASURED}/"
    measured = {
        name.removeprefix(within): {**told, "table": str(told["table"]).removeprefix(within)}
        for name, told in manifest["tables"].items()
        if name.startswith(within)
    }
    return {key: value for key, value in manifest.items() if key != RECORD} | {"tables": measured}


def _written(config: Description, family: Family) -> str:
    """SQL for whether areas that are made of blocks and groups have codes; of others the plan lists all."""
    if not config.blocks:
        return "true"
    shown: dict[str, dict[str, None]] = {}
    for table, level in config.measured.values():
        if family.name in {table.name, coarsest_name(table)}:
            shown.setdefault(level.areas, {}).update(dict.fromkeys(level.groups))
    areas, alike = [], dict[tuple[str, ...], list[str]]()
    for name, groups in shown.items():
        kind = config.areas[name]
        digits = f"regexp_full_match(REGION_ID, '[0-9]{{{kind.blocks.width}}}')" if kind.blocks else ""
        code = digits or f"REGION_ID = {quoted(kind.codes[0])}"
        areas.append(f"WHEN {quoted(name)} THEN {code}")
        alike.setdefault(tuple(groups), []).append(quoted(name))
    written = f"CASE REGION_TYPE {' '.join(areas)} ELSE false END"
    if "ITERATION_CODE" not in family.keys:
        return written
    # Codes of a type are found by a hash; there may be thousands.
    known = " ".join(
        f"WHEN REGION_TYPE IN ({', '.join(names)}) "
        f"THEN TRY_CAST(ITERATION_CODE AS ENUM({', '.join(map(quoted, groups))})) IS NOT NULL"
        for groups, names in alike.items()
    )
    return f"{written} AND CASE {known} END"


def _made_again(config: Description, plan: Plan, paths: Mapping[str, Path]) -> Iterator[str]:
    """What differs from the tables that are made of those which were measured, in words."""
    with TemporaryDirectory(prefix="yupana-check-") as folder:
        tables = [t for t in published_tables(config, plan, list(_measured(config, plan, paths))) if "/" not in t.name]
        for name, again in write_all(Path(folder), tables, "csv").items():
            if name not in paths:
                yield f"table {name} is missing"
                continue
            here, due = read_table(paths[name]), read_table(again)
            if list(here) != list(due):
                yield f"{name}: must have the columns {', '.join(due)}"
            elif apart := _rows_apart(here, due):
                yield f"{name}: rows are what is made of the measured counts: {apart:,} times not"


def _measured(config: Description, plan: Plan, paths: Mapping[str, Path]) -> Iterator[Groups]:
    """What passed the door, from the tables as they were measured: each group in the finest step that shows it."""
    cells: dict[str, dict[Key, str]] = {}
    for family, m in ((family, m) for family in families(config) for m in plan.measurements if m.table == family.name):
        kind = config.areas[config.levels[m.level].areas]
        codes, own = () if kind.blocks else kind.codes, [choice.own for choice in family.choices]
        for table in own:
            if table.name not in cells:
                columns = read_table(paths[f"{MEASURED}/{table.name}"])
                keys = zip(*(columns[name] for name in (*family.keys, *table.columns)), strict=True)
                cells[table.name] = dict(zip(keys, columns["COUNT"], strict=True))
        of_choice: list[list[tuple[str, str, Sequence[str]]]] = [[] for _ in own]
        for key in _groups_of(config, family, m.level, cells):
            for number in reversed(range(len(own))):
                labels = [tuple(map(str, cell.labels)) for cell in family.choices[number].alone]
                if all((*key, *label) in cells[own[number].name] for label in labels):
                    counts = [cells[own[number].name][*key, *label] for label in labels]
                    of_choice[number].append((key[0], (*key, *EVERYONE)[2], counts))
                    break
        for number, found in enumerate(of_choice):
            if found:
                areas, groups, noisy = zip(*found, strict=True)
                of = np.array(noisy, dtype=np.int64)
                yield Groups(family, number, config.levels[m.level].areas, _coded(areas, codes), _coded(groups), of, m)


def _groups_of(
    config: Description, family: Family, level: str, cells: Mapping[str, Mapping[Key, str]]
) -> Iterable[Key]:
    """The groups of a level: all, or where a file that is not here tells which there are, those that are shown."""
    if not config.blocks:
        return published_groups(config, family, level)
    of, width = config.levels[level], len(family.keys)
    shown = dict.fromkeys(key[:width] for choice in family.choices for key in cells[choice.own.name])
    return [key for key in shown if key[1] == of.areas and (width < 3 or key[2] in of.groups)]


def _coded(values: Sequence[str], listed: Sequence[str] = ()) -> Coded:
    found = [*(listed or dict.fromkeys(values))]
    place = {value: i for i, value in enumerate(found)}
    return Coded(found, np.array([place[value] for value in values]))


def _rows_apart(here: Mapping[str, Sequence[str]], due: Mapping[str, Sequence[str]]) -> int:
    """How many rows differ, beyond what rounding may change in variances and margins."""
    rows = len(next(iter(due.values())))
    if len(next(iter(here.values()))) != rows:
        return abs(rows - len(next(iter(here.values()))))
    apart = np.zeros(rows, dtype=bool)
    for name in due:
        differs = np.array([a != b for a, b in zip(here[name], due[name], strict=True)], dtype=bool)
        if name in {"VARIANCE", "MOE"}:
            for i in np.flatnonzero(differs).tolist():
                differs[i] = not _near(here[name][i], due[name][i])
        apart |= differs
    return int(apart.sum())


def _near(one: str, other: str) -> bool:
    try:
        return abs(float(one) - float(other)) <= _TOLERANCE * (1 + abs(float(other)))
    except ValueError:
        return False
