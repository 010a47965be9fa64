"""Areas and queries as a user names them: read from options or a file, and written in cells of the schema. Public."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import compress
from pathlib import Path

import numpy as np

from yupana.arrays import Floats, Ints
from yupana.errors import ConfigError, InputError
from yupana.estimate.intervals.query import Form, Linear, evaluate, parse, shown
from yupana.estimate.intervals.selections import Counted, Levels, weights_on
from yupana.files.regular import read_regular
from yupana.geography.gazetteer import NamedArea
from yupana.products.gate import open_release
from yupana.release.release import ReleaseFolder
from yupana.release.status import refuse_confidential
from yupana.topdown.queries import Schema, told_apart

AREA, QUERY = "area", "query"

Kept = tuple[int, ...]
"""Attributes of a schema, by position and in order."""


@dataclass(frozen=True, slots=True)
class AreaQuestion:
    """A query of an area, as texts, and where they stand: before what is said of them."""

    area: str
    query: str
    where: str = ""
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QuestionFile:
    """The questions of a file, and the columns that it has beside them."""

    questions: tuple[AreaQuestion, ...]
    others: tuple[str, ...]


def read_questions(path: Path) -> QuestionFile:
    """Read a table with the columns ``area`` and ``query``, in any order; other columns are kept with their row.

    Raises
    ------
    InputError
        Naming the line, if it is no such table.
    """
    try:
        text = read_regular(path).decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8") from None
    first = text.split("\n", 1)[0]
    separator = "|" if "|" in first else ","
    reader = csv.reader(text.splitlines(keepends=True), delimiter=separator, strict=True)
    try:
        header = [name.strip().lower() for name in next(reader, [])]
        for name in (AREA, QUERY):
            if header.count(name) != 1:
                raise InputError(f"{path}, line 1: it needs one column {name}; it has {', '.join(header) or 'none'}")
        others = tuple(name for name in header if name not in {AREA, QUERY})
        found = [_question(path, reader.line_num, header, row) for row in reader if row]
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: not readable as a table of text ({error})") from None
    if not found:
        raise InputError(f"{path} has a header and no rows; it must ask one question at least")
    return QuestionFile(tuple(found), others)


def _question(path: Path, line: int, header: list[str], row: list[str]) -> AreaQuestion:
    if len(row) != len(header):
        raise InputError(
            f"{path}, line {line}: {len(row)} fields, but the header names {len(header)} columns; put a query that "
            "holds the separator in double quotes"
        )
    told = dict(zip(header, row, strict=True))
    for name in (AREA, QUERY):
        if not told[name].strip():
            raise InputError(f"{path}, line {line}, column {name}: empty")
    others = tuple(value for name, value in zip(header, row, strict=True) if name not in {AREA, QUERY})
    return AreaQuestion(told[AREA].strip(), told[QUERY].strip(), f"{path}, line {line}: ", others)


@dataclass(frozen=True, slots=True, eq=False)
class WeightedCells:
    """A constant and a weighted sum of the cells of a schema."""

    constant: float
    kept: tuple[int, ...]  # the attributes whose levels weigh differently, in order
    weights: Floats  # shape (cells of these attributes,): in C order

    @property
    def key(self) -> tuple[tuple[int, ...], bytes]:
        """What equal sums have in common."""
        return self.kept, self.weights.tobytes()

    @property
    def is_count(self) -> bool:
        """Whether it adds up cells, each once: a whole number, not below 0."""
        return self.constant == 0 and bool(np.isin(self.weights, (0.0, 1.0)).all())

    def cell(self, shape: tuple[int, ...]) -> int | None:
        """The one cell of the whole schema that it is; None if it is anything else."""
        several = tuple(axis for axis, size in enumerate(shape) if size > 1)
        found = np.flatnonzero(self.weights)
        if self.kept != several or len(found) != 1 or self.weights[found[0]] != 1 or self.constant:
            return None
        # Attributes of one level add nothing to the number of a cell.
        return int(found[0])

    def on(self, kept: tuple[int, ...], shape: tuple[int, ...]) -> Floats:
        """The weights on the cells of more attributes, of shape (their cells,)."""
        sizes = tuple(shape[i] if i in self.kept else 1 for i in kept)
        whole = np.broadcast_to(self.weights.reshape(sizes), tuple(shape[i] for i in kept))
        return np.ascontiguousarray(whole).reshape(-1)

    def at(self, cells: Ints, shape: tuple[int, ...]) -> Floats:
        """The weights of cells of the whole schema."""
        levels = np.unravel_index(cells, shape)
        if not self.kept:
            return np.full(len(cells), self.weights[0])
        place = np.ravel_multi_index([levels[i] for i in self.kept], tuple(shape[i] for i in self.kept))
        return self.weights[place]


@dataclass(frozen=True, slots=True, eq=False)
class AreaForm:
    """What a query asks of an area: a weighted sum of cells, or one over another."""

    above: WeightedCells
    below: WeightedCells | None = None  # none where it is no ratio
    factor: float | None = None  # the ratio, where one is a multiple of the other

    @property
    def cells(self) -> int:
        """How many cells of the attributes that they name the sums are made of."""
        return sum(int(np.count_nonzero(one.weights)) for one in self.sums)

    @property
    def kept(self) -> tuple[int, ...]:
        """The attributes that its sums tell apart, in order."""
        return tuple(sorted({attribute for one in self.sums for attribute in one.kept}))

    @property
    def sums(self) -> tuple[WeightedCells, ...]:
        """The weighted sums in it."""
        return (self.above,) if self.below is None else (self.above, self.below)


@dataclass(frozen=True, slots=True, eq=False)
class AskedOfArea:
    """A question understood."""

    question: AreaQuestion
    area: NamedArea
    place: int  # of the area among those of its kind that are asked for
    form: AreaForm

    @property
    def said(self) -> str:
        """Where it was asked, and what, for messages."""
        return f"{self.question.where}{self.area.label}, {self.question.query!r}"


def expanded(query: str, words: Counted) -> list[str]:
    """A query, or all variables of the table that it names."""
    for table in words.tables:
        if query.strip() == table.name:
            return list(table.variables)
    return [query]


def read_form(query: str, words: Counted) -> AreaForm:
    """Read a query as a form in cells.

    Raises
    ------
    ConfigError
        If it is not of the language, names what is not there, or comes to no sum or ratio.
    """
    try:
        return _form(evaluate(parse(query), words.select), words.schema)
    except ConfigError as error:
        raise ConfigError(f"query {shown(query)!r}: {error}") from None


def _form(form: Form, schema: Schema) -> AreaForm:
    if isinstance(form, Linear):
        if form.is_constant:
            raise ConfigError("no cell is left in it: the cells cancel, or it names none")
        return AreaForm(_cells(form, schema))
    factor = form.above.multiple_of(form.below)
    above, below = _cells(form.above, schema), _cells(form.below, schema)
    return AreaForm(above, below, None if factor is None else float(factor))


def _cells(form: Linear, schema: Schema) -> WeightedCells:
    answers: Mapping[Levels, Fraction] = {
        cell: weight for cell, weight in form.weights.items() if isinstance(cell, tuple)
    }
    kept, weights = weights_on(answers, schema) if answers else ((), np.zeros(1))
    # Attributes whose levels all weigh the same are left out.
    needed, (found,) = told_apart(weights[None], [schema.shape[i] for i in kept])
    return WeightedCells(float(form.constant), tuple(compress(kept, needed)), np.ascontiguousarray(found))


def open_parts(folder: Path) -> tuple[ReleaseFolder, Mapping[str, ReleaseFolder]]:
    """Open a release, and its parts if it has some.

    Raises
    ------
    OutputError
        If it is none, or one of them is CONFIDENTIAL.
    """
    opened = open_release(folder, confidential=True)
    if not opened.parts:
        return open_release(folder), {}
    for part in opened.parts.values():
        refuse_confidential(part.manifest, str(part.folder))
    return opened, opened.parts


def questions_by_part(
    questions: Sequence[AreaQuestion], words: Mapping[str, Counted]
) -> list[tuple[str, AreaQuestion]]:
    """Put every question, tables taken apart, to the part that counts what it asks for.

    Parameters
    ----------
    words : mapping of str to Counted
        By part.

    Raises
    ------
    ConfigError
        If no part counts it, or several do.
    """
    part_of: dict[str, tuple[str, list[str]]] = {}
    found = []
    for question in questions:
        if question.query not in part_of:
            part_of[question.query] = _part_of(question, words)
        part, queries = part_of[question.query]
        found += [(part, replace(question, query=query)) for query in queries]
    return found


def _part_of(question: AreaQuestion, words: Mapping[str, Counted]) -> tuple[str, list[str]]:
    counts, faults = [], []
    for name, of_part in words.items():
        try:
            queries = expanded(question.query, of_part)
            for query in queries:
                read_form(query, of_part)
            counts.append((name, queries))
        except ConfigError as error:
            faults.append(f"of {name}: {error}")
    if len(counts) > 1:
        raise ConfigError(
            f"{question.where}query {question.query!r} is counted of {' and of '.join(name for name, _ in counts)}; "
            "ask for a variable of the tables, such as P0010001 or H0010001, or name the folder of one part"
        )
    if not counts:
        raise ConfigError("\n  ".join([f"{question.where}no part counts {question.query!r}:", *faults]))
    return counts[0]
