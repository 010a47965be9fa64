"""Read what tells records apart: columns, recodes, and conditions on them. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from yupana.errors import nearest
from yupana.plan.predicates import Where
from yupana.products.described.description import DescribedColumn, DescribedFile, in_join
from yupana.products.described.reading.declaration import Condition, whole_range
from yupana.products.described.reading.document import DescriptionDocument
from yupana.products.described.uncounted import shown


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
