"""Measure what the intervals of `phsafe estimate` cover: `python tools/phsafe_calibration.py`.

The truth is a synthetic census, its counts multiplied so that its households are as many as the nation's; the noise is
that of the 2020 run, drawn exactly from a seed, once per release. Counts are studied for the nation and six states,
averages for the nation and two, every iteration of each. Printed are Markdown tables for docs/phsafe-calibration.md;
`--picture FILE.svg` draws them, for which the charts of reports must be installed.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from yupana.confidential.described.phsafe import PhsafeCounter, checked_census
from yupana.estimate.phsafe import averages, truncated_normal
from yupana.estimate.phsafe.combine import families, project
from yupana.estimate.phsafe.estimate import Measured
from yupana.plan.plan import Plan
from yupana.privacy.entropy import SeededEntropy
from yupana.privacy.sampler import sample
from yupana.products.census import STATES
from yupana.products.described.description import DescribedLevel
from yupana.products.phsafe.configuration import TAUS, production_config, read_config
from yupana.products.phsafe.product import PHSAFE
from yupana.products.phsafe.shells import SHELLS, Shell
from yupana.products.phsafe.specification import LEVELS, TABLES, Group, groups_of
from yupana.synthetic.census import synthesize

Numbers = NDArray[np.float64]

_HOUSEHOLDS_OF_THE_NATION = 126_800_000
_COUNTED = ("06", "39", "01", "35", "50", "56")
_AVERAGED = ("01", "56")
_TAILS = (0.05, 0.95)
_BINDING = 5.0
"""A truth this many standard deviations above zero is free: the prior hardly ever binds. Of averages, twice as many."""

# Experiment 5 of the Bureau's summary, measurements and estimates: percent covered.
_PUBLISHED = {
    "PH1": (88.50, 90.20),
    "PH2": (90.95, 91.10),
    "PH3": (89.80, 91.35),
    "PH4": (90.72, 91.18),
    "PH5": (87.52, 89.28),
    "PH6": (88.42, 88.70),
    "PH7": (89.56, 89.95),
    "PH8": (89.93, 90.65),
}
_SIZES = ((0, 1), (1, 1_000), (1_000, 10_000), (10_000, 100_000), (100_000, 10**12))
_WAYS = ("independent", "joint")


@dataclass(frozen=True, slots=True)
class Cell:
    """One line of one population group over all releases, estimated in one way.

    Attributes
    ----------
    way, table, level : str
    size : float
        The true count, of an average its denominator.
    free : bool
        Whether the prior does not bind.
    covered, outward : float
        Share of releases whose interval holds the truth, and of those rounded outward as the original rounds.
    width, error : float
        Mean width of the interval, and mean squared error of the estimate.
    """

    way: str
    table: str
    level: str
    size: float
    free: bool
    covered: float
    outward: float
    width: float
    error: float


def main() -> None:
    """Run the study and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=1_000)
    parser.add_argument("--households", type=int, default=400_000, help="of the synthetic census")
    parser.add_argument("--seed", type=int, default=2020)
    parser.add_argument("--picture", type=Path, metavar="FILE.svg")
    options = parser.parse_args()
    began = time.process_time()
    with tempfile.TemporaryDirectory() as scratch:
        truth, plan = _truth(Path(scratch), options.households, options.seed)
    cells = list(_study(truth, plan, options.releases, options.seed))
    print(_tables(cells, options.releases))
    if options.picture:
        _draw(cells, options.picture)
    print(f"{time.process_time() - began:.0f} seconds of one core", file=sys.stderr)


def _truth(scratch: Path, households: int, seed: int) -> tuple[Measured, Plan]:
    """Exact counts of a synthetic census, multiplied, with the variances that the 2020 run would measure them with."""
    synthesize(scratch / "census", households=households, states=STATES, seed=seed)
    (scratch / "config.json").write_text(json.dumps(production_config()), encoding="utf-8")
    config = read_config(scratch / "config.json")
    plan = PHSAFE.plan(config)
    with checked_census(config, scratch / "census") as census:
        exact = PhsafeCounter(config).count(census)
    states = exact.shown["STATE"].codes
    factor = round(_HOUSEHOLDS_OF_THE_NATION / households)
    listed: dict[str, tuple[Group, ...]] = {}
    counts: dict[str, Numbers] = {}
    covariances: dict[str, Numbers] = {}
    for table in TABLES:
        rows: list[tuple[Group, Numbers, float]] = []
        for m in plan.measurements:
            if m.table == table.name:
                exactly = exact.by_level[m.name] * float(factor)
                these = groups_of(LEVELS[m.level], states)
                rows += [(g, row, float(m.variance)) for g, row in zip(these, exactly, strict=True)]
        listed[table.name] = tuple(row[0] for row in rows)
        counts[table.name] = np.stack([row[1] for row in rows])
        covariances[table.name] = np.stack([row[2] * np.eye(len(table.cells)) for row in rows])
    manifest = {"parameters": {"tau": dict(TAUS), "states": list(states)}}
    return Measured(manifest, listed, counts, covariances), plan


def _study(truth: Measured, plan: Plan, releases: int, seed: int) -> Iterator[Cell]:
    entropy = SeededEntropy(seed)
    laws = {(m.table, group): m.law for m in plan.measurements for group in groups_of(LEVELS[m.level], STATES)}
    noisy: dict[str, Numbers] = {}
    for name, exactly in truth.counts.items():
        noise = np.stack(
            [
                sample(laws[name, group], exactly.shape[1] * releases, entropy).reshape(exactly.shape[1], releases)
                for group in truth.groups[name]
            ]
        )
        noisy[name] = exactly[:, :, None] + noise
    yield from _estimated("independent", truth, noisy, dict(truth.covariances))
    joint, covariances = dict(noisy), dict(truth.covariances.items())
    for family in families(truth)[0]:
        row = np.concatenate([noisy[name].reshape(-1, releases) for name in family.tables])
        variances = family.row({n: np.diagonal(truth.covariances[n], axis1=1, axis2=2) for n in family.tables})
        found = project(row, variances, family.identities)
        for name in family.tables:
            joint[name] = found.values[family.places[name]]
            covariances[name] = found.covariances(family.places[name])
    yield from _estimated("joint", truth, joint, covariances)


def _estimated(way: str, truth: Measured, noisy: dict[str, Numbers], covariances: dict[str, Numbers]) -> Iterator[Cell]:
    for shell in SHELLS:
        print(f"{way}: {shell.name}", file=sys.stderr, flush=True)
        shown = _AVERAGED if shell.ratio else _COUNTED
        for at, group in enumerate(truth.groups[shell.source]):
            if group.region_type == "USA" or group.region_id in shown:
                level = next(m.name for m in _levels(group))
                study = _count_cells if shell.ratio is None else _average_cells
                yield from study(way, shell, level, truth, at, noisy, covariances)


def _levels(group: Group) -> Iterator[DescribedLevel]:
    return (level for level in LEVELS.values() if level.areas == group.region_type and group.iteration in level.groups)


def _count_cells(
    way: str,
    shell: Shell,
    level: str,
    truth: Measured,
    at: int,
    noisy: dict[str, Numbers],
    covariances: dict[str, Numbers],
) -> Iterator[Cell]:
    basis = [stub.parts[0] for stub in shell.stubs if stub.parts == (stub.cell,)]
    values, covariance = noisy[shell.source][at], covariances[shell.source][at]
    for stub in shell.stubs:
        columns = [basis.index(part) for part in stub.parts]
        exactly = float(truth.counts[shell.source][at, columns].sum())
        block = covariance[np.ix_(columns, columns)]
        if (block - np.diag(np.diag(block))).any():
            terms, variances = values[columns].sum(axis=0)[:, None], np.array([block.sum()])
        else:
            terms, variances = values[columns].T, np.diag(block)
        spread = np.broadcast_to(variances, terms.shape)
        low, high = truncated_normal.quantiles_of_sum(terms, spread, _TAILS).T
        mean = truncated_normal.mean(terms, spread).sum(axis=1)
        parts = truth.counts[shell.source][at, columns]
        free = bool((parts >= _BINDING * np.sqrt(np.diag(block))).all())
        outward = (np.floor(low) <= exactly) & (exactly <= np.ceil(high))
        yield _cell(way, shell, level, exactly, free, exactly, mean, low, high, outward)


def _average_cells(
    way: str,
    shell: Shell,
    level: str,
    truth: Measured,
    at: int,
    noisy: dict[str, Numbers],
    covariances: dict[str, Numbers],
) -> Iterator[Cell]:
    assert shell.ratio is not None  # noqa: S101 (the caller has looked)
    name, below = shell.source, shell.ratio.denominator
    other = truth.groups[below].index(truth.groups[name][at])
    values, covariance = noisy[name][at], covariances[name][at]
    denominators, their = noisy[below][other], covariances[below][other]
    releases = values.shape[1]
    exact_top, exact_below = truth.counts[name][at], truth.counts[below][other]
    first = min(stub.parts[0] for stub in shell.stubs)
    lines = [[part - first for part in stub.parts] for stub in shell.stubs]
    if shell.ratio.shared:
        found: tuple[averages.Average, ...] = averages.parts(
            values.T,
            np.broadcast_to(covariance, (releases, 2, 2)),
            denominators[0],
            np.full(releases, their[0, 0]),
            (shell.ratio.least, float(TAUS[name])),
            _TAILS,
        )
        under = [[0]] * len(lines)
    else:
        under = [[0, 1], [0], [1]]
        found = tuple(
            averages.single(
                values[line].sum(axis=0),
                np.full(releases, covariance[np.ix_(line, line)].sum()),
                denominators[some].sum(axis=0),
                np.full(releases, their[np.ix_(some, some)].sum()),
                (shell.ratio.least, float(TAUS[name])),
                _TAILS,
            )
            for line, some in zip(lines, under, strict=True)
        )
    for each, line, some in zip(found, lines, under, strict=True):
        size = float(exact_below[some].sum())
        if size == 0:
            continue
        exactly = float(exact_top[line].sum()) / size
        deviations = [exact_top / np.sqrt(np.diag(covariance)), exact_below / np.sqrt(np.diag(their))]
        free = bool(np.concatenate(deviations).min() >= 2 * _BINDING)
        low, high = each.quantiles.T
        yield _cell(way, shell, level, size, free, exactly, each.mean, low, high, (low <= exactly) & (exactly <= high))


def _cell(
    way: str,
    shell: Shell,
    level: str,
    size: float,
    free: bool,  # noqa: FBT001
    exactly: float,
    mean: Numbers,
    low: Numbers,
    high: Numbers,
    outward: NDArray[np.bool_],
) -> Cell:
    return Cell(
        way=way,
        table=shell.name,
        level=level,
        size=size,
        free=free,
        covered=float(((low <= exactly) & (exactly <= high)).mean()),
        outward=float(outward.mean()),
        width=float((high - low).mean()),
        error=float(((mean - exactly) ** 2).mean()),
    )


def _percent(cells: list[Cell], which: str = "covered") -> str:
    return f"{100 * np.mean([getattr(cell, which) for cell in cells]):.2f}" if cells else "–"


def _markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _tables(cells: list[Cell], releases: int) -> str:
    names = [shell.name for shell in SHELLS]
    out = [f"### By table, {releases:,} releases", ""]
    rows = []
    for name in names:
        one, both = ([c for c in cells if c.table == name and c.way == way] for way in _WAYS)
        before, after = _PUBLISHED[name]
        free, real = [c for c in one if c.free], [c for c in one if c.size]
        zeros = f"{len(one)} ({len(one) - len(real)})"
        covered = [_percent(real), _percent(real, "outward"), _percent(free)]
        covered += [_percent([c for c in both if c.size]), _percent([c for c in both if c.free])]
        rows.append([name, zeros, *covered, f"{before:.2f}", f"{after:.2f}"])
    head = [
        "table",
        "lines (true zeros)",
        "independent",
        "rounded outward",
        "independent, free",
        "joint",
        "joint, free",
    ]
    out += [_markdown([*head, "Bureau, measurements", "Bureau, estimates"], rows), ""]
    out += ["### By table and level", ""]
    rows = []
    for name in names:
        for level in dict.fromkeys(c.level for c in cells):
            some = {
                way: [c for c in cells if (c.table, c.level, c.way, c.free) == (name, level, way, True)]
                for way in _WAYS
            }
            every = {
                way: [c for c in cells if (c.table, c.level, c.way) == (name, level, way) and c.size] for way in _WAYS
            }
            if every["independent"]:
                widths = [np.mean([c.width for c in every[way]]) for way in _WAYS]
                errors = [np.sqrt(np.mean([c.error for c in every[way]])) for way in _WAYS]
                rows.append(
                    [name, level.replace("*", r"\*"), str(len(every["independent"])), str(len(some["independent"]))]
                    + [_percent(some[way]) for way in _WAYS]
                    + [_percent(every[way]) for way in _WAYS]
                    + [_figure(w) for w in widths]
                    + [f"{widths[1] / widths[0]:.3f}"]
                    + [_figure(e) for e in errors]
                )
    head = ["table", "level", "lines", "free", "free, independent", "free, joint", "all, independent", "all, joint"]
    head += ["width, independent", "width, joint", "ratio", "RMSE, independent", "RMSE, joint"]
    out += [_markdown(head, rows), "", "### By size of the count, or of the average's denominator", ""]
    rows = []
    for name in names:
        row = [name]
        for low, high in _SIZES:
            of_size = [[c for c in cells if c.table == name and c.way == w and low <= c.size < high] for w in _WAYS]
            row.append(f"{_percent(of_size[0])} / {_percent(of_size[1])} ({len(of_size[0])})" if of_size[0] else "–")
        rows.append(row)
    head = [
        "table",
        *(
            "0" if high == 1 else f"{low:,} to {high:,}" if high < 10**12 else f"{low:,} and more"
            for low, high in _SIZES
        ),
    ]
    out.append(_markdown(head, rows))
    return "\n".join(out)


def _figure(value: float | np.floating) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _draw(cells: list[Cell], path: Path) -> None:
    """Mean coverage over size, by half decades, one colour per way, with the nominal 90 percent as a rule."""
    from yupana.report.charts import VEGA_LITE, renderer  # noqa: PLC0415 (optional)

    kinds = {shell.name: "counts" if shell.ratio is None else "averages" for shell in SHELLS}
    bins: dict[tuple[str, str, float], list[float]] = {}
    for c in cells:
        if c.size:
            middle = 10 ** ((np.floor(2 * np.log10(c.size)) + 0.5) / 2)
            bins.setdefault((kinds[c.table], c.way, float(middle)), []).append(100 * c.covered)
    rows = [
        {"what": what, "way": way, "size": size, "covered": float(np.mean(covered)), "lines": len(covered)}
        for (what, way, size), covered in bins.items()
    ]
    point = {
        "mark": {"type": "line", "point": True, "opacity": 0.85},
        "encoding": {
            "x": {
                "field": "size",
                "type": "quantitative",
                "scale": {"type": "log"},
                "title": "true count, or denominator of an average",
                "axis": {"format": "~s", "tickCount": 6},
            },
            "y": {
                "field": "covered",
                "type": "quantitative",
                "title": "releases covered, percent",
                "scale": {"zero": False},
            },
            "color": {
                "field": "way",
                "type": "nominal",
                "title": None,
                "scale": {"domain": list(_WAYS), "range": ["#2f6fb0", "#cf5a1e"]},
                "legend": {"orient": "top"},
            },
        },
    }
    rule = {"mark": {"type": "rule", "color": "#777"}, "encoding": {"y": {"datum": 90}}}
    spec = {
        "background": "#ffffff",
        "data": {"values": rows},
        "facet": {"column": {"field": "what", "type": "nominal", "title": None}},
        "spec": {"width": 330, "height": 240, "layer": [point, rule]},
    }
    path.write_text(renderer().vegalite_to_svg(spec, vl_version=VEGA_LITE), encoding="utf-8")


if __name__ == "__main__":
    main()
