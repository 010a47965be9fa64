"""The one machine that makes releases: it opens, charges, counts, measures, lays out, checks and publishes."""

import platform
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import duckdb
import numpy as np

import yupana
from yupana.confidential.counter import COUNTERS, Counter, MeasurementsCounter, Validation
from yupana.confidential.records.findings import require_none
from yupana.confidential.request import (
    INTERNAL,
    LAYOUTS,
    Layout,
    RunRequest,
    confidential_log,
    in_output,
    reasons_against_release,
)
from yupana.errors import ConfigError, OutputError
from yupana.plan.ledger import Ledger
from yupana.plan.plan import Plan, number
from yupana.products.codebook import data_package
from yupana.products.product import Product
from yupana.progress import Stopwatch
from yupana.release.codebook import write_codebook
from yupana.release.folder import new_folder, write_manifest
from yupana.release.recipe import Recipe, check_public_inputs
from yupana.release.status import CONFIDENTIAL, MEASURED, NOT_FOR_RELEASE

C = TypeVar("C")

_DEFAULTS: Final = RunRequest()
_OF_SOME: Final = ("totals", "estimator", "spine", "resume", "intervals", "replicates", *LAYOUTS)
"""Terms of a request that only some products have."""


def run(product: Product[C], config: C, data: Path, out: Path, request: RunRequest = _DEFAULTS) -> dict[str, Any]:
    """Make a release and return its manifest.

    What is released satisfies the loss of the product's plan, against the neighbours that the plan names. Outside the
    guarantee are the validation of the records, the confidential log, and the running time.

    Parameters
    ----------
    product : Product
        One of `yupana.products.PRODUCTS`.
    config
        What `product.read` gave.
    data : Path
        The folder of the records.
    out : Path
        A folder that does not exist or is empty; it appears when the release is whole.
    request : RunRequest

    Raises
    ------
    ConfigError
        If records that are not synthetic were to be measured without noise or with a seed, or something was asked
        that the product does not have.
    InputError, OutputError, BudgetError
        If the records, the output folder or the ledger do not allow the run. Nothing is left in the folder.
    """
    return _make(product, config, data, out, request, noisy=True)


def exact(product: Product[C], config: C, data: Path, out: Path, request: RunRequest = _DEFAULTS) -> dict[str, Any]:
    """Make the same release without noise: of synthetic records, or for internal use. It is charged to no account.

    Parameters and errors are those of `run`.
    """
    if request.account is not None:
        raise ConfigError("exact counts have no noise, so no ledger can hold their loss; leave the ledger out")
    return _make(product, config, data, out, request, noisy=False)


def validate(product: Product[C], config: C, data: Path, request: RunRequest = _DEFAULTS) -> Validation:
    """Open and check records as a run would, and tell what is wrong with them.

    Raises
    ------
    ConfigError, InputError
        If they cannot be opened at all.
    """
    counter = counter_of(product, request)
    with counter.open(config, data, request, Stopwatch(request.announce), to_count=False) as records:
        return counter.look(records, config, request)


def product_plan(product: Product[C], config: C, request: RunRequest) -> Plan:
    """The plan that a request asks for."""
    return product.plan(config, accounting=request.accounting, confidence=request.confidence, margins=request.margins)


def counter_of(product: Product[C], request: RunRequest) -> Counter[C, Any, Any, Any]:
    """The counter of a product, if it takes what is asked.

    Raises
    ------
    ConfigError
        If it does not.
    """
    counter = COUNTERS[product.key]
    strange = [
        name for name in _OF_SOME if name not in counter.takes and getattr(request, name) != getattr(_DEFAULTS, name)
    ]
    if strange:
        raise ConfigError(f"{product.key} takes no {', '.join(strange)}")
    return counter


def _make(product: Product[C], config: C, data: Path, out: Path, request: RunRequest, *, noisy: bool) -> dict[str, Any]:
    counter = counter_of(product, request)
    plan = product_plan(product, config, request)
    document = product.document(config if noisy else counter.without_noise(config))
    if not noisy:
        plan = plan.without_noise()
    reasons = reasons_against_release(plan, data, request)
    clock = Stopwatch(request.announce)
    with ExitStack() as stack:
        write_log = stack.enter_context(confidential_log(data, out, request))
        draft = stack.enter_context(
            new_folder(out, overwrite=request.overwrite, noisy=counter.leaves_noise, private=request.internal)
        )
        measurements = _noisy_folders(stack, out, request)
        with counter.open(config, data, request, clock, out=out) as records:
            require_none(records.findings)
            reasons += counter.doubts(records, config)
            public = counter.public_inputs(records, config)
            check_public_inputs(request.repeats, public)
            _begin(clock, counter.stages[0])
            counts = counter.count(records, config, plan)
            if noisy:
                counter.charge(records, config, plan, request)
            _begin(clock, counter.stages[1])
            ledger = Ledger(counter.planned(records, config, plan) if noisy else plan)
            measured = (counter.measure if noisy else counter.exact)(counts, config, ledger, request, clock)
            told = counter.tell(records, counts, measured, config, plan, request)
        clock.start("writing the release")
        recipe = Recipe(document, options_of(plan, request, told.options), public)
        tables = counter.write(draft, records, measured, config, plan, request)
        manifest = {
            **manifest_of(ledger, reasons, told.parameters, told.taken_as_public, recipe),
            **told.others,
            "tables": tables,
            "reports": _write_codebook(product, config, plan, draft, tables),
        }
        write_manifest(draft, manifest)
        _begin(clock, counter.stages[2])
        if counter.is_checked(config) and (wrong := product.verify(draft, manifest).wrong):
            raise RuntimeError(f"the release does not hold together: {'; '.join(wrong)}")
        if isinstance(counter, MeasurementsCounter):
            for layout, folder in measurements.items():
                counter.write_noisy(folder, layout, records, measured, config, manifest, clock)
        write_log({**told.log, "seconds": clock.stop()})
    if noisy:
        counter.finish(records)
    return manifest


def _write_codebook(
    product: Product[C], config: C, plan: Plan, draft: Path, tables: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Write the codebook, which is told no more of the tables than their names and columns."""
    files = {name: told["columns"] for name, told in tables.items()}
    told = data_package(product.words.title, plan.product, files, lambda table: product.described(config, plan, table))
    return write_codebook(draft, told)


def _begin(clock: Stopwatch, stage: str) -> None:
    if stage:
        clock.start(stage)


def _noisy_folders(stack: ExitStack, out: Path, request: RunRequest) -> dict[Layout, Path]:
    """The folders of all noisy measurements that were asked for, by their layout."""
    asked = request.layouts
    for layout, folder in asked.items():
        for other in (out, *(one for name, one in asked.items() if name != layout)):
            if in_output(folder, other):
                raise OutputError(f"{folder} would lie in {other}; name a folder of its own")
    return {
        layout: stack.enter_context(new_folder(folder, overwrite=request.overwrite, noisy=False))
        for layout, folder in asked.items()
    }


def options_of(plan: Plan, request: RunRequest, others: Mapping[str, str]) -> dict[str, str]:
    """The options of a run that decide what it makes, for its manifest."""
    return {
        "confidence": str(plan.confidence),
        "margins": plan.margins,
        "sensitivity": plan.accounting,
        "format": request.fmt,
        **({"columns": request.columns.as_text()} if request.columns.names else {}),
        **others,
    }


def manifest_of(
    ledger: Ledger,
    reasons: list[str],
    parameters: Mapping[str, Any],
    taken_as_public: tuple[str, ...],
    recipe: Recipe,
) -> dict[str, Any]:
    """What the manifest of a release says of its making (docs/manifest.md); its tables are added by their writer."""
    return {
        "yupana": yupana.__version__,
        "product": ledger.plan.product,
        "status": _status(reasons),
        **({"reasons": reasons} if reasons else {}),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "plan": ledger.plan.as_json(),
        "ledger": {"charged": list(ledger.charged), **number("spent", ledger.spent)},
        "parameters": dict(parameters),
        "taken_as_public": list(taken_as_public),
        **recipe.as_json(),
        "versions": {"python": platform.python_version(), "numpy": np.__version__, "duckdb": duckdb.__version__},
    }


def _status(reasons: list[str]) -> str:
    if INTERNAL in reasons:
        return CONFIDENTIAL
    return NOT_FOR_RELEASE if reasons else MEASURED
