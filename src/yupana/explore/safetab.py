"""SafeTab-P and SafeTab-H on the page."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Final

from yupana.explore.form import (
    OF_2020,
    Chosen,
    Field,
    Form,
    PlanTerms,
    ProductPage,
    Row,
    choice,
    decimal,
    read_terms,
    require_some,
    share,
    terms_fields,
    whole,
)
from yupana.explore.reference import SafetabReference
from yupana.explore.scenario import Fault, Filled, RefusedError, Typed
from yupana.plan.measurement import Measurement
from yupana.plan.plan import Plan
from yupana.privacy.exact import Budget
from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric
from yupana.products.census import STATES
from yupana.products.product import Product
from yupana.products.safetab.configuration import SafetabConfig, Settings, production_config
from yupana.products.safetab.iterations import CONFIG, MOST_RACE_CODES, CharacteristicIterations
from yupana.products.safetab.product import HOUSEHOLDS, PERSONS, Parameters
from yupana.products.safetab.regions import BY_NAME, LEVELS, PR, REGION_TYPES, US, Level
from yupana.products.safetab.specification import (
    AGE_TABLES,
    DETAILED_ONLY,
    HOUSEHOLD_TYPE,
    STAGE_1,
    STAGE_2,
    TENURE,
)
from yupana.products.safetab.translation import sensitivity
from yupana.report.groups import (
    expected_tables,
    median_size,
    sizes_section,
    tables_section,
    us_level,
)
from yupana.report.page import Section
from yupana.report.plans import level_sections

_NEGATIVE: Final = {"yes": "stay as they are", "no": "become 0"}
_LARGEST_THRESHOLD: Final = 10**9

_COMMON: Final = (
    Field("race_codes", "Most race codes of a record", f"1 to {MOST_RACE_CODES}; {MOST_RACE_CODES} in 2020"),
    *terms_fields("95 in 2020", "as published"),
    Field("negative", "Noisy counts below zero", choices=_NEGATIVE),
)

_REGIONS: Final = {
    "USA": "the nation",
    "STATE": "states",
    "COUNTY": "counties",
    "TRACT": "census tracts",
    "PLACE": "places",
    "AIANNH": "tribal and Hawaiian home land areas",
    "PR-STATE": "Puerto Rico",
    "PR-COUNTY": "its municipios",
    "PR-TRACT": "its census tracts",
    "PR-PLACE": "its places",
}
_DEPTHS: Final = {1: "regional groups", 2: "detailed groups"}


def _read(filled: Filled, on: Iterable[Level], faults: list[Fault]) -> tuple[Settings, PlanTerms] | None:
    """Read what both products ask; the passes are those of the levels that are on. None without the race codes."""
    fields = filled.fields
    codes = whole("race_codes", fields["race_codes"], "the number of race codes", 1, MOST_RACE_CODES, faults)
    terms = read_terms(fields, faults)
    negative = choice("negative", fields["negative"], _NEGATIVE, faults)
    require_some(filled, faults)
    if codes is None:
        return None
    used = {level.region.run for level in on}
    runs = tuple(run for run in (US, PR) if run in used)
    return Settings(codes, negative == "yes", runs, STATES, terms.mechanism), terms


def _thresholds(key: str, text: str, number: int, faults: list[Fault]) -> tuple[int, ...]:
    """Whole numbers that do not descend, with commas between."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != number or not all(p.isascii() and p.isdecimal() and int(p) <= _LARGEST_THRESHOLD for p in parts):
        wanted = "one whole number" if number == 1 else f"{number} whole numbers with commas between"
        faults.append(Fault(key, f"must be {wanted}, each at most {_LARGEST_THRESHOLD:,}"))
        return ()
    found = tuple(map(int, parts))
    if any(a > b for a, b in pairwise(found)):
        faults.append(Fault(key, "thresholds must not descend: a larger group never gets less"))
    return found


_COMMON_OF_2020: Final = {"race_codes": str(MOST_RACE_CODES), "confidence": "95", **OF_2020, "negative": "yes"}


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def _rows() -> tuple[Row, ...]:
    return tuple(Row(region.name, region.name, _REGIONS[region.name]) for region in REGION_TYPES)


def _threshold_fields(key: str, words: str) -> tuple[Field, ...]:
    return tuple(
        Field(f"{key}.{level.name}", f"{level.region.name}, {_DEPTHS[level.iteration_level]}", group=words)
        for level in LEVELS
    )


_H_THRESHOLDS: Final = {
    HOUSEHOLD_TYPE: ("t3", 3, "Thresholds: persons from which a group gets 2, 4 and 5 household types"),
    TENURE: ("t4", 1, "Thresholds: persons from which a group gets tenure"),
}
_NAMES_H: Final = {q.entry(level): (q, level) for level in LEVELS for q in _H_THRESHOLDS}
_P_THRESHOLDS: Final = "Thresholds: noisy totals from which a group gets 4, 9 and 23 ages"

_FORM_H: Final = Form(
    title=HOUSEHOLDS.words.title,
    intro="How much noise should the tables of households by detailed race and ethnicity carry? Type a budget ρ, or "
    "the margin of error you want; each follows the other. Clear a box to leave a level out. You start from the "
    "production settings of 2020.",
    fields=(*_COMMON, *(f for key, _, words in _H_THRESHOLDS.values() for f in _threshold_fields(key, words))),
    rows=_rows(),
    columns={
        f"{family.name} {depth}": f"{words}, {_DEPTHS[depth]}"
        for family, words in ((HOUSEHOLD_TYPE, "Household type"), (TENURE, "Tenure"))
        for depth in _DEPTHS
    },
    cells={
        (level.region.name, f"{question.name} {level.iteration_level}"): name
        for name, (question, level) in _NAMES_H.items()
    },
    corner="Geography",
    solving="the median number of households of the groups of each level, among invented people; the "
    "United States and Puerto Rico may each spend the total",
)

_FORM_P: Final = Form(
    title=PERSONS.words.title,
    intro="How much noise should the tables of persons by detailed race and ethnicity carry? Type a budget ρ for a "
    "level, or the margin of error of its cells; each follows the other. Clear a box to leave a level out. You start "
    "from the production settings of 2020.",
    fields=(
        *_COMMON,
        Field("stage_1", "Share of a budget for choosing tables", "stage 1; 0.1 in 2020"),
        Field("zero", "Chance that an empty group is left out", "0.9999 in 2020; 0 for none"),
        *_threshold_fields("t", _P_THRESHOLDS),
    ),
    rows=_rows(),
    columns={str(depth): words[0].upper() + words[1:] for depth, words in _DEPTHS.items()},
    cells={(level.region.name, str(level.iteration_level)): level.name for level in LEVELS},
    corner="Geography",
    solving="the median number of persons of the groups of each level, among invented people; the "
    "United States and Puerto Rico may each spend the total",
)


@dataclass(frozen=True, slots=True)
class _SafetabPage(ProductPage):
    """A product with its groups and what is known of their sizes."""

    iterations: CharacteristicIterations
    reference: SafetabReference
    filename: str = CONFIG


@dataclass(frozen=True, slots=True)
class HouseholdsPage(_SafetabPage):
    """SafeTab-H."""

    key: str = HOUSEHOLDS.key
    product: Product[Parameters] = HOUSEHOLDS
    form: Form = _FORM_H

    def start(self) -> Filled:
        """The runs of 2020, the United States and Puerto Rico."""
        config = production_config(HOUSEHOLDS.key, (US, PR))
        rho, thresholds = config.budgets, config.thresholds
        return Filled(
            _COMMON_OF_2020
            | {
                f"{key}.{level.name}": _listed(thresholds[question.entry(level)])
                for question, (key, _, _) in _H_THRESHOLDS.items()
                for level in LEVELS
            },
            {
                name: Typed(on=rho[name] > 0, by="budget", value=decimal(Fraction(rho[name] or _REGIONAL_H)))
                for name in _NAMES_H
            },
        )

    def choose(self, filled: Filled) -> Chosen:
        """Understand the form."""
        faults: list[Fault] = []
        on = {name: pair for name, pair in _NAMES_H.items() if filled.entries[name].on}
        read = _read(filled, (level for _, level in on.values()), faults)
        thresholds = {
            question.entry(level): _thresholds(field, filled.fields[field], number, faults)
            for question, (key, number, _) in _H_THRESHOLDS.items()
            for level in LEVELS
            if (field := f"{key}.{level.name}")
        }
        if read is None:
            raise RefusedError(faults)
        common, terms = read
        budgets: dict[str, Budget] = dict.fromkeys(_NAMES_H, Fraction(0))
        for name, (_, level) in on.items():
            s = sensitivity(self.iterations, level, common.max_race_codes, terms.accounting).unbounded
            budgets[name] = terms.budget(name, filled.entries[name], s, faults)
        if faults:
            raise RefusedError(faults)
        config = SafetabConfig(HOUSEHOLDS.key, common, budgets, thresholds)
        return terms.understood(HOUSEHOLDS, Parameters(config, self.iterations))

    def sections(self, filled: Filled, chosen: Chosen) -> Sequence[Section]:
        """Budgets, margins, tables by size, relative errors."""
        del filled
        plan, config = chosen.plan, chosen.config.config
        kinds = HOUSEHOLDS.words.kinds
        of_family = {q: {_NAMES_H[m.name][1]: m for m in plan.measurements if m.table == q.name} for q in _H_THRESHOLDS}
        names = {HOUSEHOLD_TYPE: ("a total", "2 types", "4 types", "5 types"), TENURE: ("a total", "3 tenures")}
        words = (
            f"The published total of persons decides which table a group gets. The groups are those of "
            f"{self.reference.source}; the noise of their totals, small beside the thresholds, is left out."
        )
        return (
            *level_sections(plan),
            *(
                tables_section(
                    {
                        level: expected_tables(
                            self.reference.all_persons(level), config.thresholds[f.entry(level)], None
                        )
                        for level in measured
                        if level.region.run == US
                    },
                    names[f],
                    f"Which table groups get: {kinds[f.name]}",
                    f"tables-{_H_THRESHOLDS[f][0]}",
                    words,
                )
                for f, measured in of_family.items()
            ),
            sizes_section(
                plan, of_family[HOUSEHOLD_TYPE] or of_family[TENURE], self.reference.households, self.reference.source
            ),
        )

    def sizes(self, chosen: Chosen) -> Mapping[str, Fraction]:
        """The median number of households of a group."""
        del chosen
        return {
            name: median_size(found)
            for name, (_, level) in _NAMES_H.items()
            if (found := self.reference.households.get(us_level(level)))
        }


_REGIONAL_H: Final = Fraction("0.006915")
_REGIONAL_P: Final = Fraction("0.008")
"""What a level that was off in 2020 is offered: the budget of the others of its kind."""


@dataclass(frozen=True, slots=True)
class PersonsPage(_SafetabPage):
    """SafeTab-P."""

    key: str = PERSONS.key
    product: Product[Parameters] = PERSONS
    form: Form = _FORM_P

    def start(self) -> Filled:
        """The runs of 2020, the United States and Puerto Rico."""
        config = production_config(PERSONS.key, (US, PR))
        rho, thresholds = config.budgets, config.thresholds
        return Filled(
            _COMMON_OF_2020
            | {"stage_1": "0.1", "zero": "0.9999"}
            | {f"t.{level.name}": _listed(thresholds[level.name]) for level in LEVELS},
            {
                name: Typed(on=budget > 0, by="budget", value=decimal(Fraction(budget or _REGIONAL_P)))
                for name, budget in rho.items()
            },
        )

    def choose(self, filled: Filled) -> Chosen:
        """Understand the form."""
        faults: list[Fault] = []
        on = [level for level in LEVELS if filled.entries[level.name].on]
        read = _read(filled, on, faults)
        stage_1 = share("stage_1", filled.fields["stage_1"], "the share", faults, zero=False)
        zero = share("zero", filled.fields["zero"], "the chance", faults, zero=True)
        thresholds = {
            level.name: _thresholds(f"t.{level.name}", filled.fields[f"t.{level.name}"], 3, faults) for level in LEVELS
        }
        if faults or read is None or stage_1 is None or zero is None:
            raise RefusedError(faults)
        common, terms = read
        none = SafetabConfig(PERSONS.key, common, dict.fromkeys(BY_NAME, Fraction(0)), thresholds, stage_1, zero)
        empty = Parameters(none, self.iterations)
        budgets = {
            name: terms.budget(name, filled.entries[name], level.sensitivity / level.share, faults)
            for name, level in PERSONS.entries(empty, terms.accounting).items()
            if filled.entries[name].on
        }
        if faults:
            raise RefusedError(faults)
        return terms.understood(PERSONS, PERSONS.with_budgets(empty, budgets))

    def sections(self, filled: Filled, chosen: Chosen) -> Sequence[Section]:
        """Budgets, margins, tables by size, relative errors."""
        del filled
        plan, config = chosen.plan, chosen.config.config
        stage_1 = {BY_NAME[m.level]: m for m in plan.measurements if m.name.startswith(STAGE_1)}
        rows = {
            level: expected_tables(self.reference.persons[level.name], config.thresholds[level.name], _noise(m))
            for level, m in stage_1.items()
            if level.region.run == US and level.name in self.reference.persons
        }
        names = ("a total", *(f"sex by {ages} ages" for ages in AGE_TABLES.values()))
        words = (
            "A rough noisy total of a group, made in stage 1 and never published, decides how finely it is told. Shown "
            f"are expected numbers, stage 1 included. The groups are those of {self.reference.source}, less those of "
            "which only totals are made."
        )
        return (
            *level_sections(plan),
            tables_section(rows, names, "Which table groups get", "tables", words),
            sizes_section(plan, _cells(plan), self.reference.persons, self.reference.source),
        )

    def sizes(self, chosen: Chosen) -> Mapping[str, Fraction]:
        """The median number of persons of a group."""
        del chosen
        return {
            level.name: median_size(found) for level in LEVELS if (found := self.reference.persons.get(us_level(level)))
        }


def _noise(m: Measurement) -> DiscreteGaussian | TwoSidedGeometric | None:
    """The noise of a measurement; None where there is none."""
    law = m.law
    return law if isinstance(law, DiscreteGaussian | TwoSidedGeometric) else None


def _cells(plan: Plan) -> dict[Level, Measurement]:
    """The measurement of each level's published cells: stage 2, or totals where there is nothing else."""
    by_kind = {
        kind: {BY_NAME[m.level]: m for m in plan.measurements if m.name.startswith(kind)}
        for kind in (DETAILED_ONLY, STAGE_2)
    }
    found = by_kind[DETAILED_ONLY] | by_kind[STAGE_2]
    return {level: found[level] for level in LEVELS if level in found}
