"""The noisy measurements of a PHSafe release, read back with their checksums verified. Public: reads no record."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from yupana.arrays import Floats
from yupana.errors import OutputError
from yupana.products.gate import open_checked
from yupana.products.phsafe.product import PHSAFE
from yupana.products.phsafe.specification import TABLES, Group, cell_column, cells_of, table


@dataclass(frozen=True, slots=True)
class Measured:
    """What is known of the counts of a release.

    Attributes
    ----------
    manifest : mapping
    groups : mapping of table to tuple of Group
        The population groups of each measured table, the nation first.
    counts : mapping of table to float array, shape (groups, basis cells)
    covariances : mapping of table to float array, shape (groups, basis cells, basis cells)
        Of the errors of a group's counts; diagonal as measured.
    """

    manifest: Mapping[str, Any]
    groups: Mapping[str, tuple[Group, ...]]
    counts: Mapping[str, Floats]
    covariances: Mapping[str, Floats]

    def sums(self, table: str, parts: tuple[int, ...]) -> tuple[Floats, Floats]:
        """Sums of basis cells of every group, and their variances; arrays of shape (groups,)."""
        cells = list(_cells(table))
        columns = [cells.index(part) for part in parts]
        block = self.covariances[table][:, columns][:, :, columns]
        return self.counts[table][:, columns].sum(axis=1), block.sum(axis=(1, 2))

    @property
    def is_puerto_rico(self) -> bool:
        """Whether this is the Puerto Rico run."""
        return list(self.manifest["parameters"]["states"]) == ["72"]


def read_measured(release: Path) -> Measured:
    """Read a release.

    Raises
    ------
    OutputError
        If the folder holds no release of PHSafe, if its files are not those of its manifest, or its tables not those
        of its plan, or if a variance is not positive: everything that is wrong is named.
    """
    opened = open_checked(release)
    manifest = opened.manifest
    if manifest.get("product") != PHSAFE.key:
        raise OutputError(
            f"{release} is a release of {manifest.get('product')!r}; estimates are made from one of PHSafe"
        )
    tables = {table: opened.columns(table) for table in opened}
    if wrong := _without_noise(tables):
        raise OutputError("\n  ".join([f"{release} cannot be estimated from:", *wrong]))
    groups, counts, covariances = {}, {}, {}
    for name in (of.name for of in TABLES if of.name in tables):
        groups[name], counts[name], variances = _arrays(name, tables[name])
        covariances[name] = variances[:, :, None] * np.eye(variances.shape[1])
    return Measured(dict(manifest), groups, counts, covariances)


def _without_noise(tables: Mapping[str, Mapping[str, list[str]]]) -> list[str]:
    """Rows whose variance is no positive number, by table: the first line, and how many."""
    wrong = []
    for name, columns in tables.items():
        bad = [line for line, text in enumerate(columns.get("VARIANCE", ()), start=2) if not _is_positive(text)]
        if bad:
            more = f" (and {len(bad) - 1} rows more)" if len(bad) > 1 else ""
            wrong.append(f"table {name}, line {bad[0]}{more}: VARIANCE must be above 0; exact counts need no estimate")
    return wrong


def _is_positive(text: str) -> bool:
    try:
        return 0 < float(text) < float("inf")
    except ValueError:
        return False


def _arrays(name: str, columns: Mapping[str, list[str]]) -> tuple[tuple[Group, ...], Floats, Floats]:
    iterations = columns.get("ITERATION_CODE", ["*"] * len(columns["COUNT"]))
    places = [Group(*key) for key in zip(columns["REGION_TYPE"], columns["REGION_ID"], iterations, strict=True)]
    groups = tuple(dict.fromkeys(sorted(places, key=lambda g: (g.region_type != "USA", g.region_id, g.iteration))))
    row = {group: place for place, group in enumerate(groups)}
    column = {str(cell): place for place, cell in enumerate(_cells(name))}
    at = [row[group] for group in places], [column[cell] for cell in columns[cell_column(name)]]
    counts, variances = np.zeros((len(groups), len(column))), np.zeros((len(groups), len(column)))
    counts[at] = np.array(columns["COUNT"], dtype=np.float64)
    variances[at] = np.array(columns["VARIANCE"], dtype=np.float64)
    return groups, counts, variances


def _cells(name: str) -> tuple[int, ...]:
    return cells_of(table(name))
