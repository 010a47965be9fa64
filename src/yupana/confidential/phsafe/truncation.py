"""What each truncation threshold would leave out of PHSafe's tables, to choose tau by. Confidential."""

from dataclasses import dataclass
from typing import Final

from yupana.confidential.records.census import Census
from yupana.confidential.tabulate.crowds import count_crowds
from yupana.products.phsafe.configuration import LARGEST_TAU, Config
from yupana.products.phsafe.specification import TABLES

_AROUND: Final = 3
"""How many thresholds to either side of the configured one are tried."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What one threshold leaves out of one table.

    Attributes
    ----------
    table : str
    tau : int
    configured : bool
        Whether this is the threshold of the configuration.
    persons : int
        Whom the table counts without truncation.
    left_out : int
        Persons beyond the threshold.
    units : int
        Households with such persons.
    """

    table: str
    tau: int
    configured: bool
    persons: int
    left_out: int
    units: int


def left_out(census: Census, config: Config) -> list[LeftOut]:
    """Tell for every table of persons what thresholds about the configured one leave out.

    Parameters
    ----------
    census : Census
        Valid.
    config : Config
    """
    tables = [(t, t.persons) for t in TABLES if t.persons is not None]
    rows = []
    for (table, _), (sizes, units) in zip(
        tables, count_crowds(census.db, [(persons, t.units) for t, persons in tables]), strict=True
    ):
        own = config.taus[table.name]
        for tau in range(max(1, own - _AROUND), min(LARGEST_TAU, own + _AROUND) + 1):
            beyond = sizes > tau
            rows.append(
                LeftOut(
                    table.name,
                    tau,
                    tau == own,
                    int((sizes * units).sum()),
                    int(((sizes - tau) * units)[beyond].sum()),
                    int(units[beyond].sum()),
                )
            )
    return rows
