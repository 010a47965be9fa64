"""Read a description of tables: TOML or JSON, with every fault named at once, each with its line. Public.

docs/tables.md tells what each key means.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np

from yupana.arrays import Flags
from yupana.errors import ConfigError, nearest
from yupana.files.columns import Column
from yupana.files.document import Number, check_keys, is_text, read_budget, read_choice, read_table
from yupana.plan.classes import TooManyClassesError, classify
from yupana.plan.measurement import Sensitivity
from yupana.plan.plan import Neighbours
from yupana.plan.predicates import Where
from yupana.privacy.exact import Budget, read_exact
from yupana.products.census import MECHANISMS
from yupana.products.described.codes import read_codes, read_pairs
from yupana.products.described.description import (
    EVERYONE,
    AreaKind,
    DescribedColumn,
    DescribedFile,
    DescribedLevel,
    DescribedTable,
    Description,
    RecordLimit,
    Sums,
    in_join,
)
from yupana.products.described.stability import overlap, stability

NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
_LEVEL: Final = re.compile(r"[^\s\"'|=\[\]/:.]{1,63}")
_RANGE: Final = re.compile(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?")
MOST_VALUES: Final = 1_000_000
"""Most values of a column of whole numbers."""

MOST_CELLS: Final = 100_000

_KEYS: Final = ("name", "unit", "files", "areas", "tables")
_OPTIONAL: Final = (
    *("title", "privacy_defn", "neighbours", "confidence", "truncation_key", "recodes", "groups", "levels"),
)
_NEIGHBOURS: Final = {"add-remove": Neighbours.UNBOUNDED, "replace": Neighbours.BOUNDED}
RESERVED: Final = (
    "REGION_ID",
    "REGION_TYPE",
    "ITERATION_CODE",
    "COUNT",
    "NOISE_DISTRIBUTION",
    "VARIANCE",
    "MOE",
    "CELL",
)
"""Columns of published tables that have a meaning of their own."""


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
    check_keys("", document, _KEYS, faults, optional=_OPTIONAL)
    if faults:
        return None
    return _DescriptionReader(document, folder, faults).read()


@dataclass
class _Variable:
    """What tells cells apart: a column of a join, and its classes by label."""

    column: str
    classes: dict[str, frozenset[int]]


@dataclass
class _DescriptionReader:
    """Reads the parts of a description in turn; each takes what stands before it."""

    document: dict[str, Any]
    folder: Path
    faults: list[str]
    files: dict[str, DescribedFile] = field(default_factory=dict)
    columns: dict[str, DescribedColumn] = field(default_factory=dict)
    recodes: dict[str, _Variable] = field(default_factory=dict)
    areas: dict[str, AreaKind] = field(default_factory=dict)
    unit: str = ""

    def read(self) -> Description | None:
        """The whole; None where there are faults."""
        head = self._head()
        for step in (self._files, self._recodes):
            step()
            if self.faults:
                return None
        areas, groups = self._areas(), self._groups()
        labels = {code: _label(told, code) for code, told in self._tables_of("groups")}
        if self.faults:
            return None
        levels = self._levels(areas, groups)
        if self.faults:
            return None
        tables = [self._table(name, told, levels) for name, told in self._tables_of("tables")]
        names = [name for table in tables if table for name in (table.name, *(sums.name for sums in table.sums))]
        self._fault_each("tables", "is the name of two tables", (n for n in dict.fromkeys(names) if names.count(n) > 1))
        if not tables:
            self.faults.append("tables: describes none")
        if self.faults or head is None:
            return None
        made = Description(
            **head, unit=self.unit, files=self.files, areas=areas, groups=groups, group_labels=labels,
            tables=tuple(table for table in tables if table), document=self.document,
        )  # fmt: skip
        self._check(made)
        return None if self.faults else made

    # What holds for the whole.

    def _head(self) -> dict[str, Any] | None:
        told, faults = self.document, self.faults
        name = told["name"]
        if not (is_text(name) and NAME.fullmatch(name)):
            faults.append("name: must be letters, digits, - and _, beginning with a letter")
        title, key = told.get("title", name), told.get("truncation_key", "")
        faults += [f"{place}: must be a text of one line" for place, of in (("title", title),) if not is_text(of)]
        if not isinstance(key, str) or isinstance(key, Number):
            faults.append("truncation_key: must be a text")
        mechanism = MECHANISMS[read_choice("privacy_defn", told.get("privacy_defn", "zcdp"), [*MECHANISMS], faults)]
        neighbours = read_choice("neighbours", told.get("neighbours", "add-remove"), [*_NEIGHBOURS], faults)
        confidence = self._fraction("confidence", told.get("confidence", "0.9"))
        if confidence is not None and not 0 < confidence < 1:
            faults.append("confidence: must lie strictly between 0 and 1")
        if faults:
            return None
        return {
            "name": name,
            "title": title,
            "mechanism": mechanism,
            "neighbours": _NEIGHBOURS[neighbours],
            "confidence": confidence,
            "truncation_key": key,
        }

    def _check(self, made: Description) -> None:
        """What follows from everything together: sensitivities, and cells that nothing can count in."""
        for table in made.tables:
            self._check_cells(made, table)
            for level in table.levels:
                try:
                    stability(made, table, level)
                except ConfigError as error:
                    self.faults += [str(error)] if str(error) not in self.faults else []
        if not any(budget for table in made.tables for budget in table.budgets.values()):
            self.faults.append("tables: every budget is 0, so nothing would be measured")

    def _check_cells(self, made: Description, table: DescribedTable) -> None:
        place = f"tables.{table.name}"
        try:
            members: Flags = classify(made.of_record(table), [table.universe & cell for cell in table.cells]).members
        except TooManyClassesError:
            self.faults.append(f"{place}: its cells tell too many combinations of values apart; recode some columns")
            return
        empty = [table.labels[cell] for cell in np.flatnonzero(~members.any(axis=1))]
        self._fault_each(place, "no record can count in cell", (" × ".join(labels) for labels in empty[:5]))
        self._fault_each(
            f"{place}.budget",
            "is a level whose groups no record of the table can be of",
            (level.name for level in table.levels if not overlap(made, table, level).cells),
        )
        told = self.document["tables"][table.name]
        if members.sum(axis=0).max(initial=0) > 1 and told.get("overlapping") is not True:
            self.faults.append(f"{place}: some of its cells overlap; say overlapping = true if they should")

    # Records.

    def _files(self) -> None:
        for name, told in self._tables_of("files"):
            place = f"files.{name}"
            self._check_name(place, name)
            check_keys(place, told, ("columns",), self.faults, optional=("key", "parent", "record", "hashed"))
            parent = read_table(f"{place}.parent", told.get("parent", {}), self.faults)
            if parent:
                check_keys(f"{place}.parent", parent, ("file", "column"), self.faults)
            names = (told.get("key", ""), parent.get("file", ""), parent.get("column", ""), told.get("record", name))
            if not all(isinstance(text, str) for text in names):
                self.faults.append(f"{place}: key, record, parent.file and parent.column must be texts")
                continue
            key, above, link, record = names
            self._check_keys(place, key, link)
            columns = self._columns(name, told.get("columns"), {key, link})
            hashed = self._hashed(place, told, [*(field for field in dict.fromkeys((key, link)) if field), *columns])
            self.files[name] = DescribedFile(name, record, key, above, link, columns, hashed=hashed)
        if not self.files:
            self.faults.append("files: describes none")
        self._check_links()
        self._set_unit()
        if self.faults:
            return
        unit = self.unit
        above = [self.files[unit].parent]
        while above[-1]:
            above.append(self.files[above[-1]].parent)
        for file in self.files.values():
            for column in file.columns.values():
                if column.fixed and file.name not in above:
                    self.faults.append(
                        f"files.{file.name}.columns.{column.name}: fixed is for files above the unit, {unit}; what it "
                        "says of others would not be protected"
                    )
                self.columns[f"{file.name}.{column.name}"] = column

    def _hashed(self, place: str, told: dict[str, Any], fields: list[str]) -> tuple[str, ...]:
        hashed = told.get("hashed", fields)
        if not isinstance(hashed, list) or sorted(map(str, hashed)) != sorted(fields):
            self.faults.append(f"{place}.hashed: must name each of {', '.join(fields)} once, in some order")
            return tuple(fields)
        return tuple(hashed)

    def _check_keys(self, place: str, key: str, link: str) -> None:
        if any(text and (not is_text(text) or '"' in text) for text in (key, link)):
            self.faults.append(f"{place}: key and parent.column are names of columns, without quotes")
        if key != link and key.lower() == link.lower():
            self.faults.append(f"{place}: key and parent.column differ by upper and lower case alone")

    def _check_links(self) -> None:
        files = self.files
        lower = [name.lower() for name in files]
        self._fault_each("files", "is the name of two files", (n for n in dict.fromkeys(lower) if lower.count(n) > 1))
        for file in files.values():
            place = f"files.{file.name}.parent"
            if file.parent and file.parent not in files:
                self.faults.append(f"{place}: {file.parent!r} is none of the files{nearest(file.parent, files)}")
            elif file.parent and not files[file.parent].key:
                self.faults.append(f"{place}: {file.parent} has no key that its records could be found by")
        met: list[str] = []
        for start in files:
            path = [start]
            while (above := files[path[-1]].parent) in files and above not in path:
                path.append(above)
            if above in path and not set(path) & set(met):
                self.faults.append(f"files.{start}.parent: links go in a circle: {' > '.join([*path, above])}")
                met += path
        order = sorted(files, key=self._depth)
        self.files = {name: files[name] for name in order}

    def _set_unit(self) -> None:
        """What is protected: records of a file, or all records with one value of a column of ids."""
        told, files = self.document["unit"], self.files
        if not isinstance(told, dict):
            self.unit = str(told)
            if self.unit not in files:
                self.faults.append(f"unit: {told!r} is none of the files{nearest(str(told), files)}")
            return
        check_keys("unit", told, ("file", "column"), self.faults, optional=("record",))
        file, column = told.get("file"), told.get("column")
        if not isinstance(file, str) or file not in files:
            self.faults.append(f"unit.file: {file!r} is none of the files{nearest(str(file), files)}")
        if not (isinstance(column, str) and self._is_text("unit.record", told.get("record", column))):
            self.faults.append("unit.column: must be the name of a column of ids")
        if self.faults:
            return
        self._check_name("unit.column", str(column))
        of = files[str(file)]
        self._check_keys("unit", of.key, str(column))
        if of.parent:
            text = "so that the records of one id could be of several; name a file at the top"
            self.faults.append(f"unit.file: {file} belongs to {of.parent}, {text}")
        if str(column).lower() in {name.lower() for name in (*of.columns, *files)}:
            self.faults.append(
                f"unit.column: {column} is a file, or a column that tables read; ids tell no cells apart"
            )
        self.unit = str(column)
        ids = DescribedFile(self.unit, str(told.get("record", column)), self.unit, "", "", {}, ids_in=of.name)
        self.files = {
            self.unit: ids,
            **files,
            of.name: replace(of, parent=self.unit, link=self.unit, hashed=(self.unit, *of.hashed)),
        }

    def _depth(self, name: str) -> int:
        depth = 0
        while (above := self.files[name].parent) in self.files and depth <= len(self.files):
            name, depth = above, depth + 1
        return depth

    def _columns(self, file: str, told: object, keys: set[str]) -> dict[str, DescribedColumn]:
        found: dict[str, DescribedColumn] = {}
        for name, given in read_table(f"files.{file}.columns", told, self.faults).items():
            place = f"files.{file}.columns.{name}"
            self._check_name(place, name)
            if name.lower() in {key.lower() for key in (*keys, *found)}:
                self.faults.append(f"{place}: stands twice, or is a key or a link, which have no values to count by")
            of = read_table(place, given, self.faults)
            check_keys(place, of, (), self.faults, optional=("codes", "whole", "fixed", "missing", "occurring"))
            if ("codes" in of) == ("whole" in of):
                self.faults.append(f"{place}: must have either codes or whole (a range of whole numbers)")
                continue
            for key in ("fixed", "occurring"):
                if not isinstance(of.get(key, False), bool):
                    self.faults.append(f"{place}.{key}: must be true or false")
            column, labels = self._domain(place, name, of)
            fixed, occurring = of.get("fixed") is True, of.get("occurring") is True
            found[name] = DescribedColumn(file, name, column, labels, fixed, occurring)
        return found

    def _domain(self, place: str, name: str, of: dict[str, Any]) -> tuple[Column, Mapping[int, str]]:
        if "codes" in of:
            listed = read_codes(f"{place}.codes", of["codes"], self.folder, self.faults)
            of["codes"] = listed.document
            codes, labels, missing = listed.codes, listed.labels, of.get("missing", "")
            if "missing" in of:
                if not is_text(missing) or set('|"') & set(missing) or missing in codes:
                    self.faults.append(f"{place}.missing: must be a code that is not listed, without | and quotes")
                codes, labels = (missing, *codes), (missing, *labels)
            return Column(name, range(len(codes)), words=codes, blank=missing), dict(enumerate(labels))
        if "missing" in of:
            self.faults.append(f"{place}.missing: is of columns of codes")
        low_high = _whole_range(of["whole"])
        if low_high is None or low_high[1] - low_high[0] >= MOST_VALUES:
            text = "must be a range of at most a million whole numbers, such as [0, 115]"
            self.faults.append(f"{place}.whole: {text}")
            return Column(name, range(1)), {}
        return Column(name, range(low_high[0], low_high[1] + 1)), {}

    # What tells records apart.

    def _recodes(self) -> None:
        for name, told in self._tables_of("recodes"):
            place = f"recodes.{name}"
            self._check_name(place, name)
            check_keys(place, told, ("column", "classes"), self.faults)
            column = self._column(f"{place}.column", told.get("column"))
            if column is None:
                continue
            classes = {
                label: self._values(f"{place}.classes.{label}", column, value)
                for label, value in read_table(f"{place}.classes", told.get("classes"), self.faults).items()
            }
            self.recodes[name] = _Variable(in_join(column.file, column.name), classes)

    def _variable(self, place: str, name: object) -> _Variable | None:
        if isinstance(name, str) and name in self.recodes:
            return self.recodes[name]
        if isinstance(name, str) and name not in self.columns:
            known = (*self.columns, *self.recodes)
            self.faults.append(f"{place}: {name!r} is neither a column nor a recode{nearest(name, known)}")
            return None
        column = self._column(place, name)
        if column is None:
            return None
        values = {column.column.written(value): frozenset({value}) for value in column.column.domain}
        return _Variable(in_join(column.file, column.name), values)

    def _column(self, place: str, name: object) -> DescribedColumn | None:
        if isinstance(name, str) and name in self.columns:
            return self.columns[name]
        known = nearest(str(name), self.columns) or f"; there are {', '.join(self.columns)}"
        self.faults.append(f"{place}: {name!r} is no column, such as persons.AGE{known}")
        return None

    def _where(self, place: str, told: object, allowed: Sequence[str] = ()) -> Where:
        """A condition: for each column one value, or several."""
        found = Where()
        for name, value in read_table(place, told, self.faults).items():
            variable = self.recodes.get(name)
            if variable is not None:
                wanted = value if isinstance(value, list) else [value]
                strange = [label for label in wanted if label not in variable.classes]
                self._fault_each(f"{place}.{name}", "is no class of the recode", map(repr, strange))
                values = [variable.classes[label] for label in wanted if label in variable.classes]
                found &= Where(((variable.column, frozenset().union(*values)),))
                self._check_reach(place, variable.column, allowed)
                continue
            column = self._column(place, name)
            if column is not None:
                joined = in_join(column.file, column.name)
                found &= Where(((joined, self._values(f"{place}.{name}", column, value)),))
                self._check_reach(place, joined, allowed)
        return found

    def _check_reach(self, place: str, column: str, allowed: Sequence[str]) -> None:
        file = column.strip('"').partition(".")[0]
        if allowed and file not in allowed:
            self.faults.append(
                f"{place}: reads a column of {file}, which is not above {allowed[0]}; it may read {', '.join(allowed)}"
            )

    def _values(self, place: str, column: DescribedColumn, told: object) -> frozenset[int]:
        """Values of a column: codes, or whole numbers and ranges of them."""
        found: set[int] = set()
        codes = {word: number for number, word in enumerate(column.column.words)}
        for value in told if isinstance(told, list) else [told]:
            if codes:
                if not isinstance(value, str) or value not in codes:
                    known = nearest(str(value), codes)
                    self.faults.append(f"{place}: {value!r} is no code of {column.file}.{column.name}{known}")
                else:
                    found.add(codes[value])
                continue
            ends = _whole_range(value)
            domain = column.column.domain
            if ends is None or ends[0] not in domain or ends[1] not in domain:
                self.faults.append(
                    f"{place}: {value!r} is no whole number or range, such as '0-17', within {column.column.rule}"
                )
            else:
                found.update(range(ends[0], ends[1] + 1))
        if not found and not self.faults:
            self.faults.append(f"{place}: names no value")
        return frozenset(found)

    # Where records lie, and which groups they are of.

    def _areas(self) -> dict[str, AreaKind]:
        for name, told in self._tables_of("areas"):
            self.areas[name] = self._area(name, told)
        return self.areas

    def _area(self, name: str, told: dict[str, Any]) -> AreaKind:
        place = f"areas.{name}"
        self._check_name(place, name)
        check_keys(place, told, (), self.faults, optional=("column", "from", "first", "of", "code", "labels"))
        labels = {
            code: label
            for code, label in read_table(f"{place}.labels", told.get("labels", {}), self.faults).items()
            if self._is_text(f"{place}.labels.{code}", label)
        }
        if "from" in told:
            return self._area_above(name, told, labels)
        if "column" not in told:
            code = told.get("code", "1")
            if not is_text(code) or "of" in told or "first" in told:
                self.faults.append(f"{place}: without a column it is one area, and has a code and labels alone")
                code = "1"
            return AreaKind(name, "", (code,), ((0,),), labels)
        column = self._column(f"{place}.column", told["column"])
        if column is None or not column.column.words:
            self.faults.append(f"{place}.column: must be a column of codes")
            return AreaKind(name, "", ("1",), ((0,),), labels)
        words = column.column.words
        pairs = self._area_pairs(place, told, words)
        if "first" not in told and "of" not in told:
            labels = {words[value]: label for value, label in column.labels.items()} | labels
        return _area_kind(name, in_join(column.file, column.name), pairs, labels)

    def _area_above(self, name: str, told: dict[str, Any], labels: Mapping[str, str]) -> AreaKind:
        """Areas of areas: what the areas of another kind, which stands before it, lie in."""
        place, below = f"areas.{name}", self.areas.get(str(told["from"]))
        if below is None or not below.column:
            known = [kind for kind, of in self.areas.items() if of.column]
            self.faults.append(f"{place}.from: must be a kind of areas that stands before it: {', '.join(known)}")
        if "column" in told or ("of" in told) == ("first" in told):
            self.faults.append(f"{place}: with from it has either of or first, and no column")
        if below is None or self.faults:
            return AreaKind(name, "", ("1",), ((0,),), labels)
        above = self._area_pairs(place, told, below.codes)
        pairs = [sorted({area for code in codes for area in above[code]}) for codes in below.of]
        return _area_kind(name, below.column, pairs, labels)

    def _area_pairs(self, place: str, told: dict[str, Any], words: Sequence[str]) -> list[list[str]]:
        """Of each code of a column the areas it lies in."""
        if "first" in told:
            digits = told["first"]
            if not (isinstance(digits, Number) and digits.isdecimal() and 0 < int(digits) <= min(map(len, words))):
                self.faults.append(f"{place}.first: must be a number of characters that every code has")
                return [[word] for word in words]
            return [[word[: int(digits)]] for word in words]
        if "of" not in told:
            return [[word] for word in words]
        pairs = read_pairs(f"{place}.of", told["of"], self.folder, self.faults)
        strange = [code for code in pairs if code not in words]
        if isinstance(told["of"], dict) and "file" in told["of"]:
            # A public file of a whole hierarchy tells of other levels, too.
            strange, pairs = [], {code: areas for code, areas in pairs.items() if code in words}
        told["of"] = pairs
        self._fault_each(f"{place}.of", "is none of the codes below", map(repr, strange))
        lost = [word for word in words if word not in pairs]
        if lost:
            self.faults.append(
                f"{place}.of: {len(lost)} codes below lie in no area, such as {lost[0]!r}; write them with an "
                "empty list if that is meant"
            )
        return [pairs.get(word, []) for word in words]

    def _groups(self) -> dict[str, Where]:
        found = {}
        for code, told in self._tables_of("groups"):
            place = f"groups.{code}"
            if (code,) == EVERYONE or not is_text(code) or "|" in code:
                self.faults.append(f"{place}: is no code for a group; * is everyone")
            check_keys(place, told, ("where",), self.faults, optional=("label",))
            if "label" in told:
                self._is_text(f"{place}.label", told["label"])
            found[code] = self._where(f"{place}.where", told.get("where"))
        return found

    def _levels(self, areas: Mapping[str, AreaKind], groups: Mapping[str, Where]) -> dict[str, DescribedLevel]:
        levels = {name: DescribedLevel(name, name, EVERYONE) for name in areas}
        for name, told in self._tables_of("levels"):
            place = f"levels.{name}"
            if not _LEVEL.fullmatch(name):
                self.faults.append(f"{place}: a name is one word without quotes, brackets, |, =, / and :")
            check_keys(place, told, ("areas",), self.faults, optional=("groups",))
            kind = told.get("areas")
            if kind not in areas:
                self.faults.append(f"{place}.areas: {kind!r} is no kind of areas{nearest(str(kind), areas)}")
            of = told.get("groups", list(EVERYONE))
            if not isinstance(of, list) or not of or not all(isinstance(code, str) for code in of):
                self.faults.append(f"{place}.groups: must be a list of codes of groups")
                continue
            strange = [code for code in of if code not in groups and (code,) != EVERYONE]
            self._fault_each(f"{place}.groups", "is no group", map(repr, strange))
            if len(set(of)) < len(of):
                self.faults.append(f"{place}.groups: names one twice")
            levels[name] = DescribedLevel(name, str(kind), tuple(of))
        return levels

    # Tables.

    def _table(self, name: str, told: dict[str, Any], levels: Mapping[str, DescribedLevel]) -> DescribedTable | None:
        place = f"tables.{name}"
        before = len(self.faults)
        self._check_name(place, name)
        optional = (
            "title",
            "where",
            "limit",
            "by",
            "cells",
            "overlapping",
            "margins",
            "sums",
            "stated",
            "groups",
            "headings",
        )
        check_keys(place, told, ("counts", "budget"), self.faults, optional=optional)
        counts = told.get("counts")
        if counts not in self.files or self.files[counts].ids_in:
            known = nearest(str(counts), [file for file, of in self.files.items() if not of.ids_in])
            self.faults.append(f"{place}.counts: {counts!r} is none of the files{known}")
            return None
        chain = [str(counts)]
        while above := self.files[chain[-1]].parent:
            chain.append(above)
        title = told.get("title", name)
        self._is_text(f"{place}.title", title)
        universe = self._where(f"{place}.where", told.get("where", {}), chain)
        groups = {
            code: self._where(f"{place}.groups.{code}", of, chain)
            for code, of in read_table(f"{place}.groups", told.get("groups", {}), self.faults).items()
        }
        strange = [code for code in groups if code not in self.document.get("groups", {})]
        self._fault_each(f"{place}.groups", "is no group", map(repr, strange))
        columns, labels, cells, sums = self._cells(place, told, chain)
        budgets = self._budgets(place, told.get("budget"), levels)
        for level in budgets:
            self._check_level(place, levels[level], chain, groups)
        limit, stated = self._limit(place, told, chain), self._stated(place, told)
        if len(self.faults) > before:
            return None
        of = tuple(level for name, level in levels.items() if name in budgets)
        shown = [(level.areas, code) for level in of for code in level.groups]
        self._fault_each(
            f"{place}.budget",
            "is published by two levels",
            (f"group {code} of {areas}" for areas, code in dict.fromkeys(shown) if shown.count((areas, code)) > 1),
        )
        return DescribedTable(
            name, title, str(counts), universe, limit, columns, labels, cells, sums, of, budgets, stated, groups
        )  # fmt: skip

    def _cells(self, place: str, told: dict[str, Any], chain: Sequence[str]) -> Any:  # noqa: ANN401 (four parts)
        if "by" in told and "cells" in told:
            self.faults.append(f"{place}: has by and cells; keep one")
        if "by" in told:
            return self._by(place, told, chain)
        if "margins" in told:
            self.faults.append(f"{place}.margins: are of tables with by; name rows under sums")
        headings = self._headings(place, told)
        named = read_table(f"{place}.cells", told.get("cells", {"total": {}}), self.faults)
        labels = tuple((label,) for label in named)
        self._check_labels(place, named)
        cells = tuple(self._where(f"{place}.cells.{label}", of, chain) for label, of in named.items())
        sums = self._sums(place, told, {label: i for i, label in enumerate(named)}, headings)
        return (headings.get(place.partition(".")[2], "CELL"),), labels, cells, tuple(sums)

    def _headings(self, place: str, told: dict[str, Any]) -> dict[str, str]:
        """What the columns of cells are called, by table."""
        found = {}
        for table, heading in read_table(f"{place}.headings", told.get("headings", {}), self.faults).items():
            if table not in {place.partition(".")[2], *told.get("sums", {})}:
                self.faults.append(f"{place}.headings: {table!r} is neither the table nor one of its sums")
            if not (isinstance(heading, str) and NAME.fullmatch(heading) and heading not in RESERVED[:-1]):
                self.faults.append(f"{place}.headings.{table}: must be the name of a column of cells")
            found[table] = str(heading)
        return found

    def _sums(
        self, place: str, told: dict[str, Any], number: Mapping[str, int], headings: Mapping[str, str]
    ) -> Iterator[Sums]:
        for name, rows in read_table(f"{place}.sums", told.get("sums", {}), self.faults).items():
            made = []
            self._check_name(f"{place}.sums.{name}", name)
            for label, parts in read_table(f"{place}.sums.{name}", rows, self.faults).items():
                if not isinstance(parts, list) or not parts or any(part not in number for part in parts):
                    self.faults.append(f"{place}.sums.{name}.{label}: must be a list of labels of cells of the table")
                elif len(set(parts)) < len(parts):
                    self.faults.append(f"{place}.sums.{name}.{label}: adds a cell twice")
                else:
                    made.append(((label,), tuple(number[part] for part in parts)))
            self._check_labels(f"{place}.sums.{name}", [label for (label,), _ in made])
            yield Sums(name, (headings.get(name, "CELL"),), tuple(made))

    def _by(self, place: str, told: dict[str, Any], chain: Sequence[str]) -> Any:  # noqa: ANN401 (four parts)
        nothing: Any = ((), (), (), ())
        by = told["by"]
        if not isinstance(by, list) or not by:
            self.faults.append(f"{place}.by: must be a list of columns and recodes")
            return nothing
        variables = [self._variable(f"{place}.by", name) for name in by]
        if any(variable is None for variable in variables):
            return nothing
        chosen = [variable for variable in variables if variable is not None]
        names = tuple(str(name).rpartition(".")[2] for name in by)
        if len({name.upper() for name in names} | set(RESERVED)) < len(names) + len(RESERVED):
            self.faults.append(f"{place}.by: every column needs a name of its own, none of {', '.join(RESERVED)}")
        for name, variable in zip(by, chosen, strict=True):
            self._check_reach(f"{place}.by", variable.column, chain)
            self._check_labels(f"{place}.by: {name}", variable.classes)
            sizes = sum(map(len, variable.classes.values()))
            if sizes > len(frozenset().union(*variable.classes.values())) and told.get("overlapping") is not True:
                self.faults.append(f"{place}.by: classes of {name} overlap; say overlapping = true if they should")
        number = 1
        for variable in chosen:
            number *= len(variable.classes)
        if number > MOST_CELLS:
            self.faults.append(f"{place}.by: makes {number:,} cells, and at most {MOST_CELLS:,} are allowed")
            return nothing
        pairs = list(product(*(variable.classes.items() for variable in chosen)))
        labels = tuple(tuple(label for label, _ in of) for of in pairs)
        cells = tuple(
            _all(Where(((v.column, values),)) for v, (_, values) in zip(chosen, of, strict=True)) for of in pairs
        )
        return names, labels, cells, tuple(self._margins(place, told, names, labels))

    def _margins(
        self, place: str, told: dict[str, Any], names: Sequence[str], labels: Sequence[tuple[str, ...]]
    ) -> Iterator[Sums]:
        if "sums" in told:
            self.faults.append(f"{place}.sums: are of tables with cells; name columns under margins")
        for name, kept in read_table(f"{place}.margins", told.get("margins", {}), self.faults).items():
            self._check_name(f"{place}.margins.{name}", name)
            kept_names = [str(column).rpartition(".")[2] for column in kept] if isinstance(kept, list) else None
            if kept_names is None or any(column not in names for column in kept_names):
                self.faults.append(f"{place}.margins.{name}: must be a list of some of {', '.join(names)}")
                continue
            places = [i for i, column in enumerate(names) if column in kept_names]
            rows: dict[tuple[str, ...], list[int]] = {}
            for cell, of in enumerate(labels):
                rows.setdefault(tuple(of[i] for i in places) or ("total",), []).append(cell)
            columns = tuple(names[i] for i in places) or ("CELL",)
            yield Sums(name, columns, tuple((of, tuple(parts)) for of, parts in rows.items()))

    def _budgets(self, place: str, told: object, levels: Mapping[str, DescribedLevel]) -> dict[str, Budget]:
        found = {}
        for level, value in read_table(f"{place}.budget", told, self.faults).items():
            if level not in levels:
                self.faults.append(f"{place}.budget: {level!r} is no level{nearest(level, levels)}")
            else:
                found[level] = read_budget(f"{place}.budget.{level}", value, self.faults)
        return found

    def _check_level(self, place: str, level: DescribedLevel, chain: Sequence[str], own: Collection[str]) -> None:
        """That a table can read what tells areas and groups apart; ``own`` are groups with conditions of its own."""
        if column := self.areas[level.areas].column:
            self._check_reach(f"{place}.budget.{level.name}", column, chain)
        for code in level.groups:
            of = {} if (code,) == EVERYONE or code in own else self.document["groups"][code]["where"]
            for name in of:
                column = self.recodes[name].column if name in self.recodes else in_join(*name.split(".", 1))
                self._check_reach(f"{place}.budget.{level.name} (group {code})", column, chain)

    def _limit(self, place: str, told: dict[str, Any], chain: Sequence[str]) -> RecordLimit | None:
        if "limit" not in told:
            return None
        limit = read_table(f"{place}.limit", told["limit"], self.faults)
        check_keys(f"{place}.limit", limit, ("per", "most"), self.faults)
        per, most = limit.get("per"), limit.get("most")
        if per not in chain[1:]:
            above = f"one of {', '.join(chain[1:])}" if chain[1:] else f"a file above {chain[0]}, which has none"
            self.faults.append(f"{place}.limit.per: must be {above}")
        if not (isinstance(most, Number) and most.isdecimal() and 0 < int(most) < 1_000_000):
            self.faults.append(f"{place}.limit.most: must be a whole number above 0")
            return None
        return RecordLimit(str(per), int(most))

    def _stated(self, place: str, told: dict[str, Any]) -> Sensitivity | None:
        if "stated" not in told:
            return None
        stated = read_table(f"{place}.stated", told["stated"], self.faults)
        check_keys(f"{place}.stated", stated, ("unbounded", "bounded"), self.faults)
        both = [self._fraction(f"{place}.stated.{key}", stated.get(key)) for key in ("unbounded", "bounded")]
        if both[0] is None or both[1] is None:
            return None
        return Sensitivity(unbounded=both[0], bounded=both[1])

    # What every part does.

    def _tables_of(self, key: str) -> list[tuple[str, dict[str, Any]]]:
        told = read_table(key, self.document.get(key, {}), self.faults)
        return [(name, read_table(f"{key}.{name}", of, self.faults)) for name, of in told.items()]

    def _check_name(self, place: str, name: str) -> None:
        if not NAME.fullmatch(name):
            self.faults.append(f"{place}: a name is letters, digits, - and _, beginning with a letter")

    def _check_labels(self, place: str, labels: Sequence[str] | Mapping[str, object]) -> None:
        strange = [label for label in labels if not is_text(label) or "|" in label or '"' in label]
        self._fault_each(place, "is no label; one is a line of text without | and quotes:", map(repr, strange[:5]))

    def _is_text(self, place: str, value: object) -> bool:
        if not is_text(value):
            self.faults.append(f"{place}: must be a text of one line")
        return is_text(value)

    def _fraction(self, place: str, value: object) -> Fraction | None:
        try:
            found = read_exact(value) if isinstance(value, str) else None
        except ValueError:
            found = None
        if not isinstance(found, Fraction) or found <= 0:
            self.faults.append(f"{place}: must be a number above 0, or a fraction as a text 'p/q'")
            return None
        return found

    def _fault_each(self, place: str, what: str, which: Iterable[str]) -> None:
        self.faults += [
            f"{place}: {what} {one}" if what.startswith("no ") else f"{place}: {one} {what}" for one in which
        ]


def _area_kind(name: str, column: str, pairs: Iterable[Sequence[str]], labels: Mapping[str, str]) -> AreaKind:
    """Areas by what each value of a column lies in."""
    inside = list(pairs)
    codes = tuple(sorted({area for areas in inside for area in areas}))
    number = {code: i for i, code in enumerate(codes)}
    of = tuple(tuple(sorted({number[area] for area in areas})) for areas in inside)
    return AreaKind(name, column, codes, of, labels)


def _label(told: Mapping[str, Any], code: str) -> str:
    return str(told.get("label", code))


def _all(conditions: Iterator[Where]) -> Where:
    found = Where()
    for condition in conditions:
        found &= condition
    return found


def _whole_range(value: object) -> tuple[int, int] | None:
    """A whole number or range: 5, "0-17", or [0, 17]."""
    if (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(end, Number) and end.isdecimal() for end in value)
    ):
        low, high = map(int, value)
    elif isinstance(value, str) and (match := _RANGE.fullmatch(value)):
        low, high = int(match[1]), int(match[2] or match[1])
    else:
        return None
    return (low, high) if low <= high else None
