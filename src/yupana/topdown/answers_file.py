"""Answers of queries on disk: a row for each geounit and answer, with numbers beside them. Public."""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.files.database import open_database, write_query
from yupana.geography.spine import Spine
from yupana.topdown.evidence import StoredMeasurements
from yupana.topdown.queries import DETAILED, TOTAL, Query, Recode, Schema

_ROWS_AT_ONCE: Final = 1 << 19
"""Rows that the database lays out at a time, some 300 bytes each."""


@dataclass(frozen=True, slots=True, eq=False)
class AnswerFile:
    """Numbers about the answers of consecutive geounits.

    Attributes
    ----------
    units : ndarray of int64, shape (units,)
        Positions of the geounits in their geolevel.
    numbers : mapping of str to ndarray, each of shape (units, size) or (units, 1)
        By the name of the column.
    """

    units: NDArray[np.int64]
    numbers: Mapping[str, NDArray[np.generic]]


def kept_columns(query: Query, schema: Schema, recodes: Mapping[str, Recode]) -> dict[str, list[str]]:
    """The columns that tell answers of a query apart: by attribute or recode kept, the label of each answer.

    A recode's groups are numbered from 0. Answers are in C order of the attributes.
    """
    if query.name == TOTAL:
        return {}
    parts = set(schema.names if query.name == DETAILED else query.name.split("*"))
    places = np.unravel_index(np.arange(query.size), query.shape)
    columns: dict[str, list[str]] = {}
    for attribute, place, size in zip(schema.attributes, places, query.shape, strict=True):
        if attribute.name in parts:
            columns[attribute.name] = [attribute.labels[i] for i in place.tolist()]
        for recode in recodes.values():
            if recode.attribute == attribute.name and recode.name in parts:
                columns[recode.name] = [str(i) for i in place.tolist() if i < size]
    return columns


def write_answers(
    path: Path, geounits: Sequence[str], kept: Mapping[str, Sequence[str]], pieces: Iterable[AnswerFile]
) -> int:
    """Write ``geounit``, what the query keeps, and the numbers; return the rows.

    Parameters
    ----------
    path : Path
    geounits : sequence of str
        Identifiers of the geolevel.
    kept : mapping of str to sequence of str
        `kept_columns` of the query.
    pieces : iterable of AnswerFile

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    rows = 0
    with path.open("wb") as file, open_database() as db:
        _list(db, "units", {"geounit": geounits})
        size = max(1, *(len(labels) for labels in kept.values())) if kept else 1
        _list(db, "answers", {f"k{i}": labels for i, labels in enumerate(kept.values())} or {"k": [""]})
        header = False
        for piece in pieces:
            if not header:
                file.write("|".join(["geounit", *kept, *piece.numbers]).encode() + b"\n")
                header = True
            for one in _in_parts(piece, max(1, _ROWS_AT_ONCE // size)):
                rows += _write_piece(db, part, len(kept), size, one)
                with part.open("rb") as written:
                    shutil.copyfileobj(written, file)
    part.unlink(missing_ok=True)
    return rows


def _in_parts(piece: AnswerFile, units: int) -> Iterator[AnswerFile]:
    """The piece in parts of so many units."""
    for first in range(0, len(piece.units), units):
        part = slice(first, first + units)
        yield AnswerFile(piece.units[part], {name: numbers[part] for name, numbers in piece.numbers.items()})


def _write_piece(db: duckdb.DuckDBPyConnection, part: Path, kept: int, size: int, piece: AnswerFile) -> int:
    shape = (len(piece.units), size)
    arrays = {
        "u": np.repeat(piece.units, size),
        "a": np.tile(np.arange(size), len(piece.units)),
        **{
            f"n{i}": np.ascontiguousarray(np.broadcast_to(numbers, shape)).reshape(-1)
            for i, numbers in enumerate(piece.numbers.values())
        },
    }
    selected = [f"n{i}" for i in range(len(piece.numbers))]
    labels = ["geounit", *(f"k{i}" for i in range(kept))]
    db.register("numbers", arrays)
    rows = (
        f"SELECT {', '.join([*labels, *selected])} FROM numbers JOIN units ON units.place = u "
        "JOIN answers ON answers.place = a ORDER BY u, a"
    )
    write_query(db, rows, part, header=False)
    db.unregister("numbers")
    return len(arrays["u"])


def _list(db: duckdb.DuckDBPyConnection, name: str, columns: Mapping[str, Sequence[str]]) -> None:
    """Make a table of texts with their place, from 0."""
    number = len(next(iter(columns.values())))
    listed = {"place": np.arange(number), **{key: np.array(texts, dtype=object) for key, texts in columns.items()}}
    db.register("listed", listed)
    db.execute(f"CREATE TABLE {name} AS SELECT * FROM listed")
    db.unregister("listed")


def write_noisy(
    folder: Path, spine: Spine, schema: Schema, recodes: Mapping[str, Recode], stored: StoredMeasurements
) -> dict[str, int]:
    """Write all measurements with their variances; geounits without a share have no rows.

    Returns
    -------
    dict of str to int
        Rows, by the file's path within the folder.
    """
    rows: dict[str, int] = {}
    for number, level in enumerate(spine.levels):
        labels = level.labels()
        for q, query in enumerate(stored.spending.levels[number].queries):
            path = folder / level.name / f"{query.name.replace('*', '.')}.csv"
            pieces = _pieces(stored, number, q)
            rows[path.relative_to(folder).as_posix()] = write_answers(
                path, labels, kept_columns(query, schema, recodes), pieces
            )
    return rows


def _pieces(stored: StoredMeasurements, level: int, q: int) -> Iterator[AnswerFile]:
    spent = stored.spending.levels[level]
    for first, last, answers in stored.pieces(level, 0, len(spent.share_of)):
        share = spent.share_of[first:last]
        measured = np.flatnonzero(np.isfinite(spent.variances[share, q]))
        numbers = {
            "value": answers[q][measured].astype(np.int64),
            "variance": spent.variances[share[measured], q][:, None],
        }
        yield AnswerFile(measured + first, numbers)
