"""Made-up small worlds for TopDown: a DATA folder and a configuration to go with it."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

LEVELS = ("US", "State", "County", "Tract", "Block_Group", "Block")
GEOGRAPHY = ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLKGRPCE", "TABBLK", "AIANNHCE", "COUSUBFP", "PLACEFP")
WIDTHS = {"US": 0, "State": 2, "County": 5, "Tract": 11, "Block_Group": 12, "Block": 16}


@dataclass
class World:
    """What is true, in plain Python."""

    shape: tuple[int, ...]
    blocks: list[str] = field(default_factory=list)
    areas: list[tuple[str, str, str]] = field(default_factory=list)
    counts: dict[tuple[str, int], int] = field(default_factory=dict)
    facilities: dict[str, list[int]] = field(default_factory=dict)

    def totals(self, width: int) -> dict[tuple[str, int], int]:
        """Counts by the first digits of the block and cell."""
        found: dict[tuple[str, int], int] = {}
        for (block, cell), count in self.counts.items():
            key = block[:width] if width else "US", cell
            found[key] = found.get(key, 0) + count
        return found


def make_world(seed: int, shape: tuple[int, ...], *, quarters: bool = False, states: int = 2) -> World:
    """A world with a few blocks in each of a few block groups, sparse, some of them empty."""
    rng = np.random.default_rng(seed)
    world = World(shape)
    for state in range(1, states + 1):
        for county in range(1, 1 + int(rng.integers(1, 4))):
            for tract in range(1, 1 + int(rng.integers(1, 4))):
                for group in range(1, 1 + int(rng.integers(1, 3))):
                    for block in range(int(rng.integers(1, 6))):
                        world.blocks.append(f"{state:02}{county:03}{tract:06}{group}{group}{block:03}")
    for block in world.blocks:
        area = ("0100" if rng.random() < 0.2 else "9999", f"{rng.integers(3):05}", f"{rng.integers(1, 4):05}")
        world.areas.append((area[0], "99999" if area[1] == "00000" else area[1], area[2]))
        there = [int(rng.random() < 0.8) * int(rng.integers(1, 30)), *(int(rng.random() < 0.15) for _ in range(7))]
        world.facilities[block] = there
        _fill(world, block, rng, quarters=quarters)
    return world


def _fill(world: World, block: str, rng: np.random.Generator, *, quarters: bool) -> None:
    """Put people into a block, with group quarters only where there are facilities, and then someone in each."""
    cells = int(np.prod(world.shape))
    inner, there = cells // world.shape[0], world.facilities[block]
    for cell in range(cells):
        if quarters and not there[cell // inner]:
            continue
        if rng.random() < 0.3:
            world.counts[block, cell] = int(rng.integers(1, 12))
    for g in range(1, world.shape[0]) if quarters else ():
        if there[g]:
            world.counts[block, g * inner] = int(rng.integers(1, 20))


def write_world(world: World, folder: Path, *, quarters: bool = False) -> Path:
    """Write DATA."""
    folder.mkdir(parents=True)
    lines = ["|".join(GEOGRAPHY)]
    for block, (aian, cousub, place) in zip(world.blocks, world.areas, strict=True):
        lines.append("|".join([block[:2], block[2:5], block[5:11], block[11], block[12:], aian, cousub, place]))
    (folder / "geography.txt").write_text("\n".join(lines) + "\n")
    names = [f"a{i}" for i in range(len(world.shape))]
    lines = ["|".join(["block", *names, "count"])]
    for (block, cell), count in world.counts.items():
        lines.append("|".join([block, *map(str, np.unravel_index(cell, world.shape)), str(count)]))
    (folder / "histogram.csv").write_text("\n".join(lines) + "\n")
    if quarters:
        lines = ["|".join(["block", "housing_units", *(f"gq{g}" for g in range(1, 8))])]
        lines += ["|".join([block, *map(str, there)]) for block, there in world.facilities.items()]
        (folder / "group_quarters.csv").write_text("\n".join(lines) + "\n")
    (folder / "SYNTHETIC").touch()
    return folder


def configuration(shape: tuple[int, ...], *, rho: str = "inf", **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """A configuration with every margin of one and two attributes, in one pass."""
    names = [f"a{i}" for i in range(len(shape))]
    queries = (
        {"total": "1/4", "a0": "1/4", "detailed": "1/2"} if len(shape) > 1 else {"total": "1/4", "detailed": "3/4"}
    )
    return {
        "product": "example",
        "mechanism": "zcdp",
        "rho": rho,
        "invariants": {"State": ["total"]},
        "schema": dict(zip(names, shape, strict=True)),
        "shares": dict.fromkeys(LEVELS, "1/6"),
        "queries": dict.fromkeys(LEVELS, queries),
        **more,
    }


def write_configuration(document: dict[str, Any], path: Path) -> Path:
    """Write CONFIG as JSON."""
    path.write_text(json.dumps(document))
    return path
