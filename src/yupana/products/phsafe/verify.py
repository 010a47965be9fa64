"""Whether the tables of a PHSafe release are those its plan promises. Public: reads the release only."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from yupana.plan.plan import margin_from_json
from yupana.products.phsafe.specification import FAMILIES, MeasuredTable, cell_column, table
from yupana.products.phsafe.tables import groups, level_of

Columns = Mapping[str, list[str]]


def verify_tables(plan: Mapping[str, Any], states: tuple[str, ...], tables: Mapping[str, Columns]) -> list[str]:
    """Compare tables with a plan as `Plan.as_json` describes it.

    Checked are the set of tables, their columns, that every population group and cell occurs exactly once and no other,
    that counts are whole numbers, and the noise law, VARIANCE and MOE of every row.

    Returns
    -------
    list of str
        What is wrong, in words; empty if nothing is.
    """
    by_table: dict[str, list[Mapping[str, Any]]] = {}
    for m in plan["measurements"]:
        by_table.setdefault(m["table"], []).append(m)
    expected: dict[str, tuple[MeasuredTable, Mapping[int, int]]] = {
        name: (table(name), dict.fromkeys(table(name).cells, 1)) for name in by_table
    }
    for family in FAMILIES:
        if family.name in by_table:
            for shown in family.choices[0].tables:
                summed = {int(cell.labels[0]): len(cell.parts) for cell in shown.cells}
                expected[shown.name] = (table(family.name), summed)
    wrong = [f"table {name} is missing" for name in expected if name not in tables]
    wrong += [f"table {name} is not in the plan" for name in tables if name not in expected]
    noise = {"zcdp": "Discrete Gaussian", "pure": "Two-Sided Geometric"}[plan["mechanism"]]
    for name, (source, parts) in expected.items():
        if name in tables:
            rows = _expected_rows(plan, source, parts, by_table[source.name], states, noise)
            wrong += _compare(name, source, tables[name], rows)
    return wrong


_Key = tuple[str, str, str, str]
_Terms = tuple[str, float, float]


def _expected_rows(
    plan: Mapping[str, Any],
    source: MeasuredTable,
    parts: Mapping[int, int],
    measurements: list[Mapping[str, Any]],
    states: tuple[str, ...],
    noise: str,
) -> dict[_Key, _Terms]:
    rows = {}
    for m in measurements:
        sigma2 = float(Fraction(m["sigma2"]))
        law = noise if sigma2 > 0 else "None"
        margins = {summed: margin_from_json(plan, m, summed) for summed in set(parts.values())}
        for group in groups(level_of(m["level"]), states):
            for cell, summed in parts.items():
                variance = summed * sigma2
                key = (group.region_type, group.region_id, group.iteration if source.iterated_by else "*", str(cell))
                rows[key] = (law, variance, margins[summed])
    return rows


def _compare(name: str, source: MeasuredTable, columns: Columns, expected: Mapping[_Key, _Terms]) -> list[str]:
    cell = cell_column(name)
    header = ["REGION_ID", "REGION_TYPE", *(["ITERATION_CODE"] if source.iterated_by else []), cell]
    header += ["COUNT", "NOISE_DISTRIBUTION", "VARIANCE", "MOE"]
    if list(columns) != header:
        return [f"table {name} must have the columns {', '.join(header)}"]
    iterations = columns.get("ITERATION_CODE", ["*"] * len(columns[cell]))
    keys = list(zip(columns["REGION_TYPE"], columns["REGION_ID"], iterations, columns[cell], strict=True))
    wrong = []
    if len(set(keys)) != len(keys):
        wrong.append(f"table {name} has a row twice")
    if missing := len(set(expected) - set(keys)):
        wrong.append(f"table {name} lacks {missing} of the rows of the plan")
    if strangers := len(set(keys) - set(expected)):
        wrong.append(f"table {name} has {strangers} rows that the plan does not have")
    counts, terms = (
        columns["COUNT"],
        zip(columns["NOISE_DISTRIBUTION"], columns["VARIANCE"], columns["MOE"], strict=True),
    )
    if not all(count.removeprefix("-").isdecimal() for count in counts):
        wrong.append(f"table {name} has a COUNT that is no whole number")
    off = sum(key in expected and not _agree(found, expected[key]) for key, found in zip(keys, terms, strict=True))
    if off:
        wrong.append(f"table {name} has {off} rows whose noise law, VARIANCE or MOE is not the plan's")
    return wrong


def _agree(found: tuple[str, str, str], expected: _Terms) -> bool:
    try:
        variance, margin = float(found[1]), float(found[2])
    except ValueError:
        return False
    close = math.isclose(variance, expected[1], rel_tol=1e-9) and math.isclose(margin, expected[2], rel_tol=1e-9)
    return close and found[0] == expected[0]
