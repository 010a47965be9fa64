"""Solvers that die of their noise and go on: what is released is made of the first draws, and so has their law."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from failsafe_worlds import CASES, document_of, world_of
from kept_runs import drawn_files, kept_counts, measured_for
from topdown_worlds import World, configuration, write_configuration, write_world

from yupana.confidential.request import RunRequest
from yupana.confidential.topdown.estimate import estimate
from yupana.confidential.topdown.world import World as Opened
from yupana.confidential.topdown.world import open_world
from yupana.plan.ledger import Ledger
from yupana.privacy.entropy import SeededEntropy
from yupana.progress import Stopwatch
from yupana.topdown.budget import spend
from yupana.topdown.configuration import Configuration
from yupana.topdown.descent import descend
from yupana.topdown.descent import estimate as estimating
from yupana.topdown.descent.checkpoint import BatchCheckpoint
from yupana.topdown.descent.descend import Descent
from yupana.topdown.histogram import Histogram, whole
from yupana.topdown.reading.configuration import read_configuration

SHAPE = (2,)
TRUE = {"0100100000111000": (60, 40), "0100100000111001": (50, 70)}
"""So many in each cell that no noise makes a count negative: the root's counts are its noisy answers."""


class DiedError(BaseException):
    """Stands for the death of a process."""


def opened(folder: Path, world: World, document: dict[str, Any], *, quarters: bool = False) -> tuple[Any, Opened]:
    data = write_world(world, folder / "data", quarters=quarters)
    found = read_configuration(write_configuration(document, folder / "config.json"))
    return found, open_world(found, data, RunRequest(), Stopwatch(lambda _: None))


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


class Ended(NamedTuple):
    """What a run ended with: counts by geolevel and by piece, and what was drawn when it died first."""

    counts: tuple[bytes, ...]
    kept: dict[str, tuple[bytes, ...]]
    drawn: set[str]
    descent: Descent


def released(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    of: tuple[Configuration, Opened],
    seed: int,
    how: RunRequest,
    faults: dict[str, Chosen],
) -> Ended:
    """What a run ends with whose solvers, at their first attempt, die where they are told to.

    Every attempt has noise of its own. Faults are "root", "parents" and "failsafe".
    """
    tried_before, drawn = set[str](), set[str]()

    def mortal(name: str, solve: Callable[..., Any], counts: Callable[[Any], Any]) -> Callable[..., Any]:
        def tried(*arguments: Any) -> Any:  # noqa: ANN401
            made = solve(*arguments)
            first = name not in tried_before
            tried_before.add(name)
            if first and name in faults and faults[name](counts(made)):
                raise DiedError
            return made

        return tried

    checkpoint = BatchCheckpoint(folder / f"{seed} {len(faults)}")
    checkpoint.begin({})
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        patch.setattr(estimating, "estimate_root", mortal("root", estimating.estimate_root, lambda made: made.counts))
        patch.setattr(descend, "divide", mortal("parents", descend.divide, lambda made: made.counts))
        patch.setattr(descend, "divide_failsafe", mortal("failsafe", descend.divide_failsafe, lambda made: made.counts))
        for attempt in range(5):
            try:
                request = replace(how, entropy=SeededEntropy(1000 * seed + attempt))
                spending = spend(of[0], of[1].spine)
                ledger = Ledger(spending.plan)
                found = estimate(*of, spending, ledger, checkpoint, request, Stopwatch(lambda _: None))
            except DiedError:
                drawn = drawn or drawn_files(checkpoint)
                continue
            made = [whole(one) for one in found.descent.counts]
            kept = kept_counts(checkpoint)
            checkpoint.remove()
            counts = tuple(one.counts.tobytes() + one.cells.tobytes() for one in made)
            return Ended(counts, kept, drawn, found.descent)
    raise AssertionError("it never came to an end")


TOPDOWN, FULL = RunRequest(), RunRequest(estimator="full-information")
STORED = RunRequest(noisy_measurements=Path("anywhere"))
WAYS = {"topdown": TOPDOWN, "full information": FULL, "all drawn beforehand": STORED}


def few(counts: Any) -> bool:  # noqa: ANN401
    """Whether fewer are counted in the first cell of the root than there are."""
    return bool(counts.counts[0] < 110)


def uneven(counts: Any) -> bool:  # noqa: ANN401
    """Whether the first block got more of the second cell than the other, which has more."""
    return bool(counts[0, 1] > counts[1, 1] - 30)


def drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """What resuming did before draws were kept."""
    monkeypatch.setattr(BatchCheckpoint, "load_draws", lambda *_: None)


@pytest.mark.parametrize("fault", ["root", "parents"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.slow
def test_what_is_released_was_made_of_the_first_draws(
    tmp_path: Path, two_blocks: tuple[Configuration, Opened], monkeypatch: pytest.MonkeyPatch, way: str, fault: str
) -> None:
    """Exactly: with other noise at every attempt, what was drawn by the time of the fault decides."""
    chosen: dict[str, Chosen] = {"root": few} if fault == "root" else {"parents": uneven}
    levels = 1 if fault == "root" and way == "topdown" else 2
    for seed in range(8):
        whole = released(monkeypatch, tmp_path, two_blocks, seed, WAYS[way], {}).counts
        assert released(monkeypatch, tmp_path, two_blocks, seed, WAYS[way], chosen)[0][:levels] == whole[:levels]
    if way == "topdown":
        drawn_anew(monkeypatch)
        assert any(
            released(monkeypatch, tmp_path, two_blocks, seed, WAYS[way], chosen)[0][:levels]
            != released(monkeypatch, tmp_path, two_blocks, seed, WAYS[way], {}).counts[:levels]
            for seed in range(12)
        )


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["detailed alone", "split", "full information"])
@pytest.mark.slow
def test_the_failsafe_goes_on_with_its_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    case = CASES[name]
    of = opened(tmp_path, world_of(case, 1), document_of(case), quarters=True)
    how = RunRequest(estimator=case.estimator)  # type: ignore[arg-type]
    whole = released(monkeypatch, tmp_path, of, 1, how, {})
    again = released(monkeypatch, tmp_path, of, 1, how, {"failsafe": lambda _: True})
    assert whole.descent.failsafe
    tree, in_full = of[1].spine.tree, case.estimator == "full-information"
    old = {one for one in again.kept if in_full or measured_for(tree, one) in again.drawn}
    assert len(old) > 1
    assert all(again.kept[one] == whole.kept[one] for one in old)
