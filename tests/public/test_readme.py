"""What the README says is so: its commands run as typed, in order, in an empty folder, and its links lead somewhere."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from places import ROOT

from yupana.cli.main import main

README = (ROOT / "README.md").read_text(encoding="utf-8")


TUTORIALS = sorted((ROOT / "docs").glob("tutorial-*.md"))


def work(page: str) -> list[tuple[str, str]]:
    """What a page has its reader do, in order: lines of a console, programs in Python, and files to save."""
    blocks = re.findall(r"```(console|python|toml)\n(.*?)```", page, re.DOTALL)
    return [(kind, one) for kind, text in blocks for one in (text.splitlines() if kind == "console" else [text])]


def follow(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(folder)
    for kind, text in work(page):
        if kind == "toml":
            (name,) = re.findall(r"Save these lines as `(.*?)`", page)
            (folder / name).write_text(text)
        elif kind == "python":
            exec(text, {})  # noqa: S102 (as a reader runs it)
        else:
            program, *words = shlex.split(text)
            assert program == "yupana"
            assert main(words) == 0, f"{text}: {capsys.readouterr().err}"
    named = re.findall(r"`([a-z]+(?:/[a-z]+)?(?:\.[a-z]+)*\.(?:html|log|toml))`", page)
    assert [name for name in named if not (folder / name).is_file()] == []


def test_every_command_is_tried() -> None:
    # A command that stands elsewhere would not be; those within sentences name commands, not work to do.
    assert len(work(README)) > 9
    assert len(TUTORIALS) == 4
    for page in (README, *(path.read_text(encoding="utf-8") for path in TUTORIALS)):
        assert work(page)
        assert not re.findall(r"^ {4}yupana", page, re.MULTILINE)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(path, id=path.stem, marks=() if path.stem == "tutorial-committee" else pytest.mark.thorough)
        for path in (ROOT / "README.md", *TUTORIALS)
    ],
)
def test_a_page_runs_as_typed_in_order_in_an_empty_folder(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    follow(page.read_text(encoding="utf-8"), tmp_path, monkeypatch, capsys)


def test_the_extras_it_installs_are_there() -> None:
    (named,) = re.findall(r"pip install '\.\[(.*)\]'", README)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(named.split(",")) <= set(extras)


PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "benchmarks/README.md"])


def anchors(page: Path) -> set[str]:
    """Where a link may lead within a page: its headings, as readers of Markdown name them."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = (re.sub(r"\]\([^)]*\)|[`*\[]", "", one) for one in re.findall(r"^#+ (.*)$", text, re.MULTILINE))
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^):#]*)(?:#([^)]+))?\)", page.read_text(encoding="utf-8"))
    for name, anchor in links:
        there = (page.parent / name).resolve() if name else page
        assert there.exists(), name
        assert not anchor or anchor in anchors(there), f"{name}#{anchor}"


@pytest.mark.slow
def test_messages_and_docstrings_name_pages_that_exist() -> None:
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    named = {found for text in texts for found in re.findall(r"docs/([a-z-]+\.md)", text)}
    assert len(named) > 30
    assert {name for name in named if not (ROOT / "docs" / name).is_file()} == set()


def test_the_index_names_every_page() -> None:
    text = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    docs = ROOT / "docs"
    pages = [
        path.relative_to(docs).as_posix() for pattern in ("*.md", "notebooks/*.ipynb") for path in docs.glob(pattern)
    ]
    assert [page for page in pages if f"({page})" not in text] == ["README.md"]


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
