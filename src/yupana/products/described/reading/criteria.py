"""Read the acceptance criteria of a description: which rows of which table, and how far off they may be. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from yupana.errors import nearest
from yupana.products.described.criteria import rows_of
from yupana.products.described.criterion import Criterion
from yupana.products.described.description import DescribedLevel, DescribedTable, Description
from yupana.products.described.reading.declaration import DeclaredCriterion
from yupana.products.described.reading.document import DescriptionDocument
from yupana.products.described.tables import families

_SMALLEST: Final = Fraction(1, 10**15)


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
        found = [self._read(f"criteria.{name}", name, told) for name, told in self.doc.read.criteria.items()]
        return tuple(criterion for criterion in found if criterion is not None)

    def _read(self, place: str, name: str, told: DeclaredCriterion) -> Criterion | None:
        before = len(self.doc.faults)
        chance = self.of.confidence if told.chance is None else told.chance
        self._check_numbers(place, told, chance)
        rows = {column: (labels,) if isinstance(labels, str) else tuple(labels) for column, labels in told.rows.items()}
        self._check_rows(place, told, rows)
        if len(self.doc.faults) > before:
            return None
        found = Criterion(
            name,
            told.table,
            told.level,
            rows,
            told.at_least or 0,
            told.at_most,
            told.fewest or 1,
            told.error == "relative",
            told.quantile,
            told.most,
            chance,
        )
        number = rows_of(self.of, found).number
        if not number:
            self.doc.faults.append(f"{place}.rows: {found.table} shows none of these groups")
        elif number < found.fewest:
            self.doc.faults.append(f"{place}.fewest: there are {number:,} such rows of whatever size")
        return found

    def _check_numbers(self, place: str, told: DeclaredCriterion, chance: Fraction) -> None:
        """That numbers go with each other and with the error."""
        relative = told.error == "relative"
        wrong = {
            "quantile: must be at most 1, the largest error; the median is 0.5": told.quantile > 1,
            "most: must be at most 1, a share of the true count; 2 percent are 0.02": relative and told.most > 1,
            "chance: must be above 0 and at most 1 - 1e-15, as noise has no bound": chance > 1 - _SMALLEST,
            "at_least: is missing; a relative error needs it, as the true count may be 0": relative
            and told.at_least is None,
            "at_most: must be no smaller than at_least": told.at_most is not None
            and told.at_most < (told.at_least or 0),
        }
        self.doc.faults.extend(f"{place}.{fault}" for fault, is_wrong in wrong.items() if is_wrong)

    def _check_detail(self, place: str, told: DeclaredCriterion, table: DescribedTable, level: DescribedLevel) -> None:
        """That a row is shown whatever its own noise is, and how many there are is open where it is said."""
        if table.detail is None:
            if told.fewest is not None and told.at_least is None and told.at_most is None:
                text = "goes with at_least or at_most; without them all rows are meant"
                self.doc.faults.append(f"{place}.fewest: {text}")
        elif level.name in table.detail.leave_out and told.table in table.detail.steps[0]:
            text = f"counts of the first step are left out at {level.name} by their own noise (leave_out)"
            self.doc.faults.append(
                f"{place}.level: {text}, so the noise of those that are shown is not known beforehand; "
                "ask for a table of later steps alone, or for a level that leaves none out"
            )

    def _check_rows(self, place: str, told: DeclaredCriterion, wanted: Mapping[str, Sequence[str]]) -> None:
        """That there are the table, the level, and rows that say so."""
        of = {name: family for family in families(self.of) for name in family.tables}
        family = of.get(told.table)
        table = next((t for t in self.of.tables if told.table in {t.name, *(sums.name for sums in t.sums)}), None)
        if family is None or table is None:
            known = nearest(told.table, of) or f"; there are {', '.join(of)}"
            self.doc.faults.append(f"{place}.table: {told.table!r} is no table that is measured{known}")
            return
        levels = {level.name: level for level in table.levels if table.budgets[level.name]}
        level = levels.get(told.level)
        if level is None:
            text = f"{told.level!r} is no level with a budget above 0; {table.name} has {', '.join(levels)}"
            self.doc.faults.append(f"{place}.level: {text}")
            return
        self._check_detail(place, told, table, level)
        shown = family.having(told.table)[-1][told.table]
        said = zip(*(cell.labels for cell in shown.cells), strict=True)
        columns = dict(zip(shown.columns, (set(map(str, labels)) for labels in said), strict=True))
        columns["REGION_ID"] = set(self.of.areas[level.areas].codes)
        columns["ITERATION_CODE"] = set(level.groups)
        for column, labels in wanted.items():
            if column not in columns:
                self.doc.faults.append(f"{place}.rows: {column!r} is none of the columns {', '.join(columns)}")
            elif strange := [label for label in labels if label not in columns[column]]:
                self.doc.fault_each(f"{place}.rows.{column}", "is said by no row", map(repr, strange))
