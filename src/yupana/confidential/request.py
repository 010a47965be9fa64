"""What every run does around its own counting: its request, its confidential log, its manifest. Confidential."""

import json
import os
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np

import yupana
from yupana.confidential.records.census import SYNTHETIC_MARK, is_synthetic
from yupana.confidential.records.reader import Source
from yupana.errors import ConfigError, OutputError
from yupana.files.new_file import NewFile
from yupana.files.regular import read_regular, real
from yupana.interruption import is_published, whole
from yupana.plan.account import charge_account
from yupana.plan.ledger import Ledger
from yupana.plan.plan import NO_NOISE, Plan, number
from yupana.plan.unit import RECORD, Unit
from yupana.privacy.entropy import Entropy
from yupana.privacy.exact import Budget
from yupana.release.recipe import Recipe
from yupana.release.status import CONFIDENTIAL, NOT_FOR_RELEASE
from yupana.release.tables import Format, checksum

INTERNAL: Final = "it was made with --internal and tells the truth about records that may be real"
"""The reason that makes an output CONFIDENTIAL."""


@dataclass(frozen=True, slots=True)
class Account:
    """Where the loss of a run is added up with that of others on the same data."""

    path: Path
    data: str
    limits: Mapping[str, Budget]
    unit: Unit = RECORD


@dataclass(frozen=True, slots=True)
class Request:
    """What a run is asked to do, apart from its configuration and plan.

    ``internal`` asks for exact counts that stay in the house, whether or not the records are synthetic.
    """

    data: Path
    out: Path
    fmt: Format = "csv"
    overwrite: bool = False
    log: Path | None = None
    account: Account | None = None
    memory: int | None = None
    internal: bool = False
    repeats: Recipe | None = None
    """How the release was made that is to be made again; None where none is."""


def options_of(request: Request, plan: Plan, **others: str) -> dict[str, str]:
    """The options of a run that decide what it makes, for its manifest."""
    return {
        "confidence": str(plan.confidence),
        "margins": plan.margins,
        "sensitivity": plan.accounting,
        "format": request.fmt,
        **others,
    }


def reasons_against_release(plan: Plan, entropy: Entropy, request: Request) -> list[str]:
    """Why the output may not be released; refused altogether on records that are not synthetic.

    Exact counts for internal use are the exception: they have a reason of their own, whatever the records are.

    Raises
    ------
    ConfigError
        If the records may be real, and the noise could be taken off or there is none.
    """
    reasons = _reasons(plan, entropy)
    if request.internal and reasons == [NO_NOISE]:
        return [INTERNAL]
    if reasons and not is_synthetic(request.data):
        raise _may_be_real(request.data, reasons)
    return reasons


def check_accuracy_allowed(plan: Plan, entropy: Entropy, data: Path, *, internal: bool) -> None:
    """Refuse to compare noisy counts with the truth of records that may be real, but for internal use.

    Raises
    ------
    ConfigError
        If the records may be real and this is not for internal use, or if a seed or an infinite budget would be used
        on them, which internal use does not unlock.
    """
    if is_synthetic(data):
        return
    if not internal:
        raise ConfigError(
            f"accuracy compares with the truth; {data} holds no file named {SYNTHETIC_MARK}, so its records may be "
            "real; for use in the house pass --internal, and keep what it tells confidential"
        )
    if reasons := _reasons(plan, entropy):
        raise _may_be_real(data, reasons)


_SEEDED: Final = "the noise was made from a seed, and whoever has the seed can take it off"


def _reasons(plan: Plan, entropy: Entropy) -> list[str]:
    return [*plan.against_release, *([] if entropy.for_release else [_SEEDED])]


def _may_be_real(data: Path, reasons: list[str]) -> ConfigError:
    advice = "; exact --internal makes such counts for use in the house" if reasons == [NO_NOISE] else ""
    return ConfigError(
        f"{data} holds no file named {SYNTHETIC_MARK}, so its records may be real; "
        f"refused because {' and '.join(reasons)}{advice}"
    )


def charge(request: Request, plan: Plan) -> None:
    """Add the loss of the whole plan to the ledger file, if one is named, before anything is measured."""
    if (account := request.account) is not None:
        charge_account(account.path, account.data, plan, account.limits, unit=account.unit)


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
    return NOT_FOR_RELEASE if reasons else "noisy measurements under the plan"


def input_checksums(folder: Path, sources: Mapping[str, Source]) -> dict[str, str]:
    """SHA-256 of every input file, by its path within the data folder; for the confidential log."""
    return {
        os.path.relpath(path, folder): checksum(path)
        for source in sources.values()
        for path in (*source.paths, *source.beside)
    }


@contextmanager
def confidential_log(request: Request) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Claim the place of the confidential log before the work; it appears there if the release does.

    A run enters this context before that of its output folder, so that a release that fails to appear leaves no log.

    Raises
    ------
    OutputError
        If the log, the ledger or the records lie in the release, or the log would replace a file that is no log of
        ours, or cannot be written.
    """
    out = request.out.absolute()
    path = (request.log or Path(f"{out}.confidential.log")).absolute()
    if in_output(path, out):
        raise OutputError(f"the log {path} would lie in the release, but it is confidential; name another place")
    if request.account is not None and in_output(request.account.path, out):
        raise OutputError(
            f"the ledger {request.account.path} would lie in the output folder and go with what is replaced there; "
            "move it to another place"
        )
    if in_output(request.data, out):
        raise OutputError(f"{request.data} lies in {out} and would go with what is replaced there; name another folder")
    if request.account is not None and real(path) == real(request.account.path):
        raise OutputError(f"the log {path} would replace the ledger; name another place")
    new = NewFile(path, "the log", _is_log)
    # The folder of OUT is made with OUT.
    if request.log is not None or path.parent.is_dir():
        new.check()
    written = False

    def write(log: Mapping[str, Any]) -> None:
        nonlocal written
        new.write(json.dumps({**_LOG_HEAD, **log}, indent=1) + "\n")
        written = True

    try:
        yield write
    finally:
        with whole():
            if written and is_published(real(out)):
                new.keep()
            elif written:
                new.discard()


def in_output(path: Path, out: Path) -> bool:
    """Whether a path lies in an output folder, or in one that is renamed to it or removed on the way."""
    home = real(out)
    homes = {home.parent / f"{home.name}{ending}" for ending in ("", ".partial", ".checkpoint")}
    return bool(homes & {real(path), *real(path).parents})


_LOG_HEAD: Final = {"confidential": "This file depends on the records without noise. It must not be published."}


_LOG_START: Final = json.dumps(_LOG_HEAD, indent=1).removesuffix("\n}").encode()


def _is_log(path: Path) -> bool:
    try:
        return read_regular(path).startswith(_LOG_START)
    except OSError:
        return False
