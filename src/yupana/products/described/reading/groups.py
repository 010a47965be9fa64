"""Read population groups, by conditions, by responses and from public lists; and the levels that have them. Public."""

from collections.abc import Mapping, Sequence
from typing import Any

from yupana.errors import nearest
from yupana.files.code_tables import TextRow, read_rows
from yupana.files.document import is_text
from yupana.files.names import fault_of
from yupana.plan.responses import ResponseGroup
from yupana.products.described.description import EVERYONE, DescribedLevel, MultipleResponse
from yupana.products.described.reading.declaration import (
    GROUP,
    Condition,
    DeclaredChoice,
    DeclaredGroup,
    DeclaredGroupList,
    DeclaredResponseGroup,
)
from yupana.products.described.reading.records import DescriptionDocument, GroupList


def _response_of(doc: DescriptionDocument, place: str, told: str) -> MultipleResponse | None:
    """A response by ``file.name``; None, with a fault, if there is none."""
    known = {f"{file.name}.{name}": of for file in doc.files.values() for name, of in file.responses.items()}
    if told in known:
        return known[told]
    there = nearest(told, known) or (f"; there are {', '.join(known)}" if known else "; no file has any")
    doc.faults.append(f"{place}: {told!r} is no response, such as persons.race{there}")
    return None


def _members_of(response: MultipleResponse) -> dict[str, int]:
    """The codes that may be members of groups, with their places: all but the one for none."""
    return {word: place for place, word in enumerate(response.column.words) if word != response.column.blank}


def _read_lists(doc: DescriptionDocument) -> None:
    """Read all lists, and write their groups into the document as if by hand, in place of the lists."""
    groups: dict[str, Any] = {}
    own = doc.told.get("groups", {})
    for name, told in doc.read.group_lists.items():
        place = f"group_lists.{name}"
        made, doc.lists[name] = _list(doc, place, told)
        for code in made:
            if code in own or code in groups:
                doc.faults.append(f"{place}: group {code} is in another list, or under groups, too")
        groups |= made
    if "group_lists" in doc.told and not doc.faults:
        doc.told["groups"] = {**own, **groups}
        del doc.told["group_lists"]


def _list(doc: DescriptionDocument, place: str, told: DeclaredGroupList) -> tuple[dict[str, Any], GroupList]:
    """The groups of one list, as `groups` would say them, and its rows."""
    response = _response_of(doc, f"{place}.response", told.response)
    if response is None:
        return {}, GroupList({})
    label, members = told.label or told.code, told.members
    rows: dict[str, TextRow] = {}
    before = len(doc.faults)
    for row in read_rows(f"{place}.file", doc.folder / told.file, (told.code, label), doc.faults, told.encoding):
        code, where = row.values[told.code], f"{place}.file: {told.file}: line {row.line}"
        if code in rows:
            doc.faults.append(f"{where}: group {code} stands in line {rows[code].line} already")
        elif not _is_group_code(code) or not is_text(row.values[label]):
            doc.faults.append(f"{where}: {told.code} must be a code without |, and {label} a text")
        rows.setdefault(code, row)
    if not rows:
        if len(doc.faults) == before:
            doc.faults.append(f"{place}.file: lists no group")
        return {}, GroupList({})
    read = GroupList({code: row.values for code, row in rows.items()})
    lists = {place.partition(".")[2]: read}
    alone = set() if told.alone is None else set(_chosen(doc, f"{place}.alone", told.alone, lists))
    known, of = _members_of(response), {code: dict[str, None]() for code in rows}
    columns = (members["group"], members["code"])
    for row in read_rows(f"{place}.members", doc.folder / members["file"], columns, doc.faults, told.encoding):
        group, code = (row.values[column] for column in columns)
        if code not in known:
            where = f"{place}.members: {members['file']}: line {row.line}"
            doc.faults.append(f"{where}: {code!r} is no code of {told.response}")
        # One file may tell the members of several lists.
        of.get(group, {})[code] = None
    return {
        code: {
            "label": row.values[label],
            "response": told.response,
            "codes": list(of[code]),
            **({"alone": True} if code in alone else {}),
        }
        for code, row in rows.items()
    }, read


def _is_group_code(code: str) -> bool:
    """Whether a group may be called so in tables, where ``*`` is everyone."""
    return not fault_of(code, parted=False) and (code,) != EVERYONE


def listed_groups(doc: DescriptionDocument, place: str, told: Sequence[str] | DeclaredChoice) -> list[str]:
    """Groups as they are named, or those of lists as ``{ from, where }`` chooses them, ordered by code."""
    if not isinstance(told, DeclaredChoice):
        return list(told)
    if strange := [name for name in told.from_ if name not in doc.lists]:
        known = f"some of {', '.join(doc.lists)}" if doc.lists else "lists of groups, and there are no group_lists"
        doc.faults.append(f"{place}.from: must be a list of {known}; {strange[0]!r} is none")
        return []
    before = len(doc.faults)
    found = _chosen(doc, f"{place}.where", told.where, {name: doc.lists[name] for name in told.from_})
    if not found and len(doc.faults) == before:
        doc.faults.append(f"{place}: chooses no group; no row says all of that")
    return sorted(found)


def _chosen(doc: DescriptionDocument, place: str, told: Condition, lists: Mapping[str, GroupList]) -> list[str]:
    """The groups whose rows say one of some texts in each of some columns."""
    wanted = {column: [values] if isinstance(values, str) else values for column, values in told.items()}
    rows = {code: row for of in lists.values() for code, row in of.rows.items()}
    for column, values in wanted.items():
        lost = [name for name, of in lists.items() if column not in of.columns]
        doc.faults.extend(
            f"{place}: {column!r} is no column of the file of {name}, which has {', '.join(lists[name].columns)}"
            for name in lost
        )
        if lost:
            continue
        said = dict.fromkeys(row[column] for row in rows.values())
        text = f"is said by no row; rows say {', '.join(list(said)[:6])}"
        doc.fault_each(f"{place}.{column}", text, (repr(value) for value in values if value not in said))
    return [code for code, row in rows.items() if all(row.get(column) in values for column, values in wanted.items())]


def read_groups(doc: DescriptionDocument) -> None:
    """Read lists of groups; and which records each population group holds, those of lists among them."""
    before = len(doc.faults)
    _read_lists(doc)
    if len(doc.faults) > before:
        return
    places: dict[str, dict[str, int]] = {}
    # Those of lists stand in the document now.
    for code, of in doc.told.get("groups", {}).items():
        place = f"groups.{code}"
        if not _is_group_code(code):
            doc.faults.append(f"{place}: is no code for a group; * is everyone")
        told = doc.read.groups.get(code) or GROUP.read(place, of, doc.faults)
        if isinstance(told, DeclaredGroup):
            doc.groups[code] = doc.where(f"{place}.where", told.where)
        elif told is not None and (response := _response_of(doc, f"{place}.response", told.response)):
            known = places.setdefault(told.response, _members_of(response))
            doc.groups[code] = _by_response(doc, place, told, known)


def _by_response(
    doc: DescriptionDocument, place: str, told: DeclaredResponseGroup, of: Mapping[str, int]
) -> ResponseGroup:
    """A group by a response; ``of`` are its codes, with their places."""
    strange = [f"{code!r}{nearest(code, of)}" for code in told.codes if code not in of]
    doc.fault_each(f"{place}.codes", f"no code of {told.response} is", strange)
    if len(set(told.codes)) < len(told.codes):
        doc.faults.append(f"{place}.codes: names one twice")
    return ResponseGroup(told.response, frozenset(of[code] for code in told.codes if code in of), told.alone)


def read_levels(doc: DescriptionDocument) -> None:
    """Kinds of areas crossed with groups; a kind of areas is a level of everyone, too."""
    doc.levels.update((name, DescribedLevel(name, name, EVERYONE)) for name in doc.areas)
    for name, told in doc.read.levels.items():
        place = f"levels.{name}"
        if told.areas not in doc.areas:
            doc.faults.append(f"{place}.areas: {told.areas!r} is no kind of areas{nearest(told.areas, doc.areas)}")
        of = EVERYONE if told.groups is None else listed_groups(doc, f"{place}.groups", told.groups)
        strange = [code for code in of if code not in doc.groups and (code,) != EVERYONE]
        doc.fault_each(f"{place}.groups", "is no group", map(repr, strange))
        if len(set(of)) < len(of):
            doc.faults.append(f"{place}.groups: names one twice")
        if told.groups is not None:
            doc.at("levels", name)["groups"] = list(of)
        doc.levels[name] = DescribedLevel(name, told.areas, tuple(of))
