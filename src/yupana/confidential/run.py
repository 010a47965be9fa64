"""The one machine that makes releases: it opens, charges, counts, measures, lays out, checks and publishes."""

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Generic, TypeAlias, TypeVar

import duckdb
import numpy as np

from yupana.confidential.product_counter import Counter, MeasuredRun, Validation, counter_of
from yupana.confidential.records.sources import forms
from yupana.confidential.records.validation import require_none
from yupana.confidential.request import (
    Layout,
    LedgerAccount,
    RunRequest,
    check_apart,
    confidential_log,
    reasons_against_release,
)
from yupana.confidential.resumption import begin, check_begin, check_checkpoints
from yupana.errors import ConfigError, OutputError
from yupana.files.draw_log import DrawLog
from yupana.files.regular import real
from yupana.plan.account import Due
from yupana.plan.exact_loss import plan_as_json
from yupana.plan.ledger import Ledger
from yupana.plan.plan import Plan, number
from yupana.products.codebook import data_package
from yupana.products.parts import ALONE
from yupana.products.product import Product
from yupana.progress import Stopwatch
from yupana.release.checkpoint import Checkpoint
from yupana.release.codebook import write_codebook
from yupana.release.folder import new_folder, write_manifest
from yupana.release.recipe import Recipe, check_public_inputs
from yupana.release.release import write_whole
from yupana.release.status import CONFIDENTIAL, INTERNAL, MEASURED, NOT_FOR_RELEASE
from yupana.version import __version__

C = TypeVar("C")

_DEFAULTS: Final = RunRequest()


@dataclass(frozen=True, slots=True)
class PartRun(Generic[C]):
    """What is asked of a run: of a release by itself, or of a part of one."""

    product: Product[C]
    config: C
    data: Path
    request: RunRequest


def run(
    product: Product[C], config: C, data: Path, out: Path, request: RunRequest = _DEFAULTS, *, noisy: bool = True
) -> dict[str, Any]:
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
    noisy : bool
        False makes the same release without noise: of synthetic records, or for internal use. It is charged to no
        account.

    Raises
    ------
    ConfigError
        If records that are not synthetic were to be measured without noise or with a seed.
    InputError, OutputError, BudgetError
        If the records, the output folder or the ledger do not allow the run. Nothing is left in the folder.
    """
    return run_parts("", {ALONE: PartRun(product, config, data, request)}, out, noisy=noisy)


def validate(product: Product[C], config: C, data: Path, request: RunRequest = _DEFAULTS) -> Validation:
    """Open and check records as a run would, and tell what is wrong with them.

    Raises
    ------
    ConfigError, InputError
        If they cannot be opened at all.
    """
    counter = counter_of(product.key, config, request)
    bring(counter, data)
    with counter.open(data, Stopwatch(request.announce), to_count=False) as records:
        return replace(counter.look(records), left_out=tuple(product.left_out(config)))


def bring(counter: Counter[Any, Any, Any, Any], data: Path) -> None:
    """Copy what lies on a store, but for records that an engine cuts into shards where they lie.

    Raises
    ------
    InputError, OutputError
    """
    request = counter.request
    schemas = counter.cut_files if request.engine is not None else ()
    request.bring(data, [path for schema in schemas for path in forms(data, schema)])


def product_plan(product: Product[C], config: C, request: RunRequest) -> Plan:
    """The plan that a request asks for."""
    return product.plan(config, accounting=request.accounting, confidence=request.confidence, margins=request.margins)


def run_parts(
    title: str,
    parts: Mapping[str, PartRun[Any]],
    out: Path,
    then: Callable[[Path], object] | None = None,
    *,
    noisy: bool = True,
) -> dict[str, Any]:
    """Make a release of several parts, each with its own plan and account, and return its manifest.

    Nothing is charged or drawn before all parts were opened and found fit. The parts appear together. A run that is
    stopped goes on with what each part has drawn.

    Parameters
    ----------
    title : str
        What the whole is called.
    parts : mapping of str to PartRun
        By name; one whose name is `ALONE` lies in ``out`` itself. Where it is written and logged, and what is replaced,
        is the same in all requests.
    out : Path
        A folder that does not exist or is empty.
    then : callable, optional
        Called with the folder of the parts before it appears as ``out``.
    noisy : bool
        False makes the release without noise.

    Raises
    ------
    ConfigError, InputError, OutputError, BudgetError
        As by `run` of each part.
    """
    if not noisy and any(part.request.account is not None for part in parts.values()):
        raise ConfigError("exact counts have no noise, so no ledger can hold their loss; leave the ledger out")
    kept = Checkpoint.beside(out)
    with ExitStack() as holding:
        manifest = _release(title, parts, out, kept, holding, noisy=noisy, then=then)
        if noisy:
            kept.remove()
    return manifest


@dataclass(frozen=True, eq=False)
class _Work:
    """A part whose records are open and fit to be measured; ``opened`` closes them."""

    part: PartRun[Any]
    counter: Counter[Any, Any, Any, Any]
    plan: Plan
    document: dict[str, Any]
    reasons: list[str]
    clock: Stopwatch
    opened: ExitStack
    records: Any
    public: dict[str, str]
    inputs: dict[str, str]
    counts: Any
    out: Path
    kept: Checkpoint

    @cached_property
    def state(self) -> dict[str, Any]:
        """What must be the same in all attempts of the run."""
        request = self.part.request
        return {
            "product": self.part.product.key,
            "configuration": json.dumps(self.document),
            **options_of(self.plan, request, {}),
            "seed": "none" if request.entropy.for_release else repr(request.entropy),
            "version": __version__,
            # A copy of what was kept, beside another output folder, would be another run, which nobody charged.
            "output folder": str(real(self.out)),
            **self.counter.terms(self.records),
            **{f"input {name}": digest for name, digest in {**self.inputs, **self.public}.items()},
        }


def _release(
    title: str,
    parts: Mapping[str, PartRun[Any]],
    out: Path,
    kept: Checkpoint,
    holding: ExitStack,
    *,
    noisy: bool,
    then: Callable[[Path], object] | None,
) -> dict[str, Any]:
    """Make the release; what was drawn is kept, and held by ``holding``, until it has appeared and longer."""
    begun = {name: _planned(part, noisy=noisy) for name, part in parts.items()}
    request = next(iter(parts.values())).request
    with ExitStack() as stack:
        write_log = stack.enter_context(confidential_log([part.data for part in parts.values()], out, request))
        # Where draws are kept, a draft that was not finished may go: it is made of them.
        draft = stack.enter_context(
            new_folder(out, overwrite=request.overwrite, noisy=noisy and not kept.is_begun, private=request.internal)
        )
        if noisy:
            check_checkpoints(kept, [kept.part(name) for name in parts], request)
        folders = _noisy_folders(stack, out, request)
        works = {}
        for name, part in parts.items():
            works[name] = _open(stack, part, begun[name], out, kept.part(name))
            if name != ALONE:
                works[name].clock.stop()  # other parts come before it goes on
        if noisy:
            works = _resumed(works)
            _check_charges(list(works.values()))
            if kept.is_begun and not request.resume:
                kept.remove()
            for work in works.values():
                begin(work.kept, work.state, work.plan, work.part.request)
            holding.enter_context(kept.held())
        made = {name: _measure(work, name, draft, folders, noisy=noisy) for name, work in works.items()}
        manifest = made[ALONE][0] if ALONE in made else {}
        if ALONE not in made:
            for folder in (*folders.values(), draft):
                manifest = write_whole(folder, title, next(iter(parts.values())).product.key, tuple(parts))
        if then is not None:
            then(draft)
        logs = {name: log for name, (_, log) in made.items()}
        write_log(logs.get(ALONE, {"parts": logs}))
    return manifest


_Planned: TypeAlias = tuple[Counter[Any, Any, Any, Any], Plan, dict[str, Any], list[str]]


def _planned(part: PartRun[Any], *, noisy: bool) -> _Planned:
    """What the configuration alone tells: counter, plan, document, and reasons against release."""
    counter = counter_of(part.product.key, part.config, part.request)
    plan = product_plan(part.product, part.config, part.request)
    document = part.product.document(part.config if noisy else part.config.without_noise())
    if not noisy:
        plan = plan.without_noise()
    return counter, plan, document, reasons_against_release(plan, part.data, part.request)


def _open(stack: ExitStack, part: PartRun[Any], planned: _Planned, out: Path, kept: Checkpoint) -> _Work:
    """Open the records of a part, and require that they can be measured."""
    counter, plan, document, reasons = planned
    clock = Stopwatch(part.request.announce)
    opened = stack.enter_context(ExitStack())
    bring(counter, part.data)
    records = opened.enter_context(counter.open(part.data, clock, out=out, kept=kept.folder))
    require_none(records.findings)
    reasons = reasons + counter.doubts(records)
    inputs, public = counter.inputs(records), counter.public_inputs(records)
    check_public_inputs(part.request.repeats, public)
    _begin(clock, counter.stages[0])
    counts = counter.count(records)
    return _Work(part, counter, plan, document, reasons, clock, opened, records, public, inputs, counts, out, kept)


def _resumed(works: Mapping[str, _Work]) -> dict[str, _Work]:
    """Parts that no interrupted run had begun when it ended begin now."""
    return {
        name: work
        if work.kept.exists or name == ALONE
        else replace(work, part=replace(work.part, request=replace(work.part.request, resume=False)))
        for name, work in works.items()
    }


def _check_charges(works: Sequence[_Work]) -> None:
    """Refuse what can be told before any part is charged."""
    dues: list[tuple[LedgerAccount | None, Due]] = []
    for work in works:
        request = work.part.request
        work.counter.check_measurable(work.records)
        before = [due for account, due in dues if account == request.account]
        if due := check_begin(work.kept, work.state, work.plan, request, before):
            dues.append((request.account, due))


def _measure(
    work: _Work, name: str, draft: Path, folders: Mapping[Layout, Path], *, noisy: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Measure a part that was charged, and write it; return its manifest, and what the confidential log says."""
    part, counter, plan, records, clock = work.part, work.counter, work.plan, work.records, work.clock
    config, request = part.config, part.request
    folder = draft / name
    folder.mkdir(exist_ok=True)
    _begin(clock, counter.stages[1])
    measured_plan = counter.planned(records, plan)
    ledger = Ledger(measured_plan, draws=_draws(work)) if noisy else Ledger(measured_plan.without_noise())
    measured = (counter.measure if noisy else counter.exact)(work.counts, ledger, clock)
    run = MeasuredRun(records, work.counts, measured, plan)
    told = counter.tell(run)
    if not counter.reads_on:
        work.opened.close()
    clock.start("writing the release")
    recipe = Recipe(work.document, options_of(plan, request, told.options), work.public)
    tables = counter.write(folder, run)
    manifest = {
        **manifest_of(ledger, work.reasons, told.parameters, told.taken_as_public, recipe),
        **told.others,
        "tables": tables,
        "reports": _write_codebook(part.product, config, plan, folder, tables),
    }
    write_manifest(folder, manifest)
    _begin(clock, counter.stages[2])
    if counter.is_checked and (wrong := part.product.verify(folder, manifest).wrong):
        if part.product.verify(folder, manifest).wrong != wrong:
            raise OutputError("what was written is read back otherwise; the disk may be at fault; nothing was released")
        raise RuntimeError(f"the release does not hold together: {'; '.join(wrong)}")
    for layout, place in folders.items():
        (place / name).mkdir(exist_ok=True)
        counter.write_noisy(place / name, layout, run, manifest, clock)
    return manifest, {**told.log, "inputs": work.inputs, "seconds": clock.stop()}


def _draws(work: _Work) -> DrawLog | None:
    """Where draws are kept as they pass the door, if they are; it is closed with the records."""
    if not work.counter.draws_at_the_door:
        return None
    repeatable = not work.part.request.entropy.for_release
    return work.opened.enter_context(DrawLog(work.kept.draws, repeatable=repeatable))


def _write_codebook(
    product: Product[C], config: C, plan: Plan, draft: Path, tables: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Write the codebook, which is told no more of the tables than their names and columns."""
    files = {name: told["columns"] for name, told in tables.items()}
    words = product.words
    told = data_package(
        words.title, plan.product, files, lambda table: product.described(config, plan, table), words.universes
    )
    return write_codebook(draft, told)


def _begin(clock: Stopwatch, stage: str) -> None:
    if stage:
        clock.start(stage)


def _noisy_folders(stack: ExitStack, out: Path, request: RunRequest) -> dict[Layout, Path]:
    """The folders of all noisy measurements that were asked for, by their layout."""
    check_apart(out, request.beside)
    return {
        layout: stack.enter_context(new_folder(folder, overwrite=request.overwrite, noisy=False))
        for layout, folder in request.layouts.items()
    }


def options_of(plan: Plan, request: RunRequest, others: Mapping[str, str]) -> dict[str, str]:
    """The options of a run that decide what it makes, for its manifest."""
    return {
        "confidence": str(plan.confidence),
        "margins": plan.margins,
        "sensitivity": plan.accounting,
        "format": request.format,
        **({"columns": request.columns.as_text()} if request.columns.names else {}),
        **others,
    }


def manifest_of(
    ledger: Ledger, reasons: list[str], parameters: Mapping[str, Any], taken_as_public: tuple[str, ...], recipe: Recipe
) -> dict[str, Any]:
    """What the manifest of a release says of its making (docs/manifest.md); its tables are added by their writer."""
    return {
        "yupana": __version__,
        "product": ledger.plan.product,
        "status": CONFIDENTIAL if INTERNAL in reasons else NOT_FOR_RELEASE if reasons else MEASURED,
        **({"reasons": reasons} if reasons else {}),
        # Tells runs apart, too: measurements belong to the release of the same moment.
        "created": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "plan": plan_as_json(ledger.plan),
        "ledger": {"charged": list(ledger.charged), **number("spent", ledger.spent)},
        "parameters": dict(parameters),
        "taken_as_public": list(taken_as_public),
        **recipe.as_json(),
        "versions": {"python": platform.python_version(), "numpy": np.__version__, "duckdb": duckdb.__version__},
    }
