"""Population groups of SafeTab: which table each gets by its size, how good it is, and what releases gave them.

Everything here follows from plans, public sizes and published tables. Where the truth stands beside it, as invented
people allow, see `yupana.report.demonstration`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from types import MappingProxyType
from typing import Final

import numpy as np

from yupana.arrays import Floats, Ints
from yupana.plan.exact_loss import epsilon_exact
from yupana.plan.measurement import Measurement, Mechanism
from yupana.plan.plan import DEFAULT_DELTA, Plan
from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric
from yupana.privacy.zcdp import epsilon_tight
from yupana.products.safetab.iterations import CharacteristicIterations
from yupana.products.safetab.product import HOUSEHOLDS, PERSONS
from yupana.products.safetab.regions import LEVELS, Level
from yupana.products.safetab.specification import AGE_TABLES, HOUSEHOLD_TYPE, TENURE, TOTALS
from yupana.report.charts import GREY, Mark, Spec, share_bars
from yupana.report.html import shades
from yupana.report.numbers import loss, percent, power_of_ten, rounded, whole
from yupana.report.page import Chart, Figure, Section, sections

Columns = Mapping[str, Sequence[str]]
Release = Mapping[str, Columns]

_AMOUNTS: Final = (GREY, "#3fa0c9", "#d9982a", "#cf5a1e")
"""Colours from a total alone to the finest table."""

_TABLES: Final = {**PERSONS.words.tables, **HOUSEHOLDS.words.tables}
_TENURES: Final = (_AMOUNTS[0], "#8180d6")


def _marks(tables: Iterable[str], colours: Sequence[str]) -> dict[str, Mark]:
    return {name: Mark(_TABLES[name], colour) for name, colour in zip(tables, colours, strict=True)}


AGES: Final = _marks((TOTALS, *AGE_TABLES), _AMOUNTS)
TYPES: Final = _marks(HOUSEHOLD_TYPE.tables, _AMOUNTS)
TENURES: Final = _marks(TENURE.tables, _TENURES)
"""What a group that is in one table received, by table, from the least on."""

LEVEL_NAMES: Final = PERSONS.words.levels
"""What levels are called: ``Counties, detailed``."""


@dataclass(frozen=True, eq=False)
class Received:
    """How many population groups of one level got which table.

    Attributes
    ----------
    level : Level
    possible : int
        Groups that could have been published: areas times iterations, or those of T01001.
    groups : mapping of table to int
    """

    level: Level
    possible: int
    groups: Mapping[str, int]

    @property
    def published(self) -> int:
        """Groups that got any table."""
        return sum(self.groups.values())


def groups_by_table(
    release: Release, tables: Sequence[str], iterations: CharacteristicIterations
) -> dict[Level, Counter[str]]:
    """Count the groups in each of some tables by level; a group in several counts in the last."""
    table_of: dict[tuple[str, str, str], str] = {}
    for name in tables:
        columns = release[name]
        table_of |= dict.fromkeys(
            zip(columns["REGION_TYPE"], columns["REGION_ID"], columns["ITERATION_CODE"], strict=True), name
        )
    level_of = {iteration.code: iteration.level for iteration in iterations.iterations}
    by_level = {(level.region.name, level.iteration_level): level for level in LEVELS}
    counted: dict[Level, Counter[str]] = {}
    for (region_type, _, iteration), name in table_of.items():
        counted.setdefault(by_level[region_type, level_of[iteration]], Counter())[name] += 1
    return {level: counted[level] for level in LEVELS if level in counted}


def loss_section(persons: Plan, households: Plan) -> Section:
    """The losses of both products, side by side, each of its own record."""
    zcdp = persons.mechanism is Mechanism.ZCDP
    symbol = persons.mechanism.symbol

    def column(plan: Plan) -> list[str]:
        unbounded = plan.loss()
        rows = [
            f"one {plan.privacy_unit}",
            loss(unbounded),
            loss(plan.loss(lambda m: m.proven.unbounded)),
            loss(plan.loss(lambda m: m.sensitivity.bounded)),
        ]
        exact = epsilon_exact(plan)
        shown = [rounded(epsilon_tight(unbounded, DEFAULT_DELTA), 4), "none" if exact is None else rounded(exact, 4)]
        return rows + shown * zcdp

    kinds = [
        "Protects",
        f"{symbol}, one record added or removed",
        f"{symbol}, the same, proven at most",
        f"{symbol}, one record changed in any way",
    ]
    if zcdp:
        kinds.append(f"ε at δ = {power_of_ten(DEFAULT_DELTA)}, one record added or removed")
        kinds.append("the same, by the exact law of the noise")
    (section,) = sections(
        "groups_loss.html", losses={"": kinds, "SafeTab-P": column(persons), "SafeTab-H": column(households)}
    )
    return section


def received_chart(
    found: Sequence[Received], kinds: Mapping[str, Mark], of: str, title: str = ""
) -> tuple[Chart, tuple[Mark, ...]]:
    """Shares of the published groups of each level by table, with the numbers, and a legend."""
    marks = tuple(replace(s, shape="square") for s in kinds.values())
    rows = [
        {
            "category": LEVEL_NAMES[r.level.name],
            "series": kinds[name].name,
            "value": r.groups.get(name, 0) / r.published,
            "text": whole(r.published),
        }
        for r in found
        if r.published
        for name in kinds
    ]
    data: dict[str, list[object]] = {
        "Level": [LEVEL_NAMES[r.level.name] for r in found],
        "Possible": [whole(r.possible) for r in found],
        "Left out": [whole(r.possible - r.published) for r in found],
        "Published": [whole(r.published) for r in found],
        **{f"{name}, {kinds[name].name}": [_part(r.groups.get(name, 0), r.published) for r in found] for name in kinds},
    }
    label = f"{of}: what the published population groups of each level received."
    return _shares_chart(label, rows, marks, data, "published groups", title), marks


def _shares_chart(
    label: str,
    rows: Sequence[Mapping[str, object]],
    marks: Sequence[Mark],
    data: Mapping[str, Sequence[object]],
    of: str,
    title: str = "",
) -> Chart:
    """Bars of shares by level, with the number of groups beside."""

    def spec(width: int) -> Spec:
        beside = "; their number beside" if width > 500 else ""
        return share_bars(rows, marks, width, axis=f"share of {of}{beside}")

    return Chart(label, spec, data, title)


def _part(number: int, of: int) -> str:
    return f"{whole(number)} ({percent(number / of, 1)})" if number else "0"


def received_sections(persons: Sequence[Received], households: Mapping[str, Sequence[Received]]) -> tuple[Section, ...]:
    """What the groups of persons and those of households received.

    Parameters
    ----------
    persons : sequence of Received
    households : mapping of "types" and "tenures" to sequence of Received
    """
    possible, published = (sum(getattr(r, of) for r in persons) for of in ("possible", "published"))
    chart, legend = received_chart(persons, AGES, "SafeTab-P")
    types, of_types = received_chart(households["types"], TYPES, "SafeTab-H, household types", "Household types")
    tenures, (_, several) = received_chart(households["tenures"], TENURES, "SafeTab-H, tenure", "Tenure")
    return sections(
        "groups_received.html",
        possible=possible,
        published=published,
        larger=sum(r.published - r.groups.get(TOTALS, 0) for r in persons),
        persons=Figure((chart,), legend=legend),
        households=Figure((types, tenures), legend=(*of_types, several)),
    )


Noise = DiscreteGaussian | TwoSidedGeometric

Sizes = Sequence[tuple[int, int]]
"""Pairs of a size and how many population groups have it."""


def expected_tables(sizes: Sizes, thresholds: Sequence[int], law: Noise | None) -> list[float]:
    """How many groups are expected in each of the tables that thresholds divide them into, the coarsest first.

    Parameters
    ----------
    sizes : Sizes
    thresholds : sequence of int
        Totals from which a group gets the next finer table.
    law : Law or None
        Of the noise of the totals that decide; None where totals decide as they are.
    """
    size, groups = np.array([*sizes, (0, 0)], dtype=np.int64).T
    reached = [float(groups @ _survival(law, threshold - size)) for threshold in thresholds]
    at_least = [float(groups.sum()), *reached]
    return [here - there for here, there in zip(at_least, [*reached, 0.0], strict=True)]


_SUMMED: Final = 2_000.0
"""Up to this standard deviation chances are summed; beyond, the normal with continuity correction is within 1e-8."""


def _survival(law: Noise | None, at: Ints) -> Floats:
    """The chance that noise is at least so much, for each of some numbers."""
    if law is None:
        return (at <= 0).astype(np.float64)
    sigma = max(1.0, law.variance**0.5)
    reach = int(10 * sigma) + 20
    if sigma > _SUMMED:
        normal = NormalDist(0, sigma)
        distinct, place = np.unique(np.clip(at, -reach, reach), return_inverse=True)
        return np.array([1 - normal.cdf(k - 0.5) for k in distinct.tolist()])[place]
    k = np.arange(-reach, reach + 1)
    exponent = float(law.exponent)
    weights = np.exp(-exponent * (k * k if law.curvature == 2 else np.abs(k)))
    from_here = np.cumsum(weights[::-1])[::-1] / weights.sum()
    found: Floats = np.append(from_here, 0.0)[np.clip(at + reach, 0, 2 * reach + 1)]
    return found


_SIZES: Final = (10, 30, 100, 300, 1_000, 3_000, 10_000, 100_000)


def sizes_section(
    plan: Plan,
    measured: Mapping[Level, Measurement],
    sizes: Mapping[str, Sizes] = MappingProxyType({}),
    source: str = "",
) -> Section:
    """The margin of error of a group's total as a share of its size, and how many groups are within a tenth."""
    rows = {LEVEL_NAMES[level.name]: [plan.margin(m) / size for size in _SIZES] for level, m in measured.items()}
    known = [(level, m, sizes[us_level(level)]) for level, m in measured.items() if us_level(level) in sizes]
    parts = [[percent(_within(found, plan.margin(m) / share), 1) for share in (0.1, 0.5)] for _, m, found in known]
    within: dict[str, list[str]] = {
        "Level": [LEVEL_NAMES[level.name] for level, _, _ in known],
        "Groups": [whole(sum(n for _, n in found)) for _, _, found in known],
        "within 10%": [part[0] for part in parts],
        "within 50%": [part[1] for part in parts],
    }
    (section,) = sections(
        "groups_sizes.html",
        shades=shades(
            rows,
            [whole(size) for size in _SIZES],
            "Margin of error of one measured count as a share of its size",
            "Level",
        ),
        within=within if known else None,
        source=source,
    )
    return section


def _within(sizes: Sizes, least: float) -> float:
    """The share of groups of at least some size."""
    return sum(groups for size, groups in sizes if size >= least) / sum(groups for _, groups in sizes)


def us_level(level: Level) -> str:
    """The level of the United States whose groups stand in for one of Puerto Rico."""
    return level.name.removeprefix("PR-")
