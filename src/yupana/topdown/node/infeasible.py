"""The error of a node whose constraints contradict each other."""


class InfeasibleNode(ValueError):  # noqa: N818 - a state of the node, named so by the callers that catch it
    """No children satisfy both their parent and the constraints; the failsafe takes over where there is one."""
