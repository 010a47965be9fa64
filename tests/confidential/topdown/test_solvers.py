"""Whoever solves batches, wherever and however often, the descent is the same."""

import pickle
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from failsafe_worlds import CASES, document_of, world_of
from kept_runs import kept_counts, measured_for
from numpy.typing import NDArray
from topdown_worlds import write_configuration, write_world

from yupana.confidential.request import RunRequest
from yupana.confidential.topdown import estimate as where
from yupana.confidential.topdown.estimate import estimate
from yupana.confidential.topdown.resources import MemoryNeeds
from yupana.confidential.topdown.world import World, open_world
from yupana.engine.local import LocalEngine
from yupana.geography.tree import Tree
from yupana.plan.ledger import Ledger
from yupana.privacy.entropy import SeededEntropy
from yupana.progress import Stopwatch
from yupana.topdown.budget import spend
from yupana.topdown.configuration import Configuration
from yupana.topdown.descent import descend
from yupana.topdown.descent import estimate as estimating
from yupana.topdown.descent.checkpoint import (
    BatchCheckpoint,
    DrawsInMemory,
    Keeper,
    KeptLevel,
    Piece,
    unkept,
)
from yupana.topdown.descent.descend import (
    Batch,
    Descent,
    EngineSolver,
    Evidence,
    Gathered,
    Rules,
    Solver,
    ThreadSolver,
    prepare,
    prepare_level,
    solve,
)
from yupana.topdown.histogram import joined, whole
from yupana.topdown.reading.configuration import read_configuration

SOME = ("detailed alone", "passes", "recode", "tracts", "optimized", "full information")
"""Of the cases of the failsafe: other queries, several passes, joint totals, other evidence."""

Work = Iterable[tuple[Batch, Gathered]]
Opened = tuple[Configuration, World, RunRequest]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descend, "_VALUES_AT_ONCE", 60)
    monkeypatch.setattr(descend, "_UNITS_OF_A_RUN", 12)


def opened(folder: Path, name: str) -> Opened:
    case = CASES[name]
    data = write_world(world_of(case, case.seed), folder / "data", quarters=True)
    found = read_configuration(write_configuration(document_of(case), folder / "config.json"))
    request = RunRequest(estimator=case.estimator, entropy=SeededEntropy(case.seed))  # type: ignore[arg-type]
    found = found.on_spine(case.spine)  # type: ignore[arg-type]
    return found, open_world(found, data, request, Stopwatch(lambda _: None)), request


def estimated(of: Opened, patch: pytest.MonkeyPatch, solver: Solver, keeper: Keeper | None = None) -> Descent:
    patch.setattr(estimating, "ThreadSolver", lambda _: solver)
    configuration, world, request = of
    spending = spend(configuration, world.spine)
    keeper = keeper or unkept(request.estimator)
    found = estimate(configuration, world, spending, Ledger(spending.plan), keeper, request, Stopwatch(lambda _: None))
    return found.descent


def told(descent: Descent) -> tuple[Any, ...]:
    arrays = [a.tobytes() for one in map(whole, descent.counts) for a in (one.starts, one.cells, one.counts)]
    return arrays, descent.failsafe, descent.solvers


def sent(batch: Batch, gathered: Gathered) -> Piece:
    """What a worker makes of a batch that comes to it as bytes."""
    piece: Piece = pickle.loads(pickle.dumps(solve(*pickle.loads(pickle.dumps((batch, gathered))))))  # noqa: S301
    return piece


def one_by_one(work: Work) -> Iterator[Piece]:
    return (sent(*one) for one in work)


def greedy(work: Work) -> Iterator[Piece]:
    """Takes all there is, solves it backwards and twice, and gives the second copy of each."""
    every = [pickle.dumps(one) for one in work]
    for _ in range(2):
        pieces = [solve(*pickle.loads(one)) for one in reversed(every)]  # noqa: S301
    return reversed(pieces)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", SOME)
@pytest.mark.thorough
def test_a_descent_does_not_depend_on_who_solves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    of = opened(tmp_path, name)
    expected = told(estimated(of, monkeypatch, ThreadSolver(1)))
    here = LocalEngine(tmp_path)
    for solver in (ThreadSolver(3), one_by_one, greedy, EngineSolver(here, parts=3)):
        assert told(estimated(of, monkeypatch, solver)) == expected


def level_by_level(
    tree: Tree,
    root: Piece,
    rules: Sequence[Rules],
    possible: NDArray[np.bool_],
    evidence: Evidence,
    keeper: Keeper,
    solver: Solver,
    progress: object,
    at_once: int,
) -> Descent:
    """The descent as it is said on paper: all units of a geolevel are divided, then all of the next."""
    del solver, progress, at_once
    found = [KeptLevel(0, keeper)]
    found[0].add(0, root)
    for number in range(1, len(tree.names)):
        level, parents = prepare_level(tree, number, rules[number], possible), joined([one for _, one in found[-1]])
        found.append(KeptLevel(number, keeper))
        for parent in range(parents.units):
            batch = prepare(parents.part(parent, parent + 1), level, parent)
            found[-1].add(parent, solve(batch, evidence.gather(number, batch.families)))
    failsafe = {name: tuple(one.failsafe) for name, one in zip(tree.names, found, strict=True) if one.failsafe}
    return Descent(tuple(found), failsafe, {n: one.solvers for n, one in zip(tree.names, found, strict=True)})


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", SOME[1:])
@pytest.mark.thorough
def test_a_descent_does_not_depend_on_the_order_of_states(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """With the same measurements, all drawn before, units may be divided in any order and in any batches."""
    configuration, world, request = opened(tmp_path, name)
    of = configuration, world, replace(request, noisy_measurements=Path("anywhere"))
    in_memory = partial(estimated, of, monkeypatch, one_by_one)
    by_state = told(in_memory(DrawsInMemory()))
    assert world.spine.tree.units(1) > 1
    monkeypatch.setattr(estimating, "descend", level_by_level)
    assert told(in_memory(DrawsInMemory())) == by_state


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", SOME)
@pytest.mark.thorough
def test_a_descent_does_not_depend_on_how_many_trees_are_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    of = opened(tmp_path, name)
    expected = told(estimated(of, monkeypatch, one_by_one))
    whole_descent = estimating.descend
    for number in (2, 100):
        monkeypatch.setattr(estimating, "descend", lambda *of, number=number: whole_descent(*of[:8], number))
        for solver in (one_by_one, greedy):
            assert told(estimated(of, monkeypatch, solver)) == expected


@pytest.mark.thorough
def test_a_descent_does_not_depend_on_the_size_of_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With measurements that are all drawn before: those on demand are drawn by batch."""
    of = opened(tmp_path, "full information")
    expected = told(estimated(of, monkeypatch, one_by_one))
    for values in (1, 10_000):
        monkeypatch.setattr(descend, "_VALUES_AT_ONCE", values)
        assert told(estimated(of, monkeypatch, one_by_one)) == expected


@pytest.mark.thorough
def test_another_process_makes_the_same_of_what_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        for name in ("tracts", "full information"):
            of = opened(tmp_path / name, name)
            expected = told(estimated(of, monkeypatch, ThreadSolver(1)))
            assert told(estimated(of, monkeypatch, lambda work: pool.map(solve, *zip(*work, strict=True)))) == expected


@pytest.mark.thorough
def test_much_work_is_done_in_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of = opened(tmp_path, "tracts")
    expected = told(estimated(of, monkeypatch, ThreadSolver(1)))
    monkeypatch.setattr(where, "_MANY_BLOCKS", 0)
    assert told(estimated(of, monkeypatch, no_threads)) == expected
    configuration, world, request = of
    little = replace(request, memory=MemoryNeeds.of(1, configuration.schema.cells, request.estimator).least)
    with pytest.raises(AssertionError, match="in threads"):
        estimated((configuration, world, little), monkeypatch, no_threads)


def no_threads(_: Work) -> Iterator[Piece]:
    raise AssertionError("in threads")


@pytest.mark.thorough
def test_what_is_sent_grows_with_the_batch_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither with the geolevel it is of, nor with the cells of the schema, which may be a million."""
    seen: list[tuple[int, int]] = []

    def weigh(work: Work) -> Iterator[Piece]:
        for batch, gathered in work:
            seen.append((batch.families.last - batch.families.first, len(pickle.dumps(batch))))
            yield solve(batch, gathered)

    monkeypatch.setattr(descend, "_VALUES_AT_ONCE", 1)
    estimated(opened(tmp_path, "split in two"), monkeypatch, weigh)
    # Limits and totals, 8 bytes each for 4 types of lower and upper and the total, and less for what else there is.
    assert len(seen) > 30
    assert all(size < 3000 + 500 * children for children, size in seen)


class DiedError(Exception):
    """Stands for the death of the process that drives a run."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["tracts", "split", "full information"])
@pytest.mark.slow
def test_a_run_goes_on_with_all_that_a_dead_solver_had_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A solver took more batches than it solved, and died of what it made; the next attempt has other noise."""

    def dies(work: Work) -> Iterator[Piece]:
        for number, (batch, gathered) in enumerate(list(work)):
            if number == 1:
                raise DiedError
            yield solve(batch, gathered)

    of = opened(tmp_path, name)
    whole_run, checkpoint = BatchCheckpoint(tmp_path / "whole"), BatchCheckpoint(tmp_path / "out")
    whole_run.begin({})
    checkpoint.begin({})
    expected = estimated(of, monkeypatch, one_by_one, whole_run)
    with pytest.raises(DiedError):
        estimated(of, monkeypatch, dies, checkpoint)
    drawn = {path.name: path.read_bytes() for path in checkpoint.folder.glob("*.measured")}
    again = (of[0], of[1], replace(of[2], entropy=SeededEntropy(99)))
    found = estimated(again, monkeypatch, greedy, checkpoint)
    assert all((checkpoint.folder / path).read_bytes() == content for path, content in drawn.items())
    # What was made of them is what it would have been; of later draws it is not.
    made, other = kept_counts(whole_run), kept_counts(checkpoint)
    old = {one for one in other if name == "full information" or measured_for(of[1].spine.tree, one) in drawn}
    assert len(old) > 2
    assert all(made[one] == other[one] for one in old)
    assert (made == other) == (name == "full information") == (told(found)[0] == told(expected)[0])


@pytest.mark.slow
def test_threads_gather_a_batch_when_the_one_before_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a run in threads holds one batch in memory."""
    under_way: list[int] = []

    class Watched(Keeper):
        def save(self, level: int, first: int, piece: Piece) -> None:
            super().save(level, first, piece)
            under_way.append(-1)

    def watched(batch: Batch, gathered: Gathered, runs: Any) -> Piece:  # noqa: ANN401
        under_way.append(1)
        return solve(batch, gathered, runs)

    monkeypatch.setattr(descend, "solve", watched)
    estimated(opened(tmp_path, "tracts"), monkeypatch, ThreadSolver(2), Watched())
    # The root is saved, and by nobody here solved.
    assert (np.cumsum(under_way[1:]) <= 1).all()
    assert sum(under_way[1:]) == 0
