"""Made-up countries for TopDown: hierarchies of any depth and codes, with a histogram of their blocks."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ATTRIBUTES = {"sex": ["m", "f"], "age": ["under 15", "15-64", "65+"]}
CELLS = [(sex, age) for sex in ATTRIBUTES["sex"] for age in ATTRIBUTES["age"]]


@dataclass
class Country:
    """What is true, in plain Python."""

    levels: list[str]
    parent: dict[str, str] = field(default_factory=dict)
    blocks: list[str] = field(default_factory=list)
    counts: dict[tuple[str, str, str], int] = field(default_factory=dict)

    def of(self, level: str) -> dict[tuple[str, str, str], int]:
        """Counts by unit of a level and cell, each block followed up its parents."""
        found: dict[tuple[str, str, str], int] = {}
        for (unit, *cell), count in self.counts.items():
            for _ in range(len(self.levels) - 1 - self.levels.index(level)):
                unit = self.parent[unit]  # noqa: PLW2901 (walks up)
            key = (unit, cell[0], cell[1])
            found[key] = found.get(key, 0) + count
        return found


def make_country(seed: int, depth: int) -> Country:
    """A tree whose codes are texts of all kinds: slashes, blanks, digits of any length, letters beyond ASCII."""
    rng = np.random.default_rng(seed)
    country = Country([f"Level-{i}" for i in range(depth - 1)] + ["block"])
    here = ["Ü 1"]
    for level in range(1, depth):
        below = []
        for unit in here:
            for number in range(int(rng.integers(1, 5))):
                form = ("{n:0{w}}", "LX-{n:03}", "{n}/ü", "x {n}")[int(rng.integers(4))]
                child = form.format(n=len(country.parent), w=1 + level + number)
                country.parent[child] = unit
                below.append(child)
        here = below
    country.blocks = here
    for block in here:
        for sex, age in CELLS:
            if rng.random() < 0.5:
                country.counts[block, sex, age] = int(rng.integers(1, 15))
    return country


def write_country(country: Country, folder: Path, seed: int = 0) -> Path:
    """Write DATA, and beside it the table of units, in an order of no meaning."""
    data = folder / "data"
    data.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    units = [f"{unit}|{above}" for unit, above in country.parent.items()] or [f"{country.blocks[0]}|"]
    rng.shuffle(units)
    (folder / "units.csv").write_text("\n".join(["UNIT|PARENT", *units, ""]), encoding="utf-8")
    rows = [f"{block}|{sex}|{age}|{count}" for (block, sex, age), count in country.counts.items()]
    rng.shuffle(rows)
    (data / "histogram.csv").write_text("\n".join(["block|sex|age|count", *rows, ""]), encoding="utf-8")
    (data / "SYNTHETIC").touch()
    return data


def country_configuration(country: Country, *, rho: str = "inf", **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """A configuration that names the table of units."""
    return {
        "product": "country",
        "rho": rho,
        "areas": {"levels": country.levels, "of": {"file": "units.csv", "code": "UNIT", "area": "PARENT"}},
        "schema": ATTRIBUTES,
        "shares": dict.fromkeys(country.levels, f"1/{len(country.levels)}"),
        "queries": {level: {"total": "1/4", "sex": "1/4", "detailed": "1/2"} for level in country.levels},
        **more,
    }
