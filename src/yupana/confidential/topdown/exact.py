"""TopDown without noise: the exact counts of all areas, laid out as a release. Confidential."""

from dataclasses import replace
from typing import Any

from yupana.confidential.request import (
    Request,
    confidential_log,
    manifest_of,
    options_of,
    reasons_against_release,
)
from yupana.confidential.topdown.estimate import Options
from yupana.confidential.topdown.run import parameters_of, taken_as_public, write_counts
from yupana.confidential.topdown.world import checksums, open_world, public_checksums
from yupana.plan.ledger import Ledger
from yupana.plan.plan import Plan
from yupana.privacy.entropy import SystemEntropy
from yupana.privacy.exact import INFINITE
from yupana.products.topdown.outputs import check_labels, describe_files
from yupana.products.topdown.verify import SYSTEM, verify_release
from yupana.progress import Announce, Stopwatch
from yupana.release.folder import new_folder, write_manifest
from yupana.release.recipe import Recipe, check_public_inputs
from yupana.topdown.configuration import Configuration
from yupana.topdown.reading.document import configuration_document


def exact(
    configuration: Configuration, plan: Plan, request: Request, options: Options, announce: Announce
) -> dict[str, Any]:
    """Write the exact counts of a configuration's geolevels and areas and return the manifest. Nothing is estimated.

    Parameters
    ----------
    configuration : Configuration
    plan : Plan
        Of the configuration.
    request : Request
    options : Options
        Of these the spine is read, and the estimator that it is built for.
    announce : callable

    Raises
    ------
    ConfigError
        If the records are not synthetic and the request is not for internal use.
    InputError, OutputError
        If the records or the output folder do not allow it.
    """
    noiseless = plan.without_noise()
    reasons = reasons_against_release(noiseless, SystemEntropy(), request)
    check_labels(configuration.schema)
    clock = Stopwatch(announce)
    folder = new_folder(request.out, overwrite=request.overwrite, noisy=False, private=request.internal)
    with confidential_log(request) as log, folder as partial:
        world = open_world(configuration, request.data, request.memory, clock, options.estimator, options.spine)
        clock.start("writing the counts")
        rows = write_counts(partial, configuration, world, world.exact[-1], request)
        public = public_checksums(request.data, world)
        check_public_inputs(request.repeats, public)
        manifest = manifest_of(
            Ledger(noiseless),
            reasons,
            parameters_of(configuration, options),
            taken_as_public(configuration, world),
            Recipe(
                configuration_document(replace(configuration, budget=INFINITE)),
                options_of(request, noiseless, estimator=options.estimator),
                public,
            ),
        )
        manifest |= {"system": SYSTEM, "tables": describe_files(partial, rows)}
        if wrong := verify_release(partial, configuration.schema, configuration.levels):
            raise RuntimeError(f"the counts do not hold together: {'; '.join(wrong)}")
        write_manifest(partial, manifest)
        inputs = checksums(request.data, world)
        log({"records": int(world.counts.histogram.counts.sum()), "inputs": inputs, "seconds": clock.stop()})
    return manifest
