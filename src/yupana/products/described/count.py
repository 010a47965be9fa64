"""One table of one record file: what a user asks in a line, as the description that measures it. Public."""

import html
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any, Final

from yupana.errors import ConfigError
from yupana.files.code_tables import in_utf_8, read_rows
from yupana.files.codes import CODES, codes_of, in_place, listed_rows
from yupana.files.columns import Dialect
from yupana.files.delimited import shown
from yupana.files.names import LONGEST, fault_of, file_of, folded, normal
from yupana.plan.measurement import Mechanism
from yupana.plan.plan import DEFAULT_DELTA, Plan
from yupana.privacy.exact import read_exact
from yupana.privacy.zcdp import epsilon_tight, rho_for_epsilon
from yupana.products.described.product import TABLES, described
from yupana.products.described.reading.declaration import MOST_VALUES, WRITTEN, dialect_of, is_word, stands_for_none
from yupana.products.described.reading.tables import RESERVED

LOSS: Final = ("epsilon", "rho", "delta")
TEXT: Final = ("separator", "encoding", "decimal")
RECORDS: Final = "records"
"""What the description calls the record file."""

TABLE: Final = "counts"
"""The table of all cells."""

MOST_CELLS: Final = 20_000
"""Of one table: the time that a plan takes grows with their square."""

Codes = Sequence[str | int] | Mapping[str, str]
"""Codes of a column, or these with a label each."""

_VARIABLE: Final = re.compile(r'(?:"([^"]*)"(?=:|$)|([^:]*))(:?)(.*)', re.DOTALL)
"""A column, in quotes if it has a colon, and its classes."""

_BINS: Final = re.compile(r"(\d{1,9}):(\d{1,9})-(\d{1,9})(?::(.*))?")
_LEAST: Final = Fraction(1, 10**15)
_MOST: Final = 1_000_000
_DIGITS: Final = 12
"""Of a rho that is found from an epsilon; more could not be told from rounding."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A column that cells are told apart by: of codes, or of whole numbers in classes of one width."""

    column: str
    # width, low, high: of the classes; 0 of a column of codes
    width: int = 0
    low: int = 0
    high: int = 0
    missing: str = ""  # the class of records without a number, and what they may write; empty if each must have one
    others: str = ""  # the class of records with a value that is not allowed; empty if there may be none

    @property
    def classes(self) -> list[str]:
        """The classes of whole numbers, of which the highest may be shorter, of none, and of others."""
        ends = ((at, min(at + self.width - 1, self.high)) for at in range(self.low, self.high + 1, self.width))
        numbers = [f"{low}-{high}" if low < high else f"{low}" for low, high in ends]
        return [*numbers, *filter(None, (self.missing, self.others))]

    def declared(self, codes: object) -> dict[str, Any]:
        """The column as a description has it, with its codes, if it has some."""
        of: dict[str, Any] = {"whole": [self.low, self.high]} if self.width else {"codes": codes}
        return of | {name: word for name in ("missing", "others") if (word := getattr(self, name))}


@dataclass(frozen=True, slots=True)
class _CountQuestion:
    """What is to be counted, for which loss."""

    by: tuple[Variable, ...]
    codes: Mapping[str, list[str] | dict[str, str]]  # of columns of codes, as far as they were named
    unit: str  # the column of ids, each of which is a unit; empty where each record is
    most: int  # how many records of one unit count
    mechanism: Mechanism
    budget: Fraction  # epsilon under pure differential privacy, or else rho
    delta: float | None  # at which the budget was said as an epsilon
    totals: bool  # whether there are tables of each column alone, too
    # how a file of text is written, as a description says it: its separator, encoding and decimal point or comma
    written: Mapping[str, str]

    @property
    def dialect(self) -> Dialect:
        """How a file of text is written."""
        return dialect_of(*map(self.written.get, TEXT))

    @property
    def to_look_up(self) -> tuple[str, ...]:
        """Columns whose codes are those that occur, which the user declares to be public."""
        return tuple(of.column for of in self.by if not of.width and of.column not in self.codes)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are read."""
        return (*(of.column for of in self.by), *([self.unit] if self.unit else []))

    def document(self, found: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        """The description.

        Parameters
        ----------
        found : mapping of column to sequence of str
            The codes that occur, of the columns in `to_look_up`.
        """
        if fault := _too_many_cells(self.by, {**self.codes, **found}):
            raise ConfigError(f"count cannot be made:\n  {fault}")
        columns: dict[str, Any] = {}
        for of in self.by:
            if of.width or of.column in self.codes:
                columns[of.column] = of.declared(self.codes.get(of.column))
            else:
                columns[of.column] = of.declared(list(found[of.column])) | {"occurring": True}
        names = [of.column for of in self.by]
        table: dict[str, Any] = {
            "title": f"Records by {_listed(names)}",
            "counts": RECORDS,
            "by": [of.column if of.width else f"{RECORDS}.{of.column}" for of in self.by],
            "budget": {"all": str(self.budget)},
        }
        if self.unit:
            table["limit"] = {"per": self.unit, "most": self.most}
        if self.totals:
            table["margins"] = {**(_alone(names) if len(names) > 1 else {}), "total": []}
        return {
            "name": "count",
            "title": table["title"],
            "unit": {"file": RECORDS, "column": self.unit} if self.unit else RECORDS,
            "privacy_defn": "puredp" if self.mechanism is Mechanism.PURE else "zcdp",
            "files": {RECORDS: {"record": "record", **self.written, "columns": columns}},
            "recodes": {
                of.column: {"column": f"{RECORDS}.{of.column}", "classes": {label: label for label in of.classes}}
                for of in self.by
                if of.width
            },
            "areas": {"all": {"code": "all", "labels": {"all": "All records"}}},
            "tables": {TABLE: table},
        }


@dataclass(frozen=True, slots=True, repr=False)
class CountPlan:
    """What a count costs and how accurate it is, told before any record is read.

    Attributes
    ----------
    question : _CountQuestion
    plan : Plan
        What is measured; where codes are to be looked up, without their number.
    sizes : mapping of str to int or None
        How many codes or classes each column has; None of codes that are to be looked up.
    """

    question: _CountQuestion
    plan: Plan
    sizes: Mapping[str, int | None]

    @property
    def cells(self) -> int | None:
        """How many cells there are; None before the codes are looked up."""
        sizes = self.sizes.values()
        return None if None in sizes else math.prod(size for size in sizes if size is not None)

    def as_json(self, delta: float = DEFAULT_DELTA) -> dict[str, Any]:
        """The plan, with what is counted; epsilon at a delta."""
        return {"cells": self.cells, "sizes": dict(self.sizes), **self.plan.as_json(delta)}

    def __repr__(self) -> str:
        return "\n".join(_told(self))

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"


def read_question(
    by: str | Sequence[str],
    *,
    unit: str | None = None,
    most: int = 1,
    keys: str | Path | Sequence[str | Path] | None = None,
    domains: Mapping[str, Codes] | None = None,
    keys_public: bool = False,
    totals: bool = False,
    others: object = None,
    loss: Mapping[str, object],
    text: Mapping[str, object],
) -> _CountQuestion:
    """Read what is asked; see `yupana.count`, whose arguments named in `LOSS` and `TEXT` are in ``loss`` and ``text``.

    Raises
    ------
    ConfigError
        Naming every fault.
    """
    faults: list[str] = []
    variables = _with_others(_variables(by, faults), others, faults)
    written = _written(text, faults)
    _check_unit(unit, most, variables, faults)
    wanted = [of.column for of in variables if not of.width]
    codes = _codes(wanted, keys, written.get("encoding", ""), domains, faults)
    for column in wanted:
        if column not in codes and not keys_public and not faults:
            faults.append(
                f"by: {column} has no list of codes. A code that occurs tells of a record, so codes are named before "
                f"records are read. Give keys (a public list in a file), domains (as {column}=1,2), or say keys_public "
                f"if you declare that the values of {column} that occur are public. Whole numbers are "
                f"{column}:WIDTH:LOW-HIGH"
            )
    if keys_public and not faults and all(column in codes for column in wanted):
        faults.append("keys_public: every column has its codes already, so none is to be looked up; leave it out")
    if fault := _too_many_cells(variables, codes):
        faults.append(fault)
    mechanism, budget, at = _loss(loss.get("epsilon"), loss.get("rho"), loss.get("delta"), faults)
    if faults:
        raise ConfigError("\n".join(["count cannot be made:", *(f"  {fault}" for fault in faults)]))
    return _CountQuestion(tuple(variables), codes, normal(unit or ""), most, mechanism, budget, at, totals, written)


def plan_of(question: _CountQuestion, confidence: Fraction | None) -> CountPlan:
    """What the question costs; needs no data."""
    unknown = question.to_look_up
    document = question.document({column: ["?"] for column in unknown})
    plan = TABLES.plan(described(document), confidence=confidence)
    sizes = {
        of.column: len(of.classes) if of.width else len(question.codes.get(of.column, ())) + bool(of.others)
        for of in question.by
    }
    return CountPlan(question, plan, {column: None if column in unknown else size for column, size in sizes.items()})


def _alone(columns: Iterable[str]) -> dict[str, list[str]]:
    """Tables of one column each, called after it as a table may be, with files of their own."""
    found: dict[str, list[str]] = {}
    for column in columns:
        start = f"by_{re.sub('[./:]+', ' ', column)}"[: LONGEST - 4].strip()
        names = (start if number == 1 else f"{start}_{number}" for number in count(1))
        taken = {folded(file_of(name)) for name in found}
        found[next(name for name in names if folded(file_of(name)) not in taken)] = [column]
    return found


def _too_many_cells(by: Iterable[Variable], codes: Mapping[str, Collection[str]]) -> str:
    """What is wrong if the columns make too many cells, as far as their codes are known."""
    cells = math.prod(len(of.classes) if of.width else len(codes.get(of.column, "?")) + bool(of.others) for of in by)
    if cells <= MOST_CELLS:
        return ""
    return f"by: makes {cells:,} cells, and at most {MOST_CELLS:,} are allowed; take wider classes or fewer columns"


def _columns_of(by: str) -> list[str]:
    """The texts between commas; one in double quotes may hold some."""
    texts, is_quoted = [""], False
    for one in by:
        is_quoted ^= one == '"'
        if one == "," and not is_quoted:
            texts.append("")
        else:
            texts[-1] += one
    return texts


def _variables(by: object, faults: list[str]) -> list[Variable]:
    texts = _columns_of(by) if isinstance(by, str) else by
    if not isinstance(texts, Sequence) or not texts or not all(isinstance(text, str) for text in texts):
        faults.append("by: must be columns, such as 'region,age:5:0-115,sex', or a list of them")
        return []
    found: list[Variable] = []
    for text in texts:
        quoted, bare, colon, rest = _VARIABLE.fullmatch(normal(text.strip())).groups("")  # type: ignore[union-attr]
        column = quoted or bare
        if fault := fault_of(column, parted=False):
            faults.append(f"by: {column[:LONGEST]!r} {fault}")
        elif folded(column).upper() in RESERVED:
            faults.append(f"by: {column} has a meaning of its own in tables; give the column another name")
        elif folded(column) in {folded(of.column) for of in found}:
            faults.append(f"by: {column} stands twice")
        elif not colon:
            found.append(Variable(column))
        elif (variable := _classes(column, rest, faults)) is not None:
            found.append(variable)
    return found


def _classes(column: str, rest: str, faults: list[str]) -> Variable | None:
    place = f"by: {column}:{rest}"
    match = _BINS.fullmatch(rest)
    if match is None:
        if rest.isdecimal():
            text = "has a width without bounds. The least and the largest value that occur would each tell of a record"
            faults.append(f"{place} {text}, so say what is possible, as {column}:{rest}:0-115")
        else:
            text = (
                f"whole numbers without a sign, as {column}:5:0-115, or {column}:5:0-115:unknown where some are "
                "missing; a column whose name has a colon stands in double quotes"
            )
            faults.append(f"{place} must be {column}:WIDTH:LOW-HIGH, {text}")
        return None
    width, low, high = map(int, match.groups()[:3])
    missing = match[4] or ""
    if width == 0:
        faults.append(f"{place} has classes of width 0; take 1 or more")
    elif low > high:
        faults.append(f"{place} has its bounds reversed; write {column}:{width}:{high}-{low}")
    elif high - low >= MOST_VALUES:
        faults.append(f"{place} has more than {MOST_VALUES:,} values between its bounds")
    elif match[4] is not None and not stands_for_none(missing, low, high):
        faults.append(f"{place} names no text for what is missing: no number from {low} to {high}, range, | or quote")
    else:
        return Variable(column, width, low, high, missing)
    return None


def _with_others(by: Iterable[Variable], others: object, faults: list[str]) -> list[Variable]:
    """The columns with a class for what is not allowed: all of them, or those that are named."""
    variables = list(by)
    told = {of.column: others for of in variables} if isinstance(others, str) else others
    if told is None:
        return variables
    if not isinstance(told, Mapping) or not told:
        faults.append("others: must be what others are called, such as 'other', or that by column")
        return variables
    known = {of.column for of in variables}
    faults += [f"others: {column} is no column of by" for column in told if column not in known]
    for of in variables:
        if (word := told.get(of.column)) is None:
            continue
        if not is_word(word) or (of.width and not stands_for_none(word, of.low, of.high)) or word == of.missing:
            faults.append(
                f"others: {of.column}: must be a text that is no value, such as 'other', without | and quotes"
            )
    return [replace(of, others=str(told.get(of.column) or "")) for of in variables]


def _written(told: Mapping[str, object], faults: list[str]) -> dict[str, str]:
    """How a file of text is written, as far as that was said."""
    found = {name: WRITTEN[name].read(name, value, faults) for name, value in told.items() if value is not None}
    return {name: value for name, value in found.items() if value is not None}


def _check_unit(unit: object, most: object, variables: Iterable[Variable], faults: list[str]) -> None:
    if isinstance(most, bool) or not isinstance(most, int) or not 0 < most < _MOST:
        faults.append(f"max_per_unit: must be a whole number above 0 and below {_MOST:,}")
    elif unit is None and most != 1:
        faults.append("max_per_unit: needs a unit, the column that says whose each record is")
    if unit is None:
        return
    fault = fault_of(normal(unit), parted=False) if isinstance(unit, str) else "is no text"
    if fault or not isinstance(unit, str):
        faults.append(f"unit: must be the name of a column, and {fault}; leave it out where each record is a unit")
    elif folded(unit) in {folded(of.column) for of in variables}:
        faults.append(f"unit: {unit} is in by, too; a table by those it protects would show each of them")
    elif folded(unit) == RECORDS:
        faults.append(f"unit: a column named {RECORDS} cannot be the unit; rename it")


def _codes(
    wanted: Sequence[str], keys: object, encoding: str, domains: object, faults: list[str]
) -> dict[str, list[str] | dict[str, str]]:
    """The codes of columns, from lists and from public files."""
    found: dict[str, list[str] | dict[str, str]] = {}
    if not isinstance(domains, Mapping | None) or not all(isinstance(column, str) for column in domains or ()):
        faults.append("domains: must be codes by column, such as {'sex': ['1', '2']}")
        domains = None
    for column, told in ((normal(column), told) for column, told in (domains or {}).items()):
        if column in found:
            faults.append(f"domains: {column} is given twice, in two spellings of one text")
        if column not in wanted:
            faults.append(f"domains: {column} is no column of codes in by")
        else:
            place = f"domains: {column}"
            found[column] = in_place(codes_of(place, CODES.read(place, _in_place(told), faults), Path(), faults))
    for file in keys if isinstance(keys, Sequence) and not isinstance(keys, str) else [] if keys is None else [keys]:
        if not isinstance(file, str | Path):
            faults.append(f"keys: must be a file or a list of files, and one is of type {type(file).__name__}")
            continue
        lists = _keys(Path(file), wanted, encoding, faults)
        faults += [
            f"keys: {file} has codes of {column}, which has codes already; give them once"
            for column in lists
            if column in found
        ]
        found |= {column: codes for column, codes in lists.items() if column not in found}
    return found


def _keys(path: Path, wanted: Sequence[str], encoding: str, faults: list[str]) -> dict[str, list[str] | dict[str, str]]:
    """The codes of columns that a public file lists, in UTF-8 or the encoding of the records."""

    def alone(fields: Sequence[str]) -> list[str] | None:
        # What begins with a digit is the name of no column.
        return list(wanted) if len(fields) == len(wanted) == 1 and fields[0][:1].isdecimal() else None

    told = None if not encoding or in_utf_8(path) else encoding
    before, rows = len(faults), read_rows("keys", path, (), faults, told, alone)
    header = rows[0].values if rows else {}
    held = [column for column in wanted if column in header]
    if not held and len(faults) == before:
        text = f"{path} has no column {' or '.join(wanted)}" if wanted else "no column of by has codes"
        faults.append(f"keys: {text}; it has {shown(list(header))}" if header else f"keys: {path} has no rows")
    return {column: in_place(listed_rows(f"keys: {path}", rows, column, column, faults)) for column in held}


def _in_place(told: object) -> object:
    """Codes as a description writes them, where whole numbers are texts."""
    if isinstance(told, Mapping):
        return dict(told)
    if isinstance(told, str) or not isinstance(told, Sequence):
        return told
    return [str(code) if isinstance(code, int) and not isinstance(code, bool) else code for code in told]


def _loss(epsilon: object, rho: object, delta: object, faults: list[str]) -> tuple[Mechanism, Fraction, float | None]:
    """The mechanism, its budget, and the delta at which that was said as an epsilon."""
    nothing = Mechanism.PURE, Fraction(1), None
    if (epsilon is None) == (rho is None):
        faults.append("epsilon: give either epsilon or rho: the loss that the answer may cost")
        return nothing
    if rho is not None:
        if delta is not None:
            faults.append("delta: goes with epsilon; rho needs none")
        return Mechanism.ZCDP, _positive("rho", rho, faults), None
    loss = _positive("epsilon", epsilon, faults)
    if delta is None:
        return Mechanism.PURE, loss, None
    at = _positive("delta", delta, faults)
    if not Fraction(1, 10**300) <= at < 1:
        faults.append("delta: must lie strictly between 0 and 1")
    if faults:
        return nothing
    found = rho_for_epsilon(float(loss), float(at))
    scale = Fraction(10) ** (_DIGITS - 1 - math.floor(math.log10(found)))
    return Mechanism.ZCDP, math.floor(Fraction(found) * scale) / scale, float(at)


def _positive(name: str, value: object, faults: list[str]) -> Fraction:
    try:
        found = Fraction(0) if isinstance(value, bool) else read_exact(str(value))
    except ValueError:
        found = Fraction(0)
    if name == "delta" and isinstance(found, Fraction) and found > 0:
        return found
    if not isinstance(found, Fraction) or not _LEAST <= found <= _MOST:
        faults.append(f"{name}: must be a number above 0 and at most {_MOST:,}, such as 1, 0.5 or 1/3")
        return Fraction(1)
    return found


def _told(asked: CountPlan) -> Iterable[str]:
    question, plan = asked.question, asked.plan
    (measured,) = plan.measurements
    sizes = _listed([f"{column} ({'?' if size is None else f'{size:,}'})" for column, size in asked.sizes.items()])
    cells = "as many cells as codes occur" if asked.cells is None else _number(asked.cells, "cell")
    yield f"records by {sizes}: {cells}"
    unit = f"one {question.unit}" if question.unit else "one record"
    yield f"  protects     {unit}: whether it is there at all" + (
        f"; at most {_number(question.most, 'record')} of it count" + ("s" if question.most == 1 else "")
        if question.unit
        else ""
    )
    yield f"  sensitivity  {unit} more or less changes all cells together by at most {question.most}"
    yield f"  costs        {_costs(question, plan)}"
    percent = f"{float(100 * plan.confidence):g}%"
    yield f"  error        of one cell at most {plan.margin(measured):,.0f} with a probability of {percent}"
    if question.totals and asked.cells is not None:
        yield f"               of the total at most {plan.margin(measured, asked.cells):,.0f}"
    if question.to_look_up:
        yield (
            f"  looks up     the values of {_listed(question.to_look_up)} that occur, which you declare to be public; "
            "that reads the records, and has not been done"
        )
    yield "  it does not protect"
    for text in _open(question):
        yield f"    - {text}"


def _costs(question: _CountQuestion, plan: Plan) -> str:
    (measured,) = plan.measurements
    bounded = measured.loss(measured.sensitivity.bounded)
    if question.mechanism is Mechanism.PURE:
        return f"epsilon {_show(question.budget)}; epsilon {_show(bounded)} where one is replaced by another"
    delta = question.delta or DEFAULT_DELTA
    epsilon = epsilon_tight(float(question.budget), delta)
    return (
        f"rho {_show(question.budget)}, which is epsilon {epsilon:.6g} at delta {delta:g}; rho {_show(bounded)} where "
        "one is replaced by another"
    )


def _open(question: _CountQuestion) -> Iterable[str]:
    """What the answer does not protect."""
    found = question.to_look_up
    occur = f" (every value of {_listed(found)} that occurs, even if in one record)" if found else ""
    yield f"the fact that the table was made, its columns and its codes{occur}, and how long it took"
    if question.unit:
        yield f"a person with several values of {question.unit}: the loss is for each value"
    else:
        yield "a person with several records: the loss is for each record; name a unit if there is a column of ids"
    yield "what is true of many people: the table exists to show it"
    yield "against answers of other runs on the same records: their losses add up; a ledger adds and limits them"


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def _number(of: int, what: str) -> str:
    return f"{of:,} {what}{'' if of == 1 else 's'}"


def _show(value: Any) -> str:  # noqa: ANN401 (a budget)
    return f"{float(value):.9g}" if isinstance(value, Fraction) else "infinite"
