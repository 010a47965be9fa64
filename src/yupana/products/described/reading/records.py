"""Read the record files of a description, their columns and links, and the privacy unit. Public."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from yupana.errors import nearest
from yupana.files.columns import Column
from yupana.files.document import Number, check_keys, is_text, read_table
from yupana.geography.block_file import BlockFile
from yupana.products.described.description import DescribedColumn, DescribedFile
from yupana.products.described.reading.coded import is_word, read_coded
from yupana.products.described.reading.document import DescriptionDocument
from yupana.products.described.reading.responses import read_responses

_RANGE: Final = re.compile(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?")
_OPTIONAL: Final = ("key", "parent", "record", "hashed", "responses")
MOST_VALUES: Final = 1_000_000
"""Most values of a column of whole numbers."""


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
        counted = {str(told.get("counts")) for _, told in self.doc.tables_of("tables")} if self.blocks else set()
        block = tuple(
            Column(column.name, range(10**column.digits), width=column.digits)
            for column in (self.blocks.key if self.blocks else ())
        )
        for name, told in self.doc.tables_of("files"):
            place = f"files.{name}"
            self.doc.check_name(place, name)
            check_keys(place, told, ("columns",), self.doc.faults, optional=_OPTIONAL)
            parent = read_table(f"{place}.parent", told.get("parent", {}), self.doc.faults)
            if parent:
                check_keys(f"{place}.parent", parent, ("file", "column"), self.doc.faults)
            names = (told.get("key", ""), parent.get("file", ""), parent.get("column", ""), told.get("record", name))
            if not all(isinstance(text, str) for text in names):
                self.doc.faults.append(f"{place}: key, record, parent.file and parent.column must be texts")
                continue
            key, above, link, record = names
            self._check_keys(place, key, link)
            blocks = block if name in counted else ()
            taken = {key, link, *(column.name for column in blocks)}
            columns = self._columns(name, told.get("columns"), taken)
            responses = read_responses(self.doc, name, told.get("responses", {}), {*taken, *columns})
            hashed = self._hashed(place, told, [*(field for field in dict.fromkeys((key, link)) if field), *columns])
            self.files[name] = DescribedFile(
                name, record, key, above, link, columns, hashed=hashed, responses=responses, blocks=blocks
            )
        if not self.files:
            self.doc.faults.append("files: describes none")
        self._check_links()
        self._set_unit()
        if self.doc.faults:
            return
        unit = self.unit
        above = [self.files[unit].parent]
        while above[-1]:
            above.append(self.files[above[-1]].parent)
        for file in self.files.values():
            for column in file.columns.values():
                if column.fixed and file.name not in above:
                    self.doc.faults.append(
                        f"files.{file.name}.columns.{column.name}: fixed is for files above the unit, {unit}; what it "
                        "says of others would not be protected"
                    )
                self.columns[f"{file.name}.{column.name}"] = column

    def _hashed(self, place: str, told: dict[str, Any], fields: list[str]) -> tuple[str, ...]:
        hashed = told.get("hashed", fields)
        if not isinstance(hashed, list) or sorted(map(str, hashed)) != sorted(fields):
            self.doc.faults.append(f"{place}.hashed: must name each of {', '.join(fields)} once, in some order")
            return tuple(fields)
        return tuple(hashed)

    def _check_keys(self, place: str, key: str, link: str) -> None:
        if any(text and (not is_text(text) or '"' in text) for text in (key, link)):
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
        told, files = self.doc.told["unit"], self.files
        if not isinstance(told, dict):
            self.unit = str(told)
            if self.unit not in files:
                text = nearest(str(told), files) or "; a column of ids is { file = ..., column = ... }"
                self.doc.faults.append(f"unit: {told!r} is none of the files{text}")
            return
        check_keys("unit", told, ("file", "column"), self.doc.faults, optional=("record",))
        file, column = told.get("file"), told.get("column")
        if not isinstance(file, str) or file not in files:
            self.doc.faults.append(f"unit.file: {file!r} is none of the files{nearest(str(file), files)}")
        if not (isinstance(column, str) and self.doc.is_text("unit.record", told.get("record", column))):
            self.doc.faults.append("unit.column: must be the name of a column of ids")
        if self.doc.faults:
            return
        self.doc.check_name("unit.column", str(column))
        of = files[str(file)]
        self._check_keys("unit", of.key, str(column))
        if of.parent:
            text = "so that the records of one id could be of several; name a file at the top"
            self.doc.faults.append(f"unit.file: {file} belongs to {of.parent}, {text}")
        if str(column).lower() in {name.lower() for name in (*of.columns, *files)}:
            self.doc.faults.append(
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
        for name, given in read_table(f"files.{file}.columns", told, self.doc.faults).items():
            place = f"files.{file}.columns.{name}"
            self.doc.check_name(place, name, "; what the file calls it otherwise, --columns tells a run")
            if name.lower() in {key.lower() for key in (*keys, *found)}:
                self.doc.faults.append(
                    f"{place}: stands twice, or is a key, a link or part of a block, which have no values to count by"
                )
            of = read_table(place, given, self.doc.faults)
            check_keys(place, of, (), self.doc.faults, optional=("codes", "whole", "fixed", "missing", "occurring"))
            if ("codes" in of) == ("whole" in of):
                self.doc.faults.append(f"{place}: must have either codes or whole (a range of whole numbers)")
                continue
            for key in ("fixed", "occurring"):
                if not isinstance(of.get(key, False), bool):
                    self.doc.faults.append(f"{place}.{key}: must be true or false")
            column, labels = self._domain(place, name, of)
            fixed, occurring = of.get("fixed") is True, of.get("occurring") is True
            found[name] = DescribedColumn(file, name, column, labels, fixed, occurring)
        return found

    def _domain(self, place: str, name: str, of: dict[str, Any]) -> tuple[Column, Mapping[int, str]]:
        if "codes" in of:
            return read_coded(self.doc, place, name, of)
        low_high = whole_range(of["whole"])
        if low_high is None or low_high[1] - low_high[0] >= MOST_VALUES:
            text = "must be a range of at most a million whole numbers, such as [0, 115]"
            self.doc.faults.append(f"{place}.whole: {text}")
            return Column(name, range(1)), {}
        low, high = low_high
        if "missing" not in of:
            return Column(name, range(low, high + 1)), {}
        missing = of["missing"]
        if not stands_for_none(missing, low, high):
            text = f"must be a text that is no number from {low} to {high} and no range, such as 'unknown' or '999'"
            self.doc.faults.append(f"{place}.missing: {text}, without | and quotes; an empty field says the same")
        return Column(name, range(low, high + 2), blank=str(missing), blank_is_last=True), {}


def stands_for_none(missing: object, low: int, high: int) -> bool:
    """Whether a text can stand for no value of whole numbers between two."""
    ends = whole_range(missing)
    return is_word(missing) and (ends is None or ("-" not in str(missing) and not low <= ends[0] <= high))


def whole_range(value: object) -> tuple[int, int] | None:
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
