"""TopDown from counts of blocks to release: count, pass the door, estimate from the root down, write. Confidential."""

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

import hollerith
from hollerith.errors import ConfigError, InputError, OutputError
from hollerith.geography.attributes import attributes_of, read_facilities
from hollerith.geography.build import make
from hollerith.geography.reference import Reference, read_reference
from hollerith.geography.settings import AREAS, PLACES, QUARTERS, SCHOOLS
from hollerith.geography.spine import Spine
from hollerith.geography.verify import check_spine
from hollerith.geography.write import BLOCKS, GEOUNITS, write_blocks, write_geounits
from hollerith.plan.plan import Plan
from hollerith.privacy.entropy import Entropy
from hollerith.privacy.exact import INFINITE
from hollerith.products.run import (
    Request,
    charge,
    confidential_log,
    input_checksums,
    manifest_of,
    reasons_against_release,
)
from hollerith.products.topdown.door import Door
from hollerith.products.topdown.outputs import check_labels, describe_files, write_outputs
from hollerith.products.topdown.verify import NOISY, SYSTEM, verify_release
from hollerith.release.folder import new_folder, write_manifest
from hollerith.release.tables import checksum
from hollerith.stages import Announce, Stopwatch
from hollerith.tabulate.histograms import BlockCounts, check_facilities, read_block_counts
from hollerith.topdown.basis import Basis
from hollerith.topdown.budget import spend
from hollerith.topdown.checkpoint import Checkpoint
from hollerith.topdown.configuration import Configuration
from hollerith.topdown.constraints import Limits, facility_limits, limits_by_level
from hollerith.topdown.descend import Descent, Evidence, Rules, descend
from hollerith.topdown.divide import Family
from hollerith.topdown.full_information import FullInformation, full_information
from hollerith.topdown.histogram import Histogram, Ints
from hollerith.topdown.infeasible import InfeasibleNode
from hollerith.topdown.intervals import write_intervals
from hollerith.topdown.invariants import Known, known_totals
from hollerith.topdown.noisy_files import write_noisy
from hollerith.topdown.root import estimate_root, root_families
from hollerith.topdown.stored import StoredMeasurements

GEOGRAPHY: Final = ("geography.txt", "GRF-C.txt")
"""Names the reference file may have; the second is that of the Bureau's."""

FACILITIES: Final = "group_quarters.csv"
SPINE: Final = "spine"

Estimator = Literal["topdown", "full-information"]


@dataclass(frozen=True, slots=True)
class Options:
    """How a run is made, apart from what it measures.

    Attributes
    ----------
    estimator : "topdown" or "full-information"
    resume : bool
        Go on with an interrupted run.
    noisy_measurements : Path or None
        Where to write all noisy measurements.
    """

    estimator: Estimator = "topdown"
    resume: bool = False
    noisy_measurements: Path | None = None


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """What a run knows before it measures. Confidential.

    Attributes
    ----------
    reference : Reference
    spine : Spine
    facilities : ndarray of int64, shape (blocks, 8), or None
        In the order of the spine.
    counts : BlockCounts
        In the order of the spine.
    exact : tuple of Histogram
        Counts of each geolevel.
    """

    reference: Reference
    spine: Spine
    facilities: Ints | None
    counts: BlockCounts
    exact: tuple[Histogram, ...]


def open_world(configuration: Configuration, request: Request, clock: Stopwatch) -> World:
    """Read geography and records, and build the spine.

    Raises
    ------
    ConfigError, InputError
        If they do not go together.
    """
    clock.start("reading the geography")
    settings = configuration.spine
    classes = tuple(name for name in settings.classes if name not in {PLACES, AREAS, QUARTERS, SCHOOLS})
    reference = read_reference(_geography(request.data), classes, schools=SCHOOLS in settings.classes)
    listed = request.data / FACILITIES
    facilities = read_facilities(listed, reference) if listed.exists() else None
    if facilities is None:
        needs = [
            *(["constraints.group_quarters"] if configuration.group_quarters else []),
            *(["spine.live"] if settings.live else []),
            *(["the class gq of the spine"] if QUARTERS in settings.classes else []),
        ]
        if needs:
            raise InputError(f"{listed}: no such file; {' and '.join(needs)} need block, housing_units and gq1 to gq7")
    elif settings.live:
        live = np.asarray(facilities.any(axis=1))
        reference, facilities = reference.keep(live), facilities[live]
    quarters = None if facilities is None else attributes_of(facilities).quarters
    spine = make(settings, reference, quarters, clock)
    if spine.tree.units(0) != 1:
        raise ConfigError(
            f"[shares]: without US the spine has {spine.tree.units(0)} units at {spine.levels[0].name} and no root; "
            "begin with US"
        )
    if wrong := check_spine(spine, reference.block):
        raise RuntimeError(f"the spine does not hold together: {'; '.join(wrong)}")
    order = np.searchsorted(reference.block, spine.blocks)
    facilities = None if facilities is None else facilities[order]
    clock.start("reading and checking the records")
    counts = read_block_counts(request.data, configuration.schema, spine.blocks, facilities, memory=request.memory)
    if configuration.group_quarters and facilities is not None:
        check_facilities(counts, configuration.schema, configuration.group_quarters, facilities)
    exact = [counts.histogram]
    for level in range(len(spine.levels) - 1, 0, -1):
        exact.append(exact[-1].sum_to(spine.tree.parents[level], spine.tree.units(level - 1)))
    return World(reference, spine, facilities, counts, tuple(reversed(exact)))


def _geography(data: Path) -> Path:
    found = [data / name for name in GEOGRAPHY if (data / name).exists()]
    if len(found) > 1:
        raise InputError(f"{data} holds {' and '.join(GEOGRAPHY)}; leave one of them")
    return found[0] if found else data / GEOGRAPHY[0]


def run(
    configuration: Configuration,
    plan: Plan,
    request: Request,
    options: Options,
    entropy: Entropy,
    announce: Announce,
    progress: Callable[[str, int, int], None],
) -> dict[str, Any]:
    """Make a release and return its manifest.

    The counts satisfy the plan's loss against neighbours that change one record and agree on the invariants
    (docs/topdown-privacy.md). Validation of the records lies outside the guarantee, as does the confidential log.

    Parameters
    ----------
    configuration : Configuration
    plan : Plan
        Of the configuration.
    request : Request
    options : Options
    entropy : Entropy
        `SystemEntropy` unless testing.
    announce : callable
        Called with the name of each stage.
    progress : callable
        Called with a geolevel, how many of its geounits are done, and how many there are.

    Raises
    ------
    ConfigError
        If records that are not synthetic were to be measured without noise or with a seed.
    InputError, OutputError, BudgetError
        If the records, the output folder or the ledger do not allow the run.
    """
    reasons = reasons_against_release(plan, entropy, request.data)
    check_labels(configuration.schema)
    clock = Stopwatch(announce)
    checkpoint = Checkpoint(request.out.with_name(request.out.name + ".checkpoint"))
    with ExitStack() as stack:
        partial = stack.enter_context(new_folder(request.out, overwrite=request.overwrite, noisy=False))
        log = stack.enter_context(confidential_log(request))
        noisy = _noisy_folder(stack, request, options)
        world = open_world(configuration, request, clock)
        _check_noiseless(configuration, world.spine)
        spending = spend(configuration, world.spine)
        known = known_totals(configuration, world.spine, [level.totals() for level in world.exact])
        checksums = _checksums(request.data, world)
        state = {
            "configuration": repr(configuration),
            "estimator": options.estimator,
            "noisy measurements": noisy is not None,
            "seed": "none" if entropy.for_release else repr(entropy),
            "version": hollerith.__version__,
            **{f"input {name}": digest for name, digest in checksums.items()},
        }
        _begin(checkpoint, state, request, plan, options)
        door = Door(world.exact, spending, entropy)
        evidence = _evidence(configuration, world, known, door, checkpoint, options, clock, progress)
        clock.start("estimating")
        descent = _estimate(configuration, world, _rules(configuration, world, known), evidence, checkpoint, progress)
        clock.start("writing the release")
        rows = _write(partial, configuration, world, descent, request)
        if isinstance(evidence, FullInformation):
            rows |= write_intervals(partial, world.spine, configuration.schema, configuration.recodes, evidence)
        manifest = manifest_of(
            door.ledger, reasons, _parameters(configuration, options), _taken_as_public(configuration)
        )
        manifest["system"] = SYSTEM
        manifest["tables"] = describe_files(partial, rows)
        manifest["failsafe"] = _failsafe(world.spine, descent)
        manifest["solvers"] = descent.solvers
        clock.start("checking")
        if wrong := verify_release(partial, configuration.schema, configuration.levels):
            raise RuntimeError(f"the release does not hold together: {'; '.join(wrong)}")
        write_manifest(partial, manifest)
        if noisy is not None:
            clock.start("writing the noisy measurements")
            stored = StoredMeasurements(spending, checkpoint)
            written = write_noisy(noisy, world.spine, configuration.schema, configuration.recodes, stored)
            write_manifest(noisy, {**manifest, "system": NOISY, "tables": describe_files(noisy, written)})
        log({"records": int(world.counts.histogram.counts.sum()), "inputs": checksums, "seconds": clock.stop()})
    checkpoint.remove()
    return manifest


def _noisy_folder(stack: ExitStack, request: Request, options: Options) -> Path | None:
    if options.noisy_measurements is None:
        return None
    homes = {options.noisy_measurements.resolve(), *options.noisy_measurements.resolve().parents}
    if request.out.resolve() in homes:
        raise OutputError(f"{options.noisy_measurements} would lie in {request.out}; name a folder of its own")
    return stack.enter_context(new_folder(options.noisy_measurements, overwrite=request.overwrite, noisy=False))


def _check_noiseless(configuration: Configuration, spine: Spine) -> None:
    """Without noise the output is to be the input; that takes the detailed query wherever units have siblings.

    Raises
    ------
    ConfigError
    """
    if configuration.budget != INFINITE:
        return
    missing = [level for level in configuration.without_detail() if _has_siblings(spine, spine.tree.names.index(level))]
    if missing:
        raise ConfigError(
            f"the budget is infinite, but {', '.join(missing)} measures no detailed query, so its counts would not be "
            "the input's; give it a share and the detailed query"
        )


def _has_siblings(spine: Spine, number: int) -> bool:
    return number > 0 and spine.tree.units(number) > spine.tree.units(number - 1)


def _evidence(
    configuration: Configuration,
    world: World,
    known: Mapping[int, Known],
    door: Door,
    checkpoint: Checkpoint,
    options: Options,
    clock: Stopwatch,
    progress: Callable[[str, int, int], None],
) -> Evidence:
    """Where the estimate learns from: the door itself, or everything drawn beforehand."""
    if options.estimator == "topdown" and options.noisy_measurements is None:
        return door
    clock.start("measuring")
    stored = StoredMeasurements(door.spending, checkpoint)
    for level, done, units in stored.draw(door):
        progress(f"measuring {world.spine.tree.names[level]}", done, units)
    if options.estimator == "topdown":
        return stored
    clock.start("least squares on the tree")
    totals = {level: one.totals for level, one in known.items() if one.of_each is not None}
    return full_information(Basis(configuration.schema.shape), world.spine.tree, stored, totals)


def _write(
    folder: Path, configuration: Configuration, world: World, descent: Descent, request: Request
) -> dict[str, int]:
    (folder / SPINE).mkdir()
    rows = {
        f"{SPINE}/{BLOCKS}": write_blocks(folder / SPINE, world.spine),
        f"{SPINE}/{GEOUNITS}": write_geounits(folder / SPINE, world.spine),
    }
    return rows | write_outputs(
        folder,
        world.spine,
        world.reference,
        configuration.schema,
        descent.counts[-1],
        facilities=world.facilities,
        fmt=request.fmt,
    )


def _failsafe(spine: Spine, descent: Descent) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for level, parents in descent.failsafe.items():
        above = spine.levels[spine.tree.names.index(level) - 1]
        found += [{"geolevel": above.name, "geounit": above.labels(p, p + 1)[0], "v": v} for p, v in parents]
    return found


def _begin(checkpoint: Checkpoint, state: Mapping[str, object], request: Request, plan: Plan, options: Options) -> None:
    """Begin, or go on where an interrupted run ended; its loss has been charged then."""
    if options.resume:
        checkpoint.resume(state)
        return
    if checkpoint.exists and not request.overwrite:
        raise ConfigError(
            f"{checkpoint.folder} holds noisy counts of an interrupted run. Go on with --resume. Whoever saw them and "
            "those of a new run learns more than the plan allows; if nobody did, --overwrite begins anew"
        )
    charge(request, plan)
    checkpoint.begin(state)


def _checksums(data: Path, world: World) -> dict[str, str]:
    found = input_checksums(data, world.counts.files)
    return found | {name: checksum(data / name) for name in (*GEOGRAPHY, FACILITIES) if (data / name).exists()}


def _rules(configuration: Configuration, world: World, known: Mapping[int, Known]) -> list[Rules]:
    limits: tuple[Limits, ...] | None = None
    if configuration.group_quarters and world.facilities is not None:
        totals = {level: one.totals for level, one in known.items()}
        limits = limits_by_level(world.spine.tree, facility_limits(world.facilities), totals)
    return [
        Rules(
            configuration.passes[level.name].round,
            limits[number] if limits else None,
            known[number].of_each if number in known else None,
            known[number].in_sets if number in known else (),
        )
        for number, level in enumerate(world.spine.levels)
    ]


def _estimate(
    configuration: Configuration,
    world: World,
    rules: list[Rules],
    evidence: Evidence,
    checkpoint: Checkpoint,
    progress: Callable[[str, int, int], None],
) -> Descent:
    root = checkpoint.load(0, 0)
    if root is None:
        families = root_families(~configuration.impossible())
        gathered = evidence.gather(0, families)
        family = _root_family(configuration, rules[0], families.live)
        try:
            root = estimate_root(family, families.live, gathered.passes(0))
        except InfeasibleNode:
            raise InputError(
                "the constraints contradict the invariants at the root; correct group_quarters.csv"
            ) from None
        checkpoint.save(0, 0, root)
    return descend(world.spine.tree, root, rules, evidence, checkpoint, os.cpu_count() or 1, progress)


def _root_family(configuration: Configuration, rules: Rules, live: np.ndarray[Any, np.dtype[np.int32]]) -> Family:
    bounded = rules.limits is not None
    first = len(configuration.schema.attributes[0].labels)
    groups = (np.arange(configuration.schema.cells) // (configuration.schema.cells // first)).astype(np.int32)
    return Family(
        np.zeros(len(live), dtype=np.int64),
        1,
        tuple(tuple(None if q.is_detailed else q.answers()[live] for q in queries) for queries in rules.rounding),
        groups[live] if bounded else None,
        rules.limits.lower if rules.limits else None,
        rules.limits.upper if rules.limits else None,
        rules.totals,
        (),
    )


def _parameters(configuration: Configuration, options: Options) -> dict[str, Any]:
    return {
        "schema": {a.name: list(a.labels) for a in configuration.schema.attributes},
        "invariants": {level: [q.name for q in queries] for level, queries in configuration.invariants.items()},
        "geolevels": list(configuration.levels),
        "spine": configuration.spine.kind,
        "estimator": options.estimator,
    }


def _taken_as_public(configuration: Configuration) -> tuple[str, ...]:
    return (
        "the reference file: blocks and the areas they lie in",
        *(
            ["housing units and group-quarters facilities of every block (group_quarters.csv)"]
            if configuration.group_quarters or configuration.spine.live
            else []
        ),
        *(f"invariant: total of every {level}" for level in configuration.invariants),
        *(["structural zeros of the configuration"] if configuration.structural_zeros else []),
    )
