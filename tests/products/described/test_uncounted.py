"""What a description counts nowhere is told by name, and a recode with a hole is refused unless it says so."""

import itertools
import json
import random
import shutil
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from yupana.cli.main import main
from yupana.errors import ConfigError
from yupana.plan.responses import ResponseGroup
from yupana.products import PRODUCTS
from yupana.products.described.description import Description
from yupana.products.described.product import TABLES
from yupana.products.described.uncounted import Uncounted, left_out

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
    recode: dict[str, Any] = {"column": "people.a", "classes": parts} | ({} if whole else {"incomplete": True})
    tables: dict[str, dict[str, Any]] = {
        "t1": {"by": ["R", "people.b"], "overlapping": True},
        "t2": {"cells": {f"cell {i}": condition() for i in range(rng.randint(1, 3))}},
    }
    return {
        "name": "invented",
        "unit": "people",
        "files": {"people": {"columns": {
            **{name: {"whole": [0, size - 1]} for name, size in SIZES.items()}, "place": {"codes": ["p", "q", "r"]}
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
                or (kind.columns and not kind.of[values[3]])
            }
    return found


def listed(one: Uncounted) -> set[int]:
    """The values of an entry of a single column."""
    places = {"p": 0, "q": 1, "r": 2}
    found: set[int] = set()
    for text in one.values.split(", "):
        low, _, high = text.partition("-")
        found |= {places[text]} if text in places else set(range(int(low), int(high or low) + 1))
    return found


@pytest.mark.parametrize("seed", range(50))
@pytest.mark.slow
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


@pytest.mark.slow
def test_a_recode_with_a_hole_is_refused_unless_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match=r"recodes\.AGE\.classes: no class holds 15 of people\.age"):
        described(AGES, tmp_path)
    told = json.loads(json.dumps(AGES))
    told["recodes"]["AGE"]["incomplete"] = True
    assert [str(one) for one in left_out(described(told, tmp_path))] == [
        "people: leaves out records with people.age 15, unknown: recode AGE has no class for them"
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
    assert "people: people.age 15, unknown (recode AGE has no class for them)" in capsys.readouterr().out
    assert main(["tables", "validate", str(path), str(data)]) == 0
    assert "people: people.age 15, unknown (recode AGE has no class for them)" in capsys.readouterr().out
    assert main(["tables", "validate", str(path), str(data), "--json"]) == 0
    answered = json.loads(capsys.readouterr().out)
    assert main(["tables", "plan", str(path), "--json"]) == 0
    assert answered["left_out"] == json.loads(capsys.readouterr().out)["left_out"] != []
    assert main(["tables", "run", str(path), str(data), str(tmp_path / "out")]) == 0
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["left_out"] == [
        {
            "table": "people", "levels": [], "of": "people.age", "values": "15, unknown",
            "because": "recode AGE has no class for them",
        }
    ]  # fmt: skip
    assert "leaves out records with people.age 15, unknown" in (tmp_path / "out" / "codebook.md").read_text()
    assert main(["check", str(tmp_path / "out")]) == 0
    del manifest["left_out"]
    (tmp_path / "out" / "manifest.json").write_text(json.dumps(manifest))
    assert main(["check", str(tmp_path / "out")]) == 2
    assert "left_out is missing" in capsys.readouterr().err


def test_the_reason_is_the_recode_that_the_table_reads(tmp_path: Path) -> None:
    told = json.loads(json.dumps(AGES))
    classes = told["recodes"]["AGE"]["classes"]
    told["recodes"] = {
        "WHOLE": {"column": "people.age", "classes": {"young": "0-14", "old": ["15-120", "unknown"]}},
        "OLDER": {"column": "people.age", "classes": {"65-120": "65-120"}, "incomplete": True},
        "AGE": {"column": "people.age", "classes": classes, "incomplete": True},
        "LATER": {"column": "people.age", "classes": {"15-64": "15-64"}, "incomplete": True},
    }
    told["tables"]["whole"] = {"counts": "people", "by": ["WHOLE"], "budget": {"country": 1}}
    told["tables"]["cells"] = {"counts": "people", "cells": {"old": {"OLDER": "65-120"}}, "budget": {"country": 1}}
    assert [(one.table, one.values, one.because) for one in left_out(described(told, tmp_path))] == [
        ("people", "15, unknown", "recode AGE has no class for them"),
        ("cells", "0-64, unknown", "no cell of the table counts them"),
    ]


@pytest.mark.parametrize("overlapping", [False, True])
def test_cells_that_no_row_of_a_sum_adds(overlapping: bool, tmp_path: Path) -> None:  # noqa: FBT001 (a case)
    told = json.loads(json.dumps(AGES))
    del told["recodes"]
    told["tables"]["people"] = {
        "counts": "people",
        "cells": {"young": {"people.age": "0-14"}, "old": {"people.age": ["15-120", "unknown"]}},
        "sums": {"all": {"all": ["young", "old"]}, "young_alone": {"young": ["young"]}},
        "budget": {"country": 1},
    }
    if overlapping:
        # Who is in it is in another cell, too, which the sums add.
        told["tables"]["people"]["cells"]["child"] = {"people.age": "0-4"}
        told["tables"]["people"]["overlapping"] = True
    assert [one.as_json() for one in left_out(described(told, tmp_path))] == [
        {
            "table": "young_alone", "levels": [], "of": "CELL of people", "values": "old",
            "because": "no row of the sum adds them",
        }
    ]  # fmt: skip


CODES = ["10", "20", "30", "40"]


def of_blocks(rng: random.Random) -> dict[str, Any]:
    """A description with groups by two responses, by conditions and of everyone, in one level."""
    groups: dict[str, Any] = {
        f"r{i}": {
            "response": f"people.{rng.choice(['origin', 'origin', 'origin', 'tongue'])}",
            "codes": sorted(rng.sample(CODES, rng.randint(1, 3))),
            "alone": rng.random() < 0.7,
        }
        for i in range(rng.randint(1, 6))
    }
    if rng.random() < 0.3:
        groups["men"] = {"where": {"people.sex": ["m"]}}
    if rng.random() < 0.1:
        groups["women"] = {"where": {"people.sex": ["f"]}}
    response = {"codes": CODES, **({"missing": "-"} if rng.random() < 0.5 else {})}
    return {
        "name": "origins",
        "unit": "people",
        "blocks": {"file": "blocks", "key": {"STATE": 2, "BLOCK": 2}, "columns": {"CITY": 2}},
        "areas": {"nation": {"code": "1"}},
        "files": {"people": {
            "columns": {"sex": {"codes": ["f", "m"]}},
            "responses": {
                "origin": {**response, "columns": ["O1", "O2", "O3"], "most": rng.randint(1, 3)},
                "tongue": {**response, "columns": ["T1"]},
            },
        }},
        "groups": groups,
        "levels": {"by-group": {"areas": "nation", "groups": [*groups, *(["*"] if rng.random() < 0.1 else [])]}},
        "tables": {"t": {"counts": "people", "budget": {"by-group": 1}}},
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.slow
def test_who_is_in_no_group_by_a_response(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)  # noqa: S311 (a world that can be repeated)
    told = of_blocks(rng)
    config = described(told, tmp_path)
    level = config.tables[0].levels[0]

    def answers(name: str) -> list[frozenset[int]]:
        of = config.responses[name]
        codes = [place for place, word in enumerate(of.column.words) if word != of.column.blank]
        least = 0 if of.column.blank else 1
        return [
            frozenset(some) for number in range(least, of.most + 1) for some in itertools.combinations(codes, number)
        ]

    lost = []
    for sex, origin, tongue in itertools.product("fm", answers("people.origin"), answers("people.tongue")):
        given = {"people.origin": origin, "people.tongue": tongue}
        inside = "*" in level.groups
        for code in level.groups:
            group = config.groups.get(code)
            if isinstance(group, ResponseGroup):
                inside |= given[group.response] in group
            else:
                inside |= code == {"m": "men", "f": "women"}[sex]
        lost += [] if inside else [(sex, origin, tongue)]
    entries = left_out(config)
    assert bool(entries) == bool(lost), (entries, told)
    alone = [one for one in entries if one.of == "people.origin" and " with " not in one.values]
    if {group.get("response") for group in told["groups"].values()} == {"people.origin"}:
        if "*" in level.groups:
            return
        words = config.responses["people.origin"].column.words
        texts = {words[place] or "none" for _, origin, _ in lost for place in origin if len(origin) == 1}
        texts |= {"-"} if any(not origin for _, origin, _ in lost) else set()
        assert {text for one in alone for text in one.values.split(", ")} == texts
        minimal = {
            " with ".join(words[place] for place in sorted(origin))
            for _, origin, _ in lost
            if len(origin) > 1 and not any({place} == other for place in origin for _, other, _ in lost)
        }
        assert bool(minimal) == any(" with " in one.values for one in entries), (entries, minimal)


def test_blocks_that_are_left_out_are_told(tmp_path: Path) -> None:
    told = of_blocks(random.Random(1))  # noqa: S311 (a world that can be repeated)
    told["blocks"] |= {
        "only": {"STATE": ["01", "02"]}, "housing_units": {"file": "homes", "block": "B", "number": "HOMES"},
    }  # fmt: skip
    told["areas"]["city"] = {"blocks": ["STATE", "CITY"], "nowhere": {"CITY": "99"}}
    told["areas"]["state"] = {"blocks": ["STATE"]}
    told["tables"] = {"t": {"counts": "people", "budget": {"nation": 1, "city": 1, "state": 1}}}
    assert [str(one) for one in left_out(described(told, tmp_path))] == [
        "t: leaves out records with people.STATE other than 01, 02: blocks.only leaves out other blocks",
        "t: leaves out records with homes.HOMES 0 in a whole area: areas without a housing unit are left out",
        "t at city: leaves out records with blocks.CITY 99: their blocks lie in no area of city",
    ]


@pytest.mark.slow
def test_topdown_takes_no_recode_with_a_hole(tmp_path: Path) -> None:
    examples = Path(__file__).parents[3] / "examples"
    told = tomllib.loads((examples / "country.toml").read_text())
    shutil.copy(examples / "country.csv", tmp_path)
    classes = told["recodes"]["age_group"]["classes"]
    del classes[next(iter(classes))]
    path = tmp_path / "country.json"
    for more, fault in (({}, "give them a class, or say incomplete = true"), ({"incomplete": True}, "in one class")):
        told["recodes"]["age_group"] |= more
        path.write_text(json.dumps(told))
        with pytest.raises(ConfigError, match=fault):
            PRODUCTS["topdown"].read(path)


def test_a_count_leaves_nobody_out(tmp_path: Path) -> None:
    # The last class is shorter, and who has no age has a class.
    (tmp_path / "people.csv").write_text("age,sex\n3,1\n115,2\n,1\n")
    out = str(tmp_path / "out")
    options = ["--by", "age:20:0-115:unknown,sex", "--domain", "sex=1,2", "--epsilon", "1", "--out", out]
    assert main(["count", str(tmp_path / "people.csv"), *options]) == 0
    assert left_out(TABLES.read(tmp_path / "out" / "manifest.json")) == []


def test_budgets_are_exact_in_the_world_of_holes(tmp_path: Path) -> None:
    told = json.loads(json.dumps(AGES))
    told["recodes"]["AGE"]["incomplete"] = True
    assert TABLES.plan(described(told, tmp_path)).loss() == Fraction(1)
