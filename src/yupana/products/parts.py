"""A document of parts: several configurations of one product that make one release, each with a plan of its own.

Each part protects units of its own, such as persons and housing units. So each has its own ledger, and the losses of
two parts, which are promises to different units, are never added.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from yupana.errors import ConfigError, nearest
from yupana.files.declaration import TEXT, Schema, declared, key, must_be, scalar, table_of
from yupana.files.document import Changes, is_text, read_document, refuse

if TYPE_CHECKING:
    from yupana.plan.plan import Plan

PARTS: Final = "parts"
"""The key that makes a document one of parts."""

ALONE: Final = ""
"""The name of a configuration, a run or a release that is no part of another."""

NOT_ADDED: Final = "their losses are not added, for they are promises to different units: {units}"

_NAME: Final = re.compile("[a-z][a-z0-9_]*")
_LEAST: Final = 2
_PARTS: Final = f"a table of {_LEAST} configurations or more, by their names"
_PART: Final = scalar(
    "a built-in name, a file or a table",
    lambda told: told if is_text(told) or isinstance(told, Mapping) else None,
    {"anyOf": [TEXT.schema, {"$ref": "#", "not": {"required": [PARTS]}}]},
)
_NAMES: Final = scalar(
    "a name: small letters, digits and _, a letter first",
    lambda name: name if isinstance(name, str) and _NAME.fullmatch(name) else None,
    {"pattern": f"^{_NAME.pattern}$"},
)


def _check_number(place: str, parts: Mapping[str, object], faults: list[str]) -> None:
    if len(parts) < _LEAST:
        must_be(place, _PARTS, faults)


@dataclass(frozen=True, slots=True)
class DeclaredParts:
    """A document of parts."""

    product: str = key(TEXT)
    parts: Mapping[str, object] = key(
        table_of(_PART, _PARTS, name=_NAMES).checked(_check_number, minProperties=_LEAST),
        "in place of all else but product: configurations that make one release, each with a plan of its own; of each "
        "its built-in name, a file beside this one, or what such a file holds",
    )


_DOCUMENT: Final = declared(DeclaredParts)
PARTS_SCHEMA: Final[Schema] = _DOCUMENT.schema["properties"][PARTS]


@dataclass(frozen=True, slots=True)
class _PartSource:
    """Where the configuration of a part is read."""

    config: Any  # a built-in name, a file or a document
    within: tuple[str, ...] = ()  # of a file that holds it in a table: the keys of the table


@dataclass(frozen=True, slots=True)
class PartsDocument:
    """What a document of parts says."""

    title: str  # its name for what is made
    sources: Mapping[str, _PartSource]  # by part

    def changes(self, given: Changes) -> dict[str, Changes]:
        """The changes of each part, whose keys begin with its name: ``persons.rho``.

        Raises
        ------
        ConfigError
            If a key names no part.
        """
        found: dict[str, list[tuple[str, str]]] = {name: [] for name in self.sources}
        for place, value in given.values:
            part, _, rest = place.partition(".")
            if part not in found or not rest:
                known = " or ".join(f"{name}." for name in found)
                raise ConfigError(
                    f"{place}: {self.title} has parts; begin the key with that which is changed, {known}"
                    f"{nearest(part, found)}"
                )
            found[part].append((rest, value))
        return {name: Changes(tuple(values), self.sources[name].within) for name, values in found.items()}


def read_parts(config: object, path: Path | None, built_in: Collection[str]) -> PartsDocument | None:
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
    parts = document[PARTS]
    told = _DOCUMENT.read("", {**document, PARTS: {**parts} if isinstance(parts, Mapping) else parts}, faults)
    if told is None or faults:
        raise refuse(path or Path("of parts"), faults)
    return PartsDocument(told.product, {name: _source(name, of, path, built_in) for name, of in told.parts.items()})


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


def _source(name: str, told: object, path: Path | None, built_in: Collection[str]) -> _PartSource:
    """A part as it is told: by name, by a file beside the document, or in it."""
    if isinstance(told, Mapping):
        return _PartSource(told) if path is None else _PartSource(path, (PARTS, name))
    if path is None or told in built_in:
        return _PartSource(told)
    return _PartSource(path.parent / str(told))


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
