"""What TopDown strategies buy, before any data: shares, margins, least-squares errors on several spines, trade-offs.

A strategy that was found stands beside the one there is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import cycle, product
from math import ceil, floor, inf, isfinite, log10, sqrt
from typing import Final

import numpy as np

from yupana.arrays import Floats, Indices
from yupana.errors import ConfigError
from yupana.geography.blocks import Reference
from yupana.geography.build import make
from yupana.geography.entities import published
from yupana.geography.settings import Kind, SpineSettings
from yupana.geography.spine import Spine
from yupana.geography.tree import entity_variances, partition, unit_variances
from yupana.plan.measurement import Mechanism, z_value
from yupana.plan.plan import Plan
from yupana.privacy.exact import Budget
from yupana.privacy.zcdp import epsilon_tight
from yupana.products.strategy import Joined, Strategy
from yupana.products.topdown.strategy import Frontier, TradeOff
from yupana.progress import Stopwatch
from yupana.report.charts import BLUE, GREY, ORANGE, Mark, curve_with_points, log_dots
from yupana.report.numbers import loss, percent, rounded
from yupana.report.page import Chart, Figure, Section, sections
from yupana.report.plans import Line, pictures
from yupana.report.spine import SPINES
from yupana.topdown.budget import spend
from yupana.topdown.configuration import Configuration, unfit_for
from yupana.topdown.constraints import kept_areas
from yupana.topdown.plan import Semantics, semantics_of

_COLOURS: Final = ("#2f6fb0", "#3fa0c9", "#8180d6", "#cf5a1e", "#d9982a", "#c65f95", "#4b9b6b")
_ENTITIES: Final = {"place": "places", "county_subdivision": "county subdivisions", "aiannh": "AIANNH areas"}

_EXACT: Final = 1e9
"""The precision that stands for an exact total, times that of the noisy ones."""


@dataclass(frozen=True, slots=True, eq=False)
class SampleBlocks:
    """SampleBlocks to try spines on.

    Attributes
    ----------
    reference : Reference
    quarters : ndarray of int32, shape (blocks,)
        Combinations of group quarters; 0 for none.
    source : str
        Whose blocks, to finish a sentence.
    records : mapping of privacy unit to int
        How many persons and housing units are in them.
    """

    reference: Reference
    quarters: Indices
    source: str
    records: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Errors:
    """Standard deviations of least-squares estimates on one spine.

    Attributes
    ----------
    units : mapping of geolevel to float
        The root of the mean variance of its geounits.
    entities : mapping of kind to (median, 90th percentile)
    """

    units: Mapping[str, float]
    entities: Mapping[str, tuple[float, float]]


def shares_section(configuration: Configuration, plan: Plan) -> Section:
    """The shares of geolevels and of their queries, and the margins of single noisy answers."""
    levels = configuration.levels
    queries = list(dict.fromkeys(q.name for level in levels for q, _ in configuration.queries[level]))
    by_level = {level: {q.name: share for q, share in configuration.queries[level]} for level in levels}
    columns: dict[str, list[str]] = {
        "Query": ["the geolevel", *queries],
        **{
            level: [
                percent(float(configuration.shares[level]), 2),
                *(percent(float(by_level[level][q]), 2) if q in by_level[level] else "–" for q in queries),
            ]
            for level in levels
        },
    }
    marks = {level: Mark(level, colour, "circle") for level, colour in zip(levels, cycle(_COLOURS), strict=False)}
    lines = [Line(m, m.table, marks[m.level]) for m in plan.measurements]
    figures = pictures(plan, lines, marks.values(), ("query", "geolevel"))
    (section,) = sections("topdown_shares.html", shares=columns, figures=figures)
    return section


def attributes_section(
    configuration: Configuration, production: Configuration | None, delta: float, name: str = "production of 2020"
) -> Section:
    """What is lost about single attributes, about places within a geounit, and by another strategy if one is given."""
    here = semantics_of(configuration)
    there = Semantics({}, {}) if production is None else semantics_of(production)
    shown_beside = ("here",) if production is None else ("here", name)
    zcdp = configuration.mechanism is Mechanism.ZCDP

    def shown(value: Budget, *, epsilon: bool) -> str:
        return rounded(epsilon_tight(value, delta), 5) if epsilon else loss(value)

    def columns(mine: Mapping[str, Budget], theirs: Mapping[str, Budget], what: str) -> dict[str, list[str]]:
        found = {what: list(mine)}
        for symbol, epsilon in (("ρ", False), ("ε", True)) if zcdp else (("ε", False),):
            for who, of in zip(shown_beside, (mine, theirs), strict=False):
                found[f"{symbol}, {who}"] = [shown(of[n], epsilon=epsilon) if n in of else "–" for n in mine]
        return found

    moved, moved_there = ({f"block in {n}": v for n, v in of.geolevels.items()} for of in (here, there))
    (section,) = sections(
        "topdown_attributes.html",
        delta=f"{delta:g}" if zcdp else "",
        attributes=columns(here.attributes, there.attributes, "Attribute"),
        moved=columns(moved, moved_there, "Moved to another"),
    )
    return section


def spines_section(
    configuration: Configuration, production: Configuration, plan: Plan, blocks: SampleBlocks, name: str
) -> Section:
    """Least-squares errors by geolevel and for off-spine entities on three spines, beside another strategy."""
    z = z_value(plan.confidence)
    errors = {
        (who, kind): found
        for (who, strategy), kind in product({"here": configuration, name: production}.items(), SPINES)
        if (found := _errors_on(strategy, kind, blocks)) is not None
    }
    heads = {
        f"{SPINES[kind].name}, {who}": errors[who, kind]
        for kind, who in product(SPINES, ("here", name))
        if (who, kind) in errors
    }
    (section,) = sections(
        "topdown_spines.html",
        confidence=plan.confidence,
        cells=_block_totals(configuration),
        source=blocks.source,
        errors=_spines_figure({kind: found for (who, kind), found in errors.items() if who == "here"}, z),
        units={
            "Geolevel": list(configuration.levels),
            **{head: [_margin(z, of.units.get(n)) for n in configuration.levels] for head, of in heads.items()},
        },
        areas={
            "Areas": [words for kind in _ENTITIES.values() for words in (f"{kind}, median", "nine in ten")],
            **{head: [_margin(z, e) for kind in _ENTITIES for e in of.entities[kind]] for head, of in heads.items()},
        },
    )
    return section


def _errors_on(strategy: Configuration, kind: Kind, blocks: SampleBlocks) -> Errors | None:
    """Least-squares errors on a spine; None where the strategy cannot be used on it."""
    if unfit_for(kind, strategy.queries):
        return None
    try:
        return spine_errors(strategy, kind, blocks)
    except ConfigError:
        return None  # a spine that cannot keep the invariants has no errors


def _spines_figure(errors: Mapping[Kind, Errors], z: float) -> Figure:
    """Margins of geolevels and kinds of areas on each spine; those that are exact or unknown are not drawn."""
    dots = [
        {"category": label, "series": SPINES[kind].name, "value": z * value}
        for kind, found in errors.items()
        for label, value in (
            *found.units.items(),
            *((_ENTITIES[entity], median) for entity, (median, _) in found.entities.items()),
        )
        if value > 1e-3 and np.isfinite(value)
    ]
    data: dict[str, list[object]] = {
        "Of": [row["category"] for row in dots],
        "Spine": [row["series"] for row in dots],
        "Margin": [rounded(float(str(row["value"])), 4) for row in dots],
    }
    marks = tuple(SPINES[kind] for kind in errors)
    chart = Chart(
        "The least-squares margin of error by geolevel and kind of area, on three spines.",
        lambda width: log_dots(dots, marks, width, axis="margin of error (log scale)"),
        data,
    )
    return Figure((chart,), legend=marks)


def _block_totals(configuration: Configuration) -> bool:
    """Whether totals are exact everywhere, so that cells are what is estimated."""
    return "Block" in configuration.invariants


def _margin(z: float, sigma: float | None) -> str:
    if sigma is None:
        return "–"
    if not np.isfinite(sigma):
        return "unknown"
    return "exact" if sigma < 1e-3 else rounded(z * sigma, 4)


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
    for areas in published(blocks.reference):
        if areas.column in _ENTITIES and areas.labels:
            members = partition(areas.index[at], len(areas.labels))
            sigmas = np.sqrt(entity_variances(spine.tree, weights, members))
            # Values of the sample: what is not determined is infinite, and has no mean with another.
            half, most = np.quantile(sigmas, (0.5, 0.9), method="inverted_cdf")
            entities[areas.column] = (float(half), float(most))
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


FOUND: Final = Mark("found", BLUE, "diamond")
HERE: Final = Mark("as set here", ORANGE, "circle")
PRODUCTION: Final = Mark("production of 2020", GREY, "square")

_CURVE: Final = Mark("the least possible", BLUE, "line")
_NEAREST: Final = 1e-6
_LOSSES: Final[Mapping[Joined, str]] = {
    "sum": "The weighted sum of the variances",
    "max": "The largest weighted variance",
    "ratio": "The largest weighted ratio of a variance to what it is now",
}


def loss_in_words(strategy: Strategy[Configuration], loss: Joined) -> str:
    """What is made least, beside what it was, and how near the least it is proven to be."""
    now = (
        f"is {percent(strategy.found_loss / strategy.given_loss, 2)} of what it is with the shares set here"
        if isfinite(strategy.given_loss)
        else "is finite; with the shares set here nothing tells one of the answers asked for"
    )
    near = (
        f"no shares of these queries that keep the least asked for bring it lower by more than {_at_most(strategy.gap)}"
    )
    words = [f"{_LOSSES[loss]} {now}. It is proven that {near}."]
    if lost := [level for level in strategy.found.without_detail() if level not in strategy.given.without_detail()]:
        words.append(
            f"Single cells are no longer measured at {', '.join(map(_spaced, lost))}; counts below will suffer."
        )
    return " ".join(words)


def _at_most(share: float) -> str:
    """A percentage of two digits, rounded up; a millionth at least."""
    if share <= _NEAREST:
        return f"{100 * _NEAREST:.4f}%"
    unit = 10.0 ** (floor(log10(share)) - 1)
    return f"{rounded(100 * unit * ceil(share / unit - _NEAREST), 2)}%"


def found_sections(strategy: Strategy[Configuration], confidence: Fraction) -> tuple[Section, ...]:
    """Margins of the answers asked for, and shares, each beside what it is now."""
    z = z_value(confidence)
    rows = strategy.rows
    margins = {
        "Answer": [row.target for row in rows],
        "Geolevel": [_spaced(row.level) for row in rows],
        "Here": [rounded(z * sqrt(row.given), 4) for row in rows],
        "Found": [rounded(z * sqrt(row.found), 4) for row in rows],
        "Change": [_change(row.given, row.found) for row in rows],
    }
    given, found = strategy.given, strategy.found
    lines = [
        line
        for level in given.levels
        for line in (
            (_spaced(level), "the geolevel", given.shares[level], found.shares[level]),
            *(
                (_spaced(level), query.name, mine, theirs)
                for (query, mine), (_, theirs) in zip(given.queries[level], found.queries[level], strict=True)
                if given.shares[level] or found.shares[level]
            ),
        )
    ]
    levels, queries, here, there = zip(*lines, strict=True)
    shares = {
        "Geolevel": levels,
        "Query": queries,
        "Here": [percent(float(share), 3) for share in here],
        "Found": [percent(float(share), 3) for share in there],
    }
    return sections("topdown_strategy.html", margins=margins, shares=shares, confidence=confidence)


def _change(given: float, found: float) -> str:
    if not isfinite(given):
        return "–"
    return f"{100 * (sqrt(found / given) - 1):+.1f}%".replace("-", "−") if given else "none"


def _spaced(level: str) -> str:
    return level.replace("_", " ")


def frontier_section(
    between: TradeOff, frontier: Frontier, strategies: Mapping[Mark, Configuration], confidence: Fraction
) -> Section:
    """The frontier of two answers as a curve, and strategies as points on or above it."""
    z = z_value(confidence)
    pair = between.pair
    names = [f"{_spaced(level)} {of}" for level, of in (pair.first, pair.second)]
    curve = [{"x": z * sqrt(first), "y": z * sqrt(second)} for first, second in frontier.variances]
    placed = {mark: tuple(z * sqrt(one) for one in between.variances(of)) for mark, of in strategies.items()}
    marks = [mark for mark, (first, second) in placed.items() if max(first, second) < inf]
    points = [{"x": placed[mark][0], "y": placed[mark][1], "series": mark.name} for mark in marks]
    data: dict[str, Sequence[object]] = {
        "Point": [*(mark.name for mark in placed), *("the least possible" for _ in curve)],
        names[0]: [rounded(one, 4) for one in (*(x for x, _ in placed.values()), *(row["x"] for row in curve))],
        names[1]: [rounded(one, 4) for one in (*(y for _, y in placed.values()), *(row["y"] for row in curve))],
    }
    chart = Chart(
        f"The margin of error of {names[0]} against that of {names[1]}: the least possible, and strategies.",
        lambda width: curve_with_points(
            curve, points, marks, width, x=f"margin of {names[0]}", y=f"margin of {names[1]}"
        ),
        data,
    )
    figure = Figure((chart,), legend=(_CURVE, *marks))
    levels = dict.fromkeys(_spaced(level) for level, _ in (pair.first, pair.second))
    (section,) = sections(
        "topdown_frontier.html",
        drawn=figure,
        names=names,
        level=next(iter(levels)) if pair.levels_kept else "",
        grouping=between.grouping,
        other=PRODUCTION in strategies and not between.asks_all_that(strategies[PRODUCTION]),
        untold=[mark.name for mark in placed if mark not in marks],
    )
    return section
