"""What noisy measurement files cost: the plan and the shares that variances of rows tell. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Flags, Floats
from yupana.errors import InputError
from yupana.geography.spine import Spine
from yupana.plan.measurement import Measurement, Mechanism
from yupana.plan.plan import Plan
from yupana.privacy.exact import INFINITE
from yupana.release.lines import Texts
from yupana.topdown.budget import LevelSpending
from yupana.topdown.configuration import Configuration
from yupana.topdown.nmf.layout import DPQUERY
from yupana.topdown.nmf.measured import ReadLevel
from yupana.topdown.nmf.units import siblings
from yupana.topdown.plan import make_measurement, measurement_name, measurement_with
from yupana.topdown.queries import Query

_NEAR = 1e-6
"""How far, relatively, losses may differ that were read from variances of 24 binary digits."""


@dataclass(frozen=True, slots=True, eq=False)
class SpentByFiles:
    """What every geolevel was measured with, as far as files tell.

    Attributes
    ----------
    levels : tuple of LevelSpending
        Units of the same variances share a position in place of a share of a budget.
    exact : bool
        Whether every variance is one of the configuration, to the digits that the files have.
    """

    levels: tuple[LevelSpending, ...]
    exact: bool

    def lost(self, level: int) -> tuple[Fraction, ...]:
        """What a unit of each position lost in all its measurements, under bounded neighbours."""
        spent = self.levels[level]
        rows = (spent.measurements.get(position, ()) for position in range(len(spent.weights)))
        return tuple(sum((Fraction(m.budget) for m in row), Fraction(0)) for row in rows)


def spent_by(config: Configuration, levels: Sequence[tuple[str, ReadLevel]]) -> SpentByFiles:
    """Make classes of units with the same variances.

    Variances in the files are rounded to 24 binary digits. Where rounding one that the configuration can have, on any
    spine whose only children gave up their shares, gives that of the files, it is taken in its place.

    Parameters
    ----------
    config : Configuration
    levels : sequence of (str, ReadLevel)
        By geolevel, whose queries and passes are those of the level so called.

    Raises
    ------
    InputError
        If noise is not Gaussian, and a variance is none of the configuration's.
    """
    found, all_exact = [], True
    for name, level in levels:
        classes, share_of = _classes(level.variances)
        known = _possible(config, name)
        measurements: dict[int, tuple[Measurement, ...]] = {}
        for position, row in enumerate(classes):
            if not np.isfinite(row).all():
                continue
            exact = [known.get((query, float(np.float32(row[q])))) for q, query in enumerate(level.queries)]
            all_exact &= None not in exact
            measurements[position] = tuple(
                _measured(config, name, query, row[q]) if one is None else one
                for q, (query, one) in enumerate(zip(level.queries, exact, strict=True))
            )
            row[:] = [float(m.variance) for m in measurements[position]]
        with np.errstate(divide="ignore"):
            weights = np.where(np.isfinite(classes), 1 / classes, 0.0)
        ordered = config.passes[name].estimate if level.queries else ()
        passes = tuple(tuple(level.queries.index(q) for q in of) for of in ordered)
        found.append(LevelSpending(level.queries, share_of, measurements, weights, classes, passes or ((),)))
    return SpentByFiles(tuple(found), all_exact)


def _classes(variances: Floats) -> tuple[Floats, NDArray[np.int32]]:
    """The different rows, and which of them each row is."""
    if not variances.shape[1]:
        return variances[:1].copy(), np.zeros(len(variances), dtype=np.int32)
    rows = np.ascontiguousarray(variances)
    packed = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).reshape(-1)
    _, first, place = np.unique(packed, return_index=True, return_inverse=True)
    return rows[first].copy(), place.astype(np.int32)


def _possible(config: Configuration, name: str) -> dict[tuple[Query, float], Measurement]:
    """By query and rounded variance, the measurements of units that got the shares of only children."""
    if config.budget == INFINITE:
        return {}
    below = config.levels[config.levels.index(name) :]
    found = {}
    for share in accumulate(config.shares[level] for level in below):
        for query, part in config.measured(name) if share else ():
            measurement = make_measurement(config, name, query, share, part)
            found[query, float(np.float32(float(measurement.variance)))] = measurement
    return found


def _measured(config: Configuration, level: str, query: Query, variance: float) -> Measurement:
    """The measurement that a variance tells, where it is none of the configuration's."""
    if config.mechanism is not Mechanism.ZCDP:
        raise InputError(f"{level}: the variance {variance:g} of {query.name} is none of the configuration's")
    name = f"{measurement_name(level, query)} at variance {variance!r}"
    return measurement_with(config, level, query, name, 1 / Fraction(variance))


def losses_of(plan: Plan) -> tuple[Fraction, Fraction]:
    """The least and the most that was lost along a path from the root to a block, under bounded neighbours."""
    sums = [sum((Fraction(plan.measurements[i].budget) for i in path), Fraction(0)) for path in plan.paths]
    return min(sums), max(sums)


def with_shares(spine: Spine, config: Configuration, spent: SpentByFiles, total: Fraction) -> Spine:
    """The spine with the share of every geounit: what it lost, in parts of a total.

    Units that have no share at a geolevel which is measured gave it up.
    """
    lost = [spent.lost(level) for level in range(len(spine.levels))]
    shares = tuple(dict.fromkeys(loss / total for of in lost for loss in of))
    place = {share: i for i, share in enumerate(shares)}
    levels = []
    for number, (level, losses, of) in enumerate(zip(spine.levels, lost, spent.levels, strict=True)):
        index = np.array([place[loss / total] for loss in losses], dtype=np.int32)[of.share_of]
        gave_up = np.array([not loss for loss in losses], dtype=np.bool_)[of.share_of]
        bypassed = gave_up & bool(number and (of.queries or config.measured(level.name)))
        levels.append(replace(level, share=index, bypassed=bypassed))
    return replace(spine, levels=tuple(levels), shares=shares)


def refuse_missing(
    spine: Spine, config: Configuration, spent: SpentByFiles, due: Fraction, geocodes: Mapping[str, Texts]
) -> None:
    """Refuse geounits without a measurement whose share went nowhere.

    An only child is taken to have given up its share. A unit with siblings is, if every path from the root to a block
    through it lost what is due, and holds a unit that lost more than others of its geolevel.

    Parameters
    ----------
    spine : Spine
    config : Configuration
    spent : SpentByFiles
    due : Fraction
        What a path lost along which nothing is missing.
    geocodes : mapping of str to ndarray of bytes

    Raises
    ------
    InputError
    """
    tree = spine.tree
    losses = [np.array([float(loss) for loss in spent.lost(i)])[of.share_of] for i, of in enumerate(spent.levels)]
    blocks = tree.units(len(losses) - 1)
    of_block, took = np.zeros(blocks), np.zeros(blocks, dtype=np.bool_)
    for number, loss in enumerate(losses):
        here = tree.ancestors(number)
        of_block += loss[here]
        took |= (loss > loss[loss > 0].min(initial=np.inf) * (1 + _NEAR))[here]
    short = (of_block < float(due) * (1 - _NEAR)) | ~took
    for number, (level, loss) in enumerate(zip(spine.levels, losses, strict=True)):
        if not config.measured(level.name):
            continue
        lost: Flags = (loss == 0) & siblings(tree, number)
        lost &= np.bincount(tree.ancestors(number)[short], minlength=len(loss)) > 0
        if lost.any():
            code = geocodes[level.name][lost][0].decode()
            raise InputError(
                f"{DPQUERY} of {level.name}: geocode {code} has siblings and no measurement, and no geounit above or "
                "below it has its share: a partition or a file is missing; so of "
                f"{int(lost.sum()):,} geounits in all"
            )
