"""A spine read back from its folder, as another program would read it: blocks.csv and geounits.csv alone say all."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from hollerith.errors import ConfigError, InputError, OutputError
from hollerith.geography.delimited import DelimitedFile, first_repeated, open_delimited, positions
from hollerith.geography.entities import Entities, read_entities
from hollerith.geography.levels import check_levels, check_shares
from hollerith.geography.settings import Settings
from hollerith.geography.tree import Flags, Indices, Ints, Tree, nest
from hollerith.geography.write import BLOCKS, ENTITIES, GEOUNIT_COLUMNS, GEOUNITS
from hollerith.privacy.exact import read_exact
from hollerith.release.folder import MANIFEST, read_manifest


@dataclass(frozen=True, slots=True, eq=False)
class WrittenSpine:
    """A spine as its folder says it.

    Attributes
    ----------
    tree : Tree
    labels : tuple of tuple of str
        Identifiers of the units of each geolevel but the blocks, in the order of the tree.
    block : ndarray of int64
        The 16 digits of the blocks in the order of the tree, of shape (blocks,).
    """

    tree: Tree
    labels: tuple[tuple[str, ...], ...]
    block: Ints


@dataclass(frozen=True, slots=True, eq=False)
class WrittenShares:
    """Shares of a spine as its folder says them.

    Attributes
    ----------
    shares : tuple of Fraction
        Distinct ones.
    index : tuple of ndarray of int32
        For each geolevel the position of each unit's share, of shape (units,).
    bypassed : tuple of ndarray of bool
    """

    shares: tuple[Fraction, ...]
    index: tuple[Indices, ...]
    bypassed: tuple[Flags, ...]


def manifest_of(folder: Path) -> dict[str, Any]:
    """Read the manifest of a spine.

    Raises
    ------
    OutputError
        If the folder holds no spine.
    """
    if not folder.is_dir():
        raise OutputError(f"{folder} is no folder; name one that hollerith spine build made")
    manifest = read_manifest(folder)
    if manifest.get("product") != "spine":
        raise OutputError(f"{folder / MANIFEST} is not the manifest of a spine; name a folder that spine build made")
    return manifest


def settings_of(manifest: dict[str, Any], folder: Path) -> Settings:
    """Return the settings that a spine was made with.

    Raises
    ------
    OutputError
        If the manifest does not hold them.
    """
    try:
        told = manifest["settings"]
        levels = check_levels(told["levels"])
        shares = check_shares({name: Fraction(share) for name, share in told["shares"].items()}, levels)
        return Settings(
            told["kind"],
            told["mechanism"],
            levels,
            shares,
            told["fanout_cutoff"],
            told["entity_threshold"],
            told["bypass_cutoff"],
            told["grouping"],
            tuple(told["classes"]),
            tuple(told["aian_areas"]),
            tuple(map(int, told["strong_mcd_states"])),
            told["live"],
        )
    except (KeyError, TypeError, ValueError, AttributeError, ConfigError):
        raise OutputError(f"{folder / MANIFEST} does not hold the settings of a spine") from None


def read_spine(folder: Path, levels: tuple[str, ...]) -> WrittenSpine:
    """Read which geounits the blocks lie in.

    Raises
    ------
    InputError
        If blocks.csv does not hold a hierarchy with a single root.
    """
    with open_delimited(folder / BLOCKS, ("block", *levels[:-1])) as file:
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
    labels = [
        tuple(column.labels[i] for i in key[first].tolist())
        for column, key, first in zip(columns, keys, firsts, strict=False)
    ]
    return WrittenSpine(tree, tuple(labels), block[order])


def read_shares(folder: Path, spine: WrittenSpine) -> WrittenShares:
    """Read the shares of all geounits.

    Raises
    ------
    InputError
        If geounits.csv does not hold each geounit of blocks.csv once, with a share.
    """
    with open_delimited(folder / GEOUNITS, GEOUNIT_COLUMNS) as file:
        written = file.texts("share", nines=True)
        shares = tuple(_share(file, text) for text in written.labels)
        place = {text: i for i, text in enumerate(written.labels)}
        found: list[Indices] = []
        bypassed: list[Flags] = []
        for level, name in enumerate(spine.tree.names):
            rows = file.where("geolevel", name)
            at = _positions(rows, spine, level)
            if len(at) != spine.tree.units(level) or (np.sort(at) != np.arange(len(at))).any():
                raise InputError(f"{file.path}: the geounits of {name} are not those of {BLOCKS}, each once")
            share, flag = rows.texts("share", nines=True), rows.texts("bypassed", nines=True)
            if (share.index < 0).any():
                raise InputError(f"{file.path}, column share: a geounit of {name} has no share")
            index, given_up = np.zeros(len(at), dtype=np.int32), np.zeros(len(at), dtype=np.bool_)
            index[at] = np.array([place[text] for text in share.labels], dtype=np.int32)[share.index]
            given_up[at] = flag.index == (flag.labels.index("true") if "true" in flag.labels else -2)
            found.append(index)
            bypassed.append(given_up)
    return WrittenShares(shares, tuple(found), tuple(bypassed))


def _positions(rows: DelimitedFile, spine: WrittenSpine, level: int) -> Ints:
    """The position in the tree of each geounit of a geolevel, or -1 where blocks.csv does not know it."""
    if level == len(spine.tree.names) - 1:
        order = np.argsort(spine.block)
        at = positions(rows.digits("geounit", 16), spine.block[order])
        return np.where(at < 0, -1, order[at])
    unit = rows.texts("geounit", nines=True)
    place = {label: i for i, label in enumerate(spine.labels[level])}
    of_label = np.array([place.get(label, -1) for label in unit.labels], dtype=np.int64)
    return np.append(of_label, -1)[unit.index]


def read_areas(folder: Path, spine: WrittenSpine) -> list[Entities]:
    """Read the areas that the reference file named, in the order of the spine's blocks.

    Raises
    ------
    InputError
        If entities.csv is not the file that was written with the spine.
    """
    return entities_of(folder / ENTITIES, spine, live=False)


def entities_of(path: Path, spine: WrittenSpine, *, live: bool) -> list[Entities]:
    """Read a file of entities, in the order of the spine's blocks (`read_entities`)."""
    order = np.argsort(spine.block)
    back = np.argsort(order)
    found = read_entities(path, spine.block[order], live=live)
    return [Entities(e.column, e.index[back], e.labels) for e in found]


def _share(file: DelimitedFile, text: str) -> Fraction:
    try:
        share = read_exact(text)
    except ValueError:
        share = -1.0
    if not isinstance(share, Fraction) or share < 0:
        raise InputError(f"{file.path}, column share: {text!r} is no share; shares are fractions, 0 or more")
    return share
