"""Configurations of SafeTab as descriptions: what config.json and the files of codes make of the built-in ones. Public.

Files, cells and tables are those of the built-in descriptions. A configuration says budgets, thresholds, states and
passes; the files of codes say the groups, and so how far one record moves what is measured.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from yupana.files.columns import Column
from yupana.plan.measurement import Accounting, Sensitivity
from yupana.plan.plan import Plan
from yupana.plan.responses import ResponseGroup
from yupana.products.described.description import AreaKind, DescribedFile, DescribedLevel, DescribedTable, Description
from yupana.products.described.stability import Cells, Derived
from yupana.products.safetab.configuration import SafetabConfig
from yupana.products.safetab.iterations import ETHNICITY, CharacteristicIterations, Iteration
from yupana.products.safetab.regions import BY_NAME, REGION_TYPES, Granularity, Level
from yupana.products.safetab.specification import DETAILED_ONLY, QUESTIONS, described_2020

CONFIDENCE: Final = Fraction(95, 100)


@dataclass(frozen=True, slots=True)
class _GroupsOfLevel:
    """The population groups of a level."""

    iterations: Sequence[Iteration]
    groups: Sequence[ResponseGroup]  # the records of each
    stated: Sensitivity  # how far one record moves their counts, as noise is scaled to it


def sensitivity(
    iterations: CharacteristicIterations, level: Level, race_codes: int, accounting: Accounting
) -> Sensitivity:
    """How far one record moves the counts of a level: squared L2 under zCDP and L1 under pure DP are the same number.

    A record lies in one area of a kind and in at most s iterations, and is one of the count in one cell of each of
    these groups. Removing it moves s cells by one; changing it moves at most 2s (docs/safetab-privacy.md).

    Parameters
    ----------
    race_codes : int
        How many race codes of a record count.
    accounting : "published" or "tight"
        s as the originals bound it (9 in production), or the least bound that the code files allow.
    """
    eligible = iterations.eligible(level.iteration_level, level.region.granularity)
    tight = eligible.stability(race_codes)
    # Made-up code files can be worse than the formula, which then does not bound what one record does.
    bound = tight if accounting == "tight" else max(tight, eligible.published_stability(race_codes))
    return _moved(bound)


def _moved(groups: int) -> Sensitivity:
    return Sensitivity(Fraction(groups), Fraction(2 * groups))


def description_of(config: SafetabConfig, iterations: CharacteristicIterations) -> Description:
    """The description of a run of a configuration by the files of codes."""
    eligible = {level: iterations.eligible(level.iteration_level, level.region.granularity) for level in config.levels}
    groups = {
        level: _GroupsOfLevel(
            of.iterations, of.groups, sensitivity(iterations, level, config.max_race_codes, "published")
        )
        for level, of in eligible.items()
        if of.iterations
    }
    return _described(config, groups, iterations.codes)


def description_by_plan(config: SafetabConfig, plan: Plan) -> Description:
    """The same without files of codes: what a plan tells of them, for no more than another plan.

    The plan that the configuration makes of it is the same, or the plan is not one of the configuration: all levels of
    areas that show the same groups must agree.

    Raises
    ------
    ValueError
        If a measurement is of no level of SafeTab, or moved by no whole number.
    """
    kinds: dict[tuple[int, Granularity], set[bool]] = {}
    moved: dict[tuple[int, Granularity], tuple[int, int]] = {}
    for m in plan.measurements:
        if m.level not in BY_NAME or m.calibration.denominator != 1 or m.proven.unbounded.denominator != 1:
            raise ValueError(f"{m.name} is no measurement of SafeTab")
        key = _shown(BY_NAME[m.level])
        kinds.setdefault(key, set()).add(m.name.startswith(f"{DETAILED_ONLY}/"))
        moved[key] = int(m.calibration), int(m.proven.unbounded)
    groups = {}
    for level in config.levels:
        # One iteration stands for those of which totals alone are made, and one for all others.
        told = [
            Iteration(str(only), "", 1, alone=None, detailed_only=only, coarse_only=False)
            for only in sorted(kinds.get(_shown(level), ()))
        ]
        if told:
            stated = _moved(max(moved[_shown(level)]))
            groups[level] = _GroupsOfLevel(told, [ResponseGroup(ETHNICITY, frozenset({0}))] * len(told), stated)
    found = _described(config, groups, ())
    for level in groups:
        # These groups say nothing of how many a record is in.
        _, proven = moved[_shown(level)]
        for table in found.tables:
            derived = Derived(_moved(proven), {}, Cells(proven, exact=False), "as the plan has it")
            found.derived[table.name, level.name] = derived
    return found


def _shown(level: Level) -> tuple[int, Granularity]:
    """What decides which iterations the areas of a level show."""
    return level.iteration_level, level.region.granularity


def _described(config: SafetabConfig, groups: Mapping[Level, _GroupsOfLevel], codes: tuple[int, ...]) -> Description:
    base = described_2020(config.product)
    ((name, file),) = base.files.items()
    known = {
        i.code: (i.name, group) for of in groups.values() for i, group in zip(of.iterations, of.groups, strict=True)
    }
    return replace(
        base,
        name=config.product,
        mechanism=config.mechanism,
        confidence=CONFIDENCE,
        files={name: _with_codes(file, config, codes)},
        areas={kind.name: kind for kind in _areas(config)},
        groups={code: replace(group, response=f"{name}.{group.response}") for code, (_, group) in known.items()},
        group_labels={code: called for code, (called, _) in known.items()},
        tables=tuple(_table(config, table, groups) for table in base.tables),
        document={},
        blocks=base.blocks and replace(base.blocks, chosen=config.states),
    )


def _table(config: SafetabConfig, base: DescribedTable, groups: Mapping[Level, _GroupsOfLevel]) -> DescribedTable:
    (question,) = (question for question in QUESTIONS[config.product] if question.name == base.name)
    levels = {
        level: DescribedLevel(level.name, level.region.name, tuple(i.code for i in of.iterations))
        for level, of in groups.items()
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
            coarsest=frozenset(i.code for of in groups.values() for i in of.iterations if i.detailed_only),
            leave_out={level.name: chance for level in levels if chance and level.region.granularity == "coarse"},
        )
    return replace(
        base,
        levels=tuple(levels.values()),
        budgets={level.name: config.budgets[question.entry(level)] for level in levels},
        stated={level.name: of.stated for level, of in groups.items()},
        detail=detail,
    )


def _with_codes(file: DescribedFile, config: SafetabConfig, codes: tuple[int, ...]) -> DescribedFile:
    """The record file with the codes there are, which its records hold as numbers; 0 is none."""
    column = Column("", range(len(codes)), words=tuple(map(str, codes)))
    responses = {
        name: replace(
            of,
            column=replace(column, name=name),
            labels={},
            most=min(config.max_race_codes, len(of.columns)),
            numbers=codes,
        )
        for name, of in file.responses.items()
    }
    return replace(file, responses=responses)


def _areas(config: SafetabConfig) -> Iterator[AreaKind]:
    """The kinds of areas of the passes: each of the blocks of its pass alone."""
    for region in REGION_TYPES:
        if region.run in config.runs:
            states, areas = config.states_of(region.run), region.areas
            if areas.columns:
                yield AreaKind(region.name, (), (), (), {}, areas, states)
            else:
                yield AreaKind(region.name, (), (areas.code,), ((0,),), {}, None, states)
