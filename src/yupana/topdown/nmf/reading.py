"""Read noisy measurement files: the tree, what holds exactly, every answer with the variance of its row. Public."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Final

import duckdb
import numpy as np

from yupana.arrays import Flags, Ints
from yupana.errors import InputError
from yupana.files.database import open_database
from yupana.geography.spine import Spine
from yupana.geography.tree import nest
from yupana.plan.plan import Plan
from yupana.privacy.exact import INFINITE
from yupana.progress import Progress, Stopwatch
from yupana.release.lines import Texts
from yupana.topdown import Estimator
from yupana.topdown.budget import plan_on
from yupana.topdown.configuration import Configuration
from yupana.topdown.descent.estimate import Premises
from yupana.topdown.histogram import Histogram
from yupana.topdown.nmf.constraints import (
    HeldAt,
    check_held,
    known_of,
    limits_of,
    list_units,
    read_held,
    spine_of,
    zeros_of,
)
from yupana.topdown.nmf.layout import CONSTRAINT, DPQUERY, NATION, FoundFiles
from yupana.topdown.nmf.measured import (
    FileDraws,
    ReadLevel,
    SpentByFiles,
    losses_of,
    read_level,
    refuse_missing,
    spent_by,
    with_shares,
)
from yupana.topdown.nmf.rows import LevelRows, level_rows
from yupana.topdown.plan import make_plan
from yupana.topdown.queries import TOTAL, query_named

_NOBODY: Final = b"0"

_NEAR: Final = 1e-6
"""How far, relatively, variances of 24 binary digits may differ that are equal."""


@dataclass(frozen=True, slots=True, eq=False)
class FileMeasurements:
    """What noisy measurement files tell."""

    # the tree and what holds exactly; the configuration with what the files hold of constraints and totals. The shares
    # of its spine are what units lost, in parts of the configuration's budget, or of the most that a path lost where
    # variances are none of the configuration's.
    premises: Premises
    spent: SpentByFiles  # what an estimate begins with: the sum of the states may stand for the nation
    once: SpentByFiles  # the same without that sum, so that every answer is there once
    plan: Plan  # what was measured. Where states stand for the nation, of these alone.
    draws: FileDraws
    # the least and the most that the measurements along a path from the root to a block lost, under bounded neighbours
    losses: tuple[Fraction, Fraction]


def read_measurements(
    files: FoundFiles,
    config: Configuration,
    estimator: Estimator,
    states: Mapping[int, int] | None,
    clock: Stopwatch,
    progress: Progress,
) -> FileMeasurements:
    """Read the files of a dataset.

    Where states were chosen, their sum stands for the nation. The estimator "topdown" begins with its measurement: that
    is the sum of theirs, with the sum of their variances. These answers count once all the same
    (docs/noisy-measurement-files.md): states must be measured in the same proportions. Full information adds up what is
    below by itself.

    Parameters
    ----------
    config : Configuration
        Schema, recodes, and of every geolevel its queries and the order of its passes. Constraints and totals are those
        of the files.
    estimator : "topdown", "full-information" or "posterior"
    states : mapping of int to int, or None
        Totals of states that are exact.

    Raises
    ------
    InputError
        If the files do not hold together; see `level_rows`, `read_held`, `spine_of`, `check_held`, `read_level`
        and `refuse_missing`; or states cannot stand for the nation.
    """
    chosen = files.levels != config.levels and (NATION, *files.levels) == config.levels
    if not chosen and files.levels != config.levels:
        raise InputError(
            f"{files.folder} has the geolevels {', '.join(files.levels)}, and the configuration "
            f"{', '.join(config.levels)}; a folder is missing, or --config is that of another dataset"
        )
    with open_database() as db:
        clock.start("reading the constraints")
        opened = {
            (level, kind): level_rows(db, f"{kind} of {level}", kind, files.parts[level, kind], config.schema)
            for level in files.levels
            for kind in (CONSTRAINT, DPQUERY)
        }
        held = [_held(opened[level, CONSTRAINT], level, config) for level in files.levels]
        geocodes = {level: one.geocodes for level, one in zip(files.levels, held, strict=True)}
        if chosen:
            geocodes = {NATION: np.array([_NOBODY]), **geocodes}
            held = [_sum_of(held[0]), *held]
        spine = spine_of(geocodes)
        check_held(spine, held)
        premises = _premises(config, spine, held, states)
        clock.start("reading the measurements")
        found = _levels(db, opened, premises, geocodes, progress, estimator if chosen else None)
    _check_root(found, estimator)
    return found


def _check_root(found: FileMeasurements, estimator: Estimator) -> None:
    """Refuse a root of which nothing is known."""
    measured = (found.spent.levels[0].weights > 0).any()
    if estimator == "topdown" and not measured and 0 not in found.premises.known:
        raise InputError(
            f"{found.premises.spine.levels[0].name} has neither a measurement nor a total, so nothing tells how many "
            "records there are; give the totals of states by --totals, or use --estimator full-information"
        )


def _held(rows: LevelRows | None, level: str, config: Configuration) -> HeldAt:
    if rows is None:
        raise InputError(f"{CONSTRAINT} of {level}: there are no files, and nothing else lists the geounits of {level}")
    return read_held(rows, config.schema)


def _sum_of(states: HeldAt) -> HeldAt:
    """What holds of the sum of some states."""

    def added(values: Ints | None) -> Ints | None:
        return None if values is None else values.sum(axis=0, keepdims=True)

    geocodes: Texts = np.array([_NOBODY])
    return HeldAt(geocodes, added(states.totals), added(states.lower), added(states.upper), states.zeros)


def _premises(config: Configuration, spine: Spine, held: list[HeldAt], states: Mapping[int, int] | None) -> Premises:
    known = known_of(config, spine, held, states)
    limits = limits_of(spine.tree, held, known)
    total = query_named(TOTAL, config.schema, {})
    own = replace(
        config,
        structural_zeros=zeros_of(held),
        group_quarters=config.schema.names[0] if limits else None,
        invariants={spine.levels[number].name: (total,) for number in sorted(known)},
    )
    return Premises(own, spine, limits, known)


def _levels(
    db: duckdb.DuckDBPyConnection,
    opened: Mapping[tuple[str, str], LevelRows | None],
    premises: Premises,
    geocodes: Mapping[str, Texts],
    progress: Progress,
    summing: Estimator | None,
) -> FileMeasurements:
    """Read the measurements of every geolevel; ``summing`` is the estimator where states stand for the nation."""
    config, spine = premises.configuration, premises.spine
    read: list[tuple[str, ReadLevel]] = []
    draws = FileDraws()
    if summing is not None:
        draws.add_sum()
    for number, name in enumerate(spine.tree.names):
        if (name, DPQUERY) not in opened:
            continue
        rows = opened[name, DPQUERY]
        list_units(db, geocodes[name])
        level = read_level(rows, config, name, spine.tree.units(number))
        draws.add(rows, level, partial(progress, f"reading {name}"))
        read.append((name, level))
    spent = spent_by(config, read)
    once = spent
    if summing is not None:
        # A root of which nothing was measured.
        spent = once = _below(ReadLevel((), (), np.zeros((1, 0))), config, read[0][0], spent)
    if summing == "topdown":
        _check_proportions(*read[0], geocodes)
        _check_possible(read[0][0], premises, geocodes)
        # Where the answers of states are added up, their variances are.
        summed = replace(read[0][1], variances=read[0][1].variances.sum(axis=0, keepdims=True))
        spent = _below(summed, config, read[0][0], replace(spent, levels=spent.levels[1:]))
    plan = plan_on(make_plan(config), spine.tree, once.levels)
    least, most = losses_of(plan)
    total = Fraction(config.budget) if spent.exact and config.budget != INFINITE else most
    refuse_missing(spine, config, once, most if summing is not None else total, geocodes)
    shared = replace(premises, spine=with_shares(spine, once, total or Fraction(1)))
    return FileMeasurements(shared, spent, once, plan, draws, (least, most))


def _check_possible(name: str, premises: Premises, geocodes: Mapping[str, Texts]) -> None:
    """Refuse states that cannot have the same groups: noise of what one cannot have would count in the sum."""
    if premises.limits is None:
        return
    possible = premises.limits[1].upper > 0
    odd = (possible != possible[0]).any(axis=1)
    if odd.any():
        code, first = geocodes[name][odd][0].decode(), geocodes[name][0].decode()
        raise InputError(
            f"{CONSTRAINT} of {name}: geocodes {code} and {first} cannot have the same groups, and the sum of such "
            "states cannot stand for the nation; name one of them by --states, or use --estimator full-information"
        )


def _below(root: ReadLevel, config: Configuration, name: str, spent: SpentByFiles) -> SpentByFiles:
    """What was measured below a root that is no measurement itself, and is asked what a geolevel is."""
    top = replace(spent_by(config, [(name, root)]).levels[0], measurements={})
    return replace(spent, levels=(top, *spent.levels))


def _check_proportions(name: str, states: ReadLevel, geocodes: Mapping[str, Texts]) -> None:
    """Refuse states whose sum does not weigh their answers as they do themselves."""
    advice = "and the sum of such states cannot stand for the nation; use --estimator full-information"
    if not states.measured.all():
        code = geocodes[name][~states.measured][0].decode()
        raise InputError(f"{DPQUERY} of {name}: geocode {code} has no measurement, {advice}")
    relative = states.variances / states.variances[:, :1]
    odd = (np.abs(relative - relative[0]) > _NEAR * relative[0]).any(axis=1)
    if odd.any():
        code, first = geocodes[name][odd][0].decode(), geocodes[name][0].decode()
        raise InputError(
            f"{DPQUERY} of {name}: the variances of geocode {code} are in other proportions than those of {first}, "
            f"{advice}"
        )


MOVED: Final = {
    "010039900000001": "010030108002009",
    "060739901000002": "060730187001280",
    "060759902000001": "060750179031031",
    "120759900000008": "120759704001101",
    "120869900000022": "120860080002011",
    "250259901010031": "250250503001006",
    "360819901000002": "360810916041000",
    "410079900000010": "410079511004030",
    "450299901000001": "450299708003004",
    "450539901000002": "450539503024009",
    "481679901000039": "481677239003135",
    "530099901000035": "530090019021025",
    "530619900020017": "530610401004007",
    "550259917020003": "550250032001000",
    "721039900130009": "721031704004006",
}
"""By the 15 digits of a block of the spine those of the block that its counts are published in."""


def tabulated(spine: Spine, counts: Histogram) -> tuple[Spine, Histogram, dict[str, str]]:
    """Move the counts of these blocks as the Census Bureau did, where they are there.

    A block whose target is on the spine, too, is taken off it, with the units that hold no other; one whose target is
    not takes its name.

    Parameters
    ----------
    counts : Histogram
        Of its blocks.

    Returns
    -------
    tuple
        The spine and the counts, and which blocks were moved.
    """
    pairs = [(_sixteen(source), _sixteen(target), source) for source, target in MOVED.items()]
    there = [pair for pair in pairs if pair[0] in spine.blocks]
    if not there:
        return spine, counts, {}
    ends = [block for source, target, _ in there for block in (source, target)]
    places = spine.places(np.array(ends, dtype=np.int64)).tolist()
    place = {block: at for block, at in zip(ends, places, strict=True) if at >= 0}
    code, goes = spine.blocks.copy(), np.arange(len(spine.blocks))
    for source, target, _ in there:
        if target in place:
            goes[place[source]] = place[target]
        else:
            code[place[source]] = target
    last = replace(spine.levels[-1], code=code)
    moved = counts.sum_to(goes, counts.units)
    stays = goes == np.arange(len(goes))
    renamed = Spine(spine.tree, (*spine.levels[:-1], last), spine.shares)
    kept = moved.sum_to(np.where(stays, np.cumsum(stays) - 1, -1), int(stays.sum()))
    return _without(renamed, stays), kept, {name: MOVED[name] for *_, name in there}


def published_in(blocks: Ints) -> Ints:
    """The block that the counts of each block are published in: another one for some that lie in water."""
    found = blocks.copy()
    for source, target in MOVED.items():
        found[found == _sixteen(source)] = _sixteen(target)
    return found


def _sixteen(block: str) -> int:
    """The digits of a block with that of its block group, which the number of the block repeats."""
    return int(block[:12] + block[11:])


def _without(spine: Spine, stays: Flags) -> Spine:
    """The spine of some of its blocks."""
    units = [spine.tree.ancestors(level)[stays] for level in range(len(spine.levels))]
    tree, firsts = nest(spine.tree.names, [of.astype(np.int64) for of in units])
    levels = []
    for level, of, first in zip(spine.levels, units, firsts, strict=True):
        here = of[first]
        parts = {name: getattr(level, name)[here] for name in ("code", "part", "share", "bypassed")}
        levels.append(replace(level, **parts))
    return Spine(tree, tuple(levels), spine.shares)
