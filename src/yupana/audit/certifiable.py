"""What a manifest must be for its release to be certified: of the right shape, and in agreement with itself."""

from collections.abc import Mapping
from typing import Any, Final

from yupana.errors import OutputError
from yupana.plan.plan import Plan
from yupana.privacy.exact import read_exact
from yupana.products import PRODUCTS

CHANGES: Final = {
    "unbounded": "one {unit} is added or left out",
    "same_household": "one {unit} is changed and stays in its household",
    "bounded": "one {unit} is changed in any way, its place included",
}

_PARTS: Final = {"reasons": list, "parameters": dict, "taken_as_public": list, "versions": dict, "tables": dict}
_KINDS: Final = {list: "list", dict: "table of keys and values"}


def refuse_unsound(manifest: Mapping[str, Any], plan: Plan) -> None:
    """Refuse a manifest that cannot be certified.

    Parameters
    ----------
    manifest : mapping
    plan : Plan
        In the manifest.

    Raises
    ------
    OutputError
        If a part of the manifest is not what it is in a manifest, or its totals are not those of its measurements.
    """
    for key, kind in _PARTS.items():
        if not isinstance(manifest.get(key, kind()), kind):
            raise _strange(f"{key} is no {_KINDS[kind]}")
    _check_parameters(manifest.get("parameters", {}), plan)
    _check_totals(manifest["plan"]["totals"], plan)


def _strange(what: str) -> OutputError:
    return OutputError(f"the manifest is not one of a release: {what}")


def _check_parameters(parameters: Mapping[str, Any], plan: Plan) -> None:
    for key in ("schema", "invariants", "tau"):
        if not isinstance(parameters.get(key, {}), dict):
            raise _strange(f"parameters.{key} is no {_KINDS[dict]}")
    if not all(isinstance(queries, list) for queries in parameters.get("invariants", {}).values()):
        raise _strange("parameters.invariants holds something other than lists")
    product = PRODUCTS.get(plan.product)
    if product is not None and (faults := product.faults(plan, parameters)):
        raise _strange(faults[0])


def _check_totals(totals: Mapping[str, Any], plan: Plan) -> None:
    symbol = plan.mechanism.budget_name
    key = f"{plan.neighbours.value}_{symbol}"
    try:
        stated = [text for by in (totals, totals["proven"]) for kind in CHANGES if (text := by.get(f"{kind}_{symbol}"))]
        sound = all(read_exact(text) >= 0 for text in stated)
        own = [read_exact(totals[name]) for name in (symbol, key)]
        sound = sound and own == [plan.loss()] * 2 and totals["proven"][key] is not None
    except (AttributeError, KeyError, TypeError, ValueError):
        sound = False
    if not sound:
        raise OutputError("the totals in the manifest are not those of the measurements beside them")
