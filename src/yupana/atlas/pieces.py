"""Columns of numbers as small scripts that a page opens from disk, where browsers refuse to fetch. Public.

A piece is a call ``atlasPiece("id", "...")`` of compressed bytes in base64: the length of a head, the head as JSON, and
the columns one after another, each in the narrowest type that holds it.
"""

import base64
import gzip
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Ints
from yupana.atlas.tables import AtlasTable

ROWS: Final = 40_000
"""Of a piece, if its areas allow: it is unpacked in some hundredths of a second."""

_FEW: Final = 256
_WHOLE: Final = (("u1", 0, 1 << 8), ("u2", 0, 1 << 16), ("i4", -(1 << 31), 1 << 31))


def script(name: str, columns: Mapping[str, NDArray[Any]]) -> str:
    """A piece of some columns of one length."""
    heads, bodies, at = [], [], 0
    for column, values in columns.items():
        head, body = _packed(values)
        at += -at % 8
        heads.append({"name": column, "at": at, **head})
        bodies.append((at, body))
        at += len(body)
    told = json.dumps({"columns": heads}, separators=(",", ":")).encode()
    told += b" " * (-(len(told) + 4) % 8)
    packed = bytearray(at)
    for place, body in bodies:
        packed[place : place + len(body)] = body
    whole = gzip.compress(len(told).to_bytes(4, "little") + told + bytes(packed), 6, mtime=0)
    return f"atlasPiece({json.dumps(name)},{json.dumps(base64.b64encode(whole).decode())});\n"


def _packed(values: NDArray[Any]) -> tuple[dict[str, Any], bytes]:
    """A column as bytes: whole numbers narrow, and of few different numbers each once."""
    known = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    whole = len(known) == len(values) and bool(np.all(known == np.floor(known))) if len(values) else True
    if whole:
        low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
        for kind, least, most in _WHOLE:
            if least <= low and high < most:
                return {"type": kind, "length": len(values)}, values.astype(f"<{kind}").tobytes()
    distinct = np.unique(values)
    if len(distinct) <= _FEW:
        places = np.searchsorted(distinct, values).astype(np.uint8)
        listed = [None if np.isnan(one) else float(one) for one in distinct]
        return {"type": "u1", "length": len(values), "of": listed}, places.tobytes()
    return {"type": "f8", "length": len(values)}, values.astype("<f8").tobytes()


def cuts(area: Ints) -> Iterator[slice]:
    """Slices of the rows of a table that hold whole areas."""
    start = 0
    while start < len(area):
        end = min(start + ROWS, len(area))
        if end < len(area):
            first = int(np.searchsorted(area, area[end], side="left"))
            end = first if first > start else int(np.searchsorted(area, area[end], side="right"))
        yield slice(start, end)
        start = end


def pieces_of(table: AtlasTable, name: str) -> Iterator[tuple[dict[str, Any], str]]:
    """What each piece of a table holds, and the piece."""
    for number, rows in enumerate(cuts(table.area)):
        columns: dict[str, NDArray[Any]] = {
            "area": table.area[rows],
            "group": table.group[rows],
            "cell": table.cell[rows],
            "value": table.value[rows],
            "low": table.low[rows],
            "high": table.high[rows],
        }
        for name_of, values in (("variance", table.variance), ("measured", table.measured)):
            if values is not None:
                columns[name_of] = values[rows]
        own = f"{name}-{number}"
        told = {"id": own, "first": int(table.area[rows][0]), "last": int(table.area[rows][-1])}
        yield told, script(own, columns)
