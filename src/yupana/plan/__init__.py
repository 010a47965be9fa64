"""What will be measured, at what noise, and what that costs: public objects, computed before any data are seen."""

from yupana.plan.ledger import Ledger
from yupana.plan.margin import Margins, margin_of, margin_of_error, rho_for_margin, z_value
from yupana.plan.measurement import Measurement, Mechanism, Sensitivity
from yupana.plan.plan import Neighbours, Plan, PlanDifference

__all__ = [
    "Ledger",
    "Margins",
    "Measurement",
    "Mechanism",
    "Neighbours",
    "Plan",
    "PlanDifference",
    "Sensitivity",
    "margin_of",
    "margin_of_error",
    "rho_for_margin",
    "z_value",
]
