"""docs/architecture.md says what the contract of imports says, and names files that are there."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "src" / "yupana"


def rooms(line: str) -> set[str]:
    """The names of a floor, without what is said of it."""
    return set(re.findall(r"\w+", re.split(r"\s{2,}", line)[0]))


def test_the_picture_is_the_contract() -> None:
    (picture,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    (contract,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    drawn = [rooms(line) for line in picture.splitlines()]
    floors = contract["layers"]
    for floor in drawn:
        # A floor of the picture may be several layers of the contract, which stand beside each other there.
        layers = [rooms(layer) for layer in floors if rooms(layer) & floor]
        assert set().union(*layers) == floor
    assert [name for floor in floors for name in re.findall(r"\w+", floor)] == [
        name for line in picture.splitlines() for name in re.findall(r"\w+", re.split(r"\s{2,}", line)[0])
    ]
    assert set().union(*drawn) >= {
        path.stem for path in PACKAGE.iterdir() if path.stem[0] != "_" and path.suffix != ".typed"
    }


def test_files_that_it_names_are_there() -> None:
    named = {name for name in re.findall(r"`([\w/]+/[\w/]*(?:\.py)?)`", PAGE) if "OUT" not in name}
    assert named
    assert {name for name in named if not (PACKAGE / name).exists() and not (ROOT / name).exists()} == set()


def test_it_is_two_pages_long() -> None:
    assert len(PAGE.split()) <= 1300
