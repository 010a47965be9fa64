"""What a user cares for in the tables of a plan, read from a file: tables, levels, margins of error. Public."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

from yupana.files.declaration import declared, exact, key, read_as, table_of
from yupana.plan.budgets import NUMBERS_BY_ENTRY, check_entries

WEIGHTS: Final = table_of(exact(lambda number: number >= 0, "must be 0 or more, and finite"))
"""Finite numbers that are not negative."""


@dataclass(frozen=True, slots=True)
class TableTargets:
    """What a user cares for: a document in TOML or JSON."""

    tables: Mapping[str, Fraction] | None = key(
        WEIGHTS,
        "the weight of the variance of each cell, by published table; else 1 of all",
        default=None,
    )
    levels: Mapping[str, Fraction] | None = key(
        WEIGHTS, "what these weights are multiplied by, by level; else 1 at all", default=None
    )
    margins: Mapping[str, Fraction] = key(
        NUMBERS_BY_ENTRY, "the largest margins of error of a measured count that the entry pays for", default={}
    )

    def weight(self, table: str, level: str) -> Fraction:
        """Of the variance of each cell of a table at a level."""
        weight = Fraction(1)
        for weights, name in ((self.tables, table), (self.levels, level)):
            weight *= Fraction(1) if weights is None else weights.get(name, Fraction(0))
        return weight


def read_table_targets(path: Path, entries: Collection[str]) -> TableTargets:
    """Read what a user cares for.

    Parameters
    ----------
    path : Path
    entries : collection of str
        The budgets that there are.

    Raises
    ------
    ConfigError
        Naming every fault.
    """
    return read_as(
        path,
        declared(TableTargets, partial=True),
        lambda told, faults: check_entries("margins", told.margins, entries, faults),
    )
