"""Totals that are kept exactly: which units of a spine they bind, together or each alone. Public but for the totals."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hollerith.errors import ConfigError
from hollerith.geography.spine import Spine
from hollerith.topdown.configuration import Configuration
from hollerith.topdown.constraints import UNKNOWN, Joint
from hollerith.topdown.histogram import Ints


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """The totals known at one geolevel.

    Attributes
    ----------
    totals : ndarray of int64, shape (units,)
        `UNKNOWN` where the total of a unit is only known together with those of others.
    joint : tuple of Joint
        Units of one published area, such as the two sides of a state, whose totals are known together.
    """

    totals: Ints
    joint: tuple[Joint, ...]

    @property
    def of_each(self) -> Ints | None:
        """The totals, if all are known one by one."""
        return None if (self.totals == UNKNOWN).any() else self.totals

    @property
    def in_sets(self) -> tuple[Joint, ...]:
        """All totals as sets of units, if not all are known one by one."""
        if self.of_each is not None:
            return ()
        alone = [Joint((unit,), int(self.totals[unit])) for unit in np.flatnonzero(self.totals != UNKNOWN).tolist()]
        return (*alone, *self.joint)


def known_totals(configuration: Configuration, spine: Spine, totals: Sequence[Ints]) -> dict[int, Known]:
    """The totals that invariants make known, by geolevel: where they are configured, and by adding up at all above.

    Parameters
    ----------
    configuration : Configuration
    spine : Spine
    totals : sequence of ndarray of int64, each of shape (units,)
        Confidential totals of every geolevel. Those the configuration calls invariant become public here.

    Raises
    ------
    ConfigError
        If a published area lies in units of several parents, whose totals cannot be kept together.
    """
    named = [i for i, level in enumerate(spine.levels) if level.name in configuration.invariants]
    if not named:
        return {}
    lowest = named[-1]
    found = {number: Known(totals[number], ()) for number in range(lowest)}
    return {**found, lowest: _of_areas(configuration, spine, lowest, totals[lowest])}


def _of_areas(configuration: Configuration, spine: Spine, number: int, totals: Ints) -> Known:
    """The totals of published areas: where one is several units of the spine, only their sum is known."""
    level, parents = spine.levels[number], spine.tree.parents[number]
    width = _PUBLISHED.get(level.name)
    if width is None or (level.name == "Block_Group" and configuration.spine.kind == "optimized"):
        return Known(totals, ())
    first = np.searchsorted(spine.tree.ancestors(number), np.arange(len(totals)))
    area = spine.blocks[first] // 10 ** (16 - width)
    order = np.argsort(area, kind="stable")
    starts = np.flatnonzero(np.diff(area[order], prepend=-1))
    own = totals.copy()
    joint: list[Joint] = []
    for units in np.split(order, starts[1:]):
        if len(units) == 1:
            continue
        if len(np.unique(parents[units])) > 1:
            raise ConfigError(
                f"invariants.{level.name}: {level.name} {area[units[0]]:0{width}d} lies in several units of the spine, "
                f"with different parents at {spine.levels[number - 1].name}, so its total cannot be kept; use a "
                "conventional spine, or keep totals of State only"
            )
        own[units] = UNKNOWN
        joint.append(Joint(tuple(units.tolist()), int(totals[units].sum())))
    return Known(own, tuple(joint))


_PUBLISHED: Final = {"State": 2, "County": 5, "Tract": 11, "Block_Group": 12}
"""Digits of a block that name the published area of a geolevel."""
