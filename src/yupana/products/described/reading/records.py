"""Read the record files, the privacy unit, and what tells records apart: columns, recodes and conditions. Public."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from yupana.errors import nearest
from yupana.files.codes import Codes, codes_of
from yupana.files.columns import Column
from yupana.geography.block_file import BlockFile
from yupana.plan.predicates import Where
from yupana.products.described.description import DescribedColumn, DescribedFile, MultipleResponse, chain_of, in_join
from yupana.products.described.reading.declaration import (
    MOST_COLUMNS,
    Condition,
    DeclaredColumn,
    DeclaredResponse,
    DescriptionDocument,
    is_word,
    whole_range,
)
from yupana.products.described.uncounted import shown


@dataclass
class RecordReader:
    """Reads the files, then what is protected.

    Attributes
    ----------
    doc : DescriptionDocument
    blocks : BlockFile or None
        Which names the columns that records of counted files have of their blocks.
    files : dict of name to DescribedFile
        Parents before children.
    columns : dict of str to DescribedColumn
        By ``file.column``.
    unit : str
        What is protected.
    """

    doc: DescriptionDocument
    blocks: BlockFile | None = None
    files: dict[str, DescribedFile] = field(default_factory=dict)
    columns: dict[str, DescribedColumn] = field(default_factory=dict)
    unit: str = ""

    def read(self) -> None:
        """Read them all."""
        counted = {table.counts for table in self.doc.read.tables.values()} if self.blocks else set()
        block = tuple(
            Column(column.name, range(10**column.digits), width=column.digits)
            for column in (self.blocks.key if self.blocks else ())
        )
        for name, told in self.doc.read.files.items():
            place, key = f"files.{name}", told.key_ or ""
            parent, link = (told.parent["file"], told.parent["column"]) if told.parent else ("", "")
            self._check_keys(place, key, link)
            blocks = block if name in counted else ()
            taken = {key, link, *(column.name for column in blocks)}
            columns = self._columns(name, told.columns, taken)
            responses = read_responses(self.doc, name, told.responses, {*taken, *columns})
            fields = tuple(field for field in dict.fromkeys((key, link, *columns)) if field)
            if told.hashed is not None and sorted(told.hashed) != sorted(fields):
                self.doc.faults.append(f"{place}.hashed: must name each of {', '.join(fields)} once, in some order")
            self.files[name] = DescribedFile(
                name, told.record or name, key, parent, link, columns,
                hashed=told.hashed or fields, responses=responses, blocks=blocks,
            )  # fmt: skip
        if not self.files:
            self.doc.faults.append("files: describes none")
        self._check_links()
        self._set_unit()
        if self.doc.faults:
            return
        unit, above = self.unit, chain_of(self.files, self.unit)[1:]
        for file in self.files.values():
            for column in file.columns.values():
                if column.fixed and file.name not in above:
                    self.doc.faults.append(
                        f"files.{file.name}.columns.{column.name}: fixed is for files above the unit, {unit}; what it "
                        "says of others would not be protected"
                    )
                self.columns[f"{file.name}.{column.name}"] = column

    def _check_keys(self, place: str, key: str, link: str) -> None:
        if '"' in key + link:
            self.doc.faults.append(f"{place}: key and parent.column are names of columns, without quotes")
        if key != link and key.lower() == link.lower():
            self.doc.faults.append(f"{place}: key and parent.column differ by upper and lower case alone")

    def _check_links(self) -> None:
        files = self.files
        lower = [name.lower() for name in files]
        self.doc.fault_each(
            "files", "is the name of two files", (n for n in dict.fromkeys(lower) if lower.count(n) > 1)
        )
        for file in files.values():
            place = f"files.{file.name}.parent"
            if file.parent and file.parent not in files:
                self.doc.faults.append(f"{place}: {file.parent!r} is none of the files{nearest(file.parent, files)}")
            elif file.parent and not files[file.parent].key:
                self.doc.faults.append(f"{place}: {file.parent} has no key that its records could be found by")
        met: list[str] = []
        for start in files:
            path = [start]
            while (above := files[path[-1]].parent) in files and above not in path:
                path.append(above)
            if above in path and not set(path) & set(met):
                self.doc.faults.append(f"files.{start}.parent: links go in a circle: {' > '.join([*path, above])}")
                met += path
        order = sorted(files, key=self._depth)
        self.files = {name: files[name] for name in order}

    def _set_unit(self) -> None:
        """What is protected: records of a file, or all records with one value of a column of ids."""
        told, files = self.doc.read.unit, self.files
        if isinstance(told, str):
            self.unit = told
            if told not in files:
                text = nearest(told, files) or "; a column of ids is { file = ..., column = ... }"
                self.doc.faults.append(f"unit: {told!r} is none of the files{text}")
            return
        file, column = told["file"], told["column"]
        if file not in files:
            self.doc.faults.append(f"unit.file: {file!r} is none of the files{nearest(file, files)}")
        if self.doc.faults:
            return
        of = files[file]
        self._check_keys("unit", of.key, column)
        if of.parent:
            text = "so that the records of one id could be of several; name a file at the top"
            self.doc.faults.append(f"unit.file: {file} belongs to {of.parent}, {text}")
        if column.lower() in {name.lower() for name in (*of.columns, *files)}:
            self.doc.faults.append(
                f"unit.column: {column} is a file, or a column that tables read; ids tell no cells apart"
            )
        self.unit = column
        ids = DescribedFile(column, told.get("record", column), column, "", "", {}, ids_in=of.name)
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

    def _columns(self, file: str, told: Mapping[str, DeclaredColumn], keys: set[str]) -> dict[str, DescribedColumn]:
        found: dict[str, DescribedColumn] = {}
        for name, of in told.items():
            if name.lower() in {key.lower() for key in (*keys, *found)}:
                self.doc.faults.append(
                    f"files.{file}.columns.{name}: stands twice, or is a key, a link or part of a block, which have no "
                    "values to count by"
                )
            column, labels = self._domain(("files", file, "columns", name), of)
            found[name] = DescribedColumn(file, name, column, labels, of.fixed, of.occurring)
        return found

    def _domain(self, keys: tuple[str, ...], of: DeclaredColumn) -> tuple[Column, Mapping[int, str]]:
        if of.codes is not None:
            return read_coded(self.doc, keys, of.codes, of.missing)
        low, high = of.whole or (0, 0)
        if of.missing is None:
            return Column(keys[-1], range(low, high + 1)), {}
        return Column(keys[-1], range(low, high + 2), blank=of.missing, blank_is_last=True), {}


MOST_CODES: Final = 16_383
"""Most codes of a response: with the one for none they fit 14 bits."""


def read_coded(
    doc: DescriptionDocument, keys: tuple[str, ...], told: Codes, missing: str | None
) -> tuple[Column, Mapping[int, str]]:
    """A column of codes with what they are called; that for ``missing`` values, if there is one, is the first."""
    place = ".".join(keys)
    listed = codes_of(f"{place}.codes", told, doc.folder, doc.faults)
    doc.at(*keys)["codes"] = listed.document
    codes, labels = listed.codes, listed.labels
    if missing is not None:
        if not is_word(missing) or missing in codes:
            doc.faults.append(f"{place}.missing: must be a code that is not listed, without | and quotes")
        codes, labels = (missing, *codes), (missing, *labels)
    return Column(keys[-1], range(len(codes)), words=codes, blank=missing or ""), dict(enumerate(labels))


def read_responses(
    doc: DescriptionDocument, file: str, told: Mapping[str, DeclaredResponse], taken: Collection[str]
) -> dict[str, MultipleResponse]:
    """Those of a file; ``taken`` are the names of its columns, keys and links, which are no answers."""
    found: dict[str, MultipleResponse] = {}
    known = {name.lower() for name in taken}
    used = set(known)
    for name, of in told.items():
        place = f"files.{file}.responses.{name}"
        if name.lower() in known:
            doc.faults.append(f"{place}: is the name of a column, a key, a link or another response")
        known.add(name.lower())
        _check_columns(doc, f"{place}.columns", of.columns, used)
        used.update(column.lower() for column in of.columns)
        column, labels = read_coded(doc, ("files", file, "responses", name), of.codes, of.missing)
        if len(column.words) - bool(column.blank) > MOST_CODES:
            doc.faults.append(f"{place}.codes: at most {MOST_CODES:,} are allowed")
        columns = min(len(of.columns), MOST_COLUMNS)
        most = columns if of.most is None else of.most
        if most > columns:
            text = f"must be a whole number from 1 to the number of columns, {columns}"
            doc.faults.append(f"{place}.most: {text}")
        found[name] = MultipleResponse(file, name, of.columns, column, labels, most)
    return found


def _check_columns(doc: DescriptionDocument, place: str, told: Sequence[str], used: Collection[str]) -> None:
    if len(told) > MOST_COLUMNS:
        doc.faults.append(f"{place}: must be a list of 1 to {MOST_COLUMNS} columns")
        return
    lower = [name.lower() for name in told]
    doc.fault_each(place, "stands twice", (name for i, name in enumerate(told) if lower[i] in lower[:i]))
    doc.fault_each(place, "is a name without quotes, which is not", (repr(name) for name in told if '"' in name))
    doc.fault_each(
        place,
        "is a column, a key or a link of the file already, or one of another response",
        (name for name in told if name.lower() in used),
    )


@dataclass(frozen=True, slots=True)
class Classified:
    """What tells cells apart: a column of a join, and its classes by label."""

    column: str
    classes: dict[str, frozenset[int]]


@dataclass(frozen=True)
class ConditionReader:
    """Reads conditions on the columns of a description.

    Attributes
    ----------
    doc : DescriptionDocument
    columns : mapping of str to DescribedColumn
        By ``file.column``.
    files : mapping of str to DescribedFile
        What they hold beside these columns.
    recodes : dict of name to Classified
    """

    doc: DescriptionDocument
    columns: Mapping[str, DescribedColumn]
    files: Mapping[str, DescribedFile]
    recodes: dict[str, Classified] = field(default_factory=dict)

    def read_recodes(self) -> None:
        """Read the recodes, which conditions may name."""
        for name, told in self.doc.read.recodes.items():
            place = f"recodes.{name}"
            column = self.column(f"{place}.column", told.column)
            if column is None:
                continue
            classes = {
                label: self.values(f"{place}.classes.{label}", column, value) for label, value in told.classes.items()
            }
            if not classes:
                self.doc.faults.append(f"{place}.classes: has none; name some")
            self._check_complete(place, column, classes, incomplete=told.incomplete)
            self.recodes[name] = Classified(in_join(column.file, column.name), classes)

    def _check_complete(
        self, place: str, column: DescribedColumn, classes: Mapping[str, frozenset[int]], *, incomplete: bool
    ) -> None:
        """Refuse a recode with a hole that does not say so: who is in it would be counted nowhere, without a word."""
        # A missing value is in a class where one names it; that it is in none is told by the plan.
        missing = {column.column.none} if column.column.blank else set[int]()
        lost = set(column.column.domain).difference(missing, *classes.values())
        if lost and classes and all(classes.values()) and not incomplete:
            self.doc.faults.append(
                f"{place}.classes: no class holds {shown(lost, column.column)} of {column.file}.{column.name}, so that "
                "such records would be counted nowhere; give them a class, or say incomplete = true"
            )
        if incomplete and not lost:
            self.doc.faults.append(f"{place}.incomplete: every value of {column.file}.{column.name} is in a class")

    def variable(self, place: str, name: str) -> Classified | None:
        """A recode, or a column with a class for each of its values; None, with a fault, if it is neither."""
        if name in self.recodes:
            return self.recodes[name]
        if name not in self.columns:
            known = (*self.columns, *self.recodes)
            advice = self._other(name) or nearest(name, known)
            self.doc.faults.append(f"{place}: {name!r} is neither a column nor a recode{advice}")
            return None
        column = self.column(place, name)
        if column is None:
            return None
        values = {column.column.written(value): frozenset({value}) for value in column.column.domain}
        return Classified(in_join(column.file, column.name), values)

    def column(self, place: str, name: str) -> DescribedColumn | None:
        """A column by ``file.column``; None, with a fault, if there is none."""
        if name in self.columns:
            return self.columns[name]
        there = f"; there are {', '.join(self.columns)}" if self.columns else ""
        known = self._other(name) or nearest(name, self.columns) or there
        self.doc.faults.append(f"{place}: {name!r} is no column, such as persons.AGE{known}")
        return None

    def _other(self, name: str) -> str:
        """What else of a file is meant, which tells no cells apart; empty if nothing is."""
        file, _, rest = name.partition(".")
        of = self.files.get(file)
        if of and rest in of.responses:
            return "; it is a response, which makes groups: name it under groups or group_lists"
        if of and rest in {column.name for column in of.blocks}:
            return "; it is of the key of blocks, which makes areas: name it under areas as blocks"
        if of and any(rest in response.columns for response in of.responses.values()):
            return "; it holds answers of a response, which makes groups: name that under groups or group_lists"
        return ""

    def where(self, place: str, told: Condition, allowed: Sequence[str] = ()) -> Where:
        """A condition: for each column one value, or several."""
        found = Where()
        for name, value in told.items():
            variable = self.recodes.get(name)
            if variable is not None:
                wanted = [value] if isinstance(value, str) else value
                strange = [label for label in wanted if label not in variable.classes]
                self.doc.fault_each(f"{place}.{name}", "is no class of the recode", map(repr, strange))
                values = [variable.classes[label] for label in wanted if label in variable.classes]
                found &= Where(((variable.column, frozenset().union(*values)),))
                self.check_reach(place, variable.column, allowed)
                continue
            column = self.column(place, name)
            if column is not None:
                joined = in_join(column.file, column.name)
                found &= Where(((joined, self.values(f"{place}.{name}", column, value)),))
                self.check_reach(place, joined, allowed)
        return found

    def check_reach(self, place: str, column: str, allowed: Sequence[str]) -> None:
        """That a column is of one of the files that may be read there."""
        file = column.strip('"').partition(".")[0]
        if allowed and file not in allowed:
            self.doc.faults.append(
                f"{place}: reads a column of {file}, which is not above {allowed[0]}; it may read {', '.join(allowed)}"
            )

    def values(self, place: str, column: DescribedColumn, told: str | Sequence[str]) -> frozenset[int]:
        """Values of a column: codes, or whole numbers and ranges of them."""
        found: set[int] = set()
        codes = {word: number for number, word in enumerate(column.column.words)}
        for value in [told] if isinstance(told, str) else told:
            if codes:
                if value not in codes:
                    known = nearest(value, codes)
                    self.doc.faults.append(f"{place}: {value!r} is no code of {column.file}.{column.name}{known}")
                else:
                    found.add(codes[value])
                continue
            if column.column.blank_is_last and value == column.column.blank:
                found.add(column.column.none)
                continue
            ends = whole_range(value)
            domain = column.column.numbers.domain
            if ends is None or ends[0] not in domain or ends[1] not in domain:
                self.doc.faults.append(
                    f"{place}: {value!r} is no whole number or range, such as '0-17', within {column.column.rule}"
                )
            else:
                found.update(range(ends[0], ends[1] + 1))
        if not found and not self.doc.faults:
            self.doc.faults.append(f"{place}: names no value")
        return frozenset(found)
