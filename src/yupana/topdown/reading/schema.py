"""The tables of a configuration that say what a record can be: schema, recodes and constraints. Public."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from yupana.files.document import Number, check_keys, is_text, read_table
from yupana.topdown.queries import DETAILED, TOTAL, Attribute, Recode, Schema

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_RESERVED: Final = (TOTAL, DETAILED, "geolevel", "geounit", "block", "count", "value", "variance")
_MOST_CELLS: Final = 2**24
_MOST_LEVELS: Final = 2**16
_MAJOR_TYPES: Final = 7


def read_schema(value: object, faults: list[str]) -> Schema | None:
    """The attributes with their levels; None if there is a fault."""
    before = len(faults)
    table = read_table("schema", value, faults)
    if len(faults) == before and not table:
        faults.append("schema: has no attribute")
    for name in table:
        _check_name("schema", name, (), faults)
    _check_distinct("schema", list(table), faults)
    attributes = tuple(Attribute(name, _labels(f"schema.{name}", levels, faults)) for name, levels in table.items())
    if len(faults) > before:
        return None
    schema = Schema(attributes)
    if schema.cells > _MOST_CELLS:
        faults.append(f"schema: has {schema.cells:,} cells; at most {_MOST_CELLS:,} are possible")
        return None
    return schema


def _check_name(place: str, name: str, taken: Sequence[str], faults: list[str]) -> None:
    """Check the name of an attribute or a recode: it becomes a column, and part of a file's name."""
    if not _NAME.fullmatch(name):
        faults.append(f"{place}: {name!r} must be letters, digits and _, a letter first")
    elif name.lower() in _RESERVED:
        faults.append(f"{place}: {name!r} has a meaning of its own; choose another name")
    elif name.lower() in [other.lower() for other in taken]:
        faults.append(f"{place}: {name!r} is the name of an attribute; choose another name")


def _check_distinct(place: str, names: Sequence[str], faults: list[str]) -> None:
    """Columns are found by name whatever its case."""
    lower = [name.lower() for name in names]
    faults += [f"{place}: {name!r} is named twice" for i, name in enumerate(names) if lower[i] in lower[:i]]


def _labels(place: str, value: object, faults: list[str]) -> tuple[str, ...]:
    if isinstance(value, Number) and value.isdecimal() and len(value) <= 8 and 0 < int(value) <= _MOST_LEVELS:
        return tuple(map(str, range(int(value))))
    if not isinstance(value, list) or not value:
        faults.append(f"{place}: must be a number of levels from 1 to {_MOST_LEVELS:,}, or a list of labels")
        return ()
    if not all(is_text(label) for label in value):
        faults.append(f"{place}: labels must be texts that are not empty")
        return ()
    repeated = dict.fromkeys(label for label in value if value.count(label) > 1)
    faults += [f"{place}: the label {label!r} is given twice" for label in repeated]
    return tuple(value)


def read_recodes(value: object, schema: Schema, faults: list[str]) -> dict[str, Recode]:
    """The recodes by name; those with a fault are left out."""
    table = read_table("recodes", value, faults)
    _check_distinct("recodes", list(table), faults)
    recodes = {}
    for name, entry in table.items():
        before = len(faults)
        place = f"recodes.{name}"
        _check_name("recodes", name, schema.names, faults)
        recode = read_table(place, entry, faults)
        if isinstance(entry, dict):
            check_keys(place, recode, ("of", "groups"), faults)
        if len(faults) > before:
            continue
        attributes = {attribute.name: attribute for attribute in schema.attributes}
        if not isinstance(recode["of"], str) or recode["of"] not in attributes:
            faults.append(f"{place}.of: {recode['of']!r} is no attribute of the schema")
            continue
        factor = _groups(f"{place}.groups", recode["groups"], attributes[recode["of"]], faults)
        if factor is not None:
            recodes[name] = Recode(name, recode["of"], factor)
    return recodes


def _groups(place: str, value: object, attribute: Attribute, faults: list[str]) -> tuple[int, ...] | None:
    """The group of each level, if every level lies in one group."""
    if not isinstance(value, list) or not value or not all(isinstance(group, list) and group for group in value):
        faults.append(f"{place}: must be a list of lists of levels, none empty")
        return None
    groups: dict[int, list[int]] = {}
    for number, group in enumerate(value):
        for item in group:
            level = _level(place, item, attribute, faults)
            if level is None:
                return None
            groups.setdefault(level, []).append(number)
    missing = [label for level, label in enumerate(attribute.labels) if level not in groups]
    repeated = [label for level, label in enumerate(attribute.labels) if len(groups.get(level, ())) > 1]
    if missing or repeated:
        wrong = [
            *([f"level {', '.join(missing)} of {attribute.name} is in no group"] if missing else []),
            *([f"level {', '.join(repeated)} of {attribute.name} is listed more than once"] if repeated else []),
        ]
        faults.append(f"{place}: {' and '.join(wrong)}; a query must cover every cell once")
        return None
    if len(value) in {1, attribute.size}:
        same = "summing over" if len(value) == 1 else "keeping"
        faults.append(f"{place}: is the same as {same} {attribute.name}; no recode is needed")
        return None
    return tuple(groups[level][0] for level in range(attribute.size))


def _level(place: str, value: object, attribute: Attribute, faults: list[str]) -> int | None:
    """A level by its number from 0, or by its label."""
    if isinstance(value, Number):
        if value.isdecimal() and len(value) <= 8 and int(value) < attribute.size:
            return int(value)
    elif isinstance(value, str) and value in attribute.labels:
        return attribute.labels.index(value)
    faults.append(f"{place}: {value!r} is no level of {attribute.name}: 0 to {attribute.size - 1}, or a label")
    return None


def read_constraints(
    value: object, schema: Schema, faults: list[str]
) -> tuple[str | None, tuple[tuple[int | None, ...], ...]]:
    """The attribute of group quarters, and the structural zeros: a level for each attribute, None for all."""
    table = read_table("constraints", value, faults)
    check_keys("constraints", table, (), faults, optional=("group_quarters", "structural_zeros"))
    quarters = table.get("group_quarters")
    if quarters is not None:
        _check_quarters(quarters, schema.attributes[0], faults)
    zeros = tuple(_structural_zeros(table.get("structural_zeros", []), schema, faults))
    return (None if quarters is None else str(quarters)), zeros


def _check_quarters(value: object, first: Attribute, faults: list[str]) -> None:
    place = "constraints.group_quarters"
    if value != first.name:
        faults.append(f"{place}: must be {first.name!r}, the first attribute of the schema; its level 0 is households")
    elif not 2 <= first.size <= _MAJOR_TYPES + 1:
        faults.append(
            f"{place}: {first.name} has {first.size} levels; households and up to {_MAJOR_TYPES} major types are 2 to "
            f"{_MAJOR_TYPES + 1}"
        )


def _structural_zeros(value: object, schema: Schema, faults: list[str]) -> Iterator[tuple[int | None, ...]]:
    place = "constraints.structural_zeros"
    if not isinstance(value, list):
        faults.append(f"{place}: must be a list of tables such as {{ {schema.names[0]} = 0 }}")
        return
    for number, entry in enumerate(value):
        here = f"{place}[{number}]"
        table: Mapping[str, object] = read_table(here, entry, faults)
        if entry == {}:
            faults.append(f"{here}: names no attribute, so every cell would be zero")
        check_keys(here, dict(table), (), faults, optional=schema.names)
        yield tuple(
            _level(f"{here}.{attribute.name}", table[attribute.name], attribute, faults)
            if attribute.name in table
            else None
            for attribute in schema.attributes
        )
