"""The budgets and thresholds of the 2020 S-DHC, as published (PHSafe, table 10, and the released configurations)."""

from fractions import Fraction
from typing import Any, Final

from yupana.plan.measurement import Mechanism
from yupana.plan.plan import Plan
from yupana.products.census import STATES
from yupana.products.phsafe.plan import plan_of
from yupana.products.phsafe.specification import TABLES

TAUS: Final = {"PH1_num": 10, "PH2": 10, "PH3": 6, "PH4": 10, "PH6": 6, "PH7": 10}

_RHO: Final = {
    # table: (every usa level, state_A-G, other state levels)
    "PH1_num": ("0.002619", "0.141622", "0.016371"),
    "PH1_denom": ("0.000022", "0.001170", "0.000135"),
    "PH2": ("0.002619", "", "0.016371"),
    "PH3": ("0.001061", "0.662976", "0.006630"),
    "PH4": ("0.002619", "0.141622", "0.016371"),
    "PH5_denom": ("0.000022", "0.001170", "0.000135"),
    "PH6": ("0.001061", "", "0.006630"),
    "PH7": ("0.002619", "0.141622", "0.016371"),
    "PH8_denom": ("0.000022", "0.001170", "0.000135"),
}


def budgets(*, puerto_rico: bool) -> dict[tuple[str, str], Fraction]:
    """The rho of every table and level in the 2020 run; zero for the nation in Puerto Rico's."""
    rho = {}
    for table in TABLES:
        nation, by_race, state = _RHO[table.name]
        for level in table.levels:
            if level.region_type == "USA":
                rho[table.name, level.key] = Fraction(0) if puerto_rico else Fraction(nation)
            else:
                rho[table.name, level.key] = Fraction(by_race if level.key == "state_A-G" else state)
    return rho


def production_plan(*, puerto_rico: bool) -> Plan:
    """The plan of the 2020 run: unbounded rho 1.257281 for the United States, 1.226649 for Puerto Rico."""
    return plan_of(budgets(puerto_rico=puerto_rico), TAUS, Mechanism.ZCDP)


def production_config() -> dict[str, Any]:
    """The production configuration of 2020 for the United States, as its config.json."""
    rho = budgets(puerto_rico=False)
    return {
        "privacy_budget": {
            # The shortest decimal of each double is the decimal that was published, and is read back exactly.
            table.name: {level.key: float(rho[table.name, level.key]) for level in table.levels}
            for table in TABLES
        },
        "tau": dict(TAUS),
        "state_filter": list(STATES),
        "reader": "csv",
        "privacy_defn": "zcdp",
    }
