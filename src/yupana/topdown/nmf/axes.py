"""What axes of rows mean: queries of a schema, groups that are bounded, cells that nobody has. Public."""

from collections.abc import Mapping
from math import prod

from yupana.topdown.nmf.layout import ENDINGS, JOINED, LEVEL_NAMES, SUMMED, WHOLE
from yupana.topdown.nmf.rows import RowKind
from yupana.topdown.queries import DETAILED, TOTAL, Attribute, Factor, Query, Recode, Schema


def query_of(kind: RowKind, ending: str, schema: Schema, recodes: Mapping[str, Recode]) -> Query | str:
    """The query that rows answer, or what is wrong with them.

    Parameters
    ----------
    kind : RowKind
    ending : "DPQuery" or "Constraint"
        Whose names they have.
    schema : Schema
    recodes : mapping of name to Recode
    """
    suffix = ENDINGS[ending]
    if not kind.name.endswith(suffix):
        return f"{kind.name!r} does not end in {suffix}"
    factors: list[Factor] = []
    for attribute, axis in zip(schema.attributes, kind.axes, strict=True):
        factor = _factor(attribute, axis, recodes)
        if factor is None:
            return f"{kind.name}: {axis!r} is no way to keep {attribute.name}; it is a query of another schema"
        factors.append(factor)
    query = Query(_plain(kind.name.removesuffix(suffix)), tuple(factors))
    if query.shape != kind.shape:
        return f"{kind.name}: query_shape is {list(kind.shape)}, and its axes have {list(query.shape)} answers"
    return query


def named_as(query: Query, kind: RowKind, schema: Schema) -> bool:
    """Whether the name of rows says what their axes do."""
    if query.name == TOTAL:
        return query.size == 1
    if query.name == DETAILED:
        return query.is_detailed
    kept = [schema.names[i] if axis == WHOLE else axis for i, axis in enumerate(kind.axes) if axis != SUMMED]
    return sorted(query.name.split("*")) == sorted(kept)


def _plain(name: str) -> str:
    return "*".join(part.strip() for part in name.split(JOINED.strip()))


def _factor(attribute: Attribute, axis: str, recodes: Mapping[str, Recode]) -> Factor | None:
    if axis == SUMMED:
        return (0,) * attribute.size
    if axis in {WHOLE, attribute.name}:
        return tuple(range(attribute.size))
    recode = recodes.get(axis)
    return recode.factor if recode is not None and recode.attribute == attribute.name else None


def zero_of(kind: RowKind, schema: Schema) -> tuple[int | None, ...] | None:
    """The levels that no record has together, None for all of an attribute; None if rows do not say that."""
    if prod(kind.shape) != 1 or kind.sign != "=" or all(axis == SUMMED for axis in kind.axes):
        return None
    known = {name: level for level, name in LEVEL_NAMES.items()}
    levels: list[int | None] = []
    for attribute, axis in zip(schema.attributes, kind.axes, strict=True):
        name, _, number = axis.partition("=")
        of, level = known.get(axis, (name, int(number) if number.isdecimal() else -1))
        if axis != SUMMED and (of != attribute.name or not 0 <= level < attribute.size):
            return None
        levels.append(None if axis == SUMMED else level)
    return tuple(levels)
