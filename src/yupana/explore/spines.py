"""What a spine buys, before any data: least-squares errors of its geounits and areas on invented blocks."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np

from yupana.arrays import Floats, Indices
from yupana.geography.blocks import Reference
from yupana.geography.build import make
from yupana.geography.entities import published
from yupana.geography.settings import Kind, SpineSettings
from yupana.geography.spine import Spine
from yupana.geography.tree import partition
from yupana.progress import Stopwatch
from yupana.topdown.budget import spend
from yupana.topdown.configuration import Configuration
from yupana.topdown.constraints import kept_areas

_ENTITIES: Final = {"place": "places", "county_subdivision": "county subdivisions", "aiannh": "AIANNH areas"}


_EXACT: Final = 1e9
"""The precision that stands for an exact total, times that of the noisy ones."""


@dataclass(frozen=True, slots=True, eq=False)
class SampleBlocks:
    """SampleBlocks to try spines on."""

    reference: Reference
    quarters: Indices  # shape (blocks,): combinations of group quarters; 0 for none
    source: str  # whose blocks, to finish a sentence
    records: Mapping[str, int]  # by privacy unit: how many persons and housing units are in them


@dataclass(frozen=True, slots=True)
class Errors:
    """Standard deviations of least-squares estimates on one spine."""

    units: Mapping[str, float]  # by geolevel: the root of the mean variance of its geounits
    entities: Mapping[str, tuple[float, float]]  # by kind


def _block_totals(configuration: Configuration) -> bool:
    """Whether totals are exact everywhere, so that cells are what is estimated."""
    return "Block" in configuration.invariants


def spine_errors(configuration: Configuration, kind: Kind, blocks: SampleBlocks) -> Errors:
    """Least-squares errors of a strategy on a spine over some blocks.

    The queries of a geounit each tell its total by their sum, of variance (answers times that of one); with queries
    that keep or sum attributes whole these are independent, and all there is to know of the total
    (docs/topdown-least-squares.md). Where totals are exact, a cell of the detailed query stands in their place. Totals
    of several units that are kept together are not used.

    Raises
    ------
    ConfigError
        If the spine cannot keep the totals that are invariant.
    """
    # Its loops are compiled, and not every installation has the compiler.
    from yupana.topdown.tree.least_squares import entity_variances, unit_variances  # noqa: PLC0415

    spine = _spine(replace(configuration.spine, kind=kind), blocks)
    spending = spend(configuration, spine)
    weights: list[Floats] = []
    for level in spending.levels:
        by_share = np.zeros(len(spine.shares))
        for position, measured in level.measurements.items():
            if _block_totals(configuration):
                cells = configuration.schema.cells
                told = [float(m.variance) * (cells - 1) / cells for m in measured if m.cells == cells]
            else:
                told = [float(m.variance) * m.cells for m in measured]
            by_share[position] = sum(1 / variance for variance in told)
        weights.append(by_share[level.share_of])
    kept = kept_areas(configuration, spine)
    if kept is not None and not _block_totals(configuration):
        most = max(float(weight.max()) for weight in weights)
        for number, sets in kept.sets.items():
            weights[number][sets.alone] = _EXACT * most
    found = unit_variances(spine.tree, weights)
    order = np.argsort(blocks.reference.block)
    at = order[np.searchsorted(blocks.reference.block[order], spine.blocks)]
    entities = {}
    for column, areas in published(blocks.reference).items():
        if column in _ENTITIES and areas.labels:
            members = partition(areas.index[at], len(areas.labels))
            sigmas = np.sqrt(entity_variances(spine.tree, weights, members))
            # Values of the sample: what is not determined is infinite, and has no mean with another.
            half, most = np.quantile(sigmas, (0.5, 0.9), method="inverted_cdf")
            entities[column] = (float(half), float(most))
    units = {name: float(np.sqrt(np.mean(variance))) for name, variance in zip(spine.tree.names, found, strict=True)}
    return Errors(units, {kind: entities.get(kind, (float("nan"), float("nan"))) for kind in _ENTITIES})


_STATES: Final = 51
"""How many times the records of the blocks the nation is taken to have."""


def average_geounits(configuration: Configuration, blocks: SampleBlocks) -> dict[str, Fraction]:
    """How many records a geounit of each geolevel has on average: of the blocks, on the conventional spine."""
    tree = _spine(replace(configuration.spine, kind="conventional"), blocks).tree
    records = blocks.records[configuration.privacy_unit]
    return {
        name: Fraction(records * _STATES if name == "US" else records, tree.units(level))
        for level, name in enumerate(tree.names)
    }


@lru_cache(maxsize=24)
def _spine(settings: SpineSettings, blocks: SampleBlocks) -> Spine:
    return make(settings, blocks.reference, blocks.quarters, Stopwatch(lambda _: None))
