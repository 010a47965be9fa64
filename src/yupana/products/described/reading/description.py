"""Read a whole description, part after part, and check what follows from all of them together. Public.

docs/tables.md tells what each key means.
"""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from yupana.arrays import Flags
from yupana.errors import ConfigError
from yupana.files.declaration import choice
from yupana.files.document import Number, check_keys, is_text
from yupana.plan.classes import TooManyClassesError, classify
from yupana.plan.plan import Neighbours
from yupana.products.census import MECHANISMS
from yupana.products.described.description import NUMBERS, DescribedTable, Description
from yupana.products.described.plan import budgets_for_margins
from yupana.products.described.reading.areas import AreaReader, read_groups, read_levels
from yupana.products.described.reading.blocks import check_blocks, read_blocks
from yupana.products.described.reading.conditions import ConditionReader
from yupana.products.described.reading.criteria import CriteriaReader
from yupana.products.described.reading.document import NAME, DescriptionDocument
from yupana.products.described.reading.later_faults import later_faults
from yupana.products.described.reading.postprocess import check_postprocess, read_postprocess
from yupana.products.described.reading.records import RecordReader
from yupana.products.described.reading.tables import TableReader
from yupana.products.described.stability import derive
from yupana.products.described.tables import families_of

_KEYS: Final = ("name", "unit", "files", "areas", "tables")
_OPTIONAL: Final = (
    *(
        "title",
        "privacy_defn",
        "neighbours",
        "confidence",
        "truncation_key",
        "recodes",
        "groups",
        "levels",
        "noise_distribution",
    ),
    # What TopDown makes of the tables is read there; they can be measured one by one all the same.
    *("criteria", "postprocess", "hierarchies", "topdown", "blocks", "group_lists"),
)
_NEIGHBOURS: Final = {"add-remove": Neighbours.UNBOUNDED, "replace": Neighbours.BOUNDED}


def parse(document: object, folder: Path, faults: list[str]) -> Description | None:
    """Read a document; None, with faults, if it is none.

    Parameters
    ----------
    document : object
        As `yupana.files.document.read_document` gives it. Lists of codes that stand in files are put in their place.
    folder : Path
        Which names of files are relative to.
    faults : list of str
        What is wrong is added to it, each beginning with the place.
    """
    if not isinstance(document, dict):
        faults.append("the top level must be a table with the keys " + ", ".join(_KEYS))
        return None
    # Where a hierarchy makes kinds of areas, none need to be told one by one.
    alone = ("areas",) if "hierarchies" in document else ()
    required = tuple(key for key in _KEYS if key not in alone)
    check_keys("", document, required, faults, optional=(*_OPTIONAL, *alone))
    if any(key not in document for key in required):
        return None
    if faults:
        document = {key: value for key, value in document.items() if key in {*_KEYS, *_OPTIONAL}}
    of_parts: list[str] = []
    # What is read is put in its place in a copy: what stands behind a fault is sought in the document as it was.
    found = _read(DescriptionDocument(deepcopy(document), folder, of_parts))
    if of_parts:
        later_faults(
            document, of_parts, lambda told, check: _faults(DescriptionDocument(told, folder, []), check=check)
        )
    faults += of_parts
    return None if faults else found


def _faults(doc: DescriptionDocument, *, check: bool) -> list[str]:
    _read(doc, check=check)
    return doc.faults


def _read(doc: DescriptionDocument, *, check: bool = True) -> Description | None:
    """Each part takes what stands before it; where a part has faults, those after it are not read.

    Without ``check`` what follows from all parts together is not looked at.
    """
    head, blocks = _head(doc), read_blocks(doc)
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
    labels = {code: str(told.get("label", code)) for code, told in doc.tables_of("groups")}
    if doc.faults:
        return None
    levels = read_levels(doc, areas, groups, lists)
    if doc.faults:
        return None
    reader = TableReader(doc, records.files, conditions, areas, levels, lists, _numbers(doc))
    tables = [reader.read(name, told) for name, told in doc.tables_of("tables")]
    names = [name for table in tables if table for name in (table.name, *(sums.name for sums in table.sums))]
    doc.fault_each("tables", "is the name of two tables", (n for n in dict.fromkeys(names) if names.count(n) > 1))
    if not tables:
        doc.faults.append("tables: describes none")
    postprocess = read_postprocess(doc)
    if doc.faults or head is None:
        return None
    made = Description(
        **head, unit=records.unit, files=records.files, areas=areas, groups=groups, group_labels=labels,
        tables=tuple(table for table in tables if table), document=doc.told, postprocess=postprocess, blocks=blocks,
    )  # fmt: skip
    if check:
        _check(doc, made)
    try:
        made = made if doc.faults or not check else made.with_budgets(budgets_for_margins(made, reader.wanted))
    except ConfigError as error:
        doc.faults.append(str(error))
    if "criteria" in doc.told:
        made = replace(made, criteria=CriteriaReader(doc, made).read())
    return None if doc.faults else made


def _head(doc: DescriptionDocument) -> dict[str, Any] | None:
    told, faults = doc.told, doc.faults
    name = told["name"]
    if not (is_text(name) and NAME.fullmatch(name)):
        faults.append("name: must be letters, digits, - and _, beginning with a letter")
    title, key = told.get("title", name), told.get("truncation_key", "")
    faults += [f"{place}: must be a text of one line" for place, of in (("title", title),) if not is_text(of)]
    if not isinstance(key, str) or isinstance(key, Number):
        faults.append("truncation_key: must be a text")
    mechanism = choice(*MECHANISMS).read("privacy_defn", told.get("privacy_defn", "zcdp"), faults)
    neighbours = choice(*_NEIGHBOURS).read("neighbours", told.get("neighbours", "add-remove"), faults)
    confidence = doc.fraction("confidence", told.get("confidence", "0.9"))
    if confidence is not None and not 0 < confidence < 1:
        faults.append("confidence: must lie strictly between 0 and 1")
    if faults or mechanism is None or neighbours is None:
        return None
    return {
        "name": name,
        "title": title,
        "mechanism": MECHANISMS[mechanism],
        "neighbours": _NEIGHBOURS[neighbours],
        "confidence": confidence,
        "truncation_key": key,
    }


def _numbers(doc: DescriptionDocument) -> tuple[str, ...]:
    shown = doc.told.get("noise_distribution", True)
    if not isinstance(shown, bool):
        doc.faults.append("noise_distribution: must be true or false")
    return NUMBERS if shown else tuple(name for name in NUMBERS if name != "NOISE_DISTRIBUTION")


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
    if table.detail and doc.told["tables"][table.name].get("overlapping") is True:
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
    told = doc.told["tables"][table.name]
    if members.sum(axis=0).max(initial=0) > 1 and told.get("overlapping") is not True:
        doc.faults.append(f"{place}: some of its cells overlap; say overlapping = true if they should")
