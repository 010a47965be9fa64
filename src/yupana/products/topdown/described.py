"""A configuration of TopDown in the words of a description: its queries are tables, its spine areas. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from yupana.errors import nearest
from yupana.files.document import Number
from yupana.geography.hierarchy import Hierarchy, check_level_names, ordered_hierarchy
from yupana.plan.plan import Neighbours
from yupana.privacy.exact import INFINITE, Budget, show_exact
from yupana.products.described.description import EVERYONE, DescribedTable, Description, in_join
from yupana.products.described.product import TABLES
from yupana.products.described.reading.declaration import TOPDOWN, DeclaredTopdown
from yupana.products.described.reading.description import parse
from yupana.products.described.stability import stability
from yupana.topdown.configuration import Configuration
from yupana.topdown.queries import DETAILED, TOTAL
from yupana.topdown.reading.configuration import parse_configuration

_OF_QUERIES: Final = ("title", "counts", "by", "margins", "budget")
"""What a table may say that is a query."""


@dataclass(frozen=True, slots=True)
class CountedColumn:
    """A column of the records that are counted, by what a histogram makes of it."""

    name: str  # as SQL calls it in a join
    # of each value of its domain, in order, the level of the attribute or the number of the block
    place: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DescribedConfiguration(Configuration):
    """A configuration that was read from a description, and how records become its histogram."""

    description: Description = field(kw_only=True)
    counted: str = field(kw_only=True)  # the file whose records are counted
    block: CountedColumn = field(kw_only=True)  # what tells the block; numbers are places in `areas.blocks`
    attributes: tuple[CountedColumn, ...] = field(kw_only=True)  # in the order of the schema
    query_of: tuple[tuple[str, str], ...] = field(kw_only=True)  # the query that each table of the description is

    @property
    def of_persons(self) -> bool:
        """No: which columns of a record change with another person a description does not say."""
        return False


def is_description(document: object) -> bool:
    """Whether a document of TopDown is a description: it says what records there are."""
    return isinstance(document, dict) and "files" in document


def described_document(config: DescribedConfiguration) -> dict[str, Any]:
    """The description with the budgets that the shares give, and the lists of files in their place."""
    shares = {
        (level, query.name): config.shares[level] * share
        for level, queries in config.queries.items()
        for query, share in queries
    }
    named = dict(config.query_of)
    budgets: dict[str, Budget] = {}
    for table in config.description.tables:
        for level in table.levels:
            share = shares.get((level.name, named[table.name]), Fraction(0))
            budgets[f"{table.name}/{level.name}"] = config.budget * share if share else Fraction(0)
    return TABLES.document(config.description.with_budgets(budgets))


def read_described(document: dict[str, Any], folder: Path, faults: list[str]) -> DescribedConfiguration | None:
    """Read a description with the table "topdown"; None, with faults, if it is none.

    Parameters
    ----------
    document : dict
        As `yupana.files.document.read_document` gives it. Lists of codes that stand in files are put in their place.
    folder : Path
        Which names of files are relative to.
    faults : list of str
        What is wrong is added to it, each beginning with the place.
    """
    faults += [
        f"{key}: is of tables that are measured one by one; leave it out for TopDown"
        for key in ("criteria", "postprocess")
        if key in document
    ]
    description = parse(document, folder, faults)
    if description is None or faults:
        return None
    told = TOPDOWN.read("topdown", document.get("topdown", {}), faults)
    if told is None:
        return None
    return _TopdownReader(description, told, faults).read()


@dataclass(frozen=True)
class _ClassedColumn:
    """A column whose values are put in classes, each in one."""

    name: str
    column: str
    classes: Mapping[str, frozenset[int]]


@dataclass(frozen=True)
class _TopdownReader:
    description: Description
    told: DeclaredTopdown
    faults: list[str]

    def read(self) -> DescribedConfiguration | None:
        tables = {table.name: table for table in self.description.tables}
        cells = self.told.cells
        if cells not in tables:
            self.faults.append(f"topdown.cells: {cells!r} is none of the tables{nearest(cells, tables)}")
            return None
        hierarchy = self._hierarchy(self.told.spine)
        self.faults.extend(
            f"topdown.invariants: {level!r} is no kind of areas of topdown.spine{nearest(level, self.told.spine)}"
            for level in self.told.invariants
            if level not in self.told.spine
        )
        for table in tables.values():
            self._check_table(table)
        if self.faults or hierarchy is None:
            return None
        variables = {name: self._variables(table) for name, table in tables.items()}
        if self.faults:
            return None
        finest, counted = variables[cells], tables[cells].counts
        queries, recodes = self._queries(variables, finest)
        budgets = self._budgets(tables, queries)
        self._check_fixed([*(of.column for of in finest), *self.description.areas[self.told.spine[-1]].columns])
        if self.faults:
            return None
        document = self._document(finest, recodes, budgets, hierarchy)
        read = parse_configuration(document, Path(), self.faults, hierarchy) if not self.faults else None
        if read is None or self.faults:
            return None
        return DescribedConfiguration(
            **{name: getattr(read, name) for name in Configuration.__dataclass_fields__}
            | {"privacy_unit": self.description.privacy_unit},
            description=self.description,
            counted=counted,
            block=self._block(hierarchy),
            attributes=tuple(
                self._counted(v.column, {value: i for i, of in enumerate(v.classes.values()) for value in of})
                for v in finest
            ),
            query_of=tuple(queries.items()),
        )

    def _document(
        self,
        finest: Sequence[_ClassedColumn],
        recodes: Mapping[str, tuple[str, list[list[Number]]]],
        budgets: Mapping[str, Mapping[str, Budget]],
        hierarchy: Hierarchy,
    ) -> dict[str, Any]:
        """What the same configuration would be, had it been written by schema, shares and queries."""
        # Without noise budgets are not told apart; then everything measured has the same share.
        weights = {
            level: {query: Fraction(1) if budget == INFINITE else Fraction(budget) for query, budget in of.items()}
            for level, of in budgets.items()
        }
        infinite = any(budget == INFINITE for of in budgets.values() for budget in of.values())
        whole = sum((sum(of.values(), Fraction(0)) for of in weights.values()), Fraction(0))
        of_level = {level: sum(weights.get(level, {}).values(), Fraction(0)) for level in hierarchy.levels}
        mechanism = self.description.mechanism
        return {
            "product": self.description.name,
            "mechanism": mechanism.value,
            mechanism.budget_name: show_exact(INFINITE if infinite else whole),
            "schema": {variable.name: list(variable.classes) for variable in finest},
            "recodes": {name: {"of": of, "groups": groups} for name, (of, groups) in recodes.items()},
            "shares": {level: str(share / whole) for level, share in of_level.items()},
            "queries": {
                level: {query: str(budget / of_level[level]) for query, budget in weights[level].items()}
                for level in hierarchy.levels
                if of_level[level]
            },
            "invariants": {level: [TOTAL] for level in self.told.invariants},
            "constraints": {"structural_zeros": self._zeros(finest)},
        }

    # Areas.

    def _hierarchy(self, spine: Sequence[str]) -> Hierarchy | None:
        kinds = self.description.areas
        if any(name not in kinds for name in spine):
            self.faults.append(
                f"topdown.spine: must be a list of kinds of areas from the one of everything down: {', '.join(kinds)}"
            )
            return None
        before = len(self.faults)
        check_level_names("topdown.spine", spine, self.faults)
        of_blocks = kinds[spine[-1]]
        for kind in (kinds[name] for name in spine):
            if len(kind.columns) > 1 or kind.columns not in {(), of_blocks.columns}:
                self.faults.append(f"topdown.spine: {kind.name} is of another column than {of_blocks.name}, or several")
            elif any(len(areas) != 1 for areas in kind.of):
                self.faults.append(f"topdown.spine: a code lies in no area of {kind.name}, or in several")
        if len(kinds[spine[0]].codes) != 1:
            self.faults.append(f"topdown.spine: {spine[0]} must be one area, which holds everything")
        if len(self.faults) > before:
            return None
        of_value = [[kind.of[value if kind.columns else 0][0] for kind in map(kinds.__getitem__, spine)]
                    for value in range(len(of_blocks.of))]  # fmt: skip
        parent: list[dict[str, str]] = []
        for above, here in pairwise(range(len(spine))):
            found: dict[str, set[str]] = {}
            for places in of_value:
                unit, over = kinds[spine[here]].codes[places[here]], kinds[spine[above]].codes[places[above]]
                found.setdefault(unit, set()).add(over)
            torn = [unit for unit, over in found.items() if len(over) > 1]
            if torn:
                self.faults.append(
                    f"topdown.spine: {torn[0]!r} of {spine[here]} lies in several areas of {spine[above]}"
                )
            parent.append({unit: min(over) for unit, over in found.items()})
        return ordered_hierarchy(tuple(spine), kinds[spine[0]].codes[0], parent)

    def _block(self, hierarchy: Hierarchy) -> CountedColumn:
        kind = self.description.areas[hierarchy.levels[-1]]
        number = {code: i for i, code in enumerate(hierarchy.blocks)}
        # No record has a number below the least.
        below = [0] * kind.values[0].start if kind.values else []
        return CountedColumn("".join(kind.columns), (*below, *(number[kind.codes[of[0]]] for of in kind.of)))

    def _check_fixed(self, columns: Sequence[str]) -> None:
        """That no change of a unit changes what the histogram reads of other records, measured or not."""
        unit = self.description.unit
        for column in (self.description.columns[name] for name in dict.fromkeys(columns) if name):
            if column.file != unit and not column.fixed:
                place = f"files.{column.file}.columns.{column.name}"
                self.faults.append(f"{place}: must be fixed, as the histogram reads it of every {unit} record below")

    # Tables.

    def _check_table(self, table: DescribedTable) -> None:
        """That every record of the unit counts once in the table, in areas of the spine."""
        place, made, spine = f"tables.{table.name}", self.description, self.told.spine
        if made.neighbours is not Neighbours.BOUNDED:
            fault = 'neighbours: must be "replace": budgets of TopDown are of one record changed'
            self.faults.extend([fault] if fault not in self.faults else [])
        if table.counts != made.unit:
            self.faults.append(f"{place}.counts: must be {made.unit}, the unit, as one record is what TopDown protects")
            return
        told = made.document["tables"][table.name]
        self.faults.extend(
            f"{place}.{key}: every record counts once in every query, in cells known beforehand; leave it out"
            for key in told
            if key not in _OF_QUERIES
        )
        by_margin = [level for level, budget in told["budget"].items() if isinstance(budget, dict)]
        self.faults.extend(
            f"{place}.budget.{level}: must be a budget; what TopDown estimates has no margin known beforehand"
            for level in by_margin
        )
        for level in table.levels:
            if level.groups != EVERYONE or level.areas not in spine:
                self.faults.append(f"{place}.budget.{level.name}: is no kind of areas of topdown.spine, of everyone")
            # The theorem of TopDown is about one record that is changed (docs/topdown-privacy.md).
            elif any(m.records > 1 or m.shared is not None for m in stability(made, table, level).moves):
                self.faults.append(f"{place}: one {made.privacy_unit} moves more than one of its records")

    def _variables(self, table: DescribedTable) -> tuple[_ClassedColumn, ...]:
        """What a table tells apart: each column once, each of its values in one class."""
        place = f"tables.{table.name}.by"
        by = self.description.document["tables"][table.name].get("by", [])
        recodes = self.description.document.get("recodes", {})
        columns = [str(recodes[name]["column"] if name in recodes else name) for name in by]
        if len(set(columns)) < len(columns):
            self.faults.append(f"{place}: tells one column apart in two ways")
            return ()
        found = []
        for k, (name, told) in enumerate(zip(table.columns, columns, strict=False)):
            column = in_join(*told.split(".", 1))
            classes = {
                labels[k]: dict(where.columns)[column] for labels, where in zip(table.labels, table.cells, strict=True)
            }
            domain = self.description.columns[column].column.domain
            lost = [value for value in domain if sum(value in values for values in classes.values()) != 1]
            if lost:
                word = self.description.columns[column].column.written(lost[0])
                self.faults.append(f"{place}: every value of {told} must be in one class of {name}; {word!r} is not")
            found.append(_ClassedColumn(name, column, classes))
        return tuple(found)

    def _queries(
        self, variables: Mapping[str, Sequence[_ClassedColumn]], finest: Sequence[_ClassedColumn]
    ) -> tuple[dict[str, str], dict[str, tuple[str, list[list[Number]]]]]:
        """By table what TopDown calls its query, and the recodes that these names use."""
        queries: dict[str, str] = {}
        recodes: dict[str, tuple[str, list[list[Number]]]] = {}
        for table, kept in variables.items():
            parts: dict[str, str] = {}
            for variable in kept:
                of = next((one for one in finest if one.column == variable.column), None)
                groups = None if of is None else _groups(of, variable)
                if of is None or groups is None:
                    self.faults.append(
                        f"tables.{table}.by: {variable.name} tells records apart that {self.told.cells}, which "
                        "topdown.cells names, does not"
                    )
                    continue
                parts[of.name] = of.name if all(len(group) == 1 for group in groups) else variable.name
                if parts[of.name] != of.name:
                    recodes[variable.name] = of.name, groups
            names = [parts[one.name] for one in finest if one.name in parts]
            queries[table] = "*".join(names) or TOTAL
            if names == [one.name for one in finest] and names:
                queries[table] = DETAILED
        return queries, recodes

    def _budgets(
        self, tables: Mapping[str, DescribedTable], queries: Mapping[str, str]
    ) -> dict[str, dict[str, Budget]]:
        """The budget of each query by geolevel."""
        found: dict[str, dict[str, Budget]] = {}
        for table in tables.values():
            for level, budget in table.budgets.items():
                if queries[table.name] in found.setdefault(level, {}):
                    self.faults.append(f"tables.{table.name}.budget.{level}: another table is the same query there")
                found[level][queries[table.name]] = budget
        above_0 = [budget for of in found.values() for budget in of.values() if budget != 0]
        if INFINITE in above_0 and any(budget != INFINITE for budget in above_0):
            self.faults.append("tables: some budgets are infinite and others are not; without noise all are infinite")
        return found

    def _zeros(self, finest: Sequence[_ClassedColumn]) -> list[dict[str, str]]:
        """What is kept 0: by column the label of a class."""
        named = {variable.name: list(variable.classes) for variable in finest}
        self.faults.extend(
            f"topdown.structural_zeros: {key} = {label!r} is no class of the cells; there are {named}"
            for one in self.told.structural_zeros
            for key, label in one.items()
            if label not in named.get(key.rpartition(".")[2], ())
        )
        zeros = self.told.structural_zeros
        return [{key.rpartition(".")[2]: str(label) for key, label in one.items()} for one in zeros]

    def _counted(self, column: str, level: Mapping[int, int]) -> CountedColumn:
        return CountedColumn(column, tuple(level[value] for value in self.description.columns[column].column.domain))


def _groups(finest: _ClassedColumn, variable: _ClassedColumn) -> list[list[Number]] | None:
    """Which classes of the finest each class is made of; None if one is cut."""
    groups: list[list[Number]] = [[] for _ in variable.classes]
    for number, values in enumerate(finest.classes.values()):
        inside = [i for i, of in enumerate(variable.classes.values()) if values & of]
        if len(inside) != 1:
            return None
        groups[inside[0]].append(Number(number))
    return groups
