"""How a run begins, and goes on if it was interrupted: charged once, before it draws, and with what it had drawn.

A run has a name before it is charged, and is charged under it, so that the ledger knows it again
(docs/interrupted-runs.md).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from yupana import interruption
from yupana.confidential.request import RunRequest
from yupana.errors import BudgetError, ConfigError, OutputError
from yupana.files.draw_log import DrawLog
from yupana.plan.account import Due, charge_account, check_account
from yupana.plan.plan import Plan
from yupana.release.checkpoint import Begun, Checkpoint

State = Mapping[str, Any]
"""What must be the same in all attempts of a run, as JSON."""

_OPTIONS_OF: Final = {"path": "--ledger", "data": "--dataset", "limits": "--limit", "unit": "--unit, --household-cap"}
"""The options that an account is given by."""


def check_checkpoints(whole: Checkpoint, parts: Sequence[Checkpoint], request: RunRequest) -> None:
    """Refuse what stands where a run and its parts keep their draws, before any record is read.

    Raises
    ------
    ConfigError
        If an interrupted run stands there and is neither to be resumed nor overwritten.
    OutputError
        If there is none to be resumed, or something else stands there.
    """
    if request.resume and not any(part.exists for part in parts):
        raise OutputError(f"{whole.folder}: there is no interrupted run to resume")
    if whole.is_begun and not request.resume and not request.overwrite:
        raise ConfigError(
            f"{whole.folder} holds noisy counts of an interrupted run. Go on with --resume. Whoever saw them "
            "and those of a new run learns more than the plan allows; if nobody did, --overwrite begins anew"
        )
    whole.check_ours()
    if whole.folder.exists():
        with whole.held():
            pass  # a run whose release has just appeared may be about to remove it


def check_begin(
    checkpoint: Checkpoint, state: State, plan: Plan, request: RunRequest, before: Iterable[Due] = ()
) -> Due | None:
    """Refuse what can be told before a run is charged; nothing is changed.

    Parameters
    ----------
    state : mapping
    before : iterable of Due
        What will be charged to the same account before.

    Returns
    -------
    Due or None
        What this run will be charged with, if it will be.

    Raises
    ------
    ConfigError
        If the run to be resumed is charged to another account.
    OutputError
        If what was kept cannot be gone on with: it is damaged, or anything else is given now.
    BudgetError
        If the account does not allow the charge.
    """
    account, begun = request.account, None
    if request.resume:
        begun = checkpoint.resume(state)
        with DrawLog(checkpoint.draws):
            _check_account(checkpoint, begun, _described(request))
    if account is None or (begun is not None and begun.charged):
        return None
    due = Due(plan, None if begun is None else begun.name)
    check_account(account.path, account.data, (*before, due), account.limits, unit=account.unit)
    return due


def begin(checkpoint: Checkpoint, state: State, plan: Plan, request: RunRequest) -> None:
    """Begin a run, or go on with one, and charge it unless that was done; nothing is drawn uncharged then.

    The run's name and account are on disk before the charge. A run that dies beside it is charged when it goes on,
    under the same name, which the ledger does not charge twice.

    Raises
    ------
    OutputError
        If the checkpoint cannot be written.
    BudgetError
        If the account does not allow the charge; the run has not begun then.
    """
    account, described = request.account, _described(request)
    begun = checkpoint.resume(state) if request.resume else checkpoint.begin(state, described)
    if begun.charged and begun.account is not None:
        interruption.charge(Path(begun.account["path"]))
    if account is None or begun.charged:
        return
    named = begun._replace(account=described)
    checkpoint.note(state, named)
    try:
        charge_account(account.path, account.data, plan, account.limits, unit=account.unit, run=begun.name)
    except BudgetError:
        if request.resume:
            checkpoint.note(state, begun)
        else:
            checkpoint.remove()
        raise
    interruption.charge(account.path)
    checkpoint.note(state, named._replace(charged=True))


def _described(request: RunRequest) -> dict[str, str] | None:
    """The account of a run as its checkpoint notes it; what was not asked for is left out."""
    if request.account is None:
        return None
    named = {field.name: getattr(request.account, field.name) for field in fields(request.account)}
    named["path"] = request.account.path.resolve()
    return {name: str(value) for name, value in named.items() if value != {}}


def _check_account(checkpoint: Checkpoint, begun: Begun, account: Mapping[str, str] | None) -> None:
    """Refuse another account than that of the run, and none while it may not have been charged."""
    if begun.account is None:
        return
    of_run = f"the ledger {begun.account.get('path')}"
    name = f"under the name {begun.account.get('data')!r}"
    if account is None:
        if not begun.charged:
            raise ConfigError(
                f"{checkpoint.folder}: the run was stopped while it was charged to {of_run}, {name}. "
                "Name both again, with --ledger and --dataset: it is charged once"
            )
        return
    changed = [_OPTIONS_OF.get(key, key) for key, value in account.items() if begun.account.get(key) != value]
    if changed:
        raise ConfigError(
            f"{checkpoint.folder}: the run was charged to {of_run} when it began, {name}; what is given now differs in "
            f"{', '.join(changed)}. Name the same, or none: it is not charged again"
        )
