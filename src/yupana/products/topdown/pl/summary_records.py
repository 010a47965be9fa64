"""The records of a summary file of P.L. 94-171, as arrays and as tables.

Data-frame libraries keep the class of what they were given to the end of the process, and the database complains of
whatever that class can reach; so this file imports nothing that reaches it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Flags, Indices, Ints
from yupana.files.arrow import ArrowTable, Tabular
from yupana.files.arrow_stream import Column, TextColumn, letters

_ASCII: Final = 127
_HEADER: Final = "header"
_AREA: Final = ("STUSAB", "STATE", "SUMLEV", "GEOID", "GEOCODE", "NAME", "LOGRECNO")
"""What stands beside the variables of a table."""

_KINDS: Final = {
    **dict.fromkeys(("AREALAND", "AREAWATR", "POP100", "HU100"), "BIGINT"),
    **dict.fromkeys(("INTPTLAT", "INTPTLON"), "DOUBLE"),
}
"""Fields of the header that are numbers, with their types in SQL."""


@dataclass(frozen=True, eq=False, repr=False)
class SummaryFile(Tabular):
    """The records of a summary file, or of those of several states, in the order of the geographic header.

    ``file["P1"]``, ``file["header"]`` and the whole are tables with the Arrow C stream interface: codes and names are
    text, and numbers are numbers.

    Attributes
    ----------
    fields : mapping of str to ndarray of bytes, shape (records,)
        All fields of the geographic header by name, in latin-1, as they stand in the file.
    counts : mapping of str to ndarray of int32, shape (records, variables)
        P1 to P5 and H1.
    ends : tuple of bytes
        What the lines of each of the four files end with.
    """

    fields: Mapping[str, NDArray[np.bytes_]]
    counts: Mapping[str, Indices]
    ends: tuple[bytes, ...] = (b"\n",) * 4

    @cached_property
    def header(self) -> ArrowTable:
        """The geographic header, a row for each area; an empty field is no value."""
        return self._table(self.fields, ())

    @cached_property
    def tables(self) -> Mapping[str, ArrowTable]:
        """P1 to P5 and H1 by name, a row for each area, with the codes that tell areas apart."""
        return {name: self._table(_AREA, (name,)) for name in self.counts}

    def table(self) -> ArrowTable:
        """Everything in one table: the geographic header, then all variables."""
        return self._table(self.fields, tuple(self.counts))

    def __getitem__(self, name: str) -> ArrowTable:
        """A table by its name, such as P1 or header.

        Raises
        ------
        KeyError
            If there is none of that name.
        """
        if name == _HEADER:
            return self.header
        if name not in self.counts:
            raise KeyError(f"there is no table {name!r}; there are {', '.join(self)}")
        return self.tables[name]

    def __iter__(self) -> Iterator[str]:
        """Go through the names of the tables."""
        return iter((_HEADER, *self.counts))

    def __repr__(self) -> str:
        states = ", ".join(sorted({state.decode("latin-1") for state in np.unique(self.fields["STUSAB"])}))
        number = self.records
        return f"<P.L. 94-171 of {states}: {number:,} area{'s' * (number != 1)}; tables {', '.join(self)}>"

    def _table(self, header: Iterable[str], tables: Iterable[str]) -> ArrowTable:
        # Data-frame libraries keep the class to the end of the process, with whatever its file imports.
        from yupana.products.topdown.tables import variables_of  # noqa: PLC0415 (the database, see above)

        columns: dict[str, Column] = {name: _in_utf8(self.fields[name]) for name in header}
        for table in tables:
            columns |= zip(variables_of(table), self.counts[table].T, strict=True)
        kinds = {name: _KINDS.get(name, "VARCHAR") for name in header}
        return ArrowTable.of_arrays(columns, kinds)

    @property
    def records(self) -> int:
        """How many."""
        return len(self.fields["LOGRECNO"])

    def keep(self, kept: Flags | Ints) -> "SummaryFile":
        """Some of the records."""
        fields = {name: values[kept] for name, values in self.fields.items()}
        return replace(self, fields=fields, counts={name: values[kept] for name, values in self.counts.items()})

    def variable(self, name: str) -> Indices:
        """A variable by its name, such as P0010001, of shape (records,).

        Raises
        ------
        KeyError
            If there is none of that name.
        """
        from yupana.products.topdown.tables import variables_of  # noqa: PLC0415 (the database, see above)

        for table, values in self.counts.items():
            if name in (names := variables_of(table)):
                return values[:, names.index(name)]
        raise KeyError(name)


def _in_utf8(values: NDArray[np.bytes_]) -> TextColumn:
    """Fields of the header as texts; the Bureau writes Latin-1 in some years and UTF-8 in others."""
    found, at = np.unique(values, return_inverse=True)
    if (letters(found) > _ASCII).any():
        found = np.array([_decoded(text).encode() for text in found.tolist()])
    return TextColumn(found, at)


def _decoded(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text.decode("latin-1")
