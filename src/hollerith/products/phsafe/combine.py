"""Which measurements of the S-DHC count the same people, and what they say together. Public.

The identities hold for the counts that are measured, after truncation at tau; docs/phsafe-estimates.md proves them
from the tables' definitions, and says which others hold only before truncation and are left alone.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

import numpy as np

from hollerith.postprocess.projection import Identity, project
from hollerith.products.phsafe.measured import Measured, Numbers
from hollerith.products.phsafe.tables import Group

SAME_UNIVERSE: Final = (("PH1_num", "PH7", "PH2"), ("PH1_denom", "PH8_denom"))
"""Tables whose cells partition one universe; of persons only under one tau."""

_FAMILIES: Final = (*SAME_UNIVERSE, ("PH3",), ("PH4",), ("PH5_denom",), ("PH6",))
_RACES: Final = tuple("ABCDEFG")

_Row = tuple[str, int]
"""A table and the place of a population group in it."""


def combine(measured: Measured) -> tuple[Measured, dict[str, Any]]:
    """Estimate all counts of a release together, by generalised least squares under the identities.

    Returns
    -------
    tuple
        The estimates with their covariances within each population group, not truncated yet; and for the manifest the
        number of identities and what could not be used.
    """
    counts, covariances = dict(measured.counts), dict(measured.covariances)
    number, unused = 0, list[str]()
    for family in _FAMILIES:
        tables = [name for name in family if name in measured.counts]
        if not tables:
            continue
        linked, reason = _linked(measured, tables)
        unused += [reason] if reason else []
        start = dict[str, int]()
        size = 0
        for name in tables:
            start[name] = size
            size += counts[name].size
        identities = list(_identities(measured, tables, start, linked=linked))
        number += len(identities)
        values = np.concatenate([counts[name].ravel() for name in tables])
        variances = np.concatenate([_variances(measured, name).ravel() for name in tables])
        found = project(values, variances, identities)
        for name in tables:
            places = start[name] + np.arange(counts[name].size).reshape(counts[name].shape)
            counts[name] = found.values[places]
            covariances[name] = found.covariances(places)
    note = {"identities": number, **({"unused": unused} if unused else {})}
    return Measured(measured.manifest, measured.groups, counts, covariances), note


def _variances(measured: Measured, name: str) -> Numbers:
    return np.diagonal(measured.covariances[name], axis1=1, axis2=2)


def _linked(measured: Measured, tables: list[str]) -> tuple[bool, str]:
    """Whether tables of one universe may be linked: their persons must have been truncated alike."""
    taus = measured.manifest["parameters"].get("tau", {})
    used = {name: taus.get(name) for name in tables if name in taus}
    if len(tables) < 2 or len(set(used.values())) <= 1:
        return len(tables) > 1, ""
    listed = ", ".join(f"{name} {tau}" for name, tau in used.items())
    return False, f"tables of persons in households are not linked, for they were truncated at different tau: {listed}"


def _identities(measured: Measured, tables: list[str], start: dict[str, int], *, linked: bool) -> Iterator[Identity]:
    """Identities among the measurements of some tables, by place in one row of all of them."""

    def place(row: _Row, cell: int) -> int:
        name, group = row
        return start[name] + group * int(measured.counts[name].shape[1]) + cell

    states = tuple(measured.manifest["parameters"]["states"])
    rows = {name: {group: (name, at) for at, group in enumerate(measured.groups[name])} for name in tables}
    for name in tables:
        cells = range(measured.counts[name].shape[1])
        for whole, parts in _sums(rows[name], states):
            for cell in cells:
                yield {place(whole, cell): -1.0, **{place(part, cell): 1.0 for part in parts}}
    if not linked:
        return
    for group in dict.fromkeys(group for name in tables for group in rows[name]):
        same = [rows[name][group] for name in tables if group in rows[name]]
        for one, other in pairwise(same):
            yield {
                **{place(one, cell): 1.0 for cell in range(measured.counts[one[0]].shape[1])},
                **{place(other, cell): -1.0 for cell in range(measured.counts[other[0]].shape[1])},
            }


def _sums(rows: dict[Group, _Row], states: tuple[str, ...]) -> Iterator[tuple[_Row, list[_Row]]]:
    """Groups that are the sum of others: the nation of its states, everyone of the seven races."""
    for group, row in rows.items():
        if group.region_type == "USA":
            below = [Group("STATE", state, group.iteration) for state in states]
            if all(part in rows for part in below):
                yield row, [rows[part] for part in below]
        if group.iteration == "*":
            races = [Group(group.region_type, group.region_id, race) for race in _RACES]
            if all(part in rows for part in races):
                yield row, [rows[part] for part in races]
