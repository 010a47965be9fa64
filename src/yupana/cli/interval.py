"""`yupana interval RELEASE --query ...`: intervals for published and derived cells, and for counts of named areas."""

import argparse
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yupana
from yupana.cli.options import given, tell
from yupana.errors import ConfigError, OutputError
from yupana.estimate.intervals.query import Chain, Expression, Selection, parse
from yupana.files.regular import NewFile

if TYPE_CHECKING:
    from yupana.estimate.areas.released import AreaList
    from yupana.estimate.intervals.intervals import Interval
    from yupana.estimate.results import AreaIntervals, DistrictEstimates, Intervals

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
        place.put(found.as_csv())
        print("\n".join([f"{options.out}: {len(found):,} answers", *notes_text(found)]))
    elif options.queries is not None and not options.json:
        print(found.as_csv(), end="")
    else:
        tell(options, found.as_json(), _areas_text(found))


def _areas_text(found: "AreaIntervals") -> Iterator[str]:
    level = f"{float(100 * found.confidence):g} %"
    for one in found.intervals:
        yield f"{one.area.label}: {one.query}"
        yield f"  published {'not defined: the denominator is 0' if one.published is None else _number(one.published)}"
        if one.interval.estimate is not None:
            yield f"  estimate  {_number(one.interval.estimate)}"
        if one.interval.standard_error is not None:
            yield f"  std error {_number(one.interval.standard_error)}"
        apart = "" if one.holds_published is not False else ", which does not hold the published count"
        yield f"  {level:<9} {_set(one.interval)}{apart}"
        if one.moe is not None:
            yield f"  moe       {_number(one.moe)}"
        yield f"  by        {one.method}"
    yield ""
    yield from notes_text(found)


def notes_text(found: "AreaIntervals | DistrictEstimates | Intervals") -> Iterator[str]:
    """What must be known of numbers that were made of a release."""
    yield f"status: {found.status}"
    yield from (f"note: {note}" for note in found.notes)


def _is_earlier(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_FIRST)) == _FIRST


def _list(listed: "AreaList", options: argparse.Namespace) -> None:
    if options.list:
        table = listed.table(options.list)
        rows = list(zip(table["kind"], table["code"], table["name"], strict=True))
        lines = [f"{kind}={code}" + (f"  {name}" if name else "") for kind, code, name in rows]
        tell(options, [{"kind": kind, "code": code, "name": name} for kind, code, name in rows], lines)
        return
    width = max(map(len, listed.kinds))
    lines = ["kinds of areas (--list KIND lists them with their names)"]
    lines += [f"  {kind:<{width}}  {number:,}" for kind, number in listed.kinds.items()]
    lines += ["queries, and sums, differences, ratios and percentages of them"]
    lines += [f"  {query}: {meaning}" for query, meaning in listed.queries.items()]
    tell(options, {"areas": listed.kinds, "queries": listed.queries}, lines)


def _of_cells(options: argparse.Namespace) -> None:
    found = yupana.interval(**given(options))
    tell(options, found.as_json(), _cells_text(found, options.release))


def _cells_text(found: "Intervals", release: Path) -> Iterator[str]:
    try:
        codebook = yupana.open_release(release).codebook
    except OutputError:  # it only helps to read
        codebook = None
    for one in found.intervals:
        yield one.query
        for words in [] if codebook is None else _in_words(parse(one.query), codebook):
            yield f"  of        {words}"
        estimate = "not defined: the denominator is 0" if one.estimate is None else _number(one.estimate)
        yield f"  estimate  {estimate}"
        if one.variance is not None:
            yield f"  variance  {_number(one.variance)}"
        yield f"  {float(100 * found.confidence):g} %      {_set(one)}{_margin(one)}"
        yield f"  by        {one.method} ({one.cells:,} {'cell' if one.cells == 1 else 'cells'})"
    yield ""
    yield from notes_text(found)


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
