"""Configurations of SafeTab as descriptions: what config.json and the files of codes make of the built-in ones. Public.

Files, cells and tables are those of the built-in descriptions. A configuration says budgets, thresholds, states and
passes; the files of codes say the groups, and so how far one record moves what is measured.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, TypeAlias

from yupana.files.columns import Column
from yupana.plan.measurement import Accounting, Sensitivity
from yupana.plan.plan import Plan
from yupana.plan.responses import ResponseGroup
from yupana.products.described.description import AreaKind, DescribedFile, DescribedLevel, DescribedTable, Description
from yupana.products.described.footprints import Cells
from yupana.products.described.stability import Derived
from yupana.products.safetab.configuration import SafetabConfig, Settings
from yupana.products.safetab.iterations import ETHNICITY, CharacteristicIterations, Eligible, Iteration
from yupana.products.safetab.regions import LEVELS, REGION_TYPES, Granularity, Level
from yupana.products.safetab.specification import DETAILED_ONLY, QUESTIONS, described_2020


@dataclass(frozen=True, slots=True)
class EligibleOfPlan:
    """Iterations as the measurements of one plan tell them; all levels of areas that show the same must agree."""

    kinds: frozenset[bool] = frozenset()
    promised: int = 0
    proven: int = 0

    @property
    def iterations(self) -> Sequence[Iteration]:
        """One that stands for those of which totals alone are made, and one for all others."""
        return [
            Iteration(str(only), "", 1, alone=None, detailed_only=only, coarse_only=False)
            for only in sorted(self.kinds)
        ]

    @property
    def groups(self) -> Sequence[ResponseGroup]:
        """Placeholders, too."""
        return [ResponseGroup(ETHNICITY, frozenset({0}))] * len(self.kinds)

    def published_stability(self, race_codes: int) -> int:
        """What noise was scaled to."""
        del race_codes
        return self.promised

    def stability(self, race_codes: int) -> int:
        """What was proven."""
        del race_codes
        return self.proven


@dataclass(frozen=True, slots=True)
class IterationsOfPlan:
    """What a plan tells of the iterations that it was made of: which kinds there are, and how many a record is in."""

    by_level: Mapping[tuple[int, Granularity], EligibleOfPlan]
    codes: tuple[int, ...] = ()

    def eligible(self, level: int, granularity: Granularity) -> EligibleOfPlan:
        """Those of a level that areas of a granularity show."""
        return self.by_level.get((level, granularity), EligibleOfPlan())


EligibleIterations: TypeAlias = Eligible | EligibleOfPlan
Iterations: TypeAlias = CharacteristicIterations | IterationsOfPlan
"""What a plan follows from beside the configuration: the code files, or another plan that was made of them."""


def iterations_of(plan: Plan) -> IterationsOfPlan:
    """What a plan of either product tells of the iterations that it was made of.

    The plan that the configuration makes of them is the same, or the plan is not one of the configuration.

    Raises
    ------
    ValueError
        If a measurement is of no level of SafeTab, or moved by no whole number.
    """
    levels = {level.name: level for level in LEVELS}
    found: dict[tuple[int, Granularity], EligibleOfPlan] = {}
    for m in plan.measurements:
        if m.level not in levels or m.calibration.denominator != 1 or m.proven.unbounded.denominator != 1:
            raise ValueError(f"{m.name} is no measurement of SafeTab")
        level = levels[m.level]
        key = (level.iteration_level, level.region.granularity)
        kinds = found.get(key, EligibleOfPlan()).kinds | {m.name.startswith(f"{DETAILED_ONLY}/")}
        found[key] = EligibleOfPlan(kinds, int(m.calibration), int(m.proven.unbounded))
    return IterationsOfPlan(found)


def sensitivity(iterations: Iterations, level: Level, race_codes: int, accounting: Accounting) -> Sensitivity:
    """How far one record moves the counts of a level: squared L2 under zCDP and L1 under pure DP are the same number.

    A record lies in one area of a kind and in at most s iterations, and is one of the count in one cell of each of
    these groups. Removing it moves s cells by one; changing it moves at most 2s (docs/safetab-privacy.md).

    Parameters
    ----------
    iterations : Iterations
    level : Level
    race_codes : int
        How many race codes of a record count.
    accounting : "published" or "tight"
        s as the originals bound it (9 in production), or the least bound that the code files allow.
    """
    eligible = iterations.eligible(level.iteration_level, level.region.granularity)
    tight = eligible.stability(race_codes)
    # Made-up code files can be worse than the formula, which then does not bound what one record does.
    bound = tight if accounting == "tight" else max(tight, eligible.published_stability(race_codes))
    return Sensitivity(Fraction(bound), Fraction(2 * bound))


CONFIDENCE: Final = Fraction(95, 100)


def description_of(config: SafetabConfig, iterations: Iterations) -> Description:
    """The description of a run.

    Parameters
    ----------
    config : SafetabConfig
    iterations : Iterations
        Those of the code files; or what a plan tells of them, for no more than another plan.
    """
    base, settings = described_2020(config.product), config.settings
    ((name, file),) = base.files.items()
    eligible = {
        level: iterations.eligible(level.iteration_level, level.region.granularity) for level in settings.levels
    }
    eligible = {level: of for level, of in eligible.items() if of.iterations}
    known = {
        i.code: (i.name, group) for of in eligible.values() for i, group in zip(of.iterations, of.groups, strict=True)
    }
    tables = tuple(_table(config, table, eligible, iterations) for table in base.tables)
    found = replace(
        base,
        name=config.product,
        mechanism=settings.mechanism,
        confidence=CONFIDENCE,
        files={name: _with_codes(file, settings, iterations.codes)},
        areas={kind.name: kind for kind in _areas(settings)},
        groups={code: replace(group, response=f"{name}.{group.response}") for code, (_, group) in known.items()},
        group_labels={code: called for code, (called, _) in known.items()},
        tables=tables,
        document={},
        blocks=base.blocks and replace(base.blocks, chosen=settings.states),
    )
    if isinstance(iterations, IterationsOfPlan):
        # The groups of a plan are placeholders, which say nothing of how many a record is in.
        for level in eligible:
            proven = sensitivity(iterations, level, settings.max_race_codes, "tight")
            overlap = Cells(int(proven.unbounded), exact=False)
            for table in tables:
                found.derived[table.name, level.name] = Derived(proven, {}, overlap, "as the plan has it")
    return found


def _table(
    config: SafetabConfig,
    base: DescribedTable,
    eligible: Mapping[Level, EligibleIterations],
    iterations: Iterations,
) -> DescribedTable:
    (question,) = (question for question in QUESTIONS[config.product] if question.name == base.name)
    levels = {
        level: DescribedLevel(level.name, level.region.name, tuple(i.code for i in of.iterations))
        for level, of in eligible.items()
    }
    detail = base.detail
    assert detail is not None  # noqa: S101 (every table has steps)
    steps = len(detail.steps) - 1
    detail = replace(
        detail, thresholds={level.name: config.thresholds[question.entry(level)][:steps] for level in levels}
    )
    if config.stage_1:
        chance = config.zero_suppression
        detail = replace(
            detail,
            share=config.stage_1,
            coarsest=frozenset(i.code for of in eligible.values() for i in of.iterations if i.detailed_only),
            leave_out={level.name: chance for level in levels if chance and level.region.granularity == "coarse"},
        )
    return replace(
        base,
        levels=tuple(levels.values()),
        budgets={level.name: config.budgets[question.entry(level)] for level in levels},
        stated={
            level.name: sensitivity(iterations, level, config.settings.max_race_codes, "published") for level in levels
        },
        detail=detail,
    )


def _with_codes(file: DescribedFile, settings: Settings, codes: tuple[int, ...]) -> DescribedFile:
    """The record file with the codes there are, which its records hold as numbers; 0 is none."""
    column = Column("", range(len(codes)), words=tuple(map(str, codes)))
    responses = {
        name: replace(
            of,
            column=replace(column, name=name),
            labels={},
            most=min(settings.max_race_codes, len(of.columns)),
            numbers=codes,
        )
        for name, of in file.responses.items()
    }
    return replace(file, responses=responses)


def _areas(settings: Settings) -> Iterator[AreaKind]:
    """The kinds of areas of the passes: each of the blocks of its pass alone."""
    for region in REGION_TYPES:
        if region.run in settings.runs:
            states, areas = settings.states_of(region.run), region.areas
            if areas.columns:
                yield AreaKind(region.name, "", (), (), {}, areas, states)
            else:
                yield AreaKind(region.name, "", (areas.code,), ((0,),), {}, None, states)
