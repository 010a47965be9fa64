"""Public counts to set errors against: of invented people, or of a release; and blocks to try spines on."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from importlib.resources import as_file, files
from types import MappingProxyType
from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike

from yupana.arrays import Ints
from yupana.atlas.tables import AreaIndex, read_tables, shown_tables
from yupana.explore.spines import SampleBlocks, average_geounits
from yupana.geography.blocks import Reference
from yupana.products import family_of
from yupana.products.phsafe.configuration import PhsafeConfig
from yupana.products.phsafe.product import PHSAFE
from yupana.products.phsafe.specification import STATE_NAMES, TABLES
from yupana.products.product import Product
from yupana.products.safetab.product import PERSONS, Parameters
from yupana.products.safetab.regions import Level
from yupana.products.safetab.specification import DETAILED_ONLY, QUESTIONS
from yupana.release.release import ReleaseFolder
from yupana.topdown.configuration import Configuration

_FOLDER: Final = files("yupana.explore") / "reference"

Sizes = Sequence[tuple[int, int]]
"""Pairs of a size and how many population groups have it."""


@dataclass(frozen=True, eq=False)
class KnownCounts:
    """The counts that an entry pays for, as far as they are public."""

    counts: Ints  # shape (counts,): in ascending order
    numbers: Ints  # shape (counts,): how many cells have each of them
    areas: Ints  # shape (counts,): whose each is, as places of names
    names: tuple[str, ...] = ()  # of areas, the same of all entries; empty where they have no names

    @classmethod
    def of(cls, counts: ArrayLike, numbers: ArrayLike = 1, areas: ArrayLike = 0, names: tuple[str, ...] = ()) -> Self:
        """Of counts in any order; below zero, where noise took them, they are 0."""
        found = np.maximum(np.asarray(counts, dtype=np.int64), 0)
        order = np.argsort(found, kind="stable")
        of, at = (np.broadcast_to(np.asarray(one, dtype=np.int64), found.shape)[order] for one in (numbers, areas))
        return cls(found[order], of, at, names)

    @cached_property
    def total(self) -> int:
        """How many cells there are."""
        return int(self.numbers.sum())

    @cached_property
    def typical(self) -> Fraction:
        """The median, 1 at least."""
        until = np.cumsum(self.numbers)
        return Fraction(max(1, int(self.counts[np.searchsorted(until, until[-1] / 2)])))

    def below(self, least: float) -> int:
        """How many counts are smaller than some number."""
        return int(self.numbers[: np.searchsorted(self.counts, least)].sum())

    def by_area(self, least: float = math.inf) -> Ints:
        """How many counts of each area are smaller than some number."""
        return np.bincount(self.areas[: np.searchsorted(self.counts, least)], minlength=len(self.names))


def _document(name: str) -> dict[str, Any]:
    """Read a file of the package, such as ``phsafe``."""
    return dict(json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8")))


@cache
def invented_phsafe() -> dict[str, Any]:
    """Counts of PHSafe of invented people, ``counts`` by table, cell, group and area, and households by persons."""
    return _document(PHSAFE.key)


def known_to_phsafe(config: PhsafeConfig) -> Mapping[str, KnownCounts]:
    """Counts of invented people by entry; none of Puerto Rico, of which no counts are at hand."""
    if config.is_puerto_rico:
        return {}
    counts = invented_phsafe()["counts"]
    names = ("United States", *STATE_NAMES.values())
    places = {area: place for place, area in enumerate(("1", *STATE_NAMES))}
    found = {}
    for table in TABLES:
        for level in table.levels:
            rows = [
                (count, places[area])
                for of_cell in counts[table.name].values()
                for code in level.groups
                for area, count in of_cell.get(code, {}).items()
                if (area == "1") == (level.areas == "USA") and area in places
            ]
            if rows:
                found[f"{table.name}/{level.name}"] = KnownCounts.of(
                    [c for c, _ in rows], 1, [a for _, a in rows], names
                )
    return found


def known_to_release(
    release: ReleaseFolder, product: Product[Any], config: Any  # noqa: ANN401 (the product's own)
) -> Mapping[str, KnownCounts]:  # fmt: skip
    """The counts of a release by the entry of a configuration that pays for them, each with the name of its area.

    Of TopDown the records of each geounit stand for each of its queries.
    """
    areas, found = AreaIndex(), dict[str, list[tuple[Ints, Ints]]]()
    if isinstance(config, Configuration):
        geolevels = {level.lower(): level for level in config.levels}
        table = next(read_tables(shown_tables(release), areas, [*geolevels]), None)
        units = np.bincount(table.area, table.value) if table else np.zeros(0)
        for kind in areas.kinds:
            at = np.array([place for (of, _), place in areas.places.items() if of == kind], dtype=np.int64)
            for query, _ in config.queries[geolevels[kind]]:
                found[f"{geolevels[kind]} {query.name}"] = [(units[at].round().astype(np.int64), at)]
    else:
        all_on = product.with_budgets(config, dict.fromkeys(product.entries(config), Fraction(1)))
        entries = {(m.table, m.level): product.entry_of(m) for m in product.plan(all_on).measurements}
        described = getattr(config, "description", config)
        levels = {level.name: level for of in described.tables for level in of.levels}
        for table in read_tables(shown_tables(release), areas):
            family = family_of(table.name, release.manifest)
            if family is None or all(choice.own.name != table.name for choice in family.choices):
                continue
            of_kind = np.array([areas.kinds[kind] for kind, _ in areas.places])[table.area]
            codes = table.groups.codes if table.groups else ("*",)
            for level in levels.values():
                groups = [place for place, code in enumerate(codes) if code in level.groups]
                entry = entries.get((family.name, level.name))
                here = (
                    (of_kind == areas.kinds.get(level.areas, -1))
                    & np.isin(table.group, groups)
                    & ~np.isnan(table.value)
                )
                if entry is not None and here.any():
                    found.setdefault(entry, []).append((table.value[here].astype(np.int64), table.area[here]))
    called = [_name(areas, kind, code) for kind, code in areas.places]
    names = {name: place for place, name in enumerate(dict.fromkeys(called))}
    places = np.array([names[name] for name in called], dtype=np.int64)
    return {
        entry: KnownCounts.of(
            np.concatenate([counts for counts, _ in of]), 1, places[np.concatenate([at for _, at in of])], (*names,)
        )
        for entry, of in found.items()
    }


def _name(areas: AreaIndex, kind: str, code: str) -> str:
    """What an area is called; blocks are told by their county."""
    if kind == "block":
        return f"blocks of {areas.names.get(('county', code[:5]), f'county {code[:5]}')}"
    state = STATE_NAMES.get(code) if kind.lower() == "state" else None
    return areas.names.get((kind, code)) or state or f"{areas.titles.get(kind) or kind.replace('_', ' ')} {code}"


@cache
def invented_groups() -> dict[str, Any]:
    """Sizes of the population groups of invented people: ``persons`` and ``households`` by level, and ``source``."""
    return _document("safetab")


def sizes_of(product: str, level: Level, of: str) -> list[tuple[int, int]]:
    """The sizes of the groups of a level; those of the United States stand in for Puerto Rico's."""
    sizes, name = invented_groups()[of], level.name.removeprefix("PR-")
    return [*sizes.get(name, ()), *(() if product == PERSONS.key else sizes.get(f"{name} {DETAILED_ONLY}", ()))]


def known_to_safetab(config: Parameters) -> Mapping[str, KnownCounts]:
    """The sizes of groups by entry: persons, or of SafeTab-H households."""
    product, found = config.config.product, dict[str, KnownCounts]()
    for level in config.config.levels:
        if of_level := sizes_of(product, level, "persons" if product == PERSONS.key else "households"):
            known = KnownCounts.of(*zip(*of_level, strict=True))
            found |= {question.entry(level): known for question in QUESTIONS[product]}
    return found


def known_to_topdown(config: Configuration) -> Mapping[str, KnownCounts]:
    """The records of an average geounit of each geolevel, for each of its queries."""
    sizes = average_geounits(config, blocks())
    return {
        f"{level} {query.name}": KnownCounts.of([max(1, round(sizes[level]))])
        for level in config.levels
        if level in sizes
        for query, _ in config.queries[level]
    }


@cache
def blocks() -> SampleBlocks:
    """The blocks of an invented state, to try spines on."""
    with as_file(_FOLDER / "blocks.npz") as path, np.load(path) as found:
        reference = Reference(
            np.cumsum(found["block"]),
            found["aiannh"],
            found["cousub"],
            found["place"],
            MappingProxyType({}),
        )
        quarters = found["quarters"]
    source = f"an invented state of 368,000 households in {len(quarters):,} blocks"
    return SampleBlocks(reference, quarters, source, {"person record": 928_692, "housing unit": 407_530})
