"""Whose loss is added up over several plans: that of their own records, of one person, or of one household."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

from yupana.errors import BudgetError
from yupana.plan.measurement import Mechanism
from yupana.plan.plan import Plan
from yupana.privacy.exact import Budget

OWN: Final = "own"
"""The loss of a plan under its own neighbours, where records are the unit."""

Losses = Mapping[str, Budget | None]
"""A loss for each kind of neighbours; None where there are no such neighbours."""

_MOST_PERSONS: Final = 99_999
"""The census has no way to write more."""

UnitName = Literal["record", "person", "household"]
UNITS: Final[tuple[UnitName, ...]] = get_args(UnitName)


@dataclass(frozen=True, slots=True)
class Unit:
    """Whose loss an account adds (docs/person-loss.md).

    Attributes
    ----------
    name : "record", "person" or "household"
        What the plans themselves protect, so that only plans of one privacy unit add; or a person, or a household.
    cap : int or None
        The most persons a household is declared to have. Without one a household's loss has no bound.

    Raises
    ------
    BudgetError
        If a household has no cap, or another unit has one.
    """

    name: UnitName
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
PERSON: Final = Unit("person")


def as_zcdp(losses: Losses) -> Losses:
    """Losses under pure DP as rho: epsilon-DP is (epsilon squared / 2)-zCDP (Bun and Steinke 2016, proposition 4)."""
    return {name: None if loss is None else loss * loss / 2 for name, loss in losses.items()}


def add(one: Losses, other: Losses) -> Losses:
    """Add losses on the same people; empty where either is."""
    return {
        name: None if (here := one[name]) is None or (there := other[name]) is None else here + there for name in one
    }
