"""Read the tables of a description: what they count, their cells, levels, limits and budgets. Public."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, product
from typing import Any, Final

from yupana.errors import nearest
from yupana.files.document import Number, check_keys, read_budget, read_table
from yupana.plan.measurement import Sensitivity
from yupana.plan.predicates import Where
from yupana.privacy.exact import Budget
from yupana.products.described.description import (
    EVERYONE,
    NUMBERS,
    AreaKind,
    DescribedFile,
    DescribedLevel,
    DescribedTable,
    Detail,
    RecordLimit,
    Sums,
    in_join,
)
from yupana.products.described.reading.conditions import Classified, ConditionReader
from yupana.products.described.reading.document import NAME, DescriptionDocument
from yupana.products.described.reading.group_lists import GroupList, listed_groups

MOST_CELLS: Final = 100_000
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


@dataclass(frozen=True)
class TableReader:
    """Reads tables over files, areas and levels.

    Attributes
    ----------
    doc : DescriptionDocument
    files : mapping of name to DescribedFile
    conditions : ConditionReader
    areas : mapping of name to AreaKind
    levels : mapping of name to DescribedLevel
    lists : mapping of name to GroupList
    numbers : tuple of str
        Columns of numbers that tables have.
    wanted : dict of ``table/level`` to Fraction
        The margins of error that budgets are to be found for; such a budget is 1 meanwhile.
    """

    doc: DescriptionDocument
    files: Mapping[str, DescribedFile]
    conditions: ConditionReader
    areas: Mapping[str, AreaKind]
    levels: Mapping[str, DescribedLevel]
    lists: Mapping[str, GroupList]
    numbers: tuple[str, ...] = NUMBERS
    wanted: dict[str, Fraction] = field(default_factory=dict)

    def read(self, name: str, told: dict[str, Any]) -> DescribedTable | None:
        """Read one; None where there are faults."""
        place = f"tables.{name}"
        before = len(self.doc.faults)
        self.doc.check_name(place, name)
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
            "detail",
        )
        check_keys(place, told, ("counts", "budget"), self.doc.faults, optional=optional)
        counts = told.get("counts")
        if not isinstance(counts, str) or counts not in self.files or self.files[counts].ids_in:
            known = nearest(str(counts), [file for file, of in self.files.items() if not of.ids_in])
            self.doc.faults.append(f"{place}.counts: {counts!r} is none of the files{known}")
            return None
        chain = [counts]
        while above := self.files[chain[-1]].parent:
            chain.append(above)
        title = told.get("title", name)
        self.doc.is_text(f"{place}.title", title)
        universe = self.conditions.where(f"{place}.where", told.get("where", {}), chain)
        groups = {
            code: self.conditions.where(f"{place}.groups.{code}", of, chain)
            for code, of in read_table(f"{place}.groups", told.get("groups", {}), self.doc.faults).items()
        }
        strange = [code for code in groups if code not in self.doc.told.get("groups", {})]
        self.doc.fault_each(f"{place}.groups", "is no group", map(repr, strange))
        columns, labels, cells, sums = self._cells(place, told, chain)
        budgets = self._budgets(place, told.get("budget"))
        for level in budgets:
            self._check_level(place, self.levels[level], chain, groups)
        limit, stated = self._limit(place, told, chain), self._stated(place, told, budgets)
        names = [name, *(sums.name for sums in sums)]
        detail = self._detail(f"{place}.detail", told["detail"], names, budgets) if "detail" in told else None
        if len(self.doc.faults) > before:
            return None
        of = tuple(level for name, level in self.levels.items() if name in budgets)
        for one, other in combinations(of, 2):
            both = [*filter({*other.groups}.__contains__, one.groups)] if one.areas == other.areas else []
            if both:
                text = f"levels {one.name} and {other.name} both publish group {both[0]} of {one.areas}"
                more = f" (and {len(both) - 1} others)" if both[1:] else ""
                self.doc.faults.append(f"{place}.budget: {text}{more}; a group of areas goes with one level alone")
        return DescribedTable(
            name, title, counts, universe, limit, columns, labels, cells, sums, of, budgets, stated, groups, detail,
            numbers=self.numbers,
        )  # fmt: skip

    def _cells(self, place: str, told: dict[str, Any], chain: Sequence[str]) -> Any:  # noqa: ANN401 (four parts)
        if "by" in told and "cells" in told:
            self.doc.faults.append(f"{place}: has by and cells; keep one")
        if "by" in told:
            return self._by(place, told, chain)
        if "margins" in told:
            self.doc.faults.append(f"{place}.margins: are of tables with by; name rows under sums")
        headings = self._headings(place, told)
        named = read_table(f"{place}.cells", told.get("cells", {"total": {}}), self.doc.faults)
        labels = tuple((label,) for label in named)
        self.doc.check_labels(place, named)
        cells = tuple(self.conditions.where(f"{place}.cells.{label}", of, chain) for label, of in named.items())
        sums = self._sums(place, told, {label: i for i, label in enumerate(named)}, cells, headings)
        return headings.get(place.partition(".")[2], ("CELL",)), labels, cells, tuple(sums)

    def _headings(self, place: str, told: dict[str, Any]) -> dict[str, tuple[str, ...]]:
        """What the columns of cells are called, by table."""
        found = {}
        for table, heading in read_table(f"{place}.headings", told.get("headings", {}), self.doc.faults).items():
            own = place.partition(".")[2]
            if table not in {*({own} if "by" not in told else ()), *told.get("sums", {})}:
                which = (
                    "no sum of the table, whose own columns are those of by"
                    if "by" in told
                    else ("neither the table nor one of its sums")
                )
                self.doc.faults.append(f"{place}.headings: {table!r} is {which}")
            several = heading if isinstance(heading, list) and table != own else [heading]
            names = [name for name in several if isinstance(name, str) and NAME.fullmatch(name)]
            if len(set(names)) < len(several) or set(names) & set(RESERVED[:-1]):
                self.doc.faults.append(f"{place}.headings.{table}: must be the name of a column of cells")
            found[table] = tuple(names)
        return found

    def _sums(
        self,
        place: str,
        told: dict[str, Any],
        number: Mapping[str, int],
        cells: Sequence[Where],
        headings: Mapping[str, tuple[str, ...]],
    ) -> Iterator[Sums]:
        """Tables whose rows add up cells; where a table has several columns of cells, | stands between its labels."""
        for name, rows in read_table(f"{place}.sums", told.get("sums", {}), self.doc.faults).items():
            made = []
            self.doc.check_name(f"{place}.sums.{name}", name)
            columns = headings.get(name, ("CELL",))
            for label, parts in read_table(f"{place}.sums.{name}", rows, self.doc.faults).items():
                labels = (label,) if len(columns) == 1 else tuple(label.split("|")) if columns else ()
                if len(labels) != len(columns):
                    text = f"must have {len(columns)} labels with | between them"
                    self.doc.faults.append(f"{place}.sums.{name}.{label}: {text}")
                self.doc.check_labels(f"{place}.sums.{name}", labels)
                made.append((labels, self._parts(f"{place}.sums.{name}.{label}", parts, number, cells)))
            if not made:
                self.doc.faults.append(f"{place}.sums.{name}: has no rows; name some, or leave it out")
            yield Sums(name, columns, tuple(made))

    def _parts(self, place: str, told: object, number: Mapping[str, int], cells: Sequence[Where]) -> tuple[int, ...]:
        """The cells that a row adds up: a list of their labels, or all that a condition holds."""
        if isinstance(told, dict):
            condition = self.conditions.where(place, told)
            within = tuple(i for i, cell in enumerate(cells) if cell & condition == cell)
            if not within or any((cells[i] & condition).is_possible for i in range(len(cells)) if i not in within):
                self.doc.faults.append(f"{place}: must hold some cells of the table, each whole or not at all")
            return within
        if (
            not isinstance(told, list)
            or not told
            or any(not isinstance(part, str) or part not in number for part in told)
        ):
            self.doc.faults.append(f"{place}: must be a list of labels of cells of the table, or a condition")
            return ()
        if len(set(told)) < len(told):
            self.doc.faults.append(f"{place}: adds a cell twice")
        return tuple(number[part] for part in told)

    def _by(self, place: str, told: dict[str, Any], chain: Sequence[str]) -> Any:  # noqa: ANN401 (four parts)
        nothing: Any = ((), (), (), ())
        by = told["by"]
        if not isinstance(by, list) or not by:
            self.doc.faults.append(f"{place}.by: must be a list of columns and recodes")
            return nothing
        variables = [self.conditions.variable(f"{place}.by", name) for name in by]
        if any(variable is None for variable in variables):
            return nothing
        chosen = [variable for variable in variables if variable is not None]
        names = tuple(str(name).rpartition(".")[2] for name in by)
        if len({name.upper() for name in names} | set(RESERVED)) < len(names) + len(RESERVED):
            self.doc.faults.append(f"{place}.by: every column needs a name of its own, none of {', '.join(RESERVED)}")
        for name, variable in zip(by, chosen, strict=True):
            self.conditions.check_reach(f"{place}.by", variable.column, chain)
            self.doc.check_labels(f"{place}.by: {name}", variable.classes)
            sizes = sum(map(len, variable.classes.values()))
            if sizes > len(frozenset().union(*variable.classes.values())) and told.get("overlapping") is not True:
                self.doc.faults.append(f"{place}.by: classes of {name} overlap; say overlapping = true if they should")
        number = 1
        for variable in chosen:
            number *= len(variable.classes)
        if number > MOST_CELLS:
            self.doc.faults.append(f"{place}.by: makes {number:,} cells, and at most {MOST_CELLS:,} are allowed")
            return nothing
        pairs = list(product(*(variable.classes.items() for variable in chosen)))
        labels = tuple(tuple(label for label, _ in of) for of in pairs)
        cells = tuple(
            _all(Where(((v.column, values),)) for v, (_, values) in zip(chosen, of, strict=True)) for of in pairs
        )
        margins = self._margins(place, told, dict(zip(names, chosen, strict=True)), labels)
        sums = self._sums(place, told, {}, cells, self._headings(place, told))
        return names, labels, cells, (*margins, *sums)

    def _margins(
        self, place: str, told: dict[str, Any], variables: Mapping[str, Classified], labels: Sequence[tuple[str, ...]]
    ) -> Iterator[Sums]:
        """Tables that keep some of the columns of cells, as they are or in coarser classes."""
        for name, kept in read_table(f"{place}.margins", told.get("margins", {}), self.doc.faults).items():
            self.doc.check_name(f"{place}.margins.{name}", name)
            if not isinstance(kept, list):
                self.doc.faults.append(f"{place}.margins.{name}: must be a list of some of {', '.join(variables)}")
                continue
            called = [str(column).rpartition(".")[2] for column in kept]
            if len(set(called)) < len(called):
                self.doc.faults.append(f"{place}.margins.{name}: names a column twice")
            kept_classes = [self._coarser(f"{place}.margins.{name}", column, variables) for column in called]
            order = sorted(range(len(called)), key=lambda i: kept_classes[i][0])
            rows: dict[tuple[str, ...], list[int]] = {}
            for cell, of in enumerate(labels):
                row = tuple(kept_classes[i][1].get(of[kept_classes[i][0]], "") for i in order)
                rows.setdefault(row or ("total",), []).append(cell)
            columns = tuple(called[i] for i in order) or ("CELL",)
            yield Sums(name, columns, tuple((of, tuple(parts)) for of, parts in rows.items()))

    def _coarser(self, place: str, name: str, variables: Mapping[str, Classified]) -> tuple[int, dict[str, str]]:
        """Which column of cells a margin keeps, and the class that it shows of each class of that."""
        names = list(variables)
        if name in variables:
            return names.index(name), {label: label for label in variables[name].classes}
        recode = self.conditions.recodes.get(name)
        if recode is None or recode.column not in {of.column for of in variables.values()}:
            self.doc.faults.append(f"{place}: {name!r} is none of {', '.join(names)}, nor a recode of one of them")
            return 0, {}
        finer = next(of for of in names if variables[of].column == recode.column)
        within = {
            label: [coarse for coarse, wide in recode.classes.items() if values <= wide]
            for label, values in variables[finer].classes.items()
        }
        lost = [label for label, of in within.items() if len(of) != 1]
        self.doc.fault_each(f"{place}: {name}", f"is a class of {finer} that lies in no one class:", map(repr, lost))
        covered = frozenset().union(*variables[finer].classes.values())
        wide = [coarse for coarse, values in recode.classes.items() if not values <= covered]
        self.doc.fault_each(f"{place}: {name}", f"is a class with values that are in none of {finer}:", map(repr, wide))
        return names.index(finer), {label: of[0] for label, of in within.items() if of}

    def _budgets(self, place: str, told: object) -> dict[str, Budget]:
        found: dict[str, Budget] = {}
        for level, value in read_table(f"{place}.budget", told, self.doc.faults).items():
            if level not in self.levels:
                self.doc.faults.append(f"{place}.budget: {level!r} is no level{nearest(level, self.levels)}")
            elif isinstance(value, dict):
                check_keys(f"{place}.budget.{level}", value, ("moe",), self.doc.faults)
                margin = self.doc.fraction(f"{place}.budget.{level}.moe", value["moe"]) if "moe" in value else None
                found[level] = Fraction(1)
                self.wanted[f"{place.partition('.')[2]}/{level}"] = margin or Fraction(1)
            else:
                found[level] = read_budget(f"{place}.budget.{level}", value, self.doc.faults)
        return found

    def _check_level(self, place: str, level: DescribedLevel, chain: Sequence[str], own: Collection[str]) -> None:
        """That a table can read what tells areas and groups apart; ``own`` are groups with conditions of its own."""
        if column := self.areas[level.areas].column:
            self.conditions.check_reach(f"{place}.budget.{level.name}", column, chain)
        for code in level.groups:
            of = {} if (code,) == EVERYONE or code in own else self.doc.told["groups"][code].get("where", {})
            for name in of:
                column = (
                    self.conditions.recodes[name].column
                    if name in self.conditions.recodes
                    else in_join(*name.split(".", 1))
                )
                self.conditions.check_reach(f"{place}.budget.{level.name} (group {code})", column, chain)

    def _detail(self, place: str, told: object, names: Sequence[str], levels: Collection[str]) -> Detail | None:
        """How finely groups are counted; ``names`` are the table's and its sums', ``levels`` those with a budget."""
        before = len(self.doc.faults)
        told = read_table(place, told, self.doc.faults)
        optional = ("share", "published", "coarsest", "leave_out")
        check_keys(place, told, ("steps", "thresholds"), self.doc.faults, optional=optional)
        published = told.get("published", False)
        if not isinstance(published, bool) or published == ("share" in told):
            text = "say what share of each budget a noisy total has, or published = true for totals of another release"
            self.doc.faults.append(f"{place}: {text}")
        if published is True and (both := {"coarsest", "leave_out"} & told.keys()):
            self.doc.fault_each(f"{place}.published", "goes with share alone", sorted(both))
        steps = self._steps(f"{place}.steps", told.get("steps"), names)
        thresholds = self._thresholds(f"{place}.thresholds", told.get("thresholds"), len(steps) - 1, levels)
        share = self.doc.fraction(f"{place}.share", told["share"]) if "share" in told else Fraction(0)
        known = {code for level in levels for code in self.levels[level].groups}
        coarsest = self._coarsest(f"{place}.coarsest", told, known)
        leave_out = {}
        for level, chance in read_table(f"{place}.leave_out", told.get("leave_out", {}), self.doc.faults).items():
            if level not in levels:
                self.doc.faults.append(f"{place}.leave_out: {level!r} is no level of the table{nearest(level, levels)}")
            leave_out[level] = self.doc.fraction(f"{place}.leave_out.{level}", chance)
        shares = [(f"{place}.share", share), *((f"{place}.leave_out.{level}", of) for level, of in leave_out.items())]
        self.doc.faults.extend(f"{at}: must be below 1" for at, of in shares if of is not None and of >= 1)
        if len(self.doc.faults) > before or share is None:
            return None
        return Detail(
            steps, thresholds, share, frozenset(coarsest), {level: of for level, of in leave_out.items() if of}
        )

    def _coarsest(self, place: str, told: dict[str, Any], known: Collection[str]) -> list[str]:
        """What is told of the groups that always get the first step; of those of lists, the ones that there are."""
        before = len(self.doc.faults)
        listed = listed_groups(self.doc, place, told.get("coarsest", []), self.lists)
        if isinstance(told.get("coarsest"), dict) and isinstance(listed, list):
            told["coarsest"] = [code for code in listed if code in known]
            if listed and not told["coarsest"]:
                self.doc.faults.append(f"{place}: chooses no group of the levels of the table")
            listed = told["coarsest"]
        if len(self.doc.faults) > before:
            return []
        if not isinstance(listed, list) or any(str(code) not in known for code in listed):
            text = "must be a list of groups of the levels of the table, or say from which lists they are"
            self.doc.faults.append(f"{place}: {text}")
            return []
        return listed

    def _steps(self, place: str, told: object, names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        if not isinstance(told, list) or len(told) < 2 or not all(isinstance(step, list) and step for step in told):
            self.doc.faults.append(f"{place}: must be a list of at least two lists of tables, the coarsest first")
            return ()
        shown = [table for step in told for table in step]
        strange = [table for table in shown if table not in names]
        self.doc.fault_each(place, f"is none of {', '.join(names)}", map(repr, strange))
        lost = [name for name in names[1:] if name not in shown]
        self.doc.fault_each(place, "is shown in no step", lost)
        return tuple(tuple(step) for step in told)

    def _thresholds(self, place: str, told: object, number: int, levels: Collection[str]) -> dict[str, tuple[int, ...]]:
        """By level; one list is for all of them."""
        by_level = told if isinstance(told, dict) else dict.fromkeys(levels, told)
        lost = [level for level in levels if level not in by_level]
        self.doc.fault_each(place, "no list for level", lost)
        strange = [level for level in by_level if level not in levels]
        self.doc.fault_each(place, "is no level of the table", map(repr, strange))
        found = {}
        # Where steps are wrong, which is said of them, nobody knows how many numbers there must be.
        for level, of in by_level.items() if number > 0 else ():
            numbers = (
                tuple(int(n) for n in of if isinstance(n, Number) and n.isdecimal()) if isinstance(of, list) else ()
            )
            if len(numbers) != number or list(numbers) != sorted(set(numbers)):
                text = f"must be {number} ascending whole numbers, one for each step but the first"
                self.doc.faults.append(f"{place}.{level}: {text}")
            found[level] = numbers
        return found

    def _limit(self, place: str, told: dict[str, Any], chain: Sequence[str]) -> RecordLimit | None:
        if "limit" not in told:
            return None
        limit = read_table(f"{place}.limit", told["limit"], self.doc.faults)
        check_keys(f"{place}.limit", limit, ("per", "most"), self.doc.faults)
        per, most = limit.get("per"), limit.get("most")
        if per not in chain[1:]:
            above = f"one of {', '.join(chain[1:])}" if chain[1:] else f"a file above {chain[0]}, which has none"
            self.doc.faults.append(f"{place}.limit.per: must be {above}")
        if not (isinstance(most, Number) and most.isdecimal() and 0 < int(most) < 1_000_000):
            self.doc.faults.append(f"{place}.limit.most: must be a whole number above 0")
            return None
        return RecordLimit(str(per), int(most))

    def _stated(self, place: str, told: dict[str, Any], levels: Collection[str]) -> dict[str, Sensitivity]:
        if "stated" not in told:
            return {}
        stated = read_table(f"{place}.stated", told["stated"], self.doc.faults)
        check_keys(f"{place}.stated", stated, ("unbounded", "bounded"), self.doc.faults)
        both = [self.doc.fraction(f"{place}.stated.{key}", stated.get(key)) for key in ("unbounded", "bounded")]
        if both[0] is None or both[1] is None:
            return {}
        return dict.fromkeys(levels, Sensitivity(unbounded=both[0], bounded=both[1]))


def _all(conditions: Iterator[Where]) -> Where:
    found = Where()
    for condition in conditions:
        found &= condition
    return found
