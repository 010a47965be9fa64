"""The tables of a configuration that share the budget out: geolevels, queries, and the passes they are used in. Public.

Within a geolevel there is one query for each way of grouping the cells, whatever the order of the names in it.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from yupana.errors import nearest
from yupana.files.declaration import table_of
from yupana.geography.settings import LEVELS
from yupana.topdown.configuration import Passes, Shared
from yupana.topdown.queries import Factor, Query, Schema, nested_chain
from yupana.topdown.reading.declaration import SHARE

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


def _of_level(place: str, shares: Mapping[str, Fraction], named: Named, faults: list[str]) -> tuple[Shared, ...]:
    groupings: Groupings = {}
    found: list[Shared] = []
    for name, share in shares.items():
        try:
            query = named(name)
        except ValueError as error:
            faults.append(f"{place}: {error}")
            continue
        first = groupings.setdefault(query.factors, query)
        if first is not query:
            faults.append(f"{place}: {name!r} is the same query as {first.name!r}; name one")
        found.append((query, share))
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
        for name in names:
            try:
                query = named(name)
            except ValueError as error:
                faults.append(f"{place}: {error}")
                continue
            if query.factors in seen:
                faults.append(f"{place}: {name!r} is named twice, in whatever order")
            seen.add(query.factors)
            found.append(groupings.setdefault(query.factors, query))
        passes.append(tuple(found))
    return tuple(passes)


def _check_measured(
    place: str,
    passes: InOrder,
    measured: tuple[Query, ...],
    faults: list[str],
    *,
    complete: bool,
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
