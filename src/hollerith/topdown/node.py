"""The node solver without a run: plain arrays in, an estimate out."""

from dataclasses import dataclass

from hollerith.topdown.problem import Floats


@dataclass(frozen=True, slots=True, eq=False)
class NodeEstimate:
    """What the children of one node are estimated to be.

    Attributes
    ----------
    counts : ndarray of float64, shape (children, cells)
    objective : float
        Weighted sum of squares over all answers, the constant included.
    kkt_residual : float
        In persons; see `hollerith.topdown.problem.Solution`.
    iterations : int
    solver : str
    """

    counts: Floats
    objective: float
    kkt_residual: float
    iterations: int
    solver: str
