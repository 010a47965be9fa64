"""Read a dictionary of any kind, which its content tells. Public."""

from pathlib import Path

from yupana.errors import ConfigError
from yupana.files.dictionaries.dictionary import Dictionary


def read_dictionary(path: Path) -> Dictionary:
    """Read a dictionary.

    Raises
    ------
    ConfigError
        If it is none, with every fault by its place.
    """
    raise ConfigError(f"{path}: is of no kind of dictionary that is known")
