"""Make the records and blocks of examples/wards.toml from a synthetic census (docs/side-by-side.md).

    yupana synth census --households 6000 --states 44 --seed 1
    python examples/wards.py census

Writes blocks.csv and the folder wards here. Put wards.toml beside blocks.csv.
"""

import argparse
from pathlib import Path

import duckdb

BLOCK = "TABBLKST || TABBLKCOU || TABTRACTCE || TABBLK"
WARD = "CASE WHEN TABBLK = '1003' THEN '' ELSE 'W' || TABBLKCOU || TABTRACTCE END"


def convert(census: Path) -> None:
    """Write the records and the public blocks of a synthetic census."""
    wards = Path("wards")
    wards.mkdir()
    columns = {
        "blocks.csv": ("GRF-C.txt", f"{BLOCK} AS BLOCK, {WARD} AS WARD"),
        "wards/homes.csv": ("geo.csv", f"MAFID, {BLOCK} AS BLOCK"),
        "wards/persons.csv": ("persons.csv", "MAFID, QAGE, CENHISP"),
    }
    for out, (source, chosen) in columns.items():
        read = f"read_csv('{census / source}', delim = '|', all_varchar = true)"
        duckdb.sql(f"COPY (SELECT {chosen} FROM {read}) TO '{out}'")
    (wards / "SYNTHETIC").touch()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("census", type=Path)
    convert(parser.parse_args().census)
