"""Files of counts: text and Parquet say the same, and neither is made of more than a few parts at a time."""

import weakref
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
from schemas import make_schema

from yupana.arrays import Ints
from yupana.geography.published import Areas
from yupana.products.topdown.outputs import write_tabulation
from yupana.release.lines import texts
from yupana.release.tables import read_table
from yupana.topdown.histogram import Histogram, count_entries

PARTS, BLOCKS = 60, 4
SCHEMA = make_schema(sex=2, age=3)


class Watched:
    """Parts that are counted anew each time they are gone through, and how many were held at most."""

    def __init__(self) -> None:
        self.held = 0

    def __iter__(self) -> Iterator[tuple[int, Histogram]]:
        alive: list[weakref.ref[Ints]] = []
        for part in range(PARTS):
            found = np.random.default_rng(part).integers(0, 3, size=(BLOCKS, SCHEMA.cells))
            unit, cell = np.indices(found.shape).reshape(2, -1)
            counts = count_entries(unit, cell.astype(np.int32), found.reshape(-1), BLOCKS)
            alive.append(weakref.ref(counts.counts))
            yield part * BLOCKS, counts
            self.held = max(self.held, sum(one() is not None for one in alive))


def areas() -> list[Areas]:
    county = np.arange(PARTS * BLOCKS) // 10
    town = np.where(county % 3 == 0, -1, county // 5)
    return [
        Areas("county", texts(f"{one:03}" for one in range(county[-1] + 1)), county, ""),
        Areas("town", texts(str(one) for one in range(town.max() + 1)), town, ""),
    ]


def test_text_and_parquet_say_the_same(tmp_path: Path) -> None:
    held = {}
    for fmt in ("csv", "parquet"):
        parts, folder = Watched(), tmp_path / fmt
        folder.mkdir()
        rows = write_tabulation(folder, SCHEMA, areas(), parts, fmt)
        assert {Path(name).stem: number for name, number in rows.items()}.keys() == {"county", "town"}
        assert sorted(p.relative_to(tmp_path / fmt).as_posix() for p in tmp_path.glob(f"{fmt}/*/*")) == sorted(rows)
        held[fmt] = parts.held
    for kind in ("county", "town"):
        text, parquet = (read_table(tmp_path / fmt / f"tabulation/{kind}.{fmt}") for fmt in ("csv", "parquet"))
        assert text == parquet
        assert len(text["count"]) >= 5 * SCHEMA.cells
    kinds = duckdb.read_parquet(str(tmp_path / "parquet/tabulation/county.parquet")).dtypes
    assert list(map(str, kinds)) == ["VARCHAR", "VARCHAR", "VARCHAR", "BIGINT"]
    # What a thread makes ahead is held, too.
    assert max(held.values()) < PARTS / 2
