"""The version of the package."""

# As in pyproject.toml (a test compares them): asking the installed metadata would slow every start.
__version__ = "0.1.0"
