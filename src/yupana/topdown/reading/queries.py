"""The tables of a configuration that share the budget out: geolevels, queries, and the passes they are used in. Public.

Within a geolevel there is one query for each way of grouping the cells, whatever the order of the names in it.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Final

from yupana.errors import nearest
from yupana.files.document import check_keys, is_text, read_table
from yupana.geography.settings import LEVELS
from yupana.privacy.exact import read_exact
from yupana.topdown.configuration import Passes, Shared
from yupana.topdown.queries import TOTAL, Factor, Query, Schema, nested_chain

Named = Callable[[str], Query]
"""Makes the query of a name, or raises ValueError."""

Groupings = dict[tuple[Factor, ...], Query]
"""The queries of a geolevel by the way they group the cells."""


InOrder = tuple[tuple[Query, ...], ...]
"""Passes, each of some queries."""


def read_shares(value: object, levels: Sequence[str] | None, faults: list[str]) -> dict[str, Fraction] | None:
    """The shares of the geolevels from the root down, whatever their order; None where a geolevel is in doubt.

    Parameters
    ----------
    value : object
        As read.
    levels : sequence of str, or None
        Those of areas that the configuration gives, each of which needs a share; None of the Census Bureau's.
    faults : list of str
        Faults found are added.
    """
    table = read_table("shares", value, faults)
    known = LEVELS if levels is None else levels
    strangers = [level for level in table if level not in known]
    faults += [
        f"shares: {level!r} is no geolevel; there are {', '.join(known)}{nearest(level, known)}" for level in strangers
    ]
    missing = [level for level in known if level not in table and (levels is not None or level == "Block")]
    if isinstance(value, dict):
        why = "every spine ends with the blocks" if levels is None else "every geolevel of areas.levels has a share"
        faults += [f"shares: {level} is missing; {why}" for level in missing]
    read = {level: _share(f"shares.{level}", table[level], faults) for level in known if level in table}
    if strangers or missing:
        return None
    _check_sum("shares", list(read.values()), faults)
    return {level: share or Fraction(0) for level, share in read.items()}


_LONGEST: Final = 10**100
"""No share of use has more digits, and sums of shares must fit a double and a message."""


def _share(place: str, value: object, faults: list[str]) -> Fraction | None:
    if not isinstance(value, str):
        faults.append(f"{place}: must be a number, or a text such as 'p/q' or '12.5%'")
        return None
    number = value.rstrip().removesuffix("%")
    try:
        share = read_exact(number)
        if number != value.rstrip() and isinstance(share, Fraction):
            share /= 100
    except ValueError as error:
        faults.append(f"{place}: {error}")
        return None
    if not isinstance(share, Fraction) or not 0 <= share <= _LONGEST or share.denominator > _LONGEST:
        faults.append(f"{place}: must be 0 or more, and finite, and have at most 100 digits")
        return None
    return share


def _check_sum(place: str, shares: Sequence[Fraction | None], faults: list[str]) -> None:
    """Check that shares sum to 1, unless one of them could not be read."""
    total = sum((share for share in shares if share is not None), Fraction(0))
    if None not in shares and total != 1:
        decimal = "" if total.denominator == 1 else f" (about {float(total):.10g})"
        advice = "; --renormalise divides them by their sum" if total else ""
        faults.append(f"{place}: the shares sum to {total}{decimal}, not to 1{advice}")


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


def _summing_to_1(table: object) -> object:
    faults: list[str] = []
    shares = {name: _share("", value, faults) or Fraction(0) for name, value in read_table("", table, faults).items()}
    total = sum(shares.values())
    return table if faults or not total else {name: str(share / total) for name, share in shares.items()}


def check_geolevels(place: str, table: Mapping[str, object], levels: Sequence[str], faults: list[str]) -> None:
    """Name the keys that are no geolevel of the configuration."""
    known = ", ".join(levels)
    faults += [
        f"{place}: {level!r} has no share; geolevels are {known}{nearest(level, levels)}"
        for level in table
        if level not in levels
    ]


def read_queries(
    value: object, named: Named, shares: Mapping[str, Fraction], faults: list[str]
) -> dict[str, tuple[Shared, ...]]:
    """The queries of each geolevel with their shares; those of a geolevel without a share may be missing."""
    table = read_table("queries", value, faults)
    check_geolevels("queries", table, tuple(shares), faults)
    queries: dict[str, tuple[Shared, ...]] = {}
    for level, share in shares.items():
        place = f"queries.{level}"
        if level not in table and share > 0:
            faults.append(f"{place}: is missing, and the geolevel has a share of {share}")
        queries[level] = _of_level(place, table[level], named, faults) if level in table else ()
    return queries


def _of_level(place: str, value: object, named: Named, faults: list[str]) -> tuple[Shared, ...]:
    groupings: Groupings = {}
    found: list[Shared] = []
    before = len(faults)
    table = read_table(place, value, faults)
    shares = {name: _share(f"{place}.{name}", number, faults) for name, number in table.items()}
    if len(faults) == before:
        _check_sum(place, list(shares.values()), faults)
    for name, share in shares.items():
        try:
            query = named(name)
        except ValueError as error:
            faults.append(f"{place}: {error}")
            continue
        first = groupings.setdefault(query.factors, query)
        if first is not query:
            faults.append(f"{place}: {name!r} is the same query as {first.name!r}; name one")
        found.append((query, share or Fraction(0)))
    return tuple(found)


def read_passes(
    value: object, named: Named, schema: Schema, queries: Mapping[str, tuple[Shared, ...]], faults: list[str]
) -> dict[str, Passes]:
    """The passes of each geolevel.

    By default everything measured is estimated in one pass, and `nested_chain` is rounded in one.
    """
    table = read_table("passes", value, faults)
    check_geolevels("passes", table, tuple(queries), faults)
    passes = {}
    for level, of_level in queries.items():
        place = f"passes.{level}"
        entry = read_table(place, table.get(level, {}), faults)
        check_keys(place, entry, (), faults, optional=("estimate", "round"))
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


def _in_order(place: str, value: object, named: Named, groupings: Groupings, faults: list[str]) -> InOrder:
    """Passes as lists of names, no query twice."""
    if not isinstance(value, list) or not value or not all(isinstance(names, list) and names for names in value):
        faults.append(f'{place}: must be a list of lists of queries, such as [["total"], ["detailed"]]')
        return ()
    passes = []
    seen: set[tuple[Factor, ...]] = set()
    for names in value:
        found = []
        for name in names:
            if not is_text(name):
                faults.append(f"{place}: queries are named by texts")
                continue
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
    value: object, total: Query, levels: Sequence[str], faults: list[str]
) -> dict[str, tuple[Query, ...]]:
    """The geolevels whose published areas keep their totals exactly."""
    table = read_table("invariants", value, faults)
    check_geolevels("invariants", table, levels, faults)
    if "Tract_Group" in table:
        faults.append("invariants.Tract_Group: a tract group is no published area; keep totals of County or Tract")
    wrong = [level for level, names in table.items() if names not in ([], [TOTAL])]
    faults += [f'invariants.{level}: must be ["{TOTAL}"]; no other query can be kept exactly' for level in wrong]
    return {level: (total,) for level in levels if table.get(level) == [TOTAL]}
