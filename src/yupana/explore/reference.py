"""Public counts to set errors against, and blocks to try spines on: of invented people, or of a release."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from yupana.errors import InputError
from yupana.geography.blocks import Reference
from yupana.products.phsafe.product import PHSAFE
from yupana.products.safetab.demonstration_parameters import write_parameters
from yupana.products.safetab.iterations import CharacteristicIterations, read_iterations
from yupana.products.safetab.regions import Level
from yupana.products.safetab.specification import DETAILED_ONLY
from yupana.report.errors import Counts, published_counts
from yupana.report.groups import Sizes
from yupana.report.topdown import SampleBlocks

_FOLDER: Final = files("yupana.explore") / "reference"


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


def _document(name: str) -> dict[str, Any]:
    """Read a file of the package, such as ``phsafe``."""
    return dict(json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8")))


@cache
def phsafe_reference(release: Path | None = None) -> PhsafeReference:
    """Counts of invented people, or of a release of PHSafe; households are invented either way.

    Raises
    ------
    OutputError, InputError
        If the folder holds no release of PHSafe, or one that does not hold together.
    """
    invented = _document(PHSAFE.key)
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


@dataclass(frozen=True, slots=True)
class SafetabReference:
    """How large population groups are.

    Attributes
    ----------
    persons, households : mapping of level to Sizes
        By the names of levels, such as ``COUNTY 2``; of persons, groups of which only totals are made stand apart under
        ``COUNTY 2 detailed-only``, and of households they are among the others.
    source : str
        Whose groups, to finish a sentence.
    """

    persons: Mapping[str, Sizes]
    households: Mapping[str, Sizes]
    source: str

    def all_persons(self, level: Level) -> Sizes:
        """All groups of a level, by persons."""
        apart = self.persons.get(f"{level.name} {DETAILED_ONLY}", ())
        return (*self.persons.get(level.name, ()), *apart)


@cache
def safetab_reference() -> SafetabReference:
    """The sizes of groups of invented people."""
    invented = _document("safetab")

    def sizes(kind: str) -> dict[str, list[tuple[int, int]]]:
        return {level: [(size, groups) for size, groups in found] for level, found in invented[kind].items()}

    households: dict[str, list[tuple[int, int]]] = {}
    for level, found in sizes("households").items():
        households.setdefault(level.removesuffix(f" {DETAILED_ONLY}"), []).extend(found)
    return SafetabReference(sizes("persons"), households, invented["source"])


@cache
def iterations_of(parameters: Path | None) -> CharacteristicIterations:
    """The groups of a parameter folder, or those of the demonstration."""
    if parameters is not None:
        return read_iterations(parameters)
    with TemporaryDirectory() as folder:
        write_parameters(Path(folder) / "parameters")
        return read_iterations(Path(folder) / "parameters")


@cache
def blocks() -> SampleBlocks:
    """The blocks of an invented state, to try spines on."""
    with as_file(_FOLDER / "blocks.npz") as path, np.load(path) as found:
        reference = Reference(
            np.cumsum(found["block"]),
            found["aiannh"],
            found["cousub"],
            found["place"],
            MappingProxyType({}),
        )
        quarters = found["quarters"]
    source = f"an invented state of 368,000 households in {len(quarters):,} blocks"
    return SampleBlocks(reference, quarters, source, {"person record": 928_692, "housing unit": 407_530})
