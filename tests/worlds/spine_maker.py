"""Random trees and reference files for the tests of spines, and plain readers of what a spine's folder holds."""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from yupana.geography.tree import Tree

COLUMNS = ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLKGRPCE", "TABBLK", "AIANNHCE", "COUSUBFP", "PLACEFP")


class Block(NamedTuple):
    state: str
    county: str
    tract: str
    group: str
    number: str
    aiannh: str
    cousub: str
    place: str

    @property
    def geocode(self) -> str:
        return "".join(self[:5])


def random_blocks(
    rng: Random, *, states: tuple[str, ...] = ("17", "25"), tracts: int = 6, blocks: int = 12
) -> list[Block]:
    """Blocks in random geography: in state 25 county subdivisions count, and areas of a few types lie about."""
    areas = ["9999"] * rng.randint(1, 12) + ["0010", "4810", "5010", "8500", "9100", "9600"]
    found = []
    for state in states:
        for county in range(rng.randint(1, 3)):
            for tract in range(rng.randint(1, tracts)):
                code = f"{10 * tract + rng.randrange(2) + 1:04}0{rng.randrange(10)}"
                numbers = rng.sample(range(1000, 5000), rng.randint(1, blocks))
                for number in numbers:
                    place = f"{rng.choice([99999, 99999, 100, 200, 300]):05}"
                    cousub = f"{rng.choice([99999, 1000, 2000]):05}"
                    found.append(
                        Block(
                            state,
                            f"{2 * county + 1:03}",
                            code,
                            str(number // 1000),
                            str(number),
                            rng.choice(areas),
                            cousub,
                            place,
                        )
                    )
    rng.shuffle(found)
    return found


def write_reference(path: Path, blocks: list[Block], separator: str = "|") -> Path:
    lines = [separator.join(COLUMNS), *(separator.join(block) for block in blocks)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def read_table(path: Path) -> list[dict[str, str]]:
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    names = header.split("|")
    return [dict(zip(names, line.split("|"), strict=True)) for line in lines]


@dataclass(frozen=True)
class Nested:
    """A tree in plain Python: children of each unit by level, units numbered within their level."""

    children: tuple[tuple[tuple[int, ...], ...], ...]

    @property
    def levels(self) -> int:
        return len(self.children) + 1

    def units(self, level: int) -> int:
        return 1 if level == 0 else sum(map(len, self.children[level - 1]))

    def leaves(self, level: int, unit: int) -> frozenset[int]:
        if level == self.levels - 1:
            return frozenset([unit])
        return frozenset().union(*(self.leaves(level + 1, child) for child in self.children[level][unit]))


def nested(tree: Tree) -> Nested:
    found = []
    for level in range(len(tree.names) - 1):
        below: defaultdict[int, list[int]] = defaultdict(list)
        for unit, parent in enumerate(tree.parents[level + 1].tolist()):
            below[parent].append(unit)
        found.append(tuple(tuple(below[unit]) for unit in range(tree.units(level))))
    return Nested(tuple(found))


def make_tree(fanouts: list[list[int]], names: tuple[str, ...] = ()) -> Tree:
    """A tree from the numbers of children of the units of each level."""
    parents = [np.zeros(1, dtype=np.int32)]
    parents += [np.repeat(np.arange(len(level)), level).astype(np.int32) for level in fanouts]
    return Tree(names or tuple(f"level {i}" for i in range(len(parents))), tuple(parents))


@st.composite
def trees(draw: st.DrawFn, *, levels: int = 4, most_units: int = 60, fanout: int = 4) -> Tree:
    fanouts: list[list[int]] = []
    units = 1
    for _ in range(draw(st.integers(1, levels - 1))):
        most = max(1, min(fanout, most_units // units))
        level = draw(st.lists(st.integers(1, most), min_size=units, max_size=units))
        fanouts.append(level)
        units = sum(level)
    return make_tree(fanouts)
