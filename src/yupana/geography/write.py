"""A spine on disk: blocks.csv, geounits.csv and entities.csv, separated by ``|``."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

import numpy as np

from yupana.arrays import Ints
from yupana.geography.entities import Entities
from yupana.geography.spine import Spine
from yupana.privacy.exact import show_exact
from yupana.release.tables import checksum

BLOCKS: Final = "blocks.csv"
GEOUNITS: Final = "geounits.csv"
ENTITIES: Final = "entities.csv"
GEOUNIT_COLUMNS: Final = ("geolevel", "geounit", "parent", "children", "share", "bypassed")

_ROWS_AT_ONCE: Final = 1 << 17
_FLAGS: Final = ("false", "true")

Rows = Iterator[Sequence[str]]


def write_blocks(folder: Path, spine: Spine) -> int:
    """Write which geounit of each geolevel every block lies in, blocks in order; return the number of rows."""
    order = np.argsort(spine.blocks)
    upper = [(level, spine.tree.ancestors(i)[order]) for i, level in enumerate(spine.levels[:-1])]
    names = [level.labels() for level, _ in upper]
    blocks = spine.blocks[order]

    def rows(start: int, stop: int) -> Rows:
        written = [f"{block:016d}" for block in blocks[start:stop].tolist()]
        units = [
            list(map(labels.__getitem__, unit[start:stop].tolist()))
            for labels, (_, unit) in zip(names, upper, strict=True)
        ]
        return zip(written, *units, written, strict=True)

    _write(folder / BLOCKS, ("block", *spine.tree.names), len(blocks), rows)
    return len(blocks)


def write_geounits(folder: Path, spine: Spine) -> int:
    """Write all geounits with their parents, numbers of children and shares, from the root down; return the rows."""
    shares = [show_exact(share) for share in spine.shares]
    with (folder / GEOUNITS).open("w", encoding="utf-8") as file:
        file.write("|".join(GEOUNIT_COLUMNS) + "\n")
        above = [""]
        for i, level in enumerate(spine.levels):
            parent, children = spine.tree.parents[i], spine.tree.children(i)
            is_last = i == len(spine.levels) - 1
            names: list[str] = []
            for start in range(0, len(parent), _ROWS_AT_ONCE):
                stop = start + _ROWS_AT_ONCE
                labels = level.labels(start, stop)
                rows = zip(
                    labels,
                    map(above.__getitem__, parent[start:stop].tolist()),
                    children[start:stop].tolist(),
                    map(shares.__getitem__, level.share[start:stop].tolist()),
                    map(_FLAGS.__getitem__, level.bypassed[start:stop].tolist()),
                    strict=True,
                )
                file.writelines(f"{level.name}|{a}|{b}|{c}|{d}|{e}\n" for a, b, c, d, e in rows)
                # The names of the blocks, of which there are most, are nobody's parents.
                names = names if is_last else names + labels
            above = names
    return sum(map(len, spine.tree.parents))


def write_entities(folder: Path, blocks: Ints, found: list[Entities]) -> int:
    """Write in which areas of each kind every block lies, empty for none, as `spine distance` reads it."""
    texts = [[*e.labels, ""] for e in found]

    def rows(start: int, stop: int) -> Rows:
        written = [f"{block:016d}" for block in blocks[start:stop].tolist()]
        # Position -1 is the empty text at the end.
        columns = [
            list(map(labels.__getitem__, e.index[start:stop].tolist())) for labels, e in zip(texts, found, strict=True)
        ]
        return zip(written, *columns, strict=True)

    _write(folder / ENTITIES, ("block", *(e.column for e in found)), len(blocks), rows)
    return len(blocks)


def describe(folder: Path, rows: dict[str, int]) -> dict[str, dict[str, object]]:
    """What the manifest says of each file: its checksum, rows and columns."""
    described: dict[str, dict[str, object]] = {}
    for name, number in rows.items():
        path = folder / name
        with path.open(encoding="utf-8") as file:
            columns = file.readline().rstrip("\n").split("|")
        described[name] = {"sha256": checksum(path), "rows": number, "columns": columns}
    return described


def _write(path: Path, columns: Sequence[str], number: int, rows: Callable[[int, int], Rows]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write("|".join(columns) + "\n")
        for start in range(0, number, _ROWS_AT_ONCE):
            lines = map("|".join, rows(start, start + _ROWS_AT_ONCE))
            file.write("\n".join(chain(lines, [""])))
