"""Rows of the published tables, as they are written and as they are checked. Public."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from yupana.arrays import Ints
from yupana.files.arrow_stream import TextColumn
from yupana.geography.published import Areas
from yupana.products.topdown.tables import RedistrictingTable, geocodes
from yupana.release.lines import Texts, texts
from yupana.topdown.histogram import Histogram
from yupana.topdown.text_rows import Bytes, lay_rows, variables

_AREAS_AT_ONCE: Final = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class TableRows:
    """Rows of a published table, of consecutive areas of a kind.

    Attributes
    ----------
    table : RedistrictingTable
    level : str
        SUMLEV of the kind.
    first : int
        The first of the areas.
    codes : ndarray of bytes, shape (areas,)
        GEOCODE of each.
    counts : Histogram
        Of these areas.
    """

    table: RedistrictingTable
    level: str
    first: int
    codes: Texts
    counts: Histogram

    def values(self) -> Ints:
        """The variables, of shape (areas, variables)."""
        return variables(self.counts, self.table.member, self.table.size)

    @property
    def heads(self) -> tuple[TextColumn, TextColumn]:
        """SUMLEV and GEOCODE of each row."""
        places = np.arange(len(self.codes), dtype=np.int64)
        return TextColumn(texts([self.level]), np.zeros_like(places)), TextColumn(self.codes, places)

    def text(self) -> Bytes:
        """The rows as they are written."""
        return self.text_of(self.values())

    def text_of(self, numbers: Ints) -> Bytes:
        """Rows of the same areas with other numbers, of shape (areas, numbers)."""
        return lay_rows(*self.heads, numbers)


def table_rows(
    table: RedistrictingTable, level: str, kind: Areas, first: int, counts: Histogram
) -> Iterator[TableRows]:
    """The rows of some consecutive areas, not too many at a time.

    Parameters
    ----------
    table : RedistrictingTable
    level : str
        SUMLEV of the kind.
    kind : Areas
    first : int
        The area that is the first of the histogram.
    counts : Histogram
    """
    for start in range(0, counts.units, _AREAS_AT_ONCE):
        stop = min(start + _AREAS_AT_ONCE, counts.units)
        codes = geocodes(kind.name, kind.labels[first + start : first + stop])
        yield TableRows(table, level, first + start, codes, counts.part(start, stop))
