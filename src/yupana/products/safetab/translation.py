"""Configurations of SafeTab as descriptions: what config.json and the files of codes make of the built-in ones. Public.

Files, cells and tables are those of the built-in descriptions. A configuration says budgets, thresholds, states and
passes; the files of codes say the groups.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

from yupana.files.columns import Column
from yupana.products.described.description import AreaKind, DescribedFile, DescribedLevel, DescribedTable, Description
from yupana.products.described.stability import Cells, Derived
from yupana.products.safetab.configuration import SafetabConfig, Settings
from yupana.products.safetab.persons import PersonsConfig
from yupana.products.safetab.plan import EligibleIterations, Iterations, IterationsOfPlan, sensitivity
from yupana.products.safetab.regions import REGION_TYPES, Level
from yupana.products.safetab.specification import described_2020

CONFIDENCE: Final = Fraction(95, 100)


def description_of(config: SafetabConfig[Any], iterations: Iterations) -> Description:
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
    config: SafetabConfig[Any],
    base: DescribedTable,
    eligible: Mapping[Level, EligibleIterations],
    iterations: Iterations,
) -> DescribedTable:
    budgets, thresholds = config.of_table(base.name)
    levels = {
        level: DescribedLevel(level.name, level.region.name, tuple(i.code for i in of.iterations))
        for level, of in eligible.items()
    }
    detail = base.detail
    assert detail is not None  # noqa: S101 (every table has steps)
    steps = len(detail.steps) - 1
    detail = replace(detail, thresholds={level.name: thresholds[level][:steps] for level in levels})
    if isinstance(config, PersonsConfig):
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
        budgets={level.name: budgets[level] for level in levels},
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
