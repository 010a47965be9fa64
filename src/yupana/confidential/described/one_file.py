"""Read one record file, or a frame in its place; and look up the codes that occur, where they are declared public."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb

from yupana.confidential.records.data_frames import as_folder
from yupana.confidential.records.database import private_database
from yupana.confidential.records.foreign_files import RecordForms, as_parquet
from yupana.confidential.records.reader import damaged_parts, open_files
from yupana.confidential.records.sources import SYNTHETIC_MARK, is_synthetic
from yupana.confidential.records.statistics_files import STATISTICS
from yupana.confidential.records.validation import require_none
from yupana.confidential.request import check_outside
from yupana.errors import ConfigError, InputError, reworded
from yupana.files.arrow import ArrowStream
from yupana.files.columns import Column, Dialect, RecordFile
from yupana.files.database import STOPS, named
from yupana.files.names import normal
from yupana.files.regular import FILE, must_be
from yupana.products.described.count import MOST_CELLS, RECORDS
from yupana.products.described.description import ENDINGS

_ENDINGS = (*(f".{ending}" for ending in ENDINGS), *STATISTICS)
_LISTED = f"{', '.join(_ENDINGS[:-1])} or {_ENDINGS[-1]}"


@contextmanager
def one_file(
    data: ArrowStream | str | Path | None, name: str, out: Path, *, synthetic: bool, seeded: bool, memory: int | None
) -> Iterator[Path]:
    """Give a file or a frame a private folder, under a name.

    Parameters
    ----------
    data : frame, str or Path
    name : str
        Of the file in the folder, without its ending.
    out : Path
        Where the release will be, which the file must not lie in.
    synthetic : bool
        The frame is nobody's. A file says so by a file named SYNTHETIC beside it.
    seeded : bool
        Whether noise is made from a seed, which records that may be real forbid.
    memory : int, optional
        Bytes to get along with.

    Raises
    ------
    ConfigError, InputError, OutputError
        If it is neither, or its ending is of neither form, or it lies in ``out``. What is raised within the context
        calls the file by its own name.
    """
    if data is None:
        raise InputError("data: give a file or a frame; only dry_run needs none")
    if not isinstance(data, str | Path):
        with as_folder({name: data}, files={name: "parquet"}, synthetic=synthetic, memory=memory) as folder:
            yield folder
        return
    path = _file(data)
    check_outside(out, [path])
    marked = is_synthetic(path.parent)
    if synthetic and not marked:
        raise ConfigError(f"synthetic=True is for frames; a file says so by a file named {SYNTHETIC_MARK} beside it")
    if seeded and not marked:
        raise ConfigError(
            f"no file named {SYNTHETIC_MARK} lies beside {path}, so its records may be real; refused because whoever "
            "has the seed can take off noise that was made from it"
        )

    def in_own_words(text: str) -> str:
        """A message, with the way out where a value is none of those that were named."""
        text = text.replace(f"{name}{path.suffix}", path.name)
        return f"{text}\n  {_WAY_OUT}" if ": domain: " in text else text

    files = {name: path.suffix[1:]}
    with reworded(in_own_words), as_folder({name: path}, files=files, synthetic=marked, memory=memory) as folder:
        yield folder


_WAY_OUT = "name all codes and bounds, or count the rest as one class (--others LABEL, in Python others=LABEL)"


def _file(data: str | Path) -> Path:
    """The file of records, if it is one of this machine.

    Raises
    ------
    InputError
    """
    if "://" in str(data):
        raise InputError(
            f"{data}: lies on an object store, and count reads a file of this machine; copy it, or describe "
            "the records and name their folder on the store to tables run"
        )
    path = Path(data)
    must_be(FILE, path, f"name one file of records that ends in {_LISTED}")
    if path.suffix not in _ENDINGS:
        raise InputError(f"{path}: must end in {_LISTED}")
    return path


def occurring(
    folder: Path, wanted: Sequence[str], columns: Sequence[str], memory: int | None, dialect: Dialect
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
    dialect : Dialect
        How the file is written, if it is one of text.

    Raises
    ------
    InputError
        If the file or a column is missing or unreadable, or a column has no value, or too many.
    """
    keys = tuple(Column(name, range(1), key=True, free=True, decimal=dialect.decimal) for name in columns)
    schema = RecordFile(RECORDS, "record", keys, ENDINGS, alias=RECORDS, dialect=dialect)
    forms = RecordForms({RECORDS: schema})
    with as_parquet(folder, forms, memory) as place, private_database(memory) as db:
        sources, findings = open_files(db, place, {RECORDS: schema})
        require_none(findings)
        found = {}
        for column in wanted:
            query = f"SELECT DISTINCT CAST({named(column)} AS VARCHAR) FROM {named(schema.relation)}"
            try:
                rows = db.execute(f"{query} WHERE {named(column)} IS NOT NULL LIMIT {MOST_CELLS + 1}").fetchall()
            except STOPS:
                raise
            except duckdb.Error:
                require_none(damaged_parts(db, sources[RECORDS]))
                raise
            if not 0 < len(rows) <= MOST_CELLS:
                amount = f"more than {MOST_CELLS:,} values" if rows else "no value at all"
                raise InputError(f"keys_public: {column} has {amount}, so it is no column of codes")
            found[column] = tuple(sorted({normal(str(row[0])) for row in rows}))
    return found
