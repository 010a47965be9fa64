"""Read lists of groups by a response from public files, and choose groups of them by what their rows say. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from yupana.files.delimited import TextRow, read_rows
from yupana.files.document import is_text
from yupana.products.described.description import EVERYONE, DescribedFile
from yupana.products.described.reading.declaration import Condition, DeclaredChoice, DeclaredGroupList
from yupana.products.described.reading.document import DescriptionDocument
from yupana.products.described.reading.responses import members_of, response_of


@dataclass(frozen=True, slots=True)
class GroupList:
    """What a public file says of its groups: of each, by code, the row in every column."""

    rows: Mapping[str, Mapping[str, str]]

    @property
    def columns(self) -> tuple[str, ...]:
        """What rows say something in."""
        return tuple(next(iter(self.rows.values()), {}))


def read_group_lists(doc: DescriptionDocument, files: Mapping[str, DescribedFile]) -> dict[str, GroupList]:
    """Read them all, and write their groups into the document as if by hand, in place of the lists."""
    found: dict[str, GroupList] = {}
    groups: dict[str, Any] = {}
    own = doc.told.get("groups", {})
    for name, told in doc.read.group_lists.items():
        place = f"group_lists.{name}"
        made, found[name] = _list(doc, place, told, files)
        for code in made:
            if code in own or code in groups:
                doc.faults.append(f"{place}: group {code} is in another list, or under groups, too")
        groups |= made
    if "group_lists" in doc.told and not doc.faults:
        doc.told["groups"] = {**own, **groups}
        del doc.told["group_lists"]
    return found


def _list(
    doc: DescriptionDocument, place: str, told: DeclaredGroupList, files: Mapping[str, DescribedFile]
) -> tuple[dict[str, Any], GroupList]:
    """The groups of one list, as `groups` would say them, and its rows."""
    response = response_of(doc, f"{place}.response", told.response, files)
    if response is None:
        return {}, GroupList({})
    label, members = told.label or told.code, told.members
    rows: dict[str, TextRow] = {}
    before = len(doc.faults)
    for row in read_rows(f"{place}.file", doc.folder / told.file, (told.code, label), doc.faults):
        code, where = row.values[told.code], f"{place}.file: {told.file}: line {row.line}"
        if code in rows:
            doc.faults.append(f"{where}: group {code} stands in line {rows[code].line} already")
        elif not is_group_code(code) or not is_text(row.values[label]):
            doc.faults.append(f"{where}: {told.code} must be a code without |, and {label} a text")
        rows.setdefault(code, row)
    if not rows:
        if len(doc.faults) == before:
            doc.faults.append(f"{place}.file: lists no group")
        return {}, GroupList({})
    read = GroupList({code: row.values for code, row in rows.items()})
    lists = {place.partition(".")[2]: read}
    alone = set() if told.alone is None else set(_chosen(doc, f"{place}.alone", told.alone, lists))
    known, of = members_of(response), {code: dict[str, None]() for code in rows}
    columns = (members["group"], members["code"])
    for row in read_rows(f"{place}.members", doc.folder / members["file"], columns, doc.faults):
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


def is_group_code(code: str) -> bool:
    """Whether a group may be called so in tables, where ``*`` is everyone."""
    return is_text(code) and "|" not in code and (code,) != EVERYONE


def listed_groups(
    doc: DescriptionDocument, place: str, told: Sequence[str] | DeclaredChoice, lists: Mapping[str, GroupList]
) -> list[str]:
    """Groups as they are named, or those of lists as ``{ from, where }`` chooses them, ordered by code."""
    if not isinstance(told, DeclaredChoice):
        return list(told)
    if any(name not in lists for name in told.from_):
        known = f"some of {', '.join(lists)}" if lists else "lists of groups, and there are no group_lists"
        doc.faults.append(f"{place}.from: must be a list of {known}")
        return []
    before = len(doc.faults)
    found = _chosen(doc, f"{place}.where", told.where, {name: lists[name] for name in told.from_})
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
