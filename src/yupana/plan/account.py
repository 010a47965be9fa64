"""What several runs spend together on the same confidential data, and the limits they may not pass.

A loss is added up over several plans by its unit: that of their own records, of one person, or of one household.
"""

import json
import os
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import reduce
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, get_args

from yupana.errors import BudgetError, system_fault
from yupana.files.regular import regular, replacing, unique_keys
from yupana.files.temporary import lock
from yupana.interruption import whole
from yupana.plan.measurement import Mechanism
from yupana.plan.plan import Neighbours, Plan
from yupana.privacy.exact import INFINITE, Budget, read_exact, show_exact

OWN: Final = "own"
"""The loss of a plan under its own neighbours, where records are the unit."""

Losses = Mapping[str, Budget | None]
"""A loss for each kind of neighbours; None where there are no such neighbours."""

_MOST_PERSONS: Final = 99_999
"""The census has no way to write more."""

UnitName = Literal["record", "person", "household"]


@dataclass(frozen=True, slots=True)
class Unit:
    """Whose loss an account adds (docs/person-loss.md).

    Raises
    ------
    BudgetError
        If a household has no cap, or another unit has one.
    """

    # what the plans themselves protect, so that only plans of one privacy unit add; or a person, or a household
    name: UnitName
    # the most persons a household is declared to have. Without one a household's loss has no bound.
    cap: int | None = None

    def __post_init__(self) -> None:
        if self.name == "household" and self.cap is None:
            raise BudgetError("a household has no loss without a cap: declare the most persons one can have")
        if self.name != "household" and self.cap is not None:
            raise BudgetError(f"a cap on persons has a meaning for unit household, not for unit {self.name}")
        if self.cap is not None and not 0 < self.cap <= _MOST_PERSONS:
            raise BudgetError(f"a household has between 1 and {_MOST_PERSONS} persons")

    @property
    def columns(self) -> tuple[str, ...]:
        """The kinds of neighbours for which losses of this unit are added."""
        return (*((OWN,) if self.name == "record" else ()), "unbounded", "same_household", "bounded")

    def check_columns(self, limits: Iterable[str]) -> None:
        """Refuse limits on losses that this unit does not have.

        Raises
        ------
        BudgetError
            If there is one.
        """
        for column in limits:
            if column not in self.columns:
                raise BudgetError(
                    f"unit {self.name} has no loss {column!r} to limit; name one of {', '.join(self.columns)}"
                )

    def losses(self, plan: Plan) -> Losses:
        """What a plan costs one unit, by column.

        All k persons of a household are k changes of one person, one after another: k squared times the loss of one
        under zCDP, k times under pure DP.

        Raises
        ------
        BudgetError
            If the plan bounds no loss of a person.
        """
        if self.name == "record":
            return {OWN: plan.loss(), **plan.losses()}
        losses = plan.person_losses()
        if all(loss is None for loss in losses.values()):
            raise BudgetError(
                f"{plan.product} bounds no loss of one person, as a change of one person alters the records of others "
                "(docs/person-loss.md); it cannot be added up by person or household"
            )
        return self.of_persons(losses, plan.mechanism)

    def of_persons(self, person: Losses, mechanism: Mechanism) -> Losses:
        """The loss of this unit, a person or a household, from that of one person."""
        factor = (self.cap or 1) ** mechanism.power
        return {name: None if loss is None else factor * loss for name, loss in person.items()}


RECORD: Final = Unit("record")


def as_zcdp(losses: Losses) -> Losses:
    """Losses under pure DP as rho: epsilon-DP is (epsilon squared / 2)-zCDP (Bun and Steinke 2016, proposition 4)."""
    return {name: None if loss is None else loss * loss / 2 for name, loss in losses.items()}


def add(one: Losses, other: Losses) -> Losses:
    """Add losses on the same people; empty where either is."""
    return {
        name: None if (here := one[name]) is None or (there := other[name]) is None else here + there for name in one
    }


FORMAT: Final = "yupana-ledger-2"
EARLIER: Final = "yupana-ledger-1"
"""Read, too: accounts of records, whose runs tell their own loss only."""


@dataclass(frozen=True, slots=True)
class Run:
    """One charge."""

    time: str
    product: str
    losses: Losses  # by column
    token: str | None  # names the run, so that it is charged once only


@dataclass(frozen=True, slots=True)
class _DataAccount:
    """What was spent on one set of data."""

    unit: Unit
    mechanism: Mechanism  # of the losses
    terms: Mapping[str, str]  # for records: the privacy unit and the neighbours of the plans
    limits: Mapping[str, Budget]  # by column
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
        lock(descriptor, wait=True)
        yield real
    finally:
        os.close(descriptor)


def _read_ledger(path: Path) -> dict[str, _DataAccount]:
    """Read the accounts of a ledger; none if there is no such file."""
    content = _content(path)
    if content is None:
        return {}
    try:
        document = json.loads(content, object_pairs_hook=unique_keys)
        read = {FORMAT: _account, EARLIER: _earlier}[document["format"]]
        return {name: read(account) for name, account in document["data"].items()}
    # A number of thousands of digits is a ValueError, a document of thousands of brackets a RecursionError.
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, BudgetError):
        raise BudgetError(
            f"ledger {path}: not a ledger of the form {FORMAT} or {EARLIER}; "
            "it is left as it is and nothing was measured"
        ) from None


def write_ledger(path: Path, accounts: Mapping[str, _DataAccount]) -> None:
    """Replace a ledger in one step; on return it is on disk, whatever happens to the machine.

    Raises
    ------
    BudgetError
        If it cannot be written. The ledger is as it was.
    """
    text = json.dumps({"format": FORMAT, "data": {name: _shown(a) for name, a in accounts.items()}}, indent=1)
    with system_fault(BudgetError, f"ledger {path}", "; nothing was measured"), replacing(path) as file:
        file.write(text.encode())


def _content(path: Path) -> bytes | None:
    try:
        with open(path, "rb", opener=regular) as file:
            if os.fstat(file.fileno()).st_nlink > 1:
                raise BudgetError(
                    f"ledger {path}: the file has a second name (a hard link), which would keep an old state of it; "
                    "remove one of the names. Nothing was measured"
                )
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BudgetError(f"ledger {path}: {error.strerror}; nothing was measured") from None


def _account(described: Mapping[str, Any]) -> _DataAccount:
    name = described["unit"]
    if name not in get_args(UnitName):
        raise ValueError("no such unit")
    cap = described["household_cap"] if name == "household" else None
    if cap is not None and (type(cap) is not int or cap < 1):
        raise ValueError("a cap is a whole number above 0")
    unit = Unit(name, cap)
    unit.check_columns(described["limits"])
    return _DataAccount(
        unit,
        Mechanism(described["mechanism"]),
        _terms(described) if unit == RECORD else {},
        {column: _loss(limit) for column, limit in described["limits"].items()},
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


def _earlier(described: Mapping[str, Any]) -> _DataAccount:
    unknown, limit = dict.fromkeys(RECORD.columns), described["limit"]
    runs = [
        {"time": run["time"], "product": run["product"], "losses": {**unknown, OWN: _text_of(run["loss"])}}
        for run in described["runs"]
    ]
    return _account({**described, "unit": "record", "limits": {} if limit is None else {OWN: limit}, "runs": runs})


def _terms(described: Mapping[str, Any]) -> dict[str, str]:
    neighbours = Neighbours(described["neighbours"]).value
    return {"privacy_unit": _text_of(described["privacy_unit"]), "neighbours": neighbours}


def _loss(text: object) -> Budget:
    loss = read_exact(_text_of(text))
    if not is_loss(loss):
        raise ValueError("no loss")
    return loss


def _text_of(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _shown(account: _DataAccount) -> dict[str, Any]:
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


_NO_LIMITS: Final[Mapping[str, Budget]] = MappingProxyType({})


def charge_account(
    path: Path,
    data: str,
    plan: Plan,
    limits: Mapping[str, Budget] = _NO_LIMITS,
    *,
    unit: Unit = RECORD,
    run: str | None = None,
) -> Losses:
    """Add a run's whole plan to what has been spent on ``data``, before anything is measured.

    The charge stands even if the run is interrupted afterwards: noise may have been drawn. It is on disk before this
    returns. Runs side by side see each other's charges. Losses of records add under one privacy unit, one kind of
    neighbours and one mechanism only; those of a person or a household add over all products (docs/person-loss.md),
    and in an account under zCDP pure DP counts as epsilon squared / 2.

    Parameters
    ----------
    path : Path
        The ledger file; made if missing.
    data : str
        The user's name for the confidential data. Spaces at its ends, and how many stand within, make no difference.
    limits : mapping of column to Fraction or INFINITE
        Largest total loss by column (`Unit.columns`). Given once; they hold for every later run.
    unit : Unit
        Whose loss the account adds.
    run : str, optional
        A name of the run that no other has. A run that was charged under its name is not charged again.

    Returns
    -------
    mapping of column to Fraction, INFINITE or None
        What has been spent, this run included; None where there are no such neighbours.

    Raises
    ------
    BudgetError
        If the file is no ledger, the terms or a limit differ from those recorded, or a limit would be passed.
    """
    with locked(path) as real:
        charged = _charged(path, _read_ledger(real), data, plan, limits, unit, run)
        if charged.is_new:
            with whole():
                write_ledger(real, charged.accounts)
    return charged.spent


class Due(NamedTuple):
    """What is to be charged: a plan, and the name of its run if it has one."""

    plan: Plan
    run: str | None = None


def check_account(
    path: Path, data: str, dues: Iterable[Due], limits: Mapping[str, Budget] = _NO_LIMITS, *, unit: Unit = RECORD
) -> None:
    """Refuse what `charge_account` would refuse now, of some runs one after another; nothing is charged.

    Raises
    ------
    BudgetError
        As by `charge_account`.
    """
    accounts: Mapping[str, _DataAccount] = _read_ledger(path)
    for due in dues:
        accounts = _charged(path, accounts, data, due.plan, limits, unit, due.run).accounts


class _Charged(NamedTuple):
    """The accounts after a charge, what was spent on the data by then, and whether that differs from before."""

    accounts: Mapping[str, _DataAccount]
    spent: Losses
    is_new: bool


def _charged(
    path: Path,
    accounts: Mapping[str, _DataAccount],
    data: str,
    plan: Plan,
    limits: Mapping[str, Budget],
    unit: Unit,
    run: str | None,
) -> _Charged:
    name = _recorded_name(path, data, accounts)
    terms = {"privacy_unit": plan.privacy_unit, "neighbours": plan.neighbours.value} if unit == RECORD else {}
    new = _DataAccount(unit, plan.mechanism, terms, {}, ())
    account = accounts.get(name, new)
    losses = _losses(f"ledger {path}: losses on {name!r}", account, new, plan)
    account = replace(account, limits=_limits(path, name, account, limits))
    made = next((earlier for earlier in account.runs if run is not None and earlier.token == run), None)
    if made is not None:
        if (made.product, made.losses) != (plan.product, losses):
            raise BudgetError(f"ledger {path}: the run to go on with was charged on {name!r} with another loss")
        return _Charged(accounts, account.spent, is_new=False)
    spent = add(account.spent, losses)
    _check(path, name, account.limits, spent)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    charged = replace(account, runs=(*account.runs, Run(now, plan.product, losses, run)))
    return _Charged({**accounts, name: charged}, spent, is_new=True)


def _recorded_name(path: Path, data: str, accounts: Mapping[str, _DataAccount]) -> str:
    """The name that the ledger knows the data by."""
    name = _plain(data)
    if not name or not name.isprintable():
        raise BudgetError("a name for the data in the ledger must have letters, and stand on one line")
    alike = [recorded for recorded in accounts if _folded(recorded) == _folded(name)]
    if len(alike) > 1:
        raise BudgetError(
            f"ledger {path}: holds {' and '.join(map(repr, alike))}, which are one name; "
            "put their runs together under one of them. Nothing was measured"
        )
    if alike and _plain(alike[0]) != name:
        raise BudgetError(f"ledger {path}: holds {alike[0]!r}; is {name!r} the same data? Then write the name as there")
    return alike[0] if alike else name


def _plain(name: str) -> str:
    return " ".join(unicodedata.normalize("NFC", name).split())


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", _plain(name)).casefold()


def _losses(place: str, account: _DataAccount, run: _DataAccount, plan: Plan) -> Losses:
    """What a plan costs in the terms of an account."""

    def refused(term: str, here: object, there: object) -> BudgetError:
        return BudgetError(
            f"{place} are kept with {term} {here!r}; this run has {there!r}, and the two must not be added. "
            "Use another name or another ledger."
        )

    if account.unit.name != run.unit.name:
        raise refused("unit", account.unit.name, run.unit.name)
    if account.unit.cap != run.unit.cap:
        raise refused("household_cap", account.unit.cap, run.unit.cap)
    for term, value in run.terms.items():
        if account.terms[term] != value:
            raise refused(term, account.terms[term], value)
    losses = run.unit.losses(plan)
    if account.mechanism is plan.mechanism:
        return losses
    if account.unit == RECORD or account.mechanism is Mechanism.PURE:
        raise refused("mechanism", account.mechanism.value, plan.mechanism.value)
    return as_zcdp(losses)


def _limits(path: Path, name: str, account: _DataAccount, limits: Mapping[str, Budget]) -> Mapping[str, Budget]:
    """The limits recorded and those given, which may add to them and not change them."""
    account.unit.check_columns(limits)
    for column, limit in limits.items():
        recorded = account.limits.get(column)
        if recorded is not None and recorded != limit:
            raise BudgetError(
                f"ledger {path}: the {_words(column)}limit on {name!r} is {show_exact(recorded)}, "
                f"not {show_exact(limit)}"
            )
        if not is_loss(limit):
            raise BudgetError(f"ledger {path}: a limit is zero or more, at most 1e300, or Infinity")
    return {**account.limits, **limits}


def _check(path: Path, name: str, limits: Mapping[str, Budget], spent: Losses) -> None:
    for column, limit in limits.items():
        loss = spent[column]
        if loss is None:
            raise BudgetError(
                f"ledger {path}: the {_words(column)}limit on {name!r} cannot be kept, as a run has no such loss: its "
                "invariants leave no such neighbours, or it was recorded without. Nothing was measured."
            )
        if loss > limit:
            raise BudgetError(
                f"ledger {path}: this run would bring the {_words(column)}loss on {name!r} to {float(loss):g}, "
                f"past its limit of {show_exact(limit)}. Nothing was measured."
            )


def _words(column: str) -> str:
    return "" if column == OWN else f"{column} "
