"""Read the acceptance criteria of a description: which rows of which table, and how far off they may be. Public."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from yupana.errors import nearest
from yupana.files.declaration import choice
from yupana.files.document import Number, check_keys, read_table
from yupana.products.described.criteria import rows_of
from yupana.products.described.criterion import Criterion
from yupana.products.described.description import DescribedLevel, DescribedTable, Description
from yupana.products.described.reading.document import DescriptionDocument
from yupana.products.described.tables import families

_REQUIRED: Final = ("table", "level", "error", "quantile", "most")
_OPTIONAL: Final = ("rows", "at_least", "at_most", "fewest", "chance")
_LARGEST: Final = 10**15
_SMALLEST: Final = Fraction(1, _LARGEST)


@dataclass(frozen=True, slots=True)
class CriteriaReader:
    """Reads criteria on the tables of a description.

    Attributes
    ----------
    doc : DescriptionDocument
    of : Description
        All of it but the criteria.
    """

    doc: DescriptionDocument
    of: Description

    def read(self) -> tuple[Criterion, ...]:
        """All of them; those with faults are left out."""
        found = [self._read(f"criteria.{name}", name, told) for name, told in self.doc.tables_of("criteria")]
        return tuple(criterion for criterion in found if criterion is not None)

    def _read(self, place: str, name: str, told: dict[str, Any]) -> Criterion | None:
        before = len(self.doc.faults)
        self.doc.check_name(place, name)
        check_keys(place, told, _REQUIRED, self.doc.faults, optional=_OPTIONAL)
        if "error" in told:
            choice("relative", "absolute").read(f"{place}.error", told["error"], self.doc.faults)
        least, most, fewest = (self._whole(place, told, key) for key in ("at_least", "at_most", "fewest"))
        quantile, limit = (self._number(place, told, key) for key in ("quantile", "most"))
        chance = self._number(place, {"chance": str(self.of.confidence)} | told, "chance")
        self._check_sizes(place, told, least, most)
        rows = self._rows(place, told)
        if len(self.doc.faults) > before or quantile is None or limit is None or chance is None:
            return None
        relative = told["error"] == "relative"
        found = Criterion(
            name,
            str(told["table"]),
            str(told["level"]),
            rows,
            least or 0,
            most,
            fewest or 1,
            relative,
            quantile,
            limit,
            chance,
        )
        number = rows_of(self.of, found).number
        if not number:
            self.doc.faults.append(f"{place}.rows: {found.table} shows none of these groups")
        elif number < found.fewest:
            self.doc.faults.append(f"{place}.fewest: there are {number:,} such rows of whatever size")
        return found

    def _whole(self, place: str, told: Mapping[str, Any], key: str) -> int | None:
        """A whole number that a key holds; None if the key is not there or, with a fault, holds none."""
        if key not in told:
            return None
        value, least = told[key], 0 if key == "at_most" else 1
        if isinstance(value, Number) and value.isdecimal() and least <= int(value) <= _LARGEST:
            return int(value)
        self.doc.faults.append(f"{place}.{key}: must be a whole number from {least} to 1e15")
        return None

    def _number(self, place: str, told: Mapping[str, Any], key: str) -> Fraction | None:
        """A number above 0 that a key holds; None if the key is not there or, with a fault, holds none."""
        found = self.doc.fraction(f"{place}.{key}", told[key]) if key in told else None
        if found is None:
            return None
        if key == "quantile" and found > 1:
            self.doc.faults.append(f"{place}.quantile: must be at most 1, the largest error; the median is 0.5")
        if key == "chance" and found > 1 - _SMALLEST:
            self.doc.faults.append(f"{place}.chance: must be above 0 and at most 1 - 1e-15, as noise has no bound")
        if key == "most" and told.get("error") == "relative" and found > 1:
            self.doc.faults.append(f"{place}.most: must be at most 1, a share of the true count; 2 percent are 0.02")
        return found

    def _check_sizes(self, place: str, told: Mapping[str, Any], least: int | None, most: int | None) -> None:
        """That sizes go with each other and with the error."""
        if told.get("error") == "relative" and "at_least" not in told:
            text = "is missing; a relative error needs it, as the true count may be 0"
            self.doc.faults.append(f"{place}.at_least: {text}")
        if least is not None and most is not None and most < least:
            self.doc.faults.append(f"{place}.at_most: must be no smaller than at_least")

    def _check_detail(self, place: str, told: Mapping[str, Any], table: DescribedTable, level: DescribedLevel) -> None:
        """That a row is shown whatever its own noise is, and how many there are is open where it is said."""
        if table.detail is None:
            if "fewest" in told and not {"at_least", "at_most"} & told.keys():
                text = "goes with at_least or at_most; without them all rows are meant"
                self.doc.faults.append(f"{place}.fewest: {text}")
        elif level.name in table.detail.leave_out and str(told["table"]) in table.detail.steps[0]:
            text = f"counts of the first step are left out at {level.name} by their own noise (leave_out)"
            self.doc.faults.append(
                f"{place}.level: {text}, so the noise of those that are shown is not known beforehand; "
                "ask for a table of later steps alone, or for a level that leaves none out"
            )

    def _rows(self, place: str, told: dict[str, Any]) -> dict[str, tuple[str, ...]]:
        """What rows say in which columns; the table and its level are checked, too."""
        of = {name: family for family in families(self.of) for name in family.tables}
        wanted = {
            column: tuple(map(str, labels if isinstance(labels, list) else [labels]))
            for column, labels in read_table(f"{place}.rows", told.get("rows", {}), self.doc.faults).items()
        }
        shown_in = str(told.get("table"))
        family = of.get(shown_in)
        table = next((t for t in self.of.tables if shown_in in {t.name, *(sums.name for sums in t.sums)}), None)
        if family is None or table is None:
            if "table" in told:
                known = nearest(str(told["table"]), of) or f"; there are {', '.join(of)}"
                self.doc.faults.append(f"{place}.table: {told['table']!r} is no table that is measured{known}")
            return wanted
        levels = {level.name: level for level in table.levels if table.budgets[level.name]}
        level = levels.get(str(told.get("level")))
        if level is None:
            if "level" in told:
                text = f"{told['level']!r} is no level with a budget above 0; {table.name} has {', '.join(levels)}"
                self.doc.faults.append(f"{place}.level: {text}")
            return wanted
        self._check_detail(place, told, table, level)
        shown = family.having(shown_in)[-1][shown_in]
        said = zip(*(cell.labels for cell in shown.cells), strict=True)
        columns = dict(zip(shown.columns, (set(map(str, labels)) for labels in said), strict=True))
        columns["REGION_ID"] = set(self.of.areas[level.areas].codes)
        columns["ITERATION_CODE"] = set(level.groups)
        for column, labels in wanted.items():
            if column not in columns:
                self.doc.faults.append(f"{place}.rows: {column!r} is none of the columns {', '.join(columns)}")
            elif strange := [label for label in labels if label not in columns[column]]:
                self.doc.fault_each(f"{place}.rows.{column}", "is said by no row", map(repr, strange))
            elif not labels:
                self.doc.faults.append(f"{place}.rows.{column}: names nothing")
        return wanted
