"""The version of the package."""

from typing import Final

# Written here as in pyproject.toml (a test compares them): asking the installed metadata would slow every start.
__version__: Final = "0.1.0"
