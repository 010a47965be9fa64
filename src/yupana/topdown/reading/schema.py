"""The tables of a configuration that say what a record can be: schema, recodes and constraints. Public."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from yupana.files.document import Number, check_keys
from yupana.topdown.queries import DETAILED, TOTAL, Attribute, Recode, Schema
from yupana.topdown.reading.declaration import DeclaredConstraints, DeclaredRecode

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_RESERVED: Final = (TOTAL, DETAILED, "geolevel", "geounit", "block", "count", "value", "variance")
_MOST_CELLS: Final = 2**24
_MAJOR_TYPES: Final = 7


def read_schema(place: str, told: Mapping[str, int | Sequence[str]], faults: list[str]) -> Schema | None:
    """The attributes with their levels; None if there is a fault."""
    before = len(faults)
    if not told:
        faults.append(f"{place}: has no attribute")
    for name, levels in told.items():
        _check_name(place, name, (), faults)
        labels = () if isinstance(levels, int) else levels
        repeated = dict.fromkeys(label for label in labels if labels.count(label) > 1)
        faults += [f"{place}.{name}: the label {label!r} is given twice" for label in repeated]
    _check_distinct(place, list(told), faults)
    if len(faults) > before:
        return None
    schema = Schema(
        tuple(Attribute(name, tuple(map(str, range(of)) if isinstance(of, int) else of)) for name, of in told.items())
    )
    if schema.cells > _MOST_CELLS:
        faults.append(f"{place}: has {schema.cells:,} cells; at most {_MOST_CELLS:,} are possible")
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


def read_recodes(told: Mapping[str, DeclaredRecode], schema: Schema, faults: list[str]) -> dict[str, Recode]:
    """The recodes by name; those with a fault are left out."""
    _check_distinct("recodes", list(told), faults)
    attributes = {attribute.name: attribute for attribute in schema.attributes}
    recodes = {}
    for name, recode in told.items():
        before = len(faults)
        _check_name("recodes", name, schema.names, faults)
        if recode.of not in attributes:
            faults.append(f"recodes.{name}.of: {recode.of!r} is no attribute of the schema")
        if len(faults) > before:
            continue
        factor = _groups(f"recodes.{name}.groups", recode.groups, attributes[recode.of], faults)
        if factor is not None:
            recodes[name] = Recode(name, recode.of, factor)
    return recodes


def _groups(
    place: str, value: Sequence[Sequence[str]], attribute: Attribute, faults: list[str]
) -> tuple[int, ...] | None:
    """The group of each level, if every level lies in one group."""
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


def _level(place: str, value: str, attribute: Attribute, faults: list[str]) -> int | None:
    """A level by its number from 0, or by its label."""
    if isinstance(value, Number):
        if value.isdecimal() and len(value) <= 8 and int(value) < attribute.size:
            return int(value)
    elif value in attribute.labels:
        return attribute.labels.index(value)
    faults.append(f"{place}: {value!r} is no level of {attribute.name}: 0 to {attribute.size - 1}, or a label")
    return None


def read_zeros(told: DeclaredConstraints, schema: Schema, faults: list[str]) -> tuple[tuple[int | None, ...], ...]:
    """The structural zeros: of each a level for each attribute, or None; the group quarters are checked, too."""
    if told.group_quarters is not None:
        _check_quarters(told.group_quarters, schema.attributes[0], faults)
    zeros = []
    for number, zero in enumerate(told.structural_zeros):
        place = f"constraints.structural_zeros[{number}]"
        check_keys(place, zero, (), faults, optional=schema.names)
        zeros.append(
            tuple(
                _level(f"{place}.{of.name}", zero[of.name], of, faults) if of.name in zero else None
                for of in schema.attributes
            )
        )
    return tuple(zeros)


def _check_quarters(value: str, first: Attribute, faults: list[str]) -> None:
    place = "constraints.group_quarters"
    if value != first.name:
        faults.append(f"{place}: must be {first.name!r}, the first attribute of the schema; its level 0 is households")
    elif not 2 <= first.size <= _MAJOR_TYPES + 1:
        faults.append(
            f"{place}: {first.name} has {first.size} levels; households and up to {_MAJOR_TYPES} major types are 2 to "
            f"{_MAJOR_TYPES + 1}"
        )
