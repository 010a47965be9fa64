"""What is done where a parent contradicts its children's constraints: bend the parent, as little as possible."""

from hollerith.topdown.problem import Node, Solution


def solve_failsafe(node: Node) -> tuple[Solution, float]:
    """Keep the constraints and the group totals, and depart from the parent's cells as little as they allow.

    First v, the least sum over cells of |parent - sum of children| that the constraints permit, is found as a linear
    programme; then the least squares of `Node` are minimised with that sum at most v + 1.

    Parameters
    ----------
    node : Node
        As for `solve`, except that ``parent`` may have zeros: it lists every cell whose group total in the parent is
        positive. Without ``groups`` all cells form one group.

    Returns
    -------
    solution : Solution
        Its ``counts`` sum over the children to the parent's total in every group, but not in every cell.
    v : float
        The least departure, in persons.

    Raises
    ------
    InfeasibleNode
        If the constraints contradict each other, or the parent's group totals.
    """
    raise NotImplementedError
