"""Read the kinds of areas of a description, its groups, and the levels that cross them. Public."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from yupana.errors import nearest
from yupana.files.codes import PAIRS, pairs_of
from yupana.files.document import Number, check_keys, is_text, read_table
from yupana.geography.block_file import BlockFile
from yupana.geography.hierarchy import check_level_names, hierarchy_of
from yupana.plan.predicates import Where
from yupana.plan.responses import ResponseGroup
from yupana.products.described.description import EVERYONE, AreaKind, DescribedFile, DescribedLevel, in_join
from yupana.products.described.reading.blocks import read_block_areas
from yupana.products.described.reading.conditions import ConditionReader
from yupana.products.described.reading.document import DescriptionDocument
from yupana.products.described.reading.group_lists import GroupList, is_group_code, listed_groups, read_group_lists
from yupana.products.described.reading.responses import members_of, response_of

_OPTIONAL: Final = ("column", "from", "first", "of", "code", "labels", "blocks", "nowhere")
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
        for name, told in self.doc.tables_of("hierarchies"):
            self._hierarchy(f"hierarchies.{name}", told)
        for name, told in self.doc.tables_of("areas"):
            self.areas[name] = self._area(name, told)
        return self.areas

    def _hierarchy(self, place: str, told: dict[str, Any]) -> None:
        """Kinds of areas by one table of units and parents, from the one that holds everything to codes of a column."""
        doc = self.doc
        check_keys(place, told, ("column", "levels", "of"), doc.faults)
        column, levels = self.conditions.column(f"{place}.column", told.get("column")), told.get("levels")
        if not isinstance(levels, list) or not levels:
            doc.faults.append(f"{place}.levels: must be a list of kinds of areas, from the one of everything down")
            return
        check_level_names(f"{place}.levels", levels, doc.faults)
        again = [
            level
            for level in map(str, levels)
            if level in {*self.areas, *read_table("areas", doc.told.get("areas", {}), [])}
        ]
        doc.fault_each(f"{place}.levels", "is the name of two kinds of areas", again)
        pairs = pairs_of(
            f"{place}.of", PAIRS.read(f"{place}.of", told.get("of"), doc.faults) or {}, doc.folder, doc.faults
        )
        if column is None or not column.column.words:
            doc.faults.append(f"{place}.column: must be a column of codes")
        if doc.faults or column is None:
            return
        found = hierarchy_of(f"{place}.of", levels, pairs, doc.faults)
        if found is None:
            return
        told["of"], words = found.pairs, column.column.words
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
            above = {word: str(told["of"][unit]) for word, unit in above.items()}
        self.areas[levels[0]] = AreaKind(levels[0], "", found.units[0], ((0,),), {})

    def _area(self, name: str, told: dict[str, Any]) -> AreaKind:
        place = f"areas.{name}"
        self.doc.check_name(place, name)
        check_keys(place, told, (), self.doc.faults, optional=_OPTIONAL)
        labels = {
            code: label
            for code, label in read_table(f"{place}.labels", told.get("labels", {}), self.doc.faults).items()
            if self.doc.is_text(f"{place}.labels.{code}", label)
        }
        if "blocks" in told:
            return read_block_areas(self.doc, name, told, self.blocks)
        if "nowhere" in told:
            self.doc.faults.append(f"{place}.nowhere: is of areas that are made of blocks")
        if self.blocks and told.keys() & {"column", "from", "first", "of"}:
            text = "where there is a file of blocks, areas are made of these (blocks) or hold everything (code)"
            self.doc.faults.append(f"{place}: {text}")
            return AreaKind(name, "", ("1",), ((0,),), labels)
        if "from" in told:
            return self._area_above(name, told, labels)
        if "column" not in told:
            code = told.get("code", "1")
            if not is_text(code) or "of" in told or "first" in told:
                self.doc.faults.append(f"{place}: without a column it is one area, and has a code and labels alone")
                code = "1"
            return AreaKind(name, "", (code,), ((0,),), labels)
        column = self.conditions.column(f"{place}.column", told["column"])
        if column is None or not column.column.words:
            self.doc.faults.append(f"{place}.column: must be a column of codes")
            return AreaKind(name, "", ("1",), ((0,),), labels)
        words = column.column.words
        pairs = self._area_pairs(place, told, words)
        if "first" not in told and "of" not in told:
            labels = {words[value]: label for value, label in column.labels.items()} | labels
        return _area_kind(name, in_join(column.file, column.name), pairs, labels)

    def _area_above(self, name: str, told: dict[str, Any], labels: Mapping[str, str]) -> AreaKind:
        """Areas of areas: what the areas of another kind, which stands before it, lie in."""
        place, below = f"areas.{name}", self.areas.get(str(told["from"]))
        if below is None or not below.column:
            known = [kind for kind, of in self.areas.items() if of.column]
            self.doc.faults.append(f"{place}.from: must be a kind of areas that stands before it: {', '.join(known)}")
        if "column" in told or ("of" in told) == ("first" in told):
            self.doc.faults.append(f"{place}: with from it has either of or first, and no column")
        if below is None or self.doc.faults:
            return AreaKind(name, "", ("1",), ((0,),), labels)
        above = self._area_pairs(place, told, below.codes)
        pairs = [sorted({area for code in codes for area in above[code]}) for codes in below.of]
        return _area_kind(name, below.column, pairs, labels)

    def _area_pairs(self, place: str, told: dict[str, Any], words: Sequence[str]) -> list[list[str]]:
        """Of each code of a column the areas it lies in."""
        if "first" in told:
            digits = told["first"]
            if not (isinstance(digits, Number) and digits.isdecimal() and 0 < int(digits) <= min(map(len, words))):
                self.doc.faults.append(f"{place}.first: must be a number of characters that every code has")
                return [[word] for word in words]
            return [[word[: int(digits)]] for word in words]
        if "of" not in told:
            return [[word] for word in words]
        read = PAIRS.read(f"{place}.of", told["of"], self.doc.faults) or {}
        pairs = pairs_of(f"{place}.of", read, self.doc.folder, self.doc.faults)
        strange = [code for code in pairs if code not in words]
        if not isinstance(read, dict):
            # A public file of a whole hierarchy tells of other levels, too.
            strange, pairs = [], {code: areas for code, areas in pairs.items() if code in words}
        told["of"] = pairs
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
    for code, told in doc.tables_of("groups"):
        place = f"groups.{code}"
        if not is_group_code(code):
            doc.faults.append(f"{place}: is no code for a group; * is everyone")
        if "label" in told:
            doc.is_text(f"{place}.label", told["label"])
        if "response" not in told:
            check_keys(place, told, ("where",), doc.faults, optional=("label",))
            found[code] = conditions.where(f"{place}.where", told.get("where"))
            continue
        check_keys(place, told, ("response", "codes"), doc.faults, optional=("label", "alone"))
        response = response_of(doc, f"{place}.response", told["response"], files)
        if response is None:
            continue
        name = told["response"]
        if name not in places:
            places[name] = members_of(response)
        found[code] = _by_response(doc, place, told, places[name])
    return found, lists


def _by_response(doc: DescriptionDocument, place: str, told: dict[str, Any], of: Mapping[str, int]) -> ResponseGroup:
    """A group by a response; ``of`` are its codes, with their places."""
    codes, alone = told.get("codes"), told.get("alone", False)
    if not isinstance(codes, list) or not all(isinstance(code, str) for code in codes):
        doc.faults.append(f"{place}.codes: must be a list of codes of {told['response']}")
        codes = []
    strange = [f"{code!r}{nearest(code, of)}" for code in codes if code not in of]
    doc.fault_each(f"{place}.codes", f"no code of {told['response']} is", strange)
    if len(set(codes)) < len(codes):
        doc.faults.append(f"{place}.codes: names one twice")
    if not isinstance(alone, bool):
        doc.faults.append(f"{place}.alone: must be true or false")
    return ResponseGroup(told["response"], frozenset(of[code] for code in codes if code in of), alone is True)


def read_levels(
    doc: DescriptionDocument, areas: Mapping[str, AreaKind], groups: Collection[str], lists: Mapping[str, GroupList]
) -> dict[str, DescribedLevel]:
    """Kinds of areas crossed with groups; a kind of areas is a level of everyone, too."""
    levels = {name: DescribedLevel(name, name, EVERYONE) for name in areas}
    for name, told in doc.tables_of("levels"):
        place = f"levels.{name}"
        if not _LEVEL.fullmatch(name):
            doc.faults.append(f"{place}: a name is one word without quotes, brackets, |, =, / and :")
        check_keys(place, told, ("areas",), doc.faults, optional=("groups",))
        kind = told.get("areas")
        if not isinstance(kind, str) or kind not in areas:
            doc.faults.append(f"{place}.areas: {kind!r} is no kind of areas{nearest(str(kind), areas)}")
        before = len(doc.faults)
        of = listed_groups(doc, f"{place}.groups", told.get("groups", list(EVERYONE)), lists)
        if len(doc.faults) > before:
            continue
        if not isinstance(of, list) or not of or not all(isinstance(code, str) for code in of):
            doc.faults.append(f"{place}.groups: must be a list of codes of groups, or say from which lists they are")
            continue
        strange = [code for code in of if code not in groups and (code,) != EVERYONE]
        doc.fault_each(f"{place}.groups", "is no group", map(repr, strange))
        if len(set(of)) < len(of):
            doc.faults.append(f"{place}.groups: names one twice")
        if "groups" in told:
            told["groups"] = of
        levels[name] = DescribedLevel(name, str(kind), tuple(of))
    return levels
