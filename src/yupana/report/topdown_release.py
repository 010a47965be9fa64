"""The page of a TopDown release: what was measured and kept, how far its counts may be off, maps and area profiles."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from yupana.errors import InputError
from yupana.files.database import open_database
from yupana.files.regular import NewFile
from yupana.plan.measurement import Mechanism
from yupana.plan.plan import DEFAULT_DELTA, Plan
from yupana.products.topdown.product import TOPDOWN
from yupana.products.topdown.verify import MEASUREMENTS
from yupana.release.release import ReleaseFolder
from yupana.report.charts import Mark, log_dots
from yupana.report.html import Html
from yupana.report.maps import (
    Boundary,
    Lettering,
    Shading,
    count_classes,
    draw_map,
    lay_out,
    outlines,
    read_boundaries,
    share_classes,
)
from yupana.report.numbers import confidence_percent, percent, rounded, whole
from yupana.report.page import Chart, Figure, Page, Section, read_page, render, sections, write_page
from yupana.report.topdown import attributes_section, shares_section
from yupana.report.topdown_areas import KindOfAreas, TopdownRelease, profiles, words_of
from yupana.topdown.configuration import Configuration
from yupana.topdown.reading.configuration import counterpart

_SIZES: Final = (1, 100, 1_000, 10_000, 100_000, 1_000_000)
"""Where classes of size begin."""

_COLOURS: Final = ("#2f6fb0", "#d9982a", "#3fa0c9", "#cf5a1e", "#8180d6", "#c65f95", "#4b9b6b", "#8a939c")
_SHAPES: Final = ("circle", "diamond", "triangle-up", "square")
_MOST_DRAWN: Final = 12_000
"""Areas on one map, so that a page stays within some megabytes."""
_MOST_NAMED: Final = 400
"""Areas of a map whose names are written on it; names of more would hide it."""
_LISTED: Final = 5


def write_topdown_report(
    place: NewFile, release: ReleaseFolder, configuration: Configuration, plan: Plan, boundaries: Sequence[Path]
) -> None:
    """Write the page of a release, of what the release holds alone.

    Parameters
    ----------
    place : NewFile
        As `yupana.report.page.claim_page` gave it.
    release : ReleaseFolder
    configuration : Configuration
        That of its manifest.
    plan : Plan
        Of the configuration, whose geounits have the shares of their geolevels.
    boundaries : sequence of Path
        Files of boundaries, each of areas of one kind or of several.

    Raises
    ------
    InputError
        If a file has no boundaries, or none of an area of the release.
    OutputError
        If the release cannot be read, or the page not be written.
    """
    write_page(place, render(topdown_page(TopdownRelease(release, configuration, plan), boundaries)))


def topdown_page(made: TopdownRelease, boundaries: Sequence[Path]) -> Page:
    """The page of a release, as `write_topdown_report` writes it."""
    shapes = [(path, read_boundaries(path)) for path in boundaries]
    manifest, plan, configuration = made.release.manifest, made.plan, made.configuration
    zcdp = plan.mechanism is Mechanism.ZCDP
    # What was measured may be less than is configured: of some states, without the nation.
    cost = (made.release.plan or plan).loss()
    maps = [_map(made, path, found, number) for number, (path, found) in enumerate(shapes)]
    profile = profiles(made)
    own_areas = configuration.areas is not None
    return read_page(
        "topdown_release.html",
        made=made,
        manifest=manifest,
        plan=plan,
        symbol=plan.mechanism.symbol,
        zcdp=zcdp,
        delta=DEFAULT_DELTA,
        cost=cost,
        epsilon=plan.mechanism.epsilon(cost, DEFAULT_DELTA) if zcdp and plan.is_finite else None,
        made_of=manifest.get(MEASUREMENTS),
        records=int(made.kinds[0].totals.sum()) if made.kinds else 0,
        areas={
            "Areas": [words_of(kind.name)[1] for kind in made.kinds],
            "Number": [whole(len(kind.codes)) for kind in made.kinds],
            "Smallest total": [whole(kind.totals.min()) for kind in made.kinds],
            "Median": [whole(float(np.median(kind.totals))) for kind in made.kinds],
            "Largest": [whole(kind.totals.max()) for kind in made.kinds],
        },
        levels=_levels(made),
        shares=[shares_section(configuration, plan)] if plan.is_finite else [],
        attributes=[_attributes(configuration, own_areas=own_areas)] if plan.is_finite else [],
        solvers=_solvers(manifest.get("solvers", {})),
        failsafe=_failsafe(manifest.get("failsafe", ())),
        failsafes=len(manifest.get("failsafe", ())),
        errors=_errors(made) if plan.is_finite else [],
        maps=maps,
        profile=profile,
        files={
            "File": list(manifest["tables"]),
            "Rows": [whole(told["rows"]) for told in manifest["tables"].values()],
            "Columns": [_few(told["columns"], 8) for told in manifest["tables"].values()],
        },
    )


def _few(names: Sequence[str], most: int) -> str:
    return ", ".join([*names[:most], *([f"and {len(names) - most} more"] if len(names) > most else [])])


def _attributes(configuration: Configuration, *, own_areas: bool) -> Section:
    """What single attributes and moves lose, beside what they lose in production where there is such a run."""
    beside = counterpart(configuration)
    if beside is not None:
        return attributes_section(configuration, beside, DEFAULT_DELTA, beside.product)
    return attributes_section(configuration, None if own_areas else TOPDOWN.production(configuration), DEFAULT_DELTA)


def _levels(made: TopdownRelease) -> dict[str, list[str]]:
    """Geolevels with their geounits, shares and queries."""
    configuration = made.configuration
    with open_database() as db:
        rows = made.release.rows("spine/geounits")
        found = db.execute(f"SELECT geolevel, count(*), count_if(bypassed = 'true') FROM {rows} GROUP BY 1").fetchall()
    units = {level: (number, bypassed) for level, number, bypassed in found}
    kept = configuration.invariants
    return {
        "Geolevel": list(configuration.levels),
        "Geounits": [whole(units[level][0]) for level in configuration.levels],
        "Bypassed": [whole(units[level][1]) for level in configuration.levels],
        "Share of the budget": [percent(float(configuration.shares[level]), 2) for level in configuration.levels],
        "Queries": [whole(len(configuration.measured(level))) for level in configuration.levels],
        "Noisy answers of a geounit": [
            whole(sum(query.size for query, _ in configuration.measured(level))) for level in configuration.levels
        ],
        "Kept exactly": [
            "–" if level not in kept else ", ".join(query.name for query in kept[level])
            for level in configuration.levels
        ],
    }


def _solvers(told: Mapping[str, Mapping[str, int]]) -> dict[str, list[str]]:
    """Passes of each geolevel by what solved them."""
    kinds = list(dict.fromkeys(kind for of in told.values() for kind in of))
    return {
        "Geolevel": list(told),
        **{_SOLVERS.get(kind, kind): [whole(of.get(kind, 0)) for of in told.values()] for kind in kinds},
    }


_SOLVERS: Final = {
    "active-set": "Exactly, by active set",
    "admm": "By alternating directions",
    "clarabel": "By the general solver",
}


def _failsafe(told: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    return {
        "Geolevel": [str(one["geolevel"]) for one in told[:50]],
        "Geounit": [str(one["geounit"]) for one in told[:50]],
        "Records that could not be matched": [rounded(float(one["v"]), 4) for one in told[:50]],
    }


def _errors(made: TopdownRelease) -> Sequence[Section]:
    """Margins of totals against their size, by kind of areas."""
    kinds = [kind for kind in made.kinds if kind.margins is not None and np.isfinite(kind.margins).any()]
    marks = {
        kind.name: Mark(words_of(kind.name)[1], _COLOURS[i % len(_COLOURS)], _SHAPES[i % len(_SHAPES)])
        for i, kind in enumerate(kinds)
    }
    rows = [row for kind in kinds for row in _by_size(kind)]
    drawn = [
        {"category": row.size, "series": marks[row.kind].name, "value": row.relative}
        for row in rows
        if row.relative > 0
    ]
    used = tuple(mark for mark in marks.values() if any(row["series"] == mark.name for row in drawn))
    order = [_size_name(place) for place in range(len(_SIZES))]
    drawn.sort(key=lambda row: order.index(str(row["category"])))
    table = {
        "Areas": [words_of(row.kind)[1] for row in rows],
        "Total": [row.size for row in rows],
        "Number": [whole(row.number) for row in rows],
        "Median margin": [_margin(row.margin) for row in rows],
        "Largest margin": [_margin(row.largest) for row in rows],
        "Median margin, of the total": [
            "exact" if row.margin == 0 else f"{rounded(100 * row.relative, 2)}%" for row in rows
        ],
    }
    chart = Chart(
        "The median margin of error of a total as a share of it, by its size and the kind of area.",
        lambda width: log_dots(drawn, used, width, axis="median margin, percent of the total (log scale)"),
        table,
    )
    drawn = [{**row, "value": 100 * row["value"]} for row in drawn]  # type: ignore[operator]
    return sections(
        "topdown_errors.html",
        made=made,
        confidence=confidence_percent(made.plan.confidence),
        rows=table,
        chart=Figure((chart,), legend=used) if drawn else None,
        without=[words_of(kind.name)[1] for kind in made.kinds if kind not in kinds],
    )


def _margin(value: float) -> str:
    return "exact" if value == 0 else "unknown" if not np.isfinite(value) else rounded(value, 3)


@dataclass(frozen=True, slots=True)
class _Size:
    """The areas of a kind whose totals are of one size."""

    kind: str
    size: str
    number: int
    margin: float
    largest: float
    relative: float


def _by_size(kind: KindOfAreas) -> Iterable[_Size]:
    margins = kind.margins if kind.margins is not None else np.full(len(kind.codes), np.nan)
    known = np.isfinite(margins) & (kind.totals > 0)
    classes = np.searchsorted(_SIZES, kind.totals, side="right") - 1
    for place in range(len(_SIZES)):
        here = known & (classes == place)
        if here.any():
            middle = float(np.median(margins[here]))
            relative = float(np.median(kind.relative[here]))
            yield _Size(kind.name, _size_name(place), int(here.sum()), middle, float(margins[here].max()), relative)


def _size_name(place: int) -> str:
    if place == len(_SIZES) - 1:
        return f"{whole(_SIZES[place])} and more"
    return f"{whole(_SIZES[place])}–{whole(_SIZES[place + 1] - 1)}"


def _map(made: TopdownRelease, path: Path, shapes: Sequence[Boundary], number: int) -> dict[str, Any]:
    """What the template says of the maps of one file: of the kind of areas that it has most of."""
    codes = {shape.code for shape in shapes}
    kind = max(made.kinds, key=lambda kind: len(codes & set(kind.codes)), default=None)
    if kind is None or not codes & set(kind.codes):
        told = "; ".join(f"{words_of(kind.name)[1]} such as {kind.codes[0]}" for kind in made.kinds)
        raise InputError(
            f"{path} shows no area of this release: its areas are such as {_few(sorted(codes - {''}), 3)}, and those "
            f"of the release {told}"
        )
    at = {code: place for place, code in enumerate(kind.codes)}
    water = [shape for shape in shapes if shape.is_water and shape.code in at]
    drawn = {shape.code: shape for shape in shapes if shape.code in at and not shape.is_water}
    if not drawn:
        raise InputError(f"{path}: the areas that it has of this release are all water; there is nothing to draw")
    if len(drawn) > _MOST_DRAWN:
        raise InputError(
            f"{path} has {whole(len(drawn))} {words_of(kind.name)[1]}, more than the {whole(_MOST_DRAWN)} that fit on "
            "a page; give boundaries of larger areas"
        )
    return {
        "kind": kind,
        "words": words_of(kind.name),
        "pieces": _pieces(made, kind, drawn, number),
        "drawn": len(drawn),
        "strange": _counted([shape.code or "an area without a code" for shape in shapes if shape.code not in at]),
        "missing": _counted(
            [
                f"{made.name(kind.name, code)} ({code})" if made.name(kind.name, code) != code else code
                for code in kind.codes
                if code not in codes
            ]
        ),
        "water": _counted([shape.name or shape.code for shape in water]),
        "in_water": int(sum(kind.totals[at[shape.code]] for shape in water)),
        "method": made.method,
        "named": len(drawn) <= _MOST_NAMED,
    }


def _counted(names: Sequence[str]) -> tuple[int, str]:
    """How many there are, and the first of them."""
    return len(names), _few(names, _LISTED)


def _pieces(
    made: TopdownRelease, kind: KindOfAreas, drawn: Mapping[str, Boundary], number: int
) -> dict[str, Html | None]:
    """The outlines and the two maps of a kind of areas."""
    at = {code: place for place, code in enumerate(kind.codes)}
    places = np.array([at[code] for code in drawn])
    totals = kind.totals[places].astype(np.float64)
    relative = kind.relative[places]
    layout = lay_out([shape.rings for shape in drawn.values()])
    called = [_called(made, kind.name, shape) for shape in drawn.values()]
    titles = [
        f"{name}: {whole(kind.totals[place])}{_plus_minus(kind, place)}"
        for name, place in zip(called, places.tolist(), strict=True)
    ]
    names = [_short(made, kind.name, shape) for shape in drawn.values()] if len(drawn) <= _MOST_NAMED else []
    shared = f"map{number}"
    _, several = words_of(kind.name)

    lettering = Lettering(titles, names, totals, kind.name, list(drawn))

    def drawing(shading: Shading, what: str) -> Html:
        return draw_map(layout, shared, shading, lettering, f"Map of {several} by {what}.")

    return {
        "outlines": outlines(layout, shared),
        "counts": drawing(Shading(count_classes(totals), totals, "counts"), "their total"),
        "errors": None
        if np.isnan(relative).all()
        else drawing(
            Shading(share_classes(relative), relative, "errors"), "the margin of error as a share of the total"
        ),
    }


def _called(made: TopdownRelease, kind: str, shape: Boundary) -> str:
    name = made.name(kind, shape.code)
    name = shape.name or name if name == shape.code else name
    return f"{name} ({shape.code})" if name != shape.code else name


def _short(made: TopdownRelease, kind: str, shape: Boundary) -> str:
    """A name without what it is, as far as that is the same of all: the map says it."""
    name = made.name(kind, shape.code)
    name = shape.name if name == shape.code else name
    words = name.split()
    while len(words) > 1 and words[-1].islower():
        words.pop()
    return " ".join(words).removesuffix(" County")


def _plus_minus(kind: KindOfAreas, place: int) -> str:
    if kind.ends is not None:
        lower, upper = (whole(end[place]) for end in kind.ends)
        told = f", from {lower} to {upper}"
    elif kind.margins is None or not np.isfinite(kind.margins[place]):
        return ""
    elif kind.margins[place] == 0:
        return ", exact"
    else:
        told = f" ± {rounded(float(kind.margins[place]), 2)}"
    share = float(kind.relative[place])
    return told if np.isnan(share) else f"{told} ({rounded(100 * share, 2)}%)"
