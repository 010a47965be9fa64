"""Homes and people of a description: people have a key of their own, which is not what shards are cut by."""

import json
from collections.abc import Sequence
from pathlib import Path

from census_maker import seeded

from yupana.interface.configured import Configured, setup

DESCRIBED = {
    "name": "homes",
    "unit": "homes",
    "files": {
        "homes": {"record": "home", "key": "id", "columns": {"region": {"codes": ["a", "b"]}}},
        "people": {
            "record": "person",
            "key": "pid",
            "parent": {"file": "homes", "column": "home"},
            "columns": {"sex": {"codes": ["1", "2"]}},
        },
    },
    "areas": {"all": {"code": "1"}, "region": {"column": "homes.region"}},
    "tables": {
        "sexes": {
            "counts": "people",
            "limit": {"per": "homes", "most": 2},
            "by": ["people.sex"],
            "margins": {"total": []},
            "budget": {"all": "1", "region": "1"},
        }
    },
    "criteria": {"near": {"table": "total", "level": "all", "error": "absolute", "quantile": 1, "most": 50}},
}
"""Persons have a key of their own, are cut by their home, and have criteria that are tested of synthetic records."""


def homes(folder: Path, *, twice: Sequence[int] = ()) -> tuple[Configured, Path]:
    (folder / "homes.json").write_text(json.dumps(DESCRIBED))
    data, random = folder / "homes", seeded(1)
    data.mkdir()
    people = [f"{'abc'[random.randrange(3)]}{number}|{number // 4}|{random.choice('12')}" for number in range(400)]
    for number in twice:
        people[number] = people[number - 200].split("|")[0] + people[number][people[number].index("|") :]
    (data / "homes.csv").write_text("id|region\n" + "".join(f"{n}|{random.choice('ab')}\n" for n in range(100)))
    (data / "people.csv").write_text("\n".join(["pid|home|sex", *people]) + "\n")
    (data / "SYNTHETIC").touch()
    return setup("tables", folder / "homes.json"), data
