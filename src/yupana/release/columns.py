"""The columns of a table of a release: numbers as numbers and codes as text, in whichever format it was written."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from yupana.errors import OutputError
from yupana.files.arrow import ArrowTable
from yupana.files.database import named, open_database, unreadable
from yupana.files.delimited import PARQUET, column_types, csv_rows, parquet_rows, read_header
from yupana.files.regular import must_be_regular
from yupana.release.tables import ReleaseTable

_WHOLE: Final = re.compile(
    r"COUNT|count|value|children|osed|GROUPS|housing_units|gq[1-7]|[PH]\d{7}(_LOWER|_UPPER|_MOE)?"
)
_REAL: Final = re.compile(
    r"(VARIANCE|MOE|variance|moe|lower|upper|LOWER|UPPER|NOISY|ESTIMATE|COVERAGE|SHARE|mae|rmse|bias)"
    r"|(EXPECTED|EXPERIMENTAL)_MOE\w*|\w+_BIAS|(RATIO|PRED|VARIANCE|MOE_NOISY|COUNT_NOISY)_\w+"
)
"""Names of columns that hold numbers; all others are codes."""

_SUPPRESSED: Final = "REASON"
"""A table with this column has texts in place of suppressed numbers."""


def read_columns(path: Path) -> ArrowTable:
    """Hand out a table of a release; its rows are read from the file each time they are asked for.

    Parameters
    ----------
    path : Path
        Written by `write_table`, `write_parts` or `write_query`.

    Returns
    -------
    ArrowTable
        Of two names that differ in case only, which a database does not tell apart, the second ends in ``_2``.

    Raises
    ------
    OutputError
        If it is no such table.
    """
    with unreadable(OutputError(f"{path} is not readable as a table of a release")), open_database() as database:
        if path.suffix == PARQUET:
            must_be_regular(path)
            rows = parquet_rows([path])
            names = list(column_types(database, rows))
        else:
            names = list(_distinct(read_header(path, separators="|", quote="").names))
            rows = csv_rows(path, names)
        query = f"SELECT {', '.join(_typed(name, names) for name in names)} FROM {rows}"
        database.execute(f"DESCRIBE {query}")
    return ArrowTable(query)


def typed_columns(table: ReleaseTable) -> dict[str, tuple[str, list[object]]]:
    """The columns of a table that was not written, with the types `read_columns` would give it; "" is no value."""
    made: dict[str, tuple[str, list[object]]] = {}
    for name, values in table.columns.items():
        kind = _kind(name)
        told: list[object] = [None if value == "" else str(value) if kind == "VARCHAR" else value for value in values]
        made[name] = kind, told
    return made


def _typed(name: str, names: Sequence[str]) -> str:
    kind = "VARCHAR" if _SUPPRESSED in names else _kind(name)
    return f"CAST({named(name)} AS {kind}) AS {named(name)}"


def _kind(name: str) -> str:
    return "BIGINT" if _WHOLE.fullmatch(name) else "DOUBLE" if _REAL.fullmatch(name) else "VARCHAR"


def _distinct(names: Sequence[str]) -> Iterator[str]:
    met = Counter[str]()
    for name in names:
        met[name.lower()] += 1
        yield name if met[name.lower()] == 1 else f"{name}_{met[name.lower()]}"
