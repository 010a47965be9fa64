"""Intervals for a release of TopDown that was made without: from itself, or from its noisy measurements. Public."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Final

import numpy as np

from yupana.errors import ConfigError, OutputError
from yupana.estimate.counted_release import CountedRelease, read_counted
from yupana.estimate.file_measurements import areas_of_measured, check_same_run
from yupana.estimate.intervals.topdown_release import must_be_of_topdown
from yupana.estimate.intervals.tree import measurements_of
from yupana.estimate.measured_tables import read_measured
from yupana.files.delimited import positions
from yupana.geography.published import Areas
from yupana.privacy.entropy import Entropy, SystemEntropy
from yupana.privacy.exact import INFINITE
from yupana.products.check import open_checked
from yupana.products.codebook import data_package
from yupana.products.topdown.codebook import described
from yupana.products.topdown.outputs import TabulatedAreas, describe_files, write_tabulation
from yupana.products.topdown.product import TOPDOWN
from yupana.products.topdown.tables import TABLES, tables_of
from yupana.products.topdown.verify import MEASUREMENTS
from yupana.progress import Progress, Stopwatch
from yupana.release.codebook import write_codebook
from yupana.release.folder import new_folder, write_manifest
from yupana.release.tables import Format
from yupana.topdown.block_parts import HistogramParts
from yupana.topdown.budget import spend
from yupana.topdown.count_intervals import CountIntervals, ExactIntervals
from yupana.topdown.count_pieces import areas_of_spine
from yupana.topdown.disk import TABULATION
from yupana.topdown.evidence import StoredMeasurements
from yupana.topdown.interval_terms import NO_INTERVALS, REPLICATES, IntervalMethod, IntervalTerms, check_terms
from yupana.topdown.invariants import kept_areas, known_totals
from yupana.topdown.monte_carlo import MonteCarloIntervals, ReleasedCounts, replicates
from yupana.topdown.nmf.finding import find_files
from yupana.topdown.nmf.reading import read_measurements
from yupana.topdown.plan import DEFAULT_CONFIDENCE
from yupana.topdown.tree.published import least_squares_intervals

_SOURCE: Final = "source_manifest_sha256"


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalRequest:
    """Which intervals a release is to have.

    Attributes
    ----------
    release, out : Path
        A release of TopDown, and where it is written again with intervals.
    method : "least-squares" or "monte-carlo", optional
        If it is not said, least squares where measurements are given.
    replicates : int, optional
        Of Monte Carlo.
    confidence : Fraction, optional
        That of the release's margins if it is not said.
    noisy_measurements, nmf : Path, optional
        The noisy measurements of the same run, as tables or as noisy measurement files.
    entropy : Entropy
        Of the coins of replicates.
    overwrite : bool
    """

    release: Path
    out: Path
    method: IntervalMethod | None = None
    replicates: int | None = None
    confidence: Fraction | None = None
    noisy_measurements: Path | None = None
    nmf: Path | None = None
    entropy: Entropy = field(default_factory=SystemEntropy)
    overwrite: bool = False


def publish_intervals(request: IntervalRequest, clock: Stopwatch, progress: Progress) -> dict[str, Any]:
    """Write a release again with an interval for every count of tabulation and tables, and return its manifest.

    All comes from the release, or from measurements and public lists, so it costs no privacy.

    Raises
    ------
    ConfigError
        If what is asked does not go together.
    InputError, OutputError
        If release, measurements or output folder are not what they should be. Nothing is left in the folder.
    """
    method = _method(request)
    release = open_checked(request.release)
    must_be_of_topdown(release)
    with new_folder(request.out, overwrite=request.overwrite, noisy=False) as draft:
        clock.start("reading the release")
        made = read_counted(release)
        confidence = request.confidence or release.confidence or DEFAULT_CONFIDENCE
        terms = IntervalTerms(method, confidence, request.replicates or REPLICATES)
        if made.published is not None:
            areas = made.published.areas(made.blocks)
        elif made.spine is not None:
            areas = areas_of_spine(made.spine)
        else:
            raise OutputError(f"{request.release} does not tell the areas of its blocks")
        found = _intervals(made, request, terms, areas, clock, progress)
        clock.start("writing the release")
        manifest = _write(draft, made, terms, areas, found)
        clock.start("checking")
        if wrong := TOPDOWN.verify(draft, manifest).wrong:
            raise RuntimeError(f"the release does not hold together: {'; '.join(wrong)}")
    clock.stop()
    return manifest


def _method(request: IntervalRequest) -> IntervalMethod:
    given = [folder for folder in (request.noisy_measurements, request.nmf) if folder is not None]
    if len(given) > 1:
        raise ConfigError("--noisy-measurements and --nmf hold the same measurements; give one of them")
    method = request.method or ("least-squares" if given else "monte-carlo")
    check_terms(method, request.replicates)
    if method == "none":
        raise ConfigError("--method none: intervals are made by least-squares or monte-carlo")
    if method == "least-squares" and not given:
        raise ConfigError(
            "--method least-squares takes the noisy measurements of the run: name their folder with "
            "--noisy-measurements or --nmf; --method monte-carlo takes the release alone"
        )
    if method == "monte-carlo" and given:
        raise ConfigError(f"--method monte-carlo takes the release alone; leave {given[0]} out")
    return method


def _intervals(
    made: CountedRelease,
    request: IntervalRequest,
    terms: IntervalTerms,
    areas: list[Areas],
    clock: Stopwatch,
    progress: Progress,
) -> CountIntervals:
    config, folder = made.configuration, made.release.folder
    if config.budget == INFINITE:
        return ExactIntervals.of(made.counts, areas)
    if request.nmf is not None:
        return _from_files(made, request.nmf, terms, clock, progress)
    if made.spine is None:
        raise OutputError(
            f"{folder} was made of noisy measurement files, and does not tell what its geounits were measured with; "
            "name these files with --nmf"
        )
    if request.noisy_measurements is None:
        clock.start("making replicates")
        published = ReleasedCounts(config, made.spine, made.facilities(), made.estimator, made.counts)
        drawn = replicates(published, terms.replicates, request.entropy, progress)
        return MonteCarloIntervals.of(made.counts, drawn, areas, terms.confidence)
    clock.start("reading the measurements")
    noisy = measurements_of(made.release, request.noisy_measurements)
    measured = read_measured(noisy, config, made.spine, spend(config, made.spine))
    kept = kept_areas(config, made.spine)
    known = {} if kept is None else known_totals(kept, HistogramParts(made.counts))
    return least_squares_intervals(measured, made.spine, config.schema, known, areas, terms.confidence)


def _from_files(
    made: CountedRelease, nmf: Path, terms: IntervalTerms, clock: Stopwatch, progress: Progress
) -> CountIntervals:
    """Least squares from noisy measurement files, on the spine that they tell."""
    if made.published is None:
        raise ConfigError("--nmf: the release has areas of its own, and such files are of the Census Bureau's blocks")
    told = made.release.manifest.get(MEASUREMENTS, {})
    files = find_files(nmf, told.get("dataset"), tuple(told.get("states", ())))
    check_same_run(files, made.release)
    measured = read_measurements(files, made.configuration, "full-information", None, clock, progress)
    spine = measured.premises.spine
    areas = areas_of_measured(spine, made.published)
    kept = kept_areas(made.configuration, spine)
    # A block in water that was moved has no counts of its own.
    order = np.argsort(spine.blocks)
    at = positions(made.blocks, spine.blocks[order])
    counts = made.counts.sum_to(np.where(at < 0, -1, order[at]), len(order))
    known = measured.premises.known if kept is None else known_totals(kept, HistogramParts(counts))
    stored = StoredMeasurements(measured.once, measured.draws)
    return least_squares_intervals(stored, spine, made.configuration.schema, known, areas, terms.confidence)


def _write(
    draft: Path, made: CountedRelease, terms: IntervalTerms, areas: list[Areas], found: CountIntervals
) -> dict[str, Any]:
    """Write all files of the release, its tabulation and tables with intervals; return the manifest."""
    release, config = made.release, made.configuration
    kept = {name: told for name, told in release.manifest["tables"].items() if not _is_counted(name)}
    for name in kept:
        (draft / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(release.file(name), draft / name)
    tables = () if made.published is None else tables_of(config.schema)
    tabulated, counts = TabulatedAreas(config.schema, areas, found), HistogramParts(made.counts)
    rows = write_tabulation(draft, tabulated, counts, _format(release.manifest), tables=tables)
    listed = kept | describe_files(draft, rows)
    columns = {name: told["columns"] for name, told in listed.items()}
    package = data_package(TOPDOWN.words.title, config.product, columns, partial(described, config))
    old = release.manifest
    manifest = {
        **old,
        "parameters": {
            **_parameters(old),
            "intervals": {**terms.as_json(), _SOURCE: release.sha256},
        },
        "tables": listed,
        "reports": write_codebook(draft, package),
    }
    if "options" in old:
        others = {name: told for name, told in old["options"].items() if name not in {"intervals", "replicates"}}
        manifest["options"] = {**others, **terms.options}
    write_manifest(draft, manifest)
    return manifest


def _parameters(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a release, without the remark that it has no intervals."""
    parameters = dict(manifest["parameters"])
    remarks = [remark for remark in parameters.pop("remarks", ()) if not remark.startswith(NO_INTERVALS)]
    return {**parameters, **({"remarks": remarks} if remarks else {})}


def _is_counted(name: str) -> bool:
    """Whether a file of a release is written anew: tabulation, tables and their intervals."""
    return PurePosixPath(name).parts[0] in {TABULATION, TABLES}


def _format(manifest: Mapping[str, Any]) -> Format:
    return (
        "parquet"
        if any(name.startswith("counts/") and name.endswith(".parquet") for name in manifest["tables"])
        else "csv"
    )
