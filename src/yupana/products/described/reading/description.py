"""Read a whole description, part after part, and check what follows from all of them together. Public.

docs/tables.md tells what each key means.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from yupana.arrays import Flags
from yupana.errors import ConfigError, nearest
from yupana.files.names import file_of, folded
from yupana.plan.budgets import least
from yupana.plan.predicates import TooManyClassesError, classify
from yupana.products.census import MECHANISMS
from yupana.products.described.criteria import Criterion, rows_of
from yupana.products.described.description import DescribedLevel, DescribedTable, Description
from yupana.products.described.plan import entries, families, families_of, table_of
from yupana.products.described.postprocess import parents_of
from yupana.products.described.reading.areas import check_blocks, check_parts, read_areas, read_blocks
from yupana.products.described.reading.declaration import DOCUMENT, NEIGHBOURS, DeclaredCriterion
from yupana.products.described.reading.groups import read_groups, read_levels
from yupana.products.described.reading.later_faults import later_faults
from yupana.products.described.reading.layout import lines_of, read_layout
from yupana.products.described.reading.records import DescriptionDocument, read_recodes, read_records
from yupana.products.described.reading.tables import read_table
from yupana.products.described.stability import derive
from yupana.release.recipe import CERTIFICATE, SPINE

_SMALLEST: Final = Fraction(1, 10**15)


def parse(document: object, folder: Path, faults: list[str], *, check: bool = True) -> Description | None:
    """Read a document; None, with faults, if it is none.

    Parameters
    ----------
    document : object
        As `yupana.files.document.read_document` gives it. Lists of codes that stand in files are put in their place.
    folder : Path
        Which names of files are relative to.
    faults : list of str
        What is wrong is added to it, each beginning with the place.
    check : bool
        Look at what follows from all parts together; tests have done so for what is built in.
    """

    def faults_of(told: dict[str, Any], check: bool) -> list[str]:  # noqa: FBT001 (as `later_faults` asks)
        found: list[str] = []
        _read(told, folder, found, check=check)
        return found

    of_parts: list[str] = []
    # What is read is put in its place in a copy: what stands behind a fault is sought in the document as it was.
    found = _read(deepcopy(document), folder, of_parts, check=check)
    if of_parts and isinstance(document, dict) and not set(DOCUMENT.schema["required"]) - document.keys():
        known = {key: of for key, of in document.items() if key in DOCUMENT.schema["properties"]}
        later_faults(known, of_parts, faults_of)
    faults += of_parts
    return None if faults else found


def _read(document: object, folder: Path, faults: list[str], *, check: bool = True) -> Description | None:
    """Each part takes what stands before it; where a part has faults, those after it are not read.

    Without ``check`` what follows from all parts together is not looked at.
    """
    told = DOCUMENT.read("", document, faults)
    if isinstance(document, dict):
        check_parts(document, faults)
    if told is None or not isinstance(document, dict):
        return None
    return _made(DescriptionDocument(document, told, folder, faults), check=check)


def _made(doc: DescriptionDocument, *, check: bool) -> Description | None:
    told = doc.read
    doc.blocks = read_blocks(doc)
    layout = read_layout(doc)
    if told.name in {SPINE, CERTIFICATE}:
        doc.faults.append("name: means another kind of output; take another")
    for together in ((read_records,), (read_recodes,), (read_areas, read_groups), (read_levels,)):
        for read in together:
            read(doc)
        if doc.faults:
            return None
    labels = {code: str(of.get("label", code)) for code, of in doc.told.get("groups", {}).items()}
    tables = [read_table(doc, name, of) for name, of in told.tables.items()]
    files = {name: replace(file, lines_of=lines_of(layout, name, tuple(doc.files))) for name, file in doc.files.items()}
    names = [name for table in tables if table for name in table.published]
    doc.fault_each("tables", "is the name of two tables", (n for n in dict.fromkeys(names) if names.count(n) > 1))
    doc.fault_alike("tables", "would have files of one name", names, lambda name: folded(file_of(name)))
    doc.fault_each("tables", "begins as plans call totals of a table", (n for n in names if table_of(n) != n))
    if not tables:
        doc.faults.append("tables: describes none")
    if doc.faults:
        return None
    made = Description(
        name=told.name, title=told.title or told.name, mechanism=MECHANISMS[told.privacy_defn],
        neighbours=NEIGHBOURS[told.neighbours], confidence=told.confidence, truncation_key=told.truncation_key,
        unit=doc.unit, files=files, areas=doc.areas, groups=doc.groups, group_labels=labels,
        tables=tuple(filter(None, tables)), document=doc.told, postprocess=told.postprocess, blocks=doc.blocks,
        notes=tuple(doc.notes),
        layout=layout, data=told.data or "", encoding=told.encoding or (layout.encoding if layout else ""),
    )  # fmt: skip
    if check:
        _check(doc, made)
        made = _with_margins(doc, made)
    if told.criteria:
        found = [_criterion(doc, made, name, of) for name, of in told.criteria.items()]
        made = replace(made, criteria=tuple(of for of in found if of))
    return None if doc.faults else made


def _with_margins(doc: DescriptionDocument, made: Description) -> Description:
    """A description with the least budgets by which margins of error are kept that it asks for, by ``table/level``."""
    if doc.faults or not doc.wanted:
        return made
    try:
        return made.with_budgets(least(entries(made), doc.wanted, made.confidence, made.mechanism))
    except ConfigError as error:
        doc.faults.append(str(error))
        return made


def _check(doc: DescriptionDocument, made: Description) -> None:
    """What follows from everything together: sensitivities, and cells that nothing can count in."""
    check_blocks(doc, made)
    if doc.faults:
        return
    for table in made.tables:
        _check_cells(doc, made, table)
        _check_detail(doc, table)
        for level in table.levels:
            try:
                empty = not derive(made, table, level).overlap.number
            except ConfigError as error:
                doc.faults.extend([str(error)] if str(error) not in doc.faults else [])
                continue
            if empty:
                text = "is a level whose groups no record of the table can be of"
                doc.faults.append(f"tables.{table.name}.budget: {level.name} {text}")
    _check_postprocess(doc, made)
    if not any(budget for table in made.tables for budget in table.budgets.values()):
        doc.faults.append("tables: every budget is 0, so nothing would be measured")


def _check_detail(doc: DescriptionDocument, table: DescribedTable) -> None:
    """That the steps of a table are of one and the same cells."""
    try:
        coarsest = families_of(table)[0].choices[0]
    except ConfigError as error:
        doc.faults.append(str(error))
        return
    place = f"tables.{table.name}.detail"
    if table.detail and table.detail.leave_out and coarsest.measured > 1:
        doc.faults.append(f"{place}.leave_out: needs a first step of one cell, the total that is left out")
    if table.detail and doc.read.tables[table.name].overlapping:
        doc.faults.append(f"{place}: needs cells that do not overlap")


def _check_cells(doc: DescriptionDocument, made: Description, table: DescribedTable) -> None:
    place = f"tables.{table.name}"
    try:
        members: Flags = classify(made.of_record(table), [table.universe & cell for cell in table.cells]).members
    except TooManyClassesError:
        doc.faults.append(f"{place}: its cells tell too many combinations of values apart; recode some columns")
        return
    empty = [table.labels[cell] for cell in np.flatnonzero(~members.any(axis=1))]
    doc.fault_each(place, "no record can count in cell", (" × ".join(labels) for labels in empty[:5]))
    if members.sum(axis=0).max(initial=0) > 1 and not doc.read.tables[table.name].overlapping:
        doc.faults.append(f"{place}: some of its cells overlap; say overlapping = true if they should")


def _check_postprocess(doc: DescriptionDocument, made: Description) -> None:
    """That some table has the same cells at all levels, and areas that are sums of others, where that is needed."""
    doc.faults.extend(
        f"postprocess.{name}: every table has detail, so that areas are told in different cells; leave it out"
        for name in made.postprocess.fitted
        if all(table.detail for table in made.tables)
    )
    if made.postprocess.consistent:
        doc.faults.extend(dict.fromkeys(_not_nested(made)))


def _not_nested(made: Description) -> Iterator[str]:
    for table in made.tables:
        if table.detail:
            continue
        for code in dict.fromkeys(code for level in table.levels for code in level.groups):
            kinds = [made.areas[level.areas] for level in table.levels if code in level.groups]
            kinds.sort(key=lambda kind: len(kind.codes))
            for above, below in pairwise(kinds):
                if parents_of(above, below) is None:
                    yield (
                        f"postprocess.consistent: table {table.name} is published for {above.name} and {below.name}, "
                        f"but areas of {above.name} are not sums of whole areas of {below.name}; publish it for areas "
                        "that lie in each other, or leave consistent out"
                    )


def _criterion(doc: DescriptionDocument, made: Description, name: str, told: DeclaredCriterion) -> Criterion | None:
    """A criterion on the tables of a description, which has all but its criteria; None where there are faults."""
    place = f"criteria.{name}"
    before = len(doc.faults)
    told = replace(told, chance=told.chance or made.confidence)
    _check_numbers(doc, place, told)
    _check_rows(doc, made, place, told)
    if len(doc.faults) > before:
        return None
    found = Criterion(**{**vars(told), "name": name, "fewest": told.fewest or 1})
    number = rows_of(made, found).number
    if not number:
        doc.faults.append(f"{place}.rows: {found.table} shows none of these groups")
    elif number < found.fewest:
        doc.faults.append(f"{place}.fewest: there are {number:,} such rows of whatever size")
    return found


def _check_numbers(doc: DescriptionDocument, place: str, told: DeclaredCriterion) -> None:
    """That numbers go with each other and with the error."""
    relative = told.error == "relative"
    wrong = {
        "quantile: must be at most 1, the largest error; the median is 0.5": told.quantile > 1,
        "most: must be at most 1, a share of the true count; 2 percent are 0.02": relative and told.most > 1,
        "chance: must be above 0 and at most 1 - 1e-15, as noise has no bound": told.chance > 1 - _SMALLEST,
        "at_least: is missing; a relative error needs it, as the true count may be 0": relative and not told.at_least,
        "at_most: must be no smaller than at_least": told.at_most is not None and told.at_most < told.at_least,
    }
    doc.faults.extend(f"{place}.{fault}" for fault, is_wrong in wrong.items() if is_wrong)


def _check_criterion_of_detail(
    doc: DescriptionDocument, place: str, told: DeclaredCriterion, table: DescribedTable, level: DescribedLevel
) -> None:
    """That a row is shown whatever its own noise is, and how many there are is open where it is said."""
    if table.detail is None:
        if told.fewest and not told.at_least and told.at_most is None:
            text = "goes with at_least or at_most; without them all rows are meant"
            doc.faults.append(f"{place}.fewest: {text}")
    elif level.name in table.detail.leave_out and told.table in table.detail.steps[0]:
        text = f"counts of the first step are left out at {level.name} by their own noise (leave_out)"
        doc.faults.append(
            f"{place}.level: {text}, so the noise of those that are shown is not known beforehand; "
            "ask for a table of later steps alone, or for a level that leaves none out"
        )


def _check_rows(doc: DescriptionDocument, made: Description, place: str, told: DeclaredCriterion) -> None:
    """That there are the table, the level, and rows that say so."""
    of = {name: family for family in families(made) for name in family.tables}
    family = of.get(told.table)
    table = next((t for t in made.tables if told.table in t.published), None)
    if family is None or table is None:
        known = nearest(told.table, of) or f"; there are {', '.join(of)}"
        doc.faults.append(f"{place}.table: {told.table!r} is no table that is measured{known}")
        return
    levels = {level.name: level for level in table.levels if table.budgets[level.name]}
    level = levels.get(told.level)
    if level is None:
        text = f"{told.level!r} is no level with a budget above 0; {table.name} has {', '.join(levels)}"
        doc.faults.append(f"{place}.level: {text}")
        return
    _check_criterion_of_detail(doc, place, told, table, level)
    shown = family.having(told.table)[-1][told.table]
    said = zip(*(cell.labels for cell in shown.cells), strict=True)
    columns = dict(zip(shown.columns, (set(map(str, labels)) for labels in said), strict=True))
    columns["REGION_ID"] = set(made.areas[level.areas].codes)
    columns["ITERATION_CODE"] = set(level.groups)
    for column, labels in told.rows.items():
        if column not in columns:
            doc.faults.append(f"{place}.rows: {column!r} is none of the columns {', '.join(columns)}")
        elif strange := [label for label in labels if label not in columns[column]]:
            doc.fault_each(f"{place}.rows.{column}", "is said by no row", map(repr, strange))
