"""From measurements of a spine to counts of all its geounits, the root first, whoever measures. Public."""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, assert_never

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Integers
from yupana.errors import InputError
from yupana.geography.spine import Spine
from yupana.privacy.entropy import Entropy
from yupana.progress import Progress, Stopwatch
from yupana.topdown import Estimator
from yupana.topdown.configuration import Configuration
from yupana.topdown.constraints import Known, Limits, facility_limits, limits_by_level
from yupana.topdown.descent.checkpoint import Keeper, Piece
from yupana.topdown.descent.compile import compile_chain, compile_kernels
from yupana.topdown.descent.descend import Batch, Descent, Evidence, Rules, Solver, ThreadSolver, descend, siblings_of
from yupana.topdown.descent.divide import Siblings, Terms, divide
from yupana.topdown.descent.measurements import Door, MeasuredOnDemand, SiblingBatch, StoredMeasurements
from yupana.topdown.histogram import Histogram, count_entries
from yupana.topdown.node.problem import InfeasibleNode
from yupana.topdown.posterior.estimate import estimate_posterior
from yupana.topdown.posterior.siblings import PublicLists
from yupana.topdown.rounding.program import Limit
from yupana.topdown.tree.basis import Basis
from yupana.topdown.tree.full_information import FullInformation, full_information

_SPARE: Final = 1000
"""Persons a cell may exceed what was measured by, before a bound is felt."""


def estimate_root(family: Siblings, cells: NDArray[np.int32], passes: Sequence[Callable[[], Terms]]) -> Piece:
    """Estimate and round the root.

    It is divided like any other parent's child: beside a sibling that nobody measured, which takes what is left of a
    parent too large to bind.

    Parameters
    ----------
    family : Siblings
        The root as an only child, its parent's counts ignored.
    cells : ndarray of int32, shape (m,)
        The live cells.
    passes : sequence of callable
        The terms of each estimation pass, for one child.
    """
    most = _most(family, passes)
    parent = np.full(len(cells), most, dtype=np.int64)
    free, more = most * max(1, len(cells)), ((0, 1), (0, 0))
    limits = [
        Limit(of.labels, np.pad(of.lower, more), np.pad(of.upper, more, constant_values=free)) for of in family.limits
    ]
    joint = () if family.totals is None else (((0,), int(family.totals[0])),)
    beside = replace(
        family,
        parent=parent,
        children=2,
        limits=tuple(limits),
        totals=None,
        joint=joint,
    )
    divided = divide(beside, [partial(_with_sibling, make) for make in passes])
    counts = count_entries(np.zeros(len(cells), dtype=np.int64), cells, divided.counts[0], 1)
    return Piece(counts, (), Counter(divided.solvers))


def _with_sibling(make: Callable[[], Terms]) -> Terms:
    terms = make()
    return Terms(
        terms.queries,
        tuple(np.concatenate([one, np.zeros_like(one)]) for one in terms.answers),
        np.concatenate([terms.weights, np.zeros_like(terms.weights)]),
        terms.held,
    )


def _most(family: Siblings, passes: Sequence[Callable[[], Terms]]) -> int:
    """More than any cell of the root will be given."""
    if family.totals is not None:
        return int(family.totals[0]) + 1
    sums = [float(np.clip(one, 0, None).sum()) for make in passes for one in make().answers]
    return int(2 * max(sums, default=0.0)) + _SPARE


_TREES_ELSEWHERE: Final = 2
"""Trees under way at a time, mostly states, where batches are solved elsewhere."""


@dataclass(frozen=True, slots=True, eq=False)
class Premises:
    """What an estimate takes as given beside the measurements. Public."""

    configuration: Configuration
    spine: Spine
    limits: tuple[Limits, ...] | None  # of each geolevel, the bounds that group quarters set
    known: Mapping[int, Known]  # by geolevel, the totals that are kept exactly
    # shape (blocks, 8), or None: housing units and facilities by major type, where they are listed
    facilities: Integers | None = None

    def rules(self) -> list[Rules]:
        """What the counts of each geolevel must satisfy."""
        return [
            Rules(
                self.configuration.passes[level.name].round,
                self.limits[number] if self.limits else None,
                self.known[number].of_each if number in self.known else None,
                self.known[number].in_sets if number in self.known else (),
            )
            for number, level in enumerate(self.spine.levels)
        ]


def premises_of(
    configuration: Configuration, spine: Spine, known: Mapping[int, Known], facilities: Integers | None
) -> Premises:
    """What follows from totals and public lists.

    Parameters
    ----------
    facilities : ndarray of integers, shape (blocks, 8), or None
        Housing units and facilities by major type, in the order of the spine.
    """
    limits: tuple[Limits, ...] | None = None
    if configuration.group_quarters and facilities is not None:
        totals = {level: one.totals for level, one in known.items()}
        joint = {level: one.joint for level, one in known.items()}
        bounded = facilities[:, : configuration.schema.shape[0]]
        limits = limits_by_level(spine.tree, facility_limits(bounded), totals, joint)
    return Premises(configuration, spine, limits, known, facilities)


def measured(
    premises: Premises,
    door: Door,
    keeper: Keeper,
    estimator: Estimator,
    clock: Stopwatch,
    progress: Progress,
    *,
    in_full: bool,
) -> Evidence:
    """Where an estimate learns from: what is drawn as it is asked for, or everything drawn beforehand.

    Parameters
    ----------
    keeper : Keeper
        Keeps what is drawn.
    estimator : "topdown", "full-information" or "posterior"
    in_full : bool
        Whether everything is drawn though the estimator does not need it.
    """
    if estimator == "topdown" and not in_full:
        return MeasuredOnDemand(keeper, door)
    clock.start("measuring")
    stored = StoredMeasurements(door.spending.levels, keeper)
    for level, done, units in stored.draw(door):
        progress(f"measuring {premises.spine.tree.names[level]}", done, units)
    return informed(premises, stored, estimator, clock)


def informed(premises: Premises, stored: StoredMeasurements, estimator: Estimator, clock: Stopwatch) -> Evidence:
    """What measurements that are all there tell an estimator: themselves, or their least squares on the tree."""
    match estimator:
        case "topdown":
            return stored
        case "full-information" | "posterior":
            clock.start("least squares on the tree")
            totals = {level: one.totals for level, one in premises.known.items() if one.of_each is not None}
            return full_information(Basis(premises.configuration.schema.shape), premises.spine.tree, stored, totals)
    assert_never(estimator)


def estimate_counts(
    premises: Premises,
    evidence: Evidence,
    keeper: Keeper,
    clock: Stopwatch,
    progress: Progress,
    coins: Entropy | None = None,
    solver: Solver | None = None,
) -> Descent:
    """Estimate all geounits, from the root down; what the keeper holds is taken from there.

    Parameters
    ----------
    coins : Entropy or None
        For the estimator "posterior" (`coins_for`): with them the last geolevel is drawn from its posterior, given full
        information. Nothing else is made of them, and a run that goes on has those that it had.
    solver : Solver, optional
        Where batches are solved; in threads of this process if it is not said.

    Raises
    ------
    InputError
        If the constraints leave no counts for the root; if the posterior cannot be trusted.
    """
    compile_kernels(clock.start)
    clock.start("estimating")
    possible, rules = ~premises.configuration.impossible(), premises.rules()
    root = keeper.load(0, 0)
    if root is None:
        # The root is the only child of nobody, on the cells that can hold someone.
        cells = np.flatnonzero(possible).astype(np.int32)
        families = SiblingBatch(np.array([0, 1]), np.array([0, len(cells)]), cells)
        gathered = evidence.gather(0, families)
        nobody = Histogram(np.zeros(2, dtype=np.int64), families.live[:0], np.zeros(0, dtype=np.int64))
        batch = Batch(0, nobody, families, frozenset(), rules[0], {})
        family = siblings_of(batch, batch.labels(), 0)
        try:
            root = estimate_root(family, families.live, gathered.passes(0))
        except InfeasibleNode:
            raise InputError(
                "the constraints contradict the invariants at the root; correct group_quarters.csv"
            ) from None
        keeper.save(0, 0, root)
    workers = os.cpu_count() or 1
    tree = premises.spine.tree
    at_once = 1 if solver is None else _TREES_ELSEWHERE
    solver = solver or ThreadSolver(workers)
    found = descend(tree, root, rules, possible, evidence, keeper, solver, progress, at_once)
    if coins is None or len(rules) == 1 or not isinstance(evidence, FullInformation):
        return found
    compile_chain(clock.start)
    clock.start("the posterior of the last geolevel")
    seed, lists = _seed(keeper, len(rules), coins), _public_lists(premises)
    counts, posterior = estimate_posterior(
        tree, rules[-1], possible, evidence, found.counts[-2:], lists, seed, workers, progress
    )
    return replace(found, counts=(*found.counts[:-1], counts), posterior=posterior)


def coins_for(estimator: Estimator, entropy: Entropy) -> Entropy | None:
    """What an estimator throws itself, a branch of a run's own entropy; None of those that throw nothing."""
    return entropy.branch("posterior") if estimator == "posterior" else None


def _seed(keeper: Keeper, level: int, coins: Entropy) -> int:
    """A seed of 16 bytes, drawn once in a run: it is kept like answers of the geolevel that follows the last."""
    values = keeper.load_draws(level, 0, [(2,)])
    if values is None:
        values = keeper.save_draws(level, 0, [(2,)], lambda: [np.frombuffer(coins.take(16), ">i8").astype(np.int64)])
    return int.from_bytes(values[0].astype(">i8").tobytes())


def _public_lists(premises: Premises) -> PublicLists:
    if premises.facilities is None:
        return PublicLists(None, None)
    bounded = None if premises.limits is None else premises.facilities[:, 1 : premises.configuration.schema.shape[0]]
    return PublicLists(premises.facilities[:, 0], bounded)


def failsafe_told(spine: Spine, descent: Descent) -> list[dict[str, Any]]:
    """The parents that needed the failsafe, for a manifest: geolevel, geounit, and by how much they had to differ."""
    found: list[dict[str, Any]] = []
    for level, parents in descent.failsafe.items():
        above = spine.levels[spine.tree.names.index(level) - 1]
        found += [{"geolevel": above.name, "geounit": above.labels(p, p + 1)[0], "v": v} for p, v in parents]
    return found
