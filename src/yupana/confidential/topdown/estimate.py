"""From a world to estimates of all its geounits: the door, the evidence, the descent."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from yupana.confidential.records.database import scratch_folder
from yupana.confidential.request import RunRequest
from yupana.confidential.topdown.resources import A_WORKER, MemoryNeeds
from yupana.confidential.topdown.world import World
from yupana.engine.local import open_processes
from yupana.errors import ConfigError
from yupana.geography.spine import Spine
from yupana.plan.ledger import Ledger
from yupana.privacy.exact import INFINITE
from yupana.progress import Stopwatch
from yupana.topdown.budget import Spending
from yupana.topdown.configuration import Configuration
from yupana.topdown.constraints import known_totals
from yupana.topdown.descent.checkpoint import Keeper
from yupana.topdown.descent.descend import Descent, EngineSolver, Evidence, Solver
from yupana.topdown.descent.estimate import Premises, coins_for, estimate_counts, measured, premises_of
from yupana.topdown.descent.measurements import Door
from yupana.topdown.posterior.estimate import check_posterior


@dataclass(frozen=True, slots=True, eq=False)
class Estimated:
    """What came of a run. All of it was made of noisy values, invariants and public lists."""

    premises: Premises
    evidence: Evidence | None  # none once nothing more is told of it: that of full information takes room on the disk
    descent: Descent


def estimate(
    configuration: Configuration,
    world: World,
    spending: Spending,
    ledger: Ledger,
    keeper: Keeper,
    request: RunRequest,
    clock: Stopwatch,
    *,
    in_full: bool = False,
) -> Estimated:
    """Measure and estimate; what the keeper holds is taken from there.

    Parameters
    ----------
    spending : Spending
        What is measured on the spine.
    ledger : Ledger
        Of its plan.
    request : RunRequest
        Tells the estimator, the entropy, and whom to tell of progress.
    in_full : bool
        Whether all measurements are drawn, though the estimator may not need them.

    Raises
    ------
    InputError
        If the constraints leave no counts for the root.
    """
    known = {} if world.kept is None else known_totals(world.kept, world.exact.blocks)
    premises = premises_of(configuration, world.spine, known, world.facilities)
    door = Door(world.exact.levels, spending, request.entropy, ledger)
    evidence = measured(
        premises, door, keeper, request.estimator, clock, request.progress, in_full=in_full or bool(request.layouts)
    )
    coins = coins_for(request.estimator, request.entropy)
    with _open_solver(configuration, world, request) as solver:
        descent = estimate_counts(premises, evidence, keeper, clock, request.progress, coins, solver)
    return Estimated(premises, evidence, descent)


@contextmanager
def _open_solver(configuration: Configuration, world: World, request: RunRequest) -> Iterator[Solver | None]:
    """Where batches are solved: on the engine asked for, in processes where there is much to do, or else in threads.

    Threads wait for each other half of the time, as what is between compiled loops is Python. Processes take a second
    or two to start, and the memory that the database had. Full information is divided in threads: what it knows of a
    batch is as large as all its cells.
    """
    engine, blocks = request.engine, world.spine.tree.units(len(world.spine.levels) - 1)
    if engine is not None and engine.slots > 1:
        yield EngineSolver(engine)
        return
    needs = MemoryNeeds.of(blocks, configuration.schema.cells, request.estimator)
    slots = min(os.cpu_count() or 1, needs.for_database(request.memory) // A_WORKER)
    if blocks < _MANY_BLOCKS or slots < _LEAST_PROCESSES or request.estimator != "topdown":
        yield None
        return
    with scratch_folder() as folder, open_processes(folder, slots) as processes:
        yield EngineSolver(processes, parts=min(slots, _PARTS))


_MANY_BLOCKS: Final = 200_000
_LEAST_PROCESSES: Final = 2
_PARTS: Final = 4


def check_run(configuration: Configuration, world: World, request: RunRequest) -> None:
    """Refuse what could not be estimated, before anything is charged or drawn.

    Raises
    ------
    ConfigError
        If the configuration does not go with the spine, or with the estimator.
    """
    _check_noiseless(configuration, world.spine)
    _check_root(configuration, world.spine, request)
    if request.estimator == "posterior":
        check_posterior(configuration)


def _check_noiseless(configuration: Configuration, spine: Spine) -> None:
    """Without noise the output is to be the input; that takes the detailed query wherever units have siblings."""
    if configuration.budget != INFINITE:
        return
    units = [1, *map(spine.tree.units, range(len(spine.levels)))]
    several = {name for number, name in enumerate(spine.tree.names) if units[number + 1] > units[number]}
    missing = [level for level in configuration.without_detail() if level in several]
    if missing:
        raise ConfigError(
            f"the budget is infinite, but {', '.join(missing)} measures no detailed query, so its counts would not be "
            "the input's; give it a share and the detailed query"
        )


def _check_root(configuration: Configuration, spine: Spine, request: RunRequest) -> None:
    """Refuse a root of which nothing would be known: no measurement of its own, and no total kept anywhere."""
    top = spine.levels[0]
    if request.estimator == "topdown" and not configuration.invariants and not spine.shares[top.share[0]]:
        raise ConfigError(
            f"[shares] {top.name} has no share, so nothing tells how many records there are; give it a share, keep the "
            "totals of a geolevel in [invariants], or use --estimator full-information, which adds up what is below"
        )
