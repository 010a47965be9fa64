"""A release as tests look at it: its manifest, its tables as columns of text, and what is wrong with its files."""

from pathlib import Path
from typing import Any

from yupana.release.release import read_release
from yupana.release.tables import read_table


def read_tables(folder: Path) -> tuple[dict[str, Any], dict[str, dict[str, list[str]]], list[str]]:
    release = read_release(folder, confidential=True)
    tables = {table: read_table(folder / name) for table, name in release.files.items() if (folder / name).is_file()}
    return dict(release.manifest), tables, release.wrong()
