"""Noisy measurements that are drawn when the estimator asks for them, once, and kept on disk. Public."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from yupana.arrays import Ints
from yupana.topdown.budget import Spending
from yupana.topdown.draws import KeepsDraws
from yupana.topdown.evidence import MeasuredFamilies
from yupana.topdown.families import Asked, SiblingBatch, ask_all


class MeasuresAsked(Protocol):
    """Measures what is asked of geounits; the door of a run."""

    def measure(self, level: int, families: SiblingBatch, asked: Sequence[Asked]) -> tuple[Ints, ...]:
        """Noisy answers of each query of a geolevel, for the children of families."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredOnDemand:
    """Noisy answers as far as they are asked for; what has been drawn before is read from the keeper.

    An answer is on disk before anything is made of it. So a run that dies of its own noise goes on with that noise, and
    what is released in the end has the law of one draw (docs/interrupted-runs.md).

    Attributes
    ----------
    spending : Spending
    keeper : KeepsDraws
    door : MeasuresAsked
    """

    spending: Spending
    keeper: KeepsDraws
    door: MeasuresAsked

    def gather(self, level: int, families: SiblingBatch) -> MeasuredFamilies:
        """Read or draw, and keep, what the estimator reads of the children of families.

        Raises
        ------
        OutputError
            If the draws cannot be kept, or those that were kept are damaged.
        """
        spent = self.spending.levels[level]
        asked = ask_all(families, spent.queries)
        shapes = [(int(one.places(families.children)[-1]),) for one in asked]
        values = self.keeper.load_draws(level, families.first, shapes)
        if values is None:
            draw = partial(self.door.measure, level, families, asked)
            values = self.keeper.save_draws(level, families.first, shapes, draw)
        return MeasuredFamilies.of(spent, families, asked, values)
