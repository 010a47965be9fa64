"""Runs that are killed and go on: with their own draws, charged once, and never with a damaged checkpoint."""

import hashlib
import io
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from topdown_worlds import configuration, make_world, write_configuration, write_world

from yupana.cli.main import main
from yupana.confidential import resumption
from yupana.plan.account import charge_account
from yupana.release.checkpoint import Checkpoint
from yupana.topdown.descent import descend
from yupana.topdown.descent.checkpoint import BatchCheckpoint


def arguments(tmp_path: Path, *options: str) -> list[str]:
    """A run of a small world, without a seed."""
    data, config = tmp_path / "data", tmp_path / "config.json"
    if not data.exists():
        write_world(make_world(6, (3, 2)), data)
        write_configuration(configuration((3, 2), rho="1/2"), config)
    return ["topdown", "run", str(config), str(data), str(tmp_path / "out"), "--intervals", "none", *options]


def killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *options: str, level: int = 3, later: bool = False) -> None:
    """Let a run die by a signal as soon as measurements of a geolevel are on disk: the first, or later ones."""
    line = arguments(tmp_path, *options)
    child = os.fork()
    if not child:
        drawn = BatchCheckpoint.save_draws

        def die(self: BatchCheckpoint, of_level: int, first: int, *more: Any) -> Any:  # noqa: ANN401
            values = drawn(self, of_level, first, *more)
            if of_level == level and (first > 0) == later:
                os.kill(os.getpid(), signal.SIGKILL)
            return values

        monkeypatch.setattr(BatchCheckpoint, "save_draws", die)
        main(line)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL


def kept(folder: Path) -> dict[str, str]:
    """The digest of every file of draws and of counts."""
    files = (path for path in folder.iterdir() if path.suffix in {".measured", ".counts"})
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


ESTIMATED = ["1-0", "2-0", "3-0", "4-0", "5-0", "2-1", "3-1", "4-1", "5-1"]
"""The geolevels in the order in which a run of two states estimates them, with the state they are of."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("place", range(len(ESTIMATED)))
@pytest.mark.parametrize("more", [(), ("--intervals", "monte-carlo", "--replicates", "2")])
@pytest.mark.slow
def test_a_run_that_is_killed_in_any_state_goes_on_with_its_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...], place: int
) -> None:
    """Without a seed: each attempt would draw other noise. It is charged once."""
    monkeypatch.setattr(descend, "_UNITS_OF_A_RUN", 1)
    level, state = map(int, ESTIMATED[place].split("-"))
    account = ("--ledger", str(tmp_path / "ledger.json"), "--dataset", "a", "--limit", "1")
    killed(tmp_path, monkeypatch, *more, *account, level=level, later=state > 0)
    before = kept(tmp_path / "out.checkpoint")
    # The root and what follows in that order is drawn, and what was drawn before the last is estimated.
    assert [name[-9:] for name in before].count(".measured") == 2 + place
    assert [name[-7:] for name in before].count(".counts") == 1 + place
    after: dict[str, str] = {}
    remove = Checkpoint.remove
    monkeypatch.setattr(Checkpoint, "remove", lambda self: (after.update(kept(self.folder)), remove(self))[1])
    assert main(arguments(tmp_path, *more, *account, "--resume")) == 0
    assert after.items() >= before.items()
    assert len(after) == 2 * (1 + len(ESTIMATED))
    assert len(charges(tmp_path / "ledger.json")) == 1
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["status"] == "noisy measurements under the plan"


@pytest.mark.slow
def test_a_run_whose_batches_were_cut_otherwise_does_not_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As by another version: what was kept of a batch would be taken for that of another."""
    with monkeypatch.context() as other:
        other.setattr(descend, "_UNITS_OF_A_RUN", 1)
        killed(tmp_path, other, level=4, later=False)
    assert main(arguments(tmp_path, "--resume")) == 2
    assert "of a run that another version began; begin anew with --overwrite" in capsys.readouterr().err
    assert main(arguments(tmp_path, "--overwrite")) == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("more", [("--estimator", "full-information"), ("--intervals", "least-squares")])
@pytest.mark.slow
def test_a_run_that_is_killed_while_it_draws_everything_goes_on_with_its_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    killed(tmp_path, monkeypatch, *more)
    before = kept(tmp_path / "out.checkpoint")
    assert len(before) == 4
    after: dict[str, str] = {}
    remove = Checkpoint.remove
    monkeypatch.setattr(Checkpoint, "remove", lambda self: (after.update(kept(self.folder)), remove(self))[1])
    assert main(arguments(tmp_path, *more, "--resume")) == 0
    assert after.items() >= before.items()
    assert len([name for name in after if name.endswith(".measured")]) == 6
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["status"] == "noisy measurements under the plan"


@pytest.mark.slow
def test_files_of_areas_of_one_name_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of other kinds and in other folders: a change of either is seen, and what both are called does not change."""
    files = [tmp_path / kind / "areas.csv" for kind in ("zone", "ward")]
    blocks = make_world(6, (3, 2)).blocks
    for path in files:
        path.parent.mkdir()
        path.write_text(f"block,{path.parent.name}\n" + "".join(f"{block},{block[-1]}\n" for block in blocks))
    options = [text for path in files for text in ("--areas", str(path))]
    killed(tmp_path, monkeypatch, *options)
    for path, name in zip(files, ("areas/areas.csv", "areas/areas.csv (2)"), strict=True):
        before = path.read_text()
        path.write_text(before.replace(f"{blocks[0]},{blocks[0][-1]}", f"{blocks[0]},other"))
        assert path.read_text() != before
        capsys.readouterr()
        assert main(arguments(tmp_path, *options, "--resume")) == 2
        assert f"changed: input {name}. Put it back" in capsys.readouterr().err
        path.write_text(before)
    assert main(arguments(tmp_path, *options, "--resume")) == 0
    told = json.loads((tmp_path / "out" / "manifest.json").read_text())["public_inputs"]
    assert {"areas/areas.csv", "areas/areas.csv (2)"} <= told.keys()


def charges(path: Path) -> list[str]:
    ledger = json.loads(path.read_text()) if path.exists() else {"data": {}}
    return [run["losses"]["own"] for account in ledger["data"].values() for run in account["runs"]]


@pytest.mark.slow
def test_a_run_that_was_begun_without_a_ledger_is_charged_when_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = tmp_path / "ledger.json"
    killed(tmp_path, monkeypatch)
    account = ["--ledger", str(ledger), "--dataset", "D"]
    assert main(arguments(tmp_path, "--resume", *account, "--limit", "1/1000")) == 2
    assert "past its limit" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert charges(ledger) == []
    assert main(arguments(tmp_path, "--resume", *account, "--limit", "1")) == 0
    assert charges(ledger) == ["1/2"]


@pytest.mark.slow
def test_a_charged_run_goes_on_with_its_account_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger, other = tmp_path / "ledger.json", tmp_path / "other.json"
    link = tmp_path / "link.json"
    link.symlink_to(ledger)
    killed(tmp_path, monkeypatch, "--ledger", str(ledger), "--dataset", "D", "--limit", "3")
    for changed, named in (
        (("--ledger", str(other), "--dataset", "D"), "--ledger"),
        (("--ledger", str(ledger), "--dataset", "E"), "--dataset"),
        (("--ledger", str(ledger), "--dataset", "D", "--limit", "4"), "--limit"),
        (("--ledger", str(ledger), "--dataset", "D", "--unit", "person"), "--unit, --household-cap"),
    ):
        assert main(arguments(tmp_path, "--resume", *changed)) == 2
        assert f"differs in {named}." in capsys.readouterr().err
    assert charges(other) == []
    killed(tmp_path, monkeypatch, "--resume", level=4)
    assert main(arguments(tmp_path, "--resume", "--ledger", str(link), "--dataset", "D")) == 0
    assert charges(ledger) == ["1/2"]


@pytest.mark.slow
def test_a_run_begun_anew_is_charged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = tmp_path / "ledger.json"
    account = ("--ledger", str(ledger), "--dataset", "D")
    killed(tmp_path, monkeypatch, *account)
    assert main(arguments(tmp_path, *account)) == 2
    assert charges(ledger) == ["1/2"]
    assert main(arguments(tmp_path, *account, "--overwrite")) == 0
    assert charges(ledger) == ["1/2", "1/2"]


@pytest.mark.parametrize(
    ("begun", "charged"),
    [
        (False, True),
        (True, False),
        pytest.param(False, False, marks=pytest.mark.thorough),
        pytest.param(True, True, marks=pytest.mark.thorough),
    ],
)
@pytest.mark.slow
def test_a_death_beside_the_charge_neither_loses_nor_doubles_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, begun: bool, charged: bool
) -> None:
    """Just before the ledger is written, or between that and the note of it; of a new run, or one that goes on."""
    ledger = tmp_path / "ledger.json"
    account = ("--ledger", str(ledger), "--dataset", "D", "--limit", "1/2")
    if begun:
        killed(tmp_path, monkeypatch)

    def die(*given: Any, **named: Any) -> None:  # noqa: ANN401
        if charged:
            charge_account(*given, **named)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(resumption, "charge_account", die)
        assert main(arguments(tmp_path, *account, *(["--resume"] if begun else []))) == 2
    assert charges(ledger) == ["1/2"] * charged
    capsys.readouterr()
    assert main(arguments(tmp_path, "--resume")) == 2
    assert "was stopped while it was charged" in capsys.readouterr().err
    assert main(arguments(tmp_path, *account, "--resume")) == 0
    assert charges(ledger) == ["1/2"]


@pytest.mark.slow
def test_a_folder_is_drawn_for_once_whatever_it_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "link").symlink_to("out")
    killed(tmp_path, monkeypatch)
    line = arguments(tmp_path)
    line[line.index(str(tmp_path / "out"))] = str(tmp_path / "link")
    assert main(line) == 2
    assert "holds noisy counts of an interrupted run" in capsys.readouterr().err
    assert main([*line, "--resume"]) == 0
    assert (tmp_path / "out" / "manifest.json").exists()


def test_a_run_does_not_write_over_the_folder_it_stands_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = arguments(tmp_path)
    line[line.index(str(tmp_path / "out"))] = "."
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "out")
    assert main(line) == 2
    assert "is the current folder" in capsys.readouterr().err
    assert not any((tmp_path / "out").iterdir())


@pytest.mark.parametrize("more", [(), ("--overwrite",)])
def test_what_no_run_left_is_never_removed(
    tmp_path: Path, more: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, ledger = tmp_path / "out.checkpoint", tmp_path / "ledger.json"
    folder.mkdir()
    (folder / "persons.csv").write_text("precious")
    assert main(arguments(tmp_path, *more, "--ledger", str(ledger), "--dataset", "x")) == 2
    assert "out.checkpoint" in capsys.readouterr().err
    assert (folder / "persons.csv").read_text() == "precious"
    assert charges(ledger) == []


@pytest.mark.parametrize("place", ["out", "out.partial", "out.checkpoint"])
def test_neither_ledger_nor_measurements_lie_where_a_run_replaces_or_removes(
    tmp_path: Path, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "manifest.json").write_text('{"yupana": "0"}')
    (tmp_path / place).mkdir(exist_ok=True)
    ledger = tmp_path / place / "ledger.json"
    assert main(arguments(tmp_path, "--overwrite", "--ledger", str(ledger), "--dataset", "D")) == 2
    assert "the ledger" in capsys.readouterr().err
    assert main(arguments(tmp_path, "--overwrite", "--noisy-measurements", str(tmp_path / place / "noisy"))) == 2
    assert "name a folder of its own" in capsys.readouterr().err
    assert not ledger.exists()


def test_records_in_the_folder_that_a_run_replaces_are_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = arguments(tmp_path, "--overwrite")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "manifest.json").write_text('{"yupana": "0"}')
    data = (tmp_path / "data").rename(tmp_path / "out" / "data")
    line[3] = str(data)
    without = [word for word in line if word not in {"--intervals", "none"}]  # exact counts have none
    for words in (line, [line[0], "exact", *without[2:]]):
        assert main(words) == 2
        assert "which is to be read" in capsys.readouterr().err
    assert (data / "histogram.csv").exists()


def test_room_is_taken_before_anything_is_drawn(tmp_path: Path) -> None:
    """Draws that need more bytes must not die of a full disk where others would not."""
    checkpoint = BatchCheckpoint(tmp_path / "out.checkpoint")
    checkpoint.begin({})
    sizes = []

    def draw() -> list[np.ndarray]:
        sizes.append((checkpoint.folder / "01-000000000.partial").stat().st_size)
        return [np.array([1, -(2**62), 3]), np.arange(5)]

    checkpoint.save_draws(1, 0, [(3,), (5,)], draw)
    assert (checkpoint.folder / "01-000000000.measured").stat().st_size <= sizes[0]
    kept = checkpoint.load_draws(1, 0, [(3,), (5,)])
    assert kept is not None
    assert [one.tolist() for one in kept] == [[1, -(2**62), 3], [0, 1, 2, 3, 4]]


def sealed(payload: bytes) -> bytes:
    return hashlib.sha256(payload).digest() + payload


def arrays(**columns: Any) -> bytes:  # noqa: ANN401
    buffer = io.BytesIO()
    np.savez(buffer, **columns)
    return sealed(buffer.getvalue())


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


WHOLE: dict[str, Callable[[Path], object]] = {
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-9]),
    "pipe": fifo,
    "folder": folder,
}
STATE = WHOLE | {
    "empty": lambda path: path.write_bytes(b""),
    "nested": lambda path: path.write_text("[" * 100_000),
    "a list": lambda path: path.write_text("[]"),
    "an account of another kind": lambda path: path.write_text(path.read_text().replace("null", "5")),
    "nothing of its beginning": lambda path: path.write_text(path.read_text().replace("begun", "begins")),
}
ARRAYS = WHOLE | {
    "no arrays": lambda path: path.write_bytes(sealed(b"not arrays at all")),
    "one array": lambda path: path.write_bytes(sealed(b"\x93NUMPY\x01\x00")),
    "no array": lambda path: path.write_bytes(sealed(b"PK\x05\x06" + bytes(18))),
    "other arrays": lambda path: path.write_bytes(arrays(a=np.arange(3))),
    "other numbers": lambda path: path.write_bytes(arrays(**{"0": np.arange(3), "1": np.arange(2), "2": np.arange(1)})),
}
DAMAGED = {
    "run.json": ("topdown", STATE),
    "02-000000000.counts": ("topdown", ARRAYS),
    "03-000000000.measured": ("topdown", ARRAYS),
    "00-000000000.measured": ("full-information", ARRAYS),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.slow
def test_a_damaged_checkpoint_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    estimator, ways = DAMAGED[name]
    killed(tmp_path, monkeypatch, "--estimator", estimator)
    path = tmp_path / "out.checkpoint" / name
    content = path.read_bytes()
    for way, damage in ways.items():
        damage(path)
        capsys.readouterr()
        assert main(arguments(tmp_path, "--estimator", estimator, "--resume")) == 2, way
        assert name in capsys.readouterr().err, way
        path.rmdir() if path.is_dir() else path.unlink()
        path.write_bytes(content)
    assert main(arguments(tmp_path, "--estimator", estimator, "--resume")) == 0
