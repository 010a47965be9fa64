"""Read the kinds of areas of a description, its groups, and the levels that cross them. Public."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from yupana.errors import nearest
from yupana.files.codes import pairs_of
from yupana.geography.block_file import BlockFile
from yupana.geography.hierarchy import check_level_names, hierarchy_of
from yupana.plan.predicates import Where
from yupana.plan.responses import ResponseGroup
from yupana.products.described.description import EVERYONE, AreaKind, DescribedFile, DescribedLevel, in_join
from yupana.products.described.reading.blocks import read_block_areas
from yupana.products.described.reading.conditions import ConditionReader
from yupana.products.described.reading.declaration import (
    GROUP,
    DeclaredAreaKind,
    DeclaredGroup,
    DeclaredHierarchy,
    DeclaredResponseGroup,
)
from yupana.products.described.reading.document import DescriptionDocument
from yupana.products.described.reading.group_lists import GroupList, is_group_code, listed_groups, read_group_lists
from yupana.products.described.reading.responses import members_of, response_of

_LEVEL: Final = re.compile(r"[^\s\"'|=\[\]/:.]{1,63}")


@dataclass(frozen=True)
class AreaReader:
    """Reads kinds of areas; those that are made of others stand after them.

    Attributes
    ----------
    doc : DescriptionDocument
    conditions : ConditionReader
    blocks : BlockFile or None
        That areas are made of, where there is one.
    areas : dict of name to AreaKind
    """

    doc: DescriptionDocument
    conditions: ConditionReader
    blocks: BlockFile | None
    areas: dict[str, AreaKind] = field(default_factory=dict)

    def read(self) -> dict[str, AreaKind]:
        """Read them all, those of hierarchies first."""
        for name, hierarchy in self.doc.read.hierarchies.items():
            self._hierarchy(name, hierarchy)
        for name, told in self.doc.read.areas.items():
            self.areas[name] = self._area(name, told)
        return self.areas

    def _hierarchy(self, name: str, told: DeclaredHierarchy) -> None:
        """Kinds of areas by one table of units and parents, from the one that holds everything to codes of a column."""
        doc, place, levels = self.doc, f"hierarchies.{name}", told.levels
        column = self.conditions.column(f"{place}.column", told.column)
        check_level_names(f"{place}.levels", levels, doc.faults)
        again = [level for level in levels if level in {*self.areas, *doc.read.areas}]
        doc.fault_each(f"{place}.levels", "is the name of two kinds of areas", again)
        pairs = pairs_of(f"{place}.of", told.of, doc.folder, doc.faults)
        if column is None or not column.column.words:
            doc.faults.append(f"{place}.column: must be a column of codes")
        if doc.faults or column is None:
            return
        found = hierarchy_of(f"{place}.of", levels, pairs, doc.faults)
        if found is None:
            return
        above_of, words = found.pairs, column.column.words
        doc.at("hierarchies", name)["of"] = above_of
        for what, odd in (
            (f"codes of {column.file}.{column.name} are no unit of {levels[-1]}", set(words) - set(found.blocks)),
            (f"units of {levels[-1]} are no code of {column.file}.{column.name}", set(found.blocks) - set(words)),
        ):
            if odd:
                doc.faults.append(f"{place}.of: {len(odd)} {what}, such as {min(odd)!r}")
        if doc.faults:
            return
        named = {words[value]: label for value, label in column.labels.items()}
        above = {word: word for word in words}
        for level in reversed(levels[1:]):
            inside = [[above[word]] for word in words]
            labels = named if level == levels[-1] else {}
            self.areas[level] = _area_kind(level, in_join(column.file, column.name), inside, labels)
            above = {word: str(above_of[unit]) for word, unit in above.items()}
        self.areas[levels[0]] = AreaKind(levels[0], "", found.units[0], ((0,),), {})

    def _area(self, name: str, told: DeclaredAreaKind) -> AreaKind:
        place = f"areas.{name}"
        one = AreaKind(name, "", (told.code or "1",), ((0,),), told.labels)
        if told.blocks is not None:
            return read_block_areas(self.doc, name, told, self.blocks)
        if told.nowhere is not None:
            self.doc.faults.append(f"{place}.nowhere: is of areas that are made of blocks")
        if self.blocks and (told.column or told.from_ or told.first or told.of is not None):
            text = "where there is a file of blocks, areas are made of these (blocks) or hold everything (code)"
            self.doc.faults.append(f"{place}: {text}")
            return one
        if told.from_ is not None:
            return self._area_above(name, told)
        if told.column is None:
            if told.of is not None or told.first is not None:
                self.doc.faults.append(f"{place}: without a column it is one area, and has a code and labels alone")
            return one
        column = self.conditions.column(f"{place}.column", told.column)
        if column is None or not column.column.words:
            self.doc.faults.append(f"{place}.column: must be a column of codes")
            return one
        words, labels = column.column.words, told.labels
        pairs = self._area_pairs(name, told, words)
        if told.first is None and told.of is None:
            labels = {words[value]: label for value, label in column.labels.items()} | dict(labels)
        return _area_kind(name, in_join(column.file, column.name), pairs, labels)

    def _area_above(self, name: str, told: DeclaredAreaKind) -> AreaKind:
        """Areas of areas: what the areas of another kind, which stands before it, lie in."""
        place, below = f"areas.{name}", self.areas.get(str(told.from_))
        if below is None or not below.column:
            known = [kind for kind, of in self.areas.items() if of.column]
            self.doc.faults.append(f"{place}.from: must be a kind of areas that stands before it: {', '.join(known)}")
        if told.column is not None or (told.of is None) == (told.first is None):
            self.doc.faults.append(f"{place}: with from it has either of or first, and no column")
        if below is None or self.doc.faults:
            return AreaKind(name, "", ("1",), ((0,),), told.labels)
        above = self._area_pairs(name, told, below.codes)
        pairs = [sorted({area for code in codes for area in above[code]}) for codes in below.of]
        return _area_kind(name, below.column, pairs, told.labels)

    def _area_pairs(self, name: str, told: DeclaredAreaKind, words: Sequence[str]) -> list[list[str]]:
        """Of each code of a column, or of areas below, the areas it lies in."""
        place = f"areas.{name}"
        if told.first is not None:
            if told.first > min(map(len, words)):
                self.doc.faults.append(f"{place}.first: must be a number of characters that every code has")
            return [[word[: told.first]] for word in words]
        if told.of is None:
            return [[word] for word in words]
        pairs = pairs_of(f"{place}.of", told.of, self.doc.folder, self.doc.faults)
        strange = [code for code in pairs if code not in words]
        if not isinstance(told.of, dict):
            # A public file of a whole hierarchy tells of other levels, too.
            strange, pairs = [], {code: areas for code, areas in pairs.items() if code in words}
        self.doc.at("areas", name)["of"] = pairs
        self.doc.fault_each(f"{place}.of", "is none of the codes below", map(repr, strange))
        lost = [word for word in words if word not in pairs]
        if lost:
            self.doc.faults.append(
                f"{place}.of: {len(lost)} codes below lie in no area, such as {lost[0]!r}; write them with an "
                "empty list if that is meant"
            )
        return [pairs.get(word, []) for word in words]


def _area_kind(name: str, column: str, pairs: Iterable[Sequence[str]], labels: Mapping[str, str]) -> AreaKind:
    """Areas by what each value of a column lies in."""
    inside = list(pairs)
    codes = tuple(sorted({area for areas in inside for area in areas}))
    number = {code: i for i, code in enumerate(codes)}
    of = tuple(tuple(sorted({number[area] for area in areas})) for areas in inside)
    return AreaKind(name, column, codes, of, labels)


def read_groups(
    doc: DescriptionDocument, conditions: ConditionReader, files: Mapping[str, DescribedFile]
) -> tuple[dict[str, Where | ResponseGroup], dict[str, GroupList]]:
    """Which records each population group holds, those of lists among them; and the lists."""
    before = len(doc.faults)
    lists = read_group_lists(doc, files)
    if len(doc.faults) > before:
        return {}, lists
    found: dict[str, Where | ResponseGroup] = {}
    places: dict[str, dict[str, int]] = {}
    # Those of lists stand in the document now.
    for code, of in doc.told.get("groups", {}).items():
        place = f"groups.{code}"
        if not is_group_code(code):
            doc.faults.append(f"{place}: is no code for a group; * is everyone")
        told = doc.read.groups.get(code) or GROUP.read(place, of, doc.faults)
        if isinstance(told, DeclaredGroup):
            found[code] = conditions.where(f"{place}.where", told.where)
        elif told is not None and (response := response_of(doc, f"{place}.response", told.response, files)):
            known = places.setdefault(told.response, members_of(response))
            found[code] = _by_response(doc, place, told, known)
    return found, lists


def _by_response(
    doc: DescriptionDocument, place: str, told: DeclaredResponseGroup, of: Mapping[str, int]
) -> ResponseGroup:
    """A group by a response; ``of`` are its codes, with their places."""
    strange = [f"{code!r}{nearest(code, of)}" for code in told.codes if code not in of]
    doc.fault_each(f"{place}.codes", f"no code of {told.response} is", strange)
    if len(set(told.codes)) < len(told.codes):
        doc.faults.append(f"{place}.codes: names one twice")
    return ResponseGroup(told.response, frozenset(of[code] for code in told.codes if code in of), told.alone)


def read_levels(
    doc: DescriptionDocument, areas: Mapping[str, AreaKind], groups: Collection[str], lists: Mapping[str, GroupList]
) -> dict[str, DescribedLevel]:
    """Kinds of areas crossed with groups; a kind of areas is a level of everyone, too."""
    levels = {name: DescribedLevel(name, name, EVERYONE) for name in areas}
    for name, told in doc.read.levels.items():
        place = f"levels.{name}"
        if not _LEVEL.fullmatch(name):
            doc.faults.append(f"{place}: a name is one word without quotes, brackets, |, =, / and :")
        if told.areas not in areas:
            doc.faults.append(f"{place}.areas: {told.areas!r} is no kind of areas{nearest(told.areas, areas)}")
        of = EVERYONE if told.groups is None else listed_groups(doc, f"{place}.groups", told.groups, lists)
        strange = [code for code in of if code not in groups and (code,) != EVERYONE]
        doc.fault_each(f"{place}.groups", "is no group", map(repr, strange))
        if len(set(of)) < len(of):
            doc.faults.append(f"{place}.groups: names one twice")
        if told.groups is not None:
            doc.at("levels", name)["groups"] = list(of)
        levels[name] = DescribedLevel(name, told.areas, tuple(of))
    return levels
