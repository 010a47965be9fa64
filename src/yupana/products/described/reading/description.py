"""Read a whole description, part after part, and check what follows from all of them together. Public.

docs/tables.md tells what each key means.
"""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from yupana.arrays import Flags
from yupana.errors import ConfigError
from yupana.plan.predicates import TooManyClassesError, classify
from yupana.products.census import MECHANISMS
from yupana.products.described.description import NUMBERS, DescribedTable, Description
from yupana.products.described.plan import budgets_for_margins
from yupana.products.described.reading.areas import AreaReader, read_groups, read_levels
from yupana.products.described.reading.blocks import check_blocks, check_parts, read_blocks
from yupana.products.described.reading.conditions import ConditionReader
from yupana.products.described.reading.criteria import CriteriaReader
from yupana.products.described.reading.declaration import DOCUMENT, NEIGHBOURS
from yupana.products.described.reading.document import DescriptionDocument
from yupana.products.described.reading.later_faults import later_faults
from yupana.products.described.reading.postprocess import check_postprocess, read_postprocess
from yupana.products.described.reading.records import RecordReader
from yupana.products.described.reading.tables import TableReader
from yupana.products.described.stability import derive
from yupana.products.described.tables import families_of


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
    of_parts: list[str] = []
    # What is read is put in its place in a copy: what stands behind a fault is sought in the document as it was.
    found = _read(deepcopy(document), folder, of_parts, check=check)
    if of_parts and isinstance(document, dict) and not set(DOCUMENT.schema["required"]) - document.keys():
        known = {key: of for key, of in document.items() if key in DOCUMENT.schema["properties"]}
        later_faults(known, of_parts, lambda told, check: _faults(told, folder, check=check))
    faults += of_parts
    return None if faults else found


def _faults(told: dict[str, Any], folder: Path, *, check: bool) -> list[str]:
    faults: list[str] = []
    _read(told, folder, faults, check=check)
    return faults


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
    told, blocks = doc.read, read_blocks(doc)
    records = RecordReader(doc, blocks)
    records.read()
    if doc.faults:
        return None
    conditions = ConditionReader(doc, records.columns, records.files)
    conditions.read_recodes()
    if doc.faults:
        return None
    areas = AreaReader(doc, conditions, blocks).read()
    groups, lists = read_groups(doc, conditions, records.files)
    labels = {code: str(told.get("label", code)) for code, told in doc.told.get("groups", {}).items()}
    if doc.faults:
        return None
    levels = read_levels(doc, areas, groups, lists)
    if doc.faults:
        return None
    numbers = tuple(name for name in NUMBERS if told.noise_distribution or name != "NOISE_DISTRIBUTION")
    reader = TableReader(doc, records.files, conditions, areas, levels, lists, numbers)
    tables = [reader.read(name, of) for name, of in told.tables.items()]
    names = [name for table in tables if table for name in (table.name, *(sums.name for sums in table.sums))]
    doc.fault_each("tables", "is the name of two tables", (n for n in dict.fromkeys(names) if names.count(n) > 1))
    if not tables:
        doc.faults.append("tables: describes none")
    postprocess = read_postprocess(doc)
    if doc.faults:
        return None
    made = Description(
        name=told.name, title=told.title or told.name, mechanism=MECHANISMS[told.privacy_defn],
        neighbours=NEIGHBOURS[told.neighbours], confidence=told.confidence, truncation_key=told.truncation_key,
        unit=records.unit, files=records.files, areas=areas, groups=groups, group_labels=labels,
        tables=tuple(table for table in tables if table), document=doc.told, postprocess=postprocess, blocks=blocks,
    )  # fmt: skip
    if check:
        _check(doc, made)
    try:
        made = made if doc.faults or not check else made.with_budgets(budgets_for_margins(made, reader.wanted))
    except ConfigError as error:
        doc.faults.append(str(error))
    if told.criteria:
        made = replace(made, criteria=CriteriaReader(doc, made).read())
    return None if doc.faults else made


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
    check_postprocess(doc, made)
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
