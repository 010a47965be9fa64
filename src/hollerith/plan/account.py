"""A ledger file: what several runs have spent on the same confidential data, and a limit they may not pass."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from hollerith.errors import BudgetError
from hollerith.plan.plan import Plan
from hollerith.privacy.exact import Budget, read_exact, show_exact

FORMAT: Final = "hollerith-ledger-1"


def charge_account(path: Path, data: str, plan: Plan, limit: Budget | None = None) -> Budget:
    """Add a run's whole plan to what has been spent on ``data``, before anything is measured.

    The charge stands even if the run is interrupted afterwards: noise may have been drawn. Losses under different
    privacy units, neighbours or mechanisms are kept from being added. The file is replaced in one step, under a
    lock, so that runs side by side see each other's charges.

    Parameters
    ----------
    path : Path
        The ledger file; made if missing.
    data : str
        The user's name for the confidential data.
    plan : Plan
    limit : Fraction, optional
        Largest total loss, in the plan's own terms. Given once; it holds for every later run.

    Returns
    -------
    Fraction or INFINITE
        What has been spent, this run included.

    Raises
    ------
    BudgetError
        If the file is no ledger, the terms or the limit differ from those recorded, or the limit would be passed.
    """
    terms = {
        "privacy_unit": plan.privacy_unit,
        "neighbours": plan.neighbours.value,
        "mechanism": plan.mechanism.value,
    }
    with _locked(path):
        ledger = _read(path)
        account = ledger["data"].setdefault(data, {**terms, "limit": None, "runs": []})
        for key, value in terms.items():
            if account[key] != value:
                raise BudgetError(
                    f"ledger {path}: losses on {data!r} are kept with {key} {account[key]!r}; this run has {value!r}, "
                    "and the two must not be added. Use another name or another ledger."
                )
        if limit is not None:
            recorded = account["limit"]
            if recorded is not None and read_exact(recorded) != limit:
                raise BudgetError(f"ledger {path}: the limit on {data!r} is {recorded}, not {show_exact(limit)}")
            account["limit"] = show_exact(limit)
        spent: Budget = sum((read_exact(run["loss"]) for run in account["runs"]), Fraction(0)) + plan.loss()
        if account["limit"] is not None and spent > read_exact(account["limit"]):
            raise BudgetError(
                f"ledger {path}: this run would bring the loss on {data!r} to {float(spent):g}, "
                f"past its limit of {account['limit']}. Nothing was measured."
            )
        now = datetime.now(UTC).isoformat(timespec="seconds")
        account["runs"].append({"time": now, "product": plan.product, "loss": show_exact(plan.loss())})
        _write(path, ledger)
    return spent


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock beside the ledger, not on it: the ledger itself is replaced."""
    try:
        descriptor = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise BudgetError(f"ledger {path}: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {"format": FORMAT, "data": {}}
    try:
        ledger = json.loads(path.read_text())
        intact = ledger["format"] == FORMAT and all(
            isinstance(read_exact(run["loss"]), Fraction | float) for a in ledger["data"].values() for run in a["runs"]
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        intact = False
    if not intact:
        raise BudgetError(
            f"ledger {path}: not a ledger of the form {FORMAT}; it is left as it is and nothing was measured"
        )
    return dict(ledger)


def _write(path: Path, ledger: dict[str, Any]) -> None:
    new = path.with_name(path.name + ".new")
    try:
        with new.open("w") as file:
            json.dump(ledger, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise BudgetError(f"ledger {path}: {error.strerror}; nothing was measured") from None
