"""From a world to estimates of all its geounits: the door, the evidence, the descent."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from yupana.confidential.request import RunRequest
from yupana.confidential.topdown.door import Door
from yupana.confidential.topdown.world import World
from yupana.errors import ConfigError, InputError
from yupana.geography.spine import Spine
from yupana.plan.ledger import Ledger
from yupana.privacy.exact import INFINITE
from yupana.progress import Progress, Stopwatch
from yupana.topdown.budget import Spending
from yupana.topdown.checkpoint import Checkpoint
from yupana.topdown.compile import compile_kernels
from yupana.topdown.configuration import Configuration
from yupana.topdown.constraints import Limits, facility_limits, limits_by_level
from yupana.topdown.descend import Descent, Evidence, Rules, descend
from yupana.topdown.divide import Siblings
from yupana.topdown.invariants import Known, known_totals
from yupana.topdown.node.infeasible import InfeasibleNode
from yupana.topdown.on_demand import MeasuredOnDemand
from yupana.topdown.root import estimate_root, root_families
from yupana.topdown.stored import StoredMeasurements
from yupana.topdown.tree.basis import Basis
from yupana.topdown.tree.full_information import full_information


@dataclass(frozen=True, slots=True, eq=False)
class Estimated:
    """What came of a run. All of it was made of noisy values, invariants and public lists.

    Attributes
    ----------
    evidence : Evidence
    descent : Descent
    """

    evidence: Evidence
    descent: Descent


def estimate(
    configuration: Configuration,
    world: World,
    spending: Spending,
    ledger: Ledger,
    checkpoint: Checkpoint,
    request: RunRequest,
    clock: Stopwatch,
) -> Estimated:
    """Measure and estimate; what the checkpoint holds is taken from there.

    Parameters
    ----------
    configuration : Configuration
    world : World
    spending : Spending
        What is measured on the spine.
    ledger : Ledger
        Of its plan.
    checkpoint : Checkpoint
    request : RunRequest
        Tells the estimator, whether all measurements are drawn, the entropy, and whom to tell of progress.
    clock : Stopwatch

    Raises
    ------
    InputError
        If the constraints leave no counts for the root.
    """
    compile_kernels(clock.start)
    known = {} if world.kept is None else known_totals(world.kept, world.exact[-1])
    door = Door(world.exact, spending, request.entropy, ledger)
    evidence = _evidence(configuration, world, known, door, checkpoint, request, clock)
    clock.start("estimating")
    rules = _rules(configuration, world, known)
    return Estimated(evidence, _descend(configuration, world, rules, evidence, checkpoint, request.progress))


def check_run(configuration: Configuration, world: World, request: RunRequest) -> None:
    """Refuse what could not be estimated, before anything is charged or drawn.

    Raises
    ------
    ConfigError
        If the configuration does not go with the spine.
    """
    _check_noiseless(configuration, world.spine)
    _check_root(configuration, world.spine, request)


def _check_noiseless(configuration: Configuration, spine: Spine) -> None:
    """Without noise the output is to be the input; that takes the detailed query wherever units have siblings.

    Raises
    ------
    ConfigError
    """
    if configuration.budget != INFINITE:
        return
    missing = [level for level in configuration.without_detail() if _has_siblings(spine, spine.tree.names.index(level))]
    if missing:
        raise ConfigError(
            f"the budget is infinite, but {', '.join(missing)} measures no detailed query, so its counts would not be "
            "the input's; give it a share and the detailed query"
        )


def _check_root(configuration: Configuration, spine: Spine, request: RunRequest) -> None:
    """Refuse a root of which nothing would be known: no measurement of its own, and no total kept anywhere.

    Raises
    ------
    ConfigError
    """
    top = spine.levels[0]
    if request.estimator == "topdown" and not configuration.invariants and not spine.shares[top.share[0]]:
        raise ConfigError(
            f"[shares] {top.name} has no share, so nothing tells how many records there are; give it a share, keep the "
            "totals of a geolevel in [invariants], or use --estimator full-information, which adds up what is below"
        )


def _has_siblings(spine: Spine, number: int) -> bool:
    return number > 0 and spine.tree.units(number) > spine.tree.units(number - 1)


def _evidence(
    configuration: Configuration,
    world: World,
    known: Mapping[int, Known],
    door: Door,
    checkpoint: Checkpoint,
    request: RunRequest,
    clock: Stopwatch,
) -> Evidence:
    """Where the estimate learns from: what is drawn as it is asked for, or everything drawn beforehand."""
    if request.estimator == "topdown" and request.noisy_measurements is None:
        return MeasuredOnDemand(door.spending, checkpoint, door)
    clock.start("measuring")
    stored = StoredMeasurements(door.spending, checkpoint)
    for level, done, units in stored.draw(door):
        request.progress(f"measuring {world.spine.tree.names[level]}", done, units)
    if request.estimator == "topdown":
        return stored
    clock.start("least squares on the tree")
    totals = {level: one.totals for level, one in known.items() if one.of_each is not None}
    return full_information(Basis(configuration.schema.shape), world.spine.tree, stored, totals)


def _rules(configuration: Configuration, world: World, known: Mapping[int, Known]) -> list[Rules]:
    limits: tuple[Limits, ...] | None = None
    if configuration.group_quarters and world.facilities is not None:
        totals = {level: one.totals for level, one in known.items()}
        joint = {level: one.joint for level, one in known.items()}
        bounded = world.facilities[:, : configuration.schema.shape[0]]
        limits = limits_by_level(world.spine.tree, facility_limits(bounded), totals, joint)
    return [
        Rules(
            configuration.passes[level.name].round,
            limits[number] if limits else None,
            known[number].of_each if number in known else None,
            known[number].in_sets if number in known else (),
        )
        for number, level in enumerate(world.spine.levels)
    ]


def _descend(
    configuration: Configuration,
    world: World,
    rules: list[Rules],
    evidence: Evidence,
    checkpoint: Checkpoint,
    progress: Progress,
) -> Descent:
    possible = ~configuration.impossible()
    root = checkpoint.load(0, 0)
    if root is None:
        families = root_families(possible)
        gathered = evidence.gather(0, families)
        family = _root_family(configuration, rules[0], families.live)
        try:
            root = estimate_root(family, families.live, gathered.passes(0))
        except InfeasibleNode:
            raise InputError(
                "the constraints contradict the invariants at the root; correct group_quarters.csv"
            ) from None
        checkpoint.save(0, 0, root)
    return descend(world.spine.tree, root, rules, possible, evidence, checkpoint, os.cpu_count() or 1, progress)


def _root_family(configuration: Configuration, rules: Rules, live: NDArray[np.int32]) -> Siblings:
    bounded = rules.limits is not None
    first = len(configuration.schema.attributes[0].labels)
    groups = (np.arange(configuration.schema.cells) // (configuration.schema.cells // first)).astype(np.int32)
    return Siblings(
        np.zeros(len(live), dtype=np.int64),
        1,
        tuple(tuple(None if q.is_detailed else q.answers()[live] for q in queries) for queries in rules.rounding),
        groups[live] if bounded else None,
        rules.limits.lower if rules.limits else None,
        rules.limits.upper if rules.limits else None,
        rules.totals,
        (),
    )
