"""Record files that are laid out by area: folders of the same name hold what belongs together, if their keys say so."""

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from yupana.confidential.records.reader import Source

Parts: TypeAlias = Mapping[str, tuple[int, ...]]
"""Numbers of parts by the name of their record file."""

_RANGES: Final = 16


def areas_of(sources: Mapping[str, Source], most: int | None) -> tuple[Parts, ...]:
    """Which parts of all record files lie together, in folders of the same name.

    Parameters
    ----------
    sources : mapping of str to Source
        By the name of the record file.
    most : int, optional
        How many areas are asked for; folders are put together to make as many, the largest first.

    Returns
    -------
    tuple of Parts
        Empty where a part lies in no folder, or there are fewer than two folders, or fewer than are asked for.
    """
    together: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    size: dict[str, int] = defaultdict(int)
    for name, source in sources.items():
        for part, (path, told) in enumerate(zip(source.paths, source.names, strict=True)):
            folders = told.split("/")[1:-1]
            if not folders:
                return ()
            together[folders[0]][name].append(part)
            size[folders[0]] += path.stat().st_size
    number = most or len(together)
    if len(together) < max(2, number):
        return ()
    return tuple(
        {name: tuple(sorted(part for folder in folders for part in together[folder][name])) for name in sources}
        for folders in shared_out(size, number)
    )


def shared_out(size: Mapping[str, int], number: int) -> list[list[str]]:
    """What has sizes, put into so many shares that are about as large, the largest first."""
    shares: list[tuple[int, int, list[str]]] = [(0, place, []) for place in range(number)]
    for name in sorted(size, key=lambda name: (-size[name], name)):
        taken, place, names = heapq.heappop(shares)
        heapq.heappush(shares, (taken + size[name], place, [*names, name]))
    return [names for _, _, names in sorted(shares, key=lambda share: share[1])]


@dataclass(frozen=True, slots=True)
class KeysOfAreas:
    """Tells whether two areas have a key in common, by 64 bits of each; they wait on disk, and are compared in ranges.

    Two keys may have the same bits, which is taken for one key in two areas: that costs time, and nothing else.

    Attributes
    ----------
    folder : Path
        Private and empty.
    """

    folder: Path

    def add(self, keys: Sequence[NDArray[np.uint64]]) -> None:
        """Take the keys of an area, those of each record file."""
        distinct = np.unique(np.concatenate(keys))
        bounds = np.searchsorted(distinct >> np.uint64(60), np.arange(_RANGES + 1))
        for number, (first, last) in enumerate(pairwise(bounds.tolist())):
            with (self.folder / str(number)).open("ab") as file:
                file.write(distinct[first:last].tobytes())

    def are_apart(self) -> bool:
        """Whether no key is in two areas."""
        for path in self.folder.iterdir():
            keys = np.sort(np.fromfile(path, np.uint64))
            if (keys[1:] == keys[:-1]).any():
                return False
        return True
