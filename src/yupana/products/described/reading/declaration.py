"""What a description of tables may hold: its keys and their values. What follows from several is checked elsewhere.

docs/tables.md tells what each key means. Public.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, TypeVar

from yupana.files.code_tables import codec_of
from yupana.files.codes import CODES, PAIRS, Codes, Pairs
from yupana.files.columns import DATE_PARTS, Dialect
from yupana.files.declaration import (
    ANY_TEXT,
    BUDGET,
    COLUMN,
    FLAG,
    NAME,
    SCALAR,
    TEXT,
    WORD,
    Expected,
    choice,
    declared,
    exact,
    key,
    keyed,
    list_of,
    scalar,
    table_of,
    whole,
)
from yupana.files.delimited import SEPARATORS
from yupana.files.dictionaries.dictionary import Dictionary
from yupana.files.dictionaries.layout import LAYOUT
from yupana.files.document import Number, is_text
from yupana.geography.block_file import HousingUnitFile
from yupana.plan.plan import Neighbours
from yupana.privacy.exact import Budget
from yupana.products.census import MECHANISMS
from yupana.products.described.description import Postprocess, RecordLimit

T = TypeVar("T")

NEIGHBOURS: Final = {"add-remove": Neighbours.UNBOUNDED, "replace": Neighbours.BOUNDED}
MOST_DIGITS: Final = 18
"""Of all columns of a key of blocks, and of the code of an area: they are whole numbers of 64 bits."""

ENCODINGS: Final = ("utf-8", "utf-16", "latin-1", *(f"cp{number}" for number in (437, 850, 852, *range(1250, 1259))))
"""Of text."""

MOST_COLUMNS: Final = 8
"""Of a response."""

_RANGE: Final = re.compile(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?")
_LARGEST: Final = 10**15
MOST_VALUES: Final = 1_000_000
"""Most values of a column of whole numbers."""


def _of_file(place: str, told: object, faults: list[str]) -> str | None:
    found = COLUMN.read(place, told, faults)
    if found is None:
        faults[-1] += "; what the file calls it otherwise, --columns tells a run"
    return found


_ABOVE_0: Final = exact(lambda number: number > 0, "must be a number above 0")
_BELOW_1: Final = exact(lambda number: 0 < number < 1, "must be a number above 0 and below 1")


def whole_range(told: object) -> tuple[int, int] | None:
    """A whole number or range: 5, "0-17", or [0, 17]."""
    if isinstance(told, list) and len(told) == 2 and all(isinstance(end, Number) and end.isdecimal() for end in told):
        low, high = map(int, told)
    elif isinstance(told, str) and (match := _RANGE.fullmatch(told)):
        low, high = int(match[1]), int(match[2] or match[1])
    else:
        return None
    return (low, high) if low <= high else None


_WHOLE_RANGE: Final = scalar(
    "a range of at most a million whole numbers, such as [0, 115]",
    lambda told: ends if (ends := whole_range(told)) and ends[1] - ends[0] < MOST_VALUES else None,
    {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 2, "maxItems": 2},
)
_TEXTS: Final = list_of(TEXT, "a list of texts")
_SOME: Final = SCALAR | list_of(SCALAR, "a list of texts or numbers")
CONDITION: Final = table_of(_SOME)
Condition = Mapping[str, str | tuple[str, ...]]
"""For each column or recode a value, or several; whole numbers may be ranges such as '0-17'."""

_LABELS: Final = table_of(TEXT)
_MISSING: Final = replace(SCALAR, schema=TEXT.schema)


def _each(kind: Expected[T], name: Expected[str] = NAME) -> Expected[dict[str, T]]:
    """By names that the user chooses."""
    return table_of(kind, name=name)


@dataclass(frozen=True, kw_only=True)
class DeclaredColumn:
    """A column that tables may read: codes, or a range of whole numbers."""

    codes: Codes | None = key(CODES, "all values: a list, a table of codes and labels, or a file", default=None)
    whole: tuple[int, int] | None = key(_WHOLE_RANGE, "the least and the largest value", default=None)
    missing: str | None = key(_MISSING, "the text of a record without a value, which may then lack one", default=None)
    others: str | None = key(
        _MISSING, "what values are called that are not allowed, which are then counted", default=None
    )
    of: str | None = key(choice(*DATE_PARTS), "of whole numbers: which part of a date they are", default=None)
    fixed: bool = key(FLAG, "whether no change of a unit below changes it", default=False)
    occurring: bool = key(FLAG, "whether the codes are those that occur, declared to be public", default=False)


def _check_domain(place: str, column: DeclaredColumn, faults: list[str]) -> None:
    if (column.codes is None) == (column.whole is None):
        faults.append(f"{place}: must have either codes or whole (a range of whole numbers)")
    if column.whole and column.missing is not None and not stands_for_none(column.missing, *column.whole):
        low, high = column.whole
        text = f"must be a text that is no number from {low} to {high} and no range, such as 'unknown' or '999'"
        faults.append(f"{place}.missing: {text}, without | and quotes; an empty field says the same")
    if column.of and not column.whole:
        faults.append(f"{place}.of: is of whole numbers, such as whole = [1900, 2030]")
    if column.others is None:
        return
    if column.others == column.missing:
        faults.append(f"{place}.others: is the text for no value, too; without missing, others hold these as well")
    if not is_word(column.others) or (column.whole and not stands_for_none(column.others, *column.whole)):
        faults.append(f"{place}.others: must be a text that is no value, such as 'other', without | and quotes")


def is_word(missing: object) -> bool:
    """Whether a value can be what stands for no value: fields of a hash stand between bars."""
    return is_text(missing) and not set('|"') & set(str(missing))


def stands_for_none(missing: object, low: int, high: int) -> bool:
    """Whether a text can stand for no value of whole numbers between two."""
    ends = whole_range(missing)
    return is_word(missing) and (ends is None or ("-" not in str(missing) and not low <= ends[0] <= high))


WRITTEN: Final[Mapping[str, Expected[str]]] = {
    "separator": choice(*SEPARATORS, "\t"),
    "encoding": scalar(
        "an encoding of text, such as utf-8, cp1252, latin-1 or utf-16",
        lambda told: None if codec_of(told) is None else str(told),
        TEXT.schema,
    ),
    "decimal": choice(",", "."),
}
"""What may be said of how a file of text is written."""


def dialect_of(separator: str | None, encoding: str | None, decimal: str | None) -> Dialect:
    """How a file of text is written, of what was said of it."""
    sign = SEPARATORS.get(separator or "", separator or "")
    return Dialect(sign, codec_of(encoding) or "", decimal or "")


_ANSWERS: Final = list_of(TEXT, f"a list of 1 to {MOST_COLUMNS} columns")


@dataclass(frozen=True, kw_only=True)
class DeclaredResponse:
    """A question that one record may answer with several codes, each in a column."""

    columns: tuple[str, ...] = key(
        replace(_ANSWERS, schema={**_ANSWERS.schema, "maxItems": MOST_COLUMNS}), "as the file calls them"
    )
    codes: Codes = key(CODES, "all answers: a list, a table of codes and labels, or a file")
    missing: str | None = key(TEXT, "the code for none", default=None)
    most: int | None = key(whole(1), "how many of the columns count, the first ones", default=None)


@dataclass(frozen=True, kw_only=True)
class DeclaredFile:
    """A record file, by its name without ending."""

    record: str | None = key(TEXT, "what one record is called", default=None)
    separator: str | None = key(WRITTEN["separator"], "of text: what separates fields (the header tells)", default=None)
    encoding: str | None = key(WRITTEN["encoding"], "of text: such as cp1252 (UTF-8)", default=None)
    decimal: str | None = key(
        WRITTEN["decimal"], "of text: what may stand between a whole number and zeros, as in 12,0", default=None
    )
    key_: str | None = key(TEXT, "the column that tells its records apart", default=None)
    parent: Mapping[str, str] | None = key(
        keyed({"file": TEXT, "column": TEXT}), "the record that each belongs to", default=None
    )
    hashed: tuple[str, ...] | None = key(
        _TEXTS, "all columns, in the order in which the hash of a limit reads them", default=None
    )
    columns: Mapping[str, DeclaredColumn] = key(
        table_of(declared(DeclaredColumn).checked(_check_domain), name=replace(COLUMN, read=_of_file))
    )
    responses: Mapping[str, DeclaredResponse] = key(
        _each(declared(DeclaredResponse), COLUMN), "questions that one record may answer with several codes", default={}
    )


@dataclass(frozen=True, kw_only=True)
class DeclaredRecodes:
    """Classes of the values of a column."""

    column: str = key(TEXT)
    classes: Mapping[str, str | tuple[str, ...]] = key(CONDITION)
    incomplete: bool = key(FLAG, "whether values may be in no class, and so in no cell", default=False)


_DIGITS: Final = table_of(whole(1, MOST_DIGITS, f"how many digits it has, 1 to {MOST_DIGITS}"))


@dataclass(frozen=True, kw_only=True)
class DeclaredBlocks:
    """A public file of blocks beside the records."""

    file: str = key(NAME, "its name without ending")
    key_: Mapping[str, int] = key(
        _DIGITS, "the columns that name a block, in order, with their digits; records have them, too"
    )
    columns: Mapping[str, int] = key(_DIGITS, "others that areas are made of, with their digits", default={})
    only: Condition = key(
        CONDITION, "values of the first column of the key; blocks and records of others are left out", default={}
    )
    housing_units: HousingUnitFile | None = key(
        declared(HousingUnitFile),
        "a public file of how many housing units stand in each block; areas without one are left out",
        default=None,
    )


@dataclass(frozen=True, kw_only=True)
class DeclaredGroupList:
    """Groups by a response: one for each row of a file."""

    response: str = key(TEXT, "a response, as FILE.NAME")
    file: str = key(TEXT)
    code: str = key(TEXT, "the column of groups")
    label: str | None = key(TEXT, "the column of what they are called", default=None)
    members: Mapping[str, str] = key(
        keyed({"file": TEXT, "group": TEXT, "code": TEXT}), "a public file of groups and their codes"
    )
    alone: Condition | None = key(CONDITION, "the rows of groups of whose records all codes are members", default=None)
    encoding: str | None = key(TEXT, "of the text of both files, if that is not UTF-8", default=None)


@dataclass(frozen=True, kw_only=True)
class DeclaredHierarchy:
    """Kinds of areas, each made of those of the next."""

    column: str = key(TEXT, "a column of codes: the units of the last kind")
    levels: tuple[str, ...] = key(
        list_of(SCALAR, "a list of kinds of areas, from the one of everything down"),
        "names of the kinds, from the one area that holds everything down",
    )
    of: Pairs = key(PAIRS, "of each unit the one it lies in, or a public file that says so")


@dataclass(frozen=True, kw_only=True)
class DeclaredAreaKind:
    """A kind of areas: codes of a column, their first characters, or what they lie in; without a column, one area."""

    column: str | None = key(TEXT, default=None)
    columns: tuple[str, ...] | None = key(
        list_of(TEXT, "a list of columns"), "columns of which each combination of values is an area", default=None
    )
    from_: str | None = key(TEXT, "a kind of areas before it, that these areas are made of", default=None)
    first: int | None = key(whole(1, 999, "a number of characters that every code has"), default=None)
    of: Pairs | None = key(PAIRS, "of each code the areas it lies in; they may overlap", default=None)
    code: str | None = key(TEXT, "of the one area there is", default=None)
    labels: Mapping[str, str] = key(_LABELS, default={})
    blocks: tuple[str, ...] | None = key(
        list_of(TEXT, "a list of columns of the file of blocks"),
        "columns of the file of blocks, whose digits are the code of an area",
        default=None,
    )
    nowhere: Mapping[str, str] | None = key(
        table_of(SCALAR), "by such a column the value of blocks that are in no area of the kind", default=None
    )


@dataclass(frozen=True, kw_only=True)
class DeclaredGroup:
    """A group by columns."""

    label: str | None = key(TEXT, default=None)
    where: Condition = key(CONDITION)


@dataclass(frozen=True, kw_only=True)
class DeclaredResponseGroup:
    """A group by a response."""

    label: str | None = key(TEXT, default=None)
    response: str = key(TEXT, "a response, as FILE.NAME")
    codes: tuple[str, ...] = key(list_of(TEXT, "a list of codes", least=0), "of the records in the group")
    alone: bool = key(FLAG, "whether all codes of a record must be among these, not any", default=False)


GROUP: Final = declared(DeclaredResponseGroup, when=lambda told: "response" in told) | declared(DeclaredGroup)


@dataclass(frozen=True, kw_only=True)
class DeclaredChoice:
    """Groups of lists, those whose rows say so."""

    from_: tuple[str, ...] = key(_TEXTS)
    where: Condition = key(CONDITION, default={})


_CHOICE: Final = declared(DeclaredChoice)


@dataclass(frozen=True, kw_only=True)
class DeclaredLevel:
    """Areas crossed with groups."""

    areas: str = key(TEXT)
    groups: tuple[str, ...] | DeclaredChoice | None = key(
        list_of(TEXT, "a list of codes of groups") | _CHOICE, default=None
    )


_MARGIN: Final = keyed({"moe": _ABOVE_0}, "the margin of error of a cell that the least budget is found for")
_THRESHOLDS: Final = list_of(whole(0), "a list of ascending whole numbers, one for each step but the first")


@dataclass(frozen=True, kw_only=True)
class DeclaredDetail:
    """How finely each group is counted, by a noisy total that is not published."""

    steps: tuple[tuple[str, ...], ...] = key(
        list_of(_TEXTS, "a list of at least two lists of tables, the coarsest first", least=2),
        "tables that show a group, the coarsest first",
    )
    thresholds: tuple[int, ...] | Mapping[str, tuple[int, ...]] = key(
        _THRESHOLDS | table_of(_THRESHOLDS), "totals from which a group gets the next step"
    )
    share: Fraction | None = key(_BELOW_1, "of each budget, spent on the total", default=None)
    published: bool = key(FLAG, "whether totals of another release decide instead", default=False)
    coarsest: tuple[str, ...] | DeclaredChoice = key(
        list_of(TEXT, "a list of groups", least=0) | _CHOICE, "groups that always get the first step", default=()
    )
    leave_out: Mapping[str, Fraction] = key(
        table_of(_BELOW_1), "by level, the chance with which the count of an empty group is left out", default={}
    )


@dataclass(frozen=True, kw_only=True)
class DeclaredTable:
    """A table that is measured."""

    title: str | None = key(TEXT, default=None)
    counts: str = key(TEXT, "the file whose records are counted")
    where: Condition = key(CONDITION, default={})
    limit: RecordLimit | None = key(declared(RecordLimit), default=None)
    by: tuple[str, ...] | None = key(
        list_of(TEXT, "a list of columns and recodes"), "columns and recodes whose classes make the cells", default=None
    )
    margins: Mapping[str, tuple[str, ...]] | None = key(
        _each(list_of(TEXT, "a list of some of the columns", least=0)),
        "tables that keep some of these columns",
        default=None,
    )
    cells: Mapping[str, Condition] | None = key(table_of(CONDITION), "cells by label", default=None)
    sums: Mapping[str, Mapping[str, tuple[str, ...] | Condition]] = key(
        _each(table_of(list_of(TEXT, "a list of labels of cells") | CONDITION)),
        "tables whose rows add up cells",
        default={},
    )
    groups: Mapping[str, Condition] = key(table_of(CONDITION), "groups with conditions of their own", default={})
    headings: Mapping[str, str | tuple[str, ...]] = key(
        table_of(TEXT | list_of(TEXT, "a list of columns", least=0)),
        "by table, the columns that name its cells; none of a table of one row",
        default={},
    )
    detail: DeclaredDetail | None = key(declared(DeclaredDetail), default=None)
    overlapping: bool = key(FLAG, "whether cells may overlap", default=False)
    budget: Mapping[str, Budget | Mapping[str, Fraction]] = key(table_of(BUDGET | _MARGIN), "by level")
    stated: Mapping[str, Fraction] | None = key(
        keyed({"unbounded": _ABOVE_0, "bounded": _ABOVE_0}), "larger sensitivities than derived", default=None
    )


@dataclass(frozen=True, kw_only=True)
class DeclaredCriterion:
    """Errors of a table that shall be small."""

    table: str = key(TEXT, "a table, or one of its margins or sums")
    level: str = key(TEXT, "one that the table has a budget for")
    rows: Mapping[str, tuple[str, ...]] = key(
        CONDITION.made(lambda _, of, __: {name: (one,) if isinstance(one, str) else one for name, one in of.items()}),
        "what rows say in some columns; all rows if it is not there",
        default={},
    )
    at_least: int = key(whole(1, _LARGEST), "the smallest true count of a row", default=0)
    at_most: int | None = key(whole(0, _LARGEST), "the largest true count of a row", default=None)
    fewest: int = key(
        whole(1, _LARGEST), "how many rows of that size there are at least, as is known without looking", default=0
    )
    error: str = key(choice("relative", "absolute"), "a share of the true count, or records")
    quantile: Fraction = key(_ABOVE_0, "which of the errors: 0.5 is the median, 1 the largest")
    most: Fraction = key(_ABOVE_0, "how large it may be")
    chance: Fraction = key(
        _ABOVE_0, "with which it shall hold; the confidence of the description if it is not there", default=Fraction(0)
    )


_TOTAL: Final = scalar(
    "{ by = [] }; only totals can be kept exactly",
    lambda told: () if told == {"by": []} else None,
    {"type": "object", "properties": {"by": {"type": "array", "maxItems": 0}}, "required": ["by"]},
)


@dataclass(frozen=True, kw_only=True)
class DeclaredTopdown:
    """How yupana topdown makes the tables consistent."""

    spine: tuple[str, ...] = key(
        list_of(TEXT, "a list of kinds of areas from the one of everything down"),
        "kinds of areas from the one of everything down to the blocks",
    )
    cells: str = key(TEXT, "the table whose cells all counts are given by")
    invariants: Mapping[str, tuple[()]] = key(table_of(_TOTAL), default={})
    structural_zeros: tuple[Mapping[str, str], ...] = key(
        list_of(table_of(SCALAR), "a list of tables of columns or recodes, each with a class", each=True, least=0),
        default=(),
    )


TOPDOWN: Final = declared(DeclaredTopdown)


def _check_postprocess(place: str, told: Postprocess, faults: list[str]) -> None:
    if told.consistent and told.coterminous:
        text = "leave it out; where counts are consistent, areas that hold the same show the same"
        faults.append(f"{place}.coterminous: {text}")


@dataclass(frozen=True, kw_only=True)
class DeclaredDescription:
    """Tables of a description."""

    name: str = key(WORD, "what manifests call it")
    title: str | None = key(TEXT, default=None)
    unit: str | Mapping[str, str] = key(
        TEXT | keyed({"file": TEXT, "column": TEXT, "record": TEXT}, optional=("record",)),
        "the file whose records are protected, each with all below it, or a column of ids",
    )
    privacy_defn: str = key(
        choice(*MECHANISMS),
        "zcdp: discrete Gaussian noise, budgets are rho; puredp: geometric noise, budgets are epsilon",
        default="zcdp",
    )
    neighbours: str = key(choice(*NEIGHBOURS), "what one unit's change is", default="add-remove")
    confidence: Fraction = key(_BELOW_1, "of the margins of error", default=Fraction(9, 10))
    truncation_key: str = key(ANY_TEXT, "key of the hash that orders records before a limit", default="")
    noise_distribution: bool = key(FLAG, "whether tables have the column NOISE_DISTRIBUTION", default=True)
    dictionary: str | Dictionary | None = key(
        TEXT | LAYOUT, "of CSPro or DDI-Codebook: the file that says where lines of records hold what", default=None
    )
    data: str | None = key(TEXT, "the file in the data folder that the dictionary describes", default=None)
    encoding: str | None = key(choice(*ENCODINGS), "of that file; UTF-8 if nothing says another", default=None)
    files: Mapping[str, DeclaredFile] = key(_each(declared(DeclaredFile)), "record files")
    recodes: Mapping[str, DeclaredRecodes] = key(
        _each(declared(DeclaredRecodes), COLUMN), "classes of the values of a column", default={}
    )
    blocks: DeclaredBlocks | None = key(declared(DeclaredBlocks), default=None)
    group_lists: Mapping[str, DeclaredGroupList] = key(
        _each(declared(DeclaredGroupList)), "groups by responses, of public files", default={}
    )
    hierarchies: Mapping[str, DeclaredHierarchy] = key(
        _each(declared(DeclaredHierarchy)), "kinds of areas by tables of units and parents", default={}
    )
    areas: Mapping[str, DeclaredAreaKind] = key(_each(declared(DeclaredAreaKind)), "kinds of areas", default={})
    groups: Mapping[str, DeclaredGroup | DeclaredResponseGroup] = key(
        _each(GROUP, COLUMN), "population groups, which may overlap", default={}
    )
    levels: Mapping[str, DeclaredLevel] = key(
        _each(declared(DeclaredLevel)),
        "areas by groups; every kind of areas is a level of its name, too",
        default={},
    )
    tables: Mapping[str, DeclaredTable] = key(_each(declared(DeclaredTable)), "tables")
    criteria: Mapping[str, DeclaredCriterion] = key(
        _each(declared(DeclaredCriterion)), "how accurate tables shall be", default={}
    )
    postprocess: Postprocess = key(declared(Postprocess).checked(_check_postprocess), default=Postprocess())
    # What TopDown makes of the tables is read there; they can be measured one by one all the same.
    topdown: DeclaredTopdown | None = key(TOPDOWN, default=None)


def _check_areas(_: str, told: DeclaredDescription, faults: list[str]) -> None:
    # Where a hierarchy makes kinds of areas, none need to be told one by one.
    if not told.areas and not told.hierarchies:
        faults.append("key 'areas' is missing")


DOCUMENT: Final = declared(DeclaredDescription).checked(_check_areas)
"""A whole description."""
