"""From noisy measurement files to counts, tables, records and intervals, as a run writes them; no record is seen."""

import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from yupana.errors import ConfigError, InputError
from yupana.estimate.topdown_intervals import finish
from yupana.files.code_tables import open_delimited
from yupana.files.delimited import Labels, positions
from yupana.files.document import UNCHANGED, Changes
from yupana.geography.assignments import Assignment, assign
from yupana.geography.blocks import read_reference
from yupana.geography.gazetteer import read_names
from yupana.geography.published import Areas, PublishedBlocks, published_blocks
from yupana.geography.settings import ROOT
from yupana.geography.spine import Spine
from yupana.plan.exact_loss import plan_as_json
from yupana.plan.measurement import Margins
from yupana.plan.plan import Plan, number
from yupana.privacy.entropy import SystemEntropy
from yupana.products.gate import open_checked
from yupana.products.topdown.outputs import check_labels, describe_files, write_outputs, write_spine
from yupana.products.topdown.product import GEOCODES, TOPDOWN, UNUSUAL_BLOCKS, parameters, taken_as_public
from yupana.products.topdown.tables import DATASETS
from yupana.products.topdown.verify import MEASUREMENTS, SYSTEM
from yupana.progress import Progress, Stopwatch
from yupana.release.folder import new_folder
from yupana.release.manifest import MANIFEST
from yupana.release.status import ESTIMATED, NOT_FOR_RELEASE
from yupana.release.tables import Format, checksum, checksums_by_name
from yupana.topdown import Estimator
from yupana.topdown.budget import Spending
from yupana.topdown.configuration import Configuration
from yupana.topdown.descent.checkpoint import Keeper
from yupana.topdown.descent.descend import Descent
from yupana.topdown.descent.estimate import coins_for, estimate_counts, failsafe_told, informed
from yupana.topdown.descent.measurements import StoredMeasurements
from yupana.topdown.histogram import whole
from yupana.topdown.interval_terms import IntervalMethod, IntervalTerms, default_method, tells_measured
from yupana.topdown.intervals import CountIntervals
from yupana.topdown.nmf.layout import FoundFiles, find_files
from yupana.topdown.nmf.reading import FileMeasurements, published_in, read_measurements, tabulated
from yupana.topdown.posterior.estimate import check_posterior
from yupana.topdown.tree.full_information import FullInformation
from yupana.topdown.tree.intervals import least_squares_intervals, write_intervals
from yupana.version import __version__


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementRequest:
    """What is to be estimated from noisy measurement files."""

    root: Path
    out: Path
    dataset: str | None = None  # the name of the dataset; may be left out where there is one
    # of the queries and the order of their passes. If it is not given: that of the manifest beside the files, if a run
    # of ours wrote them, or the built-in one of the dataset.
    config: str | Path | None = None
    changes: Changes = UNCHANGED  # values that take the place of the configuration's
    states: tuple[str, ...] = ()  # those to keep, as two digits or three; all if none is named
    geography: Path | None = None  # a reference file of blocks
    areas: tuple[Path, ...] = ()  # which areas its blocks lie in (`assign`)
    names: Path | None = None  # what areas are called (`read_names`)
    encoding: str | None = None  # of the text of `areas` and `names`, if that is not UTF-8
    totals: Path | None = None  # exact totals of states
    estimator: Estimator = "topdown"
    confidence: Fraction | None = None
    margins: Margins = "exact"  # of the margins of error, for the plan; the product's confidence if it is None
    format: Format = "csv"
    microdata: bool = True
    intervals: IntervalMethod | None = None  # of published counts; None for the default of the size
    overwrite: bool = False


def publish_from_files(request: MeasurementRequest, clock: Stopwatch, progress: Progress) -> dict[str, Any]:
    """Estimate from noisy measurement files, write a release, and return its manifest; it costs no privacy."""
    if request.intervals == "monte-carlo":
        raise ConfigError(
            "--intervals monte-carlo: replicates are runs on the published counts, which need the facilities of every "
            "block, and the files do not list these; use least-squares, for which all measurements are there"
        )
    if request.areas and request.geography is None:
        raise ConfigError("--areas: says where the blocks of a reference file lie; give that by --geography, too")
    notes: list[str] = []
    names = None if request.names is None else read_names(request.names, request.encoding, notes)
    files = find_files(request.root, request.dataset, request.states)
    _check_sides(request)
    source = _source(files)
    config = _configuration(request, files, source)
    check_labels(config.schema)
    with new_folder(request.out, overwrite=request.overwrite, noisy=False) as draft:
        totals = None if request.totals is None else read_totals(request.totals)
        measured = read_measurements(files, config, request.estimator, totals, clock, progress)
        if request.estimator == "posterior":
            check_posterior(measured.premises.configuration)
        stored = StoredMeasurements(measured.spent.levels, measured.draws)
        evidence = informed(measured.premises, stored, request.estimator, clock)
        coins = coins_for(request.estimator, SystemEntropy())
        descent = estimate_counts(measured.premises, evidence, Keeper(), clock, progress, coins)
        clock.start("writing the release")
        spine, counts, moved = tabulated(measured.premises.spine, whole(descent.counts[-1]))
        published, told = _published(request, spine)
        plan = _plan(request, config, measured)
        answers = Spending(plan, measured.once.levels).answers
        terms = IntervalTerms(request.intervals or default_method(answers), plan.confidence)
        finds = None if terms.method == "none" else partial(_intervals, measured, published, terms)
        rows = write_spine(draft, spine) | write_outputs(
            draft,
            spine,
            published,
            config.schema,
            counts,
            names=names,
            microdata=request.microdata,
            fmt=request.format,
            intervals=finds,
        )
        if isinstance(evidence, FullInformation) and tells_measured(terms.method, answers):
            rows |= write_intervals(draft, measured.premises.spine, config.schema, config.recodes, evidence)
        manifest = _manifest(request, files, source, measured, plan, told, notes, terms, descent)
        manifest |= {"moved_blocks": moved, "tables": describe_files(draft, rows)}
        if descent.posterior is not None:
            manifest["posterior"] = descent.posterior.told()
        finish(draft, manifest, config, clock)
    clock.stop()
    return manifest


def _check_sides(request: MeasurementRequest) -> None:
    """Refuse totals of states of which one side was chosen and there is another: they are of both."""
    if request.totals is None:
        return
    there = {state for of in find_files(request.root, request.dataset).parts.values() for state in of}
    for state in request.states:
        other = ("0" if state.startswith("1") else "1") + state[1:]
        if len(state) == len(other) and other in there and other not in request.states:
            raise ConfigError(
                f"--totals: has the total of both sides of state {state[1:]}, and --states {state} is one of them; "
                f"name {state[1:]}, or leave the totals out"
            )


def _source(files: FoundFiles) -> dict[str, Any]:
    """The manifest of the run that wrote the files, if it was one of ours; else nothing."""
    folder = files.folder.parent
    if not (folder / MANIFEST).exists():
        return {}
    return dict(open_checked(folder).manifest)


def _configuration(request: MeasurementRequest, files: FoundFiles, source: dict[str, Any]) -> Configuration:
    name = files.folder.name
    config = request.config
    if config is None and source:
        config = files.folder.parent / MANIFEST
    if config is None:
        config = DATASETS.get(name)
    if config is None:
        known = ", ".join(DATASETS)
        raise ConfigError(f"--config: {name} is none of {known}; name the configuration that it was measured with")
    found = TOPDOWN.read(config, request.changes)
    if found.areas is not None:
        raise ConfigError(f"--config {config}: has areas of its own, and the files are of the Census Bureau's blocks")
    return found


def read_totals(path: Path) -> dict[int, int]:
    """Read totals of states: columns ``state`` or ``geocode``, two digits, and ``total`` or ``value``.

    Raises
    ------
    InputError
        If the file is no such table, or a state is there twice.
    """
    with open_delimited(path, (), others=True) as file:
        names = []
        for choices in (("state", "geocode"), ("total", "value")):
            found = [name for name in choices if file.has(name)]
            if not found:
                raise InputError(f"{path}, line 1: no column {' or '.join(choices)}")
            names.append(found[0])
        states, totals = file.digits(names[0], 2), file.counts(names[1])
    if len(np.unique(states)) < len(states):
        raise InputError(f"{path}, column {names[0]}: a state is there twice")
    return dict(zip(states.tolist(), totals.tolist(), strict=True))


def _plan(request: MeasurementRequest, config: Configuration, measured: FileMeasurements) -> Plan:
    """What was measured, with the margins of error that were asked for."""
    margins = TOPDOWN.plan(config, confidence=request.confidence, margins=request.margins)
    return replace(measured.plan, confidence=margins.confidence, margins=margins.margins)


def _intervals(
    measured: FileMeasurements, published: PublishedBlocks, terms: IntervalTerms, areas: list[Areas]
) -> CountIntervals:
    """Make ready what finds the intervals of published areas, whose blocks are those that were measured."""
    del areas  # those of the blocks that are tabulated
    premises = measured.premises
    stored = StoredMeasurements(measured.once.levels, measured.draws)
    tabulated_areas = published.areas(published_in(premises.spine.blocks))
    schema = premises.configuration.schema
    return least_squares_intervals(stored, premises.spine, schema, premises.known, tabulated_areas, terms.confidence)


def _published(request: MeasurementRequest, spine: Spine) -> tuple[PublishedBlocks, tuple[Assignment, ...]]:
    """The blocks of the reference file with their areas, or those of the spine, of which their digits alone tell."""
    nation = spine.levels[0].name == ROOT
    if request.geography is None:
        block = np.sort(spine.blocks)
        none = Labels(np.full(len(block), -1, dtype=np.int32), ())
        return PublishedBlocks(block, nation, dict.fromkeys(("place", "county_subdivision", "aiannh"), none)), ()
    reference = read_reference(request.geography)
    if request.states:
        # Of the states that were not chosen nothing is known.
        reference = reference.keep(np.isin(reference.block // 10**14, spine.blocks // 10**14))
    missing = positions(spine.blocks, reference.block) < 0
    if missing.any():
        raise InputError(
            f"{request.geography}: {int(missing.sum()):,} of the {len(missing):,} blocks that were measured are not in "
            f"it, such as {spine.blocks[missing][0]:016d}; it is of another vintage, or of other states"
        )
    reference, told = assign(reference, request.areas, request.encoding)
    return published_blocks(reference, nation=nation), told


def _manifest(
    request: MeasurementRequest,
    files: FoundFiles,
    source: dict[str, Any],
    measured: FileMeasurements,
    plan: Plan,
    told: tuple[Assignment, ...],
    notes: Sequence[str],
    terms: IntervalTerms,
    descent: Descent,
) -> dict[str, Any]:
    config = measured.premises.configuration
    least, most = measured.losses
    reasons = list(source.get("reasons", ()))
    budget = config.mechanism.budget_name
    beside = (*request.areas, *([] if request.names is None else [request.names]))
    public = checksums_by_name(path for path in (request.geography, request.totals) if path is not None)
    public |= checksums_by_name(beside, "areas/")
    remarks = [*(one.remark for one in told if one.remark), *notes]
    if descent.posterior is not None:
        remarks.append(UNUSUAL_BLOCKS)
    return {
        "yupana": __version__,
        "product": config.product,
        "system": SYSTEM,
        "status": NOT_FOR_RELEASE if reasons else ESTIMATED,
        **({"reasons": reasons} if reasons else {}),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        # Variances that are not those of a plan have no law that the exact figure could be of.
        "plan": plan_as_json(plan) if measured.spent.exact else plan.as_json(),
        "parameters": parameters(
            config,
            spine=GEOCODES,
            estimator=request.estimator,
            intervals=terms.as_json(),
            areas={one.kind: {"file": one.file, "areas": one.areas} for one in told},
            remarks=remarks,
        ),
        "taken_as_public": taken_as_public(config, files=True, totals=request.totals is not None),
        "configuration": TOPDOWN.document(config),
        "options": {
            "confidence": str(plan.confidence),
            "margins": plan.margins,
            "sensitivity": plan.accounting,
            "format": request.format,
            "estimator": request.estimator,
            **({} if request.encoding is None else {"encoding": request.encoding}),
            **terms.options,
        },
        "public_inputs": public,
        MEASUREMENTS: {
            "dataset": files.folder.name,
            "states": list(request.states),
            "files": {path.relative_to(files.folder).as_posix(): checksum(path) for path in files.files()},
            "records": "none were seen",
            "noise": "none was drawn: what is made of the measurements and public lists loses nothing more",
            "loss": {
                "says": "what the measurements along a path from the root to a block lost, a record changed, as read "
                "from the variances of the files",
                "exact": measured.spent.exact,
                "least": number(budget, least),
                "most": number(budget, most),
            },
        },
        "failsafe": failsafe_told(measured.premises.spine, descent),
        "solvers": descent.solvers,
        "versions": {"python": platform.python_version(), "numpy": np.__version__, "duckdb": duckdb.__version__},
    }
