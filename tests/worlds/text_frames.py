"""The files of a folder as data frames whose columns are text."""

from pathlib import Path

import polars as pl


def texts(folder: Path, *names: str) -> dict[str, pl.DataFrame]:
    found = {}
    for name in names:
        (path,) = folder.glob(f"{name}.*")
        separator = "|" if "|" in path.read_text().partition("\n")[0] else ","
        found[name] = pl.read_csv(path, separator=separator, infer_schema=False)
    return found
