"""A SafeTab release, or one table of it, opened to be postprocessed, and the new release written from it. Public."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

import yupana
from yupana.errors import OutputError
from yupana.estimate.coterminous.nested import CELL_COLUMNS, KEY, columns
from yupana.files.database import open_database, source_of, write_query
from yupana.files.regular import real, regular
from yupana.release.check import checked_file
from yupana.release.folder import MANIFEST, new_folder, read_manifest, write_manifest
from yupana.release.processing import RECORD
from yupana.release.status import refuse_confidential
from yupana.release.tables import checksum


@dataclass(frozen=True, slots=True)
class Source:
    """Tables opened in an embedded database, each as a table of its name with the columns of the file.

    A column is text if the file is CSV, and of the type that Parquet gives it otherwise.

    Attributes
    ----------
    db : duckdb.DuckDBPyConnection
    manifest : mapping
        Of the release the tables are from; of a lone table what can be said of it.
    paths : mapping of table name to Path
    described : mapping of table name to column names and types
    checksum : str or None
        SHA-256 of the manifest; None of a lone table without one.
    """

    db: duckdb.DuckDBPyConnection
    manifest: Mapping[str, Any]
    paths: Mapping[str, Path]
    described: Mapping[str, Mapping[str, str]]
    checksum: str | None = None

    @property
    def records(self) -> list[dict[str, Any]]:
        """What was done to the tables before."""
        return list(self.manifest.get(RECORD, ()))

    def rows(self, table: str) -> int:
        """How many rows a table has."""
        return int(self.db.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])


@contextmanager
def open_source(path: Path) -> Iterator[Source]:
    """Open the SafeTab tables of a release folder, or one table by its file, with or without a manifest.

    Raises
    ------
    OutputError
        If there are no such tables, or one is unreadable, was changed after its manifest, lacks the columns of its
        name, or holds something other than whole counts and variances.
    """
    manifest, paths, digest = _listed(path)
    if digest:
        refuse_confidential(manifest, str(path))
    with open_database() as db:
        described = {name: _load(db, name, file) for name, file in paths.items()}
        yield Source(db, manifest, paths, described, digest)


def write_release(
    source: Source, out: Path, selects: Mapping[str, str], record: Mapping[str, Any] | None, *, overwrite: bool
) -> dict[str, Any]:
    """Write a release with the manifest of the source, new tables, and a record of what was done; return the manifest.

    Parameters
    ----------
    source : Source
    out : Path
    selects : mapping of table name to SQL
        What each table is to hold; tables of the source that are not named are dropped.
    record : mapping, optional
        Appended to the record of the manifest.
    overwrite : bool

    Raises
    ------
    OutputError
        If ``out`` cannot be used.
    """
    if real(out) in {real(path).parent for path in source.paths.values()}:
        raise OutputError(f"{out} holds the tables to be read; name another folder")
    with new_folder(out, overwrite=overwrite) as partial:
        tables = {}
        for name, select in selects.items():
            path = partial / source.paths[name].with_stem(name).name
            write_query(source.db, select, path)
            written = source.db.execute(f"SELECT count(*) FROM ({select})").fetchall()
            header = [column[0] for column in source.db.execute(f"DESCRIBE {select}").fetchall()]
            tables[path.name] = {
                "table": name,
                "sha256": checksum(path),
                "rows": int(written[0][0]),
                "columns": header,
            }
        # A report shows the numbers as they were before.
        kept = {key: value for key, value in source.manifest.items() if key not in {"tables", "reports", RECORD}}
        made_of = {"source_manifest_sha256": source.checksum} if source.checksum else {}
        records = source.records if record is None else [*source.records, {**record, **made_of}]
        manifest = {**kept, RECORD: records, "tables": tables}
        write_manifest(partial, manifest)
    return manifest


def _listed(path: Path) -> tuple[dict[str, Any], dict[str, Path], str | None]:
    """The manifest, the files by table name, checked against their checksums, and the checksum of the manifest."""
    folder = path if path.is_dir() else path.parent
    if not path.exists():
        raise OutputError(f"{path} does not exist; name the folder of a release, or one of its tables")
    has_manifest = (folder / MANIFEST).is_file()
    manifest = read_manifest(folder) if has_manifest or path.is_dir() else {}
    listed = manifest.get("tables", {})
    if "tables" in manifest and (path.is_dir() or path.name in listed):
        paths = {}
        for name, entry in listed.items():
            table = str(entry.get("table", Path(name).stem))
            if table in CELL_COLUMNS and (path.is_dir() or name == path.name):
                paths[table] = checked_file(folder, manifest, name)
        if not paths:
            raise OutputError(f"{path} holds none of the tables {', '.join(CELL_COLUMNS)}")
        return manifest, paths, checksum(folder / MANIFEST)
    if path.is_dir():
        raise OutputError(f"{folder / MANIFEST} is not the manifest of a release of yupana: it lists no tables")
    if path.stem not in CELL_COLUMNS or path.suffix not in {".csv", ".parquet"}:
        raise OutputError(f"{path} is no table of SafeTab: its name must be one of {', '.join(CELL_COLUMNS)}")
    return {"yupana": yupana.__version__, "product": "tables", "status": "unknown"}, {path.stem: path}, None


def _load(db: duckdb.DuckDBPyConnection, name: str, path: Path) -> dict[str, str]:
    text = source_of(path)
    expected = list(columns(name))
    unreadable = OutputError(f"{path} is not readable as a table of a release")
    try:
        if path.suffix == ".parquet":
            db.execute(f"CREATE VIEW file_{name} AS SELECT * FROM read_parquet({text})")
            header = [str(row[0]) for row in db.execute(f"DESCRIBE file_{name}").fetchall()]
            is_empty = not db.execute(f"SELECT 1 FROM file_{name} LIMIT 1").fetchall()
            db.execute(f"CREATE TABLE {name} AS SELECT {_typed(header, is_empty=is_empty)} FROM file_{name}")
        else:
            with open(path, encoding="utf-8-sig", opener=regular) as file:
                header = file.readline().rstrip("\r\n").split("|")
            types = ", ".join(f"'{column}': 'VARCHAR'" for column in expected)
            if header == expected:
                db.execute(
                    f"CREATE TABLE {name} AS SELECT * FROM read_csv({text}, auto_detect = false, delim = '|',"
                    f" header = true, quote = '', escape = '', columns = {{{types}}}, null_padding = false)"
                )
    except (OSError, UnicodeDecodeError, duckdb.Error):
        raise unreadable from None
    if "REASON" in header:
        raise OutputError(f"{path} has a column REASON: it was suppressed, which comes last; use the release before it")
    if header != expected:
        raise OutputError(f"{path} must have the columns {'|'.join(expected)}")
    first = db.execute(
        f"SELECT min(rowid) FROM {name} WHERE ITERATION_CODE IS NULL OR REGION_ID IS NULL OR REGION_TYPE IS NULL OR"
        " NOT coalesce(regexp_full_match(CAST(COUNT AS VARCHAR), '-?[0-9]{1,15}'), false) OR"
        " NOT coalesce(TRY_CAST(VARIANCE AS DOUBLE) >= 0 AND isfinite(TRY_CAST(VARIANCE AS DOUBLE)), false)"
    ).fetchall()[0][0]
    if first is not None:
        rule = "COUNT is a whole number and VARIANCE a number, not negative"
        raise OutputError(f"{path}, line {int(first) + 2}: {rule}; a suppressed count cannot be postprocessed")
    return {str(row[0]): str(row[1]) for row in db.execute(f"DESCRIBE {name}").fetchall()}


def _typed(header: list[str], *, is_empty: bool) -> str:
    """Region and iteration as text; in an empty table, whose types mean nothing, every column by what it is."""
    types = dict.fromkeys(KEY, "VARCHAR")
    if is_empty:
        types |= {**dict.fromkeys(header, "VARCHAR"), "COUNT": "BIGINT", "VARIANCE": "DOUBLE", "MOE": "DOUBLE"}
    return ", ".join(
        f'CAST("{column}" AS {types[column]}) AS "{column}"' if column in types else f'"{column}"' for column in header
    )
