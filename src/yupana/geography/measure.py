"""Distances of the entities of a file from a spine on disk."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from yupana.geography.distance import distances, distances_below
from yupana.geography.entities import Entities
from yupana.geography.read import WrittenSpine, entities_of, manifest_of, read_spine, settings_of
from yupana.geography.tree import partition
from yupana.progress import Announce

Root = Literal["nation", "county"]


@dataclass(frozen=True, slots=True)
class Distance:
    """The off-spine entity distance of one entity, in the nation or, where a county is named, within it."""

    column: str
    entity: str
    county: str | None
    osed: int

    def as_json(self) -> dict[str, str | int]:
        """Return the row as JSON shows it."""
        county = {} if self.county is None else {"county": self.county}
        return {"column": self.column, "entity": self.entity, **county, "osed": self.osed}


def measure(folder: Path, entities: Path, root: Root, announce: Announce) -> list[Distance]:
    """Measure how far entities are from a spine: the paper's distance from the nation, or the code's in each county.

    Raises
    ------
    InputError, OutputError
        If the folder holds no spine, or the entities are not on it.
    """
    settings = settings_of(manifest_of(folder), folder)
    announce("reading the spine")
    spine = read_spine(folder, settings.levels)
    announce("reading the entities")
    found = entities_of(entities, spine, live=settings.live)
    announce("measuring")
    return [row for kind in found for row in _measure(spine, kind, root)]


def _measure(spine: WrittenSpine, kind: Entities, root: Root) -> list[Distance]:
    members = partition(kind.index, len(kind.labels))
    if root == "nation":
        found = distances(spine.tree, members).tolist()
        return [Distance(kind.column, label, None, osed) for label, osed in zip(kind.labels, found, strict=True)]
    level = spine.tree.names.index("County")
    names = spine.labels[level]
    rows = [
        Distance(kind.column, kind.labels[entity], names[unit], osed)
        for unit, entity, osed in zip(*(a.tolist() for a in distances_below(spine.tree, members, level)), strict=True)
    ]
    return sorted(rows, key=lambda row: (row.entity, row.county or ""))
