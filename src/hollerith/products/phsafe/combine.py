"""Which measurements of the S-DHC count the same people, and what they say together. Public.

The identities hold for the counts that are measured, after truncation at tau; docs/phsafe-estimates.md proves them
from the tables' definitions, and says which others hold only before truncation and are left alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hollerith.postprocess.projection import Identity, project
from hollerith.products.phsafe.measured import Measured, Numbers
from hollerith.products.phsafe.tables import Group

SAME_UNIVERSE: Final = (("PH1_num", "PH7", "PH2"), ("PH1_denom", "PH8_denom"))
"""Tables whose cells partition one universe; of persons only under one tau."""

_FAMILIES: Final = (*SAME_UNIVERSE, ("PH3",), ("PH4",), ("PH5_denom",), ("PH6",))
_RACES: Final = tuple("ABCDEFG")


@dataclass(frozen=True, slots=True)
class Family:
    """Measured tables that identities join, with all their quantities in one row.

    Attributes
    ----------
    tables : tuple of str
    places : mapping of table to int array, shape (groups, basis cells)
        Where a count stands in the row.
    identities : tuple of Identity
    """

    tables: tuple[str, ...]
    places: Mapping[str, NDArray[np.intp]]
    identities: tuple[Identity, ...]

    def row(self, arrays: Mapping[str, Numbers]) -> Numbers:
        """One row of quantities from an array per table, of shape (groups, basis cells)."""
        return np.concatenate([arrays[name].ravel() for name in self.tables])


def families(measured: Measured) -> tuple[tuple[Family, ...], list[str]]:
    """The identities among the measurements of a release, and why some that could hold are not used."""
    found, unused = [], []
    for several in _FAMILIES:
        tables = tuple(name for name in several if name in measured.counts)
        if not tables:
            continue
        linked, reason = _linked(measured, tables)
        unused += [reason] if reason else []
        places, size = {}, 0
        for name in tables:
            shape = measured.counts[name].shape
            places[name] = size + np.arange(shape[0] * shape[1]).reshape(shape)
            size += shape[0] * shape[1]
        found.append(Family(tables, places, tuple(_identities(measured, places, linked=linked))))
    return tuple(found), unused


def combine(measured: Measured) -> tuple[Measured, dict[str, Any]]:
    """Estimate all counts of a release together, by generalised least squares under the identities.

    Returns
    -------
    tuple
        The estimates with their covariances within each population group, not truncated yet; and for the manifest the
        number of identities and what could not be used.
    """
    counts, covariances = dict(measured.counts), dict(measured.covariances)
    variances = {name: np.diagonal(each, axis1=1, axis2=2) for name, each in covariances.items()}
    joined, unused = families(measured)
    for family in joined:
        found = project(family.row(counts), family.row(variances), family.identities)
        for name in family.tables:
            counts[name] = found.values[family.places[name]]
            covariances[name] = found.covariances(family.places[name])
    note = {"identities": sum(len(family.identities) for family in joined), **({"unused": unused} if unused else {})}
    return Measured(measured.manifest, measured.groups, counts, covariances), note


def _linked(measured: Measured, tables: tuple[str, ...]) -> tuple[bool, str]:
    """Whether tables of one universe may be linked: their persons must have been truncated alike."""
    taus = measured.manifest["parameters"].get("tau", {})
    used = {name: taus.get(name) for name in tables if name in taus}
    if len(tables) < 2 or len(set(used.values())) <= 1:
        return len(tables) > 1, ""
    listed = ", ".join(f"{name} {tau}" for name, tau in used.items())
    return False, f"tables of persons in households are not linked, for they were truncated at different tau: {listed}"


def _identities(measured: Measured, places: Mapping[str, NDArray[np.intp]], *, linked: bool) -> Iterator[Identity]:
    """Identities among the measurements of some tables."""
    states = tuple(measured.manifest["parameters"]["states"])
    rows = {name: {group: at for at, group in enumerate(measured.groups[name])} for name in places}
    for name, at in places.items():
        for whole, parts in _sums(rows[name], states):
            for cell in range(at.shape[1]):
                yield {int(at[whole, cell]): -1.0, **{int(at[part, cell]): 1.0 for part in parts}}
    if not linked:
        return
    for group in dict.fromkeys(group for name in places for group in rows[name]):
        same = [at[rows[name][group]].tolist() for name, at in places.items() if group in rows[name]]
        for one, other in pairwise(same):
            yield {**dict.fromkeys(one, 1.0), **dict.fromkeys(other, -1.0)}


def _sums(rows: dict[Group, int], states: tuple[str, ...]) -> Iterator[tuple[int, list[int]]]:
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
