"""Whether a run can be made on a spine that was built before. Public."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from yupana.arrays import Ints
from yupana.errors import ConfigError
from yupana.geography.settings import SpineSettings
from yupana.geography.spine import Spine
from yupana.privacy.exact import INFINITE, show_exact
from yupana.topdown.configuration import Configuration, Estimator
from yupana.topdown.reading.configuration import SMALLEST_BUDGET


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
    configuration : Configuration
    spine : Spine
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
