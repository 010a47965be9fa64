"""TopDown from counts of blocks to release: count, pass the door, estimate from the root down, write. Confidential."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final

import yupana
from yupana.confidential.request import (
    Request,
    charge,
    confidential_log,
    in_output,
    manifest_of,
    options_of,
    reasons_against_release,
)
from yupana.confidential.topdown.estimate import Options, Progress, check_run, estimate
from yupana.confidential.topdown.world import World, checksums, open_world, public_checksums
from yupana.errors import ConfigError, OutputError
from yupana.files.regular import real
from yupana.geography.disk import BLOCKS, GEOUNITS, write_blocks, write_geounits
from yupana.geography.spine import Spine
from yupana.plan.plan import Plan
from yupana.privacy.entropy import Entropy
from yupana.products.topdown.outputs import check_labels, describe_files, write_outputs
from yupana.products.topdown.verify import NOISY, SYSTEM, verify_release
from yupana.progress import Announce, Stopwatch
from yupana.release.folder import new_folder, write_manifest
from yupana.release.recipe import Recipe, check_public_inputs
from yupana.topdown.checkpoint import Checkpoint
from yupana.topdown.configuration import Configuration
from yupana.topdown.descend import Descent
from yupana.topdown.histogram import Histogram
from yupana.topdown.noisy_files import write_noisy
from yupana.topdown.reading.document import configuration_document
from yupana.topdown.stored import StoredMeasurements
from yupana.topdown.tree.full_information import FullInformation
from yupana.topdown.tree.intervals import write_intervals

SPINE: Final = "spine"

_OPTIONS_OF: Final = {"path": "--ledger", "data": "--dataset", "limits": "--limit", "unit": "--unit, --household-cap"}
"""The options that an account is given by."""


def run(
    configuration: Configuration,
    plan: Plan,
    request: Request,
    options: Options,
    entropy: Entropy,
    announce: Announce,
    progress: Progress,
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

    Raises
    ------
    ConfigError
        If records that are not synthetic were to be measured without noise or with a seed.
    InputError, OutputError, BudgetError
        If the records, the output folder or the ledger do not allow the run.
    """
    reasons = reasons_against_release(plan, entropy, request)
    check_labels(configuration.schema)
    clock = Stopwatch(announce)
    # By the folder itself, as one that has two names must not be drawn for twice.
    out = real(request.out)
    checkpoint = Checkpoint(out.parent / f"{out.name}.checkpoint")
    with ExitStack() as stack:
        log = stack.enter_context(confidential_log(request))
        partial = stack.enter_context(new_folder(request.out, overwrite=request.overwrite, noisy=False))
        noisy = _noisy_folder(stack, request, options)
        world = open_world(configuration, request.data, request.memory, clock, options.estimator, options.spine)
        check_run(configuration, world, options)
        inputs, public = checksums(request.data, world), public_checksums(request.data, world)
        check_public_inputs(request.repeats, public)
        state = {
            "configuration": repr(configuration),
            "estimator": options.estimator,
            "spine": world.given,
            "noisy measurements": noisy is not None,
            "seed": "none" if entropy.for_release else repr(entropy),
            "version": yupana.__version__,
            **{f"input {name}": digest for name, digest in inputs.items()},
        }
        _begin(checkpoint, state, request, plan, options)
        found = estimate(configuration, world, options, checkpoint, entropy, clock, progress)
        evidence, descent = found.evidence, found.descent
        clock.start("writing the release")
        rows = write_counts(partial, configuration, world, descent.counts[-1], request)
        if isinstance(evidence, FullInformation):
            rows |= write_intervals(partial, world.spine, configuration.schema, configuration.recodes, evidence)
        told = options_of(request, plan, estimator=options.estimator)
        manifest = manifest_of(
            found.ledger,
            reasons,
            parameters_of(configuration, options),
            taken_as_public(configuration, world),
            Recipe(configuration_document(configuration), told, public),
        )
        of_run = replace(found.spending.plan, confidence=plan.confidence, margins=plan.margins)
        manifest["plan"] = of_run.as_json()
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
            stored = StoredMeasurements(found.spending, checkpoint)
            written = write_noisy(noisy, world.spine, configuration.schema, configuration.recodes, stored)
            write_manifest(noisy, {**manifest, "system": NOISY, "tables": describe_files(noisy, written)})
        log({"records": int(world.counts.histogram.counts.sum()), "inputs": inputs, "seconds": clock.stop()})
    checkpoint.remove()
    return manifest


def _noisy_folder(stack: ExitStack, request: Request, options: Options) -> Path | None:
    if options.noisy_measurements is None:
        return None
    if in_output(options.noisy_measurements, request.out):
        raise OutputError(f"{options.noisy_measurements} would lie in {request.out}; name a folder of its own")
    return stack.enter_context(new_folder(options.noisy_measurements, overwrite=request.overwrite, noisy=False))


def write_counts(
    folder: Path, configuration: Configuration, world: World, counts: Histogram, request: Request
) -> dict[str, int]:
    """Write the spine and all tables from counts of the blocks; return the rows of each file."""
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
        counts,
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
    """Charge the run and begin, or go on where an interrupted run ended; nothing has been drawn uncharged then.

    The ledger is written first. A run that is killed before its checkpoint says so is charged once more: the ledger may
    hold too much, and never too little.

    Raises
    ------
    ConfigError
        If an interrupted run stands there and neither ``--resume`` nor ``--overwrite`` is given, or it was charged to
        another account.
    """
    account = _described(request)
    if options.resume:
        begun = checkpoint.resume(state)
        if begun is None and account is not None:
            charge(request, plan)
            checkpoint.charged(state, account)
        elif begun is not None and account is not None:
            _require_same(checkpoint, begun, account)
        return
    if checkpoint.exists and not request.overwrite:
        raise ConfigError(
            f"{checkpoint.folder} holds noisy counts of an interrupted run. Go on with --resume. Whoever saw them and "
            "those of a new run learns more than the plan allows; if nobody did, --overwrite begins anew"
        )
    checkpoint.check_ours()
    charge(request, plan)
    checkpoint.begin(state, account)


def _described(request: Request) -> dict[str, str] | None:
    """The account of a run as its checkpoint notes it; what was not asked for is left out."""
    if request.account is None:
        return None
    named = {field.name: getattr(request.account, field.name) for field in fields(request.account)}
    named["path"] = request.account.path.resolve()
    return {name: str(value) for name, value in named.items() if value != {}}


def _require_same(checkpoint: Checkpoint, begun: Mapping[str, object], account: Mapping[str, str]) -> None:
    changed = [_OPTIONS_OF.get(name, name) for name, value in account.items() if begun.get(name) != value]
    if changed:
        raise ConfigError(
            f"{checkpoint.folder}: the run was charged to the ledger {begun.get('path')} when it began, under the name "
            f"{begun.get('data')!r}; what is given now differs in {', '.join(changed)}. "
            "Name the same, or none: it is not charged again"
        )


def parameters_of(configuration: Configuration, options: Options) -> dict[str, Any]:
    """What a manifest says of the configuration."""
    return {
        "schema": {a.name: list(a.labels) for a in configuration.schema.attributes},
        "invariants": {level: [q.name for q in queries] for level, queries in configuration.invariants.items()},
        "geolevels": list(configuration.levels),
        "spine": configuration.spine.kind,
        "estimator": options.estimator,
    }


def taken_as_public(configuration: Configuration, world: World) -> tuple[str, ...]:
    """What the guarantee does not protect, for the manifest."""
    return (
        "the reference file: blocks and the areas they lie in",
        *(["the spine and its shares, from a folder"] if world.given else []),
        *(
            ["housing units and group-quarters facilities of every block (group_quarters.csv)"]
            if world.facilities is not None
            else []
        ),
        *(f"invariant: total of every {level}" for level in configuration.invariants),
        *(["structural zeros of the configuration"] if configuration.structural_zeros else []),
    )
