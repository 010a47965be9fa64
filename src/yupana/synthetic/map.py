"""An invented map: blocks of a synthetic state as squares along Hilbert's curve, and the areas that they make up."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

Point = tuple[int, int]

_SOUTH_WEST: Final = (-71.9, 41.3)
_SIDE: Final = 0.01
"""Degrees; of a block."""


def outlines(areas: Sequence[str]) -> dict[str, Any]:
    """Draw areas as GeoJSON, each where its blocks come on the curve: a stretch of blocks hangs together.

    Parameters
    ----------
    areas : sequence of str
        The area of each block, in the order of the blocks.
    """
    squares: dict[str, list[Point]] = {}
    side = 1
    while side * side < len(areas):
        side *= 2
    for place, area in enumerate(areas):
        squares.setdefault(area, []).append(along(place, side))
    features = [
        {
            "type": "Feature",
            "properties": {"GEOID": area},
            "geometry": {"type": "MultiPolygon", "coordinates": [[list(map(_degrees, ring))] for ring in rings(of)]},
        }
        for area, of in squares.items()
    ]
    return {"type": "FeatureCollection", "features": features}


def along(place: int, side: int) -> Point:
    """The square at a place of Hilbert's curve through a field of side * side squares, a power of two."""
    x = y = 0
    step = 1
    while step < side:
        right = 1 & (place // 2)
        up = 1 & (place ^ right)
        if not up:
            if right:
                x, y = step - 1 - x, step - 1 - y
            x, y = y, x
        x, y = x + step * right, y + step * up
        place //= 4
        step *= 2
    return x, y


def rings(squares: Iterable[Point]) -> list[list[Point]]:
    """The closed lines about unit squares, told by their lower left corners."""
    edges: set[tuple[Point, Point]] = set()
    for x, y in squares:
        corners = [(x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1)]
        for edge in zip(corners, [*corners[1:], corners[0]], strict=True):
            # What two squares share is gone along twice, once in each direction.
            if edge[::-1] in edges:
                edges.remove(edge[::-1])
            else:
                edges.add(edge)
    onward: dict[Point, list[Point]] = {}
    for start, stop in sorted(edges):
        onward.setdefault(start, []).append(stop)
    found = []
    while onward:
        ring = [next(iter(onward))]
        while len(ring) == 1 or ring[-1] != ring[0]:
            stops = onward[ring[-1]]
            following = stops.pop()
            if not stops:
                del onward[ring[-1]]
            ring.append(following)
        found.append(ring)
    return found


def _degrees(point: Point) -> list[float]:
    return [round(corner + _SIDE * number, 6) for corner, number in zip(_SOUTH_WEST, point, strict=True)]
