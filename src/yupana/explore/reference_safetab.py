"""The population groups of SafeTab, and how large those of invented people are."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from yupana.explore.reference import document
from yupana.products.safetab.demonstration_parameters import write_parameters
from yupana.products.safetab.iterations import CharacteristicIterations, read_iterations
from yupana.products.safetab.regions import Level
from yupana.products.safetab.specification import DETAILED_ONLY
from yupana.report.groups import Sizes


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
    invented = document("safetab")

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
