"""The budgets and thresholds of the 2020 S-DHC, as published (PHSafe, table 10, and the released configurations)."""

from fractions import Fraction
from typing import Any, Final

from yupana.plan.measurement import Mechanism
from yupana.plan.plan import Plan
from yupana.privacy.exact import Budget
from yupana.products.census import STATES
from yupana.products.phsafe.configuration import PhsafeConfig, config_document
from yupana.products.phsafe.plan import plan_of
from yupana.products.phsafe.specification import LEVELS, S_DHC, TABLES

TAUS: Final = {table.name: table.limit.most for table in TABLES if table.limit}


def budgets(*, puerto_rico: bool) -> dict[str, Budget]:
    """The rho of every table and level in the 2020 run; zero for the nation in Puerto Rico's."""

    def left(name: str) -> bool:
        return puerto_rico and LEVELS[name.partition("/")[2]].areas == "USA"

    return {name: Fraction(0) if left(name) else rho for name, rho in S_DHC.budgets.items()}


def production_plan(*, puerto_rico: bool) -> Plan:
    """The plan of the 2020 run: unbounded rho 1.257281 for the United States, 1.226649 for Puerto Rico."""
    return plan_of(budgets(puerto_rico=puerto_rico), TAUS, Mechanism.ZCDP)


def production_config() -> dict[str, Any]:
    """The production configuration of 2020 for the United States, as its config.json."""
    return config_document(PhsafeConfig.of(budgets(puerto_rico=False), TAUS, STATES, Mechanism.ZCDP))
