"""The posterior of the blocks, after full information: learn the prior from noisy answers, draw, round. Public.

Nothing is read but noisy answers, public lists, counts that were made of these, and coins of its own; so it is
post-processing (docs/topdown-privacy.md). The model and its measured errors are told in docs/topdown-posterior.md.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats, Indices, Ints
from yupana.errors import ConfigError
from yupana.geography.tree import Tree
from yupana.plan.measurement import Mechanism
from yupana.privacy.exact import INFINITE
from yupana.topdown.configuration import Configuration
from yupana.topdown.descent.checkpoint import KeptLevel, Piece
from yupana.topdown.descent.descend import (
    Batch,
    CellLabels,
    DividedLevel,
    Rules,
    batches_of,
    prepare,
    prepare_level,
    siblings_of,
)
from yupana.topdown.descent.divide import Terms, rounding_of
from yupana.topdown.histogram import Histogram, InTurn, count_entries, joined
from yupana.topdown.posterior.learning import (
    ROUNDS,
    Draws,
    Sweeps,
    concentrations,
    draw,
    learn_densities,
    moments,
    restricted,
)
from yupana.topdown.posterior.results import BlockPosterior, Chains, PriorFit, SquaredErrors
from yupana.topdown.posterior.siblings import Posed, Prior, PublicLists, classes, flat, pose
from yupana.topdown.rounding.rounding import round_counts
from yupana.topdown.tree.basis import Basis
from yupana.topdown.tree.full_information import FullInformation, TreeFamilies
from yupana.topdown.tree.least_squares import Quadratic

_SWEEPS: Final[Sweeps] = (25, 150)

_FOR_MOMENTS: Final = 4000
"""Parents that tell the concentrations, at most about twice as many."""

_FOR_DENSITIES: Final = 200
"""Parents that tell the densities: at least so many, if there are, and else one of six of those above."""

_FOR_FIT: Final = 300
"""Parents whose draws are compared with what was measured, at most about twice as many."""

_NEGLIGIBLE: Final = 0.02
"""A query that has less of the information on every part of a histogram than this is left out of the moves."""


@dataclass(frozen=True, slots=True, eq=False)
class _BlocksAsked:
    """The last geolevel, with all that its posterior is made of."""

    number: int
    level: DividedLevel
    groups: Indices
    above: KeptLevel
    start: KeptLevel
    evidence: FullInformation
    lists: PublicLists
    cells: int
    kinds: int
    seed: int

    def batches(self) -> Iterator["_Pieces"]:
        """All parents, in pieces."""
        start = InTurn(self.start)
        for before, parents in self.above:
            starts = self.level.starts[before : before + parents.units + 1]
            for first, last in batches_of(parents, starts):
                batch = prepare(parents.part(first, last), self.level, before + first)
                gathered = self.evidence.gather(self.number, batch.families)
                used = _used_queries(self.evidence.basis, gathered.fitted[-1].target)
                children = start.take(int(starts[first]), int(starts[last]))
                yield _Pieces(self, batch, batch.labels(), gathered, used, children)


@dataclass(frozen=True, slots=True, eq=False)
class _Pieces:
    """Consecutive parents."""

    blocks: _BlocksAsked
    batch: Batch
    labels: CellLabels
    gathered: TreeFamilies
    used: tuple[int, ...]
    start: Histogram
    """Of their children."""

    def free(self, position: int) -> bool:
        """Whether there is anything to draw: a parent of several children with people, whom these can sum to."""
        families = self.batch.families
        several = families.children[position + 1] - families.children[position] > 1
        people = families.starts[position + 1] > families.starts[position]
        return bool(several and people and position not in self.batch.failing)

    def pose(self, position: int) -> "_Parent":
        """One of the parents."""
        blocks, families = self.blocks, self.batch.families
        live = families.live[families.starts[position] : families.starts[position + 1]]
        first, last = families.children[position : position + 2].tolist()
        family = siblings_of(self.batch, self.labels, position)
        terms = self.gathered.passes(position)[-1]()
        posed = pose(family, terms, self.used, blocks.groups[live], blocks.lists.part(first, last))
        begin = families.first
        start = np.ascontiguousarray(self.start.dense(first - begin, last - begin, blocks.cells)[:, live])
        return _Parent(self.batch.first + position, live, posed, start, terms)


@dataclass(frozen=True, slots=True, eq=False)
class _Parent:
    """One parent, posed to the chain."""

    number: int
    live: NDArray[np.int32]
    posed: Posed
    start: Ints
    terms: Terms

    def apart(self) -> "_Parent":
        """The same, to be held when its batch is gone."""
        return replace(self, live=self.live.copy(), terms=self.terms.apart())


def estimate_posterior(
    tree: Tree,
    rules: Rules,
    possible: NDArray[np.bool_],
    evidence: FullInformation,
    counts: Sequence[KeptLevel],
    lists: PublicLists,
    seed: int,
    workers: int,
    progress: Callable[[str, int, int], None],
) -> tuple[KeptLevel, BlockPosterior]:
    """Estimate the units of the last geolevel, of every parent given the parent's counts.

    What comes out is kept as a geolevel below the last, so that no more than a batch of it is held.

    Parameters
    ----------
    rules : Rules
        Of the last geolevel.
    possible : ndarray of bool, shape (cells,)
    counts : sequence of KeptLevel
        Of the last geolevel but one and of the last, by full information; the latter are where the chains begin.
    workers : int
        Threads; the counts do not depend on how many.
    progress : callable
        Called with what is done, how many parents are done, and how many there are.

    Raises
    ------
    InputError
        If the chains have not settled, or the data contradict the prior.
    """
    number = len(tree.names) - 1
    level = prepare_level(tree, number, rules, possible)
    asked = [query.answers() for queries in rules.rounding for query in queries if not query.is_detailed]
    finest = max(asked, key=lambda labels: int(labels.max(initial=0)), default=np.zeros(len(possible), dtype=np.int32))
    kinds = 1 if rules.limits is None else rules.limits.lower.shape[1]
    blocks = _BlocksAsked(number, level, finest, counts[-2], counts[-1], evidence, lists, len(possible), kinds, seed)
    with ThreadPoolExecutor(workers) as pool:
        learned = _learn(blocks, pool, progress)
        learned[1].check()
        return _estimate(blocks, learned, pool, progress)


def _used_queries(basis: Basis, target: Quadratic) -> tuple[int, ...]:
    """The queries, by position, that have a share of the information worth a place in every move.

    Answers are least squares of all that was measured, so what is left out is the precision it adds.
    """
    subsets = {kept: at for at, kept in enumerate(basis.subsets)}
    rows = np.unique(target.weights, axis=0)
    kept = [basis.kept(query) for query in target.queries]
    weights = np.zeros((len(rows), len(subsets)))
    weights[:, [subsets[of] for of in kept]] = rows
    precision = basis.precision(weights)
    used = []
    for at, of in enumerate(kept):
        whole = np.maximum(precision[:, subsets[of]], 1e-300)
        if (np.abs(rows[:, at]) * basis.summed(of) > _NEGLIGIBLE * whole).any():
            used.append(at)
    return tuple(used)


_Learned = tuple[Prior, PriorFit, dict[int, tuple[Floats, Floats]]]
"""The prior, how it goes with the answers, and least squares of the totals of children, by the parent's number."""


def _learn(blocks: _BlocksAsked, pool: Executor, progress: Callable[[str, int, int], None]) -> _Learned:
    """Learn the prior: concentrations by moments of many parents, densities in rounds of sweeps over some of them."""
    number = blocks.above.units
    every = max(1, number // _FOR_MOMENTS)
    some = every * int(np.clip(number // (every * _FOR_DENSITIES), 1, 6))
    sums = np.zeros((2, 3))
    chosen: list[_Parent] = []
    totals: dict[int, tuple[Floats, Floats]] = {}
    for pieces in blocks.batches():
        first = pieces.batch.first
        positions = [at for at in range(pieces.batch.parents.units) if (first + at) % every == 0 and pieces.free(at)]
        for parent, told, own in pool.map(partial(_moments_of, pieces), positions):
            sums += told
            totals[parent.number] = own
            if parent.number % some == 0:
                chosen.append(parent.apart())
        progress("learning the prior", first + pieces.batch.parents.units, number)
    between, within = concentrations(sums)
    prior = Prior(flat(classes(blocks.kinds)), between, within)
    prior, last = learn_densities([(of.number, of.posed, of.start) for of in chosen], prior, blocks.seed, pool)
    fit = PriorFit()
    step = max(1, len(chosen) // _FOR_FIT)
    for parent, counts in list(zip(chosen, last, strict=True))[::step]:
        fit.add(counts, restricted(parent.terms))
    return prior, fit, totals


def _moments_of(pieces: _Pieces, position: int) -> tuple[_Parent, Floats, tuple[Floats, Floats]]:
    parent = pieces.pose(position)
    measured = restricted(parent.terms)
    return parent, moments(parent.posed, measured), measured.totals()


def _estimate(
    blocks: _BlocksAsked, learned: _Learned, pool: Executor, progress: Callable[[str, int, int], None]
) -> tuple[KeptLevel, BlockPosterior]:
    prior, fit, measured = learned
    found = KeptLevel(blocks.start.level + 1, blocks.start.keeper)
    chains, errors = Chains(), SquaredErrors()
    mean = np.concatenate([counts.totals() for _, counts in blocks.start]).astype(np.float64)
    spread = np.zeros(len(mean))
    for pieces in blocks.batches():
        families = pieces.batch.families
        done = list(pool.map(partial(_finish, pieces, prior), range(pieces.batch.parents.units)))
        for position, (_, draws) in enumerate(done):
            if draws is not None:
                chains.add(draws)
                if pieces.batch.first + position in measured:
                    errors.add(draws, *measured[pieces.batch.first + position])
                here = slice(*families.children[position : position + 2])
                mean[here] = draws.totals.mean(axis=0)
                spread[here] = draws.totals.std(axis=0)
        piece = Piece(joined([counts for counts, _ in done]), (), {})
        found.keeper.save(found.level, pieces.batch.first, piece)
        found.add(pieces.batch.first, piece)
        progress("posterior", pieces.batch.first + pieces.batch.parents.units, blocks.above.units)
    chains.check()
    told = BlockPosterior(
        mean=mean,
        spread=spread,
        inflation=errors.inflation(),
        prior=prior,
        chains=chains,
        fit=fit,
        sweeps=_SWEEPS,
        seed=blocks.seed,
        with_units=blocks.lists.units is not None,
    )
    return found, told


def _finish(pieces: _Pieces, prior: Prior, position: int) -> tuple[Histogram, Draws | None]:
    """Draw and round the children of one parent; where nothing is free they are left as they are."""
    blocks, families = pieces.blocks, pieces.batch.families
    if not pieces.free(position):
        begin, end = (families.children[position : position + 2] - families.first).tolist()
        return pieces.start.part(begin, end), None
    parent = pieces.pose(position)
    draws = draw(parent.posed, prior, parent.start, _SWEEPS, (blocks.seed, ROUNDS, parent.number), learning=False)
    counts = round_counts(draws.means, rounding_of(siblings_of(pieces.batch, pieces.labels, position)))
    unit, cell = np.nonzero(counts)
    return count_entries(unit, parent.live[cell], counts[unit, cell], len(counts)), draws


def check_posterior(configuration: Configuration) -> None:
    """Refuse a configuration whose last geolevel tells too little of its units, or without normal noise.

    Raises
    ------
    ConfigError
    """
    level = configuration.levels[-1]
    if configuration.budget == INFINITE:
        raise ConfigError("--estimator posterior: the budget is infinite; without noise there is nothing to estimate")
    if configuration.mechanism is not Mechanism.ZCDP:
        raise ConfigError(
            "--estimator posterior: weighs measurements by the normal law, and the noise of pure DP has another; use "
            "--estimator full-information, or the mechanism zcdp"
        )
    if level in configuration.without_detail():
        raise ConfigError(
            f"--estimator posterior: learns from the detailed query of {level} how alike its units are, and "
            f"queries.{level} does not measure it; give it a share, or use --estimator full-information"
        )
