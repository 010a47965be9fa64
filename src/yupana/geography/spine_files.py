"""Spines on disk: blocks.csv and geounits.csv written, read back and checked, whoever built them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np

from yupana.arrays import Indices, Ints
from yupana.errors import ConfigError, InputError, OutputError
from yupana.files.arrow_stream import Column, TextColumn
from yupana.files.code_tables import open_delimited
from yupana.files.database import open_database
from yupana.files.delimited import DelimitedFile, Labels, first_repeated
from yupana.files.regular import FOLDER, must_be
from yupana.geography.entities import read_entities
from yupana.geography.kinds import BLOCK_WIDTH
from yupana.geography.settings import AREA_TYPES, KINDS, MECHANISMS, SpineSettings, check_levels, check_shares
from yupana.geography.spine import Geolevel, Spine, path_faults
from yupana.geography.tree import nest
from yupana.privacy.exact import read_exact, show_exact
from yupana.release.folder import read_manifest
from yupana.release.lines import texts, write_lines
from yupana.release.manifest import MANIFEST
from yupana.release.recipe import SPINE
from yupana.release.release import read_release
from yupana.release.tables import checksum, parts_of, write_parts

BLOCKS: Final = "blocks.csv"
GEOUNITS: Final = "geounits.csv"
ENTITIES: Final = "entities.csv"
GEOUNIT_COLUMNS: Final = ("geolevel", "geounit", "parent", "children", "share", "bypassed")

_ROWS_AT_ONCE: Final = 1 << 17
_FLAGS: Final = ("false", "true")


def write_blocks(folder: Path, spine: Spine) -> int:
    """Write which geounit of each geolevel every block lies in, blocks in order; return the number of rows."""
    order = np.argsort(spine.blocks)
    upper = [(level.texts(), spine.tree.ancestors(i)[order]) for i, level in enumerate(spine.levels[:-1])]
    blocks = spine.levels[-1].texts()
    # The last column repeats the first, but where both would be called the same.
    repeated = spine.tree.names[-1] != "block"
    with (folder / BLOCKS).open("wb") as file:
        file.write("|".join(("block", *spine.tree.names)[: None if repeated else -1]).encode() + b"\n")
        for start in range(0, len(order), _ROWS_AT_ONCE):
            here = slice(start, start + _ROWS_AT_ONCE)
            written = blocks[order[here]]
            units = [labels[unit[here]] for labels, unit in upper]
            write_lines(file, [written, *units, *([written] * repeated)])
    return len(order)


def write_geounits(folder: Path, spine: Spine) -> int:
    """Write all geounits with their parents, numbers of children and shares, from the root down; return the rows."""
    shares, flags = texts(map(show_exact, spine.shares)), texts(_FLAGS)

    def parts() -> Iterator[Mapping[str, Column]]:
        above = texts([""])
        for i, level in enumerate(spine.levels):
            parent, labels = spine.tree.parents[i].astype(np.int64), level.texts()
            names = TextColumn(texts([level.name]), np.zeros_like(parent)), TextColumn(labels, np.arange(len(parent)))
            share, flag = (of.astype(np.int64) for of in (level.share, level.bypassed))
            told = spine.tree.children(i), TextColumn(shares, share), TextColumn(flags, flag)
            yield from parts_of(dict(zip(GEOUNIT_COLUMNS, (*names, TextColumn(above, parent), *told), strict=True)))
            above = labels

    with open_database() as db:
        write_parts(db, folder / GEOUNITS, parts())
    return sum(map(len, spine.tree.parents))


def manifest_of(folder: Path) -> dict[str, Any]:
    """Read the manifest of a spine.

    Raises
    ------
    OutputError
        If the folder holds no spine.
    """
    must_be(FOLDER, folder, "name a folder that yupana spine build made", OutputError)
    manifest = read_manifest(folder)
    if manifest.get("product") != SPINE:
        raise OutputError(f"{folder / MANIFEST} is not the manifest of a spine; name a folder that spine build made")
    return manifest


def settings_of(manifest: dict[str, Any], folder: Path) -> SpineSettings:
    """Return the settings that a spine was made with.

    Raises
    ------
    OutputError
        If the manifest does not hold them.
    """
    try:
        told = manifest["settings"]
        levels = check_levels(told["levels"])
        shares = check_shares({name: Fraction(read_exact(share)) for name, share in told["shares"].items()}, levels)
        if not set(told["aian_areas"]) <= set(AREA_TYPES) or set(manifest["geolevels"]) != set(levels):
            raise ValueError  # noqa: TRY301 (as of what else is no setting)
        return SpineSettings(
            **told
            | {name: tuple(told[name]) for name in ("classes", "aian_areas")}
            | {"kind": KINDS[KINDS.index(told["kind"])], "mechanism": MECHANISMS[MECHANISMS.index(told["mechanism"])]}
            | {"levels": levels, "shares": shares, "strong_mcd_states": tuple(map(int, told["strong_mcd_states"]))}
        )
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, ConfigError):
        raise OutputError(f"{folder / MANIFEST} does not hold the settings of a spine") from None


def read_spine(folder: Path, levels: tuple[str, ...], *, any_codes: bool = False) -> Spine:
    """Read which geounits the blocks lie in; these are called by texts, and shares are not read.

    Parameters
    ----------
    levels : tuple of str
        Geolevels from the root to the blocks.
    any_codes : bool
        Whether codes of blocks are any texts, else 16 digits.

    Raises
    ------
    InputError
        If blocks.csv does not hold a hierarchy with a single root.
    """
    with open_delimited(folder / BLOCKS, ("block", *levels[:-1])) as file:
        names: tuple[str, ...] = ()
        if any_codes:
            codes = file.texts("block", nines=True)
            block, names = codes.index.astype(np.int64), codes.labels
            if (block < 0).any():
                raise InputError(f"{file.path}, column block: a block has no code")
        else:
            block = file.digits("block", 16)
        if repeated := first_repeated(block):
            raise file.fault(repeated[1], "block", "the block is listed twice")
        columns = [file.texts(level, nines=True) for level in levels[:-1]]
        order: Ints = np.lexsort(np.stack([block, *(column.index for column in reversed(columns))]))
        keys = [column.index[order].astype(np.int64) for column in columns]
        tree, firsts = nest(levels, [*keys, block[order]])
        for level, column in enumerate(columns):
            if tree.units(level) != len(column.labels) or column.index.min() < 0:
                raise InputError(
                    f"{file.path}, column {levels[level]}: a geounit is missing or lies in two units of the level above"
                )
    if tree.units(0) != 1:
        raise InputError(f"{folder / BLOCKS}, column {levels[0]}: the spine has no single root")
    units = [
        Geolevel.whole(level, 0, np.arange(len(first)), names=tuple(column.labels[i] for i in key[first].tolist()))
        for level, column, key, first in zip(levels, columns, keys, firsts, strict=False)
    ]
    blocks = Geolevel.whole(levels[-1], 0 if names else BLOCK_WIDTH, block[order], names=names)
    return Spine(tree, (*units, blocks))


def read_shares(folder: Path, spine: Spine) -> tuple[Spine, tuple[Ints, ...]]:
    """Read the shares of all geounits of a spine that was read.

    Returns
    -------
    (Spine, tuple of ndarray of int64)
        With its shares; and for each geolevel the place of each unit among the rows of the geolevel, of shape (units,).

    Raises
    ------
    InputError
        If geounits.csv does not hold each geounit of blocks.csv once, with a share and the parent and number of
        children that blocks.csv gives it, or a unit that gave up its share has one.
    """
    with open_delimited(folder / GEOUNITS, GEOUNIT_COLUMNS) as file:
        written = file.texts("share", nines=True)
        shares = tuple(_share(file, text) for text in written.labels)
        place = {text: i for i, text in enumerate(written.labels)}
        levels: list[Geolevel] = []
        place_of: list[Ints] = []
        for level, name in enumerate(spine.tree.names):
            rows = file.where("geolevel", name)
            at = _positions(rows, spine, level)
            if len(at) != spine.tree.units(level) or (np.sort(at) != np.arange(len(at))).any():
                raise InputError(f"{file.path}: the geounits of {name} are not those of {BLOCKS}, each once")
            _check_tree(rows, spine, level, at)
            share, flag = rows.texts("share", nines=True), rows.texts("bypassed", nines=True)
            if (share.index < 0).any():
                raise InputError(f"{file.path}, column share: a geounit of {name} has no share")
            index, given_up = np.zeros(len(at), dtype=np.int32), np.zeros(len(at), dtype=np.bool_)
            index[at] = np.array([place[text] for text in share.labels], dtype=np.int32)[share.index]
            given_up[at] = flag.index == (flag.labels.index("true") if "true" in flag.labels else -2)
            row = np.empty(len(at), dtype=np.int64)
            row[at] = np.arange(len(at))
            if not set(flag.labels) <= {"true", "false"} or (flag.index < 0).any():
                raise InputError(f"{file.path}, column bypassed: a value of {name} is neither true nor false")
            if np.array([share > 0 for share in shares])[index[given_up]].any():
                raise InputError(f"{file.path}, column bypassed: a geounit of {name} gave up its share and has one")
            levels.append(replace(spine.levels[level], share=index, bypassed=given_up))
            place_of.append(row)
        if sum(map(len, place_of)) != file.rows:
            raise InputError(f"{file.path}, column geolevel: there are geolevels that {BLOCKS} does not have")
    return Spine(spine.tree, tuple(levels), shares), tuple(place_of)


def _check_tree(rows: DelimitedFile, spine: Spine, level: int, at: Ints) -> None:
    """Compare parents and numbers of children with those of blocks.csv; ``at`` are the units of the rows."""
    name, parent = spine.tree.names[level], rows.texts("parent", nines=True)
    place = {label: i for i, label in enumerate(spine.levels[level - 1].names)} if level else {}
    of_label = np.array([place.get(label, -2) for label in parent.labels] + [-1], dtype=np.int64)
    expected = spine.tree.parents[level][at] if level else np.full(len(at), -1)
    astray, children = of_label[parent.index] != expected, spine.tree.children(level)[at]
    rows.refuse(astray, "parent", lambda _: f"{BLOCKS} puts this geounit of {name} into another unit")
    more = f"{BLOCKS} gives this geounit of {name} another number of children"
    rows.refuse(rows.counts("children") != children, "children", lambda _: more)


def _positions(rows: DelimitedFile, spine: Spine, level: int) -> Ints:
    """The position in the tree of each geounit of a geolevel, or -1 where blocks.csv does not know it."""
    if not spine.levels[level].names:
        return spine.places(rows.digits("geounit", 16))
    unit = rows.texts("geounit", nines=True)
    place = {label: i for i, label in enumerate(spine.levels[level].labels())}
    of_label = np.array([place.get(label, -1) for label in unit.labels], dtype=np.int64)
    return np.append(of_label, -1)[unit.index]


def entities_of(path: Path, spine: Spine, *, live: bool) -> dict[str, Labels]:
    """Read a file of entities, in the order of the spine's blocks (`read_entities`)."""
    order = np.argsort(spine.blocks)
    back = np.argsort(order)
    return {kind: of.of(back) for kind, of in read_entities(path, spine.blocks[order], live=live).items()}


def _share(file: DelimitedFile, text: str) -> Fraction:
    try:
        share = read_exact(text)
    except ValueError:
        share = -1.0
    if not isinstance(share, Fraction) or share < 0:
        raise InputError(f"{file.path}, column share: {text!r} is no share; shares are fractions, 0 or more")
    return share


def read_checked(folder: Path) -> tuple[tuple[Spine, tuple[Ints, ...]] | None, list[str]]:
    """Read the files of a spine as `read_shares`, and say in words what is wrong; none if they cannot be read.

    Raises
    ------
    OutputError
        If the folder holds no spine.
    """
    manifest = manifest_of(folder)
    settings = settings_of(manifest, folder)
    wrong = read_release(folder).wrong()
    try:
        spine, rows = read_shares(folder, read_spine(folder, settings.levels))
    except InputError as error:
        return None, [*wrong, str(error)]
    told = {name: (of["units"], of["bypassed"]) for name, of in manifest["geolevels"].items()}
    if told != {level.name: (len(level.code), int(level.bypassed.sum())) for level in spine.levels}:
        wrong.append("geolevels of the manifest are not those of geounits.csv")
    return (spine, rows), wrong + path_faults(spine)


_LABEL: Final = re.compile(r"([0-9]{1,18})(?:-([1-9][0-9]{0,8}))?")


def read_given(folder: Path) -> tuple[Spine, dict[str, str]]:
    """Read a spine from the folder that `spine build` made, in the order in which its units are listed there.

    Returns
    -------
    (Spine, dict)
        With the SHA-256 of each file that says what the spine is.

    Raises
    ------
    InputError
        If a file was changed, units do not nest, shares along a path do not sum to exactly 1, or a unit is not called
        by digits.
    OutputError
        If the folder holds no spine.
    """
    files, wrong = read_checked(folder)
    if wrong or files is None:
        raise InputError("\n".join([f"the spine {folder} cannot be used:", *(f"  {fault}" for fault in wrong)]))
    return ordered_spine(folder, *files), {name: checksum(folder / name) for name in (BLOCKS, GEOUNITS, MANIFEST)}


def ordered_spine(folder: Path, written: Spine, places: Sequence[Ints]) -> Spine:
    """The spine that `read_shares` read, its units in the order in which they are listed there, called by digits.

    Parameters
    ----------
    folder : Path
        For messages.

    Raises
    ------
    InputError
        If a unit is not called by digits.
    """
    names = written.tree.names
    units = [written.tree.ancestors(level) for level in range(len(names))]
    rows = [row[unit] for row, unit in zip(places, units, strict=True)]
    order = np.lexsort(rows[::-1])
    tree, firsts = nest(names, [row[order] for row in rows])
    levels = []
    for of, unit, first in zip(written.levels, units, firsts, strict=True):
        at = unit[order][first]
        width, code, part = of.width, of.code[at], of.part[at]
        if of.names:
            width, code, part = _parsed(folder, of.name, [of.names[unit] for unit in at.tolist()])
        levels.append(Geolevel(of.name, width, code, part, of.share[at], of.bypassed[at]))
    return Spine(tree, tuple(levels), written.shares)


def _parsed(folder: Path, name: str, labels: Sequence[str]) -> tuple[int, Ints, Indices]:
    """The width, numbers and parts of identifiers."""
    if list(labels) == [name]:
        return 0, np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int32)
    found = [_LABEL.fullmatch(label) for label in labels]
    widths = {len(one[1]) if one else 0 for one in found}
    if len(widths) > 1 or 0 in widths:
        raise InputError(
            f"{folder / BLOCKS}, column {name}: call geounits by digits, as many for every unit of a geolevel, and the "
            "parts of one by -1, -2, ... behind them"
        )
    code = np.array([int(one[1]) for one in found if one], dtype=np.int64)
    part = np.array([int(one[2] or 0) for one in found if one], dtype=np.int32)
    return widths.pop(), code, part
