"""Read the record files of a description, their columns and links, and the privacy unit. Public."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from yupana.errors import nearest
from yupana.files.columns import Column
from yupana.geography.block_file import BlockFile
from yupana.products.described.description import DescribedColumn, DescribedFile
from yupana.products.described.reading.declaration import DeclaredColumn
from yupana.products.described.reading.document import DescriptionDocument
from yupana.products.described.reading.responses import read_coded, read_responses


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
