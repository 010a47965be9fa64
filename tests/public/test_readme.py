"""What the README says is so: its commands run as typed, in order, in an empty folder, and its links lead somewhere."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from places import ROOT

from yupana.cli.main import main
from yupana.files.columns import GEO, PERSONS, UNITS

README = (ROOT / "README.md").read_text(encoding="utf-8")


def commands() -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def test_every_command_is_tried() -> None:
    # A command that stands elsewhere would not be; those within sentences name commands, not work to do.
    assert len(commands()) > 12
    assert not re.findall(r"^ {4}yupana", README, re.MULTILINE)


@pytest.mark.thorough
def test_the_commands_run_as_typed_in_order_in_an_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in commands():
        program, *words = shlex.split(command)
        assert program == "yupana"
        assert main(words) == 0, f"{command}: {capsys.readouterr().err}"
    named = re.findall(r"`([a-z]+(?:/[a-z]+)?(?:\.[a-z]+)*\.(?:html|log|toml))`", README)
    assert len(named) == 5
    assert all((tmp_path / name).is_file() for name in named)


def test_the_extras_it_installs_are_there() -> None:
    (named,) = re.findall(r"pip install '\.\[(.*)\]'", README)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(named.split(",")) <= set(extras)


@pytest.mark.parametrize("page", ["README.md", "docs/README.md"])
def test_links_lead_somewhere(page: str) -> None:
    path = ROOT / page
    links = re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8"))
    assert len(links) > 5
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_the_index_names_every_page() -> None:
    text = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in (ROOT / "docs").glob("*.md") if f"({page.name})" not in text] == ["README.md"]


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.stem)
def test_every_page_is_of_one_kind_and_says_for_whom(page: Path) -> None:
    # The site is made by kind (docs/conf.py); a page without one would be in no list of pages.
    title, empty, line = page.read_text(encoding="utf-8").splitlines()[:3]
    assert title.startswith("# ")
    assert empty == ""
    assert page.name == "README.md" or re.match(r"\*(Tutorial|How-to|Reference|Explanation)\. For ", line), line


def test_it_fits_a_screen_and_a_half() -> None:
    assert len(README.splitlines()) <= 90
    assert len(README.split()) <= 800


def test_every_column_of_the_records_is_listed() -> None:
    text = (ROOT / "docs" / "phsafe.md").read_text(encoding="utf-8")
    listed = {name for row in re.findall(r"^\| ([A-Z0-9_, ]+) \|", text, re.MULTILINE) for name in row.split(", ")}
    assert {column.name for file in (PERSONS, UNITS, GEO) for column in file.columns} == listed
