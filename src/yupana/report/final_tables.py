"""Estimates on disk: the Census Bureau's files, one tidy table, and the final tables with a page to browse them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Any, Final, Literal

import numpy as np

from yupana.arrays import Floats
from yupana.errors import ConfigError, OutputError
from yupana.estimate.phsafe.combine import combine
from yupana.estimate.phsafe.estimate import (
    Averages,
    EstimatedCounts,
    Measured,
    Method,
    TableEstimate,
    estimate_tables,
    read_measured,
)
from yupana.products.codebook import data_package
from yupana.products.phsafe.shells import (
    ITERATED,
    ITERATION_LABELS,
    SHELLS,
    WHOSE,
    Shell,
    area_name,
    describe_estimates,
    nation_name,
)
from yupana.products.phsafe.specification import Group
from yupana.progress import Announce
from yupana.release.codebook import write_codebook
from yupana.release.folder import new_folder, write_manifest
from yupana.release.manifest import MANIFEST
from yupana.release.recipe import ESTIMATES
from yupana.release.status import ESTIMATED, NOT_FOR_RELEASE, refuse_confidential, refuse_unpublishable, status_of
from yupana.release.tables import Format, ReleaseTable, Value, checksum, describe_reports, describe_tables, write_table
from yupana.report.html import Html, fill
from yupana.version import __version__

_TITLE: Final = "Estimates from the measurements of the Supplemental Demographic and Housing Characteristics File"
PAGE: Final = "index.html"

_NOT_NORMAL: Final = (
    "two-sided geometric noise is taken as normal of the same variance, as the model has it: intervals are approximate"
)

Combination = Literal["independent", "joint"]


@dataclass(frozen=True, slots=True)
class EstimateRequest:
    """What is to be estimated, and where to."""

    release: Path  # noisy measurements of the United States, or of Puerto Rico
    out: Path
    puerto_rico: Path | None = None  # the measurements of the other run, for tables that show both
    confidence: Fraction = Fraction(9, 10)
    method: Method = "exact"
    combination: Combination = "independent"
    format: Format = "csv"
    overwrite: bool = False
    # refuse measurements that are marked NOT FOR RELEASE; otherwise the estimates are marked so, too
    publish: bool = False


@dataclass(frozen=True, slots=True)
class FinalTable:
    """A published table: rounded estimates and intervals; arrays of shape (groups, stubs)."""

    shell: Shell
    groups: tuple[Group, ...]
    estimate: Floats
    lower: Floats
    upper: Floats


def publish_estimates(request: EstimateRequest, announce: Announce) -> dict[str, Any]:
    """Estimate from releases of PHSafe, write a folder, and return its manifest; it costs no privacy."""
    paths = _paths(request)
    with new_folder(request.out, overwrite=request.overwrite, noisy=False) as partial:
        announce("reading and checking the release")
        sources = _sources(request, paths)
        parts = [_estimated(request, path, source, announce) for path, source in zip(paths, sources, strict=True)]
        announce("writing the tables")
        everything = [estimate for estimates, _, _ in parts for estimate in estimates]
        final = [f for shell in SHELLS if (f := _final([e for e in everything if e.shell is shell])) is not None]
        nation = nation_name(sources[0].manifest["parameters"]["states"])
        tables = [table for _, bureau, _ in parts for table in bureau]
        tables += [tidy_table(everything), *(_as_table(each, request.format, nation) for each in final)]
        written = {table.name: write_table(partial, table, request.format) for table in tables}
        manifest = _manifest(request, sources, [note for _, _, note in parts])
        manifest["tables"] = describe_tables(partial, written, tables)
        page = _tables_page(final, float(request.confidence), str(manifest["status"]), request.combination, nation)
        (partial / PAGE).write_text(page, encoding="utf-8")
        states = [state for source in sources for state in source.manifest["parameters"]["states"]]
        package = data_package(
            _TITLE,
            ESTIMATES,
            {path.name: list(table.columns) for path, table in zip(written.values(), tables, strict=True)},
            lambda table: describe_estimates(table, states, request.confidence),
        )
        manifest["reports"] = describe_reports(partial, [PAGE]) | write_codebook(partial, package)
        write_manifest(partial, manifest)
    return manifest


def _paths(request: EstimateRequest) -> list[Path]:
    """The releases to be read, of a request that does not contradict itself."""
    if request.method == "original" and request.combination == "joint":
        raise ConfigError("the original method fits every cell on its own; --combine joint goes with --method exact")
    return [request.release] + ([request.puerto_rico] if request.puerto_rico else [])


def _sources(request: EstimateRequest, paths: Sequence[Path]) -> list[Measured]:
    sources = []
    for path in paths:
        source = read_measured(path)
        (refuse_unpublishable if request.publish else refuse_confidential)(source.manifest, str(path))
        sources.append(source)
    if len(sources) == 2 and (sources[0].is_puerto_rico or not sources[1].is_puerto_rico):
        raise OutputError(f"{paths[1]} must be a release of Puerto Rico alone, and {paths[0]} one of states")
    return sources


def _estimated(
    request: EstimateRequest, path: Path, source: Measured, announce: Announce
) -> tuple[Sequence[TableEstimate], list[ReleaseTable], dict[str, Any]]:
    """What is made of one release: its estimates, the Bureau's files of them, and what the manifest says of it."""
    measured, combined = combine(source) if request.combination == "joint" else (source, {})
    announce("estimating")
    estimates, absent = estimate_tables(source, measured, request.confidence, request.method)
    note = {
        "manifest_sha256": checksum(path / MANIFEST),
        "created": source.manifest.get("created"),
        "plan": source.manifest["plan"],
        "states": list(source.manifest["parameters"]["states"]),
        **({"combined": combined} if combined else {}),
        **({"noise": _NOT_NORMAL} if source.manifest["plan"].get("mechanism") == "pure" else {}),
        **({"left_out": dict(absent)} if absent else {}),
    }
    return estimates, [t for each in estimates for t in _bureau_tables(each, source, request.confidence)], note


def _manifest(request: EstimateRequest, sources: Sequence[Measured], notes: list[dict[str, Any]]) -> dict[str, Any]:
    """What is known before the tables are written. What a release is marked with, its estimates are, too."""
    reasons = dict.fromkeys(reason for source in sources for reason in source.manifest.get("reasons", ()))
    marked = any(status_of(source.manifest) == NOT_FOR_RELEASE for source in sources)
    return {
        "yupana": __version__,
        "product": ESTIMATES,
        "status": NOT_FOR_RELEASE if marked else ESTIMATED,
        **({"reasons": list(reasons)} if marked else {}),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "confidence": str(float(request.confidence)),
        "method": request.method,
        "combination": request.combination,
        "sources": notes,
    }


def _bureau_tables(estimate: TableEstimate, source: Measured, confidence: Fraction) -> list[ReleaseTable]:
    """The files of the Bureau's post-processing, with its names and columns: one for the nation, one for states.

    A nation's GEOID is 01, as there, and so is Alabama's; REGION_TYPE and the file's name tell them apart.
    """
    z = NormalDist().inv_cdf(float((1 + confidence) / 2))
    tables = []
    for region_type, name in (("USA", "nation"), ("STATE", "PR_state" if source.is_puerto_rico else "state")):
        rows = [place for place, group in enumerate(estimate.groups) if group.region_type == region_type]
        if rows:
            columns = _bureau_columns(estimate, rows, z)
            tables.append(ReleaseTable(f"{estimate.shell.name}_{name}_trunc_normal", columns))
    return tables


def _bureau_columns(estimate: TableEstimate, rows: list[int], z: float) -> dict[str, Sequence[Value]]:
    groups = [estimate.groups[row] for row in rows]
    stubs, made_of = estimate.shell.stubs, estimate.made_of
    # Counts come with their marginals first, averages with their total last.
    marginal = [len(stub.parts) > 1 for stub in stubs]
    order = sorted(range(len(stubs)), key=lambda place: marginal[place] == isinstance(made_of, Averages))

    def column(values: Floats) -> list[Value]:
        return list(values[rows][:, order].ravel().tolist())

    def noise(counts: EstimatedCounts, suffix: str) -> dict[str, Sequence[Value]]:
        return {
            f"COUNT_NOISY{suffix}": [int(value) for value in column(counts.noisy)],
            f"VARIANCE{suffix}": column(counts.variance),
            f"MOE_NOISY{suffix}": column(z * np.sqrt(counts.variance)),
        }

    head: dict[str, Sequence[Value]] = {
        "GEOID": [group.region_id.zfill(2) for group in groups for _ in stubs],
        "REGION_TYPE": [group.region_type for group in groups for _ in stubs],
        "ITERATION_CODE": [group.iteration for group in groups for _ in stubs],
        "DATA_CELL": [stubs[place].cell for _ in groups for place in order],
    }
    bounds = {"_LO": column(estimate.lower), "_HI": column(estimate.upper)}
    if isinstance(made_of, EstimatedCounts):
        pred = {"PRED": column(estimate.estimate)} | {f"PRED{end}": values for end, values in bounds.items()}
        return {**head, **noise(made_of, ""), **pred}
    ratios = {"RATIO_NOISY": column(estimate.noisy), "RATIO_PRED": column(estimate.estimate)}
    ends = {f"RATIO_PRED{end}": values for end, values in bounds.items()}
    top, below = noise(made_of.numerator, "_NUM"), noise(made_of.denominator, "_DENOM")
    if estimate.shell.ratio and not estimate.shell.ratio.shared:
        return {**head, **below, **top, **ratios, **ends}
    means = {"PRED_NUM": column(made_of.mean_numerator), "PRED_DENOM": column(made_of.mean_denominator)}
    return {**head, **top, **below, **ratios, **means, **ends}


def tidy_table(estimates: Sequence[TableEstimate]) -> ReleaseTable:
    """Every estimate as one row: table, area, iteration, cell, what it is, and four numbers, unrounded."""
    rows = [(each.shell, group, stub.cell) for each in estimates for group in each.groups for stub in each.shell.stubs]
    columns: dict[str, Sequence[Value]] = {
        "TABLE": [shell.name for shell, _, _ in rows],
        "REGION_TYPE": [group.region_type for _, group, _ in rows],
        "REGION_ID": [group.region_id for _, group, _ in rows],
        "ITERATION_CODE": [group.iteration for _, group, _ in rows],
        "DATA_CELL": [cell for _, _, cell in rows],
        "MEASURE": ["count" if shell.ratio is None else "average" for shell, _, _ in rows],
    }
    for name in ("noisy", "estimate", "lower", "upper"):
        columns[name.upper()] = [value for each in estimates for value in getattr(each, name).ravel().tolist()]
    return ReleaseTable("estimates", columns)


def _final(estimates: Sequence[TableEstimate]) -> FinalTable | None:
    """One published table of all its areas, rounded as it is published."""
    if not estimates:
        return None
    groups: list[Group] = [group for each in estimates for group in each.groups]
    pieces = [_rounded(each) for each in estimates]
    numbers = [np.concatenate([piece[place] for piece in pieces]) for place in range(3)]
    return FinalTable(estimates[0].shell, tuple(groups), *numbers)


def _rounded(each: TableEstimate) -> tuple[Floats, Floats, Floats]:
    """Counts to whole numbers and averages to two decimals; intervals outward, so that they cover no less.

    Lines that add up before rounding do so after, as in the original: a marginal is the sum of its rounded cells.
    """
    unit = 1.0 if each.shell.ratio is None else 100.0
    estimate = np.rint(each.estimate * unit) / unit
    if each.shell.ratio is None:
        place = {stub.cell: i for i, stub in enumerate(each.shell.stubs)}
        for i, stub in enumerate(each.shell.stubs):
            columns = [place[part] for part in stub.parts]
            adds_up = np.isclose(each.estimate[:, columns].sum(axis=1), each.estimate[:, i], rtol=1e-9, atol=1e-6)
            estimate[:, i] = np.where(adds_up, estimate[:, columns].sum(axis=1), estimate[:, i])
    # a bound that is a whole number but for rounding errors stays where it is.
    slack = 1e-9 * np.maximum(1.0, np.abs(each.upper * unit))
    lower = np.floor(each.lower * unit + slack) / unit
    return estimate, lower, np.ceil(each.upper * unit - slack) / unit


def _as_table(final: FinalTable, fmt: Format, nation: str) -> ReleaseTable:
    stubs, groups = final.shell.stubs, final.groups
    lines = [(group, stub) for group in groups for stub in stubs]

    def shown(values: Floats) -> list[Value]:
        if final.shell.ratio is None:
            return [int(value) for value in values.ravel()]
        return [f"{value:.2f}" if fmt == "csv" else float(value) for value in values.ravel()]

    iterations: dict[str, list[Value]] = (
        {
            "ITERATION_CODE": [group.iteration for group, _ in lines],
            "ITERATION": [ITERATION_LABELS[group.iteration] for group, _ in lines],
        }
        if final.shell.name in ITERATED
        else {}
    )
    return ReleaseTable(
        final.shell.name,
        {
            "REGION_ID": [group.region_id for group, _ in lines],
            "REGION_TYPE": [group.region_type for group, _ in lines],
            "AREA": [area_name(group.region_type, group.region_id, nation) for group, _ in lines],
            **iterations,
            "DATA_CELL": [stub.cell for _, stub in lines],
            "LABEL": [stub.label for _, stub in lines],
            "DEPTH": [stub.depth for _, stub in lines],
            "ESTIMATE": shown(final.estimate),
            "LOWER": shown(final.lower),
            "UPPER": shown(final.upper),
        },
    )


_BY: Final = {"householder": "of the householder", "person": "of each person"}


def _tables_page(tables: Sequence[FinalTable], confidence: float, status: str, combination: str, nation: str) -> str:
    """Lay out final tables as one HTML file with its data in it; ``nation`` is what the sum over states is called."""
    areas = list(dict.fromkeys((group.region_type, group.region_id) for table in tables for group in table.groups))
    percent = f"{100 * confidence:g}"
    data = {
        "areas": [[kind[0] + code, area_name(kind, code, nation)] for kind, code in areas],
        "iterations": ITERATION_LABELS,
        "percent": percent,
        "tables": [_table_data(table) for table in tables],
    }
    embedded = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("</", "<\\/")
    return fill(
        "final_tables.html",
        {
            "status": status,
            "percent": percent,
            "combination": combination,
            "version": __version__,
            # Not to be escaped: it holds text from outside, but cannot end its element.
            "data": Html(embedded),
        },
    )


def _table_data(table: FinalTable) -> dict[str, Any]:
    decimals = 0 if table.shell.ratio is None else 2

    def numbers(values: Floats) -> list[float] | list[int]:
        return [int(v) for v in values] if decimals == 0 else [round(float(v), 2) for v in values]

    rows = {}
    for place, group in enumerate(table.groups):
        triple = [numbers(values[place]) for values in (table.estimate, table.lower, table.upper)]
        rows[f"{group.region_type[0]}{group.region_id}/{group.iteration}"] = triple
    by = WHOSE[table.shell.source]
    return {
        "name": table.shell.name,
        "title": table.shell.title,
        "universe": table.shell.universe,
        "by": _BY[by] if by else "",
        "decimals": decimals,
        "stubs": [[stub.label, stub.depth] for stub in table.shell.stubs],
        "rows": rows,
    }
