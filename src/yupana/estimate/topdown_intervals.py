"""Intervals for a release of TopDown that was made without: from itself, or from its noisy measurements. Public."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Final, get_args

import numpy as np

from yupana.arrays import Ints
from yupana.errors import ConfigError, InputError, OutputError
from yupana.estimate.intervals.tree import measurement_files, measurements_of, read_measured
from yupana.estimate.topdown_release import must_be_of_topdown, released_spine
from yupana.files.database import open_database
from yupana.geography.blocks import FACILITIES, read_facilities
from yupana.geography.hierarchy import spine_of
from yupana.geography.published import Areas, PublishedBlocks, areas_of_spine, read_published
from yupana.geography.settings import ROOT
from yupana.geography.spine import Spine
from yupana.geography.spine_files import GEOUNITS, ordered_spine, read_shares
from yupana.privacy.entropy import Entropy, SystemEntropy
from yupana.privacy.exact import INFINITE
from yupana.products.codebook import data_package
from yupana.products.gate import open_checked
from yupana.products.topdown.codebook import described
from yupana.products.topdown.outputs import describe_files, write_tabulation
from yupana.products.topdown.product import SOURCE, TOPDOWN
from yupana.products.topdown.tables import COUNTS, SPINE, TABLES, TABULATION, tables_of
from yupana.products.topdown.verify import CountFileError, read_counts
from yupana.progress import Progress, Stopwatch
from yupana.release.codebook import write_codebook
from yupana.release.folder import new_folder, write_manifest
from yupana.release.manifest import MANIFEST
from yupana.release.release import ReleaseFolder
from yupana.release.tables import Format
from yupana.topdown import Estimator
from yupana.topdown.budget import spend
from yupana.topdown.configuration import Configuration
from yupana.topdown.constraints import kept_areas, known_totals
from yupana.topdown.descent.measurements import StoredMeasurements
from yupana.topdown.histogram import Histogram
from yupana.topdown.interval_terms import NO_INTERVALS, REPLICATES, IntervalMethod, IntervalTerms, check_terms
from yupana.topdown.intervals import CountIntervals, ExactIntervals, MonteCarloIntervals, ReleasedCounts, replicates
from yupana.topdown.nmf.reading import published_in, read_measurements
from yupana.topdown.plan import DEFAULT_CONFIDENCE
from yupana.topdown.tree.intervals import least_squares_intervals

_ESTIMATORS: Final[tuple[Estimator, ...]] = get_args(Estimator)


@dataclass(frozen=True, slots=True, eq=False)
class _CountedRelease:
    """A release of TopDown in memory."""

    release: ReleaseFolder
    configuration: Configuration
    # shape (blocks,): 16 digits as a number, or where the configuration has areas of its own the number of the code
    blocks: Ints
    counts: Histogram  # of the blocks
    # of the same blocks, in the same order; None where the release does not tell the shares of its units
    spine: Spine | None
    published: PublishedBlocks | None  # none where the units of the spine are what is published

    @property
    def estimator(self) -> Estimator:
        """How its counts were estimated."""
        told = self.release.manifest["parameters"].get("estimator")
        for estimator in _ESTIMATORS:
            if told == estimator:
                return estimator
        raise OutputError(f"{self.release.folder}: the manifest does not tell the estimator")

    def facilities(self) -> Ints | None:
        """Housing units and facilities of the blocks, of shape (blocks, 8), where the configuration bounds them."""
        name = f"{SPINE}/{FACILITIES}"
        if not self.configuration.group_quarters and name not in self.release.files.values():
            return None
        if name not in self.release.files.values():
            raise OutputError(
                f"{self.release.folder} has no {name}, which bounds its counts; it was made before releases held it. "
                "Give its noisy measurements, or make it again"
            )
        order = np.argsort(self.blocks)
        found = np.empty((len(order), 8), dtype=np.int64)
        found[order] = read_facilities(self.release.file(name), self.blocks[order])
        return found


def _read_counted(release: ReleaseFolder) -> _CountedRelease:
    """Read a release of TopDown, and refuse one whose files are not those of its manifest or do not go together."""
    release.intact()
    configuration = TOPDOWN.read(release.folder / MANIFEST)
    folder = release.folder / SPINE
    published: PublishedBlocks | None = None
    spine: Spine | None = None
    if configuration.areas is not None:
        spine = spine_of(configuration.areas, configuration.spine.shares)
        last = spine.levels[-1]
    else:
        written = released_spine(release)
        if f"{SPINE}/{GEOUNITS}" in release.files.values():
            spine = ordered_spine(folder, *read_shares(folder, written))
        last = (spine or written).levels[-1]
        published = read_published(release.folder, nation=configuration.levels[0] == ROOT)
    try:
        with open_database() as db:
            counts = read_counts(db, release.folder, f"{COUNTS}/{last.name}", configuration.schema, last.texts())
    except CountFileError as error:
        raise InputError(f"{release.folder}: {error}") from None
    return _CountedRelease(release, configuration, last.code, counts, spine, published)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalRequest:
    """Which intervals a release is to have."""

    # release, out: a release of TopDown, and where it is written again with intervals
    release: Path
    out: Path
    method: IntervalMethod | None = None  # if it is not said, least squares where measurements are given
    replicates: int | None = None  # of Monte Carlo
    confidence: Fraction | None = None  # that of the release's margins if it is not said
    # noisy_measurements, nmf: the noisy measurements of the same run, as tables or as noisy measurement files
    noisy_measurements: Path | None = None
    nmf: Path | None = None
    entropy: Entropy = field(default_factory=SystemEntropy)  # of the coins of replicates
    overwrite: bool = False


def publish_intervals(request: IntervalRequest, clock: Stopwatch, progress: Progress) -> dict[str, Any]:
    """Write a release again with intervals, as `releases.topdown_intervals` tells; return its manifest."""
    method = _method(request)
    release = open_checked(request.release)
    must_be_of_topdown(release)
    with new_folder(request.out, overwrite=request.overwrite, noisy=False) as draft:
        clock.start("reading the release")
        made = _read_counted(release)
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
        finish(draft, manifest, made.configuration, clock)
    clock.stop()
    return manifest


def finish(draft: Path, manifest: dict[str, Any], config: Configuration, clock: Stopwatch) -> None:
    """Write the codebook and the manifest of a release whose files are written, and hold them against each other."""
    columns = {name: told["columns"] for name, told in manifest["tables"].items()}
    package = data_package(
        TOPDOWN.words.title, config.product, columns, partial(described, config), TOPDOWN.words.universes
    )
    manifest["reports"] = write_codebook(draft, package)
    write_manifest(draft, manifest)
    clock.start("checking")
    if wrong := TOPDOWN.verify(draft, manifest).wrong:
        raise RuntimeError(f"the release does not hold together: {'; '.join(wrong)}")


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
    made: _CountedRelease,
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
    measured = read_measured(noisy, config, made.spine.levels, spend(config, made.spine).levels)
    kept = kept_areas(config, made.spine)
    known = {} if kept is None else known_totals(kept, made.counts)
    return least_squares_intervals(measured, made.spine, config.schema, known, areas, terms.confidence)


def _from_files(
    made: _CountedRelease, nmf: Path, terms: IntervalTerms, clock: Stopwatch, progress: Progress
) -> CountIntervals:
    """Least squares from noisy measurement files, on the spine that they tell."""
    if made.published is None:
        raise ConfigError("--nmf: the release has areas of its own, and such files are of the Census Bureau's blocks")
    files = measurement_files(made.release, nmf)
    measured = read_measurements(files, made.configuration, "full-information", None, clock, progress)
    spine = measured.premises.spine
    # A block in water counts where it is tabulated.
    areas = made.published.areas(np.asarray(published_in(spine.blocks)))
    kept = kept_areas(made.configuration, spine)
    # A block in water that was moved has no counts of its own.
    counts = made.counts.sum_to(spine.places(made.blocks), len(spine.blocks))
    known = measured.premises.known if kept is None else known_totals(kept, counts)
    stored = StoredMeasurements(measured.once.levels, measured.draws)
    return least_squares_intervals(stored, spine, made.configuration.schema, known, areas, terms.confidence)


def _write(
    draft: Path, made: _CountedRelease, terms: IntervalTerms, areas: list[Areas], found: CountIntervals
) -> dict[str, Any]:
    """Copy the files of the release, and write tabulation and tables with intervals; return the manifest."""
    release, config = made.release, made.configuration
    # Tabulation, tables and their intervals are written anew.
    anew = {TABULATION, TABLES}
    kept = {name: told for name, told in release.manifest["tables"].items() if PurePosixPath(name).parts[0] not in anew}
    for name in kept:
        (draft / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(release.file(name), draft / name)
    tables = () if made.published is None else tables_of(config.schema)
    fmt = _format(release.manifest)
    rows = write_tabulation(draft, config.schema, areas, made.counts, fmt, found, tables=tables)
    old = release.manifest
    manifest = {
        **old,
        "parameters": {
            **_parameters(old),
            "intervals": {**terms.as_json(), SOURCE: release.sha256},
        },
        "tables": kept | describe_files(draft, rows),
    }
    if "options" in old:
        others = {name: told for name, told in old["options"].items() if name not in {"intervals", "replicates"}}
        manifest["options"] = {**others, **terms.options}
    return manifest


def _parameters(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a release, without the remark that it has no intervals."""
    parameters = dict(manifest["parameters"])
    remarks = [remark for remark in parameters.pop("remarks", ()) if not remark.startswith(NO_INTERVALS)]
    return {**parameters, **({"remarks": remarks} if remarks else {})}


def _format(manifest: Mapping[str, Any]) -> Format:
    in_parquet = any(name.startswith("counts/") and name.endswith(".parquet") for name in manifest["tables"])
    return "parquet" if in_parquet else "csv"
