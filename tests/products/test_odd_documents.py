"""Whatever stands at any place of a document is read or refused in words; so are parameter files without rows."""

import copy
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from yupana.errors import ConfigError
from yupana.estimate.suppression import read_policy
from yupana.files.document import Number, read_document
from yupana.products import PRODUCTS
from yupana.products.safetab.configuration import read_config
from yupana.products.safetab.demonstration_parameters import write_parameters
from yupana.products.safetab.iterations import PARAMETER_FILES
from yupana.products.safetab.product import HOUSEHOLDS, PERSONS
from yupana.products.safetab.specification import QUESTIONS

ODD: tuple[Any, ...] = (
    *([["a"], "b"], [], [[]], [{}], ["a", "a"], [1, [2, [3]]], {}, {"a": {"b": []}}, {"": 1}),
    *(5, -1, 1.5, 10**30, True, None, "", "x", "\x1b[2J", "a" * 3000),
)
"""What is put in every place: most of it of another kind than what stood there."""

DEEP = "[" * 3000 + "]" * 3000


def plain(value: object) -> Any:  # noqa: ANN401 (a document)
    """A document with numbers as JSON writes them."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return float(value) if isinstance(value, Number) else value


def places(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place below the root."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def spoiled(document: Any, path: tuple[Any, ...], odd: object) -> Any:  # noqa: ANN401 (documents)
    """A document with something else in one place."""
    found = copy.deepcopy(document)
    inner = found
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = odd
    return found


def planned(key: str, path: Path) -> None:
    if key in QUESTIONS:
        read_config(key, path)
        return
    PRODUCTS[key].plan(PRODUCTS[key].read(path))


@pytest.mark.parametrize(
    ("key", "name"),
    [
        *(("tables", name) for name in ("people-and-homes", "s-dhc-2020-us", "ddhc-a-2020-us")),
        *(("topdown", name) for name in ("pl94-2020-us", "cook-2010", "pl94-2020-us-whole")),
        *(("phsafe", "s-dhc-2020-us"), ("safetab-p", "ddhc-2020-us"), ("safetab-h", "ddhc-2020-us")),
    ],
)
@pytest.mark.parametrize("tries", [80, pytest.param(160, marks=pytest.mark.thorough)])
@pytest.mark.thorough
def test_anything_in_any_place_is_read_or_refused(key: str, name: str, tries: int, tmp_path: Path) -> None:
    document = plain(read_document(PRODUCTS[key].locate(name))[0])
    chance = random.Random(name)  # noqa: S311 (the same places every time)
    every = list(places(document))
    path = tmp_path / "document.json"
    for _ in range(tries):
        path.write_text(json.dumps(spoiled(document, chance.choice(every), chance.choice(ODD))), encoding="utf-8")
        try:
            planned(key, path)
        except ConfigError as refused:
            assert str(path) in str(refused) or "part" in str(refused)  # noqa: PT017 (some are read)
    path.write_text(f'{{"a": {DEEP}}}')
    with pytest.raises(ConfigError, match="nested too deeply"):
        planned(key, path)


def test_anything_in_a_policy_is_read_or_refused(tmp_path: Path) -> None:
    rule = {"rule": "alone-exceeds-combination", "tables": ["T01001"], "reason": "a", "suppress": "alone"}
    document = {"parameters": "p", "rule": [rule, {**rule, "rule": "negative"}]}
    path = tmp_path / "policy.json"
    for place in places(document):
        for odd in ODD:
            path.write_text(json.dumps(spoiled(document, place, odd)))
            try:
                read_policy(path)
            except ConfigError as refused:
                assert str(path) in str(refused)  # noqa: PT017 (some are read)
    toml = tmp_path / "policy.toml"
    toml.write_text(f"x = {DEEP}")
    with pytest.raises(ConfigError, match="nested too deeply"):
        read_policy(toml)


@pytest.mark.parametrize("read", [PERSONS.read, HOUSEHOLDS.read])
@pytest.mark.parametrize("file", PARAMETER_FILES)
@pytest.mark.slow
def test_parameter_files_without_rows_are_read_or_refused(
    read: Callable[[Path], Any], file: str, tmp_path: Path
) -> None:
    write_parameters(tmp_path / "p")
    path = tmp_path / "p" / file
    header = path.read_text(encoding="utf-8-sig").splitlines()[0]
    for content in (f"{header}\n", "", "\n\n"):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(ConfigError, match=r"(?s)cannot be used.*\.txt"):
            read(tmp_path / "p")
