"""Read the record files, the privacy unit, and what tells records apart: columns, recodes and conditions. Public."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from yupana.errors import nearest
from yupana.files.codes import Codes, codes_of, in_place
from yupana.files.columns import Column
from yupana.files.document import is_text
from yupana.files.names import LONGEST, folded
from yupana.geography.block_file import BlockFile
from yupana.plan.predicates import Where
from yupana.plan.responses import ResponseGroup
from yupana.products.described.description import (
    AreaKind,
    DescribedColumn,
    DescribedFile,
    DescribedLevel,
    MultipleResponse,
    chain_of,
    in_join,
)
from yupana.products.described.reading.declaration import (
    MOST_COLUMNS,
    Condition,
    DeclaredColumn,
    DeclaredDescription,
    DeclaredResponse,
    dialect_of,
    is_word,
    whole_range,
)
from yupana.products.described.uncounted import shown


@dataclass(frozen=True, slots=True)
class Classified:
    """What tells cells apart: a column of a join, and its classes by label."""

    column: str
    classes: dict[str, frozenset[int]]


@dataclass(frozen=True, slots=True)
class GroupList:
    """What a public file says of its groups: of each, by code, the row in every column."""

    rows: Mapping[str, Mapping[str, str]]

    @property
    def columns(self) -> tuple[str, ...]:
        """What rows say something in."""
        return tuple(next(iter(self.rows.values()), {}))


@dataclass(slots=True)
class DescriptionDocument:
    """A description as a document, and what has been read of it: what the readers of all parts share."""

    told: dict[str, Any]  # the document; lists of codes that stand in files are put in their place
    read: DeclaredDescription  # what it said before
    folder: Path  # which names of files are relative to
    faults: list[str]  # each begins with its place. Readers add to it.
    blocks: BlockFile | None = None  # that areas are made of, where there is one
    files: dict[str, DescribedFile] = field(default_factory=dict)  # by name: parents before children
    columns: dict[str, DescribedColumn] = field(default_factory=dict)  # by `file.column`
    unit: str = ""  # what is protected
    recodes: dict[str, Classified] = field(default_factory=dict)  # by name
    areas: dict[str, AreaKind] = field(default_factory=dict)  # by name: those that are made of others stand after them
    lists: dict[str, GroupList] = field(default_factory=dict)  # by name
    groups: dict[str, Where | ResponseGroup] = field(default_factory=dict)  # by code
    levels: dict[str, DescribedLevel] = field(default_factory=dict)  # by name
    # by `table/level`: the margins of error that budgets are to be found for; such a budget is 1 meanwhile
    wanted: dict[str, Fraction] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # how codes of files were changed

    def at(self, *keys: str) -> dict[str, Any]:
        """A table of the document."""
        found = self.told
        for name in keys:
            found = found[name]
        return found

    def check_labels(self, place: str, labels: Sequence[str] | Mapping[str, object]) -> None:
        """That labels can be published."""
        strange = [label for label in labels if not is_text(label) or "|" in label or '"' in label]
        self.fault_each(place, "is no label; one is a line of text without | and quotes:", map(repr, strange[:5]))

    def fault_each(self, place: str, what: str, which: Iterable[str]) -> None:
        """A fault for each of some things, if there are any."""
        self.faults.extend(
            f"{place}: {what} {one}" if what.startswith("no ") else f"{place}: {one} {what}" for one in which
        )

    def fault_alike(self, place: str, what: str, names: Iterable[str], seen: Callable[[str], str] = folded) -> None:
        """A fault for each name that is seen as another one before it."""
        met: dict[str, str] = {}
        for name in names:
            first = met.setdefault(seen(name), name)
            if first != name:
                self.faults.append(f"{place}: {first} and {name} {what}; give one another name")

    def variable(self, place: str, name: str) -> Classified | None:
        """A recode, or a column with a class for each of its values; None, with a fault, if it is neither."""
        if name in self.recodes:
            return self.recodes[name]
        if name not in self.columns:
            known = (*self.columns, *self.recodes)
            advice = self._other(name) or nearest(name, known)
            self.faults.append(f"{place}: {name!r} is neither a column nor a recode{advice}")
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
        self.faults.append(f"{place}: {name!r} is no column, such as persons.AGE{known}")
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
            if variable := self.recodes.get(name):
                wanted = [value] if isinstance(value, str) else value
                strange = [label for label in wanted if label not in variable.classes]
                self.fault_each(f"{place}.{name}", "is no class of the recode", map(repr, strange))
                read = variable.column
                values = frozenset[int]().union(*(variable.classes.get(label, ()) for label in wanted))
            elif column := self.column(place, name):
                read, values = in_join(column.file, column.name), self.values(f"{place}.{name}", column, value)
            else:
                continue
            found &= Where(((read, values),))
            self.check_reach(place, read, allowed)
        return found

    def check_reach(self, place: str, column: str, allowed: Sequence[str]) -> None:
        """That a column is of one of the files that may be read there."""
        file = column.strip('"').partition(".")[0]
        if allowed and file not in allowed:
            self.faults.append(
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
                    self.faults.append(f"{place}: {value!r} is no code of {column.file}.{column.name}{known}")
                else:
                    found.add(codes[value])
                continue
            if value in column.column.not_numbers:
                found.add(column.column.not_numbers[value])
                continue
            ends = whole_range(value)
            domain = column.column.numbers.domain
            if ends is None or ends[0] not in domain or ends[1] not in domain:
                self.faults.append(
                    f"{place}: {value!r} is no whole number or range, such as '0-17', within {column.column.rule}"
                )
            else:
                found.update(range(ends[0], ends[1] + 1))
        if not found and not self.faults:
            self.faults.append(f"{place}: names no value")
        return frozenset(found)


def read_records(doc: DescriptionDocument) -> None:
    """Read the record files, and what is protected."""
    counted = {table.counts for table in doc.read.tables.values()} if doc.blocks else set()
    block = tuple(
        Column(column.name, range(10**column.digits), width=column.digits)
        for column in (doc.blocks.key if doc.blocks else ())
    )
    for name, told in doc.read.files.items():
        place, key = f"files.{name}", told.key_ or ""
        parent, link = (told.parent["file"], told.parent["column"]) if told.parent else ("", "")
        _check_keys(doc, place, key, link)
        blocks = block if name in counted else ()
        taken = {key, link, *(column.name for column in blocks)}
        columns = _columns(doc, name, told.columns, taken)
        responses = _responses(doc, name, told.responses, {*taken, *columns})
        fields = tuple(field for field in dict.fromkeys((key, link, *columns)) if field)
        if told.hashed is not None and sorted(told.hashed) != sorted(fields):
            doc.faults.append(f"{place}.hashed: must name each of {', '.join(fields)} once, in some order")
        doc.files[name] = DescribedFile(
            name, told.record or name, key, parent, link, columns,
            hashed=told.hashed or fields, responses=responses, blocks=blocks,
            dialect=dialect_of(told.separator, told.encoding, told.decimal),
        )  # fmt: skip
    if not doc.files:
        doc.faults.append("files: describes none")
    _check_links(doc)
    _set_unit(doc)
    if doc.faults:
        return
    unit, above = doc.unit, chain_of(doc.files, doc.unit)[1:]
    for file in doc.files.values():
        for column in file.columns.values():
            if column.fixed and file.name not in above:
                doc.faults.append(
                    f"files.{file.name}.columns.{column.name}: fixed is for files above the unit, {unit}; what it "
                    "says of others would not be protected"
                )
            doc.columns[f"{file.name}.{column.name}"] = column


def _check_keys(doc: DescriptionDocument, place: str, key: str, link: str) -> None:
    if '"' in key + link:
        doc.faults.append(f"{place}: key and parent.column are names of columns, without quotes")
    if key != link and folded(key) == folded(link):
        doc.faults.append(f"{place}: key and parent.column differ by upper and lower case alone")


def _check_links(doc: DescriptionDocument) -> None:
    files = doc.files
    doc.fault_alike("files", "are names of one file", files)
    long = (name for name in files if len(name.encode()) > LONGEST and not files[name].ids_in)
    doc.fault_each("files", f"has more than {LONGEST} bytes in UTF-8, which no disk holds as the name of a file", long)
    for file in files.values():
        place = f"files.{file.name}.parent"
        if file.parent and file.parent not in files:
            doc.faults.append(f"{place}: {file.parent!r} is none of the files{nearest(file.parent, files)}")
        elif file.parent and not files[file.parent].key:
            doc.faults.append(f"{place}: {file.parent} has no key that its records could be found by")
    met: list[str] = []
    for start in files:
        path = [start]
        while (above := files[path[-1]].parent) in files and above not in path:
            path.append(above)
        if above in path and not set(path) & set(met):
            doc.faults.append(f"files.{start}.parent: links go in a circle: {' > '.join([*path, above])}")
            met += path
    doc.files = {name: files[name] for name in sorted(files, key=lambda name: _depth(files, name))}


def _set_unit(doc: DescriptionDocument) -> None:
    """What is protected: records of a file, or all records with one value of a column of ids."""
    told, files = doc.read.unit, doc.files
    if isinstance(told, str):
        doc.unit = told
        if told not in files:
            text = nearest(told, files) or "; a column of ids is { file = ..., column = ... }"
            doc.faults.append(f"unit: {told!r} is none of the files{text}")
        return
    file, column = told["file"], told["column"]
    if file not in files:
        doc.faults.append(f"unit.file: {file!r} is none of the files{nearest(file, files)}")
    if doc.faults:
        return
    of = files[file]
    _check_keys(doc, "unit", of.key, column)
    if of.parent:
        text = "so that the records of one id could be of several; name a file at the top"
        doc.faults.append(f"unit.file: {file} belongs to {of.parent}, {text}")
    if folded(column) in set(map(folded, (*of.columns, *files))):
        doc.faults.append(f"unit.column: {column} is a file, or a column that tables read; ids tell no cells apart")
    doc.unit = column
    ids = DescribedFile(column, told.get("record", column), column, "", "", {}, ids_in=of.name)
    doc.files = {
        doc.unit: ids,
        **files,
        of.name: replace(of, parent=doc.unit, link=doc.unit, hashed=(doc.unit, *of.hashed)),
    }


def _depth(files: Mapping[str, DescribedFile], name: str) -> int:
    depth = 0
    while (above := files[name].parent) in files and depth <= len(files):
        name, depth = above, depth + 1
    return depth


def _columns(
    doc: DescriptionDocument, file: str, told: Mapping[str, DeclaredColumn], keys: set[str]
) -> dict[str, DescribedColumn]:
    found: dict[str, DescribedColumn] = {}
    for name, of in told.items():
        if folded(name) in set(map(folded, (*keys, *found))):
            doc.faults.append(
                f"files.{file}.columns.{name}: stands twice, or is a key, a link or part of a block, which have no "
                "values to count by"
            )
        column, labels = _domain(doc, ("files", file, "columns", name), of)
        found[name] = DescribedColumn(file, name, column, labels, of.fixed, of.occurring)
    return found


def _domain(doc: DescriptionDocument, keys: tuple[str, ...], of: DeclaredColumn) -> tuple[Column, Mapping[int, str]]:
    if of.codes is not None:
        return _coded(doc, keys, of.codes, of.missing, of.others)
    low, high = of.whole or (0, 0)
    words = (of.missing is not None) + (of.others is not None)
    column = Column(
        keys[-1], range(low, high + 1 + words), blank=of.missing or "", blank_is_last=of.missing is not None,
        of=of.of or "", others=of.others or "",
    )  # fmt: skip
    return column, {}


MOST_CODES: Final = 16_383
"""Most codes of a response: with the one for none they fit 14 bits."""


def _coded(
    doc: DescriptionDocument, keys: tuple[str, ...], told: Codes, missing: str | None, others: str | None = None
) -> tuple[Column, Mapping[int, str]]:
    """A column of codes with what they are called: ``missing``, if there is one, is the first, ``others`` the last."""
    place = ".".join(keys)
    listed = codes_of(f"{place}.codes", told, doc.folder, doc.faults)
    doc.at(*keys)["codes"] = in_place(listed)
    codes, labels = tuple(listed), tuple(listed.values())
    if others is not None:
        if others in codes:
            doc.faults.append(f"{place}.others: must be a code that is not listed")
        codes, labels = (*codes, others), (*labels, others)
    if missing is not None:
        if not is_word(missing) or missing in codes:
            doc.faults.append(f"{place}.missing: must be a code that is not listed, without | and quotes")
        codes, labels = (missing, *codes), (missing, *labels)
    column = Column(keys[-1], range(len(codes)), words=codes, blank=missing or "", others=others or "")
    return column, dict(enumerate(labels))


def _responses(
    doc: DescriptionDocument, file: str, told: Mapping[str, DeclaredResponse], taken: Collection[str]
) -> dict[str, MultipleResponse]:
    """Those of a file; ``taken`` are the names of its columns, keys and links, which are no answers."""
    found: dict[str, MultipleResponse] = {}
    known = set(map(folded, taken))
    used = set(known)
    for name, of in told.items():
        place = f"files.{file}.responses.{name}"
        if folded(name) in known:
            doc.faults.append(f"{place}: is the name of a column, a key, a link or another response")
        known.add(folded(name))
        _check_columns(doc, f"{place}.columns", of.columns, used)
        used.update(map(folded, of.columns))
        column, labels = _coded(doc, ("files", file, "responses", name), of.codes, of.missing)
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
    lower = [*map(folded, told)]
    doc.fault_each(place, "stands twice", (name for i, name in enumerate(told) if lower[i] in lower[:i]))
    doc.fault_each(place, "is a name without quotes, which is not", (repr(name) for name in told if '"' in name))
    doc.fault_each(
        place,
        "is a column, a key or a link of the file already, or one of another response",
        (name for name in told if folded(name) in used),
    )


def read_recodes(doc: DescriptionDocument) -> None:
    """Read the recodes, which conditions may name."""
    for name, told in doc.read.recodes.items():
        place = f"recodes.{name}"
        column = doc.column(f"{place}.column", told.column)
        if name in doc.columns:
            doc.faults.append(f"{place}: is the name of a column, too; give the recode another")
        if column is None:
            continue
        classes = {
            label: doc.values(f"{place}.classes.{label}", column, value) for label, value in told.classes.items()
        }
        if not classes:
            doc.faults.append(f"{place}.classes: has none; name some")
        _check_complete(doc, place, column, classes, incomplete=told.incomplete)
        doc.recodes[name] = Classified(in_join(column.file, column.name), classes)


def _check_complete(
    doc: DescriptionDocument,
    place: str,
    column: DescribedColumn,
    classes: Mapping[str, frozenset[int]],
    *,
    incomplete: bool,
) -> None:
    """Refuse a recode with a hole that does not say so: who is in it would be counted nowhere, without a word."""
    # A missing value and others are in a class where one names them; that they are in none is told by the plan.
    lost = set(column.column.domain).difference(column.column.in_no_class, *classes.values())
    if lost and classes and all(classes.values()) and not incomplete:
        doc.faults.append(
            f"{place}.classes: no class holds {shown(lost, column.column)} of {column.file}.{column.name}, so that "
            "such records would be counted nowhere; give them a class, or say incomplete = true"
        )
    if incomplete and not lost:
        doc.faults.append(f"{place}.incomplete: every value of {column.file}.{column.name} is in a class")
