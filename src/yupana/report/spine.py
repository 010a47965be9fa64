"""A spine in words and pictures, beside the spines of tabulation geography over the same blocks. All public."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from yupana.arrays import Floats, Ints
from yupana.errors import InputError
from yupana.geography.aian import aian_spine
from yupana.geography.blocks import Reference
from yupana.geography.build import REPORT, conventional_spine
from yupana.geography.disk import WrittenSpine, manifest_of, read_areas, read_shares, read_spine, settings_of
from yupana.geography.distance import distances
from yupana.geography.entities import Entities
from yupana.geography.settings import Kind, SpineSettings
from yupana.geography.spine import Spine, precisions
from yupana.geography.tree import Tree, partition
from yupana.geography.variance import entity_variances, unit_variances
from yupana.progress import Announce
from yupana.release.check import describe_reports
from yupana.release.folder import write_manifest
from yupana.report.charts import Mark, before_and_after, log_dots, shaded_map
from yupana.report.html import element, paragraph, table
from yupana.report.maps import Boundary, read_boundaries
from yupana.report.numbers import rounded, whole
from yupana.report.page import Chart, Figure, Page, Section, render
from yupana.report.place import claim_page, write_page

NAMES: Final = {"conventional": "conventional", "aian": "AIAN", "optimized": "optimized"}
_SPINES: Final = {
    "conventional": Mark("conventional", "#8a939c", "circle"),
    "aian": Mark("AIAN", "#3d86c6", "diamond"),
    "optimized": Mark("optimized", "#e07b28", "triangle-up"),
}
_KINDS: Final = (
    Mark("place", "#3d86c6", "circle"),
    Mark("county_subdivision", "#e07b28", "triangle-up"),
    Mark("aiannh", "#4b9b6b", "diamond"),
    Mark("other", "#8180d6", "square"),
)
_WORST: Final = 20
_BOUNDS: Final = (1, 2, 5, 10, 20, 50, 100)
_COLOURS: Final = ("#b5d4ec", "#86b9dd", "#5a99c9", "#e8b27a", "#e08a3c", "#c8601c", "#93370d")


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A spine with what is told of it.

    Attributes
    ----------
    kind : str
    tree : Tree
    block : ndarray of int64
        In the order of the tree.
    precisions : tuple of ndarray of float
        As in `unit_variances`.
    """

    kind: str
    tree: Tree
    block: Ints
    precisions: tuple[Floats, ...]

    @property
    def fanouts(self) -> Mapping[str, tuple[float, int]]:
        """Mean and largest number of children by geolevel."""
        levels = range(len(self.tree.names) - 1)
        children = {self.tree.names[level]: self.tree.children(level) for level in levels}
        return {name: (float(number.mean()), int(number.max())) for name, number in children.items()}


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """The entities of one kind on several spines.

    Attributes
    ----------
    column : str
    labels : tuple of str
    blocks : list of int
        How many each has.
    distances : mapping of spine to list of int
    variances : mapping of spine to list of float
    """

    column: str
    labels: tuple[str, ...]
    blocks: list[int]
    distances: Mapping[str, Sequence[float]]
    variances: Mapping[str, Sequence[float]]


Pick = Callable[[Comparison], Mapping[str, Sequence[float]]]
"""Which of the two."""


def write_report(folder: Path, boundaries: Path | None, to: Path | None, announce: Announce) -> Path:
    """Write the report of a spine on disk as one HTML file; return its path.

    Raises
    ------
    ConfigError, InputError, OutputError
        If charts cannot be drawn, a file is not what it should be, or the report cannot be written.
    """
    place = claim_page(to if to is not None else folder / REPORT)
    manifest = manifest_of(folder)
    settings = settings_of(manifest, folder)
    shapes = read_boundaries(boundaries) if boundaries is not None else ()
    announce("reading the spine")
    written = read_spine(folder, settings.levels)
    areas = read_areas(folder, written)
    announce("measuring")
    spines = [*_tabulation_spines(written, areas, settings), _own(folder, written, settings)]
    spines = [spine for spine in spines if spine.kind != settings.kind or spine.block is written.block]
    compared = [_compare(kind, written, spines) for kind in areas if kind.labels]
    announce("drawing")
    write_page(place, render(_page(settings, manifest, spines, compared, shapes)))
    if place.path.resolve() == (folder / REPORT).resolve():
        write_manifest(folder, {**manifest, "reports": describe_reports(folder, [REPORT])})
    return place.path


def _own(folder: Path, written: WrittenSpine, settings: SpineSettings) -> Measured:
    told = read_shares(folder, written)
    values = np.array([float(s if settings.mechanism == "zcdp" else s * s / 8) for s in told.shares])
    return Measured(settings.kind, written.tree, written.block, tuple(values[index] for index in told.index))


def _tabulation_spines(written: WrittenSpine, areas: list[Entities], settings: SpineSettings) -> list[Measured]:
    """The conventional and the AIAN spine of the same blocks."""
    order = np.argsort(written.block)
    tribal = next(kind for kind in areas if kind.column == "aiannh")
    codes = np.array([*map(int, tribal.labels), 9999], dtype=np.int32)
    none = np.full(len(order), 99999, dtype=np.int32)
    reference = Reference(written.block[order], codes[tribal.index][order], none, none, MappingProxyType({}))
    spines: dict[Kind, Callable[[Reference, SpineSettings], Spine]] = {
        "conventional": conventional_spine,
        "aian": aian_spine,
    }
    found = []
    for kind, make in spines.items():
        spine = make(reference, replace(settings, kind=kind))
        found.append(Measured(kind, spine.tree, spine.blocks, precisions(spine, settings.mechanism)))
    return [spine for spine in found if spine.tree.units(0) == 1]


def _compare(kind: Entities, written: WrittenSpine, spines: Sequence[Measured]) -> Comparison:
    order = np.argsort(written.block)
    in_order = kind.index[order]
    far: dict[str, list[int]] = {}
    variances: dict[str, list[float]] = {}
    for spine in spines:
        index = in_order[np.searchsorted(written.block[order], spine.block)]
        members = partition(index, len(kind.labels))
        far[spine.kind] = distances(spine.tree, members).tolist()
        variances[spine.kind] = entity_variances(spine.tree, spine.precisions, members).tolist()
    blocks = np.bincount(kind.index[kind.index >= 0], minlength=len(kind.labels)).tolist()
    return Comparison(kind.column, kind.labels, blocks, far, variances)


def _page(
    settings: SpineSettings,
    manifest: Mapping[str, Any],
    spines: Sequence[Measured],
    compared: Sequence[Comparison],
    shapes: Sequence[Boundary],
) -> Page:
    own = spines[-1].kind
    first = spines[0].kind
    numbers = {
        "Blocks": (whole(spines[-1].tree.units(len(settings.levels) - 1)), f"{NAMES[own]} spine, {_law(settings)}"),
        "Largest fan-out": (
            whole(max(largest for _, largest in spines[-1].fanouts.values())),
            f"children of one geounit; {whole(max(n for _, n in spines[0].fanouts.values()))} on the "
            f"{NAMES[first]} spine",
        ),
    }
    for kind in compared:
        if kind.column in {"place", "county_subdivision"}:
            for what, values, words in (
                ("distance", kind.distances, "geounits to add or subtract"),
                ("variance", kind.variances, "of an estimated total"),
            ):
                before, after = rounded(mean(values[first])), rounded(mean(values[own]))
                numbers[f"Mean {what}, {_plural(kind.column)}"] = (
                    after,
                    f"{words}; {before} on the {NAMES[first]} spine",
                )
    sections = [_spine_section(settings, manifest, spines), _fanout_section(spines)]
    if compared:
        sections += [
            _distance_section(spines, compared),
            _variance_section(settings, spines, compared),
            _worst_section(spines, compared),
        ]
    if shapes:
        sections.append(_map_section(spines, compared, shapes))
    return Page(
        f"Geographic spine: {NAMES[own]}",
        "PUBLIC",
        "Made of geography, housing units and facilities alone; no record of a person was read.",
        numbers,
        tuple(sections),
    )


def _law(settings: SpineSettings) -> str:
    return "zero-concentrated DP" if settings.mechanism == "zcdp" else "pure DP"


def _plural(column: str) -> str:
    return {"place": "places", "county_subdivision": "county subdivisions", "aiannh": "AIANNH areas"}.get(
        column, column
    )


def _singular(column: str) -> str:
    return {"county_subdivision": "county subdivision", "aiannh": "AIANNH area"}.get(column, column)


def _spine_section(settings: SpineSettings, manifest: Mapping[str, Any], spines: Sequence[Measured]) -> Section:
    own = spines[-1]
    variances = unit_variances(own.tree, own.precisions)
    told = manifest["geolevels"]
    rows: dict[str, Sequence[object]] = {
        "Geolevel": own.tree.names,
        "Geounits": [whole(own.tree.units(level)) for level in range(len(own.tree.names))],
        "Bypassed": [whole(told[name]["bypassed"]) for name in own.tree.names],
        "Starting share": [str(share) for share in settings.shares],
        "Mean variance": [rounded(float(values.mean())) for values in variances],
        "Largest variance": [rounded(float(values.max())) for values in variances],
    }
    chosen = {name: value for name, value in manifest["settings"].items() if name not in {"shares", "levels"}}
    listed: dict[str, Sequence[object]] = {
        "Option": list(chosen),
        "Value": [", ".join(map(str, value)) if isinstance(value, list) else str(value) for value in chosen.values()],
    }
    return Section(
        "spine",
        "The spine",
        (
            paragraph(
                "A spine is a hierarchy of geounits from the nation to the census blocks. Each geounit is measured "
                "with its share of the privacy budget; shares along every path from the root to a block sum to exactly "
                "1. A bypassed geounit has given its share to the geounit above. Published tables keep the definitions "
                "of tracts and block groups of tabulation geography, whatever the spine."
            ),
            table(rows, "Geounits by geolevel, with the variance of their estimated total.", _unit(settings)),
            element("details", element("summary", "All settings"), table(listed, "Settings of this spine.")),
        ),
    )


def _unit(settings: SpineSettings) -> str:
    budget, changes = (
        ("ρ = 1", "with another budget they change in inverse proportion")
        if settings.mechanism == "zcdp"
        else ("ε = 1", "with another budget they change with the inverse of its square")
    )
    return (
        f"Variances are those of the least-squares estimate of a total when the budget is {budget} and all of it goes "
        f"to the total; {changes}."
    )


def _fanout_section(spines: Sequence[Measured]) -> Section:
    series = [_SPINES[spine.kind] for spine in spines]
    charts = []
    for place, title in enumerate(("Mean number of children", "Largest number of children")):
        rows = [
            {"category": level, "series": NAMES[spine.kind], "value": numbers[place]}
            for spine in spines
            for level, numbers in spine.fanouts.items()
        ]
        data: dict[str, Sequence[object]] = {"Geolevel": list(spines[0].fanouts)}
        for spine in spines:
            data[NAMES[spine.kind]] = [rounded(n[place], 4) for n in spine.fanouts.values()]
        charts.append(
            Chart(
                f"{title} of a geounit, by geolevel and spine.",
                lambda width, rows=rows: log_dots(rows, series, width, axis="children (log scale)"),  # type: ignore[misc]
                data,
                title,
            )
        )
    return Section(
        "fanouts",
        "Fan-outs",
        (
            paragraph(
                "The fan-out of a geounit is the number of its children. High ones make the step from parent to "
                "children hard to solve and noisy; a fan-out of 1 wastes a measurement, which is why such "
                "parents are bypassed."
            ),
            Figure(tuple(charts), "Dots farther left are smaller fan-outs.", tuple(series)),
        ),
    )


def _distance_section(spines: Sequence[Measured], compared: Sequence[Comparison]) -> Section:
    first, own = spines[0].kind, spines[-1].kind
    rows = _summary(spines, compared, lambda c: c.distances, rounded)
    return Section(
        "distances",
        "Distances",
        (
            paragraph(
                "The off-spine entity distance is the smallest number of geounits that must be added and subtracted to "
                "make up an area: 1 if it is a geounit itself. The farther an area, the noisier its counts."
            ),
            table(rows, "Distances by kind of area and spine."),
            *_before_after(compared, first, own, lambda c: c.distances, "distance"),
        ),
    )


def _variance_section(settings: SpineSettings, spines: Sequence[Measured], compared: Sequence[Comparison]) -> Section:
    first, own = spines[0].kind, spines[-1].kind
    rows = _summary(spines, compared, lambda c: c.variances, rounded)
    return Section(
        "variances",
        "Variances",
        (
            paragraph(
                "The variance of the estimated total of each area when all noisy totals on the spine are combined by "
                "least squares, which is the best linear use of them. The TopDown Algorithm is not linear, so this "
                "compares spines and does not state its error."
            ),
            table(rows, "Variances by kind of area and spine.", _unit(settings)),
            *_before_after(compared, first, own, lambda c: c.variances, "variance"),
        ),
    )


def _summary(
    spines: Sequence[Measured],
    compared: Sequence[Comparison],
    pick: Pick,
    shown: Callable[[float], str],
) -> dict[str, list[object]]:
    rows: dict[str, list[object]] = {"Areas": [], "Spine": [], "Number": [], "Mean": [], "Median": [], "Largest": []}
    for kind in compared:
        for spine in spines:
            values = pick(kind)[spine.kind]
            cells = (mean(values), median(values), max(values))
            rows["Areas"].append(_plural(kind.column))
            rows["Spine"].append(NAMES[spine.kind])
            rows["Number"].append(whole(len(values)))
            for name, value in zip(("Mean", "Median", "Largest"), cells, strict=True):
                rows[name].append(shown(value))
    return rows


def _before_after(
    compared: Sequence[Comparison],
    first: str,
    own: str,
    pick: Pick,
    what: str,
) -> list[Figure]:
    if first == own:
        return []
    names = [series.name for series in _KINDS]
    rows: list[dict[str, Any]] = []
    data: dict[str, list[object]] = {"Area": [], "Kind": [], f"{NAMES[first]}": [], f"{NAMES[own]}": []}
    for kind in compared:
        for label, x, y in zip(kind.labels, pick(kind)[first], pick(kind)[own], strict=True):
            if not (np.isfinite(x) and np.isfinite(y) and min(x, y) > 0):
                continue
            rows.append({"x": x, "y": y, "series": kind.column if kind.column in names else "other"})
            for name, value in zip(data, (label, _plural(kind.column), rounded(x, 4), rounded(y, 4)), strict=True):
                data[name].append(value)
    if not rows:
        return []
    used = {row["series"] for row in rows}
    series = tuple(replace(s) for s in _KINDS if s.name in used)
    label = f"The {what} of each area on the {NAMES[first]} and on the {NAMES[own]} spine."
    legend = tuple(replace(s, name=_plural(s.name)) for s in series)
    chart = Chart(
        label,
        lambda width: before_and_after(
            rows,
            series,
            width,
            x=f"{what}, {NAMES[first]} spine (log scale)",
            y=f"{what}, {NAMES[own]} spine",
        ),
        data,
    )
    smaller = sum(row["y"] < row["x"] for row in rows)
    larger = sum(row["y"] > row["x"] for row in rows)
    words = (
        f"Below the line the {what} is smaller on the {NAMES[own]} spine: {whole(smaller)} of {whole(len(rows))} "
        f"areas; {whole(larger)} are above it."
    )
    return [Figure((chart,), words, legend)]


def _worst_section(spines: Sequence[Measured], compared: Sequence[Comparison]) -> Section:
    own = spines[-1].kind
    ranked = sorted(
        ((kind, i) for kind in compared for i in range(len(kind.labels))),
        key=lambda item: (-item[0].distances[own][item[1]], item[0].column, item[1]),
    )[:_WORST]
    named: dict[str, Sequence[object]] = {
        "Kind": [_singular(kind.column) for kind, _ in ranked],
        "Area": [kind.labels[i] for kind, i in ranked],
    }
    far = named | {"Blocks": [whole(kind.blocks[i]) for kind, i in ranked]}
    noisy = dict(named)
    for spine in spines:
        far[NAMES[spine.kind]] = [whole(kind.distances[spine.kind][i]) for kind, i in ranked]
        noisy[NAMES[spine.kind]] = [rounded(kind.variances[spine.kind][i]) for kind, i in ranked]
    note = "Places are named by state and place, county subdivisions by state, county and subdivision."
    return Section(
        "worst",
        "The farthest areas",
        (
            table(far, f"Distances of the {len(ranked)} areas farthest from this spine, by spine.", note),
            table(noisy, "Variances of the same areas, by spine."),
        ),
    )


def _map_section(spines: Sequence[Measured], compared: Sequence[Comparison], shapes: Sequence[Boundary]) -> Section:
    names = {shape.name for shape in shapes}
    kind = max(compared, key=lambda c: len(names & set(c.labels)), default=None)
    if kind is None or not names & set(kind.labels):
        raise InputError(
            "the boundaries show no area of this spine; give those of places or county subdivisions, whose GEOID "
            "is state and place, or state, county and subdivision"
        )
    shown = [spines[0], spines[-1]] if len(spines) > 1 else [spines[-1]]
    place = {label: i for i, label in enumerate(kind.labels)}
    drawn = [shape for shape in shapes if shape.name in place]
    points = np.concatenate([ring for shape in drawn for ring in shape.rings])
    across, up = (points.max(axis=0) - points.min(axis=0)).tolist()
    charts = []
    for spine in shown:
        features = [_feature(shape, kind.distances[spine.kind][place[shape.name]]) for shape in drawn]
        data: dict[str, Sequence[object]] = {
            "Area": [shape.name for shape in drawn],
            "Distance": [whole(kind.distances[spine.kind][place[shape.name]]) for shape in drawn],
        }
        charts.append(
            Chart(
                f"Map of {_plural(kind.column)} by their distance from the {NAMES[spine.kind]} spine.",
                lambda width, features=features: shaded_map(features, width, round(width * up / across)),  # type: ignore[misc]
                data,
                f"{NAMES[spine.kind]} spine".capitalize() if spine.kind != "aian" else "AIAN spine",
            )
        )
    legend = tuple(
        Mark(f"{low}" if high == low + 1 else f"{low} to {high - 1}" if high else f"{low} or more", colour)
        for low, high, colour in zip(_BOUNDS, (*_BOUNDS[1:], 0), _COLOURS, strict=True)
    )
    return Section(
        "map",
        "Map",
        (Figure(tuple(charts), f"Distances of {_plural(kind.column)}: the darker or redder, the farther.", legend),),
    )


def _feature(shape: Boundary, distance: float) -> Mapping[str, object]:
    colour = _COLOURS[sum(distance >= bound for bound in _BOUNDS[1:])]
    rings = [np.round(ring, 5).tolist() for ring in shape.rings]
    return {
        "type": "Feature",
        "properties": {"colour": colour},
        "geometry": {"type": "Polygon", "coordinates": rings},
    }
