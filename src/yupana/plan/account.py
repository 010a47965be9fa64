"""What several runs spend together on the same confidential data, and the limits they may not pass."""

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from yupana.errors import BudgetError
from yupana.interruption import whole
from yupana.plan.ledger_file import DataAccount, Run, is_loss, locked, read_ledger, write_ledger
from yupana.plan.measurement import Mechanism
from yupana.plan.plan import Plan
from yupana.plan.unit import OWN, RECORD, Losses, Unit, add, as_zcdp
from yupana.privacy.exact import Budget, show_exact

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
    plan : Plan
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
        charged = _charged(path, read_ledger(real), data, plan, limits, unit, run)
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
    accounts: Mapping[str, DataAccount] = read_ledger(path)
    for due in dues:
        accounts = _charged(path, accounts, data, due.plan, limits, unit, due.run).accounts


class _Charged(NamedTuple):
    """The accounts after a charge, what was spent on the data by then, and whether that differs from before."""

    accounts: Mapping[str, DataAccount]
    spent: Losses
    is_new: bool


def _charged(
    path: Path,
    accounts: Mapping[str, DataAccount],
    data: str,
    plan: Plan,
    limits: Mapping[str, Budget],
    unit: Unit,
    run: str | None,
) -> _Charged:
    name = _recorded_name(path, data, accounts)
    new = DataAccount(unit, plan.mechanism, _terms(unit, plan), {}, ())
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


def _recorded_name(path: Path, data: str, accounts: Mapping[str, DataAccount]) -> str:
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


def _terms(unit: Unit, plan: Plan) -> dict[str, str]:
    if unit != RECORD:
        return {}
    return {"privacy_unit": plan.privacy_unit, "neighbours": plan.neighbours.value}


def _losses(place: str, account: DataAccount, run: DataAccount, plan: Plan) -> Losses:
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


def _limits(path: Path, name: str, account: DataAccount, limits: Mapping[str, Budget]) -> Mapping[str, Budget]:
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
