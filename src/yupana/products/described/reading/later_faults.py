"""Find the faults of a description that stand behind others, by reading it without the parts that have some. Public.

A part that names another cannot be judged where that one has a fault and was left out: then it has a fault that names
the other, and it is left out, too, and nothing is said of it.
"""

import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, Final

_UNKNOWN: Final = re.compile(r": key '([^']*)' is unknown")

Part = tuple[str, ...]
"""The keys of a part of the document, such as ``("files", "farms", "columns", "kind")``."""

_SECTIONS: Final = (
    *("files", "recodes", "hierarchies", "areas", "groups", "group_lists", "levels", "tables", "criteria"),
)
_WITHIN: Final = ("columns", "responses")


def later_faults(told: dict[str, Any], faults: list[str], read: Callable[[dict[str, Any], bool], list[str]]) -> None:
    """Add to the faults of a document those of the parts that were not read because of them.

    Parameters
    ----------
    told : dict
        The document; it stays as it is.
    faults : list of str
        Each begins with its place.
    read : callable
        Gives the faults of a document; if the second argument is False without those of its sensitivities.
    """
    rest, new, known, gone, check = deepcopy(told), list(faults), set(faults), set[str](), True
    while any(_part(rest, fault) for fault in new):
        # A key that is unknown may have been meant for one that sensitivities depend on.
        stray = [fault for fault in new if _drop_key(rest, fault)]
        wrong = {part for fault in new if fault not in stray and (part := _part(rest, fault))}
        check = check and not stray
        for part in wrong:
            gone |= _remove(rest, part)
        unit = rest["unit"]
        if ("unit",) in wrong or str(_table(unit).get("file", unit)) in gone:
            gone |= {str(_table(unit).get("column", unit))} - _table(rest["files"]).keys()
            check = False
            if not _give_unit(rest):
                return
        new = [fault for fault in read(deepcopy(rest), check) if fault not in known and _part(rest, fault)]
        known.update(new)
        following = {_part(rest, fault) for fault in new if any(_names(fault, name) for name in gone)}
        faults.extend(fault for fault in new if _part(rest, fault) not in following)


def _drop_key(told: dict[str, Any], fault: str) -> bool:
    """Take out the key that a fault calls unknown, if it does."""
    match, part = _UNKNOWN.search(fault), _part(told, fault)
    if match is None or part is None or ".".join(part) != _place(fault):
        return False
    _table(_at(told, part)).pop(match[1], None)
    return True


def _place(fault: str) -> str:
    return fault.partition(": ")[0]


def _part(told: dict[str, Any], fault: str) -> Part | None:
    """The smallest part that a fault is of; None if it is of none by itself."""
    place = _place(fault)
    found = [part for part in _parts(told) if f"{place}.".startswith(f"{'.'.join(part)}.")]
    if found:
        return max(found, key=len)
    head = place.partition(".")[0]
    return (head,) if head in told and head not in {*_SECTIONS, "blocks"} else None


def _parts(told: dict[str, Any]) -> Iterator[Part]:
    for section in _SECTIONS:
        for name, of in _table(told.get(section)).items():
            yield section, name
            for inner in _WITHIN if section == "files" else ():
                for column in _table(_table(of).get(inner)):
                    yield section, name, inner, column


def _table(of: object) -> dict[str, Any]:
    return of if isinstance(of, dict) else {}


def _at(told: dict[str, Any], part: Part) -> Any:  # noqa: ANN401 (a document)
    for key in part:
        told = told[key]
    return told


def _remove(told: dict[str, Any], part: Part) -> set[str]:
    """Take a part out, and give the names that other parts call it by."""
    if part in {("name",), ("unit",)}:
        told.update({"name": "x"} if part == ("name",) else {})
        return set()
    above = told
    for key in part[:-1]:
        above = _table(above.get(key))
    of = above.pop(part[-1], None)
    if len(part) == 1:
        return set()
    if len(part) == len(("files", "FILE", "columns", "COLUMN")):
        file = _table(told["files"].get(part[1]))
        if isinstance(hashed := file.get("hashed"), list):
            file["hashed"] = [name for name in hashed if name != part[3]]
        return {f"{part[1]}.{part[3]}"}
    made = [name for key in ("sums", "margins") for name in _table(_table(of).get(key))]
    levels = _table(of).get("levels")
    return {part[1], *made, *(map(str, levels) if isinstance(levels, list) else ())}


def _names(fault: str, name: str) -> bool:
    """Whether a fault names a part, or a column of a file."""
    written = repr(name)
    return written in fault or f"{written[:-1]}." in fault


def _give_unit(told: dict[str, Any]) -> bool:
    """Let some file at the bottom be protected, so that the others can be read; whether there is any."""
    files = _table(told.get("files"))
    parents = {str(_table(_table(of).get("parent")).get("file")) for of in files.values()}
    bottom = [name for name in files if name not in parents]
    if not bottom:
        return False
    told["unit"] = bottom[0]
    for of in files.values():
        for column in _table(_table(of).get("columns")).values():
            _table(column).pop("fixed", None)
    return True
