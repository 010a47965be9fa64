"""The tables of a configuration: what a record can be, and how the budget is shared out by geolevel and query. Public.

Within a geolevel there is one query for each way of grouping the cells, whatever the order of the names in it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final

from yupana.errors import nearest
from yupana.files.declaration import table_of
from yupana.files.document import Number, check_keys
from yupana.geography.settings import LEVELS
from yupana.topdown.configuration import Passes, Shared
from yupana.topdown.queries import DETAILED, TOTAL, Attribute, Factor, Query, Recode, Schema, nested_chain
from yupana.topdown.reading.declaration import SHARE, DeclaredConstraints, DeclaredRecode

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


Named = Callable[[str], Query]
"""Makes the query of a name, or raises ValueError."""

Groupings = dict[tuple[Factor, ...], Query]
"""The queries of a geolevel by the way they group the cells."""


InOrder = tuple[tuple[Query, ...], ...]
"""Passes, each of some queries."""


def in_order(
    told: Mapping[str, Fraction], levels: Sequence[str] | None, faults: list[str]
) -> dict[str, Fraction] | None:
    """The shares of the geolevels from the root down, whatever their order; None where a geolevel is in doubt.

    Parameters
    ----------
    told : mapping of geolevel to Fraction
    levels : sequence of str, or None
        Those of areas that the configuration gives, each of which needs a share; None of the Census Bureau's.
    faults : list of str
        Faults found are added.
    """
    known = LEVELS if levels is None else levels
    strangers = [level for level in told if level not in known]
    faults += [
        f"shares: {level!r} is no geolevel; there are {', '.join(known)}{nearest(level, known)}" for level in strangers
    ]
    missing = [level for level in known if level not in told and (levels is not None or level == "Block")]
    why = "every spine ends with the blocks" if levels is None else "every geolevel of areas.levels has a share"
    faults += [f"shares: {level} is missing; {why}" for level in missing]
    return None if strangers or missing else {level: told[level] for level in known if level in told}


def renormalised(document: object) -> object:
    """A configuration whose shares of geolevels, and of the queries of each, sum to 1: each divided by their sum.

    Shares that cannot be read, or are all 0, are left for the reader to refuse.
    """
    if not isinstance(document, dict):
        return document
    changed = {key: _summing_to_1(document[key]) for key in ("shares",) if key in document}
    if isinstance(queries := document.get("queries"), dict):
        changed["queries"] = {level: _summing_to_1(shares) for level, shares in queries.items()}
    return document | changed


def _summing_to_1(told: object) -> object:
    faults: list[str] = []
    shares = table_of(SHARE).read("", told, faults) or {}
    total = sum(shares.values())
    return told if faults or not total else {name: str(share / total) for name, share in shares.items()}


def check_geolevels(place: str, table: Mapping[str, object], levels: Sequence[str], faults: list[str]) -> None:
    """Name the keys that are no geolevel of the configuration."""
    known = ", ".join(levels)
    faults += [
        f"{place}: {level!r} has no share; geolevels are {known}{nearest(level, levels)}"
        for level in table
        if level not in levels
    ]


def read_queries(
    told: Mapping[str, Mapping[str, Fraction]], named: Named, shares: Mapping[str, Fraction], faults: list[str]
) -> dict[str, tuple[Shared, ...]]:
    """The queries of each geolevel with their shares; those of a geolevel without a share may be missing."""
    check_geolevels("queries", told, tuple(shares), faults)
    faults += [
        f"queries.{level}: is missing, and the geolevel has a share of {share}"
        for level, share in shares.items()
        if level not in told and share > 0
    ]
    return {level: _of_level(f"queries.{level}", told.get(level, {}), named, faults) for level in shares}


def _named(place: str, names: Iterable[str], named: Named, faults: list[str]) -> Iterator[Query]:
    """The queries that are called so."""
    for name in names:
        try:
            yield named(name)
        except ValueError as error:
            faults.append(f"{place}: {error}")


def _of_level(place: str, shares: Mapping[str, Fraction], named: Named, faults: list[str]) -> tuple[Shared, ...]:
    groupings: Groupings = {}
    found: list[Shared] = []
    for query in _named(place, shares, named, faults):
        first = groupings.setdefault(query.factors, query)
        if first is not query:
            faults.append(f"{place}: {query.name!r} is the same query as {first.name!r}; name one")
        found.append((query, shares[query.name]))
    return tuple(found)


def read_passes(
    told: Mapping[str, Mapping[str, Sequence[Sequence[str]]]],
    named: Named,
    schema: Schema,
    queries: Mapping[str, tuple[Shared, ...]],
    faults: list[str],
) -> dict[str, Passes]:
    """The passes of each geolevel.

    By default everything measured is estimated in one pass, and `nested_chain` is rounded in one.
    """
    check_geolevels("passes", told, tuple(queries), faults)
    passes = {}
    for level, of_level in queries.items():
        place, entry = f"passes.{level}", told.get(level, {})
        groupings: Groupings = {query.factors: query for query, _ in of_level}
        measured = tuple(query for query, share in of_level if share > 0)
        if "estimate" in entry:
            before = len(faults)
            estimate = _in_order(f"{place}.estimate", entry["estimate"], named, groupings, faults)
            _check_measured(f"{place}.estimate", estimate, measured, faults, complete=len(faults) == before)
        else:
            estimate = (measured,) if measured else ()
        if "round" in entry:
            before = len(faults)
            rounded = _in_order(f"{place}.round", entry["round"], named, groupings, faults)
            if len(faults) == before and not any(query.size == schema.cells for query in rounded[-1]):
                faults.append(f"{place}.round: the last pass must hold 'detailed', which makes every cell an integer")
        else:
            # With a single attribute the last two of the chain are the same query.
            chain = (groupings.setdefault(query.factors, query) for query in nested_chain(schema))
            rounded = (tuple(dict.fromkeys(chain)),)
        passes[level] = Passes(estimate, rounded)
    return passes


def _in_order(
    place: str, told: Sequence[Sequence[str]], named: Named, groupings: Groupings, faults: list[str]
) -> InOrder:
    """The queries of passes, none twice."""
    passes = []
    seen: set[tuple[Factor, ...]] = set()
    for names in told:
        found = []
        for query in _named(place, names, named, faults):
            if query.factors in seen:
                faults.append(f"{place}: {query.name!r} is named twice, in whatever order")
            seen.add(query.factors)
            found.append(groupings.setdefault(query.factors, query))
        passes.append(tuple(found))
    return tuple(passes)


def _check_measured(
    place: str, passes: InOrder, measured: tuple[Query, ...], faults: list[str], *, complete: bool
) -> None:
    """Only what is measured can be estimated from, and if the passes are complete, all of it must be."""
    named = [query for queries in passes for query in queries]
    faults += [f"{place}: {query.name!r} is not measured here" for query in named if query not in measured]
    if complete:
        faults += [f"{place}: {query.name!r} is measured, and in no pass" for query in measured if query not in named]


def read_invariants(
    told: Mapping[str, Sequence[str]], total: Query, levels: Sequence[str], faults: list[str]
) -> dict[str, tuple[Query, ...]]:
    """The geolevels whose published areas keep their totals exactly."""
    check_geolevels("invariants", told, levels, faults)
    if "Tract_Group" in told:
        faults.append("invariants.Tract_Group: a tract group is no published area; keep totals of County or Tract")
    return {level: (total,) for level in levels if told.get(level)}
