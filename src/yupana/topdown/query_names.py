"""Query groups by the names configurations give them: ``total``, ``detailed``, or attributes joined by ``*``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from yupana.errors import nearest
from yupana.topdown.queries import Factor, Query
from yupana.topdown.schema import Schema

TOTAL: Final = "total"
DETAILED: Final = "detailed"
_JOINED: Final = "*"


@dataclass(frozen=True, slots=True)
class Recode:
    """A grouping of the levels of an attribute.

    Attributes
    ----------
    name : str
    attribute : str
        Whose levels it groups.
    factor : Factor
        The group of each level; groups in the order they were given.
    """

    name: str
    attribute: str
    factor: Factor


def query_named(name: str, schema: Schema, recodes: Mapping[str, Recode]) -> Query:
    """Make the query that a name stands for.

    An attribute named is kept, one named by a recode is grouped, and the others are summed over; the order of the
    names does not matter. ``total`` sums over all attributes, ``detailed`` keeps all.

    Parameters
    ----------
    name : str
    schema : Schema
    recodes : mapping of name to Recode
        Their names are no attributes of the schema.

    Returns
    -------
    Query
        Called by the name as given.

    Raises
    ------
    ValueError
        If a part of the name is unknown, or two parts mean the same attribute.
    """
    if name in {TOTAL, DETAILED}:
        keep = name == DETAILED
        return Query(name, tuple(tuple(range(size)) if keep else (0,) * size for size in schema.shape))
    factors: dict[str, Factor] = {}
    named: dict[str, str] = {}
    sizes = dict(zip(schema.names, schema.shape, strict=True))
    for part in name.split(_JOINED):
        recode = recodes.get(part)
        attribute = recode.attribute if recode is not None else part
        if attribute not in sizes:
            known = (*schema.names, *recodes, TOTAL, DETAILED)
            raise ValueError(f"query {name!r}: {part!r} is unknown; known are {', '.join(known)}{nearest(part, known)}")
        if attribute in named:
            raise ValueError(f"query {name!r}: {named[attribute]!r} and {part!r} both mean {attribute!r}; name one")
        named[attribute] = part
        factors[attribute] = recode.factor if recode is not None else tuple(range(sizes[attribute]))
    return Query(name, tuple(factors.get(attribute, (0,) * sizes[attribute]) for attribute in schema.names))


def nested_chain(schema: Schema) -> tuple[Query, ...]:
    """The total, then one attribute more after the other in the order of the schema, down to the detailed query.

    Each query splits the answers of the one before it, so that together they are laminar.
    """
    names = [TOTAL, *(_JOINED.join(schema.names[: i + 1]) for i in range(len(schema.names) - 1)), DETAILED]
    return tuple(query_named(name, schema, {}) for name in names)
