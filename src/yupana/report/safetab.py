"""What releases of SafeTab say, in words and pictures: their losses, and what each population group received.

Everything here follows from plans and published tables. Where the truth stands beside it, as invented people allow,
see `yupana.report.safetab_demonstration`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from yupana.plan.measurement import Mechanism
from yupana.plan.plan import DEFAULT_DELTA, Plan
from yupana.privacy.zcdp import epsilon_tight
from yupana.products.safetab.iterations import CharacteristicIterations
from yupana.products.safetab.regions import LEVELS, Level
from yupana.products.safetab.specification import AGE_TABLES, HOUSEHOLD_TYPE, TENURE, TOTALS
from yupana.report.charts import GREY, Mark, share_bars
from yupana.report.html import code, paragraph, table
from yupana.report.numbers import loss, percent, power_of_ten, rounded, whole
from yupana.report.page import Chart, Figure, Section

Columns = Mapping[str, Sequence[str]]
Release = Mapping[str, Columns]

_KINDS: Final = {
    "nation": "Nation",
    "state": "States",
    "county": "Counties",
    "tract": "Tracts",
    "place": "Places",
    "aiannh": "Tribal areas",
}
_DEPTHS: Final = {1: "regional", 2: "detailed"}

_AMOUNTS: Final = (GREY, "#3fa0c9", "#d9982a", "#cf5a1e")
"""Colours from a total alone to the finest table."""

AGES: Final = {
    TOTALS: Mark("a total", _AMOUNTS[0]),
    **{
        table: Mark(f"sex by {len(starts)} ages", colour)
        for (table, starts), colour in zip(AGE_TABLES.items(), _AMOUNTS[1:], strict=True)
    },
}
TYPES: Final = {
    table: Mark(words, colour)
    for table, words, colour in zip(
        HOUSEHOLD_TYPE.tables,
        ("a total", "family or not", "4 household types", "5 household types"),
        _AMOUNTS,
        strict=True,
    )
}
TENURES: Final = {
    TENURE.tables[0]: Mark("a total", _AMOUNTS[0]),
    TENURE.tables[1]: Mark("3 tenures", "#8180d6"),
}
"""What a group that is in one table received, by table, from the least on."""


def level_name(level: Level) -> str:
    """A level as people call it: ``Counties, detailed``."""
    passing = "Puerto Rico: " if level.region.run == "pr" else ""
    return f"{passing}{_KINDS[level.region.base]}, {_DEPTHS[level.iteration_level]}"


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
        return [*rows, *([rounded(epsilon_tight(unbounded, DEFAULT_DELTA), 4)] if zcdp else [])]

    kinds = [
        "Protects",
        f"{symbol}, one record added or removed",
        f"{symbol}, the same, proven at most",
        f"{symbol}, one record changed in any way",
        *([f"ε at δ = {power_of_ten(DEFAULT_DELTA)}, one record added or removed"] if zcdp else []),
    ]
    columns = {"": kinds, "SafeTab-P": column(persons), "SafeTab-H": column(households)}
    return Section(
        "loss",
        "Two privacy losses",
        (
            paragraph(
                "SafeTab-P protects the record of a person, SafeTab-H the record of a household. Each loss is that of "
                "its own record, so the two are not added as they stand. One person can change both records, as a "
                "household has the codes of its householder: ",
                code("docs/person-loss.md"),
                " says what a person loses in both. The losses of the United States and of Puerto Rico are not added "
                "either, for nobody is counted in both.",
            ),
            paragraph(
                "SafeTab-H reads the totals that SafeTab-P has published. They cost what SafeTab-P cost, and SafeTab-H "
                "adds its own loss to whoever is in both. The proofs are in ",
                code("docs/safetab-privacy.md"),
                ".",
            ),
            table(columns, "The loss of each product. The smaller, the less its tables reveal about one record."),
        ),
    )


def received_chart(
    found: Sequence[Received], kinds: Mapping[str, Mark], of: str, title: str = ""
) -> tuple[Chart, tuple[Mark, ...]]:
    """Shares of the published groups of each level by table, with the numbers, and a legend."""
    series = tuple(replace(s, shape="square") for s in kinds.values())
    rows = [
        {
            "category": level_name(r.level),
            "series": kinds[name].name,
            "value": r.groups.get(name, 0) / r.published,
            "text": whole(r.published),
        }
        for r in found
        if r.published
        for name in kinds
    ]
    data: dict[str, list[object]] = {
        "Level": [level_name(r.level) for r in found],
        "Possible": [whole(r.possible) for r in found],
        "Left out": [whole(r.possible - r.published) for r in found],
        "Published": [whole(r.published) for r in found],
        **{f"{name}, {kinds[name].name}": [_part(r.groups.get(name, 0), r.published) for r in found] for name in kinds},
    }
    label = f"{of}: what the published population groups of each level received."
    return (
        Chart(
            label,
            lambda width: share_bars(
                rows,
                series,
                width,
                axis="share of published groups; their number beside" if width > 500 else "share of published groups",
            ),
            data,
            title=title,
        ),
        series,
    )


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
    larger = sum(r.published - r.groups.get(TOTALS, 0) for r in persons)
    chart, legend = received_chart(persons, AGES, "SafeTab-P")
    types, of_types = received_chart(households["types"], TYPES, "SafeTab-H, household types", "Household types")
    tenures, (_, several) = received_chart(households["tenures"], TENURES, "SafeTab-H, tenure", "Tenure")
    return (
        Section(
            "persons",
            "What each group of persons received",
            (
                paragraph(
                    "A population group is an area and a group of race or ethnicity in it, such as Korean alone in a "
                    "county. Regional groups are large (East Asian), detailed ones small (Korean). SafeTab-P first "
                    "takes a rough noisy total of each group, which nobody sees. It then decides: the larger the "
                    "group seems, the more ages it is told by. So a small group is not drowned in cells full of noise."
                ),
                paragraph(
                    f"Of {whole(possible)} possible groups, {whole(published)} were published, {whole(larger)} of them "
                    f"by sex and age. The other {whole(possible - published)}, nearly all of them empty, were left "
                    "out: below the state, totals that noise alone could have made are suppressed."
                ),
                Figure(
                    (chart,),
                    "Every bar is all published groups of a level, and their number stands beside it. The numbers "
                    "below tell how many were possible, and how many were left out.",
                    legend,
                ),
            ),
        ),
        Section(
            "households",
            "What each group of households received",
            (
                paragraph(
                    "SafeTab-H counts the households of the groups that SafeTab-P has published, by the group of the "
                    "householder. The published total of persons, noise included, decides which table a group gets. "
                    "Groups without a total are not counted. A group that has one, and in which no household is, gets "
                    "a noisy zero."
                ),
                Figure(
                    (types, tenures),
                    "Every group is in one of T03001 to T03004, and in T04001 or T04002.",
                    (*of_types, several),
                ),
            ),
        ),
    )
