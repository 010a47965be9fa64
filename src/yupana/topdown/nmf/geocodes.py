"""Geocodes of a spine as noisy measurement files have them: below the county, numbers within the unit above. Public."""

import numpy as np

from yupana.arrays import Ints
from yupana.errors import ConfigError
from yupana.geography.settings import DIGITS, ROOT
from yupana.geography.spine import Spine
from yupana.release.lines import Texts, digits, texts
from yupana.topdown.nmf.layout import BLOCK_DIGITS, BRANCH_AND_STATE, COUNTY, MORE_CHARACTERS

NATION_GEOCODE = "0"
"""Nothing known says what the nation is called; readers take its only row."""


def geocodes_of(spine: Spine) -> tuple[Texts, ...]:
    """The geocode of every unit of every geolevel, from the root down.

    Parameters
    ----------
    spine : Spine
        Of the Census Bureau's blocks.

    Raises
    ------
    ConfigError
        If states or counties are called by other digits than theirs, or units of a county do not lie side by side.
    """
    firsts = [_first_blocks(spine, number) for number in range(len(spine.levels))]
    base = _states(spine)
    found: list[Texts] = []
    for number, level in enumerate(spine.levels):
        if level.name == ROOT:
            found.append(texts([NATION_GEOCODE]))
            continue
        blocks, state = spine.blocks[firsts[number]], base[firsts[number]]
        nested = number > 0 and spine.levels[number - 1].name != ROOT
        above = found[-1][spine.tree.parents[number]] if nested else state
        if level.name == "State":
            found.append(state)
        elif level.name == "Block":
            found.append(_beside(above, digits(blocks, BLOCK_DIGITS)))
        else:
            if level.name == "County":
                county = digits(blocks // 10 ** (16 - DIGITS["County"]) % 1000, 3)
                above = _beside(state, np.full(len(state), COUNTY.encode()), county)
            within = _within(above)
            width = max(MORE_CHARACTERS[level.name], len(str(int(within.max()))))
            found.append(_beside(above, digits(within, width)))
        if len(np.unique(found[-1])) < len(found[-1]):
            raise _strange(level.name)
    return tuple(found)


def _first_blocks(spine: Spine, number: int) -> Ints:
    """The position of the first block of each unit of a geolevel."""
    return np.flatnonzero(np.diff(spine.tree.ancestors(number), prepend=-1))


def _states(spine: Spine) -> Texts:
    """Branch and state of each block, of shape (blocks,)."""
    named = [number for number, level in enumerate(spine.levels) if level.name in {"State", "County"}]
    sides = [_sides(spine, number) for number in named]
    return _beside(digits(sides[0], BRANCH_AND_STATE - 2), digits(spine.blocks // 10**14, 2))


def _sides(spine: Spine, number: int) -> Ints:
    """The digit before the state or county of each block, 0 where there is none."""
    level = spine.levels[number]
    known = DIGITS[level.name]
    code, tabulated = level.code[spine.tree.ancestors(number)], spine.blocks // 10 ** (16 - known)
    side = (code - tabulated) // 10**known
    if not np.array_equal(tabulated + side * 10**known, code) or side.max() > level.width - known or side.min() < 0:
        raise _strange(level.name)
    return np.asarray(side, dtype=np.int64)


def _strange(level: str) -> ConfigError:
    return ConfigError(
        f"--nmf: geocodes hold the side of AIAN areas, state, county and numbers within these, and the geounits of "
        f"{level} on this spine are called otherwise; use a spine that spine build makes"
    )


def _within(above: Texts) -> Ints:
    """Number units that lie side by side from 1 within what they lie in."""
    opens = np.concatenate([[True], above[1:] != above[:-1]])
    starts = np.flatnonzero(opens)
    return np.asarray(np.arange(1, len(above) + 1) - starts[np.cumsum(opens) - 1], dtype=np.int64)


def _beside(*parts: Texts) -> Texts:
    """Texts of fixed width, one behind the other."""
    bytes_of = [np.ascontiguousarray(part).view("S1").reshape(len(part), -1) for part in parts]
    return np.ascontiguousarray(np.concatenate(bytes_of, axis=1)).view(f"S{sum(b.shape[1] for b in bytes_of)}")[:, 0]
