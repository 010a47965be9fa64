"""Yupana: an open disclosure avoidance system for censuses.

Confidential records in, tables with a proven privacy loss out. docs/python.md describes every name that stands here;
each is loaded when it is first asked for, so that the import itself costs nothing.
"""

import sys
from types import ModuleType

from yupana.version import __version__

# The commands start here, too: what this file imports is a time in which Ctrl-C prints a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from yupana import topdown
    from yupana.errors import BudgetError, ConfigError, EngineError, EntropyError, InputError, OutputError, YupanaError
    from yupana.estimate.areas.released import AreaList
    from yupana.estimate.results import AreaIntervals, DistrictEstimates, Intervals
    from yupana.files.arrow import ArrowStream, ArrowTable
    from yupana.geography.gazetteer import NamedArea
    from yupana.interface.configured import (
        Configured,
        accuracy,
        attribute_bounds,
        compare,
        exact,
        plan,
        run,
        setup,
        solve,
        strategy,
        validate,
    )
    from yupana.interface.options import Account, Execution
    from yupana.interface.releases import (
        Release,
        areas,
        atlas,
        certificate,
        check,
        combine_coterminous,
        districts,
        empirical_loss,
        estimate,
        export,
        interval,
        intervals,
        open_release,
        report,
        sign,
        suppress,
        topdown_intervals,
        write_pl,
    )
    from yupana.interface.tools import (
        attribute_loss,
        build_spine,
        count,
        draft,
        estimate_measurements,
        read_pl,
        spine_distances,
        synthesize,
    )
    from yupana.plan.exact_loss import delta_exact, epsilon_exact, missed_exact
    from yupana.plan.measurement import margin_of_error, rho_for_margin
    from yupana.plan.plan import Plan
    from yupana.privacy.zcdp import epsilon_bun_steinke, epsilon_tight, rho_for_epsilon
    from yupana.products import PRODUCTS
    from yupana.products.product import Product
    from yupana.products.strategy import Strategy
    from yupana.products.topdown.pl.summary_records import SummaryFile
    from yupana.progress import Step
    from yupana.report.certificate import Certificate
    from yupana.topdown import InfeasibleNode, NodeEstimate, estimate_node, round_node

__all__ = [
    "PRODUCTS", "Account", "AreaIntervals", "AreaList", "ArrowStream", "ArrowTable", "BudgetError", "Certificate",
    "ConfigError", "Configured", "DistrictEstimates", "EngineError", "EntropyError", "Execution", "InfeasibleNode",
    "InputError", "Intervals", "NamedArea", "NodeEstimate", "OutputError", "Plan", "Product", "Release", "Step",
    "Strategy", "SummaryFile", "YupanaError", "__version__", "accuracy", "areas", "atlas", "attribute_bounds",
    "attribute_loss", "build_spine", "certificate", "check", "combine_coterminous", "compare", "count",
    "delta_exact", "districts", "draft", "empirical_loss", "epsilon_bun_steinke", "epsilon_exact", "epsilon_tight",
    "estimate", "estimate_measurements", "estimate_node", "exact", "export", "interval", "intervals", "margin_of_error",
    "missed_exact", "open_release", "plan", "read_pl", "report", "rho_for_epsilon", "rho_for_margin", "round_node",
    "run", "setup", "sign", "solve", "spine_distances", "strategy", "suppress", "synthesize", "topdown",
    "topdown_intervals", "validate", "write_pl",
]  # fmt: skip

_HOMES = {
    "yupana.errors": "BudgetError ConfigError EngineError EntropyError InputError OutputError YupanaError",
    "yupana.estimate.areas.released": "AreaList",
    "yupana.estimate.results": "AreaIntervals DistrictEstimates Intervals",
    "yupana.files.arrow": "ArrowStream ArrowTable",
    "yupana.geography.gazetteer": "NamedArea",
    "yupana.interface.configured": (
        "Configured accuracy attribute_bounds compare exact plan run setup solve strategy validate"
    ),
    "yupana.interface.options": "Account Execution",
    "yupana.interface.releases": (
        "Release areas atlas certificate check combine_coterminous districts empirical_loss estimate export interval "
        "intervals open_release report sign suppress topdown_intervals write_pl"
    ),
    "yupana.interface.tools": (
        "attribute_loss build_spine count draft estimate_measurements read_pl spine_distances synthesize"
    ),
    "yupana.plan.exact_loss": "delta_exact epsilon_exact missed_exact",
    "yupana.plan.measurement": "margin_of_error rho_for_margin",
    "yupana.plan.plan": "Plan",
    "yupana.privacy.zcdp": "epsilon_bun_steinke epsilon_tight rho_for_epsilon",
    "yupana.products": "PRODUCTS",
    "yupana.products.product": "Product",
    "yupana.products.topdown.pl.summary_records": "SummaryFile",
    "yupana.products.strategy": "Strategy",
    "yupana.progress": "Step",
    "yupana.report.certificate": "Certificate",
    "yupana.topdown": "InfeasibleNode NodeEstimate estimate_node round_node",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


class _Public(ModuleType):
    """The package itself: a function stays the function, although a folder such as `plan` has its name, too."""

    def __getattr__(self, name: str) -> "Any":  # noqa: ANN401 (whatever the name stands for)
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module  # noqa: PLC0415 (see above)

        if name == "topdown":
            return import_module("yupana.topdown")
        return getattr(import_module(_HOME_OF[name]), name)

    def __setattr__(self, name: str, value: object) -> None:
        # The import of a folder would put the folder in the place of the function.
        if not (isinstance(value, ModuleType) and name in __all__):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted(__all__)


sys.modules[__name__].__class__ = _Public
