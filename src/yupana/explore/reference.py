"""Public counts to set margins of error against: those of invented people, or of a release somebody has."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from yupana.errors import InputError
from yupana.products.phsafe.product import PHSAFE
from yupana.report.errors import Counts, published_counts


@dataclass(frozen=True, slots=True)
class PhsafeReference:
    """Counts and households for PHSafe.

    Attributes
    ----------
    counts : Counts
    source : str
        Whose counts, to finish a sentence.
    households : mapping of table to mapping of persons to households
    households_source : str
    """

    counts: Counts
    source: str
    households: Mapping[str, Mapping[int, int]]
    households_source: str


def document(name: str) -> dict[str, Any]:
    """Read a file of the package, such as ``phsafe``."""
    found = json.loads((files("yupana.explore") / "reference" / f"{name}.json").read_text(encoding="utf-8"))
    return dict(found)


@cache
def phsafe_reference(release: Path | None = None) -> PhsafeReference:
    """Counts of invented people, or of a release of PHSafe; households are invented either way.

    Raises
    ------
    OutputError, InputError
        If the folder holds no release of PHSafe, or one that does not hold together.
    """
    invented = document(PHSAFE.key)
    source = invented["source"]
    counts: Counts = {
        table: {int(cell): of_cell for cell, of_cell in of_table.items()}
        for table, of_table in invented["counts"].items()
    }
    if release is not None:
        counts, source = _counts_of(release), f"the release {release.name}, noise included"
    households = {
        table: {int(persons): number for persons, number in sizes.items()}
        for table, sizes in invented["households_by_persons"].items()
    }
    return PhsafeReference(counts, source, households, invented["source"])


def _counts_of(release: Path) -> Counts:
    from yupana.products.gate import open_checked  # noqa: PLC0415 (it brings a database, which the page does not need)

    opened = open_checked(release)
    if opened.product != PHSAFE.key:
        raise InputError(f"{release} is a release of {opened.product}, and counts of phsafe are needed")
    return published_counts({table: opened.columns(table) for table in opened})
