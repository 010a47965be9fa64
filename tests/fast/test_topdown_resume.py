"""Runs that die and go on: the law of what is released, what the ledger is charged, and damaged checkpoints."""

import hashlib
import io
import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare
from test_topdown_failsafe import CASES, document_of, world_of
from topdown_worlds import LEVELS, World, configuration, make_world, write_configuration, write_world

from hollerith.cli.main import main
from hollerith.privacy.entropy import SeededEntropy
from hollerith.privacy.laws import DiscreteGaussian
from hollerith.products.topdown import estimate as estimating
from hollerith.products.topdown import run as run_module
from hollerith.products.topdown.estimate import Options, estimate
from hollerith.products.topdown.world import World as Opened
from hollerith.products.topdown.world import open_world
from hollerith.stages import Stopwatch
from hollerith.topdown import descend
from hollerith.topdown.checkpoint import Checkpoint
from hollerith.topdown.configuration import Configuration
from hollerith.topdown.descend import Descent
from hollerith.topdown.histogram import Histogram
from hollerith.topdown.read_configuration import read_configuration

SHAPE = (2,)
TRUE = {"0100100000111000": (60, 40), "0100100000111001": (50, 70)}
"""So many in each cell that no noise makes a count negative: the root's counts are its noisy answers."""


class DiedError(BaseException):
    """Stands for the death of a process."""


def opened(folder: Path, world: World, document: dict[str, Any], *, quarters: bool = False) -> tuple[Any, Opened]:
    data = write_world(world, folder / "data", quarters=quarters)
    found = read_configuration(write_configuration(document, folder / "config.json"))
    return found, open_world(found, data, None, Stopwatch(lambda _: None))


@pytest.fixture(scope="module")
def two_blocks(tmp_path_factory: pytest.TempPathFactory) -> tuple[Configuration, Opened]:
    world = World(SHAPE, list(TRUE), [("9999", "00001", "00001")] * 2)
    world.counts = {(block, cell): count for block, counts in TRUE.items() for cell, count in enumerate(counts)}
    document = configuration(
        SHAPE,
        rho="1",
        invariants={},
        shares={"US": "1/2", "Block": "1/2"},
        queries={"US": {"detailed": 1}, "Block": {"detailed": 1}},
    )
    return opened(tmp_path_factory.mktemp("two"), world, document)


Chosen = Callable[[Histogram], bool]
"""Whether a solver dies of what it has made."""


def released(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    of: tuple[Configuration, Opened],
    seed: int,
    options: Options,
    faults: dict[str, Chosen],
) -> tuple[tuple[bytes, ...], Descent]:
    """What a run ends with whose solvers, at their first attempt, die where they are told to.

    Every attempt has noise of its own. Faults are "root", "parents" and "failsafe".
    """
    tried_before: set[str] = set()

    def mortal(name: str, solve: Callable[..., Any], counts: Callable[[Any], Any]) -> Callable[..., Any]:
        def tried(*arguments: Any) -> Any:  # noqa: ANN401
            made = solve(*arguments)
            first = name not in tried_before
            tried_before.add(name)
            if first and name in faults and faults[name](counts(made)):
                raise DiedError
            return made

        return tried

    checkpoint = Checkpoint(folder / f"{seed} {len(faults)}")
    checkpoint.begin({})
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        patch.setattr(estimating, "estimate_root", mortal("root", estimating.estimate_root, lambda made: made.counts))
        patch.setattr(descend, "divide", mortal("parents", descend.divide, lambda made: made.counts))
        patch.setattr(descend, "divide_failsafe", mortal("failsafe", descend.divide_failsafe, lambda made: made.counts))
        for attempt in range(5):
            try:
                source = SeededEntropy(1000 * seed + attempt)
                found = estimate(*of, options, checkpoint, source, Stopwatch(lambda _: None), lambda *_: None)
            except DiedError:
                continue
            checkpoint.remove()
            made = found.descent.counts
            return tuple(one.counts.tobytes() + one.cells.tobytes() for one in made), found.descent
    raise AssertionError("it never came to an end")


def chance(seen: Counter[int], mean: int) -> float:
    """The chi-square probability of values of a discrete Gaussian of variance parameter 2, its tails put together."""
    law = DiscreteGaussian(Fraction(2))
    support = range(-3, 4)
    probability = [law.pmf(k) for k in support]
    number = sum(seen.values())
    inside = [seen[mean + k] for k in support]
    return float(
        chisquare(
            [*inside, number - sum(inside)], [*(number * p for p in probability), number * (1 - sum(probability))]
        ).pvalue
    )


TOPDOWN, FULL = Options(), Options("full-information")
STORED = Options(noisy_measurements=Path("anywhere"))
WAYS = {"topdown": TOPDOWN, "full information": FULL, "all drawn beforehand": STORED}


def few(counts: Any) -> bool:  # noqa: ANN401
    """Whether fewer are counted in the first cell of the root than there are."""
    return bool(counts.counts[0] < 110)


def uneven(counts: Any) -> bool:  # noqa: ANN401
    """Whether the first block got more of the second cell than the other, which has more."""
    return bool(counts[0, 1] > counts[1, 1] - 30)


def drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """What resuming did before draws were kept."""
    monkeypatch.setattr(Checkpoint, "load_draws", lambda *_: None)


def law_of_the_root(monkeypatch: pytest.MonkeyPatch, folder: Path, of: Any) -> float:  # noqa: ANN401
    seen = Counter(
        int(released(monkeypatch, folder, of, seed, TOPDOWN, {"root": few})[1].counts[0].counts[0])
        for seed in range(300)
    )
    return chance(seen, 110)


def test_a_solver_that_dies_of_its_noise_does_not_choose_among_draws(
    tmp_path: Path, two_blocks: tuple[Configuration, Opened], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert law_of_the_root(monkeypatch, tmp_path, two_blocks) > 0.01


def test_drawing_anew_would_be_caught(
    tmp_path: Path, two_blocks: tuple[Configuration, Opened], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn_anew(monkeypatch)
    assert law_of_the_root(monkeypatch, tmp_path, two_blocks) < 1e-9


@pytest.mark.parametrize("fault", ["root", "parents"])
@pytest.mark.parametrize("way", WAYS)
def test_what_is_released_was_made_of_the_first_draws(
    tmp_path: Path, two_blocks: tuple[Configuration, Opened], monkeypatch: pytest.MonkeyPatch, way: str, fault: str
) -> None:
    """Exactly: with other noise at every attempt, what was drawn by the time of the fault decides."""
    chosen: dict[str, Chosen] = {"root": few} if fault == "root" else {"parents": uneven}
    levels = 1 if fault == "root" and way == "topdown" else 2
    for seed in range(12):
        whole = released(monkeypatch, tmp_path, two_blocks, seed, WAYS[way], {})[0]
        assert released(monkeypatch, tmp_path, two_blocks, seed, WAYS[way], chosen)[0][:levels] == whole[:levels]
    if way == "topdown":
        drawn_anew(monkeypatch)
        assert any(
            released(monkeypatch, tmp_path, two_blocks, seed, WAYS[way], chosen)[0][:levels]
            != released(monkeypatch, tmp_path, two_blocks, seed, WAYS[way], {})[0][:levels]
            for seed in range(12)
        )


@pytest.mark.parametrize("name", ["detailed alone", "split", "full information"])
def test_the_failsafe_goes_on_with_its_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    case = CASES[name]
    of = opened(tmp_path, world_of(case, 1), document_of(case), quarters=True)
    how = Options(case.estimator)  # type: ignore[arg-type]
    whole, descent = released(monkeypatch, tmp_path, of, 1, how, {})
    there = min(LEVELS.index(level) for level in descent.failsafe) + 1
    again = released(monkeypatch, tmp_path, of, 1, how, {"failsafe": lambda _: True})[0]
    assert again[:there] == whole[:there]


def arguments(tmp_path: Path, *options: str) -> list[str]:
    """A run of a small world, without a seed."""
    data, config = tmp_path / "data", tmp_path / "config.json"
    if not data.exists():
        write_world(make_world(6, (3, 2)), data)
        write_configuration(configuration((3, 2), rho="1/2"), config)
    return ["topdown", "run", str(config), str(data), str(tmp_path / "out"), *options]


def killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *options: str, level: int = 3) -> None:
    """Let a run die by a signal as soon as a geolevel's measurements are on disk."""
    line = arguments(tmp_path, *options)
    child = os.fork()
    if not child:
        drawn = Checkpoint.save_draws

        def die(self: Checkpoint, of_level: int, *more: Any) -> Any:  # noqa: ANN401
            values = drawn(self, of_level, *more)
            if of_level == level:
                os.kill(os.getpid(), signal.SIGKILL)
            return values

        monkeypatch.setattr(Checkpoint, "save_draws", die)
        main(line)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.measured")}


@pytest.mark.parametrize("more", [(), ("--estimator", "full-information")])
def test_a_killed_run_solves_what_it_had_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    """Without a seed: each attempt would draw other noise."""
    killed(tmp_path, monkeypatch, *more)
    before = digests(tmp_path / "out.checkpoint")
    assert len(before) == 4
    after: dict[str, str] = {}
    remove = Checkpoint.remove
    monkeypatch.setattr(Checkpoint, "remove", lambda self: (after.update(digests(self.folder)), remove(self))[1])
    assert main(arguments(tmp_path, *more, "--resume")) == 0
    assert after.items() >= before.items()
    assert len(after) == 6
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["status"] == "noisy measurements under the plan"


def charges(path: Path) -> list[str]:
    ledger = json.loads(path.read_text()) if path.exists() else {"data": {}}
    return [run["loss"] for account in ledger["data"].values() for run in account["runs"]]


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
    ):
        assert main(arguments(tmp_path, "--resume", *changed)) == 2
        assert f"differs in {named}." in capsys.readouterr().err
    assert charges(other) == []
    killed(tmp_path, monkeypatch, "--resume", level=4)
    assert main(arguments(tmp_path, "--resume", "--ledger", str(link), "--dataset", "D")) == 0
    assert charges(ledger) == ["1/2"]


def test_a_run_begun_anew_is_charged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = tmp_path / "ledger.json"
    account = ("--ledger", str(ledger), "--dataset", "D")
    killed(tmp_path, monkeypatch, *account)
    assert main(arguments(tmp_path, *account)) == 2
    assert charges(ledger) == ["1/2"]
    assert main(arguments(tmp_path, *account, "--overwrite")) == 0
    assert charges(ledger) == ["1/2", "1/2"]


@pytest.mark.parametrize("moment", ["begin", "charged"])
def test_a_death_beside_the_charge_never_loses_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """Between the charge and the note of it: what was charged stands, and is charged once more, never less."""
    ledger = tmp_path / "ledger.json"
    account = ("--ledger", str(ledger), "--dataset", "D")
    more = () if moment == "begin" else ("--resume",)
    if more:
        killed(tmp_path, monkeypatch)

    def die(*_: Any) -> None:  # noqa: ANN401
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run_module.Checkpoint, moment, die)
        assert main(arguments(tmp_path, *account, *more)) == 2
    assert charges(ledger) == ["1/2"]
    assert main(arguments(tmp_path, *account, *more)) == 0
    assert charges(ledger) == ["1/2", "1/2"]


def test_room_is_taken_before_anything_is_drawn(tmp_path: Path) -> None:
    """Draws that need more bytes must not die of a full disk where others would not."""
    checkpoint = Checkpoint(tmp_path / "out.checkpoint")
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
    "02-000000.counts": ("topdown", ARRAYS),
    "03-000000000.measured": ("topdown", ARRAYS),
    "00-000000000.measured": ("full-information", ARRAYS),
}


@pytest.mark.parametrize("name", DAMAGED)
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
