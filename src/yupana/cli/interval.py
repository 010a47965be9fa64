"""`yupana interval RELEASE --query ...`: intervals for published and derived cells, and for counts of named areas."""

import argparse
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yupana
from yupana.cli.options import given, print_json
from yupana.errors import ConfigError, OutputError
from yupana.estimate.intervals.query import Chain, Expression, Selection, parse
from yupana.files.regular import NewFile

if TYPE_CHECKING:
    from yupana.estimate.areas.released import AreaList
    from yupana.estimate.intervals.intervals import Interval
    from yupana.estimate.results import AreaIntervals, Intervals

_FIRST = b"kind|code|name|query|"
"""How the file of a batch begins."""


def interval(options: argparse.Namespace) -> None:
    """Tell intervals of cells and of areas, or what can be asked."""
    if wrong := _contradiction(options):
        raise ConfigError(wrong)
    if options.list is not None:
        _list(yupana.areas(options.release, files=options.areas, encoding=options.encoding), options)
    elif options.area or options.queries is not None:
        _of_areas(options)
    else:
        _of_cells(options)


def _contradiction(options: argparse.Namespace) -> str:
    """What is wrong with the options taken together; empty if nothing is."""
    query, area, out = bool(options.query), bool(options.area), options.out is not None
    batch, lists = options.queries is not None, options.list is not None
    rules = (
        (lists and (query or area or batch or out), "--list tells what can be asked; leave out what asks something"),
        (batch and (query or area), "--queries asks what its file holds; write --area and --query into it"),
        (area and not query, "--area needs a query, such as --query total; --list tells what there is"),
        (not (lists or query or batch), "interval needs --query Q, --queries FILE or --list"),
        (bool(options.areas) and not (area or batch or lists), "--areas is for --area, --queries or --list; name one"),
        (out and not (area or batch), "--out takes the table of counts of areas; name some by --area or --queries"),
        (out and options.json, "--out writes a table and --json prints a document; choose one"),
    )
    return next((said for is_wrong, said in rules if is_wrong), "")


def _of_areas(options: argparse.Namespace) -> None:
    place = None if options.out is None else NewFile(options.out, "the table", _is_earlier, 0o644)
    if place is not None:
        place.check()
    more = given(options, "release", "query", "area", "queries", "out", "list")
    if options.queries is None:
        found = yupana.interval(options.release, *options.query, area=options.area, **more)
    else:
        found = yupana.intervals(options.release, options.queries, **more)
    if place is not None:
        place.write(found.as_csv())
        place.keep()
        print(f"{options.out}: {len(found):,} answers")
        _print_notes(found)
    elif options.json:
        print_json(found.as_json())
    elif options.queries is not None:
        print(found.as_csv(), end="")
    else:
        _print_areas(found)


def _print_areas(found: "AreaIntervals") -> None:
    level = f"{float(100 * found.confidence):g} %"
    for one in found.intervals:
        print(f"{one.area.label}: {one.query}")
        print(f"  published {'not defined: the denominator is 0' if one.published is None else _number(one.published)}")
        if one.interval.estimate is not None:
            print(f"  estimate  {_number(one.interval.estimate)}")
        if one.interval.standard_error is not None:
            print(f"  std error {_number(one.interval.standard_error)}")
        apart = "" if one.holds_published is not False else ", which does not hold the published count"
        print(f"  {level:<9} {_set(one.interval)}{apart}")
        if one.moe is not None:
            print(f"  moe       {_number(one.moe)}")
        print(f"  by        {one.method}")
    print()
    _print_notes(found)


def _print_notes(found: "AreaIntervals | Intervals") -> None:
    print(f"status: {found.status}")
    for note in found.notes:
        print(f"note: {note}")


def _is_earlier(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_FIRST)) == _FIRST


def _list(listed: "AreaList", options: argparse.Namespace) -> None:
    if options.list:
        table = listed.table(options.list)
        rows = list(zip(table["kind"], table["code"], table["name"], strict=True))
        if options.json:
            print_json([{"kind": kind, "code": code, "name": name} for kind, code, name in rows])
            return
        for kind, code, name in rows:
            print(f"{kind}={code}" + (f"  {name}" if name else ""))
        return
    if options.json:
        print_json({"areas": listed.kinds, "queries": listed.queries})
        return
    width = max(map(len, listed.kinds))
    print("kinds of areas (--list KIND lists them with their names)")
    for kind, number in listed.kinds.items():
        print(f"  {kind:<{width}}  {number:,}")
    print("queries, and sums, differences, ratios and percentages of them")
    for query, meaning in listed.queries.items():
        print(f"  {query}: {meaning}")


def _of_cells(options: argparse.Namespace) -> None:
    found = yupana.interval(**given(options))
    if options.json:
        print_json(found.as_json())
        return
    try:
        codebook = yupana.open_release(options.release).codebook
    except OutputError:  # it only helps to read
        codebook = None
    for one in found.intervals:
        print(one.query)
        for words in [] if codebook is None else _in_words(parse(one.query), codebook):
            print(f"  of        {words}")
        estimate = "not defined: the denominator is 0" if one.estimate is None else _number(one.estimate)
        print(f"  estimate  {estimate}")
        if one.variance is not None:
            print(f"  variance  {_number(one.variance)}")
        print(f"  {float(100 * found.confidence):g} %      {_set(one)}{_margin(one)}")
        print(f"  by        {one.method} ({one.cells:,} {'cell' if one.cells == 1 else 'cells'})")
    print()
    _print_notes(found)


def _in_words(asked: Expression, codebook: Mapping[str, Any]) -> Iterator[str]:
    """What each selection of a query is of: the title of its table, and what the codes that it names mean."""
    from yupana.release.codebook import meanings

    if isinstance(asked, Chain):
        for one in (asked.first, *(other for _, other in asked.rest)):
            yield from _in_words(one, codebook)
    elif isinstance(asked, Selection):
        for resource in codebook["resources"]:
            if resource["path"] == f"{asked.table}.csv":
                listed = meanings(codebook, resource["path"])
                named = [
                    " or ".join(listed[of.column].get(value, value) for value in of.values)
                    for of in asked.conditions
                    if of.column in listed and not of.is_prefix
                ]
                yield "; ".join([resource["title"], *named])


def _margin(found: "Interval") -> str:
    """How far the ends are from the estimate, where both are as far."""
    if found.variance is None or found.estimate is None or not found.is_bounded:
        return ""
    ((lower, upper),) = found.pieces
    half = (upper - lower) / 2
    return f" (± {_number(half)})" if math.isclose(upper - half, found.estimate, abs_tol=_SMALL) else ""


def _set(found: "Interval") -> str:
    if found.is_bounded:
        ((lower, upper),) = found.pieces
        return f"{_number(lower)} to {_number(upper)}"
    ends = " or ".join(_piece(lower, upper) for lower, upper in found.pieces)
    return f"{ends} (unbounded: the denominator is not told from 0)"


def _piece(lower: float, upper: float) -> str:
    if math.isinf(lower):
        return "any number" if math.isinf(upper) else f"at most {_number(upper)}"
    return f"at least {_number(lower)}"


def _number(value: float) -> str:
    return f"{value:,.4f}".rstrip("0").rstrip(".") if abs(value) >= _SMALL or value == 0 else f"{value:.4g}"


_SMALL = 0.01
