"""Hollerith: an open disclosure avoidance system for censuses."""

from importlib.metadata import version

__version__: str = version("hollerith")
