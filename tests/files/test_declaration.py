"""A declaration reads a document with all its faults at once, and says the same as JSON Schema."""

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from yupana.errors import ConfigError
from yupana.files.declaration import (
    BUDGET,
    FLAG,
    TEXT,
    choice,
    declared,
    exact,
    key,
    keyed,
    list_of,
    read_as,
    schema_of,
    table_of,
    whole,
)
from yupana.privacy.exact import INFINITE, Budget


@dataclass(frozen=True)
class Made:
    """A thing that is declared."""

    name: str = key(TEXT, "what it is called")
    rho: Budget = key(BUDGET)
    kind: str = key(choice("round", "square"), default="round")
    sizes: tuple[int, ...] = key(list_of(whole(1, 9), "a list of sizes", each=True), default=())
    parts: dict[str, Fraction] = key(table_of(exact(lambda part: part < 1, "must be below 1")), default={})
    from_: str | dict[str, bool] = key(TEXT | keyed({"all": FLAG}), default="")


GOOD: dict[str, Any] = {"name": "a", "rho": "1/3", "sizes": [1, 2], "parts": {"x": 0.1}, "from": {"all": True}}
WRONG: list[tuple[dict[str, Any], list[str]]] = [
    ({"nmae": "b"}, ["key 'nmae' is unknown; known are name, rho, kind, sizes, parts, from; did you mean name?"]),
    ({"name": 7}, ["name: must be a text of one line"]),
    ({"rho": -1}, ["rho: must not be negative"]),
    ({"rho": "1e-16"}, ["rho: must be 0, Infinity, or between"]),
    ({"rho": None}, ["rho: must be a number, or a fraction as a text 'p/q'"]),
    ({"kind": "squre"}, ["kind: must be 'round' or 'square'; did you mean square?"]),
    ({"sizes": [1, 10, "2", 2.5]}, [f"sizes[{i}]: must be a whole number from 1 to 9" for i in (1, 2, 3)]),
    ({"sizes": {}}, ["sizes: must be a list of sizes"]),
    ({"parts": {"x": 1, "y": "z", "w": 0}}, ["parts.x: must be below 1", "parts.y: not an exact number"]),
    ({"from": 3}, ["from: must be a text of one line, or a table of all"]),
    ({"from": {"all": 1}}, ["from.all: must be true or false"]),
    ({"from": {}}, ["from: key 'all' is missing"]),
]


def read(path: Path, document: object) -> Made:
    path.write_text(json.dumps(document), encoding="utf-8")
    return read_as(path, declared(Made))


def test_what_is_declared_is_read_without_rounding(tmp_path: Path) -> None:
    made = read(tmp_path / "x.json", GOOD)
    assert made == Made("a", Fraction(1, 3), "round", (1, 2), {"x": Fraction(1, 10)}, {"all": True})
    assert read(tmp_path / "x.json", {"name": "a", "rho": "Infinity"}) == Made("a", INFINITE, "round", (), {}, "")


@pytest.mark.parametrize(("change", "told"), WRONG)
def test_a_fault_is_named_by_its_place(change: dict[str, Any], told: list[str], tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        read(tmp_path / "x.json", GOOD | change)
    _, *lines = str(refused.value).splitlines()
    assert len(lines) == len(told)
    assert all(line.startswith(f"  {fault}") for line, fault in zip(lines, told, strict=True))


def test_all_faults_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        read(tmp_path / "x.json", {"nmae": 1, "rho": "x", "sizes": [0], "from": 3})
    for told in ("'name' is missing", "'nmae' is unknown", "rho: not an exact", "sizes[0]: must", "from: must be"):
        assert told in str(refused.value)


def test_the_rest_is_made_where_that_is_asked_for() -> None:
    faults: list[str] = []
    made = declared(Made, partial=True).read("", {"name": "a", "rho": [], "kind": 3}, faults)
    assert made is not None
    assert (made.name, made.rho, made.kind) == ("a", None, "round")
    assert len(faults) == 2
    assert declared(Made).read("", {"name": "a", "rho": []}, []) is None


def test_the_schema_says_the_same(tmp_path: Path) -> None:
    schema = schema_of("things", declared(Made))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(GOOD, schema)
    assert schema["description"] == "A thing that is declared."
    assert schema["properties"]["name"]["description"] == "what it is called"
    assert schema["required"] == ["name", "rho"]
    for change, _ in WRONG:
        if not jsonschema.Draft202012Validator(schema).is_valid(GOOD | change):
            with pytest.raises(ConfigError):
                read(tmp_path / "x.json", GOOD | change)


TOML = """name = "a"
rho = 1
sizes = [1]
mood = 2

[parts]
# a half
x = "1/2"
y = 3
[from]
all = 0
"""
JSON = """{
"name": "a:{",
"rho": 1,
"sizes": [
1,
0
],
"parts": {"x": 0.5,
"y": 3}, "from": {
"all": 0}}
"""


@pytest.mark.parametrize(("name", "text", "lines"), [("x.toml", TOML, (4, 9, 11)), ("x.json", JSON, (6, 9, 10))])
def test_lines_are_told_of_toml_and_of_json(name: str, text: str, lines: tuple[int, ...], tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        read_as(tmp_path / name, declared(Made))
    told = [line.strip().partition(":")[0] for line in str(refused.value).splitlines()[1:]]
    assert told == [f"line {number}" for number in lines]
