"""Every command with a place of the wrong kind: the folder it is called in as OUT, or a file where a folder is read.

The commands are those of the parser itself, so that a new one without a case here fails.
"""

import argparse
import os
import socket
import time
from pathlib import Path
from typing import Final

import pytest

from yupana.cli.main import main, parser_of_all
from yupana.cli.parser import leaves
from yupana.products import PRODUCTS
from yupana.products.safetab.demonstration_parameters import write_parameters

LEAVES: Final = dict(leaves(parser_of_all()))
NOT_READ: Final = "not-read"
"""A name of nothing: whoever reads it before OUT is refused speaks of it."""

TEXTS: Final = {"households": "10", "by": "sex", "shell": "bash", "name": "x", "page": "tables"}
CODES: Final = "../../codes"
OF_DATA: Final = ("run", "exact", "accuracy", "validate")
OPTIONS: Final = {
    "count": ["--rho", "1", "--domain", "sex=1,2"],
    "interval": ["--area", "county=06001", "--query", "total"],
    "spine build": ["--kind", "optimized"],
    "count data": ["--rho", "1", "--domain", "sex=1,2", "--out", "new"],
    "audit epl": ["--exact", "a", "--noisy", "b"],
    "audit epl report": ["--mechanism", "geometric", "--epsilon", "1"],
    **{f"{product} {verb}": ["--codes", CODES] for product in ("safetab-p", "safetab-h") for verb in OF_DATA},
}
WRITES_FILE: Final = {
    *(("interval", "out"), ("report", "to"), ("spine report", "to")),
    *((words, name) for words in LEAVES for name in ("report", "log")),
    *((words, "out") for words in LEAVES if words.endswith((" strategy", " init"))),
}
WRITES_FOLDER: Final = {
    *((words, "out") for words in LEAVES if (words, "out") not in WRITES_FILE),
    ("atlas", "to"),
    *(("topdown run", name) for name in ("pl", "nmf", "noisy_measurements")),
}
FOLDERS: Final = (
    *("data", "release", "releases", "files", "codes", "parameters", "inputs", "puerto_rico", "counts", "truth"),
    *("noisy", "noisy_measurements", "nmf", "spine", "source", "other"),
)
"""What is read as a folder, where it is not written."""

FILES: Final = (
    *("config", "columns", "targets", "areas", "names", "geography", "totals", "reference", "policy"),
    *("entities", "plan", "individuals", "queries", "keys", "housing_units", "blocks", "boundaries", "beside"),
    "crosswalk",
    *("noisy_counts", "ledger", "topdown", "tables", "dictionary", "key", "signers"),
)
READS_FILE: Final = {("count", "data"), ("audit epl", "data")}
TABLES_TAKEN: Final = {"postprocess coterminous", "postprocess suppress", "interval", "check"}
"""What reads one table of a release, too."""


def arguments(words: str) -> list[argparse.Action]:
    """The arguments of a command that name places."""
    return [
        action
        for action in LEAVES[words]._actions
        if action.dest not in TEXTS
        and (
            action.type is Path
            or getattr(action.type, "__name__", "") == "place"
            or (not action.option_strings and action.choices is None)
        )
        and action.dest != "help"
    ]


def asked(words: str, places: dict[str, str]) -> list[str]:
    """A command line with these places, and nothing where another is needed."""
    line, product = words.split(), words.split(maxsplit=1)[0]
    for action in LEAVES[words]._actions:
        built_in = next(iter(PRODUCTS.listing(product).built_in)) if product in PRODUCTS else NOT_READ
        built_in = "s-dhc-2020-us" if words == "audit attribute" else built_in
        usual = (TEXTS | {"policy": "../../policy"}).get(action.dest, built_in if action.dest == "config" else NOT_READ)
        value = places.get(action.dest, next(iter(action.choices)) if action.choices else usual)
        if action.option_strings and (action.required or action.dest in places):
            line += [action.option_strings[-1], value]
        elif not action.option_strings and (action.nargs != "?" or action.dest in places):
            line.append(value)
    return line + OPTIONS.get(" ".join([words, *places]), OPTIONS.get(words, []))


def refused(line: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that a command ends with."""
    begun = time.process_time()
    assert main(line) == 2
    assert time.process_time() - begun < 10  # imports and all; none of this works
    *steps, told = capsys.readouterr().err.splitlines()
    assert told.startswith("yupana: ")
    assert all("yupana" not in step for step in steps)
    return told


@pytest.fixture(scope="module")
def codes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "codes"
    write_parameters(folder)
    return folder


@pytest.fixture
def here(tmp_path: Path, codes: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be called in, that must stay as it is."""
    folder = tmp_path / "around" / "here"
    folder.mkdir(parents=True)
    (folder / "kept.csv").write_text("a,b\n1,2\n")
    (tmp_path / "codes").symlink_to(codes)
    (tmp_path / "policy").write_text('[[rule]]\nrule = "negative"\ntables = ["T01001"]\nreason = "N"\n')
    monkeypatch.chdir(folder)
    return folder


def state(folder: Path) -> list[tuple[str, int, int]]:
    return [(str(path), path.lstat().st_ino, path.lstat().st_mtime_ns) for path in (folder, *sorted(folder.rglob("*")))]


def test_every_place_of_every_command_is_known() -> None:
    strange = {
        f"{words} {action.dest}"
        for words in LEAVES
        for action in arguments(words)
        if not {(words, action.dest)} & (WRITES_FILE | WRITES_FOLDER | READS_FILE)
        and action.dest not in (*FOLDERS, *FILES)
    }
    assert not strange


WRITTEN: Final = sorted(
    (words, action.dest)
    for words in LEAVES
    for action in arguments(words)
    if (words, action.dest) in WRITES_FILE | WRITES_FOLDER
)


@pytest.mark.sampled(20)
@pytest.mark.parametrize("place", [".", "..", "/"])
@pytest.mark.parametrize(("words", "name"), WRITTEN)
def test_no_command_writes_over_the_folder_it_is_called_in(
    words: str, name: str, place: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = state(here.parent)
    options = ["--overwrite"] if any(one.dest == "overwrite" for one in LEAVES[words]._actions) else []
    told = refused([*asked(words, {name: place}), *options], capsys)
    assert NOT_READ not in told
    assert "folder" in told or "exists" in told
    assert Path.cwd() == here
    assert state(here.parent) == before


@pytest.mark.sampled(6)
@pytest.mark.parametrize("words", sorted({words for words, name in WRITTEN if (words, name) in WRITES_FOLDER}))
def test_what_can_be_no_folder_is_refused_before_anything_is_read(
    words: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "link").symlink_to("link")
    before = state(here)
    for place in ("kept.csv", "kept.csv/x", "x" * 300, "link"):
        told = refused(asked(words, {"to" if words == "atlas" else "out": place}), capsys)
        assert NOT_READ not in told
        assert Path(place).parts[0] in told
    assert state(here) == before


READ: Final = sorted(
    (words, next(iter(names)))
    for words in LEAVES
    if (
        names := [
            action.dest
            for action in arguments(words)
            if not action.option_strings
            and action.dest != "config"
            and (words, action.dest) not in WRITES_FILE | WRITES_FOLDER
        ]
    )
)
"""The first place that each command reads, apart from a configuration."""


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("words", "name"), READ)
def test_what_is_read_and_of_another_kind_is_called_by_its_kind(
    words: str, name: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(here / "fifo")
    (here / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
    wants_file = (words, name) in READS_FILE or name in FILES
    takes_files = wants_file or words in TABLES_TAKEN
    wrong = {"fifo": "pipe", "socket": "socket", "/dev/null": "device"}
    wrong |= {"folder": "folder"} if wants_file else {}
    wrong |= {} if takes_files else {"kept.csv": "is a file"}
    for place, kind in wrong.items():
        told = refused(asked(words, {name: place}), capsys)
        assert place in told
        assert kind in told
        assert "exist" not in told
        assert "no such" not in told
    told = refused(asked(words, {name: "nothing"}), capsys)
    assert "nothing" in told
    assert "does not exist" in told or "no such file" in told.lower()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("words", sorted(words for words in LEAVES if words.endswith((" plan", " validate"))))
def test_a_configuration_of_another_kind_is_called_by_its_kind(
    words: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(here / "fifo")
    for place, kind in {"fifo": "pipe", "/dev/null": "device"}.items():
        told = refused(asked(words, {"config": place}), capsys)
        assert kind in told
        assert "exist" not in told
        assert "no such" not in told


@pytest.mark.parametrize(("words", "name"), WRITTEN + READ)
def test_an_empty_text_is_not_taken_for_the_folder_it_is_called_in(
    words: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(asked(words, {name: ""}))
    assert ended.value.code == 2
    assert "an empty text names no file or folder" in capsys.readouterr().err
