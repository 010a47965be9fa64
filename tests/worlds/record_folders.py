"""Record files as folders of Parquet that lie by area, made of files of any other form."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

KEYS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("persons", "units", "geo", "quarters"), ("MAFID",)),
    **dict.fromkeys(("person-records", "household-records"), ("TABBLKST", "TABBLKCOU", "TABTRACTCE")),
}
"""By record file what tells whether records must lie together."""

AREAS = ("area=1", "area=2", "area=3")


def by_area(data: Path, out: Path, *, torn: bool = False) -> Path:
    """The same records in folders by their keys, each with two parts; or, if torn, in folders by their numbers."""
    shutil.copytree(data, out)
    for name, key in KEYS.items():
        for path in out.glob(f"{name}.*"):
            with duckdb.connect() as db:
                rows = f"read_parquet('{path}', file_row_number = true)"
                if path.suffix != ".parquet":
                    text = f"read_csv('{path}', header = true, all_varchar = true)"
                    rows = f"(SELECT *, row_number() OVER () AS file_row_number FROM {text})"
                hashed = "hash(file_row_number)" if torn else f"hash(concat_ws('|', {', '.join(key)}))"
                for number, area in enumerate(AREAS):
                    for part in range(2):
                        (out / name / area).mkdir(parents=True, exist_ok=True)
                        db.execute(
                            f"COPY (SELECT * EXCLUDE (file_row_number) FROM {rows} WHERE {hashed} % 3 = {number} "
                            f"AND file_row_number % 2 = {part} ORDER BY file_row_number) "
                            f"TO '{out / name / area / f'part-{part}.parquet'}' (FORMAT parquet)"
                        )
            path.unlink()
    return out
