"""What the variances of published cells are made of, as a run publishes them: sums of measured cells. Public."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from yupana.arrays import Floats
from yupana.plan.budgets import Entry
from yupana.plan.plan import Plan
from yupana.products.product import Product

_C = TypeVar("_C")


@dataclass(frozen=True, slots=True, eq=False)
class PublishedCells:
    """The cells of a table at a level that one budget pays for.

    Attributes
    ----------
    table, level, entry : str
    loadings : ndarray of float64, shape (kinds, parts)
        What the variance of a cell has of the variance of each part; cells alike in that are of one kind.
    counts : ndarray of float64, shape (kinds,)
        How many cells are of each kind; of a table that groups of several kinds are shown, the mean over these.
    """

    table: str
    level: str
    entry: str
    loadings: Floats
    counts: Floats


@dataclass(frozen=True, slots=True, eq=False)
class PublishedVariances:
    """How the variances of all published cells follow from the budgets.

    Attributes
    ----------
    entries : tuple of str
        The budgets above zero.
    precisions : ndarray of float64, shape (parts, entries)
        The precision that a part has from each unit of a budget.
    cells : tuple of PublishedCells
    """

    entries: tuple[str, ...]
    precisions: Floats
    cells: tuple[PublishedCells, ...]


def as_published(product: Product[_C], config: _C, plan: Plan, entries: Mapping[str, Entry]) -> PublishedVariances:
    """Each measurement is a part: a cell that adds up k of its cells has k times the variance of one.

    Parameters
    ----------
    product : Product
    config
        The product's own.
    plan : Plan
        Of the configuration, of finite budgets under zCDP.
    entries : mapping of str to Entry
        The budgets of the configuration.
    """
    families = {family.name: family for family in product.families_of(config)}
    spent = tuple(name for name, entry in entries.items() if entry.budget > 0)
    precisions = np.zeros((len(plan.measurements), len(spent)))
    cells = []
    for part, measured in enumerate(plan.measurements):
        entry = product.entry_of(measured)
        precisions[part, spent.index(entry)] = 1 / (measured.variance * entries[entry].budget)
        # What only decides the detail of a group is measured and not published.
        if measured.table not in families:
            continue
        family = families[measured.table]
        for table in family.tables:
            choices = family.having(table)
            sizes = Counter(len(cell.parts) for choice in choices for cell in choice[table].cells)
            loadings = np.zeros((len(sizes), len(plan.measurements)))
            loadings[:, part] = [*sizes]
            counts = np.array([*sizes.values()]) / len(choices)
            cells.append(PublishedCells(table, measured.level, entry, loadings, counts))
    return PublishedVariances(spent, precisions, tuple(cells))
