"""`yupana report`: a page on a release that is there, the same that `run --report` writes."""

import re
from pathlib import Path

import pytest

from yupana.cli.main import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    assert main(["synth", str(folder / "census"), "--households", "60", "--states", "44", "--seed", "1"]) == 0
    run = ["phsafe", "run", "s-dhc-2020-us", str(folder / "census"), str(folder / "release"), "--seed", "1"]
    assert main([*run, "--report", str(folder / "run.html")]) == 0
    return folder


def words(page: Path) -> str:
    """What a page says; names within its pictures may differ."""
    return re.sub(r"<svg.*?</svg>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.thorough
def test_the_page_is_that_of_the_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = folder / "release.html"
    assert main(["report", str(folder / "release"), str(page)]) == 0
    assert capsys.readouterr().out == f"{page}\n"
    assert words(page) == words(folder / "run.html")


@pytest.mark.parametrize(
    ("release", "page", "told"),
    [
        ("nowhere", "page.html", "does not exist"),
        ("census", "page.html", "manifest.json"),
        ("release", "release/page.html", "would lie in"),
        ("release", "page.pdf", "let its name end in .html"),
    ],
)
@pytest.mark.thorough
def test_what_is_no_release_or_no_place_is_refused(
    release: str, page: str, told: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(folder / release), str(folder / page)]) == 2
    assert told in capsys.readouterr().err
    assert not (folder / page).exists()
