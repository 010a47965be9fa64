"""District plans: which district each block of a spine lies in, as a file of anybody's says. Public."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from yupana.arrays import Flags, Ints
from yupana.errors import InputError
from yupana.files.code_tables import open_codes
from yupana.files.delimited import DelimitedFile, Labels, positions, shown
from yupana.geography.kinds import (
    BLOCK_WIDTH,
    BlockDigits,
    block_column,
    block_names,
    is_block,
    on_lost_zeros,
    written_blocks,
)
from yupana.geography.spine import Spine
from yupana.geography.tree import Members, partition
from yupana.geography.vintages import vintage_of

_DISTRICT: Final = "district"
_SHOWN: Final = 3
_DIGITS: Final = 19
_ENDS: Final = ("from", "to")
_NO_DISTRICT: Final = re.compile(
    r"z{2,}|un-?assigned|(?:not|un) ?(?:assigned|defined)|no district|#?n/?a|nan|<na>|none|null|-+1?|[.?]",
    re.IGNORECASE,
)
"""What says that a block is in no district: ZZ in block assignment files of the Census Bureau, and words of others."""


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """How a plan is read."""

    encoding: str | None = None  # of the text of plan and crosswalk, if not UTF-8
    # the district of blocks that are in none; they and those without a district are kept apart
    unassigned: str | None = None
    crosswalk: Path | None = None  # a table of blocks as the plan has them and as the release does


@dataclass(frozen=True, slots=True, eq=False)
class DistrictPlan:
    """Which district each block of a spine lies in."""

    districts: tuple[str, ...]  # by number, and those that are no numbers before them
    members: Members  # every block of the spine in one district; those kept apart in one more, the last
    beyond: int  # how many of its blocks the release has and the spine leaves out
    apart: int  # how many blocks of the spine are kept apart
    notes: tuple[str, ...]  # how codes were changed


def read_plan(
    path: Path,
    spine: Spine,
    others: Callable[[], Ints],
    options: PlanOptions = PlanOptions(),
    people: Callable[[Flags], float] | None = None,
) -> DistrictPlan:
    """Read a plan for the blocks of a spine.

    Parameters
    ----------
    path : Path
        A table as of `open_codes`, with or without a header. The blocks' column is called `block` or by one of the
        Bureau's names, or is the one that begins with a block, of 15 or 16 digits, or as the spine has them where its
        codes are no digits; the other column, or `district` among several, is the district.
    others : callable
        Gives more blocks, in order, that the release has and its spine leaves out: nobody lives there, and a plan may
        have them or not. Asked if the plan has blocks that the spine does not.
    people : callable, optional
        How many a release has in blocks of its spine that are flagged; told of those that a crosswalk loses.

    Raises
    ------
    InputError
        Naming all that is wrong: columns, blocks that are unknown, listed twice, left out or in no district, and a
        plan of a single district; or what a crosswalk loses.
    """
    listed = _read(path, spine, others, options)
    at, on_spine, left_out, last = listed.places, listed.places >= 0, listed.unknown, spine.levels[-1]
    none, apart = _without(listed.districts, options.unassigned)
    counted = np.bincount(at[on_spine], minlength=len(spine.blocks))
    outside = (at < 0) & ~left_out
    again = _again(np.where(on_spine, at, -1 - listed.codes), listed.districts.index, ~left_out)
    lost = counted == 0
    total = f", where the release has {people(lost):,.10g}" if people and options.crosswalk and lost.any() else ""
    words = {listed.districts.labels[i] for i in listed.districts.index[none & (listed.districts.index >= 0)].tolist()}
    said = f" ({', '.join(sorted(words))})" if words else ""
    vintage = vintage_of(listed.codes[left_out], spine.blocks) if not last.names else ""
    faults = [
        *_fault("not in the release", map(listed.name, np.flatnonzero(left_out).tolist())),
        *([f"  {vintage}; --crosswalk FILE translates blocks"] if vintage and not options.crosswalk else []),
        *_fault("listed twice", map(listed.name, np.flatnonzero(again[0]).tolist())),
        *_fault("listed twice, in two districts", map(listed.name, np.flatnonzero(again[1]).tolist())),
        *_fault(f"left out{total}", (last.labels(one, one + 1)[0] for one in np.flatnonzero(lost).tolist())),
        *_fault(f"in no district{said}", map(listed.name, np.flatnonzero(none & ~left_out).tolist())),
        *([f"  {_advice(options.unassigned)}"] if (none & ~left_out).any() else []),
    ]
    used = np.unique(listed.districts.index[~none & ~apart & ~left_out])
    labels = sorted((listed.districts.labels[i] for i in used.tolist()), key=_by_number)
    if len(labels) == 1:
        faults.append(f"there is one district alone, {labels[0]}; a plan has several")
    if faults:
        raise InputError("\n  ".join([f"{path} is no plan for the blocks of the release:", *faults]))
    order = {label: number for number, label in enumerate(labels)}
    of_label = np.array([*(order.get(label, len(labels)) for label in listed.districts.labels), len(labels)])
    district = np.empty(len(spine.blocks), dtype=np.int32)
    district[at[on_spine]] = of_label[listed.districts.index[on_spine]]
    kept_apart = int((district == len(labels)).sum())
    members = partition(district, len(labels) + (kept_apart > 0))
    return DistrictPlan(tuple(labels), members, int(outside.sum()), kept_apart, listed.notes)


@dataclass(frozen=True, slots=True, eq=False)
class _Listed:
    """The rows of a plan: the place of each block on the spine or -1, its code, whether it is unknown, its district."""

    places: Ints
    codes: Ints
    labels: tuple[str, ...]
    unknown: Flags
    districts: Labels
    notes: tuple[str, ...]

    def name(self, row: int) -> str:
        code = int(self.codes[row])
        return f"{code:0{BLOCK_WIDTH}d}" if not self.labels else self.labels[code] if code >= 0 else "no code"


def _read(path: Path, spine: Spine, others: Callable[[], Ints], options: PlanOptions) -> _Listed:
    if spine.levels[-1].names and options.crosswalk:
        raise InputError("--crosswalk: translates blocks of the Census Bureau, and the release has areas of its own")
    with open_codes(path, encoding=options.encoding, names_of=block_names) as file:
        column, other = _columns(file)
        districts = file.texts(other, nines=True, whole=True)
        if spine.levels[-1].names:
            return _by_name(file, column, spine, districts)
        written = written_blocks(file, column)
        known = np.sort(spine.blocks)
        codes, lost = written.whole(known)
        if (positions(codes, known) < 0).any():
            known = np.union1d(known, others())
            codes, lost = written.whole(known)
        notes = [on_lost_zeros(file, column, lost)]
    if options.crosswalk:
        codes, districts, note = _translated(options.crosswalk, options.encoding, written, known, districts)
        notes.append(note)
    return _Listed(spine.places(codes), codes, (), positions(codes, known) < 0, districts, tuple(filter(None, notes)))


def _by_name(file: DelimitedFile, column: str, spine: Spine, districts: Labels) -> _Listed:
    """The rows of a plan for areas of a configuration, which may have lost leading zeros, too."""
    texts = file.texts(column, nines=True)
    place = {code: i for i, code in enumerate(spine.levels[-1].labels())}
    widths = range(1, max(map(len, place), default=0) + 1)
    codes = [
        next((filled for filled in (code, *(code.zfill(n) for n in widths)) if filled in place), code)
        if code.isdecimal()
        else code
        for code in texts.labels
    ]
    known = np.array([place.get(code, -1) for code in codes] + [-1], dtype=np.int64)[texts.index]
    lost = np.array([*(new != old for new, old in zip(codes, texts.labels, strict=True)), False])[texts.index]
    notes = tuple(filter(None, [on_lost_zeros(file, column, lost)]))
    return _Listed(known, texts.index.astype(np.int64), texts.labels, known < 0, districts, notes)


def _columns(file: DelimitedFile) -> tuple[str, str]:
    """The columns of blocks and of districts."""
    blocks = block_column(file)
    others = [name for name in file.header if name and name != blocks]
    named = [name for name in others if name.lower() == _DISTRICT]
    chosen = named if len(named) == 1 else others
    if len(chosen) != 1:
        raise InputError(
            f"{file.path}, line 1: columns {shown(file.header)}; a plan has one column of blocks, and one of "
            f"districts, called {_DISTRICT} if there are others"
        )
    return blocks, chosen[0]


def _without(districts: Labels, unassigned: str | None) -> tuple[Flags, Flags]:
    """Which rows are in no district, and which of these are to be kept apart instead."""
    empty = districts.index < 0
    of_label = np.array([_NO_DISTRICT.fullmatch(label) is not None for label in districts.labels] + [True])
    none = of_label[districts.index]
    if unassigned is None:
        return none, np.zeros_like(none)
    apart = np.array([*(label == unassigned for label in districts.labels), False])[districts.index] | empty
    return none & ~apart, apart


def _advice(unassigned: str | None) -> str:
    if unassigned is None:
        return "assign them, or say --unassigned CODE to keep them apart"
    return f"assign them, or write {unassigned or 'nothing'} in their place"


def _again(blocks: Ints, district: np.ndarray[tuple[int], np.dtype[np.int32]], known: Flags) -> tuple[Flags, Flags]:
    """Which rows are of a block that another row has, in the same district, and in another."""
    _, place, times = np.unique(blocks, return_inverse=True, return_counts=True)
    twice = known & (times[place] > 1)
    low = np.full(len(times), np.iinfo(np.int32).max, dtype=np.int32)
    high = np.full(len(times), -2, dtype=np.int32)
    np.minimum.at(low, place, district)
    np.maximum.at(high, place, district)
    differ = (low != high)[place]
    return twice & ~differ, twice & differ


def _translated(
    path: Path, encoding: str | None, plan: BlockDigits, known: Ints, districts: Labels
) -> tuple[Ints, Labels, str]:
    """The blocks of the release that a crosswalk makes of those of a plan, each once; their districts, and a note."""
    start, end, turned = _crosswalk(path, encoding, known)
    codes, _ = plan.whole(np.union1d(known, start))
    once, first = np.unique(start, return_index=True)
    at = positions(codes, once)
    used = np.isin(start, codes)
    pairs = np.unique(np.stack([start[used], end[used]]), axis=1)
    several = np.unique(pairs[0][1:][pairs[0][1:] == pairs[0][:-1]])
    astray = np.unique(pairs[0][positions(pairs[1], known) < 0])
    lost = np.unique(codes[(at < 0) & (positions(codes, known) < 0)])
    faults = [
        *_fault("in several blocks of the release by it", map(_label, several.tolist())),
        *_fault(
            "led to what is no block of the release",
            map(_label, astray.tolist()),
        ),
        *_fault("neither in it nor in the release", map(_label, lost.tolist())),
    ]
    if faults:
        raise InputError("\n  ".join([f"{path} does not translate the blocks of the plan:", *faults]))
    new = np.where(at >= 0, end[first][at], codes)
    # Blocks that became one are there once if they have one district.
    pairs, kept = np.unique(np.stack([new, districts.index.astype(np.int64)]), axis=1, return_index=True)
    joined = np.zeros(len(new), dtype=np.bool_)
    joined[kept] = True
    same = np.unique(codes, return_counts=True)
    joined |= np.isin(codes, same[0][same[1] > 1])
    moved = int((new != codes).sum())
    note = f"{path.name}: {moved:,} of {len(codes):,} blocks of the plan were translated{turned}"
    return new[joined], districts.of(joined), note


def _crosswalk(path: Path, encoding: str | None, known: Ints) -> tuple[Ints, Ints, str]:
    """The blocks that a crosswalk leads from, and to, of shape (rows,); and what is said if the columns were turned."""
    with open_codes(
        path,
        encoding=encoding,
        names_of=lambda fields: _ENDS if len(fields) == len(_ENDS) and all(map(is_block, fields)) else None,
    ) as file:
        header = [name for name in file.header if name]
        named = all(file.has(name) for name in _ENDS)
        columns = list(_ENDS) if named else [name for name in header if is_block(file.field(0, name))]
        if len(columns) != len(_ENDS):
            raise InputError(
                f"{path}, line 1: columns {shown(header)}; call that of the plan's blocks from, and that of the "
                "release's to"
            )
        start, end = (written_blocks(file, column).whole(known)[0] for column in columns)
        share, other = (float((positions(blocks, known) >= 0).mean()) for blocks in (start, end))
        if not named and share > other:
            return end, start, f", from {columns[1]} to {columns[0]}"
        return start, end, ""


def _label(block: int) -> str:
    return f"{block:0{BLOCK_WIDTH}d}"


def _fault(words: str, blocks: Iterable[str]) -> list[str]:
    """How many blocks have a fault, and the first few; nothing of none."""
    found = list(dict.fromkeys(blocks))
    if not found:
        return []
    more = ", ..." if len(found) > _SHOWN else ""
    number = f"{len(found):,} block{'s are' if len(found) > 1 else ' is'}"
    return [f"{number} {words}: {', '.join(found[:_SHOWN])}{more}"]


def _by_number(label: str) -> tuple[int, str]:
    return (int(label), label) if label.isdecimal() and len(label) < _DIGITS else (0, label)
