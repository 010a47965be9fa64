"""A spine in words and pictures, beside those of the other kinds over the same blocks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from yupana.arrays import Floats, Ints
from yupana.errors import InputError
from yupana.files.delimited import Labels
from yupana.geography.blocks import Reference
from yupana.geography.build import REPORT
from yupana.geography.distance import distances
from yupana.geography.entities import considered
from yupana.geography.optimized import optimized_spine
from yupana.geography.settings import DIGITS, REMADE, Kind, SpineSettings
from yupana.geography.spine import Spine, aian_spine, conventional_spine, precisions
from yupana.geography.spine_files import (
    ENTITIES,
    entities_of,
    manifest_of,
    read_shares,
    read_spine,
    settings_of,
)
from yupana.geography.tree import Tree, partition
from yupana.progress import Announce, Stopwatch, silent
from yupana.release.folder import write_manifest
from yupana.release.tables import describe_reports
from yupana.report.charts import Mark, before_and_after, log_dots
from yupana.report.html import Html
from yupana.report.maps import Boundary, ValueClasses, draw_map, lay_out, outlines, read_boundaries
from yupana.report.numbers import rounded, whole
from yupana.report.page import Chart, Figure, claim_page, render
from yupana.topdown.tree.least_squares import entity_variances, unit_variances

SPINES: Final[Mapping[Kind, Mark]] = {
    "conventional": Mark("conventional", "#8a939c", "circle"),
    "aian": Mark("AIAN", "#3d86c6", "diamond"),
    "optimized": Mark("optimized", "#e07b28", "triangle-up"),
    "pieces": Mark("pieces", "#4b9b6b", "square"),
}
"""Spines as they are called and drawn."""

_KINDS: Final = {
    "place": Mark("places", "#3d86c6", "circle"),
    "county_subdivision": Mark("county subdivisions", "#e07b28", "triangle-up"),
    "aiannh": Mark("AIANNH areas", "#4b9b6b", "diamond"),
    "block_group": Mark("block groups", "#8a939c", "square"),
}
"""Kinds of areas as they are called and drawn."""

_OTHER: Final = Mark("other", "#8180d6", "square")
_WORST: Final = 20
_DISTANCES: Final = ValueClasses((1, 4, 9, 19, 49), ("1", "2 to 4", "5 to 9", "10 to 19", "20 to 49", "50 or more"))


@dataclass(frozen=True, slots=True, eq=False)
class _MeasuredSpine:
    """A spine with what is told of it."""

    kind: Kind
    tree: Tree
    block: Ints  # in the order of the tree
    precisions: tuple[Floats, ...]  # as in `unit_variances`

    @property
    def name(self) -> str:
        """What it is called."""
        return SPINES[self.kind].name

    @property
    def fanouts(self) -> Mapping[str, tuple[float, int]]:
        """Mean and largest number of children by geolevel."""
        levels = range(len(self.tree.names) - 1)
        children = {self.tree.names[level]: self.tree.children(level) for level in levels}
        return {name: (float(number.mean()), int(number.max())) for name, number in children.items()}


@dataclass(frozen=True, slots=True, eq=False)
class _Comparison:
    """The entities of one kind on several spines."""

    column: str
    labels: tuple[str, ...]
    blocks: list[int]  # how many each has
    distances: Mapping[str, Sequence[float]]  # by spine
    variances: Mapping[str, Sequence[float]]  # by spine

    @property
    def name(self) -> str:
        """What several areas of the kind are called."""
        return _KINDS[self.column].name if self.column in _KINDS else self.column


Pick = Callable[[_Comparison], Mapping[str, Sequence[float]]]

_PICKS: Final[Mapping[str, Pick]] = {"distance": lambda kind: kind.distances, "variance": lambda kind: kind.variances}
"""What is compared of areas."""


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
    areas = entities_of(folder / ENTITIES, written, live=False)
    announce("measuring")
    own, _ = read_shares(folder, written)
    spines = [*_other_spines(written, areas, settings), _measured(settings.kind, own, settings)]
    compared = [_compare(column, kind, written, spines) for column, kind in areas.items() if kind.labels]
    groups = _compare("block_group", _block_groups(written), written, spines)
    announce("drawing")
    place.put(_page(settings, manifest, spines, compared, groups, shapes))
    if place.path.resolve() == (folder / REPORT).resolve():
        write_manifest(folder, {**manifest, "reports": describe_reports(folder, [REPORT])})
    return place.path


def _measured(kind: Kind, spine: Spine, settings: SpineSettings) -> _MeasuredSpine:
    return _MeasuredSpine(kind, spine.tree, spine.blocks, precisions(spine, settings.mechanism))


def _other_spines(written: Spine, areas: Mapping[str, Labels], settings: SpineSettings) -> list[_MeasuredSpine]:
    """The spines of the other kinds over the same blocks, of the same classes and with the cut-offs of their kinds."""
    order = np.argsort(written.blocks)
    in_order = {column: kind.of(order) for column, kind in areas.items()}
    tribal = in_order["aiannh"]
    codes = np.array([*map(int, tribal.labels), 9999], dtype=np.int32)
    none = np.full(len(order), 99999, dtype=np.int32)
    reference = Reference(written.blocks[order], codes[tribal.index], none, none, MappingProxyType({}))

    def make(settings: SpineSettings) -> Spine:
        if settings.kind in REMADE:
            return optimized_spine(reference, considered(in_order, settings), settings, Stopwatch(silent))
        return (conventional_spine if settings.kind == "conventional" else aian_spine)(reference, settings)

    kinds = [kind for kind in SPINES if kind != settings.kind]
    spines = {kind: make(settings.of_kind(kind)) for kind in kinds}
    return [_measured(kind, spine, settings) for kind, spine in spines.items() if spine.tree.units(0) == 1]


def _block_groups(written: Spine) -> Labels:
    """Those of tabulation geography."""
    codes, index = np.unique(written.blocks // 10 ** (16 - DIGITS["Block_Group"]), return_inverse=True)
    return Labels(index.astype(np.int32), tuple(f"{code:012d}" for code in codes.tolist()))


def _compare(column: str, kind: Labels, written: Spine, spines: Sequence[_MeasuredSpine]) -> _Comparison:
    far: dict[str, list[int]] = {}
    variances: dict[str, list[float]] = {}
    for spine in spines:
        members = partition(kind.index[written.places(spine.block)], len(kind.labels))
        far[spine.kind] = distances(spine.tree, members).tolist()
        variances[spine.kind] = entity_variances(spine.tree, spine.precisions, members).tolist()
    blocks = np.bincount(kind.index[kind.index >= 0], minlength=len(kind.labels)).tolist()
    return _Comparison(column, kind.labels, blocks, far, variances)


def _page(
    settings: SpineSettings,
    manifest: Mapping[str, Any],
    spines: Sequence[_MeasuredSpine],
    compared: Sequence[_Comparison],
    groups: _Comparison,
    shapes: Sequence[Boundary],
) -> str:
    own, first = spines[-1], spines[0]
    variances = unit_variances(own.tree, own.precisions)
    chosen = {name: value for name, value in manifest["settings"].items() if name not in {"shares", "levels"}}
    means = [
        (what, kind.name, mean(pick(kind)[own.kind]), mean(pick(kind)[first.kind]))
        for kind in compared
        if kind.column in {"place", "county_subdivision"}
        for what, pick in _PICKS.items()
    ]
    return render(
        "spine.html",
        own=own,
        first=first,
        zcdp=settings.mechanism == "zcdp",
        blocks=own.tree.units(len(settings.levels) - 1),
        largest=[max(largest for _, largest in spine.fanouts.values()) for spine in (own, first)],
        means=means,
        geolevels={
            "Geolevel": own.tree.names,
            "Geounits": [whole(own.tree.units(level)) for level in range(len(own.tree.names))],
            "Bypassed": [whole(manifest["geolevels"][name]["bypassed"]) for name in own.tree.names],
            "Starting share": [str(share) for share in settings.shares],
            "Mean variance": [rounded(float(values.mean())) for values in variances],
            "Largest variance": [rounded(float(values.max())) for values in variances],
        },
        settings={
            "Option": list(chosen),
            "Value": [", ".join(map(str, v)) if isinstance(v, list) else str(v) for v in chosen.values()],
        },
        fanouts=_fanouts(spines),
        compared=compared,
        distances=_summary(spines, [*compared, groups], _PICKS["distance"]),
        variances=_summary(spines, [*compared, groups], _PICKS["variance"]),
        changes={what: _before_after(compared, first, own, what) for what in _PICKS},
        worst=_worst(spines, compared),
        map=_map(spines, compared, shapes) if shapes else None,
    )


def _fanouts(spines: Sequence[_MeasuredSpine]) -> Figure:
    marks = tuple(SPINES[spine.kind] for spine in spines)

    def chart(place: int, title: str) -> Chart:
        rows = [
            {"category": level, "series": spine.name, "value": numbers[place]}
            for spine in spines
            for level, numbers in spine.fanouts.items()
        ]
        by_spine = {spine.name: [rounded(n[place], 4) for n in spine.fanouts.values()] for spine in spines}
        return Chart(
            f"{title} of a geounit, by geolevel and spine.",
            lambda width: log_dots(rows, marks, width, axis="children (log scale)"),
            {"Geolevel": list(spines[0].fanouts), **by_spine},
            title,
        )

    return Figure((chart(0, "Mean number of children"), chart(1, "Largest number of children")), legend=marks)


def _summary(spines: Sequence[_MeasuredSpine], compared: Sequence[_Comparison], pick: Pick) -> dict[str, list[str]]:
    lines = [
        (kind.name, spine.name, whole(len(values)), *map(rounded, (mean(values), median(values), max(values))))
        for kind in compared
        for spine in spines
        for values in [pick(kind)[spine.kind]]
    ]
    heads = ("Areas", "Spine", "Number", "Mean", "Median", "Largest")
    return {head: [line[i] for line in lines] for i, head in enumerate(heads)}


def _before_after(
    compared: Sequence[_Comparison], first: _MeasuredSpine, own: _MeasuredSpine, what: str
) -> dict[str, Any] | None:
    """The figure of the areas before and after; None where the spines are one, or nothing can be compared."""
    pick = _PICKS[what]
    points = [
        (kind, label, x, y)
        for kind in compared
        for label, x, y in zip(kind.labels, pick(kind)[first.kind], pick(kind)[own.kind], strict=True)
        if np.isfinite(x) and np.isfinite(y) and min(x, y) > 0
    ]
    if first is own or not points:
        return None
    rows = [{"x": x, "y": y, "series": _KINDS.get(kind.column, _OTHER).name} for kind, _, x, y in points]
    used = {row["series"] for row in rows}
    marks = tuple(mark for mark in (*_KINDS.values(), _OTHER) if mark.name in used)
    chart = Chart(
        f"The {what} of each area on the {first.name} and on the {own.name} spine.",
        lambda width: before_and_after(
            rows, marks, width, x=f"{what}, {first.name} spine (log scale)", y=f"{what}, {own.name} spine"
        ),
        {
            "Area": [label for _, label, _, _ in points],
            "Kind": [kind.name for kind, _, _, _ in points],
            first.name: [rounded(x, 4) for _, _, x, _ in points],
            own.name: [rounded(y, 4) for _, _, _, y in points],
        },
    )
    return {
        "figure": Figure((chart,), legend=marks),
        "smaller": sum(y < x for _, _, x, y in points),
        "larger": sum(y > x for _, _, x, y in points),
        "areas": len(points),
    }


def _worst(spines: Sequence[_MeasuredSpine], compared: Sequence[_Comparison]) -> dict[str, dict[str, list[str]]]:
    own = spines[-1].kind
    ranked = sorted(
        ((kind, i) for kind in compared for i in range(len(kind.labels))),
        key=lambda item: (-item[0].distances[own][item[1]], item[0].column, item[1]),
    )[:_WORST]
    one = {"county_subdivision": "county subdivision", "aiannh": "AIANNH area"}
    kinds = [one.get(kind.column, kind.column) for kind, _ in ranked]
    named = {"Kind": kinds, "Area": [kind.labels[i] for kind, i in ranked]}
    far = {s.name: [whole(kind.distances[s.kind][i]) for kind, i in ranked] for s in spines}
    noisy = {s.name: [rounded(kind.variances[s.kind][i]) for kind, i in ranked] for s in spines}
    return {
        "distances": {**named, "Blocks": [whole(kind.blocks[i]) for kind, i in ranked], **far},
        "variances": {**named, **noisy},
    }


def _map(
    spines: Sequence[_MeasuredSpine], compared: Sequence[_Comparison], shapes: Sequence[Boundary]
) -> dict[str, Any]:
    names = {shape.code for shape in shapes}
    kind = max(compared, key=lambda c: len(names & set(c.labels)), default=None)
    if kind is None or not names & set(kind.labels):
        raise InputError(
            "the boundaries show no area of this spine; give those of places or county subdivisions, whose GEOID "
            "is state and place, or state, county and subdivision"
        )
    place = {label: i for i, label in enumerate(kind.labels)}
    drawn = [shape for shape in shapes if shape.code in place and not shape.is_water]
    layout = lay_out([shape.rings for shape in drawn])

    def drawing(spine: _MeasuredSpine) -> Html:
        far = np.array([kind.distances[spine.kind][place[shape.code]] for shape in drawn], dtype=np.float64)
        called = [f"{shape.name} ({shape.code}): {whole(distance)}" for shape, distance in zip(drawn, far, strict=True)]
        label = f"Map of {kind.name} by their distance from the {spine.name} spine."
        return draw_map(layout, "map", _DISTANCES, far, called, label)

    shown = [spines[0], spines[-1]] if len(spines) > 1 else [spines[-1]]
    maps = {f"{spine.name[0].upper()}{spine.name[1:]} spine": drawing(spine) for spine in shown}
    return {"kind": kind.name, "outlines": outlines(layout, "map"), "maps": maps}
