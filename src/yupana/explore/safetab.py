"""SafeTab-P and SafeTab-H on the page."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Final, cast

from yupana.explore.form import (
    MARGINS,
    Chosen,
    Field,
    Form,
    Row,
    between,
    budget_of,
    choice,
    confidence_of,
    margins_of,
    share,
    understood,
    whole,
)
from yupana.explore.reference_safetab import SafetabReference
from yupana.explore.scenario import Fault, Filled, RefusedError, Typed
from yupana.plan.margin import Margins
from yupana.plan.measurement import Accounting, Measurement
from yupana.plan.plan import Plan
from yupana.privacy.exact import show_exact
from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric
from yupana.products.census import MECHANISMS, STATES
from yupana.products.product import Product
from yupana.products.safetab import households, persons
from yupana.products.safetab.configuration import Settings as Common
from yupana.products.safetab.iterations import MOST_RACE_CODES, CharacteristicIterations
from yupana.products.safetab.parameters import CONFIG
from yupana.products.safetab.plan import sensitivity
from yupana.products.safetab.product import HOUSEHOLDS, PERSONS, Parameters
from yupana.products.safetab.regions import LEVELS, PR, REGION_TYPES, US, Level, Run
from yupana.products.safetab.specification import AGE_TABLES, HOUSEHOLD_TYPE, QUESTIONS, TENURE
from yupana.report.groups import (
    expected_tables,
    median_size,
    sizes_section,
    tables_section,
    us_level,
)
from yupana.report.page import Section
from yupana.report.plans import level_sections

_ACCOUNTING: Final = {"published": "as published", "tight": "tight: least proven"}
_MECHANISMS: Final = {"zcdp": "zCDP, Gaussian noise", "puredp": "pure DP, geometric noise"}
_NEGATIVE: Final = {"yes": "stay as they are", "no": "become 0"}
_LARGEST_THRESHOLD: Final = 10**9

_COMMON: Final = (
    Field("race_codes", "Most race codes of a record", f"1 to {MOST_RACE_CODES}; {MOST_RACE_CODES} in 2020"),
    Field("confidence", "Confidence, percent", "95 in 2020"),
    Field("margins", "Margins of error", choices=MARGINS),
    Field("delta", "δ of the ε stated", "1e-10 in 2020"),
    Field("mechanism", "Definition of privacy", choices=_MECHANISMS),
    Field("accounting", "Sensitivities", choices=_ACCOUNTING),
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


@dataclass(frozen=True, slots=True)
class _Read:
    """The filled that both products share, understood."""

    common: Common
    accounting: Accounting
    confidence: Fraction
    margins: Margins
    delta: Fraction


def _read(filled: Filled, on: Iterable[Level], faults: list[Fault]) -> _Read | None:
    """Read the common fields; the passes are those of the levels that are on."""
    fields = filled.fields
    codes = whole("race_codes", fields["race_codes"], "the number of race codes", 1, MOST_RACE_CODES, faults)
    percent = confidence_of("confidence", fields["confidence"], faults)
    delta = between("delta", fields["delta"], "δ", faults)
    margins = margins_of("margins", fields["margins"], faults)
    mechanism = MECHANISMS[choice("mechanism", fields["mechanism"], _MECHANISMS, faults)]
    accounting = cast("Accounting", choice("accounting", fields["accounting"], _ACCOUNTING, faults))
    negative = choice("negative", fields["negative"], _NEGATIVE, faults)
    runs: tuple[Run, ...] = tuple(run for run in (US, PR) if any(level.region.run == run for level in on))
    if not runs:
        faults.append(Fault("", "nothing is switched on, so nothing would be measured: tick a box of the grid"))
    if codes is None or percent is None or delta is None or not runs:
        return None
    common = Common(codes, negative == "yes", runs, STATES, mechanism)
    return _Read(common, accounting, percent / 100, margins, delta)


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


def _common_fields() -> dict[str, str]:
    return {
        "race_codes": str(MOST_RACE_CODES),
        "confidence": "95",
        "margins": "exact",
        "delta": "1e-10",
        "mechanism": "zcdp",
        "accounting": "published",
        "negative": "yes",
    }


def _value(budget: Fraction) -> str:
    text = f"{float(budget):.6f}"
    return text if Fraction(text) == budget else show_exact(budget)


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
    "t3": (3, "Thresholds: persons from which a group gets 2, 4 and 5 household types"),
    "t4": (1, "Thresholds: persons from which a group gets tenure"),
}
_NAMES_H: Final = {households.measurement_name(q, level): (q, level) for level in LEVELS for q in QUESTIONS}
_P_THRESHOLDS: Final = "Thresholds: noisy totals from which a group gets 4, 9 and 23 ages"

_FORM_H: Final = Form(
    title=HOUSEHOLDS.words.title,
    intro="How much noise should the tables of households by detailed race and ethnicity carry? Type a budget ρ, or "
    "the margin of error you want; each follows the other. Clear a box to leave a level out. You start from the "
    "production filled of 2020.",
    fields=(*_COMMON, *(f for key, (_, words) in _H_THRESHOLDS.items() for f in _threshold_fields(key, words))),
    rows=_rows(),
    columns={
        f"{family.name} {depth}": f"{words}, {_DEPTHS[depth]}"
        for family, words in ((HOUSEHOLD_TYPE, "Household type"), (TENURE, "Tenure"))
        for depth in _DEPTHS
    },
    cells={
        (level.region.name, f"{question.name} {level.iteration_level}"): households.measurement_name(question, level)
        for level in LEVELS
        for question in QUESTIONS
    },
    corner="Geography",
    solving="the median number of households of the groups of each level, among invented people; the "
    "United States and Puerto Rico may each spend the total",
)

_FORM_P: Final = Form(
    title=PERSONS.words.title,
    intro="How much noise should the tables of persons by detailed race and ethnicity carry? Type a budget ρ for a "
    "level, or the margin of error of its cells; each follows the other. Clear a box to leave a level out. You start "
    "from the production filled of 2020.",
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
class HouseholdsPage:
    """SafeTab-H, with its groups and what is known of their sizes."""

    iterations: CharacteristicIterations
    reference: SafetabReference
    key: str = HOUSEHOLDS.key
    product: Product[Parameters[households.HouseholdsConfig]] = HOUSEHOLDS
    form: Form = _FORM_H
    filename: str = CONFIG

    def start(self) -> Filled:
        """The runs of 2020, the United States and Puerto Rico."""
        config = households.production_config((US, PR))
        rho, thresholds = config.budgets, config.thresholds
        return Filled(
            _common_fields()
            | {f"{k}.{level.name}": _listed(thresholds[k, level]) for k in _H_THRESHOLDS for level in LEVELS},
            {
                name: Typed(
                    on=rho[f.key, level] > 0, by="budget", value=_value(Fraction(rho[f.key, level] or _REGIONAL_H))
                )
                for name, (f, level) in _NAMES_H.items()
            },
        )

    def production(self, filled: Filled) -> Filled:
        """The same."""
        del filled
        return self.start()

    def choose(self, filled: Filled) -> Chosen:
        """Understand filled."""
        faults: list[Fault] = []
        on = {name: pair for name, pair in _NAMES_H.items() if filled.entries[name].on}
        read = _read(filled, (level for _, level in on.values()), faults)
        thresholds = {
            (key, level): _thresholds(f"{key}.{level.name}", filled.fields[f"{key}.{level.name}"], number, faults)
            for key, (number, _) in _H_THRESHOLDS.items()
            for level in LEVELS
        }
        budgets: dict[tuple[str, Level], Fraction] = {(f.key, level): Fraction(0) for f, level in _NAMES_H.values()}
        if read is not None:
            for name, (family, level) in on.items():
                s = sensitivity(self.iterations, level, read.common.max_race_codes, read.accounting).unbounded
                entry, mechanism = filled.entries[name], read.common.mechanism
                budget = budget_of(name, entry, s, read.confidence, mechanism, read.margins, faults)
                budgets[family.key, level] = budget or Fraction(0)
        if faults or read is None:
            raise RefusedError(faults)
        config = Parameters(households.HouseholdsConfig(read.common, budgets, thresholds), self.iterations)
        plan = HOUSEHOLDS.plan(config, accounting=read.accounting, confidence=read.confidence, margins=read.margins)
        return understood(HOUSEHOLDS, config, plan, read.delta)

    def sections(self, filled: Filled, chosen: Chosen) -> Sequence[Section]:
        """Budgets, margins, tables by size, relative errors."""
        del filled
        plan, config = chosen.plan, chosen.config.config
        kinds = HOUSEHOLDS.words.kinds
        of_family = {q: {_NAMES_H[m.name][1]: m for m in plan.measurements if m.table == q.name} for q in QUESTIONS}
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
                        level: expected_tables(self.reference.all_persons(level), config.thresholds[f.key, level], None)
                        for level in measured
                        if level.region.run == US
                    },
                    names[f],
                    f"Which table groups get: {kinds[f.name]}",
                    f"tables-{f.key}",
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
class PersonsPage:
    """SafeTab-P, with its groups and what is known of their sizes."""

    iterations: CharacteristicIterations
    reference: SafetabReference
    key: str = PERSONS.key
    product: Product[Parameters[persons.PersonsConfig]] = PERSONS
    form: Form = _FORM_P
    filename: str = CONFIG

    def start(self) -> Filled:
        """The runs of 2020, the United States and Puerto Rico."""
        config = persons.production_config((US, PR))
        rho, thresholds = config.budgets, config.thresholds
        return Filled(
            _common_fields()
            | {"stage_1": "0.1", "zero": "0.9999"}
            | {f"t.{level.name}": _listed(thresholds[level]) for level in LEVELS},
            {
                level.name: Typed(on=rho[level] > 0, by="budget", value=_value(Fraction(rho[level] or _REGIONAL_P)))
                for level in LEVELS
            },
        )

    def production(self, filled: Filled) -> Filled:
        """The same."""
        del filled
        return self.start()

    def choose(self, filled: Filled) -> Chosen:
        """Understand filled."""
        faults: list[Fault] = []
        on = [level for level in LEVELS if filled.entries[level.name].on]
        read = _read(filled, on, faults)
        stage_1 = share("stage_1", filled.fields["stage_1"], "the share", faults, zero=False)
        zero = share("zero", filled.fields["zero"], "the chance", faults, zero=True)
        thresholds = {
            level: _thresholds(f"t.{level.name}", filled.fields[f"t.{level.name}"], 3, faults) for level in LEVELS
        }
        if faults or read is None or stage_1 is None or zero is None:
            raise RefusedError(faults)
        none = persons.PersonsConfig(read.common, dict.fromkeys(LEVELS, Fraction(0)), thresholds, stage_1, zero)
        empty = Parameters(none, self.iterations)
        budgets = {}
        for name, of_level in PERSONS.entries(empty, read.accounting).items():
            entry, mechanism = filled.entries[name], read.common.mechanism
            if entry.on:
                of_cells = of_level.sensitivity / of_level.share
                budgets[name] = budget_of(name, entry, of_cells, read.confidence, mechanism, read.margins, faults)
        if faults:
            raise RefusedError(faults)
        config = PERSONS.with_budgets(empty, {name: budget or Fraction(0) for name, budget in budgets.items()})
        plan = PERSONS.plan(config, accounting=read.accounting, confidence=read.confidence, margins=read.margins)
        return understood(PERSONS, config, plan, read.delta)

    def sections(self, filled: Filled, chosen: Chosen) -> Sequence[Section]:
        """Budgets, margins, tables by size, relative errors."""
        del filled
        plan, config = chosen.plan, chosen.config.config
        stage_1 = {_LEVELS[m.level]: m for m in plan.measurements if m.name.startswith(persons.STAGE_1)}
        rows = {
            level: expected_tables(self.reference.persons[level.name], config.thresholds[level], _noise(m))
            for level, m in stage_1.items()
            if level.region.run == US and level.name in self.reference.persons
        }
        names = ("a total", *(f"sex by {len(starts)} ages" for starts in AGE_TABLES.values()))
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


_LEVELS: Final = {level.name: level for level in LEVELS}


def _noise(m: Measurement) -> DiscreteGaussian | TwoSidedGeometric | None:
    """The noise of a measurement; None where there is none."""
    law = m.law
    return law if isinstance(law, DiscreteGaussian | TwoSidedGeometric) else None


def _cells(plan: Plan) -> dict[Level, Measurement]:
    """The measurement of each level's published cells: stage 2, or totals where there is nothing else."""
    by_kind = {
        kind: {_LEVELS[m.level]: m for m in plan.measurements if m.name.startswith(kind)}
        for kind in (persons.DETAILED_ONLY, persons.STAGE_2)
    }
    found = by_kind[persons.DETAILED_ONLY] | by_kind[persons.STAGE_2]
    return {level: found[level] for level in LEVELS if level in found}
