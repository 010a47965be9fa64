"""The plan of a run on a spine: what each geounit is measured with, and whether a given spine allows it. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Ints
from yupana.errors import ConfigError
from yupana.geography.settings import SpineSettings
from yupana.geography.spine import Spine, share_paths
from yupana.geography.tree import Tree
from yupana.plan.measurement import Measurement
from yupana.plan.plan import Plan
from yupana.privacy.exact import INFINITE, show_exact
from yupana.topdown import Estimator
from yupana.topdown.configuration import Configuration
from yupana.topdown.plan import make_measurement, make_plan
from yupana.topdown.queries import Query
from yupana.topdown.reading.configuration import SMALLEST_BUDGET


@dataclass(frozen=True, slots=True, eq=False)
class LevelSpending:
    """What one geolevel is measured with."""

    queries: tuple[Query, ...]  # those measured
    share_of: NDArray[np.int32]  # shape (units,): which of the spine's shares each geounit has
    # by the position of a share, the measurement of each query; shares of 0 have none
    measurements: Mapping[int, tuple[Measurement, ...]]
    # shape (shares, queries): inverse variances by the position of a share; 0 for a share of 0. Without noise they are
    # those of budget 1.
    weights: NDArray[np.float64]
    # shape (shares, queries): of a noisy answer; infinite for a share of 0, 0 without noise
    variances: NDArray[np.float64]
    # queries of each estimation pass, by position; one pass of none where nothing is measured, for the geounits have
    # constraints and a parent all the same
    passes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Spending:
    """A plan on a spine."""

    plan: Plan  # its paths are the ways in which shares follow one another from the root to a block
    levels: tuple[LevelSpending, ...]  # in the order of the spine

    @property
    def answers(self) -> int:
        """How many noisy answers there are, if all are drawn."""
        return sum(
            sum(query.size for query in level.queries) * int(np.isin(level.share_of, [*level.measurements]).sum())
            for level in self.levels
        )


def spend(configuration: Configuration, spine: Spine) -> Spending:
    """Spread the budget of a configuration over a spine.

    A geounit with share s measures query q with budget (budget * s * share of q). Shares along every path from the
    root to a block sum to 1, and so do those of the queries of a geolevel; the loss of the plan is then that of the
    configuration, whichever units were bypassed (docs/topdown-privacy.md, theorem 1).
    """
    levels = tuple(_level(configuration, spine, number) for number in range(len(spine.levels)))
    return Spending(plan_on(make_plan(configuration), spine.tree, levels), levels)


def plan_on(plan: Plan, tree: Tree, levels: Sequence[LevelSpending]) -> Plan:
    """A plan with the measurements of the geounits of a tree, and the paths of them that one record can count in.

    Parameters
    ----------
    plan : Plan
        What it says but of measurements.
    levels : sequence of LevelSpending
        Measurements of one name are one.
    """
    measurements = {m.name: m for level in levels for row in level.measurements.values() for m in row}
    position = {name: i for i, name in enumerate(measurements)}
    paths = tuple(
        tuple(
            position[m.name]
            for level, share in zip(levels, path, strict=True)
            for m in level.measurements.get(share, ())
        )
        for path in share_paths(tree, [level.share_of for level in levels])
    )
    return replace(plan, measurements=tuple(measurements.values()), paths=tuple(dict.fromkeys(paths)))


def _level(configuration: Configuration, spine: Spine, number: int) -> LevelSpending:
    level = spine.levels[number]
    measured = configuration.measured(level.name)
    queries = tuple(query for query, _ in measured)
    measurements: dict[int, tuple[Measurement, ...]] = {}
    weights = np.zeros((len(spine.shares), len(queries)))
    variances = np.full((len(spine.shares), len(queries)), np.inf)
    for position in np.unique(level.share).tolist():
        share = spine.shares[position]
        if share == 0:
            continue
        row = tuple(make_measurement(configuration, level.name, query, share, part) for query, part in measured)
        measurements[position] = row
        variances[position] = [float(m.variance) for m in row]
        weights[position] = (
            [float(share * part) for _, part in measured]
            if configuration.budget == INFINITE
            else 1 / variances[position]
        )
    chosen = tuple(
        tuple(queries.index(query) for query in queries_of) for queries_of in configuration.passes[level.name].estimate
    )
    return LevelSpending(queries, level.share, measurements, weights, variances, chosen or ((),))


def on_given(configuration: Configuration, settings: SpineSettings, folder: Path) -> Configuration:
    """A configuration with the settings of a spine in a folder, its shares among them.

    Which blocks there must be is still told by the configuration: `check_given` compares them.

    Raises
    ------
    ConfigError
        If the spine has another mechanism or other geolevels, or the configuration has areas of its own.
    """
    if configuration.areas is not None:
        raise ConfigError(f"--spine {folder}: [areas] of the configuration says what the spine is")
    if settings.mechanism != configuration.mechanism.value:
        raise ConfigError(
            f"--spine {folder}: the spine was built for mechanism {settings.mechanism!r}, and the configuration has "
            f"{configuration.mechanism.value!r}; build it with --mechanism {configuration.mechanism.value}"
        )
    if settings.levels != configuration.levels:
        raise ConfigError(
            f"--spine {folder}: the spine has the geolevels {', '.join(settings.levels)}, and the configuration "
            f"{', '.join(configuration.levels)}; build it with --levels {','.join(configuration.levels)}"
        )
    return replace(configuration, spine=replace(settings, live=configuration.spine.live))


def check_given(configuration: Configuration, spine: Spine, blocks: Ints, estimator: Estimator, folder: Path) -> None:
    """Refuse a spine that has other blocks than a run, or shares that the run cannot spend.

    Parameters
    ----------
    blocks : ndarray of int64, shape (blocks,)
        Those of the run, in order.
    estimator : "topdown", "full-information" or "posterior"
    folder : Path
        For the message.

    Raises
    ------
    ConfigError
        Naming all faults.
    """
    faults = [*_blocks(configuration, spine, blocks), *_shares(configuration, spine)]
    if estimator != "topdown":
        faults += _bypassed(configuration, spine)
    if faults:
        raise ConfigError("\n".join([f"--spine {folder}: the run cannot be made on it:", *(f"  {f}" for f in faults)]))


def _blocks(configuration: Configuration, spine: Spine, blocks: Ints) -> list[str]:
    said = f"spine.live is {str(configuration.spine.live).lower()} in the configuration"
    return [
        f"{len(odd):,} blocks {text}, such as {odd[0]:016d}; {said}"
        for text, odd in (
            ("of the run are not on the spine", np.setdiff1d(blocks, spine.blocks)),
            ("of the spine are not those of the run", np.setdiff1d(spine.blocks, blocks)),
        )
        if len(odd)
    ]


def _shares(configuration: Configuration, spine: Spine) -> list[str]:
    faults = []
    for number, level in enumerate(spine.levels):
        positive = [share for share in (spine.shares[i] for i in np.unique(level.share).tolist()) if share > 0]
        parts = [part for _, part in configuration.measured(level.name)]
        if not parts and (positive or configuration.shares[level.name] > 0):
            faults.append(f"its geounits of {level.name} have shares, and queries.{level.name} measures nothing")
        elif positive and configuration.budget * min(positive) * min(parts) < SMALLEST_BUDGET:
            least = show_exact(min(positive))
            faults.append(f"a geounit of {level.name} has the share {least}, which gives a query less than 1e-15")
        if configuration.budget == INFINITE and _unmeasured(spine, number):
            faults.append(f"the budget is infinite, and a geounit of {level.name} that has siblings has no share")
    return faults


def _unmeasured(spine: Spine, number: int) -> bool:
    """Whether a geounit that has siblings has no share, so that without noise it would not be as in the input."""
    if number == 0:
        return False
    siblings = spine.tree.children(number - 1)[spine.tree.parents[number]] > 1
    bare = np.array([share == 0 for share in spine.shares])[spine.levels[number].share]
    return bool((siblings & bare).any())


def _bypassed(configuration: Configuration, spine: Spine) -> list[str]:
    """Full information reads the answers that a bypass gave up; see `Configuration.spine_for`."""
    unlike = configuration.spine_for("full-information").unbypassed
    return [
        f"units of {level.name} gave their shares to {above.name}, which asks other queries; under full information "
        "that can raise variances, so use --estimator topdown, or --spine optimized, which builds one without"
        for above, level in zip(spine.levels, spine.levels[1:], strict=False)
        if above.name in unlike and level.bypassed.any()
    ]
