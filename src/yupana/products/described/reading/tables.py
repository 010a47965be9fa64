"""Read the tables of a description: what they count, their cells, levels, limits and budgets. Public."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import combinations, product
from math import prod
from operator import and_
from typing import Any, Final

from yupana.errors import nearest
from yupana.files.names import fault_of, folded
from yupana.plan.measurement import Sensitivity
from yupana.plan.predicates import Where
from yupana.privacy.exact import Budget
from yupana.products.described.description import (
    EVERYONE,
    NUMBERS,
    DescribedLevel,
    DescribedTable,
    Detail,
    Sums,
    chain_of,
    in_join,
)
from yupana.products.described.reading.declaration import Condition, DeclaredChoice, DeclaredDetail, DeclaredTable
from yupana.products.described.reading.groups import listed_groups
from yupana.products.described.reading.records import Classified, DescriptionDocument
from yupana.release.codebook import REASON

MOST_CELLS: Final = 100_000
RESERVED: Final = ("REGION_ID", "REGION_TYPE", "ITERATION_CODE", *NUMBERS, REASON, "CELL")
"""Columns of published tables that have a meaning of their own."""


def read_table(doc: DescriptionDocument, name: str, told: DeclaredTable) -> DescribedTable | None:
    """Read one; None where there are faults."""
    place, counts = f"tables.{name}", told.counts
    before = len(doc.faults)
    if counts not in doc.files or doc.files[counts].ids_in:
        known = nearest(counts, [file for file, of in doc.files.items() if not of.ids_in])
        doc.faults.append(f"{place}.counts: {counts!r} is none of the files{known}")
        return None
    chain = chain_of(doc.files, counts)
    universe = doc.where(f"{place}.where", told.where, chain)
    groups = {code: doc.where(f"{place}.groups.{code}", of, chain) for code, of in told.groups.items()}
    strange = [code for code in groups if code not in doc.told.get("groups", {})]
    doc.fault_each(f"{place}.groups", "is no group", map(repr, strange))
    columns, labels, cells, sums = _cells(doc, name, told, chain)
    budgets = _budgets(doc, name, told.budget)
    for level in budgets:
        _check_level(doc, place, doc.levels[level], chain, groups)
    if told.limit is not None and told.limit.per not in chain[1:]:
        above = f"one of {', '.join(chain[1:])}" if chain[1:] else f"a file above {counts}, which has none"
        doc.faults.append(f"{place}.limit.per: must be {above}; {told.limit.per!r} is none")
    stated = {} if told.stated is None else dict.fromkeys(budgets, Sensitivity(**told.stated))
    names = [name, *(sums.name for sums in sums)]
    detail = None if told.detail is None else _detail(doc, name, told.detail, names, budgets)
    if len(doc.faults) > before:
        return None
    of = tuple(level for name, level in doc.levels.items() if name in budgets)
    for one, other in combinations(of, 2):
        both = [*filter({*other.groups}.__contains__, one.groups)] if one.areas == other.areas else []
        if both:
            text = f"levels {one.name} and {other.name} both publish group {both[0]} of {one.areas}"
            more = f" (and {len(both) - 1} others)" if both[1:] else ""
            doc.faults.append(f"{place}.budget: {text}{more}; a group of areas goes with one level alone")
    numbers = tuple(name for name in NUMBERS if doc.read.noise_distribution or name != "NOISE_DISTRIBUTION")
    return DescribedTable(
        name, told.title or name, counts, universe, told.limit, columns, labels, cells, sums, of, budgets, stated,
        groups, detail, numbers=numbers,
    )  # fmt: skip


def _cells(doc: DescriptionDocument, name: str, told: DeclaredTable, chain: Sequence[str]) -> Any:  # noqa: ANN401 (four parts)
    place = f"tables.{name}"
    if told.by is not None and told.cells is not None:
        doc.faults.append(f"{place}: has by and cells; keep one")
    headings = _headings(doc, name, told)
    if told.by is not None:
        return _by(doc, place, told, told.by, chain, headings)
    if told.margins is not None:
        doc.faults.append(f"{place}.margins: are of tables with by; name rows under sums")
    named = {"total": {}} if told.cells is None else told.cells
    labels = tuple((label,) for label in named)
    doc.check_labels(place, [*named])
    cells = tuple(doc.where(f"{place}.cells.{label}", of, chain) for label, of in named.items())
    sums = _sums(doc, place, told, {label: i for i, label in enumerate(named)}, cells, headings)
    return headings.get(name, ("CELL",)), labels, cells, tuple(sums)


def _headings(doc: DescriptionDocument, name: str, told: DeclaredTable) -> dict[str, tuple[str, ...]]:
    """What the columns of cells are called, by table."""
    found, place = {}, f"tables.{name}.headings"
    for table, heading in told.headings.items():
        if table not in {*((name,) if told.by is None else ()), *told.sums}:
            which = "neither the table nor one of its sums"
            if told.by is not None:
                which = "no sum of the table, whose own columns are those of by"
            doc.faults.append(f"{place}: {table!r} is {which}")
        several = (heading,) if isinstance(heading, str) else heading
        wrong = [column for column in several if fault_of(column, parted=False) or column.upper() in RESERVED[:-1]]
        if wrong or len(set(several)) < len(several) or (table == name and not isinstance(heading, str)):
            doc.faults.append(f"{place}.{table}: must be the name of a column of cells")
        found[table] = tuple(several)
    return found


def _sums(
    doc: DescriptionDocument,
    place: str,
    told: DeclaredTable,
    number: Mapping[str, int],
    cells: Sequence[Where],
    headings: Mapping[str, tuple[str, ...]],
) -> Iterator[Sums]:
    """Tables whose rows add up cells; where a table has several columns of cells, | stands between its labels."""
    for name, rows in told.sums.items():
        made = []
        columns = headings.get(name, ("CELL",))
        for label, parts in rows.items():
            labels = (label,) if len(columns) == 1 else tuple(label.split("|")) if columns else ()
            if len(labels) != len(columns):
                text = f"must have {len(columns)} labels with | between them"
                doc.faults.append(f"{place}.sums.{name}.{label}: {text}")
            doc.check_labels(f"{place}.sums.{name}", labels)
            made.append((labels, _parts(doc, f"{place}.sums.{name}.{label}", parts, number, cells)))
        if not made:
            doc.faults.append(f"{place}.sums.{name}: has no rows; name some, or leave it out")
        yield Sums(name, columns, tuple(made))


def _parts(
    doc: DescriptionDocument,
    place: str,
    told: Sequence[str] | Condition,
    number: Mapping[str, int],
    cells: Sequence[Where],
) -> tuple[int, ...]:
    """The cells that a row adds up: a list of their labels, or all that a condition holds."""
    if isinstance(told, Mapping):
        condition = doc.where(place, told)
        within = tuple(i for i, cell in enumerate(cells) if cell & condition == cell)
        if not within or any((cells[i] & condition).is_possible for i in range(len(cells)) if i not in within):
            doc.faults.append(f"{place}: must hold some cells of the table, each whole or not at all")
        return within
    if any(part not in number for part in told):
        doc.faults.append(f"{place}: must be a list of labels of cells of the table, or a condition")
        return ()
    if len(set(told)) < len(told):
        doc.faults.append(f"{place}: adds a cell twice")
    return tuple(number[part] for part in told)


def _by(
    doc: DescriptionDocument,
    place: str,
    told: DeclaredTable,
    by: Sequence[str],
    chain: Sequence[str],
    headings: Mapping[str, tuple[str, ...]],
) -> Any:  # noqa: ANN401 (four parts)
    nothing: Any = ((), (), (), ())
    variables = [doc.variable(f"{place}.by", name) for name in by]
    if any(variable is None for variable in variables):
        return nothing
    chosen = [variable for variable in variables if variable is not None]
    names = tuple(_heading(doc, name) for name in by)
    if len({folded(name).upper() for name in names} | set(RESERVED)) < len(names) + len(RESERVED):
        doc.faults.append(f"{place}.by: every column needs a name of its own, none of {', '.join(RESERVED)}")
    for name, variable in zip(by, chosen, strict=True):
        doc.check_reach(f"{place}.by", variable.column, chain)
        doc.check_labels(f"{place}.by: {name}", variable.classes)
        sizes = sum(map(len, variable.classes.values()))
        if sizes > len(frozenset().union(*variable.classes.values())) and not told.overlapping:
            doc.faults.append(f"{place}.by: classes of {name} overlap; say overlapping = true if they should")
    number = prod(len(variable.classes) for variable in chosen)
    if number > MOST_CELLS:
        doc.faults.append(f"{place}.by: makes {number:,} cells, and at most {MOST_CELLS:,} are allowed")
        return nothing
    pairs = list(product(*(variable.classes.items() for variable in chosen)))
    labels = tuple(tuple(label for label, _ in of) for of in pairs)
    cells = tuple(
        reduce(and_, (Where(((v.column, values),)) for v, (_, values) in zip(chosen, of, strict=True)), Where())
        for of in pairs
    )
    margins = _margins(doc, place, told.margins or {}, dict(zip(names, chosen, strict=True)), labels)
    sums = _sums(doc, place, told, {}, cells, headings)
    return names, labels, cells, (*margins, *sums)


def _heading(doc: DescriptionDocument, name: str) -> str:
    """What a recode or a column, with or without its file, is called over the cells of a table."""
    file, _, column = name.partition(".")
    return column if name not in doc.recodes and file in doc.files and column else name


def _margins(
    doc: DescriptionDocument,
    place: str,
    told: Mapping[str, Sequence[str]],
    variables: Mapping[str, Classified],
    labels: Sequence[tuple[str, ...]],
) -> Iterator[Sums]:
    """Tables that keep some of the columns of cells, as they are or in coarser classes."""
    for name, kept in told.items():
        called = [column if column in variables else _heading(doc, column) for column in kept]
        if len(set(called)) < len(called):
            doc.faults.append(f"{place}.margins.{name}: names a column twice")
        kept_classes = [_coarser(doc, f"{place}.margins.{name}", column, variables) for column in called]
        order = sorted(range(len(called)), key=lambda i: kept_classes[i][0])
        rows: dict[tuple[str, ...], list[int]] = {}
        for cell, of in enumerate(labels):
            row = tuple(kept_classes[i][1].get(of[kept_classes[i][0]], "") for i in order)
            rows.setdefault(row or ("total",), []).append(cell)
        columns = tuple(called[i] for i in order) or ("CELL",)
        yield Sums(name, columns, tuple((of, tuple(parts)) for of, parts in rows.items()))


def _coarser(
    doc: DescriptionDocument, place: str, name: str, variables: Mapping[str, Classified]
) -> tuple[int, dict[str, str]]:
    """Which column of cells a margin keeps, and the class that it shows of each class of that."""
    names = list(variables)
    if name in variables:
        return names.index(name), {label: label for label in variables[name].classes}
    recode = doc.recodes.get(name)
    if recode is None or recode.column not in {of.column for of in variables.values()}:
        doc.faults.append(f"{place}: {name!r} is none of {', '.join(names)}, nor a recode of one of them")
        return 0, {}
    finer = next(of for of in names if variables[of].column == recode.column)
    within = {
        label: [coarse for coarse, wide in recode.classes.items() if values <= wide]
        for label, values in variables[finer].classes.items()
    }
    lost = [label for label, of in within.items() if len(of) != 1]
    doc.fault_each(f"{place}: {name}", f"is a class of {finer} that lies in no one class:", map(repr, lost))
    covered = frozenset().union(*variables[finer].classes.values())
    wide = [coarse for coarse, values in recode.classes.items() if not values <= covered]
    doc.fault_each(f"{place}: {name}", f"is a class with values that are in none of {finer}:", map(repr, wide))
    return names.index(finer), {label: of[0] for label, of in within.items() if of}


_MOST_NAMED: Final = 12
"""Levels that a message lists."""


def _budgets(
    doc: DescriptionDocument, table: str, told: Mapping[str, Budget | Mapping[str, Fraction]]
) -> dict[str, Budget]:
    """Budgets by level; where a margin of error is asked for, 1 meanwhile."""
    there = ", ".join(list(doc.levels)[:_MOST_NAMED])
    strange = [
        f"{level!r} is no level{nearest(level, doc.levels) or f'; there are {there}'}"
        for level in told
        if level not in doc.levels
    ]
    doc.faults.extend(f"tables.{table}.budget: {one}" for one in strange)
    known = {level: budget for level, budget in told.items() if level in doc.levels}
    doc.wanted.update(
        (f"{table}/{level}", budget["moe"]) for level, budget in known.items() if isinstance(budget, Mapping)
    )
    return {level: Fraction(1) if isinstance(budget, Mapping) else budget for level, budget in known.items()}


def _check_level(
    doc: DescriptionDocument, place: str, level: DescribedLevel, chain: Sequence[str], own: Collection[str]
) -> None:
    """That a table can read what tells areas and groups apart; ``own`` are groups with conditions of its own."""
    for column in doc.areas[level.areas].columns:
        doc.check_reach(f"{place}.budget.{level.name}", column, chain)
    for code in level.groups:
        of = {} if (code,) == EVERYONE or code in own else doc.told["groups"][code].get("where", {})
        for name in of:
            column = doc.recodes[name].column if name in doc.recodes else in_join(*name.split(".", 1))
            doc.check_reach(f"{place}.budget.{level.name} (group {code})", column, chain)


def _detail(
    doc: DescriptionDocument, table: str, told: DeclaredDetail, names: Sequence[str], levels: Collection[str]
) -> Detail | None:
    """How finely groups are counted; ``names`` are the table's and its sums', ``levels`` those with a budget."""
    before, place = len(doc.faults), f"tables.{table}.detail"
    if told.published == (told.share is not None):
        text = "say what share of each budget a noisy total has, or published = true for totals of another release"
        doc.faults.append(f"{place}: {text}")
    if told.published:
        both = [name for name in ("coarsest", "leave_out") if getattr(told, name)]
        doc.fault_each(f"{place}.published", "goes with share alone", both)
    shown = [name for step in told.steps for name in step]
    strange = [name for name in shown if name not in names]
    doc.fault_each(f"{place}.steps", f"is none of {', '.join(names)}", map(repr, strange))
    doc.fault_each(f"{place}.steps", "is shown in no step", [name for name in names[1:] if name not in shown])
    thresholds = _thresholds(doc, f"{place}.thresholds", told.thresholds, len(told.steps) - 1, levels)
    coarsest = _coarsest(doc, table, told.coarsest, {code for level in levels for code in doc.levels[level].groups})
    doc.faults.extend(
        f"{place}.leave_out: {level!r} is no level of the table{nearest(level, levels)}"
        for level in told.leave_out
        if level not in levels
    )
    if len(doc.faults) > before:
        return None
    return Detail(told.steps, thresholds, told.share or Fraction(0), frozenset(coarsest), told.leave_out)


def _coarsest(
    doc: DescriptionDocument, table: str, told: Sequence[str] | DeclaredChoice, known: Collection[str]
) -> list[str]:
    """The groups that always get the first step; of those of lists, the ones that there are."""
    before, place = len(doc.faults), f"tables.{table}.detail.coarsest"
    listed = listed_groups(doc, place, told)
    if isinstance(told, DeclaredChoice) and len(doc.faults) == before:
        listed = [code for code in listed if code in known]
        doc.at("tables", table, "detail")["coarsest"] = listed
        if not listed:
            doc.faults.append(f"{place}: chooses no group of the levels of the table")
    if any(code not in known for code in listed):
        text = "must be a list of groups of the levels of the table, or say from which lists they are"
        doc.faults.append(f"{place}: {text}")
    return listed


def _thresholds(
    doc: DescriptionDocument,
    place: str,
    told: Sequence[int] | Mapping[str, Sequence[int]],
    number: int,
    levels: Collection[str],
) -> dict[str, tuple[int, ...]]:
    """By level; one list is for all of them."""
    by_level = told if isinstance(told, Mapping) else dict.fromkeys(levels, told)
    doc.fault_each(place, "no list for level", [level for level in levels if level not in by_level])
    strange = [level for level in by_level if level not in levels]
    doc.fault_each(place, "is no level of the table", map(repr, strange))
    doc.faults.extend(
        f"{place}.{level}: must be {number} ascending whole numbers, one for each step but the first"
        for level, of in by_level.items()
        if len(of) != number or list(of) != sorted(set(of))
    )
    return {level: tuple(of) for level, of in by_level.items()}
