"""Maps: areas keep their sizes and their shared lines; classes hold about as many areas each."""

import re
from itertools import pairwise

import numpy as np
import pytest
from boundary_files import square

from yupana.report.maps import ValueClasses, draw_map, lay_out, outlines

ALL = ValueClasses((), ("all",))


def rings_of(path: str) -> list[np.ndarray]:
    """The points of a path as SVG writes it."""
    found = []
    for ring in re.findall(r"M[^z]*z", path):
        first, steps = re.fullmatch(r"M(-?\d+ -?\d+)(?:l|h)(.*)z", ring).groups()
        numbers = np.array([list(map(int, first.split())), *np.array(re.findall(r"-?\d+", steps), int).reshape(-1, 2)])
        found.append(numbers.cumsum(axis=0))
    return found


def surface(ring: np.ndarray) -> float:
    x, y = ring.T
    return abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1))) / 2


def fine(corner: tuple[float, float], side: float, steps: int = 40) -> np.ndarray:
    """A square whose sides have many points, so that they bend as the projection bends them."""
    corners = np.array(square(corner, side))
    along = np.arange(steps)[:, None] / steps
    return np.concatenate([a + along * (b - a) for a, b in pairwise(corners)] + [corners[:1]])


def test_areas_keep_their_sizes_wherever_they_are() -> None:
    places = [(-100.0, 10.0), (-100.0, 40.0), (-60.0, 65.0), (170.0, 50.0)]
    layout = lay_out([[fine(place, 4.0)] for place in places])
    for path, (_, south) in zip(layout.paths, places, strict=True):
        true = 6371.0072**2 * np.radians(4.0) * (np.sin(np.radians(south + 4)) - np.sin(np.radians(south)))
        (ring,) = rings_of(path)
        assert surface(ring) * layout.unit**2 == pytest.approx(true, rel=0.02)


def test_areas_on_both_sides_of_the_date_line_are_neighbours() -> None:
    layout = lay_out([[fine((-180.0, 50.0), 1.0)], [fine((179.0, 50.0), 1.0)]])
    assert layout.width * layout.unit < 200


def test_a_line_that_areas_share_stays_one() -> None:
    rng = np.random.default_rng(5)
    side = np.stack([1 + rng.normal(0, 0.05, 400), np.linspace(0, 1, 400)], axis=1)
    left = np.concatenate([side, [[0, 1], [0, 0]], side[:1]])
    right = np.concatenate([side[::-1], [[2, 0], [2, 1]], side[-1:]])
    # A different first point, as files have it.
    right = np.concatenate([right[200:-1], right[:201]])
    layout = lay_out([[left], [right]])
    whole = lay_out([[np.array([[0.0, 0], [0, 1], [2, 1], [2, 0], [0, 0]])], [left], [right]])
    (all_of_it,), (one,), (other,) = map(rings_of, whole.paths)
    assert surface(one) + surface(other) == pytest.approx(surface(all_of_it), abs=1)
    assert len(rings_of(layout.paths[0])[0]) < 410


def test_nothing_vanishes_however_small() -> None:
    layout = lay_out([[np.array(square((0.0, 0.0), 10.0))], [np.array(square((3.0, 3.0), 1e-6))]])
    assert re.fullmatch(r"M\d+ \d+h2v2h-2z", layout.paths[1])


def test_the_scale_is_that_of_the_middle() -> None:
    # A degree of latitude is 111 km.
    layout = lay_out([[fine((10.0, 45.0), 1.0)]])
    length, words = layout.bar
    assert length * layout.unit == pytest.approx(float(words.removesuffix(" km")), rel=0.01)
    assert layout.height * layout.unit == pytest.approx(111.2, rel=0.02)


def test_a_name_stands_within_its_area() -> None:
    # A horseshoe: its middle is outside.
    horseshoe = np.array([[0, 0], [9, 0], [9, 9], [6, 9], [6, 2], [3, 2], [3, 9], [0, 9], [0, 0]], dtype=float)
    layout = lay_out([[horseshoe]])
    x, y = layout.spots[0]
    assert not (layout.width * 0.34 < x < layout.width * 0.66 and y < layout.height * 0.76)


def test_what_is_drawn_is_escaped_and_told() -> None:
    layout = lay_out([[np.array(square((0.0, 0.0)))], [np.array(square((1.0, 0.0)))]])
    page = draw_map(layout, "m", ALL, np.array([3.0, 1.0]), ["<b>: 3", "none: 1"], "A map.")
    assert "&lt;b&gt;: 3" in page
    assert "<b>" not in page
    assert page.count("<use ") == 2
    assert page.count('class="k0"><title>') == 2
    assert outlines(layout, "m").count("<path ") == 2


@pytest.mark.parametrize("sides", [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0), (1e-9, 60.0), (60.0, 1e-9)])
def test_areas_without_width_or_height_are_drawn(sides: tuple[float, float]) -> None:
    x, y = sides
    layout = lay_out([[np.array([[0.0, 0], [0, y], [x, y], [x, 0], [0, 0]])]])
    page = draw_map(layout, "m", ALL, np.ones(1), ["a"], "A map.")
    assert page.count("<svg") == 1
