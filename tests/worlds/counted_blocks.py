"""The counts of all blocks at once."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from yupana.arrays import Ints
from yupana.confidential.request import RunRequest
from yupana.confidential.tabulate.block_histograms import open_block_counts
from yupana.topdown.histogram import Histogram
from yupana.topdown.queries import Schema


def count_all(folder: Path, schema: Schema, blocks: Sequence[int] | Ints, facilities: Ints | None = None) -> Histogram:
    """Count a data folder; the parts, joined, are the whole."""
    with open_block_counts(folder, schema, np.array(blocks), RunRequest(), facilities) as counts:
        found = counts.part(0, len(blocks))
        half = len(blocks) // 2
        for first, last in ((0, half), (half, len(blocks))):
            one, other = counts.part(first, last), found.part(first, last)
            assert all(np.array_equal(getattr(one, of), getattr(other, of)) for of in Histogram.__slots__)
    return found
