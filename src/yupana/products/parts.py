"""A document of parts: several configurations of one product that make one release, each with a plan of its own.

Each part protects units of its own, such as persons and housing units. So each has its own ledger, and the losses of
two parts, which are promises to different units, are never added.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from yupana.errors import ConfigError, nearest
from yupana.files.changes import Changes
from yupana.files.document import check_keys, is_text, read_document, refuse

if TYPE_CHECKING:
    from yupana.plan.plan import Plan

PARTS: Final = "parts"
"""The key that makes a document one of parts."""

ALONE: Final = ""
"""The name of a configuration, a run or a release that is no part of another."""

NOT_ADDED: Final = "their losses are not added, for they are promises to different units: {units}"

_NAME: Final = re.compile("[a-z][a-z0-9_]*")
_LEAST: Final = 2


@dataclass(frozen=True, slots=True)
class PartSource:
    """Where the configuration of a part is read.

    Attributes
    ----------
    config
        A built-in name, a file or a document.
    within : tuple of str
        Of a file that holds it in a table: the keys of the table.
    """

    config: Any
    within: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PartsDocument:
    """What a document of parts says.

    Attributes
    ----------
    title : str
        Its name for what is made.
    sources : mapping of part to PartSource
    """

    title: str
    sources: Mapping[str, PartSource]

    def changes(self, given: Changes) -> dict[str, Changes]:
        """The changes of each part, whose keys begin with its name: ``persons.rho``.

        Raises
        ------
        ConfigError
            If a key names no part.
        """
        found: dict[str, list[tuple[str, str]]] = {name: [] for name in self.sources}
        for key, value in given.values:
            part, _, rest = key.partition(".")
            if part not in found or not rest:
                known = " or ".join(f"{name}." for name in found)
                raise ConfigError(
                    f"{key}: {self.title} has parts; begin the key with that which is changed, {known}"
                    f"{nearest(part, found)}"
                )
            found[part].append((rest, value))
        return {name: Changes(tuple(values), self.sources[name].within) for name, values in found.items()}


def read_parts(config: object, path: Path | None, built_in: Sequence[str]) -> PartsDocument | None:
    """Read a document of parts; None if a configuration is none.

    Parameters
    ----------
    config : object
        What the user gave: a document, or something that ``path`` was found for.
    path : Path, optional
        The file of the configuration, a manifest perhaps.
    built_in : sequence of str
        Names of configurations that come with the product.

    Raises
    ------
    ConfigError
        Naming every fault of the document.
    """
    faults: list[str] = []
    document = config if path is None else _in_file(path, faults)
    if not isinstance(document, Mapping) or PARTS not in document:
        return None
    document = dict(document)
    check_keys("", document, ("product", PARTS), faults)
    title, parts = document.get("product", ""), document[PARTS]
    if "product" in document and not is_text(title):
        faults.append("product: must be a text")
    if not isinstance(parts, Mapping) or len(parts) < _LEAST:
        faults.append(f"{PARTS}: must be a table of {_LEAST} configurations or more, by their names")
        parts = {}
    for name, told in parts.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            faults.append(f"{PARTS}: {name!r} is no name of a part: small letters, digits and _, a letter first")
        if not is_text(told) and not isinstance(told, Mapping):
            faults.append(f"{PARTS}.{name}: must be a built-in name, a file or a table")
    if faults:
        raise refuse(path or Path("of parts"), faults)
    return PartsDocument(title, {name: _source(name, told, path, built_in) for name, told in parts.items()})


def _in_file(path: Path, faults: list[str]) -> object:
    """The document of a file, or that which a manifest holds."""
    if not path.is_file():
        return None
    document, found = read_document(path)
    if isinstance(document, dict) and "yupana" in document:
        return document.get("configuration")
    if isinstance(document, dict) and PARTS in document:
        faults += found
    return document


def _source(name: str, told: object, path: Path | None, built_in: Sequence[str]) -> PartSource:
    """A part as it is told: by name, by a file beside the document, or in it."""
    if isinstance(told, Mapping):
        return PartSource(told) if path is None else PartSource(path, (PARTS, name))
    if path is None or told in built_in:
        return PartSource(told)
    return PartSource(path.parent / str(told))


def check_units(plans: "Mapping[str, Plan]") -> None:
    """Refuse parts that protect the same unit: their losses would add, and nobody would add them.

    Raises
    ------
    ConfigError
    """
    first: dict[str, str] = {}
    for name, plan in plans.items():
        other = first.setdefault(plan.privacy_unit, name)
        if other != name:
            raise ConfigError(
                f"parts {other} and {name} protect the same unit, a {plan.privacy_unit}, so that their losses add, and "
                "parts have ledgers apart. Measure both in one configuration, or make two releases that are charged "
                "to one dataset"
            )


def not_added(plans: "Iterable[Plan]") -> str:
    """Why the losses of parts are not added, in words."""
    units = [f"a {plan.privacy_unit}" for plan in plans]
    return NOT_ADDED.format(units=f"{', '.join(units[:-1])} and {units[-1]}")


def data_of(data: Path, names: Sequence[str]) -> dict[str, Path]:
    """The folder of the records of each part: one for all, unless it holds a folder for each part and nothing else."""
    if data.is_dir() and {path.name for path in data.iterdir()} - {"SYNTHETIC"} == set(names):
        return {name: data / name for name in names}
    return dict.fromkeys(names, data)
