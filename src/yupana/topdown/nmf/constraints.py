"""What the Constraint files say: the tree of geounits, exact totals, bounds by group, cells that nobody has. Public.

A prefix of a geocode, of the right width, is the geounit above.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import prod

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Ints
from yupana.errors import InputError
from yupana.files.database import store_arrays
from yupana.geography.spine import Geolevel, Spine
from yupana.geography.tree import Tree
from yupana.release.lines import Texts, cut
from yupana.topdown.configuration import Configuration
from yupana.topdown.constraints import UNKNOWN, Known, Limits, kept_areas, known_of_areas, limits_by_level
from yupana.topdown.nmf.layout import BLOCK_DIGITS, BRANCH_AND_STATE, CONSTRAINT, COUNTY, NATION, SUMMED, WHOLE
from yupana.topdown.nmf.rows import LevelRows, RowKind, zero_of
from yupana.topdown.queries import TOTAL, Schema, query_named

_NUMBERS = 18
"""Digits that a whole number of 64 bits holds."""


def spine_of(geocodes: Mapping[str, Texts]) -> Spine:
    """Make the spine of the geounits of all geolevels, each in the order of its geocodes.

    It has no shares: what each unit was measured with is told by variances.

    Parameters
    ----------
    geocodes : mapping of str to ndarray of bytes
        By geolevel, from the root down, in order and each once. Those of the nation are not looked at.

    Raises
    ------
    InputError
        If they are no digits, differ in width, or do not nest; naming all faults.
    """
    faults: list[str] = []
    for level, codes in geocodes.items():
        faults += [] if level == NATION else _shape(level, codes)
    if faults:
        raise InputError("\n".join(faults))
    parents = [np.zeros(len(next(iter(geocodes.values()))), dtype=np.int32)]
    named = list(geocodes.items())
    for (above, upper), (below, lower) in pairwise(named):
        parents.append(_parents(above, upper, below, lower, faults))
    top, codes = named[0]
    if len(codes) != 1:
        faults.append(
            f"{top}, the first geolevel, has {len(codes)} geounits and must have one; name states by --states"
        )
    faults += _digits_of_areas(geocodes)
    if faults:
        raise InputError("\n".join(faults))
    levels = tuple(_geolevel(level, codes) for level, codes in named)
    return Spine(Tree(tuple(geocodes), tuple(parents)), levels, ())


def _shape(level: str, codes: Texts) -> list[str]:
    lengths = np.unique(np.char.str_len(codes))
    if len(lengths) > 1:
        return [
            f"{level}: geocodes have {' and '.join(map(str, lengths.tolist()))} characters, and must have as many each"
        ]
    if not np.char.isdigit(codes).all():
        return [f"{level}: geocode {codes[~np.char.isdigit(codes)][0].decode()!r} must be digits"]
    return []


def _parents(
    above: str, upper: Texts, below: str, lower: Texts, faults: list[str]
) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """The position of each unit's parent; adds what is wrong."""
    if above == NATION:
        return np.zeros(len(lower), dtype=np.int32)
    width, own = upper.dtype.itemsize, lower.dtype.itemsize
    needed = width + (BLOCK_DIGITS if below == "Block" else 1)
    if own < needed or (below == "Block" and own != needed):
        faults.append(
            f"{below}: geocodes have {own} characters, which is too narrow for children of {above} with {width}"
            if own < needed
            else f"{below}: geocodes have {own} characters, and must have {needed}: those of {above} and {BLOCK_DIGITS}"
        )
        return np.zeros(len(lower), dtype=np.int32)
    prefix = lower.astype(f"S{width}")
    at = np.minimum(np.searchsorted(upper, prefix), len(upper) - 1)
    orphans = upper[at] != prefix
    if orphans.any():
        faults.append(
            f"{above}: {_few(np.unique(prefix[orphans]))} is not listed in its Constraint files, and geounits of "
            f"{below} lie in it: a partition is missing"
        )
    childless = np.setdiff1d(np.arange(len(upper)), at[~orphans])
    if len(childless):
        faults.append(f"{below}: nothing lies in {_few(upper[childless])} of {above}: a partition is missing")
    return at.astype(np.int32)


def _few(codes: Texts) -> str:
    more = f" and {len(codes) - 3:,} more" if len(codes) > 3 else ""
    return ", ".join(code.decode() for code in codes[:3].tolist()) + more


def _digits_of_areas(geocodes: Mapping[str, Texts]) -> list[str]:
    """Whether the digits of states, counties and blocks within geocodes agree."""
    level, codes = list(geocodes.items())[-1]
    if level != "Block":
        return [f"{level} is the last geolevel; the files of Block are missing"]
    states = codes.astype(f"S{BRANCH_AND_STATE}")
    width = codes.dtype.itemsize
    faults = []
    blocks = cut(codes, width - BLOCK_DIGITS, width)
    if (odd := cut(states, 1, BRANCH_AND_STATE) != cut(blocks, 0, 2)).any():
        faults.append(f"Block: geocode {codes[odd][0].decode()} begins with another state than its last 16 digits")
    county = BRANCH_AND_STATE + len(COUNTY)
    if "County" in geocodes:
        plain = cut(codes, BRANCH_AND_STATE, county) == COUNTY.encode()
        if (odd := plain & (cut(codes, county, county + 3) != cut(blocks, 2, 5))).any():
            faults.append(f"Block: geocode {codes[odd][0].decode()} holds another county than its last 16 digits")
    if (odd := cut(blocks, 11, 12) != cut(blocks, 12, 13)).any():
        faults.append(f"Block: {blocks[odd][0].decode()} has another block group than its block number says")
    if len(np.unique(blocks)) < len(blocks):
        faults.append("Block: the last 16 digits of two geocodes are the same")
    return faults


def _geolevel(level: str, codes: Texts) -> Geolevel:
    number, width, names = np.arange(len(codes)), 0, tuple[str, ...]()
    if level == "Block":
        width = BLOCK_DIGITS
        number = cut(codes, codes.itemsize - width, codes.itemsize).astype(np.int64)
    elif level != NATION and codes.dtype.itemsize <= _NUMBERS:
        number, width = codes.astype(np.int64), codes.dtype.itemsize
    elif level != NATION:
        names = tuple(code.decode() for code in codes.tolist())
    return Geolevel.whole(level, width, number, names=names)


def sum_up(tree: Tree, level: int, values: Ints) -> Ints:
    """Add values of the units of a geolevel to those above, along the first axis."""
    first = np.flatnonzero(np.diff(tree.parents[level], prepend=-1))
    return np.asarray(np.add.reduceat(values, first, axis=0), dtype=np.int64)


def siblings(tree: Tree, level: int) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Which units of a geolevel are not the only one of their parent."""
    if level == 0:
        return np.zeros(1, dtype=np.bool_)
    return np.asarray(tree.children(level - 1)[tree.parents[level]] > 1)


@dataclass(frozen=True, slots=True, eq=False)
class HeldAt:
    """What holds of the geounits of one geolevel, in the order of their geocodes."""

    geocodes: Texts  # shape (units,)
    totals: Ints | None = None  # shape (units,), or None
    lower: Ints | None = None  # shape (units, groups), or None
    upper: Ints | None = None  # shape (units, groups), or None
    zeros: frozenset[tuple[int | None, ...]] = field(default_factory=frozenset)  # as `Configuration.structural_zeros`


def read_held(rows: LevelRows, schema: Schema) -> HeldAt:
    """Read the constraints of a geolevel.

    Raises
    ------
    InputError
        If a constraint is none that can be kept, or a geounit lacks one that others have, or has it twice.
    """
    geocodes = rows.geocodes()
    list_units(rows.database, geocodes)
    read = _values(rows, len(geocodes))
    found: dict[str, Ints] = {}
    zeros: set[tuple[int | None, ...]] = set()
    for kind, values in zip(rows.kinds, read, strict=True):
        zero = zero_of(kind, schema)
        if zero is not None and not values.any():
            zeros.add(zero)
        elif (role := _role(kind, schema)) is not None:
            found[role] = values
        elif not (kind.sign == ">=" and values.max(initial=0) <= 0):  # what is not negative is no news
            raise InputError(
                f"{rows.place}: {kind.name} ({kind.sign}, {', '.join(kind.axes)}) is no constraint that can be kept: "
                f"exact totals, bounds by the levels of {schema.names[0]}, and single cells that are 0 are"
            )
    totals = found["="][:, 0] if "=" in found else None
    return HeldAt(geocodes, totals, found.get(">="), found.get("<="), frozenset(zeros))


def list_units(database: duckdb.DuckDBPyConnection, geocodes: Texts) -> None:
    """Make the table "units" of geocodes and their places."""
    names = np.char.decode(geocodes, "ascii").astype(object)
    store_arrays(database, "units", {"geocode": names, "place": np.arange(len(geocodes))})


def _role(kind: RowKind, schema: Schema) -> str | None:
    """The sign of a constraint on totals, or on bounds of the levels of the first attribute."""
    rest = all(axis == SUMMED for axis in kind.axes[1:])
    if kind.sign == "=":
        return "=" if rest and kind.axes[0] == SUMMED and prod(kind.shape) == 1 else None
    kept = kind.axes[0] in {WHOLE, schema.names[0]} and kind.shape[0] == schema.shape[0]
    return kind.sign if rest and kept and kind.sign in {">=", "<="} else None


def _values(rows: LevelRows, units: int) -> list[Ints]:
    """The numbers of all constraints, each of shape (units, size)."""
    names, sizes = [kind.name for kind in rows.kinds], [prod(kind.shape) for kind in rows.kinds]
    values = [np.zeros((units, size), dtype=np.int64) for size in sizes]
    times = np.zeros((len(names), units), dtype=np.int64)
    for q, unit, numbers in rows.answers(names, sizes):
        values[q][unit] = numbers
        times[q] += np.bincount(unit, minlength=units)
    for name, of in zip(names, times, strict=True):
        if (of > 1).any():
            raise InputError(f"{rows.place}: {name} is there twice of {int((of > 1).sum()):,} geounits")
        if (of < 1).any():
            raise InputError(
                f"{rows.place}: {name} is missing of {int((of < 1).sum()):,} of {units:,} geounits that have others"
            )
    return values


def check_held(spine: Spine, held: Sequence[HeldAt]) -> None:
    """Refuse constraints that contradict each other.

    Sums of what holds of geounits are compared with what holds of the geounit above. Bounds from below of group
    quarters are numbers of facilities, which add up: more of them above than below means that geounits are missing.

    Raises
    ------
    InputError
        Naming all faults.
    """
    faults: list[str] = []
    for number, here in enumerate(held):
        name = spine.levels[number].name
        if (here.lower is None) != (here.upper is None):
            faults.append(f"{CONSTRAINT} of {name}: has bounds from one side alone")
        elif here.lower is not None and here.upper is not None:
            _compare(
                faults, name, here.geocodes, (here.lower > here.upper).any(axis=1), "the lower bound is above the upper"
            )
            if here.totals is not None:
                beyond = (here.lower.sum(axis=1) > here.totals) | (here.upper.sum(axis=1) < here.totals)
                _compare(faults, name, here.geocodes, beyond, "the total lies outside the sums of its bounds")
        if here.totals is not None:
            _compare(faults, name, here.geocodes, here.totals < 0, "the total is negative")
        if number + 1 < len(held):
            _compare_below(faults, spine, number, here, held[number + 1])
    if faults:
        raise InputError("\n".join(faults))


def _compare_below(faults: list[str], spine: Spine, number: int, here: HeldAt, below: HeldAt) -> None:
    name, next_name = spine.levels[number].name, spine.levels[number + 1].name
    if here.totals is not None and below.totals is not None:
        odd = sum_up(spine.tree, number + 1, below.totals) != here.totals
        text = f"the total is not the sum of those of {next_name}: one is wrong, or a partition is missing"
        _compare(faults, name, here.geocodes, odd, text)
    if here.lower is None or here.upper is None or below.lower is None:
        return
    lower = sum_up(spine.tree, number + 1, below.lower)
    _compare(faults, name, here.geocodes, (lower > here.upper).any(axis=1), f"bounds of {next_name} exceed its own")
    # Where one group alone can hold anybody, a known total raises its bound.
    several = (here.upper > 0).sum(axis=1) > 1
    odd = several & (here.lower[:, 1:] != lower[:, 1:]).any(axis=1)
    text = f"it has other numbers of facilities than {next_name}: a partition is missing (name states by --states)"
    _compare(faults, name, here.geocodes, odd, text)


def _compare(faults: list[str], level: str, geocodes: Texts, odd: NDArray[np.bool_] | np.bool_, text: str) -> None:
    if odd.any():
        more = f"; so {int(odd.sum()) - 1:,} more" if odd.sum() > 1 else ""
        faults.append(f"{CONSTRAINT} of {level}, geocode {geocodes[odd][0].decode()}: {text}{more}")


def limits_of(tree: Tree, held: Sequence[HeldAt], known: Mapping[int, Known]) -> tuple[Limits, ...] | None:
    """Bounds of every geolevel: what follows from those of the blocks and from totals, and what the files say.

    Raises
    ------
    InputError
        If geolevels have bounds and the blocks have none, or bounds leave nothing between them.
    """
    last = held[-1]
    if last.lower is None or last.upper is None:
        if any(one.lower is not None for one in held):
            raise InputError(f"{CONSTRAINT} of {tree.names[-1]}: has no bounds, and geolevels above have some")
        return None
    totals, joint = ({level: getattr(one, name) for level, one in known.items()} for name in ("totals", "joint"))
    computed = limits_by_level(tree, Limits(last.lower, last.upper), totals, joint)
    found = []
    for number, (follows, here) in enumerate(zip(computed, held, strict=True)):
        limits = follows
        if here.lower is not None and here.upper is not None:
            limits = Limits(np.maximum(follows.lower, here.lower), np.minimum(follows.upper, here.upper))
        odd = (limits.lower > limits.upper).any(axis=1)
        if odd.any():
            raise InputError(
                f"{CONSTRAINT} of {tree.names[number]}: bounds of {int(odd.sum()):,} geounits contradict those of the "
                "blocks in them or the totals"
            )
        found.append(limits)
    return tuple(found)


def known_of(
    config: Configuration, spine: Spine, held: Sequence[HeldAt], states: Mapping[int, int] | None
) -> dict[int, Known]:
    """The totals that are exact, by geolevel: of every unit where the files have them, and those of states.

    Parameters
    ----------
    states : mapping of int to int, or None
        By the two digits of a state its total, over all its branches.

    Raises
    ------
    InputError
        If a state has no total, or totals contradict each other.
    ConfigError
        If the total of a state cannot be kept on the spine.
    """
    found: dict[int, Known] = {}
    lowest = max((number for number, one in enumerate(held) if one.totals is not None), default=-1)
    for number in range(lowest, -1, -1):
        totals = held[number].totals
        if totals is None:
            totals = sum_up(spine.tree, number + 1, found[number + 1].totals)
        found[number] = Known(totals, ())
    if states is None:
        return found
    kept = kept_areas(replace(config, invariants={_STATE: (query_named(TOTAL, config.schema, {}),)}), spine)
    if kept is None:
        raise InputError("--totals: there are no states")
    codes = np.unique(spine.blocks // 10**14).tolist()
    if missing := [f"{code:02d}" for code in codes if code not in states]:
        raise InputError(f"--totals: has no total of {', '.join(missing)}, of which there are measurements")
    areas = np.array([states[code] for code in codes], dtype=np.int64)
    for number, known in known_of_areas(kept, areas).items():
        _agree(spine.levels[number].name, found.setdefault(number, known), known)
    return found


_STATE = "State"


def _agree(level: str, one: Known, other: Known) -> None:
    """Refuse totals of the same geolevel that differ."""
    both = (one.totals != UNKNOWN) & (other.totals != UNKNOWN)
    joint = [int(one.totals[list(of.units)].sum()) - of.total for of in other.joint if not one.joint]
    odd = np.append((one.totals - other.totals)[both], joint)
    if odd.any():
        raise InputError(
            f"--totals: contradicts the totals of {level} in the files, which are exact: they differ by "
            f"{int(np.abs(odd).max()):,}"
        )


def zeros_of(held: Sequence[HeldAt]) -> tuple[tuple[int | None, ...], ...]:
    """The cells that nobody has, in order; what nobody has at one geolevel, nobody has at any."""
    found = frozenset[tuple[int | None, ...]]().union(*(one.zeros for one in held))
    return tuple(sorted(found, key=lambda levels: tuple(-1 if one is None else one for one in levels)))
