"""The codes that occur in a record file, where the user declares that they are public."""

from collections.abc import Sequence
from pathlib import Path

import duckdb

from yupana.confidential.records.database import private_database
from yupana.confidential.records.reader import damaged_parts, open_records
from yupana.confidential.records.sources import find_source
from yupana.confidential.records.validation import require_none
from yupana.errors import InputError
from yupana.files.columns import Column, RecordFile
from yupana.files.database import STOPS, named
from yupana.products.described.count import MOST_CELLS, RECORDS


def occurring(
    folder: Path, wanted: Sequence[str], columns: Sequence[str], memory: int | None
) -> dict[str, tuple[str, ...]]:
    """Look up the values of columns, in order. Records without a value are left to the check of the records.

    Parameters
    ----------
    folder : Path
        That holds the file.
    wanted : sequence of str
        Columns whose values the user declares to be public.
    columns : sequence of str
        All columns that will be read, so that those that are missing are all told at once.
    memory : int, optional
        Bytes to get along with.

    Raises
    ------
    InputError
        If the file or a column is missing or unreadable, or a column has no value, or too many.
    """
    schema = RecordFile(RECORDS, "record", tuple(Column(name, range(1), key=True) for name in columns))
    with private_database(memory) as db:
        source, findings = find_source(folder, schema)
        if source is not None and not findings:
            findings = open_records(db, source, schema)
        require_none(findings)
        found = {}
        for column in wanted:
            query = f"SELECT DISTINCT CAST({named(column)} AS VARCHAR) FROM {named(schema.relation)}"
            try:
                rows = db.execute(f"{query} WHERE {named(column)} IS NOT NULL LIMIT {MOST_CELLS + 1}").fetchall()
            except STOPS:
                raise
            except duckdb.Error:
                require_none([] if source is None else damaged_parts(db, source))
                raise
            if not 0 < len(rows) <= MOST_CELLS:
                amount = f"more than {MOST_CELLS:,} values" if rows else "no value at all"
                raise InputError(f"keys_public: {column} has {amount}, so it is no column of codes")
            found[column] = tuple(sorted(str(row[0]) for row in rows))
    return found
