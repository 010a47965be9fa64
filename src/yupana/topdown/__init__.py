"""The TopDown Algorithm: noisy measurements of a hierarchy in, consistent non-negative integer counts out.

What stands on compiled kernels is loaded when it is first asked for, so that the rest of the program starts quickly.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from yupana.topdown.node.problem import InfeasibleNode, NodeEstimate
    from yupana.topdown.node.solve import estimate_node
    from yupana.topdown.rounding.rounding import round_node

__all__ = ["InfeasibleNode", "NodeEstimate", "estimate_node", "round_node"]

Estimator = Literal["topdown", "full-information", "posterior"]
"""How consistent counts are estimated, the default first; `descent.estimate.informed` chooses what each learns from."""

_HOMES = {
    "InfeasibleNode": "yupana.topdown.node.problem",
    "NodeEstimate": "yupana.topdown.node.problem",
    "estimate_node": "yupana.topdown.node.solve",
    "round_node": "yupana.topdown.rounding.rounding",
}


def __getattr__(name: str) -> object:
    """Load a public name from its module on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
