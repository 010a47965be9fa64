"""Noisy measurement files read and made plainly, with pyarrow, as another program would."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def rows_of(dataset: Path, level: str, kind: str) -> Iterator[dict[str, Any]]:
    """The rows of a geolevel, with the value of their partition under "State"."""
    for path in sorted((dataset / f"{level}.parquet" / kind).rglob("*.parquet")):
        state = path.parent.name.partition("=")[2]
        for row in pq.ParquetFile(path).read().to_pylist():
            yield {"State": state, **row}


Parts = dict[tuple[str, str, str], list[dict[str, Any]]]
"""Rows by geolevel, kind and name of the partition's folder, empty for none."""

COUNTS = {
    # By geocode of a block, as docs/noisy-measurement-files.md has them, cells of hhgq (4) and votingage (2).
    "0501000110001" + "01" + "5000100010011001": [3, 9, 0, 0, 0, 0, 0, 0],
    "0501000110001" + "01" + "5000100010011002": [0, 0, 0, 40, 0, 0, 0, 0],
    "0501000110001" + "02" + "5000100010022001": [1, 2, 0, 0, 0, 0, 0, 7],
    "0501000110002" + "01" + "5000100020011000": [5, 5, 0, 0, 2, 0, 0, 0],
    "0501000310001" + "01" + "5000300010011000": [8, 8, 0, 0, 0, 0, 0, 0],
    "0501000310001" + "01" + "5000300010011003": [0, 1, 0, 0, 0, 0, 0, 0],
    "1501000110001" + "01" + "5000100010011003": [4, 4, 0, 1, 0, 0, 0, 0],
}
"""A county of two tracts, one of them of one block; a county of one tract; and the AIAN branch, one block alone."""

WIDTHS = {"State": 3, "County": 9, "Tract": 13, "Block_Group": 15, "Block": 31}
ATTRIBUTES = ("hhgq", "votingage")
QUERIES = {
    "total_dpq": (["*", "*"], [1, 1]),
    "hhgq_dpq": (["hhgq", "*"], [4, 1]),
    "votingage * inst_dpq": (["inst", "votingage"], [2, 2]),
    "detailed_dpq": (["detailed", "detailed"], [4, 2]),
}
HAND_MADE = {
    "product": "hand",
    "mechanism": "zcdp",
    "rho": "1",
    "schema": {"hhgq": ["household", "prison", "youth", "nursing"], "votingage": ["minor", "adult"]},
    "recodes": {"inst": {"of": "hhgq", "groups": [[0], [1, 2, 3]]}},
    "shares": dict.fromkeys(("US", *WIDTHS), "1/6"),
    "queries": {
        level: {"total": "1/4", "hhgq": "1/4", "votingage*inst": "1/4", "detailed": "1/4"} for level in ("US", *WIDTHS)
    },
    "constraints": {"group_quarters": "hhgq", "structural_zeros": [{"hhgq": 3, "votingage": 0}]},
}


def hand_made() -> Parts:
    """Measurements without error of `COUNTS`, whose variances differ by row; only children have none.

    Partitions are spelled State=050 in some geolevels and State=50 in others; whole numbers differ in width.
    """
    parts: Parts = {}
    for level, width in {"US": 0, **WIDTHS}.items():
        for unit in sorted({code[:width] for code in COUNTS}):
            inside = [np.array(cells).reshape(4, 2) for code, cells in COUNTS.items() if code.startswith(unit)]
            cells, here = sum(inside), sum((one.any(axis=1) for one in inside), np.zeros(4, dtype=np.int64))
            state = f"State={int(unit[:3]) if level == 'Tract' else unit[:3]}" if width else ""
            head = {"geocode": unit or "0"}
            told = parts.setdefault((level, "Constraint", state), [])
            axes = {
                "hhgq_total_lb_con": (">=", ["hhgq", "*"], [4, 1], [0, *here[1:]]),
                "hhgq_total_ub_con": ("<=", ["hhgq", "*"], [4, 1], here * 99_999),
                "nurse_nva_0_con": ("=", ["gqNursingTotal", "nonvoting"], [1, 1], [0]),
            }
            if level == "US":
                axes["total_con"] = ("=", ["*", "*"], [1, 1], [cells.sum()])
            for name, (sign, axis, shape, value) in axes.items():
                told.append(_row(head, name, axis, shape, value, 0.0) | {"sign": sign})
            # Alone in its parent: it gave its measurement up.
            above = width and unit[: {3: 0, 9: 3, 13: 9, 15: 13, 31: 15}[width]]
            if width > 3 and len({code[:width] for code in COUNTS if code.startswith(str(above))}) == 1:
                continue
            whole = [cells, cells.sum(axis=1), np.stack([cells[0], cells[1:].sum(axis=0)]), cells.sum()]
            for (name, (axis, shape)), value in zip(QUERIES.items(), [whole[3], *whole[1:3], whole[0]], strict=True):
                row = _row(head, name, axis, shape, np.ravel(value), 1.5 + len(unit) % 5)
                parts.setdefault((level, "DPQuery", state), []).append(row | {"plb": 0.25})
    return parts


def _row(
    head: dict[str, str], name: str, axes: list[str], shape: list[int], value: Iterable[int], variance: float
) -> dict[str, Any]:
    attributes = dict(zip(ATTRIBUTES, axes, strict=True))
    numbers = [int(number) for number in value]
    return {**head, "query_name": name, **attributes, "query_shape": shape, "value": numbers, "variance": variance}


def write_parts(parts: Parts, dataset: Path) -> Path:
    """Write them as Parquet."""
    for number, ((level, kind, state), rows) in enumerate(parts.items()):
        folder = dataset / f"{level}.parquet" / kind / state
        folder.mkdir(parents=True, exist_ok=True)
        if not rows:
            continue
        most = max(abs(x or 0) for row in rows for x in row["value"])
        whole = pa.int64() if number % 2 or most >= 1 << 31 else pa.int32()
        numbers = pa.float64() if any(isinstance(x, float) for row in rows for x in row["value"]) else whole
        types = {
            "query_shape": pa.list_(whole),
            "value": pa.list_(numbers),
            "variance": pa.float32(),
            "plb": pa.float32(),
        }
        fields = [(name, types.get(name, pa.string())) for name in rows[0]]
        pq.write_table(pa.Table.from_pylist(rows, pa.schema(fields)), folder / "part-00000-c000.snappy.parquet")
    return dataset
