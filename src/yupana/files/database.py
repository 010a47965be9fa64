"""Texts and paths as SQL writes them."""

import glob
from pathlib import Path


def source_of(path: Path) -> str:
    """A path as the database reads it, which takes ``*`` and ``[`` for patterns."""
    return quoted(glob.escape(str(path)))


def quoted(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"
