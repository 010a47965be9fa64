"""Solve one node: alternating directions to find the active set, then the exact solution on it."""

from hollerith.topdown.problem import Node, Solution


def solve(node: Node, tolerance: float = 1e-6) -> Solution:
    """Find the counts of the children that fit their measurements best.

    Parameters
    ----------
    node : Node
    tolerance : float
        Bound on the KKT residual, in persons, below which a solution counts as certified.

    Returns
    -------
    Solution
        Of the quadratic programme of `Node`; where it has many, one of them.

    Raises
    ------
    InfeasibleNode
        If no counts satisfy the parent and the constraints.
    """
    raise NotImplementedError
