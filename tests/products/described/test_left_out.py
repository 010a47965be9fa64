"""What a description counts nowhere is told by name, and a recode with a hole is refused unless it says so."""

import itertools
import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from yupana.cli.main import main
from yupana.errors import ConfigError
from yupana.products.described.description import Description
from yupana.products.described.left_out import LeftOut, left_out
from yupana.products.described.product import TABLES

SIZES = {"a": 5, "b": 3, "c": 2}
"""Three columns of whole numbers from 0."""


def document(rng: random.Random) -> dict[str, Any]:
    """A description with universes, incomplete recodes, cells of any conditions, groups, and codes in no area."""

    def some(name: str, least: int = 1) -> list[int]:
        return sorted(rng.sample(range(SIZES[name]), rng.randint(least, SIZES[name])))

    def condition() -> dict[str, Any]:
        return {f"people.{name}": some(name) for name in rng.sample(sorted(SIZES), rng.randint(0, 2))}

    kept = some("a")
    parts = {"low": kept[: len(kept) // 2 + 1], "high": kept[len(kept) // 2 :] or kept}
    whole = set(kept) == set(range(SIZES["a"]))
    recode = {"column": "people.a", "classes": parts, **({} if whole else {"incomplete": True})}
    tables = {
        "t1": {"by": ["R", "people.b"], "overlapping": True},
        "t2": {"cells": {f"cell {i}": condition() for i in range(rng.randint(1, 3))}},
    }
    return {
        "name": "invented",
        "unit": "people",
        "files": {"people": {"columns": {name: {"whole": [0, size - 1]} for name, size in SIZES.items()} | {
            "place": {"codes": ["p", "q", "r"]}
        }}},
        "recodes": {"R": recode},
        "areas": {
            "all": {"code": "X"},
            "zone": {
                "column": "people.place",
                "of": {"p": ["1"], "q": [["1", "2"], []][rng.randint(0, 1)], "r": ["2"]},
            },
        },
        "groups": {f"g{i}": {"where": condition()} for i in range(2)},
        "levels": {"by-group": {"areas": "all", "groups": ["g0", "g1"]}},
        "tables": {
            name: {
                "counts": "people", "where": condition(), **of,
                "budget": {"all": "1/2", "zone": "1/4", "by-group": "1/4"},
            }
            for name, of in tables.items()
        },
    }  # fmt: skip


def described(told: dict[str, Any], folder: Path) -> Description:
    path = folder / "d.json"
    path.write_text(json.dumps(told))
    return TABLES.read(path)


def lost_by_hand(config: Description) -> dict[tuple[str, str], set[tuple[int, ...]]]:
    """By table and level, every combination of values of a, b, c and place that is in no area, group or cell."""
    found = {}
    for table in config.tables:
        for level in table.levels:
            predicates = [one for of in config.predicates(table, level.groups).values() for one in of]
            kind = config.areas[level.areas]
            found[table.name, level.name] = {
                values
                for values in itertools.product(*map(range, (*SIZES.values(), 3)))
                if not any(
                    dict(zip(('"people.a"', '"people.b"', '"people.c"', '"people.place"'), values, strict=True)) in one
                    for one in predicates
                )
                or (kind.column and not kind.of[values[3]])
            }
    return found


def listed(one: LeftOut) -> set[int]:
    """The values of an entry of a single column."""
    places = {"p": 0, "q": 1, "r": 2}
    found: set[int] = set()
    for text in one.values.split(", "):
        low, _, high = text.partition("-")
        found |= {places[text]} if text in places else set(range(int(low), int(high or low) + 1))
    return found


@pytest.mark.parametrize("seed", range(150))
def test_what_is_told_is_what_no_row_counts(seed: int, tmp_path: Path) -> None:
    try:
        config = described(document(random.Random(seed)), tmp_path)  # noqa: S311 (a world that can be repeated)
    except ConfigError as refused:
        # Groups or cells that no record can be in.
        assert "tables." in str(refused) or "groups." in str(refused)  # noqa: PT017
        return
    entries, columns = left_out(config), [f"people.{name}" for name in (*SIZES, "place")]
    for (table, level), lost in lost_by_hand(config).items():
        here = [one for one in entries if one.table == table and (not one.levels or level in one.levels)]
        assert bool(here) == bool(lost), (table, level, here)
        of_columns = {name: set[int]() for name in columns}
        for one in here:
            if one.of in of_columns:
                of_columns[one.of] |= listed(one)
        for place, name in enumerate(columns):
            every = set(itertools.product(*map(range, (*SIZES.values(), 3))))
            for value in {values[place] for values in every}:
                with_it = {values for values in every if values[place] == value}
                if value in of_columns[name]:
                    assert with_it <= lost, (table, level, name, value)
        by_columns = {v for v in lost if any(v[i] in of_columns[name] for i, name in enumerate(columns))}
        assert by_columns == lost or any(" and " in one.of for one in here), (table, level, here)


AGES = {
    "name": "ages",
    "unit": "people",
    "files": {"people": {"columns": {"age": {"whole": [0, 120], "missing": "unknown"}}}},
    "recodes": {"AGE": {"column": "people.age", "classes": {"0-14": "0-14", "16-64": "16-64", "65-120": "65-120"}}},
    "areas": {"country": {"code": "X"}},
    "tables": {"people": {"counts": "people", "by": ["AGE"], "budget": {"country": 1}}},
}


def test_a_recode_with_a_hole_is_refused_unless_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match=r"recodes\.AGE\.classes: no class holds 15 of people\.age"):
        described(AGES, tmp_path)
    told = json.loads(json.dumps(AGES))
    told["recodes"]["AGE"]["incomplete"] = True
    assert [str(one) for one in left_out(described(told, tmp_path))] == [
        "people: leaves out records with people.age 15, unknown: recode AGE is incomplete"
    ]
    whole = json.loads(json.dumps(told))
    whole["recodes"]["AGE"]["classes"]["15"] = [15, "unknown"]
    with pytest.raises(ConfigError, match=r"every value of people\.age is in a class"):
        described(whole, tmp_path)
    path, data = tmp_path / "d.json", tmp_path / "data"
    path.write_text(json.dumps(told))
    data.mkdir()
    (data / "people.csv").write_text("age\n3\n15\n70\n")
    (data / "SYNTHETIC").touch()
    assert main(["tables", "plan", str(path)]) == 0
    assert "people: people.age 15, unknown (recode AGE is incomplete)" in capsys.readouterr().out
    assert main(["tables", "validate", str(path), str(data)]) == 0
    assert "people: leaves out records with people.age 15, unknown" in capsys.readouterr().out
    assert main(["tables", "run", str(path), str(data), str(tmp_path / "out")]) == 0
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["left_out"] == [
        {
            "table": "people", "levels": [], "of": "people.age", "values": "15, unknown",
            "because": "recode AGE is incomplete",
        }
    ]  # fmt: skip
    assert "leaves out records with people.age 15, unknown" in (tmp_path / "out" / "codebook.md").read_text()
    assert main(["check", str(tmp_path / "out")]) == 0
    del manifest["left_out"]
    (tmp_path / "out" / "manifest.json").write_text(json.dumps(manifest))
    assert main(["check", str(tmp_path / "out")]) == 2
    assert "left_out is missing" in capsys.readouterr().err


def test_budgets_are_exact_in_the_world_of_holes(tmp_path: Path) -> None:
    told = json.loads(json.dumps(AGES))
    told["recodes"]["AGE"]["incomplete"] = True
    assert TABLES.plan(described(told, tmp_path)).loss() == Fraction(1)
