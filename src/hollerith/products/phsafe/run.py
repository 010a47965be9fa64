"""PHSafe from records to release: open and check, count, pass the door, lay out, check again, publish. Confidential."""

import json
import os
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
from numpy.typing import NDArray

import hollerith
from hollerith.errors import ConfigError, OutputError
from hollerith.plan.account import charge_account
from hollerith.plan.ledger import Ledger
from hollerith.plan.plan import Plan, number
from hollerith.privacy.entropy import Entropy
from hollerith.privacy.exact import INFINITE, Budget
from hollerith.products.phsafe.config import Config
from hollerith.products.phsafe.count import ExactCounts, count
from hollerith.products.phsafe.tables import published_tables
from hollerith.products.phsafe.verify import verify_tables
from hollerith.records.census import SYNTHETIC_MARK, Census, Policy, is_synthetic, open_census
from hollerith.release.check import describe_tables
from hollerith.release.folder import new_folder, write_manifest
from hollerith.release.tables import Format, checksum, write_table
from hollerith.stages import Announce, Stopwatch

NOT_FOR_RELEASE: Final = "NOT FOR RELEASE"

TAKEN_AS_PUBLIC: Final = (
    "the list of units with their state and whether each is a housing unit or group quarters (the geography file)",
    "the states, tables, population groups and cells that are published",
)
"""What the guarantee does not protect, for the manifest."""


@dataclass(frozen=True, slots=True)
class Account:
    """Where the loss of a run is added up with that of others on the same data."""

    path: Path
    data: str
    limit: Budget | None


@dataclass(frozen=True, slots=True)
class Request:
    """What a run is asked to do, apart from its configuration and plan."""

    data: Path
    out: Path
    fmt: Format = "csv"
    overwrite: bool = False
    log: Path | None = None
    account: Account | None = None
    memory: int | None = None


@contextmanager
def checked_census(config: Config, data: Path, memory: int | None = None) -> Iterator[Census]:
    """Open the records a configuration speaks of, in ``memory`` bytes (by default three quarters of the machine's)."""
    policies = {rule: Policy(policy) for rule, policy in config.consistency.items()}
    with open_census(data, states=frozenset(map(int, config.states)), policies=policies, memory=memory) as census:
        yield census


def without_noise(plan: Plan) -> Plan:
    """The same plan with infinite budgets: zero noise, for synthetic data only."""
    return replace(plan, measurements=tuple(replace(m, budget=INFINITE) for m in plan.measurements))


def run(config: Config, plan: Plan, request: Request, entropy: Entropy, announce: Announce) -> dict[str, Any]:
    """Make a release and return its manifest.

    The tables satisfy the plan's loss (`make_plan`) against neighbours that differ in one person record. Validation
    of the records lies outside the guarantee (PHSafe, section 6.1), as does the confidential log.

    Parameters
    ----------
    config : Config
    plan : Plan
        Of the same configuration.
    request : Request
    entropy : Entropy
        `SystemEntropy` unless testing.
    announce : callable

    Raises
    ------
    ConfigError
        If records that are not synthetic were to be measured without noise or with a seed.
    InputError, OutputError, BudgetError
        If the records, the output folder or the ledger do not allow the run. Nothing is left in the folder.
    """
    reasons = _only_synthetic(plan, entropy, request.data)
    clock = Stopwatch(announce)
    with new_folder(request.out, overwrite=request.overwrite) as partial, confidential_log(request) as write_log:
        clock.start("reading and checking the records")
        with checked_census(config, request.data, request.memory) as census:
            census.require_valid()
            clock.start("counting")
            exact = count(census, config, plan)
            log = _log(census, exact)
        if request.account is not None:
            charge_account(request.account.path, request.account.data, plan, request.account.limit)
        clock.start("adding noise")
        ledger = Ledger(plan)
        noisy = measure(ledger, exact, entropy)
        clock.start("writing the release")
        tables = published_tables(plan, exact.states, noisy)
        paths = {table.name: write_table(partial, table, request.fmt) for table in tables}
        manifest: dict[str, Any] = {
            "hollerith": hollerith.__version__,
            "product": "phsafe",
            "status": NOT_FOR_RELEASE if reasons else "noisy measurements under the plan",
            **({"reasons": reasons} if reasons else {}),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "plan": plan.as_json(),
            "ledger": {"charged": list(ledger.charged), **number("spent", ledger.spent)},
            "parameters": {"tau": dict(config.taus), "states": list(exact.states), "state_filter": list(config.states)},
            "taken_as_public": list(TAKEN_AS_PUBLIC),
            "versions": {"python": platform.python_version(), "numpy": np.__version__, "duckdb": duckdb.__version__},
            "tables": describe_tables(paths, tables),
        }
        columns = {
            table.name: {name: [str(v) for v in values] for name, values in table.columns.items()} for table in tables
        }
        if wrong := verify_tables(manifest["plan"], exact.states, columns):
            raise RuntimeError(f"the tables do not match the plan: {'; '.join(wrong)}")
        write_manifest(partial, manifest)
        write_log({**log, "seconds": clock.stop()})
    return manifest


def measure(ledger: Ledger, exact: ExactCounts, entropy: Entropy) -> dict[str, NDArray[np.int64]]:
    """Pass every measurement of the plan through the door, in the plan's order."""
    return {m.name: ledger.measure(m, exact.by_measurement[m.name], entropy) for m in ledger.plan.measurements}


def _only_synthetic(plan: Plan, entropy: Entropy, data: Path) -> list[str]:
    """Why the output may not be released; refused altogether on records that are not synthetic."""
    reasons = []
    if not plan.is_releasable:
        reasons.append("a budget is infinite, so counts without noise are in it")
    if not entropy.for_release:
        reasons.append("the noise was made from a seed, and whoever has the seed can take it off")
    if reasons and not is_synthetic(data):
        raise ConfigError(
            f"{data} holds no file named {SYNTHETIC_MARK}, so its records may be real; "
            f"refused because {' and '.join(reasons)}"
        )
    return reasons


def _log(census: Census, exact: ExactCounts) -> dict[str, Any]:
    def rows(name: str) -> int:
        found = census.db.execute(f"SELECT count(*) FROM {name}").fetchone()
        return int(found[0]) if found else 0

    return {
        "records": {name: rows(name) for name in census.files},
        "dropped_units": rows("dropped_units"),
        "findings": [str(finding) for finding in census.findings],
        "persons_left_out_by_truncation": dict(exact.truncated),
        "inputs": {
            os.path.relpath(path, census.folder): checksum(path)
            for source in census.files.values()
            for path in (*source.paths, *source.beside)
        },
    }


@contextmanager
def confidential_log(request: Request) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Claim the place of the confidential log before the work; a log written before a failure is removed again.

    Raises
    ------
    OutputError
        If the log would lie in the release, replace a file that is no log of ours, or cannot be written.
    """
    out = request.out.absolute()
    path = (request.log or out.with_name(out.name + ".confidential.log")).absolute()
    homes = {place.resolve() for place in (out, out.with_name(out.name + ".partial"))}
    if homes & {path.resolve(), *path.resolve().parents}:
        raise OutputError(f"the log {path} would lie in the release, but it is confidential; name another place")
    if path.is_file() and not _is_log(path):
        raise OutputError(f"the log {path} would replace a file that is no log; name another place")
    if request.account is not None and path.resolve() == request.account.path.resolve():
        raise OutputError(f"the log {path} would replace the ledger; name another place")
    if not path.parent.is_dir():
        raise OutputError(f"the log {path} cannot be written: its folder does not exist")
    written = False

    def write(log: Mapping[str, Any]) -> None:
        nonlocal written
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            written = path.is_file()
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump({**_LOG_HEAD, **log}, file, indent=1)
                file.write("\n")
        except OSError as error:
            raise OutputError(f"the log {path} cannot be written: {error.strerror}; nothing was released") from None

    try:
        yield write
    except BaseException:
        if written:
            path.unlink(missing_ok=True)
        raise


_LOG_HEAD: Final = {"confidential": "This file depends on the records without noise. It must not be published."}


def _is_log(path: Path) -> bool:
    try:
        return bool(json.loads(path.read_text(encoding="utf-8"))["confidential"] == _LOG_HEAD["confidential"])
    except (OSError, ValueError, TypeError, KeyError):
        return False
