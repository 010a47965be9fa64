"""Manifests of releases to be certified."""

from typing import Any

from plans import production_plan

from yupana.plan.plan import Plan
from yupana.products.phsafe.configuration import TAUS


def manifest(plan: Plan, **more: object) -> dict[str, Any]:
    return {
        "yupana": "0",
        "product": plan.product,
        "status": "NOT FOR RELEASE" if "reasons" in more else "noisy measurements under the plan",
        "created": "2026-01-01T00:00:00+00:00",
        "plan": plan.as_json(),
        "parameters": {"tau": TAUS},
        "taken_as_public": ["the list of units", "a <sharp> bracket"],
        "versions": {"python": "3"},
        "tables": {"PH1_num.csv": {"sha256": "ab12", "rows": 3}},
        **more,
    }


US = production_plan(puerto_rico=False)
