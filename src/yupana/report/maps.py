"""Maps: areas laid out in a plane that keeps their sizes, filled by classes, with names and a scale."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from yupana.arrays import Floats, Ints
from yupana.report.boundaries import Ring
from yupana.report.html import Html, fill
from yupana.report.numbers import rounded, whole

_ACROSS: Final = 2400
"""Units to the longer side of a drawing: finer details are dropped."""

_EARTH: Final = 6371.0072
"""Kilometres: the radius of the sphere with as much surface as the earth."""

_WIDE: Final = (860, 760)
"""Pixels that a map may take on a wide page, across and up."""

_NARROW: Final = 350
"""Pixels across on a telephone."""

_LETTER: Final = 12.0
"""Height of a name in pixels."""

CLASSES: Final = 6


@dataclass(frozen=True, slots=True)
class MapLayout:
    """Areas as they are drawn, whatever fills them.

    Attributes
    ----------
    width, height : int
        In units of the drawing.
    unit : float
        Kilometres.
    paths : tuple of str
        The outline of each area as SVG writes it.
    spots : tuple of (x, y, room)
        Where the name of each area stands, and how wide it may be.
    """

    width: int
    height: int
    unit: float
    paths: tuple[str, ...]
    spots: tuple[tuple[float, float, float], ...]

    @property
    def pixels(self) -> int:
        """How wide it is on a wide page: no taller than a screen."""
        across, up = _WIDE
        return max(1, round(min(across, up * self.width / self.height)))

    @property
    def bar(self) -> tuple[int, str]:
        """A scale: its length in units, and in words."""
        most = 0.3 * self.width * self.unit
        power = 10.0 ** np.floor(np.log10(most))
        length = max(step * power for step in (1, 2, 5) if step * power <= most)
        return round(length / self.unit), f"{rounded(length, 1)} km"


def lay_out(areas: Sequence[Sequence[Ring]]) -> MapLayout:
    """Project areas to a plane and simplify them.

    The projection is Lambert's azimuthal equal-area one about the middle of the areas, on a sphere: areas keep their
    sizes, and north is up in the middle. Points are rounded to a grid, and those on a straight line between others left
    out; both treat a line that two areas share alike, so that no gaps open.

    Parameters
    ----------
    areas : sequence of sequences of Ring
        At least one, with at least one ring each.
    """
    points = np.radians(np.concatenate([ring for rings in areas for ring in rings]))
    flat = _project(points, _middle(points))
    low, high = flat.min(axis=0), flat.max(axis=0)
    unit = float((high - low).max()) / _ACROSS or 1.0
    grid = np.rint((flat - (low[0], high[1])) / (unit, -unit)).astype(np.int64)
    lengths = [len(ring) for rings in areas for ring in rings]
    lines = iter(np.split(grid, np.cumsum(lengths)[:-1]))
    drawn = [[_simplify(next(lines)) for _ in rings] for rings in areas]
    width, height = (max(1, round(float(side) / unit)) for side in high - low)
    return MapLayout(width, height, unit, tuple(map(_path, drawn)), tuple(map(_spot, drawn)))


def _middle(points: Floats) -> Floats:
    """The middle of points on a sphere, longitude and latitude in radians; the date line does not matter to it."""
    east, north = points.T
    around = np.array([np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)])
    x, y, z = (around.min(axis=1) + around.max(axis=1)) / 2
    return np.array([np.arctan2(y, x), np.arctan2(z, np.hypot(x, y))])


def _project(points: Floats, middle: Floats) -> Floats:
    """Lambert's azimuthal equal-area projection, in kilometres east and north of the middle."""
    east, north = points[:, 0] - middle[0], points[:, 1]
    sin_0, cos_0 = np.sin(middle[1]), np.cos(middle[1])
    ahead = sin_0 * np.sin(north) + cos_0 * np.cos(north) * np.cos(east)
    stretch = np.sqrt(2 / np.maximum(1 + ahead, 1e-9))
    across = np.cos(north) * np.sin(east)
    up = cos_0 * np.sin(north) - sin_0 * np.cos(north) * np.cos(east)
    flat: Floats = _EARTH * (stretch * np.array([across, up])).T
    return flat


def _simplify(line: Ints) -> Ints:
    """A ring on the grid without points that repeat or lie on a line between their neighbours; not closed."""
    apart = (line != np.roll(line, 1, axis=0)).any(axis=1)
    line = line[apart] if apart.any() else line[:1]
    while len(line) > 2:
        before, after = line - np.roll(line, 1, axis=0), np.roll(line, -1, axis=0) - line
        straight = before[:, 0] * after[:, 1] == before[:, 1] * after[:, 0]
        if straight.all():
            return line[:1]
        # Of neighbours that both are straight the second may not be, once the first is gone.
        gone = straight & ~np.roll(straight, 1)
        if not gone.any():
            return line
        line = line[~gone]
    return line


def _path(rings: Sequence[Ints]) -> str:
    """Rings as SVG writes them, each point by its distance from the one before; an area too small to see is a dot."""
    seen = [ring for ring in rings if len(ring) > 2]
    if not seen:
        x, y = rings[0][0].tolist()
        return f"M{x} {y}h2v2h-2z"
    return "".join(map(_loop, seen))


def _loop(ring: Ints) -> str:
    x, y = ring[0].tolist()
    steps = (f"{dx}{'' if dy < 0 else ' '}{dy}" for dx, dy in np.diff(ring, axis=0).tolist())
    return f"M{x} {y}l{' '.join(steps).replace(' -', '-')}z"


def _spot(rings: Sequence[Ints]) -> tuple[float, float, float]:
    """Where a name fits best: the middle of a wide stretch within the area, rather at half its height."""
    lines = [np.stack([ring, np.roll(ring, -1, axis=0)], axis=1) for ring in rings if len(ring) > 2]
    if not lines:
        return (*map(float, rings[0][0].tolist()), 0.0)  # type: ignore[return-value]
    edges = np.concatenate(lines).astype(np.float64)
    low, high = float(edges[..., 1].min()), float(edges[..., 1].max())
    best = (float(edges[0, 0, 0]), low, 0.0)
    most = 0.0
    # Not at a height of the grid, where lines may lie.
    for height in (np.linspace(low, high, 15)[1:-1] + 0.37).tolist():
        (x1, y1), (x2, y2) = edges[:, 0].T, edges[:, 1].T
        crossed = (y1 <= height) != (y2 <= height)
        at = x1[crossed] + (height - y1[crossed]) / (y2 - y1)[crossed] * (x2 - x1)[crossed]
        for start, stop in pairwise(np.sort(at).tolist()):
            inside = np.count_nonzero(at <= start) % 2 == 1
            worth = (stop - start) * (1.0 - abs(2 * height - low - high) / (high - low + 1))
            if inside and worth > most:
                best, most = ((start + stop) / 2, height, stop - start), worth
    return best


@dataclass(frozen=True, slots=True)
class ValueClasses:
    """Values put into classes.

    Attributes
    ----------
    bounds : tuple of float
        The highest value of each class but the last.
    words : tuple of str
        What each class is called.
    """

    bounds: tuple[float, ...]
    words: tuple[str, ...]

    def of(self, values: Floats) -> list[int]:
        """The class of each value, -1 of those that are none."""
        found = np.searchsorted(self.bounds, values, side="left")
        return [int(place) for place in np.where(np.isnan(values), -1, found)]


def count_classes(values: Floats) -> ValueClasses:
    """Classes with about as many areas each, for counts are skewed; bounds are rounded to two digits."""
    bounds = _quantiles(values)
    starts = ["0", *(whole(bound + 1) for bound in bounds)]
    ends = [*map(whole, bounds), ""]
    words = (
        (start if start == end else f"{start} to {end}") if end else f"{start} and more"
        for start, end in zip(starts, ends, strict=True)
    )
    return ValueClasses(bounds, tuple(words))


def share_classes(values: Floats) -> ValueClasses:
    """Classes of shares with about as many areas each."""
    bounds = _quantiles(values)
    told = [f"{rounded(100 * bound, 2)}%" for bound in bounds]
    starts = [f"up to {told[0]}", *(f"to {bound}" for bound in told[1:])] if told else []
    return ValueClasses(bounds, (*starts, f"more than {told[-1]}" if told else "all"))


def _quantiles(values: Floats) -> tuple[float, ...]:
    known = values[np.isfinite(values)]
    if not len(known):
        return ()
    cuts = np.quantile(known, np.arange(1, CLASSES) / CLASSES, method="inverted_cdf")
    digits = (float(f"{cut:.2g}") for cut in cuts.tolist())
    return tuple(sorted({cut for cut in digits if 0 <= cut < known.max()}))


@dataclass(frozen=True, slots=True, eq=False)
class Shading:
    """What fills areas.

    Attributes
    ----------
    classes : ValueClasses
    values : ndarray of float, shape (areas,)
        NaN for none.
    scale : str
        The class in the style sheet that has the colours: "counts" or "errors".
    """

    classes: ValueClasses
    values: Floats
    scale: str


@dataclass(frozen=True, slots=True, eq=False)
class Lettering:
    """What is written of areas.

    Attributes
    ----------
    titles : sequence of str
        What is told of each area when it is pointed at.
    names : sequence of str
        Written where there is room; empty for none.
    importance : ndarray of float, shape (areas,), or None
        Whose names come first, if not those of higher values.
    kind, codes : str and sequence of str
        What a script of the page calls the areas.
    """

    titles: Sequence[str]
    names: Sequence[str] = ()
    importance: Floats | None = None
    kind: str = ""
    codes: Sequence[str] = ()


def draw_map(layout: MapLayout, shared: str, shading: Shading, lettering: Lettering, label: str) -> Html:
    """Draw areas filled by class (a choropleth).

    Parameters
    ----------
    layout : MapLayout
    shared : str
        The prefix that `outlines` was given.
    shading : Shading
    lettering : Lettering
    label : str
        What the map shows, in a sentence.
    """
    sizes = [_LETTER * layout.width / pixels for pixels in (layout.pixels, _NARROW)]
    values = shading.values
    importance = np.nan_to_num(values if lettering.importance is None else lettering.importance)
    return fill(
        "map.html",
        {
            "layout": layout,
            "shared": shared,
            "areas": list(zip(shading.classes.of(values), lettering.titles, strict=True)),
            "sizes": [round(size) for size in sizes],
            "names": _place(layout, lettering.names, importance, sizes),
            "kind": lettering.kind,
            "codes": json.dumps(list(lettering.codes)),
            "scale": shading.scale,
            "label": label,
            "legend": shading.classes.words,
            "missing": bool(np.isnan(values).any()),
        },
    )


def outlines(layout: MapLayout, shared: str) -> Html:
    """The outlines that several maps of a page share, under identifiers with a prefix."""
    return fill("outlines.html", {"layout": layout, "shared": shared})


def _place(
    layout: MapLayout, names: Sequence[str], values: Floats, sizes: Sequence[float]
) -> list[tuple[float, float, str, bool]]:
    """Names where they fit into their areas and cover no other: x, y, the name, and whether it fits on a telephone."""
    order = sorted((i for i, name in enumerate(names) if name), key=lambda i: (-values[i], names[i]))
    taken: list[list[tuple[float, float, float, float]]] = [[], []]
    found: dict[int, bool] = {}
    for narrow in (True, False):
        size = sizes[narrow]
        for i in order:
            x, y, room = layout.spots[i]
            half = 0.29 * size * len(names[i])
            box = (x - half, y - 0.6 * size, x + half, y + 0.6 * size)
            fits = 2 * half <= 1.25 * room and box[0] >= 0 and box[2] <= layout.width
            if fits and not any(_overlap(box, other) for other in taken[narrow]):
                taken[narrow].append(box)
                found[i] = found.get(i, False) or narrow
    return [(round(layout.spots[i][0]), round(layout.spots[i][1]), names[i], narrow) for i, narrow in found.items()]


def _overlap(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
