"""The notebooks run from top to bottom, write nothing beside themselves, and are kept without results."""

import asyncio
import json
import re
import warnings
from pathlib import Path

import pytest
from places import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
QUICK = "survey"
"""The one that every `make test` runs."""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_results_and_is_short(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    book = json.loads(text)
    assert text == json.dumps(book, indent=1, ensure_ascii=False) + "\n"
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)  # from here on cells have ids
    cells = book["cells"]
    names = [cell["id"] for cell in cells]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z-]+", name) for name in names), "name a cell by what it does, which stays"
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert all(cell["metadata"] == {} for cell in cells)
    assert len(cells) <= 20
    prose = " ".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    assert len(prose.split()) <= 300
    assert "import yupana\n" in text.replace("\\n", "\n")


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.stem, marks=() if path.stem == QUICK else pytest.mark.thorough) for path in NOTEBOOKS],
)
@pytest.mark.thorough
def test_a_notebook_runs_and_leaves_nothing(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the server of notebooks, which is not ours
        import nbformat  # noqa: PLC0415 (only here)
        from nbclient import NotebookClient  # noqa: PLC0415

        monkeypatch.setenv("MATPLOTLIBRC", str(path.parent / "matplotlibrc"))
        scratch, folder = tmp_path / "scratch", tmp_path / "here"
        scratch.mkdir()
        folder.mkdir()
        monkeypatch.setenv("TMPDIR", str(scratch))
        book = nbformat.read(path, as_version=4)
        client = NotebookClient(book, timeout=120, resources={"metadata": {"path": str(folder)}})
        asyncio.run(client.async_execute())
    shown = [one for cell in book.cells for one in cell.get("outputs", []) if "data" in one]
    assert [one for one in shown if "image/png" in one["data"]]
    assert not list(folder.iterdir())
    assert not [one for one in scratch.iterdir() if not one.name.startswith("yupana-scratch-")]
