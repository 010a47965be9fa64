"""The ledger file: accounts by the name of the data, read whole or refused, replaced in one step and kept."""

import fcntl
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from pathlib import Path
from typing import Any, Final, get_args

from yupana.errors import BudgetError
from yupana.files.regular import replacing
from yupana.plan.measurement import Mechanism
from yupana.plan.plan import Neighbours
from yupana.plan.unit import OWN, RECORD, Losses, Unit, UnitName, add
from yupana.privacy.exact import INFINITE, Budget, read_exact, show_exact

FORMAT: Final = "yupana-ledger-2"
EARLIER: Final = "yupana-ledger-1"
"""Read, too: accounts of records, whose runs tell their own loss only."""


@dataclass(frozen=True, slots=True)
class Run:
    """One charge.

    Attributes
    ----------
    time, product : str
    losses : mapping of column to Fraction, INFINITE or None
    token : str or None
        Names the run, so that it is charged once only.
    """

    time: str
    product: str
    losses: Losses
    token: str | None


@dataclass(frozen=True, slots=True)
class DataAccount:
    """What was spent on one set of data.

    Attributes
    ----------
    unit : Unit
    mechanism : Mechanism
        Of the losses.
    terms : mapping of str to str
        For records: the privacy unit and the neighbours of the plans.
    limits : mapping of column to Fraction or INFINITE
    runs : tuple of Run
    """

    unit: Unit
    mechanism: Mechanism
    terms: Mapping[str, str]
    limits: Mapping[str, Budget]
    runs: tuple[Run, ...]

    @property
    def spent(self) -> Losses:
        """The sum of all runs, by column."""
        nothing: Losses = dict.fromkeys(self.unit.columns, Fraction(0))
        return reduce(add, (run.losses for run in self.runs), nothing)


def is_loss(number: Budget) -> bool:
    """Whether a number is a loss that a ledger can keep: zero or more, and within the range of a float, or infinite."""
    return number == INFINITE or 0 <= number <= _LARGEST


_LARGEST: Final = 10**300


@contextmanager
def locked(path: Path) -> Iterator[Path]:
    """Hold a lock beside the ledger, not on it: the ledger itself is replaced. Yields where the ledger truly lies.

    Raises
    ------
    BudgetError
        If there is no such place, or the ledger goes by several names.
    """
    try:
        # Whatever links lead to it, a ledger has one lock and is replaced where it lies.
        real = path.resolve()
        if real.is_dir():
            raise BudgetError(f"ledger {path}: not a regular file; nothing was measured")
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
        descriptor = os.open(real.with_name(real.name + ".lock"), flags, 0o600)
    except OSError as error:
        raise BudgetError(f"ledger {path}: {error.strerror}; nothing was measured") from None
    except RuntimeError:
        raise BudgetError(f"ledger {path}: a link that leads to itself; nothing was measured") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield real
    finally:
        os.close(descriptor)


def read_ledger(path: Path) -> dict[str, DataAccount]:
    """Read the accounts of a ledger; none if there is no such file.

    Raises
    ------
    BudgetError
        If the file is no ledger, or cannot be read.
    """
    content = _content(path)
    if content is None:
        return {}
    try:
        document = json.loads(content, object_pairs_hook=_unique)
        read = {FORMAT: _account, EARLIER: _earlier}[document["format"]]
        return {name: read(account) for name, account in document["data"].items()}
    # A number of thousands of digits is a ValueError, a document of thousands of brackets a RecursionError.
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, BudgetError):
        raise BudgetError(
            f"ledger {path}: not a ledger of the form {FORMAT} or {EARLIER}; "
            "it is left as it is and nothing was measured"
        ) from None


def write_ledger(path: Path, accounts: Mapping[str, DataAccount]) -> None:
    """Replace a ledger in one step; on return it is on disk, whatever happens to the machine.

    Raises
    ------
    BudgetError
        If it cannot be written. The ledger is as it was.
    """
    text = json.dumps({"format": FORMAT, "data": {name: _shown(a) for name, a in accounts.items()}}, indent=1)
    try:
        with replacing(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise BudgetError(f"ledger {path}: {error.strerror}; nothing was measured") from None


def _content(path: Path) -> bytes | None:
    try:
        # Opening a pipe without this flag would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BudgetError(f"ledger {path}: {error.strerror}; nothing was measured") from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise BudgetError(f"ledger {path}: not a regular file; nothing was measured")
        if found.st_nlink > 1:
            raise BudgetError(
                f"ledger {path}: the file has a second name (a hard link), which would keep an old state of it; "
                "remove one of the names. Nothing was measured"
            )
        with os.fdopen(os.dup(descriptor), "rb") as file:
            return file.read()
    finally:
        os.close(descriptor)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice")
    return found


def _account(described: Mapping[str, Any]) -> DataAccount:
    name = described["unit"]
    if name not in get_args(UnitName):
        raise ValueError("no such unit")
    cap = described["household_cap"] if name == "household" else None
    if cap is not None and (type(cap) is not int or cap < 1):
        raise ValueError("a cap is a whole number above 0")
    unit = Unit(name, cap)
    return DataAccount(
        unit,
        Mechanism(described["mechanism"]),
        _terms(described) if unit == RECORD else {},
        {column: _limit(unit, column, limit) for column, limit in described["limits"].items()},
        tuple(
            Run(
                _text_of(run["time"]),
                _text_of(run["product"]),
                {column: None if (loss := run["losses"][column]) is None else _loss(loss) for column in unit.columns},
                None if run.get("run") is None else _text_of(run["run"]),
            )
            for run in described["runs"]
        ),
    )


def _earlier(described: Mapping[str, Any]) -> DataAccount:
    unknown: Losses = dict.fromkeys(RECORD.columns)
    limit = described["limit"]
    return DataAccount(
        RECORD,
        Mechanism(described["mechanism"]),
        _terms(described),
        {} if limit is None else {OWN: _loss(limit)},
        tuple(
            Run(_text_of(run["time"]), _text_of(run["product"]), {**unknown, OWN: _loss(run["loss"])}, None)
            for run in described["runs"]
        ),
    )


def _terms(described: Mapping[str, Any]) -> dict[str, str]:
    neighbours = Neighbours(described["neighbours"]).value
    return {"privacy_unit": _text_of(described["privacy_unit"]), "neighbours": neighbours}


def _limit(unit: Unit, column: str, limit: object) -> Budget:
    if column not in unit.columns:
        raise ValueError("no such column")
    return _loss(limit)


def _loss(text: object) -> Budget:
    loss = read_exact(_text_of(text))
    if not is_loss(loss):
        raise ValueError("no loss")
    return loss


def _text_of(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _shown(account: DataAccount) -> dict[str, Any]:
    def losses(by: Losses) -> dict[str, str | None]:
        return {column: None if loss is None else show_exact(loss) for column, loss in by.items()}

    return {
        "unit": account.unit.name,
        **({} if account.unit.cap is None else {"household_cap": account.unit.cap}),
        **account.terms,
        "mechanism": account.mechanism.value,
        "limits": losses(account.limits),
        # For readers; what was spent is added up anew at every charge.
        "spent": losses(account.spent),
        "runs": [
            {
                "time": run.time,
                "product": run.product,
                "losses": losses(run.losses),
                **({} if run.token is None else {"run": run.token}),
            }
            for run in account.runs
        ],
    }
