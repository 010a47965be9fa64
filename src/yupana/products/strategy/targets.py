"""What a user cares for in the tables of a plan, read from a file: tables, levels, margins of error. Public."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from yupana.files.document import check_keys, read_budget, read_document, read_table, refuse
from yupana.plan.budgets import read_by_entry
from yupana.privacy.exact import INFINITE


@dataclass(frozen=True, slots=True)
class TableTargets:
    """What a user cares for.

    Attributes
    ----------
    tables : mapping of str to Fraction, or None
        The weight of the variance of each cell, by published table; None for 1 of all.
    levels : mapping of str to Fraction, or None
        What these weights are multiplied by, by level; None for 1 at all.
    margins : mapping of entry to Fraction
        The largest margins of error of a measured count that the entry pays for.
    """

    tables: Mapping[str, Fraction] | None = None
    levels: Mapping[str, Fraction] | None = None
    margins: Mapping[str, Fraction] = field(default_factory=dict)

    def weight(self, table: str, level: str) -> Fraction:
        """Of the variance of each cell of a table at a level."""
        weight = Fraction(1)
        for weights, name in ((self.tables, table), (self.levels, level)):
            weight *= Fraction(1) if weights is None else weights.get(name, Fraction(0))
        return weight


def read_table_targets(path: Path, entries: Collection[str]) -> TableTargets:
    """Read what a user cares for: a document in TOML or JSON with the tables tables, levels and margins.

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
    document, faults = read_document(path)
    told = read_table("", document, faults) if not faults else {}
    check_keys("", told, (), faults, optional=("tables", "levels", "margins"))
    tables, levels = (read_weights(key, told[key], faults) if key in told else None for key in ("tables", "levels"))
    margins = read_by_entry("margins", told.get("margins", {}), entries, faults)
    if faults:
        raise refuse(path, faults)
    return TableTargets(tables, levels, margins)


def read_weights(place: str, value: object, faults: list[str]) -> dict[str, Fraction]:
    """A table of finite numbers that are not negative."""
    found = {}
    for name, weight in read_table(place, value, faults).items():
        before = len(faults)
        number = read_budget(f"{place}.{name}", weight, faults)
        if number == INFINITE and len(faults) == before:
            faults.append(f"{place}.{name}: must be finite")
        elif number != INFINITE:
            found[name] = Fraction(number)
    return found
