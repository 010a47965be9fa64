"""What a TopDown run knows before it measures: geography, spine, exact counts."""

from collections.abc import Container, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from yupana.arrays import Integers
from yupana.confidential.records.database import with_what_is_beside
from yupana.confidential.records.sources import Source
from yupana.confidential.request import RunRequest
from yupana.confidential.tabulate.block_histograms import (
    BlockCounts,
    check_facilities,
    check_structural_zeros,
    open_block_counts,
)
from yupana.confidential.topdown.exact_counts import GeolevelCounts, add_up, open_described_counts
from yupana.confidential.topdown.resources import MemoryNeeds
from yupana.errors import ConfigError, InputError
from yupana.geography.assignments import Assignment, read_with_areas
from yupana.geography.blocks import FACILITIES, Reference, listed_blocks, quarters_in, read_facilities
from yupana.geography.build import make, remarks_on
from yupana.geography.hierarchy import Hierarchy, spine_of
from yupana.geography.published import PublishedBlocks, published_blocks
from yupana.geography.settings import QUARTERS, ROOT, SCHOOLS
from yupana.geography.spine import Spine, check_spine
from yupana.geography.spine_files import read_given
from yupana.privacy.sealed import Sealed
from yupana.products.safetab.regions import PUERTO_RICO
from yupana.products.topdown.described import DescribedConfiguration
from yupana.progress import Stopwatch
from yupana.release.tables import checksum, checksums_by_name
from yupana.topdown.budget import check_given
from yupana.topdown.configuration import Configuration
from yupana.topdown.constraints import Kept, kept_areas

GEOGRAPHY: Final = ("geography.txt", "GRF-C.txt")
"""Names the reference file may have; the second is that of the Bureau's."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class World(Sealed):
    """What a run knows before it measures. Confidential."""

    # all blocks, those that the spine leaves out because nobody can live there included; None where the configuration
    # has areas of its own
    reference: Reference | None
    assignments: tuple[Assignment, ...]  # what files beside the reference file tell of its areas
    spine: Spine
    given: dict[str, str]  # SHA-256 of the files of a spine that was built before; empty if the run built its own
    kept: Kept | None  # which totals are kept exactly
    facilities: Integers | None  # shape (blocks, 8), or None: in the order of the spine
    files: Mapping[str, Source]  # what was counted, for the confidential log
    exact: GeolevelCounts  # of each geolevel
    of_spine: tuple[str, ...] = ()  # remarks on the spine that the run built

    @property
    def remarks(self) -> tuple[str, ...]:
        """What whoever runs should know of the areas and of the spine."""
        return (*(one.remark for one in self.assignments if one.remark), *self.of_spine)

    @property
    def published(self) -> PublishedBlocks | None:
        """All blocks with the areas they lie in."""
        if self.reference is None:
            return None
        return published_blocks(self.reference, nation=self.spine.levels[0].name == ROOT)


def open_world(
    configuration: Configuration, data: Path, request: RunRequest, clock: Stopwatch, scratch: Path | None = None
) -> World:
    """Read geography and records, and build the spine that the estimator asks for, or read it from a folder.

    Parameters
    ----------
    scratch : Path, optional
        A private folder for exact counts, which must outlive the world; without one they are held in memory.

    Raises
    ------
    ConfigError, InputError
        If they do not go together.
    """
    if configuration.areas is not None:
        if request.areas or request.names is not None:
            option = "--areas" if request.areas else "--names"
            raise ConfigError(f"{option}: [areas] of the configuration says which areas there are")
        return _of_areas(configuration, configuration.areas, data, request, clock, scratch)
    clock.start("reading the geography")
    settings = configuration.spine_for(request.estimator)
    needed = settings.classes if request.spine is None else ()
    reference, assignments = read_with_areas(
        _geography(data), needed, request.areas, schools=SCHOOLS in needed, encoding=request.encoding
    )
    facilities = _facilities(configuration, data, reference, needed)
    counted = reference
    if facilities is not None and settings.live:
        live = np.asarray(facilities.any(axis=1))
        counted, facilities = reference.keep(live), facilities[live]
    spine, given, remarks = _spine(configuration, counted, facilities, request, clock)
    _require_root(spine, reference)
    if wrong := check_spine(spine, counted.block):
        raise RuntimeError(f"the spine does not hold together: {'; '.join(wrong)}")
    kept = kept_areas(configuration, spine)
    if facilities is not None:
        facilities = facilities[np.searchsorted(counted.block, spine.blocks)]
        if request.estimator == "posterior":
            _require_listed(data / FACILITIES, reference, spine)
    limited = _limited(len(reference.block), configuration, request)
    clock.start("reading and checking the records")
    opened = open_block_counts(data, configuration.schema, spine.blocks, limited, facilities)
    counts, exact = _exact(opened, configuration, spine, scratch)
    if configuration.group_quarters and facilities is not None:
        check_facilities(exact.blocks, counts.name, configuration.schema, configuration.group_quarters, facilities)
    return World(reference, assignments, spine, given, kept, facilities, counts.files, exact, remarks)


def _of_areas(
    configuration: Configuration,
    areas: Hierarchy,
    data: Path,
    request: RunRequest,
    clock: Stopwatch,
    scratch: Path | None,
) -> World:
    """What is known where the spine is the areas of the configuration."""
    spine = spine_of(areas, configuration.spine.shares)
    if wrong := check_spine(spine, np.arange(len(areas.blocks))):
        raise RuntimeError(f"the spine does not hold together: {'; '.join(wrong)}")
    limited = _limited(len(areas.blocks), configuration, request)
    clock.start("reading and checking the records")
    if isinstance(configuration, DescribedConfiguration):
        opened = open_described_counts(configuration, areas, spine.blocks, data, limited)
    else:
        opened = open_block_counts(data, configuration.schema, spine.blocks, limited, codes=areas.blocks)
    counts, exact = _exact(opened, configuration, spine, scratch)
    kept = kept_areas(configuration, spine)
    return World(None, (), spine, {}, kept, None, counts.files, exact)


def _exact(
    opened: AbstractContextManager[BlockCounts], configuration: Configuration, spine: Spine, scratch: Path | None
) -> tuple[BlockCounts, GeolevelCounts]:
    """The counts of blocks, and of all geounits; refused where a record cannot be."""
    with opened as counts:
        exact = add_up(spine.tree, counts.part, scratch)
    check_structural_zeros(exact.blocks, counts.name, configuration.impossible())
    return counts, exact


def _limited(listed: int, configuration: Configuration, request: RunRequest) -> RunRequest:
    """The request with what the database that counts may take; of an engine, what its tasks may."""
    needs = MemoryNeeds.of(listed, configuration.schema.cells, request.estimator)
    needs.check(request.memory)
    if request.engine is not None and request.engine.slots > 1:
        return request
    return replace(request, memory=with_what_is_beside(needs.for_database(request.memory)))


def _facilities(
    configuration: Configuration, data: Path, reference: Reference, classes: Container[str]
) -> Integers | None:
    """Housing units and facilities by block, as far as listed; ``classes`` are those that a spine is built of."""
    listed = data / FACILITIES
    if listed.exists():
        facilities = read_facilities(listed, reference.block)
        _require_types(configuration, listed, reference, facilities)
        return facilities
    needs = [
        words
        for words, needed in (
            ("constraints.group_quarters", configuration.group_quarters),
            ("spine.live", configuration.spine.live),
            ("the class gq of the spine", QUARTERS in classes),
        )
        if needed
    ]
    if needs:
        raise InputError(f"{listed}: no such file; {' and '.join(needs)} need block, housing_units and gq1 to gq7")
    return None


def _spine(
    configuration: Configuration, counted: Reference, facilities: Integers | None, request: RunRequest, clock: Stopwatch
) -> tuple[Spine, dict[str, str], tuple[str, ...]]:
    """The spine of the blocks that are counted, built or read, the checksums of its files, and remarks on it."""
    if request.spine is None:
        quarters = None if facilities is None else quarters_in(facilities)
        settings = configuration.spine_for(request.estimator)
        return make(settings, counted, quarters, clock), {}, remarks_on(settings, counted, quarters)
    clock.start("reading the spine")
    spine, checksums = read_given(request.spine)
    check_given(configuration, spine, counted.block, request.estimator, request.spine)
    return spine, checksums, ()


def _require_root(spine: Spine, reference: Reference) -> None:
    """Refuse a spine without one unit at its top, and a nation that is but a part of it."""
    if spine.tree.units(0) != 1:
        raise ConfigError(
            f"[shares]: without US the spine has {spine.tree.units(0)} units at {spine.levels[0].name} and no root; "
            "begin with US"
        )
    if spine.levels[0].name == ROOT and (reference.block // 10**14 == int(PUERTO_RICO)).all():
        raise ConfigError(
            "[shares]: all blocks lie in Puerto Rico (72), which is part of no nation's total, so that US would only "
            "count the State again; begin with State, as pl94-2020-pr does"
        )


def _require_listed(listed: Path, reference: Reference, spine: Spine) -> None:
    """Refuse housing units of some blocks only, where the estimator reads them."""
    missing = np.setdiff1d(spine.blocks, listed_blocks(listed, reference.block))
    if len(missing):
        raise InputError(
            f"{listed}: block {missing[0]:016d} is not listed"
            + (f", nor are {len(missing) - 1:,} more" if len(missing) > 1 else "")
            + "; --estimator posterior reads the housing units of every block. List it, with 0 if it has none, or "
            "take the file away to estimate without them"
        )


def _require_types(configuration: Configuration, listed: Path, reference: Reference, facilities: Integers) -> None:
    """Refuse facilities of types that the bounded attribute has no level for: nobody could be counted there."""
    if configuration.group_quarters is None:
        return
    types = len(configuration.schema.attributes[0].labels) - 1
    block, kind = np.nonzero(facilities[:, 1 + types :])
    if len(block):
        raise InputError(
            f"{listed}, column gq{1 + types + kind[0]}: block {reference.block[block[0]]:016d} has facilities of a "
            f"type that the schema has no level for: {configuration.group_quarters} has households and "
            f"{types} major type{'s' * (types > 1)}; add a level, or leave group_quarters out of [constraints]"
        )


def _geography(data: Path) -> Path:
    found = [data / name for name in GEOGRAPHY if (data / name).exists()]
    if len(found) > 1:
        raise InputError(f"{data} holds {' and '.join(GEOGRAPHY)}; leave one of them")
    if not found:
        raise InputError(f"{data} holds no file of blocks, {' or '.join(GEOGRAPHY)} (docs/topdown-files.md)")
    return found[0]


def public_checksums(data: Path, world: World, request: RunRequest) -> dict[str, str]:
    """SHA-256 of a run's public files by name: reference file, housing units with facilities, areas, a given spine."""
    if world.reference is None:
        return {}
    beside = (*request.areas, *([] if request.names is None else [request.names]))
    return {
        **checksums_by_name(beside, "areas/"),
        **{name: checksum(data / name) for name in (*GEOGRAPHY, FACILITIES) if (data / name).exists()},
        **{f"spine/{name}": digest for name, digest in world.given.items()},
    }
